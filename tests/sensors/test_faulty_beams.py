"""A transducer fault changes every value that an instrument computes from the beam, in readings and device formats."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.pose import Pose
from navsense.core.typing import FloatArray
from navsense.devices import nmea, pd0, pd6, waterlinked
from navsense.environment.base import Environment
from navsense.environment.terrain.primitives import Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.messages.world_messages import pack_fault_bits
from navsense.motion.trajectory import waypoints
from navsense.noise.specification import Noise
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import DepthCells, TrackErrors, WaterMassLayer
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.world import Link, Model, MountedSensor, World

NAME, LINK = "auv::base::one", "auv::base"
HEIGHT, START, END, OFF = 20.0, 1.0, 2.0, 0.12
SEEN = ("beam_velocity", "water_beam_velocity", "beam_range")

DVL = Dvl(
    bottom=TrackErrors(Noise(stddev=0.01)),
    water=TrackErrors(Noise(stddev=0.01)),
    range_noise=Noise(stddev=0.05),
    water_mode=TrackMode.ALWAYS,
    layer=WaterMassLayer(2.0, 8.0),
)
ADCP = Adcp(cells=DepthCells(6), propagation=False, bottom_pings=2, pings=2, motion_compensated=True)


def make_world(spec: Any, *planned: ScheduledFault) -> World:
    """Return a world with the instrument 20 m above a level bed, moving north-east."""
    motion = waypoints(np.array((0.0, 100.0)), [Pose((0.0, 0.0, HEIGHT)), Pose((100.0, 50.0, HEIGHT))])
    model = Model("auv", (Link(LINK),), LINK, motion=motion)
    mounted = MountedSensor(NAME, spec, "auv", LINK, 10.0, topic="/one", faults=Faults(scheduled=planned))
    around = Environment(scene=Scene((Body("bed", Plane()),)), water=Water(surface=100.0, sound_speed=1500.0))
    return World("sea", (model,), (mounted,), environment=around)


def measure_both(spec: Any, *planned: ScheduledFault) -> tuple[Any, Any, Any]:
    """Return readings with and without faults, and the published rows during the faults."""
    sound, faulty = (ns.simulate(make_world(spec, *arguments), 3.0, seed=4)[NAME] for arguments in ((), planned))
    assert np.array_equal(sound.emitted, faulty.emitted)
    inside = (sound.time >= START) & (sound.time < END)
    for name in sound.arrays:
        assert np.array_equal(sound[name][~inside], faulty[name][~inside], equal_nan=True), name
        if name in sound.ideal:
            assert np.array_equal(sound.ideal[name], faulty.ideal[name], equal_nan=True), name
    return sound, faulty, inside & sound.emitted


def solve(axes: FloatArray, along: FloatArray) -> FloatArray:
    """Return the least-squares velocities from beam velocities."""
    return np.asarray(np.linalg.lstsq(axes, along.T, rcond=None)[0].T)


def compute_error_velocity(axes: FloatArray, along: FloatArray) -> FloatArray:
    """Return RDI's error velocity of Janus beams 1 to 4."""
    angle = math.acos(abs(axes[0, 2]))
    pairs = along[:, 0] + along[:, 2] - along[:, 1] - along[:, 3]
    return np.asarray(np.abs(pairs) / (2.0 * math.sqrt(2.0) * math.sin(angle)))


@pytest.mark.requirement("NOI-6", "GAP-9")
@pytest.mark.parametrize(
    ("array", "velocity"), [("beam_velocity", "velocity"), ("water_beam_velocity", "water_velocity")]
)
def test_beam_velocity_fault_changes_every_derived_array(array: str, velocity: str) -> None:
    sound, faulty, rows = measure_both(DVL, ScheduledFault("bias", START, END, array, (0.0, OFF, 0.0, 0.0)))
    assert rows.sum() >= 5
    assert faulty[array][rows] - sound[array][rows] == pytest.approx(
        np.tile((0, OFF, 0, 0), (rows.sum(), 1)), abs=1e-14
    )
    axes = DVL.beams.axes
    assert faulty[velocity][rows] == pytest.approx(solve(axes, faulty[array][rows]), abs=1e-12)
    assert np.abs(faulty[velocity][rows] - sound[velocity][rows]).min() > 0.01
    if array == "beam_velocity":
        expected = compute_error_velocity(axes, faulty[array][rows])
        assert np.abs(faulty["error_velocity"][rows]) == pytest.approx(expected, abs=1e-12)
        x, y, _ = faulty[velocity][rows].T
        assert faulty["speed"][rows] == pytest.approx(np.hypot(x, y), abs=1e-12)
    for name in set(SEEN) - {array}:
        assert np.array_equal(sound[name], faulty[name], equal_nan=True)
    assert np.array_equal(pack_fault_bits(faulty.fault), 4.0 * ((sound.time >= START) & (sound.time < END)))


@pytest.mark.requirement("NOI-6")
def test_range_fault_changes_the_altitude_and_limits_lose_the_beam() -> None:
    level = replace(DVL, range_noise=Noise())  # unequal ranges tilt the fitted bottom plane
    sound, faulty, rows = measure_both(level, ScheduledFault("bias", START, END, "beam_range", (OFF,)))
    lower = OFF * math.cos(math.radians(30.0))
    assert faulty["altitude"][rows] - sound["altitude"][rows] == pytest.approx(lower, abs=1e-12)
    _, lost, rows = measure_both(DVL, ScheduledFault("bias", START, END, "beam_range", (0.0, 0.0, 0.0, 100.0)))
    assert lost["beam_valid"][rows].tolist() == [[1.0, 1.0, 1.0, 0.0]] * int(rows.sum())
    assert set(lost["num_good_beams"][rows]) == {3.0}
    assert np.isnan(lost["error_velocity"][rows]).all()
    assert np.isnan(lost["beam_velocity"][rows, 3]).all()


@pytest.mark.requirement("NOI-6")
def test_faulty_beam_is_rejected_by_the_error_velocity() -> None:
    strict = Dvl(error_velocity_limit=0.5)
    _, faulty, rows = measure_both(strict, ScheduledFault("bias", START, END, "beam_velocity", (2.0, 0.0, 0.0, 0.0)))
    assert not faulty.valid[rows].any()
    assert set(faulty["velocity_mode"][rows]) == {0.0}


@pytest.mark.requirement("NOI-6")
def test_spike_affects_one_ping_and_its_derived_arrays() -> None:
    """Between the pings of a DVL, the spike acts on the next published ping only."""
    sound, faulty, _ = measure_both(DVL, ScheduledFault("spike", 1.01, END, "beam_velocity", (OFF,)))
    struck = np.flatnonzero(np.abs(faulty["beam_velocity"] - sound["beam_velocity"]).max(axis=1) > 0.5 * OFF)
    assert struck.tolist() == [int(np.flatnonzero(sound.emitted & (sound.time >= 1.01))[0])]
    off = faulty["velocity"] - sound["velocity"]
    assert np.flatnonzero(np.abs(off).max(axis=1) > 1e-9).tolist() == struck.tolist()
    assert off[struck[0]] == pytest.approx((0.0, 0.0, -OFF / math.cos(math.radians(30.0))), abs=1e-12)
    assert np.flatnonzero(pack_fault_bits(faulty.fault) == 8.0).tolist() == struck.tolist()


@pytest.mark.requirement("NOI-6", "GAP-8")
@pytest.mark.parametrize("array", ["beam_velocity", "bottom_beam_velocity", "bottom_range"])
def test_adcp_beam_fault_changes_the_profile(array: str) -> None:
    """In still water the profile is the compensated motion, with the error of the faulty beams."""
    sound, faulty, rows = measure_both(ADCP, ScheduledFault("bias", START, END, array, (OFF, 0.0, 0.0, 0.0)))
    moved = faulty[array][rows] - sound[array][rows]
    good = np.isfinite(moved[..., 0])
    assert good.any()
    assert moved[good][:, 0] == pytest.approx(OFF, abs=1e-12)
    assert not np.abs(moved[good][:, 1:]).max()
    off = solve(ADCP.beams.axes, np.array([[OFF, 0.0, 0.0, 0.0]]))[0]
    sign = {"beam_velocity": -1.0, "bottom_beam_velocity": 1.0, "bottom_range": 0.0}[array]
    change = (faulty["velocity"] - sound["velocity"])[rows]
    turn = np.linalg.norm(change, axis=-1)
    assert turn[np.isfinite(turn)] == pytest.approx(abs(sign) * np.linalg.norm(off), abs=1e-12)
    apart = (faulty["bottom_velocity"] - sound["bottom_velocity"])[rows]
    assert np.linalg.norm(apart, axis=1) == pytest.approx((sign > 0.0) * np.linalg.norm(off), abs=1e-12)
    if array == "beam_velocity":
        error = np.abs(faulty["error_velocity"] - sound["error_velocity"])[rows]
        expected = compute_error_velocity(ADCP.beams.axes, np.array([[OFF, 0.0, 0.0, 0.0]]))[0]
        assert error[np.isfinite(error)] == pytest.approx(expected, abs=1e-12)


def encode(path: Path, *planned: ScheduledFault, spec: Any = DVL) -> bytes:
    ns.record(make_world(spec, *planned), path, duration=3.0, seed=4, epoch=1767225600)
    return path.read_bytes()


@pytest.mark.requirement("NOI-6", "REC-1:devices")
def test_every_device_format_has_the_same_fault(tmp_path: Path) -> None:
    """PD0 in beam coordinates, transformed by RDI's rule, equals PD0 in earth coordinates. All altitudes are faulty."""
    velocity = ScheduledFault("bias", START, END, "beam_velocity", (OFF, 0.0, 0.0, 0.0))
    decoded = {
        frame: pd0.decode(encode(tmp_path / f"a.{frame}.pd0", velocity)).blocks[0].arrays["bottom_velocity"]
        for frame in ("beam", "instrument", "earth")
    }
    one, two, three, four = decoded["beam"].T
    a, b = 0.5 / math.sin(math.radians(30.0)), 0.25 / math.cos(math.radians(30.0))
    error = (one + two - three - four) * a / math.sqrt(2.0)
    expected = np.stack((a * (one - two), a * (four - three), b * (one + two + three + four), error), axis=1)
    assert decoded["instrument"] == pytest.approx(expected, abs=4e-3)
    assert decoded["earth"][:, 3] == pytest.approx(error, abs=4e-3)
    # The speed of the vehicle is equal in all axes.
    assert np.linalg.norm(decoded["earth"][:, :3], axis=1) == pytest.approx(
        np.linalg.norm(expected[:, :3], axis=1), abs=4e-3
    )
    assert np.abs(error).max() > 0.5 * OFF

    farther = 10.0 * OFF
    higher = farther * math.cos(math.radians(30.0))
    schedules = ((), (ScheduledFault("bias", 0.0, math.inf, "beam_range", (farther,)),))
    level = replace(DVL, range_noise=Noise())
    slants = [
        pd0.decode(encode(tmp_path / "b.pd0", *one, spec=level)).blocks[0].arrays["bottom_range"] for one in schedules
    ]
    assert slants[1] - slants[0] == pytest.approx(higher, abs=0.011)
    lines = [waterlinked.decode(encode(tmp_path / "b.wl.json", *one, spec=level))[0] for one in schedules]
    assert lines[1]["altitude"] - lines[0]["altitude"] == pytest.approx(higher, abs=1e-9)
    assert lines[1]["transducer_distance"] - lines[0]["transducer_distance"] == pytest.approx(farther, abs=1e-9)
    ways = [pd6.decode(encode(tmp_path / "b.pd6", *one, spec=level))[0]["bottom_range"] for one in schedules]
    assert ways[1] - ways[0] == pytest.approx(higher, abs=0.011)
    depths = [nmea.decode(encode(tmp_path / "b.nmea", *one, spec=level))[0]["altitude"] for one in schedules]
    assert depths[1] - depths[0] == pytest.approx(higher, abs=0.11)


TOLD = ("beam.pd0", "instrument.pd0", "ship.pd0", "earth.pd0", "pd6", "wl.json", "nmea")


@pytest.mark.requirement("NOI-6", "REC-1:devices")
@pytest.mark.parametrize(
    ("array", "value", "without"),
    [
        ("beam_velocity", (OFF, 0.0, 0.0, 0.0), ()),
        ("beam_range", (1.0,), ()),
        ("velocity", (OFF,), ("beam.pd0",)),
        ("altitude", (1.0,), ("beam.pd0", "instrument.pd0", "ship.pd0", "earth.pd0", "wl.json")),
        ("error_velocity", (OFF,), TOLD),
    ],
)
def test_bias_fault_reaches_the_documented_formats(
    tmp_path: Path, array: str, value: tuple[float, ...], without: tuple[str, ...]
) -> None:
    """All formats contain measured arrays. Some formats compute other arrays, as in `docs/reference/worlds.md`."""
    for folder, planned in (("sound", ()), ("faulty", (ScheduledFault("bias", START, END, array, value),))):
        (tmp_path / folder).mkdir()
        ns.record(
            make_world(DVL, *planned), [tmp_path / folder / f"a.{one}" for one in TOLD], 3.0, seed=4, epoch=1767225600
        )
    sound, faulty = ([(tmp_path / folder / f"a.{one}").read_bytes() for one in TOLD] for folder in ("sound", "faulty"))
    same = [one for one, a, b in zip(TOLD, sound, faulty, strict=True) if a == b]
    assert tuple(same) == without

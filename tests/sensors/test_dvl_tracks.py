"""Bottom track and water track: the selected track, and the velocity relative to moving water."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import navsense as ns
from navsense.core.kernels import INTERPRETED
from navsense.core.pose import Pose, from_rpy, rotate
from navsense.core.random_streams import Draws
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, Quaternion, Vector
from navsense.environment.base import Environment, UniformField, VectorField
from navsense.environment.current import GaussMarkovCurrent, GaussMarkovProcess, StratifiedCurrent
from navsense.environment.terrain.primitives import Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.base import MotionBlock
from navsense.noise.specification import Noise
from navsense.sensors.base import Measurement
from navsense.sensors.doppler import X_AZIMUTHS_DEG, TrackErrors, Transducer, WaterMassLayer
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.sensors.range import Sound
from navsense.world import Link, Model, MountedSensor, World

FALSE_ALARM = 1e-6
V, FLOW = (1.2, -0.3, 0.1), (0.4, 0.5, -0.02)
LAYER = WaterMassLayer(2.0, 10.0, 1.0)


class DriftingMotion:
    """A frame at a fixed position with a velocity (m/s, world)."""

    end = math.inf

    def __init__(self, place: Vector, velocity: Vector = V, rotation: Quaternion = (1.0, 0.0, 0.0, 0.0)) -> None:
        self.place, self.velocity, self.rotation = place, velocity, rotation

    def at(self, time: AnyArray) -> MotionBlock:
        rows = np.ones((time.shape[0], 1))
        zero = rows * np.zeros(3)
        return MotionBlock(rows * self.place, rows * self.rotation, rows * self.velocity, zero, zero, zero)


def make_sea(
    *, bottom: bool = True, surface: float = 100.0, current: VectorField | None = None, sound: float = 1500.0
) -> Environment:
    """Return water up to a height, with a bed at 0 or none."""
    scene = Scene((Body("bed", Plane()),) if bottom else ())
    return Environment(scene=scene, water=Water(surface=surface, sound_speed=sound), current=current)


def make_spec(**more: Any) -> Dvl:
    return Dvl(**{"propagation": False, "layer": LAYER, "water_mode": TrackMode.ALWAYS, **more})


def measure_pings(spec: Dvl, motion: Any, environment: Environment, count: int = 1) -> Measurement:
    ticks = Ticks(np.arange(count, dtype=np.int64), 10.0)
    source = Draws(spec.processes(), 5, (0, "dvl"))
    _, measured = spec.measure(
        spec.init(source.initial), ticks, spec.ideal(motion, environment, ticks), source.take(count)
    )
    return measured


def rotate_axes(rotation: Quaternion) -> AnyArray:
    """Return the beam axes (4, 3) in the world."""
    tilt, environment = math.radians(30.0), np.radians(X_AZIMUTHS_DEG)
    own = np.column_stack(
        [math.sin(tilt) * np.cos(environment), math.sin(tilt) * np.sin(environment), np.full(4, -math.cos(tilt))]
    )
    return np.array([rotate(rotation, (x, y, z)) for x, y, z in own.tolist()])


def rotate_inverse(q: Quaternion, vector: Any) -> AnyArray:
    x, y, z = (float(part) for part in vector)
    return np.array(rotate((q[0], -q[1], -q[2], -q[3]), (x, y, z)))


# selection

BOTH, ONLY_BOTTOM, ONLY_WATER, NEITHER = (
    (20.0, make_sea(current=UniformField(FLOW))),
    (3.0, make_sea(current=UniformField(FLOW))),  # 80 % of 3 m is 0.4 m of a layer that begins at 2 m
    (20.0, make_sea(bottom=False, current=UniformField(FLOW))),
    (20.0, make_sea(bottom=False, surface=10.0, current=UniformField(FLOW))),
)

TABLE = {
    ("never", "always"): "WW-W-",
    ("never", "best"): "WW-W-",
    ("never", "fallback"): "WW-W-",
    ("always", "never"): "BBB--",
    ("always", "always"): "BBBW-",
    ("always", "best"): "BBBW-",
    ("always", "fallback"): "BBBW-",
    ("best", "never"): "BBB--",
    ("best", "always"): "BWBW-",
    ("best", "best"): "BWBW-",
    ("best", "fallback"): "BBBW-",
}
"""Cases: both with a better bottom track, both with a better water track, bottom only, water only, neither."""


@pytest.mark.requirement("GAP-1", "WTR-1", "WTR-2")
@pytest.mark.parametrize(("modes", "expected"), TABLE.items(), ids=["-".join(modes) for modes in TABLE])
def test_best_track_is_bottom_or_water(modes: tuple[str, str], expected: str) -> None:
    bottom_mode, water_mode = (TrackMode(mode) for mode in modes)
    fine, coarse = TrackErrors(reported_stddev=0.01), TrackErrors(reported_stddev=0.02)
    cases = (
        (fine, coarse, BOTH),
        (coarse, fine, BOTH),
        *((fine, coarse, w) for w in (ONLY_BOTTOM, ONLY_WATER, NEITHER)),
    )
    through, unit = np.array(V) - FLOW, np.diag([2.0, 2.0, 1.0 / 3.0])
    for letter, (bottom, water, (height, environment)) in zip(expected, cases, strict=True):
        spec = make_spec(bottom=bottom, water=water, bottom_mode=bottom_mode, water_mode=water_mode)
        reading = measure_pings(spec, DriftingMotion((0.0, 0.0, height)), environment)
        arrays = {name: values[0] for name, values in reading.arrays.items()}
        assert arrays["velocity_mode"] == {"B": 1.0, "W": 2.0, "-": 0.0}[letter]
        true = {"B": np.array(V), "W": through, "-": np.full(3, math.nan)}[letter]
        assert arrays["velocity"] == pytest.approx(true, rel=1e-12, nan_ok=True, abs=0.0)
        track = water if letter == "W" else bottom
        if letter != "-":
            assert arrays["velocity_covariance"] == pytest.approx(track.reported_stddev**2 * unit, abs=1e-18)
            assert arrays["num_good_beams"] == 4.0
        assert np.isfinite(arrays["course"]) == (letter == "B")
        assert np.isfinite(arrays["speed"]) == (letter == "B")
        has_bottom = environment.scene.bodies and height > 0.0
        assert np.isfinite(arrays["altitude"]) == bool(has_bottom)
        wet = height == 20.0 and environment.water.surface == 100.0 and water_mode is not TrackMode.NEVER
        has_water = letter == "W" or (wet and water_mode is TrackMode.ALWAYS)
        assert arrays["water_velocity"] == pytest.approx(
            through if has_water else np.full(3, math.nan), rel=1e-12, nan_ok=True, abs=0.0
        )
        assert np.isfinite(arrays["water_velocity_covariance"]).all() == has_water
        assert reading.valid is not None
        assert bool(reading.valid[0]) == (letter != "-")


@pytest.mark.requirement("GAP-1", "GAP-4")
def test_beam_values_of_a_water_track_are_those_of_the_layer() -> None:
    """Without a bottom, each beam has an echo of the layer with its deviation. Bottom values are NaN."""
    spec = make_spec(water=TrackErrors(reported_stddev=0.02))
    arrays = measure_pings(
        spec, DriftingMotion((0.0, 0.0, 20.0)), make_sea(bottom=False, current=UniformField(FLOW))
    ).arrays
    own = rotate_axes((1.0, 0.0, 0.0, 0.0)) @ (np.array(V) - FLOW)
    assert arrays["water_beam_velocity"][0] == pytest.approx(own, rel=1e-12, abs=0.0)
    assert arrays["water_beam_deviation"][0] == pytest.approx(np.full(4, 0.02), rel=1e-12, abs=0.0)
    for name in ("beam_velocity", "beam_deviation", "beam_range"):
        assert np.isnan(arrays[name]).all()
    assert np.all(arrays["beam_valid"] == 0.0)


# velocity through the water


@pytest.mark.requirement("WTR-2", "GAP-1")
@pytest.mark.parametrize("rpy", [(0.0, 0.0, 0.0), (0.1, -0.2, 2.0)])
def test_water_track_in_a_uniform_current(rpy: Vector) -> None:
    """The velocity is R^T (v - current) at any attitude. Without a current, the water is at rest."""
    turned = from_rpy(*rpy)
    motion = DriftingMotion((0.0, 0.0, 20.0), rotation=turned)
    arrays = measure_pings(make_spec(), motion, make_sea(current=UniformField(FLOW))).arrays
    assert arrays["water_velocity"][0] == pytest.approx(rotate_inverse(turned, np.array(V) - FLOW), rel=1e-12, abs=0.0)
    assert arrays["velocity"][0] == pytest.approx(rotate_inverse(turned, V), rel=1e-12, abs=0.0)
    still = measure_pings(make_spec(), motion, make_sea()).arrays
    assert still["water_velocity"][0] == pytest.approx(rotate_inverse(turned, V), rel=1e-12, abs=0.0)


@pytest.mark.requirement("WTR-2", "GAP-1")
@pytest.mark.parametrize("rpy", [(0.0, 0.0, 0.0), (0.1, -0.2, 2.0)])
@pytest.mark.parametrize("height", [40.0, 9.0])
def test_water_track_in_a_sheared_current(rpy: Vector, height: float) -> None:
    """The weights are triangular about the middle of the layer: in uniform shear, beams measure the current there.

    Near the bottom the layer ends at 80 % of the distance along the instrument axis, for the shallowest beam.
    """
    shear = np.array([0.03, -0.02, 0.0])  # 1/s
    current = StratifiedCurrent((0.0, 100.0), ((0.0, 0.0, 0.0), (3.0, -2.0, 0.0)), surface=50.0)
    turned = from_rpy(*rpy)
    axes, cosine = rotate_axes(turned), math.cos(math.radians(30.0))
    shallow = float((height / -axes[:, 2]).min() * cosine)
    far = min(10.0, 0.8 * shallow)
    assert (far < 10.0) == (height == 9.0)
    middle = height + 0.5 * (2.0 + far) / cosine * axes[:, 2]
    flow = (50.0 - middle)[:, None] * shear
    beams = (axes * (np.array(V) - flow)).sum(axis=1)
    solved = np.linalg.lstsq(axes, beams, rcond=None)[0]
    arrays = measure_pings(
        make_spec(), DriftingMotion((0.0, 0.0, height), rotation=turned), make_sea(surface=50.0, current=current)
    ).arrays
    assert arrays["water_velocity"][0] == pytest.approx(rotate_inverse(turned, solved), rel=1e-10, abs=0.0)
    if not any(rpy):
        assert solved == pytest.approx(np.array(V) - flow[0], rel=1e-12, abs=0.0)


@pytest.mark.requirement("WTR-2", "WTR-1", "GAP-1")
def test_water_track_has_separate_noise() -> None:
    """Each track has sigma^2 diag(2, 2, 1/3), and both are uncorrelated (false alarms 1e-6)."""
    count, unit = 500 if INTERPRETED else 10_000, np.diag([2.0, 2.0, 1.0 / 3.0])
    spec = make_spec(bottom=TrackErrors(Noise(stddev=0.01)), water=TrackErrors(Noise(stddev=0.03)))
    arrays = measure_pings(spec, DriftingMotion((0.0, 0.0, 20.0)), make_sea(current=UniformField(FLOW)), count).arrays
    assert np.allclose(arrays["water_velocity_covariance"], 9e-4 * unit, rtol=1e-9, atol=1e-16)
    off = np.column_stack([arrays["velocity"] - V, arrays["water_velocity"] - (np.array(V) - FLOW)])
    white = off / np.sqrt(np.concatenate([1e-4 * np.diag(unit), 9e-4 * np.diag(unit)]))
    rows = [
        *white.T,
        *((white[:, i] + s * white[:, j]) / math.sqrt(2.0) for i in range(6) for j in range(i) for s in (1, -1)),
    ]
    for row in rows:
        alarm = 0.5 * FALSE_ALARM / len(rows)
        assert chi2.ppf(alarm, count) < row @ row < chi2.isf(alarm, count)


@pytest.mark.requirement("WTR-2", "GAP-2")
def test_drifting_vehicle_has_no_water_velocity() -> None:
    """Proportional errors act on the velocity through water: misalignment, scale, speed, speed of sound."""
    environment, motion = (
        make_sea(current=UniformField(FLOW), sound=1450.0),
        DriftingMotion((0.0, 0.0, 20.0), FLOW, from_rpy(0.1, 0.2, 0.3)),
    )
    spec = make_spec(
        misalignment=(0.02, -0.05, 0.03),
        sound=Sound(1500.0),
        transducer=Transducer.PHASED_ARRAY,
        water=TrackErrors(Noise(stddev=0.002), per_speed=0.5, long_term_scale=0.1),
    )
    reading = measure_pings(spec, motion, environment, 200).arrays
    quiet = reading["water_velocity"] / (0.002 * np.sqrt([2.0, 2.0, 1.0 / 3.0]))
    assert np.allclose(
        reading["water_velocity_covariance"], 4e-6 * np.diag([2.0, 2.0, 1.0 / 3.0]), rtol=1e-6, atol=1e-12
    )
    assert float((quiet**2).sum()) < chi2.isf(FALSE_ALARM, 600)


@pytest.mark.requirement("WTR-2", "GAP-9")
def test_misalignment_rotates_the_water_velocity() -> None:
    yaw, through = 0.02, np.array(V) - FLOW
    arrays = measure_pings(
        make_spec(misalignment=(0.0, 0.0, yaw)), DriftingMotion((0.0, 0.0, 20.0)), make_sea(current=UniformField(FLOW))
    ).arrays
    x, y, z = through.tolist()
    turned = [math.cos(yaw) * x - math.sin(yaw) * y, math.sin(yaw) * x + math.cos(yaw) * y, z]
    assert arrays["water_velocity"][0] == pytest.approx(turned, rel=1e-12, abs=0.0)


# runs


def make_dive() -> World:
    chance = GaussMarkovCurrent(
        GaussMarkovProcess.from_stddev(0.3, 0.1, 60.0, 0.0, 1.0),
        GaussMarkovProcess.from_stddev(0.5, 0.2, 30.0),
        name="wander",
    )
    spec = make_spec(bottom=TrackErrors(Noise(stddev=0.01)), water=TrackErrors(Noise(stddev=0.02)), propagation=True)
    model = Model("auv", (Link("auv::hull"),), "auv::hull", Pose((0.0, 0.0, 20.0)))
    return World(
        "w",
        (model,),
        (MountedSensor("dvl", spec, "auv", "auv::hull", 8.0, topic="/dvl"),),
        environment=make_sea(current=chance),
    )


@pytest.mark.requirement("WTR-2", "GAP-1", "CUR-1")
def test_random_current_differs_between_runs(tmp_path: Path) -> None:
    """Truth has an axis of runs. Row i equals the single run i bitwise, in memory and from files."""
    world = make_dive()
    many = ns.simulate(world, 3.0, seed=7, runs=3)
    reading = many["dvl"]
    assert reading.ideal_in_runs
    truth = reading.ideal["water_velocity"]
    assert truth.shape == (3, 24, 3)
    emitted = reading.emitted
    assert np.isfinite(truth[emitted]).all()
    assert not np.any(truth[0][emitted[0]] == truth[1][emitted[1]], axis=0)[:2].any()
    for i in range(3):
        alone = ns.simulate(world, 3.0, seed=7, runs=[i])["dvl"]
        for name, values in reading.items():
            assert values[i].tobytes() == alone[name][0].tobytes()
        for name, values in reading.ideal.items():
            assert values[i].tobytes() == alone.ideal[name][0].tobytes()
    single = ns.simulate(world, 3.0, seed=7)["dvl"]
    assert single["water_velocity"].tobytes() == reading["water_velocity"][0].tobytes()
    off = (reading["water_velocity"] - truth)[emitted] / (0.02 * np.sqrt([2.0, 2.0, 1.0 / 3.0]))
    assert chi2.ppf(FALSE_ALARM, off.size) < (off**2).sum() < chi2.isf(FALSE_ALARM, off.size)
    for suffix in (".npz", ".parquet"):
        many.save(tmp_path / f"dive{suffix}")
        loaded = ns.open(tmp_path / f"dive{suffix}").readings["dvl"]
        assert loaded.ideal_in_runs
        for name, values in reading.items():
            assert np.array_equal(loaded[name], values, equal_nan=True)
        for name, values in reading.ideal.items():
            assert np.array_equal(loaded.ideal[name], values, equal_nan=True)
        assert np.array_equal(loaded.emitted, reading.emitted)


@pytest.mark.requirement("GAP-1")
def test_random_current_has_no_effect_without_water_track() -> None:
    world = make_dive()
    dry = replace(world, sensors=(replace(world.sensors[0], spec=Dvl()),))
    assert not ns.simulate(dry, 1.0, runs=2)["dvl"].ideal_in_runs

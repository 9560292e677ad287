"""Current profiles equal closed forms: shear, side lobes, tilt, frames, motion, noise, sound, and OOI's test vectors.

Sources of the vectors and first cells: tests/oracles/ooi/README.md, tests/oracles/rdi/README.md.
"""

from __future__ import annotations

import csv
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import binom, chi2, norm

import navsense as ns
from navsense.core.errors import SensorError
from navsense.core.geodesy import Origin
from navsense.core.kernels import INTERPRETED
from navsense.core.pose import Pose, from_rpy
from navsense.core.random_streams import Draws
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, Quaternion, Vector
from navsense.environment.base import Environment, UniformField, VectorField
from navsense.environment.terrain.primitives import Plane, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.messages.world_messages import pack_fault_bits
from navsense.motion.base import MotionBlock
from navsense.motion.trajectory import waypoints
from navsense.sensors import (
    Adcp,
    BeamVelocityErrors,
    BinMapping,
    CoordinateSystem,
    DepthCells,
    EchoStrength,
    Sound,
    Transducer,
    make_janus_beams,
)
from navsense.sensors.base import Measurement
from navsense.sensors.doppler import Beams, ensemble
from navsense.sensors.doppler.ensemble import schedule_pings
from navsense.world import Link, Model, MountedSensor, World

ORACLES = Path(__file__).resolve().parents[1] / "oracles"
FALSE_ALARM = 1e-6
ULP = 2.0**-53
ROUNDING = 64 * ULP * 4.0 * 2.0 / math.tan(math.radians(20.0)) ** 2
"""Rounding in m/s: 64 operations on numbers up to 4 m/s, amplified by the normal equations of beams at 20 degrees."""
LENGTH, MOMENT = 16 * ULP * 100.0, 16 * ULP
"""Rounding in m of 16 operations on lengths up to 100 m, and in s of as many on times up to 1 s."""
V, SHEAR, DRIFT = (1.2, -0.3, 0.1), (0.02, -0.01, 0.0), (0.3, 0.2, 0.0)
CELLS = DepthCells(8, 2.0, 1.0)
LEVEL = (1.0, 0.0, 0.0, 0.0)


class ShearedCurrent:
    """A current (m/s) that varies with height: `DRIFT` at 0, a gradient `SHEAR`, and a quadratic term."""

    def __init__(self, square: float = 0.0) -> None:
        self.square = square

    def at(self, position_w: AnyArray, time: AnyArray) -> AnyArray:
        z = position_w[:, 2:]
        return np.array(DRIFT) + z * np.array(SHEAR) + self.square * z**2

    def rotate(self, rotation: Quaternion) -> VectorField:
        raise NotImplementedError


CONSTANTS = ("cell_distance", "beam_direction")


class PassingMotion:
    """A frame at a fixed position with a velocity (m/s, world). It records the requested times."""

    end = math.inf

    def __init__(self, height: float, rotation: Quaternion = LEVEL, velocity: Vector = V) -> None:
        self.place, self.velocity, self.rotation = (0.0, 0.0, height), velocity, rotation
        self.asked: list[AnyArray] = []

    def at(self, time: AnyArray) -> MotionBlock:
        self.asked.append(time)
        rows = np.ones((time.shape[0], 1))
        zero = rows * np.zeros(3)
        return MotionBlock(rows * self.place, rows * self.rotation, rows * self.velocity, zero, zero, zero)


def make_sea(current: Any = None, *, surface: float = 100.0, sound: float = 1500.0, bodies: Any = None) -> Environment:
    """Return water up to a height above a bed at 0."""
    bed = Body("bed", Plane())
    water = Water(surface=surface, sound_speed=sound)
    return Environment(
        scene=Scene((bed,) if bodies is None else bodies), water=water, current=current or ShearedCurrent()
    )


def make_spec(**more: Any) -> Adcp:
    return Adcp(**{"cells": CELLS, "propagation": False, "bottom_pings": 1, **more})


def measure(
    spec: Adcp, motion: Any, environment: Environment, count: int = 1, rate: float = 1.0, seed: int = 5
) -> Measurement:
    ticks = Ticks(np.arange(count, dtype=np.int64), rate)
    source = Draws(spec.processes(), seed, (0, "adcp"))
    ideal = spec.ideal(motion, environment, ticks)
    return spec.measure(spec.init(source.initial), ticks, ideal, source.take(count))[1]


def make_rotation(angle: float = 20.0, down: Vector = (0.0, 0.0, -1.0)) -> Beams:
    return make_janus_beams(math.radians(angle), [math.radians(a) for a in (-135.0, 135.0, 45.0, -45.0)], down=down)


def compute_current(height: AnyArray) -> AnyArray:
    return np.array(DRIFT) + height[:, None] * np.array(SHEAR)


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize("angle", [20.0, 25.0, 30.0])
@pytest.mark.parametrize("removes", [False, True])
def test_linear_shear_is_measured_down_to_the_side_lobes(angle: float, removes: bool) -> None:
    """Overlapping weighted cells do not change a linear shear. Side lobes contaminate the last D (1 - cos angle)."""
    height, spec = 14.9, make_spec(beams=make_rotation(angle), motion_compensated=removes)
    one = measure(spec, PassingMotion(height), make_sea())
    distance = np.array([3.0 + 2.0 * m for m in range(8)])
    clear = distance + 2.0 <= height * math.cos(math.radians(angle))
    assert clear.sum() == {20.0: 5, 25.0: 5, 30.0: 4}[angle]
    expected = compute_current(height - distance) - (0.0 if removes else np.array(V))
    assert np.isfinite(one.arrays["velocity"][0, :, 0]).tolist() == clear.tolist()
    assert one.arrays["velocity"][0, clear] == pytest.approx(expected[clear], rel=0.0, abs=ROUNDING)
    assert one.arrays["percent_good"][0].tolist() == clear.astype(float).tolist()
    assert one.arrays["error_velocity"][0, clear] == pytest.approx(0.0, abs=ROUNDING)
    assert one.arrays["bottom_velocity"][0] == pytest.approx(V, rel=0.0, abs=ROUNDING)
    assert one.arrays["bottom_range"][0] == pytest.approx(height / math.cos(math.radians(angle)), rel=0.0, abs=LENGTH)
    relative = one.arrays["relative_velocity" if removes else "velocity"]
    assert relative[0, clear] == pytest.approx((compute_current(height - distance) - V)[clear], rel=0.0, abs=ROUNDING)
    assert ("relative_velocity" in one.arrays) == removes
    complete = measure(replace(spec, side_lobes=False), PassingMotion(height), make_sea()).arrays["velocity"]
    assert np.isfinite(complete[0, :, 0]).tolist() == (distance + 2.0 <= height).tolist()


@pytest.mark.requirement("GAP-8")
def test_ensembles_do_not_depend_on_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    path = [Pose((0.0, 0.0, 30.0)), Pose((3.0, 1.0, 22.0), from_rpy(0.1, 0.2, 0.5)), Pose((9.0, 0.0, 25.0))]
    motion, spec = waypoints((0.0, 4.0, 8.0), path), make_spec(pings=3, bottom_pings=2, motion_compensated=True)
    complete = measure(spec, motion, make_sea(), 8).arrays
    monkeypatch.setattr("navsense.sensors.doppler.water._BATCH_SIZE", 2 * 8 * 4 * 5)  # positions of two pings
    parts = measure(spec, motion, make_sea(), 8).arrays
    assert np.isnan(complete["velocity"]).any()
    assert np.isfinite(complete["velocity"]).any()
    for name, array in complete.items():
        assert np.array_equal(parts[name], array, equal_nan=True)


@pytest.mark.requirement("GAP-8")
def test_surface_side_lobes_contaminate_cells() -> None:
    spec = make_spec(beams=make_rotation(30.0, (0.0, 0.0, 1.0)), bottom_pings=0)
    one = measure(spec, PassingMotion(50.0), make_sea(surface=64.0)).arrays
    clear = CELLS.distances + 2.0 <= 14.0 * math.cos(math.radians(30.0))
    assert np.isfinite(one["velocity"][0, :, 0]).tolist() == clear.tolist()
    expected = compute_current(50.0 + CELLS.distances[clear]) - np.array(V)
    assert one["velocity"][0, clear] == pytest.approx(expected, rel=0.0, abs=ROUNDING)
    ends = measure(replace(spec, side_lobes=False), PassingMotion(50.0), make_sea(surface=64.0)).arrays["velocity"]
    assert np.isfinite(ends[0, :, 0]).tolist() == (CELLS.distances + 2.0 <= 14.0).tolist()


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(
    ("pulse", "variance", "side"),
    [(None, 2.0**2 / 6.0, 1.0), (0.0, 2.0**2 / 12.0, -1.0), (1.0, (2.0**2 + 1.0) / 12.0, 1.0)],
)
def test_cell_weights_are_the_pulse_convolved_with_the_cell(pulse: float | None, variance: float, side: float) -> None:
    """A curved profile has an error of its curvature times the variance of the weights: triangle, box, or both.

    Samples are d apart, and the corners of the weights are between them. The sum adds d^2 / 24 times the jumps of the
    slope of w x^2 at the corners. This is +d^2 / 12 in the variance of a triangle and -d^2 / 12 in that of a box.
    """
    square, cells = 1e-3, DepthCells(1, 2.0, 5.0, pulse, 0.0, 402)
    variance += side * (2.0 * cells.half_extent / 402) ** 2 / 12.0
    one = measure(
        make_spec(cells=cells), PassingMotion(40.0, velocity=(0.0, 0.0, 0.0)), make_sea(ShearedCurrent(square))
    ).arrays["velocity"]
    middle = 40.0 - cells.first_distance
    expected = DRIFT[0] + SHEAR[0] * middle + square * (middle**2 + variance)
    assert one[0, 0, 0] == pytest.approx(expected, rel=0.0, abs=402 / 64 * ROUNDING)  # one operation per sample


@pytest.mark.requirement("GAP-8")
def test_first_cell_distance_equals_real_instruments() -> None:
    with (ORACLES / "rdi" / "first_cell.csv").open(encoding="utf-8", newline="") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 6
    for row in rows:
        cells = DepthCells(1, row["cell_cm"], row["blank_cm"], row["transmit_cm"], row["lag_cm"])
        assert cells.first_distance == pytest.approx(
            row["first_cm"], rel=0.0, abs=0.5
        )  # the sources round to whole centimetres
    assert DepthCells(3, 2.0, 0.88).distances.tolist() == [2.88, 4.88, 6.88]


TILTS = [(0.0, 12.0), (8.0, 0.0), (-5.0, 10.0)]


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(("roll", "pitch"), TILTS)
def test_bin_mapping_corrects_the_tilt_in_a_shear(roll: float, pitch: float) -> None:
    """Without bin mapping, or with the nearest cell, NumPy gives the error of beams at different heights."""
    turn = from_rpy(math.radians(roll), math.radians(pitch), 0.4)
    base = make_spec(side_lobes=False, coordinates=CoordinateSystem.EARTH, beams=make_rotation(25.0))
    axes = Rotation.from_quat(turn, scalar_first=True).apply(base.beams.axes)
    nominal = CELLS.distances
    along = nominal / math.cos(math.radians(25.0))
    for mapping in BinMapping:
        one = measure(replace(base, bin_mapping=mapping), PassingMotion(80.0, turn), make_sea()).arrays["velocity"][0]
        at = np.array([np.arange(8)] * 4)
        if mapping is not BinMapping.NONE:
            at = (nominal[None, :] * math.cos(math.radians(25.0)) / -axes[:, 2:] - nominal[0]) / CELLS.size
        if mapping is BinMapping.NEAREST:
            at = np.floor(at + 0.5).astype(int)
        inside = ((at >= -1e-9) & (at <= 7.0 + 1e-9)).sum(axis=0) >= 3
        assert np.isfinite(one[:, 0]).tolist() == inside.tolist()
        if mapping is BinMapping.LINEAR:
            expected = compute_current(80.0 - nominal) - np.array(V)
            assert one[inside] == pytest.approx(expected[inside], rel=0.0, abs=ROUNDING)
            continue
        for m in np.nonzero(((at >= 0) & (at <= 7)).all(axis=0))[0]:
            slant = along[at[:, m]]
            beam_velocity = (axes * (np.array(V) - compute_current(80.0 + slant * axes[:, 2]))).sum(axis=1)
            assert one[m] == pytest.approx(-np.linalg.lstsq(axes, beam_velocity, rcond=None)[0], rel=0.0, abs=ROUNDING)
        worst = np.abs(one[inside] - (compute_current(80.0 - nominal) - np.array(V))[inside]).max()
        assert worst > 1e9 * ROUNDING, "there is something to be taken out"


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize("coordinates", list(CoordinateSystem))
def test_output_axes(coordinates: CoordinateSystem) -> None:
    turn, reference = from_rpy(0.1, -0.2, 0.7), from_rpy(math.pi, 0.1, 0.2)
    spec = make_spec(coordinates=coordinates, reference=reference)
    environment = replace(make_sea(UniformField(DRIFT)), origin=Origin(0.5, 0.1, 0.0, 0.3))
    one = measure(spec, PassingMotion(40.0, turn), environment).arrays
    flow = np.array(DRIFT) - np.array(V)
    sensor, body = (Rotation.from_quat(q, scalar_first=True) for q in (turn, reference))
    north = Rotation.from_euler("z", 0.3)
    vehicle = north * sensor * body.inv()
    yaw = Rotation.from_euler("z", vehicle.as_euler("ZYX")[0])
    frames = {
        CoordinateSystem.EARTH: north.apply(flow),
        CoordinateSystem.INSTRUMENT: body.apply(sensor.inv().apply(flow)),
        CoordinateSystem.SHIP: yaw.inv().apply(north.apply(flow)),
        CoordinateSystem.BEAM: np.full(3, math.nan),
    }
    assert one["velocity"][0, 2] == pytest.approx(frames[coordinates], rel=0.0, abs=ROUNDING, nan_ok=True)
    beam_velocity = Rotation.from_quat(turn, scalar_first=True).apply(spec.beams.axes) @ -flow
    assert one["beam_velocity"][0, 2] == pytest.approx(beam_velocity, rel=0.0, abs=ROUNDING)
    told_by = Rotation.from_quat(one["orientation"][0], scalar_first=True)
    assert (told_by.inv() * vehicle).magnitude() == pytest.approx(0.0, abs=64 * ULP)
    assert one["beam_direction"][0] == pytest.approx(body.apply(spec.beams.axes), rel=0.0, abs=16 * ULP)
    assert one["cell_distance"][0].tolist() == CELLS.distances.tolist()


@pytest.mark.requirement("GAP-8")
def test_constant_arrays_are_in_every_row() -> None:
    """This includes the first row, which has no ensemble."""
    spec = make_spec(propagation=True)
    one = measure(spec, PassingMotion(40.0), make_sea(), 3)
    assert one.emitted is not None
    assert one.emitted.tolist() == [False, True, True]
    assert one.arrays["cell_distance"].tolist() == [spec.cell_distance.tolist()] * 3
    assert one.arrays["beam_direction"].tolist() == [spec.beam_direction.tolist()] * 3
    assert all(np.isnan(array[0]).all() for name, array in one.arrays.items() if name not in CONSTANTS)


@pytest.mark.requirement("GAP-8", "GAP-9")
def test_profile_equals_ooi_test_vectors() -> None:
    """Ten cells of a real ensemble are transformed from beams to earth axes by the averaging of the profile.

    Four decimals are printed, and six of the error velocity, truncated.
    """
    with (ORACLES / "ooi" / "velocities.csv").open(encoding="utf-8", newline="") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    heading, first, second = (math.radians(a) for a in (98.41, 0.69, -2.54))
    pitch, roll = math.atan(math.tan(first) * math.cos(second)), second + math.pi
    turned = Rotation.from_euler("ZXY", [-heading, pitch, roll])
    s, c = math.sin(math.radians(20.0)), math.cos(math.radians(20.0))
    axes = -np.array([(s, 0.0, c), (-s, 0.0, c), (0.0, -s, c), (0.0, s, c)])
    beam_velocity = np.array([[row[f"b{i}_mm_s"] / 1000.0 for i in (1, 2, 3, 4)] for row in rows])[None, None]
    frame = turned.as_quat(scalar_first=True)[None, None]
    rules = ensemble.EnsembleRules(ensemble.EARTH, ensemble.UNMAPPED, 4.0, math.inf, 0.0, 0.0, 1.0)
    axis, cosines = np.array((0.0, 0.0, -1.0)), np.full(4, c)
    geometry = ensemble.ProfilerGeometry(axes, axis, cosines, np.arange(1.0, 11.0), 1.0)
    nothing = np.empty((1, 0, 4))
    inputs = ensemble.EnsembleInputs(
        beam_velocity, beam_velocity, frame, frame, nothing, nothing, np.empty((1, 0, 3)), nothing
    )
    found = ensemble.average_profile(rules, geometry, inputs, beam_velocity)
    velocity, error, ways = found["velocity"], found["error_velocity"], found["solutions"]
    expected = [[row["east_m_s"], row["north_m_s"], row["up_m_s"]] for row in rows]
    assert velocity[0] == pytest.approx(np.array(expected), rel=0.0, abs=5e-5 + ROUNDING)
    assert error[0] == pytest.approx(np.array([row["error_m_s"] for row in rows]), rel=0.0, abs=1e-6 + ROUNDING)
    assert ways[0].tolist() == [[0.0, 0.0, 0.0, 1.0]] * 10


def compute_ping_times(order: str, far: float) -> tuple[list[float], list[float], float]:
    """Return the mean times (s) of water and bottom pings, and the duration of all (s).

    The last of `CELLS` ends at 1 + 8 x 2 + 2 = 19 m. The middle is at (3 + 17) / 2 m along an axis at 20 degrees.
    Bottom echoes are awaited up to `far` (m). The speed of sound is 1500 m/s.
    """
    found: dict[str, list[float]] = {"P": [], "B": []}
    slant = 1.0 / math.cos(math.radians(20.0))
    lasts, about = {"P": 38.0 * slant, "B": 2.0 * far}, {"P": 10.0 * slant, "B": 0.5 * far}
    gone = 0.0
    for kind in order:
        found[kind].append((gone + about[kind]) / 1500.0)
        gone += lasts[kind]
    return found["P"], found["B"], gone / 1500.0


@pytest.mark.requirement("GAP-8")
def test_pings_have_separate_times() -> None:
    """Three water pings and two bottom pings each wait for their echoes, and the ensemble waits for all."""
    found = schedule_pings(3, 2, (0.02, 0.1), (0.005, 0.05))
    assert found.bottom_times.tolist() == pytest.approx([0.05, 0.19], rel=0.0, abs=MOMENT)
    assert found.profile_times.tolist() == pytest.approx([0.105, 0.125, 0.245], rel=0.0, abs=MOMENT)
    assert (found.duration, found.mean_profile_time) == pytest.approx((0.26, 0.475 / 3.0), rel=0.0, abs=MOMENT)
    spec = Adcp(cells=CELLS, pings=3, bottom_pings=2, maximum_range=75.0, processing_time=0.01)
    profile, bottom, lasts = compute_ping_times("BPPBP", 75.0)
    assert spec.duration == pytest.approx(lasts + 0.01, rel=0.0, abs=MOMENT)
    motion = PassingMotion(15.0)
    one = measure(spec, motion, make_sea(), count=20, rate=10.0)
    assert spec.count_ticks_per_ensemble(10.0) == 3
    assert np.nonzero(one.emitted)[0].tolist() == [3, 6, 9, 12, 15, 18]  # type: ignore[arg-type]
    asked, mean = np.unique(np.concatenate(motion.asked)), sum(profile) / 3.0
    begins = 0.3 - 0.01 - lasts
    expected = sorted(begins + after for after in (*profile, *bottom, mean))
    first = asked[asked < 0.3]
    assert sorted({round(t, 12) for t in first.tolist()}) == pytest.approx(expected, rel=0.0, abs=0.5e-12 + MOMENT)
    assert one.arrays["time_of_validity"][3] == pytest.approx(begins + mean, rel=0.0, abs=MOMENT)
    slower = replace(spec, ping_interval=0.2)
    assert slower.duration == pytest.approx(5 * 0.2 + 0.01, rel=0.0, abs=MOMENT)


@pytest.mark.requirement("GAP-8")
def test_moving_vehicle_in_still_water() -> None:
    """The motion cancels, except for its change between bottom pings and water pings.

    The remainder is the difference of two means of the velocity at manually computed times.
    """
    path = [
        Pose((0.0, 0.0, 30.0)),
        Pose((4.0, 1.0, 30.5), from_rpy(0.1, 0.05, 0.3)),
        Pose((9.0, 0.0, 30.0), from_rpy(0.0, 0.1, 0.9)),
    ]
    motion = waypoints((0.0, 4.0, 8.0), path)
    spec = Adcp(cells=CELLS, pings=4, bottom_pings=4, maximum_range=60.0, motion_compensated=True)
    one = measure(spec, motion, make_sea(UniformField((0.0, 0.0, 0.0))), count=8).arrays
    still, complete = one["velocity"], one["percent_good"] == 1.0
    kept = measure(
        replace(spec, motion_compensated=False), motion, make_sea(UniformField((0.0, 0.0, 0.0))), count=8
    ).arrays["velocity"]
    profile, bottom, lasts = compute_ping_times("BPBPBPBP", 60.0)
    for tick in range(1, 8):
        past, over = (motion.at(tick - lasts + np.array(after)).velocity_w.mean(axis=0) for after in (profile, bottom))
        known = complete[tick]
        assert known.sum() >= 6, "of 8 cells: a tilt leaves the first and the last less than three beams"
        assert kept[tick, known] == pytest.approx(np.tile(-past, (known.sum(), 1)), rel=0.0, abs=ROUNDING)
        assert still[tick, known] == pytest.approx(np.tile(over - past, (known.sum(), 1)), rel=0.0, abs=ROUNDING)
        assert np.abs(over - past).max() > 1e6 * ROUNDING


SIGMA, RUNS = 0.05, 2000 if not INTERPRETED else 150


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(("pings", "reference"), [(1, 0.0), (16, 0.0), (4, 1.0)])
def test_ensemble_noise_equals_the_declaration(pings: int, reference: float) -> None:
    """The noise is 1 / sqrt(pings) of one ping by RDI's transformation, and half of it in cells of twice the size."""
    count = RUNS if pings == 1 else RUNS // 4
    spec = make_spec(
        cells=DepthCells(2, 2.0, 1.0), pings=pings, profile=BeamVelocityErrors(SIGMA), reference_cell_size=reference,
        bin_mapping=BinMapping.NONE, coordinates=CoordinateSystem.INSTRUMENT,
    )  # fmt: skip
    one = measure(spec, PassingMotion(40.0), make_sea(), count).arrays
    errors = one["velocity"] - (compute_current(40.0 - spec.cell_distance) - np.array(V))
    single = SIGMA / math.sqrt(pings) * (reference / 2.0 if reference else 1.0)
    s, c = math.sin(math.radians(20.0)), math.cos(math.radians(20.0))
    deviations = np.array([1.0 / (math.sqrt(2.0) * s), 1.0 / (math.sqrt(2.0) * s), 1.0 / (2.0 * c)]) * single
    low, high = chi2.ppf([FALSE_ALARM / 16.0, 1.0 - FALSE_ALARM / 16.0], 2 * count) / (2 * count)
    ratio = (errors**2).mean(axis=(0, 1)) / deviations**2
    assert ((low < ratio) & (ratio < high)).all()
    off = (one["error_velocity"] ** 2).mean() / deviations[0] ** 2
    assert low < off < high


@pytest.mark.requirement("GAP-8")
def test_echo_and_percent_good_fall_with_range() -> None:
    """The share of each beam follows the logistic law with S = level - 20 log r - 2 absorption r."""
    cells = DepthCells(10, 4.0, 2.0)
    echo = EchoStrength(60.0, 0.35, 0.8, 6.0, 2.0)
    spec = make_spec(cells=cells, backscatter=echo, pings=10, profile=BeamVelocityErrors(0.01), min_good_share=0.3)
    count = 40 if not INTERPRETED else 10
    one = measure(spec, PassingMotion(80.0), make_sea(), count).arrays
    slant = cells.distances / math.cos(math.radians(20.0))
    strength = 60.0 - 20.0 * np.log10(slant) - 0.7 * slant
    chance = 1.0 / (1.0 + np.exp(-(strength - 6.0) / 2.0))
    trials = count * 10 * 4
    good = np.rint(one["beam_percent_good"].sum(axis=(0, 2)) * 10.0)
    least, most = (binom.ppf(q, trials, chance) for q in (FALSE_ALARM / 20.0, 1.0 - FALSE_ALARM / 20.0))
    assert ((least <= good) & (good <= most)).all()
    assert chance[0] > 0.99
    assert chance[-1] < 0.01
    power = 10.0 ** (strength / 10.0)
    assert one["echo"][0, :, 1] == pytest.approx(10.0 * np.log10(1.0 + power), rel=0.0, abs=64 * ULP * 64.0)
    assert one["correlation"][0, :, 2] == pytest.approx(0.8 * power / (1.0 + power), rel=64 * ULP * 16.0, abs=0.0)
    few = one["percent_good"] < 0.3
    assert few.any()
    assert np.isnan(one["velocity"][few]).all()
    assert np.isfinite(one["velocity"][~few]).all()
    rho = 0.8 * power / (1.0 + power)
    deviation = 0.01 * np.sqrt((rho**-2 - 1.0) / (0.8**-2 - 1.0))
    beam_velocity = -(spec.beams.axes @ (compute_current(80.0 - cells.distances) - np.array(V)).T).T
    many = np.rint(one["beam_percent_good"] * 10.0)
    scaled = (one["beam_velocity"] - beam_velocity) * np.sqrt(many) / deviation[:, None]
    known = np.isfinite(scaled)
    low, high = chi2.ppf([FALSE_ALARM / 2.0, 1.0 - FALSE_ALARM / 2.0], known.sum()) / known.sum()
    assert low < (scaled[known] ** 2).mean() < high
    assert deviation[7] > 1.5 * deviation[0]


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize("transducer", list(Transducer))
def test_wrong_speed_of_sound_scales_ranges_and_velocities(transducer: Transducer) -> None:
    """Cell distances scale by c / c0, velocities by c0 / c. A phased array scales the axial velocity only."""
    spec = make_spec(sound=Sound(1470.0), transducer=transducer)
    one = measure(spec, PassingMotion(60.0), make_sea())
    true = measure(replace(spec, sound=Sound()), PassingMotion(60.0), make_sea()).arrays
    ratio = 1470.0 / 1500.0
    expected = compute_current(60.0 - CELLS.distances / ratio) - np.array(V)
    expected *= np.array([ratio] * 3 if transducer is Transducer.PISTON else [1.0, 1.0, ratio])
    assert one.arrays["velocity"][0] == pytest.approx(expected, rel=0.0, abs=ROUNDING)
    scaled = np.array(V) * (np.array([ratio] * 3) if transducer is Transducer.PISTON else (1.0, 1.0, ratio))
    assert one.arrays["bottom_velocity"][0] == pytest.approx(scaled, rel=0.0, abs=ROUNDING)
    assert one.arrays["bottom_range"][0] == pytest.approx(ratio * true["bottom_range"][0], rel=0.0, abs=LENGTH)
    assert one.arrays["sound_speed"][0] == 1470.0


@pytest.mark.requirement("GAP-8", "GAP-9")
def test_three_beam_solutions_and_screening() -> None:
    """A buoy hides one beam from its fourth cell on. Three beams solve there, without screening.

    The error velocity of a ping has the deviation 0.1 / (sqrt 2 sin 20 degrees): 20 pings stay below 0.05 once in
    1e14 times.
    """
    spec = make_spec(side_lobes=False, bin_mapping=BinMapping.NONE)
    axis = spec.beams.axes[2]
    buoy = Body("buoy", Sphere(0.5), Pose(tuple((11.0 * axis + (0.0, 0.0, 40.0)).tolist())))
    environment = make_sea(bodies=(Body("bed", Plane()), buoy))
    one = measure(spec, PassingMotion(40.0), environment).arrays
    behind = np.arange(8) >= 3
    assert np.isnan(one["beam_velocity"][0, :, 2]).tolist() == behind.tolist()
    assert one["percent_good"][0].tolist() == [1.0] * 8
    assert np.isnan(one["error_velocity"][0]).tolist() == behind.tolist()
    assert one["solutions"][0].tolist() == [[float(b), 0.0, 0.0, float(not b)] for b in behind]
    expected = compute_current(40.0 - CELLS.distances) - np.array(V)
    assert one["velocity"][0] == pytest.approx(expected, rel=0.0, abs=ROUNDING)
    four = measure(replace(spec, min_beams=4), PassingMotion(40.0), environment).arrays
    assert (four["percent_good"][0] == 0.0).tolist() == behind.tolist()
    assert four["solutions"][0].tolist() == [[0.0, 0.0, float(b), float(not b)] for b in behind]
    noisy = replace(spec, profile=BeamVelocityErrors(0.1), error_velocity_limit=0.05, pings=20)
    found = measure(noisy, PassingMotion(40.0), environment).arrays
    good, ways = found["percent_good"][0], found["solutions"][0]
    assert (good[:3] < 1.0).all()
    assert (good[3:] == 1.0).all()
    assert ways[:3].tolist() == [[0.0, pytest.approx(1.0 - share, abs=ULP), 0.0, share] for share in good[:3]]
    assert ways[3:].tolist() == [[1.0, 0.0, 0.0, 0.0]] * 5


@pytest.mark.requirement("GAP-8")
def test_percent_good_is_a_count_of_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy counts the valid echoes of each ping: cells by weak echoes, bottom by ranges beyond the limits.

    Four beams are screened by Teledyne's error velocity, d (v1 + v3 - v2 - v4), d = 1 / (2 sqrt 2 sin a).
    """
    heard: dict[str, AnyArray] = {}

    def spy(name: str) -> Any:
        real, key = getattr(ensemble, name), name.removeprefix("average_")

        def record_call(rules: AnyArray, laid: Any, inside: Any, *found: AnyArray) -> Any:
            heard[key], heard[f"{key} shown"], heard["echo"] = found[-1], found[0], inside.true_bottom_range
            return real(rules, laid, inside, *found)

        return record_call

    for name in ("average_profile", "average_bottom"):
        monkeypatch.setattr(ensemble, name, spy(name))
    pings, limit, spread = (7, 5), 0.12, 0.05
    weak = EchoStrength(60.0, 0.35, 0.8, 6.0, 2.0)
    spec = make_spec(
        beams=make_rotation(), cells=DepthCells(10, 4.0, 2.0), backscatter=weak, pings=pings[0], bottom_pings=pings[1]
    )
    spec = replace(
        spec, profile=BeamVelocityErrors(spread), bottom=BeamVelocityErrors(spread), error_velocity_limit=limit
    )
    spec = replace(spec, bin_mapping=BinMapping.NONE, range_stddev=1.0, maximum_range=80.5 / math.cos(math.radians(20)))
    one = measure(spec, PassingMotion(80.0), make_sea(), 12).arrays
    factor = 1.0 / (2.0 * math.sqrt(2.0) * math.sin(math.radians(20.0)))

    def good(beam_velocity: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return how many pings (n, ..., 4) have each result, and how many echoes each beam has (n, ..., k)."""
        known = np.isfinite(beam_velocity).sum(axis=-1)
        error = factor * (beam_velocity[..., 0] + beam_velocity[..., 2] - beam_velocity[..., 1] - beam_velocity[..., 3])
        wild = (known == 4) & (np.abs(error) > limit)
        ways = (known == 3, wild, known < 3, (known == 4) & ~wild)
        return np.stack([way.sum(axis=1) for way in ways], axis=-1), np.isfinite(beam_velocity).sum(axis=1)

    in_limits = (heard["echo"] <= spec.maximum_range) & (heard["bottom shown"] <= spec.maximum_range)
    bottom = np.where(in_limits, heard["bottom"], math.nan)
    for prefix, beam_velocity, count in (("", heard["profile"], pings[0]), ("bottom_", bottom, pings[1])):
        ways, beams = good(beam_velocity)
        assert np.array_equal(one[f"{prefix}solutions"], ways / count)
        assert (ways.sum(axis=-1) == count).all()
        assert (ways.reshape(-1, 4).max(axis=0) > 0).all(), "each way comes out somewhere"
        share = "bottom_percent_good" if prefix else "beam_percent_good"
        assert np.array_equal(one[share], beams / count)
        if not prefix:
            assert np.array_equal(one["percent_good"], (ways[..., 0] + ways[..., 3]) / count)
    for name in ("percent_good", "beam_percent_good", "bottom_percent_good", "solutions", "bottom_solutions"):
        assert ((one[name] >= 0.0) & (one[name] <= 1.0)).all()
        assert np.unique(one[name]).size > 2


@pytest.mark.requirement("GAP-8", "GAP-9")
def test_bottom_pings_have_one_of_four_results() -> None:
    """A roll gives the beams different ranges: four, three or two beams have an echo."""
    turn = from_rpy(math.radians(3.0), math.radians(4.0), 0.0)
    spec = make_spec(bottom_pings=2)
    slants = np.sort(-39.0 / Rotation.from_quat(turn, scalar_first=True).apply(spec.beams.axes)[:, 2])
    for count, ways in ((4, [0.0, 0.0, 0.0, 1.0]), (3, [1.0, 0.0, 0.0, 0.0]), (2, [0.0, 0.0, 1.0, 0.0])):
        near = replace(spec, maximum_range=float(slants[count - 1]) + 1e-6)
        one = measure(near, PassingMotion(39.0, turn), make_sea()).arrays
        assert one["bottom_solutions"][0].tolist() == ways
        assert (one["bottom_percent_good"][0] > 0.0).sum() == count
        assert np.isfinite(one["bottom_velocity"][0]).all() == (count > 2)
    sigma, pings = 0.05, 500 if not INTERPRETED else 100
    limit = sigma / (math.sqrt(2.0) * math.sin(math.radians(20.0)))
    noisy = make_spec(bottom_pings=pings, bottom=BeamVelocityErrors(sigma), error_velocity_limit=limit)
    three, rejected, few, four = measure(noisy, PassingMotion(39.0), make_sea()).arrays["bottom_solutions"][0].tolist()
    least, most = binom.ppf([FALSE_ALARM / 2.0, 1.0 - FALSE_ALARM / 2.0], pings, 2.0 * norm.sf(1.0))
    assert least <= rejected * pings <= most
    assert (three, few, four) == (0.0, 0.0, pytest.approx(1.0 - rejected, rel=0.0, abs=4 * ULP))


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize("coordinates", list(CoordinateSystem))
def test_relative_velocity_remains_without_bottom_track(coordinates: CoordinateSystem) -> None:
    """Without a bottom in range, the velocity over ground is NaN and the relative velocity is unchanged."""
    spec = make_spec(motion_compensated=True, coordinates=coordinates)
    with_bottom, without = (
        measure(replace(spec, maximum_range=far), PassingMotion(39.0), make_sea()) for far in (100.0, 20.0)
    )
    is_beam = coordinates is CoordinateSystem.BEAM
    assert with_bottom.valid is not None
    assert without.valid is not None
    assert with_bottom.valid.all()
    assert without.valid.all() == is_beam
    assert np.isnan(without.arrays["velocity"]).all()
    assert np.isnan(without.arrays["bottom_velocity"]).all()
    assert np.isfinite(without.arrays["relative_velocity"]).all() == (not is_beam)
    for name in ("relative_velocity", "beam_velocity", "percent_good", "solutions"):
        assert np.array_equal(without.arrays[name], with_bottom.arrays[name], equal_nan=True)
    moved = with_bottom.arrays["relative_velocity"] + with_bottom.arrays["bottom_velocity"][:, None]
    assert np.array_equal(with_bottom.arrays["velocity"], moved, equal_nan=True)


@pytest.mark.requirement("GAP-8")
def test_two_beams_give_no_valid_velocity() -> None:
    spec = make_spec(backscatter=EchoStrength(60.0, 0.35), pings=1)
    ideal = spec.ideal(PassingMotion(39.0), make_sea(), Ticks(np.arange(1), 1.0))
    beam_velocity = {**ideal, "true_beam_velocity": ideal["true_beam_velocity"].copy()}
    beam_velocity["true_beam_velocity"][..., :2] = math.nan
    draws = np.zeros((sum(process.per_tick for process in spec.processes()), 1))
    one = spec.measure(spec.init(np.empty(0)), Ticks(np.arange(1), 1.0), beam_velocity, draws)[1]
    assert np.isfinite(one.arrays["beam_velocity"]).any()
    assert one.arrays["solutions"][0].tolist() == [[0.0, 0.0, 1.0, 0.0]] * 8
    assert one.valid is not None
    assert not one.valid.any()


@pytest.mark.requirement("NOI-6", "GAP-8")
def test_bottom_loss_fault_keeps_the_water_velocity() -> None:
    """From 2 to 4 s there is no bottom echo. Water echoes and true values are unchanged."""
    spec = make_spec(motion_compensated=True, bottom_pings=2)
    model = Model("auv", (Link("auv::base"),), "auv::base", pose=Pose((0.0, 0.0, 40.0)))
    lost = Faults(scheduled=(ScheduledFault("lost_lock", 2.0, 4.0),))
    mounted = MountedSensor("auv::base::adcp", spec, "auv", "auv::base", 1.0, topic="/adcp", faults=lost)
    run = ns.simulate(World("sea", (model,), (mounted,), environment=make_sea()), 6.0)["auv::base::adcp"]
    struck = (run.time >= 2.0) & (run.time < 4.0)
    assert np.array_equal(np.isnan(run["bottom_range"]).all(axis=1), struck)
    assert np.array_equal(np.isnan(run["bottom_velocity"]).all(axis=1), struck)
    assert np.array_equal(
        run["bottom_solutions"], np.where(struck[:, None], (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    )
    assert np.array_equal(run.valid, ~struck)
    assert np.isfinite(run["relative_velocity"]).all()
    assert np.isfinite(run.ideal["bottom_velocity"]).all()
    assert np.array_equal(pack_fault_bits(run.fault), 16.0 * struck)


@pytest.mark.requirement("GAP-8")
def test_instruments_have_different_constant_errors() -> None:
    spec = make_spec(profile=BeamVelocityErrors(0.0, 0.01, 0.02), bottom=BeamVelocityErrors(0.0, 0.01, 0.02))
    ones = [measure(spec, PassingMotion(40.0), make_sea(), 3, seed=seed).arrays for seed in (1, 2)]
    for one in ones:
        assert np.ptp(one["velocity"], axis=0) == pytest.approx(0.0, abs=ROUNDING)
    exact = compute_current(40.0 - CELLS.distances) - np.array(V)
    offs = [one["velocity"][0] - exact for one in ones]
    assert np.abs(offs[0] - offs[1]).max() > 3e-4, "three offsets of 0.02 sqrt 2 are so near once in a million times"
    state = spec.init(Draws(spec.processes(), 1, (0, "adcp")).initial).long_term_errors
    assert offs[0] == pytest.approx(state[0, 0] * exact - state[0, 1:], rel=0.0, abs=ROUNDING)
    over = (1.0 + state[1, 0]) * np.array(V) + state[1, 1:]
    assert ones[0]["bottom_velocity"][0] == pytest.approx(over, rel=0.0, abs=ROUNDING)


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"pings": 0}, "pings: 0; must be a whole number from 1 to 1000"),
        ({"pings": 1.5}, "pings: 1.5; must be a whole number"),
        (
            {"bottom_pings": 0, "motion_compensated": True},
            "bottom_pings: 0; must be at least 1 for motion compensation",
        ),
        ({"min_beams": 5}, "min_beams: 5; must be at most 4"),
        ({"minimum_range": 100.0}, "maximum_range \\(m\\): 100.0; must be above the minimum, 100 m"),
        ({"min_good_share": 1.1}, "min_good_share: 1.1; must be from 0 to 1"),
        (
            {"error_velocity_limit": math.nan},
            "error_velocity_limit: nan; must be from 0 to 100000, or infinite for no limit",
        ),
        ({"reference": (1.0, 1.0, 0.0, 0.0)}, "reference: .*; must be a unit quaternion"),
        ({"coordinates": "earth"}, "coordinates: earth; must be of"),
        ({"pings": "4"}, "pings: '4'; must be a whole number from 1 to 1000"),
        ({"pings": True}, "pings: True; must be a whole number from 1 to 1000"),
        ({"ping_interval": None}, "ping_interval: None; must be a number from 0 to 1e\\+06, and finite"),
        ({"cells": 30}, "cells: 30; must be of DepthCells; give an ns.sensors.DepthCells"),
        ({"sound": 1500.0}, "sound: 1500.0; must be of Sound"),
    ],
)
def test_invalid_specifications_are_an_error(change: Any, problem: str) -> None:
    with pytest.raises(SensorError, match=problem):
        make_spec(**change)


NEVER: tuple[Any, ...] = ("4", True, math.nan, -1, 1e101, 10**400, (1.0,), np.ones(2))
"""Invalid numbers for every field of a profiler."""
SIZES = tuple(f.name for f in fields(Adcp) if f.type in ("int", "float"))
OF_SHEETS: tuple[tuple[Any, str], ...] = (
    *((make_spec, name) for name in (*SIZES, "reference")),
    *((DepthCells, field.name) for field in fields(DepthCells)),
    *((BeamVelocityErrors, field.name) for field in fields(BeamVelocityErrors)),
)


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(("build", "name"), OF_SHEETS)
def test_invalid_number_error_names_the_field(build: Any, name: str) -> None:
    """Every error names the field and the allowed values; some fields allow zero or infinity."""
    assert len(SIZES) == 11
    for value in (*NEVER, math.inf):
        if name == "error_velocity_limit" and value is math.inf:
            continue
        with pytest.raises(SensorError, match=r": .*; must be") as caught:
            build(**{name: value})
        word = {"count": "number", "transmit_length": "transmit length"}.get(name, name)
        assert str(caught.value).startswith(word), value
    if name != "transmit_length":
        with pytest.raises(SensorError, match=r": None; must be"):
            build(**{name: None})


@pytest.mark.requirement("GAP-8")
def test_ensemble_takes_less_than_a_day() -> None:
    """Four water pings at intervals of a quarter of a day fill a day. Without propagation, no ensemble does."""
    quarter = 21_600.0
    complete = {"pings": 4, "bottom_pings": 0, "propagation": True, "cells": CELLS}
    assert Adcp(**complete, ping_interval=math.nextafter(quarter, 0.0)).duration < 4.0 * quarter
    with pytest.raises(
        SensorError, match=r"duration of an ensemble \(s\): 86400.0; must be below 86400 s.*fewer pings"
    ):
        Adcp(**complete, ping_interval=quarter)
    assert Adcp(**{**complete, "propagation": False}, ping_interval=quarter).duration == 0.0


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(
    "change",
    [
        {"count": 0},
        {"count": 256},
        {"size": 0.0},
        {"size": math.nan},
        {"blanking": -1.0},
        {"samples": 0},
        {"lag": -1.0},
    ],
)
def test_invalid_cells_are_an_error(change: Any) -> None:
    with pytest.raises(SensorError, match=r"cell|profile"):
        DepthCells(**change)
    with pytest.raises(SensorError, match="profiler's velocity"):
        BeamVelocityErrors(-1.0)

"""Current profiles against closed forms: shear, side lobes, tilt, frames, motion, noise and sound; OOI's test vectors.

Provenance of vectors and first cells: tests/oracles/ooi/README.md, tests/oracles/rdi/README.md.
"""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import binom, chi2

from navsense.compiled import INTERPRETED
from navsense.environment.base import Environment, Uniform, VectorField
from navsense.environment.terrain.primitives import Plane, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.errors import SensorError
from navsense.geodesy import Origin
from navsense.motion.base import MotionBlock
from navsense.motion.trajectory import waypoints
from navsense.pose import Pose, from_rpy
from navsense.sensors import Accuracy, Adcp, BinMapping, Cells, Coordinates, EchoStrength, Sound, Transducer, janus
from navsense.sensors._janus import ensemble
from navsense.sensors._janus.beams import Beams
from navsense.sensors._janus.profiled import schedule
from navsense.sensors.base import Measured
from navsense.streams import Draws
from navsense.ticks import Ticks
from navsense.typing import AnyArray, Quaternion, Vector

ORACLES = Path(__file__).resolve().parents[1] / "oracles"
FALSE_ALARM = 1e-6
V, SHEAR, DRIFT = (1.2, -0.3, 0.1), (0.02, -0.01, 0.0), (0.3, 0.2, 0.0)
CELLS = Cells(8, 2.0, 1.0)
LEVEL = (1.0, 0.0, 0.0, 0.0)


class Sheared:
    """Water whose velocity (m/s) grows with height: `DRIFT` at 0, `SHEAR` more each metre, and with its square."""

    def __init__(self, square: float = 0.0) -> None:
        self.square = square

    def at(self, position_w: AnyArray, time: AnyArray) -> AnyArray:
        z = position_w[:, 2:]
        return np.array(DRIFT) + z * np.array(SHEAR) + self.square * z**2

    def turned(self, rotation: Quaternion) -> VectorField:
        raise NotImplementedError


class Passing:
    """A frame that goes at a velocity (m/s, world) but is looked at where it stands; it knows when it was asked for."""

    end = math.inf

    def __init__(self, height: float, rotation: Quaternion = LEVEL, velocity: Vector = V) -> None:
        self.place, self.velocity, self.rotation = (0.0, 0.0, height), velocity, rotation
        self.asked: list[AnyArray] = []

    def at(self, time: AnyArray) -> MotionBlock:
        self.asked.append(time)
        rows = np.ones((time.shape[0], 1))
        zero = rows * np.zeros(3)
        return MotionBlock(rows * self.place, rows * self.rotation, rows * self.velocity, zero, zero, zero)


def sea(current: Any = None, *, surface: float = 100.0, sound: float = 1500.0, bodies: Any = None) -> Environment:
    """Return water up to a height above a bed at 0."""
    bed = Body("bed", Plane())
    water = Water(surface=surface, sound_speed=sound)
    return Environment(scene=Scene((bed,) if bodies is None else bodies), water=water, current=current or Sheared())


def sheet(**more: Any) -> Adcp:
    return Adcp(**{"cells": CELLS, "propagation": False, "bottom_pings": 1, **more})


def told(spec: Adcp, motion: Any, around: Environment, count: int = 1, rate: float = 1.0, seed: int = 5) -> Measured:
    ticks = Ticks(np.arange(count, dtype=np.int64), rate)
    source = Draws(spec.processes(), seed, (0, "adcp"))
    ideal = spec.ideal(motion, around, ticks)
    return spec.measure(spec.init(source.initial), ticks, ideal, source.take(count))[1]


def turning(angle: float = 20.0, down: Vector = (0.0, 0.0, -1.0)) -> Beams:
    return janus(math.radians(angle), [math.radians(a) for a in (-135.0, 135.0, 45.0, -45.0)], down=down)


def water_at(height: AnyArray) -> AnyArray:
    return np.array(DRIFT) + height[:, None] * np.array(SHEAR)


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize("angle", [20.0, 25.0, 30.0])
@pytest.mark.parametrize("removes", [False, True])
def test_a_linear_shear_down_to_the_side_lobes(angle: float, removes: bool) -> None:
    """Cells overlap and have weights, which leaves a shear as it is; the bottom spoils D (1 - cos angle) of the way."""
    height, spec = 14.9, sheet(beams=turning(angle), removes_motion=removes)
    one = told(spec, Passing(height), sea())
    distance = np.array([3.0 + 2.0 * m for m in range(8)])
    clear = distance + 2.0 <= height * math.cos(math.radians(angle))
    assert clear.sum() == {20.0: 5, 25.0: 5, 30.0: 4}[angle]
    expected = water_at(height - distance) - (0.0 if removes else np.array(V))
    assert np.isfinite(one.arrays["velocity"][0, :, 0]).tolist() == clear.tolist()
    assert one.arrays["velocity"][0, clear] == pytest.approx(expected[clear], abs=1e-12)
    assert one.arrays["percent_good"][0].tolist() == clear.astype(float).tolist()
    assert one.arrays["error_velocity"][0, clear] == pytest.approx(0.0, abs=1e-12)
    assert one.arrays["bottom_velocity"][0] == pytest.approx(V, abs=1e-12)
    assert one.arrays["bottom_range"][0] == pytest.approx(height / math.cos(math.radians(angle)))
    whole = told(replace(spec, side_lobes=False), Passing(height), sea()).arrays["velocity"]
    assert np.isfinite(whole[0, :, 0]).tolist() == (distance + 2.0 <= height).tolist()


@pytest.mark.requirement("GAP-8")
def test_the_surface_spoils_what_looks_up() -> None:
    spec = sheet(beams=turning(30.0, (0.0, 0.0, 1.0)), bottom_pings=0)
    one = told(spec, Passing(50.0), sea(surface=64.0)).arrays
    clear = CELLS.distances + 2.0 <= 14.0 * math.cos(math.radians(30.0))
    assert np.isfinite(one["velocity"][0, :, 0]).tolist() == clear.tolist()
    assert one["velocity"][0, clear] == pytest.approx(water_at(50.0 + CELLS.distances[clear]) - np.array(V), abs=1e-12)
    ends = told(replace(spec, side_lobes=False), Passing(50.0), sea(surface=64.0)).arrays["velocity"]
    assert np.isfinite(ends[0, :, 0]).tolist() == (CELLS.distances + 2.0 <= 14.0).tolist()


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(
    ("pulse", "variance"), [(None, 2.0**2 / 6.0), (0.0, 2.0**2 / 12.0), (1.0, (2.0**2 + 1.0) / 12.0)]
)
def test_the_weights_are_the_pulse_over_the_cell(pulse: float | None, variance: float) -> None:
    """A curved profile is off by its curvature times the variance of the weights: of a triangle, a box, both."""
    square, cells = 1e-3, Cells(1, 2.0, 5.0, pulse, 0.0, 400)
    one = told(sheet(cells=cells), Passing(40.0, velocity=(0.0, 0.0, 0.0)), sea(Sheared(square))).arrays["velocity"]
    middle = 40.0 - cells.first
    expected = DRIFT[0] + SHEAR[0] * middle + square * (middle**2 + variance)
    assert one[0, 0, 0] == pytest.approx(expected, abs=2e-8)


@pytest.mark.requirement("GAP-8")
def test_the_first_cell_of_real_instruments() -> None:
    with (ORACLES / "rdi" / "first_cell.csv").open(encoding="utf-8", newline="") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 6
    for row in rows:
        cells = Cells(1, row["cell_cm"], row["blank_cm"], row["transmit_cm"], row["lag_cm"])
        assert cells.first == pytest.approx(row["first_cm"], abs=0.5)
    assert Cells(3, 2.0, 0.88).distances.tolist() == [2.88, 4.88, 6.88]


TILTS = [(0.0, 12.0), (8.0, 0.0), (-5.0, 10.0)]


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(("roll", "pitch"), TILTS)
def test_bin_mapping_takes_the_tilt_out_of_a_shear(roll: float, pitch: float) -> None:
    """Without it, and by the nearest cell, the error is that of beams at heights of their own, solved by NumPy."""
    turn = from_rpy(math.radians(roll), math.radians(pitch), 0.4)
    base = sheet(side_lobes=False, coordinates=Coordinates.EARTH, beams=turning(25.0))
    axes = Rotation.from_quat(turn, scalar_first=True).apply(base.beams.axes)
    nominal = CELLS.distances
    along = nominal / math.cos(math.radians(25.0))
    for mapping in BinMapping:
        one = told(replace(base, bin_mapping=mapping), Passing(80.0, turn), sea()).arrays["velocity"][0]
        at = np.array([np.arange(8)] * 4)
        if mapping is not BinMapping.NONE:
            at = (nominal[None, :] * math.cos(math.radians(25.0)) / -axes[:, 2:] - nominal[0]) / CELLS.size
        if mapping is BinMapping.NEAREST:
            at = np.floor(at + 0.5).astype(int)
        inside = ((at >= -1e-9) & (at <= 7.0 + 1e-9)).sum(axis=0) >= 3
        assert np.isfinite(one[:, 0]).tolist() == inside.tolist()
        if mapping is BinMapping.LINEAR:
            expected = water_at(80.0 - nominal) - np.array(V)
            assert one[inside] == pytest.approx(expected[inside], abs=1e-11)
            continue
        for m in np.nonzero(((at >= 0) & (at <= 7)).all(axis=0))[0]:
            slant = along[at[:, m]]
            seen = (axes * (np.array(V) - water_at(80.0 + slant * axes[:, 2]))).sum(axis=1)
            assert one[m] == pytest.approx(-np.linalg.lstsq(axes, seen, rcond=None)[0], abs=1e-11)
        worst = np.abs(one[inside] - (water_at(80.0 - nominal) - np.array(V))[inside]).max()
        assert worst > 0.004


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize("coordinates", list(Coordinates))
def test_the_axes_that_are_told_in(coordinates: Coordinates) -> None:
    turn, reference = from_rpy(0.1, -0.2, 0.7), from_rpy(math.pi, 0.1, 0.2)
    spec = sheet(coordinates=coordinates, reference=reference)
    around = replace(sea(Uniform(DRIFT)), origin=Origin(0.5, 0.1, 0.0, 0.3))
    one = told(spec, Passing(40.0, turn), around).arrays
    flow = np.array(DRIFT) - np.array(V)
    sensor, body = (Rotation.from_quat(q, scalar_first=True) for q in (turn, reference))
    north = Rotation.from_euler("z", 0.3)
    vehicle = north * sensor * body.inv()
    yaw = Rotation.from_euler("z", vehicle.as_euler("ZYX")[0])
    frames = {
        Coordinates.EARTH: north.apply(flow),
        Coordinates.INSTRUMENT: body.apply(sensor.inv().apply(flow)),
        Coordinates.SHIP: yaw.inv().apply(north.apply(flow)),
        Coordinates.BEAM: np.full(3, math.nan),
    }
    assert one["velocity"][0, 2] == pytest.approx(frames[coordinates], abs=1e-12, nan_ok=True)
    seen = Rotation.from_quat(turn, scalar_first=True).apply(spec.beams.axes) @ -flow
    assert one["beam_velocity"][0, 2] == pytest.approx(seen, abs=1e-12)
    told_by = Rotation.from_quat(one["orientation"][0], scalar_first=True)
    assert (told_by.inv() * vehicle).magnitude() == pytest.approx(0.0, abs=1e-12)
    assert one["beam_direction"][0] == pytest.approx(body.apply(spec.beams.axes), abs=1e-15)
    assert one["cell_distance"][0].tolist() == CELLS.distances.tolist()


@pytest.mark.requirement("GAP-8", "GAP-9")
def test_the_test_vectors_of_ooi() -> None:
    """Ten cells of a real ensemble from beams to the earth's axes, by the profile's own averaging."""
    with (ORACLES / "ooi" / "velocities.csv").open(encoding="utf-8", newline="") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    heading, first, second = (math.radians(a) for a in (98.41, 0.69, -2.54))
    pitch, roll = math.atan(math.tan(first) * math.cos(second)), second + math.pi
    turned = Rotation.from_euler("ZXY", [-heading, pitch, roll])
    s, c = math.sin(math.radians(20.0)), math.cos(math.radians(20.0))
    axes = -np.array([(s, 0.0, c), (-s, 0.0, c), (0.0, -s, c), (0.0, s, c)])
    heard = np.array([[row[f"b{i}_mm_s"] / 1000.0 for i in (1, 2, 3, 4)] for row in rows])[None, None]
    frame = turned.as_quat(scalar_first=True)[None, None]
    rules = np.array([ensemble.EARTH, ensemble.UNMAPPED, 4.0, math.inf, 0.0, 0.0, 1.0])
    velocity, error, share = np.empty((1, 10, 3)), np.empty((1, 10)), np.empty((1, 10))
    beams, room = (np.empty((1, 10, 4)), np.empty((1, 10, 4)), np.empty((1, 4))), (np.empty((3, 4)),)
    cells = (np.arange(1.0, 11.0), 1.0, heard, frame, frame, axes, np.array((0.0, 0.0, -1.0)), np.full(4, c))
    good = np.empty(4, dtype=np.bool_)
    ensemble.average(rules, *cells, velocity, error, share, *beams, *room, good, np.empty((3, 3)))
    expected = [[row["east_m_s"], row["north_m_s"], row["up_m_s"]] for row in rows]
    assert velocity[0] == pytest.approx(np.array(expected), abs=5.1e-5)
    assert error[0] == pytest.approx(np.array([row["error_m_s"] for row in rows]), abs=1.1e-6)


@pytest.mark.requirement("GAP-8")
def test_pings_are_at_instants_of_their_own() -> None:
    """Of three for the profile and two for the bottom, each waits for its own sound, and the tick for all of them."""
    found = schedule(3, 2, (0.02, 0.1), (0.005, 0.05))
    assert found.bottom.tolist() == pytest.approx([0.05, 0.19])
    assert found.profile.tolist() == pytest.approx([0.105, 0.125, 0.245])
    assert (found.duration, found.mean) == pytest.approx((0.26, 0.475 / 3.0))
    spec = Adcp(cells=CELLS, pings=3, bottom_pings=2, maximum_range=75.0, processing_time=0.01)
    reach = 2.0 * (19.0 / math.cos(math.radians(20.0))) / 1500.0
    assert spec.duration == pytest.approx(0.2 + 3.0 * reach + 0.01)
    motion = Passing(15.0)
    one = told(spec, motion, sea(), count=20, rate=10.0)
    assert spec.every(10.0) == 3
    assert np.nonzero(one.emitted)[0].tolist() == [3, 6, 9, 12, 15, 18]  # type: ignore[arg-type]
    asked = np.unique(np.concatenate(motion.asked))
    assert asked.min() >= 0.0
    within = 0.3 - spec.duration + spec._schedule.profile
    assert set(np.round(within, 12)) <= set(np.round(asked, 12))
    assert one.arrays["time_of_validity"][3] == pytest.approx(within.mean())
    slower = replace(spec, ping_interval=0.2)
    assert slower.duration == pytest.approx(1.01)


@pytest.mark.requirement("GAP-8")
def test_what_a_vehicle_that_turns_and_speeds_up_makes_of_still_water() -> None:
    """Its motion cancels but for what it changes between the pings for the bottom and those of the profile."""
    path = [
        Pose((0.0, 0.0, 30.0)),
        Pose((4.0, 1.0, 30.5), from_rpy(0.1, 0.05, 0.3)),
        Pose((9.0, 0.0, 30.0), from_rpy(0.0, 0.1, 0.9)),
    ]
    motion = waypoints((0.0, 4.0, 8.0), path)
    spec = Adcp(cells=CELLS, pings=4, bottom_pings=4, maximum_range=60.0, removes_motion=True)
    still = told(spec, motion, sea(Uniform((0.0, 0.0, 0.0))), count=8).arrays["velocity"]
    kept = told(replace(spec, removes_motion=False), motion, sea(Uniform((0.0, 0.0, 0.0))), count=8).arrays["velocity"]
    known = np.isfinite(still)
    assert known.sum() > 100
    assert np.abs(kept[known]).max() > 1.0
    assert np.abs(still[known]).max() < 0.06


SIGMA, RUNS = 0.05, 2000 if not INTERPRETED else 150


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(("pings", "reference"), [(1, 0.0), (16, 0.0), (4, 1.0)])
def test_the_noise_of_an_ensemble(pings: int, reference: float) -> None:
    """1 / sqrt(pings) of one, at the deviations of RDI's transformation; half of it in cells twice as long."""
    count = RUNS if pings == 1 else RUNS // 4
    spec = sheet(
        cells=Cells(2, 2.0, 1.0), pings=pings, profile=Accuracy(SIGMA), reference_cell_size=reference,
        bin_mapping=BinMapping.NONE, coordinates=Coordinates.INSTRUMENT,
    )  # fmt: skip
    one = told(spec, Passing(40.0), sea(), count).arrays
    errors = one["velocity"] - (water_at(40.0 - spec.cell_distance) - np.array(V))
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
    """Each beam's share is that of the logistic law, S = level - 20 log r - 2 absorption r."""
    cells = Cells(10, 4.0, 2.0)
    echo = EchoStrength(60.0, 0.35, 0.8, 6.0, 2.0)
    spec = sheet(cells=cells, backscatter=echo, pings=10, profile=Accuracy(0.01), least_good=0.3)
    count = 40 if not INTERPRETED else 10
    one = told(spec, Passing(80.0), sea(), count).arrays
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
    assert one["echo"][0, :, 1] == pytest.approx(10.0 * np.log10(1.0 + power))
    assert one["correlation"][0, :, 2] == pytest.approx(0.8 * power / (1.0 + power))
    few = one["percent_good"] < 0.3
    assert few.any()
    assert np.isnan(one["velocity"][few]).all()
    assert np.isfinite(one["velocity"][~few]).all()
    rho = 0.8 * power / (1.0 + power)
    deviation = 0.01 * np.sqrt((rho**-2 - 1.0) / (0.8**-2 - 1.0))
    seen = -(spec.beams.axes @ (water_at(80.0 - cells.distances) - np.array(V)).T).T
    many = np.rint(one["beam_percent_good"] * 10.0)
    scaled = (one["beam_velocity"] - seen) * np.sqrt(many) / deviation[:, None]
    known = np.isfinite(scaled)
    low, high = chi2.ppf([FALSE_ALARM / 2.0, 1.0 - FALSE_ALARM / 2.0], known.sum()) / known.sum()
    assert low < (scaled[known] ** 2).mean() < high
    assert deviation[7] > 1.5 * deviation[0]


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize("transducer", list(Transducer))
def test_a_wrong_speed_of_sound(transducer: Transducer) -> None:
    """Cells are farther by c / c0; velocities are scaled by c0 / c, those of a phased array along its axis alone."""
    spec = sheet(sound=Sound(1470.0), transducer=transducer)
    one = told(spec, Passing(60.0), sea())
    true = told(replace(spec, sound=Sound()), Passing(60.0), sea()).arrays
    ratio = 1470.0 / 1500.0
    expected = water_at(60.0 - CELLS.distances / ratio) - np.array(V)
    expected *= np.array([ratio] * 3 if transducer is Transducer.PISTON else [1.0, 1.0, ratio])
    assert one.arrays["velocity"][0] == pytest.approx(expected, abs=1e-12)
    scaled = np.array(V) * (np.array([ratio] * 3) if transducer is Transducer.PISTON else (1.0, 1.0, ratio))
    assert one.arrays["bottom_velocity"][0] == pytest.approx(scaled, abs=1e-12)
    assert one.arrays["bottom_range"][0] == pytest.approx(ratio * true["bottom_range"][0])
    assert one.arrays["sound_speed"][0] == 1470.0


@pytest.mark.requirement("GAP-8", "GAP-9")
def test_three_beams_and_screening() -> None:
    """A buoy hides one beam from its fourth cell on: three solve there, without an error velocity to be judged by."""
    spec = sheet(side_lobes=False, bin_mapping=BinMapping.NONE)
    axis = spec.beams.axes[2]
    buoy = Body("buoy", Sphere(0.5), Pose(tuple((11.0 * axis + (0.0, 0.0, 40.0)).tolist())))
    around = sea(bodies=(Body("bed", Plane()), buoy))
    one = told(spec, Passing(40.0), around).arrays
    behind = np.arange(8) >= 3
    assert np.isnan(one["beam_velocity"][0, :, 2]).tolist() == behind.tolist()
    assert one["percent_good"][0].tolist() == [1.0] * 8
    assert np.isnan(one["error_velocity"][0]).tolist() == behind.tolist()
    assert one["velocity"][0] == pytest.approx(water_at(40.0 - CELLS.distances) - np.array(V), abs=1e-12)
    four = told(replace(spec, least_beams=4), Passing(40.0), around).arrays
    assert (four["percent_good"][0] == 0.0).tolist() == behind.tolist()
    noisy = replace(spec, profile=Accuracy(0.1), error_velocity_limit=0.05, pings=20)
    judged = told(noisy, Passing(40.0), around).arrays["percent_good"][0]
    assert (judged[:3] < 1.0).all()
    assert (judged[3:] == 1.0).all()


@pytest.mark.requirement("GAP-8")
def test_serial_numbers_differ_and_stay() -> None:
    spec = sheet(profile=Accuracy(0.0, 0.01, 0.02), bottom=Accuracy(0.0, 0.01, 0.02))
    ones = [told(spec, Passing(40.0), sea(), 3, seed=seed).arrays for seed in (1, 2)]
    for one in ones:
        assert np.ptp(one["velocity"], axis=0) == pytest.approx(0.0, abs=1e-12)
    exact = water_at(40.0 - CELLS.distances) - np.array(V)
    offs = [one["velocity"][0] - exact for one in ones]
    assert np.abs(offs[0] - offs[1]).max() > 1e-3
    state = spec.init(Draws(spec.processes(), 1, (0, "adcp")).initial).systematic
    assert offs[0] == pytest.approx(state[0, 0] * exact - state[0, 1:] * (1.0 + state[0, 0] * 0.0), abs=1e-12)
    assert ones[0]["bottom_velocity"][0] == pytest.approx((1.0 + state[1, 0]) * np.array(V) + state[1, 1:], abs=1e-12)


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"pings": 0}, "pings: 0; must be a whole number from 1 to 1000"),
        ({"pings": 1.5}, "pings: 1.5; must be a whole number"),
        ({"bottom_pings": 0, "removes_motion": True}, "bottom_pings: 0; must be at least 1 where motion is taken out"),
        ({"least_beams": 5}, "least_beams: 5; must be at most 4"),
        ({"minimum_range": 100.0}, "maximum_range \\(m\\): 100.0; must be above the minimum, 100 m"),
        ({"least_good": 1.1}, "least_good: 1.1; must be from 0 to 1"),
        ({"error_velocity_limit": math.nan}, "error_velocity_limit: nan"),
        ({"reference": (1.0, 1.0, 0.0, 0.0)}, "reference: .*; must be a unit quaternion"),
        ({"coordinates": "earth"}, "coordinates: earth; must be of"),
    ],
)
def test_sheets_that_cannot_be(change: Any, problem: str) -> None:
    with pytest.raises(SensorError, match=problem):
        sheet(**change)


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
def test_cells_that_cannot_be(change: Any) -> None:
    with pytest.raises(SensorError, match=r"cell|profile"):
        Cells(**change)
    with pytest.raises(SensorError, match="profiler's velocity"):
        Accuracy(-1.0)

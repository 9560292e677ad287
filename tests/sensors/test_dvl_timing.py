"""Ping times, times of validity and loss of lock of a DVL equal closed forms of r / c."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import navsense as ns
from navsense.core.kernels import INTERPRETED
from navsense.core.pose import Pose, from_rpy, rotate
from navsense.core.random_streams import Draws
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray, Vector
from navsense.environment.base import Environment
from navsense.environment.terrain.primitives import Box, Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.messages.world_messages import pack_fault_bits
from navsense.motion.base import MotionBlock
from navsense.noise.specification import Noise
from navsense.sensors.base import Measurement
from navsense.sensors.doppler import LongTermFilter, TrackErrors, WaterMassLayer, make_janus_beams
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.world import Link, Model, MountedSensor, World

FALSE_ALARM = 1e-6
PLUS = (0.0, 90.0, 180.0, 270.0)
SLANT = 1.0 / math.cos(math.radians(30.0))
SEA = Water(surface=1000.0, sound_speed=1500.0)


@dataclass(frozen=True)
class AcceleratedMotion:
    """A level frame at position + velocity t + acceleration t^2 / 2 (m, s, world), yawing at `turn` (rad/s)."""

    place: Vector = (0.0, 0.0, 20.0)
    velocity: Vector = (0.0, 0.0, 0.0)
    acceleration: Vector = (0.0, 0.0, 0.0)
    turn: float = 0.0

    @property
    def end(self) -> float:
        return math.inf

    def at(self, time: AnyArray) -> MotionBlock:
        t, rows = time[:, None], np.ones((time.shape[0], 1))
        rotation = np.array([from_rpy(0.0, 0.0, self.turn * one) for one in time.tolist()])
        velocity, acceleration = np.array(self.velocity), np.array(self.acceleration)
        position = np.array(self.place) + t * velocity + 0.5 * t * t * acceleration
        moving = (velocity + t * acceleration, rows * [0.0, 0.0, self.turn], rows * acceleration, rows * np.zeros(3))
        return MotionBlock(position, rotation, *moving)


def make_bed(slope: float = 0.0) -> Environment:
    """Return a bottom through the origin, in water with a sound speed of 1500 m/s."""
    pose = Pose((0.0, 0.0, 0.0), from_rpy(0.0, -math.atan(slope), 0.0))
    return Environment(scene=Scene((Body("bed", Plane(), pose),)), water=SEA)


def make_spec(**more: Any) -> Dvl:
    return Dvl(**{"beams": make_janus_beams(math.radians(30.0), [math.radians(a) for a in PLUS]), **more})


def measure_pings(
    spec: Dvl, motion: Any, environment: Environment, count: int, rate: float
) -> tuple[FloatArray, Measurement]:
    """Return the times of the ticks, and the measurement."""
    ticks = Ticks(np.arange(count, dtype=np.int64), rate)
    source = Draws(spec.processes(), 5, (0, "dvl"))
    _, measured = spec.measure(
        spec.init(source.initial), ticks, spec.ideal(motion, environment, ticks), source.take(count)
    )
    return ticks.time, measured


def find_output_ticks(time: FloatArray, compute_delay: Callable[[float], float]) -> list[bool]:
    """Return the ticks that publish a ping: the first tick after all its echoes."""
    last, found = 0.0, []
    for t in time.tolist():
        found.append(t >= last + compute_delay(t) - 1e-9)
        last = t if found[-1] else last
    return found


@pytest.mark.requirement("GAP-2", "GAP-9")
@pytest.mark.parametrize("height", [3.0, 20.0, 47.0, 80.0])
@pytest.mark.parametrize("processing", [0.0, 0.013])
def test_ping_rate_decreases_with_altitude(height: float, processing: float) -> None:
    """A ping follows each 2 r / c + processing time, at the next tick of 100 Hz."""
    spec = make_spec(maximum_range=150.0, processing_time=processing)
    time, reading = measure_pings(spec, AcceleratedMotion((0.0, 0.0, height)), make_bed(), 400, 100.0)
    interval = 2.0 * height * SLANT / 1500.0 + processing
    assert reading.emitted is not None
    assert reading.valid is not None
    assert reading.emitted.tolist() == find_output_ticks(time, lambda _: interval)
    steps = np.diff(np.flatnonzero(reading.emitted))
    assert set(steps.tolist()) == {math.ceil(interval * 100.0)}
    assert np.array_equal(reading.valid, reading.emitted)
    for name, values in reading.arrays.items():
        rows = values.reshape(400, -1)[~reading.emitted]
        assert name == "sound_speed" or np.isnan(rows).all()
    about = time - processing - height * SLANT / 1500.0
    assert reading.arrays["time_of_validity"][reading.emitted] == pytest.approx(about[reading.emitted], abs=1e-12)


@pytest.mark.requirement("GAP-2", "GAP-9")
def test_ping_rate_during_a_climb_from_a_slope() -> None:
    """Ranges are those at the return of all echoes, the processing time before the tick."""
    spec, normal = (
        make_spec(maximum_range=400.0, processing_time=0.02),
        np.array([-0.3, 0.0, 1.0]) / math.hypot(0.3, 1.0),
    )
    motion = AcceleratedMotion((0.0, 0.0, 10.0), (1.0, 0.0, 2.0))
    time, reading = measure_pings(spec, motion, make_bed(0.3), 800, 50.0)
    tilt, environment = math.radians(30.0), np.radians(PLUS)
    axes = np.column_stack(
        [math.sin(tilt) * np.cos(environment), math.sin(tilt) * np.sin(environment), np.full(4, -math.cos(tilt))]
    )

    def ranges(t: float) -> AnyArray:
        return (normal @ [t, 0.0, 10.0 + 2.0 * t]) / -(axes @ normal)

    def find_farthest(t: float) -> float:
        return 2.0 * float(ranges(max(t - 0.02, 0.0)).max()) / 1500.0 + 0.02

    assert reading.emitted is not None
    assert reading.emitted.tolist() == find_output_ticks(time, find_farthest)
    assert 5 < reading.emitted.sum() < 700
    for k in np.flatnonzero(reading.emitted).tolist():
        echo_ranges = ranges(time[k] - 0.02)
        about = time[k] - 0.02 - (2.0 * echo_ranges.max() - echo_ranges.mean()) / 1500.0
        assert reading.arrays["time_of_validity"][k] == pytest.approx(about, abs=1e-12)
        assert reading.arrays["beam_range"][k] == pytest.approx(ranges(about), rel=1e-12, abs=0.0)


@pytest.mark.requirement("GAP-9")
def test_ping_without_bottom_waits_for_the_longest_echo() -> None:
    spec, nothing = make_spec(maximum_range=75.0), Environment(water=SEA)
    time, reading = measure_pings(spec, AcceleratedMotion(), nothing, 100, 40.0)
    assert reading.emitted is not None
    assert reading.emitted.tolist() == find_output_ticks(time, lambda _: 0.1)
    assert reading.valid is not None
    assert not reading.valid.any()
    assert np.all(reading.arrays["velocity_mode"][reading.emitted] == 0.0)
    assert np.all(reading.arrays["num_good_beams"][reading.emitted] == 0.0)
    assert np.isnan(reading.arrays["velocity"]).all()
    assert reading.arrays["time_of_validity"][reading.emitted] == pytest.approx(time[reading.emitted] - 0.05, abs=1e-12)


STILL = {"bottom_mode": TrackMode.NEVER, "water_mode": TrackMode.ALWAYS, "layer": WaterMassLayer(5.0, 25.0)}


@pytest.mark.requirement("GAP-9", "WTR-2")
@pytest.mark.parametrize(
    ("more", "waits", "mode"),
    [
        (STILL, 25.0 * SLANT, 2.0),  # without bottom track there is no wait for a bottom
        (STILL | {"bottom_mode": TrackMode.ALWAYS, "water_mode": TrackMode.FALLBACK}, 400.0, 2.0),
    ],
)
def test_water_time_of_validity_is_in_the_layer(more: dict[str, Any], waits: float, mode: float) -> None:
    """Without bottom, the ping is sent 2 r / c earlier. The time of validity is at 15 m, the middle of the layer."""
    spec, nothing = make_spec(maximum_range=400.0, **more), Environment(water=SEA)
    motion = AcceleratedMotion((0.0, 0.0, 60.0), (1.0, 0.0, 0.0), (0.8, -0.4, 0.0))
    time, reading = measure_pings(spec, motion, nothing, 100, 40.0)
    assert reading.emitted is not None
    assert reading.emitted.tolist() == find_output_ticks(time, lambda _: 2.0 * waits / 1500.0)
    rows = np.flatnonzero(reading.emitted)
    assert rows.size > 3
    about = time[rows] - 2.0 * waits / 1500.0 + 15.0 * SLANT / 1500.0
    assert reading.arrays["time_of_validity"][rows] == pytest.approx(about, abs=1e-12)
    assert reading.arrays["water_time_of_validity"][rows] == pytest.approx(about, abs=1e-12)
    assert np.all(reading.arrays["velocity_mode"][rows] == mode)
    assert reading.arrays["velocity"][rows] == pytest.approx(motion.at(about).velocity_w, abs=1e-9)
    assert np.all(reading.arrays["water_far"][rows] == 25.0)


@pytest.mark.requirement("GAP-1", "GAP-9")
def test_both_echoes_of_a_ping_have_separate_times() -> None:
    """The bed is 20 m below, the layer ends at 16 m (80 % rule): travel times of 20 / cos and 10.5 / cos."""
    spec = make_spec(**STILL | {"bottom_mode": TrackMode.ALWAYS})
    motion = AcceleratedMotion((0.0, 0.0, 20.0), (1.0, 0.0, 0.0), (0.8, -0.4, 0.0))
    time, reading = measure_pings(spec, motion, make_bed(), 100, 40.0)
    assert reading.emitted is not None
    rows = np.flatnonzero(reading.emitted)
    sent = time[rows] - 2.0 * 20.0 * SLANT / 1500.0
    for names, depth in (
        (("velocity", "time_of_validity"), 20.0),
        (("water_velocity", "water_time_of_validity"), 10.5),
    ):
        about = sent + depth * SLANT / 1500.0
        assert reading.arrays[names[1]][rows] == pytest.approx(about, abs=1e-12)
        assert reading.arrays[names[0]][rows] == pytest.approx(motion.at(about).velocity_w, abs=1e-9)
    assert reading.arrays["water_far"][rows] == pytest.approx(16.0, rel=1e-12, abs=0.0)


@pytest.mark.requirement("GAP-2")
def test_beam_dropout_loses_bottom_and_water() -> None:
    spec = make_spec(
        **STILL | {"water_mode": TrackMode.FALLBACK, "bottom_mode": TrackMode.ALWAYS}, dropout_probability=1.0
    )
    _, reading = measure_pings(spec, AcceleratedMotion(), make_bed(), 20, 4.0)
    assert reading.emitted is not None
    assert np.all(reading.arrays["velocity_mode"][reading.emitted] == 0.0)
    assert np.isnan(reading.arrays["water_beam_velocity"]).all()


@pytest.mark.requirement("NOI-6", "GAP-1")
def test_bottom_loss_fault_keeps_the_water_track() -> None:
    """From 1 to 2 s there is no bottom echo. True values are unchanged."""
    spec = make_spec(**STILL | {"water_mode": TrackMode.FALLBACK, "bottom_mode": TrackMode.ALWAYS}, propagation=False)
    model = Model("auv", (Link("auv::base"),), "auv::base", pose=Pose((0.0, 0.0, 20.0)))
    lost = Faults(scheduled=(ScheduledFault("lost_lock", 1.0, 2.0),))
    mounted = MountedSensor("auv::base::dvl", spec, "auv", "auv::base", 5.0, topic="/dvl", faults=lost)
    run = ns.simulate(World("sea", (model,), (mounted,), environment=make_bed()), 3.0)["auv::base::dvl"]
    struck = (run.time >= 1.0) & (run.time < 2.0)
    assert np.array_equal(run["velocity_mode"], np.where(struck, 2.0, 1.0))
    assert np.array_equal(np.isnan(run["beam_range"]).all(axis=1), struck)
    assert np.array_equal(np.isnan(run["altitude"]), struck)
    assert np.isfinite(run.ideal["altitude"]).all()
    assert np.array_equal(pack_fault_bits(run.fault), 16.0 * struck)


@pytest.mark.requirement("GAP-9", "DVW-3")
def test_velocity_is_that_at_the_time_of_validity() -> None:
    """The vehicle accelerates and turns: the velocity is that at the echo, in the sensor axes of that time."""
    motion = AcceleratedMotion((0.0, 0.0, 60.0), (0.5, 0.0, 0.0), (0.8, -0.4, 0.0), 0.5)
    spec = make_spec(processing_time=0.03)
    time, reading = measure_pings(spec, motion, make_bed(), 200, 20.0)
    assert reading.emitted is not None
    emitted = np.flatnonzero(reading.emitted).tolist()
    assert len(emitted) > 50
    for k in emitted:
        about = time[k] - 0.03 - 60.0 * SLANT / 1500.0
        w, x, y, z = from_rpy(0.0, 0.0, 0.5 * about)
        true = rotate((w, -x, -y, -z), (0.5 + 0.8 * about, -0.4 * about, 0.0))
        assert reading.arrays["velocity"][k] == pytest.approx(true, abs=1e-9)
        course = math.atan2(0.5 + 0.8 * about, -0.4 * about)
        assert reading.arrays["course"][k] == pytest.approx(course, abs=1e-9)
    late = measure_pings(replace(spec, propagation=False), motion, make_bed(), 200, 20.0)[1]
    assert late.emitted is not None
    assert late.emitted.all()
    assert np.array_equal(late.arrays["time_of_validity"], time)
    w, x, y, z = from_rpy(0.0, 0.0, 0.5 * time[-1])
    true = rotate((w, -x, -y, -z), (0.5 + 0.8 * time[-1], -0.4 * time[-1], 0.0))
    assert late.arrays["velocity"][-1] == pytest.approx(true, abs=1e-9)


@pytest.mark.requirement("GAP-9")
def test_pings_in_flight_are_equal_in_batch_and_live_runs() -> None:
    """Truth is that of the echo, and ticks without a ping are not published."""
    motion, spec = (
        AcceleratedMotion((0.0, 0.0, 60.0), (0.5, 0.0, 0.3), (0.8, -0.4, 0.0)),
        make_spec(bottom=TrackErrors(Noise(stddev=0.01))),
    )
    model = Model("auv", (Link("auv::hull"),), "auv::hull", motion=motion)
    eye = MountedSensor("dvl", spec, "auv", "auv::hull", 20.0)
    world = World("w", (model,), (eye,), environment=make_bed(), max_step_size=0.01)
    complete = ns.simulate(world, 4.0, seed=2)["dvl"]
    assert 10 < complete.emitted.sum() < 79
    about = complete["time_of_validity"][complete.emitted]
    expected = np.outer(about, [0.8, -0.4, 0.0]) + [0.5, 0.0, 0.3]
    assert np.allclose(complete.ideal["velocity"][complete.emitted], expected, rtol=0.0, atol=1e-9)
    parts: dict[str, list[AnyArray]] = {name: [] for name in complete}
    sim = ns.live(world, seed=2)
    for _ in range(400):
        for reading in sim.step().readings.values():
            for name in complete:
                parts[name].append(reading[name])
    for name, values in complete.items():
        assert np.concatenate(parts[name])[:80].tobytes() == values.tobytes()


# lock


def make_trench() -> Environment:
    """Return a bed at height 0 with a gap from x = 10 to x = 20 m."""
    sides = [Body(f"side_{x:g}", Box((100.0, 400.0, 1e-4)), Pose((x, 0.0, -5e-5))) for x in (-40.0, 70.0)]
    return Environment(scene=Scene(tuple(sides)), water=SEA)


@pytest.mark.requirement("GAP-9")
@pytest.mark.parametrize("again", [0.0, 0.36, 1.0])
def test_lost_beam_needs_the_reacquisition_time(again: float) -> None:
    """Each beam is lost over the gap and for the reacquisition time after its last lost ping."""
    spec, height = make_spec(propagation=False, reacquisition_time=again), 10.0
    time, reading = measure_pings(
        spec, AcceleratedMotion((0.0, 0.0, height), (5.0, 0.0, 0.0)), make_trench(), 700, 100.0
    )
    reach = height * math.tan(math.radians(30.0))
    for k, offset in enumerate((reach, 0.0, -reach, 0.0)):
        x = 5.0 * time + offset
        lost = (x > 10.0) & (x < 20.0)
        gone, expected = -math.inf, []
        for t, into in zip(time.tolist(), lost.tolist(), strict=True):
            gone = t if into else gone
            expected.append(not into and t >= gone + again - 1e-9)
        assert (reading.arrays["beam_valid"][:, k] == 1.0).tolist() == expected
        assert 200 < sum(expected) < 510
    assert np.array_equal(reading.valid, reading.arrays["num_good_beams"] >= 3.0)


@pytest.mark.compiled
@pytest.mark.requirement("GAP-9")
def test_dropouts_start_the_reacquisition_time() -> None:
    """A beam has lock if the reacquisition time contains no dropout: a share (1 - p)^(m + 1) of the pings."""
    count, p, ticks = 4_000 if INTERPRETED else 40_000, 0.02, 7
    spec = make_spec(propagation=False, dropout_probability=p, reacquisition_time=(ticks - 0.5) / 100.0)
    _, reading = measure_pings(spec, AcceleratedMotion(), make_bed(), count, 100.0)
    valid, q = reading.arrays["beam_valid"], (1.0 - p) ** ticks
    # Pings within `ticks` share draws: their covariances q^2 ((1 - p)^-(ticks - j) - 1) add to the variance.
    spread = q * (1.0 - q) + 2.0 * sum((1.0 - p) ** (ticks + j) - q * q for j in range(1, ticks))
    off = (valid.mean(axis=0) - q) / math.sqrt(spread / count)
    assert float(off @ off) < chi2.isf(FALSE_ALARM, 4)


# long-term velocity


@dataclass(frozen=True)
class WanderingMotion:
    """A frame at a fixed position with a velocity (m/s) per tick."""

    velocity: FloatArray
    rate: float

    @property
    def end(self) -> float:
        return math.inf

    def at(self, time: AnyArray) -> MotionBlock:
        rows, index = np.ones((time.shape[0], 1)), np.rint(time * self.rate).astype(int)
        zero = rows * np.zeros(3)
        return MotionBlock(rows * [0.0, 0.0, 20.0], rows * [1.0, 0.0, 0.0, 0.0], self.velocity[index], zero, zero, zero)


@pytest.mark.compiled
@pytest.mark.requirement("GAP-3")
def test_long_term_velocity_covariance_matches_its_errors() -> None:
    """Over 1000 random walks of the declared density, e^T P^-1 e is chi-squared at several pings."""
    runs, count, rate, density, offset, scale = 1000, 25, 4.0, 0.05, 0.004, 0.002
    spec = make_spec(
        propagation=False,
        bottom=TrackErrors(Noise(stddev=0.02), long_term_offset=offset, long_term_scale=scale),
        long_term=LongTermFilter(density, offset, scale),
    )
    ticks, rng = Ticks(np.arange(count, dtype=np.int64), rate), np.random.default_rng(11)
    walks = np.cumsum(rng.normal(size=(runs, count, 3)) * density / math.sqrt(rate), axis=1) + [5.0, 0.5, -0.1]
    shown = (0, 1, 5, 24)
    sums, single = dict.fromkeys(shown, 0.0), 0.0
    for run in range(runs):
        source = Draws(spec.processes(), 6, (run, "dvl"))
        ideal = spec.ideal(WanderingMotion(walks[run], rate), make_bed(), ticks)
        _, measured = spec.measure(spec.init(source.initial), ticks, ideal, source.take(count))
        error = measured.arrays["long_term_velocity"] - walks[run]
        for k in shown:
            sums[k] += float(error[k] @ np.linalg.solve(measured.arrays["long_term_covariance"][k], error[k]))
        single += float(((measured.arrays["velocity"][-1] - walks[run, -1]) ** 2).sum() - (error[-1] ** 2).sum())
    for k in shown:
        alarm = 0.5 * FALSE_ALARM / len(shown)
        assert chi2.ppf(alarm, 3 * runs) < sums[k] < chi2.isf(alarm, 3 * runs)
    assert single > 0.0  # nearer to the truth than single pings


@pytest.mark.requirement("LIV-1")
@pytest.mark.requirement("GAP-2")
def test_live_steps_may_be_shorter_than_the_travel_time() -> None:
    velocity, rate, errors = (1.2, -0.4, 0.1), 5.0, []
    spec = make_spec(bottom=TrackErrors(Noise(stddev=0.01)), processing_time=0.02, maximum_range=60.0)
    mounted = MountedSensor("auv::base::dvl", spec, "auv", "auv::base", rate, topic="/dvl")
    model = Model("auv", (Link("auv::base"),), "auv::base")
    for step in (0.2, 0.004):
        world = World("sea", (model,), (mounted,), environment=make_bed(), max_step_size=step)
        at = [
            (n * step, tuple(p + n * step * v for p, v in zip((3.0, 2.0, 30.0), velocity, strict=True)))
            for n in range(round(4.0 / step) + 1)
        ]
        states = [ns.State(Pose((x, y, z)), velocity) for _, (x, y, z) in at]
        sim = ns.live(world, seed=4, driven={"auv": states[0]})
        found = [reading for state in states for reading in sim.step({"auv": state}).readings.values()]
        assert [bool(reading.emitted[0]) for reading in found] == [False] + [True] * 20  # no echo has returned at 0
        errors.append(
            [
                (reading.time[0], reading["time_of_validity"][0], *reading["velocity"][0], reading["altitude"][0])
                for reading in found[1:]
            ]
        )
    assert np.array(errors[0]) == pytest.approx(np.array(errors[1]), rel=1e-12, abs=1e-12)
    time, about, *_, altitude = np.array(errors[1]).T
    back = time - 0.02
    slant = (30.0 + velocity[2] * back) * SLANT  # m, of each of four beams at the return of the echo
    assert about == pytest.approx(back - slant / 1500.0, abs=1e-12)
    assert altitude == pytest.approx(30.0 + velocity[2] * about, abs=1e-9)

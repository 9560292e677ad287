"""Live runs: what a step releases, and a caller in the loop."""

from __future__ import annotations

import gc
import math
import pickle
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense import stepping
from navsense.errors import MotionError, SimulationError, UnknownNameError
from navsense.motion.base import MotionBlock
from navsense.motion.driven import State
from navsense.motion.still import Still
from navsense.motion.trajectory import waypoints
from navsense.noise.channel import Noise
from navsense.pose import Pose, from_rpy
from navsense.sensors import Imu, Magnetometer
from navsense.testing import witness_world
from navsense.typing import Times
from navsense.world import World

IMU, MAG = "robot::arm::imu", "robot::arm::mag"


def world(step: float = 0.001, **rates: float) -> World:
    base = witness_world(("imu", Imu.witness()), ("mag", Magnetometer.witness()))
    sensors = tuple(replace(sensor, rate=rates.get(sensor.name[-3:], sensor.rate)) for sensor in base.sensors)
    return replace(base, sensors=sensors, max_step_size=step)


@pytest.mark.requirement("LIV-1")
@pytest.mark.parametrize("step", [0.001, 0.004, 0.0333, 0.25])
def test_any_step_releases_the_batch_runs_samples(step: float) -> None:
    rates = {"imu": 333.0, "mag": 7.0}
    batch = ns.simulate(world(step, **rates), 2.0, seed=6)
    released: dict[str, list[ns.Reading]] = {IMU: [], MAG: []}
    with ns.live(world(step, **rates), seed=6) as sim:
        while sim.time < 2.0 + step:
            for name, reading in sim.step().readings.items():
                assert sim.time - step - 1e-9 < reading.time[0] <= reading.time[-1] <= sim.time
                released[name].append(reading)
    for name, parts in released.items():
        count = batch[name].time.size
        for array in batch[name]:
            joined = np.concatenate([part[array] for part in parts])[:count]
            assert joined.tobytes() == batch[name][array].tobytes()
        errors = np.concatenate([part.clock_error for part in parts])[:count]
        assert errors.tobytes() == batch[name].clock_error.tobytes()


@pytest.mark.requirement("LIV-1")
@pytest.mark.parametrize("ahead", [1, 3])
def test_how_far_ahead_is_measured_changes_no_bit(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sample at a time is how a driven robot is stepped."""
    batch = ns.simulate(world(0.007, imu=500.0), 1.0, seed=6)[IMU]
    monkeypatch.setattr(stepping, "AHEAD", ahead)
    parts = [step.readings[IMU] for step, _ in zip(ns.live(world(0.007, imu=500.0), seed=6), range(144), strict=False)]
    for array in batch:
        joined = np.concatenate([part[array] for part in parts])[: batch.time.size]
        assert joined.tobytes() == batch[array].tobytes()


def test_a_live_run_stops_with_its_motion() -> None:
    motion = waypoints((0.0, 0.5), [Pose(), Pose((1.0, 0.0, 0.0))])
    base = world(0.01, imu=100.0)
    ending = replace(base, models=(replace(base.models[0], motion=motion),))
    steps = list(ns.live(ending))
    assert steps[-1].time == 0.5
    assert sum(step.readings[IMU].time.size for step in steps) == 51


def test_a_step_past_the_end_of_the_motion_is_an_error_and_changes_nothing() -> None:
    motion = waypoints((0.0, 0.5), [Pose(), Pose((1.0, 0.0, 0.0))])
    base = world(0.01, imu=100.0, mag=100.0)
    sim = ns.live(replace(base, models=(replace(base.models[0], motion=motion),)))
    for _ in range(51):
        sim.step()
    for _ in range(2):
        with pytest.raises(MotionError, match=r"0.51; must be from 0 to 0.5 s"):
            sim.step()
    assert sim.time == 0.5
    assert sim.sensor(IMU).reading is not None
    assert sim.sensor(IMU).reading.time[-1] == 0.5


def test_a_callers_own_motion_is_never_asked_for_the_future() -> None:
    class Present:
        """Knows only instants up to now."""

        end = math.inf
        now = 0.0

        def at(self, time: Times) -> MotionBlock:
            assert time.max() <= self.now
            return Still(Pose()).at(time)

    present = Present()
    sim = ns.live(world(0.1, imu=100.0, mag=1.0), motion={"robot": present})
    for n in range(30):
        present.now = n / 10.0
        sim.step()


@pytest.mark.requirement("TRU-1")
@pytest.mark.parametrize("step", [0.001, 0.011])
def test_live_truth_is_read_only(step: float) -> None:
    sim = ns.live(world(step, imu=3000.0))
    for _ in range(40):
        for reading in sim.step().readings.values():
            for array in (*reading.truth.values(), reading.time):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 0.0


@pytest.mark.requirement("LIV-1")
def test_sensors_of_one_rate_are_measured_at_the_same_ticks() -> None:
    sim = ns.live(world(0.01, imu=100.0, mag=100.0), driven=["robot"])
    at_rest, seen = {"robot": State(Pose())}, []
    for n in range(5):
        released = sim.step(at_rest).readings
        assert released[IMU].time is released[MAG].time
        assert released[IMU].time.tolist() == [n / 100.0]
        seen.append(released[IMU].time)
    assert [time.tolist() for time in seen] == [[n / 100.0] for n in range(5)]  # nothing is written over


@pytest.mark.requirement("LIV-1")
def test_a_long_live_run_keeps_no_instants_of_steps_that_are_gone() -> None:
    sim = ns.live(world(0.01, imu=100.0, mag=100.0), driven=["robot"])
    at_rest = {"robot": State(Pose())}
    seen = [weakref.ref(sim.step(at_rest).readings[IMU].time) for _ in range(20)]
    gc.collect()
    assert seen[-1]() is not None
    assert [ref() for ref in seen[:-2]] == [None] * 18


@pytest.mark.requirement("LIV-1")
def test_the_units_of_a_live_reading_are_nobodys_to_change() -> None:
    """They are the same mapping for every reading, and go where a reading goes."""
    sim = ns.live(world(0.01), seed=1)
    given = sim.step().readings[IMU]
    unit: Any = given.unit
    assert unit == {output.name: output.unit for output in sim.sensor(IMU).mounted.spec.outputs}
    with pytest.raises(TypeError):
        unit["angular_velocity"] = "deg/s"
    carried = pickle.loads(pickle.dumps(given))  # noqa: S301  # our own
    assert carried.unit == unit == sim.step().readings[IMU].unit
    assert repr(unit) == repr(dict(unit))
    assert len(unit) == len(given)


@pytest.mark.requirement("LIV-1")
def test_a_state_that_is_no_rotation_is_refused() -> None:
    for rotation in ((2.0, 0.0, 0.0, 2.0), (0.0, 0.0, 0.0, 0.0)):
        with pytest.raises(MotionError, match="length of the pose's quaternion"):
            ns.live(world(), driven={"robot": State(Pose(rotation=rotation))})
        sim = ns.live(world(), driven=["robot"])
        with pytest.raises(MotionError, match="length of the pose's quaternion"):
            sim.step({"robot": State(Pose(rotation=rotation))})


@pytest.mark.requirement("LIV-1")
def test_the_documents_accessors_on_live_sensors() -> None:
    sim = ns.live(world(), seed=1)
    field = sim.world.environment.magnetic_field.at(np.zeros((1, 3)), np.zeros(1))[0]
    assert field.tolist() == [5.5645e-6, 22.8758e-6, -42.3884e-6]
    with pytest.raises(SimulationError, match="after its first reading"):
        _ = sim.sensor(IMU).clock_time
    step = sim.step()
    assert step.time == 0.0
    assert set(step.readings) == {IMU, MAG}
    reading = step.readings[IMU]
    assert sim.sensor(IMU).reading is reading
    assert sim.sensor(IMU).clock_time == reading.time[0] + reading.clock_error[0]
    assert sim.sensor(IMU).clock.time(0.0) == sim.sensor(IMU).clock_time
    assert sim.clock("robot::base::clock").error(np.zeros(2)).shape == (2,)
    with pytest.raises(UnknownNameError, match="sensor: nose"):
        sim.sensor("nose")
    with pytest.raises(UnknownNameError, match="clock: sundial"):
        sim.clock("sundial")
    sim.close()
    with pytest.raises(SimulationError, match="is closed"):
        sim.step()
    assert list(sim) == []


def circling(time: float) -> State:
    """Two metres around the origin at 0.5 rad/s, facing along the path."""
    angle = 0.5 * time
    pose = Pose((2.0 * math.cos(angle), 2.0 * math.sin(angle), 1.0), from_rpy(0.0, 0.0, angle + math.pi / 2))
    return State(pose, (-math.sin(angle), math.cos(angle), 0.0))


@pytest.mark.requirement("LIV-1")
@pytest.mark.parametrize("step", [0.01, 0.001])
def test_a_caller_in_the_loop_drives_the_robot(step: float) -> None:
    """A circle given state by state: v^2 / r = 0.5 towards the centre, to the stated order of the step."""
    base = witness_world(("imu", Imu()))
    sensor = replace(base.sensors[0], link="robot::base", pose=Pose(), rate=100.0)
    driven = replace(base, sensors=(sensor,), max_step_size=step)
    sim = ns.live(driven, driven={"robot": circling(0.0)})
    for n in range(int(1.0 / step) + 1):
        reading = sim.step({"robot": circling(n * step)}).readings.get(IMU)
        if reading is not None and n:
            force, rate = reading["linear_acceleration"][-1], reading["angular_velocity"][-1]
            assert np.allclose(force, [0.0, 0.5, 9.8], atol=0.5 * 0.5 * step + 1e-12)
            assert np.allclose(rate, [0.0, 0.0, 0.5], atol=1e-12)
            heading = 2.0 * math.atan2(reading["orientation"][-1][3], reading["orientation"][-1][0])
            assert heading == pytest.approx(0.5 * n * step, abs=1e-9)


def test_driven_models_are_driven_each_step() -> None:
    sim = ns.live(world(), driven=["robot"])
    with pytest.raises(SimulationError, match=r"states of a step: \[\]; must be those of the driven models: robot"):
        sim.step()
    sim.step({"robot": circling(0.0)})
    with pytest.raises(MotionError, match="must be 3 and 4 finite numbers"):
        sim.step({"robot": State(Pose((math.nan, 0.0, 0.0)))})
    with pytest.raises(SimulationError, match=r"driven model|model: boat"):
        ns.live(world(), driven=["boat"])


def test_a_still_world_steps_for_ever() -> None:
    noise = Noise(stddev=1e-3)
    base = witness_world(("imu", Imu(noise, noise, noise)))
    still = replace(base, models=(replace(base.models[0], motion=None),))
    sim = ns.live(still)
    last = next(step for count, step in enumerate(sim) if count == 500)
    assert last.time == 0.5


@pytest.mark.requirement("DVU-4")
def test_a_sensor_is_switched_off_and_on_while_it_runs() -> None:
    """What it reads when it is on again is what it would have read: switching draws nothing."""
    batch, sim, parts = ns.simulate(world(), 0.1, seed=3)[MAG], ns.live(world(), seed=3), []
    for step in sim:
        if step.time >= 0.1:
            break
        parts += [step.readings[MAG]] if MAG in step.readings else []
        sim.sensor(MAG).switch(on=not 0.03 <= step.time < 0.07)
    told = stepping.joined(parts)
    assert np.array_equal(told.emitted, ~((told.time > 0.03) & (told.time <= 0.07)))
    assert np.array_equal(told["field"], batch["field"])


@pytest.mark.requirement("DVU-4")
def test_a_sensor_that_is_off_at_the_start_emits_nothing_until_it_is_switched_on() -> None:
    """In a batch it stays off."""
    base = world()
    off = replace(base, sensors=tuple(replace(sensor, is_on=False) for sensor in base.sensors))
    assert not ns.simulate(off, 0.1, seed=3)[MAG].emitted.any()
    sim = ns.live(off, seed=3)
    first = sim.step().readings[MAG]
    sim.sensor(MAG).switch(on=True)
    second = next(step.readings[MAG] for step in sim if MAG in step.readings)
    assert not first.emitted.any()
    assert second.emitted.all()

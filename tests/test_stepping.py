"""Live runs: what a step releases, and a caller in the loop."""

from __future__ import annotations

import gc
import math
import pickle
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import MotionError, SimulationError, UnknownNameError
from navsense.core.pose import Pose, from_rpy
from navsense.core.readings import join_readings
from navsense.core.typing import Times
from navsense.motion.base import MotionBlock
from navsense.motion.driven import State
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import waypoints
from navsense.noise.specification import Noise
from navsense.sensors import Altimeter, Imu, Magnetometer
from navsense.simulation import live_run
from navsense.testing import example_world
from navsense.world import Link, World

IMU, MAG = "robot::arm::imu", "robot::arm::mag"


def world(step: float = 0.001, **rates: float) -> World:
    base = example_world(("imu", Imu.example_spec()), ("mag", Magnetometer.example_spec()))
    sensors = tuple(replace(sensor, rate=rates.get(sensor.name[-3:], sensor.rate)) for sensor in base.sensors)
    return replace(base, sensors=sensors, max_step_size=step)


@pytest.mark.requirement("LIV-1")
@pytest.mark.parametrize("step", [0.001, 0.004, 0.0333, 0.25])
def test_any_step_size_releases_the_samples_of_the_batch_run(step: float) -> None:
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
def test_look_ahead_does_not_change_readings(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sample at a time is how a driven robot is stepped."""
    batch = ns.simulate(world(0.007, imu=500.0), 1.0, seed=6)[IMU]
    monkeypatch.setattr(live_run, "PREFETCH", ahead)
    parts = [step.readings[IMU] for step, _ in zip(ns.live(world(0.007, imu=500.0), seed=6), range(144), strict=False)]
    for array in batch:
        joined = np.concatenate([part[array] for part in parts])[: batch.time.size]
        assert joined.tobytes() == batch[array].tobytes()


def test_live_run_stops_with_its_motion() -> None:
    motion = waypoints((0.0, 0.5), [Pose(), Pose((1.0, 0.0, 0.0))])
    base = world(0.01, imu=100.0)
    ending = replace(base, models=(replace(base.models[0], motion=motion),))
    steps = list(ns.live(ending))
    assert steps[-1].time == 0.5
    assert sum(step.readings[IMU].time.size for step in steps) == 51


def test_step_past_the_end_of_the_motion_is_an_error_and_changes_nothing() -> None:
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


def test_custom_motion_is_not_queried_for_future_times() -> None:
    class Present:
        """Knows only instants up to now."""

        end = math.inf
        now = 0.0

        def at(self, time: Times) -> MotionBlock:
            assert time.max() <= self.now
            return Stationary(Pose()).at(time)

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
            for array in (*reading.ideal.values(), reading.time):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 0.0


@pytest.mark.requirement("LIV-1")
def test_sensors_of_one_rate_are_measured_at_the_same_ticks() -> None:
    sim = ns.live(world(0.01, imu=100.0, mag=100.0), driven=["robot"])
    at_rest, times = {"robot": State(Pose())}, []
    for n in range(5):
        released = sim.step(at_rest).readings
        assert released[IMU].time is released[MAG].time
        assert released[IMU].time.tolist() == [n / 100.0]
        times.append(released[IMU].time)
    assert [time.tolist() for time in times] == [[n / 100.0] for n in range(5)]  # nothing is written over


@pytest.mark.requirement("LIV-1")
def test_long_live_run_frees_past_instants() -> None:
    sim = ns.live(world(0.01, imu=100.0, mag=100.0), driven=["robot"])
    at_rest = {"robot": State(Pose())}
    references = [weakref.ref(sim.step(at_rest).readings[IMU].time) for _ in range(20)]
    gc.collect()
    assert references[-1]() is not None
    assert [ref() for ref in references[:-2]] == [None] * 18


@pytest.mark.requirement("LIV-1")
def test_live_reading_units_are_read_only() -> None:
    """They are the same mapping for every reading, and go where a reading goes."""
    sim = ns.live(world(0.01), seed=1)
    reading = sim.step().readings[IMU]
    unit: Any = reading.unit
    assert unit == {output.name: output.unit for output in sim.sensor(IMU).mounted.spec.outputs}
    with pytest.raises(TypeError):
        unit["angular_velocity"] = "deg/s"
    carried = pickle.loads(pickle.dumps(reading))  # noqa: S301  # our own
    assert carried.unit == unit == sim.step().readings[IMU].unit
    assert repr(unit) == repr(dict(unit))
    assert len(unit) == len(reading)


@pytest.mark.requirement("LIV-1")
def test_live_sensor_accessors_of_the_documentation() -> None:
    sim = ns.live(world(), seed=1)
    field = sim.world.environment.magnetic_field.at(np.zeros((1, 3)), np.zeros(1))[0]
    assert field.tolist() == [5.5645e-6, 22.8758e-6, -42.3884e-6]
    with pytest.raises(SimulationError, match="after the first reading"):
        _ = sim.sensor(IMU).clock_time
    with pytest.raises(SimulationError, match="is available after the first published sample"):
        sim.sensor(IMU).get("angular_velocity")
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
def test_closed_loop_caller_drives_the_robot(step: float) -> None:
    """A circle given state by state: v^2 / r = 0.5 towards the centre, to the stated order of the step."""
    base = example_world(("imu", Imu()))
    sensor = replace(base.sensors[0], link="robot::base", pose=Pose(), rate=100.0)
    driven = replace(base, sensors=(sensor,), max_step_size=step)
    sim = ns.live(driven, driven={"robot": circling(0.0)})
    for n in range(int(1.0 / step) + 1):
        reading = sim.step({"robot": circling(n * step)}).readings.get(IMU)
        if reading is not None and n:
            force, rate = reading["linear_acceleration"][-1], reading["angular_velocity"][-1]
            assert np.allclose(force, [0.0, 0.5, 9.8], atol=0.5 * 0.5 * step + 1e-12, rtol=0.0)
            assert np.allclose(rate, [0.0, 0.0, 0.5], atol=1e-12, rtol=0.0)
            heading = 2.0 * math.atan2(reading["orientation"][-1][3], reading["orientation"][-1][0])
            assert heading == pytest.approx(0.5 * n * step, abs=1e-9)


@pytest.mark.requirement("LIV-1", "IMU-2")
@pytest.mark.parametrize("rate", [100.0, 400.0])
def test_driven_run_equals_the_batch_run(rate: float) -> None:
    """Sensors with offsets on a tumbling robot with complete states at each step, from the first sample on."""
    base = replace(example_world(("imu", Imu())), max_step_size=0.01)
    base = replace(base, sensors=(replace(base.sensors[0], rate=rate),))
    motion = base.models[0].motion
    assert motion is not None
    batch = ns.simulate(base, 0.3, seed=6)
    parts: list[ns.Reading] = []
    sim = ns.live(base, seed=6, driven=["robot"])
    for n in range(31):
        p, q, v, w, a, alpha = (array[0].tolist() for array in motion.at(np.array([n / 100.0])).arrays)
        state = State(
            Pose(p, q), v, angular_velocity=w, acceleration=a, angular_acceleration=alpha, angular_frame="body"
        )
        parts.append(sim.step({"robot": state}).readings[IMU])
    driven, ends = join_readings(parts), slice(None, None, round(rate / 100.0))
    for name in ("angular_velocity", "linear_acceleration", "orientation"):
        ideal = batch[IMU].ideal[name]
        found = driven.ideal[name][: len(ideal)]
        assert np.allclose(found[ends], ideal[ends], rtol=1e-12, atol=1e-11)
        assert np.allclose(found, ideal, rtol=0.0, atol=1e-6)  # between the ends h^3 of it


@pytest.mark.requirement("LIV-1", "IMU-2")
@pytest.mark.parametrize("step", [1e-3, 1e-4])
@pytest.mark.parametrize("complete", [True, False])
def test_lever_arm_measures_the_angular_acceleration(step: float, complete: bool) -> None:
    """0.3 m off the axis at 5 rad/s^2: 1.5 m/s^2 along the tangent, 0.3 omega^2 inwards."""
    base = example_world(("imu", Imu()))
    sensor = replace(base.sensors[0], link="robot::base", pose=Pose((0.3, 0.0, 0.0)), rate=1.0 / step)

    def state(t: float) -> State:
        turned = Pose(rotation=from_rpy(0.0, 0.0, 2.0 * t + 2.5 * t * t))
        if not complete:
            return State(turned, (0.0, 0.0, 0.0))
        return State(
            turned,
            (0.0, 0.0, 0.0),
            angular_velocity=(0.0, 0.0, 2.0 + 5.0 * t),
            angular_acceleration=(0.0, 0.0, 5.0),
        )

    sim = ns.live(replace(base, sensors=(sensor,), max_step_size=step), driven=["robot"])
    for n in range(20):
        reading = sim.step({"robot": state(n * step)}).readings[IMU]
        if n >= (0 if complete else 2):  # without angular velocities two steps show the first acceleration
            rate = 2.0 + 5.0 * n * step
            assert np.allclose(reading["angular_velocity"], [0.0, 0.0, rate], rtol=0.0, atol=1e-9)
            assert np.allclose(reading["linear_acceleration"], [-0.3 * rate**2, 1.5, 9.8], rtol=0.0, atol=1e-6)


@pytest.mark.requirement("LIV-1", "ALT-2")
def test_first_driven_step_has_the_angular_velocity() -> None:
    """An altimeter 0.5 m ahead of the axis of a robot that rises at 2 m/s and pitches down at 1 rad/s."""
    base = example_world(("alt", Altimeter()))
    sensor = replace(base.sensors[0], link="robot::base", pose=Pose((0.5, 0.0, 0.0)))
    start = State(velocity=(0.0, 0.0, 2.0), angular_velocity=(0.0, 1.0, 0.0))
    for driven, first in (({"robot": start}, State()), (["robot"], start)):
        sim = ns.live(replace(base, sensors=(sensor,)), driven=driven)
        reading = sim.step({"robot": first}).readings["alt"]
        assert reading["vertical_velocity"].tolist() == [1.5]


@pytest.mark.requirement("LIV-1")
def test_driven_link_carries_its_sensors() -> None:
    """The arm is driven. The mast stays rigid with the base, and so does its surface."""
    base = world(0.01, imu=100.0, mag=100.0)
    (model,) = base.models
    mast, imu, mag = Link("robot::mast", Pose((0.0, 0.0, 1.0))), *base.sensors
    on_mast = replace(imu, name="robot::mast::imu", link=mast.name, spec=Imu(), pose=Pose())
    on_arm = replace(imu, name="robot::arm::gyro", spec=Imu(), pose=Pose((0.0, 0.0, 0.2)))
    made = replace(base, models=(replace(model, links=(*model.links, mast)),), sensors=(on_mast, on_arm, mag))
    sim = ns.live(made, driven=["robot", "arm"])
    for n in range(4):
        t = n / 100.0
        robot = State(Pose((t, 0.0, 0.0)), (1.0, 0.0, 0.0))
        arm = State(
            Pose((5.0, 0.0, 0.0)),
            (0.0, 0.0, 0.0),
            angular_velocity=(3.0, 0.0, 0.0),
            angular_acceleration=(0.0, 4.0, 0.0),
        )
        readings = sim.step({"robot": robot, "robot::arm": arm}).readings
        assert readings["robot::mast::imu"]["angular_velocity"].tolist() == [[0.0, 0.0, 0.0]]
        assert readings["gyro"]["angular_velocity"].tolist() == [[3.0, 0.0, 0.0]]
        assert np.allclose(readings["gyro"]["linear_acceleration"], [[0.8, 0.0, 9.8 - 9.0 * 0.2]], atol=1e-12, rtol=0.0)
    by_ending = sim.step({"robot": robot, "arm": arm})
    assert by_ending.time == 0.04


@pytest.mark.requirement("LIV-1")
def test_model_follows_its_canonical_link_and_other_links_drive_alone() -> None:
    base = example_world(("imu", Imu()), ("mag", Magnetometer()))
    turning = State(angular_velocity=(0.0, 0.0, 1.0))
    for name, rate in (("robot", 1.0), ("robot::base", 1.0), ("robot::arm", 1.0)):
        reading = ns.live(base, driven=[name]).step({name: turning}).readings[IMU]
        assert np.linalg.norm(reading.ideal["angular_velocity"][0]) == pytest.approx(rate, rel=1e-12, abs=0.0)
    still = replace(base, models=(replace(base.models[0], motion=None),))
    arm = base.models[0].pose @ base.models[0].link("robot::arm").pose
    placed = ns.live(still, driven=["arm"]).step({"arm": State(arm)}).readings["mag"]
    turned = ns.live(still, driven=["arm"]).step({"arm": State(Pose(arm.position))}).readings["mag"]
    expected = ns.simulate(still, 0.1)["mag"].ideal["field"][0]
    assert np.allclose(placed.ideal["field"][0], expected, rtol=1e-12, atol=0.0)
    assert not np.allclose(turned.ideal["field"][0], expected, rtol=1e-3, atol=0.0)


def test_every_driven_model_needs_a_state_at_each_step() -> None:
    sim = ns.live(world(), driven=["robot"])
    forgotten = (
        r'states of a step: no state for robot; must .*; call sim\.step\(\{"robot": navsense\.State\(\.\.\.\)\}\)$'
    )
    attempts: list[Callable[[], object]] = [sim.step, lambda: sim.step({}), lambda: next(iter(sim))]
    for attempt in attempts:
        with pytest.raises(SimulationError, match=forgotten):
            attempt()
    sim.step({"robot": circling(0.0)})
    with pytest.raises(MotionError, match=r"velocity of robot: .*; must be 3 finite numbers"):
        sim.step({"robot": State(Pose(), (math.nan, 0.0, 0.0))})
    with pytest.raises(
        SimulationError, match=r"states of a step: \['boat'\]; must be those of the driven models: robot"
    ):
        sim.step({"boat": circling(0.001)})
    assert sim.step({"robot": circling(0.001)}).time == 0.001  # none of these steps was taken


@pytest.mark.parametrize("value", [[0.0, 0.0, 0.0], (), None, 5.0, "robot"])
def test_value_that_is_not_a_state_is_an_error(value: Any) -> None:
    sim = ns.live(world(), driven=["robot"])
    with pytest.raises(MotionError, match=r"state of robot.*; must be a navsense\.State .*; write navsense\.State\("):
        sim.step({"robot": value})
    with pytest.raises(SimulationError, match=r"states of a step: .*; must .*; (write|call) sim\.step"):
        sim.step(value)


@pytest.mark.parametrize(
    ("driven", "message"),
    [
        (["boat"], "driven model or link: boat; must be one of robot, robot::base, robot::arm"),
        (["robot", "base"], "driven: robot::base; is a second name of robot::base; drive it by one name"),
        (["arm", "robot::arm"], "driven: robot::arm; is a second name of robot::arm; drive it by one name"),
        (5, "driven: 5; must be names of models and links, or their states"),
        ({"robot": 5}, "state of robot: 5; must be a navsense.State"),
    ],
)
def test_driving_static_or_unknown_models_is_an_error(driven: Any, message: str) -> None:
    with pytest.raises(ns.NavsenseError, match=message):
        ns.live(world(), driven=driven)


def test_static_model_is_not_driven() -> None:
    base = world()
    static = replace(base, models=(replace(base.models[0], static=True, motion=None),))
    for name in ("robot", "arm"):
        with pytest.raises(SimulationError, match="must not be part of a static model; set <static> to false"):
            ns.live(static, driven=[name])


def test_live_sensors_and_clocks_have_short_names() -> None:
    sim = ns.live(world(), seed=1)
    step = sim.step()
    assert sim.sensor("imu") is sim.sensor("arm::imu") is sim.sensor(IMU)
    assert sim.clock("clock") is sim.clock("robot::base::clock")
    assert step.readings["imu"] is step.readings[IMU]
    with pytest.raises(UnknownNameError, match="sensor with a reading in this step: nose; must be one of robot::arm"):
        _ = step.readings["nose"]


def test_stationary_world_steps_without_end() -> None:
    noise = Noise(stddev=1e-3)
    base = example_world(("imu", Imu(noise, noise, noise)))
    still = replace(base, models=(replace(base.models[0], motion=None),))
    sim = ns.live(still)
    last = next(step for count, step in enumerate(sim) if count == 500)
    assert last.time == 0.5


@pytest.mark.requirement("DVU-4")
def test_sensor_is_switched_off_and_on_during_a_run() -> None:
    """What it reads when it is on again is what it would have read: switching draws nothing."""
    batch, sim, parts = ns.simulate(world(), 0.1, seed=3)[MAG], ns.live(world(), seed=3), []
    for step in sim:
        if step.time >= 0.1:
            break
        parts += [step.readings[MAG]] if MAG in step.readings else []
        sim.sensor(MAG).switch(on=not 0.03 <= step.time < 0.07)
    switched = join_readings(parts)
    assert np.array_equal(switched.emitted, ~((switched.time > 0.03) & (switched.time <= 0.07)))
    assert np.array_equal(switched["field"], batch["field"])


@pytest.mark.requirement("DVU-4")
def test_sensor_emits_nothing_until_switched_on() -> None:
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


@pytest.mark.requirement("LIV-1")
def test_name_ending_selects_the_same_sensor_in_each_step() -> None:
    base = world()
    sensors = [
        replace(base.sensors[0], name=name, rate=rate, topic=name)
        for name, rate in (("a::imu", 50.0), ("b::imu", 20.0))
    ]
    sim = ns.live(replace(base, sensors=tuple(sensors)))
    for _ in range(101):
        readings = sim.step().readings
        with pytest.raises(UnknownNameError, match="imu; is ambiguous: must be one of a::imu, b::imu"):
            _ = readings["imu"]
        assert "imu" not in readings
        assert readings.get("imu") is None
        for name in ("a::imu", "b::imu"):
            if name not in readings:
                with pytest.raises(UnknownNameError, match=f"sensor with a reading in this step: {name}; "):
                    _ = readings[name]
        assert all(reading.name == name for name, reading in readings.items())


def test_angular_state_fields_are_named() -> None:
    with pytest.raises(TypeError, match="positional"):
        State(Pose(), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))  # type: ignore[misc]  # an acceleration or an angular velocity?

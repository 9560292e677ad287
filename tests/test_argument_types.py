"""Arguments of a wrong type raise a navsense error at construction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from navsense.clock import Clock, Discipline, Latency, Oscillator
from navsense.clock.base import ClockStep
from navsense.core.errors import ClockError, SensorError
from navsense.core.pose import Pose, ensure_unit
from navsense.sensors import Imu
from navsense.world import Link, Model, MountedSensor

ANY: Any = None

UNTURNED = (1.0, 0.0, 0.0, 0.0)


def make_sensor(**changed: Any) -> MountedSensor:
    return MountedSensor("m::l::imu", Imu(), "m", "m::l", 10.0, **changed)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Latency("0.1"), "fixed: .*0.1.*; must be a number; write it without quotes"),
        (lambda: Latency(0.1, ANY), "mean: None; must be a number"),
        (lambda: Discipline(interval="1"), "interval: .*must be a number"),
        (lambda: ClockStep("1"), "start of a clock's step: .*must be a number"),
        (lambda: Oscillator(temperature="warm"), r"temperature: warm; must be a number \(K\) or a signal"),
        (lambda: Clock("c", oscillator="x"), "oscillator of clock c: .*x.*; must be of Oscillator or None"),
        (lambda: Clock("c", noise=ANY), "noise of clock c: None; must be of Noise; give an ns.Noise"),
        (lambda: Clock("c", monotonic=1), "monotonic of clock c: 1; must be True or False"),
    ],
)
def test_invalid_clock_argument_types_raise_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ClockError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_sensor(latency=0.1), "latency of sensor m::l::imu: 0.1; must be of Latency or None"),
        (lambda: make_sensor(faults=None), "faults of sensor m::l::imu: None; must be of Faults"),
        (lambda: make_sensor(pose=None), "pose of sensor m::l::imu: None; must be of Pose; give an ns.Pose"),
        (lambda: make_sensor(clock=3), "clock of sensor m::l::imu: 3; must be a text or None"),
        (lambda: make_sensor(is_on="no"), "is_on of sensor m::l::imu: .*no.*; must be True or False"),
        (lambda: Link("m::l", ANY), "pose of link m::l: None; must be of Pose"),
        (lambda: Model("m", (), "m::l", ANY), "pose of model m: None; must be of Pose"),
        (lambda: Model("m", (1,), "m::l"), "links of model m: .*must be a tuple, each of Link"),
        (lambda: Pose("1"), "position of a pose: .*1.*; must be a tuple of 3, each a number"),
        (lambda: Pose((0, 0, 0), (0, 0, 0)), "rotation of a pose: .*; must be a tuple of 4, each a number"),
        (lambda: Pose((0.0, "1", 0.0)), "position of a pose: .*must be a tuple of 3"),
        (lambda: Pose(np.zeros(4)), "position of a pose: .*must be a tuple of 3"),
    ],
)
def test_invalid_mounting_argument_types_raise_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SensorError, match=message):
        make()


def test_pose_accepts_any_numeric_type() -> None:
    assert Pose(np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 0.0, 0.0])) == Pose((1, 2, 3), (1, 0, 0, 0))
    assert make_sensor(pose=Pose([1.0, 2, 3])).pose.inverse().position == (-1.0, -2.0, -3.0)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.int64, int])
def test_pose_stores_tuples_of_floats(kind: Any) -> None:
    numbers = [kind(number) for number in (1, 2, 3, 0, 0, 1, 0)]
    for make in (tuple, list, np.array):
        pose = Pose(make(numbers[:3]), make(numbers[3:]))
        assert (pose.position, pose.rotation) == ((1.0, 2.0, 3.0), (0.0, 0.0, 1.0, 0.0))
        assert {type(number) for number in (*pose.position, *pose.rotation)} == {float}
    assert Pose((1e308, 1e308, 0.0)).position == (1e308, 1e308, 0.0)


@pytest.mark.parametrize(
    ("position", "rotation", "message"),
    [
        ((math.nan, 0.0, 0.0), UNTURNED, "position of a pose: .*must be finite numbers"),
        ((0.0, -math.inf, 0.0), UNTURNED, "position of a pose: .*must be finite numbers"),
        ((0.0, np.float64("nan"), 0.0), UNTURNED, "position of a pose: .*must be finite numbers"),
        ((0.0, 0.0, 0.0), (1.0, math.nan, 0.0, 0.0), "rotation of a pose: .*must be finite numbers"),
        (
            (0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 0.0),
            "length of the quaternion of a pose: 0.0; must be 1; use navsense.core.pose",
        ),
        ((0.0, 0.0, 0.0), (2, 0, 0, 0), "length of the quaternion of a pose: 2.0; must be 1"),
        ((0.0, 0.0, 0.0), (1.0 + 1.01e-9, 0.0, 0.0, 0.0), "length of the quaternion of a pose: 1.00000000101"),
        ((0.0, 0.0, 0.0), (1e200, 0.0, 0.0, 0.0), "length of the quaternion of a pose: 1e.200; must be 1"),
        ((0.0, 0.0, 10**400), UNTURNED, "position of a pose: .*must be a tuple of 3"),
        ((True, 0.0, 0.0), UNTURNED, "position of a pose: .*True.*must be a tuple of 3, each a number$"),
        ((0.0, 0.0), UNTURNED, "position of a pose: .*must be a tuple of 3"),
        (None, UNTURNED, "position of a pose: None; must be a tuple of 3"),
        ((0.0, 0.0, 0.0), np.zeros((4, 1)), "rotation of a pose: .*must be a tuple of 4"),
    ],
)
def test_invalid_pose_raises_error(position: Any, rotation: Any, message: str) -> None:
    with pytest.raises(SensorError, match=message):
        Pose(position, rotation)


def test_pose_accepts_quaternion_of_unit_length_within_tolerance() -> None:
    for length in (1.0 - 0.99e-9, 1.0 + 0.99e-9):
        assert Pose(rotation=(length, 0.0, 0.0, 0.0)).rotation[0] == length
    assert ensure_unit((1.0 + 1e-12, 0.0, 0.0, 0.0))[0] == 1.0 + 1e-12
    assert ensure_unit((2.0, 0.0, 0.0, 0.0)) == UNTURNED

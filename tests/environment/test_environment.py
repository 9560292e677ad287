"""The environment of a robot: its heading and its rotation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from navsense.core import pose
from navsense.core.errors import FieldError
from navsense.core.geodesy import Origin
from navsense.environment.base import Environment
from navsense.environment.gravity import NormalGravity
from navsense.environment.magnetic import WorldMagneticModel
from navsense.environment.signal import Signal

HERE = Origin(0.8, 0.2, 300.0, 0.5)
ON_EARTH = Environment(NormalGravity(HERE), WorldMagneticModel(HERE, 2026.0), HERE)


def test_heading_is_that_of_the_origin() -> None:
    assert ON_EARTH.heading == 0.5
    assert Environment().heading == 0.0


def test_environments_compare_by_value() -> None:
    first, second = (Environment(signals={"motor": Signal.constant(3.0)}) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != Environment()


def test_signals_are_looked_up_by_name() -> None:
    world = Environment(signals={"motor": Signal((0.0, 2.0), (1.0, 9.0))})
    assert world.signal("motor", np.array([1.0])).tolist() == [5.0]
    for surroundings, known in ((world, "motor"), (Environment(), "none")):
        with pytest.raises(FieldError, match=f"signal: heater; must be one of {known}"):
            surroundings.signal("heater", np.zeros(1))


def test_every_field_rotates_about_the_vertical() -> None:
    turn = pose.from_rpy(0.0, 0.0, 0.3)
    turned = ON_EARTH.rotate(turn)
    assert turned.heading == pytest.approx(0.2, abs=1e-15)
    point = (700.0, -400.0, 20.0)
    moved = np.array([pose.rotate(turn, point)])
    for name in ("gravity", "magnetic_field"):
        before = getattr(ON_EARTH, name).at(np.array([point]), np.zeros(1))[0]
        after = getattr(turned, name).at(moved, np.zeros(1))[0]
        assert after == pytest.approx(pose.rotate(turn, tuple(before.tolist())), rel=1e-12, abs=1e-11)


def test_rotation_off_the_vertical_needs_a_world_without_coordinates() -> None:
    tilt = pose.from_rpy(0.3, 0.0, 0.0)
    assert Environment().rotate(tilt).origin is None
    with pytest.raises(FieldError, match="must be about the vertical"):
        ON_EARTH.rotate(tilt)


@pytest.mark.parametrize("yaw", [0.0, 3.0, -math.pi])
def test_headings_are_wrapped_to_one_turn(yaw: float) -> None:
    turned = replace(HERE, heading=-3.0).rotate(pose.from_rpy(0.0, 0.0, yaw))
    assert abs(turned.heading) <= math.pi
    assert math.remainder(turned.heading + 3.0 + yaw, 2.0 * math.pi) == pytest.approx(0.0, abs=1e-12)

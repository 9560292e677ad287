"""Dipoles equal the field of a small coil, are bounded at their radius, and add up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.core import pose
from navsense.core.errors import FieldError
from navsense.core.kernels import INTERPRETED
from navsense.core.typing import AnyArray, Vector
from navsense.environment import magnetic
from navsense.environment.base import FieldSum, UniformField
from navsense.environment.magnetic import Dipole

WRECK = Dipole((3.0, -2.0, 1.0), (20.0, -35.0, 50.0), 0.5)


def evaluate(field: Any, *points: Vector) -> AnyArray:
    return field.at(np.array(points), np.zeros(len(points)))


def compute_coil_field(point: AnyArray, radius: float, current: float, count: int = 400) -> AnyArray:
    """Return the field (3,) T of a round coil about z, by the Biot-Savart sum over short straight segments."""
    angle = (np.arange(count) + 0.5) * (2.0 * math.pi / count)
    place = np.column_stack((radius * np.cos(angle), radius * np.sin(angle), 0.0 * angle))
    step = np.column_stack((-np.sin(angle), np.cos(angle), 0.0 * angle)) * (2.0 * math.pi * radius / count)
    away = point - place
    distance = np.sqrt((away**2).sum(axis=1))[:, None]
    return 1e-7 * current * (np.cross(step, away) / distance**3).sum(axis=0)


@pytest.mark.requirement("MAG-7")
@pytest.mark.parametrize("point", [(0.0, 0.0, 4.0), (3.0, 0.0, 0.0), (1.0, -2.0, 3.0), (-2.0, 1.0, -0.5)])
def test_field_of_a_distant_coil_equals_the_dipole(point: Vector) -> None:
    """The next term of the coil field is smaller by a few (radius / distance)^2, below 1.3e-5."""
    radius, current = 0.008, 7.0
    field = Dipole((0.0, 0.0, 0.0), (0.0, 0.0, current * math.pi * radius**2))
    expected = compute_coil_field(np.array(point), radius, current)
    assert np.abs(evaluate(field, point)[0] - expected).max() < 5e-5 * np.abs(expected).max()


@pytest.mark.requirement("MAG-7")
def test_field_on_the_axis_and_on_the_equator() -> None:
    field = Dipole((1.0, 2.0, 3.0), (0.0, 0.0, 10.0))
    assert evaluate(field, (1.0, 2.0, 5.0))[0] == pytest.approx([0.0, 0.0, 2e-7 * 10.0 / 8.0], rel=1e-14, abs=1e-21)
    assert evaluate(field, (1.0, 4.0, 3.0))[0] == pytest.approx([0.0, 0.0, -1e-7 * 10.0 / 8.0], rel=1e-14, abs=1e-21)


def test_within_its_radius_the_field_is_that_of_the_surface() -> None:
    """The field is bounded and continuous at the radius, and at the centre equals that on the axis."""
    direction = np.array([2.0, -1.0, 2.0]) / 3.0
    centre = np.array(WRECK.position_w)
    inside, surface, outside = evaluate(WRECK, *(tuple(centre + r * direction) for r in (0.1, 0.5, 1.0)))
    assert inside == pytest.approx(surface, rel=1e-13, abs=0.0)
    assert outside == pytest.approx(surface / 8.0, rel=1e-13, abs=0.0)
    moment = np.array(WRECK.moment_w)
    assert evaluate(WRECK, WRECK.position_w)[0] == pytest.approx(2e-7 * moment / 0.5**3, rel=1e-13, abs=0.0)
    assert evaluate(Dipole((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), (0.0, 0.0, 0.0)).tolist() == [[0.0, 0.0, 0.0]]


@given(st.tuples(*[st.floats(-math.pi, math.pi)] * 3))
def test_field_rotates_with_the_world(angles: Vector) -> None:
    turn = pose.from_rpy(*angles)
    field = FieldSum((WRECK, Dipole((0.0, 1.0, 0.0), (1.0, 2.0, -3.0)), UniformField((1e-6, 2e-6, -3e-6))))
    points = ((0.5, 0.25, -1.0), (4.0, 4.0, 0.0), (3.1, -2.0, 1.0))
    moved = (pose.rotate(turn, point) for point in points)
    expected = [pose.rotate(turn, tuple(row)) for row in evaluate(field, *points).tolist()]
    assert evaluate(field.rotate(turn), *moved) == pytest.approx(np.array(expected), rel=1e-9, abs=1e-18)


@pytest.mark.requirement("MAG-7")
def test_field_sum_adds_its_fields() -> None:
    other = UniformField((1e-5, 2e-5, -4e-5))
    point = (1.0, 1.0, 1.0)
    assert np.array_equal(evaluate(FieldSum((other, WRECK)), point), evaluate(other, point) + evaluate(WRECK, point))
    assert evaluate(FieldSum(()), point).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"radius": 0.0}, "radius of a dipole (m): 0.0; must be a number from 1e-06"),
        ({"radius": math.nan}, "radius of a dipole"),
        ({"moment_w": (0.0, math.inf, 0.0)}, "moment_w of a dipole"),
        ({"position_w": (0.0, 0.0, math.nan)}, "position_w of a dipole"),
    ],
)
def test_invalid_dipole_is_an_error(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(FieldError) as caught:
        Dipole(**{"position_w": (0.0, 0.0, 0.0), "moment_w": (0.0, 0.0, 1.0), **changes})
    assert problem in str(caught.value)


def test_values_do_not_depend_on_block_size() -> None:
    points = np.random.default_rng(1).uniform(-4.0, 4.0, (50, 3))
    complete = WRECK.at(points, np.zeros(50))
    parts = [WRECK.at(part, np.zeros(len(part))) for part in (points[:1], points[1:20], points[20:])]
    assert np.array_equal(np.concatenate(parts), complete)


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    points = np.concatenate((np.random.default_rng(2).uniform(-4.0, 4.0, (20, 3)), [WRECK.position_w]))
    plain = np.empty(points.shape)
    interpret(magnetic._write_dipole_field)(*WRECK.position_w, *WRECK.moment_w, WRECK.radius, points, plain)
    assert np.array_equal(WRECK.at(points, np.zeros(len(points))), plain)

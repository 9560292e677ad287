"""What all currents check and turn alike."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from navsense.compiled import kernel
from navsense.errors import FieldError, Where
from navsense.typing import FloatArray, Quaternion, Vectors

Outside = Literal["hold", "error"]
"""Outside the data: the value at its edge, or a `FieldError`."""

FASTEST = 15.0
"""m/s: no current of a sea is as fast; a larger number is in another unit."""

FARTHEST = 1e9
"""m and s: limit of depths, heights and times; what lies outside is a mistake."""

_VERTICAL = 1e-9
_OUTSIDE = ("hold", "error")


def number(
    what: str, value: float, least: float = -FARTHEST, most: float = FARTHEST, where: Where | None = None
) -> float:
    """Return a number; raise `FieldError` unless it is one, finite, from `least` to `most`."""
    sound = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (sound and least <= value <= most):
        raise FieldError(what, value, allowed=f"must be a number from {least:g} to {most:g}", where=where)
    return float(value)


def speed(what: str, value: float, where: Where | None = None) -> float:
    """Return a component of a velocity (m/s). Raises `FieldError` for what no current of a sea has."""
    if not abs(value) <= FASTEST:
        allowed = f"must be a finite number of a size up to {FASTEST:g} m/s"
        raise FieldError(what, value, allowed=allowed, where=where, remedy="check the unit: metres a second are read")
    return float(value)


def heading_of(value: float) -> float:
    """Return a heading (rad). Raises `FieldError` where it is no finite number."""
    return number("heading of a current (rad)", value)


def rule(what: str, value: str) -> None:
    """Raise `FieldError` unless the value is a rule for places or instants outside the data."""
    if value not in _OUTSIDE:
        raise FieldError(what, value, allowed=f"must be one of {', '.join(_OUTSIDE)}")


def angle_about_the_vertical(rotation: Quaternion) -> float:
    """Return the angle (rad) of a rotation about z. Raises `FieldError` for another: the water's surface is level."""
    w, x, y, z = rotation
    if max(abs(x), abs(y)) > _VERTICAL:
        raise FieldError("rotation of a world with a current", rotation, allowed="must be about the vertical")
    return 2.0 * math.atan2(z, w)


def turned(heading: float, rotation: Quaternion) -> float:
    """Return the heading (rad) of a world turned by `rotation`. Raises `FieldError` unless it is about the vertical."""
    return math.remainder(heading - angle_about_the_vertical(rotation), 2.0 * math.pi)


def in_the_world(rows: Iterable[Iterable[float]], heading: float) -> Vectors:
    """Return vectors (n, 3) along the world's axes, from rows along east, north and up; read-only."""
    sine, cosine = math.sin(heading), math.cos(heading)
    turned_rows = [(cosine * e + sine * n, cosine * n - sine * e, u) for e, n, u in rows]
    out = np.array(turned_rows, dtype=np.float64).reshape(-1, 3)
    out.setflags(write=False)
    return out


def column(values: Iterable[float]) -> FloatArray:
    """Return numbers as a read-only array."""
    out = np.array(tuple(values), dtype=np.float64)
    out.setflags(write=False)
    return out


@kernel
def left_of(points: FloatArray, value: float, near: int) -> int:
    """Return the last index of rising points (n,) that is not above `value`, from 0 to n - 2; `near` is a guess."""
    last: int = points.shape[0] - 2
    if near < 0 or near > last:
        near = 0
    if points[near] <= value:
        if near == last or value < points[near + 1]:
            return near
        low, high = near + 1, last
    else:
        low, high = 0, max(near - 1, 0)
    while low < high:
        middle = (low + high + 1) // 2
        if points[middle] <= value:
            low = middle
        else:
            high = middle - 1
    return low

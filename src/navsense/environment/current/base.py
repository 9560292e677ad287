"""Random currents and their realisation in one run. Checks and rotations that all currents share.

A random current is a function of (seed, run, name, time). All callers get the same velocity at a time, in any order. A
specification contains neither seed nor run and has no velocity. `realise` returns the field of one run. It returns
fields without a random part unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.intervals import find_interval
from navsense.core.kernels import kernel
from navsense.core.random_streams import check_run, check_seed
from navsense.core.typing import FloatArray, Quaternion, Vectors
from navsense.core.validation import check_number
from navsense.environment.base import FieldSum, VectorField


@runtime_checkable
class RandomField(Protocol):
    """A field that differs from run to run, or contains such a field."""

    @property
    def random_names(self) -> tuple[str, ...]:
        """The names in the keys of its random streams. They must be unique in a world."""
        ...

    def realise(self, seed: int, run: int) -> VectorField:
        """Return the field (m/s) of one run."""
        ...


def list_random_names(field: VectorField) -> tuple[str, ...]:
    """Return the names of the random currents in a field."""
    if isinstance(field, FieldSum):
        return tuple(name for part in field.fields for name in list_random_names(part))
    return field.random_names if isinstance(field, RandomField) else ()


def realise(field: VectorField, seed: int, run: int = 0) -> VectorField:
    """Return the field (m/s) of one run, a function of position and time.

    Raises `FieldError` for two random currents with the same name, `SimulationError` for an invalid seed or run.
    """
    seed, run = check_seed(seed), check_run(run)
    names = list_random_names(field)
    for name in names:
        if names.count(name) > 1:
            allowed = "must be unique: random currents with one name would be equal"
            raise FieldError("name of a current", name, allowed=allowed, remedy="give each current its own name")
    return _realise(field, seed, run)


def _realise(field: VectorField, seed: int, run: int) -> VectorField:
    if isinstance(field, FieldSum):
        return FieldSum(tuple(_realise(part, seed, run) for part in field.fields))
    return field.realise(seed, run) if isinstance(field, RandomField) else field


def make_unrealised_error(name: str) -> FieldError:
    """Return the error of a velocity query before `realise`."""
    remedy = "use navsense.environment.current.realise(current, seed, run)"
    return FieldError("random current", name, allowed="has a velocity in a run only", remedy=remedy)


OutsideRule = Literal["hold", "error"]
"""Outside the data: "hold" returns the value at the edge, "error" raises `FieldError`."""

MAX_SPEED = 15.0
"""Largest component of a velocity (m/s). No ocean current is faster, so a larger number has another unit."""

MAX_COORDINATE = 1e9
"""Largest coordinate (m) and time (s)."""

_VERTICAL_TOLERANCE = 1e-9
_OUTSIDE_RULES = ("hold", "error")


def check_coordinate(what: str, value: float) -> None:
    """Raise `FieldError` unless a coordinate, time or angle (m, s, rad) is at most `MAX_COORDINATE`."""
    check_number(what, value, -MAX_COORDINATE, MAX_COORDINATE, error=FieldError)


def check_speed(what: str, value: float, row: int | None = None) -> None:
    """Raise `FieldError` if a component of a velocity (m/s) is not finite or above `MAX_SPEED`; `row` is its row."""
    if not abs(value) <= MAX_SPEED:
        allowed = f"must be a finite number of absolute value up to {MAX_SPEED:g} m/s"
        raise FieldError(what, value, row=row, allowed=allowed, remedy="check the unit: the unit is m/s")


def check_outside_rule(what: str, value: str) -> None:
    """Raise `FieldError` unless the value is "hold" or "error"."""
    if value not in _OUTSIDE_RULES:
        raise FieldError(what, value, allowed=f"must be one of {', '.join(_OUTSIDE_RULES)}")


def compute_vertical_rotation_angle(rotation: Quaternion) -> float:
    """Return the angle (rad) of a rotation about z. Raises `FieldError` for another axis: the surface is level."""
    w, x, y, z = rotation
    if max(abs(x), abs(y)) > _VERTICAL_TOLERANCE:
        raise FieldError("rotation of a world with a current", rotation, allowed="must be about the vertical")
    return 2.0 * math.atan2(z, w)


def rotate_heading(heading: float, rotation: Quaternion) -> float:
    """Return the heading (rad) in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
    return math.remainder(heading - compute_vertical_rotation_angle(rotation), 2.0 * math.pi)


def to_world_axes(rows: Iterable[Iterable[float]], heading: float) -> Vectors:
    """Return read-only vectors (n, 3) along the world's axes from rows of east, north and up components."""
    sine, cosine = math.sin(heading), math.cos(heading)
    world_rows = [(cosine * e + sine * n, cosine * n - sine * e, u) for e, n, u in rows]
    out = np.array(world_rows, dtype=np.float64).reshape(-1, 3)
    out.setflags(write=False)
    return out


def make_read_only_array(values: Iterable[float]) -> FloatArray:
    """Return a read-only array."""
    out = np.array(tuple(values), dtype=np.float64)
    out.setflags(write=False)
    return out


@kernel
def interpolate_rows(
    coordinate: FloatArray, scale: float, offset: float, points: FloatArray, values: Vectors, hold: bool, out: Vectors
) -> int:
    """Write the values (n, k) at scale coordinate + offset (n,), linear between `points`.

    Return the first row outside the points, or -1. With `hold`, the value outside is that of the nearest point.
    """
    near, last = 0, points.shape[0] - 1
    for i in range(out.shape[0]):
        x = offset + scale * coordinate[i]
        if not (points[0] <= x <= points[last]):
            if not hold or x != x:
                return i
            x = max(points[0], min(points[last], x))
        if last == 0:
            for k in range(out.shape[1]):
                out[i, k] = values[0, k]
        else:
            near = find_interval(points, x, near)
            fraction = (x - points[near]) / (points[near + 1] - points[near])
            for k in range(out.shape[1]):
                out[i, k] = values[near, k] + fraction * (values[near + 1, k] - values[near, k])
    return -1

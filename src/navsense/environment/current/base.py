"""Currents by chance: a description of one, and the function of place and time that it is in one run.

A random current is a function of (seed, run, name, time): whoever asks gets the same velocity at an instant, in
whatever order and blocks. A description knows neither seed nor run and has no velocity. `realise` gives the field of
one run. Fields without chance are the same in every run, and `realise` leaves them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from navsense.environment.base import FieldSum, VectorField
from navsense.errors import FieldError, Where
from navsense.kernels import kernel
from navsense.random_streams import check_run, check_seed
from navsense.typing import FloatArray, Quaternion, Vectors
from navsense.validation import check_number


@runtime_checkable
class RandomField(Protocol):
    """A field that differs from run to run, or holds one that does."""

    @property
    def random_names(self) -> tuple[str, ...]:
        """Return the names that key its streams: two of one name in a world would be the same current."""
        ...

    def realise(self, seed: int, run: int) -> VectorField:
        """Return the field (m/s) of one run."""
        ...


def list_random_names(field: VectorField) -> tuple[str, ...]:
    """Return the names of the random currents in a field, none for one without chance."""
    if isinstance(field, FieldSum):
        return tuple(name for one in field.fields for name in list_random_names(one))
    return field.random_names if isinstance(field, RandomField) else ()


def realise(field: VectorField, seed: int, run: int = 0) -> VectorField:
    """Return the field (m/s) of one run: a function of place and time, the same whoever asks.

    Raises `FieldError` for two random currents of one name, and `SimulationError` for what is no seed or run.
    """
    seed, run = check_seed(seed), check_run(run)
    names = list_random_names(field)
    for name in names:
        if names.count(name) > 1:
            allowed = "must be the name of one random current: two would share their chance"
            raise FieldError("name of a current", name, allowed=allowed, remedy="give each a name of its own")
    return _realise(field, seed, run)


def _realise(field: VectorField, seed: int, run: int) -> VectorField:
    if isinstance(field, FieldSum):
        return FieldSum(tuple(_realise(one, seed, run) for one in field.fields))
    return field.realise(seed, run) if isinstance(field, RandomField) else field


def unrealised_error(name: str) -> FieldError:
    """Return the error of a random current that is asked for a velocity before `realise`."""
    return FieldError(
        "random current",
        name,
        allowed="has a velocity in a run only",
        remedy="ask navsense.environment.current.realise(current, seed, run)",
    )


OutsideRule = Literal["hold", "error"]
"""Outside the data: the value at its edge, or a `FieldError`."""

MAX_SPEED = 15.0
"""m/s: no current of a sea is as fast; a larger number is in another unit."""

MAX_COORDINATE = 1e9
"""m and s: limit of depths, heights and times; what lies outside is a mistake."""

_VERTICAL = 1e-9
_OUTSIDE_RULES = ("hold", "error")


def check_coordinate(what: str, value: float) -> float:
    """Return a coordinate, time or angle (m, s, rad). Raises `FieldError` unless it is at most `MAX_COORDINATE`."""
    return check_number(what, value, -MAX_COORDINATE, MAX_COORDINATE, error=FieldError)


def check_speed(what: str, value: float, where: Where | None = None) -> float:
    """Return a component of a velocity (m/s). Raises `FieldError` for what no current of a sea has."""
    if not abs(value) <= MAX_SPEED:
        allowed = f"must be a finite number of a size up to {MAX_SPEED:g} m/s"
        raise FieldError(what, value, allowed=allowed, where=where, remedy="check the unit: metres a second are read")
    return float(value)


def check_heading(value: float) -> float:
    """Return a heading (rad). Raises `FieldError` where it is no finite number."""
    return check_coordinate("heading of a current (rad)", value)


def check_outside_rule(what: str, value: str) -> None:
    """Raise `FieldError` unless the value is a rule for places or instants outside the data."""
    if value not in _OUTSIDE_RULES:
        raise FieldError(what, value, allowed=f"must be one of {', '.join(_OUTSIDE_RULES)}")


def vertical_rotation_angle(rotation: Quaternion) -> float:
    """Return the angle (rad) of a rotation about z. Raises `FieldError` for another: the water's surface is level."""
    w, x, y, z = rotation
    if max(abs(x), abs(y)) > _VERTICAL:
        raise FieldError("rotation of a world with a current", rotation, allowed="must be about the vertical")
    return 2.0 * math.atan2(z, w)


def rotate_heading(heading: float, rotation: Quaternion) -> float:
    """Return the heading (rad) of a world turned by `rotation`. Raises `FieldError` unless it is about the vertical."""
    return math.remainder(heading - vertical_rotation_angle(rotation), 2.0 * math.pi)


def to_world_axes(rows: Iterable[Iterable[float]], heading: float) -> Vectors:
    """Return vectors (n, 3) along the world's axes, from rows along east, north and up; read-only."""
    sine, cosine = math.sin(heading), math.cos(heading)
    turned_rows = [(cosine * e + sine * n, cosine * n - sine * e, u) for e, n, u in rows]
    out = np.array(turned_rows, dtype=np.float64).reshape(-1, 3)
    out.setflags(write=False)
    return out


def make_read_only_array(values: Iterable[float]) -> FloatArray:
    """Return numbers as a read-only array."""
    out = np.array(tuple(values), dtype=np.float64)
    out.setflags(write=False)
    return out


@kernel
def find_interval(points: FloatArray, value: float, guess: int) -> int:
    """Return the last index of rising points (n,) that is not above `value`, from 0 to n - 2; `near` is a guess."""
    last: int = points.shape[0] - 2
    if guess < 0 or guess > last:
        guess = 0
    if points[guess] <= value:
        if guess == last or value < points[guess + 1]:
            return guess
        low, high = guess + 1, last
    else:
        low, high = 0, max(guess - 1, 0)
    while low < high:
        middle = (low + high + 1) // 2
        if points[middle] <= value:
            low = middle
        else:
            high = middle - 1
    return low

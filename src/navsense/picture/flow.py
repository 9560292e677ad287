"""The current of one run, as a picture shows it: arrows at one height, and columns of water at some instants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from navsense.environment.base import VectorField
from navsense.errors import FieldError, show
from navsense.picture.ground import View
from navsense.typing import FloatArray, Times, Vectors

ARROWS = 12
"""Arrows along the longer side of the view."""

HEIGHTS = 81
"""Points of a column."""

INSTANTS = 5
"""Columns over the time of a run."""


@dataclass(frozen=True, eq=False)
class Arrows:
    """The current `velocity` (n, 3) m/s at places (n, 2) m, all at `height` (m) and t = 0; NaN where none is given.

    `spacing` (m) is how far they are apart.
    """

    place: FloatArray
    velocity: Vectors
    height: float
    spacing: float


@dataclass(frozen=True, eq=False)
class Column:
    """The speed (n,) m/s of the water at heights (n,) m over one place at the instant `time` (s)."""

    time: float
    height: FloatArray
    speed: FloatArray


def velocities(current: VectorField, position: Vectors, time: Times) -> tuple[Vectors, str]:
    """Return the current (n, 3) m/s, NaN where none is given, and the first reason for that."""
    try:
        return np.array(current.at(position, time)), ""
    except FieldError:  # whose row tells of one alone
        pass
    out, reason = np.full(position.shape, math.nan), ""
    for row in range(len(out)):
        try:
            out[row] = current.at(position[row : row + 1], time[row : row + 1])[0]
        except FieldError as error:
            reason = reason or f"{error.quantity}: {show(error.value)}; {error.allowed}"
    return out, reason


def arrows_of(current: VectorField, view: View, height: float) -> Arrows:
    """Return the current over a view at t = 0."""
    spacing = max(view.wide, view.tall) / ARROWS
    columns, rows = max(round(view.wide / spacing), 1), max(round(view.tall / spacing), 1)
    x = view.west + (np.arange(columns) + 0.5) * view.wide / columns
    y = view.south + (np.arange(rows) + 0.5) * view.tall / rows
    place = np.array([(east, north) for north in y for east in x])
    position = np.concatenate((place, np.full((len(place), 1), height)), axis=1)
    return Arrows(place, velocities(current, position, np.zeros(len(place)))[0], height, spacing)


def columns_of(
    current: VectorField, place: Sequence[float], low: float, high: float, last: float
) -> tuple[tuple[Column, ...], str]:
    """Return the water's speed from `low` to `high` (m) over a place (x, y) m, and why it is not given there.

    At t = 0, and at some instants until `last` (s) where it changes.
    """
    height = np.linspace(low, high, HEIGHTS)
    position = np.column_stack((np.full(HEIGHTS, place[0]), np.full(HEIGHTS, place[1]), height))
    found, reason = [], ""
    for time in np.linspace(0.0, last, INSTANTS) if last > 0.0 else np.zeros(1):
        velocity, why = velocities(current, position, np.full(HEIGHTS, time))
        reason = reason or why
        found.append(Column(float(time), height, np.sqrt((velocity**2).sum(axis=1))))
    if all(np.array_equal(one.speed, found[0].speed, equal_nan=True) for one in found):
        found = found[:1]
    return tuple(found), reason

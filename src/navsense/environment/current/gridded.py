"""Currents on a grid in space and time, for example from ocean models, with linear interpolation along four axes.

    v(t, x, y, z) = sum over the 16 corners of a cell of  w_t w_x w_y w_z v_corner,   w the weight along each axis

| space | axes | components of the velocity |
|---|---|---|
| "world" | x, y, z of the world (m) | x, y, z of the world |
| "geodetic" | latitude, longitude (rad), altitude (m above the WGS-84 ellipsoid) | local east, north, up |
| "ecef" | earth-centred x, y, z (m) | local east, north, up |

The grid must contain each combination of its points once. Along an axis with one point, the field is constant with the
rule "hold".

There are three rules outside the grid: `outside_time`, `outside` for the first two axes in space (all three of "ecef")
and `outside_vertical` for the third. "error" raises `FieldError`, "hold" returns the value at the nearest points. The
default is "hold" for the vertical and "error" otherwise. Ocean models rarely extend to the surface and the bed. Away
from the origin, the surface of the flat world is above the ellipsoid.

Latitude, longitude, altitude and the directions of east, north and up are linear within cubes of 16 m, counted from the
world's origin. They are computed at the middle of a cube. With the offset (e, n, u) from there along these directions::

    d phi = n / (M + h),   d lambda = e / ((N + h) cos phi),   d h = u

M and N are the radii of curvature in the meridian and the prime vertical. The error is of order e^2 / 2R: below 0.03 mm
times tan phi. The directions are those of the middle, which rotates a vector by up to 2e-6 rad times tan phi. Within
12 km of a pole, each position is computed on its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.geodesy import ECCENTRICITY_2, SEMI_MAJOR, Origin, ecef_to_geodetic
from navsense.core.inputs import FileKind
from navsense.core.intervals import find_interval
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, IntArray, Quaternion, Times, Vectors
from navsense.environment.current.base import (
    MAX_COORDINATE,
    MAX_SPEED,
    OutsideRule,
    check_coordinate,
    check_outside_rule,
    compute_vertical_rotation_angle,
)
from navsense.environment.tables import add_lines_to_errors, check_not_empty, parse_numbers, read_rows

CUBE_SIZE, HALF_CUBE = 16.0, 8.0
"""Edge of a cube and half of it (m)."""

LINEARISATION_SIZE, CENTRE, GEODETIC, JACOBIAN, ROTATION, HALF_WIDTH = 25, 0, 3, 6, 15, 24
"""Size of the array of a cube, and the offsets in it: middle (m), geodetic coordinates there, their derivatives along
the world's axes (3 x 3), east, north and up along the world's axes (3 x 3), and the range of validity (m) per axis."""

_POLE_COSINE = 2e-3
"""Cosine of the latitude."""


@kernel
def _linearise(frame: FloatArray, x: float, y: float, z: float, linear: FloatArray) -> None:
    """Write the geodetic coordinates, their derivatives and the directions at x, y, z (m)."""
    ex = frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z + frame[0, 3]
    ey = frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z + frame[1, 3]
    ez = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z + frame[2, 3]
    latitude, longitude, altitude = ecef_to_geodetic(ex, ey, ez)
    s, c = math.sin(latitude), math.cos(latitude)
    sine, cosine = math.sin(longitude), math.cos(longitude)
    w = 1.0 - ECCENTRICITY_2 * s * s
    prime_vertical = SEMI_MAJOR / math.sqrt(w)
    meridian = prime_vertical * (1.0 - ECCENTRICITY_2) / w
    linear[CENTRE], linear[CENTRE + 1], linear[CENTRE + 2] = x, y, z
    linear[GEODETIC], linear[GEODETIC + 1], linear[GEODETIC + 2] = latitude, longitude, altitude
    linear[HALF_WIDTH] = HALF_CUBE if c > _POLE_COSINE else 0.0
    for axis in range(3):
        fx, fy, fz = frame[0, axis], frame[1, axis], frame[2, axis]
        outward = cosine * fx + sine * fy
        linear[ROTATION + axis] = cosine * fy - sine * fx
        linear[ROTATION + 3 + axis] = c * fz - s * outward
        linear[ROTATION + 6 + axis] = s * fz + c * outward
        linear[JACOBIAN + axis] = linear[ROTATION + 3 + axis] / (meridian + altitude)
        linear[JACOBIAN + 3 + axis] = linear[ROTATION + axis] / ((prime_vertical + altitude) * c)
        linear[JACOBIAN + 6 + axis] = linear[ROTATION + 6 + axis]


@kernel
def update_linearisation(frame: FloatArray, x: float, y: float, z: float, linear: FloatArray) -> None:
    """Write the cube that contains x, y, z (m) to linear (LINEARISATION_SIZE,), NaN for an invalid position."""
    if not (abs(x) <= MAX_COORDINATE and abs(y) <= MAX_COORDINATE and abs(z) <= MAX_COORDINATE):
        for k in range(ROTATION):
            linear[k] = math.nan
        return
    i, j, k = math.floor(x / CUBE_SIZE), math.floor(y / CUBE_SIZE), math.floor(z / CUBE_SIZE)
    _linearise(frame, (i + 0.5) * CUBE_SIZE, (j + 0.5) * CUBE_SIZE, (k + 0.5) * CUBE_SIZE, linear)
    if not linear[HALF_WIDTH] > 0.0:
        _linearise(frame, x, y, z, linear)
        linear[HALF_WIDTH] = 0.0
        for k in range(9):
            linear[JACOBIAN + k] = 0.0


Space = Literal["world", "geodetic", "ecef"]
Units = Literal["degrees", "radians"]

SPACES = ("world", "geodetic", "ecef")

_FILE_KIND = FileKind("grid of currents", FieldError, "must be a CSV file with a header, in UTF-8")
_AXIS_NAMES = {
    "world": ("time (s)", "x (m)", "y (m)", "z (m)"),
    "geodetic": ("time (s)", "latitude (rad)", "longitude (rad)", "altitude (m)"),
    "ecef": ("time (s)", "x (m)", "y (m)", "z (m)"),
}
_EDGE_TOLERANCE = 1e-9
"""Largest distance beyond the end of an axis due to rounding, relative to the length of the axis."""


@kernel
def _copy_corners(grid: FloatArray, first: int, steps: IntArray, out: FloatArray) -> None:
    """Write the 16 corners of a cell with three components each (48,). Time varies slowest, the third axis fastest."""
    row = 0
    for t in range(2):
        for a in range(2):
            for b in range(2):
                for c in range(2):
                    corner = first + t * steps[0] + a * steps[1] + b * steps[2] + c * steps[3]
                    for k in range(3):
                        out[row + k] = grid[corner + k]
                    row += 3


@kernel
def _interpolate(corners: FloatArray, weights: FloatArray, work: FloatArray) -> None:
    """Write the velocity for the weights (4,) of a cell to work[:3], one axis after the other."""
    weight = weights[0]
    for j in range(24):
        work[j] = corners[j] + weight * (corners[j + 24] - corners[j])
    weight = weights[1]
    for j in range(12):
        work[j] += weight * (work[j + 12] - work[j])
    weight = weights[2]
    for j in range(6):
        work[j] += weight * (work[j + 6] - work[j])
    weight = weights[3]
    for j in range(3):
        work[j] += weight * (work[j + 3] - work[j])


@kernel
def _update_cell(
    axes: FloatArray, starts: IntArray, counts: IntArray, bounds: FloatArray, axis: int, value: float, cell: FloatArray
) -> bool:
    """Write the left point of a coordinate, the ends of its cell and 1 / width to cell[axis]; return false outside."""
    if not bounds[axis, 0] <= value <= bounds[axis, 1]:
        return False
    if counts[axis] == 1:
        cell[axis, 0], cell[axis, 1], cell[axis, 2], cell[axis, 3] = 0.0, bounds[axis, 0], bounds[axis, 1], 0.0
        return True
    points = axes[starts[axis] : starts[axis] + counts[axis]]
    left = find_interval(points, value, int(cell[axis, 0]))
    low, high = points[left], points[left + 1]
    cell[axis, 0], cell[axis, 1], cell[axis, 2], cell[axis, 3] = left, low, high, 1.0 / (high - low)
    return True


@kernel
def _write_velocity(
    grid: FloatArray,
    axes: FloatArray,
    starts: IntArray,
    counts: IntArray,
    bounds: FloatArray,
    frame: FloatArray,
    kind: int,
    position_w: Vectors,
    time: Times,
    out: Vectors,
    failed: FloatArray,
) -> int:
    """Write the velocity (m/s) along the world's axes; return the first row outside the grid, or -1.

    kind: 0 world, 1 geodetic, 2 ecef.
    frame: the grid's axes in the world (3, 3) for world, the origin's frame (3, 4) otherwise.
    failed (2,): receives the axis on which the row is outside, and its coordinate.
    """
    at, weights, corners, v = np.empty(4), np.zeros(4), np.empty(48), np.empty(24)
    cell, steps, stride = np.zeros((4, 4)), np.zeros(4, dtype=np.int64), 3
    for j in range(4):
        steps[3 - j] = stride if counts[3 - j] > 1 else 0
        stride *= counts[3 - j]
        cell[j, 1], cell[j, 2] = math.inf, -math.inf
    middle = 0.5 * (axes[starts[2]] + axes[starts[2] + counts[2] - 1])
    linear = np.full(LINEARISATION_SIZE, math.nan)
    if kind == 0:
        for axis in range(9):
            linear[ROTATION + axis] = frame[axis // 3, axis % 3]
    for i in range(time.shape[0]):
        at[0] = time[i]
        x, y, z = position_w[i, 0], position_w[i, 1], position_w[i, 2]
        if kind == 0:
            for axis in range(3):
                at[1 + axis] = frame[axis, 0] * x + frame[axis, 1] * y + frame[axis, 2] * z
        else:
            dx, dy, dz, reach = x - linear[CENTRE], y - linear[CENTRE + 1], z - linear[CENTRE + 2], linear[HALF_WIDTH]
            if not (-reach <= dx < reach and -reach <= dy < reach and -reach <= dz < reach):
                update_linearisation(frame, x, y, z, linear)
                dx, dy, dz = x - linear[CENTRE], y - linear[CENTRE + 1], z - linear[CENTRE + 2]
            for axis in range(3):
                row = JACOBIAN + 3 * axis
                at[1 + axis] = linear[GEODETIC + axis] + (
                    linear[row] * dx + linear[row + 1] * dy + linear[row + 2] * dz
                )
            if kind == 1 and abs(at[2] - middle) > math.pi:
                at[2] += 2.0 * math.pi if at[2] < middle else -2.0 * math.pi
            if kind == 2 and at[1] == at[1]:
                for axis in range(3):
                    at[1 + axis] = frame[axis, 0] * x + frame[axis, 1] * y + frame[axis, 2] * z + frame[axis, 3]
        is_new_cell = False
        for axis in range(4):
            if not cell[axis, 1] <= at[axis] < cell[axis, 2]:
                if not _update_cell(axes, starts, counts, bounds, axis, at[axis], cell):
                    failed[0], failed[1] = axis, at[axis]
                    return i
                is_new_cell = True
            if counts[axis] > 1:
                weights[axis] = max(0.0, min(1.0, (at[axis] - cell[axis, 1]) * cell[axis, 3]))
        if is_new_cell:
            first = 0
            for axis in range(4):
                first += int(cell[axis, 0]) * steps[axis]
            _copy_corners(grid, first, steps, corners)
        _interpolate(corners, weights, v)
        for axis in range(3):
            out[i, axis] = (
                linear[ROTATION + axis] * v[0] + linear[ROTATION + 3 + axis] * v[1] + linear[ROTATION + 6 + axis] * v[2]
            )
    return -1


@dataclass(frozen=True, eq=False)
class GriddedCurrent:
    """A current on a grid in space and time. The module docstring has the spaces and the rules.

    points: increasing points of time (s) and of the three axes of `space`.
    velocity: (t, a, b, c, 3) m/s.
    origin: the world's origin, required unless `space` is "world".
    heading: rotation of a "world" grid about the vertical (rad).
    outside, outside_vertical, outside_time: rules outside the grid.

    Raises `FieldError` for axes that do not increase, wrong shapes and invalid velocities.

    >>> time, z = np.array([0.0, 3600.0]), np.array([-50.0, 0.0])
    >>> x = y = np.array([0.0, 1000.0])
    >>> velocity = np.zeros((2, 2, 2, 2, 3))
    >>> velocity[1, ..., 0] = 0.5  # m/s along x after an hour
    >>> grid = ns.environment.current.GriddedCurrent((time, x, y, z), velocity, "world")
    >>> grid.at(np.array([[500.0, 500.0, -10.0]]), np.array([1800.0]))
    array([[0.25, 0.  , 0.  ]])
    """

    points: tuple[FloatArray, FloatArray, FloatArray, FloatArray]
    velocity: FloatArray
    space: Space
    origin: Origin | None = None
    heading: float = 0.0
    outside: OutsideRule = "error"
    outside_vertical: OutsideRule = "hold"
    outside_time: OutsideRule = "error"

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        if self.space not in SPACES:
            raise FieldError("space of a grid of currents", self.space, allowed=f"must be one of {', '.join(SPACES)}")
        if self.space != "world" and self.origin is None:
            remedy = "give the world <spherical_coordinates>"
            raise FieldError("origin of the world", "none", allowed="must be given for this grid", remedy=remedy)
        for name in ("outside_time", "outside", "outside_vertical"):
            check_outside_rule(f"{name} of a grid", getattr(self, name))
        check_coordinate("heading of a current (rad)", self.heading)
        for axis, points in enumerate(self.points):
            _check_axis(_AXIS_NAMES[self.space][axis], np.asarray(points, dtype=np.float64), axis, self.space)
        values = np.asarray(self.velocity, dtype=np.float64)
        shape = (*(len(points) for points in self.points), 3)
        if values.shape != shape:
            raise FieldError("shape of a grid of currents", values.shape, allowed=f"must be {shape}")
        invalid = values[~(np.abs(values) <= MAX_SPEED)]
        if invalid.size:
            allowed = f"must be of absolute value up to {MAX_SPEED:g}"
            raise FieldError("velocity of a grid (m/s)", float(invalid[0]), allowed=allowed)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        space: Space,
        position: tuple[str, str, str],
        velocity: tuple[str | None, str | None, str | None],
        time: str | None,
        units: Units = "radians",
        ignore_time: bool = False,
        start: float = 0.0,
        origin: Origin | None = None,
        outside: OutsideRule = "error",
        outside_vertical: OutsideRule = "hold",
        outside_time: OutsideRule = "error",
    ) -> GriddedCurrent:
        """Read a CSV table with a header and one row per point, in any order, as in Gazebo's EnvironmentPreload.

        position: columns of the three axes, latitude before longitude.
        velocity: columns of the east, north and up components (x, y, z for "world"), None for a zero component.
        time: column of the time (s), None for a table without time.
        units: unit of latitude and longitude.
        ignore_time: use the earliest rows at all times.
        start: time of the table at the start of the run (s).

        Raises `FieldError` with file and line for an unreadable file, missing columns, missing or duplicate points, and
        latitudes beyond the poles.
        """
        name = os.fspath(path)
        axes, values = _read_table(name, (time, *position), velocity)
        if space == "geodetic" and units == "degrees":
            axes[1:3] = (np.array([math.radians(angle) for angle in axis.tolist()]) for axis in axes[1:3])
        elif units not in ("degrees", "radians"):
            raise FieldError("units of a grid of currents", units, allowed="must be degrees or radians")
        if ignore_time or time is None:
            axes[0], values, outside_time = np.zeros(1), values[:1], "hold"
        axes[0] = axes[0] - start
        points = (axes[0], axes[1], axes[2], axes[3])
        with add_lines_to_errors(name):
            return cls(points, values, space, origin, 0.0, outside, outside_vertical, outside_time)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` outside the grid if the rule is "error"."""
        out, failed = np.empty((time.shape[0], 3)), np.empty(2)
        kind = SPACES.index(self.space)
        arrays = np.ascontiguousarray(position_w), np.ascontiguousarray(time)  # the kernel is compiled for one layout
        row = _write_velocity(*self._kernel_arrays, kind, *arrays, out, failed)
        if row >= 0:
            raise self._make_outside_error(failed, row)
        return out

    @cached_property
    def _kernel_arrays(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray, FloatArray]:
        """The first six arguments of `_write_velocity`."""
        points = [np.asarray(axis, dtype=np.float64) for axis in self.points]
        counts = np.array([axis.size for axis in points], dtype=np.int64)
        starts = np.concatenate(([0], np.cumsum(counts)))[:-1].astype(np.int64)
        bounds = np.empty((4, 2))
        for axis, (rule, values) in enumerate(zip(self._rule_names, points, strict=True)):
            is_error = getattr(self, rule) == "error"
            margin = _EDGE_TOLERANCE * (values[-1] - values[0]) if is_error else MAX_COORDINATE
            bounds[axis] = values[0] - margin, values[-1] + margin
        values = np.array(self.velocity, dtype=np.float64).reshape(-1)
        return values, np.concatenate(points), starts, counts, bounds, self._frame

    @property
    def _frame(self) -> FloatArray:
        """The origin's frame (3, 4), or the grid's axes in the world (3, 3)."""
        if self.origin is not None and self.space != "world":
            return np.array(self.origin.ecef_transform)
        s, c = math.sin(self.heading), math.cos(self.heading)
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    @property
    def _rule_names(self) -> tuple[str, str, str, str]:
        """The field with the rule of each axis."""
        return "outside_time", "outside", "outside", "outside" if self.space == "ecef" else "outside_vertical"

    def _make_outside_error(self, failed: FloatArray, row: int) -> FieldError:
        axis = int(failed[0])
        values = self.points[axis]
        allowed = f"must be from {values[0]:.12g} to {values[-1]:.12g}, the span of the grid"
        remedy = f'use {self._rule_names[axis]}="hold" for the nearest points'
        return FieldError(_AXIS_NAMES[self.space][axis], float(failed[1]), row=row, allowed=allowed, remedy=remedy)

    def rotate(self, rotation: Quaternion) -> GriddedCurrent:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        if self.origin is not None and self.space != "world":
            return replace(self, origin=self.origin.rotate(rotation))
        return replace(self, heading=self.heading - compute_vertical_rotation_angle(rotation))


def _check_axis(what: str, values: FloatArray, axis: int, space: Space) -> None:
    """Raise `FieldError` for points of an axis that are missing, do not increase, or are not valid angles."""
    if values.ndim != 1 or values.size == 0:
        raise FieldError(f"{what} of a grid", f"shape {values.shape}", allowed="must be (n,), one at least")
    if not (np.abs(values) <= MAX_COORDINATE).all() or (np.diff(values) <= 0.0).any():
        raise FieldError(f"{what} of a grid", "does not increase", allowed="must be finite and increase")
    limit = (math.inf, 0.5 * math.pi, 2.0 * math.pi, math.inf)[axis]
    if space == "geodetic" and np.abs(values).max() > limit * (1.0 + 1e-12):
        worst = float(values[np.argmax(np.abs(values))])
        remedy = 'for a file in degrees, use units="degrees"'
        raise FieldError(
            f"{what} of a grid", worst, allowed=f"must be of absolute value up to {limit:.6g}", remedy=remedy
        )
    if space == "geodetic" and axis == 2 and values[-1] - values[0] > 2.0 * math.pi:
        raise FieldError(f"{what} of a grid", "spans more than 2 pi", allowed="must span at most 2 pi")


def _find_columns(header: Sequence[str], names: Sequence[str], where: Where) -> list[int]:
    """Return the indices of the named columns. Raises `FieldError` unless each occurs once in the header."""
    for name in names:
        if header.count(name) != 1:
            allowed = f"must occur once in the header, which has {', '.join(header)}"
            remedy = "use the column names of the file"
            raise FieldError("column", name, allowed=allowed, where=where, remedy=remedy)
    return [header.index(name) for name in names]


def _read_table(
    name: str, axes: Sequence[str | None], velocity: Sequence[str | None]
) -> tuple[list[FloatArray], FloatArray]:
    """Return the points of the four axes and the velocity (t, a, b, c, 3) of a file. Raises `FieldError`."""
    (line, header), *table = read_rows(name, _FILE_KIND)
    where = Where(name, line)
    check_not_empty(name, _FILE_KIND, table, header)
    names = [column for column in (*axes, *velocity) if column is not None]
    if not any(velocity):
        raise FieldError("velocity of the grid", "none", allowed="must name one column at least", where=where)
    numbers = parse_numbers(name, table, header, _find_columns(header, names, where))
    columns = dict(zip(names, numbers.T, strict=True))
    zero = np.zeros(len(table))
    coordinates = [columns[axis] if axis is not None else zero for axis in axes]
    points: list[FloatArray] = []
    index, size = np.zeros(len(table), dtype=np.int64), 1
    for values in reversed(coordinates):
        unique, inverse = np.unique(values, return_inverse=True)
        index += size * inverse.reshape(-1)
        points.insert(0, unique)
        size *= unique.size
    lines = [number for number, _ in table]
    _check_complete(name, lines, index, size, points, [axis or "time" for axis in axes])
    out = np.zeros((size, 3))
    for k, column in enumerate(velocity):
        if column is not None:
            values = columns[column]
            bad = np.abs(values) > MAX_SPEED
            if bad.any():
                row = int(np.argmax(bad))
                allowed, where = f"must be of absolute value up to {MAX_SPEED:g} m/s", Where(name, lines[row])
                raise FieldError(column, float(values[row]), allowed=allowed, where=where, remedy="check the unit")
            out[index, k] = values
    return points, out.reshape(*(axis.size for axis in points), 3)


def _check_complete(
    name: str, lines: Sequence[int], index: IntArray, size: int, points: Sequence[FloatArray], axes: Sequence[str]
) -> None:
    """Raise `FieldError` for a duplicate or missing point."""
    order = np.argsort(index, kind="stable")
    duplicates = np.nonzero(np.diff(index[order]) == 0)[0]
    if duplicates.size:
        first, second = (lines[order[duplicates[0] + k]] for k in (0, 1))
        value, where = f"also given in line {first}", Where(name, second)
        raise FieldError("point of the grid", value, allowed="must be given once", where=where)
    if index.size == size:
        return
    shape = " x ".join(str(axis.size) for axis in points)
    missing = np.argmax(np.append(index[order], size) != np.arange(index.size + 1))  # the points are 0 to size - 1
    place = np.unravel_index(missing, tuple(axis.size for axis in points))
    point = ", ".join(f"{axis} {values[k]:g}" for axis, values, k in zip(axes, points, place, strict=True))
    allowed = "must hold each combination of its points"
    remedy, what = f"fill the gaps, the first at {point}", "rows of the grid"
    raise FieldError(what, f"{index.size} for {shape} points", allowed=allowed, where=Where(name), remedy=remedy)

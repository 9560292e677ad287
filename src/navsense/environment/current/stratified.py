"""Currents by depth: tables, factors and the boundary layer over the bed.

    depth = surface - z,   v(depth) = v_i + (depth - depth_i) / (depth_(i+1) - depth_i) (v_(i+1) - v_i)

`outside` is the rule above the first row and below the last row: "hold" returns the nearest row, "error" raises
`FieldError`. A table may have a single row.

`StratifiedGaussMarkovCurrent` adds random variations of speed and direction to each layer, as DAVE does.
`DepthScaledCurrent` multiplies another current by a factor that depends on depth. `BoundaryLayer` reduces another
current towards the bed by a power law:

    v = V (h / H)^n   for 0 < h < H,   V above,   0 at and below the bed;   h = z - bed,  n = 1/7 or 1/10

V is the field outside the layer, H is `thickness`, `bed` is the height of the bed in the world. The mean over the layer
is 1 / (1 + n) V, 7/8 V for n = 1/7. At and below the bed the velocity is zero (no slip).
Source: Prandtl's power law of turbulent boundary layers.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternion, Times, Vector, Vectors
from navsense.core.validation import check_number
from navsense.environment.base import VectorField
from navsense.environment.current.base import (
    OutsideRule,
    check_coordinate,
    check_outside_rule,
    check_speed,
    interpolate_rows,
    list_random_names,
    make_read_only_array,
    make_unrealised_error,
    realise,
    rotate_heading,
    to_world_axes,
)
from navsense.environment.current.gauss_markov import (
    AnyGaussMarkovProcess,
    RandomCurrent,
    RandomCurrentModel,
    check_current_name,
    discretise_all,
    drop_circle_limits,
    make_depth_error,
)
from navsense.environment.tables import (
    TableRow,
    add_lines_to_errors,
    check_cell_count,
    check_not_empty,
    parse_number,
    read_rows,
)

MAX_DEPTH = 12000.0
"""Largest depth (m)."""

MAX_RANDOM_LAYERS = 1000
"""Largest number of layers of a `StratifiedGaussMarkovCurrent`."""

_FILE_KIND = FileKind("table of currents by depth", FieldError, "must be a CSV file of velocities by depth in UTF-8")
_COLUMN_UNITS = {"north": "m/s", "east": "m/s", "up": "m/s", "down": "m/s", "depth": "m"}
_OTHER_UNITS = frozenset("ft feet fathom fathoms kn kt kts knot knots cm cm/s mm mm/s km km/h kmh mph".split())
"""Words in a column's name that are another unit, such as north_knots."""


@kernel
def _apply_power_law(position_w: Vectors, bed: float, thickness: float, exponent: float, out: Vectors) -> int:
    """Multiply vectors (n, 3) by the power law; return the first row with an invalid height, or -1."""
    for i in range(out.shape[0]):
        height = position_w[i, 2] - bed
        if height != height:
            return i
        if height < thickness:
            factor = (height / thickness) ** exponent if height > 0.0 else 0.0
            for axis in range(3):
                out[i, axis] *= factor
    return -1


def _evaluate_layers(
    position_w: Vectors, depths: FloatArray, values: Vectors, surface: float, outside: OutsideRule
) -> Vectors:
    """Return the values (n, k) at positions (n, 3) m. Raises `FieldError` outside the layers if the rule is "error"."""
    out = np.empty((position_w.shape[0], values.shape[1]))
    row = interpolate_rows(position_w[:, 2], -1.0, surface, depths, values, outside == "hold", out)
    if row >= 0:
        raise make_depth_error(depths, surface - float(position_w[row, 2]), row)
    return out


def _check_layers(depths: Sequence[float], values: Sequence[object]) -> None:
    """Raise `FieldError` unless there is a value per depth, and depths increase from 0 to at most `MAX_DEPTH`."""
    if not depths:
        raise FieldError("layers", "none", allowed="must have at least one")
    if len(values) != len(depths):
        counts = f"{len(depths)} and {len(values)}"
        raise FieldError("numbers of depths and values", counts, allowed="must be the same")
    for row, depth in enumerate(depths):
        if not 0.0 <= depth <= MAX_DEPTH:
            allowed = f"must be from 0 to {MAX_DEPTH:g} m, positive downwards"
            raise FieldError("layer depth (m)", depth, row=row, allowed=allowed)
        if row and depth <= depths[row - 1]:
            allowed = f"must be below {depths[row - 1]!r} m, the depth of the row before"
            raise FieldError("layer depth (m)", depth, row=row, allowed=allowed, remedy="sort the rows by depth")


@dataclass(frozen=True)
class StratifiedCurrent:
    """A table of velocities by depth.

    depths: m, positive downwards from the surface.
    velocities: east, north and up components at each depth (m/s).
    surface: height of the surface in the world (m).
    heading: angle from east to the world's x axis (rad).
    outside: rule above the first row and below the last.

    Raises `FieldError` for depths that do not increase or are negative, and for invalid velocities.

    >>> layers = ns.environment.current.StratifiedCurrent((0.0, 50.0), ((0.4, 0.0, 0.0), (0.1, 0.0, 0.0)))
    >>> layers.at(np.array([[0.0, 0.0, -25.0]]), np.zeros(1))
    array([[0.25, 0.  , 0.  ]])
    """

    depths: tuple[float, ...]
    velocities: tuple[Vector, ...]
    surface: float = 0.0
    heading: float = 0.0
    outside: OutsideRule = "hold"

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        _check_layers(self.depths, self.velocities)
        for row, velocity in enumerate(self.velocities):
            for component in velocity:
                check_speed("layer velocity (m/s)", component, row)
        check_coordinate("height of the water's surface (m)", self.surface)
        check_coordinate("heading of a current (rad)", self.heading)
        check_outside_rule("outside of layers", self.outside)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        surface: float = 0.0,
        heading: float = 0.0,
        outside: OutsideRule = "hold",
    ) -> StratifiedCurrent:
        """Read a CSV table in the format of DAVE.

        The last line before the numbers names the columns, with units in brackets: depth (m) and some of north, east,
        up and down (m/s), in any order. A component without a column is zero. Raises `FieldError` with file and line
        for an unreadable file, another unit, a missing value, and rows out of order.
        """
        name = os.fspath(path)
        header, rows = _split_header(name, read_rows(name, _FILE_KIND))
        columns = _parse_columns(header, Where(name, header[0]))
        depths, velocities = [], []
        for line, cells in rows:
            where = Where(name, line)
            filled = cells[: len(columns)]
            check_cell_count([*filled, *filter(None, cells[len(columns) :])], columns, where)
            values = {
                column: parse_number(f"{column} of a layer", text, where)
                for column, text in zip(columns, filled, strict=True)
            }
            depths.append(values["depth"])
            up = values.get("up", 0.0) - values.get("down", 0.0)
            velocities.append((values.get("east", 0.0), values.get("north", 0.0), up))
        with add_lines_to_errors(name, [line for line, _ in rows]):
            return cls(tuple(depths), tuple(velocities), surface, heading, outside)

    @cached_property
    def _arrays(self) -> tuple[FloatArray, Vectors]:
        return make_read_only_array(self.depths), to_world_axes(self.velocities, self.heading)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` outside the layers if the rule is "error"."""
        return _evaluate_layers(position_w, *self._arrays, self.surface, self.outside)

    def rotate(self, rotation: Quaternion) -> StratifiedCurrent:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, heading=rotate_heading(self.heading, rotation))


def _split_header(name: str, rows: list[TableRow]) -> tuple[TableRow, list[TableRow]]:
    """Return the header (the last row before the numbers) and the rows of numbers. Raises `FieldError`."""
    is_number = re.compile(r"[+-]?\.?[0-9]").match
    first = next((row for row, (_, cells) in enumerate(rows) if is_number(cells[0])), len(rows))
    if first == 0:
        allowed = "must name the columns: depth, and north, east, up or down"
        raise FieldError("header of the table", "none", allowed=allowed, where=Where(name, rows[0][0]))
    check_not_empty(name, _FILE_KIND, rows[first:], rows[first - 1][1])
    return rows[first - 1], rows[first:]


def _find_unit(part: str) -> str | None:
    """Return the unit in the name of a column, in brackets or as a word, or None."""
    given = re.search(r"\[([^\]]*)\]", part) or re.search(r"\(([^()]*)\)", part)
    if given:
        return given.group(1).strip()
    words = re.split(r"[^a-z/]+", part.lower())
    return next((word for word in words if word in _OTHER_UNITS), None)


def _parse_columns(header: TableRow, where: Where) -> list[str]:
    """Return the quantity of each column. Raises `FieldError` for an ambiguous header or another unit."""
    parts = [part for part in ",".join(header[1]).split(",") if part.strip()]
    words = []
    for part in parts:
        found = [word for word in _COLUMN_UNITS if re.search(rf"\b{word}", part, re.IGNORECASE)]
        if len(found) != 1 or found[0] in words:
            allowed = "must be one of depth, north, east, up, down, each at most once"
            raise FieldError("column of the table", part.strip(), allowed=allowed, where=where)
        unit = _find_unit(part)
        if unit is not None and unit != _COLUMN_UNITS[found[0]]:
            allowed = f"must be in {_COLUMN_UNITS[found[0]]}"
            raise FieldError(f"unit of {found[0]}", unit, allowed=allowed, where=where, remedy="convert it")
        words.append(found[0])
    if "up" in words and "down" in words:
        raise FieldError("columns of the table", "up, down", allowed="must be one of the two", where=where)
    if "depth" not in words or len(words) < 2:
        raise FieldError("columns of the table", ", ".join(words), allowed="must be depth and a velocity", where=where)
    return words


@dataclass(frozen=True)
class StratifiedGaussMarkovCurrent:
    """Layers whose speed and direction are independent random processes. `realise` returns the field of one run.

    layers: the table. It contains the mean speed and direction of each layer.
    speed: m/s; direction: rad, from north towards east. Their parameters, except for the mean, apply to each layer.
    name: part of the key of the random streams.

    `speed` and `direction` must both be `GaussMarkovProcess`, or both `UuvGaussMarkovProcess`. A `GaussMarkovProcess`
    of a direction whose limits span the full circle has no limits.

    Raises `FieldError` for a layer's speed or direction outside the limits, a vertical velocity, and more than
    `MAX_RANDOM_LAYERS` layers.

    >>> current = ns.environment.current
    >>> layers = current.StratifiedCurrent((0.0, 50.0), ((0.4, 0.0, 0.0), (0.1, 0.0, 0.0)))
    >>> speed = current.GaussMarkovProcess(minimum=0.0, maximum=1.0, correlation_time=600.0, density=0.003)
    >>> random = current.StratifiedGaussMarkovCurrent(layers, speed, current.GaussMarkovProcess())
    >>> random.realise(seed=1, run=0).at(np.array([[0.0, 0.0, -10.0]]), np.zeros(1)).shape
    (1, 3)
    """

    layers: StratifiedCurrent
    speed: AnyGaussMarkovProcess
    direction: AnyGaussMarkovProcess
    name: str = "layers"

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_current_name(self.name)
        if len(self.layers.depths) > MAX_RANDOM_LAYERS:
            allowed = f"must be at most {MAX_RANDOM_LAYERS}"
            raise FieldError("number of random layers", len(self.layers.depths), allowed=allowed)
        discretise_all(self._processes)

    @cached_property
    def _processes(self) -> tuple[AnyGaussMarkovProcess, ...]:
        """The processes of speed and direction of each layer."""
        processes: list[AnyGaussMarkovProcess] = []
        for east, north, up in self.layers.velocities:
            if up != 0.0:
                raise FieldError("vertical velocity of a random layer (m/s)", up, allowed="must be 0")
            direction = math.atan2(east, north) if east or north else self.direction.mean
            processes.append(replace(self.speed, mean=math.sqrt(east * east + north * north)))
            processes.append(replace(drop_circle_limits(self.direction), mean=direction))
        return tuple(processes)

    @property
    def random_names(self) -> tuple[str, ...]:
        """The name in the keys of its random streams."""
        return (self.name,)

    def realise(self, seed: int, run: int) -> RandomCurrent:
        """Return the field (m/s) of one run."""
        coefficients, rate = discretise_all(self._processes)
        table = self.layers
        names = tuple(f"{quantity} {row}" for row in range(len(table.depths)) for quantity in ("speed", "direction"))
        depths, turn = make_read_only_array(table.depths), 0.5 * math.pi - table.heading
        model = RandomCurrentModel(
            self.name, coefficients, names, 2, depths, rate, turn, -1.0, table.surface, table.outside
        )
        return RandomCurrent(model, seed, run)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Raise `FieldError`: use `realise`, a random current has a velocity in a run only."""
        raise make_unrealised_error(self.name)

    def rotate(self, rotation: Quaternion) -> StratifiedGaussMarkovCurrent:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, layers=self.layers.rotate(rotation))


@dataclass(frozen=True)
class DepthScaledCurrent:
    """Another current times a factor by depth.

    field: the current.
    depths: m, positive downwards; factors: the factor at each depth.
    surface: height of the surface in the world (m).
    outside: rule above the first depth and below the last.

    Raises `FieldError` for depths that do not increase, and factors that are not finite.

    >>> surface = ns.environment.UniformField((0.4, 0.0, 0.0))
    >>> scaled = ns.environment.current.DepthScaledCurrent(surface, depths=(0.0, 50.0), factors=(1.0, 0.25))
    >>> scaled.at(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -50.0]]), np.zeros(2))
    array([[0.4, 0. , 0. ],
           [0.1, 0. , 0. ]])
    """

    field: VectorField
    depths: tuple[float, ...]
    factors: tuple[float, ...]
    surface: float = 0.0
    outside: OutsideRule = "hold"

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        _check_layers(self.depths, self.factors)
        for factor in self.factors:
            check_coordinate("factor of a layer", factor)
        check_coordinate("height of the water's surface (m)", self.surface)
        check_outside_rule("outside of layers", self.outside)

    @cached_property
    def _arrays(self) -> tuple[FloatArray, Vectors]:
        return make_read_only_array(self.depths), make_read_only_array(self.factors).reshape(-1, 1)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` outside the layers if the rule is "error"."""
        factors = _evaluate_layers(position_w, *self._arrays, self.surface, self.outside)
        out = np.array(self.field.at(position_w, time))
        out *= factors
        return out

    @cached_property  # isinstance() reads it: without a cache, exponential in nested fields
    def random_names(self) -> tuple[str, ...]:
        """The names of the random currents in the field."""
        return list_random_names(self.field)

    def realise(self, seed: int, run: int) -> DepthScaledCurrent:
        """Return the field (m/s) of one run."""
        return replace(self, field=realise(self.field, seed, run))

    def rotate(self, rotation: Quaternion) -> DepthScaledCurrent:
        """Return the current in a world rotated by `rotation`, as its field allows."""
        return replace(self, field=self.field.rotate(rotation))


@dataclass(frozen=True)
class BoundaryLayer:
    """A current with a boundary layer.

    field: the current outside the layer.
    bed: height of the bed in the world (m).
    thickness: m.
    exponent: n of the power law.

    Raises `FieldError` for a thickness or exponent that is not positive.

    >>> stream = ns.environment.UniformField((0.4, 0.0, 0.0))
    >>> layer = ns.environment.current.BoundaryLayer(stream, bed=-50.0, thickness=10.0)
    >>> layer.at(np.array([[0.0, 0.0, -49.0], [0.0, 0.0, -30.0]]), np.zeros(2)).round(3)
    array([[0.288, 0.   , 0.   ],
           [0.4  , 0.   , 0.   ]])
    """

    field: VectorField
    bed: float
    thickness: float
    exponent: float = 1.0 / 7.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_coordinate("height of the bed (m)", self.bed)
        check_number("thickness of a boundary layer (m)", self.thickness, 1e-3, 12000.0, error=FieldError)
        check_number("exponent of a boundary layer", self.exponent, 1e-3, 1.0, error=FieldError)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` as `field` does, and for an invalid height."""
        out = np.array(self.field.at(position_w, time))
        row = _apply_power_law(position_w, self.bed, self.thickness, self.exponent, out)
        if row >= 0:
            raise FieldError("position (m)", tuple(position_w[row].tolist()), row=row, allowed="must be finite")
        return out

    @cached_property  # isinstance() of a runtime protocol reads it, which would be exponential in nested fields
    def random_names(self) -> tuple[str, ...]:
        """The names of the random currents in the field."""
        return list_random_names(self.field)

    def realise(self, seed: int, run: int) -> BoundaryLayer:
        """Return the field (m/s) of one run."""
        return replace(self, field=realise(self.field, seed, run))

    def rotate(self, rotation: Quaternion) -> BoundaryLayer:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` as `field` does."""
        return replace(self, field=self.field.rotate(rotation))

"""Water below a level surface: temperature, salinity, pressure, density and speed of sound by depth.

    d = surface - z                               depth, z the height in the world
    dp/dd = rho(S, T, p) g(latitude, p)           p the pressure above that of the surface
    c = c(T, S, d or p)                           speed of sound, by one of four formulas or a constant

T and S are linear between the points of a profile and constant above the first and below the last point. A duplicate
depth is a discontinuity. rho is that of EOS-80 (see `seawater`), or a constant density, as in a tank. With a constant
density, g is constant too. The pressure is integrated once between nodes at most 10 m and 1 K apart (fourth-order
Runge-Kutta) and is a cubic Hermite curve between nodes. Its error is below 0.01 Pa, a micrometre of water. There are no
tides and no waves. The pressure at the surface is that of the atmosphere.
Source: UNESCO Technical Papers in Marine Science 44 (1983), and the sources of `seawater`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.field_metadata import NOT_IN_FILE, in_file
from navsense.core.inputs import FileKind
from navsense.core.intervals import find_interval
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray
from navsense.core.validation import check_number
from navsense.environment.seawater import (
    DECIBAR,
    DEFAULT_LATITUDE,
    GRAVITY_GRADIENT,
    IPTS68_SCALE,
    MAX_DEPTH,
    SOUND_SPEED_FORMULAS,
    ZERO_CELSIUS,
    ValidityRange,
    check_density,
    check_depths,
    check_latitude,
    density,
    find_first_outside,
    sound_speed,
    surface_gravity,
    to_celsius,
)
from navsense.environment.signal import Signal, interpolate
from navsense.environment.tables import add_lines_to_errors, read_table

MIN_TEMPERATURE, MAX_TEMPERATURE = ZERO_CELSIUS - 2.0 / IPTS68_SCALE, ZERO_CELSIUS + 40.0 / IPTS68_SCALE
"""Limits of EOS-80 (K), -2 and 40 degC of its temperature scale."""

MAX_SALINITY = 42.0
"""Limit of EOS-80."""

MIN_SOUND_SPEED, MAX_SOUND_SPEED = 100.0, 10000.0
"""Limits of a constant speed of sound (m/s)."""

MAX_SURFACE_HEIGHT = 1e6
"""Largest height or depth of the surface in the world (m)."""

MAX_NODE_SPACING = 10.0
"""Largest distance between nodes of the pressure (m)."""

MAX_NODE_CHANGE = 1.0
"""Largest change of temperature (K) and practical salinity between nodes."""

PROFILE_COLUMNS = ("depth", "temperature", "salinity")
"""Columns of a profile in a file, and attributes of its points in SDF."""

_FILE_KIND = FileKind("profile of the water", FieldError, f"must be a CSV file of {','.join(PROFILE_COLUMNS)} in UTF-8")


@kernel
def _pressure_gradient(salinity: float, temperature: float, pressure: float, gravity: float) -> float:
    """Return rho g (Pa/m) at a pressure (Pa) above that of the surface."""
    rho = density(salinity, to_celsius(temperature), pressure / (10.0 * DECIBAR))
    return rho * (gravity + GRAVITY_GRADIENT * pressure / DECIBAR)


@kernel
def _integrate_pressure(ends: FloatArray, gravity: float, out: FloatArray) -> None:
    """Write depth, pressure, its derivative below that depth and its derivative above the next node, one row per node.

    A row of `ends` is the depth, T and S at the start of a span, and T and S at its end.
    """
    last = ends.shape[0] - 1
    pressure = 0.0
    for i in range(last):
        h = ends[i + 1, 0] - ends[i, 0]
        t0, s0, t1, s1 = ends[i, 1], ends[i, 2], ends[i, 3], ends[i, 4]
        t, s = 0.5 * (t0 + t1), 0.5 * (s0 + s1)
        k1 = _pressure_gradient(s0, t0, pressure, gravity)
        k2 = _pressure_gradient(s, t, pressure + 0.5 * h * k1, gravity)
        k3 = _pressure_gradient(s, t, pressure + 0.5 * h * k2, gravity)
        k4 = _pressure_gradient(s1, t1, pressure + h * k3, gravity)
        out[i, 0], out[i, 1], out[i, 2] = ends[i, 0], pressure, k1
        pressure += h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        out[i, 3] = _pressure_gradient(s1, t1, pressure, gravity)
    out[last, 0], out[last, 1] = ends[last, 0], pressure


@kernel
def _write_pressures(nodes: FloatArray, depth: FloatArray, out: FloatArray) -> None:
    """Write the pressure (Pa) at each depth (m), which must be inside the water."""
    low = 0
    for i in range(depth.shape[0]):
        low = find_interval(nodes[:, 0], depth[i], low)
        h = nodes[low + 1, 0] - nodes[low, 0]
        s = (depth[i] - nodes[low, 0]) / h
        rise = nodes[low + 1, 1] - nodes[low, 1]
        first, last = h * nodes[low, 2] - rise, rise - h * nodes[low, 3]
        out[i] = nodes[low, 1] + s * rise + s * (1.0 - s) * ((1.0 - s) * first + s * last)


@kernel
def _write_densities(temperature: FloatArray, salinity: FloatArray, pressure: FloatArray, out: FloatArray) -> None:
    """Write the density (kg/m^3) of EOS-80."""
    for i in range(out.shape[0]):
        out[i] = density(salinity[i], to_celsius(temperature[i]), pressure[i] / (10.0 * DECIBAR))


@kernel
def _write_sound_speeds(
    formula: int,
    warm_depths: FloatArray,
    temperatures: FloatArray,
    salt_depths: FloatArray,
    salinities: FloatArray,
    nodes: FloatArray,
    gradient: float,
    max_depth: float,
    max_pressure: float,
    depth: FloatArray,
    out: FloatArray,
) -> bool:
    """Write the speed of sound (m/s) at depths (n,) m; return false if the formula is not valid at all of them.

    gradient: pressure gradient (Pa/m) of water of constant density, 0 for a pressure from `nodes`.
    max_depth, max_pressure: validity of the formula (m, Pa).

    This is one kernel, because for few depths the calls would dominate.
    """
    count = depth.shape[0]
    temperature, salinity, pressure = np.empty(count), np.empty(count), np.empty(count)
    if find_first_outside(depth, 0.0, min(MAX_DEPTH, max_depth)) >= 0:
        return False
    if gradient > 0.0:
        for i in range(count):
            pressure[i] = depth[i] * gradient
    else:
        _write_pressures(nodes, depth, pressure)
    if find_first_outside(pressure, 0.0, max_pressure) >= 0:
        return False
    interpolate(warm_depths, temperatures, depth, temperature)
    interpolate(salt_depths, salinities, depth, salinity)
    for i in range(count):
        out[i] = sound_speed(formula, temperature[i], salinity[i], depth[i], pressure[i])
    return True


@dataclass(frozen=True)
class Water:
    """The water of a world.

    surface: height of the surface in the world (m).
    latitude: rad.
    depths, temperatures, salinities: profile by depth (m), K (scale of 1990), practical salinity.
    density: constant density (kg/m^3), None for EOS-80.
    sound_speed: one of `seawater.SOUND_SPEED_FORMULAS`, or a constant speed (m/s).

    Raises `FieldError` for invalid values.

    >>> lake = ns.environment.Water(depths=(0.0, 20.0), temperatures=(293.15, 279.15), salinities=(0.0, 0.0))
    >>> lake.sound_speed_at(np.array([0.0, 20.0])).round(1)
    array([1482.4, 1430.9])
    >>> lake.pressure_at(np.array([10.0])).round(-1)
    array([97950.])
    """

    surface: float = field(default=0.0, metadata=in_file(is_attribute=True))
    latitude: float = field(default=DEFAULT_LATITUDE, metadata=in_file("latitude_deg", degrees=True, is_attribute=True))
    depths: tuple[float, ...] = field(default=(0.0,), metadata=NOT_IN_FILE)
    temperatures: tuple[float, ...] = field(default=(283.15,), metadata=in_file("temperature"))
    salinities: tuple[float, ...] = field(default=(35.0,), metadata=in_file("salinity"))
    density: float | None = None
    sound_speed: float | str = "chen-millero"

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        height = MAX_SURFACE_HEIGHT
        check_number("surface of the water (m)", self.surface, -height, height, error=FieldError)
        check_latitude("latitude of the water (rad)", self.latitude)
        if self.density is not None:
            check_density("density of the water (kg/m^3)", self.density)
        counts = (len(self.depths), len(self.temperatures), len(self.salinities))
        if len(set(counts)) != 1 or not self.depths:
            allowed = "must be the same, and not 0"
            raise FieldError("numbers of depths, temperatures and salinities", repr(counts), allowed=allowed)
        try:
            _check_profile(self.depths, self.temperatures, self.salinities)
        except FieldError as error:
            error.what = error.quantity if len(self.depths) == 1 else error.what
            raise
        if not isinstance(self.sound_speed, str):
            what, limits = "speed of sound in the water (m/s)", (MIN_SOUND_SPEED, MAX_SOUND_SPEED)
            check_number(what, self.sound_speed, *limits, error=FieldError)
        elif self.sound_speed not in SOUND_SPEED_FORMULAS:
            allowed = f"must be one of {', '.join(SOUND_SPEED_FORMULAS)}, or a speed in m/s"
            raise FieldError("formula for the speed of sound", self.sound_speed, allowed=allowed)

    @classmethod
    def read_profile(cls, path: str | os.PathLike[str]) -> tuple[tuple[float, ...], ...]:
        """Read depths (m), temperatures (K) and salinities from a CSV file with header ``depth,temperature,salinity``.

        Raises `FieldError` with file and line for an unreadable file and an invalid profile.
        """
        name = os.fspath(path)
        _, lines, numbers = read_table(name, _FILE_KIND, (",".join(PROFILE_COLUMNS),))
        columns = tuple(tuple(column) for column in numbers.T.tolist())
        with add_lines_to_errors(name, lines):
            _check_profile(*columns)
        return columns

    @cached_property
    def _temperature(self) -> Signal:
        return Signal(self.depths, self.temperatures)

    @cached_property
    def _salinity(self) -> Signal:
        return Signal(self.depths, self.salinities)

    @cached_property
    def _gravity(self) -> float:
        """Gravity at the surface (m/s^2)."""
        return float(surface_gravity(self.latitude))

    @cached_property
    def _constant_gradient(self) -> float:
        """Pressure gradient (Pa/m) of water of constant density, otherwise 0."""
        return 0.0 if self.density is None else self.density * self._gravity

    def _list_node_depths(self) -> Iterator[float]:
        """Yield the depths (m) of all nodes except the last: the profile's points and equal steps between them."""
        points = list(zip(self.depths, self.temperatures, self.salinities, strict=True))
        points = [(0.0, *points[0][1:]), *points, (MAX_DEPTH, *points[-1][1:])]
        for (top, *above), (bottom, *below) in pairwise(points):
            changes = (abs(upper - lower) / MAX_NODE_CHANGE for upper, lower in zip(above, below, strict=True))
            count = math.ceil(max((bottom - top) / MAX_NODE_SPACING, *changes)) if bottom > top else 0
            yield from (top + (bottom - top) * k / count for k in range(count))

    @cached_property
    def _nodes(self) -> FloatArray:
        """Depth, pressure and its derivatives, one row per node (see `_integrate_pressure`)."""
        depths = np.array([*self._list_node_depths(), MAX_DEPTH])
        ends = np.zeros((depths.size, 5))
        ends[:, 0] = depths
        middles = 0.5 * (depths[1:] + depths[:-1])
        for column, profile in ((1, self._temperature), (2, self._salinity)):
            ends[:, column] = profile.at(depths)
            ends[:-1, column + 2] = 2.0 * profile.at(middles) - ends[:-1, column]
        np.clip(ends[:, 4], 0.0, MAX_SALINITY, out=ends[:, 4])  # rounding must not make a salinity negative
        nodes = np.zeros((depths.size, 4))
        _integrate_pressure(ends, self._gravity, nodes)
        nodes.setflags(write=False)
        return nodes

    def temperature_at(self, depth: FloatArray) -> FloatArray:
        """Return the temperature (n,) K at depths (n,) m. Raises `FieldError` outside the water."""
        check_depths(depth)
        return self._temperature.at(depth)

    def salinity_at(self, depth: FloatArray) -> FloatArray:
        """Return the practical salinity (n,) at depths (n,) m. Raises `FieldError` outside the water."""
        check_depths(depth)
        return self._salinity.at(depth)

    def pressure_at(self, depth: FloatArray) -> FloatArray:
        """Return the pressure (n,) Pa above that of the surface, at depths (n,) m. Raises `FieldError`."""
        check_depths(depth)
        return self._compute_pressure(depth)

    def _compute_pressure(self, depth: FloatArray) -> FloatArray:
        """Return the pressure (n,) Pa above that of the surface, at depths (n,) m inside the water."""
        if self.density is not None:
            return depth * self._constant_gradient
        out = np.empty(depth.shape[0])
        _write_pressures(self._nodes, depth, out)
        return out

    def density_at(self, depth: FloatArray) -> FloatArray:
        """Return the density (n,) kg/m^3 at depths (n,) m. Raises `FieldError` outside the water."""
        pressure = self.pressure_at(depth)
        if self.density is not None:
            return np.full(depth.shape[0], self.density)
        out = np.empty(depth.shape[0])
        _write_densities(self.temperature_at(depth), self.salinity_at(depth), pressure, out)
        return out

    def pressure_gradient_at(self, depth: FloatArray) -> FloatArray:
        """Return rho g (n,) Pa/m at depths (n,) m, the gradient of the pressure. Raises `FieldError`."""
        if self.density is not None:
            return self.density_at(depth) * self._gravity
        return self.density_at(depth) * (self._gravity + GRAVITY_GRADIENT * self.pressure_at(depth) / DECIBAR)

    def sound_speed_at(self, depth: FloatArray) -> FloatArray:
        """Return the speed of sound (n,) m/s at depths (n,) m.

        Raises `FieldError` outside the water, for depths below the validity of the formula, and for a profile with a
        temperature or salinity outside its validity.
        """
        if not isinstance(self.sound_speed, str):
            check_depths(depth)
            return np.full(depth.shape[0], float(self.sound_speed))
        out = np.empty(depth.shape[0])
        if not _write_sound_speeds(*self._kernel_arguments, depth, out):
            raise self._make_formula_error(depth)
        return out

    def _make_formula_error(self, depth: FloatArray) -> FieldError:
        """Return the error of depths (n,) m below the validity of the formula. Raises the error of `check_depths`."""
        check_depths(depth)
        _, domain = self._formula
        row, limit = find_first_outside(depth, 0.0, domain.depth), f"{domain.depth:g} m"
        if row < 0:
            row = find_first_outside(self._compute_pressure(depth), 0.0, domain.pressure)
            limit = f"{domain.pressure / DECIBAR:g} dbar"
        allowed = f"must be at most {limit}, where the formula {self.sound_speed} is valid"
        return FieldError("depth (m)", float(depth[row]), row=row, allowed=allowed, remedy=_FORMULA_REMEDY)

    @cached_property
    def _kernel_arguments(
        self,
    ) -> tuple[int, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, float, float, float]:
        """The first arguments of `_write_sound_speeds`."""
        (formula, domain), nodes = self._formula, self._nodes if self.density is None else _NO_NODES
        points = (*self._temperature.points, *self._salinity.points)
        return formula, *points, nodes, self._constant_gradient, domain.depth, domain.pressure

    @cached_property
    def _formula(self) -> tuple[int, ValidityRange]:
        """The index of the formula for the speed of sound and its validity.

        Raises `FieldError` for a profile with a temperature or salinity outside the validity.
        """
        name = str(self.sound_speed)
        domain = SOUND_SPEED_FORMULAS[name]
        celsius = [(temperature - ZERO_CELSIUS) * IPTS68_SCALE for temperature in self.temperatures]
        for what, values, (minimum, maximum) in (
            ("temperature of the water (degC)", celsius, domain.celsius),
            ("salinity of the water (PSS-78)", self.salinities, domain.salinity),
        ):
            for value in values:
                if not minimum - _ROUNDING <= value <= maximum + _ROUNDING:
                    allowed = f"must be from {minimum:g} to {maximum:g} for the formula {name}"
                    raise FieldError(what, value, allowed=allowed, remedy=_FORMULA_REMEDY)
        return list(SOUND_SPEED_FORMULAS).index(name), domain


_NO_NODES = np.empty((0, 4))
"""Nodes of water with a constant density."""

_NO_NODES.setflags(write=False)  # the kernel is compiled for read-only nodes

_ROUNDING = 1e-9
"""Tolerance for rounding at the limits of a formula (degC and salinity)."""

_FORMULA_REMEDY = "choose another formula for the speed of sound, or give a speed in m/s"


def _check_profile(depths: Sequence[float], temperatures: Sequence[float], salinities: Sequence[float]) -> None:
    """Raise `FieldError` for the first invalid point of a profile (m, K, PSS-78)."""
    for row, (depth, temperature, salinity) in enumerate(zip(depths, temperatures, salinities, strict=True)):
        for what, value, minimum, maximum in (
            ("profile depth (m)", depth, 0.0, MAX_DEPTH),
            ("temperature (K)", temperature, MIN_TEMPERATURE - _ROUNDING, MAX_TEMPERATURE + _ROUNDING),
            ("salinity (PSS-78)", salinity, 0.0, MAX_SALINITY),
        ):
            if not (minimum <= value <= maximum and math.isfinite(value)):
                allowed = f"must be from {minimum:.6g} to {maximum:.6g}"
                raise FieldError(what, value, row=row, allowed=allowed)
        if row and depth < depths[row - 1]:
            allowed = f"must not be above {depths[row - 1]!r} m, the depth of the point before"
            raise FieldError("profile depth (m)", depth, row=row, allowed=allowed)
        if row > 1 and depth == depths[row - 2]:
            raise FieldError("profile depth (m)", depth, row=row, allowed="must not be given more than twice")

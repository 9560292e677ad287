"""Water below a level surface: its temperature and salinity by depth, and what follows from them.

    d = surface - z                               depth, z the height in the world
    dp/dd = rho(S, T, p) g(latitude, p)           p the pressure above that of the surface, 0 there
    c = c(T, S, d or p)                           speed of sound, by one of four formulas or one given number

T and S lie on straight lines between the points of a profile, the ends held; a depth given twice is a jump. rho is that
of EOS-80 (see `seawater`), or one density everywhere, as a tank has it; then g is that of the surface all the way down.
The pressure is integrated once, from node to node at most 10 m and 1 K apart (Runge and Kutta's fourth order), and lies
between them on the cubic that has its slopes: to 0.01 Pa of the integral, a micrometre of water. Air, tides and waves
are not the water's: the surface's own pressure is that of the atmosphere there, and a surface stays where it is.
Source: UNESCO Technical Papers in Marine Science 44 (1983), and what `seawater` names.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

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
from navsense.errors import FieldError, Where
from navsense.inputs import FileKind, parse_decimal, read_lines
from navsense.kernels import kernel
from navsense.typing import FloatArray

MIN_TEMPERATURE, MAX_TEMPERATURE = ZERO_CELSIUS - 2.0 / IPTS68_SCALE, ZERO_CELSIUS + 40.0 / IPTS68_SCALE
"""K: the ends of EOS-80, -2 and 40 degC of its scale."""

MAX_SALINITY = 42.0
"""The end of EOS-80."""

MIN_SOUND_SPEED, MAX_SOUND_SPEED = 100.0, 10000.0
"""m/s: what a speed of sound that is given must be between."""

MAX_SURFACE_HEIGHT = 1e6
"""m above or below the world's origin that a surface may lie."""

MAX_NODE_SPACING = 10.0
"""m between the nodes of the pressure, at most."""

MAX_NODE_CHANGE = 1.0
"""K and practical salinity by which the water changes between two nodes, at most."""

CSV_HEADER = ("depth", "temperature", "salinity")

_FILE_KIND = FileKind("profile of the water", FieldError, f"must be a CSV file of {','.join(CSV_HEADER)} in UTF-8")


@kernel
def _pressure_gradient(salinity: float, temperature: float, pressure: float, gravity: float) -> float:
    """Return rho g (Pa/m) at a pressure (Pa) above the surface's."""
    rho = density(salinity, to_celsius(temperature), pressure / (10.0 * DECIBAR))
    return rho * (gravity + GRAVITY_GRADIENT * pressure / DECIBAR)


@kernel
def _integrate_pressure(ends: FloatArray, gravity: float, out: FloatArray) -> None:
    """Write depth, pressure, its slope below that depth, and its slope above the next node, one row a node.

    A row of `ends`: depth, T and S there, T and S where the span that begins there ends.
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
    """Write the pressure (Pa) at each depth (m), which is one of the water's."""
    for i in range(depth.shape[0]):
        low, high = 0, nodes.shape[0] - 2
        while low < high:
            middle = (low + high + 1) // 2
            if nodes[middle, 0] <= depth[i]:
                low = middle
            else:
                high = middle - 1
        h = nodes[low + 1, 0] - nodes[low, 0]
        s = (depth[i] - nodes[low, 0]) / h
        rise = nodes[low + 1, 1] - nodes[low, 1]
        below, above = h * nodes[low, 2] - rise, rise - h * nodes[low, 3]
        out[i] = nodes[low, 1] + s * rise + s * (1.0 - s) * ((1.0 - s) * below + s * above)


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
    """Write the speed of sound (m/s) by a formula; tell whether it is valid down to all depths (n,) m and pressures.

    The pressure is `weight` (Pa/m) of each metre, or where that is 0 goes by the `nodes`; `deepest` (m) and `most` (Pa)
    end the formula. All in one call: of few depths the calls would take the longest.
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
    """Height of the surface (m), latitude (rad), and by depth (m) temperature (K, of 1990) and practical salinity.

    `density` (kg/m^3) is one everywhere, or None for that of EOS-80. `sound_speed` is one of
    `seawater.SOUND_SPEED_FORMULAS`, or one speed everywhere (m/s). Depths begin at 0 or below; the ends are held.
    Raises `FieldError` for invalid values.
    """

    surface: float = 0.0
    latitude: float = DEFAULT_LATITUDE
    depths: tuple[float, ...] = (0.0,)
    temperatures: tuple[float, ...] = (283.15,)
    salinities: tuple[float, ...] = (35.0,)
    density: float | None = None
    sound_speed: float | str = "chen-millero"

    def __post_init__(self) -> None:
        """Check the values."""
        if not abs(self.surface) <= MAX_SURFACE_HEIGHT:
            allowed = f"must be from {-MAX_SURFACE_HEIGHT:g} to {MAX_SURFACE_HEIGHT:g}"
            raise FieldError("surface of the water (m)", self.surface, allowed=allowed)
        check_latitude("latitude of the water (rad)", self.latitude)
        if self.density is not None:
            check_density("density of the water (kg/m^3)", self.density)
        counts = (len(self.depths), len(self.temperatures), len(self.salinities))
        if len(set(counts)) != 1 or not self.depths:
            allowed = "must be the same, and not 0"
            raise FieldError("numbers of depths, temperatures and salinities", repr(counts), allowed=allowed)
        for row, point in enumerate(zip(self.depths, self.temperatures, self.salinities, strict=True)):
            _check_point(point, self.depths[max(row - 2, 0) : row])
        self._check_sound_speed()

    def _check_sound_speed(self) -> None:
        """Raise FieldError for a speed of sound that is none."""
        if not isinstance(self.sound_speed, str):
            if not MIN_SOUND_SPEED <= self.sound_speed <= MAX_SOUND_SPEED:
                allowed = f"must be from {MIN_SOUND_SPEED:g} to {MAX_SOUND_SPEED:g}"
                raise FieldError("speed of sound in the water (m/s)", self.sound_speed, allowed=allowed)
            return
        if self.sound_speed not in SOUND_SPEED_FORMULAS:
            allowed = f"must be one of {', '.join(SOUND_SPEED_FORMULAS)}, or a speed in m/s"
            raise FieldError("formula for the speed of sound", self.sound_speed, allowed=allowed)

    def _check_domain(self, formula: str) -> None:
        """Raise FieldError for a temperature or salinity of the profile that a formula for the sound is not for."""
        warmth = [(temperature - ZERO_CELSIUS) * IPTS68_SCALE for temperature in self.temperatures]
        points = (
            ("temperature of the water (degC)", warmth, SOUND_SPEED_FORMULAS[formula].celsius),
            ("salinity of the water (PSS-78)", self.salinities, SOUND_SPEED_FORMULAS[formula].salinity),
        )
        for what, values, (least, most) in points:
            for value in values:
                if not least - _ROUNDING <= value <= most + _ROUNDING:
                    allowed = f"must be from {least:g} to {most:g} for the formula {formula}"
                    raise FieldError(what, value, allowed=allowed, remedy=_FORMULA_REMEDY)

    @classmethod
    def read_profile(cls, path: str | os.PathLike[str]) -> tuple[tuple[float, ...], ...]:
        """Read depths (m), temperatures (K) and salinities of a CSV file of the header ``depth,temperature,salinity``.

        Raises `FieldError` with file and line for what cannot be read or is no profile.
        """
        name = os.fspath(path)
        rows: list[tuple[float, float, float]] = []
        filled = [(number, line) for number, line in enumerate(read_lines(name, _FILE_KIND), 1) if line.strip()]
        number, head = filled[0] if filled else (1, "")
        if tuple(part.strip() for part in head.split(",")) != CSV_HEADER:
            allowed = f"must be {','.join(CSV_HEADER)}"
            raise FieldError("header of the profile", head.strip(), allowed=allowed, where=Where(name, number))
        for number, line in filled[1:]:
            rows.append(_parse_row(line, Where(name, number)))
            _check_point(rows[-1], [row[0] for row in rows[-3:-1]], Where(name, number))
        if not rows:
            raise FieldError(
                "profile without rows", where=Where(name), allowed=f"must hold rows of {','.join(CSV_HEADER)}"
            )
        return tuple(zip(*rows, strict=True))

    @cached_property
    def _temperature(self) -> Signal:
        return Signal(self.depths, self.temperatures)

    @cached_property
    def _salinity(self) -> Signal:
        return Signal(self.depths, self.salinities)

    @cached_property
    def _gravity(self) -> float:
        """m/s^2 at the surface."""
        return float(surface_gravity(self.latitude))

    @cached_property
    def _constant_gradient(self) -> float:
        """Pa/m, of water of one density; 0 of water that has none."""
        return 0.0 if self.density is None else self.density * self._gravity

    def _list_node_depths(self) -> Iterator[float]:
        """Yield the depths (m) of the nodes but for the last: at the profile's points, and near enough between them."""
        points = list(zip(self.depths, self.temperatures, self.salinities, strict=True))
        points = [(0.0, *points[0][1:]), *points, (MAX_DEPTH, *points[-1][1:])]
        for (top, *above), (foot, *below) in pairwise(points):
            changes = (abs(one - other) / MAX_NODE_CHANGE for one, other in zip(above, below, strict=True))
            parts = math.ceil(max((foot - top) / MAX_NODE_SPACING, *changes)) if foot > top else 0
            yield from (top + (foot - top) * k / parts for k in range(parts))

    @cached_property
    def _nodes(self) -> FloatArray:
        """Depth, pressure and its slopes, one row a node (see `_integrate_pressure`)."""
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
        """Return the pressure (n,) Pa above that of the surface, at depths (n,) m that are the water's."""
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
        """Return rho g (n,) Pa/m at depths (n,) m: how the pressure grows there. Raises `FieldError`."""
        if self.density is not None:
            return self.density_at(depth) * self._gravity
        return self.density_at(depth) * (self._gravity + GRAVITY_GRADIENT * self.pressure_at(depth) / DECIBAR)

    def sound_speed_at(self, depth: FloatArray) -> FloatArray:
        """Return the speed of sound (n,) m/s at depths (n,) m.

        Raises `FieldError` outside the water, and where the formula is not valid: below its depth or pressure,
        and anywhere in water of a temperature or salinity that it is not for.
        """
        if not isinstance(self.sound_speed, str):
            check_depths(depth)
            return np.full(depth.shape[0], float(self.sound_speed))
        out = np.empty(depth.shape[0])
        if not _write_sound_speeds(*self._kernel_arguments, depth, out):
            raise self._formula_error(depth)
        return out

    def _formula_error(self, depth: FloatArray) -> FieldError:
        """Return the error of depths (n,) m at which the formula is not valid; raise that of no water."""
        check_depths(depth)
        (_, domain), row = self._formula, find_first_outside(depth, 0.0, self._formula[1].depth)
        where = f"{domain.depth:g} m deep"
        if row < 0:
            row, where = (
                find_first_outside(self._compute_pressure(depth), 0.0, domain.pressure),
                f"{domain.pressure / DECIBAR:g} dbar",
            )
        allowed = f"lies below where the formula {self.sound_speed} is valid, {where}"
        return FieldError("depth (m)", float(depth[row]), row=row, allowed=allowed, remedy=_FORMULA_REMEDY)

    @cached_property
    def _kernel_arguments(
        self,
    ) -> tuple[int, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, float, float, float]:
        """The formula, the profile and where the formula ends, as `_write_sound_speeds` takes them."""
        (formula, domain), nodes = self._formula, self._nodes if self.density is None else _NO_NODES
        points = (*self._temperature.points, *self._salinity.points)
        return formula, *points, nodes, self._constant_gradient, domain.depth, domain.pressure

    @cached_property
    def _formula(self) -> tuple[int, ValidityRange]:
        """The formula for the speed of sound, as kernels know it, and what it is valid for; raises FieldError."""
        name = str(self.sound_speed)
        self._check_domain(name)
        return list(SOUND_SPEED_FORMULAS).index(name), SOUND_SPEED_FORMULAS[name]


_NO_NODES = np.empty((0, 4))
"""Of water whose density is given."""

_NO_NODES.setflags(write=False)  # as nodes are: one compiled form

_ROUNDING = 1e-9
"""degC and salinity by which rounding may put a point over the end of a formula's range."""

_FORMULA_REMEDY = "choose another formula for the speed of sound, or give a speed in m/s"


def _check_point(point: tuple[float, float, float], before: Sequence[float], where: Where | None = None) -> None:
    """Raise FieldError for a point of a profile (m, K, PSS-78) that is none, or not below the depths `before` it."""
    depth, temperature, salinity = point
    limits = (
        ("depth of the profile (m)", depth, 0.0, MAX_DEPTH),
        ("temperature of the water (K)", temperature, MIN_TEMPERATURE - _ROUNDING, MAX_TEMPERATURE + _ROUNDING),
        ("salinity of the water (PSS-78)", salinity, 0.0, MAX_SALINITY),
    )
    for what, value, least, most in limits:
        if not (least <= value <= most and math.isfinite(value)):
            raise FieldError(what, value, allowed=f"must be from {least:.6g} to {most:.6g}", where=where)
    if before and depth < before[-1]:
        allowed = f"must not be above {before[-1]!r} m, the depth of the point before"
        raise FieldError("depth of the profile (m)", depth, allowed=allowed, where=where)
    if len(before) > 1 and depth == before[-2]:
        allowed = "must not be given more than twice"
        raise FieldError("depth of the profile (m)", depth, allowed=allowed, where=where)


def _parse_row(line: str, where: Where) -> tuple[float, float, float]:
    """Return depth (m), temperature (K) and salinity of a row. Raise FieldError."""
    parts = line.split(",")
    if len(parts) != len(CSV_HEADER):
        allowed = f"must be {len(CSV_HEADER)}: {','.join(CSV_HEADER)}"
        raise FieldError("number of columns", len(parts), allowed=allowed, where=where)
    found = []
    for what, part in zip(CSV_HEADER, parts, strict=True):
        value = parse_decimal(part)
        if value is None:
            raise FieldError(f"{what} of the profile", part.strip(), allowed="must be a finite number", where=where)
        found.append(value)
    return found[0], found[1], found[2]

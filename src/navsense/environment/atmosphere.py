"""The US Standard Atmosphere 1976 from sea level to 80 km, with a configurable state at sea level.

    H = r h / (r + h)                                 geopotential of the geometric height h, r = 6356766 m
    T = T_i + L_i (H - H_i)                           in the layer i that contains H
    p = p_i (T_i / T)^(g0 M / (R L_i))                if L_i is not 0
    p = p_i exp(-g0 M (H - H_i) / (R T_i))            if L_i is 0
    rho = p M / (R T),   a = sqrt(1.4 R T / M)

The standard defines g0 = 9.80665 m/s^2, M = 28.9644 kg/kmol, R = 8314.32 J/(kmol K) and the gradients above 11 km. T_0,
p_0 and L_0 are parameters, as in SDF's `<atmosphere type="adiabatic">`. T_i and p_i are continuous from layer to layer.
The first layer extends below sea level.
Source: U.S. Standard Atmosphere, 1976 (NOAA-S/T 76-1562).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray
from navsense.core.units import STANDARD_GRAVITY
from navsense.core.validation import check_number

EARTH_RADIUS = 6356766.0
"""r, the standard's radius of the earth (m)."""

MOLAR_MASS = 28.9644
GAS_CONSTANT = 8314.32
HEAT_CAPACITY_RATIO = 1.4

MIN_ALTITUDE, MAX_ALTITUDE = -20000.0, 80000.0
"""Limits of the altitude above mean sea level (m)."""

LAYER_BASES = (0.0, 11000.0, 20000.0, 32000.0, 47000.0, 51000.0, 71000.0)
"""Geopotential height of the base of each layer (m)."""

LAYER_GRADIENTS = (0.0, 0.001, 0.0028, 0.0, -0.0028, -0.002)
"""Temperature gradients of the standard from the second layer on (K/m of geopotential height)."""

MIN_TEMPERATURE, MAX_TEMPERATURE = 10.0, 10000.0
"""Limits of the temperature at any altitude (K)."""

MIN_PRESSURE, MAX_PRESSURE = 1.0, 1e9
"""Limits of the pressure at sea level (Pa)."""

MIN_GRADIENT = 1e-18
"""Smaller gradients (K/m) are treated as zero."""

_G_OVER_R = STANDARD_GRAVITY * MOLAR_MASS / GAS_CONSTANT
"""g0 M / R (K/m)."""


@kernel
def _find_layer(layers: FloatArray, column: int, value: float, sign: float) -> int:
    """Return the layer that contains `value`; sign * column increases from layer to layer."""
    i = 0
    while i + 1 < layers.shape[0] and sign * value >= sign * layers[i + 1, column]:
        i += 1
    return i


@kernel
def _pressure_ratio(base: float, gradient: float, rise: float) -> float:
    """Return p / p_i at `rise` (m, geopotential) above the base of a layer with `base` (K) and its gradient (K/m)."""
    if abs(gradient) < MIN_GRADIENT:
        return math.exp(-_G_OVER_R * rise / base)
    return math.exp(-_G_OVER_R / gradient * math.log1p(gradient * rise / base))


@kernel
def _height_in_layer(base: float, gradient: float, ratio: float) -> float:
    """Return the height above the base of a layer (m, geopotential) at the pressure `ratio` p_i."""
    if abs(gradient) < MIN_GRADIENT:
        return -base / _G_OVER_R * math.log(ratio)
    return base / gradient * math.expm1(-gradient / _G_OVER_R * math.log(ratio))


@kernel
def _write_states(layers: FloatArray, altitude: FloatArray, temperature: FloatArray, pressure: FloatArray) -> int:
    """Write T (K) and p (Pa) at each altitude (m); return the first row outside the atmosphere, or -1."""
    for i in range(altitude.shape[0]):
        if not MIN_ALTITUDE <= altitude[i] <= MAX_ALTITUDE:
            return i
        height = EARTH_RADIUS * altitude[i] / (EARTH_RADIUS + altitude[i])
        layer = _find_layer(layers, 0, height, 1.0)
        base, gradient, rise = layers[layer, 1], layers[layer, 3], height - layers[layer, 0]
        temperature[i] = base + gradient * rise
        pressure[i] = layers[layer, 2] * _pressure_ratio(base, gradient, rise)
    return -1


@kernel
def _write_altitudes(layers: FloatArray, pressure: FloatArray, low: float, high: float, out: FloatArray) -> int:
    """Write the altitude (m) of each pressure (Pa); return the first row outside the atmosphere, or -1."""
    for i in range(pressure.shape[0]):
        if not low <= pressure[i] <= high:
            return i
        layer = _find_layer(layers, 2, pressure[i], -1.0)
        ratio = pressure[i] / layers[layer, 2]
        height = layers[layer, 0] + _height_in_layer(layers[layer, 1], layers[layer, 3], ratio)
        out[i] = EARTH_RADIUS * height / (EARTH_RADIUS - height)
    return -1


@dataclass(frozen=True)
class Atmosphere:
    """The atmosphere of a world. Altitudes are geometric, above mean sea level.

    temperature: K at sea level; pressure: Pa at sea level.
    temperature_gradient: K/m of geopotential height in the first layer.

    Raises `FieldError` if the temperature or pressure is outside its limits at an altitude up to 80 km.

    >>> air = ns.environment.Atmosphere(pressure=100000.0)
    >>> air.pressure_at(np.array([0.0, 100.0])).round(1)
    array([100000. ,  98820.1])
    >>> air.altitude_at_pressure(np.array([95000.0])).round(1)
    array([430.6])
    """

    temperature: float = 288.15
    pressure: float = 101325.0
    temperature_gradient: float = -0.0065

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        for field in fields(self):
            check_number(f"{field.name} of the atmosphere", getattr(self, field.name), error=FieldError)
        check_number("pressure of the atmosphere (Pa)", self.pressure, MIN_PRESSURE, MAX_PRESSURE, error=FieldError)
        remedy = "give another temperature at sea level or temperature_gradient"
        for height, temperature in self._temperatures():
            what = f"temperature of the atmosphere at {height / 1000.0:g} km (K)"
            check_number(what, temperature, MIN_TEMPERATURE, MAX_TEMPERATURE, error=FieldError, remedy=remedy)

    def _temperatures(self) -> Iterator[tuple[float, float]]:
        """Yield geopotential heights (m) and T (K) at the lowest altitude, the base of each layer and the top."""
        temperature, gradients = self.temperature, (self.temperature_gradient, *LAYER_GRADIENTS)
        yield MIN_ALTITUDE, temperature + self.temperature_gradient * MIN_ALTITUDE
        for base, top, gradient in zip(LAYER_BASES, (*LAYER_BASES[1:], MAX_ALTITUDE), gradients, strict=True):
            yield base, temperature
            temperature += gradient * (top - base)
        yield MAX_ALTITUDE, temperature

    @cached_property
    def _layers(self) -> FloatArray:
        """Base (m, geopotential), T (K), p (Pa) and gradient (K/m), one row per layer."""
        rows = np.zeros((len(LAYER_BASES), 4))
        rows[:, 0] = LAYER_BASES
        rows[:, 3] = (self.temperature_gradient, *LAYER_GRADIENTS)
        rows[0, 1:3] = self.temperature, self.pressure
        for i in range(1, len(LAYER_BASES)):
            base, temperature, pressure, gradient = rows[i - 1].tolist()
            rise = LAYER_BASES[i] - base
            ratio = _pressure_ratio(temperature, gradient, rise)
            rows[i, 1:3] = temperature + gradient * rise, pressure * ratio
        rows.setflags(write=False)
        return rows

    def _compute_state(self, altitude: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return T (n,) K and p (n,) Pa. Raises `FieldError` outside the atmosphere."""
        temperature, pressure = np.empty(altitude.shape[0]), np.empty(altitude.shape[0])
        row = _write_states(self._layers, altitude, temperature, pressure)
        if row >= 0:
            allowed = f"must be from {MIN_ALTITUDE:g} to {MAX_ALTITUDE:g}, the limits of the atmosphere"
            raise FieldError("altitude (m above mean sea level)", float(altitude[row]), row=row, allowed=allowed)
        return temperature, pressure

    def temperature_at(self, altitude: FloatArray) -> FloatArray:
        """Return the temperature (n,) K at altitudes (n,) m. Raises `FieldError`."""
        return self._compute_state(altitude)[0]

    def pressure_at(self, altitude: FloatArray) -> FloatArray:
        """Return the pressure (n,) Pa at altitudes (n,) m. Raises `FieldError`."""
        return self._compute_state(altitude)[1]

    def density_at(self, altitude: FloatArray) -> FloatArray:
        """Return the density (n,) kg/m^3 at altitudes (n,) m. Raises `FieldError`."""
        temperature, pressure = self._compute_state(altitude)
        return pressure * MOLAR_MASS / (GAS_CONSTANT * temperature)

    def sound_speed_at(self, altitude: FloatArray) -> FloatArray:
        """Return the speed of sound (n,) m/s at altitudes (n,) m. Raises `FieldError`."""
        return np.sqrt(HEAT_CAPACITY_RATIO * GAS_CONSTANT * self.temperature_at(altitude) / MOLAR_MASS)

    @cached_property
    def _pressure_limits(self) -> tuple[float, float]:
        """Smallest and largest pressure (Pa) of the atmosphere."""
        bottom, top = self.pressure_at(np.array((MIN_ALTITUDE, MAX_ALTITUDE))).tolist()
        return top, bottom

    def altitude_at_pressure(self, pressure: FloatArray) -> FloatArray:
        """Return the altitude (n,) m at a pressure (n,) Pa. Raises `FieldError` outside the atmosphere."""
        out = np.empty(pressure.shape[0])
        low, high = self._pressure_limits
        row = _write_altitudes(self._layers, pressure, low, high, out)
        if row >= 0:
            allowed = f"must be from {low:.3g} to {high:.6g}, the limits of the atmosphere"
            raise FieldError("pressure (Pa)", float(pressure[row]), row=row, allowed=allowed)
        return out

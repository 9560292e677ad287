"""Formulas for sea water: density, gravity, pressure and depth, and the speed of sound.

    rho(S, T, p) = rho(S, T, 0) / (1 - p / K(S, T, p))                     EOS-80, p in bar above the air pressure
    g(latitude, p) = 9.780318 (1 + 5.2788e-3 X + 2.36e-5 X^2) + 2.184e-6 p   m/s^2, X = sin^2 latitude, p in dbar
    Unesco:   d = (9.72659 p - 2.2512e-5 p^2 + 2.279e-10 p^3 - 1.82e-15 p^4) / (g(latitude, 0) + 1.092e-6 p)
    Saunders: d = (1 - C) p - 2.21e-6 p^2,   C = 5.92e-3 + 5.25e-3 X
    ConstantDensity: d = p / (rho g)

d is the depth below the surface (m). p is the pressure above that of the surface, in dbar (10^4 Pa) in the formulas and
in Pa in the functions. `Unesco` and `Saunders` are for a standard ocean of 0 degC and salinity 35. Their error is that
of the density: about 0.2 percent of the depth in the open sea and 3 percent in fresh water.

There are four formulas for the speed of sound:

| formula | degC | salinity | down to | source |
|---|---|---|---|---|
| mackenzie | 2 to 30 | 25 to 40 | 8000 m | Mackenzie 1981, J. Acoust. Soc. Am. 70(3):807 |
| chen-millero | 0 to 40 | 0 to 40 | 1000 bar | Chen and Millero 1977, J. Acoust. Soc. Am. 62(5):1129; UNESCO 44 |
| del-grosso | 0 to 30 | 30 to 40 | 1000 kg/cm^2 | Del Grosso 1974, J. Acoust. Soc. Am. 56(4):1084 |
| medwin | 0 to 35 | 0 to 45 | 1000 m | Medwin 1975, J. Acoust. Soc. Am. 58(6):1318; in the firmware of DVLs |

The formulas use the temperature scale of 1968, t68 = 1.00024 t90, and practical salinity (PSS-78). Other sources:
Fofonoff and Millard 1983, UNESCO Technical Papers in Marine Science 44; Millero and Poisson 1981, Deep-Sea Research
28A(6):625; Millero et al. 1980, Deep-Sea Research 27A:255; Saunders 1981, J. Phys. Oceanogr. 11:573.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray
from navsense.core.units import STANDARD_GRAVITY
from navsense.core.validation import check_number

ZERO_CELSIUS = 273.15
"""K."""

IPTS68_SCALE = 1.00024
"""Ratio of temperatures (degC) in the scales of 1968 and 1990."""

DECIBAR = 1e4
"""Pa."""

KILOGRAM_FORCE_PER_CM2 = 98066.5
"""Pa, the unit of pressure of Del Grosso's formula."""

MAX_DEPTH = 11000.0
"""Largest depth (m). EOS-80 is published to 1000 bar (about 9700 m) and is smooth below."""

DEFAULT_LATITUDE = math.pi / 4.0
"""Latitude (rad) for a world without an origin."""

GRAVITY_GRADIENT = 2.184e-6
"""Increase of gravity with pressure (m/s^2 per dbar)."""

_NEWTON_STEPS = 5
"""Newton steps from depth to pressure. The initial relative error is below a percent, and each step squares it."""

_MAX_DENSITY = 25000.0
_MAX_GRAVITY = 100.0
_MIN_VALUE = 1e-3


@kernel
def to_celsius(temperature: float) -> float:
    """Return a temperature (K) in degC of the scale of 1968."""
    return (temperature - ZERO_CELSIUS) * IPTS68_SCALE


@kernel
def _bulk_modulus(salinity: float, t: float, bar: float) -> float:
    """Return K (bar) of EOS-80: the secant bulk modulus."""
    root = math.sqrt(salinity)
    pure_water = 19652.21 + (148.4206 + (-2.327105 + (1.360477e-2 - 5.155288e-5 * t) * t) * t) * t
    salinity_term = 54.6746 + (-0.603459 + (1.09987e-2 - 6.1670e-5 * t) * t) * t
    root_term = 7.944e-2 + (1.6483e-2 - 5.3009e-4 * t) * t
    at_surface = pure_water + (salinity_term + root_term * root) * salinity
    a = 3.239908 + (1.43713e-3 + (1.16092e-4 - 5.77905e-7 * t) * t) * t
    a = a + (2.2838e-3 + (-1.0981e-5 - 1.6078e-6 * t) * t + 1.91075e-4 * root) * salinity
    b = 8.50935e-5 + (-6.12293e-6 + 5.2787e-8 * t) * t
    b = b + (-9.9348e-7 + (2.0816e-8 + 9.1697e-10 * t) * t) * salinity
    return at_surface + (a + b * bar) * bar


@kernel
def density(salinity: float, t: float, bar: float) -> float:
    """Return the density (kg/m^3) of EOS-80 at a salinity, t degC and `bar` above the air pressure."""
    root = math.sqrt(salinity)
    polynomial = -9.095290e-3 + (1.001685e-4 + (-1.120083e-6 + 6.536332e-9 * t) * t) * t
    pure_water = 999.842594 + (6.793952e-2 + polynomial * t) * t
    salinity_term = 8.24493e-1 + (-4.0899e-3 + (7.6438e-5 + (-8.2467e-7 + 5.3875e-9 * t) * t) * t) * t
    root_term = -5.72466e-3 + (1.0227e-4 - 1.6546e-6 * t) * t
    at_surface = pure_water + (salinity_term + root_term * root + 4.8314e-4 * salinity) * salinity
    return at_surface / (1.0 - bar / _bulk_modulus(salinity, t, bar))


@kernel
def surface_gravity(latitude: float) -> float:
    """Return the gravity (m/s^2) of UNESCO 44 at the surface, at a latitude (rad)."""
    sine = math.sin(latitude)
    x = sine * sine
    return 9.780318 * (1.0 + (5.2788e-3 + 2.36e-5 * x) * x)


@kernel
def mackenzie(t: float, salinity: float, depth: float) -> float:
    """Return the speed of sound (m/s) at t degC, a salinity and a depth (m)."""
    salinity_term = salinity - 35.0
    temperature_term = 1448.96 + (4.591 + (-5.304e-2 + 2.374e-4 * t) * t) * t
    pressure_term = (1.630e-2 + 1.675e-7 * depth) * depth - 7.139e-13 * t * depth * depth * depth
    return temperature_term + 1.340 * salinity_term + pressure_term - 1.025e-2 * t * salinity_term


@kernel
def medwin(t: float, salinity: float, depth: float) -> float:
    """Return the speed of sound (m/s) at t degC, a salinity and a depth (m)."""
    temperature_term = 1449.2 + (4.6 + (-0.055 + 0.00029 * t) * t) * t
    return temperature_term + (1.34 - 0.01 * t) * (salinity - 35.0) + 0.016 * depth


@kernel
def chen_millero(t: float, salinity: float, bar: float) -> float:
    """Return the speed of sound (m/s) at t degC, a salinity and `bar` above the air pressure."""
    w0 = 1402.388 + (5.03711 + (-5.80852e-2 + (3.3420e-4 + (-1.47800e-6 + 3.1464e-9 * t) * t) * t) * t) * t
    w1 = 0.153563 + (6.8982e-4 + (-8.1788e-6 + (1.3621e-7 - 6.1185e-10 * t) * t) * t) * t
    w2 = 3.1260e-5 + (-1.7107e-6 + (2.5974e-8 + (-2.5335e-10 + 1.0405e-12 * t) * t) * t) * t
    w3 = -9.7729e-9 + (3.8504e-10 - 2.3643e-12 * t) * t
    a0 = 1.389 + (-1.262e-2 + (7.164e-5 + (2.006e-6 - 3.21e-8 * t) * t) * t) * t
    a1 = 9.4742e-5 + (-1.2580e-5 + (-6.4885e-8 + (1.0507e-8 - 2.0122e-10 * t) * t) * t) * t
    a2 = -3.9064e-7 + (9.1041e-9 + (-1.6002e-10 + 7.988e-12 * t) * t) * t
    a3 = 1.100e-10 + (6.649e-12 - 3.389e-13 * t) * t
    cw = w0 + (w1 + (w2 + w3 * bar) * bar) * bar
    a = a0 + (a1 + (a2 + a3 * bar) * bar) * bar
    b = -1.922e-2 - 4.42e-5 * t + (7.3637e-5 + 1.7945e-7 * t) * bar
    d = 1.727e-3 - 7.9836e-6 * bar
    return cw + (a + b * math.sqrt(salinity) + d * salinity) * salinity


@kernel
def del_grosso(t: float, salinity: float, p: float) -> float:
    """Return the speed of sound (m/s) at t degC, a salinity and p kg/cm^2 above the air pressure."""
    c_t = (0.501109398873e1 + (-0.550946843172e-1 + 0.221535969240e-3 * t) * t) * t
    c_s = (0.132952290781e1 + 0.128955756844e-3 * salinity) * salinity
    c_p = (0.156059257041 + (0.244998688441e-4 - 0.883392332513e-8 * p) * p) * p
    c_ts = (-0.127562783426e-1 + 0.968403156410e-4 * t) * t * salinity
    c_tp = 0.635191613389e-2 - 0.438031096213e-6 * t * t + 0.265484716608e-7 * t * p
    c_tp = (c_tp + (-0.159349479045e-5 + 0.522116437235e-9 * p) * p) * t * p
    c_sp = -0.161674495909e-8 * salinity * salinity * p * p
    c_stp = (0.485639620015e-5 * salinity - 0.340597039004e-3) * t * salinity * p
    return 1402.392 + c_t + c_s + c_p + c_ts + c_tp + c_sp + c_stp


class ValidityRange(NamedTuple):
    """The validity of a formula: temperature (degC), salinity, and largest depth (m) or pressure (Pa)."""

    celsius: tuple[float, float]
    salinity: tuple[float, float]
    depth: float = math.inf
    pressure: float = math.inf


SOUND_SPEED_FORMULAS: Mapping[str, ValidityRange] = {
    "mackenzie": ValidityRange((2.0, 30.0), (25.0, 40.0), depth=8000.0),
    "chen-millero": ValidityRange((0.0, 40.0), (0.0, 40.0), pressure=1e8),
    "del-grosso": ValidityRange((0.0, 30.0), (30.0, 40.0), pressure=1000.0 * KILOGRAM_FORCE_PER_CM2),
    "medwin": ValidityRange((0.0, 35.0), (0.0, 45.0), depth=1000.0),
}
"""Validity of the formulas for the speed of sound, in the order of the index that `sound_speed` takes."""


@kernel
def sound_speed(formula: int, temperature: float, salinity: float, depth: float, pressure: float) -> float:
    """Return the speed of sound (m/s) by the formula with the index `formula` in `SOUND_SPEED_FORMULAS`.

    Units: K, practical salinity, m, and Pa above the air pressure.
    """
    t = to_celsius(temperature)
    if formula == 0:
        return mackenzie(t, salinity, depth)
    if formula == 1:
        return chen_millero(t, salinity, pressure / (10.0 * DECIBAR))
    if formula == 2:
        return del_grosso(t, salinity, pressure / KILOGRAM_FORCE_PER_CM2)
    return medwin(t, salinity, depth)


@kernel
def _depth_and_slope(p: float, gravity: float) -> tuple[float, float]:
    """Return the depth (m) of a pressure (dbar) and its derivative (m/dbar)."""
    top = (9.72659 + (-2.2512e-5 + (2.279e-10 - 1.82e-15 * p) * p) * p) * p
    slope = 9.72659 + (-4.5024e-5 + (6.837e-10 - 7.28e-15 * p) * p) * p
    bottom = gravity + 0.5 * GRAVITY_GRADIENT * p
    depth = top / bottom
    return depth, (slope - 0.5 * GRAVITY_GRADIENT * depth) / bottom


@kernel
def _write_unesco_depths(gravity: float, pressure: FloatArray, out: FloatArray) -> None:
    """Write the depth (m) of each pressure (Pa)."""
    for i in range(out.shape[0]):
        out[i], _ = _depth_and_slope(pressure[i] / DECIBAR, gravity)


@kernel
def _write_unesco_pressures(gravity: float, depth: FloatArray, out: FloatArray) -> None:
    """Write the pressure (Pa) at each depth (m) by Newton's method."""
    for i in range(out.shape[0]):
        p = depth[i] * gravity / 9.72659
        for _ in range(_NEWTON_STEPS):
            estimate, slope = _depth_and_slope(p, gravity)
            p += (depth[i] - estimate) / slope
        out[i] = p * DECIBAR


@kernel
def _write_saunders_depths(linear: float, pressure: FloatArray, out: FloatArray) -> None:
    """Write the depth (m) of each pressure (Pa); `linear` is 1 - C."""
    for i in range(out.shape[0]):
        p = pressure[i] / DECIBAR
        out[i] = (linear - 2.21e-6 * p) * p


@kernel
def _write_saunders_pressures(linear: float, depth: FloatArray, out: FloatArray) -> None:
    """Write the pressure (Pa) at each depth (m): the smaller root, in a form that is exact for small depths."""
    for i in range(out.shape[0]):
        root = math.sqrt(linear * linear - 8.84e-6 * depth[i])
        out[i] = 2.0 * depth[i] / (linear + root) * DECIBAR


@kernel
def find_first_outside(values: FloatArray, minimum: float, maximum: float) -> int:
    """Return the first row of values (n,) outside the limits or NaN, or -1."""
    for i in range(values.shape[0]):
        if not minimum <= values[i] <= maximum:
            return i
    return -1


def check_depths(depth: FloatArray) -> None:
    """Raise `FieldError` for the first of the depths (n,) m outside the water."""
    row = find_first_outside(depth, 0.0, MAX_DEPTH)
    if row >= 0:
        allowed = f"must be from 0 to {MAX_DEPTH:g}, below the surface and above the deepest sea bed"
        raise FieldError("depth (m)", float(depth[row]), row=row, allowed=allowed)


def check_latitude(what: str, latitude: float) -> None:
    """Raise `FieldError` for an invalid latitude (rad)."""
    check_number(what, latitude, -math.pi / 2.0, math.pi / 2.0, error=FieldError)


def check_density(what: str, value: float) -> None:
    """Raise `FieldError` for an invalid density (kg/m^3)."""
    check_number(what, value, _MIN_VALUE, _MAX_DENSITY, error=FieldError)


class DepthConversion(Protocol):
    """A conversion between pressure and depth, as instruments use it."""

    def depth(self, pressure: FloatArray) -> FloatArray:
        """Return the depth (n,) m at pressures (n,) Pa above that of the surface, also for negative pressures."""
        ...

    def pressure(self, depth: FloatArray) -> FloatArray:
        """Return the pressure (n,) Pa above that of the surface at depths (n,) m.

        Raises `FieldError` outside the water.
        """
        ...


@dataclass(frozen=True)
class Unesco:
    """The conversion of UNESCO 44 at a latitude (rad), for a standard ocean: within 0.1 m down to 10000 dbar.

    Raises `FieldError` for an invalid latitude.

    >>> ocean = ns.environment.Unesco(latitude=np.radians(45.0))
    >>> ocean.depth(np.array([1e6, 1e7])).round(1)  # 100 and 1000 dbar
    array([ 99.2, 989.5])
    """

    latitude: float = DEFAULT_LATITUDE

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_latitude("latitude of the formula (rad)", self.latitude)

    def depth(self, pressure: FloatArray) -> FloatArray:
        """Return the depth (n,) m at pressures (n,) Pa above that of the surface."""
        out = np.empty(pressure.shape[0])
        _write_unesco_depths(surface_gravity(self.latitude), pressure, out)
        return out

    def pressure(self, depth: FloatArray) -> FloatArray:
        """Return the pressure (n,) Pa above that of the surface at depths (n,) m. Raises `FieldError`."""
        check_depths(depth)
        out = np.empty(depth.shape[0])
        _write_unesco_pressures(surface_gravity(self.latitude), depth, out)
        return out


@dataclass(frozen=True)
class Saunders:
    """The conversion of Saunders 1981 at a latitude (rad), for a standard ocean: a parabola.

    Raises `FieldError` for an invalid latitude.

    >>> ocean = ns.environment.Saunders(latitude=np.radians(45.0))
    >>> ocean.depth(np.array([1e6, 1e7])).round(1)  # 100 and 1000 dbar
    array([ 99.1, 989.2])
    """

    latitude: float = DEFAULT_LATITUDE

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_latitude("latitude of the formula (rad)", self.latitude)

    @cached_property
    def _linear(self) -> float:
        """1 - C."""
        sine = math.sin(self.latitude)
        return 1.0 - (5.92e-3 + 5.25e-3 * sine * sine)

    def depth(self, pressure: FloatArray) -> FloatArray:
        """Return the depth (n,) m at pressures (n,) Pa above that of the surface."""
        out = np.empty(pressure.shape[0])
        _write_saunders_depths(self._linear, pressure, out)
        return out

    def pressure(self, depth: FloatArray) -> FloatArray:
        """Return the pressure (n,) Pa above that of the surface at depths (n,) m. Raises `FieldError`."""
        check_depths(depth)
        out = np.empty(depth.shape[0])
        _write_saunders_pressures(self._linear, depth, out)
        return out


@dataclass(frozen=True)
class ConstantDensity:
    """The conversion with a constant density (kg/m^3) and gravity (m/s^2), for a tank or a lake.

    Raises `FieldError` for an invalid density or gravity.

    >>> tank = ns.environment.ConstantDensity(density=998.0, gravity=9.81)
    >>> tank.pressure(np.array([2.0]))
    array([19580.76])
    """

    density: float
    gravity: float = STANDARD_GRAVITY

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_density("density of the formula (kg/m^3)", self.density)
        check_number("gravity of the formula (m/s^2)", self.gravity, _MIN_VALUE, _MAX_GRAVITY, error=FieldError)

    def depth(self, pressure: FloatArray) -> FloatArray:
        """Return the depth (n,) m at pressures (n,) Pa above that of the surface."""
        return pressure / (self.density * self.gravity)

    def pressure(self, depth: FloatArray) -> FloatArray:
        """Return the pressure (n,) Pa above that of the surface at depths (n,) m. Raises `FieldError`."""
        check_depths(depth)
        return depth * (self.density * self.gravity)

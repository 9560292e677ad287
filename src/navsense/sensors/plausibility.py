"""Plausibility checks of the arrays that you pass to `apply`: wrong units, or times that are not in seconds.

A value beyond `MAX_VALUES` is an error: no instrument measures it. Values that are possible, but look like another
unit, are a warning. Negative absolute pressures and temperatures, and negative ranges, are errors:

    specific force     no component reaches 8.8, and the RMS size is 0.5 to 1.6 (g), or the RMS size is 897 to 1101 (mg)
    angular velocity   a component above 35 rad/s (2000 deg/s), the range of most gyroscopes
    air pressure       a median that is an air pressure on the ground in hPa, kPa or bar
    time               an IMU with rows 0.2 s apart or more, a magnetometer with 2 s, another sensor with 5 s

Sources: the ranges of the fastest gyroscopes (20 000 deg/s) and of shock accelerometers (200 000 g) on the market.
Magnetometers for navigation have ranges of 0.8 to 5 mT, far below 10 mT. The velocities of TRDI's PD0 format are 16-bit
integers in mm/s, so they end at 32.767 m/s. A track's own `maximum_velocity` makes no error: above it, beams lose lock.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.ticks import MIN_RATE
from navsense.core.typing import FloatArray
from navsense.core.units import OTHER_UNITS

MAX_VALUES: Mapping[str, float] = {
    "rad/s": 350.0,
    "m/s^2": 2e6,
    "T": 0.01,
    "m/s": 1e4,
    "Pa": 1e9,
    "m": 1e8,
    "K": 5000.0,
}
"""Unit -> the largest value that an instrument may measure."""

MAX_VALUES_OF_SENSOR: Mapping[tuple[str, str], float] = {("dvl", "velocity"): 32.767, ("dvl", "water_velocity"): 32.767}
"""Sensor type and array name -> a lower limit than that of the unit."""

EARTH_VALUES: Mapping[str, tuple[float, float]] = {"m/s^2": (8.8, 10.8), "Pa": (8.5e4, 1.1e5), "T": (1e-5, 1.5e-4)}
"""Unit -> the typical magnitude on the ground of specific force, air pressure and the earth's field."""

MIN_TEMPERATURE = 150.0
"""Kelvin. A median temperature below it is treated as degrees Celsius."""

LIKELY_RATE = 35.0
"""Angular rate (rad/s) above which values may be in degrees per second."""

G_SIZES, GRAVITY = (0.5, 1.6), 8.8
"""RMS magnitudes that look like g if no component is as large as `GRAVITY` (m/s^2).

The moon's gravity, 1.62, is outside.
"""

SLOW_STEPS: Mapping[str, float] = {"imu": 0.2, "magnetometer": 2.0}
"""Sensor type -> step (s) at and above which times may be in milliseconds."""

SLOW, SLOWEST_IMU = 5.0, 1.0
"""The same step for other sensors; the step at and above which the times of an IMU must be in milliseconds."""

SAMPLED = 4096
"""Largest number of rows, evenly spaced in the record, for a median or an RMS."""


def check_steps(kind: str, seconds: FloatArray) -> None:
    """Raise `SensorError` if no sensor of this type has steps like those of `seconds` (n,) s; warn of rare steps."""
    if seconds.size < 2:
        return
    stride = 1 + seconds.size // SAMPLED
    step = float(np.median(seconds[1::stride] - seconds[:-1:stride]))
    limit = SLOWEST_IMU if kind == "imu" else 1.0 / MIN_RATE
    if step >= limit:
        remedy = "if the numbers are milliseconds, give them divided by 1e3; nanoseconds, by 1e9"
        raise SensorError(
            "step of time (s)", step, allowed=f"must be below {limit:g} s for a sensor {kind}", remedy=remedy
        )
    if step >= SLOW_STEPS.get(kind, SLOW):
        _warn(f"time: its rows are {step:g} s apart; it must be in seconds")


def check_values(kind: str, name: str, unit: str, array: FloatArray) -> None:
    """Raise `SensorError` for values (n, ...) that are not in `unit`; warn if that is uncertain.

    The check ignores values that are not finite.
    """
    low, high = float(array.min()), float(array.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        finite = array[np.isfinite(array)]
        if not finite.size:
            return
        low, high = float(finite.min()), float(finite.max())
    largest, limit = max(-low, high), MAX_VALUES_OF_SENSOR.get((kind, name), MAX_VALUES.get(unit, math.inf))
    if largest > limit:
        row, *axes = (int(index[0]) for index in np.nonzero(np.isfinite(array) & (np.abs(array) > limit)))
        value = float(array[(row, *axes)])
        allowed = f"must have a magnitude of at most {limit:g}, the limit of instruments"
        remedy = _make_unit_remedy(_find_units(unit, _compute_median_size(array), limit), unit)
        raise SensorError(f"{name} of row {row} ({unit})", value, allowed=allowed, remedy=remedy)
    if unit == "K" and low < MIN_TEMPERATURE and _compute_median_size(array) < MIN_TEMPERATURE:
        allowed, remedy = f"must be above {MIN_TEMPERATURE:g}", "if the numbers are degrees Celsius, add 273.15"
        raise SensorError(f"median of {name} (K)", _compute_median_size(array), allowed=allowed, remedy=remedy)
    if unit == "rad/s" and largest > LIKELY_RATE:
        _warn(f"{name}: its largest value is {largest:g} rad/s; {_make_unit_remedy(['deg/s'], unit)}")
    if unit == "m/s^2":
        sizes = _compute_sizes(array)
        rms = math.sqrt(float((sizes * sizes).sum()) / max(sizes.size, 1))
        is_g = largest < GRAVITY and G_SIZES[0] <= rms <= G_SIZES[1]
        units = ["g"] if is_g else [candidate for candidate in _find_units(unit, rms, limit) if candidate == "mg"]
        if units:
            _warn(f"{name}: its RMS size is {rms:g} m/s^2; {_make_unit_remedy(units, unit)}")
    if kind == "air_pressure" and unit == "Pa":
        size = _compute_median_size(array)
        units = _find_units(unit, size, limit)
        if units:
            _warn(f"{name}: its median is {size:g} Pa; {_make_unit_remedy(units, unit)}")


def check_minimum(name: str, unit: str, array: FloatArray, lowest: float = 0.0) -> None:
    """Raise `SensorError` with the first row of values (n, ...) below a physical limit. NaN is ignored."""
    below = np.nonzero(array < lowest)
    if below[0].size:
        row, *axes = (int(index[0]) for index in below)
        value = float(array[(row, *axes)])
        raise SensorError(f"{name} of row {row} ({unit})", value, allowed=f"must be at least {lowest:g}")


def _compute_sizes(array: FloatArray) -> FloatArray:
    """Return the magnitudes of the finite rows of an array (n, ...), of at most `SAMPLED` rows."""
    rows = array[:: 1 + array.shape[0] // SAMPLED]
    sizes = np.sqrt((rows * rows).reshape(rows.shape[0], -1).sum(axis=1))
    return np.asarray(sizes[np.isfinite(sizes)])


def _compute_median_size(array: FloatArray) -> float:
    """Return the median of `_compute_sizes`; NaN without any."""
    sizes = _compute_sizes(array)
    return float(np.median(sizes)) if sizes.size else math.nan


def _find_units(unit: str, size: float, limit: float) -> list[str]:
    """Return the other units in which `size` is a typical value."""
    low, high = EARTH_VALUES.get(unit, (0.0, limit))
    return [candidate for candidate, factor in OTHER_UNITS.get(unit, {}).items() if low <= size * factor <= high]


def _make_unit_remedy(units: list[str], unit: str) -> str:
    """Return the remedy for numbers that look like other units; "" without such units."""
    return f"the numbers look like {' or '.join(units)}: convert them to {unit}" if units else ""


def _warn(text: str) -> None:
    """Warn the caller of a sensor's `apply`."""
    warnings.warn(text, RuntimeWarning, stacklevel=5)

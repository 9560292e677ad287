"""Plausibility checks of the arrays that you pass to `apply`: wrong units, or times that are not in seconds.

A value beyond `MAX_VALUES` is an error: no instrument measures it. A median specific force of about 1 (g) or 1000 (mg)
is an error too, because a vehicle on earth has 9.8 m/s^2. The times of slow sensors and air pressures have no clear
limit. If they are possible but look like another unit, `apply` warns.

Sources: the ranges of the fastest gyroscopes (20 000 deg/s) and of shock accelerometers (200 000 g) on the market.
Magnetometers for navigation have ranges of 0.8 to 5 mT, far below 10 mT.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import numpy as np

from navsense.errors import SensorError
from navsense.ticks import SLOWEST
from navsense.typing import FloatArray

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

MAX_VALUES_OF_SENSOR: Mapping[tuple[str, str], float] = {("dvl", "velocity"): 100.0, ("dvl", "water_velocity"): 100.0}
"""Sensor type and array name -> a lower limit than that of the unit."""

OTHER_UNITS: Mapping[str, Mapping[str, float]] = {
    "rad/s": {"deg/s": math.pi / 180.0},
    "m/s^2": {"g": 9.80665, "mg": 9.80665e-3},
    "T": {"mT": 1e-3, "G": 1e-4, "mG": 1e-7, "uT": 1e-6, "nT": 1e-9},
    "Pa": {"hPa": 100.0, "kPa": 1e3, "bar": 1e5},
    "m/s": {"mm/s": 1e-3},
    "m": {"mm": 1e-3},
}
"""Unit -> other units of the same quantity, each with its factor."""

EARTH_VALUES: Mapping[str, tuple[float, float]] = {"m/s^2": (8.8, 10.8), "Pa": (8.5e4, 1.1e5), "T": (1e-5, 1.5e-4)}
"""Unit -> the typical size on the ground of specific force, air pressure and the earth's field."""

MIN_TEMPERATURE = 150.0
"""Kelvin. A median temperature below it is treated as degrees Celsius."""

SLOW, SLOW_IMU = 5.0, 1.0
"""Steps (s) at and above which times may be in milliseconds; for an IMU, they must be."""


def check_steps(kind: str, seconds: FloatArray) -> None:
    """Raise `SensorError` if no sensor of this type has steps like those of `seconds` (n,) s; warn of rare steps."""
    if seconds.size < 2:
        return
    step = float(np.median(np.diff(seconds)))
    limit = SLOW_IMU if kind == "imu" else 1.0 / SLOWEST
    if step >= limit:
        remedy = "if the numbers are milliseconds, give them divided by 1e3; nanoseconds, by 1e9"
        raise SensorError(
            "step of time (s)", step, allowed=f"must be below {limit:g} s for a sensor {kind}", remedy=remedy
        )
    if step >= SLOW:
        _warn(f"time: its rows are {step:g} s apart; it must be in seconds")


def check_values(kind: str, name: str, unit: str, array: FloatArray) -> None:
    """Raise `SensorError` for values (n, ...) that are not in `unit`; warn if that is uncertain.

    The check ignores values that are not finite.
    """
    rows = np.abs(array.reshape(array.shape[0], -1))
    largest = MAX_VALUES_OF_SENSOR.get((kind, name), MAX_VALUES.get(unit, math.inf))
    over = np.isfinite(rows) & (rows > largest)
    finite = np.isfinite(rows).all(axis=1)
    size = float(np.median(np.sqrt((rows[finite] * rows[finite]).sum(axis=1)))) if finite.any() else math.nan
    low, high = EARTH_VALUES.get(unit, (0.0, largest))
    units = [one for one, factor in OTHER_UNITS.get(unit, {}).items() if low <= size * factor <= high]
    if over.any():
        row, axis = (int(index[0]) for index in np.nonzero(over))
        value = float(array.reshape(rows.shape)[row, axis])
        allowed = f"must have a magnitude of at most {largest:g}, the limit of instruments"
        raise SensorError(f"{name} of row {row} ({unit})", value, allowed=allowed, remedy=_unit_remedy(units, unit))
    if unit == "K" and size < MIN_TEMPERATURE:
        allowed = f"must be above {MIN_TEMPERATURE:g}"
        raise SensorError(
            f"median of {name} (K)", size, allowed=allowed, remedy="if the numbers are degrees Celsius, add 273.15"
        )
    if units and unit == "m/s^2":
        allowed = "cannot be the specific force of a vehicle on earth, 9.8"
        raise SensorError(f"median size of {name} ({unit})", size, allowed=allowed, remedy=_unit_remedy(units, unit))
    if units and kind == "air_pressure":
        _warn(f"{name}: its median is {size:g} Pa; {_unit_remedy(units, unit)}")


def _unit_remedy(units: list[str], unit: str) -> str:
    """Return the remedy for numbers that look like other units; "" without such units."""
    return f"the numbers look like {' or '.join(units)}: convert them to {unit}" if units else ""


def _warn(text: str) -> None:
    """Warn the caller of a sensor's `apply`."""
    warnings.warn(text, RuntimeWarning, stacklevel=5)

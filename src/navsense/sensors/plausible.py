"""Arrays of one's own that cannot be what `apply` takes: another unit, or a time that is not in seconds.

A value beyond `LARGEST` is an error: no instrument measures it. Specific forces of a typical size of 1 (g) or 1000 (mg)
are an error too, as a vehicle on earth has 9.8 m/s^2. A slow sensor has no limit as clear: where its time, or an air
pressure, is possible but looks like another unit, a warning says so.

Sources: the ranges of the fastest gyroscopes (20 000 deg/s) and the hardest shock accelerometers (200 000 g) on the
market; 10 mT is far beyond the range of magnetometers for navigation, 0.8 to 5 mT.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import numpy as np

from navsense.errors import SensorError
from navsense.ticks import SLOWEST
from navsense.typing import FloatArray

LARGEST: Mapping[str, float] = {"rad/s": 350.0, "m/s^2": 2e6, "T": 0.01, "m/s": 1e4, "Pa": 1e9, "m": 1e8, "K": 5000.0}
"""Unit -> the largest value that an instrument may measure."""

LARGEST_OF: Mapping[tuple[str, str], float] = {("dvl", "velocity"): 100.0, ("dvl", "water_velocity"): 100.0}
"""Type of sensor and name of an array -> the same, where less is possible."""

OTHERS: Mapping[str, Mapping[str, float]] = {
    "rad/s": {"deg/s": math.pi / 180.0},
    "m/s^2": {"g": 9.80665, "mg": 9.80665e-3},
    "T": {"mT": 1e-3, "G": 1e-4, "mG": 1e-7, "uT": 1e-6, "nT": 1e-9},
    "Pa": {"hPa": 100.0, "kPa": 1e3, "bar": 1e5},
    "m/s": {"mm/s": 1e-3},
    "m": {"mm": 1e-3},
}
"""Unit -> other units of the same quantity, and what one of them is."""

ON_EARTH: Mapping[str, tuple[float, float]] = {"m/s^2": (8.8, 10.8), "Pa": (8.5e4, 1.1e5), "T": (1e-5, 1.5e-4)}
"""Unit -> the typical size on the ground of specific force, air pressure and the earth's field."""

COLDEST = 150.0
"""Kelvin: the median of temperatures below it is taken for degrees Celsius."""

SLOW, SLOW_IMU = 5.0, 1.0
"""Seconds between rows, from which on a time may be in milliseconds; of an IMU, from which on it must be."""


def check_steps(kind: str, seconds: FloatArray) -> None:
    """Raise `SensorError` for times (n,) s whose steps no sensor of this type has; warn of steps that few have."""
    if seconds.size < 2:
        return
    step = float(np.median(np.diff(seconds)))
    most = SLOW_IMU if kind == "imu" else 1.0 / SLOWEST
    if step >= most:
        remedy = "if the numbers are milliseconds, give them divided by 1e3; nanoseconds, by 1e9"
        raise SensorError(
            "step of time (s)", step, allowed=f"must be below {most:g} s for a sensor {kind}", remedy=remedy
        )
    if step >= SLOW:
        _warn(f"time: its rows are {step:g} s apart; it must be in seconds")


def check_values(kind: str, name: str, unit: str, array: FloatArray) -> None:
    """Raise `SensorError` for values (n, ...) that look like another unit than `unit`; warn where that is not certain.

    Values that are not finite are left out.
    """
    rows = np.abs(array.reshape(array.shape[0], -1))
    largest = LARGEST_OF.get((kind, name), LARGEST.get(unit, math.inf))
    over = np.isfinite(rows) & (rows > largest)
    whole = np.isfinite(rows).all(axis=1)
    size = float(np.median(np.sqrt((rows[whole] * rows[whole]).sum(axis=1)))) if whole.any() else math.nan
    low, high = ON_EARTH.get(unit, (0.0, largest))
    units = [one for one, factor in OTHERS.get(unit, {}).items() if low <= size * factor <= high]
    if over.any():
        row, axis = (int(index[0]) for index in np.nonzero(over))
        value = float(array.reshape(rows.shape)[row, axis])
        allowed = f"must be of a size of at most {largest:g}, as instruments measure"
        raise SensorError(f"{name} of row {row} ({unit})", value, allowed=allowed, remedy=_convert(units, unit))
    if unit == "K" and size < COLDEST:
        allowed = f"must be above {COLDEST:g}"
        raise SensorError(
            f"median of {name} (K)", size, allowed=allowed, remedy="if the numbers are degrees Celsius, add 273.15"
        )
    if units and unit == "m/s^2":
        allowed = "cannot be the specific force of a vehicle on earth, 9.8"
        raise SensorError(f"median size of {name} ({unit})", size, allowed=allowed, remedy=_convert(units, unit))
    if units and kind == "air_pressure":
        _warn(f"{name}: its median is {size:g} Pa; {_convert(units, unit)}")


def _convert(units: list[str], unit: str) -> str:
    """Return the remedy for numbers that look like other units; nothing where there is none."""
    return f"the numbers look like {' or '.join(units)}: convert them to {unit}" if units else ""


def _warn(text: str) -> None:
    """Warn the caller of a sensor's `apply`."""
    warnings.warn(text, RuntimeWarning, stacklevel=5)

"""Units of a magnetic field, and the detection of a wrong unit.

    field (T) = value * MAGNETIC_FIELD_UNITS[unit]

The earth's field is 22 to 67 microtesla everywhere on its surface (World Magnetic Model). The gain of a sensor may be
wrong, so that fitted strengths of 10 to 150 microtesla are plausible. Tesla, gauss, microtesla and nanotesla differ by
factors of 1e2 to 1e9: a strength in a wrong unit is outside this range, and the error names the units for which it is
inside. If the strength is known, the fit must be within a factor of 3 of it. The unit None means any numbers; only a
known strength is checked.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from navsense.core.errors import CalibrationError
from navsense.core.typing import AnyArray, FloatArray
from navsense.core.units import MAGNETIC_FIELD_UNITS

MIN_FIELD, MAX_FIELD = 10e-6, 150e-6
"""Plausible strengths of the earth's field as a sensor measures it (T)."""

ROUNDING = 1e-9
"""Relative tolerance on these limits, for values that were converted."""

UNIT_VECTOR_TOLERANCE = 0.05
"""Largest difference between 1 and the length of readings that were normalised."""

MAX_STRENGTH_RATIO = 3.0
"""Largest ratio between a known strength and the fitted one."""


UnitT = TypeVar("UnitT", str, str | None)


def normalize_unit(unit: UnitT) -> UnitT:
    """Return the name of a unit with u for both signs of micro, as in µT. Other values are not changed."""
    return unit.replace("\u00b5", "u").replace("\u03bc", "u") if isinstance(unit, str) else unit


def validate_unit(unit: str | None) -> str | None:
    """Return the unit, with u for micro. Raises `CalibrationError` for an unknown one."""
    unit = normalize_unit(unit)
    if unit is not None and not (isinstance(unit, str) and unit in MAGNETIC_FIELD_UNITS):
        allowed = f"must be one of {', '.join(MAGNETIC_FIELD_UNITS)}, or None for numbers without one"
        raise CalibrationError("unit", unit, allowed=allowed)
    return unit


def validate_number(what: str, value: object, allowed: str) -> float:
    """Return a number as a float. Raises `CalibrationError` for other values."""
    given: AnyArray = np.asarray(value)
    if given.ndim or given.dtype.kind not in "fiu":
        raise CalibrationError(what, value, allowed=allowed)
    return float(given)


def validate_positive(what: str, value: object) -> float | None:
    """Return a finite number above 0 as a float, or None for None. Raises `CalibrationError` for other values."""
    if value is None:
        return None
    number = validate_number(what, value, "must be a number above 0, or None")
    if not 0.0 < number < math.inf:
        raise CalibrationError(what, f"{number:.6g}", allowed="must be above 0 and finite")
    return number


def validate_strength(strength: float | None, unit: str | None) -> float | None:
    """Return the known strength in `unit`. Raises `CalibrationError` unless it is plausible for the earth's field."""
    number = validate_positive("strength", strength)
    if number is not None and unit is not None:
        _check_plausible(f"strength ({unit})", number, f"{number:.6g}", unit)
    return number


def check_scale(scale: float, unit: str | None, strength: float | None) -> None:
    """Raise `CalibrationError` if a fitted scale in `unit` is not plausible, or far from the known strength."""
    what = f"strength of the field ({unit})" if unit else "strength of the field"
    if unit is not None:
        _check_plausible(what, scale, f"{scale:.4g}", unit)
    if strength is not None and not strength / MAX_STRENGTH_RATIO <= scale <= strength * MAX_STRENGTH_RATIO:
        raise CalibrationError(
            what,
            f"{scale:.4g}",
            allowed=f"must be within a factor of {MAX_STRENGTH_RATIO:g} of the known strength, {strength:.4g}",
            remedy="check the known strength and its unit, the sensor's range setting, and magnets nearby",
        )


def _check_plausible(what: str, value: float, text: str, unit: str) -> None:
    """Raise `CalibrationError` with the likely unit if a strength in `unit` is not plausible."""
    if is_plausible_strength(value * MAGNETIC_FIELD_UNITS[unit]):
        return
    low, high = MIN_FIELD / MAGNETIC_FIELD_UNITS[unit], MAX_FIELD / MAGNETIC_FIELD_UNITS[unit]
    units = list_plausible_units(value)
    if abs(value - 1.0) <= UNIT_VECTOR_TOLERANCE:
        remedy = 'the numbers look like unit vectors: give unit=None; if they are gauss, unit="G"'
    elif units:
        options = " or ".join(f'unit="{name}"' for name in units)
        remedy = f"the numbers look like {' or '.join(units)}: give {options}"
    else:
        remedy = f"no usual unit makes this the earth's field: check that the numbers are {unit}, or give unit=None"
    allowed = f"must be from {low:g} to {high:g}, as the earth's field is"
    raise CalibrationError(what, text, allowed=allowed, remedy=remedy)


def format_unit(unit: str | None) -> str:
    """Return a unit as text after a number: " uT", or nothing for None."""
    return "" if unit is None else f" {unit}"


POWERS = {unit: round(math.log10(size)) for unit, size in MAGNETIC_FIELD_UNITS.items()}
"""Power of ten of each unit in tesla."""

DISPLAY_UNIT = "uT"
"""Unit of magnetic fields in printed texts."""


def convert_field(values: FloatArray | float, unit: str, target: str) -> FloatArray:
    """Return values in another unit. The factor is a power of ten, and exact."""
    power = POWERS[unit] - POWERS[target]
    return np.asarray(values * 10.0**power if power >= 0 else values / 10.0**-power)


def format_display_unit(unit: str | None) -> str:
    """Return the unit of printed fields as text after a number: " µT", or nothing for None."""
    return "" if unit is None else " µT"


def format_field(value: float, unit: str | None, form: str = ".3g") -> str:
    """Return a field in microtesla as text with its unit; the number itself if it has no unit."""
    shown = value if unit is None else float(convert_field(value, unit, DISPLAY_UNIT))
    return f"{shown:{form}}{format_display_unit(unit)}"


def is_plausible_strength(tesla: float) -> bool:
    """Return True if a sensor can measure this strength (T) in the earth's field."""
    return MIN_FIELD * (1.0 - ROUNDING) <= tesla <= MAX_FIELD * (1.0 + ROUNDING)


def list_plausible_units(value: float) -> tuple[str, ...]:
    """Return the units in which a value is a plausible strength of the earth's field."""
    return tuple(unit for unit, factor in MAGNETIC_FIELD_UNITS.items() if is_plausible_strength(value * factor))

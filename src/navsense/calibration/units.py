"""Units of a magnetic field, and the mistake of one unit for another.

    field (T) = value * UNITS[unit]

The earth's field is between 22 and 67 microtesla everywhere on its surface (World Magnetic Model); a sensor's gain may
be off, so that a fitted strength of 10 to 150 microtesla is believed. Tesla, gauss and nanotesla lie 1e3, 1e4, 1e5 and
1e9 apart: a fit in a wrong unit falls out of this span, and the error names the units in which it would not.
Where the strength is known, the fit has to be within a factor of 3 of it. Unit None: any numbers, checked against a
known strength only.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.errors import CalibrationError
from navsense.factors.arguments import UNITS
from navsense.typing import AnyArray

MIN_FIELD, MAX_FIELD = 10e-6, 150e-6
"""Tesla: what a sensor in the earth's field may be found to see."""

ROUNDING = 1e-9
"""What a bound may be missed by for having been multiplied."""

UNIT_VECTOR_TOLERANCE = 0.05
"""What readings are off length 1 that somebody has divided by theirs."""

MAX_STRENGTH_RATIO = 3.0
"""Factor between a known strength and the one that the sensor is found to see."""


def validate_unit(unit: str | None) -> str | None:
    """Return the unit; raise `CalibrationError` for one that is not known."""
    if unit is not None and not (isinstance(unit, str) and unit in UNITS):
        allowed = f"must be one of {', '.join(UNITS)}, or None for numbers without one"
        raise CalibrationError("unit", unit, allowed=allowed)
    return unit


def format_unit(unit: str | None) -> str:
    """Return a unit as text stands after a number: " uT", or nothing where there is none."""
    return "" if unit is None else f" {unit}"


def validate_positive(what: str, value: object) -> float | None:
    """Return a number above 0 as a float, None for None; raise `CalibrationError` for another thing."""
    if value is None:
        return None
    given: AnyArray = np.asarray(value)
    if given.ndim or given.dtype.kind not in "fiu":
        raise CalibrationError(what, value, allowed="must be a number above 0, or None")
    number = float(given)
    if not 0.0 < number < math.inf:
        raise CalibrationError(what, f"{number:.6g}", allowed="must be above 0 and finite")
    return number


def validate_strength(strength: float | None, unit: str | None) -> float | None:
    """Return the known strength (in `unit`); raise `CalibrationError` unless it is a field that the earth may have."""
    number = validate_positive("strength", strength)
    if number is not None and unit is not None and not is_plausible_strength(number * UNITS[unit]):
        raise CalibrationError(
            f"strength ({unit})", f"{number:.6g}", allowed=_allowed_strength(unit), remedy=_unit_remedy(number, unit)
        )
    return number


def check_scale(scale: float, unit: str | None, strength: float | None) -> None:
    """Raise `CalibrationError` where a fitted scale (in `unit`) cannot be the earth's field seen by this sensor."""
    what = f"strength of the field ({unit})" if unit else "strength of the field"
    if unit is not None and not is_plausible_strength(scale * UNITS[unit]):
        raise CalibrationError(what, f"{scale:.4g}", allowed=_allowed_strength(unit), remedy=_unit_remedy(scale, unit))
    if strength is not None and not strength / MAX_STRENGTH_RATIO <= scale <= strength * MAX_STRENGTH_RATIO:
        raise CalibrationError(
            what,
            f"{scale:.4g}",
            allowed=f"must be within a factor of {MAX_STRENGTH_RATIO:g} of the known strength, {strength:.4g}",
            remedy="check the known strength and its unit, the sensor's range setting and what magnets are near",
        )


def is_plausible_strength(tesla: float) -> bool:
    """Tell whether a sensor may see the earth's field so strong (T)."""
    return MIN_FIELD * (1.0 - ROUNDING) <= tesla <= MAX_FIELD * (1.0 + ROUNDING)


def plausible_units(value: float) -> tuple[str, ...]:
    """Return the units in which a value would be the earth's field."""
    return tuple(unit for unit, factor in UNITS.items() if is_plausible_strength(value * factor))


def _allowed_strength(unit: str) -> str:
    """Say what a strength may be, in the unit."""
    low, high = MIN_FIELD / UNITS[unit], MAX_FIELD / UNITS[unit]
    return f"must be from {low:g} to {high:g}, as the earth's field is"


def _unit_remedy(value: float, unit: str) -> str:
    """Say which unit the numbers are likely to have."""
    units = plausible_units(value)
    if abs(value - 1.0) <= UNIT_VECTOR_TOLERANCE:
        return 'the numbers look like unit vectors: say unit=None; if they are gauss, unit="G"'
    if units:
        return f"the numbers look like {' or '.join(units)}: say " + " or ".join(f'unit="{name}"' for name in units)
    return f"no usual unit makes this the earth's field: check that the numbers are {unit}, or give unit=None"

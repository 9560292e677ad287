"""Sizes of units in SI: value in SI = size * value in the unit. No other module defines the size of a unit.

Sources: SI brochure, 9th edition (standard gravity: CGPM 1901; nautical mile: 1929); international foot of 1959.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

DEGREE = math.pi / 180.0
STANDARD_GRAVITY = 9.80665
GAUSS = 1e-4
KNOT = 1852.0 / 3600.0
FOOT = 0.3048
FATHOM = 1.8288

MAGNETIC_FIELD_UNITS = {"T": 1.0, "mT": 1e-3, "uT": 1e-6, "nT": 1e-9, "G": GAUSS, "mG": 1e-7}
"""Size of each unit in tesla."""

OTHER_UNITS: Mapping[str, Mapping[str, float]] = {
    "rad/s": {"deg/s": DEGREE},
    "m/s^2": {"g": STANDARD_GRAVITY, "mg": 1e-3 * STANDARD_GRAVITY},
    "T": {unit: MAGNETIC_FIELD_UNITS[unit] for unit in ("mT", "G", "mG", "uT", "nT")},
    "Pa": {"hPa": 100.0, "kPa": 1e3, "bar": 1e5},
    "m/s": {"cm/s": 1e-2, "mm/s": 1e-3},
    "m": {"mm": 1e-3},
}
"""SI unit -> other units of the same quantity with their sizes."""

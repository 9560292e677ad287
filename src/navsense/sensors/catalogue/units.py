"""Units of datasheets, and the SI unit of each of their values.

    si = factor * printed          for a unit
    si = factor / printed          for counts per unit, "LSB/(deg/s)": the size of one count

    1 g = 9.80665 m/s^2   1 G = 1e-4 T   1 mbar = 10^-3 bar = 1 hPa = 100 Pa   1 ft = 0.3048 m   1 deg = pi / 180 rad
    1 deg/sqrt(h)   = pi / 180 / 60 rad/sqrt(s) = pi / 180 / 60 rad/s/sqrt(Hz)       sqrt(1 h) = 60 sqrt(s)
    1 m/s/sqrt(h)   = 1 / 60 m/s/sqrt(s)        = 1 / 60 m/s^2/sqrt(Hz)

A random walk of the integral, such as "angle random walk", is the white density of the rate: N of the IEEE's Allan
variance. A temperature difference in degC equals one in K. A share of the full scale, "%FS", is a number without unit.
Source: SI brochure, 9th edition (9.80665 m/s^2: CGPM 1901); IEEE Std 952, for the random walks.
"""

from __future__ import annotations

from typing import NamedTuple

from navsense.core.units import DEGREE, FOOT, GAUSS, STANDARD_GRAVITY


class Unit(NamedTuple):
    """Conversion of a printed number to SI: times `factor`, or `factor` divided by it for LSB per unit."""

    factor: float
    si: str
    is_reciprocal: bool = False

    def to_si(self, printed: float) -> float:
        """Return the printed number in the unit `si`."""
        return self.factor / printed if self.is_reciprocal else self.factor * printed


_SI_UNITS = (
    *("rad/s", "rad/s/sqrt(Hz)", "rad/s^2/sqrt(Hz)", "m/s^2", "m/s^2/sqrt(Hz)", "m/s^3/sqrt(Hz)"),
    *("T", "Pa", "Pa/K", "m/s", "m", "rad", "Hz"),
)

UNITS: dict[str, Unit] = {
    **{unit: Unit(1.0, unit) for unit in _SI_UNITS},
    "deg/s": Unit(DEGREE, "rad/s"),
    "deg/h": Unit(DEGREE / 3600.0, "rad/s"),
    "deg/s/LSB": Unit(DEGREE, "rad/s"),
    "LSB/(deg/s)": Unit(DEGREE, "rad/s", is_reciprocal=True),
    "deg/s/sqrt(Hz)": Unit(DEGREE, "rad/s/sqrt(Hz)"),
    "deg/h/sqrt(Hz)": Unit(DEGREE / 3600.0, "rad/s/sqrt(Hz)"),
    "deg/sqrt(h)": Unit(DEGREE / 60.0, "rad/s/sqrt(Hz)"),
    "deg/s/g": Unit(DEGREE / STANDARD_GRAVITY, "rad/s/(m/s^2)"),
    "deg/h/g": Unit(DEGREE / 3600.0 / STANDARD_GRAVITY, "rad/s/(m/s^2)"),
    "deg/s/K": Unit(DEGREE, "rad/s/K"),
    "deg/h/K": Unit(DEGREE / 3600.0, "rad/s/K"),
    "g": Unit(STANDARD_GRAVITY, "m/s^2"),
    "mg": Unit(1e-3 * STANDARD_GRAVITY, "m/s^2"),
    "ug": Unit(1e-6 * STANDARD_GRAVITY, "m/s^2"),
    "mg/LSB": Unit(1e-3 * STANDARD_GRAVITY, "m/s^2"),
    "LSB/g": Unit(STANDARD_GRAVITY, "m/s^2", is_reciprocal=True),
    "mg/sqrt(Hz)": Unit(1e-3 * STANDARD_GRAVITY, "m/s^2/sqrt(Hz)"),
    "ug/sqrt(Hz)": Unit(1e-6 * STANDARD_GRAVITY, "m/s^2/sqrt(Hz)"),
    "m/s/sqrt(h)": Unit(1.0 / 60.0, "m/s^2/sqrt(Hz)"),
    "ft/s/sqrt(h)": Unit(FOOT / 60.0, "m/s^2/sqrt(Hz)"),
    "mg/K": Unit(1e-3 * STANDARD_GRAVITY, "m/s^2/K"),
    "uT": Unit(1e-6, "T"),
    "nT": Unit(1e-9, "T"),
    "G": Unit(GAUSS, "T"),
    "mG": Unit(1e-3 * GAUSS, "T"),
    "LSB/uT": Unit(1e-6, "T", is_reciprocal=True),
    "LSB/G": Unit(GAUSS, "T", is_reciprocal=True),
    "nT/sqrt(Hz)": Unit(1e-9, "T/sqrt(Hz)"),
    "nT/K": Unit(1e-9, "T/K"),
    "hPa": Unit(100.0, "Pa"),
    "mbar": Unit(100.0, "Pa"),
    "bar": Unit(1e5, "Pa"),
    "LSB/hPa": Unit(100.0, "Pa", is_reciprocal=True),
    "cm/s": Unit(1e-2, "m/s"),
    "mm/s": Unit(1e-3, "m/s"),
    "dm": Unit(1e-1, "m"),
    "cm": Unit(1e-2, "m"),
    "mrad": Unit(1e-3, "rad"),
    "deg": Unit(DEGREE, "rad"),
    "%": Unit(1e-2, "1"),
    "%FS": Unit(1e-2, "1"),
    "ppm": Unit(1e-6, "1"),
    "%/K": Unit(1e-2, "1/K"),
    "ppm/K": Unit(1e-6, "1/K"),
}
"""The units that a part's file may use."""

_RATE_UNITS = {"rad/s": "rad/s^2", "m/s^2": "m/s^3", "T": "T/s", "Pa": "Pa/s", "m/s": "m/s^2", "m": "m/s"}

SECTION_UNITS = {
    "angular_velocity": "rad/s",
    "linear_acceleration": "m/s^2",
    "field": "T",
    "pressure": "Pa",
    "bottom_track": "m/s",
    "water_track": "m/s",
    "beam": "m",
}
"""Channel of a part -> its SI unit."""

ENTRY_NAMES = (
    "noise_density noise_rms bias_instability random_walk turn_on_bias scale_factor_error misalignment "
    "cross_axis_sensitivity g_sensitivity bias_temperature_coefficient scale_temperature_coefficient nonlinearity "
    "bandwidth range resolution output_rate angle width altitude long_term_scale long_term_offset maximum_velocity "
    "error_velocity_limit layer least_layer"
).split()
"""Entries of a section in a part's file."""

SCALAR_SECTIONS = frozenset(("pressure", "bottom_track", "water_track", "beam"))
"""Channels with one number instead of one per axis; all beams of an instrument have the same."""

RANGE_ENTRIES = frozenset((("pressure", "range"), ("beam", "range"), ("beam", "altitude"), ("water_track", "layer")))
"""Entries with two numbers, the lower and the upper end."""


_TRACK_VALUES = (("noise_rms", "noise_density"), ("long_term_scale",), ("long_term_offset",), ("maximum_velocity",))

REQUIRED_VALUES: dict[str, tuple[tuple[str, ...], ...]] = {
    "beam": (("angle",), ("width",), ("range", "altitude"), ("noise_rms",)),
    "bottom_track": _TRACK_VALUES,
    "water_track": (*_TRACK_VALUES, ("layer",)),
}
"""Values that a simulated DVL requires, each with its alternatives."""

NOISE_GROWTH, ECHO_STRENGTH = "growth of the noise with speed", "strength of the echo"
"""`Dvl.missing_values` has these texts, also in files."""

UNLISTED_PROPERTIES = (NOISE_GROWTH, ECHO_STRENGTH)
"""Other properties of a DVL, for which no part has a value."""


def count_axes(section: str) -> int:
    """Return the number of axes of a section of `SECTION_UNITS`."""
    return 1 if section in SCALAR_SECTIONS else 3


def get_si_unit(section: str, entry: str) -> str:
    """Return the SI unit of an entry of `ENTRY_NAMES` in a section of `SECTION_UNITS`."""
    unit = SECTION_UNITS[section]
    return {
        "noise_density": f"{unit}/sqrt(Hz)",
        "random_walk": f"{_RATE_UNITS[unit]}/sqrt(Hz)",
        "scale_factor_error": "1",
        "misalignment": "rad",
        "cross_axis_sensitivity": "1",
        "g_sensitivity": f"{unit}/(m/s^2)",
        "bias_temperature_coefficient": f"{unit}/K",
        "scale_temperature_coefficient": "1/K",
        "nonlinearity": "1",
        "bandwidth": "Hz",
        "output_rate": "Hz",
        "angle": "rad",
        "width": "rad",
        "altitude": "m",
        "long_term_scale": "1",
        "layer": "m",
        "least_layer": "m",
    }.get(entry, unit)

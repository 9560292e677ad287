"""The noise of the sections of a part, such as `field`: the meaning of datasheet values in `Noise`.

| value | becomes |
|---|---|
| noise_density, per root hertz | `noise_density` = printed / sqrt(2): datasheets are one-sided, N two-sided |
| noise_density, as a random walk (deg/sqrt(h)) or marked two-sided | `noise_density` as printed: it is N |
| noise_rms, without a density | `stddev` |
| bias_instability | `bias_instability` = printed / 0.664: datasheets print the floor of the Allan deviation |
| random_walk | `random_walk` |
| turn_on_bias | `bias_stddev`: 1 sigma or typical as printed, a limit as three deviations |
| scale_factor_error | `scale_factor_stddev`, likewise |
| bias_temperature_coefficient, scale_temperature_coefficient | the same of `Noise`, a third of a limit, on request |
| range, resolution | `minimum` and `maximum`, `precision` |

Datasheets show that a density per root hertz is one-sided: ICM-42688-P prints 0.0028 deg/s/sqrt(Hz) and 0.028 deg/s
rms in 100 Hz, ADIS16460 0.004 deg/s/sqrt(Hz) and 0.17 deg/sqrt(h), which is 0.004 * 60 / sqrt(2). Limits are two-sided,
so a third of a limit is the standard deviation of which 99.7 % of instruments are within the limit. Misalignment,
cross-axis and g-sensitivity are printed as limits without a sign, nonlinearity without a shape. They are not used; set
them if you know your instrument.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from navsense.core.errors import SensorError
from navsense.noise.specification import Noise
from navsense.sensors.catalogue import DatasheetEntry, Part
from navsense.sensors.catalogue.units import SCALAR_SECTIONS, count_axes

FLICKER_FLOOR = math.sqrt(2.0 * math.log(2.0) / math.pi)
"""Floor of the Allan deviation of flicker, as a share of its B (IEEE 952-1997, annex C)."""

SIGMAS_PER_LIMIT = 3.0
"""Number of standard deviations in a printed limit."""


def to_typical_value(entry: DatasheetEntry, axis: int = 0) -> float:
    """Return the typical value (SI) of an entry: a third of a limit, any other value as printed."""
    value = entry.values[axis]
    return value / SIGMAS_PER_LIMIT if entry.meaning == "maximum" else value


def _read_terms(entries: Mapping[str, DatasheetEntry], axis: int, *, two_sided: bool) -> dict[str, float]:
    """Return the fields of `Noise` of one axis without temperature coefficients. `two_sided`: the range is +-."""
    terms: dict[str, float] = {}
    if "noise_density" in entries:
        density = entries["noise_density"]
        one_sided = "sqrt(Hz)" in density.printed_unit and not density.two_sided
        terms["noise_density"] = density.values[axis] / (math.sqrt(2.0) if one_sided else 1.0)
    elif "noise_rms" in entries:
        terms["stddev"] = entries["noise_rms"].values[axis]
    if "bias_instability" in entries:
        terms["bias_instability"] = entries["bias_instability"].values[axis] / FLICKER_FLOOR
    if "random_walk" in entries:
        terms["random_walk"] = entries["random_walk"].values[axis]
    if "turn_on_bias" in entries:
        terms["bias_stddev"] = to_typical_value(entries["turn_on_bias"], axis)
    if "scale_factor_error" in entries:
        terms["scale_factor_stddev"] = to_typical_value(entries["scale_factor_error"], axis)
    if "range" in entries:
        values = entries["range"].values
        terms["minimum"], terms["maximum"] = (-values[axis], values[axis]) if two_sided else values
    if "resolution" in entries:
        terms["precision"] = entries["resolution"].values[axis]
    return terms


TEMPERATURE_TERMS = {
    "bias_temperature_coefficient": "temperature_coefficient",
    "scale_temperature_coefficient": "scale_temperature_coefficient",
}
"""Entry of a part -> field of `Noise`."""


def make_noise(part: Part, section: str, *, temperature: bool = False) -> tuple[Noise, ...]:
    """Return the noise of each axis of a section of a part, by the table above.

    `temperature` enables its temperature coefficients, which require the signal "temperature". Raises `SensorError` if
    the part does not have the section.
    """
    entries = part.entries.get(section)
    if entries is None:
        has = ", ".join(part.entries)
        raise SensorError(f"section of part {part.name}", section, allowed=f"it is of type {part.sensor} and has {has}")
    noises = []
    for axis in range(count_axes(section)):
        terms: dict[str, Any] = _read_terms(entries, axis, two_sided=section not in SCALAR_SECTIONS)
        for key, term in TEMPERATURE_TERMS.items() if temperature else ():
            if key in entries:
                terms[term] = to_typical_value(entries[key], axis)
        noises.append(Noise(**terms))
    return tuple(noises)

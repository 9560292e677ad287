"""`<navsense:part>NAME</navsense:part>` in a sensor: the noise of a real part of the catalogue.

It holds for the channels to which the file gives no noise of their own; attribute `temperature="true"` lets the part's
temperature coefficients act too, which need the signal "temperature".
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from navsense.errors import SensorError, UnknownNameError
from navsense.noise.channel import NEUTRAL, Noise
from navsense.sdf.context import Context
from navsense.sdf.places import PART
from navsense.sdf.read import Element
from navsense.sdf.values import attribute_flag, refusal
from navsense.sensors.base import Catalogued, Sensor
from navsense.sensors.depth import Depth

TAG = "navsense:part"


def with_part(context: Context, sensor: Element, spec: Sensor, *, classic: bool) -> Sensor:
    """Return the sheet with the noise of the part that a `<sensor>` names, where it names one."""
    element = sensor.first(TAG)
    if element is None:
        return spec
    context.check(element, PART)
    with context.collecting():
        return _filled(element, spec, classic=classic)
    return spec


def _filled(element: Element, spec: Any, *, classic: bool) -> Sensor:
    """Return the sheet whose neutral noises are those of the part. Raise `SdfError` where there is no such part."""
    kind = type(spec)
    if not isinstance(kind, Catalogued):
        raise refusal(element, element.text, f"the catalogue has no part of type {spec.type}", parent="sensor")
    try:
        sheet: Any = kind.from_part(element.text, temperature=attribute_flag(element, "temperature"))
    except (UnknownNameError, SensorError) as error:
        other = "" if isinstance(error, UnknownNameError) else f"is no part for a sensor of type {spec.type}: "
        raise refusal(element, element.text, other + error.allowed, parent="sensor", remedy=error.remedy) from error
    found = {field.name: getattr(sheet, field.name) for field in fields(sheet)}
    given = {name: getattr(spec, name) for name in found}
    taken = {
        name: _as_told(spec, replace(noise, classic=classic))
        for name, noise in found.items()
        if isinstance(noise, Noise) and replace(given[name], classic=False) == NEUTRAL
    }
    filled: Sensor = replace(spec, **taken)
    return filled


def _as_told(spec: Sensor, noise: Noise) -> Noise:
    """Return a part's noise with its limits, those of an absolute pressure, as a gauge tells them."""
    if not (isinstance(spec, Depth) and spec.gauge):
        return noise
    return replace(noise, minimum=noise.minimum - spec.surface_pressure, maximum=noise.maximum - spec.surface_pressure)

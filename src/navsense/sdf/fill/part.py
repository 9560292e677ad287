"""`<navsense:part>NAME</navsense:part>` in a sensor: the noise of a real part of the catalogue, and what else it gives.

It holds for the channels to which the file gives no noise of their own, and for the fields of the sheet that the file
leaves as they are by default: beams, limits and tracks of a DVL. Attribute `temperature="true"` lets the part's
temperature coefficients act too, which need the signal "temperature".
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, replace
from typing import Any

from navsense.errors import MissingDeviationError, SdfError, SensorError, UnknownNameError
from navsense.noise.channel import Noise
from navsense.sdf.context import Context
from navsense.sdf.places import PART
from navsense.sdf.read import Element
from navsense.sdf.values import attribute_flag, refusal
from navsense.sensors.base import Catalogued, Sensor
from navsense.sensors.depth import Depth
from navsense.sensors.doppler import Track
from navsense.sensors.dvl import Dvl, Mode

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
        sheet: Any = kind.from_part(
            element.text, temperature=attribute_flag(element, "temperature"), **_stddev_argument(spec)
        )
    except MissingDeviationError as error:
        raise _missing_deviation(element) from error
    except (UnknownNameError, SensorError) as error:
        other = "" if isinstance(error, UnknownNameError) else f"is no part for a sensor of type {spec.type}: "
        raise refusal(element, element.text, other + error.allowed, parent="sensor", remedy=error.remedy) from error
    taken = _taken(spec, sheet, classic=classic)
    if isinstance(spec, Depth) and spec.gauge:
        taken = {name: _as_told(spec, value) for name, value in taken.items()}
    try:
        filled: Sensor = replace(spec, **taken)
    except SensorError as error:
        allowed = f"does not go with the rest of the sensor: {error.what} {error.allowed}"
        raise refusal(element, element.text, allowed, parent="sensor", remedy=error.remedy) from error
    return filled


def _stddev_argument(spec: Any) -> dict[str, float]:
    """Return the standard deviation (m/s) of a ping from the file of a DVL, as an argument; 0 without bottom track."""
    if isinstance(spec, Dvl) and (spec.bottom.noise.is_white or spec.bottom_mode is Mode.NEVER):
        return {"stddev": spec.bottom.noise.stddev}
    return {}


def _missing_deviation(element: Element) -> SdfError:
    """Return the error of a DVL if neither the part nor the file has the standard deviation of a ping."""
    allowed = "requires the standard deviation of a single ping, for which the part has no source"
    remedy = "give <bottom_track><noise><stddev> in <dvl>"
    return refusal(element, element.text, allowed, parent="sensor", remedy=remedy)


def _default(field: Field[Any]) -> Any:
    """Return what a field of a sheet is by default."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _taken(own: Any, part: Any, *, classic: bool) -> dict[str, Any]:
    """Return the fields of a part's sheet, or of a track of it, that one's own leaves as they are by default."""
    found: dict[str, Any] = {}
    for field in fields(part):
        mine, given = getattr(own, field.name), getattr(part, field.name)
        if isinstance(given, Track):
            found[field.name] = replace(mine, **_taken(mine, given, classic=classic))
        elif _under(mine, classic=False) == _default(field) != given:
            found[field.name] = _under(given, classic=classic)
    return found


def _under(value: Any, *, classic: bool) -> Any:
    """Return a field of a sheet, a noise classic or not."""
    return replace(value, classic=classic) if isinstance(value, Noise) else value


def _as_told(spec: Depth, value: Any) -> Any:
    """Return a field of a part's sheet, limits of an absolute pressure as a gauge tells them."""
    if not isinstance(value, Noise):
        return value
    return replace(value, minimum=value.minimum - spec.surface_pressure, maximum=value.maximum - spec.surface_pressure)

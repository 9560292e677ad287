"""`<navsense:part>NAME</navsense:part>` in a sensor: the noise of a real part of the catalogue, and what else it gives.

It holds for the channels to which the file gives no noise of their own, and for the fields of the sheet that the file
leaves as they are by default: beams, limits and tracks of a DVL. Attribute `temperature="true"` lets the part's
temperature coefficients act too, which need the signal "temperature".
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, replace
from typing import Any

from navsense.core.errors import MissingDeviationError, SdfError, SensorError, UnknownNameError
from navsense.noise.channel import Noise
from navsense.sdf.context import Context
from navsense.sdf.schema import PART
from navsense.sdf.values import invalid_value, parse_attribute_flag
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import HasCatalogueParts, Sensor
from navsense.sensors.depth import Depth
from navsense.sensors.doppler import DopplerTrack
from navsense.sensors.dvl import Dvl, TrackMode

PART_TAG = "navsense:part"


def apply_part(context: Context, sensor: Element, spec: Sensor, *, classic: bool) -> Sensor:
    """Return the sheet with the noise of the part that a `<sensor>` names, where it names one."""
    element = sensor.find(PART_TAG)
    if element is None:
        return spec
    context.check(element, PART)
    with context.collect_errors():
        return _fill_from_part(element, spec, classic=classic)
    return spec


def _fill_from_part(element: Element, spec: Any, *, classic: bool) -> Sensor:
    """Return the sheet whose neutral noises are those of the part. Raise `SdfError` where there is no such part."""
    kind = type(spec)
    if not isinstance(kind, HasCatalogueParts):
        raise invalid_value(element, element.text, f"the catalogue has no part of type {spec.type}", parent="sensor")
    try:
        sheet: Any = kind.from_part(
            element.text, temperature=parse_attribute_flag(element, "temperature"), **_make_stddev_argument(spec)
        )
    except MissingDeviationError as error:
        raise _missing_stddev_error(element) from error
    except (UnknownNameError, SensorError) as error:
        other = "" if isinstance(error, UnknownNameError) else f"is no part for a sensor of type {spec.type}: "
        raise invalid_value(
            element, element.text, other + error.allowed, parent="sensor", remedy=error.remedy
        ) from error
    taken = _select_part_fields(spec, sheet, classic=classic)
    if isinstance(spec, Depth) and spec.gauge:
        taken = {name: _to_gauge(spec, value) for name, value in taken.items()}
    try:
        filled: Sensor = replace(spec, **taken)
    except SensorError as error:
        allowed = f"does not go with the rest of the sensor: {error.what} {error.allowed}"
        raise invalid_value(element, element.text, allowed, parent="sensor", remedy=error.remedy) from error
    return filled


def _make_stddev_argument(spec: Any) -> dict[str, float]:
    """Return the standard deviation (m/s) of a ping from the file of a DVL, as an argument; 0 without bottom track."""
    if isinstance(spec, Dvl) and (spec.bottom.noise.has_white_noise or spec.bottom_mode is TrackMode.NEVER):
        return {"stddev": spec.bottom.noise.stddev}
    return {}


def _missing_stddev_error(element: Element) -> SdfError:
    """Return the error of a DVL if neither the part nor the file has the standard deviation of a ping."""
    allowed = "requires the standard deviation of a single ping, for which the part has no source"
    remedy = "give <bottom_track><noise><stddev> in <dvl>"
    return invalid_value(element, element.text, allowed, parent="sensor", remedy=remedy)


def _get_default(field: Field[Any]) -> Any:
    """Return what a field of a sheet is by default."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _select_part_fields(own: Any, part: Any, *, classic: bool) -> dict[str, Any]:
    """Return the fields of a part's sheet, or of a track of it, that one's own leaves as they are by default."""
    found: dict[str, Any] = {}
    for field in fields(part):
        mine, given = getattr(own, field.name), getattr(part, field.name)
        if isinstance(given, DopplerTrack):
            found[field.name] = replace(mine, **_select_part_fields(mine, given, classic=classic))
        elif _set_classic(mine, classic=False) == _get_default(field) != given:
            found[field.name] = _set_classic(given, classic=classic)
    return found


def _set_classic(value: Any, *, classic: bool) -> Any:
    """Return a field of a sheet, a noise classic or not."""
    return replace(value, classic=classic) if isinstance(value, Noise) else value


def _to_gauge(spec: Depth, value: Any) -> Any:
    """Return a field of a part's sheet, limits of an absolute pressure as a gauge tells them."""
    if not isinstance(value, Noise):
        return value
    return replace(value, minimum=value.minimum - spec.surface_pressure, maximum=value.maximum - spec.surface_pressure)

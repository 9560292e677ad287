"""`<navsense:part>NAME</navsense:part>` in a sensor: the values of a part of the catalogue.

The part supplies the noise of channels without a `<noise>` in the file. `<noise type="none">` keeps a channel without
noise. The part also supplies the fields of the specification that the file leaves at their defaults: beams, limits and
tracks of a DVL. Attribute `temperature="true"` enables the temperature coefficients of the part, which require the
signal "temperature".
"""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from typing import Any

from navsense.core.errors import MissingDeviationError, SensorError, UnknownNameError
from navsense.noise.specification import Noise
from navsense.sdf.context import Context
from navsense.sdf.parse.noise import EXPLICIT_NO_NOISE
from navsense.sdf.schema import PART
from navsense.sdf.values import invalid_value, parse_attribute_flag
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import HasCatalogueParts, Sensor
from navsense.sensors.depth import Depth
from navsense.sensors.doppler import TrackErrors
from navsense.sensors.dvl import Dvl, TrackMode

PART_TAG = "navsense:part"


def apply_part(context: Context, sensor_element: Element, spec: Sensor, *, classic: bool) -> Sensor:
    """Return the specification of a `<sensor>` with the values of its part, if it names one."""
    element = context.find_child(sensor_element, PART_TAG, PART)
    if element is not None:
        with context.collect_errors():
            return _fill_from_part(element, spec, classic=classic)
    return spec


def _fill_from_part(element: Element, spec: Any, *, classic: bool) -> Sensor:
    """Return the specification with the values of a part. Raises `SdfError` for an unknown part."""
    sensor_class = type(spec)
    # `from_part` is a class method, so the class itself has the member of the protocol.
    if not isinstance(sensor_class, HasCatalogueParts):
        raise invalid_value(element, element.text, f"the catalogue has no part of type {spec.type}", parent="sensor")
    try:
        temperature = parse_attribute_flag(element, "temperature")
        part_spec: Any = sensor_class.from_part(element.text, temperature=temperature, **_make_stddev_argument(spec))
    except MissingDeviationError as error:
        allowed = "requires the standard deviation of a single ping, for which the part has no source"
        remedy = "give <bottom_track><noise><stddev> in <dvl>"
        raise invalid_value(element, element.text, allowed, parent="sensor", remedy=remedy) from error
    except (UnknownNameError, SensorError) as error:
        allowed = error.allowed
        if not isinstance(error, UnknownNameError):
            allowed = f"is not a part of type {spec.type}: {allowed}"
        raise invalid_value(element, element.text, allowed, parent="sensor", remedy=error.remedy) from error
    part_fields = _select_part_fields(spec, part_spec, classic=classic)
    if isinstance(spec, Depth) and spec.gauge:
        part_fields = {name: _to_gauge(spec, value) for name, value in part_fields.items()}
    try:
        result: Sensor = replace(spec, **part_fields)
    except SensorError as error:
        allowed = f"does not fit the other values of the sensor: {error.what} {error.allowed}"
        raise invalid_value(element, element.text, allowed, parent="sensor", remedy=error.remedy) from error
    return result


def _make_stddev_argument(spec: Any) -> dict[str, float]:
    """Return the `stddev` argument (m/s) of a DVL's part from the file; 0 without bottom track."""
    if not isinstance(spec, Dvl):
        return {}
    noise = spec.bottom.noise
    has_stddev = noise.has_white_noise or noise is EXPLICIT_NO_NOISE or spec.bottom_mode is TrackMode.NEVER
    return {"stddev": noise.stddev} if has_stddev else {}


def _select_part_fields(spec: Any, part: Any, *, classic: bool) -> dict[str, Any]:
    """Return the fields of a part's specification, or of one of its tracks, that the file leaves at their defaults."""
    selected: dict[str, Any] = {}
    for field in fields(part):
        value, part_value = getattr(spec, field.name), getattr(part, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if isinstance(part_value, TrackErrors):
            selected[field.name] = replace(value, **_select_part_fields(value, part_value, classic=classic))
        elif value is EXPLICIT_NO_NOISE:  # the object itself: it is equal to `NO_NOISE`
            continue
        elif _set_classic(value, classic=False) == default and part_value != default:
            selected[field.name] = _set_classic(part_value, classic=classic)
    return selected


def _set_classic(value: Any, *, classic: bool) -> Any:
    """Return the value of a field; a noise with the fidelity of the file."""
    return replace(value, classic=classic) if isinstance(value, Noise) else value


def _to_gauge(spec: Depth, value: Any) -> Any:
    """Return the value of a field; limits of an absolute pressure are converted to gauge pressure."""
    if not isinstance(value, Noise):
        return value
    return replace(value, minimum=value.minimum - spec.surface_pressure, maximum=value.maximum - spec.surface_pressure)

"""`<noise>`: the errors of one channel of a sensor or of a clock."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from navsense.core.errors import SdfError, SensorError
from navsense.core.inputs import parse_decimal
from navsense.noise.channel import NEUTRAL, Noise
from navsense.sdf.binder import ChildParser, ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.schema import AXES, AXIS
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element

NOISE_TYPES = ("none", "gaussian", "gaussian_quantized")

DATASHEET_TAG = "navsense:noise"
DATASHEET = ElementBinding(Noise, parent=DATASHEET_TAG)
NOISE = ElementBinding(Noise, other_children=(DATASHEET_TAG,), other_attributes=("type",))


def parse_child_noise(context: Context, parent: Element, *, classic: bool) -> Noise:
    """Return the noise of the child `<noise>`; without it no noise."""
    element = parent.find("noise")
    return NEUTRAL if element is None else parse_noise(context, element, classic=classic)


def parse_channel_noise(context: Context, element: Element | None, *, classic: bool) -> Noise:
    """Return the noise of an element with `<noise>` as its only child; without it no noise."""
    if element is None:
        return NEUTRAL
    context.check(element, AXIS)
    return parse_child_noise(context, element, classic=classic)


def read_sensor_values(
    context: Context,
    element: Element,
    binding: ElementBinding[Any],
    *,
    classic: bool,
    parsers: Mapping[str, ChildParser] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the values of the fields of a sensor, see `ElementBinding.read_values`; its channels have a `<noise>`."""
    channels = dict.fromkeys(binding.list_fields(Noise), partial(parse_channel_noise, classic=classic))
    return binding.read_values(context, element, {**channels, **parsers})


def parse_axes_noise(context: Context, parent: Element | None, *, classic: bool) -> tuple[Noise, Noise, Noise]:
    """Return the noises of the children `<x>`, `<y>`, `<z>`; no noise for an absent child."""
    if parent is None:
        return (NEUTRAL, NEUTRAL, NEUTRAL)
    context.check(parent, AXES)
    x, y, z = (parse_channel_noise(context, parent.find(axis), classic=classic) for axis in "xyz")
    return (x, y, z)


def parse_noise(context: Context, element: Element, *, classic: bool) -> Noise:
    """Return the noise of a `<noise>` element; an invalid element gives no noise and a problem in `context`."""
    context.check(element, NOISE.schema)
    kind = _parse_type(context, element)
    before = context.problem_count
    values = NOISE.read_values(context, element)
    datasheet = element.find(DATASHEET_TAG)
    if datasheet is not None:
        context.check(datasheet, DATASHEET.schema)
        values |= DATASHEET.read_values(context, datasheet)
    if values.get("dynamic_bias_stddev", 0.0) > 0.0 and not values.get("dynamic_bias_correlation_time", 0.0):
        child = element.find("dynamic_bias_stddev") or element
        allowed = "requires a dynamic_bias_correlation_time > 0"
        remedy = "add the correlation time in seconds, or remove the dynamic bias"
        context.add_problem(invalid_value(child, child.text, allowed, parent="noise", remedy=remedy))
    if kind == "none":
        _warn_about_unused(context, element)
    if kind == "gaussian" and values.get("precision", 0.0) > 0.0:
        reason = (
            "has an effect with gaussian_quantized only, as in the specification (Gazebo also rounds with gaussian)"
        )
        child = element.find("precision") or element
        context.add_note("warning", f"<noise><precision>: {child.text}", reason, child.where)
        values["precision"] = 0.0
    if kind is None or context.problem_count > before:
        return NEUTRAL
    try:
        noise = Noise(**values, classic=classic)
    except SensorError as error:
        context.add_problem(_noise_error(element, error))
        return NEUTRAL
    return NEUTRAL if kind == "none" else noise


def _noise_error(element: Element, error: SensorError) -> SdfError:
    """Return the error of a field at the line of the field."""
    for parent, binding in ((element, NOISE), (element.find(DATASHEET_TAG), DATASHEET)):
        child = parent and parent.find(binding.tags.get(error.what, ""))
        if parent and child:
            return invalid_value(child, child.text, error.allowed, parent=parent.tag, remedy=error.remedy)
    return invalid_value(element, element.text, error.allowed, remedy=error.remedy)


def _parse_type(context: Context, element: Element) -> str | None:
    allowed = f"must be one of {', '.join(NOISE_TYPES)}"
    given = element.get_attribute("type")
    if given is None:
        value = "empty" if "type" in element.attributes else "missing"
        context.add_problem(invalid_value(element, value, allowed, attribute="type", remedy='write <noise type="...">'))
        return None
    if given.lower() not in NOISE_TYPES:
        context.add_problem(invalid_value(element, given, allowed, attribute="type"))
        return None
    return given.lower()


def _warn_about_unused(context: Context, element: Element) -> None:
    for child in element.children:
        is_limit = child.tag in NOISE.schema.children and ":" in child.tag
        if is_limit or (child.tag in NOISE.schema.children and parse_decimal(child.text) not in (0.0, None)):
            reason = 'has no effect: the type of the noise is "none"'
            context.add_note("warning", f"<noise><{child.tag}>: {child.text}", reason, child.where)

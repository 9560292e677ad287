"""`<noise>`: the errors of one channel of a sensor or of a clock, and sensors that have channels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from navsense.core.inputs import parse_decimal
from navsense.noise.specification import NEUTRAL, Noise
from navsense.sdf.binder import ChildParser, ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.schema import AXES, AXIS
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element

Spec = TypeVar("Spec")

NOISE_TYPES = ("none", "gaussian", "gaussian_quantized")

DATASHEET_TAG = "navsense:noise"
DATASHEET = ElementBinding(Noise, parent=DATASHEET_TAG)
"""The fields of `Noise` that stand in `<navsense:noise>`."""

NOISE = ElementBinding(Noise, other_children=(DATASHEET_TAG,), other_attributes=("type",))
"""The other fields of `Noise`."""


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


def make_channel_parsers(binding: ElementBinding[Any], *, classic: bool) -> dict[str, ChildParser]:
    """Return the parsers of the channels of a sensor, by field; each channel has a `<noise>`."""
    return dict.fromkeys(binding.list_fields(Noise), partial(parse_channel_noise, classic=classic))


def read_spec_with_channels(
    context: Context,
    block: Element | None,
    binding: ElementBinding[Spec],
    sensor_context: SensorContext,
    parsers: Mapping[str, ChildParser] = MappingProxyType({}),
    **other_fields: Any,
) -> Spec:
    """Return the specification of a sensor with channels, see `ElementBinding.read`; without a block the default."""
    if block is None:
        return binding.spec(**other_fields)
    all_parsers = {**make_channel_parsers(binding, classic=sensor_context.classic), **parsers}
    return binding.read(context, block, all_parsers, **other_fields)


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
    problems_before, noise_type = context.problem_count, ""  # an invalid type stays ""
    with context.collect_errors():
        noise_type = _parse_type(element)
    values = NOISE.read_fields(context, element)
    datasheet = context.find_child(element, DATASHEET_TAG, DATASHEET.schema)
    if datasheet is not None:
        values |= DATASHEET.read_fields(context, datasheet)
    # `Noise` checks this too. Here the error stands at `<dynamic_bias_stddev>`.
    if values.get("dynamic_bias_stddev", 0.0) > 0.0 and not values.get("dynamic_bias_correlation_time", 0.0):
        child = element.find("dynamic_bias_stddev") or element
        allowed = "requires a dynamic_bias_correlation_time > 0"
        remedy = "add the correlation time in seconds, or remove the dynamic bias"
        context.add_problem(invalid_value(child, child.text, allowed, parent="noise", remedy=remedy))
    if noise_type == "none":
        _warn_about_unused(context, element)
    if noise_type == "gaussian" and values.get("precision", 0.0) > 0.0:
        reason = (
            "has an effect with gaussian_quantized only, as in the specification (Gazebo also rounds with gaussian)"
        )
        child = element.find("precision") or element
        context.add_note("warning", f"<noise><precision>: {child.text}", reason, child.where)
        values["precision"] = 0.0
    if context.problem_count > problems_before:  # an invalid value is missing in `values`
        return NEUTRAL
    with context.collect_errors():
        noise = NOISE.make_spec(context, element, problems_before, **values, classic=classic)
        return NEUTRAL if noise_type == "none" else noise
    return NEUTRAL


def _parse_type(element: Element) -> str:
    """Return the type of a `<noise>`. Raises `SdfError`."""
    allowed = f"must be one of {', '.join(NOISE_TYPES)}"
    text = element.get_attribute("type")
    if text is None:
        value = "empty" if "type" in element.attributes else "missing"
        raise invalid_value(element, value, allowed, attribute="type", remedy='write <noise type="...">')
    if text.lower() not in NOISE_TYPES:
        raise invalid_value(element, text, allowed, attribute="type")
    return text.lower()


def _warn_about_unused(context: Context, element: Element) -> None:
    """Add a warning for each child of a noise of type "none" that would have an effect with another type."""
    for child in element.children:
        is_extension = child.tag in NOISE.schema.children and ":" in child.tag
        if is_extension or (child.tag in NOISE.schema.children and parse_decimal(child.text) not in (0.0, None)):
            reason = 'has no effect: the type of the noise is "none"'
            context.add_note("warning", f"<noise><{child.tag}>: {child.text}", reason, child.where)

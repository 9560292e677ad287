"""`<noise>`: the errors of one channel, of a sensor or of a clock."""

from __future__ import annotations

import math

from navsense.errors import SdfError, SensorError
from navsense.inputs import parse_decimal
from navsense.noise.channel import DATASHEET_FIELDS, NEUTRAL, NON_NEGATIVE_FIELDS, Noise
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.schema import AXES, AXIS, NAVSENSE_NOISE, NOISE
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import PREFIX, Element

NOISE_TYPES = ("none", "gaussian", "gaussian_quantized")

_SDF_FIELDS = (
    "mean",
    "stddev",
    "bias_mean",
    "bias_stddev",
    "dynamic_bias_stddev",
    "dynamic_bias_correlation_time",
    "precision",
)
_EXTENSION_DEFAULTS: dict[str, float] = {name: getattr(NEUTRAL, name) for name in sorted(DATASHEET_FIELDS)}
_LIMIT_DEFAULTS = {"navsense:minimum": -math.inf, "navsense:maximum": math.inf}


def parse_child_noise(context: Context, parent: Element, *, classic: bool) -> Noise:
    """Return the noise of the child `<noise>`, neutral where there is none."""
    element = parent.find("noise")
    return NEUTRAL if element is None else parse_noise(context, element, classic=classic)


def parse_channel_noise(context: Context, element: Element | None, *, classic: bool) -> Noise:
    """Return the noise of an element that holds nothing but `<noise>`, neutral where it is absent."""
    if element is None:
        return NEUTRAL
    context.check(element, AXIS)
    return parse_child_noise(context, element, classic=classic)


def parse_axes_noise(context: Context, parent: Element | None, *, classic: bool) -> tuple[Noise, Noise, Noise]:
    """Return the noises of the children `<x>`, `<y>`, `<z>`, each neutral where it is absent."""
    if parent is None:
        return (NEUTRAL, NEUTRAL, NEUTRAL)
    context.check(parent, AXES)
    x, y, z = (parse_channel_noise(context, parent.find(axis), classic=classic) for axis in "xyz")
    return (x, y, z)


def parse_noise(context: Context, element: Element, *, classic: bool) -> Noise:
    """Return the noise of a `<noise>` element; neutral, with a problem in `context`, where it holds what cannot be."""
    context.check(element, NOISE)
    kind = _parse_type(context, element)
    before = context.problem_count
    values = {
        tag: parse_child_number(context, element, tag, 0.0, minimum=0.0 if tag in NON_NEGATIVE_FIELDS else -math.inf)
        for tag in _SDF_FIELDS
    }
    values |= _parse_extensions(context, element.find("navsense:noise"))
    limits = {tag: parse_child_number(context, element, tag, default) for tag, default in _LIMIT_DEFAULTS.items()}
    minimum, maximum = limits["navsense:minimum"], limits["navsense:maximum"]
    _check_combinations(context, element, values, minimum, maximum)
    if kind == "none":
        _warn_about_unused(context, element)
    if kind is None or kind == "none" or context.problem_count > before:
        return NEUTRAL
    if kind == "gaussian" and values["precision"] > 0.0:
        reason = "acts with gaussian_quantized only, as the specification says (Gazebo rounds with gaussian too)"
        child = element.find("precision") or element
        context.add_note("warning", f"<noise><precision>: {child.text}", reason, child.where)
        values["precision"] = 0.0
    try:
        return Noise(**values, minimum=minimum, maximum=maximum, classic=classic)
    except SensorError as error:
        context.add_problem(_noise_error(element, error))
    return NEUTRAL


def _noise_error(element: Element, error: SensorError) -> SdfError:
    """Return what the class says of a field as an error at the field's line."""
    sheet = element.find("navsense:noise")
    own = element.find(error.what, PREFIX + error.what)
    child = own or (sheet.find(error.what) if sheet else None) or element
    parent = "noise" if own or sheet is None else sheet.tag
    return invalid_value(
        child, child.text, error.allowed, parent="" if child is element else parent, remedy=error.remedy
    )


def _parse_extensions(context: Context, element: Element | None) -> dict[str, float]:
    """Return the terms of a data sheet that `<navsense:noise>` gives."""
    if element is None:
        return {}
    context.check(element, NAVSENSE_NOISE)
    return {
        tag: parse_child_number(
            context, element, tag, default, minimum=0.0 if tag in NON_NEGATIVE_FIELDS else -math.inf
        )
        for tag, default in _EXTENSION_DEFAULTS.items()
    }


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


def _check_combinations(
    context: Context, element: Element, terms: dict[str, float], minimum: float, maximum: float
) -> None:
    """Hold the fields that depend on each other against each other."""
    if terms.get("outlier_probability", 0.0) > 1.0:
        sheet = element.find("navsense:noise") or element
        child = sheet.find("outlier_probability") or sheet
        context.add_problem(invalid_value(child, child.text, "must be from 0 to 1", parent="navsense:noise"))
    if not minimum < maximum:
        child = element.find("navsense:minimum") or element
        context.add_problem(invalid_value(child, child.text, f"must be below the maximum {maximum!r}", parent="noise"))
    if terms["dynamic_bias_stddev"] > 0.0 and terms["dynamic_bias_correlation_time"] == 0.0:
        child = element.find("dynamic_bias_stddev") or element
        allowed = "must come with a dynamic_bias_correlation_time > 0"
        remedy = "give the correlation time in seconds, or leave the dynamic bias out"
        context.add_problem(invalid_value(child, child.text, allowed, parent="noise", remedy=remedy))


def _warn_about_unused(context: Context, element: Element) -> None:
    for child in element.children:
        given = child.tag in _SDF_FIELDS and parse_decimal(child.text) not in (0.0, None)
        if given or child.tag in (*_LIMIT_DEFAULTS, "navsense:noise"):
            reason = 'is not used: the type of the noise is "none"'
            context.add_note("warning", f"<noise><{child.tag}>: {child.text}", reason, child.where)

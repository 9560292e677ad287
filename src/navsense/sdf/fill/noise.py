"""`<noise>`: the errors of one channel, of a sensor or of a clock."""

from __future__ import annotations

import math

from navsense.errors import SdfError, SensorError
from navsense.inputs import decimal
from navsense.noise.channel import NEUTRAL, NOT_NEGATIVE, SHEET, Noise
from navsense.sdf.context import Context
from navsense.sdf.fill.fields import number_of
from navsense.sdf.places import AXES, AXIS, NAVSENSE_NOISE, NOISE
from navsense.sdf.read import PREFIX, Element
from navsense.sdf.values import refusal

TYPES = ("none", "gaussian", "gaussian_quantized")

_FIELDS = (
    "mean",
    "stddev",
    "bias_mean",
    "bias_stddev",
    "dynamic_bias_stddev",
    "dynamic_bias_correlation_time",
    "precision",
)
_SHEET: dict[str, float] = {name: getattr(NEUTRAL, name) for name in sorted(SHEET)}
_LIMITS = {"navsense:minimum": -math.inf, "navsense:maximum": math.inf}


def noise_of(context: Context, parent: Element, *, classic: bool) -> Noise:
    """Return the noise of the child `<noise>`, neutral where there is none."""
    element = parent.first("noise")
    return NEUTRAL if element is None else noise(context, element, classic=classic)


def channel_of(context: Context, element: Element | None, *, classic: bool) -> Noise:
    """Return the noise of an element that holds nothing but `<noise>`, neutral where it is absent."""
    if element is None:
        return NEUTRAL
    context.check(element, AXIS)
    return noise_of(context, element, classic=classic)


def axes_of(context: Context, parent: Element | None, *, classic: bool) -> tuple[Noise, Noise, Noise]:
    """Return the noises of the children `<x>`, `<y>`, `<z>`, each neutral where it is absent."""
    if parent is None:
        return (NEUTRAL, NEUTRAL, NEUTRAL)
    context.check(parent, AXES)
    x, y, z = (channel_of(context, parent.first(axis), classic=classic) for axis in "xyz")
    return (x, y, z)


def noise(context: Context, element: Element, *, classic: bool) -> Noise:
    """Return the noise of a `<noise>` element; neutral, with a problem in `context`, where it holds what cannot be."""
    context.check(element, NOISE)
    kind = _type(context, element)
    before = context.found
    values = {
        tag: number_of(context, element, tag, 0.0, least=0.0 if tag in NOT_NEGATIVE else -math.inf) for tag in _FIELDS
    }
    values |= _sheet_of(context, element.first("navsense:noise"))
    limits = {tag: number_of(context, element, tag, default) for tag, default in _LIMITS.items()}
    minimum, maximum = limits["navsense:minimum"], limits["navsense:maximum"]
    _check_pairs(context, element, values, minimum, maximum)
    if kind == "none":
        _warn_of_unused(context, element)
    if kind is None or kind == "none" or context.found > before:
        return NEUTRAL
    if kind == "gaussian" and values["precision"] > 0.0:
        reason = "acts with gaussian_quantized only, as the specification says (Gazebo rounds with gaussian too)"
        child = element.first("precision") or element
        context.note("warning", f"<noise><precision>: {child.text}", reason, child.where)
        values["precision"] = 0.0
    try:
        return Noise(**values, minimum=minimum, maximum=maximum, classic=classic)
    except SensorError as error:
        context.problem(_refused(element, error))
    return NEUTRAL


def _refused(element: Element, error: SensorError) -> SdfError:
    """Return what the class says of a field as an error at the field's line."""
    sheet = element.first("navsense:noise")
    own = element.first(error.what, PREFIX + error.what)
    child = own or (sheet.first(error.what) if sheet else None) or element
    parent = "noise" if own or sheet is None else sheet.tag
    return refusal(child, child.text, error.allowed, parent="" if child is element else parent, remedy=error.remedy)


def _sheet_of(context: Context, element: Element | None) -> dict[str, float]:
    """Return the terms of a data sheet that `<navsense:noise>` gives."""
    if element is None:
        return {}
    context.check(element, NAVSENSE_NOISE)
    return {
        tag: number_of(context, element, tag, default, least=0.0 if tag in NOT_NEGATIVE else -math.inf)
        for tag, default in _SHEET.items()
    }


def _type(context: Context, element: Element) -> str | None:
    allowed = f"must be one of {', '.join(TYPES)}"
    given = element.attribute("type")
    if given is None:
        value = "empty" if "type" in element.attributes else "missing"
        context.problem(refusal(element, value, allowed, attribute="type", remedy='write <noise type="...">'))
        return None
    if given.lower() not in TYPES:
        context.problem(refusal(element, given, allowed, attribute="type"))
        return None
    return given.lower()


def _check_pairs(context: Context, element: Element, values: dict[str, float], minimum: float, maximum: float) -> None:
    """Hold the fields that depend on each other against each other."""
    if values.get("outlier_probability", 0.0) > 1.0:
        sheet = element.first("navsense:noise") or element
        child = sheet.first("outlier_probability") or sheet
        context.problem(refusal(child, child.text, "must be from 0 to 1", parent="navsense:noise"))
    if not minimum < maximum:
        child = element.first("navsense:minimum") or element
        context.problem(refusal(child, child.text, f"must be below the maximum {maximum!r}", parent="noise"))
    if values["dynamic_bias_stddev"] > 0.0 and values["dynamic_bias_correlation_time"] == 0.0:
        child = element.first("dynamic_bias_stddev") or element
        allowed = "must come with a dynamic_bias_correlation_time > 0"
        remedy = "give the correlation time in seconds, or leave the dynamic bias out"
        context.problem(refusal(child, child.text, allowed, parent="noise", remedy=remedy))


def _warn_of_unused(context: Context, element: Element) -> None:
    for child in element.children:
        given = child.tag in _FIELDS and decimal(child.text) not in (0.0, None)
        if given or child.tag in (*_LIMITS, "navsense:noise"):
            reason = 'is not used: the type of the noise is "none"'
            context.note("warning", f"<noise><{child.tag}>: {child.text}", reason, child.where)

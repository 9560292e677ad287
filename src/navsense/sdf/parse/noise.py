"""`<noise>`: the errors of one channel of a sensor or of a clock.

    <x>                                                           a channel: `parse_channel_noise`
      <noise type="gaussian"> <stddev>1e-7</stddev> </noise>      fields of `Noise`: `parse_noise`
    </x>

A part of the catalogue does not replace the noise of a channel that has a `<noise>`.
"""

from __future__ import annotations

from navsense.core.text import parse_decimal
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.schema import CHANNEL
from navsense.sdf.values import invalid_choice, invalid_value
from navsense.sdf.xml_reader import Element

NOISE_TYPES = ("none", "gaussian", "gaussian_quantized")

EXTENSION_TAG = "navsense:noise"
EXTENSION = ElementBinding(Noise, container=EXTENSION_TAG)
"""The fields of `Noise` in `<navsense:noise>`."""

NOISE = ElementBinding(Noise, other_children=(EXTENSION_TAG,), other_attributes=("type",))
"""The fields of `Noise` that stand directly in `<noise>`, `navsense:minimum` and `navsense:maximum` among them."""

EXPLICIT_NO_NOISE = Noise()
"""The noise of a `<noise>` without errors.

A part of the catalogue replaces the noise of a channel without `<noise>`, which is `NO_NOISE`. It does not replace this
object (`is`), although the two are equal. So nothing may copy a `Noise` between `parse_noise` and `parse.part`.
"""

_NO_ERRORS = {classic: Noise(classic=classic) for classic in (False, True)}
"""A noise without errors, by fidelity."""


def parse_child_noise(context: Context, channel_element: Element, *, classic: bool) -> Noise:
    """Return the noise of the `<noise>` in an element, `NO_NOISE` without one. The caller checks the element."""
    element = channel_element.find("noise")
    return NO_NOISE if element is None else parse_noise(context, element, classic=classic)


def parse_channel_noise(context: Context, channel_element: Element, *, classic: bool) -> Noise:
    """Return the noise of a channel, for example `<x>`: a parent of `<noise>` without other children."""
    context.check(channel_element, CHANNEL)
    return parse_child_noise(context, channel_element, classic=classic)


def parse_noise(context: Context, element: Element, *, classic: bool) -> Noise:
    """Return the noise of a `<noise>`. An invalid element gives no noise and a problem in `context`.

    An element without errors, or of type "none", gives `EXPLICIT_NO_NOISE` itself.
    """
    context.check(element, NOISE.schema)
    problems_before, noise_type = context.problem_count, ""  # an invalid type stays ""
    with context.collect_errors():
        noise_type = _parse_type(element)
    values = NOISE.read_fields(context, element)
    extension = context.find_child(element, EXTENSION_TAG, EXTENSION.schema)
    if extension is not None:
        values |= EXTENSION.read_fields(context, extension)
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
            "has an effect with gaussian_quantized only, as in the SDF specification (Gazebo also rounds with gaussian)"
        )
        child = element.find("precision") or element
        context.add_note("warning", f"<noise><precision>: {child.text}", reason, child.where)
        values["precision"] = 0.0
    if context.problem_count > problems_before:  # an invalid value is missing in `values`
        return NO_NOISE
    with context.collect_errors():
        # `values` has the fields of `EXTENSION` too: `make_spec` accepts those of every container.
        noise = NOISE.make_spec(context, element, **values, classic=classic)
        return EXPLICIT_NO_NOISE if noise_type == "none" or noise == _NO_ERRORS[classic] else noise
    return NO_NOISE


def _parse_type(element: Element) -> str:
    """Return the type of a `<noise>`. Raises `SdfError`."""
    allowed = f"must be one of {', '.join(NOISE_TYPES)}"
    text = element.get_attribute("type")
    if text is None:
        value = "empty" if "type" in element.attributes else "missing"
        raise invalid_value(element, value, allowed, attribute="type", remedy='write <noise type="...">')
    if text.lower() not in NOISE_TYPES:
        raise invalid_choice(element, text, NOISE_TYPES, attribute="type")
    return text.lower()


def _warn_about_unused(context: Context, element: Element) -> None:
    """Add a warning for each child of a noise of type "none" that would have an effect with another type."""
    for child in element.children:
        has_prefix = child.tag in NOISE.schema.children and ":" in child.tag
        if has_prefix or (child.tag in NOISE.schema.children and parse_decimal(child.text) not in (0.0, None)):
            reason = 'has no effect: the type of the noise is "none"'
            context.add_note("warning", f"<noise><{child.tag}>: {child.text}", reason, child.where)

"""Gazebo's `libgazebo_ros_range.so` in a `<sensor type="ray">`: what it says, as the sensor's own elements say it.

| of the plug-in | becomes |
|---|---|
| `<robotNamespace>`, `<topicName>` | `<topic>NAMESPACE/TOPIC</topic>`, where the sensor has none |
| `<frameName>` | `<frame_id>`, where the sensor has none |
| `<updateRate>` | `<update_rate>`, where that is 0 or more than it: the plug-in leaves samples out |
| `<gaussianNoise>` | `<noise>` of the one return, beside that of the rays: the root of the sum of their squares |
| `<radiation>ultrasound</radiation>` | `<navsense:sound/>`; anything else is infrared |
| `<fov>` | the view of the message, which here is that of the rays |

Source: gazebo_plugins, `gazebo_ros_range.cpp`: the nearest of the rays, its noise, then the limits. The plug-in writes
-Inf on both sides of the limits; navsense's messages have +Inf where nothing was met. Under classic they have the
maximum or the minimum, as the description of the UUV Simulator's DVL documents its beams.
"""

from __future__ import annotations

import math
from dataclasses import replace

from navsense.sdf.context import Context
from navsense.sdf.fill.fields import number_of
from navsense.sdf.places import RANGE_PLUGIN, RANGE_PLUGIN_PLACE
from navsense.sdf.read import Element

ULTRASOUND = "ultrasound"

_NEAR = 1e-3
"""rad: a view that differs by less from that of the rays is theirs."""


def rewritten(context: Context, sensor: Element) -> Element:
    """Return a sensor with what its range plug-in says in elements of its own; as it is where it has none."""
    found = [child for child in sensor.all("plugin") if child.attribute("filename") == RANGE_PLUGIN]
    if not found:
        return sensor
    plugin, *others = found
    context.check(plugin, RANGE_PLUGIN_PLACE)
    for other in others:
        reason = f"is one of several; the one on line {plugin.line} counts"
        context.note("unsupported", f'<sensor><plugin filename="{RANGE_PLUGIN}">', reason, other.where)
    children = [child for child in sensor.children if child not in found]
    topic = "/".join(part for tag in ("robotNamespace", "topicName") if (part := _text(plugin, tag)))
    for tag, text in (("topic", topic), ("frame_id", _text(plugin, "frameName"))):
        if text and sensor.first(tag) is None:
            children.append(_made(tag, plugin, text))
    children = _at_rate(context, sensor, plugin, children)
    return replace(sensor, children=[_block(context, child, plugin) for child in children])


def _text(plugin: Element, tag: str) -> str:
    """Return the text of a child without slashes around it."""
    child = plugin.first(tag)
    return "" if child is None else child.text.strip("/")


def _made(tag: str, element: Element, text: str = "", *children: Element) -> Element:
    """Return a new element that stands where one of the file stands."""
    return Element(tag, {}, element.line, element.path, text, list(children))


def _at_rate(context: Context, sensor: Element, plugin: Element, children: list[Element]) -> list[Element]:
    """Return the sensor's children with the rate (Hz) at which the plug-in publishes."""
    rate = number_of(context, plugin, "updateRate", 0.0, least=0.0)
    own = number_of(context, sensor, "update_rate", 0.0, least=0.0)
    if rate == 0.0 or 0.0 < own <= rate:
        return children
    kept = [child for child in children if child.tag != "update_rate"]
    return [*kept, _made("update_rate", plugin.first("updateRate") or plugin, repr(rate))]


def _block(context: Context, block: Element, plugin: Element) -> Element:
    """Return the block of a ray sensor with the plug-in's noise and means; another element as it is."""
    if block.tag not in ("ray", "lidar"):
        return block
    stddev = number_of(context, plugin, "gaussianNoise", 0.0, least=0.0)
    noise = block.first("noise")
    children = [child for child in block.children if child is not noise]
    if noise is not None and stddev > 0.0:
        both = math.hypot(stddev, number_of(context, noise, "stddev", 0.0, least=0.0))
        rest = [child for child in noise.children if child.tag != "stddev"]
        noise = replace(noise, children=[*rest, _made("stddev", plugin, repr(both))])
    elif stddev > 0.0:
        parts = (_made("type", plugin, "gaussian"), _made("stddev", plugin, repr(stddev)))
        noise = _made("noise", plugin.first("gaussianNoise") or plugin, "", *parts)
    radiation = plugin.first("radiation")
    if block.first("navsense:sound") is None and (radiation is None or radiation.text == ULTRASOUND):
        children.append(_made("navsense:sound", plugin))
    return replace(block, children=[*children, *([] if noise is None else [noise])])


def is_published(sensor: Element) -> bool:
    """Return True if a sensor has the plug-in."""
    return any(child.attribute("filename") == RANGE_PLUGIN for child in sensor.all("plugin"))


def tell_of_view(context: Context, sensor: Element, width: float) -> None:
    """Note a view (rad) of the plug-in that is not that of the rays, which `width` is."""
    for plugin in sensor.all("plugin"):
        child = plugin.first("fov") if plugin.attribute("filename") == RANGE_PLUGIN else None
        if child is not None and abs(number_of(context, plugin, "fov", width) - width) > _NEAR:
            reason = f"messages hold the width of the rays, {width:.4g} rad"
            context.note("unsupported", f"<plugin><fov>: {child.text}", reason, child.where)

"""Gazebo's `libgazebo_ros_range.so` in a `<sensor type="ray">`, converted to elements of the sensor.

| of the plug-in | becomes |
|---|---|
| `<robotNamespace>`, `<topicName>` | `<topic>NAMESPACE/TOPIC</topic>`, if the sensor has no topic |
| `<frameName>` | `<frame_id>`, if the sensor has none |
| `<updateRate>` | `<update_rate>`, if that is 0 or higher: the plug-in skips samples |
| `<gaussianNoise>` | `<noise>` of the return, added to the noise of the rays as a root sum of squares |
| `<radiation>ultrasound</radiation>` | `<navsense:sound/>`; other values are infrared |
| `<fov>` | not used: the field of view of messages is that of the rays |

Source: gazebo_plugins, `gazebo_ros_range.cpp`: the nearest of the rays, its noise, then the limits. The plug-in writes
-Inf on both sides of the limits; navsense writes +Inf if no ray hits. Under classic, messages have the maximum or the
minimum, as the description of the UUV Simulator's DVL documents its beams.
"""

from __future__ import annotations

import math
from dataclasses import replace

from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.schema import RANGE_PLUGIN_FILE, RANGE_PLUGIN_SCHEMA
from navsense.sdf.xml_reader import Element

ULTRASOUND = "ultrasound"

_VIEW_TOLERANCE = 1e-3
"""rad, tolerance between the field of view of the plug-in and that of the rays."""


def apply_plugin(context: Context, sensor: Element) -> Element:
    """Return a sensor with the values of its range plug-in as elements; without the plug-in the sensor itself."""
    found = [child for child in sensor.find_all("plugin") if child.get_attribute("filename") == RANGE_PLUGIN_FILE]
    if not found:
        return sensor
    plugin, *others = found
    context.check(plugin, RANGE_PLUGIN_SCHEMA)
    for other in others:
        reason = f"is one of several; the one on line {plugin.line} is used"
        context.add_note("unsupported", f'<sensor><plugin filename="{RANGE_PLUGIN_FILE}">', reason, other.where)
    children = [child for child in sensor.children if child not in found]
    topic = "/".join(part for tag in ("robotNamespace", "topicName") if (part := _read_text(plugin, tag)))
    for tag, text in (("topic", topic), ("frame_id", _read_text(plugin, "frameName"))):
        if text and sensor.find(tag) is None:
            children.append(_make_element(tag, plugin, text))
    children = _apply_rate(context, sensor, plugin, children)
    return replace(sensor, children=[_apply_to_block(context, child, plugin) for child in children])


def _read_text(plugin: Element, tag: str) -> str:
    """Return the text of a child without slashes around it."""
    child = plugin.find(tag)
    return "" if child is None else child.text.strip("/")


def _make_element(tag: str, element: Element, text: str = "", *children: Element) -> Element:
    """Return a new element at the place of an element of the file."""
    return Element(tag, {}, element.line, element.path, text, list(children))


def _apply_rate(context: Context, sensor: Element, plugin: Element, children: list[Element]) -> list[Element]:
    """Return the children of the sensor with the rate (Hz) at which the plug-in publishes."""
    rate = parse_child_number(context, plugin, "updateRate", 0.0, minimum=0.0)
    own = parse_child_number(context, sensor, "update_rate", 0.0, minimum=0.0)
    if rate == 0.0 or 0.0 < own <= rate:
        return children
    kept = [child for child in children if child.tag != "update_rate"]
    return [*kept, _make_element("update_rate", plugin.find("updateRate") or plugin, repr(rate))]


def _apply_to_block(context: Context, block: Element, plugin: Element) -> Element:
    """Return the block of a ray sensor with the noise and mean of the plug-in; other elements are unchanged."""
    if block.tag not in ("ray", "lidar"):
        return block
    stddev = parse_child_number(context, plugin, "gaussianNoise", 0.0, minimum=0.0)
    noise = block.find("noise")
    children = [child for child in block.children if child is not noise]
    if noise is not None and stddev > 0.0:
        both = math.hypot(stddev, parse_child_number(context, noise, "stddev", 0.0, minimum=0.0))
        rest = [child for child in noise.children if child.tag != "stddev"]
        noise = replace(noise, children=[*rest, _make_element("stddev", plugin, repr(both))])
    elif stddev > 0.0:
        parts = (_make_element("type", plugin, "gaussian"), _make_element("stddev", plugin, repr(stddev)))
        noise = _make_element("noise", plugin.find("gaussianNoise") or plugin, "", *parts)
    radiation = plugin.find("radiation")
    if block.find("navsense:sound") is None and (radiation is None or radiation.text == ULTRASOUND):
        children.append(_make_element("navsense:sound", plugin))
    return replace(block, children=[*children, *([] if noise is None else [noise])])


def has_range_plugin(sensor: Element) -> bool:
    """Return True if a sensor has the plug-in."""
    return any(child.get_attribute("filename") == RANGE_PLUGIN_FILE for child in sensor.find_all("plugin"))


def check_field_of_view(context: Context, sensor: Element, width: float) -> None:
    """Add a note if the field of view (rad) of the plug-in differs from `width`, that of the rays."""
    for plugin in sensor.find_all("plugin"):
        child = plugin.find("fov") if plugin.get_attribute("filename") == RANGE_PLUGIN_FILE else None
        if child is not None and abs(parse_child_number(context, plugin, "fov", width) - width) > _VIEW_TOLERANCE:
            reason = f"messages have the width of the rays, {width:.4g} rad"
            context.add_note("unsupported", f"<plugin><fov>: {child.text}", reason, child.where)

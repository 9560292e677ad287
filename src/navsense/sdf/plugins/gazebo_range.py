"""Gazebo's `libgazebo_ros_range.so` in a `<sensor type="ray">`, converted to elements of the sensor.

| of the plug-in | becomes |
|---|---|
| `<robotNamespace>`, `<topicName>` | `<topic>NAMESPACE/TOPIC</topic>`, if the sensor has no topic |
| `<frameName>` | `<frame_id>`, if the sensor has none |
| `<alwaysOn>` | `<always_on>`, if the sensor has none |
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
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import SensorPlugin, limit_rate, parse_topic
from navsense.sdf.schema import RANGE_PLUGIN_FILE, RANGE_PLUGIN_SCHEMA
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.sensors.range import Range

ULTRASOUND = "ultrasound"

_VIEW_TOLERANCE = 1e-3
"""rad, tolerance between the field of view of the plug-in and that of the rays."""


def apply(context: Context, sensor: Element, plugin: Element) -> Element:
    """Return a sensor with the values of its range plug-in as elements."""
    children = list(sensor.children)
    topic, frame = parse_topic(plugin, "topicName"), plugin.get_text("frameName").strip("/")
    for tag, text in (("topic", topic), ("frame_id", frame)):
        if text and sensor.find(tag) is None:
            children.append(plugin.make_element(tag, text))
    sensor = limit_rate(context, replace(sensor, children=children), plugin, "updateRate")
    return replace(sensor, children=[_apply_to_type_element(context, child, plugin) for child in sensor.children])


def _apply_to_type_element(context: Context, type_element: Element, plugin: Element) -> Element:
    """Return the type element of a ray sensor with the noise and mean of the plug-in; other elements are unchanged."""
    if type_element.tag not in ("ray", "lidar"):
        return type_element
    stddev = parse_child_number(context, plugin, "gaussianNoise", 0.0, minimum=0.0)
    noise = type_element.find("noise")
    children = [child for child in type_element.children if child is not noise]
    if noise is not None and stddev > 0.0:
        total = math.hypot(stddev, parse_child_number(context, noise, "stddev", 0.0, minimum=0.0))
        terms = [child for child in noise.children if child.tag != "stddev"]
        noise = replace(noise, children=[*terms, plugin.make_element("stddev", repr(total))])
    elif stddev > 0.0:
        terms = [plugin.make_element("type", "gaussian"), plugin.make_element("stddev", repr(stddev))]
        noise = (plugin.find("gaussianNoise") or plugin).make_element("noise", children=terms)
    radiation = plugin.find("radiation")
    if type_element.find("navsense:sound") is None and (radiation is None or radiation.text == ULTRASOUND):
        children.append(plugin.make_element("navsense:sound"))
    return replace(type_element, children=[*children, *([] if noise is None else [noise])])


def finish(context: Context, plugin: Element, spec: Sensor, _sensor_context: SensorContext) -> Sensor:
    """Return the specification of a sensor with the plug-in, and add a note about its field of view."""
    if not isinstance(spec, Range):
        return spec
    width, child = spec.beam.width, plugin.find("fov")
    if child is not None and abs(parse_child_number(context, plugin, "fov", width) - width) > _VIEW_TOLERANCE:
        reason = f"messages have the width of the rays, {width:.4g} rad"
        context.add_note("unsupported", f"<plugin><fov>: {child.text}", reason, child.where)
    return replace(spec, ros_plugin=True)


SENSOR_PLUGINS = {
    RANGE_PLUGIN_FILE: SensorPlugin(
        RANGE_PLUGIN_SCHEMA, frozenset((Range.type,)), apply, merges_rays=lambda _: True, finish=finish
    )
}

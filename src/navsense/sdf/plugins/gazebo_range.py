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

from dataclasses import replace

from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import SensorPlugin, limit_rate, merge_noise, parse_topic, set_child
from navsense.sdf.schema import RANGE_PLUGIN_FILE, RANGE_PLUGIN_SCHEMA
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.sensors.range import Range

ULTRASOUND = "ultrasound"

_VIEW_TOLERANCE = 1e-3
"""rad, tolerance between the field of view of the plug-in and that of the rays."""


def apply(context: Context, sensor: Element, plugin: Element) -> Element:
    """Return a sensor with the values of its range plug-in as elements."""
    topic, frame = parse_topic(plugin, "topicName"), plugin.get_text("frameName").strip("/")
    for tag, text in (("topic", topic), ("frame_id", frame)):
        if text:
            sensor = set_child(sensor, plugin.make_element(tag, text))
    sensor = limit_rate(context, sensor, plugin, "updateRate")
    stddev = parse_child_number(context, plugin, "gaussianNoise", 0.0, minimum=0.0)
    if stddev > 0.0:
        source = plugin.find("gaussianNoise") or plugin
        sensor = merge_noise(sensor, source, find_ray_tag(sensor), {"": {"stddev": stddev}})
    return add_sound(sensor, plugin) if plugin.get_text("radiation", ULTRASOUND) == ULTRASOUND else sensor


def find_ray_tag(sensor: Element) -> str:
    """Return the tag of the type element of a ray sensor."""
    return "ray" if sensor.find("lidar") is None else "lidar"


def add_sound(sensor: Element, plugin: Element) -> Element:
    """Return a ray sensor of ultrasound."""
    type_element = sensor.find("ray", "lidar")
    if type_element is None:
        return sensor
    sound = plugin.make_element("navsense:sound")
    return set_child(sensor, set_child(type_element, sound), replaces=True)


def mark_range(spec: Sensor) -> Sensor:
    """Return the specification of a range sensor whose messages are those of a plug-in of ROS."""
    return replace(spec, ros_plugin=True) if isinstance(spec, Range) else spec


def _refine_range(context: Context, plugin: Element, spec: Sensor, _sensor_context: SensorContext) -> Sensor:
    """Return the specification of a sensor with the plug-in, and add a note about its field of view."""
    width, child = spec.beam.width if isinstance(spec, Range) else 0.0, plugin.find("fov")
    if child is not None and abs(parse_child_number(context, plugin, "fov", width) - width) > _VIEW_TOLERANCE:
        reason = f"messages have the width of the rays, {width:.4g} rad"
        context.add_note("unsupported", f"<plugin><fov>: {child.text}", reason, child.where)
    return mark_range(spec)


SENSOR_PLUGINS = {
    RANGE_PLUGIN_FILE: SensorPlugin(
        RANGE_PLUGIN_SCHEMA, frozenset((Range.type,)), apply, merges_rays=lambda _: True, refine_spec=_refine_range
    )
}

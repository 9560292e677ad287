"""The UUV Simulator's GPS, a `<plugin filename="libuuv_gazebo_ros_gps_plugin.so">` in a `<sensor type="gps">`.

| of the plug-in | becomes |
|---|---|
| `<robot_namespace>`, `<sensor_topic>` | `<topic>NAMESPACE/TOPIC</topic>`, if the sensor has no topic |
| `<robot_namespace>` | `<frame_id>NAMESPACE/gps_link</frame_id>`, if the sensor has none |
| `<horizontal_pos_std_dev>`, `<vertical_pos_std_dev>` | m, compared with the noise of the sensor |

Differences from the plug-in: latitude and longitude have their own signs, which its last version inverts, and the
covariance is that of the noise.
Source: UUV Simulator, `GPSROSPlugin`, `ROSBaseSensorPlugin` and `gps_sensor_snippets.xacro`, two versions of the first.
"""

from __future__ import annotations

import math

from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import SensorPlugin, make_plugin_schema, parse_topic, set_child
from navsense.sdf.plugins.uuv_common import FIXED_MESSAGES
from navsense.sdf.ros_names import find_declared_namespace
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.sensors.navsat import NavSat

FRAME = "gps_link"
"""Frame of the messages in the namespace."""

STDDEV_TAGS = {
    "horizontal_pos_std_dev": "horizontal_position",
    "vertical_pos_std_dev": "vertical_position",
}
"""Element -> field of the NavSat."""


def apply(_context: Context, sensor: Element, plugin: Element) -> Element:
    """Return the sensor with the topic and the frame of the plug-in."""
    topic, namespace = parse_topic(plugin, "sensor_topic"), find_declared_namespace(plugin)
    if topic:
        sensor = set_child(sensor, plugin.make_element("topic", topic))
    if namespace:
        sensor = set_child(sensor, plugin.make_element("frame_id", f"{namespace}/{FRAME}"))
    return sensor


def check_deviations(context: Context, plugin: Element, spec: Sensor, _sensor_context: SensorContext) -> Sensor:
    """Return the specification; add a warning if the plug-in would write another covariance than that of the noise."""
    if not isinstance(spec, NavSat):
        return spec
    noises = {"horizontal_position": spec.horizontal_position, "vertical_position": spec.vertical_position}
    for tag, field in STDDEV_TAGS.items():
        child, noise = plugin.find(tag), noises[field].stddev
        stddev = parse_child_number(context, plugin, tag, noise, minimum=0.0)
        if child is not None and not math.isclose(stddev, noise, rel_tol=1e-9, abs_tol=0.0):
            reason = f"the sensor has a noise of {noise:g} m, which determines the covariance"
            context.add_note("warning", f"<plugin><{tag}>: {child.text}", reason, child.where)
    return spec


SCHEMA = make_plugin_schema(
    children=" ".join(("robot_namespace robotNamespace sensor_topic", *STDDEV_TAGS)),
    unsupported={
        "update_rate": "the rate is that of the sensor",
        "enable_gazebo_messages": FIXED_MESSAGES,
        "noise_sigma": "has no effect in the plug-in",
        "noise_amplitude": "has no effect in the plug-in",
    },
)

SENSOR_PLUGINS = {
    "libuuv_gazebo_ros_gps_plugin.so": SensorPlugin(
        SCHEMA, frozenset((NavSat.type,)), apply, refine_spec=check_deviations
    )
}

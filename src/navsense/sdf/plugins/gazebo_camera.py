"""The camera plug-ins of gazebo_ros_pkgs in a camera sensor, for ROS 1 and ROS 2: topic, frame, rate, intrinsics.

| ROS 1 | ROS 2 | becomes |
|---|---|---|
| `<robotNamespace>` | `<ros><namespace>` | start of the topic |
| `<cameraName>` | `<camera_name>` (the sensor) | middle of the topic |
| `<cameraInfoTopicName>` (`camera_info`) | `camera_info`, or the target of its `<remapping>` | end of the topic |
| `<frameName>` | `<frame_name>` | `<optical_frame_id>`, if the camera has none |
| `<updateRate>` | none | `<update_rate>`, if that is 0 or higher: the plug-in skips images |
| `<focalLength>`, `<Cx>`, `<Cy>` | `<focal_length>`, `<cx>`, `<cy>` | intrinsics, if the camera has no `<intrinsics>` |
| `<hackBaseline>` | `<hack_baseline>` | P[0, 3] = -fx baseline |
| `<distortionK1>`, K2, K3, T1, T2 | none: those of `<distortion>` | distortion, without `<autoDistortion>` |

The principal point is (width + 1) / 2, (height + 1) / 2 by default; gz-sensors has width / 2, height / 2. A number of 0
means the default, as in the plug-ins. In a multicamera, ROS 1 has `NAME/left` and `NAME/right`, and only the right one
has the baseline. In ROS 2 all cameras have it.
Source: gazebo_plugins, `gazebo_ros_camera_utils.cpp`, `gazebo_ros_multicamera.cpp` (ROS 1), `gazebo_ros_camera.cpp`.
"""

from __future__ import annotations

from dataclasses import replace

from navsense.core.text import parse_decimal
from navsense.sdf.context import Context
from navsense.sdf.parse.camera import INTRINSICS_TAGS, get_camera_name, has_intrinsics, parse_pinhole
from navsense.sdf.parse.children import parse_child_flag, parse_child_number
from navsense.sdf.plugins.base import SensorPlugin, get_first_text, limit_rate
from navsense.sdf.ros_names import (
    find_declared_namespace,
    is_ros1,
    join_ros_topic,
    resolve_ros2_topic,
    warn_about_remappings,
)
from navsense.sdf.schema import CAMERA_PLUGIN_FILES, CAMERA_PLUGIN_SCHEMA
from navsense.sdf.xml_reader import Element
from navsense.sensors.camera import Camera

INFO_TAG = "cameraInfoTopicName"

DISTORTION_TAGS = {"k1": "distortionK1", "k2": "distortionK2", "k3": "distortionK3"} | {
    "p1": "distortionT1",
    "p2": "distortionT2",
}
"""Coefficient -> its element in ROS 1."""


def apply(context: Context, sensor: Element, plugin: Element) -> Element:
    """Return a camera with the values of its plug-in as elements."""
    sensor = limit_rate(context, sensor, plugin, "updateRate")
    type_element = sensor.find("camera") or plugin.make_element("camera")
    children = [child for child in sensor.children if child is not type_element]
    camera_children = list(type_element.children)
    topic = make_topic(context, sensor, plugin, get_camera_name(sensor))
    if topic and type_element.find("camera_info_topic") is None:
        camera_children.append(plugin.make_element("camera_info_topic", topic))
    frame = get_first_text(plugin, "frameName", "frame_name").strip("/")
    if frame and type_element.find("optical_frame_id") is None:
        camera_children.append(plugin.make_element("optical_frame_id", frame))
    lens = _make_lens(context, sensor, plugin)
    distortion = _make_distortion(context, type_element, plugin)
    for child in filter(None, (lens, distortion)):
        camera_children = [sibling for sibling in camera_children if sibling.tag != child.tag] + [child]
    return replace(sensor, children=[*children, replace(type_element, children=camera_children)])


def make_topic(context: Context, sensor: Element, plugin: Element, camera_name: str) -> str:
    """Return the topic of the camera info."""
    if is_ros1(plugin):
        side = next((side for side in ("left", "right") if side in camera_name), "")
        info = plugin.get_text(INFO_TAG) or "camera_info"
        parts = (plugin.get_text("cameraName").strip("/"), side, info)
        info = info if info.startswith("/") else "/".join(filter(None, parts))
        return join_ros_topic(find_declared_namespace(plugin), info)
    name = plugin.get_text("camera_name") or sensor.get_attribute("name") or ""
    topic = "/".join(filter(None, (name, camera_name, "camera_info")))
    if not camera_name:  # a multicamera has one topic for each camera
        warn_about_remappings(context, plugin, topic)
    return resolve_ros2_topic(plugin, topic)


def _make_lens(context: Context, sensor: Element, plugin: Element) -> Element | None:
    """Return the `<lens>` of a camera with the intrinsics and the baseline of its plug-in; None without a pinhole."""
    pinhole = parse_pinhole(context, sensor)
    if pinhole is None:
        return None
    lens = next((lens for camera in sensor.find_all("camera") for lens in camera.find_all("lens")), None)
    children = [] if lens is None else list(lens.children)
    fx, fy, cx, cy = pinhole.intrinsics
    if not has_intrinsics(sensor):
        defaults = (fx, 0.5 * (pinhole.width + 1.0), 0.5 * (pinhole.height + 1.0))
        tags = (("focalLength", "focal_length"), ("Cx", "cx"), ("Cy", "cy"))
        fx, cx, cy = (
            _parse_number(context, plugin, *pair) or default for pair, default in zip(tags, defaults, strict=True)
        )
        fy = fx
        children.append(_make_numbers(plugin, "intrinsics", dict(zip(INTRINSICS_TAGS, (fx, fy, cx, cy), strict=True))))
    baseline = _parse_number(context, plugin, "hackBaseline", "hack_baseline")
    name = get_camera_name(sensor)
    is_first_of_pair = is_ros1(plugin) and name and "right" not in name
    has_projection = any(child.tag == "projection" for child in children)
    if not has_projection and baseline != 0.0 and not is_first_of_pair:
        numbers = {"p_fx": fx, "p_fy": fy, "p_cx": cx, "p_cy": cy, "tx": -fx * baseline}
        children.append(_make_numbers(plugin, "projection", numbers))
    return replace(lens or plugin.make_element("lens"), children=children)


def _make_distortion(context: Context, type_element: Element, plugin: Element) -> Element | None:
    """Return the `<distortion>` of a plug-in, with a warning if that of the camera differs; None if it has none."""
    is_automatic = parse_child_flag(context, plugin, "autoDistortion", default=False)
    if is_automatic or plugin.find(*DISTORTION_TAGS.values()) is None:
        return None
    numbers = {name: parse_child_number(context, plugin, tag, 0.0) for name, tag in DISTORTION_TAGS.items()}
    own = type_element.find("distortion")
    if own is not None and any(parse_decimal(own.get_text(name, "0")) != value for name, value in numbers.items()):
        child = plugin.find(*DISTORTION_TAGS.values()) or plugin
        reason = "the coefficients of the plug-in are used, with 0 for those that it does not give"
        context.add_note("warning", "<camera><distortion>", f"{reason}; see line {child.line}", own.where)
    return _make_numbers(plugin, "distortion", numbers)


def _make_numbers(source: Element, tag: str, numbers: dict[str, float]) -> Element:
    """Return an element with a child for each number."""
    children = [source.make_element(name, repr(value)) for name, value in numbers.items()]
    return source.make_element(tag, children=children)


def _parse_number(context: Context, plugin: Element, *tags: str) -> float:
    """Return the first number of some children, 0 without one."""
    return next((parse_child_number(context, plugin, tag, 0.0) for tag in tags if plugin.find(tag) is not None), 0.0)


SENSOR_PLUGINS = {
    file: SensorPlugin(CAMERA_PLUGIN_SCHEMA, frozenset((Camera.type,)), apply) for file in CAMERA_PLUGIN_FILES
}

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

from navsense.core.names import suggest_name
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_flag, parse_child_number
from navsense.sdf.schema import CAMERA_PLUGIN_FILES, CAMERA_PLUGIN_ROS, CAMERA_PLUGIN_SCHEMA
from navsense.sdf.values import map_spec_errors
from navsense.sdf.xml_reader import Element
from navsense.sensors.camera import Camera, CameraIntrinsics, CameraProjection, LensDistortion

INFO_TAG = "cameraInfoTopicName"

DISTORTION_TAGS = {"k1": "distortionK1", "k2": "distortionK2", "k3": "distortionK3"} | {
    "p1": "distortionT1",
    "p2": "distortionT2",
}
"""Coefficient -> its element in ROS 1."""

REMAPPING = ":="


def find_plugin(context: Context, sensor: Element) -> Element | None:
    """Return the camera plug-in of a sensor, checked; None without one. Others are listed."""
    plugins = [one for one in sensor.find_all("plugin") if one.get_attribute("filename") in CAMERA_PLUGIN_FILES]
    for other in plugins[1:]:
        what = f'<sensor><plugin filename="{other.get_attribute("filename")}">'
        context.add_note(
            "unsupported", what, f"is one of several; the one on line {plugins[0].line} is used", other.where
        )
    if not plugins:
        return None
    _check_plugin(context, plugins[0])
    context.find_child(plugins[0], "ros", CAMERA_PLUGIN_ROS)
    return plugins[0]


def _check_plugin(context: Context, plugin: Element) -> None:
    """Check the elements of a plug-in. An unknown one is a warning: files have many that no version of it reads."""
    known = (*CAMERA_PLUGIN_SCHEMA.children, *CAMERA_PLUGIN_SCHEMA.unsupported)
    for child in plugin.children:
        if child.tag not in known and ":" not in child.tag:
            reason = "is no element of this plug-in and has no effect"
            suggestion = suggest_name(child.tag, known)
            context.add_note(
                "warning", f"<plugin><{child.tag}>", f"{reason}; {suggestion}" if suggestion else reason, child.where
            )
    children = [child for child in plugin.children if child.tag in known or ":" in child.tag]
    context.check(replace(plugin, children=children), CAMERA_PLUGIN_SCHEMA)


def apply_elements(context: Context, sensor: Element, plugin: Element, camera_name: str = "") -> Element:
    """Return a sensor with the topic, the frame and the rate of its plug-in as elements.

    `camera_name` is that of one camera of a multicamera.
    """
    type_element = sensor.find("camera") or plugin.make_element("camera")
    children = [child for child in sensor.children if child is not type_element]
    camera_children = list(type_element.children)
    topic = make_topic(sensor, plugin, camera_name)
    if topic and type_element.find("camera_info_topic") is None:
        camera_children.append(plugin.make_element("camera_info_topic", topic))
    frame = get_text(plugin, "frameName", "frame_name").strip("/")
    if frame and type_element.find("optical_frame_id") is None:
        camera_children.append(plugin.make_element("optical_frame_id", frame))
    always_on = plugin.find("alwaysOn")
    if always_on is not None and sensor.find("always_on") is None:
        children.append(always_on.make_element("always_on", always_on.text))
    rate = parse_child_number(context, plugin, "updateRate", 0.0, minimum=0.0)
    if rate != 0.0 and not 0.0 < parse_child_number(context, sensor, "update_rate", 0.0, minimum=0.0) <= rate:
        children = [child for child in children if child.tag != "update_rate"]
        children.append((plugin.find("updateRate") or plugin).make_element("update_rate", repr(rate)))
    return replace(sensor, children=[*children, replace(type_element, children=camera_children)])


def get_text(plugin: Element, *tags: str) -> str:
    """Return the first text of some children, "" without one."""
    return next((plugin.get_text(tag) for tag in tags if plugin.get_text(tag)), "")


def is_ros1(plugin: Element) -> bool:
    """Return True for a plug-in of ROS 1: it has `<cameraName>`, or a namespace or a topic in camel case."""
    return any(plugin.find(tag) is not None for tag in ("cameraName", "robotNamespace", INFO_TAG, "imageTopicName"))


def make_topic(sensor: Element, plugin: Element, camera_name: str) -> str:
    """Return the topic of the camera info."""
    if is_ros1(plugin):
        side = next((side for side in ("left", "right") if side in camera_name), "")
        info = plugin.get_text(INFO_TAG) or "camera_info"
        if info.startswith("/"):
            return info
        names = [plugin.get_text("robotNamespace"), plugin.get_text("cameraName"), side, info]
    else:
        ros = plugin.find("ros")
        own = plugin.get_text("camera_name") or sensor.get_attribute("name") or ""
        own = f"{own}/{camera_name}" if camera_name else own
        namespace, info = "" if ros is None else ros.get_text("namespace"), f"{own}/camera_info"
        for child in ros.find_all("remapping") if ros is not None else ():
            source, _, target = (part.strip() for part in child.text.partition(REMAPPING))
            if target and source.strip("/") in (info, f"{namespace.strip('/')}/{info}"):
                info = target
        if info.startswith("/"):
            return info
        names = [namespace, info]
    return "/".join(filter(None, (name.strip("/") for name in names)))


def apply_numbers(
    context: Context, plugin: Element, camera: Camera, *, has_intrinsics: bool, camera_name: str
) -> Camera:
    """Return a camera with the intrinsics, the baseline and the distortion of its plug-in.

    has_intrinsics: True if the file gives the intrinsics. camera_name: that of one camera of a multicamera.
    """
    k = camera.effective_intrinsics
    if not has_intrinsics and k.is_known:
        defaults = (k.fx, 0.5 * (camera.width + 1.0), 0.5 * (camera.height + 1.0))
        tags = (("focalLength", "focal_length"), ("Cx", "cx"), ("Cy", "cy"))
        focal_length, cx, cy = (
            _parse_number(context, plugin, *pair) or default for pair, default in zip(tags, defaults, strict=True)
        )
        with map_spec_errors(plugin):
            camera = replace(camera, intrinsics=CameraIntrinsics(focal_length, focal_length, cx, cy))
    k, baseline = camera.effective_intrinsics, _parse_number(context, plugin, "hackBaseline", "hack_baseline")
    is_first_of_pair = is_ros1(plugin) and camera_name and "right" not in camera_name
    if camera.projection is None and baseline != 0.0 and not is_first_of_pair:
        with map_spec_errors(plugin):
            camera = replace(camera, projection=CameraProjection(k.fx, k.fy, k.cx, k.cy, tx=-k.fx * baseline))
    is_automatic = parse_child_flag(context, plugin, "autoDistortion", default=False)
    if not is_automatic and any(plugin.find(tag) is not None for tag in DISTORTION_TAGS.values()):
        values = {name: parse_child_number(context, plugin, tag, 0.0) for name, tag in DISTORTION_TAGS.items()}
        camera = replace(camera, distortion=LensDistortion(**values))
    return camera


def _parse_number(context: Context, plugin: Element, *tags: str) -> float:
    """Return the first number of some children, 0 without one."""
    return next((parse_child_number(context, plugin, tag, 0.0) for tag in tags if plugin.find(tag) is not None), 0.0)

"""Cameras of SDF, which are simulated as triggers: `<camera>` in a sensor of one of the camera types.

    <camera>
      <horizontal_fov>1.047</horizontal_fov>                          rad, of a pinhole with square pixels
      <image> <width>320</width> <height>240</height> </image>        px
      <lens>
        <intrinsics> <fx/> <fy/> <cx/> <cy/> </intrinsics>            px, in the place of the field of view
        <projection> <p_fx/> <p_fy/> <p_cx/> <p_cy/> <tx/> <ty/> </projection>       px, P of a stereo camera
      </lens>
      <distortion> <k1/> <k2/> <k3/> <p1/> <p2/> </distortion>
      <camera_info_topic>front/camera_info</camera_info_topic>
      <optical_frame_id>front_optical</optical_frame_id>              frame of the messages
    </camera>

A wide-angle camera is no pinhole. Without `<intrinsics>` its intrinsics are unknown (zero, as in ROS), and this is a
warning. gz-sensors writes SDF's default numbers there, which belong to no camera.
The topic is that of the camera info beside the image, as gz-sensors names it (`CameraSensor::AdvertiseInfo`): the topic
`front/image` has `front/camera_info`. An RGB-D or segmentation camera has `TOPIC/camera_info`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from navsense.core.pose import Pose
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_count, parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.schema import CAMERA, CAMERA_IMAGE, CAMERA_LENS, MULTICAMERA_TYPE, POSE, WIDE_ANGLE_TYPES
from navsense.sdf.values import invalid_value, map_spec_errors, parse_pose, parse_text
from navsense.sdf.xml_reader import Element
from navsense.sensors.camera import (
    DEFAULT_FIELD_OF_VIEW,
    DEFAULT_HEIGHT,
    DEFAULT_WIDTH,
    UNKNOWN_INTRINSICS,
    Camera,
    CameraIntrinsics,
    CameraProjection,
    LensDistortion,
)
from navsense.world import OPTICAL, OpticalFrame

DISTORTION = ElementBinding(
    LensDistortion, unsupported={"center": "the message has no centre of distortion; it is the principal point"}
)
INTRINSICS = ElementBinding(CameraIntrinsics, unsupported={"s": "the intrinsic matrix of the message has no skew"})
PROJECTION = ElementBinding(CameraProjection)

INFO = "camera_info"
"""Last part of the topic of a camera's messages."""

INTRINSICS_TAGS = ("fx", "fy", "cx", "cy")
"""Elements of the intrinsics."""

SEGMENTATION_TYPES = ("segmentation", "segmentation_camera")

NESTED_INFO_TYPES = ("rgbd", "rgbd_camera", *SEGMENTATION_TYPES)
"""Types whose topic is a namespace: their camera info is in it. That of the other types is beside the image."""

MAX_FIELD_OF_VIEW = 2.0 * math.pi
"""rad, the maximum of SDF."""


def parse(context: Context, type_element: Element | None, sensor_context: SensorContext) -> Camera:
    """Return the specification of a `<camera>`; without it that of SDF's defaults."""
    if type_element is None:
        return Camera()
    context.check(type_element, CAMERA)
    width, height = _parse_size(context, type_element)
    lens = context.find_child(type_element, "lens", CAMERA_LENS)
    intrinsics = projection = None
    if lens is not None:
        children = (lens.find("intrinsics"), lens.find("projection"))
        intrinsics = None if children[0] is None else INTRINSICS.read(context, children[0])
        projection = None if children[1] is None else PROJECTION.read(context, children[1])
    element = type_element.find("distortion")
    distortion = LensDistortion() if element is None else DISTORTION.read(context, element)
    view = _parse_field_of_view(context, type_element)
    if intrinsics is None:
        intrinsics = _make_intrinsics(type_element, sensor_context.declared_type, view, width, height)
        if not intrinsics.is_known:
            reason = "a wide-angle camera has no pinhole: K and P are zero; give <lens><intrinsics>"
            context.add_note("warning", f"<camera>: {sensor_context.name}", reason, type_element.where)
    with map_spec_errors(type_element):
        return Camera(width, height, intrinsics, distortion, projection)


def _parse_size(context: Context, type_element: Element) -> tuple[int, int]:
    """Return the width and the height (px)."""
    image = context.find_child(type_element, "image", CAMERA_IMAGE)
    if image is None:
        return DEFAULT_WIDTH, DEFAULT_HEIGHT
    sizes = (("width", DEFAULT_WIDTH), ("height", DEFAULT_HEIGHT))
    width, height = (parse_child_count(context, image, tag, default) for tag, default in sizes)
    return width, height


def _parse_field_of_view(context: Context, type_element: Element) -> float:
    """Return the horizontal field of view (rad)."""
    tag = "horizontal_fov"
    view = parse_child_number(context, type_element, tag, DEFAULT_FIELD_OF_VIEW, above=0.0)
    child = type_element.find(tag)
    if child is not None and view > MAX_FIELD_OF_VIEW:
        allowed = f"must be at most {MAX_FIELD_OF_VIEW:.6f} rad"
        context.add_problem(invalid_value(child, child.text, allowed, parent="camera", remedy="write radians"))
        return DEFAULT_FIELD_OF_VIEW
    return view


def _make_intrinsics(
    type_element: Element, declared_type: str, view: float, width: int, height: int
) -> CameraIntrinsics:
    """Return the intrinsics of a field of view (rad); unknown ones for a wide-angle camera. Raises `SdfError`."""
    if declared_type in WIDE_ANGLE_TYPES:
        return UNKNOWN_INTRINSICS
    with map_spec_errors(type_element.find("horizontal_fov") or type_element):
        return CameraIntrinsics.from_field_of_view(view, width, height)


def parse_optical_frame(type_element: Element | None, sensor_context: SensorContext) -> OpticalFrame | None:
    """Return the frame of a camera's messages: that of a link of its model, or an optical frame of its own."""
    child = None if type_element is None else type_element.find("optical_frame_id")
    if child is None or not child.text:
        return None
    name = parse_text(child, parent="camera")
    return OpticalFrame(name, sensor_context.find_pose(name) or OPTICAL)


def make_info_topic(declared_type: str, topic: str) -> str:
    """Return the topic of the camera info of a camera with a topic for its image."""
    base = topic if declared_type in NESTED_INFO_TYPES else topic.rpartition("/")[0]
    return f"{base.rstrip('/')}/{INFO}"


def get_topic_ending(declared_type: str) -> str:
    """Return the end of the default topic of a camera of a type."""
    return f"segmentation/{INFO}" if declared_type in SEGMENTATION_TYPES else INFO


def find_info_topic(sensor: Element) -> Element | None:
    """Return the `<camera_info_topic>` of a camera; None without one."""
    type_element = sensor.find("camera")
    child = None if type_element is None else type_element.find("camera_info_topic")
    return None if child is None or child.text in ("", "__default__") else child


class Pinhole(NamedTuple):
    """The size of an image (px), and its fx, fy, cx, cy (px)."""

    width: int
    height: int
    intrinsics: tuple[float, float, float, float]


def parse_pinhole(context: Context, sensor: Element) -> Pinhole | None:
    """Return the image and the intrinsics of a camera; None for a camera that is no pinhole, and for problems."""
    type_element = sensor.find("camera") or sensor.make_element("camera")
    lens = type_element.find("lens")
    problems_before = context.problem_count
    width, height = _parse_size(context, type_element)
    view = _parse_field_of_view(context, type_element)
    element = None if lens is None else lens.find("intrinsics")
    if context.problem_count > problems_before or min(width, height) < 1:
        return None
    if element is not None:
        k = INTRINSICS.read(context, element)
        return Pinhole(width, height, (k.fx, k.fy, k.cx, k.cy))
    k = _make_intrinsics(type_element, sensor.get_attribute("type") or "", view, width, height)
    return Pinhole(width, height, (k.fx, k.fy, k.cx, k.cy)) if k.is_known else None


def has_intrinsics(sensor: Element) -> bool:
    """Return True if the file gives the intrinsics of a camera."""
    lenses = [lens for type_element in sensor.find_all("camera") for lens in type_element.find_all("lens")]
    return any(lens.find("intrinsics") is not None for lens in lenses)


def get_camera_name(sensor: Element) -> str:
    """Return the name of the camera of a multicamera that `split_multicamera` returned; "" for another sensor."""
    type_element = sensor.find("camera")
    if sensor.get_attribute("type") != MULTICAMERA_TYPE or type_element is None:
        return ""
    return type_element.get_attribute("name") or ""


def split_multicamera(context: Context, sensor: Element, type_element: Element) -> tuple[Element, Pose]:
    """Return a multicamera with one of its cameras only, and the pose of that camera in the sensor.

    A `<topic>` of the sensor is that of all cameras; the name of the camera is appended.
    """
    pose, child = Pose(), type_element.find("pose")
    if child is not None:
        context.check(child, POSE)
        with context.collect_errors():
            pose = parse_pose(child, parent=type_element.tag)
    camera = replace(type_element, children=[element for element in type_element.children if element is not child])
    name = type_element.get_attribute("name") or ""
    children = [
        replace(element, text=f"{element.text}/{name}/image") if element.tag == "topic" and element.text else element
        for element in sensor.children
        if element.tag != type_element.tag
    ]
    return replace(sensor, children=[*children, camera]), pose

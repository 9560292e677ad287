"""The services of a run in the serialisation of ROS 1."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import NamedTuple

from navsense.core.errors import NavsenseError
from navsense.streams.ros1.node import Service
from navsense.streams.services import RequestKind, RunService

SUCCESS, SUCCESS_AND_TEXT = "bool success", "bool success\nstring message"
MODEL = "float64 mean\nfloat64 min\nfloat64 max\nfloat64 noise\nfloat64 mu"


class ServiceType(NamedTuple):
    """A type of services: its name, definitions of request and response, and the layout of the request."""

    name: str
    request: str
    response: str
    layout: str

    @property
    def md5(self) -> str:
        """The MD5 sum of both definitions."""
        return hashlib.md5((self.request + self.response).encode(), usedforsecurity=False).hexdigest()


TYPES: Mapping[RequestKind, ServiceType] = {
    RequestKind.SWITCH: ServiceType("std_srvs/SetBool", "bool data", SUCCESS_AND_TEXT, "<?"),
    RequestKind.NUMBER: ServiceType("uuv_gazebo_ros_plugins_msgs/SetFloat", "float64 data", SUCCESS_AND_TEXT, "<d"),
    RequestKind.ANGLE: ServiceType("uuv_world_ros_plugins_msgs/SetCurrentDirection", "float64 angle", SUCCESS, "<d"),
    RequestKind.VELOCITY: ServiceType(
        "uuv_world_ros_plugins_msgs/SetCurrentVelocity",
        "float64 velocity\nfloat64 horizontal_angle\nfloat64 vertical_angle",
        SUCCESS,
        "<3d",
    ),
    RequestKind.MODEL: ServiceType("uuv_world_ros_plugins_msgs/SetCurrentModel", MODEL, SUCCESS, "<5d"),
    RequestKind.GET_MODEL: ServiceType("uuv_world_ros_plugins_msgs/GetCurrentModel", "", MODEL, "<"),
}
"""Types by kind of request. Source: `srv` files of std_srvs and of the UUV Simulator."""

CHANGE_SENSOR_STATE = ServiceType("uuv_sensor_ros_plugins_msgs/ChangeSensorState", "bool on", SUCCESS_AND_TEXT, "<?")
"""The type of the UUV Simulator for switches. Its bytes are those of `std_srvs/SetBool`."""

SET_BOOL_MD5 = TYPES[RequestKind.SWITCH].md5
"""MD5 sum of `std_srvs/SetBool`."""


def make_service(service: RunService) -> Service:
    """Return a service of a run as one of a node. A request that is not possible returns `success` false."""
    kind = TYPES[service.kind]

    def handle(request: bytes) -> bytes:
        size = struct.calcsize(kind.layout)
        if len(request) != size:
            raise ValueError(f"{len(request)} bytes; {kind.name} has {size}")
        try:
            result, is_done = service.call(struct.unpack(kind.layout, request)), True
        except NavsenseError as error:
            if service.kind == RequestKind.GET_MODEL:
                raise ValueError(str(error)) from error
            result, is_done = str(error), False
        if isinstance(result, tuple):
            return struct.pack("<5d", *result)
        text = result.encode()
        success = struct.pack("<?", is_done)
        return success if kind.response == SUCCESS else success + struct.pack("<I", len(text)) + text

    other_types = {CHANGE_SENSOR_STATE.md5: CHANGE_SENSOR_STATE.name} if service.kind == RequestKind.SWITCH else {}
    return Service(service.name, kind.name, kind.md5, handle, other_types)

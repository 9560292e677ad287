"""The velocity of the water on a ROS topic: the options of its URL, and the messages. ROS 1 and ROS 2 share it.

    ?topic=TOPIC&type=TYPE&frame=FRAME

The default topic is that of the UUV Simulator. FRAME is "world" (default), "enu" or "ned", as in a recorded current.
The stamp of a message is not used.

Source: the UUV Simulator, UnderwaterCurrentROSPlugin.cc: a geometry_msgs/TwistStamped in the frame /world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from navsense.core.errors import FieldError, Where
from navsense.core.typing import Vector
from navsense.environment.current.base import check_speed
from navsense.environment.current.replay import FRAMES
from navsense.streams.ros_messages import COVARIANCE_BYTES, Reader
from navsense.streams.stream import StreamUrl

DEFAULT_TOPIC = "/hydrodynamics/current_velocity"

TOPIC_OPTIONS = ("topic", "type", "frame")
"""Options of the URL of a current that select the messages."""


def _decode_twist(reader: Reader) -> Vector:
    return reader.read_twist()[0]


def _decode_twist_with_covariance(reader: Reader) -> Vector:
    linear = reader.read_twist()[0]
    reader.skip(COVARIANCE_BYTES)
    return linear


def _decode_vector(reader: Reader) -> Vector:
    return reader.read_vector()


@dataclass(frozen=True)
class CurrentType:
    """A message type that a current can be.

    decode: reads the velocity after the header.
    has_header: True if the message starts with a header.
    """

    decode: Callable[[Reader], Vector]
    has_header: bool = True


CURRENT_TYPES: Mapping[str, CurrentType] = {
    "geometry_msgs/TwistStamped": CurrentType(_decode_twist),
    "geometry_msgs/Twist": CurrentType(_decode_twist, has_header=False),
    "geometry_msgs/TwistWithCovarianceStamped": CurrentType(_decode_twist_with_covariance),
    "geometry_msgs/Vector3Stamped": CurrentType(_decode_vector),
    "geometry_msgs/Vector3": CurrentType(_decode_vector, has_header=False),
}
"""Message type, by its name in ROS 1 -> what reads it: those of a recorded current."""


def decode_velocity(kind: str, reader: Reader) -> Vector:
    """Return the velocity (m/s) in a message. `kind`: a key of `CURRENT_TYPES`.

    Raises `ValueError` for an invalid message, with the problem as the object of "sent".
    """
    current_type = CURRENT_TYPES[kind]
    if current_type.has_header:
        reader.read_header()
    velocity = current_type.decode(reader)
    reader.finish()
    try:
        for value in velocity:
            check_speed("velocity of a current (m/s)", value)
    except FieldError as error:
        raise ValueError(f"a message that is dropped: {error}") from error
    return velocity


@dataclass(frozen=True)
class RosCurrent:
    """The topic of a current.

    name: of the topic.
    type: of its messages, "" if the URL has none.
    frame: of the velocities.
    """

    name: str
    type: str
    frame: str


def parse_current(url: StreamUrl, normalize: Callable[[str], str]) -> RosCurrent:
    """Return the topic of a URL. Raises `FieldError`.

    normalize: returns the name of a message type in this ROS.
    """
    where = Where(url.text)
    frame = url.options.get("frame", "world")
    if frame not in FRAMES:
        raise FieldError("frame of a current", frame, allowed=f"must be one of {', '.join(FRAMES)}", where=where)
    kind = normalize(url.options["type"]) if url.options.get("type") else ""
    types = [normalize(one) for one in CURRENT_TYPES]
    if kind and kind not in types:
        raise FieldError("option type", kind, allowed=f"must be one of {', '.join(types)}", where=where)
    return RosCurrent("/" + url.options.get("topic", DEFAULT_TOPIC).lstrip("/"), kind, frame)

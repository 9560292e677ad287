"""An ocean current from a topic of Gazebo transport.

    gz://HOST?topic=TOPIC&type=TYPE&frame=FRAME&partition=PARTITION&version=VERSION

The default topic is that of the system Hydrodynamics of gz-sim, /ocean_current. With a `<namespace>`, its topic is
/model/NAMESPACE/ocean_current. FRAME is "world" (default), "enu" or "ned", as in a recorded current. All publishers of
the topic are used, as by a node of Gazebo; a publisher can come and vanish at any time. An invalid velocity is dropped,
with a warning.

    Vector3d    the velocity
    Twist       the velocity is `linear`

Sources: `Hydrodynamics.cc` of gz-sim, which subscribes to a `Vector3d` along the axes of the world; `vector3d.proto`
and `twist.proto` of gz-msgs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from navsense.core.errors import FieldError, Where
from navsense.core.typing import Vector
from navsense.environment.current.base import check_speed
from navsense.environment.current.replay import FRAMES
from navsense.streams.current import CurrentSubscriber
from navsense.streams.gz.discovery import Advert
from navsense.streams.gz.node import import_zmq
from navsense.streams.gz.poses import decode_twist, decode_vector
from navsense.streams.gz.settings import read_settings
from navsense.streams.gz.topic_receiver import TopicReceiver
from navsense.streams.gz.versions import split_type_name
from navsense.streams.stream import StreamUrl
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)
"""Logs the publishers."""

DEFAULT_TOPIC = "/ocean_current"

CURRENT_OPTIONS = ("topic", "type", "frame", "partition", "version")
"""Options of the URL of a current."""


def _decode_linear_velocity(data: bytes) -> Vector:
    return decode_twist(data)[0]


CURRENT_TYPES: Mapping[str, Callable[[bytes], Vector]] = {
    "Vector3d": decode_vector,
    "Twist": _decode_linear_velocity,
}
"""Message type without its package -> what reads the velocity. Raises `ValueError`."""


class GzCurrentSubscriber(CurrentSubscriber):
    """Receives the velocity of the water from a topic of Gazebo transport."""

    accepts_many = True

    def __init__(self, url: StreamUrl) -> None:
        """Subscribe to the topic. Raises `FieldError` for an invalid option, `RecordingError` for an invalid host."""
        options, where = url.options, Where(url.text)
        topic, frame = "/" + options.get("topic", DEFAULT_TOPIC).lstrip("/"), options.get("frame", "world")
        if frame not in FRAMES:
            raise FieldError("frame of a current", frame, allowed=f"must be one of {', '.join(FRAMES)}", where=where)
        self._type = options.get("type", "")
        if self._type and split_type_name(self._type)[1] not in CURRENT_TYPES:
            allowed = f"must be one of {', '.join(CURRENT_TYPES)}"
            raise FieldError("option type", self._type, allowed=allowed, where=where)
        super().__init__(url.text, f"topic {topic}", frame)
        self.warnings = WarningLog(LOG, f"{self.url}: {self.topic}")
        self._receiver = TopicReceiver(read_settings(url), where, import_zmq(where))
        try:
            self._receiver.start(topic, self)
        except BaseException:
            self.close()
            raise

    def has_type(self, advert: Advert) -> bool:
        """Return True for the type of the URL; without one, for a type that a current can be."""
        package, kind = split_type_name(advert.type)
        return bool(package) and kind in CURRENT_TYPES and self._type in ("", kind, advert.type)

    def open_publisher(self, advert: Advert) -> None:
        """Prepare nothing."""

    def report_publisher(self, advert: Advert, *, is_connected: bool) -> None:
        """Log a publisher that comes or vanishes. A program can publish once and end."""
        text = "publisher" if is_connected else "the publisher has vanished:"
        LOG.info("%s: %s: %s %s", self.url, self.topic, text, advert.address)

    def read(self, data: bytes, advert: Advert) -> None:
        """Store the velocity of a message. Invalid messages are dropped, with one warning for each publisher."""
        try:
            velocity = CURRENT_TYPES[split_type_name(advert.type)[1]](data)
            for value in velocity:
                check_speed("velocity of a current (m/s)", value)
        except (ValueError, FieldError) as error:
            text = f"{advert.address} sent a {advert.type} that is dropped: {error}"
            self.warnings.add("message", advert.address, text)
            return
        self.put(velocity)

    def disconnect(self) -> None:
        """Stop the thread and close the sockets."""
        self._receiver.close()

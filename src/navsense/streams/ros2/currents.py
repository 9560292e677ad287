"""An ocean current from a ROS 2 topic.

    ros2://ADDRESS?topic=TOPIC&type=TYPE&frame=FRAME&domain=N
    ros2+zenoh://HOST:PORT?topic=TOPIC&...

ADDRESS, HOST:PORT and `domain` are those of an output. `ros_currents` has the other options. The publisher can start
later than the run. An invalid velocity is dropped, with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from navsense.core.errors import FieldError, Where
from navsense.streams.current import CurrentSubscriber
from navsense.streams.ros2.remote import RemotePublisher, RemoteTopicsOpener
from navsense.streams.ros2.subscriber import LISTEN_TIME, find_topic, list_topics
from navsense.streams.ros2.url import parse_domain
from navsense.streams.ros_currents import CURRENT_TYPES, TOPIC_OPTIONS, decode_velocity, parse_current
from navsense.streams.ros_messages import CdrReader, format_ros2_type, normalize_type
from navsense.streams.ros_motion import PublisherChoice
from navsense.streams.stream import StreamUrl
from navsense.streams.warning_log import WarningLog
from navsense.world import World

LOG = logging.getLogger(__name__)

CURRENT_OPTIONS = (*TOPIC_OPTIONS, "domain")
"""Options of the URL of a current."""


class Ros2CurrentSubscriber(CurrentSubscriber):
    """Receives the velocity of the water from a ROS 2 topic."""

    def __init__(self, url: StreamUrl, open_topics: RemoteTopicsOpener) -> None:
        """Connect. Raises `FieldError` and `RecordingError`."""
        topic = parse_current(url, format_ros2_type)
        super().__init__(url.text, f"topic {topic.name}", topic.frame)
        types = [topic.type] if topic.type else [format_ros2_type(kind) for kind in CURRENT_TYPES]
        self._warnings = WarningLog(LOG, f"{self.url}: {self.topic}")
        self._choice = PublisherChoice(self._warnings)
        self._topics = open_topics(url, parse_domain(url), self.fail)
        try:
            self._subscribe(topic.name, types)
        except self._topics.errors as error:
            self._topics.close()
            raise FieldError(f"{type(error).__name__}: {error}", where=Where(url.text)) from error
        except BaseException:
            self._topics.close()
            raise

    def _subscribe(self, topic: str, types: list[str]) -> None:
        """Subscribe to the topic, after a look for its publisher. Raises `FieldError` for another type."""
        found = find_topic(self._topics, LISTEN_TIME, lambda known, _: topic in known)
        kind = found.get(topic, "")
        if kind and kind not in types:
            allowed = f"must be one of {', '.join(types)}"
            raise FieldError(f"type of {self.topic}", kind, allowed=allowed, where=Where(self.url))
        if not kind:
            LOG.warning("%s: %s: waiting for a publisher; %s", self.url, self.topic, list_topics(found))
        self._topics.subscribe(topic, types, self._receive, self._warnings.add)

    def disconnect(self) -> None:
        """Disconnect."""
        self._topics.close()

    def _receive(self, publisher: RemotePublisher, data: bytes) -> None:
        """Store the velocity in a message."""
        try:
            velocity = decode_velocity(normalize_type(publisher.type), CdrReader(data))
        except ValueError as error:
            self._warnings.add("message", publisher, f"{publisher} sent {error}")
            return
        if self._choice.accepts(publisher):
            self.put(velocity)


def open_ros2_current(
    url: StreamUrl, check: Callable[[StreamUrl, World | None], None], get_opener: Callable[[], RemoteTopicsOpener]
) -> Ros2CurrentSubscriber:
    """Return the subscriber of a current. `get_opener` imports the transport.

    Raises `FieldError`, and `RecordingError` for an invalid URL.
    """
    check(url, None)
    return Ros2CurrentSubscriber(url, get_opener())

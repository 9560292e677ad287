"""Streams: live systems that a run publishes to, addressed by URLs."""

from __future__ import annotations

from navsense.recordings.base import is_url
from navsense.streams import device_port, foxglove, gazebo_classic, gz, ros1, ros2
from navsense.streams.current import CurrentSubscriber
from navsense.streams.stream import (
    Pace,
    Publisher,
    Stream,
    StreamUrl,
    SupportsRunChanges,
    check_url,
    is_live,
    list_streams,
    open_current,
    open_publisher,
    open_subscriber,
    register_stream,
)
from navsense.streams.subscriber import DrivenFrame, StampedState, Subscriber

__all__ = [
    "STREAMS",
    "CurrentSubscriber",
    "DrivenFrame",
    "Pace",
    "Publisher",
    "StampedState",
    "Stream",
    "StreamUrl",
    "Subscriber",
    "SupportsRunChanges",
    "check_url",
    "is_live",
    "is_url",
    "list_streams",
    "open_current",
    "open_publisher",
    "open_subscriber",
    "register_stream",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


STREAMS = (
    *device_port.STREAMS,
    *foxglove.STREAMS,
    *gazebo_classic.STREAMS,
    *gz.STREAMS,
    *ros1.STREAMS,
    *ros2.STREAMS,
)
"""The streams of navsense."""

for _stream in STREAMS:
    register_stream(_stream)

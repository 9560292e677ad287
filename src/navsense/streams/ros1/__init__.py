"""The stream of ROS 1: a node with publishers or a subscriber, without an installed ROS."""

from __future__ import annotations

from navsense.streams.ros1.currents import CURRENT_OPTIONS, Ros1CurrentSubscriber
from navsense.streams.ros1.publisher import Ros1Publisher, check
from navsense.streams.ros1.subscriber import Ros1Subscriber
from navsense.streams.ros1.subscriber_node import NODE_OPTIONS
from navsense.streams.stream import Stream
from navsense.streams.subscriber import MOTION_OPTIONS

__all__ = ["STREAMS"]

STREAMS = (
    Stream(
        scheme="ros1",
        name="ROS 1",
        url_format="ros1://HOST:PORT",
        open_publisher=Ros1Publisher,
        options=("wait", "host", "node"),
        check=check,
        is_live=True,
        open_subscriber=Ros1Subscriber,
        motion_options=(*MOTION_OPTIONS, "twist", *NODE_OPTIONS),
        motion_format="ros1://HOST:PORT?topic=TOPIC",
        open_current=Ros1CurrentSubscriber,
        current_options=CURRENT_OPTIONS,
    ),
)

"""The streams of ROS 2: a node with publishers, or a subscriber, on DDS or on Zenoh, without an installed ROS."""

from __future__ import annotations

from dataclasses import replace

from navsense.recordings.info import RecordedRun
from navsense.streams.ros2.currents import CURRENT_OPTIONS, Ros2CurrentSubscriber, open_ros2_current
from navsense.streams.ros2.publisher import Ros2Publisher
from navsense.streams.ros2.remote import RemoteTopicsOpener
from navsense.streams.ros2.subscriber import Ros2Subscriber, open_motion
from navsense.streams.ros2.url import check_dds, check_zenoh
from navsense.streams.stream import Stream, StreamUrl
from navsense.streams.subscriber import DrivenFrame

__all__ = ["STREAMS"]


def open_dds(url: StreamUrl, recorded_run: RecordedRun) -> Ros2Publisher:
    """Return a publisher on DDS. Raises `RecordingError`."""
    check_dds(url, None)
    from navsense.streams.ros2.dds import DdsNode

    return Ros2Publisher(url, recorded_run, DdsNode)


def open_zenoh(url: StreamUrl, recorded_run: RecordedRun) -> Ros2Publisher:
    """Return a publisher on Zenoh. Raises `RecordingError`."""
    check_zenoh(url, None)
    from navsense.streams.ros2.zenoh import DEFAULT_PORT, ZenohNode

    port = url.port or DEFAULT_PORT
    return Ros2Publisher(replace(url, port=port), recorded_run, ZenohNode)


def get_dds_topics() -> RemoteTopicsOpener:
    """Return what opens the topics of other programs on DDS."""
    from navsense.streams.ros2.dds_topics import DdsTopics

    return DdsTopics


def open_dds_motion(url: StreamUrl, frame: DrivenFrame) -> Ros2Subscriber:
    """Return the subscriber of a topic on DDS. Raises `MotionError` and `RecordingError`."""
    return open_motion(url, frame, check_dds, get_dds_topics)


def get_zenoh_topics() -> RemoteTopicsOpener:
    """Return what opens the topics of other programs on Zenoh."""
    from navsense.streams.ros2.zenoh_topics import ZenohTopics

    return ZenohTopics


def open_zenoh_motion(url: StreamUrl, frame: DrivenFrame) -> Ros2Subscriber:
    """Return the subscriber of a topic on Zenoh. Raises `MotionError` and `RecordingError`."""
    return open_motion(url, frame, check_zenoh, get_zenoh_topics)


def open_dds_current(url: StreamUrl) -> Ros2CurrentSubscriber:
    """Return the subscriber of a current on DDS. Raises `FieldError` and `RecordingError`."""
    return open_ros2_current(url, check_dds, get_dds_topics)


def open_zenoh_current(url: StreamUrl) -> Ros2CurrentSubscriber:
    """Return the subscriber of a current on Zenoh. Raises `FieldError` and `RecordingError`."""
    return open_ros2_current(url, check_zenoh, get_zenoh_topics)


RECEIVE_OPTIONS = ("topic", "type", "frame", "twist", "domain")
"""Options of the URL of a motion."""

STREAMS = (
    Stream(
        scheme="ros2",
        name="ROS 2 on DDS",
        url_format="ros2://ADDRESS",
        open_publisher=open_dds,
        options=("domain", "node", "wait"),
        check=check_dds,
        is_live=True,
        open_subscriber=open_dds_motion,
        motion_options=RECEIVE_OPTIONS,
        motion_format="ros2://ADDRESS?topic=TOPIC",
        open_current=open_dds_current,
        current_options=CURRENT_OPTIONS,
    ),
    Stream(
        scheme="ros2+zenoh",
        name="ROS 2 on Zenoh",
        url_format="ros2+zenoh://HOST:PORT",
        open_publisher=open_zenoh,
        options=("domain", "node", "wait"),
        check=check_zenoh,
        is_live=True,
        open_subscriber=open_zenoh_motion,
        motion_options=RECEIVE_OPTIONS,
        motion_format="ros2+zenoh://HOST:PORT?topic=TOPIC",
        open_current=open_zenoh_current,
        current_options=CURRENT_OPTIONS,
    ),
)

"""The stream of ROS 2: a node with publishers on DDS, without an installed ROS."""

from __future__ import annotations

from navsense.streams.ros2.publisher import STREAMS

__all__ = ["STREAMS"]

"""The stream of ROS 1: a node with publishers, without an installed ROS."""

from __future__ import annotations

from navsense.streams.ros1.publisher import STREAMS

__all__ = ["STREAMS"]

"""The stream of Gazebo Classic: a node that publishes readings, and follows the links of a running simulation."""

from __future__ import annotations

from navsense.streams.gazebo_classic.publisher import STREAMS

__all__ = ["STREAMS"]

"""True time as `rosgraph_msgs/msg/Clock`."""

from __future__ import annotations

from collections.abc import Mapping

from navsense.messages.base import GLOBAL_TIME
from navsense.messages.cdr import MessageLayout, build_layout, write_stamps
from navsense.typing import AnyArray, IntArray

TYPE = "rosgraph_msgs/msg/Clock"


def _fill(rows: AnyArray, stamp: IntArray, _arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, GLOBAL_TIME, "clock")


def make_layout() -> MessageLayout:
    """Return how instants (nanoseconds) become messages; no arrays are needed."""
    return MessageLayout(TYPE, build_layout(TYPE), _fill)

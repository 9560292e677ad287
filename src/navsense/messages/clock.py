"""True time as `rosgraph_msgs/msg/Clock`."""

from __future__ import annotations

from collections.abc import Mapping

from navsense.messages.base import GLOBAL_TIME
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.typing import AnyArray, IntArray

TYPE = "rosgraph_msgs/msg/Clock"


def _fill(rows: AnyArray, stamp: IntArray, _arrays: Mapping[str, AnyArray]) -> None:
    set_stamp(rows, stamp, GLOBAL_TIME, "clock")


def message() -> Message:
    """Return how instants (nanoseconds) become messages; no arrays are needed."""
    return Message(TYPE, layout(TYPE), _fill)

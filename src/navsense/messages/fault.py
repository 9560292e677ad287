"""The active faults of a sensor as `std_msgs/msg/UInt8`: the sum of `scheduled_faults.FAULT_BITS`, or 0."""

from __future__ import annotations

from collections.abc import Mapping

from navsense.messages.cdr import MessageLayout, build_layout
from navsense.noise.scheduled_faults import FAULT
from navsense.typing import AnyArray, IntArray

TYPE = "std_msgs/msg/UInt8"


def _fill(rows: AnyArray, _stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    rows["data"] = arrays[FAULT]


def make_layout() -> MessageLayout:
    """Return how faults become messages; their one array is `FAULT` (n,)."""
    return MessageLayout(TYPE, build_layout(TYPE), _fill)

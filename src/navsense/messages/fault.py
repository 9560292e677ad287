"""Which faults act on a sensor as `std_msgs/msg/UInt8`: the sum of `navsense.noise.planned.BITS`, 0 when it is well."""

from __future__ import annotations

from collections.abc import Mapping

from navsense.messages.cdr import Message, layout
from navsense.noise.planned import FAULT
from navsense.typing import AnyArray, IntArray

TYPE = "std_msgs/msg/UInt8"


def _fill(rows: AnyArray, _stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    rows["data"] = arrays[FAULT]


def message() -> Message:
    """Return how faults become messages; their one array is `FAULT` (n,)."""
    return Message(TYPE, layout(TYPE), _fill)

"""The active faults of a sensor as `std_msgs/msg/UInt8`: the sum of `series.FAULT_BITS`, or 0."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from navsense.messages.cdr import MessageLayout, build_layout
from navsense.series import FAULT_BITS
from navsense.typing import AnyArray, BoolArray, IntArray

TYPE = "std_msgs/msg/UInt8"

FAULT = "fault"
"""Name of the array that a fault message holds, and of its topic: `<topic>/fault`."""


def pack_bits(fault: Mapping[str, BoolArray]) -> AnyArray:
    """Return the bits (n,) of the faults that act on each row: the sum of `FAULT_BITS`."""
    bits = np.zeros(next(iter(fault.values())).shape, dtype=np.uint8)
    for kind, rows in fault.items():
        bits |= np.uint8(FAULT_BITS[kind]) * rows
    return bits


def unpack_bits(bits: AnyArray) -> dict[str, BoolArray]:
    """Return the rows (n,) on which each kind of fault acts from their bits (n,)."""
    return {kind: np.asarray((bits & np.uint8(bit)) != 0) for kind, bit in FAULT_BITS.items()}


def _fill(rows: AnyArray, _stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    rows["data"] = arrays[FAULT]


def make_layout() -> MessageLayout:
    """Return how faults become messages; their one array is `FAULT` (n,)."""
    return MessageLayout(TYPE, build_layout(TYPE), _fill)

"""The parts of Gazebo's messages in protobuf's wire format: `gz.msgs`, and `gazebo.msgs` of the first design.

Fields are numbered as in gz-msgs (`imu.proto`, `magnetometer.proto`, `altimeter.proto`, `fluid_pressure.proto`,
`navsat.proto`, `laserscan.proto`, `header.proto`). In `gz.msgs` (proto3) a number that is zero is left out; in
`gazebo.msgs` (proto2, required) every field is written.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from navsense.errors import SinkError
from navsense.messages.base import SEC_MAX, SEC_MIN, SECOND, stamp_error
from navsense.series import Reading

VARINT, WIDE, BYTES = 0, 1, 2
"""Wire types of protobuf."""

SHORT = tuple(bytes((value,)) for value in range(0x80))
"""Integers of one byte: nearly all tags and lengths."""


def varint(value: int) -> bytes:
    """Return an integer in seven bits a byte; negative ones as 64-bit two's complement."""
    if 0 <= value <= 0x7F:
        return SHORT[value]
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def nested(number: int, body: bytes) -> bytes:
    """Return a field that is a message, a string or packed numbers."""
    return varint(number << 3 | BYTES) + varint(len(body)) + body


def integer(number: int, value: int, required: bool = False) -> bytes:
    """Return an integer field; nothing for zero unless it is required."""
    return varint(number << 3 | VARINT) + varint(value) if value or required else b""


def double(number: int, value: float, required: bool = False) -> bytes:
    """Return a double field; nothing for positive zero unless it is required."""
    raw = struct.pack("<d", value)
    return varint(number << 3 | WIDE) + raw if required or any(raw) else b""


def doubles(first: int, values: Sequence[float], required: bool = False) -> bytes:
    """Return double fields numbered from `first` on."""
    return b"".join(double(first + i, value, required) for i, value in enumerate(values))


def packed(number: int, values: Sequence[float]) -> bytes:
    """Return repeated doubles, packed."""
    return nested(number, struct.pack(f"<{len(values)}d", *values))


def header(stamp: int, frame: str | None, sequence: int) -> bytes:
    """Return `gz.msgs.Header` of a stamp (ns), with `frame_id` and `seq` among its data as Gazebo has them.

    Without a frame for a message that has a field of its own for it.
    """
    seconds, rest = divmod(stamp, SECOND)
    time = integer(1, seconds) + integer(2, rest)
    data = b"".join(
        nested(2, nested(1, key.encode()) + nested(2, value.encode()))
        for key, value in (("frame_id", frame), ("seq", str(sequence)))
        if value is not None
    )
    return nested(1, time) + data


def classic_time(stamp: int, entity: str) -> bytes:
    """Return `gazebo.msgs.Time` of a stamp (ns).

    Raise `SinkError` that names the `entity` where the seconds do not fit into 32 bits.
    """
    seconds, rest = divmod(stamp, SECOND)
    if not SEC_MIN <= seconds <= SEC_MAX:
        raise stamp_error(f"of {entity}", seconds)
    return integer(1, seconds, required=True) + integer(2, rest, required=True)


def float_v(values: Sequence[float]) -> bytes:
    """Return `gz.msgs.Float_V`: single-precision numbers, packed."""
    return nested(2, struct.pack(f"<{len(values)}f", *values))


def rows_of(reading: Reading) -> list[int]:
    """Return the rows that are messages. Raise `SinkError` where the reading carries runs."""
    if reading.clock_error.ndim != 1:
        raise SinkError(f"readings of {reading.name!r} carry a run axis", remedy="encode one run at a time")
    return [int(row) for row in np.flatnonzero(reading.emitted)]

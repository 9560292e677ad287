"""The parts of Gazebo's messages in protobuf's wire format: `gz.msgs`, and `gazebo.msgs` of the first design.

Fields are numbered as in gz-msgs (`imu.proto`, `magnetometer.proto`, `altimeter.proto`, `fluid_pressure.proto`,
`navsat.proto`, `laserscan.proto`, `header.proto`). In `gz.msgs` (proto3) a number that is zero is left out; in
`gazebo.msgs` (proto2, required) every field is written.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from navsense.errors import RecordingError
from navsense.messages.base import MAX_STAMP_SECONDS, MIN_STAMP_SECONDS, NANOSECONDS_PER_SECOND, stamp_error
from navsense.series import Reading

VARINT, FIXED64, LENGTH_DELIMITED = 0, 1, 2
"""Wire types of protobuf."""

ONE_BYTE_VARINTS = tuple(bytes((value,)) for value in range(0x80))
"""Integers of one byte: nearly all tags and lengths."""


def encode_varint(value: int) -> bytes:
    """Return an integer in seven bits a byte; negative ones as 64-bit two's complement."""
    if 0 <= value <= 0x7F:
        return ONE_BYTE_VARINTS[value]
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_nested(number: int, body: bytes) -> bytes:
    """Return a field that is a message, a string or packed numbers."""
    return encode_varint(number << 3 | LENGTH_DELIMITED) + encode_varint(len(body)) + body


def encode_int(number: int, value: int, required: bool = False) -> bytes:
    """Return an integer field; nothing for zero unless it is required."""
    return encode_varint(number << 3 | VARINT) + encode_varint(value) if value or required else b""


def encode_double(number: int, value: float, required: bool = False) -> bytes:
    """Return a double field; nothing for positive zero unless it is required."""
    raw = struct.pack("<d", value)
    return encode_varint(number << 3 | FIXED64) + raw if required or any(raw) else b""


def encode_doubles(first: int, values: Sequence[float], required: bool = False) -> bytes:
    """Return double fields numbered from `first` on."""
    return b"".join(encode_double(first + i, value, required) for i, value in enumerate(values))


def encode_packed(number: int, values: Sequence[float]) -> bytes:
    """Return repeated doubles, packed."""
    return encode_nested(number, struct.pack(f"<{len(values)}d", *values))


def encode_header(stamp: int, frame: str | None, sequence: int) -> bytes:
    """Return `gz.msgs.Header` of a stamp (ns), with `frame_id` and `seq` among its data as Gazebo has them.

    Without a frame for a message that has a field of its own for it.
    """
    seconds, rest = divmod(stamp, NANOSECONDS_PER_SECOND)
    time = encode_int(1, seconds) + encode_int(2, rest)
    data = b"".join(
        encode_nested(2, encode_nested(1, key.encode()) + encode_nested(2, value.encode()))
        for key, value in (("frame_id", frame), ("seq", str(sequence)))
        if value is not None
    )
    return encode_nested(1, time) + data


def encode_classic_time(stamp: int, entity: str) -> bytes:
    """Return `gazebo.msgs.Time` of a stamp (ns).

    Raise `RecordingError` that names the `entity` where the seconds do not fit into 32 bits.
    """
    seconds, rest = divmod(stamp, NANOSECONDS_PER_SECOND)
    if not MIN_STAMP_SECONDS <= seconds <= MAX_STAMP_SECONDS:
        raise stamp_error(f"of {entity}", seconds)
    return encode_int(1, seconds, required=True) + encode_int(2, rest, required=True)


def encode_float_v(values: Sequence[float]) -> bytes:
    """Return `gz.msgs.Float_V`: single-precision numbers, packed."""
    return encode_nested(2, struct.pack(f"<{len(values)}f", *values))


def list_emitted_rows(reading: Reading) -> list[int]:
    """Return the rows that are messages. Raise `RecordingError` where the reading carries runs."""
    if reading.clock_error.ndim != 1:
        raise RecordingError(f"readings of {reading.name!r} carry a run axis", remedy="encode one run at a time")
    return [int(row) for row in np.flatnonzero(reading.emitted)]

"""The connection header of TCPROS: fields `name=value`, each with its length, after the length of all.

    uint32 size of all fields, then for each field: uint32 size, name, "=", value      little-endian

Source: the ROS wiki, "ROS/Connection Header" and "ROS/TCPROS".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

MAX_HEADER_BYTES = 1 << 18
"""Largest header that is accepted. That of rospy has the definition of the message, some kilobytes."""


def format_header(fields: Mapping[str, str]) -> bytes:
    """Return a header."""
    parts = [f"{name}={value}".encode() for name, value in fields.items()]
    data = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    return struct.pack("<I", len(data)) + data


def parse_header(received: bytes | bytearray) -> dict[str, str] | None:
    """Return the fields of a header, None if it is not complete. Raises `ValueError` for an invalid header."""
    if len(received) < 4:
        return None
    size = struct.unpack_from("<I", received)[0]
    if size > MAX_HEADER_BYTES:
        raise ValueError(f"a header of {size} bytes")
    if len(received) < 4 + size:
        return None
    fields, offset, end = {}, 4, 4 + size
    while offset < end:
        length = struct.unpack_from("<I", received, offset)[0] if offset + 4 <= end else end
        offset += 4
        if offset + length > end:
            raise ValueError("a field of the header is longer than the header")
        name, equals, value = bytes(received[offset : offset + length]).partition(b"=")
        if not equals:
            raise ValueError("a field of the header without =")
        fields[name.decode(errors="replace")] = value.decode(errors="replace")
        offset += length
    return fields

"""The services of a run in the messages of Gazebo.

    switch                  Boolean    -> Boolean      true if the change is made
    number, angle           Double     -> Boolean
    velocity, model         Double_V   -> Boolean      the values in the order of `streams.services`
    get                     Empty      -> Double_V     mean, minimum, maximum, noise and mu

A request that is not possible fails; the log has the reason.

Sources: `boolean.proto`, `double.proto` and `double_v.proto` of gz-msgs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from navsense.core.errors import NavsenseError
from navsense.messages.gz import FIXED64, LENGTH_DELIMITED, PACKAGE, VARINT, encode_int, encode_packed
from navsense.recordings.gazebo_poses import iterate_fields
from navsense.streams.gz.services import Handler
from navsense.streams.services import RequestKind, RunService

TYPES: Mapping[RequestKind, tuple[str, int]] = {
    RequestKind.SWITCH: ("Boolean", 1),
    RequestKind.NUMBER: ("Double", 1),
    RequestKind.ANGLE: ("Double", 1),
    RequestKind.VELOCITY: ("Double_V", 3),
    RequestKind.MODEL: ("Double_V", 5),
    RequestKind.GET_MODEL: ("Empty", 0),
}
"""Kind of request -> its message type, and its number of values."""


def decode_boolean(data: bytes) -> bool:
    """Return the value of a `Boolean`. Raises `ValueError`."""
    values = [value for tag, value in iterate_fields(data) if tag == 2 << 3 | VARINT]
    return bool(values and values[-1])


def encode_boolean(value: bool) -> bytes:
    """Return a `Boolean`."""
    return encode_int(2, value)


def decode_double(data: bytes) -> float:
    """Return the value of a `Double`. Raises `ValueError`."""
    values = [value for tag, value in iterate_fields(data) if tag == 2 << 3 | FIXED64 and isinstance(value, bytes)]
    return float(struct.unpack("<d", values[-1])[0]) if values else 0.0


def decode_doubles(data: bytes) -> list[float]:
    """Return the values of a `Double_V`, packed or one by one. Raises `ValueError`."""
    numbers = b"".join(
        value
        for tag, value in iterate_fields(data)
        if tag in (1 << 3 | LENGTH_DELIMITED, 1 << 3 | FIXED64) and isinstance(value, bytes)
    )
    if len(numbers) % 8:
        raise ValueError("a number is truncated")
    return list(struct.unpack(f"<{len(numbers) // 8}d", numbers))


def _decode_request(kind: str, data: bytes) -> Sequence[float]:
    if kind == "Boolean":
        return [decode_boolean(data)]
    if kind == "Double":
        return [decode_double(data)]
    return decode_doubles(data) if kind == "Double_V" else []


def make_handler(service: RunService) -> tuple[str, str, Handler]:
    """Return the types of request and response of a service of a run, and what handles it."""
    kind, size = TYPES[service.kind]
    response_kind = "Double_V" if service.kind == RequestKind.GET_MODEL else "Boolean"

    def handle(data: bytes) -> bytes:
        values = _decode_request(kind, data)
        if len(values) != size:
            raise ValueError(f"{len(values)} values; the service has {size}")
        try:
            result = service.call(values)
        except NavsenseError as error:
            raise ValueError(str(error)) from error
        return encode_packed(1, result) if isinstance(result, tuple) else encode_boolean(True)

    return f"{PACKAGE}.{kind}", f"{PACKAGE}.{response_kind}", handle

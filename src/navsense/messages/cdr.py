"""CDR, little-endian, of messages whose strings and array lengths are fixed: every message of a channel is one size.

A `Layout` is worked out once from the message's definition; after that a block of n messages is n copies of its
template with numbers written at known places, column by column. Alignment counts from behind the 4-byte
encapsulation header, as in XCDR1 (OMG DDSI-RTPS 2.3, section 10).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from navsense.compiled import kernel
from navsense.messages.base import SEC_MAX, SEC_MIN, SECOND, stamp_error
from navsense.messages.schemas import DEFINITIONS, DISTRIBUTIONS, HUMBLE, fields, text
from navsense.typing import AnyArray, ByteArray, IntArray

ENCAPSULATION = b"\x00\x01\x00\x00"
"""CDR, little-endian, no options."""

PRIMITIVES: Mapping[str, str] = {
    "bool": "u1",
    "byte": "u1",
    "char": "u1",
    "int8": "i1",
    "uint8": "u1",
    "int16": "<i2",
    "uint16": "<u2",
    "int32": "<i4",
    "uint32": "<u4",
    "int64": "<i8",
    "uint64": "<u8",
    "float32": "<f4",
    "float64": "<f8",
}
"""ROS type -> NumPy type."""

SIZES: Mapping[str, int] = {kind: np.dtype(code).itemsize for kind, code in PRIMITIVES.items()}
"""ROS type -> bytes."""


@dataclass(frozen=True)
class Place:
    """Where one field lies: NumPy type, number of elements (0: one scalar), offset in bytes in the message."""

    code: str
    count: int
    offset: int


def row_type(places: Mapping[str, Place], size: int) -> np.dtype[np.void]:
    """Return the type of rows of `size` bytes with fields at the places."""
    return np.dtype(
        {
            "names": list(places),
            "formats": [(p.code, (p.count,)) if p.count else p.code for p in places.values()],
            "offsets": [p.offset for p in places.values()],
            "itemsize": size,
        }
    )


@dataclass(frozen=True, eq=False)
class Layout:
    """One message type with its strings filled in: `template` is the whole message, numbers zero; `places` by path.

    Paths are dotted (`header.stamp.sec`, `transforms.0.transform.rotation`). A part made of float64 alone has a place
    of its own beside its members: `orientation` is (4,) x y z w, `orientation.w` a scalar.
    """

    template: bytes
    places: Mapping[str, Place]

    def dtype(self) -> np.dtype[np.void]:
        """Return the row type."""
        return row_type(self.places, len(self.template))

    def behind(self, before: int) -> dict[str, Place]:
        """Return the places in a row in which the message lies behind so many bytes."""
        return {name: Place(p.code, p.count, p.offset + before) for name, p in self.places.items()}

    def holding(self, values: Mapping[str, ArrayLike]) -> Layout:
        """Return the same layout with numbers that are the same in all messages in its template, by path."""
        rows = np.frombuffer(bytearray(self.template), dtype=self.dtype())
        for path, value in values.items():
            rows[path] = value
        return Layout(rows.tobytes(), self.places)


@dataclass
class _Build:
    """The walk through a definition, writing zeros and strings and noting places."""

    definitions: Mapping[str, str]
    texts: Mapping[str, str]
    lengths: Mapping[str, int]
    data: bytearray = field(default_factory=bytearray)
    places: dict[str, Place] = field(default_factory=dict)

    def align(self, size: int) -> None:
        """Pad to a multiple of `size`."""
        self.data.extend(b"\0" * (-len(self.data) % size))

    def numbers(self, path: str, kind: str, count: int) -> None:
        """Lay down one number (`count` 0) or a run of them."""
        code, size = PRIMITIVES[kind], SIZES[kind]
        self.align(size)
        self.places[path] = Place(code, count, len(ENCAPSULATION) + len(self.data))
        self.data.extend(b"\0" * size * max(count, 1))

    def string(self, path: str) -> None:
        """Lay down a string with its length and closing zero."""
        raw = self.texts.get(path, "").encode() + b"\0"
        self.align(4)
        self.data.extend(struct.pack("<I", len(raw)) + raw)

    def value(self, path: str, kind: str) -> None:
        """Lay down one value of any type."""
        if kind == "string":
            self.string(path)
        elif kind in PRIMITIVES:
            self.numbers(path, kind, 0)
        else:
            self.message(path + ".", kind)

    def message(self, prefix: str, kind: str) -> None:
        """Lay down the fields of a message."""
        parts = fields(self.definitions[kind])
        for part in parts:
            path = prefix + part.name
            if part.length is None:
                self.value(path, part.type)
                continue
            length = part.length
            if length < 0:
                length = self.lengths.get(path, 0)
                self.align(4)
                self.data.extend(struct.pack("<I", length))
            if part.type in PRIMITIVES:
                if length:
                    self.numbers(path, part.type, length)
            else:
                for i in range(length):
                    self.value(f"{path}.{i}", part.type)
        if prefix and all(part.type == "float64" and part.length is None for part in parts):
            first = self.places[prefix + parts[0].name]
            self.places[prefix[:-1]] = Place(first.code, len(parts), first.offset)


def layout(
    kind: str,
    texts: Mapping[str, str] | None = None,
    lengths: Mapping[str, int] | None = None,
    definitions: Mapping[str, str] = DEFINITIONS,
) -> Layout:
    """Return the layout of the type `kind` (full name); `texts` its strings, `lengths` its array lengths, by path."""
    build = _Build(definitions, texts or {}, lengths or {})
    build.message("", kind)
    return Layout(ENCAPSULATION + bytes(build.data), build.places)


@dataclass(frozen=True, eq=False)
class Message:
    """How one channel's messages are made: full type name, `ros2msg` schema, layout, and what writes the numbers.

    `fill(rows, stamp, arrays)` gets n rows that hold the template, stamps (n,) in integer nanoseconds, and the arrays
    by name, time first. It raises `SinkError` for a stamp that does not fit into the message. One that is `constant`
    is written at every sample, of a sensor that says nothing too; it gets no arrays.
    """

    type: str
    layout: Layout
    fill: Callable[[AnyArray, IntArray, Mapping[str, AnyArray]], None]
    schema: str = ""
    constant: bool = False

    def __post_init__(self) -> None:
        """Take the schema of the type where none is given."""
        if not self.schema:
            object.__setattr__(self, "schema", text(self.type))


def to_humble(message: Message) -> Message:
    """Return the layout of a channel's messages in ROS 2 Humble, without the fields that later distributions added.

    These fields are the last of their messages, and have constant values.
    """
    older = DISTRIBUTIONS[HUMBLE]
    if message.type not in older or message.schema != text(message.type):
        return message
    later = {part.name for part in fields(DEFINITIONS[message.type])} - {
        one.name for one in fields(older[message.type])
    }
    places, template = message.layout.places, message.layout.template
    end = min((places[name].offset for name in later), default=len(template))
    kept = {name: place for name, place in places.items() if name not in later}
    return replace(message, layout=Layout(template[:end], kept), schema=text(message.type, older))


def encode(message: Message, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> ByteArray:
    """Return n messages (n, size) as bytes, a row each; `stamp` (n,) in nanoseconds, `arrays` by name, time first."""
    out = np.empty((stamp.shape[0], len(message.layout.template)), dtype=np.uint8)
    out[:] = np.frombuffer(message.layout.template, dtype=np.uint8)
    message.fill(out.view(message.layout.dtype())[:, 0], stamp, arrays)
    return out


def set_stamp(rows: AnyArray, stamp: IntArray, clock: str, path: str = "header.stamp") -> None:
    """Write stamps (n,) nanoseconds at `path`, rounded towards the past so that the nanoseconds are never negative.

    Raises `SinkError` that names `clock` where the seconds do not fit into 32 bits, `ValueError` as `set_vector` does.
    """
    wrong = _split(stamp, room(rows, path + ".sec", stamp), room(rows, path + ".nanosec", stamp))
    if wrong:
        raise stamp_error(clock, wrong // SECOND)


@kernel
def _split(stamp: IntArray, seconds: AnyArray, rest: AnyArray) -> int:
    """Write the seconds and the rest of stamps (n,) ns; return one whose seconds do not fit, 0 where there is none."""
    for i in range(stamp.size):
        whole = stamp[i] // SECOND
        if whole < SEC_MIN or whole > SEC_MAX:
            return int(stamp[i])
        seconds[i] = whole
        rest[i] = stamp[i] - whole * SECOND
    return 0


def set_vector(rows: AnyArray, path: str, vector: AnyArray) -> None:
    """Write vectors (n, 3) at `path`. Raises `ValueError` where they are not as many as there are rows."""
    _put_vector(room(rows, path, vector), vector)


def room(rows: AnyArray, path: str, value: AnyArray) -> AnyArray:
    """Return the numbers at a place, which must be as many as the values: a kernel would write on behind them."""
    place = rows[path]
    if place.shape != value.shape:
        raise ValueError(f"{path}: values {value.shape} for a place {place.shape}")
    return place


@kernel
def _put_vector(place: AnyArray, vector: AnyArray) -> None:
    """Write vectors (n, 3), several times as quick as an assignment of rows so short."""
    for i in range(vector.shape[0]):
        place[i, 0] = vector[i, 0]
        place[i, 1] = vector[i, 1]
        place[i, 2] = vector[i, 2]


def set_quaternion(rows: AnyArray, path: str, orientation: AnyArray) -> None:
    """Write quaternions (n, 4), w x y z, in the border's order x y z w. Raises `ValueError` as `set_vector` does."""
    _put_quaternion(room(rows, path, orientation), orientation)


@kernel
def _put_quaternion(place: AnyArray, orientation: AnyArray) -> None:
    """Write quaternions (n, 4), w x y z, as x y z w."""
    for i in range(orientation.shape[0]):
        place[i, 0] = orientation[i, 1]
        place[i, 1] = orientation[i, 2]
        place[i, 2] = orientation[i, 3]
        place[i, 3] = orientation[i, 0]


def stamps_in(rows: AnyArray, path: str = "header.stamp") -> IntArray:
    """Return the stamps (n,) ns at `path`."""
    found: IntArray = rows[path + ".sec"].astype(np.int64) * SECOND + rows[path + ".nanosec"].astype(np.int64)
    return found


def quaternions_in(rows: AnyArray, path: str) -> AnyArray:
    """Return the quaternions (n, 4), w x y z, at `path`."""
    return np.stack([rows[f"{path}.{letter}"] for letter in "wxyz"], axis=1)

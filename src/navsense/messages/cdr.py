"""CDR, little-endian, of messages whose strings and array lengths are fixed: every message of a channel is one size.

A `CdrLayout` is worked out once from the message's definition; after that a block of n messages is n copies of its
template with numbers written at known places, column by column. Alignment counts from behind the 4-byte
encapsulation header, as in XCDR1 (OMG DDSI-RTPS 2.3, section 10).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from navsense.kernels import kernel
from navsense.messages.base import MAX_STAMP_SECONDS, MIN_STAMP_SECONDS, NANOSECONDS_PER_SECOND, stamp_error
from navsense.messages.schemas import DEFINITIONS, DISTRIBUTIONS, HUMBLE, format_schema, parse_fields
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
class FieldOffset:
    """Where one field lies: NumPy type, number of elements (0: one scalar), offset in bytes in the message."""

    dtype: str
    count: int
    offset: int


def make_row_dtype(fields: Mapping[str, FieldOffset], size: int) -> np.dtype[np.void]:
    """Return the type of rows of `size` bytes with fields at the places."""
    return np.dtype(
        {
            "names": list(fields),
            "formats": [(p.dtype, (p.count,)) if p.count else p.dtype for p in fields.values()],
            "offsets": [p.offset for p in fields.values()],
            "itemsize": size,
        }
    )


@dataclass(frozen=True, eq=False)
class CdrLayout:
    """One message type with its strings filled in: `template` is the whole message, numbers zero; `places` by path.

    Paths are dotted (`header.stamp.sec`, `transforms.0.transform.rotation`). A part made of float64 alone has a place
    of its own beside its members: `orientation` is (4,) x y z w, `orientation.w` a scalar.
    """

    template: bytes
    fields: Mapping[str, FieldOffset]

    def dtype(self) -> np.dtype[np.void]:
        """Return the row type."""
        return make_row_dtype(self.fields, len(self.template))

    def shift_fields(self, header_size: int) -> dict[str, FieldOffset]:
        """Return the places in a row in which the message lies behind so many bytes."""
        return {name: FieldOffset(p.dtype, p.count, p.offset + header_size) for name, p in self.fields.items()}

    def with_values(self, values: Mapping[str, ArrayLike]) -> CdrLayout:
        """Return the same layout with numbers that are the same in all messages in its template, by path."""
        rows = np.frombuffer(bytearray(self.template), dtype=self.dtype())
        for path, value in values.items():
            rows[path] = value
        return CdrLayout(rows.tobytes(), self.fields)


@dataclass
class _LayoutBuilder:
    """The walk through a definition, writing zeros and strings and noting places."""

    definitions: Mapping[str, str]
    strings: Mapping[str, str]
    lengths: Mapping[str, int]
    data: bytearray = field(default_factory=bytearray)
    fields: dict[str, FieldOffset] = field(default_factory=dict)

    def align(self, size: int) -> None:
        """Pad to a multiple of `size`."""
        self.data.extend(b"\0" * (-len(self.data) % size))

    def add_numbers(self, path: str, kind: str, count: int) -> None:
        """Lay down one number (`count` 0) or a run of them."""
        code, size = PRIMITIVES[kind], SIZES[kind]
        self.align(size)
        self.fields[path] = FieldOffset(code, count, len(ENCAPSULATION) + len(self.data))
        self.data.extend(b"\0" * size * max(count, 1))

    def add_string(self, path: str) -> None:
        """Lay down a string with its length and closing zero."""
        raw = self.strings.get(path, "").encode() + b"\0"
        self.align(4)
        self.data.extend(struct.pack("<I", len(raw)) + raw)

    def add_value(self, path: str, kind: str) -> None:
        """Lay down one value of any type."""
        if kind == "string":
            self.add_string(path)
        elif kind in PRIMITIVES:
            self.add_numbers(path, kind, 0)
        else:
            self.add_message(path + ".", kind)

    def add_message(self, prefix: str, kind: str) -> None:
        """Lay down the fields of a message."""
        parts = parse_fields(self.definitions[kind])
        for series_kind in parts:
            path = prefix + series_kind.name
            if series_kind.length is None:
                self.add_value(path, series_kind.type)
                continue
            length = series_kind.length
            if length < 0:
                length = self.lengths.get(path, 0)
                self.align(4)
                self.data.extend(struct.pack("<I", length))
            if series_kind.type in PRIMITIVES:
                if length:
                    self.add_numbers(path, series_kind.type, length)
            else:
                for i in range(length):
                    self.add_value(f"{path}.{i}", series_kind.type)
        if prefix and all(part.type == "float64" and part.length is None for part in parts):
            first = self.fields[prefix + parts[0].name]
            self.fields[prefix[:-1]] = FieldOffset(first.dtype, len(parts), first.offset)


def build_layout(
    type_name: str,
    strings: Mapping[str, str] | None = None,
    lengths: Mapping[str, int] | None = None,
    definitions: Mapping[str, str] = DEFINITIONS,
) -> CdrLayout:
    """Return the layout of the type `kind` (full name); `texts` its strings, `lengths` its array lengths, by path."""
    build = _LayoutBuilder(definitions, strings or {}, lengths or {})
    build.add_message("", type_name)
    return CdrLayout(ENCAPSULATION + bytes(build.data), build.fields)


@dataclass(frozen=True, eq=False)
class MessageLayout:
    """How one channel's messages are made: full type name, `ros2msg` schema, layout, and what writes the numbers.

    `fill(rows, stamp, arrays)` gets n rows that hold the template, stamps (n,) in integer nanoseconds, and the arrays
    by name, time first.
    It raises `RecordingError` for a stamp that does not fit into the message. One that is `constant`
    is written at every sample, of a sensor that says nothing too; it gets no arrays.
    """

    type: str
    layout: CdrLayout
    fill: Callable[[AnyArray, IntArray, Mapping[str, AnyArray]], None]
    schema: str = ""
    constant: bool = False

    def __post_init__(self) -> None:
        """Take the schema of the type where none is given."""
        if not self.schema:
            object.__setattr__(self, "schema", format_schema(self.type))


def to_humble(message: MessageLayout) -> MessageLayout:
    """Return the layout of a channel's messages in ROS 2 Humble, without the fields that later distributions added.

    These fields are the last of their messages, and have constant values.
    """
    older = DISTRIBUTIONS[HUMBLE]
    if message.type not in older or message.schema != format_schema(message.type):
        return message
    later = {series_kind.name for series_kind in parse_fields(DEFINITIONS[message.type])} - {
        one.name for one in parse_fields(older[message.type])
    }
    places, template = message.layout.fields, message.layout.template
    end = min((places[name].offset for name in later), default=len(template))
    kept = {name: place for name, place in places.items() if name not in later}
    return replace(message, layout=CdrLayout(template[:end], kept), schema=format_schema(message.type, older))


def encode(message: MessageLayout, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> ByteArray:
    """Return n messages (n, size) as bytes, a row each; `stamp` (n,) in nanoseconds, `arrays` by name, time first."""
    out = np.empty((stamp.shape[0], len(message.layout.template)), dtype=np.uint8)
    out[:] = np.frombuffer(message.layout.template, dtype=np.uint8)
    message.fill(out.view(message.layout.dtype())[:, 0], stamp, arrays)
    return out


def write_stamps(rows: AnyArray, stamp: IntArray, clock: str, path: str = "header.stamp") -> None:
    """Write stamps (n,) nanoseconds at `path`, rounded towards the past so that the nanoseconds are never negative.

    Raises `RecordingError` that names `clock` where the seconds do not fit into 32 bits, `ValueError` as
    `write_vectors`
    does.
    """
    wrong = _write_stamps(stamp, get_field(rows, path + ".sec", stamp), get_field(rows, path + ".nanosec", stamp))
    if wrong:
        raise stamp_error(clock, wrong // NANOSECONDS_PER_SECOND)


@kernel
def _write_stamps(stamp: IntArray, seconds: AnyArray, rest: AnyArray) -> int:
    """Write the seconds and the rest of stamps (n,) ns; return one whose seconds do not fit, 0 where there is none."""
    for i in range(stamp.size):
        whole = stamp[i] // NANOSECONDS_PER_SECOND
        if whole < MIN_STAMP_SECONDS or whole > MAX_STAMP_SECONDS:
            return int(stamp[i])
        seconds[i] = whole
        rest[i] = stamp[i] - whole * NANOSECONDS_PER_SECOND
    return 0


def write_vectors(rows: AnyArray, path: str, vector: AnyArray) -> None:
    """Write vectors (n, 3) at `path`. Raises `ValueError` where they are not as many as there are rows."""
    _write_vectors(get_field(rows, path, vector), vector)


def get_field(rows: AnyArray, path: str, value: AnyArray) -> AnyArray:
    """Return the numbers at a place, which must be as many as the values: a kernel would write on behind them."""
    place = rows[path]
    if place.shape != value.shape:
        raise ValueError(f"{path}: values {value.shape} for a place {place.shape}")
    return place


@kernel
def _write_vectors(place: AnyArray, vector: AnyArray) -> None:
    """Write vectors (n, 3), several times as quick as an assignment of rows so short."""
    for i in range(vector.shape[0]):
        place[i, 0] = vector[i, 0]
        place[i, 1] = vector[i, 1]
        place[i, 2] = vector[i, 2]


def write_quaternions(rows: AnyArray, path: str, orientation: AnyArray) -> None:
    """Write quaternions (n, 4), w x y z, in the border's order x y z w. Raises `ValueError` as `write_vectors` does."""
    _write_quaternions(get_field(rows, path, orientation), orientation)


@kernel
def _write_quaternions(place: AnyArray, orientation: AnyArray) -> None:
    """Write quaternions (n, 4), w x y z, as x y z w."""
    for i in range(orientation.shape[0]):
        place[i, 0] = orientation[i, 1]
        place[i, 1] = orientation[i, 2]
        place[i, 2] = orientation[i, 3]
        place[i, 3] = orientation[i, 0]


def read_stamps(rows: AnyArray, path: str = "header.stamp") -> IntArray:
    """Return the stamps (n,) ns at `path`."""
    found: IntArray = rows[path + ".sec"].astype(np.int64) * NANOSECONDS_PER_SECOND + rows[path + ".nanosec"].astype(
        np.int64
    )
    return found


def read_quaternions(rows: AnyArray, path: str) -> AnyArray:
    """Return the quaternions (n, 4), w x y z, at `path`."""
    return np.stack([rows[f"{path}.{letter}"] for letter in "wxyz"], axis=1)

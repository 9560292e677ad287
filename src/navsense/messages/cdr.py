"""Little-endian CDR of messages with fixed strings and array lengths: all messages of a channel have one size.

`build_layout` computes the `CdrLayout` once from the definition of the message. A block of n messages is n copies of
its template with numbers at known offsets, written column by column. Alignment counts from the end of the 4-byte
encapsulation header, as in XCDR1 (OMG DDSI-RTPS 2.3, section 10).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.kernels import strided_kernel
from navsense.core.typing import AnyArray, ByteArray, IntArray
from navsense.messages.base import (
    MAX_STAMP_SECONDS,
    MIN_STAMP_SECONDS,
    NANOSECONDS_PER_SECOND,
    SeriesKind,
    make_stamp_error,
)
from navsense.messages.schemas import DEFINITIONS, DISTRIBUTIONS, HUMBLE, format_schema, parse_fields
from navsense.world import MountedSensor

ENCAPSULATION = b"\x00\x01\x00\x00"
"""Encapsulation header of little-endian CDR without options."""

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


MessageRows: TypeAlias = AnyArray
"""Structured array (n,) of n messages. Its fields are the numbers of a message by path, as in `CdrLayout.fields`.

The MCAP writer gives rows of LZ4 blocks (`mcap.lz4_rows`), in which the numbers stand uncompressed at known offsets.
They have `record.*` fields too, and only the fields that `MessageEncoder.fill` writes.
"""


@dataclass(frozen=True)
class FieldOffset:
    """Position of a field: NumPy type, number of elements (0 for a scalar), offset in the message (bytes)."""

    dtype: str
    count: int
    offset: int


def make_row_dtype(fields: Mapping[str, FieldOffset], size: int) -> np.dtype[np.void]:
    """Return the dtype of rows of `size` bytes with these fields."""
    return np.dtype(
        {
            "names": list(fields),
            "formats": [(field.dtype, (field.count,)) if field.count else field.dtype for field in fields.values()],
            "offsets": [field.offset for field in fields.values()],
            "itemsize": size,
        }
    )


@dataclass(frozen=True, eq=False)
class CdrLayout:
    """The byte layout of one message type with its strings.

    template: the bytes of a message: strings, lengths and constant numbers. The other numbers are 0.
    fields: the offsets of the numbers by path.

    Paths are dotted (`header.stamp.sec`, `transforms.0.transform.rotation`). A nested message of float64 fields only is
    a field itself, in addition to its members: `orientation` is (4,) x y z w, `orientation.w` a scalar.
    """

    template: bytes
    fields: Mapping[str, FieldOffset]

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The dtype of a row."""
        return make_row_dtype(self.fields, len(self.template))

    def shift_fields(self, prefix_size: int) -> dict[str, FieldOffset]:
        """Return the fields of rows in which other bytes precede the message."""
        return {name: replace(field, offset=field.offset + prefix_size) for name, field in self.fields.items()}

    def with_constants(self, values: Mapping[str, ArrayLike]) -> CdrLayout:
        """Return the layout with constant numbers, by path, in the template."""
        rows = np.frombuffer(bytearray(self.template), dtype=self.dtype)
        for path, value in values.items():
            rows[path] = value
        return CdrLayout(rows.tobytes(), self.fields)


@dataclass
class _LayoutBuilder:
    """Builds the template and the fields of a message from its definition."""

    definitions: Mapping[str, str]
    strings: Mapping[str, str]
    lengths: Mapping[str, int]
    data: bytearray = field(default_factory=bytearray)
    fields: dict[str, FieldOffset] = field(default_factory=dict)

    def align(self, size: int) -> None:
        """Pad to a multiple of `size`."""
        self.data.extend(b"\0" * (-len(self.data) % size))

    def add_numbers(self, path: str, kind: str, count: int) -> None:
        """Add one number (`count` 0) or an array."""
        code, size = PRIMITIVES[kind], SIZES[kind]
        self.align(size)
        self.fields[path] = FieldOffset(code, count, len(ENCAPSULATION) + len(self.data))
        self.data.extend(b"\0" * size * max(count, 1))

    def add_string(self, path: str) -> None:
        """Add a string with its length and terminating zero."""
        raw = self.strings.get(path, "").encode() + b"\0"
        self.align(4)
        self.data.extend(struct.pack("<I", len(raw)) + raw)

    def add_value(self, path: str, kind: str) -> None:
        """Add one value of any type."""
        if kind == "string":
            self.add_string(path)
        elif kind in PRIMITIVES:
            self.add_numbers(path, kind, 0)
        else:
            self.add_message(path + ".", kind)

    def add_message(self, prefix: str, kind: str) -> None:
        """Add the fields of a message."""
        parts = parse_fields(self.definitions[kind])
        for part in parts:
            path = prefix + part.name
            if part.length is None:
                self.add_value(path, part.type)
                continue
            length = part.length
            if length < 0:
                length = self.lengths.get(path, 0)
                self.align(4)
                self.data.extend(struct.pack("<I", length))
            if part.type in PRIMITIVES:
                if length:
                    self.add_numbers(path, part.type, length)
            else:
                for i in range(length):
                    self.add_value(f"{path}.{i}", part.type)
        if prefix and all(part.type == "float64" and part.length is None for part in parts):
            first = self.fields[prefix + parts[0].name]
            self.fields[prefix[:-1]] = FieldOffset(first.dtype, len(parts), first.offset)


def build_layout(
    type_name: str,
    strings: Mapping[str, str] | None = None,
    lengths: Mapping[str, int] | None = None,
    definitions: Mapping[str, str] = DEFINITIONS,
) -> CdrLayout:
    """Return the layout of a type (full name) with its strings and array lengths by path."""
    builder = _LayoutBuilder(definitions, strings or {}, lengths or {})
    builder.add_message("", type_name)
    return CdrLayout(ENCAPSULATION + bytes(builder.data), builder.fields)


@dataclass(frozen=True, eq=False)
class MessageEncoder:
    """Encodes the arrays of one channel as messages.

    type: full name of the message type.
    layout: byte layout of a message.
    fill: writes the numbers. `fill(rows, stamp, arrays)` gets n rows, stamps (n,) in integer nanoseconds, and the
        arrays (n, ...) by name. It must only write fields of the rows by name, because compressed rows have no other
        bytes of the message. It raises `RecordingError` for a stamp outside the limits of the message.
    schema: definition of the type in the encoding `ros2msg`.
    ignores_arrays: true for a message without values of the reading. It is written at every sample, also if the
        sensor publishes none, and `fill` gets only the array `base.IS_ON`.
    """

    type: str
    layout: CdrLayout
    fill: Callable[[MessageRows, IntArray, Mapping[str, AnyArray]], None]
    schema: str = ""
    ignores_arrays: bool = False

    def __post_init__(self) -> None:
        """Set the default schema of the type."""
        if not self.schema:
            object.__setattr__(self, "schema", format_schema(self.type))


EncoderMaker: TypeAlias = Callable[[MountedSensor, SeriesKind], MessageEncoder]
"""A function of a sensor and a series that returns the encoder of its messages."""


def to_humble(encoder: MessageEncoder) -> MessageEncoder:
    """Return the encoder for ROS 2 Humble, without the fields that later distributions added.

    These fields are the last of their messages, and have constant values.
    """
    definitions = DISTRIBUTIONS[HUMBLE]
    if encoder.type not in definitions or encoder.schema != format_schema(encoder.type):
        return encoder
    current_names, humble_names = (
        {part.name for part in parse_fields(texts[encoder.type])} for texts in (DEFINITIONS, definitions)
    )
    added, template = current_names - humble_names, encoder.layout.template
    end = min((encoder.layout.fields[name].offset for name in added), default=len(template))
    fields = {name: field for name, field in encoder.layout.fields.items() if name not in added}
    return replace(encoder, layout=CdrLayout(template[:end], fields), schema=format_schema(encoder.type, definitions))


def encode(encoder: MessageEncoder, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> ByteArray:
    """Return n messages as bytes (n, size); `stamp` (n,) in nanoseconds, `arrays` (n, ...) by name.

    The writers of bags call it. The MCAP writer fills compressed rows instead (`mcap.writer.ChannelWriter`).
    """
    out = np.empty((stamp.shape[0], len(encoder.layout.template)), dtype=np.uint8)
    out[:] = np.frombuffer(encoder.layout.template, dtype=np.uint8)
    encoder.fill(out.view(encoder.layout.dtype)[:, 0], stamp, arrays)
    return out


def write_stamps(rows: MessageRows, stamp: IntArray, clock: str, path: str = "header.stamp") -> None:
    """Write stamps (n,) ns at `path`. Seconds are rounded down, so the nanoseconds are never negative.

    Raises `RecordingError` with the name of the clock if the seconds do not fit into 32 bits, and `ValueError` if
    the numbers of rows and stamps differ.
    """
    invalid = _write_stamps(stamp, get_field(rows, path + ".sec", stamp), get_field(rows, path + ".nanosec", stamp))
    if invalid:
        raise make_stamp_error(clock, invalid // NANOSECONDS_PER_SECOND)


@strided_kernel("seconds", "nanoseconds")
def _write_stamps(stamp: IntArray, seconds: AnyArray, nanoseconds: AnyArray) -> int:
    """Write the seconds and nanoseconds of stamps (n,) ns. Return the first stamp that does not fit, else 0."""
    for i in range(stamp.size):
        second = stamp[i] // NANOSECONDS_PER_SECOND
        if second < MIN_STAMP_SECONDS or second > MAX_STAMP_SECONDS:
            return int(stamp[i])
        seconds[i] = second
        nanoseconds[i] = stamp[i] - second * NANOSECONDS_PER_SECOND
    return 0


def write_vectors(rows: MessageRows, path: str, vector: AnyArray) -> None:
    """Write vectors (n, 3) at `path`. Raises `ValueError` if their number is not that of the rows."""
    _write_vectors(get_field(rows, path, vector), vector)


def get_field(rows: MessageRows, path: str, value: AnyArray) -> AnyArray:
    """Return the column of a field. Raises `ValueError` unless its shape is that of the values.

    A kernel does not check bounds and would write beyond the column.
    """
    column = rows[path]
    if column.shape != value.shape:
        raise ValueError(f"{path}: shape {value.shape}; must be {column.shape}")
    return column


@strided_kernel("column")
def _write_vectors(column: AnyArray, vector: AnyArray) -> None:
    """Write vectors (n, 3), several times faster than an assignment of such short rows."""
    for i in range(vector.shape[0]):
        column[i, 0] = vector[i, 0]
        column[i, 1] = vector[i, 1]
        column[i, 2] = vector[i, 2]


def write_quaternions(rows: MessageRows, path: str, orientation: AnyArray) -> None:
    """Write quaternions (n, 4) w x y z in the order x y z w of ROS.

    Raises `ValueError` if their number is not that of the rows.
    """
    _write_quaternions(get_field(rows, path, orientation), orientation)


@strided_kernel("column")
def _write_quaternions(column: AnyArray, orientation: AnyArray) -> None:
    """Write quaternions (n, 4) w x y z as x y z w."""
    for i in range(orientation.shape[0]):
        column[i, 0] = orientation[i, 1]
        column[i, 1] = orientation[i, 2]
        column[i, 2] = orientation[i, 3]
        column[i, 3] = orientation[i, 0]


def read_stamps(rows: MessageRows, path: str = "header.stamp") -> IntArray:
    """Return the stamps (n,) ns at `path`."""
    seconds, nanoseconds = (rows[f"{path}.{part}"].astype(np.int64) for part in ("sec", "nanosec"))
    stamp: IntArray = seconds * NANOSECONDS_PER_SECOND + nanoseconds
    return stamp


def read_quaternions(rows: MessageRows, path: str) -> AnyArray:
    """Return the quaternions (n, 4), w x y z, at `path`."""
    return np.stack([rows[f"{path}.{letter}"] for letter in "wxyz"], axis=1)

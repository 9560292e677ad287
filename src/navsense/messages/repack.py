"""Conversion of messages of any type between the serialisations of ROS 1 and ROS 2 (CDR), by their definitions.

    CDR     a number of s bytes is at a multiple of s, counted from the end of the encapsulation; strings end in a zero
    ROS 1   without padding; a header begins with a sequence number; a time has the 8 bytes of a ROS 2 stamp

The converter parses one message field by field. Messages with the same size, strings and lengths are then converted as
a block by copies of byte spans. Numbers keep their bytes. Sources: the ROS wiki, "msg"; OMG DDSI-RTPS 2.3, section 10
(XCDR1, little-endian).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from navsense.core.typing import BoolArray, ByteArray, IntArray
from navsense.messages.cdr import ENCAPSULATION, PRIMITIVES, SIZES
from navsense.messages.schemas import HEADER_TYPE, MessageField

Definitions = Mapping[str, tuple[MessageField, ...]]
"""Full type name -> fields. A time is `builtin_interfaces/msg/Time`; a header has no sequence number."""

PADDING = 3
"""Largest padding (bytes) after the last field of a CDR message."""

MAX_SHAPES = 16
"""Number of cached sizes, and of cached shapes of each size."""


@dataclass(frozen=True)
class ByteSpan:
    """Bytes that are equal in both serialisations: their offsets and their number."""

    source: int
    target: int
    size: int


@dataclass(frozen=True, eq=False)
class MessageShape:
    """Messages of one size with the same strings and array lengths, by path: an example in each serialisation.

    `spans` are the bytes that change; `constant_spans` are [first, stop) in the source. `sequence_offset` is the offset
    of the sequence number of the outermost header in ROS 1, -1 without it.
    """

    source: bytes
    target: bytes
    spans: tuple[ByteSpan, ...]
    constant_spans: tuple[tuple[int, int], ...]
    strings: Mapping[str, str]
    lengths: Mapping[str, int]
    sequence_offset: int

    def matches(self, rows: ByteArray) -> BoolArray:
        """Return True for each of the messages (n, size) that has this shape."""
        example = np.frombuffer(self.source, dtype=np.uint8)
        equal = [rows[:, first:stop] == example[first:stop] for first, stop in self.constant_spans]
        if all(span.all() for span in equal):
            return np.ones(rows.shape[0], dtype=np.bool_)
        return np.asarray(np.all([span.all(axis=1) for span in equal], axis=0))

    def convert(self, rows: ByteArray, sequence: IntArray | None = None) -> ByteArray:
        """Return messages (n, size) in the other serialisation; in ROS 1 with the sequence numbers (n,), default 0."""
        out = np.empty((rows.shape[0], len(self.target)), dtype=np.uint8)
        out[:] = np.frombuffer(self.target, dtype=np.uint8)
        for span in self.spans:
            out[:, span.target : span.target + span.size] = rows[:, span.source : span.source + span.size]
        if self.sequence_offset >= 0 and sequence is not None:
            numbers = (sequence & 0xFFFFFFFF).astype("<u4")
            out[:, self.sequence_offset : self.sequence_offset + 4] = numbers.view(np.uint8).reshape(-1, 4)
        return out


@dataclass
class MessageConverter:
    """Converts one message to the other serialisation; `is_ros1` is true for a source in ROS 1.

    `ros2_only` has the type and name of the fields that are left out in ROS 1.

    Offsets count from the end of the encapsulation. Raises `ValueError` for a message that does not match its type.
    """

    message: bytes
    definitions: Definitions
    is_ros1: bool
    ros2_only: frozenset[tuple[str, str]] = frozenset()
    offset: int = 0
    data: bytearray = field(default_factory=bytearray)
    spans: list[ByteSpan] = field(default_factory=list)
    constant_spans: list[tuple[int, int]] = field(default_factory=list)
    strings: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    sequence_offset: int = -1

    def align(self, size: int) -> None:
        """Pad the CDR side, source or target, to a multiple of `size`."""
        if self.is_ros1:
            self.data += bytes(-len(self.data) % size)
        else:
            self.offset += -self.offset % size

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        if self.offset + size > len(self.message):
            raise ValueError("a message ends too early")
        self.offset += size
        return self.message[self.offset - size : self.offset]

    def read_length(self) -> int:
        """Return the next length, which is equal in all messages of a shape."""
        self.align(4)
        self.mark_constant(4)
        return int(struct.unpack("<I", self.read(4))[0])

    def mark_constant(self, size: int) -> None:
        """Add the next bytes to those that are equal in all messages of a shape."""
        spans = self.constant_spans
        first = spans.pop()[0] if spans and spans[-1][1] == self.offset else self.offset
        spans.append((first, self.offset + size))

    def convert_numbers(self, kind: str, count: int) -> None:
        """Convert numbers of one type. There is no padding between them."""
        size = SIZES[kind]
        self.align(size)
        source, target, size = self.offset, len(self.data), size * count
        self.data += self.read(size)
        last = self.spans[-1] if self.spans else ByteSpan(0, 0, 0)
        if (last.source + last.size, last.target + last.size) == (source, target):
            self.spans[-1:] = [ByteSpan(last.source, last.target, last.size + size)]
        else:
            self.spans.append(ByteSpan(source, target, size))

    def convert_string(self, path: str) -> None:
        """Convert a string."""
        size = self.read_length()
        self.mark_constant(size)
        raw = self.read(size)
        raw = raw if self.is_ros1 else raw[:-1]
        self.strings[path] = raw.decode(errors="replace")
        target = raw + b"\0" if self.is_ros1 else raw
        self.data += struct.pack("<I", len(target)) + target

    def convert_value(self, path: str, kind: str) -> None:
        """Convert one value of any type."""
        if kind == "string":
            self.convert_string(path)
        elif kind in PRIMITIVES:
            self.convert_numbers(kind, 1)
        elif kind in self.definitions:
            self.convert_message(path + ".", kind)
        else:
            raise ValueError(f"type {kind} of a field has no definition")

    def convert_message(self, prefix: str, kind: str) -> None:
        """Convert the fields of a message."""
        if kind == HEADER_TYPE:
            self._convert_sequence(outermost=prefix.count(".") == 1)
        parts = self.definitions[kind]
        for part in parts:
            if (kind, part.name) in self.ros2_only and not self.is_ros1:
                self._skip_field(prefix + part.name, part)
            else:
                self._convert_field(prefix + part.name, part)
        if not parts:
            self._convert_empty()

    def _convert_field(self, path: str, part: MessageField) -> None:
        """Convert a field: a value, or an array of values."""
        if part.length is None:
            self.convert_value(path, part.type)
            return
        length = part.length
        if length < 0:
            length = self.lengths[path] = self.read_length()
            self.data += struct.pack("<I", length)
        if part.type in PRIMITIVES:
            if length:
                self.convert_numbers(part.type, length)
        else:
            if length > len(self.message):
                raise ValueError("a message ends too early")
            for i in range(length):
                self.convert_value(f"{path}.{i}", part.type)

    def _skip_field(self, path: str, part: MessageField) -> None:
        """Read a field without writing it."""
        size, spans = len(self.data), list(self.spans)
        self._convert_field(path, part)
        del self.data[size:]
        self.spans[:] = spans

    def _convert_sequence(self, *, outermost: bool) -> None:
        """Skip the sequence number of a ROS 1 header, or reserve its bytes."""
        if self.is_ros1:
            self.read(4)
            return
        if outermost:
            self.sequence_offset = len(self.data)
        self.data += bytes(4)

    def _convert_empty(self) -> None:
        """Convert a message without fields. CDR has one byte for it."""
        if self.is_ros1:
            self.data += b"\0"
        else:
            # Some writers omit it at the end.
            self.offset = min(self.offset + 1, len(self.message))


def build_shape(
    message: bytes,
    type_name: str,
    definitions: Definitions,
    *,
    is_ros1: bool,
    ros2_only: frozenset[tuple[str, str]] = frozenset(),
) -> MessageShape:
    """Return the shape of a message in ROS 1 or CDR. Raises `ValueError` if it does not match its type."""
    source_header, target_header = (0, len(ENCAPSULATION)) if is_ros1 else (len(ENCAPSULATION), 0)
    if not is_ros1 and message[:2] != ENCAPSULATION[:2]:
        raise ValueError("a message is not in little-endian CDR")
    converter = MessageConverter(message[source_header:], definitions, is_ros1, ros2_only)
    converter.convert_message("", type_name)
    rest = len(converter.message) - converter.offset
    if not 0 <= rest <= (0 if is_ros1 else PADDING):
        raise ValueError(f"a message has {rest} bytes after its last field")
    spans = (ByteSpan(span.source + source_header, span.target + target_header, span.size) for span in converter.spans)
    constant_spans = ((first + source_header, stop + source_header) for first, stop in converter.constant_spans)
    target = ENCAPSULATION[:target_header] + bytes(converter.data)
    contents = converter.strings, converter.lengths, converter.sequence_offset
    return MessageShape(message, target, tuple(spans), tuple(constant_spans), *contents)


class ShapeCache:
    """The shapes of the messages of one topic."""

    def __init__(
        self,
        kind: str,
        definitions: Definitions,
        *,
        is_ros1: bool,
        ros2_only: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        """Start empty. `is_ros1` is true for messages in ROS 1; `ros2_only` has the fields that ROS 1 lacks."""
        self._kind, self._definitions, self._is_ros1, self._ros2_only = kind, definitions, is_ros1, ros2_only
        self._known: dict[int, list[MessageShape]] = {}

    def group_by_shape(self, messages: Sequence[bytes]) -> list[tuple[MessageShape, IntArray, ByteArray]]:
        """Return the shapes of messages, with the indices and bytes (n, size) of each group. Raises `ValueError`."""
        groups: list[tuple[MessageShape, IntArray, ByteArray]] = []
        sizes = np.array([len(message) for message in messages], dtype=np.int64)
        for size in np.unique(sizes).tolist():
            index = np.flatnonzero(sizes == size)
            data = b"".join(messages) if index.size == sizes.size else b"".join(messages[i] for i in index.tolist())
            groups += self.split_by_shape(index, np.frombuffer(data, dtype=np.uint8).reshape(index.size, size))
        return groups

    def split_by_shape(self, index: IntArray, rows: ByteArray) -> list[tuple[MessageShape, IntArray, ByteArray]]:
        """Return the groups of messages (n, size) with the indices (n,) by shape. Raises `ValueError`."""
        groups: list[tuple[MessageShape, IntArray, ByteArray]] = []
        size = rows.shape[1]
        if size not in self._known and len(self._known) == MAX_SHAPES:
            self._known.clear()
        known, tried = self._known.setdefault(size, []), 0
        while index.size:
            if tried == len(known):
                build = partial(build_shape, is_ros1=self._is_ros1, ros2_only=self._ros2_only)
                known.append(build(rows[0].tobytes(), self._kind, self._definitions))
                del known[:-MAX_SHAPES]
                tried = len(known) - 1
            matches = known[tried].matches(rows)
            if matches.all():
                return [*groups, (known[tried], index, rows)]
            if matches.any():
                groups.append((known[tried], index[matches], rows[matches]))
                index, rows = index[~matches], rows[~matches]
            tried += 1
        return groups

    def convert(self, messages: Sequence[bytes], first: int = 0) -> list[bytes]:
        """Return messages in the other serialisation; in ROS 1 numbered from `first`. Raises `ValueError`."""
        out = [b""] * len(messages)
        for shape, index, rows in self.group_by_shape(messages):
            converted = shape.convert(rows, index + first)
            data, size = converted.tobytes(), converted.shape[1]
            for row, i in enumerate(index.tolist()):
                out[i] = data[row * size : row * size + size]
        return out

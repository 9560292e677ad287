"""Messages of any type from the encoding of ROS 1 to CDR and back, by their definitions: no number is touched.

    CDR     a number of s bytes at a multiple of s, counted from behind the encapsulation; texts end in a zero
    ROS 1   one behind the other; a header has a number before it; time is the 8 bytes of a stamp of ROS 2

One message is walked through field by field; those of the same size, texts and lengths follow it as a block, in which
spans of bytes are copied. Sources: the ROS wiki, "msg"; OMG DDSI-RTPS 2.3, section 10 (XCDR1, little-endian).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from navsense.messages.cdr import ENCAPSULATION, PRIMITIVES, SIZES
from navsense.messages.schemas import HEADER_TYPE, MessageField
from navsense.typing import BoolArray, ByteArray, IntArray

Definitions = Mapping[str, tuple[MessageField, ...]]
"""Full type name -> fields; a time is `builtin_interfaces/msg/Time`, and a header has no number."""

PADDING = 3
"""Bytes that may stand behind the last field of a message in CDR."""

MAX_SHAPES = 16
"""Shapes of one size, and sizes, that are remembered: messages of which each is another are walked through singly."""


@dataclass(frozen=True)
class ByteSpan:
    """Bytes that both encodings have alike: where they begin in each, and how many they are."""

    source: int
    target: int
    size: int


@dataclass(frozen=True, eq=False)
class MessageShape:
    """Messages of one size, texts and lengths: a whole one in either encoding, and what changes in it.

    `kept` is where bytes lie, [first, stop), that all have alike, `texts` and `lengths` what they are, by path.
    `sequence` is where the number of the outermost header stands in ROS 1, -1 for none.
    """

    source: bytes
    target: bytes
    spans: tuple[ByteSpan, ...]
    constant_spans: tuple[tuple[int, int], ...]
    strings: Mapping[str, str]
    lengths: Mapping[str, int]
    sequence: int

    def matches(self, rows: ByteArray) -> BoolArray:
        """Return whether each of the messages (n, size) is of this shape."""
        own = np.frombuffer(self.source, dtype=np.uint8)
        same = [rows[:, first:stop] == own[first:stop] for first, stop in self.constant_spans]
        if all(one.all() for one in same):
            return np.ones(rows.shape[0], dtype=np.bool_)
        return np.asarray(np.all([one.all(axis=1) for one in same], axis=0))

    def convert(self, rows: ByteArray) -> ByteArray:
        """Return messages (n, size) in the other encoding, their headers not numbered."""
        out = np.empty((rows.shape[0], len(self.target)), dtype=np.uint8)
        out[:] = np.frombuffer(self.target, dtype=np.uint8)
        for span in self.spans:
            out[:, span.target : span.target + span.size] = rows[:, span.source : span.source + span.size]
        return out


@dataclass
class MessageConverter:
    """The walk through one message, writing it in the other encoding; `old` where it is of ROS 1.

    Offsets count from behind the encapsulation of CDR. Raises `ValueError` where the message is not of its type.
    """

    message: bytes
    definitions: Definitions
    is_ros1: bool
    offset: int = 0
    data: bytearray = field(default_factory=bytearray)
    spans: list[ByteSpan] = field(default_factory=list)
    constant_spans: list[tuple[int, int]] = field(default_factory=list)
    strings: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    sequence: int = -1

    def align(self, size: int) -> None:
        """Pad in CDR, on whichever side it is, to a multiple of `size`."""
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
        """Return the length that comes next, which is the same in all messages of a shape."""
        self.align(4)
        self.mark_constant(4)
        return int(struct.unpack("<I", self.read(4))[0])

    def mark_constant(self, size: int) -> None:
        """Note that the next bytes are the same in all messages of a shape."""
        first = (
            self.constant_spans.pop()[0]
            if self.constant_spans and self.constant_spans[-1][1] == self.offset
            else self.offset
        )
        self.constant_spans.append((first, self.offset + size))

    def convert_numbers(self, kind: str, count: int) -> None:
        """Take over numbers of one type, which have no padding between them."""
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
        """Take over a text."""
        size = self.read_length()
        self.mark_constant(size)
        raw = self.read(size)
        raw = raw if self.is_ros1 else raw[:-1]
        self.strings[path] = raw.decode(errors="replace")
        whole = raw + b"\0" if self.is_ros1 else raw
        self.data += struct.pack("<I", len(whole)) + whole

    def convert_value(self, path: str, kind: str) -> None:
        """Take over one value of any type."""
        if kind == "string":
            self.convert_string(path)
        elif kind in PRIMITIVES:
            self.convert_numbers(kind, 1)
        elif kind in self.definitions:
            self.convert_message(path + ".", kind)
        else:
            raise ValueError(f"a field is of type {kind}, which has no definition here")

    def convert_message(self, prefix: str, kind: str) -> None:
        """Take over the fields of a message."""
        if kind == HEADER_TYPE:
            self._convert_sequence(outermost=prefix.count(".") == 1)
        parts = self.definitions[kind]
        for series_kind in parts:
            path = prefix + series_kind.name
            if series_kind.length is None:
                self.convert_value(path, series_kind.type)
                continue
            length = series_kind.length
            if length < 0:
                length = self.lengths[path] = self.read_length()
                self.data += struct.pack("<I", length)
            if series_kind.type in PRIMITIVES:
                if length:
                    self.convert_numbers(series_kind.type, length)
            else:
                if length > len(self.message):
                    raise ValueError("a message ends too early")
                for i in range(length):
                    self.convert_value(f"{path}.{i}", series_kind.type)
        if not parts:
            self._convert_empty()

    def _convert_sequence(self, *, outermost: bool) -> None:
        """Pass over the number of a header of ROS 1, or leave room for it."""
        if self.is_ros1:
            self.read(4)
            return
        if outermost:
            self.sequence = len(self.data)
        self.data += bytes(4)

    def _convert_empty(self) -> None:
        """Take over a message without fields, for which CDR has a byte."""
        if self.is_ros1:
            self.data += b"\0"
        else:
            # Some writers leave it out at the end.
            self.offset = min(self.offset + 1, len(self.message))


def build_shape(message: bytes, type_name: str, definitions: Definitions, *, is_ros1: bool) -> MessageShape:
    """Return the shape of a message of a type, of ROS 1 where `old`, else in CDR. Raises `ValueError` if it is none."""
    before = 0 if is_ros1 else len(ENCAPSULATION)
    if not is_ros1 and message[:2] != ENCAPSULATION[:2]:
        raise ValueError("a message is not in little-endian CDR")
    walk = MessageConverter(message[before:], definitions, is_ros1)
    walk.convert_message("", type_name)
    behind = len(walk.message) - walk.offset
    if not 0 <= behind <= (0 if is_ros1 else PADDING):
        raise ValueError(f"a message has {behind} bytes behind its last field")
    after = len(ENCAPSULATION) if is_ros1 else 0
    spans = tuple(ByteSpan(span.source + before, span.target + after, span.size) for span in walk.spans)
    kept = tuple((first + before, stop + before) for first, stop in walk.constant_spans)
    target = (ENCAPSULATION if is_ros1 else b"") + bytes(walk.data)
    return MessageShape(message, target, spans, kept, walk.strings, walk.lengths, walk.sequence)


class ShapeCache:
    """The shapes of one topic's messages, found as they come."""

    def __init__(self, kind: str, definitions: Definitions, *, is_ros1: bool) -> None:
        """Start without any; `old` for messages of ROS 1."""
        self._kind, self._definitions, self._is_ros1 = kind, definitions, is_ros1
        self._known: dict[int, list[MessageShape]] = {}

    def group_by_shape(self, messages: Sequence[bytes]) -> list[tuple[MessageShape, IntArray, ByteArray]]:
        """Return messages by shape: which they are, and their bytes (n, size). Raises `ValueError`."""
        found: list[tuple[MessageShape, IntArray, ByteArray]] = []
        sizes = np.array([len(one) for one in messages], dtype=np.int64)
        for size in np.unique(sizes).tolist():
            left = np.flatnonzero(sizes == size)
            joined = b"".join(messages) if left.size == sizes.size else b"".join(messages[i] for i in left.tolist())
            found += self.split_by_shape(left, np.frombuffer(joined, dtype=np.uint8).reshape(left.size, size))
        return found

    def split_by_shape(self, left: IntArray, rows: ByteArray) -> list[tuple[MessageShape, IntArray, ByteArray]]:
        """Return messages (n, size) of one size by shape; `left` (n,) is which they are. Raises `ValueError`."""
        found: list[tuple[MessageShape, IntArray, ByteArray]] = []
        size = rows.shape[1]
        if size not in self._known and len(self._known) == MAX_SHAPES:
            self._known.clear()
        known, tried = self._known.setdefault(size, []), 0
        while left.size:
            if tried == len(known):
                known.append(build_shape(rows[0].tobytes(), self._kind, self._definitions, is_ros1=self._is_ros1))
                del known[:-MAX_SHAPES]
                tried = len(known) - 1
            fits = known[tried].matches(rows)
            if fits.all():
                return [*found, (known[tried], left, rows)]
            if fits.any():
                found.append((known[tried], left[fits], rows[fits]))
                left, rows = left[~fits], rows[~fits]
            tried += 1
        return found

    def convert(self, messages: Sequence[bytes], first: int = 0) -> list[bytes]:
        """Return messages in the other encoding; in ROS 1 numbered from `first` on. Raises `ValueError`."""
        out = [b""] * len(messages)
        for shape, places, rows in self.group_by_shape(messages):
            made = shape.convert(rows)
            if shape.sequence >= 0:
                numbers = ((places + first) & 0xFFFFFFFF).astype("<u4")
                made[:, shape.sequence : shape.sequence + 4] = numbers.view(np.uint8).reshape(-1, 4)
            whole, width = made.tobytes(), made.shape[1]
            for row, place in enumerate(places.tolist()):
                out[place] = whole[row * width : row * width + width]
        return out

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
from navsense.messages.schemas import HEADER, Field
from navsense.typing import BoolArray, ByteArray, IntArray

Definitions = Mapping[str, tuple[Field, ...]]
"""Full type name -> fields; a time is `builtin_interfaces/msg/Time`, and a header has no number."""

PADDING = 3
"""Bytes that may stand behind the last field of a message in CDR."""

MOST = 16
"""Shapes of one size, and sizes, that are remembered: messages of which each is another are walked through singly."""


@dataclass(frozen=True)
class Span:
    """Bytes that both encodings have alike: where they begin in each, and how many they are."""

    source: int
    target: int
    size: int


@dataclass(frozen=True, eq=False)
class Shape:
    """Messages of one size, texts and lengths: a whole one in either encoding, and what changes in it.

    `kept` is where bytes lie, [first, stop), that all have alike, `texts` and `lengths` what they are, by path.
    `sequence` is where the number of the outermost header stands in ROS 1, -1 for none.
    """

    source: bytes
    target: bytes
    spans: tuple[Span, ...]
    kept: tuple[tuple[int, int], ...]
    texts: Mapping[str, str]
    lengths: Mapping[str, int]
    sequence: int

    def fits(self, rows: ByteArray) -> BoolArray:
        """Return whether each of the messages (n, size) is of this shape."""
        own = np.frombuffer(self.source, dtype=np.uint8)
        same = [rows[:, first:stop] == own[first:stop] for first, stop in self.kept]
        if all(one.all() for one in same):
            return np.ones(rows.shape[0], dtype=np.bool_)
        return np.asarray(np.all([one.all(axis=1) for one in same], axis=0))

    def packed(self, rows: ByteArray) -> ByteArray:
        """Return messages (n, size) in the other encoding, their headers not numbered."""
        out = np.empty((rows.shape[0], len(self.target)), dtype=np.uint8)
        out[:] = np.frombuffer(self.target, dtype=np.uint8)
        for span in self.spans:
            out[:, span.target : span.target + span.size] = rows[:, span.source : span.source + span.size]
        return out


@dataclass
class Walk:
    """The walk through one message, writing it in the other encoding; `old` where it is of ROS 1.

    Offsets count from behind the encapsulation of CDR. Raises `ValueError` where the message is not of its type.
    """

    message: bytes
    definitions: Definitions
    old: bool
    at: int = 0
    data: bytearray = field(default_factory=bytearray)
    spans: list[Span] = field(default_factory=list)
    kept: list[tuple[int, int]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    sequence: int = -1

    def align(self, size: int) -> None:
        """Pad in CDR, on whichever side it is, to a multiple of `size`."""
        if self.old:
            self.data += bytes(-len(self.data) % size)
        else:
            self.at += -self.at % size

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if self.at + size > len(self.message):
            raise ValueError("a message ends too early")
        self.at += size
        return self.message[self.at - size : self.at]

    def length(self) -> int:
        """Return the length that comes next, which is the same in all messages of a shape."""
        self.align(4)
        self.keep(4)
        return int(struct.unpack("<I", self.take(4))[0])

    def keep(self, size: int) -> None:
        """Note that the next bytes are the same in all messages of a shape."""
        first = self.kept.pop()[0] if self.kept and self.kept[-1][1] == self.at else self.at
        self.kept.append((first, self.at + size))

    def numbers(self, kind: str, count: int) -> None:
        """Take over numbers of one type, which have no padding between them."""
        size = SIZES[kind]
        self.align(size)
        source, target, size = self.at, len(self.data), size * count
        self.data += self.take(size)
        last = self.spans[-1] if self.spans else Span(0, 0, 0)
        if (last.source + last.size, last.target + last.size) == (source, target):
            self.spans[-1:] = [Span(last.source, last.target, last.size + size)]
        else:
            self.spans.append(Span(source, target, size))

    def string(self, path: str) -> None:
        """Take over a text."""
        size = self.length()
        self.keep(size)
        raw = self.take(size)
        raw = raw if self.old else raw[:-1]
        self.texts[path] = raw.decode(errors="replace")
        whole = raw + b"\0" if self.old else raw
        self.data += struct.pack("<I", len(whole)) + whole

    def value(self, path: str, kind: str) -> None:
        """Take over one value of any type."""
        if kind == "string":
            self.string(path)
        elif kind in PRIMITIVES:
            self.numbers(kind, 1)
        elif kind in self.definitions:
            self.message_of(path + ".", kind)
        else:
            raise ValueError(f"a field is of type {kind}, which has no definition here")

    def message_of(self, prefix: str, kind: str) -> None:
        """Take over the fields of a message."""
        if kind == HEADER:
            self._number(outermost=prefix.count(".") == 1)
        parts = self.definitions[kind]
        for part in parts:
            path = prefix + part.name
            if part.length is None:
                self.value(path, part.type)
                continue
            length = part.length
            if length < 0:
                length = self.lengths[path] = self.length()
                self.data += struct.pack("<I", length)
            if part.type in PRIMITIVES:
                if length:
                    self.numbers(part.type, length)
            else:
                if length > len(self.message):
                    raise ValueError("a message ends too early")
                for i in range(length):
                    self.value(f"{path}.{i}", part.type)
        if not parts:
            self._nothing()

    def _number(self, *, outermost: bool) -> None:
        """Pass over the number of a header of ROS 1, or leave room for it."""
        if self.old:
            self.take(4)
            return
        if outermost:
            self.sequence = len(self.data)
        self.data += bytes(4)

    def _nothing(self) -> None:
        """Take over a message without fields, for which CDR has a byte."""
        if self.old:
            self.data += b"\0"
        else:
            # Some writers leave it out at the end.
            self.at = min(self.at + 1, len(self.message))


def shape_of(message: bytes, kind: str, definitions: Definitions, *, old: bool) -> Shape:
    """Return the shape of a message of a type, of ROS 1 where `old`, else in CDR. Raises `ValueError` if it is none."""
    before = 0 if old else len(ENCAPSULATION)
    if not old and message[:2] != ENCAPSULATION[:2]:
        raise ValueError("a message is not in little-endian CDR")
    walk = Walk(message[before:], definitions, old)
    walk.message_of("", kind)
    behind = len(walk.message) - walk.at
    if not 0 <= behind <= (0 if old else PADDING):
        raise ValueError(f"a message has {behind} bytes behind its last field")
    after = len(ENCAPSULATION) if old else 0
    spans = tuple(Span(span.source + before, span.target + after, span.size) for span in walk.spans)
    kept = tuple((first + before, stop + before) for first, stop in walk.kept)
    target = (ENCAPSULATION if old else b"") + bytes(walk.data)
    return Shape(message, target, spans, kept, walk.texts, walk.lengths, walk.sequence)


class Shapes:
    """The shapes of one topic's messages, found as they come."""

    def __init__(self, kind: str, definitions: Definitions, *, old: bool) -> None:
        """Start without any; `old` for messages of ROS 1."""
        self._kind, self._definitions, self._old = kind, definitions, old
        self._known: dict[int, list[Shape]] = {}

    def blocks(self, messages: Sequence[bytes]) -> list[tuple[Shape, IntArray, ByteArray]]:
        """Return messages by shape: which they are, and their bytes (n, size). Raises `ValueError`."""
        found: list[tuple[Shape, IntArray, ByteArray]] = []
        sizes = np.array([len(one) for one in messages], dtype=np.int64)
        for size in np.unique(sizes).tolist():
            left = np.flatnonzero(sizes == size)
            joined = b"".join(messages) if left.size == sizes.size else b"".join(messages[i] for i in left.tolist())
            found += self.parted(left, np.frombuffer(joined, dtype=np.uint8).reshape(left.size, size))
        return found

    def parted(self, left: IntArray, rows: ByteArray) -> list[tuple[Shape, IntArray, ByteArray]]:
        """Return messages (n, size) of one size by shape; `left` (n,) is which they are. Raises `ValueError`."""
        found: list[tuple[Shape, IntArray, ByteArray]] = []
        size = rows.shape[1]
        if size not in self._known and len(self._known) == MOST:
            self._known.clear()
        known, tried = self._known.setdefault(size, []), 0
        while left.size:
            if tried == len(known):
                known.append(shape_of(rows[0].tobytes(), self._kind, self._definitions, old=self._old))
                del known[:-MOST]
                tried = len(known) - 1
            fits = known[tried].fits(rows)
            if fits.all():
                return [*found, (known[tried], left, rows)]
            if fits.any():
                found.append((known[tried], left[fits], rows[fits]))
                left, rows = left[~fits], rows[~fits]
            tried += 1
        return found

    def repacked(self, messages: Sequence[bytes], first: int = 0) -> list[bytes]:
        """Return messages in the other encoding; in ROS 1 numbered from `first` on. Raises `ValueError`."""
        out = [b""] * len(messages)
        for shape, places, rows in self.blocks(messages):
            made = shape.packed(rows)
            if shape.sequence >= 0:
                numbers = ((places + first) & 0xFFFFFFFF).astype("<u4")
                made[:, shape.sequence : shape.sequence + 4] = numbers.view(np.uint8).reshape(-1, 4)
            whole, width = made.tobytes(), made.shape[1]
            for row, place in enumerate(places.tolist()):
                out[place] = whole[row * width : row * width + width]
        return out

"""Messages as ROS 1 serialises them: the numbers of CDR one behind the other, without the padding.

    header: uint32 seq, time stamp, string frame_id     time: uint32 sec, uint32 nsec     string: its length, its bytes

Time is the 8 bytes of a stamp of ROS 2 that is not before 1970, a text has no closing zero, and all else is as in CDR.
Since every message of a channel is of one size, a block of them is one template with spans of bytes copied into it.
Source: the ROS wiki, "msg", and `genpy`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from navsense.messages.cdr import ENCAPSULATION, PRIMITIVES, Message
from navsense.messages.schemas import HEADER, SEPARATOR, fields, ros1, text
from navsense.typing import ByteArray


@dataclass(frozen=True)
class Span:
    """Bytes that both encodings have alike: where they begin in each, and how many they are."""

    source: int
    target: int
    size: int


@dataclass(frozen=True, eq=False)
class Packing:
    """How the messages of one channel are packed: a whole one, the bytes that change, where its number is (-1: none).

    `definition` is the text that a bag has of its type.
    """

    definition: str
    template: bytes
    spans: tuple[Span, ...]
    sequence: int

    def pack(self, rows: ByteArray, first: int) -> ByteArray:
        """Return messages (n, size) of CDR as those of ROS 1, numbered from `first` on."""
        out = np.empty((rows.shape[0], len(self.template)), dtype=np.uint8)
        out[:] = np.frombuffer(self.template, dtype=np.uint8)
        for span in self.spans:
            out[:, span.target : span.target + span.size] = rows[:, span.source : span.source + span.size]
        if self.sequence >= 0:
            numbers = ((np.arange(rows.shape[0]) + first) & 0xFFFFFFFF).astype("<u4")
            out[:, self.sequence : self.sequence + 4] = numbers.view(np.uint8).reshape(-1, 4)
        return out


@dataclass
class _Walk:
    """The walk through one message in CDR, writing it as ROS 1 does; `at` counts from behind the encapsulation."""

    message: bytes
    definitions: Mapping[str, str]
    at: int = 0
    data: bytearray = field(default_factory=bytearray)
    spans: list[Span] = field(default_factory=list)
    sequence: int = -1

    def align(self, size: int) -> None:
        """Pass over the padding before a number of `size` bytes."""
        self.at += -self.at % size

    def length(self) -> int:
        """Return the length that comes next."""
        self.align(4)
        self.at += 4
        return int(struct.unpack_from("<I", self.message, self.at - 4)[0])

    def numbers(self, kind: str, count: int) -> None:
        """Take over numbers of one type, which have no padding between them."""
        size = np.dtype(PRIMITIVES[kind]).itemsize
        self.align(size)
        source, target, size = self.at, len(self.data), size * count
        last = self.spans[-1] if self.spans else Span(0, 0, 0)
        if (last.source + last.size, last.target + last.size) == (source, target):
            self.spans[-1:] = [Span(last.source, last.target, last.size + size)]
        else:
            self.spans.append(Span(source, target, size))
        self.data += self.message[source : source + size]
        self.at += size

    def string(self) -> None:
        """Take over a text, which is the same in every message."""
        size = self.length()
        self.data += struct.pack("<I", size - 1) + self.message[self.at : self.at + size - 1]
        self.at += size

    def values(self, kind: str, count: int) -> None:
        """Take over values of any type."""
        if kind in PRIMITIVES:
            if count:
                self.numbers(kind, count)
            return
        for _ in range(count):
            if kind == "string":
                self.string()
            else:
                self.fields(kind)

    def fields(self, kind: str, *, outermost: bool = False) -> None:
        """Take over the fields of a message; the header of the outermost is the one that is numbered."""
        if kind == HEADER:
            self.data += bytes(4)
        for part in fields(self.definitions[kind]):
            if outermost and part.type == HEADER and part.length is None:
                self.sequence = len(self.data)
            length = 1 if part.length is None else part.length
            if length < 0:
                length = self.length()
                self.data += struct.pack("<I", length)
            self.values(part.type, length)


def definitions_of(message: Message) -> dict[str, str]:
    """Return the definitions in a message's schema by full type name, as `text` joined them."""
    own, *others = message.schema.split(f"{SEPARATOR}\nMSG: ")
    found = {message.type: own.strip()}
    for other in others:
        name, _, definition = other.partition("\n")
        found["/msg/".join(name.rsplit("/", 1))] = definition.strip()
    return found


def packing(message: Message) -> Packing:
    """Return how messages in CDR become those of ROS 1."""
    known = definitions_of(message)
    walk = _Walk(message.layout.template[len(ENCAPSULATION) :], known)
    walk.fields(message.type, outermost=True)
    spans = tuple(Span(span.source + len(ENCAPSULATION), span.target, span.size) for span in walk.spans)
    return Packing(text(message.type, ros1(known)), bytes(walk.data), spans, walk.sequence)

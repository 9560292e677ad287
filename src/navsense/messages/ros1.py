"""Messages as ROS 1 serialises them: the numbers of CDR one behind the other, without the padding.

    header: uint32 seq, time stamp, string frame_id     time: uint32 sec, uint32 nsec     string: its length, its bytes

Time is the 8 bytes of a stamp of ROS 2 that is not before 1970, a text has no closing zero, and all else is as in CDR.
Since every message of a channel is of one size, a block of them is one template with spans of bytes copied into it.
Source: the ROS wiki, "msg", and `genpy`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from navsense.messages.cdr import Message
from navsense.messages.repack import Span, shape_of
from navsense.messages.schemas import ROS1, SEPARATOR, fields, ros1, text
from navsense.typing import ByteArray


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


def definitions_of(message: Message) -> dict[str, str]:
    """Return the definitions in a message's schema by full type name, as `text` joined them."""
    own, *others = message.schema.split(f"{SEPARATOR}\nMSG: ")
    found = {message.type: own.strip()}
    for other in others:
        name, _, definition = other.partition("\n")
        found["/msg/".join(name.rsplit("/", 1))] = definition.strip()
    return found


@cache
def noetic_definitions() -> Mapping[str, str]:
    """Return the published definitions of ROS Noetic with comments: `rosbag check` compares the full text."""
    found = json.loads((files("navsense.messages") / "noetic.json").read_text(encoding="utf-8"))
    definitions: dict[str, str] = found["definitions"]
    return definitions


def definition_text(kind: str, known: Mapping[str, str] = ROS1) -> str:
    """Return the text of a type in a ROS 1 bag. Types of Noetic have the published text."""
    return text(
        kind, known, {name: body for name, body in noetic_definitions().items() if known.get(name) == ROS1[name]}
    )


def packing(message: Message) -> Packing:
    """Return how messages in CDR become those of ROS 1."""
    known = definitions_of(message)
    parsed = {kind: fields(definition) for kind, definition in known.items()}
    shape = shape_of(message.layout.template, message.type, parsed, old=False)
    return Packing(definition_text(message.type, ros1(known)), shape.target, shape.spans, shape.sequence)

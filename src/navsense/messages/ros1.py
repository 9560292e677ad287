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

from navsense.messages.cdr import MessageLayout
from navsense.messages.repack import ByteSpan, build_shape
from navsense.messages.schemas import ROS1_DEFINITIONS, SEPARATOR, format_schema, parse_fields, to_ros1_definitions
from navsense.typing import ByteArray


@dataclass(frozen=True, eq=False)
class Ros1Packing:
    """How the messages of one channel are packed: a whole one, the bytes that change, where its number is (-1: none).

    `definition` is the text that a bag has of its type.
    """

    definition: str
    template: bytes
    spans: tuple[ByteSpan, ...]
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


def split_definitions(message: MessageLayout) -> dict[str, str]:
    """Return the definitions in a message's schema by full type name, as `text` joined them."""
    own, *others = message.schema.split(f"{SEPARATOR}\nMSG: ")
    found = {message.type: own.strip()}
    for other in others:
        name, _, definition = other.partition("\n")
        found["/msg/".join(name.rsplit("/", 1))] = definition.strip()
    return found


@cache
def load_noetic_definitions() -> Mapping[str, str]:
    """Return the published definitions of ROS Noetic with comments: `rosbag check` compares the full text."""
    found = json.loads((files("navsense.messages") / "noetic.json").read_text(encoding="utf-8"))
    definitions: dict[str, str] = found["definitions"]
    return definitions


def format_definition(type_name: str, definitions: Mapping[str, str] = ROS1_DEFINITIONS) -> str:
    """Return the text of a type in a ROS 1 bag. Types of Noetic have the published text."""
    return format_schema(
        type_name,
        definitions,
        {
            name: body
            for name, body in load_noetic_definitions().items()
            if definitions.get(name) == ROS1_DEFINITIONS[name]
        },
    )


def make_ros1_packing(message: MessageLayout) -> Ros1Packing:
    """Return how messages in CDR become those of ROS 1."""
    known = split_definitions(message)
    parsed = {kind: parse_fields(definition) for kind, definition in known.items()}
    shape = build_shape(message.layout.template, message.type, parsed, is_ros1=False)
    return Ros1Packing(
        format_definition(message.type, to_ros1_definitions(known)), shape.target, shape.spans, shape.sequence
    )

"""The ROS 1 serialisation of the messages of a channel: the numbers of CDR without padding.

    header: uint32 seq, time stamp, string frame_id     time: uint32 sec, uint32 nsec     string: its length, its bytes

A time has the 8 bytes of a ROS 2 stamp, which must not be before 1970. A string has no terminating zero. All messages
of a channel have one size, so a block of them is one template with copies of byte spans.
Source: the ROS wiki, "msg", and `genpy`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from navsense.core.typing import ByteArray
from navsense.messages.cdr import MessageEncoder
from navsense.messages.repack import MessageShape, build_shape
from navsense.messages.schemas import (
    ROS1_DEFINITIONS,
    SEPARATOR,
    format_schema,
    list_ros2_only_fields,
    parse_fields,
    to_ros1_definitions,
)


@dataclass(frozen=True, eq=False)
class Ros1Packing:
    """The ROS 1 definition of the messages of one channel, and their shape."""

    definition: str
    shape: MessageShape

    def pack(self, rows: ByteArray, first: int) -> ByteArray:
        """Return CDR messages (n, size) in ROS 1, numbered from `first`."""
        return self.shape.convert(rows, np.arange(first, first + rows.shape[0]))


def split_definitions(message: MessageEncoder) -> dict[str, str]:
    """Return the definitions in the schema of a message by full type name: the inverse of `format_schema`."""
    main, *sections = message.schema.split(f"{SEPARATOR}\nMSG: ")
    definitions = {message.type: main.strip()}
    for section in sections:
        name, _, definition = section.partition("\n")
        definitions["/msg/".join(name.rsplit("/", 1))] = definition.strip()
    return definitions


@cache
def load_noetic_definitions() -> Mapping[str, str]:
    """Return the published definitions of ROS Noetic with comments: `rosbag check` compares the full text."""
    file = json.loads((files("navsense.messages") / "noetic.json").read_text(encoding="utf-8"))
    definitions: dict[str, str] = file["definitions"]
    return definitions


def format_definition(type_name: str, definitions: Mapping[str, str] = ROS1_DEFINITIONS) -> str:
    """Return the definition of a type in a ROS 1 bag. Types of Noetic have the published text."""
    noetic = load_noetic_definitions().items()
    published = {name: text for name, text in noetic if definitions.get(name) == ROS1_DEFINITIONS[name]}
    return format_schema(type_name, definitions, published)


def make_ros1_packing(message: MessageEncoder) -> Ros1Packing:
    """Return the ROS 1 packing of a channel's messages."""
    definitions = split_definitions(message)
    parsed = {kind: parse_fields(definition) for kind, definition in definitions.items()}
    ros2_only = list_ros2_only_fields(definitions)
    shape = build_shape(message.layout.template, message.type, parsed, is_ros1=False, ros2_only=ros2_only)
    return Ros1Packing(format_definition(message.type, to_ros1_definitions(definitions)), shape)

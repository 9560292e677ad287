"""The names that ROS 2 gives to its topics, types and endpoints on DDS.

    topic /imu                      rt/imu
    type sensor_msgs/msg/Imu        sensor_msgs::msg::dds_::Imu_
    user data of a participant      enclave=/;
    user data of an endpoint        typehash=RIHS01_...;            since Iron

Sources: the design article "Topic and Service name mapping to DDS" of ROS 2, and `rmw_dds_common`, `rmw_cyclonedds`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from contextlib import suppress

from navsense.messages.cdr import ENCAPSULATION
from navsense.streams.ros_messages import CdrReader

TOPIC_PREFIX = "rt"
"""Prefix of the topics of messages."""

DISCOVERY_TOPIC = "ros_discovery_info"
"""The topic on which each participant publishes the names of its nodes, and their endpoints."""

PARTICIPANT_USER_DATA = b"enclave=/;"
"""User data of a participant without security."""

GID_SIZE, HUMBLE_GID_SIZE = 16, 24
"""Bytes of the identifier of an endpoint: a GUID of DDS, which Humble and earlier fill up with zeros."""

MAX_DOMAIN = 232
"""Largest domain for which all ports exist."""

TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A part of the name of a topic or node."""


def format_dds_topic(topic: str) -> str:
    """Return the name on DDS of a topic.

    >>> from navsense.streams.ros2.naming import format_dds_topic
    >>> format_dds_topic("/imu")
    'rt/imu'
    """
    return f"{TOPIC_PREFIX}/{topic.lstrip('/')}"


def format_dds_type(message_type: str, separator: str = "::") -> str:
    """Return the name on DDS of a message type.

    >>> from navsense.streams.ros2.naming import format_dds_type
    >>> format_dds_type("sensor_msgs/msg/Imu")
    'sensor_msgs::msg::dds_::Imu_'
    """
    *modules, name = message_type.split("/")
    return separator.join((*modules, "dds_", f"{name}_"))


def parse_dds_topic(dds_topic: str) -> str:
    """Return the topic of a name on DDS; "" for one that is not a topic of messages of ROS."""
    prefix, slash, topic = dds_topic.partition("/")
    return f"/{topic}" if slash and prefix == TOPIC_PREFIX else ""


def parse_dds_type(dds_type: str) -> str:
    """Return the message type of a name on DDS; "" for a type that is not one of ROS."""
    modules, marker, name = dds_type.partition("::dds_::")
    return f"{modules.replace('::', '/')}/{name[:-1]}" if marker and name.endswith("_") else ""


def is_valid_topic(topic: str) -> bool:
    """Return True for the name of a topic that a node of ROS 2 can have."""
    return all(TOKEN.fullmatch(part) for part in topic.removeprefix("/").split("/"))


def split_node_name(name: str) -> tuple[str, str]:
    """Return the namespace and the name of a node: "/auv" and "sensors" of "/auv/sensors"."""
    namespace, _, node = name.strip("/").rpartition("/")
    return f"/{namespace}", node


def encode_discovery_info(participant: bytes, node: str, writers: Sequence[bytes], gid_size: int) -> bytes:
    """Return the CDR of `rmw_dds_common/msg/ParticipantEntitiesInfo`: one node with writers, by their GUIDs."""
    data = bytearray(participant.ljust(gid_size, b"\0"))

    def add_length(length: int) -> None:
        data.extend(b"\0" * (-len(data) % 4) + struct.pack("<I", length))

    add_length(1)
    for text in split_node_name(node):
        raw = text.encode() + b"\0"
        add_length(len(raw))
        data.extend(raw)
    add_length(0)  # readers
    add_length(len(writers))
    for guid in writers:
        data.extend(guid.ljust(gid_size, b"\0"))
    return ENCAPSULATION + bytes(data)


def decode_discovery_info(data: bytes) -> dict[bytes, str]:
    """Return the GUIDs of writers, and the full name of the node of each, in a `ParticipantEntitiesInfo`.

    Raises `ValueError`.
    """
    for gid_size in (GID_SIZE, HUMBLE_GID_SIZE):
        names: dict[bytes, str] = {}
        with suppress(ValueError):
            reader = CdrReader(data)
            reader.skip(gid_size)
            for _ in range(reader.read_count()):
                node = f"{reader.read_string().rstrip('/')}/{reader.read_string()}"
                reader.skip(gid_size * reader.read_count())
                for _ in range(reader.read_count()):
                    reader.skip(gid_size)
                    names[data[reader.offset - gid_size :][:GID_SIZE]] = node
            reader.finish()
            return names
    raise ValueError(f"a message of {len(data)} bytes that is no {DISCOVERY_TOPIC}")

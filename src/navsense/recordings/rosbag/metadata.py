"""Metadata of a recording as a ROS 1 message, because ROS 1 bags have no metadata.

One latched `std_msgs/String` on `/navsense/recording` before all other messages: a JSON object with the metadata of an
MCAP recording and the JSON of the world (see `world_json`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from navsense.core import inputs
from navsense.core.errors import DamagedError

if TYPE_CHECKING:
    from rosbags.interfaces import Connection
    from rosbags.rosbag1 import Reader, Writer


METADATA_TOPIC = "/navsense/recording"
"""Topic of the message."""

TYPE, DEFINITION, MD5 = "std_msgs/msg/String", "string data", "992ce8a1687cec8c8bd883ec73ca41d1"
"""Type, definition and MD5 sum of the message."""

CALLER_ID = "/navsense"
"""Sender of the messages of navsense in a ROS 1 bag."""


class MetadataWriter:
    """Writes the metadata to an open bag, once."""

    def __init__(self, writer: Writer, metadata: Mapping[str, str]) -> None:
        """Add the connection before all others; empty metadata have none."""
        self._writer, self._text = writer, json.dumps(metadata, sort_keys=True).encode() if metadata else b""
        self._connection: Connection | None = None
        if metadata:
            extensions: Any = {"callerid": CALLER_ID, "latching": 1}
            self._connection = writer.add_connection(METADATA_TOPIC, TYPE, msgdef=DEFINITION, md5sum=MD5, **extensions)

    def write(self, time: int) -> None:
        """Write the metadata at the time (ns) of the first message, if not done."""
        if self._connection is not None:
            self._writer.write(self._connection, time, struct.pack("<I", len(self._text)) + self._text)
            self._connection = None


def is_metadata(connection: Connection) -> bool:
    """Return True for the connection of the metadata."""
    extensions: Any = connection.ext
    return (connection.topic, connection.msgtype, extensions.callerid) == (METADATA_TOPIC, TYPE, CALLER_ID)


def read_ros1_metadata(reader: Reader) -> dict[str, str]:
    """Return the metadata of an open bag; empty without. Raises `DamagedError`."""
    connections = [connection for connection in reader.connections if is_metadata(connection)]
    return parse_ros1_metadata(next((data for _, _, data in reader.messages(connections)), b"") if connections else b"")


def parse_ros1_metadata(data: bytes | memoryview) -> dict[str, str]:
    """Return the metadata in a message; empty for an empty message. Raises `DamagedError`."""
    if not data:
        return {}
    try:
        values = inputs.parse_json(bytes(data[4:]))
    except ValueError as error:
        raise DamagedError(f"its metadata cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise DamagedError("its metadata are not a JSON object")
    return {str(key): str(value) for key, value in values.items()}

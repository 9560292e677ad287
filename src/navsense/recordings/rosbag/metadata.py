"""What a recording says of itself as a message of ROS 1, whose bags have no other place for it.

One `std_msgs/String` on `/navsense/recording`, latched, before all others: a JSON object of the texts that an MCAP
recording has in its metadata, the world's JSON among them (see `world_json`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from navsense import inputs
from navsense.recordings.mcap.records import DamagedError

if TYPE_CHECKING:
    from rosbags.interfaces import Connection
    from rosbags.rosbag1 import Reader, Writer


METADATA_TOPIC = "/navsense/recording"
"""Where the message is."""

TYPE, DEFINITION, MD5 = "std_msgs/msg/String", "string data", "992ce8a1687cec8c8bd883ec73ca41d1"
"""Its type, and the sum by which programs of ROS 1 know it."""

CALLER_ID = "/navsense"
"""The node that a bag of ROS 1 says our messages are from."""


class MetadataWriter:
    """Writes what a recording says of itself to an open bag, once."""

    def __init__(self, writer: Writer, metadata: Mapping[str, str]) -> None:
        """Add the topic, before all others; where nothing is said there is none."""
        self._writer, self._text = writer, json.dumps(metadata, sort_keys=True).encode() if metadata else b""
        self._connection: Connection | None = None
        if metadata:
            more: Any = {"callerid": CALLER_ID, "latching": 1}
            self._connection = writer.add_connection(METADATA_TOPIC, TYPE, msgdef=DEFINITION, md5sum=MD5, **more)

    def write(self, time: int) -> None:
        """Write it, if that is not done, at the time (ns) of the first message."""
        if self._connection is not None:
            self._writer.write(self._connection, time, struct.pack("<I", len(self._text)) + self._text)
            self._connection = None


def is_metadata(connection: Connection) -> bool:
    """Tell whether a connection of a bag of ROS 1 is that of the message."""
    more: Any = connection.ext
    return (connection.topic, connection.msgtype, more.callerid) == (METADATA_TOPIC, TYPE, CALLER_ID)


def read_ros1_metadata(reader: Reader) -> dict[str, str]:
    """Return what an open bag says of itself, nothing where it does not. Raises `DamagedError`."""
    lines = [one for one in reader.connections if is_metadata(one)]
    return parse_metadata(next((data for _, _, data in reader.messages(lines)), b"") if lines else b"")


def parse_metadata(data: bytes | memoryview) -> dict[str, str]:
    """Return the metadata in a message; empty for an empty message. Raises `DamagedError`."""
    if not data:
        return {}
    try:
        found = inputs.parse_json(bytes(data[4:]))
    except ValueError as error:
        raise DamagedError(f"what it says of itself cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise DamagedError("what it says of itself is no JSON object")
    return {str(key): str(value) for key, value in found.items()}

"""Readers of ROS 1 and ROS 2 bags, by the package `rosbags`. `mcap.reader` reads the MCAP files of a ROS 2 bag."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from navsense.core import inputs
from navsense.core.errors import NavsenseError, RecordingError, Where
from navsense.recordings.base import find_damaged_file_remedy, open_for_reading
from navsense.recordings.channels import (
    ROS1,
    Channel,
    IndexedReader,
    MessageBatch,
    MessageCounts,
    RawMessage,
    batch_messages,
    join_counts,
)
from navsense.recordings.format import get_storage_path
from navsense.recordings.mcap.reader import McapReader
from navsense.recordings.rosbag.definitions import describe_error
from navsense.recordings.rosbag.limits import limit_rosbags
from navsense.recordings.rosbag.metadata import CALLER_ID, is_metadata, read_ros1_metadata
from navsense.recordings.rosbag.writer import BAG_METADATA_FILE, UNSUPPORTED_CHARACTERS

BAG = inputs.FileKind("bag", RecordingError, "must be a bag of ROS")


def check_bag(path: Path, kind: inputs.FileKind) -> None:
    """Check a ROS bag before rosbags opens it by name: a file, or a folder with its files.

    rosbags opens every file that metadata.yaml lists. Raises the kind's error as `inputs.check_regular_file` does.
    """
    inputs.add_input(path)
    is_folder = inputs.path_exists(path) and path.is_dir()
    try:
        inside = path.iterdir() if is_folder else (path,)
        files = [file for file in inside if file == path or (inputs.path_exists(file) and not file.is_dir())]
    except OSError as cause:
        text = inputs.error_text(cause)
        raise kind.error(kind.what, text, where=Where(str(path)), allowed=kind.allowed) from cause
    for file in files:
        inputs.check_regular_file(str(file), kind, inputs.MAX_METADATA if file.name == BAG_METADATA_FILE else None)
        if file.suffix == ".db3" and (characters := set(UNSUPPORTED_CHARACTERS) & set(str(file))):
            allowed = f"the path of a .db3 bag must not have {' '.join(UNSUPPORTED_CHARACTERS)}"
            value = " ".join(sorted(characters))
            raise kind.error(kind.what, value, where=Where(str(file)), allowed=allowed, remedy="rename it")


BAG_START = b"#ROSBAG"
"""First bytes of a ROS 1 bag of any version."""


@contextmanager
def open_bag(path: Path) -> Iterator[IndexedReader]:
    """Yield a reader of a bag. Errors of rosbags become a `RecordingError`."""
    from rosbags.rosbag1 import Reader as Ros1Reader
    from rosbags.rosbag2 import Reader

    is_ros1 = path.suffix.lower() == ".bag" and not path.is_dir()
    folder = path if is_ros1 else find_ros2_bag_folder(path)
    if folder.is_dir() and not (folder / BAG_METADATA_FILE).is_file():
        remedy = f"name the folder that holds {BAG_METADATA_FILE}, or a file"
        raise RecordingError("is not a ROS 2 bag", where=Where(str(path)), remedy=remedy)
    inputs.add_input(folder)
    if not folder.is_dir():
        open_for_reading(folder).close()
    check_bag(folder, BAG)
    if is_ros1:
        with open_for_reading(path) as file:
            if file.read(len(BAG_START)) != BAG_START:
                allowed, remedy = f"must start with {BAG_START.decode()}", "copy it again, or name another file"
                raise RecordingError("is not a ROS 1 bag", where=Where(str(path)), allowed=allowed, remedy=remedy)
    remedy = find_damaged_file_remedy(path) if is_ros1 else "copy it again: a damaged bag of ROS 2 cannot be recovered"
    with limit_rosbags():
        with map_bag_errors(path, remedy):
            reader: Any = Ros1Reader(path) if is_ros1 else Reader(folder)
            reader.open()
        try:
            parts = [] if is_ros1 else _list_mcap_files(reader)
            if parts:
                with ExitStack() as stack:
                    files = [stack.enter_context(open_for_reading(part)) for part in parts]
                    readers = [McapReader(part, file) for part, file in zip(parts, files, strict=True)]
                    yield SplitBagReader(folder, readers, _read_custom_data(reader))
            else:
                yield RosbagsReader(path, folder, reader, is_ros1, remedy)
        finally:
            reader.close()


def _read_custom_data(reader: Any) -> dict[str, str]:
    """Return the metadata that navsense wrote into the metadata file of a ROS 2 bag; empty without."""
    custom: Mapping[str, Any] = reader.storage.metadata.custom or {}
    return {key: str(value) for key, value in custom.items()} if "world" in custom else {}


@dataclass(eq=False)
class RosbagsReader:
    """A bag that rosbags reads. `path` is the name in errors, `folder` the bag, `remedy` what an error recommends."""

    path: Path
    folder: Path
    reader: Any
    is_ros1: bool
    remedy: str = ""

    def __post_init__(self) -> None:
        """Read the connections and the metadata."""
        self.where = Where(str(self.folder))
        connections = list(self.reader.connections)
        self.metadata = {} if self.is_ros1 else _read_custom_data(self.reader)
        self.is_navsense = bool(self.metadata)
        if self.is_ros1 and {connection.ext.callerid for connection in connections} == {CALLER_ID}:
            with map_bag_errors(self.folder):
                self.metadata = read_ros1_metadata(self.reader)
            self.is_navsense = True
            connections = [connection for connection in connections if not is_metadata(connection)]
        self._connections = connections
        self._channels = {connection.id: self._make_channel(connection) for connection in connections}
        self.channels = list(dict.fromkeys(self._channels.values()))

    def _make_channel(self, connection: Any) -> Channel:
        """Return the channel of a connection."""
        schema_encoding = {"MSG": "ros2msg", "IDL": "ros2idl"}.get(connection.msgdef.format.name, "")
        text = connection.msgdef.data.encode()
        if self.is_ros1:
            return Channel(connection.topic, connection.msgtype, ROS1, text, "ros1msg", bool(connection.ext.latching))
        profiles = connection.ext.offered_qos_profiles
        latched = any(profile.durability.name == "TRANSIENT_LOCAL" for profile in profiles)
        encoding = connection.ext.serialization_format
        return Channel(
            connection.topic, connection.msgtype, encoding, text, schema_encoding, latched, _format_qos(profiles)
        )

    def count_messages(self) -> MessageCounts:
        """Return the counts in the index of the bag."""
        counts: dict[tuple[str, str], int] = {}
        with map_bag_errors(self.path, self.remedy):
            for connection in self._connections:
                key = connection.topic, connection.msgtype
                counts[key] = counts.get(key, 0) + connection.msgcount
            if self.reader.message_count:
                return MessageCounts(counts, self.reader.start_time, self.reader.end_time - 1)
        return MessageCounts(counts)

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in order of arrival."""
        return self._read(self._connections)

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics in batches of bounded size; those of one topic are in order of log time."""
        return batch_messages(
            self._read([connection for connection in self._connections if connection.topic in topics]), topics
        )

    def _read(self, connections: list[Any]) -> Iterator[RawMessage]:
        """Yield the messages of some connections."""
        if connections:
            with map_bag_errors(self.path, self.remedy):
                for connection, time, data in self.reader.messages(connections=connections):
                    yield RawMessage(self._channels[connection.id], time, time, bytes(data))


def _format_qos(profiles: list[Any]) -> str:
    """Return QoS profiles as ROS 2 writes them."""
    from rosbags.rosbag2.metadata import dump_qos_v8

    return str(dump_qos_v8(profiles)) if profiles else ""


@dataclass(eq=False)
class SplitBagReader:
    """Reader of a ROS 2 bag of several MCAP files, one after the other."""

    path: Path
    readers: list[McapReader]
    metadata: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Join the channels and the metadata of the files."""
        self.where = Where(str(self.path))
        self.channels = list(dict.fromkeys(chain.from_iterable(reader.channels for reader in self.readers)))
        if not self.metadata:
            self.metadata = {key: value for reader in self.readers for key, value in reader.metadata.items()}
        self.is_navsense = bool(self.metadata)

    def count_messages(self) -> MessageCounts:
        """Return the counts in the summaries of the files."""
        return join_counts(reader.count_messages() for reader in self.readers)

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages of all files."""
        return chain.from_iterable(reader.read_messages() for reader in self.readers)

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics, file by file, in batches of bounded size."""
        return chain.from_iterable(reader.read_batches(topics) for reader in self.readers)


@contextmanager
def map_bag_errors(path: Path, remedy: str = "") -> Iterator[None]:
    """Raise errors of rosbags about a damaged bag as `RecordingError`."""
    try:
        yield
    except NavsenseError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise
        reason = describe_error(error).replace(f"{path}/", "").rstrip(".")
        allowed = "" if path.suffix.lower() == ".bag" else "must be a complete bag of ROS 2"
        what = f"cannot be read: {reason}"
        raise RecordingError(what, allowed=allowed, where=Where(str(path)), remedy=remedy) from error


def _list_mcap_files(reader: Any) -> list[Path]:
    """Return the MCAP files of an uncompressed ROS 2 bag; empty for another storage."""
    from rosbags.rosbag2.reader import DirectoryReader

    if not isinstance(reader.storage, DirectoryReader) or reader.storage.metadata.compression_mode:
        return []
    parts: list[Any] = list(reader.storage.storages)
    paths = [Path(part.path) for part in parts]
    return paths if all(path.suffix == ".mcap" for path in paths) else []


def find_ros2_bag_folder(path: Path) -> Path:
    """Return the folder of a ROS 2 bag that may be named by its file; the path itself for other recordings."""
    if path.suffix.lower() == ".db3":
        if path.stem == path.absolute().parent.name and (path.parent / BAG_METADATA_FILE).is_file():
            return path.parent
        if not path.exists() and (get_storage_path(path) / BAG_METADATA_FILE).is_file():
            return get_storage_path(path)
    return path

"""ROS bags as rosbags reads them: bags of ROS 1 and of ROS 2; of MCAP files in a ROS 2 bag the own reader."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from navsense import inputs, outputs
from navsense.errors import NavsenseError, RecordingError, Where
from navsense.recordings.base import open_for_reading, storage_path
from navsense.recordings.channels import (
    DEFAULT_WORLD_NAME,
    ROS1,
    MessageBatch,
    MessageChannel,
    MessageReader,
    RawMessage,
    batch_messages,
)
from navsense.recordings.mcap.reader import (
    McapReader,
)
from navsense.recordings.rosbag.metadata import CALLER_ID, is_metadata, read_ros1_metadata
from navsense.recordings.rosbag.writer import BAG_METADATA_FILE

BAG = inputs.FileKind("bag", RecordingError, "must be a bag of ROS")


@contextmanager
def _open_bag(path: Path) -> Iterator[MessageReader]:
    """Yield a bag. What rosbags says of a damaged one becomes a `RecordingError`; what comes from outside stays."""
    from rosbags.rosbag1 import Reader as OldReader
    from rosbags.rosbag2 import Reader

    old = path.suffix.lower() == ".bag" and not path.is_dir()
    folder = path if old else ros2_bag_folder(path)
    if folder.is_dir() and not (folder / BAG_METADATA_FILE).is_file():
        remedy = f"name the folder that holds {BAG_METADATA_FILE}, or a file"
        raise RecordingError("is a directory, and no bag of ROS 2", where=Where(str(path)), remedy=remedy)
    inputs.add_input(folder)
    if not folder.is_dir():
        open_for_reading(folder).close()
    inputs.check_bag(folder, BAG)
    remedy = outputs.recovery_remedy(path) if old else ""
    with map_bag_errors(path, remedy):
        reader: Any = OldReader(path) if old else Reader(folder)
        reader.open()
    try:
        parts = [] if old else _list_mcap_files(reader)
        if parts:
            with ExitStack() as stack:
                files = [stack.enter_context(open_for_reading(part)) for part in parts]
                yield SplitBagReader(folder, [McapReader(part, file) for part, file in zip(parts, files, strict=True)])
        else:
            yield ErrorMappingReader(RosbagsReader(folder, reader, old), path, remedy)
    finally:
        reader.close()


@dataclass(eq=False)
class RosbagsReader:
    """A bag that rosbags reads: `old` one of ROS 1."""

    path: Path
    reader: Any
    is_ros1: bool

    def __post_init__(self) -> None:
        """Read what the bag says of its contents."""
        self.where = Where(str(self.path))
        connections = list(self.reader.connections)
        custom: Mapping[str, Any] = {} if self.is_ros1 else self.reader.storage.metadata.custom or {}
        self.metadata = {key: str(value) for key, value in custom.items()} if "world" in custom else {}
        if self.is_ros1 and {one.ext.callerid for one in connections} == {CALLER_ID}:
            with map_bag_errors(self.path):
                self.metadata = read_ros1_metadata(self.reader) or {"world": DEFAULT_WORLD_NAME}
            connections = [one for one in connections if not is_metadata(one)]
        self._channels = {connection.id: self._make_channel(connection) for connection in connections}
        self.channels = list(dict.fromkeys(self._channels.values()))
        self.is_navsense = bool(self.metadata)

    def _make_channel(self, connection: Any) -> MessageChannel:
        """Return the topic of a connection."""
        form = {"MSG": "ros2msg", "IDL": "ros2idl"}.get(connection.msgdef.format.name, "")
        text = connection.msgdef.data.encode()
        if self.is_ros1:
            return MessageChannel(
                connection.topic, connection.msgtype, ROS1, text, "ros1msg", bool(connection.ext.latching)
            )
        profiles = connection.ext.offered_qos_profiles
        latched = any(one.durability.name == "TRANSIENT_LOCAL" for one in profiles)
        quality = _format_qos(profiles)
        return MessageChannel(
            connection.topic, connection.msgtype, connection.ext.serialization_format, text, form, latched, quality
        )

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in order of arrival."""
        for connection, time, data in self.reader.messages():
            if connection.id not in self._channels:
                continue
            yield RawMessage(self._channels[connection.id], time, time, bytes(data))


def _format_qos(profiles: list[Any]) -> str:
    """Return qualities of service as ROS 2 notes them."""
    from rosbags.rosbag2.metadata import dump_qos_v8

    return str(dump_qos_v8(profiles)) if profiles else ""


@dataclass(eq=False)
class SplitBagReader:
    """The MCAP files of one bag of ROS 2, one after the other."""

    path: Path
    readers: list[McapReader]
    metadata: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Join what the files say."""
        self.where = Where(str(self.path))
        self.channels = list(dict.fromkeys(chain.from_iterable(part.channels for part in self.readers)))
        for part in self.readers:
            self.metadata |= part.metadata
        self.is_navsense = bool(self.metadata)

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages of all files."""
        return chain.from_iterable(part.read_messages() for part in self.readers)

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics, file by file, in batches of bounded size."""
        return chain.from_iterable(part.read_batches(topics) for part in self.readers)


@dataclass(eq=False)
class ErrorMappingReader:
    """A bag whose reader's errors are ours."""

    reader: RosbagsReader
    path: Path
    remedy: str

    def __post_init__(self) -> None:
        """Say what the bag says."""
        self.where, self.channels, self.metadata = self.reader.where, self.reader.channels, self.reader.metadata
        self.is_navsense = self.reader.is_navsense

    def read_messages(self) -> Iterator[RawMessage]:
        """Yield the messages in order of arrival."""
        found = self.reader.read_messages()
        while True:
            with map_bag_errors(self.path, self.remedy):
                item = next(found, None)
            if item is None:
                return
            yield item

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        """Yield the messages of some topics in order of arrival, in batches of bounded size."""
        return batch_messages(self.read_messages(), topics)


@contextmanager
def map_bag_errors(path: Path, remedy: str = "") -> Iterator[None]:
    """Make whatever rosbags says of a damaged bag a `RecordingError`."""
    try:
        yield
    except NavsenseError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise
        raise RecordingError(f"is no bag that can be read: {error}", where=Where(str(path)), remedy=remedy) from error


def _list_mcap_files(reader: Any) -> list[Path]:
    """Return the MCAP files of a bag of ROS 2 that are as they were written; none where it has others."""
    from rosbags.rosbag2.reader import DirectoryReader

    if not isinstance(reader.storage, DirectoryReader) or reader.storage.metadata.compression_mode:
        return []
    parts: list[Any] = list(reader.storage.storages)
    paths = [Path(part.path) for part in parts]
    return paths if all(path.suffix == ".mcap" for path in paths) else []


def is_ros2_bag(path: Path) -> bool:
    """Tell whether a path is a bag of ROS 2: its folder, the file in it, or the name that it was recorded by."""
    return (ros2_bag_folder(path) / BAG_METADATA_FILE).is_file()


def ros2_bag_folder(path: Path) -> Path:
    """Return the folder of a bag of ROS 2 that may be named by a file; the path itself where there is none."""
    if path.suffix.lower() == ".db3":
        if path.stem == path.absolute().parent.name and (path.parent / BAG_METADATA_FILE).is_file():
            return path.parent
        if not path.exists() and (storage_path(path) / BAG_METADATA_FILE).is_file():
            return storage_path(path)
    return path

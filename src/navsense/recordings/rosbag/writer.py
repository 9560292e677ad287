"""Writers of ROS bags, by rosbags: a `.bag` of ROS 1, and a folder with a `.db3` or `.mcap`, which is a ROS 2 bag.

Topics and messages are those of an MCAP recording. A bag stores one time per message, the log time. The definitions are
in the bag, and so is the metadata, in ROS 1 as a message (see `metadata`). An incomplete bag is in a hidden folder
next to the target. If a write fails, the folder remains for `navsense recover`.
"""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from navsense.core import atomic
from navsense.core.atomic import HiddenFolder
from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice
from navsense.core.typing import ByteArray
from navsense.messages.base import NANOSECONDS_PER_SECOND, TRUE_TIME
from navsense.messages.cdr import encode
from navsense.messages.ros1 import Ros1Packing, make_ros1_packing
from navsense.messages.schemas import HEADER_TYPE, HUMBLE
from navsense.recordings.base import (
    AtomicWriter,
    PendingRecording,
    check_output_file,
    check_recorded_run,
    format_rescue,
    make_os_error,
)
from navsense.recordings.channels import CDR, ROS1, Channel, MessageReader, RawMessage, make_copy_metadata
from navsense.recordings.format import get_storage_path
from navsense.recordings.info import ROS_KEY, RecordedRun
from navsense.recordings.mcap.writer import LATCHED_QOS_PROFILE, McapCopy, make_mcap_metadata
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.recordings.rosbag.metadata import CALLER_ID, MetadataWriter

if TYPE_CHECKING:
    import sqlite3

    from rosbags.interfaces import Connection, Qos
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import Writer as Writer2

BAG_METADATA_FILE = "metadata.yaml"
"""File that makes a folder a ROS 2 bag."""

PENDING_METADATA_FILE = "about.json"
"""File in the hidden folder with the metadata of a ROS 2 bag; the database has it only at the end."""

BAG_VERSION: Literal[8] = 8
"""Version of a ROS 2 bag: the newest in which QoS policies are numbers, as in all versions before."""

UNSUPPORTED_CHARACTERS = "%?#"
"""Characters that rosbags passes to SQLite unquoted; SQLite gives them another meaning in a file name."""

ROS1_TIME_LIMIT = 2**32 * NANOSECONDS_PER_SECOND
"""ns; times in a ROS 1 bag are below."""

ROS2_TIME_LIMIT = 2**63
"""ns; times in a ROS 2 bag are below."""


@cache
def compute_type_hash(message_type: str, definition: str, ros_version: int) -> str:
    """Return the hash that identifies a type: the MD5 sum in ROS 1, the RIHS01 hash in ROS 2."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(definition, message_type))
    return (
        store.generate_msgdef(message_type, ros_version=1)[1] if ros_version == 1 else store.hash_rihs01(message_type)
    )


def make_negative_stamp_error(path: Path, clock: str, stamp: int) -> RecordingError:
    """Return the error of a stamp (ns) below 0."""
    remedy = "choose a later --epoch"
    return RecordingError(
        f"stamp of clock {clock!r}, in seconds",
        stamp / NANOSECONDS_PER_SECOND,
        allowed="must not be below 0 in a bag of ROS 1",
        where=Where(str(path)),
        remedy=remedy if clock == TRUE_TIME else "choose a later --epoch, or a smaller clock error",
    )


@contextlib.contextmanager
def map_sqlite_errors() -> Iterator[None]:
    """Raise errors of SQLite about the disk as errors of the operating system."""
    import sqlite3

    causes = {
        sqlite3.SQLITE_FULL: errno.ENOSPC,
        sqlite3.SQLITE_READONLY: errno.EROFS,
        sqlite3.SQLITE_CANTOPEN: errno.EACCES,
        sqlite3.SQLITE_IOERR: errno.EIO,
    }
    try:
        yield
    except sqlite3.Error as error:
        cause = causes.get(vars(error).get("sqlite_errorcode", 0) & 0xFF)
        raise OSError(cause, str(error)) if cause else OSError(str(error)) from error


def _make_ros1_writer(path: Path) -> Writer1:
    from rosbags.rosbag1 import Writer

    return Writer(path)


def _make_ros2_writer(path: Path) -> Writer2:
    import sqlite3

    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer

    class ClosingSqlite3Writer(Sqlite3Writer):
        """Closes the database if its tables cannot be made; the base class leaves it open."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            try:
                super().__init__(*args, **kwargs)
            except sqlite3.Error:
                with contextlib.suppress(AttributeError):
                    self.conn.close()
                raise

    writer = Writer(path, version=BAG_VERSION, storage_plugin=StoragePlugin.SQLITE3)
    writer.STORAGE_PLUGINS = {StoragePlugin.SQLITE3: ClosingSqlite3Writer}
    return writer


def _parse_qos(profiles: str) -> Sequence[Qos]:
    from rosbags.rosbag2.metadata import parse_qos

    return parse_qos(profiles)


class Ros1Bag:
    """A ROS 1 bag, format 2.0. `start` (ns) is the time of the metadata in a bag without messages."""

    def __init__(
        self, path: Path, metadata: Mapping[str, str], *, start: int, caller_id: str | None = CALLER_ID
    ) -> None:
        """Make the writer; `open` creates the file."""
        self.path = path
        self._metadata, self._start, self._caller_id = metadata, start, caller_id
        self._writer = _make_ros1_writer(path)
        self._first_open_chunk = 0

    def open(self) -> None:
        """Create the file."""
        self._writer.open()
        self._metadata_writer = MetadataWriter(self._writer, self._metadata)

    def add_connection(
        self, topic: str, message_type: str, definition: str, type_hash: str, *, latched: bool, qos_profiles: str = ""
    ) -> Connection:
        """Return a new connection; ROS 1 has no `qos_profiles`."""
        latching = 1 if latched else None
        return self._writer.add_connection(
            topic, message_type, msgdef=definition, md5sum=type_hash, callerid=self._caller_id, latching=latching
        )

    def write(self, messages: Iterable[tuple[int, Connection, bytes]]) -> None:
        """Write messages; readers reject the log time 0, so 0 becomes 1 ns."""
        for time, connection, data in messages:
            self._metadata_writer.write(max(time, 1))
            self._writer.write(connection, max(time, 1), data)
        if self._writer.bio is not None:
            self._writer.bio.flush()
        # rosbags keeps each message of each chunk in memory; the index of a written chunk needs only their number.
        for chunk in self._writer.chunks[self._first_open_chunk : -1]:
            for number, entries in chunk.connections.items():
                chunk.connections[number] = cast("Any", range(len(entries)))
        self._first_open_chunk = len(self._writer.chunks) - 1

    @property
    def is_recoverable(self) -> bool:
        """True if the file has a complete chunk."""
        return self._first_open_chunk > 0

    def close(self) -> None:
        """Finish the file."""
        self._metadata_writer.write(max(self._start, 1))
        self._writer.close()

    def abort(self) -> None:
        """Close the file."""
        self._writer.abort()


class Ros2Bag:
    """A ROS 2 bag: a folder with the messages in one `.db3`.

    With `is_recoverable` each `write` is a transaction, and a file next to the bag has the metadata. So a bag can
    be recovered after a crash.
    """

    def __init__(self, path: Path, metadata: Mapping[str, str], *, is_recoverable: bool = False) -> None:
        """Make the writer; `open` creates the folder."""
        self.path, self.is_recoverable = path, is_recoverable
        self._writer = _make_ros2_writer(path)
        for key, value in metadata.items():
            self._writer.set_custom_data(key, value)

    @property
    def _database(self) -> sqlite3.Connection:
        """The open database."""
        return cast("sqlite3.Connection", cast("Any", self._writer.storage).conn)

    def open(self) -> None:
        """Create the folder and the database."""
        with map_sqlite_errors():
            self._writer.open()
            if self.is_recoverable:
                # A transaction survives a crash of the process. This does not wait for the disk.
                self._database.execute("PRAGMA synchronous=OFF")
        if self.is_recoverable:
            atomic.save_text(self.path.parent / PENDING_METADATA_FILE, json.dumps(self._writer.custom_data))

    def add_connection(
        self, topic: str, message_type: str, definition: str, type_hash: str, *, latched: bool, qos_profiles: str = ""
    ) -> Connection:
        """Return a new connection; without `qos_profiles` those of a latched topic if `latched`."""
        profiles = qos_profiles or (LATCHED_QOS_PROFILE if latched else "")
        with map_sqlite_errors():
            return self._writer.add_connection(
                topic,
                message_type,
                msgdef=definition,
                rihs01=type_hash,
                offered_qos_profiles=_parse_qos(profiles) if profiles else (),
            )

    def write(self, messages: Iterable[tuple[int, Connection, bytes]]) -> None:
        """Write messages."""
        with map_sqlite_errors():
            for time, connection, data in messages:
                self._writer.write(connection, time, data)
            if self.is_recoverable:
                self._database.commit()

    def close(self) -> None:
        """Finish the database and write the metadata file."""
        with map_sqlite_errors():
            self._writer.close()

    def abort(self) -> None:
        """Close the database."""
        self._writer.abort()


def get_database_path(path: Path) -> Path:
    """Return the database of a recording `NAME.db3`: NAME/NAME.db3."""
    folder = get_storage_path(path)
    return folder / f"{folder.name}.db3"


def check_database_path(path: Path) -> None:
    """Raise `RecordingError` if a ROS 2 bag with SQLite cannot have the path `NAME.db3`."""
    if any(letter in str(path) for letter in UNSUPPORTED_CHARACTERS):
        allowed = f"must be without {' '.join(UNSUPPORTED_CHARACTERS)}, in which SQLite sees no name"
        raise RecordingError(
            "name of a bag of ROS 2", str(path), allowed=allowed, remedy="choose another name or place"
        )
    check_bag_folder(path, get_database_path(path))


def check_bag_folder(path: Path, data_file: Path) -> None:
    """Raise `RecordingError` if the folder of a ROS 2 bag exists and has other content than such a bag."""
    folder, files = data_file.parent, (BAG_METADATA_FILE, data_file.name)
    try:
        if not folder.exists() and not folder.is_symlink():
            return
        if folder.is_dir() and {file.name for file in folder.iterdir()} <= set(files):
            return
    except OSError as error:
        raise make_os_error(path, error) from error
    raise RecordingError(
        "the bag is the folder of this name, which is something else",
        str(folder),
        allowed=f"an existing folder must contain only {' and '.join(files)}",
        where=Where(str(path)),
        remedy="choose another name, or move away what is there",
    )


class PendingBag(PendingRecording):
    """The bag of a run while it is written. Its methods are called from one thread, one after the other."""

    def __init__(self, path: Path, recorded_run: RecordedRun, *, is_ros1: bool) -> None:
        """Create the hidden folder and the bag in it, with the static transforms."""
        self.path, self._is_ros1 = path, is_ros1
        self._builder = MessageBuilder(recorded_run)
        self._connections: dict[str, Connection] = {}
        self._packings: dict[OutputChannel, Ros1Packing] = {}
        self._counts: dict[str, int] = {}
        self._work = HiddenFolder(get_storage_path(path), is_recording=True)
        try:
            metadata, file = make_mcap_metadata(recorded_run), self._work.folder / get_storage_path(path).name
            start = recorded_run.epoch * NANOSECONDS_PER_SECOND
            self._bag: Ros1Bag | Ros2Bag = (
                Ros1Bag(file, metadata, start=start) if is_ros1 else Ros2Bag(file, metadata, is_recoverable=True)
            )
            self._bag.open()
            for channel in self._builder.list_measured_channels():
                self._get_connection(channel)
            self._write(self._builder.build_static_transforms())
        except BaseException:
            self.discard()
            raise

    def _get_connection(self, channel: OutputChannel) -> Connection:
        """Return the connection of a topic, made at its first use."""
        if channel.topic not in self._connections:
            message_type = channel.encoder.type
            definition = self._get_packing(channel).definition if self._is_ros1 else channel.encoder.schema
            hash_text = compute_type_hash(message_type, definition, 1 if self._is_ros1 else 2)
            self._connections[channel.topic] = self._bag.add_connection(
                channel.topic, message_type, definition, hash_text, latched=channel.latched
            )
        return self._connections[channel.topic]

    def _get_packing(self, channel: OutputChannel) -> Ros1Packing:
        if channel not in self._packings:
            self._packings[channel] = make_ros1_packing(channel.encoder)
        return self._packings[channel]

    def _encode(self, block: MessageBlock, first: int) -> ByteArray:
        """Return the messages (n, size) of a block, in ROS 1 numbered from `first`.

        Raises `RecordingError` for a stamp below 0 in ROS 1.
        """
        if self._is_ros1 and (earliest := int(block.stamp.min())) < 0:
            raise make_negative_stamp_error(self.path, block.channel.clock, earliest)
        messages = encode(block.channel.encoder, block.stamp, block.arrays)
        return self._get_packing(block.channel).pack(messages, first) if self._is_ros1 else messages

    def write(self, time_slice: TimeSlice) -> None:
        """Write a time slice, or nothing of it if a stamp does not fit into a message."""
        self.append(time_slice)
        self.has_content = True

    def append(self, time_slice: TimeSlice) -> None:
        """Append a time slice."""
        self._write(self._builder.build_blocks(time_slice))

    def _write(self, blocks: list[MessageBlock]) -> None:
        """Write blocks, their messages in order of arrival. A failure of the disk closes the bag."""
        messages: list[tuple[int, OutputChannel, bytes]] = []
        counts = dict(self._counts)
        for block in blocks:
            if not block.publish_time.size:
                continue
            first = counts.setdefault(block.channel.topic, 0)
            rows = self._encode(block, first)
            counts[block.channel.topic] += rows.shape[0]
            data, width = rows.tobytes(), rows.shape[1]
            records = (data[offset : offset + width] for offset in range(0, len(data), width))
            messages += zip(block.log_time.tolist(), [block.channel] * rows.shape[0], records, strict=True)
        messages.sort(key=itemgetter(0))
        try:
            for block in blocks:
                self._get_connection(block.channel)
            self._bag.write([(time, self._connections[channel.topic], data) for time, channel, data in messages])
        except BaseException:
            self.keep()
            raise
        self._counts = counts

    def complete(self) -> None:
        """Finish the bag and move it to its path."""
        self._bag.close()
        if not self._is_ros1:
            check_database_path(self.path)
        self._work.commit(self._bag.path)

    def keep_content(self) -> str:
        """Keep the complete chunks or transactions for `navsense recover`. Never raises."""
        with contextlib.suppress(Exception):
            self._bag.abort()
        if not self._bag.is_recoverable:
            return ""
        self._work.keep()
        return format_rescue(self.path)

    def release(self) -> None:
        """Remove an unfinished bag. Never raises."""
        with contextlib.suppress(Exception):
            self._bag.abort()
        self._work.release()


def check_clocks(path: Path, recorded_run: RecordedRun) -> None:
    """Raise `RecordingError` if the first stamp of a sensor is below 0 because of the constant error of its clock."""
    clocks = {clock.name: clock for clock in recorded_run.world.clocks}
    for clock in (clocks[sensor.clock] for sensor in recorded_run.world.sensors if sensor.clock in clocks):
        noise, steps = clock.noise, sum(step.size for step in clock.steps if step.start <= 0.0 < step.end)
        error = noise.mean + noise.bias_mean + steps + (clock.oscillator.offset if clock.oscillator else 0.0)
        is_known = clock.discipline is None and noise.stddev == noise.bias_stddev == 0.0
        if is_known and recorded_run.epoch + error < 0.0:
            raise make_negative_stamp_error(
                path, clock.name, round((recorded_run.epoch + error) * NANOSECONDS_PER_SECOND)
            )


def open_ros1_writer(path: Path, recorded_run: RecordedRun) -> AtomicWriter:
    """Open one `.bag` of ROS 1 for writing. Raises `RecordingError` if that fails."""
    check_recorded_run(path, recorded_run, "a ROS bag")
    check_clocks(path, recorded_run)
    humble = replace(recorded_run, ros=HUMBLE)  # ROS 1 has the same definitions
    return AtomicWriter(path, lambda: PendingBag(path, humble, is_ros1=True))


def open_ros2_writer(path: Path, recorded_run: RecordedRun) -> AtomicWriter:
    """Open one bag of ROS 2, the folder `NAME` for the path `NAME.db3`. Raises `RecordingError` if that fails."""
    check_recorded_run(path, recorded_run, "a ROS bag")
    return AtomicWriter(path, lambda: PendingBag(path, recorded_run, is_ros1=False))


def find_encoding_obstacle(channel: Channel) -> str:
    """Return the reason why no bag holds the messages of a channel; "" for messages of ROS."""
    return "" if channel.is_ros else f"no bag of ROS holds messages in {channel.encoding or 'this encoding'}"


class BagCopy:
    """The bag that messages of another recording are copied to, of ROS 1 or of ROS 2 in SQLite."""

    has_publish_times = False

    def __init__(self, folder: Path, target: Path, reader: MessageReader, *, is_ros1: bool) -> None:
        """Create the bag in the hidden folder, with the name of the target."""
        self.encoding = ROS1 if is_ros1 else CDR
        self.output = folder / get_storage_path(target).name
        self._is_ros1, self._target = is_ros1, target
        self._connections: dict[Channel, Connection] = {}
        self._known: dict[tuple[str, str], Connection] = {}
        metadata = make_copy_metadata(reader)
        if is_ros1 and ROS_KEY in metadata:
            metadata = {**metadata, ROS_KEY: HUMBLE}
        caller_id = CALLER_ID if reader.is_navsense else None
        self._bag: Ros1Bag | Ros2Bag = (
            Ros1Bag(self.output, metadata, start=NANOSECONDS_PER_SECOND, caller_id=caller_id)
            if is_ros1
            else Ros2Bag(self.output, metadata)
        )
        self._bag.open()

    def find_obstacle(self, channel: Channel) -> str:
        """Return the reason why the bag cannot hold a channel; "" if it can."""
        if self._is_ros1 and channel.is_ros and not channel.topic:
            return "no bag of ROS 1 can be read that has a topic without a name"
        return find_encoding_obstacle(channel) or channel.definition_problem

    def add_channel(self, channel: Channel) -> None:
        """Add a connection; topics that differ only in their sender share one."""
        if channel in self._connections:
            return
        message_type = channel.parse_type()
        hash_text = message_type.md5 if self._is_ros1 else message_type.rihs01
        key = (channel.topic, hash_text)
        if key not in self._known:
            text = message_type.ros1_text if self._is_ros1 else message_type.ros2_text
            if channel.encoding == ROS1 if self._is_ros1 else channel.schema_encoding == "ros2msg":
                text = channel.definition.decode(errors="replace")
            self._known[key] = self._bag.add_connection(
                channel.topic, channel.type, text, hash_text, latched=channel.latched, qos_profiles=channel.qos_profiles
            )
        self._connections[channel] = self._known[key]

    def write(self, batch: Sequence[RawMessage]) -> None:
        """Write messages."""
        self._bag.write(self._check(batch))

    def _check(self, batch: Sequence[RawMessage]) -> Iterator[tuple[int, Connection, bytes]]:
        """Yield messages with times that the bag supports."""
        for message in batch:
            check_time(self._target, message, ROS1_TIME_LIMIT if self._is_ros1 else ROS2_TIME_LIMIT)
            if self._is_ros1:
                self._check_stamp(message)
            yield message.log_time, self._connections[message.channel], message.data

    def _check_stamp(self, message: RawMessage) -> None:
        """Raise `RecordingError` for a time below 0, which ROS 1 does not support."""
        channel, log_time, _, data = message
        if log_time < 0:
            raise make_negative_stamp_error(self._target, TRUE_TIME, log_time)
        members = channel.parse_type().definitions[channel.type]
        if channel.encoding != ROS1 and members and members[0].type == HEADER_TYPE and data[7] & 0x80:
            raise make_negative_stamp_error(
                self._target,
                f"of {channel.topic}",
                int.from_bytes(data[4:8], "little", signed=True) * NANOSECONDS_PER_SECOND,
            )

    def close(self) -> None:
        """Finish the bag."""
        self._bag.close()
        if not self._is_ros1:
            check_database_path(self._target)

    def abort(self) -> None:
        """Close the bag; never raises."""
        with contextlib.suppress(Exception):
            self._bag.abort()


class McapBagCopy:
    """A ROS 2 bag with one MCAP file, as `ros2 bag record -o NAME` writes it."""

    encoding, has_publish_times = CDR, True

    def __init__(self, folder: Path, target: Path, reader: MessageReader) -> None:
        """Create the folder in the hidden folder."""
        self.output, self._target = folder / target.name, target
        self.output.mkdir()
        self._file = get_mcap_path(target).name
        self._mcap = McapCopy(self.output, self.output / self._file, reader)
        self._counts: dict[Channel, int] = {}
        self._span: tuple[int, int] | None = None

    def find_obstacle(self, channel: Channel) -> str:
        """Return the reason why the bag cannot hold a channel; "" if it can."""
        return find_encoding_obstacle(channel)

    def add_channel(self, channel: Channel) -> None:
        """Add a channel."""
        self._mcap.add_channel(channel)
        self._counts.setdefault(channel, 0)

    def write(self, batch: Sequence[RawMessage]) -> None:
        """Write messages, and update their counts and times."""
        for message in batch:
            check_time(self._target, message)
            self._counts[message.channel] += 1
            first, last = self._span or (message.log_time, message.log_time)
            self._span = (min(first, message.log_time), max(last, message.log_time))
        self._mcap.write(batch)

    def close(self) -> None:
        """Finish the file and write the metadata."""
        self._mcap.close()
        first, last = self._span or (0, 0)
        text = format_bag_metadata(self._file, self._counts, first, last)
        (self.output / BAG_METADATA_FILE).write_text(text, encoding="utf-8")
        check_bag_folder(self._target, get_mcap_path(self._target))

    def abort(self) -> None:
        """Close the file."""
        self._mcap.abort()


def check_time(target: Path, message: RawMessage, limit: int = ROS2_TIME_LIMIT) -> None:
    """Raise `RecordingError` for a log time (ns) that a bag cannot hold: `limit` or later."""
    if message.log_time >= limit:
        ros = "ROS 1" if limit == ROS1_TIME_LIMIT else "ROS 2"
        seconds, nanoseconds = divmod(limit, NANOSECONDS_PER_SECOND)
        fraction = f".{nanoseconds:09d}" if nanoseconds else ""
        allowed = f"must be below {seconds}{fraction} in a bag of {ros}"
        what = f"time of a message on topic {message.channel.topic}, in seconds"
        raise RecordingError(what, message.log_time / NANOSECONDS_PER_SECOND, allowed=allowed, where=Where(str(target)))


def get_mcap_path(folder: Path) -> Path:
    """Return the MCAP file of a ROS 2 bag."""
    return folder / f"{folder.name}_0.mcap"


def check_mcap_bag(path: Path) -> None:
    """Raise `RecordingError` if a ROS 2 bag with one MCAP file cannot have this path."""
    check_bag_folder(path, get_mcap_path(path))
    if not path.is_dir():
        check_output_file(path)


def format_bag_metadata(file: str, counts: dict[Channel, int], first: int, last: int) -> str:
    """Return the metadata file of a bag with one MCAP file: topics, counts, first and last log time (ns)."""
    topics = [
        {
            "topic_metadata": {
                "name": channel.topic,
                "type": channel.type,
                "serialization_format": CDR,
                "offered_qos_profiles": channel.qos_profiles or (LATCHED_QOS_PROFILE if channel.latched else ""),
                "type_description_hash": channel.parse_type().rihs01,
            },
            "message_count": count,
        }
        for channel, count in counts.items()
    ]
    span = {"starting_time": {"nanoseconds_since_epoch": first}, "duration": {"nanoseconds": last - first}}
    total = sum(counts.values())
    information = {
        "version": 8,
        "storage_identifier": "mcap",
        **span,
        "message_count": total,
        "topics_with_message_count": topics,
        "compression_format": "",
        "compression_mode": "",
        "relative_file_paths": [file],
        "files": [{"path": file, **span, "message_count": total}],
        "custom_data": None,
        "ros_distro": "navsense",
    }
    # JSON is valid YAML.
    return json.dumps({"rosbag2_bagfile_information": information}, indent=1) + "\n"

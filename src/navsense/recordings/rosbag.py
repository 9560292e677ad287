"""Recordings as ROS bags, written by rosbags: a `.bag` of ROS 1, and a folder with a `.db3`, which is a bag of ROS 2.

Topics and messages are those of the MCAP recording; a bag has one time a message, that of arrival. Definitions are in
the bag, and what the recording says of itself, in ROS 1 as a message (see `about`). Until it is whole it lies in a
hidden folder beside its place, for a part of a bag is of no use to anybody.
"""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from navsense import atomic
from navsense.atomic import HiddenFolder
from navsense.errors import RecordingError, Where
from navsense.messages.base import GLOBAL_TIME, NANOSECONDS_PER_SECOND
from navsense.messages.cdr import encode
from navsense.messages.ros1 import Ros1Packing, make_ros1_packing
from navsense.messages.schemas import HUMBLE
from navsense.recordings.base import AtomicWriter, check_target, closed_error, os_error
from navsense.recordings.format import storage_path
from navsense.recordings.header import WORLD_KEY, RecordingHeader
from navsense.recordings.mcap.writer import check_header, format_world, run_metadata
from navsense.recordings.message_builder import MessageBlock, MessageBuilder, OutputChannel
from navsense.recordings.rosbag.metadata import CALLER_ID, MetadataWriter
from navsense.series import TimeSlice
from navsense.typing import ByteArray

if TYPE_CHECKING:
    import sqlite3

    from rosbags.interfaces import Connection, Qos
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import Writer as Writer2

BAG_METADATA_FILE = "metadata.yaml"
"""What a folder needs to be a bag of ROS 2."""

PENDING_METADATA_FILE = "about.json"
"""File in the hidden folder with the metadata of a ROS 2 bag; the database has it only at the end."""

BAG_VERSION: Literal[8] = 8
"""Version of a bag of ROS 2: the newest in which qualities of service are numbers, as all before had them."""

UNSUPPORTED_CHARACTERS = "?#%"
"""Characters that rosbags hands to SQLite as they are, where they mean something else in the name of a file."""


@cache
def type_hash(kind: str, definition: str, ros_version: int) -> str:
    """Return the sum of a type by which programs know it: the md5 of ROS 1, the hash of ROS 2."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(definition, kind))
    return store.generate_msgdef(kind, ros_version=1)[1] if ros_version == 1 else store.hash_rihs01(kind)


def latched_qos() -> tuple[Qos, ...]:
    """Return the quality of service of `/tf_static`: reliable, and handed to those who come late."""
    from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

    never = QosTime(9223372036, 854775807)
    one = Qos(
        history=QosHistory.KEEP_LAST,
        depth=1,
        reliability=QosReliability.RELIABLE,
        durability=QosDurability.TRANSIENT_LOCAL,
        deadline=never,
        lifespan=never,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=never,
        avoid_ros_namespace_conventions=False,
    )
    return (one,)


def bag_metadata(recording: RecordingHeader) -> dict[str, str]:
    """Return what a bag says of itself: what an MCAP recording does, in one mapping."""
    return {**run_metadata(recording), WORLD_KEY: format_world(recording)}


def make_ros1_writer(path: Path) -> Writer1:
    """Return rosbags' writer of a bag of ROS 1."""
    from rosbags.rosbag1 import Writer

    return Writer(path)


def release_chunk_index(writer: Writer1, first_open: int) -> int:
    """Forget what is no longer needed of chunks that are written, from the chunk `spent` on; return the first open one.

    The index needs only how many messages they hold; the writer would else remember each.
    """
    for chunk in writer.chunks[first_open:-1]:
        for number, places in chunk.connections.items():
            chunk.connections[number] = cast("Any", range(len(places)))
    return len(writer.chunks) - 1


def make_ros2_writer(path: Path) -> Writer2:
    """Return rosbags' writer of a bag of ROS 2, its messages in SQLite."""
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


@dataclass(eq=False)
class BagConnection:
    """One topic in a bag: rosbags' connection, and how many messages have gone over it."""

    connection: Connection
    count: int = 0


class BagStorage(Protocol):
    """One kind of bag."""

    def open(self) -> None:
        """Make the bag."""
        ...

    def add_connection(self, channel: OutputChannel) -> BagConnection:
        """Return a new line for the topic of a source."""
        ...

    def encode(self, block: MessageBlock, first: int) -> ByteArray:
        """Return the messages (n, size) of a block, numbered from `first` on."""
        ...

    def write(self, messages: list[tuple[int, Connection, bytes]]) -> None:
        """Write messages: times (ns), connections, bytes."""
        ...

    def close(self) -> None:
        """Finish the bag and put it in its place."""
        ...

    def abort(self) -> None:
        """Close what is open."""
        ...


def record_time(time: int) -> int:
    """Return the record time (ns) of a message in a ROS 1 bag: at least 1 ns, because readers reject 0."""
    return max(time, 1)


def negative_stamp_error(path: Path, clock: str, stamp: int) -> RecordingError:
    """Return the error of a stamp (ns) below 0."""
    remedy = "choose a later --epoch"
    return RecordingError(
        f"stamp of clock {clock!r}, in seconds",
        stamp / NANOSECONDS_PER_SECOND,
        allowed="must not be below 0 in a bag of ROS 1",
        where=Where(str(path)),
        remedy=remedy if clock == GLOBAL_TIME else "choose a later --epoch, or a smaller clock error",
    )


class Ros1Storage:
    """A `.bag` of ROS 1, format 2.0."""

    def __init__(self, work: HiddenFolder, target: Path, recording: RecordingHeader) -> None:
        """Plan the bag in a hidden folder, under its final name."""
        self._work, self._target, self._recording = work, target, recording
        self._writer = make_ros1_writer(work.folder / target.name)
        self._packings: dict[OutputChannel, Ros1Packing] = {}
        self._first_open_chunk = 0

    def open(self) -> None:
        """Make the bag."""
        self._writer.open()
        self._metadata_writer = MetadataWriter(self._writer, bag_metadata(self._recording))

    def _packing(self, channel: OutputChannel) -> Ros1Packing:
        """Return how the messages of a source are packed."""
        if channel not in self._packings:
            self._packings[channel] = make_ros1_packing(channel.message_layout)
        return self._packings[channel]

    def add_connection(self, channel: OutputChannel) -> BagConnection:
        """Return a new line for the topic of a source."""
        kind, definition = channel.message_layout.type, self._packing(channel).definition
        connection = self._writer.add_connection(
            channel.topic,
            kind,
            msgdef=definition,
            md5sum=type_hash(kind, definition, 1),
            callerid=CALLER_ID,
            latching=1 if channel.latched else None,
        )
        return BagConnection(connection)

    def encode(self, block: MessageBlock, first: int) -> ByteArray:
        """Return the messages (n, size) of a block, numbered from `first` on. `RecordingError` for a stamp before 0."""
        earliest = int(block.stamp.min())
        if earliest < 0:
            raise negative_stamp_error(self._target, block.channel.clock, earliest)
        return self._packing(block.channel).pack(encode(block.channel.message_layout, block.stamp, block.arrays), first)

    def write(self, messages: list[tuple[int, Connection, bytes]]) -> None:
        """Write messages: times (ns), connections, bytes."""
        for time, connection, data in messages:
            self._metadata_writer.write(record_time(time))
            self._writer.write(connection, record_time(time), data)
        if self._writer.bio is not None:
            self._writer.bio.flush()
        self._first_open_chunk = release_chunk_index(self._writer, self._first_open_chunk)

    def close(self) -> None:
        """Finish the bag and put it in its place."""
        self._metadata_writer.write(record_time(self._recording.epoch * NANOSECONDS_PER_SECOND))
        self._writer.close()
        self._work.commit(self._writer.path)

    def abort(self) -> None:
        """Close the file."""
        self._writer.abort()


@contextlib.contextmanager
def map_sqlite_errors() -> Iterator[None]:
    """Make what SQLite says of the disk an error of the operating system."""
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


class Ros2Storage:
    """A folder that is a bag of ROS 2, its messages in one `.db3`."""

    def __init__(self, work: HiddenFolder, target: Path, recording: RecordingHeader) -> None:
        """Plan the bag in a hidden folder, under its final name."""
        self._work, self._target = work, target
        self._writer = make_ros2_writer(work.folder / storage_path(target).name)
        for key, value in bag_metadata(recording).items():
            self._writer.set_custom_data(key, value)

    def open(self) -> None:
        """Make the bag."""
        with map_sqlite_errors():
            self._writer.open()
            # Each slab is committed, so that it survives a crash of the process. This does not wait for the disk.
            self._database.execute("PRAGMA synchronous=OFF")
        atomic.save_text(self._work.folder / PENDING_METADATA_FILE, json.dumps(self._writer.custom_data))

    @property
    def _database(self) -> sqlite3.Connection:
        """Return the open database."""
        return cast("sqlite3.Connection", cast("Any", self._writer.storage).conn)

    def add_connection(self, channel: OutputChannel) -> BagConnection:
        """Return a new line for the topic of a source."""
        message = channel.message_layout
        with map_sqlite_errors():
            connection = self._writer.add_connection(
                channel.topic,
                message.type,
                msgdef=message.schema,
                rihs01=type_hash(message.type, message.schema, 2),
                offered_qos_profiles=latched_qos() if channel.latched else (),
            )
        return BagConnection(connection)

    def encode(self, block: MessageBlock, _first: int) -> ByteArray:
        """Return the messages (n, size) of a block; none is numbered."""
        return encode(block.channel.message_layout, block.stamp, block.arrays)

    def write(self, messages: list[tuple[int, Connection, bytes]]) -> None:
        """Write messages: times (ns), connections, bytes."""
        with map_sqlite_errors():
            for time, connection, data in messages:
                self._writer.write(connection, time, data)
            self._database.commit()

    def close(self) -> None:
        """Finish the bag and put it in its place; an older one is there until then."""
        with map_sqlite_errors():
            self._writer.close()
        check_bag_folder(self._target)
        self._work.commit(self._writer.path)

    def abort(self) -> None:
        """Close the database."""
        self._writer.abort()


def bag_database(path: Path) -> Path:
    """Return the file of messages of a recording `NAME.db3`: NAME/NAME.db3."""
    folder = storage_path(path)
    return folder / f"{folder.name}.db3"


def check_bag_folder(path: Path) -> None:
    """Raise `RecordingError` where `NAME.db3` cannot be the folder NAME: something else is there."""
    folder = storage_path(path)
    if any(letter in str(path) for letter in UNSUPPORTED_CHARACTERS):
        allowed = f"must be without {' '.join(UNSUPPORTED_CHARACTERS)}, in which SQLite sees no name"
        raise RecordingError(
            "name of a bag of ROS 2", str(path), allowed=allowed, remedy="choose another name or place"
        )
    try:
        if not folder.exists() and not folder.is_symlink():
            return
        if folder.is_dir() and {inner.name for inner in folder.iterdir()} <= {
            BAG_METADATA_FILE,
            bag_database(path).name,
        }:
            return
    except OSError as error:
        raise os_error(path, error) from error
    raise RecordingError(
        "the bag is the folder of this name, which is something else",
        str(folder),
        where=Where(str(path)),
        remedy="choose another name, or move away what is there",
    )


class PendingBag:
    """One bag being written. Its methods are called from one thread, one after the other."""

    def __init__(
        self,
        path: Path,
        recording: RecordingHeader,
        make_storage: Callable[[HiddenFolder, Path, RecordingHeader], BagStorage],
    ) -> None:
        """Make the hidden folder, in it the bag with what never changes."""
        self._path = path
        self._builder = MessageBuilder(recording)
        self._connections: dict[str, BagConnection] = {}
        self._has_slices = False
        self._work = HiddenFolder(storage_path(path), is_recording=True)
        self.is_open = True
        try:
            self._storage = make_storage(self._work, path, recording)
            self._storage.open()
            for source in self._builder.list_reading_channels():
                self._get_connection(source)
            self._write(self._builder.build_static_transforms())
        except BaseException:
            self.discard()
            raise

    def _get_connection(self, channel: OutputChannel) -> BagConnection:
        """Return the line of a topic, made at its first use."""
        if channel.topic not in self._connections:
            self._connections[channel.topic] = self._storage.add_connection(channel)
        return self._connections[channel.topic]

    def write(self, time_slice: TimeSlice) -> None:
        """Take all of a slab, or nothing where it has a stamp that no message can hold."""
        self._write(self._builder.build_blocks(time_slice))
        self._has_slices = True

    def _write(self, blocks: list[MessageBlock]) -> None:
        """Write blocks, their messages in the order in which they arrive. After a failed disk nothing is left."""
        filled = [block for block in blocks if block.publish_time.size]
        made: list[tuple[int, OutputChannel, bytes]] = []
        counts: dict[str, int] = {}
        for block in filled:
            topic, known = block.channel.topic, self._connections.get(block.channel.topic)
            first = counts.setdefault(topic, known.count if known else 0)
            rows = self._storage.encode(block, first)
            counts[topic] += rows.shape[0]
            whole, width = rows.tobytes(), rows.shape[1]
            parts = (whole[at : at + width] for at in range(0, len(whole), width))
            made += zip(block.log_time.tolist(), [block.channel] * rows.shape[0], parts, strict=True)
        made.sort(key=itemgetter(0))
        try:
            for block in blocks:
                self._get_connection(block.channel)
            self._storage.write(
                [(time, self._connections[source.topic].connection, data) for time, source, data in made]
            )
        except BaseException:
            self.discard()
            raise
        for topic, count in counts.items():
            self._connections[topic].count = count

    def finish(self, *, empty: bool = True) -> None:
        """Finish the bag and give it its name; with `empty` false only where there are slabs."""
        if not self.is_open:
            raise closed_error(self._path)
        try:
            if empty or self._has_slices:
                self._storage.close()
        finally:
            self.discard()

    def discard(self) -> None:
        """Let go of the bag; nothing stays of one that is not whole. Never raises."""
        self.is_open = False
        with contextlib.suppress(Exception):
            self._storage.abort()
        self._work.release()


def check_clocks(path: Path, recording: RecordingHeader) -> None:
    """Raise `RecordingError` if the first stamp of a sensor is below 0 because of the constant error of its clock."""
    clocks = {clock.name: clock for clock in recording.world.clocks}
    for clock in (clocks[sensor.clock] for sensor in recording.world.sensors if sensor.clock in clocks):
        noise, steps = clock.noise, sum(step.size for step in clock.steps if step.start <= 0.0 < step.end)
        error = noise.mean + noise.bias_mean + steps + (clock.oscillator.offset if clock.oscillator else 0.0)
        is_known = clock.discipline is None and noise.stddev == noise.bias_stddev == 0.0
        if is_known and recording.epoch + error < 0.0:
            raise negative_stamp_error(path, clock.name, round((recording.epoch + error) * NANOSECONDS_PER_SECOND))


class Ros1BagWriter(AtomicWriter):
    """Writes slabs to one `.bag` of ROS 1."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Create the hidden folder next to `path`. Raise `RecordingError` if this fails."""
        check_target(path)
        check_header(path, recording, "a ROS bag")
        check_clocks(path, recording)
        older = replace(recording, ros=HUMBLE)  # ROS 1 has the same definitions
        super().__init__(path, lambda: PendingBag(path, older, Ros1Storage))


class Ros2BagWriter(AtomicWriter):
    """Writes slabs to one bag of ROS 2: the folder `NAME` for the path `NAME.db3`."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Create the hidden folder next to `path`. Raise `RecordingError` if this fails."""
        check_target(path)
        check_bag_folder(path)
        check_header(path, recording, "a ROS bag")
        super().__init__(path, lambda: PendingBag(path, recording, Ros2Storage))

"""Messages from one recording into another as they are: of unknown types too, with their definitions.

What both have in one encoding goes over byte by byte; from CDR to ROS 1 and back only padding, closing zeros of texts
and the numbers of headers differ (`messages.repack`). The result appears under its name when it is whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from navsense.atomic import HiddenFolder
from navsense.errors import NavsenseError, RecordingError, Where
from navsense.messages.base import GLOBAL_TIME, NANOSECONDS_PER_SECOND
from navsense.messages.repack import ShapeCache
from navsense.messages.schemas import HEADER_TYPE, HUMBLE
from navsense.recordings.base import check_target, os_error
from navsense.recordings.channels import BATCH_BYTES, CDR, QOS_KEY, ROS1, MessageChannel, MessageReader, RawMessage
from navsense.recordings.format import storage_path
from navsense.recordings.header import ROS_KEY, WORLD_KEY
from navsense.recordings.mcap import records
from navsense.recordings.mcap.records import WORLD_METADATA
from navsense.recordings.mcap.writer import LATCHED_QOS_PROFILE, McapFileWriter, MessageRecord, chunk_messages
from navsense.recordings.rosbag.metadata import CALLER_ID, MetadataWriter
from navsense.recordings.rosbag.writer import (
    BAG_METADATA_FILE,
    check_bag_folder,
    latched_qos,
    make_ros1_writer,
    make_ros2_writer,
    map_sqlite_errors,
    negative_stamp_error,
    record_time,
    release_chunk_index,
)

ROS1_TIME_LIMIT = 2**32 * NANOSECONDS_PER_SECOND
"""ns; a bag of ROS 1 has no time from here on."""

ROS2_TIME_LIMIT = 2**63
"""ns; a bag of ROS 2 has no time from here on."""


class OutputMessage(NamedTuple):
    """One message as its new recording has it."""

    channel: MessageChannel
    log_time: int
    publish_time: int
    data: bytes


class MessageTarget(Protocol):
    """A recording of messages being written, in the encoding `encoding`."""

    encoding: str
    output: Path
    """The file or folder that is written, in the hidden folder."""

    def add_channel(self, channel: MessageChannel) -> None:
        """Add a topic; one that is there already is not added again."""
        ...

    def write(self, batch: Sequence[OutputMessage]) -> None:
        """Write messages of topics that were added."""
        ...

    def close(self) -> None:
        """Finish the recording."""
        ...

    def abort(self) -> None:
        """Let go of what is open; never raises."""
        ...


class McapTarget:
    """An MCAP file, profile of ROS 2."""

    encoding = CDR

    def __init__(self, folder: Path, target: Path, reader: MessageReader) -> None:
        """Make the file in the hidden folder, by the name that it will have."""
        self.output = folder / target.name
        self.file = McapFileWriter(self.output, final_path=target)
        self._numbers: dict[MessageChannel, int] = {}
        self._schemas: dict[tuple[str, bytes], int] = {}
        self._counts: list[int] = []
        self._pending: list[bytes] = []
        about = {key: value for key, value in reader.metadata.items() if key != WORLD_KEY}
        named = [
            ("navsense", about),
            (WORLD_METADATA, {key: v for key, v in reader.metadata.items() if key == WORLD_KEY}),
        ]
        for name, values in named:
            if values:
                record = records.encode_record(records.METADATA, records.encode_text(name), records.encode_map(values))
                self.file.add_metadata(record, name)

    def add_channel(self, channel: MessageChannel) -> None:
        """Add a channel."""
        if channel in self._numbers:
            return
        number = self._numbers[channel] = len(self._numbers)
        if number > 65535:
            raise RecordingError("too many topics for one MCAP file", number, allowed="at most 65536")
        schema, form = channel.definition, channel.schema_encoding
        if channel.encoding == ROS1 or (channel.is_ros and not channel.definition.strip()):
            schema, form = channel.parse_type().ros2_text.encode(), "ros2msg"
        encoding = CDR if channel.encoding == ROS1 else channel.encoding
        known = self._schemas.setdefault((channel.type, schema), len(self._schemas) + 1)
        if known not in self.file.schemas:
            self.file.schemas[known] = records.encode_schema(known, channel.type, schema, form)
            self._pending.append(self.file.schemas[known])
        quality = channel.qos_profiles or (LATCHED_QOS_PROFILE if channel.latched else "")
        record = records.encode_channel(number, known, channel.topic, {QOS_KEY: quality}, encoding)
        self.file.channels[number] = record
        self.file.message_counts[number] = 0
        self._counts.append(0)
        self._pending.append(record)

    def write(self, batch: Sequence[OutputMessage]) -> None:
        """Write messages in chunks, definitions that are new before them."""
        if self._pending:
            self.file.write_chunks([(b"".join(self._pending), [])])
            self._pending.clear()
        found = []
        for line, log, time, data in batch:
            number = self._numbers[line]
            found.append(MessageRecord(number, self._counts[number], log, time, data))
            self._counts[number] += 1
        self.file.write_chunks(chunk_messages(found))

    def close(self) -> None:
        """Write the summary."""
        self.write(())
        self.file.finish()

    def abort(self) -> None:
        """Let go of the file."""
        self.file.release()


class McapBagTarget:
    """A folder that is a bag of ROS 2, its messages in one MCAP file, as `ros2 bag record -o NAME` makes it."""

    encoding = CDR

    def __init__(self, folder: Path, target: Path, reader: MessageReader) -> None:
        """Make the folder in the hidden one."""
        self.output, self._target = folder / target.name, target
        self.output.mkdir()
        self._file = bag_mcap_path(target).name
        self._mcap = McapTarget(self.output, self.output / self._file, reader)
        self._counts: dict[MessageChannel, int] = {}
        self._span: tuple[int, int] | None = None

    def add_channel(self, channel: MessageChannel) -> None:
        """Add a channel."""
        if not channel.is_ros:
            raise RecordingError(
                f"topic {channel.topic}", channel.encoding, allowed="a bag of ROS 2 holds messages in CDR"
            )
        self._mcap.add_channel(channel)
        self._counts.setdefault(channel, 0)

    def write(self, batch: Sequence[OutputMessage]) -> None:
        """Write messages, and note how many and from when to when."""
        for one in batch:
            check_time(self._target, one)
            self._counts[one.channel] += 1
            first, last = self._span or (one.log_time, one.log_time)
            self._span = (min(first, one.log_time), max(last, one.log_time))
        self._mcap.write(batch)

    def close(self) -> None:
        """Write the metadata."""
        self._mcap.close()
        first, last = self._span or (0, 0)
        text = format_bag_metadata(self._file, self._counts, first, last)
        (self.output / BAG_METADATA_FILE).write_text(text, encoding="utf-8")
        check_mcap_folder(self._target)

    def abort(self) -> None:
        """Let go of the file."""
        self._mcap.abort()


def check_time(target: Path, message: OutputMessage, limit: int = ROS2_TIME_LIMIT) -> None:
    """Raise `RecordingError` for a message of a time (ns) that a bag does not take: from `last` on."""
    if message.log_time >= limit:
        whose = "ROS 1" if limit == ROS1_TIME_LIMIT else "ROS 2"
        seconds, rest = divmod(limit, NANOSECONDS_PER_SECOND)
        allowed = f"must be below {seconds}{f'.{rest:09d}' if rest else ''} in a bag of {whose}"
        what = f"time of a message on topic {message.channel.topic}, in seconds"
        raise RecordingError(what, message.log_time / NANOSECONDS_PER_SECOND, allowed=allowed, where=Where(str(target)))


def bag_mcap_path(folder: Path) -> Path:
    """Return the file of messages of a bag of ROS 2 of MCAP."""
    return folder / f"{folder.name}_0.mcap"


def check_mcap_folder(path: Path) -> None:
    """Raise `RecordingError` where a folder cannot be made or replaced: something else is there."""
    try:
        ours = {BAG_METADATA_FILE, bag_mcap_path(path).name}
        if path.exists() and not (path.is_dir() and {inner.name for inner in path.iterdir()} <= ours):
            remedy = "choose another name, or move away what is there"
            raise RecordingError("is something else than such a bag", where=Where(str(path)), remedy=remedy)
    except OSError as error:
        raise os_error(path, error) from error


def format_bag_metadata(file: str, counts: dict[MessageChannel, int], first: int, last: int) -> str:
    """Return the metadata of a bag of one MCAP file: topics with their counts, from when to when (ns)."""
    import json

    topics = [
        {
            "topic_metadata": {
                "name": line.topic,
                "type": line.type,
                "serialization_format": CDR,
                "offered_qos_profiles": line.qos_profiles or (LATCHED_QOS_PROFILE if line.latched else ""),
                "type_description_hash": line.parse_type().rihs01,
            },
            "message_count": count,
        }
        for line, count in counts.items()
    ]
    span = {"starting_time": {"nanoseconds_since_epoch": first}, "duration": {"nanoseconds": last - first}}
    total = sum(counts.values())
    found = {
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
    # JSON is YAML; a reader of one reads it.
    return json.dumps({"rosbag2_bagfile_information": found}, indent=1) + "\n"


class RosbagTarget:
    """A bag, by rosbags: `old` one of ROS 1, else one of ROS 2 in SQLite."""

    def __init__(self, folder: Path, target: Path, reader: MessageReader, *, is_ros1: bool) -> None:
        """Make the bag in the hidden folder, by the name that it will have."""
        self.encoding = ROS1 if is_ros1 else CDR
        self._is_ros1, self._is_navsense, self._target = is_ros1, reader.is_navsense, target
        self.output = folder / storage_path(target).name
        self._connections: dict[MessageChannel, Any] = {}
        self._known: dict[tuple[str, str], Any] = {}
        self._first_open_chunk = 0
        self._writer: Any = make_ros1_writer(self.output) if is_ros1 else make_ros2_writer(self.output)
        writer: Any = self._writer
        about = {**reader.metadata, ROS_KEY: HUMBLE} if is_ros1 and ROS_KEY in reader.metadata else reader.metadata
        for key, value in ({} if is_ros1 else about).items():
            writer.set_custom_data(key, value)
        with map_sqlite_errors():
            self._writer.open()
        self._metadata_writer = MetadataWriter(writer, about if is_ros1 else {})

    def add_channel(self, channel: MessageChannel) -> None:
        """Add a connection; topics that only their sender tells apart share one."""
        if channel in self._connections:
            return
        if not channel.is_ros:
            raise RecordingError(
                f"topic {channel.topic}", channel.encoding, allowed="a bag holds messages of ROS alone"
            )
        kind = channel.parse_type()
        key = (channel.topic, kind.md5 if self._is_ros1 else kind.rihs01)
        if key not in self._known:
            with map_sqlite_errors():
                self._known[key] = self._add_connection(channel)
        self._connections[channel] = self._known[key]

    def _add_connection(self, channel: MessageChannel) -> Any:
        """Return a new connection of the writer."""
        kind = channel.parse_type()
        if self._is_ros1:
            text = channel.definition.decode(errors="replace") if channel.encoding == ROS1 else kind.ros1_text
            latching = 1 if channel.latched else None
            caller = CALLER_ID if self._is_navsense else None
            return self._writer.add_connection(
                channel.topic, channel.type, msgdef=text, md5sum=kind.md5, callerid=caller, latching=latching
            )
        text = channel.definition.decode(errors="replace") if channel.schema_encoding == "ros2msg" else kind.ros2_text
        profiles = _qos_profiles(channel)
        return self._writer.add_connection(
            channel.topic, channel.type, msgdef=text, rihs01=kind.rihs01, offered_qos_profiles=profiles
        )

    def write(self, batch: Sequence[OutputMessage]) -> None:
        """Write messages."""
        with map_sqlite_errors():
            for one in batch:
                check_time(self._target, one, ROS1_TIME_LIMIT if self._is_ros1 else ROS2_TIME_LIMIT)
                if self._is_ros1:
                    self._check_stamp(one)
                    self._metadata_writer.write(record_time(one.log_time))
                log = record_time(one.log_time) if self._is_ros1 else one.log_time
                self._writer.write(self._connections[one.channel], log, one.data)
        if self._is_ros1:
            self._first_open_chunk = release_chunk_index(self._writer, self._first_open_chunk)

    def _check_stamp(self, message: OutputMessage) -> None:
        """Raise `RecordingError` for a time below 0, which ROS 1 does not support."""
        line, log, _, data = message
        if log < 0:
            raise negative_stamp_error(self._target, GLOBAL_TIME, log)
        parts = line.parse_type().definitions[line.type]
        if line.encoding != ROS1 and parts and parts[0].type == HEADER_TYPE and data[7] & 0x80:
            raise negative_stamp_error(
                self._target,
                f"of {line.topic}",
                int.from_bytes(data[4:8], "little", signed=True) * NANOSECONDS_PER_SECOND,
            )

    def close(self) -> None:
        """Finish the bag."""
        self._metadata_writer.write(NANOSECONDS_PER_SECOND)  # of one without a message; 0 is no time
        with map_sqlite_errors():
            self._writer.close()
        if not self._is_ros1:
            check_bag_folder(self._target)

    def abort(self) -> None:
        """Let go of the bag."""
        with contextlib.suppress(Exception):
            self._writer.abort()


def _qos_profiles(channel: MessageChannel) -> Any:
    """Return the qualities of service of a topic."""
    from rosbags.rosbag2.metadata import parse_qos

    if channel.qos_profiles:
        return parse_qos(channel.qos_profiles)
    return latched_qos() if channel.latched else ()


def check_message_target(target: Path) -> None:
    """Raise `RecordingError` where a recording of messages cannot be at `target`."""
    suffix = target.suffix.lower()
    if suffix == "":
        check_mcap_folder(target)
        check_target(target.with_name(target.name + ".mcap"))
    else:
        check_target(target)
    if suffix == ".db3":
        check_bag_folder(target)


@contextmanager
def open_hidden_folder(target: Path, name: Path | None = None) -> Iterator[HiddenFolder]:
    """Yield the hidden folder for writing a recording, and remove it at the end. Errors name the target.

    `name` gives the folder another name, if a second step needs that of the target.
    """
    try:
        work = HiddenFolder(storage_path(name or target))
    except OSError as error:
        raise os_error(target, error) from error
    folder = work.folder
    try:
        yield work
    except NavsenseError as error:
        if error.where is not None and folder in Path(error.where.path).parents:
            error.where = Where(str(target), error.where.line)
        if isinstance(error, RecordingError):
            error.rescue = ""
        raise
    except OSError as error:
        raise os_error(target, error) from error
    finally:
        work.release()


@contextmanager
def open_target(target: Path, reader: MessageReader) -> Iterator[MessageTarget]:
    """Yield the recording `target` being written; it is put in its place at the end, and an error leaves nothing."""
    check_message_target(target)
    with open_hidden_folder(target) as work:
        folder, made = work.folder, cast("MessageTarget | None", None)
        try:
            suffix = target.suffix.lower()
            if suffix in (".bag", ".db3"):
                made = RosbagTarget(folder, target, reader, is_ros1=suffix == ".bag")
            else:
                made = McapTarget(folder, target, reader) if suffix else McapBagTarget(folder, target, reader)
            yield made
            made.close()
            work.commit(made.output)
        finally:
            if made is not None:
                made.abort()


def split_batches(reader: MessageReader) -> Iterator[list[RawMessage]]:
    """Yield the messages in batches of bounded size."""
    batch: list[RawMessage] = []
    size = 0
    for item in reader.read_messages():
        batch.append(item)
        size += len(item.data) + 64
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Transcoder:
    """Brings the messages of each topic into one encoding; in ROS 1 a topic's headers are numbered."""

    def __init__(self, encoding: str) -> None:
        """Start with nothing."""
        self._encoding = encoding
        self._shapes: dict[MessageChannel, ShapeCache] = {}
        self._counts: dict[MessageChannel, int] = {}

    def transcode(self, batch: Sequence[RawMessage]) -> list[OutputMessage]:
        """Return messages in this encoding, in their order. Raises `RecordingError` for one that is not of its type."""
        groups: dict[MessageChannel, list[int]] = {}
        for place, item in enumerate(batch):
            groups.setdefault(item.channel, []).append(place)
        data = [item.data for item in batch]
        for line, places in groups.items():
            if not line.is_ros or line.encoding == self._encoding:
                continue
            own = [data[place] for place in places]
            for place, raw in zip(places, self._repack(line, own), strict=True):
                data[place] = raw
        return [
            OutputMessage(item.channel, item.log_time, item.publish_time, raw)
            for item, raw in zip(batch, data, strict=True)
        ]

    def _repack(self, channel: MessageChannel, messages: list[bytes]) -> list[bytes]:
        """Return messages of one topic in this encoding."""
        if channel not in self._shapes:
            self._shapes[channel] = ShapeCache(
                channel.type, channel.parse_type().definitions, is_ros1=channel.encoding == ROS1
            )
        first = self._counts.get(channel, 0)
        self._counts[channel] = first + len(messages)
        later = channel.parse_type().ros2_only_bytes if self._encoding == ROS1 else 0
        try:
            return [raw[: len(raw) - later] for raw in self._shapes[channel].convert(messages, first)]
        except ValueError as error:
            raise RecordingError(f"topic {channel.topic} of {channel.type}: {error}") from error


def _unsupported_reason(target: MessageTarget, channel: MessageChannel) -> str:
    """Return why a recording has no place for a topic, "" where it has one."""
    if isinstance(target, McapTarget):
        return ""
    if not channel.is_ros:
        return f"no bag of ROS holds messages in {channel.encoding or 'this encoding'}"
    return (
        ""
        if channel.topic or target.encoding != ROS1
        else "no bag of ROS 1 can be read that has a topic without a name"
    )


def copy_messages(reader: MessageReader, target: Path) -> tuple[int, list[str]]:
    """Write all messages of a recording to another; return how many there are, and what could not be carried."""
    lost: list[str] = []
    count = late = 0
    with open_target(target, reader) as made:
        foreign = {line: why for line in reader.channels if (why := _unsupported_reason(made, line))}
        for line in reader.channels:
            if line not in foreign:
                made.add_channel(line)
        if foreign and len(foreign) == len(reader.channels):
            whys = "; ".join(dict.fromkeys(foreign.values()))
            raise RecordingError("nothing in it can be carried", whys, where=reader.where)
        encoder = Transcoder(made.encoding)
        for batch in split_batches(reader):
            kept = [item for item in batch if item.channel not in foreign]
            for line in {item.channel for item in kept}:
                made.add_channel(line)
            made.write(encoder.transcode(kept))
            count += len(kept)
            late += sum(item.publish_time != item.log_time for item in kept)
        lost += [f"topic {line.topic or '(without a name)'}: {why}" for line, why in foreign.items()]
    if late and isinstance(made, RosbagTarget):
        lost.append(f"the instants that {late} messages are about: a bag has one time a message, that of arrival")
    return count, lost

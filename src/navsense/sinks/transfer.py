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

from navsense.errors import NavsenseError, SinkError, Where
from navsense.messages.base import GLOBAL_TIME, SECOND
from navsense.messages.repack import Shapes
from navsense.messages.schemas import HEADER, HUMBLE
from navsense.outputs import HiddenFolder
from navsense.sinks import records
from navsense.sinks.about import CALLER, Teller
from navsense.sinks.base import LAYOUT, ROS, check_target, os_error, storage_path
from navsense.sinks.container import Container
from navsense.sinks.loose import Written, chunks
from navsense.sinks.mcap import LATCHED, OUR_WORLD
from navsense.sinks.rosbag import (
    METADATA,
    check_folder,
    database,
    forget,
    qualities,
    record_time,
    too_early,
    writer1,
    writer2,
)
from navsense.sinks.sources import BATCH_BYTES, CDR, LATCHED_KEY, OLD, Item, Line, Source

LAST = 2**32 * SECOND
"""ns; a bag of ROS 1 has no time from here on."""

LAST_OF_ROS2 = 2**63
"""ns; a bag of ROS 2 has no time from here on."""


class Message(NamedTuple):
    """One message as its new recording has it."""

    line: Line
    log: int
    time: int
    data: bytes


class Target(Protocol):
    """A recording of messages being written, in the encoding `encoding`."""

    encoding: str
    made: Path
    """The file or folder that is written, in the hidden folder."""

    def add(self, line: Line) -> None:
        """Add a topic; one that is there already is not added again."""
        ...

    def write(self, batch: Sequence[Message]) -> None:
        """Write messages of topics that were added."""
        ...

    def close(self) -> None:
        """Finish the recording."""
        ...

    def abort(self) -> None:
        """Let go of what is open; never raises."""
        ...


class ToMcap:
    """An MCAP file, profile of ROS 2."""

    encoding = CDR

    def __init__(self, folder: Path, target: Path, source: Source) -> None:
        """Make the file in the hidden folder, by the name that it will have."""
        self.made = folder / target.name
        self.container = Container(self.made, final=target)
        self._numbers: dict[Line, int] = {}
        self._schemas: dict[tuple[str, bytes], int] = {}
        self._counts: list[int] = []
        self._pending: list[bytes] = []
        about = {key: value for key, value in source.about.items() if key != LAYOUT}
        named = [("navsense", about), (OUR_WORLD, {key: v for key, v in source.about.items() if key == LAYOUT})]
        for name, values in named:
            if values:
                record = records.record(records.METADATA, records.text(name), records.mapping(values))
                self.container.add_metadata(record, name)

    def add(self, line: Line) -> None:
        """Add a channel."""
        if line in self._numbers:
            return
        number = self._numbers[line] = len(self._numbers)
        if number > 65535:
            raise SinkError("too many topics for one MCAP file", number, allowed="at most 65536")
        schema, form = line.definition, line.form
        if line.encoding == OLD or (line.is_ros and not line.definition.strip()):
            schema, form = line.defined().new.encode(), "ros2msg"
        encoding = CDR if line.encoding == OLD else line.encoding
        known = self._schemas.setdefault((line.type, schema), len(self._schemas) + 1)
        if known not in self.container.schemas:
            self.container.schemas[known] = records.schema(known, line.type, schema, form)
            self._pending.append(self.container.schemas[known])
        quality = line.quality or (LATCHED if line.latched else "")
        record = records.channel(number, known, line.topic, {LATCHED_KEY: quality}, encoding)
        self.container.channels[number] = record
        self.container.counts[number] = 0
        self._counts.append(0)
        self._pending.append(record)

    def write(self, batch: Sequence[Message]) -> None:
        """Write messages in chunks, definitions that are new before them."""
        if self._pending:
            self.container.write_chunks([(b"".join(self._pending), [])])
            self._pending.clear()
        found = []
        for line, log, time, data in batch:
            number = self._numbers[line]
            found.append(Written(number, self._counts[number], log, time, data))
            self._counts[number] += 1
        self.container.write_chunks(chunks(found))

    def close(self) -> None:
        """Write the summary."""
        self.write(())
        self.container.finish()

    def abort(self) -> None:
        """Let go of the file."""
        self.container.release()


class ToFolder:
    """A folder that is a bag of ROS 2, its messages in one MCAP file, as `ros2 bag record -o NAME` makes it."""

    encoding = CDR

    def __init__(self, folder: Path, target: Path, source: Source) -> None:
        """Make the folder in the hidden one."""
        self.made, self._target = folder / target.name, target
        self.made.mkdir()
        self._file = mcap_in(target).name
        self._inner = ToMcap(self.made, self.made / self._file, source)
        self._lines: dict[Line, int] = {}
        self._span: tuple[int, int] | None = None

    def add(self, line: Line) -> None:
        """Add a channel."""
        if not line.is_ros:
            raise SinkError(f"topic {line.topic}", line.encoding, allowed="a bag of ROS 2 holds messages in CDR")
        self._inner.add(line)
        self._lines.setdefault(line, 0)

    def write(self, batch: Sequence[Message]) -> None:
        """Write messages, and note how many and from when to when."""
        for one in batch:
            check_time(self._target, one)
            self._lines[one.line] += 1
            first, last = self._span or (one.log, one.log)
            self._span = (min(first, one.log), max(last, one.log))
        self._inner.write(batch)

    def close(self) -> None:
        """Write the metadata."""
        self._inner.close()
        first, last = self._span or (0, 0)
        text = metadata_of(self._file, self._lines, first, last)
        (self.made / METADATA).write_text(text, encoding="utf-8")
        check_mcap_folder(self._target)

    def abort(self) -> None:
        """Let go of the file."""
        self._inner.abort()


def check_time(target: Path, message: Message, last: int = LAST_OF_ROS2) -> None:
    """Raise `SinkError` for a message of a time (ns) that a bag does not take: from `last` on."""
    if message.log >= last:
        whose = "ROS 1" if last == LAST else "ROS 2"
        seconds, rest = divmod(last, SECOND)
        allowed = f"must be below {seconds}{f'.{rest:09d}' if rest else ''} in a bag of {whose}"
        what = f"time of a message on topic {message.line.topic}, in seconds"
        raise SinkError(what, message.log / SECOND, allowed=allowed, where=Where(str(target)))


def mcap_in(folder: Path) -> Path:
    """Return the file of messages of a bag of ROS 2 of MCAP."""
    return folder / f"{folder.name}_0.mcap"


def check_mcap_folder(path: Path) -> None:
    """Raise `SinkError` where a folder cannot be made or replaced: something else is there."""
    try:
        ours = {METADATA, mcap_in(path).name}
        if path.exists() and not (path.is_dir() and {inner.name for inner in path.iterdir()} <= ours):
            remedy = "choose another name, or move away what is there"
            raise SinkError("is something else than such a bag", where=Where(str(path)), remedy=remedy)
    except OSError as error:
        raise os_error(path, error) from error


def metadata_of(file: str, lines: dict[Line, int], first: int, last: int) -> str:
    """Return the metadata of a bag of one MCAP file: topics with their counts, from when to when (ns)."""
    import json

    topics = [
        {
            "topic_metadata": {
                "name": line.topic,
                "type": line.type,
                "serialization_format": CDR,
                "offered_qos_profiles": line.quality or (LATCHED if line.latched else ""),
                "type_description_hash": line.defined().rihs01,
            },
            "message_count": count,
        }
        for line, count in lines.items()
    ]
    span = {"starting_time": {"nanoseconds_since_epoch": first}, "duration": {"nanoseconds": last - first}}
    total = sum(lines.values())
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


class ToBag:
    """A bag, by rosbags: `old` one of ROS 1, else one of ROS 2 in SQLite."""

    def __init__(self, folder: Path, target: Path, source: Source, *, old: bool) -> None:
        """Make the bag in the hidden folder, by the name that it will have."""
        self.encoding = OLD if old else CDR
        self._old, self._own, self._target = old, source.own, target
        self.made = folder / storage_path(target).name
        self._connections: dict[Line, Any] = {}
        self._known: dict[tuple[str, str], Any] = {}
        self._spent = 0
        self._writer: Any = writer1(self.made) if old else writer2(self.made)
        writer: Any = self._writer
        about = {**source.about, ROS: HUMBLE} if old and ROS in source.about else source.about
        for key, value in ({} if old else about).items():
            writer.set_custom_data(key, value)
        with database():
            self._writer.open()
        self._teller = Teller(writer, about if old else {})

    def add(self, line: Line) -> None:
        """Add a connection; topics that only their sender tells apart share one."""
        if line in self._connections:
            return
        if not line.is_ros:
            raise SinkError(f"topic {line.topic}", line.encoding, allowed="a bag holds messages of ROS alone")
        kind = line.defined()
        key = (line.topic, kind.md5 if self._old else kind.rihs01)
        if key not in self._known:
            with database():
                self._known[key] = self._connection(line)
        self._connections[line] = self._known[key]

    def _connection(self, line: Line) -> Any:
        """Return a new connection of the writer."""
        kind = line.defined()
        if self._old:
            text = line.definition.decode(errors="replace") if line.encoding == OLD else kind.old
            latching = 1 if line.latched else None
            caller = CALLER if self._own else None
            return self._writer.add_connection(
                line.topic, line.type, msgdef=text, md5sum=kind.md5, callerid=caller, latching=latching
            )
        text = line.definition.decode(errors="replace") if line.form == "ros2msg" else kind.new
        profiles = _profiles(line)
        return self._writer.add_connection(
            line.topic, line.type, msgdef=text, rihs01=kind.rihs01, offered_qos_profiles=profiles
        )

    def write(self, batch: Sequence[Message]) -> None:
        """Write messages."""
        with database():
            for one in batch:
                check_time(self._target, one, LAST if self._old else LAST_OF_ROS2)
                if self._old:
                    self._check(one)
                    self._teller.tell(record_time(one.log))
                log = record_time(one.log) if self._old else one.log
                self._writer.write(self._connections[one.line], log, one.data)
        if self._old:
            self._spent = forget(self._writer, self._spent)

    def _check(self, message: Message) -> None:
        """Raise `SinkError` for a time below 0, which ROS 1 does not support."""
        line, log, _, data = message
        if log < 0:
            raise too_early(self._target, GLOBAL_TIME, log)
        parts = line.defined().definitions[line.type]
        if line.encoding != OLD and parts and parts[0].type == HEADER and data[7] & 0x80:
            raise too_early(self._target, f"of {line.topic}", int.from_bytes(data[4:8], "little", signed=True) * SECOND)

    def close(self) -> None:
        """Finish the bag."""
        self._teller.tell(SECOND)  # of one without a message; 0 is no time
        with database():
            self._writer.close()
        if not self._old:
            check_folder(self._target)

    def abort(self) -> None:
        """Let go of the bag."""
        with contextlib.suppress(Exception):
            self._writer.abort()


def _profiles(line: Line) -> Any:
    """Return the qualities of service of a topic."""
    from rosbags.rosbag2.metadata import parse_qos

    if line.quality:
        return parse_qos(line.quality)
    return qualities() if line.latched else ()


def checked(target: Path) -> None:
    """Raise `SinkError` where a recording of messages cannot be at `target`."""
    suffix = target.suffix.lower()
    if suffix == "":
        check_mcap_folder(target)
        check_target(target.with_name(target.name + ".mcap"))
    else:
        check_target(target)
    if suffix == ".db3":
        check_folder(target)


@contextmanager
def hidden(target: Path, name: Path | None = None) -> Iterator[HiddenFolder]:
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
        if isinstance(error, SinkError):
            error.rescue = ""
        raise
    except OSError as error:
        raise os_error(target, error) from error
    finally:
        work.release()


@contextmanager
def begun(target: Path, source: Source) -> Iterator[Target]:
    """Yield the recording `target` being written; it is put in its place at the end, and an error leaves nothing."""
    checked(target)
    with hidden(target) as work:
        folder, made = work.folder, cast("Target | None", None)
        try:
            suffix = target.suffix.lower()
            if suffix in (".bag", ".db3"):
                made = ToBag(folder, target, source, old=suffix == ".bag")
            else:
                made = ToMcap(folder, target, source) if suffix else ToFolder(folder, target, source)
            yield made
            made.close()
            work.commit(made.made)
        finally:
            if made is not None:
                made.abort()


def batches(source: Source) -> Iterator[list[Item]]:
    """Yield the messages in batches of bounded size."""
    batch: list[Item] = []
    size = 0
    for item in source.items():
        batch.append(item)
        size += len(item.data) + 64
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Encoder:
    """Brings the messages of each topic into one encoding; in ROS 1 a topic's headers are numbered."""

    def __init__(self, encoding: str) -> None:
        """Start with nothing."""
        self._encoding = encoding
        self._shapes: dict[Line, Shapes] = {}
        self._counts: dict[Line, int] = {}

    def encoded(self, batch: Sequence[Item]) -> list[Message]:
        """Return messages in this encoding, in their order. Raises `SinkError` for one that is not of its type."""
        groups: dict[Line, list[int]] = {}
        for place, item in enumerate(batch):
            groups.setdefault(item.line, []).append(place)
        data = [item.data for item in batch]
        for line, places in groups.items():
            if not line.is_ros or line.encoding == self._encoding:
                continue
            own = [data[place] for place in places]
            for place, raw in zip(places, self._repacked(line, own), strict=True):
                data[place] = raw
        return [Message(item.line, item.log, item.time, raw) for item, raw in zip(batch, data, strict=True)]

    def _repacked(self, line: Line, messages: list[bytes]) -> list[bytes]:
        """Return messages of one topic in this encoding."""
        if line not in self._shapes:
            self._shapes[line] = Shapes(line.type, line.defined().definitions, old=line.encoding == OLD)
        first = self._counts.get(line, 0)
        self._counts[line] = first + len(messages)
        later = line.defined().later if self._encoding == OLD else 0
        try:
            return [raw[: len(raw) - later] for raw in self._shapes[line].repacked(messages, first)]
        except ValueError as error:
            raise SinkError(f"topic {line.topic} of {line.type}: {error}") from error


def _no_place(made: Target, line: Line) -> str:
    """Return why a recording has no place for a topic, "" where it has one."""
    if isinstance(made, ToMcap):
        return ""
    if not line.is_ros:
        return f"no bag of ROS holds messages in {line.encoding or 'this encoding'}"
    return "" if line.topic or made.encoding != OLD else "no bag of ROS 1 can be read that has a topic without a name"


def transfer(source: Source, target: Path) -> tuple[int, list[str]]:
    """Write all messages of a recording to another; return how many there are, and what could not be carried."""
    lost: list[str] = []
    count = late = 0
    with begun(target, source) as made:
        foreign = {line: why for line in source.lines if (why := _no_place(made, line))}
        for line in source.lines:
            if line not in foreign:
                made.add(line)
        if foreign and len(foreign) == len(source.lines):
            whys = "; ".join(dict.fromkeys(foreign.values()))
            raise SinkError("nothing in it can be carried", whys, where=source.where)
        encoder = Encoder(made.encoding)
        for batch in batches(source):
            kept = [item for item in batch if item.line not in foreign]
            for line in {item.line for item in kept}:
                made.add(line)
            made.write(encoder.encoded(kept))
            count += len(kept)
            late += sum(item.time != item.log for item in kept)
        lost += [f"topic {line.topic or '(without a name)'}: {why}" for line, why in foreign.items()]
    if late and isinstance(made, ToBag):
        lost.append(f"the instants that {late} messages are about: a bag has one time a message, that of arrival")
    return count, lost

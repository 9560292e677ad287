"""Messages out of recordings of anybody as they lie there: MCAP, bags of ROS 1, bags of ROS 2, one after the other.

Memory is bounded by a chunk. Only MCAP has two times a message; a bag's one is that of arrival.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from navsense.errors import NavsenseError, SinkError, Where
from navsense.sinks import records
from navsense.sinks.base import LAYOUT, os_error
from navsense.sinks.base import opened as opened_file
from navsense.sinks.definitions import Defined, defined
from navsense.sinks.mcap import OUR_WORLD
from navsense.sinks.recover import profile
from navsense.sinks.rosbag import CALLER, METADATA, bag_file, bag_folder

CDR, OLD = "cdr", "ros1"
"""Encodings of ROS 2 and of ROS 1."""

LATCHED_KEY, LATCHED_VALUES = "offered_qos_profiles", ("durability: 1", "durability: transient_local")
"""How the channel of an MCAP file says that its messages are for those who come late."""

FORMS: Mapping[str, str] = {"ros2msg": "msg", "ros1msg": "msg", "ros2idl": "idl", "omgidl": "idl", "": "none"}
"""What MCAP calls the language of a definition -> what `definitions` does."""


@dataclass(frozen=True)
class Line:
    """One topic: message type, encoding, its definition and the language of that (as MCAP calls it).

    `latched` where the messages are for those who come late; `quality` is what ROS 2 notes of the service.
    """

    topic: str
    type: str
    encoding: str
    definition: bytes
    form: str
    latched: bool = False
    quality: str = ""

    @property
    def is_ros(self) -> bool:
        """Return whether a program of ROS sent it."""
        return self.encoding in (CDR, OLD) and self.form in FORMS

    def defined(self) -> Defined:
        """Return the type. Raises `SinkError` where its definition is missing or is none."""
        try:
            return defined(self.type, self.definition.decode(errors="replace"), FORMS[self.form])
        except ValueError as error:
            raise SinkError(f"topic {self.topic}: {error}") from error


class Item(NamedTuple):
    """One message: its topic, when it arrived and the instant that it is about (ns), its bytes."""

    line: Line
    log: int
    time: int
    data: bytes


class Source(Protocol):
    """An open recording of messages: `about` is what it says of itself, `own` where navsense wrote it.

    `two_times` where each message has the instant that it is about beside that of its arrival.
    """

    where: Where
    lines: list[Line]
    about: dict[str, str]
    own: bool
    two_times: bool

    def items(self) -> Iterator[Item]:
        """Yield the messages in order of arrival, as far as the recording has them so."""
        ...


def cut_off(path: Path) -> SinkError:
    """Return the error of an MCAP file without its end."""
    remedy = f"save what it holds with: navsense recover {path}"
    return SinkError("the recording was cut off", where=Where(str(path)), remedy=remedy)


@dataclass(eq=False)
class McapSource:
    """An MCAP file."""

    path: Path
    file: BinaryIO
    lines: list[Line] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    two_times: bool = True
    profile: str = ""
    _schemas: dict[int, tuple[str, str, bytes]] = field(default_factory=dict)
    _channels: dict[int, Line] = field(default_factory=dict)
    _span: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Read what the file says of its contents. Raises `SinkError` where it is none, or was cut off."""
        self.where = Where(str(self.path))
        size = self.file.seek(0, os.SEEK_END)
        self.profile, start = profile(self.file, self.path, size)
        tail = records.PREFIX.size + records.FOOTER_BODY.size + len(records.MAGIC)
        self.file.seek(max(start, size - tail))
        ending = self.file.read(tail)
        if len(ending) < tail or not ending.endswith(records.MAGIC) or ending[0] != records.FOOTER:
            raise cut_off(self.path)
        self._span = (start, size - tail)
        summary = records.FOOTER_BODY.unpack_from(ending, records.PREFIX.size)[0]
        for raw in self._raw(summary) if summary else self._inside():
            self._define(raw.kind, raw.body)
        self.lines = list(dict.fromkeys(self._channels.values()))
        self.own = bool(self.about)

    def total(self) -> int:
        """Return how many messages there are, by reading all of them."""
        return sum(1 for _ in self.items())

    def _raw(self, summary: int) -> Iterator[records.Raw]:
        """Yield the records of the summary, and the metadata that it points to."""
        for raw in records.walk(self.file, summary, self._span[1]):
            if raw.kind == records.METADATA_INDEX:
                at, length = struct.unpack_from("<QQ", raw.body)
                if at + length > self._span[1]:
                    raise records.DamagedError("its index points outside the file")
                yield from records.walk(self.file, at, at + length)
            else:
                yield raw

    def _inside(self) -> Iterator[records.Raw]:
        """Yield all records but those of the summary, those in chunks too."""
        end = self._span[0]
        for raw in records.walk(self.file, *self._span):
            end = raw.offset + records.PREFIX.size + len(raw.body)
            if raw.kind == records.CHUNK:
                inner = records.inner(records.unpack(records.parse_chunk(raw.body)))
                yield from (records.Raw(kind, at, bytes(body)) for kind, at, body in inner)
            else:
                yield raw
            if raw.kind == records.DATA_END:
                return
        if end != self._span[1]:
            raise records.DamagedError("a record ends outside the file")

    def _define(self, kind: int, body: bytes) -> None:
        """Note a schema, a channel or our own metadata."""
        reader = records.Reader(body)
        if kind == records.SCHEMA:
            number, name, form = reader.number(2), reader.text(), reader.text()
            self._schemas[number] = (name, form, bytes(reader.take(reader.number(4))))
        elif kind == records.CHANNEL:
            number, schema = reader.number(2), reader.number(2)
            topic, encoding, values = reader.text(), reader.text(), reader.mapping()
            name, form, text = self._schemas.get(schema, ("", "", b""))
            quality = values.get(LATCHED_KEY, "")
            latched = any(value in quality for value in LATCHED_VALUES) or values.get("latching") == "1"
            self._channels[number] = Line(topic, _full(name, encoding), encoding, text, form, latched, quality)
        elif kind == records.METADATA:
            name = reader.text()
            if name == "navsense":
                self.about |= reader.mapping()
            elif name == OUR_WORLD:
                self.about[LAYOUT] = reader.mapping().get(LAYOUT, "")

    def items(self) -> Iterator[Item]:
        """Yield the messages, chunk by chunk, each chunk's in order of arrival."""
        for raw in records.walk(self.file, *self._span):
            if raw.kind == records.CHUNK:
                yield from self._of_chunk(records.unpack(records.parse_chunk(raw.body)))
            elif raw.kind == records.MESSAGE:
                yield self._item(memoryview(raw.body))
            elif raw.kind in (records.SCHEMA, records.CHANNEL):
                self._define(raw.kind, raw.body)
            elif raw.kind == records.DATA_END:
                return

    def _of_chunk(self, data: bytes) -> Iterator[Item]:
        """Yield a chunk's messages in order of arrival."""
        found: list[Item] = []
        for kind, _, body in records.inner(data):
            if kind == records.MESSAGE:
                found.append(self._item(body))
            else:
                self._define(kind, bytes(body))
        found.sort(key=lambda item: item.log)
        yield from found

    def _item(self, body: memoryview) -> Item:
        """Return one message."""
        channel, _, log, time = struct.unpack_from("<HIQQ", body)
        if channel not in self._channels:
            raise records.DamagedError("a message of a channel that is not known")
        return Item(self._channels[channel], log, time, bytes(body[22:]))


def _full(name: str, encoding: str) -> str:
    """Return the name of a type of ROS as ROS 2 has it."""
    package, _, short = name.rpartition("/")
    return f"{package}/msg/{short}" if encoding == OLD and package and "/" not in package else name


@dataclass(eq=False)
class ReaderSource:
    """A bag that rosbags reads: `old` one of ROS 1."""

    path: Path
    reader: Any
    old: bool
    two_times: bool = False

    def __post_init__(self) -> None:
        """Read what the bag says of its contents."""
        self.where = Where(str(self.path))
        self._lines = {connection.id: self._line(connection) for connection in self.reader.connections}
        self.lines = list(dict.fromkeys(self._lines.values()))
        custom: Mapping[str, Any] = {} if self.old else self.reader.storage.metadata.custom or {}
        self.about = {key: str(value) for key, value in custom.items()} if "world" in custom else {}
        callers = {connection.ext.callerid for connection in self.reader.connections} if self.old else set()
        self.own = bool(self.about) or callers == {CALLER}

    def _line(self, connection: Any) -> Line:
        """Return the topic of a connection."""
        form = {"MSG": "ros2msg", "IDL": "ros2idl"}.get(connection.msgdef.format.name, "")
        text = connection.msgdef.data.encode()
        if self.old:
            return Line(connection.topic, connection.msgtype, OLD, text, "ros1msg", bool(connection.ext.latching))
        profiles = connection.ext.offered_qos_profiles
        latched = any(one.durability.name == "TRANSIENT_LOCAL" for one in profiles)
        quality = _quality(profiles)
        return Line(
            connection.topic, connection.msgtype, connection.ext.serialization_format, text, form, latched, quality
        )

    def items(self) -> Iterator[Item]:
        """Yield the messages in order of arrival."""
        for connection, time, data in self.reader.messages():
            yield Item(self._lines[connection.id], time, time, bytes(data))


def _quality(profiles: list[Any]) -> str:
    """Return qualities of service as ROS 2 notes them."""
    from rosbags.rosbag2.metadata import dump_qos_v8

    return str(dump_qos_v8(profiles)) if profiles else ""


@dataclass(eq=False)
class Several:
    """The MCAP files of one bag of ROS 2, one after the other."""

    path: Path
    parts: list[McapSource]
    about: dict[str, str] = field(default_factory=dict)
    two_times: bool = True

    def __post_init__(self) -> None:
        """Join what the files say."""
        self.where = Where(str(self.path))
        self.lines = list(dict.fromkeys(chain.from_iterable(part.lines for part in self.parts)))
        for part in self.parts:
            self.about |= part.about
        self.own = bool(self.about)

    def items(self) -> Iterator[Item]:
        """Yield the messages of all files."""
        return chain.from_iterable(part.items() for part in self.parts)


def is_folder(path: Path) -> bool:
    """Tell whether a path is a bag of ROS 2: its folder, the file in it, or the name that it was recorded by."""
    return (folder_of(path) / METADATA).is_file()


def folder_of(path: Path) -> Path:
    """Return the folder of a bag of ROS 2 that may be named by a file; the path itself where there is none."""
    if path.suffix.lower() == ".db3":
        if path == bag_file(path.parent) and (path.parent / METADATA).is_file():
            return path.parent
        if not path.exists() and (bag_folder(path) / METADATA).is_file():
            return bag_folder(path)
    return path


def is_container(path: Path) -> bool:
    """Tell whether a path is read as a recording of messages."""
    return path.suffix.lower() in (".mcap", ".bag", ".db3") or is_folder(path)


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Yield a recording of messages. Raises `SinkError` for what is none, was cut off, is damaged, cannot be read."""
    where = Where(str(path))
    try:
        if path.suffix.lower() == ".mcap" and not path.is_dir():
            with opened_file(path) as file:
                yield McapSource(path, file)
            return
        with _reader(path) as source:
            yield source
    except NavsenseError:
        raise
    except (records.DamagedError, struct.error) as error:
        remedy = f"save what it holds with: navsense recover {path}"
        raise SinkError(f"the recording is damaged: {error}", where=where, remedy=remedy) from error
    except OSError as error:
        if error.strerror:
            raise os_error(path, error, "read") from error
        raise SinkError(f"is no bag that can be read: {error}", where=where) from error


@contextmanager
def _reader(path: Path) -> Iterator[Source]:
    """Yield a bag. What rosbags says of a damaged one becomes a `SinkError`; what comes from outside stays."""
    from rosbags.rosbag1 import Reader as OldReader
    from rosbags.rosbag2 import Reader

    old = path.suffix.lower() == ".bag" and not path.is_dir()
    folder = path if old else folder_of(path)
    if folder.is_dir() and not (folder / METADATA).is_file():
        remedy = f"name the folder that holds {METADATA}, or a file"
        raise SinkError("is a directory, and no bag of ROS 2", where=Where(str(path)), remedy=remedy)
    if not folder.is_dir():
        opened_file(folder).close()
    remedy = "a .bag without its index is given one by: rosbag reindex" if old else ""
    with damaged(path, remedy):
        reader: Any = OldReader(path) if old else Reader(folder)
        reader.open()
    try:
        parts = [] if old else _files(reader)
        if parts:
            with ExitStack() as stack:
                files = [stack.enter_context(opened_file(part)) for part in parts]
                yield Several(folder, [McapSource(part, file) for part, file in zip(parts, files, strict=True)])
        else:
            yield Guarded(ReaderSource(folder, reader, old), path, remedy)
    finally:
        reader.close()


@dataclass(eq=False)
class Guarded:
    """A bag whose reader's errors are ours."""

    source: ReaderSource
    path: Path
    remedy: str

    def __post_init__(self) -> None:
        """Say what the bag says."""
        self.where, self.lines, self.about = self.source.where, self.source.lines, self.source.about
        self.own, self.two_times = self.source.own, self.source.two_times

    def items(self) -> Iterator[Item]:
        """Yield the messages in order of arrival."""
        found = self.source.items()
        while True:
            with damaged(self.path, self.remedy):
                item = next(found, None)
            if item is None:
                return
            yield item


@contextmanager
def damaged(path: Path, remedy: str = "") -> Iterator[None]:
    """Make whatever rosbags says of a damaged bag a `SinkError`."""
    try:
        yield
    except NavsenseError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise
        raise SinkError(f"is no bag that can be read: {error}", where=Where(str(path)), remedy=remedy) from error


def _files(reader: Any) -> list[Path]:
    """Return the MCAP files of a bag of ROS 2 that are as they were written; none where it has others."""
    from rosbags.rosbag2.reader import DirectoryReader

    if not isinstance(reader.storage, DirectoryReader) or reader.storage.metadata.compression_mode:
        return []
    parts: list[Any] = list(reader.storage.storages)
    paths = [Path(part.path) for part in parts]
    return paths if all(path.suffix == ".mcap" for path in paths) else []


def layout_of(source: Source) -> Mapping[str, Any] | None:
    """Return the plain world of a recording of navsense, None where it has none."""
    text = source.about.get(LAYOUT)
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise SinkError(f"the recording is damaged: its world cannot be read: {error}", where=source.where) from error
    return found if isinstance(found, dict) else None

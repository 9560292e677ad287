"""Messages out of recordings of anybody as they lie there: MCAP, bags of ROS 1, bags of ROS 2, one after the other.

Memory is bounded by a chunk. Only MCAP has two times a message; a bag's one is that of arrival.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from navsense import inputs, outputs
from navsense.errors import NavsenseError, SinkError, Where
from navsense.sinks import records, walked
from navsense.sinks.about import CALLER, is_about, said_in
from navsense.sinks.base import LAYOUT, os_error, storage_path
from navsense.sinks.base import opened as opened_file
from navsense.sinks.definitions import Defined, defined
from navsense.sinks.mcap import OUR_WORLD
from navsense.sinks.pieces import Part, Piece, pieces, records_of, windows
from navsense.sinks.recover import profile
from navsense.sinks.rosbag import METADATA
from navsense.typing import AnyArray, IntArray
from navsense.unpacking import bounded_rosbags

BAG = inputs.Kind("bag", SinkError, "must be a bag of ROS")

CDR, OLD = "cdr", "ros1"
"""Encodings of ROS 2 and of ROS 1."""

LATCHED_KEY, LATCHED_VALUES = "offered_qos_profiles", ("durability: 1", "durability: transient_local")
"""How the channel of an MCAP file says that its messages are for those who come late."""

NAMELESS = "recording"
"""The world of a recording that does not name it."""

FORMS: Mapping[str, str] = {"ros2msg": "msg", "ros1msg": "msg", "ros2idl": "idl", "omgidl": "idl", "": "none"}
"""What MCAP calls the language of a definition -> what `definitions` does."""

BATCH_BYTES = 4_000_000
"""Messages are handed on when there are as many bytes of them."""

FEW_BYTES = 50_000
"""Messages of one topic that are fewer bytes than this are handed on with others; each time takes time."""

ENOUGH_BYTES = 1_000_000
"""Smaller chunks than this are handed on with others; joining them takes time."""


class Kind(NamedTuple):
    """A topic, and how its messages are to be read."""

    topic: str
    type: str
    encoding: str
    form: str
    definition: bytes


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

    @cached_property
    def kind(self) -> Kind:
        """Return what its messages have in common, whoever sends them."""
        return Kind(self.topic, self.type, self.encoding, self.form, self.definition)

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


@dataclass(frozen=True, eq=False)
class Lot:
    """Messages of one topic in order: their bytes by size, when each arrived, the instant that it is about (n,) ns."""

    line: Line
    log: IntArray
    time: IntArray
    sized: list[walked.Sized]

    @property
    def size(self) -> int:
        """Return how many bytes the messages are."""
        return sum(rows.size for _, rows in self.sized)


def joined(lots: list[Lot]) -> Lot:
    """Return messages of one topic that follow one another as one."""
    if len(lots) == 1:
        return lots[0]
    log, time = np.concatenate([lot.log for lot in lots]), np.concatenate([lot.time for lot in lots])
    firsts = np.cumsum([0, *(lot.log.size for lot in lots)]).tolist()
    sized = walked.joined([(first, lot.sized) for first, lot in zip(firsts, lots, strict=False)])
    return Lot(lots[0].line, log, time, sized)


def ordered(lot: Lot) -> Lot:
    """Return messages in order of arrival."""
    if (lot.log[1:] >= lot.log[:-1]).all():
        return lot
    order = np.argsort(lot.log, kind="stable")
    to = np.empty_like(order)
    to[order] = np.arange(order.size)
    sized = []
    for places, rows in lot.sized:
        inner = np.argsort(to[places])
        sized.append((to[places][inner], rows[inner]))
    return Lot(lot.line, lot.log[order], lot.time[order], sized)


def in_order(lots: list[Lot]) -> list[Lot]:
    """Return messages of one topic in order of arrival, as they come where that is so already."""
    each = [ordered(lot) for lot in lots]
    follow = all(int(after.log[0]) >= int(before.log[-1]) for before, after in pairwise(each))
    return each if follow else [ordered(joined(lots))]


def together(lots: list[Lot]) -> list[Lot]:
    """Return messages of one topic that follow one another with those joined that come in few bytes."""
    found: list[Lot] = []
    for are_few, group in groupby(lots, lambda lot: lot.size < FEW_BYTES):
        own = list(group)
        found += [joined(own)] if are_few else own
    return found


def lots_of(items: Iterable[Item], topics: Collection[str]) -> Iterator[list[Lot]]:
    """Yield messages of some topics that come one by one, in batches of bounded size."""
    groups: dict[Kind, list[Item]] = {}
    size = 0

    def made() -> list[Lot]:
        found = []
        for own in groups.values():
            log, time = (np.array([one[k] for one in own], dtype=np.int64) for k in (1, 2))
            found.append(Lot(own[0].line, log, time, walked.by_size(one.data for one in own)))
        return found

    for item in items:
        size += len(item.data) + 64
        if item.line.topic in topics:
            groups.setdefault(item.line.kind, []).append(item)
        if size >= BATCH_BYTES:
            yield made()
            groups, size = {}, 0
    yield made()


class Source(Protocol):
    """An open recording of messages: `about` is what it says of itself, `own` where navsense wrote it."""

    where: Where
    lines: list[Line]
    about: dict[str, str]
    own: bool

    def items(self) -> Iterator[Item]:
        """Yield the messages in order of arrival, as far as the recording has them so."""
        ...

    def lots(self, topics: Collection[str]) -> Iterator[list[Lot]]:
        """Yield the messages of some topics in the same order, in batches of bounded size."""
        ...


def cut_off(path: Path) -> SinkError:
    """Return the error of an MCAP file without its end: a live process writes to it, or it was cut off."""
    if outputs.is_being_written(path):
        return outputs.reader_error(path)
    return SinkError("the recording was cut off", where=Where(str(path)), remedy=outputs.recovery_remedy(path))


@dataclass(eq=False)
class McapSource:
    """An MCAP file."""

    path: Path
    file: BinaryIO
    lines: list[Line] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    profile: str = ""
    _schemas: dict[int, tuple[str, str, bytes]] = field(default_factory=dict)
    _channels: dict[int, Line] = field(default_factory=dict)
    _known: list[Line] = field(default_factory=list)
    _numbers: IntArray = field(default_factory=lambda: np.full(1 << 16, -1, dtype=np.int64))
    _span: tuple[int, int] = (0, 0)
    _numbered: tuple[list[Kind], IntArray] = field(default_factory=lambda: ([], np.zeros(0, dtype=np.int64)))

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
        if not (summary and self._summed(summary)):
            self._schemas, self._channels, self._known, self.about = {}, {}, [], {}
            for raw in self._inside():
                self._define(raw.kind, raw.body)
        self.lines = list(dict.fromkeys(self._channels.values()))
        self.own = bool(self.about)

    def total(self) -> int:
        """Return how many messages there are, by reading all of them."""
        return sum(self._loaded(piece)[0].log.size for piece in pieces(self.file, self._span))

    def _summed(self, summary: int) -> bool:
        """Note what the summary says; tell whether it has all channels of the file's messages, and their schemas."""
        used: set[int] = set()
        told = list(self._raw(summary))
        for raw in sorted(told, key=lambda one: one.kind != records.SCHEMA):
            self._define(raw.kind, raw.body)
            used |= records.channels_in(raw)
        schemas = {int.from_bytes(raw.body[2:4], "little") for raw in told if raw.kind == records.CHANNEL} - {0}
        return bool(self._channels) and used <= self._channels.keys() and schemas <= self._schemas.keys()

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
            line = Line(topic, _full(name, encoding), encoding, text, form, latched, quality)
            if self._channels.get(number) != line:
                self._channels[number] = line
                self._numbers[number] = len(self._known)
                self._known.append(line)
        elif kind == records.METADATA:
            name = reader.text()
            if name == "navsense":
                self.about |= reader.mapping()
            elif name == OUR_WORLD:
                self.about[LAYOUT] = reader.mapping().get(LAYOUT, "")

    def items(self) -> Iterator[Item]:
        """Yield the messages in order of arrival."""
        known = self._known
        for parts in self._windows():
            data = [part.found.data.tobytes() for part in parts]
            every = [
                (np.full(lines.size, i)[own], lines[own], *(one[own] for one in (f.log, f.time, f.starts, f.stops)))
                for i, (f, lines, own) in enumerate(parts)
            ]
            columns = [np.concatenate(column) for column in zip(*every, strict=True)]
            order = np.argsort(columns[2], kind="stable")
            for i, line, log, time, start, stop in zip(*(one[order].tolist() for one in columns), strict=True):
                yield Item(known[line], log, time, data[i][start:stop])

    def lots(self, topics: Collection[str]) -> Iterator[list[Lot]]:
        """Yield the messages of some topics in the order of `items`, in batches of bounded size."""
        waiting: dict[Kind, list[Lot]] = {}
        size = 0
        for parts in self._windows():
            window: dict[Kind, list[Lot]] = {}
            for part in parts:
                size += int((part.found.stops[part.own] - part.found.starts[part.own]).sum())
                for lot in self._lots(part, topics):
                    window.setdefault(lot.line.kind, []).append(lot)
            for kind, lots in window.items():
                waiting.setdefault(kind, []).extend(in_order(lots))
            if size >= ENOUGH_BYTES:
                yield [lot for lots in waiting.values() for lot in together(lots)]
                waiting, size = {}, 0
        yield [lot for lots in waiting.values() for lot in together(lots)]

    def _lots(self, part: Part, topics: Collection[str]) -> Iterator[Lot]:
        """Yield the messages of a part by what kind they are of."""
        found, lines, chosen = part
        log_time, time = found.log.view(np.int64), found.time.view(np.int64)
        if (log_time < 0).any() or (time < 0).any():
            raise records.DamagedError("a message's time is more than 292 years after 1970")
        places = np.arange(lines.size)[chosen]
        names, numbers = self._kinds()
        for number, own in walked.grouped(numbers[lines[chosen]], len(names)):
            if names[number].topic in topics:
                which = walked.span(places[own])
                line = self._known[lines[places[own][0]]]
                yield Lot(line, log_time[which], time[which], found.sized(which))

    def _kinds(self) -> tuple[list[Kind], IntArray]:
        """Return the kinds of the lines, and the place of each line's among them."""
        if len(self._numbered[1]) != len(self._known):
            kinds = [line.kind for line in self._known]
            names = list(dict.fromkeys(kinds))
            places = {name: place for place, name in enumerate(names)}
            self._numbered = names, np.array([places[one] for one in kinds], dtype=np.int64)
        return self._numbered

    def _windows(self) -> Iterator[list[Part]]:
        """Yield the messages in order of arrival, window by window."""
        return windows(pieces(self.file, self._span), self._loaded, self.where)

    def _loaded(self, of: Piece) -> tuple[walked.Messages, IntArray]:
        """Return the messages of a piece in the order of its records, with the place of each one's line."""
        piece = walked.walked(records_of(self.file, of))
        found = piece.messages()
        lines, first, kinds = np.empty(found.log.size, dtype=np.int64), 0, piece.kinds
        for place in np.flatnonzero(kinds != records.MESSAGE).tolist():
            stop = int(np.searchsorted(found.records, place))
            lines[first:stop] = self._named(found.channel[first:stop])
            first = stop
            self._define(int(kinds[place]), piece.body(place))
        lines[first:] = self._named(found.channel[first:])
        if not piece.is_whole:
            raise records.DamagedError("a chunk ends inside a record")
        return found, lines

    def _named(self, channels: AnyArray) -> IntArray:
        """Return the places of the lines of some channels."""
        found: IntArray = self._numbers[channels]
        if (found < 0).any():
            raise records.DamagedError("a message of a channel that is not known")
        return found


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

    def __post_init__(self) -> None:
        """Read what the bag says of its contents."""
        self.where = Where(str(self.path))
        connections = list(self.reader.connections)
        custom: Mapping[str, Any] = {} if self.old else self.reader.storage.metadata.custom or {}
        self.about = {key: str(value) for key, value in custom.items()} if "world" in custom else {}
        if self.old and {one.ext.callerid for one in connections} == {CALLER}:
            with damaged(self.path):
                self.about = said_in(self.reader) or {"world": NAMELESS}
            connections = [one for one in connections if not is_about(one)]
        self._lines = {connection.id: self._line(connection) for connection in connections}
        self.lines = list(dict.fromkeys(self._lines.values()))
        self.own = bool(self.about)

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
            if connection.id not in self._lines:
                continue
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

    def lots(self, topics: Collection[str]) -> Iterator[list[Lot]]:
        """Yield the messages of some topics, file by file, in batches of bounded size."""
        return chain.from_iterable(part.lots(topics) for part in self.parts)


def is_folder(path: Path) -> bool:
    """Tell whether a path is a bag of ROS 2: its folder, the file in it, or the name that it was recorded by."""
    return (folder_of(path) / METADATA).is_file()


def folder_of(path: Path) -> Path:
    """Return the folder of a bag of ROS 2 that may be named by a file; the path itself where there is none."""
    if path.suffix.lower() == ".db3":
        if path.stem == path.absolute().parent.name and (path.parent / METADATA).is_file():
            return path.parent
        if not path.exists() and (storage_path(path) / METADATA).is_file():
            return storage_path(path)
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
        with bounded_rosbags(), _reader(path) as source:
            yield source
    except NavsenseError:
        raise
    except (records.DamagedError, struct.error) as error:
        remedy = outputs.recovery_remedy(path)
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
    inputs.add_input(folder)
    if not folder.is_dir():
        opened_file(folder).close()
    inputs.check_bag(folder, BAG)
    remedy = outputs.recovery_remedy(path) if old else ""
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
        self.own = self.source.own

    def items(self) -> Iterator[Item]:
        """Yield the messages in order of arrival."""
        found = self.source.items()
        while True:
            with damaged(self.path, self.remedy):
                item = next(found, None)
            if item is None:
                return
            yield item

    def lots(self, topics: Collection[str]) -> Iterator[list[Lot]]:
        """Yield the messages of some topics in order of arrival, in batches of bounded size."""
        return lots_of(self.items(), topics)


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
        found = inputs.parse_json(text)
    except ValueError as error:
        raise SinkError(f"the recording is damaged: its world cannot be read: {error}", where=source.where) from error
    return found if isinstance(found, dict) else None

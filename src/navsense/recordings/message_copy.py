"""Messages from one recording into another as they are: of unknown types too, with their definitions.

What both have in one encoding goes over byte by byte; from CDR to ROS 1 and back only padding, closing zeros of texts
and the numbers of headers differ (`messages.repack`). The result appears under its name when it is whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, cast

from navsense.atomic import HiddenFolder
from navsense.errors import NavsenseError, RecordingError, Where
from navsense.messages.repack import ShapeCache
from navsense.recordings.base import check_target, os_error
from navsense.recordings.channels import BATCH_BYTES, ROS1, MessageChannel, MessageReader, RawMessage
from navsense.recordings.format import storage_path
from navsense.recordings.mcap.writer import McapTarget
from navsense.recordings.rosbag.writer import BagTarget, McapBagTarget, check_bag_folder, check_mcap_folder


class MessageTarget(Protocol):
    """A recording of messages being written, in the encoding `encoding`."""

    encoding: str
    output: Path
    """The file or folder that is written, in the hidden folder."""

    def add_channel(self, channel: MessageChannel) -> None:
        """Add a topic; one that is there already is not added again."""
        ...

    def write(self, batch: Sequence[RawMessage]) -> None:
        """Write messages of topics that were added."""
        ...

    def close(self) -> None:
        """Finish the recording."""
        ...

    def abort(self) -> None:
        """Let go of what is open; never raises."""
        ...


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
                made = BagTarget(folder, target, reader, is_ros1=suffix == ".bag")
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

    def transcode(self, batch: Sequence[RawMessage]) -> list[RawMessage]:
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
            RawMessage(item.channel, item.log_time, item.publish_time, raw)
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
    if late and isinstance(made, BagTarget):
        lost.append(f"the instants that {late} messages are about: a bag has one time a message, that of arrival")
    return count, lost

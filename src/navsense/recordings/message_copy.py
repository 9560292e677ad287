"""Copies messages from one recording to another, also of unknown types, with their definitions.

Messages in the encoding of the target are copied byte by byte. Between CDR and ROS 1 only padding, the closing zeros of
strings and the `seq` of headers change (`messages.repack`). The target appears when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, cast

from navsense.core.atomic import HiddenFolder
from navsense.core.errors import NavsenseError, RecordingError, Where
from navsense.messages.repack import ShapeCache
from navsense.recordings.base import check_target, os_error
from navsense.recordings.channels import BATCH_BYTES, ROS1, Channel, MessageReader, RawMessage
from navsense.recordings.format import storage_path
from navsense.recordings.mcap.writer import McapTarget
from navsense.recordings.rosbag.writer import BagTarget, McapBagTarget, check_bag_folder, check_mcap_folder


class MessageTarget(Protocol):
    """A recording that messages are copied to, in the encoding `encoding`."""

    encoding: str
    output: Path
    """The file or folder that is written, in the hidden folder."""

    def add_channel(self, channel: Channel) -> None:
        """Add a channel, if it is new."""
        ...

    def write(self, batch: Sequence[RawMessage]) -> None:
        """Write messages of added channels."""
        ...

    def close(self) -> None:
        """Finish the recording."""
        ...

    def abort(self) -> None:
        """Close all files; never raises."""
        ...


def check_message_target(target: Path) -> None:
    """Raise `RecordingError` if a recording of messages cannot be written to `target`."""
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
    """Yield the recording `target` for writing. It appears at the end; after an error nothing is left."""
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
    """Converts messages to one encoding; in ROS 1 the headers of a topic are numbered."""

    def __init__(self, encoding: str) -> None:
        """Take the encoding."""
        self._encoding = encoding
        self._shapes: dict[Channel, ShapeCache] = {}
        self._counts: dict[Channel, int] = {}

    def transcode(self, batch: Sequence[RawMessage]) -> list[RawMessage]:
        """Return messages in this encoding, in order. Raises `RecordingError` for a message of another type."""
        groups: dict[Channel, list[int]] = {}
        for place, item in enumerate(batch):
            groups.setdefault(item.channel, []).append(place)
        data = [item.data for item in batch]
        for channel, places in groups.items():
            if not channel.is_ros or channel.encoding == self._encoding:
                continue
            own = [data[place] for place in places]
            for place, raw in zip(places, self._repack(channel, own), strict=True):
                data[place] = raw
        return [
            RawMessage(item.channel, item.log_time, item.publish_time, raw)
            for item, raw in zip(batch, data, strict=True)
        ]

    def _repack(self, channel: Channel, messages: list[bytes]) -> list[bytes]:
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


def _unsupported_reason(target: MessageTarget, channel: Channel) -> str:
    """Return the reason why a target cannot hold a topic; "" if it can."""
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
    """Copy all messages of a recording; return their number, and what the target cannot hold."""
    lost: list[str] = []
    count = late = 0
    with open_target(target, reader) as made:
        foreign = {channel: why for channel in reader.channels if (why := _unsupported_reason(made, channel))}
        for channel in reader.channels:
            if channel not in foreign:
                made.add_channel(channel)
        if foreign and len(foreign) == len(reader.channels):
            whys = "; ".join(dict.fromkeys(foreign.values()))
            raise RecordingError("nothing in it can be carried", whys, where=reader.where)
        encoder = Transcoder(made.encoding)
        for batch in split_batches(reader):
            kept = [item for item in batch if item.channel not in foreign]
            for channel in {item.channel for item in kept}:
                made.add_channel(channel)
            made.write(encoder.transcode(kept))
            count += len(kept)
            late += sum(item.publish_time != item.log_time for item in kept)
        lost += [f"topic {channel.topic or '(without a name)'}: {why}" for channel, why in foreign.items()]
    if late and isinstance(made, BagTarget):
        lost.append(f"the time of validity of {late} messages: a bag has one time per message, the time of arrival")
    return count, lost

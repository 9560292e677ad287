"""Copies messages from one recording to another, also of unknown types, with their definitions.

Messages in the encoding of the target are copied byte by byte. Between CDR and ROS 1 only padding, the closing zeros of
strings and the `seq` of headers change (`messages.repack`). The target appears when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from navsense.core.atomic import HiddenFolder
from navsense.core.errors import NavsenseError, RecordingError, Where
from navsense.messages.repack import ShapeCache
from navsense.recordings.base import check_recording_path, make_os_error
from navsense.recordings.channels import BATCH_BYTES, ROS1, Channel, MessageCopy, MessageReader, RawMessage
from navsense.recordings.format import find_format_by_suffix, get_storage_path


@contextmanager
def open_hidden_folder(target: Path) -> Iterator[HiddenFolder]:
    """Yield the hidden folder for writing a recording, and remove it at the end. Errors name the target."""
    try:
        work = HiddenFolder(get_storage_path(target))
    except OSError as error:
        raise make_os_error(target, error) from error
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
        raise make_os_error(target, error) from error
    finally:
        work.release()


def split_batches(reader: MessageReader) -> Iterator[list[RawMessage]]:
    """Yield the messages in batches of bounded size."""
    batch: list[RawMessage] = []
    size = 0
    for message in reader.read_messages():
        batch.append(message)
        size += len(message.data) + 64
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
        for index, message in enumerate(batch):
            groups.setdefault(message.channel, []).append(index)
        data = [message.data for message in batch]
        for channel, indices in groups.items():
            if not channel.is_ros or channel.encoding == self._encoding:
                continue
            messages = [data[index] for index in indices]
            for index, raw in zip(indices, self._repack(channel, messages), strict=True):
                data[index] = raw
        return [
            RawMessage(message.channel, message.log_time, message.publish_time, raw)
            for message, raw in zip(batch, data, strict=True)
        ]

    def _repack(self, channel: Channel, messages: list[bytes]) -> list[bytes]:
        """Return messages of one topic in this encoding."""
        if channel not in self._shapes:
            parsed, is_ros1 = channel.parse_type(), channel.encoding == ROS1
            self._shapes[channel] = ShapeCache(
                channel.type, parsed.definitions, is_ros1=is_ros1, ros2_only=parsed.ros2_only
            )
        first = self._counts.get(channel, 0)
        self._counts[channel] = first + len(messages)
        try:
            return self._shapes[channel].convert(messages, first)
        except ValueError as error:
            raise RecordingError(f"topic {channel.topic} of {channel.type}: {error}") from error


def copy_messages(reader: MessageReader, target: Path) -> tuple[int, list[str]]:
    """Copy all messages of a recording; return their number, and what the target cannot hold."""
    with open_hidden_folder(target) as work:
        return copy_to_folder(reader, target, work)


def copy_to_folder(reader: MessageReader, target: Path, work: HiddenFolder) -> tuple[int, list[str]]:
    """Copy all messages of a recording in the hidden folder of the target, as `copy_messages`."""
    recording_format = find_format_by_suffix(target)
    if recording_format is None or recording_format.open_copy is None:
        raise RecordingError("no messages are copied to such a file", target.name, where=Where(str(target)))
    check_recording_path(recording_format, target)
    recording = recording_format.open_copy(work.folder, target, reader)
    try:
        result = _write_messages(reader, recording)
        recording.close()
        work.commit(recording.output)
    finally:
        recording.abort()
    return result


def _write_messages(reader: MessageReader, recording: MessageCopy) -> tuple[int, list[str]]:
    """Write all messages of a recording; return their number, and what the target cannot hold."""
    count = delayed_count = 0
    obstacles = {channel: why for channel in reader.channels if (why := recording.find_obstacle(channel))}
    for channel in reader.channels:
        if channel not in obstacles:
            recording.add_channel(channel)
    if obstacles and len(obstacles) == len(reader.channels):
        reasons = "; ".join(dict.fromkeys(obstacles.values()))
        raise RecordingError("nothing in it can be converted", reasons, where=reader.where)
    encoder = Transcoder(recording.encoding)
    for batch in split_batches(reader):
        remaining = [message for message in batch if message.channel not in obstacles]
        for channel in {message.channel for message in remaining}:
            # A channel can be defined after the first message.
            if obstacle := recording.find_obstacle(channel):
                raise RecordingError(f"topic {channel.topic}: {obstacle}", where=reader.where)
            recording.add_channel(channel)
        recording.write(encoder.transcode(remaining))
        count += len(remaining)
        delayed_count += sum(message.publish_time != message.log_time for message in remaining)
    lost = [f"topic {channel.topic or '(without a name)'}: {why}" for channel, why in obstacles.items()]
    if delayed_count and not recording.has_publish_times:
        lost.append(
            f"the time of validity of {delayed_count} messages: a bag has one time per message, the time of arrival"
        )
    return count, lost

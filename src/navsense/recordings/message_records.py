"""Messages that were made one by one, as the chunks of an MCAP file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from navsense.recordings.mcap import records
from navsense.recordings.mcap.writer import CHUNK_BYTES, MessageIndex, build_message_indexes


@dataclass(frozen=True)
class MessageRecord:
    """One message: its channel and number, when it arrived and the instant that it is about (ns), its bytes."""

    channel: int
    sequence: int
    log_time: int
    publish_time: int
    data: bytes


def chunk_messages(messages: Iterable[MessageRecord]) -> Iterator[tuple[bytes, list[MessageIndex]]]:
    """Yield chunks of the messages, each of at most `CHUNK_BYTES` and one message."""
    data, places = bytearray(), dict[int, tuple[list[int], list[int]]]()
    for one in messages:
        logs, offsets = places.setdefault(one.channel, ([], []))
        logs.append(one.log_time)
        offsets.append(len(data))
        head = (
            records.MESSAGE,
            22 + len(one.data),
            one.channel,
            one.sequence & 0xFFFFFFFF,
            one.log_time,
            one.publish_time,
        )
        data += records.MESSAGE_HEAD.pack(*head) + one.data
        if len(data) >= CHUNK_BYTES:
            yield bytes(data), build_message_indexes(places)
            data, places = bytearray(), {}
    if data:
        yield bytes(data), build_message_indexes(places)

"""Messages that were made one by one, as the chunks of an MCAP file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from navsense.sinks import records
from navsense.sinks.container import Entries, entries_of
from navsense.sinks.mcap import CHUNK_BYTES


@dataclass(frozen=True)
class Written:
    """One message: its channel and number, when it arrived and the instant that it is about (ns), its bytes."""

    channel: int
    sequence: int
    log: int
    time: int
    data: bytes


def chunks(found: Iterable[Written]) -> Iterator[tuple[bytes, list[Entries]]]:
    """Yield chunks of the messages, each of at most `CHUNK_BYTES` and one message."""
    data, places = bytearray(), dict[int, tuple[list[int], list[int]]]()
    for one in found:
        logs, offsets = places.setdefault(one.channel, ([], []))
        logs.append(one.log)
        offsets.append(len(data))
        head = (records.MESSAGE, 22 + len(one.data), one.channel, one.sequence & 0xFFFFFFFF, one.log, one.time)
        data += records.MESSAGE_HEAD.pack(*head) + one.data
        if len(data) >= CHUNK_BYTES:
            yield bytes(data), entries_of(places)
            data, places = bytearray(), {}
    if data:
        yield bytes(data), entries_of(places)

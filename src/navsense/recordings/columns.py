"""Columns of messages: decoding, buffering by topic, and matching of topics by stamp."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.typing import AnyArray, BoolArray, ByteArray, IntArray
from navsense.messages import generic
from navsense.messages.cdr import build_layout, read_stamps
from navsense.messages.repack import MAX_SHAPES, Definitions, MessageShape, ShapeCache
from navsense.recordings.channels import ROS1, Channel, MessageBatch, SizeGroup, group_by_size
from navsense.recordings.rosbag.definitions import find_definitions

Arrays = dict[str, AnyArray]

STAMP_FIELDS = ("header.stamp", "clock")
"""Paths of the stamp of a message."""

OWN_TYPE_PREFIX = generic.PACKAGE
"""Prefix of the message types that navsense makes from the outputs of a sensor."""


@dataclass(eq=False)
class ColumnBatch:
    """Decoded messages of one topic: log times, publish times and stamps (n,) ns, and their arrays by name."""

    log_time: IntArray
    publish_time: IntArray
    stamp: IntArray
    arrays: Arrays

    def split(self, count: int) -> tuple[ColumnBatch, ColumnBatch]:
        """Return the first `count` rows, and the rest."""
        first = {name: array[:count] for name, array in self.arrays.items()}
        rest = {name: array[count:] for name, array in self.arrays.items()}
        return (
            ColumnBatch(self.log_time[:count], self.publish_time[:count], self.stamp[:count], first),
            ColumnBatch(self.log_time[count:], self.publish_time[count:], self.stamp[count:], rest),
        )


def join_columns(parts: Sequence[ColumnBatch]) -> ColumnBatch:
    """Return consecutive batches as one."""
    if len(parts) == 1:
        return parts[0]
    named = {name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays}
    log, time, stamp = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("log_time", "publish_time", "stamp")
    )
    return ColumnBatch(log, time, stamp, named)


class MessageDecoder:
    """Decodes the messages of one topic to rows of numbers by path."""

    def __init__(self, channel: Channel) -> None:
        """Parse the definition of the type. Raises `RecordingError` if it is missing."""
        self._channel = channel
        parsed = channel.parse_type().definitions
        known = find_definitions(channel.type, parsed)
        self._definitions = known or format_definitions(channel.type, parsed)
        self.is_known = channel.is_ros and (known is not None or channel.type.startswith(OWN_TYPE_PREFIX))
        self._shapes = ShapeCache(channel.type, parsed, is_ros1=channel.encoding == ROS1)
        self._layouts: dict[MessageShape, tuple[int, np.dtype[np.void]]] = {}

    def decode(self, messages: Sequence[bytes]) -> list[tuple[MessageShape, IntArray, AnyArray]]:
        """Return messages by shape: their numbers and rows. Raises `RecordingError` for a message of another type."""
        return self.decode_groups(group_by_size(messages))

    def decode_groups(self, groups: Sequence[SizeGroup]) -> list[tuple[MessageShape, IntArray, AnyArray]]:
        """Decode messages that are already grouped by size, as `decode` does."""
        try:
            found = [block for places, raw in groups for block in self._shapes.split_by_shape(places, raw)]
            return [(shape, places, self._view_rows(shape, raw)) for shape, places, raw in found]
        except ValueError as error:
            raise RecordingError(f"topic {self._channel.topic} of {self._channel.type}: {error}") from error

    def _view_rows(self, shape: MessageShape, raw: ByteArray) -> AnyArray:
        """Return messages (n, size) of one shape as rows of numbers."""
        if self._channel.encoding == ROS1:
            raw = shape.convert(raw)
        size, kind = self._get_layout(shape)
        own = raw[:, :size]
        if own.shape[1] != size:
            raise ValueError("a message is of another size than its definition")
        rows: AnyArray = own.view(kind)[:, 0]
        return rows

    def _get_layout(self, shape: MessageShape) -> tuple[int, np.dtype[np.void]]:
        """Return the size of a message of a shape, and the element type of its rows."""
        found = self._layouts.get(shape)
        if found is None:
            made = build_layout(self._channel.type, shape.strings, shape.lengths, self._definitions)
            found = len(made.template), made.dtype()
            if len(self._layouts) == MAX_SHAPES:
                self._layouts.clear()
            self._layouts[shape] = found
        return found


def is_readable(channel: Channel) -> bool:
    """Return True if the type of a channel is defined as in ROS."""
    try:
        return MessageDecoder(channel).is_known
    except RecordingError:
        return False


def has_same_type(one: Channel, other: Channel) -> bool:
    """Return True if two channels have the same type with the same definition."""
    if one is other or one.key == other.key:
        return True
    if (one.type, one.encoding) != (other.type, other.encoding):
        return False
    try:
        return one.parse_type().definitions == other.parse_type().definitions
    except RecordingError:
        return False


def _drop_empty(batch: MessageBatch) -> MessageBatch:
    """Return the messages that are not empty."""
    if all(rows.shape[1] for _, rows in batch.size_groups):
        return batch
    has = np.zeros(batch.log_time.size, dtype=np.bool_)
    sized = [(places, rows) for places, rows in batch.size_groups if rows.shape[1]]
    for places, _ in sized:
        has[places] = True
    to = np.cumsum(has) - 1
    return MessageBatch(
        batch.channel, batch.log_time[has], batch.publish_time[has], [(to[places], rows) for places, rows in sized]
    )


def format_definitions(message_type: str, parsed: Definitions) -> dict[str, str]:
    """Return the lines of the parsed definitions of a type and of the types in it."""
    found: dict[str, str] = {}
    pending = [message_type]
    while pending:
        kind = pending.pop()
        if kind in found or kind not in parsed:
            continue
        lines = []
        for one in parsed[kind]:
            count = "" if one.length is None else "[]" if one.length < 0 else f"[{one.length}]"
            lines.append(f"{one.type.replace('/msg/', '/')}{count} {one.name}")
            pending.append(one.type)
        found[kind] = "\n".join(lines)
    return found


def read_first_stamps(rows: AnyArray) -> IntArray | int:
    """Return the stamps (n,) ns of decoded messages; 0 for a type without stamp."""
    path = next((path for path in STAMP_FIELDS if f"{path}.sec" in (rows.dtype.names or ())), None)
    return read_stamps(rows, path) if path else 0


@dataclass(eq=False)
class TopicBuffer:
    """Buffer of one topic.

    extract: makes arrays from rows.
    batches: decoded messages that no reading has used yet.
    """

    channel: Channel
    extract: Callable[[AnyArray], Arrays]
    batches: list[ColumnBatch] = field(default_factory=list)
    count: int = 0
    has_no_arrays: bool = False
    empty_count: int = 0
    _axes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the decoder."""
        self._decoder = MessageDecoder(self.channel)

    @property
    def is_known(self) -> bool:
        """True if the type is defined as in ROS."""
        return self._decoder.is_known

    def append(self, batch: MessageBatch) -> None:
        """Add messages. If `extract` returns no arrays for the first messages, later ones are ignored.

        Empty messages are skipped and counted. Raises `RecordingError` for a message of another type, and for arrays of
        another shape.
        """
        if self.has_no_arrays:
            return
        given = batch.log_time.size
        batch = _drop_empty(batch)
        count = batch.log_time.size
        self.empty_count += given - count
        if not count:
            return
        stamp, found = np.zeros(count, dtype=np.int64), Arrays()
        for _, places, rows in self._decoder.decode_groups(batch.size_groups):
            stamp[places] = read_first_stamps(rows)
            for name, array in self.extract(rows).items():
                if self._axes.setdefault(name, array.shape[1:]) != array.shape[1:]:
                    raise RecordingError(f"topic {self.channel.topic}: {name} changes its shape within the recording")
                if places.size == count:
                    # A copy, because a view would keep all bytes of all messages in memory.
                    found[name] = array if array.flags.owndata else array.copy()
                else:
                    found.setdefault(name, make_blank_rows(array, count))[places] = array
        self.has_no_arrays = not found
        self.batches.append(ColumnBatch(batch.log_time, batch.publish_time, stamp, found))
        self.count += count

    def pop(self, count: int) -> ColumnBatch:
        """Remove and return the first `count` rows; there must be as many."""
        joined = join_columns(self.batches)
        first, rest = joined.split(count)
        self.count -= count
        self.batches = [rest]
        return first

    def peek(self) -> ColumnBatch:
        """Return all rows; there must be a batch."""
        self.batches = [join_columns(self.batches)]
        return self.batches[0]


def make_blank_rows(array: AnyArray, count: int) -> AnyArray:
    """Return rows with the shape and type of an array: NaN, or 0 for integers."""
    return np.full((count, *array.shape[1:]), np.nan if array.dtype.kind == "f" else 0, dtype=array.dtype)


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, eq=False)
class AlignedColumns(Generic[Key]):
    """Messages of one topic, the matching messages of others, and the rows (n,) without a match."""

    main: ColumnBatch
    others: dict[Key, ColumnBatch]
    missing: dict[Key, BoolArray] = field(default_factory=dict)


class Matches(NamedTuple):
    """Matches between two topics.

    indices: (n,), indices of the matching messages, -1 without one. The first `final_count` of them cannot change.
    key, other_key: times (ns) by which the topics were matched.
    """

    indices: IntArray
    final_count: int
    key: IntArray
    other_key: IntArray


def align_columns(
    main: TopicBuffer,
    others: Mapping[Key, TopicBuffer],
    limit: int,
    incomplete: Collection[Key],
    *,
    by_publish_time: bool,
    last: bool,
    simultaneous: Collection[Key] = (),
) -> AlignedColumns[Key] | None:
    """Remove and return the complete rows of some topics, at most `limit` messages of the first; None without any.

    A row is complete if all its companion messages are read. A message and its companions have the same stamp, and in
    MCAP the same publish time. If several messages have the same stamp, they are matched in order. If the two topics
    have different numbers of them, they are not matched.

    incomplete: topics in which messages are missing. The function does not wait for them.
    by_publish_time: publish times are times of validity.
    last: no messages follow. All rows are complete.
    simultaneous: topics with the publish times of the first topic and possibly other stamps (a DVL's water track).
    """
    count = limit if last else min([limit, *(one.count for key, one in others.items() if key not in incomplete)])
    if not count:
        return None
    at_once = {key: by_publish_time and key in simultaneous for key in others}
    if all(
        _is_one_to_one(main, one, count, by_publish_time=by_publish_time, is_simultaneous=at_once[key])
        for key, one in others.items()
    ):
        return AlignedColumns(main.pop(count), {key: one.pop(count) for key, one in others.items()})
    waiting = main.peek()
    matches = {
        key: _match_batches(waiting, one.peek(), by_publish_time=by_publish_time, is_simultaneous=at_once[key])
        for key, one in others.items()
        if one.batches
    }
    if not last:
        waited = [match.final_count for key, match in matches.items() if match.other_key.size or key not in incomplete]
        count = min([limit, *waited])
    if not count:
        return None
    found: dict[Key, ColumnBatch] = {}
    for key, match in matches.items():
        found[key], done = _take_matches(others[key].peek(), match, count)
        others[key].pop(done)
    gaps = {key: np.asarray(match.indices[:count] < 0) for key, match in matches.items()}
    return AlignedColumns(main.pop(count), found, {key: rows for key, rows in gaps.items() if rows.any()})


def _is_one_to_one(
    main: TopicBuffer, companion: TopicBuffer, count: int, *, by_publish_time: bool, is_simultaneous: bool
) -> bool:
    """Return True if the first messages of two topics match one by one."""
    if companion.count < count or not companion.batches:
        return False
    own, other = main.peek().split(count)[0], companion.peek().split(count)[0]
    alike = by_publish_time and bool((own.publish_time == other.publish_time).all())
    if is_simultaneous or not (own.stamp.any() and other.stamp.any()):
        return alike or (not by_publish_time and bool((own.stamp == other.stamp).all()))
    if not (own.stamp == other.stamp).all():
        return False
    # No message of navsense arrives before its time of validity, so a later message cannot match.
    return (
        alike
        or not by_publish_time
        or _is_increasing(own.stamp)
        or bool((own.publish_time >= other.publish_time).all())
    )


def _match_batches(main: ColumnBatch, other: ColumnBatch, *, by_publish_time: bool, is_simultaneous: bool) -> Matches:
    """Return the matches between two topics."""
    have_stamps = bool(main.stamp.any() and other.stamp.any())
    uses_publish_time = is_simultaneous
    if by_publish_time and not is_simultaneous:
        uses_publish_time = not have_stamps or bool((main.publish_time != main.log_time).any())
        if not (uses_publish_time or (_is_increasing(main.stamp) and _is_increasing(other.stamp))):
            uses_publish_time = bool(np.isin(main.publish_time, other.publish_time).any())
    key, other_key = (main.publish_time, other.publish_time) if uses_publish_time else (main.stamp, other.stamp)
    indices = _match_values(key, other_key)
    if not other_key.size:
        return Matches(indices, 0, key, other_key)
    final_count = int(np.searchsorted(np.maximum.accumulate(key), other_key.max(), side="left"))
    matched = np.flatnonzero(indices >= 0)
    return Matches(indices, max(final_count, int(matched[-1]) + 1 if matched.size else 0), key, other_key)


def _take_matches(other: ColumnBatch, match: Matches, count: int) -> tuple[ColumnBatch, int]:
    """Return the matches of the first `count` messages, and the number of used rows of `other`."""
    indices = match.indices[:count]
    matched = np.flatnonzero(indices >= 0)
    selected = indices[matched]
    log_time, publish_time, stamp = np.zeros((3, count), dtype=np.int64)
    for destination, source in ((log_time, other.log_time), (publish_time, other.publish_time), (stamp, other.stamp)):
        destination[matched] = source[selected]
    arrays = {name: make_blank_rows(array, count) for name, array in other.arrays.items()}
    for name, array in other.arrays.items():
        arrays[name][matched] = array[selected]
    used_count = int(np.searchsorted(np.maximum.accumulate(match.other_key), match.key[:count].max(), side="right"))
    return ColumnBatch(log_time, publish_time, stamp, arrays), max(used_count, int(indices.max()) + 1)


def _is_increasing(values: IntArray) -> bool:
    """Return True if each value is above the one before it."""
    return bool((values[1:] > values[:-1]).all())


def _match_values(own: IntArray, other: IntArray) -> IntArray:
    """Return for each value the index of an equal one in `other`, -1 without one."""
    indices = np.full(own.size, -1, dtype=np.int64)
    order, theirs = np.argsort(own, kind="stable"), np.argsort(other, kind="stable")
    values, first, count = np.unique(own[order], return_index=True, return_counts=True)
    start = np.searchsorted(other, values, side="left", sorter=theirs)
    alike = np.searchsorted(other, values, side="right", sorter=theirs) - start == count
    group = np.repeat(np.arange(values.size), count)
    fits = alike[group]
    indices[order[fits]] = theirs[(start[group] + np.arange(own.size) - first[group])[fits]]
    return indices

"""What the messages of one topic say, batch by batch: times, stamps and arrays that wait until they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from navsense.errors import RecordingError
from navsense.messages import generic
from navsense.messages.cdr import build_layout, read_stamps
from navsense.messages.repack import MAX_SHAPES, Definitions, MessageShape, ShapeCache
from navsense.recordings.channels import ROS1, MessageBatch, MessageChannel, SizeGroup, group_by_size
from navsense.recordings.rosbag.definitions import find_definitions
from navsense.typing import AnyArray, BoolArray, ByteArray, IntArray

Arrays = dict[str, AnyArray]

STAMP_FIELDS = ("header.stamp", "clock")
"""Where a message may have its stamp."""

OWN_TYPE_PREFIX = generic.PACKAGE
"""What the types begin with that are made of a sensor's outputs."""


@dataclass(eq=False)
class ColumnBatch:
    """Messages of one topic: when they arrived, the instants that they are about, their stamps (ns), what they say."""

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
    """Return batches that follow one another as one."""
    if len(parts) == 1:
        return parts[0]
    named = {name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays}
    log, time, stamp = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("log_time", "publish_time", "stamp")
    )
    return ColumnBatch(log, time, stamp, named)


class MessageDecoder:
    """Messages of one topic as rows of numbers by path."""

    def __init__(self, channel: MessageChannel) -> None:
        """Take the type's definition. Raises `RecordingError` where it is missing."""
        self._channel = channel
        parsed = channel.parse_type().definitions
        known = find_definitions(channel.type, parsed)
        self._definitions = known or format_definitions(channel.type, parsed)
        self.is_known = channel.is_ros and (known is not None or channel.type.startswith(OWN_TYPE_PREFIX))
        self._shapes = ShapeCache(channel.type, parsed, is_ros1=channel.encoding == ROS1)
        self._layouts: dict[MessageShape, tuple[int, np.dtype[np.void]]] = {}

    def decode(self, messages: Sequence[bytes]) -> list[tuple[MessageShape, IntArray, AnyArray]]:
        """Return messages by shape: which they are, and their rows. Raises `RecordingError` for one not of its type."""
        return self.decode_groups(group_by_size(messages))

    def decode_groups(self, groups: Sequence[SizeGroup]) -> list[tuple[MessageShape, IntArray, AnyArray]]:
        """Return messages that come by size as `blocks` does."""
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
        """Return the bytes of a message of a shape, and the type of such rows."""
        found = self._layouts.get(shape)
        if found is None:
            made = build_layout(self._channel.type, shape.strings, shape.lengths, self._definitions)
            found = len(made.template), made.dtype()
            if len(self._layouts) == MAX_SHAPES:
                self._layouts.clear()
            self._layouts[shape] = found
        return found


def is_readable(channel: MessageChannel) -> bool:
    """Tell whether the messages of a topic can be read: their type is defined, and as it is known."""
    try:
        return MessageDecoder(channel).is_known
    except RecordingError:
        return False


def has_same_type(one: MessageChannel, other: MessageChannel) -> bool:
    """Tell whether the messages of two topics are read alike."""
    if one is other or one.key == other.key:
        return True
    if (one.type, one.encoding) != (other.type, other.encoding):
        return False
    try:
        return one.parse_type().definitions == other.parse_type().definitions
    except RecordingError:
        return False


def _drop_empty(batch: MessageBatch) -> MessageBatch:
    """Return the messages that have any bytes."""
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
    """One topic that is read: what makes arrays of its rows, and the batches that wait."""

    channel: MessageChannel
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
        """Tell whether the type is defined as it is known."""
        return self._decoder.is_known

    def append(self, batch: MessageBatch) -> None:
        """Take messages; where they say nothing that is read, it is silent from then on. Empty ones are left out.

        Raises `RecordingError` for one that is not of its type, or has arrays of another shape.
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
                    # Not the rows themselves, which hold all the bytes of all messages.
                    found[name] = array if array.flags.owndata else array.copy()
                else:
                    found.setdefault(name, make_blank_rows(array, count))[places] = array
        self.has_no_arrays = not found
        self.batches.append(ColumnBatch(batch.log_time, batch.publish_time, stamp, found))
        self.count += count

    def pop(self, count: int) -> ColumnBatch:
        """Return the first `count` rows that wait; there must be as many."""
        whole = join_columns(self.batches)
        first, rest = whole.split(count)
        self.count -= count
        self.batches = [rest]
        return first

    def peek(self) -> ColumnBatch:
        """Return all rows that wait; there must have been any."""
        self.batches = [join_columns(self.batches)]
        return self.batches[0]


def make_blank_rows(array: AnyArray, count: int) -> AnyArray:
    """Return rows like those of an array: NaN, of whole numbers 0."""
    return np.full((count, *array.shape[1:]), np.nan if array.dtype.kind == "f" else 0, dtype=array.dtype)


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, eq=False)
class AlignedColumns(Generic[Key]):
    """Messages of one topic, those of others that belong to them, and of which rows (n,) others have none."""

    main: ColumnBatch
    others: dict[Key, ColumnBatch]
    missing: dict[Key, BoolArray] = field(default_factory=dict)


class Matches(NamedTuple):
    """For each message of one topic which of another belongs to it, -1 for none (n,), and by what both were paired.

    `known` is for how many messages nothing that comes later changes it.
    """

    places: IntArray
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
    """Take what is whole off some topics, at most `limit` messages of the first; None for nothing.

    With `last` whatever is there is whole. Topics that are `spoilt` are waited for as long as they come; `instants`
    where the times of messages are those that they are about. Those that come `together` with the first topic's have
    its times where `instants`, and stamps that may be their own: an echo of the water is not that of the bottom.
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
    paired = {
        key: _match_batches(waiting, one.peek(), by_publish_time=by_publish_time, is_simultaneous=at_once[key])
        for key, one in others.items()
        if one.batches
    }
    if not last:
        waited = [pairs.final_count for key, pairs in paired.items() if pairs.other_key.size or key not in incomplete]
        count = min([limit, *waited])
    if not count:
        return None
    found: dict[Key, ColumnBatch] = {}
    for key, pairs in paired.items():
        found[key], done = _take_matches(others[key].peek(), pairs, count)
        others[key].pop(done)
    gaps = {key: np.asarray(pairs.places[:count] < 0) for key, pairs in paired.items()}
    return AlignedColumns(main.pop(count), found, {key: rows for key, rows in gaps.items() if rows.any()})


def _is_one_to_one(
    main: TopicBuffer, companion: TopicBuffer, count: int, *, by_publish_time: bool, is_simultaneous: bool
) -> bool:
    """Tell whether the first messages of two topics belong together one by one."""
    if companion.count < count or not companion.batches:
        return False
    own, other = main.peek().split(count)[0], companion.peek().split(count)[0]
    alike = by_publish_time and bool((own.publish_time == other.publish_time).all())
    if is_simultaneous or not (own.stamp.any() and other.stamp.any()):
        return alike or (not by_publish_time and bool((own.stamp == other.stamp).all()))
    if not (own.stamp == other.stamp).all():
        return False
    # No message of navsense arrives before the instant that it is about.
    return (
        alike
        or not by_publish_time
        or _is_increasing(own.stamp)
        or bool((own.publish_time >= other.publish_time).all())
    )


def _match_batches(main: ColumnBatch, other: ColumnBatch, *, by_publish_time: bool, is_simultaneous: bool) -> Matches:
    """Return which messages belong together."""
    stamped = bool(main.stamp.any() and other.stamp.any())
    is_true = is_simultaneous or (by_publish_time and (not stamped or bool((main.publish_time != main.log_time).any())))
    if by_publish_time and stamped and not is_true and not (_is_increasing(main.stamp) and _is_increasing(other.stamp)):
        is_true = bool(np.isin(main.publish_time, other.publish_time).any())
    key, theirs = (main.publish_time, other.publish_time) if is_true else (main.stamp, other.stamp)
    places = _match_values(key, theirs)
    if not theirs.size:
        return Matches(places, 0, key, theirs)
    passed = int(np.searchsorted(np.maximum.accumulate(key), theirs.max(), side="left"))
    found = np.flatnonzero(places >= 0)
    return Matches(places, max(passed, int(found[-1]) + 1 if found.size else 0), key, theirs)


def _take_matches(other: ColumnBatch, pairs: Matches, count: int) -> tuple[ColumnBatch, int]:
    """Return what belongs to the first `count` messages, blank where nothing does, and how many of `other` are done."""
    places = pairs.places[:count]
    has = np.flatnonzero(places >= 0)
    chosen = places[has]
    log, time, stamp = np.zeros((3, count), dtype=np.int64)
    for to, part in ((log, other.log_time), (time, other.publish_time), (stamp, other.stamp)):
        to[has] = part[chosen]
    arrays = {name: make_blank_rows(array, count) for name, array in other.arrays.items()}
    for name, array in other.arrays.items():
        arrays[name][has] = array[chosen]
    passed = int(np.searchsorted(np.maximum.accumulate(pairs.other_key), pairs.key[:count].max(), side="right"))
    return ColumnBatch(log, time, stamp, arrays), max(passed, int(places.max()) + 1)


def _is_increasing(values: IntArray) -> bool:
    """Tell whether each value is above the one before it."""
    return bool((values[1:] > values[:-1]).all())


def _match_values(own: IntArray, other: IntArray) -> IntArray:
    """Return for each value the place of the same among others, -1 for none."""
    places = np.full(own.size, -1, dtype=np.int64)
    order, theirs = np.argsort(own, kind="stable"), np.argsort(other, kind="stable")
    values, first, count = np.unique(own[order], return_index=True, return_counts=True)
    start = np.searchsorted(other, values, side="left", sorter=theirs)
    alike = np.searchsorted(other, values, side="right", sorter=theirs) - start == count
    group = np.repeat(np.arange(values.size), count)
    fits = alike[group]
    places[order[fits]] = theirs[(start[group] + np.arange(own.size) - first[group])[fits]]
    return places

"""Columns of messages: decoding, buffering by topic, and matching of topics by stamp."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.typing import AnyArray, BoolArray, ByteArray, IntArray
from navsense.messages import generic
from navsense.messages.cdr import MessageRows, build_layout, read_stamps
from navsense.messages.repack import MAX_SHAPES, Definitions, MessageShape, ShapeCache
from navsense.recordings.channels import ROS1, Channel, MessageBatch, SizeGroup
from navsense.recordings.rosbag.definitions import find_definitions

Arrays = dict[str, AnyArray]

STAMP_FIELDS = ("header.stamp", "clock")
"""Paths of the stamp of a message."""

GENERIC_TYPE_PREFIX = generic.PACKAGE
"""Prefix of the message types that navsense makes from the outputs of a sensor."""


@dataclass(eq=False)
class ColumnBatch:
    """Decoded messages of one topic: log times, publish times and stamps (n,) ns, and their arrays by name."""

    log_time: IntArray
    publish_time: IntArray
    stamp: IntArray
    arrays: Arrays

    def select(self, rows: slice) -> ColumnBatch:
        """Return some of the rows, as views."""
        arrays = {name: array[rows] for name, array in self.arrays.items()}
        return ColumnBatch(self.log_time[rows], self.publish_time[rows], self.stamp[rows], arrays)

    def split(self, count: int) -> tuple[ColumnBatch, ColumnBatch]:
        """Return the first `count` rows, and the rest."""
        return self.select(slice(count)), self.select(slice(count, None))


def join_columns(parts: Sequence[ColumnBatch]) -> ColumnBatch:
    """Return consecutive batches as one."""
    if len(parts) == 1:
        return parts[0]
    return ColumnBatch(
        np.concatenate([part.log_time for part in parts]),
        np.concatenate([part.publish_time for part in parts]),
        np.concatenate([part.stamp for part in parts]),
        {name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays},
    )


class MessageDecoder:
    """Decodes the messages of one topic to rows of numbers by path."""

    def __init__(self, channel: Channel) -> None:
        """Parse the definition of the type. Raises `RecordingError` if it is missing."""
        self._channel = channel
        parsed = channel.parse_type().definitions
        known = find_definitions(channel.type, parsed)
        self._definitions = known or format_definitions(channel.type, parsed)
        self.has_expected_definition = channel.is_ros and (
            known is not None or channel.type.startswith(GENERIC_TYPE_PREFIX)
        )
        # The shapes have the strings and array lengths that a layout needs, also of messages that are not converted.
        self._shapes = ShapeCache(channel.type, parsed, is_ros1=channel.encoding == ROS1)
        self._layouts: dict[MessageShape, tuple[int, np.dtype[np.void]]] = {}

    def decode_groups(self, groups: Sequence[SizeGroup]) -> list[tuple[MessageShape, IntArray, AnyArray]]:
        """Return messages by shape: their indices and rows. Raises `RecordingError` for a message of another type."""
        try:
            blocks = [block for indices, raw in groups for block in self._shapes.split_by_shape(indices, raw)]
            return [(shape, indices, self._view_rows(shape, raw)) for shape, indices, raw in blocks]
        except ValueError as error:
            raise RecordingError(f"topic {self._channel.topic} of {self._channel.type}: {error}") from error

    def _view_rows(self, shape: MessageShape, raw: ByteArray) -> AnyArray:
        """Return messages (n, size) of one shape as rows of numbers."""
        if self._channel.encoding == ROS1:
            raw = shape.convert(raw)
        if shape not in self._layouts:
            layout = build_layout(self._channel.type, shape.strings, shape.lengths, self._definitions)
            if len(self._layouts) == MAX_SHAPES:
                self._layouts.clear()
            self._layouts[shape] = len(layout.template), layout.dtype
        size, dtype = self._layouts[shape]
        if raw.shape[1] < size:
            raise ValueError("a message is of another size than its definition")
        rows: MessageRows = raw[:, :size].view(dtype)[:, 0]
        return rows


def is_readable(channel: Channel) -> bool:
    """Return True if navsense has this definition of the type, or the type is one of `navsense_msgs`."""
    try:
        return MessageDecoder(channel).has_expected_definition
    except RecordingError:
        return False


def has_same_type(first: Channel, second: Channel) -> bool:
    """Return True if two channels have the same type with the same definition."""
    if first is second or first.key == second.key:
        return True
    if (first.type, first.encoding) != (second.type, second.encoding):
        return False
    try:
        return first.parse_type().definitions == second.parse_type().definitions
    except RecordingError:
        return False


def drop_empty(batch: MessageBatch) -> MessageBatch:
    """Return the messages that are not empty."""
    if all(rows.shape[1] for _, rows in batch.size_groups):
        return batch
    is_kept = np.zeros(batch.log_time.size, dtype=np.bool_)
    groups = [(indices, rows) for indices, rows in batch.size_groups if rows.shape[1]]
    for indices, _ in groups:
        is_kept[indices] = True
    new_index = np.cumsum(is_kept) - 1
    groups = [(new_index[indices], rows) for indices, rows in groups]
    return MessageBatch(batch.channel, batch.log_time[is_kept], batch.publish_time[is_kept], groups)


def format_definitions(message_type: str, parsed: Definitions) -> dict[str, str]:
    """Return the lines of the parsed definitions of a type and of the types in it."""
    texts: dict[str, str] = {}
    pending = [message_type]
    while pending:
        kind = pending.pop()
        if kind in texts or kind not in parsed:
            continue
        lines = []
        for member in parsed[kind]:
            count = "" if member.length is None else "[]" if member.length < 0 else f"[{member.length}]"
            lines.append(f"{member.type.replace('/msg/', '/')}{count} {member.name}")
            pending.append(member.type)
        texts[kind] = "\n".join(lines)
    return texts


def read_stamp_field(rows: MessageRows) -> IntArray | int:
    """Return the stamps (n,) ns of decoded messages; 0 for a type without stamp."""
    path = next((path for path in STAMP_FIELDS if f"{path}.sec" in (rows.dtype.names or ())), None)
    return read_stamps(rows, path) if path else 0


@dataclass(eq=False)
class TopicBuffer:
    """Buffer of one topic.

    extract: makes arrays from rows.
    find_unreadable: returns the arrays that messages of a shape hold in another way, with the reason. They are NaN.
    batches: decoded messages that no reading has used yet.
    unreadable: the reasons of such arrays.
    """

    channel: Channel
    extract: Callable[[AnyArray], Arrays]
    find_unreadable: Callable[[MessageShape], Mapping[str, str]] = lambda _: {}
    batches: list[ColumnBatch] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    count: int = 0
    has_no_arrays: bool = False
    empty_count: int = 0
    _axes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the decoder."""
        self._decoder = MessageDecoder(self.channel)

    @property
    def has_expected_definition(self) -> bool:
        """True if navsense has this definition of the type, or the type is one of `navsense_msgs`."""
        return self._decoder.has_expected_definition

    def append(self, batch: MessageBatch) -> None:
        """Add messages. If `extract` returns no arrays for the first messages, later ones are ignored.

        Empty messages are skipped and counted. Raises `RecordingError` for a message of another type, and for arrays of
        another shape.
        """
        if self.has_no_arrays:
            return
        self.empty_count += batch.log_time.size
        batch = drop_empty(batch)
        count = batch.log_time.size
        self.empty_count -= count
        if not count:
            return
        stamp, arrays = np.zeros(count, dtype=np.int64), Arrays()
        for shape, indices, rows in self._decoder.decode_groups(batch.size_groups):
            stamp[indices] = read_stamp_field(rows)
            extracted, unreadable = self.extract(rows), self.find_unreadable(shape)
            self.unreadable.update(unreadable)
            extracted |= {name: np.full_like(extracted[name], math.nan) for name in unreadable}
            for name, array in extracted.items():
                if self._axes.setdefault(name, array.shape[1:]) != array.shape[1:]:
                    raise RecordingError(f"topic {self.channel.topic}: {name} changes its shape within the recording")
                if indices.size == count:
                    # A copy, because a view would keep all bytes of all messages in memory.
                    arrays[name] = array if array.flags.owndata else array.copy()
                else:
                    arrays.setdefault(name, make_blank_rows(array, count))[indices] = array
        self.has_no_arrays = not arrays
        self.batches.append(ColumnBatch(batch.log_time, batch.publish_time, stamp, arrays))
        self.count += count

    def pop(self, count: int) -> ColumnBatch:
        """Remove and return the first `count` rows; there must be as many."""
        first, rest = self.peek().split(count)
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
    """Messages of one topic, the matching messages of its companions, and the rows (n,) without a match."""

    main: ColumnBatch
    companions: dict[Key, ColumnBatch]
    missing: dict[Key, BoolArray] = field(default_factory=dict)


class Matches(NamedTuple):
    """Matches between two topics.

    indices: (n,), indices of the matching messages, -1 without one.
    final_count: number of leading messages whose matches later messages cannot change.
    times, companion_times: times (ns) by which the topics were matched.
    """

    indices: IntArray
    final_count: int
    times: IntArray
    companion_times: IntArray


def align_columns(
    main: TopicBuffer,
    companions: Mapping[Key, TopicBuffer],
    limit: int,
    incomplete: Collection[Key],
    *,
    has_validity_times: bool,
    last: bool,
    with_own_stamps: Collection[Key] = (),
) -> AlignedColumns[Key] | None:
    """Remove and return the complete rows of some topics, at most `limit` messages of `main`; None without any.

    A row is complete if all its companion messages are read. A message and its companions have the same stamp, and in
    MCAP the same publish time. If several messages have the same stamp, they are matched in order. If the two topics
    have different numbers of them, they are not matched.

    incomplete: topics in which messages are missing. The function does not wait for them.
    has_validity_times: publish times are times of validity.
    last: no messages follow. All rows are complete.
    with_own_stamps: topics with the publish times of `main` and possibly other stamps (a DVL's water track).
    """
    count = (
        limit
        if last
        else min([limit, *(companion.count for key, companion in companions.items() if key not in incomplete)])
    )
    if not count:
        return None
    rules = {key: MatchRule(has_validity_times, has_validity_times and key in with_own_stamps) for key in companions}
    if all(_is_one_to_one(main, companion, count, rules[key]) for key, companion in companions.items()):
        return AlignedColumns(main.pop(count), {key: companion.pop(count) for key, companion in companions.items()})
    matches = {
        key: _match_batches(main.peek(), companion.peek(), rules[key])
        for key, companion in companions.items()
        if companion.batches
    }
    if not last:
        final = [
            match.final_count for key, match in matches.items() if match.companion_times.size or key not in incomplete
        ]
        count = min([limit, *final])
    if not count:
        return None
    matched: dict[Key, ColumnBatch] = {}
    for key, match in matches.items():
        matched[key], used_count = _take_matches(companions[key].peek(), match, count)
        companions[key].pop(used_count)
    gaps = {key: np.asarray(match.indices[:count] < 0) for key, match in matches.items()}
    return AlignedColumns(main.pop(count), matched, {key: rows for key, rows in gaps.items() if rows.any()})


class MatchRule(NamedTuple):
    """How the messages of two topics are matched.

    has_validity_times: publish times are times of validity.
    has_own_stamps: matching messages have the same publish time and possibly other stamps.
    """

    has_validity_times: bool
    has_own_stamps: bool


def _is_one_to_one(main: TopicBuffer, companion: TopicBuffer, count: int, rule: MatchRule) -> bool:
    """Return True if the first messages of two topics match one by one."""
    if companion.count < count or not companion.batches:
        return False
    main_rows, companion_rows = main.peek().select(slice(count)), companion.peek().select(slice(count))
    has_equal_times = rule.has_validity_times and bool((main_rows.publish_time == companion_rows.publish_time).all())
    has_equal_stamps = bool((main_rows.stamp == companion_rows.stamp).all())
    if rule.has_own_stamps or not (main_rows.stamp.any() and companion_rows.stamp.any()):
        return has_equal_times or (not rule.has_validity_times and has_equal_stamps)
    # No message of navsense arrives before its time of validity, so a later message cannot match.
    return has_equal_stamps and (
        has_equal_times
        or not rule.has_validity_times
        or _is_increasing(main_rows.stamp)
        or bool((main_rows.publish_time >= companion_rows.publish_time).all())
    )


def _match_batches(main: ColumnBatch, companion: ColumnBatch, rule: MatchRule) -> Matches:
    """Return the matches between two topics, by publish time or by stamp.

    Messages of other programs are matched by stamp. In a recording of navsense, publish times identify a message also
    if its clock repeats a stamp. But a bag has no publish times: they are its log times, which differ with the latency.
    If all publish times are log times, stamps are used if they increase, or if no publish times are equal.
    """
    uses_publish_time = rule.has_own_stamps
    if rule.has_validity_times and not rule.has_own_stamps:
        have_stamps = bool(main.stamp.any() and companion.stamp.any())
        uses_publish_time = not have_stamps or bool((main.publish_time != main.log_time).any())
        if not (uses_publish_time or (_is_increasing(main.stamp) and _is_increasing(companion.stamp))):
            uses_publish_time = bool(np.isin(main.publish_time, companion.publish_time).any())
    times, companion_times = (
        (main.publish_time, companion.publish_time) if uses_publish_time else (main.stamp, companion.stamp)
    )
    indices = _match_values(times, companion_times)
    if not companion_times.size:
        return Matches(indices, 0, times, companion_times)
    # `companion` is read up to its largest time. A message of `main` from that time on may still get a match, unless a
    # message after it already has one.
    final_count = int(np.searchsorted(np.maximum.accumulate(times), companion_times.max(), side="left"))
    matched = np.flatnonzero(indices >= 0)
    return Matches(indices, max(final_count, int(matched[-1]) + 1 if matched.size else 0), times, companion_times)


def _take_matches(companion: ColumnBatch, match: Matches, count: int) -> tuple[ColumnBatch, int]:
    """Return the matches of the first `count` messages, and the number of used rows of `companion`."""
    indices = match.indices[:count]
    matched = np.flatnonzero(indices >= 0)
    selected = indices[matched]
    times = np.zeros((3, count), dtype=np.int64)
    for destination, source in zip(times, (companion.log_time, companion.publish_time, companion.stamp), strict=True):
        destination[matched] = source[selected]
    arrays = {name: make_blank_rows(array, count) for name, array in companion.arrays.items()}
    for name, array in companion.arrays.items():
        arrays[name][matched] = array[selected]
    # Rows of `companion` with a time up to the last of these messages are used: no later message matches them.
    used_count = int(
        np.searchsorted(np.maximum.accumulate(match.companion_times), match.times[:count].max(), side="right")
    )
    return ColumnBatch(times[0], times[1], times[2], arrays), max(used_count, int(indices.max()) + 1)


def _is_increasing(values: IntArray) -> bool:
    """Return True if each value is above the one before it."""
    return bool((values[1:] > values[:-1]).all())


def _match_values(main: IntArray, companion: IntArray) -> IntArray:
    """Return for each value the index of an equal one in `companion`, -1 without one."""
    indices = np.full(main.size, -1, dtype=np.int64)
    order, companion_order = np.argsort(main, kind="stable"), np.argsort(companion, kind="stable")
    values, first, count = np.unique(main[order], return_index=True, return_counts=True)
    companion_first = np.searchsorted(companion, values, side="left", sorter=companion_order)
    companion_count = np.searchsorted(companion, values, side="right", sorter=companion_order) - companion_first
    # Of several equal values, the i-th one matches the i-th one, if there are as many in both.
    group = np.repeat(np.arange(values.size), count)
    is_matched = (companion_count == count)[group]
    indices[order[is_matched]] = companion_order[
        (companion_first[group] + np.arange(main.size) - first[group])[is_matched]
    ]
    return indices

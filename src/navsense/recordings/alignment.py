"""Which messages of one topic belong to which of another: by their stamps or instants, whatever was lost on the way.

A message and what stands beside it have the same stamp, and in MCAP the same instant. Messages that share one stamp are
paired in order where both topics have as many of it, and not at all otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from navsense.recordings.columns import ColumnBatch, TopicBuffer, make_blank_rows
from navsense.typing import BoolArray, IntArray

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

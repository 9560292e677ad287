"""Which messages of one topic belong to which of another: by their stamps or instants, whatever was lost on the way.

A message and what stands beside it have the same stamp, and in MCAP the same instant. Messages that share one stamp are
paired in order where both topics have as many of it, and not at all otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from navsense.sinks.columns import Batch, Column, blank
from navsense.typing import BoolArray, IntArray

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Popped(Generic[Key]):
    """Messages of one topic, those of others that belong to them, and of which rows (n,) others have none."""

    own: Batch
    others: dict[Key, Batch]
    missing: dict[Key, BoolArray] = field(default_factory=dict)


class Pairs(NamedTuple):
    """For each message of one topic which of another belongs to it, -1 for none (n,), and by what both were paired.

    `known` is for how many messages nothing that comes later changes it.
    """

    places: IntArray
    known: int
    key: IntArray
    other: IntArray


def popped(
    own: Column,
    others: Mapping[Key, Column],
    limit: int,
    spoilt: Collection[Key],
    *,
    instants: bool,
    last: bool,
    together: Collection[Key] = (),
) -> Popped[Key] | None:
    """Take what is whole off some topics, at most `limit` messages of the first; None for nothing.

    With `last` whatever is there is whole. Topics that are `spoilt` are waited for as long as they come; `instants`
    where the times of messages are those that they are about. Those that come `together` with the first topic's have
    its times where `instants`, and stamps that may be their own: an echo of the water is not that of the bottom.
    """
    count = limit if last else min([limit, *(one.count for key, one in others.items() if key not in spoilt)])
    if not count:
        return None
    at_once = {key: instants and key in together for key in others}
    if all(_is_in_step(own, one, count, instants=instants, at_once=at_once[key]) for key, one in others.items()):
        return Popped(own.pop(count), {key: one.pop(count) for key, one in others.items()})
    waiting = own.waiting()
    paired = {
        key: _pairs(waiting, one.waiting(), instants=instants, at_once=at_once[key])
        for key, one in others.items()
        if one.parts
    }
    if not last:
        waited = [pairs.known for key, pairs in paired.items() if pairs.other.size or key not in spoilt]
        count = min([limit, *waited])
    if not count:
        return None
    found: dict[Key, Batch] = {}
    for key, pairs in paired.items():
        found[key], done = _taken(others[key].waiting(), pairs, count)
        others[key].pop(done)
    gaps = {key: np.asarray(pairs.places[:count] < 0) for key, pairs in paired.items()}
    return Popped(own.pop(count), found, {key: rows for key, rows in gaps.items() if rows.any()})


def _is_in_step(one: Column, beside: Column, count: int, *, instants: bool, at_once: bool) -> bool:
    """Tell whether the first messages of two topics belong together one by one."""
    if beside.count < count or not beside.parts:
        return False
    own, other = one.waiting().cut(count)[0], beside.waiting().cut(count)[0]
    alike = instants and bool((own.time == other.time).all())
    if at_once or not (own.stamp.any() and other.stamp.any()):
        return alike or (not instants and bool((own.stamp == other.stamp).all()))
    if not (own.stamp == other.stamp).all():
        return False
    # No message of navsense arrives before the instant that it is about.
    return alike or not instants or _rises(own.stamp) or bool((own.time >= other.time).all())


def _pairs(own: Batch, other: Batch, *, instants: bool, at_once: bool) -> Pairs:
    """Return which messages belong together."""
    stamped = bool(own.stamp.any() and other.stamp.any())
    is_true = at_once or (instants and (not stamped or bool((own.time != own.log).any())))
    if instants and stamped and not is_true and not (_rises(own.stamp) and _rises(other.stamp)):
        is_true = bool(np.isin(own.time, other.time).any())
    key, theirs = (own.time, other.time) if is_true else (own.stamp, other.stamp)
    places = _matched(key, theirs)
    if not theirs.size:
        return Pairs(places, 0, key, theirs)
    passed = int(np.searchsorted(np.maximum.accumulate(key), theirs.max(), side="left"))
    found = np.flatnonzero(places >= 0)
    return Pairs(places, max(passed, int(found[-1]) + 1 if found.size else 0), key, theirs)


def _taken(other: Batch, pairs: Pairs, count: int) -> tuple[Batch, int]:
    """Return what belongs to the first `count` messages, blank where nothing does, and how many of `other` are done."""
    places = pairs.places[:count]
    has = np.flatnonzero(places >= 0)
    chosen = places[has]
    log, time, stamp = np.zeros((3, count), dtype=np.int64)
    for to, part in ((log, other.log), (time, other.time), (stamp, other.stamp)):
        to[has] = part[chosen]
    arrays = {name: blank(array, count) for name, array in other.arrays.items()}
    for name, array in other.arrays.items():
        arrays[name][has] = array[chosen]
    passed = int(np.searchsorted(np.maximum.accumulate(pairs.other), pairs.key[:count].max(), side="right"))
    return Batch(log, time, stamp, arrays), max(passed, int(places.max()) + 1)


def _rises(values: IntArray) -> bool:
    """Tell whether each value is above the one before it."""
    return bool((values[1:] > values[:-1]).all())


def _matched(own: IntArray, other: IntArray) -> IntArray:
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

"""One prepared run: who moves how, which stations there are, and time cut into windows that fit the cache."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from navsense.errors import SimulationError
from navsense.motion.base import Motion
from navsense.series import TRUTH_ARRAYS, Reading, Slab, Truth, frozen
from navsense.station import (
    Motions,
    Station,
    check_duration,
    ideal_of,
    link_motion,
    motions_of,
    reading,
    sensor_motion,
    stations,
)
from navsense.streams import BLOCK, checked_seed
from navsense.ticks import Ticks, checked_rate, span
from navsense.world import World

LONGEST_WINDOW = 10.0
"""Longest span (s) of simulated time that is handed on at once."""

TRUTH_RATE = 100.0
"""Rate (Hz) of the ground truth of links, unless asked otherwise."""


def checked_duration(duration: float) -> float:
    """Return the duration (s); raise `SimulationError` unless it is finite and above 0."""
    if not (isinstance(duration, int | float | np.number) and math.isfinite(duration) and duration > 0.0):
        raise SimulationError("duration", duration, allowed="must be a finite number of seconds > 0")
    return float(duration)


def checked_epoch(epoch: int) -> int:
    """Return the epoch (s); raise `SimulationError` unless it is an integer from 0 to 2^31 - 1."""
    if isinstance(epoch, bool) or not isinstance(epoch, int | np.integer) or not 0 <= epoch < 2**31:
        raise SimulationError("epoch", epoch, allowed=f"must be an integer of seconds from 0 to {2**31 - 1}")
    return int(epoch)


@dataclass(frozen=True, eq=False)
class Session:
    """A world with its motions resolved and all stations drawn."""

    world: World
    duration: float
    seed: int
    runs: Sequence[int]
    epoch: int
    truth_rate: float
    places: Mapping[str, Motion]
    links: Mapping[str, Motion]

    def stations(self, *, ahead: int = 0) -> dict[str, tuple[Station, ...]]:
        """Draw and return every sensor's stations, one for each run, by the sensor's full name."""
        return stations(self.world, self.seed, self.runs, ahead=ahead)

    def windows(self) -> Iterator[tuple[float, float]]:
        """Yield the spans [start, end) s: at most `BLOCK` samples of the fastest sensor and `LONGEST_WINDOW` each."""
        fastest = max([self.truth_rate, *(sensor.rate for sensor in self.world.sensors)])
        length = min(BLOCK / fastest, LONGEST_WINDOW)
        count = max(math.ceil(self.duration / length), 1)
        for n in range(count):
            end = self.duration if n == count - 1 else (n + 1) * length
            if n * length < end:
                yield n * length, end

    def truth(self, start: float, end: float) -> dict[str, Truth]:
        """Return the ground truth of every link for start <= t < end (s)."""
        ticks = span(start, end, self.truth_rate)
        return {name: truth_of(name, motion, ticks, self.epoch) for name, motion in self.links.items()}

    def readings(self, start: float, end: float, drawn: Mapping[str, tuple[Station, ...]]) -> dict[str, Reading]:
        """Return what the first stations drawn read for start <= t < end (s), sensor by sensor; forwards only."""
        found: dict[str, Reading] = {}
        for sensor in self.world.sensors:
            ticks = span(start, end, sensor.rate)
            if len(ticks):
                ideal = ideal_of(sensor, self.places[sensor.name], self.world.environment, ticks)
                block = drawn[sensor.name][0].measure(ticks, ideal)
                found[sensor.name] = reading(sensor, ticks, ideal, block, self.epoch)
        return found

    def slabs(self) -> Iterator[Slab]:
        """Yield the whole run of one robot, window after window."""
        drawn = self.stations()
        for start, end in self.windows():
            yield Slab(start, end, self.readings(start, end, drawn), self.truth(start, end))


def truth_of(name: str, motion: Motion, ticks: Ticks, epoch: int) -> Truth:
    """Return a motion as the truth of the link `name`, read-only."""
    block = motion.at(ticks.time)
    for array in (ticks.time, *block.arrays):
        frozen(array)
    return Truth(name, ticks.time, **dict(zip(TRUTH_ARRAYS, block.arrays, strict=True)), epoch=epoch)


def longest(motions: Motions) -> float:
    """Return how long (s) the motions of the world last; raise `SimulationError` where all go on for ever."""
    end = min((motion.end for motion in motions.values()), default=math.inf)
    if math.isinf(end):
        allowed = "must be given: nothing in this world ends by itself"
        raise SimulationError("duration", None, allowed=allowed, remedy="--duration S, or duration=S")
    return end


def prepare(
    world: World,
    duration: float | None,
    *,
    seed: int,
    runs: Sequence[int] = (0,),
    motions: Mapping[str, Motion] | None = None,
    epoch: int = 0,
    truth_rate: float = TRUTH_RATE,
    live: bool = False,
) -> Session:
    """Return a session, everything checked before the first sample; a live one has no end of its own.

    The session's world is the one given with the motions in force, so that whoever writes it down says what moved.
    """
    given = motions or {}
    moving = motions_of(world, given)
    world = replace(world, models=tuple(replace(m, motion=given.get(m.name, m.motion)) for m in world.models))
    if live:
        seconds = math.inf
    else:
        seconds = checked_duration(longest(moving) if duration is None else duration)
        check_duration(moving, seconds)
    return Session(
        world=world,
        duration=seconds,
        seed=checked_seed(seed),
        runs=runs,
        epoch=checked_epoch(epoch),
        truth_rate=checked_rate(truth_rate, "truth_rate"),
        places={sensor.name: sensor_motion(world, sensor, moving) for sensor in world.sensors},
        links={link.name: link_motion(model, link, moving) for model in world.models for link in model.links},
    )

"""Where the vehicles of a world go: instants, places, and the way between them.

    way_k = sum of |p_i - p_(i-1)|,  i = 1 .. k

of the model's canonical link in the world, in metres, whatever its direction: a climb counts as a way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from navsense.errors import SimulationError
from navsense.motion.base import Motion
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import Trajectory
from navsense.sensor_run import Motions
from navsense.typing import FloatArray, Times, Vectors
from navsense.world import Model, World

MOST, LEAST, TOGETHER = 4000, 200, 12000
"""Instants of a track that is alone, of each of many, and of all tracks together."""


@dataclass(frozen=True, eq=False)
class Track:
    """A vehicle at instants `time` (n,) s: `position` (n, 3) m in the world; one row where it stands still."""

    name: str
    time: Times
    position: Vectors

    @cached_property
    def way(self) -> FloatArray:
        """Return the way (n,) m from the start on."""
        steps = np.sqrt((np.diff(self.position, axis=0) ** 2).sum(axis=1))
        return np.concatenate(([0.0], np.cumsum(steps)))

    @property
    def moves(self) -> bool:
        """Return whether the vehicle leaves its place."""
        return self.time.size > 1


def vehicles_of(world: World, motions: Motions) -> tuple[Model, ...]:
    """Return the models that move or carry a sensor; where there are none, those without a surface."""
    carriers = {sensor.model for sensor in world.sensors}
    found = [m for m in world.models if m.name in carriers or not isinstance(motions[m.name], Stationary)]
    solid = {solid.link for solid in world.solids}
    bare = [m for m in world.models if not solid.intersection(link.name for link in m.links)]
    return tuple(found or bare)


def tracks_of(models: tuple[Model, ...], motions: Motions, duration: float | None) -> tuple[Track, ...]:
    """Return the tracks of models from t = 0 to `duration` (s).

    Without a duration each goes to the end of its motion. A loop goes once round at most. Raises `SimulationError` for
    another motion that never ends.
    """
    count = min(max(TOGETHER // max(len(models), 1), LEAST), MOST)
    return tuple(_track(model.name, motions[model.name], duration, count) for model in models)


def _track(name: str, motion: Motion, duration: float | None, count: int) -> Track:
    """Return one track of `count` rows, or of one where the vehicle never leaves its place."""
    last = _last(name, motion, duration)
    time = np.linspace(0.0, last, count) if last > 0.0 else np.zeros(1)
    place = motion.at(time).position_w
    if (place == place[0]).all():
        time, place = time[:1], place[:1]
    return Track(name, time, place)


def _last(name: str, motion: Motion, duration: float | None) -> float:
    """Return the last instant (s) of a track."""
    if isinstance(motion, Stationary):
        return 0.0
    if isinstance(motion, Trajectory) and motion.loop:  # its later rounds lie on the first
        return min(_round(motion), math.inf if duration is None else duration)
    if duration is not None:
        return duration
    if math.isinf(motion.end):
        allowed = f"must be given: the motion of {name} never ends"
        raise SimulationError("duration", None, allowed=allowed, remedy="--duration S, or duration=S")
    return motion.end


def _round(loop: Trajectory) -> float:
    """Return how long (s) a loop takes to come back on its track: half its period where that goes round twice."""
    period = float(loop.knots[-1])
    first = np.linspace(0.0, 0.5 * period, 65)
    places, again = loop.at(first).position_w, loop.at(first + 0.5 * period).position_w
    twice = np.allclose(places, again, rtol=0.0, atol=1e-9 * (1.0 + float(np.abs(places).max())))
    return 0.5 * period if twice else period

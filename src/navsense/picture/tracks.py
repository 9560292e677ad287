"""Tracks of the vehicles of a world: positions of their canonical links over time, and the distance along them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from navsense.core.errors import SimulationError
from navsense.core.typing import FloatArray, Times, Vectors
from navsense.motion.base import Motion
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import Trajectory
from navsense.simulation.motions import Motions
from navsense.world import Model, World

MAX_ROWS, MIN_ROWS, TOTAL_ROWS = 4000, 200, 12000
"""Rows of a single track, of each of many, and of all tracks together."""


@dataclass(frozen=True, eq=False)
class Track:
    """A vehicle over time.

    time: (n,) s; `make_tracks` returns one row for a vehicle that stands still
    position: (n, 3) m in the world
    ground: (n,) m, height of the ground below; NaN where there is none, empty if it is not computed
    """

    name: str
    time: Times
    position: Vectors
    ground: FloatArray = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def distance(self) -> FloatArray:
        """Distance (n,) m along the track in three dimensions: the sum of |p_i - p_(i-1)|."""
        steps = np.sqrt((np.diff(self.position, axis=0) ** 2).sum(axis=1))
        return np.concatenate(([0.0], np.cumsum(steps)))

    @property
    def is_moving(self) -> bool:
        """True if the position changes."""
        return bool((self.position != self.position[:1]).any())

    @property
    def min_clearance(self) -> tuple[float, float] | None:
        """Minimum height (m) above the ground and its time (s); None without ground."""
        clearance = self.position[:, 2] - self.ground if self.ground.size else self.ground
        if not np.isfinite(clearance).any():
            return None
        row = int(np.nanargmin(clearance))
        return float(clearance[row]), float(self.time[row])


def select_vehicles(world: World, motions: Motions) -> tuple[Model, ...]:
    """Return the models that move or carry a sensor; if there are none, the models without a surface."""
    carriers = {sensor.model for sensor in world.sensors}
    vehicles = [m for m in world.models if m.name in carriers or not isinstance(motions[m.name], Stationary)]
    solid_links = {solid.link for solid in world.solids}
    models_without_surface = [m for m in world.models if not solid_links.intersection(link.name for link in m.links)]
    return tuple(vehicles or models_without_surface)


def make_tracks(models: tuple[Model, ...], motions: Motions, duration: float | None) -> tuple[Track, ...]:
    """Return the tracks of models from t = 0 to `duration` (s).

    Without a duration each track ends with its motion; a loop is drawn once. Raises `SimulationError` for another
    motion without an end.
    """
    count = min(max(TOTAL_ROWS // max(len(models), 1), MIN_ROWS), MAX_ROWS)
    tracks = []
    for model in models:
        motion = motions[model.name]
        end = _find_end_time(model.name, motion, duration)
        time = np.linspace(0.0, end, count) if end > 0.0 else np.zeros(1)
        position = motion.at(time).position_w
        if (position == position[0]).all():
            time, position = time[:1], position[:1]
        tracks.append(Track(model.name, time, position))
    return tuple(tracks)


def _find_end_time(name: str, motion: Motion, duration: float | None) -> float:
    if isinstance(motion, Stationary):
        return 0.0
    if isinstance(motion, Trajectory) and motion.loop:  # later rounds are on the first one
        return min(_find_round_time(motion), math.inf if duration is None else duration)
    if duration is not None:
        return duration
    if math.isinf(motion.end):
        allowed = f"required because the motion of {name} never ends"
        remedy = "give --duration S (duration=S in Python)"
        raise SimulationError("duration", "missing", allowed=allowed, remedy=remedy)
    return motion.end


def _find_round_time(loop: Trajectory) -> float:
    """Return the time (s) of one round of a loop: half its period if a period has two equal rounds."""
    period = float(loop.knots[-1])
    time = np.linspace(0.0, 0.5 * period, 65)
    first, second = loop.at(time).position_w, loop.at(time + 0.5 * period).position_w
    is_equal = np.allclose(first, second, rtol=0.0, atol=1e-9 * (1.0 + float(np.abs(first).max())))
    return 0.5 * period if is_equal else period

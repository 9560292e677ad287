"""The numbers of a picture of a world: ground, tracks and current, computed before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from navsense.core.errors import FieldError, show
from navsense.core.typing import FloatArray, Times, Vectors
from navsense.environment.base import VectorField
from navsense.environment.current import realise
from navsense.motion.base import Motion
from navsense.picture.ground import (
    Relief,
    View,
    find_ground_below,
    find_ground_top,
    find_static_ground,
    find_view,
    make_relief,
)
from navsense.picture.tracks import Track, make_tracks, select_vehicles
from navsense.simulation.motions import check_motion_ends, replace_motions, resolve_motions
from navsense.simulation.session import check_duration
from navsense.world import World

DEFAULT_DEPTH = 50.0
"""Depth (m) of the water if neither ground nor track is below the surface."""

ARROWS = 12
"""Arrows of the current along the longer side of the view."""

HEIGHTS = 81
"""Heights of a profile of the current."""

INSTANTS = 5
"""Profiles over the time of a run."""


@dataclass(frozen=True, eq=False)
class CurrentArrows:
    """The current at t = 0 and one height.

    place: (n, 2) m
    velocity: (n, 3) m/s, NaN where the current is undefined
    height, spacing: m
    """

    place: FloatArray
    velocity: Vectors
    height: float
    spacing: float


@dataclass(frozen=True, eq=False)
class CurrentProfile:
    """The speed (n,) m/s of the water at heights (n,) m over one place at a time (s)."""

    time: float
    height: FloatArray
    speed: FloatArray


@dataclass(frozen=True, eq=False)
class WorldChart:
    """Ground, tracks and current of a world.

    profiles: of the current over the start of the first track
    undefined_reason: why a part of the profiles is missing, else empty
    """

    world: World
    tracks: tuple[Track, ...]
    view: View
    relief: Relief
    arrows: CurrentArrows | None = None
    profiles: tuple[CurrentProfile, ...] = ()
    undefined_reason: str = ""

    @property
    def moving_tracks(self) -> tuple[Track, ...]:
        """Tracks of the vehicles that move."""
        return tuple(track for track in self.tracks if track.is_moving)

    @property
    def end(self) -> float:
        """Last time (s) of any track."""
        return max((float(track.time[-1]) for track in self.tracks), default=0.0)

    @property
    def surface(self) -> float | None:
        """Height (m) of the water surface; None without water."""
        environment = self.world.environment
        if environment.water is not None:
            return environment.water.surface
        return None if environment.current is None else 0.0

    @property
    def start(self) -> tuple[float, float, float]:
        """Start (m) of the first vehicle that moves, else place of the first one, else the centre of the view."""
        tracks, view = (*self.moving_tracks, *self.tracks), self.view
        if tracks:
            x, y, z = tracks[0].position[0].tolist()
            return (x, y, z)
        return (0.5 * (view.left + view.right), 0.5 * (view.bottom + view.top), self.surface or 0.0)


def make_chart(world: World, motions: Mapping[str, Motion], duration: float | None, seed: int, run: int) -> WorldChart:
    """Return the chart of a world. `motions` replace those of its models.

    The current is that of one run. Raises `SimulationError` and `MotionError` for an invalid motion or duration (s),
    and `FieldError` for a surface that cannot be read.
    """
    all_motions = resolve_motions(replace_motions(world, motions))
    if duration is not None:
        check_motion_ends(all_motions, check_duration(duration))
    vehicles = select_vehicles(world, all_motions)
    ground = find_static_ground(world, all_motions, {model.name for model in vehicles if not model.static})
    tracks = make_tracks(vehicles, all_motions, duration)
    tracks = tuple(replace(track, ground=find_ground_below(ground, track.position)) for track in tracks)
    view = find_view(tracks, ground)
    chart = WorldChart(world, tracks, view, make_relief(ground, view))
    current, surface = world.environment.current, chart.surface
    if current is None or surface is None:
        return chart
    x, y, z = chart.start
    bed = float(find_ground_top(ground, np.array([[x, y]]))[0])
    lowest = min((float(track.position[:, 2].min()) for track in tracks), default=surface)
    low = bed if math.isfinite(bed) else surface - 1.2 * (surface - lowest)
    if low >= surface:
        low = surface - DEFAULT_DEPTH
    field = realise(current, seed, run)
    profiles, undefined_reason = make_current_profiles(field, (x, y), low, surface, chart.end)
    arrows = make_current_arrows(field, view, min(z, surface))
    return replace(chart, arrows=arrows, profiles=profiles, undefined_reason=undefined_reason)


def sample_current(current: VectorField, position: Vectors, time: Times) -> tuple[Vectors, str]:
    """Return the current (n, 3) m/s, NaN where it is undefined, and the first reason for that."""
    try:
        return np.array(current.at(position, time)), ""
    except FieldError:  # one of the rows
        pass
    velocity, reason = np.full(position.shape, math.nan), ""
    for row in range(len(velocity)):
        try:
            velocity[row] = current.at(position[row : row + 1], time[row : row + 1])[0]
        except FieldError as error:
            reason = reason or f"{error.quantity}: {show(error.value)}; {error.allowed}"
    return velocity, reason


def make_current_arrows(current: VectorField, view: View, height: float) -> CurrentArrows:
    """Return the current over a view at t = 0 and a height (m)."""
    spacing = max(view.width, view.height) / ARROWS
    columns, rows = max(round(view.width / spacing), 1), max(round(view.height / spacing), 1)
    x, y = view.make_cell_centres(columns, rows)
    place = np.array([(east, north) for north in y for east in x])
    position = np.concatenate((place, np.full((len(place), 1), height)), axis=1)
    return CurrentArrows(place, sample_current(current, position, np.zeros(len(place)))[0], height, spacing)


def make_current_profiles(
    current: VectorField, place: Sequence[float], low: float, high: float, end: float
) -> tuple[tuple[CurrentProfile, ...], str]:
    """Return the speed from `low` to `high` (m) over a place (x, y) m, and why it is undefined somewhere.

    The times are 0 and, if the current changes, some until `end` (s).
    """
    height = np.linspace(low, high, HEIGHTS)
    position = np.column_stack((np.full(HEIGHTS, place[0]), np.full(HEIGHTS, place[1]), height))
    profiles, undefined_reason = [], ""
    for time in np.linspace(0.0, end, INSTANTS) if end > 0.0 else np.zeros(1):
        velocity, reason = sample_current(current, position, np.full(HEIGHTS, time))
        undefined_reason = undefined_reason or reason
        profiles.append(CurrentProfile(float(time), height, np.sqrt((velocity**2).sum(axis=1))))
    if all(np.array_equal(profile.speed, profiles[0].speed, equal_nan=True) for profile in profiles):
        profiles = profiles[:1]
    return tuple(profiles), undefined_reason

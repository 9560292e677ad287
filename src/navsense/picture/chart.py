"""All that a picture of a world shows, in numbers: worked out before the first line is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from navsense.environment.current import realise
from navsense.motion.base import Motion
from navsense.picture.flow import Arrows, Column, arrows_of, columns_of
from navsense.picture.ground import Relief, View, bottom_of, ground_of, relief_of, top_of, view_of
from navsense.picture.tracks import Track, tracks_of, vehicles_of
from navsense.sensor_run import check_duration, resolve_motions
from navsense.session import check_duration_value
from navsense.typing import FloatArray
from navsense.world import World

DEEP = 50.0
"""Metres of water that are shown where neither ground nor track is below the surface."""


@dataclass(frozen=True, eq=False)
class Chart:
    """A world's ground, tracks and current; `bottoms` (m) are the ground's heights along each track.

    `last` (s) is the last instant of any track; `columns` are of the water over the first track's start, and `untold`
    says why there is no current, where that is so.
    """

    world: World
    tracks: tuple[Track, ...]
    bottoms: tuple[FloatArray, ...]
    view: View
    relief: Relief
    arrows: Arrows | None
    columns: tuple[Column, ...]
    untold: str

    @property
    def moving(self) -> tuple[tuple[Track, FloatArray], ...]:
        """Return the tracks of what leaves its place, with the ground's heights (n,) m along them."""
        return tuple(pair for pair in zip(self.tracks, self.bottoms, strict=True) if pair[0].moves)

    @property
    def last(self) -> float:
        """Return the last instant (s) of any track."""
        return max((float(track.time[-1]) for track in self.tracks), default=0.0)

    @property
    def surface(self) -> float | None:
        """Return the height (m) of the water's surface; None where there is no water."""
        environment = self.world.environment
        if environment.water is not None:
            return environment.water.surface
        return None if environment.current is None else 0.0


def chart_of(world: World, given: Mapping[str, Motion], duration: float | None, seed: int, run: int) -> Chart:
    """Return the chart of a world whose models are moved by the motions `given`, else by their own.

    The current is that of one run. Raises `SimulationError`, `MotionError` for a motion or a duration (s) that cannot
    be, and `FieldError` for a surface that cannot be read.
    """
    motions = resolve_motions(world, given)
    if duration is not None:
        check_duration(motions, check_duration_value(duration))
    vehicles = vehicles_of(world, motions)
    standing = {m.name for m in vehicles if m.static}
    ground = ground_of(world, motions, {m.name for m in vehicles} - standing)
    tracks = tracks_of(vehicles, motions, duration)
    view = view_of(tracks, ground)
    relief = relief_of(ground, view)
    bottoms = tuple(bottom_of(ground, track.position) for track in tracks)
    chart = Chart(world, tracks, bottoms, view, relief, None, (), "")
    return _with_current(chart, float(top_of(ground, np.array([_start(chart)[:2]]))[0]), seed, run)


def _start(chart: Chart) -> tuple[float, float, float]:
    """Return where the first vehicle that moves starts, or stands; without any the middle of the water's surface."""
    track = next((track for track, _ in chart.moving), chart.tracks[0] if chart.tracks else None)
    if track is not None:
        x, y, z = track.position[0].tolist()
        return (x, y, z)
    view = chart.view
    return (0.5 * (view.west + view.east), 0.5 * (view.south + view.north), chart.surface or 0.0)


def _with_current(chart: Chart, bed: float, seed: int, run: int) -> Chart:
    """Return the chart with the current over the view, and over its start down to the bed (m), NaN where none is."""
    current, surface = chart.world.environment.current, chart.surface
    if current is None or surface is None:
        return chart
    field = realise(current, seed, run)
    x, y, z = _start(chart)
    arrows = arrows_of(field, chart.view, min(z, surface))
    lowest = min((float(track.position[:, 2].min()) for track in chart.tracks), default=surface)
    low = bed if math.isfinite(bed) else surface - 1.2 * (surface - lowest)
    if low >= surface:
        low = surface - DEEP
    columns, untold = columns_of(field, (x, y), low, surface, chart.last)
    parts = (chart.world, chart.tracks, chart.bottoms, chart.view, chart.relief)
    return Chart(*parts, arrows, columns, untold)

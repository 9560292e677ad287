"""The tracks of a recording: a map over the ground, with what a Doppler log could not see, and heights over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from navsense.environment.terrain.scene import Scene
from navsense.picture.ground import Relief, View, bottom_of, ground_of, relief_of, view_of
from navsense.picture.tracks import Track
from navsense.report.axes import Axis, Scale, bounds, linear, over_time, quantity
from navsense.report.draw import INSIDE, Figure, Plot
from navsense.report.raster import TIMES, hexadecimal, lit, uri
from navsense.report.recorded import Recorded
from navsense.sensor_run import resolve_motions
from navsense.typing import BoolArray, FloatArray

POINTS = 3000
"""Rows of a track at most: a straight line between two of them is shorter than a pixel."""

PIECES = 48
"""Colours that a track has along its time."""

TALLEST = 400.0
"""Units that a map is high at most."""

GONE = 2.0
"""Seconds without a velocity from which on a Doppler log's gap is marked on the map."""


@dataclass(frozen=True, eq=False)
class Way:
    """One model's track, with the height of the ground beneath it (n,) m, NaN where that is not known."""

    model: str
    link: str
    track: Track
    bottom: FloatArray

    @property
    def clearance(self) -> tuple[float, float] | None:
        """Return the least height (m) above the ground and when (s); None where there is no ground."""
        gap = self.track.position[:, 2] - self.bottom
        if not np.isfinite(gap).any():
            return None
        row = int(np.nanargmin(gap))
        return float(gap[row]), float(self.track.time[row])


@dataclass(frozen=True, eq=False)
class Chart:
    """All tracks over the ground that they are over; `relief` is None where the ground is not known."""

    ways: Sequence[Way]
    view: View
    relief: Relief | None
    surface: float | None


def chart_of(found: Recorded) -> Chart | None:
    """Return the tracks of a recording; None where it has no truth of what moves or carries a sensor.

    Raises `FieldError` for ground that cannot be read.
    """
    tracks = {model: _track(found, model, link) for model, link in found.tracks.items()}
    carriers = {name.partition("::")[0] for name in found.readings}
    tracks = {m: t for m, t in tracks.items() if t.time.size and (m in carriers or np.ptp(t.position, axis=0).any())}
    if not tracks:
        return None
    scene = Scene(())
    surface = None
    if found.world is not None:
        motions = resolve_motions(found.world, {})
        scene = ground_of(found.world, motions, set(tracks))
        water = found.world.environment.water
        surface = water.surface if water is not None else None
    view = view_of([_moving(track) for track in tracks.values()], scene)
    relief = relief_of(scene, view) if scene.bodies else None
    ways = [Way(m, found.tracks[m], t, _beneath(scene, t)) for m, t in tracks.items()]
    return Chart(ways, view, relief if relief is not None and relief.there else None, surface)


def _track(found: Recorded, model: str, link: str) -> Track:
    """Return the track of a model at some rows of its truth."""
    truth = found.truth[link]
    rows = np.unique(np.linspace(0, truth.time.size - 1, min(POINTS, truth.time.size)).astype(np.int64))
    return Track(model, truth.time[rows], np.array(truth.position[rows], dtype=np.float64))


def _moving(track: Track) -> Track:
    """Return a track of one row where it stands still, as a view takes it."""
    still = bool((track.position == track.position[0]).all())
    return Track(track.name, track.time[:1], track.position[:1]) if still else track


def _beneath(scene: Scene, track: Track) -> FloatArray:
    """Return the heights of the ground beneath a track, NaN without any."""
    return bottom_of(scene, track.position) if scene.bodies else np.full(track.time.size, math.nan)


def told_of(found: Recorded, way: Way, surface: float | None) -> str:
    """Return in a line how far, how fast and how deep a track is."""
    truth = found.truth[way.link]
    position, speed = np.asarray(truth.position), np.linalg.norm(truth.velocity, axis=1)
    run, lasts = float(np.nansum(np.linalg.norm(np.diff(position, axis=0), axis=1))), truth.time[-1] - truth.time[0]
    mean = run / float(lasts) if lasts > 0.0 else 0.0
    parts = [f"{way.model}: {quantity(run, 'm')} in {lasts:.6g} s"]
    parts.append(f"mean speed {quantity(mean, 'm/s')}, greatest {quantity(bounds([speed])[1], 'm/s')}")
    low, high = bounds([position[:, 2]])
    if surface is not None and high <= surface:
        parts.append(f"depth {quantity(surface - high, 'm')} to {quantity(surface - low, 'm')}")
    else:
        parts.append(f"height in the world {quantity(low, 'm')} to {quantity(high, 'm')}")
    if way.clearance is not None:
        least, most = bounds([way.track.position[:, 2] - way.bottom])
        parts.append(f"above the ground {quantity(least, 'm')} to {quantity(most, 'm')}")
    return "; ".join(parts)


def blind(found: Recorded, model: str, track: Track) -> BoolArray:
    """Return at which rows of a track (n,) a Doppler log of the model has been without a valid velocity for a while."""
    out = np.zeros(track.time.size, dtype=np.bool_)
    for name, reading in found.readings.items():
        if reading.type != "dvl" or name.partition("::")[0] != model:
            continue
        times = reading.time[reading.emitted & reading.valid]
        if not times.size:
            out[:] = True
            continue
        after = np.searchsorted(times, track.time)
        before = times[np.maximum(after - 1, 0)]
        following = times[np.minimum(after, times.size - 1)]
        out |= (following - before > GONE) | (track.time > times[-1] + GONE) | (track.time < times[0] - GONE)
    return out


def map_of(found: Recorded, chart: Chart) -> Figure:
    """Return the chart from above."""
    view = chart.view
    scale = Scale(1e-3, "km") if max(view.wide, view.tall) >= 20e3 else Scale(1.0, "m")
    origin = found.world.environment.origin if found.world else None
    east, north = (", east", ", north") if origin is not None and origin.heading == 0.0 else ("", "")
    along = Axis(view.west * scale.factor, view.east * scale.factor, f"x{east} ({scale.unit})", scale)
    up = Axis(view.south * scale.factor, view.north * scale.factor, f"y{north} ({scale.unit})", scale)
    height = INSIDE * view.tall / view.wide
    if height > TALLEST:  # a tall view gets room to both sides rather than letters that are too small
        middle, half = 0.5 * (view.west + view.east), 0.5 * view.tall * INSIDE / TALLEST
        along = Axis((middle - half) * scale.factor, (middle + half) * scale.factor, along.title, scale)
        height = TALLEST
    figure = Figure("Track from above", along, [Plot(up, height)])
    words = []
    if chart.relief is not None:
        _ground(figure, chart, along, up)
        low, high = float(np.nanmin(chart.relief.height)), float(np.nanmax(chart.relief.height))
        words.append(f"Ground from {quantity(low, 'm')} (dark) to {quantity(high, 'm')} (light).")
    for way in chart.ways:
        _way(figure, way, blind(found, way.model, way.track))
    words.append("The track's colour is the time, dark at the start (ring) and yellow at the end (square).")
    if any(blind(found, way.model, way.track).any() for way in chart.ways):
        words.append("Red: the Doppler log has no valid velocity.")
        figure.keys.append(("blind", "no Doppler velocity"))
    if chart.relief is None:
        words.append("There is no ground." if found.world else "The ground is not known: name the world with --world.")
    figure.caption = " ".join(words)
    return figure


def _ground(figure: Figure, chart: Chart, along: Axis, up: Axis) -> None:
    """Draw the relief where it lies in the plot."""
    relief, view = chart.relief, chart.view
    if relief is None:
        return
    under = chart.surface is not None and float(np.nanmedian(relief.height)) < chart.surface
    left, right = along.part(np.array([view.west, view.east])).tolist()
    low, high = up.part(np.array([view.south, view.north])).tolist()
    plot = figure.plots[0]
    plot.drawn.append(
        f'<image x="{left * INSIDE:.1f}" y="{(1.0 - high) * plot.height:.1f}" width="{(right - left) * INSIDE:.1f}" '
        f'height="{(high - low) * plot.height:.1f}" preserveAspectRatio="none" href="{uri(lit(relief, under=under))}"/>'
    )


def _way(figure: Figure, way: Way, gone: BoolArray) -> None:
    """Draw one track in the colours of time over a pale line, its start and its end."""
    plot, track = figure.plots[0], way.track
    x, y = track.position[:, 0], track.position[:, 1]
    figure.trace(plot, x, y, "casing")
    last = max(track.time.size - 1, 1)
    edges = np.unique(np.linspace(0, last, PIECES + 1).astype(np.int64))
    for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        colour = hexadecimal(0.5 * (first + stop) / last, TIMES)
        figure.trace(plot, x[first : stop + 1], y[first : stop + 1], "way", colour)
    figure.trace(plot, np.where(gone, x, math.nan), np.where(gone, y, math.nan), "blind")
    for row, kind in ((0, "start"), (-1, "end")):
        figure.mark(plot, float(x[row]), float(y[row]), kind)


def profile_of(chart: Chart, span: tuple[float, float]) -> Figure:
    """Return heights over time with the ground beneath."""
    heights = [way.track.position[:, 2] for way in chart.ways]
    bottoms = [way.bottom for way in chart.ways]
    series = [*heights, *bottoms]
    if chart.surface is not None:
        low, high = min(float(h.min()) for h in heights), max(float(h.max()) for h in heights)
        if abs(chart.surface - high) <= 4.0 * max(high - low, 1.0) + 60.0:
            series.append(np.array([chart.surface]))
    under = chart.surface is not None and all(float(np.median(h)) < chart.surface for h in heights)
    title = "Depth of the track" if under else "Height of the track"
    along, up = over_time(*span), linear("height in the world", "m", series)
    figure = Figure(title, along, [Plot(up, 230.0)])
    plot = figure.plots[0]
    words = []
    for way in chart.ways:
        floor = np.full(way.track.time.size, up.low / up.scale.factor)
        figure.area(plot, way.track.time, floor, way.bottom, "earth")
        figure.line(plot, way.track.time, way.track.position[:, 2], "c0")
        nearest = way.clearance
        if nearest is not None:
            gap, time = nearest
            told = f"{quantity(gap, 'm')} above the ground" if gap >= 0.0 else f"{quantity(-gap, 'm')} UNDER the ground"
            words.append(f"{way.link} comes nearest at {time:.0f} s: {told}.")
    figure.keys = [("c0", "track")]
    if any(np.isfinite(way.bottom).any() for way in chart.ways):
        figure.keys.append(("earth", "ground beneath"))
    if chart.surface is not None:
        figure.across(plot, chart.surface, "surface")
        figure.keys.append(("surface", "surface of the water"))
    figure.caption = " ".join(words) or "Height of the track over time; no ground is known."
    return figure

"""Figures of the tracks of a recording: a map over the ground with gaps of the DVL, and heights over time.

The modules `picture.ground` and `picture.tracks` do not need matplotlib. The figures are SVG (`svg_figure`), not those
of `navsense.figures`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from navsense.core.text import format_duration
from navsense.core.typing import BoolArray
from navsense.environment.terrain.scene import Scene
from navsense.figures import TIME_COLOURS, choose_length_scale
from navsense.picture.ground import Relief, View, find_ground_below, find_static_ground, find_view, make_relief
from navsense.picture.tracks import Track
from navsense.report.axes import Axis, format_quantity, make_linear_axis, make_time_axis
from navsense.report.images import compute_pixels, compute_relief_pixels, encode_png_uri, format_hex_colour
from navsense.report.report_data import ReportData
from navsense.report.svg_figure import LINE_COLOURS, ColourBar, Plot, SvgFigure
from navsense.simulation.motions import resolve_motions

MAX_ROWS = 3000
"""Rows of a track at most. A line between two rows is shorter than a pixel."""

SEGMENTS = 48
"""Segments of a track, each with the colour of its time."""

MIN_RATIO, MAX_RATIO = 0.85, 2.5
"""Width of a map over its height."""

MIN_VELOCITY_GAP = 2.0
"""Time (s) without a velocity above which the map marks a gap of the DVL."""


@dataclass(frozen=True, eq=False)
class TrackMap:
    """One track per model, and the view that contains them.

    relief: None if the ground is not known
    surface: height of the water surface (m), None if it is not known
    """

    tracks: Sequence[Track]
    view: View
    relief: Relief | None
    surface: float | None


def make_track_map(data: ReportData) -> TrackMap | None:
    """Return the tracks of models that move or carry a sensor; None without any.

    Raises `FieldError` for ground that cannot be read.
    """
    carriers = {name.partition("::")[0] for name in data.readings}
    tracks: list[Track] = []
    for model, link in data.tracks.items():
        truth = data.truth[link]
        rows = np.unique(np.linspace(0, truth.time.size - 1, min(MAX_ROWS, truth.time.size)).astype(np.int64))
        time, position = truth.time[rows], np.array(truth.position[rows], dtype=np.float64)
        if time.size == 1:  # a stationary model has one message of truth
            time, position = np.array(data.span), np.repeat(position, 2, axis=0)
        track = Track(model, time, position)
        if track.time.size and (model in carriers or track.is_moving):
            tracks.append(track)
    if not tracks:
        return None
    scene, surface = Scene(()), None
    if data.sdf_world is not None:
        scene = find_static_ground(data.sdf_world, resolve_motions(data.sdf_world), {track.name for track in tracks})
        water = data.sdf_world.environment.water
        surface = water.surface if water is not None else None
    view = limit_shape(find_view(tracks, scene))
    relief = make_relief(scene, view) if scene.bodies else None
    tracks = [replace(track, ground=find_ground_below(scene, track.position)) for track in tracks]
    return TrackMap(tracks, view, relief if relief is not None and relief.has_ground else None, surface)


def find_velocity_gaps(data: ReportData, track: Track) -> BoolArray:
    """Return the rows (n,) of a track at which a DVL of the model had no valid velocity for over `MIN_VELOCITY_GAP`."""
    mask = np.zeros(track.time.size, dtype=np.bool_)
    for name, reading in data.readings.items():
        if reading.type != "dvl" or name.partition("::")[0] != track.name:
            continue
        times = reading.time[reading.emitted & reading.valid]
        if not times.size:
            mask[:] = True
            continue
        row = np.searchsorted(times, track.time)
        previous, following = times[np.maximum(row - 1, 0)], times[np.minimum(row, times.size - 1)]
        mask |= following - previous > MIN_VELOCITY_GAP
        mask |= (track.time > times[-1] + MIN_VELOCITY_GAP) | (track.time < times[0] - MIN_VELOCITY_GAP)
    return mask


def limit_shape(view: View) -> View:
    """Return a view with margins at two sides if it is too tall or too wide for a map."""
    ratio = min(max(view.width / view.height, MIN_RATIO), MAX_RATIO)
    wider = 0.5 * max(ratio * view.height - view.width, 0.0)
    taller = 0.5 * max(view.width / ratio - view.height, 0.0)
    return View(view.left - wider, view.right + wider, view.bottom - taller, view.top + taller)


def make_map_figure(data: ReportData, track_map: TrackMap) -> SvgFigure:
    """Return the tracks from above."""
    view = track_map.view
    scale = choose_length_scale(max(view.width, view.height))
    east, north = (", east", ", north") if data.heading == 0.0 else ("", "")
    left, right, bottom, top = (scale.factor * end for end in (view.left, view.right, view.bottom, view.top))
    x_axis = Axis(left, right, f"x{east} ({scale.unit})", scale)
    y_axis = Axis(bottom, top, f"y{north} ({scale.unit})", scale)
    figure = SvgFigure("Track from above", [Plot(x_axis, y_axis, aspect_ratio=view.width / view.height)])
    figure.legend = [("start", "start"), ("end", "end")]
    caption = []
    if any(track.is_moving for track in track_map.tracks):
        times = encode_png_uri(compute_pixels(np.linspace(0.0, 1.0, 128)[None, :], TIME_COLOURS))
        time_axis = make_time_axis(*data.span)
        figure.colour_bar = ColourBar(times, replace(time_axis, title=f"colour of the track: {time_axis.title}"))
    if track_map.relief is not None:
        _draw_relief(figure.plots[0], track_map.relief, view, track_map.surface)
        low, high = float(np.nanmin(track_map.relief.height)), float(np.nanmax(track_map.relief.height))
        lowest, highest = format_quantity(low, "m"), format_quantity(high, "m")
        is_flat = lowest == highest
        caption.append(f"Ground at {lowest}." if is_flat else f"Ground from {lowest} (dark) to {highest} (light).")
    gaps = [find_velocity_gaps(data, track) for track in track_map.tracks]
    for track, gap in zip(track_map.tracks, gaps, strict=True):
        _draw_track(figure.plots[0], track, gap)
    if any(gap.any() for gap in gaps):
        figure.legend.append(("gap", "no valid DVL velocity"))
    if track_map.relief is None:
        caption.append(_explain_missing_ground(data))
    figure.caption = " ".join(caption)
    return figure


def _draw_relief(plot: Plot, relief: Relief, view: View, surface: float | None) -> None:
    underwater = surface is not None and float(np.nanmedian(relief.height)) < surface
    left, right = plot.x_axis.compute_positions(np.array([view.left, view.right])).tolist()
    low, high = plot.compute_y_positions(np.array([view.bottom, view.top])).tolist()
    image = encode_png_uri(compute_relief_pixels(relief, underwater=underwater))
    plot.draw_image(image, x=(left, right), y=(low, high))


def _draw_track(plot: Plot, track: Track, gap: BoolArray) -> None:
    """Draw one track in the colours of time over a pale line, with its gaps, start and end."""
    x, y = track.position[:, 0], track.position[:, 1]
    plot.draw_path(x, y, "casing")
    last = max(track.time.size - 1, 1)
    edges = np.unique(np.linspace(0, last, SEGMENTS + 1).astype(np.int64)).tolist()
    for first, stop in pairwise(edges):
        colour = format_hex_colour(0.5 * (first + stop) / last, TIME_COLOURS)
        plot.draw_path(x[first : stop + 1], y[first : stop + 1], "track", colour)
    plot.draw_path(np.where(gap, x, math.nan), np.where(gap, y, math.nan), "gap")
    for row, css_class in ((0, "start"), (-1, "end")):
        plot.draw_marker(float(x[row]), float(y[row]), css_class)


def make_height_figure(data: ReportData, track_map: TrackMap) -> SvgFigure:
    """Return heights over time with the ground below."""
    heights = [track.position[:, 2] for track in track_map.tracks]
    series = [*heights, *(track.ground for track in track_map.tracks)]
    surface = track_map.surface
    if surface is not None:
        low, high = min(float(h.min()) for h in heights), max(float(h.max()) for h in heights)
        if abs(surface - high) <= 4.0 * max(high - low, 1.0) + 60.0:
            series.append(np.array([surface]))
    y_axis = make_linear_axis("height in the world", "m", series)
    figure = SvgFigure("Height of the track", [Plot(make_time_axis(*data.span), y_axis, 216.0)])
    plot = figure.plots[0]
    caption = []
    line_classes = [f"c{number % LINE_COLOURS}" for number in range(1, len(track_map.tracks) + 1)]
    for track, line_class in zip(track_map.tracks, line_classes, strict=True):
        floor = np.full(track.time.size, y_axis.low / y_axis.scale.factor)
        plot.draw_area(track.time, floor, track.ground, "earth")
        plot.draw_line(track.time, track.position[:, 2], line_class)
        if track.min_clearance is not None:
            clearance, time = track.min_clearance
            side = "above the ground" if clearance >= 0.0 else "UNDER the ground"
            distance = format_quantity(abs(clearance), "m")
            caption.append(
                f"Minimum clearance of {data.tracks[track.name]}: {distance} {side}, at {format_duration(round(time))}."
            )
    names = ["track"] if len(track_map.tracks) == 1 else [track.name for track in track_map.tracks]
    figure.legend = list(zip(line_classes, names, strict=True))
    if any(np.isfinite(track.ground).any() for track in track_map.tracks):
        figure.legend.append(("earth", "ground"))
    if surface is not None:
        plot.draw_horizontal_line(surface, "surface")
        figure.legend.append(("surface", "water surface"))
    if track_map.relief is None:
        caption.append(_explain_missing_ground(data))
    figure.caption = " ".join(caption) or "Height of the track over time. There is no ground below it."
    return figure


def _explain_missing_ground(data: ReportData) -> str:
    return "There is no ground." if data.sdf_world else "The ground is not known: name the world with --world."

"""Drawing of a world chart: a map from above, heights along the tracks, and the current by height."""

from __future__ import annotations

import math
import os
import textwrap
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.geodesy import Origin
from navsense.core.text import format_count, format_duration
from navsense.core.typing import BoolArray, FloatArray
from navsense.figures import (
    DRY_COLOURS,
    LIGHT,
    TIME_COLOURS,
    UNDERWATER_COLOURS,
    Scale,
    check_figure_path,
    choose_length_scale,
    choose_time_scale,
    make_colour_map,
    make_figure,
    require_matplotlib,
    save_figure,
    use_style,
)
from navsense.picture.chart import CurrentArrows, WorldChart, make_chart
from navsense.picture.ground import SHADED_SLOPE, Relief
from navsense.picture.tracks import Track
from navsense.recordings.base import check_output_file
from navsense.runner.motion_sources import MotionSource, load_motions
from navsense.world import World

WIDE = 1.3
"""Ratio of the sides of a view from which the other panels are below the map."""

TITLE_LETTERS, NAME_LETTERS = 110, 32
"""Characters of a line of the title, and of a vehicle's name."""

INK, CURRENT, EARTH, WATER = LIGHT.ink, LIGHT.c0, LIGHT.earth, LIGHT.water
"""Colours of lines, of the current, of ground, and of water and its surface."""

CONTOURS, TICKS = 9, 6
"""Contours and intervals of an axis at most."""

CONTOUR_STYLE: dict[str, Any] = {"colors": INK, "linewidths": 0.6, "linestyles": "solid", "alpha": 0.45, "zorder": 1}

MAX_NAMES = 12
"""Vehicles up to which the picture has their names."""

NAME_BOX: dict[str, Any] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}

MARKER_RADIUS = 8.0
"""Radius of the marker of a start (pixels)."""

NAME_OFFSETS = ((9, 9), (9, -9), (-9, 9), (-9, -9), (0, 15), (0, -15), (14, 24), (14, -24), (-14, 24), (-14, -24))
"""Offsets of a name from its marker (points), the best first."""

SURFACE_REACH = 4.0
"""Distance to the water surface, over the range of heights, up to which the section includes it."""

MIN_HEIGHT_RANGE = 1.0
"""Range of heights (m) that a section shows at least."""


def check(path: str | os.PathLike[str]) -> Path:
    """Return the path of a picture. Raises `RecordingError` for an invalid suffix or place, or without matplotlib.

    >>> try:
    ...     ns.picture.check("world.bmp")
    ... except ns.NavsenseError as error:
    ...     print(error)
    picture: world.bmp; must end in .png, .svg, .pdf
    """
    target = check_figure_path(path, RecordingError)
    check_output_file(target)
    require_matplotlib(RecordingError)
    return target


def draw(
    path: str | os.PathLike[str],
    world: World,
    *,
    motion: MotionSource | Mapping[str, MotionSource] | None = None,
    duration: float | None = None,
    seed: int = 0,
    run: int = 0,
) -> None:
    """Write a picture (`.png`, `.svg`, `.pdf`) of a world: ground, tracks and current from above and from the side.

    motion: as in `simulate`
    duration: s; by default each track ends with its motion, and a loop is drawn once
    seed, run: of a random current

    Ground is every surface that stands still and does not belong to a model with sensors.

    Raises `RecordingError` if the picture cannot be written or matplotlib is not installed, `FieldError` for a surface
    that cannot be read, `SimulationError` and `MotionError` for invalid motions and durations.

    >>> ns.picture.draw("world.png", world, duration=1.0)
    >>> Path("world.png").exists()
    True
    """
    target = check(path)
    chart = make_chart(world, load_motions(world, motion), duration, seed, run)
    with warnings.catch_warnings(), use_style(RecordingError):
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a name with letters that the font does not have
        save_figure(_draw_chart(chart), target, RecordingError)


def _draw_chart(chart: WorldChart) -> Any:
    """Return the figure of a chart; the shape of its view decides where the panels are."""
    panels = [draw_section] if chart.moving_tracks else []
    panels += [draw_profiles] if chart.profiles else []
    ratio = chart.view.width / chart.view.height
    if not panels:
        figure = make_figure(9.0 * min(ratio, 1.0) + 1.2, 9.0 / max(ratio, 1.0) + 1.0, RecordingError)
        map_axes, cells = figure.add_subplot(), []
    elif ratio >= WIDE:
        map_height, panel_height = max(10.0 / ratio, 3.5) + 1.2, 3.2
        figure = make_figure(12.0, map_height + panel_height + 0.6, RecordingError)
        grid = figure.add_gridspec(2, 6, height_ratios=(map_height, panel_height))
        map_axes = figure.add_subplot(grid[0, :])
        cells = [grid[1, :]] if len(panels) == 1 else [grid[1, :4], grid[1, 4:]]
    else:
        figure = make_figure(7.2 * ratio + 7.0, 8.6, RecordingError)
        grid = figure.add_gridspec(2, 2, width_ratios=(7.2 * ratio + 1.2, 5.5))
        map_axes = figure.add_subplot(grid[:, 0])
        cells = [grid[:, 1]] if len(panels) == 1 else [grid[0, 1], grid[1, 1]]
    draw_map(figure, map_axes, chart)
    for panel, cell in zip(panels, cells, strict=True):
        panel(figure.add_subplot(cell), chart)
    figure.suptitle(_format_title(chart), x=0.01, ha="left", fontsize=11)
    draw_names(figure, map_axes, chart)
    return figure


def _format_title(chart: WorldChart) -> str:
    """Return name and place of the world, and number and duration of its tracks."""
    origin, moving = chart.world.environment.origin, len(chart.moving_tracks)
    parts = []
    if origin is not None:
        latitude, longitude = math.degrees(origin.latitude), math.degrees(origin.longitude)
        north, east = "S" if latitude < 0.0 else "N", "W" if longitude < 0.0 else "E"
        parts.append(f"at {abs(latitude):.6g}° {north}, {abs(longitude):.6g}° {east}")
    time = choose_time_scale(chart.end)
    tracks = f"{format_count(moving, 'track')} of {time.factor * chart.end:.4g} {time.unit}"
    parts.append(tracks if moving else "nothing moves")
    lines = (textwrap.fill(text, TITLE_LETTERS) for text in (chart.world.name, "; ".join(parts)) if text)
    return "\n".join(escape_dollar(line) for line in lines)


def escape_dollar(text: str) -> str:
    r"""Return a text with `\$` for `$`, which would begin a formula in matplotlib."""
    return text.replace("$", r"\$")


def truncate_name(name: str) -> str:
    """Return a name with at most `NAME_LETTERS` characters for matplotlib."""
    return escape_dollar(name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 1]}…")


# The map from above


def draw_map(figure: Any, axes: Any, chart: WorldChart) -> None:
    """Draw ground with contours, tracks coloured by time, and arrows of the current."""
    scale = choose_length_scale(max(chart.view.width, chart.view.height))
    axes.set_facecolor(LIGHT.page)
    if chart.relief.has_ground:
        _draw_ground(figure, axes, chart, scale)
    if chart.arrows is not None:
        _draw_arrows(axes, chart.arrows, _is_in_ground(chart.relief, chart.arrows), scale)
    line = None
    for track in chart.moving_tracks:
        line = _draw_track(axes, track, chart.end, scale)
    if line is not None:
        bar = figure.colorbar(line, ax=axes, location="bottom", aspect=45, shrink=0.8, pad=0.02)
        bar.set_label(f"time ({choose_time_scale(chart.end).unit}); ○ start, ■ end")
    for track in chart.tracks:
        if not track.is_moving:
            x, y = (scale.factor * track.position[0, :2]).tolist()
            axes.plot(x, y, "D", color=LIGHT.c1, markeredgecolor=INK, markersize=7, zorder=6)
    _draw_frame(axes, chart, scale)


def _draw_ground(figure: Any, axes: Any, chart: WorldChart, scale: Scale) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    relief, view = chart.relief, chart.view
    median = float(np.nanmedian(relief.height))
    is_underwater = chart.surface is not None and median < chart.surface
    colours = make_colour_map("ground", UNDERWATER_COLOURS if is_underwater else DRY_COLOURS)
    low, high = float(np.nanmin(relief.height)), float(np.nanmax(relief.height))
    norm = Normalize(low, high) if not relief.is_flat else Normalize(low - 1.0, low + 1.0)
    extent = [scale.factor * end for end in (view.left, view.right, view.bottom, view.top)]
    pixels = shade_relief(relief, colours, norm)
    axes.imshow(pixels, origin="lower", extent=extent, interpolation="bilinear", zorder=0)
    if relief.is_flat:
        text = f"flat ground at {median:.6g} m"
        axes.text(0.99, 0.01, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=8, color=INK)
        return
    if np.median(relief.slopes) > 0.0:  # steps on a floor have only edges for contours
        x, y = scale.factor * relief.x, scale.factor * relief.y
        lines = axes.contour(x, y, relief.height, CONTOURS, **CONTOUR_STYLE)
        axes.clabel(lines, fontsize=7, fmt="%g")
    bar = figure.colorbar(ScalarMappable(norm, colours), ax=axes, location="right", aspect=35, shrink=0.8, pad=0.02)
    bar.set_label("height of the ground (m)")


def shade_relief(relief: Relief, colours: Any, norm: Any) -> FloatArray:
    """Return the pixels (rows, columns, 4) of a relief lit from the north-west; transparent without ground."""
    from matplotlib.colors import LightSource

    is_missing = ~np.isfinite(relief.height)
    height = np.where(is_missing, np.nanmedian(relief.height), relief.height)
    east, north = relief.x[1] - relief.x[0], relief.y[1] - relief.y[0]
    slope = float(np.sqrt((relief.slopes**2).mean()))
    exaggeration = SHADED_SLOPE / slope if slope > 0.0 and not relief.is_flat else 1.0
    light = LightSource(azdeg=315.0, altdeg=50.0)
    # The first row of `hillshade` is the northernmost.
    shade = light.hillshade(height[::-1], vert_exag=exaggeration, dx=east, dy=north)[::-1]
    pixels = np.array(colours(norm(height)))
    if not relief.is_flat:
        pixels[:, :, :3] = light.blend_soft_light(pixels[:, :, :3], shade[:, :, None])
    pixels[is_missing, 3] = 0.0
    return pixels


def _is_in_ground(relief: Relief, arrows: CurrentArrows) -> BoolArray:
    """Return the arrows (n,) that are below the ground."""
    column = np.abs(relief.x[None, :] - arrows.place[:, :1]).argmin(axis=1)
    row = np.abs(relief.y[None, :] - arrows.place[:, 1:]).argmin(axis=1)
    return np.asarray(relief.height[row, column] > arrows.height)


def _draw_arrows(axes: Any, arrows: CurrentArrows, is_hidden: BoolArray, scale: Scale) -> None:
    """Draw the current, and an arrow with its speed as the key."""
    speed = np.sqrt((arrows.velocity[:, :2] ** 2).sum(axis=1))
    is_shown = np.isfinite(speed) & ~is_hidden
    fastest = float(speed[is_shown].max()) if is_shown.any() else 0.0
    if fastest == 0.0:
        return
    place, velocity = scale.factor * arrows.place[is_shown], arrows.velocity[is_shown]
    length = 0.9 * arrows.spacing * scale.factor
    quiver = axes.quiver(
        place[:, 0], place[:, 1], velocity[:, 0], velocity[:, 1],
        angles="xy", scale_units="xy", scale=fastest / length, pivot="middle",
        color=CURRENT, alpha=0.65, width=0.0025, zorder=2,
    )  # fmt: skip
    key = round_down(fastest)
    text = f"current at 0 s and height {arrows.height:.4g} m; this arrow is {key:g} m/s"
    axes.quiverkey(quiver, 0.9, 1.025, key, text, labelpos="W", fontproperties={"size": 9})


def round_down(value: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten up to a value."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1.0, 2.0, 5.0) if step * power <= value * (1.0 + 1e-9))


def _draw_track(axes: Any, track: Track, end: float, scale: Scale) -> Any:
    """Draw a track with its start and its end; return the line with the colours of time."""
    x, y = scale.factor * track.position[:, 0], scale.factor * track.position[:, 1]
    axes.plot(x, y, color="white", linewidth=4.0, alpha=0.8, solid_capstyle="round", zorder=3)
    line = draw_time_line(axes, x, y, track.time, end)
    axes.plot(x[0], y[0], "o", color="white", markeredgecolor=INK, markersize=8, zorder=6)
    axes.plot(x[-1], y[-1], "s", color=INK, markeredgecolor="white", markersize=7, zorder=5)
    return line


def draw_time_line(axes: Any, x: FloatArray, y: FloatArray, time: FloatArray, end: float) -> Any:
    """Draw a line (n,) in the colours of time (n,) s from 0 to `end`, and return it."""
    from matplotlib.collections import LineCollection

    factor = choose_time_scale(end).factor
    points = np.stack((x, y), axis=1)
    segments = list(np.stack((points[:-1], points[1:]), axis=1))
    line = LineCollection(segments, cmap=make_colour_map("time", TIME_COLOURS), linewidths=2.2, zorder=4)
    line.set_capstyle("round")
    line.set_snap(False)  # snapping would move each segment to the pixel grid
    line.set_array(0.5 * factor * (time[:-1] + time[1:]))
    line.set_clim(0.0, factor * end)
    axes.add_collection(line)
    return line


def _draw_frame(axes: Any, chart: WorldChart, scale: Scale) -> None:
    """Draw the axes and north."""
    view, origin = chart.view, chart.world.environment.origin
    axes.set_xlim(scale.factor * view.left, scale.factor * view.right)
    axes.set_ylim(scale.factor * view.bottom, scale.factor * view.top)
    axes.set_aspect("equal", adjustable="box")
    axes.ticklabel_format(useOffset=False, style="plain")
    axes.locator_params(nbins=TICKS)
    is_aligned = origin is not None and origin.heading == 0.0
    axes.set_xlabel(f"x{', east' if is_aligned else ''} ({scale.unit})")
    axes.set_ylabel(f"y{', north' if is_aligned else ''} ({scale.unit})")
    axes.grid(alpha=0.2)
    if origin is not None:
        _draw_north(axes, origin)


def _draw_north(axes: Any, origin: Origin) -> None:
    """Draw an arrow to north: the world's x axis is `heading` from east towards north."""
    x, y = 14.0 * math.sin(origin.heading), 14.0 * math.cos(origin.heading)
    arrow = {"arrowstyle": "-|>,head_width=0.35,head_length=0.7", "color": INK, "linewidth": 1.6, "shrinkA": 3.0}
    options = {"xycoords": "axes points", "textcoords": "axes points", "ha": "center", "va": "center", "fontsize": 9}
    axes.annotate("N", (28.0 + x, 28.0 + y), (28.0 - x, 28.0 - y), arrowprops=arrow, zorder=8, **options)


def draw_names(figure: Any, axes: Any, chart: WorldChart) -> None:
    """Write the names of the vehicles at their starts without overlaps. Fixes the layout of the figure."""
    from matplotlib.transforms import Bbox

    if len(chart.tracks) > MAX_NAMES:
        return
    scale = choose_length_scale(max(chart.view.width, chart.view.height))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    places = [(scale.factor * track.position[0, :2]).tolist() for track in chart.tracks]
    markers = [axes.transData.transform(place) for place in places]
    r = MARKER_RADIUS
    occupied = [Bbox.from_extents(x - r, y - r, x + r, y + r) for x, y in markers]
    for track, place in zip(chart.tracks, places, strict=True):
        height = "" if track.is_moving else f" ({track.position[0, 2]:.4g} m)"
        occupied.append(_draw_name(axes, f"{truncate_name(track.name)}{height}", place, occupied))


def _draw_name(axes: Any, name: str, place: list[float], occupied: list[Any]) -> Any:
    """Write a name at the first free offset, or at the first one if none is free; return its extent."""
    frame, offsets = axes.get_window_extent(), [*NAME_OFFSETS, NAME_OFFSETS[0]]
    while True:
        right, up = offsets.pop(0)
        align = {"ha": "center" if right == 0 else "left" if right > 0 else "right", "va": "center"}
        text = axes.annotate(
            name, place, (right, up), textcoords="offset points", fontsize=8.5, bbox=NAME_BOX, zorder=7, **align
        )
        extent = text.get_window_extent()
        is_inside = frame.x0 <= extent.x0 and extent.x1 <= frame.x1 and frame.y0 <= extent.y0 and extent.y1 <= frame.y1
        if not offsets or (is_inside and not any(extent.overlaps(other) for other in occupied)):
            return extent
        text.remove()


# Panels from the side


def draw_section(axes: Any, chart: WorldChart) -> None:
    """Draw the heights of the tracks over the distance along them, with the ground below."""
    low, high = find_height_limits(chart)
    longest = max(float(track.distance[-1]) for track in chart.moving_tracks)
    scale, is_single = choose_length_scale(longest), len(chart.moving_tracks) == 1
    if chart.surface is not None and chart.surface > low:
        axes.axhspan(low, min(chart.surface, high), color=WATER, alpha=0.2, linewidth=0.0, zorder=0)
        axes.axhline(chart.surface, color=WATER, linewidth=1.8, dashes=(6, 3), zorder=1, label="water surface")
    for track in chart.moving_tracks:
        distance, height = scale.factor * track.distance, track.position[:, 2]
        if np.isfinite(track.ground).any():
            _draw_ground_below(axes, distance, low, track.ground, is_single=is_single)
        draw_time_line(axes, distance, height, track.time, chart.end)
        options: dict[str, Any] = {"zorder": 5, "clip_on": False}
        axes.plot(distance[0], height[0], "o", color="white", markeredgecolor=INK, markersize=7, **options)
        axes.plot(distance[-1], height[-1], "s", color=INK, markeredgecolor="white", markersize=6, **options)
        if 1 < len(chart.moving_tracks) <= MAX_NAMES:
            options = {"textcoords": "offset points", "ha": "right", "fontsize": 7.5, "bbox": NAME_BOX, "zorder": 6}
            axes.annotate(truncate_name(track.name), (distance[-1], height[-1]), (-7, 6), **options)
    axes.set_xlim(0.0, scale.factor * longest)
    axes.set_ylim(low, high)
    axes.locator_params(nbins=TICKS)
    axes.ticklabel_format(useOffset=False, style="plain")
    axes.set_xlabel(f"distance ({scale.unit})")
    axes.set_ylabel("height (m)")
    axes.set_title(format_clearance(chart), fontsize=9, loc="left")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, borderaxespad=0.1)
    axes.grid(alpha=0.2)


def _draw_ground_below(axes: Any, distance: FloatArray, low: float, ground: FloatArray, *, is_single: bool) -> None:
    """Draw the ground (n,) below a track: as an area if the section has one track, else as a line."""
    label = None if "ground" in axes.get_legend_handles_labels()[1] else "ground"
    if is_single:
        axes.fill_between(distance, low, ground, color=EARTH, linewidth=0.0, zorder=2, label=label)
        axes.plot(distance, ground, color=INK, linewidth=0.8, zorder=3)
    else:
        axes.plot(distance, ground, color=EARTH, linewidth=0.8, zorder=3, label=label)


def find_height_limits(chart: WorldChart) -> tuple[float, float]:
    """Return the lowest and highest height (m) of a section."""
    series = (array for track in chart.moving_tracks for array in (track.position[:, 2], track.ground))
    heights = [array[np.isfinite(array)] for array in series]
    low, high = min(float(h.min()) for h in heights if h.size), max(float(h.max()) for h in heights if h.size)
    span, surface = max(high - low, MIN_HEIGHT_RANGE), chart.surface
    if surface is not None and low - SURFACE_REACH * span <= surface <= high + SURFACE_REACH * span:
        low, high = min(low, surface), max(high, surface)
        span = max(high - low, MIN_HEIGHT_RANGE)
    return low - 0.1 * span, high + 0.1 * span


def format_clearance(chart: WorldChart) -> str:
    """Return the minimum distance to the ground and its time; empty without ground."""
    tracks = chart.moving_tracks
    minima = [(*track.min_clearance, track.name) for track in tracks if track.min_clearance is not None]
    if not minima:
        return ""
    distance, time, name = min(minima)
    subject = "" if len(tracks) == 1 else f"{truncate_name(name)} "
    side = "" if distance >= 0.0 else " UNDER the ground"
    return f"minimum clearance: {abs(distance):.3g} m{side}, {subject}at {format_duration(round(time))}"


def draw_profiles(axes: Any, chart: WorldChart) -> None:
    """Draw the speed of the current by height over the start, at some times."""
    scale, times = choose_time_scale(chart.end), make_colour_map("time", TIME_COLOURS)
    profiles = [profile for profile in chart.profiles if np.isfinite(profile.speed).any()]
    for profile in profiles:
        colour = times(profile.time / chart.end) if len(profiles) > 1 else CURRENT
        label = f"at {scale.factor * profile.time:.3g} {scale.unit}"
        axes.plot(profile.speed, profile.height, color=colour, linewidth=1.8, label=label)
    place = f"at {truncate_name(chart.tracks[0].name)}" if chart.tracks else "in the middle"
    axes.set_xlabel(f"speed of the water {'at the starting point' if chart.moving_tracks else place} (m/s)")
    axes.set_ylabel("height (m)")
    axes.grid(alpha=0.2)
    if profiles:
        fastest = max(float(np.nanmax(profile.speed)) for profile in profiles)
        axes.set_xlim(0.0, 1.15 * fastest if fastest > 0.0 else 1.0)
        axes.locator_params(nbins=TICKS)
        axes.ticklabel_format(useOffset=False, style="plain")
        if len(profiles) > 1:
            axes.legend(fontsize=8, framealpha=0.85)
    if chart.undefined_reason:
        text = escape_dollar(textwrap.fill(f"not given everywhere: {chart.undefined_reason}", 56))
        axes.set_title(text, fontsize=8, loc="left")

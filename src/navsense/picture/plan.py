"""A chart seen from above: shaded ground with contours, tracks coloured by time, arrows of the current."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from navsense.geodesy import Origin
from navsense.picture.chart import Chart
from navsense.picture.flow import Arrows
from navsense.picture.ground import Relief
from navsense.picture.tracks import Track
from navsense.typing import BoolArray, FloatArray

UNDER = ("#24466b", "#3f6f94", "#74a3b8", "#aecbd0", "#e6efe6")
"""Colours of ground under water, the lowest first."""

DRY = ("#5f7a5b", "#9aa87c", "#cfc49c", "#b89f82", "#efe8dd")
"""Colours of ground in the air."""

TIME = "plasma"
"""Matplotlib's colours of time: dark purple to yellow."""

INK, WATER = "#1a1a1a", "#0b3c6f"

FAR = 20e3
"""Metres of a view from which on it is drawn in kilometres."""

STEEP = 0.45
"""Slope that shades well: the ground's usual slope is exaggerated, or flattened, to it."""

LEVELS, TICKS = 9, 6
"""Contours and intervals of an axis, at most."""

CONTOURS: dict[str, Any] = {"colors": INK, "linewidths": 0.6, "linestyles": "solid", "alpha": 0.45, "zorder": 1}
"""How contours look."""

NAMED, LETTERS = 12, 32
"""Vehicles whose names have room, and letters of a name that have."""

BOX: dict[str, Any] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
"""What a name stands on."""

MARK = 8.0
"""Pixels from the middle of a mark to its rim."""

PLACES = ((9, 9), (9, -9), (-9, 9), (-9, -9), (0, 15), (0, -15), (14, 24), (14, -24), (-14, 24), (-14, -24))
"""Points from a mark at which its name may stand, the best first."""


@dataclass(frozen=True)
class Scale:
    """A unit that lengths or times are drawn in, and how many of it are one metre or one second."""

    factor: float
    unit: str


def length_scale(size: float) -> Scale:
    """Return the unit for a view of this size (m)."""
    return Scale(1e-3, "km") if size >= FAR else Scale(1.0, "m")


def time_scale(last: float) -> Scale:
    """Return the unit for a time of this length (s)."""
    for least, seconds, unit in ((4 * 86400.0, 86400.0, "d"), (3 * 3600.0, 3600.0, "h"), (300.0, 60.0, "min")):
        if last > least:
            return Scale(1.0 / seconds, unit)
    return Scale(1.0, "s")


def plain(text: str) -> str:
    """Return a text as matplotlib takes it: a dollar would begin a formula."""
    return text.replace("$", r"\$")


def short(name: str) -> str:
    """Return a name that has room on a chart."""
    return plain(name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…")


def draw_plan(figure: Any, axes: Any, chart: Chart) -> None:
    """Draw a chart on the axes of a sheet."""
    scale = length_scale(max(chart.view.wide, chart.view.tall))
    axes.set_facecolor("#f2f2f0")
    if chart.relief.there:
        _ground(figure, axes, chart, scale)
    if chart.arrows is not None:
        _arrows(axes, chart.arrows, _hidden(chart.relief, chart.arrows), scale)
    coloured = None
    for track in chart.tracks:
        if track.moves:
            coloured = _track(axes, track, chart.last, scale)
    if coloured is not None:
        time = time_scale(chart.last)
        bar = figure.colorbar(coloured, ax=axes, location="bottom", aspect=45, shrink=0.8, pad=0.02)
        bar.set_label(f"time ({time.unit}); ○ start, ■ end")
    _dress(axes, chart, scale)


def _ground(figure: Any, axes: Any, chart: Chart, scale: Scale) -> None:
    """Draw the ground with its shades and contours, and the scale of its heights."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    relief, view = chart.relief, chart.view
    surface, middle = chart.surface, float(np.nanmedian(relief.height))
    under = surface is not None and middle < surface
    colours = LinearSegmentedColormap.from_list("ground", UNDER if under else DRY)
    low, high = float(np.nanmin(relief.height)), float(np.nanmax(relief.height))
    norm = Normalize(low, high) if not relief.flat else Normalize(low - 1.0, low + 1.0)
    ends = [scale.factor * end for end in (view.west, view.east, view.south, view.north)]
    axes.imshow(shaded(relief, colours, norm), origin="lower", extent=ends, interpolation="bilinear", zorder=0)
    if relief.flat:
        said = f"flat ground at {middle:.6g} m"
        axes.text(0.99, 0.01, said, transform=axes.transAxes, ha="right", va="bottom", fontsize=8, color=INK)
        return
    x, y = scale.factor * relief.x, scale.factor * relief.y
    if np.median(relief.slopes) > 0.0:  # steps on a floor have no contours but their edges
        lines = axes.contour(x, y, relief.height, LEVELS, **CONTOURS)
        axes.clabel(lines, fontsize=7, fmt="%g")
    bar = figure.colorbar(ScalarMappable(norm, colours), ax=axes, location="right", aspect=35, shrink=0.8, pad=0.02)
    bar.set_label("height of the ground (m)")


def shaded(relief: Relief, colours: Any, norm: Any) -> FloatArray:
    """Return the pixels (rows, columns, 4) of a relief lit from the north-west; clear where there is no ground."""
    from matplotlib.colors import LightSource

    gone = ~np.isfinite(relief.height)
    height = np.where(gone, np.nanmedian(relief.height), relief.height)
    east, north = relief.x[1] - relief.x[0], relief.y[1] - relief.y[0]
    usual = float(np.sqrt((relief.slopes**2).mean()))
    more = STEEP / usual if usual > 0.0 and not relief.flat else 1.0
    light = LightSource(azdeg=315.0, altdeg=50.0)
    shade = light.hillshade(height[::-1], vert_exag=more, dx=east, dy=north)[::-1]  # its first row is the northernmost
    pixels = np.array(colours(norm(height)))
    if not relief.flat:
        pixels[:, :, :3] = light.blend_soft_light(pixels[:, :, :3], shade[:, :, None])
    pixels[gone, 3] = 0.0
    return pixels


def _hidden(relief: Relief, arrows: Arrows) -> BoolArray:
    """Return which arrows (n,) would stand in the ground."""
    column = np.abs(relief.x[None, :] - arrows.place[:, :1]).argmin(axis=1)
    row = np.abs(relief.y[None, :] - arrows.place[:, 1:]).argmin(axis=1)
    return np.asarray(relief.height[row, column] > arrows.height)


def _arrows(axes: Any, arrows: Arrows, hidden: BoolArray, scale: Scale) -> None:
    """Draw the current, and the arrow that its scale is told by."""
    speed = np.sqrt((arrows.velocity[:, :2] ** 2).sum(axis=1))
    shown = np.isfinite(speed) & ~hidden
    fastest = float(speed[shown].max()) if shown.any() else 0.0
    if fastest == 0.0:
        return
    place, flow = scale.factor * arrows.place[shown], arrows.velocity[shown]
    width = 0.9 * arrows.spacing * scale.factor
    drawn = axes.quiver(
        place[:, 0], place[:, 1], flow[:, 0], flow[:, 1],
        angles="xy", scale_units="xy", scale=fastest / width, pivot="middle",
        color=WATER, alpha=0.65, width=0.0025, zorder=2,
    )  # fmt: skip
    said = f"current at 0 s and height {arrows.height:.4g} m; this arrow is {round_number(fastest):g} m/s"
    axes.quiverkey(drawn, 0.9, 1.025, round_number(fastest), said, labelpos="W", fontproperties={"size": 9})


def round_number(value: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is not above a value."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1.0, 2.0, 5.0) if step * power <= value * (1.0 + 1e-9))


def _track(axes: Any, track: Track, last: float, scale: Scale) -> Any:
    """Draw a track with its start and its end; return what has the colours of time."""
    x, y = scale.factor * track.position[:, 0], scale.factor * track.position[:, 1]
    axes.plot(x, y, color="white", linewidth=4.0, alpha=0.8, solid_capstyle="round", zorder=3)
    lines = coloured(axes, x, y, track.time, last)
    axes.plot(x[0], y[0], "o", color="white", markeredgecolor=INK, markersize=8, zorder=6)
    axes.plot(x[-1], y[-1], "s", color=INK, markeredgecolor="white", markersize=7, zorder=5)
    return lines


def coloured(axes: Any, x: FloatArray, y: FloatArray, time: FloatArray, last: float) -> Any:
    """Draw a line (n,) in the colours of time (n,) s, which end at `last`; return what has them."""
    from matplotlib.collections import LineCollection

    factor = time_scale(last).factor
    points = np.stack((x, y), axis=1)
    lines = LineCollection(list(np.stack((points[:-1], points[1:]), axis=1)), cmap=TIME, linewidths=2.2, zorder=4)
    lines.set_capstyle("round")
    lines.set_snap(False)  # each piece would be moved to whole pixels by itself
    lines.set_array(0.5 * factor * (time[:-1] + time[1:]))
    lines.set_clim(0.0, factor * last)
    axes.add_collection(lines)
    return lines


def _dress(axes: Any, chart: Chart, scale: Scale) -> None:
    """Mark what stands still, and give the chart its frame, axes and north."""
    for track in chart.tracks:
        if not track.moves:
            x, y = (scale.factor * track.position[0, :2]).tolist()
            axes.plot(x, y, "D", color="#d1733a", markeredgecolor=INK, markersize=7, zorder=6)
    view, origin = chart.view, chart.world.environment.origin
    axes.set_xlim(scale.factor * view.west, scale.factor * view.east)
    axes.set_ylim(scale.factor * view.south, scale.factor * view.north)
    axes.set_aspect("equal", adjustable="box")
    axes.ticklabel_format(useOffset=False, style="plain")
    axes.locator_params(nbins=TICKS)
    aligned = origin is not None and origin.heading == 0.0
    axes.set_xlabel(f"x{', east' if aligned else ''} ({scale.unit})")
    axes.set_ylabel(f"y{', north' if aligned else ''} ({scale.unit})")
    axes.grid(alpha=0.2)
    if origin is not None:
        _north(axes, origin)


def _north(axes: Any, origin: Origin) -> None:
    """Draw where north is: the world's x axis points `heading` from east towards north."""
    x, y = 14.0 * math.sin(origin.heading), 14.0 * math.cos(origin.heading)
    tip = {"arrowstyle": "-|>,head_width=0.35,head_length=0.7", "color": INK, "linewidth": 1.6, "shrinkA": 3.0}
    ends = {"xycoords": "axes points", "textcoords": "axes points", "ha": "center", "va": "center", "fontsize": 9}
    axes.annotate("N", (28.0 + x, 28.0 + y), (28.0 - x, 28.0 - y), arrowprops=tip, zorder=8, **ends)


def draw_names(figure: Any, axes: Any, chart: Chart) -> None:
    """Write the names of the vehicles beside their starts, each where it is on no other; the layout is final."""
    if len(chart.tracks) > NAMED:
        return
    scale = length_scale(max(chart.view.wide, chart.view.tall))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    places = [(scale.factor * track.position[0, :2]).tolist() for track in chart.tracks]
    taken = [_mark(axes, place) for place in places]
    for track, place in zip(chart.tracks, places, strict=True):
        height = "" if track.moves else f" ({track.position[0, 2]:.4g} m)"
        taken.append(_name(axes, f"{short(track.name)}{height}", place, taken))


def _mark(axes: Any, place: list[float]) -> Any:
    """Return the part of the sheet that the mark of a start takes."""
    from matplotlib.transforms import Bbox

    x, y = axes.transData.transform(place)
    return Bbox.from_extents(x - MARK, y - MARK, x + MARK, y + MARK)


def _name(axes: Any, name: str, place: list[float], taken: list[Any]) -> Any:
    """Write one name, and return the part of the sheet that it takes; where no place is free, the first one."""
    whole = axes.get_window_extent()
    first = None
    for right, up in PLACES:
        sides = {"ha": "center" if right == 0 else "left" if right > 0 else "right", "va": "center"}
        written = axes.annotate(
            name, place, (right, up), textcoords="offset points", fontsize=8.5, bbox=BOX, zorder=7, **sides
        )
        extent = written.get_window_extent()
        inside = whole.x0 <= extent.x0 and extent.x1 <= whole.x1 and whole.y0 <= extent.y0 and extent.y1 <= whole.y1
        if inside and not any(extent.overlaps(other) for other in taken):
            if first is not None:
                first[0].remove()
            return extent
        if first is None:
            first = (written, extent)
        else:
            written.remove()
    return first[1] if first else None

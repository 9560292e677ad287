"""A chart seen from the side: heights along the way with the ground beneath, and the water's speed by height."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from navsense.picture.chart import Chart
from navsense.picture.plan import BOX, INK, NAMED, TICKS, TIME, WATER, coloured, length_scale, plain, short, time_scale
from navsense.typing import FloatArray

EARTH, SEA = "#9c7f5f", "#cfe3ee"

REACH = 4.0
"""Parts of what is shown anyway by which the water's surface may widen a profile."""

FLAT = 1.0
"""Metres that a profile shows at least."""


def draw_profile(axes: Any, chart: Chart) -> None:
    """Draw the heights of all that moves along its way."""
    low, high = limits(chart)
    farthest = max(float(track.way[-1]) for track, _ in chart.moving)
    scale = length_scale(farthest)
    surface = chart.surface
    if surface is not None and surface > low:
        axes.axhspan(low, min(surface, high), color=SEA, zorder=0)
        axes.axhline(surface, color=WATER, linewidth=1.0, zorder=1)
    for track, bottom in chart.moving:
        way = scale.factor * track.way
        if len(chart.moving) == 1:
            axes.fill_between(way, low, bottom, color=EARTH, linewidth=0.0, zorder=2)
        axes.plot(way, bottom, color=INK if len(chart.moving) == 1 else EARTH, linewidth=0.8, zorder=3)
        coloured(axes, way, track.position[:, 2], track.time, chart.last)
        ends = {"zorder": 5, "clip_on": False}
        axes.plot(way[0], track.position[0, 2], "o", color="white", markeredgecolor=INK, markersize=7, **ends)
        axes.plot(way[-1], track.position[-1, 2], "s", color=INK, markeredgecolor="white", markersize=6, **ends)
        if 1 < len(chart.moving) <= NAMED:
            end = (way[-1], track.position[-1, 2])
            axes.annotate(
                short(track.name),
                end,
                (-7, 6),
                textcoords="offset points",
                ha="right",
                fontsize=7.5,
                bbox=BOX,
                zorder=6,
            )
    axes.set_xlim(0.0, scale.factor * farthest)
    axes.set_ylim(low, high)
    axes.locator_params(nbins=TICKS)
    axes.ticklabel_format(useOffset=False, style="plain")
    axes.set_xlabel(f"way ({scale.unit})")
    axes.set_ylabel("height (m)")
    axes.set_title(clearance_words(chart), fontsize=9, loc="left")
    axes.grid(alpha=0.2)


def limits(chart: Chart) -> tuple[float, float]:
    """Return the lowest and highest height (m) of a profile."""
    values = [array[np.isfinite(array)] for track, bottom in chart.moving for array in (track.position[:, 2], bottom)]
    low, high = min(float(v.min()) for v in values if v.size), max(float(v.max()) for v in values if v.size)
    span, surface = max(high - low, FLAT), chart.surface
    if surface is not None and low - REACH * span <= surface <= high + REACH * span:
        low, high = min(low, surface), max(high, surface)
        span = max(high - low, FLAT)
    return low - 0.1 * span, high + 0.1 * span


def clearance_words(chart: Chart) -> str:
    """Return how near anything comes to the ground, and when; empty where there is no ground beneath."""
    nearest: tuple[float, float, str] | None = None
    for track, bottom in chart.moving:
        gap: FloatArray = track.position[:, 2] - bottom
        if np.isfinite(gap).any():
            row = int(np.nanargmin(gap))
            found = (float(gap[row]), float(track.time[row]), track.name)
            nearest = min(nearest or found, found)
    if nearest is None:
        return ""
    gap_m, time, name = nearest
    scale = time_scale(chart.last)
    who = "" if len(chart.moving) == 1 else f"{short(name)} "
    side = "" if gap_m >= 0.0 else " UNDER the ground"
    return f"least clearance: {abs(gap_m):.3g} m{side}, {who}at {scale.factor * time:.3g} {scale.unit}"


def draw_columns(axes: Any, chart: Chart) -> None:
    """Draw the speed of the water by height, at some instants, over the start."""
    from matplotlib import colormaps

    scale = time_scale(chart.last)
    told = [column for column in chart.columns if np.isfinite(column.speed).any()]
    for column in told:
        colour = colormaps[TIME](column.time / chart.last) if len(told) > 1 else WATER
        label = f"at {scale.factor * column.time:.3g} {scale.unit}"
        axes.plot(column.speed, column.height, color=colour, linewidth=1.8, label=label)
    standing = f"at {short(chart.tracks[0].name)}" if chart.tracks else "in the middle"
    place = "at the starting point" if chart.moving else standing
    axes.set_xlabel(f"speed of the water {place} (m/s)")
    axes.set_ylabel("height (m)")
    axes.grid(alpha=0.2)
    if told:
        fastest = max(float(np.nanmax(column.speed)) for column in told)
        axes.set_xlim(0.0, 1.15 * fastest if fastest > 0.0 else 1.0)
        axes.locator_params(nbins=TICKS)
        axes.ticklabel_format(useOffset=False, style="plain")
        if len(told) > 1:
            axes.legend(fontsize=8, framealpha=0.85)
    if chart.untold:
        why = plain(textwrap.fill(f"not given everywhere: {chart.untold}", 56))
        axes.set_title(why, fontsize=8, loc="left")

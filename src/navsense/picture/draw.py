"""The sheet: a chart from above, its profile, and the current by depth, beside or below as the chart's shape has it."""

from __future__ import annotations

import math
import os
import textwrap
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from navsense.errors import RecordingError
from navsense.figures import check_figure_path, make_figure, require_matplotlib, save_figure
from navsense.picture.chart import Chart, chart_of
from navsense.picture.plan import draw_names, draw_plan, plain, time_scale
from navsense.picture.profile import draw_columns, draw_profile
from navsense.recordings.base import check_target
from navsense.simulation import MotionGiven, load_motions
from navsense.world import World

WIDE = 1.3
"""Width over height of a view from which on the profile stands below it."""

LETTERS = 110
"""Letters of a line of the title."""


def check(path: str | os.PathLike[str]) -> Path:
    """Return where a picture goes.

    Raise `RecordingError` for another suffix, no possible place, or without matplotlib.
    """
    target = check_figure_path(path, RecordingError)
    check_target(target)
    require_matplotlib(RecordingError)
    return target


def draw(
    path: str | os.PathLike[str],
    world: World,
    *,
    motion: MotionGiven | Mapping[str, MotionGiven] | None = None,
    duration: float | None = None,
    seed: int = 0,
    run: int = 0,
) -> None:
    """Write a picture (`.png`, `.svg`, `.pdf`) of a world: ground, tracks and current from above and from the side.

    `motion` is as in `simulate`. Without a `duration` (s) each track goes to the end of its motion, and a loop never
    more than once round. A current by chance is that of one run of a seed. Ground is every surface that stands still
    and is not of a model that carries sensors.

    Raises `RecordingError` where the picture cannot be written or matplotlib is not there, `FieldError` for a surface
    that
    cannot be read, `SimulationError` and `MotionError` for motions and durations that cannot be.
    """
    target = check(path)
    chart = chart_of(world, load_motions(world, motion), duration, seed, run)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a name in letters that the font has not
        save_figure(_sheet(chart), target, RecordingError)


def _sheet(chart: Chart) -> Any:
    """Return the sheet of a chart."""
    below = [draw_profile] if chart.moving else []
    below += [draw_columns] if chart.columns else []
    ratio = chart.view.wide / chart.view.tall
    if not below:
        figure = make_figure(9.0 * min(ratio, 1.0) + 1.2, 9.0 / max(ratio, 1.0) + 1.0, RecordingError)
        plan, parts = figure.add_subplot(), []
    elif ratio >= WIDE:
        tall, foot = max(10.0 / ratio, 3.5) + 1.2, 3.2
        figure = make_figure(12.0, tall + foot + 0.6, RecordingError)
        grid = figure.add_gridspec(2, 6, height_ratios=(tall, foot))
        plan = figure.add_subplot(grid[0, :])
        parts = [grid[1, :]] if len(below) == 1 else [grid[1, :4], grid[1, 4:]]
    else:
        figure = make_figure(7.2 * ratio + 7.0, 8.6, RecordingError)
        grid = figure.add_gridspec(2, 2, width_ratios=(7.2 * ratio + 1.2, 5.5))
        plan = figure.add_subplot(grid[:, 0])
        parts = [grid[:, 1]] if len(below) == 1 else [grid[0, 1], grid[1, 1]]
    draw_plan(figure, plan, chart)
    for panel, place in zip(below, parts, strict=True):
        panel(figure.add_subplot(place), chart)
    figure.suptitle(_title(chart), x=0.01, ha="left", fontsize=11)
    draw_names(figure, plan, chart)
    return figure


def _title(chart: Chart) -> str:
    """Return the world's name, its place, how long its tracks last, and whose current it is."""
    origin, moving = chart.world.environment.origin, len(chart.moving)
    parts = []
    if origin is not None:
        latitude, longitude = math.degrees(origin.latitude), math.degrees(origin.longitude)
        north, east = "S" if latitude < 0.0 else "N", "W" if longitude < 0.0 else "E"
        parts.append(f"at {abs(latitude):.6g}° {north}, {abs(longitude):.6g}° {east}")
    time = time_scale(chart.last)
    tracks = f"{moving} track{'s' if moving > 1 else ''} of {time.factor * chart.last:.4g} {time.unit}"
    parts.append(tracks if moving else "nothing moves")
    return "\n".join(plain(textwrap.fill(text, LETTERS)) for text in (chart.world.name, "; ".join(parts)) if text)

"""The picture of a flight as SVG: its track from above, and its height over time. It needs no matplotlib."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from navsense import recordings
from navsense.core import atomic
from navsense.core.typing import FloatArray
from navsense.figures import choose_length_scale
from navsense.recordings.base import os_error
from navsense.report.axes import Axis, make_linear_axis, make_time_axis

SIDE, LEFT, TOP, BOTTOM = 420.0, 70.0, 40.0, 60.0
"""Sides of a plot, and margins around it (pixels)."""

MARGIN = 0.08
"""Space around the track from above, relative to its size."""

TICKS = 6
"""Ticks of an axis at most."""

MAX_POINTS = 2000
"""Points of a line at most: more than pixels of the picture."""

STYLE = """
text{font:13px "DejaVu Sans",Helvetica,Arial,sans-serif;fill:#1b2530}.heading{font-size:16px;font-weight:600}
.grid{stroke:#e3e7eb}.frame{fill:none;stroke:#98a3ae}.track{fill:none;stroke:#0072b2;stroke-width:2.5}
.start{fill:#fff;stroke:#1b2530;stroke-width:2}.end{fill:#1b2530;stroke:#fff;stroke-width:1.5}
"""
"""Light colours: a picture has no dark mode."""


def write_flight_picture(recording: Path, target: Path) -> None:
    """Write an SVG with the track of the first link in a recording. Raises `RecordingError`."""
    truth = next(iter(recordings.open(recording).truth.values()))
    rows = np.unique(np.linspace(0, truth.time.size - 1, MAX_POINTS).astype(np.int64))
    time, (x, y, z) = truth.time[rows], truth.position[rows].T
    panels = (
        _draw_panel(0, "Track from above", *_make_map_axes(x, y), x, y),
        _draw_panel(1, "Height", make_time_axis(time[0], time[-1]), make_linear_axis("height", "m", [z]), time, z),
    )
    width, height = len(panels) * (LEFT + SIDE) + 20.0, TOP + SIDE + BOTTOM
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(panels)}</svg>\n'
    )
    try:
        with atomic.replace_file(target) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise os_error(target, error) from error


def _make_map_axes(x: FloatArray, y: FloatArray) -> tuple[Axis, Axis]:
    """Return axes of equal length around a track."""
    half = (0.5 + MARGIN) * max(float(np.ptp(x)), float(np.ptp(y)), 1.0)
    scale = choose_length_scale(half)
    middles = (0.5 * (float(series.min()) + float(series.max())) for series in (x, y))
    titles = (f"x, east ({scale.unit})", f"y, north ({scale.unit})")
    east, north = (
        Axis((middle - half) * scale.factor, (middle + half) * scale.factor, title, scale)
        for middle, title in zip(middles, titles, strict=True)
    )
    return east, north


def _draw_panel(column: int, title: str, x_axis: Axis, y_axis: Axis, x: FloatArray, y: FloatArray) -> str:
    """Return a plot with a line (n,), its start and its end."""
    right, down = x_axis.compute_positions(x) * SIDE, (1.0 - y_axis.compute_positions(y)) * SIDE
    points = [f"{a:.1f},{b:.1f}" for a, b in zip(right.tolist(), down.tolist(), strict=True)]
    parts = [f'<text class="heading" y="-12">{escape(title)}</text>']
    for place, text in x_axis.make_ticks(TICKS):
        parts.append(f'<path class="grid" d="M{place * SIDE:.1f},0v{SIDE:g}"/>')
        parts.append(f'<text x="{place * SIDE:.1f}" y="{SIDE + 20.0:g}" text-anchor="middle">{escape(text)}</text>')
    for place, text in y_axis.make_ticks(TICKS):
        height = (1.0 - place) * SIDE
        parts.append(f'<path class="grid" d="M0,{height:.1f}h{SIDE:g}"/>')
        parts.append(f'<text x="-8" y="{height + 4.5:.1f}" text-anchor="end">{escape(text)}</text>')
    middle = f'text-anchor="middle">{escape(y_axis.title)}'
    parts += [
        f'<text x="{0.5 * SIDE:g}" y="{SIDE + 45.0:g}" text-anchor="middle">{escape(x_axis.title)}</text>',
        f'<text transform="translate(-48,{0.5 * SIDE:g})rotate(-90)" {middle}</text>',
        f'<rect class="frame" width="{SIDE:g}" height="{SIDE:g}"/><path class="track" d="M{"L".join(points)}"/>',
        f'<circle class="start" cx="{right[0]:.1f}" cy="{down[0]:.1f}" r="6"/>',
        f'<rect class="end" x="{right[-1] - 4.0:.1f}" y="{down[-1] - 4.0:.1f}" width="8" height="8"/>',
    ]
    return f'<g transform="translate({column * (LEFT + SIDE) + LEFT:g},{TOP:g})">{"".join(parts)}</g>'

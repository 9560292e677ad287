"""The picture of a flight as SVG, from the figures of the report: it needs no matplotlib."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from navsense.core import atomic
from navsense.core.errors import RecordingError
from navsense.recordings.base import os_error
from navsense.report.report_data import read_report_data
from navsense.report.track import make_height_figure, make_map_figure, make_track_map

SCALE = 1.6
"""Pixels of the picture per unit of a figure."""

TITLE_HEIGHT = 24.0
"""Height (units) of the title above each figure."""

STYLE = """
text{font:12px system-ui,"DejaVu Sans",sans-serif;fill:#1b2530}text.title{fill:#5b6773}
text.heading{font-size:14px;font-weight:600}
path{fill:none;stroke-linejoin:round;stroke-linecap:round}path.grid{stroke:#dde2e7;stroke-width:.7}
.frame{fill:none;stroke:#9aa5b0}path.c0{stroke:#2f6fb3;stroke-width:1.3}path.casing{stroke:none}
path.earth{fill:#b39a78}path.track{stroke-width:2.6}.start{fill:#fff;stroke:#10161c;stroke-width:1.8}
.end{fill:#10161c;stroke:#fff;stroke-width:1.6}
"""
"""Style of the elements: light, because a picture does not follow the colours of a page."""


def write_flight_picture(recording: Path, world: Path, target: Path) -> None:
    """Write an SVG with the track of a recording from above and its height over time. Raises `RecordingError`."""
    data = read_report_data(str(recording), str(world))
    track_map = make_track_map(data)
    if track_map is None:
        raise RecordingError("contains no track", str(recording))
    figures = make_map_figure(data, track_map), make_height_figure(data, track_map)
    figures[1].plots[0].height = figures[0].plots[0].height
    parts, left, height = [], 0.0, 0.0
    for figure in figures:
        html = figure.format_html()
        drawing = html[html.index("<svg") : html.index("</figure>")].partition("<figcaption")[0]
        _, _, *size = re.findall(r"[\d.]+", drawing.partition('viewBox="')[2])[:4]
        place = f'<svg x="{left:g}" y="{TITLE_HEIGHT:g}" width="{size[0]}" height="{size[1]}"'
        parts.append(f'<text class="heading" x="{left + 10.0:g}" y="17">{escape(figure.title)}</text>')
        parts.append(drawing.replace("<svg", place, 1))
        left, height = left + float(size[0]), max(height, TITLE_HEIGHT + float(size[1]))
    extent = f'width="{SCALE * left:g}" height="{SCALE * height:g}" viewBox="0 0 {left:g} {height:g}"'
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {extent}><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )
    try:
        with atomic.replace_file(target) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise os_error(target, error) from error

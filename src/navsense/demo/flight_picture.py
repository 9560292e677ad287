"""The picture of a flight as SVG: its track from above, and its height over time. It needs no matplotlib."""

from __future__ import annotations

from pathlib import Path

from navsense.core import atomic
from navsense.core.errors import RecordingError
from navsense.recordings.base import make_os_error
from navsense.report.report_data import read_report_data
from navsense.report.svg_figure import format_svg_file
from navsense.report.track import make_height_figure, make_map_figure, make_track_map


def write_flight_picture(recording: Path, target: Path) -> None:
    """Write an SVG with the tracks of a recording, from above and by height. Raises `RecordingError`."""
    data = read_report_data(str(recording))
    track_map = make_track_map(data)
    if track_map is None:
        raise RecordingError("contains no track", str(recording))
    text = format_svg_file([make_map_figure(data, track_map), make_height_figure(data, track_map)])
    try:
        with atomic.replace_file(target) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise make_os_error(target, error) from error

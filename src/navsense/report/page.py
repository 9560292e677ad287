"""The page: summary, warnings, tracks, faults, clocks, water, each sensor, in one HTML file that loads nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import chain, islice
from pathlib import Path

import numpy as np

from navsense.core import atomic
from navsense.core.errors import RecordingError
from navsense.core.readings import Reading
from navsense.core.text import format_count, format_duration
from navsense.figures import DARK, LIGHT
from navsense.messages.base import get_clock_name
from navsense.recordings.base import check_output_file, make_os_error
from navsense.recordings.info import get_version
from navsense.report import doppler, faults, track
from navsense.report.clock_section import make_clock_figures, make_clock_sections
from navsense.report.report_data import ReportData, read_report_data
from navsense.report.residuals import NoiseTest
from navsense.report.sensor_section import ArraySection, format_array_table, make_array_figures, make_array_sections
from navsense.report.summary import format_summary
from navsense.report.svg_figure import SvgFigure, read_style_sheet
from navsense.report.warnings import ReportEntry, find_entries
from navsense.world import World

SUFFIXES = (".html", ".htm")
"""Suffixes of a report."""

MAIN_ARRAYS = {
    "dvl": ("velocity", "altitude"),
    "adcp": ("bottom_velocity",),
    "imu": ("angular_velocity", "linear_acceleration"),
}
"""Arrays that the page shows without a click, by sensor type; for other types those with declared noise."""

GRID_COLUMNS = 12
"""Columns of the grid; a figure spans several of them."""

GRID_FIGURES = {"m": 2, "l": 3, "w": 4}
"""Prefix of a CSS class (medium, large, wide window) -> number of figures side by side in such a window."""

FIGURE_WIDTH, FIGURE_GAP, PAGE_MARGIN = 366, 12, 28
"""Minimum width of a figure, gap between two, and margin of the page (pixels)."""

CONTENT_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Content-Security-Policy: the page loads nothing from outside."""


def write(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    world: str | World | None = None,
    expand_xacro: bool = False,
) -> Path:
    """Write the report of a recording as one HTML page, and return its path.

    path: the recording.
    output: the page, ending in `.html` or `.htm`.
    world: the world that was simulated, or its file. It has the ground, and what the recording does not contain. None:
        the only `.sdf` or `.world` file in the folder of the recording whose `<world name>` is that of the recording.
    expand_xacro: True lets the file `world` run xacro, as in `load`. For other options of `load`, pass a world.

    Raises `RecordingError` if `path` is not a recording or the report cannot be written, and the errors of `load` for
    the world.

    >>> run.save("flight.mcap")
    >>> ns.report.write("flight.mcap", "flight.html", world="quadrotor.sdf").name
    'flight.html'
    """
    page_path = check_report_path(output)
    return save_page(make_page(read_report_data(os.fspath(path), world, expand_xacro=expand_xacro)), page_path)


def check_report_path(output: str | os.PathLike[str]) -> Path:
    """Return the path of a report. Raises `RecordingError` for another suffix, or if no file can be there."""
    target = Path(output)
    if target.suffix.lower() not in SUFFIXES:
        allowed = f"must end in {' or '.join(SUFFIXES)}"
        raise RecordingError("report", str(output), allowed=allowed, remedy="name it as in -o report.html")
    check_output_file(target)
    return target


@np.errstate(over="ignore", invalid="ignore")  # readings can contain any number
def make_page(data: ReportData) -> str:
    """Return the HTML of the page."""
    track_map = track.make_track_map(data)
    array_sections = {
        name: make_array_sections(reading, data.sensors.get(name)) for name, reading in data.readings.items()
    }
    entries = find_entries(data, array_sections, track_map)
    keys = {name: re.sub(r"[^\w]|_", "-", f"sensor-{name}") for name in data.readings}
    sections = [
        ("summary", "Summary", format_summary(data, array_sections, track_map, keys)),
        ("warnings", "Warnings", _format_entries(entries, array_sections)),
        ("track", "Track", format_grid(_make_track_figures(data, track_map))),
        ("faults", "Faults", format_grid(faults.make_fault_figures(data))),
        ("clocks", "Clocks: stamps against true time", _format_clock_section(data)),
        ("water", "Water", format_grid(doppler.make_current_figures(data))),
        *((keys[name], name, _format_sensor_section(data, name, array_sections[name])) for name in data.readings),
    ]
    short = [(key, data.short_names.get(title, title), title, body) for key, title, body in sections if body]
    return format_page(data.name, _format_headline(data), short)


def format_page(name: str, headline: str, sections: Sequence[tuple[str, str, str, str]]) -> str:
    """Return a page of HTML.

    sections: identifier, short title, title and HTML of each section.
    """
    links = "".join(f'<a href="#{key}">{escape(short)}</a>' for key, short, _, _ in sections)
    main = "".join(f'<section id="{key}"><h2>{escape(title)}</h2>{body}</section>' for key, _, title, body in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}"><link rel="icon" href="data:,">'
        f"<title>{escape(name)}: navsense report</title><style>{_format_css()}</style></head><body>"
        f"<header><h1>{escape(name)}</h1><p>{escape(headline)}</p></header>"
        f'<nav aria-label="Sections">{links}</nav><main>{main}</main></body></html>\n'
    )


def save_page(text: str, page_path: Path) -> Path:
    """Write a page, and return its path. Raises `RecordingError`."""
    try:
        with atomic.replace_file(page_path) as temporary:
            # A file name that is not UTF-8 contains surrogates.
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise make_os_error(page_path, error) from error
    return page_path


def _format_headline(data: ReportData) -> str:
    first, last = data.span
    parts = [Path(data.path).name, *([f"world {data.name}"] if data.name != Path(data.path).name else [])]
    parts += [format_duration(last - first), format_count(len(data.readings), "sensor")]
    if data.metadata.get("seed") is not None:
        parts.append(f"seed {data.metadata['seed']}")
    count = sum(int(reading.emitted.sum()) for reading in data.readings.values())
    return "; ".join([*parts, format_count(count, "sample"), f"navsense {get_version()}"])


def format_grid(figures: Iterable[SvgFigure]) -> str:
    """Return the figures that have data side by side, as many as there is room for; empty without any."""
    figures = [figure for figure in figures if figure.has_data]
    parts = "".join(
        figure.format_html(classes) for figure, classes in zip(figures, make_grid_classes(len(figures)), strict=True)
    )
    return f'<div class="grid">{parts}</div>' if parts else ""


def _format_css() -> str:
    """Return the style sheet without its comments, with its colours and the columns of the grid."""
    css = re.sub(r"/\*.*?\*/\n?", "", read_style_sheet())
    colours = f":root{{color-scheme:light dark;{LIGHT.format_css()}}}"
    rules = [colours, f"@media (prefers-color-scheme:dark){{:root{{{DARK.format_css()}}}}}", css]
    for letter, figures_per_row in GRID_FIGURES.items():
        spans = "".join(
            f".{letter}{GRID_COLUMNS // n}{{grid-column:span {GRID_COLUMNS // n}}}"
            for n in range(1, figures_per_row + 1)
        )
        width = (FIGURE_WIDTH + FIGURE_GAP) * figures_per_row - FIGURE_GAP + PAGE_MARGIN
        rules.append(f"@media (min-width:{width}px){{{spans}}}\n")
    return "".join(rules)


def make_grid_classes(count: int) -> list[str]:
    """Return the CSS classes of `count` figures: how many grid columns each one spans, for each window width.

    The first row has the remainder, with wider figures, so that no row ends with a hole.
    """
    spans = []
    for letter, figures_per_row in GRID_FIGURES.items():
        rows, rest = divmod(count, figures_per_row)
        sizes = [*([rest] if rest else []), *[figures_per_row] * rows]
        spans.append([f"{letter}{GRID_COLUMNS // size}" for size in sizes for _ in range(size)])
    return [" ".join(classes) for classes in zip(*spans, strict=True)]


def _format_entries(entries: Sequence[ReportEntry], sections: Mapping[str, Sequence[ArraySection]]) -> str:
    """Return the list of warnings and notes; without warnings, the number of passed tests before them."""
    lines = [f'<li class="{entry.kind}"><b>{escape(entry.subject)}</b>{escape(entry.text)}</li>' for entry in entries]
    if not any(entry.kind == "warning" for entry in entries):
        counts = [
            sum(isinstance(test, NoiseTest) for section in sensor_sections for test in section.tests)
            for sensor_sections in sections.values()
        ]
        tested = f"{sum(map(bool, counts))} of {format_count(len(counts), 'sensor')}"
        text = (
            f"{format_count(sum(counts), 'noise test')} passed, in {tested}" if any(counts) else "no noise was tested"
        )
        css_class = "fine" if any(counts) else "note"
        lines.insert(0, f'<li class="{css_class}">No warnings: every sensor has values; {text}.</li>')
    return f'<ul class="warnings">{"".join(lines)}</ul>'


def _make_track_figures(data: ReportData, track_map: track.TrackMap | None) -> Iterable[SvgFigure]:
    """Yield heights over time, the map, beams of DVLs and profiles of ADCPs."""
    if track_map is not None:
        yield track.make_height_figure(data, track_map)  # first: the first figure can be as wide as the page
        yield track.make_map_figure(data, track_map)
    for reading in data.readings.values():
        if reading.type == "dvl":
            yield from doppler.make_beam_figures(reading, data.short_names[reading.name], data.span)
        if reading.type == "adcp":
            # The first figure is the profile of the current; the others are in the section of the sensor.
            yield from islice(doppler.make_profile_figures(reading, data.sensors.get(reading.name), data.span), 1)


def _format_clock_section(data: ReportData) -> str:
    if not data.has_true_time:
        return "<p>Not checked: the recording has no true time. All times on this page are stamps.</p>"
    sections = make_clock_sections(data)
    if not sections:
        return "<p>All stamps are true time: no sensor has a clock with an error.</p>" if data.readings else ""
    return format_grid(chain.from_iterable(make_clock_figures(section, data) for section in sections))


def _format_sensor_section(data: ReportData, name: str, sections: Sequence[ArraySection]) -> str:
    reading, sensor = data.readings[name], data.sensors.get(name)
    parts = [reading.type.replace("_", " ")]
    if sensor is not None:
        clock = get_clock_name(sensor) if data.has_true_time else "not recorded"
        parts += [f"{sensor.rate:g} Hz", f"clock: {clock}", f"topic {sensor.topic}"]
    body = f"<p>{escape(', '.join(parts))}</p>"
    if reading.type == "adcp":
        profiles = doppler.make_profile_figures(reading, sensor, data.span)
        body += format_grid([*profiles, *doppler.make_quality_figures(reading, sensor, data.span)])
        body += doppler.format_cell_table(reading, sensor)
    names = MAIN_ARRAYS.get(reading.type)
    if names is None:
        names = tuple(section.name for section in sections if section.has_declared_noise)
    main = [section for section in sections if section.name in names] or list(sections[:1])
    folded = [section for section in sections if section not in main]
    if main:
        body += _format_arrays(main, reading, data.span)
    if folded:
        titles = escape(", ".join(section.title for section in folded))
        content = _format_arrays(folded, reading, data.span)
        body += f"<details><summary>More: {titles}</summary>{content}</details>"
    if not sections:
        has_ideal = bool(reading.ideal)
        reason = "its readings are constant and have no error" if has_ideal else "the recording has no ideal readings"
        body += f"<p>No figures of {escape(name)}: {reason}.</p>"
    return body


def _format_arrays(sections: Sequence[ArraySection], reading: Reading, span: tuple[float, float]) -> str:
    grids = [(section.title, format_grid(make_array_figures(section, reading, span))) for section in sections]
    return "".join(f"<h3>{escape(title)}</h3>{grid}" for title, grid in grids) + format_array_table(sections)

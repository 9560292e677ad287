"""The page: warnings, tracks, faults, clocks and water, then each sensor, in one HTML file that loads nothing."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from pathlib import Path

import numpy as np

from navsense import atomic
from navsense.errors import RecordingError
from navsense.recordings.base import check_target, os_error
from navsense.recordings.header import get_version
from navsense.report import cells, clocks, doppler, faults, track
from navsense.report.draw import Figure
from navsense.report.findings import Finding, findings_of
from navsense.report.recorded import Recorded, recording_of
from navsense.report.sensors import Told, figures_of, table_of, told_of, words
from navsense.report.style import COLUMNS, CSS, PARTS

SUFFIXES = (".html", ".htm")
"""What a report is written as."""

FOREMOST = {
    "dvl": ("velocity", "altitude"),
    "adcp": ("bottom_velocity",),
    "imu": ("angular_velocity", "linear_acceleration"),
}
"""Arrays that are shown at once, by type; of other types those with declared noise. The rest is folded in."""

FINE = "Nothing to warn of: every sensor gives numbers; noise is as declared where that can be told."
"""What stands where there is no warning."""

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What the page may load: nothing but what is in it."""


def write(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    world: str | None = None,
    expand_xacro: bool = False,
) -> Path:
    """Write the report of a recording as one HTML page; return where.

    `world` is the file that was simulated: terrain and the sheets of the clocks are in it; without one a world file of
    that name in the recording's folder is used. `expand_xacro` lets `world` run xacro, as in `load`.
    Raises `RecordingError`
    if `path` is not a recording or the report cannot be written, and the errors of `load` for the world.
    """
    target = checked(output)
    found = recording_of(os.fspath(path), world, expand_xacro=expand_xacro)
    text = page_of(found)
    _save(target, text)
    return target


def checked(output: str | os.PathLike[str]) -> Path:
    """Return where a report goes. Raises `RecordingError` for another suffix, and where there can be no file."""
    target = Path(output)
    if target.suffix.lower() not in SUFFIXES:
        allowed = f"must end in {' or '.join(SUFFIXES)}"
        raise RecordingError("report", str(output), allowed=allowed, remedy="name it as in -o report.html")
    check_target(target)
    return target


def _save(target: Path, text: str) -> None:
    """Write a page; it appears under its name when it is whole. Raises `RecordingError`."""
    try:
        with atomic.replace_file(target) as part:
            # A file name that is not UTF-8 contains surrogates.
            part.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise os_error(target, error) from error


def page_of(found: Recorded) -> str:
    """Return the whole page."""
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers that no instrument says
        return _page(found)


def _page(found: Recorded) -> str:
    """Return the whole page."""
    chart = track.chart_of(found)
    told = {name: told_of(reading, found.sensors.get(name)) for name, reading in found.readings.items()}
    findings = findings_of(found, told, chart)
    sections = [
        ("warnings", "Warnings", _findings(findings)),
        ("track", "Track", _grid(_tracks(found, chart))),
        ("faults", "Faults", _grid(one for one in [faults.figure_of(found)] if one)),
        ("clocks", "Clocks: stamps against true time", _clocks(found)),
        ("water", "Water", _grid(_water(found))),
        *((anchor(name), name, _sensor(found, name, told[name])) for name in found.readings),
    ]
    shown = [(key, title, body) for key, title, body in sections if body]
    links = "".join(f'<a href="#{key}">{escape(title.rpartition("::")[2])}</a>' for key, title, _ in shown)
    parts = "".join(f'<section id="{key}"><h2>{escape(title)}</h2>{body}</section>' for key, title, body in shown)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><link rel="icon" href="data:,">'
        f"<title>{escape(found.name)}: report of a recording</title><style>{CSS}</style></head><body>"
        f"<header><h1>{escape(found.name)}</h1><p>{escape(headline(found))}</p>{_ways(found, chart)}</header>"
        f'<nav aria-label="Sections">{links}</nav><main>{parts}</main></body></html>\n'
    )


def headline(found: Recorded) -> str:
    """Return what the recording is in a line."""
    first, last = found.span
    parts = [Path(found.path).name, f"{last - first:.6g} s", f"{len(found.readings)} sensors"]
    if found.about.get("seed") is not None:
        parts.append(f"seed {found.about['seed']}")
    count = sum(int(reading.emitted.sum()) for reading in found.readings.values())
    return "; ".join([*parts, f"{count} readings", f"navsense {get_version()}"])


def _ways(found: Recorded, chart: track.Chart | None) -> str:
    """Return what is said of each track, in lines."""
    told = [track.told_of(found, way, chart.surface) for way in chart.ways] if chart is not None else []
    return "".join(f'<p class="way">{escape(text)}</p>' for text in told)


def anchor(name: str) -> str:
    """Return a name as an anchor of the page."""
    return "sensor-" + "".join(letter if letter.isalnum() else "-" for letter in name)


def _grid(figures: Iterable[Figure]) -> str:
    """Return figures side by side, as many as there is room for; nothing without any."""
    every = list(figures)
    parts = "".join(figure.html(kind) for figure, kind in zip(every, placed(len(every)), strict=True))
    return f'<div class="grid">{parts}</div>' if parts else ""


def placed(count: int) -> list[str]:
    """Return the classes of figures that stand in rows: the share of a row that each has in windows of each width.

    No row has more figures than another by two or more, so that none stands alone beside nothing.
    """
    shares = []
    for letter, most in COLUMNS.items():
        rows = max(math.ceil(count / most), 1)
        sizes = [count // rows + (row < count % rows) for row in range(rows)]
        shares.append([f"{letter}{PARTS // size}" for size in sizes for _ in range(size)])
    return [" ".join(classes) for classes in zip(*shares, strict=True)]


def _findings(findings: Sequence[Finding]) -> str:
    """Return the warnings and notes as a list."""
    lines = [f'<li class="{one.kind}"><b>{escape(one.who)}</b>{escape(one.what)}</li>' for one in findings]
    if not any(one.kind == "warning" for one in findings):
        lines.insert(0, f'<li class="fine">{FINE}</li>')
    return f'<ul class="findings">{"".join(lines)}</ul>'


def _tracks(found: Recorded, chart: track.Chart | None) -> Iterable[Figure]:
    """Yield the map, heights over time, and what Doppler logs see."""
    if chart is not None:
        yield track.map_of(found, chart)
        yield track.profile_of(chart, found.span)
    for reading in found.readings.values():
        if reading.type == "dvl":
            figure = doppler.beams_of(reading, found.span)
            if figure is not None:
                figure.title = f"Beams of {reading.name.rpartition('::')[2]}"
                yield figure
        if reading.type == "adcp":
            yield from islice(doppler.profile_of(reading, found.sensors.get(reading.name), found.span), 1)


def _clocks(found: Recorded) -> str:
    """Return the clocks; a line where no stamp is ever off."""
    shown = clocks.clocks_of(found)
    if not shown:
        return "<p>Every stamp is true time: no sensor has a clock of its own.</p>" if found.readings else ""
    return _grid(figure for clock in shown for figure in clocks.figures_of(clock, found.span))


def _water(found: Recorded) -> Iterable[Figure]:
    """Yield the water's velocity by depth where it is recorded."""
    figure = doppler.current_of(found.current, found.span) if found.current is not None else None
    if figure is not None:
        yield figure


def _sensor(found: Recorded, name: str, told: Sequence[Told]) -> str:
    """Return the section of one sensor."""
    reading, sensor = found.readings[name], found.sensors.get(name)
    parts = [reading.type.replace("_", " ")]
    if sensor is not None:
        parts += [f"{sensor.rate:g} Hz", f"clock: {sensor.clock or clocks.GLOBAL}", f"topic {sensor.topic}"]
    first = FOREMOST.get(reading.type)
    if first is None:
        first = tuple(one.name for one in told if any(channel.declared for channel in one.channels))
    ahead = [one for one in told if one.name in first] or list(told[:1])
    folded = [one for one in told if one not in ahead]
    body = f"<p>{escape(', '.join(parts))}</p>"
    if reading.type == "adcp":
        profiles = doppler.profile_of(reading, sensor, found.span)
        body += _grid([*profiles, *cells.quality_of(reading, sensor, found.span)]) + cells.table_of(reading, sensor)
    for one in ahead:
        body += f"<h3>{escape(words(one.name))}</h3>{_grid(figures_of(one, reading, found.span))}"
    if ahead:
        body += table_of(ahead)
    if folded:
        names = escape(", ".join(words(one.name) for one in folded))
        inner = "".join(
            f"<h3>{escape(words(one.name))}</h3>{_grid(figures_of(one, reading, found.span))}" for one in folded
        )
        body += f"<details><summary>More: {names}</summary>{inner}{table_of(folded)}</details>"
    if not told:
        body += _untrue(name)
    return body


def _untrue(name: str) -> str:
    """Return what stands where a sensor's truth is not recorded."""
    return f"<p>No truth of {escape(name)} is recorded.</p>"

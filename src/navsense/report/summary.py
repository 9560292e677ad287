"""The summary at the top of a report: distance, duration, speed, depth, and the valid share of each sensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from navsense.core.readings import Reading
from navsense.core.text import format_count, format_duration
from navsense.core.typing import FloatArray
from navsense.picture.tracks import Track
from navsense.report.axes import DASH, find_finite_range, format_quantity
from navsense.report.clock_section import STAMP_RESOLUTION
from navsense.report.report_data import ReportData
from navsense.report.residuals import NoiseTest, is_through_water
from navsense.report.sensor_section import ArraySection
from navsense.report.track import TrackMap
from navsense.report.warnings import compute_off_time
from navsense.world import MountedSensor

KILOMETRES_FROM = 10e3
"""Length (m) from which the summary has kilometres."""

ROUNDING = 1e-9
"""Largest distance between the ends of a closed track, relative to its length."""

Fact = tuple[str, str, str]
"""A fact: its name, its value, and a detail that can be empty."""


def format_summary(
    data: ReportData,
    sections: Mapping[str, Sequence[ArraySection]],
    track_map: TrackMap | None,
    keys: Mapping[str, str],
) -> str:
    """Return the HTML of the summary: tiles of one vehicle or a table of several, then a table of the sensors.

    keys: identifiers of the sections of the sensors, by name
    """
    tracks = track_map.tracks if track_map else ()
    surface = track_map.surface if track_map else None
    facts = list_track_facts(data, tracks[0], surface) if len(tracks) == 1 else []
    first, last = data.span
    if not any(name == "Duration" for name, _, _ in facts):
        facts.append(("Duration", format_duration(last - first), ""))
    facts += list_sensor_facts(data)
    html = f'<dl class="facts">{"".join(_format_fact(*fact) for fact in facts)}</dl>'
    if len(tracks) > 1:
        html += _format_track_table(data, tracks, surface)
    return html + (_format_sensor_table(data, sections, keys) if data.readings else "")


def _format_fact(name: str, value: str, detail: str) -> str:
    small = f"<small>{escape(detail)}</small>" if detail else ""
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}{small}</dd></div>"


def list_track_facts(data: ReportData, track: Track, surface: float | None) -> list[Fact]:
    """Return distance, duration, speed, depth or height, and clearance of a track."""
    truth = data.truth[data.tracks[track.name]]
    position, speed = np.asarray(truth.position), np.linalg.norm(truth.velocity, axis=1)
    facts: list[Fact] = []
    if track.is_moving:
        length = float(np.nansum(np.linalg.norm(np.diff(position, axis=0), axis=1)))
        duration = float(truth.time[-1] - truth.time[0])
        mean = length / duration if duration > 0.0 else 0.0
        from_start = float(np.linalg.norm(position[-1] - position[0]))
        facts += [
            ("Distance", format_length(length), f"ends {_format_distance(from_start, length)} its start"),
            ("Duration", format_duration(duration), ""),
            ("Mean speed", f"{mean:.3g} m/s", f"maximum {find_finite_range([speed])[1]:.3g} m/s"),
        ]
    else:
        facts.append(("Distance", "stationary", ""))
    low, high = find_finite_range([position[:, 2]])
    if surface is not None and high <= surface:
        facts.append(("Depth", format_length_range(surface - high, surface - low), ""))
    else:
        facts.append(("Height", format_length_range(low, high), "z in the world"))
    if track.min_clearance is not None:
        clearance, time = track.min_clearance
        ends = find_finite_range([track.position[:, 2] - track.ground])
        detail = f"minimum at {format_duration(round(time))}" if track.is_moving else ""
        facts.append(
            ("Above the ground" if clearance >= 0.0 else "UNDER the ground", format_length_range(*ends), detail)
        )
    return facts


def _format_distance(distance: float, length: float) -> str:
    """Return a distance (m) from the start of a track of this length (m): "at" for a rounding error."""
    return "at" if distance <= ROUNDING * length else f"{format_length(distance)} from"


def list_sensor_facts(data: ReportData) -> list[Fact]:
    """Return the share of valid samples of all sensors, and of the velocities of each DVL."""
    if not data.readings:
        return []
    counts = [count_samples(reading) for reading in data.readings.values()]
    valid, count = (sum(column) for column in zip(*counts, strict=True))
    sensors = f"{format_count(len(counts), 'sensor')}, {format_count(count, 'sample')}"
    facts: list[Fact] = [("Valid samples", format_share(valid, count), sensors)]
    for name, reading in data.readings.items():
        rows = np.asarray(reading.emitted & reading.valid)
        if reading.type == "dvl" and rows.any():
            bottom = int(np.count_nonzero(~is_through_water(reading)[rows]))
            share = format_share(bottom, int(np.count_nonzero(reading.emitted)))
            facts.append((f"Bottom track of {data.short_names[name]}", share, "of its samples"))
    return facts


def count_samples(reading: Reading) -> tuple[int, int]:
    """Return the number of valid samples, and of samples that were sent."""
    return int(np.count_nonzero(reading.emitted & reading.valid)), int(np.count_nonzero(reading.emitted))


def format_share(part: int, whole: int) -> str:
    """Return a share in percent; 100 % only if nothing is missing."""
    if not whole:
        return DASH
    percent = 100.0 * part / whole
    return "100 %" if part == whole else f"{min(percent, 99.99):.4g} %"


def format_length(length: float) -> str:
    """Return a length in metres, from 10 km on in kilometres."""
    return f"{1e-3 * length:.4g} km" if length >= KILOMETRES_FROM else format_quantity(length, "m")


def format_length_range(low: float, high: float) -> str:
    """Return a range of lengths (m), or one length if both have the same text."""
    digits = 1 if high - low >= 1.0 else 2
    ends = dict.fromkeys(f"{end:.{digits}f}".replace("-", "\u2212") for end in (low, high))
    return f"{' to '.join(ends)} m".replace(" ", "\u00a0")


def _format_track_table(data: ReportData, tracks: Sequence[Track], surface: float | None) -> str:
    """Return the facts of several tracks as an HTML table."""
    facts = {track.name: {name: value for name, value, _ in list_track_facts(data, track, surface)} for track in tracks}
    columns = list(dict.fromkeys(column for values in facts.values() for column in values))

    rows = []
    for name, values in facts.items():
        cells = "".join(f"<td>{escape(values.get(column, DASH))}</td>" for column in columns)
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return _format_table(["vehicle", *(column.lower() for column in columns)], rows)


def _format_sensor_table(
    data: ReportData, sections: Mapping[str, Sequence[ArraySection]], keys: Mapping[str, str]
) -> str:
    """Return type, rate, samples, valid share, longest gap, clock error and noise tests of each sensor."""
    rows = []
    for name, reading in data.readings.items():
        valid, count = count_samples(reading)
        sensor = data.sensors.get(name)
        tests = [test for section in sections[name] for test in section.tests if isinstance(test, NoiseTest)]
        passed = sum(test.passes for test in tests)
        error = float(np.abs(reading.clock_error).max()) if data.has_true_time and reading.time.size else 0.0
        cells = (
            reading.type.replace("_", " "),
            f"{sensor.rate:g} Hz" if sensor is not None and sensor.rate else DASH,
            f"{count}",
            format_share(valid, count),
            _format_gap(reading, sensor),
            format_quantity(error, "s") if error > STAMP_RESOLUTION else DASH,
            f"{passed} of {len(tests)} passed" if tests else "not tested",
        )
        link = f'<a href="#{keys[name]}">{escape(data.short_names[name])}</a>'
        css_class = ' class="bad"' if passed < len(tests) or valid == 0 else ""
        texts = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f'<tr{css_class}><th scope="row">{link}</th>{texts}</tr>')
    columns = ["sensor", "type", "rate", "samples", "valid", "longest gap", "largest clock error", "noise tests"]
    return _format_table(columns, rows)


def _format_gap(reading: Reading, sensor: MountedSensor | None) -> str:
    """Return the longest time between two valid samples, without the time in which the sensor is off."""
    times: FloatArray = reading.time[np.asarray(reading.emitted & reading.valid)]
    if times.size < 2:
        return DASH
    on_time = times if sensor is None or sensor.is_always_on else times - compute_off_time(sensor, times)
    return format_quantity(float(np.diff(on_time).max()), "s")


def _format_table(columns: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in columns)
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table class="summary">{table}</table></div>'

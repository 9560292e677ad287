"""The warnings at the top of a report.

They are about:

- sensors that have no valid samples for a long time, too few of them, or hardly any values
- DVLs that lose the bottom for a long time
- beams that never have a velocity
- white noise that is not as declared (`residuals`)
- stamps that are far off or not increasing
- faults
- recordings that end early
- vehicles under the ground
- models that could move and have no motion
- plug-ins of sensors that are not read
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from navsense.core.readings import Reading
from navsense.core.text import format_count, format_duration
from navsense.core.typing import FloatArray
from navsense.figures import find_time_spans
from navsense.recordings.info import DURATION_KEY
from navsense.report.axes import choose_scale, format_quantity
from navsense.report.faults import find_fault_rows, list_faults_without_flags
from navsense.report.report_data import ReportData
from navsense.report.residuals import NoiseTest, is_through_water
from navsense.report.sensor_section import ArraySection
from navsense.report.track import TrackMap
from navsense.sensors.adcp import Adcp
from navsense.world import MountedSensor

MAX_SILENCE, MAX_INTERVALS = 5.0, 10.0
"""Time (s) and median intervals without a valid sample above which the report warns; the longer one counts."""

MAX_INVALID = 0.05
"""Share of invalid samples above which the report warns."""

MAX_MISSING = 0.9
"""Share of missing values in valid samples above which the report warns."""

REQUIRED_ARRAYS: Mapping[str, tuple[str, ...]] = {"dvl": ("velocity",), "adcp": ("velocity",)}
"""Arrays that must have values, by sensor type; other arrays of these types can be empty by configuration."""

MAX_STAMP_ERROR = 0.01
"""Error of a stamp (s) above which the report warns; half a sensor's interval if that is less."""

MAX_SHORTFALL = 0.01
"""Share of the requested duration that a recording may lack, in addition to 1 s."""


@dataclass(frozen=True)
class ReportEntry:
    """One line of the list: its subject, its text and whether it is a warning or a note."""

    subject: str
    text: str
    kind: Literal["warning", "note"] = "warning"


def find_entries(
    data: ReportData, sections: Mapping[str, Sequence[ArraySection]], track_map: TrackMap | None
) -> list[ReportEntry]:
    """Return all warnings, then all notes."""
    entries = [ReportEntry(note.what, note.reason) for note in data.world_warnings]
    entries += _check_recording(data, track_map)
    for name, reading in data.readings.items():
        sensor = data.sensors.get(name)
        # The times of switches are true times.
        scheduled = sensor if data.has_true_time else None
        texts = chain(
            _check_silence(reading, scheduled, data.span),
            _check_values(reading, sensor),
            _check_bottom(reading),
            _check_beams(reading),
            _check_noise(sections[name]),
            _check_stamps(reading),
            _list_faults(reading),
        )
        entries += [ReportEntry(name, text) for text in texts]
        if not reading.ideal:
            text = "no figures, and noise not tested: the recording has no ideal readings of it"
            entries.append(ReportEntry(name, text, "note"))
        entries += [ReportEntry(name, text, "note") for text in _list_untested(sections[name])]
        off_time = 0.0 if scheduled is None else compute_off_time(scheduled, np.array(data.span))[1]
        if off_time > 0.0 and bool(reading.emitted.any()):
            text = f"is off by its schedule for {_format_gap(off_time)}; gaps are those of the time when it is on"
            entries.append(ReportEntry(name, text, "note"))
    for name in sorted(set(data.sensors) - set(data.readings)):
        is_off = _is_off(data.sensors[name], data.span)
        entries.append(ReportEntry(name, OFF if is_off else "has no recorded samples"))
    for (name, kind), spans in list_faults_without_flags(data).items():
        first, last = spans[0][0], spans[-1][1]
        entries.append(
            ReportEntry(
                name, f"fault: {kind.replace('_', ' ')}, from {_format_time(first)}, until {_format_time(last)}"
            )
        )
    entries += [ReportEntry("recording", text, "note") for text in data.notes]
    return sorted(entries, key=lambda warning: warning.kind != "warning")


def _format_time(time: float) -> str:
    """Return a time since the start, to a hundredth of a second from two minutes on."""
    return format_duration(float(time), 2)


def _format_span(first: float, last: float) -> str:
    return f"from {_format_time(first)}, until {_format_time(last)}"


def _format_gap(duration: float) -> str:
    """Return a duration with four digits, from two minutes on to the second."""
    return f"{duration:.4g} s" if duration < 120.0 else format_duration(float(duration))


def _check_recording(data: ReportData, track_map: TrackMap | None) -> Iterator[ReportEntry]:
    duration, (first, last) = data.metadata.get(DURATION_KEY), data.span
    if duration and last - first < (1.0 - MAX_SHORTFALL) * float(duration) - 1.0:
        yield ReportEntry(
            "recording", f"ends after {_format_time(last)}; {format_duration(float(duration))} were requested"
        )
    runs = data.metadata.get("runs") or []
    if len(runs) > 1:
        yield ReportEntry("recording", f"has {len(runs)} runs; this page shows run {runs[0]}", "note")
    if data.readings and not data.has_true_time:
        text = "has no true time: times on this page are stamps, and the errors of clocks are not checked"
        yield ReportEntry("recording", text, "note")
    if not data.truth:
        yield ReportEntry("recording", "has no true positions: no track, and clearance is not checked", "note")
    for track in track_map.tracks if track_map else ():
        if track.min_clearance is not None and track.min_clearance[0] < 0.0:
            clearance, time = track.min_clearance
            text = f"is under the ground, by {format_quantity(-clearance, 'm')} at {_format_time(time)}"
            yield ReportEntry(data.tracks[track.name], text)


OFF = "is off for the whole recording: it publishes nothing until it is switched on, as by --switch-on"
"""Text about a sensor that its schedule never switches on."""


def compute_off_time(sensor: MountedSensor, time: FloatArray) -> FloatArray:
    """Return how long (s) the schedule of a sensor has it off between the first time and each time (n,) s."""
    instants = np.array([switch.time for switch in sensor.switches])
    knots = np.unique(np.concatenate((time, instants)))
    off = ~sensor.compute_on(knots[:-1])
    total = np.concatenate(([0.0], np.cumsum(np.diff(knots) * off)))
    off_time: FloatArray = np.interp(time, knots, total) - np.interp(time[0], knots, total)
    return off_time


def _is_off(sensor: MountedSensor, span: tuple[float, float]) -> bool:
    """Return True if a sensor is off by its schedule from the first time (s) of a span until the last."""
    return not bool(sensor.compute_on(np.array([span[0]]))[0]) and not any(
        switch.on and span[0] <= switch.time <= span[1] for switch in sensor.switches
    )


def _check_silence(reading: Reading, sensor: MountedSensor | None, span: tuple[float, float]) -> Iterator[str]:
    """Yield the longest time without a valid sample while the sensor is on, and the share of invalid samples."""
    valid = np.asarray(reading.emitted & reading.valid)
    times, all_times = reading.time[valid], reading.time
    if sensor is not None and not times.size and _is_off(sensor, span):
        yield OFF
        return
    if not all_times.size:
        yield "has no samples"
        return
    if not times.size:
        yield f"none of its {format_count(all_times.size, 'sample')} is valid"
        return
    interval = float(np.median(np.diff(times))) if times.size > 1 else 0.0
    marks = np.concatenate((all_times[:1], times, all_times[-1:]))
    gaps = np.diff(marks)
    if sensor is not None and not sensor.is_always_on:
        gaps = gaps - np.diff(compute_off_time(sensor, marks))
    longest = int(np.argmax(gaps))
    if gaps[longest] > max(MAX_SILENCE, MAX_INTERVALS * interval):
        yield f"no valid sample for {_format_gap(gaps[longest])} from {_format_time(marks[longest])}, the longest gap"
    share = 1.0 - np.count_nonzero(valid) / max(int(np.count_nonzero(reading.emitted)), 1)
    if share > MAX_INVALID:
        yield f"{100.0 * share:.3g} % of its samples are not valid"


def _check_values(reading: Reading, sensor: MountedSensor | None) -> Iterator[str]:
    """Yield the required arrays of which valid samples have hardly any value."""
    valid = np.asarray(reading.emitted & reading.valid)
    count = int(np.count_nonzero(valid))
    if not count:
        return
    for name in _list_required_arrays(reading, sensor):
        missing = 1.0 - float(np.mean(np.isfinite(np.asarray(reading.arrays[name])[valid])))
        unit, title = "cell" if reading.type == "adcp" else "value", name.replace("_", " ")
        if missing == 1.0:
            yield f"no {unit} of {title} is known, in {format_count(count, 'valid sample')}"
        elif missing > MAX_MISSING:
            share = f"{100.0 * missing:.4g} %"
            yield f"{share} of the {unit}s of {title} are missing, in {format_count(count, 'valid sample')}"


def _list_required_arrays(reading: Reading, sensor: MountedSensor | None) -> list[str]:
    """Return the arrays that must have values: velocities of Doppler sensors, else those with ideal values, or all."""
    names = REQUIRED_ARRAYS.get(reading.type, ())
    if sensor is not None and isinstance(sensor.spec, Adcp) and sensor.spec.coordinates.value == "beam":
        names = ("beam_velocity",)
    if not names:
        names = tuple(set(reading.ideal) & set(reading.arrays) or reading.arrays)
    return [name for name, array in reading.arrays.items() if name in names and array.dtype.kind == "f" and array.size]


def _check_bottom(reading: Reading) -> Iterator[str]:
    """Yield the longest time without bottom track of a DVL that has bottom track at other times."""
    valid = np.asarray(reading.emitted & reading.valid)
    rows = is_through_water(reading)[valid]
    if not rows.any() or rows.all():
        return
    starts, ends = find_time_spans(reading.time[valid], rows)
    longest = int(np.argmax(ends - starts))
    duration = ends[longest] - starts[longest]
    if duration > MAX_SILENCE:
        share = f"{100.0 * float(np.mean(rows)):.3g} % of its velocities are through the water"
        yield f"loses the bottom for {_format_gap(duration)} from {_format_time(starts[longest])}; {share}"


def _check_beams(reading: Reading) -> Iterator[str]:
    """Yield beams that never have a velocity while others do."""
    velocity = np.asarray(reading.arrays.get("beam_velocity", np.zeros(0)))
    if velocity.ndim < 2 or not velocity.shape[0]:
        return
    has_velocity = np.isfinite(velocity[np.asarray(reading.emitted)]).any(axis=tuple(range(velocity.ndim - 1)))
    if has_velocity.any():
        yield from (f"beam {beam + 1} never has a velocity" for beam in np.flatnonzero(~has_velocity).tolist())


def _check_noise(sections: Sequence[ArraySection]) -> Iterator[str]:
    """Yield channels whose white noise is not as declared."""
    for section in sections:
        for channel, test in zip(section.channels, section.tests, strict=True):
            if isinstance(test, str) or test.passes:
                continue
            comparison = "more" if test.ratio > 1.0 else "less"
            scale = choose_scale(channel.unit, test.measured_stddev)
            measured, declared = (scale.factor * stddev for stddev in (test.measured_stddev, test.declared_stddev))
            yield (
                f"{section.title} {channel.label}".strip() + f" has {comparison} noise than declared: "
                f"{measured:.4g} {scale.unit} instead of {declared:.4g} {scale.unit}. "
                f"The ratio of the variances is {test.ratio:.3g}; "
                f"chance alone gives {test.min_ratio:.3g} to {test.max_ratio:.3g}"
            )


def _list_untested(sections: Sequence[ArraySection]) -> Iterator[str]:
    """Yield why channels are not tested: those with declared noise, or all channels of a sensor without any test."""
    has_test = any(isinstance(test, NoiseTest) for section in sections for test in section.tests)
    channels: dict[str, list[str]] = {}
    for section in sections:
        for channel, test in zip(section.channels, section.tests, strict=True):
            if isinstance(test, str) and (channel.declared_stddev or not has_test):
                channels.setdefault(test, []).append(f"{section.title} {channel.label}".strip())
    for reason, names in channels.items():
        is_same_for_all = len(channels) == 1 and not has_test
        yield f"noise not tested: {reason}" if is_same_for_all else f"noise of {', '.join(names)} not tested: {reason}"


def _check_stamps(reading: Reading) -> Iterator[str]:
    """Yield stamps that are far from true time or not increasing."""
    error = reading.clock_error
    if reading.time.size < 2 or not np.isfinite(error).all():
        return
    interval = float(np.median(np.diff(reading.time)))
    row = int(np.argmax(np.abs(error)))
    size = abs(float(error[row]))
    limit = min(MAX_STAMP_ERROR, 0.5 * interval)
    reason = ", half the interval of the samples" if limit < MAX_STAMP_ERROR else ""
    if size > limit:
        yield (
            f"stamps are up to {format_quantity(size, 's')} off true time, at {_format_time(reading.time[row])}; "
            f"the limit is {format_quantity(limit, 's')}{reason}"
        )
    count = int(np.count_nonzero(np.diff(reading.time + error) <= 0.0))
    if count:
        yield f"{format_count(count, 'stamp')} {'is' if count == 1 else 'are'} not later than the one before"


def _list_faults(reading: Reading) -> Iterator[str]:
    """Yield kind, number and time of the faults of a sensor."""
    for kind, rows in find_fault_rows(reading).items():
        starts, ends = find_time_spans(reading.time, rows)
        times = "once" if starts.size == 1 else f"{starts.size} times"
        count = format_count(int(np.count_nonzero(rows)), "sample")
        yield f"fault: {kind.replace('_', ' ')}, {times}, {count}, {_format_span(starts[0], ends[-1])}"

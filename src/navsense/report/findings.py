"""What a person should know before looking at the figures: the warnings on top of a report.

A sensor is warned of where it gives no valid reading for long, where valid readings have no number or hardly any, where
its white noise is not as declared (`residuals`), where its stamps are far off or go backwards, where it was struck by
faults; the recording, where it ends early, where a vehicle is under the ground.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.report.axes import quantity
from navsense.report.faults import faults_of, others, spans_of
from navsense.report.frames import through_water
from navsense.report.recorded import Recorded
from navsense.report.sensors import Told, words
from navsense.report.track import Chart
from navsense.sensors.adcp import Adcp
from navsense.series import Reading
from navsense.world import MountedSensor

SILENT, INTERVALS = 5.0, 10.0
"""Seconds, and usual intervals between readings, that a sensor without a valid number is silent for long."""

MUCH = 0.05
"""Share of readings without a number that is much."""

NEARLY_ALL = 0.9
"""Share of numbers from which on nearly all are missing."""

FOREMOST: Mapping[str, tuple[str, ...]] = {"dvl": ("velocity",), "adcp": ("velocity",)}
"""Arrays that sensors of a type are there for: others may be empty, as they are set."""

LATE = 0.01
"""Seconds that a stamp may be off before it is said; half a sensor's interval before that."""

EARLY = 0.01
"""Share of the time that was asked for that a recording may lack."""


@dataclass(frozen=True)
class Finding:
    """One line: whom it is about, what it is, and whether it is a `warning` or a `note`."""

    who: str
    what: str
    kind: str = "warning"


def findings_of(found: Recorded, told: Mapping[str, Sequence[Told]], chart: Chart | None) -> list[Finding]:
    """Return all findings, warnings first."""
    out = [Finding(note.what, note.reason) for note in found.stationary]
    out += _whole(found, chart)
    for name, reading in found.readings.items():
        out += [Finding(name, what) for what in (*_silence(reading), *_numbers(reading, found.sensors.get(name)))]
        out += [Finding(name, what) for what in (*_adrift(reading), *_beams(reading), *_noise(told[name]))]
        out += [Finding(name, what) for what in _stamps(reading)]
        out += [Finding(name, what) for what in _faults(reading)]
        if not reading.ideal:
            out.append(Finding(name, "its truth is not recorded: readings are shown alone", "note"))
    for name in sorted(set(found.sensors) - set(found.readings)):
        out.append(Finding(name, "not one reading of it is recorded"))
    for (who, kind), spans in others(found).items():
        first, last = spans[0][0], spans[-1][1]
        out.append(Finding(who, f"fault: {kind.replace('_', ' ')}, from {first:.6g} s, until {last:.6g} s"))
    out += [Finding("recording", what, "note") for what in found.notes]
    return sorted(out, key=lambda finding: finding.kind != "warning")


def _whole(found: Recorded, chart: Chart | None) -> Iterator[Finding]:
    """Yield what is said of the recording and its tracks."""
    asked, (first, last) = found.about.get("duration_asked"), found.span
    if asked and last - first < (1.0 - EARLY) * float(asked) - 1.0:
        yield Finding("recording", f"ends after {last:.6g} s; {float(asked):.6g} s were asked for")
    runs = found.about.get("runs") or []
    if len(runs) > 1:
        yield Finding("recording", f"holds {len(runs)} runs; this page shows run {runs[0]}", "note")
    for way in chart.ways if chart else ():
        nearest = way.clearance
        if nearest is not None and nearest[0] < 0.0:
            gap, time = nearest
            yield Finding(way.link, f"is under the ground, by {quantity(-gap, 'm')} at {time:.6g} s")


def _silence(reading: Reading) -> Iterator[str]:
    """Yield where a sensor gives no valid number for long, and how much of all it lacks."""
    good = np.asarray(reading.emitted & reading.valid)
    times, whole = reading.time[good], reading.time
    if not whole.size:
        yield "has no reading at all"
        return
    if not times.size:
        yield f"not one of its {whole.size} readings is valid"
        return
    usual = float(np.median(np.diff(times))) if times.size > 1 else 0.0
    marks = np.concatenate((whole[:1], times, whole[-1:]))
    gaps = np.diff(marks)
    worst = int(np.argmax(gaps))
    if gaps[worst] > max(SILENT, INTERVALS * usual):
        yield f"no valid reading for {gaps[worst]:.4g} s from {marks[worst]:.6g} s on, the longest such time"
    share = 1.0 - np.count_nonzero(good) / max(int(np.count_nonzero(reading.emitted)), 1)
    if share > MUCH:
        yield f"{100.0 * share:.3g} % of its readings are not valid"


def _numbers(reading: Reading, sensor: MountedSensor | None) -> Iterator[str]:
    """Yield what a sensor says no number of, or hardly any, in readings that are given out as valid."""
    good = np.asarray(reading.emitted & reading.valid)
    count = int(np.count_nonzero(good))
    if not count:
        return
    for name in _foremost(reading, sensor):
        values = np.asarray(reading.arrays[name])[good]
        missing, one = 1.0 - float(np.mean(np.isfinite(values))), "cell" if reading.type == "adcp" else "number"
        if missing == 1.0:
            yield f"not one {one} of {words(name)} is known, in {count} valid readings"
        elif missing > NEARLY_ALL:
            yield f"{100.0 * missing:.4g} % of the {one}s of {words(name)} are missing, in {count} valid readings"


def _adrift(reading: Reading) -> Iterator[str]:
    """Yield where a Doppler log that has the bottom at other times tells its velocity through the water for long."""
    told = np.asarray(reading.emitted & reading.valid)
    rows = through_water(reading)[told]
    if not rows.any() or rows.all():
        return
    starts, ends = spans_of(reading.time[told], rows)
    worst = int(np.argmax(ends - starts))
    if ends[worst] - starts[worst] > SILENT:
        share = f"{100.0 * float(np.mean(rows)):.3g} % of its velocities are through the water"
        yield f"has not the bottom for {ends[worst] - starts[worst]:.4g} s from {starts[worst]:.6g} s on; {share}"


def _beams(reading: Reading) -> Iterator[str]:
    """Yield beams that never hear anything, where others do."""
    told = np.asarray(reading.arrays.get("beam_velocity", np.zeros(0)))
    if told.ndim < 2 or not told.shape[0]:
        return
    heard = np.isfinite(told[np.asarray(reading.emitted)]).any(axis=tuple(range(told.ndim - 1)))
    if heard.any():
        yield from (f"beam {beam + 1} never hears anything" for beam in np.flatnonzero(~heard).tolist())


def _foremost(reading: Reading, sensor: MountedSensor | None) -> list[str]:
    """Return the arrays that a sensor is there for: what has a truth, or all where nothing has."""
    names = FOREMOST.get(reading.type, ())
    if sensor is not None and isinstance(sensor.spec, Adcp) and sensor.spec.coordinates.value == "beam":
        names = ("beam_velocity",)
    if not names:
        names = tuple(set(reading.ideal) & set(reading.arrays) or reading.arrays)
    return [name for name, told in reading.arrays.items() if name in names and told.dtype.kind == "f" and told.size]


def _noise(told: Sequence[Told]) -> Iterator[str]:
    """Yield channels whose white noise is not as declared."""
    for one in told:
        for channel, verdict in zip(one.channels, one.verdicts, strict=True):
            if verdict is None or verdict.holds:
                continue
            more = "more" if verdict.ratio > 1.0 else "less"
            yield (
                f"{words(one.name)} {channel.label}".strip() + f" has {more} noise than declared: "
                f"{quantity(verdict.measured, channel.unit)}, declared {quantity(verdict.declared, channel.unit)}; the "
                f"variance is {verdict.ratio:.4g} of that, by chance from {verdict.low:.4g} to {verdict.high:.4g}"
            )


def _stamps(reading: Reading) -> Iterator[str]:
    """Yield where stamps are far from true time, or go backwards."""
    error = reading.clock_error
    if reading.time.size < 2 or not np.isfinite(error).all():
        return
    interval = float(np.median(np.diff(reading.time)))
    worst = int(np.argmax(np.abs(error)))
    size = abs(float(error[worst]))
    if size > min(LATE, 0.5 * interval):
        part = f"; readings are {quantity(interval, 's')} apart"
        yield f"stamps are up to {quantity(size, 's')} off true time, at {reading.time[worst]:.6g} s{part}"
    back = int(np.count_nonzero(np.diff(reading.time + error) <= 0.0))
    if back:
        yield f"{back} stamps are not later than the one before"


def _faults(reading: Reading) -> Iterator[str]:
    """Yield which faults acted, how often and from when on."""
    for kind, rows in faults_of(reading).items():
        starts, ends = spans_of(reading.time, rows)
        last = f", until {ends[-1]:.6g} s" if math.isfinite(float(ends[-1])) else ""
        times = "once" if starts.size == 1 else f"{starts.size} times"
        yield f"fault: {kind.replace('_', ' ')}, {times}, {np.count_nonzero(rows)} rows, from {starts[0]:.6g} s{last}"

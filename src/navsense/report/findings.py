"""What a person should know before looking at the figures: the warnings on top of a report.

A sensor is warned of where it gives no valid number for long, where its white noise is not as declared (`residuals`),
where its stamps are far off or go backwards, where it was struck by faults; the recording, where it ends early, where a
vehicle is under the ground.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.report.axes import quantity
from navsense.report.faults import faults_of, others, spans_of
from navsense.report.recorded import Recorded
from navsense.report.sensors import Told, words
from navsense.report.track import Chart
from navsense.series import Reading

SILENT, INTERVALS = 5.0, 10.0
"""Seconds, and usual intervals between readings, that a sensor without a valid number is silent for long."""

MUCH = 0.05
"""Share of readings without a number that is much."""

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
    out = list(_whole(found, chart))
    for name, reading in found.readings.items():
        out += [Finding(name, what) for what in _silence(reading)]
        out += [Finding(name, what) for what in _noise(told[name])]
        out += [Finding(name, what) for what in _stamps(reading)]
        out += [Finding(name, what) for what in _faults(reading)]
        if not reading.truth:
            out.append(Finding(name, "its truth is not recorded: readings are shown alone", "note"))
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

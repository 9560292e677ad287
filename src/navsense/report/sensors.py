"""The figures of one sensor: readings against truth, residuals, their histogram and Allan deviation; a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from navsense.analysis import allan, theory
from navsense.noise.channel import Noise
from navsense.report.axes import FARTHEST, Axis, Scale, linear, logarithmic, over_time, quantity, titled
from navsense.report.draw import Figure, Plot, stacked
from navsense.report.faults import spans_of
from navsense.report.frames import through_water
from navsense.report.residuals import Channel, Verdict, channels_of, deviation_of_pairs, normalised, verdict_of
from navsense.series import Reading
from navsense.typing import BoolArray, FloatArray
from navsense.world import MountedSensor

BINS = 61
"""Bars of a histogram."""

WIDE = 4.5
"""Declared deviations that a histogram shows to either side at least."""

PER_DECADE = 6
"""Spans of an Allan deviation a decade."""

SHORTEST = 64
"""Rows from which on there is an Allan deviation."""

UNEVEN = 1e-3
"""Parts of a step by which the time between two rows may be off in an Allan deviation."""

MOST = 8
"""Plots of one figure at most."""

TIMES = frozenset(("time_of_validity", "water_time_of_validity"))
"""Arrays that say when, not what: a perfect instrument has the same."""

BY_CELL = frozenset(("error_velocity", "percent_good", "cell_distance"))
"""Arrays of a current profiler that have a number for each cell: pictures and a table show them (`cells`)."""

ZERO = 1.5
"""How many times its own range a residual may be away from zero for zero to be shown with it."""


@dataclass(frozen=True, eq=False)
class Told:
    """One array of a sensor with its channels and what is said of their noise.

    `spans` are where (s) a velocity is through the water, and `said` is how that is compared.
    """

    name: str
    channels: Sequence[Channel]
    verdicts: Sequence[Verdict | None]
    spans: tuple[FloatArray, FloatArray] = (np.zeros(0), np.zeros(0))
    said: str = ""


def told_of(reading: Reading, sensor: MountedSensor | None) -> list[Told]:
    """Return the arrays of a sensor that have a truth, those of declared noise first."""
    found = []
    for name in reading.arrays:
        if name in TIMES or (reading.type == "adcp" and name in BY_CELL):
            continue
        channels = channels_of(reading, name, sensor)
        if not any(np.isfinite(channel.residual).any() for channel in channels) or _is_still(channels):
            continue
        verdicts = [verdict_of(channel, sensor) for channel in channels]
        found.append(Told(name, channels, verdicts, *_through_water(reading, name)))
    return sorted(found, key=lambda one: not any(channel.declared for channel in one.channels))


def _is_still(channels: Sequence[Channel]) -> bool:
    """Return whether they are flags, each of which is always the same as its truth."""
    return all(c.unit == "1" and not c.declared and not c.residual.any() and not np.ptp(c.reading) for c in channels)


def _through_water(reading: Reading, name: str) -> tuple[tuple[FloatArray, FloatArray], str]:
    """Return the spans (s) in which an array is of the water instead of the bottom, and how these are compared."""
    told = np.asarray(reading.emitted)
    rows = through_water(reading)[told]
    if name != "velocity" or not rows.any():
        return (np.zeros(0), np.zeros(0)), ""
    share = f" Blue: through the water, {100.0 * float(np.mean(rows)):.3g} % of the readings"
    if "water_velocity" in reading.ideal:
        return spans_of(reading.time[told], rows), f"{share}; there the truth is the one through the water."
    return spans_of(reading.time[told], rows), f"{share}, left out here: the truth through the water is not recorded."


def words(name: str) -> str:
    """Return the name of an array as text."""
    return name.replace("_", " ")


def figures_of(told: Told, reading: Reading, span: tuple[float, float]) -> Iterator[Figure]:
    """Yield the figures of one array."""
    along = over_time(*span)
    stated = normalised(reading, told.name, [channel.label for channel in told.channels])
    if len(told.channels) > MOST:
        only = f" Only the first {MOST} of {len(told.channels)} are drawn; the table has all."
        told = replace(told, channels=told.channels[:MOST], said=told.said + only)
    yield _against(told, along)
    yield _residual(told, along)
    if any(np.nan_to_num(channel.white).any() for channel in told.channels):
        yield _histogram(told)
    if stated:
        yield _over_stated(stated)
    deviation = _allan(told)
    if deviation is not None:
        yield deviation


def _against(told: Told, along: Axis) -> Figure:
    """Return readings with the truth over them."""
    channels = told.channels
    ups = [linear(c.label or words(told.name), c.unit, (c.reading, c.truth)) for c in channels]
    caption = f"What the instrument says of {words(told.name)}, and what a perfect one would have said."
    figure = stacked("Reading and truth", along, ups, caption + told.said)
    for place, (plot, channel) in enumerate(zip(figure.plots, channels, strict=True)):
        _shade(figure, plot, told)
        figure.band(plot, channel.time, channel.reading, f"c{place % 4}")
        figure.series(plot, channel.time, channel.truth, "truth")
    figure.keys = [("c0", "reading"), ("truth", "truth"), *_shaded(told)]
    return figure


def _shade(figure: Figure, plot: Plot, told: Told) -> None:
    """Mark where a velocity is through the water."""
    if told.spans[0].size:
        figure.bars(plot, *told.spans, "span")


def _shaded(told: Told) -> list[tuple[str, str]]:
    """Return the key of what is marked, where anything is."""
    return [("water", "through the water")] if told.spans[0].size else []


def _residual(told: Told, along: Axis) -> Figure:
    """Return residuals with the slow error in force and the declared deviation around it."""
    channels = told.channels
    centres = [channel.slow + _rest(channel) for channel in channels]
    reach = [3.0 * c.declared for c in channels]
    edges = [(centre - r, centre + r) for centre, r in zip(centres, reach, strict=True)]
    ups = [
        linear(c.label or "residual", c.unit, (c.residual, *edge), zero=_near_zero(c))
        for c, edge in zip(channels, edges, strict=True)
    ]
    slow = any(np.any(channel.slow != 0.0) for channel in channels)
    declared = any(channel.declared for channel in channels)
    parts = [f"Reading of {words(told.name)} less its truth."]
    if slow:
        parts.append("The dark line is the slow error in force: turn-on bias and drift.")
    if declared:
        parts.append("Dashes: three declared deviations of the white noise to either side of what is constant or slow.")
    figure = stacked("Residual", along, ups, " ".join(parts) + told.said)
    for place, (plot, channel, edge) in enumerate(zip(figure.plots, channels, edges, strict=True)):
        _shade(figure, plot, told)
        figure.band(plot, channel.time, channel.residual, f"c{place % 4}")
        figure.across(plot, 0.0, "zero")
        if slow:
            figure.series(plot, channel.time, channel.slow, "truth")
        if channel.declared:
            for side in edge:
                figure.series(plot, channel.time, side, "declared")
    figure.keys = [("c0", "residual"), *([("truth", "slow error")] if slow else [])]
    figure.keys += [("declared", "3 declared deviations")] if declared else []
    figure.keys += _shaded(told)
    return figure


def _rest(channel: Channel) -> float:
    """Return the middle of what the recorded slow error does not explain, 0 where there is no number."""
    rest = channel.residual - channel.slow
    return float(np.nanmedian(rest)) if np.isfinite(rest).any() else 0.0


def _near_zero(channel: Channel) -> bool:
    """Return whether zero is near enough to a residual to be shown: farther off, what varies would be a line."""
    known = channel.residual[np.isfinite(channel.residual)]
    if not known.size:
        return True
    low, high = float(known.min()), float(known.max())
    return max(low, -high, 0.0) <= ZERO * (high - low)


def _gauss(x: FloatArray, deviation: float) -> FloatArray:
    """Return the density of a normal variate."""
    return np.asarray(np.exp(-0.5 * (x / deviation) ** 2) / (deviation * math.sqrt(2.0 * math.pi)))


def shares(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the density (k,) of values among the edges (k + 1,); those beyond are in the outermost bars."""
    finite = values[np.isfinite(values)]
    counts, _ = np.histogram(np.clip(finite, edges[0], edges[-1]), edges)
    return np.asarray(counts / (max(finite.size, 1) * np.diff(edges)))


def _histogram(told: Told) -> Figure:
    """Return the histograms of the white parts with the declared Gaussian of each."""
    channels = told.channels
    sizes = [float(np.nanstd(c.white)) if np.isfinite(c.white).any() else 0.0 for c in channels]
    reach = max((max(WIDE * c.declared, WIDE * size) for c, size in zip(channels, sizes, strict=True)), default=1.0)
    reach = min(reach, FARTHEST) if reach > 1.0 / FARTHEST else 1.0
    edges = np.linspace(-reach, reach, BINS + 1)
    unit = channels[0].unit
    along = linear("residual without its slow part", unit, (edges,))
    found = [shares(channel.white, edges) for channel in channels]
    bells = [_gauss(edges, c.declared) if c.declared else np.zeros(edges.size) for c in channels]
    up = _density(found + bells, along.scale)
    declared = any(c.declared for c in channels)
    caption = f"How often each size of residual of {words(told.name)} occurs, slow, constant and gain errors left out."
    caption += " The dashed bell is the declared noise." if declared else " No noise is declared for this array."
    figure = Figure("Histogram", along, [Plot(up, 210.0)], caption)
    plot = figure.plots[0]
    for place, channel in enumerate(channels):
        bars = np.repeat(found[place], 2)
        figure.line(plot, np.repeat(edges, 2)[1:-1], bars, f"c{place % 4}")
        if channel.declared:
            fine = np.linspace(edges[0], edges[-1], 241)
            figure.line(plot, fine, _gauss(fine, channel.declared), "declared")
    figure.keys = [(f"c{place % 4}", channel.label or "measured") for place, channel in enumerate(channels)]
    figure.keys += [("declared", "declared")] if declared else []
    return figure


def _density(series: Sequence[FloatArray], scale: Scale) -> Axis:
    """Return an axis of densities, a share for each unit that the axis along has."""
    top = max(float(array.max()) for array in series) or 1.0
    inverse = Scale(1.0 / scale.factor, f"1/{scale.unit}" if scale.unit else "")
    return Axis(0.0, 1.08 * top * inverse.factor, titled("density", inverse.unit), inverse)


def _over_stated(stated: Mapping[str, FloatArray]) -> Figure:
    """Return the histogram of residuals over the deviations that the readings themselves state."""
    sizes = [float(np.nanpercentile(np.abs(v), 99.5)) for v in stated.values() if np.isfinite(v).any()]
    reach = min(max([4.5, *sizes]), 30.0)
    edges = np.linspace(-reach, reach, BINS + 1)
    found = [shares(values, edges) for values in stated.values()]
    fine = np.linspace(-reach, reach, 241)
    along = Axis(-reach, reach, "residual / stated deviation", Scale(1.0, ""))
    up = _density([*found, _gauss(fine, 1.0)], along.scale)
    caption = (
        "The residual over the deviation that the reading states with it: the dashed bell, were all errors in that."
    )
    figure = Figure("Residual over its stated deviation", along, [Plot(up, 210.0)], caption)
    for place, values in enumerate(found):
        figure.line(figure.plots[0], np.repeat(edges, 2)[1:-1], np.repeat(values, 2), f"c{place % 4}")
    figure.line(figure.plots[0], fine, _gauss(fine, 1.0), "declared")
    figure.keys = [(f"c{place % 4}", label) for place, label in enumerate(stated)] + [("declared", "deviation 1")]
    return figure


def terms_of(noise: Noise, rate: float) -> tuple[theory.Term, ...]:
    """Return the terms of the Allan variance of a declared noise, sampled at a rate (Hz); a constant error has none."""
    white = (
        noise.white_stddev(rate) ** 2 + noise.precision**2 / 12.0 + noise.outlier_probability * noise.outlier_stddev**2
    )
    terms: list[theory.Term] = [theory.White(math.sqrt(white / rate))] if white > 0.0 else []
    if noise.has_dynamic_bias:
        terms.append(theory.GaussMarkov(noise.dynamic_bias_stddev, noise.dynamic_bias_correlation_time, sampled=True))
    if noise.bias_instability > 0.0:
        terms += theory.flicker_terms(noise.bias_instability)
    if noise.random_walk > 0.0:
        terms.append(theory.RandomWalk(noise.random_walk, sampled=True))
    return tuple(terms)


def stretch(known: BoolArray, time: FloatArray, rate: float) -> slice:
    """Return the longest stretch of rows that are known and in even steps of a rate (Hz)."""
    uneven = np.abs(np.diff(time) * rate - 1.0) > UNEVEN
    after = np.concatenate(([True], uneven | ~known[:-1])) & known
    before = np.concatenate((uneven | ~known[1:], [True])) & known
    firsts, lasts = np.flatnonzero(after), np.flatnonzero(before)
    if not firsts.size:
        return slice(0, 0)
    best = int(np.argmax(lasts - firsts))
    return slice(int(firsts[best]), int(lasts[best]) + 1)


def longest(channel: Channel) -> FloatArray:
    """Return the residuals of the longest stretch of rows in even steps, all numbers, on which no fault acts."""
    # The white part is no number where a fault acts.
    return channel.residual[stretch(np.isfinite(channel.white), channel.time, channel.rate)]


def of_how_much(count: int, time: FloatArray, rate: float) -> str:
    """Return what is said of an Allan deviation of some of the rows; nothing where it is of all."""
    if count == time.size:
        return ""
    return f" Of the longest time without faults and gaps: {count / rate:.4g} s of {time[-1] - time[0]:.4g} s."


def _allan(told: Told) -> Figure | None:
    """Return the Allan deviations of the residuals with those of the declared noise; None where there are too few."""
    stretches = [longest(c) if c.declared else c.residual[:0] for c in told.channels]
    curves = [
        _curve(values, channel) if values.size >= SHORTEST else None
        for values, channel in zip(stretches, told.channels, strict=True)
    ]
    kept = [curve for curve in curves if curve is not None]
    if not kept:
        return None
    tau = max((curve[0] for curve in kept), key=len)
    along = logarithmic("averaging time", "", [tau])
    along = Axis(along.low, along.high, "averaging time (s)", Scale(1.0, "s"), log=True)
    unit = told.channels[0].unit
    up = logarithmic("Allan deviation", unit, [array for _, *pair in kept for array in pair])
    caption = (
        f"How far the mean residual of {words(told.name)} over a time lies from the next. Dashed: the declared noise."
    )
    least = min(values.size for values, curve in zip(stretches, curves, strict=True) if curve is not None)
    caption += of_how_much(least, told.channels[0].time, told.channels[0].rate)
    figure = Figure("Allan deviation", along, [Plot(up, 210.0)], caption)
    for place, curve in enumerate(curves):
        if curve is not None:
            figure.line(figure.plots[0], curve[0], curve[2], "declared")
            figure.line(figure.plots[0], curve[0], curve[1], f"c{place % 4}")
    figure.keys = [(f"c{p % 4}", c.label or "measured") for p, c in enumerate(told.channels) if curves[p] is not None]
    figure.keys.append(("declared", "declared"))
    return figure


def _curve(values: FloatArray, channel: Channel) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return spans (s), measured and declared deviations (k,)."""
    factors = allan.spaced(values.size // 3, PER_DECADE)
    found = allan.overlapping(values, channel.rate, factors, exponent=0)
    expected = np.sqrt(theory.allan_of(terms_of(channel.noise, channel.rate), factors, channel.rate))
    return found.tau, found.deviation, expected


HEAD = ("", "rows", "no number", "mean residual", "deviation", "white part", "declared", "as declared")
"""Columns of the table of a sensor."""


def table_of(told: Sequence[Told]) -> str:
    """Return the figures of all channels of a sensor as an HTML table."""
    head = "".join(f'<th scope="col">{text}</th>' for text in HEAD)
    rows = "".join(_row(one.name, c, v) for one in told for c, v in zip(one.channels, one.verdicts, strict=True))
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def white_deviation(channel: Channel) -> float:
    """Return the deviation of a channel's white part by its pairs of neighbours, NaN where there are none."""
    square, _ = deviation_of_pairs(channel.white)
    return math.sqrt(square)


def _row(name: str, channel: Channel, verdict: Verdict | None) -> str:
    """Return one row."""
    known = channel.residual[np.isfinite(channel.residual)]
    white, gone = white_deviation(channel), channel.residual.size - known.size
    said = "" if verdict is None else f"{'yes' if verdict.holds else 'NO'} ({verdict.ratio:.3f} of the variance)"
    cells = (
        f"{channel.residual.size}",
        f"{100.0 * gone / max(channel.residual.size, 1):.3g} %" if gone else "\u2013",
        quantity(float(known.mean()), channel.unit) if known.size else "\u2013",
        quantity(float(known.std()), channel.unit) if known.size else "\u2013",
        quantity(white, channel.unit) if math.isfinite(white) else "\u2013",
        quantity(channel.declared, channel.unit) if channel.declared else "\u2013",
        said or "\u2013",
    )
    mark = ' class="bad"' if verdict is not None and not verdict.holds else ""
    label = escape(f"{words(name)} {channel.label}".strip())
    return f'<tr{mark}><th scope="row">{label}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'

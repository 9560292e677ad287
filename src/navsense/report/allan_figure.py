"""Allan deviations in a report: the rows that they use, the declared noise, and their figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from navsense.analysis import allan, theory
from navsense.analysis.allan import AllanCurve
from navsense.clock import Clock
from navsense.core.typing import BoolArray, FloatArray
from navsense.figures import Scale
from navsense.noise.specification import Noise
from navsense.report.axes import Axis, make_log_axis
from navsense.report.residuals import compute_white_variance
from navsense.report.svg_figure import SvgFigure, stack_plots

FACTORS_PER_DECADE = 6
"""Averaging factors per decade."""

MIN_ALLAN_ROWS = 64
"""Rows that an Allan deviation needs."""

MAX_INTERVAL_ERROR = 1e-3
"""Largest relative error of the interval between two rows that count as evenly spaced."""


def find_regular_stretch(usable: BoolArray, time: FloatArray, rate: float) -> slice:
    """Return the longest stretch of usable rows that are evenly spaced at a rate (Hz)."""
    uneven = np.abs(np.diff(time) * rate - 1.0) > MAX_INTERVAL_ERROR
    is_first = np.concatenate(([True], uneven | ~usable[:-1])) & usable
    is_last = np.concatenate((uneven | ~usable[1:], [True])) & usable
    firsts, lasts = np.flatnonzero(is_first), np.flatnonzero(is_last)
    if not firsts.size:
        return slice(0, 0)
    longest = int(np.argmax(lasts - firsts))
    return slice(int(firsts[longest]), int(lasts[longest]) + 1)


def format_coverage(count: int, time: FloatArray, rate: float) -> str:
    """Return the note about an Allan deviation of `count` of the rows; empty if it has all rows."""
    if count == time.size:
        return ""
    return f" Uses the longest stretch without faults and gaps: {count / rate:.4g} s of {time[-1] - time[0]:.4g} s."


def list_noise_terms(noise: Noise, rate: float) -> tuple[theory.NoiseTerm, ...]:
    """Return the terms of the Allan variance of a declared noise, sampled at a rate (Hz); constant errors have none."""
    variance = compute_white_variance(noise, rate)
    terms: list[theory.NoiseTerm] = [theory.White(math.sqrt(variance / rate))] if variance > 0.0 else []
    if noise.has_dynamic_bias:
        terms.append(theory.GaussMarkov(noise.dynamic_bias_stddev, noise.dynamic_bias_correlation_time, sampled=True))
    if noise.bias_instability > 0.0:
        terms += theory.flicker_terms(noise.bias_instability)
    if noise.random_walk > 0.0:
        terms.append(theory.RandomWalk(noise.random_walk, sampled=True))
    return tuple(terms)


def list_clock_terms(clock: Clock) -> tuple[theory.NoiseTerm, ...]:
    """Return the terms of the Allan variance of a free-running clock's frequency; its jitter is white phase noise."""
    noise, oscillator = clock.noise, clock.oscillator
    jitter = math.sqrt(noise.stddev**2 + noise.precision**2 / 12.0)
    terms: list[theory.NoiseTerm] = [theory.Quantisation(jitter)] if jitter > 0.0 else []
    if noise.has_dynamic_bias:
        tau = noise.dynamic_bias_correlation_time
        # `dynamic_bias_stddev` is a driving density. `PhaseGaussMarkov` takes the stationary deviation.
        terms.append(theory.PhaseGaussMarkov(noise.dynamic_bias_stddev * math.sqrt(0.5 * tau), tau))
    if oscillator is not None:
        power_law = (oscillator.white_frequency, oscillator.flicker_frequency, oscillator.random_walk_frequency)
        terms += theory.oscillator_terms(*power_law, math.sqrt(oscillator.ageing**2 + oscillator.ageing_stddev**2))
    return tuple(terms)


def measure_allan(
    values: FloatArray, rate: float, terms: Sequence[theory.NoiseTerm], *, phase: bool = False
) -> tuple[AllanCurve, FloatArray | None]:
    """Return the Allan curve (k,) of values at a rate (Hz), and the deviations of the declared terms, if there are any.

    phase: the values are the phase (a clock's error), not the frequency
    """
    factors = allan.log_spaced_factors((values.size - phase) // 3, FACTORS_PER_DECADE)
    # The exponent, here of white noise, determines only the degrees of freedom, which the figure does not use.
    curve = allan.oadev(values, rate, factors, phase=phase, exponent=0)
    return curve, np.sqrt(theory.allan_variance(terms, factors, rate)) if terms else None


def make_allan_figure(
    title: str, unit: str, curves: Mapping[tuple[str, str], tuple[AllanCurve, FloatArray | None]], caption: str
) -> SvgFigure:
    """Return a figure of Allan curves by CSS class and label, with the declared deviations dashed."""
    time = make_log_axis("", "", [max((curve.tau for curve, _ in curves.values()), key=len)])
    x_axis = Axis(time.low, time.high, "averaging time (s)", Scale(1.0, "s"), log=True)
    declared = [deviation for _, deviation in curves.values() if deviation is not None]
    y_axis = make_log_axis("Allan deviation", unit, [*(curve.deviation for curve, _ in curves.values()), *declared])
    figure = stack_plots(title, x_axis, [y_axis], caption)
    for (css_class, _), (curve, deviation) in curves.items():
        figure.plots[0].draw_line(curve.tau, curve.deviation, css_class)
        if deviation is not None:
            figure.plots[0].draw_line(curve.tau, deviation, "declared")
    figure.legend = [*curves, *([("declared", "declared")] if declared else [])]
    return figure

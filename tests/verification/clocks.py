"""Estimates of all parameters of a clock from the stamps of a sensor on it.

    from tests.verification.clocks import EXAMPLE, table
    rows = table(EXAMPLE, rates=(5.0, 100.0), seed=1)

For each entry of `TERMS`, the clock keeps only the parameters of the entry and those that must be active with them. A
sensor stamps its samples, and the parameters are estimated from the stamp errors. `estimates` estimates jitter, turn-on
error, drift, limits and rounding, as for a sensor. `clock_oscillator` and `clock_discipline` estimate the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from navsense.clock import Clock, Discipline, Oscillator
from navsense.core.random_streams import check_seed
from navsense.core.ticks import check_rate
from navsense.core.typing import FloatArray
from navsense.noise.specification import NO_NOISE, Noise
from tests.verification import clock_discipline, clock_oscillator, estimates
from tests.verification.clock_stamps import (
    LONG_RUN,
    RUNS,
    ClockTerm,
    SelectTicks,
    StampTrial,
    stamp_at,
    stamp_every_sample,
)
from tests.verification.declared import Row
from tests.verification.estimates import ROUNDING, Estimate, Measure, Trial
from tests.verification.faults_latency import EXAMPLE as MOUNTED_SENSOR
from tests.verification.faults_latency import OUTPUT

EXAMPLE = Clock(
    "rig::plate::clock",
    Noise(
        mean=3e-7,
        stddev=1e-6,
        bias_mean=7e-7,
        bias_stddev=2e-6,
        dynamic_bias_stddev=4e-6,
        dynamic_bias_correlation_time=0.5,
        precision=2e-7,
        minimum=-4e-6,
        maximum=5e-6,
    ),
    Oscillator(
        offset=0.01,
        frequency=2e-6,
        frequency_stddev=5e-7,
        white_frequency=2e-11,
        flicker_frequency=2e-12,
        random_walk_frequency=5e-14,
        ageing=3e-9,
        ageing_stddev=1e-9,
        ageing_random_walk=4e-16,
        temperature_linear=1e-7,
        temperature_quadratic=-3e-8,
        turnover_temperature=295.0,
        temperature=305.0,
    ),
    Discipline(
        interval=0.5,
        step_threshold=4e-3,
        slew_rate=2e-3,
        proportional=0.6,
        integral=0.15,
        mean=1e-5,
        stddev=2e-5,
        until=50.0,
    ),
)
"""A fictitious clock in which every parameter acts."""

JITTER_RATIO = 10.0
"""Ratio of the jitter to the limits or the precision that it makes visible."""

SHORT_RUN = 10.0
"""Duration (s) of records with limits or precision."""


def isolate_fields(*names: str, context: tuple[str, ...] = (), jitter: bool = False) -> Callable[[Clock], Clock | None]:
    """Return a function that keeps some fields of a clock's noise, with large jitter if `jitter`.

    It returns None if none of `names` acts.
    """

    def isolate(clock: Clock) -> Clock | None:
        noise = clock.noise
        values = {name: getattr(noise, name) for name in (*names, *context)}
        if all(values[name] == getattr(NO_NOISE, name) for name in names):
            return None
        if jitter:
            values["stddev"] = JITTER_RATIO * max(abs(values[name]) for name in names if math.isfinite(values[name]))
        return Clock(clock.name, replace(NO_NOISE, **values))

    return isolate


def adapt_measure(measure: Measure) -> Callable[[StampTrial], Iterator[Estimate]]:
    """Return an estimator of clock noise from an estimator of channel noise."""

    def estimate(trial: StampTrial) -> Iterator[Estimate]:
        return measure(_make_trial(trial, np.zeros(trial.time.size), float(np.abs(trial.error).max())))

    return estimate


def _make_trial(trial: StampTrial, ideal: FloatArray, largest: float) -> Trial:
    """Return a trial with the stamp errors as errors of a channel with `ideal` values (n,) s up to `largest` (s)."""
    channel = (MOUNTED_SENSOR.spec, OUTPUT, 0, trial.clock.noise, trial.rate, trial.time)
    return Trial(*channel, trial.error, ideal, np.zeros(trial.time.size), ROUNDING * largest)


def estimate_precision(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the smallest step between stamps, compared to full steps near the true time."""
    declared, time = trial.clock.noise.precision, trial.time
    yield from estimates.estimate_precision(
        _make_trial(trial, time - declared * np.round(time / declared), float(time[-1]))
    )


def _make_term(
    name: str, isolate: Callable[[Clock], Clock | None], select_ticks: SelectTicks, measure: Measure, runs: int = 1
) -> ClockTerm:
    return ClockTerm(name, "clock", isolate, select_ticks, adapt_measure(measure), runs)


_TIME = ("dynamic_bias_correlation_time",)

TERMS = (
    _make_term(
        "mean", isolate_fields("mean", context=("stddev",)), stamp_every_sample(LONG_RUN), estimates.estimate_mean
    ),
    _make_term("stddev", isolate_fields("stddev"), stamp_every_sample(LONG_RUN), estimates.estimate_stddev),
    _make_term(
        "turn_on", isolate_fields("bias_mean", "bias_stddev"), stamp_at(0.0), estimates.estimate_turn_on_bias, RUNS
    ),
    _make_term(
        "drift",
        isolate_fields("dynamic_bias_stddev", context=_TIME),
        stamp_every_sample(LONG_RUN),
        estimates.estimate_drift,
    ),
    _make_term(
        "start",
        isolate_fields("dynamic_bias_stddev", context=_TIME),
        stamp_at(0.0),
        estimates.estimate_initial_drift,
        RUNS,
    ),
    _make_term(
        "limits",
        isolate_fields("minimum", "maximum", jitter=True),
        stamp_every_sample(SHORT_RUN),
        estimates.estimate_limits,
    ),
    ClockTerm(
        "precision",
        "clock",
        isolate_fields("precision", jitter=True),
        stamp_every_sample(SHORT_RUN),
        estimate_precision,
    ),
    *clock_oscillator.TERMS,
    *clock_discipline.TERMS,
)
"""The estimators of each parameter of a clock."""


def table(
    clock: Clock, rates: Sequence[float], seed: int, *, effort: float = 1.0, terms: Sequence[ClockTerm] = TERMS
) -> list[Row]:
    """Return the rows of a clock, as sensors at the rates (Hz) show it.

    effort scales the number of samples and runs. Raises `SimulationError` for an invalid rate or seed, and
    `AnalysisError` for a rate without whole samples between the polls of the discipline.
    """
    rows = []
    for rate in map(check_rate, rates):
        for term in terms:
            found = term.estimate(clock, rate, check_seed(seed), effort)
            rows += [Row("clocks", term.part, estimate.unit_in("s"), rate, estimate) for estimate in found]
    return rows

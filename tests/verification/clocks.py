"""The figures of a clock, read back from the stamps of a sensor on it.

    from tests.verification.clocks import WITNESS, table
    rows = table(WITNESS, rates=(5.0, 100.0), seed=1)

For each line of `LINES` the clock's sheet is left with what the line measures and what has to act beside it; a sensor
at the rate stamps its samples, and the figures are estimated from the errors of the stamps. Jitter, turn-on error,
drift, limits and rounding are measured by `estimates`, like those of a sensor. `clock_oscillator` and
`clock_discipline` measure the rest.
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
from tests.verification.clock_stamps import LONG, RUNS, Instants, Line, Stamped, at, evenly_spaced
from tests.verification.declared import Row
from tests.verification.estimates import DIGITS, Estimate, Measure, Trial
from tests.verification.faults_latency import SHOWN
from tests.verification.faults_latency import WITNESS as CARRIER

WITNESS = Clock(
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
"""A clock in which every figure acts; not a real one."""

STRONG = 10.0
"""Times as large as limits or rounding is the jitter that they are seen by."""

BRIEF = 10.0
"""Seconds over which they are."""


def only(*names: str, beside: tuple[str, ...] = (), jitter: bool = False) -> Callable[[Clock], Clock | None]:
    """Leave some fields of a clock's noise, and those beside them; with a jitter far beyond them where asked.

    None where none of `names` acts.
    """

    def alone(clock: Clock) -> Clock | None:
        noise = clock.noise
        values = {name: getattr(noise, name) for name in (*names, *beside)}
        if all(values[name] == getattr(NO_NOISE, name) for name in names):
            return None
        if jitter:
            values["stddev"] = STRONG * max(abs(values[name]) for name in names if math.isfinite(values[name]))
        return Clock(clock.name, replace(NO_NOISE, **values))

    return alone


def of_noise(measure: Measure) -> Callable[[Stamped], Iterator[Estimate]]:
    """Return what measures the noise of a clock as `measure` does that of a channel."""

    def found(stamped: Stamped) -> Iterator[Estimate]:
        return measure(_trial(stamped, np.zeros(stamped.time.size), float(np.abs(stamped.error).max())))

    return found


def _trial(stamped: Stamped, errors: FloatArray, largest: float) -> Trial:
    """Return a clock's errors beside what is `given` (n,) s, numbers of up to `largest` (s)."""
    channel = (CARRIER.spec, SHOWN, 0, stamped.clock.noise, stamped.rate, stamped.time)
    return Trial(*channel, stamped.error, errors, np.zeros(stamped.time.size), DIGITS * largest)


def precision(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the least step between stamps, compared to full steps next to the true time."""
    declared, time = stamped.clock.noise.precision, stamped.time
    yield from estimates.precision(_trial(stamped, time - declared * np.round(time / declared), float(time[-1])))


def _line(
    name: str, alone: Callable[[Clock], Clock | None], instants: Instants, measure: Measure, runs: int = 1
) -> Line:
    return Line(name, "clock", alone, instants, of_noise(measure), runs)


_TIME = ("dynamic_bias_correlation_time",)

LINES = (
    _line("mean", only("mean", beside=("stddev",)), evenly_spaced(LONG), estimates.mean),
    _line("stddev", only("stddev"), evenly_spaced(LONG), estimates.stddev),
    _line("turn_on", only("bias_mean", "bias_stddev"), at(0.0), estimates.turn_on, RUNS),
    _line("drift", only("dynamic_bias_stddev", beside=_TIME), evenly_spaced(LONG), estimates.drift),
    _line("start", only("dynamic_bias_stddev", beside=_TIME), at(0.0), estimates.stationary, RUNS),
    _line("limits", only("minimum", "maximum", jitter=True), evenly_spaced(BRIEF), estimates.limits),
    Line("precision", "clock", only("precision", jitter=True), evenly_spaced(BRIEF), precision),
    *clock_oscillator.LINES,
    *clock_discipline.LINES,
)
"""How each figure of a clock is measured."""


def table(
    clock: Clock, rates: Sequence[float], seed: int, *, effort: float = 1.0, lines: Sequence[Line] = LINES
) -> list[Row]:
    """Return the rows of a clock as sensors at the rates (Hz) show it.

    effort scales the number of samples and of runs. Raises `SimulationError` for a rate or a seed that is none, and
    `AnalysisError` for a rate that has no whole samples between the polls of the clock's discipline.
    """
    rows = []
    for rate in map(check_rate, rates):
        for line in lines:
            found = line.estimates(clock, rate, check_seed(seed), effort)
            rows += [Row("clocks", line.part, estimate.unit_in("s"), rate, estimate) for estimate in found]
    return rows

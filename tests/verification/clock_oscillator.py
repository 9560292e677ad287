"""The figures of an oscillator, from the errors x (s) of stamps, its phase.

    frequency y, ageing D       x = x0 + y t + D t^2 / 2 without noise: three instants, no chance
    their deviations            the same of each of many runs, in which they are drawn once
    white FM h_0                Allan variance h_0 / (2 tau)
    flicker FM h_-1             2 ln 2 h_-1, flat to 2 percent (of the deviation)
    random-walk FM h_-2         2 pi^2 h_-2 tau / 3
    ageing's walk q_3           Hadamard variance 11 q_3 tau^3 / 120
    temperature                 x = integral of a w or b w^2, w the kelvins above turnover, as it gets warmer evenly

The degrees of freedom of the variances are those of the whole covariance (`allan_dof`); a sum over nodes that takes the
integral by its ends adds a straight line only, where the temperature is what acts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from navsense.analysis import theory
from navsense.clock import Clock, Oscillator
from navsense.clock.oscillator import FLICKER_BAND
from navsense.environment.signal import Signal
from navsense.noise.specification import NO_NOISE
from navsense.noise.terms import stationary_stddev
from tests.verification.clock_stamps import LONG, RUNS, Line, Stamped, at, drawn, evenly_spaced
from tests.verification.estimates import (
    FEWEST,
    FLICKER_FLATNESS,
    SPANS,
    Estimate,
    allan_row,
    variance_z_score,
)

FAR = 1000.0
"""Seconds until a clock without noise is read."""

HEATING, RISE = 300.0, (280.0, 320.0)
"""Seconds in which the temperature rises from the one to the other, K."""

SHORT, MANY = 100.0, 100
"""Duration (s) and number of the runs with a random walk of the ageing, which soon is large."""

AGEING_SPAN = 10
"""Samples of its span."""

_NEUTRAL = Oscillator()


def only(*names: str, beside: tuple[str, ...] = ()) -> Callable[[Clock], Clock | None]:
    """Leave some fields of a clock's oscillator, and those beside them; None where none of `names` acts."""

    def alone(clock: Clock) -> Clock | None:
        sheet = clock.oscillator
        if sheet is None or all(getattr(sheet, name) == getattr(_NEUTRAL, name) for name in names):
            return None
        return Clock(clock.name, oscillator=Oscillator(**{name: getattr(sheet, name) for name in (*names, *beside)}))

    return alone


def warmed(name: str) -> Callable[[Clock], Clock | None]:
    """Leave one coefficient of the temperature, which rises."""

    def alone(clock: Clock) -> Clock | None:
        left = only(name, beside=("turnover_temperature",))(clock)
        if left is None or left.oscillator is None:
            return None
        return replace(left, oscillator=replace(left.oscillator, temperature=Signal((0.0, HEATING), RISE)))

    return alone


def constant(clock: Clock) -> Clock | None:
    """Leave the linear coefficient of the temperature, which is a number; None where it is none."""
    sheet = clock.oscillator
    if sheet is None or not isinstance(sheet.temperature, int | float):
        return None
    return only("temperature_linear", beside=("turnover_temperature", "temperature"))(clock)


def parabola(stamped: Stamped) -> Iterator[Estimate]:
    """Yield offset, frequency and ageing from three instants."""
    first, middle, last = (float(value) for value in stamped.error[0])
    ageing = (last - 2.0 * middle + first) / FAR**2
    frequency = (middle - first) / FAR - 0.5 * ageing * FAR
    for name, unit, measured, scale in (
        ("offset", "s", first, 1.0),
        ("frequency", "1", frequency, 4.0 / FAR),
        ("ageing", "1 / s", ageing, 4.0 / FAR**2),
    ):
        declared = getattr(stamped.oscillator, name)
        if declared != 0.0:
            yield Estimate(name, declared, measured, scale * stamped.rounding, unit=unit)


def serials(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the deviations of frequency and ageing, each run's own."""
    first, middle, last = stamped.error.T
    ageing = (last - 2.0 * middle + first) / FAR**2
    frequency = (middle - first) / FAR - 0.5 * ageing * FAR
    sheet = stamped.oscillator
    found = drawn(
        ("frequency_stddev", "ageing_stddev"), (sheet.frequency_stddev, sheet.ageing_stddev), (frequency, ageing)
    )
    for estimate, unit in zip(found, ("1", "1 / s"), strict=False):
        yield replace(estimate, unit=unit)


def coefficient(name: str, unit: str, declared: float, variances: tuple[float, float, float]) -> Estimate:
    """Return a coefficient in which the variance (declared, measured, degrees of freedom) is linear."""
    expected, measured, free = variances
    ratio = measured / expected
    error = declared * math.sqrt(2.0 / free)
    return Estimate(name, declared, declared * ratio, error, off=variance_z_score(ratio, free), unit=unit)


def white(stamped: Stamped) -> Iterator[Estimate]:
    """Yield h_0 from the Allan variance over a sample."""
    declared = stamped.oscillator.white_frequency
    variances = stamped.variance_over(1, (theory.White(math.sqrt(0.5 * declared)),))
    yield coefficient("white_frequency", "s", declared, variances)


def random_walk(stamped: Stamped) -> Iterator[Estimate]:
    """Yield h_-2 from the Allan variance over a sample."""
    declared = stamped.oscillator.random_walk_frequency
    variances = stamped.variance_over(1, (theory.RandomWalk(math.pi * math.sqrt(2.0 * declared)),))
    yield coefficient("random_walk_frequency", "1 / s", declared, variances)


def flicker(stamped: Stamped) -> Iterator[Estimate]:
    """Yield h_-1 from the Allan variance over a second."""
    declared = stamped.oscillator.flicker_frequency
    instability = math.sqrt(math.pi * declared)
    factor = math.ceil(stamped.rate)
    _, measured, free = stamped.variance_over(factor, theory.flicker_terms(instability, FLICKER_BAND, sampled=False))
    found = measured / (2.0 * math.log(2.0))
    error, allowed = declared * math.sqrt(2.0 / free), 2.0 * FLICKER_FLATNESS * declared
    yield Estimate("flicker_frequency", declared, found, error, allowed, unit="1")


def ageing_walk(stamped: Stamped) -> Iterator[Estimate]:
    """Yield q_3 from the Hadamard variance."""
    declared = stamped.oscillator.ageing_random_walk
    variances = stamped.variance_over(AGEING_SPAN, (theory.AgeingWalk(math.sqrt(declared)),), 3)
    yield coefficient("ageing_random_walk", "1 / s^3", declared, variances)


def linear(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the linear coefficient, and the temperature at which it adds nothing, as it gets warmer."""
    first, middle, last = (float(value) for value in stamped.error[0])
    half, slope = 0.5 * HEATING, (RISE[1] - RISE[0]) / HEATING
    bend = (last - 2.0 * middle + first) / half**2
    start = (middle - first) / half - 0.5 * bend * half
    sheet, error = stamped.oscillator, 4.0 * stamped.rounding
    measured, declared = bend / slope, sheet.temperature_linear
    yield Estimate("temperature_linear", declared, measured, error / half**2 / slope, unit="1 / K")
    off = (error / half + error / half**2 * (RISE[1] - RISE[0]) / slope) / abs(declared)
    yield Estimate("turnover_temperature", sheet.turnover_temperature, RISE[0] - start / measured, off, unit="K")


def quadratic(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the quadratic coefficient from the third difference as it gets warmer."""
    a, b, c, d = (float(value) for value in stamped.error[0])
    third = 2.0 * (HEATING / 3.0) ** 3 * ((RISE[1] - RISE[0]) / HEATING) ** 2
    declared, error = stamped.oscillator.temperature_quadratic, 8.0 * stamped.rounding / third
    yield Estimate("temperature_quadratic", declared, ((d - a) - 3.0 * (c - b)) / third, error, unit="1 / K^2")


def temperature(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the temperature itself, from the frequency that it makes."""
    sheet = stamped.oscillator
    if not isinstance(sheet.temperature, int | float):
        return
    warmth = float(stamped.error[0, -1]) / FAR / sheet.temperature_linear
    error = stamped.rounding / FAR / abs(sheet.temperature_linear)
    yield Estimate("temperature", sheet.temperature, sheet.turnover_temperature + warmth, error, unit="K")


def moving(clock: Clock) -> Clock | None:
    """Leave all noise of a clock whose Allan variance is known, that of its readings too."""
    noise, sheet = clock.noise, clock.oscillator or _NEUTRAL
    if noise.stddev < noise.precision:
        return None
    names = ("stddev", "dynamic_bias_stddev", "dynamic_bias_correlation_time", "precision")
    active = ("white_frequency", "flicker_frequency", "random_walk_frequency")
    left = Clock(
        clock.name,
        replace(NO_NOISE, **{name: getattr(noise, name) for name in names}),
        Oscillator(**{name: getattr(sheet, name) for name in active}),
    )
    return None if left == Clock(clock.name, oscillator=_NEUTRAL) else left


def terms_of(clock: Clock) -> tuple[theory.NoiseTerm, ...]:
    """Return what moves of a clock's frequency: jitter with its rounding, drift, and the oscillator's noise."""
    noise, sheet = clock.noise, clock.oscillator or _NEUTRAL
    terms: tuple[theory.NoiseTerm, ...] = (
        theory.Quantisation(math.sqrt(noise.stddev**2 + noise.precision**2 / 12.0)),
        theory.White(math.sqrt(0.5 * sheet.white_frequency)),
        theory.RandomWalk(math.pi * math.sqrt(2.0 * sheet.random_walk_frequency)),
    )
    if noise.has_dynamic_bias:
        tau = noise.dynamic_bias_correlation_time
        terms += (theory.PhaseGaussMarkov(stationary_stddev(noise.dynamic_bias_stddev, tau), tau),)
    if sheet.flicker_frequency > 0.0:
        terms += theory.flicker_terms(math.sqrt(math.pi * sheet.flicker_frequency), FLICKER_BAND, sampled=False)
    return terms


def together(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the Allan deviation at spans a factor of ten apart, of all that moves.

    Rounding is white noise of a twelfth of the step squared where the jitter is as large as the step.
    """
    terms, factor = terms_of(stamped.clock), 1
    while factor * FEWEST <= stamped.error.size:
        declared, measured, free = stamped.variance_over(factor, terms)
        name = f"Allan deviation over {factor / stamped.rate:g} s"
        yield replace(allan_row(name, math.sqrt(declared), math.sqrt(measured), free), unit="1")
        factor *= SPANS


def _line(name: str, alone: Callable[[Clock], Clock | None], measure: Callable[[Stamped], Iterator[Estimate]]) -> Line:
    return Line(name, "oscillator", alone, evenly_spaced(LONG), measure)


_THIRD = HEATING / 3.0

LINES = (
    Line("parabola", "oscillator", only("offset", "frequency", "ageing"), at(0.0, FAR, 2.0 * FAR), parabola),
    Line("serials", "oscillator", only("frequency_stddev", "ageing_stddev"), at(0.0, FAR, 2.0 * FAR), serials, RUNS),
    _line("white", only("white_frequency"), white),
    _line("flicker", only("flicker_frequency"), flicker),
    _line("random walk", only("random_walk_frequency"), random_walk),
    Line("ageing walk", "oscillator", only("ageing_random_walk"), evenly_spaced(SHORT), ageing_walk, MANY),
    Line("linear", "oscillator", warmed("temperature_linear"), at(0.0, 0.5 * HEATING, HEATING), linear),
    Line(
        "quadratic",
        "oscillator",
        warmed("temperature_quadratic"),
        at(0.0, _THIRD, 2.0 * _THIRD, 3.0 * _THIRD),
        quadratic,
    ),
    Line("temperature", "oscillator", constant, at(0.0, FAR), temperature),
    Line("together", "clock", moving, evenly_spaced(LONG), together),
)
"""How each figure of an oscillator is measured, and all that moves together."""

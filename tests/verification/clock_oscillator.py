"""Estimates of the parameters of an oscillator from the stamp errors x (s), its phase.

    frequency y, ageing D       x = x0 + y t + D t^2 / 2 without noise, from three times
    their deviations            the same in many runs
    white FM h_0                Allan variance h_0 / (2 tau)
    flicker FM h_-1             2 ln 2 h_-1, flat to 2 percent (of the deviation)
    random-walk FM h_-2         2 pi^2 h_-2 tau / 3
    ageing random walk q_3      Hadamard variance 11 q_3 tau^3 / 120
    temperature                 x = integral of a w or b w^2, w = T - turnover temperature, under a linear rise of T

The degrees of freedom of the variances follow from the complete covariance (`allan_dof`). The trapezoidal sum over
nodes adds only a straight line to the effect of the temperature.
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
from tests.verification.clock_stamps import (
    LONG_RUN,
    RUNS,
    ClockTerm,
    StampTrial,
    estimate_stddevs,
    stamp_at,
    stamp_every_sample,
)
from tests.verification.estimates import (
    FLICKER_FLATNESS,
    MINIMUM_SPANS,
    SPAN_RATIO,
    Estimate,
    compute_variance_z_score,
    make_allan_estimate,
)

NOISE_FREE_TIME = 1000.0
"""Time (s) at which a clock without noise is read."""

WARMING_TIME, TEMPERATURES = 300.0, (280.0, 320.0)
"""Duration (s) of the temperature rise, and its limits (K)."""

AGEING_RUN, AGEING_RUNS = 100.0, 100
"""Duration (s) and number of the runs with an ageing random walk."""

AGEING_SPAN = 10
"""Span (samples) of the Hadamard variance."""

_NEUTRAL = Oscillator()


def isolate_fields(*names: str, context: tuple[str, ...] = ()) -> Callable[[Clock], Clock | None]:
    """Return a function that keeps some fields of an oscillator. It returns None if none of `names` acts."""

    def isolate(clock: Clock) -> Clock | None:
        spec = clock.oscillator
        if spec is None or all(getattr(spec, name) == getattr(_NEUTRAL, name) for name in names):
            return None
        return Clock(clock.name, oscillator=Oscillator(**{name: getattr(spec, name) for name in (*names, *context)}))

    return isolate


def isolate_temperature_coefficient(name: str) -> Callable[[Clock], Clock | None]:
    """Return a function that keeps one temperature coefficient, with a temperature that rises."""

    def isolate(clock: Clock) -> Clock | None:
        isolated = isolate_fields(name, context=("turnover_temperature",))(clock)
        if isolated is None or isolated.oscillator is None:
            return None
        return replace(
            isolated, oscillator=replace(isolated.oscillator, temperature=Signal((0.0, WARMING_TIME), TEMPERATURES))
        )

    return isolate


def isolate_constant_temperature(clock: Clock) -> Clock | None:
    """Return the clock with its linear temperature coefficient and its constant temperature alone, or None."""
    spec = clock.oscillator
    if spec is None or not isinstance(spec.temperature, int | float):
        return None
    return isolate_fields("temperature_linear", context=("turnover_temperature", "temperature"))(clock)


def estimate_parabola(trial: StampTrial) -> Iterator[Estimate]:
    """Yield offset, frequency and ageing from three times."""
    first, middle, last = (float(value) for value in trial.error[0])
    ageing = (last - 2.0 * middle + first) / NOISE_FREE_TIME**2
    frequency = (middle - first) / NOISE_FREE_TIME - 0.5 * ageing * NOISE_FREE_TIME
    for name, unit, measured, scale in (
        ("offset", "s", first, 1.0),
        ("frequency", "1", frequency, 4.0 / NOISE_FREE_TIME),
        ("ageing", "1 / s", ageing, 4.0 / NOISE_FREE_TIME**2),
    ):
        declared = getattr(trial.oscillator, name)
        if declared != 0.0:
            yield Estimate(name, declared, measured, scale * trial.rounding, unit=unit)


def estimate_run_stddevs(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the deviations of frequency and ageing over runs."""
    first, middle, last = trial.error.T
    ageing = (last - 2.0 * middle + first) / NOISE_FREE_TIME**2
    frequency = (middle - first) / NOISE_FREE_TIME - 0.5 * ageing * NOISE_FREE_TIME
    spec = trial.oscillator
    found = estimate_stddevs(
        ("frequency_stddev", "ageing_stddev"), (spec.frequency_stddev, spec.ageing_stddev), (frequency, ageing)
    )
    for estimate, unit in zip(found, ("1", "1 / s"), strict=False):
        yield replace(estimate, unit=unit)


def make_coefficient_estimate(name: str, unit: str, declared: float, variances: tuple[float, float, float]) -> Estimate:
    """Return a coefficient that is proportional to a variance (declared, measured, degrees of freedom)."""
    expected, measured, dof = variances
    ratio = measured / expected
    error = declared * math.sqrt(2.0 / dof)
    return Estimate(name, declared, declared * ratio, error, z_score=compute_variance_z_score(ratio, dof), unit=unit)


def estimate_white_frequency(trial: StampTrial) -> Iterator[Estimate]:
    """Yield h_0 from the Allan variance over one sample."""
    declared = trial.oscillator.white_frequency
    variances = trial.compute_variances(1, (theory.White(math.sqrt(0.5 * declared)),))
    yield make_coefficient_estimate("white_frequency", "s", declared, variances)


def estimate_random_walk(trial: StampTrial) -> Iterator[Estimate]:
    """Yield h_-2 from the Allan variance over one sample."""
    declared = trial.oscillator.random_walk_frequency
    variances = trial.compute_variances(1, (theory.RandomWalk(math.pi * math.sqrt(2.0 * declared)),))
    yield make_coefficient_estimate("random_walk_frequency", "1 / s", declared, variances)


def estimate_flicker(trial: StampTrial) -> Iterator[Estimate]:
    """Yield h_-1 from the Allan variance over one second."""
    declared = trial.oscillator.flicker_frequency
    instability = math.sqrt(math.pi * declared)
    factor = math.ceil(trial.rate)
    _, measured, dof = trial.compute_variances(factor, theory.flicker_terms(instability, FLICKER_BAND, sampled=False))
    found = measured / (2.0 * math.log(2.0))
    error, allowed = declared * math.sqrt(2.0 / dof), 2.0 * FLICKER_FLATNESS * declared
    yield Estimate("flicker_frequency", declared, found, error, allowed, unit="1")


def estimate_ageing_random_walk(trial: StampTrial) -> Iterator[Estimate]:
    """Yield q_3 from the Hadamard variance."""
    declared = trial.oscillator.ageing_random_walk
    variances = trial.compute_variances(AGEING_SPAN, (theory.AgeingWalk(math.sqrt(declared)),), 3)
    yield make_coefficient_estimate("ageing_random_walk", "1 / s^3", declared, variances)


def estimate_linear_coefficient(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the linear coefficient and the turnover temperature, under a temperature rise."""
    first, middle, last = (float(value) for value in trial.error[0])
    half, slope = 0.5 * WARMING_TIME, (TEMPERATURES[1] - TEMPERATURES[0]) / WARMING_TIME
    bend = (last - 2.0 * middle + first) / half**2
    start = (middle - first) / half - 0.5 * bend * half
    spec, error = trial.oscillator, 4.0 * trial.rounding
    measured, declared = bend / slope, spec.temperature_linear
    yield Estimate("temperature_linear", declared, measured, error / half**2 / slope, unit="1 / K")
    uncertainty = (error / half + error / half**2 * (TEMPERATURES[1] - TEMPERATURES[0]) / slope) / abs(declared)
    yield Estimate(
        "turnover_temperature", spec.turnover_temperature, TEMPERATURES[0] - start / measured, uncertainty, unit="K"
    )


def estimate_quadratic_coefficient(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the quadratic coefficient from the third difference under a temperature rise."""
    a, b, c, d = (float(value) for value in trial.error[0])
    third = 2.0 * (WARMING_TIME / 3.0) ** 3 * ((TEMPERATURES[1] - TEMPERATURES[0]) / WARMING_TIME) ** 2
    declared, error = trial.oscillator.temperature_quadratic, 8.0 * trial.rounding / third
    yield Estimate("temperature_quadratic", declared, ((d - a) - 3.0 * (c - b)) / third, error, unit="1 / K^2")


def estimate_temperature(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the temperature from the frequency that it causes."""
    spec = trial.oscillator
    if not isinstance(spec.temperature, int | float):
        return
    warmth = float(trial.error[0, -1]) / NOISE_FREE_TIME / spec.temperature_linear
    error = trial.rounding / NOISE_FREE_TIME / abs(spec.temperature_linear)
    yield Estimate("temperature", spec.temperature, spec.turnover_temperature + warmth, error, unit="K")


def isolate_noise(clock: Clock) -> Clock | None:
    """Return the clock with all noise whose Allan variance is known, including that of its readings."""
    noise, spec = clock.noise, clock.oscillator or _NEUTRAL
    if noise.stddev < noise.precision:
        return None
    names = ("stddev", "dynamic_bias_stddev", "dynamic_bias_correlation_time", "precision")
    active = ("white_frequency", "flicker_frequency", "random_walk_frequency")
    isolated = Clock(
        clock.name,
        replace(NO_NOISE, **{name: getattr(noise, name) for name in names}),
        Oscillator(**{name: getattr(spec, name) for name in active}),
    )
    return None if isolated == Clock(clock.name, oscillator=_NEUTRAL) else isolated


def list_noise_terms(clock: Clock) -> tuple[theory.NoiseTerm, ...]:
    """Return the noise terms of a clock's frequency: jitter with rounding, drift, and oscillator noise."""
    noise, spec = clock.noise, clock.oscillator or _NEUTRAL
    terms: tuple[theory.NoiseTerm, ...] = (
        theory.Quantisation(math.sqrt(noise.stddev**2 + noise.precision**2 / 12.0)),
        theory.White(math.sqrt(0.5 * spec.white_frequency)),
        theory.RandomWalk(math.pi * math.sqrt(2.0 * spec.random_walk_frequency)),
    )
    if noise.has_dynamic_bias:
        tau = noise.dynamic_bias_correlation_time
        terms += (theory.PhaseGaussMarkov(stationary_stddev(noise.dynamic_bias_stddev, tau), tau),)
    if spec.flicker_frequency > 0.0:
        terms += theory.flicker_terms(math.sqrt(math.pi * spec.flicker_frequency), FLICKER_BAND, sampled=False)
    return terms


def estimate_allan_deviations(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the Allan deviation of all noise, at spans with a ratio of ten.

    Rounding is white noise with a variance of a twelfth of the step squared if the jitter is at least the step.
    """
    terms, factor = list_noise_terms(trial.clock), 1
    while factor * MINIMUM_SPANS <= trial.error.size:
        declared, measured, dof = trial.compute_variances(factor, terms)
        name = f"Allan deviation over {factor / trial.rate:g} s"
        yield replace(make_allan_estimate(name, math.sqrt(declared), math.sqrt(measured), dof), unit="1")
        factor *= SPAN_RATIO


def _make_term(
    name: str, isolate: Callable[[Clock], Clock | None], measure: Callable[[StampTrial], Iterator[Estimate]]
) -> ClockTerm:
    return ClockTerm(name, "oscillator", isolate, stamp_every_sample(LONG_RUN), measure)


_THIRD = WARMING_TIME / 3.0

TERMS = (
    ClockTerm(
        "parabola",
        "oscillator",
        isolate_fields("offset", "frequency", "ageing"),
        stamp_at(0.0, NOISE_FREE_TIME, 2.0 * NOISE_FREE_TIME),
        estimate_parabola,
    ),
    ClockTerm(
        "serials",
        "oscillator",
        isolate_fields("frequency_stddev", "ageing_stddev"),
        stamp_at(0.0, NOISE_FREE_TIME, 2.0 * NOISE_FREE_TIME),
        estimate_run_stddevs,
        RUNS,
    ),
    _make_term("white", isolate_fields("white_frequency"), estimate_white_frequency),
    _make_term("flicker", isolate_fields("flicker_frequency"), estimate_flicker),
    _make_term("random walk", isolate_fields("random_walk_frequency"), estimate_random_walk),
    ClockTerm(
        "ageing walk",
        "oscillator",
        isolate_fields("ageing_random_walk"),
        stamp_every_sample(AGEING_RUN),
        estimate_ageing_random_walk,
        AGEING_RUNS,
    ),
    ClockTerm(
        "linear",
        "oscillator",
        isolate_temperature_coefficient("temperature_linear"),
        stamp_at(0.0, 0.5 * WARMING_TIME, WARMING_TIME),
        estimate_linear_coefficient,
    ),
    ClockTerm(
        "quadratic",
        "oscillator",
        isolate_temperature_coefficient("temperature_quadratic"),
        stamp_at(0.0, _THIRD, 2.0 * _THIRD, 3.0 * _THIRD),
        estimate_quadratic_coefficient,
    ),
    ClockTerm(
        "temperature", "oscillator", isolate_constant_temperature, stamp_at(0.0, NOISE_FREE_TIME), estimate_temperature
    ),
    ClockTerm("together", "clock", isolate_noise, stamp_every_sample(LONG_RUN), estimate_allan_deviations),
)
"""The estimators of each parameter of an oscillator and of all noise together."""

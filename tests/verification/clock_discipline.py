"""Estimates of the parameters of a discipline from the stamp errors x (s) of a disciplined clock.

Without noise, an offset x0 is constant until the first poll, after one interval T. Then, from the values x_n at the
polls (x_1 = x0), it changes at the rates::

    T u_1 = -(alpha + beta) x0         T u_2 = -beta x0 - (alpha + beta) x_2

A large offset changes at the slew rate. A clock with a slew rate of 0 that drifts across the threshold is stepped
there.
The slope of a clock with measurement noise changes for the last time at the first poll after the end. Under noise, the
residual e before the polls has, once settled, the mean -mean. With w the measurement noise and v the white FM::

    (e, s)' = A (e, s) + (-alpha - beta, 1) w + (1, 0) v       A = (1 - alpha - beta, -beta; 1, 1)

The covariance after k polls is (A^k S)_11, S = A S A' + Q. Its sums give the errors of the mean and of the variance,
whose closed form is that of `clock.discipline`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from navsense.clock import Clock, Discipline, Oscillator
from navsense.core.errors import AnalysisError
from navsense.core.typing import FloatArray, IntArray
from tests.verification.clock_stamps import NODES, ClockTerm, SelectTicks, StampTrial
from tests.verification.declared import MINIMUM_SAMPLES, scale_count
from tests.verification.estimates import ROUNDING, Estimate, compute_variance_z_score

OFFSET = 1e-3
"""Initial offset (s) of a clock without noise."""

UNLIMITED_SLEW_RATE = 1e6
"""A slew rate above every correction."""

SLEW_RATIO = 4.0
"""Ratio of the unlimited correction rate to the slew rate."""

CREEP_PER_POLL, POLLS_TO_THRESHOLD = 2e-10, MINIMUM_SAMPLES // 2
"""Drift per poll as a share of the step threshold, and polls until the threshold is reached."""

POLLS = 20_000
"""Number of polls of a clock with noise."""

NEGLIGIBLE = 1e-9
"""Share of the initial value, or of a covariance, that is negligible."""

MINIMUM_SETTLING_TIMES = 20
"""Minimum length of a record with noise, in settling times."""

MINIMUM_SLOPE_SAMPLES = 4
"""Minimum number of samples in an interval to estimate a slope."""


def count_samples_per_poll(discipline: Discipline, rate: float) -> int:
    """Return the samples at `rate` (Hz) between polls; raise `AnalysisError` if they are not a whole number."""
    samples = discipline.interval * rate
    if round(samples) < 1 or abs(samples - round(samples)) > 1e-9 * samples:
        allowed = f"must give whole samples in the {discipline.interval:g} s between the polls of the discipline"
        raise AnalysisError("rate", rate, allowed=allowed)
    return round(samples)


def _get_discipline(clock: Clock) -> Discipline:
    return clock.discipline or Discipline()


def stamp_polls(count: int) -> SelectTicks:
    """Stamp the samples at the start and at this many polls."""

    def select_ticks(clock: Clock, rate: float, effort: float) -> IntArray:
        return count_samples_per_poll(_get_discipline(clock), rate) * np.arange(
            scale_count(count, effort, MINIMUM_SAMPLES) + 1
        )

    return select_ticks


def stamp_intervals(count: int) -> SelectTicks:
    """Stamp every sample of this many intervals."""
    return lambda clock, rate, _effort: np.arange(count * count_samples_per_poll(_get_discipline(clock), rate) + 1)


def stamp_until_twice_the_end(clock: Clock, rate: float, _effort: float) -> IntArray:
    """Stamp the polls until twice the time at which the reference ends."""
    last = math.ceil(2.0 * _get_discipline(clock).until / _get_discipline(clock).interval)
    return count_samples_per_poll(_get_discipline(clock), rate) * np.arange(last + 1)


def _remove_limits(clock: Clock, **changes: float) -> Discipline:
    """Return the discipline with these changes but without noise, limits and end."""
    defaults = {
        "step_threshold": math.inf,
        "slew_rate": UNLIMITED_SLEW_RATE,
        "mean": 0.0,
        "stddev": 0.0,
        "until": math.inf,
    }
    return replace(_get_discipline(clock), **{**defaults, **changes})


def isolate_loop(clock: Clock) -> Clock | None:
    """Return the clock with an offset and the control loop alone."""
    if clock.discipline is None:
        return None
    return Clock(clock.name, oscillator=Oscillator(offset=OFFSET), discipline=_remove_limits(clock))


def isolate_slew_rate(clock: Clock) -> Clock | None:
    """Return the clock with a large offset, the control loop and its slew rate."""
    if clock.discipline is None or not clock.discipline.slew_rate:
        return None
    spec = clock.discipline
    offset = SLEW_RATIO * spec.slew_rate * spec.interval / (spec.proportional + spec.integral)
    loop = _remove_limits(clock, slew_rate=spec.slew_rate)
    return Clock(clock.name, oscillator=Oscillator(offset=offset), discipline=loop)


def isolate_step_threshold(clock: Clock) -> Clock | None:
    """Return the clock with a slew rate of 0 that drifts across the step threshold."""
    if clock.discipline is None or not 0.0 < clock.discipline.step_threshold < math.inf:
        return None
    threshold = clock.discipline.step_threshold
    creep = threshold * CREEP_PER_POLL
    line = Oscillator(offset=threshold - POLLS_TO_THRESHOLD * creep, frequency=creep / clock.discipline.interval)
    return Clock(clock.name, oscillator=line, discipline=_remove_limits(clock, step_threshold=threshold, slew_rate=0.0))


def isolate_end(clock: Clock) -> Clock | None:
    """Return the clock with the control loop, its measurement noise and its end."""
    spec = clock.discipline
    if spec is None or spec.until == math.inf or not spec.stddev:
        return None
    return Clock(clock.name, discipline=_remove_limits(clock, stddev=spec.stddev, until=spec.until))


def isolate_measurement_errors(clock: Clock) -> Clock | None:
    """Return the clock with the control loop and its measurement errors."""
    spec = clock.discipline
    if spec is None or not (spec.mean or spec.stddev):
        return None
    return Clock(clock.name, discipline=_remove_limits(clock, mean=spec.mean, stddev=spec.stddev))


def isolate_all_noise(clock: Clock) -> Clock | None:
    """Return the clock with the control loop, its measurement errors and white FM."""
    isolated = isolate_measurement_errors(clock)
    if isolated is None or clock.oscillator is None or not clock.oscillator.white_frequency:
        return None
    return replace(isolated, oscillator=Oscillator(white_frequency=clock.oscillator.white_frequency))


def _compute_slope(trial: StampTrial, number: int) -> float:
    """Return the slope of the error in the interval after a poll."""
    samples = count_samples_per_poll(trial.discipline, trial.rate)
    first, last = number * samples + 1, (number + 1) * samples - 1
    return float(trial.error[0, last] - trial.error[0, first]) / float(trial.time[last] - trial.time[first])


def estimate_loop(trial: StampTrial) -> Iterator[Estimate]:
    """Yield interval and gains from the decay of an offset, if an interval has enough samples."""
    spec, samples = trial.discipline, count_samples_per_poll(trial.discipline, trial.rate)
    if samples < MINIMUM_SLOPE_SAMPLES:
        return
    start, first, two = float(trial.error[0, 0]), _compute_slope(trial, 1), _compute_slope(trial, 2)
    share = 8.0 * samples * trial.rounding / abs(start)
    turn = samples + 1
    interval = float(trial.time[turn]) - (float(trial.error[0, turn]) - start) / first
    yield Estimate("interval", spec.interval, interval, share * spec.interval, unit="s")
    both = -first * spec.interval / start
    second = float(trial.error[0, 2 * samples])
    integral = -(two * spec.interval + both * second) / start
    yield Estimate("proportional", spec.proportional, both - integral, share, unit="1")
    yield Estimate("integral", spec.integral, integral, share, unit="1")


def estimate_slew_rate(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the slew rate, if an interval has enough samples."""
    spec = trial.discipline
    if count_samples_per_poll(spec, trial.rate) >= MINIMUM_SLOPE_SAMPLES:
        error = 4.0 * trial.rounding / spec.interval
        yield Estimate("slew_rate", spec.slew_rate, -_compute_slope(trial, 1), error, unit="1")


def estimate_step_threshold(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the step threshold: the largest error before the step."""
    declared = trial.discipline.step_threshold
    error = CREEP_PER_POLL * declared + trial.rounding
    yield Estimate("step_threshold", declared, float(trial.error.max()), error, unit="s")


def estimate_end(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the first poll after the end, at which the slope changes for the last time."""
    spec, turns = trial.discipline, np.abs(np.diff(trial.error[0], 2))
    last = 1 + int(np.flatnonzero(turns > 1e-6 * turns.max())[-1])  # turn k is at poll k + 1
    first = math.ceil(round(spec.until * NODES) / round(spec.interval * NODES)) * spec.interval
    yield Estimate("until", spec.until, last * spec.interval, ROUNDING * spec.until, abs(first - spec.until), unit="s")


def make_matrices(spec: Discipline) -> tuple[FloatArray, FloatArray]:
    """Return A and the input matrix of the measurement noise. Without an integral there is no second state."""
    alpha, beta = spec.proportional, spec.integral
    matrix, inputs = np.array([[1.0 - alpha - beta, -beta], [1.0, 1.0]]), np.array([[-alpha - beta], [1.0]])
    return (matrix, inputs) if beta > 0.0 else (matrix[:1, :1], inputs[:1])


def count_settling_polls(spec: Discipline) -> int:
    """Return the polls until nothing is left of the start."""
    largest = float(np.abs(np.linalg.eigvals(make_matrices(spec)[0])).max())
    return 2 + math.ceil(math.log(NEGLIGIBLE) / math.log(max(largest, NEGLIGIBLE)))


def compute_covariances(spec: Discipline, intensity: float) -> FloatArray:
    """Return the covariance (k,) of settled residuals k polls apart, with white FM of `intensity` q_1 (s)."""
    matrix, inputs = make_matrices(spec)
    drive = spec.stddev**2 * inputs @ inputs.T
    drive[0, 0] += intensity * spec.interval
    size = matrix.shape[0]
    spread = np.linalg.solve(np.eye(size * size) - np.kron(matrix, matrix), drive.ravel()).reshape(size, size)
    found = np.empty(count_settling_polls(spec))
    for k in range(found.size):
        found[k] = spread[0, 0]
        spread = matrix @ spread
    return found


def compute_variance(spec: Discipline, intensity: float) -> float:
    """Return the variance of the residual in closed form, s^2."""
    alpha, beta = spec.proportional, spec.integral
    noise = (2.0 * alpha**2 + 2.0 * beta + alpha * beta) * spec.stddev**2 + 2.0 * intensity * spec.interval
    return noise / (alpha * (4.0 - 2.0 * alpha - beta))


def _compute_mean_variance(covariance: FloatArray, count: int) -> float:
    """Return the variance of the mean of `count` values with a covariance (k,)."""
    pairs = np.where(np.arange(covariance.size) > 0, 2.0, 1.0) * (1.0 - np.arange(covariance.size) / count)
    return float(np.sum(pairs * covariance)) / count


def _select_settled_residual(trial: StampTrial) -> FloatArray:
    """Return the settled residuals before the polls, empty if the record is too short."""
    start = count_settling_polls(trial.discipline)
    return np.asarray(
        trial.error[0, start + 1 if trial.time.size > MINIMUM_SETTLING_TIMES * start else trial.time.size :]
    )


def estimate_measurement_errors(trial: StampTrial) -> Iterator[Estimate]:
    """Yield mean and deviation of the measurement errors from the residuals, if there are any."""
    spec, residual = trial.discipline, _select_settled_residual(trial)
    if not residual.size:
        return
    known = compute_covariances(spec, 0.0)
    error = math.sqrt(max(0.0, _compute_mean_variance(known, residual.size))) + trial.rounding
    yield Estimate("mean", spec.mean, -float(np.mean(residual)), error, unit="s")
    if spec.stddev > 0.0:
        dof = known[0] ** 2 / _compute_mean_variance(known**2, residual.size)
        ratio = float(np.mean((residual + spec.mean) ** 2)) / compute_variance(spec, 0.0)
        found, error = spec.stddev * math.sqrt(ratio), spec.stddev / math.sqrt(2.0 * dof)
        yield Estimate("stddev", spec.stddev, found, error, z_score=compute_variance_z_score(ratio, dof), unit="s")


def estimate_residual(trial: StampTrial) -> Iterator[Estimate]:
    """Yield the deviation of the residuals with white FM, if there are any."""
    spec, residual, intensity = (
        trial.discipline,
        _select_settled_residual(trial),
        0.5 * trial.oscillator.white_frequency,
    )
    if not residual.size:
        return
    known, declared = compute_covariances(spec, intensity), compute_variance(spec, intensity)
    dof = known[0] ** 2 / _compute_mean_variance(known**2, residual.size)
    ratio = float(np.mean((residual + spec.mean) ** 2)) / declared
    figure, size = "rest before a poll (stddev)", math.sqrt(declared)
    error = size / math.sqrt(2.0 * dof)
    yield Estimate(figure, size, size * math.sqrt(ratio), error, z_score=compute_variance_z_score(ratio, dof), unit="s")


def _make_term(
    name: str,
    isolate: Callable[[Clock], Clock | None],
    select_ticks: SelectTicks,
    measure: Callable[[StampTrial], Iterator[Estimate]],
) -> ClockTerm:
    return ClockTerm(name, "discipline", isolate, select_ticks, measure)


TERMS = (
    _make_term("loop", isolate_loop, stamp_intervals(3), estimate_loop),
    _make_term("slew", isolate_slew_rate, stamp_intervals(2), estimate_slew_rate),
    _make_term("threshold", isolate_step_threshold, stamp_polls(MINIMUM_SAMPLES), estimate_step_threshold),
    _make_term("until", isolate_end, stamp_until_twice_the_end, estimate_end),
    _make_term("measured", isolate_measurement_errors, stamp_polls(POLLS), estimate_measurement_errors),
    _make_term("left", isolate_all_noise, stamp_polls(POLLS), estimate_residual),
)
"""The estimators of each parameter of a discipline and of its residual."""

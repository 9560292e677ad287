"""The figures of a discipline, from the errors x (s) of the stamps of a clock that it corrects.

Without noise, an offset x0 lies there until the first poll, after one interval T, and then, at the values x_n at the
polls (x_1 = x0), runs off at::

    T u_1 = -(alpha + beta) x0         T u_2 = -beta x0 - (alpha + beta) x_2

A large one runs off at the slew rate; one that may not be slewed and creeps across the threshold is stepped there; the
course of one that noise drives changes for the last time at the first poll that does not count. Under noise the rest e
before the polls has, once settled, the mean -mean, and with w the noise of the measurement and v that of the white FM::

    (e, s)' = A (e, s) + (-alpha - beta, 1) w + (1, 0) v       A = (1 - alpha - beta, -beta; 1, 1)

the covariance (A^k S)_11 after k polls, S = A S A' + Q. Its sums give the errors of the mean and of the variance, whose
closed form is that of `clock.discipline`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from navsense.clock import Clock, Discipline, Oscillator
from navsense.core.errors import AnalysisError
from navsense.core.typing import FloatArray, IntArray
from tests.verification.clock_stamps import NODES, Instants, Line, Stamped
from tests.verification.declared import FEWEST_SAMPLES, scale_count
from tests.verification.estimates import DIGITS, Estimate, variance_z_score

OFFSET = 1e-3
"""Seconds that a clock without noise is off at the start."""

UNLIMITED = 1e6
"""A slew rate that no correction comes near."""

FASTER = 4.0
"""Times the slew rate at which an offset would run off if it might."""

CREEPS, CROSSING = 2e-10, FEWEST_SAMPLES // 2
"""Of the threshold of a step: how far an offset creeps from poll to poll; and in how many it gets there."""

POLLS = 20_000
"""Polls of a clock under noise."""

GONE = 1e-9
"""Share of the start, or of a covariance, that counts as nothing."""

LONGER = 20
"""Times as many polls as it takes until nothing is left of the start: a record under noise has them at least."""

LEAST_SAMPLES = 4
"""In an interval, where its course is to be seen."""


def samples_of(discipline: Discipline, rate: float) -> int:
    """Return the samples at `rate` (Hz) between polls; raise `AnalysisError` where they are not a whole number."""
    samples = discipline.interval * rate
    if round(samples) < 1 or abs(samples - round(samples)) > 1e-9 * samples:
        allowed = f"must give whole samples in the {discipline.interval:g} s between the polls of the discipline"
        raise AnalysisError("rate", rate, allowed=allowed)
    return round(samples)


def _of(clock: Clock) -> Discipline:
    return clock.discipline or Discipline()


def polls(count: int) -> Instants:
    """Stamp the samples at so many polls, and at the start."""

    def instants(clock: Clock, rate: float, effort: float) -> IntArray:
        return samples_of(_of(clock), rate) * np.arange(scale_count(count, effort, FEWEST_SAMPLES) + 1)

    return instants


def intervals(count: int) -> Instants:
    """Stamp every sample of so many intervals."""
    return lambda clock, rate, _effort: np.arange(count * samples_of(_of(clock), rate) + 1)


def around_the_end(clock: Clock, rate: float, _effort: float) -> IntArray:
    """Stamp the polls for twice as long as there is a reference."""
    last = math.ceil(2.0 * _of(clock).until / _of(clock).interval)
    return samples_of(_of(clock), rate) * np.arange(last + 1)


def _free(clock: Clock, **given: float) -> Discipline:
    """Return a clock's discipline without noise, limits and an end, but for what is given."""
    bare = {"step_threshold": math.inf, "slew_rate": UNLIMITED, "mean": 0.0, "stddev": 0.0, "until": math.inf}
    return replace(_of(clock), **{**bare, **given})


def quiet(clock: Clock) -> Clock | None:
    """Leave the loop of a clock that is off."""
    if clock.discipline is None:
        return None
    return Clock(clock.name, oscillator=Oscillator(offset=OFFSET), discipline=_free(clock))


def limited(clock: Clock) -> Clock | None:
    """Leave the loop and its slew rate of a clock that is far off."""
    if clock.discipline is None or not clock.discipline.slew_rate:
        return None
    sheet = clock.discipline
    offset = FASTER * sheet.slew_rate * sheet.interval / (sheet.proportional + sheet.integral)
    loop = _free(clock, slew_rate=sheet.slew_rate)
    return Clock(clock.name, oscillator=Oscillator(offset=offset), discipline=loop)


def creeping(clock: Clock) -> Clock | None:
    """Leave the threshold of a clock that is never slewed, and creeps across it."""
    if clock.discipline is None or not 0.0 < clock.discipline.step_threshold < math.inf:
        return None
    threshold = clock.discipline.step_threshold
    creep = threshold * CREEPS
    line = Oscillator(offset=threshold - CROSSING * creep, frequency=creep / clock.discipline.interval)
    return Clock(clock.name, oscillator=line, discipline=_free(clock, step_threshold=threshold, slew_rate=0.0))


def ending(clock: Clock) -> Clock | None:
    """Leave the loop under the noise of its measurements, until it loses its reference."""
    sheet = clock.discipline
    if sheet is None or sheet.until == math.inf or not sheet.stddev:
        return None
    return Clock(clock.name, discipline=_free(clock, stddev=sheet.stddev, until=sheet.until))


def measuring(clock: Clock) -> Clock | None:
    """Leave the loop under the errors of its measurements."""
    sheet = clock.discipline
    if sheet is None or not (sheet.mean or sheet.stddev):
        return None
    return Clock(clock.name, discipline=_free(clock, mean=sheet.mean, stddev=sheet.stddev))


def moving(clock: Clock) -> Clock | None:
    """Leave the loop under the errors of its measurements and white FM."""
    left = measuring(clock)
    if left is None or clock.oscillator is None or not clock.oscillator.white_frequency:
        return None
    return replace(left, oscillator=Oscillator(white_frequency=clock.oscillator.white_frequency))


def _slope(stamped: Stamped, number: int) -> float:
    """Return the course (fraction) within the interval after a poll."""
    samples = samples_of(stamped.discipline, stamped.rate)
    first, last = number * samples + 1, (number + 1) * samples - 1
    return float(stamped.error[0, last] - stamped.error[0, first]) / float(stamped.time[last] - stamped.time[first])


def loop(stamped: Stamped) -> Iterator[Estimate]:
    """Yield interval and gains from what becomes of an offset; nothing where its course cannot be seen."""
    sheet, samples = stamped.discipline, samples_of(stamped.discipline, stamped.rate)
    if samples < LEAST_SAMPLES:
        return
    start, first, two = float(stamped.error[0, 0]), _slope(stamped, 1), _slope(stamped, 2)
    share = 8.0 * samples * stamped.rounding / abs(start)
    turn = samples + 1
    interval = float(stamped.time[turn]) - (float(stamped.error[0, turn]) - start) / first
    yield Estimate("interval", sheet.interval, interval, share * sheet.interval, unit="s")
    both = -first * sheet.interval / start
    second = float(stamped.error[0, 2 * samples])
    integral = -(two * sheet.interval + both * second) / start
    yield Estimate("proportional", sheet.proportional, both - integral, share, unit="1")
    yield Estimate("integral", sheet.integral, integral, share, unit="1")


def slew(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the slew rate; nothing where its course cannot be seen."""
    sheet = stamped.discipline
    if samples_of(sheet, stamped.rate) >= LEAST_SAMPLES:
        error = 4.0 * stamped.rounding / sheet.interval
        yield Estimate("slew_rate", sheet.slew_rate, -_slope(stamped, 1), error, unit="1")


def threshold(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the threshold of a step, up to which the error crept."""
    declared = stamped.discipline.step_threshold
    error = CREEPS * declared + stamped.rounding
    yield Estimate("step_threshold", declared, float(stamped.error.max()), error, unit="s")


def until(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the first poll that does not count: there the course changes once more, and never again."""
    sheet, turns = stamped.discipline, np.abs(np.diff(stamped.error[0], 2))
    last = 1 + int(np.flatnonzero(turns > 1e-6 * turns.max())[-1])  # turn k is at poll k + 1
    first = math.ceil(round(sheet.until * NODES) / round(sheet.interval * NODES)) * sheet.interval
    yield Estimate(
        "until", sheet.until, last * sheet.interval, DIGITS * sheet.until, abs(first - sheet.until), unit="s"
    )


def matrices(sheet: Discipline) -> tuple[FloatArray, FloatArray]:
    """Return A, and what it takes of the noise of a measurement; without an integral there is no second state."""
    alpha, beta = sheet.proportional, sheet.integral
    matrix, reads = np.array([[1.0 - alpha - beta, -beta], [1.0, 1.0]]), np.array([[-alpha - beta], [1.0]])
    return (matrix, reads) if beta > 0.0 else (matrix[:1, :1], reads[:1])


def settling(sheet: Discipline) -> int:
    """Return the polls until nothing is left of the start."""
    largest = float(np.abs(np.linalg.eigvals(matrices(sheet)[0])).max())
    return 2 + math.ceil(math.log(GONE) / math.log(max(largest, GONE)))


def covariances(sheet: Discipline, intensity: float) -> FloatArray:
    """Return the covariance (k,) of the rest before polls k apart, settled; white FM of `intensity` q_1 (s)."""
    matrix, reads = matrices(sheet)
    drive = sheet.stddev**2 * reads @ reads.T
    drive[0, 0] += intensity * sheet.interval
    size = matrix.shape[0]
    spread = np.linalg.solve(np.eye(size * size) - np.kron(matrix, matrix), drive.ravel()).reshape(size, size)
    found = np.empty(settling(sheet))
    for k in range(found.size):
        found[k] = spread[0, 0]
        spread = matrix @ spread
    return found


def variance(sheet: Discipline, intensity: float) -> float:
    """Return the variance of the rest in closed form, s^2."""
    alpha, beta = sheet.proportional, sheet.integral
    noise = (2.0 * alpha**2 + 2.0 * beta + alpha * beta) * sheet.stddev**2 + 2.0 * intensity * sheet.interval
    return noise / (alpha * (4.0 - 2.0 * alpha - beta))


def _mean_variance(covariance: FloatArray, count: int) -> float:
    """Return the variance of the mean of `count` values with a covariance (k,)."""
    pairs = np.where(np.arange(covariance.size) > 0, 2.0, 1.0) * (1.0 - np.arange(covariance.size) / count)
    return float(np.sum(pairs * covariance)) / count


def _rest(stamped: Stamped) -> FloatArray:
    """Return the rest before the polls, settled; none where the record is too short for that."""
    start = settling(stamped.discipline)
    return np.asarray(stamped.error[0, start + 1 if stamped.time.size > LONGER * start else stamped.time.size :])


def measured(stamped: Stamped) -> Iterator[Estimate]:
    """Yield mean and deviation of the measured offset's error, from the rest that it leaves; of none, nothing."""
    sheet, rest = stamped.discipline, _rest(stamped)
    if not rest.size:
        return
    known = covariances(sheet, 0.0)
    error = math.sqrt(max(0.0, _mean_variance(known, rest.size))) + stamped.rounding
    yield Estimate("mean", sheet.mean, -float(np.mean(rest)), error, unit="s")
    if sheet.stddev > 0.0:
        free = known[0] ** 2 / _mean_variance(known**2, rest.size)
        ratio = float(np.mean((rest + sheet.mean) ** 2)) / variance(sheet, 0.0)
        found, error = sheet.stddev * math.sqrt(ratio), sheet.stddev / math.sqrt(2.0 * free)
        yield Estimate("stddev", sheet.stddev, found, error, off=variance_z_score(ratio, free), unit="s")


def left(stamped: Stamped) -> Iterator[Estimate]:
    """Yield the deviation of the rest under white FM too; of none, nothing."""
    sheet, rest, intensity = stamped.discipline, _rest(stamped), 0.5 * stamped.oscillator.white_frequency
    if not rest.size:
        return
    known, declared = covariances(sheet, intensity), variance(sheet, intensity)
    free = known[0] ** 2 / _mean_variance(known**2, rest.size)
    ratio = float(np.mean((rest + sheet.mean) ** 2)) / declared
    figure, size = "rest before a poll (stddev)", math.sqrt(declared)
    error = size / math.sqrt(2.0 * free)
    yield Estimate(figure, size, size * math.sqrt(ratio), error, off=variance_z_score(ratio, free), unit="s")


def _line(
    name: str,
    alone: Callable[[Clock], Clock | None],
    instants: Instants,
    measure: Callable[[Stamped], Iterator[Estimate]],
) -> Line:
    return Line(name, "discipline", alone, instants, measure)


LINES = (
    _line("loop", quiet, intervals(3), loop),
    _line("slew", limited, intervals(2), slew),
    _line("threshold", creeping, polls(FEWEST_SAMPLES), threshold),
    _line("until", ending, around_the_end, until),
    _line("measured", measuring, polls(POLLS), measured),
    _line("left", moving, polls(POLLS), left),
)
"""How each figure of a discipline is measured, and the rest that it leaves."""

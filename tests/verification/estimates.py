"""The figures of a data sheet, each estimated from readings in which it acts (nearly) alone.

Every line of `TERMS` says which fields of `Noise` it measures, which others have to act beside them, how many samples
and instruments it takes, what the channel is given to read if not the still sensor's own ideal values, and the
function from a `Trial` to the estimates. `declared` isolates the fields, simulates and collects.

An estimate carries its standard error, which follows from the declared figures and the number n of samples, or of
instruments: s / sqrt(n) of a mean, s / sqrt(2 n) of a deviation s, sqrt(p (1 - p) / n) of a share p,
1 / T sqrt(2 T / (n dt)) of an inverse correlation time, s / sqrt(2 freedom) of an Allan deviation. What has no chance
in it (a mean alone, a limit, a step of rounding) has the rounding of doubles for its error.

A new field of `Noise` is a new line here. A figure of a sheet that is no field of `Noise` is a line without fields but
with `prepared`, which makes the sheets in which it acts alone, none where it does not; one that is of several axes at
once, or shows in motion only, is a `MovedTerm`. Those of IMU and magnetometer stand in `imu_mag`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from navsense.analysis import allan, allan_dof, densities, theory
from navsense.core.typing import AnyArray, FloatArray, Times
from navsense.environment.base import Environment
from navsense.motion.base import Motion, MotionBlock
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sensors.base import Sensor

DIGITS = 16.0 * float(np.finfo(np.float64).eps)
"""What a value may be off by, of the largest that it was made from."""

FLICKER_FLATNESS = 0.02
"""What the floor of flicker is declared to be off by at most, of its size: `noise.terms`."""

SPANS = 10
"""Factor between the spans at which all terms together are held."""

FEWEST = 500
"""Spans that a record of all terms together has at least: the Allan variance is close to normal then."""


TIMES = 100.0
"""Correlation times that a record has at least: the inverse of the estimated one is close to normal then."""


UNITS = {
    "noise_density": "{} / sqrt(Hz)",
    "dynamic_bias_stddev": "{} / sqrt(s)",
    "dynamic_bias_correlation_time": "s",
    "random_walk": "{} / sqrt(s)",
    "scale_factor": "1",
    "scale_factor_stddev": "1",
    "temperature_coefficient": "{} / K",
    "scale_temperature_coefficient": "1 / K",
    "reference_temperature": "K",
    "outlier_probability": "1",
}
"""Units of the figures of `Noise` that have not their channel's, {}."""


@dataclass(frozen=True)
class Estimate:
    """One figure: declared, measured, standard error, and what the declaration itself allows it to be off.

    `off` is the deviation in standard errors where it is taken in another quantity, one closer to normal; `unit` that
    of the figure where it is neither its channel's nor that of `UNITS`.
    """

    parameter: str
    declared: float
    measured: float
    error: float
    allowance: float = 0.0
    off: float | None = None
    unit: str | None = None

    def unit_in(self, channel: str) -> str:
        """Return the unit of the figure in a channel of some unit."""
        return UNITS.get(self.parameter, "{}").format(channel) if self.unit is None else self.unit

    @property
    def deviation(self) -> float:
        """Return how many standard errors the measured figure lies above the declared one."""
        if self.off is not None:
            return self.off
        rest = self.measured - self.declared
        return math.copysign(max(0.0, abs(rest) - self.allowance), rest) / self.error


@dataclass(frozen=True, eq=False)
class Trial:
    """What a term has to measure one channel by.

    `noise` is the channel's whole sheet, axis `axis` of the array `output`; `sheet` is the sensor's, that simulated;
    `rate` in Hz, `time` (n,) s, `error` (runs, n) reading minus ideal, `ideal` (n,) the stimulus (0 where there is
    none), `temperature` (n,) K, `rounding` what one value may be off by, being a double.
    """

    sheet: Sensor
    output: str
    axis: int
    noise: Noise
    rate: float
    time: Times
    error: FloatArray
    ideal: FloatArray
    temperature: FloatArray
    rounding: float


Measure = Callable[[Trial], Iterator[Estimate]]
Stimulus = Callable[[Noise, int, int], FloatArray]
"""Noise and number of an axis, count -> ideal values (n,)."""


@dataclass(frozen=True)
class Term:
    """One line: fields of `Noise` that it measures, fields that act beside them, and how.

    `count` samples of each of `runs` instruments. `stimulus` gives the ideal values of a channel in place of the
    still sensor's. `prepared` makes the sheets in which nothing but the term acts, in place of isolating the fields.
    """

    name: str
    fields: tuple[str, ...]
    measure: Measure
    count: int
    runs: int = 1
    beside: tuple[str, ...] = ()
    stimulus: Stimulus | None = None
    prepared: Callable[[Sensor], Sequence[Sensor]] | None = None

    def acts(self, noise: Noise) -> bool:
        """Tell whether it has something to say of a channel: one of the fields is not neutral, or there are none."""
        return not self.fields or any(getattr(noise, name) != getattr(NO_NOISE, name) for name in self.fields)


@dataclass(frozen=True, eq=False)
class Moved:
    """What a sensor with the sheet `sheet` gave as it moved through `environment`, at `rate` (Hz) and `time` (n,) s.

    `truth` is the motion, `ideal` and `arrays` the ideal values and the readings by name.
    """

    sheet: Sensor
    rate: float
    time: Times
    environment: Environment
    truth: MotionBlock
    ideal: Mapping[str, AnyArray]
    arrays: Mapping[str, AnyArray]


@dataclass(frozen=True)
class MovedTerm:
    """One line that takes all channels of a sensor at once, `count` samples of it in motion.

    `prepared` makes the sheets in which nothing but the term acts; `measure` yields (channel, estimate).
    """

    name: str
    measure: Callable[[Moved], Iterator[tuple[str, Estimate]]]
    count: int
    prepared: Callable[[Sensor], Sequence[Sensor]]
    motion: Callable[[], Motion]


def certain(trial: Trial, parameter: str, declared: float, measured: float, share: float = 1.0) -> Estimate:
    """Return an estimate without chance: off by `share` times the rounding of a value."""
    return Estimate(parameter, declared, measured, share * trial.rounding)


def spread(trial: Trial, parameter: str, declared: float, samples: FloatArray, centre: float = 0.0) -> Estimate:
    """Return the deviation of samples about a known centre."""
    measured = math.sqrt(float(np.mean((samples - centre) ** 2)))
    return Estimate(parameter, declared, measured, declared / math.sqrt(2.0 * samples.size) + trial.rounding)


def drawn_once(trial: Trial, mean: str, stddev: str, samples: FloatArray) -> Iterator[Estimate]:
    """Yield mean and deviation of what is drawn once for each instrument (runs,)."""
    centre, deviation = getattr(trial.noise, mean), getattr(trial.noise, stddev)
    error = deviation / math.sqrt(samples.size) + trial.rounding
    yield Estimate(mean, centre, float(np.mean(samples)), error)
    if deviation > 0.0:
        yield spread(trial, stddev, deviation, samples, centre)


def mean(trial: Trial) -> Iterator[Estimate]:
    """Yield the mean, under white noise if there is some."""
    error = trial.noise.white_stddev(trial.rate) / math.sqrt(trial.error.size) + trial.rounding
    yield Estimate("mean", trial.noise.mean, float(np.mean(trial.error)), error)


def stddev(trial: Trial) -> Iterator[Estimate]:
    """Yield the deviation of the samples."""
    yield spread(trial, "stddev", trial.noise.stddev, trial.error)


def noise_density(trial: Trial) -> Iterator[Estimate]:
    """Yield the level of the spectrum: the mean over all its frequencies, of segments that share nothing."""
    spectrum = densities.welch(trial.error[0], trial.rate, 256, window="boxcar", overlap=0.0)
    declared, values = trial.noise.noise_density, spectrum.density.size * (trial.error.shape[1] // 256)
    measured = math.sqrt(0.5 * float(np.mean(spectrum.density)))
    yield Estimate("noise_density", declared, measured, 0.5 * declared / math.sqrt(values))


def turn_on(trial: Trial) -> Iterator[Estimate]:
    """Yield mean and deviation of the turn-on bias."""
    yield from drawn_once(trial, "bias_mean", "bias_stddev", trial.error[:, 0])


def drift(trial: Trial) -> Iterator[Estimate]:
    """Yield density and correlation time of the drift, from its steps.

    With b_k = phi b_(k-1) + step the least squares of phi have the error sqrt((1 - phi^2) / n) and lie 2 / n too low.
    Nothing is said of the correlation time where there are fewer than `TIMES` of it.
    """
    sigma, tau = trial.noise.dynamic_bias_stddev, trial.noise.dynamic_bias_correlation_time
    before, after, dt = trial.error[:, :-1], trial.error[:, 1:], 1.0 / trial.rate
    steps = after - math.exp(-dt / tau) * before
    unit = math.sqrt(-0.5 * tau * math.expm1(-2.0 * dt / tau))
    measured = math.sqrt(float(np.mean(steps**2))) / unit
    yield Estimate("dynamic_bias_stddev", sigma, measured, sigma / math.sqrt(2.0 * steps.size))
    if steps.size * dt < TIMES * tau:
        return
    lost = float(np.sum(before * (before - after)) / np.sum(before**2))
    inverse = -math.log1p(-lost) / dt - 2.0 / (steps.size * dt)
    error = math.sqrt(2.0 / (tau * steps.size * dt))
    off = (1.0 / tau - inverse) / error
    yield Estimate("dynamic_bias_correlation_time", tau, 1.0 / inverse, tau**2 * error, off=off)


def stationary(trial: Trial) -> Iterator[Estimate]:
    """Yield the deviation of the drift at the start, over instruments: sigma sqrt(tau / 2)."""
    noise = trial.noise
    declared = noise.dynamic_bias_stddev * math.sqrt(0.5 * noise.dynamic_bias_correlation_time)
    yield spread(trial, "dynamic bias at the start", declared, trial.error[:, 0])


def deviation_over(trial: Trial, factor: int, terms: tuple[theory.NoiseTerm, ...]) -> tuple[float, float]:
    """Return the Allan deviation (runs averaged) at a span of `factor` samples, and its degrees of freedom."""
    runs, count = trial.error.shape
    curves = [allan.oadev(row, trial.rate, [factor], exponent=0) for row in trial.error]
    variance = float(np.mean([curve.variance[0] for curve in curves]))
    covariance = partial(theory.phase_covariance, terms, rate=trial.rate)
    shared = allan_dof.estimate_covariance(covariance, factor, factor, count + 1)
    square = 2.0 * (factor / trial.rate) ** 2 * float(theory.allan_variance(terms, factor, trial.rate))
    return math.sqrt(variance), runs * 2.0 * square**2 / shared


def variance_z_score(ratio: float, free: float) -> float:
    """Return how many standard errors a variance lies above its mean, `ratio` times it with `free` degrees of freedom.

    Its third root is close to normal (Wilson and Hilferty 1931).
    """
    ninth = 2.0 / (9.0 * free)
    return (math.cbrt(ratio) - 1.0 + ninth) / math.sqrt(ninth)


def allan_row(name: str, declared: float, measured: float, free: float) -> Estimate:
    """Return an Allan deviation of so many degrees of freedom, its deviation taken in the third root of the square."""
    off = variance_z_score((measured / declared) ** 2, free)
    return Estimate(name, declared, measured, declared / math.sqrt(2.0 * free), off=off)


def bias_instability(trial: Trial) -> Iterator[Estimate]:
    """Yield the flat part of the Allan deviation over 0.664, at a hundred samples and a second at least.

    Points of a flicker have white noise above its floor, what is faster than the samples; over a hundred it is
    averaged.
    """
    declared = trial.noise.bias_instability
    factor = max(100, math.ceil(trial.rate))
    measured, free = deviation_over(trial, factor, theory.flicker_terms(declared))
    measured /= math.sqrt(2.0 * math.log(2.0) / math.pi)
    allowed = FLICKER_FLATNESS * declared
    yield Estimate("bias_instability", declared, measured, declared / math.sqrt(2.0 * free), allowed)


def random_walk(trial: Trial) -> Iterator[Estimate]:
    """Yield the deviation of the steps."""
    steps = np.diff(trial.error, axis=-1) * math.sqrt(trial.rate)
    yield spread(trial, "random_walk", trial.noise.random_walk, steps)


def scale_factor(trial: Trial) -> Iterator[Estimate]:
    """Yield mean and deviation of the scale factor, from an ideal value of 1."""
    yield from drawn_once(trial, "scale_factor", "scale_factor_stddev", trial.error[:, 0] / trial.ideal[0])


def _line(trial: Trial) -> tuple[float, float]:
    """Return slope of the error with the temperature (a kelvin), and the temperature (K) at which there is none."""
    low, high = trial.temperature[0], trial.temperature[-1]
    slope = float((trial.error[0, -1] - trial.error[0, 0]) / (high - low))
    return slope, float(low - trial.error[0, 0] / slope)


def temperature_coefficient(trial: Trial) -> Iterator[Estimate]:
    """Yield the temperature coefficient, and the temperature at which it adds nothing."""
    declared, (slope, zero) = trial.noise.temperature_coefficient, _line(trial)
    yield certain(trial, "temperature_coefficient", declared, slope)
    warm = trial.noise.reference_temperature
    yield certain(trial, "reference_temperature", warm, zero, 10.0 * warm / abs(declared * warm))


def scale_heat(trial: Trial) -> Iterator[Estimate]:
    """Yield the temperature coefficient of the scale factor, from an ideal value of 1."""
    yield certain(trial, "scale_temperature_coefficient", trial.noise.scale_temperature_coefficient, _line(trial)[0])


def outliers(trial: Trial) -> Iterator[Estimate]:
    """Yield the share of samples that are off, and their deviation."""
    if not trial.noise.has_outliers:
        return
    struck, share = trial.error[np.abs(trial.error) > trial.rounding], trial.noise.outlier_probability
    error = math.sqrt(share * (1.0 - share) / trial.error.size)
    yield Estimate("outlier_probability", share, struck.size / trial.error.size, error + trial.rounding)
    yield spread(trial, "outlier_stddev", trial.noise.outlier_stddev, struck)


def limits(trial: Trial) -> Iterator[Estimate]:
    """Yield the least and the largest reading, of ideal values far beyond both."""
    values = trial.ideal + trial.error[0]
    for name, measured in (("minimum", values.min()), ("maximum", values.max())):
        if math.isfinite(getattr(trial.noise, name)):
            yield certain(trial, name, getattr(trial.noise, name), float(measured))


def precision(trial: Trial) -> Iterator[Estimate]:
    """Yield the least step between readings, of ideal values less than a step apart."""
    steps = np.diff(np.sort(trial.ideal + trial.error[0]))
    declared = trial.noise.precision
    yield certain(trial, "precision", declared, float(steps[steps > 0.5 * declared].min()))


def together_terms(noise: Noise, rate: float) -> tuple[theory.NoiseTerm, ...]:
    """Return what moves of a channel: white noise with that of rounding, drift, flicker and random walk."""
    terms: list[theory.NoiseTerm] = [
        theory.White(math.sqrt(noise.white_density(rate) ** 2 + noise.precision**2 / 12.0 / rate))
    ]
    if noise.has_dynamic_bias:
        sigma, tau = noise.dynamic_bias_stddev, noise.dynamic_bias_correlation_time
        terms.append(theory.GaussMarkov(sigma, tau, sampled=True))
    if noise.bias_instability > 0.0:
        terms += theory.flicker_terms(noise.bias_instability)
    if noise.random_walk > 0.0:
        terms.append(theory.RandomWalk(noise.random_walk, sampled=True))
    return tuple(terms)


def together(trial: Trial) -> Iterator[Estimate]:
    """Yield the Allan deviation at spans a factor of ten apart, of all that moves.

    Rounding is white noise of a twelfth of the step squared where the white noise is as large as the step; where it is
    smaller nothing is said.
    """
    noise, rate = trial.noise, trial.rate
    if noise.white_stddev(rate) < noise.precision:
        return
    terms, factor = together_terms(noise, rate), 1
    while factor * FEWEST <= trial.error.size:
        declared = math.sqrt(float(theory.allan_variance(terms, factor, rate)))
        measured, free = deviation_over(trial, factor, terms)
        yield allan_row(f"Allan deviation over {factor / rate:g} s", declared, measured, free)
        factor *= SPANS


def ones(_noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return the ideal value 1."""
    return np.ones(count)


def beyond(noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return ideal values beyond the limits that there are, ten times as far, and 0 where there is none."""
    far = 10.0 * max(abs(limit) for limit in (noise.minimum, noise.maximum, 1.0) if math.isfinite(limit))
    low, high = (far if math.isfinite(limit) else 0.0 for limit in (noise.minimum, noise.maximum))
    return np.where(np.arange(count) % 2 == 0, -low, high)


def staircase(noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return ideal values from 0 on that are a third of the precision apart."""
    return np.asarray(np.arange(count) * (noise.precision / 3.0))


_TIME = "dynamic_bias_correlation_time"
_WHITE = ("stddev", "noise_density")
_SLOW = ("dynamic_bias_stddev", "bias_instability", "random_walk")
_WARM = ("reference_temperature",)

TERMS = (
    Term("mean", ("mean",), mean, 100_000, beside=_WHITE),
    Term("stddev", ("stddev",), stddev, 1_000_000),
    Term("noise_density", ("noise_density",), noise_density, 1_000_000),
    Term("turn_on", ("bias_mean", "bias_stddev"), turn_on, 1, 1000),
    Term("drift", ("dynamic_bias_stddev",), drift, 2_000_000, beside=(_TIME,)),
    Term("start", ("dynamic_bias_stddev",), stationary, 1, 1000, beside=(_TIME,)),
    Term("flicker", ("bias_instability",), bias_instability, 2_000_000),
    Term("random_walk", ("random_walk",), random_walk, 1_000_000),
    Term("scale_factor", ("scale_factor", "scale_factor_stddev"), scale_factor, 1, 1000, stimulus=ones),
    Term("temperature", ("temperature_coefficient",), temperature_coefficient, 100, beside=_WARM),
    Term("scale_heat", ("scale_temperature_coefficient",), scale_heat, 100, beside=_WARM, stimulus=ones),
    Term("outliers", ("outlier_stddev",), outliers, 1_000_000, beside=("outlier_probability",)),
    Term("limits", ("minimum", "maximum"), limits, 100, stimulus=beyond),
    Term("precision", ("precision",), precision, 300, stimulus=staircase),
    Term("together", _WHITE + _SLOW, together, 1_000_000, beside=(_TIME, "precision")),
)
"""How each field of `Noise` is measured, and all together."""

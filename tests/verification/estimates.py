"""Estimates of the noise parameters of a channel, each from readings in which it is (nearly) the only error.

Each entry of `TERMS` lists the fields of `Noise` that it estimates, the fields that must be active with them, and the
number of samples and runs. Its function turns a `Trial` into estimates. A stimulus replaces the ideal values of a
stationary sensor. `declared` isolates the fields, runs the simulation and collects the rows.

The standard error of an estimate follows from the declared values and the number n of samples or runs:

    mean                        s / sqrt(n)
    deviation s                 s / sqrt(2 n)
    share p                     sqrt(p (1 - p) / n)
    inverse correlation time    1 / T sqrt(2 T / (n dt))
    Allan deviation             s / sqrt(2 dof)

A parameter without randomness (a mean alone, a limit, a rounding step) has the rounding of doubles as its error.

A new field of `Noise` needs an entry here. A parameter of a spec that is not in `Noise` needs an entry without fields
and with `make_specs`, which returns specs with this error alone, or none if it is inactive. A parameter of several
axes, or one that acts in motion only, needs a `MotionTerm`. Those of IMU and magnetometer are in `imu_mag`.
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

ROUNDING = 16.0 * float(np.finfo(np.float64).eps)
"""Relative rounding error of a value, of the largest number that it is computed from."""

FLICKER_FLATNESS = 0.02
"""Declared flatness of the flicker floor, as a share of it: `noise.terms`."""

SPAN_RATIO = 10
"""Ratio of consecutive spans at which the Allan deviation of all terms is compared."""

MINIMUM_SPANS = 500
"""Minimum number of spans in a record of all terms. With fewer, the Allan variance is not close to normal."""


MINIMUM_CORRELATION_TIMES = 100.0
"""Minimum length of a record in correlation times. With less, the inverse of the estimate is not close to normal."""


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
"""Units of the fields of `Noise` that differ from the unit of the channel, {}."""


@dataclass(frozen=True)
class Estimate:
    """One parameter: declared value, estimate, standard error, and the error that the declaration allows.

    `z_score` replaces the deviation in standard errors if another quantity is closer to normal. `unit` is the unit of
    the parameter if it is neither that of the channel nor in `UNITS`.
    """

    parameter: str
    declared: float
    measured: float
    error: float
    allowance: float = 0.0
    z_score: float | None = None
    unit: str | None = None

    def unit_in(self, channel: str) -> str:
        """The unit of the parameter for a channel with this unit."""
        return UNITS.get(self.parameter, "{}").format(channel) if self.unit is None else self.unit

    @property
    def deviation(self) -> float:
        """Standard errors by which the estimate exceeds the declared value."""
        if self.z_score is not None:
            return self.z_score
        rest = self.measured - self.declared
        return math.copysign(max(0.0, abs(rest) - self.allowance), rest) / self.error


@dataclass(frozen=True, eq=False)
class Trial:
    """The data from which a term estimates the parameters of one channel.

    spec: the simulated sensor. output, axis: the array and its axis. noise: all noise parameters of the channel.
    rate: Hz. time (n,): s. error (runs, n): reading minus ideal value. ideal (n,): the stimulus, 0 if there is none.
    temperature (n,): K. rounding: error of one value from the rounding of doubles.
    """

    spec: Sensor
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
"""Noise, axis, number of samples -> ideal values (n,)."""


@dataclass(frozen=True)
class Term:
    """The fields of `Noise` that one entry estimates, the fields that must be active with them, and the function.

    Each of `runs` runs has `count` samples. `stimulus` replaces the ideal values of a channel. `make_specs` returns the
    specs with this error alone; by default, the fields are isolated.
    """

    name: str
    fields: tuple[str, ...]
    measure: Measure
    count: int
    runs: int = 1
    context_fields: tuple[str, ...] = ()
    stimulus: Stimulus | None = None
    make_specs: Callable[[Sensor], Sequence[Sensor]] | None = None

    def acts(self, noise: Noise) -> bool:
        """True if a field of the term is not neutral in this noise, or if the term has no fields."""
        return not self.fields or any(getattr(noise, name) != getattr(NO_NOISE, name) for name in self.fields)


@dataclass(frozen=True, eq=False)
class MotionTrial:
    """The readings of a sensor in motion, at `rate` (Hz) and `time` (n,) s.

    `truth` is the motion. `ideal` and `arrays` are the ideal values and the readings by name.
    """

    spec: Sensor
    rate: float
    time: Times
    environment: Environment
    truth: MotionBlock
    ideal: Mapping[str, AnyArray]
    arrays: Mapping[str, AnyArray]


@dataclass(frozen=True)
class MotionTerm:
    """One entry that uses all channels of a sensor in motion, with `count` samples.

    `make_specs` returns the specs with this error alone. `measure` yields (channel, estimate).
    """

    name: str
    measure: Callable[[MotionTrial], Iterator[tuple[str, Estimate]]]
    count: int
    make_specs: Callable[[Sensor], Sequence[Sensor]]
    motion: Callable[[], Motion]


def make_exact_estimate(trial: Trial, parameter: str, declared: float, measured: float, share: float = 1.0) -> Estimate:
    """Return an estimate without randomness. Its error is `share` times the rounding of a value."""
    return Estimate(parameter, declared, measured, share * trial.rounding)


def make_stddev_estimate(
    trial: Trial, parameter: str, declared: float, samples: FloatArray, centre: float = 0.0
) -> Estimate:
    """Return the deviation of samples about a known centre."""
    measured = math.sqrt(float(np.mean((samples - centre) ** 2)))
    return Estimate(parameter, declared, measured, declared / math.sqrt(2.0 * samples.size) + trial.rounding)


def estimate_mean_and_stddev(trial: Trial, mean: str, stddev: str, samples: FloatArray) -> Iterator[Estimate]:
    """Yield the mean and the deviation of a value that is drawn once per run (runs,)."""
    centre, deviation = getattr(trial.noise, mean), getattr(trial.noise, stddev)
    error = deviation / math.sqrt(samples.size) + trial.rounding
    yield Estimate(mean, centre, float(np.mean(samples)), error)
    if deviation > 0.0:
        yield make_stddev_estimate(trial, stddev, deviation, samples, centre)


def estimate_mean(trial: Trial) -> Iterator[Estimate]:
    """Yield the mean, under the white noise of the channel."""
    error = trial.noise.white_stddev(trial.rate) / math.sqrt(trial.error.size) + trial.rounding
    yield Estimate("mean", trial.noise.mean, float(np.mean(trial.error)), error)


def estimate_stddev(trial: Trial) -> Iterator[Estimate]:
    """Yield the deviation of the samples."""
    yield make_stddev_estimate(trial, "stddev", trial.noise.stddev, trial.error)


def estimate_noise_density(trial: Trial) -> Iterator[Estimate]:
    """Yield the level of the spectrum: the mean over all frequencies, from segments without overlap."""
    spectrum = densities.welch(trial.error[0], trial.rate, 256, window="boxcar", overlap=0.0)
    declared, values = trial.noise.noise_density, spectrum.density.size * (trial.error.shape[1] // 256)
    measured = math.sqrt(0.5 * float(np.mean(spectrum.density)))
    yield Estimate("noise_density", declared, measured, 0.5 * declared / math.sqrt(values))


def estimate_turn_on_bias(trial: Trial) -> Iterator[Estimate]:
    """Yield the mean and the deviation of the turn-on bias."""
    yield from estimate_mean_and_stddev(trial, "bias_mean", "bias_stddev", trial.error[:, 0])


def estimate_drift(trial: Trial) -> Iterator[Estimate]:
    """Yield the density and the correlation time of the drift, from its steps.

    With b_k = phi b_(k-1) + step, the least-squares estimate of phi has the error sqrt((1 - phi^2) / n) and a bias of
    -2 / n. The correlation time is omitted if the record is shorter than `MINIMUM_CORRELATION_TIMES`.
    """
    sigma, tau = trial.noise.dynamic_bias_stddev, trial.noise.dynamic_bias_correlation_time
    before, after, dt = trial.error[:, :-1], trial.error[:, 1:], 1.0 / trial.rate
    steps = after - math.exp(-dt / tau) * before
    unit = math.sqrt(-0.5 * tau * math.expm1(-2.0 * dt / tau))
    measured = math.sqrt(float(np.mean(steps**2))) / unit
    yield Estimate("dynamic_bias_stddev", sigma, measured, sigma / math.sqrt(2.0 * steps.size))
    if steps.size * dt < MINIMUM_CORRELATION_TIMES * tau:
        return
    decay = float(np.sum(before * (before - after)) / np.sum(before**2))
    inverse = -math.log1p(-decay) / dt - 2.0 / (steps.size * dt)
    error = math.sqrt(2.0 / (tau * steps.size * dt))
    z_score = (1.0 / tau - inverse) / error
    yield Estimate("dynamic_bias_correlation_time", tau, 1.0 / inverse, tau**2 * error, z_score=z_score)


def estimate_initial_drift(trial: Trial) -> Iterator[Estimate]:
    """Yield the deviation of the drift at the start, over runs: sigma sqrt(tau / 2)."""
    noise = trial.noise
    declared = noise.dynamic_bias_stddev * math.sqrt(0.5 * noise.dynamic_bias_correlation_time)
    yield make_stddev_estimate(trial, "dynamic bias at the start", declared, trial.error[:, 0])


def compute_allan_deviation(trial: Trial, factor: int, terms: tuple[theory.NoiseTerm, ...]) -> tuple[float, float]:
    """Return the Allan deviation (averaged over runs) at a span of `factor` samples, and its degrees of freedom."""
    runs, count = trial.error.shape
    curves = [allan.oadev(row, trial.rate, [factor], exponent=0) for row in trial.error]
    variance = float(np.mean([curve.variance[0] for curve in curves]))
    covariance = partial(theory.phase_covariance, terms, rate=trial.rate)
    covariance_of_estimates = allan_dof.estimate_covariance(covariance, factor, factor, count + 1)
    square = 2.0 * (factor / trial.rate) ** 2 * float(theory.allan_variance(terms, factor, trial.rate))
    return math.sqrt(variance), runs * 2.0 * square**2 / covariance_of_estimates


def compute_variance_z_score(ratio: float, dof: float) -> float:
    """Return the deviation of a variance from its mean in standard errors.

    `ratio` is variance / mean, `dof` the degrees of freedom. The cube root is close to normal (Wilson and Hilferty
    1931).
    """
    ninth = 2.0 / (9.0 * dof)
    return (math.cbrt(ratio) - 1.0 + ninth) / math.sqrt(ninth)


def make_allan_estimate(name: str, declared: float, measured: float, dof: float) -> Estimate:
    """Return an estimate of an Allan deviation. Its z-score is that of the variance."""
    z_score = compute_variance_z_score((measured / declared) ** 2, dof)
    return Estimate(name, declared, measured, declared / math.sqrt(2.0 * dof), z_score=z_score)


def estimate_bias_instability(trial: Trial) -> Iterator[Estimate]:
    """Yield the floor of the Allan deviation divided by 0.664, at a span of at least 100 samples and 1 s.

    Samples of flicker noise contain white noise above the floor. Averaging over 100 samples removes it.
    """
    declared = trial.noise.bias_instability
    factor = max(100, math.ceil(trial.rate))
    measured, dof = compute_allan_deviation(trial, factor, theory.flicker_terms(declared))
    measured /= math.sqrt(2.0 * math.log(2.0) / math.pi)
    allowed = FLICKER_FLATNESS * declared
    yield Estimate("bias_instability", declared, measured, declared / math.sqrt(2.0 * dof), allowed)


def estimate_random_walk(trial: Trial) -> Iterator[Estimate]:
    """Yield the deviation of the steps."""
    steps = np.diff(trial.error, axis=-1) * math.sqrt(trial.rate)
    yield make_stddev_estimate(trial, "random_walk", trial.noise.random_walk, steps)


def estimate_scale_factor(trial: Trial) -> Iterator[Estimate]:
    """Yield the mean and the deviation of the scale factor, from an ideal value of 1."""
    yield from estimate_mean_and_stddev(
        trial, "scale_factor", "scale_factor_stddev", trial.error[:, 0] / trial.ideal[0]
    )


def _fit_temperature_line(trial: Trial) -> tuple[float, float]:
    """Return the slope of the error with temperature (1/K), and the temperature (K) at which the error is 0."""
    low, high = trial.temperature[0], trial.temperature[-1]
    slope = float((trial.error[0, -1] - trial.error[0, 0]) / (high - low))
    return slope, float(low - trial.error[0, 0] / slope)


def estimate_temperature_coefficient(trial: Trial) -> Iterator[Estimate]:
    """Yield the temperature coefficient and the reference temperature."""
    declared, (slope, zero) = trial.noise.temperature_coefficient, _fit_temperature_line(trial)
    yield make_exact_estimate(trial, "temperature_coefficient", declared, slope)
    reference = trial.noise.reference_temperature
    yield make_exact_estimate(
        trial, "reference_temperature", reference, zero, 10.0 * reference / abs(declared * reference)
    )


def estimate_scale_temperature_coefficient(trial: Trial) -> Iterator[Estimate]:
    """Yield the temperature coefficient of the scale factor, from an ideal value of 1."""
    yield make_exact_estimate(
        trial,
        "scale_temperature_coefficient",
        trial.noise.scale_temperature_coefficient,
        _fit_temperature_line(trial)[0],
    )


def estimate_outliers(trial: Trial) -> Iterator[Estimate]:
    """Yield the share of outliers and their deviation."""
    if not trial.noise.has_outliers:
        return
    outliers, share = trial.error[np.abs(trial.error) > trial.rounding], trial.noise.outlier_probability
    error = math.sqrt(share * (1.0 - share) / trial.error.size)
    yield Estimate("outlier_probability", share, outliers.size / trial.error.size, error + trial.rounding)
    yield make_stddev_estimate(trial, "outlier_stddev", trial.noise.outlier_stddev, outliers)


def estimate_limits(trial: Trial) -> Iterator[Estimate]:
    """Yield the smallest and the largest reading, from ideal values far beyond both limits."""
    values = trial.ideal + trial.error[0]
    for name, measured in (("minimum", values.min()), ("maximum", values.max())):
        if math.isfinite(getattr(trial.noise, name)):
            yield make_exact_estimate(trial, name, getattr(trial.noise, name), float(measured))


def estimate_precision(trial: Trial) -> Iterator[Estimate]:
    """Yield the smallest step between readings, from ideal values less than a step apart."""
    steps = np.diff(np.sort(trial.ideal + trial.error[0]))
    declared = trial.noise.precision
    yield make_exact_estimate(trial, "precision", declared, float(steps[steps > 0.5 * declared].min()))


def list_noise_terms(noise: Noise, rate: float) -> tuple[theory.NoiseTerm, ...]:
    """Return the random terms of a channel: white noise with quantisation noise, drift, flicker and random walk."""
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


def estimate_allan_deviations(trial: Trial) -> Iterator[Estimate]:
    """Yield the Allan deviation of all random terms, at spans with a ratio of ten.

    Quantisation is white noise with a variance of a twelfth of the step squared if the white noise is at least as large
    as the step. If it is smaller, nothing is yielded.
    """
    noise, rate = trial.noise, trial.rate
    if noise.white_stddev(rate) < noise.precision:
        return
    terms, factor = list_noise_terms(noise, rate), 1
    while factor * MINIMUM_SPANS <= trial.error.size:
        declared = math.sqrt(float(theory.allan_variance(terms, factor, rate)))
        measured, dof = compute_allan_deviation(trial, factor, terms)
        yield make_allan_estimate(f"Allan deviation over {factor / rate:g} s", declared, measured, dof)
        factor *= SPAN_RATIO


def make_ones(_noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return the ideal value 1."""
    return np.ones(count)


def make_saturating_values(noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return ideal values ten times beyond the finite limits, 0 for a limit that is infinite."""
    beyond = 10.0 * max(abs(limit) for limit in (noise.minimum, noise.maximum, 1.0) if math.isfinite(limit))
    low, high = (beyond if math.isfinite(limit) else 0.0 for limit in (noise.minimum, noise.maximum))
    return np.where(np.arange(count) % 2 == 0, -low, high)


def make_staircase(noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return ideal values from 0 upwards in steps of a third of the precision."""
    return np.asarray(np.arange(count) * (noise.precision / 3.0))


_TIME = "dynamic_bias_correlation_time"
_WHITE = ("stddev", "noise_density")
_SLOW = ("dynamic_bias_stddev", "bias_instability", "random_walk")
_WARM = ("reference_temperature",)

TERMS = (
    Term("mean", ("mean",), estimate_mean, 100_000, context_fields=_WHITE),
    Term("stddev", ("stddev",), estimate_stddev, 1_000_000),
    Term("noise_density", ("noise_density",), estimate_noise_density, 1_000_000),
    Term("turn_on", ("bias_mean", "bias_stddev"), estimate_turn_on_bias, 1, 1000),
    Term("drift", ("dynamic_bias_stddev",), estimate_drift, 2_000_000, context_fields=(_TIME,)),
    Term("start", ("dynamic_bias_stddev",), estimate_initial_drift, 1, 1000, context_fields=(_TIME,)),
    Term("flicker", ("bias_instability",), estimate_bias_instability, 2_000_000),
    Term("random_walk", ("random_walk",), estimate_random_walk, 1_000_000),
    Term("scale_factor", ("scale_factor", "scale_factor_stddev"), estimate_scale_factor, 1, 1000, stimulus=make_ones),
    Term("temperature", ("temperature_coefficient",), estimate_temperature_coefficient, 100, context_fields=_WARM),
    Term(
        "scale_heat",
        ("scale_temperature_coefficient",),
        estimate_scale_temperature_coefficient,
        100,
        context_fields=_WARM,
        stimulus=make_ones,
    ),
    Term("outliers", ("outlier_stddev",), estimate_outliers, 1_000_000, context_fields=("outlier_probability",)),
    Term("limits", ("minimum", "maximum"), estimate_limits, 100, stimulus=make_saturating_values),
    Term("precision", ("precision",), estimate_precision, 300, stimulus=make_staircase),
    Term("together", _WHITE + _SLOW, estimate_allan_deviations, 1_000_000, context_fields=(_TIME, "precision")),
)
"""The estimators of each field of `Noise` and of all of them together."""

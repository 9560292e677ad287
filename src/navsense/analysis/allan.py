"""Allan deviation and related statistics of a record, with confidence intervals.

    from navsense.analysis import allan
    curve = allan.oadev(values, rate)                    # overlapping Allan deviation
    curve.tau, curve.deviation                           # (k,) s, and (k,) or (k, axis) in the unit of the values
    low, high = curve.interval(0.95)                     # confidence interval, same shape

n values y at `rate` (Hz) have the phase x_0 = 0, x_i = sum_(j<i) y_j / rate. The averaging time is tau = m / rate with
the averaging factor m, a number of samples. With the differences D2_i = x_(i+2m) - 2 x_(i+m) + x_i and
D3_i = x_(i+3m) - 3 x_(i+2m) + 3 x_(i+m) - x_i the variances are::

    adev      Allan                   <D2_i^2> / (2 tau^2),  i = 0, m, 2m, ...
    oadev     overlapping Allan       the same for every i
    mdev      modified Allan          <(1/m sum_(j<m) D2_(i+j))^2> / (2 tau^2) for every i
    tdev      time deviation          tau^2 / 3 times the modified variance, in the unit of the phase
    hdev      Hadamard                <D3_i^2> / (6 tau^2),  i = 0, m, 2m, ...
    ohdev     overlapping Hadamard    the same for every i
    totdev    total                   as oadev for every i + m in the record; the phase is extended at both ends by its
                                      reflection in the end point, x_(-j) = 2 x_0 - x_j

The deviations are their square roots. The modified deviation separates white from flicker phase. A ramp cancels in the
Hadamard deviation. The total deviation has averaging times up to the full record. There its variance is low: in flicker
by 0.481 of the averaging time over the record, in random walk by 0.750.

Degrees of freedom are those of Greenhall and Riley for the power law at each averaging time (`allan_dof`). The exponent
is an argument, or is identified by the lag-1 autocorrelation of the m-averages (Riley and Greenhall 2004). All values
must be finite: a gap would change the statistic. Source: NIST SP 1065 (Riley and Howe 2008), section 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from navsense.analysis import allan_dof
from navsense.core.errors import AnalysisError
from navsense.core.kernels import kernel
from navsense.core.ticks import check_rate
from navsense.core.typing import AnyArray, FloatArray, IntArray

FACTORS_PER_DECADE = 10
"""Default number of averaging factors per decade."""

ONE_SIGMA = math.erf(math.sqrt(0.5))
"""Probability that a normal variate is within one deviation: 0.6827."""

WHITE_PHASE = 2
"""The largest exponent of a power law."""

MIN_AVERAGES = 30
"""Averages that the identification of a power law needs."""

MAX_AVERAGES = 1 << 16
"""Largest number of averages used to identify a power law."""

LANES = 1024
"""Number of partial sums in a kernel, so that the compiler can use vector instructions."""


@dataclass(frozen=True)
class AllanStatistic:
    """A statistic of the table above, as a function of a record: the order of its differences, and its variant.

    >>> curve = ns.analysis.allan.mdev(run["imu"]["angular_velocity"], rate=1000.0)
    >>> curve.statistic.name, curve.deviation.shape == (curve.tau.size, 3)
    ('mdev', True)
    """

    name: str
    order: int = 2
    is_overlapping: bool = True
    is_modified: bool = False
    is_time: bool = False
    is_reflected: bool = False

    def __call__(
        self,
        values: ArrayLike,
        rate: float,
        factors: Sequence[int] | IntArray | None = None,
        *,
        phase: bool = False,
        exponent: int | None = None,
    ) -> AllanCurve:
        """Return the deviation of a record.

        values: (n,) or (*runs, n, axis); with `phase` they are the phase itself (an angle, a clock's error)
        rate: Hz
        factors: (k,) averaging factors in samples; by default ten per decade, up to half of the largest factor
        exponent: the power law for the degrees of freedom: 2 white phase, 1 flicker phase, 0 white, -1 flicker, -2
            random walk, and for Hadamard deviations down to -4; by default it is identified from the data

        Raises `AnalysisError`.
        """
        array = _check_values(values, rate)
        if exponent is not None and not 2 - 2 * self.order <= exponent <= WHITE_PHASE:
            allowed = f"must be from {2 - 2 * self.order} to {WHITE_PHASE}, or None"
            raise AnalysisError("exponent", exponent, allowed=allowed)
        time_axis = max(array.ndim - 2, 0)
        series = np.moveaxis(array, time_axis, -1)
        phase_count = series.shape[-1] + (not phase)
        factor = self._check_factors(phase_count, factors)
        # Variance over the mean square of the differences.
        tau = factor / rate
        scale = np.full_like(tau, 1.0 / 6.0) if self.is_time else 1.0 / (math.factorial(self.order) * tau**2)
        shape = (*series.shape[:-1], factor.size)
        variance, exponents, dof = np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(shape)
        for index in np.ndindex(shape[:-1]):
            x = _make_phase(np.ascontiguousarray(series[index]), rate, phase)
            variance[index] = [self._compute_mean_square(x, int(m)) for m in factor] * scale
            exponents[index] = _identify_exponents(x, factor, self.order) if exponent is None else exponent
            dof[index] = self._compute_degrees_of_freedom(exponents[index], factor, phase_count)
        counts = np.array([self.count_differences(phase_count, int(m)) for m in factor])
        deviation, exponents, dof = (np.moveaxis(a, -1, time_axis) for a in (np.sqrt(variance), exponents, dof))
        return AllanCurve(self, float(rate), phase_count, factor, counts, deviation, exponents, dof)

    @property
    def extent(self) -> int:
        """Averaging times from the first to the last phase value of a difference."""
        return 1 if self.is_reflected else self.order + self.is_modified

    def max_factor(self, phase_count: int) -> int:
        """Return the largest averaging factor of a record of phase values; 0 for a record that is too short."""
        return (phase_count - 1 + self.is_modified) // self.extent if phase_count > self.order else 0

    def count_differences(self, phase_count: int, factor: int) -> int:
        """Return the number of differences in a record of phase values."""
        if self.is_reflected:
            return phase_count - 2
        last = phase_count - 1 - self.extent * factor + self.is_modified
        return last // (1 if self.is_overlapping else factor) + 1

    def _check_factors(self, phase_count: int, factors: Sequence[int] | IntArray | None) -> IntArray:
        """Return the requested factors, or the default ones. Raises `AnalysisError`."""
        largest = self.max_factor(phase_count)
        if largest < 1:
            raise AnalysisError("values", f"{phase_count} phase values", allowed=f"must be at least {self.order + 1}")
        if factors is None:
            return log_spaced_factors(max(1, largest // 2))
        requested = np.asarray(factors)
        if requested.ndim != 1 or not requested.size or requested.dtype.kind not in "iu":
            raise AnalysisError("factors", factors, allowed="must be integers (k,), in samples")
        wrong = (requested < 1) | (requested > largest)
        if wrong.any():
            allowed = f"must be from 1 to {largest} for this record"
            remedy = "use smaller factors or more values"
            raise AnalysisError("factor", int(requested[wrong][0]), allowed=allowed, remedy=remedy)
        return requested.astype(np.int64)

    def _compute_mean_square(self, phase: FloatArray, factor: int) -> float:
        """Return the mean square of the differences."""
        if self.is_reflected:
            before = 2.0 * phase[0] - phase[factor - 1 : 0 : -1]
            after = 2.0 * phase[-1] - phase[-2 : -factor - 1 : -1]
            phase = np.concatenate((before, phase, after))
        if not self.is_overlapping:
            phase, factor = np.ascontiguousarray(phase[::factor]), 1
        if self.is_modified:
            return _sum_modified_differences(phase, factor) / (phase.size - 3 * factor + 1) / factor**2
        total = _sum_second_differences(phase, factor) if self.order == 2 else _sum_third_differences(phase, factor)
        return total / (phase.size - self.order * factor)

    def _compute_degrees_of_freedom(self, exponents: IntArray, factors: IntArray, phase_count: int) -> FloatArray:
        pairs = zip(exponents.tolist(), factors.tolist(), strict=True)
        if self.is_reflected:
            return np.array([allan_dof.compute_total_dof(exponent, factor, phase_count) for exponent, factor in pairs])
        options: Any = {"order": self.order, "is_modified": self.is_modified}
        return np.array(
            [
                allan_dof.compute_power_law_dof(
                    e, factor, phase_count, stride=1 if self.is_overlapping else factor, **options
                )
                for e, factor in pairs
            ]
        )


adev = AllanStatistic("adev", is_overlapping=False)
"""`adev(values, rate)` returns the Allan deviation of a record, an `AllanCurve`."""

oadev = AllanStatistic("oadev")
"""`oadev(values, rate)` returns the overlapping Allan deviation of a record, an `AllanCurve`."""

mdev = AllanStatistic("mdev", is_modified=True)
"""`mdev(values, rate)` returns the modified Allan deviation of a record, an `AllanCurve`."""

tdev = AllanStatistic("tdev", is_modified=True, is_time=True)
"""`tdev(values, rate)` returns the time deviation of a record, an `AllanCurve`."""

hdev = AllanStatistic("hdev", order=3, is_overlapping=False)
"""`hdev(values, rate)` returns the Hadamard deviation of a record, an `AllanCurve`."""

ohdev = AllanStatistic("ohdev", order=3)
"""`ohdev(values, rate)` returns the overlapping Hadamard deviation of a record, an `AllanCurve`."""

totdev = AllanStatistic("totdev", is_reflected=True)
"""`totdev(values, rate)` returns the total deviation of a record, an `AllanCurve`."""


@dataclass(frozen=True, eq=False)
class AllanCurve:
    """Deviations over averaging times.

    statistic: for example `oadev`
    rate: Hz
    phase_count: number of phase values of the record
    factor: (k,) averaging factors in samples
    counts: (k,) number of differences in each mean
    deviation: (*runs, k, axis) in the unit of the values, or of the phase for the time deviation
    exponent: the power law, same shape
    dof: equivalent degrees of freedom, same shape

    >>> curve = ns.analysis.allan.oadev(run["imu"]["angular_velocity"], rate=1000.0)
    >>> curve.tau[:4]  # s
    array([0.001, 0.002, 0.003, 0.004])
    >>> low, high = curve.select(0).interval(0.95)  # of the x axis
    """

    statistic: AllanStatistic
    rate: float
    phase_count: int
    factor: IntArray
    counts: IntArray
    deviation: FloatArray
    exponent: IntArray
    dof: FloatArray

    @property
    def tau(self) -> FloatArray:
        """Averaging times (k,) s."""
        return self.factor / self.rate

    @property
    def variance(self) -> FloatArray:
        """Squares of the deviations."""
        return self.deviation**2

    def interval(self, confidence: float = ONE_SIGMA) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the two-sided interval that contains the true deviation with a probability.

        It follows from the chi-squared distribution of the estimate: NIST SP 1065, section 5.3.
        """
        if not 0.0 < confidence < 1.0:
            raise AnalysisError("confidence", confidence, allowed="must be above 0 and below 1")
        tail = 0.5 * (1.0 - confidence)
        low, high = (self.deviation * _compute_interval_factor(self.dof, p) for p in (tail, 1.0 - tail))
        return low, high

    def select(self, axis: int | None = None, *, run: tuple[int, ...] = ()) -> AllanCurve:
        """Return the curve (k,) of one axis and one run."""
        index: tuple[int | slice, ...] = (*run, slice(None)) if axis is None else (*run, slice(None), axis)
        arrays = (self.deviation[index], self.exponent[index], self.dof[index])
        if arrays[0].shape != self.factor.shape:
            allowed = f"must select one of an array {self.deviation.shape}"
            raise AnalysisError("axis and run of a curve", (*run, axis), allowed=allowed)
        return replace(self, deviation=arrays[0], exponent=arrays[1], dof=arrays[2])


def _compute_interval_factor(dof: FloatArray, tail: float) -> FloatArray:
    """Return sqrt(dof / x), where a chi-squared variate exceeds x with the probability `tail`."""
    from scipy.special import chdtri

    return np.asarray(np.sqrt(dof / chdtri(dof, tail)))


def log_spaced_factors(largest: int, per_decade: int = FACTORS_PER_DECADE) -> IntArray:
    """Return integer factors from 1 to `largest`, about `per_decade` per decade."""
    count = 1 + math.ceil(math.log10(max(largest, 1)) * per_decade)
    return np.unique(np.rint(np.geomspace(1.0, max(largest, 1), count)).astype(np.int64))


def _check_values(values: ArrayLike, rate: float) -> AnyArray:
    """Return the values as an array of floats. Raises `AnalysisError` for an invalid record."""
    check_rate(rate)
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or not array.ndim:
        description = f"of type {array.dtype}, shape {array.shape}"
        raise AnalysisError("values", description, allowed="must be (n,) real numbers")
    array = array.astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        index = tuple(int(i) for i in np.argwhere(~finite)[0])
        row = index[0] if array.ndim == 1 else index[-2]
        remedy = "cut the record at its gaps, or fill them"
        raise AnalysisError(f"value of row {row}", float(array[index]), allowed="must be finite", remedy=remedy)
    return array


def _make_phase(values: FloatArray, rate: float, phase: bool) -> FloatArray:
    """Return the phase (n + 1,) of values (n,), or the given phase, without its mean slope, which cancels."""
    if phase:
        ends = np.linspace(values[0], values[-1], values.size) if values.size > 1 else values
        return values - ends
    result = np.empty(values.size + 1)
    result[0] = 0.0
    np.cumsum(values - values.mean(), out=result[1:])
    result /= rate
    return result


@kernel
def _sum_second_differences(phase: FloatArray, factor: int) -> float:
    """Return the sum of the squares of all differences of order 2 with the averaging factor `factor`."""
    count = phase.shape[0] - 2 * factor
    lanes, first = np.zeros(LANES), 0
    while first < count:
        size = min(LANES, count - first)
        a, b = phase[first : first + size], phase[first + factor : first + factor + size]
        c = phase[first + 2 * factor : first + 2 * factor + size]
        for i in range(size):
            difference = (c[i] - b[i]) - (b[i] - a[i])
            lanes[i] += difference * difference
        first += size
    total = 0.0
    for i in range(LANES):
        total += lanes[i]
    return total


@kernel
def _sum_third_differences(phase: FloatArray, factor: int) -> float:
    """Return the sum of the squares of all differences of order 3 with the averaging factor `factor`."""
    count = phase.shape[0] - 3 * factor
    lanes, first = np.zeros(LANES), 0
    while first < count:
        size = min(LANES, count - first)
        a, b = phase[first : first + size], phase[first + factor : first + factor + size]
        c = phase[first + 2 * factor : first + 2 * factor + size]
        d = phase[first + 3 * factor : first + 3 * factor + size]
        for i in range(size):
            difference = (d[i] - a[i]) - 3.0 * (c[i] - b[i])
            lanes[i] += difference * difference
        first += size
    total = 0.0
    for i in range(LANES):
        total += lanes[i]
    return total


@kernel
def _sum_modified_differences(phase: FloatArray, factor: int) -> float:
    """Return the sum of the squares of all sums of `factor` neighbouring differences of order 2.

    Two neighbouring sums differ by a difference of order 3, which the loop adds.
    """
    m, count, running = factor, phase.shape[0] - 3 * factor + 1, 0.0
    for i in range(m):
        running += (phase[i + 2 * m] - phase[i + m]) - (phase[i + m] - phase[i])
    total = running * running
    for i in range(count - 1):
        running += (phase[i + 3 * m] - phase[i]) - 3.0 * (phase[i + 2 * m] - phase[i + m])
        total += running * running
    return total


def identify_exponent(phase: FloatArray, factor: int, order: int = 2) -> int | None:
    """Return the exponent of the power law of the averages over `factor` samples; None with too few averages.

    A linear trend is removed first. The lag-1 autocorrelation r of the averages gives delta = r / (1 + r) of a process
    with the spectrum |2 sin(pi f)|^(-2 delta), which is stationary for delta < 1/4. Until it is, the averages are
    differenced, d times and at most `order` times. The exponent is -2 delta - 2 d, rounded.
    """
    averages = np.diff(phase[::factor][: MAX_AVERAGES + 1])
    if averages.size < MIN_AVERAGES:
        return None
    time = np.arange(averages.size) - 0.5 * (averages.size - 1)
    series = averages - averages.mean()
    series -= time * (np.sum(time * series) / np.sum(time * time))
    for differences in range(order + 1):
        series = series - series.mean()
        power = float(np.sum(series * series))
        if power == 0.0:
            return None
        r = float(np.sum(series[:-1] * series[1:])) / power
        delta = r / (1.0 + r)
        if delta < 0.25 or differences == order:
            break
        series = np.diff(series)
    return max(2 - 2 * order, min(WHITE_PHASE, -round(2.0 * delta) - 2 * differences))


def _identify_exponents(phase: FloatArray, factors: IntArray, order: int) -> IntArray:
    """Return the exponent (k,) at each factor; where it cannot be identified, that of the next smaller factor."""
    exponents, last = np.zeros(factors.size, dtype=np.int64), 0
    for index in np.argsort(factors):
        exponent = identify_exponent(phase, int(factors[index]), order)
        exponents[index] = last = last if exponent is None else exponent
    return exponents

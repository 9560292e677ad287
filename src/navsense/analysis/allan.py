"""Allan deviation and its kin: how far the mean over a span lies from the mean over the next, span by span.

    from navsense.analysis import allan
    curve = allan.overlapping(values, rate)              # one call: what a data sheet's plot shows
    curve.tau, curve.deviation                           # (k,) s, and (k,) or (k, axis) in the unit of the values
    low, high = curve.interval(0.95)                     # confidence interval, same shape

For n values y at `rate` (Hz) the phase is x_0 = 0, x_i = sum_(j<i) y_j / rate, a span tau = m / rate has m samples, and
with the differences D2_i = x_(i+2m) - 2 x_(i+m) + x_i and D3_i = x_(i+3m) - 3 x_(i+2m) + 3 x_(i+m) - x_i::

    plain                   <D2_i^2> / (2 tau^2),  i = 0, m, 2m, ...
    overlapping             the same for every i
    modified                <(1/m sum_(j<m) D2_(i+j))^2> / (2 tau^2) for every i
    time_deviation          tau^2 / 3 times the modified variance, in the unit of the phase
    hadamard                <D3_i^2> / (6 tau^2),  i = 0, m, 2m, ...
    overlapping_hadamard    the same for every i
    total                   as overlapping, for every i + m within the record, the phase continued at both ends by its
                            reflection in the end point, x_(-j) = 2 x_0 - x_j

are the variances, their roots the deviations. The total deviation goes to spans of the whole record; in flicker and
random walk it comes out low there (by 0.481 and 0.750 of the span over the record, of the variance).

Degrees of freedom are those of Greenhall and Riley for the power law at each span (`allan_dof`), the exponent being
either given or told from the data by the lag-1 autocorrelation of the m-averages (Riley and Greenhall 2004). Records
have no gaps: a value that is not finite is refused, since a mean over a span with a hole is another quantity.
Source: NIST SP 1065 (Riley and Howe 2008), section 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from navsense.analysis import allan_dof
from navsense.errors import AnalysisError
from navsense.kernels import kernel
from navsense.ticks import check_rate
from navsense.typing import AnyArray, FloatArray, IntArray

PER_DECADE = 10
"""Spans a decade where none are given."""

ONE_SIGMA = math.erf(math.sqrt(0.5))
"""Probability of a normal deviate within one deviation: 0.6827."""

WHITE_PHASE = 2
"""The largest exponent of a power law."""

SHORTEST = 30
"""Averages from which a power law can be told."""

LONGEST = 1 << 16
"""Averages from which it is told at most."""

LANES = 1024
"""Differences taken side by side: so many sums grow at once, and are added at the end."""


@dataclass(frozen=True)
class Kind:
    """One statistic: order of its differences, whether they overlap; whether the phase is averaged, reflected."""

    name: str
    order: int = 2
    overlaps: bool = True
    modified: bool = False
    of_time: bool = False
    reflected: bool = False

    @property
    def length(self) -> int:
        """Return the spans of the record that one difference covers."""
        return 1 if self.reflected else self.order + self.modified

    def longest(self, phases: int) -> int:
        """Return the largest span (samples) that a record of `phases` phase values has; 0 for none."""
        return (phases - 1 + self.modified) // self.length if phases > self.order else 0

    def terms(self, phases: int, factor: int) -> int:
        """Return how many differences of span `factor` a record of `phases` phase values has."""
        if self.reflected:
            return phases - 2
        last = phases - 1 - self.length * factor + self.modified
        return last // (1 if self.overlaps else factor) + 1

    def scale(self, tau: FloatArray) -> FloatArray:
        """Return what turns the mean square of the differences into the variance, at the spans (k,) s."""
        if self.of_time:
            return np.full_like(tau, 1.0 / 6.0)
        return np.asarray(1.0 / (math.factorial(self.order) * tau**2))


PLAIN = Kind("plain", overlaps=False)
OVERLAPPING = Kind("overlapping")
MODIFIED = Kind("modified", modified=True)
TIME = Kind("time_deviation", modified=True, of_time=True)
HADAMARD = Kind("hadamard", order=3, overlaps=False)
OVERLAPPING_HADAMARD = Kind("overlapping_hadamard", order=3)
TOTAL = Kind("total", reflected=True)


@dataclass(frozen=True, eq=False)
class Curve:
    """Deviations over spans.

    `factor` (k,) samples in a span, `tau` (k,) s, `terms` (k,) differences averaged; `deviation` (*runs, k, axis) in
    the unit of the values (of the phase for the time deviation), the axes as the values had them; of the same shape
    `exponent`, the power law taken, and `freedom`, the equivalent degrees of freedom. `phases` is the number of phase
    values of the record.
    """

    kind: Kind
    rate: float
    phases: int
    factor: IntArray
    terms: IntArray
    deviation: FloatArray
    exponent: IntArray
    freedom: FloatArray

    @property
    def tau(self) -> FloatArray:
        """Return the spans (k,) s."""
        return self.factor / self.rate

    @property
    def variance(self) -> FloatArray:
        """Return the squares of the deviations."""
        return self.deviation**2

    def interval(self, confidence: float = ONE_SIGMA) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the two-sided interval that holds the true deviation with the probability `confidence`.

        From the chi-squared distribution of the estimate: NIST SP 1065, section 5.3.
        """
        if not 0.0 < confidence < 1.0:
            raise AnalysisError("confidence", confidence, allowed="must be above 0 and below 1")
        tail = 0.5 * (1.0 - confidence)
        return self.deviation * _stretch(self.freedom, tail), self.deviation * _stretch(self.freedom, 1.0 - tail)

    def one(self, axis: int | None = None, *, run: tuple[int, ...] = ()) -> Curve:
        """Return the curve (k,) of one axis and, where there are runs, of one of these."""
        place: tuple[int | slice, ...] = (*run, slice(None)) if axis is None else (*run, slice(None), axis)
        arrays = (self.deviation[place], self.exponent[place], self.freedom[place])
        if arrays[0].shape != self.factor.shape:
            allowed = f"must be one for an array {self.deviation.shape}"
            raise AnalysisError("place of a curve", (*run, axis), allowed=allowed)
        return replace(self, deviation=arrays[0], exponent=arrays[1], freedom=arrays[2])


def _stretch(free: FloatArray, tail: float) -> FloatArray:
    """Return sqrt(freedom / x), x being what a chi-squared variate exceeds with the probability `tail`."""
    from scipy.special import chdtri

    return np.asarray(np.sqrt(free / chdtri(free, tail)))


def spaced(largest: int, per_decade: int = PER_DECADE) -> IntArray:
    """Return whole factors from 1 to `largest`, `per_decade` a decade where there are so many."""
    count = 1 + math.ceil(math.log10(max(largest, 1)) * per_decade)
    return np.unique(np.rint(np.geomspace(1.0, max(largest, 1), count)).astype(np.int64))


def _checked(values: ArrayLike, rate: float) -> AnyArray:
    """Return the values as an array of floats; raise `AnalysisError` for what is no even record."""
    check_rate(rate)
    given = np.asarray(values)
    if given.dtype.kind not in "fiu" or not given.ndim:
        raise AnalysisError(
            "values", f"of type {given.dtype}, shape {given.shape}", allowed="must be (n,) real numbers"
        )
    given = given.astype(np.float64, copy=False)
    finite = np.isfinite(given)
    if not finite.all():
        place = tuple(int(index) for index in np.argwhere(~finite)[0])
        row = place[0] if given.ndim == 1 else place[-2]
        remedy = "cut the record at its gaps, or fill them"
        raise AnalysisError(f"value of row {row}", float(given[place]), allowed="must be finite", remedy=remedy)
    return given


def _factors(kind: Kind, phases: int, factors: Sequence[int] | IntArray | None) -> IntArray:
    """Return the factors asked for, or as many as half the record gives; raise `AnalysisError` for others."""
    longest = kind.longest(phases)
    if longest < 1:
        raise AnalysisError("values", f"{phases} of the phase", allowed=f"must be at least {kind.order + 1} of it")
    if factors is None:
        return spaced(max(1, longest // 2))
    given = np.asarray(factors)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        raise AnalysisError("factors", factors, allowed="must be whole numbers of samples, (k,)")
    wrong = (given < 1) | (given > longest)
    if wrong.any():
        allowed = f"must be from 1 to {longest} for this record"
        raise AnalysisError("factor", int(given[wrong][0]), allowed=allowed, remedy="take shorter spans or more values")
    return given.astype(np.int64)


def _phase_of(values: FloatArray, rate: float, phase: bool) -> FloatArray:
    """Return the phase (n + 1,) of values (n,), or the phase given, without its mean slope: no difference sees that."""
    if phase:
        ends = np.linspace(values[0], values[-1], values.size) if values.size > 1 else values
        return values - ends
    out = np.empty(values.size + 1)
    out[0] = 0.0
    np.cumsum(values - values.mean(), out=out[1:])
    out /= rate
    return out


@kernel
def _squares(phase: FloatArray, factor: int) -> float:
    """Return the sum of the squares of all differences of order 2 and span `factor`, in lanes side by side."""
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
def _cubes(phase: FloatArray, factor: int) -> float:
    """Return the sum of the squares of all differences of order 3 and span `factor`, in lanes side by side."""
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
def _sums(phase: FloatArray, factor: int) -> float:
    """Return the sum of the squares of all sums of `factor` neighbouring differences of order 2.

    From one sum to the next it is a difference of order 3: the sums are followed, not formed anew.
    """
    m, count, running = factor, phase.shape[0] - 3 * factor + 1, 0.0
    for i in range(m):
        running += (phase[i + 2 * m] - phase[i + m]) - (phase[i + m] - phase[i])
    total = running * running
    for i in range(count - 1):
        running += (phase[i + 3 * m] - phase[i]) - 3.0 * (phase[i + 2 * m] - phase[i + m])
        total += running * running
    return total


def _reflected(phase: FloatArray, factor: int) -> FloatArray:
    """Return the phase continued at both ends by factor - 1 values, each end's reflection in its end point."""
    before = 2.0 * phase[0] - phase[factor - 1 : 0 : -1]
    after = 2.0 * phase[-1] - phase[-2 : -factor - 1 : -1]
    return np.concatenate((before, phase, after))


def _mean_square(phase: FloatArray, factor: int, kind: Kind) -> float:
    """Return the mean square of the differences of span `factor` (samples)."""
    if kind.reflected:
        phase = _reflected(phase, factor)
    if not kind.overlaps:
        phase, factor = np.ascontiguousarray(phase[::factor]), 1
    if kind.modified:
        return _sums(phase, factor) / (phase.size - 3 * factor + 1) / factor**2
    total = _squares(phase, factor) if kind.order == 2 else _cubes(phase, factor)
    return total / (phase.size - kind.order * factor)


def identified(phase: FloatArray, factor: int, order: int = 2) -> int | None:
    """Return the exponent of the power law that the averages over `factor` samples have; None below 30 averages.

    With r the lag-1 autocorrelation of the averages, their line taken out, delta = r / (1 + r): a discrete process of
    spectrum |2 sin(pi f)|^(-2 delta), stationary where delta < 1/4. Until it is, differences are taken, d of them; the
    exponent is -2 delta - 2 d, rounded.
    """
    averages = np.diff(phase[::factor][: LONGEST + 1])
    if averages.size < SHORTEST:
        return None
    time = np.arange(averages.size) - 0.5 * (averages.size - 1)
    rest = averages - averages.mean()
    rest -= time * (np.sum(time * rest) / np.sum(time * time))
    for differences in range(order + 1):
        rest = rest - rest.mean()
        power = float(np.sum(rest * rest))
        if power == 0.0:
            return None
        r = float(np.sum(rest[:-1] * rest[1:])) / power
        delta = r / (1.0 + r)
        if delta < 0.25 or differences == order:
            break
        rest = np.diff(rest)
    return max(2 - 2 * order, min(WHITE_PHASE, -round(2.0 * delta) - 2 * differences))


def _exponents(phase: FloatArray, factors: IntArray, order: int) -> IntArray:
    """Return the exponent (k,) at each span: as it is told, and where none can be, as at the next shorter span."""
    out, last = np.zeros(factors.size, dtype=np.int64), 0
    for place in np.argsort(factors):
        found = identified(phase, int(factors[place]), order)
        out[place] = last = last if found is None else found
    return out


def _freedoms(kind: Kind, exponents: IntArray, factors: IntArray, phases: int) -> FloatArray:
    """Return the equivalent degrees of freedom (k,)."""
    found = []
    for exponent, factor in zip(exponents.tolist(), factors.tolist(), strict=True):
        if kind.reflected:
            found.append(allan_dof.of_total(exponent, factor, phases))
        else:
            stride = 1 if kind.overlaps else factor
            found.append(
                allan_dof.of_power_law(exponent, factor, phases, kind.order, stride=stride, modified=kind.modified)
            )
    return np.array(found)


def _curve(
    kind: Kind,
    values: ArrayLike,
    rate: float,
    factors: Sequence[int] | IntArray | None,
    phase: bool,
    exponent: int | None,
) -> Curve:
    """Return the curve of every series of the values."""
    given = _checked(values, rate)
    if exponent is not None and not 2 - 2 * kind.order <= exponent <= WHITE_PHASE:
        allowed = f"must be from {2 - 2 * kind.order} to {WHITE_PHASE}, or None"
        raise AnalysisError("exponent", exponent, allowed=allowed)
    along = given.ndim - 1 if given.ndim == 1 else given.ndim - 2
    series = np.moveaxis(given, along, -1)
    phases = series.shape[-1] + (not phase)
    chosen = _factors(kind, phases, factors)
    scale = kind.scale(chosen / rate)
    shape = (*series.shape[:-1], chosen.size)
    variance, laws, free = np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(shape)
    for place in np.ndindex(shape[:-1]):
        x = _phase_of(np.ascontiguousarray(series[place]), rate, phase)
        variance[place] = [_mean_square(x, int(factor), kind) for factor in chosen] * scale
        laws[place] = _exponents(x, chosen, kind.order) if exponent is None else exponent
        free[place] = _freedoms(kind, laws[place], chosen, phases)
    return Curve(
        kind,
        float(rate),
        phases,
        chosen,
        np.array([kind.terms(phases, int(factor)) for factor in chosen]),
        np.moveaxis(np.sqrt(variance), -1, along),
        np.moveaxis(laws, -1, along),
        np.moveaxis(free, -1, along),
    )


def overlapping(
    values: ArrayLike,
    rate: float,
    factors: Sequence[int] | IntArray | None = None,
    *,
    phase: bool = False,
    exponent: int | None = None,
) -> Curve:
    """Return the overlapping Allan deviation of values (n,) or (*runs, n, axis) at `rate` (Hz).

    factors (k,) are the samples of the spans; None takes ten a decade, up to half of what the record allows. With
    `phase` the values are the phase itself (an angle, a clock's error). `exponent` fixes the power law that the degrees
    of freedom are for: 2 white phase, 1 flicker phase, 0 white, -1 flicker, -2 random walk; None tells it from the
    data. Raises `AnalysisError`.
    """
    return _curve(OVERLAPPING, values, rate, factors, phase, exponent)


def plain(
    values: ArrayLike,
    rate: float,
    factors: Sequence[int] | IntArray | None = None,
    *,
    phase: bool = False,
    exponent: int | None = None,
) -> Curve:
    """Return the Allan deviation of spans side by side; parameters and errors as of `overlapping`."""
    return _curve(PLAIN, values, rate, factors, phase, exponent)


def modified(
    values: ArrayLike,
    rate: float,
    factors: Sequence[int] | IntArray | None = None,
    *,
    phase: bool = False,
    exponent: int | None = None,
) -> Curve:
    """Return the modified Allan deviation, which tells white from flicker phase; parameters as of `overlapping`."""
    return _curve(MODIFIED, values, rate, factors, phase, exponent)


def time_deviation(
    values: ArrayLike,
    rate: float,
    factors: Sequence[int] | IntArray | None = None,
    *,
    phase: bool = False,
    exponent: int | None = None,
) -> Curve:
    """Return the time deviation, in the unit of the phase; parameters and errors as of `overlapping`."""
    return _curve(TIME, values, rate, factors, phase, exponent)


def hadamard(
    values: ArrayLike,
    rate: float,
    factors: Sequence[int] | IntArray | None = None,
    *,
    phase: bool = False,
    exponent: int | None = None,
) -> Curve:
    """Return the Hadamard deviation of spans side by side, blind to a ramp; exponents to -4, else as `overlapping`."""
    return _curve(HADAMARD, values, rate, factors, phase, exponent)


def overlapping_hadamard(
    values: ArrayLike,
    rate: float,
    factors: Sequence[int] | IntArray | None = None,
    *,
    phase: bool = False,
    exponent: int | None = None,
) -> Curve:
    """Return the overlapping Hadamard deviation, blind to a ramp; exponents to -4, else as `overlapping`."""
    return _curve(OVERLAPPING_HADAMARD, values, rate, factors, phase, exponent)


def total(
    values: ArrayLike,
    rate: float,
    factors: Sequence[int] | IntArray | None = None,
    *,
    phase: bool = False,
    exponent: int | None = None,
) -> Curve:
    """Return the total deviation, for spans up to the whole record; parameters and errors as of `overlapping`."""
    return _curve(TOTAL, values, rate, factors, phase, exponent)

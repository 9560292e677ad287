"""Statistics of Monte Carlo runs, with intervals: means, RMS errors, covariances, quantiles, rates, NEES, NIS, Allan.

The first axis of each array is that of the runs; statistics are over this axis, and the runs are independent. The same
array gives the same bits. Values that are not finite, and masked arrays, are errors: select the runs that are known.

For n runs with a mean m, a standard deviation s and a confidence c, p = (1 + c) / 2:

    mean                m +- t_p(n - 1) s / sqrt(n)                          Student's t distribution
    standard deviation  s sqrt((n - 1) / chi2_p(n - 1)) ...                  errors with a normal distribution
    RMS                 r sqrt(n / chi2_p(n)) ...                            errors with a normal distribution, mean 0
    covariance          S_ij +- z_p sqrt((S_ii S_jj + S_ij^2) / (n - 1))     large n
    quantile            order statistics with binomial ranks                 any distribution
    rate                Clopper and Pearson                                  independent runs
    mean NEES or NIS    chi2_{1-p}(n d) / n ... chi2_p(n d) / n              a consistent filter, d degrees of freedom
    Allan deviation     v sqrt(k / chi2_p(k)) ...                            k equivalent degrees of freedom of all runs

Sources: Bar-Shalom, Li and Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), 5.4.2; Clopper
and Pearson, Biometrika 26 (1934) 404; David and Nagaraja, Order Statistics (2003), 7.1; Anderson, An Introduction to
Multivariate Statistical Analysis (2003), theorem 3.4.4; Riley and Howe, NIST SP 1065 (2008), 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import NavsenseError
from navsense.core.typing import FloatArray

CONFIDENCE = 0.95
"""Default confidence of the intervals."""

MAX_DOF = 10**9
"""Largest number of degrees of freedom of a value, and of runs."""

SYMMETRY = 1e-9
"""Largest asymmetry of a covariance, relative to its largest element: that of the rounding of a filter."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A statistic of runs and its confidence interval from `low` to `high`; numbers or arrays.

    >>> ns.analysis.monte_carlo.Estimate(1.0, 0.9, 1.1)
    Estimate(value=1.0, low=0.9, high=1.1)
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray


def _check_runs(values: ArrayLike, least: int) -> FloatArray:
    """Return values (runs, ...) as an array. Raises `NavsenseError` for too few runs, and for unknown values."""
    if np.ma.is_masked(values):
        masked = int(np.ma.asarray(values).mask.sum())
        remedy = "select the known runs with .compressed()"
        raise NavsenseError("masked values", masked, allowed="must be 0", remedy=remedy)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[0] < least:
        count = array.shape[0] if array.ndim else "no axis"
        raise NavsenseError("number of runs", count, allowed=f"must be at least {least}")
    invalid = array.size - int(np.count_nonzero(np.isfinite(array)))
    if invalid:
        remedy = "select the finite ones with numpy.isfinite"
        raise NavsenseError("values that are not finite", invalid, allowed="must be 0", remedy=remedy)
    return array


def _get_probabilities(confidence: float) -> tuple[float, float]:
    """Return the lower and the upper probability of an interval."""
    if not 0.0 < confidence < 1.0:
        raise NavsenseError("confidence", confidence, allowed="must be between 0 and 1")
    return 0.5 * (1.0 - confidence), 0.5 * (1.0 + confidence)


def estimate_mean(values: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean of values (runs, ...) with Student's interval.

    Raises `NavsenseError` for less than 2 runs.

    >>> float(ns.analysis.monte_carlo.estimate_mean([1.0, 2.0, 3.0]).value)
    2.0
    """
    from scipy import stats

    array = _check_runs(values, 2)
    runs = array.shape[0]
    mean = array.mean(axis=0)
    half = stats.t.ppf(_get_probabilities(confidence)[1], runs - 1) * array.std(axis=0, ddof=1) / np.sqrt(runs)
    return Estimate(mean, mean - half, mean + half)


def estimate_stddev(values: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """Return the standard deviation of values (runs, ...) with the chi-square interval.

    Raises `NavsenseError` for less than 2 runs.

    >>> float(ns.analysis.monte_carlo.estimate_stddev([1.0, 2.0, 3.0]).value)
    1.0
    """
    array = _check_runs(values, 2)
    return _scale_by_chi_square(array.std(axis=0, ddof=1), array.shape[0] - 1, confidence)


def estimate_rms(errors: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """Return the root mean square of errors (runs, ...) with the chi-square interval.

    >>> float(ns.analysis.monte_carlo.estimate_rms([3.0, -3.0, 3.0]).value)
    3.0
    """
    array = _check_runs(errors, 1)
    return _scale_by_chi_square(np.sqrt((array**2).mean(axis=0)), array.shape[0], confidence)


def _scale_by_chi_square(deviation: FloatArray, dof: int | FloatArray, confidence: float) -> Estimate:
    """Return a deviation with the interval of a chi-square distribution."""
    from scipy import stats

    low, high = _get_probabilities(confidence)
    lower, upper = (np.sqrt(dof / stats.chi2.ppf(probability, dof)) for probability in (high, low))
    return Estimate(deviation, deviation * lower, deviation * upper)


def estimate_allan_deviation(
    deviations: ArrayLike, dof: ArrayLike | None = None, confidence: float = CONFIDENCE
) -> Estimate:
    """Return the Allan deviation of all runs from those of the runs, with the chi-square interval.

    With the variance V_r of run r and its equivalent degrees of freedom k_r, the merged variance V of n runs has k::

        V = 1/n sum_r V_r,    k = n^2 / sum_r (1 / k_r),    k V / sigma^2 ~ chi2(k)

    Runs with the same k_r have k = n k_r. Without `dof`, k = 2 n V^2 / s^2 is from the variance s^2 of the V_r over the
    runs. If V_r has a chi-square distribution, the relative deviation of this k is sqrt((2 + 4 / k_r) / n) by the delta
    method, so this needs many runs.

    deviations: (runs, ...), for example (runs, tau) or (runs, tau, axis), the deviations of `allan.oadev`.
    dof: `dof` of the same curves, same shape or one that broadcasts to it.

    Raises `NavsenseError` for less than 2 runs without `dof`, for negative deviations, and for `dof` of another shape.
    Sources: NIST SP 1065, section 5.3; Satterthwaite, Biometrics Bulletin 2 (1946) 110, for the sum of the runs.

    >>> white = np.random.default_rng(1).normal(size=(10, 1000, 1))
    >>> curve = ns.analysis.allan.oadev(white, rate=1.0, factors=[1, 10])
    >>> merged = ns.analysis.monte_carlo.estimate_allan_deviation(curve.deviation, curve.dof)
    >>> merged.value[:, 0].round(2)  # 1 / sqrt(tau)
    array([1.  , 0.31])
    """
    array = _check_runs(deviations, 2 if dof is None else 1)
    if np.any(array < 0.0):
        raise NavsenseError("Allan deviation", float(array.min()), allowed="must be >= 0")
    runs, variances = array.shape[0], array**2
    variance = variances.mean(axis=0)
    if dof is None:
        spread = variances.var(axis=0, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            merged = 2.0 * runs * variance**2 / spread
        is_known = spread > 0.0
    else:
        try:
            each = np.broadcast_to(np.asarray(dof, dtype=np.float64), array.shape)
        except ValueError as error:
            allowed = f"must be that of the deviations: {array.shape}"
            raise NavsenseError("shape of dof", np.shape(dof), allowed=allowed) from error
        if not np.all(each > 0.0):
            raise NavsenseError("dof", float(each.min()), allowed="must be above 0")
        merged, is_known = runs**2 / (1.0 / each).sum(axis=0), np.ones(array.shape[1:], dtype=bool)
    estimate = _scale_by_chi_square(np.sqrt(variance), np.where(is_known, merged, 1.0), confidence)
    # Equal variances in all runs, as those of a record without noise, have no spread and no interval.
    ends = (np.where(is_known, end, estimate.value) for end in (estimate.low, estimate.high))
    return Estimate(estimate.value, *ends)


def estimate_covariance(errors: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """Return the covariance (axis, axis) of errors (runs, axis) about their mean.

    Raises `NavsenseError` for less than 2 runs.

    >>> ns.analysis.monte_carlo.estimate_covariance([[1.0, 0.0], [-1.0, 0.0]]).value
    array([[2., 0.],
           [0., 0.]])
    """
    from scipy import stats

    array = _check_runs(errors, 2)
    if array.ndim != 2:
        raise NavsenseError("errors", f"{array.ndim} axes", allowed="must have two axes: runs and components")
    covariance = np.cov(array, rowvar=False, ddof=1).reshape(array.shape[1], array.shape[1])
    variances = np.diag(covariance)
    spread = np.sqrt((np.outer(variances, variances) + covariance**2) / (array.shape[0] - 1))
    half = stats.norm.ppf(_get_probabilities(confidence)[1]) * spread
    return Estimate(covariance, covariance - half, covariance + half)


def estimate_quantile(values: ArrayLike, probability: float, confidence: float = CONFIDENCE) -> Estimate:
    """Return a quantile of values (runs, ...). An end of its interval is infinite if the runs do not determine it.

    probability: of the quantile, between 0 and 1.

    >>> float(ns.analysis.monte_carlo.estimate_quantile([1.0, 2.0, 3.0], 0.5).value)
    2.0
    """
    from scipy import stats

    array = np.sort(_check_runs(values, 1), axis=0)
    if not 0.0 < probability < 1.0:
        raise NavsenseError("probability", probability, allowed="must be between 0 and 1")
    runs = array.shape[0]
    low, high = _get_probabilities(confidence)
    # x_(r) <= quantile < x_(s) with probability P(r <= K < s) of the binomial number K of values below the quantile.
    lower = int(stats.binom.ppf(low, runs, probability))
    upper = int(stats.binom.ppf(high, runs, probability)) + 1
    infinite = np.full(array.shape[1:], np.inf)
    return Estimate(
        np.quantile(array, probability, axis=0),
        array[lower - 1] if lower >= 1 else -infinite,
        array[upper - 1] if upper <= runs else infinite,
    )


def estimate_rate(flags: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """Return the share of runs with a true flag, (runs, ...), with the interval of Clopper and Pearson.

    flags: booleans, or numbers that are 0 or 1.

    Raises `NavsenseError` for other values.

    >>> rate = ns.analysis.monte_carlo.estimate_rate([True] * 20)
    >>> float(rate.value), round(float(rate.low), 3), float(rate.high)
    (1.0, 0.832, 1.0)
    """
    from scipy import stats

    array = _check_runs(flags, 1)
    others = array[(array != 0.0) & (array != 1.0)]
    if others.size:
        raise NavsenseError("flag", float(others[0]), allowed="must be true or false", remedy="compare with a limit")
    runs, count = array.shape[0], array.sum(axis=0)
    low, high = _get_probabilities(confidence)
    lower = np.where(count > 0, stats.beta.ppf(low, np.maximum(count, 1), runs - count + 1), 0.0)
    upper = np.where(count < runs, stats.beta.ppf(high, count + 1, np.maximum(runs - count, 1)), 1.0)
    return Estimate(count / runs, lower, upper)


def compute_nees(error: ArrayLike, covariance: ArrayLike) -> FloatArray:
    """Return the normalised estimation error squared, e' P^-1 e; of an innovation and its covariance, the NIS.

    error: (..., axis).
    covariance: (..., axis, axis).

    Values that are not finite give NaN. Raises `NavsenseError` for shapes that do not match, and for a finite
    covariance that is not symmetric up to rounding, or not positive definite.

    >>> float(ns.analysis.monte_carlo.compute_nees([2.0, 0.0], [[4.0, 0.0], [0.0, 1.0]]))
    1.0
    """
    errors, covariances = np.asarray(error, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    if errors.ndim == 0 or covariances.shape[-2:] != (errors.shape[-1], errors.shape[-1]):
        allowed = f"must end in (n, n) for errors that end in (n,): {errors.shape}"
        raise NavsenseError("shape of the covariance", covariances.shape, allowed=allowed)
    known = np.asarray(np.isfinite(covariances).all(axis=(-2, -1)))
    filled = np.where(known[..., None, None], covariances, np.eye(errors.shape[-1]))
    size = np.abs(filled).max(axis=(-2, -1), keepdims=True, initial=0.0)
    if np.any(np.abs(filled - filled.swapaxes(-2, -1)) > SYMMETRY * size):
        raise NavsenseError("covariance", "not symmetric", allowed="must be symmetric and positive definite")
    try:
        np.linalg.cholesky(filled)
        solved = np.linalg.solve(filled, errors[..., None])[..., 0]
    except np.linalg.LinAlgError as cause:
        raise NavsenseError("covariance", "singular or indefinite", allowed="must be positive definite") from cause
    nees = np.einsum("...i,...i->...", errors, solved)
    return np.asarray(np.where(known & np.isfinite(errors).all(axis=-1), nees, np.nan))


def compute_nees_bounds(dof: int, runs: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the interval of the mean NEES or NIS of `runs` independent runs of a consistent filter.

    dof: degrees of freedom of one value: the number of components of the error.

    >>> [round(bound, 2) for bound in ns.analysis.monte_carlo.compute_nees_bounds(2, 50)]
    [1.48, 2.59]
    """
    from scipy import stats

    for name, number in (("dof", dof), ("runs", runs)):
        if not (isinstance(number, int | np.integer) and 1 <= number <= MAX_DOF):
            raise NavsenseError(name, number, allowed=f"must be an integer from 1 to {MAX_DOF}")
    low, high = stats.chi2.ppf(_get_probabilities(confidence), int(dof) * int(runs)) / int(runs)
    return float(low), float(high)

"""How far a calibration can be trusted: the uncertainty of its parameters, and statistical tests of its residuals.

**Uncertainty.** The parameters are taken relative to the field: bias / scale, ln scale, the direction in rad, the
entries of the soft iron. The largest standard deviation of any combination of them is the error of the calibrated
field, as a fraction of the field or as an angle in rad. Above `REFUSE_ABOVE` (6 degrees, one standard deviation)
calibration fails. Above `WARN_ABOVE` (0.6 degrees) the verdict is not ok.

**Whiteness.** Residuals in time order are summed over blocks of 8^k samples. For white residuals the variance ratio

    V_k = variance of the block sums / (8^k variance of a residual)

is 1. Its distribution for n block sums is chi-squared/n with n (1 - 8^-k)^-1 degrees of freedom. That excludes the
block sums within the variance of a single residual (Lo and MacKinlay 1988, variance ratio). A V_k above the quantile of
`FALSE_ALARM` means correlated residuals: drift, disturbances, a delay of the attitude, unmodelled soft iron. The
variance of a combination of parameters is at most the largest V_k times its value for white residuals (the peak of the
residuals' spectrum against its mean). The covariance is multiplied by that V_k. If the longest blocks have the largest
V_k, the peak is outside the record, and V_k is extrapolated by one level.

**Distribution.** q = r' r / s^2, with the residuals r of one reading and their standard deviation s per axis, has the
mean a, the number of axes. For equal normal noise on all axes, q is chi-squared with a degrees of freedom. For attitude
errors about one axis, or noise on one axis, it is at most 3 times chi-squared with one degree of freedom. In all these
cases,

    q > 3 z^2      with the two-sided quantile z of a normal variable at `FALSE_ALARM` / 4 n

occurs in one of n readings at most once in 2 / `FALSE_ALARM` records, and at most the share `MAX_SMALL_SHARE` of all q
is below a quarter of the median of chi-squared (0.34 and 0.42 for the two extreme cases). A reading above the first
limit is an outlier. If more readings than binomial noise allows are below the second limit, few readings make most of
the variance.

**Direction.** If the length of the calibrated field depends on its direction in the sensor, the model is wrong, for
example because of saturation. Errors of the attitude have no such effect. Polynomials of the direction of degree 3 and
4 are fitted to the residuals. With n_p coefficients and white residuals, they explain s^2 times chi-squared with n_p
degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from navsense.calibration.checks import AXES, Subsample
from navsense.calibration.units import format_field
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray, IntArray, Vectors

FALSE_ALARM: Final = 1e-6
"""Probability that white residuals fail a test."""

REFUSE_ABOVE: Final = 0.1
"""Relative standard deviation of a combination of parameters above which calibration fails."""

WARN_ABOVE: Final = 0.01
"""Relative standard deviation above which the verdict is not ok."""

MAX_INFLATION: Final = 1.1
"""Covariance inflation above which correlated residuals are a reason: 5 percent of a standard deviation."""

MIN_REDUNDANCY: Final = 10
"""Readings in addition to those that the parameters need. The noise level is then known to 13 percent."""

MIN_R_SQUARED: Final = 0.5
"""Share of the variance of the readings that the model must explain."""

WARN_R_SQUARED: Final = 0.9
"""Share below which the verdict is not ok."""

MAX_STRETCH: Final = 5.0
"""Largest ratio of singular values of a soft iron. Above it, an axis does not measure the field."""

ROUNDING_VARIANCE: Final = 1e-13
"""Relative residual variance below which residuals are rounding errors, which the tests do not apply to."""

UNEQUAL_AXES_FACTOR: Final = 3.0
"""q relative to chi-squared with one degree of freedom if all noise is on one of three axes."""

MAX_QUANTISATION_STEPS: Final = 1.5
"""Residual in quantisation steps up to which no reading is an outlier."""

MAX_SMALL_SHARE: Final = 0.45
"""Largest share of readings with q below a quarter of its median, for noise with a usual distribution."""

POLYNOMIAL_DEGREES: Final = (3, 4)
"""Degrees of the polynomials. On a sphere they include the lower degrees of the same parity."""

RANK_TOLERANCE: Final = 1e-10
"""Relative eigenvalue below which a polynomial depends linearly on the others at the given directions."""

MAX_NOISE_RATIO: Final = 2.0
"""Residual standard deviation relative to the declared noise above which it is a reason."""

MAX_DIRECTION_DEPENDENCE: Final = WARN_ABOVE
"""Rms of the direction-dependent part, relative to the field, above which it is a reason."""

MIN_BLOCKS: Final = 12
"""Smallest number of blocks for a variance ratio."""

BLOCK_FACTOR: Final = 8
"""Ratio between one block length and the next."""

BLOCK_LEVELS: Final = 12
"""Number of block lengths: 8^1 to 8^12."""


@dataclass(frozen=True)
class Whiteness:
    """Result of the whiteness test.

    white: True if the residuals are white.
    inflation: factor on the covariance.
    span: correlation length in samples.
    """

    white: bool = True
    inflation: float = 1.0
    span: int = 1


@dataclass(frozen=True)
class Verdict:
    """Quality of a calibration.

    max_relative_stddev: largest standard deviation of any combination of parameters, as a fraction of the field.
    r_squared: share of the variance of the readings that the model explains.
    whiteness: of the residuals.
    reasons: each names a problem and its remedy; empty if the verdict is ok.

    >>> verdict = ns.calibration.known_attitude(field, rotation_ws, attitude_stddev=0.0).verdict
    >>> verdict.ok, verdict.reasons
    (True, ())
    """

    max_relative_stddev: float
    r_squared: float
    whiteness: Whiteness = Whiteness()
    reasons: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if there is no reason against the calibration."""
        return not self.reasons

    def __str__(self) -> str:
        """Return the verdict on one line, and one more line per reason."""
        head = "ok" if self.ok else "poor"
        known = f"known to {100.0 * self.max_relative_stddev:.2g} % of the field"
        lines = [f"{head}: {known}, R² {self.r_squared:.4f}"]
        return "\n".join([*lines, *(f"- {reason}" for reason in self.reasons)])


def list_stddev_reasons(stddev: float, remedy: str) -> tuple[str, ...]:
    """Return a reason if the largest relative standard deviation is above `WARN_ABOVE`."""
    if stddev <= WARN_ABOVE:
        return ()
    return (f"known to {100.0 * stddev:.2g} % of the field only, more than {100.0 * WARN_ABOVE:g} %: {remedy}",)


def list_correlation_reasons(whiteness: Whiteness) -> tuple[str, ...]:
    """Return a reason if the residuals are correlated."""
    if whiteness.inflation <= MAX_INFLATION:
        return ()
    reason = (
        f"residuals are correlated over about {whiteness.span} samples, the covariance was multiplied by"
        f" {whiteness.inflation:.3g}: look for drift, moving iron or currents nearby, a delay between the sensors,"
        " unmodelled soft iron"
    )
    return (reason,)


def assess_whiteness(ratio: Sequence[float] | FloatArray, count: Sequence[int], axes: int) -> Whiteness:
    """Return the result of the whiteness test.

    ratio: V_k for k = 1, 2, ...
    count: number of blocks of each V_k; levels with less than 12 blocks are ignored.
    axes: number of residuals per sample.
    """
    from scipy.special import chdtri

    levels = [k for k, blocks in enumerate(count) if blocks >= MIN_BLOCKS]
    result = Whiteness()
    for k in levels:
        degrees_of_freedom = axes * count[k] / (1.0 - float(BLOCK_FACTOR) ** -(k + 1))
        limit = float(chdtri(degrees_of_freedom, FALSE_ALARM / len(levels))) / degrees_of_freedom
        if ratio[k] > limit and ratio[k] > result.inflation:
            growth = ratio[k] / (ratio[k - 1] if k else 1.0) if k == levels[-1] else 1.0
            result = Whiteness(white=False, inflation=float(ratio[k] * max(growth, 1.0)), span=BLOCK_FACTOR ** (k + 1))
    return result


def list_distribution_reasons(
    squares: FloatArray, axes: int, subsample: Subsample, stddev: float = math.inf
) -> tuple[str, ...]:
    """Return a reason if the residuals have outliers, or if few readings make most of their variance.

    squares: q (n,) of the readings in `subsample`.
    axes: number of residuals per reading.
    stddev: standard deviation of a residual in the unit of the readings; quantised readings are not judged below their
        step.
    """
    from scipy.special import bdtrc, chdtri, ndtri

    count = squares.size
    if not count:
        return ()
    columns = (np.unique(subsample.rows[:, axis]) for axis in range(len(AXES)))
    steps = [float(np.diff(column).min(initial=math.inf)) for column in columns if column.size > 1]
    step = math.sqrt(sum(step**2 for step in steps)) / stddev  # of the quantised vector
    normal_limit = UNEQUAL_AXES_FACTOR * ndtri(FALSE_ALARM / (4.0 * count)) ** 2
    outliers = np.flatnonzero(squares > max(normal_limit, (MAX_QUANTISATION_STEPS * step) ** 2))
    if outliers.size:
        return (_describe_outliers(outliers, subsample),)
    small = int(np.count_nonzero(squares < 0.25 * chdtri(axes, 0.5)))
    if small and step < 1.0 and bdtrc(small - 1, count, MAX_SMALL_SHARE) < 0.5 * FALSE_ALARM:
        share = 100.0 * float(np.sort(squares)[-max(1, count // 10) :].sum() / squares.sum())
        reason = (
            f"a tenth of the readings makes {share:.2g} % of the residuals' variance: leave out the readings near iron,"
            " magnets or currents, and invalid readings"
        )
        return (reason,)
    return ()


def _describe_outliers(outliers: IntArray, subsample: Subsample) -> str:
    """Return the reason for outliers at these rows of the subsample."""
    values, counts = np.unique(subsample.rows[outliers, :3], axis=0, return_counts=True)
    several = outliers.size > 1
    subject = f"{outliers.size} of {subsample.index.size} tested readings lie" if several else "a reading lies"
    most = int(np.argmax(counts))
    equal = f", {counts[most]} of them at exactly {format_vector(values[most], '.4g')}" if counts[most] > 1 else ""
    row = int(outliers[0])
    first = f"row {int(subsample.index[row])} {format_vector(subsample.rows[row, :3], '.4g')} first"
    return f"{subject} far from the fit, {first}{equal}: leave out the invalid readings"


def format_vector(values: FloatArray, form: str = "z.2f") -> str:
    """Return numbers as text, each in a format."""
    return "(" + ", ".join(f"{value:{form}}" for value in values) + ")"


def _evaluate_polynomials(directions: Vectors) -> FloatArray:
    """Return the monomials (n, 25) of `POLYNOMIAL_DEGREES` at unit vectors (n, 3)."""
    powers = np.ones((max(POLYNOMIAL_DEGREES) + 1, len(AXES), directions.shape[0]))
    for degree in range(1, max(POLYNOMIAL_DEGREES) + 1):
        powers[degree] = powers[degree - 1] * directions.T
    exponents = [(i, j, d - i - j) for d in POLYNOMIAL_DEGREES for i in range(d + 1) for j in range(d + 1 - i)]
    return np.stack([powers[i, 0] * powers[j, 1] * powers[k, 2] for i, j, k in exponents], axis=-1)


def list_direction_dependence_reasons(residuals: FloatArray, directions: Vectors, inflation: float) -> tuple[str, ...]:
    """Return a reason if the residuals depend on the direction of the field in the sensor.

    residuals: (n,) or (n, 1) along the field, relative to it.
    directions: unit vectors (n, 3), sensor frame.
    inflation: of the whiteness test.
    """
    from scipy.special import fdtrc

    rows = residuals.ravel()
    basis = _evaluate_polynomials(directions)
    eigenvalues, axes = np.linalg.eigh(basis.T @ basis)
    independent = eigenvalues > RANK_TOLERANCE * eigenvalues[-1]
    rank = int(np.count_nonzero(independent))
    degrees_of_freedom = rows.size - rank
    if degrees_of_freedom < rank:
        return ()
    explained = float(np.sum((axes[:, independent].T @ (basis.T @ rows)) ** 2 / eigenvalues[independent]))
    variance = (float(np.sum(rows**2)) - explained) / degrees_of_freedom
    size = math.sqrt(max(0.0, explained - rank * variance) / rows.size)
    ratio = explained / (rank * max(variance, ROUNDING_VARIANCE) * UNEQUAL_AXES_FACTOR * inflation)
    if size < MAX_DIRECTION_DEPENDENCE or fdtrc(rank, degrees_of_freedom, ratio) > FALSE_ALARM:
        return ()
    reason = (
        f"residuals of {100.0 * size:.2g} % of the field depend on its direction in the sensor: look for readings at"
        " the sensor's limit, a gain that is not constant, or iron and currents that do not turn with the sensor"
    )
    return (reason,)


def list_r_squared_reasons(r_squared: float, remedy: str) -> tuple[str, ...]:
    """Return a reason if the model explains less than `WARN_R_SQUARED` of the variance of the readings."""
    if r_squared >= WARN_R_SQUARED:
        return ()
    return (f"{100.0 * r_squared:.3g} % of the readings' variance explained: {remedy}",)


def check_stretch(stretches: FloatArray, remedy: str) -> None:
    """Raise `CalibrationError` if a soft iron with these singular values, falling, is implausible.

    An axis then hardly measures the field.
    """
    if stretches[0] > MAX_STRETCH * stretches[-1]:
        what = f"stretches one way {stretches[0] / max(stretches[-1], 1e-300):.3g} times as much as another"
        raise CalibrationError("soft_iron", what, allowed=f"must be at most {MAX_STRETCH:g}", remedy=remedy)


def list_zero_reading_reasons(zeros: tuple[int, int]) -> tuple[str, ...]:
    """Return a reason if readings are exactly 0 on all axes. `zeros` are their number and the first row."""
    count, row = zeros
    if not count:
        return ()
    subject = f"{count} readings are" if count > 1 else "a reading is"
    return (f"{subject} exactly (0, 0, 0), row {row} first: leave out what the sensor did not measure",)


def list_excess_noise_reasons(stddev: float, declared: float | None, unit: str | None) -> tuple[str, ...]:
    """Return a reason if the standard deviation of the residuals is above `MAX_NOISE_RATIO` times the declared one."""
    if declared is None or stddev <= MAX_NOISE_RATIO * declared:
        return ()
    reason = (
        f"residuals of {format_field(stddev, unit)} per axis, where {format_field(declared, unit)} are declared:"
        " look for invalid readings, currents nearby, and errors of the attitude"
    )
    return (reason,)

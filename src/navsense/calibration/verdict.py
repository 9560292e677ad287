"""How far a calibration can be trusted: what the motion leaves open, and whether the residuals are white.

**Weakest combination.** With the parameters as fractions of the field's strength (bias / scale, ln scale, the direction
in rad, the soft iron's entries), the largest standard deviation among all combinations is the error that the calibrated
field may have, as a fraction of the field or as an angle in rad. Above `HOPELESS`, 6 degrees for one deviation, a
calibration is refused; above `POOR`, 0.6 degrees, it is given with a verdict that is not ok.

**Whiteness.** Residuals in time order are added up in blocks of 8^k samples. For white ones

    V_k = variance of the block sums / (8^k variance of a residual)

is 1, with chi-squared/n of n (1 - 8^-k)^-1 degrees of freedom for n block sums (those within the variance of the single
residual left out: Lo and MacKinlay 1988, variance ratio). Where it exceeds the quantile of `FALSE_ALARM` the residuals
hang together: drift, disturbances, a lag of the attitude, soft iron left out. No combination of the parameters has more
than the largest V_k times the variance that white residuals would give it (the peak of the residuals' spectrum against
its mean): the covariance is multiplied by it. Where the longest blocks have the largest, the peak is beyond what the
record shows, and V_k is taken to grow once more as it did last.

**Shape.** q = r' r / s^2, r the residuals of a reading and s their rms on an axis, is a on average, the number of axes.
Normal noise alike on all axes has q of chi-squared of a degrees of freedom; attitude errors about one axis, or noise on
one axis alone, have 3 times that of one at most: none of these exceeds

    q = 3 z^2      z the quantile of `FALSE_ALARM` / 4 n, two-sided, of a normal variable

in one of n readings but once in 2 / `FALSE_ALARM` records, and of none is more than `FEW` below a quarter of the median
of chi-squared (0.34 and 0.42: the two others as above). A reading beyond the first is an outlier; where more than
binomial noise allows are below the second, few readings make most of the residuals' variance.

**Place.** Lengths of the calibrated field that depend on where it stands in the sensor, beyond what the model follows,
are what saturation leaves; errors of an attitude make none. Polynomials of the direction of third and fourth degree are
fitted to them, n_p in all; what these explain is s^2 times chi-squared of n_p degrees of freedom for white residuals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from navsense.calibration.checks import AXES, Subsample
from navsense.calibration.units import format_unit
from navsense.typing import FloatArray, IntArray, Vectors

FALSE_ALARM: Final = 1e-6
"""Probability that white residuals are taken for others."""

REFUSE_ABOVE: Final = 0.1
"""Standard deviation of a combination, of the field, above which nothing is given."""

WARN_ABOVE: Final = 0.01
"""Above which the verdict is not ok."""

MAX_INFLATION: Final = 1.1
"""Inflation above which correlated residuals are a reason: 5 percent in a standard deviation."""

MIN_REDUNDANCY: Final = 10
"""Readings beyond those that the parameters need: the residuals' deviation is known to 13 percent."""

MIN_R_SQUARED: Final = 0.5
"""Share of the readings' variance that the model has to explain."""

WARN_R_SQUARED: Final = 0.9
"""Share below which the verdict is not ok."""

MAX_STRETCH: Final = 5.0
"""Ratio of the soft iron's largest stretch to its smallest that no iron makes: an axis is not seen."""

ROUNDING_VARIANCE: Final = 1e-13
"""Residual variance, of the field's, that is rounding: it says nothing about whiteness or shape."""

UNEQUAL_AXES_FACTOR: Final = 3.0
"""Times that q exceeds chi-squared of one degree of freedom where all noise is on one axis of three."""

MAX_QUANTISATION_STEPS: Final = 1.5
"""Steps of the readings up to which none is far off."""

MAX_SMALL_SHARE: Final = 0.45
"""Share of readings with q below a quarter of its median that noise of any usual shape stays below."""

POLYNOMIAL_DEGREES: Final = (3, 4)
"""Of the polynomials: on a sphere these hold the lower ones of the same parity too."""

RANK_TOLERANCE: Final = 1e-10
"""Square of a polynomial, of the largest, below which it is made of the others on the directions that came."""

MAX_NOISE_RATIO: Final = 2.0
"""Times the declared deviation above which residuals hold more than noise."""

MAX_DIRECTION_DEPENDENCE: Final = WARN_ABOVE
"""Rms of what depends on place, of the field, above which it is a reason: scale and bias are off by as much."""

MIN_BLOCKS: Final = 12
"""Blocks from which their variance is looked at."""

BLOCK_FACTOR: Final = 8
"""Factor from one length of blocks to the next."""

BLOCK_LEVELS: Final = 12
"""Lengths of blocks, 8^1 to 8^12."""


@dataclass(frozen=True)
class Whiteness:
    """Whether residuals are white; what their correlation multiplies the covariance by; samples that hang together."""

    white: bool = True
    inflation: float = 1.0
    span: int = 1


@dataclass(frozen=True)
class Verdict:
    """What a calibration is worth.

    `weakest` is the largest standard deviation of any combination of the parameters, as a fraction of the field;
    `explained` the share of the readings' variance that the calibrated model explains; `whiteness` that of the
    residuals; `reasons` say what is wrong and what to do, none where all is well.
    """

    max_relative_stddev: float
    r_squared: float
    whiteness: Whiteness = Whiteness()
    reasons: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True where nothing speaks against the calibration."""
        return not self.reasons

    def __str__(self) -> str:
        """Say it on one line, or with one more for each reason."""
        head = "ok" if self.ok else "poor"
        lines = [
            f"{head}: known to {100.0 * self.max_relative_stddev:.2g} % of the field, {100.0 * self.r_squared:.4g} % explained"
        ]
        return "\n".join([*lines, *(f"- {reason}" for reason in self.reasons)])


def stddev_reasons(deviation: float, remedy: str) -> tuple[str, ...]:
    """Return the reason that a weakest combination's deviation (of the field) is, none where it is small enough."""
    if deviation <= WARN_ABOVE:
        return ()
    return (f"known to {100.0 * deviation:.2g} % of the field only, more than {100.0 * WARN_ABOVE:g} %: {remedy}",)


def correlation_reasons(whiteness: Whiteness) -> tuple[str, ...]:
    """Return the reason that correlated residuals are, none where they are white or nearly so."""
    if whiteness.inflation <= MAX_INFLATION:
        return ()
    reason = (
        f"residuals hang together over some {whiteness.span} samples, the covariance was multiplied by"
        f" {whiteness.inflation:.3g}: look for drift, iron or currents nearby that move, a lag between the sensors,"
        " soft iron left out"
    )
    return (reason,)


def assess_whiteness(ratio: Sequence[float] | FloatArray, count: Sequence[int], axes: int) -> Whiteness:
    """Return the verdict on residuals from V_k (k,) for k = 1, 2, ... and how many blocks each is from.

    `axes` is how many residuals a sample has. Levels of less than 12 blocks are left out.
    """
    from scipy.special import chdtri

    looked = [k for k, blocks in enumerate(count) if blocks >= MIN_BLOCKS]
    result = Whiteness()
    for k in looked:
        degrees_of_freedom = axes * count[k] / (1.0 - float(BLOCK_FACTOR) ** -(k + 1))
        limit = float(chdtri(degrees_of_freedom, FALSE_ALARM / len(looked))) / degrees_of_freedom
        if ratio[k] > limit and ratio[k] > result.inflation:
            growth = ratio[k] / (ratio[k - 1] if k else 1.0) if k == looked[-1] else 1.0
            result = Whiteness(white=False, inflation=float(ratio[k] * max(growth, 1.0)), span=BLOCK_FACTOR ** (k + 1))
    return result


def distribution_reasons(squares: FloatArray, axes: int, kept: Subsample, stddev: float = math.inf) -> tuple[str, ...]:
    """Return the reasons that residuals are whose shape is not that of noise, none where it may be.

    `squares` (n,) are the q of the readings that were kept, `axes` how many residuals a reading has, `stddev` theirs in
    the unit of the readings: steps of the readings as large as it are no matter of shape.
    """
    from scipy.special import bdtrc, chdtri, ndtri

    count = squares.size
    if not count:
        return ()
    step = _quantisation_step(kept) / stddev
    far = np.flatnonzero(
        squares
        > max(UNEQUAL_AXES_FACTOR * ndtri(FALSE_ALARM / (4.0 * count)) ** 2, (MAX_QUANTISATION_STEPS * step) ** 2)
    )
    if far.size:
        return (_describe_outliers(far, kept),)
    small = int(np.count_nonzero(squares < 0.25 * chdtri(axes, 0.5)))
    if small and step < 1.0 and bdtrc(small - 1, count, MAX_SMALL_SHARE) < 0.5 * FALSE_ALARM:
        share = 100.0 * float(np.sort(squares)[-max(1, count // 10) :].sum() / squares.sum())
        reason = (
            f"a tenth of the readings makes {share:.2g} % of the residuals' variance: leave out the readings near iron,"
            " magnets or currents, or those that are none"
        )
        return (reason,)
    return ()


def _quantisation_step(kept: Subsample) -> float:
    """Return the length of the steps that readings come in, their least differences: next to nothing for fine ones."""
    values = (np.unique(kept.rows[:, axis]) for axis in range(len(AXES)))
    return math.sqrt(sum(float(np.diff(column).min(initial=math.inf)) ** 2 for column in values if column.size > 1))


def _describe_outliers(far: IntArray, kept: Subsample) -> str:
    """Return the reason that readings are which lie far off, at these places of the rows that were kept."""
    values, counts = np.unique(kept.rows[far, :3], axis=0, return_counts=True)
    some = f"{far.size} of {kept.index.size} readings looked at lie" if far.size > 1 else "a reading lies"
    most = int(np.argmax(counts))
    alike = f", {counts[most]} of them at exactly {_format_reading(values[most])}" if counts[most] > 1 else ""
    row = int(far[0])
    return (
        f"{some} far off what the others say, row {int(kept.index[row])} {_format_reading(kept.rows[row, :3])} first{alike}:"
        " leave out the readings that are none"
    )


def _format_reading(values: FloatArray) -> str:
    """Return a reading as text."""
    return "(" + ", ".join(f"{value:.4g}" for value in values) + ")"


def _products(seen: Vectors, degree: int) -> FloatArray:
    """Return the products (n, k) of the parts of unit vectors (n, 3) that are of a degree, or of one less."""
    powers = np.ones((degree + 1, 3, seen.shape[0]))
    for power in range(degree):
        powers[power + 1] = powers[power] * seen.T
    which = [(i, j, d - i - j) for d in (degree - 1, degree) for i in range(d + 1) for j in range(d + 1 - i)]
    return np.asarray([powers[i, 0] * powers[j, 1] * powers[k, 2] for i, j, k in which]).T


def _polynomials(seen: Vectors) -> FloatArray:
    """Return the products of the coordinates (n, 25) of unit vectors (n, 3), of all `DEGREES`."""
    powers = np.ones((max(POLYNOMIAL_DEGREES) + 1, len(AXES), seen.shape[0]))
    for degree in range(1, max(POLYNOMIAL_DEGREES) + 1):
        powers[degree] = powers[degree - 1] * seen.T
    parts = [(i, j, d - i - j) for d in POLYNOMIAL_DEGREES for i in range(d + 1) for j in range(d + 1 - i)]
    return np.stack([powers[i, 0] * powers[j, 1] * powers[k, 2] for i, j, k in parts], axis=-1)


def direction_dependence_reasons(residuals: FloatArray, seen: Vectors, inflation: float) -> tuple[str, ...]:
    """Return the reason that residuals are which depend on the direction of the field in the sensor, none if not.

    `residuals` (n,) or (n, 1) along the field, of its strength, `seen` (n, 3) unit vectors, both of the readings that
    were kept; `inflation` that of whiteness.
    """
    from scipy.special import fdtrc

    rows = residuals.ravel()
    basis = _polynomials(seen)
    sizes, axes = np.linalg.eigh(basis.T @ basis)
    known = sizes > RANK_TOLERANCE * sizes[-1]
    told, free = int(np.count_nonzero(known)), rows.size - int(np.count_nonzero(known))
    if free < told:
        return ()
    fitted = float(np.sum((axes[:, known].T @ (basis.T @ rows)) ** 2 / sizes[known]))
    variance = (float(np.sum(rows**2)) - fitted) / free
    size = math.sqrt(max(0.0, fitted - told * variance) / rows.size)
    ratio = fitted / (told * max(variance, ROUNDING_VARIANCE) * UNEQUAL_AXES_FACTOR * inflation)
    if size < MAX_DIRECTION_DEPENDENCE or fdtrc(told, free, ratio) > FALSE_ALARM:
        return ()
    reason = (
        f"residuals of {100.0 * size:.2g} % of the field depend on where it stands in the sensor: look for readings at"
        " the sensor's limit, a gain that is not constant, or iron and currents that do not turn with the sensor"
    )
    return (reason,)


def zero_reading_reasons(zeros: tuple[int, int]) -> tuple[str, ...]:
    """Return the reason that readings are which are exactly 0 on all axes: how many, and the first row."""
    count, row = zeros
    if not count:
        return ()
    some = f"{count} readings are" if count > 1 else "a reading is"
    return (f"{some} exactly (0, 0, 0), row {row} first: leave out what the sensor did not measure",)


def excess_noise_reasons(found: float, declared: float | None, unit: str | None) -> tuple[str, ...]:
    """Return the reason that a residual's deviation is which is beyond the declared one, none where it is not."""
    if declared is None or found <= MAX_NOISE_RATIO * declared:
        return ()
    reason = (
        f"residuals of {found:.3g}{format_unit(unit)} an axis where {declared:.3g}{format_unit(unit)} are declared: look for"
        " readings that are none, currents nearby, and errors of the attitude"
    )
    return (reason,)

"""Diagnosis of an ellipsoid or sphere fit: missing motion, and the effect of soft iron that a sphere neglects.

**Missing motion.** The information of the fit (`_ellipsoid_fit`) decides whether a combination w of theta = (b, A) is
uncertain; this module describes the missing motion. A change w moves the ellipsoid at v by w'J(v) along its normal.
Readings where the sum of (w'J)^2 is largest are therefore the most informative ones.

**Neglected soft iron.** x = (b, scale) is fitted, y is fixed at 0:

    A = scale + Y,  Y symmetric and traceless, five numbers, orthonormal basis
    y ~ N(0, (t scale)^2),  t = `TYPICAL_SOFT_IRON`        x_fit - x = M_xx^-1 M_xy y
    cov(y | readings) = P = s (M_c + s / (t scale)^2)^-1,  mean y^ = -P g / s,    M_c = M_yy - M_yx M_xx^-1 M_xy

M, s and the score g of y are those of `_ellipsoid_fit`. If the readings cover the sphere evenly, M_xy = 0. If the
motion is about a vertical axis, soft iron that the residuals do not show shifts and scales the sphere. The remaining
mean squared error, M_xx^-1 M_xy (P + y^ y^') M_yx M_xx^-1, never exceeds that of the fit with soft iron to the same
readings.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from navsense.calibration._attitude_fit import half_sphere
from navsense.calibration._ellipsoid_distance import PARAMETERS
from navsense.calibration._ellipsoid_fit import ELLIPSOIDS, EllipsoidFit, theta_to_matrix
from navsense.calibration._power_sums import ReadingSpread
from navsense.calibration.verdict import FALSE_ALARM, REFUSE_ABOVE, WARN_ABOVE
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray

PLANAR_RATIO: Final = 0.2
"""Ratio of the standard deviations along two axes below which readings lie in a plane or on a line."""

MIN_NAMED_SHARE: Final = 0.1
"""Share of an uncertain combination above which bias, or scale and soft iron, are named."""

TILT_DEGREES: Final = 30
"""Tilt to each side about another axis that turns a plane of readings into an ellipsoid (see the tests)."""

SCALE: Final = "scale"
"""Name of the parameter that replaces the soft iron in a sphere."""

DIRECTIONS: Final = 1000
"""Candidate directions over a half sphere."""

TYPICAL_SOFT_IRON: Final = 0.02
"""Standard deviation of each number of the soft iron of a sensor that is assumed to have none."""

MAX_ROUNDS: Final = 20

CONVERGED: Final = 0.99
"""Ratio of the noise variances of two rounds above which the estimation of soft iron has converged."""

TRACELESS: FloatArray = np.zeros((PARAMETERS, 5))
"""Columns: theta of the orthonormal basis of symmetric traceless matrices."""
TRACELESS[[3, 6, 8], 0] = np.array([1.0, -1.0, 0.0]) / math.sqrt(2.0)
TRACELESS[[3, 6, 8], 1] = np.array([1.0, 1.0, -2.0]) / math.sqrt(6.0)
TRACELESS[[4, 5, 7], [2, 3, 4]] = math.sqrt(0.5)


class MissingMotion(NamedTuple):
    """Description of a motion that does not excite all parameters, the uncertain parameters, and a remedy."""

    motion: str
    uncertain: str
    remedy: str

    def error(self) -> CalibrationError:
        """Return the error for this motion."""
        allowed = f"{self.uncertain} cannot be determined"
        return CalibrationError(f"motion: {self.motion}", allowed=allowed, remedy=self.remedy)


def find_missing_motion(fit: EllipsoidFit, spread: ReadingSpread, limit: float) -> MissingMotion:
    """Return the motion that is missing for a relative standard deviation below `limit`."""
    iron = "soft iron" if fit.basis.shape[1] == PARAMETERS else SCALE
    combinations = _uncertain_combinations(fit, limit)
    if is_planar(spread):
        motion, uncertain = _describe_planar(spread, iron)
        target = spread.axes[:, 0]
    else:
        motion, uncertain = "the readings cover a part of the sphere only", _describe_partial(combinations, iron)
        target = _most_informative_direction(fit, combinations)
    remedy = (
        f"tilt the sensor by {TILT_DEGREES} degrees or more to each side about other axes, so that the field also comes"
        f" nearer to {_format_direction(target)} of the sensor and to its opposite"
    )
    return MissingMotion(motion, uncertain, remedy)


def is_planar(spread: ReadingSpread) -> bool:
    """Return True if readings lie roughly in a plane or on a line."""
    low, middle, high = np.sqrt(spread.variances)
    return bool(low <= PLANAR_RATIO * middle or middle <= PLANAR_RATIO * high)


def _format_direction(vector: FloatArray) -> str:
    """Return a direction as text, with the sign that makes its largest component positive."""
    sign = 1.0 if vector[int(np.abs(vector).argmax())] > 0.0 else -1.0
    return "(" + ", ".join(f"{sign * value:z.2f}" for value in vector) + ")"


def _uncertain_combinations(fit: EllipsoidFit, limit: float) -> FloatArray:
    """Return the combinations (k, 9) with a relative standard deviation above `limit`, at least the largest one."""
    total, noise = fit.information
    motion, vectors = np.linalg.eigh(total - noise)
    information = np.maximum(np.sum(vectors * (total @ vectors), axis=0), 0.0)
    size = limit * fit.strength
    uncertain = [
        column
        for column, value in enumerate(motion)
        if value <= 0.0 or math.sqrt(fit.variance * information[column]) > size * value
    ]
    return np.asarray((fit.basis @ vectors[:, uncertain or [0]]).T)


def _most_informative_direction(fit: EllipsoidFit, combinations: FloatArray) -> FloatArray:
    """Return the direction (3,) of the field in the sensor with the most information on the combinations."""
    v = half_sphere(DIRECTIONS)
    n = v @ np.linalg.inv(theta_to_matrix(fit.theta))
    n /= np.linalg.norm(n, axis=1)[:, None]
    information = np.zeros(DIRECTIONS)
    for combination in combinations:
        shift, stretch = n @ combination[:3], np.sum((n @ theta_to_matrix(combination)) * v, axis=1)
        information += shift**2 + stretch**2  # the mean over v and -v
    return np.asarray(v[int(np.argmax(information))])


def _describe_planar(spread: ReadingSpread, iron: str) -> tuple[str, str]:
    """Return the motion and the uncertain parameters of readings in a plane or on a line."""
    _, middle, high = np.sqrt(spread.variances)
    if middle <= PLANAR_RATIO * high:
        line = _format_direction(spread.axes[:, 2])
        return (
            f"the readings lie along a line, {line} in the sensor: it was hardly turned",
            f"bias and {iron} across it",
        )
    normal = _format_direction(spread.axes[:, 0])
    motion = f"the readings lie in a plane across {normal} in the sensor: it was turned about that axis only, if at all"
    return motion, f"bias and {iron} along that axis"


def _describe_partial(combinations: FloatArray, iron: str) -> str:
    """Return the uncertain parameters of readings on a part of the sphere, from the combinations (k, 9)."""
    names = []
    bias = combinations[:, :3]
    if float(np.sum(bias**2, axis=1).max()) > MIN_NAMED_SHARE:
        names.append(f"bias along {_format_direction(np.linalg.svd(bias)[2][0])}")
    matrices = np.array([theta_to_matrix(combination) for combination in combinations])
    if float(np.sum(matrices**2, axis=(1, 2)).max()) > MIN_NAMED_SHARE:
        axis = np.linalg.eigh(np.sum(matrices @ matrices, axis=0))[1][:, 2]
        names.append(iron if iron == SCALE else f"{iron} along {_format_direction(axis)}")
    return " and ".join(names)


class NeglectedSoftIron(NamedTuple):
    """Soft iron that a sphere neglects, relative to the field.

    size: likely size.
    is_detected: True if the residuals show it.
    shift: (4,), likely error of bias and scale due to it.
    hidden_covariance: (4, 4), covariance of their error due to soft iron that the residuals do not show.
    """

    size: float
    is_detected: bool
    shift: FloatArray
    hidden_covariance: FloatArray

    @property
    def error(self) -> float:
        """The rms of the combination of bias and scale with the largest error."""
        return _largest_stddev(self.hidden_covariance + np.outer(self.shift, self.shift))

    @property
    def hidden_error(self) -> float:
        """The same due to soft iron that the residuals do not show."""
        return _largest_stddev(self.hidden_covariance)


class _SoftIronInformation(NamedTuple):
    """Information on y: M_c as eigenvalues (5,) and axes (5, 5); along these axes g (5,) and M_xx^-1 M_xy (p, 5)."""

    eigenvalues: FloatArray
    axes: FloatArray
    score: FloatArray
    gain: FloatArray

    def estimate(self, noise: float, size: float) -> tuple[FloatArray, FloatArray]:
        """Return the mean y^ (5,) and variances (5,) for a noise variance. `size` is t scale."""
        information = np.maximum(self.eigenvalues, 0.0) * size**2 + noise
        return -self.score * size**2 / information, noise * size**2 / information


def _soft_iron_information(fit: EllipsoidFit) -> _SoftIronInformation:
    """Return the information of the readings of a sphere on soft iron."""
    total = fit.sums.total
    motion = total[:PARAMETERS, :PARAMETERS] - fit.variance * fit.sums.noisy
    score = TRACELESS.T @ (total[:PARAMETERS, 9] - fit.variance * total[:PARAMETERS, 10])
    gain = np.linalg.solve(fit.basis.T @ motion @ fit.basis, fit.basis.T @ motion @ TRACELESS)
    eigenvalues, axes = np.linalg.eigh(TRACELESS.T @ motion @ (TRACELESS - fit.basis @ gain))
    return _SoftIronInformation(eigenvalues, axes, axes.T @ score, gain @ axes)


def estimate_neglected_soft_iron(fit: EllipsoidFit) -> NeglectedSoftIron:
    """Return the soft iron that a sphere neglects. The readings must have noise, and the sphere must be determined.

    The noise is that of the residuals without the estimated soft iron. Their correlation counts as noise.
    """
    from scipy.special import chdtri

    iron, size = _soft_iron_information(fit), TYPICAL_SOFT_IRON * fit.strength
    variance, white = fit.variance, fit.whiteness
    for _ in range(MAX_ROUNDS):
        estimate, _ = iron.estimate(variance, size)
        remaining, white = fit.residuals(TRACELESS @ iron.axes @ estimate - fit.basis @ (iron.gain @ estimate))
        if not remaining < CONVERGED * variance:
            break
        variance = remaining
    noise = variance * white.inflation
    estimate, variances = iron.estimate(noise, size)
    gain = iron.gain / fit.strength
    return NeglectedSoftIron(
        size=float(np.linalg.norm(estimate)) / fit.strength,
        is_detected=-float(iron.score @ estimate) > noise * float(chdtri(estimate.size, FALSE_ALARM)),
        shift=gain @ estimate,
        hidden_covariance=(gain * variances) @ gain.T,
    )


def _largest_stddev(covariance: FloatArray) -> float:
    return math.sqrt(max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0))


def soft_iron_reasons(fit: EllipsoidFit, spread: ReadingSpread) -> tuple[str, ...]:
    """Return a reason if neglected soft iron affects the sphere.

    Raises `CalibrationError` if soft iron that the motion does not show could make the sphere useless.
    """
    iron = estimate_neglected_soft_iron(fit)
    if iron.is_detected and max(iron.size, iron.error) >= WARN_ABOVE:
        reason = (
            f"soft iron of some {100.0 * iron.size:.2g} % is seen, which makes scale and bias wrong by some"
            f" {100.0 * iron.error:.2g} %: calibrate with soft iron"
        )
        return (reason,)
    if iron.error < WARN_ABOVE:
        return ()
    missing = find_missing_motion(replace(fit, basis=ELLIPSOIDS), spread, WARN_ABOVE)
    if iron.hidden_error > REFUSE_ABOVE:
        raise missing.error()
    reason = (
        f"{missing.motion}: soft iron of {100.0 * TYPICAL_SOFT_IRON:g} %, which that does not exclude, would make scale"
        f" and bias wrong by {100.0 * iron.error:.2g} %; {missing.remedy}, and calibrate with soft iron"
    )
    return (reason,)

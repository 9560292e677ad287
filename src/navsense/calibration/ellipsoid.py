"""Calibration of a magnetometer with unknown attitude: the readings lie on an ellipsoid.

    m = scale soft_iron v + bias + noise       |v| = 1 unknown, det soft_iron = 1, soft_iron symmetric and positive

m is the reading in the sensor frame. Rotated in a constant field, the readings lie on an ellipsoid with the bias as its
centre and scale soft_iron as its axes. Power sums give a consistent start for the nine numbers (`_power_sums`). A
maximum-likelihood fit of distances along the normal, with correction of the curvature bias, refines them
(`_ellipsoid_fit`). The noise must be equal on the three axes and much smaller than the field. This method cannot
determine a rotation between the sensor and its body, nor the direction of the field: both need the attitude
(`known_attitude`). Without soft iron the ellipsoid is a sphere with four numbers. Only the whiteness test needs the
readings in time order.

**Missing motion.** If the motion does not excite all parameters, calibration fails and names the missing motion. The
information of the fit decides whether a combination w of theta = (b, A) is uncertain. A change w moves the ellipsoid at
v by w'J(v) along its normal. Readings where the sum of (w'J)^2 is largest are therefore the most informative ones.

**Neglected soft iron.** If a sphere is fitted and the sensor has soft iron after all, the motion may not determine its
effect. x = (b, scale) is fitted, y is fixed at 0:

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
from numpy.typing import ArrayLike

from navsense.calibration import verdict
from navsense.calibration._attitude_fit import spread_directions
from navsense.calibration._ellipsoid_fit import (
    ELLIPSOIDS,
    PAIRS,
    PARAMETERS,
    EllipsoidFit,
    EllipsoidFitter,
    theta_to_matrix,
)
from navsense.calibration._power_sums import ReadingSpread, compute_spread
from navsense.calibration.checks import AXES, SaturationCheck, Subsample, check_count, validate_bool, validate_field
from navsense.calibration.result import NAMES, Calibration
from navsense.calibration.units import check_scale, validate_strength, validate_unit
from navsense.calibration.verdict import REFUSE_ABOVE, ROUNDING_VARIANCE, WARN_ABOVE, Verdict, Whiteness, format_vector
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

SYMMETRIC_TRACELESS: FloatArray = np.zeros((PARAMETERS, 5))
"""Columns: theta of the orthonormal basis of symmetric traceless matrices."""
SYMMETRIC_TRACELESS[[3, 6, 8], 0] = np.array([1.0, -1.0, 0.0]) / math.sqrt(2.0)
SYMMETRIC_TRACELESS[[3, 6, 8], 1] = np.array([1.0, 1.0, -2.0]) / math.sqrt(6.0)
SYMMETRIC_TRACELESS[[4, 5, 7], [2, 3, 4]] = math.sqrt(0.5)


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
    combinations = _find_uncertain_combinations(fit, limit)
    if is_planar(spread):
        motion, uncertain = _describe_planar(spread, iron)
        target = spread.axes[:, 0]
    else:
        motion, uncertain = "the readings cover a part of the sphere only", _describe_partial(combinations, iron)
        target = _find_informative_direction(fit, combinations)
    remedy = (
        f"tilt the sensor by {TILT_DEGREES} degrees or more to each side about other axes, so that the field also comes"
        f" nearer to {_format_axis(target)} of the sensor and to its opposite"
    )
    return MissingMotion(motion, uncertain, remedy)


def is_planar(spread: ReadingSpread) -> bool:
    """Return True if readings lie roughly in a plane or on a line."""
    low, middle, high = np.sqrt(spread.variances)
    return bool(low <= PLANAR_RATIO * middle or middle <= PLANAR_RATIO * high)


def _format_axis(vector: FloatArray) -> str:
    """Return an axis as text, with the sign that makes its largest component positive."""
    return format_vector(vector if vector[int(np.abs(vector).argmax())] > 0.0 else -vector)


def _find_uncertain_combinations(fit: EllipsoidFit, limit: float) -> FloatArray:
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


def _find_informative_direction(fit: EllipsoidFit, combinations: FloatArray) -> FloatArray:
    """Return the direction (3,) of the field in the sensor with the most information on the combinations."""
    v = spread_directions(DIRECTIONS)
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
        line = _format_axis(spread.axes[:, 2])
        motion = f"the readings lie on a line along {line} of the sensor: it was hardly turned"
        return motion, f"bias and {iron} across this line"
    normal = _format_axis(spread.axes[:, 0])
    motion = (
        f"the readings lie in a plane normal to {normal} of the sensor: it was turned about that axis only, if at all"
    )
    return motion, f"bias and {iron} along that axis"


def _describe_partial(combinations: FloatArray, iron: str) -> str:
    """Return the uncertain parameters of readings on a part of the sphere, from the combinations (k, 9)."""
    names = []
    bias = combinations[:, :3]
    if float(np.sum(bias**2, axis=1).max()) > MIN_NAMED_SHARE:
        names.append(f"bias along {_format_axis(np.linalg.svd(bias)[2][0])}")
    matrices = np.array([theta_to_matrix(combination) for combination in combinations])
    if float(np.sum(matrices**2, axis=(1, 2)).max()) > MIN_NAMED_SHARE:
        axis = np.linalg.eigh(np.sum(matrices @ matrices, axis=0))[1][:, 2]
        names.append(iron if iron == SCALE else f"{iron} along {_format_axis(axis)}")
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
        return _compute_largest_stddev(self.hidden_covariance + np.outer(self.shift, self.shift))

    @property
    def hidden_error(self) -> float:
        """The rms of the combination with the largest error due to soft iron that the residuals do not show."""
        return _compute_largest_stddev(self.hidden_covariance)


def estimate_neglected_soft_iron(fit: EllipsoidFit) -> NeglectedSoftIron:
    """Return the soft iron that a sphere neglects. The readings must have noise, and the sphere must be determined.

    The noise is that of the residuals without the estimated soft iron. Their correlation counts as noise.
    """
    from scipy.special import chdtri

    size = TYPICAL_SOFT_IRON * fit.strength
    total = fit.sums.total
    motion = total[:PARAMETERS, :PARAMETERS] - fit.variance * fit.sums.noise_gram
    score = SYMMETRIC_TRACELESS.T @ (total[:PARAMETERS, 9] - fit.variance * total[:PARAMETERS, 10])
    gain = np.linalg.solve(fit.basis.T @ motion @ fit.basis, fit.basis.T @ motion @ SYMMETRIC_TRACELESS)
    eigenvalues, axes = np.linalg.eigh(SYMMETRIC_TRACELESS.T @ motion @ (SYMMETRIC_TRACELESS - fit.basis @ gain))
    score, gain = axes.T @ score, gain @ axes
    information = np.maximum(eigenvalues, 0.0) * size**2

    variance, whiteness = fit.variance, fit.whiteness
    for _ in range(MAX_ROUNDS):
        mean = -score * size**2 / (information + variance)
        remaining, whiteness = fit.residuals(SYMMETRIC_TRACELESS @ axes @ mean - fit.basis @ (gain @ mean))
        if not remaining < CONVERGED * variance:
            break
        variance = remaining
    noise = variance * whiteness.inflation
    mean, variances = -score * size**2 / (information + noise), noise * size**2 / (information + noise)
    gain = gain / fit.strength
    return NeglectedSoftIron(
        size=float(np.linalg.norm(mean)) / fit.strength,
        is_detected=-float(score @ mean) > noise * float(chdtri(mean.size, verdict.FALSE_ALARM)),
        shift=gain @ mean,
        hidden_covariance=(gain * variances) @ gain.T,
    )


def _compute_largest_stddev(covariance: FloatArray) -> float:
    return math.sqrt(max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0))


def list_soft_iron_reasons(fit: EllipsoidFit, spread: ReadingSpread) -> tuple[str, ...]:
    """Return a reason if neglected soft iron affects the sphere.

    Raises `CalibrationError` if soft iron that the motion does not show could make the sphere useless.
    """
    iron = estimate_neglected_soft_iron(fit)
    if iron.is_detected and max(iron.size, iron.error) >= WARN_ABOVE:
        reason = (
            f"the residuals show soft iron of about {100.0 * iron.size:.2g} %, which changes scale and bias by about"
            f" {100.0 * iron.error:.2g} %: calibrate with soft iron"
        )
        return (reason,)
    if iron.error < WARN_ABOVE:
        return ()
    missing = find_missing_motion(replace(fit, basis=ELLIPSOIDS), spread, WARN_ABOVE)
    if iron.hidden_error > REFUSE_ABOVE:
        raise missing.error()
    reason = (
        f"{missing.motion}: soft iron of {100.0 * TYPICAL_SOFT_IRON:g} %, which this motion does not exclude, would"
        f" change scale and bias by {100.0 * iron.error:.2g} %; {missing.remedy}, and calibrate with soft iron"
    )
    return (reason,)


ELLIPSOID_NAMES: Final = tuple(name for name in NAMES if not name.startswith("direction"))
"""Names of the numbers in the covariance: the first four for a sphere."""

MOTION_SIGNIFICANCE: Final = 10.0
"""Significance of the motion: distance of the noise share from 1, in its standard deviations sqrt(2 / N)."""

CURVATURE_STDDEVS: Final = 3.0
"""Smallest radius of curvature in standard deviations of the noise, for a unique foot point."""

MAX_UNIT_STRETCH: Final = 1.5
"""Largest stretch of the soft iron for which another unit of one axis is the likely cause of a failure."""

MISFIT_REMEDY: Final = (
    "turn the sensor through many attitudes, away from iron, magnets and currents, or leave out the readings near them"
)
"""Remedy if the readings do not lie on an ellipsoid."""


class EllipsoidCalibrator:
    """Calibration without attitude from readings that arrive in batches, for example on a moving vehicle.

    The calibrator stores readings, 24 bytes each, until they determine the ellipsoid to 0.1 percent; after that at most
    1.6 MB of them. The covariance is linear in the errors. If the verdict is not ok because of missing motion, it is
    too small: for a `max_relative_stddev` of 5 to 9 percent, errors are 1.2 to 1.3 times as large, with a mean that is
    not zero. The arguments are those of `ellipsoid`. Raises `CalibrationError` for invalid ones.

    >>> calibrator = ns.calibration.EllipsoidCalibrator(unit="T")
    >>> calibrator.update(field)  # any number of times
    >>> calibrator.solve().method
    'ellipsoid'
    """

    def __init__(self, strength: float | None = None, *, unit: str | None = "T", soft_iron: bool = True) -> None:
        """Start without readings."""
        self._unit = validate_unit(unit)
        self._strength = validate_strength(strength, unit)
        self._fitter = EllipsoidFitter(soft_iron=validate_bool("soft_iron", soft_iron))
        self._saturation, self._subsample = SaturationCheck(), Subsample(3)

    @property
    def count(self) -> int:
        """The number of readings."""
        return self._fitter.count

    def update(self, field: ArrayLike) -> None:
        """Add readings (n, 3) in the unit; n can be 0. The result does not depend on how the readings are split.

        Raises `CalibrationError` for an invalid array, and then adds nothing.
        """
        rows = validate_field(field)
        self._saturation.update(rows)
        self._subsample.update(rows)
        self._fitter.add(rows)

    def solve(self) -> Calibration:
        """Return the calibration from all readings so far. You can add more readings afterwards.

        Raises `CalibrationError` if the calibration cannot be trusted.
        """
        check_count(self.count, self._fitter.size + verdict.MIN_REDUNDANCY, self._fitter.size)
        try:
            return self._solve()
        except CalibrationError as error:
            unit_error = _find_axis_unit_error(self._subsample.rows)
            if unit_error is None:
                raise
            raise unit_error from error

    def _solve(self) -> Calibration:
        self._saturation.check()
        if not np.isfinite(self._fitter.powers).all():
            remedy = "leave out invalid readings, above all the first one"
            raise CalibrationError("field", "cannot be squared", allowed="must be of similar size", remedy=remedy)
        fit, spread = self._fitter.fit(), compute_spread(self._fitter.powers)
        r_squared = 1.0 - 3.0 * fit.variance / float(spread.variances.sum())
        if not is_planar(spread):
            _check_misfit(fit, r_squared)
        eigenvalues = np.linalg.eigvalsh(fit.information[0])
        noise_share = 1.0 if eigenvalues[0] <= ROUNDING_VARIANCE * eigenvalues[-1] else fit.noise_share
        if not fit.converged or noise_share * (1.0 + MOTION_SIGNIFICANCE * math.sqrt(2.0 / fit.count)) >= 1.0:
            raise find_missing_motion(fit, spread, REFUSE_ABOVE).error()
        has_noise = fit.variance > ROUNDING_VARIANCE * float(spread.variances.sum())
        whiteness = fit.whiteness if has_noise else Whiteness()
        numbers, jacobian = _compute_calibration_numbers(fit)
        covariance = whiteness.inflation * (jacobian @ fit.covariance @ jacobian.T)
        stddev = _compute_max_relative_stddev(covariance, numbers[0])
        if not stddev <= REFUSE_ABOVE:
            raise self._make_uncertain_error(fit, spread, stddev, whiteness)
        check_scale(numbers[0] * self._fitter.unit, self._unit, self._strength)
        _check_misfit(fit, r_squared)
        axes = np.asarray(np.linalg.eigvalsh(theta_to_matrix(fit.theta)), dtype=np.float64)
        verdict.check_stretch(axes[::-1], "check that all three axes work and are in one unit")
        reasons = self._list_residual_reasons(fit, whiteness) + _list_verdict_reasons(
            fit, spread, stddev, r_squared, whiteness
        )
        return self._make_result(fit, numbers, covariance, Verdict(stddev, r_squared, whiteness, reasons))

    def _make_uncertain_error(
        self, fit: EllipsoidFit, spread: ReadingSpread, stddev: float, whiteness: Whiteness
    ) -> CalibrationError:
        """Return the error of a fit with a too large standard deviation: of the residuals, else of the motion."""
        reasons = self._list_residual_reasons(fit, whiteness)
        if stddev <= REFUSE_ABOVE * math.sqrt(whiteness.inflation):
            reasons += verdict.list_correlation_reasons(whiteness)
        if not reasons:
            return find_missing_motion(fit, spread, REFUSE_ABOVE).error()
        known = f"known to {100.0 * stddev:.2g} % of the field only"
        return CalibrationError(f"residuals: {known}", allowed="must be noise only", remedy="; ".join(reasons))

    def _list_residual_reasons(self, fit: EllipsoidFit, whiteness: Whiteness) -> tuple[str, ...]:
        """Return the reasons in the residuals of the subsample."""
        reasons = verdict.list_zero_reading_reasons(self._saturation.zeros)
        if not fit.variance > ROUNDING_VARIANCE * fit.strength**2:
            return reasons
        field = (self._subsample.rows - self._fitter.shift) / self._fitter.unit
        residual, directions = fit.residuals_at(field)
        reasons += verdict.list_distribution_reasons(residual**2 / fit.variance, 1, self._subsample)
        return reasons + verdict.list_direction_dependence_reasons(
            residual[:, None] / fit.strength, directions, whiteness.inflation
        )

    def _make_result(
        self, fit: EllipsoidFit, numbers: FloatArray, covariance: FloatArray, quality: Verdict
    ) -> Calibration:
        """Return the calibration in the unit of the readings."""
        degrees_of_freedom, unit = fit.basis.shape[1], self._fitter.unit
        has_iron = degrees_of_freedom == PARAMETERS
        names = ELLIPSOID_NAMES if has_iron else ELLIPSOID_NAMES[:4]
        units = np.array([unit] * 4 + [1.0] * 9)
        covariance = covariance * np.outer(units, units)
        return Calibration(
            method="ellipsoid" if has_iron else "sphere",
            scale=float(numbers[0]) * unit,
            direction=None,
            bias=self._fitter.shift + numbers[1:4] * unit,
            soft_iron=numbers[4:].reshape(3, 3) if has_iron else np.eye(3),
            covariance=covariance[: len(names), : len(names)].copy(),
            names=names,
            degrees_of_freedom=degrees_of_freedom,
            residual_stddev=math.sqrt(fit.variance) * unit,
            count=fit.count,
            unit=self._unit,
            strength=self._strength,
            verdict=quality,
        )


def ellipsoid(
    field: ArrayLike, strength: float | None = None, *, unit: str | None = "T", soft_iron: bool = True
) -> Calibration:
    """Return the calibration from readings with unknown attitude, in time order.

    field: readings (n, 3), sensor frame, in `unit`.
    strength: known strength of the field in `unit`.
    unit: "T", "mT", "uT", "nT", "G", "mG", or None for any numbers.
    soft_iron: False if the sensor has no soft iron. The `direction` of the result is None.

    >>> calibration = ns.calibration.ellipsoid(1e9 * field, unit="nT")
    >>> calibration.apply(1e9 * field).shape
    (599, 3)

    Raises `CalibrationError` for invalid readings, and if the calibration cannot be trusted.
    """
    calibrator = EllipsoidCalibrator(strength, unit=unit, soft_iron=soft_iron)
    calibrator.update(field)
    return calibrator.solve()


def _compute_calibration_numbers(fit: EllipsoidFit) -> tuple[FloatArray, FloatArray]:
    """Return scale, bias and soft iron (13,) in units of the fit, and their derivatives (13, 9) by theta."""
    matrix, scale = theta_to_matrix(fit.theta), fit.strength
    inverse, jacobian = np.linalg.inv(matrix), np.zeros((13, PARAMETERS))
    jacobian[1:4, :3] = np.eye(3)
    for number, (row, column) in enumerate(PAIRS):
        change = np.zeros((3, 3))
        change[row, column] = change[column, row] = 1.0
        growth = scale * float(np.sum(inverse * change)) / 3.0
        jacobian[0, 3 + number] = growth
        jacobian[4:, 3 + number] = ((change - matrix * growth / scale) / scale).ravel()
    return np.array([scale, *fit.theta[:3], *(matrix / scale).ravel()]), jacobian


def _compute_max_relative_stddev(covariance: FloatArray, scale: float) -> float:
    """Return the largest standard deviation of any combination of bias / scale, ln scale and soft iron."""
    if not np.isfinite(covariance).all():
        return math.inf
    factor = np.array([1.0 / scale] * 4 + [1.0] * 9)
    return math.sqrt(max(0.0, float(np.linalg.eigvalsh(covariance * np.outer(factor, factor))[-1])))


def _check_misfit(fit: EllipsoidFit, r_squared: float) -> None:
    """Raise `CalibrationError` if the readings do not lie on an ellipsoid."""
    axes = np.linalg.eigvalsh(theta_to_matrix(fit.theta))
    noise = math.sqrt(fit.variance)
    if r_squared >= verdict.MIN_R_SQUARED and CURVATURE_STDDEVS * noise <= axes[0] ** 2 / axes[2]:
        return
    what = f"readings differ by {100.0 * noise / fit.strength:.2g} % of the field's strength from the best ellipsoid"
    raise CalibrationError("field", what, allowed="must lie on an ellipsoid with small noise", remedy=MISFIT_REMEDY)


def _list_verdict_reasons(
    fit: EllipsoidFit, spread: ReadingSpread, stddev: float, r_squared: float, whiteness: Whiteness
) -> tuple[str, ...]:
    """Return the reasons in the uncertainty, the correlation, the explained variance and neglected soft iron."""
    reasons: tuple[str, ...] = ()
    if stddev > WARN_ABOVE:
        missing = find_missing_motion(fit, spread, WARN_ABOVE)
        reasons += verdict.list_stddev_reasons(stddev, f"{missing.motion}; {missing.remedy}, or record for longer")
    reasons += verdict.list_correlation_reasons(whiteness)
    reasons += verdict.list_r_squared_reasons(r_squared, MISFIT_REMEDY)
    if fit.basis.shape[1] < PARAMETERS and fit.variance > 0.0:
        reasons += list_soft_iron_reasons(fit, spread)
    return reasons


def _find_axis_unit_error(field: FloatArray) -> CalibrationError | None:
    """Return the error of an axis in another unit than the others, None if that is not the cause of a failure."""
    with np.errstate(all="ignore"):
        decades = np.log10(field.std(axis=0))
        decades -= np.median(decades)
    if not np.isfinite(decades).all():
        return None
    axis = int(np.abs(decades).argmax())
    nearest = int(np.rint(decades[axis]))
    for power in (nearest, nearest - 1, nearest + 1) if nearest else ():
        factor = np.ones(3)
        factor[axis] = 10.0**-power
        if not _fits_ellipsoid(field * factor):
            continue
        what, allowed = f"looks like {10.0**power:g} times the others", "must be in the unit of the other axes"
        remedy = f"give all three axes in one unit: multiply this one by {10.0**-power:g}, unless the axis is broken"
        return CalibrationError(f"field along {AXES[axis]}", what, allowed=allowed, remedy=remedy)
    return None


def _fits_ellipsoid(field: FloatArray) -> bool:
    """Return True if readings (n, 3) lie on an ellipsoid with a plausible soft iron that they determine."""
    if not (np.isfinite(field).all() and np.ptp(field, axis=0).all()):
        return False  # constant readings along an axis determine no ellipsoid
    fitter = EllipsoidFitter(soft_iron=True)
    fitter.add(field)
    fit = fitter.fit()
    axes = np.linalg.eigvalsh(theta_to_matrix(fit.theta))
    plausible = axes[2] <= MAX_UNIT_STRETCH * axes[0] and math.sqrt(fit.variance) <= REFUSE_ABOVE * fit.strength
    return bool(plausible) and fit.converged and fit.max_relative_stddev <= REFUSE_ABOVE

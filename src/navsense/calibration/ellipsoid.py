"""Calibration of a magnetometer with unknown attitude: the readings lie on an ellipsoid.

    m = scale soft_iron v + bias + noise       |v| = 1 unknown, det soft_iron = 1, soft_iron symmetric and positive

m is the reading in the sensor frame. Rotated in a constant field, the readings lie on an ellipsoid with the bias as its
centre and scale soft_iron as its axes. Power sums give a consistent start for the nine numbers (`_power_sums`). A
maximum-likelihood fit of distances along the normal, with correction of the curvature bias, refines them
(`_ellipsoid_fit`). The noise must be equal on the three axes and much smaller than the field. This method cannot
determine a rotation between the sensor and its body, nor the direction of the field: both need the attitude
(`known_attitude`). Without soft iron the ellipsoid is a sphere with four numbers. If the sensor has soft iron after all
and the motion does not determine its effect on the sphere, the verdict says so.

Only the whiteness test needs the readings in time order. If the motion does not excite all parameters, calibration
fails and names the missing motion (`_ellipsoid_diagnosis`).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.calibration import verdict
from navsense.calibration._ellipsoid_diagnosis import find_missing_motion, is_planar, soft_iron_reasons
from navsense.calibration._ellipsoid_distance import PARAMETERS
from navsense.calibration._ellipsoid_fit import PAIRS, EllipsoidFit, EllipsoidFitter, theta_to_matrix
from navsense.calibration._power_sums import ReadingSpread, compute_spread
from navsense.calibration.checks import AXES, SaturationCheck, Subsample, check_count, validate_field
from navsense.calibration.result import NAMES, Calibration
from navsense.calibration.units import check_scale, validate_strength, validate_unit
from navsense.calibration.verdict import Verdict, Whiteness
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray

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

        calibrator = ns.calibration.EllipsoidCalibrator(unit="uT")
        calibrator.update(field)    # any number of times
        calibration = calibrator.solve()
    """

    def __init__(self, strength: float | None = None, *, unit: str | None = "T", soft_iron: bool = True) -> None:
        """Start without readings."""
        self._unit = validate_unit(unit)
        self._strength = validate_strength(strength, unit)
        self._fitter = EllipsoidFitter(soft_iron=soft_iron)
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
            unit_error = _axis_unit_error(self._subsample.rows)
            if unit_error is None:
                raise
            raise unit_error from error

    def _solve(self) -> Calibration:
        self._saturation.check()
        if not np.isfinite(self._fitter.powers).all():
            remedy = "leave out invalid readings, above all the first one"
            raise CalibrationError("field", "cannot be squared", allowed="must be numbers of like size", remedy=remedy)
        fit, spread = self._fitter.fit(), compute_spread(self._fitter.powers)
        r_squared = 1.0 - 3.0 * fit.variance / float(spread.variances.sum())
        if not is_planar(spread):
            _check_misfit(fit, r_squared)
        total_information, _ = fit.information
        eigenvalues = np.linalg.eigvalsh(total_information)
        noise_share = 1.0 if eigenvalues[0] <= verdict.ROUNDING_VARIANCE * eigenvalues[-1] else fit.noise_share
        if not fit.converged or noise_share * (1.0 + MOTION_SIGNIFICANCE * math.sqrt(2.0 / fit.count)) >= 1.0:
            raise find_missing_motion(fit, spread, verdict.REFUSE_ABOVE).error()
        white = (
            fit.whiteness if fit.variance > verdict.ROUNDING_VARIANCE * float(spread.variances.sum()) else Whiteness()
        )
        numbers, slopes = _calibration_numbers(fit)
        covariance = white.inflation * (slopes @ fit.covariance @ slopes.T)
        stddev = _max_relative_stddev(covariance, numbers[0])
        if not stddev <= verdict.REFUSE_ABOVE:
            raise self._uncertain_error(fit, spread, stddev, white)
        check_scale(numbers[0] * self._fitter.unit, self._unit, self._strength)
        _check_misfit(fit, r_squared)
        _check_stretch(fit)
        reasons = self._residual_reasons(fit, white) + _verdict_reasons(fit, spread, stddev, r_squared, white)
        return self._make_result(fit, numbers, covariance, Verdict(stddev, r_squared, white, reasons))

    def _uncertain_error(
        self, fit: EllipsoidFit, spread: ReadingSpread, stddev: float, white: Whiteness
    ) -> CalibrationError:
        """Return the error of a fit with a too large standard deviation: of the residuals, else of the motion."""
        reasons = self._residual_reasons(fit, white)
        if stddev <= verdict.REFUSE_ABOVE * math.sqrt(white.inflation):
            reasons += verdict.correlation_reasons(white)
        if not reasons:
            return find_missing_motion(fit, spread, verdict.REFUSE_ABOVE).error()
        known = f"known to {100.0 * stddev:.2g} % of the field only"
        return CalibrationError(f"residuals: {known}", allowed="must be those of noise", remedy="; ".join(reasons))

    def _residual_reasons(self, fit: EllipsoidFit, white: Whiteness) -> tuple[str, ...]:
        """Return the reasons in the residuals of the subsample."""
        reasons = verdict.zero_reading_reasons(self._saturation.zeros)
        if not fit.variance > verdict.ROUNDING_VARIANCE * fit.strength**2:
            return reasons
        field = (self._subsample.rows - self._fitter.shift) / self._fitter.unit
        residual, directions = fit.residuals_at(field)
        reasons += verdict.distribution_reasons(residual**2 / fit.variance, 1, self._subsample)
        return reasons + verdict.direction_dependence_reasons(
            residual[:, None] / fit.strength, directions, white.inflation
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

        calibration = ns.calibration.ellipsoid(field, unit="uT")
        field_s = calibration.apply(field)

    Raises `CalibrationError` for invalid readings, and if the calibration cannot be trusted.
    """
    calibrator = EllipsoidCalibrator(strength, unit=unit, soft_iron=soft_iron)
    calibrator.update(field)
    return calibrator.solve()


def _calibration_numbers(fit: EllipsoidFit) -> tuple[FloatArray, FloatArray]:
    """Return scale, bias and soft iron (13,) in units of the fit, and their derivatives (13, 9) by theta."""
    matrix, scale = theta_to_matrix(fit.theta), fit.strength
    inverse, slopes = np.linalg.inv(matrix), np.zeros((13, PARAMETERS))
    slopes[1:4, :3] = np.eye(3)
    for number, (row, column) in enumerate(PAIRS):
        change = np.zeros((3, 3))
        change[row, column] = change[column, row] = 1.0
        growth = scale * float(np.sum(inverse * change)) / 3.0
        slopes[0, 3 + number] = growth
        slopes[4:, 3 + number] = ((change - matrix * growth / scale) / scale).ravel()
    return np.array([scale, *fit.theta[:3], *(matrix / scale).ravel()]), slopes


def _max_relative_stddev(covariance: FloatArray, scale: float) -> float:
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
    what = f"readings lie {100.0 * noise / fit.strength:.2g} % of the field's strength off the best ellipsoid"
    raise CalibrationError("field", what, allowed="must lie on one but for small noise", remedy=MISFIT_REMEDY)


def _check_stretch(fit: EllipsoidFit) -> None:
    """Raise `CalibrationError` if the soft iron is implausible: an axis hardly measures the field."""
    axes = np.linalg.eigvalsh(theta_to_matrix(fit.theta))
    if axes[2] > verdict.MAX_STRETCH * axes[0]:
        what = f"stretches one way {axes[2] / axes[0]:.3g} times as much as another"
        remedy = "check that all three axes work and are in one unit"
        raise CalibrationError("soft_iron", what, allowed=f"must be at most {verdict.MAX_STRETCH:g}", remedy=remedy)


def _verdict_reasons(
    fit: EllipsoidFit, spread: ReadingSpread, stddev: float, r_squared: float, white: Whiteness
) -> tuple[str, ...]:
    """Return the reasons in the uncertainty, the correlation, the explained variance and neglected soft iron."""
    reasons: tuple[str, ...] = ()
    if stddev > verdict.WARN_ABOVE:
        missing = find_missing_motion(fit, spread, verdict.WARN_ABOVE)
        reasons += verdict.stddev_reasons(stddev, f"{missing.motion}; {missing.remedy}, or record for longer")
    reasons += verdict.correlation_reasons(white)
    if r_squared < verdict.WARN_R_SQUARED:
        reasons += (f"{100.0 * r_squared:.3g} % of the readings' variance explained: {MISFIT_REMEDY}",)
    if fit.basis.shape[1] < PARAMETERS and fit.variance > 0.0:
        reasons += soft_iron_reasons(fit, spread)
    return reasons


def _axis_unit_error(field: FloatArray) -> CalibrationError | None:
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
    plausible = axes[2] <= MAX_UNIT_STRETCH * axes[0] and math.sqrt(fit.variance) <= verdict.REFUSE_ABOVE * fit.strength
    return bool(plausible) and fit.converged and fit.max_relative_stddev[0] <= verdict.REFUSE_ABOVE

"""Calibration of a magnetometer whose attitude is not known: the readings lie on an ellipsoid.

    m = scale soft_iron v + bias + noise       |v| = 1 unknown, det soft_iron = 1, soft_iron symmetric and positive

m the reading in the sensor's frame. Turned in a field that stays the same, the readings lie on an ellipsoid about the
bias, of the axes scale soft_iron. Nine numbers are found: first from sums of powers (`_power_sums`: right on average,
needs no start), then at the maximum of their likelihood, by distances along the normal, with the bias of the curvature
taken out (`_ellipsoid_fit`). The noise is taken to be alike on the three axes and far below the strength. A rotation between
the sensor and its body cannot be seen in this way: that needs the attitude (`known_attitude`), as a direction does.
Without soft iron the ellipsoid is a sphere, four numbers; soft iron that there is after all moves it, and the verdict
says so where the motion leaves room for that (`_sphere`).

The readings have to be in time order for the verdict on whiteness; nothing else depends on it. A motion that leaves a
combination of the numbers open is refused with what is missing (`_ellipsoid_diagnosis`).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.calibration import _ellipsoid_diagnosis, _sphere
from navsense.calibration._ellipsoid_distance import PARAMETERS
from navsense.calibration._ellipsoid_fit import PAIRS, EllipsoidFit, EllipsoidFitter, theta_to_matrix
from navsense.calibration._power_sums import ReadingSpread, compute_spread
from navsense.calibration.checks import AXES, SaturationCheck, Subsample, check_count, validate_field
from navsense.calibration.result import Calibration
from navsense.calibration.units import check_scale, validate_strength, validate_unit
from navsense.calibration.verdict import (
    MAX_STRETCH,
    MIN_R_SQUARED,
    MIN_REDUNDANCY,
    REFUSE_ABOVE,
    ROUNDING_VARIANCE,
    WARN_ABOVE,
    WARN_R_SQUARED,
    Verdict,
    Whiteness,
    correlation_reasons,
    direction_dependence_reasons,
    distribution_reasons,
    stddev_reasons,
    zero_reading_reasons,
)
from navsense.errors import CalibrationError
from navsense.typing import FloatArray

COVARIANCE_NAMES: Final = (
    "scale",
    "bias.x",
    "bias.y",
    "bias.z",
    *(f"soft_iron.{row}{column}" for row in "xyz" for column in "xyz"),
)
"""What the covariance is of; without soft iron the first four."""

MOTION_SIGNIFICANCE: Final = 10.0
"""Deviations of the noise's part of the information, each sqrt(2 / N) of it, that all of it has to exceed."""

CURVATURE_STDDEVS: Final = 3.0
"""Deviations of noise that have to stay within the smallest radius of curvature, where a distance has one foot only."""

MAX_UNIT_STRETCH: Final = 1.5
"""Stretch of a soft iron up to which readings put into another unit are taken to be right."""

MISFIT_REMEDY: Final = (
    "turn the sensor through many attitudes, away from iron, magnets and currents, or leave out the readings near them"
)
"""Where readings do not lie on an ellipsoid."""


class EllipsoidCalibrator:
    """A calibration that readings are added to, part by part, as on a vehicle that moves.

    Readings are kept, 24 bytes each, until they tell the ellipsoid to 0.1 percent; from then on 1.6 MB of them at most.
    The covariance is linear in the errors. With a verdict that is not ok for want of motion it says too little of them:
    with `weakest` at 5 to 9 percent they are some 1.2 to 1.3 times as large as it says, and not zero on average.
    The parameters are those of `ellipsoid`. Raises `CalibrationError`.
    """

    def __init__(self, strength: float | None = None, *, unit: str | None = "T", soft_iron: bool = True) -> None:
        """Start with no reading."""
        self._unit = validate_unit(unit)
        self._strength = validate_strength(strength, unit)
        self._fitter, self._saturation, self._subsample = (
            EllipsoidFitter(soft_iron=soft_iron),
            SaturationCheck(),
            Subsample(3),
        )

    @property
    def count(self) -> int:
        """Return how many readings were taken."""
        return self._fitter.count

    def update(self, field: ArrayLike) -> None:
        """Take further readings (n, 3) in the unit, n from 0 on; what is refused leaves the calibration as it was.

        It does not matter how the readings are cut. Raises `CalibrationError`.
        """
        rows = validate_field(field)
        self._saturation.update(rows)
        self._subsample.update(rows)
        self._fitter.add(rows)

    def solve(self) -> Calibration:
        """Return the calibration from all readings so far; more may be added afterwards.

        Raises `CalibrationError` where none can be trusted.
        """
        self._check_count()
        try:
            return self._solve()
        except CalibrationError as error:
            other = _axis_unit_error(self._subsample.rows)
            if other is None:
                raise
            raise other from error

    def _solve(self) -> Calibration:
        """Return the calibration; raise `CalibrationError` where it cannot be trusted."""
        self._saturation.check()
        if not np.isfinite(self._fitter.powers).all():
            remedy = "leave out the readings that are none, the first one above all"
            raise CalibrationError("field", "cannot be squared", allowed="must be numbers of like size", remedy=remedy)
        fit, spread = self._fitter.fit(), compute_spread(self._fitter.powers)
        r_squared = 1.0 - 3.0 * fit.variance / float(spread.variances.sum())
        if not _ellipsoid_diagnosis.is_planar(spread):
            _check_misfit(fit, r_squared)
        share = max(fit.noise_share, _rounding_share(fit))
        if not fit.converged or share * (1.0 + MOTION_SIGNIFICANCE * math.sqrt(2.0 / fit.count)) >= 1.0:
            raise _ellipsoid_diagnosis.missing_motion_error(
                _ellipsoid_diagnosis.find_missing_motion(fit, spread, REFUSE_ABOVE)
            )
        white = fit.whiteness if fit.variance > ROUNDING_VARIANCE * float(spread.variances.sum()) else Whiteness()
        numbers, slopes = _calibration_numbers(fit)
        covariance = white.inflation * (slopes @ fit.covariance @ slopes.T)
        max_relative_stddev = _max_relative_stddev(covariance, numbers[0])
        if not max_relative_stddev <= REFUSE_ABOVE:
            raise self._uncertain_error(fit, spread, max_relative_stddev, white)
        unit = self._fitter.unit
        check_scale(numbers[0] * unit, self._unit, self._strength)
        _check_misfit(fit, r_squared)
        _check_stretch(fit)
        reasons = self._residual_reasons(fit, white) + _verdict_reasons(
            fit, spread, max_relative_stddev, r_squared, white
        )
        verdict = Verdict(max_relative_stddev, r_squared, white, reasons)
        return self._make_result(fit, numbers, covariance, verdict)

    def _check_count(self) -> None:
        """Raise `CalibrationError` where the readings are too few for any motion."""
        sought = self._fitter.size
        check_count(self.count, sought + MIN_REDUNDANCY, sought)

    def _uncertain_error(
        self, fit: EllipsoidFit, spread: ReadingSpread, max_relative_stddev: float, white: Whiteness
    ) -> CalibrationError:
        """Return the error of a fit that leaves too much open, for want of motion or for its residuals."""
        strange = correlation_reasons(white) if max_relative_stddev <= REFUSE_ABOVE * math.sqrt(white.inflation) else ()
        strange = self._residual_reasons(fit, white) + strange
        if not strange:
            return _ellipsoid_diagnosis.missing_motion_error(
                _ellipsoid_diagnosis.find_missing_motion(fit, spread, REFUSE_ABOVE)
            )
        known = f"known to {100.0 * max_relative_stddev:.2g} % of the field only"
        return CalibrationError(f"residuals: {known}", allowed="must be those of noise", remedy="; ".join(strange))

    def _residual_reasons(self, fit: EllipsoidFit, white: Whiteness) -> tuple[str, ...]:
        """Return what is strange about the residuals of some of the readings."""
        gone = zero_reading_reasons(self._saturation.zeros)
        if not fit.variance > ROUNDING_VARIANCE * fit.strength**2:
            return gone
        field = (self._subsample.rows - self._fitter.shift) / self._fitter.unit
        residual, seen = fit.residuals_at(field)
        strange = gone + distribution_reasons(residual**2 / fit.variance, 1, self._subsample)
        return strange + direction_dependence_reasons(residual[:, None] / fit.strength, seen, white.inflation)

    def _make_result(
        self, fit: EllipsoidFit, numbers: FloatArray, covariance: FloatArray, verdict: Verdict
    ) -> Calibration:
        """Return all of it in the unit of the readings."""
        free, unit = fit.basis.shape[1], self._fitter.unit
        names = COVARIANCE_NAMES if free == PARAMETERS else COVARIANCE_NAMES[:4]
        units = np.array([unit] * 4 + [1.0] * 9)
        covariance = covariance * np.outer(units, units)
        return Calibration(
            method="ellipsoid" if free == PARAMETERS else "sphere",
            scale=float(numbers[0]) * unit,
            direction=None,
            bias=self._fitter.shift + numbers[1:4] * unit,
            soft_iron=numbers[4:].reshape(3, 3) if free == PARAMETERS else np.eye(3),
            covariance=covariance[: len(names), : len(names)].copy(),
            names=names,
            degrees_of_freedom=free,
            residual_stddev=math.sqrt(fit.variance) * unit,
            count=fit.count,
            unit=self._unit,
            strength=self._strength,
            verdict=verdict,
        )


def ellipsoid(
    field: ArrayLike, strength: float | None = None, *, unit: str | None = "T", soft_iron: bool = True
) -> Calibration:
    """Return the calibration of readings (n, 3) of unknown attitude, in time order.

    `unit` is that of the readings ("T", "mT", "uT", "nT", "G", "mG", None for any numbers), `strength` the field's own
    strength in it where it is known. `soft_iron` False: the sensor has none. The result's `direction` is None.

    Raises `CalibrationError` for what is no record of a magnetometer, and where no calibration can be trusted.
    """
    stream = EllipsoidCalibrator(strength, unit=unit, soft_iron=soft_iron)
    stream.update(field)
    return stream.solve()


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
    """Return the largest deviation of a combination of bias / scale, ln scale and soft iron."""
    if not np.isfinite(covariance).all():
        return math.inf
    share = np.array([1.0 / scale] * 4 + [1.0] * 9)
    return math.sqrt(max(0.0, float(np.linalg.eigvalsh(covariance * np.outer(share, share))[-1])))


def _rounding_share(fit: EllipsoidFit) -> float:
    """Return 1 where a combination is told by no more than rounding would tell, else 0."""
    whole, _ = fit.information
    values = np.linalg.eigvalsh(whole)
    return 1.0 if values[0] <= ROUNDING_VARIANCE * values[-1] else 0.0


def _check_misfit(fit: EllipsoidFit, r_squared: float) -> None:
    """Raise `CalibrationError` where the readings do not lie on an ellipsoid."""
    axes = np.linalg.eigvalsh(theta_to_matrix(fit.theta))
    noise = math.sqrt(fit.variance)
    if r_squared >= MIN_R_SQUARED and CURVATURE_STDDEVS * noise <= axes[0] ** 2 / axes[2]:
        return
    what = f"readings lie {100.0 * noise / fit.strength:.2g} % of the field's strength off the best ellipsoid"
    raise CalibrationError("field", what, allowed="must lie on one but for small noise", remedy=MISFIT_REMEDY)


def _check_stretch(fit: EllipsoidFit) -> None:
    """Raise `CalibrationError` where the soft iron is none: an axis that hardly sees the field."""
    axes = np.linalg.eigvalsh(theta_to_matrix(fit.theta))
    if axes[2] > MAX_STRETCH * axes[0]:
        what = f"stretches one way {axes[2] / axes[0]:.3g} times as much as another"
        remedy = "check that all three axes work and are in one unit"
        raise CalibrationError("soft_iron", what, allowed=f"must be at most {MAX_STRETCH:g}", remedy=remedy)


def _verdict_reasons(
    fit: EllipsoidFit, spread: ReadingSpread, max_relative_stddev: float, r_squared: float, white: Whiteness
) -> tuple[str, ...]:
    """Return what speaks against a calibration."""
    reasons: tuple[str, ...] = ()
    if max_relative_stddev > WARN_ABOVE:
        missing = _ellipsoid_diagnosis.find_missing_motion(fit, spread, WARN_ABOVE)
        reasons += stddev_reasons(max_relative_stddev, f"{missing.motion}; {missing.remedy}, or record for longer")
    reasons += correlation_reasons(white)
    if r_squared < WARN_R_SQUARED:
        reasons += (f"{100.0 * r_squared:.3g} % of the readings' variance explained: {MISFIT_REMEDY}",)
    if fit.basis.shape[1] < PARAMETERS and fit.variance > 0.0:
        reasons += _sphere.reasons(fit, spread)
    return reasons


def _axis_unit_error(field: FloatArray) -> CalibrationError | None:
    """Return the error of an axis in another unit than the two others, where all would be well but for that."""
    with np.errstate(all="ignore"):
        away = np.log10(field.std(axis=0))
        away -= np.median(away)
    if not np.isfinite(away).all():
        return None
    axis = int(np.abs(away).argmax())
    near = int(np.rint(away[axis]))
    for power in (near, near - 1, near + 1) if near else ():
        factor = np.ones(3)
        factor[axis] = 10.0**-power
        if not _fits_ellipsoid(field * factor):
            continue
        what, allowed = f"looks like {10.0**power:g} times the others", "must be in the unit of the other axes"
        remedy = f"give all three axes in one unit: multiply this one by {10.0**-power:g}, unless the axis is broken"
        return CalibrationError(f"field along {AXES[axis]}", what, allowed=allowed, remedy=remedy)
    return None


def _fits_ellipsoid(field: FloatArray) -> bool:
    """Tell whether readings (n, 3) lie on an ellipsoid that they tell and that soft iron makes."""
    if not (np.isfinite(field).all() and np.ptp(field, axis=0).all()):
        return False  # readings of one value along an axis determine no ellipsoid
    stream = EllipsoidFitter(soft_iron=True)
    stream.add(field)
    fit = stream.fit()
    axes = np.linalg.eigvalsh(theta_to_matrix(fit.theta))
    alike = axes[2] <= MAX_UNIT_STRETCH * axes[0] and math.sqrt(fit.variance) <= REFUSE_ABOVE * fit.strength
    return bool(alike) and fit.converged and fit.max_relative_stddev[0] <= REFUSE_ABOVE

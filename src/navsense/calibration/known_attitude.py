"""Calibration of a magnetometer with known attitude, from a source independent of the magnetometer.

    m = scale soft_iron R_ws^-1 direction_w + bias + noise        det soft_iron = 1

m is the reading in the sensor frame, R_ws takes sensor coordinates to world coordinates, direction_w is the unit vector
of the earth's field in the world. The 14 numbers of scale, soft iron, direction and bias are fitted together by maximum
likelihood (`_attitude_fit`), from sums over the readings (`_gram_sums`). The soft iron can be asymmetric: it includes
the rotation between the sensor and the frame of the attitude. Without soft iron, the model is that of GTSAM's
`MagFactor3`: seven numbers with six degrees of freedom.

Only the whiteness test needs the readings in time order. If the motion does not excite all parameters, calibration
fails (`_attitude_diagnosis`). Motion within the attitude errors `attitude_stddev` does not count. The default of half a
degree is typical for the attitude filter of a small robot; give a smaller value for a better attitude.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.calibration import _attitude_diagnosis as diagnosis
from navsense.calibration import checks, verdict
from navsense.calibration._attitude_diagnosis import MotionExcitation
from navsense.calibration._attitude_fit import (
    TRACELESS,
    AttitudeFit,
    SecondMoments,
    initial_fit,
    noise_covariance,
    refine_fit,
    residual_covariance,
    tangent_plane,
)
from navsense.calibration._gram_sums import GramSums
from navsense.calibration.result import NAMES, Calibration
from navsense.calibration.units import check_scale, validate_positive, validate_strength, validate_unit
from navsense.calibration.verdict import Verdict, Whiteness
from navsense.core.errors import CalibrationError
from navsense.core.typing import AnyArray, FloatArray, Quaternions, Vectors

ATTITUDE_STDDEV: Final = math.radians(0.5)
"""Default standard deviation of the attitude about each axis (rad)."""

MAX_ATTITUDE_STDDEV: Final = 0.5
"""Largest standard deviation of the attitude (rad). Any motion is within larger errors."""

MAX_RESIDUAL_SHARE: Final = 0.5
"""gain s^2 for attitude errors s that explain all residuals, above which calibration fails: more error than motion."""

LOW_GAIN: Final = diagnosis.WARN_ERROR_SHARE / ATTITUDE_STDDEV**2
"""Attitude error gain up to which the motion is sufficient, if the residuals show no attitude errors."""

SUFFICIENT_GAIN: Final = 10.0
"""Attitude error gain up to which the motion is sufficient in any case: rotations of some 20 degrees about all axes."""

CONVENTION_READINGS: Final = 2000
"""Readings for the test of other quaternion conventions."""

CONVENTION_VARIANCE: Final = 1e-6
"""Unexplained share of the variance (0.001 of the field) up to which no other quaternion convention is tested."""

MISFIT_REMEDY: Final = (
    "check that readings and attitudes are of the same instants, that the attitude is w x y z from sensor to world,"
    " and that it was not made from this magnetometer"
)
"""Remedy if readings and attitudes do not agree."""

CONVENTIONS: Final = {
    "x y z w, from sensor to world": ((3, 0, 1, 2), 1.0),
    "w x y z, but from world to sensor": ((0, 1, 2, 3), -1.0),
}
"""Other quaternion conventions: positions of w x y z, sign of x y z.

Both errors together are w x y z of another rotation, between frames that differ by 90 degrees. The mounting shows them.
"""


class KnownAttitudeCalibrator:
    """Calibration with known attitude from readings that arrive in batches, for example on a moving vehicle.

    The arguments are those of `known_attitude`. Raises `CalibrationError` for invalid ones.

        calibrator = ns.calibration.KnownAttitudeCalibrator(unit="uT")
        calibrator.update(field, rotation_ws)    # any number of times
        calibration = calibrator.solve()
    """

    def __init__(
        self,
        *,
        unit: str | None = "T",
        strength: float | None = None,
        soft_iron: bool = True,
        direction: ArrayLike | None = None,
        attitude_stddev: float = ATTITUDE_STDDEV,
        noise_stddev: float | None = None,
    ) -> None:
        """Start without readings."""
        self._unit = validate_unit(unit)
        self._strength = validate_strength(strength, unit)
        self._soft_iron = checks.validate_bool("soft_iron", soft_iron)
        self._direction = _validate_direction(direction)
        self._attitude_stddev = _validate_attitude_stddev(attitude_stddev)
        self._noise_stddev = validate_positive("noise_stddev", noise_stddev)
        self._gram_sums, self._saturation = GramSums(), checks.SaturationCheck()
        self._field_subsample, self._rotation_subsample = checks.Subsample(3), checks.Subsample(4)

    @property
    def count(self) -> int:
        """The number of readings."""
        return self._gram_sums.count

    def update(self, field: ArrayLike, rotation_ws: ArrayLike) -> None:
        """Add readings (n, 3) and their attitudes (n, 4) w x y z; n can be 0.

        Raises `CalibrationError` for invalid arrays, and then adds nothing.
        """
        rows = checks.validate_field(field)
        rotation = checks.validate_rotation(rotation_ws, rows.shape[0])
        self._gram_sums.update(rows, rotation)
        self._saturation.update(rows)
        self._field_subsample.update(rows)
        self._rotation_subsample.update(rotation)

    def solve(self) -> Calibration:
        """Return the calibration from all readings so far. You can add more readings afterwards.

        Raises `CalibrationError` if the calibration cannot be trusted.
        """
        sums = self.second_moments()
        start = initial_fit(sums, self._direction, soft_iron=self._soft_iron)
        motion = diagnosis.assess_excitation(sums, start)
        _check_motion(motion, self._attitude_stddev, start)
        fit, covariance, noise = refine_fit(sums, start)
        r_squared = 1.0 - float(np.trace(noise)) / sums.variance
        residuals = diagnosis.FitResiduals.from_fit(
            self._field_subsample, self._rotation_subsample, self._gram_sums.first, sums, fit
        )
        reasons = verdict.zero_reading_reasons(self._saturation.zeros)
        if residuals.has_noise:
            reasons += verdict.distribution_reasons(residuals.squares, 3, self._field_subsample, residuals.stddev)
        if self._direction is not None:
            diagnosis.check_direction(sums, fit)
        if r_squared < verdict.MIN_R_SQUARED:
            what = f"{100.0 * max(r_squared, 0.0):.2g} % of the readings' variance explained by the attitude"
            allowed = f"must be at least {100.0 * verdict.MIN_R_SQUARED:g} %"
            raise CalibrationError("field", what, allowed=allowed, remedy="; ".join((*reasons, MISFIT_REMEDY)))
        white = _assess_whiteness(self._gram_sums, sums, fit)
        detected_stddev = residuals.attitude_stddev(white.inflation)
        sufficient = motion.attitude_error_gain <= (SUFFICIENT_GAIN if detected_stddev else LOW_GAIN)
        if sufficient:
            diagnosis.check_stretch(fit)
        largest_stddev = max(
            math.sqrt(float(np.trace(noise)) / 2.0) / fit.scale * (self._attitude_stddev > 0.0), detected_stddev
        )  # of attitude errors that explain the residuals
        if motion.attitude_error_gain * largest_stddev**2 > MAX_RESIDUAL_SHARE:
            if not sufficient:
                within_errors = f"{motion}, no more than errors of the attitude that the residuals show"
                raise _motion_error(within_errors, motion, fit)
            what = f"{100.0 * math.sqrt(2.0 / 3.0) * largest_stddev:.2g} % of the field an axis"
            remedy = "; ".join((*reasons, MISFIT_REMEDY))
            raise CalibrationError("residuals", what, allowed="must be small against the field", remedy=remedy)
        diagnosis.check_stretch(fit)
        diagnosis.check_sign(fit)
        check_scale(fit.scale * sums.size, self._unit, self._strength)
        covariance = covariance * white.inflation
        stddev = math.sqrt(float(np.linalg.eigvalsh(covariance)[-1]))
        _check_stddev(stddev, white, motion, fit, sufficient=sufficient)
        if residuals.has_noise:
            reasons += verdict.direction_dependence_reasons(
                residuals.along_field, residuals.directions, white.inflation
            )
        reasons += self._excess_noise_reasons(sums, fit, noise) + verdict.correlation_reasons(white)
        remedy = "record for longer" if sufficient else f"{motion}; {motion.remedy}, or record for longer"
        uncertain = verdict.stddev_reasons(stddev, remedy)
        is_correlation_cause = stddev <= verdict.WARN_ABOVE * math.sqrt(white.inflation)  # the cause comes first
        reasons = reasons + uncertain if is_correlation_cause else uncertain + reasons
        reasons += self._attitude_error_reasons(motion, largest_stddev, detected_stddev, sufficient=sufficient)
        if r_squared < verdict.WARN_R_SQUARED:
            reasons += (f"{100.0 * r_squared:.3g} % of the readings' variance explained: {MISFIT_REMEDY}",)
        quality = Verdict(stddev, r_squared, white, reasons + diagnosis.mounting_reasons(fit))
        return self._make_result(sums, fit, covariance, noise, quality)

    def second_moments(self) -> SecondMoments:
        """Return the moments of all readings. Raises `CalibrationError` for too few, constant or saturated ones."""
        parameters = 4 + 2 * (self._direction is None) + 8 * self._soft_iron
        checks.check_count(self.count, math.ceil(parameters / 3.0) + verdict.MIN_REDUNDANCY, parameters)
        self._saturation.check()
        sums = SecondMoments.from_products(self._gram_sums.products(0), self.count)
        if not 0.0 < sums.size < math.inf:
            remedy = "give them in a unit in which the earth's field is a smaller number"
            raise CalibrationError("field", "cannot be squared", allowed="must be numbers of usual size", remedy=remedy)
        return sums

    def _excess_noise_reasons(self, sums: SecondMoments, fit: AttitudeFit, noise: FloatArray) -> tuple[str, ...]:
        """Return a reason if the residuals exceed the declared noise and the errors of the attitude."""
        if self._noise_stddev is None:
            return ()
        attitude_noise = self._attitude_stddev * fit.scale * sums.size  # across the field: on two of three axes
        stddev = sums.size * math.sqrt(float(np.trace(noise)) / 3.0)
        declared = math.sqrt(self._noise_stddev**2 + 2.0 / 3.0 * attitude_noise**2)
        return verdict.excess_noise_reasons(stddev, declared, self._unit)

    def _attitude_error_reasons(
        self, motion: MotionExcitation, largest_stddev: float, detected_stddev: float, *, sufficient: bool
    ) -> tuple[str, ...]:
        """Return a reason if attitude errors affect the result: the declared, the detected or the largest possible."""
        gain, declared_stddev = motion.attitude_error_gain, self._attitude_stddev
        if (share := gain * declared_stddev**2) > diagnosis.WARN_ERROR_SHARE:
            reason = (
                f"{motion}: attitude errors of {math.degrees(declared_stddev):.2g} deg make it wrong by"
                f" {100.0 * share:.2g} %; {motion.remedy}, or give the attitude's own attitude_stddev"
            )
            return (reason,)
        if gain * detected_stddev**2 > diagnosis.WARN_ERROR_SHARE:
            return (_describe_residual_errors(motion, detected_stddev, sufficient=sufficient),)
        if gain * largest_stddev**2 > diagnosis.REFUSE_ERROR_SHARE:
            return (_describe_residual_errors(motion, largest_stddev, sufficient=sufficient),)
        return ()

    def fit_alternative(self, field: Vectors, rotation_ws: Quaternions) -> tuple[float, float]:
        """Fit other readings (n, 3), (n, 4). Return the unexplained share of variance and the size of the soft iron."""
        gram_sums = GramSums()
        gram_sums.update(field, rotation_ws)
        sums = SecondMoments.from_products(gram_sums.products(0), gram_sums.count)
        fit, _, _ = refine_fit(sums, initial_fit(sums, self._direction, soft_iron=self._soft_iron))
        unexplained = float(np.trace(residual_covariance(sums, fit))) / sums.variance
        return unexplained, float(np.linalg.norm(fit.iron - fit.scale * np.eye(3))) / fit.scale

    def _make_result(
        self, sums: SecondMoments, fit: AttitudeFit, covariance: FloatArray, noise: FloatArray, quality: Verdict
    ) -> Calibration:
        """Return the calibration in the unit of the readings."""
        names, slopes = _calibration_numbers(fit)
        unit = np.array([sums.size if name.startswith(("scale", "bias")) else 1.0 for name in names])
        slopes = slopes * unit[:, None]
        return Calibration(
            method="known attitude",
            scale=fit.scale * sums.size,
            direction=fit.direction.copy(),
            bias=fit.bias * sums.size + self._gram_sums.first,
            soft_iron=fit.iron / fit.scale,
            covariance=slopes @ covariance @ slopes.T,
            names=names,
            degrees_of_freedom=fit.size,
            residual_stddev=sums.size * math.sqrt(float(np.trace(noise)) / 3.0),
            count=self.count,
            unit=self._unit,
            strength=self._strength,
            verdict=quality,
        )


def known_attitude(
    field: ArrayLike,
    rotation_ws: ArrayLike,
    *,
    unit: str | None = "T",
    strength: float | None = None,
    soft_iron: bool = True,
    direction: ArrayLike | None = None,
    attitude_stddev: float = ATTITUDE_STDDEV,
    noise_stddev: float | None = None,
) -> Calibration:
    """Return the calibration from readings with known attitude, in time order.

    field: readings (n, 3), sensor frame, in `unit`.
    rotation_ws: attitudes (n, 4) w x y z, sensor to world.
    unit: "T", "mT", "uT", "nT", "G", "mG", or None for any numbers.
    strength: known strength of the field in `unit`.
    soft_iron: False if the sensor has no soft iron.
    direction: known direction (3,) of the field, world frame.
    attitude_stddev: standard deviation of the attitude about each axis (rad).
    noise_stddev: noise of the sensor per axis in `unit`; larger residuals are a reason against the result.

        calibration = ns.calibration.known_attitude(field, rotation_ws, unit="uT")
        field_s = calibration.apply(field)

    Raises `CalibrationError` for invalid readings, and if the calibration cannot be trusted.
    """
    calibrator = KnownAttitudeCalibrator(
        unit=unit,
        strength=strength,
        soft_iron=soft_iron,
        direction=direction,
        attitude_stddev=attitude_stddev,
        noise_stddev=noise_stddev,
    )
    calibrator.update(field, rotation_ws)
    calibrator.second_moments()
    try:
        result = calibrator.solve()
    except CalibrationError as error:
        limit = 1.0 - verdict.WARN_R_SQUARED if error.what.startswith("motion") else CONVENTION_VARIANCE
        convention = _find_convention(calibrator, field, rotation_ws, limit)
        if convention:
            raise _convention_error(convention) from error
        raise
    if not result.verdict.ok:
        convention = _find_convention(calibrator, field, rotation_ws, CONVENTION_VARIANCE)
        if convention:
            raise _convention_error(convention)
    return result


def _validate_direction(direction: ArrayLike | None) -> FloatArray | None:
    """Return a unit vector (3,), or None for None."""
    if direction is None:
        return None
    try:
        vector = np.asarray(direction, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise CalibrationError("direction", str(error), allowed="must be three finite numbers, not all 0") from error
    if vector.shape != (3,) or not np.isfinite(vector).all() or not vector.any():
        raise CalibrationError("direction", direction, allowed="must be three finite numbers, not all 0")
    vector = vector / np.abs(vector).max()
    return np.asarray(vector / np.linalg.norm(vector))


def _validate_attitude_stddev(stddev: float) -> float:
    given: AnyArray = np.asarray(stddev)
    allowed = f"must be from 0 to {MAX_ATTITUDE_STDDEV:g} (rad)"
    if given.ndim or given.dtype.kind not in "fiu":
        raise CalibrationError("attitude_stddev", stddev, allowed=allowed)
    if not 0.0 <= float(given) <= MAX_ATTITUDE_STDDEV:
        remedy = "give radians, 0.0087 for half a degree"
        raise CalibrationError("attitude_stddev", f"{float(given):.6g}", allowed=allowed, remedy=remedy)
    return float(given)


def _check_motion(motion: MotionExcitation, stddev: float, fit: AttitudeFit) -> None:
    """Raise `CalibrationError` if attitude errors (rad) can explain the motion that excites a combination."""
    if (
        math.isfinite(motion.attitude_error_gain)
        and motion.attitude_error_gain * stddev**2 <= diagnosis.REFUSE_ERROR_SHARE
    ):
        return
    error = _motion_error(str(motion), motion, fit)
    if motion.attitude_error_gain * ATTITUDE_STDDEV**2 <= diagnosis.REFUSE_ERROR_SHARE:
        error.remedy += f"; or check attitude_stddev, {stddev:.3g} rad are {math.degrees(stddev):.3g} deg"
    raise error


def _check_stddev(
    stddev: float, white: Whiteness, motion: MotionExcitation, fit: AttitudeFit, *, sufficient: bool
) -> None:
    """Raise `CalibrationError` if a relative standard deviation is too large, with its cause."""
    if stddev <= verdict.REFUSE_ABOVE:
        return
    known = f"known to {100.0 * stddev:.2g} % of the field only"
    if stddev <= verdict.REFUSE_ABOVE * math.sqrt(white.inflation):
        remedy = verdict.correlation_reasons(white)[0]
        raise CalibrationError(f"residuals: {known}", allowed="must be white", remedy=remedy)
    if not sufficient:
        raise _motion_error(f"{known}, {motion}", motion, fit)
    allowed = f"must be known to {100.0 * verdict.REFUSE_ABOVE:g} %"
    raise CalibrationError("field", known, allowed=allowed, remedy=f"record for longer, or {MISFIT_REMEDY}")


def _describe_residual_errors(motion: MotionExcitation, stddev: float, *, sufficient: bool) -> str:
    """Return the reason for residuals that attitude errors with this standard deviation (rad) can explain."""
    share = f"{100.0 * min(1.0, motion.attitude_error_gain * stddev**2):.2g} %"
    errors = f"as attitude errors of {math.degrees(stddev):.2g} deg make: if they are, it is wrong by {share}"
    if sufficient:
        size = 100.0 * math.sqrt(2.0 / 3.0) * stddev
        return f"residuals of {size:.2g} % of the field an axis, {errors}; {MISFIT_REMEDY}"
    return f"{motion}, residuals {errors}; {motion.remedy}"


def _motion_error(what: str, motion: MotionExcitation, fit: AttitudeFit) -> CalibrationError:
    """Return the error of a motion that does not excite a combination of parameters."""
    names, slopes = _calibration_numbers(
        AttitudeFit(np.eye(3), fit.direction, np.zeros(3), fit.seeks_direction, fit.seeks_iron)
    )
    parts = np.linalg.norm(slopes @ motion.weakest_combinations, axis=1)
    largest = sorted(int(i) for i in np.argsort(-parts)[:4] if parts[i] > 0.3 * parts.max())
    allowed = f"must separate {', '.join(names[i] for i in largest)}"
    return CalibrationError(f"motion: {what}", allowed=allowed, remedy=motion.remedy)


def _convention_error(convention: str) -> CalibrationError:
    what = f"fits the readings when read as {convention}"
    remedy = "give unit quaternions w x y z that take sensor coordinates to world coordinates"
    return CalibrationError("rotation_ws", what, allowed="must be w x y z, from sensor to world", remedy=remedy)


def _assess_whiteness(gram_sums: GramSums, sums: SecondMoments, fit: AttitudeFit) -> Whiteness:
    """Return the whiteness of the residuals, weighted with the inverse of their covariance."""
    contrast = fit.contrast.copy()
    contrast[:, 10:] /= sums.size
    noise = noise_covariance(sums, fit)
    if float(np.trace(noise)) < verdict.ROUNDING_VARIANCE * float(np.trace(sums.square)):
        return Whiteness()
    weight = np.linalg.inv(noise)
    counts = [gram_sums.blocks(level) for level in range(1, verdict.BLOCK_LEVELS + 1)]
    counts = [count for count in counts if count]
    ratio = [
        float(np.sum(weight * (contrast @ gram_sums.products(level) @ contrast.T)))
        / (3.0 * count * float(verdict.BLOCK_FACTOR) ** level)
        for level, count in enumerate(counts, 1)
    ]
    return verdict.assess_whiteness(ratio, counts, 3)


def _calibration_numbers(fit: AttitudeFit) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names (k,) of the fitted numbers of a calibration, and their derivatives (k, n) by the parameters."""
    scale, size = fit.scale, fit.size
    slopes = np.zeros((16, size))
    slopes[0, 3] = scale
    slopes[4:7, :3] = scale * np.eye(3)
    if fit.seeks_direction:
        slopes[1:4, 4:6] = tangent_plane(fit.direction)
    if fit.seeks_iron:
        changes = (fit.iron / scale) @ TRACELESS
        slopes[7:, size - 8 :] = changes.reshape(8, 9).T
    fitted = [0, *((1, 2, 3) if fit.seeks_direction else ()), 4, 5, 6, *(range(7, 16) if fit.seeks_iron else ())]
    return tuple(NAMES[i] for i in fitted), slopes[fitted]


def _find_convention(
    calibrator: KnownAttitudeCalibrator, field: ArrayLike, rotation_ws: ArrayLike, limit: float
) -> str:
    """Return another quaternion convention that explains the readings, or an empty text.

    None is sought if the right convention leaves at most the share `limit` of the variance unexplained.
    """
    rows, rotation = checks.validate_field(field), checks.validate_rotation(rotation_ws, np.shape(field)[0])
    step = max(1, rows.shape[0] // CONVENTION_READINGS)
    rows, rotation = np.ascontiguousarray(rows[::step]), rotation[::step]
    if rows.shape[0] < verdict.MIN_REDUNDANCY or not np.ptp(rows):
        return ""
    unexplained, _ = calibrator.fit_alternative(rows, np.ascontiguousarray(rotation))
    if unexplained <= limit:
        return ""
    candidates = []
    for convention, (order, sign) in CONVENTIONS.items():
        other = rotation[:, order] * np.array((1.0, sign, sign, sign))
        other_unexplained, iron = calibrator.fit_alternative(rows, np.ascontiguousarray(other))
        if other_unexplained < min(1.0 - verdict.WARN_R_SQUARED, 0.25 * unexplained):
            candidates.append((iron, convention))
    return min(candidates)[1] if candidates else ""

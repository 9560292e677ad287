"""Calibration of a magnetometer with known attitude, from a source independent of the magnetometer.

    m = scale soft_iron R_ws^-1 direction_w + bias + noise        det soft_iron = 1

m is the reading in the sensor frame, R_ws takes sensor coordinates to world coordinates, direction_w is the unit vector
of the earth's field in the world. The 14 parameters of scale, soft iron, direction and bias are estimated together by
maximum likelihood (`_attitude_fit`). The soft iron can be asymmetric: it includes the rotation between the sensor and
the frame of the attitude. Without soft iron, the model is that of GTSAM's `MagFactor3`: seven numbers with six degrees
of freedom. Only the whiteness test needs the readings in time order.

**Excitation.** Let H be the information matrix of the parameters per reading (noise 1, scale 1, no soft iron). Let Q be
the same matrix with each attitude replaced by its derivative by a small rotation, R_ws [e_c]x, summed over c. Attitude
errors with the standard deviation s about each axis, independent from reading to reading, add s^2 Q to H: they look
like motion. The estimate of a combination v of parameters is then too small by the share

    s^2 v'Q v / v'H v          (errors in variables, first order, equal weights)

`MotionExcitation.attitude_error_gain` is the largest such share over all v, for s = 1 rad. If gain s^2 is 1, attitude
errors explain all the motion. For rotation about one axis only, this holds for the bias along that axis, however long
the record is. If the motion does not excite all parameters, calibration fails. Motion within the attitude errors
`attitude_stddev` does not count. The default of half a degree is typical for the attitude filter of a small robot; give
a smaller value for a better attitude.

**Axes.** m = A R_ws^-1 f + b with A = scale S. The same readings result from (-A, -f). If f is unknown, det A > 0
decides. Readings with one axis of wrong sign, or two exchanged axes, then look like a mounting rotated by 180 degrees
in a reversed field. Only a known f separates the two cases. A known f with a wrong direction cannot be absorbed by A,
which is on the other side of the attitude.

**Residuals.** r = (m - b - A u) / scale with u = R_ws^-1 f. Independent attitude errors with the standard deviation s
rotate the field: they appear across it, never along it:

    cov(r) = N + s^2 S (1 - u u') S'

N is the covariance of the magnetometer noise, equal for all u. s^2 is therefore the slope of the products r_a r_b over
the entries of S (1 - u u') S'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from navsense.calibration import checks, verdict
from navsense.calibration._attitude_fit import (
    TRACELESS,
    AttitudeFit,
    GramSums,
    SecondMoments,
    compute_attitude_rows,
    compute_information,
    find_initial_fit,
    make_tangent_plane,
    noise_covariance,
    refine_fit,
    residual_covariance,
)
from navsense.calibration.checks import Subsample
from navsense.calibration.result import NAMES, Calibration
from navsense.calibration.units import check_scale, validate_number, validate_positive, validate_strength, validate_unit
from navsense.calibration.verdict import ROUNDING_VARIANCE, Verdict, Whiteness, format_vector
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray, Quaternions, Vectors

ATTITUDE_STDDEV: Final = math.radians(0.5)
"""Default standard deviation of the attitude about each axis (rad)."""

MAX_ATTITUDE_STDDEV: Final = 0.5
"""Largest standard deviation of the attitude (rad). Any motion is within larger errors."""

SINGULAR: Final = 1e-12
"""Relative eigenvalue of the information matrix below which it is a rounding error: rotations of 1e-6 rad."""

REFUSE_ERROR_SHARE: Final = 0.1
"""gain s^2 above which calibration fails: 10 percent of the field, 6 degrees."""

WARN_ERROR_SHARE: Final = 0.01
"""gain s^2 above which the verdict is not ok."""

MAX_RESIDUAL_SHARE: Final = 0.5
"""gain s^2 for attitude errors s that explain all residuals, above which calibration fails: more error than motion."""

LOW_GAIN: Final = WARN_ERROR_SHARE / ATTITUDE_STDDEV**2
"""Attitude error gain up to which the motion is sufficient, if the residuals show no attitude errors."""

SUFFICIENT_GAIN: Final = 10.0
"""Attitude error gain up to which the motion is sufficient in any case: rotations of some 20 degrees about all axes."""

MIN_ROTATION_SINE: Final = math.sin(math.radians(5.0))
"""Rms sine of rotations below which the sensor hardly turned."""

MOUNTING_ROTATION: Final = math.radians(30.0)
"""Rotation of a soft iron from which it is a mounting: the attitude has other axes."""

HALF_ROTATION: Final = math.radians(150.0)
"""Rotation from which the mounting can be an axis of wrong sign or two exchanged axes."""

MAX_VARIANCE_RATIO: Final = 4.0
"""Residual variance for a known direction, relative to that for the fitted direction, above which it is wrong."""

MIN_DIRECTION_ERROR: Final = math.radians(3.0)
"""Smallest angle between a wrong direction and the fitted one."""

ANGLE_TOLERANCE: Final = math.radians(15.0)
"""Largest angle between two directions that count as equal."""

SIGNIFICANCE: Final = 5.0
"""Slope in standard deviations above which attitude errors are detected: false-alarm rate 3e-7 for a normal slope."""

PRODUCTS: Final = ((0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2))
"""Rows and columns of the products of residuals."""

CONVENTION_READINGS: Final = 2000
"""Readings for the test of other quaternion conventions."""

CONVENTION_VARIANCE: Final = 1e-6
"""Unexplained share of the variance (0.001 of the field) up to which no other quaternion convention is tested."""

CONVENTIONS: Final = {
    "x y z w, from sensor to world": ((3, 0, 1, 2), 1.0),
    "w x y z, but from world to sensor": ((0, 1, 2, 3), -1.0),
}
"""Other quaternion conventions: positions of w x y z, sign of x y z.

Both errors together are w x y z of another rotation, between frames that differ by 90 degrees. The mounting shows them.
"""

FRAME_HINT: Final = "the field points down in the north: z is negative in east-north-up, positive in north-east-down"

MISFIT_REMEDY: Final = (
    "check that readings and attitudes have the same times, that the attitude is w x y z from sensor to world,"
    " and that it does not depend on this magnetometer"
)
"""Remedy if readings and attitudes do not agree."""


@dataclass(frozen=True)
class MotionExcitation:
    """Excitation of the parameters by the motion.

    attitude_error_gain: error share for attitude errors of 1 rad, inf if a combination has no information.
    weakest_combinations: (n, k), the combination with this share, or all without information.
    mean: (3, 3), of R_ws.
    """

    attitude_error_gain: float
    weakest_combinations: FloatArray
    mean: FloatArray

    @property
    def rotations(self) -> tuple[FloatArray, FloatArray]:
        """Rms sine (3,), rising, of the movement of three world axes in the sensor frame, and the axes (3, 3) there."""
        _, lengths, axes = np.linalg.svd(self.mean)
        return np.sqrt(np.maximum(1.0 - lengths**2, 0.0)), np.asarray(axes)

    def __str__(self) -> str:
        """Describe the rotation of the sensor. Degrees are rounded to 0.001, far above their rounding errors."""
        sine, axes = self.rotations
        degrees = np.round(np.degrees(np.arcsin(np.minimum(sine, 1.0))), 3)
        if sine[2] < MIN_ROTATION_SINE:
            return f"rotates by only {degrees[2]:.2g} deg (rms)"
        main = axes[0] * np.sign(axes[0][np.argmax(np.abs(axes[0]))])
        others = f"by only {degrees[0]:.2g} deg (rms) about other axes"
        return f"rotates about {format_vector(main)} in the sensor, and {others}"

    @property
    def remedy(self) -> str:
        """The missing motion."""
        sine, axes = self.rotations
        if sine[2] < MIN_ROTATION_SINE:
            return "turn the sensor through 360 deg about two axes"
        main = "xyz"[int(np.argmax(np.abs(axes[0])))]
        others = " and ".join(axis for axis in "xyz" if axis != main)
        return f"turn the sensor by 30 deg or more about {others} too, to both sides, at different headings"


def assess_excitation(sums: SecondMoments, fit: AttitudeFit) -> MotionExcitation:
    """Return the excitation of the fitted parameters by the motion, near the direction of the fit."""
    jacobian = fit.without_soft_iron().jacobian()
    motion_information = compute_information(jacobian, sums.gram, np.eye(3))
    error_information = compute_information(jacobian, _rotate_gram(sums.gram), np.eye(3))
    values, axes = np.linalg.eigh(motion_information)
    mean = sums.gram[9, :9].reshape(3, 3)
    if values[0] < SINGULAR * values[-1]:
        return MotionExcitation(math.inf, axes[:, values < SINGULAR * values[-1]], mean)
    half = axes / np.sqrt(values)
    shares, combinations = np.linalg.eigh(half.T @ error_information @ half)
    return MotionExcitation(float(shares[-1]), half @ combinations[:, -1:], mean)


def _rotate_gram(gram: FloatArray) -> FloatArray:
    """Return the Gram matrix (10, 10) of the derivatives of z by small rotations, summed over three axes."""
    total = np.zeros((10, 10))
    for axis in np.eye(3):
        cross = np.cross(np.eye(3), -axis)  # [axis]x, transposed
        change = np.zeros((10, 10))
        for k in range(3):
            change[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = cross
        total += change @ gram @ change.T
    return total


def check_direction(sums: SecondMoments, fit: AttitudeFit) -> None:
    """Raise `CalibrationError` if the known direction of a fit disagrees with the readings."""
    free, _, noise = refine_fit(sums, find_initial_fit(sums, None, soft_iron=fit.fits_soft_iron))
    given, fitted = fit.direction, free.direction
    angle = _compute_angle(given, fitted)
    variance_limit = MAX_VARIANCE_RATIO * float(np.trace(noise))
    if float(np.trace(noise_covariance(sums, fit))) <= variance_limit or angle < MIN_DIRECTION_ERROR:
        return
    remedy = "check declination, inclination and the axes of the attitude's world, or omit direction"
    if _compute_angle(-given, fitted) < ANGLE_TOLERANCE:
        remedy = f"reverse its sign: {FRAME_HINT}"
    elif _compute_angle(given[[1, 0, 2]] * (1.0, 1.0, -1.0), fitted) < ANGLE_TOLERANCE:
        remedy = "direction and attitude have different world frames, east-north-up and north-east-down: use one"
    what = f"{format_vector(given)} differs by {math.degrees(angle):.3g} deg from the fit, {format_vector(fitted)}"
    raise CalibrationError("direction", what, allowed="must be the field's in the attitude's world", remedy=remedy)


def check_handedness(fit: AttitudeFit) -> None:
    """Raise `CalibrationError` if the determinant of the soft iron is not positive."""
    if np.linalg.det(fit.matrix) > 0.0:
        return
    rotation = find_nearest_rotation(-fit.matrix)
    angle = compute_rotation_angle(rotation)[0]
    if fit.fits_soft_iron and angle >= MOUNTING_ROTATION:
        axis_error = _find_axis_error(rotation) if angle > HALF_ROTATION else ""
        what = "left-handed" + (f": {axis_error}" if axis_error else "")
        remedy = "reverse the sign of one axis of the sensor or exchange two axes, so that they are right-handed"
    else:
        what, remedy = (
            "opposite to the direction given",
            f"reverse the sign of direction or of all readings: {FRAME_HINT}",
        )
    raise CalibrationError("field", what, allowed="must agree with direction, in right-handed axes", remedy=remedy)


def list_mounting_reasons(fit: AttitudeFit) -> tuple[str, ...]:
    """Return a reason if the soft iron rotates the field as a mounting does."""
    rotation = find_nearest_rotation(fit.matrix)
    angle = compute_rotation_angle(rotation)[0]
    if angle < MOUNTING_ROTATION:
        return ()
    reason = (
        f"the soft iron turns the field by {math.degrees(angle):.3g} deg: the readings' axes are not those of the"
        " attitude; rotate the readings, or give the attitude of the readings' axes, w x y z"
    )
    axis_error = _find_axis_error(rotation) if angle > HALF_ROTATION and fit.fits_direction else ""
    if axis_error:
        reason += f"; or {axis_error}, if direction {format_vector(fit.direction)} is against the field: {FRAME_HINT}"
    return (reason,)


def _compute_angle(a: FloatArray, b: FloatArray) -> float:
    """Return the angle (rad) between two unit vectors."""
    return float(np.arccos(np.clip(a @ b, -1.0, 1.0)))


def find_nearest_rotation(matrix: FloatArray) -> FloatArray:
    """Return the rotation (3, 3) nearest to a matrix with a positive determinant."""
    left, _, right = np.linalg.svd(matrix)
    return np.asarray(left @ right)


def compute_rotation_angle(rotation: FloatArray) -> tuple[float, FloatArray]:
    """Return the angle a (rad, 0 to pi) of a rotation (3, 3), and its axis (3,) times 2 sin a."""
    axis = np.array([rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]])
    return math.atan2(float(np.linalg.norm(axis)), float(np.trace(rotation)) - 1.0), axis


def _find_axis_error(rotation: FloatArray) -> str:
    """Return the wrong sign or exchange of axes that looks like a rotation by 180 degrees, or an empty text."""
    axis = np.linalg.eigh(rotation + rotation.T)[1][:, 2]
    for k, name in enumerate("xyz"):
        if abs(axis[k]) > math.cos(ANGLE_TOLERANCE):
            return f"the sign of {name} is wrong"
        i, j = (other for other in range(3) if other != k)
        if abs(axis[i] - axis[j]) > math.sqrt(2.0) * math.cos(ANGLE_TOLERANCE):
            return f"{'xyz'[i]} and {'xyz'[j]} are exchanged"
    return ""


class FitResiduals(NamedTuple):
    """Residuals of a subsample.

    rows: r (n, 3), relative to the field.
    squares: (n,) r' r over the variance of an axis.
    directions: u (n, 3).
    soft_iron: S (3, 3).
    stddev: of an axis, in the unit of the readings.
    has_noise: False if r are rounding errors.
    """

    rows: Vectors
    squares: FloatArray
    directions: Vectors
    soft_iron: FloatArray
    stddev: float
    has_noise: bool

    @classmethod
    def from_fit(
        cls,
        field: Subsample,
        rotation: Subsample,
        first: FloatArray,
        sums: SecondMoments,
        fit: AttitudeFit,
    ) -> FitResiduals:
        """Return the residuals of the readings `field` with the attitudes `rotation`. `first`: origin of `sums`."""
        z = compute_attitude_rows(rotation.rows)
        rows = (field.rows - first) / sums.size - z @ fit.theta.T
        trace = float(np.trace(noise_covariance(sums, fit)))
        return cls(
            rows=rows / fit.scale,
            squares=3.0 * np.sum(rows**2, axis=1) / trace,
            directions=np.einsum("nkj,k->nj", z[:, :9].reshape(-1, 3, 3), fit.direction),
            soft_iron=fit.matrix / fit.scale,
            stddev=sums.size * math.sqrt(trace / 3.0),
            has_noise=trace > ROUNDING_VARIANCE * float(np.trace(sums.square)),
        )

    @property
    def along_field(self) -> FloatArray:
        """The component (n,) of S^-1 r along u."""
        return np.asarray(np.sum(self.directions * np.linalg.solve(self.soft_iron, self.rows.T).T, axis=1))

    def attitude_stddev(self, inflation: float) -> float:
        """Return the standard deviation s (rad) of attitude errors that the residuals show, 0 if not significant."""
        i, j = PRODUCTS
        field = self.directions @ self.soft_iron.T
        across = self.soft_iron @ self.soft_iron.T - np.einsum("ni,nj->nij", field, field)
        slopes, products = across[:, i, j], self.rows[:, i] * self.rows[:, j]
        slopes, products = slopes - slopes.mean(axis=0), products - products.mean(axis=0)
        weight = float(np.sum(slopes**2))
        if not (self.has_noise and weight > 0.0):
            return 0.0
        square = float(np.sum(slopes * products)) / weight
        stddev = math.sqrt(float(np.sum(np.sum(slopes * (products - square * slopes), axis=1) ** 2))) / weight
        return math.sqrt(square) if square > SIGNIFICANCE * math.sqrt(inflation) * stddev else 0.0


class KnownAttitudeCalibrator:
    """Calibration with known attitude from readings that arrive in batches, for example on a moving vehicle.

    The arguments are those of `known_attitude`. Raises `CalibrationError` for invalid ones.

    >>> calibrator = ns.calibration.KnownAttitudeCalibrator(unit="T", attitude_stddev=0.0)
    >>> calibrator.update(field, rotation_ws)  # any number of times
    >>> calibrator.solve().verdict.ok
    True
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
        self._field_subsample, self._rotation_subsample = Subsample(3), Subsample(4)

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
        start = find_initial_fit(sums, self._direction, soft_iron=self._soft_iron)
        motion = assess_excitation(sums, start)
        _check_motion(motion, self._attitude_stddev, start)
        fit, covariance, noise = refine_fit(sums, start)
        r_squared = 1.0 - float(np.trace(noise)) / sums.variance
        residuals = FitResiduals.from_fit(
            self._field_subsample, self._rotation_subsample, self._gram_sums.first, sums, fit
        )
        reasons = verdict.list_zero_reading_reasons(self._saturation.zeros)
        if residuals.has_noise:
            reasons += verdict.list_distribution_reasons(residuals.squares, 3, self._field_subsample, residuals.stddev)
        if self._direction is not None:
            check_direction(sums, fit)
        misfit_remedy = "; ".join((*reasons, MISFIT_REMEDY))
        if r_squared < verdict.MIN_R_SQUARED:
            what = f"the attitude explains {100.0 * max(r_squared, 0.0):.2g} % of the readings' variance"
            allowed = f"must be at least {100.0 * verdict.MIN_R_SQUARED:g} %"
            raise CalibrationError("field", what, allowed=allowed, remedy=misfit_remedy)
        whiteness = _assess_whiteness(self._gram_sums, sums, fit)
        detected_stddev = residuals.attitude_stddev(whiteness.inflation)
        sufficient = motion.attitude_error_gain <= (SUFFICIENT_GAIN if detected_stddev else LOW_GAIN)
        if sufficient:
            _check_stretch(fit)
        largest_stddev = max(
            math.sqrt(float(np.trace(noise)) / 2.0) / fit.scale * (self._attitude_stddev > 0.0), detected_stddev
        )  # of attitude errors that explain the residuals
        if motion.attitude_error_gain * largest_stddev**2 > MAX_RESIDUAL_SHARE:
            if not sufficient:
                raise _make_motion_error(f"{motion}, within the attitude errors that the residuals show", motion, fit)
            what = f"{100.0 * math.sqrt(2.0 / 3.0) * largest_stddev:.2g} % of the field per axis"
            allowed = "must be small compared with the field"
            raise CalibrationError("residuals", what, allowed=allowed, remedy=misfit_remedy)
        _check_stretch(fit)
        check_handedness(fit)
        check_scale(fit.scale * sums.size, self._unit, self._strength)
        covariance = covariance * whiteness.inflation
        stddev = math.sqrt(float(np.linalg.eigvalsh(covariance)[-1]))
        _check_stddev(stddev, whiteness, motion, fit, sufficient=sufficient)
        if residuals.has_noise:
            reasons += verdict.list_direction_dependence_reasons(
                residuals.along_field, residuals.directions, whiteness.inflation
            )
        reasons += self._list_excess_noise_reasons(sums, fit, noise) + verdict.list_correlation_reasons(whiteness)
        remedy = "record for longer" if sufficient else f"{motion}; {motion.remedy}, or record for longer"
        uncertain = verdict.list_stddev_reasons(stddev, remedy)
        is_correlation_cause = stddev <= verdict.WARN_ABOVE * math.sqrt(whiteness.inflation)  # the cause comes first
        reasons = reasons + uncertain if is_correlation_cause else uncertain + reasons
        reasons += self._list_attitude_error_reasons(motion, largest_stddev, detected_stddev, sufficient=sufficient)
        reasons += verdict.list_r_squared_reasons(r_squared, MISFIT_REMEDY) + list_mounting_reasons(fit)
        return self._make_result(sums, fit, covariance, noise, Verdict(stddev, r_squared, whiteness, reasons))

    def second_moments(self) -> SecondMoments:
        """Return the moments of all readings. Raises `CalibrationError` for too few, constant or saturated ones."""
        parameters = 4 + 2 * (self._direction is None) + 8 * self._soft_iron
        checks.check_count(self.count, math.ceil(parameters / 3.0) + verdict.MIN_REDUNDANCY, parameters)
        self._saturation.check()
        sums = SecondMoments.from_products(self._gram_sums.products(0), self.count)
        if not 0.0 < sums.size < math.inf:
            remedy = "give them in a unit in which the earth's field is a smaller number"
            raise CalibrationError("field", "cannot be squared", allowed="must be of moderate size", remedy=remedy)
        return sums

    def _list_excess_noise_reasons(self, sums: SecondMoments, fit: AttitudeFit, noise: FloatArray) -> tuple[str, ...]:
        """Return a reason if the residuals exceed the declared noise and the errors of the attitude."""
        if self._noise_stddev is None:
            return ()
        attitude_noise = self._attitude_stddev * fit.scale * sums.size  # across the field: on two of three axes
        stddev = sums.size * math.sqrt(float(np.trace(noise)) / 3.0)
        declared = math.sqrt(self._noise_stddev**2 + 2.0 / 3.0 * attitude_noise**2)
        return verdict.list_excess_noise_reasons(stddev, declared, self._unit)

    def _list_attitude_error_reasons(
        self, motion: MotionExcitation, largest_stddev: float, detected_stddev: float, *, sufficient: bool
    ) -> tuple[str, ...]:
        """Return a reason if attitude errors affect the result: the declared, the detected or the largest possible."""
        gain, declared_stddev = motion.attitude_error_gain, self._attitude_stddev
        if (share := gain * declared_stddev**2) > WARN_ERROR_SHARE:
            reason = (
                f"{motion}: attitude errors of {math.degrees(declared_stddev):.2g} deg change the result by"
                f" {100.0 * share:.2g} %; {motion.remedy}, or give the actual attitude_stddev"
            )
            return (reason,)
        if gain * detected_stddev**2 > WARN_ERROR_SHARE:
            return (_describe_residual_errors(motion, detected_stddev, sufficient=sufficient),)
        if gain * largest_stddev**2 > REFUSE_ERROR_SHARE:
            return (_describe_residual_errors(motion, largest_stddev, sufficient=sufficient),)
        return ()

    def fit_alternative(self, field: Vectors, rotation_ws: Quaternions) -> tuple[float, float]:
        """Fit other readings (n, 3), (n, 4). Return the unexplained share of variance and the size of the soft iron."""
        gram_sums = GramSums()
        gram_sums.update(field, np.ascontiguousarray(rotation_ws))
        sums = SecondMoments.from_products(gram_sums.products(0), gram_sums.count)
        fit, _, _ = refine_fit(sums, find_initial_fit(sums, self._direction, soft_iron=self._soft_iron))
        unexplained = float(np.trace(residual_covariance(sums, fit))) / sums.variance
        return unexplained, float(np.linalg.norm(fit.matrix - fit.scale * np.eye(3))) / fit.scale

    def _make_result(
        self, sums: SecondMoments, fit: AttitudeFit, covariance: FloatArray, noise: FloatArray, quality: Verdict
    ) -> Calibration:
        """Return the calibration in the unit of the readings."""
        names, jacobian = _compute_calibration_jacobian(fit)
        unit = np.array([sums.size if name.startswith(("scale", "bias")) else 1.0 for name in names])
        jacobian = jacobian * unit[:, None]
        return Calibration(
            method="known attitude",
            scale=fit.scale * sums.size,
            direction=fit.direction.copy(),
            bias=fit.bias * sums.size + self._gram_sums.first,
            soft_iron=fit.matrix / fit.scale,
            covariance=jacobian @ covariance @ jacobian.T,
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

    >>> calibration = ns.calibration.known_attitude(1e9 * field, rotation_ws, unit="nT")
    >>> calibration.apply(1e9 * field).shape
    (599, 3)

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
        _check_convention(calibrator, field, rotation_ws, limit)
        raise
    if not result.verdict.ok:
        _check_convention(calibrator, field, rotation_ws, CONVENTION_VARIANCE)
    return result


def _validate_direction(direction: ArrayLike | None) -> FloatArray | None:
    """Return a unit vector (3,), or None for None."""
    if direction is None:
        return None
    allowed = "must be three finite numbers, not all 0"
    try:
        vector = np.asarray(direction, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise CalibrationError("direction", str(error), allowed=allowed) from error
    if vector.shape != (3,) or not np.isfinite(vector).all() or not vector.any():
        raise CalibrationError("direction", direction, allowed=allowed)
    vector = vector / np.abs(vector).max()
    return np.asarray(vector / np.linalg.norm(vector))


def _validate_attitude_stddev(stddev: float) -> float:
    allowed = f"must be from 0 to {MAX_ATTITUDE_STDDEV:g} (rad)"
    number = validate_number("attitude_stddev", stddev, allowed)
    if not 0.0 <= number <= MAX_ATTITUDE_STDDEV:
        remedy = "give radians, 0.0087 for half a degree"
        raise CalibrationError("attitude_stddev", f"{number:.6g}", allowed=allowed, remedy=remedy)
    return number


def _check_motion(motion: MotionExcitation, stddev: float, fit: AttitudeFit) -> None:
    """Raise `CalibrationError` if attitude errors (rad) can explain the motion that excites a combination."""
    gain = motion.attitude_error_gain
    if math.isfinite(gain) and gain * stddev**2 <= REFUSE_ERROR_SHARE:
        return
    error = _make_motion_error(str(motion), motion, fit)
    if gain * ATTITUDE_STDDEV**2 <= REFUSE_ERROR_SHARE:
        error.remedy += f"; or check attitude_stddev, {stddev:.3g} rad are {math.degrees(stddev):.3g} deg"
    raise error


def _check_stretch(fit: AttitudeFit) -> None:
    remedy = (
        "check that all three axes work and are in one unit, that the motion is about two axes at least, and that"
        " readings and attitudes have the same times"
    )
    verdict.check_stretch(np.linalg.svd(fit.matrix)[1], remedy)


def _check_stddev(
    stddev: float, whiteness: Whiteness, motion: MotionExcitation, fit: AttitudeFit, *, sufficient: bool
) -> None:
    """Raise `CalibrationError` if a relative standard deviation is too large, with its cause."""
    if stddev <= verdict.REFUSE_ABOVE:
        return
    known = f"known to only {100.0 * stddev:.2g} % of the field"
    if stddev <= verdict.REFUSE_ABOVE * math.sqrt(whiteness.inflation):
        remedy = verdict.list_correlation_reasons(whiteness)[0]
        raise CalibrationError(f"residuals: {known}", allowed="must be white", remedy=remedy)
    if not sufficient:
        raise _make_motion_error(f"{motion}, so the calibration is {known}", motion, fit)
    allowed = f"must be known to {100.0 * verdict.REFUSE_ABOVE:g} %"
    raise CalibrationError("field", known, allowed=allowed, remedy=f"record for longer, or {MISFIT_REMEDY}")


def _describe_residual_errors(motion: MotionExcitation, stddev: float, *, sufficient: bool) -> str:
    """Return the reason for residuals that attitude errors with this standard deviation (rad) can explain."""
    share = f"{100.0 * min(1.0, motion.attitude_error_gain * stddev**2):.2g} %"
    errors = f"attitude errors of {math.degrees(stddev):.2g} deg explain the residuals and change the result by {share}"
    if sufficient:
        size = 100.0 * math.sqrt(2.0 / 3.0) * stddev
        return f"residuals of {size:.2g} % of the field per axis: {errors}; {MISFIT_REMEDY}"
    return f"the motion {motion}; {errors}; {motion.remedy}"


def _make_motion_error(what: str, motion: MotionExcitation, fit: AttitudeFit) -> CalibrationError:
    """Return the error of a motion that does not excite a combination of parameters."""
    names, jacobian = _compute_calibration_jacobian(fit.without_soft_iron())
    parts = np.linalg.norm(jacobian @ motion.weakest_combinations, axis=1)
    largest = sorted(int(i) for i in np.argsort(-parts)[:4] if parts[i] > 0.3 * parts.max())
    allowed = f"cannot determine {', '.join(names[i] for i in largest)}"
    return CalibrationError(f"motion: {what}", allowed=allowed, remedy=motion.remedy)


def _assess_whiteness(gram_sums: GramSums, sums: SecondMoments, fit: AttitudeFit) -> Whiteness:
    """Return the whiteness of the residuals, weighted with the inverse of their covariance."""
    operator = np.hstack((-fit.theta, np.eye(3) / sums.size))  # times u, it gives the residuals
    noise = noise_covariance(sums, fit)
    if float(np.trace(noise)) < ROUNDING_VARIANCE * float(np.trace(sums.square)):
        return Whiteness()
    weight = np.linalg.inv(noise)
    counts = [gram_sums.blocks(level) for level in range(1, verdict.BLOCK_LEVELS + 1)]
    counts = [count for count in counts if count]
    ratio = [
        float(np.sum(weight * (operator @ gram_sums.products(level) @ operator.T)))
        / (3.0 * count * float(verdict.BLOCK_FACTOR) ** level)
        for level, count in enumerate(counts, 1)
    ]
    return verdict.assess_whiteness(ratio, counts, 3)


def _compute_calibration_jacobian(fit: AttitudeFit) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names (k,) of the fitted numbers of a calibration, and their derivatives (k, n) by the parameters."""
    scale, size = fit.scale, fit.size
    jacobian = np.zeros((16, size))
    jacobian[0, 3] = scale
    jacobian[4:7, :3] = scale * np.eye(3)
    fitted = [0, 4, 5, 6]
    if fit.fits_direction:
        jacobian[1:4, 4:6] = make_tangent_plane(fit.direction)
        fitted[1:1] = (1, 2, 3)
    if fit.fits_soft_iron:
        jacobian[7:, size - 8 :] = ((fit.matrix / scale) @ TRACELESS).reshape(8, 9).T
        fitted += range(7, 16)
    return tuple(NAMES[i] for i in fitted), jacobian[fitted]


def _check_convention(
    calibrator: KnownAttitudeCalibrator, field: ArrayLike, rotation_ws: ArrayLike, limit: float
) -> None:
    """Raise `CalibrationError` if another quaternion convention explains the readings.

    There is no test if the right convention leaves at most the share `limit` of the variance unexplained.
    """
    rows, rotation = checks.validate_field(field), checks.validate_rotation(rotation_ws, np.shape(field)[0])
    step = max(1, rows.shape[0] // CONVENTION_READINGS)
    rows, rotation = np.ascontiguousarray(rows[::step]), rotation[::step]
    if rows.shape[0] < verdict.MIN_REDUNDANCY or not np.ptp(rows):
        return
    unexplained, _ = calibrator.fit_alternative(rows, rotation)
    if unexplained <= limit:
        return
    candidates = []
    for convention, (order, sign) in CONVENTIONS.items():
        other_unexplained, iron = calibrator.fit_alternative(
            rows, rotation[:, order] * np.array((1.0, sign, sign, sign))
        )
        if other_unexplained < min(1.0 - verdict.WARN_R_SQUARED, 0.25 * unexplained):
            candidates.append((iron, convention))
    if candidates:
        what = f"fits the readings as {min(candidates)[1]}"
        remedy = "give unit quaternions w x y z that take sensor coordinates to world coordinates"
        raise CalibrationError("rotation_ws", what, allowed="must be w x y z, from sensor to world", remedy=remedy)

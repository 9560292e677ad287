"""Diagnosis of a fit with known attitude: excitation by the motion, errors of axes and directions, residuals.

**Excitation.** Let H be the information matrix of the parameters per reading (noise 1, scale 1, no soft iron). Let Q be
the same matrix with each attitude replaced by its derivative by a small rotation, R_ws [e_c]x, summed over c. Attitude
errors with the standard deviation s about each axis, independent from reading to reading, add s^2 Q to H: they look
like motion. The estimate of a combination v of parameters is then too small by the share

    s^2 v'Q v / v'H v          (errors in variables, first order, equal weights)

`MotionExcitation.attitude_error_gain` is the largest such share over all v, for s = 1 rad. If gain s^2 is 1, attitude
errors explain all the motion. For rotation about one axis only, this holds for the bias along that axis, however long
the record is.

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

from navsense.calibration._attitude_fit import (
    AttitudeFit,
    SecondMoments,
    fisher_information,
    initial_fit,
    noise_covariance,
    refine_fit,
)
from navsense.calibration._gram_sums import attitude_rows
from navsense.calibration.checks import Subsample
from navsense.calibration.verdict import MAX_STRETCH, ROUNDING_VARIANCE
from navsense.core.errors import CalibrationError
from navsense.core.typing import FloatArray, Vectors

SINGULAR: Final = 1e-12
"""Relative eigenvalue of the information matrix below which it is a rounding error: rotations of 1e-6 rad."""

REFUSE_ERROR_SHARE: Final = 0.1
"""gain s^2 above which calibration fails: 10 percent of the field, 6 degrees."""

WARN_ERROR_SHARE: Final = 0.01
"""gain s^2 above which the verdict is not ok."""

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

FRAME_HINT: Final = "it points down in the north: z is negative in east-north-up, positive in north-east-down"


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
        main = axes[0] * np.sign(axes[0][np.argmax(np.abs(axes[0]))])
        axis = ", ".join(f"{value:.2f}" for value in np.round(main, 2) + 0.0)
        if sine[2] < MIN_ROTATION_SINE:
            return f"turned by {degrees[2]:.2g} deg (rms) only"
        return f"turned about ({axis}) in the sensor, and {degrees[0]:.2g} deg (rms) about other axes"

    @property
    def remedy(self) -> str:
        """The missing motion."""
        sine, axes = self.rotations
        if sine[2] < MIN_ROTATION_SINE:
            return "turn the sensor all the way round about two axes"
        main = "xyz"[int(np.argmax(np.abs(axes[0])))]
        others = " and ".join(axis for axis in "xyz" if axis != main)
        return f"turn the sensor by 30 deg or more about {others} too, to both sides, while it faces different ways"


def assess_excitation(sums: SecondMoments, fit: AttitudeFit) -> MotionExcitation:
    """Return the excitation of the fitted parameters by the motion, near the direction of the fit."""
    plain = AttitudeFit(np.eye(3), fit.direction, np.zeros(3), fit.seeks_direction, fit.seeks_iron)
    slopes = plain.slopes()
    motion_information = fisher_information(slopes, sums.gram, np.eye(3))
    error_information = fisher_information(slopes, _rotated_gram(sums.gram), np.eye(3))
    values, axes = np.linalg.eigh(motion_information)
    mean = sums.gram[9, :9].reshape(3, 3)
    if values[0] < SINGULAR * values[-1]:
        return MotionExcitation(math.inf, axes[:, values < SINGULAR * values[-1]], mean)
    half = axes / np.sqrt(values)
    shares, combinations = np.linalg.eigh(half.T @ error_information @ half)
    return MotionExcitation(float(shares[-1]), half @ combinations[:, -1:], mean)


def _rotated_gram(gram: FloatArray) -> FloatArray:
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
    free, _, noise = refine_fit(sums, initial_fit(sums, None, soft_iron=fit.seeks_iron))
    given, found = fit.direction, free.direction
    angle = _angle(given, found)
    variance_limit = MAX_VARIANCE_RATIO * float(np.trace(noise))
    if float(np.trace(noise_covariance(sums, fit))) <= variance_limit or angle < MIN_DIRECTION_ERROR:
        return
    remedy = "check declination, inclination and the axes of the attitude's world, or leave direction out"
    if _angle(-given, found) < ANGLE_TOLERANCE:
        remedy = f"turn its sign: {FRAME_HINT}"
    elif _angle(given[[1, 0, 2]] * (1.0, 1.0, -1.0), found) < ANGLE_TOLERANCE:
        remedy = "direction and attitude are of two worlds, east-north-up and north-east-down: give both in one"
    off = f"{math.degrees(angle):.3g} deg off {_format_unit_vector(found)}, which the readings show"
    what = f"{_format_unit_vector(given)} is {off}"
    raise CalibrationError("direction", what, allowed="must be the field's in the attitude's world", remedy=remedy)


def check_sign(fit: AttitudeFit) -> None:
    """Raise `CalibrationError` if the determinant of the soft iron is not positive."""
    if np.linalg.det(fit.iron) > 0.0:
        return
    rotation = _nearest_rotation(-fit.iron)
    mistake = _axis_mistake(rotation) if _rotation_angle(rotation) > HALF_ROTATION else ""
    if fit.seeks_iron and _rotation_angle(rotation) >= MOUNTING_ROTATION:
        what = "left-handed" + (f": {mistake}" if mistake else "")
        remedy = "turn the sign of an axis of the sensor or exchange two, so that they are right-handed"
    else:
        what, remedy = "against the direction given", f"turn the sign of direction, or of all readings: {FRAME_HINT}"
    raise CalibrationError("field", what, allowed="must lie along direction, in right-handed axes", remedy=remedy)


def check_stretch(fit: AttitudeFit) -> None:
    """Raise `CalibrationError` if the soft iron is implausible: an axis hardly measures the field."""
    stretches = np.linalg.svd(fit.iron)[1]
    if stretches[0] > MAX_STRETCH * stretches[-1]:
        what = f"stretches one way {stretches[0] / max(stretches[-1], 1e-300):.3g} times as much as another"
        remedy = (
            "check that all three axes work and are in one unit, that the motion is about two axes at least, and that"
            " readings and attitudes are of the same instants"
        )
        raise CalibrationError("soft_iron", what, allowed=f"must be at most {MAX_STRETCH:g}", remedy=remedy)


def mounting_reasons(fit: AttitudeFit) -> tuple[str, ...]:
    """Return a reason if the soft iron rotates the field as a mounting does."""
    rotation = _nearest_rotation(fit.iron)
    angle = _rotation_angle(rotation)
    if angle < MOUNTING_ROTATION:
        return ()
    reason = (
        f"the soft iron turns the field by {math.degrees(angle):.3g} deg: the readings' axes are not those of the"
        " attitude; turn the readings into these, or give the attitude of the readings' axes, w x y z"
    )
    mistake = _axis_mistake(rotation) if angle > HALF_ROTATION and fit.seeks_direction else ""
    if mistake:
        reason += (
            f"; or {mistake}, if direction {_format_unit_vector(fit.direction)} is against the field: {FRAME_HINT}"
        )
    return (reason,)


def _angle(a: FloatArray, b: FloatArray) -> float:
    """Return the angle (rad) between two unit vectors."""
    return float(np.arccos(np.clip(a @ b, -1.0, 1.0)))


def _format_unit_vector(vector: FloatArray) -> str:
    return "(" + ", ".join(f"{value:z.2f}" for value in vector) + ")"


def _nearest_rotation(iron: FloatArray) -> FloatArray:
    """Return the rotation (3, 3) nearest to a matrix with a positive determinant."""
    left, _, right = np.linalg.svd(iron)
    return np.asarray(left @ right)


def _rotation_angle(rotation: FloatArray) -> float:
    return math.acos(min(1.0, max(-1.0, 0.5 * (float(np.trace(rotation)) - 1.0))))


def _axis_mistake(rotation: FloatArray) -> str:
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
        cls, field: Subsample, rotation: Subsample, first: FloatArray, sums: SecondMoments, fit: AttitudeFit
    ) -> FitResiduals:
        """Return the residuals of the readings `field` with the attitudes `rotation`. `first`: origin of `sums`."""
        z = attitude_rows(rotation.rows)
        rows = (field.rows - first) / sums.size - z @ fit.theta.T
        trace = float(np.trace(noise_covariance(sums, fit)))
        return cls(
            rows=rows / fit.scale,
            squares=3.0 * np.sum(rows**2, axis=1) / trace,
            directions=np.einsum("nkj,k->nj", z[:, :9].reshape(-1, 3, 3), fit.direction),
            soft_iron=fit.iron / fit.scale,
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

"""What motion is missing, in words: what the readings leave open, and where in the sensor the field has not been.

Whether anything is open is decided on the information of the fit (`_ellipsoid_fit`); here it is only named. Open are the
combinations w of theta = (b, A) whose standard deviation exceeds a limit. A change w moves the ellipsoid at v by w'J(v)
along its normal, so that a reading tells most of the open combinations where the sum of (w'J)^2 is largest.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from navsense.calibration._directions import half_sphere
from navsense.calibration._ellipsoid_distance import PARAMETERS
from navsense.calibration._ellipsoid_fit import EllipsoidFit, theta_to_matrix
from navsense.calibration._power_sums import ReadingSpread
from navsense.errors import CalibrationError
from navsense.typing import FloatArray

PLANAR_RATIO: Final = 0.2
"""Deviation along one axis, of that along the next, below which readings are said to lie in a plane or on a line."""

MIN_NAMED_SHARE: Final = 0.1
"""Share of an open combination above which bias, or scale and soft iron, are named."""

TILT_DEGREES: Final = 30
"""Degrees to each side about another axis: enough for a plane to become an ellipsoid (held by the tests)."""

SCALE: Final = "scale"
"""What a sphere has in the place of soft iron."""

DIRECTIONS: Final = 1000
"""Directions that are tried over half a sphere."""


class MissingMotion(NamedTuple):
    """What is missing: how the sensor moved, what cannot be told, and what to do."""

    motion: str
    unsure: str
    remedy: str


def _format_direction(vector: FloatArray) -> str:
    """Return a direction in the sensor, its largest part positive."""
    sign = 1.0 if vector[int(np.abs(vector).argmax())] > 0.0 else -1.0
    return "(" + ", ".join(f"{sign * value:z.2f}" for value in vector) + ")"


def is_planar(spread: ReadingSpread) -> bool:
    """Tell whether readings lie in a plane or on a line, roughly."""
    low, middle, high = np.sqrt(spread.variances)
    return bool(low <= PLANAR_RATIO * middle or middle <= PLANAR_RATIO * high)


def _uncertain_combinations(fit: EllipsoidFit, limit: float) -> FloatArray:
    """Return the combinations (k, 9) that are less sure than `limit` of the strength; the weakest one at least."""
    whole, noise = fit.information
    motion, vectors = np.linalg.eigh(whole - noise)
    share = np.maximum(np.sum(vectors * (whole @ vectors), axis=0), 0.0)
    size = limit * fit.strength
    unsure = [
        column
        for column, told in enumerate(motion)
        if told <= 0.0 or math.sqrt(fit.variance * share[column]) > size * told
    ]
    return np.asarray((fit.basis @ vectors[:, unsure or [0]]).T)


def _most_informative_direction(fit: EllipsoidFit, combinations: FloatArray) -> FloatArray:
    """Return the direction (3,) of the field in the sensor in which readings would tell most of the combinations."""
    v = half_sphere(DIRECTIONS)
    n = v @ np.linalg.inv(theta_to_matrix(fit.theta))
    n /= np.linalg.norm(n, axis=1)[:, None]
    told = np.zeros(DIRECTIONS)
    for one in combinations:
        shift, stretch = n @ one[:3], np.sum((n @ theta_to_matrix(one)) * v, axis=1)
        told += shift**2 + stretch**2  # the mean over v and its opposite
    return np.asarray(v[int(np.argmax(told))])


def _describe_planar(spread: ReadingSpread, iron: str) -> tuple[str, str]:
    """Return how the sensor moved, and what cannot be told, of readings in a plane or on a line: no fit is needed."""
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
    """Return what cannot be told, of readings on a part of the sphere: the numbers in combinations (k, 9)."""
    named = []
    bias = combinations[:, :3]
    if float(np.sum(bias**2, axis=1).max()) > MIN_NAMED_SHARE:
        named.append(f"bias along {_format_direction(np.linalg.svd(bias)[2][0])}")
    shapes = np.array([theta_to_matrix(one) for one in combinations])
    if float(np.sum(shapes**2, axis=(1, 2)).max()) > MIN_NAMED_SHARE:
        axis = np.linalg.eigh(np.sum(shapes @ shapes, axis=0))[1][:, 2]
        named.append(iron if iron == SCALE else f"{iron} along {_format_direction(axis)}")
    return " and ".join(named)


def find_missing_motion(fit: EllipsoidFit, spread: ReadingSpread, limit: float) -> MissingMotion:
    """Return what the motion leaves less sure than `limit` of the strength."""
    iron = "soft iron" if fit.basis.shape[1] == PARAMETERS else SCALE
    combinations = _uncertain_combinations(fit, limit)
    motion, unsure, towards = "the readings cover a part of the sphere only", "", spread.axes[:, 0]
    if is_planar(spread):
        motion, unsure = _describe_planar(spread, iron)
    else:
        unsure, towards = _describe_partial(combinations, iron), _most_informative_direction(fit, combinations)
    remedy = (
        f"tilt the sensor by {TILT_DEGREES} degrees or more to each side about other axes, so that the field also comes"
        f" nearer to {_format_direction(towards)} of the sensor and to its opposite"
    )
    return MissingMotion(motion, unsure, remedy)


def missing_motion_error(missing: MissingMotion) -> CalibrationError:
    """Return the error of a motion that leaves too much open."""
    allowed = f"{missing.unsure} cannot be told"
    return CalibrationError(f"motion: {missing.motion}", allowed=allowed, remedy=missing.remedy)

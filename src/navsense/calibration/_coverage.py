"""What motion is missing, in words: what the readings leave open, and where in the sensor the field has not been.

Whether anything is open is decided on the information of the fit (`_surface`); here it is only named. Open are the
combinations w of theta = (b, A) whose standard deviation exceeds a limit. A change w moves the ellipsoid at v by w'J(v)
along its normal, so that a reading tells most of the open combinations where the sum of (w'J)^2 is largest.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from navsense.calibration._directions import half_sphere
from navsense.calibration._distance import SHAPE
from navsense.calibration._moments import Spread
from navsense.calibration._surface import Fit, matrix_of
from navsense.errors import CalibrationError
from navsense.typing import FloatArray

NARROW: Final = 0.2
"""Deviation along one axis, of that along the next, below which readings are said to lie in a plane or on a line."""

NAMED: Final = 0.1
"""Share of an open combination above which bias, or scale and soft iron, are named."""

TILT: Final = 30
"""Degrees to each side about another axis: enough for a plane to become an ellipsoid (held by the tests)."""

SCALE: Final = "scale"
"""What a sphere has in the place of soft iron."""

PLACES: Final = 1000
"""Directions that are tried over half a sphere."""


class Gap(NamedTuple):
    """What is missing: how the sensor moved, what cannot be told, and what to do."""

    motion: str
    unsure: str
    remedy: str


def _text(vector: FloatArray) -> str:
    """Return a direction in the sensor, its largest part positive."""
    sign = 1.0 if vector[int(np.abs(vector).argmax())] > 0.0 else -1.0
    return "(" + ", ".join(f"{sign * value:z.2f}" for value in vector) + ")"


def is_narrow(spread: Spread) -> bool:
    """Tell whether readings lie in a plane or on a line, roughly."""
    low, middle, high = np.sqrt(spread.variances)
    return bool(low <= NARROW * middle or middle <= NARROW * high)


def _open(fit: Fit, limit: float) -> FloatArray:
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


def _best(fit: Fit, combinations: FloatArray) -> FloatArray:
    """Return the direction (3,) of the field in the sensor in which readings would tell most of the combinations."""
    v = half_sphere(PLACES)
    n = v @ np.linalg.inv(matrix_of(fit.theta))
    n /= np.linalg.norm(n, axis=1)[:, None]
    told = np.zeros(PLACES)
    for one in combinations:
        shift, stretch = n @ one[:3], np.sum((n @ matrix_of(one)) * v, axis=1)
        told += shift**2 + stretch**2  # the mean over v and its opposite
    return np.asarray(v[int(np.argmax(told))])


def _narrow(spread: Spread, iron: str) -> tuple[str, str]:
    """Return how the sensor moved, and what cannot be told, of readings in a plane or on a line: no fit is needed."""
    _, middle, high = np.sqrt(spread.variances)
    if middle <= NARROW * high:
        line = _text(spread.axes[:, 2])
        return (
            f"the readings lie along a line, {line} in the sensor: it was hardly turned",
            f"bias and {iron} across it",
        )
    normal = _text(spread.axes[:, 0])
    motion = f"the readings lie in a plane across {normal} in the sensor: it was turned about that axis only, if at all"
    return motion, f"bias and {iron} along that axis"


def _partial(combinations: FloatArray, iron: str) -> str:
    """Return what cannot be told, of readings on a part of the sphere: the numbers in combinations (k, 9)."""
    named = []
    bias = combinations[:, :3]
    if float(np.sum(bias**2, axis=1).max()) > NAMED:
        named.append(f"bias along {_text(np.linalg.svd(bias)[2][0])}")
    shapes = np.array([matrix_of(one) for one in combinations])
    if float(np.sum(shapes**2, axis=(1, 2)).max()) > NAMED:
        axis = np.linalg.eigh(np.sum(shapes @ shapes, axis=0))[1][:, 2]
        named.append(iron if iron == SCALE else f"{iron} along {_text(axis)}")
    return " and ".join(named)


def gap(fit: Fit, spread: Spread, limit: float) -> Gap:
    """Return what the motion leaves less sure than `limit` of the strength."""
    iron = "soft iron" if fit.basis.shape[1] == SHAPE else SCALE
    combinations = _open(fit, limit)
    motion, unsure, towards = "the readings cover a part of the sphere only", "", spread.axes[:, 0]
    if is_narrow(spread):
        motion, unsure = _narrow(spread, iron)
    else:
        unsure, towards = _partial(combinations, iron), _best(fit, combinations)
    remedy = (
        f"tilt the sensor by {TILT} degrees or more to each side about other axes, so that the field also comes"
        f" nearer to {_text(towards)} of the sensor and to its opposite"
    )
    return Gap(motion, unsure, remedy)


def refusal(missing: Gap) -> CalibrationError:
    """Return the error of a motion that leaves too much open."""
    allowed = f"{missing.unsure} cannot be told"
    return CalibrationError(f"motion: {missing.motion}", allowed=allowed, remedy=missing.remedy)

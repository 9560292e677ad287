"""Axes that are not what they are taken for: of the sensor against the attitude, of the known direction in the world.

    m = A R_ws^-1 f + b      A = scale S

The same readings come from (-A, -f): with f unknown, det A > 0 decides, so that readings with one axis of wrong sign,
or two exchanged, look like a mounting turned by half a turn in a field that points the other way. Only a known f tells
the two apart. A known f that is turned is not made good by A, which stands on the other side of the attitude.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from navsense.calibration._attitude_fit import AttitudeFit, SecondMoments, initial_fit, noise_covariance, refine_fit
from navsense.calibration.verdict import MAX_STRETCH
from navsense.errors import CalibrationError
from navsense.typing import FloatArray

MOUNTING_ROTATION: Final = math.radians(30.0)
"""Turn of a soft iron from which it is not iron but a mounting: other axes than the attitude's."""

HALF_ROTATION: Final = math.radians(150.0)
"""From which a mounting may be a wrong sign or two axes exchanged."""

MAX_VARIANCE_RATIO: Final = 4.0
"""Times as much variance that a known direction leaves open as the one that is found, to be called wrong."""

MIN_DIRECTION_ERROR: Final = math.radians(3.0)
"""Angle between both from which it is."""

ANGLE_TOLERANCE: Final = math.radians(15.0)
"""Angle within which a direction or an axis is taken for another."""

FRAME_HINT: Final = "it points down in the north: z is negative in east-north-up, positive in north-east-down"


def _angle(a: FloatArray, b: FloatArray) -> float:
    """Return the angle (rad) between two unit vectors."""
    return float(np.arccos(np.clip(a @ b, -1.0, 1.0)))


def _format_unit_vector(vector: FloatArray) -> str:
    """Return a unit vector as text."""
    return "(" + ", ".join(f"{value:z.2f}" for value in vector) + ")"


def _nearest_rotation(iron: FloatArray) -> FloatArray:
    """Return the rotation (3, 3) nearest to a matrix of positive determinant."""
    left, _, right = np.linalg.svd(iron)
    return np.asarray(left @ right)


def _rotation_angle(rotation: FloatArray) -> float:
    """Return the angle (rad) of a rotation."""
    return math.acos(min(1.0, max(-1.0, 0.5 * (float(np.trace(rotation)) - 1.0))))


def _axis_mistake(rotation: FloatArray) -> str:
    """Return which axes' sign or order would make a rotation of half a turn, empty where none would."""
    axis = np.linalg.eigh(rotation + rotation.T)[1][:, 2]
    for k, name in enumerate("xyz"):
        if abs(axis[k]) > math.cos(ANGLE_TOLERANCE):
            return f"the sign of {name} is wrong"
        i, j = (other for other in range(3) if other != k)
        if abs(axis[i] - axis[j]) > math.sqrt(2.0) * math.cos(ANGLE_TOLERANCE):
            return f"{'xyz'[i]} and {'xyz'[j]} are exchanged"
    return ""


def check_direction(sums: SecondMoments, fit: AttitudeFit) -> None:
    """Raise `CalibrationError` where the known direction of a fit is not that of the readings."""
    free, _, noise = refine_fit(sums, initial_fit(sums, None, soft_iron=fit.seeks_iron))
    given, found = fit.direction, free.direction
    angle = _angle(given, found)
    if (
        float(np.trace(noise_covariance(sums, fit))) <= MAX_VARIANCE_RATIO * float(np.trace(noise))
        or angle < MIN_DIRECTION_ERROR
    ):
        return
    remedy = "check declination, inclination and the axes of the attitude's world, or leave direction out"
    if _angle(-given, found) < ANGLE_TOLERANCE:
        remedy = f"turn its sign: {FRAME_HINT}"
    elif _angle(given[[1, 0, 2]] * (1.0, 1.0, -1.0), found) < ANGLE_TOLERANCE:
        remedy = "direction and attitude are of two worlds, east-north-up and north-east-down: give both in one"
    what = f"{_format_unit_vector(given)} is {math.degrees(angle):.3g} deg off {_format_unit_vector(found)}, which the readings show"
    raise CalibrationError("direction", what, allowed="must be the field's in the attitude's world", remedy=remedy)


def check_sign(fit: AttitudeFit) -> None:
    """Raise `CalibrationError` where the soft iron has no positive determinant."""
    if np.linalg.det(fit.iron) > 0.0:
        return
    rotation = _nearest_rotation(-fit.iron)
    turned = _axis_mistake(rotation) if _rotation_angle(rotation) > HALF_ROTATION else ""
    if fit.seeks_iron and _rotation_angle(rotation) >= MOUNTING_ROTATION:
        what = "left-handed" + (f": {turned}" if turned else "")
        remedy = "turn the sign of an axis of the sensor or exchange two, so that they are right-handed"
    else:
        what, remedy = "against the direction given", f"turn the sign of direction, or of all readings: {FRAME_HINT}"
    raise CalibrationError("field", what, allowed="must lie along direction, in right-handed axes", remedy=remedy)


def check_stretch(fit: AttitudeFit) -> None:
    """Raise `CalibrationError` where the soft iron is none: an axis that hardly sees the field."""
    stretches = np.linalg.svd(fit.iron)[1]
    if stretches[0] > MAX_STRETCH * stretches[-1]:
        what = f"stretches one way {stretches[0] / max(stretches[-1], 1e-300):.3g} times as much as another"
        remedy = (
            "check that all three axes work and are in one unit, that the motion is about two axes at least, and that"
            " readings and attitudes are of the same instants"
        )
        raise CalibrationError("soft_iron", what, allowed=f"must be at most {MAX_STRETCH:g}", remedy=remedy)


def mounting_reasons(fit: AttitudeFit) -> tuple[str, ...]:
    """Return the reason that a soft iron is which turns the field, as a mounting does, none where it is iron."""
    rotation = _nearest_rotation(fit.iron)
    angle = _rotation_angle(rotation)
    if angle < MOUNTING_ROTATION:
        return ()
    reason = (
        f"the soft iron turns the field by {math.degrees(angle):.3g} deg: the readings' axes are not those of the"
        " attitude; turn the readings into these, or give the attitude of the readings' axes, w x y z"
    )
    mirrored = _axis_mistake(rotation) if angle > HALF_ROTATION and fit.seeks_direction else ""
    if mirrored:
        reason += (
            f"; or {mirrored}, if direction {_format_unit_vector(fit.direction)} is against the field: {FRAME_HINT}"
        )
    return (reason,)

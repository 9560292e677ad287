"""What a motion tells about a magnetometer, from its attitudes alone, and what of it attitude errors could feign.

With H the information of the parameters per reading (noise of one, scale of one, no soft iron) and Q what it is when
every attitude is replaced by its derivative by a small turn, R_ws [e_c]x summed over c, errors of the attitude of
deviation s about each axis, from reading to reading anew, add s^2 Q to H: they look like motion. A combination v of the
parameters is then found too small by the part

    s^2 v'Q v / v'H v          (errors in the variables, first order, all readings of one weight)

The largest such part over all v is the *feigned* part. Where it is 1, all the motion there is may be errors: motion
about one axis does not tell the bias along it, however long it lasts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from navsense.calibration._attitude_fit import AttitudeFit, SecondMoments, fisher_information
from navsense.typing import FloatArray

SINGULAR: Final = 1e-12
"""Information, of the largest, that is rounding: turns of 1e-6 rad."""

REFUSE_ERROR_SHARE: Final = 0.1
"""Feigned part above which a calibration is refused: 10 percent of the field, 6 degrees."""

WARN_ERROR_SHARE: Final = 0.01
"""Above which the verdict is not ok."""

MIN_ROTATION_SINE: Final = math.sin(math.radians(5.0))
"""Sine of turns, rms, below which a sensor hardly turned."""


@dataclass(frozen=True)
class MotionExcitation:
    """What attitudes tell.

    `feigned` is the part for attitude errors of one radian, inf where they tell nothing, `weak` (n, k) its v or all of
    those, `mean` (3, 3) the mean of R_ws.
    """

    attitude_error_gain: float
    weakest_combinations: FloatArray
    mean: FloatArray

    @property
    def turns(self) -> tuple[FloatArray, FloatArray]:
        """Return the rms sine (3,), growing, by which axes of the world moved in the sensor, and where they stood."""
        _, lengths, axes = np.linalg.svd(self.mean)
        return np.sqrt(np.maximum(1.0 - lengths**2, 0.0)), np.asarray(axes)

    def __str__(self) -> str:
        """Describe how the sensor turned; the third decimal of a degree is far above the rounding of `turns`."""
        sine, axes = self.turns
        degrees = np.round(np.degrees(np.arcsin(np.minimum(sine, 1.0))), 3)
        main = axes[0] * np.sign(axes[0][np.argmax(np.abs(axes[0]))])
        axis = ", ".join(f"{value:.2f}" for value in np.round(main, 2) + 0.0)
        if sine[2] < MIN_ROTATION_SINE:
            return f"turned by {degrees[2]:.2g} deg (rms) only"
        return f"turned about ({axis}) in the sensor, and {degrees[0]:.2g} deg (rms) about other axes"

    @property
    def remedy(self) -> str:
        """Say which motion is missing."""
        sine, axes = self.turns
        main = "xyz"[int(np.argmax(np.abs(axes[0])))]
        if sine[2] < MIN_ROTATION_SINE:
            return "turn the sensor all the way round about two axes"
        others = " and ".join(axis for axis in "xyz" if axis != main)
        return f"turn the sensor by 30 deg or more about {others} too, to both sides, while it faces different ways"


def _rotated_gram(gram: FloatArray) -> FloatArray:
    """Return the Gram matrix (10, 10) of z's derivatives by small turns in the sensor, summed over three axes."""
    total = np.zeros((10, 10))
    for axis in np.eye(3):
        cross = np.cross(np.eye(3), -axis)  # [axis]x, transposed
        change = np.zeros((10, 10))
        for k in range(3):
            change[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = cross
        total += change @ gram @ change.T
    return total


def assess_excitation(sums: SecondMoments, fit: AttitudeFit) -> MotionExcitation:
    """Return what the attitudes tell about the parameters that are sought, near the direction of the fit."""
    plain = AttitudeFit(np.eye(3), fit.direction, np.zeros(3), fit.seeks_direction, fit.seeks_iron)
    slopes = plain.slopes()
    motion_information = fisher_information(slopes, sums.gram, np.eye(3))
    error_information = fisher_information(slopes, _rotated_gram(sums.gram), np.eye(3))
    values, axes = np.linalg.eigh(motion_information)
    mean = sums.gram[9, :9].reshape(3, 3)
    if values[0] < SINGULAR * values[-1]:
        return MotionExcitation(math.inf, axes[:, values < SINGULAR * values[-1]], mean)
    half = axes / np.sqrt(values)
    parts, combinations = np.linalg.eigh(half.T @ error_information @ half)
    return MotionExcitation(float(parts[-1]), half @ combinations[:, -1:], mean)

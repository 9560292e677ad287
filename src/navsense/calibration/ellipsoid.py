"""Calibration of a magnetometer whose attitude is not known: the readings lie on an ellipsoid.

    m = scale soft_iron v + bias + noise       |v| = 1 unknown, det soft_iron = 1, soft_iron symmetric and positive

m the reading in the sensor's frame. Turned in a field that stays the same, the readings lie on an ellipsoid about the
bias, of the axes scale soft_iron. Nine numbers are found: first from sums of powers (`_moments`: right on average,
needs no start), then at the maximum of their likelihood, by distances along the normal, with the bias of the curvature
taken out (`_surface`). The noise is taken to be alike on the three axes and far below the strength. A rotation between
the sensor and its body cannot be seen in this way: that needs the attitude (`known_attitude`), as a direction does.
Without soft iron the ellipsoid is a sphere, four numbers; soft iron that there is after all moves it, and the verdict
says so where the motion leaves room for that (`_sphere`).

The readings have to be in time order for the verdict on whiteness; nothing else depends on it. A motion that leaves a
combination of the numbers open is refused with what is missing (`_coverage`).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.calibration import _coverage, _sphere
from navsense.calibration._distance import SHAPE
from navsense.calibration._moments import Spread, spread_of
from navsense.calibration._surface import PAIRS, Fit, Readings, matrix_of
from navsense.calibration.checks import AXES, Extremes, Thinned, check_count, checked_field
from navsense.calibration.result import Calibration
from navsense.calibration.units import check_scale, checked_strength, checked_unit
from navsense.calibration.verdict import (
    EXPLAINED,
    HOPELESS,
    NOISELESS,
    POOR,
    SPARE,
    STRETCHED,
    WELL_EXPLAINED,
    Verdict,
    Whiteness,
    correlation,
    dropouts,
    placed,
    shape,
    weakness,
)
from navsense.errors import CalibrationError
from navsense.typing import FloatArray

NAMES: Final = (
    "scale",
    "bias.x",
    "bias.y",
    "bias.z",
    *(f"soft_iron.{row}{column}" for row in "xyz" for column in "xyz"),
)
"""What the covariance is of; without soft iron the first four."""

CLEAR: Final = 10.0
"""Deviations of the noise's part of the information, each sqrt(2 / N) of it, that all of it has to exceed."""

REACH: Final = 3.0
"""Deviations of noise that have to stay within the smallest radius of curvature, where a distance has one foot only."""

ALIKE: Final = 1.5
"""Stretch of a soft iron up to which readings put into another unit are taken to be right."""

SUSPECTS: Final = (
    "turn the sensor through many attitudes, away from iron, magnets and currents, or leave out the readings near them"
)
"""Where readings do not lie on an ellipsoid."""


class Ellipsoid:
    """A calibration that readings are added to, part by part, as on a vehicle that moves.

    Readings are kept, 24 bytes each, until they tell the ellipsoid to 0.1 percent; from then on 1.6 MB of them at most.
    The covariance is linear in the errors. With a verdict that is not ok for want of motion it says too little of them:
    with `weakest` at 5 to 9 percent they are some 1.2 to 1.3 times as large as it says, and not zero on average.
    The parameters are those of `ellipsoid`. Raises `CalibrationError`.
    """

    def __init__(self, strength: float | None = None, *, unit: str | None = "T", soft_iron: bool = True) -> None:
        """Start with no reading."""
        self._unit = checked_unit(unit)
        self._strength = checked_strength(strength, unit)
        self._readings, self._extremes, self._thinned = Readings(soft_iron=soft_iron), Extremes(), Thinned(3)

    @property
    def count(self) -> int:
        """Return how many readings were taken."""
        return self._readings.count

    def update(self, field: ArrayLike) -> None:
        """Take further readings (n, 3) in the unit, n from 0 on; what is refused leaves the calibration as it was.

        It does not matter how the readings are cut. Raises `CalibrationError`.
        """
        rows = checked_field(field)
        self._extremes.update(rows)
        self._thinned.update(rows)
        self._readings.add(rows)

    def solve(self) -> Calibration:
        """Return the calibration from all readings so far; more may be added afterwards.

        Raises `CalibrationError` where none can be trusted.
        """
        self._check_count()
        try:
            return self._solved()
        except CalibrationError as error:
            other = _other_unit(self._thinned.rows)
            if other is None:
                raise
            raise other from error

    def _solved(self) -> Calibration:
        """Return the calibration; raise `CalibrationError` where it cannot be trusted."""
        self._extremes.check()
        if not np.isfinite(self._readings.powers).all():
            remedy = "leave out the readings that are none, the first one above all"
            raise CalibrationError("field", "cannot be squared", allowed="must be numbers of like size", remedy=remedy)
        fit, spread = self._readings.fit(), spread_of(self._readings.powers)
        explained = 1.0 - 3.0 * fit.variance / float(spread.variances.sum())
        if not _coverage.is_narrow(spread):
            _check_misfit(fit, explained)
        share = max(fit.noise_share, _rounding_share(fit))
        if not fit.settled or share * (1.0 + CLEAR * math.sqrt(2.0 / fit.count)) >= 1.0:
            raise _coverage.refusal(_coverage.gap(fit, spread, HOPELESS))
        white = fit.whiteness if fit.variance > NOISELESS * float(spread.variances.sum()) else Whiteness()
        numbers, slopes = _numbers(fit)
        covariance = white.inflation * (slopes @ fit.covariance @ slopes.T)
        weakest = _weakest(covariance, numbers[0])
        if not weakest <= HOPELESS:
            raise self._hopeless(fit, spread, weakest, white)
        unit = self._readings.unit
        check_scale(numbers[0] * unit, self._unit, self._strength)
        _check_misfit(fit, explained)
        _check_stretch(fit)
        reasons = self._strange(fit, white) + _reasons(fit, spread, weakest, explained, white)
        verdict = Verdict(weakest, explained, white, reasons)
        return self._result(fit, numbers, covariance, verdict)

    def _check_count(self) -> None:
        """Raise `CalibrationError` where the readings are too few for any motion."""
        sought = self._readings.size
        check_count(self.count, sought + SPARE, sought)

    def _hopeless(self, fit: Fit, spread: Spread, weakest: float, white: Whiteness) -> CalibrationError:
        """Return the error of a fit that leaves too much open, for want of motion or for its residuals."""
        strange = correlation(white) if weakest <= HOPELESS * math.sqrt(white.inflation) else ()
        strange = self._strange(fit, white) + strange
        if not strange:
            return _coverage.refusal(_coverage.gap(fit, spread, HOPELESS))
        known = f"known to {100.0 * weakest:.2g} % of the field only"
        return CalibrationError(f"residuals: {known}", allowed="must be those of noise", remedy="; ".join(strange))

    def _strange(self, fit: Fit, white: Whiteness) -> tuple[str, ...]:
        """Return what is strange about the residuals of some of the readings."""
        gone = dropouts(self._extremes.zeros)
        if not fit.variance > NOISELESS * fit.strength**2:
            return gone
        field = (self._thinned.rows - self._readings.shift) / self._readings.unit
        residual, seen = fit.at(field)
        strange = gone + shape(residual**2 / fit.variance, 1, self._thinned)
        return strange + placed(residual[:, None] / fit.strength, seen, white.inflation)

    def _result(self, fit: Fit, numbers: FloatArray, covariance: FloatArray, verdict: Verdict) -> Calibration:
        """Return all of it in the unit of the readings."""
        free, unit = fit.basis.shape[1], self._readings.unit
        names = NAMES if free == SHAPE else NAMES[:4]
        units = np.array([unit] * 4 + [1.0] * 9)
        covariance = covariance * np.outer(units, units)
        return Calibration(
            method="ellipsoid" if free == SHAPE else "sphere",
            scale=float(numbers[0]) * unit,
            direction=None,
            bias=self._readings.shift + numbers[1:4] * unit,
            soft_iron=numbers[4:].reshape(3, 3) if free == SHAPE else np.eye(3),
            covariance=covariance[: len(names), : len(names)].copy(),
            names=names,
            freedom=free,
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
    stream = Ellipsoid(strength, unit=unit, soft_iron=soft_iron)
    stream.update(field)
    return stream.solve()


def _numbers(fit: Fit) -> tuple[FloatArray, FloatArray]:
    """Return scale, bias and soft iron (13,) in units of the fit, and their derivatives (13, 9) by theta."""
    matrix, scale = matrix_of(fit.theta), fit.strength
    inverse, slopes = np.linalg.inv(matrix), np.zeros((13, SHAPE))
    slopes[1:4, :3] = np.eye(3)
    for number, (row, column) in enumerate(PAIRS):
        change = np.zeros((3, 3))
        change[row, column] = change[column, row] = 1.0
        growth = scale * float(np.sum(inverse * change)) / 3.0
        slopes[0, 3 + number] = growth
        slopes[4:, 3 + number] = ((change - matrix * growth / scale) / scale).ravel()
    return np.array([scale, *fit.theta[:3], *(matrix / scale).ravel()]), slopes


def _weakest(covariance: FloatArray, scale: float) -> float:
    """Return the largest deviation of a combination of bias / scale, ln scale and soft iron."""
    if not np.isfinite(covariance).all():
        return math.inf
    share = np.array([1.0 / scale] * 4 + [1.0] * 9)
    return math.sqrt(max(0.0, float(np.linalg.eigvalsh(covariance * np.outer(share, share))[-1])))


def _rounding_share(fit: Fit) -> float:
    """Return 1 where a combination is told by no more than rounding would tell, else 0."""
    whole, _ = fit.information
    values = np.linalg.eigvalsh(whole)
    return 1.0 if values[0] <= NOISELESS * values[-1] else 0.0


def _check_misfit(fit: Fit, explained: float) -> None:
    """Raise `CalibrationError` where the readings do not lie on an ellipsoid."""
    axes = np.linalg.eigvalsh(matrix_of(fit.theta))
    noise = math.sqrt(fit.variance)
    if explained >= EXPLAINED and REACH * noise <= axes[0] ** 2 / axes[2]:
        return
    what = f"readings lie {100.0 * noise / fit.strength:.2g} % of the field's strength off the best ellipsoid"
    raise CalibrationError("field", what, allowed="must lie on one but for small noise", remedy=SUSPECTS)


def _check_stretch(fit: Fit) -> None:
    """Raise `CalibrationError` where the soft iron is none: an axis that hardly sees the field."""
    axes = np.linalg.eigvalsh(matrix_of(fit.theta))
    if axes[2] > STRETCHED * axes[0]:
        what = f"stretches one way {axes[2] / axes[0]:.3g} times as much as another"
        remedy = "check that all three axes work and are in one unit"
        raise CalibrationError("soft_iron", what, allowed=f"must be at most {STRETCHED:g}", remedy=remedy)


def _reasons(fit: Fit, spread: Spread, weakest: float, explained: float, white: Whiteness) -> tuple[str, ...]:
    """Return what speaks against a calibration."""
    reasons: tuple[str, ...] = ()
    if weakest > POOR:
        missing = _coverage.gap(fit, spread, POOR)
        reasons += weakness(weakest, f"{missing.motion}; {missing.remedy}, or record for longer")
    reasons += correlation(white)
    if explained < WELL_EXPLAINED:
        reasons += (f"{100.0 * explained:.3g} % of the readings' variance explained: {SUSPECTS}",)
    if fit.basis.shape[1] < SHAPE and fit.variance > 0.0:
        reasons += _sphere.reasons(fit, spread)
    return reasons


def _other_unit(field: FloatArray) -> CalibrationError | None:
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
        if not _fits(field * factor):
            continue
        what, allowed = f"looks like {10.0**power:g} times the others", "must be in the unit of the other axes"
        remedy = f"give all three axes in one unit: multiply this one by {10.0**-power:g}, unless the axis is broken"
        return CalibrationError(f"field along {AXES[axis]}", what, allowed=allowed, remedy=remedy)
    return None


def _fits(field: FloatArray) -> bool:
    """Tell whether readings (n, 3) lie on an ellipsoid that they tell and that soft iron makes."""
    if not (np.isfinite(field).all() and np.ptp(field, axis=0).all()):
        return False  # readings of one value along an axis determine no ellipsoid
    stream = Readings(soft_iron=True)
    stream.add(field)
    fit = stream.fit()
    axes = np.linalg.eigvalsh(matrix_of(fit.theta))
    alike = axes[2] <= ALIKE * axes[0] and math.sqrt(fit.variance) <= HOPELESS * fit.strength
    return bool(alike) and fit.settled and fit.weakest[0] <= HOPELESS

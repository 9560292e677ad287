"""Calibration of a magnetometer whose attitude is not known: the readings lie on an ellipsoid.

    m = scale soft_iron v + bias + noise       |v| = 1 unknown, det soft_iron = 1, soft_iron symmetric and positive

m the reading in the sensor's frame. Turned in a field that stays the same, the readings lie on an ellipsoid about the
bias, of the axes scale soft_iron. Nine numbers are found: first from sums of powers (`_moments`: right on average,
needs no start), then at the maximum of their likelihood, by distances along the normal, with the bias of the curvature
taken out (`_surface`). The noise is taken to be alike on the three axes and far below the strength. A rotation between
the sensor and its body cannot be seen in this way: that needs the attitude (`known_attitude`), as a direction does.
Without soft iron the ellipsoid is a sphere, four numbers.

The readings have to be in time order for the verdict on whiteness; nothing else depends on it. A motion that leaves a
combination of the numbers open is refused with what is missing (`_coverage`).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.calibration import _coverage
from navsense.calibration._distance import SHAPE
from navsense.calibration._moments import Spread, spread_of
from navsense.calibration._surface import PAIRS, Fit, Readings, matrix_of
from navsense.calibration.checks import Extremes, checked_field
from navsense.calibration.known_attitude import EXPLAINED, NOISELESS, SPARE, STRETCHED, WELL_EXPLAINED
from navsense.calibration.result import Calibration
from navsense.calibration.units import check_scale, checked_strength, checked_unit
from navsense.calibration.verdict import FALSE_ALARM, HOPELESS, POOR, Verdict, Whiteness, correlation, weakness
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

SUSPECTS: Final = (
    "turn the sensor through many attitudes, away from iron, magnets and currents, or leave out the readings near them"
)
"""Where readings do not lie on an ellipsoid."""


class Ellipsoid:
    """A calibration that readings are added to, part by part, as on a vehicle that moves.

    Readings are kept, 24 bytes each, until they tell the ellipsoid to 0.1 percent; from then on 1.6 MB of them at most.
    The covariance is linear: with a verdict that is not ok for want of motion, errors have longer tails than it says.
    The parameters are those of `ellipsoid`. Raises `CalibrationError`.
    """

    def __init__(self, strength: float | None = None, *, unit: str | None = "T", soft_iron: bool = True) -> None:
        """Start with no reading."""
        self._unit = checked_unit(unit)
        self._strength = checked_strength(strength, unit)
        self._readings, self._extremes = Readings(soft_iron=soft_iron), Extremes()

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
        self._readings.add(rows)

    def solve(self) -> Calibration:
        """Return the calibration from all readings so far; more may be added afterwards.

        Raises `CalibrationError` where none can be trusted.
        """
        self._check_count()
        self._extremes.check()
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
            raise _coverage.refusal(_coverage.gap(fit, spread, HOPELESS))
        unit = self._readings.unit
        check_scale(numbers[0] * unit, self._unit, self._strength)
        _check_misfit(fit, explained)
        _check_stretch(fit)
        verdict = Verdict(weakest, explained, white, _reasons(fit, spread, weakest, explained, white))
        return self._result(fit, numbers, covariance, verdict)

    def _check_count(self) -> None:
        """Raise `CalibrationError` where the readings are too few for any motion."""
        sought = self._readings.size
        fewest = sought + SPARE
        if self.count < fewest:
            what = f"{self.count} reading{'s' * (self.count != 1)}"
            allowed = f"must be at least {fewest} for {sought} parameters"
            raise CalibrationError("field", what, allowed=allowed, remedy="record for longer, while turning")

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
    return reasons + _iron_left_out(fit)


def _iron_left_out(fit: Fit) -> tuple[str, ...]:
    """Return the reason that soft iron is which a sphere leaves out: significant by the score, and not small."""
    from scipy.special import chdtri

    if fit.basis.shape[1] == SHAPE or not fit.variance > 0.0:
        return ()
    total = fit.sums.total
    score = total[:SHAPE, 9] - fit.variance * total[:SHAPE, 10]
    values, vectors = np.linalg.eigh(total[:SHAPE, :SHAPE])
    step = vectors @ ((vectors.T @ score) / np.maximum(values, NOISELESS * values[-1]))
    iron = matrix_of(step) / fit.strength
    size = float(np.linalg.norm(iron - np.eye(3) * np.trace(iron) / 3.0))
    if float(score @ step) / fit.variance < chdtri(SHAPE - 4, FALSE_ALARM) or size < POOR:
        return ()
    return (f"soft iron of some {100.0 * size:.2g} % is seen: calibrate with soft iron",)

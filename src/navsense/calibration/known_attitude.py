"""Calibration of a magnetometer whose attitude is known, from another source than itself.

    m = scale soft_iron R_ws^-1 direction_w + bias + noise        det soft_iron = 1

m the reading in the sensor's frame, R_ws from sensor to world coordinates, direction_w the unit vector of the earth's
field in the world. Scale, soft iron, direction and bias, 14 numbers, are found together, in one pass over the readings
(`_statistics`) and at the maximum of their likelihood (`_fit`). The soft iron need not be symmetric: it holds how the
sensor is mounted against the frame of the attitude too. Without soft iron it is GTSAM's `MagFactor3`, seven numbers of
six degrees of freedom.

The readings have to be in time order for the verdict on whiteness; nothing else depends on it. A motion that does not
tell the parameters apart is refused (`_motion`): what attitude errors of `attitude_stddev` could feign counts as no
motion. Half a degree is what an attitude filter of a small robot is off by; give less where the attitude is better.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.calibration._fit import TRACELESS, Fit, Sums, plane, refined, residual, start, variances
from navsense.calibration._motion import FAINT, FEIGNED, Motion, motion
from navsense.calibration._statistics import Statistics
from navsense.calibration.checks import Extremes, checked_field, checked_rotation
from navsense.calibration.result import Calibration
from navsense.calibration.units import check_scale, checked_strength, checked_unit
from navsense.calibration.verdict import HOPELESS, LEVELS, STEP, Verdict, Whiteness, correlation, weakness, whiteness
from navsense.errors import CalibrationError
from navsense.typing import FloatArray, Quaternions, Vectors

ATTITUDE_STDDEV: Final = math.radians(0.5)
"""Radians that an attitude is off by about each axis where nothing else is said."""

DROWNED: Final = 0.5
"""Feigned part, were the residuals all attitude errors, above which nothing is given: more error than motion."""

SPARE: Final = 10
"""Readings beyond those that the parameters need: the residuals' deviation is known to 13 percent."""

EXPLAINED: Final = 0.5
"""Share of the readings' variance that the model has to explain."""

WELL_EXPLAINED: Final = 0.9
"""Share below which the verdict is not ok."""

STRETCHED: Final = 5.0
"""Ratio of the soft iron's largest stretch to its smallest that no iron makes: an axis is not seen."""

TURNED: Final = math.radians(30.0)
"""Turn of a soft iron from which it is not iron but a mounting: other axes than the attitude's."""

NOISELESS: Final = 1e-13
"""Residual variance, of the field's, that is rounding: it says nothing about whiteness."""

SAMPLED: Final = 2000
"""Readings on which other meanings of an attitude are tried."""

SUSPECTS: Final = (
    "check that readings and attitudes are of the same instants, that the attitude is w x y z from sensor to world,"
    " and that it was not made from this magnetometer"
)
"""Where readings and attitudes do not belong together."""

MEANINGS: Final = {
    "x y z w, from sensor to world": ((3, 0, 1, 2), 1.0),
    "w x y z, but from world to sensor": ((0, 1, 2, 3), -1.0),
}
"""What else an attitude's four numbers may mean: where w x y z stand in them, the sign of x y z.

Both at once are another rotation's w x y z, with the frames turned by a quarter: `TURNED` tells.
"""


class KnownAttitude:
    """A calibration that readings with attitude are added to, part by part, as on a vehicle that moves.

    The parameters are those of `known_attitude`. Raises `CalibrationError`.
    """

    def __init__(
        self,
        *,
        unit: str | None = "T",
        strength: float | None = None,
        soft_iron: bool = True,
        direction: ArrayLike | None = None,
        attitude_stddev: float = ATTITUDE_STDDEV,
    ) -> None:
        """Start with no reading."""
        self._unit = checked_unit(unit)
        self._strength = checked_strength(strength, unit)
        self._soft_iron = soft_iron
        self._direction = _checked_direction(direction)
        if not (math.isfinite(attitude_stddev) and attitude_stddev >= 0.0):
            raise CalibrationError("attitude_stddev", attitude_stddev, allowed="must be at least 0 (rad)")
        self._attitude_stddev = float(attitude_stddev)
        self._statistics, self._extremes = Statistics(), Extremes()

    @property
    def count(self) -> int:
        """Return how many readings were taken."""
        return self._statistics.count

    def update(self, field: ArrayLike, rotation_ws: ArrayLike) -> None:
        """Take further readings (n, 3) in the unit and their attitudes (n, 4) w x y z, n from 0 on.

        What is refused leaves the calibration as it was. Raises `CalibrationError`.
        """
        rows = checked_field(field)
        turns = checked_rotation(rotation_ws, rows.shape[0])
        self._statistics.update(rows, turns)
        self._extremes.update(rows)

    def solve(self) -> Calibration:
        """Return the calibration from all readings so far; more may be added afterwards.

        Raises `CalibrationError` where none can be trusted.
        """
        return self._solved(self.sums())

    def sums(self) -> Sums:
        """Return the sums over all readings; raise `CalibrationError` where they are too few, alike or saturated."""
        self._check_count()
        self._extremes.check()
        sums = Sums.of(self._statistics.products(0), self.count)
        if not 0.0 < sums.size < math.inf:
            remedy = "give them in a unit of which the earth's field is not so many"
            raise CalibrationError("field", "cannot be squared", allowed="must be numbers of usual size", remedy=remedy)
        return sums

    def _solved(self, sums: Sums) -> Calibration:
        """Return the calibration; raise `CalibrationError` where it cannot be trusted."""
        first = start(sums, self._direction, soft_iron=self._soft_iron)
        turned = motion(sums, first)
        _check_motion(turned, self._attitude_stddev, first)
        fit, covariance, noise = refined(sums, first)
        explained = 1.0 - float(np.trace(noise)) / sums.variance
        if explained < EXPLAINED:
            raise _misfit(explained)
        seen = math.sqrt(float(np.trace(noise)) / 2.0) / fit.scale if self._attitude_stddev > 0.0 else 0.0
        if turned.feigned * seen**2 > DROWNED:
            raise _undetermined(f"{turned}, no more than errors of the attitude that the residuals show", turned, fit)
        _check_stretch(fit)
        _check_sign(fit)
        check_scale(fit.scale * sums.size, self._unit, self._strength)
        white = _whiteness(self._statistics, sums, fit)
        covariance = covariance * white.inflation
        verdict = self._verdict(turned, seen, explained, white, covariance, fit)
        if verdict.weakest > HOPELESS * math.sqrt(white.inflation):
            raise _undetermined(f"known to {100.0 * verdict.weakest:.2g} % of the field only, {turned}", turned, fit)
        if verdict.weakest > HOPELESS:
            raise _coloured(verdict)
        return self._result(sums, fit, covariance, noise, verdict)

    def tried(self, field: Vectors, rotation_ws: Quaternions) -> tuple[float, float]:
        """Return how other readings (n, 3), (n, 4) fit the model, and how far their soft iron is from none.

        The first is the share of their variance that it leaves open.
        """
        statistics = Statistics()
        statistics.update(field, rotation_ws)
        sums = Sums.of(statistics.products(0), statistics.count)
        fit, _, _ = refined(sums, start(sums, self._direction, soft_iron=self._soft_iron))
        left = float(np.trace(residual(sums, fit))) / sums.variance
        return left, float(np.linalg.norm(fit.iron - fit.scale * np.eye(3))) / fit.scale

    def _check_count(self) -> None:
        """Raise `CalibrationError` where the readings are too few for any motion."""
        sought = 4 + 2 * (self._direction is None) + 8 * self._soft_iron
        fewest = math.ceil(sought / 3.0) + SPARE
        if self.count < fewest:
            what = f"{self.count} reading{'s' * (self.count != 1)}"
            allowed = f"must be at least {fewest} for {sought} parameters"
            raise CalibrationError("field", what, allowed=allowed, remedy="record for longer, while turning")

    def _verdict(
        self, turned: Motion, seen: float, explained: float, white: Whiteness, covariance: FloatArray, fit: Fit
    ) -> Verdict:
        """Return the verdict; `seen` (rad) is the attitude error that would make all of the residuals."""
        weakest = math.sqrt(float(np.linalg.eigvalsh(covariance)[-1]))
        reasons = weakness(weakest, f"{turned}; {turned.remedy}, or record for longer") + correlation(white)
        feigned = turned.feigned * self._attitude_stddev**2
        if feigned > FAINT:
            reasons += (_faint(turned, self._attitude_stddev, feigned),)
        elif turned.feigned * seen**2 > FEIGNED:
            reasons += (_suspect(turned, seen),)
        if explained < WELL_EXPLAINED:
            reasons += (f"{100.0 * explained:.3g} % of the readings' variance explained: {SUSPECTS}",)
        return Verdict(weakest, explained, white, reasons + _mounting(fit))

    def _result(self, sums: Sums, fit: Fit, covariance: FloatArray, noise: FloatArray, verdict: Verdict) -> Calibration:
        """Return all of it in the unit of the readings."""
        names, slopes = _numbers(fit)
        unit = np.array([sums.size if name.startswith(("scale", "bias")) else 1.0 for name in names])
        slopes = slopes * unit[:, None]
        return Calibration(
            method="known attitude",
            scale=fit.scale * sums.size,
            direction=fit.direction.copy(),
            bias=fit.bias * sums.size + self._statistics.first,
            soft_iron=fit.iron / fit.scale,
            covariance=slopes @ covariance @ slopes.T,
            names=names,
            freedom=fit.size,
            residual_stddev=sums.size * math.sqrt(float(np.trace(noise)) / 3.0),
            count=self.count,
            unit=self._unit,
            strength=self._strength,
            verdict=verdict,
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
) -> Calibration:
    """Return the calibration of readings (n, 3) with attitudes (n, 4), w x y z, sensor to world, in time order.

    `unit` is that of the readings ("T", "mT", "uT", "nT", "G", "mG", None for any numbers), `strength` the field's own
    strength in it, `direction` (3,) the field's in the world where they are known. `soft_iron` False: the sensor has
    none. `attitude_stddev` (rad) is what the attitudes are off by about each axis.

    Raises `CalibrationError` for what is no record of a magnetometer, and where no calibration can be trusted.
    """
    stream = KnownAttitude(
        unit=unit, strength=strength, soft_iron=soft_iron, direction=direction, attitude_stddev=attitude_stddev
    )
    stream.update(field, rotation_ws)
    stream.sums()
    try:
        result = stream.solve()
    except CalibrationError as error:
        meant = _misread(stream, field, rotation_ws)
        if meant:
            raise _otherwise(meant) from error
        raise
    if not result.verdict.ok:
        meant = _misread(stream, field, rotation_ws)
        if meant:
            raise _otherwise(meant)
    return result


def _checked_direction(direction: ArrayLike | None) -> FloatArray | None:
    """Return a unit vector (3,), None where none is given; raise `CalibrationError` for another thing."""
    if direction is None:
        return None
    try:
        vector = np.asarray(direction, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise CalibrationError("direction", str(error), allowed="must be three finite numbers, not all 0") from error
    if vector.shape != (3,) or not np.isfinite(vector).all() or not vector.any():
        raise CalibrationError("direction", direction, allowed="must be three finite numbers, not all 0")
    return np.asarray(vector / np.linalg.norm(vector))


def _check_motion(turned: Motion, stddev: float, fit: Fit) -> None:
    """Raise `CalibrationError` where attitude errors (rad) may be all the motion that tells some of the parameters."""
    if not math.isfinite(turned.feigned) or turned.feigned * stddev**2 > FEIGNED:
        raise _undetermined(str(turned), turned, fit)


def _faint(turned: Motion, stddev: float, feigned: float) -> str:
    """Return the reason that a motion is which attitude errors (rad) could feign in part."""
    return (
        f"{turned}: attitude errors of {math.degrees(stddev):.2g} deg make it wrong by {100.0 * feigned:.2g} %;"
        f" {turned.remedy}, or give the attitude's own attitude_stddev"
    )


def _suspect(turned: Motion, seen: float) -> str:
    """Return the reason that residuals are which attitude errors `seen` (rad) may have made."""
    return (
        f"{turned}, residuals as attitude errors of {math.degrees(seen):.2g} deg make: if they are, it is wrong by"
        f" {100.0 * min(1.0, turned.feigned * seen**2):.2g} %; {turned.remedy}"
    )


def _undetermined(what: str, turned: Motion, fit: Fit) -> CalibrationError:
    """Return the error of a motion that leaves a combination of parameters open."""
    names, slopes = _numbers(Fit(np.eye(3), fit.direction, np.zeros(3), fit.seeks_direction, fit.seeks_iron))
    parts = np.linalg.norm(slopes @ turned.weak, axis=1)
    largest = sorted(int(i) for i in np.argsort(-parts)[:4] if parts[i] > 0.3 * parts.max())
    allowed = f"must tell {', '.join(names[i] for i in largest)} apart"
    return CalibrationError(f"motion: {what}", allowed=allowed, remedy=turned.remedy)


def _coloured(verdict: Verdict) -> CalibrationError:
    """Return the error of residuals that hang together so much that nothing is known."""
    known = f"known to {100.0 * verdict.weakest:.2g} % of the field only"
    return CalibrationError(f"residuals: {known}", allowed="must be white", remedy=correlation(verdict.whiteness)[0])


def _misfit(explained: float) -> CalibrationError:
    """Return the error of readings and attitudes that do not belong together."""
    what = f"{100.0 * max(explained, 0.0):.2g} % of the readings' variance explained by the attitude"
    return CalibrationError("field", what, allowed=f"must be at least {100.0 * EXPLAINED:g} %", remedy=SUSPECTS)


def _otherwise(meaning: str) -> CalibrationError:
    """Return the error of an attitude that means something else than it should."""
    remedy = "give unit quaternions w x y z that take sensor coordinates to world coordinates"
    allowed = "must be w x y z, from sensor to world"
    return CalibrationError("rotation_ws", f"fits the readings when read as {meaning}", allowed=allowed, remedy=remedy)


def _check_sign(fit: Fit) -> None:
    """Raise `CalibrationError` where the soft iron has no positive determinant."""
    if np.linalg.det(fit.iron) > 0.0:
        return
    what = "left-handed: an axis has the wrong sign" if fit.seeks_iron else "against the direction given"
    remedy = "turn the sign of an axis of the sensor, or of the direction (it points down in the north)"
    raise CalibrationError("field", what, allowed="must lie along direction, in right-handed axes", remedy=remedy)


def _check_stretch(fit: Fit) -> None:
    """Raise `CalibrationError` where the soft iron is none: an axis that hardly sees the field."""
    stretches = np.linalg.svd(fit.iron)[1]
    if stretches[0] > STRETCHED * stretches[-1]:
        what = f"stretches one way {stretches[0] / max(stretches[-1], 1e-300):.3g} times as much as another"
        remedy = "check that all three axes work and are in one unit, and that the motion is about two axes at least"
        raise CalibrationError("soft_iron", what, allowed=f"must be at most {STRETCHED:g}", remedy=remedy)


def _mounting(fit: Fit) -> tuple[str, ...]:
    """Return the reason that a soft iron is which turns the field, as a mounting does, none where it is iron."""
    left, _, right = np.linalg.svd(fit.iron)
    angle = math.acos(min(1.0, max(-1.0, 0.5 * (float(np.trace(left @ right)) - 1.0))))
    if angle < TURNED:
        return ()
    reason = (
        f"the soft iron turns the field by {math.degrees(angle):.3g} deg: the readings' axes are not those of the"
        " attitude; turn the readings into these, or give the attitude of the readings' axes, w x y z"
    )
    return (reason,)


def _whiteness(statistics: Statistics, sums: Sums, fit: Fit) -> Whiteness:
    """Return the verdict on the residuals' sums over blocks, each weighted with the residuals' own covariance."""
    contrast = fit.contrast.copy()
    contrast[:, 10:] /= sums.size
    noise = variances(sums, fit)
    if float(np.trace(noise)) < NOISELESS * float(np.trace(sums.square)):
        return Whiteness()
    weight = np.linalg.inv(noise)
    counts = [statistics.blocks(level) for level in range(1, LEVELS + 1)]
    counts = [count for count in counts if count]
    ratio = [
        float(np.sum(weight * (contrast @ statistics.products(level) @ contrast.T)))
        / (3.0 * count * float(STEP) ** level)
        for level, count in enumerate(counts, 1)
    ]
    return whiteness(ratio, counts, 3)


def _numbers(fit: Fit) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names of the numbers that are given, and their derivatives (k, n) by the parameters."""
    scale, sought = fit.scale, fit.size
    slopes = np.zeros((16, sought))
    slopes[0, 3] = scale
    slopes[4:7, :3] = scale * np.eye(3)
    names = ["scale", *(f"{what}.{axis}" for what in ("direction", "bias") for axis in "xyz")]
    names += [f"soft_iron.{row}{column}" for row in "xyz" for column in "xyz"]
    if fit.seeks_direction:
        slopes[1:4, 4:6] = plane(fit.direction)
    if fit.seeks_iron:
        changes = (fit.iron / scale) @ TRACELESS
        slopes[7:, sought - 8 :] = changes.reshape(8, 9).T
    kept = [0, *((1, 2, 3) if fit.seeks_direction else ()), 4, 5, 6, *(range(7, 16) if fit.seeks_iron else ())]
    return tuple(names[i] for i in kept), slopes[kept]


def _misread(stream: KnownAttitude, field: ArrayLike, rotation_ws: ArrayLike) -> str:
    """Return what the attitudes mean instead, where that explains the readings and what they should mean does not."""
    rows, turns = checked_field(field), checked_rotation(rotation_ws, np.shape(field)[0])
    step = max(1, rows.shape[0] // SAMPLED)
    rows, turns = np.ascontiguousarray(rows[::step]), turns[::step]
    if rows.shape[0] < SPARE or not np.ptp(rows):
        return ""
    unexplained, _ = stream.tried(rows, np.ascontiguousarray(turns))
    fitting = []
    for meaning, (order, sign) in MEANINGS.items():
        other = turns[:, order] * np.array((1.0, sign, sign, sign))
        left, iron = stream.tried(rows, np.ascontiguousarray(other))
        if left < min(1.0 - WELL_EXPLAINED, 0.25 * unexplained):
            fitting.append((iron, meaning))
    return min(fitting)[1] if fitting else ""

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

from navsense.calibration._axes import check_direction, check_sign, check_stretch, mounting
from navsense.calibration._fit import TRACELESS, Fit, Sums, plane, refined, residual, start, variances
from navsense.calibration._motion import FAINT, FEIGNED, Motion, motion
from navsense.calibration._residuals import Residuals
from navsense.calibration._statistics import Statistics
from navsense.calibration.checks import Extremes, Thinned, check_count, checked_field, checked_rotation, checked_switch
from navsense.calibration.result import Calibration
from navsense.calibration.units import check_scale, checked_positive, checked_strength, checked_unit
from navsense.calibration.verdict import (
    EXPLAINED,
    HOPELESS,
    LEVELS,
    NOISELESS,
    POOR,
    SPARE,
    STEP,
    WELL_EXPLAINED,
    Verdict,
    Whiteness,
    correlation,
    dropouts,
    surplus,
    weakness,
    whiteness,
)
from navsense.errors import CalibrationError
from navsense.typing import AnyArray, FloatArray, Quaternions, Vectors

ATTITUDE_STDDEV: Final = math.radians(0.5)
"""Radians that an attitude is off by about each axis where nothing else is said."""

DROWNED: Final = 0.5
"""Feigned part, were the residuals all attitude errors, above which nothing is given: more error than motion."""

LARGEST_STDDEV: Final = 0.5
"""Radians that attitudes may be said to be off by: no motion is more than such errors."""

FULL: Final = FAINT / ATTITUDE_STDDEV**2
"""Feigned part for a radian up to which a motion is not what is missing, where no attitude errors are seen."""

AMPLE: Final = 10.0
"""Up to which it is not, whatever is seen: turns of some 20 degrees about all axes."""

SAMPLED: Final = 2000
"""Readings on which other meanings of an attitude are tried."""

MISREAD: Final = 1e-6
"""Share of the variance left open, a thousandth of the field, up to which an attitude is not said to mean another."""

SUSPECTS: Final = (
    "check that readings and attitudes are of the same instants, that the attitude is w x y z from sensor to world,"
    " and that it was not made from this magnetometer"
)
"""Where readings and attitudes do not belong together."""

ERRORS: Final = "no more than errors of the attitude that the residuals show"
"""What a motion may be."""

MEANINGS: Final = {
    "x y z w, from sensor to world": ((3, 0, 1, 2), 1.0),
    "w x y z, but from world to sensor": ((0, 1, 2, 3), -1.0),
}
"""What else an attitude's four numbers may mean: where w x y z stand in them, the sign of x y z.

Both at once are another rotation's w x y z, with the frames turned by a quarter: the mounting tells (`_axes`).
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
        noise_stddev: float | None = None,
    ) -> None:
        """Start with no reading."""
        self._unit = checked_unit(unit)
        self._strength = checked_strength(strength, unit)
        self._soft_iron = checked_switch("soft_iron", soft_iron)
        self._direction = _checked_direction(direction)
        self._attitude_stddev = _checked_stddev(attitude_stddev)
        self._noise_stddev = checked_positive("noise_stddev", noise_stddev)
        self._statistics, self._extremes = Statistics(), Extremes()
        self._kept, self._turns = Thinned(3), Thinned(4)

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
        self._kept.update(rows)
        self._turns.update(turns)

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
        residuals = Residuals.of(self._kept, self._turns, self._statistics.first, sums, fit)
        found = dropouts(self._extremes.zeros) + residuals.outliers(self._kept)
        if self._direction is not None:
            check_direction(sums, fit)
        if explained < EXPLAINED:
            raise _misfit(explained, found)
        white = _whiteness(self._statistics, sums, fit)
        shown = residuals.turns(white.inflation)
        ample = turned.feigned <= (AMPLE if shown else FULL)
        if ample:
            check_stretch(fit)
        seen = max(math.sqrt(float(np.trace(noise)) / 2.0) / fit.scale * (self._attitude_stddev > 0.0), shown)
        if turned.feigned * seen**2 > DROWNED:
            raise _drowned(seen, found) if ample else _undetermined(f"{turned}, {ERRORS}", turned, fit)
        check_stretch(fit)
        check_sign(fit)
        check_scale(fit.scale * sums.size, self._unit, self._strength)
        covariance = covariance * white.inflation
        weakest = math.sqrt(float(np.linalg.eigvalsh(covariance)[-1]))
        if weakest > HOPELESS * math.sqrt(white.inflation):
            raise _unknown(turned, fit, weakest, ample=ample)
        if weakest > HOPELESS:
            raise _coloured(weakest, white)
        remedy = f"{turned}; {turned.remedy}, or record for longer" if not ample else "record for longer"
        reasons = found + residuals.places(white.inflation) + self._surplus(sums, fit, noise) + correlation(white)
        weak = weakness(weakest, remedy)
        reasons = reasons + weak if weakest <= POOR * math.sqrt(white.inflation) else weak + reasons  # the cause first
        reasons += self._doubts(turned, seen, shown, ample=ample)
        if explained < WELL_EXPLAINED:
            reasons += (f"{100.0 * explained:.3g} % of the readings' variance explained: {SUSPECTS}",)
        verdict = Verdict(weakest, explained, white, reasons + mounting(fit))
        return self._result(sums, fit, covariance, noise, verdict)

    def _surplus(self, sums: Sums, fit: Fit, noise: FloatArray) -> tuple[str, ...]:
        """Return the reason that residuals are which are beyond the declared noise and the attitude's errors."""
        if self._noise_stddev is None:
            return ()
        turning = self._attitude_stddev * fit.scale * sums.size  # across the field: two of three axes
        found = sums.size * math.sqrt(float(np.trace(noise)) / 3.0)
        return surplus(found, math.sqrt(self._noise_stddev**2 + 2.0 / 3.0 * turning**2), self._unit)

    def _doubts(self, turned: Motion, seen: float, shown: float, *, ample: bool) -> tuple[str, ...]:
        """Return the reason that attitude errors are: those declared, seen in the residuals, or all of these."""
        feigned = turned.feigned * self._attitude_stddev**2
        if feigned > FAINT:
            return (_faint(turned, self._attitude_stddev, feigned),)
        if turned.feigned * shown**2 > FAINT:
            return (_suspect(turned, shown, ample=ample),)
        return (_suspect(turned, seen, ample=ample),) if turned.feigned * seen**2 > FEIGNED else ()

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
        check_count(self.count, math.ceil(sought / 3.0) + SPARE, sought)

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
    noise_stddev: float | None = None,
) -> Calibration:
    """Return the calibration of readings (n, 3) with attitudes (n, 4), w x y z, sensor to world, in time order.

    `unit` is that of the readings ("T", "mT", "uT", "nT", "G", "mG", None for any numbers), `strength` the field's own
    strength in it, `direction` (3,) the field's in the world where they are known. `soft_iron` False: the sensor has
    none. `attitude_stddev` (rad) is what the attitudes are off by about each axis, `noise_stddev` the sensor's own
    noise on one axis in the unit, where it is known: residuals that are beyond both are a reason.

    Raises `CalibrationError` for what is no record of a magnetometer, and where no calibration can be trusted.
    """
    stream = KnownAttitude(
        unit=unit,
        strength=strength,
        soft_iron=soft_iron,
        direction=direction,
        attitude_stddev=attitude_stddev,
        noise_stddev=noise_stddev,
    )
    stream.update(field, rotation_ws)
    stream.sums()
    try:
        result = stream.solve()
    except CalibrationError as error:
        bound = 1.0 - WELL_EXPLAINED if error.what.startswith("motion") else MISREAD
        meant = _misread(stream, field, rotation_ws, bound)
        if meant:
            raise _otherwise(meant) from error
        raise
    if not result.verdict.ok:
        meant = _misread(stream, field, rotation_ws, MISREAD)
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
    vector = vector / np.abs(vector).max()
    return np.asarray(vector / np.linalg.norm(vector))


def _checked_stddev(stddev: float) -> float:
    """Return the deviation of attitudes (rad); raise `CalibrationError` for what is none."""
    given: AnyArray = np.asarray(stddev)
    allowed = f"must be from 0 to {LARGEST_STDDEV:g} (rad)"
    if given.ndim or given.dtype.kind not in "fiu":
        raise CalibrationError("attitude_stddev", stddev, allowed=allowed)
    if not 0.0 <= float(given) <= LARGEST_STDDEV:
        remedy = "give radians, 0.0087 for half a degree"
        raise CalibrationError("attitude_stddev", f"{float(given):.6g}", allowed=allowed, remedy=remedy)
    return float(given)


def _check_motion(turned: Motion, stddev: float, fit: Fit) -> None:
    """Raise `CalibrationError` where attitude errors (rad) may be all the motion that tells some of the parameters."""
    if math.isfinite(turned.feigned) and turned.feigned * stddev**2 <= FEIGNED:
        return
    error = _undetermined(str(turned), turned, fit)
    if turned.feigned * ATTITUDE_STDDEV**2 <= FEIGNED:
        error.remedy += f"; or check attitude_stddev, {stddev:.3g} rad are {math.degrees(stddev):.3g} deg"
    raise error


def _faint(turned: Motion, stddev: float, feigned: float) -> str:
    """Return the reason that a motion is which attitude errors (rad) could feign in part."""
    return (
        f"{turned}: attitude errors of {math.degrees(stddev):.2g} deg make it wrong by {100.0 * feigned:.2g} %;"
        f" {turned.remedy}, or give the attitude's own attitude_stddev"
    )


def _suspect(turned: Motion, seen: float, *, ample: bool) -> str:
    """Return the reason that residuals are which attitude errors `seen` (rad) may have made."""
    wrong = f"as attitude errors of {math.degrees(seen):.2g} deg make: if they are, it is wrong by"
    part = f"{100.0 * min(1.0, turned.feigned * seen**2):.2g} %"
    if ample:
        return (
            f"residuals of {100.0 * math.sqrt(2.0 / 3.0) * seen:.2g} % of the field an axis, {wrong} {part}; {SUSPECTS}"
        )
    return f"{turned}, residuals {wrong} {part}; {turned.remedy}"


def _undetermined(what: str, turned: Motion, fit: Fit) -> CalibrationError:
    """Return the error of a motion that leaves a combination of parameters open."""
    names, slopes = _numbers(Fit(np.eye(3), fit.direction, np.zeros(3), fit.seeks_direction, fit.seeks_iron))
    parts = np.linalg.norm(slopes @ turned.weak, axis=1)
    largest = sorted(int(i) for i in np.argsort(-parts)[:4] if parts[i] > 0.3 * parts.max())
    allowed = f"must tell {', '.join(names[i] for i in largest)} apart"
    return CalibrationError(f"motion: {what}", allowed=allowed, remedy=turned.remedy)


def _drowned(seen: float, found: tuple[str, ...]) -> CalibrationError:
    """Return the error of residuals as large as attitude errors `seen` (rad) make, with what was found of readings."""
    what, remedy = f"{100.0 * math.sqrt(2.0 / 3.0) * seen:.2g} % of the field an axis", "; ".join((*found, SUSPECTS))
    return CalibrationError("residuals", what, allowed="must be small against the field", remedy=remedy)


def _unknown(turned: Motion, fit: Fit, weakest: float, *, ample: bool) -> CalibrationError:
    """Return the error of a combination of parameters that is known too badly."""
    known = f"known to {100.0 * weakest:.2g} % of the field only"
    if not ample:
        return _undetermined(f"{known}, {turned}", turned, fit)
    allowed = f"must be known to {100.0 * HOPELESS:g} %"
    return CalibrationError("field", known, allowed=allowed, remedy=f"record for longer, or {SUSPECTS}")


def _coloured(weakest: float, white: Whiteness) -> CalibrationError:
    """Return the error of residuals that hang together so much that nothing is known."""
    known = f"known to {100.0 * weakest:.2g} % of the field only"
    return CalibrationError(f"residuals: {known}", allowed="must be white", remedy=correlation(white)[0])


def _misfit(explained: float, found: tuple[str, ...]) -> CalibrationError:
    """Return the error of readings and attitudes that do not belong together, with what was found of the readings."""
    what = f"{100.0 * max(explained, 0.0):.2g} % of the readings' variance explained by the attitude"
    remedy = "; ".join((*found, SUSPECTS))
    return CalibrationError("field", what, allowed=f"must be at least {100.0 * EXPLAINED:g} %", remedy=remedy)


def _otherwise(meaning: str) -> CalibrationError:
    """Return the error of an attitude that means something else than it should."""
    remedy = "give unit quaternions w x y z that take sensor coordinates to world coordinates"
    allowed = "must be w x y z, from sensor to world"
    return CalibrationError("rotation_ws", f"fits the readings when read as {meaning}", allowed=allowed, remedy=remedy)


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


def _misread(stream: KnownAttitude, field: ArrayLike, rotation_ws: ArrayLike, bound: float) -> str:
    """Return what the attitudes mean instead, where that explains the readings and what they should mean does not.

    No more than `bound` of the readings' variance has to be left open for what they should mean to hold.
    """
    rows, turns = checked_field(field), checked_rotation(rotation_ws, np.shape(field)[0])
    step = max(1, rows.shape[0] // SAMPLED)
    rows, turns = np.ascontiguousarray(rows[::step]), turns[::step]
    if rows.shape[0] < SPARE or not np.ptp(rows):
        return ""
    unexplained, _ = stream.tried(rows, np.ascontiguousarray(turns))
    if unexplained <= bound:
        return ""
    fitting = []
    for meaning, (order, sign) in MEANINGS.items():
        other = turns[:, order] * np.array((1.0, sign, sign, sign))
        left, iron = stream.tried(rows, np.ascontiguousarray(other))
        if left < min(1.0 - WELL_EXPLAINED, 0.25 * unexplained):
            fitting.append((iron, meaning))
    return min(fitting)[1] if fitting else ""

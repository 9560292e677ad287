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

from navsense.calibration._attitude_diagnosis import (
    REFUSE_ERROR_SHARE,
    WARN_ERROR_SHARE,
    MotionExcitation,
    assess_excitation,
)
from navsense.calibration._attitude_fit import (
    TRACELESS,
    AttitudeFit,
    SecondMoments,
    initial_fit,
    noise_covariance,
    refine_fit,
    residual_covariance,
    tangent_plane,
)
from navsense.calibration._axes import check_direction, check_sign, check_stretch, mounting_reasons
from navsense.calibration._gram_sums import GramSums
from navsense.calibration._residuals import Residuals
from navsense.calibration.checks import (
    SaturationCheck,
    Subsample,
    check_count,
    validate_bool,
    validate_field,
    validate_rotation,
)
from navsense.calibration.result import Calibration
from navsense.calibration.units import check_scale, validate_positive, validate_strength, validate_unit
from navsense.calibration.verdict import (
    BLOCK_FACTOR,
    BLOCK_LEVELS,
    MIN_R_SQUARED,
    MIN_REDUNDANCY,
    REFUSE_ABOVE,
    ROUNDING_VARIANCE,
    WARN_ABOVE,
    WARN_R_SQUARED,
    Verdict,
    Whiteness,
    assess_whiteness,
    correlation_reasons,
    excess_noise_reasons,
    stddev_reasons,
    zero_reading_reasons,
)
from navsense.errors import CalibrationError
from navsense.typing import AnyArray, FloatArray, Quaternions, Vectors

ATTITUDE_STDDEV: Final = math.radians(0.5)
"""Radians that an attitude is off by about each axis where nothing else is said."""

MAX_SEEN_ERROR_SHARE: Final = 0.5
"""Feigned part, were the residuals all attitude errors, above which nothing is given: more error than motion."""

LARGEST_STDDEV: Final = 0.5
"""Radians that attitudes may be said to be off by: no motion is more than such errors."""

LOW_GAIN: Final = WARN_ERROR_SHARE / ATTITUDE_STDDEV**2
"""Feigned part for a radian up to which a motion is not what is missing, where no attitude errors are seen."""

SUFFICIENT_GAIN: Final = 10.0
"""Up to which it is not, whatever is seen: turns of some 20 degrees about all axes."""

ALTERNATIVE_READINGS: Final = 2000
"""Readings on which other meanings of an attitude are tried."""

CONVENTION_VARIANCE: Final = 1e-6
"""Share of the variance left open, a thousandth of the field, up to which an attitude is not said to mean another."""

MISFIT_REMEDY: Final = (
    "check that readings and attitudes are of the same instants, that the attitude is w x y z from sensor to world,"
    " and that it was not made from this magnetometer"
)
"""Where readings and attitudes do not belong together."""

ERROR_MOTION: Final = "no more than errors of the attitude that the residuals show"
"""What a motion may be."""

CONVENTIONS: Final = {
    "x y z w, from sensor to world": ((3, 0, 1, 2), 1.0),
    "w x y z, but from world to sensor": ((0, 1, 2, 3), -1.0),
}
"""What else an attitude's four numbers may mean: where w x y z stand in them, the sign of x y z.

Both at once are another rotation's w x y z, with the frames turned by a quarter: the mounting tells (`_axes`).
"""


class KnownAttitudeCalibrator:
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
        self._unit = validate_unit(unit)
        self._strength = validate_strength(strength, unit)
        self._soft_iron = validate_bool("soft_iron", soft_iron)
        self._direction = _validate_direction(direction)
        self._attitude_stddev = _validate_attitude_stddev(attitude_stddev)
        self._noise_stddev = validate_positive("noise_stddev", noise_stddev)
        self._gram_sums, self._saturation = GramSums(), SaturationCheck()
        self._field_subsample, self._rotation_subsample = Subsample(3), Subsample(4)

    @property
    def count(self) -> int:
        """Return how many readings were taken."""
        return self._gram_sums.count

    def update(self, field: ArrayLike, rotation_ws: ArrayLike) -> None:
        """Take further readings (n, 3) in the unit and their attitudes (n, 4) w x y z, n from 0 on.

        What is refused leaves the calibration as it was. Raises `CalibrationError`.
        """
        rows = validate_field(field)
        turns = validate_rotation(rotation_ws, rows.shape[0])
        self._gram_sums.update(rows, turns)
        self._saturation.update(rows)
        self._field_subsample.update(rows)
        self._rotation_subsample.update(turns)

    def solve(self) -> Calibration:
        """Return the calibration from all readings so far; more may be added afterwards.

        Raises `CalibrationError` where none can be trusted.
        """
        return self._solve(self.sums())

    def sums(self) -> SecondMoments:
        """Return the sums over all readings; raise `CalibrationError` where they are too few, alike or saturated."""
        self._check_count()
        self._saturation.check()
        sums = SecondMoments.from_products(self._gram_sums.products(0), self.count)
        if not 0.0 < sums.size < math.inf:
            remedy = "give them in a unit of which the earth's field is not so many"
            raise CalibrationError("field", "cannot be squared", allowed="must be numbers of usual size", remedy=remedy)
        return sums

    def _solve(self, sums: SecondMoments) -> Calibration:
        """Return the calibration; raise `CalibrationError` where it cannot be trusted."""
        first = initial_fit(sums, self._direction, soft_iron=self._soft_iron)
        turned = assess_excitation(sums, first)
        _check_motion(turned, self._attitude_stddev, first)
        fit, covariance, noise = refine_fit(sums, first)
        r_squared = 1.0 - float(np.trace(noise)) / sums.variance
        residuals = Residuals.from_fit(
            self._field_subsample, self._rotation_subsample, self._gram_sums.first, sums, fit
        )
        found = zero_reading_reasons(self._saturation.zeros) + residuals.distribution_reasons(self._field_subsample)
        if self._direction is not None:
            check_direction(sums, fit)
        if r_squared < MIN_R_SQUARED:
            raise _misfit_error(r_squared, found)
        white = _assess_whiteness(self._gram_sums, sums, fit)
        shown = residuals.attitude_stddev(white.inflation)
        ample = turned.attitude_error_gain <= (SUFFICIENT_GAIN if shown else LOW_GAIN)
        if ample:
            check_stretch(fit)
        seen = max(math.sqrt(float(np.trace(noise)) / 2.0) / fit.scale * (self._attitude_stddev > 0.0), shown)
        if turned.attitude_error_gain * seen**2 > MAX_SEEN_ERROR_SHARE:
            raise _residual_error(seen, found) if ample else _motion_error(f"{turned}, {ERROR_MOTION}", turned, fit)
        check_stretch(fit)
        check_sign(fit)
        check_scale(fit.scale * sums.size, self._unit, self._strength)
        covariance = covariance * white.inflation
        max_relative_stddev = math.sqrt(float(np.linalg.eigvalsh(covariance)[-1]))
        if max_relative_stddev > REFUSE_ABOVE * math.sqrt(white.inflation):
            raise _uncertain_error(turned, fit, max_relative_stddev, ample=ample)
        if max_relative_stddev > REFUSE_ABOVE:
            raise _correlation_error(max_relative_stddev, white)
        remedy = f"{turned}; {turned.remedy}, or record for longer" if not ample else "record for longer"
        reasons = (
            found
            + residuals.direction_reasons(white.inflation)
            + self._excess_noise_reasons(sums, fit, noise)
            + correlation_reasons(white)
        )
        weak = stddev_reasons(max_relative_stddev, remedy)
        reasons = (
            reasons + weak if max_relative_stddev <= WARN_ABOVE * math.sqrt(white.inflation) else weak + reasons
        )  # the cause first
        reasons += self._attitude_error_reasons(turned, seen, shown, ample=ample)
        if r_squared < WARN_R_SQUARED:
            reasons += (f"{100.0 * r_squared:.3g} % of the readings' variance explained: {MISFIT_REMEDY}",)
        verdict = Verdict(max_relative_stddev, r_squared, white, reasons + mounting_reasons(fit))
        return self._make_result(sums, fit, covariance, noise, verdict)

    def _excess_noise_reasons(self, sums: SecondMoments, fit: AttitudeFit, noise: FloatArray) -> tuple[str, ...]:
        """Return the reason that residuals are which are beyond the declared noise and the attitude's errors."""
        if self._noise_stddev is None:
            return ()
        turning = self._attitude_stddev * fit.scale * sums.size  # across the field: two of three axes
        found = sums.size * math.sqrt(float(np.trace(noise)) / 3.0)
        return excess_noise_reasons(found, math.sqrt(self._noise_stddev**2 + 2.0 / 3.0 * turning**2), self._unit)

    def _attitude_error_reasons(
        self, turned: MotionExcitation, seen: float, shown: float, *, ample: bool
    ) -> tuple[str, ...]:
        """Return the reason that attitude errors are: those declared, seen in the residuals, or all of these."""
        attitude_error_gain = turned.attitude_error_gain * self._attitude_stddev**2
        if attitude_error_gain > WARN_ERROR_SHARE:
            return (_describe_gain(turned, self._attitude_stddev, attitude_error_gain),)
        if turned.attitude_error_gain * shown**2 > WARN_ERROR_SHARE:
            return (_describe_residuals(turned, shown, ample=ample),)
        return (
            (_describe_residuals(turned, seen, ample=ample),)
            if turned.attitude_error_gain * seen**2 > REFUSE_ERROR_SHARE
            else ()
        )

    def fit_alternative(self, field: Vectors, rotation_ws: Quaternions) -> tuple[float, float]:
        """Return how other readings (n, 3), (n, 4) fit the model, and how far their soft iron is from none.

        The first is the share of their variance that it leaves open.
        """
        statistics = GramSums()
        statistics.update(field, rotation_ws)
        sums = SecondMoments.from_products(statistics.products(0), statistics.count)
        fit, _, _ = refine_fit(sums, initial_fit(sums, self._direction, soft_iron=self._soft_iron))
        left = float(np.trace(residual_covariance(sums, fit))) / sums.variance
        return left, float(np.linalg.norm(fit.iron - fit.scale * np.eye(3))) / fit.scale

    def _check_count(self) -> None:
        """Raise `CalibrationError` where the readings are too few for any motion."""
        sought = 4 + 2 * (self._direction is None) + 8 * self._soft_iron
        check_count(self.count, math.ceil(sought / 3.0) + MIN_REDUNDANCY, sought)

    def _make_result(
        self, sums: SecondMoments, fit: AttitudeFit, covariance: FloatArray, noise: FloatArray, verdict: Verdict
    ) -> Calibration:
        """Return all of it in the unit of the readings."""
        names, slopes = _calibration_numbers(fit)
        unit = np.array([sums.size if name.startswith(("scale", "bias")) else 1.0 for name in names])
        slopes = slopes * unit[:, None]
        return Calibration(
            method="known attitude",
            scale=fit.scale * sums.size,
            direction=fit.direction.copy(),
            bias=fit.bias * sums.size + self._gram_sums.first,
            soft_iron=fit.iron / fit.scale,
            covariance=slopes @ covariance @ slopes.T,
            names=names,
            degrees_of_freedom=fit.size,
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
    stream = KnownAttitudeCalibrator(
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
        bound = 1.0 - WARN_R_SQUARED if error.what.startswith("motion") else CONVENTION_VARIANCE
        meant = _find_convention(stream, field, rotation_ws, bound)
        if meant:
            raise _convention_error(meant) from error
        raise
    if not result.verdict.ok:
        meant = _find_convention(stream, field, rotation_ws, CONVENTION_VARIANCE)
        if meant:
            raise _convention_error(meant)
    return result


def _validate_direction(direction: ArrayLike | None) -> FloatArray | None:
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


def _validate_attitude_stddev(stddev: float) -> float:
    """Return the deviation of attitudes (rad); raise `CalibrationError` for what is none."""
    given: AnyArray = np.asarray(stddev)
    allowed = f"must be from 0 to {LARGEST_STDDEV:g} (rad)"
    if given.ndim or given.dtype.kind not in "fiu":
        raise CalibrationError("attitude_stddev", stddev, allowed=allowed)
    if not 0.0 <= float(given) <= LARGEST_STDDEV:
        remedy = "give radians, 0.0087 for half a degree"
        raise CalibrationError("attitude_stddev", f"{float(given):.6g}", allowed=allowed, remedy=remedy)
    return float(given)


def _check_motion(turned: MotionExcitation, stddev: float, fit: AttitudeFit) -> None:
    """Raise `CalibrationError` where attitude errors (rad) may be all the motion that tells some of the parameters."""
    if math.isfinite(turned.attitude_error_gain) and turned.attitude_error_gain * stddev**2 <= REFUSE_ERROR_SHARE:
        return
    error = _motion_error(str(turned), turned, fit)
    if turned.attitude_error_gain * ATTITUDE_STDDEV**2 <= REFUSE_ERROR_SHARE:
        error.remedy += f"; or check attitude_stddev, {stddev:.3g} rad are {math.degrees(stddev):.3g} deg"
    raise error


def _describe_gain(turned: MotionExcitation, stddev: float, attitude_error_gain: float) -> str:
    """Return the reason that a motion is which attitude errors (rad) could feign in part."""
    return (
        f"{turned}: attitude errors of {math.degrees(stddev):.2g} deg make it wrong by {100.0 * attitude_error_gain:.2g} %;"
        f" {turned.remedy}, or give the attitude's own attitude_stddev"
    )


def _describe_residuals(turned: MotionExcitation, seen: float, *, ample: bool) -> str:
    """Return the reason that residuals are which attitude errors `seen` (rad) may have made."""
    wrong = f"as attitude errors of {math.degrees(seen):.2g} deg make: if they are, it is wrong by"
    part = f"{100.0 * min(1.0, turned.attitude_error_gain * seen**2):.2g} %"
    if ample:
        return f"residuals of {100.0 * math.sqrt(2.0 / 3.0) * seen:.2g} % of the field an axis, {wrong} {part}; {MISFIT_REMEDY}"
    return f"{turned}, residuals {wrong} {part}; {turned.remedy}"


def _motion_error(what: str, turned: MotionExcitation, fit: AttitudeFit) -> CalibrationError:
    """Return the error of a motion that leaves a combination of parameters open."""
    names, slopes = _calibration_numbers(
        AttitudeFit(np.eye(3), fit.direction, np.zeros(3), fit.seeks_direction, fit.seeks_iron)
    )
    parts = np.linalg.norm(slopes @ turned.weakest_combinations, axis=1)
    largest = sorted(int(i) for i in np.argsort(-parts)[:4] if parts[i] > 0.3 * parts.max())
    allowed = f"must tell {', '.join(names[i] for i in largest)} apart"
    return CalibrationError(f"motion: {what}", allowed=allowed, remedy=turned.remedy)


def _residual_error(seen: float, found: tuple[str, ...]) -> CalibrationError:
    """Return the error of residuals as large as attitude errors `seen` (rad) make, with what was found of readings."""
    what, remedy = (
        f"{100.0 * math.sqrt(2.0 / 3.0) * seen:.2g} % of the field an axis",
        "; ".join((*found, MISFIT_REMEDY)),
    )
    return CalibrationError("residuals", what, allowed="must be small against the field", remedy=remedy)


def _uncertain_error(
    turned: MotionExcitation, fit: AttitudeFit, max_relative_stddev: float, *, ample: bool
) -> CalibrationError:
    """Return the error of a combination of parameters that is known too badly."""
    known = f"known to {100.0 * max_relative_stddev:.2g} % of the field only"
    if not ample:
        return _motion_error(f"{known}, {turned}", turned, fit)
    allowed = f"must be known to {100.0 * REFUSE_ABOVE:g} %"
    return CalibrationError("field", known, allowed=allowed, remedy=f"record for longer, or {MISFIT_REMEDY}")


def _correlation_error(max_relative_stddev: float, white: Whiteness) -> CalibrationError:
    """Return the error of residuals that hang together so much that nothing is known."""
    known = f"known to {100.0 * max_relative_stddev:.2g} % of the field only"
    return CalibrationError(f"residuals: {known}", allowed="must be white", remedy=correlation_reasons(white)[0])


def _misfit_error(r_squared: float, found: tuple[str, ...]) -> CalibrationError:
    """Return the error of readings and attitudes that do not belong together, with what was found of the readings."""
    what = f"{100.0 * max(r_squared, 0.0):.2g} % of the readings' variance explained by the attitude"
    remedy = "; ".join((*found, MISFIT_REMEDY))
    return CalibrationError("field", what, allowed=f"must be at least {100.0 * MIN_R_SQUARED:g} %", remedy=remedy)


def _convention_error(meaning: str) -> CalibrationError:
    """Return the error of an attitude that means something else than it should."""
    remedy = "give unit quaternions w x y z that take sensor coordinates to world coordinates"
    allowed = "must be w x y z, from sensor to world"
    return CalibrationError("rotation_ws", f"fits the readings when read as {meaning}", allowed=allowed, remedy=remedy)


def _assess_whiteness(statistics: GramSums, sums: SecondMoments, fit: AttitudeFit) -> Whiteness:
    """Return the verdict on the residuals' sums over blocks, each weighted with the residuals' own covariance."""
    contrast = fit.contrast.copy()
    contrast[:, 10:] /= sums.size
    noise = noise_covariance(sums, fit)
    if float(np.trace(noise)) < ROUNDING_VARIANCE * float(np.trace(sums.square)):
        return Whiteness()
    weight = np.linalg.inv(noise)
    counts = [statistics.blocks(level) for level in range(1, BLOCK_LEVELS + 1)]
    counts = [count for count in counts if count]
    ratio = [
        float(np.sum(weight * (contrast @ statistics.products(level) @ contrast.T)))
        / (3.0 * count * float(BLOCK_FACTOR) ** level)
        for level, count in enumerate(counts, 1)
    ]
    return assess_whiteness(ratio, counts, 3)


def _calibration_numbers(fit: AttitudeFit) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names of the numbers that are given, and their derivatives (k, n) by the parameters."""
    scale, sought = fit.scale, fit.size
    slopes = np.zeros((16, sought))
    slopes[0, 3] = scale
    slopes[4:7, :3] = scale * np.eye(3)
    names = ["scale", *(f"{what}.{axis}" for what in ("direction", "bias") for axis in "xyz")]
    names += [f"soft_iron.{row}{column}" for row in "xyz" for column in "xyz"]
    if fit.seeks_direction:
        slopes[1:4, 4:6] = tangent_plane(fit.direction)
    if fit.seeks_iron:
        changes = (fit.iron / scale) @ TRACELESS
        slopes[7:, sought - 8 :] = changes.reshape(8, 9).T
    kept = [0, *((1, 2, 3) if fit.seeks_direction else ()), 4, 5, 6, *(range(7, 16) if fit.seeks_iron else ())]
    return tuple(names[i] for i in kept), slopes[kept]


def _find_convention(stream: KnownAttitudeCalibrator, field: ArrayLike, rotation_ws: ArrayLike, bound: float) -> str:
    """Return what the attitudes mean instead, where that explains the readings and what they should mean does not.

    No more than `bound` of the readings' variance has to be left open for what they should mean to hold.
    """
    rows, turns = validate_field(field), validate_rotation(rotation_ws, np.shape(field)[0])
    step = max(1, rows.shape[0] // ALTERNATIVE_READINGS)
    rows, turns = np.ascontiguousarray(rows[::step]), turns[::step]
    if rows.shape[0] < MIN_REDUNDANCY or not np.ptp(rows):
        return ""
    unexplained, _ = stream.fit_alternative(rows, np.ascontiguousarray(turns))
    if unexplained <= bound:
        return ""
    fitting = []
    for meaning, (order, sign) in CONVENTIONS.items():
        other = turns[:, order] * np.array((1.0, sign, sign, sign))
        left, iron = stream.fit_alternative(rows, np.ascontiguousarray(other))
        if left < min(1.0 - WARN_R_SQUARED, 0.25 * unexplained):
            fitting.append((iron, meaning))
    return min(fitting)[1] if fitting else ""

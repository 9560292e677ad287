"""Maximum-likelihood fit of an ellipsoid to readings, with its uncertainty due to noise and motion.

    theta = (b, A): b (3), A symmetric (xx xy xz yy yz zz)        m = b + A v + e,  |v| = 1,  e ~ N(0, s) in each axis
    sum (d_i - s k_i) J_i = 0,   s = sum (d_i - s k_i)^2 / (N - p)       see `_ellipsoid_distance` for d, k, J and K
    H = sum J J',   M = H - s K,   cov(theta) = M^-1 V M^-1,   V = s H  or  sum (d_i - s k_i)^2 J_i J_i'

The directions v_i are unknown too, one per reading. At their optimum, the likelihood depends only on the distances d_i;
s k_i corrects the resulting bias. Noise along the surface changes J as motion does: s K is this part of H, and M is the
information due to motion alone. If M is not clearly positive, the motion has no information. The second form of V also
holds if the noise of the axes is unequal. It is uncertain for few readings, so that the two forms are averaged.

Up to `BLOCK` readings are stored. When they determine the ellipsoid to `FOLD_BELOW` of its size, they are folded: the
sums of their rows, linearised about the current ellipsoid, replace them. Later readings are folded too. The error of
this linearisation is of second order, sigma_theta^2 at the fold: at most 1e-6 of the field, compared with
sigma_theta / sqrt(N) of the result. Blocks are counted in readings, so that the result does not depend on how the
readings are split.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from navsense.calibration import _ellipsoid_distance, _power_sums
from navsense.calibration._ellipsoid_distance import PARAMETERS, ROW_SIZE
from navsense.calibration._power_sums import MAX_AXIS_RATIO
from navsense.calibration.verdict import BLOCK_FACTOR, BLOCK_LEVELS, REFUSE_ABOVE, Whiteness, assess_whiteness
from navsense.core.typing import FloatArray, Vectors

BLOCK: Final = 1 << 16
"""Stored readings before the first attempt to fold them."""

FOLD_BELOW: Final = 1e-3
"""Relative standard deviation of theta below which readings are folded."""

EQUAL_NOISE_READINGS: Final = 1000.0
"""Weight of the prior assumption of equal noise on all axes, in readings."""

MAX_ROUNDS: Final = 40

TRIAL_READINGS: Final = 1 << 13
"""Evenly spaced readings for a first, fast fit."""

REFUSE_FACTOR: Final = 2.0
"""Relative standard deviation of a fast fit, scaled to all readings and in `REFUSE_ABOVE`, for which it is final."""

MAX_GROWTH: Final = 1e4
"""Growth of theta beyond which a search has diverged."""

LINEAR_STEP: Final = 1e-3
"""Relative step of theta below which the path is linear."""

CONVERGED_STEP: Final = 1e-4
"""Length of the last step in standard deviations. The remaining error is smaller by the relative noise."""

PAIRS: Final = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""Rows and columns of the six numbers of a symmetric matrix."""

ELLIPSOIDS: FloatArray = np.eye(PARAMETERS)
"""Columns: basis of theta for ellipsoids."""

SPHERES: FloatArray = np.zeros((PARAMETERS, 4))
"""Columns: basis of theta for spheres."""
SPHERES[:3, :3] = np.eye(3)
SPHERES[[3, 6, 8], 3] = 1.0


def theta_to_matrix(theta: FloatArray) -> FloatArray:
    """Return A (3, 3) of theta (9,)."""
    matrix = np.empty((3, 3))
    for number, (row, column) in enumerate(PAIRS):
        matrix[row, column] = matrix[column, row] = theta[3 + number]
    return matrix


def theta_from_matrix(centre: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return theta (9,) of a centre (3,) and a symmetric matrix (3, 3)."""
    return np.array([*centre, *(matrix[row, column] for row, column in PAIRS)])


def _principal_axes(theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return centre (3,), rotation Q (3, 3) and axes (3,) of an ellipsoid."""
    axes, rotation = np.linalg.eigh(theta_to_matrix(theta))
    return theta[:3].copy(), np.ascontiguousarray(rotation), axes


def _rotation_of_rows(rotation: FloatArray) -> FloatArray:
    """Return the matrix (11, 11) from rows along the axes of `rotation` to rows along the sensor's axes."""
    matrix, of_theta = np.eye(ROW_SIZE), np.zeros((PARAMETERS, PARAMETERS))
    of_theta[:3, :3] = rotation.T
    for number in range(6):
        unit = np.zeros(PARAMETERS)
        unit[3 + number] = 1.0
        of_theta[:, 3 + number] += theta_from_matrix(np.zeros(3), rotation.T @ theta_to_matrix(unit) @ rotation)
    matrix[:PARAMETERS, :PARAMETERS] = of_theta.T
    return matrix


def _symmetric(upper: FloatArray) -> FloatArray:
    """Return symmetric matrices (..., n, n) from their upper triangles."""
    return np.asarray(np.triu(upper) + np.swapaxes(np.triu(upper, 1), -1, -2))


class RowSums(NamedTuple):
    """Sums of `_ellipsoid_distance.add_all`: `blocks` (levels, 11, 11), `noisy` and `scores` (9, 9)."""

    blocks: FloatArray
    noisy: FloatArray
    scores: FloatArray

    @property
    def total(self) -> FloatArray:
        """The sum of r r' (11, 11)."""
        return np.asarray(self.blocks[0])

    def transform(self, change: FloatArray) -> RowSums:
        """Return the sums for rows multiplied by `change` (11, 11)."""
        inner = change[:PARAMETERS, :PARAMETERS]
        return RowSums(change @ self.blocks @ change.T, inner @ self.noisy @ inner.T, inner @ self.scores @ inner.T)

    def add(self, other: RowSums) -> RowSums:
        """Return the sum of both."""
        return RowSums(self.blocks + other.blocks, self.noisy + other.noisy, self.scores + other.scores)


def _extrapolation(theta: FloatArray) -> FloatArray:
    """Return the matrix (11, 11) from rows extrapolated to theta = 0 to rows at theta."""
    change = np.eye(ROW_SIZE)
    change[PARAMETERS, :PARAMETERS] = theta
    return change


def _extrapolate_total(folded: RowSums, theta: FloatArray) -> FloatArray:
    """Return `total` at theta for rows extrapolated to theta = 0."""
    change = _extrapolation(theta)
    return np.asarray(change @ folded.total @ change.T)


@dataclass(frozen=True, eq=False)
class EllipsoidFit:
    """A fitted ellipsoid in units of the fit.

    theta: (9,).
    variance: s of the noise.
    sums: at theta, of `count` readings.
    basis: (9, p), of theta.
    converged: False if the search did not converge.
    """

    theta: FloatArray
    variance: float
    sums: RowSums
    count: int
    basis: FloatArray
    converged: bool

    @property
    def strength(self) -> float:
        """The cube root of det A."""
        return float(np.cbrt(np.linalg.det(theta_to_matrix(self.theta))))

    @property
    def information(self) -> tuple[FloatArray, FloatArray]:
        """H and s K (p, p), in the basis."""
        noisy = self.variance * self.sums.noisy
        return self.basis.T @ self.sums.total[:PARAMETERS, :PARAMETERS] @ self.basis, self.basis.T @ noisy @ self.basis

    @property
    def covariance(self) -> FloatArray:
        """The covariance (9, 9) of theta, infinite if the motion has no information on a combination."""
        total, noise = self.information
        values, vectors = np.linalg.eigh(total - noise)
        if values[0] <= 1e-14 * values[-1]:
            return np.full((PARAMETERS, PARAMETERS), math.inf)
        inverse = (vectors / values) @ vectors.T
        scores = self.basis.T @ self.sums.scores @ self.basis * (self.count / (self.count - len(values)))
        weight = EQUAL_NOISE_READINGS
        middle = (self.count * scores + weight * self.variance * total) / (self.count + weight)
        return np.asarray(self.basis @ inverse @ middle @ inverse @ self.basis.T)

    @property
    def max_relative_stddev(self) -> tuple[float, FloatArray]:
        """The largest relative standard deviation of a combination of theta, and the combination (9,)."""
        covariance = self.covariance
        if not np.all(np.isfinite(covariance)):
            total, noise = self.information
            return math.inf, np.asarray(self.basis @ np.linalg.eigh(total - noise)[1][:, 0])
        values, vectors = np.linalg.eigh(covariance)
        return math.sqrt(max(float(values[-1]), 0.0)) / self.strength, np.asarray(vectors[:, -1])

    @property
    def noise_share(self) -> float:
        """The largest share of noise along the surface in the information on any combination."""
        total, noise = self.information
        values, vectors = np.linalg.eigh(total)
        if values[0] <= 1e-15 * values[-1]:
            return 1.0
        whitening = vectors / np.sqrt(values)
        return float(np.linalg.eigvalsh(whitening.T @ noise @ whitening)[-1])

    def residuals_at(self, field: Vectors) -> tuple[FloatArray, Vectors]:
        """Return the residuals d - s k (n,) of readings (n, 3), and the directions v (n, 3) of the field."""
        centre, rotation, axes = _principal_axes(self.theta)
        out = np.empty((len(field), 5))
        _ellipsoid_distance.foot_points(np.ascontiguousarray(field), centre, rotation, axes, out)
        return out[:, 0] - self.variance * out[:, 1], out[:, 2:] @ rotation.T

    @property
    def whiteness(self) -> Whiteness:
        """The whiteness of the residuals d - s k."""
        return self.residuals(np.zeros(PARAMETERS))[1]

    def residuals(self, step: FloatArray) -> tuple[float, Whiteness]:
        """Return mean square and whiteness of the residuals d - s k after a small step (9,) of theta."""
        residual = np.array([*step, 1.0, -self.variance])
        squares = self.sums.blocks @ residual @ residual
        if not squares[0] > 0.0:
            return 0.0, Whiteness()
        lengths = [BLOCK_FACTOR**level for level in range(1, BLOCK_LEVELS + 1) if self.count >= BLOCK_FACTOR**level]
        counts = [self.count // length for length in lengths]
        ratio = [
            float(square) / (count * length) * self.count / float(squares[0])
            for square, count, length in zip(squares[1:], counts, lengths, strict=False)
        ]
        return float(squares[0]) / self.count, assess_whiteness(ratio, counts, 1)


def estimate_variance(total: FloatArray, degrees_of_freedom: int) -> float:
    """Return s: the smaller root of sum (d - s k)^2 = s degrees_of_freedom; without k if there is no root."""
    square, mixed, curvature = float(total[9, 9]), float(total[9, 10]), float(total[10, 10])
    half = mixed + 0.5 * degrees_of_freedom
    radicand = half * half - curvature * square
    if radicand >= 0.0 and half > 0.0:
        return square / (half + math.sqrt(radicand))
    return square / degrees_of_freedom


def _gauss_newton_step(
    total: FloatArray, basis: FloatArray, degrees_of_freedom: int, damping: float
) -> tuple[FloatArray, float, float]:
    """Return a step (p,), its length in standard deviations, and the largest increase of sum d^2 that it can cause."""
    s = estimate_variance(total, degrees_of_freedom)
    slopes = basis.T @ total[:PARAMETERS, :]
    information, curvature = slopes[:, :PARAMETERS] @ basis, slopes[:, 10]
    values, vectors = np.linalg.eigh(information + np.diag(damping * np.diag(information)))
    determined = values > 1e-13 * values[-1]  # other combinations do not change
    inverse = (vectors[:, determined] / values[determined]) @ vectors[:, determined].T
    step = np.asarray(inverse @ (s * curvature - slopes[:, 9]))
    length = math.sqrt(max(float(step @ information @ step), 0.0) / s) if s > 0.0 else 0.0
    return step, length, 4.0 * s * s * float(curvature @ inverse @ curvature)


def _is_ellipsoid(theta: FloatArray, largest: float) -> bool:
    """Return True if theta is a plausible ellipsoid: no number above `largest`, and not flat."""
    if not float(np.abs(theta).max()) <= largest:  # also False for NaN
        return False
    axes = np.linalg.eigvalsh(theta_to_matrix(theta))
    return bool(axes[0] > axes[2] / MAX_AXIS_RATIO)


def _move_along_quadric(theta: FloatArray, step: FloatArray) -> FloatArray:
    """Return theta (9,) after a step (9,), on a path that is linear in the ten numbers of the quadric.

    x'Qx + l'x + c = 0 with Q = A^-2, l = -2 Q b, c = b'Qb - 1, for a constant trace of Q. Readings on a belt around an
    ellipsoid depend nearly linearly on these numbers, but not on centre and axes.
    """
    if float(np.abs(step).max()) < LINEAR_STEP * float(np.abs(theta).max()):
        return theta + step
    inverse, centre = np.linalg.inv(theta_to_matrix(theta)), theta[:3]
    quadratic = inverse @ inverse
    change = inverse @ theta_to_matrix(step) @ quadratic
    change = -(change + change.T)
    linear, constant = quadratic @ centre, float(centre @ quadratic @ centre) - 1.0  # -l / 2, c
    linear_change = change @ centre + quadratic @ step[:3]
    constant_change = float(centre @ change @ centre + 2.0 * centre @ quadratic @ step[:3])
    factor = float(np.trace(change) / np.trace(quadratic))
    quadratic, linear, constant = (
        quadratic + change - factor * quadratic,
        linear + linear_change - factor * linear,
        constant + constant_change - factor * constant,
    )
    values, axes = np.linalg.eigh(quadratic)
    if not values[0] > 0.0:
        return theta + step
    centre = axes @ ((axes.T @ linear) / values)
    size = float(centre @ linear) - constant
    return theta_from_matrix(centre, (axes * np.sqrt(size / values)) @ axes.T) if size > 0.0 else theta + step


def _search(
    total_at: Callable[[FloatArray], FloatArray], theta: FloatArray, basis: FloatArray, degrees_of_freedom: int
) -> tuple[FloatArray, FloatArray, bool]:
    """Return the root of the corrected score, `total` at the last but one step, and True if the search converged.

    The steps are Gauss-Newton steps with Levenberg-Marquardt damping.
    """
    total, damping, largest = total_at(theta), 0.0, MAX_GROWTH * float(np.abs(theta).max())
    for _ in range(MAX_ROUNDS):
        step, length, tolerance = _gauss_newton_step(total, basis, degrees_of_freedom, damping)
        trial = _move_along_quadric(theta, basis @ step)
        if length < CONVERGED_STEP or float(np.abs(step).max()) < 1e-14 * float(np.abs(theta).max()):
            return trial, total, True
        trial_total = total_at(trial) if _is_ellipsoid(trial, largest) else None
        if trial_total is not None and trial_total[9, 9] <= total[9, 9] * (1.0 + 1e-12) + tolerance:
            theta, total, damping = trial, trial_total, damping / 10.0 if damping > 1e-6 else 0.0
        else:
            damping = max(10.0 * damping, 1e-3)
    return theta, total, False


class EllipsoidFitter:
    """Stream of readings and their fit. The origin is the first reading; many readings are folded into sums."""

    def __init__(self, *, soft_iron: bool) -> None:
        """Start without readings."""
        self._soft_iron = soft_iron
        self._basis = ELLIPSOIDS if soft_iron else SPHERES
        self._theta: FloatArray = np.zeros(PARAMETERS)
        self.shift: FloatArray = np.zeros(3)
        self.unit = 1.0
        self.powers: FloatArray = np.zeros(len(_power_sums.EXPONENTS))
        self._kept: Vectors = np.empty((0, 3))
        self._held = 0
        self._folded: RowSums | None = None
        self._parts: FloatArray = np.zeros((BLOCK_LEVELS + 1, ROW_SIZE))
        self._next_fold = BLOCK

    @property
    def count(self) -> int:
        """The number of readings."""
        return int(self.powers[0])

    @property
    def size(self) -> int:
        """The number of parameters."""
        return int(self._basis.shape[1])

    def add(self, field: Vectors) -> None:
        """Add finite readings (n, 3)."""
        if len(field) and not self.count:
            self.shift = field[0].copy()
            self.unit = float(np.abs(field[0]).max()) or 1.0
        first = 0
        while first < len(field):
            last = min(len(field), first + self._next_fold - self._held)
            self._append(np.ascontiguousarray(field[first:last]))
            first = last
            if self._held == self._next_fold:
                self._fold()

    def _append(self, field: Vectors) -> None:
        """Store readings in units of the fit."""
        with np.errstate(over="ignore", invalid="ignore"):  # the caller of `fit` checks for overflow
            field = (field - self.shift) / self.unit
            _power_sums.add_powers(field, np.zeros(3), 1.0, self.powers)
        needed = self._held + len(field)
        if needed > len(self._kept):
            grown = np.empty((min(self._next_fold, max(needed, 2 * len(self._kept))), 3))
            grown[: self._held] = self._kept[: self._held]
            self._kept = grown
        self._kept[self._held : needed] = field
        self._held = needed

    def _fold(self) -> None:
        """Replace stored readings by sums if they determine the ellipsoid; else wait for as many again."""
        if self._folded is None:
            if not np.isfinite(self.powers).all():
                self._next_fold = 2 * self._next_fold
                return
            trial = self._fit_subsample(TRIAL_READINGS)
            if (
                not trial.converged
                or not trial.max_relative_stddev[0] * math.sqrt(trial.count / self._held) < FOLD_BELOW
            ):
                self._next_fold = 2 * self._next_fold
                return
            fit = self.fit()
            self._theta, variance = fit.theta, fit.variance
        else:
            degrees_of_freedom = self.count - self._held - self.size
            self._theta, total, _ = _search(
                partial(_extrapolate_total, self._folded), self._theta, self._basis, degrees_of_freedom
            )
            variance = estimate_variance(total, degrees_of_freedom)
        sums = self._row_sums(self._theta, variance, self._parts).transform(_extrapolation(-self._theta))
        self._folded = sums if self._folded is None else self._folded.add(sums)
        self._held, self._next_fold = 0, BLOCK
        self._kept = self._kept[:BLOCK].copy()

    def _row_sums(self, theta: FloatArray, variance: float, parts: FloatArray) -> RowSums:
        """Return the sums over stored readings at theta. Updates `parts`, sums of incomplete blocks at theta = 0."""
        centre, rotation, axes = _principal_axes(theta)
        back = _rotation_of_rows(rotation)
        change = _extrapolation(-theta) @ back
        incomplete = np.ascontiguousarray(np.linalg.solve(change, parts.T).T)
        blocks = np.zeros((BLOCK_LEVELS + 1, ROW_SIZE, ROW_SIZE))
        sums = (blocks, np.zeros((PARAMETERS, PARAMETERS)), np.zeros((PARAMETERS, PARAMETERS)))
        _ellipsoid_distance.add_all(
            self._kept[: self._held], centre, rotation, axes, self.count - self._held, incomplete, variance, *sums
        )
        parts[:] = incomplete @ change.T
        return RowSums(*(_symmetric(upper) for upper in sums)).transform(back)

    def _sum_rows(self, theta: FloatArray) -> FloatArray:
        """Return `total` of all readings at theta."""
        centre, rotation, axes = _principal_axes(theta)
        upper = np.zeros((ROW_SIZE, ROW_SIZE))
        _ellipsoid_distance.add_total(self._kept[: self._held], centre, rotation, axes, upper)
        back = _rotation_of_rows(rotation)
        total = np.asarray(back @ _symmetric(upper) @ back.T)
        return total if self._folded is None else total + _extrapolate_total(self._folded, theta)

    def _fit_subsample(self, count: int) -> EllipsoidFit:
        """Return the fit to `count` to 2 `count` evenly spaced stored readings."""
        fitter = EllipsoidFitter(soft_iron=self._soft_iron)
        fitter._kept = np.ascontiguousarray(self._kept[: self._held : self._held // count])
        fitter._held = len(fitter._kept)
        _power_sums.add_powers(fitter._kept, np.zeros(3), 1.0, fitter.powers)
        return fitter.fit()

    def fit(self) -> EllipsoidFit:
        """Return the maximum-likelihood ellipsoid. Needs at least one reading more than parameters.

        If more than `BLOCK` readings could not be folded because of missing motion, a fit to some of them comes first.
        It is the result if all readings would leave the ellipsoid undetermined too.
        """
        if self._held > BLOCK:
            trial = self._fit_subsample(TRIAL_READINGS)
            trial = trial if trial.converged else self._fit_subsample(BLOCK // 2)
            scaled_stddev = trial.max_relative_stddev[0] * math.sqrt(trial.count / self._held)
            if not trial.converged or scaled_stddev > REFUSE_FACTOR * REFUSE_ABOVE:
                return trial
            start = trial.theta
        else:
            initial = _power_sums.initial_ellipsoid(self.powers, soft_iron=self._soft_iron)
            start = theta_from_matrix(initial.centre, initial.matrix)
        degrees_of_freedom = self.count - self.size
        theta, total, converged = _search(self._sum_rows, start, self._basis, degrees_of_freedom)
        sums = self._row_sums(theta, estimate_variance(total, degrees_of_freedom), self._parts.copy())
        if self._folded is not None:
            sums = sums.add(self._folded.transform(_extrapolation(theta)))
        return EllipsoidFit(
            theta, estimate_variance(sums.total, degrees_of_freedom), sums, self.count, self._basis, converged
        )

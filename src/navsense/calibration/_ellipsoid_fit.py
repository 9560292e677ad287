"""The ellipsoid of maximum likelihood through readings, and what their noise and their motion leave open of it.

    theta = (b, A): b (3), A symmetric (xx xy xz yy yz zz)        m = b + A v + e,  |v| = 1,  e ~ N(0, s) in each axis
    sum (d_i - s k_i) J_i = 0,   s = sum (d_i - s k_i)^2 / (N - p)            d, k, J and K: see `_ellipsoid_distance`
    H = sum J J',   M = H - s K,   cov(theta) = M^-1 V M^-1,   V = s H  or  sum (d_i - s k_i)^2 J_i J_i'

The directions v_i are unknown too, one for each reading; at their best the likelihood is that of the distances alone,
and s k_i takes out what this costs. Noise along the surface makes J vary as if there were motion: s K is that part of
H, M the motion's own. Where M is not clearly positive the motion says nothing. The second V holds too where the noise
of the axes is unlike; few readings do not tell it well, so that the two are mixed.

Readings are kept up to `BLOCK`; when they tell the ellipsoid to `SURE` of its size they are folded, as everything after
them: the sums of their rows, linear in theta about the ellipsoid of that moment, stand for them. The error by that is
of second order, sigma_theta^2 of the fold: 1e-6 of the strength at most, against sigma_theta / sqrt(N) of the result.
Blocks are counted in readings, so that it does not matter how they were cut when they were handed in.
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
from navsense.typing import FloatArray, Vectors

BLOCK: Final = 1 << 16
"""Readings that are kept before the first attempt to fold them."""

FOLD_BELOW: Final = 1e-3
"""Standard deviation of any combination of theta, against the strength, below which readings are folded."""

EQUAL_NOISE_READINGS: Final = 1000.0
"""Readings whose weight the assumption has that the noise of all axes is alike."""

ROUNDS: Final = 40

TRIAL_READINGS: Final = 1 << 13
"""Readings, evenly taken, that a search is tried on first."""

REFUSE_FACTOR: Final = 2.0
"""Times `HOPELESS` that fewer readings' deviation, scaled to all, exceeds where all would leave it open, too."""

MAX_GROWTH: Final = 1e4
"""Times the numbers that a search began with, beyond which it is lost."""

LINEAR_STEP: Final = 1e-3
"""Largest part of a step, of theta, that is gone straight ahead."""

CONVERGED_STEP: Final = 1e-4
"""Length of a step, in standard deviations, that is the last: what it leaves is smaller by the noise's share."""

PAIRS: Final = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""Rows and columns of the six numbers of a symmetric matrix."""

ELLIPSOIDS: FloatArray = np.eye(PARAMETERS)
"""Columns: the directions in which theta may go."""

SPHERES: FloatArray = np.zeros((PARAMETERS, 4))
"""The same without soft iron."""
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
    """Return centre (3,), turn (3, 3) and axes (3,) of an ellipsoid."""
    axes, turn = np.linalg.eigh(theta_to_matrix(theta))
    return theta[:3].copy(), np.ascontiguousarray(turn), axes


def _rotation_of_theta(turn: FloatArray) -> FloatArray:
    """Return (9, 9), theta to theta in the axes of `turn`."""
    whole = np.zeros((PARAMETERS, PARAMETERS))
    whole[:3, :3] = turn.T
    for number in range(6):
        one = np.zeros(PARAMETERS)
        one[3 + number] = 1.0
        whole[:, 3 + number] += theta_from_matrix(np.zeros(3), turn.T @ theta_to_matrix(one) @ turn)
    return whole


def _symmetric(upper: FloatArray) -> FloatArray:
    """Return symmetric matrices (..., n, n) of their upper halves."""
    return np.asarray(np.triu(upper) + np.swapaxes(np.triu(upper, 1), -1, -2))


class RowSums(NamedTuple):
    """Sums over rows, as `_ellipsoid_distance.add_all` makes them: `blocks` (levels, 11, 11), `noisy` and `scores` (9, 9)."""

    blocks: FloatArray
    noisy: FloatArray
    scores: FloatArray

    @property
    def total(self) -> FloatArray:
        """Return the sum of r r' (11, 11)."""
        return np.asarray(self.blocks[0])

    def transform(self, change: FloatArray) -> RowSums:
        """Return the sums of `change` (11, 11) times each row."""
        inner = change[:PARAMETERS, :PARAMETERS]
        return RowSums(change @ self.blocks @ change.T, inner @ self.noisy @ inner.T, inner @ self.scores @ inner.T)

    def add(self, other: RowSums) -> RowSums:
        """Return the sums over both."""
        return RowSums(self.blocks + other.blocks, self.noisy + other.noisy, self.scores + other.scores)


def empty_row_sums() -> RowSums:
    """Return the sums over no rows."""
    return RowSums(
        np.zeros((BLOCK_LEVELS + 1, ROW_SIZE, ROW_SIZE)),
        np.zeros((PARAMETERS, PARAMETERS)),
        np.zeros((PARAMETERS, PARAMETERS)),
    )


def _extrapolation(theta: FloatArray) -> FloatArray:
    """Return (11, 11), rows with the distance extrapolated to theta = 0 to rows at theta."""
    change = np.eye(ROW_SIZE)
    change[PARAMETERS, :PARAMETERS] = theta
    return change


def _extrapolate_total(folded: RowSums, theta: FloatArray) -> FloatArray:
    """Return `total` at theta of rows with their distances extrapolated to theta = 0."""
    change = _extrapolation(theta)
    return np.asarray(change @ folded.total @ change.T)


@dataclass(frozen=True, eq=False)
class EllipsoidFit:
    """An ellipsoid as fitted, in units of the fit: theta (9,), variance s of the noise, `sums` at theta over `count`.

    `settled` is false where the search for it did not come to an end.
    """

    theta: FloatArray
    variance: float
    sums: RowSums
    count: int
    basis: FloatArray
    converged: bool

    @property
    def strength(self) -> float:
        """Return the size: the cube root of the determinant of A."""
        return float(np.cbrt(np.linalg.det(theta_to_matrix(self.theta))))

    @property
    def information(self) -> tuple[FloatArray, FloatArray]:
        """Return H and s K (p, p), in the directions of the basis."""
        noisy = self.variance * self.sums.noisy
        return self.basis.T @ self.sums.total[:PARAMETERS, :PARAMETERS] @ self.basis, self.basis.T @ noisy @ self.basis

    @property
    def covariance(self) -> FloatArray:
        """Return the covariance (9, 9) of theta, infinite where the motion leaves it open."""
        whole, noise = self.information
        values, vectors = np.linalg.eigh(whole - noise)
        if values[0] <= 1e-14 * values[-1]:
            return np.full((PARAMETERS, PARAMETERS), math.inf)
        inverse = (vectors / values) @ vectors.T
        seen = self.basis.T @ self.sums.scores @ self.basis * (self.count / (self.count - len(values)))
        meat = (self.count * seen + EQUAL_NOISE_READINGS * self.variance * whole) / (self.count + EQUAL_NOISE_READINGS)
        return np.asarray(self.basis @ inverse @ meat @ inverse @ self.basis.T)

    @property
    def max_relative_stddev(self) -> tuple[float, FloatArray]:
        """Return the greatest standard deviation of a combination of theta against the strength, and which (9,)."""
        covariance = self.covariance
        if not np.all(np.isfinite(covariance)):
            whole, noise = self.information
            return math.inf, np.asarray(self.basis @ np.linalg.eigh(whole - noise)[1][:, 0])
        values, vectors = np.linalg.eigh(covariance)
        return math.sqrt(max(float(values[-1]), 0.0)) / self.strength, np.asarray(vectors[:, -1])

    @property
    def noise_share(self) -> float:
        """Return the greatest share of the information in any direction that noise along the surface makes."""
        whole, noise = self.information
        values, vectors = np.linalg.eigh(whole)
        if values[0] <= 1e-15 * values[-1]:
            return 1.0
        white = vectors / np.sqrt(values)
        return float(np.linalg.eigvalsh(white.T @ noise @ white)[-1])

    def residuals_at(self, field: Vectors) -> tuple[FloatArray, Vectors]:
        """Return the residuals d - s k (n,) of readings (n, 3), and the directions (n, 3) that the field has there."""
        centre, turn, axes = _principal_axes(self.theta)
        out = np.empty((len(field), 5))
        _ellipsoid_distance.foot_points(np.ascontiguousarray(field), centre, turn, axes, out)
        return out[:, 0] - self.variance * out[:, 1], out[:, 2:] @ turn.T

    @property
    def whiteness(self) -> Whiteness:
        """Return the verdict on the residuals d - s k."""
        return self.residuals(np.zeros(PARAMETERS))[1]

    def residuals(self, step: FloatArray) -> tuple[float, Whiteness]:
        """Return the mean square of d - s k after a step (9,) of theta, small, and the verdict on what is left."""
        residual = np.array([*step, 1.0, -self.variance])
        squares = self.sums.blocks @ residual @ residual
        counts = [
            self.count // BLOCK_FACTOR**level
            for level in range(1, BLOCK_LEVELS + 1)
            if self.count >= BLOCK_FACTOR**level
        ]
        if not squares[0] > 0.0:
            return 0.0, Whiteness()
        ratio = [
            float(squares[level + 1]) / (blocks * BLOCK_FACTOR ** (level + 1)) * self.count / float(squares[0])
            for level, blocks in enumerate(counts)
        ]
        return float(squares[0]) / self.count, assess_whiteness(ratio, counts, 1)


def estimate_variance(total: FloatArray, degrees_of_freedom: int) -> float:
    """Return s of the sums of rows: the smaller root of sum (d - s k)^2 = s freedom; without k where it has none."""
    square, mixed, bend = float(total[9, 9]), float(total[9, 10]), float(total[10, 10])
    half = mixed + 0.5 * degrees_of_freedom
    under = half * half - bend * square
    return square / (half + math.sqrt(under)) if under >= 0.0 and half > 0.0 else square / degrees_of_freedom


def _gauss_newton_step(
    total: FloatArray, basis: FloatArray, degrees_of_freedom: int, damping: float
) -> tuple[FloatArray, float, float]:
    """Return a step (p,), its length in standard deviations, and by how much it may raise the sum of d^2 at most."""
    s = estimate_variance(total, degrees_of_freedom)
    slopes = basis.T @ total[:PARAMETERS, :]
    whole, bend = slopes[:, :PARAMETERS] @ basis, slopes[:, 10]
    values, vectors = np.linalg.eigh(whole + np.diag(damping * np.diag(whole)))
    known = values > 1e-13 * values[-1]  # what readings say nothing of stays as it is
    inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T
    step = np.asarray(inverse @ (s * bend - slopes[:, 9]))
    length = math.sqrt(max(float(step @ whole @ step), 0.0) / s) if s > 0.0 else 0.0
    return step, length, 4.0 * s * s * float(bend @ inverse @ bend)


def _is_ellipsoid(theta: FloatArray, largest: float) -> bool:
    """Tell whether theta is an ellipsoid that readings may lie on: no number above `largest`, not all but flat."""
    if not float(np.abs(theta).max()) <= largest:  # NaN neither
        return False
    axes = np.linalg.eigvalsh(theta_to_matrix(theta))
    return bool(axes[0] > axes[2] / MAX_AXIS_RATIO)


def _move_along_quadric(theta: FloatArray, step: FloatArray) -> FloatArray:
    """Return theta (9,) after a step (9,), on the path on which the quadric's ten numbers go straight ahead.

    x'Qx + l'x + c = 0 of Q = A^-2, l = -2 Q b, c = b'Qb - 1, the trace of Q held: a belt of readings about an ellipsoid
    tells these nearly linearly, the centre and the axes along it but together.
    """
    if float(np.abs(step).max()) < LINEAR_STEP * float(np.abs(theta).max()):
        return theta + step
    inverse, centre = np.linalg.inv(theta_to_matrix(theta)), theta[:3]
    quadratic = inverse @ inverse
    change = inverse @ theta_to_matrix(step) @ quadratic
    change = -(change + change.T)
    linear, rest = quadratic @ centre, float(centre @ quadratic @ centre) - 1.0  # -l / 2, c
    linear_change = change @ centre + quadratic @ step[:3]
    rest_change = float(centre @ change @ centre + 2.0 * centre @ quadratic @ step[:3])
    share = float(np.trace(change) / np.trace(quadratic))
    quadratic, linear, rest = (
        quadratic + change - share * quadratic,
        linear + linear_change - share * linear,
        rest + rest_change - share * rest,
    )
    values, axes = np.linalg.eigh(quadratic)
    if not values[0] > 0.0:
        return theta + step
    centre = axes @ ((axes.T @ linear) / values)
    size = float(centre @ linear) - rest
    return theta_from_matrix(centre, (axes * np.sqrt(size / values)) @ axes.T) if size > 0.0 else theta + step


def _search(
    total_at: Callable[[FloatArray], FloatArray],
    theta: FloatArray,
    basis: FloatArray,
    degrees_of_freedom: int,
) -> tuple[FloatArray, FloatArray, bool]:
    """Return the root of the corrected score, `total` at the last but one, and whether it came to an end.

    The steps are Gauss and Newton's, damped where they lead astray.
    """
    total, damping, largest = total_at(theta), 0.0, MAX_GROWTH * float(np.abs(theta).max())
    for _ in range(ROUNDS):
        step, length, room = _gauss_newton_step(total, basis, degrees_of_freedom, damping)
        tried = _move_along_quadric(theta, basis @ step)
        if length < CONVERGED_STEP or float(np.abs(step).max()) < 1e-14 * float(np.abs(theta).max()):
            return tried, total, True
        found = total_at(tried) if _is_ellipsoid(tried, largest) else None
        if found is not None and found[9, 9] <= total[9, 9] * (1.0 + 1e-12) + room:
            theta, total, damping = tried, found, damping / 10.0 if damping > 1e-6 else 0.0
        else:
            damping = max(10.0 * damping, 1e-3)
    return theta, total, False


class EllipsoidFitter:
    """Readings of one stream, in the unit of the fit about the first of them; folded when they are many."""

    def __init__(self, *, soft_iron: bool) -> None:
        """Hold nothing."""
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
        """Return how many there are."""
        return int(self.powers[0])

    @property
    def size(self) -> int:
        """Return how many parameters are sought."""
        return int(self._basis.shape[1])

    def add(self, field: Vectors) -> None:
        """Add readings (n, 3), finite."""
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
        """Keep a block, in units of the fit."""
        with np.errstate(over="ignore", invalid="ignore"):  # who asks for the fit is told
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
        """Put the sums of the rows in the place of what is kept, where it tells enough; else wait for as much again."""
        if self._folded is None:
            if not np.isfinite(self.powers).all():
                self._next_fold = 2 * self._next_fold
                return
            few = self._fit_subsample(TRIAL_READINGS)
            if not few.converged or not few.max_relative_stddev[0] * math.sqrt(few.count / self._held) < FOLD_BELOW:
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
        here = self._row_sums(self._theta, variance, self._parts).transform(_extrapolation(-self._theta))
        self._folded = here if self._folded is None else self._folded.add(here)
        self._held, self._next_fold = 0, BLOCK
        self._kept = self._kept[:BLOCK].copy()

    def _row_sums(self, theta: FloatArray, variance: float, parts: FloatArray) -> RowSums:
        """Return the sums over what is kept, at theta; `parts` are of rows with distances extrapolated to theta = 0."""
        centre, turn, axes = _principal_axes(theta)
        back = np.eye(ROW_SIZE)
        back[:PARAMETERS, :PARAMETERS] = _rotation_of_theta(turn).T
        change = _extrapolation(-theta) @ back
        begun = np.ascontiguousarray(np.linalg.solve(change, parts.T).T)
        sums = empty_row_sums()
        _ellipsoid_distance.add_all(
            self._kept[: self._held], centre, turn, axes, self.count - self._held, begun, variance, *sums
        )
        parts[:] = begun @ change.T
        return RowSums(*(_symmetric(upper) for upper in sums)).transform(back)

    def _sum_rows(self, theta: FloatArray) -> FloatArray:
        """Return `total` over everything, at theta."""
        centre, turn, axes = _principal_axes(theta)
        upper = np.zeros((ROW_SIZE, ROW_SIZE))
        _ellipsoid_distance.add_total(self._kept[: self._held], centre, turn, axes, upper)
        back = np.eye(ROW_SIZE)
        back[:PARAMETERS, :PARAMETERS] = _rotation_of_theta(turn).T
        here = np.asarray(back @ _symmetric(upper) @ back.T)
        return here if self._folded is None else here + _extrapolate_total(self._folded, theta)

    def _fit_subsample(self, count: int) -> EllipsoidFit:
        """Return the fit of `count` to twice as many of what is kept."""
        few = EllipsoidFitter(soft_iron=self._soft_iron)
        few._kept = np.ascontiguousarray(self._kept[: self._held : self._held // count])
        few._held = len(few._kept)
        _power_sums.add_powers(few._kept, np.zeros(3), 1.0, few.powers)
        return few.fit()

    def fit(self) -> EllipsoidFit:
        """Return the ellipsoid of maximum likelihood; at least one reading more than it has parameters is needed.

        Of more than `BLOCK` readings that could not be folded for want of motion some are tried first: where these
        leave so much open that all of them would, theirs is given.
        """
        begin = None
        if self._held > BLOCK:
            few = self._fit_subsample(TRIAL_READINGS)
            few = few if few.converged else self._fit_subsample(BLOCK // 2)
            if (
                not few.converged
                or few.max_relative_stddev[0] * math.sqrt(few.count / self._held) > REFUSE_FACTOR * REFUSE_ABOVE
            ):
                return few
            begin = few.theta
        if begin is None:
            start = _power_sums.initial_ellipsoid(self.powers, soft_iron=self._soft_iron)
            begin = theta_from_matrix(start.centre, start.matrix)
        degrees_of_freedom = self.count - self.size
        theta, total, converged = _search(self._sum_rows, begin, self._basis, degrees_of_freedom)
        sums = self._row_sums(theta, estimate_variance(total, degrees_of_freedom), self._parts.copy())
        if self._folded is not None:
            sums = sums.add(self._folded.transform(_extrapolation(theta)))
        return EllipsoidFit(
            theta, estimate_variance(sums.total, degrees_of_freedom), sums, self.count, self._basis, converged
        )

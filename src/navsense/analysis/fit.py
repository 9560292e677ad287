"""The noise terms of a record, fitted to its Allan curve.

    from navsense.analysis import allan, fit
    found = fit.fit(allan.overlapping(values, rate), ("noise_density", "bias_instability", "random_walk"))
    found["noise_density"].value, found["noise_density"].stddev

The Allan variance at the span tau is taken as the sum of the terms of IEEE 952-1997, annex C::

    AVAR(tau) = 3 Q^2 / tau^2 + N^2 / tau + (2 ln 2 / pi) B^2 + K^2 tau / 3 + R^2 tau^2 / 2
              + (q T)^2 / tau (1 - T / (2 tau) (3 - 4 e^(-tau/T) + e^(-2 tau/T)))

    figure                                       of                                                   unit
    quantisation Q                               white noise of the phase                             unit s
    noise_density N                              white noise, two-sided spectrum N^2                  unit / root hertz
    bias_instability B                           flicker: the flat part of the deviation is 0.664 B   unit
    random_walk K                                random walk                                          unit / root second
    ramp R                                       a steady change                                      unit / s
    dynamic_bias_stddev q, and with it           Gauss-Markov drift                                   unit / root second
    dynamic_bias_correlation_time T                                                                   s

An instrument that integrates over its interval follows these; readings that are points of the process (a simulator's)
do not at short spans: a drift sampled at dt << T shows sqrt(3/2) too large a deviation at tau = dt. `sampled=True` puts
the exact variance of points in the place of the lines of K and q (see `theory`); what points of a flicker have above
its floor falls as 1 / tau, and is counted to N.

The variance being linear in the squares, these are found by non-negative least squares; T by a search around that. The
weights are the inverse variances 2 AVAR^2 / freedom of the points, taken at the fitted curve, in a few rounds: taken at
the measured one they would favour what came out low. The points of an overlapping curve are far from independent, so
the errors of the figures come from the whole covariance of the points under the fitted terms (`allan_dof.covariances`):
with the design A and the weights W, C_squares = G C G' where G = (A'WA)^-1 A'W. Gaussian noise throughout. The error
goes by the fitted figures: of a figure that rests on a few degrees of freedom only, the error is as uncertain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from navsense.analysis import allan, allan_dof
from navsense.analysis.allan import Curve
from navsense.analysis.theory import (
    Flicker,
    GaussMarkov,
    Quantisation,
    Ramp,
    RandomWalk,
    Term,
    White,
    allan_of,
    covariance_of,
)
from navsense.errors import AnalysisError
from navsense.typing import FloatArray

DRIFT, TIME = "dynamic_bias_stddev", "dynamic_bias_correlation_time"

FIGURES = ("quantisation", "noise_density", "bias_instability", "random_walk", "ramp", DRIFT)
"""What can be asked for: figures in whose squares the variance is linear. The correlation time comes with its drift."""

ROUNDS = 12
"""Of weighting: more than ever needed to three digits."""

SURE = 1e-6
"""Relative error of a point below which none is taken to be: a ramp has no chance in it."""

GRID = 24
"""Correlation times that are tried before the best is refined."""


@dataclass(frozen=True)
class Figure:
    """One figure as fitted: its square, which can come out negative by chance and is then held at 0, and its error."""

    squared: float
    squared_error: float

    @property
    def value(self) -> float:
        """Return the figure."""
        return math.sqrt(self.squared)

    @property
    def stddev(self) -> float:
        """Return its standard error: half that of the square over the value, or the root where it came out 0."""
        low = math.sqrt(self.squared_error)
        return min(low, 0.5 * self.squared_error / self.value) if self.squared > 0.0 else low

    def interval(self, sigmas: float = 1.0) -> tuple[float, float]:
        """Return the ends between which the figure is, by so many standard errors of its square."""
        spread = sigmas * self.squared_error
        return math.sqrt(max(0.0, self.squared - spread)), math.sqrt(self.squared + spread)


@dataclass(frozen=True, eq=False)
class Fit(Mapping[str, Figure]):
    """Figures by name; `terms` put together with them; at the curve's spans `variance` (k,), `error` (k,), residuals.

    `error` is the standard error of each point of the curve's variance under the fit, `residuals` is measured less
    fitted in these errors.
    """

    figures: Mapping[str, Figure]
    terms: tuple[Term, ...]
    curve: Curve
    variance: FloatArray
    error: FloatArray

    @property
    def residuals(self) -> FloatArray:
        """Return measured less fitted variance (k,), in standard errors."""
        return np.asarray((self.curve.variance - self.variance) / self.error)

    def __getitem__(self, name: str) -> Figure:
        """Return one figure."""
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the figures."""
        return iter(self.figures)

    def __len__(self) -> int:
        """Return how many figures there are."""
        return len(self.figures)


def term_of(name: str, value: float, correlation_time: float, sampled: bool) -> Term:
    """Return one term with its figure."""
    made: dict[str, Callable[[], Term]] = {
        "quantisation": lambda: Quantisation(value),
        "noise_density": lambda: White(value),
        "bias_instability": lambda: Flicker(value),
        "random_walk": lambda: RandomWalk(value, sampled),
        "ramp": lambda: Ramp(value),
        DRIFT: lambda: GaussMarkov(value, correlation_time, sampled),
    }
    return made[name]()


def _not_negative(columns: FloatArray, target: FloatArray) -> tuple[FloatArray, float]:
    """Return the non-negative least squares solution, and the root of what is left."""
    from scipy.optimize import nnls

    found, rest = nnls(columns, target)
    return np.asarray(found), float(rest)


def _least(function: Callable[[float], float], ends: tuple[float, float]) -> float:
    """Return where a function of one number is least between two ends."""
    from scipy.optimize import minimize_scalar

    return float(minimize_scalar(function, bounds=ends, method="bounded", options={"xatol": 1e-6}).x)


@dataclass(frozen=True, eq=False)
class _Problem:
    """A curve (k,) and the terms asked for."""

    curve: Curve
    names: tuple[str, ...]
    sampled: bool

    def design(self, correlation_time: float) -> FloatArray:
        """Return the variance of each term of unit figure (k, terms)."""
        unit = [term_of(name, 1.0, correlation_time, self.sampled) for name in self.names]
        return np.stack([term.allan(self.curve.factor, self.curve.rate) for term in unit], axis=-1)

    def solved(self, correlation_time: float, weights: FloatArray) -> tuple[FloatArray, float]:
        """Return the squares (terms,) of least weighted squares that are not negative, and the root of the rest."""
        columns = self.design(correlation_time) * weights[:, None]
        sizes = np.linalg.norm(columns, axis=0)
        squares, rest = _not_negative(columns / sizes, self.curve.variance * weights)
        return squares / sizes, rest

    def best_time(self, weights: FloatArray) -> float:
        """Return the correlation time (s) that leaves least; 1 where none is asked for."""
        if DRIFT not in self.names:
            return 1.0

        def rest(logarithm: float) -> float:
            return self.solved(math.exp(logarithm), weights)[1]

        tau = self.curve.tau
        grid = np.linspace(math.log(tau.min() / 4.0), math.log(4.0 * tau.max()), GRID)
        place = int(np.argmin([rest(float(point)) for point in grid]))
        ends = (float(grid[max(place - 1, 0)]), float(grid[min(place + 1, GRID - 1)]))
        return math.exp(_least(rest, ends))

    def together(self, squares: FloatArray, correlation_time: float) -> tuple[Term, ...]:
        """Return the terms with their figures."""
        return tuple(
            term_of(name, math.sqrt(square), correlation_time, self.sampled)
            for name, square in zip(self.names, squares, strict=True)
        )

    def spread(self, terms: Sequence[Term], factors: Sequence[int]) -> FloatArray:
        """Return the covariance of the measured variance at the factors, (k, k), were `terms` the truth."""
        rate = self.curve.rate
        tau = np.asarray(factors) / rate
        slope = math.sqrt(sum(term.slope**2 for term in terms if isinstance(term, Ramp)))
        phase = partial(covariance_of, terms, rate=rate)
        squares = allan_dof.covariances(phase, factors, self.curve.phases, means=slope * tau**2)
        return np.asarray(squares / np.outer(2.0 * tau**2, 2.0 * tau**2))

    def errors(self, terms: Sequence[Term]) -> FloatArray:
        """Return the standard error (k,) of each point of the variance, were `terms` the truth; never quite 0."""
        found = [math.sqrt(self.spread(terms, [int(factor)])[0, 0]) for factor in self.curve.factor]
        return np.maximum(found, SURE * allan_of(terms, self.curve.factor, self.curve.rate))

    def sensitivity(self, squares: FloatArray, correlation_time: float) -> FloatArray:
        """Return the slopes (k, figures) of the variance with each square, and last with the logarithm of T."""
        columns = self.design(correlation_time)
        if DRIFT not in self.names:
            return columns
        place, step = self.names.index(DRIFT), 1e-4
        up, down = (self.design(correlation_time * math.exp(turn))[:, place] for turn in (step, -step))
        return np.column_stack((columns, squares[place] * (up - down) / (2.0 * step)))


def _checked(curve: Curve, figures: Sequence[str]) -> None:
    """Raise `AnalysisError` unless the figures can be fitted to the curve."""
    for name in figures:
        if name not in FIGURES:
            raise AnalysisError("figure", name, allowed=f"must be one of {', '.join(FIGURES)}")
    if not figures or len(set(figures)) < len(figures):
        raise AnalysisError("figures", figures, allowed="must be some, each once")
    if curve.kind is not allan.OVERLAPPING:
        raise AnalysisError("curve", curve.kind.name, allowed="must be of allan.overlapping")
    if curve.deviation.ndim != 1:
        shape = f"shape {curve.deviation.shape}"
        raise AnalysisError("curve", shape, allowed="must be of one axis", remedy="take curve.one(axis)")
    least = len(figures) + (DRIFT in figures)
    if curve.factor.size < least:
        raise AnalysisError("curve", f"{curve.factor.size} spans", allowed=f"must have at least {least}")
    if not (curve.deviation > 0.0).all():
        raise AnalysisError("curve", "a deviation of 0", allowed="must be of values that are not all alike")


def fit(curve: Curve, figures: Sequence[str] = FIGURES[1:4], *, sampled: bool = False) -> Fit:
    """Return the figures asked for (some of `FIGURES`) as fitted to an overlapping Allan curve (k,).

    With `sampled` the readings are points of the process, as a simulator's, not means over each interval.
    Raises `AnalysisError`.
    """
    _checked(curve, figures)
    problem = _Problem(curve, tuple(figures), sampled)
    error = curve.variance * np.sqrt(2.0 / curve.freedom)
    squares, time, last = np.zeros(len(figures)), 1.0, np.zeros(0)
    for _ in range(ROUNDS):
        time = problem.best_time(1.0 / error)
        squares, _ = problem.solved(time, 1.0 / error)
        if last.size and np.allclose(squares, last, rtol=1e-4, atol=0.0):
            break
        last, error = squares, problem.errors(problem.together(squares, time))
    found = problem.together(squares, time)
    points = [int(factor) for factor in curve.factor]
    slopes = problem.sensitivity(squares, time) / error[:, None]
    sizes = np.linalg.norm(slopes, axis=0)
    sizes[sizes == 0.0] = 1.0
    solver = np.linalg.pinv(slopes / sizes) / error / sizes[:, None]
    spread = np.sqrt(np.diag(solver @ problem.spread(found, points) @ solver.T))
    fitted = {
        name: Figure(float(square), float(one)) for name, square, one in zip(figures, squares, spread, strict=False)
    }
    if DRIFT in figures:
        square = time**2 if fitted[DRIFT].squared > 0.0 else math.nan
        fitted[TIME] = Figure(square, 2.0 * square * float(spread[-1]))
    variance = allan_of(found, curve.factor, curve.rate)
    return Fit(fitted, found, curve, variance, error)

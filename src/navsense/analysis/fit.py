"""Fit of noise terms to the Allan curve of a record.

    from navsense.analysis import allan, fit
    result = fit.fit(allan.oadev(values, rate), ("noise_density", "bias_instability", "random_walk"))
    result["noise_density"].value, result["noise_density"].stddev

The Allan variance at the averaging time tau is the sum of the terms of IEEE 952-1997, annex C::

    AVAR(tau) = 3 Q^2 / tau^2 + N^2 / tau + (2 ln 2 / pi) B^2 + K^2 tau / 3 + R^2 tau^2 / 2
              + (q T)^2 / tau (1 - T / (2 tau) (3 - 4 e^(-tau/T) + e^(-2 tau/T)))

    parameter                                    of                                                   unit
    quantisation Q                               white noise of the phase                             unit s
    noise_density N                              white noise, two-sided spectrum N^2                  unit / root hertz
    bias_instability B                           flicker: the flat part of the deviation is 0.664 B   unit
    random_walk K                                random walk                                          unit / root second
    ramp R                                       a linear trend                                       unit / s
    dynamic_bias_stddev q, and with it           dynamic bias                                         unit / root second
    dynamic_bias_correlation_time T                                                                   s

These terms hold for an instrument that integrates over its interval. Simulated readings are points of the process and
deviate at short averaging times: a dynamic bias sampled at dt << T has a deviation sqrt(3/2) too large at tau = dt.
`sampled=True` replaces the terms of K and q by the exact variance of points (see `theory`). Points of a flicker exceed
its floor by a term that falls as 1 / tau; the fit attributes it to N.

The variance is linear in the squares of the parameters. Non-negative least squares finds them; a search finds T. The
weights are the inverse variances 2 AVAR^2 / dof of the points at the fitted curve, in a few iterations; weights at the
measured curve would favour points that are low by chance. The points of an overlapping curve are correlated, so the
errors of the parameters come from the full covariance C of the points under the fitted terms
(`allan_dof.estimate_covariances`). With the design A and the weights W, the covariance of the squares is G C G' with
G = (A'WA)^-1 A'W. The errors assume Gaussian noise and the fitted parameters. A parameter with few degrees of freedom
has an uncertain error, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from navsense.analysis import allan, allan_dof
from navsense.analysis.allan import AllanCurve
from navsense.analysis.theory import (
    Flicker,
    GaussMarkov,
    NoiseTerm,
    Quantisation,
    Ramp,
    RandomWalk,
    White,
    allan_variance,
    phase_covariance,
)
from navsense.core.errors import AnalysisError
from navsense.core.typing import FloatArray

DYNAMIC_BIAS, CORRELATION_TIME = "dynamic_bias_stddev", "dynamic_bias_correlation_time"

PARAMETERS = ("quantisation", "noise_density", "bias_instability", "random_walk", "ramp", DYNAMIC_BIAS)
"""Parameters of a fit. The variance is linear in their squares. The correlation time is fitted with the last one."""

TERMS: Mapping[str, Callable[[float], NoiseTerm]] = {
    "quantisation": Quantisation,
    "noise_density": White,
    "bias_instability": Flicker,
    "ramp": Ramp,
}
"""Classes of the terms with one parameter."""

MAX_ITERATIONS = 12
"""Iterations of the weights at most."""

MIN_ERROR = 1e-6
"""Least relative error of a point: a ramp has no random error."""

GRID_SIZE = 24
"""Correlation times on the grid before the refinement."""


@dataclass(frozen=True)
class FittedParameter:
    """A fitted parameter: its square, which is at least 0, and the standard error of the square.

    >>> curve = ns.analysis.allan.oadev(run["imu"]["angular_velocity"][:, 0], rate=1000.0)
    >>> density = ns.analysis.fit.fit(curve, ["noise_density"]).parameters["noise_density"]
    >>> f"{density.value:.1e}"  # rad/s per root hertz
    '3.4e-04'
    >>> low, high = density.interval(2.0)
    """

    squared: float
    squared_error: float

    @property
    def value(self) -> float:
        """The parameter."""
        return math.sqrt(self.squared)

    @property
    def stddev(self) -> float:
        """Its standard error: half that of the square over the value, at most the root of that of the square."""
        low = math.sqrt(self.squared_error)
        return min(low, 0.5 * self.squared_error / self.value) if self.squared > 0.0 else low

    def interval(self, sigmas: float = 1.0) -> tuple[float, float]:
        """Return the interval of the parameter for a number of standard errors of its square."""
        spread = sigmas * self.squared_error
        return math.sqrt(max(0.0, self.squared - spread)), math.sqrt(self.squared + spread)


@dataclass(frozen=True, eq=False)
class NoiseFit(Mapping[str, FittedParameter]):
    """Fitted parameters by name.

    terms: the noise terms with these parameters
    curve: the Allan curve
    variance, error: (k,) fitted variance at the curve's averaging times, and the standard error of the measured one

    >>> curve = ns.analysis.allan.oadev(run["imu"]["angular_velocity"][:, 0], rate=1000.0)
    >>> found = ns.analysis.fit.fit(curve, ["noise_density"])
    >>> found.terms[0].density == found.parameters["noise_density"].value
    True
    """

    parameters: Mapping[str, FittedParameter]
    terms: tuple[NoiseTerm, ...]
    curve: AllanCurve
    variance: FloatArray
    error: FloatArray

    @property
    def residuals(self) -> FloatArray:
        """Measured less fitted variance (k,), in standard errors."""
        return np.asarray((self.curve.variance - self.variance) / self.error)

    def __getitem__(self, name: str) -> FittedParameter:
        """Return one parameter."""
        return self.parameters[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the parameters."""
        return iter(self.parameters)

    def __len__(self) -> int:
        """Return the number of parameters."""
        return len(self.parameters)


def make_term(name: str, value: float, correlation_time: float, sampled: bool) -> NoiseTerm:
    """Return one noise term with its parameter."""
    if name == DYNAMIC_BIAS:
        return GaussMarkov(value, correlation_time, sampled)
    return RandomWalk(value, sampled) if name == "random_walk" else TERMS[name](value)


def _solve_nonnegative(columns: FloatArray, target: FloatArray) -> tuple[FloatArray, float]:
    """Return the non-negative least squares solution and the norm of its residual."""
    from scipy.optimize import nnls

    solution, residual = nnls(columns, target)
    return np.asarray(solution), float(residual)


def _find_minimum(function: Callable[[float], float], ends: tuple[float, float]) -> float:
    """Return the argument between two ends at which a function has its minimum."""
    from scipy.optimize import minimize_scalar

    return float(minimize_scalar(function, bounds=ends, method="bounded", options={"xatol": 1e-6}).x)


@dataclass(frozen=True, eq=False)
class _FitProblem:
    """Least squares for a curve (k,) and the named parameters."""

    curve: AllanCurve
    names: tuple[str, ...]
    sampled: bool

    def compute_design(self, correlation_time: float) -> FloatArray:
        """Return the variance of each term with the parameter 1 (k, terms)."""
        unit = [make_term(name, 1.0, correlation_time, self.sampled) for name in self.names]
        return np.stack([term.allan(self.curve.factor, self.curve.rate) for term in unit], axis=-1)

    def solve(self, correlation_time: float, weights: FloatArray) -> tuple[FloatArray, float]:
        """Return the squares (terms,) of the weighted non-negative least squares, and the norm of the residual."""
        columns = self.compute_design(correlation_time) * weights[:, None]
        sizes = np.linalg.norm(columns, axis=0)
        squares, residual = _solve_nonnegative(columns / sizes, self.curve.variance * weights)
        return squares / sizes, residual

    def find_correlation_time(self, weights: FloatArray) -> float:
        """Return the correlation time (s) with the least residual; 1 without a dynamic bias."""
        if DYNAMIC_BIAS not in self.names:
            return 1.0

        def residual(logarithm: float) -> float:
            return self.solve(math.exp(logarithm), weights)[1]

        tau = self.curve.tau
        grid = np.linspace(math.log(tau.min() / 4.0), math.log(4.0 * tau.max()), GRID_SIZE)
        best = int(np.argmin([residual(float(point)) for point in grid]))
        ends = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, GRID_SIZE - 1)]))
        return math.exp(_find_minimum(residual, ends))

    def make_terms(self, squares: FloatArray, correlation_time: float) -> tuple[NoiseTerm, ...]:
        """Return the terms with their parameters."""
        return tuple(
            make_term(name, math.sqrt(square), correlation_time, self.sampled)
            for name, square in zip(self.names, squares, strict=True)
        )

    def compute_covariance(self, terms: Sequence[NoiseTerm], factors: Sequence[int]) -> FloatArray:
        """Return the covariance (k, k) of the measured variance at the factors for the noise `terms`."""
        rate = self.curve.rate
        tau = np.asarray(factors) / rate
        slope = math.sqrt(sum(term.slope**2 for term in terms if isinstance(term, Ramp)))
        phase = partial(phase_covariance, terms, rate=rate)
        squares = allan_dof.estimate_covariances(phase, factors, self.curve.phase_count, means=slope * tau**2)
        return np.asarray(squares / np.outer(2.0 * tau**2, 2.0 * tau**2))

    def compute_errors(self, terms: Sequence[NoiseTerm]) -> FloatArray:
        """Return the standard error (k,) of each point of the variance for the noise `terms`; above 0."""
        errors = [math.sqrt(self.compute_covariance(terms, [int(factor)])[0, 0]) for factor in self.curve.factor]
        return np.maximum(errors, MIN_ERROR * allan_variance(terms, self.curve.factor, self.curve.rate))

    def compute_derivatives(self, squares: FloatArray, correlation_time: float) -> FloatArray:
        """Return the derivatives (k, parameters) of the variance by each square, and last by the logarithm of T."""
        columns = self.compute_design(correlation_time)
        if DYNAMIC_BIAS not in self.names:
            return columns
        index, step = self.names.index(DYNAMIC_BIAS), 1e-4
        up, down = (self.compute_design(correlation_time * math.exp(change))[:, index] for change in (step, -step))
        return np.column_stack((columns, squares[index] * (up - down) / (2.0 * step)))


def _check_parameters(curve: AllanCurve, names: Sequence[str]) -> None:
    """Raise `AnalysisError` unless the parameters can be fitted to the curve."""
    for name in names:
        if name not in PARAMETERS:
            raise AnalysisError("parameter", name, allowed=f"must be one of {', '.join(PARAMETERS)}")
    if not names or len(set(names)) < len(names):
        raise AnalysisError("parameters", names, allowed="must be at least one, without repetition")
    if curve.statistic != allan.oadev:
        raise AnalysisError("curve", curve.statistic.name, allowed="must be of allan.oadev")
    if curve.deviation.ndim != 1:
        shape = f"shape {curve.deviation.shape}"
        raise AnalysisError("curve", shape, allowed="must be of one axis", remedy="take curve.select(axis)")
    min_points = len(names) + (DYNAMIC_BIAS in names)
    if curve.factor.size < min_points:
        raise AnalysisError("curve", f"{curve.factor.size} points", allowed=f"must have at least {min_points}")
    if not (curve.deviation > 0.0).all():
        raise AnalysisError("curve", "a deviation of 0", allowed="must be of values that are not all equal")


def fit(curve: AllanCurve, names: Sequence[str] = PARAMETERS[1:4], *, sampled: bool = False) -> NoiseFit:
    """Return the noise parameters fitted to an overlapping Allan curve (k,).

    names: some of `PARAMETERS`
    sampled: the readings are points of the process, as a simulator's, not means over each interval

    Raises `AnalysisError`.

    >>> curve = ns.analysis.allan.oadev(run["imu"]["angular_velocity"][:, 0], rate=1000.0)
    >>> found = ns.analysis.fit.fit(curve, ["noise_density"])
    >>> declared = world.sensor("imu").spec.angular_velocity_x.stddev / 1000.0**0.5
    >>> round(found.parameters["noise_density"].value / declared, 1)
    1.0
    """
    _check_parameters(curve, names)
    problem = _FitProblem(curve, tuple(names), sampled)
    error = curve.variance * np.sqrt(2.0 / curve.dof)
    squares, correlation_time, last = np.zeros(len(names)), 1.0, np.zeros(0)
    for _ in range(MAX_ITERATIONS):
        correlation_time = problem.find_correlation_time(1.0 / error)
        squares, _ = problem.solve(correlation_time, 1.0 / error)
        if last.size and np.allclose(squares, last, rtol=1e-4, atol=0.0):
            break
        last, error = squares, problem.compute_errors(problem.make_terms(squares, correlation_time))
    terms = problem.make_terms(squares, correlation_time)
    factors = [int(factor) for factor in curve.factor]
    slopes = problem.compute_derivatives(squares, correlation_time) / error[:, None]
    sizes = np.linalg.norm(slopes, axis=0)
    sizes[sizes == 0.0] = 1.0
    solver = np.linalg.pinv(slopes / sizes) / error / sizes[:, None]
    errors = np.sqrt(np.diag(solver @ problem.compute_covariance(terms, factors) @ solver.T))
    parameters = {
        name: FittedParameter(float(square), float(stddev))
        for name, square, stddev in zip(names, squares, errors, strict=False)
    }
    if DYNAMIC_BIAS in names:
        square = correlation_time**2 if parameters[DYNAMIC_BIAS].squared > 0.0 else math.nan
        parameters[CORRELATION_TIME] = FittedParameter(square, 2.0 * square * float(errors[-1]))
    return NoiseFit(parameters, terms, curve, allan_variance(terms, curve.factor, curve.rate), error)

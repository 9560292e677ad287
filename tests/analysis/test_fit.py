"""The fit recovers the parameters of simulated records within the errors that it reports."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from navsense.analysis import allan, fit, theory
from navsense.core.errors import AnalysisError
from navsense.core.typing import FloatArray
from navsense.noise.specification import Noise
from navsense.testing import apply_noise

STANDARD = ("noise_density", "bias_instability", "random_walk")

Z = 5.2
"""Two-sided normal quantile of a false-alarm rate of 2e-7: 1e-6 over five parameters."""


def make_flicker(count: int, random: np.random.Generator) -> FloatArray:
    """Return flicker noise of unit instability: Kasdin's filter by FFT."""
    k = np.arange(1, count)
    weights = np.concatenate(([1.0], np.cumprod((k - 0.5) / k)))
    filtered = np.fft.rfft(weights, 2 * count) * np.fft.rfft(random.standard_normal(count), 2 * count)
    return np.asarray(np.fft.irfft(filtered, 2 * count)[:count])


def make_drift(density: float, tau: float, count: int, rate: float) -> FloatArray:
    return apply_noise(Noise(dynamic_bias_stddev=density, dynamic_bias_correlation_time=tau), rate, 5, np.zeros(count))[
        0
    ]


def compute_expected_errors(
    curve: allan.AllanCurve, parameters: dict[str, float], names: tuple[str, ...]
) -> dict[str, float]:
    """Return the standard errors of the squares if the declared values are the truth."""
    ideal = replace(curve, deviation=np.sqrt(theory.allan_variance(list_terms(parameters), curve.factor, curve.rate)))
    found = fit.fit(ideal, names, sampled=True)
    for name, value in parameters.items():
        assert found[name].value == pytest.approx(value, rel=1e-3, abs=0.0)
    return {name: found[name].squared_error for name in parameters}


def list_terms(parameters: dict[str, float]) -> list[theory.NoiseTerm]:
    tau = parameters.get("dynamic_bias_correlation_time", 1.0)
    return [
        fit.make_term(name, value, tau, sampled=True)
        for name, value in parameters.items()
        if name != "dynamic_bias_correlation_time"
    ]


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6", "CLK-8")
@pytest.mark.parametrize("names", [STANDARD, fit.PARAMETERS[:5], (*STANDARD[:2], "dynamic_bias_stddev"), ("ramp",)])
def test_fit_of_the_exact_curve_returns_its_parameters(names: tuple[str, ...]) -> None:
    """The fit of the declared variance itself estimates undeclared terms as zero."""
    declared = {"quantisation": 3e-3, "noise_density": 1e-2, "bias_instability": 2e-3, "random_walk": 1e-4}
    declared |= {"ramp": 2e-7, "dynamic_bias_stddev": 3e-3}
    tau = 40.0
    empty = allan.oadev(np.random.default_rng(0).standard_normal(20_000), 10.0, exponent=0)
    for sampled in (False, True):
        terms = [fit.make_term(name, declared[name], tau, sampled) for name in names]
        variance = theory.allan_variance(terms, empty.factor, empty.rate)
        found = fit.fit(replace(empty, deviation=np.sqrt(variance)), names, sampled=sampled)
        for name in names:
            assert found[name].value == pytest.approx(declared[name], rel=1e-4, abs=0.0), name
        if "dynamic_bias_stddev" in names:
            assert found["dynamic_bias_correlation_time"].value == pytest.approx(tau, rel=1e-4, abs=0.0)
        assert np.abs(found.residuals).max() < 1e-2
        assert found.variance == pytest.approx(variance, rel=1e-4, abs=0.0)
        assert len(found) == len(list(found)) == len(names) + ("dynamic_bias_stddev" in names)


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6", "CLK-8")
@pytest.mark.parametrize("rate", [0.5, 200.0])
def test_declared_parameters_are_recovered(rate: float) -> None:
    """White noise, flicker and random walk in 250,000 values are each recovered within Z errors.

    Kasdin's flicker exceeds its floor by (2 / pi - 2 ln 2 / pi) B^2 dt of white noise, which is added to N^2.
    """
    count, random = 1 << 18, np.random.default_rng(31)
    density, instability, walk = 1e-2, 4e-3 * math.sqrt(rate), 2e-4 * rate
    values = density * math.sqrt(rate) * random.standard_normal(count) + instability * make_flicker(count, random)
    values += walk / math.sqrt(rate) * np.cumsum(random.standard_normal(count))
    curve = allan.oadev(values, rate)
    found = fit.fit(curve, sampled=True)
    declared = dict(zip(STANDARD, (density, instability, walk), strict=True))
    errors = compute_expected_errors(curve, declared, STANDARD)
    excess = (2.0 - 2.0 * math.log(2.0)) / math.pi * instability**2 / rate
    assert abs(found["noise_density"].squared - density**2 - excess / 2.0) < Z * errors["noise_density"] + excess / 2.0
    for name in STANDARD[1:]:
        assert abs(found[name].squared - declared[name] ** 2) < Z * errors[name], name
    assert np.abs(found.residuals).max() < Z + 1.0


@pytest.mark.compiled
@pytest.mark.requirement("NOI-3", "NOI-6")
@pytest.mark.parametrize(("rate", "tau"), [(10.0, 8.0), (100.0, 2.0)])
def test_simulated_drift_is_recovered(rate: float, tau: float) -> None:
    """The record is navsense's white noise and drift at two rates."""
    count, density, driving = 100_000, 1e-2, 3e-2
    values = make_drift(driving, tau, count, rate)
    values = values + density * math.sqrt(rate) * np.random.default_rng(33).standard_normal(count)
    curve = allan.oadev(values, rate, allan.log_spaced_factors(count // 8, 4))
    names = ("noise_density", "dynamic_bias_stddev")
    found = fit.fit(curve, names, sampled=True)
    declared = {"noise_density": density, "dynamic_bias_stddev": driving, "dynamic_bias_correlation_time": tau}
    errors = compute_expected_errors(curve, declared, names)
    for name, value in declared.items():
        assert abs(found[name].squared - value**2) < Z * errors[name], name
        low, high = found[name].interval(8.0)
        assert low < value < high


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
def test_point_samples_fitted_as_averages_have_the_theoretical_bias() -> None:
    """Samples of a random walk have K^2 dt / (6 m) more variance than means: white noise of density K dt / sqrt(6).

    A drift is a random walk at spans far below its correlation time; the neglected terms are about a percent.
    """
    rate, tau, driving, count = 10.0, 100.0, 3e-2, 200_000
    values = make_drift(driving, tau, count, rate)
    curve = allan.oadev(values, rate, [1, 2, 4, 8, 16, 32, 64])
    points = fit.fit(curve, ("noise_density", "random_walk"), sampled=True)
    means = fit.fit(curve, ("noise_density", "random_walk"))
    white = driving**2 / rate**2 / 6.0
    assert points["noise_density"].squared < Z * points["noise_density"].squared_error + 0.01 * white
    assert abs(means["noise_density"].squared - white) < Z * means["noise_density"].squared_error + 0.01 * white
    assert Z * means["noise_density"].squared_error < 0.2 * white


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
def test_scatter_of_parameters_equals_their_standard_errors() -> None:
    """Over 200 records, the mean of each square and its variance equal the reported ones; false-alarm rate 1e-6.

    A sample variance of n nearly normal values has the relative error sqrt(2 / n), 0.1 here. The limit is 5.2 errors
    plus one for skewness.
    """
    records, count, random = 200, 4096, np.random.default_rng(34)
    declared = {"noise_density": 1.0, "bias_instability": 0.35}
    names = tuple(declared)
    squares: list[list[float]] = []
    errors: dict[str, float] = {}
    for _ in range(records):
        values = random.standard_normal(count) + 0.35 * make_flicker(count, random)
        curve = allan.oadev(values, 1.0, [1, 4, 16, 64, 256, 1024], exponent=0)
        errors = errors or compute_expected_errors(curve, declared, names)
        found = fit.fit(curve, names)
        squares.append([found[name].squared for name in names])
    mean, spread = np.mean(squares, axis=0), np.std(squares, axis=0, ddof=1)
    excess = (2.0 - 2.0 * math.log(2.0)) / math.pi * 0.35**2
    for place, name in enumerate(names):
        off = mean[place] - declared[name] ** 2
        if name == "noise_density":
            assert 0.0 < off < excess + Z * errors[name] / math.sqrt(records)
        else:
            assert abs(off) < Z * errors[name] / math.sqrt(records)
        assert abs((spread[place] / errors[name]) ** 2 - 1.0) < (Z + 1.0) * math.sqrt(2.0 / records)


def test_parameter_has_value_and_standard_error() -> None:
    figure = fit.FittedParameter(4.0, 0.4)
    assert figure.value == 2.0
    assert figure.stddev == pytest.approx(0.1, rel=1e-12, abs=0.0)
    assert figure.interval(5.0) == pytest.approx((math.sqrt(2.0), math.sqrt(6.0)), rel=1e-12, abs=0.0)
    nothing = fit.FittedParameter(0.0, 0.04)
    assert (nothing.value, nothing.stddev) == (0.0, 0.2)
    assert nothing.interval(4.0) == (0.0, 0.4)


@pytest.mark.compiled
def test_absent_term_is_estimated_as_zero() -> None:
    values = np.random.default_rng(36).standard_normal(20_000)
    found = fit.fit(allan.oadev(values, 10.0), ("noise_density", "random_walk", "dynamic_bias_stddev"))
    assert found["noise_density"].value == pytest.approx(1.0 / math.sqrt(10.0), rel=0.05, abs=0.0)
    for name in ("random_walk", "dynamic_bias_stddev"):
        assert found[name].interval(5.0)[0] == 0.0
    if found["dynamic_bias_stddev"].squared == 0.0:
        assert math.isnan(found["dynamic_bias_correlation_time"].value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("white",), "parameter: white; must be one of quantisation, noise_density"),
        ((), "parameters: .*; must be at least one, without repetition"),
        (("ramp", "ramp"), "must be at least one, without repetition"),
    ],
)
def test_invalid_parameters_are_errors(names: tuple[str, ...], message: str) -> None:
    curve = allan.oadev(np.random.default_rng(1).standard_normal(100), 1.0)
    with pytest.raises(AnalysisError, match=message):
        fit.fit(curve, names)


def test_unfittable_curves_are_an_error() -> None:
    values = np.random.default_rng(1).standard_normal((100, 2))
    with pytest.raises(AnalysisError, match=r"curve: hdev; must be of allan\.oadev"):
        fit.fit(allan.hdev(values[:, 0], 1.0))
    with pytest.raises(AnalysisError, match=r"take curve\.select"):
        fit.fit(allan.oadev(values, 1.0))
    with pytest.raises(AnalysisError, match="2 points; must have at least 3"):
        fit.fit(allan.oadev(values[:, 0], 1.0, [1, 2]))
    with pytest.raises(AnalysisError, match="must be of values that are not all equal"):
        fit.fit(allan.oadev(np.ones(100), 1.0))

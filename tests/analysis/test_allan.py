"""Allan deviations equal published values, another program, and the definition."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import allantools
import numpy as np
import pytest

from navsense.analysis import allan, theory
from navsense.core.errors import AnalysisError, SimulationError
from navsense.core.kernels import INTERPRETED
from navsense.core.typing import FloatArray

ORACLE = Path(__file__).resolve().parent.parent / "oracles" / "nist"

NINE = np.array([892.0, 809.0, 823.0, 798.0, 671.0, 644.0, 883.0, 903.0, 677.0])

KINDS = {
    "plain": (allan.adev, "adev"),
    "overlapping": (allan.oadev, "oadev"),
    "modified": (allan.mdev, "mdev"),
    "time_deviation": (allan.tdev, "tdev"),
    "hadamard": (allan.hdev, "hdev"),
    "overlapping_hadamard": (allan.ohdev, "ohdev"),
    "total": (allan.totdev, "totdev"),
}
"""Statistic -> name in allantools."""


def read_thousand_values() -> FloatArray:
    number, values = 1234567890, []
    for _ in range(1000):
        values.append(number / 2147483647)
        number = 16807 * number % 2147483647
    return np.array(values)


def read_published_deviations(name: str) -> Iterator[tuple[str, list[float]]]:
    with (ORACLE / name).open(encoding="utf-8") as file:
        for row in csv.reader(file):
            yield row[0], [float(cell) for cell in row[1:]]


def compute_averages(values: FloatArray, factor: int) -> FloatArray:
    return values[: values.size // factor * factor].reshape(-1, factor).mean(axis=1)


@pytest.mark.requirement("NOI-6", "CLK-8")
@pytest.mark.parametrize(
    ("file", "values", "factors"), [("nine.csv", NINE, [1, 2]), ("thousand.csv", read_thousand_values(), [1, 10, 100])]
)
def test_deviations_equal_published_nist_values(file: str, values: FloatArray, factors: list[int]) -> None:
    held = 0
    for name, expected in read_published_deviations(file):
        if name == "stddev":
            measured = [float(compute_averages(values, factor).std(ddof=1)) for factor in factors]
        else:
            measured = list(KINDS[name][0](values, 1.0, factors).deviation)
        # 70.80608 is printed for a value of 70.806073: one unit of the last digit, 1.4e-7.
        assert measured == pytest.approx(expected, rel=1e-6, abs=0.0), name
        held += 1
    assert held == len(KINDS) + 1


def test_thousand_values_equal_those_of_nist() -> None:
    values = read_thousand_values()
    numbers = np.rint(values * 2147483647).astype(np.int64)
    assert list(numbers[1:4]) == [395529916, 1209410747, 633705974]
    slope, intercept = np.polyfit(np.arange(1, 1001), values, 1)
    found = [values.max(), values.min(), values.mean(), np.median(values), slope, intercept]
    assert found == pytest.approx(
        [9.957453e-1, 1.371760e-3, 4.897745e-1, 4.798849e-1, 6.490910e-6, 4.865258e-1], 1e-6, abs=0.0
    )


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("count", "rate"), [(2000, 50.0), (377, 0.3)])
def test_deviations_equal_allantools(name: str, count: int, rate: float) -> None:
    random = np.random.default_rng(count)
    values = random.standard_normal(count) + np.cumsum(random.standard_normal(count)) / 7.0 + 9.81
    function, other = KINDS[name]
    for phase in (False, True):
        curve = function(values, rate, phase=phase)
        data_type = "phase" if phase else "freq"
        taus, deviation, _, terms = getattr(allantools, other)(values, rate=rate, data_type=data_type, taus=curve.tau)
        same = np.isin(curve.factor, np.rint(taus * rate).astype(np.int64))
        assert same.sum() == taus.size >= 10
        # Random walk and offset cost three digits of the phase.
        assert curve.deviation[same] == pytest.approx(deviation, rel=1e-10, abs=0.0)
        assert list(curve.counts[same]) == list(terms)


@pytest.mark.requirement("CLK-8")
def test_phase_and_frequency_give_the_same_deviation() -> None:
    values = np.random.default_rng(2).standard_normal(500)
    phase = np.concatenate(([0.0], np.cumsum(values))) / 20.0
    for name, (kind, _) in KINDS.items():
        one, other = kind(values, 20.0), kind(phase + 3.0, 20.0, phase=True)
        assert other.deviation == pytest.approx(one.deviation, rel=1e-11, abs=0.0), name
        assert np.array_equal(other.counts, one.counts)


def test_slope_of_the_phase_cancels() -> None:
    """A phase offset of 1e9 s and a frequency offset of 50 ppm do not change the deviation."""
    noise = np.random.default_rng(3).standard_normal(3000) * 1e-6
    clean = allan.mdev(noise, 10.0, [1, 10, 100], phase=True)
    offset = allan.mdev(noise + 5e-6 * np.arange(3000), 10.0, [1, 10, 100], phase=True)
    assert offset.deviation == pytest.approx(clean.deviation, rel=1e-9, abs=0.0)


def test_axes_and_runs_are_independent() -> None:
    values = np.random.default_rng(4).standard_normal((2, 3, 300, 4))
    complete = allan.oadev(values, 5.0)
    assert complete.deviation.shape == (2, 3, complete.factor.size, 4) == complete.dof.shape == complete.exponent.shape
    for run in np.ndindex(2, 3):
        for axis in range(4):
            alone = allan.oadev(values[run][:, axis], 5.0)
            one = complete.select(axis, run=run)
            assert np.array_equal(one.deviation, alone.deviation)
            assert np.array_equal(one.dof, alone.dof)
            assert np.array_equal(one.tau, alone.tau)
    assert allan.oadev(np.asfortranarray(values[0, 0]), 5.0).select(1).deviation.tobytes() == (
        complete.select(1, run=(0, 0)).deviation.tobytes()
    )
    low, high = complete.interval()
    assert low.shape == high.shape == complete.deviation.shape
    with pytest.raises(AnalysisError, match="axis and run of a curve"):
        complete.select(1)


def test_real_values_of_any_type_are_accepted_and_unchanged() -> None:
    values = (np.arange(200) % 7 + np.arange(200) // 50).astype(np.int16)
    expected = allan.oadev(values.astype(np.float64), 1.0).deviation
    assert np.array_equal(allan.oadev(values, 1.0).deviation, expected)
    assert np.array_equal(allan.oadev(values.tolist(), 1.0).deviation, expected)
    arguments = values.astype(np.float64)
    arguments.setflags(write=False)
    for kind, _ in KINDS.values():
        kind(arguments, 1.0)
        kind(arguments, 1.0, phase=True)
    assert np.array_equal(arguments, values)


def test_factors_are_spread_evenly_over_decades() -> None:
    factors = allan.log_spaced_factors(10000)
    assert (factors[0], factors[-1]) == (1, 10000)
    ratios = factors[1:] / factors[:-1]
    assert (ratios[factors[:-1] >= 30] < 10.0**0.1 * 1.02).all()
    assert (ratios > 1.0).all()
    assert list(allan.log_spaced_factors(1)) == [1]
    curve = allan.oadev(np.arange(4001.0) ** 2, 2.0)
    assert curve.factor[-1] == 1000
    assert curve.tau[-1] == 500.0


@pytest.mark.parametrize("name", KINDS)
def test_largest_factor_has_a_difference(name: str) -> None:
    values = np.random.default_rng(6).standard_normal(31)
    kind = KINDS[name][0]
    longest = kind(values, 1.0).statistic.max_factor(32)
    curve = kind(values, 1.0, [longest])
    assert curve.counts[0] >= 1
    assert curve.dof[0] > 0.0
    with pytest.raises(AnalysisError, match=f"factor: {longest + 1}; must be from 1 to {longest}"):
        kind(values, 1.0, [longest + 1])


@pytest.mark.parametrize(
    ("values", "rate", "keywords", "message"),
    [
        ([1.0, 2.0, math.nan, 4.0], 1.0, {}, r"value of row 2: nan; must be finite; cut the record at its gaps"),
        ([[1.0, 2.0], [3.0, math.inf], [1.0, 2.0]], 1.0, {}, "value of row 1: inf"),
        (["a", "b"], 1.0, {}, "must be .n,. real numbers"),
        (3.0, 1.0, {}, "must be .n,. real numbers"),
        ([1.0], 1.0, {}, "values: 2 phase values; must be at least 3"),
        ([1.0] * 9, 1.0, {"factors": [0]}, "factor: 0; must be from 1 to 4"),
        ([1.0] * 9, 1.0, {"factors": [1.5]}, "must be integers"),
        ([1.0] * 9, 1.0, {"factors": []}, "must be integers"),
        ([1.0] * 9, 1.0, {"exponent": -3}, "exponent: -3; must be from -2 to 2, or None"),
    ],
)
def test_invalid_record_is_an_error(values: Any, rate: float, keywords: Any, message: str) -> None:
    with pytest.raises(AnalysisError, match=message):
        allan.oadev(values, rate, **keywords)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, 1e9])
def test_invalid_rate_is_an_error(rate: float) -> None:
    with pytest.raises(SimulationError, match="rate"):
        allan.oadev([1.0] * 9, rate)


def make_coloured_noise(exponent: int, count: int, random: np.random.Generator) -> FloatArray:
    """Return noise with the spectrum |2 sin(pi f)|^exponent: Kasdin's fractional filter, by FFT."""
    k = np.arange(1, count)
    weights = np.concatenate(([1.0], np.cumprod((-0.5 * exponent + k - 1.0) / k)))
    spectrum = np.fft.rfft(weights, 2 * count) * np.fft.rfft(random.standard_normal(count), 2 * count)
    return np.asarray(np.fft.irfft(spectrum, 2 * count)[:count])


@pytest.mark.parametrize("exponent", [2, 1, 0, -1, -2])
def test_power_law_is_estimated_from_data(exponent: int) -> None:
    """At m = 1, 4096 values separate the power laws: delta has the deviation 1 / sqrt(4096) = 0.016.

    The next law differs by 0.25 in delta, sixteen deviations.
    """
    values = make_coloured_noise(exponent, 4096, np.random.default_rng(8))
    curve = allan.oadev(values, 1.0, [1])
    assert curve.exponent[0] == exponent
    reference, _, _, _ = allantools.autocorr_noise_id(values, 1, data_type="freq")
    assert reference == exponent


@pytest.mark.parametrize("factor", [1, 2, 5, 16])
@pytest.mark.parametrize("order", [2, 3])
def test_exponents_equal_allantools(factor: int, order: int) -> None:
    random = np.random.default_rng(9)
    for exponent in (2, 1, 0, -1, -2):
        values = make_coloured_noise(exponent, 1000, random) + 0.3 * random.standard_normal(1000)
        expected, _, _, _ = allantools.autocorr_noise_id(values, factor, data_type="freq", dmax=order)
        phase = np.concatenate(([0.0], np.cumsum(values)))
        assert allan.identify_exponent(phase, factor, order) == max(2 - 2 * order, min(2, expected))


def test_few_averages_use_the_exponent_of_the_next_smaller_factor() -> None:
    values = make_coloured_noise(-2, 2000, np.random.default_rng(10))
    curve = allan.oadev(values, 1.0, [900, 1, 300])
    assert list(curve.exponent) == [-2, -2, -2]
    assert list(allan.oadev(np.ones(20), 1.0).exponent) == [0] * allan.oadev(np.ones(20), 1.0).factor.size


@pytest.mark.requirement("NOI-6")
def test_interval_equals_chi_squared_quantiles() -> None:
    from scipy.stats import chi2

    values = np.random.default_rng(11).standard_normal(1000)
    curve = allan.oadev(values, 1.0, exponent=0)
    for confidence in (0.6827, 0.95):
        low, high = curve.interval(confidence)
        tail = 0.5 * (1.0 - confidence)
        assert low == pytest.approx(
            curve.deviation * np.sqrt(curve.dof / chi2.ppf(1.0 - tail, curve.dof)), rel=1e-12, abs=0.0
        )
        assert high == pytest.approx(
            curve.deviation * np.sqrt(curve.dof / chi2.ppf(tail, curve.dof)), rel=1e-12, abs=0.0
        )
    with pytest.raises(AnalysisError, match=r"confidence: 1\.0; must be above 0 and below 1"):
        curve.interval(1.0)


@pytest.mark.parametrize(
    ("term", "low"), [(theory.White(1.0), 0.0), (theory.Flicker(1.0), 0.481), (theory.RandomWalk(1.0), 0.750)]
)
def test_total_variance_is_low_as_published(term: theory.NoiseTerm, low: float) -> None:
    """The mean over the Allan variance is 1 - low tau / T (NIST SP 1065, table 7), from the covariance of the phase.

    For T samples, the estimate sums T - 1 terms and divides by T.
    """
    count, last = 401, 400
    i = np.arange(count)
    one = term.covariance(i, 1.0)
    phase = term.covariance(np.subtract.outer(i, i), 1.0) - one[:, None] - one + one[0]
    for factor in (40, 200):
        rows = np.zeros((count - 2, count))
        for row, middle in enumerate(range(1, last)):
            for place, tap in ((middle - factor, 1.0), (middle, -2.0), (middle + factor, 1.0)):
                end = 0 if place < 0 else last
                if 0 <= place <= last:
                    rows[row, place] += tap
                else:
                    rows[row, end] += 2.0 * tap
                    rows[row, 2 * end - place] -= tap
        mean = float(np.mean(np.sum(rows @ phase * rows, axis=1))) / (2.0 * factor**2)
        share = mean / float(term.allan(factor, 1.0)) * (last - 1) / last
        assert share == pytest.approx(1.0 - low * factor / last, abs=5e-4)


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("name", KINDS)
def test_intervals_have_the_stated_coverage(name: str) -> None:
    """The interval contains the true deviation in 90 percent of 2000 records: binomial, false alarms 1e-6 a span."""
    records, count, rate = 2000, 200, 4.0
    values = np.random.default_rng(12).standard_normal((count, records))
    curve = KINDS[name][0](values, rate, [2, 16], exponent=0)
    truth = 1.0 / np.sqrt(curve.factor)
    if name == "modified":
        truth = truth * np.sqrt((curve.factor**2 + 1.0) / (2.0 * curve.factor**2))
    elif name == "time_deviation":
        truth = truth * np.sqrt((curve.factor**2 + 1.0) / (6.0 * curve.factor**2)) * curve.tau
    low, high = curve.interval(0.9)
    share = np.mean((low < truth[:, None]) & (truth[:, None] < high), axis=1)
    # 4.89 deviations of a binomial share, plus 0.015 for the errors of chi-squared and of a rounded formula.
    assert np.abs(share - 0.9).max() < 4.892 * math.sqrt(0.9 * 0.1 / records) + 0.015


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_sums_agree_to_the_last_bit(
    interpret: Callable[[Any], Callable[..., Any]],
) -> None:
    phase = np.cumsum(np.random.default_rng(13).standard_normal(3000))
    for kernel in (allan._sum_second_differences, allan._sum_third_differences, allan._sum_modified_differences):
        for factor in (1, 7, 500):
            assert kernel(phase, factor) == interpret(kernel)(phase, factor)


@pytest.mark.compiled
def test_long_record_keeps_precision() -> None:
    """For 10^6 values 9.81 + 1e-6 w, the sums equal exact fractions of the same doubles to 1e-9."""
    values = 9.81 + 1e-6 * np.random.default_rng(14).standard_normal(1_000_000)
    curve = allan.oadev(values, 1000.0, [1, 1000, 100_000])
    for place, factor in enumerate(curve.factor):
        means = np.convolve(values - 9.81, np.ones(factor) / factor, "valid") if factor < 10_000 else None
        if means is None:
            sums = np.concatenate(([0.0], np.cumsum((values - 9.81).astype(np.longdouble))))
            means = ((sums[factor:] - sums[:-factor]) / factor).astype(np.float64)
        expected = math.sqrt(0.5 * float(np.mean((means[factor:] - means[:-factor]) ** 2)))
        assert curve.deviation[place] == pytest.approx(expected, rel=1e-8, abs=0.0)

"""Latency: how long samples are on their way, and that they arrive in their order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, lognorm

from navsense.clock import ArrivalTimes, Latency, latency
from navsense.core.errors import ClockError
from navsense.core.kernels import INTERPRETED
from navsense.core.random_streams import make_generator
from navsense.core.typing import BoolArray, Times

WIRE = Latency(fixed=0.002, mean=0.004, stddev=0.002)
"""Mean and deviation as measured on the TCP output of a Water Linked DVL."""


def get_emitted(time: Times) -> BoolArray:
    return np.ones(time.shape, dtype=np.bool_)


@pytest.mark.requirement("CLK-9")
def test_sample_without_latency_arrives_at_sampling_time() -> None:
    time = np.arange(100) / 30.0
    assert np.array_equal(ArrivalTimes(None, "imu", 1, 0).compute_arrivals(time, get_emitted(time)), time)
    assert np.array_equal(ArrivalTimes(Latency(), "imu", 1, 0).compute_arrivals(time, get_emitted(time)), time)
    assert np.array_equal(
        ArrivalTimes(Latency(fixed=0.25, mean=0.5), "imu", 1, 0).compute_arrivals(time, get_emitted(time)), time + 0.75
    )


@pytest.mark.requirement("CLK-9")
def test_latency_is_lognormal_with_declared_mean_and_deviation() -> None:
    """Samples far apart do not queue. Kolmogorov and Smirnov's distance at a false-alarm rate of 1e-6."""
    count = 20_000
    time = np.arange(count) * 10.0
    random = ArrivalTimes(WIRE, "dvl", 3, 0).compute_arrivals(time, get_emitted(time)) - time - WIRE.fixed
    assert random.min() > 0.0
    square = math.log(1.0 + (WIRE.stddev / WIRE.mean) ** 2)
    declared = lognorm(math.sqrt(square), scale=WIRE.mean * math.exp(-square / 2.0))
    assert declared.mean() == pytest.approx(WIRE.mean, rel=1e-12, abs=0.0)
    assert declared.std() == pytest.approx(WIRE.stddev, rel=1e-12, abs=0.0)
    assert kstest(random, declared.cdf).pvalue > 1e-6


@pytest.mark.requirement("CLK-9")
def test_arrivals_equal_a_reference_queue() -> None:
    """Against a queue in plain words, with NumPy's own generator."""
    count, slow = 3000, Latency(fixed=0.001, mean=0.01, stddev=0.03)
    time = np.arange(count) / 200.0
    ours = ArrivalTimes(slow, "dvl", 5, 2).compute_arrivals(time, get_emitted(time))
    square = math.log1p(9.0)
    arrived, declared = -math.inf, []
    for t, w in zip(
        time, make_generator(5, (2, "latency", "dvl", "latency", "random")).standard_normal(count), strict=True
    ):
        due = t + 0.001 + math.exp(math.log(0.01) - square / 2.0 + math.sqrt(square) * w)
        arrived = max(arrived, due)
        declared.append(arrived)
    assert np.allclose(ours, declared, rtol=0.0, atol=1e-12)
    assert np.diff(ours).min() == 0.0, "some were held up"
    assert (ours >= time + 0.001).all()


@pytest.mark.requirement("CLK-9")
def test_dropped_sample_does_not_delay_other_samples() -> None:
    time, slow = np.arange(3000) / 200.0, Latency(mean=0.01, stddev=0.03)
    every = np.arange(3000) % 2 == 0
    ours = ArrivalTimes(slow, "dvl", 5, 2).compute_arrivals(time, every)
    square = math.log1p(9.0)
    w = make_generator(5, (2, "latency", "dvl", "latency", "random")).standard_normal(3000)[every]
    due = time[every] + np.exp(math.log(0.01) - square / 2.0 + math.sqrt(square) * w)
    assert np.allclose(ours[every], np.maximum.accumulate(due), rtol=0.0, atol=1e-12)
    assert (np.diff(ours) >= 0.0).all()
    assert (ArrivalTimes(slow, "dvl", 5, 2).compute_arrivals(time, ~get_emitted(time)) == time).all()


@pytest.mark.requirement("CLK-9")
@pytest.mark.parametrize("sheet", [Latency(fixed=0.1, mean=0.02), Latency(fixed=0.1, mean=0.02, stddev=0.05)])
@pytest.mark.parametrize("cuts", [[], [1, 2, 50, 51, 52], list(range(1, 200))])
def test_dropped_sample_arrives_after_the_last_published_sample(sheet: Latency, cuts: list[int]) -> None:
    """With and without a random part: the later of its own due time and the arrival of the last published sample."""
    time = np.arange(300) / 20.0
    gone = np.arange(300) % 25 < 20
    arrivals = ArrivalTimes(sheet, "dvl", 5, 2)
    parts = zip(np.split(time, cuts), np.split(gone, cuts), strict=True)
    ours = np.concatenate([arrivals.compute_arrivals(part, says) for part, says in parts])
    last = -math.inf
    for t, says, arrival in zip(time, gone, ours, strict=True):
        if says:
            assert arrival >= max(last, t + sheet.fixed)
            last = arrival
        else:
            assert arrival == max(t, last)
    assert (ours[~gone] > time[~gone]).any()
    assert (ours[~gone] == time[~gone]).any()


@pytest.mark.requirement("CLK-9")
def test_latency_is_equal_for_any_block_size_and_in_live_runs() -> None:
    time = np.arange(2000) / 150.0
    complete = ArrivalTimes(WIRE, "dvl", 5, 0).compute_arrivals(time, get_emitted(time))
    for cuts in ([1], [7, 8, 1500], list(range(1, 40))):
        pieces = ArrivalTimes(WIRE, "dvl", 5, 0)
        assert (
            np.concatenate(
                [pieces.compute_arrivals(part, get_emitted(part)) for part in np.split(time, cuts)]
            ).tobytes()
            == complete.tobytes()
        )
    live = ArrivalTimes(WIRE, "dvl", 5, 0, prefetch=64)
    assert (
        np.array(
            [live.compute_arrivals(time[i : i + 1], get_emitted(time[i : i + 1]))[0] for i in range(500)]
        ).tobytes()
        == complete[:500].tobytes()
    )


def test_sensors_and_runs_have_independent_latencies() -> None:
    time = np.arange(10) * 1.0
    first, other, later = (
        ArrivalTimes(WIRE, name, 5, run).compute_arrivals(time, get_emitted(time)) - time
        for name, run in (("a", 0), ("b", 0), ("a", 1))
    )
    assert not np.isclose(first, other, rtol=1e-12, atol=0.0).any()
    assert not np.isclose(first, later, rtol=1e-12, atol=0.0).any()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"fixed": -0.1}, "fixed: -0.1; must be >= 0"),
        ({"mean": math.inf}, "mean: inf; must be a finite number"),
        ({"fixed": 7e9}, r"fixed: 7000000000\.0; must be at most 6e\+09 s"),
        ({"fixed": 10**400}, "fixed: 1000.*; must be of absolute value below 1e.100"),
        ({"mean": 1e99}, r"mean: 1e\+99; must be at most 6e\+09 s"),
        ({"mean": 1e-300, "stddev": 1e-3}, r"stddev: 0\.001; must be at most 1e\+06 times the mean, 1e-300 s"),
        ({"mean": 1e-3, "stddev": 1001.0}, r"stddev: 1001\.0; must be at most 1e\+06 times the mean, 0\.001 s"),
        ({"stddev": 0.1}, "mean: 0.0; must be > 0 if stddev is"),
    ],
)
def test_invalid_latency_is_an_error(sizes: dict[str, float], message: str) -> None:
    with pytest.raises(ClockError, match=message):
        Latency(**sizes)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-3, 6e3])
def test_largest_allowed_latency_spread_gives_finite_arrivals(size: float) -> None:
    time = np.arange(500) / 20.0
    wide = Latency(mean=size, stddev=1e6 * size)
    ours = ArrivalTimes(wide, "dvl", 5, 0).compute_arrivals(time, get_emitted(time))
    assert np.isfinite(ours).all()
    assert (ours >= time).all()


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpreted: Callable[[Any], Callable[..., Any]]) -> None:
    time, draws = np.arange(1000) / 90.0, make_generator(1, ("w",)).standard_normal(1000)
    results = []
    for kernel in (latency._write_arrivals, interpreted(latency._write_arrivals)):
        out = np.empty(1000)
        last = kernel(time, get_emitted(time), 0.01, -5.0, 1.5, draws, -math.inf, out)
        results.append((out.tobytes(), last))
    assert results[0] == results[1]

"""Ticks: sample k is at k / rate, k = 0 ... ceil(duration rate) - 1, regardless of rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.core.errors import SimulationError
from navsense.core.ticks import check_rate, count_samples, find_first_tick, make_ticks, step_to_rate


@pytest.mark.parametrize(
    ("duration", "rate", "samples"),
    [
        (1.1, 10.0, 11),
        (0.7, 10.0, 7),
        (60.0, 1000.0, 60000),
        (0.1, 30.0, 3),
        (1.0, 3.0, 3),
        (1e-9, 1.0, 1),
        (0.3, 10.0, 3),
    ],
)
def test_tick_counts_are_exact_where_floats_round(duration: float, rate: float, samples: int) -> None:
    assert count_samples(duration, rate) == samples


@given(st.integers(1, 10**6), st.sampled_from([0.001, 0.3, 1.0, 3.0, 30.0, 99.9, 400.0, 1000.0, 33333.3, 1e7]))
def test_first_tick_is_the_earliest_at_or_after_a_time(k: int, rate: float) -> None:
    for time in (k / rate, np.nextafter(k / rate, 0.0), np.nextafter(k / rate, np.inf)):
        first = find_first_tick(float(time), rate)
        assert first / rate >= time
        assert first == 0 or (first - 1) / rate < time


@given(st.fractions(0, 50, max_denominator=1000), st.sampled_from([3.0, 30.0, 400.0, 1000.0]))
def test_adjacent_intervals_contain_every_tick_once(cut: Fraction, rate: float) -> None:
    both = np.concatenate([make_ticks(0.0, float(cut), rate).index, make_ticks(float(cut), 50.0, rate).index])
    assert np.array_equal(both, np.arange(count_samples(50.0, rate)))


def test_rates_without_whole_millisecond_periods_are_exact() -> None:
    """Gazebo's whole-millisecond periods give 304, 626, 3334 and 5001 updates in 10 s here (`docs`: honest time)."""
    assert [count_samples(10.0, rate) for rate in (30.0, 60.0, 300.0, 400.0, 2000.0)] == [300, 600, 3000, 4000, 20000]


def test_step_size_converts_to_a_whole_rate() -> None:
    assert step_to_rate(0.001) == 1000.0
    assert step_to_rate(0.003) == pytest.approx(1000.0 / 3.0, rel=1e-15, abs=0.0)
    assert step_to_rate(1.0 / 240.0) == 240.0


@pytest.mark.parametrize("rate", [0.0009, 1.1e7, 1e12, 0.0, -1.0, float("nan"), float("inf")])
def test_rates_outside_the_range_are_an_error(rate: float) -> None:
    with pytest.raises(SimulationError, match=r"rate: .*must be from 0.001"):
        check_rate(rate)

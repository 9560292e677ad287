"""`tools/compare_speed.py`: the interval of a median, the verdict, and the workloads."""

from __future__ import annotations

import importlib
import itertools
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

ROOT = Path(__file__).resolve().parent.parent
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def load_tools() -> Iterator[dict[str, ModuleType]]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        yield {name: importlib.import_module(name) for name in ("compare_speed", "speed_workloads")}
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.fixture
def compare(load_tools: dict[str, ModuleType]) -> Any:
    return load_tools["compare_speed"]


@pytest.fixture
def workloads(load_tools: dict[str, ModuleType]) -> Any:
    return load_tools["speed_workloads"]


@pytest.mark.parametrize("count", [*range(6, 60), 100, 999, 2000])
def test_rank_follows_the_binomial_distribution(compare: Any, count: int) -> None:
    rank = compare.interval_rank(count)
    assert 2.0 * binom.cdf(rank - 1, count, 0.5) <= 0.05 < 2.0 * binom.cdf(rank, count, 0.5)


def test_interval_of_twenty_pairs_is_sixth_to_fifteenth_ratio(compare: Any) -> None:
    ratios = np.random.default_rng(1).permutation(np.arange(1.0, 21.0)).tolist()
    assert compare.median_interval(ratios) == (6.0, 15.0)


@pytest.mark.parametrize("count", range(6))
def test_too_few_pairs_have_no_interval(compare: Any, count: int) -> None:
    with pytest.raises(ValueError, match="must be at least 6"):
        compare.interval_rank(count)


@pytest.mark.parametrize("count", [6, 9, 12])
def test_coverage_is_exact_over_all_sign_patterns(compare: Any, count: int) -> None:
    """Each value lies above or below the median with probability 1/2, so all patterns are equally likely."""
    intervals = (compare.median_interval(pattern) for pattern in itertools.product((-1.0, 1.0), repeat=count))
    covered = sum(low < 0.0 < high for low, high in intervals) / 2**count
    expected = 1.0 - 2.0 * binom.cdf(compare.interval_rank(count) - 1, count, 0.5)
    assert covered == pytest.approx(expected, rel=1e-12, abs=0.0)
    assert covered >= 0.95


@pytest.mark.parametrize("distribution", ["lognormal", "standard_cauchy", "exponential"])
def test_coverage_does_not_depend_on_the_distribution(compare: Any, distribution: str) -> None:
    """The number of covering intervals is binomial; false alarm 1e-6 for each distribution, two-sided."""
    count, trials = 20, 20_000
    median = {"lognormal": 1.0, "standard_cauchy": 0.0, "exponential": np.log(2.0)}[distribution]
    values = getattr(np.random.default_rng(7), distribution)(size=(trials, count)).tolist()
    covered = sum(low <= median <= high for low, high in map(compare.median_interval, values))
    coverage = 1.0 - 2.0 * binom.cdf(compare.interval_rank(count) - 1, count, 0.5)
    assert binom.ppf(FALSE_ALARM / 2.0, trials, coverage) <= covered <= binom.isf(FALSE_ALARM / 2.0, trials, coverage)


@pytest.mark.parametrize(
    ("interval", "mark"),
    [
        ((1.031, 1.2), "SLOWER"),
        ((1.03, 1.2), ""),
        ((0.9, 1.2), ""),
        ((0.8, 1.0 / 1.03), ""),
        ((0.8, 0.97), "faster"),
    ],
)
def test_interval_decides_the_mark(compare: Any, interval: tuple[float, float], mark: str) -> None:
    assert compare.verdict(interval) == mark


def test_table_counts_the_slower_workloads(compare: Any) -> None:
    pairs = {"equal": [(1.0, 1.0)] * 20, "slow": [(1.0, 1.1)] * 20, "fast": [(1.0, 0.9)] * 20}
    rows, slower = compare.table(pairs, 1e3)
    assert slower == 1
    assert [row.split()[-1] for row in rows] == ["1.000", "SLOWER", "faster"]
    assert rows[1].split()[1:4] == ["1000.000", "1100.000", "1.100"]


def test_share_is_the_ratio_of_two_workloads_of_the_same_pair(compare: Any, workloads: Any) -> None:
    ((name, (numerator, denominator)),) = workloads.SHARES.items()
    times = {numerator: [(3.0, 4.0), (5.0, 6.0)], denominator: [(2.0, 2.0), (4.0, 3.0)]}
    assert compare.select_shares(times) == {name: [(1.5, 2.0), (1.25, 2.0)]}
    assert compare.select_shares({numerator: times[numerator]}) == {}


def test_object_is_found_by_its_old_and_its_new_name(workloads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert workloads.find_object("statistics.median") is statistics.median
    monkeypatch.setattr(workloads, "RENAMED", {"nowhere.middle": ("nowhere.mean", "statistics.median")})
    assert workloads.find_object("nowhere.middle") is statistics.median
    with pytest.raises(LookupError, match="RENAMED"):
        workloads.find_object("nowhere.mean")


def test_worker_returns_a_time_or_an_error(tmp_path: Path) -> None:
    requests = [{"name": "process: import", "repeats": 1}, {"name": "unknown", "repeats": 1}]
    text = "".join(json.dumps(request) + "\n" for request in requests)
    command = [sys.executable, str(ROOT / "tools" / "speed_workloads.py"), str(tmp_path / "files")]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0]["seconds"] > 0.0
    assert answers[1] == {"error": "KeyError: 'unknown'"}


@pytest.fixture(scope="module")
def inputs(load_tools: dict[str, ModuleType], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_tools["speed_workloads"].Inputs(tmp_path_factory.mktemp("workloads"))


@pytest.mark.compiled
def test_every_workload_runs(workloads: Any, inputs: Any) -> None:
    for name, prepare in workloads.WORKLOADS.items():
        assert workloads.measure(prepare(inputs), 1) > 0.0, name

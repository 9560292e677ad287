"""A campaign with one and with two workers: wall-clock time, equality of the tables, and memory of the workers.

    python benchmarks/bench_campaign.py [RUNS [DURATION]]    of examples/survey_campaign.toml; default 64 runs of 600 s

The campaigns alternate: one worker, two workers, two, one. The time includes start and end of the workers, about 2 s.
With PYTHONDONTWRITEBYTECODE each process compiles the modules of navsense again, which adds 0.3 s to each campaign.
The rate is that from the end of the first task to the end of the last one, without this time. A short campaign before
them compiles the kernels. The limit of both ratios is 2. The memory of a worker is the largest resident set in the
second and in the last quarter of its campaign. Both are the same if a worker keeps nothing of its finished runs.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

import navsense as ns
from navsense.campaigns import Campaign
from navsense.campaigns.computation import compute_campaign

if TYPE_CHECKING:
    import pyarrow as pa

EXPERIMENT = Path(__file__).resolve().parents[1] / "examples" / "survey_campaign.toml"

ORDER = 1, 2, 2, 1
"""Numbers of workers of the campaigns."""

GOAL = 1.8
"""Goal of the ratio of the times with one and with two workers."""


def measure_memory() -> float:
    """Return the resident set (MB) of the largest worker of this process."""
    sizes = [0]
    for process in psutil.Process().children(recursive=True):
        try:
            sizes.append(process.memory_info().rss)
        except psutil.NoSuchProcess:  # it has just ended
            continue
    return max(sizes) / 1e6


@dataclass(frozen=True)
class Measurement:
    """Time (s), rate (runs/s), memory (MB) of a worker in the second and in the last quarter, and the table."""

    time: float
    rate: float
    memory: float
    memory_at_end: float
    table: pa.Table


def measure_campaign(campaign: Campaign, workers: int) -> Measurement:
    """Compute a campaign in a new folder, and measure it."""
    memory, times = {1: 0.0, 3: 0.0}, dict[int, float]()

    def sample(done: int, total: int) -> None:
        quarter = 4 * done // total
        if done not in times:  # a search of all processes takes time
            times[done] = time.perf_counter()
            if quarter in memory:
                memory[quarter] = max(memory[quarter], measure_memory())

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        result = compute_campaign(campaign, folder, workers=workers, progress=sample)
        spent = time.perf_counter() - start
    first, last = min(done for done in times if done), max(times)
    rate = (last - first) / (times[last] - times[first]) if last > first else math.nan
    return Measurement(spent, rate, memory[1], memory[3], result.table)


def main() -> None:
    """Print the times, their ratio, and the memory."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    duration = float(sys.argv[2]) if len(sys.argv) > 2 else 600.0
    campaign = replace(ns.campaigns.read_experiment(EXPERIMENT).campaign, runs=range(runs), duration=duration)
    measure_campaign(replace(campaign, runs=range(1)), 1)
    measured: dict[int, list[Measurement]] = {1: [], 2: []}
    print(f"{runs} runs of {duration:g} s in chunks of {max(campaign.chunk_sizes)}")
    for workers in ORDER:
        one = measure_campaign(campaign, workers)
        measured[workers].append(one)
        memory = f"{one.memory:.0f} MB, at the end {one.memory_at_end:.0f} MB"
        print(f"  workers {workers}: {one.time:.1f} s, {one.rate:.2f} runs/s, {memory}", flush=True)
    tables = [one.table for part in measured.values() for one in part]
    times = {workers: statistics.mean(one.time for one in part) for workers, part in measured.items()}
    rates = {workers: statistics.mean(one.rate for one in part) for workers, part in measured.items()}
    print(f"ratio of the times {times[1] / times[2]:.2f} (goal {GOAL}), of the rates {rates[2] / rates[1]:.2f}")
    print(f"tables equal: {all(table.equals(tables[0]) for table in tables)}")


if __name__ == "__main__":
    main()

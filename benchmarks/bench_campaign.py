"""A campaign with one and with two workers: wall-clock time, equality of the tables, and memory of the workers.

    python benchmarks/bench_campaign.py [RUNS [DURATION]]    of examples/survey_campaign.toml; default 64 runs of 600 s

The campaigns alternate: one worker, two workers, two, one. The time includes the start of the workers. A short campaign
before them compiles the kernels. The limit of the ratio is 2. The memory of a worker is the largest resident set in the
second and in the last quarter of its campaign. Both are the same if a worker keeps nothing of its finished runs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import replace
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


def measure_campaign(campaign: Campaign, workers: int) -> tuple[float, float, float, pa.Table]:
    """Return time (s), memory (MB) of a worker in the second and in the last quarter, and the table."""
    memory = {1: 0.0, 3: 0.0}

    def sample(done: int, total: int) -> None:
        quarter = 4 * done // total
        if quarter in memory:
            memory[quarter] = max(memory[quarter], measure_memory())

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        result = compute_campaign(campaign, folder, workers=workers, progress=sample)
        return time.perf_counter() - start, memory[1], memory[3], result.table


def main() -> None:
    """Print the times, their ratio, and the memory."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    duration = float(sys.argv[2]) if len(sys.argv) > 2 else 600.0
    campaign = replace(ns.campaigns.read_experiment(EXPERIMENT).campaign, runs=range(runs), duration=duration)
    measure_campaign(replace(campaign, runs=range(1)), 1)
    times: dict[int, list[float]] = {1: [], 2: []}
    tables = []
    print(f"{runs} runs of {duration:g} s in chunks of {max(campaign.chunk_sizes)}")
    for workers in ORDER:
        spent, middle, end, table = measure_campaign(campaign, workers)
        times[workers].append(spent)
        tables.append(table)
        print(f"  workers {workers}: {spent:.1f} s, {middle:.0f} MB, at the end {end:.0f} MB", flush=True)
    ratio = statistics.mean(times[1]) / statistics.mean(times[2])
    print(f"ratio {ratio:.2f} (goal {GOAL}, limit 2); tables equal: {all(table.equals(tables[0]) for table in tables)}")


if __name__ == "__main__":
    main()

"""Compare the processor time of two versions of navsense on named workloads.

Usage: python tools/compare_speed.py OLD [NEW] [--pairs 20] [--minutes M] [--work NAME ...]

OLD and NEW are git commits. Without NEW the script measures the working tree. Examples:

    python tools/compare_speed.py main
    python tools/compare_speed.py HEAD~1 HEAD --work "simulate imu" "read mcap"

Each version is copied to a folder in build/compare_speed, with its own cache of compiled kernels. The first comparison
of a version compiles its kernels, which takes minutes. Each version runs in a worker process. Workers run each workload
once without timing it, then in the order old, new, new, old: two pairs. The next two pairs use new workers, because the
speed of a process depends on its memory layout. Start and compilation are not timed, except in workloads whose name
starts with `process:`, where the processor time of the child process counts.

The table shows the median of new/old over the pairs, with a distribution-free interval of confidence 95 % or more. A
workload is SLOWER if its interval lies above 1.03, faster if it lies below 1/1.03. Exit code 1: a workload is SLOWER.
Exit code 2: a workload failed, or the arguments are wrong.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from source_hash import compute_source_hash
from speed_workloads import SHARES, WORKLOADS

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "compare_speed"
WORKER = ROOT / "tools" / "speed_workloads.py"
PARTS = ("src", "examples")
"""Folders of a version that the workloads need."""

LIMIT = 1.03
"""Largest new/old that is not SLOWER."""

MISS_PROBABILITY = 0.05
"""Largest probability that the interval does not contain the median."""

MIN_PAIRS = 6
"""Fewer pairs have no such interval."""

MIN_SECONDS = 0.05
"""s of one timing; a shorter workload is repeated."""

Times = dict[str, list[tuple[float, float]]]
"""Seconds (old, new) of the pairs of each workload."""


def interval_rank(count: int) -> int:
    """Return the largest k for which the k-th smallest and k-th largest of `count` values enclose the median.

    The median of a continuous distribution is below the k-th smallest value if at most k - 1 values are below it:
    probability P(B <= k - 1), B binomial with `count` trials of 1/2. The interval misses on two sides, so k is the
    largest integer with 2 P(B <= k - 1) <= MISS_PROBABILITY. Raises `ValueError` if there is none.
    """
    below, rank = 0, 0
    while True:
        below += math.comb(count, rank)
        if 2 * below / 2**count > MISS_PROBABILITY:
            break
        rank += 1
    if rank == 0:
        raise ValueError(f"{count} pairs; must be at least {MIN_PAIRS}")
    return rank


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median between two order statistics, which misses it with at most MISS_PROBABILITY."""
    rank, ordered = interval_rank(len(values)), sorted(values)
    return ordered[rank - 1], ordered[-rank]


def verdict(interval: tuple[float, float]) -> str:
    """Return `SLOWER`, `faster` or an empty string."""
    low, high = interval
    return "SLOWER" if low > LIMIT else "faster" if high < 1.0 / LIMIT else ""


def extract_commit(commit: str, folder: Path) -> None:
    """Write the files of a git commit to `folder`, all or none."""
    command = ("git", "-C", str(ROOT), "archive", commit, *PARTS)
    archive = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(partial, filter="data")
    partial.rename(folder)


def check_out(role: str, commit: str | None) -> Path:
    """Return the folder of a version: `tree` with its files, `kernels` and `files` of its worker.

    Old and new have folders of their own, so that a commit can be compared with itself. The folder of the working tree
    depends on the content of src, because a cached kernel does not notice a change in another file.
    """
    if commit is None:
        folder = FOLDER / f"{role}-{compute_source_hash(ROOT / 'src')}"
        for part in PARTS:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, folder / "tree" / part, ignore=ignored, dirs_exist_ok=True)
        return folder
    command = ("git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise ValueError(f"{commit}: no such git commit")
    folder = FOLDER / f"{role}-{done.stdout.strip()[:12]}"
    if not (folder / "tree").exists():
        extract_commit(commit, folder / "tree")
    return folder


class WorkloadError(Exception):
    """A workload failed."""


class Worker:
    """A process that times workloads in one version."""

    def __init__(self, folder: Path) -> None:
        """Start the process. One thread for linear algebra: idle threads use processor time."""
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPATH": str(folder / "tree" / "src"), "NUMBA_CACHE_DIR": str(folder / "kernels")}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._folder = folder
        self._process = subprocess.Popen(
            (sys.executable, str(WORKER), str(folder / "files")),
            cwd=folder / "tree",
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        """Return the worker."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._process.communicate()

    def measure(self, name: str, repeats: int = 1) -> float:
        """Return the processor time (s) of one call of a workload. Raises `WorkloadError`."""
        print(json.dumps({"name": name, "repeats": repeats}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline() if self._process.stdout else ""
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the worker ended"}
        if "error" in answer:
            raise WorkloadError(f"{self._folder.name}: {name}: {answer['error']}")
        return float(answer["seconds"])


def measure_two_pairs(folders: Sequence[Path], names: Sequence[str], repeats: dict[str, int]) -> Times:
    """Return two pairs of each workload, timed by new workers. `repeats` receives the repeats of a new workload."""
    times: Times = {}
    with ExitStack() as stack:
        old, new = (stack.enter_context(Worker(folder)) for folder in folders)
        for name in names:
            old.measure(name)  # may compile
            new.measure(name)
            if name not in repeats:
                repeats[name] = max(1, math.ceil(MIN_SECONDS / max(old.measure(name), 1e-6)))
            count = repeats[name]
            before = old.measure(name, count), new.measure(name, count)
            after = new.measure(name, count), old.measure(name, count)
            times[name] = [before, after[::-1]]
    return times


def select_shares(times: Times) -> Times:
    """Return the pairs of each share whose two workloads were timed."""
    ratios: Times = {}
    for name, (numerator, denominator) in SHARES.items():
        if numerator in times and denominator in times:
            rows = zip(times[numerator], times[denominator], strict=True)
            ratios[name] = [(top[0] / bottom[0], top[1] / bottom[1]) for top, bottom in rows]
    return ratios


def table(times: Mapping[str, Sequence[tuple[float, float]]], unit: float) -> tuple[list[str], int]:
    """Return the rows of the table, and how many of them are SLOWER."""
    rows, slower = [], 0
    for name, pairs in times.items():
        ratios = [new / old for old, new in pairs]
        interval = median_interval(ratios)
        medians = [statistics.median(side) * unit for side in zip(*pairs, strict=True)]
        mark = verdict(interval)
        slower += mark == "SLOWER"
        rows.append(
            f"{name:28s} {medians[0]:10.3f} {medians[1]:10.3f} {statistics.median(ratios):8.3f}"
            f"   {interval[0]:.3f} to {interval[1]:.3f}  {mark}".rstrip()
        )
    return rows, slower


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description="Compare the processor time of two versions of navsense.")
    parser.add_argument("old", help="git commit")
    parser.add_argument("new", nargs="?", help="git commit (default: the working tree)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of each workload, an even number (default: 20)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop early, with 6 pairs at least")
    parser.add_argument("--work", nargs="+", metavar="NAME", choices=list(WORKLOADS), help="workloads (default: all)")
    options = parser.parse_args()
    if options.pairs < MIN_PAIRS or options.pairs % 2:
        parser.error(f"--pairs {options.pairs}; must be an even number from {MIN_PAIRS} on")
    return options


def main() -> int:
    """Print the table. Return the exit code."""
    options = parse_arguments()
    names = options.work or list(WORKLOADS)
    times: Times = {name: [] for name in names}
    repeats: dict[str, int] = {}
    end = time.monotonic() + 60.0 * options.minutes
    try:
        folders = [check_out("old", options.old), check_out("new", options.new)]
        for count in range(2, options.pairs + 1, 2):
            for name, pairs in measure_two_pairs(folders, names, repeats).items():
                times[name] += pairs
            print(f"{count} of {options.pairs} pairs", file=sys.stderr, flush=True)
            if count >= MIN_PAIRS and time.monotonic() > end:
                break
    except (ValueError, WorkloadError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{'workload':28s} {'old (ms)':>10s} {'new (ms)':>10s} {'new/old':>8s}   interval")
    rows, slower = table(times, 1e3)
    print("\n".join(rows))
    shares, _ = table(select_shares(times), 1.0)
    if shares:
        print(f"\n{'share':28s} {'old':>10s} {'new':>10s} {'new/old':>8s}   interval")
        print("\n".join(shares))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())

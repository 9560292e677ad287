"""The report of an hour: time, memory, size, and time until its page is loaded.

    python benchmarks/bench_report.py [RECORDING.npz]    of examples/auv_survey.sdf; by default a new recording

The recording of 26 minutes is repeated until it is an hour, as an archive and as messages. A new process writes each
report; its processor time counts, without the first of three runs, which compiles. A new headless Chromium, if there is
one, opens the page: the wall-clock time until it is loaded, and until its first picture, the smallest of three.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import navsense as ns
from navsense.core.readings import TRUTH_ARRAYS, Reading, TimeSlice, Truth
from navsense.recordings import RecordedRun, open_writer
from navsense.report import write
from navsense.report.report_data import read_report_data
from navsense.world import World

ROOT = Path(__file__).resolve().parents[1]
WORLD = ROOT / "examples" / "auv_survey.sdf"

HOUR, REPEATS = 3600.0, 3

GOAL = 2.0
"""Goal (s) to load the page of an hour."""


def shift_reading(reading: Reading, shift: float, last: float) -> Reading:
    """Return a reading moved by some seconds, up to the time `last`."""
    count = int(np.searchsorted(reading.time + shift, last))
    late = None if reading.arrival_after_latency is None else reading.arrival_after_latency + shift
    return replace(reading, time=reading.time + shift, arrival_after_latency=late).select_rows(0, count)


def shift_truth(truth: Truth, shift: float, last: float) -> Truth:
    """Return a truth moved by some seconds, up to the time `last`."""
    count = int(np.searchsorted(truth.time + shift, last))
    arrays = {key: vars(truth)[key] for key in TRUTH_ARRAYS}
    return Truth(truth.name, truth.time + shift, **arrays).select_rows(0, count)


def write_hour(path: Path, world: World, target: Path) -> None:
    """Write a recording repeatedly until it is an hour."""
    found = read_report_data(str(path))
    span = round(found.span[1])
    with open_writer(target, RecordedRun(world, 0, 7, HOUR, [0])) as writer:
        for number in range(int(HOUR // span) + 1):
            shift = number * float(span)
            readings = {name: shift_reading(reading, shift, HOUR) for name, reading in found.readings.items()}
            truth = {name: shift_truth(part, shift, HOUR) for name, part in found.truth.items()}
            writer.write(TimeSlice(shift, min(shift + span, HOUR), readings, truth))


def measure_report(hour: Path, page: Path) -> None:
    """Print the smallest time of several runs, and the largest memory."""
    spent = []
    for _ in range(REPEATS):
        start = time.process_time()
        write(hour, page, world=str(WORLD))
        spent.append(time.process_time() - start)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    every = ", ".join(f"{one:.2f}" for one in spent)
    print(f"{hour.name}: {hour.stat().st_size / 1e6:.0f} MB, {HOUR:g} s")
    print(f"  report: {min(spent[1:]):.2f} s of processor time (all: {every}), {most:.0f} MB of memory")
    print(f"  page: {page.stat().st_size / 1e6:.2f} MB", flush=True)


def measure_opening(page: Path) -> None:
    """Print the time until a browser has loaded and shows a page, the smallest of several."""
    sys.path.insert(0, str(ROOT / "tools"))
    chromium = importlib.import_module("chromium")
    program = chromium.find()
    if program is None:
        print("  opened: not measured, there is no Chromium", flush=True)
        return
    loaded, seen = [], []
    for _ in range(REPEATS):
        with chromium.Browser(program) as browser:
            start = time.perf_counter()
            shown = browser.open(page, width=1600, height=1500)
            loaded.append(time.perf_counter() - start)
            assert shown.picture()
            seen.append(time.perf_counter() - start)
            assert not shown.trouble
            figures = shown.value("document.querySelectorAll('figure').length")
    every = ", ".join(f"{one:.2f}" for one in seen)
    print(f"  opened: loaded in {min(loaded):.2f} s, seen in {min(seen):.2f} s (all: {every}), goal {GOAL:g} s", end="")
    print(f"; {figures} figures, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)


def main() -> None:
    """Measure each format."""
    world = ns.load(WORLD)
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "survey.npz"
        if not recording.exists():
            ns.record(world, recording, seed=7)
        for suffix in (".npz", ".mcap"):
            hour, page = Path(folder) / f"hour{suffix}", Path(folder) / "report.html"
            write_hour(recording, world, hour)
            process = multiprocessing.get_context("spawn").Process(target=measure_report, args=(hour, page))
            process.start()
            process.join()
            if process.exitcode:
                sys.exit(process.exitcode)
            measure_opening(page)
            hour.unlink()


if __name__ == "__main__":
    main()

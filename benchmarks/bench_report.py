"""How long the report of an hour takes, the memory for it, how large it is, and how soon its page is open.

    python benchmarks/bench_report.py [RECORDING.npz]    of examples/auv_survey.sdf; one is made where none is given

The recording, 26 minutes long, is written again and again behind itself until it is an hour: as an archive and as
messages. Each is told of by a process of its own, in processor time; the first run of three, which compiles, is not
counted. Its page is opened by a headless Chromium, where there is one, that has just been started: by the clock, from
the asking to all of it being loaded, and to the picture of what is seen first; the least of three.
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
from navsense.recordings import RecordingInfo, open_writer
from navsense.report import write
from navsense.report.report_data import read_report_data
from navsense.world import World

ROOT = Path(__file__).resolve().parents[1]
WORLD = ROOT / "examples" / "auv_survey.sdf"

HOUR, REPEATS = 3600.0, 3

GOAL = 2.0
"""s by which the page of an hour is to be open."""


def later(reading: Reading, shift: float, last: float) -> Reading:
    """Return readings moved by some seconds, up to the instant `last`."""
    count = int(np.searchsorted(reading.time + shift, last))
    late = None if reading.delayed_arrival is None else reading.delayed_arrival + shift
    return replace(reading, time=reading.time + shift, delayed_arrival=late).between(0, count)


def truth_later(truth: Truth, shift: float, last: float) -> Truth:
    """Return a truth moved by some seconds, up to the instant `last`."""
    count = int(np.searchsorted(truth.time + shift, last))
    arrays = {key: vars(truth)[key] for key in TRUTH_ARRAYS}
    return Truth(truth.name, truth.time + shift, **arrays).between(0, count)


def hour_of(path: Path, world: World, target: Path) -> None:
    """Write a recording again and again behind itself until it is an hour."""
    found = read_report_data(str(path))
    span = round(found.span[1])
    with open_writer(target, RecordingInfo(world, 0, 7, HOUR, [0])) as writer:
        for number in range(int(HOUR // span) + 1):
            shift = number * float(span)
            readings = {name: later(reading, shift, HOUR) for name, reading in found.readings.items()}
            truth = {name: truth_later(part, shift, HOUR) for name, part in found.truth.items()}
            writer.write(TimeSlice(shift, min(shift + span, HOUR), readings, truth))


def told(hour: Path, page: Path) -> None:
    """Print the least of some runs, and the most memory of all."""
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


def opened(page: Path) -> None:
    """Print how soon a browser has loaded a page and shows it, the least of some turns each."""
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
    """Tell of each format."""
    world = ns.load(WORLD)
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "survey.npz"
        if not recording.exists():
            ns.record(world, recording, seed=7)
        for suffix in (".npz", ".mcap"):
            hour, page = Path(folder) / f"hour{suffix}", Path(folder) / "report.html"
            hour_of(recording, world, hour)
            process = multiprocessing.get_context("spawn").Process(target=told, args=(hour, page))
            process.start()
            process.join()
            if process.exitcode:
                sys.exit(process.exitcode)
            opened(page)
            hour.unlink()


if __name__ == "__main__":
    main()

"""How long the report of an hour takes, in seconds of processor time, and how large it is.

    python benchmarks/bench_report.py [RECORDING.npz]    of examples/auv_survey.sdf; one is made where none is given

The recording, 26 minutes long, is written again and again behind itself until it is an hour.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import navsense as ns
from navsense.report import write
from navsense.report.recorded import recording_of
from navsense.series import TRUTH_ARRAYS, Reading, Slab, Truth
from navsense.sinks.base import Recording
from navsense.sinks.npz import NpzSink
from navsense.world import World

WORLD = Path(__file__).resolve().parents[1] / "examples" / "auv_survey.sdf"

HOUR, REPEATS = 3600.0, 3


def later(reading: Reading, shift: float, last: float) -> Reading:
    """Return readings moved by some seconds, up to the instant `last`."""
    count = int(np.searchsorted(reading.time + shift, last))
    late = None if reading.arrivals is None else reading.arrivals + shift
    return replace(reading, time=reading.time + shift, arrivals=late).between(0, count)


def truth_later(truth: Truth, shift: float, last: float) -> Truth:
    """Return a truth moved by some seconds, up to the instant `last`."""
    count = int(np.searchsorted(truth.time + shift, last))
    arrays = {key: vars(truth)[key] for key in TRUTH_ARRAYS}
    return Truth(truth.name, truth.time + shift, **arrays).between(0, count)


def hour_of(path: Path, world: World, target: Path) -> None:
    """Write a recording again and again behind itself until it is an hour."""
    found = recording_of(str(path))
    span = round(found.span[1])
    with NpzSink(target, Recording(world, 0, 7, HOUR, [0])) as sink:
        for number in range(int(HOUR // span) + 1):
            shift = number * float(span)
            readings = {name: later(reading, shift, HOUR) for name, reading in found.readings.items()}
            truth = {name: truth_later(part, shift, HOUR) for name, part in found.truth.items()}
            sink.write(Slab(shift, min(shift + span, HOUR), readings, truth))


def main() -> None:
    """Print the least of some runs."""
    world = ns.load(WORLD)
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "survey.npz"
        if not recording.exists():
            ns.record(world, recording, seed=7)
        hour, page = Path(folder) / "hour.npz", Path(folder) / "report.html"
        hour_of(recording, world, hour)
        print(f"recording: {hour.stat().st_size / 1e6:.0f} MB, {HOUR:g} s")
        spent = []
        for _ in range(REPEATS):
            start = time.process_time()
            write(hour, page, world=str(WORLD))
            spent.append(time.process_time() - start)
        print(f"report: {min(spent):.2f} s of processor time (all: {', '.join(f'{one:.2f}' for one in spent)})")
        print(f"page: {page.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()

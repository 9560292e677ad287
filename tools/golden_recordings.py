"""Write the golden recordings: one short run in every format, as this version of navsense writes it.

    python tools/golden_recordings.py FOLDER      FOLDER is new: tests/golden/recordings/NAME

Each folder under tests/golden/recordings holds the recordings of one format version. A released folder is never
written again: a later version of navsense has to read it. Run this for a new format version only. Beside the
recordings the folder gets `declared.json`, the world as it was declared, and `digests.json`, a digest of every array
that this version reads from each recording.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import navsense as ns
from navsense.core.readings import ARRAY_GROUPS
from navsense.core.typing import AnyArray
from navsense.recordings.dataset import Dataset
from navsense.recordings.world_json import world_to_json

WORLD = Path(__file__).resolve().parent.parent / "tests" / "golden" / "recordings" / "world.sdf"
SEED, DURATION, EPOCH, TRUTH_RATE = 20261122, 1.0, 1_800_000_000, 20.0

NAMES = ("run.mcap", "run.gz.mcap", "run.bag", "bag.db3", "run.npz", "run.parquet", "tables.csv", "imu.euroc")
"""The recordings. `.db3`, `.csv` and `.euroc` are the folders without the suffix."""

UNREAD = ("run.gz.mcap",)
"""Recordings whose readings navsense does not read back: messages of Gazebo."""


def list_arrays(dataset: Dataset) -> Iterator[tuple[str, AnyArray]]:
    """Yield every array of a recording with its name."""
    for name, reading in dataset.items():
        yield f"{name}/time", reading.time
        yield f"{name}/clock_error", reading.clock_error
        yield f"{name}/arrival", reading.arrival
        yield f"{name}/valid", reading.valid
        yield f"{name}/emitted", reading.emitted
        for group in ARRAY_GROUPS:
            arrays = getattr(reading, group)
            yield from ((f"{name}/{group}/{key}", array) for key, array in arrays.items())
    for link, truth in dataset.truth.items():
        for key in ("time", "position", "orientation", "velocity", "angular_velocity", "acceleration"):
            yield f"truth/{link}/{key}", getattr(truth, key)
    if dataset.current is not None:
        yield "current/time", dataset.current.time
        yield "current/velocity", dataset.current.velocity


def compute_digests(path: Path) -> dict[str, str]:
    """Return a digest (BLAKE2b, 8 bytes) of the element type, the shape and the bytes of every array of a recording."""
    out = {}
    for name, array in list_arrays(ns.open(path)):
        contiguous = np.ascontiguousarray(array)
        contiguous = contiguous + 0.0 if contiguous.dtype.kind == "f" else contiguous  # one zero, and one NaN below
        if contiguous.dtype.kind == "f":
            contiguous[np.isnan(contiguous)] = np.nan
        head = f"{contiguous.dtype.str} {contiguous.shape} ".encode()
        out[name] = hashlib.blake2b(head + contiguous.tobytes(), digest_size=8).hexdigest()
    return out


def main(folder: Path) -> None:
    """Write the recordings of this version into a new folder."""
    folder.mkdir()
    world = ns.load(str(WORLD))
    paths = [folder / name for name in NAMES]
    ns.record(world, paths, DURATION, seed=SEED, epoch=EPOCH, truth_rate=TRUTH_RATE)
    declared = world_to_json(world)
    (folder / "declared.json").write_text(json.dumps(declared, indent=1) + "\n")
    digests = {path.name: compute_digests(path) for path in paths if path.name not in UNREAD}
    (folder / "digests.json").write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

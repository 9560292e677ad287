"""Write the golden readings of every sensor. The tests compare later versions with these numbers of one seed.

    python tools/golden.py            writes tests/golden/TYPE.json for every sensor
    python tools/golden.py dvl adcp   writes those of these types

Run it after an intended change of readings, and name the change in the changelog. Each file holds samples of a run of
the sensor's `example_spec()`, for both fidelities: readings, truths, errors and the clock's error. In the example spec
all fields act. Numbers are in the hexadecimal form of `float.hex`, exact to the last bit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import navsense as ns
from navsense.core.typing import AnyArray
from navsense.sensors import SENSORS, Adcp, CoordinateSystem
from navsense.sensors.base import Sensor
from navsense.testing import RATE, example_world

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
SEED, RUN = 20260101, 3
COUNT = 1000
MAX_SAMPLES = 7
"""Largest number of samples of an array, evenly spaced over the samples that have a finite number."""

MAX_COLUMNS = 6
"""Largest number of columns of a sample, evenly spaced over the columns that have a finite number."""

FIDELITIES = ("physical", "classic")

Rows = dict[str, AnyArray]
"""Samples of one array: the count of `finite` numbers, the `rows` and `columns` of the samples, and their `values`."""


def select_evenly(places: AnyArray, count: int) -> AnyArray:
    """Return at most `count` of the indices `places`, including the first and the last."""
    return np.unique(places[np.linspace(0, places.size - 1, min(count, places.size)).round().astype(np.int64)])


def select_samples(array: AnyArray) -> Rows:
    """Return the samples of an array (n, ...)."""
    table = np.asarray(array, dtype=np.float64).reshape(array.shape[0], -1)
    finite = np.isfinite(table)
    if not finite.any():
        return {"finite": np.zeros(1), "rows": np.zeros(0), "columns": np.zeros(0), "values": np.zeros((0, 0))}
    rows = select_evenly(np.nonzero(finite.any(axis=1))[0], MAX_SAMPLES)
    columns = select_evenly(np.nonzero(finite.any(axis=0))[0], MAX_COLUMNS)
    return {
        "finite": np.array([finite.sum()]),
        "rows": rows,
        "columns": columns,
        "values": table[rows][:, columns],
    }


def golden_spec(kind: type[Sensor], fidelity: str) -> Sensor:
    """Return the example spec. A classic ADCP has no velocity in earth axes, so it uses instrument axes."""
    spec = kind.example_spec()
    return (
        replace(spec, coordinates=CoordinateSystem.INSTRUMENT)
        if isinstance(spec, Adcp) and fidelity == "classic"
        else spec
    )


def simulate_example(kind: type[Sensor], fidelity: str) -> dict[str, Rows]:
    """Return the samples of every array in a run of the example spec, by group and name."""
    world = example_world(("sensor", golden_spec(kind, fidelity)))
    run = ns.simulate(world, COUNT / RATE, seed=SEED, runs=[RUN], fidelity=fidelity)
    reading = run["robot::arm::sensor"]
    samples = {"truth.time": select_samples(reading.time)}
    turn_on = {f"{name}_turn_on": array for name, array in reading.turn_on_bias.items()}
    groups: tuple[tuple[str, Mapping[str, AnyArray]], ...] = (
        ("reading", {**reading.arrays, "emitted": reading.emitted, "valid": reading.valid}),
        ("error", {**reading.bias, **turn_on, "clock": reading.clock_error}),
    )
    for group, arrays in groups:
        samples |= {f"{group}.{name}": select_samples(array[0]) for name, array in sorted(arrays.items())}
    return samples | {f"truth.{name}": select_samples(array) for name, array in sorted(reading.ideal.items())}


def read_golden(kind: type[Sensor]) -> dict[str, dict[str, Rows]]:
    """Return the golden readings of a sensor: fidelity -> name -> samples."""
    text: dict[str, dict[str, dict[str, Any]]] = json.loads((GOLDEN / f"{kind.type}.json").read_text(encoding="utf-8"))
    return {
        fidelity: {
            name: {
                **{part: np.array(rows[part]) for part in ("finite", "rows", "columns")},
                "values": np.array([[float.fromhex(x) for x in row] for row in rows["values"]]),
            }
            for name, rows in arrays.items()
        }
        for fidelity, arrays in text.items()
    }


def write_golden(kind: type[Sensor]) -> Path:
    """Write the golden readings of a sensor, one line per array. Return the file."""
    lines = []
    for fidelity in FIDELITIES:
        arrays = []
        for name, rows in simulate_example(kind, fidelity).items():
            plain: dict[str, Any] = {
                part: rows[part].astype(np.int64).tolist() for part in ("finite", "rows", "columns")
            }
            plain["values"] = [[float(x).hex() for x in row] for row in rows["values"]]
            arrays.append(f"  {json.dumps(name)}: {json.dumps(plain)}")
        lines.append(f" {json.dumps(fidelity)}: {{\n" + ",\n".join(arrays) + "\n }")
    GOLDEN.mkdir(exist_ok=True)
    path = GOLDEN / f"{kind.type}.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return path


def main() -> None:
    """Write the files of the types that are named, or of all."""
    for kind in SENSORS:
        if len(sys.argv) == 1 or kind.type in sys.argv[1:]:
            print(write_golden(kind))


if __name__ == "__main__":
    main()

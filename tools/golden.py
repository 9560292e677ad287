"""Write the golden readings of every sensor: numbers of one seed, to which later versions are held.

    python tools/golden.py            writes tests/golden/TYPE.json for every sensor
    python tools/golden.py dvl adcp   writes those of these types

Run it after a change that is meant to change readings, and name the change in the changelog. Each file holds, for both
fidelities, some samples of all that a run of the sensor's `witness()` gives: readings, truths, errors and the clock's
error. In the witness all fields act. Numbers are in the hexadecimal form of `float.hex`, exact to the last bit.
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
from navsense.sensors import SENSORS, Adcp, Coordinates
from navsense.sensors.base import Sensor
from navsense.testing import RATE, witness_world
from navsense.typing import AnyArray

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
SEED, RUN = 20260101, 3
COUNT = 1000
KEPT = 7
"""Samples of an array that are kept: spread evenly over those that have a finite number."""

WIDTH = 6
"""Numbers of a sample that are kept, spread evenly over those that are ever finite."""

FIDELITIES = ("physical", "classic")

Rows = dict[str, AnyArray]
"""Of one array: `finite`, how many of its numbers are; `rows` and `columns` that are kept; their `values`."""


def spread(places: AnyArray, count: int) -> AnyArray:
    """Return at most `count` of some places, the first and the last among them."""
    return np.unique(places[np.linspace(0, places.size - 1, min(count, places.size)).round().astype(np.int64)])


def kept(array: AnyArray) -> Rows:
    """Return what is kept of an array (n, ...)."""
    table = np.asarray(array, dtype=np.float64).reshape(array.shape[0], -1)
    finite = np.isfinite(table)
    if not finite.any():
        return {"finite": np.zeros(1), "rows": np.zeros(0), "columns": np.zeros(0), "values": np.zeros((0, 0))}
    rows, columns = spread(np.nonzero(finite.any(axis=1))[0], KEPT), spread(np.nonzero(finite.any(axis=0))[0], WIDTH)
    return {
        "finite": np.array([finite.sum()]),
        "rows": rows,
        "columns": columns,
        "values": table[rows][:, columns],
    }


def spec_of(kind: type[Sensor], fidelity: str) -> Sensor:
    """Return the witness; a classic current profile in axes of the earth has no velocity, so in the instrument's."""
    spec = kind.witness()
    return (
        replace(spec, coordinates=Coordinates.INSTRUMENT) if isinstance(spec, Adcp) and fidelity == "classic" else spec
    )


def measured(kind: type[Sensor], fidelity: str) -> dict[str, Rows]:
    """Return what is kept of every array that a run of the sensor's witness gives, by group and name."""
    world = witness_world(("sensor", spec_of(kind, fidelity)))
    run = ns.simulate(world, COUNT / RATE, seed=SEED, runs=[RUN], fidelity=fidelity)
    reading = run["robot::arm::sensor"]
    found = {"truth.time": kept(reading.time)}
    groups: tuple[tuple[str, Mapping[str, AnyArray]], ...] = (
        ("reading", {**reading.arrays, "emitted": reading.emitted, "valid": reading.valid}),
        ("error", {**reading.errors, "clock": reading.clock_error}),
    )
    for group, arrays in groups:
        found |= {f"{group}.{name}": kept(array[0]) for name, array in sorted(arrays.items())}
    return found | {f"truth.{name}": kept(array) for name, array in sorted(reading.truth.items())}


def read(kind: type[Sensor]) -> dict[str, dict[str, Rows]]:
    """Return the golden readings of a sensor: fidelity -> name -> what is kept."""
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


def write(kind: type[Sensor]) -> Path:
    """Write the golden readings of a sensor, a line for an array; return their file."""
    lines = []
    for fidelity in FIDELITIES:
        arrays = []
        for name, rows in measured(kind, fidelity).items():
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
            print(write(kind))


if __name__ == "__main__":
    main()

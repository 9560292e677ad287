"""Parquet recordings: rows per second compared to pyarrow, which writes or reads the same table.

    make bench            or            python benchmarks/bench_parquet.py

The run is that of the quadrotor, in memory. pyarrow writes the content of the recording, once with its storage options
and once with zstd for all columns. It reads it into one table, most of which is null. The measurements alternate.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import navsense as ns
from navsense.recordings.parquet import TEXT_COLUMNS

QUADROTOR = Path(__file__).resolve().parent.parent / "examples" / "quadrotor.sdf"
SECONDS = 120.0
ROUNDS = 7


def read_storage_options(path: Path) -> dict[str, Any]:
    """Return the pyarrow options of the recording."""
    import pyarrow.parquet as pq

    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    special = ("BYTE_STREAM_SPLIT", "DELTA_BINARY_PACKED")
    encoding = {column.path_in_schema: name for column in columns for name in special if name in column.encodings}
    return {"use_dictionary": list(TEXT_COLUMNS), "column_encoding": encoding, "write_page_checksum": True}


def measure_in_turn(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the best seconds of each workload in several alternating rounds."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def main() -> None:
    """Print the table. A ratio is one of times, below 1 if navsense is faster."""
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        ours, alike, own = (Path(folder) / f"{name}.parquet" for name in ("ours", "alike", "own"))
        run = ns.simulate(ns.load(QUADROTOR), SECONDS, seed=1)
        run.save(ours)
        table, options = pq.read_table(ours), read_storage_options(ours)
        size = pq.ParquetFile(ours).metadata.row_group(0).num_rows
        took = measure_in_turn(
            {
                "navsense, save": lambda: run.save(ours),
                "pyarrow, stored alike": lambda: pq.write_table(
                    table, alike, row_group_size=size, compression="zstd", **options
                ),
                "pyarrow, its own way": lambda: pq.write_table(table, own, row_group_size=size, compression="zstd"),
                "navsense, load": lambda: ns.open(ours),
                "pyarrow, read_table": lambda: pq.read_table(ours),
            }
        )
        sizes = {name: path.stat().st_size for name, path in zip(took, (ours, alike, own), strict=False)}
    print(f"{table.num_rows} rows of {table.num_columns} columns")
    for name, seconds in took.items():
        navsense_time = took["navsense, save" if name in sizes else "navsense, load"]
        length = f"{sizes[name] / table.num_rows:6.0f} bytes a row" if name in sizes else ""
        print(f"{name:24s} {table.num_rows / seconds / 1e3:8.0f} krows/s {navsense_time / seconds:8.2f} {length}")


if __name__ == "__main__":
    main()

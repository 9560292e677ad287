"""Decompression bombs: a small file that expands to a large one fails early."""

from __future__ import annotations

import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import zstandard
from rosbags.rosbag1 import Writer as Writer1

from navsense import sinks
from navsense.environment.current import Replay as CurrentReplay
from navsense.errors import NavsenseError
from navsense.inputs import EXPANSION, FREE, expansion_problem
from navsense.sinks import records
from navsense.sinks.info import info
from navsense.sinks.leftovers import recover
from navsense.sinks.load import load
from navsense.sinks.poses import motion_in

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

MOST = 50_000_000
"""Memory (bytes) until the error, a twentieth of the expanded size of the files."""


def refused(work: Callable[[], Any], match: str, most: int = MOST) -> None:
    """Check that a call fails with little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(NavsenseError, match=match):
            work()
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def archive(made: ModuleType, path: Path, rows: int) -> Path:
    """Write a recording, and one with a time of many zeros in it."""
    with sinks.open(path, sinks.Recording(made.world(), duration=1.0)) as sink:
        sink.write(made.slab(0))
    with np.load(path) as arrays:
        kept = dict(arrays)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for key, array in kept.items():
            with target.open(f"{key}.npy", "w", force_zip64=True) as file:
                if key != f"{made.IMU}/time":
                    np.lib.format.write_array(file, array)
                    continue
                head = {"descr": "<f8", "fortran_order": False, "shape": (rows,)}
                np.lib.format.write_array_header_1_0(file, head)
                for _ in range(rows // 10**6):
                    file.write(bytes(8 * 10**6))
    return path


@pytest.mark.requirement("REC-1")
def test_archives(made: ModuleType, tmp_path: Path) -> None:
    """At 50 million rows it is 400 MB, from 0.4 MB."""
    path = archive(made, tmp_path / "run.npz", 50 * 10**6)
    assert path.stat().st_size < 2_000_000
    for look in (load, info, motion_in):
        refused(partial(look, path), r"run\.npz.*unpacks from \d+ bytes to 400\d+; must be at most 100 times")
    np.savez_compressed(tmp_path / "current.npz", time=np.zeros(5 * 10**7), velocity=np.zeros(1))
    refused(lambda: CurrentReplay.from_file(str(tmp_path / "current.npz")), "unpacks from")


@pytest.mark.requirement("REC-1")
def test_tables(made: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with sinks.open(path, sinks.Recording(made.world(), duration=1.0)) as sink:
        sink.write(made.slab(0))
    table = pq.read_table(path)
    row = table.slice(0, 1)
    many = pa.table(
        [
            pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**6, np.int32)), ["reading"])] * 2)
            if pa.types.is_dictionary(field.type)
            else pa.chunked_array([pa.array(np.full(10**6, row.column(field.name)[0].as_py() or 0), field.type)] * 2)
            for field in table.schema
        ],
        schema=table.schema,
    )
    pq.write_table(many, path, compression="zstd")
    assert path.stat().st_size < 4_000_000
    for look in (load, info):
        refused(partial(look, path), r"run\.parquet.*unpacks from")


def mcap(path: Path, data: bytes, size: int) -> Path:
    """Write an MCAP file of one chunk."""
    body = records.CHUNK_HEAD.pack(0, 0, size, 0) + records.text("zstd") + struct.pack("<Q", len(data)) + data
    head = records.record(records.HEADER, records.text("ros2"), records.text(""))
    end = records.record(records.DATA_END, bytes(4)) + records.record(records.FOOTER, bytes(20))
    path.write_bytes(records.MAGIC + head + records.record(records.CHUNK, body) + end + records.MAGIC)
    return path


@pytest.mark.requirement("REC-1")
def test_chunks_of_mcap(tmp_path: Path) -> None:
    """A large chunk of zeros fails because of its size; a small one fails at its first record."""
    size = 10**9
    stream = zstandard.ZstdCompressor().compressobj(size=size)
    data = b"".join([stream.compress(bytes(10**7)) for _ in range(100)]) + stream.flush()
    path = mcap(tmp_path / "run.mcap", data, size)
    for look in (load, info):
        refused(partial(look, path), r"run\.mcap.*a chunk unpacks from \d+ bytes to 1000000000")
    assert recover(path).damaged_chunks == 1
    small = records.FREE_CHUNK
    path = mcap(tmp_path / "zeros.mcap", zstandard.ZstdCompressor().compress(bytes(small)), small)
    for look in (load, info):
        with pytest.raises(NavsenseError, match=r"opcode 0|ends inside a record"):
            look(path)
    with pytest.raises(records.DamagedError, match="opcode 0"):
        next(records.inner(bytes(small)))
    assert recover(path).damaged_chunks == 1


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("form", ["BZ2", "LZ4"])
def test_chunks_of_bags(tmp_path: Path, form: str) -> None:
    path = tmp_path / "run.bag"
    writer = Writer1(path)
    writer.set_compression(Writer1.CompressionFormat[form])
    with writer:
        line = writer.add_connection(
            "/x", "std_msgs/msg/String", msgdef="string data", md5sum="992ce8a1687cec8c8bd883ec73ca41d1"
        )
        writer.write(line, 1, struct.pack("<I", 4 * 10**8) + bytes(4 * 10**8))
    most = max(records.FREE_CHUNK, EXPANSION * path.stat().st_size)
    refused(lambda: load(path), r"run\.bag.*a chunk of \d+ bytes unpacks to more than", 2 * most + MOST)
    assert 2 * most + MOST < 4 * 10**8


@pytest.mark.requirement("REC-1")
def test_recordings_of_sensors_pass_the_expansion_limit() -> None:
    assert not expansion_problem(FREE, 1)
    assert not expansion_problem(EXPANSION * 10**8, 10**8)
    assert "unpacks from 10000000 bytes" in expansion_problem(EXPANSION * 10**7 + 1, 10**7)

"""Decompression bombs: a small file that expands to a large one fails early."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import lz4.frame
import numpy as np
import pytest
import zstandard
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag1 import reader as ros1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, storage_mcap
from rosbags.rosbag2 import Writer as Writer2
from rosbags.rosbag2 import reader as reader2
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense import recordings
from navsense.calibration.load import read as read_samples
from navsense.core.errors import NavsenseError
from navsense.core.inputs import MAX_EXPANSION, UNCHECKED_CHUNK_SIZE, UNCHECKED_SIZE, expansion_problem
from navsense.recordings import csv_tables, euroc
from navsense.recordings.convert import convert
from navsense.recordings.currents import read_current
from navsense.recordings.leftovers import recover
from navsense.recordings.mcap import records
from navsense.recordings.mcap.reader import scan_records
from navsense.recordings.recorded_motion import load_motion
from navsense.recordings.rosbag.limits import limit_rosbags
from navsense.recordings.summary import read_summary

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

MOST = 50_000_000
"""Memory (bytes) until the error, a twentieth of the expanded size of the files."""


def assert_rejected(work: Callable[[], Any], match: str, most: int = MOST) -> None:
    """Assert that a call fails with little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(NavsenseError, match=match):
            work()
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def write_archive(builders: ModuleType, path: Path, rows: int) -> Path:
    """Write a recording, and one whose time array is many zeros."""
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=1.0)) as writer:
        writer.write(builders.make_time_slice(0))
    with np.load(path) as arrays:
        stored = dict(arrays)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for key, array in stored.items():
            with target.open(f"{key}.npy", "w", force_zip64=True) as file:
                if key != f"{builders.IMU}/time":
                    np.lib.format.write_array(file, array)
                    continue
                head = {"descr": "<f8", "fortran_order": False, "shape": (rows,)}
                np.lib.format.write_array_header_1_0(file, head)
                for _ in range(rows // 10**6):
                    file.write(bytes(8 * 10**6))
    return path


@pytest.mark.requirement("REC-1")
def test_archive_expansion_is_limited(builders: ModuleType, tmp_path: Path) -> None:
    """50 million rows expand from 0.4 MB to 400 MB."""
    path = write_archive(builders, tmp_path / "run.npz", 50 * 10**6)
    assert path.stat().st_size < 2_000_000
    for look in (ns.open, read_summary, load_motion):
        assert_rejected(partial(look, path), r"run\.npz.*unpacks from \d+ bytes to 400\d+; must be at most 100 times")
    np.savez_compressed(tmp_path / "current.npz", time=np.zeros(5 * 10**7), velocity=np.zeros(1))
    assert_rejected(lambda: read_current(str(tmp_path / "current.npz")), "unpacks from")


@pytest.mark.requirement("REC-1")
def test_table_expansion_is_limited(builders: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with recordings.open_writer(path, recordings.RecordedRun(builders.make_world(), duration=1.0)) as writer:
        writer.write(builders.make_time_slice(0))
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
    for look in (ns.open, read_summary):
        assert_rejected(partial(look, path), r"run\.parquet.*unpacks from")


def write_mcap(path: Path, data: bytes, size: int, compression: str = "zstd") -> Path:
    """Write an MCAP file of one chunk."""
    body = (
        records.CHUNK_HEADER.pack(0, 0, size, 0)
        + records.encode_string(compression)
        + struct.pack("<Q", len(data))
        + data
    )
    head = records.encode_record(records.HEADER, records.encode_string("ros2"), records.encode_string(""))
    end = records.encode_record(records.DATA_END, bytes(4)) + records.encode_record(records.FOOTER, bytes(20))
    path.write_bytes(records.MAGIC + head + records.encode_record(records.CHUNK, body) + end + records.MAGIC)
    return path


@pytest.mark.requirement("REC-1")
def test_mcap_chunk_expansion_is_limited(tmp_path: Path) -> None:
    """A large chunk of zeros fails because of its size; a small one fails at its first record."""
    size = 10**9
    stream = zstandard.ZstdCompressor().compressobj(size=size)
    data = b"".join([stream.compress(bytes(10**7)) for _ in range(100)]) + stream.flush()
    path = write_mcap(tmp_path / "run.mcap", data, size)
    for look in (ns.open, read_summary):
        assert_rejected(partial(look, path), r"run\.mcap.*a chunk unpacks from \d+ bytes to 1000000000")
    assert recover(path).damaged_chunks == 1
    small = UNCHECKED_CHUNK_SIZE
    path = write_mcap(tmp_path / "zeros.mcap", zstandard.ZstdCompressor().compress(bytes(small)), small)
    for look in (ns.open, read_summary):
        with pytest.raises(NavsenseError, match=r"opcode 0|ends inside a record"):
            look(path)
    assert not scan_records(bytes(small)).is_complete
    assert recover(path).damaged_chunks == 1


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("compression", ["zstd", "lz4", ""])
def test_recovery_of_zero_chunks_is_limited(tmp_path: Path, compression: str) -> None:
    """The file has a valid start and a chunk of 200 MB of zeros.

    Zeros are records of 9 bytes with opcode 0 and length 0: 22 million of them.
    """
    zeros = bytes(2 * 10**8)
    pack = {"zstd": zstandard.ZstdCompressor().compress, "lz4": lz4.frame.compress, "": bytes}
    path = write_mcap(tmp_path / "run.mcap", pack[compression](zeros), len(zeros), compression)
    os.truncate(path, path.stat().st_size - 50)
    before = time.process_time()
    assert recover(path).damaged_chunks == 1
    assert time.process_time() - before < 5.0


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("form", ["BZ2", "LZ4"])
def test_bag_chunk_expansion_is_limited(tmp_path: Path, form: str) -> None:
    path = tmp_path / "run.bag"
    writer = Writer1(path)
    writer.set_compression(Writer1.CompressionFormat[form])
    with writer:
        line = writer.add_connection(
            "/x", "std_msgs/msg/String", msgdef="string data", md5sum="992ce8a1687cec8c8bd883ec73ca41d1"
        )
        writer.write(line, 1, struct.pack("<I", 4 * 10**8) + bytes(4 * 10**8))
    most = max(UNCHECKED_CHUNK_SIZE, MAX_EXPANSION * path.stat().st_size)
    assert_rejected(lambda: ns.open(path), r"run\.bag.*a chunk of \d+ bytes unpacks to more than", 2 * most + MOST)
    assert 2 * most + MOST < 4 * 10**8


def write_compressed_bag(folder: Path, mode: str, storage: str = "SQLITE3", count: int = 2 * 10**8) -> Path:
    """Write a ROS 2 bag with one compressed message of `count` zeros."""
    path = folder / "run"
    writer = Writer2(path, version=8, storage_plugin=StoragePlugin[storage])
    writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        line = writer.add_connection("/x", VECTOR, typestore=get_typestore(Stores.LATEST))
        writer.write(line, 1, b"\0\1\0\0" + bytes(count))
    return path


VECTOR = "geometry_msgs/msg/Vector3Stamped"
DOORS = (ns.open, read_samples, read_current, lambda path: convert(path, path.with_suffix(".npz")))


@pytest.mark.requirement("REC-1")
def test_ros2_compressed_message_expansion_is_limited(tmp_path: Path) -> None:
    path = write_compressed_bag(tmp_path, "MESSAGE")
    assert sum(file.stat().st_size for file in path.iterdir()) < 200_000
    for door in DOORS:
        assert_rejected(
            partial(door, path), r"run.*a chunk of \d+ bytes unpacks to more than", 2 * UNCHECKED_CHUNK_SIZE + MOST
        )


@pytest.mark.requirement("REC-1")
def test_ros2_compressed_file_expansion_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """rosbags unpacks the file to a temporary folder when it opens the bag."""
    path = write_compressed_bag(tmp_path, "FILE", count=4 * 10**8)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    written: list[int] = []
    copied = shutil.copyfileobj

    def count_bytes(source: Any, target: Any) -> None:
        try:
            copied(source, target)
        finally:
            written.append(target.tell())

    monkeypatch.setattr(shutil, "copyfileobj", count_bytes)
    for door in (*DOORS, read_summary):
        assert_rejected(partial(door, path), r"run.*a file unpacks from \d+ bytes to \d+; must be at most 100 times")
    assert len(written) == len(DOORS) + 1
    assert max(written) <= UNCHECKED_SIZE
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.requirement("REC-1")
def test_chunk_expansion_in_a_bag_of_mcap_files_is_limited(tmp_path: Path) -> None:
    path = write_compressed_bag(tmp_path, "STORAGE", "MCAP")
    for door in (read_samples, read_current):
        assert_rejected(partial(door, path), r"run.*a chunk unpacks from \d+ bytes to \d+; must be at most 100 times")


@pytest.mark.requirement("REC-1")
def test_rosbags_is_unchanged_after_reading() -> None:
    ros2: Any = reader2
    before = dict(ros1.decompressors), dict(storage_mcap.DECOMPRESSORS), ros2.zstd
    with limit_rosbags(), limit_rosbags():
        assert ros2.zstd is not before[2]
        found = ros2.zstd.decompress(before[2].compress(b"one") + before[2].compress(b"two"))
    assert found == b"onetwo"
    assert (dict(ros1.decompressors), dict(storage_mcap.DECOMPRESSORS), ros2.zstd) == before


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize(
    ("mark", "read"),
    [("", lambda file: csv_tables.read_table(file, "abcde")), ("#", lambda file: euroc._read_table(file, 5)[1])],
)
def test_text_table_memory_is_limited(tmp_path: Path, mark: str, read: Callable[[Path], Any]) -> None:
    """A table takes 8 bytes per number, and twice this while NumPy enlarges it."""
    count, columns = 500_000, 5
    file = tmp_path / "t.csv"
    file.write_text(mark + "a,b,c,d,e\n" + "0,0,0,0,0\n" * count, encoding="utf-8")
    tracemalloc.start()
    found = read(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape[0] == count
    assert peak < 2.25 * 8 * columns * count + 2**22


@pytest.mark.requirement("REC-1")
def test_recordings_of_sensors_pass_the_expansion_limit() -> None:
    assert not expansion_problem(UNCHECKED_SIZE, 1)
    assert not expansion_problem(MAX_EXPANSION * 10**8, 10**8)
    assert "unpacks from 10000000 bytes" in expansion_problem(MAX_EXPANSION * 10**7 + 1, 10**7)

"""Rows packed as LZ4 are unpacked by the LZ4 library, which checks every checksum."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import lz4.frame
import numpy as np
import pytest

from navsense.messages.cdr import FieldOffset, make_row_dtype
from navsense.recordings.mcap.lz4_rows import (
    FRAME_END,
    FRAME_HEADER,
    MAX_BLOCK_SIZE,
    AccessTracker,
    build_compressor,
    compute_max_compressed_size,
    write_uncompressed,
)
from navsense.recordings.mcap.xxh32 import xxh32

RNG = np.random.default_rng(5)


def make_frame(width: int, places: Mapping[str, FieldOffset], counts: list[int]) -> tuple[bytes, bytes]:
    """Return a frame of blocks of random rows, and its expected content."""
    template = RNG.integers(0, 256, width, dtype=np.uint8).tobytes()
    compressor = build_compressor(template, places, set(places))
    out = np.full(
        len(FRAME_HEADER) + sum(compute_max_compressed_size(width, count) for count in counts), 0xA5, dtype=np.uint8
    )
    at, complete = len(FRAME_HEADER), b""
    out[:at] = np.frombuffer(FRAME_HEADER, dtype=np.uint8)
    for count in counts:
        values = {
            name: RNG.integers(0, 256, (count, max(place.count, 1) * np.dtype(place.dtype).itemsize), dtype=np.uint8)
            for name, place in places.items()
        }

        def fill(rows: Any, values: Mapping[str, Any] = values) -> None:
            for name, place in places.items():
                arguments = values[name].view(place.dtype)
                rows[name] = arguments if place.count else arguments[:, 0]

        at = compressor.compress_into(out, at, count, fill)
        rows = np.tile(np.frombuffer(template, dtype=np.uint8), (count, 1))
        for name, place in places.items():
            rows[:, place.offset : place.offset + values[name].shape[1]] = values[name]
        complete += rows.tobytes()
    assert at <= out.size
    return out[:at].tobytes() + FRAME_END, complete


def list_shapes() -> Iterator[tuple[int, dict[str, FieldOffset]]]:
    """Yield widths and positions: those of messages, the limits of LZ4's lengths, and random ones."""
    stamp = {
        "record": FieldOffset("u1", 20, 11),
        "sec": FieldOffset("<i4", 0, 35),
        "nanosec": FieldOffset("<u4", 0, 39),
    }
    yield 47, stamp
    yield 355, {**stamp, "q": FieldOffset("<f8", 4, 60), "w": FieldOffset("<f8", 3, 164)}
    for length in (7, 8, 9, 14, 15, 16, 18, 19, 20, 269, 270, 271, 273, 274, 275, 600):
        yield (
            2000,
            {
                "a": FieldOffset("u1", length, 11),
                "b": FieldOffset("u1", 5, 11 + 2 * length),
                "c": FieldOffset("<f8", 0, 1900),
            },
        )
    yield 60, {"a": FieldOffset("u1", 49, 11)}
    yield 65_535, {"a": FieldOffset("<f8", 0, 11), "b": FieldOffset("<f8", 8000, 30)}
    yield 65_536, {"a": FieldOffset("<f8", 0, 11)}
    for _ in range(40):
        edges = np.unique(RNG.integers(11, 900, 8)).tolist()
        spans = list(zip(edges[::2], edges[1::2], strict=False))
        yield 900 + int(RNG.integers(0, 30)), {f"p{a}": FieldOffset("u1", b - a, a) for a, b in spans}


@pytest.mark.requirement("REC-1:mcap")
def test_rows_round_trip_bytewise() -> None:
    for width, places in list_shapes():
        packed, complete = make_frame(width, places, [1, 2, 3, 4, 17, 100 if width < 60_000 else 10])
        assert lz4.frame.decompress(packed) == complete, (width, places)
        assert lz4.frame.LZ4FrameDecompressor().decompress(packed) == complete


def test_constant_columns_take_little_memory() -> None:
    packed, complete = make_frame(2000, {"a": FieldOffset("<f8", 3, 11)}, [1000])
    assert len(packed) < 1000 * (24 + 16) + 3 * 2000
    assert len(complete) == 2_000_000


def test_blocks_are_bounded() -> None:
    """Content larger than a block, and content that is not a row, is stored in parts."""
    for width, count in ((40_000, MAX_BLOCK_SIZE // 40_000 + 5), (MAX_BLOCK_SIZE + 100, 3)):
        packed, complete = make_frame(width, {"a": FieldOffset("<f8", 0, 11)}, [count])
        assert lz4.frame.decompress(packed) == complete
    out = np.empty(2 * MAX_BLOCK_SIZE + 100, dtype=np.uint8)
    data = RNG.integers(0, 256, MAX_BLOCK_SIZE + 7, dtype=np.uint8)
    end = write_uncompressed(out, 0, data)
    assert lz4.frame.decompress(FRAME_HEADER + out[:end].tobytes() + FRAME_END) == data.tobytes()


def test_corrupt_byte_is_detected() -> None:
    packed, _ = make_frame(100, {"a": FieldOffset("<f8", 3, 20)}, [50])
    for at in range(len(FRAME_HEADER) + 4, len(packed) - 4, 37):
        broken = bytearray(packed)
        broken[at] ^= 1 << at % 8
        with pytest.raises(RuntimeError):
            lz4.frame.decompress(bytes(broken))


def test_checksum_equals_the_library() -> None:
    """LZ4 stores a block of random bytes unchanged with its checksum. That of an empty block is known."""
    assert xxh32(np.empty(0, dtype=np.uint8)) == 0x02CC5D05
    for size in (*range(1, 70), 1000, 65_537):
        data = RNG.integers(0, 256, size, dtype=np.uint8)
        stored = lz4.frame.compress(data, block_checksum=True, store_size=False, block_size=lz4.frame.BLOCKSIZE_MAX4MB)
        length, where = struct.unpack_from("<I", stored, 7)[0], 11
        assert length == size | 1 << 31
        assert stored[where : where + size] == data.tobytes()
        assert xxh32(data) == struct.unpack_from("<I", stored, where + size)[0]


def test_tracker_lists_written_fields_only() -> None:
    places = {"a": FieldOffset("<f8", 0, 0), "b": FieldOffset("<f8", 3, 8), "c": FieldOffset("<f8", 0, 32)}
    rows = np.zeros(1, dtype=make_row_dtype(places, 40))
    noted = AccessTracker(rows)
    noted["a"] = 2.0
    noted["b"][:, 1] = 3.0
    assert noted.names == {"a", "b"}
    assert rows["b"].tolist() == [[0.0, 3.0, 0.0]]
    assert build_compressor(bytes(40), places, noted.names).lz4_dtype.names == ("a", "b")

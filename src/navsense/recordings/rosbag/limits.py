"""Limits on decompression in rosbags: a small bag with large content must not fill memory or disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, BinaryIO, Self

from navsense.core.inputs import MAX_EXPANSION, UNCHECKED_CHUNK_SIZE, expansion_problem

_LOCK = threading.Lock()
_restorers: list[Callable[[], None]] = []
_users = 0


@contextmanager
def limit_rosbags() -> Iterator[None]:
    """Limit the decompression in rosbags, inside this context, as `inputs.expansion_problem` does.

    rosbags has no limit, so its decompressors are replaced in its modules, also for other threads. Data that exceed the
    limit raise `ValueError`.
    """
    global _users  # noqa: PLW0603 (contexts of several threads share one replacement)
    with _LOCK:
        if not _users:
            _install_limits()
        _users += 1
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            if not _users:
                while _restorers:
                    _restorers.pop()()


def _install_limits() -> None:
    """Replace the decompressors of rosbags, and store how to restore them."""
    import bz2

    import lz4.frame
    from rosbags.rosbag1 import reader as ros1
    from rosbags.rosbag2 import reader
    from rosbags.rosbag2 import storage_mcap as mcap

    ros2: Any = reader
    zstd = ros2.zstd
    bunzip2 = _limit_decompressor(bz2.BZ2Decompressor)
    unlz4 = _limit_decompressor(lz4.frame.LZ4FrameDecompressor)
    unzstd = _limit_decompressor(zstd.ZstdDecompressor)
    chunks: dict[str, Any] = {"lz4": lambda data, _: unlz4(data), "zstd": lambda data, _: unzstd(data)}
    tables: list[tuple[Any, dict[str, Any]]] = [
        (ros1.decompressors, {"bz2": bunzip2, "lz4": unlz4}),
        (mcap.DECOMPRESSORS, chunks),
    ]
    for table, replacements in tables:
        _restorers.append(partial(table.update, dict(table)))
        table.update(replacements)
    _restorers.append(lambda: setattr(ros2, "zstd", zstd))
    limited = SimpleNamespace(decompress=unzstd, open=lambda file, mode: _LimitedFile(zstd.open(file, mode), file))
    ros2.zstd = limited


def _limit_decompressor(opener: Callable[[], Any]) -> Callable[[bytes], bytes]:
    """Return a function that decompresses data frame by frame and stops at the limit."""

    def decompress(data: bytes) -> bytes:
        max_size = max(UNCHECKED_CHUNK_SIZE, MAX_EXPANSION * len(data))
        remaining, parts, size_left = bytes(data), [], max_size + 1
        while remaining:
            frame = opener()
            parts.append(bytes(frame.decompress(remaining, max_length=size_left)))
            size_left -= len(parts[-1])
            if size_left <= 0:
                raise ValueError(f"a chunk of {len(data)} bytes unpacks to more than {max_size}")
            if not frame.eof:
                raise EOFError("compressed data end before their end mark")
            remaining = frame.unused_data or b""
        return b"".join(parts)

    return decompress


class _LimitedFile:
    """A compressed file that can be read up to the limit."""

    def __init__(self, unpacked: BinaryIO, packed: BinaryIO) -> None:
        """Take the decompressed and the compressed file."""
        self._unpacked, self._size, self._count = unpacked, os.fstat(packed.fileno()).st_size, 0

    def __enter__(self) -> Self:
        """Return the file itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self._unpacked.close()

    def read(self, size: int) -> bytes:
        """Return the next bytes. Raises `ValueError` beyond the limit."""
        data = self._unpacked.read(size)
        self._count += len(data)
        if problem := expansion_problem(self._count, self._size):
            raise ValueError(f"a file {problem}")
        return data

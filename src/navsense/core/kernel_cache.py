"""The cache of compiled kernels on disk, which never fails a run.

If no cache folder is writable, or a file in it is damaged, the kernel is compiled in memory and one warning is logged.
Damaged files are replaced.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from numba.core.caching import FunctionCache, IndexDataCacheFile

LOG = logging.getLogger(__name__)

_REASONS: list[str] = []
"""Reasons why this process could not use the cache; only the first one is logged."""


def warn_once(reason: str) -> None:
    """Log that the cache cannot be used, once per process."""
    if not _REASONS:
        LOG.warning(
            "the cache of compiled kernels cannot be used: %s; kernels are compiled in memory, which can take a minute;"
            " to cache them, set NUMBA_CACHE_DIR to a writable folder",
            reason,
        )
    _REASONS.append(reason)


def checksum(content: bytes) -> bytes:
    """Return the checksum at the end of a file with this content."""
    return hashlib.sha256(content).digest()


def verify_checksum(path: str) -> None:
    """Raise `ValueError` if a file does not end in its checksum, `OSError` if it cannot be read."""
    stored, length = Path(path).read_bytes(), len(checksum(b""))
    if stored[-length:] != checksum(stored[:-length]):
        raise ValueError(f"{path} is damaged")


class ChecksummedFiles(IndexDataCacheFile):
    """The index and the data files of a kernel, each with a checksum at its end.

    Numba loads them with pickle and runs the machine code: a damaged file could crash the process.
    """

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(content.getvalue() + checksum(content.getvalue()))

    def _load_index(self) -> Any:
        with contextlib.suppress(FileNotFoundError):
            verify_checksum(self._index_path)
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        verify_checksum(self._data_path(name))
        return super()._load_data(name)


class KernelCache(FunctionCache):
    """The machine code of one kernel on disk. The constructor raises `RuntimeError` if no folder is writable."""

    def __init__(self, function: Callable[..., Any], before_compile: Callable[[], None]) -> None:
        """Choose the folder. File names differ from Numba's, whose files have no checksum.

        `before_compile` is called before Numba compiles the kernel, and may raise.
        """
        super().__init__(function)
        self._before_compile = before_compile
        self.has_wrapper = True
        """The next form to load or store has a Python wrapper."""
        self._cache_file = ChecksummedFiles(
            cache_path=self.cache_path,
            filename_base=f"checked-{self._impl.filename_base}",
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return the key of a form in the index."""
        return super()._index_key(sig, codegen), self.has_wrapper

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel compiled for the argument types `sig`, or None if the cache does not hold it.

        An unusable index is emptied. If two processes wrote at the same time, an index can refer to the other's file.
        """
        try:
            overload = super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001  # a pickle of other versions can raise anything
            warn_once(str(error))
            with contextlib.suppress(OSError):
                self.flush()
            return None
        if overload is not None and tuple(overload.signature.args) == tuple(sig):
            return overload
        self._before_compile()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled kernel; log a warning if that fails."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001  # as above, where the index could not be emptied
            warn_once(f"cannot write to {self.cache_path} ({error})")


def enable_cache(dispatcher: Any, function: Callable[..., Any], before_compile: Callable[[], None]) -> None:
    """Make a Numba dispatcher store the machine code of `function` on disk, if a folder is writable.

    `before_compile` is called before each compilation, and may raise.
    """
    try:
        dispatcher._cache = KernelCache(function, before_compile)  # noqa: SLF001  # enable_caching() sets Numba's own
    except (OSError, RuntimeError) as error:
        warn_once("no cache folder is writable" if "no locator" in str(error) else str(error))

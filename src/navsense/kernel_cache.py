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
"""Why the cache could not be used, in this process; only the first reason is logged."""


def warn(reason: str) -> None:
    """Log that the cache cannot be used, once in a process."""
    if not _REASONS:
        LOG.warning(
            "the cache of compiled kernels cannot be used: %s; kernels are compiled in memory, which can take a minute;"
            " to cache them, set NUMBA_CACHE_DIR to a writable folder",
            reason,
        )
    _REASONS.append(reason)


def checksum(content: bytes) -> bytes:
    """Return the bytes that end a file of this content."""
    return hashlib.sha256(content).digest()


def check(path: str) -> None:
    """Raise `ValueError` if a file does not end in the checksum of its content, `OSError` if it cannot be read."""
    stored, length = Path(path).read_bytes(), len(checksum(b""))
    if stored[-length:] != checksum(stored[:-length]):
        raise ValueError(f"{path} is damaged")


class CheckedFiles(IndexDataCacheFile):
    """The index and the data files of a kernel, each with a checksum at its end.

    Numba reads them with pickle and runs what it finds: a damaged file could crash the process.
    """

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(content.getvalue() + checksum(content.getvalue()))

    def _load_index(self) -> Any:
        with contextlib.suppress(FileNotFoundError):
            check(self._index_path)
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        check(self._data_path(name))
        return super()._load_data(name)


class KernelCache(FunctionCache):
    """The machine code of one kernel on disk. The constructor raises `RuntimeError` if no folder is writable."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Choose the folder; the names differ from Numba's, whose files have no checksum."""
        super().__init__(function)
        self._cache_file = CheckedFiles(
            cache_path=self.cache_path,
            filename_base=f"checked-{self._impl.filename_base}",
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel compiled for the argument types `sig`, None if the cache does not hold it.

        An index that cannot be used is emptied. Where two processes wrote at once, an index can name the other's file.
        """
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001  # a pickle of other versions can raise anything
            warn(str(error))
            with contextlib.suppress(OSError):
                self.flush()
            return None
        return found if found is not None and tuple(found.signature.args) == tuple(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled kernel; log a warning if that fails."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001  # as above, where the index could not be emptied
            warn(f"cannot write to {self.cache_path} ({error})")


def enable_cache(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Let a Numba dispatcher store the machine code of `function` on disk, if a folder is writable."""
    try:
        dispatcher._cache = KernelCache(function)  # noqa: SLF001  # enable_caching() sets Numba's own
    except (OSError, RuntimeError) as error:
        warn("no cache folder is writable" if "no locator" in str(error) else str(error))

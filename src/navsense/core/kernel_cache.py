"""The cache of compiled kernels on disk, which never fails a run.

If no cache folder is writable, or a file in it is damaged, the kernel is compiled in memory and one warning is logged.
Damaged files are replaced. A kernel is compiled again after a change of its code, of a constant that it uses, or of a
kernel that it calls.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import logging
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, BinaryIO

import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.dispatcher import Dispatcher

from navsense.core import packaged_kernels
from navsense.core.checksum import append_checksum, read_checked

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


def _hash_code(code: CodeType, docstring: str | None) -> bytes:
    """Return a hash of the code of a function, without its docstring and its place in the file."""
    digest = hashlib.sha256(code.co_code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            digest.update(_hash_code(constant, None))
        elif constant is not docstring:
            digest.update(repr(constant).encode())
    digest.update(repr((code.co_names, code.co_varnames)).encode())
    return digest.digest()


CONSTANT_TYPES = (bool, int, float, str, tuple, np.generic, np.dtype)
"""Types of constants whose text contains their value."""


def _describe_file(path: str) -> str:
    """Return time of change and size of a file: it stands for a constant of unknown content."""
    status = Path(path).stat()
    return f"{status.st_mtime_ns} {status.st_size}"


@functools.cache
def hash_kernel(function: Callable[..., Any]) -> str:
    """Return a hash of the input of the compiler: all that the machine code of a kernel depends on.

    This is its code, the constants of its module that it uses, and the same of the kernels that it calls.
    """
    digest = hashlib.sha256(_hash_code(function.__code__, function.__doc__))
    digest.update(repr(function.__defaults__).encode())
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher):
            text = "" if value.py_func is function else hash_kernel(value.py_func)
        elif isinstance(value, np.ndarray):
            text = f"{value.dtype} {value.shape} {value.tobytes().hex()}"
        elif isinstance(value, type) and issubclass(value, tuple):
            text = f"{value.__qualname__} {value.__annotations__}"  # a NamedTuple
        elif isinstance(value, CONSTANT_TYPES):
            text = repr(value)
        elif value is None or value is math or value is np:
            text = ""
        else:
            text = _describe_file(function.__code__.co_filename)
        digest.update(f"\n{name} {text}".encode())
    return digest.hexdigest()


class ChecksummedFiles(IndexDataCacheFile):
    """The index and the data files of a kernel, each with a checksum at its end."""

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(append_checksum(content.getvalue()))

    def _load_index(self) -> Any:
        with contextlib.suppress(FileNotFoundError):
            read_checked(self._index_path)
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        read_checked(self._data_path(name))
        return super()._load_data(name)


class SpecialisationFiles(FunctionCache):
    """The files of one kernel in the cache folder. The constructor raises `RuntimeError` if no folder is writable."""

    def __init__(self, function: Callable[..., Any], content_hash: str) -> None:
        """Choose the folder. File names differ from Numba's, whose files have no checksum."""
        super().__init__(function)
        self.has_wrapper = True
        self._cache_file = ChecksummedFiles(
            cache_path=self.cache_path,
            filename_base=f"checked-{self._impl.filename_base}",
            source_stamp=content_hash,
        )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return the key of a specialisation in the index."""
        return super()._index_key(sig, codegen), self.has_wrapper

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the specialisation for the argument types `sig`, or None. An unusable index is emptied."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001  # a pickle of other versions can raise anything
            warn_once(str(error))
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a specialisation; log a warning if that fails."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001  # as above, where the index could not be emptied
            warn_once(f"cannot write to {self.cache_path} ({error})")


class KernelCache(NullCache):
    """The machine code of one kernel, in the cache folder if one is writable, and in the wheel (`packaged_kernels`)."""

    def __init__(self, function: Callable[..., Any], before_compile: Callable[[], None]) -> None:
        """`before_compile` is called before Numba compiles the kernel, and may raise."""
        self.has_wrapper = True
        """The next specialisation to load or store has a Python wrapper."""
        self._before_compile = before_compile
        self._kernel_name, self._content_hash = f"{function.__module__}.{function.__qualname__}", hash_kernel(function)
        self._files: SpecialisationFiles | None = None
        try:
            self._files = SpecialisationFiles(function, self._content_hash)
        except (OSError, RuntimeError) as error:
            warn_once("no cache folder is writable" if "no locator" in str(error) else str(error))

    @property
    def cache_path(self) -> str | None:
        """The cache folder of the kernel; None if no folder is writable."""
        return None if self._files is None else str(self._files.cache_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the specialisation for the argument types `sig`; None if Numba has to compile it.

        If two processes wrote at the same time, the index can refer to the specialisation of the other one.
        """
        specialisation = None
        if self._files is not None:
            self._files.has_wrapper = self.has_wrapper
            specialisation = self._files.load_overload(sig, target_context)
        if specialisation is None:
            specialisation = packaged_kernels.load_specialisation(self._get_packaged_name(sig), target_context)
        if specialisation is not None and tuple(specialisation.signature.args) == tuple(sig):
            return specialisation
        self._before_compile()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a specialisation."""
        packaged_kernels.store_specialisation(self._get_packaged_name(sig), data)
        if self._files is not None:
            self._files.save_overload(sig, data)

    def flush(self) -> None:
        """Empty the cache of the kernel."""
        if self._files is not None:
            self._files.flush()

    def _get_packaged_name(self, sig: Any) -> str:
        """Return the name of the file of a specialisation in a folder of packaged kernels."""
        return packaged_kernels.get_file_name(self._kernel_name, self._content_hash, sig, has_wrapper=self.has_wrapper)

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
import inspect
import io
import logging
import math
import os
import sys
from collections.abc import Callable, Iterator
from enum import EnumType
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, BinaryIO

import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.dispatcher import Dispatcher

from navsense.core import kernel_compiler, packaged_kernels
from navsense.core.checksum import append_checksum, read_checked

LOG = logging.getLogger(__name__)

_WARNINGS: list[str] = []
"""Warnings of this process about the cache; only the first one is logged."""

NOT_CACHED = (
    "the cache of compiled kernels cannot be used: {reason}; kernels are compiled in memory, which can take a minute;"
    " to cache them, set NUMBA_CACHE_DIR to a writable folder"
)

REPLACED = "the cache of compiled kernels: {reason}; the kernel is compiled again and its file is replaced"


def warn_once(text: str) -> None:
    """Log a warning about the cache, once per process."""
    if not _WARNINGS:
        LOG.warning("%s", text)
    _WARNINGS.append(text)


def list_codes(code: CodeType) -> list[CodeType]:
    """Return the code of a function and of the functions in it."""
    codes = [code]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            codes += list_codes(constant)
    return codes


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


def _describe_file(path: str | None) -> str:
    """Return time of change and size of a file: it stands for a constant of unknown content.

    Without a file, for example in a zip archive, the text is never the same, so the kernel is compiled in each process.
    """
    try:
        status = Path(path or "").stat()
    except OSError:
        return os.urandom(16).hex()
    return f"{status.st_mtime_ns} {status.st_size}"


def _describe_value(value: Any, function: Callable[..., Any]) -> str:
    """Return a text that differs if the value of a name in a kernel differs."""
    if isinstance(value, Dispatcher):
        return hash_kernel(value.py_func, describe_options(value))
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, EnumType):
        return repr([(member.name, member.value) for member in list[Any](value)])
    if isinstance(value, type) and issubclass(value, tuple):
        return f"{value.__qualname__} {value.__annotations__}"  # a NamedTuple
    if isinstance(value, CONSTANT_TYPES):
        return repr(value)
    if value is None or value is math or value is np:
        return ""
    if isinstance(value, ModuleType):
        names = {name for code in list_codes(function.__code__) for name in code.co_names}
        members = sorted((name, member) for name, member in vars(value).items() if name in names)
        return " ".join(f"{name} {_describe_value(member, function)}" for name, member in members)
    module = inspect.getmodule(value)
    paths = (function.__code__.co_filename, *([] if module is None else [vars(module).get("__file__")]))
    return " ".join(_describe_file(path) for path in paths)


def describe_options(dispatcher: Any) -> str:
    """Return the options with which a dispatcher compiles its kernel."""
    options = {name: value for name, value in dispatcher.targetoptions.items() if name != "no_cpython_wrapper"}
    return f"{sorted(options.items())} {sorted(vars(dispatcher).get('output_arrays') or ())}"


@functools.cache
def hash_compiler() -> str:
    """Return a hash of the code that compiles kernels."""
    members = vars(kernel_compiler)
    types = [member for member in members.values() if isinstance(member, type)]
    classes = [member for member in types if member.__module__ == kernel_compiler.__name__]
    functions = [value for owner in (kernel_compiler, *classes) for value in vars(owner).values()]
    digest = hashlib.sha256()
    for function in functions:
        if isinstance(function, FunctionType):
            digest.update(_hash_code(function.__code__, function.__doc__))
    return digest.hexdigest()


@functools.cache
def hash_kernel(function: Callable[..., Any], options: str) -> str:
    """Return a hash of all that the machine code of a kernel depends on.

    This is its code, the compiler and its options, the constants of modules that the kernel uses, and the same of the
    kernels that it calls.
    """
    digest = hashlib.sha256(_hash_code(function.__code__, function.__doc__))
    digest.update(f"{hash_compiler()} {options} {function.__defaults__!r}".encode())
    for name in sorted({name for code in list_codes(function.__code__) for name in code.co_names}):
        if name != function.__name__:  # the kernel may call itself
            digest.update(f"\n{name} {_describe_value(function.__globals__.get(name), function)}".encode())
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


class KernelRebuilder(CompileResultCacheImpl):
    """Converts specialisations from and to the content of files."""

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return the specialisation from the content of a file."""
        return kernel_compiler.rebuild_specialisation(target_context, *payload)


class SpecialisationFiles(FunctionCache):
    """The files of one kernel in the cache folder. The constructor raises `RuntimeError` if no folder is writable."""

    _impl_class = KernelRebuilder

    def __init__(self, function: Callable[..., Any], content_hash: str) -> None:
        """Choose the folder. File names differ from Numba's, whose files have no checksum.

        Python's option -O changes the bytecode, so its files have another name.
        """
        super().__init__(function)
        self.has_wrapper = True
        self._cache_file = ChecksummedFiles(
            cache_path=self.cache_path,
            filename_base=f"checked{sys.flags.optimize or ''}-{self._impl.filename_base}",
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
            try:
                self.flush()
            except OSError:
                warn_once(NOT_CACHED.format(reason=error))
            else:
                warn_once(REPLACED.format(reason=error))
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a specialisation; log a warning if that fails."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001  # as above, where the index could not be emptied
            warn_once(NOT_CACHED.format(reason=f"cannot write to {self.cache_path} ({error})"))


class KernelCache(NullCache):
    """The machine code of one kernel, in the cache folder if one is writable, and in the wheel (`packaged_kernels`)."""

    def __init__(self, dispatcher: Any, before_compile: Callable[[], None]) -> None:
        """`before_compile` is called before Numba compiles the kernel, and may raise."""
        function = dispatcher.py_func
        self.has_wrapper = True
        """The next specialisation to load or store has a Python wrapper."""
        self._before_compile = before_compile
        self._kernel_name = f"{function.__module__}.{function.__qualname__}"
        self._content_hash = hash_kernel(function, describe_options(dispatcher))
        self._files: SpecialisationFiles | None = None
        try:
            self._files = SpecialisationFiles(function, self._content_hash)
        except (OSError, RuntimeError) as error:
            reason = "no cache folder is writable" if "no locator" in str(error) else str(error)
            warn_once(NOT_CACHED.format(reason=reason))

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

"""Digests: a name of everything that determines the rows of a campaign.

The digest is SHA-256 over the values of a world, of its motions and of all arguments, over the bytes of every file that
the world reads, over the code of `reduce`, and over the versions of navsense and of the libraries that compute. The
version of navsense is the digest of its modules, so that a change of the code counts.

Objects of the process, such as loggers, locks and open files, do not determine rows. The digest has their type, and the
name of a logger.
"""

from __future__ import annotations

import dis
import hashlib
import importlib.util
import inspect
import io
import logging
import platform
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from navsense.core.errors import SimulationError, Where
from navsense.recordings.info import get_version
from navsense.world import World

LIBRARIES = ("llvmlite", "numba", "numpy", "scipy")
"""Libraries whose version can change a result."""

_PROCESS_TYPES = (
    ContextVar,
    io.IOBase,
    logging.Handler,
    logging.Logger,
    threading.Barrier,
    threading.Condition,
    threading.Event,
    threading.Semaphore,
    threading.Thread,
    threading.local,
    type(threading.Lock()),
    type(threading.RLock()),
)
"""Types of objects that belong to a process: they cannot be compared with those of another one."""


class Digest:
    """A digest of Python values by their content."""

    def __init__(self) -> None:
        """Start an empty digest."""
        self._hash = hashlib.sha256()
        self._parents: list[int] = []
        self._code: list[types.ModuleType | types.FunctionType | type] = []

    def hexdigest(self) -> str:
        """Return the digest as hexadecimal digits."""
        return self._hash.hexdigest()

    def list_local_modules(self) -> list[types.ModuleType]:
        """Return the modules of the code in the digest, without installed ones and the main module."""
        modules = {id(module): module for module in map(inspect.getmodule, self._code) if module is not None}
        return [module for module in modules.values() if module.__name__ != "__main__" and not is_installed(module)]

    def add(self, value: Any) -> None:
        """Add a value: numbers, texts, arrays, containers, functions, and objects by their attributes.

        Raises `SimulationError` for a value whose content is unknown.
        """
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
            self._write(type(value).__name__, repr(value))
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self._write("array", f"{value.dtype!r} {value.shape}", np.ascontiguousarray(value).tobytes())
        elif isinstance(value, Enum):
            self._write(type(value).__name__, value.name)
        elif isinstance(value, Where):  # the place in a file changes no result
            pass
        elif isinstance(value, types.BuiltinFunctionType):
            self._write("function", f"{value.__module__}.{value.__qualname__}")
        elif isinstance(value, _PROCESS_TYPES):
            self._write(type(value).__qualname__, value.name if isinstance(value, logging.Logger) else "")
        elif isinstance(value, type | types.FunctionType | types.ModuleType):
            self._add_code(value)
        else:
            self._add_object(value)

    def _write(self, kind: str, text: str, data: bytes = b"") -> None:
        """Add a kind and a value. Lengths make the parts unambiguous."""
        for part in (kind.encode(), text.encode("utf-8", "surrogateescape"), data):
            self._hash.update(len(part).to_bytes(8, "little"))
            self._hash.update(part)

    def _add_object(self, value: Any) -> None:
        """Add a container, or an object with attributes."""
        if id(value) in self._parents:
            self._write("parent", str(self._parents.index(id(value))))
            return
        self._parents.append(id(value))
        try:
            if isinstance(value, Mapping):
                self._write(type(value).__name__, str(len(value)))
                for key in sorted(value, key=repr):
                    self.add(key)
                    self.add(value[key])
            elif isinstance(value, AbstractSet):
                self._write("set", str(len(value)))
                for element in sorted(value, key=repr):
                    self.add(element)
            elif isinstance(value, np.ndarray):  # of objects: its bytes are addresses
                self._write("array", f"{value.dtype!r} {value.shape}")
                self.add(value.ravel().tolist())
            elif isinstance(value, types.MethodType):
                self.add((value.__func__, value.__self__))
            elif isinstance(value, partial):
                self.add((value.func, value.args, value.keywords))
            elif isinstance(value, tuple | list | range):
                self._write("sequence", f"{type(value).__qualname__} {len(value)}")
                for element in value:
                    self.add(element)
            else:
                self._add_attributes(value)
        finally:
            self._parents.pop()

    def _add_code(self, value: type | types.FunctionType | types.ModuleType) -> None:
        """Add a function, a class or a module, and the code outside installed packages that it refers to."""
        kind = type(value).__name__
        module: types.ModuleType | None
        if isinstance(value, types.ModuleType):
            name, module = value.__name__, value
        else:
            name, module = f"{value.__module__}.{value.__qualname__}", inspect.getmodule(value)
        self._write(kind, name)
        if any(value is known for known in self._code):
            return
        self._code.append(value)
        is_main = name.partition(".")[0] == "__main__" and not isinstance(value, types.ModuleType)
        if is_installed(module) and not is_main:
            if isinstance(value, types.FunctionType):
                self._write("source", _get_source(value))
        elif isinstance(value, types.ModuleType):
            self._write("source", hash_file(vars(value)["__file__"]))
            for key, member in sorted(vars(value).items()):
                if isinstance(member, types.ModuleType):
                    self.add(member)
                elif isinstance(member, type | types.FunctionType) and member.__module__ != value.__name__:
                    self._write("name", key)
                    self.add(member)
        elif isinstance(value, type):
            self._add_class(value)
        else:
            self._add_function(value)

    def _add_class(self, value: type) -> None:
        """Add the source of a class, its bases, and its methods with what they refer to."""
        self._write("source", _get_source(value))
        self.add(value.__bases__)
        for _, member in sorted(vars(value).items()):
            if isinstance(member, property):
                self.add((member.fget, member.fset))
            elif isinstance(member, staticmethod | classmethod):
                self.add(member.__func__)
            elif isinstance(member, types.FunctionType):
                self.add(member)

    def _add_function(self, function: types.FunctionType) -> None:
        """Add the source of a function, its defaults, and the values and modules that it refers to."""
        self._write("source", _get_source(function))
        self.add((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            self._add_cell(cell)
        for name in _list_names(function.__code__):
            if name in function.__globals__:
                self._write("name", name)
                self.add(function.__globals__[name])
        with search_folders([str(Path(function.__code__.co_filename).parent)]):
            for name in _list_imports(function.__code__):
                self.add(_import_local_module(name))

    def _add_cell(self, cell: types.CellType) -> None:
        """Add a variable of an outer function."""
        try:
            value = cell.cell_contents
        except ValueError:  # not yet assigned
            self._write("cell", "empty")
        else:
            self.add(value)

    def _add_attributes(self, value: Any) -> None:
        """Add the class of an object and its fields, or all of its attributes."""
        kind = type(value)
        self.add(kind)
        if not is_dataclass(value):
            self.add(_reduce_object(value))
            return
        for field in sorted(fields(value), key=lambda field: field.name):
            self._write("field", field.name)
            self.add(getattr(value, field.name))


def _reduce_object(value: object) -> Any:
    """Return the attributes of an object, or what pickle stores of it. Raises `SimulationError` if it cannot be."""
    try:
        return vars(value)
    except TypeError:  # slots, or a type in C
        pass
    try:
        return value.__reduce_ex__(4)
    except TypeError as error:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        allowed = "has no content that can be compared, so a campaign with it cannot be resumed"
        remedy = "make it inside the function reduce"
        raise SimulationError("part of a campaign", kind, allowed=allowed, remedy=remedy) from error


@contextmanager
def search_folders(folders: Sequence[str]) -> Iterator[None]:
    """Also search modules in these folders, after all others, until the end of the block."""
    added = [folder for folder in folders if folder not in sys.path]
    sys.path += added
    try:
        yield
    finally:
        for folder in added:
            if folder in sys.path:
                sys.path.remove(folder)


def is_installed(module: types.ModuleType | None) -> bool:
    """Return True for modules of Python, of installed packages and of navsense: their versions stand for them."""
    path: str | None = None if module is None else vars(module).get("__file__")  # modules in C have none
    if path is None:
        return True
    return _is_installed_file(path)


def _is_installed_file(path: str) -> bool:
    """Return True for the file of a module of Python, of installed packages or of navsense."""
    roots = {str(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(path).is_relative_to(root) for root in (*map(Path, roots), Path(__file__).parent.parent))


def _list_names(code: types.CodeType) -> list[str]:
    """Return the names that the code of a function, and of the functions in it, can look up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return sorted({*code.co_names, *(name for part in inner for name in _list_names(part))})


def _list_imports(code: types.CodeType) -> list[str]:
    """Return the names of the modules that the code of a function, and of the functions in it, imports."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    names = {part.argval for part in dis.get_instructions(code) if part.opname == "IMPORT_NAME" and part.argval}
    return sorted(names.union(*map(_list_imports, inner)))


def _import_local_module(name: str) -> types.ModuleType | None:
    """Return a module that a function imports; None if it is in an installed package or does not exist."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
        if spec is None or spec.origin is None or _is_installed_file(spec.origin):
            return None
        return importlib.import_module(name)
    except (ImportError, ValueError):
        return None


def _get_source(value: types.FunctionType | type) -> str:
    """Return the source of a function, without that of a function in a decorator, or of a class.

    Of a function without a file, return the instructions.
    """
    try:
        return inspect.getsource(value.__code__ if isinstance(value, types.FunctionType) else value)
    except (OSError, TypeError):
        return _describe_code(value.__code__) if isinstance(value, types.FunctionType) else ""


def _describe_code(code: types.CodeType) -> str:
    """Return the instructions, names and constants of compiled code."""
    constants = [_describe_code(part) if isinstance(part, types.CodeType) else repr(part) for part in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"


def list_local_modules(function: object) -> list[types.ModuleType]:
    """Return the modules outside installed packages that the code of a function refers to."""
    digest = Digest()
    digest.add(function)
    return digest.list_local_modules()


def hash_world(world: World) -> str:
    """Return the digest of the values of a world, without the names of its files and its notes."""
    digest = Digest()
    digest.add(replace(world, sources=frozenset(), path="", notes=()))
    return digest.hexdigest()


def hash_file(path: str) -> str:
    """Return the digest of the bytes of a file; of the names and bytes of the files in a folder."""
    target = Path(path)
    if target.is_dir():
        files = sorted(file for file in target.rglob("*") if file.is_file())
        parts = [f"{file.relative_to(target)} {hash_file(str(file))}" for file in files]
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    try:
        with target.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # a file of a package in an archive, or one that was removed
        return "missing"


@cache
def list_versions() -> Mapping[str, str]:
    """Return the versions of Python, of the libraries that compute, and of navsense with the digest of its modules."""
    root = Path(__file__).parent.parent
    modules = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        modules.update(str(file.relative_to(root)).encode())
        modules.update(file.read_bytes())
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    versions |= {library: metadata.version(library) for library in LIBRARIES}
    return {**versions, "navsense": f"{get_version()} {modules.hexdigest()[:16]}"}

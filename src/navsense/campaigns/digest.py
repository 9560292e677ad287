"""Digests: a name of everything that determines the rows of a campaign.

The digest is SHA-256 over the values of a world, of its motions and of all arguments, over the bytes of every file that
the world reads, over the code of `reduce`, and over the versions of navsense and of the libraries that compute. The
version of navsense has a digest of its files, so that a change of the code or of the catalogue counts.

Objects of the process, such as loggers, locks and open files, do not determine rows. The digest has their type, and the
name of a logger.
"""

from __future__ import annotations

import copyreg
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
import weakref
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, cached_property, partial
from importlib import metadata
from pathlib import Path
from pickle import PickleError
from typing import Any

import numpy as np

from navsense.core.errors import SimulationError, Where
from navsense.recordings.info import get_version
from navsense.world import World

LIBRARIES = ("llvmlite", "numba", "numpy", "scipy")
"""Libraries whose version can change a result."""

_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodDescriptorType)
"""Types of attributes of a class that hold no value."""

_GLOBAL_GENERATOR: Any = np.random.get_state.__self__  # type: ignore[attr-defined]
"""The random numbers of `np.random.normal` and others, which start differently in each process."""

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
    weakref.ref,
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
        return [
            module
            for module in modules.values()
            if module.__name__ != "__main__" and not is_installed(module) and vars(module).get("__file__")
        ]

    def add(self, value: Any) -> None:
        """Add a value: numbers, strings, arrays, containers, functions, and objects by their attributes.

        Raises `SimulationError` for a value whose content is unknown.
        """
        if isinstance(value, Enum):
            self._write(type(value).__name__, value.name)
            self.add(type(value))
        elif isinstance(value, np.generic | np.ndarray):
            self._add_array(value)
        elif isinstance(value, int):
            self._write(type(value).__name__, hex(value))
        elif isinstance(value, bytes | bytearray):
            self._write(type(value).__name__, "", value)
        elif value is None or isinstance(value, float | complex | str):
            self._write(type(value).__name__, repr(value))
        elif isinstance(value, Where):  # the place in a file changes no result
            pass
        elif isinstance(value, types.BuiltinFunctionType):
            self._write("function", f"{value.__module__}.{value.__qualname__}")
        elif isinstance(value, _PROCESS_TYPES) or value is _GLOBAL_GENERATOR:
            self._write(type(value).__qualname__, value.name if isinstance(value, logging.Logger) else "")
        elif isinstance(value, types.CodeType):
            self._add_code_object(value)
        elif isinstance(value, type | types.FunctionType | types.ModuleType):
            self._add_code(value)
        else:
            self._add_object(value)

    def _write(self, kind: str, text: str, data: bytes | bytearray = b"") -> None:
        """Add a kind and a value. Lengths make the parts unambiguous."""
        for part in (kind.encode(), text.encode("utf-8", "surrogatepass"), data):
            self._hash.update(len(part).to_bytes(8, "little"))
            self._hash.update(part)

    def _add_array(self, value: np.generic | np.ndarray[Any, Any]) -> None:
        """Add a number or an array of NumPy."""
        self._write(type(value).__name__, f"{value.dtype!r} {value.shape}")
        if value.dtype.hasobject:  # its bytes are addresses
            self._add_object(value.ravel().tolist())
        else:
            self._write("data", "", value.tobytes())
        if isinstance(value, np.ma.MaskedArray):
            self.add(np.ma.getmaskarray(value))

    def _add_object(self, value: Any) -> None:
        """Add a container, or an object with attributes."""
        if id(value) in self._parents:
            self._write("parent", str(self._parents.index(id(value))))
            return
        self._parents.append(id(value))
        try:
            if isinstance(value, Mapping):
                self._write(type(value).__name__, str(len(value)))
                for key, element in value.items():
                    self.add(key)
                    self.add(element)
            elif isinstance(value, AbstractSet):
                self._write("set", " ".join(sorted(map(self._hash_element, value))))
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
        except RecursionError:
            remedy = "make it inside the function reduce"
            raise SimulationError("part of a campaign", allowed="is nested too deeply", remedy=remedy) from None
        finally:
            self._parents.pop()

    def _hash_element(self, element: Any) -> str:
        """Return the digest of an element of a set, which has no order."""
        digest = Digest()
        digest._parents, digest._code = list(self._parents), list(self._code)
        digest.add(element)
        return digest.hexdigest()

    def _add_code(self, value: type | types.FunctionType | types.ModuleType) -> None:
        """Add a function, a class or a module, and the code outside installed packages that it refers to."""
        kind = type(value).__name__
        if isinstance(value, types.ModuleType):
            is_known = is_installed(value)
            self._write(kind, value.__name__ if is_known else "")  # the name of a local module can change
        else:
            is_known = value.__module__ != "__main__" and is_installed(inspect.getmodule(value))
            self._write(kind, f"{value.__module__}.{value.__qualname__}" if is_known else value.__qualname__)
        if any(value is known for known in self._code):
            return
        self._code.append(value)
        if is_known:
            if isinstance(value, types.FunctionType):
                self._add_code_object(value.__code__)
        elif isinstance(value, types.ModuleType):
            self._add_module(value)
        elif isinstance(value, type):
            self._add_class(value)
        else:
            self._add_function(value)

    def _add_code_object(self, code: types.CodeType) -> None:
        """Add the compiled code of a function: unlike its source, it is what runs."""
        self._write("code", code.co_name, code.co_code)
        self._write("flags", str(code.co_flags), code.co_exceptiontable)
        self.add((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount))
        self.add((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
        self.add(code.co_consts)

    def _add_module(self, module: types.ModuleType) -> None:
        """Add the file of a module, and the modules, functions and classes that it imports."""
        path = vars(module).get("__file__")
        self._write("source", hash_file(path) if path else "")
        for key, member in sorted(vars(module).items()):
            if isinstance(member, types.ModuleType):
                self.add(member)
            elif isinstance(member, type | types.FunctionType) and member.__module__ != module.__name__:
                self._write("name", key)
                self.add(member)

    def _add_members(self, module: types.ModuleType, names: Sequence[str]) -> None:
        """Add the values of a module, and of modules in it, that code can look up. They can differ from its file."""
        if is_installed(module) or id(module) in self._parents:
            return
        self._parents.append(id(module))
        try:
            for name in names:
                if name in vars(module):
                    self._write("name", name)
                    self._add_value(vars(module)[name], names)
        finally:
            self._parents.pop()

    def _add_value(self, value: Any, names: Sequence[str]) -> None:
        """Add a global value of a function that looks up these names."""
        self.add(value)
        if isinstance(value, types.ModuleType):
            self._add_members(value, names)

    def _add_class(self, value: type) -> None:
        """Add a class: its bases, its attributes, and its methods with what they refer to."""
        self.add((type(value), value.__bases__))
        for name, member in sorted(vars(value).items()):
            if isinstance(member, property):
                self.add((name, member.fget, member.fset))
            elif isinstance(member, staticmethod | classmethod):
                self.add((name, member.__func__))
            elif isinstance(member, cached_property):
                self.add((name, member.func))
            elif isinstance(member, types.FunctionType) or not (
                name.startswith(("__", "_abc_")) or isinstance(member, _DESCRIPTORS)
            ):
                self.add((name, member))

    def _add_function(self, function: types.FunctionType) -> None:
        """Add the code of a function, its defaults, and the values and modules that it refers to."""
        self._add_code_object(function.__code__)
        self.add((function.__defaults__, function.__kwdefaults__, function.__dict__))
        names = _list_names(function.__code__)
        for cell in function.__closure__ or ():
            self._add_cell(cell, names)
        for name in names:
            if name in function.__globals__:
                self._write("name", name)
                self._add_value(function.__globals__[name], names)
        with search_folders([str(Path(function.__code__.co_filename).parent)]):
            for name in _list_imports(function.__code__, function.__globals__.get("__package__") or ""):
                module = _import_local_module(name)
                if module is not None:
                    self._add_value(module, names)

    def _add_cell(self, cell: types.CellType, names: Sequence[str]) -> None:
        """Add a variable of an outer function."""
        try:
            value = cell.cell_contents
        except ValueError:  # not yet assigned
            self._write("cell", "empty")
        else:
            self._add_value(value, names)

    def _add_attributes(self, value: Any) -> None:
        """Add the class of an object and its fields, or what pickle stores of it."""
        kind = type(value)
        self.add(kind)
        if is_dataclass(value):
            for field in sorted(fields(value), key=lambda field: field.name):
                self._write("field", field.name)
                self.add(getattr(value, field.name))
            return
        self.add(_list_wrapped_functions(value) or _reduce_object(value))


def _list_wrapped_functions(value: object) -> list[Any]:
    """Return the function, and the options, that `functools.cache` or Numba made an object of; else nothing."""
    try:
        attributes = vars(value)
    except TypeError:
        return []
    return [attributes[name] for name in ("py_func", "targetoptions", "__wrapped__") if name in attributes]


def _reduce_object(value: Any) -> Any:
    """Return what pickle stores of an object, or its attributes. Raises `SimulationError` if there are none."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        parts = value.__reduce_ex__(4) if reduce is None else reduce(value)
    except (TypeError, AttributeError, PickleError) as error:
        try:
            return vars(value)
        except TypeError:
            pass
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        allowed = "has no content that can be compared, so a campaign with it cannot be resumed"
        remedy = "make it inside the function reduce"
        raise SimulationError("part of a campaign", kind, allowed=allowed, remedy=remedy) from error
    if isinstance(parts, str):
        return parts
    return [list(part) if isinstance(part, Iterator) else part for part in parts]


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
    if module is None:
        return True
    path: str | None = vars(module).get("__file__")  # modules in C have none; packages without __init__.py have folders
    return all(map(is_installed_file, [path] if path else vars(module).get("__path__", ())))


def is_installed_file(path: str) -> bool:
    """Return True for a file or folder of Python, of installed packages or of navsense."""
    roots = {str(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(path).is_relative_to(root) for root in (*map(Path, roots), Path(__file__).parent.parent))


def _list_names(code: types.CodeType) -> list[str]:
    """Return the names that the code of a function, and of the functions in it, can look up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return sorted({*code.co_names, *(name for part in inner for name in _list_names(part))})


def _list_imports(code: types.CodeType, package: str) -> list[str]:
    """Return the names of the modules that the code of a function, and of the functions in it, can import.

    package: the package of the function, for relative imports.
    """
    names: set[str] = set()
    instructions = [part for part in dis.get_instructions(code) if part.opname != "EXTENDED_ARG"]
    for index, part in enumerate(instructions):
        if part.opname == "IMPORT_NAME":  # after the level and the names of `from ... import`
            level, members = (instruction.argval for instruction in instructions[index - 2 : index])
            base = f"{'.' * level}{part.argval}"
            with suppress(ImportError, ValueError):
                name = importlib.util.resolve_name(base, package) if level else base
                names |= {name, *(f"{name}.{member}" for member in members or ())}
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return sorted(names.union(*(_list_imports(part, package) for part in inner)))


def _import_local_module(name: str) -> types.ModuleType | None:
    """Return a module that a function imports; None if it is in an installed package or does not exist."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
        places = [] if spec is None else spec.submodule_search_locations or [spec.origin or ""]
        if all(map(is_installed_file, places)) or places in (["built-in"], ["frozen"], [""]):
            return None
        return importlib.import_module(name)
    except (ImportError, ValueError):
        return None


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
    """Return the versions of Python, of the libraries that compute, and of navsense with the digest of its files."""
    root = Path(__file__).parent.parent
    modules = hashlib.sha256()
    for file in sorted(file for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts):
        modules.update(str(file.relative_to(root)).encode())
        modules.update(file.read_bytes())
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    versions |= {library: metadata.version(library) for library in LIBRARIES}
    return {**versions, "navsense": f"{get_version()} {modules.hexdigest()[:16]}"}

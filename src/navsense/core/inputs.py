"""Files and numbers from the user. All modules open input files and parse numbers, TOML and JSON through this module.

Only regular files are opened: a pipe or a file in /proc could block forever, and a device could fill the memory. File
size and nesting depth are limited. `check_regular_file` checks a file before a library opens it by name.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from navsense.core.errors import NavsenseError, Where
from navsense.core.text import MAX_DIGITS

MAX_FILE_SIZE = 512 * 1024 * 1024
"""Largest size (bytes) of a table of numbers: some ten million rows."""

MAX_TOML = 1024 * 1024
"""Largest size (bytes) of a TOML file."""

MAX_METADATA = 16 * 1024 * 1024
"""Largest size (bytes) of the metadata.yaml of a ROS 2 bag."""

MAX_DEPTH = 100
"""Largest nesting depth of arrays and tables in TOML and JSON."""

READ_SIZE = 256 * 1024
"""Bytes of a text in one read."""

MAX_EXPANSION, UNCHECKED_SIZE = 100, 256 * 1024 * 1024
"""Compressed data may expand by this factor, or to this many bytes if that is more."""

UNCHECKED_CHUNK_SIZE = 64 * 1024 * 1024
"""Size (bytes) up to which the expansion of a chunk or message of a recording is not checked."""

SPECIAL = "is a device, a pipe or a system file"
"""Problem of a file that `is_special`."""

_TOML_TOKENS = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"'  # strings
    r"|'''.*?'''|'[^'\n]*'|#[^\n]*"  # literal strings and comments
    rf"|[0-9A-Fa-f_]{{{MAX_DIGITS + 1},}}"
    r"|[\[\]{}.,=\n]",
    re.DOTALL,
)
"""Tokens of TOML that determine the nesting depth and the length of numbers."""

_TOML_ERROR_LINE = re.compile(r" \(at line (\d+), column \d+\)")
"""The line number in an error of the TOML parser."""

_SYSTEM_FOLDERS = ("/proc", "/sys", "/sys/kernel/debug", "/sys/kernel/tracing")
"""File systems of the kernel. Their files appear as regular files, but some wait for data, such as /proc/kmsg."""

_COLLECTORS: ContextVar[tuple[set[str], ...]] = ContextVar("collectors", default=())


@contextmanager
def collect_inputs(already_read: Iterable[str] = ()) -> Iterator[set[str]]:
    """Yield the set of files that navsense reads inside this context, as absolute paths.

    The set starts with `already_read`. Contexts nest: an inner context also adds to the outer ones.
    `atomic.check_not_input` refuses to write to these files.
    """
    files = set(already_read)
    outer = _COLLECTORS.get()
    for collector in outer:
        collector.update(files)
    token = _COLLECTORS.set((*outer, files))
    try:
        yield files
    finally:
        _COLLECTORS.reset(token)


def add_input(path: str | os.PathLike[str]) -> None:
    """Add a file or folder to the inputs of all open contexts."""
    for files in _COLLECTORS.get():
        files.add(str(Path(path).absolute()))


def current_inputs() -> frozenset[str]:
    """Return the inputs of all open contexts."""
    return frozenset().union(*_COLLECTORS.get())


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its name in errors, their class, and what is allowed."""

    what: str
    error: type[NavsenseError]
    allowed: str


def read_bytes(name: str, kind: FileKind, max_size: int = MAX_FILE_SIZE, limit_text: str = "") -> bytes:
    """Return the bytes of a file of at most `max_size` bytes; `limit_text` describes the limit in an error.

    Raises the kind's error for a file that is missing, a folder, special, unreadable or too large.
    """
    check_regular_file(name, kind, max_size, limit_text)
    try:
        with open(name, "rb", opener=_open_nonblocking) as file:
            data = file.read(min(max_size, os.fstat(file.fileno()).st_size) + 1) or b""  # None for a pipe without data
    except OSError as cause:
        raise kind.error(kind.what, error_text(cause), where=Where(name), allowed=kind.allowed) from cause
    if len(data) > max_size:  # the file has grown
        raise _make_size_error(name, kind, max_size, limit_text)
    return data


def read_ranges(name: str, kind: FileKind, ranges: Iterable[tuple[int, int]]) -> tuple[list[bytes], int]:
    """Return the bytes of some ranges (first byte, count) of a file, and its size. Only these bytes are read.

    A range beyond the end of the file is shorter. Raises the kind's error as `read_bytes` does.
    """
    check_regular_file(name, kind)
    try:
        with open(name, "rb", buffering=0, opener=_open_nonblocking) as file:
            parts = []
            for start, count in ranges:
                file.seek(start)
                parts.append(file.read(count) or b"")
            return parts, os.fstat(file.fileno()).st_size
    except OSError as cause:
        raise kind.error(kind.what, error_text(cause), where=Where(name), allowed=kind.allowed) from cause


def _open_nonblocking(name: str, flags: int) -> int:
    """Open a file without blocking. System files such as /proc/kmsg, and pipes, could wait for data."""
    return os.open(name, flags | os.O_NONBLOCK)


def check_regular_file(name: str, kind: FileKind, max_size: int | None = None, limit_text: str = "") -> None:
    """Check a file that a library will open by name; `limit_text` describes `max_size` (bytes) in an error.

    Raises the kind's error if the file is missing, a folder, special or too large.
    """
    what, error, allowed, where = kind.what, kind.error, kind.allowed, Where(name)
    if not name:
        raise error(what, "has an empty name", allowed=allowed)
    try:
        state = Path(name).stat()
    except FileNotFoundError as cause:
        raise error(what, "does not exist", where=where, allowed=allowed, remedy="check the path") from cause
    except (OSError, ValueError) as cause:  # ValueError: a null character in the name
        raise error(what, error_text(cause), where=where, allowed=allowed) from cause
    if stat.S_ISDIR(state.st_mode):
        raise error(what, "is a folder", where=where, allowed=allowed, remedy="name the file in it")
    if is_special(state):
        raise error(what, SPECIAL, where=where, allowed=allowed)
    if max_size is not None and state.st_size > max_size:
        raise _make_size_error(name, kind, max_size, limit_text)
    add_input(name)


def is_special(state: os.stat_result) -> bool:
    """Return True if a file is a pipe, a socket, a device, or in a file system of the kernel such as /proc."""
    if stat.S_ISREG(state.st_mode):
        return state.st_dev in _list_system_devices()
    return not stat.S_ISDIR(state.st_mode)


@cache
def _list_system_devices() -> frozenset[int]:
    """Return the device numbers of the file systems of the kernel."""
    return frozenset(Path(folder).stat().st_dev for folder in _SYSTEM_FOLDERS if os.path.ismount(folder))


def error_text(cause: Exception) -> str:
    """Return the text of an error of the operating system."""
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)


def _make_size_error(name: str, kind: FileKind, max_size: int, limit_text: str) -> NavsenseError:
    allowed = limit_text or f"must be at most {max_size // 2**20} MiB"
    return kind.error(kind.what, "too large", where=Where(name), allowed=allowed)


def expansion_problem(size: int, packed_size: int, unchecked_size: int = UNCHECKED_SIZE) -> str:
    """Return the problem of `packed_size` compressed bytes that declare `size` bytes; "" if the size is plausible.

    Sensor data expand by a small factor. A decompression bomb expands a thousand times.
    """
    if size <= max(unchecked_size, MAX_EXPANSION * packed_size):
        return ""
    allowed = f"must be at most {MAX_EXPANSION} times as many, or {unchecked_size >> 20} MiB"
    return f"unpacks from {packed_size} bytes to {size}; {allowed}"


def archive_expansion_problem(file: str | BinaryIO) -> str:
    """Return the problem of the sizes that a ZIP archive declares; "" if they are plausible.

    Raises `zipfile.BadZipFile` for another file.
    """
    import zipfile

    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    if not isinstance(file, str):
        file.seek(0)
    return expansion_problem(
        sum(member.file_size for member in members), sum(member.compress_size for member in members)
    )


def path_exists(path: Path) -> bool:
    """Return True if a file or folder of this name exists."""
    try:
        return path.exists()
    except (OSError, ValueError):  # the name is too long or has a null character, or a folder is not accessible
        return False


def read_lines(name: str, kind: FileKind) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without line endings of any kind. The file is read in parts.

    Raises the kind's error as `read_bytes` does, and for a file that is not text.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    pending: list[str] = []
    try:
        for data in _read_parts(name, kind, MAX_FILE_SIZE):
            if b"\0" in data:
                raise ValueError("a null character")  # noqa: TRY301
            *complete, last = decoder.decode(data, final=not data).split("\n")
            if complete:
                yield "".join((*pending, complete[0]))
                yield from complete[1:]
                pending = []
            pending.append(last)
    except ValueError as cause:
        raise kind.error(kind.what, "is not text", where=Where(name), allowed=kind.allowed) from cause
    if any(pending):
        yield "".join(pending)


def _read_parts(name: str, kind: FileKind, max_size: int) -> Iterator[bytes]:
    """Yield the bytes of a file in parts, then an empty part. Raises the kind's error as `read_bytes` does."""
    check_regular_file(name, kind, max_size)
    try:
        with open(name, "rb", opener=_open_nonblocking) as file:
            end = min(max_size, os.fstat(file.fileno()).st_size) + 1
            while data := file.read(min(READ_SIZE, end - file.tell())) or b"":  # None for a pipe without data
                yield data
            has_grown = file.tell() > max_size
    except OSError as cause:
        raise kind.error(kind.what, error_text(cause), where=Where(name), allowed=kind.allowed) from cause
    if has_grown:
        raise _make_size_error(name, kind, max_size, "")
    yield b""


def read_toml(name: str, kind: FileKind) -> dict[str, Any]:
    """Parse a TOML file in UTF-8, with or without a byte order mark.

    Raises the kind's error with the line for invalid TOML, and the errors of `read_bytes`.
    """
    data = read_bytes(name, kind, MAX_TOML)
    try:
        text = data.decode("utf-8-sig")
        _check_toml(name, text, kind)
        return tomllib.loads(text)
    except ValueError as cause:  # not UTF-8, not TOML, an invalid date
        match = _TOML_ERROR_LINE.search(str(cause))
        text = str(cause) if match is None else str(cause).replace(match[0], "")
        where = Where(name, 0 if match is None else int(match[1]))
        raise kind.error(kind.what, text, allowed="must be TOML", where=where) from cause


def _check_toml(name: str, text: str, kind: FileKind) -> None:
    """Raise the kind's error for long numbers and deep nesting, which the parser cannot read in reasonable time."""
    line, depth, dots = 1, 0, 0
    for match in _TOML_TOKENS.finditer(text):
        part = match[0]
        if part == ".":
            dots += 1
        elif len(part) == 1:
            depth += (part in "[{") - (part in "]}")
            dots = 0
        elif part[0] not in "\"'#":
            allowed = f"must have at most {MAX_DIGITS} digits"
            raise kind.error(kind.what, part, allowed=allowed, where=Where(name, line))
        if depth + dots > MAX_DEPTH:
            allowed = f"arrays and tables may be nested {MAX_DEPTH} deep"
            raise kind.error(kind.what, f"{depth + dots} deep", allowed=allowed, where=Where(name, line))
        line += part.count("\n")


def parse_json(data: str | bytes) -> Any:
    """Parse a JSON text. Raises `ValueError` for invalid JSON and for deep nesting."""
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError(f"nested more than {MAX_DEPTH} deep") from None
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
    if level:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    return value

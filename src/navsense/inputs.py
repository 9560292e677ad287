"""Files and numbers that a user gives: the only way to open files, and to read numbers, TOML and JSON.

Only regular files are opened, so that a pipe does not wait for ever and a device does not fill the memory. Size and
depth of nesting are limited. `regular` and `bag` check a file before a library opens it by its name.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from navsense.errors import NavsenseError, Where

LARGEST = 512 * 1024 * 1024
"""Bytes in a table of numbers: some ten million rows."""

LARGEST_TOML = 1024 * 1024
"""Bytes in a file of TOML."""

LARGEST_METADATA = 16 * 1024 * 1024
"""Bytes in the metadata.yaml of a bag of ROS 2."""

PART = 256 * 1024
"""Bytes of a text that are read at once."""

DEEPEST = 100
"""Levels of arrays and tables in TOML and JSON."""

EXPANSION, FREE = 100, 256 * 1024 * 1024
"""Packed data may unpack to so many times their size, and to so many bytes whatever their size."""

FREE_CHUNK = 64 * 1024 * 1024
"""Bytes that a chunk of a recording, or a message in it, may unpack to whatever its size."""

FOLDERS: Mapping[str, str] = {".csv": "navsense.json", ".db3": "metadata.yaml"}
"""Recordings that are written as NAME with a suffix and are a folder NAME: the file that makes it one, by suffix."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST = 400

_TOML = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"'  # strings
    r"|'''.*?'''|'[^'\n]*'|#[^\n]*"  # literal strings and comments
    rf"|[0-9A-Fa-f_]{{{_LONGEST + 1},}}"
    r"|[\[\]{}.,=\n]",
    re.DOTALL,
)
"""Tokens of TOML that matter for its nesting and for the length of its numbers."""

_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)")
"""Place in an error of the TOML parser."""

_OF_URIS = "%?#"
"""Characters that SQLite, given a file name by rosbags, takes for another one."""


_COLLECTORS: ContextVar[tuple[set[str], ...]] = ContextVar("collectors", default=())


@contextmanager
def collected(known: Iterable[str] = ()) -> Iterator[set[str]]:
    """Yield the set of the files that navsense reads inside this context, `known` ones included, as absolute paths.

    Contexts nest: an inner one adds to the outer ones too. `outputs` refuses to write to any of these files.
    """
    files = set(known)
    outer = _COLLECTORS.get()
    for collector in outer:
        collector.update(files)
    token = _COLLECTORS.set((*outer, files))
    try:
        yield files
    finally:
        _COLLECTORS.reset(token)


def add_input(path: str | os.PathLike[str]) -> None:
    """Add a file or folder to the inputs of the contexts that are open."""
    for files in _COLLECTORS.get():
        files.add(str(Path(path).absolute()))


def current_inputs() -> frozenset[str]:
    """Return the inputs of all contexts that are open."""
    return frozenset().union(*_COLLECTORS.get())


@dataclass(frozen=True)
class Kind:
    """One kind of file: what errors call it, their class, and what it must be."""

    what: str
    error: type[NavsenseError]
    allowed: str


def content(name: str, kind: Kind, most: int = LARGEST, limit: str = "") -> bytes:
    """Return the bytes of a file, `most` of them; `limit` says so in an error.

    Raises the kind's error for a file that is not there, is a folder, a device or a pipe, cannot be read or is larger.
    """
    regular(name, kind, most, limit)
    try:
        with open(name, "rb", opener=_open_without_waiting) as file:
            data = file.read(min(most, os.fstat(file.fileno()).st_size) + 1) or b""  # None of a pipe without data
    except OSError as cause:
        raise kind.error(kind.what, _words(cause), where=Where(name), allowed=kind.allowed) from cause
    if len(data) > most:  # it has grown
        raise _too_large(name, kind, most, limit)
    return data


def _open_without_waiting(name: str, flags: int) -> int:
    """Open a file; one of the system that waits for data, such as /proc/kmsg, or a pipe put in its place, does not."""
    return os.open(name, flags | os.O_NONBLOCK)


def regular(name: str, kind: Kind, most: int | None = None, limit: str = "") -> None:
    """Check a file that a library will open by its name. `limit` describes `most` bytes in an error.

    Raises the kind's error for a file that is not there, is a folder, a device or a pipe, or is larger.
    """
    what, error, allowed, where = kind.what, kind.error, kind.allowed, Where(name)
    if not name:
        raise error(what, "has an empty name", allowed=allowed)
    try:
        state = Path(name).stat()
    except FileNotFoundError as cause:
        raise error(what, "does not exist", where=where, allowed=allowed, remedy="check the path") from cause
    except (OSError, ValueError) as cause:  # ValueError: a null character in the name
        raise error(what, _words(cause), where=where, allowed=allowed) from cause
    if stat.S_ISDIR(state.st_mode):
        raise error(what, "is a folder", where=where, allowed=allowed, remedy="name the file in it")
    if is_special(state):
        raise error(what, "is a device or a pipe", where=where, allowed=allowed)
    if most is not None and state.st_size > most:
        raise _too_large(name, kind, most, limit)
    add_input(name)


def is_special(state: os.stat_result) -> bool:
    """Return whether a file is a pipe, a socket or a device."""
    return not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode)


def bag(path: Path, kind: Kind) -> None:
    """Check a bag of ROS that rosbags will open by its name: a file, or a folder with what lies in it.

    rosbags opens every file that metadata.yaml lists. Raises the kind's error as `regular` does.
    """
    is_folder = there(path) and path.is_dir()
    add_input(path)
    try:
        files = [one for one in path.iterdir() if there(one) and not one.is_dir()] if is_folder else [path]
    except OSError as cause:
        raise kind.error(kind.what, _words(cause), where=Where(str(path)), allowed=kind.allowed) from cause
    for file in files:
        regular(str(file), kind, LARGEST_METADATA if file.name == FOLDERS[".db3"] else None)
        if file.suffix == ".db3" and (odd := set(_OF_URIS) & set(str(file))):
            allowed = f"the path of a bag in SQLite must be without {' '.join(_OF_URIS)}"
            raise kind.error(
                kind.what, " ".join(sorted(odd)), where=Where(str(file)), allowed=allowed, remedy="rename it"
            )


def _words(cause: Exception) -> str:
    """Return the text of an error of the operating system."""
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)


def _too_large(name: str, kind: Kind, most: int, limit: str) -> NavsenseError:
    allowed = limit or f"must be at most {most // 2**20} MiB"
    return kind.error(kind.what, "too large", where=Where(name), allowed=allowed)


def unpacks_too_far(size: int, packed: int, free: int = FREE) -> str:
    """Return what is wrong with packed data that declare `size` bytes unpacked; "" where that is plausible.

    Sensor data unpack to a few times their size; a file that is made to fill the memory unpacks to a thousand times.
    """
    if size <= max(free, EXPANSION * packed):
        return ""
    return f"unpacks from {packed} bytes to {size}; must be at most {EXPANSION} times as many, or {free >> 20} MiB"


def archive_unpacks_too_far(file: str | BinaryIO) -> str:
    """Return what is wrong with the sizes that a ZIP archive declares, "" where they are plausible.

    Raises `zipfile.BadZipFile` for what is no such archive.
    """
    import zipfile

    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    if not isinstance(file, str):
        file.seek(0)
    return unpacks_too_far(sum(one.file_size for one in members), sum(one.compress_size for one in members))


def there(place: Path) -> bool:
    """Return whether there is a file or folder of this name."""
    try:
        return place.exists()
    except (OSError, ValueError):  # a name too long, a null character in it, a folder that may not be entered
        return False


def place_of(path: Path) -> Path:
    """Return the folder that a recording is which is named as it was written, NAME.csv; else the path itself."""
    mark = FOLDERS.get(path.suffix.lower())
    is_named = mark is not None and not there(path) and there(path.with_suffix("") / mark)
    return path.with_suffix("") if is_named else path


def text_lines(name: str, kind: Kind) -> Iterator[str]:
    """Yield the lines of a text file in UTF-8 without their ends, whatever ends them; the file is read in parts.

    Raises the kind's error as `content` does, and for what is no text.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    begun: list[str] = []
    try:
        for data in _parts(name, kind, LARGEST):
            if b"\0" in data:
                raise ValueError("a null character")  # noqa: TRY301
            *whole, last = decoder.decode(data, final=not data).split("\n")
            if whole:
                yield "".join((*begun, whole[0]))
                yield from whole[1:]
                begun = []
            begun.append(last)
    except ValueError as cause:
        raise kind.error(kind.what, "is not text", where=Where(name), allowed=kind.allowed) from cause
    if any(begun):
        yield "".join(begun)


def _parts(name: str, kind: Kind, most: int) -> Iterator[bytes]:
    """Yield the bytes of a file in parts, an empty one at the end. Raises the kind's error as `content` does."""
    regular(name, kind, most)
    try:
        with open(name, "rb", opener=_open_without_waiting) as file:
            end = min(most, os.fstat(file.fileno()).st_size) + 1
            while data := file.read(min(PART, end - file.tell())) or b"":  # None of a pipe without data
                yield data
            grown = file.tell() > most
    except OSError as cause:
        raise kind.error(kind.what, _words(cause), where=Where(name), allowed=kind.allowed) from cause
    if grown:
        raise _too_large(name, kind, most, "")
    yield b""


def toml(name: str, kind: Kind) -> dict[str, Any]:
    """Return a file of TOML. Raises the kind's error, with the line, for what is none, and as `content` does."""
    data = content(name, kind, LARGEST_TOML)
    try:
        text = data.decode()
        _check_toml(name, text, kind)
        return tomllib.loads(text)
    except ValueError as cause:  # not UTF-8, not TOML, a date that is none
        found = _AT_LINE.search(str(cause))
        words = str(cause) if found is None else str(cause).replace(found[0], "")
        where = Where(name, 0 if found is None else int(found[1]))
        raise kind.error(kind.what, words, allowed="must be TOML", where=where) from cause


def _check_toml(name: str, text: str, kind: Kind) -> None:
    """Raise the kind's error for numbers too long and nesting too deep, which the parser cannot or hardly read."""
    line, depth, dots = 1, 0, 0
    for found in _TOML.finditer(text):
        part = found[0]
        if part == ".":
            dots += 1
        elif len(part) == 1:
            depth += (part in "[{") - (part in "]}")
            dots = 0
        elif part[0] not in "\"'#":
            allowed = f"must have at most {_LONGEST} digits"
            raise kind.error(kind.what, part, allowed=allowed, where=Where(name, line))
        if depth + dots > DEEPEST:
            allowed = f"arrays and tables may be nested {DEEPEST} deep"
            raise kind.error(kind.what, f"{depth + dots} deep", allowed=allowed, where=Where(name, line))
        line += part.count("\n")


def json_of(data: str | bytes) -> Any:
    """Return what a text of JSON holds. Raises `ValueError` for what is none, and for nesting that is too deep."""
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    level = [found]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise ValueError(f"nested more than {DEEPEST} deep")
    return found


def decimal(text: str) -> float | None:
    """Return a finite decimal number, or None where the text is none."""
    text = text.strip()
    if len(text) > _LONGEST or not _DECIMAL.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None

"""Files and numbers that a user gives: one way to open the one and to read the other.

Only regular files are opened, so that a pipe does not wait for ever and a device does not fill the memory.
"""

from __future__ import annotations

import io
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from navsense.errors import NavsenseError, Where

LARGEST = 512 * 1024 * 1024
"""Bytes in a table of numbers: some ten million rows."""

EXPANSION, FREE = 100, 256 * 1024 * 1024
"""Packed data may unpack to so many times their size, and to so many bytes whatever their size."""

FOLDERS: Mapping[str, str] = {".csv": "navsense.json", ".db3": "metadata.yaml"}
"""Recordings that are written as NAME with a suffix and are a folder NAME: the file that makes it one, by suffix."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST = 400


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
    what, error, allowed, where = kind.what, kind.error, kind.allowed, Where(name)
    if not name:
        raise error(what, "has an empty name", allowed=allowed)
    try:
        state = Path(name).stat()
        if stat.S_ISDIR(state.st_mode):
            raise error(what, "is a folder", where=where, allowed=allowed, remedy="name the file in it")
        if not stat.S_ISREG(state.st_mode):
            raise error(what, "is a device or a pipe", where=where, allowed=allowed)
        add_input(name)
        data = b""
        if state.st_size <= most:
            with Path(name).open("rb") as file:
                data = file.read(state.st_size + 1)
    except FileNotFoundError as cause:
        raise error(what, "does not exist", where=where, allowed=allowed, remedy="check the path") from cause
    except OSError as cause:
        raise error(what, cause.strerror or str(cause), where=where, allowed=allowed) from cause
    except ValueError as cause:  # a null character in the name
        raise error(what, str(cause), where=where, allowed=allowed) from cause
    if max(state.st_size, len(data)) > most:
        raise error(what, "too large", where=where, allowed=limit or f"must be at most {most // 2**20} MiB")
    return data


def unpacks_too_far(size: int, packed: int, free: int = FREE) -> str:
    """Return what is wrong with packed data that declare `size` bytes unpacked; "" where that is plausible.

    Sensor data unpack to a few times their size; a file that is made to fill the memory unpacks to a thousand times.
    """
    if size <= max(free, EXPANSION * packed):
        return ""
    return f"unpacks from {packed} bytes to {size}; must be at most {EXPANSION} times as many, or {free >> 20} MiB"


def archive_unpacks_too_far(file: BinaryIO) -> str:
    """Return what is wrong with the sizes that a ZIP archive declares, "" where they are plausible.

    Raises `zipfile.BadZipFile` for what is no such archive.
    """
    import zipfile

    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
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


def lines(name: str, kind: Kind) -> list[str]:
    """Return the lines of a text file in UTF-8, whatever ends them. Raises the kind's error as `content` does."""
    try:
        text = content(name, kind).decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise kind.error(kind.what, "is not text", where=Where(name), allowed=kind.allowed)
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def text_lines(name: str, kind: Kind) -> Iterator[str]:
    """Yield the lines of a text file in UTF-8 without their ends, one by one; raises the kind's error as `content`."""
    data = content(name, kind)
    if b"\0" in data:
        raise kind.error(kind.what, "is not text", where=Where(name), allowed=kind.allowed)
    try:
        for line in io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig"):
            yield line.removesuffix("\n")
    except UnicodeDecodeError as cause:
        raise kind.error(kind.what, "is not text", where=Where(name), allowed=kind.allowed) from cause


def decimal(text: str) -> float | None:
    """Return a finite decimal number, or None where the text is none."""
    text = text.strip()
    if len(text) > _LONGEST or not _DECIMAL.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None

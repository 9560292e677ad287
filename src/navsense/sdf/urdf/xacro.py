"""Expansion of xacro: macros, properties and expressions in a URDF or SDF file.

xacro runs in its own process with limits on time and memory, because such a file is a program. The expanded elements
keep their file and line; elements of a macro have those of the macro.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from navsense.core import inputs
from navsense.core.errors import SdfError, Where
from navsense.sdf.context import Context
from navsense.sdf.search_path import SearchPath
from navsense.sdf.xml_reader import Element, parse_xml, read_content

TIMEOUT = 30.0
"""Longest time (s) of an expansion."""

MAX_MEMORY = 2 * 1024**3
"""Largest memory (bytes) of its process."""

_MARK = "navsense.at"
_PROGRAM = Path(__file__).with_name("xacro_process.py")


@dataclass(frozen=True)
class ExpandedXacro:
    """The root element after expansion, the files that were read, their size in bytes, and the arguments."""

    root: Element
    files: tuple[str, ...]
    size: int
    declared_arguments: frozenset[str]


def expand_xacro(
    context: Context, search: SearchPath, name: str, arguments: Mapping[str, str], max_size: int
) -> ExpandedXacro:
    """Return the expansion of a file of xacro.

    arguments: the values of its `<xacro:arg>`.
    max_size: the largest number of bytes that may be read.

    Warnings of xacro become notes. Raises `SdfError` for a file that cannot be read or expanded, and if xacro is not
    installed.
    """
    read_content(name, max_size)  # raises if it cannot be read
    request = {
        "file": name,
        "arguments": {key: str(value) for key, value in arguments.items()},
        "folders": [str(folder.absolute()) for folder in search.list_package_folders()],
        "max_size": max_size,
        "memory": MAX_MEMORY,
        "mark": _MARK,
    }
    answer = _run_expansion(name, json.dumps(request))
    files = tuple(answer["files"])
    for file in files:
        inputs.add_input(file)
    if "missing" in answer:
        remedy = "pip install 'navsense[xacro]', or expand the file: xacro FILE > robot.urdf"
        raise SdfError("xacro", answer["missing"], where=Where(name), allowed="must be installed", remedy=remedy)
    for text, mark in answer["warnings"]:
        context.add_note("warning", "xacro", text, _parse_mark(files, mark))
    if "error" in answer:
        what, value, allowed, remedy = answer["error"]
        raise SdfError(what, value, where=_parse_mark(files, answer["position"]), allowed=allowed, remedy=remedy)
    xml = answer["xml"].encode(errors="replace")
    try:
        root = parse_xml(xml, name)
    except SdfError as error:  # its line is not in the file
        error.where = Where(name)
        raise
    _restore_positions(root, files)
    return ExpandedXacro(root, files, len(xml), frozenset(answer["declared"]))


def _run_expansion(name: str, request: str) -> dict[str, Any]:
    """Return the answer of the process."""
    command = [sys.executable, "-P", str(_PROGRAM)]
    try:
        process = subprocess.run(  # noqa: S603 - our own program
            command,
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # an expression may print endlessly
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT,
            check=False,
        )
        answer: dict[str, Any] = json.loads(process.stdout)
    except subprocess.TimeoutExpired as error:
        allowed = f"must end within {TIMEOUT:g} s"
        raise SdfError("xacro", "did not end", where=Where(name), allowed=allowed) from error
    except (OSError, ValueError) as error:
        raise SdfError("xacro", "failed", where=Where(name), allowed="must expand to XML") from error
    return answer


def _parse_mark(files: tuple[str, ...], mark: str) -> Where:
    """Return the place of a mark; the first line of the file for an unknown mark."""
    number, _, line = mark.partition(":")
    if number.isdecimal() and line.isdecimal() and int(number) < len(files):
        return Where(files[int(number)], int(line))
    return Where(files[0])


def _restore_positions(root: Element, files: tuple[str, ...]) -> None:
    """Set the place of each element to that of its mark, else to that of its parent."""
    queue = [(root, Where(root.path, root.line))]
    while queue:
        element, parent_place = queue.pop()
        mark = element.attributes.get(_MARK)
        place = parent_place if mark is None else _parse_mark(files, mark)
        element.path, element.line = place.path, place.line
        element.attributes = {name: text for name, text in element.attributes.items() if name != _MARK}
        queue.extend((child, place) for child in element.children)

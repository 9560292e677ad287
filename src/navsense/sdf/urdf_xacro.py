"""xacro: macros, properties and expressions that a file of URDF (or SDF) is written with, expanded by that program.

It runs in a process of its own, with a limit on time and memory: such a file is a program. What comes back keeps the
file and line that each element was written in, that of the macro for what a macro makes.
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
"""Of an expansion."""

MAX_MEMORY = 2 * 1024**3
"""Bytes of its process."""

_MARK = "navsense.at"
_PROGRAM = Path(__file__).with_name("xacro_process.py")


@dataclass(frozen=True)
class ExpandedXacro:
    """The root element that a file expands to, the files that were read for it, how many bytes, and its arguments."""

    root: Element
    files: tuple[str, ...]
    size: int
    declared_arguments: frozenset[str]


def expand_xacro(
    context: Context, search: SearchPath, name: str, arguments: Mapping[str, str], max_size: int
) -> ExpandedXacro:
    """Return what a file of xacro expands to; `arguments` are those of its `<xacro:arg>`, `most` bytes may be read.

    Warnings of xacro's are noted. Raises `SdfError` for a file that cannot be read or expanded, and where xacro is not
    installed.
    """
    read_content(name, max_size)  # whether it can be read at all
    answer = _run_expansion(name, _encode_request(name, search, arguments, max_size))
    files = tuple(answer["files"])
    for file in files:
        inputs.add_input(file)
    if "missing" in answer:
        remedy = "pip install 'navsense[xacro]', or expand the file: xacro FILE > robot.urdf"
        raise SdfError("xacro", answer["missing"], where=Where(name), allowed="must be installed", remedy=remedy)
    for words, at in answer["warnings"]:
        context.add_note("warning", "xacro", words, _parse_mark(files, at))
    if "refused" in answer:
        what, value, allowed, remedy = answer["refused"]
        raise SdfError(what, value, where=_parse_mark(files, answer["at"]), allowed=allowed, remedy=remedy)
    xml = answer["xml"].encode(errors="replace")
    try:
        root = parse_xml(xml, name)
    except SdfError as error:  # its line is none of the file's
        error.where = Where(name)
        raise
    _restore_positions(root, files)
    return ExpandedXacro(root, files, len(xml), frozenset(answer["declared"]))


def _encode_request(name: str, search: SearchPath, arguments: Mapping[str, str], max_size: int) -> str:
    folders = [str(folder.absolute()) for folder in search.list_package_folders()]
    asked: dict[str, Any] = {
        "file": name,
        "arguments": {key: str(value) for key, value in arguments.items()},
        "folders": folders,
        "most": max_size,
        "memory": MAX_MEMORY,
        "mark": _MARK,
    }
    return json.dumps(asked)


def _run_expansion(name: str, request: str) -> dict[str, Any]:
    """Return what the program says."""
    command = [sys.executable, "-P", str(_PROGRAM)]
    try:
        ran = subprocess.run(  # noqa: S603 - our own program
            command,
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # an expression may print without end
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT,
            check=False,
        )
        answer: dict[str, Any] = json.loads(ran.stdout)
    except subprocess.TimeoutExpired as error:
        allowed = f"must end within {TIMEOUT:g} s"
        raise SdfError("xacro", "runs on", where=Where(name), allowed=allowed) from error
    except (OSError, ValueError) as error:
        raise SdfError("xacro", "broke off", where=Where(name), allowed="must expand to XML") from error
    return answer


def _parse_mark(files: tuple[str, ...], at: str) -> Where:
    """Return the place that a mark names; of one that is not ours, the whole file."""
    number, _, line = at.partition(":")
    if number.isdecimal() and line.isdecimal() and int(number) < len(files):
        return Where(files[int(number)], int(line))
    return Where(files[0])


def _restore_positions(root: Element, files: tuple[str, ...]) -> None:
    """Give each element the place in its mark, or else that of the element around it."""
    queue = [(root, Where(root.path, root.line))]
    while queue:
        element, around = queue.pop()
        mark = element.attributes.get(_MARK)
        place = around if mark is None else _parse_mark(files, mark)
        element.path, element.line = place.path, place.line
        if mark is not None:
            element.attributes = {name: text for name, text in element.attributes.items() if name != _MARK}
        queue.extend((child, place) for child in element.children)

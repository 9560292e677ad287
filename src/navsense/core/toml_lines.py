"""TOML files with the line of each key, for errors: `tomllib` returns values without their places."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from navsense.core.inputs import MAX_TOML, FileKind, read_bytes, read_toml

KeyPath = tuple[str | int, ...]
"""Names of tables and of a key; the number of a table in an array of tables."""

_TOKENS = re.compile(
    r'"""(?:\\.|[^\\])*?"""' + r"|'''.*?'''" + r'|"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|#[^\n]*|[\[\]{}=\n]", re.DOTALL
)
"""Strings, comments, brackets, equals signs and line ends."""


def read_toml_lines(name: str, kind: FileKind) -> tuple[dict[str, Any], Mapping[KeyPath, int]]:
    """Return the tables of a TOML file, and the line of each table and key. Raises the errors of `read_toml`."""
    tables = read_toml(name, kind)
    text = read_bytes(name, kind, MAX_TOML).decode("utf-8-sig")
    return tables, dict(_list_lines(text.replace("\r\n", "\n")))


def _list_lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield path and line of each table and key of a valid TOML text."""
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    for line, statement, equals in _split_statements(text):
        if equals is None:
            names = _parse_names(statement.strip("[] \t"))
            table = names
            if statement.startswith("[["):
                counts[names] = counts.get(names, -1) + 1
                table = (*names, counts[names])
            else:  # a table below an element of an array of tables
                for length in range(1, len(names)):
                    if names[:length] in counts:
                        table = (*names[:length], counts[names[:length]], *names[length:])
            yield table, line
        else:
            yield (*table, *_parse_names(statement[:equals])), line


def _split_statements(text: str) -> Iterator[tuple[int, str, int | None]]:
    """Yield line and text of each statement, and the index of its equals sign; None for the header of a table."""
    line, start, depth, equals, first = 1, 0, 0, None, 1
    for match in _TOKENS.finditer(f"{text}\n"):
        part = match[0]
        depth += (part in "[{") - (part in "]}")
        if part == "=" and depth == 0 and equals is None:
            equals = match.start()
        if part == "\n" and depth == 0:
            statement = text[start : match.start()]
            stripped = statement.lstrip()
            if stripped and not stripped.startswith("#"):
                begin = start + len(statement) - len(stripped)
                yield first, _strip_comment(stripped, equals), None if equals is None else equals - begin
            start, equals, first = match.end(), None, line + 1
        line += part.count("\n")


def _strip_comment(statement: str, equals: int | None) -> str:
    """Return the header of a table without a comment behind it; other statements unchanged."""
    if equals is not None:
        return statement
    for match in _TOKENS.finditer(statement):
        if match[0].startswith("#"):
            return statement[: match.start()].rstrip()
    return statement


def _parse_names(text: str) -> tuple[str, ...]:
    """Return the parts of a dotted key."""
    value: Any = tomllib.loads(f"{text} = 0")
    names = []
    while isinstance(value, dict):
        name = next(iter(value))
        names.append(name)
        value = value[name]
    return tuple(names)

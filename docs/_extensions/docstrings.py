"""Sphinx extension: writes the pages of the Python API, and turns the docstrings of navsense into reStructuredText.

The docstrings have single backquotes for code, lists of fields as `name: text`, indented formulas, and Markdown tables.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

MODULES = {
    "navsense": "Worlds and runs",
    "navsense.sensors": "Sensors",
    "navsense.noise": "Noise",
    "navsense.clock": "Clocks",
    "navsense.faults": "Faults",
    "navsense.motion": "Motion",
    "navsense.environment": "Environment",
    "navsense.recordings": "Recordings",
    "navsense.streams": "Streams",
    "navsense.calibration": "Calibration",
    "navsense.factors": "Factors",
    "navsense.factors.blocks": "Factors in batches",
    "navsense.analysis": "Analysis",
    "navsense.report": "Report",
    "navsense.picture": "Pictures",
    "navsense.testing": "Testing",
    "navsense.core.errors": "Errors",
}
"""The public modules, with the titles of their pages."""

FIELD = re.compile(r"((?:`?[A-Za-z_][\w.]*(?:\[\w+\])?`?)(?:, `?_?[A-Za-z_][\w.]*`?)*): (\S.*)")
CODE = re.compile(r"(``.+?``|`[^`]+`)")


def format_inline(text: str) -> str:
    """Return a line of a docstring with its code marked, and other special characters escaped."""
    parts = CODE.split(text)
    for index, part in enumerate(parts):
        if index % 2:
            parts[index] = part if part.startswith("``") else f"`{part}`"
        else:
            parts[index] = re.sub(r"([*|\\])|(?<=\w)(_)(?!\w)", r"\\\1\2", part)
    return "".join(parts)


def split_fields(lines: list[str]) -> list[tuple[str, list[str]]] | None:
    """Return the names and texts of a paragraph that is a list of fields; None for other paragraphs."""
    fields: list[tuple[str, list[str]]] = []
    for line in lines:
        found = FIELD.fullmatch(line)
        if found is not None:
            fields.append((found[1].replace("`", ""), [found[2]]))
        elif fields:
            fields[-1][1].append(line.strip())
        else:
            return None
    return fields


def format_table(lines: list[str]) -> Iterator[str]:
    """Yield a Markdown table as a list table."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    for row in [rows[0], *rows[2:]]:
        for number, cell in enumerate(row):
            yield f"   {'  ' if number else '* '}- {format_inline(cell)}".rstrip()
    yield ""


def format_list(lines: list[str]) -> Iterator[str]:
    """Yield a list, with a paragraph before it."""
    items: list[str] = []
    for line in lines:
        if re.match(r"(-|\d+\.) ", line):
            if not items or not re.match(r"(-|\d+\.) ", items[0]):
                yield from items
                yield ""
                items = []
            items.append(format_inline(line))
        elif items and re.match(r"(-|\d+\.) ", items[0]):
            items[-1] += " " + format_inline(line.strip())
        else:
            items.append(format_inline(line))
    yield from items
    yield ""


def format_paragraph(lines: list[str]) -> Iterator[str]:
    """Yield a paragraph of a docstring as reStructuredText."""
    if all(line.startswith("    ") for line in lines):
        yield "::"
        yield ""
        yield from lines
        yield ""
    elif all(line.startswith("|") for line in lines):
        yield from format_table(lines)
    elif (fields := split_fields(lines)) is not None:
        for name, text in fields:
            yield f"- ``{name}``: {format_inline(' '.join(text))}"
        yield ""
    elif any(re.match(r"(-|\d+\.) ", line) for line in lines):
        yield from format_list(lines)
    else:
        yield from (format_inline(line.strip()) for line in lines)
        yield ""


def format_docstring(lines: list[str]) -> list[str]:
    """Return a docstring as reStructuredText."""
    result: list[str] = []
    paragraph: list[str] = []
    for line in [*lines, ""]:
        indented = line.startswith("    ") and bool(line.strip())
        if paragraph and indented and not paragraph[0].startswith("    ") and paragraph[-1].endswith(":"):
            result.extend(format_paragraph(paragraph))  # a formula without an empty line before it
            paragraph = []
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            if paragraph[-1].endswith("::"):
                paragraph[-1] = paragraph[-1][:-1]
            result.extend(format_paragraph(paragraph))
            paragraph = []
    return result


def convert_docstring(_app: Sphinx, _kind: str, _name: str, _member: Any, _options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring (event `autodoc-process-docstring`)."""
    lines[:] = format_docstring(lines)


def list_public_names(module: Any) -> list[str]:
    """Return the public names of a module: those of `__all__`, else those that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    members = inspect.getmembers(module, lambda member: inspect.isclass(member) or inspect.isfunction(member))
    return [name for name, member in members if not name.startswith("_") and member.__module__ == module.__name__]


def format_module(name: str, title: str) -> str:
    """Return the page of a module."""
    module = importlib.import_module(name)
    lines = [title, "=" * len(title), "", f".. automodule:: {name}", "   :no-members:", ""]
    for member_name in list_public_names(module):
        member = getattr(module, member_name)
        if inspect.ismodule(member):
            continue
        full_name = f"{name}.{member_name}"
        if inspect.isclass(member):
            lines += [f".. autoclass:: {full_name}", "   :members:", ""]
        elif callable(member):
            lines += [f".. autofunction:: {full_name}", ""]
        else:
            lines += [f".. autodata:: {full_name}", "   :no-value:", ""]
    return "\n".join(lines) + "\n"


def write_pages(app: Sphinx) -> None:
    """Write a page for each public module (event `builder-inited`)."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    for name, title in MODULES.items():
        path = folder / f"{name}.rst"
        text = format_module(name, title)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", convert_docstring)
    return {"parallel_read_safe": True}

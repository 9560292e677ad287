"""`tools/code_lines.py` counts lines by its published rule."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def code_lines() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        yield importlib.import_module("code_lines")
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("", 0),
        ("\n   \n\t\n", 0),
        ("# a comment\nx = 1  # and code\n", 1),
        ('"""A module."""\n', 0),
        ('"""A module\n\nof three lines."""\nx = 1\n', 1),
        ('class A:\n    """A class."""\n\n    x: int = 1\n    """An attribute."""\n', 2),
        ('def f() -> str:\n    """Return."""\n    return "a"\n', 2),
        ('async def f() -> None:\n    """A docstring\n    of two lines."""\n', 1),
        ('x = """one\n\nthree\n"""\n', 3),
        ('f("""one\n# two\n""")\n', 3),
        ('"""No docstring""" + x\n', 1),
        ('b"""Bytes\nare code."""\n', 2),
        ("x = (\n    1,\n    # nothing\n\n    2,\n)\n", 4),
        ("x = 1; y = 2\n", 1),
        ("x = 1 + \\\n    2\n", 2),
        ('x = 1\f\ny = "\u2028"\n', 2),
    ],
)
def test_code_lines_exclude_blanks_comments_and_docstrings(code_lines: Any, source: str, count: int) -> None:
    assert code_lines.count_code_lines(source) == count


def test_folders_and_modules_are_counted_separately(code_lines: Any) -> None:
    sources = {"a.py": "x = 1\n", "b/c.py": "x = 1\ny = 2\n", "b/d/e.py": "x = 1\n"}
    assert code_lines.count_per_folder(sources) == {".": 1, "b": 3}


def test_every_file_of_the_package_is_counted(code_lines: Any) -> None:
    sources = code_lines.read_working_tree("src/navsense")
    assert set(sources) == {p.relative_to(ROOT / "src/navsense").as_posix() for p in ROOT.glob("src/navsense/**/*.py")}
    part = {path: source for path, source in sources.items() if path.startswith("core/")}
    assert code_lines.count_per_folder(part).total() == sum(map(code_lines.count_code_lines, part.values())) > 0

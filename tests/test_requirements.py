"""The list of requirements and the tests agree."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements_tool", ROOT / "tools" / "requirements.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the module of their annotations
    spec.loader.exec_module(module)
    return module


tool = load_tool()


def read_rows() -> dict[str, str]:
    _, sections = tool.read_table()
    return {row.id: row.text for section in sections.values() for row in section}


def test_every_row_named_by_a_test_is_in_the_table() -> None:
    known = read_rows()
    unknown = [f"{claim.test} names {claim.row}" for claim in tool.find_all_claims() if claim.base not in known]
    assert not unknown, "rows that docs/requirements.toml does not hold:\n" + "\n".join(unknown)


def test_every_requirement_marker_is_found(collected_rows: frozenset[str]) -> None:
    assert collected_rows <= {claim.row for claim in tool.find_all_claims()}


def test_page_is_up_to_date() -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run `make requirements`"


def test_rows_have_text_and_source() -> None:
    sources, sections = tool.read_table()
    rows = [row for section in sections.values() for row in section]
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        assert 10 < len(row.text) < 120, row.id
        assert set(row.source.split()) <= set(sources), row.id


def test_row_without_a_test_is_open() -> None:
    _, sections = tool.read_table()
    proved = {claim.base for claim in tool.find_all_claims()}
    unproved = [row.id for section in sections.values() for row in section if not row.open and row.id not in proved]
    assert not unproved, "rows that no test names and that are not open: " + ", ".join(unproved)


def test_table_contains_the_rows_of_the_requirement_list(shared_data: Path) -> None:
    shared = (shared_data.parent / "REQUIREMENTS.md").read_text(encoding="utf-8")
    cells = (line.split("|")[1] for line in shared.splitlines() if line.startswith("| ") and "-" in line.split("|")[1])
    ids = {cell.replace("**+**", "").strip() for cell in cells}
    assert ids == set(read_rows())


def test_markers_are_read_at_every_level() -> None:
    text = """
import pytest
pytestmark = [pytest.mark.requirement("A-1")]
@pytest.mark.requirement("B-1", "B-2:part")
class TestThing:
    @pytest.mark.requirement("C-1")
    def test_inner(self): ...
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("D-1"))])
def test_outer(x): ...
"""
    found = {(claim.row, claim.base, claim.test) for claim in tool.find_claims(ast.parse(text), "t.py")}
    assert found == {
        ("A-1", "A-1", "t.py"),
        ("B-1", "B-1", "t.py::TestThing"),
        ("B-2:part", "B-2", "t.py::TestThing"),
        ("C-1", "C-1", "t.py::TestThing::test_inner"),
        ("D-1", "D-1", "t.py::test_outer"),
    }


def test_unreadable_mark_is_an_error() -> None:
    tree = ast.parse("@pytest.mark.requirement(ROW)\ndef test_it(): ...\n")
    with pytest.raises(tool.UnreadableMarkError, match="plain strings"):
        list(tool.find_claims(tree, "t.py"))

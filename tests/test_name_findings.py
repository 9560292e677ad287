"""`tools/name_findings.py` lists names by its published rules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

SOURCES = {
    "__init__.py": "",
    "sheet/told.py": """
from sheet.beams import turned

class Column:
    def __enter__(self):
        return self

    @property
    def stated(self):
        return turned(self)

    def _popped(self):
        def of(x):
            return x
        return of(self._popped)

class _Walked:
    def heard_of(self):
        return 1
""",
    "sheet/beams.py": '''
class Column:
    """A column."""

def turned(x):
    heard = x
    return heard

def unheard(x):
    return turned(x)

def of(x):
    return x

def at_start(x):
    return x

def open(seed):
    return seed

def turned_by(x):
    return x
''',
}


@pytest.fixture(scope="module")
def tool() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        yield importlib.import_module("name_findings")
    finally:
        sys.path.remove(str(ROOT / "tools"))


def find_names(tool: Any, section: str) -> dict[str, int]:
    return {finding.name: finding.uses for finding in tool.find_names(SOURCES) if finding.section == section}


def test_classes_with_the_same_name_are_found(tool: Any) -> None:
    (finding,) = [finding for finding in tool.find_names(SOURCES) if finding.section == tool.DUPLICATE]
    assert finding.name == "Column"
    assert [(definition.path, definition.line) for definition in finding.definitions] == [
        ("sheet/told.py", 4),
        ("sheet/beams.py", 2),
    ]


def test_bare_participles_and_prepositions_are_found_with_their_uses(tool: Any) -> None:
    assert find_names(tool, tool.BARE) == {"turned": 3, "_popped": 1, "of": 1, "unheard": 0, "stated": 0}


def test_definitions_are_classified_by_kind(tool: Any) -> None:
    kinds = {
        finding.name: finding.definitions[0].kind
        for finding in tool.find_names(SOURCES)
        if finding.section == tool.BARE
    }
    assert kinds["stated"] == "property"
    assert kinds["_popped"] == "method"
    assert kinds["turned"] == "function"


def test_vague_words_are_found_in_modules_classes_and_public_functions(tool: Any) -> None:
    assert set(find_names(tool, tool.VAGUE_NAME)) == {"told", "_Walked", "of", "at_start"}


def test_most_used_names_come_first(tool: Any) -> None:
    for section in tool.SECTIONS:
        uses = list(find_names(tool, section).values())
        assert uses == sorted(uses, reverse=True)


@pytest.mark.parametrize("word", ["turned", "unfelt", "written", "foretold", "misunderstood", "rebuilt", "lit"])
def test_participles_are_recognised(tool: Any, word: str) -> None:
    assert tool.is_participle(word)


@pytest.mark.parametrize("word", ["turn", "cut", "read", "open", "den", "string", "understand", "_seed"])
def test_other_words_are_no_participles(tool: Any, word: str) -> None:
    assert not tool.is_participle(word)


def test_every_exception_is_needed(tool: Any) -> None:
    definitions = (
        definition.name.strip("_")
        for path, source in tool.read_sources("src/navsense").items()
        for definition in tool.find_definitions(path, tool.ast.parse(source).body, in_class=False, is_public=True)
        if definition.kind in tool.FUNCTIONS
    )
    assert set(tool.ALLOWED) <= set(definitions)
    assert all(
        reason and (word in tool.PREPOSITIONS or word.endswith(("ed", "en"))) for word, reason in tool.ALLOWED.items()
    )


def test_package_has_no_finding(tool: Any) -> None:
    """Class names are unique. No name is a bare participle or preposition or contains a vague word."""
    found = tool.find_names(tool.read_sources(tool.PACKAGE))
    assert [f"{finding.section}: {finding.name} in {finding.definitions[0].path}" for finding in found] == []

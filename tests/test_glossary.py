"""`docs/glossary.md` is short and sorted."""

from __future__ import annotations

import re
from pathlib import Path

GLOSSARY = Path(__file__).resolve().parent.parent / "docs" / "glossary.md"

ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)[1:]
"""Term and meaning of each row."""

LONGEST_MEANING = 20
"""Words of a meaning, at most."""


def test_terms_are_sorted_and_stand_once() -> None:
    terms = [term for term, _ in ROWS]
    assert len(terms) > 50
    assert terms == sorted(set(terms), key=str.lower)


def test_meanings_are_short() -> None:
    assert [term for term, meaning in ROWS if len(meaning.split()) > LONGEST_MEANING] == []

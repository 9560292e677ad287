"""The glossary is short and sorted; each parameter of a public spec is documented where it is defined."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import navsense.environment
from navsense.sensors import SENSORS

GLOSSARY = Path(__file__).resolve().parent.parent / "docs" / "reference" / "glossary.md"

ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)[1:]
"""Term and meaning of each row."""

LONGEST_MEANING = 20
"""Maximum number of words in a meaning."""


def list_spec_classes() -> list[type]:
    """Return the specs of all sensors and the public dataclasses of the environment."""
    found: list[type] = list(SENSORS)
    for module in pkgutil.walk_packages(navsense.environment.__path__, "navsense.environment."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            members = vars(importlib.import_module(module.name)).values()
            local = [member for member in members if isinstance(member, type) and member.__module__ == module.name]
            found += [
                member for member in local if dataclasses.is_dataclass(member) and not member.__name__.startswith("_")
            ]
    return found


def is_documented(name: str, text: str) -> bool:
    """True if a docstring contains a parameter, in full or as the first of a group `x_y, _z`."""
    group = re.sub(r"_[xyz]$", "", name)
    return re.search(rf"\b{name}\b|\b{group}_x`?, `?_y`?, `?_z\b", text) is not None


def test_terms_are_sorted_and_unique() -> None:
    terms = [term for term, _ in ROWS]
    assert len(terms) > 50
    assert terms == sorted(set(terms), key=str.lower)


def test_meanings_are_short() -> None:
    assert [term for term, meaning in ROWS if len(meaning.split()) > LONGEST_MEANING] == []


@pytest.mark.parametrize("spec", list_spec_classes(), ids=lambda spec: str(spec.__qualname__))
def test_every_parameter_is_documented(spec: type) -> None:
    text = f"{spec.__doc__} {sys.modules[spec.__module__].__doc__}"
    names = [field.name for field in dataclasses.fields(spec) if field.init and not field.name.startswith("_")]
    assert [name for name in names if not is_documented(name, text)] == []


def test_undocumented_parameter_is_found() -> None:
    assert is_documented("rate", "rate: samples per second")
    assert is_documented("field_y", "`field_x`, `_y`, `_z`: the noise of each axis")
    assert not is_documented("rate", "update_rate: samples per second")
    assert not is_documented("field_y", "field_x: the noise of one axis")

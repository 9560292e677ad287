"""`docs/vocabulary.md` is normative: a word stands for one thing, and public parameters are words of it."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import navsense.environment
from navsense.sensors import SENSORS

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "vocabulary.md").read_text(encoding="utf-8")
QUOTED = " ".join(re.findall(r"`([^`]+)`", TEXT))


def tables() -> Iterator[list[str]]:
    """Yield the words that each table explains."""
    for block in re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE):
        heads = [line.split("|")[1].strip() for line in block.splitlines()[2:]]
        yield [word.strip() for head in heads for word in head.split(",")]


def known(name: str) -> bool:
    """Return whether a name is among the words, written out or as the beginning or the end of several."""
    words = re.findall(r"\w+", QUOTED)
    begun = [word for word in re.findall(r"(\w+_)\.\.\.", QUOTED) if name.startswith(word)]
    ended = [word for word in words if re.fullmatch(r"_[a-z]", word) and name.endswith(word)]
    return name in words or bool(begun) or any(f"{name.removesuffix(end)}_x" in words for end in ended)


def sheets() -> list[type]:
    """Return the public dataclasses of surroundings and the data sheets of sensors."""
    found: list[type] = list(SENSORS)
    for module in pkgutil.walk_packages(navsense.environment.__path__, "navsense.environment."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            made = vars(importlib.import_module(module.name)).values()
            own = [one for one in made if isinstance(one, type) and one.__module__ == module.name]
            found += [one for one in own if dataclasses.is_dataclass(one) and not one.__name__.startswith("_")]
    return found


def test_a_word_is_explained_once() -> None:
    twice = [word for table in tables() for word, count in Counter(table).items() if count > 1]
    assert not twice


@pytest.mark.parametrize("sheet", sheets(), ids=lambda sheet: str(sheet.__qualname__))
def test_public_parameters_are_words(sheet: type) -> None:
    names = [one.name for one in dataclasses.fields(sheet) if one.init and not one.name.startswith("_")]
    assert [name for name in names if not known(name)] == []


def test_what_is_no_word_is_seen() -> None:
    assert not known("vertical")
    assert not known("linear_velocity_y")
    assert known("vertical_samples")
    assert known("linear_acceleration_z")

"""The keys of all random streams equal the golden keys; `python tools/stream_keys.py` writes them."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from navsense.core.random_streams import Draws, RandomProcess
from navsense.sensors import SENSORS

TOOLS = Path(__file__).resolve().parent.parent / "tools"


@cache
def load_tool() -> ModuleType:
    sys.path.insert(0, str(TOOLS))
    try:
        return importlib.import_module("stream_keys")
    finally:
        sys.path.remove(str(TOOLS))


@pytest.mark.requirement("NOI-2")
def test_keys_equal_the_golden_keys() -> None:
    """A changed key changes every number of its stream."""
    golden, found = load_tool().read_keys(), load_tool().list_keys()
    assert golden.keys() == found.keys()
    for name, expected in golden.items():
        assert found[name] == expected, name


def test_golden_keys_contain_every_kind_of_stream() -> None:
    golden = load_tool().read_keys()
    assert {
        f"{case}/{kind.type}{end}" for kind in SENSORS for case, end in (("apply", ""), ("example", "/classic"))
    } <= (golden.keys())
    owners = {start[1] for keys in golden.values() for start in keys}
    assert owners == {"sensor", "clock", "stamp", "current", "fault", "latency", "reading"}


def test_keys_contain_no_python_name() -> None:
    """No part of a key is the name of a sensor class or a module."""
    classes = {kind.__name__ for kind in SENSORS} | {kind.__qualname__ for kind in SENSORS}
    for keys in load_tool().read_keys().values():
        for start, channels in keys.items():
            for part in (*start, *channels, *(process for processes in channels.values() for process in processes)):
                assert part not in classes
                assert "navsense" not in str(part)


def test_process_names_are_in_the_list() -> None:
    """The test lists every name so that the comparison with the file can fail."""
    found = []
    for name in ("white", "renamed"):
        with load_tool().record_keys() as keys:
            Draws((RandomProcess("field.x", name),), 1, (2, "sensor", "compass"))
        found.append(load_tool().group_keys(keys))
    assert found[0] == {(2, "sensor", "compass"): {"field.x": ["white"]}}
    assert found[1] == {(2, "sensor", "compass"): {"field.x": ["renamed"]}}

"""Descriptions and error texts of world files equal the golden texts.

`python tools/golden_sdf.py` writes them.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from types import ModuleType

TOOL = Path(__file__).resolve().parents[2] / "tools" / "golden_sdf.py"


@cache
def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_sdf_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_descriptions_and_error_texts_equal_the_golden_texts() -> None:
    """After an intended change of a text, run the tool again."""
    golden, found = json.loads(load_tool().GOLDEN.read_text(encoding="utf-8")), load_tool().make_golden()
    for part, texts in golden.items():
        assert found[part] == texts


def test_file_with_every_navsense_element_has_no_problem() -> None:
    assert load_tool().list_problems(load_tool().OWN_ELEMENTS) == []

"""The readings of one seed equal the golden readings; `python tools/golden.py` writes them."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from navsense.sensors import SENSORS
from navsense.sensors.base import Sensor

TOOL = Path(__file__).resolve().parent.parent / "tools" / "golden.py"

SHARE = 1e-12
"""Tolerance as a share of the largest number of an array: other machines round sines and roots differently.

A difference of two large numbers has their absolute error, so the share is of the array and not of each number.
"""

SOURCE = {"truth.error_velocity": "truth.beam_velocity"}
"""Arrays of differences that can all be zero, and the array whose numbers they subtract: its size sets the rounding."""


@cache
def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SILENT = {
    ("adcp", "physical"): {"reading.error_velocity"},
}
"""Arrays without a number: no ensemble of the example has four beams in one cell."""


@pytest.mark.requirement("NOI-2", "NOI-3", "NOI-4", "NOI-5")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
@pytest.mark.parametrize("kind", SENSORS, ids=lambda kind: kind.type)
def test_readings_of_the_seed_equal_the_golden_readings(kind: type[Sensor], fidelity: str) -> None:
    """Every array of a run of the example spec is compared. After an intended change, run the tool again."""
    golden, found = load_tool().read_golden(kind)[fidelity], load_tool().simulate_example(kind, fidelity)
    assert golden.keys() == found.keys()
    for name, expected in golden.items():
        for part in ("finite", "rows", "columns"):
            assert found[name][part].tolist() == expected[part].tolist(), f"{name}: {part}"
        values = expected["values"]
        sizes = np.concatenate((values.ravel(), golden[SOURCE.get(name, name)]["values"].ravel()))
        slack = SHARE * np.abs(sizes[np.isfinite(sizes)]).max(initial=0.0)
        ours = found[name]["values"].reshape(values.shape)
        np.testing.assert_allclose(ours, values, rtol=0.0, atol=slack, err_msg=name)


@pytest.mark.parametrize("fidelity", ["physical", "classic"])
@pytest.mark.parametrize("kind", SENSORS, ids=lambda kind: kind.type)
def test_golden_readings_have_numbers_of_every_array(kind: type[Sensor], fidelity: str) -> None:
    golden = load_tool().read_golden(kind)[fidelity]
    assert {name for name, rows in golden.items() if not rows["finite"][0]} == SILENT.get((kind.type, fidelity), set())
    assert {f"reading.{output.name}" for output in kind.example_spec().outputs} <= golden.keys()
    assert len(np.unique(golden["error.clock"]["values"])) == load_tool().MAX_SAMPLES

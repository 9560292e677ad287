"""Makes the module `bags.py` available to the tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def bags() -> ModuleType:
    spec = importlib.util.spec_from_file_location("calibration_bags", Path(__file__).with_name("bags.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def bag(bags: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bag with an IMU, a magnetometer and their static transforms."""
    return bags.record(bags.BagContent(tmp_path_factory.mktemp("bag") / "drive"))

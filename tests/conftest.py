"""Fixtures and settings of all tests: third-party data, requirement markers, profiles of Hypothesis."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import settings

from navsense.core.kernels import INTERPRETED

# The first compilation of a process is logged once, in whichever test it happens.
logging.getLogger("navsense.core.kernels").setLevel(logging.ERROR)

ROOT = Path(__file__).resolve().parent.parent
ROWS = pytest.StashKey[frozenset[str]]()

# No deadline: timing depends on the machine. Continuous integration uses the same examples in each run.
settings.register_profile("person", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "person")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Store the requirement rows that the collected tests name; skip `compiled` tests in interpreted runs."""
    marks = (mark for item in items for mark in item.iter_markers("requirement"))
    config.stash[ROWS] = frozenset(str(row) for mark in marks for row in mark.args)
    for item in items:
        if INTERPRETED and item.get_closest_marker("compiled"):
            item.add_marker(pytest.mark.skip(reason="too slow or meaningless without compilation"))


@pytest.fixture(scope="session")
def collected_rows(pytestconfig: pytest.Config) -> frozenset[str]:
    """Return the requirement rows that the tests of this session name."""
    return pytestconfig.stash[ROWS]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of third-party files next to the repository; skip the test if it is missing."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data, third-party files that are not part of the repository")
    return folder


@pytest.fixture(scope="session", params=["own", "others"])
def example_data(request: pytest.FixtureRequest) -> Path:
    """Return a folder of worlds, models and tables: `tests/worlds`, then the original third-party files.

    The second parameter is skipped if the third-party files are missing.
    """
    if request.param == "own":
        return ROOT / "tests" / "worlds"
    return Path(request.getfixturevalue("shared_data"))


@pytest.fixture
def two_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """Return a module with the kernels `first` (x) and `second` (2 x), which are not compiled: the cache is empty."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    name = re.sub(r"\W", "_", f"kernels_of_{request.node.name}")
    (tmp_path / f"{name}.py").write_text(
        "from navsense.core.kernels import kernel\n\n"
        "@kernel\ndef first(x: float) -> float:\n    return x\n\n"
        "@kernel\ndef second(x: float) -> float:\n    return 2.0 * x\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    return import_module(name)


@pytest.fixture(autouse=True)
def use_default_signals() -> Iterator[None]:
    """Do not ignore stop signals, also if the parent process does: `nohup`, or a job in the background of a script."""
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    ignored = [number for number in defaults if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, defaults[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def load_example() -> Callable[[str], ModuleType]:
    """Return a function that imports a module of `examples/` by name."""

    def load_module(name: str) -> ModuleType:
        spec = spec_from_file_location(f"{name}_example", ROOT / "examples" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load_module


def find_python_function(kernel: Any) -> Callable[..., Any]:
    """Return the Python function of a kernel, with all kernels that it calls replaced by their Python functions."""
    function = getattr(kernel, "py_func", kernel)
    names = {
        name: find_python_function(function.__globals__[name])
        for name in function.__code__.co_names
        if hasattr(function.__globals__.get(name), "py_func")
    }
    return FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)


@pytest.fixture(scope="session")
def interpret() -> Callable[[Any], Callable[..., Any]]:
    """Return a function that turns a kernel into the same code without compilation."""
    return find_python_function

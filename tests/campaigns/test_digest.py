"""The digest of values, and of `reduce` with all code of the user that it calls."""

from __future__ import annotations

import functools
import importlib
import io
import linecache
import logging
import os
import re
import subprocess
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest

from navsense.campaigns.digest import Digest
from navsense.core.errors import SimulationError

HELPER = {"digest_helper.py": "def compute(): return 1\n"}, {"digest_helper.py": "def compute(): return 22\n"}


def compute_digest(folder: Path, files: Mapping[str, str]) -> str:
    """Return the digest of `reduce` in the module `digest_user` of these files, as a new process would."""
    for name, text in files.items():
        (folder / name).write_text(text)
    for name in [name for name in sys.modules if name.startswith("digest_")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    linecache.clearcache()
    digest = Digest()
    digest.add(importlib.import_module("digest_user").reduce)
    return digest.hexdigest()


USERS = {
    "function": """
from digest_helper import compute
def reduce(run): return compute()
""",
    "module": """
import digest_helper
def reduce(run): return digest_helper.compute()
""",
    "import inside": """
def reduce(run):
    import digest_helper
    return digest_helper.compute()
""",
    "import of a module": """
import digest_middle
def reduce(run): return digest_middle.compute()
""",
    "object": """
from digest_helper import compute
class Filter:
    def __call__(self, run): return compute()
reduce = Filter()
""",
    "class": """
from digest_helper import compute
class Filter:
    def update(self): return compute()
def reduce(run): return Filter().update()
""",
    "method": """
from digest_helper import compute
class Filter:
    def reduce(self, run): return self.update()
    def update(self): return compute()
reduce = Filter().reduce
""",
    "decorator": """
import functools
from digest_helper import compute
def decorate(function):
    @functools.wraps(function)
    def call(run): return compute()
    return call
@decorate
def reduce(run): return 1
""",
}
"""Modules with a function `reduce` that calls `digest_helper.compute`, by how they refer to it."""

PACKAGE_USERS = {
    "module of a folder": """
import digest_folder.helper
def reduce(run): return digest_folder.helper.compute()
""",
    "from a folder": """
def reduce(run):
    from digest_folder import helper
    return helper.compute()
""",
    "member of a module of a folder": """
def reduce(run):
    from digest_folder.helper import compute
    return compute()
""",
    "from a package": """
def reduce(run):
    from digest_package import helper
    return helper.compute()
""",
    "relative": """
from digest_package.user import reduce
""",
}
"""The same for a folder, and for a package, with the module `helper`."""


@pytest.mark.requirement("CAM-1")
@pytest.mark.parametrize("user", PACKAGE_USERS)
def test_changed_code_in_a_package_changes_the_digest(
    user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("digest_folder", "digest_package"):
        (tmp_path / name).mkdir()
    relative = "def reduce(run):\n    from .helper import compute\n    return compute()\n"
    files = {
        "digest_user.py": PACKAGE_USERS[user],
        "digest_package/__init__.py": "",
        "digest_package/user.py": relative,
    }
    digests = []
    for number in (1, 22, 1):
        text = f"def compute(): return {number}\n"
        helpers = {"digest_folder/helper.py": text, "digest_package/helper.py": text}
        digests.append(compute_digest(tmp_path, files | helpers))
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.requirement("CAM-1")
def test_digest_is_that_of_the_code_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that a program set, and code that an editor changed after it was imported."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    user = "import digest_helper\nfrom digest_helper import Config, compute\n"
    user += "def reduce(run): return compute() * digest_helper.GAIN * Config.gain\n"
    helper = "GAIN = 1\nOTHER = 1\nclass Config:\n    gain = 1\ndef compute(): return 1\n"
    first = compute_digest(tmp_path, {"digest_user.py": user, "digest_helper.py": helper})
    reduce, module = sys.modules["digest_user"].reduce, sys.modules["digest_helper"]
    assert compute_value_digest(reduce) == first
    module.OTHER = 2  # type: ignore[attr-defined]
    assert compute_value_digest(reduce) == first
    module.GAIN = 2  # type: ignore[attr-defined]
    second = compute_value_digest(reduce)
    module.Config.gain = 3
    third = compute_value_digest(reduce)
    (tmp_path / "digest_helper.py").write_text(helper.replace("return 1", "return 2"))
    fourth = compute_value_digest(reduce)
    assert len({first, second, third, fourth}) == 4
    module.GAIN = module.Config.gain = 1  # type: ignore[attr-defined]
    assert compute_value_digest(reduce) != compute_digest(tmp_path, {})


def add_one(value: float) -> float:
    """Return the value plus one."""
    return value + 1.0


DIFFERENT_VALUES = {
    "functions of a line": [lambda: 1, lambda: 2, lambda: 1.0],
    "deque": [deque([1, 2]), deque([2, 1])],
    "dictionary": [OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)],
    "masked array": [np.ma.masked_array([1.0, 2.0], mask) for mask in ([0, 0], [0, 1])],
    "large scalar": [np.zeros(1, "V3000")[0], np.frombuffer(bytes(2999) + b"x", "V3000")[0]],
    "pattern": [re.compile("a"), re.compile("b"), re.compile("a", re.DOTALL)],
    "cached function": [functools.cache(add_one), functools.cache(compute_digest)],
    "table": [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]}), pd.DataFrame({"b": [1, 2]})],
    "large integer": [10**5000, 10**5000 + 1],
    "set": [{add_one, compute_digest}, {add_one}],
    "enumeration": [Enum("Kind", {"A": 1}).A, Enum("Kind", {"A": 2}).A],  # type: ignore[attr-defined]
}
"""Values with different contents, by what they are."""


@pytest.mark.parametrize("values", DIFFERENT_VALUES.values(), ids=DIFFERENT_VALUES)
def test_digests_of_different_values(values: Sequence[object]) -> None:
    digests = [compute_value_digest(value) for value in values]
    assert len(set(digests)) == len(values)
    assert [compute_value_digest(value) for value in values] == digests


@pytest.mark.compiled  # without compilation, `numba.njit` returns the function
def test_digests_of_compiled_functions() -> None:
    functions = [numba.njit(add_one), numba.njit(fastmath=True)(add_one), numba.njit(compute_digest)]
    digests = [compute_value_digest(function) for function in functions]
    assert len(set(digests)) == len(functions)
    assert [compute_value_digest(function) for function in functions] == digests


def test_deeply_nested_values_are_an_error() -> None:
    value: list[object] = []
    for _ in range(10 * sys.getrecursionlimit()):
        value = [value]
    with pytest.raises(SimulationError, match="is nested too deeply"):
        compute_value_digest(value)


SCRIPT = """
import re
import threading
import numpy as np
import scipy.stats
from navsense.campaigns.digest import Digest
NOISE, OBJECTS, LOCK = scipy.stats.norm(0.0, 2.0), np.array(["a", None, 3], dtype=object), threading.Lock()
PATTERN = re.compile("a+")
def reduce(run):
    return run in {"a", "b", "c", "d"}, NOISE, OBJECTS, LOCK, PATTERN, {"x", "y", ("z", 1)}
digest = Digest()
digest.add(reduce)
print(digest.hexdigest())
"""


def test_digest_is_equal_in_each_process() -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert first == second
    assert len(first.strip()) == 64


def compute_value_digest(value: object) -> str:
    """Return the digest of a value."""
    digest = Digest()
    digest.add(value)
    return digest.hexdigest()


def test_digest_of_a_logger_does_not_depend_on_other_loggers() -> None:
    logger = logging.getLogger("digest_logger")
    first = compute_value_digest(logger)
    logging.getLogger("digest_logger.child").addHandler(logging.NullHandler())
    logger.setLevel(logging.DEBUG)
    assert compute_value_digest(logger) == first
    assert compute_value_digest(logging.getLogger("digest_other")) != first


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock, threading.Event, io.StringIO, threading.local])
def test_objects_of_the_process_have_the_digest_of_their_type(make: Callable[[], object]) -> None:
    assert compute_value_digest(make()) == compute_value_digest(make())
    assert compute_value_digest(make()) != compute_value_digest(None)


def test_digest_of_arrays() -> None:
    def make_objects(end: str) -> object:
        return np.array([["a" * 3, None], [(1, 2.0), "x" + end]], dtype=object)

    first = compute_value_digest(make_objects("a"))
    assert compute_value_digest(make_objects("a")) == first
    assert compute_value_digest(make_objects("b")) != first
    named = [compute_value_digest(np.zeros(2, dtype=[(name, float)])) for name in ("x", "y")]
    assert named[0] != named[1]


def test_digest_of_a_variable_without_a_value() -> None:
    def make(value: int | None) -> Callable[[], int]:
        def get() -> int:
            return number

        if value is not None:
            number = value
        return get

    digests = [compute_value_digest(make(value)) for value in (None, None, 1, 2)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


@pytest.mark.requirement("CAM-1")
@pytest.mark.parametrize("user", USERS)
def test_changed_code_changes_the_digest(user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    middle = {"digest_middle.py": "import digest_helper\ndef compute(): return digest_helper.compute()\n"}
    files = {"digest_user.py": USERS[user], **middle}
    first, second = (compute_digest(tmp_path, files | helper) for helper in HELPER)
    assert first != second
    assert compute_digest(tmp_path, files | HELPER[0]) == first

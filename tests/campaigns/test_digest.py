"""The digest of values, and of `reduce` with all code of the user that it calls."""

from __future__ import annotations

import importlib
import io
import linecache
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from navsense.campaigns.digest import Digest

HELPER = {"digest_helper.py": "def compute(): return 1\n"}, {"digest_helper.py": "def compute(): return 22\n"}


def compute_digest(folder: Path, files: Mapping[str, str]) -> str:
    """Return the digest of `reduce` in the module `digest_user` of these files, as a new process would."""
    for name, text in files.items():
        (folder / name).write_text(text)
    for name in ("digest_user", "digest_middle", "digest_helper"):
        sys.modules.pop(name, None)
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

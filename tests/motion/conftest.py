"""What the tests of motion share."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest


def plain(kernel: Any) -> Callable[..., Any]:
    """Return the Python function of a kernel, the kernels that it calls replaced by theirs."""
    function = getattr(kernel, "py_func", kernel)
    names = {
        name: plain(function.__globals__[name])
        for name in function.__code__.co_names
        if hasattr(function.__globals__.get(name), "py_func")
    }
    return FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)


@pytest.fixture(scope="session")
def interpreted() -> Callable[[Any], Callable[..., Any]]:
    """Return what turns a kernel into the same code without any compilation."""
    return plain

"""The `math` functions that kernels call have the same bits compiled and interpreted."""

from __future__ import annotations

import ast
import math
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.registry import CPUDispatcher as Dispatcher

from navsense.core.kernel_dispatcher import make_dispatcher
from navsense.core.kernels import Kernel, inlined_kernel, kernel
from navsense.noise import channels, kernels
from navsense.sensors import Imu

SOURCE = Path(__file__).resolve().parent.parent / "src" / "navsense"
BITWISE = ("noise", "sensors", "clock", "environment")
CONSTANTS = frozenset(("inf", "nan", "pi", "tau", "e"))
COUNT = 200_000
PAIRS = frozenset(("atan2", "copysign", "fmod", "pow", "remainder"))
WITHIN_ONE = frozenset(("asin", "acos", "atanh"))
POSITIVE = frozenset(("log", "log10", "log1p", "log2", "sqrt"))


def find_calls_in_kernels() -> list[str]:
    """Return the functions of `math` that kernels of the bitwise layers call, and pow if they use powers."""
    found = set()
    files = [path for folder in BITWISE for path in (SOURCE / folder).rglob("*.py")]
    for path in [*files, *SOURCE.glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            decorators = [ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list]
            if not {"kernel", "inlined_kernel", "strided_kernel"} & set(decorators):
                continue
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and ast.unparse(inner.value) == "math":
                    found.add(inner.attr)
                elif isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow):
                    found.add("pow")
    return sorted(found - CONSTANTS)


def arguments(name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return valid arguments (n, 1 or 2) of the function: evenly spaced ones and magnitudes from 1e-12 to 1e6."""
    rng, columns = np.random.default_rng(11), 2 if name in PAIRS else 1
    sizes = 10.0 ** rng.uniform(-12.0, 0.0 if name in WITHIN_ONE else 6.0, (COUNT // 2, columns))
    even = rng.uniform(-1.0, 1.0, (COUNT // 2, columns)) * (1.0 if name in WITHIN_ONE else 10.0)
    values = np.concatenate((sizes * rng.choice((-1.0, 1.0), sizes.shape), even))
    if name in POSITIVE:
        return np.abs(values)
    if name in ("exp", "expm1", "cosh", "sinh"):
        return np.clip(values, -700.0, 700.0)
    if name == "gamma":
        return np.minimum(np.abs(values), 100.0)
    if name == "pow":
        return np.stack((np.abs(values[:, 0]), np.clip(values[:, 1], -20.0, 20.0)), axis=1)
    return values


def count_differences(name: str) -> int:
    """Return the number of arguments at which the compiled function differs from the interpreter's."""
    function: Any = pow if name == "pow" else getattr(math, name)
    pair = name in PAIRS

    def fill(values: Any, out: Any) -> None:
        for n in range(values.shape[0]):
            out[n] = function(values[n, 0], values[n, 1]) if pair else function(values[n, 0])

    values = arguments(name)
    compiled, interpreted = np.empty(len(values)), np.empty(len(values))
    njit(error_model="numpy", fastmath=False)(fill)(values, compiled)
    for n, row in enumerate(values.tolist()):
        interpreted[n] = function(*row)
    return int(np.count_nonzero(compiled.view(np.int64) != interpreted.view(np.int64)))


def test_kernel_calls_are_found() -> None:
    assert {"sin", "sqrt", "exp", "pow"} <= set(find_calls_in_kernels())


@pytest.mark.compiled
@pytest.mark.parametrize("name", find_calls_in_kernels())
def test_compiled_and_interpreted_functions_agree_bitwise(name: str) -> None:
    assert count_differences(name) == 0


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["gamma"])
def test_difference_between_compiled_and_interpreted_is_detected(name: str) -> None:
    assert count_differences(name) > 0


@pytest.mark.compiled
def test_imported_kernel_is_the_dispatcher() -> None:
    imu, time = Imu(), np.arange(3) / 100.0
    imu.apply(time, np.zeros((3, 3)), np.zeros((3, 3)), seed=1)
    imported = vars(channels)["apply_noise"]
    assert isinstance(imported, Dispatcher)
    assert imported is vars(kernels)["apply_noise"]


def double(x: float) -> float:
    """Return twice the argument."""
    return 2.0 * x


@inlined_kernel
def halve(x: float) -> float:
    """Return half of x."""
    return 0.5 * x


@kernel
def divide_by_four(x: float) -> float:
    """Return a quarter of x."""
    return halve(halve(x))


def make_uncached_dispatcher(name: str, *, is_inlined: bool) -> Any:
    """Return a dispatcher of a kernel of this module that compiles it in any case: cached ones have no LLVM code."""
    function = vars(sys.modules[__name__])[name].py_func
    return make_dispatcher(
        function,
        is_inlined=is_inlined,
        allocates=False,
        output_arrays=None,
        is_cached=False,
        before_compile=lambda: None,
    )


@pytest.mark.compiled
def test_inlined_kernels_are_inserted_into_their_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert divide_by_four(3.0) == 0.75
    inner = make_uncached_dispatcher("halve", is_inlined=True)
    monkeypatch.setitem(vars(sys.modules[__name__]), "halve", inner)
    dispatcher = make_uncached_dispatcher("divide_by_four", is_inlined=False)
    assert dispatcher(3.0) == 0.75
    (llvm,) = dispatcher.inspect_llvm().values()
    assert "divide_by_four" in llvm
    assert not re.search("(call|define).*halve", llvm)


@pytest.mark.compiled
def test_dispatchers_replace_kernels_in_the_package_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with the same prefix belongs to another package. None in `sys.modules` blocks an import."""
    ours, other, kernel = ModuleType("navsense.part"), ModuleType("navsense_plus"), Kernel(double)
    for module in (ours, other):
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(module, "double", kernel, raising=False)
    for name in ("navsense.gone", "navsense_gone"):
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    assert kernel(1.5) == 3.0
    assert vars(ours)["double"] is kernel.compile()
    assert vars(other)["double"] is kernel

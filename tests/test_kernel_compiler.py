"""Compiled kernels return the same as their Python functions, whatever they index, assign, allocate or raise."""

# mypy: disable-error-code="attr-defined,no-untyped-call"

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core import runtime

from navsense.core import kernel_compiler, kernels
from navsense.core.kernels import Kernel, inlined_kernel, kernel, strided_kernel
from navsense.core.typing import AnyArray, FloatArray

pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True)
def disable_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile the kernels of this file in each test run."""
    monkeypatch.setattr(kernels, "is_cached", lambda _: False)


def call_python(name: str, *args: Any) -> Any:
    """Call the Python function of a kernel of this module."""
    return globals()[name].py_func(*args)


def test_installed_version_of_numba_is_tested() -> None:
    """Another version compiles kernels correctly, but in twice the time."""
    assert kernel_compiler.is_tested(numba.__version__)


@kernel
def _read_elements(rows: AnyArray, index: AnyArray) -> float:
    """Read with constants, variables, negative and unsigned indices, and arrays of indices."""
    total, last = 0.0, rows.shape[0] - 1
    for i in range(-rows.shape[0], rows.shape[0]):
        total += (i + 10) * rows[i, 0] - rows[-1, -2] * rows[last, index[1]]
    unsigned = np.uint64(1)
    return total + rows[unsigned, unsigned] + rows[index[0], 1] + rows[index[-1]][1]


@kernel
def _write_elements(rows: AnyArray, values: AnyArray) -> None:
    """Write with constants, negative indices and in place."""
    for i in range(rows.shape[0]):
        rows[i, 0] = values[i % values.size]
        rows[-1 - i, 1] += values[-1]
    rows[0, -1] = values[0] > values[-1]


@strided_kernel("target")
def _copy_cube(source: AnyArray, target: AnyArray) -> None:
    """Copy an array (n, m, k) with any strides."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            for k in range(source.shape[2]):
                target[i, j, k] = source[i, j, -1 - k]


LAYOUTS: dict[str, Callable[[AnyArray], AnyArray]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda values: np.repeat(np.repeat(values, 2, axis=0), 3, axis=-1)[::2, ..., ::3],
    "reversed": lambda values: values[::-1, ..., ::-1],
}
TYPES = (np.float64, np.float32, np.int8, np.uint16, np.bool_)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_are_read_as_by_python(layout: str, dtype: Any) -> None:
    rows = LAYOUTS[layout]((np.arange(12.0).reshape(4, 3) % 5).astype(dtype))
    index = np.array([3, 1, -2], dtype=np.int32)
    assert _read_elements(rows, index) == pytest.approx(
        call_python("_read_elements", rows.astype(float), index), rel=1e-6
    )


@pytest.mark.parametrize("dtype", TYPES[:4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_are_written_as_by_python(layout: str, dtype: Any) -> None:
    results = []
    for call in (_write_elements, globals()["_write_elements"].py_func):
        rows = LAYOUTS[layout]((np.arange(12.0).reshape(4, 3) % 5).astype(dtype))
        call(rows, np.array([7.0, 5.0, 3.0]).astype(dtype))
        results.append(rows)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_three_axes_are_copied_between_layouts(layout: str) -> None:
    source = LAYOUTS[layout](np.arange(24.0).reshape(2, 3, 4))
    for make in LAYOUTS.values():
        target = make(np.zeros((2, 3, 4)))
        _copy_cube(source, target)
        np.testing.assert_array_equal(target, source[..., ::-1])


@kernel
def _swap_in_loop(steps: int) -> tuple[int, int, int]:
    """Exchange two variables, and use a variable that is assigned in one branch only."""
    a, b, found = 1, 2, -1
    for i in range(steps):
        a, b = b, a + b
        if i == 3:
            found = a
        if b % 2:
            half = b // 2
        else:
            half = b
        a += half % 3
    return a, b, found


@pytest.mark.parametrize("steps", [0, 1, 3, 4, 25])
def test_variables_of_loops_and_branches_keep_their_values(steps: int) -> None:
    assert _swap_in_loop(steps) == call_python("_swap_in_loop", steps)


class _Pair(NamedTuple):
    """Two arrays."""

    first: FloatArray
    second: FloatArray


@inlined_kernel
def _split(rows: FloatArray) -> _Pair:
    """Return two views."""
    return _Pair(rows[0], rows[1])


@inlined_kernel
def _add(pair: _Pair, i: int) -> float:
    """Return the sum of two elements."""
    return pair.first[i] + pair.second[i]


@kernel
def _sum_views(count: int) -> float:
    """Use views of an array of this kernel, and replace an array in a loop."""
    rows, total = np.ones((2, count)), 0.0
    for n in range(3):
        pair = _split(rows)
        for i in range(count):
            total += _add(pair, i)
        rows = np.full((2, count), n + 2.0)
    return total


def test_arrays_that_kernels_make_are_released_once() -> None:
    """A missing reference count would end the process or leave memory."""
    runtime._nrt_python.memsys_enable_stats()
    _sum_views(3)
    before = runtime.rtsys.get_allocation_stats()
    for count in range(200):
        assert _sum_views(count) == 2.0 * count * (1 + 2 + 3)
    after = runtime.rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free == 4 * 200


@kernel
def _reject(x: float) -> float:
    """Raise for a negative number."""
    if x < 0.0:
        raise ValueError("x is negative")
    return x


@kernel
def _call_reject(x: float) -> float:
    """Call a kernel that raises."""
    return 2.0 * _reject(x)


def test_error_of_a_called_kernel_reaches_python() -> None:
    assert _call_reject(2.0) == 4.0
    with pytest.raises(ValueError, match=r"^x is negative$"):
        _call_reject(-1.0)


@kernel
def _cube(x: float) -> float:
    """Return x³."""
    return x * x * x


@kernel
def _add_cubes(x: float, y: float) -> float:
    """Return x³ + y³."""
    return _cube(x) + _cube(y)


def test_machine_code_is_generated_only_for_kernels_that_python_calls() -> None:
    assert _add_cubes(1.0, 2.0) == 9.0
    dispatchers = [
        globals()[name].compile() if isinstance(globals()[name], Kernel) else globals()[name]
        for name in ("_add_cubes", "_cube")
    ]
    libraries = [next(iter(one.overloads.values())).library for one in dispatchers]
    assert [one.is_called_by_python for one in libraries] == [True, False]
    name = next(iter(dispatchers[1].overloads.values())).fndesc.llvm_func_name
    assert f"define linkonce_odr i32 @{name}" not in libraries[0].get_llvm_str()  # it is inserted
    assert _cube(3.0) == 27.0
    assert next(iter(dispatchers[1].overloads.values())).library.is_called_by_python


@kernel
def _sum_squares(values: FloatArray) -> float:
    """Use a comprehension, which needs the passes of Numba."""
    return sum([x * x for x in values])


def test_kernels_with_comprehensions_are_compiled_by_numba() -> None:
    assert kernel_compiler.needs_all_passes(globals()["_sum_squares"].py_func.__code__)
    assert _sum_squares(np.arange(4.0)) == 14.0


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("NUMBA_BOUNDSCHECK", "2.0 IndexError False"), ("NUMBA_DEBUGINFO", "2.0 IndexError True")],
)
def test_debug_options_of_numba_have_their_effect(variable: str, expected: str, tmp_path: Path) -> None:
    """Numba checks the bounds also for `NUMBA_DEBUGINFO`."""
    (tmp_path / "tiny.py").write_text(
        "from navsense.core.kernels import kernel\n\n\n@kernel\ndef read(values, i):\n    return values[i]\n"
    )
    script = (
        "import sys, numpy as np; sys.path.insert(0, '.'); import tiny\n"
        "print(tiny.read(np.arange(3.0), 2))\n"
        "try: tiny.read(np.arange(3.0), 3)\nexcept IndexError: print('IndexError')\n"
        "print('DILocalVariable' in next(iter(tiny.read.inspect_llvm().values())))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), variable: "1"}
    result = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert result.stdout.split() == expected.split()

"""Kernels are compiled in as few specialisations as possible, and each specialisation can be called."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numba.core.errors import TypingError

from navsense.core import kernels
from navsense.core.kernel_cache import describe_options, hash_kernel
from navsense.core.kernel_dispatcher import KernelDispatcher
from navsense.core.kernels import Kernel, inlined_kernel, kernel, strided_kernel
from navsense.core.typing import FloatArray

pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True)
def disable_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile the kernels of this file: a specialisation from the cache does not compile those that it calls."""
    monkeypatch.setattr(kernels, "is_cached", lambda _: False)


@kernel
def _scale(values: FloatArray, factor: int) -> float:
    """Return a weighted sum."""
    total = 0.0
    for i in range(values.size):
        total += factor * values[i]
    return total


@kernel
def _scale_twice(values: FloatArray) -> float:
    """Call a kernel with two constants and with a variable."""
    total = _scale(values, 2) + _scale(values, 3)
    for i in range(2):
        total += _scale(values, i)
    return total


@inlined_kernel
def _make_copy(values: FloatArray) -> FloatArray:
    """Return a copy."""
    out = np.empty(values.size)
    for i in range(values.size):
        out[i] = values[i]
    return out


@kernel
def _sum_of_copy(values: FloatArray) -> float:
    """Use the array of a kernel that Numba inserts."""
    copied, total = _make_copy(values), 0.0
    for i in range(copied.size):
        total += copied[i]
    return total


@kernel
def _shift(values: FloatArray) -> FloatArray:
    """Return a new array."""
    return np.append(values[1:], values[0])


@kernel
def _first_of_shifted(values: FloatArray) -> float:
    """Use the array that a kernel returns."""
    return float(_shift(values)[0])


@strided_kernel("target")
def _copy_rows(source: FloatArray, target: FloatArray) -> None:
    """Copy the rows of an array (n, 2)."""
    for i in range(source.shape[0]):
        target[i, 0], target[i, 1] = source[i, 0], source[i, 1]


def get_dispatcher(name: str) -> Any:
    """Return the dispatcher of a kernel of this module."""
    found = globals()[name]
    return found.compile() if isinstance(found, Kernel) else found


def has_wrapper(dispatcher: Any, types: tuple[Any, ...]) -> bool:
    """Return True if Python can call the specialisation for these types."""
    specialisation = dispatcher.overloads[types]
    return bool(specialisation.library.get_pointer_to_function(specialisation.fndesc.llvm_cpython_wrapper_name))


def test_kernel_has_a_python_wrapper_only_after_a_call_from_python() -> None:
    values = np.arange(4.0)
    assert _scale_twice(values) == 36.0
    scale = get_dispatcher("_scale")
    assert [has_wrapper(scale, types) for types in scale.overloads] == [False]
    assert _scale(values, 5) == 30.0
    assert [has_wrapper(scale, types) for types in scale.overloads] == [True]
    # Both specialisations stay valid: the one that is compiled into the caller, and the one that Python calls.
    assert (_scale_twice(values), _scale(values, 1)) == (36.0, 6.0)


def test_constants_do_not_make_specialisations() -> None:
    _scale_twice(np.arange(4.0))
    assert {str(types[1]) for types in get_dispatcher("_scale").overloads} == {"int64"}


def test_strided_kernel_has_one_specialisation_for_all_layouts() -> None:
    rng = np.random.default_rng(1)
    orders: tuple[Literal["C", "F"], ...] = ("C", "F")
    for order, step, is_writable in itertools.product(orders, (1, 2), (True, False)):
        source = np.array(rng.normal(size=(6, 4)), order=order)[::step, ::step][:, :2]
        expected, target = source.copy(), np.zeros((source.shape[0], 2), order=order)
        source.flags.writeable = is_writable
        _copy_rows(source, target)
        assert np.array_equal(target, expected)
    assert len(get_dispatcher("_copy_rows").overloads) == 1


def test_strided_kernel_is_called_without_python_from_the_second_call_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call through `_compile_for_args` takes longer than the encoding of many messages."""
    calls: list[str] = []
    compile_specialisation = KernelDispatcher._compile_for_args

    def count_calls(self: KernelDispatcher, *args: Any) -> Any:
        calls.append(self.py_func.__name__)
        return compile_specialisation(self, *args)

    monkeypatch.setattr(KernelDispatcher, "_compile_for_args", count_calls)
    for order in ("C", "F"):
        source, target = np.asarray(np.ones((3, 2)), order=order), np.zeros((3, 2), order=order)
        _copy_rows(source, target)
        calls.clear()
        _copy_rows(source, target)
        assert not calls
        assert target.all()


def test_strided_kernel_does_not_write_to_a_read_only_array() -> None:
    target = np.zeros((3, 2))
    target.flags.writeable = False
    with pytest.raises(TypingError, match=r"read-only|readonly"):
        _copy_rows(np.ones((3, 2)), target)
    assert not target.any()


def test_references_are_counted_only_in_kernels_that_make_arrays() -> None:
    assert _sum_of_copy(np.arange(4.0)) == 6.0
    assert get_dispatcher("_sum_of_copy").targetoptions["_nrt"]
    assert not get_dispatcher("_scale").targetoptions["_nrt"]


def test_references_are_counted_in_the_caller_of_a_kernel_that_returns_an_array() -> None:
    """The caller releases the array: 1,000 arrays of 0.8 MB do not stay in memory."""
    values = np.arange(100_000.0)
    assert _first_of_shifted(values) == 1.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kB
    for _ in range(1000):
        _first_of_shifted(values)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    assert get_dispatcher("_first_of_shifted").targetoptions["_nrt"]


def test_cached_specialisations_are_not_compiled_again(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, {folder!r})\n"
        "import numpy as np, tiny\n"
        "from numba.core import event\n"
        "compiled = []\n"
        "class Listener(event.Listener):\n"
        "    def on_start(self, happening): compiled.append(happening.data['dispatcher'].py_func.__name__)\n"
        "    def on_end(self, happening): pass\n"
        "event.register('numba:compile', Listener())\n"
        "print(tiny.outer(np.arange(3.0)), tiny.inner(np.arange(3.0), 2), sorted(compiled))\n"
    )
    (tmp_path / "tiny.py").write_text(
        "from navsense.core.kernels import kernel\n\n\n"
        "@kernel\ndef inner(values, factor):\n    return factor * values[1]\n\n\n"
        "@kernel\ndef outer(values):\n    return inner(values, 3)\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script.format(folder=str(tmp_path))],
            env=environment,
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert outputs == ["3.0 2.0 ['inner', 'inner', 'outer']", "3.0 2.0 []"]


USES = {
    "enumeration": "Mode.SLOW.value",
    "constant of a module": "other.FACTOR",
    "constant of a nested function": "sum([FACTOR for _ in range(1)])",
}


@pytest.mark.parametrize("use", USES)
def test_kernel_is_compiled_again_after_a_change_in_another_file(use: str, tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(
        "import other\nfrom navsense.core.kernels import kernel\nfrom other import FACTOR, Mode\n\n\n"
        f"@kernel\ndef double(x: float) -> float:\n    return x * {USES[use]}\n"
    )
    for value in ("2.0", "3.0"):
        other = "from enum import Enum\n\nFACTOR = {0}\n\n\nclass Mode(Enum):\n    SLOW = {0}\n"
        (tmp_path / "other.py").write_text(other.format(value))
        assert run_script("import tiny; print(tiny.double(1.0))", tmp_path, tmp_path) == value


def run_script(script: str, path: Path, folder: Path) -> str:
    """Return what a new process prints that has `path` in its module path, and its cache in `folder`."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(path)!r}); {script}"],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    return result.stdout.strip()


def test_first_compilation_in_python_is_logged_once(tmp_path: Path) -> None:
    """Neither a second compilation nor a run with the cache logs it. Python prints warnings without a handler."""
    (tmp_path / "tiny.py").write_text(
        "from navsense.core.kernels import kernel\n\n\n@kernel\ndef double(x):\n    return 2.0 * x\n"
    )
    script = "import tiny; print(tiny.double(1.0), tiny.double(1))"
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    results = [
        subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, check=True, text=True)
        for _ in range(2)
    ]
    assert [result.stdout for result in results] == ["2.0 2.0\n"] * 2
    logged = "compiling kernels, which takes up to a minute; later runs use the cache\n"
    assert [result.stderr for result in results] == [logged, ""]


def test_kernel_in_a_zip_archive_is_compiled(tmp_path: Path) -> None:
    """A constant of unknown type stands for its file, which does not exist."""
    text = (
        "from numba import njit\nfrom navsense.core.kernels import kernel\n\n\n"
        "def triple(x):\n    return 3.0 * x\n\n\nTRIPLE = njit(triple)\n\n\n"
        "@kernel\ndef double(x):\n    return TRIPLE(x) - x\n"
    )
    with zipfile.ZipFile(tmp_path / "tiny.zip", "w") as archive:
        archive.writestr("tiny.py", text)
    assert run_script("import tiny; print(tiny.double(1.0))", tmp_path / "tiny.zip", tmp_path) == "2.0"


def test_hash_of_a_kernel_depends_on_its_annotation_and_decorator() -> None:
    """Both are options of the compiler."""

    def first(values: FloatArray) -> FloatArray:
        return values

    hashes = set()
    for annotation in ("FloatArray", "float"):
        first.__annotations__["return"] = annotation
        for options in ({}, {"is_inlined": True}, {"output_arrays": frozenset(("values",))}):
            dispatcher: Any = Kernel(first, **options).compile()  # type: ignore[arg-type]
            hashes.add(hash_kernel(dispatcher.py_func, describe_options(dispatcher)))
    assert len(hashes) == 6

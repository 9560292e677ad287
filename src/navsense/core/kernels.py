"""The one decorator of the compiled kernels.

Kernels are scalar loops with `math.*`: IEEE arithmetic in the order written, no fused or reordered sums, division by
zero as NumPy has it. So the compiled kernel and the same function run by the interpreter agree to the last bit.

Numba is imported, and a kernel handed to it, when the first kernel is called: reading and checking a file needs none.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from navsense.core.errors import SimulationError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

INTERPRETED = re.fullmatch(r"\s*[-+]?0*[1-9][0-9]*\s*", os.environ.get("NUMBA_DISABLE_JIT", "0")) is not None
"""True if the interpreter runs the kernels. Numba reads the setting as an integer other than 0."""

PACKAGE = __name__.partition(".")[0]
"""Whose modules have kernels by name."""


def is_cached(function: Callable[..., Any]) -> bool:
    """Tell whether a kernel's machine code is kept on disk: not a script's, which others know by another name."""
    return function.__module__ != "__main__" and function.__module__ in sys.modules


LLVM_TEST_PROGRAM = "import numba; numba.njit(lambda x: x)(1.0)"
"""Program that shows whether LLVM accepts its settings."""

VARIABLE_REMEDY = "correct the variable or unset it"


def check_processor() -> None:
    """Raise `SimulationError` if LLVM does not know the processor in the environment variables.

    LLVM would print a line for each kernel, or abort the process. A child process tries it first.
    """
    chosen = {name: os.environ.get(name, "") for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")}
    chosen = {name: value for name, value in chosen.items() if value}
    if not chosen:
        return
    tried = subprocess.run([sys.executable, "-c", LLVM_TEST_PROGRAM], capture_output=True, check=False, text=True)  # noqa: S603
    if tried.returncode or "is not a recognized" in tried.stderr:
        names, values = ", ".join(chosen), ", ".join(chosen.values())
        raise SimulationError(
            names, values, allowed="LLVM does not know this processor or feature", remedy=VARIABLE_REMEDY
        )


@functools.cache
def load_numba() -> tuple[Any, Any]:
    """Return `numba.njit` and `enable_cache`. Raise `SimulationError` if Numba does not start in this environment."""
    check_processor()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Environment variable", RuntimeWarning)
            from numba import njit

            from navsense.core.kernel_cache import enable_cache
    except (ImportError, MemoryError, OSError, RuntimeError, RuntimeWarning, ValueError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        named = re.search(r"NUMBA_\w+", str(error))
        name = named[0] if named else "NUMBA_NUM_THREADS" if "Number of threads" in reason else ""
        if name in os.environ:
            raise SimulationError(name, os.environ[name], allowed=reason, remedy=VARIABLE_REMEDY) from None
        raise SimulationError("Numba, which compiles the kernels, does not start", reason) from error
    return njit, enable_cache


COMPILATION_CHECKS: list[Callable[[], None]] = []
"""Functions that are called before each kernel is compiled. They may raise, for example `KeyboardInterrupt`."""


def _check_compilation() -> None:
    """Call all checks."""
    for check in COMPILATION_CHECKS:
        check()


class Kernel(Generic[Parameters, Result]):
    """A kernel that is handed to Numba at its first call; `py_func` is the function as written."""

    def __init__(self, function: Callable[Parameters, Result]) -> None:
        """Keep the function."""
        self.py_func = function
        self._compiled: Callable[Parameters, Result] | None = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run the compiled kernel."""
        return (self._compiled or self.compile())(*args, **kwargs)

    def compile(self) -> Callable[Parameters, Result]:
        """Return Numba's dispatcher; the kernels that this one calls are put in its module in their compiled form."""
        if self._compiled is None:
            njit, enable_cache = load_numba()
            # Names in the kernel's own module are exchanged for what Numba made, so that later calls go straight there.
            names: dict[str, Any] = self.py_func.__globals__
            for name in self.py_func.__code__.co_names:
                called = names.get(name)
                if isinstance(called, Kernel):
                    names[name] = called.compile()
            dispatcher = njit(error_model="numpy", fastmath=False, nogil=True)(self.py_func)
            if is_cached(self.py_func):
                enable_cache(dispatcher, self.py_func, _check_compilation)
            self._compiled = dispatcher
            self._replace_references(names, dispatcher)
        return self._compiled

    def _replace_references(self, own_names: dict[str, Any], dispatcher: Callable[Parameters, Result]) -> None:
        """Exchange the kernel's name in its own module, and in those of the package that import it."""
        among = {place: module for place, module in tuple(sys.modules.items()) if place.partition(".")[0] == PACKAGE}
        for names in (own_names, *(vars(module) for module in among.values() if module is not None)):
            if names.get(self.py_func.__name__) is self:
                names[self.py_func.__name__] = dispatcher


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Mark a scalar loop as a kernel: compiled at its first call, cached on disk, the interpreter's lock released."""
    return function if INTERPRETED else Kernel(function)

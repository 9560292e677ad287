"""`@kernel`: compiles a function with Numba at its first call.

Kernels are scalar loops with `math.*`. The arithmetic is IEEE in the order of the source, without fused or reordered
sums. Division by zero gives infinity or NaN, as in NumPy. So a compiled kernel and the same function run by the
interpreter agree to the last bit.

Numba is imported at the first call of a kernel. Reading and checking a file does not import it.
"""

from __future__ import annotations

import dis
import functools
import logging
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any, Generic, ParamSpec, TypeVar

from navsense.core.errors import CompilerError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

LOG = logging.getLogger(__name__)

INTERPRETED = re.fullmatch(r"\s*[-+]?0*[1-9][0-9]*\s*", os.environ.get("NUMBA_DISABLE_JIT", "0")) is not None
"""True if the interpreter runs the kernels. Numba reads the setting as an integer other than 0."""

MODULE_PREFIX = __name__.partition(".")[0] + "."
"""Prefix of the modules that may refer to kernels by name."""


def is_cached(function: Callable[..., Any]) -> bool:
    """Return True if the machine code of a kernel is cached on disk.

    Kernels of a script are not cached: in another process their module has another name than `__main__`.
    """
    return function.__module__ != "__main__" and function.__module__ in sys.modules


LLVM_TEST_PROGRAM = "import numba; numba.njit(lambda x: x)(1.0)"
"""Program that shows whether LLVM accepts its settings."""

VARIABLE_REMEDY = "correct the variable or unset it"


def check_processor() -> None:
    """Raise `CompilerError` if LLVM does not know the processor in the environment variables.

    LLVM would print a line for each kernel, or abort the process. A child process tries it first. LLVM knows the
    processor "generic" on each machine.
    """
    names = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
    settings = {name: os.environ[name] for name in names if os.environ.get(name)}
    if settings in ({}, {"NUMBA_CPU_NAME": "generic"}):
        return
    result = subprocess.run([sys.executable, "-c", LLVM_TEST_PROGRAM], capture_output=True, check=False, text=True)  # noqa: S603
    if result.returncode or "is not a recognized" in result.stderr:
        allowed = "LLVM does not know this processor or feature"
        raise CompilerError(", ".join(settings), ", ".join(settings.values()), allowed=allowed, remedy=VARIABLE_REMEDY)


@functools.cache
def load_numba() -> Callable[..., Any]:
    """Import Numba and return `make_dispatcher`. Raise `CompilerError` if Numba does not start in this environment."""
    check_processor()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Environment variable", RuntimeWarning)
            from navsense.core.kernel_dispatcher import make_dispatcher
    except (ImportError, MemoryError, OSError, RuntimeError, RuntimeWarning, ValueError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        variable = re.search(r"NUMBA_\w+", str(error))
        name = variable[0] if variable else "NUMBA_NUM_THREADS" if "Number of threads" in reason else ""
        if name in os.environ:
            raise CompilerError(name, os.environ[name], allowed=reason, remedy=VARIABLE_REMEDY) from None
        raise CompilerError("Numba, which compiles the kernels, does not start", reason) from error
    return make_dispatcher


COMPILATION_CALLBACKS: list[Callable[[], None]] = []
"""Functions that are called before each kernel is compiled. They may raise, for example `KeyboardInterrupt`."""


def _call_before_compilation() -> None:
    """Call all callbacks. Without one, log once that kernels are compiled: no other sign would show it."""
    if not COMPILATION_CALLBACKS:
        _log_compilation()
    for callback in tuple(COMPILATION_CALLBACKS):  # other threads can change the list
        callback()


@functools.cache
def _log_compilation() -> None:
    """Log that kernels are compiled, as a warning because Python shows these by default."""
    LOG.warning("compiling kernels, which takes up to a minute; later runs use the cache")


ALLOCATING_OPERATIONS = frozenset(dis.opmap[name] for name in ("BUILD_LIST", "BUILD_MAP", "BUILD_SET", "MAKE_FUNCTION"))
"""Bytecodes that make a list, a dictionary, a set or a function."""


def allocates_memory(code: CodeType) -> bool:
    """Return True if the code of a kernel uses NumPy, which makes arrays, or a list, a set or a dictionary."""
    return "np" in code.co_names or not ALLOCATING_OPERATIONS.isdisjoint(code.co_code[::2])


class Kernel(Generic[Parameters, Result]):
    """A kernel that Numba compiles at its first call; `py_func` is the Python function."""

    def __init__(
        self,
        function: Callable[Parameters, Result],
        *,
        is_inlined: bool = False,
        output_arrays: frozenset[str] | None = None,
    ) -> None:
        """Keep the function.

        `is_inlined`: LLVM inserts its code into the kernels that call it. `output_arrays`: see `strided_kernel`.
        """
        self.py_func = function
        self.is_inlined = is_inlined
        self.output_arrays = output_arrays
        self._compiled: Callable[Parameters, Result] | None = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run the compiled kernel."""
        return (self._compiled or self.compile())(*args, **kwargs)

    def compile(self) -> Callable[Parameters, Result]:
        """Return Numba's dispatcher of this kernel, and compile the kernels that it calls."""
        if self._compiled is None:
            make_dispatcher = load_numba()
            # In modules, dispatchers replace the `Kernel` objects, so that later calls go directly to them.
            names: dict[str, Any] = self.py_func.__globals__
            called_names = self.py_func.__code__.co_names
            for name in called_names:
                if isinstance(names.get(name), Kernel):
                    names[name] = names[name].compile()
            dispatcher = make_dispatcher(
                self.py_func,
                is_inlined=self.is_inlined,
                allocates=allocates_memory(self.py_func.__code__),
                output_arrays=self.output_arrays,
                is_cached=is_cached(self.py_func),
                before_compile=_call_before_compilation,
            )
            self._compiled = dispatcher
            self._replace_references(names, dispatcher)
        return self._compiled

    def _replace_references(self, module_names: dict[str, Any], dispatcher: Callable[Parameters, Result]) -> None:
        """Replace the kernel by its dispatcher in its module, and in the modules of the package that import it."""
        called_name = self.py_func.__name__
        modules = [module for name, module in tuple(sys.modules.items()) if name.startswith(MODULE_PREFIX)]
        for names in (module_names, *(vars(module) for module in modules if module is not None)):
            if names.get(called_name) is self:
                names[called_name] = dispatcher


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a kernel: compiled at its first call, cached on disk, and run without the interpreter's lock (GIL)."""
    return function if INTERPRETED else Kernel(function)


def inlined_kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a kernel that LLVM inserts into the kernels that call it.

    Use it for a kernel that one kernel calls in a loop with a `NamedTuple` of many arrays. An ordinary call passes each
    size and stride of each array, which takes longer than the arithmetic of a ping.
    """
    return function if INTERPRETED else Kernel(function, is_inlined=True)


def strided_kernel(
    *output_arrays: str,
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Return a decorator for a kernel that Numba compiles once for arrays of all layouts.

    Use it for a kernel that Python calls with arrays of many layouts, and that spends little time on them: its code
    multiplies each index by a stride.

    Args:
        output_arrays: Names of the arrays that the kernel writes. The others can be read-only.

    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        return function if INTERPRETED else Kernel(function, output_arrays=frozenset(output_arrays))

    return decorate

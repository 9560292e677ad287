"""The one decorator of the compiled kernels.

Kernels are scalar loops with `math.*`: IEEE arithmetic in the order written, no fused or reordered sums, division by
zero as NumPy has it. So the compiled kernel and the same function run by the interpreter agree to the last bit.

Numba is imported, and a kernel handed to it, when the first kernel is called: reading and checking a file needs none.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""True where kernels are run by the interpreter, as Numba itself reads the setting."""


PACKAGE = __name__.partition(".")[0]
"""Whose modules have kernels by name."""


def keeps(function: Callable[..., Any]) -> bool:
    """Tell whether a kernel's machine code is kept on disk: not a script's, which others know by another name."""
    return function.__module__ != "__main__" and function.__module__ in sys.modules


class Kernel(Generic[Parameters, Result]):
    """A kernel that is handed to Numba at its first call; `py_func` is the function as written."""

    def __init__(self, function: Callable[Parameters, Result]) -> None:
        """Keep the function."""
        self.py_func = function
        self._compiled: Callable[Parameters, Result] | None = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run the compiled kernel."""
        return (self._compiled or self.compiled())(*args, **kwargs)

    def compiled(self) -> Callable[Parameters, Result]:
        """Return Numba's dispatcher; the kernels that this one calls are put in its module in their compiled form."""
        if self._compiled is None:
            from numba import njit

            # Names in the kernel's own module are exchanged for what Numba made, so that later calls go straight there.
            names: dict[str, Any] = self.py_func.__globals__
            for name in self.py_func.__code__.co_names:
                called = names.get(name)
                if isinstance(called, Kernel):
                    names[name] = called.compiled()
            kept = keeps(self.py_func)
            self._compiled = njit(cache=kept, error_model="numpy", fastmath=False, nogil=True)(self.py_func)
            self._exchange(names, self._compiled)
        return self._compiled

    def _exchange(self, own: dict[str, Any], made: Callable[Parameters, Result]) -> None:
        """Exchange the kernel's name in its own module, and in those of the package that import it."""
        among = {place: module for place, module in tuple(sys.modules.items()) if place.partition(".")[0] == PACKAGE}
        for names in (own, *(vars(module) for module in among.values() if module is not None)):
            if names.get(self.py_func.__name__) is self:
                names[self.py_func.__name__] = made


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Mark a scalar loop as a kernel: compiled at its first call, cached on disk, the interpreter's lock released."""
    return function if INTERPRETED else Kernel(function)

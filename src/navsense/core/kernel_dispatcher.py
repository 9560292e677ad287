"""Numba dispatchers of kernels, which compile few specialisations of a kernel.

A specialisation is the machine code of a kernel for certain argument types. `KernelDispatcher` differs from Numba's
dispatcher:

- A Python wrapper only if Python calls the kernel. Most kernels are called by kernels only. Numba would compile
  wrappers for calls from Python and from C, which take longer to compile than a small kernel.
- One specialisation for all constants. Numba would compile one for each integer in the source of a caller.
- One specialisation for all layouts of arrays, if the kernel declares the arrays that it writes (`strided_kernel`).
- References to arrays are counted only where arrays are made or returned. Without the counts there is less code, and
  calls are faster.
"""

# mypy: disable-error-code="attr-defined,misc,no-untyped-call"

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from numba.core import config, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from navsense.core.kernel_cache import KernelCache
from navsense.core.kernel_compiler import KernelCompiler

OPTIONS = {"nopython": True, "error_model": "numpy", "fastmath": False, "nogil": True, "no_cfunc_wrapper": True}
"""Compiler options of all kernels."""


SCALAR_WORDS = frozenset(("None", "bool", "float", "int", "np", "tuple", "uint64"))
"""Words in the annotation of a result without arrays."""


def returns_arrays(function: Callable[..., Any]) -> bool:
    """Return False if the annotation of a function says that its result has no arrays."""
    return not set(re.findall(r"\w+", str(function.__annotations__.get("return", "?")))) <= SCALAR_WORDS


class KernelDispatcher(CPUDispatcher):
    """The specialisations of one kernel."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make a dispatcher without a cache."""
        super().__init__(*args, **{"pipeline_class": KernelCompiler, **kwargs})
        self.output_arrays: frozenset[str] | None = None
        """The arrays that a strided kernel writes; None for another kernel."""
        self._is_python_call = False
        self._types_without_wrapper: set[tuple[Any, ...]] = set()

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """Compile a specialisation for a call from Python, and return the result of the call."""
        with global_compiler_lock:
            self._is_python_call = True
            try:
                return super()._compile_for_args(*args, **kws)
            finally:
                self._is_python_call = False

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile a specialisation for a call from a kernel, and return its signature."""
        return super().get_call_template(
            tuple(types.unliteral(argument) for argument in args),
            {name: types.unliteral(argument) for name, argument in kws.items()},
        )

    def compile(self, sig: Any) -> Any:
        """Compile the specialisation for these argument types, or load it from the cache. Return its entry point."""
        with global_compiler_lock:
            has_wrapper, argument_types = self._is_python_call, sig
            sig = self._generalise_layouts(sig)
            if has_wrapper and sig in self._types_without_wrapper:
                self._types_without_wrapper.remove(sig)
                del self.overloads[sig]
            self._compiler.targetoptions["no_cpython_wrapper"] = not has_wrapper
            if isinstance(self._cache, KernelCache):
                self._cache.has_wrapper = has_wrapper
            entry_point = super().compile(sig)
            if has_wrapper and argument_types != sig:
                # The machine code accepts these types too, because arrays of all layouts have the same structure. With
                # an entry in Numba's table of Python calls, later calls do not come here.
                self._insert([argument._code for argument in argument_types], entry_point, False)  # noqa: SLF001
            return entry_point

    def _generalise_layouts(self, argument_types: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the types that accept arrays with any strides, and read-only ones where the kernel does not write.

        A read-only array that the kernel writes stays read-only, so that Numba rejects it.
        """
        if self.output_arrays is None:
            return argument_types
        return tuple(
            types.Array(kind.dtype, kind.ndim, "A", readonly=name not in self.output_arrays or not kind.mutable)
            if isinstance(kind, types.Array)
            else kind
            for name, kind in zip(self.py_func.__code__.co_varnames, argument_types, strict=False)
        )

    def add_overload(self, cres: Any) -> None:
        """Store a specialisation. Only one with a wrapper gets an entry in the table of Python calls."""
        if self._compiler.targetoptions["no_cpython_wrapper"]:
            argument_types = tuple(cres.signature.args)
            self._types_without_wrapper.add(argument_types)
            self.overloads[argument_types] = cres
        else:
            super().add_overload(cres)


def make_dispatcher(
    function: Callable[..., Any],
    *,
    is_inlined: bool,
    allocates: bool,
    output_arrays: frozenset[str] | None,
    is_cached: bool,
    before_compile: Callable[[], None],
) -> KernelDispatcher:
    """Return the dispatcher of a kernel.

    Args:
        function: The Python function.
        is_inlined: LLVM inserts the code of the kernel into the kernels that call it.
        allocates: The kernel makes arrays or lists.
        output_arrays: The arrays that a strided kernel writes; None for another kernel.
        is_cached: The specialisations are stored on disk.
        before_compile: Is called before each compilation, and may raise.

    """
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    returning = [function, *(callee.py_func for callee in called if isinstance(callee, KernelDispatcher))]
    options = {
        **OPTIONS,
        **({"boundscheck": True} if config.BOUNDSCHECK else {}),
        "forceinline": is_inlined,
        "_nrt": allocates or any(returns_arrays(kernel) for kernel in returning),
    }
    dispatcher = KernelDispatcher(function, targetoptions=options)
    dispatcher.output_arrays = output_arrays
    if is_cached:
        dispatcher._cache = KernelCache(dispatcher, before_compile)  # noqa: SLF001  # enable_caching() sets Numba's own
    return dispatcher

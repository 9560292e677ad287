"""The one decorator of the compiled kernels.

Kernels are scalar loops with `math.*`: IEEE arithmetic in the order written, no fused or reordered sums, division by
zero as NumPy has it. So the compiled kernel and the same function run by the interpreter agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile a scalar loop: cached on disk, `error_model="numpy"`, no fastmath, the interpreter's lock released."""
    compiled = numba.njit(cache=True, error_model="numpy", fastmath=False, nogil=True)(function)
    return cast("Kernel", compiled)

"""Ahead-of-time compilation of all kernels into the cache, for containers and continuous integration.

`navsense warm` calls `compile_kernels`. It runs the demo, and a small packaged world with every sensor, DVL dialect,
clock, current and surface: recorded, in a batch, live, driven, read again, reported and calibrated.
"""

from navsense.warm.kernel_runs import CompiledKernels, compile_kernels

__all__ = ["CompiledKernels", "compile_kernels"]

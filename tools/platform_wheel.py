"""Build a wheel with the machine code of all kernels, for a first run without compilation.

Usage: python tools/platform_wheel.py [FOLDER]

The script compiles all kernels as `navsense warm` does, for the processor level of this machine's architecture, and
writes the wheel to FOLDER (default: dist). The wheel suits this version of Python. Its kernels are used with the
versions of Numba and LLVM of this environment (`navsense.core.packaged_kernels`).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "compiled_kernels"

LEVELS = {
    "x86_64": (
        "x86-64-v3",
        "avx avx2 bmi bmi2 cmov cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3",
    ),
}
"""By architecture: LLVM's name of the processor level and its features.

Most x86-64 processors of desktops and servers since 2015 have those of x86-64-v3.
"""


def compile_kernels(folder: Path, features: list[str]) -> None:
    """Compile all kernels in this process and write them to a folder."""
    from navsense.core import packaged_kernels

    packaged_kernels.OUTPUT_FOLDER = folder
    from navsense import warm  # compiles some kernels

    kernels = warm.compile_kernels()
    packaged_kernels.write_manifest(folder, features)
    print(f"compiled {kernels.compiled} kernels")


def main() -> None:
    """Compile the kernels in a child process, whose environment selects the processor, and build the wheel."""
    machine = platform.machine()
    if machine not in LEVELS:
        sys.exit(f"architecture: {machine}; must be one of {', '.join(LEVELS)}")
    level, features = LEVELS[machine]
    if sys.argv[1:] == ["--compile"]:
        compile_kernels(FOLDER, features.split())
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": cache,
            "NUMBA_CPU_NAME": level,
            "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in features.split()),
        }
        subprocess.run([sys.executable, __file__, "--compile"], env=environment, check=True)
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "-w", str(out), str(ROOT)],
        env={**os.environ, "NAVSENSE_COMPILED_KERNELS": str(FOLDER)},
        check=True,
    )


if __name__ == "__main__":
    main()

"""Machine code of kernels that a platform wheel carries, for a first run without compilation.

`tools/platform_wheel.py` compiles the kernels for a common level of processors, and stores them in the folder
`compiled` of the wheel. A process uses them if the manifest of the folder has its versions of Python, Numba and LLVM,
and only processor features that it has. Otherwise, and without the folder, kernels are compiled as usual.
"""

# mypy: disable-error-code="attr-defined,no-untyped-call"

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import pickle
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core import config
from numba.core.serialize import dumps

from navsense.core.checksum import append_checksum, read_checked
from navsense.core.kernel_compiler import rebuild_specialisation

LOG = logging.getLogger(__name__)

FOLDER = Path(__file__).resolve().parent.parent / "compiled"
MANIFEST = "manifest.json"

COMPILER_VARIABLES = (
    "NUMBA_BOUNDSCHECK",
    "NUMBA_CPU_FEATURES",
    "NUMBA_CPU_NAME",
    "NUMBA_DEBUGINFO",
    "NUMBA_ENABLE_AVX",
    "NUMBA_OPT",
)
"""Environment variables that change the machine code."""

OUTPUT_FOLDER: Path | None = None
"""Folder to which `tools/platform_wheel.py` writes the kernels that a process compiles; None otherwise."""


def describe_process() -> dict[str, Any]:
    """Return what machine code depends on, except the kernel and the processor."""
    return {
        "python": sys.implementation.cache_tag,
        "machine": f"{sys.platform} {platform.machine()}",
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": ".".join(np.__version__.split(".")[:2]),
        "svml": bool(config.USING_SVML),
    }


def list_processor_features() -> set[str]:
    """Return the features of this processor, as LLVM names them."""
    return {name for name, is_present in binding.get_host_cpu_features().items() if is_present}


@functools.cache
def is_usable(folder: Path) -> bool:
    """Return True if this process can run the kernels in a folder.

    If the user chooses a processor or options of the compiler, kernels are compiled for these.
    """
    if any(os.environ.get(name) for name in COMPILER_VARIABLES):
        return False
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        required, versions = (
            set(manifest["features"]),
            {name: manifest[name] for name in manifest if name != "features"},
        )
    except (OSError, ValueError, TypeError, KeyError):
        return False
    process = describe_process()
    if versions != process:
        LOG.debug("the packaged kernels are not used: they are for %s, this process is %s", versions, process)
        return False
    missing = required - list_processor_features()
    if missing:
        LOG.debug("the packaged kernels are not used: the processor lacks %s", ", ".join(sorted(missing)))
    return not missing


def get_file_name(kernel: str, content_hash: str, sig: Any, *, has_wrapper: bool) -> str:
    """Return the file name of a specialisation: of a kernel with this content hash, for the argument types `sig`."""
    text = "\n".join((kernel, content_hash, str(sig), str(has_wrapper)))
    return hashlib.sha256(text.encode()).hexdigest()[:32] + ".kernel"


def load_specialisation(name: str, target_context: Any) -> Any:
    """Return a compiled kernel; None if the wheel does not carry it, or this process cannot run it."""
    if is_usable(FOLDER):
        with contextlib.suppress(OSError, ValueError):
            data = pickle.loads(read_checked(FOLDER / name))  # noqa: S301  # code of this package, as its .py files
            return rebuild_specialisation(target_context, *data)
    return None


def store_specialisation(name: str, specialisation: Any) -> None:
    """Store a compiled kernel in the output folder, if there is one."""
    if OUTPUT_FOLDER is not None:
        data = dumps(specialisation._reduce())  # noqa: SLF001  # as in Numba's cache
        (OUTPUT_FOLDER / name).write_bytes(append_checksum(data))


def write_manifest(folder: Path, features: Iterable[str]) -> None:
    """Write the manifest of kernels that this process compiled for processors with these features."""
    manifest = {**describe_process(), "features": sorted(features)}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")

"""Kernels in a platform wheel are used if they suit the process, and never otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.compiled

KERNELS = """from navsense.core.kernels import kernel

FACTOR = {factor}


@kernel
def inner(values):
    return FACTOR * values[1]


@kernel
def outer(values):
    return inner(values) + 1.0
"""

SCRIPT = """import sys
from pathlib import Path

sys.path.insert(0, {modules!r})
import numpy as np

from navsense.core import kernels, packaged_kernels

compiled = []
kernels.COMPILATION_CALLBACKS.append(lambda: compiled.append(1))
folder = Path({folder!r})
if {is_build}:
    packaged_kernels.OUTPUT_FOLDER = folder
else:
    packaged_kernels.FOLDER = folder
import tiny

print(tiny.outer(np.arange(3.0)), len(compiled))
if {is_build}:
    packaged_kernels.write_manifest(folder, ())
"""


class Wheel(NamedTuple):
    """A folder of packaged kernels, and a function that runs the kernels in a process with an empty cache."""

    folder: Path
    run: Callable[..., str]


@pytest.fixture
def wheel(tmp_path: Path) -> Wheel:
    folder, modules = tmp_path / "compiled", tmp_path / "modules"
    folder.mkdir()
    modules.mkdir()

    def run(*, is_build: bool = False, factor: float = 2.0, cache: str | None = None) -> str:
        (modules / "tiny.py").write_text(KERNELS.format(factor=factor), encoding="utf-8")
        (modules / "tiny.py").touch()
        script = SCRIPT.format(modules=str(modules), folder=str(folder), is_build=is_build)
        caches = len(list(tmp_path.glob("cache*")))
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": cache or str(tmp_path / f"cache{caches}"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-c", script]
        result = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        return result.stdout.strip()

    assert run(is_build=True) == "3.0 2"
    return Wheel(folder, run)


def edit_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def test_packaged_kernels_are_not_compiled(wheel: Wheel) -> None:
    assert wheel.run() == "3.0 0"
    assert wheel.run(cache="/dev/null") == "3.0 0"  # no folder is writable


def test_changed_constant_of_a_called_kernel_compiles_both(wheel: Wheel) -> None:
    assert wheel.run(factor=5.0) == "6.0 2"


@pytest.mark.parametrize(
    "changes",
    [
        {"numba": "0.1"},
        {"llvmlite": "0.1"},
        {"numpy": "0.1"},
        {"svml": "other"},
        {"python": "cpython-27"},
        {"features": ["avx99"]},
        {"machine": "vax"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_kernels_for_another_process_are_compiled(wheel: Wheel, changes: dict[str, Any]) -> None:
    edit_manifest(wheel.folder, **changes)
    assert wheel.run() == "3.0 2"


@pytest.mark.parametrize("damage", [b"", b"\0" * 500, None], ids=["empty", "zeros", "one bit"])
def test_damaged_kernels_are_compiled(wheel: Wheel, damage: bytes | None) -> None:
    for path in wheel.folder.glob("*.kernel"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content if damage is None else damage)
    assert wheel.run() == "3.0 2"


def test_damaged_manifest_is_ignored(wheel: Wheel) -> None:
    for text in ("", "[]", "{}", '{"features": 3}', "\ud800"):
        (wheel.folder / "manifest.json").write_text(text, encoding="utf-8", errors="surrogatepass")
        assert wheel.run() == "3.0 2"

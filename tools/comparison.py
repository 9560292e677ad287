"""Run one script with the source of a commit. Shared by tools/compare_runs.py and tools/compare_descriptions.py.

The source of a commit and its compiled kernels stay below build/comparison, so a second comparison starts at once. The
kernels of each state of the source have their own folder, named by the hash of the source. The working tree runs in
place.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from source_hash import source_hash

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "comparison"

WORKING_TREE = "the working tree"


def git(*arguments: str) -> bytes:
    """Return the output of a git command."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S607


def check_out(commit: str | None) -> Path:
    """Return the folder `src` of a commit, or that of the working tree."""
    if commit is None:
        return ROOT / "src"
    name = git("rev-parse", "--verify", f"{commit}^{{commit}}").decode().strip()
    target = FOLDER / "commits" / name
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
            with tarfile.open(fileobj=io.BytesIO(git("archive", name, "src"))) as archive:
                archive.extractall(temporary, filter="data")
            Path(temporary, "src").rename(Path(temporary, "checked-out"))
            target.mkdir()
            Path(temporary, "checked-out").rename(target / "src")
    return target / "src"


def run_script(script: str, commit: str | None, arguments: list[str]) -> dict[str, Any]:
    """Run a script of tools/ with the source of a commit. Return the JSON that it writes."""
    source = check_out(commit)
    kernels = FOLDER / "kernels" / source_hash(source)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output.json"
        surroundings = {
            **os.environ,
            "PYTHONPATH": str(source),
            "NUMBA_CACHE_DIR": str(kernels),
            "NO_COLOR": "1",
            "COLUMNS": "120",
            "PYTHONHASHSEED": "0",
        }
        command = [sys.executable, str(ROOT / "tools" / script), str(source), str(output), *arguments]
        subprocess.run(command, cwd=ROOT, env=surroundings, check=True)
        found: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return found


def is_saved(given: str | None) -> bool:
    """Return whether an argument names a file that --save wrote, and no commit."""
    return given is not None and Path(given).suffix == ".json"


def results_of(script: str, given: str | None, arguments: list[str]) -> dict[str, Any]:
    """Return the results of a commit, of the working tree (None) or of a file that --save wrote."""
    if given is not None and is_saved(given):
        saved: dict[str, Any] = json.loads(Path(given).read_text(encoding="utf-8"))
        return saved
    print(f"==> {given or WORKING_TREE}", flush=True)
    return run_script(script, given, arguments)


def check_source(source: str) -> None:
    """Exit if Python imports navsense from another folder than the checked-out source."""
    import navsense

    found = Path(navsense.__file__).resolve()
    if not found.is_relative_to(Path(source).resolve()):
        sys.exit(f"navsense comes from {found}; it must come from {source}")

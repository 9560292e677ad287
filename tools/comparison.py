"""Run one script with the source of a commit. Shared by tools/compare_runs.py and tools/compare_descriptions.py.

Each state of the source has a folder in build/comparison, named by the hash of its files, with a copy of the source and
its compiled kernels. So a second comparison of the same state starts at once, and an edit does not disturb a comparison
that runs. The folder can be removed at any time.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "comparison"

PARTS = ("src", "tests/verification")
"""Folders that a comparison needs; old commits have only the first."""

WORKING_TREE = "the working tree"


def git(*arguments: str) -> bytes:
    """Return the output of a git command. Exit with git's message if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True)  # noqa: S607
    if done.returncode:
        sys.exit(done.stderr.decode().strip())
    return done.stdout


def hash_files(folder: Path) -> str:
    """Return 16 hexadecimal digits that change whenever a file below `folder` does, or moves."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            digest.update(f"{len(name)}:{name}:{len(content)}:".encode())
            digest.update(content)
    return digest.hexdigest()


def check_out(commit: str | None) -> Path:
    """Return the folder with `src` and `tests/verification` of a commit, or of the working tree."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as temporary:
        copy = Path(temporary, "copy")
        if commit is None:
            for part in PARTS:
                shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            parts = git("ls-tree", "--name-only", commit, *PARTS).decode().split()
            with tarfile.open(fileobj=io.BytesIO(git("archive", commit, *parts))) as archive:
                archive.extractall(copy, filter="data")
        target = FOLDER / hash_files(copy)
        if not target.is_dir():
            copy.rename(target)
    return target


def run_script(script: str, commit: str | None, arguments: list[str]) -> dict[str, Any]:
    """Run a script of tools/ with the source of a commit. Return the JSON that it writes."""
    state = check_out(commit)
    source, kernels = state / "src", state / "kernels"
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
        results: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return results


def is_saved(state: str | None) -> bool:
    """Return whether an argument names a file that --save wrote, and no commit."""
    return state is not None and Path(state).suffix == ".json"


def read_results(script: str, state: str | None, arguments: list[str]) -> dict[str, Any]:
    """Return the results of a commit, of the working tree (None) or of a file that --save wrote."""
    if state is not None and is_saved(state):
        saved: dict[str, Any] = json.loads(Path(state).read_text(encoding="utf-8"))
        return saved
    print(f"==> {state or WORKING_TREE}", flush=True)
    return run_script(script, state, arguments)


def check_source(source: str) -> None:
    """Exit if Python imports navsense from another folder than the checked-out source."""
    import navsense

    package = Path(navsense.__file__).resolve()
    if not package.is_relative_to(Path(source).resolve()):
        sys.exit(f"navsense comes from {package}; it must come from {source}")

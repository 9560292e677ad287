"""The installed package equals the project: metadata, types, command, extras; and `make` without venv."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import navsense

ROOT = Path(__file__).resolve().parent.parent
APT_LINE = "apt-get install python3-venv"


def read_pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read_metadata() -> metadata.Distribution:
    try:
        return metadata.distribution("navsense")
    except metadata.PackageNotFoundError:
        pytest.skip("navsense is not installed here: its sources alone are on the path")


def base_name(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]


def test_version_is_the_same_everywhere() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", navsense.__version__)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [navsense.__version__]
    assert read_metadata().version == navsense.__version__


def test_changelog_contains_the_version_or_unreleased_changes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d+\.\d+\.\d+)", text, flags=re.MULTILINE)
    assert "## Unreleased" in text or navsense.__version__ in released


def test_py_typed_file_is_installed() -> None:
    assert (Path(navsense.__file__).parent / "py.typed").is_file()


def test_command_is_installed() -> None:
    (entry,) = read_metadata().entry_points.select(group="console_scripts", name="navsense")
    assert entry.value == "navsense.cli:main"
    assert callable(entry.load())


def test_package_metadata_equals_pyproject() -> None:
    project = read_pyproject()["project"]
    head = read_metadata().metadata
    assert head["Requires-Python"] == project["requires-python"]
    assert head["License-Expression"] == "Apache-2.0"
    expected = {base_name(requirement) for requirement in project["dependencies"]}
    metadata = {base_name(line) for line in read_metadata().requires or () if "extra ==" not in line}
    assert metadata == expected


def test_core_dependencies_are_in_no_extra() -> None:
    project = read_pyproject()["project"]
    core = {base_name(requirement) for requirement in project["dependencies"]}
    extras = {base_name(line) for lines in project["optional-dependencies"].values() for line in lines}
    assert not core & extras


def list_imported_packages() -> set[str]:
    """Return the packages that the source imports."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").partition(".")[0])
    return found


IMPORT_NAMES = {"eclipse-zenoh": "zenoh", "pyzmq": "zmq"}
"""Distribution -> name of its package, where they differ."""


def test_extras_install_all_imports() -> None:
    extras = read_pyproject()["project"]["optional-dependencies"]
    named = {
        base_name(line) for name, lines in extras.items() if name not in ("docs", "lint", "test") for line in lines
    }
    imported = {IMPORT_NAMES.get(name, name) for name in named}
    assert imported <= list_imported_packages()


def test_every_requirement_has_a_lowest_version() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        versions = importlib.import_module("versions")
    finally:
        sys.path.remove(str(ROOT / "tools"))
    assert "rosbags==0.11.7" in versions.lowest_constraints()
    assert len(versions.lowest_constraints()) == len(versions.list_requirements())


def test_every_core_dependency_is_pinned_for_tests() -> None:
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}
    project = read_pyproject()["project"]
    named = project["dependencies"] + [
        line for extra in ("docs", "lint", "test") for line in project["optional-dependencies"][extra]
    ]
    assert {base_name(requirement) for requirement in named} <= pinned


def test_import_loads_no_heavy_module() -> None:
    heavy = read_pyproject()["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"]
    script = f"import sys, navsense; print(*[name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=make_environment()
    )
    assert done.stdout.split() == []


def test_import_of_the_sdf_reader_calls_no_kernel() -> None:
    """The first kernel imports Numba, which takes as long as reading a small world."""
    script = "import sys, navsense.sdf; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=make_environment()
    )
    assert done.stdout.split() == ["False"]


def make_environment() -> dict[str, str]:
    """Return the environment of a child process that finds the same package as this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.fixture
def bare_folder(tmp_path: Path) -> Path:
    """Return a copy of the files that `make` needs, with a folder `bin` for fake python3 programs."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "empty").mkdir()
    return tmp_path


def run_make(folder: Path, python3: str, target: str) -> subprocess.CompletedProcess[str]:
    """Run make with a fake python3 and an empty home folder."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("needs make")
    stand_in = folder / "bin" / "python3"
    stand_in.write_text(python3, encoding="utf-8")
    stand_in.chmod(0o755)
    surroundings = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder / "empty"), "LC_ALL": "C"}
    return subprocess.run(
        [make, target], cwd=folder, env=surroundings, capture_output=True, text=True, check=False, timeout=60
    )


WITHOUT_ENSUREPIP = """#!/bin/sh
case "$*" in *ensurepip*) exit 1 ;; *"-m venv"*) mkdir -p .venv/bin; exit 1 ;; esac
"""

VENV_FAILS = """#!/bin/sh
case "$*" in *"-m venv"*) mkdir -p .venv/bin; exit 1 ;; esac
"""

TOO_OLD = """#!/bin/sh
case "$*" in *version_info*) exit 1 ;; esac
"""


@pytest.mark.parametrize("target", ["demo", "test", "lint"])
@pytest.mark.parametrize("python3", [WITHOUT_ENSUREPIP, VENV_FAILS, TOO_OLD], ids=["no-ensurepip", "venv-fails", "old"])
def test_make_names_missing_packages(bare_folder: Path, python3: str, target: str) -> None:
    done = run_make(bare_folder, python3, target)
    assert done.returncode == 2
    reported = [line for line in done.stderr.splitlines() if APT_LINE in line]
    assert len(reported) == 1
    assert not (bare_folder / ".venv").exists()

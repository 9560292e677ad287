"""Run the suite with the lowest and with the newest versions of all dependencies that pyproject.toml allows.

Usage: python tools/versions.py [lowest|newest ...] [--python PYTHON] [--at FOLDER] [-- ARGUMENTS OF PYTEST]

For each it creates an environment in FOLDER (build/versions), installs navsense with these versions, prints them and
runs pytest there. The exit code is 1 if an installation or a test fails. The lowest versions are the bounds `>=` in
pyproject.toml. Indirect dependencies have the newest versions that fit.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*>=\s*([0-9][0-9A-Za-z.]*)")


def list_requirements() -> list[str]:
    """Return the requirements of navsense and of its tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["test"]]


def lowest_constraints() -> list[str]:
    """Return the constraints `NAME==LOWEST VERSION`. Raise `ValueError` for a requirement without a lower bound."""
    pins = []
    for requirement in list_requirements():
        bound = BOUND.match(requirement)
        if bound is None:
            raise ValueError(f"pyproject.toml: {requirement} has no lower bound")
        pins.append(f"{bound[1]}=={bound[2]}")
    return sorted(set(pins))


def run_suite(versions: str, python: str, folder: Path, arguments: list[str]) -> bool:
    """Run the suite in a new environment with these versions. True if it passes."""
    here = folder / versions
    inside = str(here / "bin" / "python")
    print(f"==> environment with the {versions} versions in {here}", flush=True)
    subprocess.run([python, "-m", "venv", "--clear", here], check=True)
    pip = [inside, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    command = [*pip, "install", "--progress-bar", "off", "--upgrade", "--editable", f"{ROOT}[test]"]
    if versions == "lowest":
        constraints = here / "lowest.txt"
        constraints.write_text("\n".join(lowest_constraints()) + "\n", encoding="utf-8")
        command += ["--constraint", str(constraints)]
    if subprocess.run(command, check=False).returncode:
        print(f"==> the {versions} versions: cannot be installed", flush=True)
        return False
    subprocess.run([inside, "--version"], check=True)
    subprocess.run([*pip, "list", "--format", "freeze"], check=True)
    surroundings = {**os.environ, "NUMBA_CACHE_DIR": str(here / "kernels")}
    done = subprocess.run([inside, "-m", "pytest", *arguments], cwd=ROOT, env=surroundings, check=False)
    print(f"==> the {versions} versions: {'passed' if done.returncode == 0 else 'failed'}", flush=True)
    return done.returncode == 0


def main() -> None:
    """Run the suite."""
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="lowest|newest", help="both by default")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environments")
    parser.add_argument("--at", type=Path, default=ROOT / "build" / "versions", help="the folder of the environments")
    options = parser.parse_args(sys.argv[1:cut])
    chosen = options.versions or ["lowest", "newest"]
    if set(chosen) - {"lowest", "newest"}:
        parser.error("versions are lowest and newest")
    passed = [run_suite(versions, options.python, options.at.resolve(), sys.argv[cut + 1 :]) for versions in chosen]
    sys.exit(not all(passed))


if __name__ == "__main__":
    main()

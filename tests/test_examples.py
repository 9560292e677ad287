"""The examples run, each to its own assertion."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(example)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout


def test_the_first_lines_of_the_readme_run(tmp_path: Path) -> None:
    block = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    script = tmp_path / "readme.py"
    script.write_text(block.replace('"examples/', f'"{ROOT.as_posix()}/examples/'), encoding="utf-8")
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "(30000, 3)" in ended.stdout
    assert (tmp_path / "quadrotor.mcap").stat().st_size > 1_000_000

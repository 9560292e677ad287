"""Every example runs and its assertions hold."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = frozenset(("seabed", "outputs", "gz_sim_system"))
"""Examples that a separate test runs."""

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem not in ELSEWHERE)

NEEDS = dict.fromkeys(("mag_factor", "attitude_graph", "dead_reckoning", "survey_factors"), "gtsam")
"""Extras that an example requires in addition to the core."""


def read_code_blocks(path: str) -> list[str]:
    """Return the Python code of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.requirement("FAC-3", "FAC-4", "FAC-5", "FAC-7")
def test_example_runs(example: Path, tmp_path: Path) -> None:
    if example.stem in NEEDS:
        pytest.importorskip(NEEDS[example.stem])
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(example)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
    written = re.findall(r"^wrote (\S+?)(?::|$)", ended.stdout, re.MULTILINE)
    assert [path for path in written if path.endswith(".csv")] == [f"out/{example.stem}.csv"]
    for path in written:
        assert (tmp_path / path).stat().st_size > 100
    assert sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "out").iterdir()) == sorted(written)
    last = ended.stdout.strip().splitlines()[-1]
    assert last.startswith(("wrote ", "no picture: ")), "an example ends with what it wrote"


def test_example_without_matplotlib_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['matplotlib'] = None\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    ended = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "own_arrays.py")],
        capture_output=True, text=True, cwd=tmp_path, env=environment, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("no picture: matplotlib is not installed; pip install 'navsense[picture]'\n")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["own_arrays.csv"]


@pytest.mark.requirement("DVU-2", "CUR-2")
def test_pages_on_worlds_and_recordings_run(tmp_path: Path) -> None:
    """The altimeter measures a boulder under the vehicle; rosbags reads the current of the recording."""
    boulder = next(block for block in read_code_blocks("docs/reference/worlds.md") if "auv_survey.sdf" in block)
    boulder = boulder.replace('"examples/', f'"{ROOT.as_posix()}/examples/')
    run = 'run = ns.simulate(world, 8.0, seed=1)\nns.record(world, "run.mcap", 2.0, seed=1)\n'
    statement = 'print(run["auv::altimeter_link::altimeter"].ideal["range"].min(), run.current.velocity[1, 0])\n'
    reading = next(block for block in read_code_blocks("docs/reference/recordings.md") if "rosbags" in block)
    script = tmp_path / "page.py"
    script.write_text(boulder + run + statement + reading, encoding="utf-8")
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == 0, ended.stderr
    (nearest, east), *rows = [[float(word) for word in line.split()] for line in ended.stdout.splitlines()]
    assert 7.4 < nearest < 7.7  # the beam starts at -28.46 m, the top of the boulder is at -36 m, the bed at -41 m
    assert rows[1] == [1.0, east]


PROLOGUE = """
import gtsam, numpy as np
key, key1, key2 = 0, 1, 2
direction, bias, scale, model = np.array([0.0, 0.6, -0.8]), np.array([10.0, -5.0, 2.0]), 48e3, 50.0
attitudes = np.random.default_rng(1).normal(size=(50, 4))
attitudes /= np.linalg.norm(attitudes, axis=1)[:, None]
readings = np.array([gtsam.Rot3.Quaternion(*q).unrotate(scale * direction) for q in attitudes.tolist()]) + bias
measured, nRb, graph = readings[0], gtsam.Rot3.Quaternion(*attitudes[0].tolist()), gtsam.NonlinearFactorGraph()
latitude, longitude, altitude, declination, inclination = 0.8, 0.1, 500.0, 0.05, 1.1
reading = np.array([1e-5, 2e-5, 3e-5])
np.savetxt("log.csv", readings / 1e3, delimiter=",", header="mag_x,mag_y,mag_z", comments="")
"""
"""Variables that the page on magnetometers uses without definition."""

EPILOGUE = """
assert np.abs(error).max() < 1e-9, error
assert graph.size() == 3
assert np.allclose(np.concatenate(many.optimum()), [*(scale * direction), *bias], rtol=1e-5, atol=1e-8)
assert block.residual.shape == (50, 3) and np.abs(block.residual).max() < 1e-9
assert pure.shape == (3,)
assert ns.calibration.Calibration.load("calibration.json").unit == "T"
assert (result.unit, result.verdict.ok) == ("nT", True)
free = ns.calibration.ellipsoid(samples.field, unit="nT")
assert free.direction is None
print("done")
"""


@pytest.mark.requirement("FAC-1", "FAC-4", "FAC-6", "DOC-1:blocks")
def test_page_on_magnetometers_runs(tmp_path: Path) -> None:
    pytest.importorskip("gtsam")
    bags, pages = import_from("tests/calibration", "bags"), import_from("tools", "pages")
    scene = bags.BagContent(tmp_path / "bag", attitude="nav_msgs/msg/Odometry", attitude_topic="/odom")
    shutil.copy(next(bags.record(scene).glob("*.mcap")), tmp_path / "drive.mcap")
    ended = pages.run_page(ROOT / "docs" / "reference" / "magnetometer.md", tmp_path, PROLOGUE, EPILOGUE)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("done\n")


def import_from(folder: str, name: str) -> Any:
    sys.path.insert(0, str(ROOT / folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / folder))

"""`navsense calibrate` as a person types it: what it prints, writes and returns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import navsense as ns
from navsense import cli
from navsense.calibration import Calibration

pytestmark = pytest.mark.requirement("FAC-6", "FAC-7")


def calibrate(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "navsense", "calibrate", *map(str, arguments)]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False, timeout=110)


@dataclass
class Ended:
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Return what runs the command in this process, without another second for its start."""

    def run(*arguments: object, cwd: Path | None = None) -> Ended:
        monkeypatch.setattr(sys, "argv", ["navsense", "calibrate", *map(str, arguments)])
        if cwd is not None:
            monkeypatch.chdir(cwd)
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run


def printed(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Return bias and matrix of the formula in an output."""
    number = r"(-?[0-9.]+(?:e[-+]?[0-9]+)?)"
    (bias,) = re.findall(rf"  bias = \({number}, {number}, {number}\)", text)
    rows = re.findall(rf"    \[ ?{number},  ?{number},  ?{number}\]", text.partition("  M =\n")[2])
    assert len(rows) == 3
    return np.array(bias, dtype=float), np.array(rows, dtype=float)


def test_a_bag_of_another_program(bag: Path, bags: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "calibration.json", tmp_path / "before-after.png"
    ended = calibrate(bag, "--topic", "/imu/mag", "--attitude", "/attitude", "-o", out, "--picture", picture)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    scene = bags.Scene(bag)
    field = bags.readings(scene)
    bias, matrix = printed(ended.stdout)
    found = Calibration.load(out)
    # What is printed is what is saved, to nine digits, and maps the readings as `apply` does.
    assert np.allclose((field - bias) @ matrix.T, found.apply(field), rtol=0.0, atol=1e-8 * found.scale)
    stddev = np.array([found.stddev[f"bias.{axis}"] for axis in "xyz"])
    assert np.all(np.abs(found.bias - scene.bias) < 5.5 * stddev)  # passed once in ten million
    gain = found.scale * found.soft_iron
    assert np.abs(gain - np.linalg.norm(scene.field_w) * scene.soft_iron).max() < 0.3 * scene.noise
    assert picture.read_bytes().startswith(b"\x89PNG")
    for part in ("mag_link in imu_link by /tf_static", "an Imu's orientation", "verdict    ok", f"wrote {out}"):
        assert part in ended.stdout


def test_without_attitude(inside: Callable[..., Ended], bag: Path, bags: ModuleType) -> None:
    ended = inside(bag, "--strength", "48.1uT")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    bias, matrix = printed(ended.stdout)
    assert np.abs(bias - bags.Scene(bag).bias).max() < 1e-7
    length = np.linalg.norm((bags.readings(bags.Scene(bag)) - bias) @ matrix.T, axis=1)
    assert abs(length.mean() - 48.1e-6) < 0.1e-6
    assert "of length 4.81e-05 T" in ended.stdout


def test_a_recording_with_its_truth_and_mounting(inside: Callable[..., Ended], tmp_path: Path) -> None:
    poses = "".join(
        f'<navsense:waypoint time="{3 * i}">0 0 1 {1.2 * i} {0.7 * np.sin(1.9 * i)} {0.4 * i}</navsense:waypoint>'
        for i in range(14)
    )
    (tmp_path / "w.sdf").write_text(f"""<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">
      <model name="m"><navsense:motion>{poses}</navsense:motion><link name="l">
        <sensor name="mag" type="magnetometer"><pose>0 0 0 0.2 -0.4 0.6</pose><update_rate>40</update_rate>
        <magnetometer>
          {"".join(f'<{a}><noise type="gaussian"><stddev>3e-7</stddev></noise></{a}>' for a in "xyz")}
          <navsense:hard_iron>3e-6 -2e-6 4e-6</navsense:hard_iron>
        </magnetometer></sensor></link></model></world></sdf>""")
    path = tmp_path / "run.npz"
    ns.simulate(ns.load(tmp_path / "w.sdf"), 36.0, seed=3).save(path)
    ended = inside(path, "--attitude", "truth", "--no-soft-iron")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "truth of m::l, through the sensor's mounting" in ended.stdout
    bias, matrix = printed(ended.stdout)
    assert np.abs(bias - [3e-6, -2e-6, 4e-6]).max() < 5.5 * 3e-7 / np.sqrt(1440.0) * 2.0
    assert np.array_equal(matrix, np.eye(3))
    turned = inside(path, "--attitude", "truth", "--no-soft-iron", "--mounting", 0, 0, 0)
    assert turned.returncode == 2 or "verdict    poor" in turned.stdout, "a wrong mounting does not pass"


def test_a_doubtful_one_ends_with_1(inside: Callable[..., Ended], bags: ModuleType, tmp_path: Path) -> None:
    path = bags.record(bags.Scene(tmp_path / "late", lie=0.05))
    ended = inside(path, "--attitude", "/attitude")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "verdict    poor" in ended.stdout
    assert "a lag between the sensors" in ended.stdout


@pytest.mark.parametrize(("unit", "remedy"), [(1e9, "look like nT: say --unit nT"), (1e4, "say --unit G")])
def test_drivers_of_another_unit_are_noticed(
    inside: Callable[..., Ended], bags: ModuleType, unit: float, remedy: str, tmp_path: Path
) -> None:
    path = bags.record(bags.Scene(tmp_path / "drive", unit=unit, covariance=0.0, count=500, rate=40.0))
    ended = inside(path)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert remedy in ended.stderr
    named = remedy.rpartition(" ")[2]
    mended = inside(path, "--unit", named)
    assert mended.returncode == 0, mended.stderr
    assert f"{named} an axis" in mended.stdout


def level(path: Path) -> Path:
    """Write a table of a vehicle that turns on a plane."""
    turn, rng = np.linspace(0.0, 20.0, 2000), np.random.default_rng(1)
    rows = np.stack([20.0 * np.cos(turn) + 5.0, 20.0 * np.sin(turn), np.full(turn.size, -40.0)], axis=1)
    np.savetxt(
        path, rows + rng.normal(0.0, 0.2, rows.shape), delimiter=",", header="mx [uT],my [uT],mz [uT]", comments=""
    )
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["level.csv"], "tilt the sensor"),
        (["alike.csv"], "all readings are alike"),
        (["two.csv"], "2 readings"),
        (["none.csv"], "none.csv table: does not exist"),
        (["none.mcap"], "none.mcap does not exist; check the path"),
        (["."], "is a folder, and no ROS 2 bag"),
        (["level.csv", "-o", "c.yaml"], "output: c.yaml; must end in .json"),
        (["level.csv", "-o", "no/c.json"], "the directory does not exist"),
        (["level.csv", "--picture", "p.gif"], "output: p.gif; must end in .png, .svg, .pdf"),
        (["level.csv", "--strength", "strong"], "strength: strong; must be a number"),
        (["level.csv", "--attitude", "truth"], "no attitude in the header"),
        (["level.csv", "--unit", "parsec"], "'parsec' is not one of"),
        (["level.csv", "--mounting", "1", "2"], "requires 3 arguments"),
    ],
)
def test_refusals_are_one_line_and_exit_code_2(
    inside: Callable[..., Ended], arguments: list[str], message: str, tmp_path: Path
) -> None:
    level(tmp_path / "level.csv")
    (tmp_path / "alike.csv").write_text("mx,my,mz\n" + "1e-5,2e-5,3e-5\n" * 50)
    (tmp_path / "two.csv").write_text("mx,my,mz\n1e-5,2e-5,3e-5\n2e-5,1e-5,3e-5\n")
    ended = inside(*arguments, cwd=tmp_path)
    assert ended.returncode == 2, ended.stdout
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len([line for line in ended.stderr.splitlines() if line.lower().startswith("error")]) == 1

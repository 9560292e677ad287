"""`navsense demo`: everything that it prints exists and works."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import navsense as ns
from navsense.cli import cli
from navsense.demo import COMPASS, QUADROTOR, DemoFile, files, write_demo
from navsense.recordings.summary import read_summary

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return an empty folder in which the command ran, and its output."""
    cwd = tmp_path_factory.mktemp("demo")
    ended = run_program(cwd, "-m", "navsense", "demo")
    return cwd, ended.stdout


def run_program(cwd: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder. The program must succeed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert ended.returncode == 0, ended.stderr
    return ended


def test_demo_writes_the_files_that_it_names(demo: tuple[Path, str]) -> None:
    cwd, output = demo
    written = [cwd / name for name in re.findall(r"^wrote (\S+): ", output, re.MULTILINE)]
    assert {path.suffix for path in written} >= {".mcap", ".html"}
    assert {path.suffix for path in written} & {".png", ".svg"}
    assert set(written) == set((cwd / "navsense-demo").iterdir())
    assert {path.name for path in written} < set(files.NAMES)
    assert "removed" not in output
    assert read_summary(written[0]).metadata["world"] == "field"
    assert "Track from above" in (cwd / "navsense-demo" / "quadrotor.html").read_text(encoding="utf-8")


def test_demo_runs_from_the_packaged_files_alone(tmp_path: Path) -> None:
    """A wheel contains the tracked files of the package. The cache is empty, as after an installation."""
    listed = subprocess.run(
        ["git", "ls-files", "src/navsense"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not listed:
        pytest.skip("needs the repository, to tell its files from others")
    site, empty = tmp_path / "site", tmp_path / "empty"
    for name in listed:
        target = site / Path(name).relative_to("src")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    empty.mkdir()
    packages = [str(site), *(path for path in sys.path if path and not Path(path).is_relative_to(ROOT / "src"))]
    variables = {"PYTHONPATH": os.pathsep.join(packages), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    output = run_program(empty, "-m", "navsense", "demo", **variables).stdout
    assert str(site / "navsense" / "demo" / "quadrotor.sdf") in output
    assert len(list((empty / "navsense-demo").iterdir())) == 4


@pytest.mark.parametrize("command", ["demo", "warm"])
def test_first_line_is_printed_before_anything_slow_is_imported(tmp_path: Path, command: str) -> None:
    code = f"""
import sys
import click
from navsense.cli import cli

def report(text, **options):
    print([name for name in ("numpy", "numba", "navsense.sdf", "navsense.demo") if name in sys.modules], text)
    sys.exit(0)

click.echo = report
cli(["{command}"])
"""
    output = run_program(tmp_path, "-c", code).stdout
    assert output.startswith("[] ")
    assert not list(tmp_path.iterdir())


def test_lines_of_the_demo_fit_80_columns(demo: tuple[Path, str]) -> None:
    """The line with the path of the packaged world can be longer."""
    assert max(len(line) for line in demo[1].splitlines() if str(QUADROTOR) not in line) <= 80


def test_commands_that_copy_and_simulate_the_world_run(demo: tuple[Path, str]) -> None:
    cwd, output = demo
    copy, run = (shlex.split(line) for line in output.splitlines()[-2:])
    assert copy == ["cp", str(QUADROTOR), "world.sdf"]
    shutil.copyfile(copy[1], cwd / copy[2])
    assert run[:3] == ["navsense", "run", "world.sdf"]
    run[run.index("--duration") + 1] = "1"
    run_program(cwd, "-m", *run)
    stamp = ns.open(cwd / "world.mcap")["imu"].stamp
    assert stamp.min() > 0  # also of a clock that is behind


@pytest.mark.parametrize("folder", ["-x", "~", "$(touch x)"])
def test_commands_are_safe_for_any_name_of_a_folder(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(folder).mkdir()
    written = tuple(
        DemoFile(kind, Path(folder, kind), "content") for kind in ("flight", "report", "picture", "compass")
    )
    for file in written:
        file.path.touch()
    monkeypatch.setattr("navsense.demo.write_demo", lambda *_arguments, **_options: written)
    output = CliRunner().invoke(cli, ["demo", f"--output={folder}"], catch_exceptions=False).stdout
    (command,) = re.findall(r"^ *navsense calibrate (.*) --attitude truth$", output, re.MULTILINE)
    printed = subprocess.run(["sh", "-c", f"printf %s {command}"], capture_output=True, text=True, check=True).stdout
    assert not printed.startswith("-")
    assert Path(printed).samefile(written[3].path)


def test_commands_quote_the_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my 'first' demo"
    folder.mkdir()
    paths = {kind: folder / kind for kind in ("flight", "report", "picture", "compass")}
    for path in paths.values():
        path.touch()
    written = tuple(DemoFile(kind, path, "content") for kind, path in paths.items())
    monkeypatch.setattr("navsense.demo.write_demo", lambda *_arguments, **_options: written)
    output = CliRunner().invoke(cli, ["demo", "-o", str(folder)], catch_exceptions=False).stdout
    (command,) = re.findall(r"^ *(navsense calibrate .*)$", output, re.MULTILINE)
    assert shlex.split(command)[2:] == [str(paths["compass"]), "--attitude", "truth"]
    (text,) = re.findall(r"ns\.open\((.*)\)$", output, re.MULTILINE)
    assert ast.literal_eval(text) == str(paths["flight"])


def test_python_lines_of_the_demo_run(demo: tuple[Path, str]) -> None:
    cwd, output = demo
    code = re.search(r"in Python:\n(.*?)\n\n", output, re.DOTALL)
    assert code is not None
    printed = run_program(cwd, "-c", textwrap.dedent(code[1])).stdout
    assert len(re.findall(r"-?\d\.\d+(?:e-\d+)?", printed)) >= 18  # the first and last rows of an array (n, 3)


@pytest.mark.parametrize("attitude", ["truth", "none"])
def test_compass_of_the_demo_calibrates_to_its_iron(demo: tuple[Path, str], attitude: str) -> None:
    cwd, output = demo
    (command,) = re.findall(r"navsense (calibrate \S+ --attitude) truth", output)
    run_program(cwd, "-m", "navsense", *command.split(), attitude, "-o", "compass.json")
    result = ns.calibration.Calibration.load(cwd / "compass.json")
    spec = ns.load(COMPASS).sensors[0].spec
    assert isinstance(spec, ns.sensors.Magnetometer)
    sigma = np.array([result.stddev[f"bias.{axis}"] for axis in "xyz"])
    assert (np.abs(result.bias - spec.hard_iron) < 5.5 * sigma).all()  # false alarm 1e-7
    assert result.verdict.ok


def test_demo_without_matplotlib_draws_an_svg(
    demo: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    path = files.write_picture(demo[0] / "navsense-demo" / "quadrotor.mcap", tmp_path)
    assert path == tmp_path / "quadrotor.svg"
    svg = "{http://www.w3.org/2000/svg}"
    drawing = ET.parse(path).getroot()  # noqa: S314 - a file of this test
    titles = [text.text for text in drawing.findall(f".//{svg}text[@class='heading']")]
    assert titles == ["Track from above", "Height of the track"]
    (above,) = drawing.findall(f".//{svg}svg[@class='map']")
    (line,) = above.findall(f".//{svg}path[@class='casing']")
    points = line.attrib["d"][1:].split("L")
    x, y = np.array([point.split(",") for point in points], dtype=np.float64).T
    stretch = float(above.attrib["width"]) / float(above.attrib["height"])
    truth = ns.open(demo[0] / "navsense-demo" / "quadrotor.mcap").truth["base_link"].position
    expected = np.ptp(truth[:, 0]) / np.ptp(truth[:, 1])
    # Points are whole thousandths of the width and of the height.
    assert stretch * np.ptp(x) / np.ptp(y) == pytest.approx(expected, rel=3e-3, abs=0.0)
    assert len(points) > 1000
    assert drawing.findall(f".//{svg}svg[@class='plot']//{svg}path[@class='c1']")


def test_earlier_demo_is_removed_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted demo leaves no mixture of two demos. Other files stay."""
    for name in (*files.NAMES, "notes.txt"):
        (tmp_path / name).touch()

    def interrupt(folder: str, **_options: object) -> None:
        assert [path.name for path in Path(folder).iterdir()] == ["notes.txt"]
        raise KeyboardInterrupt

    monkeypatch.setattr("navsense.demo.write_demo", interrupt)
    result = CliRunner().invoke(cli, ["demo", "-o", str(tmp_path)])
    assert result.exit_code == 130
    assert f"{tmp_path}: removed the earlier demo\n" in result.stdout
    assert result.stderr.endswith(f"stopped; the demo in {tmp_path} is incomplete\n")
    assert not files.remove_demo(tmp_path)


def test_folder_that_is_a_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("text", encoding="utf-8")
    with pytest.raises(ns.NavsenseError, match=r"out: is a file, not a folder; name another folder$"):
        write_demo(tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "text"


def test_example_is_a_copy_of_the_packaged_world() -> None:
    """Not a link: a copy of the folder, a ZIP archive and Windows contain the file."""
    example = ROOT / "examples" / "quadrotor.sdf"
    assert not example.is_symlink()
    assert example.read_bytes() == QUADROTOR.read_bytes(), "cp src/navsense/demo/quadrotor.sdf examples/"
    assert QUADROTOR.is_relative_to(Path(ns.__file__).parent)

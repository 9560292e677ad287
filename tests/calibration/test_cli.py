"""`navsense calibrate`: output, files and exit code."""

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
from scipy.linalg import polar
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense import cli
from navsense.calibration import Calibration
from navsense.cli.progress import COMPILING

pytestmark = pytest.mark.requirement("FAC-6", "FAC-7")


def run_calibrate(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "navsense", "calibrate", *map(str, arguments)]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False, timeout=110)


@dataclass
class CommandResult:
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """The output without its line breaks."""
        return " ".join(self.stdout.split())


@pytest.fixture
def run_in_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., CommandResult]:
    """Return a function that runs the command in this process. This saves a second per call."""

    def run(*arguments: object, cwd: Path | None = None) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["navsense", "calibrate", *map(str, arguments)])
        if cwd is not None:
            monkeypatch.chdir(cwd)
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        output = capsys.readouterr()
        return CommandResult(code, output.out, output.err.replace(f"{COMPILING}\n", ""))

    return run


def read_formula(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Return bias and matrix of the printed formula."""
    number = r"(-?[0-9.]+(?:e[-+]?[0-9]+)?)"
    (bias,) = re.findall(rf"  bias = \({number}, {number}, {number}\)", text)
    rows = re.findall(rf"    \[ ?{number},  ?{number},  ?{number}\]", text.partition("  M =\n")[2])
    assert len(rows) == 3
    return np.array(bias, dtype=float), np.array(rows, dtype=float)


def test_bag_is_calibrated_and_drawn(bag: Path, bags: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "calibration.json", tmp_path / "before-after.png"
    result = run_calibrate(bag, "--topic", "/imu/mag", "--attitude", "/attitude", "-o", out, "--picture", picture)
    assert result.returncode == 0, result.stdout + result.stderr
    content = bags.BagContent(bag)
    field = bags.make_readings(content)
    bias, matrix = read_formula(result.stdout)
    found = Calibration.load(out)
    # The printed formula equals the saved one to nine digits, and gives the same field as `apply`.
    assert np.allclose((field - bias) @ matrix.T, found.apply(field), rtol=0.0, atol=1e-8 * found.scale)
    stddev = np.array([found.stddev[f"bias.{axis}"] for axis in "xyz"])
    assert np.all(np.abs(found.bias - content.bias) < 5.5 * stddev)  # a false-alarm rate of 1e-7
    gain = found.scale * found.soft_iron
    assert np.abs(gain - np.linalg.norm(content.field_w) * content.soft_iron).max() < 0.3 * content.noise
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = " ".join(result.stdout.split())
    for part in ("mag_link in imu_link by /tf_static", "the orientation of an Imu", "verdict ok", f"wrote {out}"):
        assert part in text


@pytest.mark.parametrize("attitude", ["none", "/attitude"])
def test_output_fits_80_columns_and_is_complete_with_v(
    run_in_process: Callable[..., CommandResult], bags: ModuleType, tmp_path: Path, attitude: str
) -> None:
    topic = "/world/field/model/" + "/".join(["long"] * 20) + "/mag"
    path = bags.record(bags.BagContent(tmp_path / "drive", topics=(topic,), stamp_offset=0.05 * (attitude != "none")))
    short, complete = (run_in_process(path.name, "--attitude", attitude, *more, cwd=tmp_path) for more in ((), ("-v",)))
    assert max(map(len, short.stdout.splitlines())) <= 80
    assert " …/long/long/long/long/long/long/long/mag (sensor_msgs/msg/MagneticField)" in short.text
    assert f"{topic} (sensor_msgs/msg/MagneticField)" in complete.stdout
    assert read_formula(short.stdout)[0].tolist() == read_formula(complete.stdout)[0].tolist()


def test_bag_without_attitude_is_calibrated(
    run_in_process: Callable[..., CommandResult], bag: Path, bags: ModuleType
) -> None:
    result = run_in_process(bag, "--strength", "48.1uT")
    assert result.returncode == 0, result.stdout + result.stderr
    bias, matrix = read_formula(result.stdout)
    assert np.abs(bias - bags.BagContent(bag).bias).max() < 1e-7
    length = np.linalg.norm((bags.make_readings(bags.BagContent(bag)) - bias) @ matrix.T, axis=1)
    assert abs(length.mean() - 48.1e-6) < 0.1e-6
    assert "|calibrated| = 4.81e-05 T in the earth's field alone" in result.stdout


def test_recording_is_calibrated_with_truth_and_mounting(
    run_in_process: Callable[..., CommandResult], tmp_path: Path
) -> None:
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
    result = run_in_process(path, "--attitude", "truth", "--no-soft-iron")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "truth of m::l, through the sensor's mounting" in result.text
    bias, matrix = read_formula(result.stdout)
    assert np.abs(bias - [3e-6, -2e-6, 4e-6]).max() < 5.5 * 3e-7 / np.sqrt(1440.0) * 2.0
    assert np.array_equal(matrix, np.eye(3))
    turned = run_in_process(path, "--attitude", "truth", "--no-soft-iron", "--mounting", 0, 0, 0)
    assert turned.returncode == 2 or "verdict    poor" in turned.stdout, "a wrong mounting does not pass"


def test_doubtful_calibration_has_exit_code_1(
    run_in_process: Callable[..., CommandResult], bags: ModuleType, tmp_path: Path
) -> None:
    path = bags.record(bags.BagContent(tmp_path / "late", stamp_offset=0.05))
    result = run_in_process(path, "--attitude", "/attitude")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "verdict    poor" in result.stdout
    assert "a delay between the sensors" in result.text


@pytest.mark.parametrize(("unit", "remedy"), [(1e9, "look like nT: give --unit nT"), (1e4, "give --unit G")])
def test_wrong_unit_of_a_driver_is_reported(
    run_in_process: Callable[..., CommandResult], bags: ModuleType, unit: float, remedy: str, tmp_path: Path
) -> None:
    path = bags.record(bags.BagContent(tmp_path / "drive", unit=unit, covariance=0.0, count=500, rate=40.0))
    result = run_in_process(path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert remedy in result.stderr
    named = remedy.rpartition(" ")[2]
    mended = run_in_process(path, "--unit", named)
    assert mended.returncode == 0, mended.stderr
    assert "µT per axis (1 sigma)" in mended.stdout
    assert f" {named} in the earth's field alone" in mended.stdout


def write_level_table(path: Path) -> Path:
    """Write a table of a vehicle that rotates in a plane."""
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
        (["equal.csv"], "all readings are equal"),
        (["two.csv"], "2 readings"),
        (["none.csv"], "none.csv: table: does not exist"),
        (["none.mcap"], "none.mcap: cannot be read: no such file or directory; check the name"),
        (["."], "is a directory, and no recording"),
        (["level.csv", "-o", "c.yaml"], "output: c.yaml; must be a name that ends in .json"),
        (["level.csv", "-o", ".json"], "output: .json; must be a name that ends in .json"),
        (["level.csv", "-o", ""], '--output: ""; must not be empty'),
        (["level.csv", "-o", "/proc/c.json"], "; choose a folder that is writable"),
        (["level.csv", "--picture", "/proc/c.png"], "; choose a folder that is writable"),
        (["turned.csv", "--sensor", "qw", "--attitude", "none"], "--sensor: qw; must be 3 columns, as mx,my,mz; there"),
        (["level.csv", "--strength", "48.3T"], "to 0.00015 T, as the earth's field is; write 48.3uT"),
        (["level.csv", "--run", "3"], "level.csv: run: 3; must be 0: only recordings of navsense"),
        (
            ["level.csv", "--mounting", "0", "0", "1"],
            "level.csv: mounting; requires an attitude: name one with",
        ),
        (["level.csv", "--attitude-stddev", "1"], "--attitude-stddev: 1.0; requires an attitude: name one"),
        (
            ["turned.csv", "--attitude", "truth", "--attitude-stddev", "-1"],
            "stddev: -1.0; must be from 0 to 45 deg",
        ),
        (
            ["turned.csv", "--attitude", "truth", "--attitude-stddev", "nan"],
            "stddev: nan; must be from 0 to 45 deg",
        ),
        (
            ["turned.csv", "--attitude", "truth", "--attitude-stddev", "50"],
            "stddev: 50.0; must be from 0 to 45 deg",
        ),
        (["level.csv", "--strength", "4.8"], "strength: 4.8; must be from 10 to 150 uT, as the earth's field is; give"),
        (["level.csv", "-o", "no/c.json"], "the directory does not exist"),
        (["level.csv", "--picture", "p.gif"], "output: p.gif; must be a name that ends in .png, .svg, .pdf"),
        (["level.csv", "--strength", "strong"], "strength: strong; must be a number"),
        (["level.csv", "--attitude", "truth"], "no attitude in the header"),
        (["level.csv", "--unit", "parsec"], "--unit: parsec; must be one of T, "),
        (["level.csv", "--mounting", "1", "2"], "requires 3 arguments"),
    ],
)
def test_errors_are_one_line_with_exit_code_2(
    run_in_process: Callable[..., CommandResult], arguments: list[str], message: str, tmp_path: Path
) -> None:
    write_level_table(tmp_path / "level.csv")
    (tmp_path / "equal.csv").write_text("mx,my,mz\n" + "1e-5,2e-5,3e-5\n" * 50)
    (tmp_path / "turned.csv").write_text("mx,my,mz,qw,qx,qy,qz\n" + "1e-5,2e-5,3e-5,1,0,0,0\n" * 50)
    (tmp_path / "two.csv").write_text("mx,my,mz\n1e-5,2e-5,3e-5\n2e-5,1e-5,3e-5\n")
    result = run_in_process(*arguments, cwd=tmp_path)
    assert result.returncode == 2, result.stdout
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.lower().startswith("error")]) == 1
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv"}, "nothing is left of what was tried"


def write_tumbling_table(path: Path, change: Callable[[np.ndarray, np.random.Generator], None] | None = None) -> Path:
    """Write a table (uT) of a sensor that rotates fully about two axes, with its attitudes."""
    rng, time = np.random.default_rng(3), np.arange(3000) / 50.0
    turns = Rotation.from_euler("zyx", np.stack([0.5 * time, 0.9 * np.sin(0.7 * time), 1.3 * time], axis=1))
    field = turns.inv().apply([1.2, 21.5, -43.0]) + [9.0, -6.0, 15.0] + rng.normal(0.0, 0.1, (3000, 3))
    if change is not None:
        change(field, rng)
    rows = np.hstack([field, turns.as_quat()])
    np.savetxt(path, rows, delimiter=",", header="mx [uT],my [uT],mz [uT],qx,qy,qz,qw", comments="")
    return path


def test_suffixes_of_any_case_and_micro_signs_are_accepted(
    run_in_process: Callable[..., CommandResult], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    path = write_tumbling_table(tmp_path / "spun.csv")
    result = run_in_process(path, "--strength", "48µT", "-o", "C.JSON", "--picture", "P.PNG", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert Calibration.load(tmp_path / "C.JSON").strength == 48.0
    assert (tmp_path / "P.PNG").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "C.JSON").write_text("kept")
    refused = run_in_process(path, "--strength", "strong", "-o", "C.JSON", cwd=tmp_path)
    assert refused.returncode == 2
    assert (tmp_path / "C.JSON").read_text() == "kept", "what is there stays until there is something to write"


def insert_zeros(field: np.ndarray, rng: np.random.Generator) -> None:
    """Replace 1 percent of the readings by zeros, as drivers do for missing values."""
    field[rng.random(field.shape[0]) < 0.01] = 0.0


@pytest.mark.parametrize("attitude", ["truth", "none"])
def test_zeros_for_missing_readings_are_detected(
    run_in_process: Callable[..., CommandResult], attitude: str, tmp_path: Path
) -> None:
    assert run_in_process(write_tumbling_table(tmp_path / "whole.csv"), "--attitude", attitude).returncode == 0
    result = run_in_process(write_tumbling_table(tmp_path / "holes.csv", insert_zeros), "--attitude", attitude)
    assert result.returncode in (1, 2), result.stdout


def test_noise_above_the_declaration_is_reported(
    run_in_process: Callable[..., CommandResult], bags: ModuleType, tmp_path: Path
) -> None:
    path = bags.record(bags.BagContent(tmp_path / "loud", covariance=2.5e-15, count=1500))  # 50 nT of 200 nT
    result = run_in_process(path)
    ratio = r"(3\.9\d?|4|4\.0\d?|4\.1\d?)"
    assert re.search(
        rf"note: the residuals are {ratio} times the noise that the file declares, 0\.05 µT magnetometer", result.text
    )


def test_remedies_name_options(run_in_process: Callable[..., CommandResult], tmp_path: Path) -> None:
    rng, turn = np.random.default_rng(1), np.linspace(0.0, 20.0, 2000)
    turns = Rotation.from_euler("zy", np.stack([turn, 0.02 * np.sin(3.1 * turn)], axis=1))
    field = turns.inv().apply([1.2, 21.5, -43.0]) + rng.normal(0.0, 0.02, (2000, 3))
    np.savetxt(
        tmp_path / "level.csv",
        np.hstack([field, turns.as_quat()]),
        delimiter=",",
        header="mx [uT],my [uT],mz [uT],qx,qy,qz,qw",
        comments="",
    )
    result = run_in_process(tmp_path / "level.csv", "--attitude", "truth", "--no-soft-iron")
    assert "attitude_stddev" not in result.stdout + result.stderr
    assert "unit=" not in result.stdout + result.stderr


def test_readings_without_calibration_are_drawn(run_in_process: Callable[..., CommandResult], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run_in_process(write_level_table(tmp_path / "level.csv"), "--picture", "p.svg", cwd=tmp_path)
    assert result.returncode == 2
    assert "wrote p.svg: the readings without calibration" in result.stdout
    assert result.stderr.count("error") == 1
    assert (tmp_path / "p.svg").read_bytes().startswith(b"<?xml")


def test_missing_matplotlib_is_an_error_before_reading(
    run_in_process: Callable[..., CommandResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    path = write_tumbling_table(tmp_path / "spun.csv")
    result = run_in_process(path, "--picture", "p.png", "-o", "c.json", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: a picture needs matplotlib; pip install 'navsense[picture]'\n"
    assert [one.name for one in tmp_path.iterdir()] == ["spun.csv"]
    assert run_in_process(path, "-o", "c.json", cwd=tmp_path).returncode == 0


def convert_to_counts(field: np.ndarray, _: np.random.Generator) -> None:
    """Convert uT to the counts of a converter, 150 per uT."""
    field[:] = np.rint(150.0 * field)


@pytest.mark.parametrize("attitude", ["truth", "none"])
def test_counts_are_calibrated_to_a_field(
    run_in_process: Callable[..., CommandResult], attitude: str, tmp_path: Path
) -> None:
    path = write_tumbling_table(tmp_path / "spun.csv", convert_to_counts)
    path.write_text(path.read_text().replace(" [uT]", ""))
    truth = float(np.linalg.norm([1.2, 21.5, -43.0]))
    options = (path, "--unit", "none", "--attitude", attitude, "--strength", f"{truth}uT", "-o", tmp_path / "c.json")
    result = run_in_process(*options, *(("--picture", tmp_path / "p.png") if attitude == "none" else ()))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "note: the readings have no unit; the calibrated field is in uT" in result.stdout
    found = Calibration.load(tmp_path / "c.json")
    assert found.scale == pytest.approx(150.0 * truth, rel=1e-3, abs=0.0)
    rows = np.loadtxt(path, delimiter=",", skiprows=1)[:, :3]
    assert np.linalg.norm(found.apply(rows), axis=1).mean() == pytest.approx(truth, rel=1e-3, abs=0.0)
    assert run_in_process(path, "--unit", "none", "--strength", "48kT").returncode == 2


def test_wrong_mounting_is_reported(
    run_in_process: Callable[..., CommandResult], bags: ModuleType, tmp_path: Path
) -> None:
    """The given mounting is off by 30 degrees about z. The soft iron contains the complete rotation."""
    path = bags.record(bags.BagContent(tmp_path / "drive"))
    turns = r"the soft iron turns the field by (\S+) deg about \((\S+), (\S+), (\S+)\) in the sensor(, more.*mount)?"
    (small,) = re.findall(turns, run_in_process(path, "--attitude", "/attitude").text)
    truth = np.degrees(Rotation.from_matrix(polar(bags.BagContent(path).soft_iron)[0]).as_rotvec())
    found = float(small[0]) * np.array(small[1:4], dtype=float)
    assert np.abs(found - truth).max() < 0.1, "two figures of 2.4 degrees; the noise leaves 0.02"
    assert not small[4]
    wrong = (bags.MOUNTING * Rotation.from_euler("z", 30.0, degrees=True)).as_euler("xyz", degrees=True)
    result = run_in_process(path, "--attitude", "/attitude", "--mounting", *wrong)
    (large,) = re.findall(turns, result.text)
    angle, axis = float(large[0]), np.array(large[1:4], dtype=float)
    assert abs(angle - 30.0) < 2.0
    assert axis[2] > 0.98, "the field that is seen is the expected one turned by +30 degrees about z"
    assert large[4]


def test_inferred_mounting_is_a_note(
    run_in_process: Callable[..., CommandResult], bags: ModuleType, tmp_path: Path
) -> None:
    path = bags.record(bags.BagContent(tmp_path / "drive", fixed=False, mag_frame=""))
    result = run_in_process(path, "--attitude", "/attitude")
    assert "note: mounting assumed: the magnetometer's messages do not name their frame; the sensor is" in result.text


def test_outliers_are_counted(run_in_process: Callable[..., CommandResult], bags: ModuleType, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / "drive")
    errors = np.zeros((content.count, 3))
    errors[40::50, 0] = 8e-6
    path = bags.record(content, errors)
    result = run_in_process(path)
    (output,) = re.findall(
        r"; (\d+) of 1500 readings have residuals above 5 times the noise of the others, row (\d+)", result.text
    )
    assert 25 <= int(output[0]) <= 30, "but those where the field is across x"
    assert (int(output[1]) - 40) % 50 == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ("--attitude", "/attitude", "--mounting", 1, 2, "nan"),
            "error: --mounting: 1 2 nan; must be three finite numbers",
        ),
        (("--unit", "tesla"), "error: --unit: tesla; must be one of T, "),
        (("--sensor", ""), 'error: --sensor: ""; must not be empty'),
        (("--unit", "µT"), "error: {bag}: strength of the field (uT): "),
        (("--strength", "1uT"), "error: {bag}: strength: 1uT; must be from 10 to 150 uT"),
    ],
)
def test_errors_name_the_option_or_the_file(
    run_in_process: Callable[..., CommandResult], bag: Path, options: tuple[object, ...], problem: str
) -> None:
    result = run_in_process(bag, *options)
    assert result.returncode == 2
    assert result.stderr.startswith(problem.format(bag=bag))

"""Tables of the command line and its progress display."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from navsense.cli import cli
from navsense.cli.progress import COMPILING, show_progress
from navsense.cli.tables import Column, format_table, shorten_name, wrap_line
from navsense.core.kernels import INTERPRETED

ROOT = Path(__file__).resolve().parent.parent


COLUMNS = (Column("sensor", "name"), Column("type", "name"), Column("samples", "number"), Column("clock", "name"))
ROWS = (
    ("quadrotor::base_link::imu", "imu", "1000", "quadrotor::base_link::autopilot"),
    ("quadrotor::mast::board::compass", "magnetometer", "100", "true time"),
)


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("robot::base_link::imu", 21, "robot::base_link::imu"),
        ("robot::base_link::imu", 20, "…::base_link::imu"),
        ("robot::base_link::imu", 17, "…::base_link::imu"),
        ("robot::base_link::imu", 16, "…::imu"),
        ("robot::base_link::imu", 4, "…imu"),
        ("/world/w/link/l/sensor/s/imu", 16, "…/l/sensor/s/imu"),
        ("/world/w/link/l/sensor/s/imu", 15, "…/sensor/s/imu"),
        ("sensor_msgs/msg/Imu", 10, "…/msg/Imu"),
        ("unseparated", 5, "…ated"),
    ],
)
def test_names_lose_their_first_parts(name: str, width: int, short: str) -> None:
    assert shorten_name(name, width) == short
    assert len(short) <= width


@pytest.mark.parametrize("width", [80, 60, 50])
def test_table_fits_a_width(width: int) -> None:
    lines = list(format_table(COLUMNS, ROWS, width))
    assert max(map(len, lines)) <= width
    assert len(lines) == 3
    assert [line.split()[2] for line in lines] == ["samples", "1000", "100"]


def test_table_without_a_width_has_the_complete_names() -> None:
    lines = list(format_table(COLUMNS, ROWS))
    assert lines[1] == "quadrotor::base_link::imu        imu              1000  quadrotor::base_link::autopilot"
    assert lines[0].index("samples") + len("samples") == lines[2].index("100") + len("100")


def test_text_that_is_no_name_is_wrapped() -> None:
    lines = list(
        format_table((Column("model"), Column("samples", "number")), [("gaussian noise with a dynamic bias", "12")], 30)
    )
    assert lines == ["model                  samples", "gaussian noise with a       12", "dynamic bias"]


def test_long_lines_continue_below() -> None:
    line = "  field (T): " + ", ".join(["stddev 1e-09"] * 8)
    first, second = wrap_line(line).splitlines()
    assert len(first) <= 80
    assert second.startswith("      ")
    assert " ".join((first + second).split()) == " ".join(line.split())
    assert wrap_line(line, verbose=True) == line


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "quadrotor.sdf", "--duration", "0.1"),
        ("run", "auv_survey.sdf", "--duration", "0.1"),
        ("describe", "auv_survey.sdf"),
        ("describe", "quadrotor.sdf"),
    ],
)
def test_output_fits_80_columns_and_is_complete_with_v(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT / "examples")
    short, complete = (CliRunner().invoke(cli, [*arguments, *more]).stdout for more in ((), ("-v",)))
    assert max(map(len, short.splitlines())) <= 80
    assert "/world/" not in short
    assert "/world/" in complete
    assert "…" not in complete


def test_contents_of_a_recording_fit_80_columns(tmp_path: Path) -> None:
    path = tmp_path / "quadrotor.mcap"
    run = CliRunner().invoke(
        cli, ["run", str(ROOT / "examples" / "quadrotor.sdf"), "--duration", "0.1", "-o", str(path)]
    )
    assert run.exit_code == 0
    short, complete = (CliRunner().invoke(cli, ["info", str(path), *more]).stdout for more in ((), ("-v",)))
    table = short.partition(str(tmp_path))[0]
    assert max(map(len, table.splitlines())) <= 80
    assert "/world/field/model/quadrotor/link/base_link/sensor/imu/imu/ideal  " in complete
    assert len(table.splitlines()) == len(complete.splitlines()) - 1


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.skipif(INTERPRETED, reason="needs compiled kernels")
def test_compilation_is_announced_once_outside_a_terminal(
    two_kernels: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with show_progress():
        assert two_kernels.first(1.0) == 1.0
        assert capsys.readouterr().err == f"{COMPILING}\n"
        assert two_kernels.second(1.0) == 2.0
    with show_progress():
        assert two_kernels.first(1.0) == 1.0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(INTERPRETED, reason="needs compiled kernels")
def test_bar_counts_the_kernels_on_a_terminal(two_kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with show_progress() as display:
        two_kernels.first(1.0)
        two_kernels.second(1.0)
        display.advance(5.0, 5.0)
    shown = terminal.getvalue()
    assert COMPILING in shown
    assert "1 kernel, 0 s" in shown
    assert "2 kernels, " in shown
    assert "5.0 of 5.0 s" in shown


@pytest.mark.parametrize(("columns", "bar"), [(20, 4), (32, 4), (40, 11), (80, 20)])
def test_bar_fits_narrow_terminals(columns: int, bar: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    with show_progress() as display:
        display.advance(50.0, 50.0)
    line = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue()).splitlines()[-1].strip()
    assert "50.0 of 50.0 s" in line
    assert line.count("━") == bar
    assert len(line) <= columns


@pytest.mark.skipif(INTERPRETED, reason="needs compiled kernels")
def test_command_announces_the_compilation_once(two_kernels: ModuleType) -> None:
    @click.command()
    def command() -> None:
        for kernel in (two_kernels.first, two_kernels.second):
            with show_progress():
                kernel(1.0)

    assert CliRunner().invoke(command, catch_exceptions=False).stderr == f"{COMPILING}\n"

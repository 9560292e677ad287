"""Options of the command line for reading a world: xacro arguments and skipped models."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from navsense.cli import cli
from navsense.core.errors import NavsenseError

COMMANDS = ("check", "describe", "run")

Ask = Callable[..., Result]

needs_xacro = pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="needs the extra xacro")

ROBOT = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="auv">
<xacro:arg name="rate" default="50"/> <xacro:arg name="prefix" default="main_"/>
<link name="$(arg prefix)base"/>
<gazebo reference="$(arg prefix)base"><sensor name="imu" type="imu"><update_rate>$(arg rate)</update_rate></sensor>
</gazebo></robot>"""


@pytest.fixture
def run_with_text(tmp_path: Path) -> Ask:
    """Return a function that runs a command on a text, and returns the result."""

    def with_text(command: str, name: str, text: str, *options: str) -> Result:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        duration = ("--duration", "1") if command == "run" else ()
        return CliRunner().invoke(cli, [command, str(path), *duration, *options])

    return with_text


def find_error(found: Result) -> str:
    """Return the error of a command. `check` prints it; for other commands `main` does."""
    assert found.exit_code != 0
    return str(found.exception) if isinstance(found.exception, NavsenseError) else found.output


@needs_xacro
@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize("command", COMMANDS)
def test_xacro_arguments_are_passed(run_with_text: Ask, command: str) -> None:
    """A value may contain `=` or be empty."""
    found = run_with_text(command, "auv.urdf.xacro", ROBOT, "--xacro", "rate=200", "--xacro", "prefix=left=")
    assert found.exit_code == 0, found.output
    if command != "check":
        assert "auv::left=base::imu" in found.output
        assert "200" in found.output
    assert run_with_text(command, "auv.urdf.xacro", ROBOT, "--xacro", "prefix=").exit_code == 0


@needs_xacro
@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize("command", COMMANDS)
def test_xacro_arguments_of_an_included_robot(run_with_text: Ask, tmp_path: Path, command: str) -> None:
    (tmp_path / "auv.urdf.xacro").write_text(ROBOT, encoding="utf-8")
    world = '<sdf version="1.9"><world name="w"><include><uri>auv.urdf.xacro</uri></include></world></sdf>'
    problems = find_error(run_with_text(command, "dive.sdf", world, "--xacro", "prefix=deep_"))
    assert (
        "file of xacro; can execute code; only a file that you name as *.xacro may use xacro; if you trust it"
        in problems
    )
    assert "give --expand-xacro (in Python expand_xacro=True)" in problems
    found = run_with_text(command, "dive.sdf", world, "--xacro", "prefix=deep_", "--expand-xacro")
    assert found.exit_code == 0, found.output
    if command != "check":
        assert "auv::deep_base::imu" in found.output


@needs_xacro
@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("rate",), "--xacro: rate; must be NAME=VALUE"),
        (("=5",), "--xacro: =5; must be NAME=VALUE"),
        (("",), '--xacro: ""; must not be empty'),
        (("rate=5", "rate=6"), "--xacro: rate=6; must set rate once"),
        (("rat=5",), "auv.urdf.xacro: xacro argument: rat; must be an <xacro:arg> of the files: prefix, rate"),
        (("rate=fast",), "auv.urdf.xacro:4: <sensor><update_rate>: fast; must be a finite number"),
    ],
)
def test_invalid_xacro_arguments_are_an_error(
    run_with_text: Ask, command: str, options: tuple[str, ...], problem: str
) -> None:
    arguments = [part for option in options for part in ("--xacro", option)]
    assert problem in find_error(run_with_text(command, "auv.urdf.xacro", ROBOT, *arguments))


@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize("command", COMMANDS)
def test_arguments_for_a_file_without_xacro_are_an_error(run_with_text: Ask, command: str) -> None:
    robot = '<robot name="a"><link name="b"/></robot>'
    found = run_with_text(command, "plain.urdf", robot, "--xacro", "rate=5")
    assert "xacro argument: rate; must be an <xacro:arg> of the files: there is none" in find_error(found)


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize("command", COMMANDS)
def test_world_without_skipped_models(run_with_text: Ask, command: str) -> None:
    """A missing model is an error by default, and with the option a warning with file, line and URI."""
    imu = '<model name="auv"><link name="base"><sensor name="imu" type="imu"/></link></model>'
    lost = "<include><uri>model://reef</uri></include>\n<include><uri>https://fuel.org/1.0/o/models/X</uri></include>"
    text = f'<sdf version="1.9">\n<world name="w">\n{lost}\n{imu}</world></sdf>'
    assert "dive.sdf:3: <include><uri>: model://reef; is not found;" in find_error(
        run_with_text(command, "dive.sdf", text)
    )
    whole_lines = ["-v"] if command == "describe" else []
    found = run_with_text(command, "dive.sdf", text, "--skip-missing", *whole_lines)
    assert found.exit_code == 0, found.output
    assert "dive.sdf:3: <include><uri>: model://reef: is not found; searched " in found.output
    assert (
        "dive.sdf:4: <include><uri>: https://fuel.org/1.0/o/models/X: is not in the cache of Fuel; skipped"
        in found.output
    )
    assert "--path" in found.output
    if command != "describe":
        assert found.output.count("warning: ") == 2

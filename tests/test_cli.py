"""The command line."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from navsense import cli
from navsense.cli.progress import COMPILING
from navsense.cli.stop_signals import interrupt_between_steps
from navsense.core.kernels import INTERPRETED
from navsense.recordings.mcap.writer import McapFileWriter
from navsense.recordings.summary import read_summary

COMPILATION_LINE = f"{COMPILING}\n"
"""A line of a first run: whether it is printed depends on the kernel cache of the tests."""

RunCommand = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).resolve().parent.parent
QUADROTOR = ROOT / "examples" / "quadrotor.sdf"


def navsense(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "navsense", *map(str, arguments)]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    ended = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False, timeout=110)
    return subprocess.CompletedProcess(
        command, ended.returncode, ended.stdout, ended.stderr.replace(COMPILATION_LINE, "")
    )


@pytest.fixture
def run_in_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Return a function that runs the command in this process. This saves a second per call."""

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = ["navsense", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", command)
        if cwd is not None:
            monkeypatch.chdir(cwd)
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        output = capsys.readouterr()
        return subprocess.CompletedProcess(command, code, output.out, output.err.replace(COMPILATION_LINE, ""))

    return run


def test_run_info_and_describe(run_in_process: RunCommand, tmp_path: Path) -> None:
    out = tmp_path / "quadrotor.mcap"
    ran = navsense("run", QUADROTOR, "--duration", 2, "--seed", 3, "-o", out, "-o", tmp_path / "quadrotor.npz")
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^…::base_link::imu +imu +1000 +2000 +…::autopilot$", ran.stdout, re.MULTILINE)
    assert "2.0 of 2.0 s" in ran.stderr
    looked = run_in_process("info", out)
    assert looked.returncode == 0
    assert "sensor_msgs/msg/Imu" in looked.stdout
    kalibr = tmp_path / "imu.yaml"
    described = run_in_process("describe", QUADROTOR, "--kalibr", kalibr)
    assert described.returncode == 0
    assert "follows navsense:motion" in described.stdout
    assert "gyroscope_noise_density" in kalibr.read_text()
    with np.load(tmp_path / "quadrotor.npz") as arrays:
        assert arrays["quadrotor::base_link::imu/angular_velocity"].shape == (2000, 3)


@pytest.mark.parametrize(
    ("suffix", "heading"),
    [
        (".npz", "name type rows"),
        (".csv", "name type rows"),
        (".mcap", "topic type messages"),
        (".dvl.pd0", "name type records"),
    ],
)
def test_table_of_a_recording_has_the_headings_of_its_format(
    run_in_process: RunCommand, suffix: str, heading: str, tmp_path: Path
) -> None:
    path = tmp_path / f"out{suffix}"
    world = ROOT / "examples" / "auv_survey.sdf" if suffix == ".dvl.pd0" else QUADROTOR
    ran = run_in_process("run", world, "--duration", 2, "--epoch", 1767225600, "-o", path)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"wrote .*out.*: 2 s simulated, [0-9.]+ (?:kB|MB)\n", ran.stdout)
    looked = run_in_process("info", path)
    assert " ".join(looked.stdout.splitlines()[0].split()).endswith(heading)


def test_page_on_security_lists_the_outputs_of_every_command() -> None:
    page = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (`.*?) \| (.*) \|$", page.partition("## Writing files")[2], re.MULTILINE))
    listed = {name: text for names, text in rows.items() for name in re.findall(r"`(\w+)`", names)}
    assert set(listed) == set(cli.cli.commands)
    for name, command in cli.cli.commands.items():
        for option in {option for parameter in command.params for option in parameter.opts}:
            if option in ("-o", "--kalibr", "--picture"):
                assert f"`{option}`" in listed[name], name


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("run", [".npz npz: rows", ".jl format of another package", "udp://... stream of another package"]),
        (
            "convert",
            [".db3 ROS 2 bag: messages, in a folder", "no suffix ROS 2 bag: messages, in a folder", ".jl format"],
        ),
    ],
)
def test_help_lists_the_formats_of_all_packages(
    run_in_process: RunCommand, command: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats of other packages are listed by their entry points, without importing the packages."""
    installed = {"navsense.formats": "jl", "navsense.streams": "udp"}
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda group: [EntryPoint(installed[group], "no_such_package:FORMAT", group)],
    )
    text = " ".join(run_in_process(command, "--help").stdout.split())
    assert all(line in text for line in [*lines, ".mcap mcap: messages"])
    assert ("udp://" in text) == (command == "run")


def test_recover(run_in_process: RunCommand, tmp_path: Path) -> None:
    complete, cut = tmp_path / "whole.mcap", tmp_path / "cut.mcap"
    assert run_in_process("run", QUADROTOR, "--duration", 20, "-o", complete).returncode == 0
    data = complete.read_bytes()
    cut.write_bytes(data[: len(data) * 2 // 3])
    result = run_in_process("info", cut)
    assert result.returncode == 2
    assert "navsense recover" in result.stderr
    saved = navsense("recover", cut)
    assert saved.returncode == 0, saved.stderr
    assert run_in_process("info", tmp_path / "cut-recovered.mcap").returncode == 0


def test_check_prints_one_line_per_error(run_in_process: RunCommand, tmp_path: Path) -> None:
    assert run_in_process("check", QUADROTOR).returncode == 0
    bad = tmp_path / "bad.sdf"
    text = QUADROTOR.read_text().replace("<stddev>", "<stddev>-")
    bad.write_text(text)
    checked = run_in_process("check", bad)
    assert checked.returncode == 2
    lines = checked.stdout.strip().splitlines()
    assert len(lines) == text.count("<stddev>-")
    assert all(line.startswith(f"{bad}:") and "<stddev>: -" in line and "must be >= 0" in line for line in lines)


BED = """<sdf version="1.12"><world name="w">
<model name="bed"><static>true</static><link name="l"><collision name="c"><geometry><heightmap><uri>{0}</uri>
<size>10 10 1</size></heightmap></geometry></collision></link></model>
<model name="m"><pose>0 0 {2} 0 0 0</pose><link name="l"><sensor name="s" type="{1}"><update_rate>10</update_rate>
<pose degrees="true">0 0 0 0 90 0</pose><{1}>{3}</{1}></sensor></link></model></world></sdf>"""
LIMITS = "<min>0.1</min><max>50</max>"


@pytest.mark.requirement("DVU-2")
def test_check_reads_surfaces_that_rays_can_hit(run_in_process: RunCommand, tmp_path: Path) -> None:
    """An invalid surface is a problem with both locations. A world with an IMU only has no rays and no problem."""
    (tmp_path / "bed.txt").write_text("1 2\n3 x\n")
    world = tmp_path / "w.sdf"
    world.write_text(BED.format("bed.txt", "range", 5, LIMITS))
    checked = run_in_process("check", world)
    assert checked.returncode == 2
    (line,) = checked.stdout.splitlines()
    assert line.startswith(f"{world}:2: surface bed::l::c: ")
    assert "bed.txt:2" in line
    assert "no errors" not in checked.stdout
    world.write_text(BED.format("bed.txt", "imu", 5, ""))
    assert run_in_process("check", world).returncode == 0


@pytest.mark.requirement("DVU-2")
def test_run_warns_when_no_reading_is_valid(run_in_process: RunCommand, tmp_path: Path) -> None:
    """A vehicle under the sea bed has a beam without a hit, and a warning; a vehicle above it has no warning."""
    (tmp_path / "bed.txt").write_text("1 2\n2 2\n")
    world = tmp_path / "w.sdf"
    for height, warns in ((-5, True), (5, False)):
        world.write_text(BED.format("bed.txt", "range", height, LIMITS))
        ran = run_in_process("run", world, "--duration", 1)
        assert ran.returncode == 0, ran.stderr
        assert ("warning: m::l::s: no valid reading in 10 samples" in ran.stderr) is warns


def test_run_warns_of_a_sensor_that_is_on_after_the_end(run_in_process: RunCommand, tmp_path: Path) -> None:
    """The warning names the switch. A switch within the run is no warning."""
    world = tmp_path / "w.sdf"
    world.write_text(BED.format("bed.txt", "imu", 5, ""))
    for switch, warns in (("s@3", True), ("s@0.5", False)):
        ran = run_in_process("run", world, "--duration", 1, "--switch-off", "s", "--switch-on", switch)
        assert ran.returncode == 0, ran.stderr
        assert ("warning: m::l::s: is switched on at 3 s, after the end of the run" in ran.stderr) is warns
        assert "no valid reading" not in ran.stderr


def test_run_warns_of_a_sensor_that_is_never_on(run_in_process: RunCommand, tmp_path: Path) -> None:
    world = tmp_path / "w.sdf"
    world.write_text(BED.format("bed.txt", "imu", 5, ""))
    ran = run_in_process("run", world, "--duration", 1, "--switch-off", "s")
    assert ran.returncode == 0, ran.stderr
    assert "warning: m::l::s: is switched off during the whole run\n" in ran.stderr
    assert "no valid reading" not in ran.stderr


def test_run_lists_the_sensors_that_a_format_does_not_support(run_in_process: RunCommand, tmp_path: Path) -> None:
    """EuRoC has IMUs. Gazebo Classic has magnetometers and altimeters."""
    outputs = ("-o", "a.euroc", "-o", "a.gazebo.mcap", "-o", "a.npz")
    ran = run_in_process("run", QUADROTOR, "--duration", 0.1, "--epoch", 1, *outputs, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    lines = re.findall(r"^not in .*(?:\n    .*)*", ran.stdout, re.MULTILINE)
    euroc, gazebo_classic = (" ".join(line.split()) for line in lines)
    board, link = "quadrotor::mast::board", "quadrotor::base_link"
    assert euroc == f"not in a: {link}::barometer, {link}::altimeter, {board}::gps, {board}::compass"
    assert gazebo_classic == f"not in a.gazebo.mcap: {link}::imu, {link}::barometer, {board}::gps"


@pytest.mark.requirement("NOI-6", "DVU-2")
def test_fault_file_is_checked_described_and_run(run_in_process: RunCommand, tmp_path: Path) -> None:
    """The file names the sensor by an ending. A fault after the run is reported, one during it is not."""
    world, faults = tmp_path / "w.sdf", tmp_path / "faults.toml"
    (tmp_path / "bed.txt").write_text("1 2\n2 2\n")
    world.write_text(BED.format("bed.txt", "range", 5, LIMITS))
    fault = "[[fault]]\nof = 's'\nkind = 'dropout'\nstart = {}\n"
    faults.write_text(fault.format(1.0) + fault.format(0.5))
    assert "no errors; 2 models, 1 sensor, 0 clocks" in run_in_process("check", world, "--faults", faults).stdout
    description = run_in_process("describe", world, "--faults", faults).stdout
    assert "scheduled fault: dropout from 1 s" in description
    assert "scheduled fault" not in run_in_process("describe", world).stdout
    ran = run_in_process("run", world, "--duration", 1, "--faults", faults)
    late = "m::l::s: dropout from {} s does not act in a run from 0 to 1 s"
    assert ran.returncode == 0, ran.stderr
    assert f"warning: {late.format(1)}" in ran.stderr
    assert late.format(0.5) not in ran.stderr
    faults.write_text(fault.format(1.0).replace("dropout", "silence"))
    for command in ("check", "describe", "run"):
        result = run_in_process(command, world, "--faults", faults)
        assert result.returncode == 2
        (line,) = (result.stdout if command == "check" else result.stderr).splitlines()
        assert f"{faults}" in line
        assert "fault 1: kind of a fault: silence; must be one of dropout" in line


def test_describe_shows_the_models_of_a_fidelity(run_in_process: RunCommand) -> None:
    as_written, classic = (
        run_in_process("describe", QUADROTOR, "-v", *more) for more in ((), ("--fidelity", "classic"))
    )
    assert classic.returncode == 0, classic.stderr
    assert "(classic)" not in as_written.stdout
    assert "angular_velocity (rad/s): stddev 0.0107318, bias_stddev 0.00872665" in as_written.stdout
    description, rest = classic.stdout.partition("warnings\n")[::2]
    physical_text = description.replace(" (classic)", "")
    assert physical_text == as_written.stdout.partition("not supported\n")[0]
    assert "<navsense:reference>: initial: has no effect under classic," in rest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "missing.sdf"], "missing.sdf"),
        (["check", "missing.sdf"], "missing.sdf"),
        (["run", QUADROTOR, "--duration", "-1"], "duration: -1.0; must be a finite number"),
        (["run", QUADROTOR], "no motion of this world ends"),
        (["run", QUADROTOR, "--duration", "1", "-o", "out.xyz"], "xyz"),
        (["run", QUADROTOR, "--duration", "1", "-o", "no/such/place/out.mcap"], "create"),
        (["run", QUADROTOR, "--duration", "1", "--motion", "none.csv"], "none.csv"),
        (
            ["run", QUADROTOR, "--duration", "1", "--motion", "boat=none.csv"],
            "motion of model: boat; must be one of quadrotor",
        ),
        (["run", QUADROTOR, "--duration", "1", "--fidelity", "real"], "fidelity: real"),
        (["describe", QUADROTOR, "--fidelity", "real"], "fidelity: real"),
        (["run", QUADROTOR, "--duration", "1", "--epoch", "-4"], "epoch: -4"),
        (["run", QUADROTOR, "--duration", "x"], "error: --duration: x; must be a number, such as 0.5 or 2e-3\n"),
        (["info", QUADROTOR], ".sdf"),
        (["recover", QUADROTOR], "quadrotor.sdf"),
        (["run", QUADROTOR, "--seed", "1.5"], "error: --seed: 1.5; must be an integer, such as 7\n"),
        (["run"], "error: missing argument 'WORLD'; see "),
        (["run", QUADROTOR, "--sed", "1"], "error: no such option '--sed'"),
        (["nonsense"], "error: no such command 'nonsense'; see "),
    ],
)
def test_errors_are_one_line_with_exit_code_2(
    run_in_process: RunCommand, arguments: list[object], message: str, tmp_path: Path
) -> None:
    ended = run_in_process(*arguments, cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    (line,) = (ended.stderr + ended.stdout).splitlines(keepends=True)
    assert message in line


@pytest.mark.parametrize("command", [["check"], ["describe"], ["run"], ["report", "-o", "page.html", "--world"]])
def test_recording_in_place_of_a_world_names_the_command_that_reads_it(
    run_in_process: RunCommand, command: list[str], tmp_path: Path
) -> None:
    recording = Path(__file__).parent / "golden" / "recordings" / "2" / "run.mcap"
    ended = run_in_process(*command, recording, *([recording] if command[0] == "report" else []), cwd=tmp_path)
    assert ended.returncode == 2
    (line,) = (ended.stdout + ended.stderr).splitlines()
    assert line.endswith(
        f"{recording}: is a recording (mcap); WORLD must be an SDF, URDF or xacro file; "
        f"to read a recording: navsense info {recording}"
    )
    assert run_in_process("info", recording).returncode == 0


def test_report_reads_a_world_by_the_options_of_run(run_in_process: RunCommand, tmp_path: Path) -> None:
    """The world includes a model of another folder, and one that is missing."""
    (tmp_path / "models" / "bed").mkdir(parents=True)
    (tmp_path / "models" / "bed" / "model.config").write_text('<model><sdf version="1.9">model.sdf</sdf></model>')
    (tmp_path / "models" / "bed" / "model.sdf").write_text(
        '<sdf version="1.9"><model name="bed"><static>true</static><pose>0 0 -5 0 0 0</pose><link name="bed">'
        '<collision name="bed"><geometry><plane/></geometry></collision></link></model></sdf>'
    )
    worlds = tmp_path / "worlds"
    worlds.mkdir()
    (worlds / "sea.sdf").write_text(
        '<sdf version="1.9"><world name="sea"><include><uri>model://bed</uri></include>'
        '<include><uri>model://no_such_model</uri></include><model name="auv"><link name="hull">'
        '<sensor name="imu" type="imu"><update_rate>10</update_rate></sensor></link></model></world></sdf>'
    )
    options = ["--path", "models", "--skip-missing"]
    ended = run_in_process("run", "worlds/sea.sdf", *options, "--duration", 1, "-o", "dive.mcap", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    report = ["report", "dive.mcap", "-o", "dive.html"]
    ended = run_in_process(*report, "--world", "worlds/sea.sdf", cwd=tmp_path)
    assert ended.returncode == 2
    assert "--skip-missing" in ended.stderr
    ended = run_in_process(*report, *options, cwd=tmp_path)
    assert ended.stderr.strip() == "error: --path; is an option of --world; add --world WORLD, or omit --path"
    ended = run_in_process(*report, "--world", "worlds/sea.sdf", *options, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "The ground is not known" not in (tmp_path / "dive.html").read_text(encoding="utf-8")


def test_error_has_no_traceback(tmp_path: Path) -> None:
    ended = navsense("run", "missing.sdf", cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert "missing.sdf" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_full_disk_is_an_error_and_keeps_written_data(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    target = tmp_path / "full.mcap"
    target.symlink_to("/dev/full")
    ended = navsense("run", QUADROTOR, "--duration", 5, "-o", target)
    assert ended.returncode == 2
    assert "no space left" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_names_are_printed_unchanged(run_in_process: RunCommand, tmp_path: Path) -> None:
    world = tmp_path / "odd.sdf"
    sensor = '<sensor name="x[bold]y[/]" type="magnetometer"><update_rate>10</update_rate></sensor>'
    other = '<sensor name="touch" type="contact"/>'
    world.write_text(
        f'<sdf version="1.9"><world name="w"><model name="m"><link name="l">{sensor}{other}</link></model>'
        "</world></sdf>"
    )
    ran = run_in_process("run", world, "--duration", 1)
    assert ran.returncode == 0, ran.stderr
    assert "m::l::x[bold]y[/]" in ran.stdout
    assert "contact" in ran.stderr, "what is not simulated is said"


def test_full_standard_output_is_an_error() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "navsense", "check", str(QUADROTOR)]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


@pytest.mark.requirement("REC-1")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("closed", [False, True])
def test_unwritable_standard_error_changes_nothing(closed: bool, tmp_path: Path) -> None:
    """The run prints the warning about the contact sensor and succeeds."""
    world, output = tmp_path / "w.sdf", tmp_path / "o.mcap"
    sensors = '<sensor name="g" type="altimeter"><update_rate>1</update_rate></sensor><sensor name="t" type="contact"/>'
    model = f'<model name="m"><link name="l">{sensors}</link></model>'
    world.write_text(f'<sdf version="1.9"><world name="w">{model}</world></sdf>', encoding="utf-8")
    cases = {("run", str(world), "--duration", "2", "-o", str(output)): 0, ("describe", "missing.sdf"): 2, ("no",): 2}
    for command, code in cases.items():
        read_end, write_end = os.pipe()
        os.close(read_end)
        with os.fdopen(write_end, "w") if closed else Path("/dev/full").open("w") as raise_eof:
            program = [sys.executable, "-m", "navsense", *command]
            ended = subprocess.run(program, stdout=subprocess.PIPE, stderr=raise_eof, check=False)
        assert ended.returncode == code, command
    assert read_summary(output).entries


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_run_leaves_complete_recordings(
    run_in_process: RunCommand, number: signal.Signals, tmp_path: Path
) -> None:
    outputs = [tmp_path / "stopped.mcap", tmp_path / "stopped.npz"]
    command = [sys.executable, "-m", "navsense", "run", str(QUADROTOR), "--duration", "100000"]
    command += [part for output in outputs for part in ("-o", str(output))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        for _ in range(600):
            time.sleep(0.1)
            if outputs[0].exists() and outputs[0].stat().st_size > 1_000_000:
                break
        running.send_signal(number)
        try:
            _, stderr = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130, stderr
    assert "stopped; the data recorded so far are kept\n" in stderr
    for output in outputs:
        assert run_in_process("info", output).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.skipif(INTERPRETED, reason="needs compiled kernels")
def test_signal_during_compilation_stops_before_the_next_kernel(
    number: signal.Signals, two_kernels: ModuleType
) -> None:
    """The compiled kernels stay usable in the cache."""
    with interrupt_between_steps(lambda _done, _total: None):
        assert two_kernels.first(1.0) == 1.0
        os.kill(os.getpid(), number)
        assert two_kernels.first(2.0) == 2.0
        with pytest.raises(KeyboardInterrupt):
            two_kernels.second(1.0)
    assert two_kernels.second(1.0) == 2.0


@pytest.mark.requirement("REC-1")
def test_sigterm_ends_a_conversion_like_an_interrupt(
    run_in_process: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command removes its unfinished files and keeps existing ones."""
    assert run_in_process("run", QUADROTOR, "--duration", 2, "-o", tmp_path / "a.mcap").returncode == 0
    cut = (tmp_path / "a.mcap").read_bytes()[:-100]

    def send_sigterm(*_given: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10.0)

    monkeypatch.setattr(McapFileWriter, "finish", send_sigterm)
    for arguments in (("convert", "a.mcap", "b"), ("recover", "a.mcap")):
        if arguments[0] == "recover":
            (tmp_path / "a.mcap").write_bytes(cut)
        ended = run_in_process(*arguments, cwd=tmp_path)
        assert ended.returncode == 130
        assert "Traceback" not in ended.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["a.mcap"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_after_the_end_does_not_change_the_exit_code(number: signal.Signals, tmp_path: Path) -> None:
    """The signal arrives after the command: exit handlers run from the last one registered to the first."""
    script = (
        "import atexit, os, sys, time; from navsense.cli import main; "
        f"atexit.register(lambda: (os.kill(os.getpid(), {int(number)}), time.sleep(0.1))); "
        f"sys.argv = ['navsense', 'check', {str(QUADROTOR)!r}]; main()"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.compiled
def test_check_compiles_without_a_message(tmp_path: Path) -> None:
    """It takes a second. Commands that take longer show the compilation."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "navsense", "check", str(QUADROTOR)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_missing_standard_output_is_not_an_error() -> None:
    """As in `navsense check world.sdf >&-`."""
    script = f"exec {sys.executable} -m navsense check {QUADROTOR} >&-"
    ended = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("command", ["describe", "check", "run", "info", "--help"])
def test_closed_standard_output_is_not_an_error(run_in_process: RunCommand, tmp_path: Path, command: str) -> None:
    """As in `navsense describe world.sdf | head`."""
    arguments = [] if command.startswith("-") else [str(QUADROTOR)]
    if command == "info":
        arguments = [str(tmp_path / "a.csv")]
        assert run_in_process("run", QUADROTOR, "--duration", 0.1, "-o", *arguments).returncode == 0
    arguments += ["--duration", "0.1"] if command == "run" else []
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody:
        ended = subprocess.run(
            [sys.executable, "-m", "navsense", command, *arguments],
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 0
    assert not [line for line in ended.stderr.splitlines() if "simulated" not in line and line != COMPILING]


@pytest.mark.parametrize(
    "arguments",
    [
        ("calibrate", ""),
        ("check", ""),
        ("info", ""),
        ("convert", "a.mcap", ""),
        ("run", QUADROTOR, "-o", ""),
        ("run", QUADROTOR, "-o", "a.mcap", "-o", ""),
        ("run", QUADROTOR, "--motion", ""),
        ("run", QUADROTOR, "--faults", ""),
    ],
)
def test_empty_path_is_an_error(run_in_process: RunCommand, arguments: tuple[object, ...], tmp_path: Path) -> None:
    """An empty path is the current folder."""
    ended = run_in_process(*arguments, cwd=tmp_path)
    assert ended.returncode == 2
    assert re.match(r'error: [-\w]+: ""; must not be empty; name a file or a value\n', ended.stderr)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments", [("run", QUADROTOR, "-o", "-"), ("convert", "a.mcap", "-"), ("describe", QUADROTOR, "--kalibr", "-")]
)
def test_hyphen_is_not_the_standard_output(
    run_in_process: RunCommand, arguments: tuple[object, ...], tmp_path: Path
) -> None:
    ended = run_in_process(*arguments, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.match(r"error: [-\w]+: -; must be a name; no command .* standard output; name a file\n", ended.stderr)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["x.mcap", "x.npz", "x.csv", "x.bag"])
def test_symlink_to_itself_is_rejected_as_output(run_in_process: RunCommand, name: str, tmp_path: Path) -> None:
    link = tmp_path / (name if name != "x.csv" else "x")
    link.symlink_to(link.name)
    ended = run_in_process("run", QUADROTOR, "--duration", 0.1, "-o", name, cwd=tmp_path)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert name in ended.stderr
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["x.mcap", "x.npz", "x.parquet", "x.bag", "x.db3", "x"])
@pytest.mark.parametrize("command", ["convert", "info", "report", "recover", "calibrate", "run"])
def test_symlink_to_itself_is_rejected_as_input(
    run_in_process: RunCommand, command: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / name).symlink_to(name)
    arguments: dict[str, tuple[object, ...]] = {
        "convert": (name, "out.npz"),
        "report": (name, "-o", "out.html"),
        "run": (QUADROTOR, "--motion", f"quadrotor={name}", "-o", "out.npz"),
    }
    ended = run_in_process(command, *arguments.get(command, (name,)), cwd=tmp_path)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert name in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_help_imports_no_heavy_module() -> None:
    code = (
        "import sys, navsense.cli\n"
        "heavy = {'numba', 'numpy', 'scipy', 'rich', 'rosbags', 'zstandard'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_eof_error_inside_the_program_is_not_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Click interprets an EOFError as the end of keyboard input and would report an interrupt."""

    def raise_eof(*_arguments: object, **_options: object) -> None:
        raise EOFError("Ran out of input")

    monkeypatch.setattr("navsense.sdf.load", raise_eof)
    monkeypatch.setattr(sys, "argv", ["navsense", "run", str(QUADROTOR)])
    with pytest.raises(EOFError, match="Ran out of input"):
        cli.main()


def test_long_name_with_the_suffix_of_a_recording_is_an_error_of_the_world_file() -> None:
    done = navsense("check", "a" * 300 + ".mcap")
    assert done.returncode == 2
    assert "File name too long; must be a readable file of SDF" in done.stderr + done.stdout

"""Experiment files: keys, their lines in errors, sweeps, and the function `reduce`."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from click.testing import CliRunner

import navsense as ns
from navsense.analysis import monte_carlo
from navsense.campaigns.command import PythonCommand
from navsense.campaigns.experiment_file import read_experiment
from navsense.campaigns.report_columns import ReportColumns
from navsense.campaigns.worker import pack_campaign
from navsense.cli import cli
from navsense.cli.options import parse_motion_options
from navsense.core.errors import SimulationError
from navsense.core.inputs import FileKind
from navsense.core.toml_lines import read_toml_lines

pytestmark = pytest.mark.requirement("CAM-1")

WORLD = """<sdf version="1.9"><world name="w"><model name="robot"><link name="base">
<sensor name="imu" type="imu"><update_rate>100</update_rate></sensor></link></model></world></sdf>"""

HEAD = 'world = "robot.sdf"\nruns = 4\nduration = 1.0\nreduce = "rows.py:reduce"\n'

STDDEV = "imu.angular_velocity_x.stddev"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a world, a function and a motion log."""
    (tmp_path / "robot.sdf").write_text(WORLD)
    (tmp_path / "models").mkdir()
    (tmp_path / "helper.py").write_text("FACTOR = 2\n")
    text = "from helper import FACTOR\n\n\ndef reduce(run):\n    return {'n': FACTOR * run['imu'].time.size}\n"
    (tmp_path / "rows.py").write_text(text)
    rows = "".join(f"{t},{t},0,0,1,0,0,0\n" for t in range(5))
    (tmp_path / "log.csv").write_text(f"time,x,y,z,qw,qx,qy,qz\n{rows}")
    (tmp_path / "faults.toml").write_text('fault = [{of = "imu", kind = "dropout", start = 0.5, end = 0.6}]\n')
    return tmp_path


def read(folder: Path, text: str) -> Any:
    """Return an experiment."""
    (folder / "experiment.toml").write_text(text)
    return read_experiment(folder / "experiment.toml")


def test_every_key_is_read(folder: Path) -> None:
    experiment = read(
        folder,
        f"""{HEAD}
        out = "results"
        seed = 3
        epoch = 10
        truth_rate = 20
        fidelity = "classic"
        recordings = ".npz"
        motion = "log.csv"
        faults = "faults.toml"
        [load]
        path = ["models"]
        skip_missing = true
        [parameters]
        "{STDDEV}" = 0.5
        [sweep]
        "imu.rate" = [50.0, 100.0]
        [report]
        time = "t"
        errors = ["n"]
        nees = {{ e = 2 }}
        nis = {{ i = 3 }}
        tau = "averaging_time"
        allan = {{ a = "dof", b = "" }}
        declared = {{ a = "imu.angular_velocity.1" }}
        units = {{ n = "m", "imu.rate" = "Hz" }}
        axes = {{ n = ["east", "north"] }}
        """,
    )
    campaign = experiment.campaign
    assert experiment.out == "results"
    assert experiment.report == ReportColumns(
        time="t",
        errors=("n",),
        nees={"e": 2},
        nis={"i": 3},
        tau="averaging_time",
        allan={"a": "dof", "b": ""},
        declared={"a": "imu.angular_velocity.1"},
        units={"n": "m", "imu.rate": "Hz"},
        axes={"n": ["east", "north"]},
    )
    names = ["n", "e", "i", "a", "b", "dof", "t", "averaging_time", "imu.rate"]
    assert experiment.report.list_columns() == names
    lines = {name: experiment.report.places[name].line for name in names}
    assert list(lines.values()) == [23, 24, 25, 27, 27, 27, 22, 26, 29]
    assert (campaign.seed, campaign.epoch, campaign.truth_rate, campaign.duration) == (3, 10, 20.0, 1.0)
    assert (campaign.recordings, list(campaign.runs)) == (".npz", [0, 1, 2, 3])
    assert campaign.points == ({"imu.rate": 50.0}, {"imu.rate": 100.0})
    spec: Any = campaign.world.sensor("imu").spec
    assert (spec.angular_velocity_x.stddev, spec.angular_velocity_x.classic) == (0.5, True)
    assert campaign.world.sensor("imu").faults.scheduled
    assert campaign.motions is not None
    assert list(campaign.motions) == ["robot"]
    run = ns.simulate(campaign.world, 1.0)
    assert campaign.reduce is not None
    assert campaign.reduce(run) == {"n": 200}


def test_list_of_points_and_latin_hypercube(folder: Path) -> None:
    points = read(folder, f'{HEAD}[[sweep]]\n"imu.rate" = 10.0\n[[sweep]]\n"imu.rate" = 20.0\n').campaign.points
    assert points == ({"imu.rate": 10.0}, {"imu.rate": 20.0})
    text = f'{HEAD}[latin_hypercube]\nsamples = 5\nseed = 1\nlogarithmic = ["imu.rate"]\n[latin_hypercube.ranges]\n'
    campaign = read(folder, f'{text}"imu.rate" = [10, 1000]\n"{STDDEV}" = [0, 1]\n').campaign
    assert len(campaign.points) == 5
    assert sorted(int(5 * point[STDDEV]) for point in campaign.points) == [0, 1, 2, 3, 4]


def test_latin_hypercube_with_a_grid(folder: Path) -> None:
    text = f"{HEAD}[sweep]\n'imu.rate' = [10, 20]\n[latin_hypercube]\nsamples = 3\nranges = {{'{STDDEV}' = [0, 1]}}"
    points = read(folder, text).campaign.points
    samples = ns.campaigns.latin_hypercube({STDDEV: (0.0, 1.0)}, 3)
    assert points == tuple({"imu.rate": rate, **sample} for rate in (10, 20) for sample in samples)


def test_logarithmic_latin_hypercube() -> None:
    points = ns.campaigns.latin_hypercube({"a": (1e-6, 1e2), "b": (0.0, 4.0)}, 4, seed=3, logarithmic=["a"])
    assert sorted(math.floor((math.log10(point["a"]) + 6.0) / 2.0) for point in points) == [0, 1, 2, 3]
    assert sorted(math.floor(point["b"]) for point in points) == [0, 1, 2, 3]
    with pytest.raises(SimulationError, match="must be above 0 to be logarithmic"):
        ns.campaigns.latin_hypercube({"a": (0.0, 1.0)}, 2, logarithmic=["a"])
    with pytest.raises(SimulationError, match="logarithmic: b; must be one of a"):
        ns.campaigns.latin_hypercube({"a": (0.0, 1.0)}, 2, logarithmic=["b"])


def test_file_with_the_name_of_another_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the files change within a second
    modules, paths = dict(sys.modules), list(sys.path)
    text = "from helper import FACTOR\n\ndef reduce(run):\n    import late\n    return {'n': late.add(FACTOR)}\n"
    (folder / "math.py").write_text(text)
    digests = []
    for number in (1, 2):
        (folder / "late.py").write_text(f"def add(x):\n    return x + {number}\n")
        for name in ("late", "helper"):
            sys.modules.pop(name, None)
        campaign = read(folder, HEAD.replace("rows.py", "math.py")).campaign
        assert sys.path == paths
        digests.append(campaign.base_digest)
        assert cloudpickle.loads(pack_campaign(campaign)).reduce(None) == {"n": 2 + number}
    assert sys.path == paths
    assert sys.modules["math"] is modules["math"]
    assert digests[0] != digests[1]


def test_digest_does_not_depend_on_the_folder_or_on_earlier_files(folder: Path, tmp_path: Path) -> None:
    """Two experiments of one process have files of the same name."""
    digests = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "row.py").write_text("def reduce(run):\n    return {}\n")
        digests.append(read(folder, HEAD.replace("rows.py", f"{name}/row.py")).campaign.base_digest)
    assert digests[0] == digests[1]


def test_sweep_of_motions_and_faults(folder: Path) -> None:
    (folder / "still.csv").write_text("time,x,y,z,qw,qx,qy,qz\n" + "".join(f"{t},0,0,0,1,0,0,0\n" for t in range(5)))
    text = f'{HEAD}[sweep]\nmotion = ["log.csv", "still.csv"]\nfaults = ["", "faults.toml"]\n'
    campaign = read(folder, text).campaign
    assert len(campaign.points) == 4
    moved = [float(campaign.simulate(point, (0,)).truth["robot"].position[-1, 0]) for point in campaign.points]
    assert moved[0] > 0.9
    assert moved[2] == 0.0
    dropouts = [int(campaign.simulate(point, (0,))["imu"].emitted.sum()) for point in campaign.points]
    assert dropouts == [100, 90, 100, 90]


def test_commands_have_absolute_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    text = f'{HEAD}motion = "log.csv"\nfaults = "faults.toml"\n[load]\npath = ["models"]\n'
    Path("e.toml").write_text(f"{text}[sweep]\nfaults = ['faults.toml']\n")
    campaign = read_experiment("e.toml").campaign
    words = shlex.split(campaign.format_command(campaign.points[0], 0))
    names = ["robot.sdf", "models", "faults.toml", "log.csv", "faults.toml"]
    assert [word for word in words if word.startswith("/")] == [str(folder / name) for name in names]
    python = PythonCommand(motions={"": "motion"}).format(1.0, 0, {"motion": "log.csv?topic=/odom", "faults": "f"}, 0)
    assert f"{folder / 'log.csv'}?topic=/odom" in python
    assert f"with_faults(world, {str(folder / 'f')!r})" in python


def test_command_replaces_the_motion_and_adds_the_faults_of_a_point(folder: Path) -> None:
    (folder / "still.csv").write_text("time,x,y,z,qw,qx,qy,qz\n" + "".join(f"{t},0,0,0,1,0,0,0\n" for t in range(5)))
    (folder / "early.toml").write_text('fault = [{of = "imu", kind = "dropout", start = 0.1, end = 0.3}]\n')
    head = HEAD + 'motion = "still.csv"\nfaults = "early.toml"\n'
    campaign = read(folder, head + '[[sweep]]\nmotion = "log.csv"\nfaults = "faults.toml"\n').campaign
    words = shlex.split(campaign.format_command(campaign.points[0], 2))
    done = CliRunner().invoke(cli, [*words[1:], "-o", str(folder / "run.npz")])
    assert done.exit_code == 0, done.output
    run, expected = ns.open(folder / "run.npz"), campaign.simulate(campaign.points[0], (2,)).select_run(2)
    emitted = expected["imu"].emitted
    assert int(emitted.sum()) == 70
    assert np.array_equal(run["imu"].emitted, emitted)
    assert np.array_equal(run.truth["robot"].position, expected.truth["robot"].position)


def test_a_log_whose_name_has_an_equals_sign(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--motion a=b.csv` is the file of this name if it exists and the world has no model `a`."""
    monkeypatch.chdir(folder)
    text = Path("log.csv").read_text()
    Path("seed=3").mkdir()
    for name in ("seed=3/log.csv", "a=b.csv", "robot=b.csv"):
        Path(name).write_text(text)
    campaign = read(folder, f"{HEAD}motion = 'seed=3/log.csv'").campaign
    words = shlex.split(campaign.format_command({}, 0))
    log = str(folder / "seed=3" / "log.csv")
    assert words[words.index("--motion") + 1] == log
    assert parse_motion_options((log,), campaign.world) == log
    assert parse_motion_options(("a=b.csv?topic=/odom",), campaign.world) == "a=b.csv?topic=/odom"
    assert parse_motion_options(("robot=b.csv",), campaign.world) == {"robot": "b.csv"}
    assert parse_motion_options(("a=c.csv",), campaign.world) == {"a": "c.csv"}
    assert parse_motion_options(("robot=a=b.csv",), campaign.world) == {"robot": "a=b.csv"}


def test_a_part_of_a_point_keeps_the_parameters_of_the_file(folder: Path) -> None:
    parameters = f"[parameters]\n'{STDDEV}' = 0.5\n'imu.rate' = 50.0\n"
    sweep = "[sweep]\n'imu.angular_velocity_y.stddev' = [0.25]\n'imu.part' = ['adis16460']\n'imu.rate' = [20.0]\n"
    campaign = read(folder, HEAD + parameters + sweep).campaign
    spec: Any = campaign.make_point_world(campaign.points[0]).sensor("imu").spec
    part = ns.sensors.Imu.from_part("adis16460")
    assert (spec.angular_velocity_x.stddev, spec.angular_velocity_y.stddev) == (0.5, 0.25)
    assert spec.angular_velocity_z == part.angular_velocity_z
    words = shlex.split(campaign.format_command(campaign.points[0], 2))
    done = CliRunner().invoke(cli, [*words[1:], "-o", str(folder / "run.npz")])
    assert done.exit_code == 0, done.output
    run, expected = ns.open(folder / "run.npz"), campaign.simulate(campaign.points[0], (2,)).select_run(2)
    assert run["imu"].time.size == 20
    assert np.array_equal(run["imu"]["angular_velocity"], expected["imu"]["angular_velocity"])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("runs = 4", 0, 'world: missing; must be a string; write world = "world.sdf"'),
        ('world = "robot.sdf"', 0, "runs: missing; must be an integer or a list of integers; write runs = 64"),
        (HEAD + "sed = 3", 5, "sed; is unknown; must be one of world, runs"),
        (HEAD + "sed = 3", 5, "did you mean seed?"),
        (HEAD + "seed = 1.5", 5, "seed: 1.5; must be an integer"),
        (HEAD + "seed = true", 5, "seed: True; must be an integer"),
        (HEAD + "[load]\npath = 3", 6, "load.path: 3; must be a list of strings"),
        (HEAD + "[load]\npaths = []", 6, "did you mean path?"),
        (HEAD + f"\n[sweep]\n'{STDDEV}' = 3", 7, "must be a list of values; write [3]"),
        (HEAD + f"[sweep]\n{STDDEV} = [3]", 6, "must be a path in quotation marks"),
        (HEAD + "[sweep]\n'imu.rat' = [3]", 6, "did you mean rate?"),
        (HEAD + f"[sweep]\n'{STDDEV}' = [-1.0]", 6, "must be >= 0"),
        (HEAD + "[parameters]\n'imu.rate' = 'x'", 6, "parameter imu.rate: x; must be a number"),
        (HEAD + "[[sweep]]\n'imu.rate' = 1.0\n[[sweep]]\n'imu.pose' = 1.0", 7, "7: point 2 of the sweep: imu.pose"),
        (HEAD + "[[sweep]]\n'imu.rate' = 1.0\n[[sweep]]\n'imu.rate' = -1.0", 8, "rate of sensor"),
        (HEAD + "seed = -1", 5, "seed: -1; must be an integer from 0"),
        (HEAD + "epoch = -1", 5, "epoch: -1; must be an integer of seconds"),
        (HEAD + "truth_rate = 0", 5, "truth_rate: 0; must be from"),
        (HEAD + "fidelity = 'x'", 5, "fidelity: x; must be one of physical, classic"),
        (HEAD + "recordings = '.foo'", 5, "no recording has this suffix: .foo"),
        (HEAD + "out = ''", 5, "out: ; must be the name of a folder"),
        (HEAD + "output = 'results'", 5, "did you mean out?"),
        (HEAD.replace("runs = 4", "runs = 0"), 2, "runs: 0; must be a number >= 1"),
        (HEAD.replace("runs = 4", "runs = [1, 1]"), 2, "runs: [1, 1]"),
        (HEAD.replace("duration = 1.0", "duration = -1"), 3, "duration: -1; must be a finite number"),
        (HEAD.replace("duration = 1.0\n", ""), 0, "experiment.toml: duration: missing; required because"),
        (HEAD + "motion = 'no.csv'", 5, "no.csv: log: does not exist"),
        (HEAD + "motion = {robot = 3}", 5, "motion.robot: 3; must be the path of a motion log"),
        (HEAD + "[motion.robot]\na = 'log.csv'", 5, "must be the path of a motion log"),
        (HEAD + "motion = {robt = 'log.csv'}", 5, "did you mean robot?"),
        (HEAD + "joints = ['no.csv']", 5, "no.csv: log: does not exist"),
        (HEAD + "faults = 'no.toml'", 5, "no.toml: file of faults: does not exist"),
        (HEAD + "[sweep]\nmotion = ['no.csv']", 6, "no.csv: log: does not exist"),
        (HEAD + "[sweep]\nmotion = [3]", 6, "parameter robot.motion: 3; must be the path of a file"),
        (HEAD + "[sweep]\nfaults = ['no.toml']", 6, "no.toml: file of faults: does not exist"),
        (HEAD + "[parameters]\nmotion = 'log.csv'", 6, "or the key motion of an experiment file"),
        (HEAD + "[load]\nxacro = {a = 3}", 6, "xacro argument: a"),
        (
            HEAD + "[sweep]\n'imu.rate' = [1]\n[latin_hypercube]\nsamples = 1\nranges = {'imu.rate' = [1, 2]}",
            9,
            "path imu.rate; is in [sweep] and in [latin_hypercube]; omit one",
        ),
        (HEAD + "[latin_hypercube]\nsamples = 1\nseed = -1\nranges = {'imu.rate' = [1, 2]}", 7, "seed: -1"),
        (
            HEAD + "[latin_hypercube]\nsamples = 1\n[latin_hypercube.ranges]\n'imu.rate' = [-1e308, 1e308]",
            8,
            "range of imu.rate",
        ),
        (HEAD.replace("rows.py", "..rows"), 4, "cannot be imported: TypeError"),
        (HEAD + "[latin_hypercube]\nsamples = 3", 5, "latin_hypercube.ranges: missing"),
        (HEAD + "[latin_hypercube]\nsamples = 3\n[latin_hypercube.ranges]\n'imu.rate' = 3", 8, "a list of two numbers"),
        (
            HEAD + "[latin_hypercube]\nsamples = 3\n[latin_hypercube.ranges]\n'imu.rate' = [2, 1]",
            8,
            "the lower one first",
        ),
        (HEAD + "[latin_hypercube]\nsamples = 0\nranges = {'imu.rate' = [1, 2]}", 6, "samples: 0"),
        (HEAD + "[report]\nnees = {e = 0}", 6, "report.nees.e: 0; must be the number of degrees of freedom"),
        (HEAD + f"[report]\nnees = {{e = {monte_carlo.MAX_DOF + 1}}}", 6, "an integer from 1 to 1000000000"),
        (HEAD + "[report]\ndeviations = {e = 3}", 6, "report.deviations.e: 3; must be a string"),
        (HEAD + "[report]\nnees = {e = 2}\nnis = {e = 2}", 7, "report.nis.e; is in nees too"),
        (HEAD + "[report]\nallan = {a = 3}", 6, 'must be the column with the degrees of freedom, or ""'),
        (HEAD + "[report]\ndeclared = {a = 'imu.angular_velocity'}", 6, "report.declared.a; must be a column of allan"),
        (HEAD + "[report]\nallan = {a = ''}\ndeclared = {a = 'im.x'}", 7, "did you mean"),
        (
            HEAD + "[report]\nallan = {a = ''}\ndeclared = {a = 'imu.angular_velocit'}",
            7,
            "did you mean angular_velocity?",
        ),
        (HEAD + "[report]\nallan = {a = ''}\ndeclared = {a = 'imu.angular_velocity.3'}", 7, "must be from 0 to 2"),
        (HEAD + "[report.units]\na = 3", 6, "report.units.a: 3; must be a string"),
        (HEAD + "[report]\naxes = {a = 'x'}", 6, "report.axes.a: x; must be a list of strings"),
        (HEAD + "[report]\nunit = {a = 'm'}", 6, "did you mean units?"),
        (
            HEAD.replace('reduce = "rows.py:reduce"\n', "recordings = '.npz'\n") + "[report]\nerrors = ['a']",
            5,
            "report; needs reduce, which returns its columns; add reduce",
        ),
        (HEAD.replace("rows.py:reduce", "rows.py"), 4, "must be FILE:FUNCTION or MODULE:FUNCTION"),
        (HEAD.replace("rows.py:reduce", "nothing.py:reduce"), 4, "does not exist; check the path"),
        (HEAD.replace("rows.py:reduce", "rows.py:reduc"), 4, "has no function reduc; did you mean reduce?"),
        (HEAD.replace("rows.py:reduce", "no_such_module:f"), 4, "cannot be imported"),
        (HEAD.replace("robot.sdf", "nothing.sdf"), 1, "nothing.sdf: file: does not exist"),
        (
            HEAD.replace('reduce = "rows.py:reduce"\n', ""),
            0,
            "experiment.toml: reduce: missing; a campaign needs a row",
        ),
        (HEAD + "x = [", 0, "must be TOML"),
    ],
)
def test_errors_have_line_and_remedy(folder: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(ns.NavsenseError) as error:
        read(folder, text)
    assert message in str(error.value)
    if line:
        assert str(error.value).startswith(f"{folder}/experiment.toml:{line}: ")


def test_error_in_the_file_of_reduce(folder: Path) -> None:
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(ns.NavsenseError) as error:
        read(folder, HEAD.replace("rows.py", "broken.py"))
    assert "experiment.toml:4: reduce: " in str(error.value)
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in str(error.value)


@pytest.mark.parametrize(("codec", "end"), [("utf-8", "\n"), ("utf-8-sig", "\n"), ("utf-8-sig", "\r\n")])
def test_lines_of_keys(codec: str, end: str, tmp_path: Path) -> None:
    """Editors on Windows write a byte order mark and other line ends."""
    path = tmp_path / "x.toml"
    path.write_text(
        '# comment\na = "x = 1 # no comment" # comment\nb = [\n  1, # [\n  2,\n]\nc = """\n[d]\n"""\n\n'
        "[t]   # comment\nx.y = 1\n'z.w' = {k = 1}\n[[u]]\nv = 1\n[[u]]\nv = 2\n[u.w]\nx = 3\n",
        encoding=codec,
        newline=end,
    )
    kind = FileKind("file", SimulationError, "must be TOML")
    tables, lines = read_toml_lines(str(path), kind)
    assert tables["u"][1] == {"v": 2, "w": {"x": 3}}
    assert dict(lines) == {
        ("a",): 2,
        ("b",): 3,
        ("c",): 7,
        ("t",): 11,
        ("t", "x", "y"): 12,
        ("t", "z.w"): 13,
        ("u", 0): 14,
        ("u", 0, "v"): 15,
        ("u", 1): 16,
        ("u", 1, "v"): 17,
        ("u", 1, "w"): 18,
        ("u", 1, "w", "x"): 19,
    }


def test_example_of_the_survey_is_read() -> None:
    experiment = read_experiment(Path(__file__).parents[2] / "examples" / "survey_campaign.toml")
    assert experiment.campaign.row_count == 64
    assert experiment.report.nees == {"nees": 2}
    spec: Any = experiment.campaign.world.sensor("dvl").spec
    assert spec.misalignment_stddev == 0.003

"""Campaigns on local processes: rows, sweeps, failed runs, and processes that are killed."""

from __future__ import annotations

import fcntl
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import psutil
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from distributed import Client

import navsense as ns
from navsense.campaigns import computation, connection, worker
from navsense.campaigns.campaign import CHUNK_MEMORY, Reduce, make_campaign
from navsense.campaigns.command import ShellCommand
from navsense.campaigns.computation import WORKER_MEMORY, compute_campaign, count_workers
from navsense.campaigns.connection import open_client
from navsense.campaigns.digest import hash_world
from navsense.campaigns.experiment_file import read_experiment
from navsense.campaigns.result import CampaignResult
from navsense.campaigns.rows import Row, check_values, describe_error, fail_other_kinds, join_tables, make_table
from navsense.cli import cli
from navsense.core import kernels
from navsense.runner.run import Run

pytestmark = [pytest.mark.requirement("CAM-1"), pytest.mark.compiled]

WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">
<model name="robot"><link name="base">
<sensor name="imu" type="imu"><update_rate>100</update_rate><imu><angular_velocity>
<x><noise type="gaussian"><stddev>0.01</stddev></noise></x></angular_velocity></imu></sensor>
<sensor name="gauge" type="air_pressure"><update_rate>10</update_rate></sensor>
</link></model></world></sdf>"""

STDDEV = "robot::base::imu.angular_velocity_x.stddev"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ns.world.World:
    """Return a world with an IMU and a barometer."""
    path = tmp_path_factory.mktemp("world") / "robot.sdf"
    path.write_text(WORLD)
    return ns.load(path)


def reduce(run: Run) -> Mapping[str, Any]:
    """Return the deviation, the last rows and the number of a run."""
    rate = run["imu"]["angular_velocity"]
    return {"stddev": rate[:, 0].std(), "last": rate[-2:], "number": run.session.runs[0], "name": run["imu"].name}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Yield a client of two worker processes, which all tests of this file share."""
    with open_client(None, 2) as client:
        yield client


@pytest.fixture(scope="module")
def result(world: ns.world.World, client: Client, tmp_path_factory: pytest.TempPathFactory) -> CampaignResult:
    """Return a campaign of 150 runs in 3 chunks."""
    out = tmp_path_factory.mktemp("campaign")
    return ns.campaign(world, 150, 0.5, reduce=reduce, out=out, seed=7, client=client)


def test_rows_are_those_of_single_runs(world: ns.world.World, result: CampaignResult) -> None:
    assert result.campaign.chunk_sizes == (64,)
    assert result.table["run"].to_pylist() == result.table["number"].to_pylist() == list(range(150))
    for number in (0, 63, 64, 149):
        alone = ns.simulate(world, 0.5, seed=7, runs=[number]).select_run(number)["imu"]["angular_velocity"]
        assert np.array_equal(result.get_array("last")[number], alone[-2:])
        assert result.get_array("stddev")[number] == alone[:, 0].std()
    assert set(result.table["name"].to_pylist()) == {"robot::base::imu"}
    assert result.columns == ["stddev", "last", "number", "name"]


def list_chunk_times(folder: Path) -> dict[str, int]:
    """Return the time of the last change of each chunk."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "chunks").glob("*.parquet")}


def test_a_complete_campaign_computes_nothing(world: ns.world.World, result: CampaignResult) -> None:
    before, calls = list_chunk_times(result.folder), []
    again = ns.campaign(
        world, 150, 0.5, reduce=reduce, out=result.folder, seed=7, progress=lambda *call: calls.append(call)
    )
    assert again.table.equals(result.table)
    assert calls == [(150, 150)]
    assert again.reused == 150
    assert list_chunk_times(result.folder) == before


def test_more_runs_compute_only_the_new_chunks(world: ns.world.World, result: CampaignResult, client: Client) -> None:
    before, calls = list_chunk_times(result.folder), []
    more = ns.campaign(
        world,
        192,
        0.5,
        reduce=reduce,
        out=result.folder,
        seed=7,
        client=client,
        progress=lambda *call: calls.append(call),
    )
    assert calls[0] == (128, 192)  # the last chunk, of runs 128 to 149, was not full
    assert more.table.slice(0, 150).equals(result.table)
    new = set(list_chunk_times(result.folder)) - set(before)
    assert [name.partition("-")[2] for name in new] == ["000128-000191.parquet"]
    assert all(list_chunk_times(result.folder)[name] == time for name, time in before.items())


def write_inputs(folder: Path) -> ns.world.World:
    """Write logs and faults to a folder, and return a world with a joint."""
    text = """<link name="arm"/><joint name="hinge" type="revolute"><parent>base</parent><child>arm</child>
    <axis><xyz>0 0 1</xyz></axis></joint></model>"""
    (folder / "robot.sdf").write_text(WORLD.replace("</model>", text))
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text(MOTION.replace("2,4,", f"2,{ord(name[0])},"))
        (folder / f"joint-{name}").write_text(f"time,hinge\n0,0\n2,{ord(name[0]) - 96}\n")
    for kind in ("dropout", "stuck"):
        (folder / f"{kind}.toml").write_text(f'fault = [{{of = "imu", kind = "{kind}", start = 0.1, end = 0.2}}]')
    return ns.load(folder / "robot.sdf")


def list_names(world: ns.world.World, **changes: Any) -> list[str]:
    """Return the names of the chunks of a campaign."""
    arguments: dict[str, Any] = {"runs": 128, "duration": 1.0, "reduce": reduce, "seed": 7, **changes}
    return [chunk.name for chunk in make_campaign(world, **arguments).list_chunks()]


def test_more_points_keep_the_chunks_of_the_others(tmp_path: Path) -> None:
    world = write_inputs(tmp_path)
    first = {"motion": str(tmp_path / "a.csv"), "faults": str(tmp_path / "dropout.toml"), "imu.rate": 100.0}
    more = [
        first | {"motion": str(tmp_path / "b.csv")},
        first | {"faults": str(tmp_path / "stuck.toml")},
        first | {"imu.rate": 1e5},
    ]
    alone, names = list_names(world, sweep=[first]), list_names(world, sweep=[*more, first])
    assert names[-2:] == alone
    assert len(set(names)) == len(names) > 8  # the chunks of the fast sensor have fewer runs
    assert list_names(world, sweep=[first], runs=192)[:2] == alone


def test_names_of_chunks_depend_on_the_order_of_a_point_but_not_on_files_of_navsense(world: ns.world.World) -> None:
    point = {"imu.angular_velocity_*.stddev": 0.5, STDDEV: 0.25}
    names = list_names(world, sweep=[point])
    assert set(names).isdisjoint(list_names(world, sweep=[dict(reversed(point.items()))]))
    part = str(Path(ns.__file__).parent / "sensors" / "catalogue.py")  # whether it is read depends on earlier worlds
    assert list_names(replace(world, sources=world.sources | {part}), sweep=[point]) == names


def test_names_of_chunks_differ_with_the_content_of_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = write_inputs(tmp_path)
    motion, joints, faults = (str(tmp_path / name) for name in ("a.csv", "joint-a.csv", "dropout.toml"))
    plain: dict[str, Any] = {}
    logs = {"motion": motion, "joints": joints}
    point = {"sweep": {"motion": [motion], "faults": [faults]}}
    cases = (plain, logs, {"joints": joints}, point)
    before = [list_names(world, **case) for case in cases]
    assert [list_names(world, **case) for case in cases] == before

    def check_change(name: str, text: str, changed: Sequence[bool]) -> None:
        old = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text)
        names = [list_names(ns.load(tmp_path / "robot.sdf"), **case) for case in cases]
        assert [set(new).isdisjoint(old) for new, old in zip(names, before, strict=True)] == changed
        (tmp_path / name).write_text(old)

    check_change("a.csv", (tmp_path / "b.csv").read_text(), [False, True, False, True])
    check_change("joint-a.csv", (tmp_path / "joint-b.csv").read_text(), [False, True, True, False])
    check_change("dropout.toml", (tmp_path / "stuck.toml").read_text(), [False, False, False, True])
    check_change("robot.sdf", (tmp_path / "robot.sdf").read_text() + "<!-- x -->", [True] * 4)
    monkeypatch.setattr("navsense.campaigns.campaign.list_versions", lambda: {"numpy": "0"})
    assert all(set(list_names(world, **case)).isdisjoint(old) for case, old in zip(cases, before, strict=True))


def test_values_of_numpy_are_those_of_python(world: ns.world.World) -> None:
    values = [0.125, 0.25]
    plain = make_campaign(world, 1, 1.0, reduce=reduce, sweep={STDDEV: values, "imu.pose.position": [[1.0, 2.0, 3.0]]})
    arrays = {STDDEV: np.array(values), "imu.pose.position": np.array([[1.0, 2.0, 3.0]])}
    campaign = make_campaign(world, 1, 1.0, reduce=reduce, sweep=arrays)
    assert campaign.points == plain.points
    assert [chunk.name for chunk in campaign.list_chunks()] == [chunk.name for chunk in plain.list_chunks()]
    command = ShellCommand("navsense run w.sdf").format(1.0, 0, campaign.points[0], 0)
    assert command.endswith("--set 'imu.pose.position=[1.0, 2.0, 3.0]'")


def test_names_of_chunks_differ_with_everything_that_changes_rows(world: ns.world.World) -> None:
    scale = 1.0

    def scaled(run: Run) -> Mapping[str, Any]:
        return {"x": scale * run["imu"].time.size}

    def find_name(**changes: Any) -> str:
        arguments: dict[str, Any] = {"world": world, "runs": 4, "duration": 1.0, "reduce": scaled, "seed": 7, **changes}
        return next(make_campaign(**arguments).list_chunks()).name

    motion = ns.motion.waypoints([0.0, 2.0], [ns.Pose(), ns.Pose((1.0, 0.0, 0.0))])
    names = [
        find_name(),
        find_name(duration=1.5),
        find_name(seed=8),
        find_name(epoch=1),
        find_name(truth_rate=50.0),
        find_name(motion=motion),
        find_name(reduce=reduce),
        find_name(world=ns.with_parameters(world, {STDDEV: 0.02})),
        find_name(sweep={STDDEV: [0.02]}),
        find_name(recordings=".mcap"),
        find_name(runs=[0, 2]),
    ]
    assert len(set(names)) == len(names)
    assert find_name() == names[0]
    scale = 2.0
    assert find_name() not in names


def test_sweep_has_the_rows_of_each_point(world: ns.world.World, tmp_path: Path, client: Client) -> None:
    sweep = {STDDEV: [0.0, 0.5], "gauge.rate": [10.0]}
    result = ns.campaign(world, [3, 5], 0.5, reduce=reduce, out=tmp_path, sweep=sweep, client=client)
    assert result.table[STDDEV].to_pylist() == [0.0, 0.0, 0.5, 0.5]
    assert result.table["run"].to_pylist() == [3, 5, 3, 5]
    noisy = ns.with_parameters(world, {STDDEV: 0.5})
    alone = ns.simulate(noisy, 0.5, runs=[5]).select_run(5)["imu"]["angular_velocity"]
    assert result.get_array("stddev", {STDDEV: 0.5})[1] == alone[:, 0].std()
    assert np.all(result.get_array("stddev", {STDDEV: 0.0}) == 0.0)


def fail_in_two_runs(run: Run) -> Mapping[str, Any]:
    """Return a row, except for runs 2 and 5."""
    if run.session.runs[0] in (2, 5):
        raise ValueError(f"no row\nfor run {run.session.runs[0]}")
    return {"value": 1.0}


def test_a_run_that_fails_has_a_row_with_its_error(world: ns.world.World, tmp_path: Path, client: Client) -> None:
    result = ns.campaign(world, 8, 0.2, reduce=fail_in_two_runs, out=tmp_path, client=client, sweep={STDDEV: [0.1]})
    place = f"test_campaign.py:{fail_in_two_runs.__code__.co_firstlineno + 3}"
    assert [(run.run, run.failure) for run in result.failed_runs] == [
        (2, f"{place}: ValueError: no row for run 2"),
        (5, f"{place}: ValueError: no row for run 5"),
    ]
    assert result.failed_runs[0].parameters == {STDDEV: 0.1}
    assert result.table["value"].to_pylist() == [1.0, 1.0, None, 1.0, 1.0, None, 1.0, 1.0]
    assert result.get_array("value").tolist() == [1.0] * 6


def stop_at_four(run: Run) -> Mapping[str, Any]:
    """Kill the process in run 4, and end it in run 5."""
    if run.session.runs[0] == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    if run.session.runs[0] == 5:
        sys.exit(3)
    return {"value": float(run.session.runs[0])}


def test_a_run_that_kills_its_worker_does_not_end_the_campaign(
    world: ns.world.World, tmp_path: Path, client: Client
) -> None:
    """The other runs of its chunk have their rows."""
    result = ns.campaign(world, [*range(2, 8), 64], 0.2, reduce=stop_at_four, out=tmp_path, client=client)
    assert [run.run for run in result.failed_runs] == [4, 5]
    assert "died" in result.failed_runs[0].failure
    assert result.failed_runs[1].failure.endswith("SystemExit: 3")
    assert result.get_array("value").tolist() == [2.0, 3.0, 6.0, 7.0, 64.0]
    assert len(list_chunk_times(tmp_path)) == 2


def list_workers() -> list[Any]:
    """Return the processes of the workers of this process."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            found += [process] if "spawn_main" in " ".join(process.cmdline()) else []
    return found


def wait_a_moment(run: Run) -> Mapping[str, Any]:
    """Return the row of `reduce` after a pause, so that a process can be killed during the campaign."""
    time.sleep(0.015)
    return {"last": run["imu"]["angular_velocity"][-1], "number": run.session.runs[0]}


@pytest.fixture(scope="module")
def survivors(world: ns.world.World, client: Client, tmp_path_factory: pytest.TempPathFactory) -> CampaignResult:
    """Return a campaign on two workers, one of which was killed."""
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        processes = list_workers()
        if 0 < done < total and processes and not killed:
            killed.append(processes[-1].pid)
            processes[-1].kill()

    out = tmp_path_factory.mktemp("survivors")
    result = ns.campaign(world, 320, 0.2, reduce=wait_a_moment, out=out, seed=7, client=client, progress=kill_one)
    assert killed
    return result


def test_rows_survive_the_death_of_a_worker(world: ns.world.World, survivors: CampaignResult) -> None:
    assert not survivors.failed_runs
    runs = ns.simulate(world, 0.2, seed=7, runs=320)
    assert np.array_equal(survivors.get_array("last"), runs["imu"]["angular_velocity"][:, -1])


def test_workers_ignore_an_interrupt_of_the_terminal(survivors: CampaignResult) -> None:
    """Also the worker that took the place of the killed one."""
    assert survivors.table.num_rows == 320
    workers = list_workers()
    assert len(workers) == 2
    for process in workers:
        status = Path(f"/proc/{process.pid}/status").read_text()
        blocked = int(status.partition("SigBlk:")[2].split()[0], 16)
        assert blocked & (1 << (signal.SIGINT - 1))


SCRIPT = """
import time
import navsense as ns

def wait_a_moment(run):
    time.sleep(0.015)
    return {{"last": run["imu"]["angular_velocity"][-1], "number": run.session.runs[0]}}

ns.campaign(ns.load({world!r}), 320, 0.2, reduce=wait_a_moment, out={out!r}, seed=7, workers=1)
"""


def test_a_killed_campaign_goes_on_and_has_the_rows_of_two_workers(
    world: ns.world.World, survivors: CampaignResult, tmp_path: Path
) -> None:
    script, out = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT.format(world=world.path, out=str(out)))
    process = subprocess.Popen([sys.executable, str(script)])
    deadline = time.monotonic() + 120.0
    while len(list_chunk_times(out)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = list_chunk_times(out)
    assert 2 <= len(before) < 5
    subprocess.run([sys.executable, str(script)], check=True)
    after = list_chunk_times(out)
    assert len(after) == 5
    assert all(after[name] == before[name] for name in before)
    assert pyarrow.parquet.read_table(out / "results.parquet").equals(survivors.table)


def test_an_interrupt_keeps_the_complete_chunks(world: ns.world.World, tmp_path: Path, client: Client) -> None:
    def interrupt(done: int, total: int) -> None:
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ns.campaign(world, 320, 0.2, reduce=wait_a_moment, out=tmp_path, client=client, progress=interrupt)
    assert 1 <= len(list_chunk_times(tmp_path)) < 5
    deadline = time.monotonic() + 60.0
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.processing().values())
    assert len(list_chunk_times(tmp_path)) < 5


def test_the_command_of_a_row_repeats_the_run(world: ns.world.World, tmp_path: Path) -> None:
    (tmp_path / "robot.sdf").write_text(WORLD)
    (tmp_path / "rows.py").write_text(
        'def reduce(run):\n    return {"last": run["imu"]["angular_velocity"][-1]}\n', encoding="utf-8"
    )
    (tmp_path / "experiment.toml").write_text(
        f'world = "robot.sdf"\nruns = [11]\nduration = 0.5\nseed = 3\nreduce = "rows.py:reduce"\n'
        f'[sweep]\n"{STDDEV}" = [0.25]\n'
    )
    out, before = tmp_path / "out", list_workers()
    done = CliRunner().invoke(cli, ["campaign", str(tmp_path / "experiment.toml"), "-o", str(out), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert list_workers() == before
    row = pyarrow.parquet.read_table(out / "results.parquet").to_pylist()[0]
    words = shlex.split(row["command"])
    assert words[:2] == ["navsense", "run"]
    assert CliRunner().invoke(cli, [*words[1:], "-o", str(tmp_path / "run.npz")]).exit_code == 0
    reading = ns.open(tmp_path / "run.npz")["imu"]["angular_velocity"]
    assert row["last"] == reading[-1].tolist()


MOTION = "time,x,y,z,qw,qx,qy,qz\n" + "".join(f"{time},{time * time},0,0,1,0,0,0\n" for time in range(4))


@pytest.mark.parametrize("is_from_file", [True, False])
def test_commands_of_a_campaign_from_python(tmp_path: Path, client: Client, *, is_from_file: bool) -> None:
    (tmp_path / "robot.sdf").write_text(WORLD)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(MOTION.replace("2,4,", f"2,{ord(name[0])},"))
    (tmp_path / "faults.toml").write_text('fault = [{of = "imu", kind = "dropout", start = 0.1, end = 0.2}]')
    world = ns.load(tmp_path / "robot.sdf")
    if not is_from_file:
        world = ns.with_parameters(world, {"gauge.rate": 20.0})
    motion = str(tmp_path / "a.csv")
    sweep = [
        {STDDEV: 0.5, "motion": str(tmp_path / "b.csv"), "faults": ""},
        {STDDEV: 0.25, "motion": motion, "faults": str(tmp_path / "faults.toml")},
    ]
    result = ns.campaign(
        world, [5], 0.5, reduce=reduce, out=tmp_path / "out", seed=7, motion=motion, epoch=3, sweep=sweep, client=client
    )
    commands = result.table["command"].to_pylist()
    for command, last in zip(commands, result.get_array("last"), strict=True):
        if is_from_file:
            words = shlex.split(command)
            assert words[:3] == ["navsense", "run", str(tmp_path / "robot.sdf")]
            done = CliRunner().invoke(cli, [*words[1:], "-o", str(tmp_path / "run.npz")])
            assert done.exit_code == 0, done.output
            run = ns.open(tmp_path / "run.npz")
        else:
            run = eval(command, {"ns": ns, "world": world, "motion": motion})  # noqa: S307  # of this table
        assert np.array_equal(run["imu"]["angular_velocity"][-2:], last)
    assert len(set(map(str, result.get_array("last").tolist()))) == 2


@pytest.mark.parametrize("function", [None, reduce])
def test_recordings_are_those_of_single_runs(
    world: ns.world.World, tmp_path: Path, client: Client, function: Reduce | None
) -> None:
    result = ns.campaign(
        world, [2, 3], 0.5, out=tmp_path / "out", reduce=function, recordings=".npz", seed=7, client=client
    )
    assert result.columns == ([] if function is None else ["stddev", "last", "number", "name"])
    for number, name in zip((2, 3), result.table["recording"].to_pylist(), strict=True):
        ns.record(world, tmp_path / "alone.npz", 0.5, seed=7, run=number)
        recorded = ns.open(result.folder / "recordings" / name)
        alone = ns.open(tmp_path / "alone.npz")
        assert np.array_equal(recorded["imu"]["angular_velocity"], alone["imu"]["angular_velocity"])


def test_number_of_workers_depends_on_the_memory_of_a_chunk(
    world: ns.world.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = make_campaign(world, 1000, 3600.0, reduce=reduce)
    chunk = campaign.chunk_memory + WORKER_MEMORY
    assert campaign.chunk_memory <= CHUNK_MEMORY
    for free, cores, expected in ((7.0 * chunk, 16, 3), (7.0 * chunk, 2, 2), (0.1 * chunk, 16, 1), (math.inf, 16, 16)):
        monkeypatch.setattr(computation, "get_free_memory", partial(float, free))
        monkeypatch.setattr(os, "sched_getaffinity", lambda _process, cores=cores: set(range(cores)))
        assert count_workers(campaign) == expected


def test_a_damaged_chunk_is_computed_again(world: ns.world.World, tmp_path: Path, client: Client) -> None:
    first = ns.campaign(world, 2, 0.2, reduce=reduce, out=tmp_path, client=client)
    chunk = next((tmp_path / "chunks").iterdir())
    table = pyarrow.parquet.read_table(chunk)
    others = [table.slice(1), table.set_column(0, "run", [[7, 8]]), table.drop_columns(["failure"]), table.slice(0, 0)]
    for damage in (None, *others):
        if damage is None:
            chunk.write_bytes(chunk.read_bytes()[:100])
        else:
            pyarrow.parquet.write_table(damage, chunk)
        assert ns.campaign(world, 2, 0.2, reduce=reduce, out=tmp_path, client=client).table.equals(first.table)


def test_description_of_the_campaign(result: CampaignResult) -> None:
    description = json.loads((result.folder / "campaign.json").read_text())
    assert description["world"] == "w"
    assert description["digest"] == result.campaign.base_digest
    assert set(description["versions"]) == {"python", "machine", "llvmlite", "numba", "numpy", "scipy", "navsense"}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"reduce": None}, "reduce: missing; a campaign needs a row or a recording of each run"),
        ({"reduce": 3}, "reduce: 3; must be a function"),
        ({"recordings": ".foo"}, "no recording has this suffix: .foo; known are .mcap"),
        ({"recordings": "x/.mcap"}, "recordings: x/.mcap; must be a suffix, such as .mcap"),
        ({"recordings": "mcap"}, "recordings: mcap; must be a suffix, such as .mcap"),
        ({"runs": 0}, "runs: 0; must be a number >= 1"),
        ({"workers": 0}, "workers: 0; must be an integer >= 1"),
        ({"sweep": {STDDEV: 0.1}}, "must be a list of values"),
        ({"sweep": {STDDEV: []}}, "sweep: has no point"),
        ({"sweep": [{STDDEV: 0.1}, {"gauge.rate": 5.0}]}, "point 2 of the sweep"),
        ({"sweep": 5}, "sweep: 5; must be a mapping from paths to lists of values, or a list"),
        ({"sweep": iter([{"gauge.rate": -5.0}])}, "rate of sensor"),
        ({"sweep": {3: [1.0]}}, "path of the sweep: 3; must be a string"),
        ({"sweep": {"motion": [3]}}, "parameter robot.motion: 3; must be the path of a file"),
        ({"sweep": {"faults": ["no.toml"]}}, "parameter faults: no.toml: file of faults: does not exist"),
        ({"sweep": {STDDEV: [10**400]}}, "must be a number"),
        ({"recordings": 5}, "recordings: 5; must be a suffix, such as .mcap"),
        ({"truth_rate": "a"}, "truth_rate: a; must be from"),
        ({"duration": 10**400}, "duration: "),
        ({"sweep": {"imu.angular_velocity_x.stdev": [0.1]}}, "did you mean stddev?"),
        ({"sweep": {STDDEV: [-0.1]}}, "must be >= 0"),
        ({"client": "tcp://127.0.0.1:1"}, "must be the address of a Dask scheduler"),
        ({"client": "nonsense"}, "must be the address of a Dask scheduler"),
        ({"duration": math.inf}, "duration: inf"),
    ],
)
def test_wrong_arguments(
    world: ns.world.World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Mapping[str, Any], text: str
) -> None:
    monkeypatch.setattr(connection, "CONNECTION_TIMEOUT", 0.5)
    arguments: dict[str, Any] = {
        "world": world,
        "runs": 2,
        "duration": 0.2,
        "reduce": reduce,
        "out": tmp_path,
        **changes,
    }
    with pytest.raises(ns.NavsenseError) as error:
        ns.campaign(**arguments)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("{'run': 1}", "column of reduce: run; must be a text other than run, recording, failure, command"),
        ("{'command': 1}", "column of reduce: command; must be a text other than"),
        ("{'imu.rate': 1}", "column of reduce: imu.rate; must be a text other than"),
        ("{'x': np.ma.masked_less([1.0, 2.0], 1.5)}", "column x of reduce: array; must not have masked values"),
        ("{'x': [1.0, 'a']}", "must be a number, a text, a truth value, or an array of them"),
        ("{'x': [[1.0], [1.0, 2.0]]}", "must be a number, a text, a truth value, or an array of them"),
        ("{'x': chr(0xD800)}", "must be a number, a text, a truth value, or an array of them"),
        ("{'x': 2**63}", "column x of reduce: 9223372036854775808; must be integers below 2**63"),
        ("{1: 1}", "column of reduce: 1"),
        ("{'x': object()}", "column x of reduce"),
        ("[1]", "result of reduce: [1]; must be a mapping"),
        ("None", "result of reduce"),
    ],
)
def test_wrong_rows_are_errors_of_their_runs(row: str, text: str) -> None:
    with pytest.raises(ns.NavsenseError) as error:
        check_values(eval(row), ["imu.rate"])  # noqa: S307  # of this table
    assert text in str(error.value)


def test_an_error_of_a_campaign_is_not_one_of_the_connection(client: Client) -> None:
    address = client.cluster.scheduler_address
    with pytest.raises(ValueError, match="of the campaign"), open_client(address, None):
        raise ValueError("of the campaign")


def make_tables(*chunks: list[Any]) -> list[pyarrow.Table]:
    """Return the tables of chunks with a column of values."""
    tables, start = [], 0
    for values in chunks:
        rows = [Row(start + index, check_values({"x": value, "y": 1})) for index, value in enumerate(values)]
        tables.append(make_table(fail_other_kinds(rows), {STDDEV: 0.5}, has_recording=False))
        start += len(values)
    return tables


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ([1, "a", 2], "text; must be number"),
        (["a", "b", 2.0], "number; must be text"),
        ([True, False, 1], "number; must be truth value"),
        ([1.0, 2.0, np.zeros(2)], "array of numbers with 1 axis; must be number"),
        ([np.zeros(2), np.zeros((2, 3)), np.ones(3)], "array of numbers with 2 axes; must be array of numbers"),
        ([np.zeros(2), np.array(["a"]), np.ones(2)], "array of texts with 1 axis; must be array of numbers"),
    ],
)
def test_a_run_with_another_kind_of_value_has_failed(values: list[Any], kinds: str) -> None:
    """In one chunk, and in chunks of one run."""
    for tables in (make_tables(values), make_tables(*([value] for value in values))):
        table = join_tables(tables, [STDDEV])
        failures = table["failure"].to_pylist()
        (failure,) = filter(None, failures)
        assert failure.startswith(f"column x of reduce: {kinds}")
        failed = failures.index(failure)
        assert [index for index, value in enumerate(table["y"].to_pylist()) if value is None] == [failed]
        assert table["x"].to_pylist()[failed] is None
        assert table["run"].to_pylist() == [0, 1, 2]
        assert table[STDDEV].to_pylist() == [0.5] * 3


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2.5, 2**60 + 1], [1.0, 2.5, float(2**60)]),
        ([np.array([1, 2]), np.array([0.5], np.float32)], [[1.0, 2.0], [0.5]]),
        ([np.zeros(1, np.uint8), np.array([-1]), np.zeros(0, np.uint64)], [[0], [-1], []]),
    ],
)
def test_numbers_of_all_types_are_one_column(values: list[Any], expected: list[Any]) -> None:
    for tables in (make_tables(values), make_tables(*([value] for value in values))):
        assert join_tables(tables, [STDDEV])["x"].to_pylist() == expected


def test_values_of_the_sweep_of_several_kinds_are_texts() -> None:
    tables = [make_table([Row(0, {})], {"faults": value}, has_recording=False) for value in (1, "a", [0.5])]
    assert join_tables(tables, ["faults"])["faults"].to_pylist() == ["1", "a", "[0.5]"]


def test_a_row_is_simulated_again(world: ns.world.World, result: CampaignResult) -> None:
    assert np.array_equal(reduce(result.simulate_run(149))["last"], result.get_array("last")[149])
    with pytest.raises(ns.NavsenseError, match="row: 150; must be from 0 to 149"):
        result.simulate_run(150)


def test_a_value_that_no_point_has_is_an_error(world: ns.world.World, tmp_path: Path, client: Client) -> None:
    sweep = {STDDEV: [0.1, 0.2], "gauge.rate": [10.0]}
    result = ns.campaign(world, 2, 0.2, reduce=fail_in_two_runs, out=tmp_path, client=client, sweep=sweep)
    for wrong in (0.3, "high"):
        with pytest.raises(ns.NavsenseError, match=r"no run has this value; must be one of 0\.1, 0\.2"):
            result.get_array("value", {STDDEV: wrong})
    again = result.simulate_run(3).session
    assert again.runs == (1,)
    assert hash_world(again.world) == hash_world(ns.with_parameters(world, {STDDEV: 0.2, "gauge.rate": 10.0}))


def test_columns_that_are_no_array_are_errors(result: CampaignResult, tmp_path: Path) -> None:
    """One of two runs has no array, and chunks have arrays of several shapes. `result.table` has such rows too."""

    def make_result(*chunks: Sequence[Any]) -> CampaignResult:
        rows = [[Row(run, {} if x is None else {"x": x}) for run, x in enumerate(values)] for values in chunks]
        table = join_tables([make_table(each, {}, has_recording=False) for each in rows], ())
        return CampaignResult(result.campaign, tmp_path, table)

    two, three = np.ones(2), np.ones(3)
    with pytest.raises(ns.NavsenseError, match="column x: 1 missing; must have an array in each run; use res"):
        make_result([two, None]).get_array("x")
    for mixed in (make_result([two, three]), make_result([two], [three])):
        with pytest.raises(ns.NavsenseError, match="column x: arrays; must have the same shape in each run; use res"):
            mixed.get_array("x")
    assert make_result([np.ones((2, 3))], [np.zeros((2, 3))]).get_array("x").shape == (2, 2, 3)
    with pytest.raises(ns.NavsenseError, match=r"column: lst; must be one of stddev, last, .*; did you mean last\?"):
        result.get_array("lst")
    none = replace(result, table=result.table.slice(0, 0))
    assert none.get_array("last").shape == (0, 0, 0)
    assert none.get_array("number").dtype == np.int64


def test_a_result_shows_its_columns_and_the_number_of_failed_runs(result: CampaignResult, tmp_path: Path) -> None:
    assert repr(result).startswith("<Campaign w: 150 runs, in /")
    assert "last     list<element: list<element: double>>" in repr(result)
    rows = [Row(0, {"value": 1.0}), Row(1, {}, failure="ValueError: x")]
    table = make_table(rows, {}, has_recording=False).append_column("command", [["a", "b"]])
    other = CampaignResult(result.campaign, tmp_path, table)
    assert repr(other).startswith("<Campaign w: 2 runs, 1 failed run, in /")
    assert [(run.run, run.failure, run.command) for run in other.failed_runs] == [(1, "ValueError: x", "b")]


def test_a_deleted_recording_is_written_again(world: ns.world.World, tmp_path: Path, client: Client) -> None:
    def compute() -> CampaignResult:
        return ns.campaign(world, 2, 0.2, out=tmp_path, recordings=".npz", client=client)

    (path, *_) = (tmp_path / "recordings" / name for name in compute().table["recording"].to_pylist())
    path.unlink()
    assert compute().reused == 0
    assert path.exists()
    assert compute().reused == 2


def list_search_paths(client: Client) -> list[Sequence[str]]:
    """Return the search path of modules of each worker."""
    return list(client.run(lambda: list(sys.path)).values())


def test_workers_import_changed_modules_again(world: ns.world.World, tmp_path: Path, client: Client) -> None:
    """A module with a lock cannot be sent, so workers import it from its folder."""
    rows = "import module_of_workers\n\n\ndef reduce(run):\n    return {'value': module_of_workers.get()}\n"
    (tmp_path / "rows_of_workers.py").write_text(rows)
    text = f"world = {world.path!r}\nruns = 4\nduration = 0.2\nreduce = 'rows_of_workers.py:reduce'\n"
    (tmp_path / "experiment.toml").write_text(text)
    before = list_search_paths(client)
    for value in (1, 22, 333):  # one of the two workers computes two of these campaigns
        module = f"import threading\nLOCK = threading.Lock()\n\n\ndef get():\n    with LOCK:\n        return {value}\n"
        (tmp_path / "module_of_workers.py").write_text(module)
        experiment = read_experiment(tmp_path / "experiment.toml")
        result = compute_campaign(experiment.campaign, tmp_path / "out", client=client, folders=experiment.folders)
        assert result.get_array("value").tolist() == [value] * 4
        assert list_search_paths(client) == before
        for name in ("rows_of_workers", "module_of_workers"):
            del sys.modules[name]


def test_a_process_that_dies_at_the_start_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[Any] = [RuntimeError("Nanny failed to start."), "cluster"]

    def start(**_settings: Any) -> Any:
        if isinstance(results[0], Exception):
            raise results.pop(0)
        return results[0]

    monkeypatch.setattr(distributed, "LocalCluster", start)
    assert connection.start_cluster(2, "folder") == "cluster"
    results[:] = [RuntimeError("Nanny failed to start.")] * connection.MAX_STARTS
    with pytest.raises(ns.NavsenseError, match=r"campaign: 2; do not start .*; check the memory"):
        connection.start_cluster(2, "folder")
    assert not results


def test_threads_of_a_process_share_the_lock_of_a_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another process compiles them after a time."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernels, "COMPILATION_CALLBACKS", [])
    monkeypatch.setattr(worker, "COMPILATION_CALLBACKS", kernels.COMPILATION_CALLBACKS)
    barrier = threading.Barrier(2, timeout=20.0)

    def is_locked() -> bool:
        with (tmp_path / worker.LOCK_NAME).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def compile_kernels(_: int) -> bool:
        with worker.lock_compilation():
            barrier.wait()
            kernels._call_before_compilation()
            barrier.wait()
            return is_locked()

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(compile_kernels, range(2))) == [True, True]
    assert not is_locked()
    monkeypatch.setattr(worker, "LOCK_TIMEOUT", 0.1)
    with (tmp_path / worker.LOCK_NAME).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with worker.lock_compilation():
            kernels._call_before_compilation()
    assert "this one compiles them too" in caplog.text


def test_errors_of_classes_of_the_user_have_a_text() -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert describe_error(SilentError()) == "SilentError"
    assert describe_error(ValueError(chr(0xD800))) == "ValueError: \\ud800"


def test_a_folder_that_cannot_be_written_is_an_error(world: ns.world.World, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "out" / "campaign.json").mkdir(parents=True)
    for name in ("file", "out", "nul\0"):
        with pytest.raises(ns.NavsenseError, match="give another folder with -o or out="):
            ns.campaign(world, 2, 0.2, reduce=reduce, out=tmp_path / name)

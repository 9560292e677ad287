"""Campaigns on a scheduler and workers that the commands of the documentation start, over TCP on loopback with TLS."""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from distributed import Client, Security

import navsense as ns
from navsense.campaigns import tasks
from navsense.campaigns.connection import TLS_OPTIONS
from navsense.campaigns.digest import list_versions
from navsense.campaigns.worker import check_folder, check_versions
from navsense.cli import cli
from navsense.runner.run import Run

pytestmark = [
    pytest.mark.requirement("CAM-1"),
    pytest.mark.compiled,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the command openssl"),
]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "clusters.md"

WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">
<model name="robot"><link name="base">
<sensor name="imu" type="imu"><update_rate>100</update_rate><imu><angular_velocity>
<x><noise type="gaussian"><stddev>0.01</stddev></noise></x></angular_velocity></imu></sensor>
</link></model></world></sdf>"""

ROWS = """def reduce(run):
    return {"last": run["imu"]["angular_velocity"][-1]}
"""

EXPERIMENT = 'world = "robot.sdf"\nruns = 130\nduration = 0.2\nseed = 7\nreduce = "rows.py:reduce"\n'


def find_command(start: str) -> list[str]:
    """Return the words of the command of the page that begins so."""
    (line,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(start))
    return shlex.split(line)


class Processes:
    """Processes of commands of the page, with the addresses of this machine. All are killed at the end."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        """`folder` is where they run, and where each writes its log."""
        self.folder, self._stack = folder, stack

    def start(self, words: list[str], address: str = "", **variables: str) -> psutil.Process:
        """Start a command of the environment of this process. `address` replaces that of the scheduler."""
        changes = {"tls://10.0.0.1:8786": address, "10.0.0.1": "127.0.0.1", "10.0.0.2": "127.0.0.1", "16": "1"}
        changes |= {"8786": "0", "127.0.0.1:8787": "127.0.0.1:0", "dask": str(Path(sys.executable).parent / "dask")}
        log = self._stack.enter_context((self.folder / f"{time.monotonic_ns()}.log").open("wb"))
        process = psutil.Popen(
            [changes.get(word, word) for word in words],
            cwd=self.folder,
            env={**os.environ, **variables},
            stdout=log,
            stderr=log,
        )
        self._stack.callback(kill_processes, process)
        return process

    def start_scheduler(self, words: list[str]) -> tuple[psutil.Process, str]:
        """Start a scheduler on a free port. Return it with its address."""
        file = self.folder / f"{time.monotonic_ns()}.json"
        process = self.start([*words, "--scheduler-file", str(file)])
        wait_until(file.exists)
        return process, str(json.loads(file.read_text())["address"])


def kill_processes(process: psutil.Process) -> None:
    """Kill a process and its children."""
    if process.is_running():
        for child in [process, *process.children(recursive=True)]:
            child.kill()
    process.wait()


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@dataclass(frozen=True)
class Cluster:
    """A scheduler with two workers: address, a client, and the files of the certificate in the folder."""

    address: str
    client: Client
    processes: Processes
    plain_worker: psutil.Process

    @property
    def folder(self) -> Path:
        """The folder of the certificate."""
        return self.processes.folder


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Yield the processes of this module, with the certificate of the page."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("cluster")
        subprocess.run(find_command("openssl"), cwd=folder, check=True, capture_output=True)
        yield Processes(folder, stack)


@pytest.fixture(scope="module")
def cluster(processes: Processes) -> Iterator[Cluster]:
    """Yield a cluster of two workers, one of them without a process that starts it again."""
    _, address = processes.start_scheduler(find_command("dask scheduler"))
    processes.start(find_command("dask worker"), address)
    plain = processes.start([*find_command("dask worker"), "--no-nanny"], address)
    crt, key = str(processes.folder / "cluster.crt"), str(processes.folder / "cluster.key")
    security = Security(tls_ca_file=crt, tls_client_cert=crt, tls_client_key=key)
    with Client(address, security=security, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield Cluster(address, client, processes, plain)


@pytest.fixture
def world(tmp_path: Path) -> ns.world.World:
    """Return a world with an IMU, and an experiment file beside it."""
    for name, text in (("robot.sdf", WORLD), ("rows.py", ROWS), ("experiment.toml", EXPERIMENT)):
        (tmp_path / name).write_text(text)
    return ns.load(tmp_path / "robot.sdf")


def reduce(run: Run) -> Mapping[str, Any]:
    """Return the last sample after a pause."""
    time.sleep(0.01)
    return {"last": run["imu"]["angular_velocity"][-1]}


def compute(folder: Path, address: str, *options: str) -> Result:
    """Run the command of the campaign of the page with other options."""
    return CliRunner().invoke(
        cli, ["campaign", str(folder / "experiment.toml"), "-o", str(folder / "out"), "--scheduler", address, *options]
    )


def list_campaigns(client: Client) -> list[str]:
    """Return the campaigns and their tasks on the scheduler and on the workers."""
    found = client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.worker_plugins, *dask_scheduler.tasks])
    for names in client.run(lambda dask_worker: list(dask_worker.plugins)).values():
        found += names
    return [name for name in found if name.startswith("campaign")]


@pytest.mark.usefixtures("world")
def test_commands_of_the_page_compute_the_rows_of_this_process(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = find_command("navsense campaign")
    assert words[2:6] == ["examples/survey_campaign.toml", "-o", "survey", "--scheduler"]
    monkeypatch.chdir(cluster.folder)
    done = compute(tmp_path, cluster.address, *words[7:])
    assert done.exit_code == 0, done.output
    table = pyarrow.parquet.read_table(tmp_path / "out" / "results.parquet")
    runs = ns.simulate(ns.load(tmp_path / "robot.sdf"), 0.2, seed=7, runs=130)
    assert np.array_equal(table["last"].to_pylist(), runs["imu"]["angular_velocity"][:, -1])
    assert list_campaigns(cluster.client) == []


def test_certificates_of_the_configuration_of_dask_are_used(
    cluster: Cluster, world: ns.world.World, tmp_path: Path
) -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("export DASK_")]
    pairs = [line.removeprefix("export ").split("=") for line in lines]
    variables = {name: str(cluster.folder / file) for name, file in pairs}
    config = dask.config.merge(dask.config.config, dask.config.collect_env(variables))
    with dask.config.set({"distributed.comm.tls": config["distributed"]["comm"]["tls"]}):
        result = ns.campaign(world, 2, 0.2, reduce=reduce, out=tmp_path / "out", client=cluster.address)
    assert result.table.num_rows == 2
    assert not result.failed_runs


WRONG_CONNECTIONS = {
    "plain": ("tcp", [], "the scheduler closes the connection; for a scheduler with TLS, write tls://"),
    "no certificate": ("tls", [], "TLS needs a CA file, a certificate and a key; give the options --tls-ca-file"),
    "no key": ("tls", ["cluster.crt", "cluster.crt"], "must be a certificate and its key in PEM format"),
    "key of another": ("tls", ["cluster.crt", "cluster.crt", "other.key"], "key values mismatch"),
    "no certificate in the file": ("tls", ["cluster.key", "cluster.crt", "cluster.key"], "in PEM format"),
    "missing file": ("tls", ["cluster.crt", "absent.crt", "cluster.key"], "--tls-cert: absent.crt; must be a file"),
    "folder": ("tls", [".", "cluster.crt", "cluster.key"], "--tls-ca-file: .; must be a file that can be read"),
    "unknown scheduler": ("tls", ["other.crt", "cluster.crt", "cluster.key"], "its certificate is not signed by"),
    "unknown client": ("tls", ["cluster.crt", "other.crt", "other.key"], "the TLS handshake fails"),
    "plain address with certificate": ("tcp", ["cluster.crt"], "is for a scheduler with TLS; add --scheduler tls://"),
}


@pytest.fixture(scope="module")
def other_certificate(processes: Processes) -> None:
    """Make the certificate of another cluster."""
    words = [word.replace("cluster.", "other.") for word in find_command("openssl")]
    subprocess.run(words, cwd=processes.folder, check=True, capture_output=True)


@pytest.mark.usefixtures("world", "other_certificate")
@pytest.mark.parametrize("name", WRONG_CONNECTIONS)
def test_a_wrong_connection_is_an_error_with_a_remedy(
    cluster: Cluster, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol, files, text = WRONG_CONNECTIONS[name]
    monkeypatch.chdir(cluster.folder)
    options = [word for pair in zip(TLS_OPTIONS, files, strict=False) for word in pair]
    done = compute(tmp_path, cluster.address.replace("tls", protocol), *options)
    assert isinstance(done.exception, ns.NavsenseError)
    assert text.lower() in str(done.exception).lower()


def test_a_closed_client_is_an_error(world: ns.world.World, cluster: Cluster, tmp_path: Path) -> None:
    closed = Client(cluster.address, security=cluster.client.security, set_as_default=False)
    closed.close()
    with pytest.raises(ns.NavsenseError, match="is closed; make a new one"):
        ns.campaign(world, 2, 0.2, reduce=reduce, out=tmp_path / "out", client=closed)


def test_a_worker_with_other_versions_ends_the_campaign(
    cluster: Cluster, world: ns.world.World, tmp_path: Path
) -> None:
    """The metadata of another version of SciPy come first on the search path of the worker."""
    metadata = tmp_path / "packages" / "scipy-0.1.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: scipy\nVersion: 0.1\n")
    path = f"{tmp_path / 'packages'}:{os.environ.get('PYTHONPATH', '')}"
    before = set(cluster.client.nthreads())
    words = [*find_command("dask worker"), "--no-nanny"]
    process = cluster.processes.start(words, cluster.address, PYTHONPATH=path)
    wait_until(lambda: len(cluster.client.nthreads()) > len(before))
    (address,) = set(cluster.client.nthreads()) - before
    try:
        with pytest.raises(ns.NavsenseError) as error:
            ns.campaign(world, 320, 0.2, reduce=reduce, out=tmp_path / "out", client=cluster.client)
    finally:
        kill_processes(process)
    version = list_versions()["scipy"]
    text = f"versions of the worker {address}: scipy 0.1; must be those of the client: scipy {version}; install"
    assert text in str(error.value)
    assert list_campaigns(cluster.client) == []


def test_all_versions_that_differ_are_named() -> None:
    versions = dict(list_versions())
    check_versions(versions, versions, "tcp://10.0.0.2:1")
    found = {name: version for name, version in versions.items() if name != "scipy"} | {"machine": "riscv64"}
    with pytest.raises(ns.NavsenseError) as error:
        check_versions(versions, found, "tcp://10.0.0.2:1")
    assert "worker tcp://10.0.0.2:1: machine riscv64, scipy missing; must" in str(error.value)


def test_an_interrupt_leaves_nothing_on_the_scheduler(cluster: Cluster, world: ns.world.World, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ns.campaign(world, 320, 0.2, reduce=reduce, out=tmp_path, client=cluster.client, progress=interrupt)
    wait_until(lambda: not list_campaigns(cluster.client))
    assert 1 <= len(list(tmp_path.glob("chunks/*.parquet"))) < 5


def test_recordings_are_written_to_a_relative_folder(
    cluster: Cluster, world: ns.world.World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the workers is another one."""
    monkeypatch.chdir(tmp_path)
    result = ns.campaign(world, 1, 0.2, out="out", recordings=".npz", client=cluster.client)
    assert not result.failed_runs
    assert [path.name for path in (tmp_path / "out" / "recordings").iterdir()] == result.table["recording"].to_pylist()


def test_a_folder_of_another_machine_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    with pytest.raises(ns.NavsenseError, match=r"worker tcp://a:1 does not see the file .*a1b2\.token of the client"):
        check_folder(folder, "a1b2", "tcp://a:1")
    folder.mkdir()
    (tmp_path / "chunks").mkdir()
    (tmp_path / "chunks" / "other.token").touch()
    with pytest.raises(ns.NavsenseError, match="write to a folder that all machines share"):
        check_folder(folder, "a1b2", "tcp://a:1")
    (tmp_path / "chunks" / "a1b2.token").touch()
    check_folder(folder, "a1b2", "tcp://a:1")


def test_a_scheduler_without_workers_is_reported_and_its_end_is_an_error(
    processes: Processes,
    world: ns.world.World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(tasks, "WAIT_BEFORE_WARNING", 0.2)
    words = ["dask", "scheduler", "--host", "10.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:8787"]
    process, address = processes.start_scheduler(words)

    def end_scheduler(done: int, total: int) -> None:
        if caplog.messages and process.is_running():
            kill_processes(process)

    with caplog.at_level(logging.WARNING, "navsense"), pytest.raises(ns.NavsenseError) as error:
        ns.campaign(world, 2, 0.2, reduce=reduce, out=tmp_path, client=address, progress=end_scheduler)
    text = f"the scheduler at {address} has no workers; the campaign waits; start some: dask worker {address}"
    assert caplog.messages == [text]
    assert f"scheduler: {address}; the connection to the scheduler is lost" in str(error.value)


def test_rows_survive_a_killed_worker(cluster: Cluster, world: ns.world.World, tmp_path: Path) -> None:
    def kill_worker(done: int, total: int) -> None:
        if done > 0:
            cluster.plain_worker.kill()

    client, killed = cluster.client, cluster.plain_worker
    result = ns.campaign(world, 320, 0.2, reduce=reduce, out=tmp_path, client=client, seed=7, progress=kill_worker)
    assert killed.wait() < 0
    assert not result.failed_runs
    runs = ns.simulate(world, 0.2, seed=7, runs=320)
    assert np.array_equal(result.get_array("last"), runs["imu"]["angular_velocity"][:, -1])

"""Tasks of a campaign on workers that this file plays: their sizes, deaths and errors."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import distributed
import pyarrow.parquet
import pytest
from distributed import KilledWorker

import navsense as ns
from navsense.campaigns import tasks
from navsense.campaigns.campaign import Campaign, RunChunk, make_campaign
from navsense.campaigns.connection import report_lost_scheduler
from navsense.campaigns.rows import Row
from navsense.campaigns.worker import ChunkRows

pytestmark = pytest.mark.requirement("CAM-1")

ADDRESS = "tcp://10.0.0.1:8786"

Work = Callable[[Sequence[RunChunk]], list[ChunkRows]]


@dataclass(frozen=True)
class FinishedTask:
    """A future whose result is known."""

    results: list[ChunkRows] | Exception

    def result(self) -> list[ChunkRows]:
        """Return the rows of the task, or raise its error."""
        if isinstance(self.results, Exception):
            raise self.results
        return self.results

    def release(self) -> None:
        """Do nothing: there is no scheduler."""

    __hash__ = object.__hash__


@dataclass(eq=False)
class PlayedClient:
    """A client whose tasks end at once, and what was submitted to it."""

    work: Work
    threads: int = 2
    registrations: list[Exception] = field(default_factory=list)
    status: str = "running"
    submitted: list[tuple[RunChunk, ...]] = field(default_factory=list)
    canceled: int = 0
    scheduler: Any = field(default_factory=lambda: SimpleNamespace(address=ADDRESS))

    def as_current(self) -> AbstractContextManager[None]:
        """Return a context without effect."""
        return nullcontext()

    def register_plugin(self, _plugin: object) -> None:
        """Raise the next error of `registrations`."""
        if self.registrations:
            raise self.registrations.pop(0)

    def unregister_worker_plugin(self, _name: str) -> None:
        """Do nothing."""

    def nthreads(self) -> dict[str, int]:
        """Return the threads of the only worker."""
        return {"tcp://10.0.0.2:1": self.threads} if self.threads else {}

    def submit(self, _function: object, _name: str, chunks: Sequence[RunChunk], *_: object, **_options: object) -> Any:
        """Work on a task."""
        self.submitted.append(tuple(chunks))
        try:
            return FinishedTask(self.work(chunks))
        except Exception as error:  # noqa: BLE001  # as that of a worker
            return FinishedTask(error)

    def cancel(self, futures: Sequence[object], *, force: bool) -> None:
        """Count the tasks in progress."""
        assert force
        self.canceled += len(futures)


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    """Return a campaign of 64 runs in a chunk."""
    world = ns.load(Path(__file__).parents[2] / "examples" / "quadrotor.sdf")
    return make_campaign(world, 64, 1.0, reduce=dict)


@pytest.fixture
def compute(campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Return a function that computes chunks with a client, and returns the numbers of finished runs."""

    def wait(futures: Sequence[object], **_options: object) -> SimpleNamespace:
        return SimpleNamespace(done=set(futures[:1]))

    monkeypatch.setattr(distributed, "wait", wait)
    monkeypatch.setattr(tasks, "POLL_PERIOD", 0.0)

    def compute_chunks(client: PlayedClient, chunks: Sequence[RunChunk], *, is_local: bool = False) -> list[int]:
        @contextmanager
        def open_client(_client: object, _workers: object) -> Iterator[PlayedClient]:
            yield client

        monkeypatch.setattr(tasks, "open_client", open_client)
        numbers: list[int] = []
        address = None if is_local else ADDRESS
        tasks.compute_missing_chunks(campaign, chunks, tmp_path, client=address, workers=None, progress=numbers.append)
        return numbers

    return compute_chunks


def make_chunks(count: int, size: int = 1) -> list[RunChunk]:
    """Return chunks of consecutive runs."""
    return [RunChunk(0, tuple(range(n * size, (n + 1) * size)), f"chunk-{n}") for n in range(count)]


def reduce_chunks(duration: float, failure: str = "") -> Work:
    """Return the work of a worker that takes a duration (s) for each chunk, whose runs can fail."""
    return lambda chunks: [
        ChunkRows(chunk, [Row(run, {"value": run}, failure=failure) for run in chunk.runs], duration)
        for chunk in chunks
    ]


@pytest.mark.parametrize(
    ("duration", "threads", "count"),
    [(0.1, 2, 20), (0.1, 5, 20), (0.3, 2, 6), (1.0, 2, 2), (1.5, 2, 1), (60.0, 2, 1), (0.0, 1, tasks.MAX_TASK_CHUNKS)],
)
def test_a_task_has_the_chunks_that_fit_its_duration(
    duration: float,
    threads: int,
    count: int,
    compute: Callable[..., list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first tasks have one chunk, because its duration is not known. At the end, each thread gets a share."""
    monkeypatch.setattr(tasks, "write_table", lambda *_: None)
    client, chunks = PlayedClient(reduce_chunks(duration), threads), make_chunks(1000)
    numbers = compute(client, chunks)
    sizes = [len(task) for task in client.submitted]
    in_progress = tasks.TASKS_PER_THREAD * threads
    assert sizes[:in_progress] == [1] * in_progress
    assert sizes[in_progress] == count == max(sizes)
    assert duration * count <= tasks.TASK_DURATION or count == 1
    waiting = len(chunks)
    for size in sizes:
        assert size <= math.ceil(waiting / in_progress)
        waiting -= size
    assert sizes[-1] == 1
    assert [chunk for task in client.submitted for chunk in task] == chunks
    assert numbers == sorted(numbers)
    assert numbers[-1] == len(chunks)


def test_the_slowest_chunk_of_a_task_determines_the_size_of_the_next_ones(
    compute: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second chunk takes ten times as long. The first tasks have one chunk, so some of them do not show this."""
    monkeypatch.setattr(tasks, "write_table", lambda *_: None)

    def work(chunks: Sequence[RunChunk]) -> list[ChunkRows]:
        return [result for chunk in chunks for result in reduce_chunks((0.1, 1.0)[chunk.runs[0] % 2])([chunk])]

    client = PlayedClient(work)
    compute(client, make_chunks(1000))
    sizes = [len(task) for task in client.submitted]
    assert sizes[:8] == [1, 1, 1, 1, 20, 2, 20, 2]
    assert set(sizes[8:-4]) == {2}


def test_the_chunks_of_a_worker_that_died_are_computed_alone(
    compute: Callable[..., list[int]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Run 5 kills its worker. Its chunk is computed run by run, and only this run fails."""

    def work(chunks: Sequence[RunChunk]) -> list[ChunkRows]:
        if any(5 in chunk.runs for chunk in chunks):
            raise KilledWorker("task", SimpleNamespace(address=ADDRESS), 0)  # type: ignore[arg-type]
        return reduce_chunks(0.1)(chunks)

    client = PlayedClient(work)
    assert compute(client, make_chunks(6, size=4))[-1] == 24
    runs = [tuple(run for chunk in task for run in chunk.runs) for task in client.submitted]
    alone = Counter(runs[-6:])
    assert alone == Counter({(4, 5, 6, 7): 1, (4,): 1, (5,): tasks.MAX_DEATHS, (6,): 1, (7,): 1})
    rows = pyarrow.parquet.read_table(tmp_path / "chunk-1.parquet").to_pylist()
    assert [row["value"] for row in rows] == [4, None, 6, 7]
    assert (
        rows[1]["failure"]
        == f"its process died {tasks.MAX_DEATHS} times; this is a lack of memory or a crash of a library"
    )
    assert len(list(tmp_path.iterdir())) == 6
    assert not caplog.messages


@pytest.mark.parametrize("failures", [["ValueError: x"], ["ValueError: x", "ValueError: y"], [""]])
def test_failure_of_all_runs_is_a_warning(
    failures: list[str], compute: Callable[..., list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    def work(chunks: Sequence[RunChunk]) -> list[ChunkRows]:
        rows = [Row(run, {}, failure=failures[run % len(failures)]) for run in chunks[0].runs]
        return [ChunkRows(chunks[0], rows, 60.0)]

    with caplog.at_level(logging.WARNING, "navsense"):
        compute(PlayedClient(work), make_chunks(3, size=2))
    text = "all 2 runs so far have failed: ValueError: x; to stop, press Ctrl-C"
    assert caplog.messages == ([text] if failures == ["ValueError: x"] else [])


def test_an_error_of_a_worker_ends_the_campaign(compute: Callable[..., list[int]]) -> None:
    def work(chunks: Sequence[RunChunk]) -> list[ChunkRows]:
        raise ModuleNotFoundError("No module named 'navsense.campaigns'")

    client = PlayedClient(work)
    with pytest.raises(ns.NavsenseError) as error:
        compute(client, make_chunks(9))
    text = "ModuleNotFoundError: No module named 'navsense.campaigns'; start workers with the versions of this process"
    assert str(error.value).startswith(f"a worker of the scheduler: {ADDRESS}; {text}")
    assert client.canceled == len(client.submitted) == 4


def test_local_processes_that_do_not_return_end_the_campaign(
    compute: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "LOCAL_TIMEOUT", 0.0)
    client = PlayedClient(reduce_chunks(0.1), threads=0)
    with pytest.raises(ns.NavsenseError, match="processes of the campaign: none; all have ended"):
        compute(client, make_chunks(9), is_local=True)
    assert client.submitted == []


def test_a_worker_that_dies_at_the_registration_does_not_end_the_campaign(compute: Callable[..., list[int]]) -> None:
    losses: list[Exception] = [OSError("lost")] * (tasks.MAX_REGISTRATIONS - 1)
    assert compute(PlayedClient(reduce_chunks(0.1), registrations=list(losses)), make_chunks(1)) == [0, 1]
    with pytest.raises(ns.NavsenseError, match="the connection to the scheduler is lost; the complete chunks are kept"):
        compute(PlayedClient(reduce_chunks(0.1), registrations=[*losses, OSError("lost")]), make_chunks(1))
    closed = PlayedClient(reduce_chunks(0.1), registrations=list(losses), status="closed")
    with pytest.raises(ns.NavsenseError, match="the connection to the scheduler is lost"):
        compute(closed, make_chunks(1))
    assert len(closed.registrations) == len(losses) - 1
    foreign = PlayedClient(reduce_chunks(0.1), registrations=[ModuleNotFoundError("No module named 'navsense'")])
    with pytest.raises(ns.NavsenseError, match=r"No module named 'navsense'; install navsense\[campaign\] where each"):
        compute(foreign, make_chunks(1))


def test_lost_local_processes_are_an_error_with_a_remedy() -> None:
    with (
        pytest.raises(ns.NavsenseError, match=r"do not answer \(OSError: x\);"),
        report_lost_scheduler(ADDRESS, is_local=True),
    ):
        raise OSError("x")

"""Tasks of a campaign on Dask: local processes, or the workers of a scheduler.

A task computes as many chunks as take about `TASK_DURATION`. Its tables come back to this process, which writes the
chunks, so workers need no common file system. A worker that dies is replaced, and its tasks are repeated.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navsense.campaigns.plan import Campaign, RunChunk
from navsense.campaigns.rows import RECORDINGS, Row, make_table, write_table
from navsense.campaigns.worker import CampaignPlugin, compute_chunks, pack_campaign
from navsense.core.errors import SimulationError

if TYPE_CHECKING:
    from distributed import Client, Future

LOG = logging.getLogger(__name__)

TASK_DURATION = 2.0
"""Duration (s) of a task that is aimed at. A campaign that is killed loses at most the tasks in progress."""

MAX_TASK_CHUNKS = 256
"""Largest number of chunks in a task."""

TASKS_PER_WORKER = 2
"""Tasks in progress for each thread of the workers: the second one waits, so that no worker is idle."""

POLL_PERIOD = 0.2
"""Longest time (s) between two calls of the progress function."""

MAX_DEATHS = 2
"""A task fails after more deaths of its workers."""

Progress = Callable[[int, int], None]
"""Called with the number of finished runs and of all runs."""


@contextmanager
def hide_main_module() -> Iterator[None]:
    """Hide the file of the main module, so that new processes do not run the script of the user a second time.

    Functions of the main module are sent by value. So a script needs no `if __name__ == "__main__":`.
    """
    main = vars(sys.modules["__main__"])
    hidden = {name: main[name] for name in ("__file__", "__spec__") if main.get(name) is not None}
    try:
        main.pop("__file__", None)
        main["__spec__"] = None
        yield
    finally:
        main.update(hidden)


@contextmanager
def open_client(client: str | Client | None, workers: int | None) -> Iterator[Client]:
    """Yield a client: of a new local cluster, of the scheduler at an address, or the client given.

    Raises `SimulationError` if the scheduler cannot be reached.
    """
    import dask
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        if isinstance(client, Client):
            yield client
            return
        if isinstance(client, str):
            if workers is not None:
                allowed = "is allowed for local processes only"
                raise SimulationError("workers", workers, allowed=allowed, remedy="start the workers of the scheduler")
            try:
                connected = stack.enter_context(Client(client, timeout=10.0, set_as_default=False))
            except (OSError, TimeoutError, ValueError) as error:
                allowed = "must be the address of a Dask scheduler, such as tcp://127.0.0.1:8786"
                raise SimulationError("client", client, allowed=allowed, remedy="start it: dask scheduler") from error
            yield connected  # outside of `try`: errors of the campaign are not those of the connection
            return
        settings = {
            "distributed.scheduler.allowed-failures": MAX_DEATHS,
            # After this time without the worker, the cluster would stop the process that starts it again.
            "distributed.deploy.lost-worker-timeout": "1 day",
        }
        stack.enter_context(dask.config.set(settings))
        stack.enter_context(hide_main_module())
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=workers or count_cores(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            )
        )
        yield stack.enter_context(Client(cluster, set_as_default=False))


def count_cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


def compute_missing_chunks(
    campaign: Campaign,
    chunks: Sequence[RunChunk],
    folder: Path,
    *,
    client: str | Client | None,
    workers: int | None,
    progress: Progress,
    folders: Sequence[str] = (),
) -> None:
    """Compute chunks and write each to its file in `folder`."""
    if not chunks:
        return
    plugin = CampaignPlugin(pack_campaign(campaign), campaign.base_digest, folders)
    with open_client(client, workers) as open_, open_.as_current():
        open_.register_plugin(plugin)
        try:
            _Tasks(campaign, chunks, folder, open_, plugin.name).run(progress)
        finally:
            open_.unregister_worker_plugin(plugin.name)


@dataclass(frozen=True)
class _Task:
    """Chunks in progress, and the time (s) of their submission. `is_alone` is true if no other task was in progress."""

    chunks: tuple[RunChunk, ...]
    start: float
    is_alone: bool


class _Tasks:
    """The tasks of a campaign in progress."""

    def __init__(
        self,
        campaign: Campaign,
        chunks: Sequence[RunChunk],
        folder: Path,
        client: Client,
        plugin_name: str,
    ) -> None:
        """Begin without tasks."""
        self._campaign, self._folder, self._client = campaign, folder, client
        self._chunks = {chunk.name: chunk for chunk in chunks}
        self._waiting, self._suspects = deque(chunks), deque[RunChunk]()
        self._total, self._finished = sum(len(chunk.runs) for chunk in chunks), 0
        self._plugin_name = plugin_name
        self._tasks: dict[Future[Any], _Task] = {}
        self._chunk_duration = math.inf

    def run(self, progress: Progress) -> None:
        """Compute all chunks. After an error or an interrupt, cancel the tasks in progress."""
        from distributed import wait

        progress(0, self._total)
        try:
            self._submit()
            while self._tasks:
                try:
                    done = wait(list(self._tasks), timeout=POLL_PERIOD, return_when="FIRST_COMPLETED").done
                except TimeoutError:
                    done = set()
                for future in done:
                    self._finish(future)
                self._submit()
                progress(self._finished, self._total)
        finally:
            for future in self._tasks:
                future.cancel()

    def _submit(self) -> None:
        """Submit tasks until each thread has one and a second one waits; then the suspects, one after another.

        Dask blames the death of a worker on all of its tasks. A suspect that is alone when its worker dies is to blame.
        """
        threads = sum(self._client.nthreads().values()) or 1
        while self._waiting and len(self._tasks) < TASKS_PER_WORKER * threads:
            share = math.ceil(len(self._waiting) / (TASKS_PER_WORKER * threads))
            count = max(1, min(int(TASK_DURATION / max(self._chunk_duration, 1e-6)), share, MAX_TASK_CHUNKS))
            self._submit_task([self._waiting.popleft() for _ in range(min(count, len(self._waiting)))])
        if self._suspects and not self._tasks:
            self._submit_task([self._suspects.popleft()], is_alone=True)

    def _submit_task(self, chunks: Sequence[RunChunk], *, is_alone: bool = False) -> None:
        """Submit a task. `is_alone` is true if no other task is in progress."""
        future = self._client.submit(
            compute_chunks,
            self._plugin_name,
            chunks,
            str(self._folder.parent / RECORDINGS),
            key=f"{chunks[0].name}-{len(chunks)}{'-alone' * is_alone}",
            pure=False,
        )
        self._tasks[future] = _Task(tuple(chunks), time.monotonic(), is_alone)

    def _finish(self, future: Future[Any]) -> None:
        """Write the chunks of a task that has ended."""
        from distributed import KilledWorker

        task = self._tasks.pop(future)
        try:
            tables = future.result()
        except KilledWorker:
            if not task.is_alone:
                self._suspects.extend(task.chunks)
                return
            tables = [self._give_up(chunk) for chunk in task.chunks]
        else:
            duration = (time.monotonic() - task.start) / len(task.chunks)
            self._chunk_duration = min(self._chunk_duration, duration)
        for name, table in tables:
            write_table(table, self._folder / f"{name}.parquet")
            self._finished += len(self._chunks[name].runs)

    def _give_up(self, chunk: RunChunk) -> tuple[str, Any]:
        """Return rows with an error for a chunk whose workers died."""
        error = (
            f"the process of the worker died {MAX_DEATHS + 1} times; this is a lack of memory or a crash of a library"
        )
        rows = [Row(run, {}, failure=error) for run in chunk.runs]
        table = make_table(rows, self._campaign.points[chunk.point], has_recording=bool(self._campaign.recordings))
        return chunk.name, table

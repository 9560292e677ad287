"""Tasks of a campaign on Dask: on local processes, or on the workers of a scheduler.

A task computes as many chunks as take about `TASK_DURATION`. The worker returns the rows, and this process writes the
chunks. So workers need no common file system.

If a worker dies, all of its tasks end with an error, because Dask does not know which task is the cause. The chunks of
these tasks are suspects. The campaign computes one suspect at a time. If a worker dies during a suspect, the campaign
computes the runs of the suspect one by one. So only the run that is the cause fails.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from navsense.campaigns.campaign import Campaign, RunChunk
from navsense.campaigns.connection import get_address, open_client, report_lost_scheduler
from navsense.campaigns.rows import RECORDINGS, Row, fail_other_kinds, make_table, write_table
from navsense.campaigns.worker import CampaignPlugin, ChunkRows, compute_chunks, pack_campaign
from navsense.core.errors import NavsenseError, SimulationError

if TYPE_CHECKING:
    from distributed import Client, Future

LOG = logging.getLogger(__name__)

TASK_DURATION = 2.0
"""Target duration (s) of a task. A campaign that is killed loses at most the tasks in progress."""

MAX_TASK_CHUNKS = 256
"""Largest number of chunks in a task."""

TASKS_PER_THREAD = 2
"""Number of submitted tasks for each thread of the workers. The second task waits, so that the thread is never idle."""

POLL_PERIOD = 0.2
"""Longest time (s) between two calls of the progress function."""

MAX_DEATHS = 2
"""A run fails after the death of this number of workers that compute only this run."""

WAIT_BEFORE_WARNING = 5.0
"""Time (s) without workers after which a warning says that the campaign waits."""

LOCAL_TIMEOUT = 60.0
"""Time (s) without workers after which a campaign on local processes fails, because no other process starts."""

MAX_REGISTRATIONS = 5
"""Largest number of attempts to send the campaign to the workers. An attempt fails if a worker dies during it."""

Progress = Callable[[int, int], None]
"""Called with the number of finished runs and of all runs."""


def compute_missing_chunks(
    campaign: Campaign,
    chunks: Sequence[RunChunk],
    folder: Path,
    *,
    client: str | Client | None,
    workers: int | None,
    progress: Callable[[int], None],
    folders: Sequence[str] = (),
) -> None:
    """Compute chunks, and write each chunk to a file in `folder`.

    client, workers: as for `navsense.campaign`.
    progress: called with the number of finished runs.
    folders: where workers also search modules that `reduce` imports.
    """
    if not chunks:
        return
    with open_client(client, workers) as connected, connected.as_current():
        plugin = CampaignPlugin(pack_campaign(campaign), campaign.base_digest, folders, name=f"campaign-{uuid4().hex}")
        try:
            register_plugin(connected, plugin, is_local=client is None)
            _Tasks(campaign, chunks, folder, connected, plugin.name, is_local=client is None).run(progress)
        finally:
            clean_up(connected, lambda: connected.unregister_worker_plugin(plugin.name))


def clean_up(client: Client, function: Callable[[], object]) -> None:
    """Call a function unless the connection to the scheduler is lost, and ignore its errors.

    So an error of the function does not replace the error of the campaign.
    """
    if client.status == "running":
        with suppress(Exception):  # for example if a worker has died
            function()


def register_plugin(client: Client, plugin: CampaignPlugin, *, is_local: bool) -> None:
    """Send a campaign to the workers.

    Raises `SimulationError` if a worker cannot read the campaign, or if the connection to the scheduler is lost.
    """
    address = get_address(client)
    with report_lost_scheduler(address, is_local=is_local):
        for remaining in reversed(range(MAX_REGISTRATIONS)):
            try:
                client.register_plugin(plugin)
            except (CancelledError, OSError, RuntimeError, TimeoutError):
                if client.status != "running" or not remaining:
                    raise
                time.sleep(POLL_PERIOD)  # a worker has died, and Dask starts another worker
            except Exception as error:  # Dask raises the error of a worker
                remedy = "install navsense[campaign] where each worker runs, in the version of this process"
                raise SimulationError("workers of the scheduler", address, allowed=str(error), remedy=remedy) from error
            else:
                return


@dataclass(frozen=True)
class _Task:
    """Chunks that a worker computes.

    deaths: for a suspect, the number of workers that died while they computed only this suspect. None for other tasks.
    """

    chunks: tuple[RunChunk, ...]
    deaths: int | None


class _Tasks:
    """The tasks of a campaign in progress."""

    def __init__(
        self,
        campaign: Campaign,
        chunks: Sequence[RunChunk],
        folder: Path,
        client: Client,
        plugin_name: str,
        *,
        is_local: bool,
    ) -> None:
        """Initialize without tasks. `is_local` is True for local processes."""
        self._campaign, self._folder, self._client = campaign, folder, client
        self._chunks = {chunk.name: chunk for chunk in chunks}
        self._waiting, self._suspects = deque(chunks), deque[tuple[RunChunk, int]]()
        self._rows: dict[str, dict[int, Row]] = {}
        self._finished, self._failures = 0, set[str]()
        self._plugin_name = plugin_name
        self._tasks: dict[Future[Any], _Task] = {}
        self._chunk_duration = math.inf
        self._address, self._is_local = get_address(client), is_local
        self._idle_start: float | None = None
        self._has_warned, self._has_checked = False, False

    def _report_lost_scheduler(self) -> AbstractContextManager[None]:
        """Return a context that raises `SimulationError` if the connection to the scheduler is lost."""
        return report_lost_scheduler(self._address, is_local=self._is_local)

    def run(self, progress: Callable[[int], None]) -> None:
        """Compute all chunks. After an error or an interrupt, cancel the submitted tasks."""
        from distributed import wait

        progress(0)
        try:
            self._submit()
            while self._tasks:
                with self._report_lost_scheduler():
                    try:
                        done = wait(list(self._tasks), timeout=POLL_PERIOD, return_when="FIRST_COMPLETED").done
                    except TimeoutError:
                        done = set()
                for future in done:
                    self._finish(future)
                self._submit()
                progress(self._finished)
        finally:
            clean_up(self._client, lambda: self._client.cancel(list(self._tasks), force=True))

    def _count_threads(self) -> int:
        """Return the number of threads of all workers, at least 1. Without workers for some time, warn once.

        Raises `SimulationError` if all local processes have ended.
        """
        with self._report_lost_scheduler():
            threads = int(sum(self._client.nthreads().values()))
        if threads:
            self._idle_start = None
            return threads
        now = time.monotonic()
        self._idle_start = now if self._idle_start is None else self._idle_start
        if self._is_local and now - self._idle_start >= LOCAL_TIMEOUT:
            raise SimulationError(
                "processes of the campaign",
                "none",
                allowed="all have ended, and no new one starts; the complete chunks are kept",
                remedy="check the memory of this machine, or give fewer workers; then repeat the campaign: it goes on",
            )
        if not self._is_local and now - self._idle_start >= WAIT_BEFORE_WARNING and not self._has_warned:
            self._has_warned = True
            text = "the scheduler at %s has no workers; the campaign waits; start some: dask worker %s"
            LOG.warning(text, self._address, self._address)
        return 1

    def _submit(self) -> None:
        """Submit `TASKS_PER_THREAD` tasks for each thread. Submit a suspect if no other task is in progress."""
        threads = self._count_threads()
        while self._waiting and len(self._tasks) < TASKS_PER_THREAD * threads:
            share = math.ceil(len(self._waiting) / (TASKS_PER_THREAD * threads))
            count = max(1, min(int(TASK_DURATION / max(self._chunk_duration, 1e-6)), share, MAX_TASK_CHUNKS))
            self._submit_task([self._waiting.popleft() for _ in range(min(count, len(self._waiting)))])
        if self._suspects and not self._tasks:
            chunk, deaths = self._suspects.popleft()
            self._submit_task([chunk], deaths)

    def _submit_task(self, chunks: Sequence[RunChunk], deaths: int | None = None) -> None:
        """Submit a task. `deaths` is the number of deaths of a suspect."""
        first = chunks[0]
        with self._report_lost_scheduler():
            future = self._client.submit(
                compute_chunks,
                self._plugin_name,
                chunks,
                str(self._folder.parent.absolute() / RECORDINGS),
                # The key is unique, so that two processes can compute the same campaign on the same scheduler.
                key=f"{self._plugin_name}-{first.name}-{first.runs[0]}-{len(first.runs)}-{len(chunks)}-{deaths}",
                pure=False,
            )
        self._tasks[future] = _Task(tuple(chunks), deaths)

    def _finish(self, future: Future[Any]) -> None:
        """Write the chunks of a task that has ended."""
        from distributed import KilledWorker

        task = self._tasks[future]  # after an error below, `run` cancels the task
        try:
            results: Sequence[ChunkRows] = future.result()
        except KilledWorker as error:
            del self._tasks[future]
            self._handle_death(task, error.allowed_failures + 1)
            return
        except NavsenseError:
            raise
        except Exception as error:  # of the worker or the connection: an error of a run is in its row
            text = f"{type(error).__name__}: {error}"
            remedy = "start workers with the versions of this process; the complete chunks are kept"
            raise SimulationError("a worker of the scheduler", self._address, allowed=text, remedy=remedy) from error
        del self._tasks[future]
        future.release()  # the scheduler forgets the task now, even if a traceback still refers to the future
        if task.deaths is None:  # a suspect can be a part of a chunk
            self._chunk_duration = max(result.duration for result in results)
        for result in results:
            self._store(result.chunk, result.rows)
        self._warn_of_failures()

    def _handle_death(self, task: _Task, count: int) -> None:
        """Repeat the runs of a task during which workers died. After `MAX_DEATHS`, the run of the task fails.

        count: the number of these workers.
        """
        if task.deaths is None:
            self._suspects.extend((chunk, 0) for chunk in task.chunks)
            return
        (chunk,), deaths = task.chunks, task.deaths + count
        if len(chunk.runs) > 1:
            self._suspects.extendleft((replace(chunk, runs=(run,)), 0) for run in reversed(chunk.runs))
        elif deaths < MAX_DEATHS:
            self._suspects.appendleft((chunk, deaths))
        else:
            failure = f"its process died {deaths} times; this is a lack of memory or a crash of a library"
            self._store(chunk, [Row(chunk.runs[0], {}, failure=failure)])

    def _store(self, part: RunChunk, rows: Sequence[Row]) -> None:
        """Keep the rows of a chunk, or of a part of a chunk. Write the chunk when it is complete."""
        chunk = self._chunks[part.name]
        stored = self._rows.setdefault(chunk.name, {})
        stored.update((row.run, row) for row in rows)
        if len(stored) < len(chunk.runs):
            return
        rows = fail_other_kinds([stored[run] for run in chunk.runs])
        point, has_recording = self._campaign.points[chunk.point], bool(self._campaign.recordings)
        write_table(make_table(rows, point, has_recording=has_recording), self._folder / f"{chunk.name}.parquet")
        del self._rows[chunk.name]
        self._finished += len(chunk.runs)
        self._failures.update(row.failure for row in rows)

    def _warn_of_failures(self) -> None:
        """Warn once if all runs of the first chunks failed for the same reason, so that the user can stop."""
        if self._has_checked or not self._finished:
            return
        self._has_checked = True
        if len(self._failures) == 1 and (failure := next(iter(self._failures))):
            LOG.warning("all %d runs so far have failed: %s; to stop, press Ctrl-C", self._finished, failure)

"""Tasks of a campaign on Dask: local processes, or the workers of a scheduler.

A task computes as many chunks as take about `TASK_DURATION`. Its tables come back to this process, which writes the
chunks, so workers need no common file system. A worker that dies is replaced, and its tasks are repeated.

Certificates come from the configuration of Dask (`distributed.comm.tls`), which the options of the command line set.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import ssl
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from navsense.campaigns.plan import Campaign, RunChunk
from navsense.campaigns.rows import RECORDINGS, Row, make_table, write_table
from navsense.campaigns.worker import CampaignPlugin, compute_chunks, pack_campaign
from navsense.core.errors import NavsenseError, SimulationError

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.security import Security

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
"""A task of local processes fails after more deaths of its workers. A scheduler has a setting of its own."""

CONNECTION_TIMEOUT = 10.0
"""Longest time (s) until a scheduler answers."""

CLOSE_TIMEOUT = 2.0
"""Longest time (s) until a client is closed whose scheduler does not answer."""

WAIT_BEFORE_WARNING = 5.0
"""Time (s) without workers after which a warning says that the campaign waits."""

TLS_KEYS = ("ca-file", "client.cert", "client.key")
"""Keys below `distributed.comm.tls` in the configuration of Dask: files of a client."""

TLS_OPTIONS = ("--tls-ca-file", "--tls-cert", "--tls-key")
"""Options of `navsense campaign` for `TLS_KEYS`."""

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
            check_client(client)
            yield client
            return
        if isinstance(client, str):
            if workers is not None:
                allowed = "is allowed for local processes only"
                raise SimulationError("workers", workers, allowed=allowed, remedy="start the workers of the scheduler")
            stack.enter_context(silence_client())
            connected = connect(client)
            stack.callback(close_client, connected)
            yield connected
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


def check_client(client: Client) -> None:
    """Raise `SimulationError` for a client that is closed, or whose methods are coroutines."""
    if client.asynchronous:
        raise SimulationError("client", client, allowed="must not be asynchronous", remedy="make it by Client(address)")
    if client.status != "running":
        raise SimulationError("client", client, allowed=f"is {client.status}", remedy="make a new one")


def connect(address: str) -> Client:
    """Return a client of the scheduler at an address, with the certificates in the configuration of Dask.

    Raises `SimulationError` if a file cannot be read, or if the scheduler does not accept the connection.
    """
    from distributed import Client
    from distributed.comm.addressing import get_address_host_port
    from distributed.comm.core import CommClosedError
    from distributed.security import Security

    # A client that fails is closed at the end of Python, which takes 20 s. So most errors are found before.
    security = Security()
    context = make_tls_context(security)
    try:
        endpoint = get_address_host_port(address)
        if address.startswith("tls://"):
            check_handshake(address, endpoint, context)
        elif security.require_encryption:
            allowed = "the configuration of Dask requires TLS (require-encryption)"
            raise SimulationError("scheduler", address, allowed=allowed, remedy="write tls://")
        return Client(address, timeout=CONNECTION_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        if isinstance(error, CommClosedError):  # another error if nothing listens
            allowed = "the scheduler closes the connection"
            remedy = f"for a scheduler with TLS, write tls:// and the options {', '.join(TLS_OPTIONS)}"
        else:
            allowed = "must be the address of a Dask scheduler, such as tcp://127.0.0.1:8786"
            remedy = "start it: dask scheduler"
        raise SimulationError("scheduler", address, allowed=allowed, remedy=remedy) from error


def make_tls_context(security: Security) -> ssl.SSLContext | None:
    """Return the TLS settings of clients; None if the configuration of Dask has no CA file or no certificate.

    Raises `SimulationError` if a file cannot be read or is no certificate or key.
    """
    config, files = security.get_tls_config_for_role("client"), []
    for option, source in zip(TLS_OPTIONS, (config["ca_file"], config["cert"], config["key"]), strict=True):
        if not source or "\n" in source:  # the text of a certificate
            continue
        if not (Path(source).is_file() and os.access(source, os.R_OK)):
            remedy = f"name it with {option}, or with distributed.comm.tls in the configuration of Dask"
            raise SimulationError(option, source, allowed="must be a file that can be read", remedy=remedy)
        files.append(source)
    try:
        context: ssl.SSLContext | None = security.get_connection_args("client").get("ssl_context")
    except (ssl.SSLError, ValueError) as error:
        allowed = "must be a certificate and its key in PEM format"
        remedy = f"make new ones; OpenSSL says: {error}"
        raise SimulationError("TLS", ", ".join(files), allowed=allowed, remedy=remedy) from error
    return context


def check_handshake(address: str, endpoint: tuple[str, int], context: ssl.SSLContext | None) -> None:
    """Raise `SimulationError` if the scheduler and this process do not accept each other's certificates.

    The client of Dask would try for ten seconds and then not give the reason.
    """
    if context is None:
        remedy = f"give the options {', '.join(TLS_OPTIONS)}, or set distributed.comm.tls in the configuration of Dask"
        raise SimulationError(
            "scheduler", address, allowed="TLS needs a CA file, a certificate and a key", remedy=remedy
        )
    try:
        with socket.create_connection(endpoint, CONNECTION_TIMEOUT) as plain, context.wrap_socket(plain) as stream:
            stream.recv(1)  # the scheduler begins, or rejects the certificate of this process
    except ssl.SSLCertVerificationError as error:
        allowed = f"its certificate is not signed by that of {TLS_OPTIONS[0]} ({error.verify_message})"
        remedy = "give the CA file that signed the certificate of the scheduler"
        raise SimulationError("scheduler", address, allowed=allowed, remedy=remedy) from error
    except (ssl.SSLError, ConnectionResetError, TimeoutError) as error:
        allowed = f"the TLS handshake fails ({error})"
        remedy = "use a certificate that the CA file of the scheduler signed; start the scheduler with TLS"
        raise SimulationError("scheduler", address, allowed=allowed, remedy=remedy) from error
    except OSError:  # the client of Dask tries again, and reports it
        pass


def get_address(client: Client) -> str:
    """Return the address of the scheduler of a client."""
    return str(client.scheduler.address) if client.scheduler else ""


def close_client(client: Client) -> None:
    """Close a client. The scheduler need not exist any more."""
    with suppress(OSError, TimeoutError):
        client.close(timeout=CLOSE_TIMEOUT)


@contextmanager
def silence_client() -> Iterator[None]:
    """Hide the messages of Dask about lost connections, with tracebacks. The errors of this module replace them."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def report_lost_scheduler(address: str) -> Iterator[None]:
    """Raise a `SimulationError` that names the address if the block loses the connection to the scheduler."""
    try:
        yield
    except (CancelledError, OSError, RuntimeError, TimeoutError) as error:
        allowed = "the connection to the scheduler is lost; the complete chunks are kept"
        remedy = "start the scheduler and its workers again, then repeat the campaign: it goes on"
        raise SimulationError("scheduler", address, allowed=allowed, remedy=remedy) from error


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
    plugin = CampaignPlugin(pack_campaign(campaign), campaign.base_digest, folders, name=f"campaign-{uuid4().hex}")
    with open_client(client, workers) as open_, open_.as_current():
        try:
            register_plugin(open_, plugin)
            _Tasks(campaign, chunks, folder, open_, plugin.name, is_local=client is None).run(progress)
        finally:
            clean_up(open_, lambda: open_.unregister_worker_plugin(plugin.name))


def clean_up(client: Client, function: Callable[[], object]) -> None:
    """Call a function, unless the connection to the scheduler is lost. Its errors do not hide that of the campaign."""
    if client.status == "running":
        with suppress(Exception):  # a worker without the campaign, or another one that dies
            function()


def register_plugin(client: Client, plugin: CampaignPlugin) -> None:
    """Give the workers a campaign. Raises `SimulationError` if one of them has no navsense, or another version."""
    address = get_address(client)
    with report_lost_scheduler(address):
        try:
            client.register_plugin(plugin)
        except (CancelledError, OSError, RuntimeError, TimeoutError):
            raise
        except Exception as error:  # the text of that of a worker, without its type
            remedy = "install navsense[campaign] where each worker runs, in the version of this process"
            raise SimulationError("workers of the scheduler", address, allowed=str(error), remedy=remedy) from error


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
        *,
        is_local: bool,
    ) -> None:
        """Begin without tasks. `is_local` is true for processes that this one starts."""
        self._campaign, self._folder, self._client = campaign, folder, client
        self._chunks = {chunk.name: chunk for chunk in chunks}
        self._waiting, self._suspects = deque(chunks), deque[RunChunk]()
        self._total, self._finished = sum(len(chunk.runs) for chunk in chunks), 0
        self._plugin_name = plugin_name
        self._tasks: dict[Future[Any], _Task] = {}
        self._chunk_duration = math.inf
        self._address, self._is_local = get_address(client), is_local
        self._idle_start: float | None = None
        self._has_warned = False

    def run(self, progress: Progress) -> None:
        """Compute all chunks. After an error or an interrupt, cancel the tasks in progress."""
        from distributed import wait

        progress(0, self._total)
        try:
            self._submit()
            while self._tasks:
                with report_lost_scheduler(self._address):
                    try:
                        done = wait(list(self._tasks), timeout=POLL_PERIOD, return_when="FIRST_COMPLETED").done
                    except TimeoutError:
                        done = set()
                for future in done:
                    self._finish(future)
                self._submit()
                progress(self._finished, self._total)
        finally:
            clean_up(self._client, lambda: self._client.cancel(list(self._tasks), force=True))

    def _count_threads(self) -> int:
        """Return the number of threads of all workers, or 1. Warn once if there have been no workers for some time."""
        with report_lost_scheduler(self._address):
            threads = int(sum(self._client.nthreads().values()))
        if threads:
            self._idle_start = None
            return threads
        now = time.monotonic()
        self._idle_start = now if self._idle_start is None else self._idle_start
        if now - self._idle_start >= WAIT_BEFORE_WARNING and not self._has_warned:
            self._has_warned = True
            remedy = "" if self._is_local else f"; start some: dask worker {self._address}"
            LOG.warning("the scheduler at %s has no workers; the campaign waits%s", self._address, remedy)
        return 1

    def _submit(self) -> None:
        """Submit tasks until each thread has one and a second one waits; then the suspects, one after another.

        Dask blames the death of a worker on all of its tasks. A suspect that is alone when its worker dies is to blame.
        """
        threads = self._count_threads()
        while self._waiting and len(self._tasks) < TASKS_PER_WORKER * threads:
            share = math.ceil(len(self._waiting) / (TASKS_PER_WORKER * threads))
            count = max(1, min(int(TASK_DURATION / max(self._chunk_duration, 1e-6)), share, MAX_TASK_CHUNKS))
            self._submit_task([self._waiting.popleft() for _ in range(min(count, len(self._waiting)))])
        if self._suspects and not self._tasks:
            self._submit_task([self._suspects.popleft()], is_alone=True)

    def _submit_task(self, chunks: Sequence[RunChunk], *, is_alone: bool = False) -> None:
        """Submit a task. `is_alone` is true if no other task is in progress."""
        with report_lost_scheduler(self._address):
            future = self._client.submit(
                compute_chunks,
                self._plugin_name,
                chunks,
                str(self._folder.parent.absolute() / RECORDINGS),
                # Unique, so that two processes can compute one campaign with one scheduler.
                key=f"{self._plugin_name}-{chunks[0].name}-{len(chunks)}{'-alone' * is_alone}",
                pure=False,
            )
        self._tasks[future] = _Task(tuple(chunks), time.monotonic(), is_alone)

    def _finish(self, future: Future[Any]) -> None:
        """Write the chunks of a task that has ended."""
        from distributed import KilledWorker

        task = self._tasks[future]  # it stays there if it raises an error, so that `run` cancels it
        try:
            tables = future.result()
        except KilledWorker as error:
            if not task.is_alone:
                del self._tasks[future]
                self._suspects.extend(task.chunks)
                return
            tables = [self._give_up(chunk, error.allowed_failures + 1) for chunk in task.chunks]
        except NavsenseError:
            raise
        except Exception as error:  # failed runs are rows: this is an error of the worker or of the connection
            text = f"{type(error).__name__}: {error}"
            remedy = "start workers with the versions of this process; the complete chunks are kept"
            raise SimulationError("a worker of the scheduler", self._address, allowed=text, remedy=remedy) from error
        else:
            duration = (time.monotonic() - task.start) / len(task.chunks)
            self._chunk_duration = min(self._chunk_duration, duration)
        del self._tasks[future]
        for name, table in tables:
            write_table(table, self._folder / f"{name}.parquet")
            self._finished += len(self._chunks[name].runs)

    def _give_up(self, chunk: RunChunk, deaths: int) -> tuple[str, Any]:
        """Return rows with an error for a chunk whose workers died."""
        error = f"the process of the worker died {deaths} times; this is a lack of memory or a crash of a library"
        rows = [Row(run, {}, failure=error) for run in chunk.runs]
        table = make_table(rows, self._campaign.points[chunk.point], has_recording=bool(self._campaign.recordings))
        return chunk.name, table

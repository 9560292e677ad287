"""Connections of a campaign to Dask: to local processes, to a scheduler at an address, or by the client of the caller.

The configuration of Dask (`distributed.comm.tls`) names the certificates. Options of the command line set it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from navsense.core.errors import SimulationError

if TYPE_CHECKING:
    from distributed import Client, LocalCluster
    from distributed.security import Security

CONNECTION_TIMEOUT = 10.0
"""Longest time (s) until a scheduler answers."""

CLOSE_TIMEOUT = 2.0
"""Longest time (s) to close a client whose scheduler does not answer, and to end local processes."""

MAX_STARTS = 3
"""Largest number of attempts to start the local processes."""

TLS_KEYS = ("ca-file", "client.cert", "client.key")
"""Keys of the files of a client in `distributed.comm.tls` of the configuration of Dask."""

TLS_OPTIONS = ("--tls-ca-file", "--tls-cert", "--tls-key")
"""Options of `navsense campaign` for `TLS_KEYS`."""


@contextmanager
def hide_main_module() -> Iterator[None]:
    """Hide the file of the main module, so that new processes do not run the script of the user a second time.

    Functions of the main module are sent by value. So a script needs no `if __name__ == "__main__":`. The context must
    last until the processes have ended, because Dask replaces each process that dies.
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
def block_interrupts() -> Iterator[None]:
    """Block Ctrl-C for the processes that start in this context, and for the processes that replace them later.

    A terminal sends Ctrl-C to all processes. Local processes ignore the signal, because the main process stops them.
    Threads and processes inherit the blocked signal. The main process gets the signal after this context.
    """
    resource_tracker.ensure_running()  # before the block, because its start unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def open_client(client: str | Client | None, workers: int | None) -> Iterator[Client]:
    """Yield a client of local processes, of the scheduler at an address, or the client of the caller.

    client: None for local processes, an address, or a client.
    workers: the number of local processes. None: one for each core.

    Raises `SimulationError` if there is no connection to the scheduler.
    """
    import dask
    from distributed import Client

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
            "distributed.scheduler.allowed-failures": 0,  # the module `tasks` repeats the chunks
            # After this time, Dask would stop the process that starts a lost worker again.
            "distributed.deploy.lost-worker-timeout": "1 day",
            "distributed.worker.profile.enabled": False,  # the profiler would interrupt the worker every 10 ms
            "distributed.worker.lifetime.duration": None,  # the value of the user is for a cluster
        }
        stack.enter_context(dask.config.set(settings))
        stack.enter_context(silence_client())
        stack.enter_context(hide_main_module())
        folder = stack.enter_context(TemporaryDirectory(prefix="navsense-campaign-", ignore_cleanup_errors=True))
        with block_interrupts():
            cluster = stack.enter_context(start_cluster(workers or len(os.sched_getaffinity(0)), folder))
        stack.callback(kill_workers, cluster)
        yield stack.enter_context(Client(cluster, set_as_default=False))


def kill_workers(cluster: LocalCluster) -> None:
    """Kill local processes. They have no work, and a normal end would take half a second."""

    async def kill() -> None:
        nannies = list(cluster.workers.values())
        pids = [nanny.pid for nanny in nannies]
        closing = asyncio.gather(*(nanny.close() for nanny in nannies))
        await asyncio.sleep(0)  # now the nannies close, so they do not replace a process
        for pid in filter(None, pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await closing
        # Wait until the scheduler has removed the workers. Otherwise it logs an error. Dask has no event for this.
        while cluster.scheduler is not None and cluster.scheduler.workers:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    with suppress(OSError, TimeoutError):
        cluster.sync(kill, callback_timeout=CLOSE_TIMEOUT)


def start_cluster(workers: int, folder: str) -> LocalCluster:
    """Start local processes. If a process dies during the start, the start fails, and this function tries again.

    folder: for the temporary files of the processes.

    Raises `SimulationError` if the processes do not start.
    """
    from distributed import LocalCluster

    starts = 0
    while True:
        starts += 1
        try:
            return LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # a free port: the default 8787 can be in use
                memory_limit=0,
                local_directory=folder,
                silence_logs=logging.CRITICAL,
            )
        except Exception as error:
            if starts == MAX_STARTS:
                cause: BaseException = error
                while cause.__cause__ is not None:
                    cause = cause.__cause__
                allowed = f"do not start ({type(cause).__name__}: {' '.join(str(cause).split())})"
                remedy = "check the memory and the number of processes of this machine, or give fewer workers"
                raise SimulationError("processes of the campaign", workers, allowed=allowed, remedy=remedy) from error


def check_client(client: Client) -> None:
    """Raise `SimulationError` for a closed client, and for an asynchronous client."""
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
    from distributed.versions import VersionMismatchWarning

    # If the client of Dask fails, the exit of Python takes 20 s. So these checks come before the client.
    security = Security()
    context = make_tls_context(security)
    try:
        endpoint = get_address_host_port(address)
        if address.startswith("tls://"):
            check_handshake(address, endpoint, context)
        elif security.require_encryption:
            allowed = "the configuration of Dask requires TLS (require-encryption)"
            raise SimulationError("scheduler", address, allowed=allowed, remedy="write tls://")
        with warnings.catch_warnings():  # `worker.check_versions` compares the versions
            warnings.simplefilter("ignore", VersionMismatchWarning)
            return Client(address, timeout=CONNECTION_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        if isinstance(error, CommClosedError):  # without a scheduler at the address, Dask raises another error
            allowed = "the scheduler closes the connection"
            remedy = f"for a scheduler with TLS, write tls:// and the options {', '.join(TLS_OPTIONS)}"
        else:
            allowed = "must be the address of a Dask scheduler, such as tcp://127.0.0.1:8786"
            remedy = "start it: dask scheduler"
        raise SimulationError("scheduler", address, allowed=allowed, remedy=remedy) from error


def make_tls_context(security: Security) -> ssl.SSLContext | None:
    """Return the TLS context of a client. None: the configuration of Dask has no CA file, or no certificate.

    Raises `SimulationError` if a file cannot be read, or if it has no certificate or key.
    """
    config, files = security.get_tls_config_for_role("client"), []
    for option, source in zip(TLS_OPTIONS, (config["ca_file"], config["cert"], config["key"]), strict=True):
        if not source or "\n" in source:  # not a file, but the text of a certificate
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
    """Raise `SimulationError` if the scheduler or this process rejects the certificate of the other.

    The client of Dask would try for ten seconds, and its error would not have the reason.
    """
    if context is None:
        remedy = f"give the options {', '.join(TLS_OPTIONS)}, or set distributed.comm.tls in the configuration of Dask"
        raise SimulationError(
            "scheduler", address, allowed="TLS needs a CA file, a certificate and a key", remedy=remedy
        )
    try:
        with socket.create_connection(endpoint, CONNECTION_TIMEOUT) as plain, context.wrap_socket(plain) as stream:
            stream.recv(1)  # waits for the greeting of the scheduler, or for its error
    except ssl.SSLCertVerificationError as error:
        allowed = f"its certificate is not signed by that of {TLS_OPTIONS[0]} ({error.verify_message})"
        remedy = "give the CA file that signed the certificate of the scheduler"
        raise SimulationError("scheduler", address, allowed=allowed, remedy=remedy) from error
    except (ssl.SSLError, ConnectionResetError, TimeoutError) as error:
        allowed = f"the TLS handshake fails ({error})"
        remedy = "use a certificate that the CA file of the scheduler signed; start the scheduler with TLS"
        raise SimulationError("scheduler", address, allowed=allowed, remedy=remedy) from error
    except OSError:  # the client of Dask tries again, and raises the error
        pass


def get_address(client: Client) -> str:
    """Return the address of the scheduler of a client."""
    return str(client.scheduler.address) if client.scheduler else ""


def close_client(client: Client) -> None:
    """Close a client, also after the end of the scheduler."""
    with suppress(OSError, TimeoutError):
        client.close(timeout=CLOSE_TIMEOUT)


@contextmanager
def silence_client() -> Iterator[None]:
    """Hide the messages of Dask about lost connections and processes. navsense raises errors instead."""
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
def report_lost_scheduler(address: str, *, is_local: bool = False) -> Iterator[None]:
    """Raise `SimulationError` with the address if the connection to the scheduler is lost in this context.

    is_local: True for local processes, whose scheduler is in this process.
    """
    try:
        yield
    except (CancelledError, OSError, RuntimeError, TimeoutError) as error:
        if is_local:
            allowed = f"do not answer ({type(error).__name__}: {error}); the complete chunks are kept"
            remedy = "check the memory of this machine, or give fewer workers; then repeat the campaign: it goes on"
            raise SimulationError("processes of the campaign", address, allowed=allowed, remedy=remedy) from error
        allowed = "the connection to the scheduler is lost; the complete chunks are kept"
        remedy = "start the scheduler and its workers again, then repeat the campaign: it goes on"
        raise SimulationError("scheduler", address, allowed=allowed, remedy=remedy) from error

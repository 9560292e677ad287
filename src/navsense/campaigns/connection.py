"""Connections of a campaign to Dask: processes on this machine, the scheduler at an address, or a client of the caller.

Certificates come from the configuration of Dask (`distributed.comm.tls`), which the options of the command line set.
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
"""Longest time (s) until a client is closed whose scheduler does not answer, and until local processes end."""

MAX_STARTS = 3
"""Number of times that the local processes are started."""

TLS_KEYS = ("ca-file", "client.cert", "client.key")
"""Keys below `distributed.comm.tls` in the configuration of Dask: files of a client."""

TLS_OPTIONS = ("--tls-ca-file", "--tls-cert", "--tls-key")
"""Options of `navsense campaign` for `TLS_KEYS`."""


@contextmanager
def hide_main_module() -> Iterator[None]:
    """Hide the file of the main module, so that new processes do not run the script of the user a second time.

    Functions of the main module are sent by value. So a script needs no `if __name__ == "__main__":`. The block lasts
    as long as the processes, because one that dies is replaced.
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
    """Block Ctrl-C for the processes that the block starts, and for those that replace them later.

    A terminal sends Ctrl-C to all processes. This one stops the others, so they need no signal. Threads and processes
    inherit the blocked signal. Here it arrives after the block.
    """
    resource_tracker.ensure_running()  # its start unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def open_client(client: str | Client | None, workers: int | None) -> Iterator[Client]:
    """Yield a client: of a new local cluster, of the scheduler at an address, or the client given.

    Raises `SimulationError` if the scheduler cannot be reached.
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
            "distributed.scheduler.allowed-failures": 0,  # `tasks` repeats the chunks of a worker that died
            # After this time without the worker, the cluster would stop the process that starts it again.
            "distributed.deploy.lost-worker-timeout": "1 day",
            "distributed.worker.profile.enabled": False,  # it would interrupt the worker every 10 ms
            "distributed.worker.lifetime.duration": None,  # that of the user is for workers of a cluster
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
    """Kill the processes of a cluster. They have no work left, and an orderly end takes half a second."""

    async def kill() -> None:
        nannies = list(cluster.workers.values())
        pids = [nanny.pid for nanny in nannies]
        closing = asyncio.gather(*(nanny.close() for nanny in nannies))
        await asyncio.sleep(0)  # from now on they do not replace a process that ends
        for pid in filter(None, pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await closing
        # The scheduler would log that it cannot write to them. Dask has no event for this.
        while cluster.scheduler is not None and cluster.scheduler.workers:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    with suppress(OSError, TimeoutError):
        cluster.sync(kill, callback_timeout=CLOSE_TIMEOUT)


def start_cluster(workers: int, folder: str) -> LocalCluster:
    """Start processes on this machine. One that dies meanwhile ends the cluster, so this starts another one.

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
                dashboard_address="127.0.0.1:0",  # None is port 8787, with a warning if it is in use
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
    from distributed.versions import VersionMismatchWarning

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
        with warnings.catch_warnings():  # `worker.check_versions` is stricter
            warnings.simplefilter("ignore", VersionMismatchWarning)
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
    """Hide the messages of Dask about lost connections and processes. The errors of this module replace them."""
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
    """Raise a `SimulationError` that names the address if the block loses the connection to the scheduler.

    is_local: True for processes that this one starts; the scheduler is then part of this process.
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

"""The work of a worker: it simulates the runs of a chunk, and reduces each run to a row.

Each process unpacks the campaign once. The first simulation of a process compiles the kernels of the first point. Other
points can need more kernels. A process that compiles holds a lock. Other processes wait for the lock, and then read the
cache. The threads of a process share the lock.
"""

from __future__ import annotations

import fcntl
import gc
import io
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from pickle import PicklingError
from typing import Any

import cloudpickle
from distributed import WorkerPlugin, get_worker

from navsense.campaigns.campaign import Campaign, RunChunk
from navsense.campaigns.digest import is_installed, list_local_modules, list_versions
from navsense.campaigns.rows import CHUNKS, Row, check_values, describe_error, find_place
from navsense.core.errors import SimulationError
from navsense.core.kernels import COMPILATION_CALLBACKS
from navsense.runner.run import Run

LOG = logging.getLogger(__name__)

WARM_DURATION = 2.0
"""Longest duration (s) of the first simulation of a process, which compiles the kernels."""

LOCK_TIMEOUT = 300.0
"""Longest time (s) that a process waits for the lock. Then it compiles without the lock."""

LOCK_NAME = "navsense-campaign.lock"
"""Name of the file of the lock in the folder of `find_cache_folder`."""


def pack_campaign(campaign: Campaign) -> bytes:
    """Return a campaign as bytes.

    The bytes contain the functions of scripts and of modules that are not installed. So workers on other machines do
    not need the modules. If a module cannot be stored, for example because it has a lock, the workers import it.
    """
    modules = list_local_modules(campaign.reduce)
    try:
        with ExitStack() as stack:
            for module in modules:
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
            return bytes(cloudpickle.dumps(campaign))
    except (TypeError, PicklingError):
        if not modules:
            raise
        return bytes(cloudpickle.dumps(campaign))


class CampaignPlugin(WorkerPlugin):
    """The campaign as bytes. Dask sends the plug-in to each worker, and also to workers that start later.

    digest: of the campaign, as in `campaign.json`.
    folders: where workers also search modules that `reduce` imports.
    """

    def __init__(self, data: bytes, digest: str, folders: Sequence[str], *, name: str) -> None:
        """Initialize with the versions of this process."""
        self.data, self.digest, self.folders, self.name = data, digest, tuple(folders), name
        self.versions = dict(list_versions())
        self._campaign: Campaign | None = None
        self._guard = threading.Lock()
        self._modules: frozenset[str] | None = None  # names of the modules before the campaign

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the lock, which cannot be sent."""
        return {name: value for name, value in vars(self).items() if name != "_guard"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the attributes, and make a new lock."""
        vars(self).update(state, _guard=threading.Lock())

    def load_campaign(self, address: str) -> Campaign:
        """Return the campaign. The first call in a process unpacks the campaign and compiles the kernels.

        address: of this worker, for errors.

        Raises `SimulationError` if a version differs from that of the client, or if a module is missing.
        """
        with self._guard:  # for the threads of this process
            if self._campaign is None:
                self._campaign = self._unpack_campaign(address)
            return self._campaign

    def teardown(self, worker: object) -> None:
        """Remove the folders from the search path of the worker, and the modules that the campaign imported from them.

        The next campaign imports these modules again, because their files can have changed.
        """
        if self._modules is None:
            return
        for folder in self.folders:
            places = [place for place, path in enumerate(sys.path) if path == folder]
            if places:
                del sys.path[places[-1]]  # the last one: the worker, or another campaign, can have the same folder
        for name in set(sys.modules) - self._modules:
            module = sys.modules[name]
            file = vars(module).get("__file__") or ""
            if not is_installed(module) and any(Path(folder) in Path(file).parents for folder in self.folders):
                del sys.modules[name]
        self._modules = None

    def _unpack_campaign(self, address: str) -> Campaign:
        """Return the campaign after a short simulation, which compiles the kernels."""
        check_versions(self.versions, list_versions(), address)  # before unpacking, which can fail with other versions
        self._modules = frozenset(sys.modules)
        sys.path += self.folders
        try:
            campaign: Campaign = cloudpickle.load(io.BytesIO(self.data))
        except ImportError as error:
            remedy = "install the module where the worker runs"
            raise SimulationError(f"worker {address}", allowed=str(error), remedy=remedy) from None
        with lock_compilation(), pause_collection(), suppress(Exception):  # the runs raise the same errors
            short = replace(campaign, duration=min(campaign.duration, WARM_DURATION))
            short.simulate(campaign.points[0], (campaign.runs[0],))
        return campaign


@contextmanager
def pause_collection() -> Iterator[None]:
    """Switch the garbage collector off in this context. It takes a fifth of the time to load modules and kernels."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def check_versions(expected: Mapping[str, str], found: Mapping[str, str], address: str) -> None:
    """Raise `SimulationError` if a version of a worker differs from that of the client.

    The digest in the name of a chunk contains the versions of the client. So the rows must be those of these versions.

    expected: versions of the client, as `list_versions` returns them.
    found: versions of the worker.
    """
    names = [name for name in expected if found.get(name) != expected[name]]
    if names:
        there = ", ".join(f"{name} {found.get(name, 'missing')}" for name in names)
        here = ", ".join(f"{name} {expected[name]}" for name in names)
        allowed = f"must be those of the client: {here}"
        remedy = "install the same versions where each worker runs, and start the workers again"
        raise SimulationError(f"versions of the worker {address}: {there}", allowed=allowed, remedy=remedy)


def get_token_name(digest: str) -> str:
    """Return the name of a file that the client writes to the folder of the chunks, for `check_folder`."""
    return f"{digest[:16]}.token"


def check_folder(folder: Path, digest: str, address: str) -> None:
    """Raise `SimulationError` if the client and this worker do not have the same folder for recordings.

    A worker on another machine can have another folder with the same path. So the folder must have the file of the
    client with the name of `get_token_name`.

    digest: of the campaign.
    address: of this worker.
    """
    token = folder.parent / CHUNKS / get_token_name(digest)
    if not (token.is_file() and folder.is_dir()):
        allowed = f"the worker {address} does not see the file {token} of the client"
        remedy = "write to a folder that all machines share under the same path"
        raise SimulationError("folder of recordings", str(folder), allowed=allowed, remedy=remedy)


class CompilationLock:
    """A lock for the processes of a user on this machine. All threads of a process can hold the lock together."""

    def __init__(self) -> None:
        """Initialize without a thread that holds the lock."""
        self._guard = threading.Lock()
        self._holders = 0
        self._descriptor: int | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock in this context. After `LOCK_TIMEOUT`, and without a cache folder, hold no lock."""
        with self._guard:  # other threads of this process wait here for the lock
            if self._holders == 0:
                self._lock()
            self._holders += 1
        try:
            yield
        finally:
            with self._guard:
                self._holders -= 1
                if self._holders == 0 and self._descriptor is not None:
                    os.close(self._descriptor)
                    self._descriptor = None

    def _lock(self) -> None:
        """Wait for the lock on the file."""
        folder = find_cache_folder()
        if folder is None:
            return
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:
            return
        deadline = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(0.05)
                    continue
                LOG.warning("another process compiles kernels for %g s; this one compiles them too", LOCK_TIMEOUT)
            except OSError:  # a file system without locks
                pass
            else:
                self._descriptor = descriptor
                return
            os.close(descriptor)
            return


def find_cache_folder() -> Path | None:
    """Return the folder of the kernel cache, otherwise the cache folder of the user; None without both."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return Path(folder)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "navsense"
    except RuntimeError:  # the user has no home
        return None


COMPILATION_LOCK = CompilationLock()
"""The lock that the threads of this process share."""


@contextmanager
def lock_compilation() -> Iterator[None]:
    """Hold `COMPILATION_LOCK` from the first compilation of a kernel in this thread to the end of this context."""
    thread, has_lock = threading.get_ident(), False
    with ExitStack() as stack:

        def lock_once() -> None:
            nonlocal has_lock
            if threading.get_ident() == thread and not has_lock:
                has_lock = True
                LOG.warning("compiling kernels, which takes up to a minute; later runs use the cache")
                stack.enter_context(COMPILATION_LOCK.hold())

        COMPILATION_CALLBACKS.append(lock_once)
        stack.callback(COMPILATION_CALLBACKS.remove, lock_once)
        yield


@dataclass(frozen=True)
class ChunkRows:
    """The rows of a chunk, and the time (s) of the worker for this chunk."""

    chunk: RunChunk
    rows: Sequence[Row]
    duration: float


def compute_chunks(plugin_name: str, chunks: Sequence[RunChunk], folder: str) -> list[ChunkRows]:
    """Return the rows of chunks.

    plugin_name: of the plug-in with the campaign.
    folder: for recordings.
    """
    worker = get_worker()
    plugin = worker.plugins[plugin_name]
    if not isinstance(plugin, CampaignPlugin):
        raise TypeError(plugin_name)
    campaign = plugin.load_campaign(worker.address)
    if campaign.recordings:
        check_folder(Path(folder), plugin.digest, worker.address)
    results = []
    for chunk in chunks:
        start = time.monotonic()
        with lock_compilation():
            rows = compute_rows(campaign, chunk, Path(folder))
        results.append(ChunkRows(chunk, rows, time.monotonic() - start))
    return results


def compute_rows(campaign: Campaign, chunk: RunChunk, folder: Path) -> Sequence[Row]:
    """Return the rows of a chunk. The row of a failed run has the text of its error."""
    if campaign.reduce is None:
        return [_record_run(campaign, chunk, number, folder) for number in chunk.runs]
    return _reduce_runs(campaign, chunk, chunk.runs, folder)


def _get_recording_name(campaign: Campaign, chunk: RunChunk, number: int) -> str:
    """Return the name of the recording of a run."""
    return f"{chunk.name.partition('-')[0]}-run-{number:06d}{campaign.recordings}"


def _record_run(campaign: Campaign, chunk: RunChunk, number: int, folder: Path) -> Row:
    """Write the recording of a run in bounded memory, and return the row of the run."""
    name = _get_recording_name(campaign, chunk, number)
    try:
        campaign.record(campaign.points[chunk.point], number, folder / name)
    except Exception as error:  # noqa: BLE001  # of code of the user in the world or in a motion
        return Row(number, {}, failure=describe_error(error))
    return Row(number, {}, name)


def _reduce_runs(campaign: Campaign, chunk: RunChunk, numbers: Sequence[int], folder: Path) -> list[Row]:
    """Simulate runs together, or one by one after an error. Return their rows."""
    try:
        runs = campaign.simulate(campaign.points[chunk.point], numbers)
    except Exception as error:  # noqa: BLE001
        if len(numbers) == 1:
            return [Row(numbers[0], {}, failure=describe_error(error))]
        return [row for number in numbers for row in _reduce_runs(campaign, chunk, [number], folder)]
    return [_reduce_run(campaign, runs.select_run(number), chunk, number, folder) for number in numbers]


def _reduce_run(campaign: Campaign, run: Run, chunk: RunChunk, number: int, folder: Path) -> Row:
    """Return the row of a run, and write the recording of the run."""
    place = ""
    try:
        recording = _get_recording_name(campaign, chunk, number) if campaign.recordings else ""
        if recording:
            run.save(folder / recording)
        try:
            result = {} if campaign.reduce is None else campaign.reduce(run)
        except BaseException as error:
            place = find_place(error)
            raise
        values = check_values(result, campaign.paths)
    except BaseException as error:  # noqa: BLE001  # a SystemExit of `reduce` would end the worker
        return Row(number, {}, failure=place + describe_error(error))
    return Row(number, values, recording)

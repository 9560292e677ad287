"""What a worker does: it simulates the runs of a chunk and reduces each one to a row.

Each process unpacks the campaign once. Its first simulation compiles the kernels. It holds a lock of the machine
meanwhile, so that one process compiles them and the others read them from the cache.
"""

from __future__ import annotations

import fcntl
import getpass
import io
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from pickle import PicklingError
from typing import TYPE_CHECKING

import cloudpickle
from distributed import WorkerPlugin, get_worker

from navsense.campaigns.campaign import Campaign, RunChunk
from navsense.campaigns.digest import list_local_modules, list_versions
from navsense.campaigns.rows import DESCRIPTION, Row, check_values, describe_error, make_table
from navsense.core.errors import NavsenseError, SimulationError
from navsense.core.inputs import FileKind, read_bytes
from navsense.core.kernels import COMPILATION_CALLBACKS
from navsense.runner.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

LOG = logging.getLogger(__name__)

WARM_DURATION = 2.0
"""Longest duration (s) of the first simulation of a process, which compiles the kernels."""

_FILE_KIND = FileKind("campaign", SimulationError, "must be the description of a campaign")


def pack_campaign(campaign: Campaign) -> bytes:
    """Return a campaign as bytes.

    Functions of scripts and of modules that are not installed are stored by value, so workers on other machines do not
    need the modules. A module that cannot be stored, for example because it has an open file, is imported by workers.
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
    """Gives each worker, also one that starts later, the campaign as bytes.

    digest: that of the campaign, which the description in its folder contains.
    folders: where workers also search modules that `reduce` imports.
    """

    def __init__(self, data: bytes, digest: str, folders: Sequence[str], *, name: str) -> None:
        """Store the campaign, and the versions of this process."""
        self.data, self.digest, self.folders, self.name = data, digest, tuple(folders), name
        self.versions = dict(list_versions())
        self._campaign: Campaign | None = None

    def load_campaign(self, address: str) -> Campaign:
        """Return the campaign. The first call of a process compiles the kernels.

        Raises `SimulationError` with the address of this worker if its versions differ from those of the client, or if
        a module is missing.
        """
        if self._campaign is None:
            check_versions(self.versions, list_versions(), address)  # before code that other versions may not read
            sys.path += [folder for folder in self.folders if folder not in sys.path]
            try:
                campaign: Campaign = cloudpickle.load(io.BytesIO(self.data))
            except ImportError as error:
                remedy = "install the module where the worker runs"
                raise SimulationError(f"worker {address}", allowed=str(error), remedy=remedy) from None
            with lock_compilation(), suppress(Exception):  # its errors are those of the runs below
                short = replace(campaign, duration=min(campaign.duration, WARM_DURATION))
                short.simulate(campaign.points[0], (campaign.runs[0],))
            self._campaign = campaign
        return self._campaign


def check_versions(expected: Mapping[str, str], found: Mapping[str, str], address: str) -> None:
    """Raise `SimulationError` if the versions that a worker found differ from those of the client.

    The names of chunks contain the versions of the client, so rows of others would be wrong in them.

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


def check_folder(folder: Path, digest: str, address: str) -> None:
    """Raise `SimulationError` if a folder for recordings is not that of the client: on another machine, for example.

    digest: that of the campaign. The description of the campaign, next to the folder, contains it.
    """
    try:
        description = read_bytes(str(folder.parent / DESCRIPTION), _FILE_KIND)
    except NavsenseError:
        description = b""
    if digest.encode() not in description or not folder.is_dir():
        allowed = f"the worker {address} does not see the files of the client there"
        remedy = "write to a folder that all machines share under the same path"
        raise SimulationError("folder of recordings", str(folder), allowed=allowed, remedy=remedy)


@contextmanager
def lock_compilation() -> Iterator[None]:
    """Hold a lock from the first compilation of a kernel to the end of the block.

    The processes of a user on a machine share the lock, so that one of them compiles and the others read its cache.
    """
    with ExitStack() as stack:

        @cache
        def lock_once() -> None:
            LOG.warning("compiling kernels, which takes up to a minute; later runs use the cache")
            stack.enter_context(lock_machine())

        COMPILATION_CALLBACKS.append(lock_once)
        stack.callback(COMPILATION_CALLBACKS.remove, lock_once)
        yield


@contextmanager
def lock_machine() -> Iterator[None]:
    """Hold a lock that the processes of a user on this machine share. Without locks, do nothing."""
    path = Path(tempfile.gettempdir()) / f"navsense-campaign-{getpass.getuser()}.lock"
    descriptor = None
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def compute_chunks(plugin_name: str, chunks: Sequence[RunChunk], folder: str) -> list[tuple[str, pa.Table]]:
    """Return name and table of each chunk. `folder` is where recordings are written."""
    worker = get_worker()
    plugin = worker.plugins[plugin_name]
    if not isinstance(plugin, CampaignPlugin):
        raise TypeError(plugin_name)
    campaign = plugin.load_campaign(worker.address)
    if campaign.recordings:
        check_folder(Path(folder), plugin.digest, worker.address)
    return [(chunk.name, compute_chunk(campaign, chunk, Path(folder))) for chunk in chunks]


def compute_chunk(campaign: Campaign, chunk: RunChunk, folder: Path) -> pa.Table:
    """Return the rows of a chunk. A run that fails has a row with the text of its error."""
    point = campaign.points[chunk.point]
    if campaign.reduce is None:
        rows = [_record_run(campaign, chunk, number, folder) for number in chunk.runs]
    else:
        rows = _reduce_runs(campaign, chunk, chunk.runs, folder)
    return make_table(rows, point, has_recording=bool(campaign.recordings))


def _get_recording_name(campaign: Campaign, chunk: RunChunk, number: int) -> str:
    """Return the name of the recording of a run."""
    return f"{chunk.name.partition('-')[0]}-run-{number:06d}{campaign.recordings}"


def _record_run(campaign: Campaign, chunk: RunChunk, number: int, folder: Path) -> Row:
    """Write the recording of a run in bounded memory, and return its row."""
    name = _get_recording_name(campaign, chunk, number)
    try:
        campaign.record(campaign.points[chunk.point], number, folder / name)
    except Exception as error:  # noqa: BLE001  # the world and the motions can have code of the user
        return Row(number, {}, failure=describe_error(error))
    return Row(number, {}, name)


def _reduce_runs(campaign: Campaign, chunk: RunChunk, numbers: Sequence[int], folder: Path) -> list[Row]:
    """Return the rows of runs that are simulated together; after an error, one by one."""
    try:
        runs = campaign.simulate(campaign.points[chunk.point], numbers)
    except Exception as error:  # noqa: BLE001
        if len(numbers) == 1:
            return [Row(numbers[0], {}, failure=describe_error(error))]
        return [row for number in numbers for row in _reduce_runs(campaign, chunk, [number], folder)]
    return [_reduce_run(campaign, runs.select_run(number), chunk, number, folder) for number in numbers]


def _reduce_run(campaign: Campaign, run: Run, chunk: RunChunk, number: int, folder: Path) -> Row:
    """Return the row of a run, and write its recording."""
    try:
        recording = _get_recording_name(campaign, chunk, number) if campaign.recordings else ""
        if recording:
            run.save(folder / recording)
        values = {} if campaign.reduce is None else check_values(campaign.reduce(run))
    except Exception as error:  # noqa: BLE001
        return Row(number, {}, failure=describe_error(error))
    return Row(number, values, recording)

"""`navsense.campaign`: compute the missing chunks of a campaign, and return the rows of all runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navsense.campaigns.campaign import Campaign, Reduce, RunChunk, make_campaign
from navsense.campaigns.command import make_command
from navsense.campaigns.digest import list_versions
from navsense.campaigns.result import CampaignResult
from navsense.campaigns.rows import (
    CHUNKS,
    COMMAND,
    DESCRIPTION,
    FAILURE,
    RECORDING,
    RECORDINGS,
    RUN,
    join_tables,
    read_table,
    write_table,
)
from navsense.campaigns.sweep import Point
from navsense.core import atomic
from navsense.core.errors import RecordingError, SimulationError, Where
from navsense.parameters import ParameterValue
from navsense.runner.motion_sources import JointSource, MotionSource
from navsense.simulation.run_arrays import MAX_MEMORY_FRACTION, get_free_memory
from navsense.simulation.session import TRUTH_RATE
from navsense.world import World

if TYPE_CHECKING:
    import pyarrow as pa
    from distributed import Client

    from navsense.campaigns.tasks import Progress

RESULTS = "results.parquet"
"""File in the folder of the results with the rows of all runs."""

WORKER_MEMORY = 300 * 2**20
"""Memory (bytes) of a worker without the arrays of its runs."""

MAX_WORKERS = 1024
"""Largest number of processes on this machine."""


def campaign(
    world: World,
    runs: int | Sequence[int],
    duration: float | None = None,
    *,
    reduce: Reduce | None = None,
    out: str | os.PathLike[str] = "campaign",
    sweep: Mapping[str, Sequence[ParameterValue]] | Sequence[Point] | None = None,
    seed: int = 0,
    motion: MotionSource | Mapping[str, MotionSource] | None = None,
    joints: JointSource | None = None,
    fidelity: str | None = None,
    epoch: int = 0,
    truth_rate: float = TRUTH_RATE,
    recordings: str = "",
    client: str | Client | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> CampaignResult:
    """Simulate many runs, reduce each to a row, and return the rows.

    runs: a number, or a sequence of run numbers.
    duration: s; None: until the first motion ends.
    reduce: a function of a `Run` that returns the row: numbers, texts, booleans or arrays by name of the column.
    out: the folder of the results. A campaign that was interrupted goes on where it stopped. Another campaign in the
        folder replaces its `results.parquet` and keeps the chunks.
    sweep: values by path of a parameter (`with_parameters`) for a grid, or a list of points, as `latin_hypercube`
        returns it. Each point has the same runs. The path `motion` or `MODEL.motion` selects a motion log, `faults` a
        file of faults.
    recordings: suffix of a recording of each run in the folder `recordings` of `out`, such as ".mcap"; "" for none.
        With `reduce` or without.
    client: None for processes on this machine, the address of a Dask scheduler, or a `distributed.Client`.
    workers: the number of processes on this machine. Default: one for each core, fewer for runs that need more memory.
    progress: called with the number of finished runs and of all runs.

    Other arguments as for `simulate`.

    The rows do not depend on the number of workers. A run that fails has a row with its error. After an interrupt
    (Ctrl-C) the complete chunks are kept, and `KeyboardInterrupt` is raised.

    Raises `SimulationError` if dask, distributed or pyarrow is not installed (extra `campaign`), and the errors of
    `simulate` and `with_parameters`.

    >>> def reduce(run):
    ...     return {"largest_rate": abs(run["imu"]["angular_velocity"]).max()}
    >>> result = ns.campaign(world, runs=4, duration=1.0, reduce=reduce, out="rates", workers=1)
    >>> result.table.num_rows, len(result.failed_runs)
    (4, 0)
    """
    check_libraries()
    return compute_campaign(
        make_campaign(
            world,
            runs,
            duration,
            reduce=reduce,
            sweep=sweep,
            seed=seed,
            motion=motion,
            joints=joints,
            fidelity=fidelity,
            epoch=epoch,
            truth_rate=truth_rate,
            recordings=recordings,
            command=make_command(
                world, motion=motion, joints=joints, fidelity=fidelity, epoch=epoch, truth_rate=truth_rate
            ),
        ),
        out,
        client=client,
        workers=workers,
        progress=progress,
    )


def check_libraries() -> None:
    """Raise `SimulationError` if a library of the extra `campaign` is missing."""
    try:
        import distributed  # noqa: F401
        import pyarrow as pa  # noqa: F401
    except ImportError as error:
        remedy = "pip install 'navsense[campaign]'"
        raise SimulationError("a campaign needs dask, distributed and pyarrow", remedy=remedy) from error


def compute_campaign(
    campaign: Campaign,
    out: str | os.PathLike[str],
    *,
    client: str | Client | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    folders: Sequence[str] = (),
) -> CampaignResult:
    r"""Compute the missing chunks of a campaign, and return the rows of all runs.

    folders: where workers also search modules that `reduce` imports.

    Other arguments and errors as for `campaign`.

    >>> _ = Path("rates.py").write_text("def reduce(run):\n    return {'samples': run['imu'].time.size}\n")
    >>> text = 'world = "quadrotor.sdf"\nruns = 4\nduration = 1.0\nreduce = "rates.py:reduce"\n'
    >>> _ = Path("rates.toml").write_text(text)
    >>> experiment = ns.campaigns.read_experiment("rates.toml")
    >>> ns.campaigns.compute_campaign(experiment.campaign, "rates", workers=1).get_array("samples").tolist()
    [1000, 1000, 1000, 1000]
    """
    from navsense.campaigns.tasks import compute_missing_chunks
    from navsense.campaigns.worker import get_token_name

    if workers is not None and not (isinstance(workers, int) and workers >= 1):
        raise SimulationError("workers", workers, allowed="must be an integer >= 1")
    folder = Path(out)
    chunk_folder = folder / CHUNKS
    try:
        for path in (chunk_folder, *([folder / RECORDINGS] if campaign.recordings else [])):
            path.mkdir(parents=True, exist_ok=True)
        if campaign.recordings:
            (chunk_folder / get_token_name(campaign.base_digest)).touch()
        atomic.save_text(folder / DESCRIPTION, json.dumps(describe_campaign(campaign), indent=2) + "\n")
    except (OSError, ValueError) as error:  # ValueError: a name that the file system cannot have
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        remedy = "give another folder with -o or out="
        raise RecordingError("folder of the results", text, where=Where(str(folder)), remedy=remedy) from error
    chunks = list(campaign.list_chunks())
    missing = [chunk for chunk in chunks if not _is_complete(folder, chunk)]
    finished = sum(len(chunk.runs) for chunk in chunks) - sum(len(chunk.runs) for chunk in missing)

    def advance(done: int) -> None:
        if progress is not None:
            progress(finished + done, campaign.row_count)

    advance(0)
    compute_missing_chunks(
        campaign,
        missing,
        chunk_folder,
        client=client,
        workers=count_workers(campaign) if workers is None and client is None else workers,
        progress=advance,
        folders=folders,
    )
    return CampaignResult(campaign, folder, _read_rows(campaign, folder, chunks), finished)


def count_workers(campaign: Campaign) -> int:
    """Return the number of processes: one for each core, but all together use at most half of the free memory."""
    memory = WORKER_MEMORY + campaign.chunk_memory * (campaign.reduce is not None)
    possible = int(min(MAX_MEMORY_FRACTION * get_free_memory() / memory, MAX_WORKERS))
    return max(1, min(len(os.sched_getaffinity(0)), possible))


def _read_chunk(folder: Path, chunk: RunChunk, columns: list[str] | None = None) -> pa.Table | None:
    """Return columns of a chunk, or all; None if its file does not exist or is not that of these runs."""
    table = read_table(folder / CHUNKS / f"{chunk.name}.parquet", columns)
    if table is None or not {RUN, FAILURE} <= set(table.column_names):
        return None
    return table if table[RUN].to_pylist() == list(chunk.runs) else None


def _is_complete(folder: Path, chunk: RunChunk) -> bool:
    """Return True for a chunk without failed runs that has all of its recordings. Others are computed again."""
    table = _read_chunk(folder, chunk, [RUN, FAILURE, RECORDING])
    if table is None or table[FAILURE].null_count < len(table):
        return False
    recordings = table[RECORDING].to_pylist() if RECORDING in table.column_names else []
    return all((folder / RECORDINGS / str(recording)).exists() for recording in recordings)


def _read_rows(campaign: Campaign, folder: Path, chunks: Sequence[RunChunk]) -> pa.Table:
    """Return the rows of all chunks in order, and write them to one file."""
    import pyarrow as pa

    tables: list[pa.Table] = []
    for chunk in chunks:
        table = _read_chunk(folder, chunk)
        if table is None:
            path, remedy = folder / CHUNKS / f"{chunk.name}.parquet", "delete this file, and run the campaign again"
            raise RecordingError("chunk", "cannot be read", where=Where(str(path)), remedy=remedy)
        commands = [campaign.format_command(campaign.points[chunk.point], run) for run in chunk.runs]
        tables.append(table.append_column(COMMAND, pa.array(commands, pa.string())))
    table = join_tables(tables, campaign.paths)
    write_table(table, folder / RESULTS)
    return table


def describe_campaign(campaign: Campaign) -> dict[str, Any]:
    """Return what the file `campaign.json` holds."""
    return {
        "world": campaign.world.name,
        "runs": len(campaign.runs),
        "points": len(campaign.points),
        "parameters": list(campaign.paths),
        "duration": campaign.duration,
        "seed": campaign.seed,
        "epoch": campaign.epoch,
        "truth_rate": campaign.truth_rate,
        "recordings": campaign.recordings,
        "chunk_size": max(campaign.chunk_sizes),
        "digest": campaign.base_digest,
        "versions": dict(list_versions()),
    }

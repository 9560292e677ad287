"""What a campaign computes: a world, the points of a sweep, run numbers, and the function that reduces a run to a row.

A chunk is a range of run numbers at one point of the sweep: those from n k to n k + k - 1, where k is the chunk size.
The chunk size of a point depends on the memory of a run at this point only. The name of a chunk is a digest of what
determines the rows at its point. So chunks do not depend on workers or on other points: a campaign with more points
computes only the chunks of these points. A campaign with more runs computes only the additional chunks, and the last
chunk again if it was not full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from navsense.campaigns.command import FAULTS, MOTION, PythonCommand, ShellCommand, get_model_name, is_motion_path
from navsense.campaigns.digest import Digest, hash_file, hash_world, is_installed_file, list_versions
from navsense.campaigns.sweep import Point, make_points
from navsense.core import inputs
from navsense.core.errors import NavsenseError, SimulationError
from navsense.core.names import resolve_name
from navsense.core.text import format_count
from navsense.fault_file import with_faults
from navsense.motion.base import Motion
from navsense.parameters import ParameterValue, order_parameters, with_parameters
from navsense.recordings import find_output_format
from navsense.runner.motion_sources import JointSource, MotionSource, load_logs, load_motions
from navsense.runner.run import Run, check_run_numbers, record, simulate
from navsense.simulation.fidelity import apply_fidelity
from navsense.simulation.motions import replace_joint_tracks
from navsense.simulation.run_arrays import estimate_memory
from navsense.simulation.session import TRUTH_RATE, prepare
from navsense.world import World

Reduce = Callable[[Run], Mapping[str, Any]]
"""A function that returns the row of a run: numbers, strings, booleans or arrays by name of the column."""

CHUNK_MEMORY = 512 * 2**20
"""Largest memory (bytes) of the runs that are simulated at once."""

MAX_CHUNK_SIZE = 64
"""Largest number of runs in a chunk."""


@dataclass(frozen=True)
class RunChunk:
    """Run numbers at one point of a sweep: `point` is its index, `name` that of the file without suffix."""

    point: int
    runs: tuple[int, ...]
    name: str


@dataclass(frozen=True, eq=False)
class Campaign:
    """What a campaign computes, see `navsense.campaign` for the fields. `read_experiment` returns one.

    points: values of parameters, one mapping for each point of the sweep.
    parameters: values of parameters that `world` has at all points. They are set again after a part of a point.
    fault_worlds: the world with each file of faults, by the path in the points; "" for the world itself.
    motion_logs: the motions that points select, by model and path.
    chunk_sizes: the number of runs in a chunk, by point.
    chunk_memory: largest memory (bytes) of the arrays of a chunk.
    command: how one run is repeated.
    """

    world: World
    runs: Sequence[int]
    duration: float
    reduce: Reduce | None
    points: tuple[Point, ...] = ({},)
    parameters: Point = field(default_factory=dict)
    seed: int = 0
    motions: Mapping[str, Motion] | None = None
    epoch: int = 0
    truth_rate: float = TRUTH_RATE
    fault_worlds: Mapping[str, World] | None = None
    motion_logs: Mapping[tuple[str, str], Motion] | None = None
    recordings: str = ""
    chunk_sizes: tuple[int, ...] = (1,)
    chunk_memory: float = 0.0
    command: ShellCommand | PythonCommand = field(default_factory=PythonCommand)

    def __repr__(self) -> str:
        """Return a short description."""
        points = f"{format_count(len(self.points), 'point')}, " if self.paths else ""
        return f"<Campaign of {self.world.name}: {points}{format_count(len(self.runs), 'run')}, {self.duration:g} s>"

    @property
    def row_count(self) -> int:
        """The number of rows: points times runs."""
        return len(self.points) * len(self.runs)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The paths of the parameters that the sweep varies."""
        return tuple(self.points[0])

    @cached_property
    def base_digest(self) -> str:
        """The digest of everything but the points, their logs and faults, and the run numbers."""
        digest = Digest()
        digest.add(sorted(hash_file(path) for path in self.world.sources if not is_installed_file(path)))
        digest.add(list_versions())
        digest.add(hash_world(self.world))
        digest.add(self.motions)
        digest.add(
            (tuple(self.parameters.items()), self.duration, self.seed, self.epoch, self.truth_rate, self.recordings)
        )
        digest.add(self.reduce)
        return digest.hexdigest()

    @cached_property
    def _log_digests(self) -> Mapping[tuple[str, str], str]:
        """The digest of each world with a file of faults and of each motion log, by path of the parameter and value."""
        digests = {(FAULTS, value): hash_world(world) for value, world in (self.fault_worlds or {}).items()}
        for (model, value), motion in (self.motion_logs or {}).items():
            digest = Digest()
            digest.add(motion)
            digests[f"{model}.{MOTION}", value] = digest.hexdigest()
        return digests

    def list_chunks(self) -> Iterator[RunChunk]:
        """Yield the chunks in the order of points and run numbers."""
        groups = {size: _group_runs(self.runs, size) for size in set(self.chunk_sizes)}
        for index, (point, size) in enumerate(zip(self.points, self.chunk_sizes, strict=True)):
            logs = [self._log_digests.get((path, str(value))) for path, value in point.items()]
            for runs in groups[size]:
                digest = Digest()
                is_range = runs[-1] - runs[0] == len(runs) - 1
                digest.add((self.base_digest, tuple(point.items()), logs, None if is_range else runs))
                yield RunChunk(index, runs, f"{digest.hexdigest()[:16]}-{runs[0]:06d}-{runs[-1]:06d}")

    def make_point_world(self, point: Point) -> World:
        """Return the world of a point. Raises the errors of `with_parameters`."""
        world = self.world if self.fault_worlds is None else self.fault_worlds[str(point.get(FAULTS, ""))]
        values = {path: value for path, value in point.items() if path != FAULTS and not is_motion_path(path)}
        return with_parameters(world, order_parameters(self.parameters, values))

    def make_point_motions(self, point: Point) -> dict[str, Motion]:
        """Return the motions of a point by model name."""
        motions = dict(self.motions or {})
        for path, value in point.items():
            if is_motion_path(path):
                model = get_model_name(path)
                motions[model] = (self.motion_logs or {})[model, str(value)]
        return motions

    def simulate(self, point: Point, runs: Sequence[int]) -> Run:
        """Return several runs at a point, with a run axis."""
        return simulate(
            self.make_point_world(point),
            self.duration,
            seed=self.seed,
            runs=runs,
            motion=self.make_point_motions(point),
            epoch=self.epoch,
            truth_rate=self.truth_rate,
        )

    def record(self, point: Point, run: int, path: Path) -> None:
        """Simulate a run at a point and write it to a recording, in bounded memory. Raises `RecordingError`."""
        record(
            self.make_point_world(point),
            path,
            self.duration,
            seed=self.seed,
            run=run,
            motion=self.make_point_motions(point),
            epoch=self.epoch,
            truth_rate=self.truth_rate,
        )

    def format_command(self, point: Point, run: int) -> str:
        """Return the command that repeats one run."""
        return self.command.format(self.duration, self.seed, point, run)


def make_campaign(
    world: World,
    runs: int | Sequence[int],
    duration: float | None,
    *,
    reduce: Reduce | None,
    sweep: Mapping[str, Sequence[ParameterValue]] | Sequence[Point] | None = None,
    parameters: Point | None = None,
    seed: int = 0,
    motion: MotionSource | Mapping[str, MotionSource] | None = None,
    joints: JointSource | None = None,
    fidelity: str | None = None,
    epoch: int = 0,
    truth_rate: float = TRUTH_RATE,
    recordings: str = "",
    command: ShellCommand | PythonCommand | None = None,
) -> Campaign:
    """Check all arguments and return the campaign. Raises `SimulationError` and the errors of `simulate`.

    parameters: values of parameters at all points of the sweep.
    """
    if reduce is None and not recordings:
        remedy = "give reduce=function, or recordings='.mcap'"
        raise SimulationError(
            "reduce", "missing", allowed="a campaign needs a row or a recording of each run", remedy=remedy
        )
    if reduce is not None and not callable(reduce):
        raise SimulationError("reduce", reduce, allowed="must be a function of a run that returns a mapping")
    check_recordings(recordings, world)
    numbers = check_run_numbers(runs)
    points = make_points(sweep)
    world = with_parameters(apply_fidelity(world, fidelity), parameters or {})
    with inputs.collect_inputs(world.sources) as sources:
        motions, tracks = load_logs(world, motion, joints)
    world = replace(replace_joint_tracks(world, tracks), sources=frozenset(sources))
    points = _complete_model_names(world, points)
    fault_worlds, motion_logs = _load_files(world, points)
    campaign = Campaign(
        world=world,
        runs=numbers,
        duration=0.0,
        reduce=reduce,
        points=points,
        parameters=parameters or {},
        seed=seed,
        motions=motions,
        epoch=epoch,
        truth_rate=truth_rate,
        fault_worlds=fault_worlds or None,
        motion_logs=motion_logs,
        recordings=recordings,
        command=command or PythonCommand(),
    )
    seconds = duration
    sizes, memories = [], []
    for point in campaign.points:  # an error of any point comes before the first run
        session = prepare(
            campaign.make_point_world(point),
            duration,
            seed=seed,
            runs=(0,),
            motions=campaign.make_point_motions(point),
            epoch=epoch,
            truth_rate=truth_rate,
        )
        if seconds is not None and duration is None and session.duration != seconds:
            allowed = "must be the same at each point"
            raise SimulationError("end of the motion (s)", session.duration, allowed=allowed, remedy="give a duration")
        seconds, memory = session.duration, estimate_memory(session)
        sizes.append(_choose_chunk_size(memory))
        memories.append(memory * sizes[-1])
    return replace(
        campaign, duration=float(seconds or 0.0), chunk_sizes=tuple(sizes), chunk_memory=float(max(memories))
    )


def _group_runs(runs: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Return the run numbers of each chunk."""
    return [tuple(group) for _, group in groupby(sorted(runs), lambda run: run // size)]


def check_recordings(recordings: str, world: World) -> None:
    """Raise `SimulationError` unless the suffix of recordings is "", or that of a format for a world."""
    if not isinstance(recordings, str) or (
        recordings and (not recordings.startswith(".") or Path(recordings).name != recordings or "\0" in recordings)
    ):
        raise SimulationError("recordings", recordings, allowed="must be a suffix, such as .mcap")
    if recordings:
        find_output_format(Path(f"run{recordings}"), world)


def _load_files(world: World, points: tuple[Point, ...]) -> tuple[dict[str, World], dict[tuple[str, str], Motion]]:
    """Return the worlds with the faults of points by file, and their motion logs by model and file."""
    fault_worlds: dict[str, World] = {}
    motion_logs: dict[tuple[str, str], Motion] = {}
    for path, value in _list_files(points):
        with _name_parameter(path):
            if path == FAULTS:
                fault_worlds[value] = with_faults(world, value) if value else world
            else:
                model = get_model_name(path)
                motion_logs[model, value] = load_motions(world, {model: value})[model]
    return fault_worlds, motion_logs


def _list_files(points: tuple[Point, ...]) -> list[tuple[str, str]]:
    """Return path of the parameter and file of the faults and motion logs of all points. Raises `SimulationError`."""
    paths = [path for path in points[0] if path == FAULTS or is_motion_path(path)]
    for point in points:
        for path in paths:
            if not isinstance(point[path], str):
                raise SimulationError(f"parameter {path}", point[path], allowed="must be the path of a file")
    return list(dict.fromkeys((path, str(point[path])) for point in points for path in paths))


@contextmanager
def _name_parameter(path: str) -> Iterator[None]:
    """Add the path of a parameter to the error of its file, unless it has a line."""
    try:
        yield
    except NavsenseError as error:
        if error.where is not None and error.where.line:
            raise
        what = f"parameter {path}: {error.where or ''}{': ' if error.where else ''}{error.what}"
        raise SimulationError(what, error.value, allowed=error.allowed, remedy=error.remedy) from error


def _choose_chunk_size(run_memory: float) -> int:
    """Return the number of runs, a power of 2, whose memory (bytes) is at most `CHUNK_MEMORY`; at least 1."""
    size = 1
    while size < MAX_CHUNK_SIZE and 2 * size * run_memory <= CHUNK_MEMORY:
        size *= 2
    return size


def _complete_model_names(world: World, points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return the points with full names of models in the paths of motion logs. Raises `SimulationError`."""
    paths = [path for path in points[0] if is_motion_path(path)]
    movable = [model.name for model in world.models if not model.static]
    names = {}
    for path in paths:
        given = get_model_name(path)
        if not given and len(movable) != 1:
            allowed = f"must name its model: the world has {len(movable)} that can move"
            raise SimulationError("parameter motion", path, allowed=allowed, remedy="write MODEL.motion")
        names[path] = resolve_name(given or movable[0], movable, f"model of parameter {path}", error=SimulationError)
    return tuple(
        {(f"{names[path]}.{MOTION}" if path in names else path): value for path, value in point.items()}
        for point in points
    )

"""Runs of a world: readings in memory (`simulate`), or written to outputs (`record`)."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from navsense import recordings
from navsense.core import inputs
from navsense.core.errors import SimulationError
from navsense.core.interrupts import interruptible
from navsense.core.names import NameDict
from navsense.core.random_streams import check_run
from navsense.core.readings import Current, Reading, RunChange, TimeSlice, Truth, list_panels, summarize_readings
from navsense.core.summaries import Summary, format_summary, format_summary_html, format_value
from navsense.core.text import format_count
from navsense.messages.schemas import DEFAULT_DISTRIBUTION
from navsense.plots import draw_panels
from navsense.recordings.dataset import cut_time_slice
from navsense.runner.current_feed import open_current_feed
from navsense.runner.follow import (
    ModelFollower,
    begin_motions,
    check_motion_urls,
    compute_received_slices,
    open_followers,
)
from navsense.runner.motion_sources import JointSource, MotionSource, load_logs, split_motions
from navsense.runner.outputs import Outputs, OutputTarget, check_outputs, list_paths
from navsense.simulation.buffering import buffer_slices
from navsense.simulation.fidelity import apply_fidelity
from navsense.simulation.motions import replace_joint_tracks
from navsense.simulation.real_time import RealTimeLimiter
from navsense.simulation.run_arrays import Progress, check_memory, compute_run_arrays
from navsense.simulation.run_controls import RunControls, compute_controlled_slices
from navsense.simulation.session import LONGEST_TIME_SLICE, TRUTH_RATE, Session, check_duration, prepare
from navsense.streams import is_live, is_url
from navsense.streams.stream import parse_current_url
from navsense.world import World

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Run(Mapping[str, Reading]):
    """A run in memory: readings by full sensor name, `truth` by link name, and the recorded `current`.

    A name can be any unambiguous ending of a full name: `run["imu"]`. In `truth` a model's name refers to its
    canonical link.

    >>> run = ns.simulate(world, duration=1.0, seed=7)
    >>> run["imu"]["angular_velocity"].shape
    (1000, 3)
    >>> run.truth["quadrotor"].position.shape
    (100, 3)
    >>> run.save("flight.mcap")
    """

    session: Session
    readings: Mapping[str, Reading]
    truth: Mapping[str, Truth]
    current: Current | None = None

    def __post_init__(self) -> None:
        """Accept endings of names."""
        object.__setattr__(self, "readings", NameDict(self.readings, "sensor"))

    __repr__, _repr_html_ = format_summary, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        runs = f"{format_count(len(self.session.runs), 'run')} of " * (len(self.session.runs) > 1)
        title = f"{self.session.world.name}: {runs}{self.session.duration:g} s, {format_count(len(self), 'sensor')}"
        return summarize_readings("Run", title, self.readings)

    def __getitem__(self, name: str) -> Reading:
        """Return one sensor's reading by its name. Raises `UnknownNameError`."""
        return self.readings[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the full names of the sensors."""
        return iter(self.readings)

    def __len__(self) -> int:
        """Return the number of sensors."""
        return len(self.readings)

    def plot(self, *names: str, run: int | None = None) -> Any:
        """Return a figure of matplotlib with the first three arrays of each sensor, or of each sensor in `names`.

        run: the number of the run. Default: the first one. See `Reading.plot` for the lines, and for all arrays.

        >>> run.plot("imu", "compass").savefig("run.png")

        Raises `NavsenseError` if matplotlib is not installed (extra `picture`), `UnknownNameError` for an unknown
        sensor.
        """
        numbers = list(self.session.runs)
        if run is not None and run not in numbers:
            raise SimulationError("run", run, allowed=f"must be one of {format_value(numbers)}")
        index = 0 if run is None else numbers.index(run)
        return draw_panels(list_panels(self.readings, names, index), f"{self.session.world.name}, run {numbers[index]}")

    def select_run(self, number: int) -> Run:
        """Return one of the runs of `simulate(..., runs=...)` without the run axis, as views.

        number: the number of the run. The result equals the single run of this number bitwise.

        >>> runs = ns.simulate(world, duration=1.0, seed=7, runs=3)
        >>> runs.select_run(2)["imu"]["angular_velocity"].shape
        (1000, 3)

        Raises `SimulationError` for a number that is not one of the runs.
        """
        numbers = list(self.session.runs)
        if number not in numbers:
            raise SimulationError("run", number, allowed=f"must be one of {format_value(numbers)}")
        index = numbers.index(number)
        session = self.session.select_run_by_index(index)
        readings = {name: reading.select_run_by_index(index) for name, reading in self.readings.items()}
        current = None if self.current is None else self.current.select_run_by_index(index)
        return Run(session, readings, self.truth, current)

    def slices(self) -> Iterator[TimeSlice]:
        """Yield the time slices of the run in order."""
        for start, end in self.session.split_time_slices():
            yield cut_time_slice(self.readings, self.truth, self.current, start, end)

    def save(self, path: OutputTarget, *, ros: str = DEFAULT_DISTRIBUTION) -> None:
        """Write the run to a recording in the format of its suffix, or publish it to the URL of a stream.

        ros: the ROS 2 distribution of the message definitions.

        Raises `RecordingError`.
        """
        recorded_run = recordings.make_recorded_run(self.session, ros=ros)
        # No output may replace one of the files of the world.
        with inputs.collect_inputs(self.session.world.sources), Outputs((path,), recorded_run) as outputs:
            for time_slice in self.slices():
                outputs.write(time_slice)


def simulate(
    world: World,
    duration: float | None = None,
    *,
    seed: int = 0,
    runs: int | Sequence[int] | None = None,
    motion: MotionSource | Mapping[str, MotionSource] | None = None,
    joints: JointSource | None = None,
    fidelity: str | None = None,
    epoch: int = 0,
    truth_rate: float = TRUTH_RATE,
    progress: Progress | None = None,
) -> Run:
    """Return a complete run in memory.

    duration: s; None: until the first motion ends. With the recording of a run that followed a live system it counts
        from the first state, as in that run.
    runs: None for one run without a run axis; a number or a sequence of run numbers for arrays with a leading run axis.
        Run i equals the single run i to the last bit.
    motion: a motion or the path of a log, or a mapping from model names.
    joints: the path of a log of joint positions, or a mapping from joint names to tracks (`motion.joint_positions`).
    fidelity: "physical" or "classic" for all sensors and clocks; None keeps the fidelity of each. Currents and limits
        that come from plug-ins do not change: use `ns.load(file, fidelity=...)` for these, as `--fidelity` does.
    epoch: integer seconds added to stamps.
    truth_rate: of the ground truth of links, Hz.

    Raises `MotionError`, and `SimulationError`, also for a run that needs more than half of the free memory.

    >>> run = ns.simulate(world, duration=1.0, seed=7)
    >>> run["imu"]["angular_velocity"].shape
    (1000, 3)
    >>> runs = ns.simulate(world, duration=1.0, seed=7, runs=3)
    >>> runs["imu"]["angular_velocity"].shape
    (3, 1000, 3)
    """
    numbers = check_run_numbers(runs)
    world = apply_fidelity(world, fidelity)
    with inputs.collect_inputs(world.sources) as sources:
        motions, tracks = load_logs(world, motion, joints)
        world = replace_joint_tracks(world, tracks)
    session = prepare(
        replace(world, sources=frozenset(sources)),
        duration,
        seed=seed,
        runs=numbers,
        motions=motions,
        epoch=epoch,
        truth_rate=truth_rate,
    )
    check_memory(session)
    run_arrays = compute_run_arrays(session, has_run_axis=runs is not None, progress=progress)
    canonical = {model.name: model.canonical_link for model in world.models if model.links}
    return Run(
        session,
        run_arrays.get_readings(),
        NameDict(run_arrays.get_truth(), "link", canonical),
        run_arrays.get_current(),
    )


ALLOWED_RUNS = "must be a number >= 1, or different run numbers >= 0"

MAX_RUNS = 1_000_000
"""Largest number of runs in one call."""


def check_run_numbers(runs: int | Sequence[int] | None) -> Sequence[int]:
    """Return the run numbers of the argument `runs`. Raise `SimulationError` for none, negative or repeated ones."""
    if runs is None:
        return (0,)
    numbers = range(runs) if isinstance(runs, int | np.integer) and not isinstance(runs, bool) else runs
    if isinstance(numbers, str) or not isinstance(numbers, Sequence | np.ndarray):
        raise SimulationError("runs", runs, allowed=ALLOWED_RUNS)
    try:
        count = len(numbers)
    except OverflowError:  # of a range
        count = sys.maxsize
    if count > MAX_RUNS:
        remedy = f"run parts of them, one after another: runs=range({MAX_RUNS})"
        raise SimulationError("runs", runs, allowed=f"must be at most {MAX_RUNS} at once", remedy=remedy)
    if isinstance(numbers, range) and numbers:
        check_run(min(numbers[0], numbers[-1]))
        check_run(max(numbers[0], numbers[-1]))
        return numbers
    checked = tuple(check_run(number) for number in numbers)
    if not checked or len(set(checked)) < len(checked):
        raise SimulationError("runs", runs, allowed=ALLOWED_RUNS)
    return checked


def compute_paced_slices(
    session: Session, limiter: RealTimeLimiter | None, controls: RunControls
) -> Iterator[TimeSlice]:
    """Yield the time slices of a run: in groups, or one by one in real time if there is a limiter."""
    if limiter is None:
        yield from buffer_slices(compute_controlled_slices(session, controls))
        return
    for time_slice in compute_controlled_slices(session, controls, min(limiter.time_slice_length, LONGEST_TIME_SLICE)):
        with interruptible():
            limiter.wait(time_slice.end)
        yield time_slice


@dataclass(frozen=True)
class RecordResult:
    """The result of `record`.

    paths: the files and folders of the recordings.
    duration: the simulated duration (s).
    samples: the number of samples of each sensor, including those that were not published.
    valid_samples: the number of published samples of each sensor with valid values.
    max_delay: the largest delay (s of real time) behind the argument `speed`; 0 without it.
    published_samples: the number of samples of each sensor that were published.

    >>> result = ns.record(world, "flight.npz", duration=1.0)
    >>> result.samples["quadrotor::base_link::imu"]
    1000
    """

    paths: tuple[Path, ...]
    duration: float
    samples: Mapping[str, int]
    valid_samples: Mapping[str, int]
    max_delay: float = 0.0
    published_samples: Mapping[str, int] = field(default_factory=dict)


RUN_FIELD = "{run}"
"""Part of the path of a recording that becomes the number of the run."""


def _check_patterns(outputs: Sequence[OutputTarget], runs: int | Sequence[int], run: int) -> Sequence[int]:
    """Return the run numbers. Raises `SimulationError` for an output without `{run}`, and if `run` is given too."""
    if run:
        raise SimulationError("run", run, allowed="is not allowed beside runs", remedy="omit one of them")
    for output in outputs:
        if not isinstance(output, str | os.PathLike) or RUN_FIELD not in os.fspath(output):
            remedy = 'write "flight-{run}.mcap"'
            raise SimulationError("output of several runs", output, allowed="must contain {run}", remedy=remedy)
    return check_run_numbers(runs)


def _add_results(results: Sequence[RecordResult]) -> RecordResult:
    """Return the result of several runs: all paths, and the sums of the samples."""

    def add(get_counts: Callable[[RecordResult], Mapping[str, int]]) -> dict[str, int]:
        return {name: sum(get_counts(result)[name] for result in results) for name in results[0].samples}

    return RecordResult(
        tuple(path for result in results for path in result.paths),
        results[0].duration,
        add(lambda result: result.samples),
        add(lambda result: result.valid_samples),
        max(result.max_delay for result in results),
        add(lambda result: result.published_samples),
    )


def record(
    world: World,
    path: OutputTarget | Sequence[OutputTarget],
    duration: float | None = None,
    *,
    seed: int = 0,
    run: int = 0,
    runs: int | Sequence[int] | None = None,
    motion: MotionSource | Mapping[str, MotionSource] | None = None,
    joints: JointSource | None = None,
    fidelity: str | None = None,
    epoch: int = 0,
    truth_rate: float = TRUTH_RATE,
    speed: float | None = None,
    ros: str = DEFAULT_DISTRIBUTION,
    progress: Progress | None = None,
    changes: Sequence[RunChange] = (),
    current: str | None = None,
) -> RecordResult:
    """Simulate a run and write it to one or several outputs, in bounded memory.

    path: the path of a recording, the URL of a stream, or several of them. The suffix of a path selects the format.
    motion: as for `simulate`, or the URL of a live system, such as `ros1://127.0.0.1:11311?topic=/odom`. Its states set
        the pace, and its clock sets the epoch. The recordings have the states: `motion=` one of them repeats the run.
    duration: s; with a live system from its first state on, to the first state after it. None: until the first motion
        or live system ends.
    run: the number of the run.
    runs: several runs, one after another: a number of them, or a sequence of run numbers. Each path contains `{run}`,
        which becomes the number. The samples of the result are those of all runs.
    speed: simulated seconds per second of real time. None: real time if an output is a live system, such as
        `foxglove://`, else as fast as possible.
    ros: the ROS 2 distribution of the message definitions: "jazzy" (also for later distributions) or "humble".
    changes: of sensors and of the current while the run goes on, such as `ns.open("run.mcap").changes`: those that
        services made in a run with live outputs. The same changes repeat this run.
    current: the URL of a live system that sends the velocity of the water, such as `ros1://127.0.0.1:11311`. It
        replaces the uniform or random current of the world. The recordings have the velocities as changes.

    Other arguments as for `simulate`.

    The readings are those of `simulate(...).save(path)`. After an interrupt (Ctrl-C) the recordings contain the
    complete time slices, and `KeyboardInterrupt` is raised. Raises `RecordingError` and the errors of `simulate`. If an
    output fails, the others are written to the end, and then its error is raised.

    >>> result = ns.record(world, ["flight.mcap", "flight.npz"], duration=1.0, seed=7)
    >>> result.duration, [path.name for path in result.paths]
    (1.0, ['flight.mcap', 'flight.npz'])
    """
    outputs = tuple(path) if isinstance(path, Iterable) and not isinstance(path, str | bytes) else (path,)
    record_run = partial(
        _record_run,
        apply_fidelity(world, fidelity),
        duration=duration,
        seed=seed,
        motion=motion,
        joints=joints,
        epoch=epoch,
        truth_rate=truth_rate,
        speed=speed,
        ros=ros,
        progress=progress,
        changes=changes,
        current=current,
    )
    if runs is None:
        return record_run(outputs=outputs, run=run)
    live_urls = [*split_motions(world, motion)[1].values(), *([] if current is None else [current])]
    if live_urls:
        count = len(check_run_numbers(runs))
        raise SimulationError("number of runs", count, allowed=f"cannot repeat a live system: {', '.join(live_urls)}")
    return _add_results(
        [
            record_run(outputs=[str(output).replace(RUN_FIELD, str(number)) for output in outputs], run=number)
            for number in _check_patterns(outputs, runs, run)
        ]
    )


def _record_run(
    world: World,
    outputs: Sequence[OutputTarget],
    duration: float | None,
    *,
    seed: int,
    run: int,
    motion: MotionSource | Mapping[str, MotionSource] | None,
    joints: JointSource | None,
    epoch: int,
    truth_rate: float,
    speed: float | None,
    ros: str,
    progress: Progress | None,
    changes: Sequence[RunChange],
    current: str | None,
) -> RecordResult:
    """Simulate one run and write it to its outputs, see `record`."""
    counts = SampleCounts(world)
    end = 0.0
    # No output may replace an input, see `atomic.check_not_input`. Live systems are disconnected before outputs close.
    with inputs.collect_inputs(world.sources), ExitStack() as stack, ExitStack() as connections:
        files, urls = split_motions(world, motion)
        check_follows(urls, speed=speed, epoch=epoch, duration=duration)
        if current is not None:
            parse_current_url(current)  # its errors come before a connection
        limiter = None if urls else _make_limiter(speed, outputs)
        motions, tracks = load_logs(world, files or None, joints)
        check_outputs(outputs, world)
        followers = open_followers(world, urls, connections)
        session = prepare(
            replace_joint_tracks(world, tracks),
            duration,
            seed=seed,
            runs=(check_run(run),),
            epoch=begin_motions(followers) if followers else epoch,
            motions=motions | {follower.model: follower.motion for follower in followers},
            truth_rate=truth_rate,
            live=bool(followers),
        )
        controls = RunControls(session, changes)
        # Before an output replaces an older file.
        feed = None if current is None else connections.enter_context(open_current_feed(current, world, controls))
        opened = stack.enter_context(
            Outputs(
                outputs,
                recordings.make_recorded_run(session, ros=ros),
                waits=not followers,
                joins_slices=bool(followers),
                controls=controls,
                pace=limiter,
            )
        )
        if feed is not None:
            feed.start()
        for time_slice in _compute_slices(session, followers, duration, limiter, controls):
            opened.write(time_slice)
            counts.add(time_slice)
            end = time_slice.end
            if progress:
                total = session.duration if duration is None else session.start + duration
                progress(min(end, total), total)
    max_delay = limiter.max_delay if limiter else 0.0
    paths = tuple(map(recordings.get_data_path, list_paths(outputs)))
    duration = (end if followers else session.duration) - session.start
    return RecordResult(paths, duration, counts.samples, counts.valid, max_delay, counts.published)


def _compute_slices(
    session: Session,
    followers: Sequence[ModelFollower],
    duration: float | None,
    limiter: RealTimeLimiter | None,
    controls: RunControls,
) -> Iterator[TimeSlice]:
    """Return the time slices of a run that follows live systems, or of another one."""
    if followers:
        return compute_received_slices(session, followers, duration, controls)
    return compute_paced_slices(session, limiter, controls)


class SampleCounts:
    """The number of samples of each sensor: `samples`, those `published`, and those published with `valid` values."""

    def __init__(self, world: World) -> None:
        """Start at 0."""
        self.samples = {sensor.name: 0 for sensor in world.sensors}
        self.published, self.valid = dict(self.samples), dict(self.samples)

    def add(self, time_slice: TimeSlice) -> None:
        """Add the samples of a time slice."""
        for name, reading in time_slice.readings.items():
            self.samples[name] += reading.time.size
            self.published[name] += int(np.count_nonzero(reading.emitted))
            self.valid[name] += int(np.count_nonzero(reading.valid & reading.emitted))


def check_follows(urls: Mapping[str, str], *, speed: float | None, epoch: int, duration: float | None = None) -> None:
    """Check the arguments of a run that follows live systems. Opens no connection.

    Raises `MotionError` for an invalid URL, `SimulationError` for an invalid duration, a speed or an epoch.
    """
    check_motion_urls(urls)
    if urls and duration is not None:
        check_duration(duration)
    for name, value in (("speed", speed), ("epoch", epoch or None)):
        if urls and value is not None:
            allowed = f"is that of the live system that the motion comes from: {', '.join(urls.values())}"
            raise SimulationError(name, value, allowed=allowed, remedy="omit it")


def _make_limiter(speed: float | None, outputs: Sequence[OutputTarget]) -> RealTimeLimiter | None:
    """Return the pace of a run that follows no live system; None for a run as fast as possible."""
    if speed is None and any(isinstance(output, str) and is_url(output) and is_live(output) for output in outputs):
        speed = 1.0
    return None if speed is None else RealTimeLimiter(speed)

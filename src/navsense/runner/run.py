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
from navsense.core.errors import RecordingError, SimulationError, Where
from navsense.core.names import NameDict, resolve_name
from navsense.core.pose import Pose
from navsense.core.random_streams import check_run
from navsense.core.readings import Current, Reading, RunChange, TimeSlice, Truth, list_panels, summarize_readings
from navsense.core.summaries import Summary, format_summary, format_summary_html, format_value
from navsense.core.text import format_count
from navsense.messages.schemas import DEFAULT_DISTRIBUTION
from navsense.motion.alignment import align_logs
from navsense.motion.base import Motion
from navsense.motion.joints import JointTrack, JointTracks
from navsense.plots import draw_panels
from navsense.recordings.dataset import cut_time_slice
from navsense.recordings.info import RecordingWriter
from navsense.recordings.joint_log import load_joint_log
from navsense.recordings.recorded_motion import load_motion
from navsense.runner.current_feed import open_current_feed
from navsense.runner.follow import Follower, begin_motions, compute_received_slices, open_followers
from navsense.runner.joined_slices import JoinedSliceWriter
from navsense.runner.outputs import OutputTarget, check_output, check_outputs_differ, list_paths, open_output
from navsense.simulation.buffering import buffer_slices
from navsense.simulation.fidelity import apply_fidelity
from navsense.simulation.motions import replace_joint_tracks
from navsense.simulation.real_time import RealTimeLimiter
from navsense.simulation.run_arrays import Progress, check_memory, compute_run_arrays
from navsense.simulation.run_controls import RunControls, compute_controlled_slices
from navsense.simulation.session import LONGEST_TIME_SLICE, TRUTH_RATE, Session, check_duration, prepare
from navsense.streams import Publisher, is_live, is_url
from navsense.world import World, make_log_context

LOG = logging.getLogger(__name__)

MotionSource = Motion | str | os.PathLike[str]
"""A motion, the path of a motion log or of a recording (`recordings.recorded_motion`), or the URL of a live system."""

JointSource = JointTracks | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""Tracks of joints by name, or the paths of logs of joint positions (`recordings.joint_log`)."""


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
        with (
            inputs.collect_inputs(self.session.world.sources),  # no output may replace one of these files
            open_output(path, recordings.make_recorded_run(self.session, ros=ros)) as writer,
        ):
            if isinstance(writer, Publisher):
                writer.wait_for_subscriber()
            for time_slice in self.slices():
                writer.write(time_slice)


def name_motions(world: World, motion: MotionSource | Mapping[str, MotionSource] | None) -> dict[str, MotionSource]:
    """Return the motion or its path or URL by model name; a single one is that of the only model that can move.

    Raises `SimulationError`.
    """
    if motion is None:
        return {}
    if not isinstance(motion, Mapping):
        movable = [model.name for model in world.models if not model.static]
        if len(movable) != 1:
            raise SimulationError(
                "motion",
                motion,
                allowed=f"must name its model: the world has {len(movable)} that can move",
                remedy=f"write MODEL=FILE, MODEL one of {', '.join(movable)}" if movable else "",
            )
        motion = {movable[0]: motion}
    models = [model.name for model in world.models]
    named: dict[str, MotionSource] = {}
    for key, source in motion.items():
        name = resolve_name(key, models, "motion of model", error=SimulationError)
        if name in named:
            raise SimulationError("motion of model", key, allowed=f"is a second motion of {name}")
        named[name] = source
    return named


def split_motions(
    world: World, motion: MotionSource | Mapping[str, MotionSource] | None
) -> tuple[dict[str, MotionSource], dict[str, str]]:
    """Return the motions and paths, and the URLs of live systems, by model name. Raises `SimulationError`."""
    named = name_motions(world, motion)
    urls = {name: source for name, source in named.items() if isinstance(source, str) and is_url(source)}
    for name in urls:
        if world.model(name).static:
            raise SimulationError("motion of model", name, allowed="is static and cannot move")
    return {name: source for name, source in named.items() if name not in urls}, urls


def load_motions(
    world: World,
    motion: MotionSource | Mapping[str, MotionSource] | None,
    bandwidth: float | Mapping[str, float] | None = None,
) -> dict[str, Motion]:
    """Return the motions by model name; motion logs are read. Raises `SimulationError` and `MotionError`.

    bandwidth: of the smoothing of the logs, Hz; or a mapping from model names. None: no smoothing.
    """
    if motion is None:
        if bandwidth is not None:
            remedy = 'in a world file: <navsense:motion file="..." bandwidth="...">'
            raise SimulationError("bandwidth", bandwidth, allowed="needs the motion that it smooths", remedy=remedy)
        return {}
    motions: dict[str, Motion] = {}
    named = name_motions(world, motion)
    bandwidths = _resolve_bandwidths(bandwidth, named, [model.name for model in world.models])
    for name, source in named.items():
        if not isinstance(source, str | os.PathLike | Motion):
            allowed = "must be a motion, or the path of a motion log"
            raise SimulationError(f"motion of model {name}", repr(source), allowed=allowed, remedy='write "log.csv"')
        if isinstance(source, str) and is_url(source):
            allowed = "must be a motion or a file: `simulate` does not follow a live system"
            raise SimulationError(f"motion of model {name}", source, allowed=allowed)
        if isinstance(source, str | os.PathLike):
            model = world.model(name)
            root = model.link(model.canonical_link).pose if model.links else Pose()
            context = make_log_context(world.environment, name, root, model.drive)
            motions[name] = load_motion(source, context, bandwidth=bandwidths.get(name))
        elif name in bandwidths:
            remedy = "smooth it where it is made, for example by ns.motion.load(..., bandwidth=...)"
            raise SimulationError(
                f"bandwidth of {name}", bandwidths[name], allowed="needs a motion file", remedy=remedy
            )
        else:
            motions[name] = source
    return motions


def _resolve_bandwidths(
    bandwidth: float | Mapping[str, float] | None, motion: Mapping[str, MotionSource], models: Sequence[str]
) -> dict[str, float]:
    """Return the bandwidths (Hz) by model name. Raises `SimulationError` for a model whose motion is not given."""
    model_names = [resolve_name(name, models, "motion of model", error=SimulationError) for name in motion]
    if bandwidth is None:
        return {}
    if not isinstance(bandwidth, Mapping):
        return dict.fromkeys(model_names, bandwidth)
    return {
        resolve_name(name, model_names, "bandwidth of model", error=SimulationError): f for name, f in bandwidth.items()
    }


def load_joints(joints: JointSource | None) -> JointTracks:
    """Return the tracks of joints by name; logs are read. Raises `SimulationError` and `MotionError`."""
    if joints is None:
        return {}
    if isinstance(joints, str | os.PathLike):
        return load_joint_log(joints)
    if isinstance(joints, Sequence):
        tracks: dict[str, JointTrack] = {}
        for path in joints:
            log = load_joint_log(path)
            twice = next((name for name in log if name in tracks), None)
            if twice is not None:
                raise SimulationError("joint", twice, allowed="must be in one log", where=Where(os.fspath(path)))
            tracks |= log
        return tracks
    if not isinstance(joints, Mapping) or not all(isinstance(track, JointTrack) for track in joints.values()):
        allowed = "must be the path of a log of joint positions, or tracks by the name of the joint"
        remedy = "write navsense.motion.joint_positions(time, {...})"
        raise SimulationError("joints", repr(joints), allowed=allowed, remedy=remedy)
    return joints


def load_logs(
    world: World,
    motion: MotionSource | Mapping[str, MotionSource] | None,
    joints: JointSource | None,
    bandwidth: float | Mapping[str, float] | None = None,
) -> tuple[dict[str, Motion], JointTracks]:
    """Return the motions by model name and the tracks of joints; logs of one recording have the same t = 0.

    The logs in the file of the world are included if they are shifted. Raises `SimulationError` and `MotionError`.
    """
    motions, tracks = load_motions(world, motion, bandwidth), load_joints(joints)
    fixed = {model.name: model.motion for model in world.models if model.motion is not None}
    aligned, aligned_tracks = align_logs(fixed | motions, tracks)
    shifted = {name: log for name, log in aligned.items() if name in motions or log is not fixed[name]}
    return shifted, aligned_tracks


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

    duration: s; None: until the first motion ends.
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


def _exit_unless_failed(
    writer: RecordingWriter, failed: Mapping[RecordingWriter, RecordingError], *exception: object
) -> None:
    """Close a writer at the end of its context. The writer of a failed output is closed already."""
    if writer not in failed:
        writer.__exit__(*exception)


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
    check_outputs_differ(outputs)
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
    samples = dict.fromkeys((sensor.name for sensor in world.sensors), 0)
    valid_samples, published_samples = dict(samples), dict(samples)
    end = 0.0
    interrupted, limiter = False, _make_limiter(speed, outputs, motion)
    writers: list[RecordingWriter] = []
    failed: dict[RecordingWriter, RecordingError] = {}
    # No output may replace an input, see `atomic.check_not_input`.
    with inputs.collect_inputs(world.sources), ExitStack() as stack:
        logs, urls = split_motions(world, motion)
        check_follows(urls, speed=speed, epoch=epoch, duration=duration)
        motions, tracks = load_logs(world, logs or None, joints)
        for output in outputs:
            check_output(output, world)
        followers = open_followers(world, urls, stack)
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
        recorded_run = recordings.make_recorded_run(session, ros=ros)
        controls = RunControls(session, changes)
        # Before an output replaces an older file.
        feed = None if current is None else stack.enter_context(open_current_feed(current, world, controls))
        for output in outputs:
            writer = open_output(output, recorded_run)
            is_joined = bool(followers) and not isinstance(writer, Publisher)
            writers.append(JoinedSliceWriter(writer) if is_joined else writer)
            stack.push(partial(_exit_unless_failed, writers[-1], failed))
        publishers = [writer for writer in writers if isinstance(writer, Publisher)]
        _start_publishers(publishers, limiter, controls, wait=not followers)
        if feed is not None:
            feed.start()
        try:
            for time_slice in _compute_slices(session, followers, duration, limiter, controls):
                _write_to_all(writers, failed, time_slice)
                if writers and len(failed) == len(writers):
                    break
                _count_samples(time_slice, samples, published_samples, valid_samples)
                end = time_slice.end
                if progress:
                    total = session.duration if duration is None else session.start + duration
                    progress(min(end, total), total)
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        raise KeyboardInterrupt
    if failed:
        raise list(failed.values())[-1]  # the others were logged
    max_delay = limiter.max_delay if limiter else 0.0
    paths = tuple(map(recordings.get_data_path, list_paths(outputs)))
    duration = end - session.start if followers else session.duration
    return RecordResult(paths, duration, samples, valid_samples, max_delay, published_samples)


def _write_to_all(
    writers: Sequence[RecordingWriter], failed: dict[RecordingWriter, RecordingError], time_slice: TimeSlice
) -> None:
    """Write a time slice to the outputs that have not failed. One that fails now is closed, and added to `failed`."""
    for writer in (writer for writer in writers if writer not in failed):
        try:
            writer.write(time_slice)
        except RecordingError as error:
            failed[writer] = error
            writer.__exit__(RecordingError, error, None)
            if len(failed) < len(writers):
                LOG.warning("%s; the run continues with the other outputs", error)


def _start_publishers(
    publishers: Sequence[Publisher], limiter: RealTimeLimiter | None, controls: RunControls, *, wait: bool
) -> None:
    """Wait for the subscribers of all outputs, so that each can choose among them; give them pace and controls.

    wait: false for a run that follows a live system, which does not wait.
    """
    for publisher in publishers:
        if wait:
            publisher.wait_for_subscriber()
    for publisher in publishers:
        publisher.attach_pace(limiter)
        publisher.attach_controls(controls)


def _compute_slices(
    session: Session,
    followers: Sequence[Follower],
    duration: float | None,
    limiter: RealTimeLimiter | None,
    controls: RunControls,
) -> Iterator[TimeSlice]:
    """Return the time slices of a run that follows live systems, or of another one."""
    if followers:
        return compute_received_slices(session, followers, duration, controls)
    return compute_paced_slices(session, limiter, controls)


def _count_samples(
    time_slice: TimeSlice,
    samples: dict[str, int],
    published_samples: dict[str, int],
    valid_samples: dict[str, int],
) -> None:
    """Add the samples of each sensor in a time slice: all, those published, and those published with valid values."""
    for name, reading in time_slice.readings.items():
        samples[name] += reading.time.size
        published_samples[name] += int(np.count_nonzero(reading.emitted))
        valid_samples[name] += int(np.count_nonzero(reading.valid & reading.emitted))


def check_follows(urls: Mapping[str, str], *, speed: float | None, epoch: int, duration: float | None = None) -> None:
    """Raise `SimulationError` for an invalid duration, a speed or an epoch of a run that follows live systems."""
    if urls and duration is not None:
        check_duration(duration)
    for name, value in (("speed", speed), ("epoch", epoch or None)):
        if urls and value is not None:
            allowed = f"is that of the live system that the motion comes from: {', '.join(urls.values())}"
            raise SimulationError(name, value, allowed=allowed, remedy="omit it")


def _make_limiter(
    speed: float | None,
    outputs: Sequence[OutputTarget],
    motion: MotionSource | Mapping[str, MotionSource] | None,
) -> RealTimeLimiter | None:
    """Return the pace of a run; None for one as fast as possible, and for one that follows a live system."""
    sources = motion.values() if isinstance(motion, Mapping) else (motion,)
    if any(isinstance(source, str) and is_url(source) for source in sources):
        return None
    if speed is None and any(isinstance(output, str) and is_url(output) and is_live(output) for output in outputs):
        speed = 1.0
    return None if speed is None else RealTimeLimiter(speed)

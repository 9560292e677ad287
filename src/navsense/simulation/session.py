"""A prepared run: the motions, the sensors, and time slices that fit the processor cache."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from navsense.clock import ClockRealisation
from navsense.core.errors import FieldError, SimulationError
from navsense.core.kernels import INTERPRETED, load_numba
from navsense.core.random_streams import BLOCK_SAMPLES, check_seed
from navsense.core.readings import (
    LONGEST_TIME,
    TRUTH_ARRAYS,
    Current,
    Layers,
    Reading,
    TimeSlice,
    Truth,
    make_read_only,
)
from navsense.core.text import format_count
from navsense.core.ticks import check_rate, find_first_tick, make_ticks
from navsense.core.typing import FloatArray, Times, Vector
from navsense.core.validation import check_integer
from navsense.environment.base import Environment, VectorField
from navsense.environment.current import realise
from navsense.environment.current.base import list_random_names
from navsense.motion.base import Motion
from navsense.motion.derived import get_base, is_known_ahead
from navsense.motion.received_motion import ReceivedMotion
from navsense.sensors.base import UsesRayCasting, uses_current
from navsense.simulation.motions import (
    NO_DRIVEN_LINKS,
    Motions,
    build_scene,
    check_motion_ends,
    check_no_recorded_motion,
    list_joint_ends,
    make_environment,
    make_link_motion,
    make_sensor_motion,
    replace_motions,
    resolve_motions,
)
from navsense.simulation.sensor_run import SensorRun, compute_ideal, index_clocks, make_reading
from navsense.world import MountedSensor, World

LONGEST_TIME_SLICE = 30.0
"""Longest time slice (s)."""

MAX_EPOCH = 2**31 - 1
"""Largest epoch (s)."""

TRUTH_RATE = 100.0
"""Default rate (Hz) of the ground truth of links."""


def check_duration(duration: float) -> float:
    """Return the duration (s). Raises `SimulationError` unless it is above 0 and within the range of stamps."""
    if not (isinstance(duration, int | float | np.number) and duration > 0.0 and duration != math.inf):
        raise SimulationError("duration", duration, allowed="must be a finite number of seconds > 0")
    if not duration < LONGEST_TIME:
        raise SimulationError("duration", duration, allowed=f"must be below {LONGEST_TIME:g} s, as stamps are")
    return float(duration)


def check_epoch(epoch: int) -> int:
    """Return the epoch (s). Raises `SimulationError` unless it is an integer from 0 to 2^31 - 1."""
    return check_integer("epoch", epoch, MAX_EPOCH, f"must be an integer of seconds from 0 to {MAX_EPOCH}")


@dataclass(frozen=True, eq=False)
class Session:
    """A world with resolved motions and its runs.

    sensor_motions, environments: by sensor name. With one run, the environments have its realised current.
    link_motions: of all links, by link name.
    currents: one current per run, or none.
    current_model: the current without seed and run, None without one.
    has_random_current: true if the runs differ by a random current.
    start: s, the time from which all motions that follow live systems are known. Nothing is published before it.
    """

    world: World
    duration: float
    seed: int
    runs: Sequence[int]
    epoch: int
    truth_rate: float
    sensor_motions: Mapping[str, Motion]
    link_motions: Mapping[str, Motion]
    environments: Mapping[str, Environment]
    currents: tuple[VectorField, ...] = ()
    has_random_current: bool = False
    current_model: VectorField | None = None
    start: float = 0.0

    def __repr__(self) -> str:
        """Return a short description."""
        runs = format_count(len(self.runs), "run")
        return f"<Session of {self.world.name}: {self.duration:g} s, seed {self.seed}, {runs}>"

    def open_sensor_runs(self, *, prefetch: int = 0) -> dict[str, tuple[SensorRun, ...]]:
        """Return the sensor runs by full sensor name, one for each run, with their initial draws."""
        clocks, seed = index_clocks(self.world), self.seed
        clock_names = {sensor.clock for sensor in self.world.sensors if sensor.clock}
        realisations = {
            (name, run): ClockRealisation(clocks[name], seed, run) for name in clock_names for run in self.runs
        }

        def open_run(sensor: MountedSensor, run: int) -> SensorRun:
            clock = clocks[sensor.clock] if sensor.clock else None
            realisation = realisations[clock.name, run].copy() if clock else None
            return SensorRun(
                sensor, clock, seed, run, prefetch=prefetch, clock_realisation=realisation, start=self.start
            )

        return {sensor.name: tuple(open_run(sensor, run) for run in self.runs) for sensor in self.world.sensors}

    def differs_between_runs(self, sensor: MountedSensor) -> bool:
        """Return True if the ideal values of a sensor differ between runs because of a random current."""
        return self.has_random_current and uses_current(sensor.spec)

    def get_environment(self, sensor: MountedSensor, run_index: int) -> Environment:
        """Return the environment of a sensor in one of the runs."""
        environment = self.environments[sensor.name]
        return replace(environment, current=self.currents[run_index]) if self.currents else environment

    def select_run_by_index(self, index: int) -> Session:
        """Return the session of one of the runs, as `prepare` returns it for this run alone."""
        if not self.currents:
            return replace(self, runs=(self.runs[index],))
        current = self.currents[index]
        world = replace(self.world, environment=replace(self.world.environment, current=current))
        environments = {name: replace(one, current=current) for name, one in self.environments.items()}
        return replace(self, world=world, runs=(self.runs[index],), currents=(current,), environments=environments)

    def replace_current(self, current: VectorField) -> Session:
        """Return the session of a single run with another realised current."""
        environments = {name: replace(one, current=current) for name, one in self.environments.items()}
        return replace(self, currents=(current,), environments=environments)

    def list_motions(self, sensor: MountedSensor) -> tuple[Motion, ...]:
        """Return the motions that a sensor depends on: its own, and those of the surfaces that its rays can hit."""
        motion = self.sensor_motions[sensor.name]
        if not isinstance(sensor.spec, UsesRayCasting):
            return (motion,)
        return (motion, *(self.link_motions[name] for name in dict.fromkeys(solid.link for solid in self.world.solids)))

    def is_known_ahead(self, sensor: MountedSensor) -> bool:
        """Return True if all motions that a sensor depends on are known in advance."""
        bodies = self.world.environment.scene.bodies if isinstance(sensor.spec, UsesRayCasting) else ()
        # The motion of a body of the caller is not known.
        if any(body.motion is not None for body in bodies):
            return False
        return all(is_known_ahead(motion) for motion in self.list_motions(sensor))

    def find_next_sample(self, time: float) -> float:
        """Return the time (s) of the first sample of any sensor at or after `time` (s); infinity without a sensor."""
        rates = {sensor.rate for sensor in self.world.sensors}
        return min((find_first_tick(time, rate) / rate for rate in rates), default=math.inf)

    def compute_slice_length(self, longest: float = LONGEST_TIME_SLICE) -> float:
        """Return the length (s) of a time slice, see `split_time_slices`."""
        current_rate = self.world.current_topic.rate if self.currents else 0.0
        highest_rate = max([self.truth_rate, current_rate, *(sensor.rate for sensor in self.world.sensors)])
        return min(BLOCK_SAMPLES / highest_rate, longest if len(self.runs) == 1 else longest / 3.0)

    def split_time_slices(self, longest: float = LONGEST_TIME_SLICE) -> Iterator[tuple[float, float]]:
        """Yield start and end (s) of the time slices.

        Each has at most `BLOCK_SAMPLES` of the fastest sensor, and at most `longest` (s). With several runs it has at
        most a third of `longest`, because each run keeps its clock errors of a time slice.
        """
        length = self.compute_slice_length(longest)
        count = max(math.ceil(self.duration / length), 1)
        start = 0.0
        for n in range(count):
            end = self.duration if n == count - 1 else (n + 1) * length
            if start < end and (end > self.start or n == count - 1):
                yield start, end
                start = end

    def compute_truth(self, start: float, end: float) -> dict[str, Truth]:
        """Return the ground truth of every link for start <= t < end (s), not before `self.start`.

        The instants of a link that follows a live system are those of all its states.
        """
        common_time, truth = None, {}
        for name, motion in self.link_motions.items():
            if isinstance(motion, ReceivedMotion):
                time = motion.list_times(start, end)
            elif common_time is None:
                time = common_time = make_ticks(max(start, self.start), end, self.truth_rate).time
            else:
                time = common_time
            if time.size:
                truth[name] = make_truth(name, motion, time, self.epoch)
        return truth

    def compute_current(self, start: float, end: float) -> Current | None:
        """Return the recorded current of every run (runs, time, 3) for start <= t < end (s).

        None in a world without a current, or if it is not recorded. Raises `FieldError` if it is undefined there.
        """
        topic, layers = self.world.current_topic, None
        if not self.currents or topic.rate == 0.0:
            return None
        time = make_ticks(max(start, self.start), end, topic.rate).time
        velocity = self._compute_current_at(topic.topic, [topic.position], time)[:, :, 0]
        if topic.layers is not None:
            name, depths, (x, y, _) = topic.layers.topic, topic.layers.depths, topic.position
            positions = [(x, y, topic.layers.surface - depth) for depth in depths]
            layers = Layers(name, depths, self._compute_current_at(name, positions, time))
        return Current(topic.topic, topic.position, make_read_only(time), velocity, self.epoch, layers)

    def _compute_current_at(self, topic: str, positions: Sequence[Vector], time: Times) -> FloatArray:
        """Return the current of all runs at each time and position, (runs, time, position, 3) m/s."""
        query = np.tile(np.array(positions), (time.size, 1))
        instants = np.repeat(time, len(positions))
        velocity = np.empty((len(self.currents), time.size, len(positions), 3))
        for run_index, field in enumerate(self.currents):
            if run_index and field is self.currents[0]:
                velocity[run_index] = velocity[0]
                continue
            try:
                velocity[run_index] = field.at(query, instants).reshape(velocity.shape[1:])
            except FieldError as error:
                raise _make_topic_error(topic, instants, error) from error
        return velocity

    def compute_readings(
        self, start: float, end: float, sensor_runs: Mapping[str, tuple[SensorRun, ...]]
    ) -> dict[str, Reading]:
        """Return the readings of the first run for start <= t < end (s). Calls must be consecutive in time."""
        readings: dict[str, Reading] = {}
        for name, (sensor_run, *_) in sensor_runs.items():
            sensor = sensor_run.sensor  # it may have changed since the start
            ticks = make_ticks(start, end, sensor.rate)
            if len(ticks):
                ideal = compute_ideal(sensor, self.sensor_motions[name], self.environments[name], ticks)
                block = sensor_run.measure(ticks, ideal)
                readings[sensor.name] = make_reading(sensor, ticks, ideal, block, self.epoch)
        return readings

    def compute_slices(self, longest: float = LONGEST_TIME_SLICE) -> Iterator[TimeSlice]:
        """Yield the time slices of the first run, each of at most `longest` (s)."""
        sensor_runs = self.open_sensor_runs()
        for start, end in self.split_time_slices(longest):
            yield self.compute_slice(start, end, sensor_runs)

    def compute_slice(self, start: float, end: float, sensor_runs: Mapping[str, tuple[SensorRun, ...]]) -> TimeSlice:
        """Return the time slice start <= t < end (s) of the first run. Calls must be consecutive in time."""
        readings, truth = self.compute_readings(start, end, sensor_runs), self.compute_truth(start, end)
        current = self.compute_current(start, end)
        return TimeSlice(start, end, readings, truth, None if current is None else current.select_run_by_index(0))


def _make_topic_error(topic: str, time: Times, error: FieldError) -> FieldError:
    """Return an error of a current with its topic and time."""
    instant = f" at t = {time[error.row]:.9g} s" if error.row is not None and error.row < time.size else ""
    subject = f"current recorded on {topic}{instant}: {error.quantity}"
    remedy = error.remedy or "record it at another position, or at a rate of 0"
    return FieldError(subject, error.value, allowed=error.allowed, where=error.where, remedy=remedy)


def make_truth(name: str, motion: Motion, time: Times, epoch: int) -> Truth:
    """Return a motion at times (n,) s as the truth of the link `name`, read-only."""
    block = motion.at(time)
    for array in (time, *block.arrays):
        make_read_only(array)
    return Truth(name, time, **dict(zip(TRUTH_ARRAYS, block.arrays, strict=True)), epoch=epoch)


def find_common_end(motions: Motions, joint_ends: Mapping[str, float]) -> float:
    """Return the time (s) at which the first motion, or track of a joint, ends.

    Raises `SimulationError` if none ends.
    """
    end = min((*(motion.end for motion in motions.values()), *joint_ends.values()), default=math.inf)
    if math.isinf(end):
        allowed = "required because no motion of this world ends"
        remedy = "give --duration S (duration=S in Python)"
        raise SimulationError("duration", "missing", allowed=allowed, remedy=remedy)
    return end


def find_received_end(motions: Sequence[ReceivedMotion], start: float, duration: float) -> float:
    """Return the end (s) of a run with the recorded states of live systems, `duration` (s) after its `start` (s).

    It is that of the run that followed the live systems with this duration: the first state at or after the duration,
    or the last state that all recorded motions have. Raises `SimulationError` if no state is at or after the duration.
    """
    stop, last = start + duration, max(motion.last_time for motion in motions)
    if last < stop:
        allowed = f"must be at most {last - start!r} s, where the recorded states end"
        raise SimulationError("duration", duration, allowed=allowed, remedy="give a shorter duration")
    first = min(float(motion.list_times(stop, math.inf)[0]) for motion in motions if motion.last_time >= stop)
    return min(math.nextafter(first, math.inf), *(motion.end for motion in motions))


def prepare(
    world: World,
    duration: float | None,
    *,
    seed: int,
    runs: Sequence[int] = (0,),
    motions: Mapping[str, Motion] | None = None,
    driven_links: Motions = NO_DRIVEN_LINKS,
    epoch: int = 0,
    truth_rate: float = TRUTH_RATE,
    live: bool = False,
) -> Session:
    """Check all arguments and return the session. A live session has no end.

    duration: s, from the start of the session on. None: until the first motion ends.
    driven_links: motions of the links that do not move with their model, by full name.

    The world of the session contains the motions of the run, so that a recording stores them. With one run it contains
    the realised current; with several runs `get_environment` returns it.
    """
    if not INTERPRETED:
        load_numba()  # its errors must come before an output replaces an older file
    world = replace_motions(world, motions or {})
    joint_ends = list_joint_ends(world)
    check_no_recorded_motion(world)
    model_motions = resolve_motions(world)
    seed, current_field = check_seed(seed), world.environment.current
    currents = () if current_field is None else tuple(realise(current_field, seed, run) for run in runs)
    if len(currents) == 1:
        world = replace(world, environment=replace(world.environment, current=currents[0]))
    received = [motion for motion in map(get_base, model_motions.values()) if isinstance(motion, ReceivedMotion)]
    start = max((motion.start for motion in received), default=0.0)
    if live:
        seconds = math.inf
    else:
        seconds = check_duration(find_common_end(model_motions, joint_ends) if duration is None else duration)
        seconds = seconds if duration is None or not received else find_received_end(received, start, duration)
        check_motion_ends(model_motions, seconds, joint_ends)
    scene = build_scene(world, model_motions, driven_links)
    return Session(
        world=world,
        duration=seconds,
        seed=seed,
        runs=runs,
        epoch=check_epoch(epoch),
        truth_rate=check_rate(truth_rate, "truth_rate"),
        sensor_motions={
            sensor.name: make_sensor_motion(world, sensor, model_motions, driven_links) for sensor in world.sensors
        },
        link_motions={
            link.name: make_link_motion(model, link, model_motions, driven_links)
            for model in world.models
            for link in model.links
        },
        currents=currents,
        has_random_current=current_field is not None and bool(list_random_names(current_field)),
        current_model=current_field,
        environments={sensor.name: make_environment(world, sensor, scene) for sensor in world.sensors},
        start=start,
    )

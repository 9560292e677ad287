"""A live run of a world, one step of `max_step_size` at a time. It equals the batch run to the last bit.

    sim = navsense.live(world, seed=7)
    for step in sim:                      # step.time (s), step.readings: the readings since the last step
        ...

A live run makes no messages or device bytes. A `StepObserver` gets the samples of each step as a time slice, and
`runner` connects it to recordings and streams: `navsense.live(world, publish=...)`.

Step n ends at t = n * max_step_size. It returns all readings that arrive in (t_(n-1), t_n]. Without latency a reading
arrives at its sample instant, so the first step, n = 0, returns the samples at t = 0. Samples that have not arrived by
the last step are not returned: continue the run for the latency after the last sample that you want.

A caller can give the state of each driven model at the end of the step, the first one at t = 0:

    sim = navsense.live(world, driven=["robot", "robot::arm"])
    sim.step({"robot": State(pose, velocity, angular_velocity=omega), "robot::arm": State(arm_pose)})

The state of a model is that of its canonical link. A driven link carries its sensors and surfaces; the other links stay
rigid with the canonical link. `navsense.motion.driven` describes how missing fields of a state are derived.
"""

from __future__ import annotations

import logging
import math
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, overload

import numpy as np

from navsense.clock import CLOCK_RATE, Clock, ClockReadings
from navsense.core.errors import ClockError, MotionError, SimulationError, UnknownNameError
from navsense.core.names import NameDict, get_short_name, resolve_name
from navsense.core.random_streams import BLOCK_SAMPLES
from navsense.core.readings import ON, RATE, Reading, RunChange, TimeSlice, Truth, join_readings, make_all_read_only
from navsense.core.text import format_count
from navsense.core.ticks import Ticks, find_first_tick, step_to_rate
from navsense.core.typing import AnyArray, FloatArray
from navsense.motion.base import Motion
from navsense.motion.derived import CachedMotion, is_known_ahead
from navsense.motion.driven import DrivenMotion, State, state_row
from navsense.sensors.base import SupportsAdjustment
from navsense.simulation.run_controls import CurrentChanges, RunControls
from navsense.simulation.sensor_run import (
    SensorRun,
    compute_ideal,
    index_clocks,
    make_reading,
)
from navsense.simulation.session import Session
from navsense.world import World

LOG = logging.getLogger(__name__)

MAX_SAMPLES_PER_STEP = 1_000_000
"""Largest number of samples of one sensor in one step."""

ARRIVED_SENSOR = "sensor with a reading in this step"

PREFETCH = 64
"""Samples of one block if the motion is known in advance. Single samples have the same bits and take more time."""


@dataclass(frozen=True, eq=False)
class Step:
    """A finished step: its end (s), and the readings that arrived in it by sensor name.

    `readings` accepts any unambiguous ending of a name. It raises `UnknownNameError` for a sensor without a reading in
    this step.

    >>> step = ns.live(world, seed=7).step()
    >>> step.time, step.readings["imu"]["angular_velocity"].shape
    (0.0, (1, 3))
    """

    time: float
    readings: Mapping[str, Reading]

    def __repr__(self) -> str:
        """Return a short description."""
        names = ", ".join(map(get_short_name, self.readings))
        return f"<Step to {self.time:g} s: {names or 'no reading'}>"


class StepObserver(Protocol):
    """Gets what a live run measures, and its end.

    A time slice contains the samples of one step, before any latency: those with a < t <= b of a step from `a` to `b`.
    It also contains the truth of the links and the current at these instants, as in a batch run.
    """

    def write(self, time_slice: TimeSlice) -> None:
        """Get the time slice of a step, before the step is returned."""
        ...

    def close(self) -> None:
        """Get the end of the run."""
        ...

    def salvage(self) -> None:
        """Get the end of the run by an exception. Never raises."""
        ...


class SupportsAdvance(Protocol):
    """Motions that follow live systems. Their states arrive while the run goes on.

    has_ended: true if no states follow.
    """

    has_ended: bool

    def advance(self, end: float) -> None:
        """Wait until all motions are known up to `end` (s). Raises `MotionError` if one ends before."""
        ...

    def close(self) -> None:
        """Disconnect. A second call does nothing."""
        ...


def _end(live_motions: SupportsAdvance | None, end_observer: Callable[[], None] | None) -> None:
    """End a live run. Live systems are disconnected first: the outputs may wait for their subscribers."""
    try:
        if live_motions is not None:
            live_motions.close()
    finally:
        if end_observer is not None:
            end_observer()


def _join_live_readings(readings: list[Reading]) -> Reading:
    """Return consecutive readings of one sensor as one, with read-only times and ideal values."""
    if len(readings) == 1:
        return readings[0]
    joined = join_readings(readings)
    make_all_read_only((joined.time, *joined.ideal.values()))
    return joined


TickCache = dict[tuple[int, int, float], Ticks]
"""The ticks of the current step by first tick, end and rate (Hz), computed once for all sensors of the same rate."""


class LiveSensor:
    """A sensor of a live run, with its latest reading.

    >>> sim = ns.live(world, seed=7)
    >>> _ = sim.step()
    >>> sim.sensor("compass").get("field").shape
    (3,)
    >>> sim.sensor("compass").switch(on=False)
    """

    def __init__(
        self,
        sensor_run: SensorRun,
        motion: Motion,
        session: Session,
        tick_cache: TickCache,
        clock: LiveClock,
        *,
        is_known_ahead: bool,
        report_change: Callable[[RunChange], None],
    ) -> None:
        """Start before the first sample. `clock` is the clock of the sensor's stamps."""
        self._report_change = report_change
        sensor = self.mounted = sensor_run.sensor
        """The sensor with its switches and settings after the last step."""
        self.name = sensor.name
        """The full name."""
        self.clock, self.session = clock, session
        self.reading: Reading | None = None
        self.measured: Reading | None = None
        """The samples of the last step before the latency, None without any."""
        self._sensor_run, self._motion, self._tick_cache = sensor_run, motion, tick_cache
        self._end = -math.inf  # of the last step
        self._prefetch = PREFETCH if is_known_ahead and not isinstance(sensor.spec, SupportsAdjustment) else 1
        self._motion_end = min(m.end for m in session.list_motions(sensor))
        self._block: Reading
        self._block_start = self._block_end = self._next_tick = 0
        self._queue: deque[Reading] = deque()
        self._taken_rows = 0  # of the first reading in the queue
        self._latest_emitted: Reading | None = None

    def __repr__(self) -> str:
        """Return a short description."""
        state = "on" if self.is_on else "off"
        return f"<LiveSensor {self.name}: {self.mounted.spec.type}, {self.mounted.rate:g} Hz, {state}>"

    @property
    def is_on(self) -> bool:
        """True if the sensor is on after the last step."""
        return bool(self.mounted.compute_on(np.array([self._next_time]))[0])

    def get(self, name: str) -> AnyArray:
        """Return one array of the latest published sample, in its unit: a number, or a row if the array has axes.

        Raises `SimulationError` before the first published sample, `UnknownNameError` for an unknown array.
        """
        if self._latest_emitted is None:
            allowed = "is available after the first published sample"
            raise SimulationError(f"array {name!r} of {self.name}", allowed=allowed)
        latest: AnyArray = self._latest_emitted[name][-1]
        return latest

    def set(self, name: str, value: float) -> None:
        """Set an adjustable array, such as an altimeter's "vertical_reference", from the next sample on.

        Raises `SimulationError` for a sensor without adjustable arrays, `SensorError` for another array or value.
        """
        self.change(name, value)

    def switch(self, *, on: bool) -> None:
        """Switch the sensor on or off from the next sample on.

        A sensor that is off publishes nothing; its errors continue. Later scheduled switches remain.
        """
        self.change(ON, on)

    def set_rate(self, rate: float) -> None:
        """Publish at a lower rate (Hz) from the next sample on: the first sample of each period.

        Raises `SimulationError` for a rate above that of the measurements.
        """
        self.change(RATE, rate)

    def change(self, name: str, value: bool | float | tuple[float, ...]) -> None:
        """Change a property of a `RunChange` from the next sample on. Raises as `set`, `switch` and `set_rate` do."""
        change = RunChange(self._next_time, self.name, name, value)
        self._sensor_run.change(change)
        self.mounted = self._sensor_run.sensor
        self._report_change(change)

    @property
    def _next_time(self) -> float:
        """The earliest instant (s) after the last step."""
        return max(math.nextafter(self._end, math.inf), 0.0)

    @property
    def clock_time(self) -> float:
        """The reading (s) of the sensor's clock at its latest sample; `clock` has readings at any instant.

        Raises `SimulationError` before the first reading.
        """
        if self.reading is None:
            raise SimulationError("clock time of sensor", self.name, allowed="is available after the first reading")
        return float(self.reading.time[-1] + self.reading.clock_error[-1])

    def take_due(self, end: float) -> Reading | None:
        """Return the samples that have arrived by t = `end` (s); None without any."""
        reading = self._take_measured(end)
        if reading is not None and not self._sensor_run.publishes_all(reading.time):
            ticks = Ticks(np.arange(self._next_tick - reading.time.size, self._next_tick), self.mounted.rate)
            reading = replace(reading, emitted=self._sensor_run.select(ticks, reading.emitted))
        self._end, self.measured = end, reading
        if self.mounted.latency is not None:
            reading = self._take_arrived(reading, end)
        self.reading = reading or self.reading
        if reading is not None and reading.emitted[-1]:
            self._latest_emitted = reading
        elif reading is not None and reading.emitted.any():
            self._latest_emitted = reading.select_rows(0, int(np.flatnonzero(reading.emitted)[-1]) + 1)
        return reading

    def _take_arrived(self, reading: Reading | None, end: float) -> Reading | None:
        """Append new samples to the queue; return those at its front that have arrived by `end` (s)."""
        queue = self._queue
        if reading is not None:
            queue.append(reading)
        arrived: list[Reading] = []
        while queue:
            count = int(np.searchsorted(queue[0].arrival, end, side="right"))
            if count > self._taken_rows:
                arrived.append(queue[0].select_rows(self._taken_rows, count))
                self._taken_rows = count
            if count < queue[0].time.size:
                break
            queue.popleft()
            self._taken_rows = 0
        return _join_live_readings(arrived) if arrived else None

    def _take_measured(self, end: float) -> Reading | None:
        """Return the samples with instants up to t = `end` (s); None without any."""
        first, rate = self._next_tick, self.mounted.rate
        if first / rate > end:
            return None
        stop = first + 1
        if stop / rate <= end:
            stop = find_first_tick(math.nextafter(end, math.inf), rate)
        if stop - first > MAX_SAMPLES_PER_STEP:
            raise SimulationError(
                f"samples of {self.name} in one step",
                stop - first,
                allowed=f"must be at most {MAX_SAMPLES_PER_STEP}",
                remedy="give the world a smaller <max_step_size> or the sensor a lower rate",
            )
        readings: list[Reading] = []
        while self._next_tick < stop:
            if self._next_tick == self._block_end:
                self._measure(stop)
            end_index = min(stop, self._block_end)
            readings.append(self._block.select_rows(self._next_tick - self._block_start, end_index - self._block_start))
            self._next_tick = end_index
        return _join_live_readings(readings)

    def _measure(self, stop: int) -> None:
        """Measure the next block: up to `stop`, or farther if samples may be measured ahead of time."""
        rate, first = self.mounted.rate, self._block_end
        end = max(min(stop, first + BLOCK_SAMPLES), first + self._prefetch)
        while end > stop and (end - 1) / rate > self._motion_end:
            end -= 1
        ticks = self._tick_cache.get((first, end, rate))
        if ticks is None:
            ticks = self._tick_cache[first, end, rate] = Ticks(np.arange(first, end, dtype=np.int64), rate)
        # Blocks are measured ahead of time, as if the sensor were on. `take_due` selects the samples to publish.
        ideal = compute_ideal(self.mounted, self._motion, self.session.environments[self.name], ticks)
        block = self._sensor_run.measure_all(ticks, ideal)
        self._block = make_reading(self.mounted, ticks, ideal, block, self.session.epoch)
        self._block_start, self._block_end = first, end


class LiveRun:
    """A run in progress. Iterate over it, or call `step`; `close` ends it.

    >>> sim = ns.live(world, driven=["quadrotor"])
    >>> step = sim.step({"quadrotor": ns.State(ns.Pose((0.0, 0.0, 2.0)))})
    >>> step.time, sim.time
    (0.0, 0.0)
    >>> sim.close()
    """

    def __init__(
        self,
        session: Session,
        driven: Mapping[str, DrivenMotion],
        observer: StepObserver | None = None,
        controls: RunControls | None = None,
        live_motions: SupportsAdvance | None = None,
    ) -> None:
        """Start before the first step. `controls` are those of other programs.

        With `live_motions`, the first step ends at or after their first states.
        """
        self._session, self._driven, self._observer, self._controls = session, driven, observer, controls
        self._live_motions = live_motions
        self._current = CurrentChanges(session)
        self._rate = step_to_rate(session.world.max_step_size)
        self._count = find_first_tick(session.start, self._rate)
        self._closed = False
        self._time = self._slice_end = 0.0
        self._changes: list[RunChange] = []
        # A program that ends without `close` completes its recordings.
        self._finalizer = weakref.finalize(self, _end, live_motions, None if observer is None else observer.close)
        self._tick_cache: TickCache = {}
        sensor_runs, clocks = session.open_sensor_runs(prefetch=PREFETCH), index_clocks(session.world)
        # A driven motion keeps only its last steps, so instants that the sensor asks for again are cached.
        motions = {
            name: motion if is_known_ahead(motion) else CachedMotion(motion)
            for name, motion in session.sensor_motions.items()
        }
        self._sensors = {
            sensor.name: LiveSensor(
                sensor_runs[sensor.name][0],
                motions[sensor.name],
                session,
                self._tick_cache,
                self._make_clock(clocks[sensor.clock] if sensor.clock else None, sensor.name, sensor.rate),
                # Changes of other programs act on samples that are not measured yet.
                is_known_ahead=not driven and controls is None and session.is_known_ahead(sensor),
                report_change=self._report_change,
            )
            for sensor in session.world.sensors
        }
        self._names = tuple(self._sensors)
        self._clocks = {name: self._make_clock(clock, f"clock {name}", CLOCK_RATE) for name, clock in clocks.items()}

    def __repr__(self) -> str:
        """Return a short description."""
        state = "closed" if self._closed else "open"
        return f"<LiveRun {self.world.name}: {self.time:g} s, {format_count(len(self._names), 'sensor')}, {state}>"

    def _make_clock(self, clock: Clock | None, reader: str, rate: float) -> LiveClock:
        """Return a clock by the name of its user: a sensor with samples at `rate` (Hz), or the clock itself."""
        readings = ClockReadings(clock, reader, self._session.seed, self._session.runs[0], rate)
        return LiveClock(clock, readings, lambda: self.time)

    @property
    def world(self) -> World:
        """The world. `sim.world.environment.magnetic_field` is its magnetic field."""
        return self._session.world

    @property
    def time(self) -> float:
        """The end (s) of the last finished step; 0 before the first."""
        return self._time

    def step(self, states: Mapping[str, State] | None = None) -> Step:
        """Finish one step and return it.

        states: of each driven model and link at the end of the step, by name.

        Raises `SimulationError` for other names and `MotionError` for an invalid state. The run then does not advance.
        """
        if self._closed:
            raise SimulationError("live run", allowed="is closed")
        end = self._count / self._rate
        if self._live_motions is not None:
            self._live_motions.advance(end)
        self._drive(end, {} if states is None else states)
        self._tick_cache.clear()
        if self._controls is not None:
            self._apply_changes(self._controls)
        # Nothing has changed yet if a motion has ended.
        truth = {} if self._observer is None else self._compute_truth(end)
        readings: dict[str, Reading] = NameDict({}, ARRIVED_SENSOR, names=self._names)
        for name, sensor in self._sensors.items():
            reading = sensor.take_due(end)
            if reading is not None:
                readings[name] = reading
        self._count, self._time = self._count + 1, end
        if self._observer is not None:
            self._observer.write(self._make_time_slice(end, truth))
        return Step(end, readings)

    def _report_change(self, change: RunChange) -> None:
        """Keep a change for the next time slice."""
        if self._observer is not None:
            self._changes.append(change)
        if self._controls is not None:
            self._controls.update(change)

    def _apply_changes(self, controls: RunControls) -> None:
        """Apply the changes of other programs to the samples of the next step."""
        for change in controls.take(self._slice_end):
            sensor = self._sensors.get(change.name)
            if sensor is None:
                self._current.apply(change)
                self._session = self._current.session
                for sensor in self._sensors.values():
                    sensor.session = self._session
                self._changes.append(change)
            else:
                sensor.change(change.property, change.value)

    def _compute_truth(self, end: float) -> dict[str, Truth]:
        """Return the truth of the links at its instants in the step that ends at `end` (s)."""
        start, stop, rate = self._slice_end, math.nextafter(end, math.inf), self._session.truth_rate
        if self._live_motions is None and find_first_tick(start, rate) == find_first_tick(stop, rate):
            return {}
        return self._session.compute_truth(start, stop)

    def _make_time_slice(self, end: float, truth: dict[str, Truth]) -> TimeSlice:
        """Return what was measured in the step that ends at `end` (s)."""
        # A time slice is open at its end, a step at its start.
        start, self._slice_end = self._slice_end, math.nextafter(end, math.inf)
        readings = {name: one.measured for name, one in self._sensors.items() if one.measured is not None}
        current = self._session.compute_current(start, self._slice_end)
        if current is not None:
            current = current.select_run_by_index(0) if current.time.size else None
        changes, self._changes = tuple(self._changes), []
        return TimeSlice(start, self._slice_end, readings, truth, current, changes)

    def _drive(self, end: float, states: Mapping[str, State]) -> None:
        if not isinstance(states, Mapping):
            remedy = 'write sim.step({"robot": navsense.State(...)})'
            raise SimulationError(
                "states of a step", repr(states), allowed="must be a mapping from names to states", remedy=remedy
            )
        if states.keys() != self._driven.keys():
            try:
                full = {resolve_name(name, self._driven, "driven model"): state for name, state in states.items()}
            except UnknownNameError:
                full = {}
            missing = [name for name in self._driven if name not in full]
            if missing and len(full) == len(states):
                call = ", ".join(f'"{name}": navsense.State(...)' for name in self._driven)
                raise SimulationError(
                    "states of a step",
                    f"no state for {', '.join(missing)}",
                    allowed="must contain one state for each driven model and link",
                    remedy=f"call sim.step({{{call}}})",
                )
            if full.keys() != self._driven.keys() or len(full) < len(states):
                raise SimulationError(
                    "states of a step",
                    list(states),
                    allowed=f"must be those of the driven models: {', '.join(sorted(self._driven)) or 'there is none'}",
                    remedy="name the driven models when the run is opened: navsense.live(world, driven=[...])",
                )
            states = full
        # All states are checked before the first one takes effect.
        rows = {name: state_row(state, name) for name, state in states.items()}
        for name, row in rows.items():
            self._driven[name].advance(end, row)

    def __iter__(self) -> Iterator[Step]:
        """Yield steps until the run is closed or a motion ends. Samples that have not arrived by then are dropped."""
        motions = [m for sensor in self._sensors.values() for m in self._session.list_motions(sensor.mounted)]
        end = min((motion.end for motion in motions), default=math.inf)
        while not self._closed and self._count / self._rate <= end:
            try:
                step = self.step()
            except MotionError as error:
                if self._live_motions is None or not self._live_motions.has_ended:
                    raise
                LOG.warning("%s; the run ends", error)
                return
            yield step

    def sensor(self, name: str) -> LiveSensor:
        """Return a sensor by any unambiguous ending of its name. Raises `UnknownNameError`."""
        return self._sensors[resolve_name(name, self._sensors, "sensor")]

    def clock(self, name: str) -> LiveClock:
        """Return a clock by any unambiguous ending of its name. Raises `UnknownNameError`."""
        return self._clocks[resolve_name(name, self._clocks, "clock")]

    def close(self) -> None:
        """End the run and its outputs. Later steps raise an error.

        Raises the `RecordingError` of an output that failed. Samples that have not arrived are in the outputs, as in
        those of a batch run.
        """
        self._closed = True
        self._finalizer()

    def __enter__(self) -> Self:
        """Return the run itself."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the run. After an exception the outputs keep what was published."""
        self._closed = True
        if kind is None:
            self._finalizer()
        elif self._finalizer.detach() is not None:
            _end(self._live_motions, None if self._observer is None else self._observer.salvage)


class LiveClock:
    """One clock of a live run, with readings at any instant up to now, including mean and jitter.

    >>> sim = ns.live(world, seed=7)
    >>> _ = sim.step()
    >>> sim.clock("autopilot").time(0.0) == sim.clock("autopilot").error(0.0)
    True
    """

    def __init__(self, clock: Clock | None, readings: ClockReadings, now: Callable[[], float]) -> None:
        """Store the arguments. `now` returns the end (s) of the last finished step."""
        self.clock, self._readings, self._now = clock, readings, now

    def __repr__(self) -> str:
        """Return a short description."""
        return f"<LiveClock {self.clock.name if self.clock else 'true time'} at {self._now():g} s>"

    @overload
    def error(self, time: float) -> float: ...
    @overload
    def error(self, time: Sequence[float] | FloatArray) -> FloatArray: ...
    def error(self, time: float | Sequence[float] | FloatArray) -> float | FloatArray:
        """Return the reading minus the true time (s), at an instant `time` (s) or at instants (n,) s.

        The instants may be in any order. Repeated queries return the same error, and a query does not change stamps. An
        instant more than `clock.readings.REALISATION_MEMORY` seconds before the latest query recomputes the realisation
        from t = 0. Raises `SimulationError` for an instant after the end of the last step, `ClockError` for an invalid
        one.
        """
        if not isinstance(time, float):
            time = _as_instants(time)
            if time.ndim:
                return self._compute_errors(time)
        return self._compute_error_at(float(time))

    @overload
    def time(self, time: float) -> float: ...
    @overload
    def time(self, time: Sequence[float] | FloatArray) -> FloatArray: ...
    def time(self, time: float | Sequence[float] | FloatArray) -> float | FloatArray:
        """Return the reading, s since the run's start, at an instant `time` (s) or at instants (n,) s."""
        if not isinstance(time, float):
            time = _as_instants(time)
            if time.ndim:
                return time + self._compute_errors(time)
        return float(time) + self._compute_error_at(float(time))

    def _compute_error_at(self, time: float) -> float:
        now = self._now()
        if time > now:
            raise _make_late_error(time, now)
        return self._readings.error(time)

    def _compute_errors(self, time: FloatArray) -> FloatArray:
        now = self._now()
        late = time > now
        if late.any():
            raise _make_late_error(float(time[late][0]), now)
        return self._readings.errors(time)


def _make_late_error(time: float, now: float) -> SimulationError:
    """Return the error for an instant (s) after `now` (s)."""
    allowed = f"must be at most {now!r} s, the end of the last step"
    return SimulationError("instant of a clock's reading (s)", time, allowed=allowed)


def _as_instants(time: float | Sequence[float] | FloatArray) -> FloatArray:
    """Return an instant () or instants (n,) s as an array. Raises `ClockError` for other values."""
    allowed = "must be a number, or numbers (n,)"
    try:
        instants = np.asarray(time)
    except ValueError as error:
        raise ClockError("instants (s)", repr(time), allowed=allowed) from error
    if instants.dtype.kind not in "fiu" and instants.size:
        raise ClockError("instants (s)", repr(time), allowed=allowed)
    if instants.ndim > 1:
        raise ClockError("instants (s)", f"shape {instants.shape}", allowed=allowed)
    return instants.astype(np.float64)

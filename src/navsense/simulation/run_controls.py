"""Changes of a run while it goes on: sensors on and off, references, rates of publication, and the mean current.

    controls = RunControls(session)
    for time_slice in compute_controlled_slices(session, controls, longest=0.05):
        ...                                       # another thread calls controls.switch("dvl", on=False)

A change acts from the start of the next time slice on. The cuts between time slices do not change the readings. A
run with the same changes at the same times is equal to the last bit.
"""

from __future__ import annotations

import logging
import math
import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from navsense.core.errors import SimulationError
from navsense.core.names import resolve_name
from navsense.core.readings import CURRENT, ON, RATE, RunChange, TimeSlice
from navsense.core.typing import Vector
from navsense.environment.current.adjustment import (
    VELOCITY,
    AdjustableCurrent,
    ChangedCurrent,
    ChangeValue,
    is_adjustable,
)
from navsense.sensors.base import get_max_age
from navsense.simulation.sensor_run import change_sensor, get_number
from navsense.simulation.session import LONGEST_TIME_SLICE, Session
from navsense.world import MountedSensor

LOG = logging.getLogger(__name__)
"""Logs each change with its time."""

MAX_REQUESTS = 100_000
"""Largest number of changes that other programs can request in one run. Scheduled changes and velocities of the current
from a topic have no limit."""


class RunControls:
    """Requests for changes, by name of a sensor. All methods can be called in any thread.

    A request is checked at once. Of several requests for the same property in one time slice, the last one acts.
    Names can be any unambiguous ending of a full name.

    current_requests: number of requests for the current by other programs.

    >>> session = ns.simulate(world, 1.0, seed=7).session
    >>> controls = ns.simulation.run_controls.RunControls(session)
    >>> controls.switch("compass", on=False)
    >>> controls.set_rate("imu", 100.0)
    >>> controls.is_on("compass"), [change.property for change in controls.take(0.5)]
    (False, ['on', 'rate'])
    """

    def __init__(self, session: Session, scheduled: Sequence[RunChange] = ()) -> None:
        """Start before the first time slice. `scheduled` are changes at given times, such as those of a recording.

        Raises `SimulationError` for values that are no changes. Raises `SimulationError`, `SensorError` and
        `FieldError` for changes that the world of the session cannot have.
        """
        self._lock = threading.Lock()
        self._sensors = {sensor.name: sensor for sensor in session.world.sensors}
        self._rates = {sensor.name: sensor.rate for sensor in session.world.sensors}
        self._current = make_adjustable_current(session)
        self._requests: dict[tuple[str, str], RunChange] = {}
        self._time, self._request_count = 0.0, 0
        self.current_requests = 0
        self._scheduled = sorted(map(self._resolve, _check_changes(scheduled)), key=lambda change: change.time)
        self._scheduled_times = [change.time for change in self._scheduled]
        self._next = 0  # index of the next scheduled change
        self._check(self._scheduled)

    @property
    def sensors(self) -> tuple[MountedSensor, ...]:
        """The sensors after all changes until now."""
        with self._lock:
            return tuple(self._sensors.values())

    @property
    def has_adjustable_current(self) -> bool:
        """True if `set_current` can change the current of the world."""
        return self._current is not None

    def is_on(self, name: str) -> bool:
        """Return whether a sensor is on, or will be from the next time slice on. Raises `UnknownNameError`."""
        with self._lock:
            sensor = self._sensors[resolve_name(name, self._sensors, "sensor")]
            request = self._requests.get((sensor.name, ON))
            return bool(sensor.compute_on(np.array([self._time]))[0] if request is None else request.value)

    def get_rate(self, name: str) -> float:
        """Return the highest rate (Hz) at which a sensor publishes, now or from the next time slice on.

        Raises `UnknownNameError`.
        """
        with self._lock:
            name = resolve_name(name, self._sensors, "sensor")
            request = self._requests.get((name, RATE))
            return self._rates[name] if request is None else get_number(request)

    def get_current_model(self, process: str) -> tuple[float, ...]:
        """Return mean, minimum, maximum, noise amplitude and mu of a process, now or from the next time slice on.

        `set_current({"PROCESS.model": ...})` sets the same five. Raises `SimulationError` if the current cannot be
        changed.
        """
        with self._lock:
            current = self._current
            if current is None:
                raise _make_current_error()
            for change in self._requests.values():
                if change.name not in self._sensors:
                    current = current.check(change.property, change.value)
            return current.get_model(process)

    def switch(self, name: str, *, on: bool) -> None:
        """Switch a sensor on or off. Its errors continue while it is off. Raises `UnknownNameError`."""
        self._request(name, {ON: on})

    def set(self, name: str, array: str, value: float) -> None:
        """Set an adjustable array, such as an altimeter's "vertical_reference".

        Raises `UnknownNameError`, `SimulationError` for a sensor without adjustable arrays, `SensorError` for another
        array or value.
        """
        self._request(name, {array: value})

    def set_rate(self, name: str, rate: float) -> None:
        """Publish at a lower rate (Hz): the first sample of each period. The measurements do not change.

        Raises `UnknownNameError`, and `SimulationError` for a rate above that of the measurements.
        """
        self._request(name, {RATE: rate})

    def set_current(self, values: Mapping[str, ChangeValue]) -> None:
        """Set properties of the current, of `environment.current.adjustment.CURRENT_PROPERTIES`: all or none.

        Raises `SimulationError` for a world without a current that can be changed, `FieldError` for other properties
        and invalid values.
        """
        self._request(CURRENT, values)
        self.current_requests += 1

    def feed_current(self, velocity: Vector) -> None:
        """Replace the current by a velocity (m/s) along the axes of the world. Raises as `set_current` does.

        The number of velocities in a run has no limit.
        """
        self._request(CURRENT, {VELOCITY: velocity}, is_limited=False)

    def _resolve(self, change: RunChange) -> RunChange:
        """Return a change with the full name of its sensor. Raises `UnknownNameError`."""
        if change.name == CURRENT and CURRENT not in self._sensors:
            return change
        return replace(change, name=resolve_name(change.name, self._sensors, "sensor"))

    def _request(self, name: str, values: Mapping[str, ChangeValue], *, is_limited: bool = True) -> None:
        """Check requests for properties of a sensor or the current, and keep them for the next time slice."""
        with self._lock:
            changes = [
                self._resolve(RunChange(self._time, name, key, tuple(value) if isinstance(value, Sequence) else value))
                for key, value in values.items()
            ]
            self._check([*self._requests.values(), *changes])
            keys = [(change.name, change.property) for change in changes]
            count = self._request_count + sum(is_limited and key not in self._requests for key in keys)
            if is_limited and count > MAX_REQUESTS:
                what = "changes of a run by other programs"
                raise SimulationError(what, count, allowed=f"must be at most {MAX_REQUESTS}")
            self._request_count = count
            for key, change in zip(keys, changes, strict=True):
                self._requests.pop(key, None)  # the last request acts last
                self._requests[key] = change

    def _check(self, changes: Sequence[RunChange]) -> None:
        """Raise the error of a change that is not possible."""
        current = self._current
        for change in changes:
            if change.name in self._sensors:
                change_sensor(self._sensors[change.name], change)
            elif current is None:
                raise _make_current_error()
            else:
                current = current.check(change.property, change.value)

    def take(self, time: float) -> tuple[RunChange, ...]:
        """Return the changes that act from `time` (s) on, the start of the next time slice."""
        with self._lock:
            self._time = time
            stop = bisect_right(self._scheduled_times, time, lo=self._next)
            requests = (replace(change, time=time) for change in self._requests.values())
            changes = (*self._scheduled[self._next : stop], *requests)
            self._next = stop
            self._requests.clear()
            for change in changes:
                self._update(change)
        for change in changes:
            LOG.info("t = %.9g s: %s: %s = %s", change.time, change.name, change.property, change.value)
        return changes

    def update(self, change: RunChange) -> None:
        """Get a change that the caller of a live run has made."""
        with self._lock:
            self._time = max(self._time, change.time)
            self._update(change)

    def _update(self, change: RunChange) -> None:
        """Keep what a change has set."""
        if change.name not in self._sensors:
            self._current = self._current and self._current.check(change.property, change.value)
            return
        self._sensors[change.name] = change_sensor(self._sensors[change.name], change)
        if change.property == RATE:
            self._rates[change.name] = get_number(change)

    def get_next_time(self) -> float:
        """Return the time (s) of the next scheduled change, infinity without one."""
        return self._scheduled_times[self._next] if self._next < len(self._scheduled_times) else math.inf


def _check_changes(changes: Sequence[RunChange]) -> Sequence[RunChange]:
    """Return the changes of a run. Raises `SimulationError` for another value."""
    if not isinstance(changes, Sequence) or isinstance(changes, str):
        allowed = "must be a list of navsense.RunChange"
        raise SimulationError("changes of a run", repr(changes), allowed=allowed)
    for change in changes:
        if not isinstance(change, RunChange):
            remedy = 'write navsense.RunChange(2.5, "dvl", "on", False)'
            raise SimulationError(
                "change of a run", repr(change), allowed="must be a navsense.RunChange", remedy=remedy
            )
    return changes


def _make_current_error() -> SimulationError:
    allowed = "cannot be changed: only a uniform current and one with a random speed and direction can"
    return SimulationError("current of the world", allowed=allowed)


def make_adjustable_current(session: Session) -> AdjustableCurrent | None:
    """Return the current of the first run for changes; None if it cannot be changed."""
    model = session.current_model
    if model is None or not is_adjustable(model):
        return None
    return AdjustableCurrent(model, session.currents[0], session.seed, session.runs[0], session.world.max_step_size)


class CurrentChanges:
    """The current of the first run of a session with its changes.

    session: the session with the current of now, for the next time slice.
    """

    def __init__(self, session: Session) -> None:
        """Start with the current of the session."""
        self.session = session
        self._current = make_adjustable_current(session)
        self._history = ChangedCurrent(session.currents[:1], (0.0,)) if session.currents else None
        self._memory = max((get_max_age(sensor.spec) for sensor in session.world.sensors), default=0.0)

    def apply(self, change: RunChange) -> None:
        """Change the current at the time of the change. Raises `SimulationError` if the world has none to change."""
        if self._current is None or self._history is None:
            raise _make_current_error()
        self._current = self._current.change(change.property, change.value, change.time)
        self._history = self._history.add(self._current.field, change.time, self._memory)
        self.session = self.session.replace_current(self._history)


class ControlledRun:
    """The first run of a session, with the changes of its controls."""

    def __init__(self, session: Session, controls: RunControls) -> None:
        """Start before the first time slice."""
        self._controls, self._sensor_runs = controls, session.open_sensor_runs()
        self._current = CurrentChanges(session)

    def compute_slices(self, start: float, end: float) -> Iterator[TimeSlice]:
        """Yield the time slice start <= t < end (s), in parts if there are scheduled changes in it.

        Calls must be consecutive in time.
        """
        while start < end:
            changes = self._controls.take(start)
            self._apply(changes)
            stop = min(end, self._controls.get_next_time())
            yield replace(self._current.session.compute_slice(start, stop, self._sensor_runs), changes=changes)
            start = stop

    def _apply(self, changes: Sequence[RunChange]) -> None:
        """Apply changes at the start of a time slice."""
        for change in changes:
            if change.name in self._sensor_runs:
                self._sensor_runs[change.name][0].change(change)
            else:
                self._current.apply(change)


def compute_controlled_slices(
    session: Session, controls: RunControls, longest: float = LONGEST_TIME_SLICE
) -> Iterator[TimeSlice]:
    """Yield the time slices of the first run, each of at most `longest` (s), with the changes of the controls."""
    run = ControlledRun(session, controls)
    for start, end in session.split_time_slices(longest):
        yield from run.compute_slices(start, end)


__all__ = [
    "ControlledRun",
    "RunControls",
    "compute_controlled_slices",
    "make_adjustable_current",
]

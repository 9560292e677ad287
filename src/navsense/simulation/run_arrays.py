"""Runs in memory: their arrays, each allocated once and filled block by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, Self

import numpy as np

from navsense.core.errors import SimulationError
from navsense.core.readings import (
    TRUTH_ARRAYS,
    Current,
    Reading,
    Truth,
    make_all_read_only,
    make_all_true,
    make_read_only,
)
from navsense.core.ticks import Ticks, count_samples, make_ticks
from navsense.core.typing import AnyArray
from navsense.motion.received_motion import ReceivedMotion
from navsense.sensors.base import get_flags
from navsense.simulation.sensor_run import SensorBlock, compute_ideal
from navsense.simulation.session import Session
from navsense.world import MountedSensor

Arguments = ParamSpec("Arguments")

Progress = Callable[[float, float], None]
"""Called with the simulated time (s) so far, and the duration (s) of the run."""

MAX_MEMORY_FRACTION = 0.5
"""Largest fraction of the free memory that a run may need."""


def get_free_memory() -> float:
    """Return the available memory (bytes), infinite if the system does not report it."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return float(line.split()[1]) * 1024.0
    except OSError:
        pass
    return float("inf")


def estimate_memory(session: Session) -> float:
    """Return the memory (bytes) of all arrays: readings and errors of each run, ground truth and ideal values once."""
    total = count_samples(session.duration, session.truth_rate) * 160.0 * len(session.link_motions)
    layers = session.world.current_topic.layers
    positions = 1 + (len(layers.depths) if layers else 0)
    total += count_current_rows(session) * (8.0 + 24.0 * positions * len(session.runs))
    for sensor in session.world.sensors:
        values = sum(output.size for output in sensor.spec.outputs)
        arrivals = 1 if sensor.latency else 0
        ideal_runs = len(session.runs) if session.differs_between_runs(sensor) else 1
        bytes_per_row = 8.0 * (1 + values * ideal_runs) + len(session.runs) * 8.0 * (1 + arrivals + 2 * values)
        total += count_samples(session.duration, sensor.rate) * bytes_per_row
    return total


def count_current_rows(session: Session) -> int:
    """Return the number of rows of the recorded current."""
    rate = session.world.current_topic.rate
    return len(make_ticks(session.start, session.duration, rate)) if session.currents and rate else 0


def check_memory(session: Session) -> None:
    """Raise `SimulationError` for a run that would take more than half of the free memory."""
    total, free = estimate_memory(session), get_free_memory()
    if total > MAX_MEMORY_FRACTION * free:
        raise SimulationError(
            "memory of the run",
            f"{total / 2**30:.1f} GiB",
            allowed=f"must be at most half of the free {free / 2**30:.1f} GiB",
            remedy="stream it to a file: navsense.record(world, path, duration=...), or navsense run ... -o FILE",
        )


def allocate_like(values: AnyArray, run_shape: tuple[int, ...], length: int) -> AnyArray:
    """Return an empty array (*run_shape, length, ...) in the memory order of a block, so that rows are copied fast."""
    if values.ndim == 2 and values.flags.f_contiguous and not values.flags.c_contiguous:
        return np.empty((*run_shape, values.shape[1], length), dtype=values.dtype).swapaxes(-1, -2)
    return np.empty((*run_shape, length, *values.shape[1:]), dtype=values.dtype)


class BackgroundWorker:
    """A second thread that executes calls in order. Copies to new memory take as long as the measurement.

    If the system cannot start a second thread, the calling thread executes the calls.
    """

    MAX_QUEUED = 16

    def __init__(self) -> None:
        """Start the thread."""
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._started = True
        try:
            self._thread.submit(int)
        except RuntimeError:
            self._started = False
        self._queued: deque[Future[None]] = deque()

    def submit(self, work: Callable[Arguments, None], *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        """Queue a call. Raises the error of an earlier call."""
        if not self._started:
            work(*args, **kwargs)
            return
        self._queued.append(self._thread.submit(work, *args, **kwargs))
        while len(self._queued) > self.MAX_QUEUED:
            self._queued.popleft().result()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        """Wait for the queued calls. Raise the error of a call, unless the `with` statement ends with an error."""
        self._thread.shutdown(wait=True, cancel_futures=kind is not None)
        while kind is None and self._queued:
            self._queued.popleft().result()


class SensorArrays:
    """The arrays of one sensor, with a run axis. Blocks are copied into them in the order of time."""

    def __init__(self, sensor: MountedSensor, length: int, runs: int) -> None:
        """Store the shapes. The first block creates the arrays."""
        self.sensor, self.runs = sensor, runs
        self.time = np.empty(length)
        self.clock_error = np.empty((runs, length))
        self.arrival_after_latency = np.empty((runs, length)) if sensor.latency else None
        self.arrays: dict[str, dict[str, AnyArray]] = {"ideal": {}, "arrays": {}, "bias": {}, "fault": {}}
        self.flags: dict[str, AnyArray] = {}
        self.turn_on: dict[str, AnyArray] = {}

    def copy_rows(self, group: str, name: str, run_index: int | None, first: int, values: AnyArray) -> None:
        """Copy the rows of a block to the row `first`; `run_index` is the index on the run axis, None for all runs."""
        arrays = self.arrays[group]
        if name not in arrays:
            arrays[name] = allocate_like(values, () if run_index is None else (self.runs,), self.time.size)
        target = arrays[name] if run_index is None else arrays[name][run_index]
        target[first : first + values.shape[0]] = values

    def copy_flags(self, run_index: int, first: int, flags: Mapping[str, AnyArray]) -> None:
        """Copy the flags of a block. An array is allocated with the first false value."""
        for name, values in flags.items():
            if name not in self.flags:
                if values.all():
                    continue
                self.flags[name] = np.ones(self.clock_error.shape, dtype=np.bool_)
            self.flags[name][run_index, first : first + values.shape[0]] = values


class RunArrays:
    """The arrays of all sensors, of the ground truth and of the current."""

    def __init__(self, session: Session, *, has_run_axis: bool) -> None:
        """Allocate the arrays whose shape is known. `has_run_axis` is false for a single run."""
        self._session, self._has_run_axis = session, has_run_axis
        self._sensors = {
            sensor.name: SensorArrays(sensor, count_samples(session.duration, sensor.rate), len(session.runs))
            for sensor in session.world.sensors
        }
        common_time = make_ticks(session.start, session.duration, session.truth_rate).time
        self._truth_times = {
            name: motion.list_times(0.0, session.duration) if isinstance(motion, ReceivedMotion) else common_time
            for name, motion in session.link_motions.items()
        }
        self._truth = {
            name: {array: np.empty((time.size, 4 if array == "orientation" else 3)) for array in TRUTH_ARRAYS}
            for name, time in self._truth_times.items()
        }
        self._truth_rows = dict.fromkeys(self._truth, 0)
        self._current: Current | None = None
        self._current_rows = 0

    def copy_ideal(
        self, sensor: MountedSensor, ticks: Ticks, run_index: int | None, ideal: Mapping[str, AnyArray]
    ) -> None:
        """Copy the times and the ideal values of a block, for all runs or for one."""
        sensor_arrays, first = self._sensors[sensor.name], int(ticks.index[0])
        sensor_arrays.time[first : first + len(ticks)] = ticks.time
        for output in sensor.spec.outputs:
            if output.name in ideal:
                sensor_arrays.copy_rows("ideal", output.name, run_index, first, ideal[output.name])

    def copy_block(self, sensor: MountedSensor, ticks: Ticks, run_index: int, block: SensorBlock) -> None:
        """Copy a block of a sensor in one run."""
        sensor_arrays, first = self._sensors[sensor.name], int(ticks.index[0])
        measured, rows = block.measured, slice(first, first + len(ticks))
        sensor_arrays.clock_error[run_index, rows] = block.clock_error
        if sensor_arrays.arrival_after_latency is not None and block.arrival_after_latency is not None:
            sensor_arrays.arrival_after_latency[run_index, rows] = block.arrival_after_latency
        for group, arrays in (("arrays", measured.arrays), ("bias", measured.bias), ("fault", measured.fault)):
            for name, values in arrays.items():
                sensor_arrays.copy_rows(group, name, run_index, first, values)
        for name, row in measured.turn_on_bias.items():
            runs = sensor_arrays.runs
            sensor_arrays.turn_on.setdefault(name, np.empty((runs, *row.shape)))[run_index] = row
        sensor_arrays.copy_flags(run_index, first, get_flags(measured, len(ticks)))

    def copy_truth(self, truth_by_link: Mapping[str, Truth]) -> None:
        """Copy the ground truth of all links for a time slice."""
        for name, truth in truth_by_link.items():
            first = self._truth_rows[name]
            stop = self._truth_rows[name] = first + truth.time.size
            for array in TRUTH_ARRAYS:
                self._truth[name][array][first:stop] = getattr(truth, array)

    def copy_current(self, current: Current | None) -> None:
        """Copy the current of all runs for a time slice."""
        if current is None:
            return
        if self._current is None:
            length, runs = count_current_rows(self._session), current.velocity.shape[0]
            layers = current.layers
            if layers is not None:
                layers = replace(layers, velocity=np.empty((runs, length, len(layers.depths), 3)))
            self._current = replace(current, time=np.empty(length), velocity=np.empty((runs, length, 3)), layers=layers)
        first = self._current_rows
        stop = self._current_rows = first + current.time.size
        self._current.time[first:stop] = current.time
        self._current.velocity[:, first:stop] = current.velocity
        if self._current.layers is not None and current.layers is not None:
            self._current.layers.velocity[:, first:stop] = current.layers.velocity

    def get_current(self) -> Current | None:
        """Return the current, with the run axis if there are several runs, read-only; None if it is not recorded."""
        if self._current is None:
            return None
        make_all_read_only((self._current.time, self._current.velocity))
        if self._current.layers is not None:
            make_read_only(self._current.layers.velocity)
        return self._current if self._has_run_axis else self._current.select_run_by_index(0)

    def get_readings(self) -> dict[str, Reading]:
        """Return the readings of all sensors. Their times and ideal values are read-only."""
        return {name: self._make_reading(arrays) for name, arrays in self._sensors.items()}

    def _make_reading(self, sensor_arrays: SensorArrays) -> Reading:
        """Return the reading of one sensor."""
        sensor, groups = sensor_arrays.sensor, sensor_arrays.arrays
        make_all_read_only((sensor_arrays.time, *groups["ideal"].values()))
        ideal_differs = self._session.differs_between_runs(sensor)

        def select(array: AnyArray) -> AnyArray:
            return array if self._has_run_axis else array[0]

        def select_all(arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
            return {name: select(array) for name, array in arrays.items()}

        clock_error, flags = select(sensor_arrays.clock_error), select_all(sensor_arrays.flags)
        all_set, shape = make_all_true(clock_error.shape), sensor_arrays.clock_error.shape
        # Views that take no memory.
        turn_on = {
            name: np.broadcast_to(bias[:, None], (*shape, *bias.shape[1:]))
            for name, bias in sensor_arrays.turn_on.items()
        }
        return Reading(
            name=sensor.name,
            type=sensor.spec.type,
            frame=sensor.frame,
            unit={output.name: output.unit for output in sensor.spec.outputs},
            time=sensor_arrays.time,
            clock_error=clock_error,
            arrays=select_all(groups["arrays"]),
            ideal=select_all(groups["ideal"]) if ideal_differs else groups["ideal"],
            bias=select_all(groups["bias"]),
            turn_on_bias=select_all(turn_on),
            fault=select_all(groups["fault"]),
            valid=flags.get("valid", all_set),
            emitted=flags.get("emitted", all_set),
            epoch=self._session.epoch,
            arrival_after_latency=None
            if sensor_arrays.arrival_after_latency is None
            else select(sensor_arrays.arrival_after_latency),
            ideal_in_runs=self._has_run_axis and ideal_differs,
        )

    def get_truth(self) -> dict[str, Truth]:
        """Return the truth of all links, read-only."""
        for arrays in self._truth.values():
            make_all_read_only(arrays.values())
        make_all_read_only(self._truth_times.values())
        return {
            name: Truth(name, self._truth_times[name], **arrays, epoch=self._session.epoch)
            for name, arrays in self._truth.items()
        }


def compute_run_arrays(session: Session, *, has_run_axis: bool, progress: Progress | None = None) -> RunArrays:
    """Simulate all runs of a session and return their arrays. A second thread copies the blocks."""
    sensor_runs, run_arrays = session.open_sensor_runs(), RunArrays(session, has_run_axis=has_run_axis)
    with BackgroundWorker() as worker:
        for start, end in session.split_time_slices():
            for sensor in session.world.sensors:
                ticks = make_ticks(start, end, sensor.rate)
                if not len(ticks):
                    continue
                differs, sensor_motion = session.differs_between_runs(sensor), session.sensor_motions[sensor.name]
                ideal = compute_ideal(sensor, sensor_motion, session.get_environment(sensor, 0), ticks)
                worker.submit(run_arrays.copy_ideal, sensor, ticks, 0 if differs else None, ideal)
                for run_index, sensor_run in enumerate(sensor_runs[sensor.name]):
                    if differs and run_index:
                        ideal = compute_ideal(sensor, sensor_motion, session.get_environment(sensor, run_index), ticks)
                        worker.submit(run_arrays.copy_ideal, sensor, ticks, run_index, ideal)
                    worker.submit(run_arrays.copy_block, sensor, ticks, run_index, sensor_run.measure(ticks, ideal))
            worker.submit(run_arrays.copy_truth, session.compute_truth(start, end))
            worker.submit(run_arrays.copy_current, session.compute_current(start, end))
            if progress:
                progress(end, session.duration)
    return run_arrays

"""A run in memory: each array is allocated once and filled time slice by time slice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, Self

import numpy as np

from navsense.core.errors import SimulationError
from navsense.core.series import TRUTH_ARRAYS, Current, Reading, Truth, all_true, make_read_only
from navsense.core.ticks import Ticks, count_samples
from navsense.core.typing import AnyArray
from navsense.sensors.base import get_flags
from navsense.simulation.sensor_run import SensorBlock
from navsense.simulation.session import Session
from navsense.world import MountedSensor

Arguments = ParamSpec("Arguments")

SHARE_OF_FREE_MEMORY = 0.5
"""Largest share of the free memory that a run may need."""


def free_memory() -> float:
    """Return the available memory (bytes), infinite if the system does not report it."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return float(line.split()[1]) * 1024.0
    except OSError:
        pass
    return float("inf")


def needed_memory(session: Session) -> float:
    """Return the memory (bytes) of all arrays of a run: values and errors for each run, truth once."""
    total = count_samples(session.duration, session.truth_rate) * 160.0 * len(session.link_motions)
    layers = session.world.current_topic.layers
    places = 1 + (len(layers.depths) if layers else 0)
    total += count_current_rows(session) * (8.0 + 24.0 * places * len(session.runs))
    for sensor in session.world.sensors:
        axes = sum(output.size for output in sensor.spec.outputs)
        arrival, truths = 1 if sensor.latency else 0, len(session.runs) if session.differs_between_runs(sensor) else 1
        row = 8.0 * (1 + axes * truths) + len(session.runs) * 8.0 * (1 + arrival + 2 * axes)
        total += count_samples(session.duration, sensor.rate) * row
    return total


def count_current_rows(session: Session) -> int:
    """Return the number of rows of the recorded current."""
    rate = session.world.current_topic.rate
    return count_samples(session.duration, rate) if session.currents and rate else 0


def check_memory(session: Session) -> None:
    """Raise `SimulationError` for a run that would take more than half of the free memory."""
    needed, free = needed_memory(session), free_memory()
    if needed > SHARE_OF_FREE_MEMORY * free:
        raise SimulationError(
            "memory of the run",
            f"{needed / 2**30:.1f} GiB",
            allowed=f"must be at most half of the free {free / 2**30:.1f} GiB",
            remedy="stream it to a file: navsense.record(world, path, duration=...), or navsense run ... -o FILE",
        )


def allocate_like(values: AnyArray, lead: tuple[int, ...], length: int) -> AnyArray:
    """Return an empty array (*lead, length, ...) with the memory order of the block, so that rows are copied fast."""
    if values.ndim == 2 and values.flags.f_contiguous and not values.flags.c_contiguous:
        return np.empty((*lead, values.shape[1], length), dtype=values.dtype).swapaxes(-1, -2)
    return np.empty((*lead, length, *values.shape[1:]), dtype=values.dtype)


class BackgroundWorker:
    """A second thread that executes calls in order, because copying to new memory takes as long as measuring.

    If the system cannot start a second thread, the calling thread executes the calls.
    """

    MOST = 16

    def __init__(self) -> None:
        """Start the thread."""
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._started = True
        try:
            self._thread.submit(int)
        except RuntimeError:
            self._started = False
        self._open: deque[Future[None]] = deque()

    def submit(self, work: Callable[Arguments, None], *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        """Queue a call. Raises the error of an earlier call."""
        if not self._started:
            work(*args, **kwargs)
            return
        self._open.append(self._thread.submit(work, *args, **kwargs))
        while len(self._open) > self.MOST:
            self._open.popleft().result()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        """Wait for the queued calls, and raise the error of one unless another error is in flight."""
        self._thread.shutdown(wait=True, cancel_futures=kind is not None)
        while kind is None and self._open:
            self._open.popleft().result()


class SensorArrays:
    """The arrays of one sensor, growing in place along time."""

    def __init__(self, sensor: MountedSensor, length: int, lead: tuple[int, ...]) -> None:
        """Store the shapes. The first block creates the arrays."""
        self.sensor, self.lead = sensor, lead
        self.time = np.empty(length)
        self.clock_error = np.empty((*lead, length))
        self.arrivals = np.empty((*lead, length)) if sensor.latency else None
        self.arrays: dict[str, dict[str, AnyArray]] = {"ideal": {}, "arrays": {}, "bias": {}, "fault": {}}
        self.flags: dict[str, AnyArray] = {}
        self.turn_on: dict[str, AnyArray] = {}

    def put(self, group: str, name: str, number: int | None, first: int, values: AnyArray) -> None:
        """Copy a block of rows; `number` is the index on the run axis, None for all runs."""
        kept = self.arrays[group]
        if name not in kept:
            lead = () if number is None else self.lead
            kept[name] = allocate_like(values, lead, self.time.size)
        target = kept[name] if number is None or not self.lead else kept[name][number]
        target[first : first + values.shape[0]] = values

    def put_turn_on(self, number: int, turn_on: Mapping[str, AnyArray]) -> None:
        """Store the turn-on bias of a run, once."""
        for name, row in turn_on.items():
            kept = self.turn_on.setdefault(name, np.empty((*self.lead, *row.shape)))
            kept[(number,) if self.lead else ()] = row

    def turn_on_biases(self) -> dict[str, AnyArray]:
        """Return the turn-on biases by name as views (*runs, time, axis) that take no memory."""
        shape, runs = (*self.lead, self.time.size), len(self.lead)
        return {
            name: np.broadcast_to(np.expand_dims(rows, runs), (*shape, *rows.shape[runs:]))
            for name, rows in self.turn_on.items()
        }

    def put_flags(self, number: int, first: int, flags: Mapping[str, AnyArray]) -> None:
        """Copy validity and emission; nothing is stored while all are true."""
        for name, values in flags.items():
            if name not in self.flags:
                if values.all():
                    continue
                self.flags[name] = np.ones(self.clock_error.shape, dtype=np.bool_)
            target = self.flags[name][number] if self.lead else self.flags[name]
            target[first : first + values.shape[0]] = values


class RunArrays:
    """All series of a run."""

    def __init__(self, session: Session, lead: tuple[int, ...]) -> None:
        """Allocate the arrays whose shape is known."""
        self._session = session
        self._series = {
            sensor.name: SensorArrays(sensor, count_samples(session.duration, sensor.rate), lead)
            for sensor in session.world.sensors
        }
        length = count_samples(session.duration, session.truth_rate)
        self._truth_time = np.empty(length)
        self._truth = {
            name: {array: np.empty((length, 4 if array == "orientation" else 3)) for array in TRUTH_ARRAYS}
            for name in session.link_motions
        }
        self._truth_rows = 0
        self._current: Current | None = None
        self._current_rows = 0
        self._lead = lead

    def put_ideal(self, sensor: MountedSensor, ticks: Ticks, number: int | None, ideal: Mapping[str, AnyArray]) -> None:
        """Store the times and the ideal values of a block, of all runs or of one."""
        series, first = self._series[sensor.name], int(ticks.index[0])
        series.time[first : first + len(ticks)] = ticks.time
        for output in sensor.spec.outputs:
            if output.name in ideal:
                series.put("ideal", output.name, number, first, ideal[output.name])

    def put_block(self, sensor: MountedSensor, ticks: Ticks, number: int, block: SensorBlock) -> None:
        """Store the block of one run of a sensor."""
        series, first = self._series[sensor.name], int(ticks.index[0])
        target = series.clock_error[number] if series.lead else series.clock_error
        target[first : first + len(ticks)] = block.clock_error
        if series.arrivals is not None and block.arrival is not None:
            target = series.arrivals[number] if series.lead else series.arrivals
            target[first : first + len(ticks)] = block.arrival
        for name, values in block.measured.arrays.items():
            series.put("arrays", name, number, first, values)
        for name, values in block.measured.bias.items():
            series.put("bias", name, number, first, values)
        for kind, rows in block.measured.fault.items():
            series.put("fault", kind, number, first, rows)
        series.put_turn_on(number, block.measured.turn_on_bias)
        series.put_flags(number, first, get_flags(block.measured, len(ticks)))

    def put_truth(self, truths: Mapping[str, Truth]) -> None:
        """Store the truth of all links for a window."""
        first = self._truth_rows
        for name, truth in truths.items():
            stop = first + truth.time.size
            self._truth_time[first:stop] = truth.time
            for array in TRUTH_ARRAYS:
                self._truth[name][array][first:stop] = getattr(truth, array)
            self._truth_rows = stop

    def put_current(self, current: Current | None) -> None:
        """Store the current of all runs for a window."""
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

    def currents(self) -> Current | None:
        """Return the current, with the run axis if there are several runs, read-only; None if it is not recorded."""
        if self._current is None:
            return None
        make_read_only(self._current.time)
        make_read_only(self._current.velocity)
        if self._current.layers is not None:
            make_read_only(self._current.layers.velocity)
        return self._current if self._lead else self._current.of_run(0)

    def readings(self) -> dict[str, Reading]:
        """Return the readings of all sensors; truth is read-only."""
        return {name: self._reading(series) for name, series in self._series.items()}

    def _reading(self, series: SensorArrays) -> Reading:
        sensor = series.sensor
        for array in (series.time, *series.arrays["ideal"].values()):
            make_read_only(array)
        everything = all_true(series.clock_error.shape)
        return Reading(
            name=sensor.name,
            type=sensor.spec.type,
            frame=sensor.frame,
            unit={output.name: output.unit for output in sensor.spec.outputs},
            time=series.time,
            clock_error=series.clock_error,
            arrays=series.arrays["arrays"],
            ideal=series.arrays["ideal"],
            bias=series.arrays["bias"],
            turn_on_bias=series.turn_on_biases(),
            fault=series.arrays["fault"],
            valid=series.flags.get("valid", everything),
            emitted=series.flags.get("emitted", everything),
            epoch=self._session.epoch,
            arrivals=series.arrivals,
            ideal_in_runs=bool(series.lead) and self._session.differs_between_runs(sensor),
        )

    def truths(self) -> dict[str, Truth]:
        """Return the truth of all links, read-only."""
        for arrays in self._truth.values():
            for array in arrays.values():
                make_read_only(array)
        make_read_only(self._truth_time)
        return {
            name: Truth(name, self._truth_time, **arrays, epoch=self._session.epoch)
            for name, arrays in self._truth.items()
        }

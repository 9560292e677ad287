"""A mounted sensor in one run: its random draws, its state and its stamps, advanced block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from navsense.clock import ArrivalTimes, Clock, ClockRealisation, SensorClock
from navsense.core.errors import FieldError, NavsenseError, SensorError, SimulationError
from navsense.core.random_streams import Draws
from navsense.core.readings import ON, RATE, Reading, RunChange, make_all_read_only, make_read_only
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, BoolArray, FloatArray, Times
from navsense.environment.base import Environment
from navsense.faults.injection import apply_faults, init_faults
from navsense.faults.schedule import (
    EmissionMask,
    UsesBottomEchoes,
    compute_fault_offsets,
    list_fault_input_arrays,
)
from navsense.motion.base import Motion
from navsense.sensors import SENSORS
from navsense.sensors.base import (
    Measurement,
    SupportsAdjustment,
    check_ideal_values,
    check_measurement,
    get_flags,
    repeat_rows,
)
from navsense.world import MountedSensor, World

UNDEFINED_FIELD_REMEDY = "check the position of the model at this time: its motion, and <spherical_coordinates>"
"""Remedy for a sensor at a point where a field is undefined."""

_VALID = "valid"
"""Name of the validity among the arrays of fault injection. A stuck sensor repeats its validity too."""


@dataclass(frozen=True, eq=False)
class SensorBlock:
    """The result of one sensor for a block of ticks in one run.

    clock_error: (n,) s.
    arrival_after_latency: (n,) s, true times at which the receiver gets the samples; None without latency.
    """

    measured: Measurement
    clock_error: FloatArray
    arrival_after_latency: FloatArray | None = None


class SensorRun:
    """One mounted sensor in one run. `measure` advances its state."""

    def __init__(
        self,
        sensor: MountedSensor,
        clock: Clock | None,
        seed: int,
        run: int,
        *,
        prefetch: int = 0,
        clock_realisation: ClockRealisation | None = None,
        start: float = 0.0,
    ) -> None:
        """Draw the initial state. The keys of the random streams are (run, "sensor", name, channel, process).

        prefetch: samples whose random numbers are drawn together.
        clock_realisation: that of the clock in this run, which the sensors of the clock share.
        start: s; samples before it are not published.
        """
        self.sensor, self._start = sensor, start
        self._draws = Draws(sensor.spec.processes(), seed, (run, "sensor", sensor.name), prefetch=prefetch)
        self.state = sensor.spec.init(self._draws.initial)
        self._clock = SensorClock(clock, sensor.name, seed, run, prefetch=prefetch, realisation=clock_realisation)
        self._arrival_times = (
            ArrivalTimes(sensor.latency, sensor.name, seed, run, prefetch=prefetch) if sensor.latency else None
        )
        self._fault_draws = Draws(sensor.faults.processes(), seed, (run, "fault", sensor.name), prefetch=prefetch)
        self._faults = init_faults(sensor.faults, self._fault_draws.initial)
        self._is_unchecked = not _is_built_in(sensor)
        self._rate_selection: RateSelection | None = None

    def measure(self, ticks: Ticks, ideal: Mapping[str, AnyArray]) -> SensorBlock:
        """Measure the next block, and select the samples to publish. `ticks` must follow those of the last call.

        Raises as `measure_all` does.
        """
        block = self.measure_all(ticks, ideal)
        if self.publishes_all(ticks.time):
            return block
        emitted = self.select(ticks, get_flags(block.measured, len(ticks))["emitted"])
        return replace(block, measured=block.measured._replace(emitted=emitted))

    def measure_all(self, ticks: Ticks, ideal: Mapping[str, AnyArray]) -> SensorBlock:
        """Measure the next block of a sensor that is always on. `ticks` must follow those of the last call.

        Raises `SensorError` for an exception in the methods of a user's sensor. Raises it also if the arrays of the
        first block do not have the names and shapes of its outputs.
        """
        draws, owner = self._draws.take(len(ticks)), f" of sensor {self.sensor.name}"
        if self._is_unchecked:
            check_ideal_values(self.sensor.spec.outputs, ideal, len(ticks), owner)
        try:
            if self.sensor.faults.has_faults:
                measured = self._measure_with_faults(ticks, ideal, draws)
            else:
                self.state, measured = self.sensor.spec.measure(self.state, ticks, ideal, draws)
        except NavsenseError:
            raise
        except Exception as error:
            raise _map_user_error(self.sensor, "measure", error) from error
        if self._is_unchecked:
            check_measurement(self.sensor.spec.outputs, measured, len(ticks), owner)
            self._is_unchecked = False
        arrival_after_latency = None
        if self._arrival_times:
            emitted = get_flags(measured, len(ticks))["emitted"]
            arrival_after_latency = self._arrival_times.compute_arrivals(ticks.time, emitted)
        return SensorBlock(measured, self._clock.compute_errors(ticks.time), arrival_after_latency)

    def publishes_all(self, time: Times) -> bool:
        """Return True if the switches, the rate and the start of the run leave out no sample at instants (n,) s."""
        is_running = self._start == 0.0 or bool(time.size and time[0] >= self._start)
        return is_running and self._rate_selection is None and self.sensor.is_always_on

    def select(self, ticks: Ticks, emitted: BoolArray) -> BoolArray:
        """Return which samples (n,) of those that the instrument emits are published.

        Published are samples from the start of the run on, while the sensor is on, at the rate of publication. Calls
        must be consecutive in time.
        """
        emitted = emitted & (ticks.time >= self._start) & self.sensor.compute_on(ticks.time)
        return emitted if self._rate_selection is None else self._rate_selection.select(ticks, emitted)

    def change(self, change: RunChange) -> None:
        """Change the sensor from the next block on, which starts at the time of the change.

        Raises as `change_sensor` does.
        """
        self.sensor = change_sensor(self.sensor, change)
        if change.property == RATE:
            self._rate_selection = RateSelection(get_number(change))

    def _measure_with_faults(self, ticks: Ticks, inputs: Mapping[str, AnyArray], draws: FloatArray) -> Measurement:
        """Measure a block with injected faults.

        The scheduled faults of some sensors act on the input of `measure`: lost lock of a DVL or an ADCP
        (`UsesBottomEchoes`), biases and spikes of the arrays from which a sensor derives others (`HasDerivedArrays`).
        """
        faults, spec, before = self.sensor.faults, self.sensor.spec, self.state
        fault_input_arrays: tuple[str, ...] = ()
        if faults.scheduled:
            fault_input_arrays = list_fault_input_arrays(spec)
            if isinstance(spec, UsesBottomEchoes):
                inputs = spec.remove_bottom_echoes(inputs, faults.schedule.find_lost_lock(ticks))
        self.state, measured = spec.measure(before, ticks, inputs, draws)
        if fault_input_arrays:
            # Faults count published ticks, which are known only after a measurement and do not depend on its values.
            # So the block is measured a second time, with the offsets of the faults.
            emitted = get_flags(measured, len(ticks))["emitted"]
            mask = EmissionMask.from_ticks(ticks, emitted, self._faults.last_emitted_tick)
            shapes = {output.name: output.shape for output in spec.outputs if output.name in fault_input_arrays}
            if offsets := compute_fault_offsets(faults.schedule.find_active(mask), shapes):
                self.state, measured = spec.measure(before, ticks, {**inputs, **offsets}, draws)
        flags = get_flags(measured, len(ticks))
        self._faults, arrays, fault = apply_faults(
            faults,
            self._faults,
            ticks,
            self._fault_draws.take(len(ticks)),
            {**measured.arrays, _VALID: flags["valid"]},
            flags["emitted"],
            fault_input_arrays,
        )
        is_present = ~fault["dropout"]
        valid = arrays.pop(_VALID) & is_present
        return measured._replace(arrays=arrays, valid=valid, emitted=flags["emitted"] & is_present, fault=fault)


class RateSelection:
    """Selects the samples to publish at a lower rate than that of the measurements.

    Of the samples that a sensor would publish in each period (n / rate, (n + 1) / rate), the first one is published.
    Its errors and stamps do not change.
    """

    def __init__(self, rate: float) -> None:
        """Publish the next sample. `rate` is in Hz."""
        self._rate, self._last_period = rate, -1

    def select(self, ticks: Ticks, emitted: BoolArray) -> BoolArray:
        """Return which of the samples (n,) are published. Calls must be consecutive in time."""
        rows = np.flatnonzero(emitted)
        periods = np.floor(ticks.index[rows] * (self._rate / ticks.rate) + _PERIOD_TOLERANCE).astype(np.int64)
        before = np.concatenate([[self._last_period], periods[:-1]])
        selected = np.zeros(emitted.shape, dtype=np.bool_)
        selected[rows] = (periods > before)[: rows.size]
        if periods.size:
            self._last_period = int(periods[-1])
        return selected


_PERIOD_TOLERANCE = 1e-9
"""Part of a period by which a sample may be early, because the rates are rounded."""


def change_sensor(sensor: MountedSensor, change: RunChange) -> MountedSensor:
    """Return a sensor after a change that switches it or sets one of its arrays. The rate is that of the measurements.

    Raises `SimulationError` for a sensor without adjustable arrays, another rate, and a value of a wrong type. Raises
    `SensorError` for another array or an invalid value.
    """
    if change.property == ON:
        if not isinstance(change.value, bool):
            raise SimulationError(f"{ON} of {change.name}", change.value, allowed="must be True or False")
        return sensor.switch(change.time, on=change.value, start=change.time)
    value = get_number(change)
    if change.property == RATE:
        if not 0.0 < value <= sensor.rate:
            allowed = f"must be above 0 and at most {sensor.rate:g}, the rate of its measurements"
            raise SimulationError(f"rate of {sensor.name} (Hz)", value, allowed=allowed)
        return sensor
    if not isinstance(sensor.spec, SupportsAdjustment):
        allowed = f"cannot be set: a sensor {sensor.spec.type} has no adjustable array"
        raise SimulationError(f"array {change.property!r} of {sensor.name}", value, allowed=allowed)
    return replace(sensor, spec=sensor.spec.adjust(change.property, value))


def get_number(change: RunChange) -> float:
    """Return the value of a change that is a number. Raises `SimulationError` for another one."""
    if isinstance(change.value, bool | tuple):
        raise SimulationError(f"{change.property} of {change.name}", change.value, allowed="must be a number")
    return change.value


def compute_ideal(
    sensor: MountedSensor, motion: Motion, environment: Environment, ticks: Ticks
) -> Mapping[str, AnyArray]:
    """Return the sensor's ideal values, read-only.

    Raises `FieldError` and `SensorError` with the sensor's name, its location in the file and the instant.
    """
    try:
        ideal = sensor.spec.ideal(motion, environment, ticks)
        make_all_read_only(ideal.values())
    except (FieldError, SensorError) as error:
        raise _locate_error(sensor, motion, environment, ticks, error) from error
    except NavsenseError:
        raise
    except Exception as error:
        raise _map_user_error(sensor, "ideal", error) from error
    return ideal


def _is_built_in(sensor: MountedSensor) -> bool:
    """Return True for a sensor of navsense. The tests check its arrays and its exceptions."""
    return type(sensor.spec) in SENSORS


def _map_user_error(sensor: MountedSensor, method: str, error: Exception) -> Exception:
    """Return an exception of a user's sensor as a `SensorError`; one of navsense, which is a defect, unchanged."""
    if _is_built_in(sensor):
        return error
    what, value = f"sensor {sensor.name}: method `{method}`", f"{type(error).__name__}: {error}"
    return SensorError(
        what, value, allowed="must not raise", where=sensor.where, remedy="correct the class of the sensor"
    )


def _locate_error(
    sensor: MountedSensor, motion: Motion, environment: Environment, ticks: Ticks, error: FieldError | SensorError
) -> FieldError | SensorError:
    """Return an error of the ideal values of a block with the instant of the first tick that has it."""
    first, stop = 0, len(ticks)
    # The row of a field's error may not be a tick, so the tick is found by bisection. It is in [first, stop).
    while stop - first > 1:
        middle = (first + stop) // 2
        try:
            sensor.spec.ideal(motion, environment, replace(ticks, index=ticks.index[first:middle]))
            first = middle
        except (FieldError, SensorError) as earlier_error:
            stop, error = middle, earlier_error
    subject = f"sensor {sensor.name}" + (f" at t = {ticks.time[first]:.9g} s" if len(ticks) else "")
    where = error.where or sensor.where
    if isinstance(error, FieldError):
        remedy = error.remedy or UNDEFINED_FIELD_REMEDY
        return FieldError(
            f"{subject}: {error.quantity}", error.value, allowed=error.allowed, where=where, remedy=remedy
        )
    return SensorError(f"{subject}: {error.what}", error.value, allowed=error.allowed, where=where, remedy=error.remedy)


def make_reading(
    sensor: MountedSensor, ticks: Ticks, ideal: Mapping[str, AnyArray], block: SensorBlock, epoch: int
) -> Reading:
    """Return the reading of a block."""
    measured, unit = block.measured, sensor.unit
    flags = get_flags(measured, len(ticks))
    # A live step makes a reading per sensor. Without `__init__` this is faster.
    reading = object.__new__(Reading)
    reading.__dict__.update(
        name=sensor.name,
        type=sensor.spec.type,
        frame=sensor.frame,
        unit=unit,
        time=make_read_only(ticks.time),
        clock_error=block.clock_error,
        arrays=measured.arrays,
        ideal={name: ideal[name] for name in unit if name in ideal},  # `unit` has the outputs; no signals
        bias=dict(measured.bias),
        turn_on_bias=repeat_rows(measured.turn_on_bias, len(ticks)),
        fault=dict(measured.fault),
        valid=flags["valid"],
        emitted=flags["emitted"],
        epoch=epoch,
        arrival_after_latency=block.arrival_after_latency,
    )
    return reading


def index_clocks(world: World) -> Mapping[str, Clock]:
    """Return the world's clocks by full name."""
    return {clock.name: clock for clock in world.clocks}

"""Scheduled faults of a sensor: fault injection at given times.

| kind | effect for start <= t < end |
|---|---|
| `dropout` | values are NaN and not valid; no message |
| `stuck` | the sensor repeats the last sample that it emitted |
| `bias` | `value` is added to `array` |
| `spike` | `value` is added to one sample of `array` at `start`, repeated every `period` s |
| `lost_lock` | there are no echoes from the bottom |

t is true time (s). Values are SI: one number, or one per axis. If a sensor derives other arrays from `array`
(`HasDerivedArrays`), a bias or spike also changes these.

Spikes are at s_k = start + k period, k = 0, 1, ... A sample emitted at t after one emitted at u contains the spikes
with u < s_k <= t; several of them add `value` once. If the sensor emits nothing at a tick (a DVL between pings), the
spike appears in the next sample before `end`. A dropout or a stuck sensor hides the spikes of its samples.

`reading.fault[kind]` is true on the rows on which a fault of this kind acts. Random faults are included. A spike is
marked on the row that contains it, and on no other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from navsense.core.errors import SensorError, Where
from navsense.core.field_metadata import NOT_IN_FILE
from navsense.core.readings import FAULT_BITS
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, BoolArray, FloatArray, Times
from navsense.core.validation import validate_types

ADDITIVE_KINDS = ("bias", "spike")
"""Kinds that add a value to an array."""

MAX_VALUE = 1e12
"""Largest rate (1/s), time and duration (s)."""

ROUNDING = 2.0**-50
"""Largest relative rounding error of a sum of two doubles."""


@dataclass(frozen=True)
class ScheduledFault:
    """One scheduled fault.

    kind: one of `FAULT_BITS`.
    start, end: true time (s).
    array, value: the array that a bias or spike changes, and the added value (SI): one number or one per axis.
    period: interval of repeated spikes (s), 0 for a single spike.
    where: place of the declaration.

    Raises `SensorError` for an unknown kind, invalid times, and a value that is missing or not finite.

    >>> spike = ns.faults.ScheduledFault("spike", start=1.0, period=0.5, array="pressure", value=(200.0,))
    >>> faults = ns.faults.Faults(scheduled=(spike,))
    >>> try:
    ...     ns.faults.ScheduledFault("bias", start=1.0)
    ... except ns.NavsenseError as error:
    ...     print(error)
    array of a bias: missing; must name an array of the sensor
    """

    kind: str
    start: float
    end: float = math.inf
    array: str = ""
    value: tuple[float, ...] = field(default=(), metadata=NOT_IN_FILE)
    period: float = 0.0
    where: Where | None = field(default=None, metadata=NOT_IN_FILE)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        validate_types(self, "of a fault")
        object.__setattr__(self, "value", tuple(self.value))
        if self.kind not in FAULT_BITS:
            raise self._error("kind of a fault", self.kind or "missing", f"must be one of {', '.join(FAULT_BITS)}")
        if not (abs(self.start) <= MAX_VALUE and self.end > self.start):
            allowed = f"must be from a finite time, of at most {MAX_VALUE:g} s, to a later one"
            raise self._error(f"times of a {self.kind} (s)", f"{self.start:g} to {self.end:g}", allowed)
        if not (0.0 <= self.period < math.inf) or (self.period > 0.0 and self.kind != "spike"):
            allowed = "must be finite and >= 0; only spikes have a period"
            raise self._error(f"period of a {self.kind} (s)", self.period, allowed)
        if self.kind not in ADDITIVE_KINDS:
            allowed = f"must be absent; only {' and '.join(ADDITIVE_KINDS)} have an array and a value"
            for name, value in (("array", self.array), ("value", _format_numbers(self.value))):
                if value:
                    raise self._error(f"{name} of a {self.kind}", value, allowed)
        elif not self.array:
            raise self._error(f"array of a {self.kind}", "missing", "must name an array of the sensor")
        elif not self.value:
            raise self._error(f"value of a {self.kind}", "missing", "must be one number, or one per axis")
        if not all(math.isfinite(part) for part in self.value):
            raise self._error(f"value of a {self.kind}", _format_numbers(self.value), "must be finite")

    def _error(self, what: str, value: object, allowed: str) -> SensorError:
        return SensorError(what, value, allowed=allowed, where=self.where)

    def find_rows(self, emissions: EmissionMask) -> BoolArray:
        """Return the rows (n,) on which the fault acts."""
        time = emissions.ticks.time
        inside = (time >= self.start) & (time < self.end)
        if self.kind != "spike":
            return inside
        inside &= emissions.emitted
        if self.period * emissions.ticks.rate > 1.0 or not self.period:
            inside &= self._count_spikes(time) > self._count_spikes(emissions.last_time)
        return inside

    def _count_spikes(self, time: Times) -> FloatArray:
        """Return the number of spikes (n,) until the times (n,) s, 0 before the start of the run."""
        started = (time >= 0.0) & (time >= self.start)
        if not self.period:
            return started.astype(np.float64)
        slack = ROUNDING * np.maximum(np.abs(time), abs(self.start))  # 0.1 + 2 x 0.1 is above 0.3
        return np.where(started, np.floor((time - self.start + slack) / self.period) + 1.0, 0.0)


def _format_numbers(value: Sequence[float]) -> str:
    """Return the value of a fault as it is written in a file."""
    return " ".join(f"{number:g}" for number in value)


class EmissionMask(NamedTuple):
    """Which ticks of a sensor have a sample.

    ticks: the ticks (n,).
    emitted (n,): true where the sensor emits a sample.
    last_time (n,): time (s) of the last sample before each tick, negative before the first sample.
    last_tick: last tick with a sample, negative before the first.
    """

    ticks: Ticks
    emitted: BoolArray
    last_time: FloatArray
    last_tick: int

    @staticmethod
    def from_ticks(ticks: Ticks, emitted: BoolArray, last_tick: int = -1) -> EmissionMask:
        """Return the mask of the next ticks of a sensor whose last sample was at `last_tick`."""
        latest = np.maximum.accumulate(np.concatenate(([last_tick], np.where(emitted, ticks.index, last_tick))))
        return EmissionMask(ticks, emitted, latest[:-1] / ticks.rate, int(latest[-1]))


OFFSET_SUFFIX = "_off"
"""Suffix of the arrays that hold the values to add to the `fault_input_arrays` of a `HasDerivedArrays`."""


@runtime_checkable
class HasDerivedArrays(Protocol):
    """A sensor that adds injected biases and spikes itself, to arrays from which it derives others.

    Examples of `fault_input_arrays` are velocities along beams, a pressure, a range. `measure` receives the values to
    add as arrays with the suffix `OFFSET_SUFFIX`.
    """

    fault_input_arrays: ClassVar[tuple[str, ...]]


@runtime_checkable
class UsesBottomEchoes(Protocol):
    """A sensor that receives echoes from the bottom."""

    def remove_bottom_echoes(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return the input of `measure` without the bottom echoes of some rows (n,). The ideal reading is unchanged."""
        ...


def check_fault(spec: object, outputs: Mapping[str, tuple[int, ...]], fault: ScheduledFault) -> None:
    """Raise `SensorError` for a fault that a sensor cannot have. `outputs` is the shape of a row of each array."""
    if fault.kind == "lost_lock" and not isinstance(spec, UsesBottomEchoes):
        raise SensorError("kind of a fault", "lost_lock", allowed="requires a DVL or an ADCP", where=fault.where)
    if fault.kind not in ADDITIVE_KINDS:
        return
    if fault.array not in outputs:
        allowed = f"must be one of {', '.join(outputs)}"
        raise SensorError(f"array of a {fault.kind}", fault.array, allowed=allowed, where=fault.where)
    shape = outputs[fault.array]
    counts = dict.fromkeys((1, *shape[-1:], math.prod(shape)))
    if len(fault.value) not in counts:
        one, *more = counts
        allowed = f"must be one number{''.join(f', or {count}' for count in more if count > one)}"
        what = f"value of a {fault.kind}"
        raise SensorError(what, _format_numbers(fault.value), allowed=allowed, where=fault.where)


ActiveFaults = Sequence[tuple[ScheduledFault, BoolArray]]
"""Scheduled faults, each with the rows (n,) on which it acts."""


@dataclass(frozen=True, eq=False)
class FaultSchedule:
    """The scheduled faults of one sensor. A query evaluates only the faults of its time span.

    >>> from navsense.core.ticks import Ticks
    >>> schedule = ns.faults.FaultSchedule((ns.faults.ScheduledFault("lost_lock", start=1.0, end=2.0),))
    >>> schedule.find_lost_lock(Ticks(np.arange(4), 1.0))
    array([False,  True, False, False])
    """

    faults: tuple[ScheduledFault, ...]

    @cached_property
    def _spans(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Starts and ends (s) (k,), and whether the fault is a single spike, which ends with its sample (k,)."""
        starts, ends = (np.array([getattr(fault, name) for fault in self.faults]) for name in ("start", "end"))
        single = [fault.kind == "spike" and not fault.period for fault in self.faults]
        return starts, ends, np.array(single, dtype=np.bool_)

    def find_active(self, emissions: EmissionMask) -> ActiveFaults:
        """Return the faults that act on some rows, each with these rows (n,)."""
        time, before = emissions.ticks.time, emissions.last_time
        if not (time.size and self.faults):
            return []
        starts, ends, single = self._spans
        over = single & (starts <= before[0]) & (before[0] >= 0.0)
        candidates = (starts <= time[-1]) & (ends > time[0]) & ~over
        found = ((self.faults[k], self.faults[k].find_rows(emissions)) for k in np.flatnonzero(candidates))
        return [(fault, rows) for fault, rows in found if rows.any()]

    def find_lost_lock(self, ticks: Ticks) -> BoolArray:
        """Return the rows (n,) without echoes from the bottom."""
        emissions = EmissionMask.from_ticks(ticks, np.ones(len(ticks), dtype=np.bool_))
        return find_rows_of_kind(self.find_active(emissions), "lost_lock", len(ticks))


def add_offset(name: str, array: FloatArray, ideal: Mapping[str, AnyArray]) -> FloatArray:
    """Return the array `name` (n, ...) plus its offset in `ideal`, if there is one."""
    offset = ideal.get(f"{name}{OFFSET_SUFFIX}")
    return array if offset is None else array + offset


def list_fault_input_arrays(spec: object) -> tuple[str, ...]:
    """Return the `fault_input_arrays` of a sensor, none if it is not `HasDerivedArrays`."""
    return spec.fault_input_arrays if isinstance(spec, HasDerivedArrays) else ()


def compute_fault_offsets(active: ActiveFaults, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, AnyArray]:
    """Return the sums of biases and spikes of `fault_input_arrays`, by name with `OFFSET_SUFFIX`.

    `shapes` is the shape of a row of each of these arrays.
    """
    own = [(fault, rows) for fault, rows in active if fault.array in shapes]
    zeros = {fault.array: np.zeros((rows.size, *shapes[fault.array])) for fault, rows in own}
    return {f"{name}{OFFSET_SUFFIX}": array for name, array in apply_offsets(own, zeros).items()}


def apply_offsets(active: ActiveFaults, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays (n, ...) with all biases and spikes added."""
    changed = {fault.array: arrays[fault.array].copy() for fault, _ in active if fault.kind in ADDITIVE_KINDS}
    for fault, rows in active:
        if fault.kind in ADDITIVE_KINDS:
            shape = changed[fault.array].shape[1:]
            is_full = len(fault.value) == math.prod(shape)  # otherwise one number, or one per element of the last axis
            changed[fault.array][rows] += np.reshape(fault.value, shape) if is_full else np.array(fault.value)
    return {**arrays, **changed}


def find_rows_of_kind(active: ActiveFaults, kind: str, count: int) -> BoolArray:
    """Return the rows (n,) on which a fault of a kind acts."""
    out = np.zeros(count, dtype=np.bool_)
    for fault, rows in active:
        if fault.kind == kind:
            out |= rows
    return out

"""Faults of a sensor on purpose: known ones, at known times, which a robot's software has to live through.

| kind | what the sensor does for start <= t < end |
|---|---|
| `dropout` | it says nothing: NaN, not valid, no message |
| `stuck` | it repeats what it last emitted |
| `bias` | `array` is off by `value`; where it makes others of it (`HasDerivedArrays`) these are too |
| `spike` | `array` is off by `value` in one sample: the first told from `start`, and again every `period` s |
| `lost_lock` | its echoes from the bottom do not come back |

t is true time (s), values are SI, a number or one an axis. Of spikes at s_k = start + k period, k = 0, 1, ..., a sample
told at t after one told at u has those with u < s_k <= t: it is struck once, however many they are. A tick at which the
sensor tells nothing (a DVL between pings) so leaves them to the next that it tells, if that is before the end. A sample
that drops out, or of which a stuck sensor shows another, takes its spike with it.

`reading.fault[kind]` is true on the rows on which a fault of this kind acts. Random faults are included. A spike is
marked on the row that contains it, and on no other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from navsense.errors import SensorError, Where
from navsense.series import FAULT_BITS
from navsense.ticks import Ticks
from navsense.typing import AnyArray, BoolArray, FloatArray, Times
from navsense.validation import validate_types

ADDITIVE_KINDS = ("bias", "spike")
"""Kinds that put an array off."""

MAX_VALUE = 1e12
"""Rates (1/s), times and durations (s) beyond this are a mistake."""

ROUNDING = 2.0**-50
"""What a sum of doubles is off by at most, as a share of the largest of them."""


@dataclass(frozen=True)
class ScheduledFault:
    """One fault on purpose: its kind, from when to when (s), and what `bias` and `spike` do to which array.

    Raises `SensorError` for an unknown kind, times that are none, and values that are missing or not finite.
    """

    kind: str
    start: float
    end: float = math.inf
    array: str = ""
    value: tuple[float, ...] = ()
    period: float = 0.0
    where: Where | None = None

    def __post_init__(self) -> None:
        """Refuse what is no fault."""
        validate_types(self, "of a fault")
        object.__setattr__(self, "value", tuple(self.value))
        if self.kind not in FAULT_BITS:
            raise self._error("kind of a fault", self.kind or "missing", f"must be one of {', '.join(FAULT_BITS)}")
        if not (abs(self.start) <= MAX_VALUE and self.end > self.start):
            finite = "must be from a finite time to a later one"
            allowed = f"{finite}, of at most {MAX_VALUE:g} s" if math.isfinite(self.start) else finite
            raise self._error(f"times of a {self.kind} (s)", (self.start, self.end), allowed)
        if not (0.0 <= self.period < math.inf) or (self.period > 0.0 and self.kind != "spike"):
            allowed = "must be finite, not negative, and 0 but for spikes"
            raise self._error(f"period of a {self.kind} (s)", self.period, allowed)
        adds = self.kind in ADDITIVE_KINDS
        if adds != bool(self.array) or adds != bool(self.value):
            allowed = "must name an array and a value" if adds else "must have no array and no value"
            raise self._error(f"a {self.kind}", (self.array, self.value), allowed)
        if not all(math.isfinite(part) for part in self.value):
            raise self._error(f"value of a {self.kind}", self.value, "must be finite")

    def _error(self, what: str, value: object, allowed: str) -> SensorError:
        return SensorError(what, value, allowed=allowed, where=self.where)

    def find_rows(self, emissions: EmissionMask) -> BoolArray:
        """Return the rows (n,) on which it acts."""
        time = emissions.ticks.time
        inside = (time >= self.start) & (time < self.end)
        if self.kind != "spike":
            return inside
        inside &= emissions.emitted
        if self.period * emissions.ticks.rate > 1.0 or not self.period:
            inside &= self._count_spikes(time) > self._count_spikes(emissions.last_time)
        return inside

    def _count_spikes(self, time: Times) -> FloatArray:
        """Return how many spikes (n,) are not later than some times (n,) s; none before the run's start."""
        known = (time >= 0.0) & (time >= self.start)
        if not self.period:
            return known.astype(np.float64)
        slack = ROUNDING * np.maximum(np.abs(time), abs(self.start))  # what 0.1 + 2 x 0.1 is above 0.3
        return np.where(known, np.floor((time - self.start + slack) / self.period) + 1.0, 0.0)


class EmissionMask(NamedTuple):
    """Ticks of a sensor, at which of them it tells something (n,), and when it last did before each (n,) s.

    `last` is the last tick at which it did; before the first both are negative.
    """

    ticks: Ticks
    emitted: BoolArray
    last_time: FloatArray
    last_tick: int

    @staticmethod
    def from_ticks(ticks: Ticks, emitted: BoolArray, last_tick: int = -1) -> EmissionMask:
        """Return it for the next ticks of a sensor that last told something at tick `last`."""
        latest = np.maximum.accumulate(np.concatenate(([last_tick], np.where(emitted, ticks.index, last_tick))))
        return EmissionMask(ticks, emitted, latest[:-1] / ticks.rate, int(latest[-1]))


OFFSET_SUFFIX = "_off"
"""Ends the names of what is put on the arrays of a `HasDerivedArrays`, among what its errors depend on."""


@runtime_checkable
class HasDerivedArrays(Protocol):
    """A sensor that makes some of its arrays of others, which it hears: along beams, as a pressure, as a range.

    A bias or spike of what is heard is handed to it, by the array's name with `OFF`, and goes into what it makes.
    """

    source_arrays: ClassVar[tuple[str, ...]]


@runtime_checkable
class UsesBottomEchoes(Protocol):
    """A sensor that lives on echoes from the bottom."""

    def remove_bottom_echoes(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return what its errors start from, without the echoes of some rows (n,); what is true stays."""
        ...


def check_fault(spec: object, outputs: Mapping[str, tuple[int, ...]], fault: ScheduledFault) -> None:
    """Raise `SensorError` for a fault that a sensor with these arrays (name: shape of a row) cannot have."""
    if fault.kind == "lost_lock" and not isinstance(spec, UsesBottomEchoes):
        raise SensorError("lost_lock", type(spec).__name__, allowed="is of a DVL or an ADCP", where=fault.where)
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
        raise SensorError(f"value of a {fault.kind}", fault.value, allowed=allowed, where=fault.where)


ActiveFaults = Sequence[tuple[ScheduledFault, BoolArray]]
"""Faults with the rows (n,) on which each acts."""


@dataclass(frozen=True, eq=False)
class FaultSchedule:
    """Faults of one sensor on purpose, any number of them, of which only those near in time are looked at."""

    faults: tuple[ScheduledFault, ...]

    @cached_property
    def _spans(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Starts and ends (s), and whether it is a lone spike, which is over once it has struck (k,) each."""
        starts, ends = (np.array([getattr(one, name) for one in self.faults]) for name in ("start", "end"))
        return starts, ends, np.array([one.kind == "spike" and not one.period for one in self.faults], dtype=np.bool_)

    def find_active(self, emissions: EmissionMask) -> ActiveFaults:
        """Return those that act on some rows, each with the rows (n,)."""
        time, before = emissions.ticks.time, emissions.last_time
        if not (time.size and self.faults):
            return []
        starts, ends, lone = self._spans
        over = lone & (starts <= before[0]) & (before[0] >= 0.0)
        near = (starts <= time[-1]) & (ends > time[0]) & ~over
        found = ((self.faults[k], self.faults[k].find_rows(emissions)) for k in np.flatnonzero(near))
        return [(one, rows) for one, rows in found if rows.any()]

    def find_lost_lock(self, ticks: Ticks) -> BoolArray:
        """Return the rows (n,) that have no echo from the bottom."""
        everything = np.ones(len(ticks), dtype=np.bool_)
        return find_rows_of_kind(self.find_active(EmissionMask.from_ticks(ticks, everything)), "lost_lock", len(ticks))


def add_offset(name: str, array: FloatArray, ideal: Mapping[str, AnyArray]) -> FloatArray:
    """Return an array (n, ...) that a sensor hears, with what is put on it among the values that errors depend on."""
    off = ideal.get(f"{name}{OFFSET_SUFFIX}")
    return array if off is None else array + off


def list_source_arrays(spec: object) -> tuple[str, ...]:
    """Return the arrays that a sensor hears, none where it is not `HasDerivedArrays`."""
    return spec.source_arrays if isinstance(spec, HasDerivedArrays) else ()


def compute_source_offsets(active: ActiveFaults, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, AnyArray]:
    """Return what is put on arrays that are heard (name: shape of a row), by their names with `OFF`."""
    mine = [(one, rows) for one, rows in active if one.array in shapes]
    still = {one.array: np.zeros((rows.size, *shapes[one.array])) for one, rows in mine}
    return {f"{name}{OFFSET_SUFFIX}": array for name, array in apply_offsets(mine, still).items()}


def apply_offsets(active: ActiveFaults, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays (n, ...) with all biases and spikes on them."""
    moved = {one.array: arrays[one.array].copy() for one, _ in active if one.kind in ADDITIVE_KINDS}
    for one, rows in active:
        if one.kind in ADDITIVE_KINDS:
            shape = moved[one.array].shape[1:]
            whole = len(one.value) == math.prod(shape)  # else one number, or one along the last axis
            moved[one.array][rows] += np.reshape(one.value, shape) if whole else np.array(one.value)
    return {**arrays, **moved}


def find_rows_of_kind(active: ActiveFaults, kind: str, count: int) -> BoolArray:
    """Return the rows (n,) on which one of a kind acts."""
    rows = np.zeros(count, dtype=np.bool_)
    for one, its in active:
        if one.kind == kind:
            rows |= its
    return rows

"""Faults of a sensor on purpose: known ones, at known times, which a robot's software has to live through.

| kind | what the sensor does for start <= t < end |
|---|---|
| `dropout` | it says nothing: NaN, not valid, no message |
| `stuck` | it repeats what it last emitted |
| `bias` | `array` is off by `value`; where it makes others of it (`Hearing`) these are too |
| `spike` | `array` is off by `value` in one sample: the first told from `start`, and again every `period` s |
| `lost_lock` | its echoes from the bottom do not come back |

t is true time (s), values are SI, a number or one an axis. Of spikes at s_k = start + k period, k = 0, 1, ..., a sample
told at t after one told at u has those with u < s_k <= t: it is struck once, however many they are. A tick at which the
sensor tells nothing (a DVL between pings) so leaves them to the next that it tells, if that is before the end. A sample
that drops out, or of which a stuck sensor shows another, takes its spike with it.

What acts on a row is told by `FAULT` among a reading's hidden errors, the sum of `BITS`; faults by chance are in it
too. A spike is told on the row that shows it, and on no other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from navsense.errors import SensorError, Where
from navsense.fields import refuse_types
from navsense.ticks import Ticks
from navsense.typing import AnyArray, BoolArray, FloatArray, Times

FAULT = "fault"
"""The hidden error that tells which faults act on a row."""

BITS: Mapping[str, int] = {"dropout": 1, "stuck": 2, "bias": 4, "spike": 8, "lost_lock": 16}
"""The number of each kind."""

ADDING = ("bias", "spike")
"""Kinds that put an array off."""

LARGEST = 1e12
"""Rates (1/s), times and durations (s) beyond this are a mistake."""

ROUNDING = 2.0**-50
"""What a sum of doubles is off by at most, as a share of the largest of them."""


@dataclass(frozen=True)
class Planned:
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
        refuse_types(self, "of a fault")
        object.__setattr__(self, "value", tuple(self.value))
        if self.kind not in BITS:
            raise self._refusal("kind of a fault", self.kind or "missing", f"must be one of {', '.join(BITS)}")
        if not (abs(self.start) <= LARGEST and self.end > self.start):
            finite = "must be from a finite time to a later one"
            allowed = f"{finite}, of at most {LARGEST:g} s" if math.isfinite(self.start) else finite
            raise self._refusal(f"times of a {self.kind} (s)", (self.start, self.end), allowed)
        if not (0.0 <= self.period < math.inf) or (self.period > 0.0 and self.kind != "spike"):
            allowed = "must be finite, not negative, and 0 but for spikes"
            raise self._refusal(f"period of a {self.kind} (s)", self.period, allowed)
        adds = self.kind in ADDING
        if adds != bool(self.array) or adds != bool(self.value):
            allowed = "must name an array and a value" if adds else "must have no array and no value"
            raise self._refusal(f"a {self.kind}", (self.array, self.value), allowed)
        if not all(math.isfinite(part) for part in self.value):
            raise self._refusal(f"value of a {self.kind}", self.value, "must be finite")

    def _refusal(self, what: str, value: object, allowed: str) -> SensorError:
        return SensorError(what, value, allowed=allowed, where=self.where)

    def acts(self, told: Told) -> BoolArray:
        """Return the rows (n,) on which it acts."""
        time = told.ticks.time
        inside = (time >= self.start) & (time < self.end)
        if self.kind != "spike":
            return inside
        inside &= told.here
        if self.period * told.ticks.rate > 1.0 or not self.period:
            inside &= self._count(time) > self._count(told.before)
        return inside

    def _count(self, time: Times) -> FloatArray:
        """Return how many spikes (n,) are not later than some times (n,) s; none before the run's start."""
        known = (time >= 0.0) & (time >= self.start)
        if not self.period:
            return known.astype(np.float64)
        slack = ROUNDING * np.maximum(np.abs(time), abs(self.start))  # what 0.1 + 2 x 0.1 is above 0.3
        return np.where(known, np.floor((time - self.start + slack) / self.period) + 1.0, 0.0)


class Told(NamedTuple):
    """Ticks of a sensor, at which of them it tells something (n,), and when it last did before each (n,) s.

    `last` is the last tick at which it did; before the first both are negative.
    """

    ticks: Ticks
    here: BoolArray
    before: FloatArray
    last: int

    @staticmethod
    def of(ticks: Ticks, here: BoolArray, last: int = -1) -> Told:
        """Return it for the next ticks of a sensor that last told something at tick `last`."""
        latest = np.maximum.accumulate(np.concatenate(([last], np.where(here, ticks.index, last))))
        return Told(ticks, here, latest[:-1] / ticks.rate, int(latest[-1]))


OFF = "_off"
"""Ends the names of what is put on the arrays of a `Hearing`, among what its errors depend on."""


@runtime_checkable
class Hearing(Protocol):
    """A sensor that makes some of its arrays of others, which it hears: along beams, as a pressure, as a range.

    A bias or spike of what is heard is handed to it, by the array's name with `OFF`, and goes into what it makes.
    """

    heard: ClassVar[tuple[str, ...]]


@runtime_checkable
class Losing(Protocol):
    """A sensor that lives on echoes from the bottom."""

    def without_bottom(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return what its errors start from, without the echoes of some rows (n,); what is true stays."""
        ...


def check_planned(spec: object, outputs: Mapping[str, tuple[int, ...]], planned: Planned) -> None:
    """Raise `SensorError` for a fault that a sensor with these arrays (name: shape of a row) cannot have."""
    if planned.kind == "lost_lock" and not isinstance(spec, Losing):
        raise SensorError("lost_lock", type(spec).__name__, allowed="is of a DVL or an ADCP", where=planned.where)
    if planned.kind not in ADDING:
        return
    if planned.array not in outputs:
        allowed = f"must be one of {', '.join(outputs)}"
        raise SensorError(f"array of a {planned.kind}", planned.array, allowed=allowed, where=planned.where)
    shape = outputs[planned.array]
    counts = dict.fromkeys((1, *shape[-1:], math.prod(shape)))
    if len(planned.value) not in counts:
        one, *more = counts
        allowed = f"must be one number{''.join(f', or {count}' for count in more if count > one)}"
        raise SensorError(f"value of a {planned.kind}", planned.value, allowed=allowed, where=planned.where)


Struck = Sequence[tuple[Planned, BoolArray]]
"""Faults with the rows (n,) on which each acts."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """Faults of one sensor on purpose, any number of them, of which only those near in time are looked at."""

    planned: tuple[Planned, ...]

    @cached_property
    def _spans(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Starts and ends (s), and whether it is a lone spike, which is over once it has struck (k,) each."""
        starts, ends = (np.array([getattr(one, name) for one in self.planned]) for name in ("start", "end"))
        return starts, ends, np.array([one.kind == "spike" and not one.period for one in self.planned], dtype=np.bool_)

    def struck(self, told: Told) -> Struck:
        """Return those that act on some rows, each with the rows (n,)."""
        time, before = told.ticks.time, told.before
        if not (time.size and self.planned):
            return []
        starts, ends, lone = self._spans
        over = lone & (starts <= before[0]) & (before[0] >= 0.0)
        near = (starts <= time[-1]) & (ends > time[0]) & ~over
        found = ((self.planned[k], self.planned[k].acts(told)) for k in np.flatnonzero(near))
        return [(one, rows) for one, rows in found if rows.any()]

    def losing(self, ticks: Ticks) -> BoolArray:
        """Return the rows (n,) that have no echo from the bottom."""
        everything = np.ones(len(ticks), dtype=np.bool_)
        return acting(self.struck(Told.of(ticks, everything)), "lost_lock", len(ticks))


def faulty(name: str, array: FloatArray, ideal: Mapping[str, AnyArray]) -> FloatArray:
    """Return an array (n, ...) that a sensor hears, with what is put on it among the values that errors depend on."""
    off = ideal.get(f"{name}{OFF}")
    return array if off is None else array + off


def heard_of(spec: object) -> tuple[str, ...]:
    """Return the arrays that a sensor hears, none where it is not `Hearing`."""
    return spec.heard if isinstance(spec, Hearing) else ()


def put_on_heard(struck: Struck, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, AnyArray]:
    """Return what is put on arrays that are heard (name: shape of a row), by their names with `OFF`."""
    mine = [(one, rows) for one, rows in struck if one.array in shapes]
    still = {one.array: np.zeros((rows.size, *shapes[one.array])) for one, rows in mine}
    return {f"{name}{OFF}": array for name, array in put_off(mine, still).items()}


def put_off(struck: Struck, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays (n, ...) with all biases and spikes on them."""
    moved = {one.array: arrays[one.array].copy() for one, _ in struck if one.kind in ADDING}
    for one, rows in struck:
        if one.kind in ADDING:
            shape = moved[one.array].shape[1:]
            whole = len(one.value) == math.prod(shape)  # else one number, or one along the last axis
            moved[one.array][rows] += np.reshape(one.value, shape) if whole else np.array(one.value)
    return {**arrays, **moved}


def acting(struck: Struck, kind: str, count: int) -> BoolArray:
    """Return the rows (n,) on which one of a kind acts."""
    rows = np.zeros(count, dtype=np.bool_)
    for one, its in struck:
        if one.kind == kind:
            rows |= its
    return rows

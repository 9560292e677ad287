"""Faults of a sensor on purpose: known ones, at known times, which a robot's software has to live through.

| kind | what the sensor does for start <= t < end |
|---|---|
| `dropout` | it says nothing: NaN, not valid, no message |
| `stuck` | it repeats what it last emitted |
| `bias` | `array` is off by `value` |
| `spike` | `array` is off by `value` in one sample, told or not: the first from `start`, and again every `period` s |
| `lost_lock` | its echoes from the bottom do not come back |

t is true time (s), values are SI, a number or one an axis. What acts on a row is told by `FAULT` among a reading's
hidden errors, the sum of `BITS`; faults by chance are in it too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from navsense.errors import SensorError, Where
from navsense.ticks import Ticks
from navsense.typing import AnyArray, BoolArray

FAULT = "fault"
"""The hidden error that tells which faults act on a row."""

BITS: Mapping[str, int] = {"dropout": 1, "stuck": 2, "bias": 4, "spike": 8, "lost_lock": 16}
"""The number of each kind."""

ADDING = ("bias", "spike")
"""Kinds that put an array off."""


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
        if self.kind not in BITS:
            raise self._refusal("kind of a fault", self.kind, f"must be one of {', '.join(BITS)}")
        if not (math.isfinite(self.start) and self.end > self.start):
            allowed = "must be from a finite time to a later one"
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

    def acts(self, ticks: Ticks) -> BoolArray:
        """Return the rows (n,) on which it acts."""
        time = ticks.time
        inside = (time >= self.start) & (time < self.end)
        if self.kind != "spike":
            return inside
        # A spike is at start + k period: the last of them not later than the sample, and later than the one before.
        before = (ticks.index - 1) / ticks.rate
        number = np.floor((time - self.start) / self.period) if self.period else np.zeros(time.size)
        if self.period:  # the quotient is rounded, and may be of the neighbour
            number += self.start + (number + 1.0) * self.period <= time
            number -= self.start + number * self.period > time
        instant = self.start + number * self.period
        struck: BoolArray = inside & ((instant > before) | (ticks.index == 0)) & (instant < self.end)
        return struck


@runtime_checkable
class Losing(Protocol):
    """A sensor that lives on echoes from the bottom."""

    def without_bottom(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return what its errors start from, without the echoes of some rows (n,); what is true stays."""
        ...


def check_planned(spec: object, outputs: Mapping[str, tuple[int, ...]], planned: Planned) -> None:
    """Raise `SensorError` for a fault that a sensor with these arrays (name: shape of a row) cannot have."""
    if planned.kind == "lost_lock" and not isinstance(spec, Losing):
        raise SensorError("lost_lock", type(spec).__name__, allowed="is of a DVL", where=planned.where)
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


def put_off(planned: Sequence[Planned], ticks: Ticks, arrays: Mapping[str, AnyArray]) -> Mapping[str, AnyArray]:
    """Return the arrays (n, ...) with all biases and spikes on them."""
    out = dict(arrays)
    for one in planned:
        rows = one.acts(ticks)
        if one.kind in ADDING and rows.any():
            moved = out[one.array].copy()
            shape = moved.shape[1:]
            whole = len(one.value) == math.prod(shape)  # else one number, or one along the last axis
            moved[rows] += np.reshape(one.value, shape) if whole else np.array(one.value)
            out[one.array] = moved
    return out


def acting(planned: Sequence[Planned], kind: str, ticks: Ticks) -> BoolArray:
    """Return the rows (n,) on which one of a kind acts."""
    rows = np.zeros(len(ticks), dtype=np.bool_)
    for one in planned:
        if one.kind == kind:
            rows |= one.acts(ticks)
    return rows

"""Faults of a whole sensor that come and go by chance: it says nothing for a while, or says the same for a while.

Each is a telegraph process, on and off in continuous time, exact for any step and stationary from the first sample::

    P(on at 0) = p,   p = r d / (1 + r d)                     r begins a second while off, d mean duration (s)
    P(on at t + dt | off at t) = p (1 - e),   P(off at t + dt | on at t) = (1 - p) (1 - e),   e = exp(-(r + 1 / d) dt)

While it is dropped out, a sensor's numbers are NaN, not valid, and no message is sent. While it is stuck, they are
those of the last sample that it emitted; before it has emitted one there is nothing to be stuck at. Source: the
two-state Markov process, Papoulis, Probability, Random Variables and Stochastic Processes (random telegraph signal).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from navsense.errors import SensorError
from navsense.kernels import kernel
from navsense.noise.scheduled_faults import (
    MAX_VALUE,
    EmissionMask,
    FaultSchedule,
    ScheduledFault,
    apply_offsets,
    find_rows_of_kind,
)
from navsense.random_streams import RandomProcess
from navsense.series import FAULT_BITS
from navsense.ticks import Ticks
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray
from navsense.validation import validate_types


@dataclass(frozen=True)
class Faults:
    """How often a sensor drops out and gets stuck (begins a second while it is well), and how long on average (s).

    A kind acts where both its rate and its duration are above 0; beside them are those on purpose, `planned`. With
    `recorded` a recording says when faults acted, and not what was asked for: such are not simulated. Raises
    `SensorError` for a value that is negative or not finite, or a rate without a duration.
    """

    dropout_rate: float = 0.0
    dropout_duration: float = 0.0
    stuck_rate: float = 0.0
    stuck_duration: float = 0.0
    planned: tuple[ScheduledFault, ...] = ()
    recorded: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no rate or no duration."""
        validate_types(self, "of faults")
        object.__setattr__(self, "planned", tuple(self.planned))
        for name in RANDOM_FIELDS:
            value = getattr(self, name)
            if not 0.0 <= value <= MAX_VALUE:
                raise SensorError(name, value, allowed=f"must be from 0 to {MAX_VALUE:g}")
        for kind in RANDOM_KINDS:
            rate, duration = self.rate_and_duration(kind)
            if (rate > 0.0) != (duration > 0.0):
                raise SensorError(
                    f"{kind}_rate and {kind}_duration",
                    (rate, duration),
                    allowed="must both be 0 or both above 0",
                    remedy="give how often it begins (1/s) and how long it lasts on average (s)",
                )

    def rate_and_duration(self, kind: str) -> tuple[float, float]:
        """Return rate (1/s) and mean duration (s) of "dropout" or "stuck"."""
        return getattr(self, f"{kind}_rate"), getattr(self, f"{kind}_duration")

    @cached_property
    def random_kinds(self) -> tuple[str, ...]:
        """Return the kinds that act by chance."""
        return tuple(kind for kind in RANDOM_KINDS if self.rate_and_duration(kind)[0] > 0.0)

    @cached_property
    def schedule(self) -> FaultSchedule:
        """Return those on purpose by when they act."""
        return FaultSchedule(self.planned)

    @property
    def has_faults(self) -> bool:
        """Return whether there are any, by chance or on purpose, or were."""
        return bool(self.random_kinds or self.planned or self.recorded)

    def on_probability(self, kind: str) -> float:
        """Return the share p of the time that a kind is on."""
        rate, duration = self.rate_and_duration(kind)
        return rate * duration / (1.0 + rate * duration)

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the kinds that act: a uniform at the start and one at each tick."""
        return tuple(RandomProcess("faults", kind, initial=1, kind="uniform") for kind in self.random_kinds)


RANDOM_KINDS = ("dropout", "stuck")

RANDOM_FIELDS = tuple(f"{kind}_{figure}" for kind in RANDOM_KINDS for figure in ("rate", "duration"))
"""Figures of the faults that come by chance."""


class FaultState(NamedTuple):
    """Which kinds that act are on at tick `last`, and what the sensor last emitted, (...) by name; nothing before.

    `told` is the last tick at which it would have emitted without faults, -1 before the first.
    """

    active: tuple[bool, ...]
    last_output: Mapping[str, AnyArray]
    last_tick: int = 0
    last_emitted_tick: int = -1


@kernel
def _write_telegraph(
    on: bool,
    on_probability: float,
    switch_rate: float,
    rate: float,
    last: int,
    index: IntArray,
    draws: FloatArray,
    out: BoolArray,
) -> bool:
    """Write whether it is on at each tick; `pace` is r + 1 / d; return whether it is at the last."""
    for i in range(index.shape[0]):
        changed = -math.expm1(-switch_rate * ((index[i] - last) / rate))
        on = draws[i] >= (1.0 - on_probability) * changed if on else draws[i] < on_probability * changed
        last = index[i]
        out[i] = on
    return on


def init_faults(faults: Faults, draws: FloatArray) -> FaultState:
    """Return the state at t = 0 from the initial draws of `processes`."""
    return FaultState(
        tuple(bool(u < faults.on_probability(kind)) for u, kind in zip(draws, faults.random_kinds, strict=True)), {}
    )


def apply_faults(
    faults: Faults,
    state: FaultState,
    ticks: Ticks,
    draws: FloatArray,
    arrays: Mapping[str, AnyArray],
    emitted: BoolArray,
    source_arrays: Sequence[str] = (),
) -> tuple[FaultState, Mapping[str, AnyArray], dict[str, BoolArray]]:
    """Return the new state, the arrays with their faults, and the rows (n,) on which each kind of fault acts.

    `arrays` (n, ...) by name are what it would show without faults, where it would emit (n,); `draws` (kinds, n).
    Biases and spikes of `source_arrays` are in
    `arrays` already. A sample is published where no dropout acts.
    """
    count = len(ticks)
    told = EmissionMask.from_ticks(ticks, emitted, state.last_emitted_tick)
    struck = faults.schedule.find_active(told)
    arrays = apply_offsets([(one, rows) for one, rows in struck if one.array not in source_arrays], arrays)
    acts = {kind: find_rows_of_kind(struck, kind, count) for kind in FAULT_BITS}
    on = _add_random_faults(faults, state, ticks, draws, acts)
    source, last = _find_source_rows(acts["stuck"], emitted & ~acts["dropout"], has_previous=bool(state.last_output))
    own = source == np.arange(1, count + 1)
    acts["spike"] &= ~acts["dropout"] & own
    acts["stuck"] &= ~own
    shown = {name: _take_rows(state.last_output.get(name), array, source) for name, array in arrays.items()}
    kept = {name: array[last - 1].copy() for name, array in arrays.items()} if last else state.last_output
    out = {name: _mask_dropped(array, acts["dropout"]) for name, array in shown.items()}
    end = int(ticks.index[-1]) if count else state.last_tick
    return FaultState(on, kept, end, told.last_tick), out, acts


def _add_random_faults(
    faults: Faults, state: FaultState, ticks: Ticks, draws: FloatArray, acts: Mapping[str, BoolArray]
) -> tuple[bool, ...]:
    """Add to the rows (n,) on which each kind acts those by chance; return which are on at the last."""
    on = []
    for kind, row, was in zip(faults.random_kinds, draws, state.active, strict=True):
        rate, duration = faults.rate_and_duration(kind)
        figures, rows = (
            (faults.on_probability(kind), rate + 1.0 / duration, ticks.rate),
            np.zeros(len(ticks), dtype=np.bool_),
        )
        on.append(bool(_write_telegraph(was, *figures, state.last_tick, ticks.index, row, rows)))
        acts[kind][:] |= rows
    return tuple(on)


def _find_source_rows(stuck: BoolArray, emitted: BoolArray, *, has_previous: bool) -> tuple[IntArray, int]:
    """Return the row that each row shows (n,), and the last one that was emitted: from 1 on, 0 is the one kept before.

    `given` (n,) is where a row gets out; `begun` whether any did before.
    """
    rows = np.arange(1, stuck.size + 1)
    if not has_previous:
        first = int(np.argmax(emitted)) if emitted.any() else stuck.size
        stuck = stuck & (rows > first + 1)
    fresh = np.maximum.accumulate(np.where(emitted & ~stuck, rows, 0))
    return np.where(stuck, fresh, rows), int(fresh[-1]) if stuck.size else 0


def _take_rows(previous: AnyArray | None, array: AnyArray, source: IntArray) -> AnyArray:
    """Return the rows that are shown: row `source` - 1 of the array, or the one `before` it where that is 0."""
    if previous is None or source.all():
        return array[source - 1]
    return np.concatenate((previous[None], array))[source]


def _mask_dropped(array: AnyArray, dropped: BoolArray) -> AnyArray:
    """Return the array with NaN in the rows that are dropped; one of integers stays as it is."""
    if array.dtype.kind != "f" or not dropped.any():
        return array
    out = array.copy()
    out[dropped] = np.nan
    return out

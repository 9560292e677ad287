"""Faults of a sensor: random dropouts and stuck readings, and scheduled faults.

Each random fault is a telegraph process: on and off in continuous time, exact for any step, stationary from the first
sample::

    P(on at 0) = p,   p = r d / (1 + r d)                     r onsets per second while off, d mean duration (s)
    P(on at t + dt | off at t) = p (1 - e),   P(off at t + dt | on at t) = (1 - p) (1 - e),   e = exp(-(r + 1 / d) dt)

During a dropout, the values of a sensor are NaN and not valid, and no message is sent. A stuck sensor repeats the last
sample that it emitted. Before its first sample a sensor cannot be stuck. Source: the two-state Markov process,
Papoulis, Probability, Random Variables and Stochastic Processes (random telegraph signal).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.field_metadata import NON_NEGATIVE, NOT_IN_FILE
from navsense.core.kernels import kernel
from navsense.core.random_streams import RandomProcess
from navsense.core.readings import FAULT_BITS
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray
from navsense.core.validation import check_number, validate_types
from navsense.faults.schedule import (
    MAX_VALUE,
    EmissionMask,
    FaultSchedule,
    ScheduledFault,
    apply_offsets,
    find_rows_of_kind,
)

RANDOM_KINDS = ("dropout", "stuck")
"""Kinds of random faults."""

RANDOM_FIELDS = tuple(f"{kind}_{quantity}" for kind in RANDOM_KINDS for quantity in ("rate", "duration"))
"""Fields of `Faults` that specify random faults."""


@dataclass(frozen=True)
class Faults:
    """The faults of one sensor.

    dropout_rate, stuck_rate: onsets per second while the fault is off (1/s).
    dropout_duration, stuck_duration: mean duration (s). A kind is active if its rate and its duration are above 0.
    scheduled: faults at given times.
    recorded: true if a recording has flags of faults but not their specification. They are not simulated.

    Raises `SensorError` for a value that is negative or not finite, or a rate without a duration.

    >>> from dataclasses import replace
    >>> dropout = ns.faults.ScheduledFault("dropout", start=0.2, end=0.4)
    >>> faults = ns.faults.Faults(stuck_rate=0.1, stuck_duration=0.05, scheduled=(dropout,))
    >>> imu = replace(world.sensor("imu"), faults=faults)
    >>> faulty = ns.simulate(replace(world, sensors=(imu,)), 1.0, seed=7)
    >>> int(faulty["imu"].fault["dropout"].sum())  # of 1000 samples
    200
    """

    dropout_rate: float = field(default=0.0, metadata=NON_NEGATIVE)
    dropout_duration: float = field(default=0.0, metadata=NON_NEGATIVE)
    stuck_rate: float = field(default=0.0, metadata=NON_NEGATIVE)
    stuck_duration: float = field(default=0.0, metadata=NON_NEGATIVE)
    scheduled: tuple[ScheduledFault, ...] = field(default=(), metadata=NOT_IN_FILE)
    recorded: bool = field(default=False, metadata=NOT_IN_FILE)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        validate_types(self, "of faults")
        object.__setattr__(self, "scheduled", tuple(self.scheduled))
        for name in RANDOM_FIELDS:
            check_number(name, getattr(self, name), 0.0, MAX_VALUE, field=name)
        for kind in RANDOM_KINDS:
            rate, duration = self.get_rate_and_duration(kind)
            if (rate > 0.0) != (duration > 0.0):
                allowed = "must both be 0 or both above 0"
                remedy = "give the rate of onsets (1/s) and the mean duration (s)"
                what = f"{kind}_rate and {kind}_duration"
                raise SensorError(what, f"{rate:g} and {duration:g}", allowed=allowed, remedy=remedy)

    def get_rate_and_duration(self, kind: str) -> tuple[float, float]:
        """Return rate (1/s) and mean duration (s) of "dropout" or "stuck"."""
        return getattr(self, f"{kind}_rate"), getattr(self, f"{kind}_duration")

    @cached_property
    def random_kinds(self) -> tuple[str, ...]:
        """The kinds of random faults that are active."""
        return tuple(kind for kind in RANDOM_KINDS if self.get_rate_and_duration(kind)[0] > 0.0)

    @cached_property
    def schedule(self) -> FaultSchedule:
        """The scheduled faults, searchable by time."""
        return FaultSchedule(self.scheduled)

    @property
    def has_faults(self) -> bool:
        """True if there are random, scheduled or recorded faults."""
        return bool(self.random_kinds or self.scheduled or self.recorded)

    def compute_on_probability(self, kind: str) -> float:
        """Return the probability p that a kind is on."""
        rate, duration = self.get_rate_and_duration(kind)
        return rate * duration / (1.0 + rate * duration)

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the active kinds: one uniform at the start and one per tick."""
        return tuple(RandomProcess("faults", kind, initial=1, kind="uniform") for kind in self.random_kinds)


class FaultState(NamedTuple):
    """The state of the faults at tick `last_tick`.

    active: whether each of `Faults.random_kinds` is on.
    last_output: the arrays (...) that the sensor last emitted, by name; empty before the first sample.
    last_emitted_tick: the last tick at which the sensor would have emitted without faults, -1 before the first.
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
    """Write whether the fault is on at each tick; return the last value. `switch_rate` is r + 1 / d (1/s)."""
    for i in range(index.shape[0]):
        changed = -math.expm1(-switch_rate * ((index[i] - last) / rate))
        on = draws[i] >= (1.0 - on_probability) * changed if on else draws[i] < on_probability * changed
        last = index[i]
        out[i] = on
    return on


def init_faults(faults: Faults, draws: FloatArray) -> FaultState:
    """Return the state at t = 0 from the initial draws of `processes`."""
    kinds = zip(draws, faults.random_kinds, strict=True)
    return FaultState(tuple(bool(u < faults.compute_on_probability(kind)) for u, kind in kinds), {})


def apply_faults(
    faults: Faults,
    state: FaultState,
    ticks: Ticks,
    draws: FloatArray,
    arrays: Mapping[str, AnyArray],
    emitted: BoolArray,
    fault_input_arrays: Sequence[str] = (),
) -> tuple[FaultState, dict[str, AnyArray], dict[str, BoolArray]]:
    """Return the new state, the arrays with faults, and the rows (n,) on which each kind of fault acts.

    draws (kinds, n): uniforms of `Faults.random_kinds`.
    arrays: the arrays (n, ...) without faults, by name.
    emitted (n,): the rows that the sensor emits without faults.
    fault_input_arrays: arrays whose biases and spikes the sensor has already applied.

    A sample is published on the rows without a dropout.
    """
    count = len(ticks)
    emissions = EmissionMask.from_ticks(ticks, emitted, state.last_emitted_tick)
    active = faults.schedule.find_active(emissions)
    arrays = apply_offsets([(fault, rows) for fault, rows in active if fault.array not in fault_input_arrays], arrays)
    rows_of = {kind: find_rows_of_kind(active, kind, count) for kind in FAULT_BITS}
    active_kinds = []
    for kind, uniforms, was_on in zip(faults.random_kinds, draws, state.active, strict=True):
        rate, duration = faults.get_rate_and_duration(kind)
        telegraph = (was_on, faults.compute_on_probability(kind), rate + 1.0 / duration, ticks.rate, state.last_tick)
        rows = np.zeros(count, dtype=np.bool_)
        active_kinds.append(bool(_write_telegraph(*telegraph, ticks.index, uniforms, rows)))
        rows_of[kind] |= rows
    dropped = rows_of["dropout"]
    source, last = _find_source_rows(rows_of["stuck"], emitted & ~dropped, has_previous=bool(state.last_output))
    is_own_row = source == np.arange(1, count + 1)
    rows_of["spike"] &= ~dropped & is_own_row
    rows_of["stuck"] &= ~is_own_row
    output = {}
    for name, array in arrays.items():
        if not state.last_output or source.all():
            output[name] = array[source - 1]
        else:
            output[name] = np.concatenate((state.last_output[name][None], array))[source]
        if array.dtype.kind == "f":
            output[name][dropped] = np.nan
    last_output = {name: array[last - 1].copy() for name, array in arrays.items()} if last else state.last_output
    last_tick = int(ticks.index[-1]) if count else state.last_tick
    return FaultState(tuple(active_kinds), last_output, last_tick, emissions.last_tick), output, rows_of


def _find_source_rows(stuck: BoolArray, emitted: BoolArray, *, has_previous: bool) -> tuple[IntArray, int]:
    """Return the number of the row that each row repeats (n,), and of the last emitted row.

    Rows are numbered from 1; 0 is the last output of earlier blocks, which exists if `has_previous`.
    """
    rows = np.arange(1, stuck.size + 1)
    if not has_previous:
        first = int(np.argmax(emitted)) if emitted.any() else stuck.size
        stuck = stuck & (rows > first + 1)
    fresh = np.maximum.accumulate(np.where(emitted & ~stuck, rows, 0))
    return np.where(stuck, fresh, rows), int(fresh[-1]) if stuck.size else 0

"""Changes of a current while a run goes on: velocities from a topic, and the set functions of the UUV Simulator.

A set function gives one process a new mean, or all five parameters. From its time T on::

    v(t) = v_before(t)   for t < T,      v_after(t)   for t >= T

In v_after the process starts at its mean at T, and its random numbers continue. The other processes continue unchanged.
A `UniformField` is a current whose processes are constant, without limits. A velocity from a topic replaces the current
by a uniform one.

Source: source of the UUV Simulator, `GaussMarkovProcess.cc` (`SetMean`, `SetModel`, `Reset`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.typing import Quaternion, Times, Vectors
from navsense.environment.base import FieldSum, UniformField, VectorField
from navsense.environment.current.base import check_speed
from navsense.environment.current.gauss_markov import (
    AnyGaussMarkovProcess,
    GaussMarkovCurrent,
    GaussMarkovProcess,
    RandomCurrent,
    UuvGaussMarkovProcess,
)
from navsense.environment.current.stratified import BoundaryLayer, DepthScaledCurrent

PROCESSES = ("speed", "horizontal_angle", "vertical_angle")
"""The processes of a current that can be set: m/s, rad, rad."""

MEAN, MODEL = "mean", "model"
"""What can be set of a process: the mean; or mean, minimum, maximum, noise amplitude and mu."""

VELOCITY = "velocity"
"""Property of a change: the velocity (x, y, z) m/s along the axes of the world."""

CURRENT_PROPERTIES = (VELOCITY, *(f"{process}.{what}" for process in PROCESSES for what in (MEAN, MODEL)))
"""The properties of a change of the current."""


ChangeValue = float | Sequence[float]
"""The mean (m/s or rad), all parameters of a process, or a velocity."""


@dataclass(frozen=True)
class ChangedCurrent:
    """A current that changes: `fields[i]` from `starts[i]` (s) on.

    >>> slow, fast = ns.environment.UniformField((0.1, 0.0, 0.0)), ns.environment.UniformField((0.4, 0.0, 0.0))
    >>> changed = ns.environment.current.adjustment.ChangedCurrent((slow, fast), (0.0, 10.0))
    >>> changed.at(np.zeros((2, 3)), np.array([9.9, 10.0]))[:, 0]
    array([0.1, 0.4])
    """

    fields: tuple[VectorField, ...]
    starts: tuple[float, ...]

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` as the fields do."""
        index = np.maximum(np.searchsorted(self.starts, time, side="right") - 1, 0)
        out = np.empty((time.shape[0], 3))
        for part in np.unique(index).tolist():
            rows = index == part
            out[rows] = self.fields[part].at(position_w[rows], time[rows])
        return out

    def rotate(self, rotation: Quaternion) -> ChangedCurrent:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` as the fields do."""
        return replace(self, fields=tuple(field.rotate(rotation) for field in self.fields))

    def add(self, field: VectorField, start: float, memory: float) -> ChangedCurrent:
        """Return the current with another field from `start` (s) on, without those that ended `memory` (s) before."""
        ends = (*self.starts[1:], start)
        first = next(i for i, end in enumerate(ends) if end >= start - memory)
        return ChangedCurrent((*self.fields[first:], field), (*self.starts[first:], start))


@dataclass(frozen=True)
class AdjustableCurrent:
    """A current that the set functions can change, and its realisation in one run.

    model: the current without seed and run.
    field: its realisation, from the last change on.
    seed, run: those of the realisation.
    step: the physics step (s) for noise amplitudes.

    >>> model = ns.environment.UniformField((0.3, 0.0, 0.0))
    >>> current = ns.environment.current.adjustment.AdjustableCurrent(model, model, seed=1, run=0, step=1e-3)
    >>> current.get_process("speed").mean
    0.3
    >>> faster = current.change("speed.mean", 0.5, 10.0)
    >>> faster.field.at(np.zeros((1, 3)), np.array([10.0]))[0].tolist()
    [0.5, 0.0, 0.0]
    """

    model: VectorField
    field: VectorField
    seed: int
    run: int
    step: float

    def get_process(self, name: str) -> AnyGaussMarkovProcess:
        """Return one of the processes. Raises `FieldError` for a current that cannot be changed."""
        found: list[AnyGaussMarkovProcess] = []

        def read(model: GaussMarkovCurrent, _: VectorField) -> tuple[VectorField, VectorField]:
            found.append({process: getattr(model, process) for process in PROCESSES}[name])
            return model, model

        _map(self.model, self.model, read)
        return found[0]

    def get_model(self, name: str) -> tuple[float, ...]:
        """Return the parameters of a process that `change` takes: mean, minimum, maximum, noise amplitude and mu.

        The noise amplitude of a physical process is that for the physics step. Raises `FieldError` for a current that
        cannot be changed.
        """
        process = self.get_process(name)
        if isinstance(process, UuvGaussMarkovProcess):
            noise_amplitude, mu = process.noise_amplitude, process.mu
        else:
            noise_amplitude, mu = process.density * math.sqrt(12.0 * self.step), 1.0 / process.correlation_time
        return process.mean, process.minimum, process.maximum, noise_amplitude, mu

    def check(self, name: str, value: ChangeValue) -> AdjustableCurrent:
        """Return the current with the model after a change, for the check of further ones.

        Raises `FieldError` for another property than `CURRENT_PROPERTIES`, an invalid value, and a current that cannot
        be changed.
        """
        return replace(self, model=self._change(name, value)[0])

    def change(self, name: str, value: ChangeValue, time: float) -> AdjustableCurrent:
        """Return the current after one of `CURRENT_PROPERTIES` has changed at `time` (s). Raises as `check` does."""
        model, field = self._change(name, value, time)
        return replace(self, model=model, field=field)

    def _change(self, name: str, value: ChangeValue, time: float | None = None) -> tuple[VectorField, VectorField]:
        """Return the model after a change, and the realisation after a change at a time (s)."""
        if name not in CURRENT_PROPERTIES:
            raise FieldError("property of the current", name, allowed=f"must be one of {', '.join(CURRENT_PROPERTIES)}")
        if name == VELOCITY:
            uniform = _make_uniform(value)
            return _map(self.model, self.field, lambda *_: (uniform, uniform))
        process_name, _, what = name.partition(".")
        process = _change_process(self.get_process(process_name), what, value, self.step)
        index, fields = PROCESSES.index(process_name), dict[str, Any]({process_name: process})

        def change(model: GaussMarkovCurrent, field: VectorField) -> tuple[VectorField, VectorField]:
            changed = replace(model, **fields)
            if time is None:
                return changed, field
            if not isinstance(field, RandomCurrent):  # uniform so far
                field = changed.realise(self.seed, self.run)
            return changed, field.restart(index, changed.processes[index], time)

        return _map(self.model, self.field, change)


def _make_uniform(value: ChangeValue) -> UniformField:
    """Return a uniform current. Raises `FieldError` for an invalid velocity."""
    if not isinstance(value, Sequence) or len(value) != 3:
        raise FieldError("velocity of the current (m/s)", value, allowed="must be x, y and z")
    for part in value:
        check_speed("velocity of the current (m/s)", part)
    x, y, z = map(float, value)
    return UniformField((x, y, z))


def _change_process(
    process: AnyGaussMarkovProcess, what: str, value: ChangeValue, step: float
) -> AnyGaussMarkovProcess:
    """Return a process with another mean or other parameters. Raises `FieldError` for an invalid value."""
    if what == MEAN:
        if isinstance(value, Sequence):
            raise FieldError("mean of a current's process", value, allowed="must be a number")
        return replace(process, mean=float(value))
    if not isinstance(value, Sequence) or len(value) != 5:
        allowed = "must be mean, minimum, maximum, noise amplitude and mu"
        raise FieldError("parameters of a current's process", value, allowed=allowed)
    mean, minimum, maximum, noise_amplitude, mu = map(float, value)
    uuv = UuvGaussMarkovProcess(mean, minimum, maximum, mu, noise_amplitude, step)
    return replace(uuv, step=process.step) if isinstance(process, UuvGaussMarkovProcess) else uuv.to_physical()


_SCALED = (DepthScaledCurrent, BoundaryLayer)

Change = Callable[[GaussMarkovCurrent, VectorField], tuple[VectorField, VectorField]]
"""Returns the changed part that has the processes, and its realisation."""


def _map(model: VectorField, field: VectorField, change: Change) -> tuple[VectorField, VectorField]:
    """Return a current and its realisation with a change of the part that has the processes."""
    count = _count_adjustable(model)
    if count == 1:
        if isinstance(model, UniformField):
            return change(_make_constant_current(model), field)
        if isinstance(model, GaussMarkovCurrent):
            return change(model, field)
        if isinstance(model, FieldSum) and isinstance(field, FieldSum):
            parts = [
                _map(part, realised, change) if _count_adjustable(part) else (part, realised)
                for part, realised in zip(model.fields, field.fields, strict=True)
            ]
            return FieldSum(tuple(part for part, _ in parts)), FieldSum(tuple(realised for _, realised in parts))
        if isinstance(model, _SCALED) and isinstance(field, _SCALED):
            inner_model, inner_field = _map(model.field, field.field, change)
            return replace(model, field=inner_model), replace(field, field=inner_field)
    problem = "several parts that can" if count else "no part that can"
    allowed = f"has {problem} be set: a uniform current, or one with a random speed and direction"
    raise FieldError("current of the world", type(model).__name__, allowed=allowed)


def _count_adjustable(model: VectorField) -> int:
    """Return the number of parts of a current that have the processes."""
    if isinstance(model, FieldSum):
        return sum(map(_count_adjustable, model.fields))
    if isinstance(model, _SCALED):
        return _count_adjustable(model.field)
    return int(isinstance(model, GaussMarkovCurrent | UniformField))


def is_adjustable(model: VectorField | None) -> bool:
    """Return True for a current that the set functions can change."""
    return model is not None and _count_adjustable(model) == 1


def _make_constant_current(uniform: UniformField) -> GaussMarkovCurrent:
    """Return a uniform current as one with constant processes."""
    x, y, z = map(float, uniform.at(np.zeros((1, 3)), np.zeros(1))[0])
    horizontal = math.hypot(x, y)
    return GaussMarkovCurrent(
        GaussMarkovProcess(math.hypot(horizontal, z)),
        GaussMarkovProcess(math.atan2(y, x)),
        GaussMarkovProcess(math.atan2(z, horizontal)),
    )

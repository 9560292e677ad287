"""The noise of several channels at once: what sensors call.

`Channels(names, noises)` lists the random processes, draws a serial number's turn-on values, and applies the noise to a
block of ideal values, in one compiled loop. Every formula is that of `Noise`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from navsense.compiled import kernel
from navsense.noise.bias import flipped, turn_on
from navsense.noise.channel import Noise
from navsense.noise.gauss_markov import decay, drive, stationary, step
from navsense.noise.quantise import quantise
from navsense.noise.saturate import saturate
from navsense.noise.white import white
from navsense.streams import Process
from navsense.typing import FloatArray, IntArray

_TILE = 1024
"""Ticks that all passes are made over before the next are: small enough for the first-level cache."""

_MEAN, _STDDEV, _SIGMA, _TAU, _PRECISION, _MINIMUM, _MAXIMUM = range(7)


@kernel
def _drift_one(phi: float, q: float, draws: FloatArray, slow: float, constant: float, error: FloatArray) -> float:
    """Write constant + drift (n,) of one channel; return the drift at the last tick."""
    for i in range(draws.shape[0]):
        slow = step(slow, phi, q, draws[i])
        error[i] = constant + slow
    return slow


@kernel
def _drift_three(
    phi: FloatArray,
    q: FloatArray,
    x: FloatArray,
    y: FloatArray,
    z: FloatArray,
    slow: FloatArray,
    constant: FloatArray,
    error: FloatArray,
) -> None:
    """Write constant + drift (3, n) of three channels side by side: their recursions do not wait for each other."""
    a, b, c = slow[0], slow[1], slow[2]
    for i in range(x.shape[0]):
        a = step(a, phi[0], q[0], x[i])
        b = step(b, phi[1], q[1], y[i])
        c = step(c, phi[2], q[2], z[i])
        error[0, i] = constant[0] + a
        error[1, i] = constant[1] + b
        error[2, i] = constant[2] + c
    slow[0], slow[1], slow[2] = a, b, c


@kernel
def _drift_span(
    gap: float,
    sheet: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    constant: FloatArray,
    slow: FloatArray,
    error: FloatArray,
) -> None:
    """Write the slow errors (channels, n) of ticks that are `gap` (s) apart; `slow` is left at the last tick."""
    channels = sheet.shape[0]
    phi, q = np.ones(channels), np.zeros(channels)
    together = channels == 3
    for c in range(channels):
        together = together and rows[c, 1] >= 0
        if rows[c, 1] >= 0:
            phi[c], q[c] = decay(gap, sheet[c, _TAU]), drive(gap, sheet[c, _SIGMA], sheet[c, _TAU])
    if together:
        _drift_three(phi, q, draws[rows[0, 1]], draws[rows[1, 1]], draws[rows[2, 1]], slow, constant, error)
        return
    for c in range(channels):
        if rows[c, 1] >= 0:
            slow[c] = _drift_one(phi[c], q[c], draws[rows[c, 1]], slow[c], constant[c], error[c])
        else:
            error[c, :] = constant[c] + slow[c]


@kernel
def _emit(
    sheet: FloatArray, draws: FloatArray, row: int, ideal: FloatArray, error: FloatArray, out: FloatArray
) -> None:
    """Write the readings (n,) of one channel: one plain pass for each part, done several values at a time."""
    count = out.shape[0]
    mean, stddev, precision = sheet[_MEAN], sheet[_STDDEV], sheet[_PRECISION]
    minimum, maximum = sheet[_MINIMUM], sheet[_MAXIMUM]
    if row >= 0:
        drawn = draws[row]
        for i in range(count):
            out[i] = (ideal[i] + error[i]) + white(mean, stddev, drawn[i])
    else:
        for i in range(count):
            out[i] = (ideal[i] + error[i]) + mean
    if minimum > -math.inf or maximum < math.inf:
        for i in range(count):
            out[i] = saturate(out[i], minimum, maximum)
    if precision > 0.0:
        for i in range(count):
            out[i] = quantise(out[i], precision)


@kernel
def _apply(
    ideal: FloatArray,
    index: IntArray,
    rate: float,
    sheet: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    last: int,
    constant: FloatArray,
    slow: FloatArray,
    out: FloatArray,
    error: FloatArray,
) -> None:
    """Write the noisy values and the slow errors (channels, n); `slow` (channels,) is left at the last tick."""
    count, first, before = index.shape[0], 0, last
    while first < count:
        gap, stop = index[first] - before, first + 1
        while stop < count and stop - first < _TILE and index[stop] - index[stop - 1] == gap:
            stop += 1
        _drift_span(gap / rate, sheet, rows, draws[:, first:stop], constant, slow, error[:, first:stop])
        for c in range(sheet.shape[0]):
            _emit(
                sheet[c],
                draws[:, first:stop],
                rows[c, 0],
                ideal[c, first:stop],
                error[c, first:stop],
                out[c, first:stop],
            )
        before, first = index[stop - 1], stop


@dataclass(frozen=True, eq=False)
class ChannelState:
    """This serial number now: turn-on bias and drift of each channel (channels,), and the tick they stand at."""

    turn_on: FloatArray
    drift: FloatArray
    last: int = 0


@dataclass(frozen=True)
class Channels:
    """Named channels with the noise of each; names key the streams."""

    names: tuple[str, ...]
    noises: tuple[Noise, ...]

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        """Return the random processes that act, channel after channel: turn-on, sign, drift, white."""
        found: list[Process] = []
        for name, noise in zip(self.names, self.noises, strict=True):
            if noise.bias_stddev > 0.0:
                found.append(Process(name, "turn_on", initial=1, per_tick=0))
            if noise.classic and noise.starts:
                found.append(Process(name, "sign", initial=1, per_tick=0, kind="uniform"))
            if noise.drifts:
                found.append(Process(name, "drift", initial=0 if noise.classic else 1))
            if noise.stddev > 0.0:
                found.append(Process(name, "white"))
        return tuple(found)

    @cached_property
    def depth(self) -> int:
        """Return how many rows of draws a tick takes."""
        return sum(process.per_tick for process in self.processes)

    @cached_property
    def _sheet(self) -> FloatArray:
        return np.array(
            [
                (n.mean, n.stddev, n.dynamic_bias_stddev, n.dynamic_bias_correlation_time)
                + (n.precision, n.minimum, n.maximum)
                for n in self.noises
            ]
        )

    @cached_property
    def _rows(self) -> IntArray:
        rows = np.full((len(self.noises), 2), -1, dtype=np.int64)
        row = 0
        for process in self.processes:
            if process.per_tick:
                rows[self.names.index(process.channel), 0 if process.name == "white" else 1] = row
                row += 1
        return rows

    def init(self, draws: FloatArray) -> ChannelState:
        """Return a serial number's state at t = 0 from the initial draws of `processes`, in order."""
        given = {(p.channel, p.name): i for i, p in enumerate(p for p in self.processes if p.initial)}
        constant, drift = np.zeros(len(self.names)), np.zeros(len(self.names))
        for c, (name, noise) in enumerate(zip(self.names, self.noises, strict=True)):
            u = float(draws[given[name, "turn_on"]]) if (name, "turn_on") in given else 0.0
            value = turn_on(noise.bias_mean, noise.bias_stddev, u)
            if (name, "sign") in given:
                value = flipped(value, float(draws[given[name, "sign"]]))
            if noise.classic and noise.drifts:
                drift[c] = value
                continue
            constant[c] = value
            if noise.drifts:
                deviation = stationary(noise.dynamic_bias_stddev, noise.dynamic_bias_correlation_time)
                drift[c] = deviation * float(draws[given[name, "drift"]])
        return ChannelState(constant, drift)

    def apply(
        self, state: ChannelState, index: IntArray, rate: float, ideal: FloatArray, draws: FloatArray
    ) -> tuple[ChannelState, FloatArray, FloatArray]:
        """Return the new state, the noisy values and the slow errors, (n, channels) each.

        `index` (n,) ticks, `ideal` (n, channels), `draws` (depth, n) in the order of `processes`. Inside, and in what
        is returned, a channel's values lie side by side in memory (Fortran order).
        """
        columns = np.ascontiguousarray(ideal.T)
        out, error = np.empty(columns.shape), np.empty(columns.shape)
        drift = state.drift.copy()
        _apply(columns, index, rate, self._sheet, self._rows, draws, state.last, state.turn_on, drift, out, error)
        last = int(index[-1]) if index.size else state.last
        return ChannelState(state.turn_on, drift, last), out.T, error.T

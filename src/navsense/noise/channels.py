"""The noise of several channels at once: what sensors call.

`Channels(names, noises)` lists the random processes, draws a serial number's turn-on values, and applies the noise to a
block of ideal values, in one compiled loop. Every formula is that of `Noise`.
"""

from __future__ import annotations

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

_MEAN, _STDDEV, _SIGMA, _TAU, _PRECISION, _MINIMUM, _MAXIMUM = range(7)


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
    drift: FloatArray,
    out: FloatArray,
    error: FloatArray,
) -> None:
    """Write the noisy values and the slow errors (n, channels); `drift` (channels,) is left at the last tick."""
    for c in range(sheet.shape[0]):
        mean, stddev, sigma, tau = sheet[c, _MEAN], sheet[c, _STDDEV], sheet[c, _SIGMA], sheet[c, _TAU]
        precision, minimum, maximum = sheet[c, _PRECISION], sheet[c, _MINIMUM], sheet[c, _MAXIMUM]
        white_row, drift_row = rows[c, 0], rows[c, 1]
        bias, slow = constant[c], drift[c]
        before, gap, phi, q = last, np.int64(-1), 1.0, 0.0
        for i in range(index.shape[0]):
            if drift_row >= 0:
                if index[i] - before != gap:
                    gap = index[i] - before
                    phi = decay(gap / rate, tau)
                    q = drive(gap / rate, sigma, tau)
                before = index[i]
                slow = step(slow, phi, q, draws[drift_row, i])
            hidden = bias + slow
            error[i, c] = hidden
            value = ideal[i, c] + hidden
            if white_row >= 0:
                value += white(mean, stddev, draws[white_row, i])
            else:
                value += mean
            value = saturate(value, minimum, maximum)
            if precision > 0.0:
                value = quantise(value, precision)
            out[i, c] = value
        drift[c] = slow


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

        `index` (n,) ticks, `ideal` (n, channels), `draws` (depth, n) in the order of `processes`.
        """
        out, error = np.empty(ideal.shape), np.empty(ideal.shape)
        drift = state.drift.copy()
        _apply(ideal, index, rate, self._sheet, self._rows, draws, state.last, state.turn_on, drift, out, error)
        last = int(index[-1]) if index.size else state.last
        return ChannelState(state.turn_on, drift, last), out, error

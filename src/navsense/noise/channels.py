"""The noise of several channels at once: what sensors call.

`NoiseChannels(names, noises)` lists the random processes, draws a serial number's turn-on values, and applies the noise
to a block of ideal values, in one compiled loop. Every formula is that of `Noise`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from navsense.errors import SensorError
from navsense.noise.bias import compute_turn_on_bias, randomise_sign
from navsense.noise.channel import Noise
from navsense.noise.flicker import make_components
from navsense.noise.gauss_markov import stationary_stddev
from navsense.noise.kernels import DRIFT_STATE, FLICKER_STATES, apply_noise
from navsense.random_streams import RandomProcess
from navsense.series import make_read_only
from navsense.ticks import Ticks
from navsense.typing import AnyArray, FloatArray, IntArray

_TICK_PROCESSES = ("white", "drift", "walk", "flicker", "outlier", "outlier_size")
"""Processes that are drawn at each tick, in the order of the columns of a sensor's rows of draws."""

FLICKER_BAND = (0.1, 1e4)
"""Seconds: averaging times between which the Allan deviation of flicker is flat."""

_MODES: FloatArray = make_read_only(np.array(make_components(1.0, *FLICKER_BAND)))
_MODE_COUNT = _MODES.shape[1]
_NO_TEMPERATURE = np.empty(0)

_MAX_ARRAYS = 4
"""Arrays that a call is filled up to, so that one compiled form serves all sensors."""

_NO_ROWS: FloatArray = make_read_only(np.empty((0, 0)))


def _as_rows(ideal: FloatArray) -> FloatArray:
    """Return (n, axes) or (n,) as rows (axes, n) side by side, read-only whatever was given: one compiled form."""
    rows = ideal.T if ideal.ndim > 1 else ideal[None]
    if not rows.flags.c_contiguous:
        rows = np.ascontiguousarray(rows)
    rows.setflags(write=False)
    return rows


class NoiseState(NamedTuple):
    """This serial number at tick `last`.

    Of each channel (channels,) the turn-on bias and the scale factor; `slow` (channels, 2 + modes): its drift, random
    walk and modes of flicker.
    """

    turn_on: FloatArray
    scale: FloatArray
    slow: FloatArray
    last_tick: int = 0


@dataclass(frozen=True)
class NoiseChannels:
    """Named channels with the noise of each; names key the streams."""

    names: tuple[str, ...]
    noises: tuple[Noise, ...]

    @cached_property
    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes that act, channel after channel."""
        found: list[RandomProcess] = []
        for name, noise in zip(self.names, self.noises, strict=True):
            found += [
                process
                for acts, process in (
                    (noise.bias_stddev > 0.0, RandomProcess(name, "turn_on", initial=1, per_tick=0)),
                    (
                        noise.classic and noise.has_turn_on_bias,
                        RandomProcess(name, "sign", initial=1, per_tick=0, kind="uniform"),
                    ),
                    (noise.scale_factor_stddev > 0.0, RandomProcess(name, "scale", initial=1, per_tick=0)),
                    (noise.has_dynamic_bias, RandomProcess(name, "drift", initial=0 if noise.classic else 1)),
                    (
                        noise.bias_instability > 0.0,
                        RandomProcess(name, "flicker", initial=_MODE_COUNT, per_tick=_MODE_COUNT),
                    ),
                    (noise.random_walk > 0.0, RandomProcess(name, "walk")),
                    (noise.has_white_noise, RandomProcess(name, "white")),
                    (noise.has_outliers, RandomProcess(name, "outlier", kind="uniform")),
                    (noise.has_outliers, RandomProcess(name, "outlier_size")),
                )
                if acts
            ]
        return tuple(found)

    @cached_property
    def draws_per_tick(self) -> int:
        """Return how many rows of draws a tick takes."""
        return sum(process.per_tick for process in self.processes)

    @cached_property
    def _parameters(self) -> FloatArray:
        return np.array(
            [
                (n.mean, n.stddev, n.noise_density, n.dynamic_bias_stddev, n.dynamic_bias_correlation_time)
                + (n.random_walk, n.bias_instability, n.precision, n.minimum, n.maximum)
                + (n.temperature_coefficient, n.scale_temperature_coefficient, n.reference_temperature)
                + (n.outlier_probability, n.outlier_stddev)
                for n in self.noises
            ]
        )

    @cached_property
    def _rows(self) -> IntArray:
        rows = np.full((len(self.noises), len(_TICK_PROCESSES)), -1, dtype=np.int64)
        row = 0
        for process in self.processes:
            if process.per_tick:
                rows[self.names.index(process.channel), _TICK_PROCESSES.index(process.name)] = row
                row += process.per_tick
        return rows

    @cached_property
    def _kernel_arguments(self) -> tuple[FloatArray, IntArray, FloatArray]:
        return self._parameters, self._rows, _MODES

    @cached_property
    def needs_temperature(self) -> bool:
        """True where `apply` needs the temperature."""
        return any(noise.has_temperature_coefficient for noise in self.noises)

    def init(self, draws: FloatArray) -> NoiseState:
        """Return a serial number's state at t = 0 from the initial draws of `processes`, in order."""
        given: dict[tuple[str, str], FloatArray] = {}
        first = 0
        for process in self.processes:
            given[process.channel, process.name] = draws[first : first + process.initial]
            first += process.initial
        count = len(self.names)
        state = NoiseState(np.zeros(count), np.zeros(count), np.zeros((count, FLICKER_STATES + _MODE_COUNT)))
        for c, (name, noise) in enumerate(zip(self.names, self.noises, strict=True)):
            start = _InitialDraws(
                noise, {process: drawn for (channel, process), drawn in given.items() if channel == name}
            )
            state.turn_on[c], state.slow[c, DRIFT_STATE] = start.compute_bias()
            state.scale[c] = noise.scale_factor + noise.scale_factor_stddev * start.get("scale")
            if noise.bias_instability > 0.0:
                state.slow[c, FLICKER_STATES:] = noise.bias_instability * _MODES[1] * start.draws["flicker"]
        return state

    def apply(
        self,
        state: NoiseState,
        ticks: Ticks,
        draws: FloatArray,
        *ideals: FloatArray,
        temperature: AnyArray | None = None,
    ) -> tuple[NoiseState, FloatArray, FloatArray]:
        """Return the new state, the noisy values and the slow errors, (n, channels) each.

        `draws` (depth, n) in the order of `processes`; `ideals`: arrays (n, axes) or (n,) that hold the channels one
        after the other; `temperature` (n,) K where it acts. Inside, and in what is returned, a channel's values lie
        side by side in memory (Fortran order).
        """
        columns = tuple(_as_rows(ideal) for ideal in ideals)
        columns += (_NO_ROWS,) * (_MAX_ARRAYS - len(columns))
        shape = (len(self.names), ticks.index.size)
        out, error, slow = np.empty(shape), np.empty(shape), state.slow.copy()
        constant, scale = state.turn_on, state.scale
        index, noise = (
            ticks.index,
            (*self._kernel_arguments, draws, self._check_temperature(temperature), state.last_tick),
        )
        apply_noise(columns, index, ticks.rate, float(ticks.spacing), *noise, constant, scale, slow, out, error)
        last = int(index[-1]) if index.size else state.last_tick
        return NoiseState(constant, scale, slow, last), out.T, error.T

    def _check_temperature(self, given: AnyArray | None) -> FloatArray:
        """Return the temperature (n,) K, (0,) where it does not act."""
        if not self.needs_temperature:
            return _NO_TEMPERATURE
        if given is None:
            raise SensorError(
                "temperature",
                None,
                allowed="must be given: a temperature coefficient is declared",
                remedy='give the signal "temperature" (K), or no coefficient',
            )
        return np.ascontiguousarray(given, dtype=np.float64)


@dataclass(frozen=True)
class _InitialDraws:
    """One channel's initial draws by process."""

    noise: Noise
    draws: dict[str, FloatArray]

    def get(self, process: str) -> float:
        """Return a process's one draw, 0 where it does not act."""
        return float(self.draws[process][0]) if process in self.draws else 0.0

    def compute_bias(self) -> tuple[float, float]:
        """Return the constant and the drift at the start."""
        noise = self.noise
        value = compute_turn_on_bias(noise.bias_mean, noise.bias_stddev, self.get("turn_on"))
        if "sign" in self.draws:
            value = randomise_sign(value, self.get("sign"))
        if not noise.has_dynamic_bias:
            return value, 0.0
        if noise.classic:
            return 0.0, value
        deviation = stationary_stddev(noise.dynamic_bias_stddev, noise.dynamic_bias_correlation_time)
        return value, deviation * self.get("drift")

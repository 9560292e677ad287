"""The noise of all channels of a sensor. The formulas are those of `Noise`.

`NoiseChannels(names, noises)` lists the random processes and computes the initial state of an instrument. It applies
the noise to a block of input values in one compiled call. Each run simulates another instrument of the type: its
constant errors are drawn once per run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.random_streams import RandomProcess, find_first_rows, split_initial_draws
from navsense.core.readings import make_read_only
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.noise.kernels import (
    DRAW_ROW_DTYPE,
    DYNAMIC_BIAS_STATE,
    FIRST_FLICKER_STATE,
    PARAMETER_DTYPE,
    PARAMETER_NAMES,
    TICK_PROCESSES,
    apply_noise,
)
from navsense.noise.specification import Noise
from navsense.noise.terms import compute_turn_on_bias, make_flicker_components, randomise_sign, stationary_stddev

FLICKER_BAND = (0.1, 1e4)
"""Averaging times (s) between which the Allan deviation of flicker is flat."""

_FLICKER_COMPONENTS: FloatArray = make_read_only(np.array(make_flicker_components(1.0, *FLICKER_BAND)))
"""(2, m): time constants (s) and standard deviations of the components of flicker with a bias instability of 1."""

_FLICKER_STDDEVS: FloatArray = _FLICKER_COMPONENTS[1]
_FLICKER_COUNT = _FLICKER_STDDEVS.size
_NO_TEMPERATURE = np.empty(0)

_STREAM_KEYS = {"dynamic_bias": "drift", "random_walk": "walk"}
"""Random process -> last part of the key of its stream, where the two differ. The keys never change."""

_MAX_ARRAYS = 4
"""Number of input arrays in each kernel call. Empty arrays fill the rest, so all sensors share one compiled kernel."""

_NO_AXES: FloatArray = make_read_only(np.empty((0, 0)))


def _as_axes(values: FloatArray) -> FloatArray:
    """Return (n, axes) or (n,) as contiguous read-only axes (axes, n), the one type that the kernel is compiled for."""
    axes = values.T if values.ndim > 1 else values[None]
    if not axes.flags.c_contiguous:
        axes = np.ascontiguousarray(axes)
    axes.setflags(write=False)
    return axes


class NoiseState(NamedTuple):
    """The state of an instrument at tick `last_tick`.

    turn_on, scale_error: (channels,), turn-on bias (channel's unit) and scale factor error without temperature.
    bias_state: (channels, 2 + m), dynamic bias, random walk and m components of flicker.
    """

    turn_on: FloatArray
    scale_error: FloatArray
    bias_state: FloatArray
    last_tick: int = 0


@dataclass(frozen=True)
class NoiseChannels:
    """Channels with their noise.

    The names of channels and processes are part of the keys of the random streams, see the table of `Noise`.

    >>> from navsense.core.ticks import Ticks
    >>> channels = ns.noise.NoiseChannels(("pressure",), (ns.Noise(stddev=2.0),))
    >>> state = channels.init(np.zeros(0))  # this noise needs no draws at the start
    >>> draws = np.array([[1.0, -1.0, 0.5]])
    >>> state, measured, bias = channels.apply(state, Ticks(np.arange(3), 10.0), draws, np.full(3, 101325.0))
    >>> measured[:, 0]
    array([101327., 101323., 101326.])
    """

    names: tuple[str, ...]
    noises: tuple[Noise, ...]

    @cached_property
    def processes(self) -> tuple[RandomProcess, ...]:
        """The random processes of all channels, channel by channel. A term that is 0 has none."""
        active: list[RandomProcess] = []
        for channel, noise in zip(self.names, self.noises, strict=True):
            for name, is_active, initial, per_tick in (
                ("turn_on", noise.bias_stddev > 0.0, 1, 0),
                ("sign", noise.classic and noise.has_turn_on_bias, 1, 0),
                ("scale", noise.scale_factor_stddev > 0.0, 1, 0),
                (_STREAM_KEYS["dynamic_bias"], noise.has_dynamic_bias, 0 if noise.classic else 1, 1),
                ("flicker", noise.bias_instability > 0.0, _FLICKER_COUNT, _FLICKER_COUNT),
                (_STREAM_KEYS["random_walk"], noise.random_walk > 0.0, 0, 1),
                ("white", noise.has_white_noise, 0, 1),
                ("outlier", noise.has_outliers, 0, 1),
                ("outlier_size", noise.has_outliers, 0, 1),
            ):
                if is_active:
                    kind: Literal["normal", "uniform"] = "uniform" if name in ("sign", "outlier") else "normal"
                    active.append(RandomProcess(channel, name, initial, per_tick, kind))
        return tuple(active)

    @cached_property
    def draws_per_tick(self) -> int:
        """The number of draws per tick."""
        return sum(process.per_tick for process in self.processes)

    @cached_property
    def _parameters(self) -> AnyArray:
        """Parameters (channels,) of the kernel."""
        rows = [tuple(getattr(noise, name) for name in PARAMETER_NAMES) for noise in self.noises]
        return np.array(rows, dtype=PARAMETER_DTYPE)

    @cached_property
    def _draw_rows(self) -> AnyArray:
        """Rows (channels,) of the processes in the draws, which have the order of `processes`, see `Draws`."""
        first_rows = find_first_rows(self.processes)
        keys = [_STREAM_KEYS.get(process, process) for process in TICK_PROCESSES]
        rows = [tuple(first_rows.get((channel, key), -1) for key in keys) for channel in self.names]
        return np.array(rows, dtype=DRAW_ROW_DTYPE)

    @cached_property
    def needs_temperature(self) -> bool:
        """True if `apply` requires the temperature."""
        return any(noise.has_temperature_coefficient for noise in self.noises)

    def init(self, draws: FloatArray) -> NoiseState:
        """Return the state of an instrument at t = 0 from the initial draws of `processes`, in their order."""
        initial, count = split_initial_draws(self.processes, draws), len(self.names)
        state = NoiseState(np.zeros(count), np.zeros(count), np.zeros((count, FIRST_FLICKER_STATE + _FLICKER_COUNT)))
        for c, (name, noise) in enumerate(zip(self.names, self.noises, strict=True)):
            turn_on_draw, sign_draw, dynamic_draw, scale_draw = (
                float(initial[name, process][0]) if (name, process) in initial else 0.0
                for process in ("turn_on", "sign", _STREAM_KEYS["dynamic_bias"], "scale")
            )
            initial_bias = _compute_initial_bias(noise, turn_on_draw, sign_draw, dynamic_draw)
            state.turn_on[c], state.bias_state[c, DYNAMIC_BIAS_STATE] = initial_bias
            state.scale_error[c] = noise.scale_factor + noise.scale_factor_stddev * scale_draw
            if noise.bias_instability > 0.0:
                flicker = initial[name, "flicker"]
                state.bias_state[c, FIRST_FLICKER_STATE:] = noise.bias_instability * _FLICKER_STDDEVS * flicker
        return state

    def apply(
        self,
        state: NoiseState,
        ticks: Ticks,
        draws: FloatArray,
        *inputs: FloatArray,
        temperature: AnyArray | None = None,
    ) -> tuple[NoiseState, FloatArray, FloatArray]:
        """Return the new state, the measured values (n, channels) and the biases (n, channels).

        draws: (draws_per_tick, n), in the order of `processes`.
        inputs: values without the terms of these channels, arrays (n, axes) or (n,) in the order of the channels.
        temperature: (n,) K, required if `needs_temperature`.

        The returned arrays are in Fortran order: the values of one channel are contiguous.
        """
        input_axes = tuple(_as_axes(values) for values in inputs)
        input_axes += (_NO_AXES,) * (_MAX_ARRAYS - len(input_axes))
        shape, index = (len(self.names), ticks.index.size), ticks.index
        measured, bias, bias_state = np.empty(shape), np.empty(shape), state.bias_state.copy()
        apply_noise(
            input_axes,
            index,
            ticks.rate,
            float(ticks.nominal_step),
            self._parameters,
            self._draw_rows,
            _FLICKER_COMPONENTS,
            draws,
            self._check_temperature(temperature),
            state.last_tick,
            state.turn_on,
            state.scale_error,
            bias_state,  # is updated
            measured,  # is written
            bias,  # is written
        )
        last_tick = int(index[-1]) if index.size else state.last_tick
        return NoiseState(state.turn_on, state.scale_error, bias_state, last_tick), measured.T, bias.T

    def _check_temperature(self, temperature: AnyArray | None) -> FloatArray:
        """Return the temperature (n,) K, or (0,) if it is not needed."""
        if not self.needs_temperature:
            return _NO_TEMPERATURE
        if temperature is None:
            raise SensorError(
                "temperature",
                None,
                allowed="must be given: the noise has a temperature coefficient",
                remedy='give the signal "temperature" (K), or omit the coefficient',
            )
        return np.ascontiguousarray(temperature, dtype=np.float64)


def _compute_initial_bias(
    noise: Noise, turn_on_draw: float, sign_draw: float, dynamic_draw: float
) -> tuple[float, float]:
    """Return the turn-on bias and the initial dynamic bias of a channel.

    turn_on_draw, dynamic_draw: standard normals.
    sign_draw: uniform on [0, 1) for the sign under classic.
    """
    turn_on = compute_turn_on_bias(noise.bias_mean, noise.bias_stddev, turn_on_draw)
    if noise.classic and noise.has_turn_on_bias:
        turn_on = randomise_sign(turn_on, sign_draw)
    if not noise.has_dynamic_bias:
        return turn_on, 0.0
    if noise.classic:
        return 0.0, turn_on
    return turn_on, stationary_stddev(noise.dynamic_bias_stddev, noise.dynamic_bias_correlation_time) * dynamic_draw

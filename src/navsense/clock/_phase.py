"""The phase of an oscillator at its nodes: what is random in it, and what the temperature does, in one run.

From one node to the next, dt = 1 ms, the states x (s), y (fraction) and d (1/s) go on exactly::

    x' = x + y dt + d dt^2 / 2 + dt (f + f') / 2 + e_x       f: flicker FM and temperature, at the ends
    y' = y + d dt + e_y
    d' = d + e_d

The covariance of (e_x, e_y, e_d) is that of the two- and three-state clock, the sum of three parts with draws of their
own, each part's Cholesky factor written out::

    white FM         q_1 dt                  e_x = sqrt(q_1 dt) w
    random-walk FM   q_2 [dt^3/3  dt^2/2]    e_y = sqrt(q_2 dt) w_1
                         [dt^2/2  dt    ]    e_x = sqrt(q_2 dt) dt (w_1 / 2 + w_2 / sqrt(12))
    ageing's walk    q_3 [dt^5/20 dt^4/8 dt^3/6]    e_d = sqrt(q_3 dt) w_1
                         [dt^4/8  dt^3/3 dt^2/2]    e_y = sqrt(q_3 dt) dt (w_1 / 2 + w_2 / sqrt(12))
                         [dt^3/6  dt^2/2 dt    ]    e_x = sqrt(q_3 dt) dt^2 (w_1 / 6 + w_2 / sqrt(48) + w_3 / sqrt(720))

Flicker FM is that of `noise.terms` with B = sqrt(pi h_-1). Taking its integral by the ends alone changes the density of its
fastest process, 22 ms, by (dt / tau)^2 / 12, 2e-4.

Source: Zucca and Tavella 2005, IEEE UFFC 52(2) 289-296.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from navsense.clock._nodes import NODE_INTERVAL, NODE_RATE
from navsense.clock.oscillator import FLICKER_BAND, Oscillator, TemperatureSignal
from navsense.kernels import kernel
from navsense.noise.terms import add_flicker, make_components, write_coefficients
from navsense.random_streams import Draws, RandomProcess, StreamKey
from navsense.typing import FloatArray, IntArray

_CHANNEL = "oscillator"
_WHITE, _WALK, _AGEING, _FLICKER = "white_frequency", "random_walk_frequency", "ageing_walk", "flicker_frequency"
_HALF, _TWELFTH, _SIXTH = 1.0 / 2.0, 1.0 / math.sqrt(12.0), 1.0 / 6.0
_FORTY_EIGHTH, _LAST = 1.0 / math.sqrt(48.0), 1.0 / math.sqrt(720.0)


@kernel
def integrate(
    dt: float,
    frequency: FloatArray,
    draws: FloatArray,
    rows: IntArray,
    density: FloatArray,
    state: FloatArray,
    out: FloatArray,
) -> None:
    """Add the phase (s) at the nodes that follow, dt (s) apart, to out (n,); state = [x, y, d] is left at the last.

    frequency (n + 1,) is what flicker and temperature make, from the node before on; rows and density (3,) are the
    first row of draws and sqrt(q dt) of white FM, random-walk FM and the ageing's walk, -1 for one that does not act.
    """
    x, y, d = state[0], state[1], state[2]
    for i in range(out.shape[0]):
        e_x, e_y, e_d = 0.0, 0.0, 0.0
        if rows[0] >= 0:
            e_x = density[0] * draws[rows[0], i]
        if rows[1] >= 0:
            one, two = draws[rows[1], i], draws[rows[1] + 1, i]
            e_y = density[1] * one
            e_x += density[1] * dt * (_HALF * one + _TWELFTH * two)
        if rows[2] >= 0:
            one, two, three = draws[rows[2], i], draws[rows[2] + 1, i], draws[rows[2] + 2, i]
            e_d = density[2] * one
            e_y += density[2] * dt * (_HALF * one + _TWELFTH * two)
            e_x += density[2] * dt * dt * (_SIXTH * one + _FORTY_EIGHTH * two + _LAST * three)
        x += dt * (y + 0.5 * dt * d) + 0.5 * dt * (frequency[i] + frequency[i + 1]) + e_x
        y += dt * d + e_y
        d += e_d
        out[i] += x
    state[0], state[1], state[2] = x, y, d


@kernel
def add_temperature_shift(
    linear: float, quadratic: float, turnover: float, temperature: FloatArray, out: FloatArray
) -> None:
    """Add to out (n,) the fractional frequency that a temperature (n,) K makes."""
    for i in range(out.shape[0]):
        warmth = temperature[i] - turnover
        out[i] += warmth * (linear + quadratic * warmth)


def processes(oscillator: Oscillator) -> tuple[RandomProcess, ...]:
    """Return the random processes that act, each with a stream of its own."""
    count = make_components(0.0, *FLICKER_BAND)[0].size
    found = (
        (oscillator.frequency_stddev, RandomProcess(_CHANNEL, "frequency", initial=1, per_tick=0)),
        (oscillator.ageing_stddev, RandomProcess(_CHANNEL, "ageing", initial=1, per_tick=0)),
        (oscillator.white_frequency, RandomProcess(_CHANNEL, _WHITE)),
        (oscillator.random_walk_frequency, RandomProcess(_CHANNEL, _WALK, per_tick=2)),
        (oscillator.ageing_random_walk, RandomProcess(_CHANNEL, _AGEING, per_tick=3)),
        (oscillator.flicker_frequency, RandomProcess(_CHANNEL, _FLICKER, initial=count, per_tick=count)),
    )
    return tuple(process for size, process in found if size > 0.0)


class OscillatorPhase:
    """One oscillator in one run, read forwards node by node.

    `line` is what needs no node: offset (s), frequency and ageing (1/s) of this run, a constant temperature included.
    `moves` is false where nothing else acts.
    """

    def __init__(self, oscillator: Oscillator, seed: int, key: StreamKey) -> None:
        """Draw what is drawn once, and stand at node 0."""
        acting = processes(oscillator)
        self._draws = Draws(acting, seed, key)
        drawn = _split_initial(acting, self._draws.initial)
        self._oscillator = oscillator
        frequency = oscillator.frequency + oscillator.frequency_stddev * _get_draw(drawn, "frequency")
        ageing = oscillator.ageing + oscillator.ageing_stddev * _get_draw(drawn, "ageing")
        self._temperature: TemperatureSignal | None = None
        if isinstance(oscillator.temperature, int | float):
            frequency += oscillator.temperature_shift(oscillator.temperature)
        elif oscillator.temperature_linear != 0.0 or oscillator.temperature_quadratic != 0.0:
            self._temperature = oscillator.temperature
        self.polynomial = (oscillator.offset, frequency, ageing)
        self.varies = self._draws.rows > 0 or self._temperature is not None
        rows = _assign_rows(acting)
        self._rows = np.array([rows.get(name, -1) for name in (_WHITE, _WALK, _AGEING)], dtype=np.int64)
        self._density = np.array([math.sqrt(q * NODE_INTERVAL) for q in _compute_intensities(oscillator)])
        self._state = np.zeros(3)
        self._modes, self._phi, self._q = _init_flicker(oscillator, drawn)
        self._flicker_row = rows.get(_FLICKER, 0)
        self._frequency = np.zeros(1)
        for mode in self._modes:
            self._frequency[0] += mode
        self._add_temperature_shift(0, self._frequency)

    def advance(self, first: int, out: FloatArray) -> None:
        """Add the phase (s) at the nodes (n,) from `first` on, which follow those of the last call."""
        draws = self._draws.take(out.size)
        frequency = np.zeros(out.size + 1)
        frequency[0] = self._frequency[-1]
        row = self._flicker_row
        add_flicker(self._phi, self._q, draws[row : row + self._phi.size], self._modes, frequency[1:])
        self._add_temperature_shift(first, frequency[1:])
        integrate(NODE_INTERVAL, frequency, draws, self._rows, self._density, self._state, out)
        self._frequency = frequency

    def _add_temperature_shift(self, first: int, out: FloatArray) -> None:
        if self._temperature is not None:
            nodes = np.arange(first, first + out.size) / NODE_RATE
            sheet = self._oscillator
            sizes = (sheet.temperature_linear, sheet.temperature_quadratic, sheet.turnover_temperature)
            add_temperature_shift(*sizes, self._temperature.at(nodes), out)


def _compute_intensities(oscillator: Oscillator) -> tuple[float, float, float]:
    """Return q_1 (s), q_2 (1/s) and q_3 (1/s^3)."""
    walk = 2.0 * math.pi**2 * oscillator.random_walk_frequency
    return (oscillator.white_frequency / 2.0, walk, oscillator.ageing_random_walk)


def _init_flicker(oscillator: Oscillator, drawn: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the modes of flicker FM at node 0, and the coefficients of a step; all empty without it."""
    if _FLICKER not in drawn:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    tau, deviation = make_components(math.sqrt(math.pi * oscillator.flicker_frequency), *FLICKER_BAND)
    phi, q = np.empty(tau.size), np.empty(tau.size)
    write_coefficients(NODE_INTERVAL, tau, deviation, phi, q)
    return deviation * drawn[_FLICKER], phi, q


def _split_initial(acting: Sequence[RandomProcess], draws: FloatArray) -> dict[str, FloatArray]:
    """Return each process's initial draws."""
    ends = np.cumsum([process.initial for process in acting])
    return {process.name: draws[end - process.initial : end] for process, end in zip(acting, ends, strict=True)}


def _get_draw(drawn: Mapping[str, FloatArray], name: str) -> float:
    """Return a process's one initial draw, 0 where it does not act."""
    return float(drawn[name][0]) if name in drawn else 0.0


def _assign_rows(acting: Sequence[RandomProcess]) -> dict[str, int]:
    """Return each process's first row of draws."""
    found, row = {}, 0
    for process in acting:
        if process.per_tick:
            found[process.name], row = row, row + process.per_tick
    return found

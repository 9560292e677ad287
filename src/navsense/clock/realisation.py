"""The realisation of a clock: its error as a function of time in one run, the same for every sensor on the clock.

The error is computed once, in a linked list of blocks of nodes. Each reader holds the block of its latest time and
requests the next block. Blocks that all readers have passed are freed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from navsense.clock._nodes import NODE_INTERVAL, NODE_RATE, add_parabola, interpolate, parabola, write_gauss_markov
from navsense.clock.base import Clock
from navsense.clock.discipline import ClockSteering
from navsense.clock.oscillator import OscillatorPhase
from navsense.core.errors import ClockError
from navsense.core.random_streams import BLOCK_SAMPLES, Draws, StreamKey
from navsense.core.readings import LONGEST_TIME
from navsense.core.typing import FloatArray, Times
from navsense.noise.channels import NoiseChannels
from navsense.noise.kernels import DYNAMIC_BIAS_STATE
from navsense.noise.specification import Noise
from navsense.noise.terms import decay_factor, gauss_markov_stddev

MIN_NODES = 256
"""Smallest number of nodes that are computed at once."""

_CHANNEL = "clock"


class _NoiseBias:
    """The bias of a clock's noise in one run, computed forwards node by node.

    turn_on: s.
    dynamic: dynamic bias (s) at the last node.
    """

    def __init__(self, noise: Noise, seed: int, key: StreamKey) -> None:
        """Draw the turn-on bias and the dynamic bias at node 0."""
        channels = NoiseChannels((_CHANNEL,), (replace(noise, stddev=0.0),))  # jitter has a stream of each sensor
        self._draws = Draws(channels.processes, seed, key)
        state = channels.init(self._draws.initial)
        self.turn_on, self.dynamic = float(state.turn_on[0]), float(state.bias_state[0, DYNAMIC_BIAS_STATE])
        self.varies = noise.has_dynamic_bias
        if self.varies:
            sigma, tau = noise.dynamic_bias_stddev, noise.dynamic_bias_correlation_time
            self._phi, self._q = decay_factor(NODE_INTERVAL, tau), gauss_markov_stddev(NODE_INTERVAL, sigma, tau)

    def advance(self, out: FloatArray) -> None:
        """Write the dynamic bias (s) at the next nodes (n,)."""
        self.dynamic = write_gauss_markov(self.dynamic, self._phi, self._q, self._draws.take(out.size)[0], out)


@dataclass(eq=False, slots=True)
class _NodeBlock:
    """The errors of a clock at the nodes from number `first` to `last`.

    error_before, error_after: (n + 1,) s, just before and just after each node; they differ at a step.
    next_block: None until it is computed. Its first node is node `last`.
    """

    first: int
    error_before: FloatArray
    error_after: FloatArray
    next_block: _NodeBlock | None = None
    last: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute the number of the last node."""
        self.last = self.first + self.error_before.size - 1


class _NodeGenerator:
    """Computes the nodes of one clock in one run, block after block."""

    def __init__(self, clock: Clock, seed: int, run: int) -> None:
        """Start at node 0."""
        key: StreamKey = (run, "clock", clock.name)
        self._bias = _NoiseBias(clock.noise, seed, key)
        self._phase = OscillatorPhase(clock.oscillator, seed, key) if clock.oscillator else None
        self._steering = ClockSteering(clock.discipline, seed, key) if clock.discipline else None
        self.constant = self._bias.turn_on
        self.polynomial = self._phase.polynomial if self._phase else (0.0, 0.0, 0.0)
        offset, frequency, ageing = self.polynomial
        self._polynomial_with_constant = np.array([self.constant + offset, frequency, ageing])
        phase_varies = self._phase is not None and self._phase.varies
        self.varies = self._bias.varies or phase_varies or self._steering is not None

    def make_first(self) -> _NodeBlock:
        """Return a block with node 0. Call this before `get_next`."""
        bias = np.array([self._bias.dynamic])
        return _NodeBlock(0, bias, bias)

    def get_next(self, block: _NodeBlock, last_needed: int) -> _NodeBlock:
        """Return the block after `block`. A new block ends after node `last_needed`, or after `BLOCK_SAMPLES` nodes."""
        if block.next_block is None:
            block.next_block = self._make_next(block, last_needed)
        return block.next_block

    def _make_next(self, block: _NodeBlock, last_needed: int) -> _NodeBlock:
        """Compute the block after `block`."""
        first = block.last
        count = min(max(last_needed + 1 - first, MIN_NODES), BLOCK_SAMPLES)
        nodes = np.empty(count + 1)
        if self._bias.varies:
            self._bias.advance(nodes[1:])
        else:
            nodes.fill(self._bias.dynamic)
        if self._phase is not None and self._phase.varies:
            self._phase.advance(first + 1, nodes[1:])
        if self._steering is None:
            nodes[0] = block.error_after[-1]
            return _NodeBlock(first, nodes, nodes)
        before, after = np.empty(count + 1), np.empty(count + 1)
        before[0], after[0] = block.error_before[-1], block.error_after[-1]
        self._steering.advance(first + 1, nodes[1:], self._polynomial_with_constant, before[1:], after[1:])
        return _NodeBlock(first, before, after)


class ClockRealisation:
    """The error of a clock in one run, read forwards in time.

    constant: the turn-on bias (s).
    varies: true if the error has a varying part, see `varying_error`.

    >>> clock = ns.clock.Clock("auv::hull::computer", ns.Noise(bias_mean=0.002), ns.clock.Oscillator(frequency=20e-6))
    >>> realisation = ns.clock.ClockRealisation(clock, seed=1, run=0)
    >>> realisation.constant, realisation.varying_error(np.array([0.0, 60.0]))  # s
    (0.002, array([0.    , 0.0012]))
    """

    def __init__(self, clock: Clock, seed: int, run: int) -> None:
        """Start at t = 0."""
        self._generator = _NodeGenerator(clock, seed, run)
        self._nodes, self._node = self._generator.make_first(), 0
        self.constant, self._polynomial = self._generator.constant, self._generator.polynomial
        self._has_polynomial = any(self._polynomial)
        self._steps = clock.steps
        self.varies = self._generator.varies or self._has_polynomial or bool(self._steps)

    def copy(self) -> ClockRealisation:
        """Return another reader of the same realisation at the same time."""
        other = ClockRealisation.__new__(ClockRealisation)
        other.__dict__.update(self.__dict__)  # `copy.copy` takes five times as long
        return other

    def has_passed(self, time: float) -> bool:
        """Return True if a time (s) is before the node that this reader has reached."""
        return math.floor(time * NODE_RATE) < self._node

    def varying_error(self, time: Times) -> FloatArray:
        """Return the error without the constant (n,) s at `time` (n,) s.

        Raises `ClockError` if `time` decreases, also between calls.
        """
        if time.shape[0] == 1:
            return np.array([self.varying_error_at(float(time[0]))])
        if not self.varies or not time.shape[0]:
            return np.zeros(time.shape[0])
        self._seek(time[0])
        self._node = math.floor(time[-1] * NODE_RATE)
        out = np.empty(time.shape[0])
        if self._generator.varies:
            nodes = self._nodes
            done = interpolate(time, 0, nodes.first, nodes.error_before, nodes.error_after, out)
            while done < time.shape[0]:
                if math.floor(time[done] * NODE_RATE) < nodes.first:
                    raise _make_order_error(time[done])
                nodes = self._nodes = self._generator.get_next(nodes, self._node)
                done = interpolate(time, done, nodes.first, nodes.error_before, nodes.error_after, out)
        else:
            out.fill(0.0)
        if self._has_polynomial:
            add_parabola(time, *self._polynomial, out)
        for step in self._steps:
            out[(time >= step.start) & (time < step.end)] += step.size
        return out

    def varying_error_at(self, time: float) -> float:
        """Return the error without the constant (s) at one time (s), without a kernel call."""
        value, node = 0.0, self._seek(time)
        if self._generator.varies:
            nodes = self._nodes
            while node >= nodes.last:
                nodes = self._nodes = self._generator.get_next(nodes, node)
            k = node - nodes.first
            value = float(nodes.error_after[k])
            value += (time * NODE_RATE - node) * (float(nodes.error_before[k + 1]) - value)
        if self._has_polynomial:
            value += parabola(time, *self._polynomial)
        for step in self._steps:
            if step.start <= time < step.end:
                value += step.size
        return value

    def _seek(self, time: float) -> int:
        """Return the node at or before a time (s). Raises `ClockError` if it is before the previous node."""
        node = math.floor(time * NODE_RATE)
        if node < self._node:
            raise _make_order_error(time)
        self._node = node
        return node


def _make_order_error(time: float) -> ClockError:
    """Return the error for a time (s) before the previous one."""
    return ClockError("time", float(time), allowed="must not go back", remedy="open a new realisation of the clock")


def compute_error(clock: Clock, time: Times, *, seed: int, run: int = 0) -> FloatArray:
    """Return the error (n,) s of a clock at non-decreasing times (n,) s, without jitter, limits and precision.

    Raises `ClockError` for times that are negative, not finite or decrease.

    >>> clock = ns.clock.Clock("auv::hull::computer", oscillator=ns.clock.get_oscillator("TCXO"))
    >>> error = ns.clock.compute_error(clock, np.arange(0.0, 60.0), seed=1)
    >>> bool(abs(error[-1]) < 60 * 1.5e-6)  # the tolerance of the grade is 1.5 ppm
    True
    """
    realisation = ClockRealisation(clock, seed, run)
    return realisation.constant + realisation.varying_error(check_instants(time))


def check_instants(time: Times) -> Times:
    """Return times (n,) s as an array. Raises `ClockError` if they are negative, not finite or decrease.

    >>> ns.clock.check_instants([0.0, 0.5])
    array([0. , 0.5])
    """
    instants: Times = np.asarray(time, dtype=np.float64)
    if instants.ndim != 1:
        raise ClockError("instants", f"shape {instants.shape}", allowed="must be (n,)")
    is_valid = np.isfinite(instants) & (instants >= 0.0) & (instants < LONGEST_TIME)
    if not is_valid.all():
        allowed = f"must be from 0 to {LONGEST_TIME:g} s"
        raise ClockError("instant (s)", float(instants[~is_valid][0]), allowed=allowed)
    if (np.diff(instants) < 0.0).any():
        raise ClockError("instants", "go back", allowed="must not go back")
    return instants

"""Random currents: speed and direction as first-order Gauss-Markov processes with limits.

    dx = -(x - mean) / tau dt + sigma dW            for speed (m/s), horizontal and vertical angle (rad)
    v_w = speed (cos h cos e, sin h cos e, sin e)   h counter-clockwise from the world's x axis, e upwards

`GaussMarkovProcess` is this process, exact from node to node. With a finite `correlation_time` tau it is stationary
from the start of the run, with the standard deviation `density` sqrt(tau / 2). With an infinite tau it is a random walk
from the mean. The process is reflected at its limits. The node spacing is a power of two of a second from 1/8 to 1/1024
and at most 1/256 of the shortest tau. Linear interpolation between nodes reduces the variance by at most 1/512, or
1/205 at the smallest tau of 0.1 s.

`UuvGaussMarkovProcess` is the process of the UUV Simulator (and DAVE). In each physics step::

    x <- (1 - step mu) x + noise_amplitude (U - 1/2),   clipped to [minimum, maximum],   U uniform on [0, 1)

It starts at the mean. With mu > 0 the mean decays to zero. Its variance depends on the step. The method `to_physical`
returns the `GaussMarkovProcess` with the same limits, tau = 1 / mu and the density noise_amplitude / sqrt(12 step).

The processes are computed at nodes in time::

    t_k = k / rate                                                                   k = 0, 1, 2, ...
    d_k = phi d_(k-1) + q w_k,  x_k = reflect(mean + d_k)                            physical, w a standard normal
    x_k = clip(phi x_(k-1) + q (u_k - 1/2))                                          classic, u uniform on [0, 1)
    v_k = s_k (cos h_k cos e_k, sin h_k cos e_k, sin e_k),  h_k = turn + sign a_k    s speed, a and e angles

`reflect` reflects at the limits, for steps of any size. Between nodes the vector is linear in time (physical) or
constant (classic). Each process has its own random stream. The states of the streams and processes are stored once per
chunk of nodes. A query at any time restarts from the nearest stored state.

Source: Fossen 2011, Handbook of Marine Craft Hydrodynamics and Motion Control, 8.1; source of the UUV Simulator,
`GaussMarkovProcess.cc` and `UnderwaterCurrentPlugin.cc`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.field_metadata import NOT_IN_FILE, in_file
from navsense.core.intervals import find_interval
from navsense.core.kernels import kernel
from navsense.core.random_streams import StreamKey, fill_rows, make_initial_state
from navsense.core.readings import LONGEST_TIME
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, IntArray, Quaternion, Times, UInt64Array, Vectors
from navsense.core.validation import check_number
from navsense.environment.current.base import (
    MAX_COORDINATE,
    MAX_SPEED,
    OutsideRule,
    check_coordinate,
    compute_vertical_rotation_angle,
    make_unrealised_error,
    rotate_heading,
)
from navsense.noise.terms import decay_factor, gauss_markov_stddev, stationary_stddev

MEAN, PHI, Q, LOW, HIGH, START, CLASSIC = range(7)
"""Columns of the coefficients: START is the standard deviation of d_0, CLASSIC is not 0 for a classic process."""

NODES_PER_CHUNK, CLASSIC_NODES_PER_CHUNK = 512, 4096
"""Nodes per chunk, fewer for many layers. A classic process has a node in each physics step."""

_MAX_CHUNK_CELLS = 65536
_MAX_CACHED_CHUNKS = 8
_NODE_TOLERANCE = 1e-6


@kernel
def _advance(
    coefficients: FloatArray,
    rows: FloatArray,
    restarts: FloatArray,
    draws: FloatArray,
    state: FloatArray,
    out: FloatArray,
) -> None:
    """Write the processes (p, n + 1) that start at `state` (p,), and update `state`.

    rows: (p,) of draws, or -1. restarts: (p,) node at which a process is at its mean again, or -1.
    """
    for p in range(coefficients.shape[0]):
        x, phi, q = state[p], coefficients[p, PHI], coefficients[p, Q]
        low, high = coefficients[p, LOW], coefficients[p, HIGH]
        row, classic = int(rows[p]), coefficients[p, CLASSIC] != 0.0
        restart = int(restarts[p])
        mean = coefficients[p, MEAN] if classic else 0.0
        if restart == 0:
            x = mean
        out[p, 0] = x
        for i in range(1, out.shape[1]):
            x = phi * x
            if row >= 0:
                x += q * (draws[row, i - 1] - 0.5) if classic else q * draws[row, i - 1]
            if classic:
                x = max(low, min(high, x))
            if i == restart:
                x = mean
            out[p, i] = x
        state[p] = x


@kernel
def _process_value(coefficients: FloatArray, p: int, x: float) -> float:
    """Return the value of a process: its state reflected at the limits."""
    if coefficients[p, CLASSIC] != 0.0:
        return x
    x += coefficients[p, MEAN]
    low: float = coefficients[p, LOW]
    high: float = coefficients[p, HIGH]
    if low <= x <= high:
        return x
    if low == -math.inf:
        return max(2.0 * high - x, low)
    if high == math.inf:
        return 2.0 * low - x
    width, excess = high - low, x - low
    excess -= 2.0 * width * math.floor(excess / (2.0 * width))
    return max(low, min(high, low + (excess if excess <= width else 2.0 * width - excess)))


@kernel
def _write_vectors(
    coefficients: FloatArray, processes_per_layer: int, sign: float, turn: float, states: FloatArray, out: FloatArray
) -> None:
    """Write the velocity (n, layers, 3) m/s of processes (p, n): speed, angle and elevation (if three per layer)."""
    for i in range(out.shape[0]):
        for layer in range(out.shape[1]):
            p = processes_per_layer * layer
            speed = _process_value(coefficients, p, states[p, i])
            angle = turn + sign * _process_value(coefficients, p + 1, states[p + 1, i])
            horizontal, vertical = speed, 0.0
            if processes_per_layer == 3:
                elevation = _process_value(coefficients, p + 2, states[p + 2, i])
                horizontal, vertical = speed * math.cos(elevation), speed * math.sin(elevation)
            out[i, layer, 0] = horizontal * math.cos(angle)
            out[i, layer, 1] = horizontal * math.sin(angle)
            out[i, layer, 2] = vertical


@kernel
def _interpolate(
    position_w: Vectors,
    time: Times,
    start: int,
    first: int,
    rate: float,
    linear: bool,
    vectors: FloatArray,
    depths: FloatArray,
    surface: float,
    hold: bool,
    out: Vectors,
) -> int:
    """Write the velocity from row `start` on; return the first row outside the nodes, or -1 - row for the depth."""
    last: int = vectors.shape[0] - 1
    layers: int = depths.shape[0]
    count: int = time.shape[0]
    k, near = 0, 0
    for i in range(start, count):
        position = time[i] * rate
        if not 0.0 <= position < 9e15:
            return i
        node = math.floor(position if linear else position + _NODE_TOLERANCE)
        if node < first or node - first >= last:
            return i
        k = int(node) - first
        fraction = position - node if linear else 0.0
        weight = 0.0
        if layers > 1:
            depth = surface - position_w[i, 2]
            if not (hold or depths[0] <= depth <= depths[layers - 1]) or depth != depth:
                return -1 - i
            depth = max(depths[0], min(depths[layers - 1], depth))
            near = find_interval(depths, depth, near)
            weight = (depth - depths[near]) / (depths[near + 1] - depths[near])
        for axis in range(3):
            v = vectors[k, near, axis] + fraction * (vectors[k + 1, near, axis] - vectors[k, near, axis])
            if layers > 1:
                u = vectors[k, near + 1, axis]
                u = u + fraction * (vectors[k + 1, near + 1, axis] - vectors[k, near + 1, axis])
                v += weight * (u - v)
            out[i, axis] = v
    return count


@dataclass(frozen=True, eq=False)
class RandomCurrentModel:
    """The parameters of a random current without seed and run. The module docstring has the model.

    name: key of the random stream.
    coefficients: (p, 7), one process per row; names: their names.
    processes_per_layer: number of processes of each layer.
    depths: (layers,) m.
    rate: nodes per second.
    turn, sign: horizontal angle from the world's x axis, h = turn + sign a.
    surface: world height of the water surface, m.
    outside: rule outside the depths of the layers.
    restarts: (p,) the last node at which each process was set to its mean; -1 for none.
    """

    name: str
    coefficients: FloatArray
    names: tuple[str, ...]
    processes_per_layer: int
    depths: FloatArray
    rate: float
    turn: float
    sign: float = 1.0
    surface: float = 0.0
    outside: OutsideRule = "hold"
    restarts: tuple[int, ...] = ()

    @cached_property
    def is_classic(self) -> bool:
        """True for the process of the UUV Simulator, which is constant between nodes."""
        return bool(self.coefficients[0, CLASSIC])


class RandomCurrent:
    """A random current (m/s) in one run, a function of position and time. It is thread-safe.

    It stores the state at the start of each chunk of nodes up to the last one computed, and the velocities of a few
    chunks.
    """

    def __init__(self, model: RandomCurrentModel, seed: int, run: int) -> None:
        """Draw the state at t = 0."""
        self._model, self._seed, self._run, self._lock = model, seed, run, Lock()
        coefficients = model.coefficients
        count = CLASSIC_NODES_PER_CHUNK if model.is_classic else NODES_PER_CHUNK
        self._chunk_size = max(16, min(count, _MAX_CHUNK_CELLS // model.depths.size))
        active = self._list_active_processes()
        states = np.empty((active.size, 4), dtype=np.uint64)
        for row, p in enumerate(active):
            states[row] = self._make_initial_state(int(p))
        values = coefficients[:, MEAN].copy() if model.is_classic else np.zeros(len(model.names))
        if not model.is_classic and active.size:
            values[active] = coefficients[active, START] * self._draw(states, 1)[:, 0]
        self._states: list[UInt64Array] = [states]
        self._start_values: list[FloatArray] = [values]
        self._chunks: OrderedDict[int, FloatArray] = OrderedDict()
        self._first_chunk = 0

    def _list_active_processes(self) -> IntArray:
        """Return the processes (k,) that have noise, and set the row of the draws of each process."""
        active = np.flatnonzero(self._model.coefficients[:, Q] > 0.0)
        self._rows = np.full(len(self._model.names), -1.0)
        self._rows[active] = np.arange(active.size)
        return active

    def _make_initial_state(self, process: int) -> UInt64Array:
        """Return the state (4,) of the random stream of a process at t = 0."""
        model = self._model
        kind = "classic" if model.is_classic else "drift"
        key: StreamKey = (self._run, "current", model.name, model.names[process], kind)
        return make_initial_state(self._seed, key)

    def restart(self, index: int, process: AnyGaussMarkovProcess, time: float) -> RandomCurrent:
        """Return the current after one of its processes was replaced at `time` (s), for this time and later ones.

        The process is at its mean at the last node up to `time`, and then draws the numbers that the old one would
        have drawn. The other processes continue. The number of nodes per second does not change.
        """
        model = self._model
        node = math.floor(time * model.rate + (_NODE_TOLERANCE if model.is_classic else 0.0))
        chunk = node // self._chunk_size
        coefficients = model.coefficients.copy()
        coefficients[index] = process.discretise(model.rate)
        restarts = list(model.restarts or (-1,) * len(model.names))
        restarts[index] = node
        with self._lock:
            self._get_vectors(chunk)
            old_rows, states = self._rows, self._states[chunk - self._first_chunk]
            values = self._start_values[chunk - self._first_chunk].copy()
        new = RandomCurrent(replace(model, coefficients=coefficients, restarts=tuple(restarts)), self._seed, self._run)
        rows = [
            states[int(old_rows[p])] if old_rows[p] >= 0.0 else self._make_initial_state(p)
            for p in new._list_active_processes().tolist()
        ]
        new._first_chunk = chunk
        new._states, new._start_values = [np.array(rows, dtype=np.uint64).reshape(-1, 4)], [values]
        return new

    def _draw(self, states: UInt64Array, count: int) -> FloatArray:
        """Return the next draws (rows, count) and advance the states."""
        rows = states.shape[0]
        out = np.empty((rows, count))
        uniform = np.full(rows, int(self._model.is_classic), dtype=np.int64)
        fill_rows(states, uniform, np.arange(rows), np.ones(rows, dtype=np.int64), out)
        return out

    def _compute_states(self, index: int) -> FloatArray:
        """Return the processes (p, chunk_size + 1) at the nodes of a chunk whose start is known.

        index: that of the chunk, counted from the first one.
        """
        states, values = self._states[index].copy(), self._start_values[index].copy()
        out = np.empty((values.size, self._chunk_size + 1))
        model, first = self._model, (self._first_chunk + index) * self._chunk_size
        restarts = np.full(values.size, -1.0)
        if model.restarts:
            nodes = np.array(model.restarts) - first
            restarts = np.where((nodes >= 0) & (nodes <= self._chunk_size), nodes, -1.0)
        _advance(model.coefficients, self._rows, restarts, self._draw(states, self._chunk_size), values, out)
        if index + 1 == len(self._start_values):
            self._states.append(states)
            self._start_values.append(values)
        return out

    def _get_vectors(self, chunk: int) -> FloatArray:
        """Return the velocity (chunk_size + 1, layers, 3) m/s at the nodes of a chunk."""
        if chunk in self._chunks:
            self._chunks.move_to_end(chunk)
            return self._chunks[chunk]
        index = chunk - self._first_chunk
        while len(self._start_values) <= index:
            self._compute_states(len(self._start_values) - 1)
        model, out = self._model, np.empty((self._chunk_size + 1, self._model.depths.size, 3))
        states = self._compute_states(index)
        _write_vectors(model.coefficients, model.processes_per_layer, model.sign, model.turn, states, out)
        self._chunks[chunk] = out
        if len(self._chunks) > _MAX_CACHED_CHUNKS:
            self._chunks.popitem(last=False)
        return out

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s at times in any order. Increasing times are fastest.

        Raises `FieldError` for a time that is below 0, above `LONGEST_TIME` or not finite. With the rule "error", it
        also raises for a depth outside the layers.
        """
        model, out, done = self._model, np.empty((time.shape[0], 3)), 0
        position_w, time = np.ascontiguousarray(position_w), np.ascontiguousarray(time)
        layers = (model.depths, model.surface, model.outside == "hold")
        linear = not model.is_classic
        with self._lock:
            while 0 <= done < time.shape[0]:
                instant = float(time[done])
                if not 0.0 <= instant < LONGEST_TIME:
                    allowed = f"must be from 0 to {LONGEST_TIME:g} s"
                    raise FieldError("instant (s)", instant, row=done, allowed=allowed)
                chunk = math.floor(instant * model.rate + (0.0 if linear else _NODE_TOLERANCE)) // self._chunk_size
                if chunk < self._first_chunk:
                    raise FieldError("instant (s)", instant, row=done, allowed="must not be before the last change")
                first, vectors = chunk * self._chunk_size, self._get_vectors(chunk)
                done = _interpolate(position_w, time, done, first, model.rate, linear, vectors, *layers, out)
        if done < 0:
            row = -1 - done
            raise make_depth_error(model.depths, model.surface - float(position_w[row, 2]), row)
        return out

    def rotate(self, rotation: Quaternion) -> RandomCurrent:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        turn = self._model.turn + compute_vertical_rotation_angle(rotation)
        rotated = RandomCurrent(replace(self._model, turn=turn), self._seed, self._run)
        rotated._first_chunk = self._first_chunk
        rotated._states, rotated._start_values = self._states[:1], self._start_values[:1]
        return rotated


def make_depth_error(depths: FloatArray, depth: float, row: int) -> FieldError:
    """Return the error of a depth (m) outside the layers."""
    allowed = f"must be from {depths[0]:g} to {depths[-1]:g}, the depths of the layers"
    return FieldError("depth (m)", depth, row=row, allowed=allowed, remedy='use outside="hold" for the nearest layer')


MIN_CORRELATION_TIME = 0.1
"""Smallest correlation time (s). Faster variations are turbulence."""

MAX_STDDEV = 100.0
"""Largest stationary standard deviation (m/s or rad)."""

MIN_LIMIT_DISTANCE = 1e-9
"""Smallest distance between the limits (m/s or rad), so that the number of reflections is exact."""

_NODES_PER_CORRELATION_TIME = 256.0
_MIN_NODE_RATE, _MAX_NODE_RATE = 8.0, 1024.0


def _check_limits(what: str, mean: float, minimum: float, maximum: float) -> None:
    if not minimum < maximum:
        raise FieldError(f"minimum of the {what}", minimum, allowed=f"must be below the maximum, {maximum!r}")
    if not minimum <= mean <= maximum:
        raise FieldError(f"mean of the {what}", mean, allowed=f"must be from {minimum!r} to {maximum!r}, its limits")


@dataclass(frozen=True)
class GaussMarkovProcess:
    """A first-order Gauss-Markov process between limits.

    mean, minimum, maximum: m/s or rad.
    correlation_time: s, infinite for a random walk.
    density: driving density (unit per root second).

    Raises `FieldError` for limits that do not contain the mean or are less than `MIN_LIMIT_DISTANCE` apart, a
    correlation time below `MIN_CORRELATION_TIME` and a negative density.

    >>> process = ns.environment.current.GaussMarkovProcess.from_stddev(mean=0.3, stddev=0.1, correlation_time=600.0)
    >>> round(process.density, 6)  # stddev sqrt(2 / correlation_time)
    0.005774
    """

    mean: float = 0.0
    minimum: float = -math.inf
    maximum: float = math.inf
    correlation_time: float = math.inf
    density: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_number("mean of a process", self.mean, -1e6, 1e6, error=FieldError)
        _check_limits("process", self.mean, self.minimum, self.maximum)
        width, tau = self.maximum - self.minimum, self.correlation_time
        check_number("maximum less minimum of a process", width, MIN_LIMIT_DISTANCE, math.inf, error=FieldError)
        check_number("correlation time of a process (s)", tau, MIN_CORRELATION_TIME, math.inf, error=FieldError)
        check_number("density of a process", self.density, 0.0, 1e3, error=FieldError)

    @classmethod
    def from_stddev(
        cls, mean: float, stddev: float, correlation_time: float, minimum: float = -math.inf, maximum: float = math.inf
    ) -> GaussMarkovProcess:
        """Return the process with the stationary standard deviation `stddev` and a finite correlation time (s)."""
        limits = (MIN_CORRELATION_TIME, MAX_COORDINATE)
        check_number("correlation time of a process (s)", correlation_time, *limits, error=FieldError)
        check_number("stddev of a process", stddev, 0.0, MAX_STDDEV, error=FieldError)
        return cls(mean, minimum, maximum, correlation_time, stddev / stationary_stddev(1.0, correlation_time))

    @property
    def node_rate(self) -> float:
        """The required nodes per second, a power of two."""
        if self.density == 0.0 or self.correlation_time == math.inf:
            return _MIN_NODE_RATE
        exponent = math.ceil(math.log2(_NODES_PER_CORRELATION_TIME / self.correlation_time))
        return min(max(2.0**exponent, _MIN_NODE_RATE), _MAX_NODE_RATE)

    def discretise(self, rate: float) -> tuple[float, ...]:
        """Return mean, phi, q, limits, initial standard deviation and 0 for `rate` nodes per second."""
        tau, sigma, dt = self.correlation_time, self.density, 1.0 / rate
        if tau == math.inf:
            return (self.mean, 1.0, sigma * math.sqrt(dt), self.minimum, self.maximum, 0.0, 0.0)
        steps = decay_factor(dt, tau), gauss_markov_stddev(dt, sigma, tau)
        return (self.mean, *steps, self.minimum, self.maximum, stationary_stddev(sigma, tau), 0.0)


@dataclass(frozen=True)
class UuvGaussMarkovProcess:
    """The process of the UUV Simulator.

    mean, minimum, maximum: m/s or rad.
    mu: 1/s, from 0 to 1; noise_amplitude: from 0 to 1.
    step: physics step (s), from 1 us to 1 s.

    Raises `FieldError` as the UUV Simulator does, and for an invalid step.

    >>> process = ns.environment.current.UuvGaussMarkovProcess(mean=0.3, mu=0.1, noise_amplitude=0.05)
    >>> process.to_physical().correlation_time
    10.0
    """

    mean: float = 0.0
    minimum: float = field(default=-1.0, metadata=in_file("min"))
    maximum: float = field(default=1.0, metadata=in_file("max"))
    mu: float = 0.0
    noise_amplitude: float = field(default=0.0, metadata=in_file("noiseAmp"))
    step: float = field(default=1e-3, metadata=NOT_IN_FILE)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("mean", "minimum", "maximum"):
            check_number(f"{name} of a current's process", getattr(self, name), -1e6, 1e6, error=FieldError)
        _check_limits("current's process", self.mean, self.minimum, self.maximum)
        check_number("mu of a current's process (1/s)", self.mu, 0.0, 1.0, error=FieldError)
        check_number("noiseAmp of a current's process", self.noise_amplitude, 0.0, 1.0, error=FieldError)
        check_number("step of a current's process (s)", self.step, 1e-6, 1.0, error=FieldError)

    def to_physical(self) -> GaussMarkovProcess:
        """Return the equivalent `GaussMarkovProcess`, which does not depend on the step and reverts to its mean."""
        tau = min(max(1.0 / self.mu, MIN_CORRELATION_TIME), MAX_COORDINATE) if self.mu > 0.0 else math.inf
        return GaussMarkovProcess(
            self.mean, self.minimum, self.maximum, tau, self.noise_amplitude / math.sqrt(12.0 * self.step)
        )

    @property
    def node_rate(self) -> float:
        """The physics steps per second."""
        return 1.0 / self.step

    def discretise(self, rate: float) -> tuple[float, ...]:
        """Return mean, phi, q, limits, 0 and 1 for `rate` steps per second."""
        limits = (self.minimum, self.maximum)
        return (self.mean, 1.0 - self.mu / rate, self.noise_amplitude, *limits, 0.0, 1.0)


AnyGaussMarkovProcess = GaussMarkovProcess | UuvGaussMarkovProcess


def discretise_all(processes: Sequence[AnyGaussMarkovProcess]) -> tuple[FloatArray, float]:
    """Return the coefficients of the processes of a current, one per row, and the nodes per second.

    Raises `FieldError` for processes of both kinds, and for classic processes with different steps.
    """
    rates = {process.node_rate for process in processes}
    kinds = {type(process) for process in processes}
    if len(kinds) > 1:
        names = "GaussMarkovProcess and UuvGaussMarkovProcess"
        raise FieldError("processes of a current", names, allowed="must be of one kind")
    if UuvGaussMarkovProcess in kinds and len(rates) > 1:
        steps = ", ".join(f"{1.0 / rate:g}" for rate in sorted(rates))
        raise FieldError("steps of a current's processes (s)", steps, allowed="must be the same")
    rate = max(rates)
    return np.array([process.discretise(rate) for process in processes]), rate


def drop_circle_limits(direction: AnyGaussMarkovProcess) -> AnyGaussMarkovProcess:
    """Return the process of an angle without limits if these span the full circle."""
    if isinstance(direction, GaussMarkovProcess) and direction.maximum - direction.minimum >= 2.0 * math.pi - 1e-9:
        return replace(direction, minimum=-math.inf, maximum=math.inf)
    return direction


def check_current_name(name: str) -> None:
    """Raise `FieldError` for an empty name: the name is in the key of the random streams."""
    if not isinstance(name, str) or not name:
        raise FieldError("name of a current", name, allowed="must be a text that is not empty")


@dataclass(frozen=True)
class GaussMarkovCurrent:
    """A random current that is the same everywhere. It differs from run to run: `realise` returns that of one run.

    speed: m/s.
    horizontal_angle: rad, counter-clockwise from the direction `heading` clockwise of the world's x axis. With the
        origin's heading it is from east. A `GaussMarkovProcess` whose limits span the full circle has no limits.
    vertical_angle: rad, upwards.
    name: part of the key of the random streams.
    heading: rad.

    All three processes must be `GaussMarkovProcess`, or all `UuvGaussMarkovProcess` with one step. Raises `FieldError`
    otherwise, and for speeds above `MAX_SPEED`.

    >>> current = ns.environment.current
    >>> speed = current.GaussMarkovProcess.from_stddev(0.3, 0.1, 600.0, minimum=0.0, maximum=1.0)
    >>> water = current.GaussMarkovCurrent(speed).realise(seed=1, run=0)
    >>> water.at(np.zeros((3, 3)), np.array([0.0, 600.0, 1200.0])).round(2)  # m/s, ten minutes apart
    array([[0.34, 0.  , 0.  ],
           [0.39, 0.  , 0.  ],
           [0.16, 0.  , 0.  ]])
    """

    speed: AnyGaussMarkovProcess
    horizontal_angle: AnyGaussMarkovProcess = GaussMarkovProcess()
    vertical_angle: AnyGaussMarkovProcess = GaussMarkovProcess()
    name: str = "current"
    heading: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_current_name(self.name)
        check_coordinate("heading of a current (rad)", self.heading)
        check_number("mean speed of a current (m/s)", self.speed.mean, -MAX_SPEED, MAX_SPEED, error=FieldError)
        discretise_all(self.processes)

    @property
    def processes(self) -> tuple[AnyGaussMarkovProcess, ...]:
        """The processes of speed and angles, those of angles without limits that span the full circle."""
        return (self.speed, drop_circle_limits(self.horizontal_angle), self.vertical_angle)

    @property
    def random_names(self) -> tuple[str, ...]:
        """The name in the keys of its random streams."""
        return (self.name,)

    def realise(self, seed: int, run: int) -> RandomCurrent:
        """Return the field (m/s) of one run."""
        names = ("speed", "horizontal_angle", "vertical_angle")
        coefficients, rate = discretise_all(self.processes)
        model = RandomCurrentModel(self.name, coefficients, names, 3, np.zeros(1), rate, -self.heading)
        return RandomCurrent(model, seed, run)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Raise `FieldError`: use `realise`, a random current has a velocity in a run only."""
        raise make_unrealised_error(self.name)

    def rotate(self, rotation: Quaternion) -> GaussMarkovCurrent:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, heading=rotate_heading(self.heading, rotation))

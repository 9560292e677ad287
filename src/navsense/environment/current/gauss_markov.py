"""Currents that wander: speed and direction as first-order Gauss-Markov processes, between limits.

    dx = -(x - mean) / tau dt + sigma dW            each of speed (m/s), horizontal and vertical angle (rad)
    v_w = speed (cos h cos e, sin h cos e, sin e)   h counter-clockwise from the world's x axis, e upwards

`GaussMarkovProcess` is this process: exact from node to node, stationary from the run's start where `correlation_time`
tau is
finite (deviation `density` sqrt(tau / 2)), a random walk from the mean where it is not. Limits are mirrors. Nodes are
at most 1/256 of the shortest tau apart, the next lower power of two of a second from 1/8 to 1/1024; between them the
velocity is straight, which lowers the variance by up to 1/512, by 1/205 at the shortest tau, 0.1 s.

`UuvGaussMarkovProcess` is the process of the UUV Simulator (and DAVE): each physics step

    x <- (1 - step mu) x + noise_amplitude (U - 1/2),   clipped to [minimum, maximum],   U uniform on [0, 1)

starting at the mean, which with mu > 0 decays to zero; its spread depends on the step. `UuvGaussMarkovProcess.physical`
is the
`GaussMarkovProcess` of the same limits, tau = 1 / mu, and the density with which the classic one walks at its step,
noise_amplitude / sqrt(12 step).

Source: Fossen 2011, Handbook of Marine Craft Hydrodynamics and Motion Control, 8.1; source of the UUV Simulator,
`GaussMarkovProcess.cc` and `UnderwaterCurrentPlugin.cc`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from navsense.environment.base import VectorField
from navsense.environment.current.base import (
    MAX_COORDINATE,
    MAX_SPEED,
    OutsideRule,
    check_coordinate,
    find_interval,
    rotate_heading,
    unrealised_error,
    vertical_rotation_angle,
)
from navsense.errors import FieldError
from navsense.kernels import kernel
from navsense.noise.terms import decay_factor, stationary_stddev, step_stddev
from navsense.random_streams import StreamKey, fill_rows, seed_state
from navsense.series import LONGEST_TIME
from navsense.typing import FloatArray, Quaternion, Times, Vectors, WordArray
from navsense.validation import check_number

MEAN, PHI, Q, LOW, HIGH, START, CLASSIC = range(7)
"""Columns of the laws: START is the deviation of d_0, CLASSIC not 0 for the classic step."""

NODES_PER_CHUNK, CLASSIC_NODES_PER_CHUNK = 512, 4096
"""Nodes between two that are kept, fewer where there are many layers: a classic one has a node each physics step."""

_MAX_CHUNK_CELLS = 65536
_MAX_CACHED_CHUNKS = 8
_NODE_TOLERANCE = 1e-6


@kernel
def _advance(coefficients: FloatArray, rows: FloatArray, draws: FloatArray, at: FloatArray, out: FloatArray) -> None:
    """Write the processes (p, n + 1) from `at` (p,) on, which is left at the last; rows (p,) of draws, -1 for none."""
    for p in range(coefficients.shape[0]):
        x, phi, q, low, high = (
            at[p],
            coefficients[p, PHI],
            coefficients[p, Q],
            coefficients[p, LOW],
            coefficients[p, HIGH],
        )
        row, classic = int(rows[p]), coefficients[p, CLASSIC] != 0.0
        out[p, 0] = x
        for i in range(1, out.shape[1]):
            x = phi * x
            if row >= 0:
                x += q * (draws[row, i - 1] - 0.5) if classic else q * draws[row, i - 1]
            if classic:
                x = max(low, min(high, x))
            out[p, i] = x
        at[p] = x


@kernel
def _process_value(coefficients: FloatArray, p: int, x: float) -> float:
    """Return the value of a process from its state."""
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
    width, above = high - low, x - low
    above -= 2.0 * width * math.floor(above / (2.0 * width))
    return max(low, min(high, low + (above if above <= width else 2.0 * width - above)))


@kernel
def _write_vectors(
    coefficients: FloatArray, processes_per_layer: int, sign: float, turn: float, states: FloatArray, out: FloatArray
) -> None:
    """Write the velocity (n, layers, 3) m/s of processes (p, n): speed, angle and, of three parts, elevation."""
    for i in range(out.shape[0]):
        for layer in range(out.shape[1]):
            p = processes_per_layer * layer
            speed = _process_value(coefficients, p, states[p, i])
            angle = turn + sign * _process_value(coefficients, p + 1, states[p + 1, i])
            level, rise = speed, 0.0
            if processes_per_layer == 3:
                elevation = _process_value(coefficients, p + 2, states[p + 2, i])
                level, rise = speed * math.cos(elevation), speed * math.sin(elevation)
            out[i, layer, 0] = level * math.cos(angle)
            out[i, layer, 1] = level * math.sin(angle)
            out[i, layer, 2] = rise


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
    """Write the velocity from row `start` on; return the first row off the nodes, or -1 - row for a depth outside."""
    last: int = vectors.shape[0] - 1
    layers: int = depths.shape[0]
    count: int = time.shape[0]
    k, near = 0, 0
    for i in range(start, count):
        place = time[i] * rate
        if not 0.0 <= place < 9e15:
            return i
        node = math.floor(place if linear else place + _NODE_TOLERANCE)
        if node < first or node - first >= last:
            return i
        k = int(node) - first
        share = place - node if linear else 0.0
        below = 0.0
        if layers > 1:
            depth = surface - position_w[i, 2]
            if not (hold or depths[0] <= depth <= depths[layers - 1]) or depth != depth:
                return -1 - i
            depth = max(depths[0], min(depths[layers - 1], depth))
            near = find_interval(depths, depth, near)
            below = (depth - depths[near]) / (depths[near + 1] - depths[near])
        for axis in range(3):
            v = vectors[k, near, axis] + share * (vectors[k + 1, near, axis] - vectors[k, near, axis])
            if layers > 1:
                u = vectors[k, near + 1, axis] + share * (vectors[k + 1, near + 1, axis] - vectors[k, near + 1, axis])
                v += below * (u - v)
            out[i, axis] = v
    return count


@dataclass(frozen=True, eq=False)
class RandomCurrentModel:
    """All that a random current is made of but seed and run: the model at the head of this file, in numbers.

    `laws` (p, 7) one process a row, `names` theirs; `parts` processes a layer, `depths` (layers,) m, `rate` nodes a
    second, `turn` and `sign` of the horizontal angle against the world's x axis.
    """

    name: str
    coefficients: FloatArray
    names: tuple[str, ...]
    processes_per_layer: int
    depths: FloatArray
    rate: float
    linear: bool
    turn: float
    sign: float = 1.0
    surface: float = 0.0
    outside: OutsideRule = "hold"


class NodeCache:
    """The nodes of one current in one run, and the state at every `size` of them that were met."""

    def __init__(self, model: RandomCurrentModel, seed: int, run: int) -> None:
        """Draw node 0."""
        self.model = model
        classic = bool(model.coefficients[0, CLASSIC])
        self.chunk_size = max(
            16, min(CLASSIC_NODES_PER_CHUNK if classic else NODES_PER_CHUNK, _MAX_CHUNK_CELLS // model.depths.size)
        )
        key: StreamKey = (run, "current", model.name)
        acting = [p for p, law in enumerate(model.coefficients) if law[Q] > 0.0]
        states = np.empty((len(acting), 4), dtype=np.uint64)
        self._rows = np.full(len(model.names), -1.0)
        for row, p in enumerate(acting):
            states[row] = seed_state(seed, (*key, model.names[p], "classic" if classic else "drift"))
            self._rows[p] = row
        self._uniform = np.full(len(acting), int(classic), dtype=np.int64)
        at = model.coefficients[:, MEAN].copy() if classic else np.zeros(len(model.names))
        if not classic and acting:
            at[acting] = model.coefficients[acting, START] * self._draw(states, 1)[:, 0]
        self._states: list[WordArray] = [states]
        self._start_values: list[FloatArray] = [at]
        self._chunks: OrderedDict[int, FloatArray] = OrderedDict()

    def _draw(self, states: WordArray, count: int) -> FloatArray:
        """Return the next draws (rows, count) and advance the states."""
        rows = states.shape[0]
        out = np.empty((rows, count))
        fill_rows(states, self._uniform, np.arange(rows), np.ones(rows, dtype=np.int64), out)
        return out

    def _compute_states(self, chunk: int) -> FloatArray:
        """Return the states (p, size + 1) of the processes at the nodes of a chunk that can be reached."""
        states, at = self._states[chunk].copy(), self._start_values[chunk].copy()
        out = np.empty((at.size, self.chunk_size + 1))
        _advance(self.model.coefficients, self._rows, self._draw(states, self.chunk_size), at, out)
        if chunk + 1 == len(self._start_values):
            self._states.append(states)
            self._start_values.append(at)
        return out

    def get_vectors(self, chunk: int) -> FloatArray:
        """Return the velocity (size + 1, layers, 3) m/s at the nodes from `chunk * size` on."""
        if chunk in self._chunks:
            self._chunks.move_to_end(chunk)
            return self._chunks[chunk]
        while len(self._start_values) <= chunk:
            self._compute_states(len(self._start_values) - 1)
        recipe, out = self.model, np.empty((self.chunk_size + 1, self.model.depths.size, 3))
        _write_vectors(
            recipe.coefficients, recipe.processes_per_layer, recipe.sign, recipe.turn, self._compute_states(chunk), out
        )
        self._chunks[chunk] = out
        if len(self._chunks) > _MAX_CACHED_CHUNKS:
            self._chunks.popitem(last=False)
        return out


class RandomCurrent:
    """A random current (m/s) in one run, a function of place and time, safe to ask from many threads."""

    def __init__(self, model: RandomCurrentModel, seed: int, run: int) -> None:
        """Stand at the run's start."""
        self._nodes, self._seed, self._run = NodeCache(model, seed, run), seed, run
        self._lock = Lock()

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s, in any order of instants; quickest where they come in order.

        Raises `FieldError` for an instant below 0, past the longest run or not finite, and for a depth outside the
        layers where the rule is "error".
        """
        recipe, out, done = self._nodes.model, np.empty((time.shape[0], 3)), 0
        position_w, time = np.ascontiguousarray(position_w), np.ascontiguousarray(time)
        hold = recipe.outside == "hold"
        with self._lock:
            while 0 <= done < time.shape[0]:
                first, vectors = self._get_chunk(time, done)
                done = _interpolate(
                    position_w,
                    time,
                    done,
                    first,
                    recipe.rate,
                    recipe.linear,
                    vectors,
                    recipe.depths,
                    recipe.surface,
                    hold,
                    out,
                )
        if done < 0:
            row = -1 - done
            raise depth_error(recipe.depths, recipe.surface - float(position_w[row, 2]), row)
        return out

    def _get_chunk(self, time: Times, row: int) -> tuple[int, FloatArray]:
        """Return the number of the first node and the nodes of the chunk that holds an instant. Raises FieldError."""
        instant = float(time[row])
        if not 0.0 <= instant < LONGEST_TIME:
            allowed = f"must be from 0 to {LONGEST_TIME:g} s"
            raise FieldError("instant (s)", instant, row=row, allowed=allowed)
        recipe = self._nodes.model
        node = math.floor(instant * recipe.rate + (0.0 if recipe.linear else _NODE_TOLERANCE))
        chunk = node // self._nodes.chunk_size
        return chunk * self._nodes.chunk_size, self._nodes.get_vectors(chunk)

    def rotate(self, rotation: Quaternion) -> RandomCurrent:
        """Return the current of a world turned by `rotation`, about the vertical. Raises `FieldError` otherwise."""
        recipe = self._nodes.model
        turn = recipe.turn + vertical_rotation_angle(rotation)
        return RandomCurrent(replace(recipe, turn=turn), self._seed, self._run)


def depth_error(depths: FloatArray, depth: float, row: int) -> FieldError:
    """Return the error of a depth (m) that no layer holds."""
    return FieldError(
        "depth (m)",
        depth,
        row=row,
        allowed=f"must be from {depths[0]:g} to {depths[-1]:g}, as the layers are",
        remedy='use outside="hold" to go on with the nearest layer',
    )


MIN_CORRELATION_TIME = 0.1
"""s: shortest correlation time; what is faster is turbulence."""

MAX_STDDEV = 100.0
"""m/s or rad: largest stationary deviation that may be asked for."""

MIN_LIMIT_DISTANCE = 1e-9
"""m/s or rad: least distance between two mirrors, so that it is counted how often a process comes back from them."""

_NODES_PER_CORRELATION_TIME = 256.0
_MIN_NODE_RATE, _MAX_NODE_RATE = 8.0, 1024.0


def _check_limits(what: str, mean: float, minimum: float, maximum: float) -> None:
    if not minimum < maximum:
        raise FieldError(f"minimum of the {what}", minimum, allowed=f"must be below the maximum, {maximum!r}")
    if not minimum <= mean <= maximum:
        raise FieldError(f"mean of the {what}", mean, allowed=f"must be from {minimum!r} to {maximum!r}, its limits")


@dataclass(frozen=True)
class GaussMarkovProcess:
    """A Gauss-Markov process: mean, minimum, maximum (its unit), correlation_time (s), density (unit per root second).

    An infinite correlation time makes it a random walk. Raises `FieldError` for limits that do not hold the mean or are
    less than `NARROWEST` apart, a correlation time below `MIN_CORRELATION_TIME` and a negative density.
    """

    mean: float = 0.0
    minimum: float = -math.inf
    maximum: float = math.inf
    correlation_time: float = math.inf
    density: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no such process."""
        check_number("mean of a wander", self.mean, -1e6, 1e6, error=FieldError)
        _check_limits("wander", self.mean, self.minimum, self.maximum)
        check_number(
            "maximum less minimum of a wander",
            self.maximum - self.minimum,
            MIN_LIMIT_DISTANCE,
            math.inf,
            error=FieldError,
        )
        check_number(
            "correlation time of a wander (s)", self.correlation_time, MIN_CORRELATION_TIME, math.inf, error=FieldError
        )
        check_number("density of a wander", self.density, 0.0, 1e3, error=FieldError)

    @classmethod
    def from_stddev(
        cls, mean: float, stddev: float, correlation_time: float, minimum: float = -math.inf, maximum: float = math.inf
    ) -> GaussMarkovProcess:
        """Return the process of a stationary deviation `stddev` and a finite correlation time (s)."""
        check_number(
            "correlation time of a wander (s)", correlation_time, MIN_CORRELATION_TIME, MAX_COORDINATE, error=FieldError
        )
        check_number("stddev of a wander", stddev, 0.0, MAX_STDDEV, error=FieldError)
        return cls(mean, minimum, maximum, correlation_time, stddev / stationary_stddev(1.0, correlation_time))

    @property
    def node_rate(self) -> float:
        """Return the nodes a second that it wants, a power of two."""
        if self.density == 0.0:
            return _MIN_NODE_RATE
        wanted = (
            math.ceil(math.log2(_NODES_PER_CORRELATION_TIME / self.correlation_time))
            if self.correlation_time < math.inf
            else 0
        )
        return min(max(2.0**wanted, _MIN_NODE_RATE), _MAX_NODE_RATE)

    def discretise(self, rate: float) -> tuple[float, ...]:
        """Return mean, phi, q, limits, deviation at the start and 0 at `rate` nodes a second."""
        tau, sigma, dt = self.correlation_time, self.density, 1.0 / rate
        if tau == math.inf:
            return (self.mean, 1.0, sigma * math.sqrt(dt), self.minimum, self.maximum, 0.0, 0.0)
        steps = decay_factor(dt, tau), step_stddev(dt, sigma, tau)
        return (self.mean, *steps, self.minimum, self.maximum, stationary_stddev(sigma, tau), 0.0)


@dataclass(frozen=True)
class UuvGaussMarkovProcess:
    """The UUV Simulator's process: mean, minimum, maximum, mu (1/s), noise_amplitude, and the physics step (s).

    Raises `FieldError` for what that program refuses: limits that do not hold the mean, mu or noise_amplitude not from
    0 to 1, and for a step that is not from 1 us to 1 s.
    """

    mean: float = 0.0
    minimum: float = -1.0
    maximum: float = 1.0
    mu: float = 0.0
    noise_amplitude: float = 0.0
    step: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse what the UUV Simulator refuses."""
        check_number("mean of a current's process", self.mean, -1e6, 1e6, error=FieldError)
        check_number("minimum of a current's process", self.minimum, -1e6, 1e6, error=FieldError)
        check_number("maximum of a current's process", self.maximum, -1e6, 1e6, error=FieldError)
        _check_limits("current's process", self.mean, self.minimum, self.maximum)
        check_number("mu of a current's process (1/s)", self.mu, 0.0, 1.0, error=FieldError)
        check_number("noiseAmp of a current's process", self.noise_amplitude, 0.0, 1.0, error=FieldError)
        check_number("step of a current's process (s)", self.step, 1e-6, 1.0, error=FieldError)

    def to_physical(self) -> GaussMarkovProcess:
        """Return the process that this one stands for, the same at every step: it reverts to its mean."""
        tau = min(max(1.0 / self.mu, MIN_CORRELATION_TIME), MAX_COORDINATE) if self.mu > 0.0 else math.inf
        return GaussMarkovProcess(
            self.mean, self.minimum, self.maximum, tau, self.noise_amplitude / math.sqrt(12.0 * self.step)
        )

    @property
    def node_rate(self) -> float:
        """Return the physics steps a second."""
        return 1.0 / self.step

    def discretise(self, rate: float) -> tuple[float, ...]:
        """Return mean, phi, q, limits, 0 and 1 at `rate` steps a second."""
        limits = (self.minimum, self.maximum)
        return (self.mean, 1.0 - self.mu / rate, self.noise_amplitude, *limits, 0.0, 1.0)


AnyGaussMarkovProcess = GaussMarkovProcess | UuvGaussMarkovProcess


def select_node_rate(processes: Sequence[AnyGaussMarkovProcess]) -> tuple[float, bool]:
    """Return the nodes a second of processes, and whether lines between them are straight.

    Raises `FieldError` for classic and physical ones together, and for classic ones of different steps.
    """
    rates = {one.node_rate for one in processes}
    kinds = {isinstance(one, UuvGaussMarkovProcess) for one in processes}
    if len(kinds) > 1:
        raise FieldError(
            "processes of a current", "GaussMarkovProcess and UuvGaussMarkovProcess", allowed="must be of one kind"
        )
    if True in kinds and len(rates) > 1:
        steps = ", ".join(f"{1.0 / rate:g}" for rate in sorted(rates))
        raise FieldError("steps of a current's processes (s)", steps, allowed="must be the same")
    return max(rates), True not in kinds


def drop_circle_limits(direction: AnyGaussMarkovProcess) -> AnyGaussMarkovProcess:
    """Return a process of an angle without limits where these leave it the whole circle: it goes round."""
    if isinstance(direction, GaussMarkovProcess) and direction.maximum - direction.minimum >= 2.0 * math.pi - 1e-9:
        return replace(direction, minimum=-math.inf, maximum=math.inf)
    return direction


def discretise_all(processes: Sequence[AnyGaussMarkovProcess], rate: float) -> FloatArray:
    """Return one law a row."""
    return np.array([one.discretise(rate) for one in processes])


def check_current_name(name: str) -> None:
    """Raise `FieldError` for a name that is empty: it keys the current's chance."""
    if not isinstance(name, str) or not name:
        raise FieldError("name of a current", name, allowed="must be a text that is not empty")


@dataclass(frozen=True)
class GaussMarkovCurrent:
    """A current that wanders, the same everywhere: speed (m/s), horizontal_angle and vertical_angle (rad), and name.

    The horizontal angle is counter-clockwise from `heading` (rad) below the world's x axis, 0 for x itself; with the
    origin's heading it counts from east. A physical one whose limits leave the whole circle goes round. All three are
    `GaussMarkovProcess`, or all are `UuvGaussMarkovProcess` of one step. It differs from run to run: `realise` gives
    that of one.

    Raises `FieldError` for processes of both kinds or different steps, and speeds beyond `MAX_SPEED`.
    """

    speed: AnyGaussMarkovProcess
    horizontal_angle: AnyGaussMarkovProcess = GaussMarkovProcess()
    vertical_angle: AnyGaussMarkovProcess = GaussMarkovProcess()
    name: str = "current"
    heading: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no such current."""
        check_current_name(self.name)
        check_coordinate("heading of a current (rad)", self.heading)
        check_number("mean speed of a current (m/s)", self.speed.mean, -MAX_SPEED, MAX_SPEED, error=FieldError)
        select_node_rate(self._processes)

    @property
    def _processes(self) -> tuple[AnyGaussMarkovProcess, ...]:
        return (self.speed, drop_circle_limits(self.horizontal_angle), self.vertical_angle)

    @property
    def random_names(self) -> tuple[str, ...]:
        """Return the name that keys its streams."""
        return (self.name,)

    def realise(self, seed: int, run: int) -> RandomCurrent:
        """Return the field (m/s) of one run."""
        rate, straight = select_node_rate(self._processes)
        names = ("speed", "horizontal_angle", "vertical_angle")
        recipe = RandomCurrentModel(
            self.name, discretise_all(self._processes, rate), names, 3, np.zeros(1), rate, straight, turn=-self.heading
        )
        return RandomCurrent(recipe, seed, run)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Raise `FieldError`: a random current has a velocity in a run only, that of `realise`."""
        raise unrealised_error(self.name)

    def rotate(self, rotation: Quaternion) -> VectorField:
        """Return the current of a world turned by `rotation`, about the vertical. Raises `FieldError` otherwise."""
        return replace(self, heading=rotate_heading(self.heading, rotation))

"""Random currents on nodes in time: walked forwards, kept at intervals, and walked again where asked for.

    t_k = k / rate                                                                   k = 0, 1, 2, ...
    d_k = phi d_(k-1) + q w_k,  x_k = folded(mean + d_k)                             physical, w a standard normal
    x_k = clipped(phi x_(k-1) + q (u_k - 1/2))                                       classic, u uniform on [0, 1)
    v_k = s_k (cos h_k cos e_k, sin h_k cos e_k, sin e_k),  h_k = turn + sign a_k    s speed, a, e angles

`folded` mirrors at the limits: a walk between two mirrors, which no step makes wrong and which sticks to neither.
Between nodes the vector is straight (physical), or held (classic). Each process has a stream of its own. Every some
thousand nodes the streams' states and the values are kept, so that any instant is found again without starting anew,
and a field that many sensors ask at times of their own gives all of them the same.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from navsense.environment.current._checks import OutsideRule, find_interval, vertical_rotation_angle
from navsense.errors import FieldError
from navsense.kernels import kernel
from navsense.random_streams import StreamKey, fill_rows, seed_state
from navsense.series import LONGEST_TIME
from navsense.typing import FloatArray, Quaternion, Times, Vectors, WordArray

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

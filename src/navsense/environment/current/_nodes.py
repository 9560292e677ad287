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

from navsense.compiled import kernel
from navsense.environment.current._checks import Outside, angle_about_the_vertical, left_of
from navsense.errors import FieldError
from navsense.series import LONGEST_TIME
from navsense.streams import Key, fill_rows, first_state
from navsense.typing import FloatArray, Quaternion, Times, Vectors, WordArray

MEAN, PHI, Q, LOW, HIGH, START, CLASSIC = range(7)
"""Columns of the laws: START is the deviation of d_0, CLASSIC not 0 for the classic step."""

CHUNK, CLASSIC_CHUNK = 512, 4096
"""Nodes between two that are kept, fewer where there are many layers: a classic one has a node each physics step."""

_CELLS = 65536
_KEPT = 8
_REACHED = 1e-6


@kernel
def _advance(laws: FloatArray, rows: FloatArray, draws: FloatArray, at: FloatArray, out: FloatArray) -> None:
    """Write the processes (p, n + 1) from `at` (p,) on, which is left at the last; rows (p,) of draws, -1 for none."""
    for p in range(laws.shape[0]):
        x, phi, q, low, high = at[p], laws[p, PHI], laws[p, Q], laws[p, LOW], laws[p, HIGH]
        row, classic = int(rows[p]), laws[p, CLASSIC] != 0.0
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
def _value(laws: FloatArray, p: int, x: float) -> float:
    """Return the value of a process from its state."""
    if laws[p, CLASSIC] != 0.0:
        return x
    x += laws[p, MEAN]
    low: float = laws[p, LOW]
    high: float = laws[p, HIGH]
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
def _vectors(laws: FloatArray, parts: int, sign: float, turn: float, states: FloatArray, out: FloatArray) -> None:
    """Write the velocity (n, layers, 3) m/s of processes (p, n): speed, angle and, of three parts, elevation."""
    for i in range(out.shape[0]):
        for layer in range(out.shape[1]):
            p = parts * layer
            speed = _value(laws, p, states[p, i])
            angle = turn + sign * _value(laws, p + 1, states[p + 1, i])
            level, rise = speed, 0.0
            if parts == 3:
                elevation = _value(laws, p + 2, states[p + 2, i])
                level, rise = speed * math.cos(elevation), speed * math.sin(elevation)
            out[i, layer, 0] = level * math.cos(angle)
            out[i, layer, 1] = level * math.sin(angle)
            out[i, layer, 2] = rise


@kernel
def _along(
    position_w: Vectors,
    time: Times,
    start: int,
    first: int,
    rate: float,
    straight: bool,
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
        node = math.floor(place if straight else place + _REACHED)
        if node < first or node - first >= last:
            return i
        k = int(node) - first
        share = place - node if straight else 0.0
        below = 0.0
        if layers > 1:
            depth = surface - position_w[i, 2]
            if not (hold or depths[0] <= depth <= depths[layers - 1]) or depth != depth:
                return -1 - i
            depth = max(depths[0], min(depths[layers - 1], depth))
            near = left_of(depths, depth, near)
            below = (depth - depths[near]) / (depths[near + 1] - depths[near])
        for axis in range(3):
            v = vectors[k, near, axis] + share * (vectors[k + 1, near, axis] - vectors[k, near, axis])
            if layers > 1:
                u = vectors[k, near + 1, axis] + share * (vectors[k + 1, near + 1, axis] - vectors[k, near + 1, axis])
                v += below * (u - v)
            out[i, axis] = v
    return count


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that a random current is made of but seed and run: the model at the head of this file, in numbers.

    `laws` (p, 7) one process a row, `names` theirs; `parts` processes a layer, `depths` (layers,) m, `rate` nodes a
    second, `turn` and `sign` of the horizontal angle against the world's x axis.
    """

    name: str
    laws: FloatArray
    names: tuple[str, ...]
    parts: int
    depths: FloatArray
    rate: float
    straight: bool
    turn: float
    sign: float = 1.0
    surface: float = 0.0
    outside: Outside = "hold"


class Walk:
    """The nodes of one current in one run, and the state at every `size` of them that were met."""

    def __init__(self, recipe: Recipe, seed: int, run: int) -> None:
        """Draw node 0."""
        self.recipe = recipe
        classic = bool(recipe.laws[0, CLASSIC])
        self.size = max(16, min(CLASSIC_CHUNK if classic else CHUNK, _CELLS // recipe.depths.size))
        key: Key = (run, "current", recipe.name)
        acting = [p for p, law in enumerate(recipe.laws) if law[Q] > 0.0]
        states = np.empty((len(acting), 4), dtype=np.uint64)
        self._rows = np.full(len(recipe.names), -1.0)
        for row, p in enumerate(acting):
            states[row] = first_state(seed, (*key, recipe.names[p], "classic" if classic else "drift"))
            self._rows[p] = row
        self._uniform = np.full(len(acting), int(classic), dtype=np.int64)
        at = recipe.laws[:, MEAN].copy() if classic else np.zeros(len(recipe.names))
        if not classic and acting:
            at[acting] = recipe.laws[acting, START] * self._draw(states, 1)[:, 0]
        self._states: list[WordArray] = [states]
        self._at: list[FloatArray] = [at]
        self._met: OrderedDict[int, FloatArray] = OrderedDict()

    def _draw(self, states: WordArray, count: int) -> FloatArray:
        """Return the next draws (rows, count) and advance the states."""
        rows = states.shape[0]
        out = np.empty((rows, count))
        fill_rows(states, self._uniform, np.arange(rows), np.ones(rows, dtype=np.int64), out)
        return out

    def _walk(self, chunk: int) -> FloatArray:
        """Return the states (p, size + 1) of the processes at the nodes of a chunk that can be reached."""
        states, at = self._states[chunk].copy(), self._at[chunk].copy()
        out = np.empty((at.size, self.size + 1))
        _advance(self.recipe.laws, self._rows, self._draw(states, self.size), at, out)
        if chunk + 1 == len(self._at):
            self._states.append(states)
            self._at.append(at)
        return out

    def vectors(self, chunk: int) -> FloatArray:
        """Return the velocity (size + 1, layers, 3) m/s at the nodes from `chunk * size` on."""
        if chunk in self._met:
            self._met.move_to_end(chunk)
            return self._met[chunk]
        while len(self._at) <= chunk:
            self._walk(len(self._at) - 1)
        recipe, out = self.recipe, np.empty((self.size + 1, self.recipe.depths.size, 3))
        _vectors(recipe.laws, recipe.parts, recipe.sign, recipe.turn, self._walk(chunk), out)
        self._met[chunk] = out
        if len(self._met) > _KEPT:
            self._met.popitem(last=False)
        return out


class Opened:
    """A random current (m/s) in one run, a function of place and time, safe to ask from many threads."""

    def __init__(self, recipe: Recipe, seed: int, run: int) -> None:
        """Stand at the run's start."""
        self._walk, self._seed, self._run = Walk(recipe, seed, run), seed, run
        self._lock = Lock()

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s, in any order of instants; quickest where they come in order.

        Raises `FieldError` for an instant below 0, past the longest run or not finite, and for a depth outside the
        layers where the rule is "error".
        """
        recipe, out, done = self._walk.recipe, np.empty((time.shape[0], 3)), 0
        position_w, time = np.ascontiguousarray(position_w), np.ascontiguousarray(time)
        hold = recipe.outside == "hold"
        with self._lock:
            while 0 <= done < time.shape[0]:
                first, vectors = self._nodes_at(time, done)
                done = _along(
                    position_w,
                    time,
                    done,
                    first,
                    recipe.rate,
                    recipe.straight,
                    vectors,
                    recipe.depths,
                    recipe.surface,
                    hold,
                    out,
                )
        if done < 0:
            row = -1 - done
            raise outside_the_layers(recipe.depths, recipe.surface - float(position_w[row, 2]), row)
        return out

    def _nodes_at(self, time: Times, row: int) -> tuple[int, FloatArray]:
        """Return the number of the first node and the nodes of the chunk that holds an instant. Raises FieldError."""
        instant = float(time[row])
        if not 0.0 <= instant < LONGEST_TIME:
            allowed = f"must be from 0 to {LONGEST_TIME:g} s"
            raise FieldError("instant (s)", instant, row=row, allowed=allowed)
        recipe = self._walk.recipe
        node = math.floor(instant * recipe.rate + (0.0 if recipe.straight else _REACHED))
        chunk = node // self._walk.size
        return chunk * self._walk.size, self._walk.vectors(chunk)

    def turned(self, rotation: Quaternion) -> Opened:
        """Return the current of a world turned by `rotation`, about the vertical. Raises `FieldError` otherwise."""
        recipe = self._walk.recipe
        turn = recipe.turn + angle_about_the_vertical(rotation)
        return Opened(replace(recipe, turn=turn), self._seed, self._run)


def outside_the_layers(depths: FloatArray, depth: float, row: int) -> FieldError:
    """Return the error of a depth (m) that no layer holds."""
    return FieldError(
        "depth (m)",
        depth,
        row=row,
        allowed=f"must be from {depths[0]:g} to {depths[-1]:g}, as the layers are",
        remedy='use outside="hold" to go on with the nearest layer',
    )

"""Named random streams: one for each process. The key consists of names, so the order of construction has no effect.

The seed of a stream is ``SeedSequence(seed, spawn_key = BLAKE2b-128 of the length-prefixed key)``. Its generator is
SFC64, whose state is four words. Normals come from the 256-level ziggurat. The numbers are, to the last bit, those of
``numpy.random.Generator(numpy.random.SFC64(...)).standard_normal()`` and ``.random()``.

navsense has its own kernel, which keeps the state as a row of an array. So all processes of a sensor are drawn in
one compiled call, and a stream can be copied, saved and compared.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.kernels import INTERPRETED, kernel
from navsense.core.typing import FloatArray, IntArray, UInt64Array
from navsense.core.validation import check_integer
from navsense.core.ziggurat import ACCEPT, HEIGHT, INVERSE_TAIL, TAIL, WIDTH

StreamKey = tuple[str | int, ...]

MAX_SEED = 2**64 - 1


def make_spawn_key(key: StreamKey) -> tuple[int, ...]:
    """Return the four 32-bit words of a key: BLAKE2b-128 of its parts, each with its type and length."""
    digest = hashlib.blake2b(digest_size=16)
    for part in key:
        text = str(part).encode()
        digest.update(b"i" if isinstance(part, int | np.integer) else b"s")
        digest.update(len(text).to_bytes(8, "little"))
        digest.update(text)
    return tuple(int(word) for word in np.frombuffer(digest.digest(), dtype="<u4"))


def check_seed(seed: int) -> int:
    """Return the seed; raise `SimulationError` unless it is an integer from 0 to 2^64 - 1."""
    return check_integer("seed", seed, MAX_SEED, f"must be an integer from 0 to {MAX_SEED}")


def check_run(run: int) -> int:
    """Return a run's number; raise `SimulationError` unless it is an integer from 0 to 2^63 - 1."""
    return check_integer("run", run, 2**63 - 1, "must be an integer from 0 to 2^63 - 1")


def make_generator(seed: int, key: StreamKey) -> np.random.Generator:
    """Return NumPy's generator of the stream `key`. The tests compare the kernels with it."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=make_spawn_key(key))))


def make_initial_state(seed: int, key: StreamKey) -> UInt64Array:
    """Return the initial state (4,) of the stream `key`."""
    bits = np.random.SFC64(np.random.SeedSequence(seed, spawn_key=make_spawn_key(key)))
    state: UInt64Array = bits.state["state"]["state"].astype(np.uint64)
    return state


_11, _24, _40, _1, _8, _9, _3 = (np.uint64(n) for n in (11, 24, 40, 1, 8, 9, 3))
_BYTE, _SIGNED_BYTE = np.uint64(0xFF), np.uint64(0x1FF)
_MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
_UNIT_STEP = 1.0 / 9007199254740992.0

# Nine bits of a word are the level and the sign. The sign comes from a table: a branch on it cannot be predicted.
_SIGNED_WIDTH = np.concatenate((WIDTH, -WIDTH))
_SIGNED_ACCEPT = np.concatenate((ACCEPT, ACCEPT))


@kernel
def _next_word(
    a: np.uint64, b: np.uint64, c: np.uint64, w: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return SFC64's next word and state."""
    word = a + b + w
    return word, b ^ (b >> _11), c + (c << _3), ((c << _24) | (c >> _40)) + word, w + _1


@kernel
def _sample_outside_rectangle(
    a: np.uint64, b: np.uint64, c: np.uint64, w: np.uint64, level: np.uint64, magnitude: np.uint64, x: float
) -> tuple[bool, float, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Test a candidate outside its rectangle, one or two in a hundred.

    Returns True if it is accepted, the normal, and the state.
    """
    if level == 0:
        while True:
            word, a, b, c, w = _next_word(a, b, c, w)
            xx = -INVERSE_TAIL * math.log1p(-(np.float64(word >> _11) * _UNIT_STEP))
            word, a, b, c, w = _next_word(a, b, c, w)
            yy = -math.log1p(-(np.float64(word >> _11) * _UNIT_STEP))
            if yy + yy > xx * xx:
                break
        return True, -(TAIL + xx) if (magnitude >> _8) & _1 else TAIL + xx, a, b, c, w
    word, a, b, c, w = _next_word(a, b, c, w)
    height = (HEIGHT[level - _1] - HEIGHT[level]) * (np.float64(word >> _11) * _UNIT_STEP) + HEIGHT[level]
    return height < math.exp(-0.5 * x * x), x, a, b, c, w


@kernel
def _fill_normal(state: UInt64Array, out: FloatArray, parameters: tuple[float, float, float] | None) -> None:
    """Fill out (n,) with standard normals x and advance the state (4,).

    With `parameters` (constant, mean, stddev) out is constant + (mean + stddev x): the jitter of a clock, see
    `take_scaled`. Both cases are compiled separately.
    """
    a, b, c, w = state[0], state[1], state[2], state[3]
    i = 0
    while i < out.shape[0]:
        word, a, b, c, w = _next_word(a, b, c, w)
        signed_level = word & _SIGNED_BYTE
        magnitude = (word >> _9) & _MANTISSA
        x = np.float64(np.int64(magnitude)) * _SIGNED_WIDTH[signed_level]
        accepted = magnitude < _SIGNED_ACCEPT[signed_level]
        if not accepted:
            accepted, x, a, b, c, w = _sample_outside_rectangle(a, b, c, w, word & _BYTE, magnitude, x)
        if parameters is None:
            out[i] = x
        else:
            out[i] = parameters[0] + (parameters[1] + parameters[2] * x)
        if accepted:
            i += 1
    state[0], state[1], state[2], state[3] = a, b, c, w


@kernel
def _fill_uniform(state: UInt64Array, out: FloatArray) -> None:
    """Fill out (n,) with uniforms on [0, 1) and advance the state (4,)."""
    a, b, c, w = state[0], state[1], state[2], state[3]
    for i in range(out.shape[0]):
        word, a, b, c, w = _next_word(a, b, c, w)
        out[i] = np.float64(word >> _11) * _UNIT_STEP
    state[0], state[1], state[2], state[3] = a, b, c, w


@kernel
def _fill_rows(states: UInt64Array, uniform: IntArray, first: IntArray, per_tick: IntArray, out: FloatArray) -> None:
    """Fill out (rows, n): process p fills rows first[p] to first[p] + per_tick[p] - 1, tick after tick."""
    count = out.shape[1]
    for p in range(states.shape[0]):
        if per_tick[p] == 1:
            row = out[first[p]]
        else:
            row = np.empty(per_tick[p] * count)
        if uniform[p]:
            _fill_uniform(states[p], row)
        else:
            _fill_normal(states[p], row, None)
        if per_tick[p] != 1:
            for i in range(count):
                for j in range(per_tick[p]):
                    out[first[p] + j, i] = row[i * per_tick[p] + j]


def _fill_rows_interpreted(
    states: UInt64Array, uniform: IntArray, first: IntArray, per_tick: IntArray, out: FloatArray
) -> None:
    """Fill as `_fill_rows` does, by NumPy's generator; for runs without compiled code."""
    bits = np.random.SFC64()
    draw = np.random.Generator(bits)
    for p in range(states.shape[0]):
        bits.state = {
            "bit_generator": "SFC64",
            "state": {"state": states[p]},
            "has_uint32": 0,
            "uinteger": 0,
        }
        count = int(per_tick[p]) * out.shape[1]
        values = draw.random(count) if uniform[p] else draw.standard_normal(count)
        out[first[p] : first[p] + per_tick[p]] = values.reshape(out.shape[1], int(per_tick[p])).T
        states[p] = bits.state["state"]["state"]


fill_rows = _fill_rows_interpreted if INTERPRETED else _fill_rows


MIXING_ROUNDS = 12
"""Mixing steps of SFC64 after seeding."""


@kernel
def _fill_hashed(key: UInt64Array, words: UInt64Array, out: FloatArray) -> None:
    """Write a standard normal (n,) for each of `words` (n,), which depends only on `key` (4,) and the word."""
    state = np.empty(4, np.uint64)
    for i in range(words.shape[0]):
        a, b, c, w = key[0] ^ words[i], key[1], key[2], key[3]
        for _ in range(MIXING_ROUNDS):
            _, a, b, c, w = _next_word(a, b, c, w)
        state[0], state[1], state[2], state[3] = a, b, c, w
        _fill_normal(state, out[i : i + 1], None)


def _fill_hashed_interpreted(key: UInt64Array, words: UInt64Array, out: FloatArray) -> None:
    """Fill as `_fill_hashed` does, by arrays and NumPy's generator; for runs without compiled code."""
    a, b, c, w = (np.full(words.shape, word, dtype=np.uint64) for word in key)
    a ^= words
    for _ in range(MIXING_ROUNDS):
        word = a + b + w
        a, b, c, w = b ^ (b >> _11), c + (c << _3), ((c << _24) | (c >> _40)) + word, w + _1
    count, rows = words.size, np.empty((words.size, 1))
    fill_rows(
        np.stack((a, b, c, w), axis=1), np.zeros(count, np.int64), np.arange(count), np.ones(count, np.int64), rows
    )
    out[:] = rows[:, 0]


fill_hashed = _fill_hashed_interpreted if INTERPRETED else _fill_hashed


def draw_normals(key: UInt64Array, words: UInt64Array) -> FloatArray:
    """Return a standard normal (n,) for each of `words` (n,), which depends only on `key` (4,) and the word.

    SFC64 is seeded with the key and the word as in NumPy: `MIXING_ROUNDS` mixing steps, then one output.
    """
    out = np.empty(words.size)
    fill_hashed(key, words, out)
    return out


@dataclass(frozen=True)
class RandomProcess:
    """A random process with a stream of random numbers.

    channel, name: the last two parts of the key of the stream. The channel is a noise channel, or a part of a sensor.
    initial: number of draws at the start.
    per_tick: number of draws at each tick.
    kind: "normal" for standard normals, "uniform" for numbers on [0, 1).

    >>> from navsense.core.random_streams import RandomProcess
    >>> RandomProcess("pressure", "white", per_tick=1)
    RandomProcess(channel='pressure', name='white', initial=0, per_tick=1, kind='normal')
    """

    channel: str
    name: str
    initial: int = 0
    per_tick: int = 1
    kind: Literal["normal", "uniform"] = "normal"


def split_initial_draws(processes: Sequence[RandomProcess], draws: FloatArray) -> dict[tuple[str, str], FloatArray]:
    """Return the initial draws of each process that has some, by channel and name."""
    ends = np.cumsum([process.initial for process in processes], dtype=np.int64).tolist()
    return {
        (process.channel, process.name): draws[end - process.initial : end]
        for process, end in zip(processes, ends, strict=True)
        if process.initial
    }


def find_first_rows(processes: Sequence[RandomProcess]) -> dict[tuple[str, str], int]:
    """Return the first row in the draws of each process with draws at each tick, by channel and name."""
    ends = np.cumsum([process.per_tick for process in processes], dtype=np.int64).tolist()
    return {
        (process.channel, process.name): end - process.per_tick
        for process, end in zip(processes, ends, strict=True)
        if process.per_tick
    }


BLOCK_SAMPLES = 6136
"""Largest block of samples. Its computation takes much longer than the calls, and its arrays fit into the cache.

It is not a power of two, because rows of such a length would share the same cache lines.
"""


class Draws:
    """The draws of one sensor in one run: initial draws once, then a block of rows for each block of ticks.

    Rows follow `processes` in order, `per_tick` rows each. Blocks of any size give the same numbers, because a stream
    is read forwards only. With `prefetch` > 0, that many single ticks are drawn in advance.
    """

    def __init__(self, processes: Sequence[RandomProcess], seed: int, key: StreamKey, *, prefetch: int = 0) -> None:
        """Open the streams (*key, channel, process) of all `processes` and take their initial draws."""
        names = [(process.channel, process.name) for process in processes]
        if len(set(names)) < len(names):
            duplicate = next(name for name in names if names.count(name) > 1)
            raise SensorError("processes", duplicate, allowed="must differ in channel or name")
        self._states = np.empty((len(processes), 4), dtype=np.uint64)
        self._uniform = np.array([process.kind == "uniform" for process in processes], dtype=np.int64)
        self._per_tick = np.array([process.per_tick for process in processes], dtype=np.int64)
        self._first = np.cumsum(self._per_tick) - self._per_tick
        self.rows = int(self._per_tick.sum())
        for p, process in enumerate(processes):
            self._states[p] = make_initial_state(seed, (*key, process.channel, process.name))
        self.initial = self._take_initial(processes)
        draws_each_tick = self._per_tick > 0
        if not draws_each_tick.all():
            self._states, self._uniform = self._states[draws_each_tick], self._uniform[draws_each_tick]
            self._first, self._per_tick = self._first[draws_each_tick], self._per_tick[draws_each_tick]
        self._scratch = np.empty(0)
        self._buffer = np.empty((prefetch, self.rows))
        self._used = prefetch

    def _take_initial(self, processes: Sequence[RandomProcess]) -> FloatArray:
        """Return the initial draws of all processes."""
        counts = np.array([process.initial for process in processes], dtype=np.int64)
        out = np.empty((int(counts.sum()), 1))
        # As for one tick on which process p takes counts[p] draws.
        fill_rows(self._states, self._uniform, np.cumsum(counts) - counts, counts, out)
        return out[:, 0]

    def take(self, count: int) -> FloatArray:
        """Return the draws of the next `count` ticks (rows, count), a view that the next call overwrites."""
        prefetch = self._buffer.shape[0]
        if prefetch and count == 1:
            if self._used == prefetch:
                self._buffer = np.ascontiguousarray(self._draw(prefetch).T)
                self._used = 0
            self._used += 1
            column: FloatArray = self._buffer[self._used - 1][:, None]
            return column
        prefetched = self._buffer[self._used : self._used + count]
        self._used += prefetched.shape[0]
        draws = self._draw(count - prefetched.shape[0])
        return draws if not prefetched.size else np.concatenate((prefetched.T, draws), axis=1)

    def take_scaled(self, count: int, constant: float, mean: float, stddev: float) -> FloatArray:
        """Return constant + (mean + stddev w) (count,) for the normals w of the next ticks, as a new array.

        Only for one process with one draw per tick: the jitter of a clock.
        """
        if count == 1:
            return np.array([constant + (mean + stddev * float(self.take(1)[0, 0]))])
        if INTERPRETED or self._buffer.shape[0]:
            scaled: FloatArray = constant + (mean + stddev * self.take(count)[0])
            return scaled
        out = np.empty(count)
        _fill_normal(self._states[0], out, (constant, mean, stddev))
        return out

    def _draw(self, count: int) -> FloatArray:
        """Return the next `count` ticks of the streams (rows, count), in reused memory."""
        if self._scratch.size < self.rows * count:
            self._scratch = np.empty(self.rows * count)
        out: FloatArray = self._scratch[: self.rows * count].reshape(self.rows, count)
        fill_rows(self._states, self._uniform, self._first, self._per_tick, out)
        return out

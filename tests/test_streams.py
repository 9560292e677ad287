"""Streams: the numbers equal NumPy's, are keyed by name, and do not depend on the block size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.core import random_streams
from navsense.core.errors import SimulationError
from navsense.core.kernels import INTERPRETED
from navsense.core.random_streams import (
    Draws,
    RandomProcess,
    check_seed,
    make_generator,
    make_initial_state,
    make_spawn_key,
)

COUNT = 20_000 if INTERPRETED else 1_000_000
PROCESSES = (
    RandomProcess("x", "white"),
    RandomProcess("x", "drift", initial=1),
    RandomProcess("x", "sign", initial=1, per_tick=0, kind="uniform"),
    RandomProcess("y", "triple", per_tick=3),
    RandomProcess("y", "chance", kind="uniform"),
)


@pytest.mark.requirement("NOI-2")
def test_normals_and_uniforms_equal_numpy() -> None:
    draws = Draws(PROCESSES, 7, (0, "robot::imu"))
    rows = draws.take(COUNT)
    drift = make_generator(7, (0, "robot::imu", "x", "drift"))
    assert draws.initial[0] == drift.standard_normal()
    assert np.array_equal(rows[0], make_generator(7, (0, "robot::imu", "x", "white")).standard_normal(COUNT))
    assert np.array_equal(rows[1], drift.standard_normal(COUNT))
    assert draws.initial[1] == make_generator(7, (0, "robot::imu", "x", "sign")).random()
    assert np.array_equal(rows[2:5].T, make_generator(7, (0, "robot::imu", "y", "triple")).standard_normal((COUNT, 3)))
    assert np.array_equal(rows[5], make_generator(7, (0, "robot::imu", "y", "chance")).random(COUNT))


@pytest.mark.skipif(INTERPRETED, reason="four million draws say no more of the generator that NumPy brings itself")
def test_ziggurat_tail_equals_numpy() -> None:
    reference = make_generator(3, (0, "tail", "x", "white"))
    draws = Draws((RandomProcess("x", "white"),), 3, (0, "tail"))
    beyond = 0
    for _ in range(4):
        ours, theirs = draws.take(COUNT)[0], reference.standard_normal(COUNT)
        assert np.array_equal(ours, theirs)
        beyond += int((np.abs(theirs) > 3.6541528853610088).sum())
    assert beyond > 500


@pytest.mark.parametrize("ahead", [0, 64])
def test_draws_do_not_depend_on_block_size(ahead: int) -> None:
    complete = Draws(PROCESSES, 7, (2, "s")).take(1000).copy()
    source = Draws(PROCESSES, 7, (2, "s"), prefetch=ahead)
    sizes = [1] * 100 + [37, 1, 1, 300, 0] + [1] * 61 + [500]
    parts = [source.take(size).copy() for size in sizes]
    assert np.array_equal(np.concatenate(parts, axis=1), complete)


PAIRS = (
    RandomProcess("x", "pair", initial=1, per_tick=2),
    RandomProcess("x", "white"),
    RandomProcess("x", "chances", per_tick=2, kind="uniform"),
    RandomProcess("y", "pair", initial=2, per_tick=2),
)


@pytest.mark.requirement("NOI-2")
def test_two_draws_per_tick_are_consecutive_in_their_stream() -> None:
    """Tick i of a process has its draws 2 i and 2 i + 1, after those at the start."""
    draws = Draws(PAIRS, 9, (0, "s"))
    rows = draws.take(500)
    for first, process in ((0, PAIRS[0]), (5, PAIRS[3])):
        stream = make_generator(9, (0, "s", process.channel, process.name))
        stream.standard_normal(process.initial)
        assert np.array_equal(rows[first : first + 2].T, stream.standard_normal((500, 2)))
    assert np.array_equal(rows[3:5].T, make_generator(9, (0, "s", "x", "chances")).random((500, 2)))


@pytest.mark.requirement("NOI-2")
@pytest.mark.parametrize("ahead", [0, 1, 2, 7, 64])
@given(sizes=st.lists(st.integers(0, 70), max_size=12))
def test_two_draws_per_tick_do_not_depend_on_block_size(ahead: int, sizes: list[int]) -> None:
    """Blocks of any size and single ticks from a buffer give the same draws."""
    count = sum(sizes)
    complete = Draws(PAIRS, 7, (2, "s")).take(count).copy()
    source = Draws(PAIRS, 7, (2, "s"), prefetch=ahead)
    parts = [source.take(size).copy() for size in sizes]
    assert np.array_equal(np.concatenate([np.empty((source.rows, 0)), *parts], axis=1), complete)


@pytest.mark.compiled
@pytest.mark.parametrize("count", [1, 2, 3, 200])
def test_row_kernel_equals_numpys_generator(count: int) -> None:
    """Compiled and interpreted runs fill rows of one, two and three draws a tick alike, and leave the same states."""
    depth = np.array([2, 1, 3, 2], dtype=np.int64)
    first = np.array([0, 2, 3, 6], dtype=np.int64)
    uniform = np.array([0, 1, 0, 1], dtype=np.int64)
    states = [np.stack([make_initial_state(5, (name,)) for name in "abcd"]) for _ in range(2)]
    out = [np.full((8, count), np.nan) for _ in range(2)]
    for _ in range(3):
        random_streams._fill_rows(states[0], uniform, first, depth, out[0])
        random_streams._fill_rows_interpreted(states[1], uniform, first, depth, out[1])
        assert np.array_equal(out[0], out[1])
        assert np.array_equal(states[0], states[1])


def test_keys_are_length_prefixed_and_typed() -> None:
    keys = [("ab", "c"), ("a", "bc"), ("abc",), ("", "abc"), (1, "a"), ("1", "a"), (11,), (1, 1)]
    assert len({make_spawn_key(key) for key in keys}) == len(keys)


def test_keys_never_change() -> None:
    """A recording made from a seed can be made again by a later version: these words are fixed."""
    assert make_spawn_key((0, "robot::base::imu", "angular_velocity.x", "white")) == (
        432293824,
        3115335934,
        304078686,
        3006041030,
    )


@pytest.mark.requirement("NOI-2")
def test_streams_of_different_processes_are_uncorrelated() -> None:
    """Twelve streams, all pairs: |r| < z / sqrt(n), z for a false-alarm rate of 1e-6 over 66 pairs."""
    names = [f"c{i}" for i in range(12)]
    count = 20_000
    rows = Draws([RandomProcess(name, "white") for name in names], 1, (0, "s")).take(count)
    correlation = np.corrcoef(rows) - np.eye(12)
    assert np.abs(correlation).max() < 5.7 / math.sqrt(count)


def test_first_states_differ_by_seed_run_and_name() -> None:
    keys = [(0, "s", "x", "white"), (1, "s", "x", "white"), (0, "t", "x", "white"), (0, "s", "x", "drift")]
    states = {tuple(make_initial_state(seed, key)) for seed in (0, 1, 2**63) for key in keys}
    assert len(states) == 12


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, None, "7"])
def test_invalid_seed_is_an_error(seed: object) -> None:
    with pytest.raises(SimulationError, match=r"seed.*must be an integer from 0"):
        check_seed(seed)  # type: ignore[arg-type]  # what a user may hand over

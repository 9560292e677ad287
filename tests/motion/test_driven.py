"""A motion that a caller drives: what it remembers of the steps before the last."""

from __future__ import annotations

import math

import numpy as np
import pytest

import navsense as ns
from navsense.motion.base import MotionBlock
from navsense.motion.driven import Driven, State
from navsense.pose import Pose, from_rpy

STEP, MEMORY, COUNT = 0.01, 0.35, 300


def state(t: float) -> State:
    """Return where a frame is that goes to and fro and turns, at t (s)."""
    place = (math.sin(3.0 * t), 2.0 * t, math.cos(t))
    return State(Pose(place, from_rpy(0.1 * t, math.sin(t), 2.0 * t)), (3.0 * math.cos(3.0 * t), 2.0, -math.sin(t)))


def rows(block: MotionBlock) -> list[list[float]]:
    return [array.ravel().tolist() for array in block.arrays]


@pytest.mark.requirement("LIV-1")
def test_what_is_remembered_is_what_was() -> None:
    whole, forgetful = Driven(state(0.0), MEMORY), Driven(state(0.0))
    said = {}
    for n in range(1, COUNT):
        for driven in (whole, forgetful):
            driven.push(n * STEP, state(n * STEP))
        instant = (n - 0.37) * STEP
        said[n] = instant, rows(forgetful.at(np.array([instant])))
        for back in (0, 1, 17, 34):
            if n - back in said:
                asked, was = said[n - back]
                assert rows(whole.at(np.array([asked]))) == was
    times = np.array([said[n][0] for n in (COUNT - 1, COUNT - 30, COUNT - 8)])
    together = whole.at(times)
    alone = [whole.at(times[k : k + 1]) for k in range(3)]
    for array, *parts in zip(together.arrays, *(one.arrays for one in alone), strict=True):
        assert array.tolist() == np.concatenate(parts).tolist()
    for driven, gone in ((whole, MEMORY + 2.0 * STEP), (forgetful, 1.5 * STEP)):
        with pytest.raises(ns.NavsenseError, match="must be inside the last "):
            driven.at(np.array([(COUNT - 1) * STEP - gone]))
    assert rows(whole.at(np.zeros(1))) == rows(Driven(state(0.0)).at(np.zeros(1)))


@pytest.mark.requirement("LIV-1")
def test_time_goes_on_and_a_run_begins_again_at_0() -> None:
    driven = Driven(state(0.0), MEMORY)
    for n in range(1, 9):
        driven.push(0.1 * n, state(0.1 * n))
    with pytest.raises(ns.NavsenseError, match="must be after"):
        driven.push(0.7, state(0.7))
    driven.push(0.0, state(5.0))
    assert driven.at(np.zeros(1)).position_w[0].tolist() == list(state(5.0).pose.position)
    driven.push(0.3, state(5.3))
    assert driven.at(np.array([0.3])).velocity_w[0].tolist() == list(state(5.3).velocity)

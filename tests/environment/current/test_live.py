"""Currents that are received during a run: zero-order hold, late samples, axes and memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import FieldError
from navsense.environment.current import CurrentReplay, LiveCurrent

pytestmark = pytest.mark.requirement("CUR-1")


def evaluate_at(field: LiveCurrent | CurrentReplay, *instants: float) -> Any:
    return field.at(np.zeros((len(instants), 3)), np.array(instants))


def test_each_velocity_holds_until_the_next_one() -> None:
    """Bitwise, at random times, in slices as a run queries them: the last sample at or before the time."""
    draw = np.random.default_rng(2)
    times, velocity = np.cumsum(draw.uniform(0.01, 1.0, 200)), draw.uniform(-1.0, 1.0, (200, 3))
    current, received = LiveCurrent(), []
    for index, (time, value) in enumerate(zip(times.tolist(), velocity.tolist(), strict=True)):
        assert current.append(time, tuple(value)) == time
        end = times[index + 1] if index + 1 < len(times) else time + 1.0
        asked = np.sort(draw.uniform(time, end, 5))
        asked[0] = time
        received.append(evaluate_at(current, *asked))
        assert np.array_equal(received[-1], np.tile(value, (5, 1)))
    assert np.array_equal(current.times, times)
    assert np.array_equal(current.velocity, velocity)


def test_late_sample_does_not_change_the_past() -> None:
    """It takes effect after the latest query. The samples with these times give the same velocities again."""
    current = LiveCurrent()
    current.append(0.0, (0.1, 0.0, 0.0))
    before = evaluate_at(current, 0.0, 3.0)
    effect = current.append(1.0, (0.2, 0.0, 0.0))
    assert effect == math.nextafter(3.0, math.inf)
    assert current.append(2.0, (0.3, 0.0, 0.0)) == effect  # of two late samples, the last one counts
    assert evaluate_at(current, 0.0, 3.0).tolist() == before.tolist()
    assert evaluate_at(current, 3.0, 3.1)[:, 0].tolist() == [0.1, 0.3]
    again = LiveCurrent()
    for time, velocity in zip(current.times.tolist(), current.velocity.tolist(), strict=True):
        again.append(time, tuple(velocity))
    asked = (0.0, 1.0, 3.0, effect, 5.0)
    assert evaluate_at(again, *asked).tolist() == evaluate_at(current, *asked).tolist()


@pytest.mark.parametrize("frame", ["world", "enu", "ned"])
def test_axes_are_those_of_a_replay(frame: str) -> None:
    heading, velocity = 0.3, (0.1, -0.2, 0.05)
    current = LiveCurrent(frame, heading)
    current.append(0.0, velocity)
    replay = CurrentReplay(np.array([0.0]), np.array([velocity]), frame, heading, outside="hold")
    assert evaluate_at(current, 0.5).tolist() == evaluate_at(replay, 0.5).tolist()
    turn = (math.cos(0.4), 0.0, 0.0, math.sin(0.4))
    turned = current.rotate(turn)
    assert evaluate_at(turned, 0.5).tolist() == evaluate_at(replay.rotate(turn), 0.5).tolist()
    current.append(1.0, (0.0, 0.0, 0.0))
    assert evaluate_at(turned, 1.0).tolist() == [[0.0, 0.0, 0.0]]


def test_memory_limits_the_samples() -> None:
    current = LiveCurrent(memory=2.0)
    for step in range(20_000):
        current.append(0.01 * step, (0.01 * (step % 7), 0.0, 0.0))
        evaluate_at(current, 0.01 * step)
    assert current.times.size < 1000
    assert evaluate_at(current, 0.01 * 19_999 - 2.0)[0, 0] == 0.01 * (19_799 % 7)
    with pytest.raises(FieldError, match=r"instant of row 0 \(s\): 0\.0; must be >= 19"):
        evaluate_at(current, 0.0)


def test_invalid_samples_and_queries_are_errors() -> None:
    current = LiveCurrent()
    with pytest.raises(FieldError, match="must be after the first sample of the current, and there is none; wait"):
        evaluate_at(current, 0.0)
    current.append(5.0, (0.0, 0.0, 0.0))
    for time, velocity, problem in (
        (4.0, (0.0, 0.0, 0.0), r"time of a current \(s\): 4.0; must not be before the last sample, 5.0"),
        (math.nan, (0.0, 0.0, 0.0), r"time of a current \(s\)"),
        (6.0, (0.0, math.nan, 0.0), r"velocity of a current \(m/s\)"),
        (6.0, (0.0, 0.0, 16.0), r"velocity of a current \(m/s\): 16"),
    ):
        with pytest.raises(FieldError, match=problem):
            current.append(time, velocity)
    with pytest.raises(FieldError, match=r"must be >= 5.0, the first sample"):
        evaluate_at(current, 4.0)
    with pytest.raises(FieldError, match="instant of row 1"):
        evaluate_at(current, 6.0, math.nan)
    with pytest.raises(FieldError, match="frame of a current: x; must be one of world, enu, ned"):
        LiveCurrent("x")
    with pytest.raises(FieldError, match="memory of a current"):
        LiveCurrent(memory=-1.0)

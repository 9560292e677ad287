"""Motion through the states of a live system, and the derivatives of poses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import MotionError
from navsense.core.typing import FloatArray
from navsense.motion.driven import DrivenMotion, state_row
from navsense.motion.pose_derivatives import NODE, WINDOW, PoseDerivatives, compute_derivative_weights
from navsense.motion.received_motion import ReceivedMotion

SOURCE = ns.motion.LogSource("gz://")


def make_pose(t: float) -> ns.Pose:
    """Return a pose that turns about a fixed axis at 0.4 t^2 rad and moves along a sine."""
    half = 0.2 * t * t
    return ns.Pose((math.sin(t), 0.3 * t, 0.0), (math.cos(half), 0.0, 0.0, math.sin(half)))


def make_states(times: list[float], kind: str) -> list[ns.State]:
    """Return states with poses only, with velocities, or complete."""
    states = []
    for t in times:
        state = ns.State(make_pose(t))
        if kind != "pose":
            state = ns.State(make_pose(t), velocity=(math.cos(t), 0.3, 0.0), angular_velocity=(0.0, 0.0, 0.8 * t))
        states.append(state)
    return states


@pytest.mark.requirement("LIV-7")
@pytest.mark.parametrize("kind", ["pose", "velocity"])
def test_received_motion_equals_driven_motion_bitwise(kind: str) -> None:
    """Both derive missing quantities by the same rules; how the states are grouped does not matter."""
    times = [0.0, 0.01, 0.02, 0.035, 0.04, 0.05]
    states = make_states(times, kind)
    driven = DrivenMotion(states[0], memory=1.0)
    received = ReceivedMotion(0.0, state_row(states[0]), SOURCE)
    grouped = ReceivedMotion(0.0, state_row(states[0]), SOURCE)
    query = np.array([0.001, 0.0375, 0.05, 0.02])
    for t, state in zip(times[1:], states[1:], strict=True):
        driven.push(t, state)
        received.append(t, state_row(state))
        received.at(np.array([t]))
    for t, state in zip(times[1:], states[1:], strict=True):
        grouped.append(t, state_row(state))
    for expected, found, other in zip(
        driven.at(query).arrays, received.at(query).arrays, grouped.at(query).arrays, strict=True
    ):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(other, expected)


def test_frame_stands_still_before_the_first_state() -> None:
    """Before the start, the pose is that of the first state, and all rates are zero."""
    times = [0.25, 0.5, 0.75]
    states = make_states(times, "velocity")
    motion = ReceivedMotion(0.25, state_row(states[0]), SOURCE)
    with pytest.raises(MotionError, match="needs two states"):
        motion.at(np.array([0.25]))
    for t, state in zip(times[1:], states[1:], strict=True):
        motion.append(t, state_row(state))
    block = motion.at(np.array([0.5, 0.0, 0.2499, 0.25]))
    np.testing.assert_array_equal(block.position_w[1:], np.tile(states[0].pose.position, (3, 1)))
    np.testing.assert_array_equal(block.velocity_w[1:3], 0.0)
    np.testing.assert_array_equal(block.velocity_w[[0, 3]], [states[1].velocity, states[0].velocity])
    np.testing.assert_array_equal(motion.list_times(0.3, 0.75), [0.5])


def test_old_states_are_forgotten_and_room_is_bounded() -> None:
    """A long motion keeps the states since the last `forget`; times before it are errors."""
    motion = ReceivedMotion(0.0, state_row(ns.State(make_pose(0.0))), SOURCE)
    for k in range(1, 20_000):
        motion.append(0.001 * k, state_row(ns.State(make_pose(0.001 * k))))
        motion.forget(0.001 * k - 0.1)
    assert motion._rows.shape[0] <= 2048
    motion.at(np.array([19.95, 0.001 * 19_999]))
    np.testing.assert_array_equal(motion.at(np.zeros(1)).velocity_w, motion.at(np.array([0.0, 19.95])).velocity_w[:1])
    assert motion.at(np.zeros(1)).velocity_w[0, 0] == pytest.approx(1.0, abs=1e-6)  # cos(0)
    with pytest.raises(MotionError, match=r"must be from 19\.89\d* to 19\.99\d* s, where states of gz:// are known"):
        motion.at(np.array([19.5]))
    with pytest.raises(MotionError, match="must be after"):
        motion.append(19.0, state_row(ns.State(make_pose(0.0))))


def test_end_contains_the_last_state() -> None:
    """A run to the end of the motion has the samples at its last state."""
    motion = ReceivedMotion(0.0, state_row(ns.State(make_pose(0.0))), SOURCE)
    motion.append(1.0, state_row(ns.State(make_pose(1.0))))
    assert motion.end == math.inf
    motion.finish()
    assert motion.end > 1.0
    np.testing.assert_array_equal(motion.at(np.array([motion.end])).position_w[0], make_pose(1.0).position)


def test_weights_equal_a_fitted_polynomial() -> None:
    """The weights give the derivatives of the polynomial that NumPy fits through the values."""
    time = [0.0, 0.011, 0.035, 0.041, 0.06]
    values = np.array([0.3, -0.2, 0.5, 0.9, -0.4])
    fitted = np.polynomial.Polynomial.fit(time, values, 4)
    first, second = compute_derivative_weights(time, 3)
    assert float(first @ values) == pytest.approx(fitted.deriv(1)(time[3]), rel=1e-10, abs=0.0)
    assert float(second @ values) == pytest.approx(fitted.deriv(2)(time[3]), rel=1e-10, abs=0.0)


def complete(times: FloatArray, states: list[ns.State]) -> FloatArray:
    """Return the rows (n - 1, 19) of states with derivatives, one for each state but the last."""
    derivatives = PoseDerivatives()
    results = [derivatives.append(t, state_row(state)) for t, state in zip(times.tolist(), states, strict=True)]
    assert [len(result) for result in results] == [0] * (WINDOW - 1) + [NODE + 1] + [1] * (len(states) - WINDOW)
    found = [item for result in results for item in result]
    assert [t for t, _ in found] == times[:-1].tolist()
    return np.array([row for _, row in found])


def test_rates_of_a_turn_equal_their_closed_form() -> None:
    """An angle 0.4 t^2 about z, a polynomial of degree 2, has exact rates, at irregular times."""
    times = np.cumsum(np.array([0.01, 0.02, 0.007, 0.016, 0.03, 0.011, 0.02, 0.017]))
    rows = complete(times, [ns.State(make_pose(t)) for t in times.tolist()])
    rates = np.outer(times[:-1], (0.0, 0.0, 0.8))
    np.testing.assert_allclose(rows[:, 10:13], rates, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(rows[:, 16:], np.tile((0.0, 0.0, 0.8), (7, 1)), rtol=0.0, atol=1e-9)


@pytest.mark.requirement("LIV-7")
def test_parts_of_a_state_are_kept() -> None:
    """Only what a state lacks is derived from poses, whenever it arrives."""
    times = 0.01 * np.arange(12)
    complete_state = ns.State(
        make_pose(0.06),
        velocity=(9.0, 8.0, 7.0),
        angular_velocity=(6.0, 5.0, 4.0),
        acceleration=(3.0, 2.0, 1.0),
        frame="body",
    )
    states = [ns.State(make_pose(t)) for t in times.tolist()]
    states[1] = replace(states[1], acceleration=(1.0, 2.0, 3.0))
    states[2] = replace(states[2], angular_velocity=(0.1, 0.2, 0.3), angular_frame="body")
    states[4] = replace(states[4], velocity=(0.4, 0.5, 0.6))
    states[6] = complete_state
    rows = complete(times, states)
    plain = complete(times, [ns.State(make_pose(t)) for t in times.tolist()])
    expected = plain.copy()
    expected[1, 13:16] = 1.0, 2.0, 3.0
    expected[2, 10:13], expected[2, 16:] = (0.1, 0.2, 0.3), np.nan
    expected[4, 7:10], expected[4, 13:16] = (0.4, 0.5, 0.6), np.nan
    expected[6] = state_row(complete_state)
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.requirement("LIV-7")
def test_errors_of_the_first_states_are_their_taylor_terms() -> None:
    """The page of `pose_derivatives` lists the factors of the errors. The next terms are smaller by about h."""
    h, start = 0.01, 0.7
    times = h * np.arange(6)
    rows = complete(times, [ns.State(ns.Pose((math.sin(start + t), 0.0, 0.0))) for t in times.tolist()])
    t = start + times[:4]
    fifth, sixth = np.cos(t), -np.sin(t)
    velocity_error = (rows[:4, 7] - np.cos(t)) / h**4 / fifth
    np.testing.assert_allclose(np.abs(velocity_error), [1 / 5, 1 / 20, 1 / 30, 1 / 20], rtol=5.0 * h, atol=0.0)
    acceleration_error = np.abs(rows[:4, 13] + np.sin(t)) / h**3
    np.testing.assert_allclose(
        acceleration_error[[0, 1, 3]] / fifth[[0, 1, 3]], [5 / 6, 1 / 12, 1 / 12], rtol=5.0 * h, atol=0.0
    )
    assert acceleration_error[2] == pytest.approx(abs(h * sixth[2]) / 90.0, rel=5.0 * h, abs=0.0)


@pytest.mark.requirement("LIV-7")
def test_heave_at_60_hertz_has_the_error_of_the_documentation() -> None:
    """0.3 m at 1.5 Hz and 2 mm at 5 Hz, sampled at 60 Hz: the error of the acceleration is that of the Taylor term.

    The error of the second derivative at the fourth of five points h apart is h^3 f^(5) / 12.
    """
    h, (slow, fast) = 1.0 / 60.0, (2.0 * math.pi * 1.5, 2.0 * math.pi * 5.0)
    times = h * np.arange(600)
    heave = 0.3 * np.sin(slow * times) + 0.002 * np.sin(fast * times)
    acceleration = -0.3 * slow**2 * np.sin(slow * times) - 0.002 * fast**2 * np.sin(fast * times)
    rows = complete(times, [ns.State(ns.Pose((0.0, 0.0, z))) for z in heave.tolist()])
    error = rows[3:, 15] - acceleration[3:-1]
    fifth = 0.3 * slow**5 * np.cos(slow * times[3:-1]) + 0.002 * fast**5 * np.cos(fast * times[3:-1])
    taylor = math.sqrt(float(np.mean((h**3 / 12.0 * fifth) ** 2)))
    rms = math.sqrt(float(np.mean(error**2)))
    assert 0.8 * taylor < rms < 1.25 * taylor  # the next term is smaller by h times the frequency
    assert rms < 0.05

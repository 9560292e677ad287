"""Velocities that contradict the poses are found, those of a noisy filter are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import navsense as ns
from navsense.core.typing import FloatArray
from navsense.motion.driven import state_row
from navsense.motion.velocity_check import VelocityCheck

pytestmark = [pytest.mark.requirement("LIV-7")]


def find_problems(
    time: FloatArray, position: FloatArray, velocity: FloatArray, yaw: FloatArray, rate: FloatArray
) -> list[str]:
    """Return the problems of a horizontal motion."""
    check, problems = VelocityCheck(), []
    for t, (x, y), (vx, vy), angle, turn in zip(time, position, velocity, yaw, rate, strict=True):
        pose = ns.Pose((x, y, 0.0), (math.cos(angle / 2.0), 0.0, 0.0, math.sin(angle / 2.0)))
        state = ns.State(pose, velocity=(vx, vy, 0.0), angular_velocity=(0.0, 0.0, turn))
        if not check.is_done and (problem := check.add(t, state_row(state))):
            problems.append(problem)
    return problems


def make_circle(
    count: int = 1500, rate: float = 50.0
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return times, positions, velocities, headings and their rates on a circle of 4 m at 1.2 m/s."""
    time = np.arange(count) / rate
    angle = 0.3 * time
    position = 4.0 * np.column_stack((np.cos(angle), np.sin(angle)))
    velocity = 1.2 * np.column_stack((-np.sin(angle), np.cos(angle)))
    return time, position, velocity, angle + math.pi / 2.0, np.full(count, 0.3)


def test_correct_velocities_have_no_problem() -> None:
    """Velocities at the step, averages over the step before, and those of a semi-implicit step."""
    time, position, velocity, yaw, rate = make_circle()
    assert find_problems(time, position, velocity, yaw, rate) == []
    average = np.gradient(position, time, axis=0)
    average[1:] = np.diff(position, axis=0) / np.diff(time)[:, None]
    assert find_problems(time, position, average, yaw, rate) == []


@pytest.mark.parametrize(
    ("factor", "turn", "turn_factor", "unit"),
    [
        (1.0, math.radians(30.0), 1.0, "m"),
        (1.0, math.pi / 2.0, 1.0, "m"),
        (-1.0, 0.0, 1.0, "m"),
        (1.944, 0.0, 1.0, "m"),
        (0.001, 0.0, 1.0, "m"),
        (0.0, 0.0, 1.0, "m"),
        (1.0, 0.0, -1.0, "rad"),
        (1.0, 0.0, 57.3, "rad"),
        (1.0, 0.0, 0.0, "rad"),
    ],
)
def test_wrong_axes_and_units_are_one_problem(factor: float, turn: float, turn_factor: float, unit: str) -> None:
    """Turned or reversed axes, knots, millimetres, no velocity; a wrong sense of rotation, degrees, no rate."""
    time, position, velocity, yaw, rate = make_circle()
    turned = velocity @ np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    (problem,) = find_problems(time, position, factor * turned, yaw, turn_factor * rate)
    assert f") {unit}, their velocities by (" in problem


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_corrections_of_a_filter_are_no_problem(seed: int) -> None:
    """Positions corrected by 0.3 m each second, velocities with 0.1 m/s of noise and a scale of 1.05."""
    random = np.random.default_rng(seed)
    time, position, velocity, yaw, rate = make_circle(3000)
    corrections = np.repeat(random.normal(0.0, 0.3, (60, 2)), 50, axis=0)
    noise = random.normal(0.0, 0.02, position.shape)
    measured = 1.05 * velocity + random.normal(0.0, 0.1, velocity.shape)
    turns = random.normal(0.0, 0.05, yaw.size)
    assert find_problems(time, position + corrections + noise, measured, yaw + turns, rate) == []


@pytest.mark.parametrize("seed", range(5))
def test_wandering_position_of_a_robot_at_rest_is_no_problem(seed: int) -> None:
    """A random walk of 3 cm for each state, as of a satellite receiver without a filter, exceeds 1 m many times."""
    random = np.random.default_rng(seed)
    time = np.arange(5000) / 10.0
    position = np.cumsum(random.normal(0.0, 0.03, (5000, 2)), axis=0)
    assert np.abs(position).max() > 1.0
    zero = np.zeros(5000)
    assert find_problems(time, position, random.normal(0.0, 0.02, (5000, 2)), zero, zero) == []

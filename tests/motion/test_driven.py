"""Motion from states of the caller: given fields, derived fields, and memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import MotionError
from navsense.core.pose import Pose, conjugate, from_rotation_vector, from_rpy, rotate
from navsense.core.pose import multiply as product
from navsense.core.typing import Quaternion, Vector
from navsense.motion.base import MotionBlock
from navsense.motion.derived import AttachedMotion
from navsense.motion.driven import LIMITS, DrivenMotion, State

STEP, MEMORY, COUNT = 0.01, 0.35, 300


def make_state(t: float) -> State:
    """Return the state at t (s) of a frame that oscillates and rotates."""
    place = (math.sin(3.0 * t), 2.0 * t, math.cos(t))
    return State(Pose(place, from_rpy(0.1 * t, math.sin(t), 2.0 * t)), (3.0 * math.cos(3.0 * t), 2.0, -math.sin(t)))


def list_rows(block: MotionBlock) -> list[list[float]]:
    return [array.ravel().tolist() for array in block.arrays]


@pytest.mark.requirement("LIV-1")
def test_cached_motion_equals_the_motion() -> None:
    complete, forgetful = DrivenMotion(make_state(0.0), MEMORY), DrivenMotion(make_state(0.0))
    readings = {}
    for n in range(1, COUNT):
        for driven in (complete, forgetful):
            driven.push(n * STEP, make_state(n * STEP))
        instant = (n - 0.37) * STEP
        readings[n] = instant, list_rows(forgetful.at(np.array([instant])))
        for back in (0, 1, 17, 34):
            if n - back in readings:
                asked, was = readings[n - back]
                assert list_rows(complete.at(np.array([asked]))) == was
    times = np.array([readings[n][0] for n in (COUNT - 1, COUNT - 30, COUNT - 8)])
    together = complete.at(times)
    alone = [complete.at(times[k : k + 1]) for k in range(3)]
    for array, *parts in zip(together.arrays, *(one.arrays for one in alone), strict=True):
        assert array.tolist() == np.concatenate(parts).tolist()
    for driven, gone in ((complete, MEMORY + 2.0 * STEP), (forgetful, 1.5 * STEP)):
        with pytest.raises(ns.NavsenseError, match="must be inside the last "):
            driven.at(np.array([(COUNT - 1) * STEP - gone]))
    assert list_rows(complete.at(np.zeros(1))) == list_rows(DrivenMotion(make_state(0.0)).at(np.zeros(1)))


@pytest.mark.requirement("LIV-1")
def test_time_increases_and_restarts_at_zero() -> None:
    driven = DrivenMotion(make_state(0.0), MEMORY)
    for n in range(1, 9):
        driven.push(0.1 * n, make_state(0.1 * n))
    with pytest.raises(ns.NavsenseError, match="must be after"):
        driven.push(0.7, make_state(0.7))
    driven.push(0.0, make_state(5.0))
    assert driven.at(np.zeros(1)).position_w[0].tolist() == list(make_state(5.0).pose.position)
    driven.push(0.3, make_state(5.3))
    assert driven.at(np.array([0.3])).velocity_w[0].tolist() == list(make_state(5.3).velocity or ())


# A closed form with angular acceleration about all axes: the attitude is Rz(f) Ry(g).

ARRAYS = (
    "position_w",
    "rotation_wb",
    "velocity_w",
    "angular_velocity_b",
    "acceleration_w",
    "angular_acceleration_b",
)
RATES = ("velocity", "angular_velocity")
ALL = (*RATES, "acceleration", "angular_acceleration")


def compute_truth(t: float) -> dict[str, tuple[float, ...]]:
    """Return the motion of a tumbling body at t (s), with analytic derivatives."""
    f, df, ddf = 0.7 * t + 1.5 * t * t, 0.7 + 3.0 * t, 3.0
    g, dg, ddg = 0.4 * math.sin(3.0 * t), 1.2 * math.cos(3.0 * t), -3.6 * math.sin(3.0 * t)
    s, c = math.sin(g), math.cos(g)
    return {
        "position_w": (math.sin(3.0 * t), 2.0 * t * t, math.cos(t)),
        "rotation_wb": from_rpy(0.0, g, f),
        "velocity_w": (3.0 * math.cos(3.0 * t), 4.0 * t, -math.sin(t)),
        "angular_velocity_b": (-df * s, dg, df * c),
        "acceleration_w": (-9.0 * math.sin(3.0 * t), 4.0, -math.cos(t)),
        "angular_acceleration_b": (-ddf * s - df * dg * c, ddg, ddf * c - df * dg * s),
    }


def compute_quaternion(t: float) -> Quaternion:
    w, x, y, z = compute_truth(t)["rotation_wb"]
    return (w, x, y, z)


def compute_vector(t: float, name: str) -> Vector:
    x, y, z = compute_truth(t)[name]
    return (x, y, z)


def make_tumbling_state(t: float, *fields: str) -> State:
    """Return the state at t (s) with some of its fields."""
    known = {name: compute_vector(t, f"{name}_{'b' if 'angular' in name else 'w'}") for name in fields}
    pose = Pose(compute_vector(t, "position_w"), compute_quaternion(t))
    return replace(State(pose, angular_frame="body"), **known)  # type: ignore[arg-type]  # fields of vectors


def find_largest_errors(h: float, fields: tuple[str, ...], shares: tuple[float, ...]) -> dict[str, float]:
    """Return the largest error of each array from 0.5 to 1 s, at these fractions of each step of length h (s)."""
    driven, found = DrivenMotion(make_tumbling_state(0.0, *fields)), dict.fromkeys(ARRAYS, 0.0)
    for n in range(1, round(1.0 / h) + 1):
        driven.push(n * h, make_tumbling_state(n * h, *fields))
        if n * h < 0.5:
            continue
        time = np.array([n * h if share == 1.0 else (n - 1 + share) * h for share in shares])
        block = driven.at(time)
        for i, t in enumerate(time.tolist()):
            true = compute_truth(t)
            for name in ARRAYS:
                row = getattr(block, name)[i]
                sign = 1.0 if name != "rotation_wb" or row @ np.array(true[name]) > 0.0 else -1.0
                found[name] = max(found[name], float(np.abs(sign * row - true[name]).max()))
    return found


@pytest.mark.requirement("LIV-1", "IMU-2")
@pytest.mark.parametrize(
    ("fields", "at_ends", "inside"),
    [
        ((), "00 22 11", "33 22 11"),
        (("velocity",), "00 02 11", "43 22 11"),
        (RATES, "00 00 11", "44 22 11"),
        (("acceleration", "angular_acceleration"), "00 22 00", "33 22 22"),
        (ALL, "00 00 00", "44 44 33"),
    ],
)
def test_missing_fields_are_derived_to_the_documented_order(fields: tuple[str, ...], at_ends: str, inside: str) -> None:
    """Half the step has 2^-order of the error. Order 0 means exact."""
    for orders, shares in ((at_ends, (1.0,)), (inside, (0.2, 0.5, 0.8))):
        wide, narrow = (
            find_largest_errors(0.01, fields, shares),
            find_largest_errors(0.005, fields, shares),
        )
        for name, order in zip(ARRAYS, orders.replace(" ", ""), strict=True):
            if order == "0":
                assert wide[name] < 1e-14
            else:
                assert math.log2(wide[name] / narrow[name]) == pytest.approx(int(order), abs=0.1)


@pytest.mark.requirement("LIV-1", "IMU-2")
@pytest.mark.parametrize("frame", ["world", "body"])
@pytest.mark.parametrize("angular_frame", ["world", "body", None])
def test_fields_of_a_state_are_used_exactly_in_both_frames(frame: str, angular_frame: str | None) -> None:
    def make_state_in_frames(t: float) -> State:
        into, rotation = conjugate(compute_quaternion(t)), compute_quaternion(t)

        def linear(name: str) -> Vector:
            return rotate(into, compute_vector(t, name)) if frame == "body" else compute_vector(t, name)

        def angular(name: str) -> Vector:
            return (
                rotate(rotation, compute_vector(t, name))
                if (angular_frame or frame) == "world"
                else compute_vector(t, name)
            )

        return State(
            Pose(compute_vector(t, "position_w"), rotation),
            linear("velocity_w"),
            angular_velocity=angular("angular_velocity_b"),
            acceleration=linear("acceleration_w"),
            angular_acceleration=angular("angular_acceleration_b"),
            frame=frame,  # type: ignore[arg-type]  # one of the two
            angular_frame=angular_frame,  # type: ignore[arg-type]
        )

    driven = DrivenMotion(make_state_in_frames(0.0), MEMORY)
    for n in range(40):
        if n:
            driven.push(n * 0.1, make_state_in_frames(n * 0.1))
        for back in range(min(n, 3) + 1):  # the ends of earlier steps too
            t = (n - back) * 0.1
            block = driven.at(np.array([t]))
            for name in ARRAYS:
                assert np.allclose(getattr(block, name)[0], compute_truth(t)[name], rtol=1e-12, atol=1e-12)


@pytest.mark.requirement("LIV-1")
def test_motion_is_continuous_for_any_fields_of_its_states() -> None:
    """The motion is continuous at the end of a step, even if only one of two states has a field."""
    choices = ((), RATES, ("velocity",), ALL, ("acceleration",), ("angular_acceleration",), ("angular_velocity",))
    driven, h = DrivenMotion(make_tumbling_state(0.0, *RATES), 10.0), 0.01
    for n in range(1, 60):
        driven.push(n * h, make_tumbling_state(n * h, *choices[n % len(choices)]))
    for n in range(1, 59):
        near = driven.at(np.array([n * h - 1e-11, n * h, n * h + 1e-11]))
        for name in ARRAYS:
            before, there, after = getattr(near, name) * np.sign(getattr(near, name)[:, :1] if "rot" in name else 1.0)
            assert np.allclose(before, there, rtol=0.0, atol=1e-6)
            assert np.allclose(after, there, rtol=0.0, atol=1e-6)
        far = near.angular_acceleration_b[1] - compute_truth(n * h)["angular_acceleration_b"]
        assert np.abs(far).max() < 60.0 * h  # order h throughout


@pytest.mark.requirement("LIV-1")
def test_attitude_rotates_at_the_angular_velocity_within_a_step() -> None:
    """Differences of the attitude equal the angular velocity, at rotations up to 0.5 rad per step."""
    h, e = 0.1, 1e-5
    driven = DrivenMotion(make_tumbling_state(0.0, *ALL))
    for n in range(1, 12):
        driven.push(n * h, make_tumbling_state(n * h, *ALL))
        for share in (0.1, 0.5, 0.9):
            t = (n - 1 + share) * h
            block = driven.at(np.array([t - e, t, t + e]))
            first, last = (tuple(block.rotation_wb[i].tolist()) for i in (0, 2))
            turn = np.array(product(conjugate(first), last)[1:]) / e  # type: ignore[arg-type]  # of four numbers
            assert np.allclose(turn, block.angular_velocity_b[1], rtol=0.0, atol=0.01)  # h^2 of it is 0.01 |omega''|


@pytest.mark.requirement("LIV-1", "IMU-2")
def test_semi_implicit_steps_give_the_simulator_accelerations() -> None:
    """The simulator updates velocity, then position with the new velocity: mean and given rates disagree."""
    h, a, alpha = 0.01, np.array([0.3, -2.0, 1.0]), np.array([0.0, 0.0, 5.0])
    p, v, w, q = np.zeros(3), np.zeros(3), np.zeros(3), (1.0, 0.0, 0.0, 0.0)
    driven = DrivenMotion(State(Pose(), (0.0, 0.0, 0.0), angular_velocity=(0.0, 0.0, 0.0)))
    for n in range(1, 30):
        v, w = v + h * a, w + h * alpha
        p, q = p + h * v, product(q, from_rotation_vector(tuple(h * w)))
        driven.push(n * h, State(Pose(tuple(p), q), tuple(v), angular_velocity=tuple(w)))
        inside = driven.at(np.array([(n - 0.9) * h, (n - 0.5) * h, n * h]))
        assert np.allclose(inside.acceleration_w, a, rtol=0.0, atol=1e-9)
        assert np.allclose(inside.angular_acceleration_b, alpha, rtol=0.0, atol=1e-9)


@pytest.mark.requirement("LIV-1", "IMU-2")
def test_first_step_starts_from_the_initial_state() -> None:
    def make_spinning_state(t: float, *fields: str) -> State:
        known: dict[str, Vector] = {"angular_velocity": (0.0, 0.0, 2.0 + 5.0 * t)}
        pose = Pose((0.0, 0.0, 0.0), from_rpy(0.0, 0.0, 2.0 * t + 2.5 * t * t))
        return replace(State(pose, (0.0, 0.0, 0.0)), **{name: known[name] for name in fields})  # type: ignore[arg-type]

    h = 0.01
    start = np.zeros(1)
    unknown = DrivenMotion(make_spinning_state(0.0))
    assert unknown.at(start).angular_velocity_b.tolist() == [[0.0, 0.0, 0.0]]
    assert unknown.at(np.zeros(3)).angular_velocity_b.tolist() == [[0.0, 0.0, 0.0]] * 3
    unknown.push(h, make_spinning_state(h))
    for share in (0.3, 1.0):  # the mean over the step, without a peak of acceleration from rest
        block = unknown.at(np.array([share * h]))
        assert block.angular_velocity_b[0, 2] == pytest.approx(2.0 + 2.5 * h, abs=1e-12)
        assert block.angular_acceleration_b[0, 2] == pytest.approx(0.0, abs=1e-9)
    unknown.push(2.0 * h, make_spinning_state(2.0 * h))
    block = unknown.at(np.array([2.0 * h]))
    assert block.angular_velocity_b[0, 2] == pytest.approx(2.0 + 10.0 * h, abs=1e-12)
    assert block.angular_acceleration_b[0, 2] == pytest.approx(5.0, abs=1e-9)

    known = DrivenMotion(make_spinning_state(0.0, "angular_velocity"))
    known.push(0.0, make_spinning_state(0.0))  # the state of the first step omits it
    assert known.at(start).angular_velocity_b.tolist() == [[0.0, 0.0, 2.0]]
    known.push(h, make_spinning_state(h))
    for share in (0.3, 1.0):
        block = known.at(np.array([share * h]))
        assert block.angular_velocity_b[0, 2] == pytest.approx(2.0 + 5.0 * share * h, abs=1e-12)
        assert block.angular_acceleration_b[0, 2] == pytest.approx(5.0, abs=1e-9)
    known.push(0.0, make_spinning_state(0.0))  # a restart does not depend on the earlier motion
    assert known.at(start).angular_velocity_b.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.requirement("LIV-1")
def test_missing_velocity_is_derived() -> None:
    driven = DrivenMotion(State())
    for n in range(1, 9):
        t = 0.1 * n
        driven.push(t, State(Pose((3.0 * t + t * t, 0.0, 0.0))))
        block = driven.at(np.array([t]))
        if n > 1:
            assert block.velocity_w[0, 0] == pytest.approx(3.0 + 2.0 * t, abs=1e-12)
            assert block.acceleration_w[0, 0] == pytest.approx(2.0, abs=1e-12)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ([0.0, 0.0, 0.0], r"state of a driven model: \[0.0, 0.0, 0.0\]; must be a navsense.State with a navsense.Pose"),
        (State([0.0, 0.0, 0.0]), "state of a driven model"),  # type: ignore[arg-type]  # wrong on purpose
        (State(velocity=(0.0, 0.0)), "velocity of a driven model: .*must be 3 finite numbers .*, or None"),  # type: ignore[arg-type]
        (State(velocity="abc"), "velocity of a driven model: abc; must be 3 finite"),  # type: ignore[arg-type]
        (State(angular_velocity=(math.nan, 0.0, 0.0)), "angular_velocity of a driven model"),
        (State(acceleration=(0.0, 0.0, 10**400)), "acceleration of a driven model"),
        (State(angular_acceleration=5.0), "angular_acceleration of a driven model: 5.0"),  # type: ignore[arg-type]
        (State(frame="ned"), "frame of the state of a driven model: ned; must be world or body"),  # type: ignore[arg-type]
        (State(angular_frame="x"), "angular_frame of the state of a driven model: x"),  # type: ignore[arg-type]
    ],
)
def test_invalid_states_are_rejected(state: State, message: str) -> None:
    with pytest.raises(MotionError, match=message):
        DrivenMotion(state)


LARGE_STATES: list[Callable[[float], State]] = [
    lambda size: State(Pose((0.0, size * LIMITS["position"][0], 0.0))),
    lambda size: State(velocity=(size * LIMITS["velocity"][0], 0.0, 0.0)),
    lambda size: State(angular_velocity=(0.0, 0.0, size * LIMITS["angular_velocity"][0])),
    lambda size: State(acceleration=(0.0, size * LIMITS["acceleration"][0], 0.0), frame="body"),
    lambda size: State(angular_acceleration=(size * LIMITS["angular_acceleration"][0], 0.0, 0.0)),
]


@pytest.mark.requirement("LIV-1")
@pytest.mark.parametrize("state", LARGE_STATES)
def test_coordinate_beyond_its_limit_is_an_error(state: Callable[[float], State]) -> None:
    """Readings would be NaN after an overflow."""
    for size in (1.001, -1.001, 1e100, 1e200):
        with pytest.raises(MotionError, match=r"of a driven model: .*; must be 3 finite numbers of at most 1e"):
            DrivenMotion(state(size))


@pytest.mark.requirement("LIV-1")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("state", LARGE_STATES)
def test_values_within_the_limits_are_finite(state: Callable[[float], State]) -> None:
    """This includes a sensor on a lever arm, from one limit to the other in steps of a nanosecond."""
    driven = DrivenMotion(state(-1.0))
    arm = AttachedMotion(driven, Pose((1.0, 2.0, 3.0)))
    for n in range(1, 6):
        driven.push(1e-9 * n, state((-1.0) ** (n + 1)))
        block = arm.at(np.array([1e-9 * (n - 0.5), 1e-9 * n]))
        assert all(np.isfinite(array).all() for array in block.arrays)

"""The altimeter equals the documented cases, closed forms and Gazebo's values, in batch and live runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense.core.errors import SensorError, SimulationError, UnknownNameError
from navsense.core.kernels import INTERPRETED
from navsense.core.pose import Pose, from_rpy
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray, Times
from navsense.description import describe
from navsense.environment.base import Environment
from navsense.motion.base import Motion, MotionBlock
from navsense.motion.derived import AttachedMotion, CachedMotion
from navsense.motion.driven import DrivenMotion, State
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors import Altimeter, Magnetometer, ZeroReference, altimeter
from navsense.sensors.altimeter import REFERENCE
from navsense.testing import check_cut, example_motion, example_world
from navsense.world import World

NAME = "robot::arm::alt"
ONE = Ticks(np.zeros(1, dtype=np.int64), 1.0)


def compute_ideal(spec: Altimeter, motion: Motion, ticks: Ticks = ONE) -> dict[str, AnyArray]:
    return dict(spec.ideal(motion, Environment(), ticks))


def make_motion(z: float) -> Stationary:
    return Stationary(Pose((1.0, 2.0, z), from_rpy(0.3, 0.2, 0.1)))


def make_world(spec: Altimeter, *, rate: float = 200.0, step: float = 0.001) -> World:
    base = example_world(("alt", spec))
    return replace(base, sensors=tuple(replace(s, rate=rate) for s in base.sensors), max_step_size=step)


def compute_heights(ticks: Ticks) -> FloatArray:
    return example_motion().at(ticks.time).position_w[:, 2]


@pytest.mark.requirement("ALT-6", "ALT-2", "ALT-1")
@pytest.mark.parametrize("height", [0.0, 10.0])
def test_documentation_cases(height: float) -> None:
    """At (0, 0, 0) height and velocity are zero; at (0, 0, 10) the height is 10. The reference is the world origin."""
    found = compute_ideal(Altimeter(), Stationary(Pose((0.0, 0.0, height))))
    assert {name: array.tolist() for name, array in found.items()} == {
        "vertical_position": [height],
        "vertical_velocity": [0.0],
        "vertical_reference": [0.0],
    }


@pytest.mark.requirement("ALT-2")
def test_velocity_is_that_of_the_sensor_origin() -> None:
    """SciPy gives v_b + R (omega x r); finite differences give the slope of the height."""
    arm = (0.7, -0.4, 0.3)
    ticks = Ticks(np.arange(1, 400, dtype=np.int64), 200.0)
    mounted = AttachedMotion(example_motion(), Pose(arm, from_rpy(1.0, 0.5, -2.0)))
    found = compute_ideal(Altimeter(), mounted, ticks)
    body = example_motion().at(ticks.time)
    rotation = Rotation.from_quat(body.rotation_wb, scalar_first=True)
    own = body.velocity_w + rotation.apply(np.cross(body.angular_velocity_b, arm))
    assert np.allclose(found["vertical_velocity"], own[:, 2], rtol=0.0, atol=1e-13)
    assert np.allclose(found["vertical_position"], (body.position_w + rotation.apply(arm))[:, 2], rtol=0.0, atol=1e-13)
    assert np.abs(own[:, 2] - body.velocity_w[:, 2]).max() > 0.1
    h = 1e-4
    before, after = (mounted.at(ticks.time + shift).position_w[:, 2] for shift in (-h, h))
    assert np.allclose(found["vertical_velocity"], (after - before) / (2.0 * h), rtol=0.0, atol=1e-5)


@pytest.mark.requirement("ALT-2")
def test_rod_rotating_about_a_level_axis() -> None:
    """A point at distance r from the axis and angle w t above the horizon has z = r sin wt, v = r w cos wt."""
    rate, arm = 0.5, 10.0

    class RotatingRod:
        """Rotates about -y, so that its x axis rises."""

        end = math.inf

        def at(self, time: Times) -> MotionBlock:
            still = Stationary(Pose()).at(time)
            turn = Rotation.from_euler("y", -rate * time[:, None]).as_quat(scalar_first=True)
            spin = np.tile([0.0, -rate, 0.0], (time.size, 1))
            return replace(still, rotation_wb=turn, angular_velocity_b=spin)

    ticks = Ticks(np.arange(100, dtype=np.int64), 10.0)
    found = compute_ideal(Altimeter(), AttachedMotion(RotatingRod(), Pose((arm, 0.0, 0.0))), ticks)
    angle = rate * ticks.time
    assert np.allclose(found["vertical_position"], arm * np.sin(angle), rtol=0.0, atol=1e-12)
    assert np.allclose(found["vertical_velocity"], arm * rate * np.cos(angle), rtol=0.0, atol=1e-12)


@pytest.mark.requirement("ALT-1", "ALT-2")
@pytest.mark.parametrize(("height", "expected"), [(2.0, 1.0), (-6.0, -7.0)])
def test_gazebo_unit_test_of_the_reference(height: float, expected: float) -> None:
    """In gz-sensors' test the reference is 1: the heights at 2 and -6 are exactly 1 and -7."""
    found = compute_ideal(Altimeter(reference=1.0), make_motion(height))
    assert found["vertical_position"][0] == expected
    assert found[REFERENCE][0] == 1.0


@pytest.mark.requirement("ALT-1")
def test_reference_is_the_height_at_the_start() -> None:
    ticks = Ticks(np.arange(300, dtype=np.int64), 100.0)
    found = compute_ideal(Altimeter(reference=ZeroReference()), example_motion(), ticks)
    z = compute_heights(ticks)
    assert np.array_equal(found[REFERENCE], np.full(300, z[0]))
    assert np.array_equal(found["vertical_position"], z - z[0])
    assert found["vertical_position"][0] == 0.0


def find_reset_tick(index: int, period: float, rate: float) -> int:
    """Return the tick at which the current reference was set, in exact arithmetic."""
    samples = Fraction(period) * Fraction(rate)
    n = Fraction(index) // samples
    return math.ceil(n * samples)


@pytest.mark.requirement("ALT-1")
@given(
    st.integers(0, 10**12),
    st.sampled_from([0.25, 0.375, 1.0, 2.5, 7.8125, 0.0078125, 3.0, 1e4 + 1 / 64]),
    st.sampled_from([0.5, 1.0, 3.0, 64.0, 100.0, 1000.0, 1e6]),
)
def test_reference_is_updated_at_the_first_sample_of_each_period(index: int, period: float, rate: float) -> None:
    """The periods are exact in binary, so the exact result is unique."""
    ticks = Ticks(np.array([index], dtype=np.int64), rate)
    assert ZeroReference(period).find_reset_ticks(ticks)[0] == find_reset_tick(index, period, rate)


@pytest.mark.requirement("ALT-1")
@pytest.mark.parametrize(("period", "samples"), [(0.1, 20), (0.3, 60), (0.7, 140), (0.005, 1), (1e-9, None)])
def test_decimal_periods_are_whole_samples(period: float, samples: int | None) -> None:
    index = np.arange(1000, dtype=np.int64)
    expected = index if samples is None else index // samples * samples
    assert np.array_equal(ZeroReference(period).find_reset_ticks(Ticks(index, 200.0)), expected)


@pytest.mark.requirement("ALT-1")
@pytest.mark.parametrize("period", [1e-15, 1e-19, 1e-300, 5e-324, 0.009, 1e12, 1e18, 1e300, 1.7e308])
def test_periods_below_one_sample_and_beyond_the_run(
    period: float, interpret: Callable[[Any], Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = Ticks(np.array([0, 1, 2, 999, 10**6, 2**52], dtype=np.int64), 100.0)
    expected = ticks.index if period < 0.01 else np.zeros(6, dtype=np.int64)
    if period == 1e12:
        ticks, expected = Ticks(10**14 + ticks.index - 2, 100.0), 10**14 * ((10**14 + ticks.index - 2) // 10**14)
    assert np.array_equal(ZeroReference(period).find_reset_ticks(ticks), expected)
    if not INTERPRETED:
        monkeypatch.setattr(altimeter, "_write_reset_ticks", interpret(altimeter._write_reset_ticks))
        assert np.array_equal(ZeroReference(period).find_reset_ticks(ticks), expected)


@pytest.mark.requirement("ALT-1")
def test_reference_is_updated_every_period() -> None:
    ticks = Ticks(np.arange(600, dtype=np.int64), 200.0)
    found = compute_ideal(Altimeter(reference=ZeroReference(0.4)), example_motion(), ticks)
    z = compute_heights(ticks)
    assert np.array_equal(found[REFERENCE], np.repeat(z[::80], 80)[:600])
    assert np.array_equal(found["vertical_position"], z - found[REFERENCE])
    assert not found["vertical_position"][::80].any()


@pytest.mark.requirement("ALT-1")
@pytest.mark.parametrize(("period", "rate", "every"), [(0.07, 100.0, 7), (0.29, 100.0, 29), (1.1, 10.0, 11)])
def test_period_of_whole_samples_tolerates_rounding(period: float, rate: float, every: int) -> None:
    """0.07 * 100 is 7.000000000000001 in doubles: the reference is set at tick 7, not at tick 8."""
    index = np.arange(5 * every + 1)
    assert ZeroReference(period).find_reset_ticks(Ticks(index, rate)).tolist() == (index // every * every).tolist()


@pytest.mark.requirement("ALT-1")
@pytest.mark.parametrize(
    "reference", [3.5, ZeroReference(), ZeroReference(0.123), ZeroReference(1e-4), ZeroReference(0.9)]
)
def test_every_reference_satisfies_the_cut_law(reference: float | ZeroReference) -> None:
    check_cut(replace(Altimeter.example_spec(), reference=reference))


@pytest.mark.requirement("ALT-1")
def test_classic_reference_is_the_height_at_the_start() -> None:
    """gz-sim sets it when it creates the sensor. The reference of the spec has no effect."""
    plain = make_world(Altimeter(reference=0.25))
    run = ns.simulate(plain, 1.0, fidelity="classic")[NAME]
    assert np.array_equal(run[REFERENCE], np.full(200, run[REFERENCE][0]))
    assert run["vertical_position"][0] == 0.0
    assert run[REFERENCE][0] not in (0.0, 0.25)
    physical = ns.simulate(plain, 1.0, fidelity="physical")[NAME]
    assert np.array_equal(physical[REFERENCE], np.full(200, 0.25))
    assert np.array_equal(physical["vertical_velocity"], run["vertical_velocity"])


NO_NUMBERS: tuple[Any, ...] = (
    math.nan,
    "x",
    None,
    1.0 + 2.0j,
    np.complex128(1.0),
    pytest.param(10**400, id="huge"),
    np.zeros(2),
    np.zeros(1),
)


@pytest.mark.parametrize("reference", [*NO_NUMBERS, math.inf, "Initial", ""])
def test_invalid_reference_is_an_error(reference: Any) -> None:
    with pytest.raises(SensorError, match=r'reference of an altimeter.*or "initial"; give one number'):
        Altimeter(reference=reference)
    with pytest.raises(SensorError, match=r"reference of an altimeter.*; give one number"):
        Altimeter().adjust(REFERENCE, reference)


@pytest.mark.requirement("ALT-1")
def test_reference_accepts_any_number_type_and_the_sdf_keyword() -> None:
    assert Altimeter(reference="initial") == Altimeter(reference=ZeroReference())
    assert Altimeter(reference="initial").effective_reference == ZeroReference()
    for one in (np.float32(2.0), np.int64(2), 2, Fraction(2), True + 1):
        assert Altimeter(reference=one) == Altimeter(reference=2.0)  # type: ignore[arg-type]
    with pytest.raises(SensorError, match="reference of an altimeter"):
        Altimeter().adjust(REFERENCE, "initial")  # type: ignore[arg-type]


@pytest.mark.parametrize("period", [0.0, -1.0, *NO_NUMBERS])
def test_invalid_period_is_an_error(period: Any) -> None:
    with pytest.raises(SensorError, match=r"period of an altimeter's reference \(s\).*; must be > 0; omit it for"):
        ZeroReference(period)


@pytest.mark.requirement("ALT-3", "NOI-2")
def test_height_and_velocity_have_independent_random_streams() -> None:
    loud, count = Noise(stddev=0.5, bias_stddev=1.0), 20_000
    time, zeros = np.arange(count) / 100.0, np.zeros(count)
    both = Altimeter(loud, loud).apply(time, zeros, zeros, seed=4)
    assert abs(np.corrcoef(both["vertical_position"], both["vertical_velocity"])[0, 1]) < 4.9 / math.sqrt(count)
    assert both.bias["vertical_position"][0] != both.bias["vertical_velocity"][0]
    quiet = Altimeter(Noise(), loud).apply(time, zeros, zeros, seed=4)
    assert np.array_equal(quiet["vertical_velocity"], both["vertical_velocity"])
    assert not quiet["vertical_position"].any()
    for name in ("vertical_position", "vertical_velocity"):
        white = both[name] - both.bias[name]
        assert abs(white.std() / 0.5 - 1.0) < 4.9 / math.sqrt(2.0 * count)


@pytest.mark.requirement("ALT-3")
def test_gazebo_unit_test_of_noise() -> None:
    """With mean 1, deviation 0.2 and bias 10, height and velocity have errors and the reference has none."""
    noise = Noise(mean=1.0, stddev=0.2, bias_mean=10.0, classic=True)
    reading = Altimeter(noise, noise, classic=True).apply([0.0, 1.0], [2.0, 2.0], [3.0, 3.0], seed=1)
    off = {name: reading[name] - reading.ideal[name] for name in reading}
    assert not off[REFERENCE].any()
    for name in ("vertical_position", "vertical_velocity"):
        assert (np.abs(np.abs(off[name] - 1.0) - 10.0) < 5.0 * 0.2).all()  # of random sign


@pytest.mark.requirement("DOO-1", "ALT-1")
def test_apply_adds_errors_to_given_heights() -> None:
    time = np.array([5.0, 5.3, 6.1, 6.2, 7.0, 8.5])
    z = np.array([10.0, 11.0, 12.0, 13.0, 14.0, 15.0])
    speed = np.arange(6.0)
    fixed = Altimeter(reference=2.0).apply(time, z, speed, seed=1)
    assert np.array_equal(fixed["vertical_position"], z - 2.0)
    start = Altimeter(reference=ZeroReference()).apply(time, z, speed, seed=1)
    assert np.array_equal(start["vertical_position"], z - 10.0)
    anew = Altimeter(reference=ZeroReference(1.0)).apply(time, z, speed, seed=1)
    assert np.array_equal(anew[REFERENCE], [10.0, 10.0, 12.0, 12.0, 14.0, 15.0])  # the first row of 0, 1, 2, 3 s
    assert np.array_equal(anew["vertical_velocity"], speed)
    with pytest.raises(SensorError, match=r"height: shape \(6, 1\); must be \(6,\)"):
        Altimeter().apply(time, z[:, None], speed, seed=1)


@pytest.mark.requirement("ALT-5", "LIV-1")
def test_accessors_of_the_documentation() -> None:
    sim = ns.live(make_world(Altimeter.example_spec()), seed=3)
    altimeter = sim.sensor(NAME)
    with pytest.raises(SimulationError, match="'vertical_position' of robot::arm::alt; is available after"):
        altimeter.get("vertical_position")
    for _ in range(17):
        sim.step()
    assert altimeter.reading is not None
    for name in ("vertical_position", "vertical_velocity", REFERENCE):
        assert altimeter.get(name) == altimeter.reading[name][-1]
    with pytest.raises(UnknownNameError, match="array: depth"):
        altimeter.get("depth")


@pytest.mark.requirement("ALT-5")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
@pytest.mark.parametrize("step", [0.001, 0.012])
def test_changed_reference_acts_from_the_next_sample(step: float, fidelity: str) -> None:
    spec = Altimeter(POSITION, VELOCITY, ZeroReference(0.1))
    batch = ns.simulate(make_world(spec, step=step), 1.0, seed=3, fidelity=fidelity)[NAME]
    sim = ns.live(make_world(spec, step=step), seed=3, fidelity=fidelity)
    released = []
    while sim.time < 0.5:
        released += [sim.step().readings.get(NAME)]
    altimeter = sim.sensor(NAME)
    before = altimeter.get(REFERENCE)
    altimeter.set(REFERENCE, 7.5)
    assert altimeter.get(REFERENCE) == before
    changed = sum(reading.time.size for reading in released if reading)
    while sim.time < 1.0:
        released += [sim.step().readings.get(NAME)]
    live = {
        name: np.concatenate([reading[name] for reading in released if reading])[: batch.time.size] for name in batch
    }
    assert np.array_equal(live[REFERENCE][:changed], batch[REFERENCE][:changed])
    assert np.array_equal(live[REFERENCE][changed:], np.full(batch.time.size - changed, 7.5))
    assert live["vertical_velocity"].tobytes() == batch["vertical_velocity"].tobytes()
    assert live["vertical_position"][:changed].tobytes() == batch["vertical_position"][:changed].tobytes()
    moved = batch["vertical_position"] + batch[REFERENCE] - live[REFERENCE]
    assert np.allclose(live["vertical_position"], moved, rtol=0.0, atol=1e-12)  # errors continue unchanged
    truth = np.concatenate([reading.ideal["vertical_position"] for reading in released if reading])
    assert np.allclose(
        truth[: batch.time.size] + live[REFERENCE],
        batch.ideal["vertical_position"] + batch[REFERENCE],
        rtol=1e-12,
        atol=0.0,
    )


POSITION = Noise(stddev=0.1, bias_stddev=0.3, dynamic_bias_stddev=0.1, dynamic_bias_correlation_time=10.0)
VELOCITY = Noise(stddev=0.02)


@pytest.mark.requirement("ALT-5")
def test_unadjustable_arrays_are_errors() -> None:
    base = example_world(("alt", Altimeter()), ("mag", Magnetometer()))
    sim = ns.live(base)
    with pytest.raises(
        SensorError, match="adjustable array of an altimeter: vertical_position; must be vertical_reference"
    ):
        sim.sensor(NAME).set("vertical_position", 1.0)
    with pytest.raises(SensorError, match="reference of an altimeter"):
        sim.sensor(NAME).set(REFERENCE, math.nan)
    with pytest.raises(SimulationError, match=r"'field' of robot::arm::mag: 1\.0; cannot be set: a sensor"):
        sim.sensor("robot::arm::mag").set("field", 1.0)


def make_climbing_state(time: float) -> State:
    """Return a state that oscillates between -2 and 2 m with a period of 1.5 s."""
    angle = 2.0 * math.pi * time / 1.5
    return State(Pose((0.0, 0.0, 2.0 * math.sin(angle))), (0.0, 0.0, 4.0 * math.pi / 1.5 * math.cos(angle)))


@pytest.mark.requirement("ALT-1", "LIV-1")
@pytest.mark.parametrize("rate", [3.0, 40.0, 200.0, 1700.0])
def test_driven_robot_updates_its_reference(rate: float) -> None:
    """The robot knows its last step only; the reference was set many steps ago."""
    period = 0.7043  # so that it is set within a step, between samples of a fast sensor
    sim = ns.live(
        make_world(Altimeter(reference=ZeroReference(period)), rate=rate, step=0.01),
        driven={"robot": make_climbing_state(0.0)},
    )
    parts = []
    for n in range(300):
        step = sim.step({"robot": make_climbing_state(n / 100.0)})
        parts += [step.readings[NAME]] if NAME in step.readings else []
    time = np.concatenate([part.time for part in parts])
    reference = np.concatenate([part[REFERENCE] for part in parts])
    z = np.concatenate([part["vertical_position"] for part in parts]) + reference
    samples = period * rate
    for k in range(time.size):
        taken = math.ceil(math.floor(k / samples + 1e-9) * samples - 1e-9)
        assert abs(reference[k] - z[taken]) < 1e-12
        assert time[k] - time[taken] < period


def test_cached_motion_returns_past_states() -> None:
    driven = DrivenMotion(make_climbing_state(0.0))
    recalled = CachedMotion(driven)
    assert recalled.end == math.inf
    captured = []
    for n in range(6):
        driven.push(n / 10.0, make_climbing_state(n / 10.0))
        captured.append(recalled.at(np.array([n / 10.0])).position_w[0, 2])
    assert recalled.at(np.array([0.3])).position_w[0, 2] == captured[3]
    with pytest.raises(ns.NavsenseError, match="must be inside the last step"):
        recalled.at(np.array([0.1]))  # requested once, then four others
    with pytest.raises(ns.NavsenseError, match="must be inside the last step"):
        recalled.at(np.array([0.2, 0.3]))


@pytest.mark.requirement("ALT-1")
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (Altimeter(reference=12.5), "reference: 12.5 m"),
        (Altimeter(reference=ZeroReference(60.0)), "reference: initial height of the sensor and every 60 s"),
        (Altimeter(reference=12.5, classic=True), "reference: initial height of the sensor"),
    ],
)
def test_description_names_the_height_reference(spec: Altimeter, words: str) -> None:
    assert f"    {words}" in list(describe(make_world(spec)))

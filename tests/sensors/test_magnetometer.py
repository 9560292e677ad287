"""The magnetometer equals the documented cases and values of Gazebo's library."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from navsense.core.errors import FieldError, SensorError
from navsense.core.pose import Pose, from_rpy
from navsense.core.ticks import Ticks
from navsense.core.typing import FloatArray, Vector
from navsense.environment.base import DEFAULT_MAGNETIC_FIELD, Environment, UniformField
from navsense.environment.signal import Signal
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors import Magnetometer
from navsense.testing import example_motion

ONE = Ticks(np.zeros(1, dtype=np.int64), 1.0)


def read_field(field: Vector, rpy: Vector) -> FloatArray:
    environment = Environment(magnetic_field=UniformField(field))
    return Magnetometer().ideal(Stationary(Pose((1.0, 2.0, 3.0), from_rpy(*rpy))), environment, ONE)["field"][0]


@pytest.mark.requirement("MAG-6", "MAG-1")
def test_aligned_magnetometer_measures_the_world_field() -> None:
    assert np.array_equal(read_field((1.0, 2.0, -4.0), (0.0, 0.0, 0.0)), [1.0, 2.0, -4.0])


@pytest.mark.requirement("MAG-6", "MAG-1")
def test_rotated_magnetometer_measures_the_field_in_the_body_frame() -> None:
    assert np.allclose(read_field((1.0, 2.0, -4.0), (0.0, 0.0, math.pi / 2)), [2.0, -1.0, -4.0], atol=1e-15, rtol=0.0)


@pytest.mark.requirement("MAG-1")
def test_readings_equal_the_gazebo_library() -> None:
    """The values are from gz-sensors (main) with field (1, 2, -4) and rpy (0, 3.14, 1.57)."""
    expected = [-1.994422543354379, -0.9984070295103683, 4.0031815000052315]
    assert np.allclose(read_field((1.0, 2.0, -4.0), (0.0, 3.14, 1.57)), expected, rtol=0.0, atol=1e-14)


@pytest.mark.requirement("MAG-1")
def test_moving_sensor_equals_scipy_rotations() -> None:
    ticks = Ticks(np.arange(500), 100.0)
    ours = Magnetometer().ideal(example_motion(), Environment(), ticks)["field"]
    quaternions = example_motion().at(ticks.time).rotation_wb
    theirs = Rotation.from_quat(quaternions, scalar_first=True).inv().apply(DEFAULT_MAGNETIC_FIELD)
    assert np.allclose(ours, theirs, rtol=0.0, atol=1e-19)


@pytest.mark.requirement("MAG-2")
def test_every_axis_has_separate_noise_after_the_rotation() -> None:
    count = 4000
    sheet = Magnetometer(Noise(stddev=1e-7), Noise(), Noise(mean=3e-7))
    field = np.tile([1e-5, 2e-5, -4e-5], (count, 1))
    reading = sheet.apply(np.arange(count) / 100.0, field, seed=1)
    off = reading["field"] - field
    assert abs(off[:, 0].std() / 1e-7 - 1.0) < 4.892 / math.sqrt(2.0 * count)
    assert not off[:, 1].any()
    assert np.allclose(off[:, 2], 3e-7, rtol=1e-9, atol=0.0)


@pytest.mark.requirement("MAG-2", "NOI-2")
def test_axes_with_equal_noise_have_independent_draws() -> None:
    noise = Noise(stddev=1e-7)
    field = np.zeros((5000, 3))
    off = Magnetometer(noise, noise, noise).apply(np.arange(5000) / 100.0, field, seed=1)["field"]
    assert np.abs(np.corrcoef(off.T) - np.eye(3)).max() < 5.2 / math.sqrt(5000)


@pytest.mark.requirement("MAG-4")
def test_world_supplies_the_field() -> None:
    assert Environment().magnetic_field.at(np.zeros((1, 3)), np.zeros(1)).tolist() == [
        [5.5645e-6, 22.8758e-6, -42.3884e-6]
    ]


HARD, MOTOR = (3e-6, -2e-6, 4e-6), (2e-7, -3e-7, 4e-7)
SOFT = (1.1, 0.05, -0.03, 0.04, 0.95, 0.02, -0.06, 0.07, 0.9)
TIME = np.arange(400) / 100.0
FIELD = np.random.default_rng(4).normal(0.0, 3e-5, (400, 3))


@pytest.mark.requirement("MAG-7:iron")
def test_hard_iron_is_added_and_soft_iron_multiplies() -> None:
    hard = Magnetometer(hard_iron=HARD).apply(TIME, FIELD, seed=1)["field"]
    assert np.allclose(hard, FIELD + HARD, rtol=0.0, atol=1e-20)
    soft = Magnetometer(soft_iron=SOFT).apply(TIME, FIELD, seed=1)["field"]
    assert np.allclose(soft, FIELD @ np.array(SOFT).reshape(3, 3).T, rtol=0.0, atol=1e-19)
    both = Magnetometer(hard_iron=HARD, soft_iron=SOFT).apply(TIME, FIELD, seed=1)
    assert np.allclose(both["field"], soft + HARD, rtol=0.0, atol=1e-19)
    assert np.array_equal(both.ideal["field"], FIELD)


@pytest.mark.requirement("MAG-7:iron")
def test_readings_lie_on_an_ellipsoid_about_the_hard_iron() -> None:
    """The inverse soft iron maps readings to a sphere with the radius of the field, as calibration assumes."""
    ticks = Ticks(np.arange(300), 100.0)
    sheet = Magnetometer(hard_iron=HARD, soft_iron=SOFT)
    ideal = sheet.ideal(example_motion(), Environment(), ticks)
    _, measured = sheet.measure(sheet.init(np.empty(0)), ticks, ideal, np.empty((0, 300)))
    sphere = np.linalg.solve(np.array(SOFT).reshape(3, 3), (measured.arrays["field"] - HARD).T)
    size = math.hypot(*DEFAULT_MAGNETIC_FIELD)
    assert np.allclose(np.linalg.norm(sphere, axis=0), size, rtol=1e-13, atol=0.0)
    assert np.ptp(np.linalg.norm(measured.arrays["field"], axis=1)) > 0.05 * size


@pytest.mark.requirement("MAG-7:motor_current")
def test_motor_current_changes_the_field() -> None:
    """The field is T/A times the world signal (A) at the time of each sample, without soft iron."""
    current = Signal((0.0, 2.0), (1.0, 9.0))
    world = Environment(signals={"motor_current": current})
    sheet = Magnetometer(field_per_ampere=MOTOR, soft_iron=SOFT, hard_iron=HARD)
    ticks = Ticks(np.arange(300), 100.0)
    ideal = sheet.ideal(example_motion(), world, ticks)
    _, measured = sheet.measure(sheet.init(np.empty(0)), ticks, ideal, np.empty((0, 300)))
    amperes = np.minimum(1.0 + 4.0 * ticks.time, 9.0)
    expected = ideal["field"] @ np.array(SOFT).reshape(3, 3).T + HARD + amperes[:, None] * MOTOR
    assert np.allclose(measured.arrays["field"], expected, rtol=0.0, atol=1e-19)
    plain = Magnetometer().ideal(example_motion(), world, ticks)
    assert np.array_equal(ideal["field"], plain["field"])
    assert "motor_current" not in plain


@pytest.mark.requirement("MAG-7:motor_current")
def test_missing_motor_current_signal_is_an_error() -> None:
    sheet = Magnetometer(field_per_ampere=MOTOR)
    with pytest.raises(FieldError, match="signal: motor_current"):
        sheet.ideal(Stationary(Pose()), Environment(), ONE)
    with pytest.raises(SensorError, match="motor_current; must be given: the field_per_ampere"):
        sheet.apply(TIME, FIELD, seed=1)
    with pytest.raises(SensorError, match=r"motor_current: shape \(3,\); must be \(400,\)"):
        sheet.apply(TIME, FIELD, seed=1, motor_current=np.zeros(3))
    arguments = sheet.apply(TIME, FIELD, seed=1, motor_current=np.full(400, 2.0))["field"]
    assert np.allclose(arguments, FIELD + 2.0 * np.array(MOTOR), rtol=0.0, atol=1e-20)
    assert np.array_equal(Magnetometer().apply(TIME, FIELD, seed=1)["field"], FIELD)


@pytest.mark.requirement("MAG-7:iron", "MAG-2")
def test_iron_acts_before_scale_factor_and_noise() -> None:
    noise = Noise(scale_factor=0.5, mean=1e-6)
    reading = Magnetometer(noise, noise, noise, hard_iron=HARD, soft_iron=SOFT).apply(TIME, FIELD, seed=1)["field"]
    inner = FIELD @ np.array(SOFT).reshape(3, 3).T + HARD
    assert np.allclose(reading, 1.5 * inner + 1e-6, rtol=0.0, atol=1e-19)


@pytest.mark.requirement("MAG-7")
def test_neutral_spec_has_no_iron() -> None:
    assert Magnetometer.example_spec().without_errors() == Magnetometer()


@pytest.mark.requirement("MAG-7")
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hard_iron", (0.0, 0.0), "hard_iron: .* must be 3 finite numbers"),
        ("hard_iron", (0.0, math.nan, 0.0), "must be 3 finite numbers"),
        ("soft_iron", (1.0,) * 8, "soft_iron: .* must be 9 finite numbers"),
        ("field_per_ampere", 1e-6, "field_per_ampere: .* must be 3 finite numbers"),
    ],
)
def test_invalid_iron_is_an_error(field: str, value: object, message: str) -> None:
    with pytest.raises(SensorError, match=message):
        Magnetometer(**{field: value})

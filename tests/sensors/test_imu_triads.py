"""Cross-axis errors of an IMU and their order; earth-rate resolution of gyroscopes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from navsense.core.errors import SensorError
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.ticks import Ticks
from navsense.environment.base import Environment
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors import Imu
from navsense.sensors.imu import resolves_earth_rate
from navsense.sensors.user_arrays import simulate_readings
from navsense.testing import example_motion

TIME = np.arange(300) / 100.0
OMEGA, FORCE = np.random.default_rng(9).normal(0.0, 1.0, (2, 300, 3))
ANGLES = (0.01, -0.02, 0.03, 0.015, -0.025, 0.035)
LEAK = np.array([[0.0, 0.01, -0.02], [0.03, 0.0, 0.015], [-0.025, 0.035, 0.0]])
PULL = tuple(1e-3 * k for k in range(1, 10))


@pytest.mark.requirement("NOI-6:misalignment", "IMU-1")
def test_misalignment_matrix_has_six_angles() -> None:
    gyro = Imu(angular_velocity_misalignment=ANGLES).apply(TIME, OMEGA, FORCE, seed=1)
    assert np.allclose(gyro["angular_velocity"], OMEGA @ (np.eye(3) + LEAK).T, rtol=0.0, atol=1e-15)
    assert np.array_equal(gyro["linear_acceleration"], FORCE)
    force = Imu(linear_acceleration_misalignment=ANGLES).apply(TIME, OMEGA, FORCE, seed=1)
    assert np.allclose(force["linear_acceleration"], FORCE @ (np.eye(3) + LEAK).T, rtol=0.0, atol=1e-15)
    assert np.array_equal(force["angular_velocity"], OMEGA)


@pytest.mark.requirement("NOI-6:misalignment")
def test_small_rotation_of_a_triad_equals_misalignment() -> None:
    """Antisymmetric angles rotate the triad, to second order. A level triad then measures sin(angle)."""
    x, y, z = 2e-4, -3e-4, 1e-4
    sheet = Imu(linear_acceleration_misalignment=(z, -y, -z, x, y, -x))
    still = Stationary(Pose())
    ticks = Ticks(np.arange(5), 10.0)
    _, measured = sheet.measure(
        sheet.init(np.empty(0)), ticks, sheet.ideal(still, Environment(), ticks), np.empty((0, 5))
    )
    turned = Rotation.from_rotvec([x, y, z]).inv().apply([0.0, 0.0, 9.8])
    assert np.allclose(measured.arrays["linear_acceleration"], turned, rtol=0.0, atol=9.8 * (4e-4) ** 2)
    assert measured.arrays["linear_acceleration"][0, 0] == pytest.approx(9.8 * math.sin(-y), rel=1e-3, abs=0.0)


@pytest.mark.requirement("NOI-6:g_sensitivity")
def test_g_sensitivity_changes_the_angular_velocity() -> None:
    """On a level table, a gyroscope with 0.1 deg/s/g along its axis has exactly this error."""
    reading = Imu(g_sensitivity=PULL).apply(TIME, OMEGA, FORCE, seed=1)
    expected = OMEGA + FORCE @ np.array(PULL).reshape(3, 3).T
    assert np.allclose(reading["angular_velocity"], expected, rtol=0.0, atol=1e-15)
    assert np.array_equal(reading["linear_acceleration"], FORCE)
    printed = math.radians(0.1) / 9.80665
    level = Imu(g_sensitivity=(0.0,) * 8 + (printed,))
    table = level.apply(TIME, np.zeros((300, 3)), np.tile([0.0, 0.0, 9.80665], (300, 1)), seed=1)
    assert np.allclose(table["angular_velocity"], [0.0, 0.0, math.radians(0.1)], rtol=0.0, atol=1e-17)


@pytest.mark.requirement("NOI-6:misalignment", "NOI-6:g_sensitivity")
def test_cross_axis_errors_act_before_scale_factor_and_noise() -> None:
    noise = Noise(scale_factor=0.5, mean=0.25, precision=0.125)
    sheet = Imu(*(noise,) * 6, angular_velocity_misalignment=ANGLES, g_sensitivity=PULL)
    reading = sheet.apply(TIME, OMEGA, FORCE, seed=1)["angular_velocity"]
    inner = OMEGA @ (np.eye(3) + LEAK).T + FORCE @ np.array(PULL).reshape(3, 3).T
    steps = (1.5 * inner + 0.25) / 0.125
    assert np.array_equal(reading, 0.125 * np.copysign(np.floor(np.abs(steps) + 0.5), steps))


@pytest.mark.requirement("NOI-6:misalignment")
def test_nan_in_one_triad_does_not_affect_the_other() -> None:
    force = FORCE.copy()
    force[7] = math.nan
    sheet = Imu(linear_acceleration_misalignment=ANGLES, angular_velocity_misalignment=ANGLES)
    sheet, arguments = replace(sheet, orientation=False), {"angular_velocity": OMEGA, "linear_acceleration": force}
    reading = simulate_readings(sheet, TIME, arguments, seed=1, require_finite=False)
    assert np.isfinite(reading["angular_velocity"]).all()
    assert np.isnan(reading["linear_acceleration"]).sum() == 3
    leaky = replace(sheet, g_sensitivity=(0.0, 1e-3, *(0.0,) * 7))
    seen = simulate_readings(leaky, TIME, arguments, seed=1, require_finite=False)
    assert np.isnan(seen["angular_velocity"]).sum() == 1


@pytest.mark.requirement("NOI-6")
def test_ideal_values_have_no_cross_axis_errors() -> None:
    ticks = Ticks(np.arange(20), 100.0)
    sheet = replace(Imu.example_spec(), averaged=False, earth_rotation=False)
    surroundings = Environment(origin=Origin(0.8, 0.3))
    plain = Imu(reference=sheet.reference).ideal(example_motion(), surroundings, ticks)
    warmed = replace(sheet, **{name: Noise() for name in list_channel_names()}).ideal(
        example_motion(), surroundings, ticks
    )
    assert warmed.keys() == plain.keys()
    assert all(np.array_equal(warmed[name], plain[name]) for name in plain)


def list_channel_names() -> list[str]:
    return [f"{triad}_{axis}" for triad in ("angular_velocity", "linear_acceleration") for axis in "xyz"]


@pytest.mark.requirement("NOI-6", "IMU-1")
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("angular_velocity_misalignment", (0.0,) * 5, r"angular_velocity_misalignment \(rad\): .* must be 6 finite"),
        ("linear_acceleration_misalignment", (0.0,) * 5 + (1.0,), "of absolute value below 1"),
        ("linear_acceleration_misalignment", (math.nan,) * 6, "must be 6 finite numbers"),
        ("angular_velocity_misalignment", 0.1, "must be 6 finite numbers"),
        ("g_sensitivity", ((0.0,) * 3,) * 3, "must be 9 finite numbers"),
        ("g_sensitivity", ("a",) * 9, "must be 9 finite numbers"),
    ],
)
def test_invalid_cross_axis_errors_are_an_error(field: str, value: object, message: str) -> None:
    with pytest.raises(SensorError, match=message):
        Imu(**{field: value})


@pytest.mark.requirement("IMU-4", "DOO-1")
@pytest.mark.parametrize("field", ["averaged", "earth_rotation"])
def test_arrays_of_the_user_are_unchanged(field: str) -> None:
    sheet = Imu(**{field: True})
    with pytest.raises(SensorError, match=f"{field}: True; computes ideal values from a motion;") as caught:
        sheet.apply(TIME, OMEGA, FORCE, seed=1)
    assert f"{field}=False" in caught.value.remedy
    assert np.array_equal(replace(sheet, **{field: False}).apply(TIME, OMEGA, FORCE, seed=1)["angular_velocity"], OMEGA)


@pytest.mark.requirement("IMU-4")
def test_earth_rate_resolution_of_gyroscopes() -> None:
    """The earth rate of 15.04 deg/h is compared to all errors of the best axis over 100 s."""
    hour = math.radians(1.0) / 3600.0
    assert not resolves_earth_rate(Imu(), 100.0)  # an ideal instrument without a grade
    for noise, tells in (
        (Noise(bias_stddev=14.0 * hour), True),
        (Noise(bias_stddev=16.0 * hour), False),
        (Noise(bias_instability=10.0 * hour, bias_mean=-10.0 * hour), True),
        (Noise(bias_instability=11.0 * hour, bias_mean=-11.0 * hour), False),
        (Noise(noise_density=140.0 * hour), True),
        (Noise(noise_density=160.0 * hour), False),
        (Noise(stddev=1400.0 * hour), True),
        (Noise(stddev=1600.0 * hour), False),
        (Noise(dynamic_bias_stddev=14.0 * hour, dynamic_bias_correlation_time=2.0), True),
        (Noise(dynamic_bias_stddev=14.0 * hour, dynamic_bias_correlation_time=3.0), False),
    ):
        assert resolves_earth_rate(Imu(noise, noise, noise), 100.0) is tells, noise
    coarse, fine = Noise(bias_stddev=1.0), Noise(bias_stddev=hour)
    assert resolves_earth_rate(Imu(coarse, coarse, fine), 100.0)
    assert not resolves_earth_rate(Imu(linear_acceleration_x=fine), 100.0)


@pytest.mark.requirement("IMU-3", "IMU-4")
@pytest.mark.parametrize(
    ("part", "tells"), [("HG9900", True), ("STIM300", True), ("MPU-6000", False), ("BMI088", False)]
)
def test_earth_rate_resolution_of_parts(part: str, tells: bool) -> None:
    assert resolves_earth_rate(Imu.from_part(part), 100.0) is tells

"""`apply` adds the errors of a sensor to arrays of the user."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from navsense.analysis.bench import replace_noise
from navsense.clock import Clock, compute_error
from navsense.core.errors import SensorError, SimulationError
from navsense.messages.kalibr import format_kalibr
from navsense.noise.specification import Noise
from navsense.sensors import (
    SENSORS,
    AirPressure,
    Altimeter,
    Depth,
    Dvl,
    Imu,
    Magnetometer,
    NavSat,
    Range,
    Sensor,
    TrackErrors,
)

TIME = np.arange(1000) / 200.0
ZEROS = np.zeros((1000, 3))


@pytest.mark.requirement("DOO-1")
def test_apply_adds_errors_and_keeps_the_input() -> None:
    gyro = Noise(stddev=1e-3, bias_mean=0.01, dynamic_bias_stddev=1e-4, dynamic_bias_correlation_time=10.0)
    sheet = Imu(gyro, gyro, gyro)
    rate, force = np.full((1000, 3), 0.5), np.full((1000, 3), 9.8)
    reading = sheet.apply(TIME, rate, force, seed=7)
    assert np.array_equal(rate, np.full((1000, 3), 0.5))
    assert np.array_equal(reading.ideal["angular_velocity"], rate)
    assert np.array_equal(reading["linear_acceleration"], force)
    white = reading["angular_velocity"] - rate - reading.bias["angular_velocity"]
    assert abs(white.std() / 1e-3 - 1.0) < 4.892 / math.sqrt(2.0 * white.size)
    again = sheet.apply(TIME, rate, force, seed=7)
    assert again["angular_velocity"].tobytes() == reading["angular_velocity"].tobytes()


@pytest.mark.compiled
@pytest.mark.requirement("DOO-1", "NOI-3")
def test_drift_is_exact_for_uneven_steps() -> None:
    """Over many runs, the drift has its stationary variance and correlation after uneven steps."""
    noise = Noise(dynamic_bias_stddev=0.3, dynamic_bias_correlation_time=2.0)
    time = np.array([3.0, 3.001, 4.5, 5.0])
    runs = 3000
    rows = np.array(
        [Magnetometer(noise).apply(time, np.zeros((4, 3)), seed=1, run=run)["field"][:, 0] for run in range(runs)]
    )
    declared = 0.3**2 * 2.0 / 2.0
    assert np.abs(rows.var(axis=0) / declared - 1.0).max() < 5.2 * math.sqrt(2.0 / runs)
    for first, second in ((0, 1), (1, 2), (2, 3), (0, 3)):
        expected = math.exp(-(time[second] - time[first]) / 2.0)
        r = float(np.corrcoef(rows[:, first], rows[:, second])[0, 1])
        assert abs(math.atanh(r) - math.atanh(expected)) < 5.2 / math.sqrt(runs - 3)


@pytest.mark.requirement("DOO-1")
@pytest.mark.parametrize(
    ("time", "field", "message"),
    [
        ([0.0, 1.0, 0.5], np.zeros((3, 3)), "time of row 2: 0.5; must be after 1.0 s"),
        ([0.0, 0.0], np.zeros((2, 3)), "time of row 1"),
        ([0.0, math.nan], np.zeros((2, 3)), "must be finite"),
        ([0.0, 1.0], np.zeros((3, 3)), r"shape \(3, 3\); must be \(2, 3\)"),
        ([0.0, 1.0], np.zeros(2), r"must be \(2, 3\)"),
        ([], np.zeros((0, 3)), r"must be \(n,\) with n >= 1"),
        ([0.0, 1e10], np.zeros((2, 3)), "must span at most 6e.09 s"),
        ([0.0, 1.0], np.zeros((2, 3), dtype=complex), "must be an array of real numbers"),
        (["a", "b"], np.zeros((2, 3)), "must be an array of real numbers"),
        ([[0.0], [0.0, 1.0]], np.zeros((2, 3)), "time: "),
    ],
)
def test_invalid_arrays_are_an_error(time: list[float], field: np.ndarray, message: str) -> None:
    with pytest.raises(SensorError, match=message):
        Magnetometer().apply(time, field, seed=1)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.requirement("DOO-1", "CLK-5")
def test_given_arrays_are_stamped_by_a_clock() -> None:
    clock = Clock(
        "bench::clock", Noise(mean=1e-3, stddev=1e-5, dynamic_bias_stddev=1e-4, dynamic_bias_correlation_time=5.0)
    )
    reading = Magnetometer().apply(TIME, ZEROS, seed=3, run=2, clock=clock)
    jitter = reading.clock_error - compute_error(clock, TIME, seed=3, run=2) - 1e-3
    assert abs(jitter.std() / 1e-5 - 1.0) < 4.892 / math.sqrt(2.0 * TIME.size)
    assert np.array_equal(
        reading.stamp - reading.true_stamp, np.rint((TIME + reading.clock_error) * 1e9) - np.rint(TIME * 1e9)
    )


@pytest.mark.requirement("DOO-1")
def test_imu_passes_the_orientation_unchanged() -> None:
    attitude = np.tile([0.5, 0.5, -0.5, 0.5], (1000, 1))
    reading = Imu().apply(TIME, ZEROS, ZEROS, attitude, seed=1)
    assert np.array_equal(reading["orientation"], attitude)
    attitude[7] = 0.0
    with pytest.raises(SensorError, match="orientation of row 7"):
        Imu().apply(TIME, ZEROS, ZEROS, attitude, seed=1)
    with pytest.raises(SensorError, match="reference"):
        Imu(reference=(0.0, 0.0, 0.0, 0.0))


def test_reading_keeps_the_given_times() -> None:
    time = TIME.copy()
    reading = Magnetometer().apply(time, ZEROS, seed=1)
    time[:] = 0.0
    assert np.array_equal(reading.time, TIME)


@pytest.mark.parametrize("run", [-1, 1.5, "1", True, None, 2**63])
def test_invalid_run_is_an_error(run: object) -> None:
    with pytest.raises(SimulationError, match="run"):
        Magnetometer().apply(TIME, ZEROS, seed=1, run=run)  # type: ignore[arg-type]  # what a user may hand over


HEIGHTS = 10.0 + np.sin(TIME)

OWN = {
    Imu: (ZEROS, ZEROS),
    Magnetometer: (ZEROS,),
    Altimeter: (HEIGHTS, np.cos(TIME)),
    AirPressure: (1e5 + HEIGHTS,),
    NavSat: (0.8 + 0.0 * TIME, 0.3 + 0.0 * TIME, HEIGHTS, ZEROS),
    Depth: (1e5 + 1e4 * HEIGHTS,),
    Range: (HEIGHTS,),
    Dvl: (ZEROS + (1.0, 0.2, 0.0),),
}
"""Arrays for each sensor with `apply`."""


def test_every_sensor_with_apply_is_tested() -> None:
    assert {kind for kind in SENSORS if hasattr(kind, "apply")} == OWN.keys()


def make_noisy_spec(kind: type[Sensor]) -> Any:
    """Return a spec with turn-on bias, drift and white noise in every noise."""
    noise = Noise(stddev=0.1, bias_stddev=0.2, dynamic_bias_stddev=0.3, dynamic_bias_correlation_time=5.0)
    if kind is Dvl:
        return Dvl(bottom=TrackErrors(noise), range_noise=noise)
    sheet: Any = replace_noise(kind(), noise)
    return replace(sheet, maximum_range=100.0) if kind is Range else sheet


@pytest.mark.requirement("DOO-1", "NOI-2")
@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.__name__)
def test_default_run_is_run_0_of_the_seed(kind: type[Sensor]) -> None:
    """It equals run 0 bitwise, including the clock. Another run, seed or name changes every array with noise."""
    sheet, clock = make_noisy_spec(kind), Clock("bench::clock", Noise(stddev=1e-5, bias_stddev=1e-3))
    reference = sheet.apply(TIME, *OWN[kind], seed=11, clock=clock)
    same = sheet.apply(TIME, *OWN[kind], seed=11, run=0, clock=clock)
    assert reference.arrays.keys() == same.arrays.keys()
    assert reference.bias.keys() == same.bias.keys()
    for name, array in {
        **reference.arrays,
        **{f"error {name}": array for name, array in reference.bias.items()},
    }.items():
        other = same.bias[name.removeprefix("error ")] if name.startswith("error ") else same[name]
        assert array.tobytes() == other.tobytes(), name
    assert reference.clock_error.tobytes() == same.clock_error.tobytes()
    assert reference.stamp.tobytes() == same.stamp.tobytes()
    for others in ({"seed": 11, "run": 1}, {"seed": 12}, {"seed": 11, "name": "second"}):
        other = sheet.apply(TIME, *OWN[kind], **others, clock=clock)
        for name in sheet.noise():
            if np.isfinite(reference[name]).any():
                assert not np.array_equal(reference[name], other[name], equal_nan=True), (name, others)


def test_numpy_integer_is_accepted_as_integer() -> None:
    noise = Noise(stddev=1.0)
    first, other = (Magnetometer(noise).apply(TIME, ZEROS, seed=1, run=run)["field"] for run in (3, np.int64(3)))
    assert np.array_equal(first, other)


@pytest.mark.requirement("DOO-1")
def test_spec_has_the_parameters_of_a_filter() -> None:
    """Kalibr users declare the ADIS16448 with densities 1.6968e-4 and 2.0e-3 at 200 Hz."""
    gyro = Noise(
        stddev=1.6968e-4 * math.sqrt(200.0), dynamic_bias_stddev=1.9393e-5, dynamic_bias_correlation_time=1000.0
    )
    accelerometer = Noise(
        stddev=2.0e-3 * math.sqrt(200.0), dynamic_bias_stddev=3.0e-3, dynamic_bias_correlation_time=300.0
    )
    text = format_kalibr(Imu(gyro, gyro, gyro, accelerometer, accelerometer, accelerometer), 200.0, "/imu0")
    values = dict(line.split(": ") for line in text.splitlines() if not line.startswith("#"))
    assert float(values["gyroscope_noise_density"]) == pytest.approx(1.6968e-4, rel=1e-12, abs=0.0)
    assert float(values["gyroscope_random_walk"]) == pytest.approx(1.9393e-5, rel=1e-12, abs=0.0)
    assert float(values["accelerometer_noise_density"]) == pytest.approx(2.0e-3, rel=1e-12, abs=0.0)
    assert float(values["accelerometer_random_walk"]) == pytest.approx(3.0e-3, rel=1e-12, abs=0.0)
    assert values["rostopic"] == "/imu0"
    assert float(values["update_rate"]) == 200.0


@pytest.mark.requirement("NOI-1")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stddev": -0.2}, "stddev: -0.2; must be >= 0"),
        ({"stddev": 1e300}, "stddev: 1e.300; must be of absolute value below 1e.100"),
        ({"noise_density": "x"}, "noise_density: 'x'; must be a number"),
        ({"mean": None}, "mean: None; must be a number"),
        ({"mean": 10**400}, "must be of absolute value below 1e.100"),
        ({"mean": math.nan}, "mean: nan; must be a finite number"),
        ({"bias_stddev": math.inf}, "bias_stddev: inf; must be a finite number"),
        ({"minimum": 1.0, "maximum": 0.0}, "minimum: 1.0; must be below the maximum 0.0"),
        ({"dynamic_bias_stddev": 1.0}, "dynamic_bias_correlation_time: 0.0; must be > 0"),
    ],
)
def test_impossible_noise_is_an_error(fields: dict[str, object], message: str) -> None:
    with pytest.raises(SensorError, match=message):
        Noise(**fields)  # type: ignore[arg-type]  # floats all

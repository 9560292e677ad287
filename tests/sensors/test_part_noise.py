"""Parts as datasheets: conversions equal manual results, and every part can be simulated."""

from __future__ import annotations

import math
from typing import Any

import allantools
import numpy as np
import pytest

from navsense.core.errors import SensorError, UnknownNameError
from navsense.messages.kalibr import format_kalibr
from navsense.sensors import AirPressure, Depth, Dvl, Imu, Magnetometer, catalogue
from navsense.sensors.catalogue.part_noise import make_noise

KINDS: dict[str, type[Imu | Magnetometer | AirPressure | Depth | Dvl]] = {
    "imu": Imu,
    "magnetometer": Magnetometer,
    "air_pressure": AirPressure,
    "depth": Depth,
    "dvl": Dvl,
}


@pytest.mark.requirement("IMU-3", "NOI-6")
def test_density_per_root_hertz_is_one_sided_and_random_walk_two_sided() -> None:
    """The ADIS16460 datasheet gives 0.004 deg/s/sqrt(Hz) and 0.17 deg/sqrt(h), which are the same noise."""
    from_density = make_noise(catalogue.load_part("icm-42688-p"), "angular_velocity")[0].noise_density
    assert math.isclose(from_density, math.radians(0.0028) / math.sqrt(2.0), rel_tol=1e-12)
    from_walk = make_noise(catalogue.load_part("stim300"), "angular_velocity")[0].noise_density
    assert math.isclose(from_walk, math.radians(0.15) / 60.0, rel_tol=1e-12)


@pytest.mark.requirement("NOI-6")
def test_maximum_is_three_deviations_and_typical_value_is_one() -> None:
    noise = make_noise(catalogue.load_part("bmi088"), "angular_velocity")[0]
    assert math.isclose(noise.bias_stddev, math.radians(1.0))
    assert math.isclose(noise.scale_factor_stddev, 0.01)
    assert math.isclose(noise.maximum, math.radians(2000.0))
    assert math.isclose(noise.precision, math.radians(1.0 / 16.384))
    assert noise.temperature_coefficient == 0.0
    warm = make_noise(catalogue.load_part("bmi088"), "linear_acceleration", temperature=True)[0]
    assert math.isclose(warm.temperature_coefficient, 0.2e-3 * 9.80665 / 3.0)


@pytest.mark.requirement("IMU-3", "DOO-1")
@pytest.mark.parametrize("name", catalogue.list_parts())
def test_every_part_can_be_applied(name: str) -> None:
    part = catalogue.load_part(name)
    arguments = {"stddev": 0.01} if "bottom_track.noise_rms" in part.missing_values else {}
    sheet = KINDS[part.sensor].from_part(name, **arguments)
    time = np.arange(200) / 100.0
    if isinstance(sheet, Imu):
        reading = sheet.apply(time, np.zeros((200, 3)), np.tile([0.0, 0.0, 9.8], (200, 1)), seed=7)
    elif isinstance(sheet, Magnetometer):
        reading = sheet.apply(time, np.tile([2e-5, 0.0, -4e-5], (200, 1)), seed=7)
    elif isinstance(sheet, Dvl):
        reading = sheet.apply(time, np.tile([1.0, 0.2, -0.1], (200, 1)), seed=7)
    else:
        reading = sheet.apply(time, np.full(200, 101325.0), seed=7)
    erring = ("velocity", "beam_velocity") if isinstance(sheet, Dvl) else set(reading) - {"orientation"}
    for key in erring:
        values, true = (arrays[key][reading.emitted] for arrays in (reading, reading.ideal))
        assert values.size
        assert np.isfinite(values).all()
        assert not np.array_equal(values, true), "a part has errors"


@pytest.mark.compiled
@pytest.mark.requirement("IMU-3", "NOI-6")
def test_allan_deviation_of_a_part_equals_its_datasheet() -> None:
    """allantools reads 0.15 deg/sqrt(h) for the STIM300 gyroscope at short times, averaged over runs."""
    rate, seconds, runs = 50.0, 400.0, 30
    time = np.arange(int(rate * seconds)) / rate
    still, up = np.zeros((time.size, 3)), np.tile([0.0, 0.0, 9.8], (time.size, 1))
    sheet, variances = Imu.from_part("stim300"), []
    for run in range(runs):
        values = sheet.apply(time, still, up, seed=5, run=run)["angular_velocity"]
        for axis in range(3):
            _, deviation, _, _ = allantools.oadev(values[:, axis], rate=rate, data_type="freq", taus=[1.0])
            variances.append(deviation[0] ** 2)
    # 5.5: Student's t with 89 degrees of freedom at a false-alarm rate of 1e-6; rounding and flicker add a little.
    mean, spread = np.mean(variances), np.std(variances, ddof=1) / math.sqrt(len(variances))
    noise = sheet.angular_velocity_x
    added = (0.664 * noise.bias_instability) ** 2 + noise.precision**2 / 12.0
    declared = (math.radians(0.15) / 60.0) ** 2
    assert declared - 5.5 * spread < mean < declared + 3.0 * added + 5.5 * spread


def test_part_of_another_sensor_type_is_an_error() -> None:
    with pytest.raises(SensorError, match="section of part rm3100"):
        Imu.from_part("rm3100")
    with pytest.raises(UnknownNameError):
        Magnetometer.from_part("nothing")
    wrong: tuple[Any, ...] = (None, 3, [])
    for name in wrong:
        with pytest.raises(UnknownNameError, match="must be the name of a part"):
            Imu.from_part(name)


@pytest.mark.requirement("DOO-1")
def test_kalibr_parameters_round_trip() -> None:
    """EuRoC's kalibr_imu_chain.yaml has 1.6968e-04, 1.9393e-05, 2.0e-3, 3.0e-3 for imu0."""
    written = dict(row.split(": ") for row in format_kalibr(Imu.from_part("euroc"), 200.0, "/imu0").splitlines()[1:])
    assert math.isclose(float(written["gyroscope_noise_density"]), 1.6968e-4)
    assert math.isclose(float(written["gyroscope_random_walk"]), 1.9393e-5)
    assert math.isclose(float(written["accelerometer_noise_density"]), 2.0e-3)
    assert math.isclose(float(written["accelerometer_random_walk"]), 3.0e-3)
    flickering = format_kalibr(Imu.from_part("stim300"), 200.0, "/imu0")
    assert "# gyroscope: bias instability B 3.64" in flickering

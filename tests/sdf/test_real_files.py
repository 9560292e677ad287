"""Third-party files load, or raise the error listed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from navsense import sdf
from navsense.core.errors import SdfError
from navsense.environment.base import UniformField
from navsense.noise.specification import Noise
from navsense.sensors import Imu

FUEL = "nothing is downloaded: get the model by `gz fuel download -u "

FILES: dict[str, int | str] = {
    "gz-sim/air_pressure.sdf": 1,
    "gz-sim/altimeter.sdf": 1,
    "gz-sim/altimeter_with_pose.sdf": 1,
    "gz-sim/dvl_world.sdf": FUEL,
    "gz-sim/flat_seabed.sdf": FUEL,
    "gz-sim/imu.sdf": 1,
    "gz-sim/imu_heading_deg.sdf": 5,
    "gz-sim/imu_named_frame.sdf": 5,
    "gz-sim/magnetometer.sdf": 1,
    "gz-sim/navsat.sdf": 1,
    "gz-sim/non_rendering_sensors.sdf": 4,
    "gz-sim/reset_sensors.sdf": 2,
    "gz-sim/sensors.sdf": 4,
    "sdformat-frames/include_with_interface_api_frame_semantics.sdf": "double_pendulum.toml; is not found; searched",
    "sdformat-frames/joint_child_frame.sdf": 0,
    "sdformat-frames/joint_nested_parent_child.sdf": 0,
    "sdformat-frames/joint_parent_model_frame.sdf": 0,
    "sdformat-frames/model_frame_attached_to.sdf": 0,
    "sdformat-frames/model_frame_attached_to_nested_model.sdf": 0,
    "sdformat-frames/model_frame_invalid_attached_to_cycle.sdf": "F1 -> F2 -> F1; frames must not depend",
    "sdformat-frames/model_frame_relative_to_joint.sdf": 0,
    "sdformat-frames/model_invalid_frame_relative_to.sdf": "cycle -> cycle; frames must not depend",
    "sdformat-frames/model_invalid_placement_frame.sdf": "link3; must name a link, joint, frame or model in model",
    "sdformat-frames/model_multi_nested_model.sdf": 0,
    "sdformat-frames/model_nested_model_relative_to.sdf": 0,
    "sdformat-frames/model_relative_to_nested_reference.sdf": 0,
    "sdformat-frames/nested_canonical_link.sdf": 0,
    "sdformat-frames/nested_model.sdf": 0,
    "sdformat-frames/nested_multiple_elements_error_world.sdf": "must be well-formed XML",
    "sdformat-frames/placement_frame.sdf": "test_model_with_frames; is not found; searched",
    "sdformat-frames/world_frame_attached_to.sdf": 0,
    "sdformat-frames/world_frame_invalid_attached_to_scope.sdf": "M2::M1::L1; must name a link",
    "sdformat-frames/world_frame_relative_to.sdf": 0,
    "sdformat-frames/world_joint_parent_frame.sdf": 0,
    "sdformat-frames/world_model_frame_same_name_1_6.sdf": 0,
    "sdformat-frames/world_nested_frame_attached_to.sdf": 0,
    "sdformat-frames/world_relative_to_nested_reference.sdf": 0,
}
"""File: number of simulated sensors, or a part of its error."""


def test_list_of_real_files_is_complete(shared_data: Path) -> None:
    found = {
        f"{folder}/{path.name}"
        for folder in ("gz-sim", "sdformat-frames")
        for path in (shared_data / folder).glob("*.sdf")
    }
    assert found == set(FILES)


@pytest.mark.parametrize("file", FILES)
def test_real_file_loads_as_listed(shared_data: Path, file: str) -> None:
    expected = FILES[file]
    path = shared_data / file
    if isinstance(expected, int):
        world = sdf.load(path)
        assert len(world.sensors) == expected
        assert world.models
        assert all(note.reason and note.where is not None for note in world.notes)
        return
    with pytest.raises(SdfError) as caught:
        sdf.load(path)
    assert any(expected in str(problem) for problem in caught.value.problems)
    assert all(problem.where is not None and problem.where.path == str(path) for problem in caught.value.problems)


@pytest.mark.requirement("MAG-3", "MAG-4")
def test_real_magnetometer_world_is_read(example_data: Path) -> None:
    world = sdf.load(example_data / "gz-sim" / "magnetometer.sdf")
    (sensor,) = world.sensors
    assert world.environment.magnetic_field == UniformField((0.94, 0.76, -0.12))
    assert sensor.name == "magnetometer_model::link::magnetometer_sensor"
    assert sensor.rate == 10.0


@pytest.mark.requirement("NOI-1", "IMU-1")
def test_real_imu_noise_is_read(example_data: Path) -> None:
    world = sdf.load(example_data / "gz-sim" / "non_rendering_sensors.sdf")
    (imu,) = (sensor.spec for sensor in world.sensors if isinstance(sensor.spec, Imu))

    def gaussian(mean: float, stddev: float, drift: float, time: float) -> Noise:
        return Noise(mean=mean, stddev=stddev, dynamic_bias_stddev=drift, dynamic_bias_correlation_time=time)

    force = (imu.linear_acceleration_x, imu.linear_acceleration_y, imu.linear_acceleration_z)
    assert force == (gaussian(0, 0.1, 0.2, 1), gaussian(1, 1.1, 1.2, 2), gaussian(2, 2.1, 2.2, 3))
    rate = (imu.angular_velocity_x, imu.angular_velocity_y, imu.angular_velocity_z)
    assert rate == (gaussian(3, 3.1, 4.2, 4), gaussian(4, 4.1, 5.2, 5), gaussian(5, 5.1, 6.2, 6))

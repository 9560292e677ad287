"""IMU readings as `sensor_msgs/msg/Imu`."""

from __future__ import annotations

from collections.abc import Mapping

from navsense.errors import SinkError
from navsense.messages.base import Part, clock_of, frame_of, variances
from navsense.messages.cdr import Message, layout, set_quaternion, set_stamp
from navsense.sensors.imu import Imu
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/Imu"


def message(sensor: MountedSensor, part: Part) -> Message:
    """Return how the readings (rad/s, m/s^2), the truth or the hidden errors of an IMU become messages.

    The covariances are the white noise of one sample on the diagonal; the first element of the orientation's is -1
    where there is no orientation, as ROS has it. The hidden errors have none. `SinkError` for a sheet of another kind.
    """
    spec = sensor.spec
    if not isinstance(spec, Imu):
        raise SinkError(f"sensor {sensor.name!r} says that it is an imu", type(spec).__name__, allowed="must be an Imu")
    clock = clock_of(sensor)
    oriented = spec.orientation and part != "bias"
    rates = variances(
        part, spec.angular_velocity_x.stddev, spec.angular_velocity_y.stddev, spec.angular_velocity_z.stddev
    )
    forces = variances(
        part, spec.linear_acceleration_x.stddev, spec.linear_acceleration_y.stddev, spec.linear_acceleration_z.stddev
    )

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        if oriented:
            set_quaternion(rows, "orientation", arrays["orientation"])
        else:
            rows["orientation.w"] = 1.0
            rows["orientation_covariance"][:, 0] = -1.0
        rows["angular_velocity"] = arrays["angular_velocity"]
        rows["linear_acceleration"] = arrays["linear_acceleration"]
        if any(rates):
            rows["angular_velocity_covariance"] = rates
        if any(forces):
            rows["linear_acceleration_covariance"] = forces

    return Message(TYPE, layout(TYPE, {"header.frame_id": frame_of(sensor)}), fill)

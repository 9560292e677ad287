"""IMU readings as `sensor_msgs/msg/Imu` and `gz.msgs.IMU`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navsense.errors import SinkError
from navsense.messages.base import Part, clock_of, frame_of, stamps, variances
from navsense.messages.cdr import Message, layout, quaternions_in, set_quaternion, set_stamp, set_vector
from navsense.messages.gz import doubles, float_v, header, nested, rows_of
from navsense.sensors.imu import Imu
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/Imu"
GZ_TYPE = "gz.msgs.IMU"


def message(sensor: MountedSensor, part: Part) -> Message:
    """Return how the readings (rad/s, m/s^2), the truth or the hidden errors of an IMU become messages.

    The covariances are the white noise of one sample on the diagonal; the first element of the orientation's is -1
    where there is no orientation, as ROS has it. The hidden errors have none. `SinkError` for a sheet of another kind.
    """
    spec = sheet_of(sensor)
    clock = clock_of(sensor)
    oriented = spec.orientation and part != "bias"
    rates, forces = covariances_of(spec, part, sensor.rate)

    same = {"angular_velocity_covariance": rates, "linear_acceleration_covariance": forces}
    if not oriented:
        same |= {"orientation": (0.0, 0.0, 0.0, 1.0), "orientation_covariance": (-1.0, *[0.0] * 8)}

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        if oriented:
            set_quaternion(rows, "orientation", arrays["orientation"])
        set_vector(rows, "angular_velocity", arrays["angular_velocity"])
        set_vector(rows, "linear_acceleration", arrays["linear_acceleration"])

    return Message(TYPE, layout(TYPE, {"header.frame_id": frame_of(sensor)}).holding(same), fill)


def sheet_of(sensor: MountedSensor) -> Imu:
    """Return the sensor's sheet. Raise `SinkError` where it is no IMU's."""
    if not isinstance(sensor.spec, Imu):
        kind = type(sensor.spec).__name__
        raise SinkError(f"sensor {sensor.name!r} says that it is an imu", kind, allowed="must be an Imu")
    return sensor.spec


def gz_message(
    stamp: int,
    frame: str,
    sequence: int,
    entity: str,
    orientation: Sequence[float] | None,
    angular_velocity: Sequence[float],
    linear_acceleration: Sequence[float],
    covariances: tuple[Sequence[float], Sequence[float]],
) -> bytes:
    """Return `gz.msgs.IMU`: orientation w x y z or None, rad/s, m/s^2, covariances (9,) of the two vectors."""
    out = nested(1, header(stamp, frame, sequence)) + (nested(2, entity.encode()) if entity else b"")
    if orientation is not None:
        w, x, y, z = orientation
        out += nested(3, doubles(2, (x, y, z, w)))
        out += nested(4, float_v((0.0,) * 9))
    out += nested(5, doubles(2, angular_velocity)) + nested(6, float_v(covariances[0]))
    return out + nested(7, doubles(2, linear_acceleration)) + nested(8, float_v(covariances[1]))


def gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.IMU` messages of a reading, numbered from `sequence` on; dropouts have none."""
    spec = sheet_of(sensor)
    shown = stamps(reading, clock_of(sensor)).tolist()
    orientation = reading["orientation"].tolist() if spec.orientation else None
    rates, forces = reading["angular_velocity"].tolist(), reading["linear_acceleration"].tolist()
    covariances = covariances_of(spec, "reading", sensor.rate)
    return [
        gz_message(
            shown[k],
            frame_of(sensor),
            sequence + i,
            sensor.name,
            None if orientation is None else orientation[k],
            rates[k],
            forces[k],
            covariances,
        )
        for i, k in enumerate(rows_of(reading))
    ]


def covariances_of(spec: Imu, part: Part, rate: float) -> tuple[Sequence[float], Sequence[float]]:
    """Return the covariances (9,) of angular velocity (rad^2/s^2) and linear acceleration (m^2/s^4) at a rate (Hz)."""
    rates = (spec.angular_velocity_x, spec.angular_velocity_y, spec.angular_velocity_z)
    forces = (spec.linear_acceleration_x, spec.linear_acceleration_y, spec.linear_acceleration_z)
    return (
        variances(part, *(noise.deviation(rate) for noise in rates)),
        variances(part, *(noise.deviation(rate) for noise in forces)),
    )


def arrays(sensor: MountedSensor, rows: AnyArray, part: Part, _beside: str) -> dict[str, AnyArray]:
    """Return what messages say: rad/s, m/s^2, and the orientation where there is one. The inverse of `message`."""
    found = {name: rows[name] for name in ("angular_velocity", "linear_acceleration")}
    if part != "bias" and any(output.name == "orientation" for output in sensor.spec.outputs):
        found = {"orientation": quaternions_in(rows, "orientation"), **found}
    return found

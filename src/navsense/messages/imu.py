"""IMU readings as `sensor_msgs/msg/Imu`, `gz.msgs.IMU`, and `gazebo.msgs.IMU` of Gazebo 11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, IntArray
from navsense.messages.base import (
    SeriesKind,
    compute_stamps,
    get_clock_name,
    get_frame_id,
    make_covariance,
    require_spec,
)
from navsense.messages.cdr import (
    MessageEncoder,
    MessageRows,
    build_layout,
    read_quaternions,
    write_quaternions,
    write_stamps,
    write_vectors,
)
from navsense.messages.gz import (
    encode_doubles,
    encode_float_v,
    encode_gazebo_classic_time,
    encode_header,
    encode_nested,
    list_emitted_rows,
)
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors.imu import Imu
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/Imu"
GZ_TYPE = "gz.msgs.IMU"
GAZEBO_11_TYPE = "gazebo.msgs.IMU"


def make_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `sensor_msgs/msg/Imu` (rad/s, m/s^2).

    The covariances have the variance of the white noise of one sample on the diagonal. Without an orientation, the
    first element of its covariance is -1 by definition of ROS; biases have no orientation. Raises `RecordingError` for
    a specification of another sensor type.
    """
    spec, clock = require_spec(sensor, Imu), get_clock_name(sensor)
    has_orientation = spec.orientation and series_kind != "bias"
    angular, linear = compute_covariances(spec, series_kind, sensor.rate)
    constants = {"angular_velocity_covariance": angular, "linear_acceleration_covariance": linear}
    if not has_orientation:
        constants |= {"orientation": (0.0, 0.0, 0.0, 1.0), "orientation_covariance": (-1.0, *[0.0] * 8)}

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        if has_orientation:
            write_quaternions(rows, "orientation", arrays["orientation"])
        write_vectors(rows, "angular_velocity", arrays["angular_velocity"])
        write_vectors(rows, "linear_acceleration", arrays["linear_acceleration"])

    return MessageEncoder(
        TYPE, build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}).with_constants(constants), fill
    )


def encode_gz_message(
    stamp: int,
    frame: str,
    sequence: int,
    entity: str,
    orientation: Sequence[float] | None,
    angular_velocity: Sequence[float],
    linear_acceleration: Sequence[float],
    covariances: tuple[Sequence[float], Sequence[float]],
) -> bytes:
    """Return `gz.msgs.IMU` of a stamp (ns), orientation w x y z or None, rad/s, m/s^2, and both covariances (9,)."""
    out = encode_nested(1, encode_header(stamp, frame, sequence))
    if entity:
        out += encode_nested(2, entity.encode())
    if orientation is not None:
        w, x, y, z = orientation
        out += encode_nested(3, encode_doubles(2, (x, y, z, w)))
        out += encode_nested(4, encode_float_v((0.0,) * 9))
    out += encode_nested(5, encode_doubles(2, angular_velocity)) + encode_nested(6, encode_float_v(covariances[0]))
    out += encode_nested(7, encode_doubles(2, linear_acceleration)) + encode_nested(8, encode_float_v(covariances[1]))
    return out


def encode_gazebo_11_message(
    stamp: int,
    entity: str,
    orientation: Sequence[float],
    angular_velocity: Sequence[float],
    linear_acceleration: Sequence[float],
) -> bytes:
    """Return `gazebo.msgs.IMU` of a stamp (ns), orientation w x y z, rad/s and m/s^2.

    Raises `RecordingError` with the name of the entity if the seconds do not fit into 32 bits.
    """
    w, x, y, z = orientation
    out = encode_nested(1, encode_gazebo_classic_time(stamp, entity)) + encode_nested(2, entity.encode())
    out += encode_nested(3, encode_doubles(2, (x, y, z, w), required=True))
    out += encode_nested(4, encode_doubles(1, angular_velocity, required=True))
    return out + encode_nested(5, encode_doubles(1, linear_acceleration, required=True))


def encode_gazebo_11_messages(sensor: MountedSensor, reading: Reading, _sequence: int = 0) -> list[bytes]:
    """Return the `gazebo.msgs.IMU` messages of the emitted rows.

    The message requires an orientation. An IMU without one has the identity, as in Gazebo.
    """
    spec = require_spec(sensor, Imu)
    stamps = compute_stamps(reading, get_clock_name(sensor)).tolist()
    orientation = reading["orientation"].tolist() if spec.orientation else None
    angular, linear = reading["angular_velocity"].tolist(), reading["linear_acceleration"].tolist()
    return [
        encode_gazebo_11_message(
            stamps[row],
            sensor.name,
            (1.0, 0.0, 0.0, 0.0) if orientation is None else orientation[row],
            angular[row],
            linear[row],
        )
        for row in list_emitted_rows(reading)
    ]


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.IMU` messages of the emitted rows, numbered from `sequence`."""
    spec = require_spec(sensor, Imu)
    stamps = compute_stamps(reading, get_clock_name(sensor)).tolist()
    orientation = reading["orientation"].tolist() if spec.orientation else None
    angular, linear = reading["angular_velocity"].tolist(), reading["linear_acceleration"].tolist()
    covariances = compute_covariances(spec, "measured", sensor.rate)
    return [
        encode_gz_message(
            stamps[row],
            get_frame_id(sensor),
            sequence + i,
            sensor.name,
            None if orientation is None else orientation[row],
            angular[row],
            linear[row],
            covariances,
        )
        for i, row in enumerate(list_emitted_rows(reading))
    ]


def compute_covariances(spec: Imu, series_kind: SeriesKind, rate: float) -> tuple[Sequence[float], Sequence[float]]:
    """Return the covariances (9,) of angular velocity (rad^2/s^2) and linear acceleration (m^2/s^4) at a rate (Hz)."""
    angular = (spec.angular_velocity_x, spec.angular_velocity_y, spec.angular_velocity_z)
    linear = (spec.linear_acceleration_x, spec.linear_acceleration_y, spec.linear_acceleration_z)
    return (
        make_covariance(series_kind, *(noise.white_stddev(rate) for noise in angular)),
        make_covariance(series_kind, *(noise.white_stddev(rate) for noise in linear)),
    )


def extract_arrays(
    sensor: MountedSensor, rows: MessageRows, series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return the arrays in messages: rad/s, m/s^2, and the orientation if any. The inverse of `make_encoder`."""
    arrays = {name: rows[name] for name in ("angular_velocity", "linear_acceleration")}
    if series_kind != "bias" and any(output.name == "orientation" for output in sensor.spec.outputs):
        arrays = {"orientation": read_quaternions(rows, "orientation"), **arrays}
    return arrays


MESSAGES = SensorMessages(
    make_encoder,
    extract_arrays,
    GZ_TYPE,
    encode_gz_messages,
    gazebo_11_type=GAZEBO_11_TYPE,
    encode_gazebo_11_messages=encode_gazebo_11_messages,
)

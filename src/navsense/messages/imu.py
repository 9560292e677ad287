"""IMU readings as `sensor_msgs/msg/Imu` and `gz.msgs.IMU`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navsense.errors import RecordingError
from navsense.messages.base import SeriesKind, compute_stamps, get_clock_name, get_frame_id, make_covariance
from navsense.messages.cdr import (
    MessageLayout,
    build_layout,
    read_quaternions,
    write_quaternions,
    write_stamps,
    write_vectors,
)
from navsense.messages.gz import encode_doubles, encode_float_v, encode_header, encode_nested, list_emitted_rows
from navsense.sensors.imu import Imu
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/Imu"
GZ_TYPE = "gz.msgs.IMU"


def make_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return how the readings (rad/s, m/s^2), the truth or the hidden errors of an IMU become messages.

    The covariances are the white noise of one sample on the diagonal; the first element of the orientation's is -1
    where there is no orientation, as ROS has it. The hidden errors have none.
    `RecordingError` for a sheet of another kind.
    """
    spec = require_imu(sensor)
    clock = get_clock_name(sensor)
    oriented = spec.orientation and series_kind != "bias"
    rates, forces = compute_covariances(spec, series_kind, sensor.rate)

    same = {"angular_velocity_covariance": rates, "linear_acceleration_covariance": forces}
    if not oriented:
        same |= {"orientation": (0.0, 0.0, 0.0, 1.0), "orientation_covariance": (-1.0, *[0.0] * 8)}

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        if oriented:
            write_quaternions(rows, "orientation", arrays["orientation"])
        write_vectors(rows, "angular_velocity", arrays["angular_velocity"])
        write_vectors(rows, "linear_acceleration", arrays["linear_acceleration"])

    return MessageLayout(TYPE, build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}).with_values(same), fill)


def require_imu(sensor: MountedSensor) -> Imu:
    """Return the sensor's sheet. Raise `RecordingError` where it is no IMU's."""
    if not isinstance(sensor.spec, Imu):
        kind = type(sensor.spec).__name__
        raise RecordingError(f"sensor {sensor.name!r} says that it is an imu", kind, allowed="must be an Imu")
    return sensor.spec


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
    """Return `gz.msgs.IMU`: orientation w x y z or None, rad/s, m/s^2, covariances (9,) of the two vectors."""
    out = encode_nested(1, encode_header(stamp, frame, sequence)) + (
        encode_nested(2, entity.encode()) if entity else b""
    )
    if orientation is not None:
        w, x, y, z = orientation
        out += encode_nested(3, encode_doubles(2, (x, y, z, w)))
        out += encode_nested(4, encode_float_v((0.0,) * 9))
    out += encode_nested(5, encode_doubles(2, angular_velocity)) + encode_nested(6, encode_float_v(covariances[0]))
    return (
        out
        + encode_nested(7, encode_doubles(2, linear_acceleration))
        + encode_nested(8, encode_float_v(covariances[1]))
    )


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.IMU` messages of a reading, numbered from `sequence` on; dropouts have none."""
    spec = require_imu(sensor)
    shown = compute_stamps(reading, get_clock_name(sensor)).tolist()
    orientation = reading["orientation"].tolist() if spec.orientation else None
    rates, forces = reading["angular_velocity"].tolist(), reading["linear_acceleration"].tolist()
    covariances = compute_covariances(spec, "reading", sensor.rate)
    return [
        encode_gz_message(
            shown[k],
            get_frame_id(sensor),
            sequence + i,
            sensor.name,
            None if orientation is None else orientation[k],
            rates[k],
            forces[k],
            covariances,
        )
        for i, k in enumerate(list_emitted_rows(reading))
    ]


def compute_covariances(spec: Imu, series_kind: SeriesKind, rate: float) -> tuple[Sequence[float], Sequence[float]]:
    """Return the covariances (9,) of angular velocity (rad^2/s^2) and linear acceleration (m^2/s^4) at a rate (Hz)."""
    rates = (spec.angular_velocity_x, spec.angular_velocity_y, spec.angular_velocity_z)
    forces = (spec.linear_acceleration_x, spec.linear_acceleration_y, spec.linear_acceleration_z)
    return (
        make_covariance(series_kind, *(noise.white_stddev(rate) for noise in rates)),
        make_covariance(series_kind, *(noise.white_stddev(rate) for noise in forces)),
    )


def extract_arrays(
    sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return what messages say: rad/s, m/s^2, and the orientation where there is one. The inverse of `message`."""
    found = {name: rows[name] for name in ("angular_velocity", "linear_acceleration")}
    if series_kind != "bias" and any(output.name == "orientation" for output in sensor.spec.outputs):
        found = {"orientation": read_quaternions(rows, "orientation"), **found}
    return found

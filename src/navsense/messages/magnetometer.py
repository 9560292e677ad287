"""Magnetometer readings as `sensor_msgs/msg/MagneticField`, `gz.msgs.Magnetometer`, `gazebo.msgs.Magnetometer`."""

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
from navsense.messages.cdr import MessageEncoder, MessageRows, build_layout, write_stamps, write_vectors
from navsense.messages.gz import (
    encode_doubles,
    encode_gazebo_classic_time,
    encode_header,
    encode_nested,
    list_emitted_rows,
)
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors.magnetometer import Magnetometer
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/MagneticField"
GZ_TYPE = "gz.msgs.Magnetometer"
GAZEBO_CLASSIC_TYPE = "gazebo.msgs.Magnetometer"


def make_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `sensor_msgs/msg/MagneticField` (T).

    The covariance has the variance of the white noise of one sample on the diagonal. Raises `RecordingError` for a
    specification of another sensor type.
    """
    spec, clock = require_spec(sensor, Magnetometer), get_clock_name(sensor)
    covariance = make_covariance(series_kind, *(noise.white_stddev(sensor.rate) for noise in (spec.x, spec.y, spec.z)))

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        write_vectors(rows, "magnetic_field", arrays["field"])

    layout = build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)})
    return MessageEncoder(TYPE, layout.with_constants({"magnetic_field_covariance": covariance}), fill)


def encode_gz_message(stamp: int, frame: str, sequence: int, field: Sequence[float]) -> bytes:
    """Return `gz.msgs.Magnetometer` of a stamp (ns) and a field (3,) in tesla."""
    return encode_nested(1, encode_header(stamp, frame, sequence)) + encode_nested(2, encode_doubles(2, field))


def encode_gazebo_classic_message(stamp: int, entity: str, field: Sequence[float]) -> bytes:
    """Return `gazebo.msgs.Magnetometer` of a stamp (ns), the name of the entity and a field (3,) in tesla.

    Raises `RecordingError` if the seconds do not fit into 32 bits.
    """
    head = encode_nested(1, encode_gazebo_classic_time(stamp, entity)) + encode_nested(2, entity.encode())
    return head + encode_nested(3, encode_doubles(1, field, required=True))


def encode_gazebo_11_message(stamp: int, entity: str, field: Sequence[float]) -> bytes:
    """Return `gazebo.msgs.Magnetometer` of Gazebo 11, which has no `entity_name`.

    Raises `RecordingError` with the name of the entity if the seconds do not fit into 32 bits.
    """
    head = encode_nested(1, encode_gazebo_classic_time(stamp, entity))
    return head + encode_nested(2, encode_doubles(1, field, required=True))


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.Magnetometer` messages of the emitted rows, numbered from `sequence`."""
    stamps, field = compute_stamps(reading, get_clock_name(sensor)).tolist(), reading["field"].tolist()
    frame, rows = get_frame_id(sensor), list_emitted_rows(reading)
    return [encode_gz_message(stamps[row], frame, sequence + i, field[row]) for i, row in enumerate(rows)]


def encode_gazebo_classic_messages(sensor: MountedSensor, reading: Reading, _sequence: int = 0) -> list[bytes]:
    """Return the `gazebo.msgs.Magnetometer` messages of the emitted rows."""
    stamps, field = compute_stamps(reading, get_clock_name(sensor)).tolist(), reading["field"].tolist()
    return [encode_gazebo_classic_message(stamps[row], sensor.name, field[row]) for row in list_emitted_rows(reading)]


def encode_gazebo_11_messages(sensor: MountedSensor, reading: Reading, _sequence: int = 0) -> list[bytes]:
    """Return the `gazebo.msgs.Magnetometer` messages of Gazebo 11 of the emitted rows."""
    stamps, field = compute_stamps(reading, get_clock_name(sensor)).tolist(), reading["field"].tolist()
    return [encode_gazebo_11_message(stamps[row], sensor.name, field[row]) for row in list_emitted_rows(reading)]


def extract_arrays(
    _sensor: MountedSensor, rows: MessageRows, _series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return the field (T) in messages: the inverse of `make_encoder`."""
    return {"field": rows["magnetic_field"]}


MESSAGES = SensorMessages(
    make_encoder,
    extract_arrays,
    GZ_TYPE,
    encode_gz_messages,
    GAZEBO_CLASSIC_TYPE,
    encode_gazebo_classic_messages,
    GAZEBO_CLASSIC_TYPE,
    encode_gazebo_11_messages,
)

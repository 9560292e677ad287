"""Altimeter readings as `ros_gz_interfaces/msg/Altimeter`, `gz.msgs.Altimeter`, `gazebo.msgs.Altimeter`.

Each has the height above the reference (m), the vertical velocity (m/s) and the reference (m), in this order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, IntArray
from navsense.messages.base import SeriesKind, compute_stamps, get_clock_name, get_frame_id, require_spec
from navsense.messages.cdr import MessageEncoder, MessageRows, build_layout, write_stamps
from navsense.messages.gz import (
    encode_doubles,
    encode_gazebo_classic_time,
    encode_header,
    encode_nested,
    list_emitted_rows,
)
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors.altimeter import Altimeter
from navsense.world import MountedSensor

TYPE = "ros_gz_interfaces/msg/Altimeter"
GZ_TYPE = "gz.msgs.Altimeter"
GAZEBO_CLASSIC_TYPE = "gazebo.msgs.Altimeter"
FIELD_NAMES = ("vertical_position", "vertical_velocity", "vertical_reference")


def make_encoder(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `ros_gz_interfaces/msg/Altimeter`. The reference has no bias: it is 0 there.

    Raises `RecordingError` for a specification of another sensor type.
    """
    require_spec(sensor, Altimeter)
    clock = get_clock_name(sensor)

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        for name in FIELD_NAMES:
            if name in arrays:
                rows[name] = arrays[name]

    return MessageEncoder(TYPE, build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}), fill)


def encode_gz_message(stamp: int, frame: str, sequence: int, values: Sequence[float]) -> bytes:
    """Return `gz.msgs.Altimeter` of a stamp (ns) and height, velocity, reference."""
    return encode_nested(1, encode_header(stamp, frame, sequence)) + encode_doubles(2, values)


def encode_gazebo_classic_message(stamp: int, entity: str, values: Sequence[float]) -> bytes:
    """Return `gazebo.msgs.Altimeter` of a stamp (ns) and height, velocity, reference.

    Raises `RecordingError` with the name of the entity if the seconds do not fit into 32 bits.
    """
    return encode_nested(1, encode_gazebo_classic_time(stamp, entity)) + encode_doubles(2, values, required=True)


def _list_rows(sensor: MountedSensor, reading: Reading) -> list[tuple[int, list[float]]]:
    """Return stamp (ns) and the three values of each emitted row."""
    require_spec(sensor, Altimeter)
    stamps = compute_stamps(reading, get_clock_name(sensor)).tolist()
    columns = [reading[name].tolist() for name in FIELD_NAMES]
    return [(stamps[row], [column[row] for column in columns]) for row in list_emitted_rows(reading)]


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.Altimeter` messages of the emitted rows, numbered from `sequence`."""
    rows = enumerate(_list_rows(sensor, reading), sequence)
    return [encode_gz_message(stamp, get_frame_id(sensor), number, values) for number, (stamp, values) in rows]


def encode_gazebo_classic_messages(sensor: MountedSensor, reading: Reading, _sequence: int = 0) -> list[bytes]:
    """Return the `gazebo.msgs.Altimeter` messages of the emitted rows."""
    return [encode_gazebo_classic_message(stamp, sensor.name, values) for stamp, values in _list_rows(sensor, reading)]


def extract_arrays(
    _sensor: MountedSensor, rows: MessageRows, series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return the arrays in messages: m, m/s, m. The inverse of `make_encoder`."""
    return {name: rows[name] for name in FIELD_NAMES if (series_kind, name) != ("bias", FIELD_NAMES[2])}


MESSAGES = SensorMessages(
    make_encoder,
    extract_arrays,
    GZ_TYPE,
    encode_gz_messages,
    GAZEBO_CLASSIC_TYPE,
    encode_gazebo_classic_messages,
    GAZEBO_CLASSIC_TYPE,
    encode_gazebo_classic_messages,
)

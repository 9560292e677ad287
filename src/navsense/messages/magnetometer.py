"""Magnetometer readings as `sensor_msgs/msg/MagneticField`, `gz.msgs.Magnetometer`, `gazebo.msgs.Magnetometer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navsense.errors import RecordingError
from navsense.messages.base import SeriesKind, compute_stamps, get_clock_name, get_frame_id, make_covariance
from navsense.messages.cdr import MessageLayout, build_layout, write_stamps, write_vectors
from navsense.messages.gz import encode_classic_time, encode_doubles, encode_header, encode_nested, list_emitted_rows
from navsense.sensors.magnetometer import Magnetometer
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/MagneticField"
GZ_TYPE = "gz.msgs.Magnetometer"


def make_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return how the readings (T), the truth or the hidden errors of a magnetometer become messages.

    The covariance is the white noise of one sample on the diagonal. `RecordingError` for a sheet of another kind.
    """
    spec = sensor.spec
    if not isinstance(spec, Magnetometer):
        raise RecordingError(
            f"sensor {sensor.name!r} says that it is a magnetometer",
            type(spec).__name__,
            allowed="must be a Magnetometer",
        )
    clock = get_clock_name(sensor)
    covariance = make_covariance(series_kind, *(noise.white_stddev(sensor.rate) for noise in (spec.x, spec.y, spec.z)))

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        write_vectors(rows, "magnetic_field", arrays["field"])

    made = build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}).with_values(
        {"magnetic_field_covariance": covariance}
    )
    return MessageLayout(TYPE, made, fill)


def encode_gz_message(stamp: int, frame: str, sequence: int, field: Sequence[float]) -> bytes:
    """Return `gz.msgs.Magnetometer` of a stamp (ns) and a field (3,) in tesla."""
    return encode_nested(1, encode_header(stamp, frame, sequence)) + encode_nested(2, encode_doubles(2, field))


def encode_classic_message(stamp: int, entity: str, field: Sequence[float]) -> bytes:
    """Return the design's `gazebo.msgs.Magnetometer` of a stamp (ns) and a field (3,) in tesla.

    Raise `RecordingError` where the seconds do not fit into 32 bits.
    """
    who = encode_nested(1, encode_classic_time(stamp, entity)) + encode_nested(2, entity.encode())
    return who + encode_nested(3, encode_doubles(1, field, required=True))


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.Magnetometer` messages of a reading, numbered from `sequence` on; dropouts have none."""
    shown, field = compute_stamps(reading, get_clock_name(sensor)).tolist(), reading["field"].tolist()
    frame = get_frame_id(sensor)
    return [
        encode_gz_message(shown[k], frame, sequence + i, field[k]) for i, k in enumerate(list_emitted_rows(reading))
    ]


def encode_classic_messages(sensor: MountedSensor, reading: Reading) -> list[bytes]:
    """Return the `gazebo.msgs.Magnetometer` messages of a reading; they carry no number."""
    shown, field = compute_stamps(reading, get_clock_name(sensor)).tolist(), reading["field"].tolist()
    return [encode_classic_message(shown[k], sensor.name, field[k]) for k in list_emitted_rows(reading)]


def extract_arrays(
    _sensor: MountedSensor, rows: AnyArray, _series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return what messages say: the field, T. The inverse of `message`."""
    return {"field": rows["magnetic_field"]}

"""Magnetometer readings as `sensor_msgs/msg/MagneticField`, `gz.msgs.Magnetometer`, `gazebo.msgs.Magnetometer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navsense.errors import SinkError
from navsense.messages.base import Part, clock_of, frame_of, stamps, variances
from navsense.messages.cdr import Message, layout, set_stamp, set_vector
from navsense.messages.gz import classic_time, doubles, header, nested, rows_of
from navsense.sensors.magnetometer import Magnetometer
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/MagneticField"
GZ_TYPE = "gz.msgs.Magnetometer"


def message(sensor: MountedSensor, part: Part) -> Message:
    """Return how the readings (T), the truth or the hidden errors of a magnetometer become messages.

    The covariance is the white noise of one sample on the diagonal. `SinkError` for a sheet of another kind.
    """
    spec = sensor.spec
    if not isinstance(spec, Magnetometer):
        raise SinkError(
            f"sensor {sensor.name!r} says that it is a magnetometer",
            type(spec).__name__,
            allowed="must be a Magnetometer",
        )
    clock = clock_of(sensor)
    covariance = variances(part, *(noise.deviation(sensor.rate) for noise in (spec.x, spec.y, spec.z)))

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        set_vector(rows, "magnetic_field", arrays["field"])

    made = layout(TYPE, {"header.frame_id": frame_of(sensor)}).holding({"magnetic_field_covariance": covariance})
    return Message(TYPE, made, fill)


def gz_message(stamp: int, frame: str, sequence: int, field: Sequence[float]) -> bytes:
    """Return `gz.msgs.Magnetometer` of a stamp (ns) and a field (3,) in tesla."""
    return nested(1, header(stamp, frame, sequence)) + nested(2, doubles(2, field))


def classic_message(stamp: int, entity: str, field: Sequence[float]) -> bytes:
    """Return the design's `gazebo.msgs.Magnetometer` of a stamp (ns) and a field (3,) in tesla.

    Raise `SinkError` where the seconds do not fit into 32 bits.
    """
    who = nested(1, classic_time(stamp, entity)) + nested(2, entity.encode())
    return who + nested(3, doubles(1, field, required=True))


def gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.Magnetometer` messages of a reading, numbered from `sequence` on; dropouts have none."""
    shown, field = stamps(reading, clock_of(sensor)).tolist(), reading["field"].tolist()
    frame = frame_of(sensor)
    return [gz_message(shown[k], frame, sequence + i, field[k]) for i, k in enumerate(rows_of(reading))]


def classic_messages(sensor: MountedSensor, reading: Reading) -> list[bytes]:
    """Return the `gazebo.msgs.Magnetometer` messages of a reading; they carry no number."""
    shown, field = stamps(reading, clock_of(sensor)).tolist(), reading["field"].tolist()
    return [classic_message(shown[k], sensor.name, field[k]) for k in rows_of(reading)]


def arrays(_sensor: MountedSensor, rows: AnyArray, _part: Part, _beside: str) -> dict[str, AnyArray]:
    """Return what messages say: the field, T. The inverse of `message`."""
    return {"field": rows["magnetic_field"]}

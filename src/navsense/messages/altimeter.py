"""Altimeter readings as `ros_gz_interfaces/msg/Altimeter`, `gz.msgs.Altimeter`, `gazebo.msgs.Altimeter`.

All three hold height above the reference (m), vertical velocity (m/s) and the reference (m), in this order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navsense.messages.base import Part, clock_of, frame_of, sheet_of, stamps
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.messages.gz import classic_time, doubles, header, nested, rows_of
from navsense.sensors.altimeter import Altimeter
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

TYPE = "ros_gz_interfaces/msg/Altimeter"
GZ_TYPE = "gz.msgs.Altimeter"
NAMES = ("vertical_position", "vertical_velocity", "vertical_reference")


def message(sensor: MountedSensor, _part: Part) -> Message:
    """Return how the readings, the truth or the hidden errors of an altimeter become messages.

    The reference has no error: it is 0 among the hidden errors. `SinkError` for a sheet of another kind.
    """
    sheet_of(sensor, Altimeter)
    clock = clock_of(sensor)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        for name in NAMES:
            if name in arrays:
                rows[name] = arrays[name]

    return Message(TYPE, layout(TYPE, {"header.frame_id": frame_of(sensor)}), fill)


def gz_message(stamp: int, frame: str, sequence: int, values: Sequence[float]) -> bytes:
    """Return `gz.msgs.Altimeter` of a stamp (ns) and height, velocity, reference."""
    return nested(1, header(stamp, frame, sequence)) + doubles(2, values)


def classic_message(stamp: int, entity: str, values: Sequence[float]) -> bytes:
    """Return the design's `gazebo.msgs.Altimeter` of a stamp (ns) and height, velocity, reference.

    Raise `SinkError` that names the `entity` where the seconds do not fit into 32 bits.
    """
    return nested(1, classic_time(stamp, entity)) + doubles(2, values, required=True)


def _rows(sensor: MountedSensor, reading: Reading) -> list[tuple[int, list[float]]]:
    """Return stamp (ns) and the three values of each row that is a message."""
    sheet_of(sensor, Altimeter)
    shown = stamps(reading, clock_of(sensor)).tolist()
    columns = [reading[name].tolist() for name in NAMES]
    return [(shown[k], [column[k] for column in columns]) for k in rows_of(reading)]


def gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.Altimeter` messages of a reading, numbered from `sequence` on; dropouts have none."""
    rows = enumerate(_rows(sensor, reading), sequence)
    return [gz_message(stamp, frame_of(sensor), number, values) for number, (stamp, values) in rows]


def classic_messages(sensor: MountedSensor, reading: Reading) -> list[bytes]:
    """Return the `gazebo.msgs.Altimeter` messages of a reading; they carry no number."""
    return [classic_message(stamp, sensor.name, values) for stamp, values in _rows(sensor, reading)]


def arrays(_sensor: MountedSensor, rows: AnyArray, part: Part, _beside: str) -> dict[str, AnyArray]:
    """Return what messages say: m, m/s, m. The inverse of `message`."""
    return {name: rows[name] for name in NAMES if (part, name) != ("bias", NAMES[2])}

"""Readings as Gazebo's messages, in protobuf's wire format: `gz.msgs` and the first design's `gazebo.msgs`.

Fields are numbered as in gz-msgs (`imu.proto`, `magnetometer.proto`, `header.proto`). In `gz.msgs` (proto3) a number
that is zero is left out; in `gazebo.msgs` (proto2, required) every field is written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from navsense.errors import SinkError
from navsense.messages.base import SEC_MAX, SEC_MIN, SECOND, clock_of, frame_of, stamp_error, stamps, variances
from navsense.sensors.imu import Imu
from navsense.series import Reading
from navsense.world import MountedSensor

VARINT, WIDE, BYTES = 0, 1, 2
"""Wire types of protobuf."""


def varint(value: int) -> bytes:
    """Return an integer in seven bits a byte; negative ones as 64-bit two's complement."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def nested(number: int, body: bytes) -> bytes:
    """Return a field that is a message, a string or packed numbers."""
    return varint(number << 3 | BYTES) + varint(len(body)) + body


def integer(number: int, value: int, required: bool = False) -> bytes:
    """Return an integer field; nothing for zero unless it is required."""
    return varint(number << 3 | VARINT) + varint(value) if value or required else b""


def double(number: int, value: float, required: bool = False) -> bytes:
    """Return a double field; nothing for positive zero unless it is required."""
    raw = struct.pack("<d", value)
    return varint(number << 3 | WIDE) + raw if required or any(raw) else b""


def doubles(first: int, values: Sequence[float], required: bool = False) -> bytes:
    """Return double fields numbered from `first` on."""
    return b"".join(double(first + i, value, required) for i, value in enumerate(values))


def header(stamp: int, frame: str, sequence: int) -> bytes:
    """Return `gz.msgs.Header` of a stamp (ns), with `frame_id` and `seq` among its data as Gazebo has them."""
    seconds, rest = divmod(stamp, SECOND)
    time = integer(1, seconds) + integer(2, rest)
    data = b"".join(
        nested(2, nested(1, key.encode()) + nested(2, value.encode()))
        for key, value in (("frame_id", frame), ("seq", str(sequence)))
    )
    return nested(1, time) + data


def float_v(values: Sequence[float]) -> bytes:
    """Return `gz.msgs.Float_V`: single-precision numbers, packed."""
    return nested(2, struct.pack(f"<{len(values)}f", *values))


def magnetometer(stamp: int, frame: str, sequence: int, field: Sequence[float]) -> bytes:
    """Return `gz.msgs.Magnetometer` of a stamp (ns) and a field (3,) in tesla."""
    return nested(1, header(stamp, frame, sequence)) + nested(2, doubles(2, field))


def classic_magnetometer(stamp: int, entity: str, field: Sequence[float]) -> bytes:
    """Return the design's `gazebo.msgs.Magnetometer` of a stamp (ns) and a field (3,) in tesla.

    Raise `SinkError` where the seconds do not fit into 32 bits.
    """
    seconds, rest = divmod(stamp, SECOND)
    if not SEC_MIN <= seconds <= SEC_MAX:
        raise stamp_error(f"of {entity}", seconds)
    time = integer(1, seconds, required=True) + integer(2, rest, required=True)
    return nested(1, time) + nested(2, entity.encode()) + nested(3, doubles(1, field, required=True))


def imu(
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


Encoder: TypeAlias = Callable[[MountedSensor, Reading, int], list[bytes]]


def _rows(reading: Reading) -> list[int]:
    """Return the rows that are messages. Raise `SinkError` where the reading carries runs."""
    if reading.clock_error.ndim != 1:
        raise SinkError(f"readings of {reading.name!r} carry a run axis", remedy="encode one run at a time")
    return [int(row) for row in np.flatnonzero(reading.emitted)]


def magnetometers(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.Magnetometer` messages of a reading, numbered from `sequence` on; dropouts have none."""
    shown, field = stamps(reading, clock_of(sensor)).tolist(), reading["field"].tolist()
    frame = frame_of(sensor)
    return [magnetometer(shown[k], frame, sequence + i, field[k]) for i, k in enumerate(_rows(reading))]


def classic_magnetometers(sensor: MountedSensor, reading: Reading) -> list[bytes]:
    """Return the `gazebo.msgs.Magnetometer` messages of a reading; they carry no number."""
    shown, field = stamps(reading, clock_of(sensor)).tolist(), reading["field"].tolist()
    return [classic_magnetometer(shown[k], sensor.name, field[k]) for k in _rows(reading)]


def imus(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.IMU` messages of a reading, numbered from `sequence` on; dropouts have none."""
    spec = sensor.spec
    if not isinstance(spec, Imu):
        raise SinkError(f"sensor {sensor.name!r} says that it is an imu", type(spec).__name__, allowed="must be an Imu")
    shown = stamps(reading, clock_of(sensor)).tolist()
    orientation = reading["orientation"].tolist() if spec.orientation else None
    rates, forces = reading["angular_velocity"].tolist(), reading["linear_acceleration"].tolist()
    covariances = imu_covariances(spec)
    return [
        imu(
            shown[k],
            frame_of(sensor),
            sequence + i,
            sensor.name,
            None if orientation is None else orientation[k],
            rates[k],
            forces[k],
            covariances,
        )
        for i, k in enumerate(_rows(reading))
    ]


def imu_covariances(spec: Imu) -> tuple[Sequence[float], Sequence[float]]:
    """Return the covariances (9,) of angular velocity ((rad/s)^2) and linear acceleration ((m/s^2)^2)."""
    rates = (spec.angular_velocity_x, spec.angular_velocity_y, spec.angular_velocity_z)
    forces = (spec.linear_acceleration_x, spec.linear_acceleration_y, spec.linear_acceleration_z)
    return variances("reading", *(n.stddev for n in rates)), variances("reading", *(n.stddev for n in forces))


ENCODERS: Mapping[str, Encoder] = {"imu": imus, "magnetometer": magnetometers}
"""Sensor type -> what makes its `gz.msgs` messages."""

"""NavSat readings as `sensor_msgs/msg/NavSatFix`, `geometry_msgs/msg/TwistStamped` and `gz.msgs.NavSat`.

Messages are in degrees. NavSatFix has no field for the velocity: it is a companion message, m/s east, north and up, as
drivers of receivers publish it. Biases of the position are metres east, north and up, in a
`geometry_msgs/msg/Vector3Stamped`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

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
from navsense.messages.cdr import MessageEncoder, MessageRows, build_layout, write_stamps
from navsense.messages.gz import encode_doubles, encode_header, encode_nested, list_emitted_rows
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors.navsat import NavSat
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/NavSatFix"
GZ_TYPE = "gz.msgs.NavSat"
VELOCITY_TYPE = "geometry_msgs/msg/TwistStamped"
ERROR_TYPE = "geometry_msgs/msg/Vector3Stamped"

NO_FIX = -1
GPS = 1
DIAGONAL_KNOWN = 2
"""Values of `NavSatStatus.status`, `NavSatStatus.service` and `NavSatFix.position_covariance_type`; a fix is 0."""


def make_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of positions (rad, m) or of their biases (m).

    The covariance (m^2, east north up) has the variance of the white noise of one sample on the diagonal. Raises
    `RecordingError` for a specification of another sensor type.
    """
    spec, clock = require_spec(sensor, NavSat), get_clock_name(sensor)
    if series_kind == "bias":
        return _make_error_encoder(sensor)
    horizontal = spec.horizontal_position.white_stddev(sensor.rate)
    vertical = spec.vertical_position.white_stddev(sensor.rate)
    covariance = make_covariance(series_kind, horizontal, horizontal, vertical)

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        rows["latitude"] = np.degrees(arrays["latitude"])
        rows["longitude"] = np.degrees(arrays["longitude"])
        rows["altitude"] = arrays["altitude"]
        rows["status.service"] = GPS
        rows["status.status"] = np.where(np.isnan(arrays["latitude"]), NO_FIX, 0)
        if any(covariance):
            rows["position_covariance"] = covariance
            rows["position_covariance_type"] = DIAGONAL_KNOWN

    return MessageEncoder(TYPE, build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}), fill)


def _make_error_encoder(sensor: MountedSensor) -> MessageEncoder:
    """Return the encoder of biases of the position, m east, north and up."""
    clock = get_clock_name(sensor)

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        for axis, name in (("x", "longitude"), ("y", "latitude"), ("z", "altitude")):
            rows[f"vector.{axis}"] = arrays[name]

    return MessageEncoder(ERROR_TYPE, build_layout(ERROR_TYPE, {"header.frame_id": get_frame_id(sensor)}), fill)


def make_velocity_encoder(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of velocities, m/s east, north and up."""
    clock = get_clock_name(sensor)

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        rows["twist.linear"] = arrays["velocity"]

    return MessageEncoder(VELOCITY_TYPE, build_layout(VELOCITY_TYPE, {"header.frame_id": get_frame_id(sensor)}), fill)


COMPANIONS = {"_velocity": make_velocity_encoder}
"""Companion messages by the suffix of their topic."""


def encode_gz_message(
    stamp: int, frame: str, sequence: int, position: Sequence[float], velocity: Sequence[float]
) -> bytes:
    """Return `gz.msgs.NavSat` of a stamp (ns), latitude, longitude (degrees), altitude (m) and velocity (m/s).

    The frame is a field of the message, not of its header, as Gazebo writes it.
    """
    numbers = encode_doubles(2, position) + encode_doubles(5, velocity)
    return encode_nested(1, encode_header(stamp, None, sequence)) + numbers + encode_nested(8, frame.encode())


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.NavSat` messages of the emitted rows, numbered from `sequence`."""
    require_spec(sensor, NavSat)
    stamps, frame = compute_stamps(reading, get_clock_name(sensor)).tolist(), get_frame_id(sensor)
    degrees = (np.degrees(reading["latitude"]), np.degrees(reading["longitude"]))
    positions = np.stack((*degrees, reading["altitude"]), axis=1).tolist()
    velocity = reading["velocity"].tolist()
    return [
        encode_gz_message(stamps[row], frame, sequence + i, positions[row], velocity[row])
        for i, row in enumerate(list_emitted_rows(reading))
    ]


def extract_arrays(
    _sensor: MountedSensor, rows: MessageRows, series_kind: SeriesKind, companion: str
) -> dict[str, AnyArray]:
    """Return the position (rad, m), its biases (m), or the velocity of the companion. The inverse of `make_encoder`."""
    if companion:
        return {"velocity": rows["twist.linear"]}
    if series_kind == "bias":
        axes = (("y", "latitude"), ("x", "longitude"), ("z", "altitude"))
        return {name: rows[f"vector.{axis}"] for axis, name in axes}
    degrees = {name: np.radians(rows[name]) for name in ("latitude", "longitude")}
    return {**degrees, "altitude": rows["altitude"]}


MESSAGES = SensorMessages(
    make_encoder, extract_arrays, GZ_TYPE, encode_gz_messages, list_companions=lambda *_: COMPANIONS
)

"""NavSat readings as `sensor_msgs/msg/NavSatFix`, `geometry_msgs/msg/TwistStamped` and `gz.msgs.NavSat`.

Messages hold degrees. The velocity, which a NavSatFix has no place for, is a message of its own beside it: m/s along
east, north and up, as receivers' drivers for ROS publish it. The hidden errors of the place are metres east, north and
up, which no NavSatFix holds: they are a `geometry_msgs/msg/Vector3Stamped`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from navsense.messages.base import Part, clock_of, frame_of, sheet_of, stamps, variances
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.messages.gz import doubles, header, nested, rows_of
from navsense.sensors.navsat import NavSat
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/NavSatFix"
GZ_TYPE = "gz.msgs.NavSat"
VELOCITY_TYPE = "geometry_msgs/msg/TwistStamped"
ERROR_TYPE = "geometry_msgs/msg/Vector3Stamped"

NO_FIX = -1
GPS = 1
DIAGONAL_KNOWN = 2
"""Values of `NavSatStatus.status`, `NavSatStatus.service` and `NavSatFix.position_covariance_type`; a fix is 0."""


def message(sensor: MountedSensor, part: Part) -> Message:
    """Return how places (rad, m), true places or their hidden errors (m) become messages.

    The covariance (m^2, east north up) is the white noise of one sample on the diagonal. `SinkError` for a sheet of
    another kind.
    """
    spec, clock = sheet_of(sensor, NavSat), clock_of(sensor)
    if part == "bias":
        return _errors(sensor)
    horizontal = spec.horizontal_position.deviation(sensor.rate)
    vertical = spec.vertical_position.deviation(sensor.rate)
    covariance = variances(part, horizontal, horizontal, vertical)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        rows["latitude"] = np.degrees(arrays["latitude"])
        rows["longitude"] = np.degrees(arrays["longitude"])
        rows["altitude"] = arrays["altitude"]
        rows["status.service"] = GPS
        rows["status.status"] = np.where(np.isnan(arrays["latitude"]), NO_FIX, 0)
        if any(covariance):
            rows["position_covariance"] = covariance
            rows["position_covariance_type"] = DIAGONAL_KNOWN

    return Message(TYPE, layout(TYPE, {"header.frame_id": frame_of(sensor)}), fill)


def _errors(sensor: MountedSensor) -> Message:
    """Return how hidden errors of the place become messages, m east, north and up."""
    clock = clock_of(sensor)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        for axis, name in (("x", "longitude"), ("y", "latitude"), ("z", "altitude")):
            rows[f"vector.{axis}"] = arrays[name]

    return Message(ERROR_TYPE, layout(ERROR_TYPE, {"header.frame_id": frame_of(sensor)}), fill)


def velocity_message(sensor: MountedSensor, _part: Part) -> Message:
    """Return how velocities, true velocities or their hidden errors become messages, m/s east, north and up."""
    clock = clock_of(sensor)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        rows["twist.linear"] = arrays["velocity"]

    return Message(VELOCITY_TYPE, layout(VELOCITY_TYPE, {"header.frame_id": frame_of(sensor)}), fill)


COMPANIONS = {"_velocity": velocity_message}
"""Messages beside the one of the sensor's own topic, by what is put behind the topic."""


def gz_message(stamp: int, frame: str, sequence: int, place: Sequence[float], velocity: Sequence[float]) -> bytes:
    """Return `gz.msgs.NavSat` of a stamp (ns), latitude, longitude (degrees), altitude (m) and velocity (m/s).

    The frame stands in a field of its own, as Gazebo's sensor has it.
    """
    numbers = doubles(2, place) + doubles(5, velocity)
    return nested(1, header(stamp, None, sequence)) + numbers + nested(8, frame.encode())


def gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.NavSat` messages of a reading, numbered from `sequence` on; dropouts have none."""
    sheet_of(sensor, NavSat)
    shown, frame = stamps(reading, clock_of(sensor)).tolist(), frame_of(sensor)
    degrees = (np.degrees(reading["latitude"]), np.degrees(reading["longitude"]))
    places = np.stack((*degrees, reading["altitude"]), axis=1).tolist()
    velocity = reading["velocity"].tolist()
    return [gz_message(shown[k], frame, sequence + i, places[k], velocity[k]) for i, k in enumerate(rows_of(reading))]


def arrays(_sensor: MountedSensor, rows: AnyArray, part: Part, beside: str) -> dict[str, AnyArray]:
    """Return what messages say: place (rad, m) or its errors (m), beside it the velocity. The inverse of `message`."""
    if beside:
        return {"velocity": rows["twist.linear"]}
    if part == "bias":
        axes = (("y", "latitude"), ("x", "longitude"), ("z", "altitude"))
        return {name: rows[f"vector.{axis}"] for axis, name in axes}
    degrees = {name: np.radians(rows[name]) for name in ("latitude", "longitude")}
    return {**degrees, "altitude": rows["altitude"]}

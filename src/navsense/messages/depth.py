"""Depth readings as `sensor_msgs/msg/FluidPressure` and `gz.msgs.FluidPressure`, and the depth as a companion.

The pressure is absolute or gauge, as the specification sets. Its variance is that of the white noise. FluidPressure has
no field for the depth: it is a `geometry_msgs/msg/PointStamped` with z in m below the surface, positive downwards, as
DAVE's sensor publishes it. The depth has no bias of its own: it is 0 there.
"""

from __future__ import annotations

from collections.abc import Mapping

from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, IntArray
from navsense.messages import air_pressure
from navsense.messages.base import SeriesKind, get_clock_name, get_frame_id
from navsense.messages.cdr import MessageEncoder, MessageRows, build_layout, write_stamps
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors.depth import Depth
from navsense.world import MountedSensor

DEPTH_TYPE = "geometry_msgs/msg/PointStamped"
GZ_TYPE = air_pressure.GZ_TYPE


def make_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of the pressure (Pa). Raises `RecordingError` for a specification of another sensor type."""
    return air_pressure.make_encoder(sensor, series_kind, Depth)


def make_depth_encoder(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of the depth (m)."""
    clock = get_clock_name(sensor)

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        if "depth" in arrays:
            rows["point.z"] = arrays["depth"]

    return MessageEncoder(DEPTH_TYPE, build_layout(DEPTH_TYPE, {"header.frame_id": get_frame_id(sensor)}), fill)


COMPANIONS = {"_depth": make_depth_encoder}
"""Companion messages by the suffix of their topic."""


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.FluidPressure` messages of the emitted rows, numbered from `sequence`."""
    return air_pressure.encode_gz_messages(sensor, reading, sequence, Depth)


def extract_arrays(
    sensor: MountedSensor, rows: MessageRows, series_kind: SeriesKind, companion: str
) -> dict[str, AnyArray]:
    """Return the pressure (Pa), or the depth (m) of the companion. The inverse of `make_encoder`."""
    if not companion:
        return air_pressure.extract_arrays(sensor, rows, series_kind, companion)
    return {} if series_kind == "bias" else {"depth": rows["point.z"]}


MESSAGES = SensorMessages(
    make_encoder, extract_arrays, GZ_TYPE, encode_gz_messages, list_companions=lambda *_: COMPANIONS
)

"""Depth readings as `sensor_msgs/msg/FluidPressure` and `gz.msgs.FluidPressure`, and the depth beside them.

The pressure is absolute or gauge as the sheet says, its variance the white noise's deviation squared. The depth, which
a FluidPressure has no place for, is a `geometry_msgs/msg/PointStamped` whose z is m below the surface, positive
downwards, as DAVE's sensor publishes it; it has no hidden error of its own, and 0 stands there.
"""

from __future__ import annotations

from collections.abc import Mapping

from navsense.messages import air_pressure
from navsense.messages.base import SeriesKind, get_clock_name, get_frame_id
from navsense.messages.cdr import MessageLayout, build_layout, write_stamps
from navsense.sensors.depth import Depth
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

DEPTH_TYPE = "geometry_msgs/msg/PointStamped"
GZ_TYPE = air_pressure.GZ_TYPE


def make_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return how the pressures (Pa), the true ones or their hidden errors become messages.

    `RecordingError` for a sheet of another kind.
    """
    return air_pressure.make_layout(sensor, series_kind, Depth)


def make_depth_layout(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageLayout:
    """Return how the depths (m) or the true ones become messages."""
    clock = get_clock_name(sensor)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        if "depth" in arrays:
            rows["point.z"] = arrays["depth"]

    return MessageLayout(DEPTH_TYPE, build_layout(DEPTH_TYPE, {"header.frame_id": get_frame_id(sensor)}), fill)


COMPANIONS = {"_depth": make_depth_layout}
"""Messages beside the one of the sensor's own topic, by what is put behind the topic."""


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.FluidPressure` messages of a reading, numbered from `sequence` on; dropouts have none."""
    return air_pressure.encode_gz_messages(sensor, reading, sequence, Depth)


def extract_arrays(
    sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind, companion: str
) -> dict[str, AnyArray]:
    """Return what messages say: the pressure, Pa, or beside it the depth, m. The inverse of `message`."""
    if not companion:
        return air_pressure.extract_arrays(sensor, rows, series_kind, companion)
    return {} if series_kind == "bias" else {"depth": rows["point.z"]}

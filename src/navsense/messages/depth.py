"""Depth readings as `sensor_msgs/msg/FluidPressure` and `gz.msgs.FluidPressure`, and the depth beside them.

The pressure is absolute or gauge as the sheet says, its variance the white noise's deviation squared. The depth, which
a FluidPressure has no place for, is a `geometry_msgs/msg/PointStamped` whose z is m below the surface, positive
downwards, as DAVE's sensor publishes it; it has no hidden error of its own, and 0 stands there.
"""

from __future__ import annotations

from collections.abc import Mapping

from navsense.messages import air_pressure
from navsense.messages.base import Part, clock_of, frame_of
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.sensors.depth import Depth
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

DEPTH_TYPE = "geometry_msgs/msg/PointStamped"
GZ_TYPE = air_pressure.GZ_TYPE


def message(sensor: MountedSensor, part: Part) -> Message:
    """Return how the pressures (Pa), the true ones or their hidden errors become messages.

    `SinkError` for a sheet of another kind.
    """
    return air_pressure.message(sensor, part, Depth)


def depth_message(sensor: MountedSensor, _part: Part) -> Message:
    """Return how the depths (m) or the true ones become messages."""
    clock = clock_of(sensor)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        if "depth" in arrays:
            rows["point.z"] = arrays["depth"]

    return Message(DEPTH_TYPE, layout(DEPTH_TYPE, {"header.frame_id": frame_of(sensor)}), fill)


COMPANIONS = {"_depth": depth_message}
"""Messages beside the one of the sensor's own topic, by what is put behind the topic."""


def gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.FluidPressure` messages of a reading, numbered from `sequence` on; dropouts have none."""
    return air_pressure.gz_messages(sensor, reading, sequence, Depth)


def arrays(sensor: MountedSensor, rows: AnyArray, part: Part, beside: str) -> dict[str, AnyArray]:
    """Return what messages say: the pressure, Pa, or beside it the depth, m. The inverse of `message`."""
    if not beside:
        return air_pressure.arrays(sensor, rows, part, beside)
    return {} if part == "bias" else {"depth": rows["point.z"]}

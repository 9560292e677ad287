"""Depth readings as `sensor_msgs/msg/FluidPressure` and `gz.msgs.FluidPressure`, and the depth beside them.

The pressure is absolute or gauge as the sheet says, its variance the white noise's deviation squared. The depth, which
a FluidPressure has no place for, is a `geometry_msgs/msg/PointStamped` whose z is m below the surface, positive
downwards, as DAVE's sensor publishes it; it has no hidden error of its own, and 0 stands there.
"""

from __future__ import annotations

from collections.abc import Mapping

from navsense.messages.air_pressure import TYPE, gz_message
from navsense.messages.base import Part, clock_of, frame_of, sheet_of, stamps, variances
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.messages.gz import rows_of
from navsense.sensors.depth import Depth
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

DEPTH_TYPE = "geometry_msgs/msg/PointStamped"


def _variance(sensor: MountedSensor, part: Part) -> float:
    """Return the variance (Pa^2) that a message states. Raise SinkError for a sheet of another kind."""
    (variance,) = variances(part, sheet_of(sensor, Depth).pressure.deviation(sensor.rate))
    return variance


def message(sensor: MountedSensor, part: Part) -> Message:
    """Return how the pressures (Pa), the true ones or their hidden errors become messages.

    `SinkError` for a sheet of another kind.
    """
    clock, variance = clock_of(sensor), _variance(sensor, part)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        rows["fluid_pressure"] = arrays["pressure"]
        rows["variance"] = variance

    return Message(TYPE, layout(TYPE, {"header.frame_id": frame_of(sensor)}), fill)


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
    variance, frame = _variance(sensor, "reading"), frame_of(sensor)
    shown, pressure = stamps(reading, clock_of(sensor)).tolist(), reading["pressure"].tolist()
    return [gz_message(shown[k], frame, sequence + i, pressure[k], variance) for i, k in enumerate(rows_of(reading))]

"""Air pressure readings as `sensor_msgs/msg/FluidPressure` and `gz.msgs.FluidPressure`.

The variance is the white noise's deviation squared (Gazebo fills in its square root).
"""

from __future__ import annotations

from collections.abc import Mapping

from navsense.messages.base import Part, clock_of, frame_of, sheet_of, stamps, variances
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.messages.gz import doubles, header, nested, rows_of
from navsense.sensors.air_pressure import AirPressure
from navsense.sensors.depth import Depth
from navsense.series import Reading
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/FluidPressure"
GZ_TYPE = "gz.msgs.FluidPressure"


Kind = type[AirPressure] | type[Depth]
"""Sheets with a pressure."""


def variance_of(sensor: MountedSensor, part: Part, kind: Kind = AirPressure) -> float:
    """Return the variance (Pa^2) that a message states. Raise `SinkError` for a sheet of another kind."""
    (variance,) = variances(part, sheet_of(sensor, kind).pressure.deviation(sensor.rate))
    return variance


def message(sensor: MountedSensor, part: Part, kind: Kind = AirPressure) -> Message:
    """Return how the readings (Pa), the truth or the hidden errors of a sensor of pressure become messages.

    `SinkError` for a sheet of another kind.
    """
    clock, variance = clock_of(sensor), variance_of(sensor, part, kind)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        rows["fluid_pressure"] = arrays["pressure"]
        rows["variance"] = variance

    return Message(TYPE, layout(TYPE, {"header.frame_id": frame_of(sensor)}), fill)


def gz_message(stamp: int, frame: str, sequence: int, pressure: float, variance: float) -> bytes:
    """Return `gz.msgs.FluidPressure` of a stamp (ns), a pressure (Pa) and its variance (Pa^2)."""
    return nested(1, header(stamp, frame, sequence)) + doubles(2, (pressure, variance))


def gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0, kind: Kind = AirPressure) -> list[bytes]:
    """Return the `gz.msgs.FluidPressure` messages of a reading, numbered from `sequence` on; dropouts have none."""
    variance, frame = variance_of(sensor, "reading", kind), frame_of(sensor)
    shown, pressure = stamps(reading, clock_of(sensor)).tolist(), reading["pressure"].tolist()
    return [gz_message(shown[k], frame, sequence + i, pressure[k], variance) for i, k in enumerate(rows_of(reading))]


def arrays(_sensor: MountedSensor, rows: AnyArray, _part: Part, _beside: str) -> dict[str, AnyArray]:
    """Return what messages say: the pressure, Pa. The inverse of `message`."""
    return {"pressure": rows["fluid_pressure"]}

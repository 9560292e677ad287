"""Magnetometer readings as `sensor_msgs/msg/MagneticField`."""

from __future__ import annotations

from collections.abc import Mapping

from navsense.errors import SinkError
from navsense.messages.base import Part, clock_of, frame_of, variances
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.sensors.magnetometer import Magnetometer
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/MagneticField"


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
    covariance = variances(part, spec.x.stddev, spec.y.stddev, spec.z.stddev)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        rows["magnetic_field"] = arrays["field"]
        if any(covariance):
            rows["magnetic_field_covariance"] = covariance

    return Message(TYPE, layout(TYPE, {"header.frame_id": frame_of(sensor)}), fill)

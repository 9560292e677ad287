"""Air pressure readings as `sensor_msgs/msg/FluidPressure` and `gz.msgs.FluidPressure`.

The variance is that of the white noise. (Gazebo writes the standard deviation there.)
"""

from __future__ import annotations

from collections.abc import Mapping

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
from navsense.sensors.air_pressure import AirPressure
from navsense.sensors.depth import Depth
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/FluidPressure"
GZ_TYPE = "gz.msgs.FluidPressure"

PressureSpec = type[AirPressure] | type[Depth]
"""Specifications with a pressure."""


def compute_variance(sensor: MountedSensor, series_kind: SeriesKind, spec_class: PressureSpec = AirPressure) -> float:
    """Return the variance (Pa^2) in a message. Raises `RecordingError` for a specification of another sensor type."""
    (variance,) = make_covariance(series_kind, require_spec(sensor, spec_class).pressure.white_stddev(sensor.rate))
    return variance


def make_encoder(
    sensor: MountedSensor, series_kind: SeriesKind, spec_class: PressureSpec = AirPressure
) -> MessageEncoder:
    """Return the encoder of `sensor_msgs/msg/FluidPressure` (Pa).

    Raises `RecordingError` for a specification of another sensor type.
    """
    clock, variance = get_clock_name(sensor), compute_variance(sensor, series_kind, spec_class)

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        rows["fluid_pressure"] = arrays["pressure"]
        rows["variance"] = variance

    return MessageEncoder(TYPE, build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}), fill)


def encode_gz_message(stamp: int, frame: str, sequence: int, pressure: float, variance: float) -> bytes:
    """Return `gz.msgs.FluidPressure` of a stamp (ns), a pressure (Pa) and its variance (Pa^2)."""
    return encode_nested(1, encode_header(stamp, frame, sequence)) + encode_doubles(2, (pressure, variance))


def encode_gz_messages(
    sensor: MountedSensor, reading: Reading, sequence: int = 0, spec_class: PressureSpec = AirPressure
) -> list[bytes]:
    """Return the `gz.msgs.FluidPressure` messages of the emitted rows, numbered from `sequence`."""
    variance, frame = compute_variance(sensor, "measured", spec_class), get_frame_id(sensor)
    stamps, pressure = compute_stamps(reading, get_clock_name(sensor)).tolist(), reading["pressure"].tolist()
    return [
        encode_gz_message(stamps[row], frame, sequence + i, pressure[row], variance)
        for i, row in enumerate(list_emitted_rows(reading))
    ]


def extract_arrays(
    _sensor: MountedSensor, rows: MessageRows, _series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return the pressure (Pa) in messages: the inverse of `make_encoder`."""
    return {"pressure": rows["fluid_pressure"]}


MESSAGES = SensorMessages(make_encoder, extract_arrays, GZ_TYPE, encode_gz_messages)

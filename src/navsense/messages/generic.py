"""Messages of sensor types without a ROS message: their definition is derived from the outputs of the sensor.

A sensor type `salinity` becomes `navsense_msgs/msg/Salinity`: a header, then one float64 array for each output,
row-major (a scalar is one float64). The message holds the length of each array, so a type has one definition for all
numbers of beams and cells. Recordings hold the definition, so any program that reads the schema reads the values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from navsense.core.typing import AnyArray, IntArray
from navsense.messages import schemas
from navsense.messages.base import SeriesKind, get_clock_name, get_frame_id
from navsense.messages.cdr import MessageEncoder, MessageRows, build_layout, write_stamps
from navsense.messages.sensor_messages import SensorMessages
from navsense.world import MountedSensor

PACKAGE = "navsense_msgs/msg/"
"""Package of these message types."""


def format_type_name(sensor_type: str) -> str:
    """Return the full message type of a sensor type, in CamelCase."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in sensor_type).split()
    return PACKAGE + ("".join(word[:1].upper() + word[1:] for word in words) or "Reading")


def make_encoder(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of the arrays of any sensor in SI units. Arrays that a series lacks are NaN."""
    outputs, clock = sensor.spec.outputs, get_clock_name(sensor)
    type_name = format_type_name(sensor.spec.type)
    fields = (f"float64{'[]' if output.axes else ''} {output.name}" for output in outputs)
    definitions = {**schemas.DEFINITIONS, type_name: "\n".join(("std_msgs/Header header", *fields))}
    lengths = {output.name: output.size for output in outputs if output.axes}
    layout = build_layout(type_name, {"header.frame_id": get_frame_id(sensor)}, lengths, definitions)

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        for output in outputs:
            if output.name in arrays:
                width = (output.size,) if output.axes else ()
                rows[output.name] = arrays[output.name].reshape(stamp.shape[0], *width)

    unknown = dict.fromkeys((output.name for output in outputs), math.nan)
    return MessageEncoder(
        type_name, layout.with_constants(unknown), fill, schemas.format_schema(type_name, definitions)
    )


def extract_arrays(
    sensor: MountedSensor, rows: MessageRows, _series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return the arrays in messages: the inverse of `make_encoder`. Arrays that the messages lack are left out."""
    outputs = [output for output in sensor.spec.outputs if output.name in (rows.dtype.names or ())]
    return {output.name: rows[output.name].reshape(rows.shape[0], *output.shape) for output in outputs}


MESSAGES = SensorMessages(make_encoder, extract_arrays)

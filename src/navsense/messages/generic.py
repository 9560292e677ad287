"""Readings of a sensor that has no ROS message of its own: one is made from the names of its outputs.

A sensor type `salinity` becomes `navsense_msgs/msg/Salinity`: a header, then one array of float64 an output, row by row
(a scalar is one float64). How long an array is stands in the message, so that a type has one definition whatever its
sensors' beams or cells are. Recordings carry it, so any program that reads the schema reads the values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from navsense.messages import schemas
from navsense.messages.base import SeriesKind, get_clock_name, get_frame_id
from navsense.messages.cdr import MessageLayout, build_layout, write_stamps
from navsense.sensors import Output
from navsense.typing import AnyArray, IntArray
from navsense.world import MountedSensor

PACKAGE = "navsense_msgs/msg/"
"""What the types begin with that are made of a sensor's outputs."""


def format_type_name(sensor_type: str) -> str:
    """Return the full type name that a sensor type gets: words joined and capitalised."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in sensor_type).split()
    return PACKAGE + ("".join(word[:1].upper() + word[1:] for word in words) or "Reading")


def _format_field(output: Output) -> str:
    """Return the line of one array in a definition."""
    return f"float64[] {output.name}" if output.axes else f"float64 {output.name}"


def make_layout(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageLayout:
    """Return how the readings, the truth or the hidden errors of any sensor become messages; SI as the sensor has them.

    What is missing in a series (a flag has no truth) is NaN.
    """
    outputs = sensor.spec.outputs
    kind = format_type_name(sensor.spec.type)
    lines = ["std_msgs/Header header", *map(_format_field, outputs)]
    definitions = {**schemas.DEFINITIONS, kind: "\n".join(lines)}
    lengths = {output.name: output.size for output in outputs if output.axes}
    made = build_layout(kind, {"header.frame_id": get_frame_id(sensor)}, lengths, definitions)
    clock = get_clock_name(sensor)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        for output in outputs:
            if output.name in arrays:
                width = (output.size,) if output.axes else ()
                rows[output.name] = arrays[output.name].reshape(stamp.shape[0], *width)

    unknown = dict.fromkeys((output.name for output in outputs), math.nan)
    return MessageLayout(kind, made.with_values(unknown), fill, schemas.format_schema(kind, definitions))


def extract_arrays(
    sensor: MountedSensor, rows: AnyArray, _series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return what messages say; what is missing in a series is NaN, or in none. The inverse of `message`."""
    told = [output for output in sensor.spec.outputs if output.name in (rows.dtype.names or ())]
    return {output.name: rows[output.name].reshape(rows.shape[0], *output.shape) for output in told}

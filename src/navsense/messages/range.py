"""Ranges as `sensor_msgs/msg/Range` and as the one return of a `gz.msgs.LaserScan`.

Nothing up to the maximum is +Inf, something nearer than the minimum -Inf (REP 117); what is not known at all, as in a
dropout, is NaN. Under classic a sensor with Gazebo's range plug-in reports the maximum or the minimum instead, as the
UUV Simulator's DVL documents it. A message with the limit is then read back as out of range.

The field of view is the full width of the beam. Sound counts as ultrasound, light as infrared: ROS has no other kind.
The variance (m^2) is that of the white noise. In ROS a variance of 0 means unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from navsense.messages.base import Part, clock_of, frame_of, sheet_of, stamps, variances
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.messages.gz import doubles, header, integer, nested, packed, rows_of
from navsense.sensors.range import OUTSIDE, Fan, Range
from navsense.series import Reading
from navsense.typing import AnyArray, FloatArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/Range"
GZ_TYPE = "gz.msgs.LaserScan"

ULTRASOUND, INFRARED = 0, 1
"""Values of `Range.radiation_type`."""


def _is_clamped(sheet: Range) -> bool:
    """Return True if messages report the limit for a range that is out of it."""
    return sheet.classic and sheet.ros_plugin


def reported_ranges(arrays: Mapping[str, AnyArray], low: float = -math.inf, high: float = math.inf) -> FloatArray:
    """Return the ranges (n,) m in messages: `low` or `high` (m) if out of limits."""
    outside = arrays.get(OUTSIDE, 0.0)  # hidden errors have no side
    found: FloatArray = np.where(outside == 1.0, high, arrays["range"])
    return np.where(outside == -1.0, low, found)


def message(sensor: MountedSensor, part: Part) -> Message:
    """Return how the ranges (m), the true ones or their hidden errors become messages.

    `SinkError` for a sheet of another kind.
    """
    clock, sheet = clock_of(sensor), sheet_of(sensor, Range)
    limits = (sheet.minimum_range, sheet.maximum_range) if _is_clamped(sheet) else (-math.inf, math.inf)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        set_stamp(rows, stamp, clock)
        rows["range"] = reported_ranges(arrays, *limits)

    same = {
        "radiation_type": INFRARED if sheet.sound is None else ULTRASOUND,
        "field_of_view": sheet.beam.width,
        "min_range": sheet.minimum_range,
        "max_range": sheet.maximum_range,
        "variance": variances(part, sheet.range.deviation(sensor.rate))[0],
    }
    return Message(TYPE, layout(TYPE, {"header.frame_id": frame_of(sensor)}).holding(same), fill)


def _angles(sheet: Range) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the least and the largest angle (rad) of a beam horizontally and vertically, about its axis."""
    beam, half = sheet.beam, 0.5 * sheet.beam.width
    if not isinstance(beam, Fan):
        return (-half, half), (-half, half)
    horizontal = (beam.horizontal_minimum, beam.horizontal_maximum) if beam.horizontal_samples > 1 else (0.0, 0.0)
    return horizontal, (beam.vertical_minimum, beam.vertical_maximum) if beam.vertical_samples > 1 else (0.0, 0.0)


def gz_message(stamp: int, frame: str, sequence: int, sheet: Range, distance: float) -> bytes:
    """Return `gz.msgs.LaserScan` of a stamp (ns) and one range (m)."""
    horizontal, vertical = _angles(sheet)
    limits = doubles(4, (*horizontal, 0.0, sheet.minimum_range, sheet.maximum_range)) + integer(9, 1)
    beam = limits + doubles(10, (*vertical, 0.0)) + integer(13, 1)
    return nested(1, header(stamp, frame, sequence)) + nested(2, frame.encode()) + beam + packed(14, (distance,))


def gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.LaserScan` messages of a reading, numbered from `sequence` on; dropouts have none."""
    sheet, frame = sheet_of(sensor, Range), frame_of(sensor)
    rows = rows_of(reading)
    shown, distance = stamps(reading, clock_of(sensor)).tolist(), reported_ranges(reading.arrays).tolist()
    return [gz_message(shown[k], frame, sequence + i, sheet, distance[k]) for i, k in enumerate(rows)]


def arrays(sensor: MountedSensor, rows: AnyArray, part: Part, _beside: str) -> dict[str, AnyArray]:
    """Return what messages say: the range, m, and on which side of the limits it is. The inverse of `message`."""
    distance, sheet = rows["range"].astype(np.float64), sensor.spec
    if part == "bias":
        return {"range": distance}
    outside = np.where(np.isinf(distance), np.sign(distance), 0.0)
    if isinstance(sheet, Range) and _is_clamped(sheet):
        low, high = np.float32(sheet.minimum_range), np.float32(sheet.maximum_range)
        outside = np.where(distance >= high, 1.0, np.where((distance <= low) & (low > 0.0), -1.0, outside))
    return {"range": np.where(outside == 0.0, distance, math.nan), OUTSIDE: outside}

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

from navsense.messages.base import (
    SeriesKind,
    compute_stamps,
    get_clock_name,
    get_frame_id,
    make_covariance,
    require_spec,
)
from navsense.messages.cdr import MessageLayout, build_layout, write_stamps
from navsense.messages.gz import (
    encode_doubles,
    encode_header,
    encode_int,
    encode_nested,
    encode_packed,
    list_emitted_rows,
)
from navsense.sensors.range import OUT_OF_RANGE, Fan, Range
from navsense.series import Reading
from navsense.typing import AnyArray, FloatArray, IntArray
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/Range"
GZ_TYPE = "gz.msgs.LaserScan"

ULTRASOUND, INFRARED = 0, 1
"""Values of `Range.radiation_type`."""


def _is_clamped(spec: Range) -> bool:
    """Return True if messages report the limit for a range that is out of it."""
    return spec.classic and spec.ros_plugin


def select_reported_ranges(
    arrays: Mapping[str, AnyArray], low: float = -math.inf, high: float = math.inf
) -> FloatArray:
    """Return the ranges (n,) m in messages: `low` or `high` (m) if out of limits."""
    outside = arrays.get(OUT_OF_RANGE, 0.0)  # hidden errors have no side
    found: FloatArray = np.where(outside == 1.0, high, arrays["range"])
    return np.where(outside == -1.0, low, found)


def make_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return how the ranges (m), the true ones or their hidden errors become messages.

    `RecordingError` for a sheet of another kind.
    """
    clock, spec = get_clock_name(sensor), require_spec(sensor, Range)
    limits = (spec.minimum_range, spec.maximum_range) if _is_clamped(spec) else (-math.inf, math.inf)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        rows["range"] = select_reported_ranges(arrays, *limits)

    same = {
        "radiation_type": INFRARED if spec.sound is None else ULTRASOUND,
        "field_of_view": spec.beam.width,
        "min_range": spec.minimum_range,
        "max_range": spec.maximum_range,
        "variance": make_covariance(series_kind, spec.range.white_stddev(sensor.rate))[0],
    }
    return MessageLayout(TYPE, build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}).with_values(same), fill)


def _angle_limits(spec: Range) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the least and the largest angle (rad) of a beam horizontally and vertically, about its axis."""
    beam, half = spec.beam, 0.5 * spec.beam.width
    if not isinstance(beam, Fan):
        return (-half, half), (-half, half)
    horizontal = (beam.horizontal_minimum, beam.horizontal_maximum) if beam.horizontal_samples > 1 else (0.0, 0.0)
    return horizontal, (beam.vertical_minimum, beam.vertical_maximum) if beam.vertical_samples > 1 else (0.0, 0.0)


def encode_gz_message(stamp: int, frame: str, sequence: int, spec: Range, distance: float) -> bytes:
    """Return `gz.msgs.LaserScan` of a stamp (ns) and one range (m)."""
    horizontal, vertical = _angle_limits(spec)
    limits = encode_doubles(4, (*horizontal, 0.0, spec.minimum_range, spec.maximum_range)) + encode_int(9, 1)
    beam = limits + encode_doubles(10, (*vertical, 0.0)) + encode_int(13, 1)
    return (
        encode_nested(1, encode_header(stamp, frame, sequence))
        + encode_nested(2, frame.encode())
        + beam
        + encode_packed(14, (distance,))
    )


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.LaserScan` messages of a reading, numbered from `sequence` on; dropouts have none."""
    spec, frame = require_spec(sensor, Range), get_frame_id(sensor)
    rows = list_emitted_rows(reading)
    shown, distance = (
        compute_stamps(reading, get_clock_name(sensor)).tolist(),
        select_reported_ranges(reading.arrays).tolist(),
    )
    return [encode_gz_message(shown[k], frame, sequence + i, spec, distance[k]) for i, k in enumerate(rows)]


def extract_arrays(
    sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return what messages say: the range, m, and on which side of the limits it is. The inverse of `message`."""
    distance, spec = rows["range"].astype(np.float64), sensor.spec
    if series_kind == "bias":
        return {"range": distance}
    outside = np.where(np.isinf(distance), np.sign(distance), 0.0)
    if isinstance(spec, Range) and _is_clamped(spec):
        low, high = np.float32(spec.minimum_range), np.float32(spec.maximum_range)
        outside = np.where(distance >= high, 1.0, np.where((distance <= low) & (low > 0.0), -1.0, outside))
    return {"range": np.where(outside == 0.0, distance, math.nan), OUT_OF_RANGE: outside}

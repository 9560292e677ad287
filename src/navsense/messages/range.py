"""Ranges as `sensor_msgs/msg/Range` and as the one return of a `gz.msgs.LaserScan`.

A range above the maximum is +Inf, below the minimum -Inf (REP 117); an unknown range, as in a dropout, is NaN. Under
classic, a sensor with Gazebo's range plug-in reports the limit instead, as documented for the UUV Simulator's DVL. The
reader then takes a message with the limit as out of range.

The field of view is the full width of the beam. The radiation type is ultrasound for sound, infrared for light. The
variance (m^2) is that of the white noise; 0 means unknown in ROS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, FloatArray, IntArray
from navsense.messages.base import (
    SeriesKind,
    compute_stamps,
    get_clock_name,
    get_frame_id,
    make_covariance,
    require_spec,
)
from navsense.messages.cdr import MessageEncoder, MessageRows, build_layout, write_stamps
from navsense.messages.gz import (
    encode_doubles,
    encode_header,
    encode_int,
    encode_nested,
    encode_packed,
    list_emitted_rows,
)
from navsense.messages.markers import INVALID, VALID, make_beam_encoder, select_lengths
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors.range import OUT_OF_RANGE, Fan, Range
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/Range"
GZ_TYPE = "gz.msgs.LaserScan"

ULTRASOUND, INFRARED = 0, 1
"""Values of `Range.radiation_type`."""


def _is_clamped(spec: Range) -> bool:
    """Return True if messages report the limit for a range beyond it."""
    return spec.classic and spec.ros_plugin


def select_reported_ranges(
    arrays: Mapping[str, AnyArray], low: float = -math.inf, high: float = math.inf
) -> FloatArray:
    """Return the ranges (n,) m in messages: `low` or `high` (m) beyond the limits."""
    side = arrays.get(OUT_OF_RANGE, 0.0)  # biases have no side
    ranges: FloatArray = np.where(side == 1.0, high, arrays["range"])
    return np.where(side == -1.0, low, ranges)


def make_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `sensor_msgs/msg/Range` (m).

    Raises `RecordingError` for a specification of another sensor type.
    """
    clock, spec = get_clock_name(sensor), require_spec(sensor, Range)
    limits = (spec.minimum_range, spec.maximum_range) if _is_clamped(spec) else (-math.inf, math.inf)

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        rows["range"] = select_reported_ranges(arrays, *limits)

    constants = {
        "radiation_type": INFRARED if spec.sound is None else ULTRASOUND,
        "field_of_view": spec.beam.width,
        "min_range": spec.minimum_range,
        "max_range": spec.maximum_range,
        "variance": make_covariance(series_kind, spec.range_noise.white_stddev(sensor.rate))[0],
    }
    return MessageEncoder(
        TYPE, build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}).with_constants(constants), fill
    )


def _compute_angle_limits(spec: Range) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the horizontal and the vertical limits (rad) of a beam about its axis."""
    beam, half = spec.beam, 0.5 * spec.beam.width
    if not isinstance(beam, Fan):
        return (-half, half), (-half, half)
    horizontal = (beam.horizontal_minimum, beam.horizontal_maximum) if beam.horizontal_samples > 1 else (0.0, 0.0)
    return horizontal, (beam.vertical_minimum, beam.vertical_maximum) if beam.vertical_samples > 1 else (0.0, 0.0)


def encode_gz_message(stamp: int, frame: str, sequence: int, spec: Range, distance: float) -> bytes:
    """Return `gz.msgs.LaserScan` of a stamp (ns) and one range (m)."""
    horizontal, vertical = _compute_angle_limits(spec)
    out = encode_nested(1, encode_header(stamp, frame, sequence)) + encode_nested(2, frame.encode())
    out += encode_doubles(4, (*horizontal, 0.0, spec.minimum_range, spec.maximum_range)) + encode_int(9, 1)
    out += encode_doubles(10, (*vertical, 0.0)) + encode_int(13, 1)
    return out + encode_packed(14, (distance,))


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.LaserScan` messages of the emitted rows, numbered from `sequence`."""
    spec, frame = require_spec(sensor, Range), get_frame_id(sensor)
    rows = list_emitted_rows(reading)
    stamps = compute_stamps(reading, get_clock_name(sensor)).tolist()
    ranges = select_reported_ranges(reading.arrays).tolist()
    return [encode_gz_message(stamps[row], frame, sequence + i, spec, ranges[row]) for i, row in enumerate(rows)]


def extract_arrays(
    sensor: MountedSensor, rows: MessageRows, series_kind: SeriesKind, _companion: str
) -> dict[str, AnyArray]:
    """Return the range (m) and its side of the limits in messages: the inverse of `make_encoder`."""
    distance, spec = rows["range"].astype(np.float64), sensor.spec
    if series_kind == "bias":
        return {"range": distance}
    side = np.where(np.isinf(distance), np.sign(distance), 0.0)
    if isinstance(spec, Range) and _is_clamped(spec):
        low, high = np.float32(spec.minimum_range), np.float32(spec.maximum_range)
        side = np.where(distance >= high, 1.0, np.where((distance <= low) & (low > 0.0), -1.0, side))
    return {"range": np.where(side == 0.0, distance, math.nan), OUT_OF_RANGE: side}


def make_marker_encoder(sensor: MountedSensor) -> MessageEncoder:
    """Return the encoder of a line along the beam. Raises `RecordingError` for another sensor type."""
    spec = require_spec(sensor, Range)
    direction = np.array([(1.0, 0.0, 0.0) if isinstance(spec.beam, Fan) else spec.beam.axis])

    def compute_beams(count: int, arrays: Mapping[str, AnyArray]) -> tuple[FloatArray, IntArray]:
        distance = np.asarray(arrays["range"], dtype=np.float64).reshape(count, 1)
        is_low = np.asarray(arrays.get(OUT_OF_RANGE, np.zeros(count))).reshape(count, 1) == -1.0
        minimum = np.where(is_low, spec.minimum_range, math.nan)
        return select_lengths((distance, minimum), spec.maximum_range), np.where(np.isfinite(distance), VALID, INVALID)

    return make_beam_encoder(sensor, np.zeros((1, 3)), direction / np.linalg.norm(direction), compute_beams)


MESSAGES = SensorMessages(
    make_encoder, extract_arrays, GZ_TYPE, encode_gz_messages, make_marker_encoder=make_marker_encoder
)

"""The beams of a sensor as `visualization_msgs/msg/MarkerArray`, which RViz and Foxglove draw.

A sensor with `<visualize>` true has the topic `<topic>/markers`: one marker, a list of lines with one line per beam. A
line goes from the transducer along the axis of its beam, in the frame of the sensor's message.

| colour | meaning | end of the line |
|---|---|---|
| green | a valid range, or a velocity over the bottom | the range |
| blue | a velocity through the water | the range, else the far boundary of the layer |
| red | neither | the range, else the limit that the echo is beyond |

A line of an ADCP is blue and ends at the far boundary of the last cell in which its beam has a velocity. If no cell has
one, it is red and ends at the last cell.

A message replaces the one before it: both have the same namespace and number. The lifetime is twice the longest time
between two messages, so that the beams of a sensor without messages disappear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.typing import AnyArray, FloatArray, IntArray
from navsense.messages.base import NANOSECONDS_PER_SECOND, get_clock_name, get_frame_id
from navsense.messages.cdr import MessageEncoder, MessageRows, build_layout, write_stamps, write_vectors
from navsense.world import MountedSensor

TYPE = "visualization_msgs/msg/MarkerArray"

MARKERS_SUFFIX = "/markers"
"""Suffix of the topic of the markers."""

LINE_LIST: Final = 5
"""Value of `Marker.type`: pairs of points are lines."""

LINE_WIDTH: Final = 0.05
"""m."""

INVALID, VALID, WATER = range(3)
"""State of a beam."""

COLORS: FloatArray = np.array([(0.9, 0.1, 0.1), (0.1, 0.8, 0.2), (0.1, 0.4, 1.0)])
"""Red, green and blue of each state."""

ComputeBeams = Callable[[int, Mapping[str, AnyArray]], tuple[FloatArray, IntArray]]
"""Returns the lengths (n, k) m and the states (n, k) of the beams in n samples, by their number and arrays."""


def make_beam_encoder(
    sensor: MountedSensor,
    positions: FloatArray,
    axes: FloatArray,
    compute_beams: ComputeBeams,
    longest_ping: float = 0.0,
) -> MessageEncoder:
    """Return the encoder of the markers of a sensor with k beams.

    positions: of the transducers (k, 3) m, in the frame of the sensor's messages.
    axes: unit vectors (k, 3) along the beams, in that frame.
    longest_ping: duration (s) of the longest ping, by which two messages can be apart, in addition to a period.
    """
    clock, count = get_clock_name(sensor), axes.shape[0]
    marker = "markers.0"
    strings = {f"{marker}.header.frame_id": get_frame_id(sensor), f"{marker}.ns": sensor.name}
    lengths = {"markers": 1, f"{marker}.points": 2 * count, f"{marker}.colors": 2 * count}
    seconds, nanoseconds = divmod(round(2.0 * (1.0 / sensor.rate + longest_ping) * 1e9), NANOSECONDS_PER_SECOND)
    constants: dict[str, ArrayLike] = {
        f"{marker}.type": LINE_LIST,
        f"{marker}.pose.orientation.w": 1.0,
        f"{marker}.scale.x": LINE_WIDTH,
        f"{marker}.color.a": 1.0,
        f"{marker}.lifetime.sec": seconds,
        f"{marker}.lifetime.nanosec": nanoseconds,
        **{f"{marker}.points.{2 * k}": position for k, position in enumerate(positions)},
        **{f"{marker}.colors.{i}.a": 1.0 for i in range(2 * count)},
    }

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock, f"{marker}.header.stamp")
        lengths, states = compute_beams(stamp.size, arrays)
        colors = COLORS[states]
        for k in range(count):
            write_vectors(rows, f"{marker}.points.{2 * k + 1}", positions[k] + lengths[:, k, None] * axes[k])
            for i in (2 * k, 2 * k + 1):
                for j, letter in enumerate("rgb"):
                    rows[f"{marker}.colors.{i}.{letter}"] = colors[:, k, j]

    return MessageEncoder(TYPE, build_layout(TYPE, strings, lengths).with_constants(constants), fill)


def select_lengths(choices: Sequence[FloatArray], limit: float) -> FloatArray:
    """Return the first finite length (n, k) m of several, else a limit."""
    lengths = np.full(choices[0].shape, limit)
    for values in reversed(choices):
        lengths = np.where(np.isfinite(values), values, lengths)
    return lengths

"""Names, stamps and covariances of sensor messages."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.readings import Reading, to_nanoseconds
from navsense.core.typing import IntArray, Times
from navsense.world import MountedSensor

SeriesKind: TypeAlias = Literal["measured", "ideal", "bias"]
"""Series of a sensor's messages: the measured values, the ideal values or the biases."""

SpecT = TypeVar("SpecT")

AGE = "age"
"""Name of an additional array: delay (n,) s from the time of validity to the output time.

`recordings.message_builder` adds it.
"""

IS_ON = "is_on"
"""Name of the array with which `recordings.message_builder` fills messages without values of the reading.

It has the state (n,) of the sensor's switch.
"""

TRUE_TIME = "true time"
"""Name of the clock of a sensor without a clock."""


def get_frame_id(sensor: MountedSensor) -> str:
    """Return the `frame_id` of a sensor's messages."""
    return sensor.frame or sensor.name


def require_spec(sensor: MountedSensor, spec_class: type[SpecT]) -> SpecT:
    """Return the specification of a sensor. Raises `RecordingError` if it is not of class `spec_class`."""
    if not isinstance(sensor.spec, spec_class):
        allowed = f"must be an ns.sensors.{spec_class.__name__}"
        raise RecordingError(f"specification of sensor {sensor.name!r}", f"of type {sensor.spec.type}", allowed=allowed)
    return sensor.spec


def get_clock_name(sensor: MountedSensor) -> str:
    """Return the name of the clock that stamps a sensor's messages."""
    return sensor.clock or TRUE_TIME


NANOSECONDS_PER_SECOND = 1_000_000_000

MIN_STAMP_SECONDS, MAX_STAMP_SECONDS = -(2**31), 2**31 - 1
"""Limits of the seconds of a ROS stamp."""

MAX_CLOCK_TIME = 2.0 * MAX_STAMP_SECONDS
"""Largest absolute time (s since the start of the run) of a clock whose stamp can be within the limits.

An epoch from 0 to 2^31 - 1 must put it there.
"""


def make_stamp_error(clock: str, seconds: float) -> RecordingError:
    """Return the error of a stamp outside the limits of messages."""
    return RecordingError(
        f"stamp of clock {clock!r}, in seconds",
        seconds,
        allowed=f"must be from {MIN_STAMP_SECONDS} to {MAX_STAMP_SECONDS}",
        remedy="choose another --epoch, or a smaller clock error",
    )


def compute_stamps(reading: Reading, clock: str, time: Times | None = None) -> IntArray:
    """Return true times (n,) s on the sensor's clock, in integer nanoseconds.

    `time` is a time for each row, for example the time of validity or the arrival; by default that of the row. The
    clock error is always that of the row. Raises `RecordingError` with the name of the clock for a stamp that is not
    finite or outside the limits of all formats.
    """
    clock_time = (reading.time if time is None else time) + reading.clock_error
    if clock_time.size and not (clock_time.min() >= -MAX_CLOCK_TIME and clock_time.max() <= MAX_CLOCK_TIME):
        raise make_stamp_error(clock, float(clock_time[~(np.abs(clock_time) <= MAX_CLOCK_TIME)][0]))
    return to_nanoseconds(reading.epoch, clock_time)


def make_covariance(series_kind: SeriesKind, *stddevs: float) -> tuple[float, ...]:
    """Return the row-major covariance (unit squared) with these standard deviations on its diagonal.

    Ideal values and biases have zeros, which mean "unknown" in ROS.
    """
    size = len(stddevs)
    covariance = [0.0] * (size * size)
    if series_kind == "measured":
        for axis, stddev in enumerate(stddevs):
            covariance[axis * (size + 1)] = stddev * stddev
    return tuple(covariance)

"""What the encoders of sensors share."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

import numpy as np

from navsense.errors import RecordingError
from navsense.series import Reading, to_nanoseconds
from navsense.typing import IntArray, Times
from navsense.world import MountedSensor

SeriesKind: TypeAlias = Literal["reading", "ideal", "bias"]
"""Which of a reading's three series a message carries: what the instrument says, the truth, the hidden slow error."""

SpecT = TypeVar("SpecT")

AGE = "age"
"""Beside the arrays of a series whose messages are about earlier instants: how much earlier (n,) s."""

GLOBAL_TIME = "global time"
"""The name of the clock of a sensor that has none."""


def get_frame_id(sensor: MountedSensor) -> str:
    """Return the frame that the sensor's messages carry."""
    return sensor.frame or sensor.name


def require_spec(sensor: MountedSensor, spec_class: type[SpecT]) -> SpecT:
    """Return the sensor's sheet, which must be of a kind. Raise `RecordingError` where it is another's."""
    if not isinstance(sensor.spec, spec_class):
        what = f"sensor {sensor.name!r} of type {sensor.spec.type}"
        raise RecordingError(what, type(sensor.spec).__name__, allowed=f"must be of class {spec_class.__name__}")
    return sensor.spec


def get_clock_name(sensor: MountedSensor) -> str:
    """Return the name of the clock that stamps the sensor's messages."""
    return sensor.clock or GLOBAL_TIME


NANOSECONDS_PER_SECOND = 1_000_000_000
"""Nanoseconds in a second."""

MIN_STAMP_SECONDS, MAX_STAMP_SECONDS = -(2**31), 2**31 - 1
"""What the seconds of a ROS stamp can hold."""

MAX_CLOCK_TIME = 2.0 * MAX_STAMP_SECONDS
"""Seconds that a clock may show away from the run's start before no epoch could bring its stamps into a message."""


def stamp_error(clock: str, seconds: float) -> RecordingError:
    """Return the error of a stamp that no message can hold."""
    return RecordingError(
        f"stamp of clock {clock!r}, in seconds",
        seconds,
        allowed=f"a message holds {MIN_STAMP_SECONDS} to {MAX_STAMP_SECONDS}",
        remedy="choose another --epoch, or a smaller clock error",
    )


def compute_stamps(reading: Reading, clock: str, validity: Times | None = None) -> IntArray:
    """Return what the sensor's clock showed at each row, or at the instants `about` (n,) s, in integer nanoseconds.

    It is off by the same then as at the row. Raise `RecordingError` that names `clock` where a stamp is not finite or
    beyond all formats.
    """
    shown = (reading.time if validity is None else validity) + reading.clock_error
    if shown.size and not (shown.min() >= -MAX_CLOCK_TIME and shown.max() <= MAX_CLOCK_TIME):
        raise stamp_error(clock, float(shown[~(np.abs(shown) <= MAX_CLOCK_TIME)][0]))
    return to_nanoseconds(reading.epoch, shown)


def make_covariance(series_kind: SeriesKind, *stddevs: float) -> tuple[float, ...]:
    """Return the row-major square covariance (unit squared) with these deviations on its diagonal.

    Only a reading has any; zeros mean "unknown" in ROS.
    """
    size = len(stddevs)
    out = [0.0] * (size * size)
    if series_kind == "reading":
        for axis, deviation in enumerate(stddevs):
            out[axis * (size + 1)] = deviation * deviation
    return tuple(out)

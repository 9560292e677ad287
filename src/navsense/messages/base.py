"""What the encoders of sensors share."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

import numpy as np

from navsense.errors import SinkError
from navsense.series import Reading, nanoseconds
from navsense.typing import IntArray, Times
from navsense.world import MountedSensor

Part: TypeAlias = Literal["reading", "ideal", "bias"]
"""Which of a reading's three series a message carries: what the instrument says, the truth, the hidden slow error."""

Sheet = TypeVar("Sheet")

AGE = "age"
"""Beside the arrays of a series whose messages are about earlier instants: how much earlier (n,) s."""

GLOBAL_TIME = "global time"
"""The name of the clock of a sensor that has none."""


def frame_of(sensor: MountedSensor) -> str:
    """Return the frame that the sensor's messages carry."""
    return sensor.frame or sensor.name


def sheet_of(sensor: MountedSensor, kind: type[Sheet]) -> Sheet:
    """Return the sensor's sheet, which must be of a kind. Raise `SinkError` where it is another's."""
    if not isinstance(sensor.spec, kind):
        what = f"sensor {sensor.name!r} of type {sensor.spec.type}"
        raise SinkError(what, type(sensor.spec).__name__, allowed=f"must be of class {kind.__name__}")
    return sensor.spec


def clock_of(sensor: MountedSensor) -> str:
    """Return the name of the clock that stamps the sensor's messages."""
    return sensor.clock or GLOBAL_TIME


SECOND = 1_000_000_000
"""Nanoseconds in a second."""

SEC_MIN, SEC_MAX = -(2**31), 2**31 - 1
"""What the seconds of a ROS stamp can hold."""

FARTHEST = 2.0 * SEC_MAX
"""Seconds that a clock may show away from the run's start before no epoch could bring its stamps into a message."""


def stamp_error(clock: str, seconds: float) -> SinkError:
    """Return the error of a stamp that no message can hold."""
    return SinkError(
        f"stamp of clock {clock!r}, in seconds",
        seconds,
        allowed=f"a message holds {SEC_MIN} to {SEC_MAX}",
        remedy="choose another --epoch, or a smaller clock error",
    )


def stamps(reading: Reading, clock: str, about: Times | None = None) -> IntArray:
    """Return what the sensor's clock showed at each row, or at the instants `about` (n,) s, in integer nanoseconds.

    It is off by the same then as at the row. Raise `SinkError` that names `clock` where a stamp is not finite or
    beyond all formats.
    """
    shown = (reading.time if about is None else about) + reading.clock_error
    if shown.size and not (shown.min() >= -FARTHEST and shown.max() <= FARTHEST):
        raise stamp_error(clock, float(shown[~(np.abs(shown) <= FARTHEST)][0]))
    return nanoseconds(reading.epoch, shown)


def variances(part: Part, *deviations: float) -> tuple[float, ...]:
    """Return the row-major square covariance (unit squared) with these deviations on its diagonal.

    Only a reading has any; zeros mean "unknown" in ROS.
    """
    size = len(deviations)
    out = [0.0] * (size * size)
    if part == "reading":
        for axis, deviation in enumerate(deviations):
            out[axis * (size + 1)] = deviation * deviation
    return tuple(out)

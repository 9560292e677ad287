"""What the encoders of sensors share."""

from __future__ import annotations

from typing import Literal, TypeAlias

from navsense.world import MountedSensor

Part: TypeAlias = Literal["reading", "ideal", "bias"]
"""Which of a reading's three series a message carries: what the instrument says, the truth, the hidden slow error."""

GLOBAL_TIME = "global time"
"""The name of the clock of a sensor that has none."""


def frame_of(sensor: MountedSensor) -> str:
    """Return the frame that the sensor's messages carry."""
    return sensor.frame or sensor.name


def clock_of(sensor: MountedSensor) -> str:
    """Return the name of the clock that stamps the sensor's messages."""
    return sensor.clock or GLOBAL_TIME


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



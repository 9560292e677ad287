"""Numbers of a Doppler instrument's sheet: what is none, or lies where none can, is refused by its name.

A text and a truth value are no numbers, whatever Python makes of them. Lengths, shares and counts have both ends; only
a limit that may be none is infinite.

Source of `MAX_ENSEMBLE_DURATION`: Teledyne RD Instruments, RiverPro and RioPro ADCP Guide (October 2017), page 120,
command
TE: the interval of ensembles is set up to 23:59:59.99, and WorkHorse H-ADCP Operation Manual (May 2015), page 171: that
interval grows to what its pings take.


What messages of a Doppler instrument go by, and change no number of: whose they are, their topics and frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from navsense.errors import SensorError
from navsense.pose import Pose
from navsense.validation import is_number, validate_types

MAX_ENSEMBLE_DURATION = 86_400.0
"""s: a day, which no interval of ensembles reaches."""


def _raise_error(what: str, value: object, allowed: str, *, is_real: bool) -> None:
    """Raise `SensorError`; what is no number is shown as it would be written."""
    if is_real:
        raise SensorError(what, value, allowed=allowed)
    remedy = "write it without quotes" if isinstance(value, str) else "give a number"
    raise SensorError(what, repr(value), allowed=allowed, remedy=remedy)


def validate_reals(
    *given: tuple[str, float, float, float], is_above: bool = False, may_be_infinite: bool = False
) -> None:
    """Raise `SensorError` for a number, (what, value, least, most), that lies outside, or on `least` if `is_above`."""
    for what, value, least, most in given:
        is_real = is_number(value)
        if is_real and may_be_infinite and value == math.inf:
            continue
        if is_real and least <= value <= most and not (is_above and value == least):
            continue
        where = f"above {least:g} and at most {most:g}" if is_above else f"from {least:g} to {most:g}"
        end = ", or infinite for none" if may_be_infinite else ", and finite"
        _raise_error(what, value, f"must be {'' if is_real else 'a number '}{where}{end}", is_real=is_real)


def validate_counts(*given: tuple[str, float, int, int]) -> None:
    """Raise `SensorError` for what is no whole number from a least one to a largest: (what, value, least, most)."""
    for what, value, least, most in given:
        is_real = is_number(value)
        if not (is_real and least <= value <= most and value == int(value)):
            _raise_error(what, value, f"must be a whole number from {least} to {most}", is_real=is_real)


def validate_duration(duration: float) -> None:
    """Raise `SensorError` for an ensemble that takes longer (s) than any instrument's."""
    if not duration < MAX_ENSEMBLE_DURATION:
        allowed = f"must be below {MAX_ENSEMBLE_DURATION:g} s, a day"
        remedy = "give fewer pings, or a shorter ping_interval or maximum_range"
        raise SensorError("duration of an ensemble (s)", duration, allowed=allowed, remedy=remedy)


MAX_CLOUD_POINTS = 1000
"""Points of one beam in a point cloud, as `libdsros_ros_dvl` has them."""


class MessageDialect(StrEnum):
    """Whose messages a DVL sends, and whose documented rules hold for it under `classic`."""

    OWN = "own"
    UUV = "uuv"
    DSROS = "dsros"
    GZ = "gz"


@dataclass(frozen=True)
class DvlMessageOptions:
    """Topics, frames and numbers beside the sensor's own; empty where there is none.

    `ranges_topic` is a whole topic, else the ranges are on the sensor's own with `_ranges` behind it. A point cloud is
    in `pointcloud_frame`, in which the frame of the velocity has the pose `pointcloud_pose`, of `cloud_points` a beam.
    `beam_frames` name the beams, `beam_ids` number them, from 0 where nothing is said. Raises `SensorError`.
    """

    ranges_topic: str = ""
    pointcloud_frame: str = ""
    pointcloud_pose: Pose = Pose()
    cloud_points: int = 2
    beam_frames: tuple[str, ...] = ()
    beam_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a number of points that is none."""
        validate_counts(("points of a beam in the point cloud", self.cloud_points, 1, MAX_CLOUD_POINTS))
        validate_types(self, "of what a DVL sends")
        for name in ("beam_frames", "beam_ids"):
            object.__setattr__(self, name, tuple(vars(self)[name]))

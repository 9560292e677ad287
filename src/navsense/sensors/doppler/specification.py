"""Fields and checks that the specifications of a DVL and an ADCP share.

Numbers must have a numeric type, not text or truth values, and lie within two limits. Only optional limits can be
infinite.

Source of `MAX_ENSEMBLE_DURATION`: Teledyne RD Instruments, RiverPro and RioPro ADCP Guide (October 2017), page 120,
command TE: the interval of ensembles is at most 23:59:59.99. WorkHorse H-ADCP Operation Manual (May 2015), page 171:
the interval grows to the duration of its pings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from navsense.core.errors import SensorError
from navsense.core.pose import Pose
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.validation import check_numbers, is_number, validate_types
from navsense.sensors.range import Sound

IDENTITY_ROTATION = (1.0, 0.0, 0.0, 0.0)

TRUE_SOUND = Sound()
"""No assumed speed of sound: the instrument uses the true one."""

MAX_ENSEMBLE_DURATION = 86_400.0
"""s: a day, which no interval of ensembles reaches."""

MAX_CLOUD_POINTS = 1000
"""Points of one beam in a point cloud."""

INSTRUMENT_LIMITS = (
    ("minimum_range", 0.0, 1e5),
    ("maximum_range", 0.0, 1e5),
    ("processing_time", 0.0, 1e3),
)
"""Limits of the fields that both instruments have."""


NO_TRACK, BOTTOM_TRACK, WATER_TRACK = range(3)
"""Values of `velocity_mode`: the track of the velocity. Gazebo's `TargetType` has the last two."""

NO_ECHO, TOO_LOW, TOO_HIGH, IN_RANGE = range(4)
"""Values of `range_validity`, as `ds_sensor_msgs/Range3D` numbers them. `NO_ECHO` includes loss of lock and dropout."""


def parse_shape(letters: str, beams: int, cells: int = 0) -> int | tuple[int, ...]:
    """Return the shape of a row of an array: "mk" for m cells and k beams, "33" for a matrix, "" for a scalar (0)."""
    sizes = tuple({"m": cells, "k": beams}.get(letter) or int(letter) for letter in letters)
    if "m" in letters or len(sizes) > 1:
        return sizes
    return sizes[0] if sizes else 0


class Transducer(StrEnum):
    """How the beams are formed: by pistons, or by the phases of an array.

    >>> [one.value for one in ns.sensors.Transducer]
    ['piston', 'phased_array']
    """

    PISTON = "piston"
    PHASED_ARRAY = "phased_array"


class MessageDialect(StrEnum):
    """The program whose messages a DVL sends. Its documented rules apply with `classic`.

    `OWN` is that of navsense's `<dvl>`, with `marine_acoustic_msgs`.

    >>> [one.name for one in ns.sensors.MessageDialect]
    ['OWN', 'UUV', 'DSROS', 'GZ']
    """

    OWN = "own"
    UUV = "uuv"
    DSROS = "dsros"
    GZ = "gz"


def _raise_error(name: str, value: object, allowed: str, *, is_real: bool) -> None:
    """Raise `SensorError`; a value that is not a number is shown as Python writes it.

    The first word of `name` is the name of the field.
    """
    field = name.partition(" ")[0]
    if is_real:
        raise SensorError(name, value, allowed=allowed, field=field)
    remedy = "write it without quotes" if isinstance(value, str) else "give a number"
    raise SensorError(name, repr(value), allowed=allowed, remedy=remedy, field=field)


def validate_reals(
    *entries: tuple[str, float, float, float], is_above: bool = False, may_be_infinite: bool = False
) -> None:
    """Raise `SensorError` for a number outside its limits, given as (name, value, lowest, highest).

    With `is_above` the lowest value is invalid too.
    """
    for name, value, lowest, highest in entries:
        is_real = is_number(value)
        if is_real and may_be_infinite and value == math.inf:
            continue
        if is_real and lowest <= value <= highest and not (is_above and value == lowest):
            continue
        where = f"above {lowest:g} and at most {highest:g}" if is_above else f"from {lowest:g} to {highest:g}"
        end = ", or infinite for no limit" if may_be_infinite else ", and finite"
        _raise_error(name, value, f"must be {'' if is_real else 'a number '}{where}{end}", is_real=is_real)


def validate_counts(*entries: tuple[str, float, int, int]) -> None:
    """Raise `SensorError` for a number that is not whole or outside its limits: (name, value, lowest, highest)."""
    for name, value, lowest, highest in entries:
        is_real = is_number(value)
        if not (is_real and lowest <= value <= highest and value == int(value)):
            _raise_error(name, value, f"must be a whole number from {lowest} to {highest}", is_real=is_real)


def validate_instrument(spec: Any, limits: tuple[tuple[str, float, float], ...]) -> None:
    """Check the fields that both instruments have, the types of all fields, and the `limits` of further fields."""
    fields = ((name, vars(spec)[name], lowest, highest) for name, lowest, highest in (*INSTRUMENT_LIMITS, *limits))
    validate_reals(*fields)
    object.__setattr__(spec, "reference", check_numbers("reference", spec.reference, 4))
    validate_types(spec)
    validate_reals(("error_velocity_limit", spec.error_velocity_limit, 0.0, 1e5), may_be_infinite=True)
    if not spec.maximum_range > spec.minimum_range:
        allowed = f"must be above the minimum, {spec.minimum_range:g} m"
        raise SensorError("maximum_range (m)", spec.maximum_range, allowed=allowed, field="maximum_range")
    if not abs(math.hypot(*spec.reference) - 1.0) < 1e-6:
        allowed = "must be a unit quaternion w x y z"
        raise SensorError("reference", spec.reference, allowed=allowed, field="reference")


def validate_duration(duration: float) -> None:
    """Raise `SensorError` for an ensemble that takes a day (s) or longer."""
    if not duration < MAX_ENSEMBLE_DURATION:
        allowed = f"must be below {MAX_ENSEMBLE_DURATION:g} s, a day"
        remedy = "give fewer pings, or a shorter ping_interval or maximum_range"
        raise SensorError("duration of an ensemble (s)", duration, allowed=allowed, remedy=remedy)


def describe_sound(transducer: str, speed: float | None) -> str:
    """Describe the transducer and the assumed speed of sound (m/s)."""
    assumed = "the true speed of sound" if speed is None else f"{speed:g} m/s"
    return f"sound: {transducer.replace('_', ' ')} transducer, assumes {assumed}"


@dataclass(frozen=True)
class DvlMessageOptions:
    """Topics, frames and numbers of a DVL's messages. Raises `SensorError` for invalid values.

    ranges_topic: topic of the ranges; empty for the sensor's own topic with `_ranges` appended.
    pointcloud_frame: frame of the point cloud; empty for no point cloud.
    pointcloud_pose: pose of the output frame in that frame.
    cloud_points: points of each beam.
    beam_frames: frame of each beam; empty for none.
    beam_ids: number of each beam; empty for numbers from 0.
    world_ned_frame: name of the frame `core.pose.WORLD_NED`; empty for none. No message is in it.

    >>> ns.sensors.DvlMessageOptions(ranges_topic="/dvl/ranges")
    DvlMessageOptions(ranges_topic='/dvl/ranges')
    """

    ranges_topic: str = ""
    pointcloud_frame: str = ""
    pointcloud_pose: Pose = Pose()
    cloud_points: int = 2
    beam_frames: tuple[str, ...] = ()
    beam_ids: tuple[int, ...] = ()
    world_ned_frame: str = ""

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        validate_counts(("points of a beam in the point cloud", self.cloud_points, 1, MAX_CLOUD_POINTS))
        validate_types(self, "of the message options")
        for name in ("beam_frames", "beam_ids"):
            object.__setattr__(self, name, tuple(vars(self)[name]))

"""What a current profiler tells: its arrays by name, their axes, how far off they are, and when its pings are."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from navsense.sensors._doppler.validation import validate_reals
from navsense.typing import FloatArray
from navsense.validation import MAX_MAGNITUDE

OUTPUTS = (
    ("velocity", "m3", "m/s"),
    ("beam_velocity", "mk", "m/s"),
    ("error_velocity", "m", "m/s"),
    ("percent_good", "m", "1"),
    ("solutions", "m4", "1"),
    ("beam_percent_good", "mk", "1"),
    ("echo", "mk", "dB"),
    ("correlation", "mk", "1"),
    ("bottom_range", "k", "m"),
    ("bottom_velocity", "3", "m/s"),
    ("bottom_beam_velocity", "k", "m/s"),
    ("bottom_percent_good", "k", "1"),
    ("bottom_solutions", "4", "1"),
    ("orientation", "4", "1"),
    ("cell_distance", "m", "m"),
    ("beam_direction", "k3", "1"),
    ("time_of_validity", "", "s"),
    ("sound_speed", "", "m/s"),
)
"""Name, axes (m cells, k beams) and unit of each array of a reading."""

RELATIVE_VELOCITY = ("relative_velocity", "m3", "m/s")
"""The same of one array more, where the vehicle's motion is taken out of `velocity`: as it was before that."""

IDEAL_OUTPUTS = (
    "velocity",
    "beam_velocity",
    "error_velocity",
    "bottom_range",
    "bottom_velocity",
    "bottom_beam_velocity",
)
"""Outputs that a perfect instrument has too, beside orientation, time and speed of sound."""

CELL_BEAM_VELOCITY, CELL_AXIAL_VELOCITY, ATTITUDE, OUTPUT_ROTATION = "cell_velocity", "cell_axial", "attitude", "frames"
ECHO_RANGE, BOTTOM_BEAM_VELOCITY, SENSOR_VELOCITY, BOTTOM_OUTPUT_ROTATION = (
    "echo_range",
    "echo_velocity",
    "own_velocity",
    "bottom_frames",
)

ERROR_INPUTS = (
    CELL_BEAM_VELOCITY,
    CELL_AXIAL_VELOCITY,
    ATTITUDE,
    OUTPUT_ROTATION,
    ECHO_RANGE,
    BOTTOM_BEAM_VELOCITY,
    SENSOR_VELOCITY,
    BOTTOM_OUTPUT_ROTATION,
)
"""What the errors of a reading depend on, ensemble by ensemble."""


class CoordinateSystem(StrEnum):
    """Axes in which velocities are told."""

    BEAM = "beam"
    INSTRUMENT = "instrument"
    SHIP = "ship"
    EARTH = "earth"


class BinMapping(StrEnum):
    """How cells of tilted beams come to common heights: not at all, by the nearest cell, on a line between two."""

    NONE = "none"
    NEAREST = "nearest"
    LINEAR = "linear"


@dataclass(frozen=True)
class Accuracy:
    """Errors of velocities along the beams: of one ping `stddev` (m/s), and deviations among serial numbers.

    `long_term_scale` is a share of the velocity, `long_term_offset` (m/s) of each of the sensor's axes. Raises
    `SensorError`.
    """

    stddev: float = 0.0
    long_term_scale: float = 0.0
    long_term_offset: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no deviation."""
        given = ((f"{one.name} of a profiler's velocity", getattr(self, one.name)) for one in fields(self))
        validate_reals(*((what, value, 0.0, MAX_MAGNITUDE) for what, value in given))

    @property
    def has_long_term_errors(self) -> bool:
        """Return whether serial numbers differ."""
        return self.long_term_scale + self.long_term_offset > 0.0


def parse_shape(axes: str, cells: int, beams: int) -> int | tuple[int, ...]:
    """Return the axes of a row of m cells and k beams; 0 for a scalar."""
    sizes = tuple({"m": cells, "k": beams}.get(letter) or int(letter) for letter in axes)
    if "m" in axes or len(sizes) > 1:
        return sizes
    return sizes[0] if sizes else 0


class PingSchedule(NamedTuple):
    """How long (s) an ensemble takes, and when pings for the profile and the bottom are about after its beginning (s).

    `mean` (s) is the profile's mean instant.
    """

    duration: float
    profile_times: FloatArray
    bottom_times: FloatArray
    mean_profile_time: float


def schedule_pings(
    pings: int, bottom_pings: int, durations: tuple[float, float], delays: tuple[float, float]
) -> PingSchedule:
    """Return when pings are that stand in turn, as `_parse_janus.ensemble` has it.

    `slots` are how long (s) one for the profile and one for the bottom takes, `about` when in it (s) it is.
    """
    found: tuple[list[float], list[float]] = ([], [])
    total, passed = pings + bottom_pings, 0.0
    for s in range(total):
        kind = 1 if s * bottom_pings % total < bottom_pings else 0
        found[kind].append(passed + delays[kind])
        passed += durations[kind]
    profile, bottom = found
    return PingSchedule(passed, np.array(profile), np.array(bottom), math.fsum(profile) / len(profile))

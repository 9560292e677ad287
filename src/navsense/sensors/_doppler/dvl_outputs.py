"""What a Doppler instrument tells: its arrays by name, and those that its errors depend on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from navsense.sensors._doppler import ping
from navsense.typing import FloatArray

PER_BEAM = -1
"""Axes of an array with a number for each beam."""

OUTPUTS = (
    ("velocity", 3, "m/s"),
    ("velocity_covariance", (3, 3), "m^2/s^2"),
    ("altitude", 0, "m"),
    ("course", 0, "rad"),
    ("speed", 0, "m/s"),
    ("beam_range", PER_BEAM, "m"),
    ("beam_velocity", PER_BEAM, "m/s"),
    ("beam_valid", PER_BEAM, "1"),
    ("range_validity", PER_BEAM, "1"),
    ("beam_deviation", PER_BEAM, "m/s"),
    ("water_beam_velocity", PER_BEAM, "m/s"),
    ("water_beam_deviation", PER_BEAM, "m/s"),
    ("num_good_beams", 0, "1"),
    ("velocity_mode", 0, "1"),
    ("error_velocity", 0, "m/s"),
    ("long_term_velocity", 3, "m/s"),
    ("long_term_covariance", (3, 3), "m^2/s^2"),
    ("time_of_validity", 0, "s"),
    ("water_velocity", 3, "m/s"),
    ("water_velocity_covariance", (3, 3), "m^2/s^2"),
    ("sound_speed", 0, "m/s"),
    ("water_time_of_validity", 0, "s"),
    ("water_far", 0, "m"),
)
"""Name, axes and unit of each array of a reading."""

IDEAL_OUTPUTS = (
    *("velocity", "altitude", "course", "speed", "beam_range", "beam_velocity"),
    *("error_velocity", "water_velocity", "water_beam_velocity"),
)
"""Outputs that a perfect instrument has too; what is true of the rest is said by none."""

ECHO_RANGE, ECHO_INCIDENCE, BOTTOM_BEAM_VELOCITY, WATER_BEAM_VELOCITY = (
    "echo_range",
    "echo_incidence",
    "echo_velocity",
    "layer_velocity",
)
ATTITUDE, SENSOR_VELOCITY, LISTENING_TIME = "attitude", "own_velocity", "listening"
TIME_OF_VALIDITY, WATER_TIME_OF_VALIDITY, LAYER_FAR_BOUNDARY = "bottom_time", "layer_time", "layer_far"


class PingArrays(NamedTuple):
    """What n pings say, as kernels write it (`_doppler.ping`)."""

    scalars: FloatArray
    per_beam: FloatArray
    vectors: FloatArray
    covariances: FloatArray

    def ideal_arrays(self) -> dict[str, FloatArray]:
        """Return the arrays that a perfect instrument has too, by name."""
        scalars, per_beam, vectors, _ = self
        over = (vectors[ping.OVER_BOTTOM], scalars[ping.ALTITUDE], scalars[ping.COURSE], scalars[ping.SPEED])
        along = (per_beam[ping.SLANT_RANGE], per_beam[ping.BEAM_VELOCITY], scalars[ping.ERROR_VELOCITY])
        through = (vectors[ping.THROUGH_WATER], per_beam[ping.WATER_BEAM_VELOCITY])
        return dict(zip(IDEAL_OUTPUTS, (*over, *along, *through), strict=True))

    def named_arrays(self) -> dict[str, FloatArray]:
        """Return the arrays of a reading by name, in the order of `OUTPUTS`."""
        altitude, course, speed, count, mode, error, about, sound, water_about, far = self.scalars
        slant, along, good, size, through, through_size, validity = self.per_beam
        told, water, long_term = self.vectors
        told_square, water_square, long_term_square = self.covariances
        return {
            "velocity": told,
            "velocity_covariance": told_square,
            "altitude": altitude,
            "course": course,
            "speed": speed,
            "beam_range": slant,
            "beam_velocity": along,
            "beam_valid": good,
            "range_validity": validity,
            "beam_deviation": size,
            "water_beam_velocity": through,
            "water_beam_deviation": through_size,
            "num_good_beams": count,
            "velocity_mode": mode,
            "error_velocity": error,
            "long_term_velocity": long_term,
            "long_term_covariance": long_term_square,
            "time_of_validity": about,
            "water_velocity": water,
            "water_velocity_covariance": water_square,
            "sound_speed": sound,
            "water_time_of_validity": water_about,
            "water_far": far,
        }


def allocate(pings: int, beams: int) -> PingArrays:
    """Return room for what so many pings of so many beams say."""
    return PingArrays(
        np.empty((10, pings)), np.empty((7, pings, beams)), np.empty((3, pings, 3)), np.empty((3, pings, 3, 3))
    )

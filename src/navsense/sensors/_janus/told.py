"""What a Doppler instrument tells: its arrays by name, and those that its errors depend on."""

from __future__ import annotations

from typing import NamedTuple

from navsense.sensors._janus import ping
from navsense.typing import FloatArray

BEAMS = -1
"""Axes of an array with a number for each beam."""

THROUGH_WATER = ("water_beam_velocity", "water_beam_deviation")
"""Velocities of the beams through the water, and what is stated of them."""

OUTPUTS = (
    ("velocity", 3, "m/s"),
    ("velocity_covariance", (3, 3), "m^2/s^2"),
    ("altitude", 0, "m"),
    ("course", 0, "rad"),
    ("speed", 0, "m/s"),
    ("beam_range", BEAMS, "m"),
    ("beam_velocity", BEAMS, "m/s"),
    ("beam_valid", BEAMS, "1"),
    ("beam_deviation", BEAMS, "m/s"),
    ("water_beam_velocity", BEAMS, "m/s"),
    ("water_beam_deviation", BEAMS, "m/s"),
    ("num_good_beams", 0, "1"),
    ("velocity_mode", 0, "1"),
    ("error_velocity", 0, "m/s"),
    ("long_term_velocity", 3, "m/s"),
    ("long_term_covariance", (3, 3), "m^2/s^2"),
    ("time_of_validity", 0, "s"),
    ("water_velocity", 3, "m/s"),
    ("water_velocity_covariance", (3, 3), "m^2/s^2"),
    ("sound_speed", 0, "m/s"),
)
"""Name, axes and unit of each array of a reading."""

TRUE = (
    *("velocity", "altitude", "course", "speed", "beam_range", "beam_velocity"),
    *("error_velocity", "water_velocity", "water_beam_velocity"),
)
"""Outputs that a perfect instrument has too; what is true of the rest is said by none."""

ECHO, INCIDENCE, BOTTOM, THROUGH = "echo_range", "echo_incidence", "echo_velocity", "layer_velocity"
ATTITUDE, OWN, LISTENING = "attitude", "own_velocity", "listening"

HEARD = ((ping.ECHO, ECHO), (ping.COSINE, INCIDENCE), (ping.BOTTOM, BOTTOM), (ping.WATER, THROUGH))
"""Where kernels have what the ideal values hold."""


class Told(NamedTuple):
    """What n pings say, as kernels write it (`_janus.ping`)."""

    figures: FloatArray
    beams: FloatArray
    vectors: FloatArray
    squares: FloatArray

    def named(self) -> dict[str, FloatArray]:
        """Return the arrays of a reading, by name."""
        figures = ("altitude", "course", "speed", "num_good_beams", "velocity_mode", "error_velocity")
        beams = ("beam_range", "beam_velocity", "beam_valid", "beam_deviation", *THROUGH_WATER)
        solved = {"velocity": self.vectors[0], "velocity_covariance": self.squares[0]}
        through = {"water_velocity": self.vectors[1], "water_velocity_covariance": self.squares[1]}
        named = {**dict(zip(figures, self.figures, strict=True)), **dict(zip(beams, self.beams, strict=True))}
        return {**named, **solved, **through}

"""Vibration: lines in the angular velocity and the specific force that an instrument feels, in its own frame.

    x(t) = amplitude sin(2 pi f t + phase)                                at the instant t, s since the run's start
    mean of x over (t - T, t] = sin(pi f T) / (pi f T) x(t - T / 2)

A line is no part of the motion: the frame's attitude, velocity and place do not hold it. Sampled at an instant, a line
above half the rate shows at its alias; behind a band limit it comes with the filter's gain and phase at f.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.field_metadata import in_file
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Times, Vector
from navsense.sensors._cross_axis import check_numbers
from navsense.sensors._low_pass import compute_response

FREQUENCY, PHASE, AMPLITUDE = range(3)
"""Columns of a line (8,): Hz, rad, and from there on the amplitudes of three angular velocities and three forces."""


@kernel
def add_lines(lines: FloatArray, interval: float, time: Times, rows: FloatArray) -> None:
    """Add lines (m, 8) at the instants (n,) s to rows (6, n), or their means over the `interval` (s) before them.

    At t = 0 no interval has passed: the line itself.
    """
    for line in range(lines.shape[0]):
        frequency, phase = lines[line, FREQUENCY], lines[line, PHASE]
        mean = 1.0
        if interval > 0.0:
            half = math.pi * frequency * interval
            mean = math.sin(half) / half
        for i in range(time.shape[0]):
            ended = time[i] > 0.0
            middle = time[i] - 0.5 * interval if ended else time[i]
            turns = frequency * middle
            x = math.sin(2.0 * math.pi * (turns - np.floor(turns)) + phase) * (mean if ended else 1.0)
            for channel in range(rows.shape[0]):
                rows[channel, i] = rows[channel, i] + lines[line, AMPLITUDE + channel] * x


@dataclass(frozen=True)
class Vibration:
    """One line of vibration at `frequency` (Hz), felt in the sensor's frame.

    `linear_acceleration` (m/s^2) and `angular_velocity` (rad/s) are its amplitudes by axis, `phase` (rad) that of the
    sine at the run's start. Raises `SensorError` for a frequency that is not above zero, and numbers not finite.
    """

    frequency: float = field(metadata=in_file(above=0.0))
    linear_acceleration: Vector = (0.0, 0.0, 0.0)
    angular_velocity: Vector = (0.0, 0.0, 0.0)
    phase: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no vibration."""
        (frequency,) = check_numbers("frequency of a vibration (Hz)", (self.frequency,), 1)
        if not frequency > 0.0:
            raise SensorError("frequency of a vibration (Hz)", self.frequency, allowed="must be > 0")
        check_numbers("phase of a vibration (rad)", (self.phase,), 1)
        for name in ("linear_acceleration", "angular_velocity"):
            numbers = check_numbers(f"{name} of a vibration", getattr(self, name), 3)
            object.__setattr__(self, name, numbers)


def make_lines(vibration: Sequence[Vibration], bandwidth: float) -> FloatArray:
    """Return the lines (m, 8) as they come through a band limit (Hz, 0 for none)."""
    found = np.empty((len(vibration), AMPLITUDE + 6))
    for row, line in zip(found, vibration, strict=True):
        gain, lag = compute_response(line.frequency, bandwidth)
        amplitudes = (*line.angular_velocity, *line.linear_acceleration)
        row[:] = (line.frequency, line.phase + lag, *(gain * amplitude for amplitude in amplitudes))
    return found

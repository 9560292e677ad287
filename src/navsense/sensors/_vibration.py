"""Vibration: spectral lines in the angular velocity and the specific force, in the sensor's frame.

    x(t) = amplitude sin(2 pi f t + phase)                                at the instant t, s since the run's start
    mean of x over (t - T, t] = sin(pi f T) / (pi f T) x(t - T / 2)

A line is not part of the motion: attitude, velocity and position of the frame do not contain it. A line above half the
sampling rate appears at its alias. With a bandwidth it has the filter's gain and phase at f.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.field_metadata import in_file
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Times, Vector
from navsense.core.validation import check_numbers
from navsense.sensors._low_pass import compute_response

FREQUENCY, PHASE, AMPLITUDE = range(3)
"""Columns of a line (8,): Hz, rad, then the amplitudes of three angular velocities and three forces."""


@kernel
def add_lines(lines: FloatArray, interval: float, time: Times, rows: FloatArray) -> None:
    """Add lines (m, 8) at the instants (n,) s to rows (6, n), or their means over the preceding `interval` (s).

    At t = 0 there is no interval: the value of the line is added.
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
    """One spectral line of vibration at `frequency` (Hz), in the sensor's frame.

    linear_acceleration, angular_velocity: amplitudes by axis, m/s^2 and rad/s.
    phase: of the sine at the start of the run, rad.

    Raises `SensorError` for a frequency that is not above zero, and for numbers that are not finite.

    >>> ns.sensors.Imu(vibration=(ns.sensors.Vibration(120.0, linear_acceleration=(0.0, 0.0, 2.0)),)).vibration
    (Vibration(frequency=120.0, linear_acceleration=(0.0, 0.0, 2.0)),)
    """

    frequency: float = field(metadata=in_file(above=0.0))
    linear_acceleration: Vector = (0.0, 0.0, 0.0)
    angular_velocity: Vector = (0.0, 0.0, 0.0)
    phase: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        (frequency,) = check_numbers("frequency of a vibration (Hz)", (self.frequency,), 1)
        if not frequency > 0.0:
            raise SensorError("frequency of a vibration (Hz)", self.frequency, allowed="must be > 0")
        check_numbers("phase of a vibration (rad)", (self.phase,), 1)
        for name in ("linear_acceleration", "angular_velocity"):
            numbers = check_numbers(f"{name} of a vibration", getattr(self, name), 3)
            object.__setattr__(self, name, numbers)


def make_lines(vibration: Sequence[Vibration], bandwidth: float) -> FloatArray:
    """Return the lines (m, 8) after a low-pass (bandwidth in Hz, 0 for no limit)."""
    lines = np.empty((len(vibration), AMPLITUDE + 6))
    for row, line in zip(lines, vibration, strict=True):
        gain, lag = compute_response(line.frequency, bandwidth)
        amplitudes = (*line.angular_velocity, *line.linear_acceleration)
        row[:] = (line.frequency, line.phase + lag, *(gain * amplitude for amplitude in amplitudes))
    return lines

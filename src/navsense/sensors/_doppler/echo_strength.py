"""Strength of an echo from the bottom, what it does to a beam's velocity, and whether the beam is locked.

    S = level - 30 log10 r - 2 absorption r + 20 log10 cos i            dB above the noise, r in m
    rho = correlation s / (1 + s),   s = 10^(S / 10)
    factor = sqrt((rho^-2 - 1) / (correlation^-2 - 1))                  of the velocity's deviation, 1 for a strong echo
    P(locked) = 1 / (1 + exp(-(S - threshold) / slope))                 of one beam in one ping

The sound spreads spherically both ways, 40 log10 r, over a patch of bottom that grows with r; it loses `absorption` dB
a metre each way; a rough bottom sends back cos^2 i of it at an incidence i from its normal, by Lambert's law. The
velocity is the phase between two pulses, the deviation of which is that of the phase of a mean of M products of complex
normals of correlation rho, sqrt((rho^-2 - 1) / (2 M)) where M is many; noise takes its share of the correlation.
`correlation` is that of a strong echo, `level` the strength from 1 m off at normal incidence without absorption.

Sources: D. S. Zrnic (1977) for the phase, held against random numbers by the tests; H. Boehme et al., J. Acoust. Soc.
Am. 77 (1985) 962, doi 10.1121/1.392064, for Lambert's law on a sandy bottom. No law of lock is published: the logistic
one has its half at `threshold`, and `slope` (dB) says how sudden it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final

from navsense.errors import SensorError
from navsense.kernels import kernel
from navsense.sensors._doppler.validation import validate_reals
from navsense.validation import MAX_MAGNITUDE

MIN_STRENGTH: Final = -100.0
"""dB: fainter echoes are as noisy as this."""

_NEPERS_PER_DECIBEL: Final = math.log(10.0) / 10.0


@dataclass(frozen=True)
class EchoStrength:
    """Echo of the bottom: `level` (dB), `absorption` (dB/m, one way), `correlation`, `threshold`, `slope` (dB).

    Raises `SensorError`.
    """

    level: float
    absorption: float = 0.0
    correlation: float = 0.9
    threshold: float = 6.0
    slope: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is none."""
        given = ((f"{one.name} of the echo's strength", getattr(self, one.name)) for one in fields(self))
        validate_reals(*((what, value, -MAX_MAGNITUDE, MAX_MAGNITUDE) for what, value in given))
        if self.absorption < 0.0:
            raise SensorError("absorption of the echo's strength (dB/m)", self.absorption, allowed="must be at least 0")
        if not 0.0 < self.correlation < 1.0:
            raise SensorError(
                "correlation of the echo's strength", self.correlation, allowed="must be above 0 and below 1"
            )
        if not self.slope > 0.0:
            raise SensorError("slope of the echo's strength (dB)", self.slope, allowed="must be above 0")


@kernel
def compute_strength(level: float, absorption: float, distance: float, incidence: float) -> float:
    """Return the strength (dB) of an echo from `distance` (m), `incidence` being the cosine of its angle."""
    if distance <= 0.0:
        return math.inf
    if incidence == 0.0:
        return -math.inf
    return level - 30.0 * math.log10(distance) - 2.0 * absorption * distance + 20.0 * math.log10(abs(incidence))


@kernel
def compute_noise_factor(decibels: float, correlation: float) -> float:
    """Return what an echo of this strength (dB) multiplies the deviation of its velocity by."""
    noisier = 1.0 + math.exp(-_NEPERS_PER_DECIBEL * max(decibels, MIN_STRENGTH))
    squared = correlation * correlation
    return math.sqrt((noisier * noisier - squared) / (1.0 - squared))


@kernel
def compute_lock_probability(decibels: float, threshold: float, slope: float) -> float:
    """Return how likely a beam with an echo of this strength (dB) is locked."""
    over = (decibels - threshold) / slope
    if over < 0.0:
        share = math.exp(over)
        return share / (1.0 + share)
    return 1.0 / (1.0 + math.exp(-over))

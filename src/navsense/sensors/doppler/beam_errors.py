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


Data sheet of one track (over the bottom, or through the water): errors of the velocity along each beam.

    v_k' = v_k + errors of `noise` + long_term_scale w v_k + u_k . long_term_offset w       w: once for a serial number
    sigma = (stddev + per_speed |v|) sqrt(rate / reference_rate) factor                   of one ping

|v| is the speed of the instrument over what it tracks, `rate` the one that it is set to, that of its ticks, and
`factor` what its signal makes of it; without a reference rate the rate is not counted. Data sheets give the single-ping
deviation at some speeds, which is a floor and a part for each m/s, and the long-term accuracy as a share of the
velocity and a floor. What they call single is often a mean of the pings that fit into its interval, as many the more
the slower it is set: hence the root. A ping that comes later because the bottom is deep is not a surer one: it waits
for its echo longer and hears no more of it, so that the time between pings made does not count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Final

from navsense.errors import SensorError
from navsense.kernels import kernel
from navsense.noise.channel import MAX_MAGNITUDE, NEUTRAL, Noise
from navsense.sensors.doppler.specification import validate_reals
from navsense.validation import validate_types

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


@dataclass(frozen=True)
class DopplerTrack:
    """Errors of one track: `noise` of a beam's velocity (m/s), and what speed, rate and time add to it.

    `per_speed` is a deviation (m/s) for each m/s of speed, `reference_rate` the set rate (Hz) that they hold at, 0 for
    any; `reported_stddev` (m/s) is what the covariance states of a beam, 0 for the real one. `long_term_scale` (a
    share) and `long_term_offset` (m/s, each axis) are deviations among serial numbers. At speeds above
    `maximum_velocity` (m/s) against what is tracked, no beam has a usable echo. Raises `SensorError`.
    """

    noise: Noise = NEUTRAL
    per_speed: float = 0.0
    reference_rate: float = 0.0
    reported_stddev: float = 0.0
    long_term_scale: float = 0.0
    long_term_offset: float = 0.0
    maximum_velocity: float = math.inf

    def __post_init__(self) -> None:
        """Refuse what is no deviation."""
        validate_types(self, "of a track")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("noise", "maximum_velocity") and not 0.0 <= value < MAX_MAGNITUDE:
                raise SensorError(f"{field.name} of a track", value, allowed=f"must be from 0 to {MAX_MAGNITUDE:g}")
        if not self.maximum_velocity > 0.0:
            raise SensorError("maximum_velocity of a track", self.maximum_velocity, allowed="must be above 0")

    @property
    def has_errors(self) -> bool:
        """Tell whether anything is off, whatever is stated."""
        limits = {"reference_rate": 0.0, "reported_stddev": 0.0, "maximum_velocity": math.inf}
        return replace(self, noise=replace(self.noise, classic=False), **limits) != DopplerTrack()

    @property
    def is_white(self) -> bool:
        """Tell whether single pings have noise of their own."""
        return self.noise.has_white_noise or self.per_speed > 0.0


@kernel
def compute_stddev(
    base_stddev: float, per_speed: float, speed: float, rate: float, reference_rate: float, factor: float
) -> float:
    """Return the deviation (m/s) of a beam's velocity in one ping, at a speed (m/s), a rate (Hz), a signal's factor."""
    sigma = (base_stddev + per_speed * speed) * factor
    if reference_rate > 0.0:
        sigma = sigma * math.sqrt(rate / reference_rate)
    return sigma


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

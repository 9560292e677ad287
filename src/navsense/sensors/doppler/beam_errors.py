"""Errors of velocities along beams, of a DVL's track and of an ADCP's profile, and the strength of an echo.

The symbols are those of `sensors.doppler`.

The measured velocity of one ping of a track:

    b_k' = b_k + errors of `noise` + long_term_scale w_0 b_k + u_k . (long_term_offset w)
    sigma = (stddev + per_speed |v|) sqrt(rate / reference_rate) factor                   of one ping

w_0 and w (3,) are drawn once per instrument. |v| is the speed relative to the bottom or water. `rate` is the rate of
the ticks; without a reference rate it has no effect. `factor` is that of the echo strength.

Datasheets specify the standard deviation of a single ping as a constant plus a fraction of the speed. They specify the
long-term accuracy as a fraction of the velocity plus a constant. Some instruments average several pings into one
output, so the standard deviation scales with the square root of the rate. The longer interval between pings in deep
water is not taken into account.

The strength of an echo from the bottom, its effect on a beam's velocity, and the probability of lock are

    S = level - 30 log10 r - 2 alpha r + 20 log10 cos i                 r in m
    rho = correlation / (1 + 10^(-S / 10))
    factor = sqrt((rho^-2 - 1) / (correlation^-2 - 1))                  1 for a strong echo
    P(lock) = 1 / (1 + exp(-(S - threshold) / lock_width))              of one beam in one ping

Sound spreads spherically both ways, 40 log10 r, over a patch of bottom that grows with r. It loses alpha (`absorption`)
per metre each way. A rough bottom reflects cos^2 i at the angle i from its normal (Lambert's law). The velocity is the
phase between two pulses. The standard deviation of this phase from M pairs of pulses with correlation rho is
sqrt((rho^-2 - 1) / (2 M)) for large M. Noise reduces the correlation. `correlation` is that of a strong echo, `level`
the strength at 1 m and normal incidence without absorption.

Sources: D. S. Zrnic (1977) for the phase, tested by Monte Carlo; H. Boehme et al., J. Acoust. Soc. Am. 77 (1985) 962,
doi 10.1121/1.392064, for Lambert's law on a sandy bottom. There is no published model of bottom lock. This one is a
logistic function with probability 1/2 at `threshold` and the width `lock_width` (dB).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final

from navsense.core.errors import SensorError
from navsense.core.field_metadata import NON_NEGATIVE, in_file
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.validation import MAX_MAGNITUDE, validate_types
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sensors.doppler.specification import validate_reals

MIN_STRENGTH: Final = -100.0
"""dB: weaker echoes have the noise of this strength."""

LOG_POWER_PER_DECIBEL: Final = math.log(10.0) / 10.0
"""Natural logarithm of a ratio of powers, per decibel."""


@dataclass(frozen=True)
class TrackErrors:
    """Errors of the velocities of one track, and its maximum velocity. Raises `SensorError` for invalid values.

    noise: of a beam's velocity, m/s.
    per_speed: standard deviation per m/s of speed, m/s.
    reference_rate: rate at which the standard deviations hold, Hz; 0 for any rate.
    reported_stddev: standard deviation of a beam in the reported covariance, m/s; 0 for the true one.
    long_term_scale: standard deviation of the scale error between instruments; it is constant during a run.
    long_term_offset: standard deviation of the offset of each axis between instruments, m/s.
    maximum_velocity: relative to the bottom or water, m/s; above it no beam has a usable echo.

    >>> ns.sensors.TrackErrors(ns.Noise(stddev=0.005), long_term_scale=0.002)
    TrackErrors(noise=Noise(stddev=0.005), long_term_scale=0.002)
    """

    noise: Noise = NO_NOISE
    per_speed: float = field(default=0.0, metadata=NON_NEGATIVE)
    reference_rate: float = field(default=0.0, metadata=NON_NEGATIVE)
    reported_stddev: float = field(default=0.0, metadata=NON_NEGATIVE)
    long_term_scale: float = field(default=0.0, metadata=NON_NEGATIVE)
    long_term_offset: float = field(default=0.0, metadata=NON_NEGATIVE)
    maximum_velocity: float = field(default=math.inf, metadata=NON_NEGATIVE)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        validate_types(self, "of a track")
        for name in (entry.name for entry in fields(self)):
            value = getattr(self, name)
            if name not in ("noise", "maximum_velocity") and not 0.0 <= value < MAX_MAGNITUDE:
                raise SensorError(
                    f"{name} of a track", value, allowed=f"must be from 0 to {MAX_MAGNITUDE:g}", field=name
                )
        if not self.maximum_velocity > 0.0:
            field = "maximum_velocity"
            raise SensorError(f"{field} of a track", self.maximum_velocity, allowed="must be above 0", field=field)

    @property
    def has_errors(self) -> bool:
        """True if a measured velocity differs from the true one."""
        limits = {"reference_rate": 0.0, "reported_stddev": 0.0, "maximum_velocity": math.inf}
        return replace(self, noise=replace(self.noise, classic=False), **limits) != TrackErrors()

    @property
    def has_white_noise(self) -> bool:
        """True if each ping has its own noise."""
        return self.noise.has_white_noise or self.per_speed > 0.0

    @property
    def has_long_term_errors(self) -> bool:
        """True if a scale error or an offset is drawn for each instrument."""
        return self.long_term_scale + self.long_term_offset > 0.0


@dataclass(frozen=True)
class BeamVelocityErrors:
    """Errors of an ADCP's velocities along beams. Raises `SensorError` for invalid values.

    stddev: m/s, of one ping.
    long_term_scale: standard deviation of the scale error between instruments; it is constant during a run.
    long_term_offset: m/s, standard deviation of the offset of each axis between instruments.

    >>> ns.sensors.Adcp(profile=ns.sensors.BeamVelocityErrors(stddev=0.02, long_term_offset=0.003)).profile
    BeamVelocityErrors(stddev=0.02, long_term_offset=0.003)
    """

    stddev: float = 0.0
    long_term_scale: float = 0.0
    long_term_offset: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        values = ((f"{entry.name} of a profiler's velocity", getattr(self, entry.name)) for entry in fields(self))
        validate_reals(*((name, value, 0.0, MAX_MAGNITUDE) for name, value in values))

    @property
    def has_long_term_errors(self) -> bool:
        """True if a scale error or an offset is drawn for each instrument."""
        return self.long_term_scale + self.long_term_offset > 0.0


def make_long_term_errors(spec: TrackErrors | BeamVelocityErrors, draws: Sequence[float]) -> list[float]:
    """Return the scale error and three offsets (m/s) of an instrument from four normal draws."""
    scale, *offsets = draws
    return [spec.long_term_scale * scale, *(spec.long_term_offset * offset for offset in offsets)]


@dataclass(frozen=True)
class EchoStrength:
    """Strength of an echo: its signal-to-noise ratio S in dB. Raises `SensorError` for invalid values.

    level: signal-to-noise ratio of the echo from 1 m, dB; not the source level, not the echo intensity.
    absorption: dB/m, one way. It weakens the echo; `Beams.absorption` is separate.
    correlation: of a strong echo.
    threshold: strength with a lock probability of 1/2, dB.
    lock_width: width of the transition from no lock to lock, dB: larger is flatter. It is `slope` in files.

    >>> ns.sensors.EchoStrength(level=60.0, absorption=0.15)
    EchoStrength(level=60.0, absorption=0.15)
    """

    level: float
    absorption: float = 0.0
    correlation: float = 0.9
    threshold: float = 6.0
    lock_width: float = field(default=1.0, metadata=in_file("slope"))

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        values = ((f"{entry.name} of the echo's strength", getattr(self, entry.name)) for entry in fields(self))
        validate_reals(*((name, value, -MAX_MAGNITUDE, MAX_MAGNITUDE) for name, value in values))
        if self.absorption < 0.0:
            what, allowed = "absorption of the echo's strength (dB/m)", "must be at least 0"
            raise SensorError(what, self.absorption, allowed=allowed, field="absorption")
        if not 0.0 < self.correlation < 1.0:
            what, allowed = "correlation of the echo's strength", "must be above 0 and below 1"
            raise SensorError(what, self.correlation, allowed=allowed, field="correlation")
        if not self.lock_width > 0.0:
            what, allowed = "lock_width of the echo's strength (dB)", "must be above 0"
            raise SensorError(what, self.lock_width, allowed=allowed, field="lock_width")

    @property
    def parameters(self) -> tuple[float, float, float, float, float]:
        """Level, absorption, correlation, threshold and lock width."""
        level, absorption, correlation = float(self.level), float(self.absorption), float(self.correlation)
        return level, absorption, correlation, float(self.threshold), float(self.lock_width)


@kernel
def compute_stddev(
    base_stddev: float, per_speed: float, speed: float, rate: float, reference_rate: float, factor: float
) -> float:
    """Return the standard deviation (m/s) of a beam's velocity in one ping at a speed (m/s) and a rate (Hz)."""
    sigma = (base_stddev + per_speed * speed) * factor
    if reference_rate > 0.0:
        sigma = sigma * math.sqrt(rate / reference_rate)
    return sigma


@kernel
def compute_strength(level: float, absorption: float, distance: float, cosine: float) -> float:
    """Return the strength (dB) of an echo from `distance` (m), with the cosine of its angle of incidence."""
    if distance <= 0.0:
        return math.inf
    if cosine == 0.0:
        return -math.inf
    return level - 30.0 * math.log10(distance) - 2.0 * absorption * distance + 20.0 * math.log10(abs(cosine))


@kernel
def compute_noise_factor(strength: float, correlation: float) -> float:
    """Return the factor of a velocity's standard deviation for an echo of a strength (dB)."""
    # rho^-2 - 1 = (noise_term^2 - correlation^2) / correlation^2
    noise_term = 1.0 + math.exp(-LOG_POWER_PER_DECIBEL * max(strength, MIN_STRENGTH))
    squared = correlation * correlation
    return math.sqrt((noise_term * noise_term - squared) / (1.0 - squared))


@kernel
def compute_lock_probability(strength: float, threshold: float, lock_width: float) -> float:
    """Return the probability of lock of a beam with an echo of a strength (dB)."""
    exponent = (strength - threshold) / lock_width
    if exponent < 0.0:
        # A negative exponent does not overflow here.
        odds = math.exp(exponent)
        return odds / (1.0 + odds)
    return 1.0 / (1.0 + math.exp(-exponent))

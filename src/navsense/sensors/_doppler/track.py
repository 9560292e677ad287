"""Data sheet of one track (over the bottom, or through the water): errors of the velocity along each beam.

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
from dataclasses import dataclass, field, fields, replace

from navsense.errors import SensorError
from navsense.field_metadata import NON_NEGATIVE
from navsense.kernels import kernel
from navsense.noise.channel import NEUTRAL, Noise
from navsense.validation import MAX_MAGNITUDE, validate_types


@dataclass(frozen=True)
class DopplerTrack:
    """Errors of one track: `noise` of a beam's velocity (m/s), and what speed, rate and time add to it.

    `per_speed` is a deviation (m/s) for each m/s of speed, `reference_rate` the set rate (Hz) that they hold at, 0 for
    any; `reported_stddev` (m/s) is what the covariance states of a beam, 0 for the real one. `long_term_scale` (a
    share) and `long_term_offset` (m/s, each axis) are deviations among serial numbers. At speeds above
    `maximum_velocity` (m/s) against what is tracked, no beam has a usable echo. Raises `SensorError`.
    """

    noise: Noise = NEUTRAL
    per_speed: float = field(default=0.0, metadata=NON_NEGATIVE)
    reference_rate: float = field(default=0.0, metadata=NON_NEGATIVE)
    reported_stddev: float = field(default=0.0, metadata=NON_NEGATIVE)
    long_term_scale: float = field(default=0.0, metadata=NON_NEGATIVE)
    long_term_offset: float = field(default=0.0, metadata=NON_NEGATIVE)
    maximum_velocity: float = field(default=math.inf, metadata=NON_NEGATIVE)

    def __post_init__(self) -> None:
        """Refuse what is no deviation."""
        validate_types(self, "of a track")
        for name in (one.name for one in fields(self)):
            value = getattr(self, name)
            if name not in ("noise", "maximum_velocity") and not 0.0 <= value < MAX_MAGNITUDE:
                raise SensorError(f"{name} of a track", value, allowed=f"must be from 0 to {MAX_MAGNITUDE:g}")
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

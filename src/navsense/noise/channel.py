"""The noise of one channel, in SDF's terms."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from navsense.errors import SensorError


@dataclass(frozen=True)
class Noise:
    """Errors of one channel, in SDF's terms; every field neutral by default.

    Model, for the ideal value x of sample k at instant t_k, with standard normals w, v, u and dt = t_k - t_(k-1)::

        y_k  = quantise(saturate(x_k + turn_on + drift_k + mean + stddev w_k))
        turn_on   = bias_mean + bias_stddev u                                       once for each instance
        drift_0   = s v_0,        s = dynamic_bias_stddev sqrt(tau / 2)             stationary from the first sample
        drift_k   = exp(-dt / tau) drift_(k-1) + s sqrt(1 - exp(-2 dt / tau)) v_k   exact for any step
        tau       = dynamic_bias_correlation_time
        saturate(x) = min(max(x, minimum), maximum)
        quantise(x) = precision * round(x / precision), halves away from zero

    Under `classic` the turn-on value has a random sign and is where the drift starts, as in Gazebo:
    ``drift_0 = sign * (bias_mean + bias_stddev u)`` and no constant beside it (constant where there is no drift).

    mean, stddev, bias_mean, bias_stddev, precision, minimum, maximum are in the channel's unit; `stddev` is per sample,
    whatever the rate; `dynamic_bias_stddev` is a driving density (unit per root second); the correlation time is in s.

    Raises `SensorError` for a value that is not finite, or is negative where a deviation, time or step stands.
    Source: SDF 1.12 `noise.sdf`; facts of Gazebo's `GaussianNoiseModel`.
    """

    mean: float = 0.0
    stddev: float = 0.0
    bias_mean: float = 0.0
    bias_stddev: float = 0.0
    dynamic_bias_stddev: float = 0.0
    dynamic_bias_correlation_time: float = 0.0
    precision: float = 0.0
    minimum: float = -math.inf
    maximum: float = math.inf
    classic: bool = False

    def __post_init__(self) -> None:
        """Refuse what no instrument can have."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "classic":
                continue
            if math.isnan(value) or (math.isinf(value) and field.name not in ("minimum", "maximum")):
                raise SensorError(field.name, value, allowed="must be a finite number")
            if LARGEST < abs(value) < math.inf:
                raise SensorError(field.name, value, allowed=f"must be of a size below {LARGEST:g}")
            if value < 0.0 and field.name in NOT_NEGATIVE:
                raise SensorError(field.name, value, allowed="must be >= 0")
        if not self.minimum < self.maximum:
            raise SensorError("minimum", self.minimum, allowed=f"must be below the maximum {self.maximum!r}")
        if self.dynamic_bias_stddev > 0.0 and self.dynamic_bias_correlation_time == 0.0:
            raise SensorError(
                "dynamic_bias_correlation_time",
                0.0,
                allowed="must be > 0 where dynamic_bias_stddev is",
                remedy="give the correlation time in seconds, or leave the dynamic bias out",
            )

    @property
    def starts(self) -> bool:
        """True where there is a turn-on bias."""
        return self.bias_mean != 0.0 or self.bias_stddev > 0.0

    @property
    def drifts(self) -> bool:
        """True where the dynamic bias acts."""
        return self.dynamic_bias_stddev > 0.0


LARGEST = 1e100
"""Above this size products of parameters leave the range of doubles."""

NOT_NEGATIVE = frozenset(("stddev", "bias_stddev", "dynamic_bias_stddev", "dynamic_bias_correlation_time", "precision"))
"""Fields of `Noise` that are deviations, times or steps."""

NEUTRAL = Noise()

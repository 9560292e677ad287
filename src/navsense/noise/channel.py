"""The noise of one channel, in SDF's terms and in those of data sheets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from navsense.errors import SensorError
from navsense.field_metadata import NON_NEGATIVE, NOT_IN_FILE, get_file_fields, in_file
from navsense.noise.white import white_stddev
from navsense.validation import validate_types

ROOM_TEMPERATURE = 298.15
"""Kelvin: 25 degrees Celsius, at which data sheets print their figures."""

MAX_MAGNITUDE = 1e100
"""Above this size products of parameters leave the range of doubles."""

_DATASHEET = in_file(parent="navsense:noise")
_DATASHEET_NON_NEGATIVE = in_file(parent="navsense:noise", minimum=0.0)


@dataclass(frozen=True)
class Noise:
    """Errors of one channel, every field neutral by default.

    Model, for the ideal value x of sample k at instant t_k, with standard normals w, v, u, dt = t_k - t_(k-1) and the
    temperature T_k above `reference_temperature`::

        y_k  = quantise(saturate(gain_k x_k + slow_k + mean + sigma_k w_k + outlier_k))
        gain_k = 1 + scale_factor + scale_factor_stddev u + scale_temperature_coefficient T_k
        slow_k = turn_on + drift_k + flicker_k + walk_k + temperature_coefficient T_k
        sigma_k = sqrt(stddev^2 + noise_density^2 / dt)
        turn_on   = bias_mean + bias_stddev u                                       once for each instance
        drift_0   = s v_0,        s = dynamic_bias_stddev sqrt(tau / 2)             stationary from the first sample
        drift_k   = exp(-dt / tau) drift_(k-1) + s sqrt(1 - exp(-2 dt / tau)) v_k   exact for any step
        tau       = dynamic_bias_correlation_time
        flicker   : Allan deviation flat at 0.664 bias_instability from 0.1 s to 10^4 s, see `noise.flicker`
        walk_k    = walk_(k-1) + random_walk sqrt(dt) v_k,  walk_0 = 0
        outlier_k = outlier_stddev w, in a share `outlier_probability` of the samples
        saturate(x) = min(max(x, minimum), maximum)
        quantise(x) = precision * round(x / precision), halves away from zero

    Under `classic` the turn-on value has a random sign and is where the drift starts, as in Gazebo:
    ``drift_0 = sign * (bias_mean + bias_stddev u)`` and no constant beside it (constant where there is no drift).

    In the channel's unit: mean, stddev, bias_mean, bias_stddev, bias_instability, precision, minimum, maximum,
    outlier_stddev. `stddev` is per sample, whatever the rate; `noise_density` is a density (unit per root hertz) of a
    sensor band-limited to its rate; `dynamic_bias_stddev` and `random_walk` are driving densities (unit per root
    second); the correlation time is in s; scale factors are fractions; temperature coefficients are a kelvin.

    Raises `SensorError` for a value that is no finite number, or is negative where a deviation, time or step stands.
    Source: SDF 1.12 `noise.sdf`; facts of Gazebo's `GaussianNoiseModel`; IEEE 952-1997, annex C, for the densities.
    """

    mean: float = 0.0
    stddev: float = field(default=0.0, metadata=NON_NEGATIVE)
    bias_mean: float = 0.0
    bias_stddev: float = field(default=0.0, metadata=NON_NEGATIVE)
    dynamic_bias_stddev: float = field(default=0.0, metadata=NON_NEGATIVE)
    dynamic_bias_correlation_time: float = field(default=0.0, metadata=NON_NEGATIVE)
    precision: float = field(default=0.0, metadata=NON_NEGATIVE)
    minimum: float = field(default=-math.inf, metadata=in_file("navsense:minimum"))
    maximum: float = field(default=math.inf, metadata=in_file("navsense:maximum"))
    classic: bool = field(default=False, metadata=NOT_IN_FILE)
    noise_density: float = field(default=0.0, metadata=_DATASHEET_NON_NEGATIVE)
    bias_instability: float = field(default=0.0, metadata=_DATASHEET_NON_NEGATIVE)
    random_walk: float = field(default=0.0, metadata=_DATASHEET_NON_NEGATIVE)
    scale_factor: float = field(default=0.0, metadata=_DATASHEET)
    scale_factor_stddev: float = field(default=0.0, metadata=_DATASHEET_NON_NEGATIVE)
    temperature_coefficient: float = field(default=0.0, metadata=_DATASHEET)
    scale_temperature_coefficient: float = field(default=0.0, metadata=_DATASHEET)
    reference_temperature: float = field(default=ROOM_TEMPERATURE, metadata=_DATASHEET_NON_NEGATIVE)
    outlier_probability: float = field(default=0.0, metadata=_DATASHEET_NON_NEGATIVE)
    outlier_stddev: float = field(default=0.0, metadata=_DATASHEET_NON_NEGATIVE)

    def __post_init__(self) -> None:
        """Refuse what no instrument can have."""
        validate_types(self)
        for name, file in get_file_fields(Noise).items():
            value = getattr(self, name)
            if value != value or (abs(value) == math.inf and name not in ("minimum", "maximum")):
                raise SensorError(name, value, allowed="must be a finite number")
            if MAX_MAGNITUDE < abs(value) < math.inf:
                raise SensorError(name, value, allowed=f"must be of a size below {MAX_MAGNITUDE:g}")
            if value < file.minimum:
                raise SensorError(name, value, allowed="must be >= 0")
        if self.outlier_probability > 1.0:
            raise SensorError("outlier_probability", self.outlier_probability, allowed="must be from 0 to 1")
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
    def has_turn_on_bias(self) -> bool:
        """True where there is a turn-on bias."""
        return self.bias_mean != 0.0 or self.bias_stddev > 0.0

    @property
    def has_dynamic_bias(self) -> bool:
        """True where the dynamic bias acts."""
        return self.dynamic_bias_stddev > 0.0

    @property
    def has_white_noise(self) -> bool:
        """True where there is white noise."""
        return self.stddev > 0.0 or self.noise_density > 0.0

    @property
    def has_outliers(self) -> bool:
        """True where there are outliers."""
        return self.outlier_probability > 0.0 and self.outlier_stddev > 0.0

    @property
    def has_temperature_coefficient(self) -> bool:
        """True where the temperature acts."""
        return self.temperature_coefficient != 0.0 or self.scale_temperature_coefficient != 0.0

    def white_stddev(self, rate: float) -> float:
        """Return the deviation of the white noise of samples at `rate` (Hz)."""
        return white_stddev(1.0 / rate, self.stddev, self.noise_density)

    def white_density(self, rate: float) -> float:
        """Return the density (unit per root hertz) of the white noise of samples at `rate` (Hz)."""
        return self.white_stddev(rate) / math.sqrt(rate)


NEUTRAL = Noise()


def make_example_noise(size: float, **overrides: float) -> Noise:
    """Return a noise in which every term acts, of the order of `size` (channel's unit); `given` replaces some."""
    terms: dict[str, Any] = {
        "mean": 0.1 * size,
        "stddev": size,
        "bias_mean": 0.7 * size,
        "bias_stddev": 2.0 * size,
        "dynamic_bias_stddev": 0.2 * size,
        "dynamic_bias_correlation_time": 60.0,
        "precision": 0.1 * size,
        "noise_density": 0.05 * size,
        "bias_instability": 0.3 * size,
        "random_walk": 0.4 * size,
        "scale_factor": 2e-3,
        "scale_factor_stddev": 1e-3,
        "temperature_coefficient": 0.1 * size,
        "scale_temperature_coefficient": 1e-3,
        "outlier_probability": 0.2,
        "outlier_stddev": 20.0 * size,
    }
    return Noise(**{**terms, **overrides})

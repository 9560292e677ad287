"""The noise of one channel, as SDF and datasheets specify it.

Each random process has its own stream of random numbers. The last part of the key of a stream is:

| field of `Noise` | random process | key | term of IEEE 952 |
|---|---|---|---|
| `bias_stddev` | turn-on bias | `turn_on` | |
| `bias_mean` or `bias_stddev`, with `classic` | sign of the turn-on bias | `sign` | |
| `scale_factor_stddev` | scale factor error | `scale` | |
| `dynamic_bias_stddev` | dynamic bias | `drift` (see below) | exponentially correlated (Markov) noise |
| `bias_instability` | flicker | `flicker` | bias instability B |
| `random_walk` | random walk | `walk` | rate random walk K |
| `stddev`, `noise_density` | white noise | `white` | angle random walk N |
| `outlier_probability` | occurrence of an outlier | `outlier` | |
| `outlier_stddev` | size of an outlier | `outlier_size` | |

The keys are those of the first version and never change. In all other places drift is the sum of all terms of the bias
that change during a run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from navsense.core.errors import SensorError
from navsense.core.field_metadata import NON_NEGATIVE, NOT_IN_FILE, in_file
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.validation import check_limits, check_number, validate_types
from navsense.noise import terms

ROOM_TEMPERATURE = 298.15
"""K: 25 degrees Celsius, the reference temperature of datasheets."""

_EXTENSION = in_file(container="navsense:noise")
_EXTENSION_NON_NEGATIVE = in_file(container="navsense:noise", minimum=0.0)


@dataclass(frozen=True)
class Noise:
    """The errors of one channel. The default is a channel without errors.

    The model for the input x_k of sample k at time t_k, with standard normals u, v, w, the step dt = t_k - t_(k-1) and
    the temperature T_k above `reference_temperature`. The input is the ideal value. For a magnetometer it also contains
    soft iron, hard iron and motor current::

        y_k  = quantise(saturate(scale_k x_k + bias_k + mean + sigma_k w_k + outlier_k))
        scale_k = 1 + scale_factor + scale_factor_stddev u_1 + scale_temperature_coefficient T_k
        bias_k  = turn_on + dynamic_k + flicker_k + walk_k + temperature_coefficient T_k
        sigma_k = sqrt(stddev^2 + noise_density^2 / dt)
        turn_on   = bias_mean + bias_stddev u_2
        dynamic_0 = s v_0,        s = dynamic_bias_stddev sqrt(tau / 2)             stationary from the first sample
        dynamic_k = exp(-dt / tau) dynamic_(k-1) + s sqrt(1 - exp(-2 dt / tau)) v_k   exact for any step
        tau       = dynamic_bias_correlation_time
        flicker   : Allan deviation flat at 0.664 bias_instability from 0.1 s to 10^4 s, see `noise.terms`
        walk_k    = walk_(k-1) + random_walk sqrt(dt) v_k,  walk_0 = 0
        outlier_k = outlier_stddev w with probability `outlier_probability`, else 0
        saturate(x) = min(max(x, minimum), maximum)
        quantise(x) = precision * round(x / precision), halves away from zero

    u_1 and u_2 are drawn once per run, w_k and v_k at each sample. Each term has its own draws.

    Drift is the sum of the terms that change during a run: bias_k - turn_on.

    Sample 0 has no step before it. Its sigma_0 uses the nominal step: 1 / rate, or t_1 - t_0 for your own arrays. Its
    bias is turn_on + dynamic_0 + flicker_0 + temperature_coefficient T_0.

    With `classic`, the turn-on bias has a random sign and is the initial value of the dynamic bias, as in Gazebo:
    ``dynamic_0 = sign * (bias_mean + bias_stddev u_2)`` and ``turn_on = 0``. Without a dynamic bias the turn-on bias is
    constant.

    Fields in the channel's unit: mean, stddev, bias_mean, bias_stddev, bias_instability, precision, minimum, maximum,
    outlier_stddev. Other units:

    stddev: standard deviation per sample, at any rate.
    noise_density: two-sided density N (unit per root hertz) of a sensor that is band-limited to its rate. A datasheet
        usually gives the one-sided density, which is N sqrt(2).
    dynamic_bias_stddev, random_walk: driving densities (unit per root second), the first in spite of its name in SDF.
    classic: copied from the fidelity of the sensor.
    dynamic_bias_correlation_time: s.
    scale_factor, scale_factor_stddev: fractions.
    temperature_coefficient: unit per kelvin; scale_temperature_coefficient: 1/K; reference_temperature: K. A
        coefficient requires the signal "temperature" (K) of the world.

    Raises `SensorError` for an invalid value. All numbers must be finite, except the limits `minimum` and `maximum`.
    Only `mean`, `bias_mean`, the limits, `scale_factor` and the temperature coefficients may be negative. A probability
    is at most 1, and `minimum` is below `maximum`. A dynamic bias requires a correlation time.
    Source: SDF 1.12 `noise.sdf`; Gazebo's `GaussianNoiseModel`; IEEE 952-1997, annex C, for the densities.

    >>> gyro = ns.Noise(noise_density=3e-5, bias_instability=2e-6)  # rad/s/sqrt(Hz) two-sided, rad/s
    >>> gyro
    Noise(noise_density=3e-05, bias_instability=2e-06)
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
    noise_density: float = field(default=0.0, metadata=_EXTENSION_NON_NEGATIVE)
    bias_instability: float = field(default=0.0, metadata=_EXTENSION_NON_NEGATIVE)
    random_walk: float = field(default=0.0, metadata=_EXTENSION_NON_NEGATIVE)
    scale_factor: float = field(default=0.0, metadata=_EXTENSION)
    scale_factor_stddev: float = field(default=0.0, metadata=_EXTENSION_NON_NEGATIVE)
    temperature_coefficient: float = field(default=0.0, metadata=_EXTENSION)
    scale_temperature_coefficient: float = field(default=0.0, metadata=_EXTENSION)
    reference_temperature: float = field(default=ROOM_TEMPERATURE, metadata=_EXTENSION_NON_NEGATIVE)
    outlier_probability: float = field(default=0.0, metadata=_EXTENSION_NON_NEGATIVE)
    outlier_stddev: float = field(default=0.0, metadata=_EXTENSION_NON_NEGATIVE)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        validate_types(self)
        check_limits(self, skip=[name for name in ("minimum", "maximum") if math.isinf(getattr(self, name))])
        check_number("outlier_probability", self.outlier_probability, 0.0, 1.0, field="outlier_probability")
        if not self.minimum < self.maximum:
            allowed = f"must be below the maximum {self.maximum!r}"
            raise SensorError("minimum", self.minimum, allowed=allowed, field="minimum")
        if self.dynamic_bias_stddev > 0.0 and self.dynamic_bias_correlation_time == 0.0:
            raise SensorError(
                "dynamic_bias_correlation_time",
                0.0,
                allowed="must be > 0 if dynamic_bias_stddev is",
                remedy="give the correlation time in seconds, or omit the dynamic bias",
                field="dynamic_bias_correlation_time",
            )

    @property
    def has_turn_on_bias(self) -> bool:
        """True if there is a turn-on bias."""
        return self.bias_mean != 0.0 or self.bias_stddev > 0.0

    @property
    def has_dynamic_bias(self) -> bool:
        """True if there is a dynamic bias."""
        return self.dynamic_bias_stddev > 0.0

    @property
    def has_white_noise(self) -> bool:
        """True if there is white noise."""
        return self.stddev > 0.0 or self.noise_density > 0.0

    @property
    def has_outliers(self) -> bool:
        """True if there are outliers."""
        return self.outlier_probability > 0.0 and self.outlier_stddev > 0.0

    @property
    def has_temperature_coefficient(self) -> bool:
        """True if the errors depend on the temperature."""
        return self.temperature_coefficient != 0.0 or self.scale_temperature_coefficient != 0.0

    def white_stddev(self, rate: float) -> float:
        """Return the standard deviation of the white noise of samples at `rate` (Hz)."""
        return terms.compute_white_stddev(1.0 / rate, self.stddev, self.noise_density)

    def white_density(self, rate: float) -> float:
        """Return the density (unit per root hertz) of the white noise of samples at `rate` (Hz)."""
        return self.white_stddev(rate) / math.sqrt(rate)


NO_NOISE = Noise()
"""The noise of a channel without errors."""


def make_example_noise(size: float, **overrides: float) -> Noise:
    """Return a noise with all terms, of the order of `size` (channel's unit). `overrides` replaces single fields."""
    fields: dict[str, Any] = {
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
    return Noise(**{**fields, **overrides})

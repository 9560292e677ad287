"""The noise of an IMU as Kalibr YAML, for filters.

    noise_density = sqrt(stddev^2 / rate + noise_density^2),   random_walk = sqrt(dynamic_bias_stddev^2 + random_walk^2)

`stddev` is per sample, so its density applies at the rate of the sensor. The driving density of the dynamic bias is a
random walk over spans well below its correlation time. Kalibr's model has no flicker: `bias_instability` is left out,
and a filter needs a larger random walk instead. Kalibr has one number for three axes: the largest.
Source: Kalibr wiki, "IMU Noise Model".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from navsense.noise.specification import Noise
from navsense.sensors.imu import Imu


def format_kalibr(imu: Imu, rate: float, topic: str) -> str:
    """Return the YAML text of an IMU at `rate` (Hz): densities in rad/s and m/s^2 per root hertz."""
    channels = imu.noise()
    lines = [f"# accelerometer and gyroscope of {topic}, as navsense simulates them"]
    for name, array in (("accelerometer", "linear_acceleration"), ("gyroscope", "angular_velocity")):
        lines += format_noise(name, channels[array], rate)
    lines += [f"rostopic: {topic}", f"update_rate: {rate:.9g}"]
    return "\n".join(lines) + "\n"


def format_noise(name: str, noises: Sequence[Noise], rate: float) -> list[str]:
    """Return the lines of a triad at `rate` (Hz), with comments on flicker, which the model lacks, and on zeros."""
    density = max((noise.white_density(rate) for noise in noises), default=0.0)
    walks = (math.hypot(noise.dynamic_bias_stddev, noise.random_walk) for noise in noises)
    walk = max(walks, default=0.0)
    lines = [f"{name}_noise_density: {density:.9g}", f"{name}_random_walk: {walk:.9g}"]
    flicker = max((noise.bias_instability for noise in noises), default=0.0)
    if flicker:
        lines.append(f"# {name}: bias instability B {flicker:.9g} is not part of Kalibr's model")
    if density == 0.0 or walk == 0.0:
        lines.append(f"# {name}: Kalibr requires values above 0; replace each 0, which the world does not declare")
    return lines

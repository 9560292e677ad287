"""One data sheet for simulator and filter: an IMU's sheet as the YAML that Kalibr and its users read.

    noise_density = stddev / sqrt(rate),   random_walk = dynamic_bias_stddev

`stddev` is per sample, so the density holds at the sensor's own rate; the dynamic bias's driving density is the random
walk (it is a Gauss-Markov process: over spans well below its correlation time the two agree). One number stands for
three axes, as Kalibr has it: the largest. Source: Kalibr wiki, "IMU Noise Model".
"""

from __future__ import annotations

import math

from navsense.noise.channel import Noise
from navsense.sensors.imu import Imu


def kalibr(imu: Imu, rate: float, topic: str) -> str:
    """Return the YAML text of an IMU that samples at `rate` (Hz): densities in rad/s and m/s^2 per root hertz."""
    sheet = imu.noise()
    lines = [f"# accelerometer and gyroscope of {topic}, as navsense simulates them"]
    for word, noises in (("accelerometer", sheet["linear_acceleration"]), ("gyroscope", sheet["angular_velocity"])):
        lines.append(f"{word}_noise_density: {density(noises, rate):.9g}")
        lines.append(f"{word}_random_walk: {max(noise.dynamic_bias_stddev for noise in noises):.9g}")
    lines += [f"rostopic: {topic}", f"update_rate: {rate:.9g}"]
    return "\n".join(lines) + "\n"


def density(noises: tuple[Noise, ...], rate: float) -> float:
    """Return the largest white density (unit per root hertz) of some axes at `rate` (Hz)."""
    return max(noise.stddev for noise in noises) / math.sqrt(rate)

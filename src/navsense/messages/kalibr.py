"""One data sheet for simulator and filter: an IMU's sheet as the YAML that Kalibr and its users read.

    noise_density = sqrt(stddev^2 / rate + noise_density^2),   random_walk = sqrt(dynamic_bias_stddev^2 + random_walk^2)

`stddev` is per sample, so its density holds at the sensor's own rate; the dynamic bias's driving density is a random
walk over spans well below its correlation time. Kalibr's model has no flicker: `bias_instability` is left out, and a
filter that is to bear it wants a larger random walk. One number stands for three axes, as Kalibr has it: the largest.
Source: Kalibr wiki, "IMU Noise Model".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from navsense.noise.channel import Noise
from navsense.sensors.imu import Imu


def format_kalibr(imu: Imu, rate: float, topic: str) -> str:
    """Return the YAML text of an IMU that samples at `rate` (Hz): densities in rad/s and m/s^2 per root hertz."""
    spec = imu.noise()
    lines = [f"# accelerometer and gyroscope of {topic}, as navsense simulates them"]
    for word, noises in (("accelerometer", spec["linear_acceleration"]), ("gyroscope", spec["angular_velocity"])):
        lines.append(f"{word}_noise_density: {max(noise.white_density(rate) for noise in noises):.9g}")
        lines.append(f"{word}_random_walk: {max(compute_random_walk(noise) for noise in noises):.9g}")
        lines += format_flicker_note(word, noises)
    lines += [f"rostopic: {topic}", f"update_rate: {rate:.9g}"]
    return "\n".join(lines) + "\n"


def format_flicker_note(word: str, noises: Sequence[Noise]) -> list[str]:
    """Return the comment (a line or none) that a sensor `word` has flicker, which the file leaves out."""
    flicker = max((noise.bias_instability for noise in noises), default=0.0)
    return [f"# {word}: bias instability B {flicker:.9g} is not part of Kalibr's model"] if flicker else []


def compute_random_walk(noise: Noise) -> float:
    """Return the density (unit per root second) at which the slow error of a channel walks."""
    return math.hypot(noise.dynamic_bias_stddev, noise.random_walk)

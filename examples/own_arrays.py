"""IMU errors for arrays of your own, without SDF and world.

python examples/own_arrays.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import outputs

import navsense as ns


def main() -> None:
    """Add the errors of a small robot's IMU to the true rate and specific force of a turntable."""
    rate = 200.0
    gyro = ns.Noise(stddev=2.4e-3, bias_stddev=8.7e-3, dynamic_bias_stddev=1.9e-5, dynamic_bias_correlation_time=1000.0)
    accelerometer = ns.Noise(
        stddev=2.8e-2, bias_stddev=0.2, dynamic_bias_stddev=3e-3, dynamic_bias_correlation_time=300.0
    )
    imu = ns.sensors.Imu(gyro, gyro, gyro, accelerometer, accelerometer, accelerometer)

    time = np.arange(60 * int(rate)) / rate
    turning = np.tile([0.0, 0.0, 0.5], (time.size, 1))
    force = np.tile([-(0.5**2) * 0.3, 0.0, 9.80665], (time.size, 1))
    reading = imu.apply(time, turning, force, seed=7)

    bias = reading.bias["angular_velocity"]
    white = reading["angular_velocity"] - turning - bias
    print(f"hidden gyro bias {bias[0]} rad/s, white noise {white.std():.2e} rad/s")
    assert abs(white.std() / 2.4e-3 - 1.0) < 5.5 / math.sqrt(2.0 * white.size)  # false alarm 4e-8
    assert np.array_equal(reading["angular_velocity"], imu.apply(time, turning, force, seed=7)["angular_velocity"])

    measured, true = np.degrees(reading["angular_velocity"][:, 2]), np.degrees(turning[:, 2])

    def draw(axes: Any) -> None:
        axes.plot(time[:200], measured[:200], label="reading")
        axes.plot(time[:200], true[:200] + np.degrees(bias[:200, 2]), label="truth plus bias")
        axes.plot(time[:200], true[:200], color="black", label="truth")
        outputs.label(axes, "Turntable: the first second of the gyroscope", "time (s)", "rate about z (°/s)")

    columns = {"time (s)": time, "true rate z (deg/s)": true, "measured rate z (deg/s)": measured}
    outputs.write("own_arrays", columns, draw)


if __name__ == "__main__":
    main()

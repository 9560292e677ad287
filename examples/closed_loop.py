"""A controller in the loop: it reads the simulated gyroscope and rotates the robot to a heading, step by step.

python examples/closed_loop.py
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import outputs

import navsense as ns

WORLD = Path(__file__).resolve().parent / "quadrotor.sdf"


def main() -> None:
    """Rotate a hovering quadrotor by one radian with its own IMU."""
    world = ns.load(WORLD)
    sim = ns.live(world, seed=7, driven=["quadrotor"])
    imu = sim.sensor("imu")
    step = world.max_step_size
    heading = rate = estimate = 0.0
    history = []
    for k in range(8000):
        measured = read_rate(imu.reading)
        estimate += measured * step
        acceleration = 4.0 * (1.0 - estimate) - 4.0 * measured
        rate += acceleration * step
        heading += rate * step
        pose = ns.Pose.from_rpy((0.0, 0.0, 2.0), 0.0, 0.0, heading)
        sim.step({"quadrotor": ns.State(pose, (0.0, 0.0, 0.0), angular_velocity=(0.0, 0.0, rate))})
        if k % 20 == 0:
            history.append(((k + 1) * step, heading, estimate))
    error = estimate - heading
    print(f"turned to {heading:.3f} rad, estimate {estimate:.3f} rad, error {error:+.3f} rad")
    assert imu.reading is not None
    bias = imu.reading.bias["angular_velocity"][-1, 2]
    noise = world.sensor("imu").spec.noise()["angular_velocity"][2]
    # With the error e of the estimate and the white noise n, the loop is e'' + 4 e' + 4 e = n'. The variance of e is
    # stddev^2 step / 8. The error of the integrated rate has white noise and the walk of the bias. False alarm: 4e-8.
    duration = 8000 * step
    white = noise.stddev * math.sqrt(duration * step)
    walk = noise.dynamic_bias_stddev * math.sqrt(duration**3 / 3.0)
    assert abs(estimate - 1.0) < 5.5 * noise.stddev * math.sqrt(step / 8.0)
    assert abs(error - duration * bias) < 5.5 * math.hypot(white, walk)
    time, headings, estimates = zip(*history, strict=True)

    def draw(axes: Any) -> None:
        axes.plot(time, headings, label="heading")
        axes.plot(time, estimates, label="estimate, from the gyroscope")
        axes.axhline(1.0, color="black", linestyle="--", linewidth=0.9, label="wanted")
        outputs.label(axes, "Heading controlled with a gyroscope", "time (s)", "heading (rad)")

    outputs.write("closed_loop", {"time (s)": time, "heading (rad)": headings, "estimate (rad)": estimates}, draw)


def read_rate(reading: ns.Reading | None) -> float:
    """Return the measured turn rate; 0 before the first reading."""
    return float(reading["angular_velocity"][-1, 2]) if reading else 0.0


if __name__ == "__main__":
    main()

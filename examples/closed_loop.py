"""A controller in the loop: it reads the simulated gyroscope and rotates the robot to a heading, step by step.

python examples/closed_loop.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import outputs

import navsense as ns
from navsense.core.pose import from_rpy
from navsense.simulation.live_run import LiveRun

WORLD = Path(__file__).resolve().parent / "quadrotor.sdf"


def main() -> None:
    """Rotate a hovering quadrotor by one radian with its own IMU."""
    world = ns.load(WORLD)
    sim = ns.live(world, seed=7, driven=["quadrotor"])
    step = world.max_step_size
    heading = rate = estimate = 0.0
    history = []
    for k in range(8000):
        estimate += read_rate(sim) * step
        acceleration = 4.0 * (1.0 - estimate) - 4.0 * read_rate(sim)
        rate += acceleration * step
        heading += rate * step
        pose = ns.Pose((0.0, 0.0, 2.0), from_rpy(0.0, 0.0, heading))
        sim.step({"quadrotor": ns.State(pose, (0.0, 0.0, 0.0), angular_velocity=(0.0, 0.0, rate))})
        if k % 20 == 0:
            history.append(((k + 1) * step, heading, estimate))
    error = estimate - heading
    print(f"turned to {heading:.3f} rad, believes {estimate:.3f} rad: the gyro's bias over 8 s is {error:+.3f} rad")
    bias = sim.sensor("quadrotor::base_link::imu").reading.bias["angular_velocity"][-1, 2]  # type: ignore[union-attr]
    assert abs(estimate - 1.0) < 0.05
    assert abs(error - 8.0 * bias) < 0.02
    time, headings, estimates = zip(*history, strict=True)

    def draw(axes: Any) -> None:
        axes.plot(time, headings, label="heading")
        axes.plot(time, estimates, label="estimate, from the gyroscope")
        axes.axhline(1.0, color="black", linestyle="--", linewidth=0.9, label="wanted")
        outputs.label(axes, "Heading controlled with a gyroscope", "time (s)", "heading (rad)")

    outputs.write("closed_loop", {"time (s)": time, "heading (rad)": headings, "estimate (rad)": estimates}, draw)


def read_rate(sim: LiveRun) -> float:
    """Return the measured turn rate; 0 before the first reading."""
    reading = sim.sensor("quadrotor::base_link::imu").reading
    return float(reading["angular_velocity"][-1, 2]) if reading else 0.0


if __name__ == "__main__":
    main()

"""A rover drives a square from a log of velocity commands, and its IMU dead-reckons the track.

`square.csv` has the commands, as a joystick sends them. The drive plug-in in `rover.sdf` limits their acceleration, so
the IMU feels each start and stop. Heading and speed are the sums of its readings.

python examples/drive_square.py
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import outputs

import navsense as ns

FOLDER = Path(__file__).resolve().parent

CORNERS = np.array([(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0), (0.0, 0.0)])
"""Corners of the square (m): 0.4 m/s for 5 s, and four left turns."""

SIDE_TIME = 10.0
"""Time (s) of a side with its turn."""


def main() -> None:
    """Drive the square and compare the track of the IMU with the truth."""
    world = ns.load(FOLDER / "rover.sdf")
    run = ns.simulate(world, motion=FOLDER / "square.csv", seed=7)
    truth, imu = run.truth["rover"], run["imu"]
    at_corners = run.session.link_motions["rover::base"].at(SIDE_TIME * np.arange(5.0))
    assert np.abs(at_corners.position_w[:, :2] - CORNERS).max() < 1e-9

    published = imu.emitted  # sample 0 has no interval to average
    step = 1.0 / world.sensor("imu").rate
    heading = np.cumsum(imu["angular_velocity"][published, 2]) * step
    speed = np.cumsum(imu["linear_acceleration"][published, 0]) * step
    middle = np.concatenate(([0.0], heading[:-1])) + 0.5 * np.diff(heading, prepend=0.0)
    track = np.cumsum(np.column_stack((np.cos(middle), np.sin(middle))) * (speed * step)[:, None], axis=0)
    heading_error, speed_error = heading[-1] - 2.0 * math.pi, speed[-1]
    print(f"heading after the square: {math.degrees(heading_error):+.2f} deg off, speed {speed_error:+.4f} m/s off")
    print(f"end of the dead-reckoned track: {np.hypot(*track[-1]):.3f} m from the start")
    # A sum of n readings of white noise has the deviation stddev sqrt(n) step. False alarm: 4e-8 each.
    noise = world.sensor("imu").spec.noise()
    spread = step * math.sqrt(heading.size)
    assert abs(heading_error) < 5.5 * noise["angular_velocity"][2].stddev * spread
    assert abs(speed_error) < 5.5 * noise["linear_acceleration"][0].stddev * spread

    def draw(axes: Any) -> None:
        axes.plot(truth.position[:, 0], truth.position[:, 1], label="truth")
        axes.plot(track[:, 0], track[:, 1], label="from the IMU")
        axes.set_aspect("equal")
        outputs.label(axes, "Track", "x (m)", "y (m)")

    rows = slice(None, None, 10)
    columns = {"time (s)": imu.time[published][rows], "x (m)": track[rows, 0], "y (m)": track[rows, 1]}
    outputs.write("drive_square", columns, draw, size=(5.0, 5.0))


if __name__ == "__main__":
    main()

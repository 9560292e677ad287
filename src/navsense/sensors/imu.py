"""IMU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from navsense.noise.channel import NEUTRAL, Noise
from navsense.typing import Quaternion


@dataclass(frozen=True)
class Imu:
    """Data sheet of an IMU: one noise a channel.

    `reference` is the rotation (w x y z) that takes coordinates of the orientation's reference frame to world
    coordinates; None means the sensor's own orientation at t = 0.
    """

    angular_velocity_x: Noise = NEUTRAL
    angular_velocity_y: Noise = NEUTRAL
    angular_velocity_z: Noise = NEUTRAL
    linear_acceleration_x: Noise = NEUTRAL
    linear_acceleration_y: Noise = NEUTRAL
    linear_acceleration_z: Noise = NEUTRAL
    orientation: bool = True
    reference: Quaternion | None = None

    type: ClassVar[str] = "imu"
    group: ClassVar[Literal["all", "vertical"]] = "all"
    tolerance: ClassVar[float] = 1e-12

"""Magnetometer: the world's magnetic field in the sensor's frame, plus the noise of three channels.

    field_s = rotation_ws^-1 B_w(p, t) + errors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from navsense.noise.channel import NEUTRAL, Noise


@dataclass(frozen=True)
class Magnetometer:
    """Data sheet of a magnetometer: the noise of each axis, tesla, applied after the rotation into the sensor's frame."""

    x: Noise = NEUTRAL
    y: Noise = NEUTRAL
    z: Noise = NEUTRAL

    type: ClassVar[str] = "magnetometer"
    group: ClassVar[Literal["all", "vertical"]] = "all"
    tolerance: ClassVar[float] = 1e-12

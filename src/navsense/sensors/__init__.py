"""Sensors: one file each, and the one tuple that names them all."""

from __future__ import annotations

from navsense.sensors.base import Measured, Output, Sensor
from navsense.sensors.imu import Imu
from navsense.sensors.magnetometer import Magnetometer

SENSORS: tuple[type[Sensor], ...] = (Imu, Magnetometer)
"""Every kind of sensor that navsense has; a user's own are handed to `load` beside them."""

__all__ = ["SENSORS", "Imu", "Magnetometer", "Measured", "Output", "Sensor"]

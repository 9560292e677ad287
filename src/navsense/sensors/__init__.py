"""Sensors: one file each, and the one tuple that names them all."""

from __future__ import annotations

from navsense.sensors._vibration import Vibration
from navsense.sensors.air_pressure import AirPressure
from navsense.sensors.altimeter import Altimeter, Zeroed
from navsense.sensors.base import Measured, Output, Sensor
from navsense.sensors.depth import Depth
from navsense.sensors.dvl import Dvl
from navsense.sensors.imu import Imu
from navsense.sensors.magnetometer import Magnetometer
from navsense.sensors.navsat import NavSat
from navsense.sensors.range import Cone, Fan, Range, Sound

SENSORS: tuple[type[Sensor], ...] = (Imu, Magnetometer, Altimeter, AirPressure, NavSat, Depth, Range, Dvl)
"""Every kind of sensor that navsense has; a user's own are handed to `load` beside them."""

__all__ = [
    "SENSORS",
    "AirPressure",
    "Altimeter",
    "Cone",
    "Depth",
    "Dvl",
    "Fan",
    "Imu",
    "Magnetometer",
    "Measured",
    "NavSat",
    "Output",
    "Range",
    "Sensor",
    "Sound",
    "Vibration",
    "Zeroed",
]

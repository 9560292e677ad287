"""Sensors: one file each, and the one tuple that names them all."""

from __future__ import annotations

from navsense.sensors._janus.beams import Beam, Beams, Weighting, janus
from navsense.sensors._janus.layer import Layer
from navsense.sensors._janus.longterm import LongTerm
from navsense.sensors._janus.names import Dialect, Names
from navsense.sensors._janus.profile import Cells
from navsense.sensors._janus.profiled import Accuracy, BinMapping, Coordinates
from navsense.sensors._janus.strength import EchoStrength
from navsense.sensors._janus.track import Track
from navsense.sensors._vibration import Vibration
from navsense.sensors.adcp import Adcp
from navsense.sensors.air_pressure import AirPressure
from navsense.sensors.altimeter import Altimeter, Zeroed
from navsense.sensors.base import Measured, Output, Sensor
from navsense.sensors.depth import Depth
from navsense.sensors.dvl import Dvl, Mode, Transducer
from navsense.sensors.imu import Imu
from navsense.sensors.magnetometer import Magnetometer
from navsense.sensors.navsat import NavSat
from navsense.sensors.range import Cone, Fan, Range, Sound

SENSORS: tuple[type[Sensor], ...] = (Imu, Magnetometer, Altimeter, AirPressure, NavSat, Depth, Range, Dvl, Adcp)
"""Every kind of sensor that navsense has; a user's own are handed to `load` beside them."""

__all__ = [
    "SENSORS",
    "Accuracy",
    "Adcp",
    "AirPressure",
    "Altimeter",
    "Beam",
    "Beams",
    "BinMapping",
    "Cells",
    "Cone",
    "Coordinates",
    "Depth",
    "Dialect",
    "Dvl",
    "EchoStrength",
    "Fan",
    "Imu",
    "Layer",
    "LongTerm",
    "Magnetometer",
    "Measured",
    "Mode",
    "Names",
    "NavSat",
    "Output",
    "Range",
    "Sensor",
    "Sound",
    "Track",
    "Transducer",
    "Vibration",
    "Weighting",
    "Zeroed",
    "janus",
]

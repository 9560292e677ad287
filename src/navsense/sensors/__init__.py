"""The sensors of navsense, a file each, and the tuple that lists them."""

from __future__ import annotations

from navsense.sensors._vibration import Vibration
from navsense.sensors.adcp import Adcp
from navsense.sensors.air_pressure import AirPressure
from navsense.sensors.altimeter import Altimeter, ZeroReference
from navsense.sensors.base import Measurement, Output, Sensor
from navsense.sensors.camera import Camera, CameraIntrinsics, CameraProjection, LensDistortion
from navsense.sensors.depth import Depth
from navsense.sensors.doppler import Transducer
from navsense.sensors.doppler.beam_errors import BeamVelocityErrors, EchoStrength, TrackErrors
from navsense.sensors.doppler.beams import Beam, Beams, BeamWeighting, make_janus_beams
from navsense.sensors.doppler.cells import DepthCells
from navsense.sensors.doppler.ensemble import BinMapping, CoordinateSystem
from navsense.sensors.doppler.long_term_filter import LongTermFilter
from navsense.sensors.doppler.specification import DvlMessageOptions, MessageDialect
from navsense.sensors.doppler.water import WaterMassLayer
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.sensors.imu import Imu
from navsense.sensors.magnetometer import Magnetometer
from navsense.sensors.navsat import NavSat
from navsense.sensors.range import Cone, Fan, Range, Sound

SENSORS: tuple[type[Sensor], ...] = (Imu, Magnetometer, Altimeter, AirPressure, NavSat, Depth, Range, Dvl, Adcp, Camera)
"""All sensors of navsense. `load` accepts a user's own sensors in addition."""

__all__ = [
    "SENSORS",
    "Adcp",
    "AirPressure",
    "Altimeter",
    "Beam",
    "BeamVelocityErrors",
    "BeamWeighting",
    "Beams",
    "BinMapping",
    "Camera",
    "CameraIntrinsics",
    "CameraProjection",
    "Cone",
    "CoordinateSystem",
    "Depth",
    "DepthCells",
    "Dvl",
    "DvlMessageOptions",
    "EchoStrength",
    "Fan",
    "Imu",
    "LensDistortion",
    "LongTermFilter",
    "Magnetometer",
    "Measurement",
    "MessageDialect",
    "NavSat",
    "Output",
    "Range",
    "Sensor",
    "Sound",
    "TrackErrors",
    "TrackMode",
    "Transducer",
    "Vibration",
    "WaterMassLayer",
    "ZeroReference",
    "make_janus_beams",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)

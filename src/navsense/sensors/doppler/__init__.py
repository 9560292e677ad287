"""Doppler instruments: beams, cells, errors and echoes that `Dvl` and `Adcp` share.

`IDEAL_OUTPUTS` lists the outputs of a DVL that have an ideal value. `make_janus_beams`, `make_gazebo_beams` and
`make_dsros_beams` place beams as data sheets and other programs define them.
"""

from __future__ import annotations

from navsense.sensors.doppler.beam_errors import Accuracy, DopplerTrack, EchoStrength
from navsense.sensors.doppler.beams import (
    MIN_BEAMS,
    X_AZIMUTHS_DEG,
    Beam,
    Beams,
    BeamWeighting,
    make_dsros_beams,
    make_gazebo_beams,
    make_gazebo_rotation,
    make_janus_beams,
)
from navsense.sensors.doppler.cells import DepthCells
from navsense.sensors.doppler.ensemble import BinMapping, CoordinateSystem
from navsense.sensors.doppler.long_term_filter import LongTermFilter
from navsense.sensors.doppler.ping import IDEAL_OUTPUTS
from navsense.sensors.doppler.specification import (
    IDENTITY_ROTATION,
    DvlMessageOptions,
    MessageDialect,
    Transducer,
)
from navsense.sensors.doppler.water import WaterMassLayer

__all__ = [
    "IDEAL_OUTPUTS",
    "IDENTITY_ROTATION",
    "MIN_BEAMS",
    "X_AZIMUTHS_DEG",
    "Accuracy",
    "Beam",
    "BeamWeighting",
    "Beams",
    "BinMapping",
    "CoordinateSystem",
    "DepthCells",
    "DopplerTrack",
    "DvlMessageOptions",
    "EchoStrength",
    "LongTermFilter",
    "MessageDialect",
    "Transducer",
    "WaterMassLayer",
    "make_dsros_beams",
    "make_gazebo_beams",
    "make_gazebo_rotation",
    "make_janus_beams",
]

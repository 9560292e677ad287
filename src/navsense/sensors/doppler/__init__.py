"""The parts that sheets of Doppler instruments are made of, `Dvl` and `Adcp`, for whoever reads, records or fills them.

How they work together is in `_parse_janus`. `TRUE` names the arrays of a DVL that a perfect one has too; `tilted`,
`gazebo` and `make_dsros_beams` lay beams as other programs do.
"""

from __future__ import annotations

from navsense.sensors.doppler.beam_errors import Accuracy, DopplerTrack, EchoStrength
from navsense.sensors.doppler.beams import (
    MIN_BEAMS,
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
from navsense.sensors.doppler.specification import DvlMessageOptions, MessageDialect
from navsense.sensors.doppler.water import WaterMassLayer, get_forward_cosines

__all__ = [
    "IDEAL_OUTPUTS",
    "MIN_BEAMS",
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
    "WaterMassLayer",
    "get_forward_cosines",
    "make_dsros_beams",
    "make_gazebo_beams",
    "make_gazebo_rotation",
    "make_janus_beams",
]

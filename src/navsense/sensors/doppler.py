"""The parts that sheets of Doppler instruments are made of, `Dvl` and `Adcp`, for whoever reads, records or fills them.

How they work together is in `_parse_janus`. `TRUE` names the arrays of a DVL that a perfect one has too; `tilted`,
`gazebo` and `make_dsros_beams` lay beams as other programs do.
"""

from __future__ import annotations

from navsense.sensors._doppler.adcp_outputs import Accuracy, BinMapping, CoordinateSystem
from navsense.sensors._doppler.beams import (
    MIN_BEAMS,
    Beam,
    Beams,
    BeamWeighting,
    make_dsros_beams,
    make_gazebo_beams,
    make_gazebo_rotation,
    make_janus_beams,
)
from navsense.sensors._doppler.cells import DepthCells
from navsense.sensors._doppler.dvl_outputs import IDEAL_OUTPUTS
from navsense.sensors._doppler.echo_strength import EchoStrength
from navsense.sensors._doppler.long_term_filter import LongTermFilter
from navsense.sensors._doppler.message_options import DvlMessageOptions, MessageDialect
from navsense.sensors._doppler.track import DopplerTrack
from navsense.sensors._doppler.water_layer import WaterMassLayer, get_forward_cosines

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

"""The parts that sheets of Doppler instruments are made of, `Dvl` and `Adcp`, for whoever reads, records or fills them.

How they work together is in `_janus`. `TRUE` names the arrays of a DVL that a perfect one has too; `tilted`, `gazebo`
and `dsros` lay beams as other programs do.
"""

from __future__ import annotations

from navsense.sensors._janus.beams import LEAST_BEAMS, Beam, Beams, Weighting, dsros, gazebo, janus, tilted
from navsense.sensors._janus.layer import Layer, cosines
from navsense.sensors._janus.longterm import LongTerm
from navsense.sensors._janus.names import Dialect, Names
from navsense.sensors._janus.profile import Cells
from navsense.sensors._janus.profiled import Accuracy, BinMapping, Coordinates
from navsense.sensors._janus.strength import EchoStrength
from navsense.sensors._janus.told import TRUE
from navsense.sensors._janus.track import Track

__all__ = [
    "LEAST_BEAMS",
    "TRUE",
    "Accuracy",
    "Beam",
    "Beams",
    "BinMapping",
    "Cells",
    "Coordinates",
    "Dialect",
    "EchoStrength",
    "Layer",
    "LongTerm",
    "Names",
    "Track",
    "Weighting",
    "cosines",
    "dsros",
    "gazebo",
    "janus",
    "tilted",
]

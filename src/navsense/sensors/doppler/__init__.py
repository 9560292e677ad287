"""Doppler instruments: beams, cells, errors and echoes that `Dvl` and `Adcp` share.

All modules of this package, `sensors.dvl` and `sensors.adcp` use these symbols:

| symbol | meaning |
|---|---|
| s, w (index) | frame of the sensor, frame of the world; R_ws rotates from s to the world |
| p_k, x_k | position of the transducer of beam k in s, and in the world |
| u_k | axis of beam k: unit vector away from the transducer, in s |
| a | instrument axis in s: the mean of the u_k at length 1 |
| theta_k | Janus angle of beam k: cos theta_k = u_k . a |
| v | velocity of the sensor relative to the bottom or the water, in s |
| v_k | velocity of the transducer of beam k relative to the world (vector) |
| b_k | velocity along beam k (number): u_k . v, positive if the sensor moves along the beam; b_k' is measured |
| B_k | part of b_k that an error of c0 scales, see `doppler.ping` |
| r | slant range: distance from the transducer along a beam or a ray |
| l | distance from the transducer along the instrument axis: l = r cos theta_k |
| D | distance of the bottom, as the module defines it |
| i | angle of incidence: between a ray and the normal of the bottom |
| c, c0 | true and assumed speed of sound |
| t, t_r, p | output time of a ping, reception of its last echo, processing time: t = t_r + p |
| alpha | absorption of sound by water, dB/m one way |
| S | strength of an echo above the noise, dB |
| sigma, w | standard deviation, and a standard normal |
| g | weight of a ray, a sample or a beam |
| e | error velocity |

Arrays have n pings (q if the pings of several ensembles are in one array) of k beams, m rays or cells, and s samples.
In kernels, `x == x` means "x is not NaN".

`time_of_validity` and `sound_speed` have ideal values in addition to `IDEAL_OUTPUTS`. `make_janus_beams`,
`make_gazebo_beams` and `make_dsros_beams` place beams as datasheets and other programs define them.
"""

from __future__ import annotations

from navsense.sensors.doppler.beam_errors import BeamVelocityErrors, EchoStrength, TrackErrors
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
    "Beam",
    "BeamVelocityErrors",
    "BeamWeighting",
    "Beams",
    "BinMapping",
    "CoordinateSystem",
    "DepthCells",
    "DvlMessageOptions",
    "EchoStrength",
    "LongTermFilter",
    "MessageDialect",
    "TrackErrors",
    "Transducer",
    "WaterMassLayer",
    "make_dsros_beams",
    "make_gazebo_beams",
    "make_gazebo_rotation",
    "make_janus_beams",
]

"""Axes and beams of Teledyne RD Instruments' Doppler instruments in a vehicle.

Vehicle and ship axes are starboard, forward, mast. Instrument axes are X from beam 1 to 2, Y from beam 4 to 3, and Z
against the beams: up if the transducers look down. Beam velocities b are positive if bottom and transducer approach,
as those of navsense are. X, Y and Z are velocities of the bottom relative to the instrument: the opposite of those that
`sensors.doppler.solution` returns. With the Janus angle theta

    x = (b1 - b2) / (2 sin theta),   y = (b4 - b3) / (2 sin theta),   z = sum b / (4 cos theta)
    e = (b1 + b2 - b3 - b4) / (2 sqrt 2 sin theta)

and e = 0 for a three-beam solution. Heading H is clockwise from north. The inclinometers measure pitch T (`pitch`) and
roll R (`roll`). P (`tilt`) is the pitch angle of the rotation from instrument to earth axes (east, north, up):

    M = Mz(H) Mx(P) My(R'),   tan P = tan T cos R,   R' = R, or R + 180 degrees if the transducers look up

                | cos H  sin H  0 |        | 1    0      0    |        |  cos R  0  sin R |
    Mz(H)     = |-sin H  cos H  0 |,  Mx = | 0  cos P  -sin P |,  My = |    0    1    0   |
                |   0      0    1 |        | 0  sin P   cos P |        | -sin R  0  cos R |

Ship axes are level, with the vehicle's heading: M without Mz. Source: ADCP Coordinate Transformation: Formulas and
Calculations, P/N 951-6079-00, 5.3 to 5.6; tested with the vectors of the Ocean Observatories Initiative.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.typing import FloatArray, IntArray

BEAMS = 4

MIN_UPRIGHT_COSINE = math.cos(math.radians(45.0))
"""Minimum cosine of the angle between the axis of an instrument and the vertical of its vehicle."""

ANGLE_TOLERANCE = math.radians(0.5)
"""rad: tolerance of the beam angles and of the quarter turns between beams."""


class RdiBeams(NamedTuple):
    """Four beams as RDI numbers them, and the axes of an RDI instrument with these beams.

    order: indices of beams 1 to 4 among the beams of the sensor.
    angle: Janus angle, rad.
    rotation: (3, 3), instrument axes to vehicle axes.
    azimuth: of beam 3, clockwise from forward, rad.
    looks_up: true if the transducers look up.
    """

    order: IntArray
    angle: float
    rotation: FloatArray
    azimuth: float
    looks_up: bool


def find_rdi_beams(axes: FloatArray, name: str) -> RdiBeams:
    """Return beams (k, 3) in vehicle axes as RDI's beams 1 to 4.

    Beam 3 is the one within 45 degrees of forward; of two, the one to starboard.

    Raises `RecordingError` with the sensor's name unless it has four beams at one angle, a quarter turn apart.
    """
    total = axes.sum(axis=0)
    axis = total / math.sqrt(float(total @ total)) if len(axes) == BEAMS else np.zeros(3)
    if not abs(axis[2]) > MIN_UPRIGHT_COSINE:
        raise _make_beam_error(name)
    angles = np.arccos(np.clip(axes @ axis, -1.0, 1.0))
    looks_up = bool(axis[2] > 0.0)
    forward = np.array((0.0, 1.0, 0.0)) - axis[1] * axis
    forward /= math.sqrt(float(forward @ forward))
    starboard = np.cross(forward, axis if looks_up else -axis)
    azimuths = np.arctan2(axes @ starboard, axes @ forward)
    candidates = np.where(np.abs(azimuths) <= 0.25 * math.pi + ANGLE_TOLERANCE, azimuths, -math.inf)
    third = int(np.argmax(candidates))
    # Seen from above, beams 3, 2, 4, 1 are clockwise if they look down, else counter-clockwise.
    steps = np.array((1.0, 3.0, 0.0, 2.0)) if looks_up else np.array((3.0, 1.0, 0.0, 2.0))
    nominal = azimuths[third] + steps * 0.5 * math.pi
    deviation = np.angle(np.exp(1j * (azimuths[None, :] - nominal[:, None])))
    order = np.abs(deviation).argmin(axis=1)
    largest = max(float(np.abs(deviation[range(BEAMS), order]).max()), float(np.ptp(angles)))
    if not math.isfinite(candidates[third]) or largest > ANGLE_TOLERANCE:
        raise _make_beam_error(name)
    z = -axis
    y = axes[order[2]] - (axes[order[2]] @ axis) * axis
    y /= math.sqrt(float(y @ y))
    rotation = np.stack((np.cross(y, z), y, z), axis=1)
    return RdiBeams(order, float(angles.mean()), rotation, float(azimuths[third]), looks_up)


def _make_beam_error(name: str) -> RecordingError:
    allowed = (
        "this format requires four beams at one angle, a quarter turn apart, that look down or up (z of the model)"
    )
    remedy = "record .nmea or .mcap, or change the beams"
    return RecordingError(f"beams of sensor {name!r}", allowed=allowed, remedy=remedy)


def solve_rdi_velocity(beams: FloatArray, angle: float) -> FloatArray:
    """Return X, Y, Z and error velocity (..., 4) of beams 1 to 4 (..., 4) at a beam angle (rad).

    If one beam is NaN, the other three give X, Y, Z; the error velocity is NaN.
    """
    is_missing = np.isnan(beams)
    known = np.where(is_missing, 0.0, beams)
    signs = np.array((1.0, 1.0, -1.0, -1.0))
    complete = known - np.where(is_missing, (known @ signs)[..., None] * signs, 0.0)
    b1, b2, b3, b4 = (complete[..., i] for i in range(BEAMS))
    across, along = 0.5 / math.sin(angle), 0.25 / math.cos(angle)
    error = across / math.sqrt(2.0) * (b1 + b2 - b3 - b4)
    out = np.stack((across * (b1 - b2), across * (b4 - b3), along * (b1 + b2 + b3 + b4), error), axis=-1)
    count = is_missing.sum(axis=-1)
    out[count > 1] = math.nan
    out[count > 0, 3] = math.nan
    return out


def make_rotation(heading: FloatArray, pitch: FloatArray, roll: FloatArray, *, looks_up: bool = False) -> FloatArray:
    """Return the rotations (n, 3, 3), instrument to earth axes, of heading, pitch and roll (n,) rad.

    With a heading of 0, they rotate to ship axes.
    """
    tilt = np.arctan(np.tan(pitch) * np.cos(roll))
    axis_roll = roll + math.pi if looks_up else roll
    (ch, sh), (cp, sp), (cr, sr) = ((np.cos(a), np.sin(a)) for a in (heading, tilt, axis_roll))
    rows = (
        (ch * cr + sh * sp * sr, sh * cp, ch * sr - sh * sp * cr),
        (-sh * cr + ch * sp * sr, ch * cp, -sh * sr - ch * sp * cr),
        (-cp * sr, sp, cp * cr),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def compute_angles(rotations: FloatArray, *, looks_up: bool = False) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return heading in [0, 2 pi), pitch and roll (n,) rad: the inverse of `make_rotation`."""
    heading = np.arctan2(rotations[:, 0, 1], rotations[:, 1, 1]) % (2.0 * math.pi)
    tilt = np.arcsin(np.clip(rotations[:, 2, 1], -1.0, 1.0))
    sign = -1.0 if looks_up else 1.0
    roll = np.arctan2(-sign * rotations[:, 2, 0], sign * rotations[:, 2, 2])
    cosine = np.cos(roll)
    # Beyond a quarter turn of roll, the inclinometer shows the opposite pitch.
    pitch = np.arctan(np.tan(tilt) / np.where(np.abs(cosine) < 1e-9, 1e-9, cosine))
    return heading, pitch, roll

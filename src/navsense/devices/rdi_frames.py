"""Axes of Teledyne RD Instruments' Doppler instruments, and how they lie in a vehicle.

Vehicle and ship axes are starboard, forward, mast; the instrument's X from beam 1 to 2, Y from beam 4 to 3, Z towards
the transducers' face, so up where they look down. Beam velocities b are positive towards the transducer; with a the
beams' angle from the axis

    x = (b1 - b2) / (2 sin a),   y = (b4 - b3) / (2 sin a),   z = sum b / (4 cos a)
    e = (b1 + b2 - b3 - b4) / (2 sqrt 2 sin a)

with e = 0 for what is solved of three. Heading H (clockwise from north), pitch T and roll R, as the inclinometers have
them, take instrument to earth (east, north, up) by

    M = Mz(H) Mx(P) My(R'),   tan P = tan T cos R,   R' = R, and R + 180 degrees where the transducers look up

                | cos H  sin H  0 |        | 1    0      0    |        |  cos R  0  sin R |
    Mz(H)     = |-sin H  cos H  0 |,  Mx = | 0  cos P  -sin P |,  My = |    0    1    0   |
                |   0      0    1 |        | 0  sin P   cos P |        | -sin R  0  cos R |

Ship axes are the same without Mz: level, the vehicle's heading kept. Source: ADCP Coordinate Transformation: Formulas
and Calculations, P/N 951-6079-00, 5.3 to 5.6; held by the vectors of the Ocean Observatories Initiative.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from navsense.errors import RecordingError
from navsense.typing import FloatArray, IntArray

BEAMS = 4

MIN_UPRIGHT_COSINE = math.cos(math.radians(45.0))
"""Least cosine of the angle between an instrument's axis and the vertical of its vehicle."""

ANGLE_TOLERANCE = math.radians(0.5)
"""rad by which beams may differ from one angle and a quarter turn apart."""


class BeamMounting(NamedTuple):
    """How four beams are mounted: which of the sensor's are 1 to 4, their angle (rad), and how they lie in the vehicle.

    `turn` (3, 3) takes the instrument's axes to the vehicle's; `azimuth` is that of beam 3, clockwise from forward
    (rad); `up` where the transducers look up.
    """

    order: IntArray
    angle: float
    rotation: FloatArray
    azimuth: float
    looks_up: bool


def find_mounting(axes: FloatArray, name: str) -> BeamMounting:
    """Return how a sensor's beams (k, 3), in vehicle axes, are RDI's: beam 3 is the one next to forward, to starboard.

    Raises `RecordingError`, with the sensor's name, where they are not four at one angle, a quarter turn apart.
    """
    total = axes.sum(axis=0)
    axis = total / math.sqrt(float(total @ total)) if len(axes) == BEAMS else np.zeros(3)
    if not abs(axis[2]) > MIN_UPRIGHT_COSINE:
        raise _beam_error(name, "not four beams that look down or up")
    angles = np.arccos(np.clip(axes @ axis, -1.0, 1.0))
    up = bool(axis[2] > 0.0)
    ahead = np.array((0.0, 1.0, 0.0)) - axis[1] * axis
    ahead /= math.sqrt(float(ahead @ ahead))
    right = np.cross(ahead, axis if up else -axis)
    azimuths = np.arctan2(axes @ right, axes @ ahead)
    near = np.where(np.abs(azimuths) <= 0.25 * math.pi + ANGLE_TOLERANCE, azimuths, -math.inf)
    third = int(np.argmax(near))
    # Seen from above the numbers 3, 2, 4, 1 go clockwise where the beams look down, else the other way.
    steps = np.array((1.0, 3.0, 0.0, 2.0)) if up else np.array((3.0, 1.0, 0.0, 2.0))
    wanted = azimuths[third] + steps * 0.5 * math.pi
    off = np.angle(np.exp(1j * (azimuths[None, :] - wanted[:, None])))
    order = np.abs(off).argmin(axis=1)
    worst = max(float(np.abs(off[range(BEAMS), order]).max()), float(np.ptp(angles)))
    if not math.isfinite(near[third]) or worst > ANGLE_TOLERANCE:
        raise _beam_error(name, "not four beams at one angle, a quarter turn apart")
    z = -axis
    y = axes[order[2]] - (axes[order[2]] @ axis) * axis
    y /= math.sqrt(float(y @ y))
    turn = np.stack((np.cross(y, z), y, z), axis=1)
    return BeamMounting(order, float(angles.mean()), turn, float(azimuths[third]), up)


def _beam_error(name: str, what: str) -> RecordingError:
    """Return the error of an instrument that RDI's formats have no words for."""
    remedy = "record .nmea or .mcap, or give the instrument such beams"
    return RecordingError(f"sensor {name!r} has {what}, as this format has them", remedy=remedy)


def solve_velocity(beams: FloatArray, angle: float) -> FloatArray:
    """Return X, Y, Z and error velocity (..., 4) of the velocities (..., 4) of beams 1 to 4 at an angle (rad).

    Where one beam is NaN the other three give X, Y, Z, and there is no error velocity.
    """
    missing = np.isnan(beams)
    known = np.where(missing, 0.0, beams)
    signs = np.array((1.0, 1.0, -1.0, -1.0))
    filled = known - np.where(missing, (known @ signs)[..., None] * signs, 0.0)
    b1, b2, b3, b4 = (filled[..., i] for i in range(BEAMS))
    across, along = 0.5 / math.sin(angle), 0.25 / math.cos(angle)
    error = across / math.sqrt(2.0) * (b1 + b2 - b3 - b4)
    out = np.stack((across * (b1 - b2), across * (b4 - b3), along * (b1 + b2 + b3 + b4), error), axis=-1)
    count = missing.sum(axis=-1)
    out[count > 1] = math.nan
    out[count > 0, 3] = math.nan
    return out


def make_rotation(heading: FloatArray, pitch: FloatArray, roll: FloatArray, *, looks_up: bool = False) -> FloatArray:
    """Return the rotations (n, 3, 3) from the instrument's axes to earth's at headings, pitches and rolls (n,) rad.

    With a heading of 0 they go to ship axes.
    """
    tilt = np.arctan(np.tan(pitch) * np.cos(roll))
    turned = roll + math.pi if looks_up else roll
    (ch, sh), (cp, sp), (cr, sr) = ((np.cos(a), np.sin(a)) for a in (heading, tilt, turned))
    rows = (
        (ch * cr + sh * sp * sr, sh * cp, ch * sr - sh * sp * cr),
        (-sh * cr + ch * sp * sr, ch * cp, -sh * sr - ch * sp * cr),
        (-cp * sr, sp, cp * cr),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def compute_angles(rotations: FloatArray, *, looks_up: bool = False) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return heading in [0, 2 pi), pitch and roll (n,) rad of rotations (n, 3, 3) to earth: `rotation` undone."""
    heading = np.arctan2(rotations[:, 0, 1], rotations[:, 1, 1]) % (2.0 * math.pi)
    tilt = np.arcsin(np.clip(rotations[:, 2, 1], -1.0, 1.0))
    sign = -1.0 if looks_up else 1.0
    roll = np.arctan2(-sign * rotations[:, 2, 0], sign * rotations[:, 2, 2])
    cosine = np.cos(roll)
    # Beyond a quarter turn of roll the inclinometer shows the other side.
    pitch = np.arctan(np.tan(tilt) / np.where(np.abs(cosine) < 1e-9, 1e-9, cosine))
    return heading, pitch, roll

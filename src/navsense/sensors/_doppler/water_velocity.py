"""The velocity of transducers through water that flows: asked at places along the beams, and weighed together.

Where beam k hears cell m of ping q, at slant ranges s_i along its axis u_k, the transducer x_k moving with v_k,

    along = u_k . (v_k - sum_i w_i current(x_k + s_i u_k)),   axial = (u_k . a) a . (v_k - sum_i w_i current(...))

with a the instrument's axis: the latter is the part of `along` that comes from that axis. A layer of water is one cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from navsense.environment.base import Environment
from navsense.kernels import kernel
from navsense.motion.base import MotionBlock
from navsense.rotation import rotate
from navsense.sensors._doppler.beams import Beams
from navsense.sensors._doppler.echoes import compute_transducer_velocity
from navsense.typing import FloatArray, Quaternions, Times, Vectors

_BATCH_SIZE = 1 << 16
"""Places at which the current is asked at once: their arrays stay in the cache."""

_NO_CURRENT = np.empty((0, 3))
"""The velocities of water that does not flow."""

SlantRangeWriter = Callable[[slice, FloatArray], None]
"""Writes of a part of the pings the slant ranges (q, m, k, s) m of the places; the first NaN: the cell is not heard."""


class CellVelocities(NamedTuple):
    """Of q pings velocities (q, m, k) m/s through each cell along the beams, NaN where it is not heard.

    `axial` is the part of it that is along the instrument's axis, (u . a) (a . v).
    """

    along: FloatArray
    axial: FloatArray


@kernel
def compute_rise(
    position: FloatArray, rotation: FloatArray, transducer: FloatArray, axis: FloatArray
) -> tuple[float, float]:
    """Return the height (m) of a transducer in the world, and how much (m) its beam rises in one metre."""
    w, x, y, z = rotation[0], rotation[1], rotation[2], rotation[3]
    up = rotate(w, x, y, z, transducer[0], transducer[1], transducer[2])[2]
    return position[2] + up, rotate(w, x, y, z, axis[0], axis[1], axis[2])[2]


@kernel
def _make_places(
    position: Vectors,
    rotation: Quaternions,
    time: Times,
    transducers: Vectors,
    axes: Vectors,
    slant: FloatArray,
    place: Vectors,
    instant: Times,
) -> int:
    """Write places (count, 3) m and instants of the cells that are heard, `slant` being known; return the count."""
    count = 0
    for q in range(slant.shape[0]):
        w, x, y, z = rotation[q, 0], rotation[q, 1], rotation[q, 2], rotation[q, 3]
        for k in range(slant.shape[2]):
            a, b, c = rotate(w, x, y, z, transducers[k, 0], transducers[k, 1], transducers[k, 2])
            a, b, c = position[q, 0] + a, position[q, 1] + b, position[q, 2] + c
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            for m in range(slant.shape[1]):
                if slant[q, m, k, 0] != slant[q, m, k, 0]:
                    continue
                for s in range(slant.shape[3]):
                    far = slant[q, m, k, s]
                    place[count, 0], place[count, 1], place[count, 2] = a + far * i, b + far * j, c + far * h
                    instant[count] = time[q]
                    count += 1
    return count


@kernel
def _compute_velocities(
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    transducers: Vectors,
    axes: Vectors,
    axis: FloatArray,
    weight: FloatArray,
    slant: FloatArray,
    current: Vectors,
    along: FloatArray,
    axial: FloatArray,
) -> None:
    """Write velocities (q, m, k) m/s through water that flows (count, 3) m/s at the places; still where count is 0."""
    count = 0
    for q in range(along.shape[0]):
        w, x, y, z = rotation[q, 0], rotation[q, 1], rotation[q, 2], rotation[q, 3]
        f, g, e = rotate(w, x, y, z, axis[0], axis[1], axis[2])
        for k in range(along.shape[2]):
            p, r, t = compute_transducer_velocity(w, x, y, z, velocity[q], omega[q], transducers[k])
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            for m in range(along.shape[1]):
                along[q, m, k], axial[q, m, k] = math.nan, math.nan
                if slant[q, m, k, 0] != slant[q, m, k, 0]:
                    continue
                a, b, c = p, r, t
                if current.shape[0] > 0:
                    for s in range(weight.shape[0]):
                        a -= weight[s] * current[count, 0]
                        b -= weight[s] * current[count, 1]
                        c -= weight[s] * current[count, 2]
                        count += 1
                along[q, m, k] = i * a + j * b + h * c
                axial[q, m, k] = (i * f + j * g + h * e) * (f * a + g * b + e * c)


def sample_water_velocity(
    beams: Beams,
    truth: MotionBlock,
    environment: Environment,
    time: Times,
    cells: int,
    weight: FloatArray,
    write_slant_ranges: SlantRangeWriter,
) -> CellVelocities:
    """Return the velocity through each of the cells that the beams of pings at the instants (q,) s hear.

    `truth` is the sensor's motion then, `weight` (s,) that of the places of a cell, which `reach` knows. A world
    without a current has still water. Raises `FieldError` where the current cannot be asked.
    """
    shape = (time.shape[0], cells, len(beams.beams))
    found = CellVelocities(np.empty(shape), np.empty(shape))
    rows = max(_BATCH_SIZE // (shape[1] * shape[2] * weight.size), 1)
    for first in range(0, shape[0], rows):
        part = slice(first, first + rows)
        slant = np.empty((*found.along[part].shape, weight.size))
        write_slant_ranges(part, slant)
        place, instant, rotation = np.empty((slant.size, 3)), np.empty(slant.size), truth.rotation_wb[part]
        laid = (truth.position_w[part], rotation, time[part], beams.positions, beams.axes)
        count = _make_places(*laid, slant, place, instant)
        current = _NO_CURRENT
        if environment.current is not None and count:
            current = environment.current.at(place[:count], instant[:count])
        moving = (rotation, truth.velocity_w[part], truth.angular_velocity_b[part], beams.positions)
        _compute_velocities(
            *moving, beams.axes, beams.axis, weight, slant, current, found.along[part], found.axial[part]
        )
    return found

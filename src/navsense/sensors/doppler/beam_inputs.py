"""What a Doppler instrument hears where there is no world: one's own velocities and ranges, instead of rays.

    echo_velocity = u_k . v,   layer_velocity = u_k . w          v over the bottom, w through the water, sensor's frame
    cos i_k = |u_k . a|,       r_k = (minimum + maximum) / 2     a the mean of the axes

The bottom lies square to the instrument, and halfway between its limits where no ranges are given; an instrument whose
attitude is not given looks straight down, its x level (to the east where its axis is z). Rows are about their own time:
the first is told at once, a later one where the echoes of the last had come back, 2 max(r) / c and the processing
before. Transducers stand at the sensor's point: what it turns by is not known.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.errors import SensorError
from navsense.kernels import kernel
from navsense.sensors.doppler.beams import Beams
from navsense.sensors.doppler.ping import (
    ATTITUDE,
    BOTTOM_BEAM_VELOCITY,
    ECHO_INCIDENCE,
    ECHO_RANGE,
    LAYER_FAR_BOUNDARY_KEY,
    LISTENING_TIME,
    SENSOR_VELOCITY,
    WATER_BEAM_VELOCITY_KEY,
)
from navsense.sensors.doppler.water import WaterMassLayer, find_far_boundaries
from navsense.sensors.plausibility import check_minimum, check_values
from navsense.sensors.user_arrays import check_rows
from navsense.typing import FloatArray, Quaternion, Vector, Vectors

UNIT_TOLERANCE = 1e-6
"""By how much the length of an attitude may be off 1."""


@kernel
def _project_velocity(axes: Vectors, velocity: Vectors, distance: FloatArray, out: FloatArray) -> None:
    """Write velocities (n, k) m/s along beams whose echoes come from distances (n, k) m; NaN where there is none."""
    for n in range(distance.shape[0]):
        x, y, z = velocity[n, 0], velocity[n, 1], velocity[n, 2]
        for k in range(distance.shape[1]):
            heard = distance[n, k] < math.inf
            out[n, k] = axes[k, 0] * x + axes[k, 1] * y + axes[k, 2] * z if heard else math.nan


@kernel
def _compute_listening_times(distance: FloatArray, sound: float, reach: float, out: FloatArray) -> None:
    """Write how long (n,) s echoes from distances (n, k) m take; `reach` (m) is waited for where there is none."""
    for n in range(distance.shape[0]):
        most = -math.inf
        for k in range(distance.shape[1]):
            if most < distance[n, k] <= reach:
                most = distance[n, k]
        out[n] = 2.0 * (most if most >= 0.0 else reach) / sound


def make_level_attitude(axis: Vector) -> Quaternion:
    """Return the attitude in which a unit vector of the sensor points straight down, turned no more than that takes."""
    x, y, z = axis
    if not z < 1.0 - UNIT_TOLERANCE:
        return (0.0, 1.0, 0.0, 0.0)
    length = math.sqrt(2.0 * (1.0 - z))
    return (0.5 * length, -y / length, x / length, 0.0)


def check_velocity(name: str, given: FloatArray, count: int) -> FloatArray:
    """Return velocities (n, 3); raise `SensorError` for others."""
    rows = check_rows(name, given, (count, 3))
    check_values("dvl", name, "m/s", rows)
    return rows


def _check_attitude(given: FloatArray | None, axis: Vector, count: int) -> FloatArray:
    """Return attitudes (n, 4) of length 1; raise `SensorError` for others."""
    if given is None:
        return np.tile(make_level_attitude(axis), (count, 1))
    rows = check_rows("orientation", given, (count, 4))
    with np.errstate(over="ignore"):
        square = (rows * rows).sum(axis=1)
    wrong = np.nonzero(~(np.abs(square - 1.0) < 2.0 * UNIT_TOLERANCE))[0]
    if wrong.size:
        row = int(wrong[0])
        raise SensorError(f"orientation of row {row}", rows[row].tolist(), allowed="must be a unit quaternion w x y z")
    return rows


def make_bottom_inputs(
    beams: Beams,
    limits: tuple[float, float],
    velocity: FloatArray,
    beam_range: FloatArray | None,
    orientation: FloatArray | None,
    count: int,
) -> dict[str, FloatArray]:
    """Return what the beams hear of the bottom over one's own velocities (n, 3) m/s, as `Dvl.ideal` has it.

    `limits` are those of ranges (m). Raises `SensorError`.
    """
    shape, (x, y, z) = (count, len(beams.slant_cosines)), beams.axis.tolist()
    own = check_velocity("velocity", velocity, count)
    if beam_range is None:
        distance = np.full(shape, 0.5 * (limits[0] + limits[1]))
    else:
        distance = check_rows("beam_range", beam_range, shape, require_finite=False)
        check_minimum("beam_range", "m", distance)
    told = np.empty(shape)
    _project_velocity(beams.axes, own, distance, told)
    cosine = np.tile([abs(slant) for slant in beams.slant_cosines], (count, 1))
    attitude = _check_attitude(orientation, (x, y, z), count)
    nothing = np.full(shape, math.nan)
    return {
        ECHO_RANGE: distance,
        ECHO_INCIDENCE: cosine,
        BOTTOM_BEAM_VELOCITY: told,
        WATER_BEAM_VELOCITY_KEY: nothing,
        ATTITUDE: attitude,
        SENSOR_VELOCITY: own,
        LISTENING_TIME: np.zeros(count),
    }


def make_water_inputs(
    beams: Beams, layer: WaterMassLayer, bottom: FloatArray, velocity: FloatArray
) -> dict[str, FloatArray]:
    """Return what the beams hear of the water of a layer, as `Dvl.ideal` has it; NaN where the bottom leaves none.

    `bottom` (n,) m is its distance along the instrument's axis, `velocity` (n, 3) m/s that through the water. Raises
    `SensorError`.
    """
    shape = (bottom.shape[0], len(beams.slant_cosines))
    found, far = np.empty(shape), find_far_boundaries(layer, bottom)
    _project_velocity(beams.axes, check_velocity("water_velocity", velocity, shape[0]), np.zeros(shape), found)
    found[np.isnan(far)] = math.nan
    return {WATER_BEAM_VELOCITY_KEY: found, LAYER_FAR_BOUNDARY_KEY: far}


def compute_listening_times(distance: FloatArray, sound: float, reach: float, processing: float) -> FloatArray:
    """Return how long (n,) s each row's echoes were awaited at a speed of sound (m/s); the first not at all."""
    out = np.empty(distance.shape[0])
    _compute_listening_times(distance, sound, reach, out)
    out += processing
    out[:1] = 0.0
    return out

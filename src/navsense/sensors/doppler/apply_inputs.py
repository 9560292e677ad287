"""Ideal values of beams from velocities and ranges of the user, for `Dvl.apply`.

    true_beam_velocity = u_k . v                                          v over the bottom
    true_water_beam_velocity = u_k . v                                    v through the water
    incidence_cosine = |cos theta_k|
    true_beam_range = (minimum + maximum) / 2                             without `beam_range`

The symbols are those of `sensors.doppler`. The bottom is perpendicular to the instrument axis. Without an orientation
the instrument points straight down, with x level (to the east if its axis is z). The time of validity is the time of
the row. The first row outputs a ping. A later row outputs a ping if its own transmission is not before the previous
output. The transmission is 2 max(r) / c and the processing time before the row. Transducers are at the sensor's origin,
because the angular velocity is not known.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Quaternion, Quaternions, Vector, Vectors
from navsense.sensors.plausibility import check_minimum, check_values
from navsense.sensors.user_arrays import check_rows

UNIT_TOLERANCE = 1e-6
"""Tolerance of the length of an orientation quaternion."""


@kernel
def project_velocity(axes: Vectors, velocity: Vectors, beam_range: FloatArray) -> FloatArray:
    """Return velocities (n, k) m/s along beams with echoes from ranges (n, k) m; NaN without an echo."""
    out = np.empty(beam_range.shape)
    for n in range(beam_range.shape[0]):
        x, y, z = velocity[n, 0], velocity[n, 1], velocity[n, 2]
        for k in range(beam_range.shape[1]):
            has_echo = beam_range[n, k] < math.inf
            out[n, k] = axes[k, 0] * x + axes[k, 1] * y + axes[k, 2] * z if has_echo else math.nan
    return out


@kernel
def compute_ping_durations(
    beam_range: FloatArray, sound_speed: float, maximum_range: float, processing_time: float
) -> FloatArray:
    """Return the times (n,) s from transmission to output; 0 for the first row.

    A ping without an echo lasts as long as one with an echo from `maximum_range` (m).
    """
    out = np.zeros(beam_range.shape[0])
    for n in range(1, beam_range.shape[0]):
        farthest_echo = -math.inf
        for k in range(beam_range.shape[1]):
            if farthest_echo < beam_range[n, k] <= maximum_range:
                farthest_echo = beam_range[n, k]
        out[n] = 2.0 * (farthest_echo if farthest_echo >= 0.0 else maximum_range) / sound_speed + processing_time
    return out


def make_level_attitude(axis: Vector) -> Quaternion:
    """Return the smallest rotation that points a unit vector of the sensor straight down."""
    x, y, z = axis
    if not z < 1.0 - UNIT_TOLERANCE:
        return (0.0, 1.0, 0.0, 0.0)
    length = math.sqrt(2.0 * (1.0 - z))
    return (0.5 * length, -y / length, x / length, 0.0)


def check_velocity(name: str, velocity: FloatArray, count: int) -> Vectors:
    """Return velocities (n, 3). Raises `SensorError` for another shape or an implausible unit."""
    rows = check_rows(name, velocity, (count, 3))
    check_values("dvl", name, "m/s", rows)
    return rows


def check_beam_range(beam_range: FloatArray | None, default: float, shape: tuple[int, int]) -> FloatArray:
    """Return ranges (n, k) m, or `default` for None. Raises `SensorError` for negative ranges."""
    if beam_range is None:
        return np.full(shape, default)
    rows = check_rows("beam_range", beam_range, shape, require_finite=False)
    check_minimum("beam_range", "m", rows)
    return rows


def check_attitude(orientation: FloatArray | None, axis: FloatArray, count: int) -> Quaternions:
    """Return attitudes (n, 4), level ones for None. Raises `SensorError` for a quaternion of another length than 1."""
    if orientation is None:
        x, y, z = axis.tolist()
        return np.tile(make_level_attitude((x, y, z)), (count, 1))
    rows = check_rows("orientation", orientation, (count, 4))
    with np.errstate(over="ignore"):
        square = (rows * rows).sum(axis=1)
    invalid_rows = np.nonzero(~(np.abs(square - 1.0) < 2.0 * UNIT_TOLERANCE))[0]
    if invalid_rows.size:
        row = int(invalid_rows[0])
        raise SensorError(f"orientation of row {row}", rows[row].tolist(), allowed="must be a unit quaternion w x y z")
    return rows

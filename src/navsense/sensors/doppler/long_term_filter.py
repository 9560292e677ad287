"""Long-term velocity: a Kalman filter over single pings, with the errors of single pings and of their long-term mean.

    dv = q dW                    the true velocity is a random walk; q is `acceleration_density`
    z = v + epsilon + n          the velocity of a ping: n has the reported covariance N
    epsilon = L v + o            L and each axis of o: constant, with the standard deviations L0 and o0

epsilon is the error of the mean of many pings, the long-term accuracy of a datasheet: a fraction of the velocity plus
a constant. The filter assumes L0 (`assumed_scale`) and o0 (`assumed_offset`). The errors that the simulator adds are
`TrackErrors.long_term_scale` and `long_term_offset`. epsilon cannot be separated from v, so it is considered, not
estimated (Schmidt's filter). With an unknown initial velocity, this filter equals a plain filter for y = v + epsilon,
which is the same random walk. The covariance of epsilon is added to its result:

    P <- P + q^2 dt I,   K = P (P + N)^-1,   y <- y + K (z - y),   P <- K N,   cov v = P + L0^2 y y^T + o0^2 I

from y = z, P = N at the first ping. The frame is that of the pings, which rotates with the vehicle. q must include the
rotation too. For motion that is not a random walk the covariance is too small or too large. Bottom track and water
track have a filter each. Between pings y is kept, and ticks without a ping have no output. A failed ping repeats y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.field_metadata import in_file
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Times, Vectors
from navsense.core.validation import MAX_MAGNITUDE, validate_types
from navsense.sensors.doppler.solution import invert_symmetric

FILTER_COUNT: Final = 2
"""Filters: bottom track, water track."""

STATE_SIZE: Final = 13
"""Size of a filter's state: [0] its time (s), NaN before the first ping; [1:4] y (m/s); [4:13] P, row-major."""

ACTIVE_TRACK_INDEX: Final = FILTER_COUNT * STATE_SIZE
"""Index in the state of the `velocity_mode` of the last good ping, whose filter has the output; 0 before it."""


MIN_DENSITY: Final = 1e-12
"""m/s^2 per root hertz: below it, pings without errors make the covariance singular."""


@dataclass(frozen=True)
class LongTermFilter:
    """Filter of the long-term velocity, and the errors that it assumes. Raises `SensorError` for invalid values.

    acceleration_density: m/s^2 per root hertz, of the motion.
    assumed_offset: standard deviation of the constant error of each axis, m/s. It is `stddev` in files.
    assumed_scale: standard deviation of the scale error. It is `scale` in files.

    >>> ns.sensors.LongTermFilter(acceleration_density=0.02, assumed_offset=0.002)
    LongTermFilter(acceleration_density=0.02, assumed_offset=0.002)
    """

    acceleration_density: float
    assumed_offset: float = field(default=0.0, metadata=in_file("stddev"))
    assumed_scale: float = field(default=0.0, metadata=in_file("scale"))

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        validate_types(self, "of the long-term filter")
        limits = (
            ("acceleration_density", "m/s^2/sqrt(Hz)", MIN_DENSITY, MAX_MAGNITUDE),
            ("assumed_offset", "m/s", 0.0, MAX_MAGNITUDE),
            ("assumed_scale", "1", 0.0, 1.0),
        )
        for name, unit, minimum, below in limits:
            value = getattr(self, name)
            if not minimum <= value < below:
                what = f"{name} of the long-term filter ({unit})"
                allowed = f"must be at least {minimum:g} and below {below:g}"
                raise SensorError(what, value, allowed=allowed, field=name)


def make_state() -> FloatArray:
    """Return the state (27,) before the first ping: both filters, and the track of the last good ping."""
    return np.append(np.full(ACTIVE_TRACK_INDEX, math.nan), 0.0)


@kernel
def _update_state(state: FloatArray, added_variance: float, z: FloatArray, noise: FloatArray) -> None:
    """Add the random walk's variance to a filter, and update it with a ping z (3,) of covariance `noise` (3, 3)."""
    for i in range(3):
        state[4 + 4 * i] += added_variance  # P[i, i]
    xx, xy, xz, yy, yz, zz = invert_symmetric(
        state[4] + noise[0, 0],
        state[5] + noise[0, 1],
        state[6] + noise[0, 2],
        state[8] + noise[1, 1],
        state[9] + noise[1, 2],
        state[12] + noise[2, 2],
    )
    dx, dy, dz = z[0] - state[1], z[1] - state[2], z[2] - state[3]
    for i in range(3):
        a, b, c = state[4 + 3 * i], state[5 + 3 * i], state[6 + 3 * i]
        kx, ky, kz = a * xx + b * xy + c * xz, a * xy + b * yy + c * yz, a * xz + b * yz + c * zz
        state[1 + i] += kx * dx + ky * dy + kz * dz
        for j in range(3):
            state[4 + 3 * i + j] = kx * noise[0, j] + ky * noise[1, j] + kz * noise[2, j]
    for i in range(3):
        for j in range(i):
            mean = 0.5 * (state[4 + 3 * i + j] + state[4 + 3 * j + i])
            state[4 + 3 * i + j], state[4 + 3 * j + i] = mean, mean


@kernel
def process_ping(state: FloatArray, time: float, velocity: FloatArray, covariance: FloatArray, density: float) -> None:
    """Update one filter (13,) with a ping of `velocity` (3,) m/s and `covariance` (3, 3) at a time (s)."""
    if state[0] != state[0]:
        for i in range(3):
            state[1 + i] = velocity[i]
            for j in range(3):
                state[4 + 3 * i + j] = covariance[i, j]
    else:
        _update_state(state, density * density * (time - state[0]), velocity, covariance)
    state[0] = time


@kernel
def _filter_pings(
    density: float,
    assumed_offset: float,
    assumed_scale: float,
    state: FloatArray,
    time: Times,
    velocity_mode: FloatArray,
    velocity: Vectors,
    covariance: FloatArray,
    out: Vectors,
    out_covariance: FloatArray,
) -> None:
    """Write the long-term velocity (n, 3) and its covariance (n, 3, 3); `velocity_mode` (n,) is NaN without a ping."""
    for n in range(time.shape[0]):
        if not velocity_mode[n] >= 0.0:
            continue
        if velocity_mode[n] > 0.0:
            state[ACTIVE_TRACK_INDEX] = velocity_mode[n]
            first = (int(velocity_mode[n]) - 1) * STATE_SIZE
            process_ping(state[first : first + STATE_SIZE], time[n], velocity[n], covariance[n], density)
        if state[ACTIVE_TRACK_INDEX] > 0.0:
            first = (int(state[ACTIVE_TRACK_INDEX]) - 1) * STATE_SIZE
            filter_state = state[first : first + STATE_SIZE]
            added = assumed_offset * assumed_offset + density * density * (time[n] - filter_state[0])
            for i in range(3):
                out[n, i] = filter_state[1 + i]
                for j in range(3):
                    long_term_variance = assumed_scale * assumed_scale * filter_state[1 + i] * filter_state[1 + j]
                    out_covariance[n, i, j] = filter_state[4 + 3 * i + j] + long_term_variance
                out_covariance[n, i, i] += added


def filter_pings(
    spec: LongTermFilter,
    state: FloatArray,
    time: Times,
    velocity_mode: FloatArray,
    velocity: Vectors,
    covariance: FloatArray,
    out: Vectors,
    out_covariance: FloatArray | None = None,
) -> FloatArray:
    """Write the long-term velocity (n, 3) m/s, update the `state`, and return the covariance (n, 3, 3).

    velocity_mode: (n,), 1 for a bottom-track ping, 2 for a water-track ping, 0 for a failed one, NaN without a ping.
    out: receives the velocity. Rows without a ping, and rows before the first ping, are not written.
    out_covariance: receives the covariance. It must be filled with NaN.
    """
    if out_covariance is None:
        out_covariance = np.full((time.shape[0], 3, 3), math.nan)
    parameters = float(spec.acceleration_density), float(spec.assumed_offset), float(spec.assumed_scale)
    _filter_pings(*parameters, state, time, velocity_mode, velocity, covariance, out, out_covariance)
    return out_covariance

"""Long-term velocity out of single pings: a Kalman filter that knows the published errors of both.

    dv = q dW                    the true velocity walks; q is `acceleration_density`
    z = v + b + n                a ping: n of the covariance R that it states
    b = l v + o                  l constant of `scale`, o constant of `stddev` on each axis

b is what the mean of many pings is still off by, the long-term accuracy of a data sheet, a share and a floor. It is
considered, not estimated, as in Schmidt's filter: nothing tells it from v. Where v starts unknown that filter comes
down to a plain one for u = v + b, which walks as v does, and to whose covariance that of b is added:

    P <- P + q^2 dt I,   K = P (P + R)^-1,   u <- u + K (z - u),   P <- K R,   cov v = P + scale^2 u u^T + stddev^2 I

from u = z, P = R at the first ping. All is in the frame of the pings, which turns with the vehicle: turns are part of
the motion that q has to cover, and other motion than such a walk makes the covariance too small or too large. Pings
over the bottom and through the water have a filter each. Between pings, and where one fails, u is held.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from navsense.errors import SensorError
from navsense.kernels import kernel
from navsense.noise.channel import MAX_MAGNITUDE
from navsense.sensors.doppler.solution import invert_symmetric
from navsense.typing import FloatArray, Times, Vectors
from navsense.validation import validate_types

FILTER_COUNT: Final = 2
"""Filters: over the bottom, through the water."""

STATE_SIZE: Final = 13
"""Numbers of a filter's state: the time (s) that it holds at, NaN before the first ping; u (3,) m/s; P (3, 3)."""


MIN_DENSITY: Final = 1e-12
"""m/s^2 per root hertz: with less, pings without errors leave a covariance that has no inverse."""


@dataclass(frozen=True)
class LongTermFilter:
    """A filter: `acceleration_density` (m/s^2 per root hertz) of the motion, and the long-term error.

    This is `stddev` (m/s) on each axis, and `scale`, a share of the velocity. Raises `SensorError`.
    """

    acceleration_density: float
    stddev: float = 0.0
    scale: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no density or deviation."""
        validate_types(self, "of the long term")
        if not MIN_DENSITY <= self.acceleration_density < MAX_MAGNITUDE:
            allowed = f"must be at least {MIN_DENSITY:g} and below {MAX_MAGNITUDE:g}"
            raise SensorError(
                "acceleration_density of the long term (m/s^2/sqrt(Hz))", self.acceleration_density, allowed=allowed
            )
        if not 0.0 <= self.stddev < MAX_MAGNITUDE:
            raise SensorError(
                "stddev of the long term (m/s)", self.stddev, allowed=f"must be from 0 to {MAX_MAGNITUDE:g}"
            )
        if not 0.0 <= self.scale < 1.0:
            raise SensorError("scale of the long term", self.scale, allowed="must be at least 0 and below 1")


def make_state() -> FloatArray:
    """Return the state (27,) before the first ping: both filters, and which of them was shown last."""
    return np.append(np.full(FILTER_COUNT * STATE_SIZE, math.nan), 0.0)


@kernel
def _initialize(state: FloatArray, velocity: FloatArray, covariance: FloatArray) -> None:
    """Set a filter to its first ping."""
    for i in range(3):
        state[1 + i] = velocity[i]
        for j in range(3):
            state[4 + 3 * i + j] = covariance[i, j]


@kernel
def _update_state(state: FloatArray, growth: float, z: FloatArray, r: FloatArray) -> None:
    """Bring a filter to a ping z (3,) of covariance r (3, 3), the velocity having walked by a variance."""
    for i in range(3):
        state[4 + 4 * i] += growth
    xx, xy, xz, yy, yz, zz = invert_symmetric(
        state[4] + r[0, 0],
        state[5] + r[0, 1],
        state[6] + r[0, 2],
        state[8] + r[1, 1],
        state[9] + r[1, 2],
        state[12] + r[2, 2],
    )
    dx, dy, dz = z[0] - state[1], z[1] - state[2], z[2] - state[3]
    for i in range(3):
        a, b, c = state[4 + 3 * i], state[5 + 3 * i], state[6 + 3 * i]
        kx, ky, kz = a * xx + b * xy + c * xz, a * xy + b * yy + c * yz, a * xz + b * yz + c * zz
        state[1 + i] += kx * dx + ky * dy + kz * dz
        for j in range(3):
            state[4 + 3 * i + j] = kx * r[0, j] + ky * r[1, j] + kz * r[2, j]
    for i in range(3):
        for j in range(i):
            mean = 0.5 * (state[4 + 3 * i + j] + state[4 + 3 * j + i])
            state[4 + 3 * i + j], state[4 + 3 * j + i] = mean, mean


@kernel
def process_ping(state: FloatArray, time: float, velocity: FloatArray, covariance: FloatArray, density: float) -> None:
    """Bring one filter (13,) to a ping of `velocity` (3,) m/s and `covariance` (3, 3) at a time (s)."""
    if state[0] != state[0]:
        _initialize(state, velocity, covariance)
    else:
        _update_state(state, density * density * (time - state[0]), velocity, covariance)
    state[0] = time


@kernel
def _filter_pings(
    density: float,
    stddev: float,
    scale: float,
    state: FloatArray,
    time: Times,
    mode: FloatArray,
    velocity: Vectors,
    covariance: FloatArray,
    out: Vectors,
    spread: FloatArray,
) -> None:
    """Write the long-term velocity (n, 3) and its covariance (n, 3, 3) of pings; `mode` (n,) is NaN where none is."""
    last = FILTER_COUNT * STATE_SIZE
    for n in range(time.shape[0]):
        if not mode[n] >= 0.0:
            continue
        if mode[n] > 0.0:
            state[last] = mode[n]
            first = (int(mode[n]) - 1) * STATE_SIZE
            process_ping(state[first : first + STATE_SIZE], time[n], velocity[n], covariance[n], density)
        if state[last] > 0.0:
            first = (int(state[last]) - 1) * STATE_SIZE
            own = state[first : first + STATE_SIZE]
            added = stddev * stddev + density * density * (time[n] - own[0])
            for i in range(3):
                out[n, i] = own[1 + i]
                for j in range(3):
                    spread[n, i, j] = own[4 + 3 * i + j] + scale * scale * own[1 + i] * own[1 + j]
                spread[n, i, i] += added


def filter_pings(
    spec: LongTermFilter,
    state: FloatArray,
    time: Times,
    mode: FloatArray,
    velocity: Vectors,
    covariance: FloatArray,
    out: Vectors,
    spread: FloatArray | None = None,
) -> FloatArray:
    """Write the long-term velocity (n, 3) m/s, move the `state` on, and return the covariance (n, 3, 3).

    `mode` (n,) is 1 for a ping over the bottom, 2 for one through the water, 0 for one that failed, and NaN where there
    is none: `out` is left as it is there, and where no ping has come yet. `spread` is room for the covariance, all NaN.
    """
    if spread is None:
        spread = np.full((time.shape[0], 3, 3), math.nan)
    density, stddev = float(spec.acceleration_density), float(spec.stddev)
    _filter_pings(density, stddev, float(spec.scale), state, time, mode, velocity, covariance, out, spread)
    return spread

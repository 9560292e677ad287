"""What the beams of a Doppler instrument hear of the bottom: range, angle and velocity along each beam, without errors.

Transducer k stands at p_k in the sensor's frame s, whose origin is at x with velocity v and turns by omega (in s):

    x_k = x + R_ws p_k,   v_k = v + R_ws (omega x p_k),   each ray d from x_k meets the world after r, at h, where n
    is the normal and v_h the velocity of what was met; cos i = -d . n

    nearest:  the shortest r of the rays, cos i there, and u . (v_k - v_h), u the beam's axis
    pattern:  sums of w r, w cos i and w d . (v_k - v_h) over the sum of w,   w = g cos^2 i 10^(-2 alpha r / 10)

Velocities are positive when the sensor goes towards what it hears. g is the two-way pattern of the beam, cos^2 i what
a rough bottom sends back (Lambert's law), alpha (dB/m) what the water takes on one way. A nearest ray lies off the axis
on the side of the vertical: its own velocity, taken for that along the axis, would read low by half the beam's width
over tan(beam angle), 6 % of a 4 degree beam at 30 degrees. The mean over a pattern does read low, by the little that is
known as terrain and absorption bias (Taudien and Bilen, IEEE J. Oceanic Eng. 43 (2018) 764, doi
10.1109/JOE.2017.2735558): horizontally, on level ground h below a beam at a, by

    cot a s^2 (2 tan a + 2 alpha' h sin a / cos^2 a) + s^2,   alpha' = alpha ln 10 / 10, s^2 the pattern's variance

Nothing is heard in the air nor from beyond the water's surface, which itself sends nothing back. Rays are straight.

The sound that is heard at t went out over the mean of the ranges earlier than it came back, so that

    valid_time = t - mean(r) / c,   listening = 2 max(r) / c,         r along the axes at t, of the beams that hear
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from navsense.compiled import kernel
from navsense.environment.base import Environment
from navsense.environment.terrain.scene import Hits
from navsense.motion.base import Motion, MotionBlock
from navsense.rotation import cross, rotate
from navsense.sensors._janus.beams import Beams, Weighting
from navsense.typing import FloatArray, Quaternions, Times, Vectors

SOUND_SPEED = 1500.0
"""m/s: the true speed of sound in a world without water."""

_AT_ONCE = 1 << 13
"""Rays that are cast at once: their arrays stay in the cache."""

_NEPERS = math.log(10.0) / 10.0
"""Of a power, in 1 dB."""


class Echoes(NamedTuple):
    """Of n pings and k beams, NaN where nothing is heard.

    Range (n, k) m, cosine of the angle of incidence (n, k), and velocity along the beam (n, k) m/s, positive when the
    sensor goes towards what it hears.
    """

    range: FloatArray
    incidence: FloatArray
    velocity: FloatArray


class Timing(NamedTuple):
    """Of n pings, in s: the true instant (n,) at which the echo left the bottom, and how long (n,) it was awaited."""

    valid_time: Times
    listening: FloatArray


@kernel
def _aim(
    position: Vectors,
    rotation: Quaternions,
    places: Vectors,
    beams: FloatArray,
    origin: FloatArray,
    direction: FloatArray,
) -> None:
    """Write origins and directions (n, k, m, 3) in the world, of transducers (k, 3) m and rays (k, m, 3)."""
    for n in range(position.shape[0]):
        w, x, y, z = rotation[n, 0], rotation[n, 1], rotation[n, 2], rotation[n, 3]
        for k in range(beams.shape[0]):
            a, b, c = rotate(w, x, y, z, places[k, 0], places[k, 1], places[k, 2])
            a, b, c = position[n, 0] + a, position[n, 1] + b, position[n, 2] + c
            for m in range(beams.shape[1]):
                i, j, h = rotate(w, x, y, z, beams[k, m, 0], beams[k, m, 1], beams[k, m, 2])
                origin[n, k, m, 0], origin[n, k, m, 1], origin[n, k, m, 2] = a, b, c
                direction[n, k, m, 0], direction[n, k, m, 1], direction[n, k, m, 2] = i, j, h


@kernel
def _heard(height: float, fall: float, distance: float, surface: float) -> bool:
    """Tell whether an echo from `distance` (m) comes all the way through water; `fall` is the ray's part downwards."""
    return distance < math.inf and height <= surface and height - fall * distance <= surface


@kernel
def transducer_velocity(
    w: float, x: float, y: float, z: float, velocity: FloatArray, omega: FloatArray, place: FloatArray
) -> tuple[float, float, float]:
    """Return v + R_ws (omega x p) (m/s), the quaternion w x y z being that of R_ws."""
    a, b, c = cross(omega[0], omega[1], omega[2], place[0], place[1], place[2])
    a, b, c = rotate(w, x, y, z, a, b, c)
    return velocity[0] + a, velocity[1] + b, velocity[2] + c


@kernel
def _nearest(
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    places: Vectors,
    axes: Vectors,
    surface: float,
    origin: FloatArray,
    direction: FloatArray,
    distance: FloatArray,
    normal: FloatArray,
    speed: FloatArray,
    out: FloatArray,
) -> None:
    """Write range, incidence and velocity along the axis (3, n, k) of the nearest of each beam's rays."""
    for n in range(distance.shape[0]):
        w, x, y, z = rotation[n, 0], rotation[n, 1], rotation[n, 2], rotation[n, 3]
        for k in range(distance.shape[1]):
            best, at = math.inf, -1
            for m in range(distance.shape[2]):
                far = distance[n, k, m]
                if far < best and _heard(origin[n, k, m, 2], -direction[n, k, m, 2], far, surface):
                    best, at = far, m
            if at < 0:
                out[0, n, k], out[1, n, k], out[2, n, k] = math.nan, math.nan, math.nan
                continue
            d, f, v = direction[n, k, at], normal[n, k, at], speed[n, k, at]
            a, b, c = transducer_velocity(w, x, y, z, velocity[n], omega[n], places[k])
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            out[0, n, k], out[1, n, k] = best, -(d[0] * f[0] + d[1] * f[1] + d[2] * f[2])
            out[2, n, k] = i * (a - v[0]) + j * (b - v[1]) + h * (c - v[2])


@kernel
def _pattern(
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    places: Vectors,
    weights: FloatArray,
    absorption: float,
    surface: float,
    origin: FloatArray,
    direction: FloatArray,
    distance: FloatArray,
    normal: FloatArray,
    speed: FloatArray,
    out: FloatArray,
) -> None:
    """Write means of range, incidence and velocity (3, n, k) over each beam's rays; `absorption` is in nepers/m."""
    for n in range(distance.shape[0]):
        w, x, y, z = rotation[n, 0], rotation[n, 1], rotation[n, 2], rotation[n, 3]
        for k in range(distance.shape[1]):
            a, b, c = transducer_velocity(w, x, y, z, velocity[n], omega[n], places[k])
            least, total, far, slant, along = math.inf, 0.0, 0.0, 0.0, 0.0
            for m in range(distance.shape[2]):
                least = min(least, distance[n, k, m])
            for m in range(distance.shape[2]):
                r = distance[n, k, m]
                if not _heard(origin[n, k, m, 2], -direction[n, k, m, 2], r, surface):
                    continue
                d, f, v = direction[n, k, m], normal[n, k, m], speed[n, k, m]
                cosine = -(d[0] * f[0] + d[1] * f[1] + d[2] * f[2])
                # Over the loss at the least range: however far all are, some weight is left.
                weight = weights[k, m] * cosine * cosine * math.exp(-2.0 * absorption * (r - least))
                total += weight
                far += weight * r
                slant += weight * cosine
                along += weight * (d[0] * (a - v[0]) + d[1] * (b - v[1]) + d[2] * (c - v[2]))
            share = 1.0 / total if total > 0.0 else math.nan
            out[0, n, k], out[1, n, k], out[2, n, k] = share * far, share * slant, share * along


@kernel
def _timing(
    origin: FloatArray,
    direction: FloatArray,
    distance: FloatArray,
    surface: float,
    time: Times,
    sound: FloatArray,
    reach: float,
    valid_time: Times,
    listening: FloatArray,
) -> None:
    """Write when the echo of n pings left the bottom (s), not before 0, and how long it was listened for (s)."""
    for n in range(distance.shape[0]):
        count, total, most = 0, 0.0, 0.0
        for k in range(distance.shape[1]):
            far = distance[n, k, 0]
            if _heard(origin[n, k, 0, 2], -direction[n, k, 0, 2], far, surface):
                count, total, most = count + 1, total + far, max(most, far)
        if count == 0:
            count, total, most = 1, reach, reach
        valid_time[n] = max(time[n] - total / count / sound[n], 0.0)
        listening[n] = 2.0 * most / sound[n]


class _Cast(NamedTuple):
    """Rays of a part of the pings, and what they met."""

    origin: FloatArray
    direction: FloatArray
    hits: Hits


def _cast(
    truth: MotionBlock,
    part: slice,
    time: Times,
    places: Vectors,
    rays: FloatArray,
    environment: Environment,
    maximum_range: float,
    own_hull: bool,
) -> _Cast:
    """Cast the rays (k, m, 3) of the pings of a part."""
    shape = (time[part].shape[0], rays.shape[0], rays.shape[1], 3)
    origin, direction = np.empty(shape), np.empty(shape)
    _aim(truth.position_w[part], truth.rotation_wb[part], places, rays, origin, direction)
    left_out = (environment.hull,) if environment.hull and not own_hull else ()
    instants = time[part][:, None, None]
    return _Cast(origin, direction, environment.scene.cast(origin, direction, instants, maximum_range, left_out))


def _parts(count: int, width: int) -> list[slice]:
    """Return parts of `count` pings of `width` rays each, of at most `_AT_ONCE` rays unless one ping has more."""
    rows = max(_AT_ONCE // width, 1)
    return [slice(first, first + rows) for first in range(0, count, rows)]


def surface_of(environment: Environment) -> float:
    """Return the height (m) above which sound does not go: infinite in a world without water."""
    return math.inf if environment.water is None else environment.water.surface


def echoes(
    beams: Beams, motion: Motion, environment: Environment, time: Times, maximum_range: float, own_hull: bool
) -> Echoes:
    """Return what each beam hears of the bodies of the world at the instants (n,) s, up to `maximum_range` (m).

    The vehicle's own hull is passed by unless `own_hull`. Raises `FieldError` where a body cannot be asked.
    """
    truth, surface = motion.at(time), surface_of(environment)
    rays, places, axes, weights = beams.rays, beams.positions, beams.axes, beams.weights
    out = np.empty((3, time.shape[0], rays.shape[0]))
    for part in _parts(time.shape[0], rays.shape[0] * rays.shape[1]):
        cast = _cast(truth, part, time, places, rays, environment, maximum_range, own_hull)
        moving = (truth.rotation_wb[part], truth.velocity_w[part], truth.angular_velocity_b[part], places)
        met = (cast.origin, cast.direction, cast.hits.range, cast.hits.normal_w, cast.hits.velocity_w)
        if beams.weighting is Weighting.NEAREST:
            _nearest(*moving, axes, surface, *met, out[:, part])
        else:
            _pattern(*moving, weights, _NEPERS * beams.absorption, surface, *met, out[:, part])
    return Echoes(out[0], out[1], out[2])


def validity(
    beams: Beams,
    motion: Motion,
    environment: Environment,
    time: Times,
    maximum_range: float,
    speed_of_sound: FloatArray,
    own_hull: bool,
) -> Timing:
    """Return when the echoes that are complete at the instants (n,) s are valid, and how long they took.

    One ray a beam, along its axis, from where the sensor is when it hears: off by the range that it gains in between.
    A ping that hears nothing waits for `maximum_range` (m, finite). `speed_of_sound` (n,) m/s is the true one. Raises
    `FieldError` where a body cannot be asked.
    """
    truth, surface, axes = motion.at(time), surface_of(environment), beams.axes[:, None, :]
    timing = Timing(np.empty(time.shape[0]), np.empty(time.shape[0]))
    for part in _parts(time.shape[0], axes.shape[0]):
        cast = _cast(truth, part, time, beams.positions, axes, environment, maximum_range, own_hull)
        rest = (time[part], speed_of_sound[part], maximum_range, timing.valid_time[part], timing.listening[part])
        _timing(cast.origin, cast.direction, cast.hits.range, surface, *rest)
    return timing


def sound_speed(environment: Environment, block: MotionBlock) -> FloatArray:
    """Return the true speed of sound (n,) m/s at a sensor, that at the surface above it; 1500 where no water is.

    Raises `FieldError` where the formula of the world's water is not valid.
    """
    if environment.water is None:
        return np.full(block.position_w.shape[0], SOUND_SPEED)
    return environment.water.sound_speed_at(np.maximum(environment.water.surface - block.position_w[:, 2], 0.0))

"""What the beams of a Doppler instrument hear of the bottom: range, angle and velocity along each beam, without errors.

Transducer k stands at p_k in the sensor's frame s, whose origin is at x with velocity v and turns by omega (in s):

    x_k = x + R_ws p_k,   v_k = v + R_ws (omega x p_k),   each ray d from x_k meets the world after r, at h, where n
    is the normal and v_h the velocity of what was met; cos i = -d . n

    plane:    range sum g / sum (g / (r d . u)), means of -u . n and u . (v_k - v_h) over g, u the beam's axis
    nearest:  the shortest r of the rays, cos i there, and u . (v_k - v_h)
    pattern:  the range of `plane`; sums of w cos i and w d . (v_k - v_h) over that of w,
              w = g cos^2 i 10^(-2 alpha r / 10)

Velocities are positive when the sensor goes towards what it hears. g is the share of a ray: all alike, or the two-way
pattern of the beam. cos^2 i is what a rough bottom sends back (Lambert's law), alpha (dB/m) what the water takes on one
way.

The range of `plane` and `pattern` is exact over a plane, at any attitude and slope. With q the offset of a ray from the
axis, d / (d . u) = u + q, a plane at distance h with the inward normal m gives 1 / (r d . u) = (m . u + m . q) / h. Its
mean is that of the axis, m . u / h, because the rays lie evenly about the axis: the mean of q is 0. Rays beyond the
reach count up to `MAX_RANGE_RATIO` times the nearest one, so that the reach cuts no footprint. A nearest ray is short,
by 2.0 % of the range for a 4 degree beam at 30 degrees.

A nearest ray lies off the axis on the side of the vertical. Its own velocity, taken for that along the axis, would read
low by half the beam's width over tan(beam angle), 6 % for a 4 degree beam at 30 degrees. The mean velocity over a
pattern does read low, by the terrain and absorption bias (Taudien and Bilen, IEEE J. Oceanic Eng. 43 (2018) 764, doi
10.1109/JOE.2017.2735558): horizontally, on level ground h below a beam at a, by

    cot a s^2 (2 tan a + 2 alpha' h sin a / cos^2 a) + s^2,   alpha' = alpha ln 10 / 10, s^2 the pattern's variance

Nothing is heard in the air nor from beyond the water's surface, which itself sends nothing back. Rays are straight.

The sound that is heard at t went out over the mean of the ranges earlier than it came back, so that

    time_of_validity = t - mean(r) / c,  listening = 2 max(r) / c,  r along the axes at t, of the beams that hear


How a Doppler instrument is carried: its attitude and velocity, and a motion that was asked for already.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from navsense import pose
from navsense.environment.base import Environment
from navsense.environment.terrain.scene import ray_error
from navsense.kernels import kernel
from navsense.motion.base import Motion, MotionBlock
from navsense.rotation import cross, multiply, rotate
from navsense.sensors.doppler.beams import Beams, BeamWeighting
from navsense.typing import FloatArray, IntArray, Quaternions, Times, Vectors

SOUND_SPEED = 1500.0
"""m/s: the true speed of sound in a world without water."""

_BATCH_SIZE = 1 << 13
"""Rays that are cast at once: their arrays stay in the cache."""

_NEPERS_PER_DECIBEL = math.log(10.0) / 10.0
"""Of a power, in 1 dB."""

MAX_RANGE_RATIO = 2.0
"""Ratio of the farthest ray beyond the reach that belongs to an echo to the echo's nearest ray."""


class Echoes(NamedTuple):
    """Of n pings and k beams, NaN where nothing is heard.

    Range (n, k) m, infinite where the bottom is beyond the reach; cosine of the angle of incidence (n, k), and velocity
    along the beam (n, k) m/s, positive when the sensor goes towards what it hears.
    """

    range: FloatArray
    incidence: FloatArray
    velocity: FloatArray

    @property
    def range_in_reach(self) -> FloatArray:
        """Ranges (n, k) m within the reach, NaN for others."""
        return np.where(np.isinf(self.range), math.nan, self.range)


class EchoTiming(NamedTuple):
    """Of n pings, in s: the true instant (n,) at which the echo left the bottom, and how long (n,) it was awaited."""

    time_of_validity: Times
    listening_time: FloatArray


@kernel
def _make_rays(
    first: int,
    position: Vectors,
    rotation: Quaternions,
    places: Vectors,
    beams: FloatArray,
    reach: float,
    origin: Vectors,
    direction: Vectors,
    unit: Vectors,
    far: FloatArray,
    row: IntArray,
) -> int:
    """Write rays in the world, ping after ping from the `first` on, of transducers (k, 3) m and rays (k, m, 3).

    `unit` are the directions at length 1, `far` their `reach` (m), `row` whose ping of these each is. Returns the first
    that is no ray, or -1.
    """
    rays = beams.shape[0] * beams.shape[1]
    for n in range(origin.shape[0] // rays):
        p, q = position[first + n], rotation[first + n]
        for k in range(beams.shape[0]):
            a, b, c = rotate(q[0], q[1], q[2], q[3], places[k, 0], places[k, 1], places[k, 2])
            a, b, c = p[0] + a, p[1] + b, p[2] + c
            for m in range(beams.shape[1]):
                i, j, h = rotate(q[0], q[1], q[2], q[3], beams[k, m, 0], beams[k, m, 1], beams[k, m, 2])
                length = math.sqrt(i * i + j * j + h * h)
                at: int = n * rays + k * beams.shape[1] + m
                origin[at, 0], origin[at, 1], origin[at, 2] = a, b, c
                direction[at, 0], direction[at, 1], direction[at, 2] = i, j, h
                if not (0.0 < length < math.inf and abs(a) + abs(b) + abs(c) < math.inf):
                    return at
                unit[at, 0], unit[at, 1], unit[at, 2] = i / length, j / length, h / length
                far[at], row[at] = reach, n
    return -1


@kernel
def _stays_in_water(height: float, fall: float, distance: float, surface: float) -> bool:
    """Tell whether an echo from `distance` (m) comes all the way through water; `fall` is the ray's part downwards."""
    return distance < math.inf and height <= surface and height - fall * distance <= surface


@kernel
def compute_transducer_velocity(
    w: float, x: float, y: float, z: float, velocity: FloatArray, omega: FloatArray, position: FloatArray
) -> tuple[float, float, float]:
    """Return v + R_ws (omega x p) (m/s), the quaternion w x y z being that of R_ws."""
    a, b, c = cross(omega[0], omega[1], omega[2], position[0], position[1], position[2])
    a, b, c = rotate(w, x, y, z, a, b, c)
    return velocity[0] + a, velocity[1] + b, velocity[2] + c


@kernel
def _measure_nearest(
    first: int,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    places: Vectors,
    axes: Vectors,
    rays: int,
    reach: float,
    surface: float,
    origin: Vectors,
    direction: Vectors,
    distance: FloatArray,
    normal: Vectors,
    speed: Vectors,
    out: FloatArray,
) -> None:
    """Write range, incidence and velocity along the axis (3, n, k) of the nearest of each beam's rays."""
    count = axes.shape[0]
    for n in range(first, first + distance.shape[0] // (rays * count)):
        w, x, y, z = rotation[n, 0], rotation[n, 1], rotation[n, 2], rotation[n, 3]
        for k in range(count):
            best, at, start = math.inf, -1, ((n - first) * count + k) * rays
            for m in range(start, start + rays):
                far = distance[m]
                if far < best and _stays_in_water(origin[m, 2], -direction[m, 2], far, surface):
                    best, at = far, m
            if at < 0 or best > reach:
                out[0, n, k], out[1, n, k], out[2, n, k] = math.nan if at < 0 else math.inf, math.nan, math.nan
                continue
            d, f, v = direction[at], normal[at], speed[at]
            a, b, c = compute_transducer_velocity(w, x, y, z, velocity[n], omega[n], places[k])
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            out[0, n, k], out[1, n, k] = best, -(d[0] * f[0] + d[1] * f[1] + d[2] * f[2])
            out[2, n, k] = i * (a - v[0]) + j * (b - v[1]) + h * (c - v[2])


@kernel
def _is_counted(
    weight: float, cosine: float, distance: float, limit: float, height: float, fall: float, surface: float
) -> bool:
    """Return whether a ray is part of an echo: it has a share, looks ahead and meets something up to a limit (m)."""
    return weight > 0.0 and cosine > 0.0 and distance <= limit and _stays_in_water(height, fall, distance, surface)


@kernel
def _fit_axis_range(
    weights: FloatArray,
    cosines: FloatArray,
    start: int,
    reach: float,
    surface: float,
    origin: Vectors,
    direction: Vectors,
    distance: FloatArray,
) -> tuple[float, float]:
    """Return the range (m) along a beam's axis of the plane through its hits, and the longest ray that counts (m).

    `weights` and `cosines` (m,) are those of the rays from `start` on. The range is NaN without a hit.
    """
    limit, total, inverse = math.inf, 0.0, 0.0
    for m in range(weights.shape[0]):
        at: int = start + m
        if _is_counted(weights[m], cosines[m], distance[at], limit, origin[at, 2], -direction[at, 2], surface):
            limit = distance[at]
    limit = max(reach, MAX_RANGE_RATIO * limit)
    for m in range(weights.shape[0]):
        place: int = start + m
        r = distance[place]
        if _is_counted(weights[m], cosines[m], r, limit, origin[place, 2], -direction[place, 2], surface):
            if r == 0.0:
                return 0.0, limit
            total += weights[m]
            inverse += weights[m] / (r * cosines[m])
    return (total / inverse if total > 0.0 else math.nan), limit


@kernel
def _measure_plane(
    first: int,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    places: Vectors,
    axes: Vectors,
    weights: FloatArray,
    cosines: FloatArray,
    reach: float,
    surface: float,
    origin: Vectors,
    direction: Vectors,
    distance: FloatArray,
    normal: Vectors,
    speed: Vectors,
    out: FloatArray,
) -> None:
    """Write range, incidence and velocity (3, n, k) along each beam's axis, of the plane through what its rays meet."""
    count, rays = weights.shape
    for n in range(first, first + distance.shape[0] // (rays * count)):
        w, x, y, z = rotation[n, 0], rotation[n, 1], rotation[n, 2], rotation[n, 3]
        for k in range(count):
            start = ((n - first) * count + k) * rays
            beam = (weights[k], cosines[k], start)
            found, limit = _fit_axis_range(*beam, reach, surface, origin, direction, distance)
            out[0, n, k], out[1, n, k], out[2, n, k] = found if found <= reach else found * math.inf, math.nan, math.nan
            if not found <= reach:
                continue
            a, b, c = compute_transducer_velocity(w, x, y, z, velocity[n], omega[n], places[k])
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            total, slant, along = 0.0, 0.0, 0.0
            for m in range(start, start + rays):
                f, v, share = normal[m], speed[m], weights[k, m - start]
                if _is_counted(
                    share, cosines[k, m - start], distance[m], limit, origin[m, 2], -direction[m, 2], surface
                ):
                    total += share
                    slant -= share * (i * f[0] + j * f[1] + h * f[2])
                    along += share * (i * (a - v[0]) + j * (b - v[1]) + h * (c - v[2]))
            out[1, n, k], out[2, n, k] = slant / total, along / total


@kernel
def _measure_pattern(
    first: int,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    places: Vectors,
    weights: FloatArray,
    cosines: FloatArray,
    absorption: float,
    reach: float,
    surface: float,
    origin: Vectors,
    direction: Vectors,
    distance: FloatArray,
    normal: Vectors,
    speed: Vectors,
    out: FloatArray,
) -> None:
    """Write the range along each beam's axis, and means of incidence and velocity over its rays (3, n, k).

    `absorption` is in nepers/m.
    """
    count, rays = weights.shape
    for n in range(first, first + distance.shape[0] // (rays * count)):
        w, x, y, z = rotation[n, 0], rotation[n, 1], rotation[n, 2], rotation[n, 3]
        for k in range(count):
            a, b, c = compute_transducer_velocity(w, x, y, z, velocity[n], omega[n], places[k])
            least, total, slant, along = math.inf, 0.0, 0.0, 0.0
            start = ((n - first) * count + k) * rays
            beam = (weights[k], cosines[k], start)
            found, limit = _fit_axis_range(*beam, reach, surface, origin, direction, distance)
            out[0, n, k], out[1, n, k], out[2, n, k] = found if found <= reach else found * math.inf, math.nan, math.nan
            if not found <= reach:
                continue
            for m in range(start, start + rays):
                least = min(least, distance[m])
            for m in range(start, start + rays):
                r, own = distance[m], m - start
                fall = -direction[m, 2]
                if not _is_counted(weights[k, own], cosines[k, own], r, limit, origin[m, 2], fall, surface):
                    continue
                d, f, v = direction[m], normal[m], speed[m]
                cosine = -(d[0] * f[0] + d[1] * f[1] + d[2] * f[2])
                # Over the loss at the least range: however far all are, some weight is left.
                weight = weights[k, own] * cosine * cosine * math.exp(-2.0 * absorption * (r - least))
                total += weight
                slant += weight * cosine
                along += weight * (d[0] * (a - v[0]) + d[1] * (b - v[1]) + d[2] * (c - v[2]))
            share = 1.0 / total if total > 0.0 else math.nan
            out[1, n, k], out[2, n, k] = share * slant, share * along


@kernel
def _compute_timing(
    first: int,
    beams: int,
    origin: Vectors,
    direction: Vectors,
    distance: FloatArray,
    surface: float,
    time: Times,
    sound: FloatArray,
    reach: float,
    time_of_validity: Times,
    listening_time: FloatArray,
) -> None:
    """Write when the echo of n pings left the bottom (s), not before 0, and how long it was listened for (s).

    They went out when the listening began: those that come back first left the bottom first.
    """
    for n in range(first, first + distance.shape[0] // beams):
        count, total, most = 0, 0.0, 0.0
        for k in range((n - first) * beams, (n - first + 1) * beams):
            far = distance[k]
            if _stays_in_water(origin[k, 2], -direction[k, 2], far, surface):
                count, total, most = count + 1, total + far, max(most, far)
        if count == 0:
            count, total, most = 1, reach, reach
        listening_time[n] = 2.0 * most / sound[n]
        time_of_validity[n] = max(time[n] - listening_time[n] + total / count / sound[n], 0.0)


class _CastRays(NamedTuple):
    """Rays of a part of the pings, ping after ping and beam after beam, and what they met."""

    origin: Vectors
    direction: Vectors
    range: FloatArray
    normal: Vectors
    speed: Vectors


def _cast_rays(
    truth: MotionBlock,
    part: slice,
    time: Times,
    places: Vectors,
    rays: FloatArray,
    environment: Environment,
    maximum_range: float,
    own_hull: bool,
) -> _CastRays:
    """Cast the rays (k, m, 3) of the pings of a part. Raises `FieldError` for a place that is not finite."""
    instants = time[part]
    count = instants.shape[0] * rays.shape[0] * rays.shape[1]
    origin, direction, unit = np.empty((count, 3)), np.empty((count, 3)), np.empty((count, 3))
    far, row, reach = np.empty(count), np.empty(count, dtype=np.int64), float(maximum_range)
    moving = (part.start, truth.position_w, truth.rotation_wb, places)
    bad = _make_rays(*moving, rays, reach, origin, direction, unit, far, row)
    if bad >= 0:
        raise ray_error(origin, direction, reach, bad)
    left_out = (environment.hull,) if environment.hull and not own_hull else ()
    met = environment.scene.cast_unchecked(origin, unit, far, row, instants, left_out)
    return _CastRays(origin, direction, far, met.normal_w, met.velocity_w)


def _split_pings(count: int, width: int) -> list[slice]:
    """Return parts of `count` pings of `width` rays each, of at most `_BATCH_SIZE` rays unless one ping has more."""
    rows = max(_BATCH_SIZE // width, 1)
    return [slice(first, first + rows) for first in range(0, count, rows)]


def get_surface_height(environment: Environment) -> float:
    """Return the height (m) above which sound does not go: infinite in a world without water."""
    return math.inf if environment.water is None else environment.water.surface


def find_echoes(
    beams: Beams, motion: Motion, environment: Environment, time: Times, maximum_range: float, own_hull: bool
) -> Echoes:
    """Return what each beam hears of the bodies of the world at the instants (n,) s, up to `maximum_range` (m, finite).

    The vehicle's own hull is passed by unless `own_hull`. Raises `FieldError` where a body cannot be asked.
    """
    truth, surface, reach = motion.at(time), get_surface_height(environment), float(maximum_range)
    rays, places, axes, shares = beams.rays, beams.positions, beams.axes, (beams.weights, beams.ray_cosines)
    moving = (truth.rotation_wb, truth.velocity_w, truth.angular_velocity_b, places)
    out = np.empty((3, time.shape[0], rays.shape[0]))
    for part in _split_pings(time.shape[0], rays.shape[0] * rays.shape[1]):
        met = _cast_rays(truth, part, time, places, rays, environment, math.inf, own_hull)
        if beams.weighting is BeamWeighting.PATTERN:
            _measure_pattern(
                part.start, *moving, *shares, _NEPERS_PER_DECIBEL * beams.absorption, reach, surface, *met, out
            )
        elif beams.weighting is BeamWeighting.NEAREST or rays.shape[1] == 1:
            _measure_nearest(part.start, *moving, axes, rays.shape[1], reach, surface, *met, out)
        else:
            _measure_plane(part.start, *moving, axes, *shares, reach, surface, *met, out)
    return Echoes(out[0], out[1], out[2])


def compute_echo_timing(
    beams: Beams,
    motion: Motion,
    environment: Environment,
    time: Times,
    maximum_range: float,
    speed_of_sound: FloatArray,
    own_hull: bool,
) -> EchoTiming:
    """Return when the echoes that are complete at the instants (n,) s are valid, and how long they took.

    One ray a beam, along its axis, from where the sensor is when it hears: off by the range that it gains in between.
    A ping that hears nothing waits for `maximum_range` (m, finite). `speed_of_sound` (n,) m/s is the true one. Raises
    `FieldError` where a body cannot be asked.
    """
    truth, surface, axes = motion.at(time), get_surface_height(environment), beams.axis_rays
    timing, reach = EchoTiming(np.empty(time.shape[0]), np.empty(time.shape[0])), float(maximum_range)
    for part in _split_pings(time.shape[0], axes.shape[0]):
        met = _cast_rays(truth, part, time, beams.positions, axes, environment, reach, own_hull)
        heard = (met.origin, met.direction, met.range, surface)
        _compute_timing(part.start, axes.shape[0], *heard, time, speed_of_sound, reach, *timing)
    return timing


@kernel
def _compute_depths(surface: float, position: Vectors, out: FloatArray) -> None:
    """Write depths (n,) m below a surface, 0 above it; NaN where the place is none."""
    for n in range(out.shape[0]):
        depth = surface - position[n, 2]
        out[n] = max(depth, 0.0)  # NaN stays so


@kernel
def _compute_receive_times(time: Times, processing: float, out: Times) -> None:
    """Write the instants (s) of `back`."""
    for n in range(out.shape[0]):
        out[n] = max(time[n] - processing, 0.0)


def compute_receive_times(time: Times, processing: float) -> Times:
    """Return when (n,) s the last echo was back of what is told at instants (n,) s, `processing` (s) later."""
    out = np.empty(time.shape[0])
    _compute_receive_times(time, float(processing), out)
    return out


@kernel
def _compute_transmit_times(receive_time: Times, processing: float, listening_time: FloatArray, out: Times) -> None:
    """Write the instants (s) of `sent`."""
    for n in range(out.shape[0]):
        out[n] = receive_time[n] - listening_time[n]
        listening_time[n] += processing


def compute_transmit_times(receive_time: Times, processing: float, listening_time: FloatArray) -> Times:
    """Return when (n,) s pings went out that were listened for till `back` (n,) s, for `listening` (n,) s.

    To the latter the time of `processing` (s) is added: so long before it was told each ping went out.
    """
    out = np.empty(receive_time.shape[0])
    _compute_transmit_times(receive_time, float(processing), listening_time, out)
    return out


def get_sound_speed(environment: Environment, block: MotionBlock) -> FloatArray:
    """Return the true speed of sound (n,) m/s at a sensor, that at the surface above it; 1500 where no water is.

    Raises `FieldError` where the formula of the world's water is not valid.
    """
    if environment.water is None:
        return np.full(block.position_w.shape[0], SOUND_SPEED)
    depth = np.empty(block.position_w.shape[0])
    _compute_depths(float(environment.water.surface), block.position_w, depth)
    return environment.water.sound_speed_at(depth)


class FixedMotionBlock(NamedTuple):
    """A motion at the only instants that are asked for: its block there."""

    block: MotionBlock
    end: float = math.inf

    def at(self, time: Times) -> MotionBlock:
        """Return the block, whose instants (n,) s `time` must be."""
        return self.block


@lru_cache(maxsize=8)
def _make_enu_rotation(heading: float) -> FloatArray:
    """Return the rotation (4,) from the world's axes to east, north, up; x is at an angle (rad) from east."""
    return np.array(pose.from_rpy(0.0, 0.0, heading))


@kernel
def _compute_platform_state(
    velocity_w: Vectors, rotation_ws: Quaternions, heading: FloatArray, attitude: Quaternions, sensor_velocity: Vectors
) -> None:
    """Write attitudes (n, 4) of the sensor in east, north, up, and velocities (n, 3) m/s of the world in its frame.

    `heading` (4,) takes the world's axes to east, north, up.
    """
    h = heading
    for n in range(velocity_w.shape[0]):
        w, x, y, z = rotation_ws[n, 0], rotation_ws[n, 1], rotation_ws[n, 2], rotation_ws[n, 3]
        a, b, c, d = multiply(h[0], h[1], h[2], h[3], w, x, y, z)
        attitude[n, 0], attitude[n, 1], attitude[n, 2], attitude[n, 3] = a, b, c, d
        sensor_velocity[n, 0], sensor_velocity[n, 1], sensor_velocity[n, 2] = rotate(
            w, -x, -y, -z, velocity_w[n, 0], velocity_w[n, 1], velocity_w[n, 2]
        )


def compute_platform_state(truth: MotionBlock, heading: float) -> tuple[Quaternions, Vectors]:
    """Return attitudes (n, 4) of the sensor in east, north, up, and velocities (n, 3) m/s of the world in its frame.

    `heading` (rad) is that of the world's x axis from east, counter-clockwise.
    """
    count = truth.position_w.shape[0]
    attitude, own = np.empty((count, 4)), np.empty((count, 3))
    _compute_platform_state(truth.velocity_w, truth.rotation_wb, _make_enu_rotation(heading), attitude, own)
    return attitude, own

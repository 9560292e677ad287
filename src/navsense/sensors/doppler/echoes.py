"""Echoes of the bottom along the beams of a Doppler instrument: true range, incidence and velocity of each beam.

The symbols are those of `sensors.doppler`. x_s and v_s are the position and the velocity of the sensor in the world,
omega is its angular velocity in s:

    x_k = x_s + R_ws p_k,   v_k = v_s + R_ws (omega x p_k)

Each ray d from x_k hits a body after r. n is the normal there and v_h the velocity of the body; cos i = -d . n. g is
the weight of a ray: equal, or the two-way pattern of the beam. In the world, with u for u_k:

    plane     range              sum g / sum (g / (r d . u))
              incidence cosine   sum g (-u . n) / sum g
              velocity           sum g u . (v_k - v_h) / sum g
    nearest   range, incidence cosine: r and cos i of the shortest ray; velocity: u . (v_k - v_h)
    pattern   range: as `plane`; the others are means of cos i and d . (v_k - v_h) with the weights
              g cos^2 i 10^(-2 alpha r / 10)

Velocities are positive if the sensor approaches the body. cos^2 i is the reflection of a rough bottom (Lambert's law).

The range of `plane` and `pattern` is exact over a plane, at any attitude and slope. With delta the offset of a ray from
the axis, d / (d . u) = u + delta, a plane at distance D with the inward normal m gives

    1 / (r d . u) = (m . u + m . delta) / D

The mean of delta is 0, because the rays are symmetric about the axis. So the mean is m . u / D, the value of the axis.
A footprint also uses rays beyond the maximum range, if they are at most `MAX_RANGE_RATIO` times as long as its nearest
ray. Otherwise the maximum range would cut the footprint. The range of `nearest` is too short, by about 2 % for a
4 degree beam at 30 degrees.

The nearest ray is closer to the vertical than the axis is. Therefore `nearest` projects the velocity on the axis. The
velocity along the ray itself would be smaller by half the beam's width over tan(beam angle): 6 % for a 4 degree beam at
30 degrees. The mean velocity over a pattern is too small by the terrain and absorption bias (Taudien and Bilen, IEEE J.
Oceanic Eng. 43 (2018) 764, doi 10.1109/JOE.2017.2735558): horizontally, on level ground D below a beam at the Janus
angle theta, by the fraction

    cot theta sigma_W^2 (2 tan theta + 2 alpha' D sin theta / cos^2 theta) + sigma_W^2,   alpha' = alpha ln 10 / 10

with the variance sigma_W^2 of the pattern (`doppler.beams`).

A path that leaves the water gives no echo, and the water's surface gives none. Rays are straight.

All beams transmit at the same time. The last echo is complete at t_r; the output time t of the ping is later:

    travel_time = 2 max(r) / c,   time_of_validity = t_r - 2 max(r) / c + mean(r) / c

r are the ranges along the axes at t_r of the beams with an echo. The travel time is two-way: to the farthest hit and
back.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from navsense.core import pose
from navsense.core.kernels import kernel
from navsense.core.rotation import cross, multiply, rotate
from navsense.core.typing import FloatArray, IntArray, Quaternions, Times, Vectors
from navsense.environment.base import Environment
from navsense.environment.terrain.scene import make_ray_error
from navsense.motion.base import Motion, MotionBlock
from navsense.sensors.doppler.beam_errors import LOG_POWER_PER_DECIBEL
from navsense.sensors.doppler.beams import Beams, BeamWeighting

KernelTuple: TypeAlias = tuple[Any, ...]
"""The fields of a `NamedTuple` as a plain tuple, an argument of a kernel. The kernel makes the `NamedTuple` again.

Numba finds the type of a plain tuple faster: in 0.5 us instead of 4 us.
"""

SOUND_SPEED = 1500.0
"""m/s: the true speed of sound in a world without water."""

_BATCH_SIZE = 1 << 13
"""Rays that are cast together; their arrays fit into the cache."""

MAX_RANGE_RATIO = 2.0
"""Largest ratio of a ray's length to the nearest ray of the same footprint, for rays beyond the maximum range."""


class Echoes(NamedTuple):
    """Echoes of n pings of k beams; NaN without an echo.

    A range is NaN without a bottom, and infinite for a bottom beyond the maximum range.
    """

    beam_range: FloatArray
    """(n, k) m."""

    incidence_cosine: FloatArray
    """(n, k), of the angle from the bottom's normal."""

    beam_velocity: FloatArray
    """(n, k) m/s, positive if the sensor approaches the bottom."""

    @property
    def finite_range(self) -> FloatArray:
        """Ranges (n, k) m up to the maximum range; NaN beyond it and without a bottom."""
        return np.where(np.isinf(self.beam_range), math.nan, self.beam_range)


class EchoTiming(NamedTuple):
    """Times (n,) s at which the echoes left the bottom, and two-way travel times (n,) s of the last echoes."""

    time_of_validity: Times
    travel_time: FloatArray


class SampledMotion(NamedTuple):
    """A motion that is sampled at one set of instants."""

    motion_block: MotionBlock
    end: float = math.inf

    def at(self, time: Times) -> MotionBlock:
        """Return the block. `time` must be its instants (n,) s."""
        return self.motion_block


class SensorMotion(NamedTuple):
    """Rotation (n, 4) of the sensor to the world, velocity (n, 3) m/s in the world, angular velocity (n, 3) rad/s."""

    rotation: Quaternions
    velocity: Vectors
    angular_velocity: Vectors


class BeamFootprints(NamedTuple):
    """Beams and the weighting of their rays; the directions of the rays are separate.

    Axes (k, 3) and positions (k, 3) m of the beams; weights (k, m) of their rays, and cosines (k, m) to the axis.
    """

    axes: Vectors
    positions: Vectors
    weights: FloatArray
    cosines: FloatArray


class BeamRayHits(NamedTuple):
    """Rays of some pings, by ping and beam, and their hits: distance (m), normal, velocity (m/s) of the body."""

    origin: Vectors
    direction: Vectors
    distance: FloatArray
    normal: Vectors
    velocity: Vectors


@kernel
def _make_rays(
    first: int,
    position: Vectors,
    rotation: Quaternions,
    transducers: Vectors,
    rays: FloatArray,
    max_distance: float,
    origin: Vectors,
    direction: Vectors,
    unit_direction: Vectors,
    max_distances: FloatArray,
    row: IntArray,
) -> int:
    """Write the rays of pings in the world, from ping `first` on. Return the index of the first invalid ray, or -1.

    `transducers` (k, 3) m and `rays` (k, m, 3) are those of the sensor. `max_distances` receives the maximum
    distance (m) of each ray, and `row` the number of its ping.
    """
    count = rays.shape[0] * rays.shape[1]
    for n in range(origin.shape[0] // count):
        p, q = position[first + n], rotation[first + n]
        for k in range(rays.shape[0]):
            x, y, z = rotate(q[0], q[1], q[2], q[3], transducers[k, 0], transducers[k, 1], transducers[k, 2])
            x, y, z = p[0] + x, p[1] + y, p[2] + z
            for m in range(rays.shape[1]):
                dx, dy, dz = rotate(q[0], q[1], q[2], q[3], rays[k, m, 0], rays[k, m, 1], rays[k, m, 2])
                length = math.sqrt(dx * dx + dy * dy + dz * dz)
                ray: int = n * count + k * rays.shape[1] + m
                origin[ray, 0], origin[ray, 1], origin[ray, 2] = x, y, z
                direction[ray, 0], direction[ray, 1], direction[ray, 2] = dx, dy, dz
                if not (0.0 < length < math.inf and abs(x) + abs(y) + abs(z) < math.inf):
                    return ray
                unit_direction[ray, 0], unit_direction[ray, 1] = dx / length, dy / length
                unit_direction[ray, 2] = dz / length
                max_distances[ray], row[ray] = max_distance, n
    return -1


@kernel
def _stays_in_water(height: float, vertical_slope: float, distance: float, water_surface: float) -> bool:
    """Return True if the path to a hit at `distance` (m) stays below the water's surface.

    The path starts at `height` (m). `vertical_slope` is its change of height per metre, positive up.
    """
    return distance < math.inf and height <= water_surface and height + vertical_slope * distance <= water_surface


@kernel
def compute_transducer_velocity(
    w: float, x: float, y: float, z: float, velocity: FloatArray, omega: FloatArray, position: FloatArray
) -> tuple[float, float, float]:
    """Return v + R_ws (omega x p) (m/s); w x y z is the quaternion of R_ws."""
    a, b, c = cross(omega[0], omega[1], omega[2], position[0], position[1], position[2])
    a, b, c = rotate(w, x, y, z, a, b, c)
    return velocity[0] + a, velocity[1] + b, velocity[2] + c


@kernel
def _measure_nearest(
    first: int,
    sensor_motion: KernelTuple,
    footprints: KernelTuple,
    maximum_range: float,
    water_surface: float,
    ray_hits: KernelTuple,
    echo_arrays: KernelTuple,
) -> None:
    """Write the echoes of the nearest ray of each beam, from ping `first` on."""
    motion, beams = SensorMotion(*sensor_motion), BeamFootprints(*footprints)
    hits, echoes = BeamRayHits(*ray_hits), Echoes(*echo_arrays)
    axes, (count, rays) = beams.axes, beams.weights.shape
    for n in range(first, first + hits.distance.shape[0] // (rays * count)):
        q = motion.rotation[n]
        w, x, y, z = q[0], q[1], q[2], q[3]
        for k in range(count):
            nearest_distance, nearest_ray, first_ray = math.inf, -1, ((n - first) * count + k) * rays
            for m in range(first_ray, first_ray + rays):
                distance, height, vertical_slope = hits.distance[m], hits.origin[m, 2], hits.direction[m, 2]
                if distance < nearest_distance and _stays_in_water(height, vertical_slope, distance, water_surface):
                    nearest_distance, nearest_ray = distance, m
            if nearest_ray < 0 or nearest_distance > maximum_range:
                echoes.beam_range[n, k] = math.nan if nearest_ray < 0 else math.inf
                echoes.incidence_cosine[n, k], echoes.beam_velocity[n, k] = math.nan, math.nan
                continue
            d, normal, body = hits.direction[nearest_ray], hits.normal[nearest_ray], hits.velocity[nearest_ray]
            vx, vy, vz = compute_transducer_velocity(
                w, x, y, z, motion.velocity[n], motion.angular_velocity[n], beams.positions[k]
            )
            ux, uy, uz = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            echoes.beam_range[n, k] = nearest_distance
            echoes.incidence_cosine[n, k] = -(d[0] * normal[0] + d[1] * normal[1] + d[2] * normal[2])
            echoes.beam_velocity[n, k] = ux * (vx - body[0]) + uy * (vy - body[1]) + uz * (vz - body[2])


@kernel
def _is_counted(
    weight: float,
    cosine: float,
    distance: float,
    max_distance: float,
    height: float,
    vertical_slope: float,
    water_surface: float,
) -> bool:
    """Return True if a ray counts for the footprint.

    It must have a weight, be less than 90 degrees from the axis, hit within `max_distance` (m), and stay in the water
    (`_stays_in_water`). The arguments are scalars, because Numba passes a tuple of arrays slowly.
    """
    return (
        weight > 0.0
        and cosine > 0.0
        and distance <= max_distance
        and _stays_in_water(height, vertical_slope, distance, water_surface)
    )


@kernel
def _fit_axis_range(
    weights: FloatArray,
    cosines: FloatArray,
    origin: Vectors,
    direction: Vectors,
    distance: FloatArray,
    maximum_range: float,
    water_surface: float,
) -> tuple[float, float]:
    """Return the range (m) along a beam's axis of the plane through its bottom points, and the largest ray length (m).

    The arrays (m,) and (m, 3) are those of the rays of the beam. The range is NaN without a hit.
    """
    nearest, weight_sum, inverse_range_sum = math.inf, 0.0, 0.0
    for m in range(weights.shape[0]):
        if _is_counted(weights[m], cosines[m], distance[m], nearest, origin[m, 2], direction[m, 2], water_surface):
            nearest = distance[m]
    max_distance = max(maximum_range, MAX_RANGE_RATIO * nearest)
    for m in range(weights.shape[0]):
        if _is_counted(weights[m], cosines[m], distance[m], max_distance, origin[m, 2], direction[m, 2], water_surface):
            if distance[m] == 0.0:
                return 0.0, max_distance
            weight_sum += weights[m]
            inverse_range_sum += weights[m] / (distance[m] * cosines[m])
    return (weight_sum / inverse_range_sum if weight_sum > 0.0 else math.nan), max_distance


@kernel
def _measure_footprint(
    first: int,
    sensor_motion: KernelTuple,
    footprints: KernelTuple,
    is_pattern: bool,
    attenuation: float,
    maximum_range: float,
    water_surface: float,
    ray_hits: KernelTuple,
    echo_arrays: KernelTuple,
) -> None:
    """Write the echoes of the weightings `PLANE` and `PATTERN`, from ping `first` on.

    `attenuation` (1/m) is that of the power, one way: alpha ln 10 / 10.
    """
    motion, beams = SensorMotion(*sensor_motion), BeamFootprints(*footprints)
    hits, echoes = BeamRayHits(*ray_hits), Echoes(*echo_arrays)
    origin, direction, distance = hits.origin, hits.direction, hits.distance
    axes, (count, rays) = beams.axes, beams.weights.shape
    for n in range(first, first + distance.shape[0] // (rays * count)):
        q = motion.rotation[n]
        w, x, y, z = q[0], q[1], q[2], q[3]
        for k in range(count):
            weights, cosines, first_ray = beams.weights[k], beams.cosines[k], ((n - first) * count + k) * rays
            last_ray = first_ray + rays
            axis_range, max_distance = _fit_axis_range(
                weights,
                cosines,
                origin[first_ray:last_ray],
                direction[first_ray:last_ray],
                distance[first_ray:last_ray],
                maximum_range,
                water_surface,
            )
            echoes.beam_range[n, k] = math.inf if axis_range > maximum_range else axis_range
            echoes.incidence_cosine[n, k], echoes.beam_velocity[n, k] = math.nan, math.nan
            if not axis_range <= maximum_range:
                continue
            vx, vy, vz = compute_transducer_velocity(
                w, x, y, z, motion.velocity[n], motion.angular_velocity[n], beams.positions[k]
            )
            ux, uy, uz = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            nearest, weight_sum, incidence_sum, velocity_sum = math.inf, 0.0, 0.0, 0.0
            for m in range(first_ray, last_ray):
                nearest = min(nearest, distance[m])
            for m in range(first_ray, last_ray):
                weight, cosine = weights[m - first_ray], cosines[m - first_ray]
                if not _is_counted(
                    weight, cosine, distance[m], max_distance, origin[m, 2], direction[m, 2], water_surface
                ):
                    continue
                d, normal, body = direction[m], hits.normal[m], hits.velocity[m]
                if is_pattern:
                    incidence = -(d[0] * normal[0] + d[1] * normal[1] + d[2] * normal[2])
                    # Relative to the nearest ray, so that the weights of a distant bottom do not underflow.
                    weight = weight * incidence * incidence * math.exp(-2.0 * attenuation * (distance[m] - nearest))
                    incidence_sum += weight * incidence
                    velocity_sum += weight * (d[0] * (vx - body[0]) + d[1] * (vy - body[1]) + d[2] * (vz - body[2]))
                else:
                    incidence_sum -= weight * (ux * normal[0] + uy * normal[1] + uz * normal[2])
                    velocity_sum += weight * (ux * (vx - body[0]) + uy * (vy - body[1]) + uz * (vz - body[2]))
                weight_sum += weight
            if is_pattern:
                inverse_weight_sum = 1.0 / weight_sum if weight_sum > 0.0 else math.nan
                echoes.incidence_cosine[n, k] = inverse_weight_sum * incidence_sum
                echoes.beam_velocity[n, k] = inverse_weight_sum * velocity_sum
            else:
                echoes.incidence_cosine[n, k] = incidence_sum / weight_sum
                echoes.beam_velocity[n, k] = velocity_sum / weight_sum


@kernel
def _compute_timing(
    first: int,
    beams: int,
    ray_hits: KernelTuple,
    water_surface: float,
    time: Times,
    sound_speed: FloatArray,
    maximum_range: float,
    timing_arrays: KernelTuple,
) -> None:
    """Write the times of validity and the travel times (s) from ping `first` on. Times before 0 are set to 0."""
    hits, timing = BeamRayHits(*ray_hits), EchoTiming(*timing_arrays)
    for n in range(first, first + hits.distance.shape[0] // beams):
        count, range_sum, max_distance = 0, 0.0, 0.0
        for m in range((n - first) * beams, (n - first + 1) * beams):
            distance = hits.distance[m]
            if _stays_in_water(hits.origin[m, 2], hits.direction[m, 2], distance, water_surface):
                count, range_sum, max_distance = count + 1, range_sum + distance, max(max_distance, distance)
        if count == 0:
            count, range_sum, max_distance = 1, maximum_range, maximum_range
        travel_time = 2.0 * max_distance / sound_speed[n]
        timing.travel_time[n] = travel_time
        timing.time_of_validity[n] = max(time[n] - travel_time + range_sum / count / sound_speed[n], 0.0)


def _cast_rays(
    motion_block: MotionBlock,
    pings: slice,
    time: Times,
    transducers: Vectors,
    rays: FloatArray,
    environment: Environment,
    maximum_range: float,
    own_hull: bool,
) -> KernelTuple:
    """Return the `BeamRayHits` of rays (k, m, 3) of some pings. Raises `FieldError` for a ray that is not finite."""
    instants = time[pings]
    count = instants.shape[0] * rays.shape[0] * rays.shape[1]
    origin, direction, unit_direction = np.empty((count, 3)), np.empty((count, 3)), np.empty((count, 3))
    distance, rows, max_distance = np.empty(count), np.empty(count, dtype=np.int64), float(maximum_range)
    out = (origin, direction, unit_direction, distance, rows)
    invalid_ray = _make_rays(
        pings.start, motion_block.position_w, motion_block.rotation_wb, transducers, rays, max_distance, *out
    )
    if invalid_ray >= 0:
        raise make_ray_error(origin, direction, max_distance, invalid_ray)
    excluded = (environment.hull,) if environment.hull and not own_hull else ()
    # `distance` has the largest range of each ray. `cast_unchecked` replaces it by the range of the hit.
    hits = environment.scene.cast_unchecked(origin, unit_direction, distance, rows, instants, excluded)
    return origin, direction, distance, hits.normal_w, hits.velocity_w


def _split_pings(ping_count: int, rays_per_ping: int) -> list[slice]:
    """Return the slices of pings that are cast together: at most `_BATCH_SIZE` rays, or one ping."""
    count = max(_BATCH_SIZE // rays_per_ping, 1)
    return [slice(first, first + count) for first in range(0, ping_count, count)]


def get_surface_height(environment: Environment) -> float:
    """Return the height (m) of the water's surface; infinite in a world without water."""
    return math.inf if environment.water is None else environment.water.surface


def find_echoes(
    beams: Beams, motion: Motion, environment: Environment, time: Times, maximum_range: float, own_hull: bool
) -> Echoes:
    """Return the echoes from the bodies of the world at instants (n,) s, up to `maximum_range` (m, finite).

    own_hull: True if rays can hit the sensor's own model.

    Raises `FieldError` if a body has no position there.
    """
    motion_block, water_surface, maximum_range = motion.at(time), get_surface_height(environment), float(maximum_range)
    rays, footprints = beams.rays, (beams.axes, beams.positions, beams.weights, beams.ray_cosines)
    attenuation = LOG_POWER_PER_DECIBEL * beams.absorption
    # The motion is that of the sensor, so its body frame b is s.
    sensor_motion = (motion_block.rotation_wb, motion_block.velocity_w, motion_block.angular_velocity_b)
    echo_arrays = tuple(np.empty((3, time.shape[0], rays.shape[0])))
    is_nearest = beams.weighting is BeamWeighting.NEAREST
    is_pattern = beams.weighting is BeamWeighting.PATTERN
    for pings in _split_pings(time.shape[0], rays.shape[0] * rays.shape[1]):
        # Rays are cast beyond `maximum_range`: such hits can count for a footprint (`MAX_RANGE_RATIO`), and a bottom
        # there has an infinite range, not NaN.
        hits = _cast_rays(motion_block, pings, time, beams.positions, rays, environment, math.inf, own_hull)
        if is_nearest or (rays.shape[1] == 1 and not is_pattern):
            # With one ray, `PLANE` is the same as `NEAREST`, which is faster.
            _measure_nearest(pings.start, sensor_motion, footprints, maximum_range, water_surface, hits, echo_arrays)
        else:
            limits = (maximum_range, water_surface)
            _measure_footprint(
                pings.start, sensor_motion, footprints, is_pattern, attenuation, *limits, hits, echo_arrays
            )
    return Echoes(*echo_arrays)


def compute_echo_timing(
    beams: Beams,
    motion: Motion,
    environment: Environment,
    time: Times,
    maximum_range: float,
    sound_speed: FloatArray,
    own_hull: bool,
) -> EchoTiming:
    """Return the timing of pings whose echoes are complete at instants (n,) s, t_r of the module.

    The ranges are those along the beams' axes at these instants. The change of range between transmission and reception
    is neglected. A ping without an echo listens up to `maximum_range` (m, finite). `sound_speed` (n,) m/s is the true
    one. Raises `FieldError` if a body has no position there.
    """
    motion_block, water_surface, axes = motion.at(time), get_surface_height(environment), beams.axis_rays
    timing, maximum_range = EchoTiming(np.empty(time.shape[0]), np.empty(time.shape[0])), float(maximum_range)
    for pings in _split_pings(time.shape[0], axes.shape[0]):
        hits = _cast_rays(motion_block, pings, time, beams.positions, axes, environment, maximum_range, own_hull)
        _compute_timing(
            pings.start, axes.shape[0], hits, water_surface, time, sound_speed, maximum_range, tuple(timing)
        )
    return timing


def get_sound_speed(environment: Environment, motion_block: MotionBlock) -> FloatArray:
    """Return the true speed of sound (n,) m/s at a sensor; above the water that at its surface, 1500 without water.

    Raises `FieldError` if the formula of the world's water is not valid there.
    """
    if environment.water is None:
        return np.full(motion_block.position_w.shape[0], SOUND_SPEED)
    return environment.water.sound_speed_at(np.maximum(environment.water.surface - motion_block.position_w[:, 2], 0.0))


@lru_cache(maxsize=8)
def _make_enu_rotation(heading: float) -> FloatArray:
    """Return the rotation (4,) from the world's axes to east, north, up; x is at an angle (rad) from east."""
    return np.array(pose.from_rpy(0.0, 0.0, heading))


@kernel
def _compute_sensor_state(
    velocity_w: Vectors,
    rotation_ws: Quaternions,
    enu_rotation: FloatArray,
    attitude: Quaternions,
    sensor_velocity: Vectors,
) -> None:
    h = enu_rotation
    for n in range(velocity_w.shape[0]):
        w, x, y, z = rotation_ws[n, 0], rotation_ws[n, 1], rotation_ws[n, 2], rotation_ws[n, 3]
        a, b, c, d = multiply(h[0], h[1], h[2], h[3], w, x, y, z)
        attitude[n, 0], attitude[n, 1], attitude[n, 2], attitude[n, 3] = a, b, c, d
        sensor_velocity[n, 0], sensor_velocity[n, 1], sensor_velocity[n, 2] = rotate(
            w, -x, -y, -z, velocity_w[n, 0], velocity_w[n, 1], velocity_w[n, 2]
        )


def compute_sensor_state(motion_block: MotionBlock, heading: float) -> tuple[Quaternions, Vectors]:
    """Return attitudes (n, 4) of the sensor in east, north, up, and its velocities (n, 3) m/s in its own frame.

    heading: rad, of the world's x axis from east, counter-clockwise.
    """
    count = motion_block.position_w.shape[0]
    attitude, velocity = np.empty((count, 4)), np.empty((count, 3))
    _compute_sensor_state(
        motion_block.velocity_w, motion_block.rotation_wb, _make_enu_rotation(heading), attitude, velocity
    )
    return attitude, velocity

"""Ray casting against the bodies of a world, stationary or moving.

At the time of a ray, the frame b of a body has the position p, rotation_wb, velocity v and angular velocity omega_b.
The pose of its shape in b is (r, rotation_bs):

    rotation_ws = rotation_wb rotation_bs,  p_s = p + rotation_wb r
    o_s = rotation_ws^-1 (o_w - p_s),  d_s = rotation_ws^-1 d_w
    hit_w = o_w + range d_w,  velocity_w = v + (rotation_wb omega_b) x (hit_w - p)

A ray is cast in the world at one time, without travel time. A sensor with a travel time of sound casts its rays at the
time of the echo.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from navsense.core import pose
from navsense.core.errors import FieldError
from navsense.core.kernels import kernel
from navsense.core.pose import IDENTITY, Pose
from navsense.core.rotation import cross, multiply, multiply_arrays, rotate, rotate_python
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternion, Quaternions, Times, Vectors
from navsense.environment.terrain.base import Rays, Shape
from navsense.motion.base import Motion, MotionBlock

NO_BODY = -1
"""Body index of a ray without a hit."""


@dataclass(frozen=True)
class Body:
    """A body in the world.

    name: such as `model::link::collision`, for hits and `exclude`. Several bodies may have one name.
    shape: the surface.
    pose: pose of the shape in the body's frame (m, unit quaternion).
    motion: motion of the body's frame. None for the world frame.

    >>> line = ns.motion.waypoints([0.0, 10.0], [ns.Pose((5.0, 0.0, 0.0)), ns.Pose((15.0, 0.0, 0.0))])
    >>> ship = ns.environment.Body("ship", ns.environment.Box((2.0, 1.0, 1.0)), motion=line)
    >>> scene = ns.environment.Scene((ship,))
    >>> scene.cast(np.zeros((2, 3)), np.array([[1.0, 0.0, 0.0]] * 2), np.array([0.0, 10.0])).range.round(6)
    array([ 4., 14.])
    """

    name: str
    shape: Shape
    pose: Pose = IDENTITY
    motion: Motion | None = None

    __repr__, _repr_html_ = format_spec, format_spec_html

    @cached_property
    def shape_pose(self) -> FloatArray:
        """Position (m) and rotation (w x y z) of the shape in the body's frame (7,)."""
        return np.array((*self.pose.position, *self.pose.rotation))

    @cached_property
    def is_at_origin(self) -> bool:
        """True if the frame of the shape is always the world frame."""
        return self.motion is None and self.pose == IDENTITY


class RayHits(NamedTuple):
    """The hits of rays, with the shape (...) of origins and directions without their last axis.

    range: (...) m, infinite for a miss.
    normal_w: (..., 3), unit normal on the side that the ray comes from, NaN for a miss.
    body: (...), index in the scene's bodies, -1 for a miss.
    velocity_w: (..., 3) m/s, velocity of the hit point, NaN for a miss.

    >>> bed = ns.environment.Body("bed", ns.environment.Plane(), ns.Pose((0.0, 0.0, -20.0)))
    >>> down_and_up = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    >>> ns.environment.Scene((bed,)).cast(np.zeros((2, 3)), down_and_up, 0.0).hit
    array([ True, False])
    """

    range: FloatArray
    normal_w: Vectors
    body: IntArray
    velocity_w: Vectors

    @property
    def hit(self) -> BoolArray:
        """True (...) for rays with a hit."""
        return self.body >= 0


@kernel
def _normalise_directions(origin: Vectors, direction: Vectors, max_range: FloatArray, unit: Vectors) -> int:
    """Write directions of unit length; return the first invalid ray, or -1."""
    for n in range(origin.shape[0]):
        x, y, z = direction[n, 0], direction[n, 1], direction[n, 2]
        length = math.sqrt(x * x + y * y + z * z)
        distance = abs(origin[n, 0]) + abs(origin[n, 1]) + abs(origin[n, 2])
        if not (1e-100 < length < math.inf and distance < math.inf and max_range[n] >= 0.0):
            return n
        unit[n, 0], unit[n, 1], unit[n, 2] = x / length, y / length, z / length
    return -1


@kernel
def _to_surface_frame(
    shape_pose: FloatArray,
    row: IntArray,
    position: Vectors,
    rotation: Quaternions,
    origin: Vectors,
    direction: Vectors,
    origin_s: Vectors,
    direction_s: Vectors,
) -> None:
    """Write rays in the frame of a shape; `shape_pose` (7,) is its position (m) and rotation (w x y z) in the body.

    row (n,): row of the body's motion for each ray. A motion with one row applies to all rays.
    """
    for n in range(origin.shape[0]):
        k = row[n] if position.shape[0] > 1 else 0
        qw, qx, qy, qz = rotation[k, 0], rotation[k, 1], rotation[k, 2], rotation[k, 3]
        x, y, z = rotate(qw, qx, qy, qz, shape_pose[0], shape_pose[1], shape_pose[2])
        x, y = origin[n, 0] - (position[k, 0] + x), origin[n, 1] - (position[k, 1] + y)
        z = origin[n, 2] - (position[k, 2] + z)
        w, i, j, h = multiply(qw, qx, qy, qz, shape_pose[3], shape_pose[4], shape_pose[5], shape_pose[6])
        origin_s[n, 0], origin_s[n, 1], origin_s[n, 2] = rotate(w, -i, -j, -h, x, y, z)
        x, y, z = direction[n, 0], direction[n, 1], direction[n, 2]
        direction_s[n, 0], direction_s[n, 1], direction_s[n, 2] = rotate(w, -i, -j, -h, x, y, z)


@kernel
def _clear_misses(best: FloatArray, normal: Vectors, body: IntArray, speed: Vectors) -> None:
    """Write infinite ranges and NaN for rays without a hit."""
    for n in range(best.shape[0]):
        if body[n] < 0:
            best[n] = math.inf
            for i in range(3):
                normal[n, i], speed[n, i] = math.nan, math.nan


@kernel
def _merge_hits(
    number: int,
    is_first: bool,
    is_last: bool,
    shape_pose: FloatArray,
    row: IntArray,
    position: Vectors,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    origin: Vectors,
    direction: Vectors,
    distance: FloatArray,
    normal_s: Vectors,
    best: FloatArray,
    normal: Vectors,
    body: IntArray,
    speed: Vectors,
) -> None:
    """Merge the hits of body `number` into the nearest hits. `is_first` and `is_last` refer to the list of bodies."""
    for n in range(best.shape[0]):
        if is_first:
            body[n] = NO_BODY
        t = distance[n]
        if not (t < best[n] or (t == best[n] and body[n] < 0 and t < math.inf)):
            continue
        best[n], body[n], k = t, number, row[n] if position.shape[0] > 1 else 0
        qw, qx, qy, qz = rotation[k, 0], rotation[k, 1], rotation[k, 2], rotation[k, 3]
        w, i, j, h = multiply(qw, qx, qy, qz, shape_pose[3], shape_pose[4], shape_pose[5], shape_pose[6])
        normal[n, 0], normal[n, 1], normal[n, 2] = rotate(w, i, j, h, normal_s[n, 0], normal_s[n, 1], normal_s[n, 2])
        ox, oy, oz = rotate(qw, qx, qy, qz, omega[k, 0], omega[k, 1], omega[k, 2])
        x = origin[n, 0] + t * direction[n, 0] - position[k, 0]
        y = origin[n, 1] + t * direction[n, 1] - position[k, 1]
        z = origin[n, 2] + t * direction[n, 2] - position[k, 2]
        x, y, z = cross(ox, oy, oz, x, y, z)
        speed[n, 0], speed[n, 1], speed[n, 2] = velocity[k, 0] + x, velocity[k, 1] + y, velocity[k, 2] + z
    if is_last:
        _clear_misses(best, normal, body, speed)


_WORLD_FRAME = MotionBlock(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]]), *[np.zeros((1, 3))] * 4)


@dataclass(frozen=True)
class _RotatedMotion:
    """A motion in a world rotated by `rotation`."""

    base: Motion
    rotation: Quaternion

    @property
    def end(self) -> float:
        """Last time (s) of the base."""
        return self.base.end

    def at(self, time: Times) -> MotionBlock:
        """Return the motion at `time` (n,) s in the rotated world."""
        block = self.base.at(time)
        position, velocity, acceleration = (
            np.stack(rotate_python(*self.rotation, *vectors.T), axis=1)
            for vectors in (block.position_w, block.velocity_w, block.acceleration_w)
        )
        rotation = multiply_arrays(np.array(self.rotation), block.rotation_wb)
        rates = (block.angular_velocity_b, acceleration, block.angular_acceleration_b)
        return MotionBlock(position, rotation, velocity, *rates)


@dataclass(frozen=True)
class Scene:
    """The bodies of a world. If two bodies are at the same range, the hit is on the first one in the list.

    >>> bed = ns.environment.Body("bed", ns.environment.Plane(), ns.Pose((0.0, 0.0, -20.0)))
    >>> scene = ns.environment.Scene((bed,))
    >>> hits = scene.cast(np.zeros((1, 3)), np.array([[0.0, 0.0, -1.0]]), 0.0)
    >>> hits.range, hits.normal_w
    (array([20.]), array([[0., 0., 1.]]))
    """

    bodies: tuple[Body, ...] = ()

    __repr__, _repr_html_ = format_spec, format_spec_html

    def cast(
        self,
        origin_w: FloatArray,
        direction_w: FloatArray,
        time: FloatArray | float,
        max_range: FloatArray | float = math.inf,
        exclude: Collection[str] = (),
    ) -> RayHits:
        """Return the first hit of each ray.

        origin_w: (..., 3) m; direction_w: (..., 3) of any length.
        time: (...) s. With shape (n, 1) and rays (n, m, 3), motions are evaluated once per row.
        max_range: (...) m.
        exclude: names of bodies, links or models to ignore, for example the vehicle's own hull.

        The arrays are broadcast against each other. Each row depends only on its own ray.

        Raises `FieldError` for an origin that is not finite, a zero direction, a negative range and shapes that cannot
        be broadcast. Raises the error of a motion for an invalid time.
        """
        origin, direction, best, row, times, shape = _broadcast_rays(origin_w, direction_w, time, max_range)
        unit = np.empty(origin.shape)
        bad = _normalise_directions(origin, direction, best, unit)
        if bad >= 0:
            raise make_ray_error(origin, direction, float(best[bad]), bad)
        best = best.copy()
        _, normal, body, velocity = self.cast_unchecked(origin, unit, best, row, times, tuple(exclude))
        axes = (*shape, 3)
        return RayHits(best.reshape(shape), normal.reshape(axes), body.reshape(shape), velocity.reshape(axes))

    def cast_unchecked(
        self,
        origin: Vectors,
        unit: Vectors,
        best: FloatArray,
        row: IntArray,
        times: Times,
        exclude: tuple[str, ...] = (),
    ) -> RayHits:
        """Return the first hits of n rays without checks. `unit` (n, 3) must be of length 1, and all values finite.

        best: (n,) m, the largest range of each ray. The range is written to it, infinite for a miss.
        row: (n,), index of the ray's time in `times` (s).
        exclude: as for `cast`.
        """
        count, bodies = best.shape[0], self._select_bodies(exclude)
        hits = RayHits(best, np.empty((count, 3)), np.empty(count, dtype=np.int64), np.empty((count, 3)))
        if not bodies:
            hits.body.fill(NO_BODY)
            _clear_misses(*hits)
        last = len(bodies) - 1
        for k, (number, body) in enumerate(bodies):
            block = _WORLD_FRAME if body.motion is None else body.motion.at(times)
            position, rotation, shape_pose = block.position_w, block.rotation_wb, body.shape_pose
            origin_s, direction_s = origin, unit
            if not body.is_at_origin:
                origin_s, direction_s = np.empty(origin.shape), np.empty(origin.shape)
                _to_surface_frame(shape_pose, row, position, rotation, origin, unit, origin_s, direction_s)
            distance, normal = np.empty(count), np.empty((count, 3))
            body.shape.trace(Rays(origin_s, direction_s, best, distance, normal))
            motion = (position, rotation, block.velocity_w, block.angular_velocity_b)
            _merge_hits(number, k == 0, k == last, shape_pose, row, *motion, origin, unit, distance, normal, *hits)
        return hits

    @cached_property
    def _selections(self) -> dict[tuple[str, ...], tuple[tuple[int, Body], ...]]:
        """The cache of `_select_bodies`."""
        return {}

    def _select_bodies(self, exclude: tuple[str, ...]) -> tuple[tuple[int, Body], ...]:
        """Return the indices and bodies, without those whose own name, link or model is excluded."""
        bodies = self._selections.get(exclude)
        if bodies is None:
            bodies = self._selections[exclude] = tuple(
                (number, body)
                for number, body in enumerate(self.bodies)
                if not any(body.name == scope or body.name.startswith(f"{scope}::") for scope in exclude)
            )
        return bodies

    def rotate(self, rotation: Quaternion) -> Scene:
        """Return the scene in a world rotated by `rotation`."""
        return Scene(tuple(_rotate_body(body, rotation) for body in self.bodies))


def _rotate_body(body: Body, rotation: Quaternion) -> Body:
    if body.motion is not None:
        return replace(body, motion=_RotatedMotion(body.motion, rotation))
    position, product = pose.rotate(rotation, body.pose.position), pose.multiply(rotation, body.pose.rotation)
    return replace(body, pose=Pose(position, pose.normalize(product)))


def _broadcast(values: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Return contiguous values of a shape. One value is filled in, because broadcasting is slow for few rays."""
    if values.shape == shape:
        return np.ascontiguousarray(values)
    if values.size != 1:
        return np.ascontiguousarray(np.broadcast_to(values, shape))
    out = np.empty(shape, dtype=values.dtype)
    out.fill(values.item())
    return out


def _broadcast_rays(
    origin_w: FloatArray, direction_w: FloatArray, time: FloatArray | float, max_range: FloatArray | float
) -> tuple[Vectors, Vectors, FloatArray, IntArray, Times, tuple[int, ...]]:
    """Return origins, directions, reaches, rows of the times, times, and the broadcast shape."""
    origin, direction = np.asarray(origin_w, dtype=np.float64), np.asarray(direction_w, dtype=np.float64)
    times, ranges = np.asarray(time, dtype=np.float64), np.asarray(max_range, dtype=np.float64)
    shape: tuple[int, ...] = ()
    vectors = origin.shape[-1:] == direction.shape[-1:] == (3,)
    try:
        shape = np.broadcast_shapes(origin.shape[:-1], direction.shape[:-1], times.shape, ranges.shape)
    except ValueError:
        vectors = False
    if not vectors:
        allowed = "must be (..., 3), (..., 3), (...) and (...), broadcast against each other"
        what = "shapes of origins, directions, times, ranges"
        raise FieldError(what, (origin.shape, direction.shape, times.shape, ranges.shape), allowed=allowed)
    rows = np.arange(times.size).reshape(times.shape)
    return (
        _broadcast(origin, (*shape, 3)).reshape(-1, 3),
        _broadcast(direction, (*shape, 3)).reshape(-1, 3),
        _broadcast(ranges, shape).reshape(-1),
        _broadcast(rows, shape).reshape(-1),
        np.ascontiguousarray(times).reshape(-1),
        shape,
    )


def make_ray_error(origin: Vectors, direction: Vectors, max_range: float, row: int) -> FieldError:
    """Return the error of an invalid ray."""
    ray = (origin[row].tolist(), direction[row].tolist(), max_range)
    allowed = "must be finite, the direction not zero and the range at least 0"
    return FieldError("ray (origin, direction, range)", ray, row=row, allowed=allowed)

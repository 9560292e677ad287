"""Ray casting against the bodies of a world, stationary or moving.

For a body whose frame b has the position p, rotation_wb, velocity v and angular velocity omega_b at the time of a ray,
with its shape at the pose (r, rotation_bs) in b:

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
from typing import NamedTuple, Protocol

import numpy as np

from navsense.core import pose
from navsense.core.errors import FieldError
from navsense.core.kernels import kernel
from navsense.core.pose import IDENTITY, Pose
from navsense.core.rotation import cross, multiply, rotate
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternion, Quaternions, Times, Vectors
from navsense.environment.terrain.base import Shape

NO_BODY = -1
"""Body index of a ray without a hit."""


class BodyStates(Protocol):
    """The motion of a frame at n times: the part of `navsense.motion.base.MotionBlock` that a body needs."""

    @property
    def position_w(self) -> Vectors:
        """Position (n, 3) m."""
        ...

    @property
    def rotation_wb(self) -> Quaternions:
        """Rotation (n, 4), w x y z."""
        ...

    @property
    def velocity_w(self) -> Vectors:
        """Velocity (n, 3) m/s."""
        ...

    @property
    def angular_velocity_b(self) -> Vectors:
        """Angular velocity (n, 3) rad/s."""
        ...


class BodyMotion(Protocol):
    """The motion of a body: any `navsense.motion.base.Motion`."""

    def at(self, time: Times) -> BodyStates:
        """Return the motion at `time` (n,) s."""
        ...


@dataclass(frozen=True)
class Body:
    """A body in the world.

    name: such as `model::link::collision`, for hits and `exclude`. Several bodies may have one name.
    shape: the surface.
    pose: pose of the shape in the body's frame (m, unit quaternion).
    motion: motion of the body's frame. None for the world frame.
    """

    name: str
    shape: Shape
    pose: Pose = IDENTITY
    motion: BodyMotion | None = None

    @cached_property
    def mount(self) -> FloatArray:
        """Position (m) and rotation (w x y z) of the shape in the body's frame (7,)."""
        return np.array((*self.pose.position, *self.pose.rotation))

    @cached_property
    def is_at_origin(self) -> bool:
        """True if the frame of the shape is always the world frame."""
        return self.motion is None and self.pose == IDENTITY


@dataclass(frozen=True, eq=False)
class RayHits:
    """The hits of rays, with the shape (...) of origins and directions without their last axis.

    range: (...) m, infinite for a miss.
    normal_w: (..., 3), unit normal on the side that the ray comes from, NaN for a miss.
    body: (...), index in the scene's bodies, -1 for a miss.
    velocity_w: (..., 3) m/s, velocity of the hit point, NaN for a miss.
    """

    range: FloatArray
    normal_w: FloatArray
    body: IntArray
    velocity_w: FloatArray

    @property
    def hit(self) -> BoolArray:
        """True (...) for rays with a hit."""
        return self.body >= 0


@kernel
def _normalise_directions(origin: Vectors, direction: Vectors, reach: FloatArray, unit: Vectors) -> int:
    """Write directions of unit length; return the first invalid ray, or -1."""
    for n in range(origin.shape[0]):
        x, y, z = direction[n, 0], direction[n, 1], direction[n, 2]
        length = math.sqrt(x * x + y * y + z * z)
        distance = abs(origin[n, 0]) + abs(origin[n, 1]) + abs(origin[n, 2])
        if not (1e-100 < length < math.inf and distance < math.inf and reach[n] >= 0.0):
            return n
        unit[n, 0], unit[n, 1], unit[n, 2] = x / length, y / length, z / length
    return -1


@kernel
def _to_surface_frame(
    mount: FloatArray,
    row: IntArray,
    position: Vectors,
    rotation: Quaternions,
    origin: Vectors,
    direction: Vectors,
    origin_s: Vectors,
    direction_s: Vectors,
) -> None:
    """Write rays in the frame of a shape; `mount` (7,) is its position (m) and rotation (w x y z) in the body.

    row (n,): row of the body's motion for each ray. A motion with one row applies to all rays.
    """
    for n in range(origin.shape[0]):
        k = row[n] if position.shape[0] > 1 else 0
        qw, qx, qy, qz = rotation[k, 0], rotation[k, 1], rotation[k, 2], rotation[k, 3]
        x, y, z = rotate(qw, qx, qy, qz, mount[0], mount[1], mount[2])
        x, y, z = (
            origin[n, 0] - (position[k, 0] + x),
            origin[n, 1] - (position[k, 1] + y),
            origin[n, 2] - (position[k, 2] + z),
        )
        w, i, j, h = multiply(qw, qx, qy, qz, mount[3], mount[4], mount[5], mount[6])
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
    mount: FloatArray,
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
        w, i, j, h = multiply(qw, qx, qy, qz, mount[3], mount[4], mount[5], mount[6])
        normal[n, 0], normal[n, 1], normal[n, 2] = rotate(w, i, j, h, normal_s[n, 0], normal_s[n, 1], normal_s[n, 2])
        ox, oy, oz = rotate(qw, qx, qy, qz, omega[k, 0], omega[k, 1], omega[k, 2])
        x = origin[n, 0] + t * direction[n, 0] - position[k, 0]
        y = origin[n, 1] + t * direction[n, 1] - position[k, 1]
        z = origin[n, 2] + t * direction[n, 2] - position[k, 2]
        x, y, z = cross(ox, oy, oz, x, y, z)
        speed[n, 0], speed[n, 1], speed[n, 2] = velocity[k, 0] + x, velocity[k, 1] + y, velocity[k, 2] + z
    if is_last:
        _clear_misses(best, normal, body, speed)


class HitArrays(NamedTuple):
    """The hits of n rays as in `RayHits`: normal (n, 3), body (n,) and velocity (n, 3) m/s."""

    normal_w: Vectors
    body: IntArray
    velocity_w: Vectors


@dataclass(frozen=True)
class _FixedStates:
    """Plain `BodyStates`."""

    position_w: Vectors
    rotation_wb: Quaternions
    velocity_w: Vectors
    angular_velocity_b: Vectors


_FIXED_STATES = _FixedStates(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]]), np.zeros((1, 3)), np.zeros((1, 3)))


@dataclass(frozen=True)
class _RotatedMotion:
    """A motion in a world rotated by `rotation`."""

    base: BodyMotion
    rotation: Quaternion

    def at(self, time: Times) -> BodyStates:
        """Return the motion at `time` (n,) s in the rotated world."""
        block, count = self.base.at(time), time.shape[0]
        out = _FixedStates(np.empty((count, 3)), np.empty((count, 4)), np.empty((count, 3)), block.angular_velocity_b)
        arrays = (block.position_w, block.rotation_wb, block.velocity_w)
        _rotate_states(np.array(self.rotation), *arrays, out.position_w, out.rotation_wb, out.velocity_w)
        return out


@kernel
def _rotate_states(
    q: FloatArray,
    position: Vectors,
    rotation: Quaternions,
    velocity: Vectors,
    out_position: Vectors,
    out_rotation: Quaternions,
    out_velocity: Vectors,
) -> None:
    """Write the motion in a world rotated by q (4,)."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    for k in range(position.shape[0]):
        a, b, c = rotate(w, x, y, z, position[k, 0], position[k, 1], position[k, 2])
        out_position[k, 0], out_position[k, 1], out_position[k, 2] = a, b, c
        a, b, c = rotate(w, x, y, z, velocity[k, 0], velocity[k, 1], velocity[k, 2])
        out_velocity[k, 0], out_velocity[k, 1], out_velocity[k, 2] = a, b, c
        d, a, b, c = multiply(w, x, y, z, rotation[k, 0], rotation[k, 1], rotation[k, 2], rotation[k, 3])
        out_rotation[k, 0], out_rotation[k, 1], out_rotation[k, 2], out_rotation[k, 3] = d, a, b, c


def _is_excluded(name: str, exclude: Collection[str]) -> bool:
    """Return true if a body, its link or its model is excluded."""
    return any(name == scope or name.startswith(f"{scope}::") for scope in exclude)


@dataclass(frozen=True)
class Scene:
    """The bodies of a world. If two bodies are at the same range, the hit is on the first one in the list."""

    bodies: tuple[Body, ...] = ()

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
        origin, direction, reach, row, times, shape = _broadcast_rays(origin_w, direction_w, time, max_range)
        unit = np.empty(origin.shape)
        bad = _normalise_directions(origin, direction, reach, unit)
        if bad >= 0:
            raise ray_error(origin, direction, float(reach[bad]), bad)
        best = reach.copy()
        normal, body, velocity = self.cast_unchecked(origin, unit, best, row, times, tuple(exclude))
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
    ) -> HitArrays:
        """Return the first hits of n rays without checks. `unit` (n, 3) must be of length 1, and all values finite.

        best: (n,) m, the largest range of each ray. The range is written to it, infinite for a miss.
        row: (n,), index of the ray's time in `times` (s).
        exclude: as for `cast`.
        """
        count = best.shape[0]
        hits = HitArrays(np.empty((count, 3)), np.empty(count, dtype=np.int64), np.empty((count, 3)))
        bodies = self._select_bodies(exclude)
        if not bodies:
            hits.body.fill(NO_BODY)
            _clear_misses(best, hits.normal_w, hits.body, hits.velocity_w)
        for count, (number, body) in enumerate(bodies, 1):
            _cast_at_body((number, count == 1, count == len(bodies)), body, origin, unit, row, times, best, hits)
        return hits

    @cached_property
    def _selections(self) -> dict[tuple[str, ...], tuple[tuple[int, Body], ...]]:
        """The cache of `_select_bodies`."""
        return {}

    def _select_bodies(self, exclude: tuple[str, ...]) -> tuple[tuple[int, Body], ...]:
        """Return the indices and bodies that are not excluded."""
        bodies = self._selections.get(exclude)
        if bodies is None:
            kept = [(number, body) for number, body in enumerate(self.bodies) if not _is_excluded(body.name, exclude)]
            bodies = self._selections[exclude] = tuple(kept)
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
    times, reach = np.asarray(time, dtype=np.float64), np.asarray(max_range, dtype=np.float64)
    shape: tuple[int, ...] = ()
    vectors = origin.shape[-1:] == direction.shape[-1:] == (3,)
    try:
        shape = np.broadcast_shapes(origin.shape[:-1], direction.shape[:-1], times.shape, reach.shape)
    except ValueError:
        vectors = False
    if not vectors:
        raise FieldError(
            "shapes of origins, directions, times, ranges",
            (origin.shape, direction.shape, times.shape, reach.shape),
            allowed="must be (..., 3), (..., 3), (...) and (...), broadcast against each other",
        )
    rows = np.arange(times.size).reshape(times.shape)
    return (
        _broadcast(origin, (*shape, 3)).reshape(-1, 3),
        _broadcast(direction, (*shape, 3)).reshape(-1, 3),
        _broadcast(reach, shape).reshape(-1),
        _broadcast(rows, shape).reshape(-1),
        np.ascontiguousarray(times).reshape(-1),
        shape,
    )


def ray_error(origin: Vectors, direction: Vectors, reach: float, row: int) -> FieldError:
    """Return the error of an invalid ray."""
    ray = (origin[row].tolist(), direction[row].tolist(), reach)
    allowed = "must be finite, the direction not zero and the range at least 0"
    return FieldError("ray (origin, direction, range)", ray, row=row, allowed=allowed)


def _cast_at_body(
    order: tuple[int, bool, bool],
    body: Body,
    origin: Vectors,
    unit: Vectors,
    row: IntArray,
    times: Times,
    best: FloatArray,
    hits: HitArrays,
) -> None:
    """Cast all rays at one body and merge the hits. `order` is the first three arguments of `_merge_hits`."""
    states: BodyStates = _FIXED_STATES if body.motion is None else body.motion.at(times)
    mount, origin_s, direction_s = body.mount, origin, unit
    if not body.is_at_origin:
        origin_s, direction_s = np.empty(origin.shape), np.empty(origin.shape)
        _to_surface_frame(mount, row, states.position_w, states.rotation_wb, origin, unit, origin_s, direction_s)
    distance, normal_s = np.empty(best.shape), np.empty(origin.shape)
    body.shape.trace(origin_s, direction_s, best, distance, normal_s)
    arrays = (states.position_w, states.rotation_wb, states.velocity_w, states.angular_velocity_b)
    _merge_hits(*order, mount, row, *arrays, origin, unit, distance, normal_s, best, *hits)

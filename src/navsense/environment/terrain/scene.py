"""All that rays meet in one world: bodies, still or moving, and one cast of many rays among them.

For a body whose frame b has the position p, rotation_wb, velocity v and angular velocity omega_b at the instant of a
ray, its surface standing at the pose (r, rotation_bs) in b:

    rotation_ws = rotation_wb rotation_bs,  p_s = p + rotation_wb r
    o_s = rotation_ws^-1 (o_w - p_s),  d_s = rotation_ws^-1 d_w
    hit_w = o_w + range d_w,  velocity_w = v + (rotation_wb omega_b) x (hit_w - p)

A ray sees the world as it is at one instant: sound and light take no time in it. Who wants a travel time asks for the
instant of the echo.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from navsense import pose
from navsense.environment.terrain.base import Shape
from navsense.errors import FieldError
from navsense.kernels import kernel
from navsense.pose import IDENTITY, Pose
from navsense.rotation import cross, multiply, rotate
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternion, Quaternions, Times, Vectors

NO_BODY = -1
"""The body of a ray that meets nothing."""


class BodyStates(Protocol):
    """Truth of a frame at n instants, a row an instant: what a body needs of `navsense.motion.base.MotionBlock`."""

    @property
    def position_w(self) -> Vectors:
        """Return the position (n, 3) m."""
        ...

    @property
    def rotation_wb(self) -> Quaternions:
        """Return the rotation (n, 4), w x y z."""
        ...

    @property
    def velocity_w(self) -> Vectors:
        """Return the velocity (n, 3) m/s."""
        ...

    @property
    def angular_velocity_b(self) -> Vectors:
        """Return the angular velocity (n, 3) rad/s."""
        ...


class BodyMotion(Protocol):
    """What moves a body: any `navsense.motion.base.Motion`."""

    def at(self, time: Times) -> BodyStates:
        """Return the truth at the instants `time` (n,) s."""
        ...


@dataclass(frozen=True)
class Body:
    """A surface in the world: `shape` at `pose` (m, unit quaternion) in the frame that `motion` moves.

    Without a motion the frame is the world's and the body stands still. `name` is what hits and `exclude` call it, such
    as `model::link::collision`; several bodies may share one.
    """

    name: str
    shape: Shape
    pose: Pose = IDENTITY
    motion: BodyMotion | None = None

    @cached_property
    def mount(self) -> FloatArray:
        """Place (m) and rotation (w x y z) of the surface in its frame, as kernels take them (7,)."""
        return np.array((*self.pose.position, *self.pose.rotation))

    @cached_property
    def is_at_origin(self) -> bool:
        """True where the surface's frame is the world's, for ever."""
        return self.motion is None and self.pose == IDENTITY


@dataclass(frozen=True, eq=False)
class RayHits:
    """What rays met, of the shape (...) that origins and directions have without their last axis.

    range (...) m, infinite where there is nothing; normal_w (..., 3) of unit length on the side that the ray comes
    from; body (...), the place in the scene's bodies, or -1; velocity_w (..., 3) m/s of the point that
    was met. Normal and velocity are NaN where there is nothing.
    """

    range: FloatArray
    normal_w: FloatArray
    body: IntArray
    velocity_w: FloatArray

    @property
    def hit(self) -> BoolArray:
        """Return where a ray met something (...)."""
        return self.body >= 0


@kernel
def _normalise_directions(origin: Vectors, direction: Vectors, reach: FloatArray, unit: Vectors) -> int:
    """Write directions of unit length; return the first ray that is none, or -1."""
    for n in range(origin.shape[0]):
        x, y, z = direction[n, 0], direction[n, 1], direction[n, 2]
        length = math.sqrt(x * x + y * y + z * z)
        place = abs(origin[n, 0]) + abs(origin[n, 1]) + abs(origin[n, 2])
        if not (1e-100 < length < math.inf and place < math.inf and reach[n] >= 0.0):
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
    """Write rays in the frame of a surface; `mount` (7,) is its place (m) and rotation (w x y z) in the body.

    `row` (n,) says which instant of the body is a ray's; where there is one, it is that of all.
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
    """Write of rays that met nothing that they did not."""
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
    """Take over what one body gave where it is the nearest so far; whether it `begins` and `ends` the bodies."""
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
    """What n rays met: normal (n, 3), place of the body (n,) and velocity (n, 3) m/s, as `RayHits` has them."""

    normal_w: Vectors
    body: IntArray
    velocity_w: Vectors


@dataclass(frozen=True)
class _FixedStates:
    """The placement of what never moves: one row of zeros and the world's own axes."""

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
        """Return the truth (n rows) of the turned frame."""
        block, count = self.base.at(time), time.shape[0]
        turned = _FixedStates(
            np.empty((count, 3)), np.empty((count, 4)), np.empty((count, 3)), block.angular_velocity_b
        )
        arrays = (block.position_w, block.rotation_wb, block.velocity_w)
        _rotate_states(np.array(self.rotation), *arrays, turned.position_w, turned.rotation_wb, turned.velocity_w)
        return turned


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
    """Write the truth in a world turned by q (4,)."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    for k in range(position.shape[0]):
        a, b, c = rotate(w, x, y, z, position[k, 0], position[k, 1], position[k, 2])
        out_position[k, 0], out_position[k, 1], out_position[k, 2] = a, b, c
        a, b, c = rotate(w, x, y, z, velocity[k, 0], velocity[k, 1], velocity[k, 2])
        out_velocity[k, 0], out_velocity[k, 1], out_velocity[k, 2] = a, b, c
        d, a, b, c = multiply(w, x, y, z, rotation[k, 0], rotation[k, 1], rotation[k, 2], rotation[k, 3])
        out_rotation[k, 0], out_rotation[k, 1], out_rotation[k, 2], out_rotation[k, 3] = d, a, b, c


def _is_excluded(name: str, exclude: Collection[str]) -> bool:
    """Tell whether a body's name, or the model or link that it belongs to, is among those left out."""
    return any(name == one or name.startswith(f"{one}::") for one in exclude)


@dataclass(frozen=True)
class Scene:
    """The bodies of a world; where two lie at one range the earlier counts."""

    bodies: tuple[Body, ...] = ()

    def cast(
        self,
        origin_w: FloatArray,
        direction_w: FloatArray,
        time: FloatArray | float,
        max_range: FloatArray | float = math.inf,
        exclude: Collection[str] = (),
    ) -> RayHits:
        """Return what each ray first meets, at most `max_range` m away.

        `origin_w` (..., 3) m and `direction_w` (..., 3) of any length are broadcast against each other; `time` (...) s,
        the instant of each ray, and `max_range` (...) m against what is left without the last axis. A time of shape
        (n, 1) beside rays (n, m, 3) is looked up once a row. `exclude` holds names of bodies, or of models or links
        with all bodies below them: a vehicle leaves out its own hull. A row depends on its own ray alone.

        Raises `FieldError` for a place that is not finite, a direction of no length, a range below 0 and shapes that do
        not fit, and whatever a motion raises at an instant that is not its own.
        """
        origin, direction, reach, row, times, shape = _broadcast_rays(origin_w, direction_w, time, max_range)
        unit = np.empty(origin.shape)
        bad = _normalise_directions(origin, direction, reach, unit)
        if bad >= 0:
            raise ray_error(origin, direction, float(reach[bad]), bad)
        best = reach.copy()
        met = self.cast_unchecked(origin, unit, best, row, times, tuple(exclude))
        axes = (*shape, 3)
        hits = (best.reshape(shape), met.normal_w.reshape(axes), met.body.reshape(shape))
        return RayHits(*hits, met.velocity_w.reshape(axes))

    def cast_unchecked(
        self,
        origin: Vectors,
        unit: Vectors,
        best: FloatArray,
        row: IntArray,
        times: Times,
        exclude: tuple[str, ...] = (),
    ) -> HitArrays:
        """Return what n rays first meet that were checked before: `unit` (n, 3) is of length 1, all is finite.

        `best` (n,) m is how far each goes and is made its range, infinite where it meets nothing; `row` (n,) says which
        of the instants `times` (s) is its own. `exclude` is as for `cast`.
        """
        count = best.shape[0]
        met = HitArrays(np.empty((count, 3)), np.empty(count, dtype=np.int64), np.empty((count, 3)))
        left = self._select_bodies(exclude)
        if not left:
            met.body.fill(NO_BODY)
            _clear_misses(best, met.normal_w, met.body, met.velocity_w)
        for place, (number, one) in enumerate(left, 1):
            _cast_at_body((number, place == 1, place == len(left)), one, origin, unit, row, times, best, met)
        return met

    @cached_property
    def _selections(self) -> dict[tuple[str, ...], tuple[tuple[int, Body], ...]]:
        """What `_select_bodies` found before."""
        return {}

    def _select_bodies(self, exclude: tuple[str, ...]) -> tuple[tuple[int, Body], ...]:
        """Return places and bodies that are met where some are left out by name."""
        found = self._selections.get(exclude)
        if found is None:
            left = [(number, one) for number, one in enumerate(self.bodies) if not _is_excluded(one.name, exclude)]
            found = self._selections[exclude] = tuple(left)
        return found

    def rotate(self, rotation: Quaternion) -> Scene:
        """Return the same bodies in a world rotated by `rotation`."""
        return Scene(tuple(_rotate_body(one, rotation) for one in self.bodies))


def _rotate_body(body: Body, rotation: Quaternion) -> Body:
    """Return a body in a world rotated by `rotation`."""
    if body.motion is not None:
        return replace(body, motion=_RotatedMotion(body.motion, rotation))
    place, turn = pose.rotate(rotation, body.pose.position), pose.multiply(rotation, body.pose.rotation)
    return replace(body, pose=Pose(place, pose.normalize(turn)))


def _broadcast(values: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Return values at a shape, contiguous: of few rays, broadcasting them would take the longest."""
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
    """Return origins, directions, reaches, the row of each in the instants, these, and the shape of it all."""
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
    """Return the error of a row that is no ray."""
    given = (origin[row].tolist(), direction[row].tolist(), reach)
    allowed = "must be finite, the direction not zero and the range at least 0"
    return FieldError("ray (origin, direction, range)", given, row=row, allowed=allowed)


def _cast_at_body(
    which: tuple[int, bool, bool],
    one: Body,
    origin: Vectors,
    unit: Vectors,
    row: IntArray,
    times: Times,
    best: FloatArray,
    met: HitArrays,
) -> None:
    """Cast all rays at one body, and take over what is nearer than before; `which` it is, as `_merge_hits` takes it."""
    place: BodyStates = _FIXED_STATES if one.motion is None else one.motion.at(times)
    mount, origin_s, direction_s = one.mount, origin, unit
    if not one.is_at_origin:
        origin_s, direction_s = np.empty(origin.shape), np.empty(origin.shape)
        _to_surface_frame(mount, row, place.position_w, place.rotation_wb, origin, unit, origin_s, direction_s)
    distance, normal_s = np.empty(best.shape), np.empty(origin.shape)
    one.shape.trace(origin_s, direction_s, best, distance, normal_s)
    arrays = (place.position_w, place.rotation_wb, place.velocity_w, place.angular_velocity_b)
    normal, body, speed = met
    _merge_hits(*which, mount, row, *arrays, origin, unit, distance, normal_s, best, normal, body, speed)

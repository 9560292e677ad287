"""Scenes with stationary and moving bodies: the nearest hit, its velocity, and independence of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from navsense.core import pose
from navsense.core.errors import FieldError, MotionError
from navsense.core.pose import Pose
from navsense.core.typing import AnyArray, Times, Vector
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.mesh import Mesh
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.motion.base import MotionBlock
from navsense.motion.stationary import Stationary

pytestmark = pytest.mark.requirement("DVU-2")

DOWN = (0.0, 0.0, -1.0)


@dataclass(frozen=True)
class RotatingMotion:
    """A frame at `start` with a velocity and a rotation about `axis` (unit) at `rate` rad/s."""

    start: Vector
    velocity: Vector
    axis: Vector
    rate: float
    end: float = math.inf

    def at(self, time: Times) -> MotionBlock:
        if (time > self.end).any():
            raise MotionError("instant (s)", float(time.max()))
        count, half = len(time), 0.5 * self.rate * time
        rotation = np.concatenate((np.cos(half)[:, None], np.sin(half)[:, None] * self.axis), axis=1)
        velocity, omega = np.tile(self.velocity, (count, 1)), np.tile(self.rate * np.array(self.axis), (count, 1))
        place = np.array(self.start) + time[:, None] * self.velocity
        return MotionBlock(place, rotation, velocity, omega, np.zeros((count, 3)), np.zeros((count, 3)))


def make_scene() -> Scene:
    rng = np.random.default_rng(1)
    bed = Heightmap(rng.uniform(-11.0, -9.0, (21, 21)), (2.0, 2.0), (-20.0, -20.0))
    corners = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.0, 0.0]])
    tilted = pose.from_rpy(0.3, -0.4, 0.5)
    boat = RotatingMotion((1.0, 2.0, 0.0), (2.0, -1.0, 0.5), (0.6, 0.0, 0.8), 0.7)
    return Scene(
        (
            Body("bed", bed),
            Body("rock::link", Ellipsoid((2.0, 3.0, 1.0)), Pose((5.0, 5.0, -9.0), tilted)),
            Body("pier::pile::shaft", Cylinder(0.5, 12.0), Pose((-6.0, 3.0, -5.0))),
            Body("boat::hull::box", Box((4.0, 2.0, 1.0)), Pose((0.5, 0.0, 0.2), tilted), boat),
            Body("boat::keel", Mesh(corners[None]), Pose((0.0, 0.0, -2.0)), boat),
            Body("buoy", Capsule(0.4, 1.0), Pose((0.0, 1.0, 0.0)), Stationary(Pose((-3.0, -3.0, -1.0), tilted))),
        )
    )


def make_rays(count: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return origins, directions towards the bodies or random ones, and times."""
    rng, world, time = np.random.default_rng(2), make_scene(), np.random.default_rng(3).uniform(0.0, 3.0, count)
    origin, target = rng.uniform((-8.0, -8.0, 1.0), (8.0, 8.0, 6.0), (count, 3)), rng.normal(size=(count, 3)) * 9.0
    for n in range(0, count, 2):
        body = world.bodies[n // 2 % len(world.bodies)]
        frame = body.pose
        if body.motion is not None:
            block = body.motion.at(time[n : n + 1])
            frame = Pose(tuple(block.position_w[0]), tuple(block.rotation_wb[0])) @ body.pose
        target[n] = (frame @ Pose((0.1, -0.05, 0.0))).position
    return origin, target - origin, time


def test_velocity_of_the_hit_point() -> None:
    """Differences of the position of the body point give its velocity."""
    origin, direction, time = make_rays(400)
    world = make_scene()
    hits = world.cast(origin, direction, time)
    unit = direction / np.sqrt((direction**2).sum(axis=1))[:, None]
    point = origin + hits.range[:, None] * unit
    for number, body in enumerate(world.bodies):
        rows = np.flatnonzero(hits.body == number)
        assert rows.size
        for n in rows[:20]:
            if body.motion is None or isinstance(body.motion, Stationary):
                assert hits.velocity_w[n].tolist() == [0.0, 0.0, 0.0]
                continue
            step, places = 1e-4, []
            blocks = body.motion.at(time[n] + np.array((0.0, -step, step)))
            now, *around = (
                Pose(tuple(p), tuple(q)) for p, q in zip(blocks.position_w, blocks.rotation_wb, strict=True)
            )
            point_b = (now.inverse() @ Pose(tuple(point[n]))).position
            places = [np.array((pose @ Pose(point_b)).position) for pose in around]
            np.testing.assert_allclose(hits.velocity_w[n], (places[1] - places[0]) / (2.0 * step), atol=1e-6, rtol=0.0)


def test_moving_plate_matches_a_manual_calculation() -> None:
    """A box 2 m wide rotates about z at 2 rad/s and rises at 3 m/s: upper face, 1 m from the axis."""
    lift = RotatingMotion((0.0, 0.0, 0.0), (0.0, 0.0, 3.0), (0.0, 0.0, 1.0), 2.0)
    world = Scene((Body("lift", Box((2.0, 2.0, 2.0)), motion=lift),))
    hits = world.cast(np.array([0.5, 0.0, 20.0]), np.array(DOWN), np.array([0.0, 1.0, 2.0]))
    assert hits.range.tolist() == [19.0, 16.0, 13.0]
    np.testing.assert_allclose(hits.normal_w, [[0.0, 0.0, 1.0]] * 3, atol=1e-15, rtol=0.0)
    np.testing.assert_allclose(hits.velocity_w, [[0.0, 1.0, 3.0]] * 3, atol=1e-14, rtol=0.0)
    missed = world.cast([1.2, 0.0, 20.0], DOWN, np.array([0.0, math.pi / 8.0]))
    assert missed.body.tolist() == [-1, 0]  # its corner rotates into the ray


def test_nearest_body_is_hit() -> None:
    origin, direction, time = make_rays(300)
    world = make_scene()
    hits = world.cast(origin, direction, time)
    alone = [Scene((body,)).cast(origin, direction, time) for body in world.bodies]
    ranges = np.stack([single.range for single in alone])
    np.testing.assert_array_equal(hits.range, ranges.min(axis=0))
    np.testing.assert_array_equal(hits.hit, np.isfinite(hits.range))
    assert 0 < (~hits.hit).sum() < 150
    for n in np.flatnonzero(hits.hit):
        single = alone[hits.body[n]]
        assert single.range[n] == hits.range[n]
        np.testing.assert_array_equal(single.normal_w[n], hits.normal_w[n])
        np.testing.assert_array_equal(single.velocity_w[n], hits.velocity_w[n])
    assert np.isnan(hits.normal_w[~hits.hit]).all()
    assert np.isnan(hits.velocity_w[~hits.hit]).all()
    assert (hits.body[~hits.hit] == -1).all()
    twice = Scene((Body("a", Plane()), Body("b", Plane()))).cast([0.0, 0.0, 1.0], DOWN, 0.0)
    assert twice.body == 0


def test_excluded_hull_is_not_hit() -> None:
    world = Scene(
        (
            Body("auv::base::hull", Sphere(1.0)),
            Body("auv::fin", Sphere(1.5)),
            Body("auv2::base", Sphere(0.5), Pose((0.0, 0.0, -5.0))),
            Body("bed", Plane(), Pose((0.0, 0.0, -9.0))),
        )
    )
    names = ((), ("auv",), ("auv::base",), ("auv", "auv2"), ("bed", "auv", "auv2::base"))
    hits = [world.cast([0.0, 0.0, 0.0], DOWN, 0.0, exclude=name) for name in names]
    assert [float(hit.range) for hit in hits] == [1.0, 4.5, 1.5, 9.0, math.inf]
    assert [int(hit.body) for hit in hits] == [0, 2, 1, 3, -1]


def test_rays_are_independent_of_the_shape_of_the_arrays() -> None:
    origin, direction, time = make_rays(24)
    world = make_scene()
    complete = world.cast(origin, direction, time, 30.0)
    for shape in ((24,), (4, 6), (2, 3, 4), (24, 1)):
        reach = np.full(shape, 30.0)
        start, away = origin.reshape(*shape, 3), direction.reshape(*shape, 3)
        part = world.cast(start, away, time.reshape(shape), reach)
        assert part.range.shape == part.body.shape == shape
        assert part.normal_w.shape == part.velocity_w.shape == (*shape, 3)
        np.testing.assert_array_equal(part.range.ravel(), complete.range)
        np.testing.assert_array_equal(part.velocity_w.reshape(-1, 3), complete.velocity_w)
    for n in range(24):
        one = world.cast(origin[n], direction[n], time[n], 30.0)
        assert one.range.shape == ()
        assert one.range == complete.range[n]
        np.testing.assert_array_equal(one.normal_w, complete.normal_w[n])
        np.testing.assert_array_equal(one.velocity_w, complete.velocity_w[n])


def test_motion_is_evaluated_once_per_row() -> None:
    asked: list[int] = []

    class CountingMotion:
        def at(self, time: Times) -> MotionBlock:
            asked.append(len(time))
            return Stationary().at(time)

    world = Scene((Body("a", Sphere(), motion=CountingMotion()),))
    origin = np.zeros((5, 1, 3)) + (0.0, 0.0, 4.0)
    fan = np.stack([(0.1 * k, 0.0, -1.0) for k in range(7)])
    assert world.cast(origin, fan, np.arange(5.0)[:, None]).range.shape == (5, 7)
    assert asked == [5]


def test_direction_length_does_not_matter() -> None:
    origin, direction, time = make_rays(50)
    a, b = make_scene().cast(origin, direction, time), make_scene().cast(origin, 4.0 * direction, time)
    np.testing.assert_array_equal(a.range, b.range)


def test_rotated_world_has_rotated_hits() -> None:
    origin, direction, time = make_rays(200)
    turn = pose.from_rpy(0.4, 1.1, -2.0)
    start, away = (np.array([pose.rotate(turn, tuple(v)) for v in block]) for block in (origin, direction))
    plain, other = make_scene().cast(origin, direction, time), make_scene().rotate(turn).cast(start, away, time)
    np.testing.assert_array_equal(plain.body, other.body)
    np.testing.assert_allclose(plain.range, other.range, atol=1e-9, rtol=0.0)
    for a, b in ((plain.normal_w, other.normal_w), (plain.velocity_w, other.velocity_w)):
        back = np.array([pose.rotate(turn, tuple(v)) for v in a])
        np.testing.assert_allclose(back[plain.hit], b[plain.hit], atol=1e-9, rtol=0.0)


@pytest.mark.parametrize(
    ("origin", "direction", "time", "reach", "problem"),
    [
        ([0.0, math.nan, 1.0], DOWN, 0.0, 1.0, "ray of row 0"),
        ([[0.0, 0.0, 1.0], [0.0, 0.0, math.inf]], DOWN, 0.0, 1.0, "ray of row 1"),
        ([0.0, 0.0, 1.0], (0.0, 0.0, 0.0), 0.0, 1.0, "direction not zero"),
        ([0.0, 0.0, 1.0], (0.0, math.nan, 1.0), 0.0, 1.0, "ray"),
        ([0.0, 0.0, 1.0], DOWN, 0.0, -1.0, "range at least 0"),
        ([0.0, 0.0, 1.0], DOWN, 0.0, math.nan, "range at least 0"),
        ([0.0, 0.0], DOWN, 0.0, 1.0, "shapes of origins"),
        (np.zeros((4, 3)), np.ones((5, 3)), 0.0, 1.0, "shapes of origins"),
        (np.zeros((4, 3)), DOWN, np.zeros(3), 1.0, "shapes of origins"),
    ],
)
def test_invalid_ray_is_an_error(
    origin: AnyArray, direction: AnyArray, time: float, reach: float, problem: str
) -> None:
    with pytest.raises(FieldError, match=problem):
        make_scene().cast(origin, direction, time, reach)


def test_time_after_the_end_of_a_motion_is_an_error() -> None:
    world = Scene((Body("a", Sphere(), motion=RotatingMotion((0.0,) * 3, (0.0,) * 3, (0.0, 0.0, 1.0), 1.0, end=2.0)),))
    with pytest.raises(MotionError):
        world.cast([0.0, 0.0, 5.0], DOWN, 2.5)


def test_empty_scene_and_no_rays() -> None:
    assert not Scene().cast([0.0, 0.0, 5.0], DOWN, 0.0).hit
    assert make_scene().cast(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0)).range.shape == (0,)

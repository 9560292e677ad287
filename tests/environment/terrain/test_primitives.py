"""Simple shapes equal MuJoCo and chosen surface points, also where two parts touch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import FieldError
from navsense.core.typing import AnyArray
from navsense.environment.terrain import primitives
from navsense.environment.terrain.base import MAX_DISTANCE, MIN_SIZE, Rays, Shape
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere

pytestmark = pytest.mark.requirement("DVU-2")

SHAPES: dict[str, Shape] = {
    "box": Box((1.4, 2.2, 0.8)),
    "sphere": Sphere(0.9),
    "cylinder": Cylinder(0.6, 1.6),
    "capsule": Capsule(0.5, 1.4),
    "ellipsoid": Ellipsoid((0.5, 1.2, 0.8)),
    "plane": Plane(),
}


def cast_rays(shape: Shape, origin: Any, direction: Any, max_range: float = math.inf) -> tuple[AnyArray, AnyArray]:
    origin, direction = np.atleast_2d(np.array(origin, dtype=float)), np.atleast_2d(np.array(direction, dtype=float))
    origin, direction = (np.ascontiguousarray(a) for a in np.broadcast_arrays(origin, direction))
    direction = direction / np.sqrt((direction**2).sum(axis=1))[:, None]
    distance, normal = np.empty(len(origin)), np.full(origin.shape, math.nan)
    shape.trace(Rays(origin, direction, np.full(len(origin), max_range), distance, normal))
    return distance, normal


def make_level_function(name: str, p: AnyArray) -> AnyArray:
    """Return a function that is 0 on a shape's surface, negative inside, and a distance near the surface."""
    x, y, z = np.abs(p).T
    round_ = np.hypot(x, y)
    match name:
        case "box":
            return np.maximum.reduce((x - 0.7, y - 1.1, z - 0.4))
        case "sphere":
            return np.sqrt(x * x + y * y + z * z) - 0.9
        case "cylinder":
            return np.maximum(round_ - 0.6, z - 0.8)
        case "capsule":
            return np.hypot(round_, np.maximum(z - 0.7, 0.0)) - 0.5
        case "ellipsoid":
            return np.sqrt((x / 0.5) ** 2 + (y / 1.2) ** 2 + (z / 0.8) ** 2) - 1.0
    return p[:, 2]


@pytest.mark.parametrize("name", SHAPES)
def test_ranges_equal_mujoco(name: str, read_oracle: Callable[[str], dict[str, AnyArray]]) -> None:
    table = read_oracle("mujoco/shapes.csv")
    rows = table["shape"] == name
    origin, direction = (np.stack([table[k][rows] for k in keys.split()], axis=1) for keys in ("x y z", "dx dy dz"))
    distance, _ = cast_rays(SHAPES[name], origin, direction)
    assert rows.sum() == 40
    np.testing.assert_allclose(distance, table["range"][rows], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_ray_ends_at_the_first_surface(name: str) -> None:
    rng = np.random.default_rng(2)
    origin = rng.uniform(-2.0, 2.0, (300, 3))
    direction = rng.uniform(-1.0, 1.0, (300, 3)) - origin
    direction /= np.sqrt((direction**2).sum(axis=1))[:, None]
    distance, normal = cast_rays(SHAPES[name], origin, direction)
    hit = np.isfinite(distance)
    assert 40 < hit.sum() < 300
    end = origin[hit] + distance[hit, None] * direction[hit]
    assert np.abs(make_level_function(name, end)).max() < 1e-14
    np.testing.assert_allclose((normal[hit] ** 2).sum(axis=1), 1.0, atol=1e-14, rtol=0.0)
    assert ((normal * direction).sum(axis=1)[hit] <= 0.0).all()
    side = np.sign(make_level_function(name, origin))
    part = np.linspace(0.0, 1.0, 200)[1:-1]
    for n in range(300):
        along = origin[n] + np.outer(part * min(distance[n], 9.0), direction[n])
        assert (np.sign(make_level_function(name, along)) == side[n]).all()
    step = 1e-6 * normal[hit]  # the normal points to increasing values of the level function, outside, and back inside
    slope = (make_level_function(name, end + step) - make_level_function(name, end - step)) / 2e-6
    tangent = np.cross(normal[hit], rng.normal(size=end.shape))
    flat = (make_level_function(name, end + 1e-6 * tangent) - make_level_function(name, end - 1e-6 * tangent)) / 2e-6
    assert (np.sign(slope) == side[hit]).all()
    smooth = np.abs(flat) < 1e-3
    assert smooth.mean() > 0.98  # except where a difference crosses a corner


@pytest.mark.parametrize("name", ["box", "cylinder", "capsule"])
def test_no_ray_slips_through_where_parts_touch(name: str) -> None:
    angle = np.random.default_rng(3).uniform(0.0, 2.0 * math.pi, 500)
    if name == "box":
        t = np.linspace(-1.0, 1.0, 126)[1:]
        edge = np.concatenate(
            [np.stack((t * a, 0 * t + b, 0 * t + c), 1) for a, b, c in ((0.7, 1.1, 0.4), (0.7, -1.1, 0.4))]
        )
    else:
        radius, half = (0.6, 0.8) if name == "cylinder" else (0.5, 0.7)
        edge = np.stack((radius * np.cos(angle), radius * np.sin(angle), half + 0.0 * angle), axis=1)
    for inner in ((0.0, 0.0, 0.0), (0.1, -0.2, 0.3)):
        away = edge - inner
        far = np.sqrt((away**2).sum(axis=1))
        outward, _ = cast_rays(SHAPES[name], inner, away)
        np.testing.assert_allclose(outward, far, rtol=1e-14, atol=0.0)
        inward, _ = cast_rays(SHAPES[name], edge + 3.0 * away, -away)
        np.testing.assert_allclose(inward, 3.0 * far, rtol=1e-13, atol=0.0)


def test_capsule_has_no_inner_surfaces() -> None:
    distance, normal = cast_rays(
        SHAPES["capsule"], [[0.0, 0.0, 0.0], [0.0, 0.0, 9.0]], [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]
    )
    np.testing.assert_allclose(distance, [1.2, 7.8], rtol=1e-15, atol=0.0)
    assert normal.tolist() == [[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]]


def test_planes_and_faces_match_manual_calculations() -> None:
    slanted = Plane((0.0, 3.0, 4.0))
    distance, normal = cast_rays(slanted, [[1.0, 0.0, 5.0], [1.0, 0.0, -5.0], [1.0, 0.0, 0.0]], [[0.0, 0.0, -1.0]] * 3)
    assert distance.tolist() == [5.0, math.inf, 0.0]
    np.testing.assert_allclose(normal[0], (0.0, 0.6, 0.8), atol=1e-15, rtol=0.0)
    box = Box((2.0, 4.0, 6.0))
    distance, normal = cast_rays(
        box,
        [[5.0, 0.0, 0.0], [0.0, -5.0, 1.0], [0.5, 0.5, 9.0], [0.0, 0.0, 0.0]],
        np.array([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]]),
    )
    assert distance.tolist() == [4.0, 3.0, 6.0, 1.0]
    assert normal.tolist() == [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]]
    distance, normal = cast_rays(
        Cylinder(1.0, 2.0), [[0.3, 0.4, 9.0], [9.0, 0.0, 0.5]], [[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]]
    )
    assert distance.tolist() == [8.0, 8.0]
    assert normal.tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize("name", SHAPES)
def test_maximum_range_is_respected(name: str) -> None:
    far, _ = cast_rays(SHAPES[name], [0.1, 0.05, 9.0], [0.0, 0.0, -1.0])
    assert cast_rays(SHAPES[name], [0.1, 0.05, 9.0], [0.0, 0.0, -1.0], float(far[0]))[0][0] == far[0]
    assert cast_rays(SHAPES[name], [0.1, 0.05, 9.0], [0.0, 0.0, -1.0], float(far[0]) * (1.0 - 1e-15))[0][0] == math.inf


@pytest.mark.parametrize("size", [MIN_SIZE, MAX_DISTANCE])
def test_smallest_and_largest_shapes_are_hit(size: float) -> None:
    """Each ray starts one size above the top and points straight down."""
    tops: dict[Shape, float] = {
        Sphere(size): 1.0,
        Ellipsoid((MAX_DISTANCE, MIN_SIZE, size)): 1.0,
        Box((MAX_DISTANCE, MIN_SIZE, size)): 0.5,
        Cylinder(MAX_DISTANCE, size): 0.5,
        Cylinder(MIN_SIZE, size): 0.5,
        Capsule(size, size): 1.5,
    }
    for shape, top in tops.items():
        distance, normal = cast_rays(shape, [0.0, 0.0, (top + 1.0) * size], [0.0, 0.0, -1.0])
        assert distance[0] == pytest.approx(size, rel=1e-12, abs=0.0), shape
        assert normal[0] == pytest.approx([0.0, 0.0, 1.0], rel=1e-12, abs=1e-15), shape


def test_range_of_a_distant_sphere_is_exact() -> None:
    away = np.array([[2e6, -1e6, 2e6]])
    distance, _ = cast_rays(Sphere(0.5), away, -away)
    assert abs(distance[0] - (3e6 - 0.5)) < 2e-9
    beside, _ = cast_rays(Sphere(0.5), away + [[0.0, 0.51, 0.51]], -away)
    assert beside[0] == math.inf


@pytest.mark.parametrize("name", SHAPES)
def test_compiled_and_interpreted_agree_to_the_last_bit(
    name: str, interpret: Callable[[Any], Callable[..., Any]]
) -> None:
    parameters = {
        "box": (primitives.BOX, 0.7, 1.1, 0.4),
        "sphere": (primitives.ELLIPSOID, 0.9, 0.9, 0.9),
        "cylinder": (primitives.CYLINDER, 0.6, 0.8, 0.0),
        "capsule": (primitives.CAPSULE, 0.5, 0.7, 0.0),
        "ellipsoid": (primitives.ELLIPSOID, 0.5, 1.2, 0.8),
        "plane": (primitives.PLANE, 0.0, 0.0, 1.0),
    }
    rng = np.random.default_rng(6)
    origin, direction = rng.uniform(-2.0, 2.0, (60, 3)), rng.normal(size=(60, 3))
    direction /= np.sqrt((direction**2).sum(axis=1))[:, None]
    distance, normal = np.empty(60), np.full((60, 3), math.nan)
    interpret(primitives._trace)(*parameters[name], origin, direction, np.full(60, 9.0), distance, normal)
    fast, slanted = np.empty(60), np.full((60, 3), math.nan)
    SHAPES[name].trace(Rays(origin, direction, np.full(60, 9.0), fast, slanted))
    np.testing.assert_array_equal(fast, distance)
    np.testing.assert_array_equal(slanted, normal)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Box((1.0, 0.0, 1.0)),
        lambda: Sphere(-1.0),
        lambda: Cylinder(1.0, math.inf),
        lambda: Capsule(math.nan, 1.0),
        lambda: Ellipsoid((1.0, 1.0, 0.0)),
        lambda: Plane((0.0, 0.0, 0.0)),
        lambda: Plane((0.0, 0.0, math.nan)),
        lambda: Plane((0.0, 1e-200, 0.0)),
        lambda: Cylinder(1e200, 1.0),  # its squared radius is infinite, and a ray would miss its end face
        lambda: Ellipsoid((1.0, 1.0, 1e-200)),
    ],
)
def test_invalid_shape_is_an_error(make: Callable[[], Shape]) -> None:
    with pytest.raises(FieldError):
        make()

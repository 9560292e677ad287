"""Meshes: files, rays on their triangles, and damaged files."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import FieldError
from navsense.core.kernels import INTERPRETED
from navsense.core.typing import AnyArray
from navsense.environment.terrain import mesh as module
from navsense.environment.terrain.base import Rays
from navsense.environment.terrain.mesh import Mesh

pytestmark = pytest.mark.requirement("DVU-2")

COUNT = 20 if INTERPRETED else 400


def cast_rays(shape: Mesh, origin: Any, direction: Any, max_range: float = math.inf) -> tuple[AnyArray, AnyArray]:
    origin, direction = np.atleast_2d(np.array(origin, dtype=float)), np.atleast_2d(np.array(direction, dtype=float))
    origin, direction = (np.ascontiguousarray(a) for a in np.broadcast_arrays(origin, direction))
    direction = direction / np.sqrt((direction**2).sum(axis=1))[:, None]
    distance, normal = np.empty(len(origin)), np.full(origin.shape, math.nan)
    shape.trace(Rays(origin, direction, np.full(len(origin), max_range), distance, normal))
    return distance, normal


def make_ball(rings: int, sides: int) -> AnyArray:
    """Return the triangles of a closed ball of radius 1. At the poles, every second triangle has no area."""
    down, round_ = np.meshgrid(np.linspace(0.0, math.pi, rings + 1), np.linspace(0.0, 2.0 * math.pi, sides + 1))
    p = np.stack((np.sin(down) * np.cos(round_), np.sin(down) * np.sin(round_), np.cos(down)), axis=-1)
    p[-1] = p[0]  # bitwise closed
    p[:, 0], p[:, -1] = (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)
    a, b, c, d = p[:-1, :-1], p[1:, :-1], p[:-1, 1:], p[1:, 1:]
    both = np.stack((a, c, d), axis=2).reshape(-1, 3, 3), np.stack((a, d, b), axis=2).reshape(-1, 3, 3)
    return np.concatenate(both)


def test_reference_is_exact_for_one_triangle(
    compute_reference_ranges: Callable[[AnyArray, AnyArray, AnyArray], AnyArray],
) -> None:
    corner = np.array([[[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 4.0, 2.0]]])
    origin = np.array([[1.0, 1.0, 3.0], [1.0, 1.0, -1.0], [3.0, 3.0, 3.0]])
    down, up = [0.0, 0.0, -1.0], [0.0, 0.0, 1.0]
    assert compute_reference_ranges(corner, origin, np.array([down, up, down])).tolist() == [2.5, 1.5, np.inf]


@pytest.mark.parametrize("count", [1, 4, 5, 60, 700])
def test_ranges_equal_the_slow_reference(
    count: int, compute_reference_ranges: Callable[[AnyArray, AnyArray, AnyArray], AnyArray]
) -> None:
    rng = np.random.default_rng(count)
    triangles = rng.uniform(-5.0, 5.0, (count, 1, 3)) + rng.normal(size=(count, 3, 3))
    origin, target = rng.uniform(-9.0, 9.0, (2, COUNT, 3))
    target[: COUNT // 2] = triangles[rng.integers(0, count, COUNT // 2)].mean(axis=1)
    direction = target - origin
    direction[::9, 1] = 0.0
    direction /= np.sqrt((direction**2).sum(axis=1))[:, None]
    mesh = Mesh(triangles)
    distance, normal = cast_rays(mesh, origin, direction)
    np.testing.assert_allclose(distance, compute_reference_ranges(triangles, origin, direction), rtol=1e-9, atol=0.0)
    hit = np.isfinite(distance)
    assert hit.sum() >= COUNT // 3
    assert ((normal * direction).sum(axis=1)[hit] <= 0.0).all()
    near, _ = cast_rays(mesh, origin[hit], direction[hit], 2.0)
    assert (np.isfinite(near) == (distance[hit] <= 2.0)).all()


def test_no_ray_slips_through_a_vertex_or_an_edge() -> None:
    triangles = make_ball(8, 11)
    mesh = Mesh(triangles)
    target = np.concatenate((triangles, 0.5 * (triangles + np.roll(triangles, 1, axis=1)))).reshape(-1, 3)
    target = np.unique(target, axis=0)
    rng = np.random.default_rng(1)
    for _ in range(1 if INTERPRETED else 60):
        inner = rng.uniform(-0.4, 0.4, 3)
        away = target - inner
        far = np.sqrt((away**2).sum(axis=1))
        outward, _ = cast_rays(mesh, inner, away)
        assert (outward <= far * (1.0 + 1e-9)).all()
        inward, _ = cast_rays(mesh, target + 7.0 * away, -away)
        assert (inward <= 7.0 * far * (1.0 + 1e-9)).all()
    axis = np.array([[0.0, 0.0, 5.0], [0.0, 0.0, -5.0], [5.0, 0.0, 0.0], [0.0, -5.0, 0.0]])
    assert (cast_rays(mesh, axis, -axis)[0] <= 4.1).all()


def test_rays_along_the_axes_hit_a_flat_mesh() -> None:
    square = np.array(
        [[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]]
    )
    mesh = Mesh(square)
    places = np.array([[0.0, 0.0, 3.0], [1.0, 1.0, 3.0], [0.5, 0.5, 3.0], [1.0, 0.3, 3.0], [0.2, 0.7, 3.0]])
    distance, normal = cast_rays(mesh, places, [0.0, 0.0, -1.0])
    np.testing.assert_allclose(distance, 3.0, rtol=1e-15, atol=0.0)
    assert normal.tolist() == [[0.0, 0.0, 1.0]] * 5
    assert cast_rays(mesh, [2e6 + 0.5, 0.25, 2e6], [-1.0, 0.0, -1.0])[0][0] == pytest.approx(
        2e6 * math.sqrt(2.0), rel=1e-15, abs=0.0
    )
    assert cast_rays(mesh, [0.5, 0.25, -3.0], [0.0, 0.0, -1.0])[0][0] == math.inf


def test_mesh_far_from_the_origin_keeps_precision() -> None:
    place = np.array((4e5, -5e5, 20.0))  # where single precision resolves a few centimetres
    mesh = Mesh(make_ball(30, 40) + place)
    distance, _ = cast_rays(mesh, place + (0.3, 0.4, 9.0), [0.0, 0.0, -1.0])
    beside, _ = cast_rays(Mesh(make_ball(30, 40)), [0.3, 0.4, 9.0], [0.0, 0.0, -1.0])
    assert abs(distance[0] - beside[0]) < 1e-9


def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    triangles, rng = make_ball(6, 7), np.random.default_rng(5)
    mesh = Mesh(triangles)
    rows = triangles.reshape(-1, 9)
    kept = np.empty(len(rows), dtype=np.bool_)
    assert interpret(module._mark_valid)(rows, kept) == -1
    solid = rows[kept]
    order, links, nodes = np.arange(len(solid)), np.zeros((2 * len(solid), 3), np.int64), np.empty((2 * len(solid), 6))
    used = interpret(module._build_tree)(
        module._make_boxes(solid), order, nodes, links, np.empty((2 * module.BIN_COUNT, 7))
    )
    np.testing.assert_array_equal(nodes[:used], mesh._nodes)
    np.testing.assert_array_equal(links[:used], mesh._links)
    np.testing.assert_array_equal(solid[order].reshape(-1, 3, 3), mesh.triangles)
    origin, direction = rng.uniform(-2.0, 2.0, (30, 3)), rng.normal(size=(30, 3))
    direction /= np.sqrt((direction**2).sum(axis=1))[:, None]
    distance, found, normal = np.empty(30), np.empty(30, np.int64), np.full((30, 3), math.nan)
    stack, max_range = np.empty(module.STACK_SIZE, np.int64), np.full(30, 9.0)
    interpret(module._trace_rays)(nodes, links, solid[order], stack, origin, direction, max_range, distance, found)
    interpret(module._write_normals)(solid[order], found, direction, normal)
    fast, slanted = np.empty(30), np.full((30, 3), math.nan)
    mesh.trace(Rays(origin, direction, max_range, fast, slanted))
    np.testing.assert_array_equal(fast, distance)
    np.testing.assert_array_equal(slanted, normal)


@pytest.mark.parametrize("direction", [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.6, 0.0, -0.8]])
def test_ray_that_starts_on_the_mesh_has_range_0(direction: list[float]) -> None:
    mesh = Mesh(np.array([[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]))
    assert cast_rays(mesh, [0.25, 0.25, 0.0], direction)[0][0] == 0.0


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["points", "needles", "one has an area", "one place"])
def test_million_degenerate_faces_terminate(kind: str) -> None:
    rng, count = np.random.default_rng(4), 1_000_000
    triangles = np.repeat(rng.uniform(-1.0, 1.0, (count, 1, 3)), 3, axis=1)
    if kind == "needles":
        triangles[:, 1] = triangles[:, 0] + (1.0, 0.0, 0.0)
        triangles[:, 2] = triangles[:, 0] + (2.0, 0.0, 0.0)
    start = time.process_time()
    if kind == "points":
        with pytest.raises(FieldError, match="1000000 triangles; must have one with an area"):
            Mesh(triangles)
    elif kind == "one has an area":
        triangles[77] = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
        mesh = Mesh(triangles)
        assert mesh.degenerate == count - 1
        assert cast_rays(mesh, [0.2, 0.2, 3.0], [0.0, 0.0, -1.0])[0][0] == 3.0
    elif kind == "one place":  # no split is possible: all faces at one position
        mesh = Mesh(np.tile([[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], (count, 1, 1)))
        assert cast_rays(mesh, [2.0, 0.2, 3.0], [0.0, 0.0, -1.0])[0][0] == math.inf
    else:
        slivers = Mesh(triangles + rng.normal(size=triangles.shape) * 1e-9)
        assert slivers.triangles.shape[0] > 0
    assert time.process_time() - start < 60.0


def test_tree_depth_is_within_the_stack() -> None:
    """The positions of the triangles halve repeatedly: the cheapest split removes a few at each level."""
    count = 60 if INTERPRETED else 3000
    size = 2.0 ** -(np.arange(count) % 900.0)
    triangles = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) * 1e-3
    mesh = Mesh(triangles + np.stack((size, 0.0 * size, 0.0 * size), axis=1)[:, None, :])
    depth = np.zeros(len(mesh._links), dtype=int)
    for node, (first, held, _) in enumerate(mesh._links.tolist()):
        if held == 0:
            depth[node + 1] = depth[first] = depth[node] + 1
    assert depth.max() <= module.MAX_SAH_DEPTH + math.ceil(math.log2(count)) < module.STACK_SIZE


# Files

SQUARE = "v 0 0 0\nv 2 0 0\nv 2 2 0\nv 0 2 0\n"


def save(folder: Path, data: str | bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def encode_binary_stl(triangles: AnyArray, head: bytes = b"made by a test") -> bytes:
    facets = b"".join(bytes(12) + t.astype("<f4").tobytes() + bytes(2) for t in triangles)
    return head.ljust(80, b" ") + len(triangles).to_bytes(4, "little") + facets


def format_facet(corners: str) -> str:
    a, b, c = corners.split(",")
    return f" facet normal 0 0 1e+0\n  outer loop\n   vertex {a}\n   vertex {b}\n   vertex {c}\n  endloop\n endfacet\n"


def test_binary_stl_is_read(tmp_path: Path) -> None:
    triangles = make_ball(4, 5)[:7]
    for head in (b"made by a test", b"solid, though binary"):
        path = save(tmp_path, encode_binary_stl(triangles, head), "a.STL")
        read = np.sort(Mesh.from_file(path, (1.0, 2.0, -1.0)).triangles, axis=0)
        kept = triangles[
            np.abs(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])).max(1) > 0
        ]
        np.testing.assert_array_equal(read, np.sort(kept.astype(np.float32).astype(float) * (1.0, 2.0, -1.0), axis=0))


def test_text_stl_is_read(tmp_path: Path) -> None:
    text = (
        "solid a part\n"
        + format_facet("0 0 0,1 0 0,0 1 0")
        + "endsolid a part\nSOLID\n"
        + format_facet("0 0 1,1. 0 1,0 .5E+1 1")
        + "endsolid"
    )
    mesh = Mesh.from_file(save(tmp_path, text.replace("\n", "\r\n"), "a.stl"))
    assert mesh.triangles[:, 0, 2].tolist() == [0.0, 1.0]
    assert mesh.triangles[1, 2].tolist() == [0.0, 5.0, 1.0]


def test_obj_is_read(tmp_path: Path) -> None:
    text = f"# a square\nmtllib x.mtl\no floor\n{SQUARE}vn 0 0 1\nvt 0 0\nf 1//1 2//1 3/1/1 \\\n 4\n"
    text += "o wall\nv 0 0 5 1.0\ng a\nf -1 1 2\nl 1 2\n"
    path = save(tmp_path, text, "a.obj")
    mesh = Mesh.from_file(path)
    assert len(mesh.triangles) == 3
    assert cast_rays(mesh, [1.5, 1.0, 3.0], [0.0, 0.0, -1.0])[0][0] == 3.0
    assert len(Mesh.from_file(path, submesh="floor").triangles) == 2
    for name in ("wall", "a"):
        assert Mesh.from_file(path, submesh=name).triangles.max() == 5.0
    middle = Mesh.from_file(path, submesh="wall", center=True).triangles
    assert middle.reshape(-1, 3).min(axis=0).tolist() == [-1.0, 0.0, -2.5]
    with pytest.raises(FieldError, match="submesh: roof; must be the name"):
        Mesh.from_file(path, submesh="roof")


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("a.dae", "<COLLADA/>", ".dae; must be an STL or an OBJ file; convert it"),
        ("a", "v 0 0 0", "no suffix"),
        ("a.stl", "", "begins with b''"),
        ("a.stl", "something else\n", "begins with"),
        ("a.stl", encode_binary_stl(make_ball(4, 5))[:-7], "for the 40 triangles that it announces"),
        ("a.stl", encode_binary_stl(make_ball(4, 5)) + bytes(50), "for the 40 triangles that it announces"),
        ("a.stl", encode_binary_stl(make_ball(4, 5)[:0]), "no triangles"),
        ("a.stl", "solid a\nendsolid a", "no triangles"),
        ("a.stl", "solid a\n" + format_facet("0 0 0,1 0 0,0 1 0") + " facet normal\n", "a.stl:9: STL file: facet"),
        ("a.stl", "solid a\n" + format_facet("0 0 0,1 0 0,0 1 nan"), "corners of triangle 1 (m)"),
        ("a.stl", "solid a\n" + format_facet("0 0 0,1 0 0,0 1 1-1"), "STL file's vertex"),
        ("a.stl", encode_binary_stl(np.full((1, 3, 3), np.inf)), "corners of triangle 1 (m)"),
        ("a.obj", "", "no triangles"),
        ("a.obj", SQUARE, "no triangles"),
        ("a.obj", SQUARE + "f 1 2 5\n", "a.obj:5: OBJ file's face: f 1 2 5; must name at least three of the 4"),
        ("a.obj", SQUARE + "f 1 2 -5\n", "OBJ file's face"),
        ("a.obj", SQUARE + "f 1 2 0\n", "OBJ file's face"),
        ("a.obj", SQUARE + "f 1 2 --1\n", "OBJ file's face"),
        ("a.obj", SQUARE + "f 1 2 " + "9" * 5000, "OBJ file's face"),
        ("a.obj", "v 0 0 1_0\nf 1 1 1\n", "OBJ file's vertex"),
        ("a.obj", SQUARE + "f 1 2\n", "OBJ file's face"),
        ("a.obj", SQUARE + "f 1 2 b\n", "OBJ file's face"),
        ("a.obj", "v 0 0\nf 1 1 1\n", "a.obj:1: OBJ file's vertex: v 0 0; must be v x y z"),
        ("a.obj", "v 0 0 x\nf 1 1 1\n", "OBJ file's vertex"),
        ("a.obj", SQUARE + "v 1 1 2e9\nf 1 2 5\n", "within 1e+09 m"),
        ("a.obj", SQUARE + "f 1 1 2\n", "must have one with an area"),
    ],
)  # fmt: skip
def test_invalid_mesh_is_an_error(name: str, data: str | bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises(FieldError) as caught:
        Mesh.from_file(save(tmp_path, data, name))
    assert what in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))


def test_invalid_mesh_queries_are_errors(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="does not exist"):
        Mesh.from_file(tmp_path / "none.stl")
    path = save(tmp_path, encode_binary_stl(make_ball(4, 5)), "a.stl")
    with pytest.raises(FieldError, match="an STL file has no parts"):
        Mesh.from_file(path, submesh="a")
    with pytest.raises(FieldError, match="scale"):
        Mesh.from_file(path, (1.0, 0.0, 1.0))
    with pytest.raises(FieldError, match="mesh's shape"):
        Mesh(np.zeros((4, 3)))


EDGES = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 1.0, 0.0), (1.0, 0.0, -2.0), (1.0, -1.0, 3.0)]


@pytest.mark.parametrize("one", EDGES)
@pytest.mark.parametrize("other", EDGES)
def test_triangles_without_an_area_are_counted(one: tuple[float, ...], other: tuple[float, ...]) -> None:
    """Two edges from a corner span an area unless they are collinear, along the axes and diagonally."""
    corner, good = np.array((0.5, -0.25, 2.0)), [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 1.0)]
    tested = [corner, corner + one, corner + 2.0 * np.array(other)]
    assert Mesh(np.array([good, tested])).degenerate == (one == other)

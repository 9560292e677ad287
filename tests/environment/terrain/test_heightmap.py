"""Rays on heightmaps: planes, other programs, a slow reference, and rays at every vertex and edge."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import FieldError
from navsense.core.kernels import INTERPRETED
from navsense.core.typing import AnyArray
from navsense.environment.terrain import heightmap as module
from navsense.environment.terrain.base import Rays
from navsense.environment.terrain.heightmap import Heightmap

pytestmark = pytest.mark.requirement("DVU-2", "ALT-8")

COUNT = 300 if INTERPRETED else 3000


def cast_rays(
    shape: Any, origin: AnyArray, direction: AnyArray, max_range: float = math.inf
) -> tuple[AnyArray, AnyArray]:
    """Return ranges (n,) and normals (n, 3) of rays with normalised directions."""
    origin, direction = np.atleast_2d(np.array(origin, dtype=float)), np.atleast_2d(np.array(direction, dtype=float))
    origin, direction = (np.ascontiguousarray(a) for a in np.broadcast_arrays(origin, direction))
    direction = direction / np.sqrt((direction**2).sum(axis=1))[:, None]
    distance, normal = np.empty(len(origin)), np.full(origin.shape, math.nan)
    shape.trace(Rays(origin, direction, np.full(len(origin), max_range), distance, normal))
    return distance, normal


def list_triangles(bed: Heightmap) -> AnyArray:
    """Return the triangles (m, 3, 3) of a heightmap."""
    rows, columns = bed.heights.shape
    x, y = np.meshgrid(
        bed.corner[0] + bed.spacing[0] * np.arange(columns), bed.corner[1] + bed.spacing[1] * np.arange(rows)
    )
    p = np.stack((x, y, bed.heights), axis=-1)
    sw, se, nw, ne = p[:-1, :-1], p[:-1, 1:], p[1:, :-1], p[1:, 1:]
    return np.concatenate(
        (np.stack((sw, se, ne), axis=2).reshape(-1, 3, 3), np.stack((sw, ne, nw), axis=2).reshape(-1, 3, 3))
    )


def make_rough_bed(rows: int, columns: int, seed: int = 3) -> Heightmap:
    heights = np.random.default_rng(seed).uniform(-1.0, 1.0, (rows, columns))
    return Heightmap(heights, (0.5, 0.75), (-3.0, 2.0))


@pytest.mark.parametrize("shape", [(2, 2), (9, 6), (70, 33)])
def test_ranges_to_a_slope_equal_those_to_a_plane(shape: tuple[int, int]) -> None:
    east, north = 0.3, -0.45
    x, y = np.meshgrid(np.arange(shape[1]) * 2.0 - 3.0, np.arange(shape[0]) * 3.0 + 1.0)
    bed = Heightmap(east * x + north * y + 5.0, (2.0, 3.0), (-3.0, 1.0))
    rng = np.random.default_rng(1)
    low, high = np.array((x.min(), y.min())), np.array((x.max(), y.max()))
    target = np.empty((COUNT, 3))
    target[:, :2] = rng.uniform(low, high, (COUNT, 2))
    target[:, 2] = east * target[:, 0] + north * target[:, 1] + 5.0
    side = np.where(rng.random(COUNT) < 0.5, -1.0, 1.0)[:, None]
    away = rng.normal(size=(COUNT, 3))
    plane = np.array((-east, -north, 1.0)) / math.sqrt(east**2 + north**2 + 1.0)
    away *= np.sign(away @ plane)[:, None] * side
    far = np.sqrt((away**2).sum(axis=1))
    steep = np.abs(away @ plane) / far
    distance, normal = cast_rays(bed, target + away, -away)
    keep = steep > 1e-3  # amplification of the error of a grazing range
    assert keep.sum() > 0.9 * COUNT
    assert np.max(np.abs(distance - far)[keep] * steep[keep]) < 1e-13 * 200.0
    np.testing.assert_allclose(normal, plane * side, atol=1e-13, rtol=0.0)


def test_one_cell_matches_a_manual_calculation() -> None:
    bed = Heightmap(np.array([[0.0, 1.0], [4.0, 2.0]]))  # south row, then north row
    distance, normal = cast_rays(bed, [[0.5, 0.25, 10.0], [0.25, 0.5, 10.0], [0.5, 0.5, 10.0]], [0.0, 0.0, -1.0])
    assert distance.tolist() == [10.0 - 0.75, 10.0 - 1.5, 10.0 - 1.0]
    np.testing.assert_allclose(normal[0], np.array((-1.0, -1.0, 1.0)) / math.sqrt(3.0), atol=1e-15, rtol=0.0)
    np.testing.assert_allclose(normal[1], np.array((2.0, -4.0, 1.0)) / math.sqrt(21.0), atol=1e-15, rtol=0.0)


def test_ranges_equal_mujoco(read_oracle: Callable[[str], dict[str, AnyArray]]) -> None:
    table = read_oracle("mujoco/hfield.csv")
    i, j = np.meshgrid(np.arange(9), np.arange(7))
    bed = Heightmap((5 * i**2 + 3 * j**2 + 7 * i * j + 3 * i) % 64 / 16.0, (1.0, 1.0), (-4.0, -3.0))
    origin, direction, expected = (
        np.stack([table[name] for name in names.split()], axis=1) for names in ("x y z", "dx dy dz", "nx ny nz")
    )
    distance, normal = cast_rays(bed, origin, direction)
    np.testing.assert_allclose(distance, table["range"], atol=3e-6, rtol=0.0)  # its heights are single precision
    assert ((normal * expected).sum(axis=1) > 1.0 - 1e-6).all()


@pytest.mark.parametrize(("rows", "columns"), [(23, 17), (5, 40), (2, 3)])
def test_ranges_equal_the_slow_reference(
    rows: int, columns: int, compute_reference_ranges: Callable[[AnyArray, AnyArray, AnyArray], AnyArray]
) -> None:
    bed, rng = make_rough_bed(rows, columns), np.random.default_rng(4)
    low = np.array((bed.corner[0] - 2.0, bed.corner[1] - 2.0, -2.0))
    high = low + (bed.spacing[0] * columns + 4.0, bed.spacing[1] * rows + 4.0, 4.0)
    origin, target = rng.uniform(low, high, (2, COUNT // 5, 3))
    target[:, :2] = rng.uniform((-3.0, 2.0), np.array((-3.0, 2.0)) + (0.5 * columns, 0.75 * rows), (COUNT // 5, 2))
    direction = target - origin
    direction[::2, 2] *= 0.1  # grazing rays
    direction[::7, 0] = 0.0
    direction[::5, 1] = 0.0
    direction /= np.sqrt((direction**2).sum(axis=1))[:, None]
    distance, normal = cast_rays(bed, origin, direction)
    expected = compute_reference_ranges(list_triangles(bed), origin, direction)
    np.testing.assert_allclose(distance, expected, atol=1e-7, rtol=0.0)
    hit = np.isfinite(distance)
    assert hit.sum() > COUNT // 80
    assert ((normal * direction).sum(axis=1)[hit] <= 0.0).all()


def make_hills(rows: int, columns: int, spacing: float = 1.0) -> Heightmap:
    """Return a bed on which most blocks of cells are far above or below the others."""
    x, y = np.meshgrid(np.arange(columns) * spacing, np.arange(rows) * spacing)
    rough = np.random.default_rng(6).uniform(-0.05, 0.05, (rows, columns)) * spacing
    return Heightmap(4.0 * np.sin(0.11 * x) + 3.0 * np.cos(0.13 * y + 0.02 * x) + rough, (spacing, spacing))


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_hills_are_hit_from_above_and_below(
    side: float, compute_reference_ranges: Callable[[AnyArray, AnyArray, AnyArray], AnyArray]
) -> None:
    bed, rng, count = make_hills(60, 75), np.random.default_rng(8), COUNT // 20
    assert len(bed._levels) == 4  # cells, and blocks of 8, 64 and 512 cells
    target = np.stack((rng.uniform(1.0, 73.0, count), rng.uniform(1.0, 58.0, count), np.zeros(count)), axis=1)
    origin = target + rng.normal(size=(count, 3)) * (60.0, 60.0, 0.0) + (0.0, 0.0, side * 12.0)
    origin[::3, :2] = target[::3, :2] + rng.uniform(-3.0, 3.0, (len(target[::3]), 2))
    direction = target - origin
    direction /= np.sqrt((direction**2).sum(axis=1))[:, None]
    distance, normal = cast_rays(bed, origin, direction)
    expected = compute_reference_ranges(list_triangles(bed), origin, direction)
    np.testing.assert_allclose(distance, expected, atol=1e-7, rtol=0.0)
    hit = np.isfinite(distance)
    assert hit.sum() > count // 2
    assert ((normal[hit] * direction[hit]).sum(axis=1) < 0.0).all()


def test_ranges_do_not_depend_on_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    bed, rng = make_hills(130, 600, 0.5), np.random.default_rng(7)
    count = 150 if INTERPRETED else 5000
    origin = rng.uniform((-20.0, -20.0, -25.0), (320.0, 85.0, 25.0), (count, 3))
    direction = rng.normal(size=(count, 3)) * (1.0, 1.0, 0.3)
    direction[:, 2] = -np.copysign(direction[:, 2], origin[:, 2])
    complete = cast_rays(bed, origin, direction)
    hit = np.isfinite(complete[0])
    assert 0.2 * count < hit.sum() < 0.9 * count
    backwards = cast_rays(bed, origin[::-1], direction[::-1])
    for one, other in zip(complete, backwards, strict=True):
        np.testing.assert_array_equal(one, other[::-1])
    for few, block in ((0, 64), (64, 64), (10, 37), (count, count)):
        monkeypatch.setattr(module, "PREFETCH_THRESHOLD", few)
        monkeypatch.setattr(module, "RAYS_PER_BLOCK", block)
        for one, other in zip(complete, cast_rays(bed, origin, direction), strict=True):
            np.testing.assert_array_equal(one, other)
    for n in range(0, count, count // 50):
        alone = cast_rays(bed, origin[n], direction[n])
        assert alone[0].tobytes() == complete[0][n].tobytes()
        assert alone[1].tobytes() == complete[1][n].tobytes()


@pytest.mark.parametrize("slant", [1e-310, -1e-310, 5e-324, -1e-281, -0.0])
def test_negligible_slant_has_no_effect(slant: float) -> None:
    bed = make_hills(40, 40)
    for x, y in ((8.0, 16.0), (17.0, 7.5), (3.25, 4.0), (0.0, 39.0)):
        for toward in ([slant, 0.0, -1.0], [0.0, slant, -1.0], [slant, -slant, -1.0]):
            found = cast_rays(bed, [x, y, 20.0], toward)
            straight = cast_rays(bed, [x, y, 20.0], [0.0, 0.0, -1.0])
            assert math.isfinite(found[0][0])
            np.testing.assert_array_equal(found[0], straight[0])
            np.testing.assert_array_equal(found[1], straight[1])
    level = cast_rays(bed, [-5.0, 8.0, 2.0], [1.0, 0.0, 0.0])[0]
    assert cast_rays(bed, [-5.0, 8.0, 2.0], [1.0, slant, slant])[0] == level
    assert math.isfinite(level[0])


@pytest.mark.parametrize("block", range(4))
def test_no_ray_slips_through_a_vertex_or_an_edge(block: int) -> None:
    bed = make_rough_bed(12, 15)
    x = bed.corner[0] + bed.spacing[0] * np.arange(15)
    y = bed.corner[1] + bed.spacing[1] * np.arange(12)
    points = list_triangles(bed)
    middles = 0.5 * (points + np.roll(points, 1, axis=1))
    target = np.concatenate((points.reshape(-1, 3), middles.reshape(-1, 3)))
    inner = (target[:, 0] > x[0]) & (target[:, 0] < x[-1]) & (target[:, 1] > y[0]) & (target[:, 1] < y[-1])
    target = np.unique(target[inner], axis=0)
    rng = np.random.default_rng(block)
    origins = [(x[3], y[5], 30.0), (x[7], 100.0, 40.0), (-50.0, y[2], 20.0), (0.1, 4.4, 1000.0), (0.0, 5.0, -20.0)]
    origins += [tuple(rng.normal(size=3) * 20.0 + (0.0, 5.0, 60.0)) for _ in range(1 if INTERPRETED else 20)]
    for origin in origins if block else [(None, None, 7.0)]:
        start = np.array([[p if o is None else o for o, p in zip(origin, point, strict=True)] for point in target])
        away = target - start
        far = np.sqrt((away**2).sum(axis=1))
        distance, _ = cast_rays(bed, start, away)
        sunk = start + away * ((np.copysign(1.5, away[:, 2]) - start[:, 2]) / away[:, 2])[:, None]
        inside = (sunk[:, 0] > x[0]) & (sunk[:, 0] < x[-1]) & (sunk[:, 1] > y[0]) & (sunk[:, 1] < y[-1])
        rim = np.stack([(edge - start[:, axis]) for axis, edge in ((0, x[0]), (0, x[-1]), (1, y[0]), (1, y[-1]))])
        part = rim / np.where(away == 0.0, np.inf, away)[:, [0, 0, 1, 1]].T
        into = np.maximum(np.minimum(part[0], part[1]), np.minimum(part[2], part[3])).clip(0.0)
        crosses = inside & (np.abs(start[:, 2] + into * away[:, 2]) > 1.0)
        assert np.isfinite(distance[crosses]).all()  # it crosses the surface before it leaves the map
        steep = np.abs(away[:, 2]) > 4.0 * np.hypot(away[:, 0], away[:, 1])  # steeper than any cell
        assert (distance[steep] <= far[steep] * (1.0 + 1e-12)).all()
        assert crosses.sum() > 5 or steep.any()


def test_ray_along_a_grid_line_hits_the_first_slope() -> None:
    heights = np.zeros((9, 9))
    heights[:, 6] = 1.0
    bed = Heightmap(heights)
    for y in (0.0, 3.0, 3.5, 8.0):
        distance, normal = cast_rays(bed, [0.0, y, 0.5], [1.0, 0.0, 0.0])
        assert distance[0] == 5.5
        np.testing.assert_allclose(normal[0], np.array((-1.0, 0.0, 1.0)) / math.sqrt(2.0), atol=1e-15, rtol=0.0)
    along, _ = cast_rays(bed, [[6.0, 0.0, 1.5], [6.0, -2.0, 0.5]], [[0.0, 1.0, -0.25], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(
        along, [math.sqrt(4.0 + 0.25), math.inf], rtol=1e-12, atol=0.0
    )  # the second ray enters below: a map has no walls


def test_maximum_range_edge_and_start_on_the_surface() -> None:
    bed = Heightmap(np.zeros((5, 5)), corner=(-2.0, -2.0))
    down = [0.0, 0.0, -1.0]
    assert cast_rays(bed, [0.3, 0.2, 7.0], down, 7.0)[0][0] == 7.0
    assert cast_rays(bed, [0.3, 0.2, 7.0], down, 6.999)[0][0] == math.inf
    assert cast_rays(bed, [2.0, -2.0, 7.0], down)[0][0] == 7.0
    assert cast_rays(bed, [2.0 + 1e-12, 0.0, 7.0], down)[0][0] == math.inf
    assert cast_rays(bed, [0.3, 0.2, -7.0], down)[0][0] == math.inf
    assert cast_rays(bed, [0.3, 0.2, -7.0], [0.0, 0.0, 1.0])[0][0] == 7.0
    assert cast_rays(bed, [0.3, 0.2, 0.0], [0.1, 0.0, 1.0])[0][0] == 0.0
    assert cast_rays(bed, [-9.0, 0.2, 1.0], [1.0, 0.0, 0.0])[0][0] == math.inf
    far, normal = cast_rays(bed, [3e6, 4e6, 1e6], [-3.0, -4.0, -1.0])
    assert abs(far[0] - 1e6 * math.sqrt(26.0)) < 1e-8
    assert normal[0].tolist() == [0.0, 0.0, 1.0]


def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    bed, rng = make_rough_bed(40, 33), np.random.default_rng(9)
    origin = rng.uniform((-3.0, 2.0, 1.0), (13.0, 30.0, 9.0), (40, 3))
    direction = rng.normal(size=(40, 3)) - (0.0, 0.0, 1.0)
    direction /= np.sqrt((direction**2).sum(axis=1))[:, None]
    rays, distance, normal = np.empty((40, 8)), np.empty(40), np.zeros((40, 3))
    cells = np.zeros((40, 4), dtype=np.int64)
    interpret(module._write_rays)(bed._frame, bed._levels, origin, direction, np.full(40, 50.0), rays, distance, cells)
    for floor in (1, 0):
        interpret(module._traverse)(bed.heights, bed._levels, bed._extent, floor, rays, distance, cells)
    interpret(module._write_normals)(bed.heights, bed._frame, cells, direction, normal)
    fast, slanted = np.empty(40), np.zeros((40, 3))
    bed.trace(Rays(origin, direction, np.full(40, 50.0), fast, slanted))
    np.testing.assert_array_equal(fast, distance)
    np.testing.assert_array_equal(slanted, normal)


def test_blocks_hold_all_of_their_heights() -> None:
    bed = make_rough_bed(37, 70)
    for shift, offset, columns, rows in bed._levels[1:].tolist():
        for q in range(rows):
            for p in range(columns):
                part = bed.heights[q << shift : ((q + 1) << shift) + 1, p << shift : ((p + 1) << shift) + 1]
                assert bed._extent[offset + q * columns + p].tolist() == [part.min(), part.max()]


@pytest.mark.parametrize(
    ("heights", "arguments", "what"),
    [
        (np.zeros((1, 5)), {}, "shape"),
        (np.zeros(5), {}, "shape"),
        (np.array([[0.0, 1.0], [math.nan, 0.0]]), {}, "height in row 1 from the south, column 0"),
        (np.array([[0.0, math.inf], [0.0, 0.0]]), {}, "height in row 0 from the south, column 1"),
        (np.zeros((2, 2)), {"spacing": (1.0, 0.0)}, "spacing"),
        (np.zeros((2, 2)), {"corner": (1.0, math.nan)}, "corner"),
        (np.zeros((2, 2)), {"spacing": (1e300, 1.0)}, "spacing"),
        (
            np.array([[0.0, 1.0], [-3.4e38, 0.0]]),
            {},
            "lowest and highest height .*: .-3.4e[+]38, 1.0.; must be of absolute value",
        ),
    ],
)
def test_invalid_map_is_an_error(heights: AnyArray, arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(FieldError, match=what):
        Heightmap(heights, **arguments)


def test_too_many_heights_are_an_error_before_allocation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "MAX_NODES", 50)
    with pytest.raises(FieldError, match="shape"):
        Heightmap(np.zeros((8, 8)))
    grid = tmp_path / "bed.txt"
    grid.write_text("1 2 3\n4 5 6\n")
    assert Heightmap.from_file(grid, (1.0, 1.0, 1.0), sampling=3).heights.shape == (4, 7)
    with pytest.raises(FieldError, match="sampling"):
        Heightmap.from_file(grid, (1.0, 1.0, 1.0), sampling=5)

"""Rays on terrain and meshes: nanoseconds per ray on one core, compared to MuJoCo, Embree and a NumPy marcher.

    make bench            or            python benchmarks/bench_rays.py

The sea bed is 200 m x 200 m with 10 m of relief. The rays start 30 m above its highest point and are tilted by 30
degrees. *Track* has 36 rays per ping along a line, *anywhere* has random positions, *flat* is tilted by 85 degrees.
Each value is the best processor time of five. MuJoCo and Embree (`pip install mujoco embreex`) are skipped if not
installed. MuJoCo has one call per ray, and its height field tests every cell of the ray's rectangle.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np

from navsense.core.typing import AnyArray
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.mesh import Mesh
from navsense.environment.terrain.scene import Body, Scene

SPAN, RELIEF, ABOVE = 200.0, 10.0, 30.0
SIZES = (512, 2048, 8192)
GOAL, GROWTH, BUILD = 3e6, 2.5, 0.1
"""Goals: rays per second on 2048 x 2048, ratio of 8192 to 512, and seconds to build 2048."""

Cast = Callable[[AnyArray, AnyArray], AnyArray]


def make_bed(count: int) -> AnyArray:
    """Return heights (count, count) m: a dozen waves, and roughness."""
    rng, line = np.random.default_rng(1), np.linspace(0.0, SPAN, count)
    x, y = np.meshgrid(line, line)
    heights = rng.normal(size=(count, count)) * 2.0 / count
    for k in range(1, 13):
        east, north = rng.uniform(-1.0, 1.0, 2) * 2.0 * math.pi * k / SPAN
        heights += np.sin(east * x + north * y + rng.uniform(0.0, 6.0)) / k
    low, high = float(heights.min()), float(heights.max())
    heights -= low
    heights *= RELIEF / (high - low)
    return heights


def make_fan(count: int, lean: float) -> AnyArray:
    """Return directions (count, 3) at `lean` (rad) from the vertical."""
    turn = np.arange(count) * 2.4
    flat = math.sin(lean)
    return np.stack((flat * np.cos(turn), flat * np.sin(turn), np.full(count, -math.cos(lean))), axis=1)


def list_workloads(count: int = 180_000) -> dict[str, tuple[AnyArray, AnyArray]]:
    """Return origins and directions by the name of the workload."""
    rng, lean = np.random.default_rng(2), math.radians(30.0)
    height = np.full(count, RELIEF + ABOVE)
    spread = np.stack((*rng.uniform(30.0, 170.0, (2, count)), height), axis=1)
    line = np.stack((np.linspace(40.0, 160.0, count // 36), np.full(count // 36, 100.0), height[: count // 36]), axis=1)
    few = spread[:20_000] * (1.0, 1.0, 0.3)
    return {
        "track": (np.repeat(line, 36, axis=0), np.tile(make_fan(36, lean), (count // 36, 1))),
        "anywhere": (spread, make_fan(count, lean)),
        "flat": (few, make_fan(len(few), math.radians(85.0))),
    }


def measure(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the smallest processor time (s) of several runs."""
    took = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


def list_triangles(heights: AnyArray) -> AnyArray:
    """Return the triangles (m, 3, 3) of a sea bed."""
    line = np.linspace(0.0, SPAN, len(heights))
    p = np.stack((*np.meshgrid(line, line), heights), axis=-1)
    sw, se, nw, ne = p[:-1, :-1], p[:-1, 1:], p[1:, :-1], p[1:, 1:]
    both = np.stack((sw, se, ne), axis=2).reshape(-1, 3, 3), np.stack((sw, ne, nw), axis=2).reshape(-1, 3, 3)
    return np.concatenate(both)


def make_scene_caster(body: Body) -> Cast:
    """Return a function that casts rays on a scene of one body."""
    scene = Scene((body,))
    return lambda origin, direction: scene.cast(origin, direction, 0.0, 2.0 * SPAN).range


def make_bed_caster(heights: AnyArray, spacing: tuple[float, float]) -> Cast:
    """Return a function that casts rays on a sea bed."""
    return make_scene_caster(Body("bed", Heightmap(heights, spacing)))


def make_marcher(heights: AnyArray) -> Cast:
    """Return a function that casts all rays in steps of 0.1 m, then bisects."""
    last, spacing = len(heights) - 1, SPAN / (len(heights) - 1)

    def compute_height_above(p: AnyArray) -> AnyArray:
        u, v = np.clip(p[:, 0] / spacing, 0.0, last - 1e-9), np.clip(p[:, 1] / spacing, 0.0, last - 1e-9)
        i, j = u.astype(int), v.astype(int)
        a, b = u - i, v - j
        sw, ne = heights[j, i], heights[j + 1, i + 1]
        middle = np.where(a >= b, heights[j, i + 1], heights[j + 1, i])
        more, less = np.maximum(a, b), np.minimum(a, b)
        over: AnyArray = p[:, 2] - (sw + more * (middle - sw) + less * (ne - middle))
        return over

    def cast(origin: AnyArray, direction: AnyArray) -> AnyArray:
        t = (RELIEF - origin[:, 2]) / direction[:, 2]
        t, under = np.maximum(t, 0.0), np.zeros(len(origin), dtype=bool)
        while not under.all():
            t = np.where(under, t, t + 0.1)
            p = origin + t[:, None] * direction
            under |= (compute_height_above(p) <= 0.0) | (p[:, :2] < 0.0).any(axis=1) | (p[:, :2] > SPAN).any(axis=1)
        low, high = t - 0.1, t
        for _ in range(40):
            middle = 0.5 * (low + high)
            below = compute_height_above(origin + middle[:, None] * direction) <= 0.0
            low, high = np.where(below, low, middle), np.where(below, middle, high)
        return high

    return cast


def make_mujoco_caster(heights: AnyArray) -> Cast:
    """Return a function that casts rays on MuJoCo's height field, one call per ray."""
    import mujoco

    spec = mujoco.MjSpec()
    rows, half = len(heights), SPAN / 2.0
    spec.add_hfield(name="bed", nrow=rows, ncol=rows, size=[half, half, RELIEF, 1.0], userdata=heights.ravel().tolist())
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="bed", pos=[half, half, 0.0])
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    met = np.zeros(1, dtype=np.int32)

    def cast(origin: AnyArray, direction: AnyArray) -> AnyArray:
        pairs = zip(origin, direction, strict=True)
        return np.array([mujoco.mj_ray(model, data, o, d, None, 1, -1, met) for o, d in pairs])

    return cast


def make_embree_caster(corners: AnyArray) -> Cast:
    """Return a function that casts rays with Embree in single precision, without the conversion."""
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    scene = EmbreeScene()
    TriangleMesh(scene, corners.astype(np.float32))
    scene.run(np.zeros((1, 3), np.float32), np.ones((1, 3), np.float32))
    return lambda origin, direction: scene.run(
        origin.astype(np.float32), direction.astype(np.float32), query="DISTANCE"
    )


def print_row(name: str, make: Callable[[], Cast], few: int = 10**9) -> dict[str, float]:
    """Print one row: seconds to build, nanoseconds per ray of each workload; return the latter."""
    start = time.process_time()
    cast = make()
    built = time.process_time() - start
    took = {}
    for work, (origin, direction) in list_workloads().items():
        o, d = origin[:few], direction[:few]
        cast(o[:2], d[:2])
        took[work] = measure(partial(cast, o, d)) / len(o) * 1e9
    print(f"{name:42s} {built:9.3f} " + " ".join(f"{took[work]:10.0f}" for work in took))
    return took


def main() -> None:
    """Print the table, and check the goals of the sea bed."""
    print(f"{'':42s} {'build (s)':>9s} " + " ".join(f"{work:>10s}" for work in list_workloads()) + "   ns a ray")
    took: dict[int, dict[str, float]] = {}
    for count in SIZES:
        heights = make_bed(count)
        Heightmap(heights[:9, :9])
        spacing = (SPAN / (count - 1), SPAN / (count - 1))
        built = measure(partial(Heightmap, heights, spacing))
        took[count] = print_row(f"Heightmap {count} x {count}", partial(make_bed_caster, heights, spacing))
        if count == 2048:
            assert built <= BUILD * 2.0, f"built in {built:.3f} s, goal {BUILD} s"
    heights = make_bed(512)
    corners = list_triangles(heights)
    Mesh(corners[:9])
    print_row("Mesh of 512 x 512", lambda: make_scene_caster(Body("", Mesh(corners))))
    if find_spec("embreex"):
        print_row("Embree, mesh of 512 x 512", lambda: make_embree_caster(corners))
    if find_spec("mujoco"):
        print_row("MuJoCo, height field of 512 x 512", lambda: make_mujoco_caster(heights), 1000)
    print_row("NumPy marcher, 512 x 512", lambda: make_marcher(heights), 5000)
    for work in ("track", "anywhere"):
        speed, growth = 1e9 / took[2048][work], took[8192][work] / took[512][work]
        print(f"{work}: {speed / 1e6:.1f} million rays/s on 2048 x 2048, goal {GOAL / 1e6:g}; 8192 / 512: {growth:.2f}")
        assert growth <= GROWTH, f"a larger sea bed costs too much: {work}"


if __name__ == "__main__":
    main()

"""The ground from above, found by vertical rays, and the part of a world that a picture shows.

Ground is every surface that stands still and does not belong to a vehicle. The view contains all tracks with a margin,
and the ground within half a track's size around them. If nothing moves, it contains all ground of finite size.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.core.pose import rotate
from navsense.core.typing import FloatArray, Vectors
from navsense.environment.terrain.base import LazyShape, Shape
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.mesh import Mesh
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.picture.tracks import Track
from navsense.simulation.motions import Motions, build_scene, read_surface
from navsense.world import World

SHADED_SLOPE = 0.45
"""Slope to which the shading scales the RMS slope of the ground."""

CELLS = 640
"""Cells of the relief along the longer side of the view."""

RAY_HEIGHT = 1e6
"""Height (m) above everything from which rays start: above any slope in the view."""

MARGIN = 0.12
"""Margin of the view, as a share of the larger side of the tracks, or of the ground if nothing moves."""

GROUND_MARGIN = 0.5
"""Distance from the tracks, as a share of their larger side, up to which ground widens the view."""

MIN_STILL_SIZE = 10.0
"""Minimum size (m) of a view without motion and without ground."""

CLIMB_SHARE = 0.1
"""Minimum size of a view, as a share of the range of heights of a track in it."""

MIN_SIZE = 1e-3
"""Minimum size (m) of a view."""

ROUNDING = 1e-9
"""Minimum size of a view, as a share of its coordinates. A track may consist of rounding errors only."""

MAX_RATIO = 2.5
"""Largest ratio of the sides of a view. A straight track needs some width."""

DOWN = (0.0, 0.0, -1.0)


@dataclass(frozen=True)
class View:
    """A rectangle of the world: x (m) from left to right, y (m) from bottom to top."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def width(self) -> float:
        """Length along x (m)."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Length along y (m)."""
        return self.top - self.bottom

    def make_cell_centres(self, columns: int, rows: int) -> tuple[FloatArray, FloatArray]:
        """Return x (columns,) and y (rows,) m of the centres of equal cells."""
        x = self.left + (np.arange(columns) + 0.5) * self.width / columns
        y = self.bottom + (np.arange(rows) + 0.5) * self.height / rows
        return x, y


@dataclass(frozen=True, eq=False)
class Relief:
    """Heights (rows, columns) m at the places y (rows,) and x (columns,) m, NaN where there is no ground."""

    x: FloatArray
    y: FloatArray
    height: FloatArray

    @property
    def has_ground(self) -> bool:
        """True if there is any ground."""
        return bool(np.isfinite(self.height).any())

    @property
    def slopes(self) -> FloatArray:
        """Slopes (n,) of all ground with ground around it; (0.0,) without any."""
        along_y, along_x = np.gradient(self.height, self.y[1] - self.y[0], self.x[1] - self.x[0])
        slope = np.sqrt(along_x**2 + along_y**2)
        finite_slopes = slope[np.isfinite(slope)]
        return finite_slopes if finite_slopes.size else np.zeros(1)

    @property
    def is_flat(self) -> bool:
        """True if the range of heights is below a millionth of the size."""
        size = float(abs(self.x[-1] - self.x[0]) + abs(self.y[-1] - self.y[0]))
        return not float(np.nanmax(self.height) - np.nanmin(self.height)) > 1e-6 * size


def find_static_ground(world: World, motions: Motions, vehicles: Collection[str]) -> Scene:
    """Return the surfaces that stand still, without those of the models `vehicles`. Reads their files.

    Raises `FieldError` with the name and place of a surface whose file cannot be read.
    """
    where = {solid.name: solid.where for solid in world.solids}
    prefixes = tuple(f"{name}::" for name in vehicles)
    bodies = [b for b in build_scene(world, motions).bodies if b.motion is None and not b.name.startswith(prefixes)]
    for body in bodies:
        if isinstance(body.shape, LazyShape):
            read_surface(body.name, body.shape, where.get(body.name))
    return Scene(tuple(bodies))


def _find_corners(shape: Shape) -> Vectors | None:
    """Return the lowest and highest x, y, z (2, 3) m of a shape in its own frame; None if it is infinite."""
    match shape:
        case LazyShape():
            return _find_corners(shape.shape)
        case Heightmap():
            rows, columns = shape.heights.shape
            (x, y), (east, north) = shape.corner, shape.spacing
            low, high = float(shape.heights.min()), float(shape.heights.max())
            return np.array(((x, y, low), (x + (columns - 1) * east, y + (rows - 1) * north, high)))
        case Mesh():
            points = shape.triangles.reshape(-1, 3)
            return np.array((points.min(axis=0), points.max(axis=0)))
        case Box():
            half = 0.5 * np.array(shape.size)
        case Sphere():
            half = np.full(3, shape.radius)
        case Ellipsoid():
            half = np.array(shape.radii)
        case Cylinder():
            half = np.array((shape.radius, shape.radius, 0.5 * shape.length))
        case Capsule():
            half = np.array((shape.radius, shape.radius, 0.5 * shape.length + shape.radius))
        case _:
            return None
    return np.array((-half, half))


def compute_bounding_box(body: Body) -> Vectors | None:
    """Return the box (2, 3) m in the world around a body that stands still; None if it is infinite."""
    ends = _find_corners(body.shape)
    if ends is None:
        return None
    corners = [(float(x), float(y), float(z)) for x in ends[:, 0] for y in ends[:, 1] for z in ends[:, 2]]
    rotated = np.array([rotate(body.pose.rotation, corner) for corner in corners]) + np.array(body.pose.position)
    return np.array((rotated.min(axis=0), rotated.max(axis=0)))


def find_view(tracks: Sequence[Track], ground: Scene) -> View:
    """Return the part of the world that a picture shows."""
    boxes = [box[:, :2] for box in map(compute_bounding_box, ground.bodies) if box is not None]
    positions = [track.position[:, :2] for track in tracks]
    if any(track.is_moving for track in tracks):
        points = np.concatenate(positions)
        low, high = points.min(axis=0), points.max(axis=0)
        climb = max(float(np.ptp(track.position[:, 2])) for track in tracks)
        side = float((high - low).max())
        size = max(side, CLIMB_SHARE * climb, MIN_SIZE + ROUNDING * float(np.abs(points).max()))
        margin = max(MARGIN * size, 0.5 * (size - side))
        first, last = low - margin, high + margin
        for box in boxes:
            nearby_box = np.clip(box, low - GROUND_MARGIN * size, high + GROUND_MARGIN * size)
            if (nearby_box[1] > nearby_box[0]).all():
                first, last = np.minimum(first, nearby_box[0]), np.maximum(last, nearby_box[1])
    else:
        points = np.concatenate((*positions, *boxes, np.zeros((0 if positions or boxes else 1, 2))))
        low, high = points.min(axis=0), points.max(axis=0)
        size = float((high - low).max())
        margin = MARGIN * size if boxes else max(MARGIN * size, 0.5 * (MIN_STILL_SIZE - size))
        first, last = low - margin, high + margin
    middle, sides = 0.5 * (first + last), last - first
    half = 0.5 * np.maximum(sides, float(sides.max()) / MAX_RATIO)
    (left, bottom), (right, top) = (middle - half).tolist(), (middle + half).tolist()
    return View(left, right, bottom, top)


def make_relief(ground: Scene, view: View) -> Relief:
    """Return the heights at the centres of the view's cells."""
    cell = max(view.width, view.height) / CELLS
    columns, rows = math.ceil(view.width / cell), math.ceil(view.height / cell)
    x, y = view.make_cell_centres(columns, rows)
    return Relief(x, y, find_ground_top(ground, np.stack(np.meshgrid(x, y), axis=-1)))


def find_ground_top(ground: Scene, places: FloatArray) -> FloatArray:
    """Return the height (...) m of the highest ground at places (..., 2) m, NaN without any."""
    boxes = [box for box in map(compute_bounding_box, ground.bodies) if box is not None]
    start = RAY_HEIGHT + max((float(box[1, 2]) for box in boxes), default=0.0)
    origin = np.concatenate((places, np.full((*places.shape[:-1], 1), start)), axis=-1)
    distance = ground.cast(origin, np.array(DOWN), 0.0).range
    return np.where(np.isfinite(distance), start - distance, math.nan)


def find_ground_below(ground: Scene, position: Vectors) -> FloatArray:
    """Return the height (n,) m of the ground below positions (n, 3) m, else of the ground above; NaN without any."""
    distance = ground.cast(position, np.array(DOWN), 0.0).range
    is_below = np.isfinite(distance)
    return np.where(
        is_below, position[:, 2] - np.where(is_below, distance, 0.0), find_ground_top(ground, position[:, :2])
    )

"""The ground as rays from straight above meet it, and how much of a world is shown.

Ground is every surface that stands still and is not of a vehicle's own. The view holds all tracks with a margin, and
of the ground what lies within half a track's size around them; where nothing moves, all of it that has an end.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.environment.terrain.base import LazyShape, Shape
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.mesh import Mesh
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.picture.tracks import Track
from navsense.pose import rotate
from navsense.sensor_run import Motions, build_scene, read_surface
from navsense.typing import FloatArray, Vectors
from navsense.world import World

CELLS = 640
"""Cells of the relief along the longer side of the view."""

ABOVE = 1e6
"""Metres above everything from which rays start: higher than any slope in the view."""

MARGIN, AROUND = 0.12, 0.5
"""Parts of the tracks' larger side around them: what is always shown, and how far the ground may widen the view."""

SMALLEST, CLIMB = 10.0, 0.1
"""Metres that a view of what stands still has at least; part of a climb's height that a view of it has."""

LEAST, ROUNDING = 1e-3, 1e-9
"""Metres, and part of the coordinates, that a view has at least: a track may be all rounding."""

LONGEST = 2.5
"""The longer side of a view over the shorter one, at most: a straight track would be drawn on a ribbon."""

DOWN = (0.0, 0.0, -1.0)


@dataclass(frozen=True)
class View:
    """A rectangle of the world's x and y (m)."""

    west: float
    east: float
    south: float
    north: float

    @property
    def wide(self) -> float:
        """Return the length along x (m)."""
        return self.east - self.west

    @property
    def tall(self) -> float:
        """Return the length along y (m)."""
        return self.north - self.south


@dataclass(frozen=True, eq=False)
class Relief:
    """Heights (rows, columns) m at the places y (rows,) and x (columns,) m, NaN where there is no ground."""

    x: FloatArray
    y: FloatArray
    height: FloatArray

    @property
    def there(self) -> bool:
        """Return whether any of it is ground."""
        return bool(np.isfinite(self.height).any())

    @property
    def slopes(self) -> FloatArray:
        """Return the slopes (n,) of all ground that has ground around it; (0.0,) where there is none."""
        along_y, along_x = np.gradient(self.height, self.y[1] - self.y[0], self.x[1] - self.x[0])
        slope = np.sqrt(along_x**2 + along_y**2)
        known = slope[np.isfinite(slope)]
        return known if known.size else np.zeros(1)

    @property
    def flat(self) -> bool:
        """Return whether it is all of one height, as far as a picture can tell."""
        size = float(abs(self.x[-1] - self.x[0]) + abs(self.y[-1] - self.y[0]))
        return not float(np.nanmax(self.height) - np.nanmin(self.height)) > 1e-6 * size


def ground_of(world: World, motions: Motions, vehicles: Collection[str]) -> Scene:
    """Return the surfaces that stand still, those of the models `vehicles` left out, every file read.

    Raises `FieldError` with the surface's name and place for a file that cannot be read.
    """
    where = {solid.name: solid.where for solid in world.solids}
    own = tuple(f"{name}::" for name in vehicles)
    kept = [b for b in build_scene(world, motions).bodies if b.motion is None and not b.name.startswith(own)]
    for body in kept:
        if isinstance(body.shape, LazyShape):
            read_surface(body.name, body.shape, where.get(body.name))
    return Scene(tuple(kept))


def _half(shape: Shape) -> FloatArray | None:
    """Return half the sides (m) of the box around a shape that has its middle at its origin."""
    match shape:
        case Box():
            return 0.5 * np.array(shape.size)
        case Sphere():
            return np.full(3, shape.radius)
        case Ellipsoid():
            return np.array(shape.radii)
        case Cylinder():
            return np.array((shape.radius, shape.radius, 0.5 * shape.length))
        case Capsule():
            return np.array((shape.radius, shape.radius, 0.5 * shape.length + shape.radius))
    return None


def _corners(shape: Shape) -> Vectors | None:
    """Return the lowest and highest x, y, z (2, 3) m of a shape in its own frame; None for one without an end."""
    if isinstance(shape, LazyShape):
        return _corners(shape.shape)
    if isinstance(shape, Heightmap):
        rows, columns = shape.heights.shape
        (x, y), (east, north) = shape.corner, shape.spacing
        low, high = float(shape.heights.min()), float(shape.heights.max())
        return np.array(((x, y, low), (x + (columns - 1) * east, y + (rows - 1) * north, high)))
    if isinstance(shape, Mesh):
        points = shape.triangles.reshape(-1, 3)
        return np.array((points.min(axis=0), points.max(axis=0)))
    half = _half(shape)
    return None if half is None else np.array((-half, half))


def box_of(body: Body) -> Vectors | None:
    """Return the box (2, 3) m in the world around a body that stands still; None for one without an end."""
    ends = _corners(body.shape)
    if ends is None:
        return None
    picks = [(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    corners = [(float(ends[i, 0]), float(ends[j, 1]), float(ends[k, 2])) for i, j, k in picks]
    placed = np.array([rotate(body.pose.rotation, corner) for corner in corners]) + np.array(body.pose.position)
    return np.array((placed.min(axis=0), placed.max(axis=0)))


def view_of(tracks: Sequence[Track], ground: Scene) -> View:
    """Return the part of the world that is shown."""
    boxes = [box[:, :2] for box in map(box_of, ground.bodies) if box is not None]
    places = [track.position[:, :2] for track in tracks]
    if any(track.moves for track in tracks):
        points = np.concatenate(places)
        low, high = points.min(axis=0), points.max(axis=0)
        climb = max(float(np.ptp(track.position[:, 2])) for track in tracks)
        side = float((high - low).max())
        size = max(side, CLIMB * climb, LEAST + ROUNDING * float(np.abs(points).max()))
        margin = max(MARGIN * size, 0.5 * (size - side))
        first, last = low - margin, high + margin
        for box in boxes:
            near = np.clip(box, low - AROUND * size, high + AROUND * size)
            if (near[1] > near[0]).all():
                first, last = np.minimum(first, near[0]), np.maximum(last, near[1])
    else:
        points = np.concatenate((*places, *boxes, np.zeros((0 if places or boxes else 1, 2))))
        low, high = points.min(axis=0), points.max(axis=0)
        size = float((high - low).max())
        margin = MARGIN * size if boxes else max(MARGIN * size, 0.5 * (SMALLEST - size))
        first, last = low - margin, high + margin
    middle, sides = 0.5 * (first + last), last - first
    half = 0.5 * np.maximum(sides, float(sides.max()) / LONGEST)
    (west, south), (east, north) = (middle - half).tolist(), (middle + half).tolist()
    return View(west, east, south, north)


def relief_of(ground: Scene, view: View) -> Relief:
    """Return the heights that rays from straight above meet, in the middles of the view's cells."""
    cell = max(view.wide, view.tall) / CELLS
    columns, rows = math.ceil(view.wide / cell), math.ceil(view.tall / cell)
    x = view.west + (np.arange(columns) + 0.5) * view.wide / columns
    y = view.south + (np.arange(rows) + 0.5) * view.tall / rows
    places = np.empty((rows, columns, 2))
    places[:, :, 0], places[:, :, 1] = x[None, :], y[:, None]
    return Relief(x, y, top_of(ground, places))


def top_of(ground: Scene, places: FloatArray) -> FloatArray:
    """Return the height (...) m of the highest ground at places (..., 2) m, NaN where there is none."""
    high = ABOVE + max((float(box[1, 2]) for box in map(box_of, ground.bodies) if box is not None), default=0.0)
    origin = np.concatenate((places, np.full((*places.shape[:-1], 1), high)), axis=-1)
    far = ground.cast(origin, np.array(DOWN), 0.0).range
    return np.where(np.isfinite(far), high - far, math.nan)


def bottom_of(ground: Scene, position: Vectors) -> FloatArray:
    """Return the height (n,) m of the ground beneath places (n, 3) m; of what lies above where there is none beneath.

    NaN where there is no ground at all.
    """
    far = ground.cast(position, np.array(DOWN), 0.0).range
    beneath = np.isfinite(far)
    return np.where(beneath, position[:, 2] - np.where(beneath, far, 0.0), top_of(ground, position[:, :2]))

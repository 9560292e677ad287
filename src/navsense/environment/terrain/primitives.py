"""The simple shapes of SDF, each around the origin of its frame: closed formulas in double precision.

    o + t d,  |d| = 1;   quadrics:  a t^2 + 2 b t + c = 0,  t = (-b -+ sqrt(b^2 - a c)) / a

| shape | surface |
|---|---|
| `Plane` | n . x = 0, infinite: SDF's `size` is for display only (SDF 1.12, `plane_shape.sdf`) |
| `Box` | |x| <= size_x / 2, ... |
| `Sphere`, `Ellipsoid` | x^2 / a^2 + y^2 / b^2 + z^2 / c^2 = 1 |
| `Cylinder` | x^2 + y^2 <= radius^2, |z| <= length / 2 |
| `Capsule` | points at distance `radius` from the segment |z| <= length / 2 of the z axis |

The hit is the first intersection at t >= 0, from outside or inside. A solid is computed as the intersection or union of
simpler solids, so rays cannot pass through the edges between them. The roots of a quadric are computed from the point
of the ray nearest to the centre. So a distant origin causes no loss of precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from navsense.core.errors import FieldError
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Vector, Vectors
from navsense.core.validation import check_number
from navsense.environment.terrain.base import MAX_DISTANCE, MIN_SIZE, Rays


@kernel
def _solve_quadratic(a: float, b: float, c: float) -> tuple[float, float]:
    """Return the two roots of a t^2 + 2 b t + c, a > 0, the smaller first; infinite without a real root."""
    square = b * b - a * c
    if not square >= 0.0:
        return math.inf, math.inf
    root = math.sqrt(square)
    q = -(b + root) if b >= 0.0 else root - b
    if q == 0.0:
        return 0.0, 0.0
    return (q / a, c / q) if b >= 0.0 else (c / q, q / a)


@kernel
def _clip_to_slab(o: float, d: float, half: float) -> tuple[float, float]:
    """Return the ranges at which a ray enters and leaves |x| <= half."""
    if d == 0.0:
        return (-math.inf, math.inf) if abs(o) <= half else (math.inf, -math.inf)
    first, last = (-half - o) / d, (half - o) / d
    return min(first, last), max(first, last)


@kernel
def _clip_to_cylinder(ox: float, oy: float, dx: float, dy: float, radius: float) -> tuple[float, float]:
    """Return the ranges at which a ray enters and leaves the infinite cylinder about z."""
    square = dx * dx + dy * dy
    if square == 0.0:
        return (-math.inf, math.inf) if ox * ox + oy * oy <= radius * radius else (math.inf, -math.inf)
    nearest = -(ox * dx + oy * dy) / square
    px, py = ox + nearest * dx, oy + nearest * dy
    first, last = _solve_quadratic(square, px * dx + py * dy, px * px + py * py - radius * radius)
    return nearest + first, nearest + last


@kernel
def _select_range(enter: float, leave: float) -> float:
    """Return the range of the first intersection at t >= 0 with a convex solid, infinite for a miss."""
    if not (enter <= leave and leave >= 0.0):
        return math.inf
    return enter if enter >= 0.0 else leave


@kernel
def _intersect_plane(
    x: float, y: float, z: float, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float
) -> float:
    """Return the range of the plane through the origin with the normal (x, y, z)."""
    height = x * ox + y * oy + z * oz
    rate = x * dx + y * dy + z * dz
    if height * rate < 0.0:
        return -height / rate
    return 0.0 if height == 0.0 else math.inf


@kernel
def _intersect_box(
    a: float, b: float, c: float, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float
) -> tuple[float, float, float, float]:
    """Return the range and the normal of the box with half sides a, b, c."""
    x0, x1 = _clip_to_slab(ox, dx, a)
    y0, y1 = _clip_to_slab(oy, dy, b)
    z0, z1 = _clip_to_slab(oz, dz, c)
    t = _select_range(max(x0, y0, z0), min(x1, y1, z1))
    if t in (x0, x1):
        return t, 1.0, 0.0, 0.0
    return (t, 0.0, 1.0, 0.0) if t in (y0, y1) else (t, 0.0, 0.0, 1.0)


@kernel
def _intersect_ellipsoid(
    a: float, b: float, c: float, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float
) -> tuple[float, float, float, float]:
    """Return the range and the normal of the ellipsoid with radii a, b, c: the unit sphere in scaled coordinates."""
    x, y, z, dx, dy, dz = ox / a, oy / b, oz / c, dx / a, dy / b, dz / c
    square = dx * dx + dy * dy + dz * dz
    nearest = -(x * dx + y * dy + z * dz) / square
    px, py, pz = x + nearest * dx, y + nearest * dy, z + nearest * dz
    half_slope = px * dx + py * dy + pz * dz
    first, last = _solve_quadratic(square, half_slope, px * px + py * py + pz * pz - 1.0)
    t = _select_range(nearest + first, nearest + last)
    s = t if t < math.inf else 0.0
    return t, (x + s * dx) / a, (y + s * dy) / b, (z + s * dz) / c


@kernel
def _intersect_cylinder(
    radius: float, half: float, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float
) -> tuple[float, float, float, float]:
    """Return the range and the normal of a cylinder: the infinite cylinder and the slab between its ends."""
    r0, r1 = _clip_to_cylinder(ox, oy, dx, dy, radius)
    z0, z1 = _clip_to_slab(oz, dz, half)
    t = _select_range(max(r0, z0), min(r1, z1))
    if t in (z0, z1) and t not in (r0, r1):
        return t, 0.0, 0.0, 1.0
    s = t if t < math.inf else 0.0
    return t, ox + s * dx, oy + s * dy, 0.0


@kernel
def _intersect_capsule(
    radius: float, half: float, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float
) -> tuple[float, float, float, float]:
    """Return the range and the normal of a capsule: the union of a cylinder and two spheres."""
    r0, r1 = _clip_to_cylinder(ox, oy, dx, dy, radius)
    z0, z1 = _clip_to_slab(oz, dz, half)
    enter, leave = max(r0, z0), min(r1, z1)
    if not enter <= leave:
        enter, leave = math.inf, -math.inf
    for k in range(2):
        cz = oz - (2 * k - 1) * half
        nearest = -(ox * dx + oy * dy + cz * dz)
        px, py, pz = ox + nearest * dx, oy + nearest * dy, cz + nearest * dz
        first, last = _solve_quadratic(1.0, px * dx + py * dy + pz * dz, px * px + py * py + pz * pz - radius * radius)
        if first < math.inf:
            enter, leave = min(enter, nearest + first), max(leave, nearest + last)
    t = _select_range(enter, leave)
    s = t if t < math.inf else 0.0
    z = oz + s * dz
    return t, ox + s * dx, oy + s * dy, z - min(max(z, -half), half)


PLANE, BOX, ELLIPSOID, CYLINDER, CAPSULE = range(5)
"""Surfaces of `_trace`."""


@kernel
def _trace(
    surface: int,
    a: float,
    b: float,
    c: float,
    origin: Vectors,
    direction: Vectors,
    max_range: FloatArray,
    distance: FloatArray,
    normal: Vectors,
) -> None:
    """Write the ranges and the unit normals of a surface with the parameters a, b, c (see the `_intersect_...`)."""
    for n in range(origin.shape[0]):
        ox, oy, oz = origin[n, 0], origin[n, 1], origin[n, 2]
        dx, dy, dz = direction[n, 0], direction[n, 1], direction[n, 2]
        x, y, z = a, b, c
        if surface == PLANE:
            t = _intersect_plane(a, b, c, ox, oy, oz, dx, dy, dz)
        elif surface == BOX:
            t, x, y, z = _intersect_box(a, b, c, ox, oy, oz, dx, dy, dz)
        elif surface == ELLIPSOID:
            t, x, y, z = _intersect_ellipsoid(a, b, c, ox, oy, oz, dx, dy, dz)
        elif surface == CYLINDER:
            t, x, y, z = _intersect_cylinder(a, b, ox, oy, oz, dx, dy, dz)
        else:
            t, x, y, z = _intersect_capsule(a, b, ox, oy, oz, dx, dy, dz)
        distance[n] = math.inf
        if not t <= max_range[n] or t == math.inf:
            continue
        scale = 1.0 / math.sqrt(x * x + y * y + z * z)
        if x * dx + y * dy + z * dz > 0.0:
            scale = -scale
        distance[n] = t
        normal[n, 0], normal[n, 1], normal[n, 2] = scale * x, scale * y, scale * z


def _check_lengths(shape: str, **lengths: float) -> None:
    for name, value in lengths.items():
        check_number(f"{shape}'s {name} (m)", value, MIN_SIZE, MAX_DISTANCE, error=FieldError)


@dataclass(frozen=True)
class Plane:
    """An infinite plane through the origin with a normal of any length. Raises `FieldError` for a zero normal.

    >>> slope = ns.environment.Body("slope", ns.environment.Plane((-1.0, 0.0, 1.0)), ns.Pose((0.0, 0.0, -10.0)))
    >>> ns.environment.Scene((slope,)).cast(np.zeros((1, 3)), np.array([[0.0, 0.0, -1.0]]), 0.0).range
    array([10.])
    """

    normal: Vector = (0.0, 0.0, 1.0)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        if not MIN_SIZE <= math.hypot(*self.normal) <= MAX_DISTANCE:
            allowed = f"must be finite and not zero, of a length from {MIN_SIZE:g} to {MAX_DISTANCE:g}"
            raise FieldError("plane's normal", self.normal, allowed=allowed)

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace(PLANE, *self.normal, *rays)


@dataclass(frozen=True)
class Box:
    """A box with sides `size` (m). Raises `FieldError` for a side that is not above 0.

    >>> dock = ns.environment.Body("dock", ns.environment.Box((4.0, 4.0, 2.0)), ns.Pose((10.0, 0.0, 0.0)))
    >>> ns.environment.Scene((dock,)).cast(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]]), 0.0).range
    array([8.])
    """

    size: Vector = (1.0, 1.0, 1.0)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("box", length=self.size[0], width=self.size[1], height=self.size[2])

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        x, y, z = self.size
        _trace(BOX, 0.5 * x, 0.5 * y, 0.5 * z, *rays)


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid with `radii` (m) along x, y and z. Raises `FieldError` for a radius that is not above 0.

    >>> rock = ns.environment.Body("rock", ns.environment.Ellipsoid((3.0, 2.0, 1.0)), ns.Pose((10.0, 0.0, 0.0)))
    >>> ns.environment.Scene((rock,)).cast(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]]), 0.0).range
    array([7.])
    """

    radii: Vector = (1.0, 1.0, 1.0)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("ellipsoid", radius_x=self.radii[0], radius_y=self.radii[1], radius_z=self.radii[2])

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace(ELLIPSOID, *self.radii, *rays)


@dataclass(frozen=True)
class Sphere:
    """A sphere with a `radius` (m). Raises `FieldError` for a radius that is not above 0.

    >>> buoy = ns.environment.Body("buoy", ns.environment.Sphere(0.5), ns.Pose((10.0, 0.0, 0.0)))
    >>> ns.environment.Scene((buoy,)).cast(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]]), 0.0).range
    array([9.5])
    """

    radius: float = 1.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("sphere", radius=self.radius)

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace(ELLIPSOID, self.radius, self.radius, self.radius, *rays)


@dataclass(frozen=True)
class Cylinder:
    """A cylinder with a `radius` and a `length` (m) along z. Raises `FieldError` for a value that is not above 0.

    >>> pile = ns.environment.Body("pile", ns.environment.Cylinder(radius=0.5, length=20.0), ns.Pose((10.0, 0.0, 0.0)))
    >>> ns.environment.Scene((pile,)).cast(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]]), 0.0).range
    array([9.5])
    """

    radius: float = 1.0
    length: float = 1.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("cylinder", radius=self.radius, length=self.length)

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace(CYLINDER, self.radius, 0.5 * self.length, 0.0, *rays)


@dataclass(frozen=True)
class Capsule:
    """A capsule with a `radius` and a cylinder `length` (m) along z. Raises `FieldError` for a value not above 0.

    >>> glider = ns.environment.Body("glider", ns.environment.Capsule(0.1, 1.5), ns.Pose((0.0, 0.0, -5.0)))
    >>> ns.environment.Scene((glider,)).cast(np.zeros((1, 3)), np.array([[0.0, 0.0, -1.0]]), 0.0).range
    array([4.15])
    """

    radius: float = 0.5
    length: float = 1.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("capsule", radius=self.radius, length=self.length)

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace(CAPSULE, self.radius, 0.5 * self.length, 0.0, *rays)

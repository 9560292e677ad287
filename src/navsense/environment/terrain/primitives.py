"""The simple shapes of SDF, each around the origin of its own frame: closed formulas in double precision.

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
of the ray nearest to the centre, so a distant origin causes no loss of precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from navsense.core.errors import FieldError
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Vector, Vectors
from navsense.core.validation import check_number
from navsense.environment.terrain.base import MAX_DISTANCE, MIN_SIZE


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
def _write_hit(
    n: int,
    t: float,
    x: float,
    y: float,
    z: float,
    direction: Vectors,
    reach: FloatArray,
    distance: FloatArray,
    normal: Vectors,
) -> None:
    """Write the range and the unit normal of ray n for a normal of any length and sign."""
    distance[n] = math.inf
    if not t <= reach[n] or t == math.inf:
        return
    scale = 1.0 / math.sqrt(x * x + y * y + z * z)
    if x * direction[n, 0] + y * direction[n, 1] + z * direction[n, 2] > 0.0:
        scale = -scale
    distance[n] = t
    normal[n, 0], normal[n, 1], normal[n, 2] = scale * x, scale * y, scale * z


@kernel
def _trace_plane(
    x: float,
    y: float,
    z: float,
    origin: Vectors,
    direction: Vectors,
    reach: FloatArray,
    distance: FloatArray,
    normal: Vectors,
) -> None:
    """Intersect rays with the plane through the origin with the normal (x, y, z)."""
    for n in range(origin.shape[0]):
        above = x * origin[n, 0] + y * origin[n, 1] + z * origin[n, 2]
        rate = x * direction[n, 0] + y * direction[n, 1] + z * direction[n, 2]
        t = 0.0 if above == 0.0 else math.inf
        if above * rate < 0.0:
            t = -above / rate
        _write_hit(n, t, x, y, z, direction, reach, distance, normal)


@kernel
def _clip_to_slab(o: float, d: float, half: float) -> tuple[float, float]:
    """Return the ranges at which a ray enters and leaves |x| <= half."""
    if d == 0.0:
        return (-math.inf, math.inf) if abs(o) <= half else (math.inf, -math.inf)
    first, last = (-half - o) / d, (half - o) / d
    return min(first, last), max(first, last)


@kernel
def _trace_box(
    x: float,
    y: float,
    z: float,
    origin: Vectors,
    direction: Vectors,
    reach: FloatArray,
    distance: FloatArray,
    normal: Vectors,
) -> None:
    """Intersect rays with the box of half sides x, y, z."""
    for n in range(origin.shape[0]):
        x0, x1 = _clip_to_slab(origin[n, 0], direction[n, 0], x)
        y0, y1 = _clip_to_slab(origin[n, 1], direction[n, 1], y)
        z0, z1 = _clip_to_slab(origin[n, 2], direction[n, 2], z)
        enter, leave = max(x0, y0, z0), min(x1, y1, z1)
        t = math.inf
        if enter <= leave and leave >= 0.0:
            t = enter if enter >= 0.0 else leave
        if t in (x0, x1):
            _write_hit(n, t, 1.0, 0.0, 0.0, direction, reach, distance, normal)
        elif t in (y0, y1):
            _write_hit(n, t, 0.0, 1.0, 0.0, direction, reach, distance, normal)
        else:
            _write_hit(n, t, 0.0, 0.0, 1.0, direction, reach, distance, normal)


@kernel
def _trace_ellipsoid(
    a: float,
    b: float,
    c: float,
    origin: Vectors,
    direction: Vectors,
    reach: FloatArray,
    distance: FloatArray,
    normal: Vectors,
) -> None:
    """Intersect rays with the ellipsoid of radii a, b, c: the unit sphere in coordinates divided by the radii."""
    for n in range(origin.shape[0]):
        x, y, z = origin[n, 0] / a, origin[n, 1] / b, origin[n, 2] / c
        dx, dy, dz = direction[n, 0] / a, direction[n, 1] / b, direction[n, 2] / c
        square = dx * dx + dy * dy + dz * dz
        nearest = -(x * dx + y * dy + z * dz) / square
        px, py, pz = x + nearest * dx, y + nearest * dy, z + nearest * dz
        along = px * dx + py * dy + pz * dz
        first, last = _solve_quadratic(square, along, px * px + py * py + pz * pz - 1.0)
        first, last = nearest + first, nearest + last
        t = first if first >= 0.0 else (last if last >= 0.0 else math.inf)
        s = t if t < math.inf else 0.0
        _write_hit(n, t, (x + s * dx) / a, (y + s * dy) / b, (z + s * dz) / c, direction, reach, distance, normal)


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
def _trace_cylinder(
    radius: float,
    half: float,
    origin: Vectors,
    direction: Vectors,
    reach: FloatArray,
    distance: FloatArray,
    normal: Vectors,
) -> None:
    """Intersect rays with a cylinder: the intersection of the infinite cylinder and the slab between its ends."""
    for n in range(origin.shape[0]):
        ox, oy, dx, dy = origin[n, 0], origin[n, 1], direction[n, 0], direction[n, 1]
        r0, r1 = _clip_to_cylinder(ox, oy, dx, dy, radius)
        z0, z1 = _clip_to_slab(origin[n, 2], direction[n, 2], half)
        enter, leave = max(r0, z0), min(r1, z1)
        t = math.inf
        if enter <= leave and leave >= 0.0:
            t = enter if enter >= 0.0 else leave
        if t in (z0, z1) and t not in (r0, r1):
            _write_hit(n, t, 0.0, 0.0, 1.0, direction, reach, distance, normal)
        else:
            s = t if t < math.inf else 0.0
            _write_hit(n, t, ox + s * dx, oy + s * dy, 0.0, direction, reach, distance, normal)


@kernel
def _trace_capsule(
    radius: float,
    half: float,
    origin: Vectors,
    direction: Vectors,
    reach: FloatArray,
    distance: FloatArray,
    normal: Vectors,
) -> None:
    """Intersect rays with a capsule: the union of a cylinder and two spheres."""
    for n in range(origin.shape[0]):
        ox, oy, oz = origin[n, 0], origin[n, 1], origin[n, 2]
        dx, dy, dz = direction[n, 0], direction[n, 1], direction[n, 2]
        r0, r1 = _clip_to_cylinder(ox, oy, dx, dy, radius)
        z0, z1 = _clip_to_slab(oz, dz, half)
        enter, leave = max(r0, z0), min(r1, z1)
        if not enter <= leave:
            enter, leave = math.inf, -math.inf
        for k in range(2):
            cz = oz - (2 * k - 1) * half
            nearest = -(ox * dx + oy * dy + cz * dz)
            px, py, pz = ox + nearest * dx, oy + nearest * dy, cz + nearest * dz
            first, last = _solve_quadratic(
                1.0, px * dx + py * dy + pz * dz, px * px + py * py + pz * pz - radius * radius
            )
            if first < math.inf:
                enter, leave = min(enter, nearest + first), max(leave, nearest + last)
        t = math.inf
        if leave >= 0.0:
            t = enter if enter >= 0.0 else leave
        s = t if t < math.inf else 0.0
        z = oz + s * dz
        _write_hit(n, t, ox + s * dx, oy + s * dy, z - min(max(z, -half), half), direction, reach, distance, normal)


def _check_lengths(shape: str, **lengths: float) -> None:
    for name, value in lengths.items():
        check_number(f"{shape}'s {name} (m)", value, MIN_SIZE, MAX_DISTANCE, error=FieldError)


@dataclass(frozen=True)
class Plane:
    """An infinite plane through the origin with a normal of any length. Raises `FieldError` for a zero normal."""

    normal: Vector = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        """Check the values."""
        if not MIN_SIZE <= math.hypot(*self.normal) <= MAX_DISTANCE:
            allowed = f"must be finite and not zero, of a length from {MIN_SIZE:g} to {MAX_DISTANCE:g}"
            raise FieldError("plane's normal", self.normal, allowed=allowed)

    def trace(
        self, origin_s: Vectors, direction_s: Vectors, reach: FloatArray, distance: FloatArray, normal_s: Vectors
    ) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace_plane(*self.normal, origin_s, direction_s, reach, distance, normal_s)


@dataclass(frozen=True)
class Box:
    """A box with sides `size` (m). Raises `FieldError` for a side that is not above 0."""

    size: Vector = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("box", length=self.size[0], width=self.size[1], height=self.size[2])

    def trace(
        self, origin_s: Vectors, direction_s: Vectors, reach: FloatArray, distance: FloatArray, normal_s: Vectors
    ) -> None:
        """Write the first hit of each ray, see `Shape`."""
        x, y, z = self.size
        _trace_box(0.5 * x, 0.5 * y, 0.5 * z, origin_s, direction_s, reach, distance, normal_s)


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid with `radii` (m) along x, y and z. Raises `FieldError` for a radius that is not above 0."""

    radii: Vector = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("ellipsoid", radius_x=self.radii[0], radius_y=self.radii[1], radius_z=self.radii[2])

    def trace(
        self, origin_s: Vectors, direction_s: Vectors, reach: FloatArray, distance: FloatArray, normal_s: Vectors
    ) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace_ellipsoid(*self.radii, origin_s, direction_s, reach, distance, normal_s)


@dataclass(frozen=True)
class Sphere:
    """A sphere with a `radius` (m). Raises `FieldError` for a radius that is not above 0."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("sphere", radius=self.radius)

    def trace(
        self, origin_s: Vectors, direction_s: Vectors, reach: FloatArray, distance: FloatArray, normal_s: Vectors
    ) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace_ellipsoid(self.radius, self.radius, self.radius, origin_s, direction_s, reach, distance, normal_s)


@dataclass(frozen=True)
class Cylinder:
    """A cylinder with a `radius` and a `length` (m) along z. Raises `FieldError` for a value that is not above 0."""

    radius: float = 1.0
    length: float = 1.0

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("cylinder", radius=self.radius, length=self.length)

    def trace(
        self, origin_s: Vectors, direction_s: Vectors, reach: FloatArray, distance: FloatArray, normal_s: Vectors
    ) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace_cylinder(self.radius, 0.5 * self.length, origin_s, direction_s, reach, distance, normal_s)


@dataclass(frozen=True)
class Capsule:
    """A capsule with a `radius` and a cylinder `length` (m) along z. Raises `FieldError` for a value not above 0."""

    radius: float = 0.5
    length: float = 1.0

    def __post_init__(self) -> None:
        """Check the values."""
        _check_lengths("capsule", radius=self.radius, length=self.length)

    def trace(
        self, origin_s: Vectors, direction_s: Vectors, reach: FloatArray, distance: FloatArray, normal_s: Vectors
    ) -> None:
        """Write the first hit of each ray, see `Shape`."""
        _trace_capsule(self.radius, 0.5 * self.length, origin_s, direction_s, reach, distance, normal_s)

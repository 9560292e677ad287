"""Magnetic fields: NOAA's World Magnetic Model (WMM), dipoles and temporary anomalies.

**World Magnetic Model**::

    (X, Y, Z)  field along geodetic north, east and down;   B_w = Rz(-heading) (Y, X, -Z) at the world's origin
    X = X' cos psi - Z' sin psi,   Z = X' sin psi + Z' cos psi,   psi = phi' - phi
    H = sqrt(X^2 + Y^2),  F = sqrt(H^2 + Z^2),  D = atan2(Y, X),  I = atan2(Z, H)

X', Y', Z' are along geocentric north, east and down::

    V = R sum_(n=1..12) (R / r)^(n+1) sum_(m=0..n) (g_nm cos m lambda + h_nm sin m lambda) P_nm(sin phi')
    B = -grad V,   g_nm(t) = g_nm + (t - epoch) dg_nm,   the same for h,   R = 6371.2 km

r is the distance from the centre of the earth, phi' the geocentric latitude, lambda the longitude. P_nm are Schmidt's
quasi-normalised functions. With s = sin phi', c = cos phi' and P_nm = c S_nm for m > 0 the sums are regular at the
poles::

    S_mm = sqrt(1 - 1/(2m)) c S_(m-1)(m-1),   S_11 = 1
    sqrt(n^2 - m^2) S_nm = (2n - 1) s S_(n-1)m - sqrt((n-1)^2 - m^2) S_(n-2)m
    -dP_nm/dphi' = n s S_nm - sqrt(n^2 - m^2) S_(n-1)m
    n P_n = (2n - 1) s P_(n-1) - (n - 1) P_(n-2)                      m = 0, and its derivative term by term

Away from the origin, the field along the local north, east and down is rotated into the world's axes. The model is the
field of the earth's core: without the crust, the daily variation and magnetic storms. The date is constant during a
run; a day changes the field by 0.2 nT, in places by 0.6 nT.

`WorldMagneticModel` is trilinear between nodes 1 km apart. Node (i, j, k) is at (i, j, k) km east, north and up of the
world's origin for any heading. Its value depends only on its position, so a reading does not depend on earlier
positions. The error is less than d^2/8 (|B_xx| + |B_yy| + |B_zz|), about 0.01 nT. A hash table of cells stores the
eight nodes of each; a new cell overwrites an old one with the same hash.

Source: Chulliat et al. 2020, The US/UK World Magnetic Model for 2020-2025: Technical Report.

**Dipole**: a motor, a battery, a wreck::

    B = mu0 / (4 pi r^3) (3 (m . u) u - m),   mu0 / 4 pi = 1e-7 T m/A,   u = (x - p) / r

m is the moment (A m^2) and p the position of the dipole, fixed in the world. For r < `radius` the formula uses
r = radius, so the field is bounded. At p, u is along m. Since 2019 mu0 / 4 pi is a measured value, equal to 1e-7 within
1e-9. Source: Jackson 1998, Classical Electrodynamics.

**Anomaly**: a constant vector is added everywhere for a time::

    B(x, t) += b   for start <= t < end
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock

import numpy as np

from navsense.core import pose
from navsense.core.errors import FieldError
from navsense.core.geodesy import Origin, geodetic_to_ecef
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import BoolArray, FloatArray, IntArray, Quaternion, Times, Vector, Vectors
from navsense.core.validation import check_number

MAX_DEGREE = 12
REFERENCE_RADIUS = 6371200.0
"""R (m)."""

VALID_YEARS = 5.0
"""Validity of a model after its epoch (years)."""

MODELS = ("WMM2020", "WMM2025")

_DATA = Path(__file__).parent / "data"


@cache
def _read_coefficients(model: str) -> tuple[float, FloatArray, FloatArray]:
    """Return a model's epoch (decimal year), its g and h (2, 13, 13) nT, and their change (2, 13, 13) nT per year."""
    lines = (_DATA / f"{model}.COF").read_text(encoding="ascii").splitlines()
    main, change = np.zeros((2, MAX_DEGREE + 1, MAX_DEGREE + 1)), np.zeros((2, MAX_DEGREE + 1, MAX_DEGREE + 1))
    for line in lines[1:]:
        parts = line.split()
        if len(parts) < 6:
            break
        n, m = int(parts[0]), int(parts[1])
        main[:, n, m] = float(parts[2]), float(parts[3])
        change[:, n, m] = float(parts[4]), float(parts[5])
    return float(lines[0].split()[0]), main, change


@lru_cache(maxsize=64)
def compute_coefficients(model: str, date: float) -> FloatArray:
    """Return read-only g and h (2, 13, 13) nT of a model at a decimal year.

    Raises `FieldError` for an unknown model and for a date outside its validity.
    """
    if model not in MODELS:
        raise FieldError("magnetic model", model, allowed=f"must be one of {', '.join(MODELS)}")
    epoch, main, change = _read_coefficients(model)
    if not epoch <= date <= epoch + VALID_YEARS:
        epochs = {name: _read_coefficients(name)[0] for name in MODELS}
        other = next((name for name, first in epochs.items() if first <= date <= first + VALID_YEARS), None)
        allowed = f"must be from {epoch} to {epoch + VALID_YEARS}"
        remedy = f"use {other}" if other else "give a date within the model's years"
        raise FieldError(f"date of {model} (decimal year)", date, allowed=allowed, remedy=remedy)
    values: FloatArray = main + (date - epoch) * change
    values.setflags(write=False)
    return values


@kernel
def sum_harmonics(
    coefficients: FloatArray, r: float, s: float, c: float, sine: float, cosine: float
) -> tuple[float, float, float]:
    """Return the field (nT) along geocentric north, east and down at r (m).

    s and c are sine and cosine of phi', `sine` and `cosine` those of lambda.
    """
    north, east, down = 0.0, 0.0, 0.0
    ratio = REFERENCE_RADIUS / r
    scale, p, p1, d, d1 = ratio * ratio, 1.0, 0.0, 0.0, 0.0
    for n in range(1, MAX_DEGREE + 1):
        scale *= ratio
        d, d1 = ((2 * n - 1) * (s * d - c * p) - (n - 1) * d1) / n, d
        p, p1 = ((2 * n - 1) * s * p - (n - 1) * p1) / n, p
        north += scale * coefficients[0, n, 0] * d
        down -= scale * (n + 1) * coefficients[0, n, 0] * p
    cm, sm, diagonal, start = cosine, sine, 1.0, ratio * ratio
    for m in range(1, MAX_DEGREE + 1):
        if m > 1:
            cm, sm = cm * cosine - sm * sine, sm * cosine + cm * sine
            diagonal *= c * math.sqrt(1.0 - 0.5 / m)
        start *= ratio
        scale, f, f1, root = start, diagonal, 0.0, 0.0
        for n in range(m, MAX_DEGREE + 1):
            if n > m:
                root, last = math.sqrt(n * n - m * m), root
                f, f1 = ((2 * n - 1) * s * f - last * f1) / root, f
                scale *= ratio
            even = coefficients[0, n, m] * cm + coefficients[1, n, m] * sm
            odd = coefficients[0, n, m] * sm - coefficients[1, n, m] * cm
            north += scale * even * (n * s * f - root * f1)
            east += scale * m * odd * f
            down -= scale * (n + 1) * even * c * f
    return north, east, down


NODE_SPACING = 1000.0
"""Distance between nodes (m)."""

MAX_DISTANCE = 5.0e6
"""Largest coordinate of a position (m)."""

_SIDE = 8
_SLOTS = _SIDE**3
_EMPTY = 1 << 62


@kernel
def field_e(table: FloatArray, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the field (nT) in earth-centred coordinates at an earth-centred position (m)."""
    p2 = x * x + y * y
    r, p = math.sqrt(p2 + z * z), math.sqrt(p2)
    s, c, sine, cosine = z / r, p / r, 0.0, 1.0
    if p > 0.0:
        sine, cosine = y / p, x / p
    north, east, down = sum_harmonics(table, r, s, c, sine, cosine)
    outward = -north * s - down * c
    return outward * cosine - east * sine, outward * sine + east * cosine, north * c - down * s


@kernel
def _fill_cell(table: FloatArray, frame: FloatArray, i: int, j: int, k: int, corners: FloatArray) -> None:
    """Write the field (T) along east, north, up of the origin at the eight nodes of cell (i, j, k), (8, 3)."""
    for corner in range(8):
        x, y = (i + (corner & 1)) * NODE_SPACING, (j + ((corner >> 1) & 1)) * NODE_SPACING
        z = (k + (corner >> 2)) * NODE_SPACING
        ex = frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z + frame[0, 3]
        ey = frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z + frame[1, 3]
        ez = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z + frame[2, 3]
        bx, by, bz = field_e(table, ex, ey, ez)
        for axis in range(3):
            corners[corner, axis] = 1e-9 * (frame[0, axis] * bx + frame[1, axis] * by + frame[2, axis] * bz)


@kernel
def _interpolate(corners: FloatArray, axis: int, x: float, y: float, z: float) -> float:
    """Return one component at the fractions x, y, z of a cell."""
    a: float = corners[0, axis] + x * (corners[1, axis] - corners[0, axis])
    b: float = corners[2, axis] + x * (corners[3, axis] - corners[2, axis])
    c: float = corners[4, axis] + x * (corners[5, axis] - corners[4, axis])
    d: float = corners[6, axis] + x * (corners[7, axis] - corners[6, axis])
    low, high = a + y * (b - a), c + y * (d - c)
    return low + z * (high - low)


@kernel
def _write_field(
    table: FloatArray,
    frame: FloatArray,
    cells: IntArray,
    corners: FloatArray,
    sine: float,
    cosine: float,
    position_w: Vectors,
    out: Vectors,
) -> int:
    """Write the field (T) in the world frame; return the first row beyond `MAX_DISTANCE`, or -1."""
    for row in range(position_w.shape[0]):
        x, y, z = position_w[row, 0], position_w[row, 1], position_w[row, 2]
        if not (abs(x) <= MAX_DISTANCE and abs(y) <= MAX_DISTANCE and abs(z) <= MAX_DISTANCE):
            return row
        east, north = (cosine * x - sine * y) / NODE_SPACING, (sine * x + cosine * y) / NODE_SPACING
        up = z / NODE_SPACING
        i, j, k = math.floor(east), math.floor(north), math.floor(up)
        slot = (i % _SIDE) + _SIDE * ((j % _SIDE) + _SIDE * (k % _SIDE))
        if cells[slot, 0] != i or cells[slot, 1] != j or cells[slot, 2] != k:
            _fill_cell(table, frame, i, j, k, corners[slot])
            cells[slot, 0], cells[slot, 1], cells[slot, 2] = i, j, k
        east, north, up = east - i, north - j, up - k
        be = _interpolate(corners[slot], 0, east, north, up)
        bn = _interpolate(corners[slot], 1, east, north, up)
        out[row, 0], out[row, 1] = cosine * be + sine * bn, cosine * bn - sine * be
        out[row, 2] = _interpolate(corners[slot], 2, east, north, up)
    return -1


class MagneticLattice:
    """The lattice of one model, date and origin, with a cache of cells."""

    def __init__(self, model: str, date: float, origin: Origin) -> None:
        """Start with an empty cache. Raises `FieldError` as `compute_coefficients` does."""
        self._table, self._frame = compute_coefficients(model, date), origin.ecef_transform
        self._cells = np.full((_SLOTS, 3), _EMPTY, dtype=np.int64)
        self._corners = np.empty((_SLOTS, 8, 3))
        self._lock = Lock()

    def write_field(self, position_w: Vectors, heading: float, out: Vectors) -> int:
        """Write the field (n, 3) T in a world of that heading; return the first row beyond `MAX_DISTANCE`, or -1."""
        sine, cosine = math.sin(heading), math.cos(heading)
        with self._lock:
            return _write_field(self._table, self._frame, self._cells, self._corners, sine, cosine, position_w, out)


@lru_cache(maxsize=16)
def get_lattice(model: str, date: float, latitude: float, longitude: float, elevation: float) -> MagneticLattice:
    """Return the cached lattice of a model, a decimal year and an origin."""
    return MagneticLattice(model, date, Origin(latitude, longitude, elevation))


BLACKOUT_LIMIT, CAUTION_LIMIT = 2e-6, 6e-6
"""Horizontal field (T) below which NOAA defines a blackout zone and a caution zone for compasses."""


@kernel
def _write_field_ned(
    coefficients: FloatArray, latitude: FloatArray, longitude: FloatArray, altitude: FloatArray, out: Vectors
) -> int:
    """Write (X, Y, Z) (n, 3) T; return the first row with an invalid position, or -1."""
    for i in range(out.shape[0]):
        if not (
            abs(latitude[i]) <= 0.5 * math.pi and abs(longitude[i]) < math.inf and abs(altitude[i]) <= MAX_DISTANCE
        ):
            return i
        x, y, z = geodetic_to_ecef(latitude[i], longitude[i], altitude[i])
        p, r = math.sqrt(x * x + y * y), math.sqrt(x * x + y * y + z * z)
        s, c = z / r, p / r
        north, east, down = sum_harmonics(coefficients, r, s, c, math.sin(longitude[i]), math.cos(longitude[i]))
        sine, cosine = math.sin(latitude[i]), math.cos(latitude[i])
        sin_psi, cos_psi = s * cosine - c * sine, c * cosine + s * sine
        out[i, 0], out[i, 1] = 1e-9 * (north * cos_psi - down * sin_psi), 1e-9 * east
        out[i, 2] = 1e-9 * (north * sin_psi + down * cos_psi)
    return -1


@kernel
def _write_elements(field: Vectors, out: Vectors) -> None:
    """Write H, F, D, I (n, 4) of (X, Y, Z) (n, 3)."""
    for i in range(field.shape[0]):
        x, y, z = field[i, 0], field[i, 1], field[i, 2]
        h = math.sqrt(x * x + y * y)
        out[i, 0], out[i, 1] = h, math.sqrt(h * h + z * z)
        out[i, 2], out[i, 3] = math.atan2(y, x), math.atan2(z, h)


def field_ned(
    latitude: FloatArray, longitude: FloatArray, altitude: FloatArray, date: float, model: str = "WMM2025"
) -> Vectors:
    """Return the field (n, 3) T along geodetic north, east and down, from the model without a lattice.

    latitude, longitude: (n,) rad; altitude: (n,) m above the WGS-84 ellipsoid. At a pole, the longitude defines north.
    date: decimal year.

    Raises `FieldError` for an unknown model, a date outside its validity and an invalid position.
    """
    out = np.empty((latitude.shape[0], 3))
    row = _write_field_ned(compute_coefficients(model, date), latitude, longitude, altitude, out)
    if row >= 0:
        allowed = "must be finite, the latitude from -pi/2 to pi/2, the altitude at most 5000 km"
        value = (float(latitude[row]), float(longitude[row]), float(altitude[row]))
        raise FieldError("place (latitude, longitude, altitude)", value, row=row, allowed=allowed)
    return out


@dataclass(frozen=True, eq=False)
class MagneticElements:
    """Magnetic elements (n,).

    horizontal, total: T.
    declination: rad, east of north; inclination: rad, downwards.
    """

    horizontal: FloatArray
    total: FloatArray
    declination: FloatArray
    inclination: FloatArray

    @property
    def blackout(self) -> BoolArray:
        """True (n,) in the blackout zone: the horizontal field is below 2000 nT."""
        return self.horizontal < BLACKOUT_LIMIT

    @property
    def caution(self) -> BoolArray:
        """True (n,) in the caution zone: the horizontal field is from 2000 to 6000 nT."""
        return (self.horizontal >= BLACKOUT_LIMIT) & (self.horizontal < CAUTION_LIMIT)


def compute_elements(field: Vectors) -> MagneticElements:
    """Return the elements of a field (n, 3) T along north, east and down."""
    out = np.empty((4, field.shape[0])).T
    _write_elements(field, out)
    return MagneticElements(*out.T)


@dataclass(frozen=True)
class WorldMagneticModel:
    """The World Magnetic Model (T) around a world's origin, interpolated on a lattice.

    origin: the world's origin; date: decimal year; model: one of `MODELS`.

    The interpolation error is below 0.1 nT. Raises `FieldError` for an unknown model and a date outside its validity.

    >>> from navsense.core.geodesy import Origin
    >>> oslo = Origin(latitude=np.radians(59.9), longitude=np.radians(10.7))
    >>> model = ns.environment.WorldMagneticModel(oslo, date=2026.5)
    >>> (1e6 * model.at(np.zeros((1, 3)), np.zeros(1))).round(1)  # µT along east, north, up
    array([[  1.3,  15.1, -49.3]])
    """

    origin: Origin
    date: float
    model: str = "WMM2025"

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        compute_coefficients(self.model, self.date)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3) T. Raises `FieldError` farther than 5000 km from the origin."""
        origin, out = self.origin, np.empty(position_w.shape)
        lattice = get_lattice(self.model, self.date, origin.latitude, origin.longitude, origin.elevation)
        row = lattice.write_field(position_w, origin.heading, out)
        if row >= 0:
            allowed = f"must be within {MAX_DISTANCE / 1000.0:g} km of the origin along each axis"
            raise FieldError("position (m)", tuple(position_w[row].tolist()), row=row, allowed=allowed)
        return out

    def rotate(self, rotation: Quaternion) -> WorldMagneticModel:
        """Return the field in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, origin=self.origin.rotate(rotation))


MU0_OVER_4_PI = 1e-7
"""T m/A."""

_MIN_LENGTH, _MAX_LENGTH = 1e-6, 1e9
"""Limits of the radius and of coordinates (m)."""


@kernel
def _write_dipole_field(
    px: float, py: float, pz: float, mx: float, my: float, mz: float, radius: float, position_w: Vectors, out: Vectors
) -> None:
    """Write the field (n, 3) T."""
    for i in range(out.shape[0]):
        x, y, z = position_w[i, 0] - px, position_w[i, 1] - py, position_w[i, 2] - pz
        r = math.sqrt(x * x + y * y + z * z)
        if r == 0.0:
            x, y, z = mx, my, mz
            r = math.sqrt(x * x + y * y + z * z)
            if r == 0.0:
                r = 1.0
            x, y, z, r = x / r, y / r, z / r, 0.0
        else:
            x, y, z = x / r, y / r, z / r
        distance = max(r, radius)
        scale = MU0_OVER_4_PI / (distance * distance * distance)
        projection = 3.0 * (mx * x + my * y + mz * z)
        out[i, 0], out[i, 1] = scale * (projection * x - mx), scale * (projection * y - my)
        out[i, 2] = scale * (projection * z - mz)


@dataclass(frozen=True)
class Dipole:
    """A magnetic dipole.

    position_w: m; moment_w: A m^2; radius: m, the field is constant along each direction inside it.

    Raises `FieldError` for a value that is not finite and a radius that is not positive.

    >>> magnet = ns.environment.Dipole(position_w=(0.0, 0.0, 0.0), moment_w=(0.0, 0.0, 1.0))
    >>> 1e6 * magnet.at(np.array([[0.0, 0.0, 1.0]]), np.zeros(1))  # µT, 1 m above
    array([[0. , 0. , 0.2]])
    """

    position_w: Vector
    moment_w: Vector
    radius: float = 0.01

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("position_w", "moment_w"):
            if not all(abs(component) <= _MAX_LENGTH for component in getattr(self, name)):
                allowed = f"must be three numbers of absolute value up to {_MAX_LENGTH:g}"
                raise FieldError(f"{name} of a dipole", getattr(self, name), allowed=allowed)
        check_number("radius of a dipole (m)", self.radius, _MIN_LENGTH, _MAX_LENGTH, error=FieldError)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3) T."""
        out = np.empty(position_w.shape)
        px, py, pz = (float(part) for part in self.position_w)
        mx, my, mz = (float(part) for part in self.moment_w)
        _write_dipole_field(px, py, pz, mx, my, mz, float(self.radius), position_w, out)
        return out

    def rotate(self, rotation: Quaternion) -> Dipole:
        """Return the dipole in a world rotated by `rotation`."""
        position, moment = pose.rotate(rotation, self.position_w), pose.rotate(rotation, self.moment_w)
        return replace(self, position_w=position, moment_w=moment)


@dataclass(frozen=True)
class Anomaly:
    """A field `field_w` (T) that is added to the world's field from `start` to `end` (s, true time).

    Raises `FieldError` for a value that is not finite and invalid times.

    >>> crane = ns.environment.Anomaly((5e-6, 0.0, 0.0), start=10.0, end=20.0)
    >>> crane.at(np.zeros((2, 3)), np.array([5.0, 15.0]))
    array([[0.e+00, 0.e+00, 0.e+00],
           [5.e-06, 0.e+00, 0.e+00]])
    """

    field_w: Vector
    start: float
    end: float = math.inf

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        if not all(math.isfinite(part) for part in self.field_w):
            raise FieldError("field of an anomaly (T)", self.field_w, allowed="must be finite")
        if not (math.isfinite(self.start) and self.end > self.start):
            allowed = "must be from a finite time to a later one"
            raise FieldError("times of an anomaly (s)", f"{self.start:g} to {self.end:g}", allowed=allowed)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3) T at `time` (n,) s."""
        out = np.zeros((position_w.shape[0], 3))
        out[(time >= self.start) & (time < self.end)] = self.field_w
        return out

    def rotate(self, rotation: Quaternion) -> Anomaly:
        """Return the anomaly in a world rotated by `rotation`."""
        return replace(self, field_w=pose.rotate(rotation, self.field_w))

"""Beams of a Doppler instrument: axes, transducers, and the rays of each beam in the sensor's frame s.

    u = cos a d + sin a (cos A f + sin A l)  `make_janus_beams`: angle a from `down`, d; azimuth A from f towards l
    f = x minus its part along d, at length 1 (z for d = x, -z for d = -x),   l = -d x f        forward and left

Looking along `down`, azimuths go counter-clockwise from the sensor's x. With d = -z, as in an FLU frame, l = y and
u = (sin a cos A, sin a sin A, -cos a); with d = z, as in an FRD frame, l = -y. WHOI's and Gazebo's beams are

    u = (sin a cos A, sin a sin A, -cos a),  (-sin a cos A, -sin a sin A, cos a) where pos_z_down  `make_dsros_beams`
    u = Ry(90 deg) Rx(rotation) Ry(tilt) x = (-cos r sin t, sin r sin t, -cos t)            `make_gazebo_beams`

A beam's frame k has x along its axis; its `rotation` takes k to s. All rays of a beam form one echo (`BeamWeighting`).
The pattern is Gaussian about the axis, for transmission and for reception. The data sheet's `width` W is the full width
at half power of one way:

    exp(-delta^2 / (2 s^2)),   s = W / (4 sqrt(ln 2))

Rings of a cone then stand at delta_j = s sqrt(2 t_j), t_j the roots of the Laguerre polynomial L_n^(1), with weights
w_j / t_j, the axis having the rest: Radau's rule for a weight exp(-t), exact to delta^(4 n) for n rings and to degree 5
around the axis, so that one ring has the pattern's mean, variance and kurtosis. Other cones have their rings at equal
steps up to W / 2. Source: facts of `libdsros_ros_dvl` and of gz-sensors' DVL; the rule is held by quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.pose import from_rpy, multiply, normalize, rotate
from navsense.core.typing import FloatArray, Quaternion, Vector, Vectors
from navsense.core.validation import validate_types
from navsense.sensors._cross_axis import check_numbers
from navsense.sensors.range import Cone, Fan

MIN_BEAMS, MAX_BEAMS = 3, 16

MIN_DETERMINANT = 1e-12
"""Least determinant of sum u u^T, of mean eigenvalue 1, of axes that span space: a Janus angle of 0.03 degrees."""

MIN_AXES_SUM = 1e-9
"""Length of the sum of axes below which it is only rounding: beams that cancel have no mean."""

MAX_AZIMUTH = 4.0 * math.pi
"""rad: an azimuth beyond two turns is in degrees."""

_QUARTER_TURN = 0.5 * math.pi

_STDDEV_PER_WIDTH = 1.0 / (4.0 * math.sqrt(math.log(2.0)))
"""Of a pattern, for a full width at half power of 1."""


ONE_RAY = Cone(0.0, 0)
"""Shape of a beam with one ray, its axis."""


class BeamWeighting(StrEnum):
    """How the rays of a beam form one echo; the equations are in `doppler.echoes`.

    `PLANE`: the range along the axis to the plane through the hits, and the velocity along the axis. `PATTERN`: the
    same range, and the mean velocity over the beam's sensitivity. `NEAREST`: the shortest range, as in Gazebo.
    """

    PLANE = "plane"
    NEAREST = "nearest"
    PATTERN = "pattern"


def _check_finite(what: str, *numbers: float) -> None:
    """Raise `SensorError` unless all are finite numbers."""
    if not all(math.isfinite(number) for number in numbers):
        raise SensorError(what, numbers[0] if len(numbers) == 1 else numbers, allowed="must be finite")


@dataclass(frozen=True)
class Beam:
    """One transducer. Raises `SensorError` for invalid values.

    shape: of the rays about x of the beam's frame.
    rotation: quaternion (w, x, y, z) from the beam's frame to the sensor's.
    position: m in the sensor's frame.
    """

    shape: Cone | Fan = ONE_RAY
    rotation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    position: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "position", check_numbers("position of a beam (m)", self.position, 3))
        object.__setattr__(self, "rotation", check_numbers("rotation of a beam", self.rotation, 4))
        validate_types(self, "of a beam")
        length = math.hypot(*self.rotation)
        if not abs(length - 1.0) < 1e-6:
            raise SensorError("rotation of a beam", self.rotation, allowed="must be a unit quaternion w x y z")

    @property
    def axis(self) -> Vector:
        """Unit vector along the beam, outwards, in the sensor's frame."""
        if isinstance(self.shape, Fan):
            return rotate(self.unit_rotation, (1.0, 0.0, 0.0))
        length = math.hypot(*self.shape.axis)
        x, y, z = self.shape.axis
        return rotate(self.unit_rotation, (x / length, y / length, z / length))

    @property
    def unit_rotation(self) -> Quaternion:
        """The rotation at unit length."""
        return normalize(self.rotation)


def _get_shape_axis(shape: Cone | Fan) -> Vector:
    """Return the axis of a shape in the beam's frame."""
    return shape.axis if isinstance(shape, Cone) else (1.0, 0.0, 0.0)


def _make_pattern_rays(cone: Cone) -> tuple[list[Vector], list[float]]:
    """Return rays in the beam's frame, the axis first, and their weights, of sum 1, for a round beam's pattern."""
    from scipy.special import roots_genlaguerre

    nodes, shares = roots_genlaguerre(int(cone.rings), 1.0)
    deviation = cone.width * _STDDEV_PER_WIDTH
    rays, weights = cone.make_ring(0.0, 1), []
    for ring, (node, share) in enumerate(zip(nodes.tolist(), shares.tolist(), strict=True), 1):
        off, count = deviation * math.sqrt(2.0 * node), 6 * ring
        if not off < _QUARTER_TURN:
            allowed = (
                f"must be narrower, or of fewer rings than {cone.rings}: its pattern goes {off:.3g} rad off its axis"
            )
            raise SensorError("width of a beam (rad)", cone.width, allowed=allowed)
        rays += cone.make_ring(off, count)
        weights += [share / node / count] * count
    return rays, [1.0 - math.fsum(weights), *weights]


def _check_patterns(cones: Iterable[Cone]) -> None:
    """Raise `SensorError` for a pattern that reaches a quarter turn off its axis; no root is above 4 n + 4."""
    for cone in cones:
        if cone.rings and not cone.width * _STDDEV_PER_WIDTH * math.sqrt(8.0 * (cone.rings + 1)) < _QUARTER_TURN:
            _make_pattern_rays(cone)


def _list_rays(shape: Cone | Fan) -> list[Vector]:
    """Return the rays of a shape as plain vectors."""
    return [(x, y, z) for x, y, z in shape.make_rays().tolist()]


@dataclass(frozen=True)
class Beams:
    """Transducers of one instrument. Raises `SensorError` for invalid values.

    beams: three or more, whose axes span space.
    weighting: of the rays of a beam.
    absorption: dB/m, one way, which weights the rays of a `PATTERN` by their ranges.
    """

    beams: tuple[Beam, ...]
    weighting: BeamWeighting = BeamWeighting.PLANE
    absorption: float = 0.0

    def __post_init__(self) -> None:
        """Check that a velocity can be solved from the beams."""
        validate_types(self)
        object.__setattr__(self, "beams", tuple(self.beams))
        count = len(self.beams)
        if not MIN_BEAMS <= count <= MAX_BEAMS:
            raise SensorError("beams", count, allowed=f"must be from {MIN_BEAMS} to {MAX_BEAMS}")
        if not 0.0 <= self.absorption < math.inf:
            raise SensorError("absorption (dB/m)", self.absorption, allowed="must be at least 0 and finite")
        if self.weighting is BeamWeighting.PATTERN and any(isinstance(beam.shape, Fan) for beam in self.beams):
            raise SensorError("shape of a beam", "a fan", allowed="must be a cone where rays are weighted by a pattern")
        if self.weighting is BeamWeighting.PATTERN:
            _check_patterns({beam.shape for beam in self.beams if isinstance(beam.shape, Cone)})
        if not spans_space([beam.axis for beam in self.beams]):
            axes = ", ".join(f"({x:.4g} {y:.4g} {z:.4g})" for x, y, z in (beam.axis for beam in self.beams))
            allowed = "must not all be parallel or in one plane: no velocity in space can be solved from them"
            raise SensorError("axes of the beams", axes, allowed=allowed, remedy="give beams in three directions")

    @cached_property
    def nearest_ray_beams(self) -> Beams:
        """The same beams with Gazebo's nearest-ray rule in place of `PLANE`."""
        return replace(self, weighting=BeamWeighting.NEAREST) if self.weighting is BeamWeighting.PLANE else self

    @cached_property
    def single_ray_beams(self) -> Beams:
        """The same beams of one ray each, along their axes."""
        thin = [replace(beam, shape=Cone(0.0, 0, _get_shape_axis(beam.shape))) for beam in self.beams]
        return Beams(tuple(thin), BeamWeighting.NEAREST)

    @cached_property
    def axes(self) -> Vectors:
        """Unit vectors (k, 3), one a beam, in the sensor's frame."""
        return np.array([beam.axis for beam in self.beams])

    @cached_property
    def axis_rays(self) -> FloatArray:
        """Unit vectors (k, 1, 3) of one ray a beam, along its axis."""
        return np.ascontiguousarray(self.axes[:, None, :])

    @cached_property
    def axis(self) -> FloatArray:
        """Unit vector (3,) along the instrument: the mean of its beams' axes; z where these cancel."""
        x, y, z = (math.fsum(column) for column in zip(*self.axes.tolist(), strict=True))
        length = math.hypot(x, y, z)
        return np.array((x / length, y / length, z / length)) if length > MIN_AXES_SUM else np.array((0.0, 0.0, 1.0))

    @cached_property
    def slant_cosines(self) -> tuple[float, ...]:
        """Cosine of each beam's angle to the instrument's axis."""
        x, y, z = self.axis.tolist()
        return tuple(u * x + v * y + w * z for u, v, w in self.axes.tolist())

    @cached_property
    def mean_slant_ratio(self) -> float:
        """Mean distance along the beams per distance along the instrument's axis."""
        return sum(1.0 / one for one in self.slant_cosines) / len(self.slant_cosines)

    @cached_property
    def forward_cosines(self) -> FloatArray:
        """The same (k,). Raises `SensorError` for a beam that points backwards."""
        for k, cosine in enumerate(self.slant_cosines):
            if not cosine > 0.0:
                allowed = "must be below 90 degrees for a layer of water ahead of all beams"
                raise SensorError(f"angle of beam {k} to the mean of all beams", f"cosine {cosine:g}", allowed=allowed)
        return np.array(self.slant_cosines)

    @cached_property
    def positions(self) -> Vectors:
        """Positions (k, 3) m of the transducers in the sensor's frame."""
        return np.array([beam.position for beam in self.beams], dtype=np.float64)

    @property
    def rays(self) -> FloatArray:
        """Unit vectors (k, m, 3) in the sensor's frame; a beam with fewer rays than another repeats its first."""
        return self._rays_and_weights[0]

    @property
    def weights(self) -> FloatArray:
        """Shares (k, m) of the rays in a beam's pattern; their sum is 1, and repeated rays have 0."""
        return self._rays_and_weights[1]

    @cached_property
    def ray_cosines(self) -> FloatArray:
        """Cosines (k, m) of the angles between the rays and the axes of their beams."""
        found: FloatArray = (self.rays * self.axis_rays).sum(axis=2)
        return np.minimum(found, 1.0)

    @cached_property
    def _rays_and_weights(self) -> tuple[FloatArray, FloatArray]:
        """Rays and weights."""
        found = [self._make_rays(beam) for beam in self.beams]
        most = max(len(rays) for rays, _ in found)
        rays, weights = np.empty((len(found), most, 3)), np.zeros((len(found), most))
        for k, (own, shares) in enumerate(found):
            rays[k] = own[0]
            rays[k, : len(own)] = own
            weights[k, : len(own)] = shares
        return rays, weights

    def _make_rays(self, beam: Beam) -> tuple[list[Vector], list[float]]:
        """Return a beam's rays in the sensor's frame and their weights."""
        if (
            self.weighting is BeamWeighting.PATTERN
            and isinstance(beam.shape, Cone)
            and beam.shape.rings * beam.shape.width
        ):
            own, shares = _make_pattern_rays(beam.shape)
        else:
            own = _list_rays(beam.shape)
            shares = [1.0 / len(own)] * len(own)
        return [rotate(beam.unit_rotation, ray) for ray in own], shares


def spans_space(axes: Sequence[Vector]) -> bool:
    """Return whether unit vectors span space."""
    xx, xy, xz, yy, yz, zz = (math.fsum(u[i] * u[j] for u in axes) for i in range(3) for j in range(i, 3))
    determinant = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    return determinant > MIN_DETERMINANT * (len(axes) / 3.0) ** 3


def _find_rotation(down: Vector) -> Quaternion:
    """Return the rotation that takes x to forward, y to left and -z to `down`."""
    length = math.hypot(*down)
    if not (len(down) == 3 and 0.0 < length < math.inf):
        raise SensorError("down", down, allowed="must be 3 finite numbers, not all 0")
    x, y, z = (part / length for part in down)
    roll = math.atan2(y, -z) if y or z else 0.0
    return multiply(from_rpy(roll, 0.0, 0.0), from_rpy(0.0, math.atan2(-x, math.hypot(y, z)), 0.0))


def _make_cone(width: float, rings: int) -> Cone:
    """Return a round beam about x; a single ray without width."""
    return Cone(width, rings if width else 0)


def make_janus_beams(
    angle: float, azimuths: Sequence[float], *, width: float = 0.0, rings: int = 1, down: Vector = (0.0, 0.0, -1.0)
) -> Beams:
    """Return beams at one `angle` (rad) from `down` and at azimuths (rad) from x, counter-clockwise along `down`.

    Each is a cone of full `width` (rad). Raises `SensorError`.
    """
    if not 0.0 < angle < _QUARTER_TURN:
        raise SensorError("angle of the beams (rad)", angle, allowed="must be above 0 and below pi / 2 (90 degrees)")
    shape, facing = _make_cone(width, rings), _find_rotation(down)
    made = []
    for azimuth in azimuths:
        _check_finite("azimuth of a beam (rad)", azimuth)
        if abs(azimuth) > MAX_AZIMUTH:
            allowed = "must be from -4 pi to 4 pi"
            raise SensorError("azimuth of a beam (rad)", azimuth, allowed=allowed, remedy="give radians")
        made.append(Beam(shape, multiply(facing, from_rpy(0.0, _QUARTER_TURN - angle, azimuth))))
    return Beams(tuple(made))


def make_dsros_beams(
    angle: float, azimuths: Sequence[float], *, pos_z_down: bool, width: float = 0.0, rings: int = 1
) -> Beams:
    """Return beams as `dsros_dvl` places them by angle and azimuths (rad): away from the azimuth if z is down.

    Raises `SensorError`.
    """
    if pos_z_down:
        return make_janus_beams(angle, [math.pi - a for a in azimuths], width=width, rings=rings, down=(0.0, 0.0, 1.0))
    return make_janus_beams(angle, azimuths, width=width, rings=rings)


def make_gazebo_rotation(rotation: float, tilt: float) -> Quaternion:
    """Return the rotation of a beam as Gazebo's `dvl` defines it by rotation and tilt (rad): rotation 0 points aft.

    Raises `SensorError`.
    """
    _check_finite("rotation of a beam (rad)", rotation)
    if not abs(tilt) < _QUARTER_TURN:
        raise SensorError("tilt of a beam (rad)", tilt, allowed="must be above -pi / 2 and below pi / 2 (90 degrees)")
    own = multiply(from_rpy(rotation, 0.0, 0.0), from_rpy(0.0, tilt, 0.0))
    return multiply(from_rpy(0.0, _QUARTER_TURN, 0.0), own)


def make_gazebo_beams(
    rotations: Sequence[float], tilts: Sequence[float], apertures: Sequence[float], *, rings: int | Sequence[int] = 1
) -> Beams:
    """Return beams of full aperture (rad) at rotations and tilts (rad), see `make_gazebo_rotation`.

    `rings` is the number of rings of rays, of all beams or one by one. Raises `SensorError`.
    """
    each = [rings] * len(apertures) if isinstance(rings, int) else rings
    cones = [_make_cone(aperture, count) for aperture, count in zip(apertures, each, strict=True)]
    turns = [make_gazebo_rotation(rotation, tilt) for rotation, tilt in zip(rotations, tilts, strict=True)]
    return Beams(tuple(Beam(cone, turn) for cone, turn in zip(cones, turns, strict=True)))

"""Beams of a Doppler instrument: axes, transducers, and the rays of each beam in the sensor's frame s.

`make_janus_beams` places beams at the Janus angle theta from the direction `down` and at the azimuth A from `forward`:

    u = cos theta down + sin theta (cos A forward + sin A left)
    forward = the part of x perpendicular to down, as a unit vector; z for down = x, -z for down = -x
    left = -down x forward

Seen along `down`, azimuths go counter-clockwise from the sensor's x. In an FLU frame, down = -z gives left = y and
u = (sin theta cos A, sin theta sin A, -cos theta). In an FRD frame, down = z gives left = -y. With three or more equal
steps of azimuth, `down` is the instrument axis. The beams of the plug-ins are:

    u = (sin theta cos A, sin theta sin A, -cos theta)                                     `make_dsros_beams`
    u = (-sin theta cos A, -sin theta sin A, cos theta)                                    the same with `pos_z_down`
    u = Ry(90 deg) Rx(rho) Ry(tau) x = (-cos rho sin tau, sin rho sin tau, -cos tau)       `make_gazebo_beams`

rho is Gazebo's rotation and tau its tilt. The frame of beam k is that of its transducer, and the `rotation` of the beam
takes it to s. The beam is along x of this frame, or along the `axis` of its `Cone`. All rays of a beam form one echo
(`BeamWeighting`). The shapes `Cone` and `Fan` are in `sensors.range`.

The pattern of a beam is Gaussian about its axis, in transmission and in reception. delta is the angle from the axis.
The `width` W of a datasheet is the full width at half power, one way. The two-way pattern is

    exp(-delta^2 / (2 sigma_W^2)),   sigma_W = W / (4 sqrt(ln 2))

With this pattern, the n rings of a cone are at delta_j = sigma_W sqrt(2 y_j). y_j are the roots of the Laguerre
polynomial L_n^(1), and G_j its quadrature weights. Ring j has the weight g_j = G_j / y_j, and the axis has the rest to
1. This is Radau's rule for the weight exp(-y). It is exact up to delta^(4 n) and up to degree 5 around the axis. So one
ring has the pattern's mean, variance and kurtosis. Without a pattern the rings are at equal steps up to W / 2.

Sources: documented beams of `libdsros_ros_dvl` and of gz-sensors' DVL. Tests compare the rule with numerical
quadrature.
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
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternion, Vector, Vectors
from navsense.core.validation import check_numbers, validate_types
from navsense.sensors.range import Cone, Fan

MIN_BEAMS, MAX_BEAMS = 3, 16

MIN_DETERMINANT = 1e-12
"""Axes span space if the determinant of sum u u^T, scaled to a mean eigenvalue of 1, is larger.

Beams at a Janus angle of 0.03 degrees have this value.
"""

MIN_AXES_SUM = 1e-9
"""Smallest length of the sum of axes that has a direction. Below it the axes cancel, up to rounding."""

X_AZIMUTHS_DEG = (-135.0, 135.0, 45.0, -45.0)
"""Azimuths (degrees) of four beams in an X: 45 degrees from the sensor's x and y."""

MAX_AZIMUTH = 4.0 * math.pi
"""rad: an azimuth beyond two turns is in degrees."""

_QUARTER_TURN = 0.5 * math.pi

_STDDEV_PER_WIDTH = 1.0 / (4.0 * math.sqrt(math.log(2.0)))
"""Standard deviation sigma_W of a pattern per full width W at half power."""

ONE_RAY = Cone(0.0, 0)
"""Shape of a beam with one ray, its axis."""


class BeamWeighting(StrEnum):
    """Rule by which the rays of a beam form one echo; the equations are in `doppler.echoes`.

    - `PLANE`: the range along the axis to the plane through the bottom points, and the velocity along the axis.
    - `NEAREST`: the range of the nearest ray, as in Gazebo, and the velocity along the axis.
    - `PATTERN`: the range of `PLANE`, and the mean velocity over the two-way pattern of the beam.

    >>> ns.sensors.BeamWeighting("pattern")
    <BeamWeighting.PATTERN: 'pattern'>
    """

    PLANE = "plane"
    NEAREST = "nearest"
    PATTERN = "pattern"


def _check_finite(name: str, value: float) -> None:
    """Raise `SensorError` for a value that is not finite."""
    if not math.isfinite(value):
        raise SensorError(name, value, allowed="must be finite")


@dataclass(frozen=True)
class Beam:
    """One transducer. Raises `SensorError` for invalid values.

    shape: of the rays in the beam's frame, about x or the axis of a `Cone`.
    rotation: quaternion (w, x, y, z) from the beam's frame to the sensor's.
    position: m in the sensor's frame.

    >>> ns.sensors.Beam(ns.sensors.Cone(0.05), position=(0.1, 0.0, 0.0))
    Beam(shape=Cone(width=0.05), position=(0.1, 0.0, 0.0))
    """

    shape: Cone | Fan = ONE_RAY
    rotation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    position: Vector = (0.0, 0.0, 0.0)

    __repr__, _repr_html_ = format_spec, format_spec_html

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
        x, y, z = self.shape_axis
        length = math.hypot(x, y, z)
        return rotate(self.unit_rotation, (x / length, y / length, z / length))

    @property
    def shape_axis(self) -> Vector:
        """Vector along the beam in the beam's frame."""
        return self.shape.axis if isinstance(self.shape, Cone) else (1.0, 0.0, 0.0)

    @property
    def unit_rotation(self) -> Quaternion:
        """The rotation at unit length."""
        return normalize(self.rotation)


def _make_pattern_rays(cone: Cone) -> tuple[list[Vector], list[float]]:
    """Return the rays of a cone with a pattern in the beam's frame, the axis first, and their weights, of sum 1."""
    from scipy.special import roots_genlaguerre

    nodes, node_weights = roots_genlaguerre(int(cone.rings), 1.0)
    stddev = cone.width * _STDDEV_PER_WIDTH
    rays, weights = cone.make_ring(0.0, 1), []
    for ring, (node, node_weight) in enumerate(zip(nodes.tolist(), node_weights.tolist(), strict=True), 1):
        angle, count = stddev * math.sqrt(2.0 * node), 6 * ring
        if not angle < _QUARTER_TURN:
            allowed = f"must be smaller: a ring of rays is {angle:.3g} rad from the axis, and pi / 2 is the limit"
            what, remedy = "width of a beam (rad)", "or use fewer rings"
            raise SensorError(what, cone.width, allowed=allowed, remedy=remedy, field="width")
        rays += cone.make_ring(angle, count)
        weights += [node_weight / node / count] * count
    return rays, [1.0 - math.fsum(weights), *weights]


def _check_patterns(cones: Iterable[Cone]) -> None:
    """Raise `SensorError` for a pattern with a ring of rays at pi / 2 or more from its axis."""
    for cone in cones:
        # No root of the Laguerre polynomial L_n^(1) is above 4 n + 4, so most cones need no roots.
        if cone.rings and not cone.width * _STDDEV_PER_WIDTH * math.sqrt(8.0 * (cone.rings + 1)) < _QUARTER_TURN:
            _make_pattern_rays(cone)


WEIGHTING_TEXTS = {
    BeamWeighting.PLANE: "range along the axis to the plane through the bottom points of {} rays",
    BeamWeighting.NEAREST: "range of the nearest of {} rays",
    BeamWeighting.PATTERN: "mean velocity of {} rays over the beam pattern",
}
"""Description of the echo of a beam for each weighting, with the number of rays."""


@dataclass(frozen=True)
class Beams:
    """Transducers of one instrument. Raises `SensorError` for invalid values.

    beams: three or more, whose axes span space.
    weighting: of the rays of a beam.
    absorption: dB/m, one way, which weights the rays of a `PATTERN` by their ranges. It does not weaken the echo:
        `EchoStrength.absorption` does. Give both the same value for the same water.

    >>> beams = ns.sensors.make_janus_beams(0.5236, np.radians([45, 135, 225, 315]))  # 30 degrees
    >>> len(beams.beams)
    4
    """

    beams: tuple[Beam, ...]
    weighting: BeamWeighting = BeamWeighting.PLANE
    absorption: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

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
            raise SensorError("shape of a beam", "a fan", allowed="must be a cone for the weighting `pattern`")
        if self.weighting is BeamWeighting.PATTERN:
            _check_patterns({beam.shape for beam in self.beams if isinstance(beam.shape, Cone)})
        if not spans_space([beam.axis for beam in self.beams]):
            axes = ", ".join(f"({x:.4g} {y:.4g} {z:.4g})" for x, y, z in (beam.axis for beam in self.beams))
            allowed = "must not all be parallel or in one plane: no velocity in space can be solved from them"
            remedy = "give beams in three directions"
            raise SensorError("axes of the beams", axes, allowed=allowed, remedy=remedy, field="beams")

    def describe(self, limits: Sequence[float], *, own_hull: bool) -> tuple[str, ...]:
        """Return lines on the beams and the limits of their echoes.

        limits: minimum and maximum range, m, and smallest cosine of the angle of incidence.
        own_hull: True if rays can hit the sensor's own model.
        """
        angles = [f"{math.degrees(math.acos(min(cosine, 1.0))):.4g}" for cosine in self.janus_cosines]
        directions = f"each {angles[0]}" if len(set(angles)) == 1 else f"at {', '.join(angles)}"
        ray_count = self.rays.shape[1]
        echo = WEIGHTING_TEXTS[self.weighting].format(ray_count) if ray_count > 1 else "one ray per beam"
        hull = "; rays can hit the model of the sensor" if own_hull else ""
        minimum_range, maximum_range, min_incidence_cosine = limits
        incidence = f", minimum incidence cosine {min_incidence_cosine:g}" if min_incidence_cosine > 0.0 else ""
        return (
            f"beams: {len(angles)}, {directions} deg from the instrument axis; {echo}{hull}",
            f"limits: {minimum_range:g} to {maximum_range:g} m along a beam{incidence}",
        )

    @cached_property
    def nearest_ray_beams(self) -> Beams:
        """The same beams with Gazebo's nearest-ray rule in place of `PLANE`."""
        return replace(self, weighting=BeamWeighting.NEAREST) if self.weighting is BeamWeighting.PLANE else self

    @cached_property
    def single_ray_beams(self) -> Beams:
        """The same beams of one ray each, along their axes."""
        beams = tuple(replace(beam, shape=Cone(0.0, 0, beam.shape_axis)) for beam in self.beams)
        return Beams(beams, BeamWeighting.NEAREST)

    @cached_property
    def axes(self) -> Vectors:
        """Unit vector (k, 3) along each beam in the sensor's frame."""
        return np.array([beam.axis for beam in self.beams])

    @cached_property
    def axis_rays(self) -> FloatArray:
        """The same as rays (k, 1, 3): one ray per beam, along its axis."""
        return np.ascontiguousarray(self.axes[:, None, :])

    @cached_property
    def instrument_axis(self) -> FloatArray:
        """Instrument axis (3,): the unit vector along the mean of the beams' axes; z if these cancel."""
        x, y, z = (math.fsum(column) for column in zip(*self.axes.tolist(), strict=True))
        length = math.hypot(x, y, z)
        return np.array((x / length, y / length, z / length)) if length > MIN_AXES_SUM else np.array((0.0, 0.0, 1.0))

    @cached_property
    def janus_cosines(self) -> tuple[float, ...]:
        """Cosine of each beam's Janus angle, its angle to the instrument axis."""
        x, y, z = self.instrument_axis.tolist()
        return tuple(u * x + v * y + w * z for u, v, w in self.axes.tolist())

    @cached_property
    def mean_inverse_janus_cosine(self) -> float:
        """Mean of 1 / `janus_cosines`: distance along the beams per distance along the instrument axis."""
        return sum(1.0 / cosine for cosine in self.janus_cosines) / len(self.janus_cosines)

    @cached_property
    def positive_janus_cosines(self) -> FloatArray:
        """The Janus cosines (k,), which are all above 0. Raises `SensorError` as `check_janus_angles`."""
        self.check_janus_angles()
        return np.array(self.janus_cosines)

    def check_janus_angles(self) -> None:
        """Raise `SensorError` for a beam at 90 degrees or more from the instrument axis."""
        for k, cosine in enumerate(self.janus_cosines):
            if not cosine > 0.0:
                allowed = "must be below 90 degrees for a water layer and for cells"
                what = f"angle of beam {k} to the instrument axis"
                raise SensorError(what, f"cosine {cosine:g}", allowed=allowed, field="beams")

    @cached_property
    def positions(self) -> Vectors:
        """Positions (k, 3) m of the transducers in the sensor's frame."""
        return np.array([beam.position for beam in self.beams], dtype=np.float64)

    @property
    def rays(self) -> FloatArray:
        """Unit vectors (k, m, 3) of the rays in the sensor's frame; a beam with fewer rays repeats its first ray."""
        return self._rays_and_weights[0]

    @property
    def weights(self) -> FloatArray:
        """Weights (k, m) of the rays of each beam; their sum is 1, and repeated rays have 0."""
        return self._rays_and_weights[1]

    @cached_property
    def ray_cosines(self) -> FloatArray:
        """Cosines (k, m) of the angles between the rays and the axes of their beams."""
        cosines: FloatArray = (self.rays * self.axis_rays).sum(axis=2)
        return np.minimum(cosines, 1.0)

    @cached_property
    def _rays_and_weights(self) -> tuple[FloatArray, FloatArray]:
        """Rays and weights."""
        beams = [self._make_rays(beam) for beam in self.beams]
        max_count = max(len(beam_rays) for beam_rays, _ in beams)
        rays, weights = np.empty((len(beams), max_count, 3)), np.zeros((len(beams), max_count))
        for k, (beam_rays, beam_weights) in enumerate(beams):
            rays[k] = beam_rays[0]
            rays[k, : len(beam_rays)] = beam_rays
            weights[k, : len(beam_rays)] = beam_weights
        return rays, weights

    def _make_rays(self, beam: Beam) -> tuple[list[Vector], list[float]]:
        """Return a beam's rays in the sensor's frame and their weights."""
        shape, has_pattern = beam.shape, self.weighting is BeamWeighting.PATTERN
        if has_pattern and isinstance(shape, Cone) and shape.rings * shape.width:
            rays, weights = _make_pattern_rays(shape)
        else:
            rays = [(x, y, z) for x, y, z in shape.make_rays().tolist()]
            weights = [1.0 / len(rays)] * len(rays)
        return [rotate(beam.unit_rotation, ray) for ray in rays], weights


def spans_space(axes: Sequence[Vector]) -> bool:
    """Return True if unit vectors span space."""
    xx, xy, xz, yy, yz, zz = (math.fsum(u[i] * u[j] for u in axes) for i in range(3) for j in range(i, 3))
    determinant = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    return determinant > MIN_DETERMINANT * (len(axes) / 3.0) ** 3


def _find_rotation(down: Vector) -> Quaternion:
    """Return the rotation that takes x to forward, y to left and -z to `down`."""
    length = math.hypot(*down)
    if not (len(down) == 3 and 0.0 < length < math.inf):
        raise SensorError("down", down, allowed="must be 3 finite numbers, not all 0")
    x, y, z = (component / length for component in down)
    roll = math.atan2(y, -z) if y or z else 0.0
    return multiply(from_rpy(roll, 0.0, 0.0), from_rpy(0.0, math.atan2(-x, math.hypot(y, z)), 0.0))


def _make_cone(width: float, rings: int) -> Cone:
    """Return a round beam about x; a single ray without width."""
    return Cone(width, rings if width else 0)


def make_janus_beams(
    angle: float, azimuths: Sequence[float], *, width: float = 0.0, rings: int = 1, down: Vector = (0.0, 0.0, -1.0)
) -> Beams:
    """Return cones at one angle from `down`, with azimuths counter-clockwise from x as seen along `down`.

    angle: Janus angle, rad.
    azimuths: rad, one per beam.
    width: full width of a beam, rad; 0 for a single ray.
    rings: rings of rays of a beam.
    down: direction in the sensor's frame, of any length.

    Raises `SensorError` for invalid values.

    >>> beams = ns.sensors.make_janus_beams(0.5236, np.radians([45, 135, 225, 315]), width=0.05)
    >>> len(beams.beams)
    4
    """
    if not 0.0 < angle < _QUARTER_TURN:
        allowed = "must be above 0 and below pi / 2 (90 degrees)"
        raise SensorError("angle of the beams (rad)", angle, allowed=allowed, field="angle")
    shape, rotation = _make_cone(width, rings), _find_rotation(down)
    beams = []
    for azimuth in azimuths:
        _check_finite("azimuth of a beam (rad)", azimuth)
        if abs(azimuth) > MAX_AZIMUTH:
            what, allowed, remedy = "azimuth of a beam (rad)", "must be from -4 pi to 4 pi", "give radians"
            raise SensorError(what, azimuth, allowed=allowed, remedy=remedy, field="azimuths")
        beams.append(Beam(shape, multiply(rotation, from_rpy(0.0, _QUARTER_TURN - angle, azimuth))))
    return Beams(tuple(beams))


def make_x_beams(angle: float, *, width: float = 0.0) -> Beams:
    """Return four cones in an X about -z, at `X_AZIMUTHS_DEG`.

    angle: Janus angle, rad.
    width: full width of a beam, rad; 0 for a single ray.

    Raises `SensorError` for invalid values.
    """
    return make_janus_beams(angle, [math.radians(azimuth) for azimuth in X_AZIMUTHS_DEG], width=width)


def make_dsros_beams(
    angle: float, azimuths: Sequence[float], *, pos_z_down: bool, width: float = 0.0, rings: int = 1
) -> Beams:
    """Return beams as `dsros_dvl` places them. With `pos_z_down` a beam points away from its azimuth.

    angle, azimuths, width, rings: see `make_janus_beams`.
    pos_z_down: True if the beams point along z of the sensor, False if they point along -z.

    Raises `SensorError` for invalid values.
    """
    if pos_z_down:
        return make_janus_beams(angle, [math.pi - a for a in azimuths], width=width, rings=rings, down=(0.0, 0.0, 1.0))
    return make_janus_beams(angle, azimuths, width=width, rings=rings)


def make_gazebo_rotation(rotation: float, tilt: float) -> Quaternion:
    """Return the rotation of a beam as Gazebo's `dvl` defines it.

    rotation: rad, about the vertical; a tilted beam with rotation 0 points aft.
    tilt: rad, from straight down.

    Raises `SensorError` for invalid values.
    """
    _check_finite("rotation of a beam (rad)", rotation)
    if not abs(tilt) < _QUARTER_TURN:
        raise SensorError("tilt of a beam (rad)", tilt, allowed="must be above -pi / 2 and below pi / 2 (90 degrees)")
    rotation_and_tilt = multiply(from_rpy(rotation, 0.0, 0.0), from_rpy(0.0, tilt, 0.0))
    return multiply(from_rpy(0.0, _QUARTER_TURN, 0.0), rotation_and_tilt)


def make_gazebo_beams(
    rotations: Sequence[float], tilts: Sequence[float], apertures: Sequence[float], *, rings: int | Sequence[int] = 1
) -> Beams:
    """Return beams as Gazebo's `dvl` places them, see `make_gazebo_rotation`.

    rotations, tilts: rad, one per beam.
    apertures: full width of each beam, rad.
    rings: rings of rays, for all beams or one number per beam.

    Raises `SensorError` for invalid values.
    """
    ring_counts = [rings] * len(apertures) if isinstance(rings, int) else rings
    cones = [_make_cone(aperture, count) for aperture, count in zip(apertures, ring_counts, strict=True)]
    orientations = [make_gazebo_rotation(rotation, tilt) for rotation, tilt in zip(rotations, tilts, strict=True)]
    return Beams(tuple(Beam(cone, orientation) for cone, orientation in zip(cones, orientations, strict=True)))

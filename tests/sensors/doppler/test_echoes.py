"""Bottom echoes of beams, compared to closed forms, numerical derivatives and SciPy's quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from navsense.core.pose import IDENTITY, Pose, from_rpy, multiply, rotate
from navsense.core.typing import AnyArray, Vector
from navsense.environment.base import Environment
from navsense.environment.terrain.primitives import Box, Plane, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.base import MotionBlock
from navsense.motion.derived import AttachedMotion
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import waypoints
from navsense.sensors import Cone, Fan
from navsense.sensors.doppler import Beam, Beams, BeamWeighting, make_janus_beams
from navsense.sensors.doppler.echoes import SOUND_SPEED, Echoes, compute_echo_timing, find_echoes, get_sound_speed

THIRTY = math.radians(30.0)
CROSS = tuple(math.radians(45.0 + 90.0 * k) for k in range(4))
PLUS = tuple(math.radians(90.0 * k) for k in range(4))
AT_0 = np.zeros(1)


@dataclass(frozen=True)
class SteadyMotion:
    """A frame of constant velocity (m/s, world) and angular velocity (rad/s, body): q(t) = q exp(omega t)."""

    pose: Pose = IDENTITY
    velocity: Vector = (0.0, 0.0, 0.0)
    omega: Vector = (0.0, 0.0, 0.0)

    @property
    def end(self) -> float:
        return math.inf

    def find_pose(self, t: float) -> Pose:
        rate = math.hypot(*self.omega)
        half = 0.5 * rate * t
        x, y, z = ((math.sin(half) * part / rate if rate else 0.0) for part in self.omega)
        a, b, c = (p + v * t for p, v in zip(self.pose.position, self.velocity, strict=True))
        return Pose((a, b, c), multiply(self.pose.rotation, (math.cos(half), x, y, z)))

    def at(self, time: AnyArray) -> MotionBlock:
        poses, rows = [self.find_pose(t) for t in time.tolist()], np.ones((time.shape[0], 1))
        position, rotation = np.array([p.position for p in poses]), np.array([p.rotation for p in poses])
        return MotionBlock(
            position, rotation, rows * self.velocity, rows * self.omega, rows * np.zeros(3), rows * np.zeros(3)
        )


def make_ground(slope: float = 0.0, height: float = 0.0) -> Environment:
    """Return a bottom with a slope towards x and the height `height` (m) at x = 0."""
    pose = Pose((0.0, 0.0, height), from_rpy(0.0, -math.atan(slope), 0.0))
    return Environment(scene=Scene((Body("bed", Plane(), pose),)))


def find_beam_echoes(
    beams: Beams, motion: Any, surroundings: Environment, time: AnyArray = AT_0, *, reach: float = 500.0
) -> Echoes:
    return find_echoes(beams, motion, surroundings, time, reach, False)


def rotate_axes(beams: Beams, pose: Pose) -> AnyArray:
    return np.array([rotate(pose.rotation, beam.axis) for beam in beams.beams])


@pytest.mark.requirement("DVW-2", "DVW-3", "GAP-6")
@pytest.mark.parametrize("slope", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.0), (0.1, -0.2, 2.0)])
@pytest.mark.parametrize("angle", [20.0, 30.0])
def test_ranges_over_a_flat_bottom_and_slopes(slope: float, attitude: Vector, angle: float) -> None:
    """A ray u from height h hits a plane of normal n at the distance (n . x) / -(n . u)."""
    beams = make_janus_beams(math.radians(angle), CROSS)
    motion = SteadyMotion(Pose((3.0, -2.0, 40.0), from_rpy(*attitude)), (1.5, -0.7, 0.2))
    found, axes = find_beam_echoes(beams, motion, make_ground(slope)), rotate_axes(beams, motion.pose)
    normal = np.array([-slope, 0.0, 1.0]) / math.hypot(slope, 1.0)
    cosine = -axes @ normal
    assert found.beam_range[0] == pytest.approx(normal @ motion.pose.position / cosine, rel=1e-13, abs=0.0)
    assert found.incidence_cosine[0] == pytest.approx(cosine, rel=1e-13, abs=0.0)
    assert found.beam_velocity[0] == pytest.approx(axes @ motion.velocity, rel=1e-13, abs=0.0)


@pytest.mark.requirement("DVU-2", "GAP-4")
@pytest.mark.parametrize("slope", [0.0, 0.1, 0.5, 1.0])
def test_range_is_to_the_nearest_point_of_the_footprint(slope: float) -> None:
    """The nearest point is at h / cos(angle - width / 2), if a ray has exactly this direction."""
    width, height = math.radians(4.0), 25.0
    beams = replace(make_janus_beams(THIRTY, PLUS, width=width, rings=2), weighting=BeamWeighting.NEAREST)
    found = find_beam_echoes(beams, SteadyMotion(Pose((0.0, 0.0, height)), (2.0, 0.5, 0.0)), make_ground(slope))
    normal = np.array([-slope, 0.0, 1.0]) / math.hypot(slope, 1.0)
    angles = np.arccos(-np.array([beam.axis for beam in beams.beams]) @ normal)
    level = height * normal[2]
    for k, angle in enumerate(angles.tolist()):
        true = level / math.cos(angle - 0.5 * width)
        if slope == 0.0 or k % 2 == 0:  # the other two are across the slope, between rays
            assert found.beam_range[0, k] == pytest.approx(true, rel=1e-12, abs=0.0)
            assert found.incidence_cosine[0, k] == pytest.approx(math.cos(angle - 0.5 * width), rel=1e-12, abs=0.0)
        else:
            step = math.cos(math.pi / 12.0)  # half of the spacing of the outer twelve
            least = math.cos(angle) * math.cos(0.5 * width) + math.sin(angle) * math.sin(0.5 * width) * step
            rounding = 1.0 + 32.0 * np.finfo(float).eps  # about thirty operations without amplification
            assert true / rounding <= found.beam_range[0, k] <= level / least * rounding
    axes = np.array([beam.axis for beam in beams.beams])
    assert found.beam_velocity[0] == pytest.approx(
        axes @ (2.0, 0.5, 0.0), rel=1e-13, abs=0.0
    )  # along axes, at any width


def make_square_beams(angle: float, half: float, samples: int) -> Beams:
    """Return beams of `samples` squared rays each, over +-`half` (rad), as in the UUV Simulator."""
    fan = Fan(samples, -half, half, samples, -half, half)
    return Beams(tuple(Beam(fan, beam.rotation) for beam in make_janus_beams(angle, PLUS).beams))


SHAPES = {
    "3 x 3": make_square_beams(0.52, 0.03, 3),
    "4 x 4": make_square_beams(0.52, 0.03, 4),
    "round": make_janus_beams(THIRTY, CROSS, width=math.radians(4.0), rings=2),
    "wide": make_janus_beams(math.radians(22.5), CROSS, width=math.radians(12.0), rings=3),
    "pattern": replace(
        make_janus_beams(THIRTY, CROSS, width=math.radians(4.0)), weighting=BeamWeighting.PATTERN, absorption=0.3
    ),
}


@pytest.mark.requirement("DVU-2", "GAP-5")
@pytest.mark.parametrize("slope", [0.0, 0.2])
@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.0), (0.2, -0.35, 2.0)])
@pytest.mark.parametrize("shape", SHAPES)
def test_beam_of_several_rays_measures_the_range_along_its_axis(shape: str, attitude: Vector, slope: float) -> None:
    """Over a plane the range is exact at any attitude; so are incidence and velocity, except with a pattern."""
    beams = SHAPES[shape]
    motion = SteadyMotion(Pose((3.0, -2.0, 25.0), from_rpy(*attitude)), (1.5, -0.7, 0.2))
    found, axes = find_beam_echoes(beams, motion, make_ground(slope)), rotate_axes(beams, motion.pose)
    normal = np.array([-slope, 0.0, 1.0]) / math.hypot(slope, 1.0)
    cosine = -axes @ normal
    assert found.beam_range[0] == pytest.approx(normal @ motion.pose.position / cosine, rel=1e-12, abs=0.0)
    if beams.weighting is BeamWeighting.PLANE:
        assert found.incidence_cosine[0] == pytest.approx(cosine, rel=1e-12, abs=0.0)
        assert found.beam_velocity[0] == pytest.approx(axes @ motion.velocity, rel=1e-12, abs=0.0)


@pytest.mark.requirement("GAP-5")
@pytest.mark.parametrize("shape", SHAPES)
def test_maximum_range_does_not_truncate_a_footprint(shape: str) -> None:
    """A bottom 1 mm within the maximum range is measured exactly, although half of the rays end beyond it."""
    beams = SHAPES[shape]
    level = SteadyMotion(Pose((0.0, 0.0, 25.0)))
    slant = 25.0 / -beams.axes[0, 2]
    assert find_beam_echoes(beams, level, make_ground(), reach=slant + 1e-3).beam_range[0] == pytest.approx(
        [slant] * 4, rel=1e-12, abs=0.0
    )
    beyond = find_beam_echoes(beams, level, make_ground(), reach=slant - 1e-3)
    assert np.isinf(beyond.beam_range).all()
    assert np.isnan(beyond.finite_range).all()
    assert np.isnan(beyond.beam_velocity).all()
    assert np.isnan(find_beam_echoes(beams, level, Environment()).beam_range).all()


@pytest.mark.requirement("GAP-5")
@pytest.mark.parametrize("weighting", list(BeamWeighting))
def test_beam_that_touches_the_bottom_has_zero_range(weighting: BeamWeighting) -> None:
    beams = replace(make_janus_beams(THIRTY, CROSS, width=0.05), weighting=weighting)
    assert find_beam_echoes(beams, SteadyMotion(), make_ground()).beam_range[0].tolist() == [0.0] * 4


@pytest.mark.requirement("DVW-2")
def test_ranges_to_a_sphere() -> None:
    """|o + r u - m| = R gives r = b - sqrt(b^2 - c), b = u . (m - o), c = |m - o|^2 - R^2."""
    middle, radius = np.array([0.3, -0.4, -20.0]), 15.0
    scene = Environment(scene=Scene((Body("ball", Sphere(radius), Pose((0.3, -0.4, -20.0))),)))
    beams = make_janus_beams(THIRTY, CROSS)
    pose = Pose((0.0, 0.5, 1.0), from_rpy(0.05, 0.1, 0.7))
    found, axes = find_beam_echoes(beams, SteadyMotion(pose, (0.0, 0.0, -1.0)), scene), rotate_axes(beams, pose)
    towards = middle - pose.position
    b, c = axes @ towards, towards @ towards - radius**2
    ranges = b - np.sqrt(b * b - c)
    normals = (ranges[:, None] * axes - towards) / radius
    assert found.beam_range[0] == pytest.approx(ranges, rel=1e-12, abs=0.0)
    assert found.incidence_cosine[0] == pytest.approx(-(normals * axes).sum(axis=1), rel=1e-12, abs=0.0)
    assert found.beam_velocity[0] == pytest.approx(-axes[:, 2], rel=1e-12, abs=0.0)


def compute_range_rates(beams: Beams, motion: SteadyMotion, plate: SteadyMotion, ranges: AnyArray) -> list[float]:
    """Return the speed (m/s) of each transducer towards its hit point on the plate: a time derivative."""

    def compute_hit_point(k: int) -> Callable[[float], float]:
        beam, pose, other = beams.beams[k], motion.find_pose(0.0), plate.find_pose(0.0)
        off = rotate(pose.rotation, beam.position)
        hit = np.array(pose.position) + off + ranges[k] * np.array(rotate(pose.rotation, beam.axis))
        w, x, y, z = other.rotation
        local = rotate((w, -x, -y, -z), tuple((hit - other.position).tolist()))  # type: ignore[arg-type]

        def distance(t: float) -> float:
            here, there = motion.find_pose(t), plate.find_pose(t)
            own = np.array(here.position) + rotate(here.rotation, beam.position)
            return math.dist(own, np.array(there.position) + rotate(there.rotation, local))

        return distance

    h, found = 1e-3, []
    for k in range(len(beams.beams)):
        f = compute_hit_point(k)
        found.append(-(8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h))
    return found


APART = replace(
    make_janus_beams(THIRTY, CROSS),
    beams=tuple(
        replace(beam, position=(0.2 * k - 0.1, 0.3 - 0.15 * k, 0.05 * k))
        for k, beam in enumerate(make_janus_beams(THIRTY, CROSS).beams)
    ),
)


@pytest.mark.requirement("DVW-3", "GAP-4")
@pytest.mark.parametrize(
    ("motion", "plate"),
    [
        (SteadyMotion(Pose((0.0, 0.0, 9.0))), SteadyMotion(velocity=(0.4, -0.3, 0.1))),
        (SteadyMotion(Pose((0.0, 0.0, 9.0))), SteadyMotion(Pose((1.0, 2.0, 0.0)), omega=(0.1, -0.2, 0.3))),
        (SteadyMotion(Pose((0.0, 0.0, 9.0)), omega=(0.0, 0.0, 0.8)), SteadyMotion()),
        (
            SteadyMotion(Pose((0.5, 0.0, 9.0), from_rpy(0.1, 0.2, 0.3)), (1.0, 0.5, -0.2), (0.3, -0.1, 0.5)),
            SteadyMotion(Pose((1.0, 2.0, 0.0), from_rpy(-0.2, 0.1, 1.0)), (-0.3, 0.2, 0.1), (0.1, 0.2, -0.4)),
        ),
    ],
    ids=["moving plate", "turning plate", "yawing sensor", "all"],
)
def test_beam_velocity_is_the_rate_of_the_range(motion: SteadyMotion, plate: SteadyMotion) -> None:
    scene = Environment(scene=Scene((Body("plate", Box((60.0, 60.0, 0.5)), IDENTITY, plate),)))
    found = find_beam_echoes(APART, motion, scene)
    assert found.beam_velocity[0] == pytest.approx(
        compute_range_rates(APART, motion, plate, found.beam_range[0]), abs=1e-9
    )
    assert np.abs(found.beam_velocity).max() > 0.04
    thin = replace(APART, weighting=BeamWeighting.PATTERN)  # of one ray, which is the axis
    for thin_array, other in zip(find_beam_echoes(thin, motion, scene), found, strict=True):
        assert thin_array == pytest.approx(other, rel=1e-12, abs=0.0)


@pytest.mark.requirement("DVW-3", "GAP-9")
def test_beam_velocity_of_an_offset_sensor_on_a_yawing_vehicle() -> None:
    """At (x, y) from an axis with turn rate w, the sensor moves at w (-y, x)."""
    beams = make_janus_beams(THIRTY, PLUS)
    carried = AttachedMotion(SteadyMotion(Pose((0.0, 0.0, 20.0)), omega=(0.0, 0.0, 0.5)), Pose((1.5, 0.4, 0.0)))
    found = find_beam_echoes(beams, carried, make_ground())
    sine = math.sin(THIRTY)
    assert found.beam_velocity[0] == pytest.approx(0.5 * sine * np.array([-0.4, 1.5, 0.4, -1.5]), abs=1e-14)


@pytest.mark.requirement("GAP-9")
def test_beams_end_at_the_water_surface() -> None:
    """A sensor in the air has no echo, and neither has a beam that crosses the surface to a quay wall."""
    up = make_janus_beams(THIRTY, PLUS, down=(0.0, 0.0, 1.0))
    roof = Body("roof", Plane(), Pose((0.0, 0.0, 5.0)))
    dry = Environment(scene=Scene((roof, Body("bed", Plane(), Pose((0.0, 0.0, -30.0))))))
    sea = replace(dry, water=Water(surface=2.0))
    low, high = Stationary(Pose((0.0, 0.0, -3.0))), Stationary(Pose((0.0, 0.0, 2.5)))
    for weighting in BeamWeighting:
        find = partial(find_beam_echoes, replace(up, weighting=weighting))
        assert find(low, dry).beam_range[0] == pytest.approx([8.0 / math.cos(THIRTY)] * 4, rel=1e-12, abs=0.0)
        assert all(np.isnan(part).all() for part in find(low, sea))
        assert find(low, replace(sea, water=Water(surface=5.5))).beam_range[0] == pytest.approx(
            [8.0 / math.cos(THIRTY)] * 4, rel=1e-12, abs=0.0
        )
        down = partial(find_beam_echoes, replace(make_janus_beams(THIRTY, PLUS), weighting=weighting))
        assert all(np.isnan(part).all() for part in down(high, sea))
        assert down(low, sea).beam_range[0] == pytest.approx([27.0 / math.cos(THIRTY)] * 4, rel=1e-12, abs=0.0)
        assert down(high, dry).beam_range[0] == pytest.approx([32.5 / math.cos(THIRTY)] * 4, rel=1e-12, abs=0.0)
        beyond = down(low, sea, reach=31.0)
        assert np.isinf(beyond.beam_range).all()
        assert all(
            np.isnan(part).all() for part in (beyond.finite_range, beyond.incidence_cosine, beyond.beam_velocity)
        )


@pytest.mark.requirement("GAP-9")
def test_own_hull_is_ignored_by_default() -> None:
    beams, still = make_janus_beams(THIRTY, PLUS), Stationary(Pose((0.0, 0.0, 10.0)))
    bed, hull = Body("bed", Plane()), Body("robot::hull::skin", Sphere(1.0), Pose((0.0, 0.0, 10.0)))
    own = Environment(scene=Scene((bed, hull)), hull="robot")
    far = 10.0 / math.cos(THIRTY)
    assert find_echoes(beams, still, own, AT_0, 100.0, False).beam_range[0] == pytest.approx(
        [far] * 4, rel=1e-12, abs=0.0
    )
    assert find_echoes(beams, still, own, AT_0, 100.0, True).beam_range[0] == pytest.approx(
        [1.0] * 4, rel=1e-12, abs=0.0
    )
    assert find_echoes(beams, still, replace(own, hull="other"), AT_0, 100.0, False).beam_range[0] == pytest.approx(
        [1.0] * 4, rel=1e-12, abs=0.0
    )
    sound = np.full(1, 1500.0)
    assert compute_echo_timing(beams, still, own, AT_0, 100.0, sound, False).travel_time[0] == pytest.approx(
        2.0 * far / 1500.0, rel=1e-12, abs=0.0
    )
    assert compute_echo_timing(beams, still, own, AT_0, 100.0, sound, True).travel_time[0] == pytest.approx(
        2.0 / 1500.0, rel=1e-12, abs=0.0
    )


# beam pattern: terrain bias and absorption bias

CASES = {
    (30.0, 1.9, 0.15, 50.0): (-0.0643, -0.0248),
    (30.0, 3.0, 0.07, 100.0): (-0.1536, -0.0618),
    (22.5, 4.4, 0.4, 20.0): (-0.344, -0.1328),
    (30.0, 4.0, 0.15, 50.0): (-0.2843, -0.1098),
}
"""Angle and half-power width (deg), absorption (dB/m), height (m) -> bias (%), with absorption and by terrain only.

The pattern has a width in the vertical plane of the beam only.
"""


def compute_pattern_variance(width: float) -> float:
    """Return the variance (rad^2) of the two-way pattern with a half-power width (rad)."""
    return (width / (2.0 * math.sqrt(2.0 * math.log(2.0)))) ** 2 / 2.0


def compute_bias_in_closed_form(angle: float, width: float, absorption: float, height: float, planes: int) -> float:
    """Return the relative bias of the horizontal velocity, to first order in the variance s2 of the pattern.

    cot a s2 d(ln W)/da - planes s2 / 2, W = cos^2 a 10^(-2 alpha h / (10 cos a)); `planes` is 1 or 2 (round pattern).
    """
    s2, loss, t = compute_pattern_variance(width), absorption * math.log(10.0) / 10.0, math.tan(angle)
    tilt = -2.0 * t - 2.0 * loss * height * math.sin(angle) / math.cos(angle) ** 2
    return s2 * tilt / t - planes * s2 / 2.0


def make_ray(angle: float, off: float, around: float) -> tuple[float, float]:
    """Return the forward and down components of a ray at `off` from the axis of a beam at `angle` from the vertical."""
    side = math.sin(off) * math.cos(around)
    return (
        math.cos(off) * math.sin(angle) + side * math.cos(angle),
        math.cos(off) * math.cos(angle) - side * math.sin(angle),
    )


def integrate_bias(angle: float, width: float, absorption: float, height: float) -> tuple[float, float]:
    """Return means over the pattern by quadrature: sin(angle') / sin(angle) - 1 in one plane and for a round beam."""
    s2, loss = compute_pattern_variance(width), absorption * math.log(10.0) / 10.0
    most = 7.0 * math.sqrt(s2)

    def weight(off: float, around: float) -> float:
        down = make_ray(angle, off, around)[1]
        return math.exp(-off * off / (2.0 * s2) - 2.0 * loss * (height / down - height)) * down * down

    def reads(off: float, around: float) -> float:
        return make_ray(angle, off, around)[0] / math.sin(angle) - 1.0

    def mean(f: Callable[[float, float], float]) -> float:
        parts = (lambda d, a: d * weight(d, a) * f(d, a)), (lambda d, a: d * weight(d, a))
        above, below = (dblquad(part, 0.0, math.pi, 0.0, most, epsabs=0.0, epsrel=1e-10)[0] for part in parts)
        return float(above / below)

    lines = (lambda d: weight(d, 0.0) * reads(d, 0.0)), (lambda d: weight(d, 0.0))
    above, below = (quad(line, -most, most, epsabs=0.0, epsrel=1e-10, limit=200)[0] for line in lines)
    return above / below, mean(reads)


def compute_bias(angle: float, width: float, absorption: float, height: float, rings: int) -> tuple[float, float]:
    """Return the relative bias of a level Janus, from its beams ahead and aft, and the range (m) of one."""
    beams = replace(
        make_janus_beams(angle, PLUS, width=width, rings=rings), weighting=BeamWeighting.PATTERN, absorption=absorption
    )
    found = find_beam_echoes(beams, SteadyMotion(Pose((0.0, 0.0, height)), (1.7, 0.0, 0.0)), make_ground())
    assert found.beam_velocity[0, [1, 3]] == pytest.approx([0.0, 0.0], abs=1e-13)
    ahead, aft = found.beam_velocity[0, [0, 2]]
    return float(ahead - aft) / (2.0 * math.sin(angle) * 1.7) - 1.0, float(found.beam_range[0, 0])


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize("case", CASES)
def test_terrain_and_absorption_bias(case: tuple[float, float, float, float]) -> None:
    """One ring equals the integral to first order in the variance, as the closed form does. More rings are exact.

    The range is that of the axis, without bias.
    """
    angle, width, absorption, height = math.radians(case[0]), math.radians(case[1]), *case[2:]
    for loss, stated in zip((absorption, 0.0), CASES[case], strict=True):
        plane, true = integrate_bias(angle, width, loss, height)
        last = 1e-3 if stated == -0.344 else 1e-4  # the last published digit
        assert 100.0 * plane == pytest.approx(stated, abs=0.6 * last)
        assert plane == pytest.approx(compute_bias_in_closed_form(angle, width, loss, height, 1), rel=5e-3, abs=0.0)
        assert true == pytest.approx(compute_bias_in_closed_form(angle, width, loss, height, 2), rel=5e-3, abs=0.0)
        errors = []
        for rings in (1, 2, 3):
            low, slant = compute_bias(angle, width, loss, height, rings)
            errors.append(abs(low / true - 1.0))
            assert slant == pytest.approx(height / math.cos(angle), rel=1e-12, abs=0.0)
        assert errors[0] < 5e-3
        assert errors[1] < 1e-4
        assert errors[2] < 1e-6


@pytest.mark.requirement("GAP-2")
def test_pattern_does_not_depend_on_range() -> None:
    """With 10 dB/m over 400 m, powers underflow a double, but the shares of the rays are unchanged."""
    beams = replace(
        make_janus_beams(THIRTY, PLUS, width=0.02, rings=2), weighting=BeamWeighting.PATTERN, absorption=10.0
    )
    found = find_beam_echoes(beams, SteadyMotion(Pose((0.0, 0.0, 400.0)), (1.0, 0.0, 0.0)), make_ground())
    assert found.beam_range[0, 0] == pytest.approx(400.0 / math.cos(THIRTY), rel=1e-12, abs=0.0)
    assert 0.3 < found.beam_velocity[0, 0] < 0.5


@pytest.mark.requirement("GAP-4")
def test_footprint_over_an_edge() -> None:
    """Rays past a ledge have no hit: the echo consists of the others, if there are any."""
    ledge = Environment(scene=Scene((Body("ledge", Box((20.0, 40.0, 1.0)), Pose((-10.0, 0.0, -0.5))),)))
    foot = 10.0 * math.tan(THIRTY)
    beams = replace(make_janus_beams(THIRTY, PLUS, width=0.1, rings=2), weighting=BeamWeighting.PATTERN)
    complete = find_beam_echoes(beams, Stationary(Pose((-foot - 8.0, 0.0, 10.0))), ledge).beam_range[0, 0]
    half = find_beam_echoes(beams, Stationary(Pose((-foot, 0.0, 10.0))), ledge).beam_range[0, 0]
    none = find_beam_echoes(beams, Stationary(Pose((-foot + 8.0, 0.0, 10.0))), ledge)
    assert half < complete - 0.1  # the farther half of the footprint is missing
    assert all(math.isnan(part[0, 0]) for part in none)
    assert not np.isnan(none.beam_range[0, 2])


@pytest.mark.requirement("GAP-4")
def test_beams_of_different_widths_are_independent() -> None:
    """Each beam has its own rays; a beam with fewer rays has the same echo as among equal beams."""
    janus_beams = make_janus_beams(THIRTY, PLUS).beams
    mixed = tuple(Beam(Cone(0.05 * k, k), beam.rotation) for k, beam in enumerate(janus_beams))
    still, bed = SteadyMotion(Pose((0.0, 0.0, 30.0), from_rpy(0.1, 0.05, 0.0)), (1.0, 2.0, 0.3)), make_ground(0.3)
    for weighting in BeamWeighting:
        found = find_beam_echoes(Beams(mixed, weighting), still, bed)
        for k, own in enumerate(mixed):
            alike = tuple(Beam(own.shape, beam.rotation) for beam in janus_beams)
            alone = find_beam_echoes(Beams(alike, weighting), still, bed)
            for actual, expected in zip(found, alone, strict=True):
                assert actual[0, k] == pytest.approx(expected[0, k], rel=1e-14, abs=0.0)


# time


@pytest.mark.requirement("GAP-9")
def test_time_of_validity_of_an_echo() -> None:
    """t - (2 max(r) - mean(r)) / c over the beams with an echo: the ping waits for the farthest echo."""
    shelf = Body("shelf", Box((60.0, 60.0, 1.0)), Pose((-30.0, 0.0, -0.5)))
    deep = Body("bed", Plane(), Pose((0.0, 0.0, -30.0)))
    beams = make_janus_beams(THIRTY, PLUS, width=0.1)
    over, time = Stationary(Pose((0.0, 0.0, 10.0))), np.array([0.005, 1.0, 2.0])
    sound = np.array([1500.0, 1400.0, 1550.0])
    slant = np.array([40.0, 40.0, 10.0, 40.0]) / math.cos(THIRTY)
    slant[[1, 3]] = 10.0 / math.cos(THIRTY)  # the edge of the shelf is hit
    found = compute_echo_timing(beams, over, Environment(scene=Scene((shelf, deep))), time, 100.0, sound, False)
    assert found.travel_time == pytest.approx(2.0 * slant[0] / sound, rel=1e-13, abs=0.0)
    assert found.time_of_validity[0] == 0.0
    assert found.time_of_validity[1:] == pytest.approx(
        time[1:] - (2.0 * slant[0] - slant.mean()) / sound[1:], rel=1e-13, abs=0.0
    )
    alone = compute_echo_timing(beams, over, Environment(scene=Scene((shelf,))), time, 100.0, sound, False)
    assert alone.time_of_validity[1:] == pytest.approx(time[1:] - slant[1] / sound[1:], rel=1e-13, abs=0.0)
    assert alone.travel_time == pytest.approx(2.0 * slant[1] / sound, rel=1e-13, abs=0.0)
    nothing = compute_echo_timing(beams, over, Environment(), time, 100.0, sound, False)
    assert nothing.time_of_validity[1:] == pytest.approx(time[1:] - 100.0 / sound[1:], rel=1e-13, abs=0.0)
    assert nothing.travel_time == pytest.approx(200.0 / sound, rel=1e-13, abs=0.0)
    air = replace(Environment(scene=Scene((shelf, deep))), water=Water(surface=9.0))
    assert compute_echo_timing(beams, over, air, time, 100.0, sound, False).travel_time == pytest.approx(
        200.0 / sound, rel=1e-13, abs=0.0
    )


@pytest.mark.requirement("GAP-9")
def test_echoes_use_the_true_speed_of_sound() -> None:
    water = Water(surface=1.0, depths=(0.0, 100.0), temperatures=(290.0, 280.0), salinities=(35.0, 34.0))
    time = np.arange(3.0)
    block = SteadyMotion(Pose((0.0, 0.0, 2.0)), (0.0, 0.0, -20.0)).at(time)
    found = get_sound_speed(Environment(water=water), block)
    assert found == pytest.approx(water.sound_speed_at(np.array([0.0, 19.0, 39.0])), rel=1e-15, abs=0.0)
    assert found[0] > found[1] > found[2]
    assert get_sound_speed(Environment(), block).tolist() == [SOUND_SPEED] * 3


@pytest.mark.requirement("DVW-3")
@pytest.mark.parametrize("weighting", list(BeamWeighting))
def test_pings_do_not_depend_on_block_size(weighting: BeamWeighting, monkeypatch: pytest.MonkeyPatch) -> None:
    path = [Pose((0.0, 0.0, 20.0)), Pose((3.0, 1.0, 22.0), from_rpy(0.1, 0.2, 0.5)), Pose((9.0, 0.0, 20.0))]
    motion = waypoints((0.0, 2.0, 4.0), path)
    plate = Body("plate", Box((50.0, 50.0, 1.0)), IDENTITY, SteadyMotion(omega=(0.01, 0.02, 0.1)))
    scene = Environment(scene=Scene((plate, Body("bed", Plane(), Pose((0.0, 0.0, -5.0))))))
    beams = replace(make_janus_beams(THIRTY, CROSS, width=0.08), weighting=weighting, absorption=0.1)
    time = np.linspace(0.0, 4.0, 13)[::-1].copy()  # in any order

    def find_ranges(instants: AnyArray) -> list[AnyArray]:
        echoes = find_beam_echoes(beams, motion, scene, instants)
        return [
            *echoes,
            *compute_echo_timing(beams, motion, scene, instants, 500.0, np.full(instants.shape, 1500.0), False),
        ]

    complete = find_ranges(time)
    monkeypatch.setattr("navsense.sensors.doppler.echoes._BATCH_SIZE", 60)
    parts, alone = find_ranges(time), [find_ranges(time[k : k + 1]) for k in range(13)]
    for column, expected in enumerate(complete):
        assert np.isfinite(expected).all()
        assert np.array_equal(parts[column], expected)
        assert np.array_equal(np.concatenate([part[column] for part in alone]), expected)

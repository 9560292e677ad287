"""Beams: axes equal those of the plug-ins, rays and weights equal quadrature, and invalid beams are errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.transform import Rotation

from navsense.core.errors import SensorError
from navsense.core.pose import from_rpy
from navsense.sensors.doppler import Beam, Beams, BeamWeighting, make_dsros_beams, make_gazebo_beams, make_janus_beams
from navsense.sensors.range import Cone, Fan

THIRTY = math.radians(30.0)
CROSSED = [math.radians(a) for a in (-135.0, 135.0, 45.0, -45.0)]
PLUS = [0.0, math.pi, -math.pi / 2, math.pi / 2]


@pytest.mark.requirement("DVW-2")
def test_dsros_dvl_beam_axes() -> None:
    """The axes are those of the vendors' files for 30 degrees and azimuths -135, 135, 45, -45, to three decimals."""
    down = np.array([(0.354, 0.354, 0.866), (0.354, -0.354, 0.866), (-0.354, -0.354, 0.866), (-0.354, 0.354, 0.866)])
    assert make_dsros_beams(THIRTY, CROSSED, pos_z_down=True).axes == pytest.approx(down, abs=5e-4)
    up = down * [-1.0, -1.0, -1.0]
    assert make_dsros_beams(THIRTY, CROSSED, pos_z_down=False).axes == pytest.approx(up, abs=5e-4)


@pytest.mark.requirement("DVW-2", "GAP-6")
@pytest.mark.parametrize("angle", [0.01, 0.3, THIRTY, 1.5])
@pytest.mark.parametrize("azimuth", [-3.0, -1.0, 0.0, 0.5, 2.0, 8.0])
def test_dsros_dvl_rotates_z_by_euler_angles(angle: float, azimuth: float) -> None:
    """The plug-in poses a beam by roll 0, pitch (0 or pi) - angle, yaw azimuth; the beam is along z."""
    azimuths = [azimuth, azimuth + 2.0, azimuth + 4.0]
    for down, start in ((True, 0.0), (False, math.pi)):
        expected = [Rotation.from_euler("xyz", (0.0, start - angle, a)).apply((0.0, 0.0, 1.0)) for a in azimuths]
        found = make_dsros_beams(angle, azimuths, pos_z_down=down)
        assert found.axes == pytest.approx(np.array(expected), abs=1e-15)


@pytest.mark.requirement("DVW-2", "GAP-6")
def test_gazebo_beam_axes() -> None:
    """The axis is x of the beam frame, rotated by tilt, rotation, and down: Ry(90 deg) Rx(rotation) Ry(tilt) x."""
    rotations, tilts = [0.0, 1.0, -2.0, 3.0, 0.4], [THIRTY, 0.4, -0.7, 1.5, 0.0]
    found = make_gazebo_beams(rotations, tilts, [0.02, 0.04, 0.0, 0.1, 0.1], rings=2)
    for axis, rotation, tilt in zip(found.axes, rotations, tilts, strict=True):
        turn = (
            Rotation.from_euler("y", math.pi / 2) * Rotation.from_euler("x", rotation) * Rotation.from_euler("y", tilt)
        )
        assert axis == pytest.approx(turn.apply((1.0, 0.0, 0.0)), abs=1e-15)
    assert found.axes[0] == pytest.approx((-0.5, 0.0, -math.sqrt(0.75)), abs=1e-15)  # rotation 0 points aft
    assert found.rays.shape == (5, 19, 3)
    assert np.all(found.rays[2] == found.axes[2])  # no aperture: one ray, repeated
    off = np.arccos(np.clip(np.sum(found.rays[3] * found.axes[3], axis=1), -1.0, 1.0))
    assert off.max() == pytest.approx(0.05, abs=1e-8)


@pytest.mark.requirement("DVW-2", "GAP-6")
@pytest.mark.parametrize("down", [(0, 0, -1), (0, 0, 2), (0, 1, 0), (0.3, -0.2, 0.9), (1, 0, 0), (-5, 0, 0)])
def test_azimuths_are_counter_clockwise_looking_along_the_down_axis(down: tuple[float, float, float]) -> None:
    d = np.array(down) / np.linalg.norm(down)
    ahead = np.array([0.0, 0.0, d[0]] if abs(d[0]) == 1.0 else [1.0, 0.0, 0.0])
    forward = ahead - d * (ahead @ d)
    forward /= np.linalg.norm(forward)
    beams = make_janus_beams(0.4, [0.0, math.pi / 2, 2.3], down=down)
    for axis, azimuth in zip(beams.axes, (0.0, math.pi / 2, 2.3), strict=True):
        level = math.cos(azimuth) * forward + math.sin(azimuth) * np.cross(-d, forward)
        assert axis == pytest.approx(math.cos(0.4) * d + math.sin(0.4) * level, abs=2e-15)


@pytest.mark.requirement("DVU-1", "DVU-2")
def test_beams_of_separate_links() -> None:
    """The UUV Simulator has a fan of rays about x of each link, with a pose by roll, pitch, yaw."""
    poses = [
        ((0.1, 0.0, 0.2), (0.0, -0.52, 0.0)),
        ((0.0, 0.1, 0.2), (0.0, 0.0, 0.52)),
        ((0.0, 0.0, 0.0), (0.4, 0.52, 0.0)),
    ]
    fan = Fan(3, -0.03, 0.03, 3, -0.03, 0.03)
    beams = Beams(tuple(Beam(fan, from_rpy(*rpy), place) for place, rpy in poses))
    assert np.array_equal(beams.positions, [place for place, _ in poses])
    for axis, rays, (_, rpy) in zip(beams.axes, beams.rays, poses, strict=True):
        turn = Rotation.from_euler("xyz", rpy)
        assert axis == pytest.approx(turn.apply((1.0, 0.0, 0.0)), abs=1e-15)
        assert rays == pytest.approx(turn.apply(fan.make_rays()), abs=1e-15)
    assert beams.weights == pytest.approx(np.full((3, 9), 1.0 / 9.0), rel=1e-15, abs=0.0)


def test_cone_about_another_axis() -> None:
    beams = Beams(tuple(Beam(Cone(0.1, 2, (0.0, 0.3, -2.0)), from_rpy(0.5 * k, 0.1, k)) for k in range(4)))
    for k, (axis, rays) in enumerate(zip(beams.axes, beams.rays, strict=True)):
        turn = Rotation.from_euler("xyz", (0.5 * k, 0.1, k))
        assert axis == pytest.approx(turn.apply((0.0, 0.3, -2.0)) / math.hypot(0.3, 2.0), abs=1e-15)
        assert rays[0] == pytest.approx(axis, abs=1e-15)


@pytest.mark.requirement("DVU-2", "DVW-2")
def test_beams_of_different_shapes() -> None:
    """A beam with fewer rays repeats its first ray, which changes neither the nearest return nor the mean."""
    shapes = (Cone(0.1, 2), Cone(0.1, 1), Cone(0.0, 0))
    beams = Beams(tuple(Beam(shape, from_rpy(0.0, 1.0, 2.0 * k)) for k, shape in enumerate(shapes)))
    assert beams.rays.shape == (3, 19, 3)
    assert [int(np.sum(w > 0.0)) for w in beams.weights] == [19, 7, 1]
    assert beams.weights.sum(axis=1) == pytest.approx(1.0, rel=1e-15, abs=0.0)
    assert len({tuple(ray) for ray in beams.rays[1].tolist()}) == 7
    assert np.all(beams.rays[1, 7:] == beams.rays[1, 0])
    assert np.linalg.norm(beams.rays, axis=2) == pytest.approx(np.ones((3, 19)), abs=1e-15)


def compute_offsets(beams: Beams) -> tuple[np.ndarray, np.ndarray]:
    """Return the angles (m, 2) of the first beam's rays from its axis, radial and tangential, and its weights."""
    turn = Rotation.from_quat(np.roll(beams.beams[0].rotation, -1))
    own = turn.inv().apply(beams.rays[0])
    off = np.arccos(np.clip(own[:, 0], -1.0, 1.0))
    around = np.arctan2(own[:, 2], own[:, 1])
    return np.stack([off * np.cos(around), off * np.sin(around)], axis=1), beams.weights[0]


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize("rings", [1, 2, 3, 5])
@pytest.mark.parametrize("width", [0.03, 0.08])
def test_beam_pattern_is_the_two_way_gaussian(width: float, rings: int) -> None:
    """The one-way power is half at half the width. Means of polynomials equal the pattern by quadrature."""
    one_way = math.log(2.0) * 4.0 / width**2  # exp(-one_way d^2) is a half at width / 2
    assert math.exp(-one_way * (width / 2.0) ** 2) == pytest.approx(0.5, rel=1e-15, abs=0.0)
    beams = replace(make_janus_beams(THIRTY, PLUS, width=width, rings=rings), weighting=BeamWeighting.PATTERN)
    angles, weights = compute_offsets(beams)
    across, along = (angles / width).T
    squared = across**2 + along**2
    tolerance = 1e-9 / width  # rounding of the cosine
    assert weights.sum() == pytest.approx(1.0, rel=1e-15, abs=0.0)
    assert np.all(weights > 0.0)

    def pattern(x: float) -> float:
        """Return the two-way pattern at an angle in widths, with an integral of 1 over a line."""
        return math.exp(-8.0 * math.log(2.0) * x * x) * math.sqrt(8.0 * math.log(2.0) / math.pi)

    def integrate_on_a_line(power: int) -> float:
        return float(quad(lambda x: x**power * pattern(x), -2.0, 2.0, epsabs=1e-14, epsrel=1e-12)[0])

    for i, j in [(1, 0), (0, 1), (2, 0), (0, 2), (1, 1), (2, 1), (3, 0), (2, 2), (4, 0), (3, 1), (5, 0), (3, 2)]:
        expected = integrate_on_a_line(i) * integrate_on_a_line(j)
        assert float(np.sum(weights * across**i * along**j)) == pytest.approx(expected, abs=tolerance), (i, j)
    for power in range(2 * rings + 1):
        around = quad(lambda r, n=2 * power: r ** (n + 1) * pattern(r), 0.0, 2.5, epsabs=1e-15, epsrel=1e-12)[0]
        expected = around * math.sqrt(8.0 * math.log(2.0) * math.pi) * 2.0
        assert float(np.sum(weights * squared**power)) == pytest.approx(expected, rel=1e-6, abs=0.0)


@pytest.mark.requirement("GAP-2")
def test_pattern_without_width_is_one_ray() -> None:
    beams = replace(make_janus_beams(THIRTY, PLUS), weighting=BeamWeighting.PATTERN)
    assert beams.rays.shape == (4, 1, 3)
    assert np.array_equal(beams.rays[:, 0], beams.axes)
    assert np.array_equal(beams.weights, np.ones((4, 1)))


@pytest.mark.requirement("GAP-9")
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: make_janus_beams(THIRTY, PLUS[:2]), "beams: 2; must be from 3 to 16"),
        (lambda: make_janus_beams(THIRTY, [0.1 * k for k in range(17)]), "beams: 17"),
        (lambda: make_janus_beams(0.0, PLUS), "angle of the beams"),
        (lambda: make_janus_beams(math.pi / 2, PLUS), "angle of the beams"),
        (lambda: make_janus_beams(-0.5, PLUS), "angle of the beams"),
        (lambda: make_janus_beams(math.nan, PLUS), "angle of the beams"),
        (lambda: make_janus_beams(1e-6, PLUS), "axes of the beams"),
        (lambda: make_janus_beams(THIRTY, [1.0, 1.0, 1.0]), "axes of the beams"),
        (lambda: make_janus_beams(THIRTY, [0.0, math.pi, 0.0, math.pi]), "axes of the beams"),
        (lambda: make_janus_beams(THIRTY, [0.0, math.inf, 1.0]), "azimuth of a beam"),
        (lambda: make_janus_beams(THIRTY, PLUS, width=-0.1), "width of a beam"),
        (lambda: make_janus_beams(THIRTY, PLUS, down=(0.0, 0.0, 0.0)), "down"),
        (lambda: make_gazebo_beams([0.0, 2.0, 4.0], [0.0, 0.0, 0.0], [0.1] * 3), "axes of the beams"),
        (lambda: make_gazebo_beams([0.0, 2.0, 4.0], [0.5, math.pi / 2, 0.5], [0.1] * 3), "tilt of a beam"),
        (lambda: make_gazebo_beams([0.0, math.nan, 4.0], [0.5] * 3, [0.1] * 3), "rotation of a beam"),
        (lambda: make_gazebo_beams([0.0, 2.0, 4.0], [0.5] * 3, [0.1, 9.0, 0.1]), "width of a beam"),
        (lambda: Beam(rotation=(1.0, 1.0, 0.0, 0.0)), "rotation of a beam"),
        (lambda: Beam(rotation=(math.nan, 1.0, 0.0, 0.0)), "rotation of a beam"),
        (lambda: Beam(position=(0.0, math.nan, 0.0)), "position of a beam"),
        (lambda: replace(make_janus_beams(THIRTY, PLUS), absorption=-0.1), "absorption"),
        (lambda: replace(make_janus_beams(THIRTY, PLUS), absorption=math.inf), "absorption"),
    ],
)
def test_invalid_instrument_is_an_error(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(SensorError, match=problem.replace("(", r"\(")):
        make()


def test_pattern_needs_round_beams_with_a_common_direction() -> None:
    fan = Beams(tuple(Beam(Fan(3, -0.1, 0.1), from_rpy(0.0, 1.0, 2.0 * k)) for k in range(3)))
    with pytest.raises(SensorError, match="shape of a beam"):
        replace(fan, weighting=BeamWeighting.PATTERN)
    wide = make_janus_beams(THIRTY, PLUS, width=2.5, rings=4)
    with pytest.raises(SensorError, match=r"width of a beam \(rad\): 2.5; must be smaller: a ring of rays is"):
        replace(wide, weighting=BeamWeighting.PATTERN)


@pytest.mark.parametrize("angle", [1e-3, 0.01, 1.57])
def test_extreme_beam_angles_are_allowed(angle: float) -> None:
    assert len(make_janus_beams(angle, PLUS).beams) == 4

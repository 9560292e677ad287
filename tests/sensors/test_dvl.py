"""DVL pings and their errors equal NumPy's linear algebra and chi-squared bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

import navsense as ns
from navsense.core.errors import SensorError
from navsense.core.kernels import INTERPRETED
from navsense.core.pose import Pose, from_rotation_vector, from_rpy, rotate
from navsense.core.random_streams import Draws
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, Vector
from navsense.environment.base import Environment
from navsense.environment.terrain.primitives import Box, Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.base import MotionBlock
from navsense.noise.specification import Noise
from navsense.sensors.base import Measurement
from navsense.sensors.doppler import (
    EchoStrength,
    LongTermFilter,
    TrackErrors,
    Transducer,
    WaterMassLayer,
    make_janus_beams,
)
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.sensors.range import Sound
from navsense.world import Link, Model, MountedSensor, World

FALSE_ALARM = 1e-6
MANY = 250 if INTERPRETED else 10_000
RATE = 10.0
CROSSED, PLUS = (-135.0, 135.0, 45.0, -45.0), (0.0, 90.0, 180.0, 270.0)
RED = TrackErrors(Noise(stddev=0.01))


@dataclass(frozen=True)
class LinearMotion:
    """A frame at position + velocity t (m, m/s, world), with a turn rate (rad/s) about the vertical."""

    place: Vector = (0.0, 0.0, 20.0)
    velocity: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)
    turn: float = 0.0

    @property
    def end(self) -> float:
        return math.inf

    def at(self, time: AnyArray) -> MotionBlock:
        rows, (roll, pitch, yaw) = np.ones((time.shape[0], 1)), self.rpy
        if self.turn:
            rotation = np.array([from_rpy(roll, pitch, yaw + self.turn * t) for t in time.tolist()])
        else:
            rotation = rows * from_rpy(roll, pitch, yaw)
        w, x, y, z = from_rpy(roll, pitch, yaw)
        omega = rows * rotate(
            (w, -x, -y, -z), (0.0, 0.0, self.turn)
        )  # a rotation about the vertical does not change it
        position = np.array(self.place) + time[:, None] * self.velocity
        return MotionBlock(position, rotation, rows * self.velocity, omega, rows * np.zeros(3), rows * np.zeros(3))


def make_bed(slope: float = 0.0, water: Water | None = None) -> Environment:
    """Return a bottom through the origin that rises by `slope` towards x."""
    pose = Pose((0.0, 0.0, 0.0), from_rpy(0.0, -math.atan(slope), 0.0))
    return Environment(scene=Scene((Body("bed", Plane(), pose),)), water=water)


def make_spec(angle: float = 30.0, azimuths: tuple[float, ...] = CROSSED, **more: Any) -> Dvl:
    """Return a DVL without travel time, with beams at an angle and azimuths (deg)."""
    beams = make_janus_beams(math.radians(angle), [math.radians(a) for a in azimuths])
    return Dvl(**{"beams": beams, "propagation": False, **more})


def compute_axes(angle: float, azimuths: tuple[float, ...]) -> AnyArray:
    """Return the unit vectors (k, 3) of beams that point along -z."""
    a, environment = math.radians(angle), np.radians(azimuths)
    return np.column_stack(
        [math.sin(a) * np.cos(environment), math.sin(a) * np.sin(environment), np.full(environment.size, -math.cos(a))]
    )


def measure_pings(
    spec: Dvl, motion: Any, environment: Environment, count: int = 1, *, rate: float = RATE, seed: int = 5
) -> Measurement:
    """Return the measurement of an instrument at `count` ticks."""
    ticks = Ticks(np.arange(count, dtype=np.int64), rate)
    source = Draws(spec.processes(), seed, (0, "dvl"))
    _, measured = spec.measure(
        spec.init(source.initial), ticks, spec.ideal(motion, environment, ticks), source.take(count)
    )
    return measured


def check_sum(squares: float, count: int, alarm: float = FALSE_ALARM) -> None:
    """Assert that a sum of squares of standard normals is within its chi-squared bounds."""
    assert chi2.ppf(0.5 * alarm, count) < squares < chi2.isf(0.5 * alarm, count)


def check_spread(errors: AnyArray, covariance: AnyArray) -> None:
    """Assert that errors (n, m) have this covariance, along every axis and every diagonal of two, when whitened."""
    white = np.linalg.solve(np.linalg.cholesky(covariance), errors.T)
    m, n = white.shape
    pairs = [(i, j, s) for i in range(m) for j in range(i) for s in (1.0, -1.0)]
    rows = [*white, *((white[i] + s * white[j]) / math.sqrt(2.0) for i, j, s in pairs)]
    for row in rows:
        check_sum(float(row @ row), n, FALSE_ALARM / (2 * len(rows)))
        assert abs(row.sum()) < norm.isf(FALSE_ALARM / (4 * len(rows))) * math.sqrt(n)


def check_share(hits: float, count: int, probability: float) -> None:
    assert binom.ppf(0.5 * FALSE_ALARM, count, probability) <= hits <= binom.isf(0.5 * FALSE_ALARM, count, probability)


def compute_fading(strength: EchoStrength, slant: AnyArray, cosine: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the factor of a beam's deviation, and its lock probability."""
    decibels = strength.level - 30 * np.log10(slant) - 2 * strength.absorption * slant + 20 * np.log10(cosine)
    power = 10 ** (decibels / 10)
    rho = strength.correlation * power / (1 + power)
    factor = np.sqrt((rho**-2 - 1) / (strength.correlation**-2 - 1))
    return factor, 1 / (1 + np.exp((strength.threshold - decibels) / strength.lock_width))


FAINT = EchoStrength(60.0, 0.3, threshold=-200.0)
"""The beams have different deviations on a slope, and none is lost."""


@pytest.mark.requirement("GAP-9", "DVW-4", "GAP-4")
@pytest.mark.parametrize(
    ("angle", "azimuths", "slope", "strength"),
    [
        (30.0, CROSSED, 0.0, None),
        (25.0, (0.0, 120.0, 240.0), 0.0, None),
        (20.0, (10.0, 82.0, 154.0, 226.0, 298.0), 0.1, None),
        (30.0, CROSSED, 0.5, FAINT),
    ],
    ids=["four", "three", "five", "unequal"],
)
def test_covariance_matches_the_errors(
    angle: float, azimuths: tuple[float, ...], slope: float, strength: EchoStrength | None
) -> None:
    """The reported covariance is (sum u u^T / sigma^2)^-1 by NumPy, and the errors match it (false alarms 1e-6)."""
    axes, normal = compute_axes(angle, azimuths), np.array([-slope, 0.0, 1.0]) / math.hypot(slope, 1.0)
    spec = make_spec(angle, azimuths, bottom=RED, echo_strength=strength)
    reading = measure_pings(spec, LinearMotion(), make_bed(slope), MANY)
    cosine = -axes @ normal
    slant = 20.0 * normal[2] / cosine
    sigma = 0.01 * (np.ones(len(azimuths)) if strength is None else compute_fading(strength, slant, cosine)[0])
    if strength is not None:
        assert sigma.max() > 2.0 * sigma.min()
    covariance = np.linalg.inv((axes / sigma[:, None] ** 2).T @ axes)
    assert np.allclose(reading.arrays["velocity_covariance"], covariance, rtol=1e-9, atol=1e-17)
    assert reading.arrays["beam_deviation"][0] == pytest.approx(sigma, rel=1e-12, abs=0.0)
    assert np.all(reading.arrays["num_good_beams"] == len(azimuths))
    check_spread(reading.arrays["velocity"], covariance)
    check_spread(reading.arrays["beam_velocity"], np.diag(sigma**2))
    if len(azimuths) == 4 and strength is None:
        assert covariance == pytest.approx(1e-4 * np.diag([2.0, 2.0, 1.0 / 3.0]), abs=1e-18)


@pytest.mark.requirement("DVW-4", "GAP-4")
def test_solution_is_the_weighted_pseudo_inverse() -> None:
    """NumPy's least squares with rows over sigma gives the velocity from the measured beams."""
    spec = make_spec(bottom=RED, echo_strength=FAINT)
    arrays = measure_pings(spec, LinearMotion(velocity=(1.2, -0.4, 0.1), rpy=(0.1, 0.2, 0.3)), make_bed(0.5), 20).arrays
    for k in range(20):
        weight = 1.0 / arrays["beam_deviation"][k][:, None]
        solved = np.linalg.lstsq(
            weight * compute_axes(30.0, CROSSED), weight[:, 0] * arrays["beam_velocity"][k], rcond=None
        )
        assert arrays["velocity"][k] == pytest.approx(solved[0], rel=1e-12, abs=0.0)


@pytest.mark.requirement("DVW-2", "DVW-3", "GAP-4")
def test_beam_velocity_on_a_rotating_vehicle_over_a_moving_plate() -> None:
    """Each beam measures u . R^T (v + omega x r - v_plate), positive along the beam, and a slant range h / cos."""
    place, turned = (1.5, -0.4, -0.5), from_rpy(0.02, -0.03, 0.6)
    motion, belt = LinearMotion((0.0, 0.0, 9.0), (1.2, 0.3, -0.1), (0.0, 0.0, 0.2), 0.4), (0.5, -0.2, 0.0)
    plate = Body("belt", Box((400.0, 400.0, 2.0)), Pose((0.0, 0.0, -1.0)), LinearMotion((0.0, 0.0, 0.0), belt))
    model = Model("robot", (Link("robot::hull"),), "robot::hull", motion=motion)
    eye = MountedSensor("robot::hull::dvl", make_spec(), "robot", "robot::hull", RATE, Pose(place, turned))
    run = ns.simulate(World("w", (model,), (eye,), environment=Environment(scene=Scene((plate,)))), 2.0)
    reading, axes = run["robot::hull::dvl"], compute_axes(30.0, CROSSED)
    for k, t in enumerate(reading.time.tolist()):
        hull = from_rpy(0.0, 0.0, 0.2 + 0.4 * t)
        arm = np.array(rotate(hull, place))
        relative = np.array(motion.velocity) + np.cross([0.0, 0.0, 0.4], arm) - belt
        world = np.array([rotate(hull, rotate(turned, tuple(axis))) for axis in axes.tolist()])
        height = 9.0 - 0.1 * t + arm[2]
        assert reading["beam_velocity"][k] == pytest.approx(world @ relative, rel=1e-9, abs=1e-12)
        assert reading["beam_range"][k] == pytest.approx(-height / world[:, 2], rel=1e-12, abs=0.0)
        back = [rotate(turned, axis) for axis in np.eye(3).tolist()]
        own = [float(np.dot(rotate(hull, axis), relative)) for axis in back]
        assert reading["velocity"][k] == pytest.approx(own, rel=1e-9, abs=1e-12)
        assert reading.ideal["velocity"][k] == pytest.approx(own, rel=1e-9, abs=1e-12)
    assert np.all(reading["velocity_mode"] == 1.0)
    assert reading.valid.all()


# deviations


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize("speed", [0.0, 1.0, 5.0])
@pytest.mark.parametrize(("reference", "growth"), [(0.0, 1.0), (2.5, 2.0)])
def test_deviations_grow_with_speed_and_rate(speed: float, reference: float, growth: float) -> None:
    sigma = (0.002 + 0.001 * speed) * growth
    spec = make_spec(bottom=TrackErrors(Noise(stddev=0.002), 0.001, reference))
    arrays = measure_pings(spec, LinearMotion(velocity=(speed, 0.0, 0.0), rpy=(0.0, 0.1, 0.0)), make_bed(), MANY).arrays
    true = compute_axes(30.0, CROSSED) @ [speed * math.cos(0.1), 0.0, speed * math.sin(0.1)]
    assert np.allclose(arrays["beam_deviation"], sigma, rtol=1e-12, atol=0.0)
    check_spread(arrays["beam_velocity"] - true, sigma**2 * np.eye(4))


@pytest.mark.requirement("GAP-2", "DVU-3")
def test_reported_stddev_may_differ() -> None:
    arrays = measure_pings(
        make_spec(bottom=replace(RED, reported_stddev=0.03)), LinearMotion(), make_bed(), MANY
    ).arrays
    assert arrays["velocity_covariance"][7] == pytest.approx(9e-4 * np.diag([2.0, 2.0, 1.0 / 3.0]), abs=1e-17)
    assert np.all(arrays["beam_deviation"] == 0.03)
    check_spread(arrays["velocity"], 1e-4 * np.diag([2.0, 2.0, 1.0 / 3.0]))


@pytest.mark.requirement("DVW-4", "GAP-2")
def test_range_noise_and_resolution() -> None:
    """Range errors change the altitude only: for four equal beams, their mean times cos 30 deg."""
    spec = make_spec(range_noise=Noise(stddev=0.05))
    arrays = measure_pings(spec, LinearMotion(velocity=(1.0, 0.0, 0.0)), make_bed(), MANY).arrays
    check_spread(arrays["beam_range"] - 20.0 / math.cos(math.radians(30.0)), 0.0025 * np.eye(4))
    off = (arrays["altitude"] - 20.0) / (0.025 * math.cos(math.radians(30.0)))
    check_sum(float(off @ off), MANY, 0.1 * FALSE_ALARM)  # of a plane through four crosswise points, to 1e-5
    assert np.allclose(arrays["velocity"], [1.0, 0.0, 0.0], rtol=0.0, atol=1e-12)
    coarse = measure_pings(replace(spec, range_noise=Noise(precision=0.5)), LinearMotion(), make_bed()).arrays
    assert coarse["beam_range"][0] == pytest.approx(np.full(4, 23.0), abs=1e-12)


# errors that are constant in a run


@pytest.mark.requirement("GAP-2", "GAP-3")
def test_long_term_error_differs_by_instrument() -> None:
    """The error s v + o has the covariance scale^2 v v^T + offset^2 I, separate for bottom and water."""
    spec = make_spec(
        bottom=TrackErrors(long_term_scale=0.004, long_term_offset=0.002),
        water=TrackErrors(long_term_scale=0.01, long_term_offset=0.02),
        water_mode=TrackMode.ALWAYS,
        layer=WaterMassLayer(2.0, 10.0),
    )
    motion = LinearMotion(velocity=(1.5, 0.5, 0.2))
    model = Model("robot", (Link("robot::hull"),), "robot::hull", motion=motion)
    eye = MountedSensor("dvl", spec, "robot", "robot::hull", RATE)
    reading = ns.simulate(World("w", (model,), (eye,), environment=make_bed()), 0.2, runs=500, seed=3)["dvl"]
    v = np.array(motion.velocity)
    errors = np.concatenate([reading["velocity"] - v, reading["water_velocity"] - v], axis=-1)
    assert np.allclose(errors[:, 1], errors[:, 0], rtol=0.0, atol=1e-12)
    both = np.zeros((6, 6))
    for first, scale, offset in ((0, 0.004, 0.002), (3, 0.01, 0.02)):
        block = slice(first, first + 3)
        both[block, block] = scale**2 * np.outer(v, v) + offset**2 * np.eye(3)
    check_spread(errors[:, 0], both)


@pytest.mark.requirement("GAP-2", "GAP-9")
def test_misalignment_rotates_the_velocity() -> None:
    """A yaw error of 1 degree gives 1.745 % across the track. Other cases equal the rotation matrix."""
    yaw = math.radians(1.0)
    arrays = measure_pings(
        make_spec(misalignment=(0.0, 0.0, yaw)), LinearMotion(velocity=(2.0, 0.0, 0.0)), make_bed()
    ).arrays
    assert arrays["velocity"][0] == pytest.approx([2.0 * math.cos(yaw), 2.0 * math.sin(yaw), 0.0], abs=1e-12)
    assert arrays["velocity"][0, 1] / 2.0 == pytest.approx(0.0174524, rel=1e-5, abs=0.0)
    vector, v = (0.02, -0.05, 0.03), (1.0, -2.0, 0.5)
    arrays = measure_pings(make_spec(misalignment=vector), LinearMotion(velocity=v), make_bed(), 3).arrays
    assert arrays["velocity"][2] == pytest.approx(rotate(from_rotation_vector(vector), v), rel=1e-12, abs=0.0)
    belt = Body("belt", Box((400.0, 400.0, 2.0)), Pose((0.0, 0.0, -1.0)), LinearMotion((0.0, 0.0, 0.0), v))
    carried = measure_pings(
        make_spec(misalignment=vector), LinearMotion(velocity=v), Environment(scene=Scene((belt,)))
    ).arrays
    assert carried["velocity"][0] == pytest.approx(
        np.zeros(3), abs=1e-12
    )  # it is stationary relative to the tracked surface


@pytest.mark.requirement("GAP-2")
def test_misalignment_differs_by_instrument() -> None:
    """A rotation vector theta of 10 urad changes 1 m/s along x by (0, theta_z, -theta_y), to second order."""
    spec, count = make_spec(misalignment_stddev=1e-5), 500
    turned = []
    for run in range(count):
        source, one = Draws(spec.processes(), 4, (run, "dvl")), Ticks(np.zeros(1, dtype=np.int64), RATE)
        state = spec.init(source.initial)
        if run == 0:
            ideal = spec.ideal(LinearMotion(velocity=(1.0, 0.0, 0.0)), make_bed(), one)
        turned.append(spec.measure(state, one, ideal, source.take(1))[1].arrays["velocity"][0])
    errors = np.array(turned) - [1.0, 0.0, 0.0]
    check_spread(errors[:, 1:], 1e-10 * np.eye(2))
    assert np.abs(errors[:, 0]).max() < 1e-8


@pytest.mark.requirement("GAP-2", "GAP-9")
@pytest.mark.parametrize("pitch", [0.0, 0.3])
def test_assumed_speed_of_sound_scales_velocity_and_range(pitch: float) -> None:
    """Pistons scale all axes by c0 / c, a phased array the axial component only. Ranges scale with both.

    The beams of the array are at asin(c / c0 sin 30), not at the assumed 30 degrees, which changes altitude and range.
    """
    water, v = Water(surface=100.0, sound_speed=1450.0), (1.0, 0.4, -0.3)
    motion = LinearMotion(velocity=v, rpy=(0.0, pitch, 0.0))
    w, x, y, z = from_rpy(0.0, pitch, 0.0)
    own, scale = np.array(rotate((w, -x, -y, -z), v)), 1500.0 / 1450.0
    assumed = make_spec(sound=Sound(1500.0))
    bent = math.cos(math.asin(0.5 / scale)) / math.cos(math.radians(30.0))
    for variant, factors in (
        (assumed, [scale, scale, scale]),
        (replace(assumed, transducer=Transducer.PHASED_ARRAY), [1.0, 1.0, scale * bent]),
        (replace(assumed, sound=Sound()), [1.0, 1.0, 1.0]),
    ):
        arrays = measure_pings(variant, motion, make_bed(water=water)).arrays
        assert arrays["velocity"][0] == pytest.approx(own * factors, rel=1e-12, abs=1e-15)
        factor = scale if variant.sound.speed else 1.0
        assert arrays["sound_speed"][0] == (1500.0 if variant.sound.speed else 1450.0)
        world = np.array([rotate((w, x, y, z), tuple(axis)) for axis in compute_axes(30.0, CROSSED).tolist()])
        factor /= bent if variant.transducer is Transducer.PHASED_ARRAY else 1.0
        assert arrays["beam_range"][0] == pytest.approx(-20.0 / world[:, 2] * factor, rel=1e-12, abs=0.0)


# error velocity


@pytest.mark.requirement("GAP-9")
def test_error_velocity_is_the_scaled_beam_disagreement() -> None:
    """It is d (b0 + b2 - b1 - b3) of opposite pairs, d = 1 / (2 sqrt 2 sin angle), with the horizontal variance."""
    d = 1.0 / (2.0 * math.sqrt(2.0) * math.sin(math.radians(25.0)))
    arrays = measure_pings(make_spec(25.0, bottom=RED), LinearMotion(velocity=(1.0, 0.5, 0.0)), make_bed(), MANY).arrays
    beams = arrays["beam_velocity"]
    pairs = np.abs(beams[:, 0] + beams[:, 2] - beams[:, 1] - beams[:, 3])
    assert np.allclose(np.abs(arrays["error_velocity"]), d * pairs, rtol=1e-9, atol=1e-14)
    horizontal = 1e-4 * 0.5 / math.sin(math.radians(25.0)) ** 2
    check_sum(float((arrays["error_velocity"] ** 2).sum()) / horizontal, MANY)
    three = measure_pings(make_spec(30.0, (0.0, 120.0, 240.0), bottom=RED), LinearMotion(), make_bed(), 10).arrays
    assert np.isnan(three["error_velocity"]).all()


@pytest.mark.requirement("GAP-9")
def test_error_velocity_screening_rejects_pings() -> None:
    """With deviation sqrt(2) sigma, a share 2 Q(limit / deviation) is rejected. Three beams cannot be screened."""
    limit, deviation = 0.02, math.sqrt(2.0) * 0.01
    reading = measure_pings(make_spec(bottom=RED, error_velocity_limit=limit), LinearMotion(), make_bed(), MANY)
    assert reading.valid is not None
    check_share(float((~reading.valid).sum()), MANY, 2.0 * norm.sf(limit / deviation))
    assert np.nanmax(np.abs(reading.arrays["error_velocity"])) <= limit
    for name in ("velocity", "velocity_covariance", "course", "speed", "error_velocity"):
        missing = np.isnan(reading.arrays[name]).reshape(MANY, -1)
        assert np.array_equal(missing.any(axis=1), ~reading.valid)
        assert np.array_equal(missing.all(axis=1), ~reading.valid)
    assert np.array_equal(reading.arrays["velocity_mode"] == 1.0, reading.valid)
    assert np.isfinite(reading.arrays["beam_velocity"]).all()
    alone = measure_pings(
        make_spec(30.0, (0.0, 120.0, 240.0), bottom=RED, error_velocity_limit=1e-6), LinearMotion(), make_bed(), 100
    )
    assert alone.valid is not None
    assert alone.valid.all()


# invalid beams


def make_cliff() -> Environment:
    """Return a plateau that ends 5 m ahead of the origin, with no bottom beyond."""
    return Environment(scene=Scene((Body("plateau", Box((100.0, 100.0, 10.0)), Pose((-45.0, 0.0, -5.0))),)))


def compute_plane_hits(normal: AnyArray, height: float, axes: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return slant ranges and cosines of incidence to a plane `height` (m) below along z."""
    cosine = -axes @ normal
    return height * normal[2] / cosine, cosine


SLOPED = np.array([-0.3, 0.0, 1.0]) / math.hypot(0.3, 1.0)
SLANTS, COSINES = compute_plane_hits(SLOPED, 20.0, compute_axes(30.0, PLUS))


@pytest.mark.requirement("GAP-9", "DVW-4", "DVW-7", "GAP-5")
@pytest.mark.parametrize(
    ("environment", "limits", "lost"),
    [
        (make_cliff(), {}, 0),
        (make_bed(0.3), {"minimum_range": float(SLANTS[0]) + 1e-6}, 0),
        (make_bed(0.3), {"maximum_range": float(SLANTS[2]) - 1e-6}, 2),
        (make_bed(0.3), {"min_incidence_cosine": float(COSINES[2]) + 1e-9}, 2),
    ],
    ids=["cliff", "minimum", "maximum", "incidence"],
)
def test_three_beams_give_a_solution(environment: Environment, limits: dict[str, float], lost: int) -> None:
    """One beam has no echo: the other three give the velocity, its covariance, and the altitude over their plane."""
    v, axes = (0.8, -0.3, 0.1), np.delete(compute_axes(30.0, PLUS), lost, axis=0)
    spec = make_spec(30.0, PLUS, bottom=RED, **limits)
    clean = measure_pings(spec.without_errors(), LinearMotion(velocity=v), environment).arrays
    assert clean["velocity"][0] == pytest.approx(v, rel=1e-12, abs=0.0)
    assert clean["altitude"][0] == pytest.approx(20.0, rel=1e-12, abs=0.0)
    reading = measure_pings(spec, LinearMotion(), environment, MANY).arrays
    good = [k != lost for k in range(4)]
    assert np.all(reading["beam_valid"] == np.array(good, dtype=float))
    assert np.all(reading["num_good_beams"] == 3.0)
    for name in ("beam_range", "beam_velocity", "beam_deviation"):
        assert np.array_equal(np.isfinite(reading[name]), np.tile(good, (MANY, 1)))
    assert np.isnan(reading["error_velocity"]).all()
    covariance = 1e-4 * np.linalg.inv(axes.T @ axes)
    assert reading["velocity_covariance"][5] == pytest.approx(covariance, abs=1e-16)
    deviations = np.sqrt(np.diag(covariance)) / 0.01
    order = [math.sqrt(6.0), math.sqrt(2.0), math.sqrt(2.0 / 3.0)]  # Teledyne RDI's 3-beam multipliers at 30 degrees
    assert deviations == pytest.approx(order, rel=1e-12, abs=0.0)
    check_spread(reading["velocity"], covariance)


@pytest.mark.requirement("GAP-9", "DVW-4")
def test_two_beams_give_no_solution() -> None:
    """The four beams are in an X over a slope: the two downhill beams are out of range."""
    slants, _ = compute_plane_hits(SLOPED, 20.0, compute_axes(30.0, CROSSED))
    reading = measure_pings(make_spec(maximum_range=float(slants.mean()), bottom=RED), LinearMotion(), make_bed(0.3), 5)
    assert reading.arrays["beam_valid"].tolist() == [(slants < slants.mean()).astype(float).tolist()] * 5
    assert np.all(reading.arrays["num_good_beams"] == 2.0)
    assert np.all(reading.arrays["velocity_mode"] == 0.0)
    for name in ("velocity", "velocity_covariance", "altitude", "course", "speed", "error_velocity"):
        assert np.isnan(reading.arrays[name]).all()
    assert reading.valid is not None
    assert not reading.valid.any()
    assert reading.emitted is not None
    assert reading.emitted.all()


@pytest.mark.requirement("GAP-9", "GAP-2")
def test_share_of_dropouts_and_weak_echoes() -> None:
    """Independent beam dropouts leave a velocity in a share 4 q^3 p + q^4 of pings. Lock follows the logistic law."""
    p = 0.2
    reading = measure_pings(make_spec(dropout_probability=p), LinearMotion(), make_bed(), MANY)
    check_share(float(reading.arrays["beam_valid"].sum()), 4 * MANY, 1.0 - p)
    assert reading.valid is not None
    check_share(float(reading.valid.sum()), MANY, 4.0 * (1.0 - p) ** 3 * p + (1.0 - p) ** 4)
    for i in range(4):
        for j in range(i):
            both = reading.arrays["beam_valid"][:, i] * reading.arrays["beam_valid"][:, j]
            check_share(float(both.sum()), MANY, (1.0 - p) ** 2)
    faint = EchoStrength(60.0, 0.2, threshold=8.0, lock_width=2.0)
    slant = np.full(4, 20.0 / math.cos(math.radians(30.0)))
    share = compute_fading(faint, slant, np.full(4, math.cos(math.radians(30.0))))[1][0]
    assert 0.1 < share < 0.9
    valid = measure_pings(make_spec(echo_strength=faint), LinearMotion(), make_bed(), MANY).arrays["beam_valid"]
    for k in range(4):
        check_share(float(valid[:, k].sum()), MANY, float(share))


# specs


@pytest.mark.requirement("DVW-2", "GAP-1", "GAP-9")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_spec(azimuths=(0.0, 90.0)), "beams: 2; must be from 3"),
        (lambda: make_spec(azimuths=(0.0, 0.0, 0.0)), "axes of the beams: "),
        (lambda: make_spec(0.0), "angle of the beams (rad): 0.0"),
        (lambda: make_spec(90.0), "angle of the beams (rad): 1.57"),
        (lambda: Dvl(minimum_range=-0.1), "minimum_range: -0.1"),
        (lambda: Dvl(maximum_range=math.inf), "maximum_range: inf"),
        (lambda: Dvl(maximum_range=math.nan), "maximum_range: nan"),
        (lambda: Dvl(minimum_range=5.0, maximum_range=5.0), "maximum_range (m): 5.0; must be above the minimum, 5 m"),
        (lambda: Dvl(misalignment_stddev=-1.0), "misalignment_stddev: -1.0"),
        (lambda: Dvl(min_incidence_cosine=1.5), "min_incidence_cosine: 1.5"),
        (lambda: Dvl(error_velocity_limit=-1.0), "error_velocity_limit: -1.0"),
        (lambda: Dvl(error_velocity_limit=math.nan), "error_velocity_limit: nan"),
        (lambda: Dvl(dropout_probability=1.1), "dropout_probability: 1.1"),
        (lambda: Dvl(reacquisition_time=-1.0), "reacquisition_time: -1.0"),
        (lambda: Dvl(reacquisition_time=math.inf), "reacquisition_time: inf"),
        (lambda: Dvl(processing_time=math.nan), "processing_time: nan"),
        (lambda: Dvl(misalignment=(0.0, 0.0, 2.0)), "misalignment (rad): (0.0, 0.0, 2.0)"),
        (lambda: Dvl(misalignment=(0.0, 0.0, math.nan)), "misalignment (rad): "),
        (lambda: Dvl(reference=(1.0, 1.0, 0.0, 0.0)), "reference: (1.0, 1.0, 0.0, 0.0); must be a unit quaternion"),
        (lambda: Dvl(reference=(math.nan, 0.0, 0.0, 0.0)), "reference: "),
        (lambda: Dvl(reference=(1.0, 0.0, 0.0)), "reference: (1.0, 0.0, 0.0); must be 4 finite numbers"),
        (lambda: Dvl(bottom_mode=TrackMode.FALLBACK), "bottom_mode: fallback; must be never, always or best"),
        (lambda: Dvl(bottom_mode=TrackMode.NEVER), "bottom_mode and water_mode: never; must not both be never"),
        (lambda: Dvl(water_mode=TrackMode.BEST), "layer; must be given for a water track"),
        (
            lambda: Dvl(maximum_range=20.0, layer=WaterMassLayer(1.0, 17.4)),
            "far boundary of the water layer (m): 17.4; must be",
        ),
        (lambda: Dvl(bottom=TrackErrors(per_speed=-1.0)), "per_speed of a track: -1.0"),
        (lambda: Dvl(long_term=LongTermFilter(0.0)), "acceleration_density of the long-term filter"),
        (lambda: Dvl(echo_strength=EchoStrength(50.0, -0.1)), "absorption of the echo's strength (dB/m): -0.1"),
        (lambda: Dvl(sound=Sound(-1.0)), "assumed speed of sound (m/s): -1.0"),
    ],
)
def test_impossible_instruments_are_an_error(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(SensorError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_layer_just_within_range() -> None:
    """A range of 20 m along beams at 30 degrees is 17.32 m along the instrument axis."""
    assert Dvl(maximum_range=20.0, layer=WaterMassLayer(1.0, 17.32), water_mode=TrackMode.ALWAYS).layer is not None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"bottom": 0.005}, "bottom: 0.005; must be of TrackErrors; give an ns.sensors.TrackErrors"),
        ({"sound": 1500.0}, "sound: 1500.0; must be of Sound"),
        ({"layer": (5.0, 15.0)}, "must be of WaterMassLayer"),
        ({"long_term": 0.05}, "must be of LongTermFilter"),
        ({"beams": None}, "must be of Beams"),
    ],
)
def test_fields_of_another_class_are_an_error(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(SensorError) as caught:
        Dvl(**arguments)
    assert problem in str(caught.value)
    with pytest.raises(SensorError, match="noise of a track"):
        TrackErrors(0.005)  # type: ignore[arg-type]
    with pytest.raises(SensorError, match=r"azimuth of a beam .*give radians"):
        make_janus_beams(0.5, [0.0, 90.0, 180.0])

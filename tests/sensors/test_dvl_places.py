"""Altitude, course and frames of a DVL in true geometry, for any mounting and world."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose, from_rpy, rotate
from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, Quaternion, Vector
from navsense.environment.base import Environment, UniformField
from navsense.environment.terrain.primitives import Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.base import MotionBlock
from navsense.noise.specification import Noise
from navsense.sensors.doppler import X_AZIMUTHS_DEG, Beams, EchoStrength, TrackErrors, WaterMassLayer, make_janus_beams
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.world import Link, Model, MountedSensor, World

AZIMUTHS = [math.radians(a) for a in X_AZIMUTHS_DEG]
FLU = make_janus_beams(math.radians(30.0), AZIMUTHS)
FRD = make_janus_beams(math.radians(30.0), AZIMUTHS, down=(0.0, 0.0, 1.0))
OVER = (0.0, 1.0, 0.0, 0.0)
"""Half a turn about x converts forward-left-up to forward-right-down and back."""


class DriftingMotion:
    """A frame at a fixed position with a velocity (m/s, world)."""

    end = math.inf

    def __init__(self, place: Vector, rotation: Quaternion, velocity: Vector) -> None:
        self.place, self.velocity, self.rotation = place, velocity, rotation

    def at(self, time: AnyArray) -> MotionBlock:
        rows = np.ones((time.shape[0], 1))
        zero = rows * np.zeros(3)
        return MotionBlock(rows * self.place, rows * self.rotation, rows * self.velocity, zero, zero, zero)


def read_dvl(spec: Dvl, motion: DriftingMotion, environment: Environment, mounting: Pose = Pose()) -> Reading:
    """Return the reading of a DVL on a link with this motion."""
    model = Model("auv", (Link("auv::hull"),), "auv::hull", motion=motion)
    eye = MountedSensor("dvl", spec, "auv", "auv::hull", 10.0, mounting)
    return ns.simulate(World("w", (model,), (eye,), environment=environment), 0.3, seed=4)["dvl"]


def make_bed(slope: float = 0.0, **more: Any) -> Environment:
    """Return a bottom through the origin that rises by `slope` towards x."""
    pose = Pose((0.0, 0.0, 0.0), from_rpy(0.0, -math.atan(slope), 0.0))
    return Environment(**{"scene": Scene((Body("bed", Plane(), pose),)), **more})


# altitude


@pytest.mark.requirement("GAP-5", "GAP-6")
@pytest.mark.parametrize("slope", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("rpy", [(0.0, 0.0, 0.0), (0.1, 0.0, 0.4), (-0.15, 0.12, 2.0), (0.0, -0.2, 4.0)])
@pytest.mark.parametrize("mounting", [Pose(), Pose((1.0, -0.5, 0.3), (0.0, 1.0, 0.0, 0.0))], ids=["flu", "frd"])
def test_altitude_is_the_vertical_distance(slope: float, rpy: Vector, mounting: Pose) -> None:
    """The altitude is z - slope x of the sensor origin: on slopes, pitched, rolled, with -z or z down."""
    turned, place = from_rpy(*rpy), (7.0, -3.0, 30.0)
    arm = rotate(turned, mounting.position)
    x, z = place[0] + arm[0], place[2] + arm[2]
    spec = Dvl(FRD if mounting.rotation == OVER else FLU, maximum_range=1e4, propagation=False)
    reading = read_dvl(spec, DriftingMotion(place, turned, (0.5, 0.2, 0.0)), make_bed(slope), mounting)
    assert reading["altitude"] == pytest.approx(np.full(3, z - slope * x), rel=1e-11, abs=0.0)
    assert reading.ideal["altitude"] == pytest.approx(np.full(3, z - slope * x), rel=1e-11, abs=0.0)
    assert reading["beam_valid"].all()


@pytest.mark.requirement("GAP-5", "GAP-6")
def test_altitude_of_beams_with_different_angles_and_positions() -> None:
    """Five beams with different angles and positions give the altitude of the sensor origin."""
    angles, places = (15.0, 20.0, 25.0, 30.0, 35.0), [(0.2 * i, -0.1 * i, 0.05 * i) for i in range(5)]
    single = [
        make_janus_beams(math.radians(a), [math.radians(72.0 * i + d) for d in (0, 90, 180)])
        for i, a in enumerate(angles)
    ]
    beams = Beams(tuple(replace(one.beams[0], position=at) for one, at in zip(single, places, strict=True)))
    turned = from_rpy(0.1, -0.2, 0.7)
    reading = read_dvl(
        Dvl(beams, propagation=False), DriftingMotion((2.0, 1.0, 15.0), turned, (1.0, 0.0, 0.0)), make_bed(0.3)
    )
    assert reading["altitude"][0] == pytest.approx(15.0 - 0.6, rel=1e-11, abs=0.0)
    assert len(set(reading["beam_range"][0].tolist())) == 5


@pytest.mark.requirement("GAP-5")
@pytest.mark.parametrize("height", [0.4, 100.0])
def test_altitude_out_of_range_is_invalid(height: float) -> None:
    spec = Dvl(minimum_range=0.5, maximum_range=90.0, propagation=False)
    reading = read_dvl(spec, DriftingMotion((0.0, 0.0, height), (1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0)), make_bed())
    assert np.isnan(reading["altitude"]).all()
    assert np.isnan(reading["beam_range"]).all()
    assert not reading.valid.any()


# course and speed


@pytest.mark.requirement("GAP-7")
@pytest.mark.parametrize("compass", [0.0, 30.0, 90.0, 135.0, 180.0, 250.0, 270.0, 359.0])
@pytest.mark.parametrize("heading", [0.0, 90.0, -130.0])
@pytest.mark.parametrize(
    ("beams", "mounting", "reference"),
    [
        (FLU, (1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)),
        (FLU, from_rpy(0.0, 0.0, 0.8), from_rpy(0.0, 0.0, 0.8)),
        (FLU, (1.0, 0.0, 0.0, 0.0), OVER),
        (FRD, OVER, (1.0, 0.0, 0.0, 0.0)),
        (FRD, OVER, OVER),
    ],
    ids=["flu", "turned", "flu-told-in-frd", "frd", "frd-told-in-flu"],
)
def test_forward_motion_has_the_compass_course(
    compass: float, heading: float, beams: Beams, mounting: Quaternion, reference: Quaternion
) -> None:
    """A pitched vehicle with the heading `compass` (deg) moves ahead at 2 m/s and rises, in any frame and world."""
    yaw = math.radians(90.0 - compass - heading)
    velocity = (2.0 * math.cos(yaw), 2.0 * math.sin(yaw), 0.3)
    environment = make_bed(origin=Origin(0.5, 0.2, 0.0, math.radians(heading)))
    spec = Dvl(beams, propagation=False, reference=reference)
    reading = read_dvl(
        spec,
        DriftingMotion((0.0, 0.0, 20.0), from_rpy(0.0, -0.1, yaw), velocity),
        environment,
        Pose((0.0, 0.0, 0.0), mounting),
    )
    for course in (*reading["course"].tolist(), *reading.ideal["course"].tolist()):
        assert 0.0 <= course < 2.0 * math.pi
        assert abs(math.remainder(course - math.radians(compass), 2.0 * math.pi)) < 1e-12
    assert reading["speed"] == pytest.approx(np.full(3, 2.0), rel=1e-12, abs=0.0)
    ahead = 2.0 * math.cos(0.1) + 0.3 * math.sin(0.1)
    up = 0.3 * math.cos(0.1) - 2.0 * math.sin(0.1)
    side = {True: -1.0, False: 1.0}[(mounting == OVER) != (reference == OVER)]
    if mounting in ((1.0, 0.0, 0.0, 0.0), OVER):  # forward in both; up, or down after one half turn
        assert reading["velocity"] == pytest.approx(np.tile([ahead, 0.0, side * up], (3, 1)), abs=1e-12)


@pytest.mark.requirement("GAP-7")
def test_course_and_speed_of_leeway_and_at_rest() -> None:
    """With a heading of north, leeway to the right is a course of east. At rest the speed is 0."""
    north = from_rpy(0.0, 0.0, math.pi / 2.0)
    reading = read_dvl(Dvl(propagation=False), DriftingMotion((0.0, 0.0, 9.0), north, (0.7, 0.0, 0.0)), make_bed())
    assert reading["velocity"][0] == pytest.approx([0.0, -0.7, 0.0], abs=1e-12)
    assert reading["course"][0] == pytest.approx(math.pi / 2.0, abs=1e-12)
    still = read_dvl(Dvl(propagation=False), DriftingMotion((0.0, 0.0, 9.0), north, (0.0, 0.0, 0.0)), make_bed())
    assert still["speed"].tolist() == [0.0] * 3
    assert still["course"].tolist() == [0.0] * 3


# the frame of the velocity


@pytest.mark.requirement("GAP-9", "GAP-7")
def test_velocity_and_covariance_in_another_frame() -> None:
    """NumPy gives R v and R C R^T for bottom and water track. Beam values are unchanged."""
    turn = from_rpy(0.3, -0.5, 1.1)
    matrix = np.array([rotate(turn, (x, y, z)) for x, y, z in np.eye(3).tolist()]).T
    plain = Dvl(
        propagation=False,
        bottom=TrackErrors(Noise(stddev=0.01)),
        water=TrackErrors(Noise(stddev=0.02), 0.01),
        water_mode=TrackMode.ALWAYS,
        layer=WaterMassLayer(1.0, 5.0),
        echo_strength=EchoStrength(60.0, 0.3, threshold=-200.0),
    )
    motion = DriftingMotion((0.0, 0.0, 20.0), from_rpy(0.1, 0.2, 0.3), (1.0, -0.5, 0.2))
    environment = make_bed(0.5, water=Water(surface=100.0), current=UniformField((0.2, 0.1, 0.0)))
    own, rotated = read_dvl(plain, motion, environment), read_dvl(replace(plain, reference=turn), motion, environment)
    assert abs(own["velocity_covariance"][0, 0, 1]) > 1e-6
    for name in ("velocity", "water_velocity"):
        assert np.allclose(rotated[name], own[name] @ matrix.T, rtol=1e-12, atol=1e-15)
        assert np.allclose(rotated.ideal[name], own.ideal[name] @ matrix.T, rtol=1e-12, atol=1e-15)
        covariance = matrix @ own[f"{name}_covariance"] @ matrix.T
        assert np.allclose(rotated[f"{name}_covariance"], covariance, rtol=1e-12, atol=1e-18)
    for name in ("beam_velocity", "beam_range", "altitude", "course", "speed", "error_velocity", "num_good_beams"):
        assert np.array_equal(rotated[name], own[name])

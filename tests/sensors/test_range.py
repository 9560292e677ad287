"""Range sensors: what their beams meet, held against closed forms and SciPy's quadrature; limits, sound, own hull."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import navsense as ns
from navsense.core.errors import FieldError, SensorError, Where
from navsense.core.pose import Pose, from_rpy, rotate
from navsense.core.ticks import Ticks
from navsense.environment.base import Environment
from navsense.environment.terrain.base import LazyShape, Shape
from navsense.environment.terrain.primitives import Box, Plane, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.driven import State
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import waypoints
from navsense.noise.specification import Noise
from navsense.sensors import Cone, Fan, Range, Sound
from navsense.sensors.base import Sensor
from navsense.sensors.range import OUT_OF_RANGE
from navsense.world import Link, Model, MountedSensor, Solid, World

ONE = Ticks(np.zeros(1, dtype=np.int64), 1.0)
BED = Environment(scene=Scene((Body("bed", Plane()),)))
DOWN = math.radians(90.0)


def read_range(sheet: Range, pose: Pose, surroundings: Environment = BED) -> tuple[float, float]:
    """Return range and side of a sensor without noise that stands at a pose."""
    ideal = sheet.ideal(Stationary(pose), surroundings, ONE)
    _, measured = sheet.measure(sheet.init(np.empty(0)), ONE, ideal, np.empty((0, 1)))
    assert measured.valid is not None
    assert bool(measured.valid[0]) == (measured.arrays[OUT_OF_RANGE][0] == 0.0)
    return float(measured.arrays["range"][0]), float(measured.arrays[OUT_OF_RANGE][0])


@pytest.mark.requirement("DVU-2", "ALT-8")
@pytest.mark.parametrize("tilt", [0.0, 0.05, 0.2, 0.7, 1.2])
@pytest.mark.parametrize("width", [0.0, 0.1, 0.3])
def test_cone_over_level_ground(tilt: float, width: float) -> None:
    """Ground h below, tilt a, full width w: the nearest point of the beam is h / cos(max(a - w / 2, 0)) away."""
    beam = Cone(width, rings=4 if width else 0)
    distance, side = read_range(Range(beam=beam), Pose((3.0, 4.0, 12.0), from_rpy(0.0, DOWN - tilt, 0.3)))
    rings = [(width / 2.0 * k / 4, math.pi * n / (3 * k)) for k in range(1, 5) for n in range(6 * k)]
    falls = [
        math.cos(tilt) * math.cos(off) - math.sin(tilt) * math.sin(off) * math.sin(a) for off, a in [(0.0, 0.0), *rings]
    ]
    assert side == 0.0
    assert distance == pytest.approx(12.0 / max(falls), rel=1e-12, abs=0.0)
    if tilt >= width / 2.0:
        assert distance == pytest.approx(12.0 / math.cos(tilt - width / 2.0), rel=1e-12, abs=0.0)


@pytest.mark.requirement("DVU-2")
def test_fan_rays_equal_gazebo() -> None:
    """Each ray by itself: Gazebo turns x by the quaternion of (0, -v, h); a single sample lies along the axis."""
    fan = Fan(3, -0.03, 0.05, 4, -0.02, 0.04)
    rays = fan.make_rays()
    assert rays.shape == (12, 3)
    for j, v in enumerate(np.linspace(-0.02, 0.04, 4)):
        for i, h in enumerate(np.linspace(-0.03, 0.05, 3)):
            q = from_rpy(0.0, -float(v), float(h))
            assert rays[3 * j + i] == pytest.approx(rotate(q, (1.0, 0.0, 0.0)), abs=1e-15)
    assert Fan(1, 0.3, 0.7, 1, 0.1, 0.2).make_rays().tolist() == [[1.0, 0.0, 0.0]]
    assert Fan(1, 0.3, 0.7).width == 0.0
    assert fan.width == pytest.approx(0.08, rel=1e-12, abs=0.0)
    pose = Pose((0.0, 0.0, 5.0), from_rpy(0.0, 1.0, 0.0))
    steepest = max(-rotate(pose.rotation, (ray[0], ray[1], ray[2]))[2] for ray in rays.tolist())
    assert read_range(Range(beam=fan), pose)[0] == pytest.approx(5.0 / steepest, rel=1e-13, abs=0.0)


@pytest.mark.requirement("ALT-8")
def test_cone_rays() -> None:
    cone = Cone(0.5, rings=3, axis=(0.0, -2.0, 0.0))
    rays = cone.make_rays()
    assert rays.shape == (1 + 6 + 12 + 18, 3)
    assert np.linalg.norm(rays, axis=1) == pytest.approx(1.0, abs=1e-15)
    angles = np.arccos(np.clip(rays @ np.array([0.0, -1.0, 0.0]), -1.0, 1.0))
    assert angles[1:] == pytest.approx(np.repeat([0.5 / 6, 0.5 / 3, 0.25], [6, 12, 18]), abs=1e-12)
    assert rays[19:].sum(axis=0) == pytest.approx([0.0, -18 * math.cos(0.25), 0.0], abs=1e-12)


@pytest.mark.requirement("DVU-2", "ALT-8")
def test_range_limits() -> None:
    sheet = Range(minimum_range=2.0, maximum_range=8.0, beam=Cone(0.0, 0))
    down = from_rpy(0.0, DOWN, 0.0)
    heights = {1.999: -1.0, 2.0: 0.0, 5.0: 0.0, 8.0: 0.0, 8.001: 1.0}
    for height, side in heights.items():
        distance, found = read_range(sheet, Pose((0.0, 0.0, height), down))
        assert found == side
        assert math.isnan(distance) if side else distance == pytest.approx(height, rel=1e-15, abs=0.0)
    assert read_range(sheet, Pose((0.0, 0.0, 5.0), from_rpy(0.0, -DOWN, 0.0)))[1] == 1.0
    assert read_range(Range(), Pose((0.0, 0.0, 5.0)))[1] == 1.0  # along the ground for ever


@pytest.mark.requirement("DVU-2")
def test_error_beyond_the_limits_gives_no_range() -> None:
    sheet = Range(Noise(stddev=0.5), 0.0, 8.0)
    reading = sheet.apply(np.arange(1000.0), np.full(1000, 7.9), seed=3)
    outside = reading[OUT_OF_RANGE] == 1.0
    assert 300 < outside.sum() < 540  # P(noise > 0.1) = 0.42; 1e-6 is 76 off
    assert np.array_equal(np.isnan(reading["range"]), outside)
    assert np.array_equal(reading.valid, ~outside)
    assert np.nanmax(reading["range"]) <= 8.0
    assert np.all(reading.ideal["range"] == 7.9)
    nothing = sheet.apply(np.arange(3.0), np.array([math.inf, math.nan, 2.0]), seed=3)
    assert nothing[OUT_OF_RANGE].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.requirement("DVU-2")
def test_range_noise_and_resolution() -> None:
    """White noise of the declared deviation (false alarms 1e-6), rounded to the resolution."""
    count, sheet = 40_000, Range(Noise(stddev=0.02, precision=0.001), 0.5, 81.0)
    reading = sheet.apply(np.arange(count) / 7.0, np.full(count, 30.0), seed=8)
    off = reading["range"] - 30.0
    assert abs(off.mean()) < 4.9 * 0.02 / math.sqrt(count)
    assert abs(off.var() / (0.02**2 + 1e-6 / 12.0) - 1.0) < 4.9 * math.sqrt(2.0 / count)
    assert np.abs(reading["range"] / 0.001 - np.round(reading["range"] / 0.001)).max() < 1e-9


def harmonic(water: Water, top: float, foot: float) -> float:
    """Return the speed that sound has on average between two depths, by adaptive quadrature."""

    def slowness(depth: float) -> float:
        return 1.0 / float(water.sound_speed_at(np.array([depth]))[0])

    return (foot - top) / quad(slowness, top, foot, epsabs=0.0, epsrel=1e-11)[0]


@pytest.mark.requirement("ALT-8")
@pytest.mark.parametrize("tilt", [0.0, 0.8])
def test_assumed_speed_of_sound_scales_the_range(tilt: float) -> None:
    water = Water(surface=3.0, depths=(0.0, 400.0), temperatures=(295.0, 278.0), salinities=(34.0, 35.0))
    bed = Environment(scene=Scene((Body("bed", Plane(), Pose((0.0, 0.0, -500.0))),)), water=water)
    pose = Pose((0.0, 0.0, -20.0), from_rpy(0.0, DOWN - tilt, 0.0))
    true = 480.0 / math.cos(tilt)
    distance, _ = read_range(Range(sound=Sound(1500.0)), pose, bed)
    assert distance == pytest.approx(true * 1500.0 / harmonic(water, 23.0, 503.0), rel=2e-6, abs=0.0)
    assert read_range(Range(sound=Sound()), pose, bed)[0] == pytest.approx(true, rel=1e-14, abs=0.0)
    same = replace(bed, water=Water(sound_speed=1450.0))
    assert read_range(Range(sound=Sound(1500.0)), pose, same)[0] == pytest.approx(
        true * 1500.0 / 1450.0, rel=1e-14, abs=0.0
    )
    assert read_range(Range(sound=Sound(1500.0)), pose, replace(bed, water=None))[0] == pytest.approx(
        true, rel=1e-14, abs=0.0
    )


@pytest.mark.requirement("ALT-8")
def test_sonar_has_no_echo_across_the_surface() -> None:
    scene = Scene((Body("bed", Plane(), Pose((0.0, 0.0, -10.0))), Body("bridge", Box(), Pose((0.0, 0.0, 8.0)))))
    sea = Environment(scene=scene, water=Water(surface=1.0))
    up, down = from_rpy(0.0, -DOWN, 0.0), from_rpy(0.0, DOWN, 0.0)
    acoustic, light = Range(sound=Sound(1500.0)), Range()
    assert read_range(acoustic, Pose((0.0, 0.0, 2.0), down), sea)[1] == 1.0
    assert read_range(acoustic, Pose((0.0, 0.0, 0.0), up), sea)[1] == 1.0
    assert read_range(acoustic, Pose((0.0, 0.0, 0.0), down), sea)[1] == 0.0
    assert read_range(light, Pose((0.0, 0.0, 2.0), down), sea) == (12.0, 0.0)
    assert read_range(light, Pose((0.0, 0.0, 0.0), up), sea)[0] == pytest.approx(7.5, rel=1e-12, abs=0.0)


# worlds: bodies that move, one's own hull, files


def world(*solids: Solid, sheet: Sensor | None = None, rate: float = 10.0) -> World:
    """Return a robot at rest that looks along x from (0, 0, 2), and a buoy 10 m ahead of it."""
    robot = Model("robot", (Link("robot::hull"),), "robot::hull", Pose((0.0, 0.0, 2.0)))
    buoy = Model(
        "buoy", (Link("buoy::body"), Link("buoy::mast", Pose((0.0, 0.0, 1.0)))), "buoy::body", Pose((10.0, 0.0, 2.0))
    )
    eye = MountedSensor("robot::hull::eye", sheet or Range(), "robot", "robot::hull", rate, topic="/eye", frame="eye")
    return World("w", (robot, buoy), (eye,), max_step_size=0.05, solids=solids)


BALL = Solid("buoy::body::ball", "buoy::body", Sphere(1.0))
APPROACH = waypoints(
    (0.0, 4.0, 8.0), [Pose((10.0, 0.0, 2.0)), Pose((6.0, 0.3, 2.0)), Pose((12.0, 0.0, 2.0))], loop=False
)


def expected(time: Any) -> Any:
    """Return the distance (n,) of a ball of 1 m whose middle is where `APPROACH` has it, along x from (0, 0, 2)."""
    place = APPROACH.at(time).position_w - [0.0, 0.0, 2.0]
    return place[:, 0] - np.sqrt(1.0 - place[:, 1] ** 2 - place[:, 2] ** 2)


@pytest.mark.requirement("DVU-2")
def test_motion_argument_moves_the_bodies() -> None:
    still = ns.simulate(world(BALL), 1.0, seed=1)["robot::hull::eye"]
    assert np.all(still["range"] == 9.0)
    moved = ns.simulate(world(BALL), 8.0, seed=1, motion={"buoy": APPROACH})["robot::hull::eye"]
    assert moved["range"] == pytest.approx(expected(moved.time), rel=1e-12, abs=0.0)
    assert np.ptp(moved["range"]) > 4.0
    stepped = [
        step.readings["robot::hull::eye"]["range"]
        for step in ns.live(world(BALL), seed=1, motion={"buoy": APPROACH})
        if "robot::hull::eye" in step.readings
    ]
    assert np.array_equal(np.concatenate(stepped)[:80], moved["range"])


@pytest.mark.requirement("DVU-2", "LIV-1")
def test_ray_hits_a_driven_model_at_its_driven_pose() -> None:
    found = []
    with ns.live(world(BALL, rate=20.0), seed=1, driven=["buoy"]) as sim:
        for k in range(40):
            state = State(Pose((10.0 - 0.1 * k, 0.0, 2.0)), (-2.0, 0.0, 0.0))
            found.append(float(sim.step({"buoy": state}).readings["robot::hull::eye"]["range"][0]))
    assert found == pytest.approx([9.0 - 0.1 * k for k in range(40)], rel=1e-12, abs=0.0)


@pytest.mark.requirement("DVU-2", "LIV-1")
def test_driven_link_moves_its_surfaces() -> None:
    """The mast is driven separately; the ball stays on the buoy's hull, farther away."""
    mast = Solid("buoy::mast::top", "buoy::mast", Box((1.0, 1.0, 1.0)))
    with ns.live(world(BALL, mast, rate=20.0), seed=1, driven=["mast"]) as sim:
        for k in range(10):
            state = State(Pose((6.0 - 0.1 * k, 0.0, 2.0)), (-2.0, 0.0, 0.0))
            found = float(sim.step({"mast": state}).readings["eye"]["range"][0])
            assert found == pytest.approx(5.5 - 0.1 * k, rel=1e-12, abs=0.0)
        aside = State(Pose((6.0, 9.0, 2.0)))
        assert float(sim.step({"mast": aside}).readings["eye"]["range"][0]) == pytest.approx(9.0, rel=1e-12, abs=0.0)


@pytest.mark.requirement("DVU-2")
def test_non_canonical_link_moves_its_surfaces() -> None:
    mast = Solid("buoy::mast::top", "buoy::mast", Box((1.0, 1.0, 1.0)), Pose((2.0, 0.0, -1.0)))
    turned = Stationary(Pose((10.0, 0.0, 2.0), from_rpy(0.0, 0.0, math.pi / 2)))  # the box then stands off to the side
    assert ns.simulate(world(mast), 0.1, seed=1)["robot::hull::eye"]["range"][0] == pytest.approx(
        11.5, rel=1e-12, abs=0.0
    )
    run = ns.simulate(world(mast), 0.1, seed=1, motion={"buoy": turned})
    assert run["robot::hull::eye"][OUT_OF_RANGE][0] == 1.0


@pytest.mark.requirement("DVU-2")
def test_own_hull_is_ignored_by_default() -> None:
    hull = Solid("robot::hull::skin", "robot::hull", Sphere(0.5))
    name = "robot::hull::eye"
    assert ns.simulate(world(hull, BALL), 0.1, seed=1)[name]["range"][0] == 9.0
    assert ns.simulate(world(hull, BALL, sheet=Range(own_hull=True)), 0.1, seed=1)[name]["range"][0] == 0.5


def make_lazy_shape(make: Callable[[], Shape], asked: list[str]) -> LazyShape:
    def read_it() -> Shape:
        asked.append("read")
        return make()

    return LazyShape(read_it)


def broken() -> Shape:
    raise FieldError("mesh", "no triangle", where=Where("hull.stl"), allowed="must have one")


@pytest.mark.requirement("DVU-2")
def test_surface_files_are_read_before_the_first_sample_if_reachable() -> None:
    asked: list[str] = []
    ball = replace(BALL, shape=make_lazy_shape(partial(Sphere, 1.0), asked))
    bare = world(ball)
    ns.simulate(replace(bare, sensors=()), 0.1, seed=1)
    assert asked == []
    for _ in range(2):
        assert ns.simulate(bare, 0.1, seed=1)["robot::hull::eye"]["range"][0] == 9.0
    assert asked == ["read"]
    hull = Solid("robot::hull::skin", "robot::hull", LazyShape(broken), where=Where("dive.sdf", 7))
    assert ns.simulate(world(BALL, hull), 0.1, seed=1)["robot::hull::eye"]["range"][0] == 9.0
    with pytest.raises(FieldError) as caught:
        ns.simulate(world(BALL, hull, sheet=Range(own_hull=True)), 0.1, seed=1)
    assert str(caught.value) == "dive.sdf:7: surface robot::hull::skin: hull.stl: mesh: no triangle; must have one"


@pytest.mark.requirement("DVU-2")
def test_many_rays_are_cast_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """More rays than one block: a row is equal in blocks, at once and alone."""
    sheet = Range(beam=Fan(8, -0.3, 0.3, 8, -0.3, 0.3))
    path = [Pose((0.0, 0.0, 5.0), from_rpy(0.0, 1.0, 0.0)), Pose((3.0, 0.0, 9.0), from_rpy(0.1, 1.2, 0.0))]
    motion, ticks = waypoints((0.0, 4.0), path), Ticks(np.arange(7, dtype=np.int64), 2.0)
    complete = sheet.ideal(motion, BED, ticks)["range"].tolist()
    monkeypatch.setattr("navsense.sensors.range._BATCH_SIZE", 150)
    assert sheet.ideal(motion, BED, ticks)["range"].tolist() == complete
    alone = [sheet.ideal(motion, BED, replace(ticks, index=ticks.index[k : k + 1]))["range"][0] for k in range(7)]
    assert alone == complete


@pytest.mark.requirement("DVU-2", "ALT-8")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Range(minimum_range=-1.0), "minimum_range (m): -1.0; must be at least 0"),
        (lambda: Range(minimum_range=3.0, maximum_range=3.0), "maximum_range (m): 3.0; must be above the minimum, 3 m"),
        (lambda: Range(maximum_range=math.nan), "maximum_range (m): nan"),
        (lambda: Fan(0), "horizontal_samples of a beam: 0; must be a whole number"),
        (lambda: Fan(vertical_samples=1.5), "vertical_samples of a beam: 1.5"),  # type: ignore[arg-type]
        (lambda: Fan(2, 0.2, 0.1), "horizontal_maximum of a beam (rad): 0.1; must be from 0.2"),
        (lambda: Fan(2, 0.0, math.inf), "horizontal_maximum of a beam (rad): inf"),
        (lambda: Fan(1000, 0.0, 0.1, 1000), "rays of a beam: 1000000; must be at most"),
        (lambda: Cone(-0.1), "width of a beam (rad): -0.1"),
        (lambda: Cone(0.1, rings=1000), "rings of a beam: 1000"),
        (lambda: Cone(0.1, axis=(0.0, 0.0, 0.0)), "axis of a beam: (0.0, 0.0, 0.0)"),
        (lambda: Sound(0.0), "assumed speed of sound (m/s): 0.0"),
    ],
)
def test_impossible_range_sensors_are_an_error(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(SensorError) as caught:
        make()
    assert str(caught.value).startswith(message)


@pytest.mark.requirement("ALT-8")
def test_description_names_the_target() -> None:
    lines = Range(
        minimum_range=0.5, maximum_range=100.0, beam=Cone(math.radians(10.0), 2), sound=Sound(1500.0)
    ).describe(5.0)
    assert lines[0] == "limits: 0.5 to 100 m"
    assert lines[1] == "beam: sound, assumes 1500 m/s, 10 deg wide; range of the nearest of 19 rays"
    assert "rays; rays can hit the model of the sensor" in Range(own_hull=True).describe(5.0)[1]

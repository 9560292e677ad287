"""DVL plug-ins of the UUV Simulator and of Woods Hole: sensors, and the documented examples as recordings."""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense import sdf
from navsense.core.pose import Pose
from navsense.core.typing import FloatArray
from navsense.description import describe
from navsense.messages.base import IS_ON
from navsense.messages.dvl import make_state_encoder
from navsense.motion.trajectory import Trajectory
from navsense.noise.specification import Noise
from navsense.sdf import schema
from navsense.sensors import Adcp, Cone, CoordinateSystem, Fan, Sound
from navsense.sensors.doppler import (
    Beams,
    BeamWeighting,
    DvlMessageOptions,
    MessageDialect,
    TrackErrors,
    WaterMassLayer,
    make_dsros_beams,
)
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.simulation.fidelity import apply_fidelity
from navsense.world import MountedSensor, World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

needs_xacro = pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="needs the extra xacro")

WORLDS = Path(__file__).resolve().parents[1] / "worlds"

ELEMENTS = {
    "robotNamespace": "dvl",
    "topicName": "dvl",
    "rangesTopicName": "ranges",
    "frameName": "base",
    "pointcloudFrame": "base",
    "updateRateHZ": "7.0",
    "gaussianNoiseBeamVel": "0.005",
    "gaussianNoiseBeamRange": "0.1",
    "minRange": "0.7",
    "maxRange": "90.0",
    "maxRangeDiff": "10",
    "beamAngleDeg": "30.0",
    "beamWidthDeg": "4.0",
    "beamAzimuthDeg1": "-135",
    "beamAzimuthDeg2": "135",
    "beamAzimuthDeg3": "45",
    "beamAzimuthDeg4": "-45",
    "pos_z_down": "false",
}
"""The documented example of the ds_sim plug-in, one element per line."""

FIRST = 8
"""Line of the first element in `wrap_in_link`."""

WATER = {"enableWaterTrack": "1"}

CROSS = tuple(math.radians(a) for a in (-135.0, 135.0, 45.0, -45.0))


def make_woods_hole_sensor(
    change: dict[str, str | None] | None = None, plugin: str = "libdsros_ros_dvl.so", rate: str = "7.0"
) -> str:
    """Return a sensor with changed elements. None removes an element."""
    inside = [f"<{tag}>{text}</{tag}>" for tag, text in (ELEMENTS | (change or {})).items() if text is not None]
    head = ['<sensor name="dvl" type="dsros_dvl">', f"<update_rate>{rate}</update_rate>"]
    return "\n".join([*head, f'<plugin filename="{plugin}" name="p">', *inside, "</plugin></sensor>"])


def get_spec(sensor: MountedSensor) -> Dvl:
    assert isinstance(sensor.spec, Dvl)
    return sensor.spec


def list_warnings(world: World) -> list[tuple[str, str]]:
    return [(note.what, note.reason) for note in world.notes if note.kind == "warning"]


def make_motion(yaw: float, velocity: tuple[float, float, float]) -> Trajectory:
    """Return a motion with a constant velocity (m/s, world) and yaw (rad), from 10 m below the origin."""
    there = [0.0, 0.0, -10.0, math.cos(yaw / 2.0), 0.0, 0.0, math.sin(yaw / 2.0)]
    return Trajectory(np.array([0.0, 100.0]), np.array([[[*velocity, 0.0, 0.0, 0.0, 0.0], there]]))


BED = (
    '<model name="bed"><static>1</static><pose>0 0 -30 0 0 0</pose><link name="l"><collision name="c"><geometry>'
    "<plane/></geometry></collision></link></model>"
)


DEEP = BED.replace("0 0 -30", "0 0 -110") + (
    '<navsense:current><stratified><layer depth="0">0.4 0 0</layer><layer depth="110">0 0.3 0</layer>'
    "</stratified></navsense:current>"
)

# Woods Hole

LOW = 1.4e-3
"""Terrain bias of a pattern 4 degrees wide at 30 degrees over a level bed: 0.132 %."""


def make_crossed_beams(width: float) -> Beams:
    """Return beams in a cross, with z of the sensor up."""
    return make_dsros_beams(math.radians(30.0), CROSS, pos_z_down=False, width=width)


@pytest.mark.requirement("DVW-1", "GAP-2")
def test_part_keeps_a_noise_of_zero_in_the_plugin(load: Load, wrap_in_link: Text) -> None:
    """A `<gaussianNoiseBeamVel>` of 0 is an explicit value. Without the element the part supplies the noise."""
    for stddev, expected in (("0", 0.0), (None, Dvl.from_part("dvl1000").bottom.noise.stddev)):
        text = make_woods_hole_sensor({"gaussianNoiseBeamVel": stddev})
        text = text.replace("<update_rate>", "<navsense:part>dvl1000</navsense:part><update_rate>")
        assert get_spec(load(wrap_in_link(text)).sensors[0]).bottom.noise.stddev == expected
    assert expected > 0.0


@pytest.mark.requirement("DVW-1", "DVW-2", "SDF-1", "WTR-1")
def test_ds_sim_sensor_is_read(load: Load, wrap_in_link: Text) -> None:
    """By default, the water track has twice the noise of the bottom track."""
    world = load(wrap_in_link(make_woods_hole_sensor()))
    (found,) = world.sensors
    assert found.spec == Dvl(
        beams=replace(make_crossed_beams(math.radians(4.0)), weighting=BeamWeighting.PATTERN),
        minimum_range=0.7,
        maximum_range=90.0,
        bottom=TrackErrors(Noise(stddev=0.005)),
        water=TrackErrors(Noise(stddev=0.01)),
        range_noise=Noise(stddev=0.1),
        dialect=MessageDialect.DSROS,
        message_options=DvlMessageOptions("/dvl/ranges", "base", Pose()),
    )
    assert (found.name, found.topic, found.frame, found.rate) == ("auv::base::dvl", "/dvl/dvl", "base", 7.0)
    assert list_warnings(world) == []
    assert "dvl at 7 Hz on true time, topic /dvl/dvl" in "\n".join(describe(world))


@pytest.mark.requirement("DVW-2")
@pytest.mark.parametrize("down", ["true", "false"])
def test_ds_sim_beam_axes_equal_the_plugin(load: Load, wrap_in_link: Text, down: str) -> None:
    """ds_sim's code rotates the z axis of a beam by azimuth and angle. Values for 30 degrees are manual."""
    (found,) = load(wrap_in_link(make_woods_hole_sensor({"pos_z_down": down}))).sensors
    s, c = 0.5 * math.sqrt(0.5), math.sqrt(0.75)
    axes = {
        "true": [(s, s, c), (s, -s, c), (-s, -s, c), (-s, s, c)],
        "false": [(-s, -s, -c), (-s, s, -c), (s, s, -c), (s, -s, -c)],
    }[down]
    np.testing.assert_allclose(get_spec(found).beams.axes, axes, atol=1e-15, rtol=0.0)


@pytest.mark.requirement("DVW-1", "DVW-6")
def test_classic_has_the_same_spec_with_other_rules(load: Load, wrap_in_link: Text) -> None:
    """A fidelity that is selected for the run equals one that is selected on loading."""
    (found,) = load(wrap_in_link(make_woods_hole_sensor(WATER)), fidelity="classic").sensors
    (other,) = apply_fidelity(load(wrap_in_link(make_woods_hole_sensor(WATER))), "classic").sensors
    assert get_spec(found).classic
    assert get_spec(found) == get_spec(other)


def list_readings(world: World) -> list[Any]:
    """Return the readings and topics of the Doppler instruments of a world, on a dive from 100 m to 30 m."""
    run = ns.simulate(world, 2.0, seed=1, motion={"auv": make_motion(0.3, (1.0, 0.5, -35.0))})
    found: list[Any] = []
    for sensor in world.sensors:
        names = get_spec(sensor).message_options if isinstance(sensor.spec, Dvl) else None
        arrays = {name: array.tobytes() for name, array in run[sensor.name].arrays.items()}
        found.append((sensor.rate, sensor.topic, sensor.frame, names, run[sensor.name].emitted.tobytes(), arrays))
    return found


SLOW = (1.0, 0.5, 0.0)
"""Velocity (m/s) over a level bed at which each element shows its effect."""


def make_level_motion(height: float) -> Trajectory:
    """Return a motion at `SLOW` with a yaw of 0.3 rad, `height` (m) above the bed of `DEEP`."""
    there = [0.0, 0.0, height - 110.0, math.cos(0.15), 0.0, 0.0, math.sin(0.15)]
    return Trajectory(np.array([0.0, 100.0]), np.array([[[*SLOW, 0.0, 0.0, 0.0, 0.0], there]]))


@dataclass(frozen=True)
class DeepDive:
    """A world with one DVL, and its readings with the bottom in range and out of range."""

    world: World
    shallow: ns.Reading
    deep: ns.Reading

    @property
    def sensor(self) -> MountedSensor:
        return self.world.sensors[0]

    @property
    def spec(self) -> Dvl:
        return get_spec(self.sensor)

    def at(self, height: float) -> ns.Reading:
        return ns.simulate(self.world, 2.0, seed=1, motion={"auv": make_level_motion(height)})["auv::base::dvl"]


def simulate_dive(world: World) -> DeepDive:
    runs = [
        ns.simulate(world, 2.0, seed=1, motion={"auv": make_level_motion(h)})["auv::base::dvl"] for h in (30.0, 100.0)
    ]
    assert (runs[0]["velocity_mode"][2:] == 1.0).all() or get_spec(world.sensors[0]).beams.axes[0, 2] > 0.0
    assert (runs[1]["velocity_mode"][2:] != 1.0).all()
    return DeepDive(world, *runs)


def select_errors(reading: ns.Reading, name: str) -> FloatArray:
    """Return the errors of a reading from its third sample on, after the first echoes."""
    return np.asarray(reading[name] - reading.ideal[name])[2:]


def is_close(found: FloatArray, expected: FloatArray, far: float = 1e-9) -> None:
    """Compare values of size 1. Differences of readings and truths up to 1e2 are rounded to 1e-14."""
    assert np.isfinite(expected).any()
    np.testing.assert_allclose(found, expected, rtol=far, atol=1e-12)


def has_same_readings(before: DeepDive, after: DeepDive) -> None:
    for first, second in ((before.shallow, after.shallow), (before.deep, after.deep)):
        assert first.arrays.keys() == second.arrays.keys()
        for name in first.arrays:
            np.testing.assert_array_equal(first[name], second[name])


def make_name_check(field: str, text: str) -> Callable[[DeepDive, DeepDive], None]:
    """Return a check that one name in topics or messages becomes `text` and no reading changes."""

    def check(before: DeepDive, after: DeepDive) -> None:
        of = after.sensor if field in ("topic", "frame") else after.spec.message_options
        was = before.sensor if field in ("topic", "frame") else before.spec.message_options
        assert getattr(of, field) == text != getattr(was, field)
        has_same_readings(before, after)

    return check


def check_namespace(before: DeepDive, after: DeepDive) -> None:
    assert (before.sensor.topic, before.spec.message_options.ranges_topic) == ("/dvl/dvl", "/dvl/ranges")
    assert (after.sensor.topic, after.spec.message_options.ranges_topic) == ("/auv/dvl", "/auv/ranges")
    has_same_readings(before, after)


def check_rotated_frame(before: DeepDive, after: DeepDive) -> None:
    """The other link is rolled by 0.3 rad. Classic adds the water track noise in the frame of the message."""
    assert after.sensor.frame == "tilted"
    c, s = math.cos(0.3), math.sin(0.3)
    back = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])
    for first, second in ((before.shallow, after.shallow), (before.deep, after.deep)):
        is_close(second.ideal["velocity"][2:], first.ideal["velocity"][2:] @ back.T)
        as_given = before.spec.classic and first is before.deep
        is_close(
            select_errors(second, "velocity"), select_errors(first, "velocity") @ (np.eye(3) if as_given else back.T)
        )


def check_cloud_frame(before: DeepDive, after: DeepDive) -> None:
    """The other link is 1 m ahead and rolled by 0.3 rad: in it, the sensor is 1 m behind and rolled back."""
    names = after.spec.message_options
    assert names.pointcloud_frame == "tilted"
    assert names.pointcloud_pose.position == pytest.approx((-1.0, 0.0, 0.0), abs=1e-15)
    assert names.pointcloud_pose.rotation == pytest.approx((math.cos(0.15), -math.sin(0.15), 0.0, 0.0), abs=1e-15)
    has_same_readings(before, after)


def check_rate(before: DeepDive, after: DeepDive) -> None:
    assert (before.sensor.rate, after.sensor.rate) == (7.0, 2.0)
    assert before.shallow.time == pytest.approx(np.arange(14) / 7.0, abs=1e-12)
    assert after.shallow.time == pytest.approx(np.arange(4) / 2.0, abs=1e-12)


def check_bottom_noise(before: DeepDive, after: DeepDive) -> None:
    """The noise changes from 0.005 to 0.02. The default of the water track is twice as much."""
    for first, second in ((before.shallow, after.shallow), (before.deep, after.deep)):
        is_close(select_errors(second, "velocity"), 4.0 * select_errors(first, "velocity"))
    assert (after.spec.bottom.noise.stddev, after.spec.water.noise.stddev) == (0.02, 0.04)


def check_water_noise(before: DeepDive, after: DeepDive) -> None:
    is_close(select_errors(after.deep, "velocity"), 0.75 * select_errors(before.deep, "velocity"))
    is_close(select_errors(after.shallow, "velocity"), select_errors(before.shallow, "velocity"))
    assert (before.spec.water.noise.stddev, after.spec.water.noise.stddev) == (0.01, 0.0075)


def check_range_noise(before: DeepDive, after: DeepDive) -> None:
    is_close(select_errors(after.shallow, "beam_range"), 3.0 * select_errors(before.shallow, "beam_range"))


def check_minimum_range(before: DeepDive, after: DeepDive) -> None:
    """At 2.5 m, the slant range of 2.9 m is valid from 0.7 m and invalid from 5 m. Its noise is 0.1 m."""
    assert (before.at(2.5)["beam_valid"][2:] == 1.0).all()
    assert (after.at(2.5)["beam_valid"][2:] == 0.0).all()
    is_close(after.shallow["velocity"][2:], before.shallow["velocity"][2:])


def check_maximum_range(before: DeepDive, after: DeepDive) -> None:
    """At 50 m, the slant range of 57.7 m is valid up to 90 m and invalid up to 50 m; 34.6 m is valid."""
    assert (before.at(50.0)["velocity_mode"][2:] == 1.0).all()
    assert (after.at(50.0)["velocity_mode"][2:] == 2.0).all()
    is_close(after.shallow["velocity"][2:], before.shallow["velocity"][2:])


def check_beam_angle(before: DeepDive, after: DeepDive) -> None:
    """A slant range is h / cos a. A pattern that is 4 degrees wide changes it by less than `LOW`."""
    ratio = math.cos(math.radians(30.0)) / math.cos(math.radians(25.0))
    slack = 1e-9 if before.spec.classic else LOW
    is_close(after.shallow.ideal["beam_range"][2:], ratio * before.shallow.ideal["beam_range"][2:], slack)


def check_beam_width(before: DeepDive, after: DeepDive) -> None:
    """Half the width leaves a quarter of the effect of the pattern on the speed, and none on the range."""
    axis = 30.0 / math.cos(math.radians(30.0))
    for flight in (before, after):
        assert flight.shallow.ideal["beam_range"][-1] == pytest.approx([axis] * 4, rel=1e-12, abs=0.0)
    if before.spec.classic:
        has_same_readings(before, after)
        return
    true = math.hypot(*SLOW)
    speeds = [math.hypot(*flight.shallow.ideal["velocity"][-1].tolist()) for flight in (before, after)]
    off = [1.0 - speed / true for speed in speeds]
    assert off[0] > 1e-3
    assert off[1] == pytest.approx(0.25 * off[0], rel=0.02, abs=0.0)  # the next term is of fourth order in the width


def make_azimuth_check(index: int, degrees: float) -> Callable[[DeepDive, DeepDive], None]:
    """Return a check that one beam has another azimuth, and its velocity is along the new axis."""

    def check(before: DeepDive, after: DeepDive) -> None:
        a, z = math.radians(30.0), math.radians(degrees)
        axes = before.spec.beams.axes.copy()
        axes[index] = (math.sin(a) * math.cos(z), math.sin(a) * math.sin(z), -math.cos(a))
        np.testing.assert_allclose(after.spec.beams.axes, axes, rtol=0.0, atol=1e-15)
        yaw = np.array([[math.cos(0.3), math.sin(0.3)], [-math.sin(0.3), math.cos(0.3)]])
        along = axes[:, :2] @ (yaw @ np.array(SLOW[:2]))
        slack = 1e-9 if before.spec.classic else LOW
        is_close(after.shallow.ideal["beam_velocity"][-1], along, slack)
        others = [k for k in range(4) if k != index]
        is_close(after.shallow.ideal["beam_velocity"][-1][others], before.shallow.ideal["beam_velocity"][-1][others])

    return check


def check_upward_beams(before: DeepDive, after: DeepDive) -> None:
    """Upward beams have no echo."""
    np.testing.assert_allclose(after.spec.beams.axes[:, 2], -before.spec.beams.axes[:, 2], rtol=0.0, atol=1e-15)
    assert (after.shallow["beam_valid"][2:] == 0.0).all()
    assert (after.shallow["velocity_mode"][2:] == 2.0).all()


def check_water_track_off(before: DeepDive, after: DeepDive) -> None:
    assert np.isfinite(before.deep["velocity"][2:]).all()
    assert np.isnan(after.deep["velocity"]).all()
    is_close(after.shallow["velocity"][2:], before.shallow["velocity"][2:])


def check_current_topic(before: DeepDive, after: DeepDive) -> None:
    """The current of the world acts with any topic, with a warning."""
    expected = ("<plugin><ocean_current_topic>: flow", "nothing publishes it: the world's current, on ")
    assert [(element, reason[: len(expected[1])]) for element, reason in list_warnings(after.world)] == [expected]
    has_same_readings(before, after)


def make_profile_check(cells: int, coordinates: CoordinateSystem) -> Callable[[DeepDive, DeepDive], None]:
    """Return a check that a second sensor measures cells."""

    def check(before: DeepDive, after: DeepDive) -> None:
        (other,) = after.world.sensors[1:]
        assert isinstance(other.spec, Adcp)
        assert (other.spec.cells.count, other.spec.coordinates) == (cells, coordinates)
        has_same_readings(before, after)

    return check


def check_cloud_points(before: DeepDive, after: DeepDive) -> None:
    assert (before.spec.message_options.cloud_points, after.spec.message_options.cloud_points) == (2, 1000)
    has_same_readings(before, after)


def check_unsupported(before: DeepDive, after: DeepDive) -> None:
    assert after.spec == before.spec
    has_same_readings(before, after)


BEAMS_TURNED = {f"beamAzimuthDeg{i + 1}": make_azimuth_check(i, a) for i, a in enumerate((-130.0, 130.0, 40.0, -40.0))}

EFFECTS: dict[str, tuple[str, Callable[[DeepDive, DeepDive], None]]] = {
    "robotNamespace": ("auv", check_namespace),
    "topicName": ("velocity", make_name_check("topic", "/dvl/velocity")),
    "rangesTopicName": ("/ranges", make_name_check("ranges_topic", "/ranges")),
    "frameName": ("tilted", check_rotated_frame),
    "pointcloudFrame": ("tilted", check_cloud_frame),
    "updateRateHZ": ("2", check_rate),
    "gaussianNoiseBeamVel": ("0.02", check_bottom_noise),
    "gaussianNoiseBeamWtrVel": ("0.0075", check_water_noise),
    "gaussianNoiseBeamRange": ("0.3", check_range_noise),
    "minRange": ("5", check_minimum_range),
    "maxRange": ("50", check_maximum_range),
    "maxRangeDiff": ("20", check_unsupported),
    "beamAngleDeg": ("25", check_beam_angle),
    "beamWidthDeg": ("2", check_beam_width),
    "beamAzimuthDeg1": ("-130", BEAMS_TURNED["beamAzimuthDeg1"]),
    "beamAzimuthDeg2": ("130", BEAMS_TURNED["beamAzimuthDeg2"]),
    "beamAzimuthDeg3": ("40", BEAMS_TURNED["beamAzimuthDeg3"]),
    "beamAzimuthDeg4": ("-40", BEAMS_TURNED["beamAzimuthDeg4"]),
    "pos_z_down": ("true", check_upward_beams),
    "enableWaterTrack": ("0", check_water_track_off),
    "ocean_current_topic": ("flow", check_current_topic),
    "waterTrackBins": ("10", make_profile_check(10, CoordinateSystem.BEAM)),
    "currentProfileCoordMode": ("1", make_profile_check(1, CoordinateSystem.INSTRUMENT)),
    "stratified_ocean_current_topic": ("layers", check_unsupported),
    "collide_bitmask": ("0x0002", check_unsupported),
    "navsense:cloud_points": ("1000", check_cloud_points),
}
"""Each element: another value, and the check of its effect."""


@pytest.mark.compiled
@pytest.mark.requirement("DVW-1", "WTR-1")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
@pytest.mark.parametrize("tag", EFFECTS)
def test_every_ds_sim_element_has_an_effect(load: Load, wrap_in_link: Text, tag: str, fidelity: str) -> None:
    more = '</link><link name="tilted"><pose>1 0 0 0.3 0 0</pose>'
    text, check = EFFECTS[tag]
    texts = (wrap_in_link(make_woods_hole_sensor({**WATER, **change}) + more) for change in ({}, {tag: text}))
    before, after = (
        simulate_dive(load(text.replace("</world>", f"{DEEP}</world>"), fidelity=fidelity)) for text in texts
    )
    noted = [note.reason for note in after.world.notes if note.what == f"<plugin><{tag}>"]
    if check is check_unsupported:
        assert len(noted) == 1
    check(before, after)


@pytest.mark.requirement("DVW-6")
def test_elements_without_effect_in_classic_are_listed(load: Load, wrap_in_link: Text) -> None:
    """As in the plug-in, beams are one ray at any width, and the layer ends at the bottom."""
    text = wrap_in_link(
        make_woods_hole_sensor(WATER).replace("</plugin>", '<navsense:layer far="24" share="0.5"/></plugin>')
    )
    listed = {"<plugin><beamWidthDeg>", "<navsense:layer share>"}
    for fidelity, left_out in (("physical", set[str]()), ("classic", listed)):
        world = load(text, fidelity=fidelity)
        assert {note.what for note in world.notes if "classic" in note.reason} == left_out
    thin, wide = (
        load(
            wrap_in_link(make_woods_hole_sensor({"beamWidthDeg": width})).replace("</world>", f"{DEEP}</world>"),
            fidelity="classic",
        )
        for width in ("1", "8")
    )
    assert list_readings(thin) == list_readings(wide)


def test_list_of_ds_sim_elements_is_complete() -> None:
    known = schema.DSROS_DVL_PLUGIN
    own = {f"navsense:{name}" for name in ("layer", "bottom_track", "water_track", "strength", "long_term")}
    assert EFFECTS.keys() | own == known.children | known.unsupported.keys()


@pytest.mark.requirement("DVW-1")
@pytest.mark.parametrize(
    ("own", "plugin", "rate", "note"),
    [
        ("7.0", "7.0", 7.0, None),
        ("10", "12.0", 10.0, "and 10 Hz of <update_rate>: the smaller one is used"),
        ("10", "2", 2.0, "and 10 Hz of <update_rate>: the smaller one is used"),
        ("5", None, 1.0, "is absent: the default is 1 Hz"),
        ("0", "4", 4.0, "and 1000 Hz of <update_rate>: the smaller one is used"),
    ],
)
def test_smaller_of_two_rates_applies(
    load: Load, wrap_in_link: Text, own: str, plugin: str | None, rate: float, note: str | None
) -> None:
    world = load(wrap_in_link(make_woods_hole_sensor({"updateRateHZ": plugin}, rate=own)))
    assert world.sensors[0].rate == rate
    assert [reason for _, reason in list_warnings(world)] == ([] if note is None else [note])


@pytest.mark.requirement("DVW-1")
def test_topics_with_and_without_namespace(load: Load, wrap_in_link: Text) -> None:
    complete = {"topicName": "/a/b", "rangesTopicName": "/c", "robotNamespace": None}
    world = load(wrap_in_link(make_woods_hole_sensor(complete)))
    assert (world.sensors[0].topic, get_spec(world.sensors[0]).message_options.ranges_topic) == ("/a/b", "/c")
    assert list_warnings(world) == []
    lacking = load(
        wrap_in_link(make_woods_hole_sensor({"robotNamespace": None, "topicName": "v", "rangesTopicName": None}))
    )
    assert (lacking.sensors[0].topic, get_spec(lacking.sensors[0]).message_options.ranges_topic) == (
        "/auv/v",
        "/dvl_ranges",
    )
    assert list_warnings(lacking) == [
        ("<plugin><robotNamespace>", "is absent: topics are in /auv, the namespace of the model")
    ]


FRAMES = """</link>
<link name="dvl_link"><pose>1.5 0 -0.5 3.141592653589793 0 0</pose>
"""


@pytest.mark.requirement("DVW-1", "DVW-3")
@pytest.mark.parametrize(
    ("frame", "velocity"), [("base", (0.5, -1.0, 0.25)), ("dvl_link", (0.5, 1.0, -0.25)), ("keel", (0.5, 1.0, -0.25))]
)
def test_ds_sim_velocity_frame(
    load: Load, wrap_in_world: Text, frame: str, velocity: tuple[float, float, float]
) -> None:
    """A robot that heads north moves 0.5 forward, 1 to the right, 0.25 up. z of the sensor is down."""
    sensor = make_woods_hole_sensor({"frameName": frame, "pointcloudFrame": "base", "pos_z_down": "true"})
    text = f'<model name="auv"><link name="base">{FRAMES}{sensor}</link></model>'
    world = load(wrap_in_world(text + BED))
    (found,) = world.sensors
    assert found.frame == frame
    assert any("is not a link of the" in reason for _, reason in list_warnings(world)) == (frame == "keel")
    run = ns.simulate(world, 2.0, seed=1, motion={"auv": make_motion(math.pi / 2.0, (1.0, 0.5, 0.25))})
    np.testing.assert_allclose(run[found.name].ideal["velocity"][-1], velocity, rtol=LOW, atol=0.0)
    assert get_spec(found).message_options.pointcloud_frame == "base"
    cloud = get_spec(found).message_options.pointcloud_pose
    assert cloud.position == pytest.approx((1.5, 0.0, -0.5), rel=1e-12, abs=0.0)
    turn = (1.0, 0.0, 0.0, 0.0) if frame == "base" else (0.0, 1.0, 0.0, 0.0)
    assert cloud.rotation == pytest.approx(turn, abs=1e-12)


@pytest.mark.requirement("DVW-6", "DVW-7", "GAP-5")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
def test_ds_sim_altitude_and_beams_over_a_level_bottom(load: Load, wrap_in_world: Text, fidelity: str) -> None:
    """Classic has one ray per beam at a = 30 degrees, and h is the mean times cos a. Physical fits a plane to the hits.

    The pattern of 4 degrees changes neither range nor altitude: both are those of the axis.
    """
    quiet = {"gaussianNoiseBeamVel": "0", "gaussianNoiseBeamRange": "0"}
    text = f'<model name="auv"><link name="base">{make_woods_hole_sensor(quiet)}</link></model>'
    run = ns.simulate(
        load(wrap_in_world(text + BED), fidelity=fidelity), 2.0, seed=1, motion={"auv": make_motion(0.0, (0, 1, 0))}
    )
    reading = run["auv::base::dvl"]
    np.testing.assert_allclose(reading["beam_range"][-1], 20.0 / math.sqrt(0.75), rtol=1e-12, atol=0.0)
    assert reading["altitude"][-1] == pytest.approx(20.0, rel=1e-12, abs=0.0)
    if fidelity == "classic":
        assert reading["course"][-1] == 0.0  # atan2(x', y') of a velocity along y'


@pytest.mark.requirement("WTR-1", "WTR-2", "GAP-1")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
def test_water_track_when_the_bottom_is_out_of_range(load: Load, wrap_in_world: Text, fidelity: str) -> None:
    flow = "<navsense:current><uniform>0.3 -0.2 0.1</uniform></navsense:current>"
    quiet = {"gaussianNoiseBeamVel": "0", "gaussianNoiseBeamRange": "0"}
    for reach, mode, velocity in (("90", 1.0, (0.5, -1.0, 0.25)), ("15", 2.0, (0.7, -0.7, 0.15))):
        sensor = make_woods_hole_sensor(WATER | quiet | {"maxRange": reach})
        text = f'{flow}<model name="auv"><link name="base">{sensor}</link></model>'
        world = load(wrap_in_world(text + BED), fidelity=fidelity)
        assert get_spec(world.sensors[0]).water_mode is TrackMode.FALLBACK
        run = ns.simulate(world, 4.0, seed=1, motion={"auv": make_motion(math.pi / 2.0, (1.0, 0.5, 0.25))})
        reading = run["auv::base::dvl"]
        assert reading["velocity_mode"][-1] == mode
        near = 1e-12 if fidelity == "classic" or mode == 2.0 else LOW
        np.testing.assert_allclose(reading["velocity"][-1], velocity, rtol=near, atol=0.0)


@pytest.mark.requirement("WTR-1", "GAP-1")
def test_water_mass_layers_are_read(load: Load, wrap_in_link: Text) -> None:
    """By default the layer is from the minimum to the maximum range, times cos 30 along the instrument axis."""
    (found,) = load(wrap_in_link(make_woods_hole_sensor(WATER))).sensors
    layer = get_spec(found).layer
    assert layer is not None
    assert (layer.near, layer.far) == pytest.approx((0.7 * math.sqrt(0.75), 90.0 * math.sqrt(0.75)), rel=1e-12, abs=0.0)
    assert layer.share == WaterMassLayer(0.0, 1.0).share
    arguments = '<navsense:layer near="8" far="24" minimum_size="4" samples="7" share="0.75"/></plugin>'
    (found,) = load(wrap_in_link(make_woods_hole_sensor(WATER).replace("</plugin>", arguments))).sensors
    assert get_spec(found).layer == WaterMassLayer(8.0, 24.0, 4.0, 7, 0.75)


NOTHING = "nothing in the world publishes it: the water is still"


@pytest.mark.requirement("WTR-1", "CUR-1")
@pytest.mark.parametrize(
    ("world", "change", "told"),
    [
        ("", WATER, ("hydrodynamics/current_velocity", f"is the default, and {NOTHING}")),
        ("", {**WATER, "ocean_current_topic": "flow"}, ("flow", NOTHING)),
        ('<navsense:current topic="/flow">', {**WATER, "ocean_current_topic": "flow"}, None),
        ("<navsense:current>", WATER, None),
        (
            '<navsense:current topic="/tide">',
            {**WATER, "ocean_current_topic": "flow"},
            ("flow", "nothing publishes it: the world's current, on /tide, is used"),
        ),
        ("", {"ocean_current_topic": "flow"}, ("flow", "has no effect: <enableWaterTrack> is not set")),
    ],
)
def test_current_topics_of_the_plugin(
    load: Load, wrap_in_world: Text, world: str, change: dict[str, str], told: tuple[str, str] | None
) -> None:
    flow = f"{world}<uniform>1 0 0</uniform></navsense:current>" if world else ""
    text = f'{flow}\n<model name="auv"><link name="base">{make_woods_hole_sensor(dict(change))}</link></model>'
    loaded = load(wrap_in_world(text))
    expected = [] if told is None else [(f"<plugin><ocean_current_topic>: {told[0]}", told[1])]
    assert list_warnings(loaded) == expected
    for note in loaded.notes:
        if note.kind == "warning" and "ocean_current_topic" in change:
            assert note.where is not None
            assert note.where.line == text[: text.index("<ocean_current_topic>")].count("\n") + 3


@pytest.mark.requirement("WTR-1")
def test_current_topics_outside_the_plugin(load: Load, wrap_in_link: Text) -> None:
    """The code of the plug-in reads them from the sensor, its documentation from the plug-in: both are read."""
    topics = "<ocean_current_topic>flow</ocean_current_topic>"
    more = "<stratified_ocean_current_topic>layers</stratified_ocean_current_topic></sensor>"
    world = load(wrap_in_link(make_woods_hole_sensor(WATER).replace("</sensor>", topics + more)))
    assert list_warnings(world) == [("<plugin><ocean_current_topic>: flow", NOTHING)]
    assert "<sensor><stratified_ocean_current_topic>" in [note.what for note in world.notes]


@pytest.mark.requirement("DVW-1")
def test_misplaced_plugin_is_reported(load: Load, wrap_in_link: Text) -> None:
    (note,) = load(wrap_in_link('<plugin filename="libdsros_ros_dvl.so" name="p"/>')).notes
    assert note.reason == 'is read in a <sensor type="dsros_dvl">'


@pytest.mark.requirement("DVW-1", "SDF-2")
@pytest.mark.parametrize(
    ("change", "tag", "problem"),
    [
        ({"beamAngleDeg": "0"}, "beamAngleDeg", "<beamAngleDeg> angle of the beams (rad): 0"),
        ({"beamAngleDeg": "90"}, "beamAngleDeg", "<beamAngleDeg> angle of the beams (rad): 1.57"),
        ({"beamAngleDeg": "steep"}, "beamAngleDeg", "<plugin><beamAngleDeg>: steep; must be a finite number"),
        ({"beamWidthDeg": "-1"}, "beamWidthDeg", "<beamWidthDeg> width of a beam (rad): -0.017"),
        (
            dict.fromkeys([f"beamAzimuthDeg{i}" for i in (1, 2, 3, 4)], "45"),
            "beamAzimuthDeg1",
            "<beamAzimuthDeg1> axes",
        ),
        ({"maxRange": "0.5"}, "maxRange", "<maxRange> maximum_range (m): 0.5; must be above the minimum, 0.7 m"),
        ({"minRange": "-1"}, "minRange", "<plugin><minRange>: -1; must be >= 0"),
        ({"gaussianNoiseBeamVel": "-1"}, "gaussianNoiseBeamVel", "<plugin><gaussianNoiseBeamVel>: -1; must be >= 0"),
        ({"updateRateHZ": "1e9"}, "updateRateHZ", "<plugin><updateRateHZ>: 1e+09 Hz; must be from 0.001"),
        ({"gaussianNoiseBeamRange": "1e300"}, "gaussianNoiseBeamRange", "<gaussianNoiseBeamRange> stddev: 1e+300"),
        ({"topicName": "/"}, "topicName", "<plugin><topicName>: /; must contain more than"),
        ({"pos_z_down": "down"}, "pos_z_down", "<plugin><pos_z_down>: down; must be true, false"),
        ({"frameName": ""}, "frameName", "<plugin><frameName>: empty; must not be empty"),
        (
            {"navsense:cloud_points": "2.5"},
            "navsense:cloud_points",
            "<plugin><navsense:cloud_points>: 2.5; must be a whole",
        ),
        ({"navsense:cloud_points": "5000"}, "navsense:cloud_points", "<navsense:cloud_points> points of a beam"),
        ({"beamAngle": "3"}, "beamAngle", "<plugin><beamAngle>; is not allowed here; did you mean beamAngleDeg?"),
    ],
)
def test_invalid_plugin_parameters(
    list_problems: ListProblems, wrap_in_link: Text, change: dict[str, str], tag: str, problem: str
) -> None:
    (line,) = list_problems(wrap_in_link(make_woods_hole_sensor(dict(change))))
    at = FIRST + list(ELEMENTS | change).index(tag)
    assert line.startswith(f"dive.sdf:{at}: {problem}")


@pytest.mark.requirement("DVW-1", "GAP-1")
@pytest.mark.parametrize(
    ("layer", "problem"),
    [
        ('far="78"', "> far boundary of the water layer (m): 78.0; must be at most 77.9423 m"),
        ('near="5" far="4"', "> far boundary of the water layer (m): 4.0; must be beyond the near one, 5 m"),
        ('near="5" far="9" minimum_size="6"', "> minimum size of the water layer (m): 6"),
        ('samples="1.5"', " samples>: 1.5; must be a whole number"),
        ('share="2"', "> share of the way to the bottom: 2"),
    ],
)
def test_invalid_layers(list_problems: ListProblems, wrap_in_link: Text, layer: str, problem: str) -> None:
    text = make_woods_hole_sensor(WATER).replace("</plugin>", f"<navsense:layer {layer}/></plugin>")
    (line,) = list_problems(wrap_in_link(text))
    assert line.startswith(f"dive.sdf:{FIRST + len(ELEMENTS) + 1}: <navsense:layer{problem}")


@pytest.mark.requirement("DVW-1")
@pytest.mark.parametrize("tag", [*list(ELEMENTS)[3:5], *list(ELEMENTS)[8:]])
def test_missing_required_elements_are_reported(list_problems: ListProblems, wrap_in_link: Text, tag: str) -> None:
    assert list_problems(wrap_in_link(make_woods_hole_sensor({tag: None}))) == [
        f"dive.sdf:7: <plugin><{tag}>: missing; must be given: the plug-in requires it"
    ]


@pytest.mark.requirement("DVW-1")
def test_all_missing_parameters_are_reported(list_problems: ListProblems, wrap_in_link: Text) -> None:
    lines = list_problems(
        wrap_in_link(make_woods_hole_sensor({"minRange": None, "beamAzimuthDeg3": None, "pos_z_down": None}))
    )
    assert sorted(re.findall(r"<plugin><(\w+)>: missing", "\n".join(lines))) == [
        "beamAzimuthDeg3",
        "minRange",
        "pos_z_down",
    ]


@pytest.mark.requirement("DVW-1")
def test_plugin_name_of_another_library_is_an_error(list_problems: ListProblems, wrap_in_link: Text) -> None:
    works = "must be libdsros_ros_dvl.so: a sensor of type dsros_dvl supports no other plug-in"
    (line,) = list_problems(wrap_in_link(make_woods_hole_sensor(plugin="libdvl.so")))
    assert line == f"dive.sdf:7: <sensor><plugin filename>: libdvl.so; {works}"
    (line,) = list_problems(wrap_in_link('<sensor name="dvl" type="dsros_dvl"/>'))
    assert line == f"dive.sdf:5: <sensor><plugin>: missing; {works}"


def test_second_plugin_is_listed(load: Load, wrap_in_link: Text) -> None:
    other = '<plugin filename="libdsros_ros_dvl.so" name="q"/><topic>own</topic></sensor>'
    world = load(wrap_in_link(make_woods_hole_sensor().replace("</sensor>", other)))
    assert world.sensors[0].topic == "/dvl/dvl"
    reasons = [note.reason for note in world.notes]
    assert "is one of several; the one on line 7 is used" in reasons
    assert "the plug-in defines it" in reasons


def test_two_plugins_on_one_topic(list_problems: ListProblems, wrap_in_link: Text) -> None:
    (line,) = list_problems(
        wrap_in_link(make_woods_hole_sensor() + make_woods_hole_sensor().replace('name="dvl"', 'name="two"'))
    )
    assert line.endswith("/dvl/dvl; is already the topic of auv::base::dvl; give another <topicName>")


def test_upward_beams_are_reported(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(make_woods_hole_sensor({"pos_z_down": "true"})))
    assert (
        "<plugin><pos_z_down>: true",
        "the beams point upwards in this pose and cannot hit the bottom",
    ) in list_warnings(world)


# UUV Simulator

PLUGIN = "libuuv_gazebo_ros_dvl_plugin.so"

HEAD = {
    "robot_namespace": "dvl",
    "link_name": "base",
    "sensor_topic": "dvl",
    "update_rate": "7",
    "noise_sigma": "0.004",
    "noise_amplitude": "0.005",
    "enable_gazebo_messages": "false",
    "enable_local_ned_frame": "false",
    "static_reference_frame": "world",
    **{f"beam_link_name_{i}": f"sonar{i}" for i in range(4)},
    **{f"beam_topic_{i}": f"dvl_sonar{i}" for i in range(4)},
}
"""The documented example of the UUV Simulator's plug-in, one element per line."""

TILT = 0.52

YAWS = (0.0, -0.5 * math.pi, math.pi, 0.5 * math.pi)
"""Azimuths of the four beams (rad, counter-clockwise from ahead), each `TILT` from straight down."""


def make_sonar_link(i: int, change: str = "") -> str:
    """Return the link of a slanted beam with its range sensor."""
    down = f"0 {math.pi / 2.0 - TILT} {YAWS[i]}"
    side = "<samples>3</samples><resolution>1</resolution><min_angle>-0.03</min_angle><max_angle>0.03</max_angle>"
    limits = "<range><min>0.7</min><max>90</max><resolution>0.01</resolution></range>"
    scan = f"<scan><horizontal>{side}</horizontal><vertical>{side}</vertical></scan>"
    text = f"""<link name="sonar{i}"><pose>1.5 0 -0.5 {down}</pose><sensor name="dvl_sonar{i}" type="ray">
<update_rate>7</update_rate><ray>{scan}{limits}</ray>
<plugin filename="libgazebo_ros_range.so" name="dvl_sonar{i}"><gaussianNoise>0.005</gaussianNoise>
<updateRate>7</updateRate><topicName>dvl/dvl_sonar{i}</topicName><frameName>frame{i}</frameName>
<fov>0.06</fov><radiation>ultrasound</radiation></plugin></sensor></link>"""
    old, _, new = change.partition("=>")
    assert not change or old in text
    return text.replace(old, new) if change else text


def make_uuv_model(change: dict[str, str | None] | None = None, third: str = "") -> str:
    """Return a model with the plug-in on line 3 of a world, and its four beams. `third` changes the third beam."""
    inside = [f"<{tag}>{text}</{tag}>" for tag, text in (HEAD | (change or {})).items() if text is not None]
    plugin = "\n".join([f'<plugin filename="{PLUGIN}" name="dvl_plugin">', *inside, "</plugin>"])
    links = "".join(make_sonar_link(i, third if i == 2 else "") for i in range(4))
    return f'<model name="auv">{plugin}\n<link name="base"/>{links}</model>'


def find_dvl(world: World) -> MountedSensor:
    (found,) = (sensor for sensor in world.sensors if isinstance(sensor.spec, Dvl))
    return found


@pytest.mark.requirement("DVU-1", "DVU-3", "DVU-6", "SDF-1")
def test_uuv_simulator_plugin_is_read(load: Load, wrap_in_world: Text) -> None:
    world = load(wrap_in_world(make_uuv_model()))
    assert [sensor.topic for sensor in world.sensors] == [*(f"/dvl/dvl_sonar{i}" for i in range(4)), "/dvl/dvl"]
    found = find_dvl(world)
    spec = get_spec(found)
    assert (found.name, found.link, found.frame, found.rate) == ("auv::base::dvl_plugin", "auv::base", "base", 7.0)
    assert found.pose == Pose()
    assert spec == Dvl(
        beams=spec.beams,
        minimum_range=0.7,
        maximum_range=90.0,
        bottom=TrackErrors(Noise(stddev=0.005), reported_stddev=0.004),
        range_noise=Noise(stddev=0.005, precision=0.01),
        sound=Sound(),
        dialect=MessageDialect.UUV,
        message_options=DvlMessageOptions(beam_frames=tuple(f"frame{i}" for i in range(4))),
    )
    low, side = math.cos(TILT), math.sin(TILT)
    ways = [(side, 0.0, -low), (0.0, -side, -low), (-side, 0.0, -low), (0.0, side, -low)]
    np.testing.assert_allclose(spec.beams.axes, ways, atol=1e-12, rtol=0.0)
    np.testing.assert_allclose(spec.beams.positions, [(1.5, 0.0, -0.5)] * 4, rtol=1e-12, atol=1e-15)
    assert all(beam.shape == Fan(3, -0.03, 0.03, 3, -0.03, 0.03) for beam in spec.beams.beams)
    (messages,) = list_warnings(world)
    assert messages[0] == "<plugin><noise_amplitude>: 0.005"
    assert "the plug-in's code has noise of their product, 2e-05 m/s" in messages[1]


@dataclass(frozen=True)
class Flight:
    """A world with the plug-in, and the readings of its DVL with the bed in range."""

    world: World
    sensor: MountedSensor
    reading: ns.Reading

    @property
    def ranges(self) -> list[MountedSensor]:
        return [sensor for sensor in self.world.sensors if sensor is not self.sensor]


def simulate_flight(world: World) -> Flight:
    found = find_dvl(world)
    return Flight(world, found, ns.simulate(world, 2.0, seed=1, motion={"auv": make_level_motion(30.0)})[found.name])


def check_uuv_namespace(before: Flight, after: Flight) -> None:
    assert (before.sensor.topic, after.sensor.topic) == ("/dvl/dvl", "/auv/dvl")


def check_uuv_link(before: Flight, after: Flight) -> None:
    """The x axis of the first sonar points `TILT` ahead of straight down."""
    assert (before.sensor.link, after.sensor.link) == ("auv::base", "auv::sonar0")
    velocity = before.reading.ideal["velocity"][-1]
    s, c = math.sin(TILT), math.cos(TILT)
    turned = (s * velocity[0] - c * velocity[2], velocity[1], c * velocity[0] + s * velocity[2])
    np.testing.assert_allclose(after.reading.ideal["velocity"][-1], turned, rtol=0.0, atol=1e-12)


def check_uuv_topic(before: Flight, after: Flight) -> None:
    assert (before.sensor.topic, after.sensor.topic) == ("/dvl/dvl", "/dvl/velocity")


def check_uuv_rate(before: Flight, after: Flight) -> None:
    assert before.reading.time == pytest.approx(np.arange(14) / 7.0, abs=1e-12)
    assert after.reading.time == pytest.approx(np.arange(10) / 5.0, abs=1e-12)


def check_uuv_sigma(before: Flight, after: Flight) -> None:
    """It is the deviation in the covariance only, per axis of the velocity."""
    ratio = after.reading["velocity_covariance"][2:] - 25.0 * before.reading["velocity_covariance"][2:]
    assert np.abs(ratio).max() < 1e-12 * 0.02**2
    np.testing.assert_array_equal(after.reading["velocity"], before.reading["velocity"])


def check_uuv_amplitude(before: Flight, after: Flight) -> None:
    is_close(select_errors(after.reading, "velocity"), 4.0 * select_errors(before.reading, "velocity"))


def check_uuv_ned(before: Flight, after: Flight) -> None:
    assert (before.sensor.frame, after.sensor.frame) == ("base", "base_ned")
    is_close(after.reading.ideal["velocity"][2:], before.reading.ideal["velocity"][2:] * (1.0, -1.0, -1.0))


def check_uuv_off(before: Flight, after: Flight) -> None:
    assert (before.sensor.is_on, after.sensor.is_on) == (True, False)
    assert not after.reading.emitted.any()
    (note,) = (note for note in after.world.notes if note.what == f"sensor {after.sensor.name} is off")
    assert note.reason.startswith(f"publishes nothing until it is switched on: --switch-on {after.sensor.name}, ")


def check_uuv_fidelity(before: Flight, after: Flight) -> None:
    """Classic uses the mean of the slant ranges as altitude."""
    assert (get_spec(before.sensor).classic, get_spec(after.sensor).classic) == (False, True)
    ranges = after.reading["beam_range"][2:]
    is_close(after.reading["altitude"][2:], ranges.mean(axis=1))
    assert (before.reading["altitude"][2:] < 0.95 * ranges.mean(axis=1)).all()


def check_uuv_reference_frame(before: Flight, after: Flight) -> None:
    """The velocity stays in the axes of the link. `/tf_static` has the frame."""
    names = [sensor.spec.message_options.world_ned_frame for sensor in (before.sensor, after.sensor)]  # type: ignore[attr-defined]
    assert names == ["", "world_ned"]
    assert (before.sensor.frame, after.sensor.frame) == ("base", "base")
    np.testing.assert_array_equal(after.reading["velocity"], before.reading["velocity"])


def check_uuv_unsupported(before: Flight, after: Flight) -> None:
    assert before.sensor.spec == after.sensor.spec
    np.testing.assert_array_equal(after.reading["velocity"], before.reading["velocity"])


UUV_EFFECTS: dict[str, tuple[str, Callable[[Flight, Flight], None]]] = {
    "robot_namespace": ("auv", check_uuv_namespace),
    "link_name": ("sonar0", check_uuv_link),
    "sensor_topic": ("velocity", check_uuv_topic),
    "update_rate": ("5", check_uuv_rate),
    "noise_sigma": ("0.02", check_uuv_sigma),
    "noise_amplitude": ("0.02", check_uuv_amplitude),
    "enable_gazebo_messages": ("true", check_uuv_unsupported),
    "enable_local_ned_frame": ("true", check_uuv_ned),
    "static_reference_frame": ("world_ned", check_uuv_reference_frame),
    "reference_link_name": ("base", check_uuv_unsupported),
    "is_on": ("false", check_uuv_off),
    "navsense:fidelity": ("classic", check_uuv_fidelity),
}
"""Each element: another value, and the check of its effect."""


@pytest.mark.compiled
@pytest.mark.requirement("DVU-1")
@pytest.mark.parametrize("tag", UUV_EFFECTS)
def test_every_uuv_simulator_element_has_an_effect(load: Load, wrap_in_world: Text, tag: str) -> None:
    text, check = UUV_EFFECTS[tag]
    beams = f"{text if tag == 'robot_namespace' else 'dvl'}/dvl_sonar"  # the topics of the range sensors
    texts = make_uuv_model(), make_uuv_model({tag: text}).replace("dvl/dvl_sonar", beams)
    before, after = (simulate_flight(load(wrap_in_world(text + DEEP))) for text in texts)
    noted = [note.what for note in after.world.notes].count(f"<plugin><{tag}>")
    assert (noted == 1) == (check is check_uuv_unsupported)
    check(before, after)


@pytest.mark.requirement("DVU-1")
def test_uuv_simulator_plugin_follows_the_fidelity(load: Load, wrap_in_world: Text) -> None:
    """As in a sensor, it overrides that of the world, and the caller overrides it."""
    own = {"navsense:fidelity": "classic"}
    spec = get_spec(find_dvl(load(wrap_in_world(make_uuv_model(own)))))
    assert spec == get_spec(find_dvl(load(wrap_in_world(make_uuv_model()), fidelity="classic")))
    assert spec.classic
    assert not get_spec(find_dvl(load(wrap_in_world(make_uuv_model(own)), fidelity="physical"))).classic
    world = "<navsense:fidelity>classic</navsense:fidelity>"
    assert not get_spec(
        find_dvl(load(wrap_in_world(make_uuv_model({"navsense:fidelity": "physical"}) + world)))
    ).classic


@pytest.mark.requirement("DVU-1", "SDF-2")
@pytest.mark.parametrize(
    ("name", "is_meant"),
    [
        ("libuuv_gazebo_ros_dvl_plugins.so", True),
        ("libuuv_gazebo_ros_dlv_plugin.so", True),
        ("libuuv_gazebo_ros_dvl_plugni.so", True),
        ("libuuv_gazebo_ros_rpt_plugin.so", False),
        ("libuuv_gazebo_ros_gps_plugin.so", False),
        ("libdave_ocean_current_model_plugin.so", False),
        ("l" * 100_000, False),
    ],
)
def test_misspelled_plugin_file_name_is_a_warning(
    load: Load, wrap_in_world: Text, name: str, *, is_meant: bool
) -> None:
    """`check` also warns, because the vehicle would have no DVL. Other instruments do not warn."""
    world = load(wrap_in_world(make_uuv_model().replace(PLUGIN, name)))
    notes = [(note.kind, note.reason, note.where and note.where.line) for note in world.notes if "<plugin" in note.what]
    expected = ("warning", f"is not supported; did you mean {PLUGIN}?", 3)
    assert (expected in notes) == is_meant
    assert not any(isinstance(sensor.spec, Dvl) for sensor in world.sensors)
    assert len(notes) == 1


@pytest.mark.requirement("DVU-4", "DVU-6")
def test_uuv_simulator_dvl_is_switched_during_a_run(load: Load, wrap_in_world: Text) -> None:
    """It is on from 0.5 s to 1 s: readings and the Bool message follow; draws are those of a DVL that is always on."""
    batch = ns.simulate(load(wrap_in_world(make_uuv_model() + BED)), 1.5, seed=3)["auv::base::dvl_plugin"]
    world = load(wrap_in_world(make_uuv_model({"is_on": "false"}) + BED))
    sim, emitted, velocities = ns.live(world, seed=3), [], []
    dvl = sim.sensor("auv::base::dvl_plugin")
    for step in sim:
        if step.time >= 1.5:
            break
        reading = step.readings.get(dvl.name)
        if reading is not None:
            rows = np.zeros(1, dtype=[("data", np.bool_)])
            states = {IS_ON: dvl.mounted.compute_on(reading.time)}
            make_state_encoder(dvl.mounted, "measured").fill(rows, reading.stamp, states)
            assert bool(rows["data"][0]) == dvl.is_on
            emitted += reading.emitted.tolist()
            velocities.append(reading["velocity"])
        dvl.switch(on=0.5 <= step.time < 1.0)
    time = batch.time[: len(emitted)]
    assert emitted == (batch.emitted & (time > 0.5) & (time <= 1.0)).tolist()
    assert 3 <= sum(emitted) <= 4
    assert np.array_equal(np.concatenate(velocities), batch["velocity"], equal_nan=True)


def test_list_of_uuv_simulator_elements_is_complete() -> None:
    known = schema.UUV_DVL_PLUGIN
    beams = {f"{name}_{i}" for name in ("beam_link_name", "beam_topic") for i in range(4)}
    # test_namespace.py tests <robotNamespace>. Switches are those of any sensor, see test_switching.
    names = ("bottom_track", "strength", "long_term", "switch")
    others = {"robotNamespace", *(f"navsense:{name}" for name in names)}
    assert UUV_EFFECTS.keys() | beams | others == known.children | known.unsupported.keys()


@pytest.mark.requirement("DVU-1")
def test_uuv_simulator_plugin_defaults(load: Load, wrap_in_world: Text) -> None:
    lacking: dict[str, str | None] = dict.fromkeys(
        ("update_rate", "noise_sigma", "noise_amplitude", "enable_local_ned_frame")
    )
    found = find_dvl(load(wrap_in_world(make_uuv_model(lacking))))
    assert (found.rate, found.frame) == (30.0, "base_ned")
    assert get_spec(found).bottom == TrackErrors()


@pytest.mark.requirement("DVU-3", "DVU-5", "GAP-5")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
@pytest.mark.parametrize(("ned", "velocity"), [("false", (0.5, -1.0, 0.25)), ("true", (0.5, 1.0, -0.25))])
def test_uuv_simulator_velocity_and_altitude_over_a_level_bottom(
    load: Load, wrap_in_world: Text, fidelity: str, ned: str, velocity: tuple[float, float, float]
) -> None:
    """The link heads north, 10 m down over a bed at 30 m. Classic uses the mean of the slant ranges as altitude.

    A classic range is that of the nearest (steepest) of 3 x 3 rays. Physical ranges are along the axes: the
    nearest rays would reduce the altitude by 1.6 %.
    """
    change = {"enable_local_ned_frame": ned, "noise_amplitude": "0"}
    world = load(wrap_in_world(make_uuv_model(change) + BED), fidelity=fidelity)
    found = find_dvl(world)
    assert found.frame == ("base_ned" if ned == "true" else "base")
    run = ns.simulate(world, 2.0, seed=1, motion={"auv": make_motion(math.pi / 2.0, (1.0, 0.5, 0.25))})
    reading = run[found.name]
    np.testing.assert_allclose(reading["velocity"][-1], velocity, atol=1e-12, rtol=0.0)
    height = 19.5 + 0.25 * reading["time_of_validity"][-1]  # of the sonars, half a metre below the link
    slant = height / math.cos(TILT - 0.03 if fidelity == "classic" else TILT)
    np.testing.assert_allclose(reading.ideal["beam_range"][-1], slant, rtol=1e-12, atol=0.0)
    if fidelity == "classic":
        np.testing.assert_allclose(reading["velocity_covariance"][-1], 0.004**2 * np.eye(3), rtol=1e-12, atol=0.0)
        assert reading["altitude"][-1] == pytest.approx(np.mean(reading["beam_range"][-1]), rel=1e-12, abs=0.0)
        assert reading.ideal["altitude"][-1] == pytest.approx(slant, rel=1e-12, abs=0.0)
    else:
        assert reading.ideal["altitude"][-1] == pytest.approx(0.5 + height, rel=1e-12, abs=0.0)


@pytest.mark.requirement("DVU-5", "DVU-8")
@pytest.mark.parametrize(("depth", "limit"), [(110.0, 90.0), (11.0, 0.7)])
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
def test_uuv_simulator_range_topics_out_of_range(
    load: Load, wrap_in_world: Text, tmp_path: Path, fidelity: str, depth: float, limit: float
) -> None:
    """At 100 m and 0.5 m above the bed, classic reports the limits, also in the message of the DVL."""
    world = load(wrap_in_world(make_uuv_model() + BED.replace("0 0 -30", f"0 0 -{depth}")), fidelity=fidelity)
    run = ns.simulate(world, 1.0, seed=1, motion={"auv": make_motion(0.0, (1.0, 0.0, 0.0))}, epoch=1000)
    run.save(tmp_path / "a.mcap")
    reported = limit if fidelity == "classic" else math.copysign(math.inf, limit - 1.0)
    with AnyReader([tmp_path / "a.mcap"]) as reader:
        for topic in (f"/dvl/dvl_sonar{i}" for i in range(4)):
            lines = [line for line in reader.connections if line.topic == topic]
            found = [reader.deserialize(raw, line.msgtype) for line, _, raw in reader.messages(lines)]
            assert [item.range for item in found] == pytest.approx([reported] * 7, rel=1e-6, abs=0.0)  # type: ignore[attr-defined]
        lines = [line for line in reader.connections if line.topic == "/dvl/dvl"]
        messages: list[Any] = [reader.deserialize(raw, line.msgtype) for line, _, raw in reader.messages(lines)]
        beams = [beam.range for message in messages for beam in message.beams]
    assert beams == pytest.approx([limit if fidelity == "classic" else -1.0] * len(beams), rel=1e-12, abs=0.0)
    assert len(beams) >= 4


@pytest.mark.requirement("DVU-1", "DVU-2")
@pytest.mark.parametrize(
    ("change", "named", "figures"),
    [
        ("<min>0.7=><min>1", "limits", (1.0, 90.0)),
        ("<max>90=><max>50", "limits", (0.7, 50.0)),
        ("<gaussianNoise>0.005=><gaussianNoise>0.1", "noise", (0.7, 90.0)),
        ("ultrasound=>infrared", "sound", (0.7, 90.0)),
        ("<ray>=><ray><navsense:own_hull>true</navsense:own_hull>", "own_hull", (0.7, 90.0)),
    ],
)
def test_beams_with_different_parameters_are_an_error(
    load: Load, wrap_in_world: Text, change: str, named: str, figures: tuple[float, float]
) -> None:
    world = load(wrap_in_world(make_uuv_model(third=change)))
    spec = get_spec(find_dvl(world))
    assert (spec.minimum_range, spec.maximum_range) == figures
    assert spec.range_noise == Noise(stddev=0.005, precision=0.01)
    (note,) = (reason for element, reason in list_warnings(world) if element == "<plugin>: auv::base::dvl_plugin")
    assert note.startswith(f"the range sensors of its beams differ in {named}: ")


def test_beams_with_another_rate_are_reported(load: Load, wrap_in_world: Text) -> None:
    world = load(wrap_in_world(make_uuv_model({"update_rate": "10"})))
    reason = "differs from that of its range sensors, 7, 7, 7, 7 Hz: the DVL pings at the rate of the plug-in"
    assert ("<plugin><update_rate>: 10", reason) in list_warnings(world)


@pytest.mark.requirement("DVU-1", "SDF-2")
@pytest.mark.parametrize(
    ("change", "third", "line", "problem"),
    [
        ({"link_name": None}, "", 3, "<plugin><link_name>: missing; must be given"),
        ({"robot_namespace": None}, "", 3, "<plugin><robot_namespace>: missing; must be given"),
        ({"sensor_topic": None}, "", 3, "<plugin><sensor_topic>: missing; must be given"),
        ({"link_name": "keel"}, "", 5, "<plugin><link_name>: keel; must be one of base, sonar0"),
        ({"beam_link_name_2": None}, "", 3, "<plugin><beam_link_name_2>: missing; must be given"),
        ({"beam_topic_1": None}, "", 3, "<plugin><beam_topic_1>: missing; must be given"),
        (
            {"beam_link_name_2": "base"},
            "",
            15,
            "<plugin><beam_link_name_2>: base; must be a link with a range sensor, one of sonar0, sonar1, sonar2, son",
        ),
        (
            {"beam_topic_3": "sonar3"},
            "",
            20,
            "<plugin><beam_topic_3>: /dvl/sonar3; must be the topic of the range sensor on sonar3: /dvl/dvl_sonar3",
        ),
        ({"noise_sigma": "-1"}, "", 8, "<plugin><noise_sigma>: -1; must be >= 0"),
        ({"noise_amplitude": "1e300"}, "", 9, "<noise_amplitude> stddev: 1e+300"),
        ({"is_on": "maybe"}, "", 21, "<plugin><is_on>: maybe; must be true, false"),
        ({"beam_link": "x"}, "", 21, "<plugin><beam_link>; is not allowed here; did you mean beam_link_name_3?"),
        (
            {"sensor_topic": "dvl_sonar0"},
            "",
            3,
            "<plugin>: /dvl/dvl_sonar0; is already the topic of auv::sonar0::dvl_sonar0",
        ),
        (
            {f"beam_link_name_{i}": "sonar0" for i in range(4)} | {f"beam_topic_{i}": "dvl_sonar0" for i in range(4)},
            "",
            3,
            "<plugin> axes of the beams: ",
        ),
        ({}, "<min>0.7=><min>95", 31, "<ray> maximum_range (m): 90"),
    ],
)
def test_invalid_uuv_plugin_parameters(
    list_problems: ListProblems, wrap_in_world: Text, change: dict[str, str | None], third: str, line: int, problem: str
) -> None:
    (found,) = list_problems(wrap_in_world(make_uuv_model(dict(change), third)))
    assert found.startswith(f"dive.sdf:{line}: {problem}")


# real files


TABLES = {
    "uuv": {
        "/dvl/dvl/state": "std_msgs/msg/Bool",
        "/dvl/dvl": "uuv_sensor_ros_plugins_msgs/msg/DVL",
        "/dvl/dvl_twist": "geometry_msgs/msg/TwistWithCovarianceStamped",
        **{f"/dvl/dvl_sonar{i}": "sensor_msgs/msg/Range" for i in range(4)},
    },
    "dsros": {
        "/dvl/dvl": "ds_sensor_msgs/msg/Dvl",
        "/dvl/ranges": "ds_sensor_msgs/msg/Ranges3D",
        "/dvl/dvl_cloud": "sensor_msgs/msg/PointCloud",
    },
}
"""The document's tables of topics and messages."""


def compute_altitude_bounds(angle: float, half: float) -> tuple[float, float]:
    """Return the altitude bounds over a level bed 19.5 m below beams at `angle` with half width `half` (rad).

    The range is that of a direction within the beam. The altitude is its component along the beam axis.
    """
    return (
        19.5 * math.cos(angle) / math.cos(angle - half),
        19.5 * math.cos(angle) / math.cos(angle + half),
    )


ALTITUDES = {
    ("uuv", "physical"): tuple(0.5 + height for height in compute_altitude_bounds(0.52, 0.03)),
    ("uuv", "classic"): (19.5 / math.cos(0.52 - 0.03),) * 2,
    ("dsros", "physical"): compute_altitude_bounds(math.radians(30.0), math.radians(2.0)),
    ("dsros", "classic"): (19.5, 19.5),
}
"""Minimum and maximum altitude (m).

Classic follows the documents: the UUV Simulator uses the mean slant range of the nearest rays; Woods Hole
uses the mean of range * cos(pi/6). With physical fidelity, the UUV Simulator's altitude is that of its link, above the
beams.
"""

RANGE_NOISE = {"uuv": math.hypot(0.005, 0.01 / math.sqrt(12.0)) / 2.0, "dsros": 0.1 / 2.0}
"""Deviation (m) of the mean of four ranges. The mean over the run is more accurate by `sqrt(n)`."""


@pytest.mark.requirement("DVU-1", "DVU-4", "DVW-1", "DVW-5", "SDF-2")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
@pytest.mark.parametrize("dialect", TABLES)
def test_documentation_examples_are_correct(
    dvl_robots: dict[str, str], tmp_path: Path, dialect: str, fidelity: str
) -> None:
    """A robot moves ahead at 1 m/s, 20 m above a bed. The recording is complete and correct."""
    (tmp_path / "auv.urdf").write_text(dvl_robots[dialect], encoding="utf-8")
    (tmp_path / "sea.sdf").write_text(
        f"<sdf version='1.9'><world name='sea'><include><uri>auv.urdf</uri></include>{BED}</world></sdf>",
        encoding="utf-8",
    )
    world = sdf.load(tmp_path / "sea.sdf", fidelity=fidelity)
    found = find_dvl(world)
    assert (found.topic, found.rate, get_spec(found).dialect.value) == ("/dvl/dvl", 7.0, dialect)
    assert not any(note.reason == "not simulated" for note in world.notes)
    run = ns.simulate(world, 20.0, seed=4, motion={"auv": make_motion(0.0, (1.0, 0.0, 0.0))}, epoch=1767225600)
    for name in ("dive.mcap", "dive.bag", "dive.db3"):
        run.save(tmp_path / name)
    with (tmp_path / "dive.mcap").open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    assert summary.statistics is not None
    counts = summary.statistics.channel_message_counts
    recorded = {channel.topic: channel for channel in summary.channels.values()}
    for topic, kind in TABLES[dialect].items():
        assert summary.schemas[recorded[topic].schema_id].name == kind
        assert counts[recorded[topic].id] >= 139
    for bag in ("dive.bag", "dive"):
        with AnyReader([tmp_path / bag]) as reader:
            held = {connection.topic: (connection.msgtype, connection.msgcount) for connection in reader.connections}
        assert {topic: held[topic][0] for topic in TABLES[dialect]} == TABLES[dialect]
        assert all(held[topic][1] >= 139 for topic in TABLES[dialect])
    # 0.005 m/s per beam; across the axis of four beams at a, 1 / (sin a sqrt 2) times as much, along it less.
    # Twelve two-sided means: 5.4 deviations for false alarms of 1e-6. The bias of WHOI's pattern is below LOW.
    velocity = run[found.name]["velocity"][2:]
    across = 0.005 / (math.sqrt(2.0) * math.sin({"uuv": 0.52, "dsros": math.radians(30.0)}[dialect]))
    slack = 5.4 * across / math.sqrt(velocity.shape[0]) + (LOW if dialect == "dsros" else 0.0)
    np.testing.assert_allclose(velocity.mean(axis=0), (1.0, 0.0, 0.0), atol=slack, rtol=0.0)
    altitude, (least, most) = run[found.name]["altitude"][2:], ALTITUDES[dialect, fidelity]
    # Rounding to 0.01 m with a deviation of 0.005 m biases a mean by up to exp(-pi^2 / 2) 0.01 / pi = 2.3e-5 m.
    slack = 5.4 * RANGE_NOISE[dialect] / math.sqrt(altitude.size) + 2.3e-5
    assert least - slack < altitude.mean() < most + slack
    # Twice 138 values at false alarms of 1e-6: 5.9 deviations.
    assert np.abs(altitude - altitude.mean()).max() < 5.9 * RANGE_NOISE[dialect]


FILES = {
    "nortek_dvl1000_300": (25.0, 3.0, 0.2, 75.0, 8.0, 0.015, {"frameName: dvl1000_link"}),
    "nortek_dvl500_300": (25.0, 3.0, 0.3, 200.0, 8.0, 0.015, {"frameName: dvl1000_link"}),
    "nortek_dvl500_6000": (25.0, 3.0, 0.3, 200.0, 8.0, 0.015, {"frameName: dvl500_link"}),
    "teledyne_explorer1000": (30.0, 2.2, 0.5, 81.0, 10.0, 0.048, {"frameName: explorer_link", "updateRateHZ: 12.0"}),
    "teledyne_whn_dsl": (
        30.0,
        4.0,
        0.7,
        90.0,
        7.0,
        0.0075,
        {"frameName: dvl_base_link", "pointcloudFrame: dvl_base_link"},
    ),
}
"""DAVE's models: angle, width (deg), limits (m), rate (Hz), deviation of the water track (m/s), and problems."""


@pytest.mark.requirement("DVW-1", "SDF-1")
@pytest.mark.parametrize(("data", "file"), [("own", "teledyne_whn_dsl"), *(("others", file) for file in FILES)])
def test_dave_models_are_read(request: pytest.FixtureRequest, data: str, file: str) -> None:
    folder = WORLDS if data == "own" else Path(request.getfixturevalue("shared_data"))
    angle, width, least, most, rate, through, note = FILES[file]
    world = sdf.load(folder / "dave" / f"{file}.sdf")
    found, profile = world.sensors
    spec = get_spec(found)
    assert (spec.minimum_range, spec.maximum_range, found.rate) == (least, most, rate)
    assert spec.water.noise.stddev == through
    assert spec.range_noise.stddev == 0.1
    assert spec.water_mode is TrackMode.FALLBACK
    assert all(beam.shape == Cone(math.radians(width), 1) for beam in spec.beams.beams)
    assert [abs(z) for z in spec.beams.axes[:, 2]] == pytest.approx(
        [math.cos(math.radians(angle))] * 4, rel=1e-12, abs=0.0
    )
    current = "ocean_current_topic: hydrodynamics/current_velocity"
    unsupported = {element.removeprefix("<plugin><").replace(">", "") for element, _ in list_warnings(world)}
    assert unsupported == note | {current}
    assert isinstance(profile.spec, Adcp)
    assert (profile.spec.cells.count, profile.spec.coordinates) == (10, CoordinateSystem.BEAM)
    assert (profile.name, profile.topic) == (f"{found.name}_current", f"{found.topic}_current")


@pytest.mark.requirement("DVU-1", "DVW-1", "SDF-2")
@needs_xacro
def test_dave_and_ds_sim_macros_are_read(shared_data: Path, tmp_path: Path) -> None:
    """A robot with four files of macros has four DVLs that see the bottom."""
    dave, woods_hole_s = shared_data / "dave", shared_data / "ds_sim"
    (tmp_path / "auv.urdf.xacro").write_text(
        f"""<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="auv">
<xacro:include filename="{dave / "teledyne_whn_dsl_description__teledyne_whn.xacro"}"/>
<xacro:include filename="{dave / "nortek_dvl1000_300_uuvsim_description__nortek_dvl1000_300.xacro"}"/>
<xacro:include filename="{woods_hole_s / "rdi300_sim.xacro"}"/>
<xacro:include filename="{woods_hole_s / "nortek1000_sim.xacro"}"/>
<link name="base"/>
<xacro:teledyne_whn_macro name="whn" xyz="0 0 0.1" namespace="whn" dvl_topic="dvl" ranges_topic="r" robot_link="base"
  joint_xyz="1.5 0 -0.5"/>
<xacro:nortek_dvl1000_300_enu_macro namespace="nortek" parent_link="base">
  <origin xyz="-1 0 -0.5" rpy="0 ${{pi / 2}} 0"/></xacro:nortek_dvl1000_300_enu_macro>
<xacro:rdi_workhorse_300_sim name="rdi" parent_link="base" xyz="0 0 0" rpy="0 0 0" robot_namespace="rdi" dvl_topic="b"
  ranges_topic="c"/>
<xacro:nortek1000_sim name="n1000" parent_link="base" xyz="0 0 0" rpy="${{pi}} 0 0" robot_namespace="n" dvl_topic="b"
  ranges_topic="c"/>
</robot>
""",
        encoding="utf-8",
    )
    (tmp_path / "sea.sdf").write_text(
        f"<sdf version='1.9'><world name='sea'><include><uri>auv.urdf.xacro</uri></include>{BED}</world></sdf>",
        encoding="utf-8",
    )
    world = sdf.load(tmp_path / "sea.sdf", expand_xacro=True)
    found = {sensor.topic: sensor for sensor in world.sensors if isinstance(sensor.spec, Dvl)}
    assert {topic: sensor.rate for topic, sensor in found.items()} == {
        "/whn/dvl": 7.0,
        "/rdi/b": 2.0,
        "/n/b": 5.0,
        "/nortek/dvl": 8.0,
    }
    assert [get_spec(found[topic]).dialect.value for topic in ("/whn/dvl", "/nortek/dvl")] == ["dsros", "uuv"]
    assert get_spec(found["/whn/dvl"]).message_options.pointcloud_pose.position == pytest.approx(
        (1.5, 0.0, -0.6), rel=1e-12, abs=1e-15
    )
    run = ns.simulate(world, 2.0, seed=1, motion={"auv": make_motion(0.3, (0.3, 0.2, 0.0))})
    for sensor in found.values():
        truth = run[sensor.name].ideal
        assert np.isfinite(truth["beam_range"][-1]).all(), sensor.name
    elements = {text for text, _ in list_warnings(world)}
    assert "<plugin><frameName>: rdi_link" in elements
    assert "<plugin><frameName>: n1000_link" in elements


# current profile


@pytest.mark.requirement("DVW-1", "GAP-8")
def test_ds_sim_profile_is_read(load: Load, wrap_in_link: Text) -> None:
    """The plug-in's cells are those of the documented Workhorse: 8.93 m along the beam from 5.165 m on."""
    text = make_woods_hole_sensor({**WATER, "gaussianNoiseBeamWtrVel": "0.0075", "waterTrackBins": "10"})
    dvl, found = load(wrap_in_link(text)).sensors
    spec = found.spec
    assert isinstance(spec, Adcp)
    assert (found.name, found.topic) == ("auv::base::dvl_current", "/dvl/dvl_current")
    assert (found.rate, found.frame) == (dvl.rate, dvl.frame)
    slant = math.cos(math.radians(30.0))
    assert (spec.cells.size / slant, spec.cells.first_distance / slant) == pytest.approx(
        (8.93, 5.165), rel=1e-12, abs=0.0
    )
    assert (spec.coordinates, spec.profile.stddev, spec.dialect) == (
        CoordinateSystem.BEAM,
        0.0075,
        MessageDialect.DSROS,
    )
    assert spec.beams == get_spec(dvl).beams


@pytest.mark.requirement("DVW-1", "GAP-8")
def test_unsupported_profile_parameters(
    load: Load, wrap_in_link: Text, list_problems: Callable[..., list[str]]
) -> None:
    off = load(wrap_in_link(make_woods_hole_sensor({"waterTrackBins": "3"})))
    assert len(off.sensors) == 1
    assert list_warnings(off) == [("<plugin><waterTrackBins>: 3", "has no effect: <enableWaterTrack> is not set")]
    for tag, value, allowed in (
        ("waterTrackBins", "0", "must be a whole number from 1 to 255"),
        ("waterTrackBins", "2.5", "must be a whole number from 1 to 255"),
        ("currentProfileCoordMode", "4", "must be 0, 1, 2 or 3"),
        ("currentProfileCoordMode", "one", "must be a finite number"),
    ):
        (problem,) = list_problems(wrap_in_link(make_woods_hole_sensor({**WATER, tag: value})))
        assert f"dive.sdf:{FIRST + len(ELEMENTS) + 1}: " in problem
        assert allowed in problem


@pytest.mark.requirement("DVW-1", "DVW-6", "GAP-8")
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_ds_sim_profile_in_each_of_its_axes(load: Load, wrap_in_world: Text, mode: int) -> None:
    """It is the velocity of the water relative to the instrument; classic has points without level axes."""
    layers = '<navsense:layer depth="0">0 0 0</navsense:layer>'.replace("navsense:", "")
    current = f'<navsense:current><stratified>{layers}<layer depth="40">0.4 0 0</layer></stratified></navsense:current>'
    inside = make_woods_hole_sensor(
        {**WATER, "waterTrackBins": "20", "currentProfileCoordMode": str(mode), "maxRange": "30.7"}
    )
    text = wrap_in_world(
        f'{current}{BED}<model name="auv"><pose>0 0 -10 0 0 0.5</pose><link name="base">{inside}</link></model>'
    ).replace("<sdf ", '<sdf xmlns:navsense="https://navsense.org/sdf" ')
    world = load(text)
    for fidelity in ("physical", "classic"):
        motion = {"auv": make_motion(0.5, (1.0, 0.0, 0.0))}
        run = ns.simulate(world, 1.0, seed=1, motion=motion, fidelity=fidelity)["auv::base::dvl_current"]
        assert run.emitted.any() == (fidelity == "physical" or mode < 2)
        if not run.emitted.any():
            continue
        row = int(np.nonzero(run.emitted)[0][-1])
        slant = 0.7 + 1.5 * (np.arange(20) + 0.5)
        depth = 10.0 + slant * math.cos(math.radians(30.0))
        known = np.isfinite(run.ideal["beam_velocity"][row]).all(axis=1)
        assert known.sum() == {"physical": 12, "classic": 15}[fidelity]
        flow = depth * 0.01 - 1.0
        turned = {1: (math.cos(0.5), -math.sin(0.5)), 2: (math.cos(0.5), -math.sin(0.5)), 3: (1.0, 0.0)}
        if mode:
            expected = flow[known, None] * np.array(turned[mode])
            assert run.ideal["velocity"][row, known, :2] == pytest.approx(expected, abs=1e-9)
        else:
            assert np.isnan(run["velocity"]).all()

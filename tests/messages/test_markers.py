"""Beams of sensors with `<visualize>`, read by rosbags as markers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense.core.pose import Pose
from navsense.core.typing import FloatArray
from navsense.messages.markers import COLORS, INVALID, LINE_LIST, VALID, WATER
from navsense.recordings.convert import convert
from navsense.recordings.reading_assembler import open_readings
from navsense.world import World

KIND = "visualization_msgs/msg/MarkerArray"

ROBOTS = Path(__file__).resolve().parents[1] / "worlds" / "robots"

BED = -30.0
"""m, height of a level bed."""

LEVEL = f"""<model name="bed"><static>1</static><pose>0 0 {BED} 0 0 0</pose><link name="l">
<collision name="c"><geometry><plane/></geometry></collision></link></model>"""

SENSORS = {
    "own": '<sensor name="dvl" type="dvl"><pose>0.3 0.1 -0.2 0.1 0.05 0.4</pose><update_rate>5</update_rate>'
    "<visualize>true</visualize><dvl><reference>0.2 0.1 0.3</reference></dvl></sensor>",
    "gz": '<sensor name="dvl" type="custom" gz:type="dvl"><update_rate>5</update_rate><gz:dvl><arrangement degrees="1">'
    + "".join(
        f"<beam><rotation>{angle}</rotation><tilt>30</tilt><aperture>0</aperture></beam>" for angle in (45, 135, -45)
    )
    + "</arrangement><tracking><bottom_mode><visualize>true</visualize></bottom_mode></tracking></gz:dvl></sensor>",
    "range": '<sensor name="dvl" type="range"><pose>0.3 0.1 -0.2 0.1 0.05 0.4</pose><update_rate>5</update_rate>'
    "<visualize>1</visualize><range><beam><axis>0.1 0.2 -1</axis></beam><max>90</max></range></sensor>",
    "ray": '<sensor name="dvl" type="ray"><pose>0.3 0.1 -0.2 0 1.2 0.4</pose><update_rate>5</update_rate>'
    "<visualize>true</visualize><ray><scan><horizontal><samples>1</samples><min_angle>0</min_angle>"
    "<max_angle>0</max_angle></horizontal></scan><range><min>0.1</min><max>90</max></range></ray></sensor>",
}
"""A sensor without noise for each kind of beam."""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., World]:
    """Return a function that loads a world with a sensor 10 m deep, over a level bed."""

    def load_sensor(sensor: str, bed: str = LEVEL) -> World:
        path = tmp_path / "sea.sdf"
        model = f'<model name="auv"><pose>1 2 -10 0 0.1 0.5</pose><link name="base">{sensor}</link></model>'
        path.write_text(f'<sdf version="1.9"><world name="sea">{model}{bed}</world></sdf>', encoding="utf-8")
        return ns.load(path)

    return load_sensor


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a marker in the frame of its message."""

    start: FloatArray
    end: FloatArray
    color: tuple[float, ...]

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.end - self.start))


def read_messages(path: Path, ending: str) -> list[Any]:
    """Return the messages on the topics with an ending, decoded by rosbags with the definitions of the recording."""
    with AnyReader([path]) as reader:
        lines = [line for line in reader.connections if line.topic.endswith(ending)]
        return [reader.deserialize(raw, line.msgtype) for line, _, raw in reader.messages(lines)]


def read_lines(message: Any) -> list[Line]:
    """Return the lines of a message with one marker."""
    (marker,) = message.markers
    assert (marker.type, marker.action, len(marker.points)) == (LINE_LIST, 0, len(marker.colors))
    points = [np.array([point.x, point.y, point.z]) for point in marker.points]
    colors = [(color.r, color.g, color.b) for color in marker.colors]
    assert colors[::2] == colors[1::2]
    assert {color.a for color in marker.colors} == {1.0}
    return [Line(start, end, color) for start, end, color in zip(points[::2], points[1::2], colors[::2], strict=True)]


def find_frame(path: Path, name: str) -> Pose:
    """Return the pose of a frame in the world, from the static transforms of a recording."""
    (message,) = read_messages(path, "/tf_static")
    transforms = {one.child_frame_id: one for one in message.transforms}
    pose = Pose()
    while name != "world":
        one = transforms[name]
        shift, turn = one.transform.translation, one.transform.rotation
        pose = Pose((shift.x, shift.y, shift.z), (turn.w, turn.x, turn.y, turn.z)) @ pose
        name = one.header.frame_id
    return pose


def select_color(state: int) -> Any:
    return pytest.approx(COLORS[state], rel=1e-6, abs=0.0)


@pytest.mark.requirement("DVU-7")
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".db3"])
@pytest.mark.parametrize("kind", SENSORS)
def test_lines_end_at_the_bottom(load: Callable[..., World], tmp_path: Path, kind: str, suffix: str) -> None:
    """The transforms of the recording put the end of each line on the bed, and its start at the sensor."""
    world = load(SENSORS[kind])
    path = tmp_path / f"dive{suffix}"
    ns.record(world, path, 2.0, epoch=100)
    path = tmp_path / "dive" if suffix == ".db3" else path
    messages = read_messages(path, "/markers")
    assert len(messages) >= 9
    marker = messages[-1].markers[0]
    assert (marker.ns, marker.id) == ("auv::base::dvl", 0)
    frame = find_frame(path, marker.header.frame_id)
    for line in read_lines(messages[-1]):
        for point, height in ((line.start, None), (line.end, BED)):
            here = (frame @ Pose((float(point[0]), float(point[1]), float(point[2])))).position
            assert height is None or here[2] == pytest.approx(height, rel=0.0, abs=1e-4)
        start = (frame @ Pose((float(line.start[0]), float(line.start[1]), float(line.start[2])))).position
        assert start == pytest.approx(find_frame(path, "auv::base::dvl").position, rel=0.0, abs=1e-9)
        assert line.color == select_color(VALID)


@pytest.mark.requirement("DVU-7")
@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
def test_markers_have_the_definitions_of_ros(load: Callable[..., World], tmp_path: Path, suffix: str) -> None:
    ns.record(load(SENSORS["range"]), tmp_path / f"dive{suffix}", 1.0)
    with AnyReader([tmp_path / f"dive{suffix}"]) as reader:
        (line,) = [line for line in reader.connections if line.topic.endswith("/markers")]
        store = get_typestore(Stores.ROS1_NOETIC if suffix == ".bag" else Stores.ROS2_JAZZY)
        assert line.msgtype == KIND
        if suffix == ".bag":
            assert line.digest == store.generate_msgdef(KIND, ros_version=1)[1]
        read = reader.typestore.fielddefs
        for kind in (KIND, "visualization_msgs/msg/Marker", "std_msgs/msg/ColorRGBA"):
            assert read[kind] == store.fielddefs[kind]


def test_mcap_decodes_with_its_own_reader(load: Callable[..., World], tmp_path: Path) -> None:
    """The times are those of the sensor's own message."""
    ns.record(load(SENSORS["range"]), tmp_path / "dive.mcap", 1.0, epoch=7)
    with (tmp_path / "dive.mcap").open("rb") as stream:
        times: dict[str, list[tuple[int, int]]] = {}
        for schema, channel, message in make_reader(stream).iter_messages():
            assert schema is not None
            times.setdefault(channel.topic, []).append((message.log_time, message.publish_time))
            if schema.name == KIND:
                assert (schema.encoding, channel.message_encoding) == ("ros2msg", "cdr")
    (topic,) = [topic for topic in times if topic.endswith("/markers")]
    assert times[topic] == times[topic.removesuffix("/markers")]


@pytest.mark.requirement("DVU-7")
@pytest.mark.parametrize(("height", "length"), [(-1000.0, 90.0), (-10.7, 2.0)])
def test_beams_without_a_valid_range_end_at_the_limit(
    load: Callable[..., World], tmp_path: Path, height: float, length: float
) -> None:
    for kind, limits in (("dvl", ("<dvl>", "</dvl>")), ("range", ("<range>", "</range>"))):
        sensor = SENSORS["range"] if kind == "range" else SENSORS["own"]
        sensor = sensor.replace("<max>90</max>", "").replace(limits[1], f"<min>2</min><max>90</max>{limits[1]}")
        ns.record(load(sensor, LEVEL.replace(str(BED), str(height))), tmp_path / f"{kind}.mcap", 2.0)
        for line in read_lines(read_messages(tmp_path / f"{kind}.mcap", "/markers")[-1]):
            assert line.length == pytest.approx(length, rel=1e-12, abs=0.0)
            assert line.color == select_color(INVALID)


@pytest.mark.requirement("DVU-7")
def test_water_track_has_its_colour_and_ends_at_its_layer(load: Callable[..., World], tmp_path: Path) -> None:
    layer = '<water_track><layer near="5" far="20"/></water_track>'
    ns.record(load(SENSORS["own"].replace("<dvl>", f"<dvl>{layer}"), ""), tmp_path / "a.mcap", 2.0)
    for line in read_lines(read_messages(tmp_path / "a.mcap", "/markers")[-1]):
        assert line.length == pytest.approx(20.0 / math.cos(math.radians(30.0)), rel=1e-9, abs=0.0)
        assert line.color == select_color(WATER)


ADCP = """<sensor name="adcp" type="adcp"><pose>0 0 0 0 -0.1 0</pose><update_rate>1</update_rate>
<visualize>true</visualize><adcp><reference>0.2 0.1 0.3</reference><cells count="12" size="2" blanking="1"/></adcp>
</sensor>"""
"""A level profiler with beams at 20 degrees; the centre of cell m is 1 + 2 + 2 m metres below it."""


@pytest.mark.requirement("DVU-7")
@pytest.mark.parametrize(
    ("bed", "cells", "state"),
    [("", 12, WATER), (LEVEL, 7, WATER), (LEVEL.replace(str(BED), "-11"), 12, INVALID)],
)
def test_beams_of_a_profiler_end_at_the_last_cell_with_a_velocity(
    load: Callable[..., World], tmp_path: Path, bed: str, cells: int, state: int
) -> None:
    """Side lobes hit a bed 20 m below at 20 cos 20 = 18.79 m along the axis; a bed 1 m below leaves no cell.

    The weights of a cell extend 2 m from its centre: 3 + 2 m + 2 <= 18.79 for m <= 6. The boundary is at 1 m.
    """
    ns.record(load(ADCP, bed), tmp_path / "dive.mcap", 3.0)
    message = read_messages(tmp_path / "dive.mcap", "/adcp/markers")[-1]
    frame = find_frame(tmp_path / "dive.mcap", message.markers[0].header.frame_id)
    lines = read_lines(message)
    depth = 1.0 + 2.0 * cells + 1.0
    assert len(lines) == 4
    for line in lines:
        assert line.start.tolist() == [0.0, 0.0, 0.0]
        assert frame.position == pytest.approx([1.0, 2.0, -10.0], rel=0.0, abs=1e-9)
        end = frame @ Pose((float(line.end[0]), float(line.end[1]), float(line.end[2])))
        assert end.position[2] == pytest.approx(-10.0 - depth, rel=0.0, abs=1e-9)
        assert line.length == pytest.approx(depth / math.cos(math.radians(20.0)), rel=1e-9, abs=0.0)
        assert line.color == select_color(state)


@pytest.mark.requirement("DVU-7")
def test_lifetime_is_twice_the_longest_time_between_messages(load: Callable[..., World], tmp_path: Path) -> None:
    """At 5 Hz; a ping to 100 m takes 2 x 100 m at 1500 m/s."""
    for kind, seconds in (("range", 2.0 / 5.0), ("own", 2.0 * (1.0 / 5.0 + 200.0 / 1500.0))):
        ns.record(load(SENSORS[kind]), tmp_path / f"{kind}.mcap", 1.0)
        lifetime = read_messages(tmp_path / f"{kind}.mcap", "/markers")[0].markers[0].lifetime
        assert lifetime.sec + 1e-9 * lifetime.nanosec == pytest.approx(seconds, rel=0.0, abs=1e-9)


@pytest.mark.requirement("DVU-7", "DVU-6")
def test_documented_robot_has_markers_for_its_four_beams(tmp_path: Path) -> None:
    (tmp_path / "sea.sdf").write_text(
        f"<sdf version='1.9'><world name='sea'><include><uri>{ROBOTS / 'uuv.urdf'}</uri><pose>0 0 -10 0 0 0</pose>"
        f"</include>{LEVEL}</world></sdf>",
        encoding="utf-8",
    )
    ns.record(ns.load(tmp_path / "sea.sdf"), tmp_path / "dive.mcap", 2.0)
    for i in range(4):
        message = read_messages(tmp_path / "dive.mcap", f"/dvl/dvl_sonar{i}/markers")[-1]
        assert message.markers[0].header.frame_id == f"dvl/dvl_sonar{i}_link"
        (line,) = read_lines(message)
        (own,) = read_messages(tmp_path / "dive.mcap", f"/dvl/dvl_sonar{i}")[-1:]
        assert line.end == pytest.approx([own.range, 0.0, 0.0], rel=1e-6, abs=0.0)


@pytest.mark.requirement("DVU-7")
def test_other_recordings_do_not_change(load: Callable[..., World], tmp_path: Path) -> None:
    """Without the element and with false the bytes are equal; with true all other topics keep their messages."""
    contents = []
    for name, text in (("absent", ""), ("off", "<visualize>false</visualize>"), ("on", "<visualize>true</visualize>")):
        path = tmp_path / f"{name}.mcap"
        ns.record(load(SENSORS["ray"].replace("<visualize>true</visualize>", text)), path, 2.0, seed=4)
        with path.open("rb") as stream:
            messages = [(channel.topic, message.data) for _, channel, message in make_reader(stream).iter_messages()]
        contents.append((path.read_bytes(), messages))
    (absent, _), (off, others), (_, marked) = contents
    assert off == absent
    assert [one for one in marked if not one[0].endswith("/markers")] == others
    assert len(marked) == len(others) + 10


@pytest.mark.requirement("DVU-7")
def test_converted_recordings_have_the_same_markers(load: Callable[..., World], tmp_path: Path) -> None:
    """From MCAP to ROS 1 without the fields that ROS 1 lacks, back to ROS 2, and through arrays."""
    ns.record(load(SENSORS["own"]), tmp_path / "a.mcap", 2.0, epoch=100)
    convert(tmp_path / "a.mcap", tmp_path / "b.bag")
    convert(tmp_path / "b.bag", tmp_path / "c.mcap")
    convert(tmp_path / "a.mcap", tmp_path / "d.npz")
    convert(tmp_path / "d.npz", tmp_path / "e.mcap")
    with AnyReader([tmp_path / "b.bag"]) as reader:
        (line,) = [line for line in reader.connections if line.topic.endswith("/markers")]
        assert line.digest == get_typestore(Stores.ROS1_NOETIC).generate_msgdef(KIND, ros_version=1)[1]
    expected = [read_lines(message) for message in read_messages(tmp_path / "a.mcap", "/markers")]
    for name in ("b.bag", "c.mcap", "e.mcap"):
        found = [read_lines(message) for message in read_messages(tmp_path / name, "/markers")]
        assert len(found) == len(expected)
        for own, other in zip(found, expected, strict=True):
            for first, second in zip(own, other, strict=True):
                assert np.array_equal(first.end, second.end)
                assert first.color == second.color


@pytest.mark.requirement("DVU-7")
def test_readings_are_read_as_without_markers(load: Callable[..., World], tmp_path: Path) -> None:
    world = load(SENSORS["own"])
    ns.record(world, tmp_path / "a.mcap", 2.0)
    with open_readings(tmp_path / "a.mcap") as assembler:
        list(assembler.iter_slices())
        assert assembler.topic_notes == []
    found = ns.open(tmp_path / "a.mcap")
    assert found.world.sensor("dvl").visualize
    plain = ns.simulate(replace(world, sensors=tuple(replace(one, visualize=False) for one in world.sensors)), 2.0)
    reading = plain["dvl"]
    assert np.array_equal(found["dvl"]["velocity"], reading["velocity"][reading.emitted], equal_nan=True)


@pytest.mark.requirement("DVU-7")
def test_sensor_without_beams_has_a_note(load: Callable[..., World]) -> None:
    world = load('<sensor name="imu" type="imu"><visualize>true</visualize></sensor>')
    assert [(one.kind, one.what, one.reason) for one in world.notes if "visualize" in one.what] == [
        ("unsupported", "<sensor><visualize>", "has only a visual effect")
    ]
    assert not world.sensor("imu").visualize

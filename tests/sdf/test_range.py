"""`<collision>` and range sensors: the file determines the surfaces that rays hit, and the spec."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense import sdf
from navsense.core.errors import FieldError
from navsense.core.pose import Pose, from_rpy, rotate
from navsense.description import describe
from navsense.environment.terrain.base import LazyShape
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from navsense.noise.specification import Noise
from navsense.sensors import Cone, Fan, Range, Sound
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

EYE = '<sensor name="eye" type="range"><pose>0 0 0 0 1.5707963267948966 0</pose><range><max>100</max></range></sensor>'
"""A sensor with one ray that points down."""


def encode_png(values: list[list[int]]) -> bytes:
    """Return a 16-bit image."""
    rows = b"".join(b"\0" + struct.pack(f">{len(row)}H", *row) for row in values)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", len(values[0]), len(values), 16, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make_body(geometry: str, pose: str = "", name: str = "bed", static: str = "true") -> str:
    inside = f"<pose>{pose}</pose>" if pose else ""
    return (
        f'<model name="{name}"><static>{static}</static><link name="l"><pose>0 0 -5 0 0 0</pose>'
        f'<collision name="c">{inside}<geometry>{geometry}</geometry></collision></link></model>'
    )


def make_robot(sensor: str = EYE, more: str = "") -> str:
    return f'<model name="auv"><link name="base">{sensor}{more}</link></model>'


def simulate_ranges(world: World, name: str = "auv::base::eye") -> float:
    return float(ns.simulate(world, 0.01, seed=1)[name]["range"][0])


@pytest.mark.requirement("DVU-2", "SDF-1")
@pytest.mark.parametrize(
    ("geometry", "shape", "distance"),
    [
        ("<plane><normal>0 0 2</normal><size>1 1</size></plane>", Plane((0.0, 0.0, 2.0)), 5.0),
        ("<plane/>", Plane(), 5.0),
        ("<box><size>2 4 3</size></box>", Box((2.0, 4.0, 3.0)), 3.5),
        ("<sphere><radius>0.75</radius></sphere>", Sphere(0.75), 4.25),
        ("<cylinder><radius>2</radius><length>3</length></cylinder>", Cylinder(2.0, 3.0), 3.5),
        ("<capsule><radius>1</radius><length>3</length></capsule>", Capsule(1.0, 3.0), 2.5),
        ("<ellipsoid><radii>1 2 3</radii></ellipsoid>", Ellipsoid((1.0, 2.0, 3.0)), 2.0),
    ],
)
def test_every_shape_is_read(load: Load, wrap_in_world: Text, geometry: str, shape: object, distance: float) -> None:
    world = load(wrap_in_world(make_robot() + make_body(geometry)))
    (solid,) = world.solids
    assert (solid.name, solid.link, solid.shape, solid.pose) == ("bed::l::c", "bed::l", shape, Pose())
    assert simulate_ranges(world) == pytest.approx(distance, rel=1e-14, abs=0.0)


@pytest.mark.requirement("DVU-2", "SDF-1")
def test_surface_poses_in_nested_models(load: Load, wrap_in_world: Text) -> None:
    ball = '<collision name="c"><pose>{}</pose><geometry><sphere><radius>1</radius></sphere></geometry></collision>'
    outer = (
        '<model name="rig"><pose>3 0 0 0 0 0</pose><static>1</static><link name="a"/>'
        f'<model name="arm"><pose>0 0 -7 0 3.14159265358979 0</pose><link name="b">{ball.format("3 0 1 0 0 0")}</link>'
        "</model></model>"
    )
    world = load(wrap_in_world(make_robot() + outer))
    (solid,) = world.solids
    assert solid.name == "rig::arm::b::c"
    assert solid.pose.position == (3.0, 0.0, 1.0)
    assert simulate_ranges(world) == pytest.approx(7.0, rel=1e-12, abs=0.0)  # at x = 3 - 3, z = -7 - 1, radius 1 m


@pytest.mark.requirement("DVU-2", "SDF-1")
def test_heightmaps_and_meshes_are_read_when_needed(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    (tmp_path / "sea").mkdir()
    (tmp_path / "sea" / "bed.png").write_bytes(encode_png([[0, 0, 0], [0, 65535, 0], [0, 0, 0]]))
    (tmp_path / "rock.obj").write_text("o rock\nv -1 -1 0\nv 1 -1 0\nv 0 2 0\nf 1 2 3\n", encoding="utf-8")
    hill = "<heightmap><uri>model://sea/bed.png</uri><size>10 10 2</size><pos>0 0 -1</pos></heightmap>"
    rock = "<mesh><uri>rock.obj</uri><scale>2 2 1</scale><submesh><name>rock</name></submesh></mesh>"
    world = load(wrap_in_world(make_robot() + make_body(hill)), path=str(tmp_path))
    assert simulate_ranges(world) == pytest.approx(4.0, rel=1e-14, abs=0.0)  # the top of the hill is at -5 - 1 + 2
    mesh = load(wrap_in_world(make_robot() + make_body(rock, "0 0 1.5 0 0 0")))
    assert simulate_ranges(mesh) == pytest.approx(3.5, rel=1e-14, abs=0.0)
    assert isinstance(mesh.solids[0].shape, LazyShape)
    assert "shape" in vars(mesh.solids[0].shape)
    unread = load(wrap_in_world(make_robot("") + make_body(rock)))
    ns.simulate(unread, 0.01, seed=1)
    assert "shape" not in vars(unread.solids[0].shape)


@pytest.mark.requirement("DVU-2", "SDF-1")
def test_missing_surface_file_is_reported(
    load: Load, list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path
) -> None:
    lost = make_body("<mesh><uri>model://reef/rock.stl</uri></mesh>")
    (line,) = list_problems(wrap_in_world(make_robot() + lost))
    assert line.startswith("dive.sdf:3: <mesh><uri>: model://reef/rock.stl; is not found; searched reef/rock.stl")
    assert "GZ_SIM_RESOURCE_PATH" in line
    world = load(wrap_in_world(make_robot("") + lost))
    (note,) = (note for note in world.notes if "rock.stl" in note.what)
    assert "is not found; searched" in note.reason
    assert "no sensor's rays can hit it" in note.reason
    with pytest.raises(FieldError, match="is not found;"):
        world.solids[0].shape.shape  # type: ignore[attr-defined]  # noqa: B018
    (tmp_path / "bad.stl").write_bytes(b"solid nothing\nendsolid\n")
    broken = load(wrap_in_world(make_robot() + make_body("<mesh><uri>bad.stl</uri></mesh>")))
    with pytest.raises(FieldError) as caught:
        ns.simulate(broken, 0.01, seed=1)
    assert "dive.sdf:3: surface bed::l::c" in str(caught.value)
    assert "bad.stl" in str(caught.value)


@pytest.mark.requirement("DVU-2", "SDF-1")
def test_unreachable_hull_is_not_read(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    (tmp_path / "hull.stl").write_bytes(b"broken")
    hull = '<collision name="hull"><geometry><mesh><uri>hull.stl</uri></mesh></geometry></collision>'
    world = load(wrap_in_world(make_robot(more=hull) + make_body("<plane/>")))
    assert simulate_ranges(world) == 5.0
    lost = load(wrap_in_world(make_robot(more=hull.replace("hull.stl", "lost.stl")) + make_body("<plane/>")))
    assert simulate_ranges(lost) == 5.0
    assert any("lost.stl" in note.what for note in lost.notes)


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize(
    ("geometry", "problem"),
    [
        ("<sphere><radius>0</radius></sphere>", "<sphere> sphere's radius (m): 0.0; must be a number from 1e-09"),
        ("<sphere><radius>big</radius></sphere>", "<sphere><radius>: big; must be a finite number"),
        ("<plane><normal>0 0 0</normal></plane>", "<plane> plane's normal: (0.0, 0.0, 0.0); must be finite and not"),
        ("<mesh/>", "<mesh><uri>: missing; must be given"),
        (
            "<heightmap><uri>bed.png</uri><sampling>1.5</sampling></heightmap>",
            "<heightmap><sampling>: 1.5; must be a whole number",
        ),
        ("<mesh><uri>https://fuel/rock.stl</uri></mesh>", "<mesh><uri>: https://fuel/rock.stl; must be a file"),
        ("<mesh><uri>.</uri></mesh>", "<mesh><uri>: .; is a folder"),
    ],
)
def test_invalid_shapes_are_reported(
    list_problems: ListProblems, wrap_in_world: Text, geometry: str, problem: str
) -> None:
    (line, *_) = list_problems(wrap_in_world(make_robot() + make_body(geometry)))
    assert line.partition(" ")[2].startswith(problem)


@pytest.mark.requirement("SDF-1")
def test_unsupported_shapes_are_listed(load: Load, wrap_in_world: Text) -> None:
    world = load(
        wrap_in_world(make_robot() + make_body("<cone><radius>1</radius></cone>") + make_body("<empty/>", name="none"))
    )
    assert world.solids == ()
    assert any("cone" in note.what and "rays do not hit" in note.reason for note in world.notes)


# sensors


def get_spec(world: World) -> Range:
    (sensor,) = world.sensors
    assert isinstance(sensor.spec, Range)
    return sensor.spec


SCAN = """<scan><horizontal><samples>3</samples><resolution>1</resolution><min_angle>-0.03</min_angle>
<max_angle>0.03</max_angle></horizontal><vertical><samples>3</samples><resolution>1</resolution>
<min_angle>-0.02</min_angle><max_angle>0.04</max_angle></vertical></scan>
<range><min>0.55</min><max>81</max><resolution>0.01</resolution></range>"""


@pytest.mark.requirement("DVU-2", "SDF-1")
@pytest.mark.parametrize("kind", ["ray", "lidar", "gpu_ray", "gpu_lidar"])
@pytest.mark.parametrize("tag", ["ray", "lidar"])
def test_ray_sensor_is_one_beam(load: Load, wrap_in_link: Text, kind: str, tag: str) -> None:
    noise = "<noise><type>gaussian</type><mean>0.1</mean><stddev>0.02</stddev></noise>"
    world = load(wrap_in_link(f'<sensor name="eye" type="{kind}"><{tag}>{SCAN}{noise}</{tag}></sensor>'))
    fan = Fan(3, -0.03, 0.03, 3, -0.02, 0.04)
    assert get_spec(world) == Range(Noise(mean=0.1, stddev=0.02, precision=0.01), 0.55, 81.0, fan)
    assert not world.notes


@pytest.mark.requirement("DVU-2", "SDF-1")
def test_multi_beam_scanner_is_listed(load: Load, wrap_in_link: Text) -> None:
    wide = SCAN.replace("-0.03", "-1.4").replace("0.03", "1.4")
    world = load(wrap_in_link(f'<sensor name="eye" type="gpu_lidar"><lidar>{wide}</lidar></sensor>'))
    assert not world.sensors
    (note,) = world.notes
    assert note.what == '<sensor type="gpu_lidar">: auv::base::eye'
    assert "scanners are not simulated" in note.reason


@pytest.mark.requirement("ALT-8", "SDF-1")
def test_acoustic_altimeter_is_read(load: Load, wrap_in_link: Text) -> None:
    text = """<sensor name="eye" type="range"><update_rate>2</update_rate><range><min>0.5</min><max>100</max>
<resolution>0.01</resolution><noise type="gaussian"><stddev>0.05</stddev></noise>
<beam width_deg="10" rings="4"><axis>0 0 -1</axis></beam><sound speed="1500"/><own_hull>true</own_hull></range>
</sensor>"""
    world = load(wrap_in_link(text))
    expected = Range(
        Noise(stddev=0.05, precision=0.01),
        0.5,
        100.0,
        Cone(math.radians(10.0), 4, (0.0, 0.0, -1.0)),
        Sound(1500.0),
        own_hull=True,
    )
    assert get_spec(world) == expected
    assert world.sensors[0].topic.endswith("/sensor/eye/range")
    assert any("beam: sound, assumes 1500 m/s, 10 deg wide" in line for line in describe(world))


@pytest.mark.requirement("DVU-2", "SDF-1")
@pytest.mark.parametrize(
    ("kind", "last"),
    [("ray", "scan"), ("lidar", "scan"), ("gpu_ray", "scan"), ("gpu_lidar", "scan"), ("sonar", "sonar")],
)
def test_default_topics_equal_gazebo(load: Load, wrap_in_link: Text, kind: str, last: str) -> None:
    """The last component is Gazebo's (`tests/oracles/gazebo/README.md`). A topic in use falls back to it."""
    block = "<ray><scan><horizontal><samples>1</samples></horizontal></scan><range><max>9</max></range></ray>"
    if kind == "sonar":
        block = "<sonar><max>9</max></sonar>"
    bare = f'<sensor name="eye" type="{kind}">{block}</sensor>'
    named = bare.replace("eye", "{}").replace("><", "><topic>x</topic><", 1)
    world = load(wrap_in_link(bare + named.format("a") + named.format("b")))
    path = "/world/ocean/model/auv/link/base/sensor"
    assert [sensor.topic for sensor in world.sensors] == [f"{path}/eye/{last}", "/x", f"{path}/b/{last}"]


@pytest.mark.requirement("DVU-2", "SDF-1")
def test_gazebo_classic_sonar_points_down(load: Load, wrap_in_world: Text) -> None:
    cone = '<sensor name="eye" type="sonar"><sonar><min>0.1</min><max>8</max><radius>0.5</radius></sonar></sensor>'
    world = load(wrap_in_world(make_robot(cone) + make_body("<plane/>")))
    found = get_spec(world)
    assert found == Range(Noise(), 0.1, 8.0, Cone(2.0 * math.atan(0.5 / 8.0), 3, (0.0, 0.0, -1.0)), Sound())
    assert simulate_ranges(world) == pytest.approx(5.0, rel=1e-12, abs=0.0)
    ball = cone.replace("<min>", "<geometry>sphere</geometry><min>")
    up = load(wrap_in_world(make_robot(ball) + make_body("<plane/>", "0 0 8 0 0 0")))
    assert simulate_ranges(up) == pytest.approx(3.0, rel=1e-12, abs=0.0)


PLUGIN = """<plugin filename="libgazebo_ros_range.so" name="dvl_sonar0"><gaussianNoise>0.005</gaussianNoise>
<alwaysOn>true</alwaysOn><updateRate>7</updateRate><topicName>dvl/dvl_sonar0</topicName>
<frameName>dvl/dvl_sonar0_link</frameName><fov>0.06</fov><radiation>ultrasound</radiation></plugin>"""


@pytest.mark.requirement("DVU-2", "SDF-1")
def test_gazebo_range_plugin_is_read(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(f'<sensor name="eye" type="ray"><ray>{SCAN}</ray>{PLUGIN}</sensor>'))
    (sensor,) = world.sensors
    assert get_spec(world).range_noise == Noise(stddev=0.005, precision=0.01)
    assert get_spec(world).sound == Sound()
    assert (sensor.rate, sensor.topic, sensor.frame) == (7.0, "/dvl/dvl_sonar0", "dvl/dvl_sonar0_link")
    assert not world.notes


@pytest.mark.requirement("DVU-2", "SDF-1")
def test_noise_of_the_range_plugin_adds_to_that_of_the_rays(load: Load, wrap_in_link: Text) -> None:
    """Independent deviations add up as a root sum of squares: 3, 4 and 5 mm. A noise of type none is none."""
    plugin = '<plugin filename="libgazebo_ros_range.so" name="p"><gaussianNoise>0.004</gaussianNoise></plugin>'
    for noise_type, stddev in (("gaussian", 0.005), ("none", 0.004)):
        noise = f"<noise><type>{noise_type}</type><mean>0.1</mean><stddev>0.003</stddev></noise>"
        ray = f"<ray><range><min>0.1</min><max>9</max></range><scan><horizontal/></scan>{noise}</ray>"
        world = load(wrap_in_link(f'<sensor name="eye" type="ray">{ray}{plugin}</sensor>'))
        assert get_spec(world).range_noise.stddev == pytest.approx(stddev, rel=1e-12, abs=0.0)


@pytest.mark.requirement("DVU-2", "SDF-1")
def test_range_plugin_uses_sensor_values(load: Load, wrap_in_link: Text) -> None:
    noise = "<noise><type>gaussian</type><stddev>0.012</stddev></noise>"
    plugin = PLUGIN.replace("ultrasound", "infrared").replace("0.06", "0.5")
    own = "<update_rate>5</update_rate><topic>own</topic><frame_id>mine</frame_id>"
    world = load(wrap_in_link(f'<sensor name="eye" type="ray">{own}<ray>{SCAN}{noise}</ray>{plugin}</sensor>'))
    (sensor,) = world.sensors
    assert get_spec(world).range_noise.stddev == pytest.approx(0.013, rel=1e-15, abs=0.0)
    assert get_spec(world).sound is None
    assert (sensor.rate, sensor.topic, sensor.frame) == (5.0, "/own", "mine")
    wide = SCAN.replace("-0.03", "-1.4").replace("0.03", "1.4")
    assert load(wrap_in_link(f'<sensor name="eye" type="ray"><ray>{wide}</ray>{PLUGIN}</sensor>')).sensors
    assert any("messages have the width of the rays," in note.reason for note in world.notes)


@pytest.mark.requirement("DVU-2", "ALT-8", "SDF-1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<sensor name="e" type="ray"/>', "<sensor>: auv::base::e; requires a type element <ray>,"),
        ('<sensor name="e" type="ray"><ray/></sensor>', "<ray><scan>: missing; must be given"),
        (
            f'<sensor name="e" type="ray"><ray>{SCAN.replace("81", "0.5")}</ray></sensor>',
            "<ray> maximum_range (m): 0.5",
        ),
        ('<sensor name="e" type="range"><range/></sensor>', "<range><max>: missing"),
        (
            '<sensor name="e" type="range"><range><max>9</max><width/></range></sensor>',
            "<range><width>; is not allowed",
        ),
        (
            '<sensor name="e" type="range"><range><max>9</max><beam width_deg="4" rings="1.5"/></range></sensor>',
            "<beam rings>: 1.5; must be a whole number",
        ),
        (
            '<sensor name="e" type="range"><range><max>9</max><sound speed="1"/></range></sensor>',
            "<sound> assumed speed of sound (m/s): 1.0; must be from 100",
        ),
    ],
)
def test_invalid_sensors_are_reported(list_problems: ListProblems, wrap_in_link: Text, text: str, problem: str) -> None:
    (line, *_) = list_problems(wrap_in_link(text))
    assert line.partition(" ")[2].startswith(problem)


@pytest.mark.requirement("DVU-2", "ALT-8", "SDF-1")
def test_range_of_a_rolling_vehicle_over_a_slope(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    """The range along the tilted beam equals the closed form of the true attitudes of the run."""
    slope = make_body("<plane><normal>0.3 0 1</normal></plane>")
    moved = '<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>'
    moved += '<navsense:waypoint time="2">4 0 0 0.4 0 0</navsense:waypoint></navsense:motion></model>'
    world = load(wrap_in_world(make_robot().replace("</model>", moved) + slope))
    run = ns.simulate(world, 2.0, seed=1)["auv::base::eye"]
    place = ns.simulate(world, 2.0, seed=1, truth_rate=1000.0).truth["auv::base"]
    normal = np.array([0.3, 0.0, 1.0])
    down = np.array([rotate((q[0], q[1], q[2], q[3]), (0.0, 0.0, -1.0)) for q in place.orientation.tolist()])
    height = (place.position - [0.0, 0.0, -5.0]) @ normal
    assert run["range"] == pytest.approx(-height / (down @ normal), rel=1e-12, abs=0.0)
    assert sdf.load(tmp_path / "dive.sdf").solids[0].pose == Pose((0.0, 0.0, 0.0), from_rpy(0.0, 0.0, 0.0))


@pytest.mark.requirement("DVU-2", "SDF-2")
def test_urdf_robot_with_surfaces_and_a_range_sensor(tmp_path: Path) -> None:
    """The pool of a URDF robot is a body, its own hull is not, so a missing mesh of the hull has no effect."""
    pool = """<robot name="pool"><link name="floor">
<collision><origin xyz="0 0 -4" rpy="0 0 0"/><geometry><box size="20 20 2"/></geometry></collision>
<collision name="rail"><origin xyz="0 9 0" rpy="1.5707963267948966 0 0"/>
<geometry><cylinder radius="0.5" length="30"/></geometry></collision>
<collision><geometry><sphere radius="0.25"/></geometry></collision></link></robot>"""
    auv = f"""<robot name="auv"><link name="base"><collision><geometry><mesh filename="package://auv/hull.dae"
scale="2 2 2"/></geometry></collision></link><gazebo reference="base"><sensor name="eye" type="ray">
<pose>5 5 0 0 1.5707963267948966 0</pose><ray>{SCAN}</ray>{PLUGIN}</sensor></gazebo></robot>"""
    (tmp_path / "pool.urdf").write_text(pool, encoding="utf-8")
    (tmp_path / "auv.urdf").write_text(auv, encoding="utf-8")
    text = "<sdf version='1.12'><world name='w'><include><uri>pool.urdf</uri></include>"
    text += "<include><uri>auv.urdf</uri></include></world></sdf>"
    (tmp_path / "w.sdf").write_text(text, encoding="utf-8")
    world = sdf.load(tmp_path / "w.sdf")
    names = [solid.name for solid in world.solids]
    assert names == [
        "pool::floor::floor_collision",
        "pool::floor::rail",
        "pool::floor::floor_collision_2",
        "auv::base::base_collision",
    ]
    assert [solid.shape for solid in world.solids[:3]] == [Box((20.0, 20.0, 2.0)), Cylinder(0.5, 30.0), Sphere(0.25)]
    run = ns.simulate(world, 300.0, seed=2)["auv::base::eye"]
    assert run["range"].mean() == pytest.approx(3.0, abs=4.9 * 0.0058 / math.sqrt(2100.0))
    assert any("hull.dae" in note.what for note in world.notes)


SONAR = """<sensor name="s" type="ray"><update_rate>10</update_rate>
<ray><scan><horizontal><samples>3</samples><min_angle>-0.03</min_angle><max_angle>0.03</max_angle></horizontal></scan>
<range><min>0.7</min><max>90</max></range></ray>{plugin}</sensor>"""

ROS = """<plugin name="p" filename="libgazebo_ros_range.so"><topicName>sonar</topicName><frameName>f</frameName>
<radiation>ultrasound</radiation></plugin>"""

WALL = """<model name="wall"><static>1</static><pose>{x} 0 0 0 0 0</pose><link name="l"><collision name="c"><geometry>
<box><size>0.2 50 50</size></box></geometry></collision></link></model>"""


@pytest.mark.requirement("DVU-8", "DVU-5")
@pytest.mark.parametrize("asked", ["load", "run"])
@pytest.mark.parametrize(
    ("place", "plugin", "fidelity", "shown"),
    [
        (0.5, ROS, "classic", 0.7),
        (200.0, ROS, "classic", 90.0),
        (20.1, ROS, "classic", 20.0),
        (0.5, ROS, "physical", -math.inf),
        (200.0, ROS, "physical", math.inf),
        (0.5, "", "classic", -math.inf),
        (200.0, "", "classic", math.inf),
    ],
)
def test_range_plugin_messages_out_of_range(
    load: Load, wrap_in_world: Text, tmp_path: Path, place: float, plugin: str, fidelity: str, shown: float, asked: str
) -> None:
    """Classic reports the limit, as documented for the plug-in. Physical, or without the plug-in, it is infinite."""
    robot = f'<model name="auv"><static>1</static><link name="base">{SONAR.format(plugin=plugin)}</link></model>'
    world = load(wrap_in_world(robot + WALL.format(x=place)), fidelity=fidelity if asked == "load" else None)
    run = ns.simulate(world, 1.0, seed=1, fidelity=None if asked == "load" else fidelity, epoch=1000)
    reading = run["auv::base::s"]
    run.save(tmp_path / "a.mcap")
    with AnyReader([tmp_path / "a.mcap"]) as reader:
        lines = [connection for connection in reader.connections if connection.msgtype == "sensor_msgs/msg/Range"]
        (line,) = (line for line in lines if line.topic == world.sensors[0].topic)
        ranges = [reader.deserialize(raw, line.msgtype).range for _, _, raw in reader.messages([line])]  # type: ignore[attr-defined]
    assert ranges == pytest.approx([shown] * 10, rel=1e-6, abs=0.0)
    back = ns.open(tmp_path / "a.mcap")["auv::base::s"]
    assert np.array_equal(back["out_of_range"], reading["out_of_range"])
    assert np.array_equal(np.isnan(back["range"]), np.isnan(reading["range"]))
    assert np.array_equal(np.isfinite(reading["range"]), np.full(10, place == 20.1))

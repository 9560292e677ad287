"""URDF: chains of joints, `<gazebo>` blocks, and errors with their location."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense import sdf
from navsense.core.errors import SdfError
from navsense.core.pose import Pose
from navsense.sdf.urdf import schema as urdf_schema
from navsense.sensors import Altimeter, Imu
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]

TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def make_joint(name: str, parent: str, child: str, inner: str = "", kind: str = "fixed") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inner}</joint>'


def make_shape(shape: str) -> str:
    """Return a link with a collision. The shape is on line 3."""
    return f'<link name="b"><collision>\n<geometry>{shape}</geometry></collision></link>'


EYE = (
    '<gazebo reference="b"><sensor name="eye" type="range"><range><max>9</max><own_hull>true</own_hull></range>'
    "</sensor></gazebo>"
)
"""A sensor whose rays may hit its own link."""


def make_robot(body: str, name: str = "auv") -> str:
    """Return a robot whose first element is on line 2."""
    return f'<robot name="{name}">\n{body}\n</robot>\n'


def find_position(world: World, link: str) -> tuple[float, ...]:
    return world.models[0].link(link).pose.position


def to_matrix(pose: Pose) -> np.ndarray:
    w, x, y, z = pose.rotation
    found = np.eye(4)
    found[:3, :3] = Rotation.from_quat([x, y, z, w]).as_matrix()
    found[:3, 3] = pose.position
    return found


def make_origin_matrix(xyz: list[float], rpy: list[float]) -> np.ndarray:
    """Return the origin of a joint as a matrix: URDF's angles are about the fixed axes x, y, z in this order."""
    found = np.eye(4)
    found[:3, :3] = Rotation.from_euler("xyz", rpy).as_matrix()
    found[:3, 3] = xyz
    return found


ORIGINS = [
    ([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]),
    ([-0.5, 0.0, 0.25], [math.pi, 0.0, -1.2]),
    ([0.0, 0.0, -2.0], [0.0, -0.52, 0.0]),
    ([1e-3, 40.0, 0.0], [3.0, 1.5, -3.0]),
    ([0.3, 0.2, 0.1], [0.0, math.pi / 2, 0.0]),
    ([0.0, 0.0, 0.0], [-2.0, 0.4, 2.0]),
]


@pytest.mark.requirement("SDF-2")
def test_chain_of_every_joint_type(load: Load) -> None:
    """All joints and links are kept, for any type, order and mass. Poses equal SciPy's rotations."""
    links = [f'<link name="l{i}"/>' for i in range(7)]
    joints = [
        make_joint(f"j{i}", f"l{i}", f"l{i + 1}", f'<origin xyz="{join(xyz)}" rpy="{join(rpy)}"/>{LIMIT}', kind)
        for i, (kind, (xyz, rpy)) in enumerate(zip(TYPES, ORIGINS, strict=True))
    ]
    world = load(make_robot("\n".join([*reversed(joints), *reversed(links)])))
    (model,) = world.models
    assert (world.name, model.name, model.canonical_link) == ("auv", "auv", "auv::l0")
    assert {link.name for link in model.links} == {f"auv::l{i}" for i in range(7)}
    expected = np.eye(4)
    for i, (xyz, rpy) in enumerate(ORIGINS, 1):
        expected = expected @ make_origin_matrix(xyz, rpy)
        assert to_matrix(model.link(f"auv::l{i}").pose) == pytest.approx(expected, abs=1e-12)
    held = [note.what for note in world.notes if note.what.startswith("<joint name=") and "keep" in note.reason]
    assert sorted(held) == sorted(f'<joint name="j{i}" type="{kind}">' for i, kind in enumerate(TYPES) if i != 3)


def join(numbers: list[float]) -> str:
    return " ".join(map(str, numbers))


@pytest.mark.requirement("SDF-2")
def test_half_turns_match_a_manual_calculation(load: Load) -> None:
    """A foot at the end of an arm has quarter turns, so every number can be verified manually."""
    quarter = math.pi / 2
    text = make_robot(
        '<link name="base"/><link name="arm"/><link name="foot"/>'
        + make_joint("shoulder", "base", "arm", f'<origin xyz="1 0 0" rpy="0 0 {quarter}"/>', "continuous")
        + make_joint("ankle", "arm", "foot", f'<origin xyz="2 0 0" rpy="{quarter} 0 0"/>')
        + '<gazebo reference="foot"><sensor name="imu" type="imu"><pose>0 3 0 0 0 0</pose></sensor></gazebo>'
    )
    world = load(text)
    assert find_position(world, "auv::arm") == pytest.approx((1, 0, 0), rel=1e-12, abs=0.0)
    foot = world.models[0].link("auv::foot").pose
    assert foot.position == pytest.approx(
        (1, 2, 0), rel=1e-12, abs=0.0
    )  # two metres along the arm, which points along y
    (imu,) = world.sensors
    assert (foot @ imu.pose).position == pytest.approx((1, 2, 3), rel=1e-12, abs=0.0)  # y of the foot points up


@pytest.mark.requirement("SDF-2")
def test_urdf_defaults(load: Load) -> None:
    world = load(
        make_robot(
            '<link name="a"/><link name="b"/>' + make_joint("j", "a", "b", "<origin/><axis/>", "revolute"), " auv "
        )
    )
    assert world.models[0].link("auv::b").pose == Pose()
    assert world.models[0].pose == Pose()
    assert load(make_robot('<origin xyz="1 2 3"/><link name="a"/>')).models[0].pose == Pose((1.0, 2.0, 3.0))


GAZEBO = """
<sensor name="imu" type="imu"><pose{frame}>0.1 0 0.2 0 0.3 0</pose><update_rate>200</update_rate>
<imu><angular_velocity><x><noise type="gaussian"><stddev>2e-4</stddev><bias_stddev>7e-6</bias_stddev></noise></x>
</angular_velocity></imu></sensor>
<sensor name="mag" type="magnetometer"><topic>compass</topic><clock>mcu</clock></sensor>
<sensor name="alt" type="altimeter"/><sensor name="air" type="air_pressure"/><sensor name="gps" type="navsat"/>
<clock name="mcu"><noise type="gaussian"><mean>1e-3</mean></noise></clock>
"""


@pytest.mark.requirement("SDF-2", "IMU-1", "CLK-1")
def test_urdf_robot_equals_sdf_robot(tmp_path: Path) -> None:
    """A robot in URDF gives the same world as in SDF."""
    origin, empty = '<origin xyz="0 0 1" rpy="0 0 2"/>', ' frame=""'
    (tmp_path / "a.urdf").write_text(
        make_robot(
            f'<link name="base"/><link name="hull"/>{make_joint("j", "base", "hull", origin)}'
            f'<gazebo reference="hull">{GAZEBO.format(frame=empty)}</gazebo><gazebo><static>1</static></gazebo>'
        ),
        encoding="utf-8",
    )
    (tmp_path / "a.sdf").write_text(
        f'<sdf version="1.12"><model name="auv"><static>1</static><link name="base"/><link name="hull">'
        f"<pose>0 0 1 0 0 2</pose>{GAZEBO.format(frame='')}</link>"
        '<joint name="j" type="fixed"><parent>base</parent><child>hull</child></joint></model></sdf>',
        encoding="utf-8",
    )
    for suffix in ("urdf", "sdf"):  # in a world, because a NavSat needs coordinates
        (tmp_path / f"in_{suffix}.sdf").write_text(
            '<sdf version="1.12"><world name="w"><spherical_coordinates><latitude_deg>40</latitude_deg>'
            "<longitude_deg>-70</longitude_deg><elevation>0</elevation></spherical_coordinates>"
            f"<include><uri>a.{suffix}</uri></include></world></sdf>",
            encoding="utf-8",
        )
    ours, theirs = sdf.load(tmp_path / "in_urdf.sdf"), sdf.load(tmp_path / "in_sdf.sdf")
    assert len(ours.sensors) == 5
    assert ours.models == theirs.models
    for one, other in zip(ours.sensors, theirs.sensors, strict=True):
        assert (one.name, one.spec, one.rate, one.pose) == (other.name, other.spec, other.rate, other.pose)
        assert (one.topic, one.frame, one.clock) == (other.topic, other.frame, other.clock)
    assert [clock.name for clock in ours.clocks] == ["auv::hull::mcu"]
    assert ours.sensors[0].topic == "/world/w/model/auv/link/hull/sensor/imu/imu"


@pytest.mark.requirement("SDF-2")
def test_older_gazebo_elements_are_read(load: Load) -> None:
    """`<gazebo>` has no version: elements of 1.5 and 1.6 keep their old meaning."""
    (imu,) = load(
        make_robot("""<link name="base"/><gazebo reference="base"><sensor name="imu" type="imu">
<pose frame="base">1 0 0 0 0 0</pose><imu><topic>old</topic><noise><type>gaussian</type>
<rate><mean>0</mean><stddev>2e-4</stddev></rate><accel><stddev>0.017</stddev></accel></noise></imu></sensor></gazebo>""")
    ).sensors
    assert isinstance(imu.spec, Imu)
    assert (imu.topic, imu.pose.position) == ("/old", (1.0, 0.0, 0.0))
    assert (imu.spec.angular_velocity_y.stddev, imu.spec.linear_acceleration_z.stddev) == (2e-4, 0.017)


@pytest.mark.requirement("SDF-2")
def test_world_link_as_root(load: Load, list_problems: ListProblems) -> None:
    body = (
        '<link name="world"/><link name="b"/><link name="a"/>'
        + make_joint("jb", "world", "b", '<origin xyz="1 0 0"/>')
        + make_joint("ja", "world", "a", '<origin xyz="0 1 0"/>', "prismatic")
    )
    world = load(make_robot(body + '<gazebo reference="world"><plugin name="p" filename="lib.so"/></gazebo>'))
    assert [link.name for link in world.models[0].links] == ["auv::b", "auv::a"]
    assert (find_position(world, "auv::b"), find_position(world, "auv::a")) == ((1, 0, 0), (0, 1, 0))
    assert any('<plugin name="p" filename="lib.so">' in note.what for note in world.notes)
    lost = load(make_robot(body + '\n<gazebo reference="world"><sensor name="i" type="imu"/></gazebo>'))
    (note,) = (note for note in lost.notes if note.kind == "warning")
    assert (note.what, note.where and note.where.line) == ("<gazebo reference>: world", 3)
    assert note.reason.startswith('is ignored, with <sensor name="i">: the world cannot have such elements; add a link')
    (line,) = list_problems(make_robot('<link name="world"/><link name="b"/>\n' + make_joint("j", "b", "world")))
    assert line == "dive.sdf:3: <joint><child link>: world; the world cannot be a child"
    (line,) = list_problems(make_robot('<link name="world"/>'))
    assert line == "dive.sdf:1: <robot name>: auv; a robot must have at least one link"


@pytest.mark.requirement("SDF-2")
def test_joint_may_share_the_name_of_a_link(load: Load) -> None:
    """URDF has separate namespaces for links and joints, SDF has one."""
    body = '<link name="base"/><link name="arm"/>\n' + make_joint(
        "arm", "base", "arm", '<origin xyz="1 0 0"/>', "revolute"
    )
    world = load(make_robot(f'{body}<gazebo reference="arm"><sensor name="i" type="imu"/></gazebo>'))
    assert find_position(world, "auv::arm") == (1, 0, 0)
    assert [sensor.link for sensor in world.sensors] == ["auv::arm"]
    assert any(note.kind == "warning" and note.what == '<joint name="arm">' for note in world.notes)


@pytest.mark.requirement("SDF-2")
def test_model_level_gazebo_elements_are_read(load: Load) -> None:
    world = load(
        make_robot("""<link name="base"/><link name="mast"/>
<joint name="j" type="floating"><parent link="base"/><child link="mast"/><origin xyz="0 0 2"/></joint>
<gazebo xmlns:navsense="https://navsense.org/sdf"><self_collide>1</self_collide>
<plugin name="p3d" filename="libgazebo_ros_p3d.so"/><plugin name="ros" filename="libgazebo_ros_control.so"/>
<frame name="keel"><pose relative_to="j">0 0 -3 0 0 0</pose></frame>
<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>
<navsense:waypoint time="5">1 0 0 0 0 0</navsense:waypoint></navsense:motion></gazebo>
<gazebo reference="base"><sensor name="alt" type="altimeter"><pose relative_to="keel"/></sensor>
<sensor name="imu" type="imu"><plugin name="i" filename="libmagic.so"><topicName>x</topicName></plugin>
</sensor><plugin name="thruster" filename="libthruster.so"/></gazebo>""")
    )
    assert world.models[0].motion is not None
    altimeter, _ = world.sensors
    assert isinstance(altimeter.spec, Altimeter)
    assert altimeter.pose.position == (0.0, 0.0, -1.0)
    text = "\n".join(map(str, world.notes))
    for what in (
        '<model><plugin name="p3d" filename="libgazebo_ros_p3d.so">',
        '<model><plugin name="ros" filename="libgazebo_ros_control.so">',
        '<sensor><plugin name="i" filename="libmagic.so">',
        '<link><plugin name="thruster" filename="libthruster.so">',
        "<model><self_collide>",
        '<joint name="j" type="floating">',
    ):
        assert what in text
    (note,) = load(make_robot('<link name="base"/>\n<gazebo><sensor name="i" type="imu"/></gazebo>')).notes
    assert (note.kind, note.what) == ("warning", "<gazebo><sensor>: i")
    assert note.reason == 'is ignored: a sensor belongs to a link; write <gazebo reference="LINK"> around it'


@pytest.mark.requirement("SDF-2")
def test_every_element_is_read_or_listed(load: Load) -> None:
    """Each element that has no effect is a note with its line and a reason."""
    parts = [
        ("link", urdf_schema.LINK.unsupported),
        ("joint", urdf_schema.JOINT.unsupported),
        ("gazebo", urdf_schema.IGNORED_SETTINGS),
        ("robot", urdf_schema.ROBOT.unsupported),
    ]
    inner = {tag: "\n".join(f"<{name}/>" for name in names) for tag, names in parts}
    world = load(
        make_robot(
            f'<link name="a">{inner["link"]}</link><link name="b"/>{make_joint("j", "a", "b", inner["joint"])}'
            f'<gazebo reference="b">{inner["gazebo"]}</gazebo>{inner["robot"]}'
        )
    )
    noted = {note.what for note in world.notes if note.reason and note.where and note.where.line}
    expected = {f"<{tag}><{name}>" for tag, names in parts for name in names}
    assert expected <= noted
    assert len(expected) >= 40


@pytest.mark.requirement("SDF-2")
def test_stale_gazebo_references_are_reported(load: Load) -> None:
    body = '<link name="base"/>\n<gazebo reference="bse">{}</gazebo>'
    world = load(make_robot(body.format('<material>Red</material><plugin name="p" filename="l.so"/>')))
    assert {note.kind for note in world.notes} == {"warning", "unsupported"}
    assert any("<gazebo reference>: bse" in note.what for note in world.notes)
    (note,) = load(make_robot(body.format('<sensor name="i" type="imu"/>'))).notes
    lost = 'is ignored, with <sensor name="i">: is not a link or joint of the robot; did you mean base?'
    assert (note.kind, note.what, note.reason) == ("warning", "<gazebo reference>: bse", lost)


BASE = '<link name="base"/><link name="arm"/>\n'


@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("", "1: <robot name>: auv; a robot must have at least one link"),
        ('<link name="base"/>\n<link name="base"/>', "3: <link name>: base; must be unique among the links of"),
        ("<link/>", '2: <link name>: missing; must be given; write name="..."'),
        ('<link name=" "/>', "2: <link name>: empty; must be given"),
        ('<link name="a::b"/>', '2: <link name>: a::b; must not contain "::"'),
        ('<link name="__model__"/>', "2: <link name>: __model__; is reserved by SDF"),
        (BASE, "2: <link name>: base, arm; a robot has one root link; these links have no parent joint"),
        ('<link name="world"/>\n<link name="b"/>', "3: <link name>: world, b; a robot has one root link;"),
        (BASE + make_joint("j", "base", "leg"), "3: <joint><child link>: leg; must name a link of the robot"),
        (
            BASE + make_joint("j", "bse", "arm"),
            "3: <joint><parent link>: bse; must name a link of the robot; did you mean",
        ),
        (BASE + make_joint("j", "base", "base"), "3: <joint name>: base; parent and child must differ"),
        (
            BASE + make_joint("j", "base", "arm", kind="hinge"),
            "3: <joint type>: hinge; must be one of continuous, fixed",
        ),
        (BASE + make_joint("j", "base", "arm", kind=""), "3: <joint type>: missing; must be one of"),
        (BASE + '<joint name="j" type="fixed"><parent link="base"/></joint>', "3: <joint><child>: missing"),
        (BASE + '<joint name="j" type="fixed"><parent/><child link="arm"/></joint>', "3: <joint><parent link>: miss"),
        (BASE + '<joint type="fixed"><parent link="base"/><child link="arm"/></joint>', "3: <joint name>: missing"),
        (
            BASE + make_joint("j", "base", "arm") + "\n" + make_joint("j", "arm", "base"),
            "4: <joint name>: j; must be unique",
        ),
        (
            BASE + make_joint("j", "base", "arm") + "\n" + make_joint("k", "arm", "base"),
            "3: <joint name>: base -> arm -> base;",
        ),
        (
            '<link name="c"/>' + BASE + make_joint("j", "base", "arm") + "\n" + make_joint("k", "c", "arm"),
            "4: <joint><child link>: arm; a link has one parent joint; the other is on line 3",
        ),
        (BASE + make_joint("j", "base", "arm", '<origin xyz="1 2"/>'), "3: <joint><origin xyz>: 1 2; must be 3 finite"),
        (
            BASE + make_joint("j", "base", "arm", '<origin xyz="1 2 nan"/>'),
            "3: <joint><origin xyz>: 1 2 nan; must be 3 fin",
        ),
        (
            BASE + make_joint("j", "base", "arm", '<origin rpy="0 0 1e999"/>'),
            "3: <joint><origin rpy>: 0 0 1e999; must be 3",
        ),
        (BASE + make_joint("j", "base", "arm", '<origin rpy=""/>'), "3: <joint><origin rpy>: empty; must be 3 finite"),
        (
            BASE + make_joint("j", "base", "arm", '<axis xyz="0 0 0"/>', "revolute"),
            "3: <joint><axis xyz>: 0 0 0; must have",
        ),
        (BASE + make_joint("j", "base", "arm", '<axis xyz="a"/>'), "3: <joint><axis xyz>: a; must be 3 finite numbers"),
        (
            '<link name="b"/><gazebo reference="b"><clock name="c">\n<noise type="x"/></clock></gazebo>',
            "3: <noise type>: x; must be",
        ),
        (make_shape("<box/>") + EYE, "3: <box><size>: empty; must be 3 finite numbers"),
        (make_shape('<cylinder radius="1"/>') + EYE, "3: <cylinder><length>: empty; must be a finite number"),
        ('<link name="b"/>\n<xacro:box size="1"/>', "3: <xacro:box>; can execute code; only a file that you name as"),
        (
            '<link name="b"/><link name="c"/><link name="d"/>' + make_joint("j", "b", "c", '<origin xyz="1e308 0 0"/>')
            + "\n" + make_joint("k", "c", "d", '<origin xyz="1e308 0 0"/>'),
            "3: <pose>: (inf, 0.0, 0.0); the poses along a chain must give finite numbers",
        ),
    ],
)  # fmt: skip
def test_errors_name_the_problem(list_problems: ListProblems, body: str, problem: str) -> None:
    problems = list_problems(make_robot(body))
    assert len(problems) == 1, problems
    assert problems[0].startswith(f"dive.sdf:{problem}"), problems


@pytest.mark.requirement("SDF-2")
def test_several_problems_are_reported_at_once(list_problems: ListProblems) -> None:
    body = (
        '<link/>\n<link name="a"/>\n'
        + make_joint("j", "x", "a", '<origin xyz="1"/>')
        + '\n<gazebo reference="a"><sensor name="s" type="x"/></gazebo>'
    )
    lines = list_problems(f"<robot>\n{body}\n</robot>")
    assert [line.split()[0] for line in lines] == [f"dive.sdf:{line}:" for line in (1, 2, 4, 5)]


@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize(
    "comment",
    ["<!-- a -- b -->", "<!-- a\n--->", "<!---->", "<!--- a --->", "<!-- <x> <![CDATA[ -- -->", "<![CDATA[ <!-- ]]>"],
)
def test_comments_with_double_dashes_are_read(load: Load, comment: str) -> None:
    """Two dashes in a comment are invalid XML, but URDF's reader accepts them. Line numbers are kept."""
    world = load(make_robot(f'<link name="a"/>{comment}\n<material/>{comment}'))
    assert [note.where.line for note in world.notes] == [3 + comment.count("\n")]


@pytest.mark.requirement("SDF-2")
def test_unterminated_comments_are_an_error(list_problems: ListProblems) -> None:
    assert list_problems(make_robot("<!-- -- <!-- --"))[0].startswith("dive.sdf:2: XML: ")
    assert list_problems(make_robot("<!--" * 100_000))[0].startswith("dive.sdf:2: XML: ")
    assert list_problems(make_robot("<!-- a -- b --> <![CDATA[ <!-- -->"))[0].startswith("dive.sdf:4: XML: ")


@pytest.mark.requirement("SDF-2")
def test_entity_expansion_is_an_error(list_problems: ListProblems) -> None:
    bomb = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>\n' + make_robot('<link name="&b;"/>')
    assert "<!DOCTYPE>: r" in list_problems(bomb)[0]
    deep = make_robot('<link name="b"/><gazebo>' + "<plugin>" * 300 + "</plugin>" * 300 + "</gazebo>")
    assert "201 deep" in list_problems(deep)[0]


@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_link_graph_is_a_tree_or_an_error(load: Load, count: int, pairs: list[tuple[int, int]]) -> None:
    """A graph of links is a robot if it is a tree."""
    text = make_robot(
        "".join(f'<link name="l{i}"/>' for i in range(count))
        + "".join(make_joint(f"j{i}", f"l{a}", f"l{b}", '<origin xyz="1 0 0"/>') for i, (a, b) in enumerate(pairs))
    )
    reached = {i: {i} for i in range(count)}
    for _ in range(count):
        for found in reached.values():
            found |= {b for a, b in pairs if a in found}
    known = all(a < count and b < count for a, b in pairs)
    tree = known and len(pairs) == count - 1 and any(len(found) == count for found in reached.values())
    if not tree:
        with pytest.raises(SdfError, match=r"dive\.sdf:2"):
            load(text)
        return
    world = load(text)
    root = next(i for i, found in reached.items() if len(found) == count)
    assert world.models[0].canonical_link == f"auv::l{root}"
    parents = {b: a for a, b in pairs}
    for link in range(count):
        depth, at = 0, link
        while at != root:
            depth, at = depth + 1, parents[at]
        assert find_position(world, f"auv::l{link}") == (depth, 0, 0)


@pytest.mark.requirement("SDF-2")
def test_world_includes_urdf_robots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A world includes robots by file and by packages of ROS 1 and 2; the error for a missing one has a remedy."""
    share = tmp_path / "install" / "share" / "auv_description" / "urdf"
    source = tmp_path / "src" / "glider"
    share.mkdir(parents=True)
    source.mkdir(parents=True)
    (source / "package.xml").write_text("<package/>", encoding="utf-8")
    sensor = '<link name="base"/><gazebo reference="base"><sensor name="imu" type="imu"/></gazebo>'
    (share / "auv.urdf").write_text(make_robot(sensor), encoding="utf-8")
    (source / "glider.urdf").write_text(make_robot(sensor, "glider"), encoding="utf-8")
    (tmp_path / "w.sdf").write_text(
        '<sdf version="1.9"><world name="sea"><frame name="dock"><pose>5 0 0 0 0 0</pose></frame>\n'
        "<include><uri>package://auv_description/urdf/auv.urdf</uri></include>\n"
        '<include><uri>package://glider/glider.urdf</uri><pose relative_to="dock"/></include>\n'
        "<include><uri>src/glider/glider.urdf</uri><name>second</name></include></world></sdf>",
        encoding="utf-8",
    )
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH", "SDF_PATH"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SdfError) as caught:
        sdf.load(tmp_path / "w.sdf")
    first, second = caught.value.problems
    assert "w.sdf:2: <include><uri>: package://auv_description/urdf/auv.urdf; is not found;" in str(first)
    assert "by --path (path= in Python) or in GZ_SIM_RESOURCE_PATH or ROS_PACKAGE_PATH, or skip it by" in str(first)
    assert second.where is not None
    assert second.where.line == 3
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path / 'install'}")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(source))
    world = sdf.load(tmp_path / "w.sdf")
    assert [sensor.name for sensor in world.sensors] == ["auv::base::imu", "glider::base::imu", "second::base::imu"]
    assert [model.pose.position[0] for model in world.models] == [0.0, 5.0, 0.0]


@pytest.mark.requirement("SDF-2")
def test_error_in_an_included_robot_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(make_robot('<link name="a"/>\n<link name="b"/>'), encoding="utf-8")
    text = '<sdf version="1.9"><world name="w"><include><uri>r.urdf</uri></include></world></sdf>'
    (tmp_path / "w.sdf").write_text(text, encoding="utf-8")
    with pytest.raises(SdfError, match=r"r\.urdf:3: <link name>: a, b; a robot has one root") as caught:
        sdf.load(tmp_path / "w.sdf")
    assert len(caught.value.problems) == 1


@pytest.mark.requirement("SDF-2", "IMU-1")
def test_urdf_robot_is_simulated(tmp_path: Path) -> None:
    """An upside-down IMU at the end of a chain measures gravity along -z, one on its side along x."""
    path = tmp_path / "auv.urdf"
    path.write_text(
        make_robot(
            '<link name="base"/><link name="arm"/><link name="imu_link"/>'
            + make_joint("j", "base", "arm", f'<origin xyz="0 0 1" rpy="{math.pi / 2} 0 0"/>', "revolute")
            + make_joint("k", "arm", "imu_link", f'<origin rpy="{math.pi / 2} 0 0"/>')
            + '<gazebo reference="imu_link"><sensor name="imu" type="imu"><update_rate>10</update_rate></sensor>'
            + f'<sensor name="side" type="imu"><pose>0 0 0 0 {math.pi / 2} 0</pose><update_rate>10</update_rate>'
            + "</sensor></gazebo>"
        ),
        encoding="utf-8",
    )
    run = ns.simulate(ns.load(path), duration=1.0, seed=1)
    assert run["auv::imu_link::imu"]["linear_acceleration"] == pytest.approx(np.tile([0, 0, -9.8], (10, 1)), abs=1e-12)
    assert run["auv::imu_link::side"]["linear_acceleration"] == pytest.approx(np.tile([9.8, 0, 0], (10, 1)), abs=1e-12)

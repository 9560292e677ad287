"""Older versions of SDF, element by element. Other tests compare complete files with libsdformat."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from navsense.environment.base import DEFAULT_GRAVITY, UniformField
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sdf.context import Context
from navsense.sdf.versions import NEWER_ATTRIBUTES, NEWER_ELEMENTS, upgrade
from navsense.sdf.xml_reader import Element, parse_xml
from navsense.sensors import Imu, NavSat
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

SPECS = Path("/usr/share/sdformat12")
pytestmark = pytest.mark.requirement("SDF-1")


def upgrade_world(body: str, minor: int) -> tuple[Element, Context]:
    """Return the world element of a file in the form of SDF 1.12, its children from line 2 on."""
    context = Context("dive.sdf")
    root = parse_xml(f'<sdf><world name="w">\n{body}</world></sdf>'.encode(), "dive.sdf")
    upgrade(context, root, minor)
    return root.children[0], context


def list_content(element: Element, *path: str) -> Element:
    for tag in path:
        inner = element.find(tag)
        assert inner is not None, tag
        element = inner
    return element


# fields of the world


def test_fields_moved_out_of_physics_keep_their_lines() -> None:
    world, _ = upgrade_world(
        "<physics>\n<gravity>0 0 -5</gravity>\n<magnetic_field>1 2 3</magnetic_field>\n</physics>", 5
    )
    assert [(child.tag, child.text, child.line) for child in world.children] == [
        ("physics", "", 2),
        ("gravity", "0 0 -5", 3),
        ("magnetic_field", "1 2 3", 4),
    ]
    assert not list_content(world, "physics").children


def test_repeated_moved_fields_are_a_warning(load: Load, wrap_in_world: Text) -> None:
    physics = "<physics><gravity>0 0 -5</gravity></physics>"
    both = "<gravity>0 0 -4</gravity>\n" + physics
    for text, version, line, gravity in (
        (both, "1.5", 4, -4.0),
        (f"{physics}\n{physics}", "1.5", 4, -5.0),
        (physics, "1.6", 3, DEFAULT_GRAVITY[2]),
    ):
        world = load(wrap_in_world(text, version))
        (note,) = (note for note in world.notes if note.what.startswith("<gravity>"))
        assert world.environment.gravity == UniformField((0.0, 0.0, gravity))
        assert (note.what, note.where and note.where.line) == ("<gravity> in <physics>", line)
        assert note.reason == "is ignored: SDF 1.6 moved it to <world>; move it there"


# poses


def test_frame_attribute_of_a_pose(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    def text(attributes: str, version: str = "1.5") -> str:
        first, second = '<link name="a"><pose>0 0 1 0 0 0</pose></link>', f"<pose {attributes}>1 0 0 0 0 0</pose>"
        return wrap_in_world(f'<model name="m">{first}\n<link name="b">{second}</link></model>', version)

    for version in ("1.4", "1.5", "1.6"):
        links = {link.name: link.pose.position for link in load(text('frame="a"', version)).models[0].links}
        assert links == {"m::a": (0.0, 0.0, 1.0), "m::b": (1.0, 0.0, 1.0)}
    assert load(text('frame=""')).models[0].links[1].pose.position == (1.0, 0.0, 0.0)
    assert "must name a link" in list_problems(text('frame="c"'))[0]
    for attributes, version, expected in (('frame="c" relative_to="a"', "1.5", 1.0), ('frame="a"', "1.7", 0.0)):
        world = load(text(attributes, version))
        assert world.models[0].links[1].pose.position == (1.0, 0.0, expected)
        (note,) = (note for note in world.notes if note.what.startswith("<pose frame>"))
        assert note.reason == "is ignored: SDF 1.7 replaced this attribute by relative_to; write that"


# joints


@pytest.mark.parametrize(
    ("flag", "minor", "expected"),
    [
        ("", 4, "__model__"),
        ("", 5, None),
        *(
            (f"<use_parent_model_frame>{text}</use_parent_model_frame>", 5, "__model__")
            for text in ("1", "true", "TRUE")
        ),
        *((f"<use_parent_model_frame>{text}</use_parent_model_frame>", 4, None) for text in ("0", "false")),
        ("<use_parent_model_frame>1</use_parent_model_frame>", 6, "__model__"),
    ],
)
def test_frame_of_a_joint_axis(flag: str, minor: int, expected: str | None) -> None:
    for tag in ("axis", "axis2"):
        world, context = upgrade_world(f"<model><joint>\n<{tag}><xyz>1 0 0</xyz>{flag}</{tag}></joint></model>", minor)
        axis = list_content(world, "model", "joint", tag)
        assert list_content(axis, "xyz").attributes.get("expressed_in") == expected
        assert [child.tag for child in axis.children] == ["xyz"]
        context.raise_problems()


def test_invalid_flag_is_an_error(list_problems: ListProblems, wrap_in_world: Text) -> None:
    axis = "<axis><xyz>1 0 0</xyz>\n<use_parent_model_frame>maybe</use_parent_model_frame></axis>"
    joint = f'<joint name="j" type="revolute"><parent>a</parent><child>b</child>{axis}</joint>'
    (line,) = list_problems(wrap_in_world(f'<model name="m"><link name="a"/><link name="b"/>{joint}</model>', "1.6"))
    assert line == "dive.sdf:4: <axis><use_parent_model_frame>: maybe; must be true, false, 1 or 0"


# IMU


def make_imu(noise: str, more: str = "") -> str:
    return f'<sensor name="s" type="imu"><imu>\n<noise>{noise}</noise>{more}</imu></sensor>'


def test_old_imu_noise_applies_to_every_axis(load: Load, wrap_in_link: Text) -> None:
    terms = "<mean>{0}</mean><stddev>{1}</stddev><bias_mean>{2}</bias_mean><bias_stddev>{3}</bias_stddev>"
    rate, accel = terms.format(1, 2, 3, 4), terms.format(5, 6, 7, 8)
    text = make_imu(f"<type>gaussian</type><rate>{rate}</rate><accel>{accel}</accel>")
    for version in ("1.4", "1.5"):
        (sensor,) = load(wrap_in_link(text, version)).sensors
        spec = sensor.spec
        assert isinstance(spec, Imu)
        gyro, force = Noise(1.0, 2.0, 3.0, 4.0), Noise(5.0, 6.0, 7.0, 8.0)
        assert (spec.angular_velocity_x, spec.angular_velocity_y, spec.angular_velocity_z) == (gyro,) * 3
        assert (spec.linear_acceleration_x, spec.linear_acceleration_y, spec.linear_acceleration_z) == (force,) * 3


def test_old_imu_noise_of_one_quantity(load: Load, wrap_in_link: Text) -> None:
    (sensor,) = load(wrap_in_link(make_imu("<type>gaussian</type><rate><stddev>2</stddev></rate>"), "1.5")).sensors
    assert isinstance(sensor.spec, Imu)
    assert sensor.spec.angular_velocity_z == Noise(stddev=2.0)
    assert sensor.spec.linear_acceleration_z == NO_NOISE


@pytest.mark.parametrize(
    ("noise", "problem"),
    [
        ("<rate/>", "dive.sdf:6: <imu><noise>: missing; must be given: none, gaussian or gaussian_quantized"),
        ("<type/><rate/>", "dive.sdf:6: <imu><type>: empty; must be given: none, gaussian or gaussian_quantized"),
        (
            "<type>pink</type><rate/>",
            "dive.sdf:6: <noise type>: pink; must be one of none, gaussian, gaussian_quantized",
        ),
        ("<type>gaussian</type><rat/>", "dive.sdf:6: <noise><rat>; is not allowed here; did you mean rate?"),
        (
            "<type>gaussian</type><rate>\n<men>1</men></rate>",
            "dive.sdf:7: <noise><men>; is not allowed here; did you mean mean?",
        ),
        ("<type>gaussian</type><rate>\n<stddev>-1</stddev></rate>", "dive.sdf:7: <noise><stddev>: -1; must be >= 0"),
    ],
)
def test_invalid_old_noise_is_an_error(
    list_problems: ListProblems, wrap_in_link: Text, noise: str, problem: str
) -> None:
    assert problem in list_problems(wrap_in_link(make_imu(noise), "1.5"))


def test_old_and_new_noise_together_are_an_error(list_problems: ListProblems, wrap_in_link: Text) -> None:
    more = "\n<angular_velocity><x/></angular_velocity>"
    (line,) = list_problems(wrap_in_link(make_imu("<type>gaussian</type>", more), "1.5"))
    assert line.startswith("dive.sdf:6: <imu><noise>; defines the noise of the axes twice; the other definition is")
    assert line.endswith("the <angular_velocity> on line 7; remove one")


def test_old_imu_noise_in_a_newer_file(list_problems: ListProblems, wrap_in_link: Text) -> None:
    (line,) = list_problems(wrap_in_link(make_imu("<type>gaussian</type><rate/><accel/>"), "1.6"))
    assert line.startswith("dive.sdf:6: <noise> in <imu>; moved to each axis in SDF 1.6:")


@pytest.mark.parametrize(
    ("version", "content", "noise", "topic", "notes"),
    [
        ("1.4", "<topic>a</topic>", "", "/a", 0),
        ("1.6", "<topic>a</topic>", "", "/a", 0),
        ("1.6", "<topic>__default_topic__</topic>", "", None, 0),
        ("1.6", "<topic>__default_topic__</topic>", "<topic>b</topic>", "/b", 0),
        ("1.6", "<topic>a</topic>", "<topic>b</topic>", "/b", 1),
        ("1.7", "<topic>a</topic>", "", None, 1),
    ],
)
def test_old_imu_topic_is_read(
    load: Load, wrap_in_link: Text, version: str, content: str, noise: str, topic: str | None, notes: int
) -> None:
    world = load(wrap_in_link(f'<sensor name="s" type="imu">{noise}<imu>{content}</imu></sensor>', version))
    assert world.sensors[0].topic == (topic or "/world/ocean/model/auv/link/base/sensor/s/imu")
    assert [note.what for note in world.notes] == ["<imu><topic>"] * notes


@pytest.mark.requirement("NAV-1")
@pytest.mark.parametrize("kind", ["gps", "navsat"])
@pytest.mark.parametrize("block", ["gps", "navsat"])
def test_gps_is_read_as_navsat(load: Load, wrap_in_world: Text, kind: str, block: str) -> None:
    noise = '<noise type="gaussian"><stddev>0.5</stddev></noise>'
    sensing = f"<{block}><position_sensing><vertical>{noise}</vertical></position_sensing></{block}>"
    origin = (
        "<spherical_coordinates><latitude_deg>1</latitude_deg><longitude_deg>2</longitude_deg></spherical_coordinates>"
    )
    sensor = f'<sensor name="s" type="{kind}">{sensing}</sensor>'
    (made,) = load(wrap_in_world(f'{origin}<model name="m"><link name="l">{sensor}</link></model>', "1.4")).sensors
    assert isinstance(made.spec, NavSat)
    assert Noise(stddev=0.5) in made.spec.noise()["altitude"]


# names joined by ::


def test_flattened_names_are_read(load: Load, wrap_in_world: Text) -> None:
    links = (
        '<link name="a::b"><pose>1 0 0 0 0 0</pose><sensor name="s" type="imu"/></link>\n'
        '<link name="c"><pose relative_to="a::b">0 1 0 0 0 0</pose></link>'
        '<link name="a::d::e"><pose relative_to="a::d::e2">0 0 1 0 0 0</pose></link>'
        '<link name="a::d::e2"/><plugin name="x::y" filename="z"/>'
    )
    world = load(wrap_in_world(f'<model name="m">\n{links}</model>', "1.7"))
    poses = {link.name: link.pose.position for link in world.models[0].links}
    assert poses == {
        "m::c": (1.0, 1.0, 0.0),
        "m::a::b": (1.0, 0.0, 0.0),
        "m::a::d::e": (0.0, 0.0, 1.0),
        "m::a::d::e2": (0.0, 0.0, 0.0),
    }
    assert [sensor.name for sensor in world.sensors] == ["m::a::b::s"]
    warned = [note for note in world.notes if note.kind == "warning"]
    assert [(note.what, str(note.where).rpartition(":")[2]) for note in warned] == [
        ('children of <model name="m">', "4"),
        ('children of <model name="a">', "5"),
    ]


def test_duplicate_flattened_names_are_an_error(list_problems: ListProblems, wrap_in_world: Text) -> None:
    text = '<model name="m"><link name="a"/>\n<link name="a::b"/></model>'
    assert list_problems(wrap_in_world(text, "1.7"))[0].startswith("dive.sdf:4: <model name>: a; must be unique among")
    assert list_problems(wrap_in_world(text, "1.8"))[0].startswith(
        'dive.sdf:4: <link name>: a::b; must not contain "::"'
    )
    for name in ("::a", "a::", "::"):
        assert list_problems(wrap_in_world(f'<model name="m"><link name="b"/><link name="{name}"/></model>', "1.6"))


def test_joint_with_the_name_of_a_link(load: Load, wrap_in_world: Text) -> None:
    joint = '<joint name="a" type="fixed"><parent>b</parent><child>a</child></joint>'
    for first, second, line in ((joint, '<link name="a"/>', 3), ('<link name="a"/>', joint, 4)):
        text = f'<model name="m">{first}\n{second}<link name="b"><pose>0 0 1 0 0 0</pose></link></model>'
        world = load(wrap_in_world(text, "1.6"))
        assert [link.name for link in world.models[0].links] == ["m::a", "m::b"]
        assert world.models[0].canonical_link == "m::a"
        (note,) = world.notes
        assert (note.kind, note.what, str(note.where).rpartition(":")[2]) == ("warning", '<joint name="a">', str(line))


# elements newer than the version of the file


@pytest.mark.parametrize(
    ("version", "body", "problem", "since"),
    [
        (6, '<link name="b"><pose relative_to="a">1 0 0 0 0 0</pose></link>', "<pose relative_to>", 7),
        (6, '<frame name="b" attached_to="a"/>', "<frame attached_to>", 7),
        (8, '<link name="b"><pose degrees="true">0 0 0 0 0 90</pose></link>', "<pose degrees>", 9),
        (8, '<link name="b"><pose rotation_format="quat_xyzw"/></link>', "<pose rotation_format>", 9),
        (
            11,
            '<link name="b"><sensor name="s" type="imu"><frame_id>f</frame_id></sensor></link>',
            "<sensor><frame_id>",
            12,
        ),
    ],
)
def test_newer_elements_are_read_with_a_warning(
    load: Load, wrap_in_world: Text, version: int, body: str, problem: str, since: int
) -> None:
    text = f'<model name="m"><link name="a"/>\n{body}\n{body.replace(chr(34) + "b", chr(34) + "c")}</model>'
    newer = load(wrap_in_world(text, f"1.{since}"))
    assert newer.notes == ()
    older = load(wrap_in_world(text, f"1.{version}"))
    assert older.models[0].links == newer.models[0].links
    (note,) = older.notes
    assert (note.kind, note.what, str(note.where).rpartition(":")[2]) == ("warning", problem, "4")
    assert note.reason == f"requires SDF 1.{since}, and the file has 1.{version}; it is read as in SDF 1.{since}"


def test_foreign_elements_are_not_version_checked(load: Load, wrap_in_world: Text) -> None:
    inside = '<noise><dynamic_bias_stddev>1</dynamic_bias_stddev></noise><pose relative_to="x"/>'
    plugin = f'<plugin name="p" filename="f">{inside}</plugin><gz:x>{inside}</gz:x>'
    world = load(wrap_in_world(f'<model name="m"><link name="a"/>{plugin}</model>', "1.4"))
    assert {note.kind for note in world.notes} == {"unsupported", "foreign"}


def list_spec_names(minor: int) -> set[tuple[str, str]]:
    """Return (element, child or attribute) of all items in a version of the specification."""

    def walk(element: ET.Element) -> Iterator[tuple[str, str]]:
        name = element.get("name", "")
        yield from ((name, child.get("name", "")) for child in element if child.tag in ("element", "attribute"))
        for child in element:
            if child.tag == "element":
                yield from walk(child)
            elif child.tag == "include" and (path := SPECS / f"1.{minor}" / child.get("filename", "")).exists():
                yield name, ET.parse(path).getroot().get("name", "")  # noqa: S314 - the standard's own file

    return {
        pair
        for path in (SPECS / f"1.{minor}").glob("*.sdf")
        for pair in walk(ET.parse(path).getroot())  # noqa: S314 - the standard's own file
    }


@pytest.mark.skipif(not SPECS.is_dir(), reason="needs Debian's sdformat-sdf: the specifications up to 1.9")
def test_element_versions_equal_the_specification() -> None:
    """The packaged specifications have no navsat and end before 1.10."""
    names = {minor: list_spec_names(minor) for minor in range(4, 10)}
    for pair, since in {**NEWER_ATTRIBUTES, **NEWER_ELEMENTS}.items():
        if since < 10 and pair != ("sensor", "navsat"):
            assert min(minor for minor in names if pair in names[minor]) == since, pair
        else:
            assert not any(pair in names[minor] for minor in names)


def test_poses_of_version_1_4_have_plain_numbers(load: Load, wrap_in_world: Text) -> None:
    pose = "<pose>1 2 3 0 0 1.5707963267948966</pose>"
    (model,) = load(wrap_in_world(f'<model name="m">{pose}<link name="a">{pose}</link></model>', "1.4")).models
    assert model.pose.position == (1.0, 2.0, 3.0)
    assert 2.0 * math.acos(model.pose.rotation[0]) == pytest.approx(math.pi / 2.0, rel=1e-12, abs=0.0)

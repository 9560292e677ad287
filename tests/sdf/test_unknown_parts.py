"""Unknown, misplaced and repeated parts of a file: warnings outside sensors, errors inside them.

libsdformat, Gazebo's reader, accepts every file of `LENIENT`. It is asked again where it is installed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import navsense as ns
from navsense.core.errors import SdfError
from navsense.world import Note, World

pytestmark = pytest.mark.requirement("SDF-1")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "sdf-elements.md"
Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
"""URDF links without mass are dropped by libsdformat."""

NOISE = '<noise type="gaussian"><stdev>1</stdev></noise>'
BOX = "<geometry><box><size>1 1 1</size></box></geometry>"
ARM = '<link name="a"/><link name="b"/>'
ENDS = "<parent>a</parent><child>b</child>"


def make_joint(content: str, attributes: str = "") -> str:
    return f'{ARM}<joint name="j" type="revolute"{attributes}>{ENDS}{content}</joint>'


def make_link(content: str) -> str:
    return f'<link name="l">{content}</link>'


def make_collision(content: str, attributes: str = "") -> str:
    return make_link(f'<collision name="c"{attributes}>{content}</collision>')


LENIENT: dict[str, tuple[str, str]] = {
    '<link name="l"/><selfCollide>1</selfCollide>': ("<model><selfCollide>", "did you mean self_collide?"),
    '<link name="l"/><inertial><mass>1</mass></inertial>': ("<model><inertial>", ""),
    '<link name="l"/><sensor name="s" type="imu"/>': ('<model><sensor name="s" type="imu">', ""),
    '<link name="l"/><collision name="c"/>': ('<model><collision name="c">', ""),
    '<link name="l"/><zzzz/>': ("<model><zzzz>", ""),
    '<link name="l"/><static>0</static><static>1</static>': ("<model><static>", "that of line 4 is used"),
    '<link name="l"/><pose>1 0 0 0 0 0</pose><pose>2 0 0 0 0 0</pose>': ("<model><pose>", "that of line 4 is used"),
    '<link name="l" colour="red"/>': ("<link colour>", ""),
    make_link("<origin>1 0 0 0 0 0</origin>"): ("<link><origin>", ""),
    make_link("<axis/>"): ("<link><axis>", ""),
    make_link('<joint name="j" type="fixed"/>'): ('<link><joint name="j" type="fixed">', ""),
    make_link('<model name="n"/>'): ('<link><model name="n">', ""),
    make_link("<include><uri>part.sdf</uri></include>"): ("<link><include>", ""),
    make_link('<pose frame="b">1 0 0 0 0 0</pose>'): ("<pose frame>: b", "SDF 1.7 replaced this attribute"),
    make_link('<pose relativ_to="b">1 0 0 0 0 0</pose>'): ("<pose relativ_to>", "did you mean relative_to?"),
    make_link("<pose>1 0 0 0 0 0<x/></pose>"): ("<pose><x>", ""),
    make_link("<pose>1 0 0 0 0 0</pose><pose/>"): ("<link><pose>", "that of line 4 is used"),
    make_joint("<velocity_decay/>"): ("<joint><velocity_decay>", ""),
    make_joint("<limit><effort>1</effort></limit>"): ("<joint><limit>", ""),
    make_joint("", ' colour="red"'): ("<joint colour>", ""),
    make_joint("<child>a</child>"): ("<joint><child>", "that of line 4 is used"),
    make_joint("<axis><xyz>0 0 1</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>"): (
        "<use_parent_model_frame> in <axis>",
        "SDF 1.7 replaced it",
    ),
    make_joint("<axis><xyz>0 0 1</xyz><damping>1</damping></axis>"): ("<axis><damping>", ""),
    make_joint('<axis><xyz frame="a">0 0 1</xyz></axis>'): ("<xyz frame>", ""),
    '<link name="l"/><frame name="f" colour="red"/>': ("<frame colour>", ""),
    '<link name="l"/><frame name="f"><zzzz/></frame>': ("<frame><zzzz>", ""),
    make_collision(BOX + "<zzzz/>"): ("<collision><zzzz>", ""),
    make_collision(BOX, ' colour="red"'): ("<collision colour>", ""),
    make_collision(BOX.replace("</box>", "<zzzz/></box>")): ("<box><zzzz>", ""),
    make_collision("<geometry><torus/></geometry>"): ("<geometry><torus>", ""),
    make_collision(""): ("<collision>", "has no <geometry>: skipped"),
    make_collision("<geometry><box><size>0 1 1</size></box></geometry>"): ("<box> box's length (m): 0.0", "no sensor"),
    make_collision("<geometry><mesh/></geometry>"): ("<mesh><uri>: missing", "no sensor's rays can hit it"),
}
"""Content of a model -> the warning: its subject and a part of its reason."""

LENIENT_IN_WORLD: dict[str, tuple[str, str]] = {
    "<gravty>0 0 1</gravty>": ("<world><gravty>", "did you mean gravity?"),
    '<link name="l"/>': ('<world><link name="l">', ""),
    "<static>1</static>": ("<world><static>", ""),
    "<gravity>0 0 -9</gravity><gravity>0 0 -5</gravity>": ("<world><gravity>", "that of line 3 is used"),
    '<atmosphere type="adiabatic"><humidity>1</humidity></atmosphere>': ("<atmosphere><humidity>", ""),
    '<atmosphere type="adiabatic"/><atmosphere type="adiabatic"/>': ("<world><atmosphere>", ""),
    '<physics type="ode"><solver/></physics>': ("<physics><solver>", ""),
    '<physics type="ode"><gravity>0 0 1</gravity></physics>': ("<gravity> in <physics>", "SDF 1.6 moved it"),
    "<spherical_coordinates><datum/></spherical_coordinates>": ("<spherical_coordinates><datum>", ""),
    "<include><uri>part.sdf</uri><scale>1</scale></include>": ("<include><scale>", ""),
    '<include name="n"><uri>part.sdf</uri></include>': ("<include name>", ""),
    "<include><uri>part.sdf</uri><name>n</name><name>m</name></include>": ("<include><name>", ""),
}

LENIENT_IN_ROBOT: dict[str, tuple[str, str]] = {
    "<zzzz/>": ("<robot><zzzz>", ""),
    '<plugin name="p" filename="l.so"/>': ('<plugin name="p" filename="l.so"> in <robot>', "belongs to a <gazebo>"),
    "<gazebo><zzzz/></gazebo>": ("<model><zzzz>", ""),
    '<gazebo ref="a"/>': ("<gazebo ref>", ""),
    '<gazebo reference="a"><zzzz/></gazebo>': ("<link><zzzz>", ""),
    '<gazebo reference="b"><sensor name="s" type="imu"/></gazebo>': ("<gazebo reference>: b", 'with <sensor name="s">'),
    '<gazebo><sensor name="s" type="imu"/></gazebo>': ("<gazebo><sensor>: s", "belongs to a link"),
    "<gazebo><static>1</static></gazebo><gazebo><static>0</static></gazebo>": ("<gazebo><static>", "of line 3 is used"),
}

LENIENT_IN_URDF_JOINT: dict[str, tuple[str, str]] = {
    '<axis xyz="0 0 1" rpy="0 0 0"/>': ("<axis rpy>", ""),
    "<joint_properties/>": ("<joint><joint_properties>", ""),
    '<origin xyz="0 0 1" quat="0 0 0 1"/>': ("<origin quat>", ""),
    '<origin xyz="0 0 1"/><origin xyz="0 0 2"/>': ("<joint><origin>", "that of line 3 is used"),
}

LENIENT_IN_URDF_LINK: dict[str, tuple[str, str]] = {
    '<origin xyz="1 0 0"/>': ("<origin> in <link>", "belongs to the parent joint"),
    "<pose>1 0 0 0 0 0</pose>": ("<pose> in <link>", "belongs to the parent joint"),
    '<sensor name="s" type="imu"/>': ('<sensor name="s" type="imu"> in <link>', "belongs to <gazebo"),
    '<collision><geometry><box size="1 1 1"/></geometry><material/></collision>': ("<collision><material>", ""),
    '<collision><geometry><box size="1 1 1" colour="red"/></geometry></collision>': ("<box colour>", ""),
    "<collision><geometry><box/></geometry></collision>": ("<box><size>: empty", "no sensor's rays can hit it"),
    '<collision><geometry><box size="1 1"/></geometry></collision>': (
        "<box><size>: 1 1",
        "no sensor's rays can hit it",
    ),
    "<collision><geometry/></collision>": ("<collision><geometry>", "is empty: skipped"),
    "<collision/>": ("<collision>", "has no <geometry>: skipped"),
}


def make_robot(content: str) -> str:
    return f'<robot name="r"><link name="a">{INERTIAL}</link>\n\n{content}</robot>'


def make_arm(content: str) -> str:
    limit = '<limit lower="0" upper="1" effort="0" velocity="1"/>'
    joint = f'<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{limit}{content}</joint>'
    return make_robot(f'<link name="b">{INERTIAL}</link>{joint}')


def list_files() -> dict[str, tuple[str, tuple[str, str]]]:
    """Return the text and the warning of each file of the tables, by its name."""

    def world(body: str) -> str:
        return f'<sdf version="1.9">\n<world name="w">\n{body}\n</world>\n</sdf>'

    texts = [(world(f'<model name="m">\n{body}</model>'), ".sdf", warned) for body, warned in LENIENT.items()]
    texts += [(world(body), ".sdf", warned) for body, warned in LENIENT_IN_WORLD.items()]
    texts += [(make_robot(body), ".urdf", warned) for body, warned in LENIENT_IN_ROBOT.items()]
    texts += [(make_arm(body), ".urdf", warned) for body, warned in LENIENT_IN_URDF_JOINT.items()]
    texts += [
        (f'<robot name="r">\n<link name="a">{INERTIAL}{body}</link></robot>', ".urdf", warned)
        for body, warned in LENIENT_IN_URDF_LINK.items()
    ]
    texts.append(
        ('<sdf version="1.9"><zzzz/><model name="m"><link name="l"/></model></sdf>', ".sdf", ("<sdf><zzzz>", ""))
    )
    return {f"file{number}{suffix}": (text, warned) for number, (text, suffix, warned) in enumerate(texts)}


FILES = list_files()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with all files, and with a model that they include."""
    for name, (text, _) in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    part = '<sdf version="1.9"><model name="part"><link name="l"/></model></sdf>'
    (tmp_path / "part.sdf").write_text(part, encoding="utf-8")
    return tmp_path


def list_warnings(world: World) -> list[Note]:
    return [note for note in world.notes if note.kind == "warning" and "SDF's default" not in note.reason]


@pytest.mark.parametrize("file", FILES)
def test_part_outside_sensors_is_a_warning(folder: Path, file: str) -> None:
    """The warning has the line, names the part and says that it is ignored."""
    what, reason = FILES[file][1]
    (note,) = list_warnings(ns.load(folder / file))
    assert note.what == what
    assert reason in note.reason
    assert any(word in note.reason for word in ("is ignored", "skipped"))
    assert note.where is not None
    assert note.where.line > 0


@pytest.mark.compiled
def test_libsdformat_accepts_these_files(folder: Path, resolver: Path) -> None:
    """The answers are those of the installed library; the poses of all links are equal too."""
    for file in FILES:
        ran = subprocess.run([resolver, folder / file], capture_output=True, text=True, check=True, cwd=folder)
        answer = json.loads(ran.stdout)
        assert not answer["errors"], FILES[file][0]
        theirs = {name: pose[:3] for kind, name, pose in answer["poses"] if kind == "link"}
        links = {link.name: link.pose.position for model in ns.load(folder / file).models for link in model.links}
        assert theirs.keys() == links.keys()
        for name, position in links.items():
            assert position == pytest.approx(theirs[name], rel=0.0, abs=1e-12)


def test_first_of_repeated_elements_is_used(load: Load, wrap_in_world: Text) -> None:
    body = '<gravity>0 0 -1</gravity><gravity>0 0 -2</gravity><model name="m"><pose>1 0 0 0 0 0</pose><pose/>'
    world = load(wrap_in_world(body + '<link name="l"/><static>1</static><static>0</static></model>'))
    assert world.environment.gravity == ns.environment.UniformField((0.0, 0.0, -1.0))
    assert world.models[0].pose.position == (1.0, 0.0, 0.0)
    assert world.models[0].static


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('<sensor name="s" type="imu"><updte_rate>5</updte_rate></sensor>', "did you mean update_rate?"),
        ('<sensor name="s" type="imu" rate="5"/>', "<sensor rate>; is not allowed here"),
        (
            '<sensor name="s" type="imu"><update_rate>5</update_rate><update_rate>5</update_rate></sensor>',
            "given twice",
        ),
        ('<sensor name="s" type="imu"><pose frame="x">0 0 0 0 0 0</pose></sensor>', "write that"),
        ('<sensor name="s" type="imu"><pose relativ_to="x"/></sensor>', "did you mean relative_to?"),
        ('<sensor name="s" type="imu"><update_rate unit="Hz">5</update_rate></sensor>', "<update_rate unit>"),
        (
            f'<sensor name="s" type="magnetometer"><magnetometer><x>{NOISE}</x></magnetometer></sensor>',
            "did you mean stddev?",
        ),
        ('<clock name="c"><nose type="gaussian"/></clock>', "did you mean noise?"),
        ("<navsense:clok/>", "did you mean navsense:clock?"),
        ("<navsense:zzzz/>", "<link><navsense:zzzz>; is not allowed here"),
    ],
)
def test_part_inside_a_sensor_is_an_error(
    list_problems: ListProblems, wrap_in_link: Text, content: str, problem: str
) -> None:
    (line,) = list_problems(wrap_in_link(content))
    assert line.startswith("dive.sdf:5: <")
    assert problem in line


@pytest.mark.parametrize("content", ["<navsense:water><zzzz/></navsense:water>", '<navsense:fidelity x="1"/>'])
def test_parts_of_own_elements_are_errors(list_problems: ListProblems, wrap_in_world: Text, content: str) -> None:
    assert "is not allowed here" in list_problems(wrap_in_world(content))[0]


def test_errors_end_with_misspelt_elements(list_problems: ListProblems, wrap_in_world: Text) -> None:
    """An element that is only a warning can be the cause of the error, so it is named too."""
    first, *others = list_problems(wrap_in_world('<gravty>0 0 0</gravty><model name="m">\n<lnk name="l"/></model>'))
    assert first.startswith("dive.sdf:3: <model name>: m; a model must have at least one link")
    assert others == [
        "dive.sdf:3: <world><gravty>; is not allowed here; did you mean gravity?",
        'dive.sdf:4: <model><lnk name="l">; is not allowed here; did you mean link?',
    ]


def test_many_warnings_are_read_in_time(load: Load, wrap_in_world: Text) -> None:
    assert len(load(wrap_in_world("<gravty/>\n" * 5000)).notes) == 5000


def test_include_outside_a_world_is_read(load: Load, tmp_path: Path) -> None:
    """libsdformat reads an include that is a child of `<sdf>`."""
    (tmp_path / "part.sdf").write_text(FILES["file0.sdf"][0].partition("<world")[0] + make_model() + "</sdf>")
    world = load('<sdf version="1.9"><include><uri>part.sdf</uri><name>n</name></include></sdf>')
    assert [model.name for model in world.models] == ["n"]


def make_model() -> str:
    return '<model name="part"><link name="l"/></model>'


def test_blank_lines_before_the_declaration(load: Load, list_problems: ListProblems) -> None:
    """XML does not allow them. Gazebo's reader ignores them. Lines are still counted from the start of the file."""
    text = '\n\n<?xml version="1.0"?>\n<sdf version="1.9"><model name="m">{}</model></sdf>'
    assert load(text.format('<link name="l"/>')).models[0].name == "m"
    assert list_problems(text.format(""))[0].startswith("dive.sdf:4: <model name>: m")


def test_invalid_shape_is_an_error_only_if_rays_may_hit_it(load: Load, list_problems: ListProblems) -> None:
    bad = '<collision name="c"><geometry><sphere><radius>0</radius></sphere></geometry></collision>'
    eye = '<sensor name="s" type="range"><range><max>9</max></range></sensor>'
    text = '<sdf version="1.9"><world name="w"><model name="m"><link name="l">{}</link></model>{}</world></sdf>'
    bed = '<model name="bed"><static>1</static><link name="l">{}</link></model>'
    (note,) = load(text.format(bad + eye, "")).notes
    assert note.reason.endswith("skipped: no sensor's rays can hit it")
    assert load(text.format(bad + eye, "")).solids == ()
    assert "sphere's radius (m)" in list_problems(text.format(eye, bed.format(bad)))[0]


def test_error_class_names_all_problems(tmp_path: Path) -> None:
    file = tmp_path / "w.sdf"
    file.write_text(
        '<sdf version="1.9"><model name="m"><link name="l"><sensor name="s" typ="imu"/></link></model></sdf>'
    )
    with pytest.raises(SdfError, match="<sensor type>: missing"):
        ns.load(file)


IMU = '<model name="m"><link name="l"><sensor name="s" type="imu">{}</sensor></link></model>'
CONVEX = '<model name="m"><link name="a"/><link name="b"/><joint name="j" type="revolute">' + ENDS
LIDAR = "<lidar><range><max>9</max></range></lidar>"
STRICTER = {
    "unknown, repeated or misplaced part of a sensor": IMU.format("<zzzz/>"),
    "invalid value of an element that is read": "<gravity>0 0 -9 7</gravity>",
    "number out of its range, such as a rate below 0": IMU.format("<update_rate>-1</update_rate>"),
    "`<max_step_size>` of 0 or less": '<physics type="ode"><max_step_size>0</max_step_size></physics>',
    "unknown frame in `<xyz expressed_in>`": f'{CONVEX}<axis><xyz expressed_in="z">0 0 1</xyz></axis></joint></model>',
    "invalid or missing surface that rays may hit": (
        f'<model name="m"><link name="l"><sensor name="s" type="lidar">{LIDAR}</sensor></link></model>'
        f'<model name="n">{make_collision("<geometry><mesh/></geometry>")}</model>'
    ),
    "NavSat in a world without `<spherical_coordinates>`": IMU.replace("imu", "navsat").format(""),
    "no world and no model, or several": '</world><world name="v">',
    "document type, or text after the outermost element": "</world></sdf>",
}
"""Row of the documentation -> content of a world that libsdformat accepts and navsense refuses."""


@pytest.mark.parametrize("row", STRICTER)
def test_documented_refusals(list_problems: ListProblems, wrap_in_world: Text, row: str) -> None:
    assert f"| {row}" in PAGE.read_text(encoding="utf-8")
    assert list_problems(wrap_in_world(STRICTER[row], "1.9"))


@pytest.mark.compiled
def test_libsdformat_accepts_what_is_documented_as_refused(resolver: Path, tmp_path: Path, wrap_in_world: Text) -> None:
    for row, content in STRICTER.items():
        (tmp_path / "dive.sdf").write_text(wrap_in_world(content, "1.9"), encoding="utf-8")
        ran = subprocess.run([resolver, tmp_path / "dive.sdf"], capture_output=True, text=True, check=True)
        assert not json.loads(ran.stdout)["errors"], row

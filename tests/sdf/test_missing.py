"""Worlds with missing models, meshes and heightmaps: the remaining elements keep their poses."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import navsense as ns
from navsense import sdf
from navsense.cli import cli
from navsense.core.errors import SdfError
from navsense.sdf.schema import PARAMS_TAG
from navsense.sdf.search_path import MODEL_PATH_VARIABLES
from navsense.world import Note, World

pytestmark = pytest.mark.requirement("SDF-1")

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

BASE = '<link name="base"/>'


@pytest.fixture(autouse=True)
def without_model_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the model folders from the environment."""
    for variable in MODEL_PATH_VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def make_include(uri: str, content: str = "", attributes: str = "") -> str:
    return f"<include{attributes}><uri>{uri}</uri>{content}</include>"


def make_missing_include(name: str) -> str:
    """Return an include of a missing model with a name."""
    return make_include("model://lost", f"<name>{name}</name>")


LOST_MESH = '<collision name="c"><geometry><mesh><uri>lost.stl</uri></mesh></geometry></collision>'
RANGE = "<range><max>9</max><own_hull>true</own_hull></range>"
EYE = f'<link name="eye"><sensor name="s" type="range">{RANGE}</sensor></link>'
MERGED = make_include("model://lost", "", ' merge="true"')
UNNAMED = make_include("model://lost")


def make_model(name: str, *body: str, attributes: str = "") -> str:
    return f'<model name="{name}"{attributes}>' + "".join(body) + "</model>"


def list_warnings(world: World) -> list[Note]:
    return [note for note in world.notes if note.kind == "warning"]


# third-party worlds


FUEL = "https://fuel.gazebosim.org/1.0/accurrent/models/MBARI Tethys LRAUV"
DAVE = ("model://ned_frame", "model://ocean", "model://sand_heightmap")
BED = ("horizontal_plane", "sea_bottom")

WORLDS = {
    "dave/dave_ocean_waves_dvl_current_profiling.world": ((*DAVE, "model://teledyne_whn_dsl"), (63, 69, 75, 81), ()),
    "dave/dave_ocean_waves_transient_current.world": (DAVE, (62, 68, 74), ()),
    "gz-sim/dvl_world.sdf": ((FUEL,), (140,), BED),
    "gz-sim/flat_seabed.sdf": ((FUEL,), (101,), BED),
}
"""File: missing includes, their lines, and the remaining models."""


@pytest.mark.parametrize("file", WORLDS)
def test_real_worlds_load_with_missing_includes_skipped(shared_data: Path, file: str) -> None:
    uris, lines, models = WORLDS[file]
    path = shared_data / file
    with pytest.raises(SdfError) as caught:
        sdf.load(path)
    problems = {problem.where.line for problem in caught.value.problems if problem.where}
    assert set(lines) <= problems
    world = sdf.load(path, missing="skip")
    left_out = [note for note in list_warnings(world) if note.subject == "include"]
    assert [note.what for note in left_out] == [f"<include><uri>: {uri}" for uri in uris]
    assert [(note.where.path, note.where.line) for note in left_out if note.where] == [(str(path), n) for n in lines]
    assert all("skipped with its content;" in note.reason for note in left_out)
    assert tuple(model.name for model in world.models) == models
    if "gz-sim" in file:
        assert world.environment.current is None  # neither file has one
        (params,) = (note for note in world.notes if note.what == "<include><experimental:params>")
        assert (params.kind, params.reason) == ("unsupported", "changes a skipped include")
        assert [solid.name for solid in world.solids] == ["sea_bottom::link::collision"]


@pytest.mark.requirement("CUR-2")
@pytest.mark.parametrize("file", [file for file in WORLDS if file.startswith("dave")])
def test_currents_of_real_worlds_are_read(example_data: Path, tmp_path: Path, file: str) -> None:
    """The difference of two depths cancels the tide and equals the table. The recording equals the current."""
    world = sdf.load(example_data / file, missing="skip")
    with (example_data / "dave" / "transientOceanCurrentDatabase.csv").open(encoding="utf-8-sig") as lines:
        table = list(csv.reader(lines))
    north, east, depth = np.array([row[:3] for row in table[3:]], dtype=float).T
    assert world.environment.current is not None
    time = np.array([0.0, 5000.0, 40000.0])
    for shallow, deep in ((10.0, 80.0), (15.0, 110.0)):
        found = [world.environment.current.at(np.tile([0.0, 0.0, -z], (3, 1)), time) for z in (shallow, deep)]
        expected = [np.interp(shallow, depth, part) - np.interp(deep, depth, part) for part in (east, north)]
        np.testing.assert_allclose(found[0] - found[1], np.tile([*expected, 0.0], (3, 1)), atol=1e-12, rtol=0.0)
        assert np.ptp(found[0], axis=0)[0] > 0.1  # the tide turns
    out = tmp_path / "out.mcap"
    ns.record(world, out, duration=1.0, seed=1)
    from navsense.recordings.summary import read_summary

    assert world.current_topic.layers is not None
    topics = (world.current_topic.topic, world.current_topic.layers.topic)
    assert {entry.name: entry.count for entry in read_summary(str(out)).entries} == dict.fromkeys(topics, 20)


@pytest.mark.parametrize("command", ["check", "describe", "run"])
def test_commands_warn_about_a_world_without_a_sensor(
    tmp_path: Path, wrap_in_world: Text, wrap_in_link: Text, command: str
) -> None:
    """The warning counts the sensors that are not simulated and the models that are missing."""
    path = tmp_path / "dive.sdf"
    camera, imu = '<sensor name="c" type="contact"/>', '<sensor name="i" type="imu"/>'
    more = ["--duration", "1", "-o", str(tmp_path / "out.npz")] if command == "run" else []
    for text, reason in (
        (wrap_in_world(""), "the file declares none"),
        (wrap_in_world(UNNAMED), "1 included model missing"),
        (wrap_in_link(camera), "the file has 1 sensor that is not simulated"),
        (wrap_in_link(camera).replace("</world>", f"{UNNAMED}</world>"), "not simulated, 1 included model missing"),
        (wrap_in_link(imu), ""),
    ):
        path.write_text(text, encoding="utf-8")
        output = CliRunner().invoke(cli, [command, str(path), "--skip-missing", *more]).output
        assert ("world ocean: has no sensor; " in output) == bool(reason)
        assert reason in " ".join(output.split())


def test_errors_name_the_option_that_skips(list_problems: ListProblems, wrap_in_world: Text) -> None:
    text = wrap_in_world(f"{UNNAMED}\n{make_model('bed', BASE.replace('/>', f'>{LOST_MESH}</link>'), EYE)}")
    lines = list_problems(text)
    assert len(lines) == 2
    assert all(line.endswith('or skip it by --skip-missing (missing="skip" in Python)') for line in lines)


# skipped and kept elements


def test_missing_includes_are_errors_by_default(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    text = wrap_in_world(f"{make_missing_include('a')}\n{make_include('far/b.sdf')}\n{make_include('http://x/y')}")
    for options in ({}, {"missing": "error"}):
        lines = list_problems(text, **options)
        assert [line.split()[0] for line in lines] == ["dive.sdf:3:", "dive.sdf:4:", "dive.sdf:5:"]
    with pytest.raises(SdfError, match="missing: ignored; must be one of error, skip"):
        load(text, missing="ignored")


def test_missing_include_is_skipped_at_every_level(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    """Includes in the world, in a model, in an included file and merged ones are each listed once."""
    inner = make_model("inner", BASE, f"\n{UNNAMED}")
    (tmp_path / "inner.sdf").write_text(f'<sdf version="1.9">{inner}</sdf>', encoding="utf-8")
    twice = make_include("inner.sdf") + make_include("inner.sdf", "<name>again</name><pose>0 0 3 0 0 0</pose>")
    outer = make_model("outer", f"<pose>1 0 0 0 0 0</pose>{BASE}\n{MERGED}")
    world = load(wrap_in_world(f"{UNNAMED}\n{outer}\n{twice}"), missing="skip")
    assert {model.name: model.pose.position for model in world.models} == {
        "outer": (1.0, 0.0, 0.0),
        "inner": (0.0, 0.0, 0.0),
        "again": (0.0, 0.0, 3.0),
    }
    places = [(Path(note.where.path).name, note.where.line) for note in list_warnings(world) if note.where]
    assert places == [("dive.sdf", 3), ("dive.sdf", 5), ("inner.sdf", 2)]


def test_world_of_one_missing_model(tmp_path: Path) -> None:
    path = tmp_path / "auv.sdf"
    path.write_text(f'<sdf version="1.9">\n{make_model("auv", BASE, UNNAMED)}</sdf>', encoding="utf-8")
    world = sdf.load(path, missing="skip")
    assert [model.name for model in world.models] == ["auv"]
    assert [note.where.line for note in list_warnings(world) if note.where] == [2]


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        (make_include("dive.sdf"), "<include><uri>: dive.sdf; must not include itself"),
        (make_include("fuel://x"), "<include><uri>: fuel://x; must be a file"),
        (make_include(""), "<include><uri>: empty; must not be empty"),
        (make_include("folder"), "<include><uri>: folder; is a folder without model.config"),
        (make_include("broken.sdf"), "XML"),
        (make_include("model://lost", "", ' merge="maybe"'), "<include merge>: maybe; must be true, false, 1 or 0"),
        (
            make_include("good.sdf", f'<{PARAMS_TAG}><link element_id="hull" action="remove"/></{PARAMS_TAG}>'),
            "<link element_id>: hull; must name an element of the included model",
        ),
        (make_include("model://lost", "<name/>"), "<include><name>: empty; must not be empty"),
        (make_include("model://lost", "<name>a::b</name>"), "<name>: a::b; must not contain"),
        ("<include/>", "<include><uri>: missing"),
    ],
)
def test_errors_are_the_same_with_other_fidelity(
    list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path, element: str, problem: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken.sdf").write_text("<sdf", encoding="utf-8")
    (tmp_path / "good.sdf").write_text(f'<sdf version="1.9">{make_model("auv", BASE)}</sdf>', encoding="utf-8")
    assert problem in list_problems(wrap_in_world(element), missing="skip")[0]


# names in skipped models


def make_sensor(content: str) -> str:
    return make_model("m", f'<link name="l"><sensor name="imu" type="imu">{content}</sensor></link>')


REFERENCES = {
    "pose of a model": make_model("m", '<pose relative_to="{0}"/>', BASE),
    "pose of an include": make_include("good.sdf", '<pose relative_to="{0}::base"/>'),
    "frame": '<frame name="f" attached_to="{0}::base"/>',
    "pose of a frame": '<frame name="f"><pose relative_to="{0}"/></frame>',
    "dipole": '<navsense:dipole><pose relative_to="{0}"/><moment>0 0 1</moment></navsense:dipole>',
    "pose of a link": make_model("m", "{1}", '<link name="l"><pose relative_to="{0}::base"/></link>'),
    "pose of a sensor": make_model(
        "m", '{1}<link name="l"><sensor name="i" type="imu"><pose relative_to="{0}"/></sensor></link>'
    ),
    "pose of a surface": make_model(
        "m",
        '{1}<link name="l"><collision name="c"><pose relative_to="{0}"/>'
        "<geometry><plane/></geometry></collision></link>",
    ),
    "canonical link": make_model("m", BASE, "{1}", attributes=' canonical_link="{0}::base"'),
    "placement": make_model("m", BASE, "{1}", attributes=' placement_frame="{0}"'),
    "axis": make_model(
        "m",
        '{1}<link name="a"/><link name="b"/><joint name="j" type="revolute"><parent>a</parent><child>b</child>'
        '<axis><xyz expressed_in="{0}">0 0 1</xyz></axis></joint>',
    ),
}
"""Elements that refer to {0}, which {1} would define in the model; the world defines it earlier."""


@pytest.mark.parametrize("case", REFERENCES)
@pytest.mark.parametrize("known", [True, False])
def test_reference_to_a_missing_include_is_an_error(
    list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path, case: str, known: bool
) -> None:
    """The name never resolves to another frame. The error names the include that may define it."""
    (tmp_path / "good.sdf").write_text(f'<sdf version="1.9">{make_model("auv", BASE)}</sdf>', encoding="utf-8")
    lost = make_missing_include("ship") if known else UNNAMED
    lines = list_problems(wrap_in_world(f"{lost}\n" + REFERENCES[case].format("ship", lost)), missing="skip")
    assert len(lines) == 1
    assert lines[0].startswith("dive.sdf:4: ")
    assert "it may be in model://lost, skipped at " in lines[0]


def test_missing_merged_include_may_define_any_name(list_problems: ListProblems, wrap_in_world: Text) -> None:
    text = wrap_in_world(make_model("m", MERGED, BASE, '<frame name="f" attached_to="mast"/>'))
    (line,) = list_problems(text.replace('name="m"', 'name="m" canonical_link="base"'), missing="skip")
    assert "<frame attached_to>: mast; must name a link, joint, frame or model in model 'm'" in line
    assert "it may be in model://lost, skipped at " in line


@pytest.mark.parametrize("name", ["shop", "world", "m::x", "other::ship"])
def test_unknown_names_are_reported(list_problems: ListProblems, wrap_in_world: Text, name: str) -> None:
    """The name of the skipped model is known, so any other unknown name is an error."""
    frame = make_model("m", BASE, f'<frame name="f" attached_to="{name}"/>') if name == "world" else ""
    frame = frame or make_model("m", BASE) + f'<frame name="f" attached_to="{name}"/>'
    (line,) = list_problems(wrap_in_world(f"{make_missing_include('ship')}\n{frame}"), missing="skip")
    assert "may be in" not in line
    assert f"<frame attached_to>: {name}; must name a link, joint, frame or model in" in line


def test_joint_to_the_world_is_kept(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    """A reserved name of SDF is not defined by an include: a joint to the world is kept."""
    frame = '<frame name="f" attached_to="world"/>'
    (line,) = list_problems(wrap_in_world(make_model("m", BASE, UNNAMED, frame)), missing="skip")
    assert line.endswith("a pose in a model cannot refer to the world")
    joint = JOINT.format("world", "base")
    (note,) = list_warnings(load(wrap_in_world(make_model("m", BASE, UNNAMED, joint)), missing="skip"))
    assert note.what == "<include><uri>: model://lost"


def test_modifications_of_skipped_models_are_ignored(load: Load, wrap_in_world: Text) -> None:
    params = (
        '<experimental:params><sensor element_id="base" action="add" name="dvl" type="custom"/></experimental:params>'
    )
    notes = load(wrap_in_world(make_include("model://lost", params)), missing="skip").notes
    assert [(note.kind, note.what) for note in notes] == [
        ("warning", "<include><uri>: model://lost"),
        ("unsupported", "<include><experimental:params>"),
    ]


def test_plugin_that_names_a_skipped_link(list_problems: ListProblems, wrap_in_world: Text) -> None:
    plugin = (
        '<plugin name="p" filename="libuuv_gazebo_ros_subsea_pressure_plugin.so">'
        "<link_name>pressure_link</link_name></plugin>"
    )
    (line,) = list_problems(wrap_in_world(make_model("auv", BASE, MERGED, plugin)), missing="skip")
    assert "<plugin><link_name>: pressure_link; " in line


JOINT = '<joint name="j" type="fixed"><parent>{}</parent><child>{}</child></joint>'


@pytest.mark.parametrize("lost", [make_missing_include("ship"), UNNAMED])
@pytest.mark.parametrize("ends", [("a", "ship::base"), ("ship::base", "a"), ("world", "ship"), ("ship", "ship::base")])
def test_joints_to_skipped_models_are_skipped(
    load: Load, wrap_in_world: Text, lost: str, ends: tuple[str, str]
) -> None:
    """A joint has no effect: its links keep their poses."""
    body = lost + make_model("a", "<pose>1 2 3 0 0 0</pose>", BASE)
    with_joint = load(wrap_in_world(f"{body}\n{JOINT.format(*ends)}"), missing="skip")
    without = load(wrap_in_world(body), missing="skip")
    assert with_joint.models == without.models
    (note,) = (note for note in list_warnings(with_joint) if note.what.startswith("<joint"))
    assert note.what == '<joint name="j">'
    assert note.reason.startswith("skipped: its <")
    assert "may be in model://lost, skipped at " in note.reason
    assert note.where is not None
    assert note.where.line == 4
    assert not any("joints between models" in other.reason for other in with_joint.notes)


def test_joint_to_a_skipped_nested_model(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    joint = JOINT.format("base", "camera::link")
    body = (BASE, '<link name="arm"><pose>0 0 1 0 0 0</pose></link>', make_missing_include("camera"), joint)
    (found,) = load(wrap_in_world(make_model("m", *body)), missing="skip").models
    assert [(link.name, link.pose.position) for link in found.links] == [("m::base", (0, 0, 0)), ("m::arm", (0, 0, 1))]
    placed = '<frame name="f"><pose relative_to="j">0 0 1 0 0 0</pose></frame>'
    (line,) = list_problems(wrap_in_world(make_model("m", *body, placed)), missing="skip")
    assert "<pose relative_to>: j; must name a link, joint, frame or model in model 'm'" in line
    (line,) = list_problems(
        wrap_in_world(make_model("m", *body, JOINT.format("base", "arms").replace('"j"', '"k"'))), missing="skip"
    )
    assert "<child>: arms; must name a link" in line


def test_joint_of_a_skipped_merged_model(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    part = make_model(
        "part", '<link name="core"/>', make_missing_include("camera"), JOINT.format("core", "camera::link")
    )
    (tmp_path / "part.sdf").write_text(f'<sdf version="1.9">{part}</sdf>', encoding="utf-8")
    clash = '<frame name="j"><pose>0 0 9 0 0 0</pose></frame>'
    merged = make_include("part.sdf", "<pose>1 0 0 0 0 0</pose>", ' merge="true"')
    world = load(wrap_in_world(make_model("m", BASE, merged)), missing="skip")
    assert [link.pose.position for link in world.models[0].links] == [(0, 0, 0), (1, 0, 0)]
    assert [note.what for note in list_warnings(world)] == ["<include><uri>: model://lost", '<joint name="j">']
    with pytest.raises(SdfError, match="<frame name>: j; must be unique"):  # the name of the joint is still in use
        load(wrap_in_world(make_model("m", BASE, merged, clash)), missing="skip")


# the link that moves a model


MOTION = (
    '<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>'
    '<navsense:waypoint time="5">1 0 0 0 0 0</navsense:waypoint></navsense:motion>'
)
MAST = '<link name="mast"><pose>0 0 7 0 0 0</pose></link>'
INNER = make_model("inner", MAST)


@pytest.mark.parametrize(
    ("body", "link"),
    [
        ((MERGED, MAST), None),
        ((MAST, MERGED), "m::mast"),
        ((UNNAMED, MAST), "m::mast"),
        ((UNNAMED, INNER), None),
        ((INNER, UNNAMED), "m::inner::mast"),
        ((INNER, MERGED), None),
        ((make_model("inner", UNNAMED, make_model("deep", BASE)),), None),
        ((make_model("inner", MERGED, MAST, attributes=' canonical_link="mast"'),), "m::inner::mast"),
    ],
)
def test_ambiguous_canonical_link_is_an_error(
    load: Load, list_problems: ListProblems, wrap_in_world: Text, body: tuple[str, ...], link: str | None
) -> None:
    """The motion moves the first link. If it may be in a skipped model, the file must name the link."""
    text = wrap_in_world(make_model("m", *body, MOTION))
    if link is not None:
        (found,) = load(text, missing="skip").models
        assert found.canonical_link == link
        return
    (line,) = list_problems(text, missing="skip")
    assert "<model canonical_link>: missing; must be given: the first link may be in the include skipped at " in line
    expected = "inner::mast" if INNER in body else "inner::deep::base" if "deep" in body[0] else "mast"
    (found,) = load(text.replace('"m"', f'"m" canonical_link="{expected}"'), missing="skip").models
    assert found.canonical_link == f"m::{expected}"
    (still,) = load(wrap_in_world(make_model("m", "<static>1</static>", *body)), missing="skip").models
    assert still.canonical_link == f"m::{expected}"


@pytest.mark.parametrize(
    "body", [(UNNAMED,), (MERGED,), (make_model("inner", MERGED),), ("<static>1</static>", MERGED)]
)
def test_model_without_remaining_links(load: Load, wrap_in_world: Text, body: tuple[str, ...]) -> None:
    world = load(wrap_in_world(f"{make_model('m', *body)}\n{make_model('a', BASE)}"), missing="skip")
    assert [model.name for model in world.models] == ["a"]
    (note,) = (note for note in list_warnings(world) if note.what == "<model>: m")
    assert note.reason == "skipped too: all its links are in skipped includes"


def test_model_without_links_is_still_an_error(list_problems: ListProblems, wrap_in_world: Text) -> None:
    (line,) = list_problems(wrap_in_world(f"{UNNAMED}\n{make_model('m')}"), missing="skip")
    assert line == "dive.sdf:4: <model name>: m; a model must have at least one link"


def test_remaining_models_keep_their_poses(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    """With and without a file, every remaining model, link, sensor and surface is equal."""
    part = tmp_path / "part.sdf"
    lost = make_model("part", '<link name="core"><pose>1 1 1 1 1 1</pose></link>', make_model("inside", BASE))
    part.write_text(f'<sdf version="1.9">{lost}</sdf>', encoding="utf-8")
    imu = '<sensor name="imu" type="imu"><pose>0 0 0.1 0 0 0.2</pose></sensor>'
    surface = '<collision name="c"><pose>0 0 2 0 0 0</pose><geometry><box/></geometry></collision>'
    text = wrap_in_world(
        make_include("part.sdf", "<pose>3 0 0 0 0 0.5</pose>")
        + '<frame name="dock"><pose>0 5 0 0 0.3 0</pose></frame>'
        + make_model(
            "auv",
            '<pose relative_to="dock">0 0 -2 0 0 1</pose>',
            f'<link name="base"><pose>0.5 0 0 0.1 0 0</pose>{imu}{surface}</link>',
            make_include("part.sdf", "<name>arm</name><pose>0 0 3 0 0 0</pose>"),
            make_include("part.sdf", "<name>skin</name>", ' merge="true"'),
            '<link name="tail"><pose relative_to="base">-1 0 0 0 0 0.4</pose></link>',
            JOINT.format("base", "arm::core"),
            MOTION,
        )
    )
    complete = load(text)
    part.unlink()
    rest = load(text, missing="skip")
    assert [model.name for model in rest.models] == ["auv"]
    (full,) = (model for model in complete.models if model.name == "auv")
    (left,) = rest.models
    assert {link.name for link in left.links} == {"auv::base", "auv::tail"}
    assert set(left.links) < set(full.links)
    assert (left.pose, left.canonical_link) == (full.pose, full.canonical_link)
    assert [(sensor.name, sensor.pose) for sensor in rest.sensors] == [
        (sensor.name, sensor.pose) for sensor in complete.sensors
    ]
    assert [(solid.name, solid.pose) for solid in rest.solids] == [
        (solid.name, solid.pose) for solid in complete.solids
    ]


# meshes, heightmaps


SONAR = (
    '<sensor name="sonar" type="ray"><pose>0 0 0 0 1.5707963267948966 0</pose><update_rate>10</update_rate>'
    "<ray><scan><horizontal><samples>1</samples><min_angle>0</min_angle><max_angle>0</max_angle></horizontal></scan>"
    "<range><min>0.1</min><max>50</max></range></ray></sensor>"
)


@pytest.mark.requirement("DVU-2")
@pytest.mark.parametrize(
    ("tag", "uri"),
    [
        ("mesh", "model://reef/rock.stl"),
        ("heightmap", "bed.png"),
        ("mesh", "https://fuel.gazebosim.org/1.0/o/rock.stl"),
    ],
)
@pytest.mark.parametrize("casting", [True, False])
def test_surfaces_of_skipped_models_are_skipped(
    load: Load, list_problems: ListProblems, wrap_in_world: Text, tag: str, uri: str, casting: bool
) -> None:
    """Rays continue to the surfaces behind. A file that no ray needs is listed too."""
    shape = f"<{tag}><uri>{uri}</uri></{tag}>"
    auv = make_model("auv", f'<link name="base">{SONAR if casting else ""}</link>')
    bed = (
        f'<collision name="rock"><geometry>{shape}</geometry></collision>\n'
        '<collision name="floor"><pose>0 0 -20 0 0 0</pose><geometry><plane/></geometry></collision>'
    )
    text = wrap_in_world(f"{auv}\n" + make_model("bed", f'<static>1</static><link name="l">{bed}</link>'))
    if casting:
        (line,) = list_problems(text)
        assert line.startswith(f"dive.sdf:4: <{tag}><uri>: {uri}; ")
    else:
        (note,) = (note for note in load(text).notes if note.what == f"<{tag}><uri>: {uri}")
        assert "no sensor's rays can hit it" in note.reason
    world = load(text, missing="skip")
    assert [solid.name for solid in world.solids] == ["bed::l::floor"]
    (note,) = list_warnings(world)
    assert note.what == f"<{tag}><uri>: {uri}"
    assert "skipped: rays pass through its place;" in note.reason
    assert note.where is not None
    assert note.where.line == 4
    if casting:
        reading = ns.simulate(world, 0.3, seed=1)["auv::base::sonar"]
        np.testing.assert_allclose(reading["range"], 20.0, rtol=1e-12, atol=0.0)


@pytest.mark.requirement("DVU-2")
def test_invalid_surface_is_still_an_error(list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path) -> None:
    (tmp_path / "reef").mkdir()
    auv = make_model("auv", f'<link name="base">{SONAR}</link>')
    for uri, problem in (("reef", "is a folder"), ("ftp://x", "must be a file"), ("", "must not be empty")):
        shape = f'<collision name="c"><geometry><mesh><uri>{uri}</uri></mesh></geometry></collision>'
        (line,) = list_problems(
            wrap_in_world(auv + make_model("bed", f'<link name="l">{shape}</link>')), missing="skip"
        )
        assert problem in line


# currents


PRELOAD = (
    '<plugin filename="gz-sim-environment-preload-system" name="e"><data>table.csv</data>'
    "<dimensions><time>t</time><space><x>x</x><y>y</y><z>z</z></space></dimensions></plugin>"
)
HYDRO = '<plugin filename="gz-sim-hydrodynamics-system" name="h">{}</plugin>'


@pytest.mark.requirement("CUR-2")
def test_currents_of_skipped_vehicles_are_kept(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    """Currents of the plug-ins of a skipped vehicle still act."""
    rows = [f"{t},{x},{y},{z},0.25,-0.5" for t in (0, 9) for x in (-9, 9) for y in (-9, 9) for z in (-9, 9)]
    (tmp_path / "table.csv").write_text("\n".join(["t,x,y,z,east,north", *rows]) + "\n", encoding="utf-8")
    lookup = "<lookup_current_x>east</lookup_current_x><lookup_current_y>north</lookup_current_y>"
    for text, expected in (
        (PRELOAD + make_include(FUEL, HYDRO.format(lookup)), (0.25, -0.5, 0.0)),
        (make_include(FUEL, HYDRO.format("<default_current>1 2 0</default_current>")), (1.0, 2.0, 0.0)),
    ):
        current = load(wrap_in_world(text), missing="skip").environment.current
        assert current is not None
        np.testing.assert_allclose(current.at(np.zeros((1, 3)), np.ones(1)), [expected], rtol=1e-12, atol=0.0)


@pytest.mark.requirement("CUR-2")
def test_missing_current_table_is_an_error(list_problems: ListProblems, wrap_in_world: Text) -> None:
    """The tables of a current must exist."""
    text = wrap_in_world('<navsense:current><stratified file="no.csv"/></navsense:current>')
    (line,) = list_problems(text, missing="skip")
    assert line.startswith("dive.sdf:3: <stratified file>: no.csv; is not found; searched")


def test_many_missing_includes_are_skipped_quickly(load: Load, wrap_in_world: Text) -> None:
    """Each of thousands of includes with joints is searched once."""
    count = 3000
    lost = "\n".join(make_missing_include(f"ship{i}") for i in range(count))
    joints = "\n".join(JOINT.format("a", f"ship{i}::l").replace('"j"', f'"j{i}"') for i in range(count))
    world = load(wrap_in_world(f"{lost}\n{make_model('a', BASE)}\n{joints}"), missing="skip")
    assert len(list_warnings(world)) == 2 * count

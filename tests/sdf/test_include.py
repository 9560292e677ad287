"""Includes: search of files, overrides of an include, and errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from navsense import sdf
from navsense.cli import cli
from navsense.core.errors import SdfError
from navsense.sdf import document, file_reader, search_path
from navsense.sdf.search_path import MODEL_PATH_VARIABLES
from navsense.world import World

pytestmark = pytest.mark.requirement("SDF-1")

Files = Callable[..., Path]
ListProblems = Callable[..., list[str]]


def make_world(*body: str, version: str = "1.9") -> str:
    """Return a world whose children start on line 3, one per line."""
    return f'<sdf version="{version}">\n<world name="ocean">\n' + "\n".join(body) + "\n</world>\n</sdf>\n"


def make_model(name: str, *body: str, version: str = "1.9", attributes: str = "") -> str:
    """Return a file with a model whose children start on line 3, one per line."""
    return f'<sdf version="{version}">\n<model name="{name}"{attributes}>\n' + "\n".join(body) + "\n</model>\n</sdf>\n"


def make_include(uri: str, content: str = "", attributes: str = "") -> str:
    return f"<include{attributes}><uri>{uri}</uri>{content}</include>"


def make_config(*versions: tuple[str, str]) -> str:
    return "<model>" + "".join(f'<sdf version="{version}">{file}</sdf>' for version, file in versions) + "</model>"


BASE = make_model("auv", '<link name="base"/>')


@pytest.fixture
def write_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Return a function that writes files by name; the environment names no folders."""
    for variable in MODEL_PATH_VARIABLES:
        monkeypatch.delenv(variable, raising=False)

    def write(**texts: str) -> Path:
        for name, text in texts.items():
            path = tmp_path / name.replace("__", "/").replace("_sdf", ".sdf").replace("_config", ".config")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / "dive.sdf"

    return write


@pytest.fixture
def list_problems(write_files: Files, tmp_path: Path) -> ListProblems:
    """Return a function that lists the problems of `dive.sdf`, one line each, without the folder."""

    def read_problems(**texts: str) -> list[str]:
        with pytest.raises(SdfError) as caught:
            sdf.load(write_files(**texts))
        assert caught.value.problems[0] is caught.value
        assert all(problem.where is not None for problem in caught.value.problems)
        return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]

    return read_problems


def list_positions(found: World) -> dict[str, tuple[float, float, float]]:
    return {model.name: model.pose.position for model in found.models}


# search of files


@pytest.mark.parametrize(
    "uri", ["auv.sdf", "./auv.sdf", "parts/../auv.sdf", "file://auv.sdf", "model://auv.sdf", "package://auv.sdf"]
)
def test_include_from_the_folder_of_the_file(write_files: Files, uri: str) -> None:
    path = write_files(dive_sdf=make_world(make_include(uri)), auv_sdf=BASE, parts__x_sdf=BASE)
    assert list_positions(sdf.load(path)) == {"auv": (0.0, 0.0, 0.0)}


def test_include_with_a_pose(write_files: Files, tmp_path: Path) -> None:
    write_files(far__auv_sdf=BASE)
    for uri in (f"{tmp_path}/far/auv.sdf", f"file://{tmp_path}/far/auv.sdf"):
        assert sdf.load(write_files(dive_sdf=make_world(make_include(uri)))).models[0].name == "auv"


def test_include_from_the_search_path(write_files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the caller come first, then the variables. A plain name is searched next to the file first."""
    places = [f"place{i}" for i in range(len(MODEL_PATH_VARIABLES) + 2)]
    write_files(**{f"{place}__auv_sdf": make_model(place, '<link name="base"/>') for place in places})
    path = write_files(dive_sdf=make_world(make_include("model://auv.sdf")))
    first, *variables = places[:-1]
    for variable, place in zip(MODEL_PATH_VARIABLES, variables, strict=True):
        monkeypatch.setenv(variable, f"/nowhere{os.pathsep}{os.pathsep}{tmp_path / place}")
    assert sdf.load(path, path=tmp_path / first).models[0].name == first
    assert sdf.load(path, path=[str(tmp_path), tmp_path / places[-1]]).models[0].name == places[-1]
    for variable, place in zip(MODEL_PATH_VARIABLES, variables, strict=True):
        assert sdf.load(path).models[0].name == place
        monkeypatch.delenv(variable)
    write_files(auv_sdf=BASE)
    assert sdf.load(path, path=tmp_path / first).models[0].name == first
    write_files(dive_sdf=make_world(make_include("auv.sdf")))
    assert sdf.load(path, path=tmp_path / first).models[0].name == "auv"


def test_invalid_search_path_is_an_error(write_files: Files, tmp_path: Path) -> None:
    path = write_files(dive_sdf=make_world(), auv_sdf=BASE)
    for wrong in (tmp_path / "nowhere", tmp_path / "auv.sdf", "a\0b"):
        with pytest.raises(SdfError, match=r"search path: .*; must be a folder") as caught:
            sdf.load(path, path=wrong)
        assert caught.value.problems == (caught.value,)


@pytest.mark.parametrize("name", ["model_config", "manifest.xml"])
def test_include_of_a_model_folder(write_files: Files, tmp_path: Path, name: str) -> None:
    versions = (("1.5", "old.sdf"), ("1.99", "newer.sdf"), ("1.9", "new.sdf"), ("1.6", "older.sdf"), ("2.0", "x.sdf"))
    path = write_files(
        dive_sdf=make_world(make_include("model://auv")), **{f"models__auv__{name}": make_config(*versions)}
    )
    write_files(models__auv__new_sdf=BASE)
    for folder in (tmp_path / "models", str(tmp_path / "models")):
        assert sdf.load(path, path=folder).models[0].name == "auv"
    write_files(dive_sdf=make_world(make_include("models/auv")))
    assert sdf.load(path).models[0].name == "auv"


def test_model_folder_without_versions(write_files: Files) -> None:
    path = write_files(
        dive_sdf=make_world(make_include("auv")), auv__model_config="<model><name>x</name><sdf>a.sdf</sdf></model>"
    )
    write_files(auv__a_sdf=BASE)
    assert sdf.load(path).models[0].name == "auv"


def test_names_inside_an_included_file_are_relative_to_it(write_files: Files) -> None:
    motion = '<navsense:motion file="log.csv"/>'
    path = write_files(
        dive_sdf=make_world(make_include("a/outer.sdf")),
        a__outer_sdf=make_model("outer", '<link name="base"/>', motion, make_include("b/inner.sdf")),
        a__b__inner_sdf=make_model("inner", '<link name="base"/>'),
    )
    log = "time,x,y,z,qw,qx,qy,qz\n" + "".join(f"{i},{i},0,0,1,0,0,0\n" for i in range(9))
    (path.parent / "a" / "log.csv").write_text(log, encoding="utf-8")
    (found,) = sdf.load(path).models
    assert [link.name for link in found.links] == ["outer::base", "outer::inner::base"]
    assert found.motion is not None


@pytest.mark.parametrize("command", ["check", "describe", "run"])
def test_command_line_has_a_search_path(write_files: Files, tmp_path: Path, command: str) -> None:
    path = write_files(dive_sdf=make_world(make_include("model://auv.sdf")), far__auv_sdf=BASE, near__x_sdf=BASE)
    arguments = [command, str(path), *(["--duration", "1"] if command == "run" else [])]
    found = CliRunner().invoke(cli, [*arguments, "--path", str(tmp_path / "near"), "--path", str(tmp_path / "far")])
    assert found.exit_code == 0, found.output
    missing = CliRunner().invoke(cli, [*arguments, "--path", str(tmp_path / "near")])
    assert missing.exit_code != 0
    assert "is not found; searched" in missing.output + str(missing.exception)


# overrides


def test_include_overrides_name_pose_and_plugins(write_files: Files) -> None:
    own = make_model(
        "auv", "<pose>1 2 3 0 0 0</pose>", '<link name="base"><sensor name="mag" type="magnetometer"/></link>'
    )
    plugin = '<plugin name="p" filename="libp.so"><pose>9 9 9 9 9 9</pose></plugin>'
    path = write_files(
        auv_sdf=own,
        dive_sdf=make_world(
            make_include("auv.sdf"),
            make_include("auv.sdf", "<name>posed</name><pose>5 0 0 0 0 0</pose>"),
            make_include("auv.sdf", "<name>empty</name><pose/>"),
            make_include("auv.sdf", '<name>related</name><pose relative_to="posed">0 1 0 0 0 0</pose>' + plugin),
        ),
    )
    found = sdf.load(path)
    assert list_positions(found) == {
        "auv": (1.0, 2.0, 3.0),
        "posed": (5.0, 0.0, 0.0),
        "empty": (0.0, 0.0, 0.0),
        "related": (5.0, 1.0, 0.0),
    }
    assert [sensor.name for sensor in found.sensors] == [f"{name}::base::mag" for name in list_positions(found)]
    assert [(note.what, note.where.line) for note in found.notes if note.where] == [
        ('<model><plugin name="p" filename="libp.so">', 6)
    ]


def test_include_overrides_static(write_files: Files) -> None:
    path = write_files(
        auv_sdf=make_model("auv", '<link name="base"/>', "<static>true</static>"),
        dive_sdf=make_world(make_include("auv.sdf"), make_include("auv.sdf", "<name>free</name><static>0</static>")),
    )
    assert {found.name: found.static for found in sdf.load(path).models} == {"auv": True, "free": False}


def test_include_placement_frame(write_files: Files) -> None:
    path = write_files(
        auv_sdf=make_model(
            "auv", '<link name="base"><pose>1 0 0 0 0 0</pose></link>', '<frame name="f" attached_to="base"/>'
        ),
        dive_sdf=make_world(make_include("auv.sdf", "<pose>5 0 0 0 0 0</pose><placement_frame>f</placement_frame>")),
    )
    assert list_positions(sdf.load(path)) == {"auv": (4.0, 0.0, 0.0)}


def test_every_file_is_read_in_its_version(write_files: Files) -> None:
    old = make_model("old", '<link name="a"/><link name="b"><pose frame="a">1 0 0 0 0 0</pose></link>', version="1.5")
    path = write_files(dive_sdf=make_world(make_include("old.sdf"), version="1.12"), old_sdf=old)
    assert [link.pose.position[0] for link in sdf.load(path).models[0].links] == [0.0, 1.0]


def test_lights_and_actors_are_listed(write_files: Files) -> None:
    path = write_files(
        dive_sdf=make_world(make_include("lamp.sdf"), make_include("actor.sdf")),
        lamp_sdf='<sdf version="1.9"><light name="lamp" type="point"/></sdf>',
        actor_sdf='<sdf version="1.9"><actor name="diver"/></sdf>',
    )
    assert {note.what for note in sdf.load(path).notes} >= {
        '<world><light name="lamp" type="point">',
        '<world><actor name="diver">',
    }


def test_file_is_read_once(write_files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_files(
        dive_sdf=make_world(
            *(make_include("auv", f"<name>m{i}</name>") for i in range(20)), make_include("./auv/auv.sdf")
        ),
        auv__model_config=make_config(("1.9", "auv.sdf")),
        auv__auv_sdf=make_model("auv", '<link name="base"/>', "<self_collide>1</self_collide>"),
    )
    read: list[str] = []

    def record_calls(before: Callable[..., Any]) -> Callable[..., Any]:
        def reading(file: str | Path, *rest: Any) -> Any:
            read.append(Path(file).name)
            return before(file, *rest)

        return reading

    for module, name in ((file_reader, "read_content"), (search_path, "read_xml")):
        monkeypatch.setattr(module, name, record_calls(getattr(module, name)))
    found = sdf.load(path)
    assert len(found.models) == 21
    assert sorted(read) == ["auv.sdf", "dive.sdf", "model.config"]
    assert [note.what for note in found.notes] == ["<model><self_collide>"]  # once for all includes


# merged models


PART = make_model(
    "part",
    "<static>true</static>",
    '<link name="core"><clock name="mcu"/>',
    '<sensor name="imu" type="imu"><pose relative_to="__model__">0 0 1 0 0 0</pose><clock>mcu</clock></sensor></link>',
    '<frame name="seat" attached_to="__model__"><pose>0 2 0 0 0 0</pose></frame>',
    '<plugin name="p" filename="libp.so"/>',
    '<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>',
    '<navsense:waypoint time="5">1 0 0 0 0 0</navsense:waypoint></navsense:motion>',
)
"""In libsdformat, `relative_to="__model__"` of a merged sensor means the including model; here the included one."""


def test_include_is_merged_into_a_model(write_files: Files) -> None:
    path = write_files(
        part_sdf=PART,
        dive_sdf=make_world(
            '<model name="ship">',
            make_include("part.sdf", "<name>bow</name><pose>3 0 0 0 0 0</pose>", ' merge="true"'),
            '<link name="deck"><pose relative_to="seat">1 0 0 0 0 0</pose></link>',
            '<link name="mast"><pose relative_to="_merged__bow__model__">0 0 7 0 0 0</pose></link>',
            "</model>",
        ),
    )
    found = sdf.load(path)
    (ship,) = found.models
    assert {link.name: link.pose.position for link in ship.links} == {
        "ship::core": (3.0, 0.0, 0.0),
        "ship::deck": (4.0, 2.0, 0.0),
        "ship::mast": (3.0, 0.0, 7.0),
    }
    assert (ship.canonical_link, ship.static) == ("ship::core", False)
    assert ship.motion is not None
    (sensor,) = found.sensors
    assert (sensor.name, sensor.pose.position, sensor.clock) == ("ship::core::imu", (0.0, 0.0, 1.0), "ship::core::mcu")
    notes = {note.what: note.reason for note in found.notes}
    assert notes["<model><static>"] == "has no effect: the model is merged, and that of <model> applies"
    assert '<model><plugin name="p" filename="libp.so">' in notes


def test_include_is_merged_into_a_world(write_files: Files, list_problems: ListProblems) -> None:
    body = ('<model name="a"><link name="l"/></model>', '<frame name="f"><pose>0 0 1 0 0 0</pose></frame>')
    included = make_include("set.sdf", "<pose>1 0 0 0 0 0</pose>", ' merge="true"')
    path = write_files(
        set_sdf=make_model("set", *body),
        dive_sdf=make_world(
            included, '<model name="b"><pose relative_to="f"/><link name="l"/></model>', version="1.10"
        ),
    )
    assert list_positions(sdf.load(path)) == {"a": (1.0, 0.0, 0.0), "b": (1.0, 0.0, 1.0)}
    problems = list_problems(set_sdf=make_model("set", '<link name="l"/>', *body))
    assert problems == ["dive.sdf:3: <include>: set; a model with links cannot be merged into a world"]
    inner = make_include("inner.sdf", "", ' merge="true"')
    assert (
        list_problems(set_sdf=make_model("set", inner, *body), inner_sdf=make_model("inner", '<link name="l"/>'))
        == problems
    )


def test_include_merges_a_model_with_merged_includes(write_files: Files) -> None:
    path = write_files(
        dive_sdf=make_world(
            '<model name="ship">', make_include("a.sdf", "<pose>1 0 0 0 0 0</pose>", ' merge="1"'), "</model>"
        ),
        a_sdf=make_model("a", make_include("b.sdf", "<pose>0 1 0 0 0 0</pose>", ' merge="true"'), '<link name="la"/>'),
        b_sdf=make_model("b", '<link name="lb"/>', '<model name="n"><link name="ln"/></model>'),
    )
    (ship,) = sdf.load(path).models
    assert {link.name: link.pose.position for link in ship.links} == {
        "ship::lb": (1.0, 1.0, 0.0),
        "ship::la": (1.0, 0.0, 0.0),
        "ship::n::ln": (1.0, 1.0, 0.0),
    }


def test_names_of_a_merged_model_must_be_unique(list_problems: ListProblems) -> None:
    (line,) = list_problems(
        part_sdf=make_model("part", '<link name="core"/>'),
        dive_sdf=make_world(
            '<model name="ship"><link name="core"/>', make_include("part.sdf", "", ' merge="true"') + "</model>"
        ),
    )
    assert line.startswith("part.sdf:3: <link name>: core; must be unique among the links, joints, frames and models")
    assert line.endswith("first as <link> on dive.sdf:3; rename one")


def test_merged_model_cannot_refer_to_outer_frames(list_problems: ListProblems) -> None:
    (line,) = list_problems(
        part_sdf=make_model("part", '<link name="core"><pose relative_to="deck"/></link>'),
        dive_sdf=make_world(
            '<model name="ship"><link name="deck"/>', make_include("part.sdf", "", ' merge="true"') + "</model>"
        ),
    )
    assert line == "part.sdf:3: <pose relative_to>: deck; must name a link, joint, frame or model in model 'part'"


# invalid includes


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        (make_include("auv.sdf"), "<include><uri>: auv.sdf; is not found; searched auv.sdf; name its folder by --path"),
        (
            make_include("model://x/y"),
            "<include><uri>: model://x/y; is not found; searched x/y; name its folder by --path",
        ),
        (
            make_include("https://fuel.gazebosim.org/1.0/o/models/X"),
            "<include><uri>: https://fuel.gazebosim.org/1.0/o/models/X; is not in the cache of Fuel",
        ),
        (
            make_include("http://a/b"),
            "<include><uri>: http://a/b; must be a file, model://NAME, package://NAME, file://PLACE or a model",
        ),
        (
            make_include("fuel://x"),
            "<include><uri>: fuel://x; must be a file, model://NAME, package://NAME, file://PLACE or a model",
        ),
        (make_include("model://"), "<include><uri>: model://; must be a file, model://NAME"),
        (make_include("file://"), "<include><uri>: file://; must be a file, model://NAME"),
        (make_include(""), "<include><uri>: empty; must not be empty"),
        (make_include("a" * 5000), "<include><uri>: aaa"),
        (make_include("folder"), "<include><uri>: folder; is a folder without model.config; name the file in folder"),
        (
            make_include("pipe.sdf"),
            "<include><uri>: pipe.sdf; pipe.sdf: file: is a device, a pipe or a system file; must be a readable file",
        ),
        (
            make_include("empty.sdf"),
            "<include><uri>: empty.sdf; empty.sdf: file: empty; must be a readable file of SDF",
        ),
        (make_include("dive.sdf"), "<include><uri>: dive.sdf; must not include itself: dive.sdf -> dive.sdf"),
        ("<include/>", "<include><uri>: missing; must be given"),
        ("<include><uri>a</uri><uri>b</uri></include>", "<include><uri>: a; is not found"),
        (make_include("good.sdf", "<name/>"), "<include><name>: empty; must not be empty"),
        (make_include("good.sdf", "<name>a::b</name>"), '<name>: a::b; must not contain "::"'),
        (make_include("good.sdf", "<static>maybe</static>"), "<model><static>: maybe; must be true, false, 1 or 0"),
        (make_include("good.sdf", "<pose>1</pose>"), "<model><pose>: 1; must be 6 finite numbers"),
        (
            make_include("good.sdf", '<pose relative_to="x"/>'),
            "<pose relative_to>: x; must name a link, joint, frame or model in",
        ),
        (make_include("good.sdf", "", ' merge="maybe"'), "<include merge>: maybe; must be true, false, 1 or 0"),
        (
            make_include("good.sdf", "<placement_frame>base</placement_frame>"),
            "<include><placement_frame>: base; requires a <pose>",
        ),
        (
            make_include("good.sdf", "<pose/><placement_frame>x</placement_frame>"),
            "<placement_frame>: x; must name a link, joint",
        ),
        (
            make_include("good.sdf") + make_include("good.sdf"),
            "<include>: auv; must be unique among the links, joints, frames and models",
        ),
        (
            make_include("good.sdf") + make_include("good.sdf", "<name>auv</name>"),
            "<name>: auv; must be unique among the links, joints,",
        ),
    ],
)
def test_invalid_includes_are_reported(list_problems: ListProblems, tmp_path: Path, element: str, problem: str) -> None:
    os.mkfifo(tmp_path / "pipe.sdf")
    (tmp_path / "folder").mkdir()
    problems = list_problems(dive_sdf=make_world("", element), good_sdf=BASE, empty_sdf=" ")
    assert any(line.startswith(f"dive.sdf:4: {problem}") for line in problems), problems


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<sdf", "XML: unclosed token"),
        ('<!DOCTYPE a><sdf version="1.9"/>', "<!DOCTYPE>: a; must not declare a document type or"),
        ("<robt/>", "<robt>; the outermost element must be <sdf> or <robot>"),
        ("<robot/>", "<robot>; must have a name and a link"),
        ("<sdf/>", "<sdf version>: missing; must be 1.4 to 1.12"),
        ('<sdf version="1.3"/>', "<sdf version>: 1.3; must be 1.4 to 1.12"),
        ('<sdf version="1.9"/>', "<sdf>: none; an included file must hold one <model>, <actor> or <light>"),
        ('<sdf version="1.9"><world name="w"/></sdf>', "<sdf>: none; an included file must hold one <model>"),
        (
            '<sdf version="1.9"><model name="m"><link name="l"/></model><model name="n"><link name="l"/></model></sdf>',
            "<model>: 2 models, actors or lights; an included",
        ),
        ('<sdf version="1.9"><model name="m"/></sdf>', "<model name>: p0; a model must have at least one link"),
        (
            '<sdf version="1.9"><model name="m"><pose relative_to="world"/></model></sdf>',
            "<pose relative_to>: world; a model",
        ),
        ('<sdf version="1.9"><mdl name="m"/></sdf>', "<sdf>: none; an included file must hold one <model>"),
        (
            '<sdf version="1.9"><model name="m"><lnk name="l"/></model></sdf>',
            '<model><lnk name="l">; is not allowed here; did you mean link?',
        ),
    ],
)
def test_errors_in_included_files_have_their_line(list_problems: ListProblems, text: str, problem: str) -> None:
    problems = list_problems(
        dive_sdf=make_world(*(make_include("part.sdf", f"<name>p{i}</name>") for i in range(3))), part_sdf="\n" + text
    )
    assert any(line.startswith(f"part.sdf:2: {problem}") for line in problems), problems
    assert len(set(problems)) == len(problems)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<model>", "auv/model.config:1: XML: no element found"),
        (
            "<model/>",
            "auv/model.config:1: model.config: <model> with 0 <sdf>; must be a <model> with an <sdf> of version",
        ),
        (
            make_config(("1.99", "auv.sdf")),
            "auv/model.config:1: model.config: <model> with 1 <sdf>; must be a <model> with",
        ),
        (
            '<mdl><sdf version="1.9">auv.sdf</sdf></mdl>',
            "auv/model.config:1: model.config: <mdl> with 1 <sdf>; must be",
        ),
        (make_config(("1.9", "other.sdf")), "dive.sdf:3: <include><uri>: auv; auv/other.sdf: file: does not exist"),
        (make_config(("1.9", ".")), "dive.sdf:3: <include><uri>: auv; auv: file: is a folder"),
    ],
)
def test_invalid_model_folders_are_reported(list_problems: ListProblems, text: str, problem: str) -> None:
    problems = list_problems(dive_sdf=make_world(make_include("auv")), auv__model_config=text, auv__auv_sdf=BASE)
    assert any(line.startswith(problem) for line in problems), problems


def test_missing_model_is_one_problem(list_problems: ListProblems) -> None:
    """A reference to the missing model is not a second problem, because its content is unknown."""
    frame = '<frame name="f" attached_to="x::y"/>'
    lines = list_problems(
        dive_sdf=make_world(make_include("x.sdf"), frame, f'<model name="m">{make_include("x.sdf")}</model>')
    )
    assert [line.partition("; is not found;")[0] for line in lines] == [
        "dive.sdf:3: <include><uri>: x.sdf",
        "dive.sdf:5: <include><uri>: x.sdf",
    ]


def test_missing_include_error_shortens_the_list_of_folders(
    write_files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDF_PATH", os.pathsep.join(f"/place{i}" for i in range(20)))
    with pytest.raises(SdfError, match=r"searched /place0/x, .*/place7/x and 13 places more; name its folder"):
        sdf.load(write_files(dive_sdf=make_world(make_include("model://x"))))


def test_lights_cannot_be_merged_or_nested(list_problems: ListProblems) -> None:
    lamp = '<sdf version="1.9"><light name="lamp" type="point"/></sdf>'
    (line,) = list_problems(lamp_sdf=lamp, dive_sdf=make_world(make_include("lamp.sdf", "", ' merge="true"')))
    assert line == "dive.sdf:3: <include><uri>: lamp.sdf; holds <light>; only a <model> can be merged"
    (line,) = list_problems(dive_sdf=make_world(f'<model name="m"><link name="l"/>{make_include("lamp.sdf")}</model>'))
    assert line == "dive.sdf:3: <include><uri>: lamp.sdf; holds <light>; only a <model> can be included in a model"


# limits


def test_include_cycles_are_an_error(list_problems: ListProblems, tmp_path: Path) -> None:
    (line,) = list_problems(
        dive_sdf=make_world(make_include("a.sdf")),
        a_sdf=make_model("a", '<link name="l"/>', make_include("sub/b.sdf")),
        sub__b_sdf=make_model("b", '<link name="l"/>', make_include("../a.sdf")),
    )
    assert line == "sub/b.sdf:4: <include><uri>: ../a.sdf; must not include itself: a.sdf -> b.sdf -> a.sdf"
    (tmp_path / "same.sdf").symlink_to(tmp_path / "dive.sdf")
    assert "dive.sdf -> dive.sdf" in list_problems(dive_sdf=make_world(make_include("same.sdf")))[0]
    (tmp_path / "loop.sdf").symlink_to(tmp_path / "loop.sdf")
    assert list_problems(dive_sdf=make_world(make_include("loop.sdf")))[0].startswith(
        "dive.sdf:3: <include><uri>: loop.sdf; "
    )


def test_deep_includes_are_an_error(list_problems: ListProblems) -> None:
    chain = {f"m{i}_sdf": make_model("m", '<link name="l"/>', make_include(f"m{i + 1}.sdf")) for i in range(1, 60)}
    (line,) = list_problems(dive_sdf=make_world(make_include("m1.sdf")), **chain)
    assert line == "m30.sdf:4: <include><uri>: m31.sdf; files may include each other 30 deep"


def test_deep_models_through_includes_are_an_error(list_problems: ListProblems) -> None:
    def make_nested_model(uri: str) -> str:
        return make_model("m", '<model name="n">' * 90 + make_include(uri) + '<link name="l"/>' + "</model>" * 90)

    lines = list_problems(
        dive_sdf=make_world(make_include("m1.sdf")),
        m1_sdf=make_nested_model("m2.sdf"),
        m2_sdf=make_nested_model("m3.sdf"),
        m3_sdf=make_nested_model("x"),
    )
    assert any("elements may be nested 200 deep, with those of includes" in line for line in lines)


def test_exponential_includes_are_an_error(list_problems: ListProblems) -> None:
    """Ten files with ten includes each would give 10^10 models."""
    files = {
        f"m{i}_sdf": make_model("m", *(make_include(f"m{i + 1}.sdf", f"<name>n{k}</name>") for k in range(10)))
        for i in range(9)
    }
    lines = list_problems(dive_sdf=make_world(make_include("m0.sdf")), **files, m9_sdf=BASE)
    assert any("brings more than 10000 includes into one file, with those of included files" in x for x in lines)


def test_exponential_elements_are_an_error(list_problems: ListProblems) -> None:
    links = "".join(f'<link name="l{i}"/>' for i in range(2000))
    lines = list_problems(
        dive_sdf=make_world(*(make_include("a.sdf", f"<name>n{k}</name>") for k in range(11))),
        a_sdf=make_model("a", *(make_include("b.sdf", f"<name>n{k}</name>") for k in range(50))),
        b_sdf=make_model("b", links),
    )
    assert any("brings more than 1000000 elements into one file" in line for line in lines)


def test_total_file_size_is_limited(list_problems: ListProblems, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "FileReader", partial(file_reader.FileReader, bytes_left=1000))
    (line,) = list_problems(
        dive_sdf=make_world(make_include("a.sdf"), make_include("b.sdf")),
        a_sdf=make_model("a", '<link name="l"/>', "<!--" + "x" * 500 + "-->"),
        b_sdf=make_model("b", '<link name="l"/>', "<!--" + "x" * 500 + "-->"),
    )
    assert line.startswith(
        "dive.sdf:4: <include><uri>: b.sdf; b.sdf: file: too large; must be at most 64 MiB with all that"
    )

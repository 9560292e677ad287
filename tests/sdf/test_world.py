from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from navsense.core.errors import SdfError
from navsense.core.geodesy import Origin
from navsense.environment.base import DEFAULT_GRAVITY, DEFAULT_MAGNETIC_FIELD, UniformField
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]


def test_empty_world_has_defaults(load: Load, wrap_in_world: Text) -> None:
    world = load(wrap_in_world(""))
    assert (world.name, world.models, world.sensors, world.clocks, world.notes) == ("ocean", (), (), (), ())
    assert world.max_step_size == 0.001
    assert world.environment.gravity == UniformField(DEFAULT_GRAVITY)
    assert world.environment.heading == 0.0
    assert world.path.endswith("dive.sdf")


@pytest.mark.requirement("MAG-4")
def test_magnetic_field_is_read(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    assert load(wrap_in_world("")).environment.magnetic_field == UniformField(DEFAULT_MAGNETIC_FIELD)
    assert DEFAULT_MAGNETIC_FIELD == (5.5645e-6, 22.8758e-6, -42.3884e-6)
    arguments = load(wrap_in_world("<magnetic_field>1e-6\n2e-6 -3e-6</magnetic_field>"))
    assert arguments.environment.magnetic_field == UniformField((1e-6, 2e-6, -3e-6))
    for text in ("1 2", "1 2 3 4", "a b c", "nan 0 0", "1e400 0 0", ""):
        (line,) = list_problems(wrap_in_world(f"<magnetic_field>{text}</magnetic_field>"))
        assert line.startswith("dive.sdf:3: <world><magnetic_field>: ")
    in_physics = "<physics><magnetic_field>1 2 3</magnetic_field></physics>"
    (note,) = load(wrap_in_world(in_physics)).notes
    assert (note.kind, note.what) == ("warning", "<magnetic_field> in <physics>")
    assert note.reason == "is ignored: SDF 1.6 moved it to <world>; move it there"
    assert load(wrap_in_world(in_physics, "1.5")).environment.magnetic_field == UniformField((1.0, 2.0, 3.0))


def test_gravity_and_heading_are_read(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    place = "<spherical_coordinates><heading_deg>{}</heading_deg></spherical_coordinates>"
    world = load(wrap_in_world("<gravity>0 0 -1.62</gravity>" + place.format(-90)))
    assert world.environment.gravity == UniformField((0.0, 0.0, -1.62))
    assert world.environment.heading == -math.pi / 2
    assert [(note.kind, note.reason) for note in world.notes] == [
        ("warning", "has no latitude_deg and no longitude_deg: SDF's default is 0")
    ]
    assert len(list_problems(wrap_in_world(place.format("east")))) == 1
    orientation = (
        "<spherical_coordinates><world_frame_orientation>NED</world_frame_orientation></spherical_coordinates>"
    )
    assert "must be one of ENU" in list_problems(wrap_in_world(orientation))[0]


@pytest.mark.requirement("NAV-1")
def test_coordinates_are_read(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    def place(**values: object) -> str:
        inner = "".join(f"<{tag}>{value}</{tag}>" for tag, value in values.items())
        return wrap_in_world(f"<spherical_coordinates>\n{inner}</spherical_coordinates>")

    complete = {"surface_model": "EARTH_WGS84", "latitude_deg": -22.9, "longitude_deg": -43.2, "elevation": 7}
    origin = load(place(**complete, heading_deg=30)).environment.origin
    assert origin == Origin(math.radians(-22.9), math.radians(-43.2), 7.0, math.radians(30.0))
    assert load(place()).environment.origin == Origin(0.0, 0.0)
    assert load(wrap_in_world("")).environment.origin is None
    for tag, value, allowed in (
        ("latitude_deg", "91", "must be from -90 to 90"),
        ("longitude_deg", "-360.5", "must be from -360 to 360"),
        ("elevation", "2e6", "must be from -1e+06 to 1e+06"),
        ("heading_deg", "1e4", "must be from -3600 to 3600"),
        ("surface_model", "MOON_SCS", "must be one of EARTH_WGS84"),
    ):
        assert list_problems(place(**{tag: value})) == [
            f"dive.sdf:4: <spherical_coordinates><{tag}>: {value}; {allowed}"
        ]
    notes = [note.what for note in load(place(**complete, surface_axis_polar=1)).notes]
    assert notes == ["<world><gravity>", "<world><magnetic_field>", "<spherical_coordinates><surface_axis_polar>"]


def test_physics_is_read(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    def physics(step: str, attributes: str = "") -> str:
        return f"<physics {attributes}><max_step_size>{step}</max_step_size></physics>"

    assert load(wrap_in_world(physics("0.004"))).max_step_size == 0.004
    assert load(wrap_in_world("<physics/>")).max_step_size == 0.001
    assert load(wrap_in_world(physics("0.1") + physics("0.2"))).max_step_size == 0.1
    two = load(wrap_in_world(physics("0.1") + "\n" + physics("0.2", 'default="true"')))
    assert two.max_step_size == 0.2
    assert "the one on line 4 is used" in two.notes[0].reason
    for step in ("0", "-0.001", "nan", "inf", "1e-400"):
        (line,) = list_problems(wrap_in_world(physics(step)))
        assert line.startswith(f"dive.sdf:3: <physics><max_step_size>: {step}; must be ")


def test_model_without_world_is_read(load: Load) -> None:
    world = load(
        '<sdf version="1.6"><model name="auv"><link name="l"><sensor name="s" type="imu"/></link></model></sdf>'
    )
    assert (world.name, [model.name for model in world.models]) == ("auv", ["auv"])
    assert world.sensors[0].topic == "/world/auv/model/auv/link/l/sensor/s/imu"
    assert world.environment.magnetic_field == UniformField(DEFAULT_MAGNETIC_FIELD)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("", "dive.sdf:1: <sdf>: empty; a file must hold one <world>"),
        ('<world name="a"/>\n<world name="b"/>', "dive.sdf:2: <world>: 2 worlds and models; a file must hold"),
        ('<world name="a"/>\n<model name="b"/>', "dive.sdf:2: <model>: 2 worlds and models"),
        ('<model name="a"/>\n<model name="b"/>', "dive.sdf:2: <model>: 2 worlds and models"),
        ("<world/>", "dive.sdf:1: <world name>: missing; must be given"),
        ('<world name="world"/>', "dive.sdf:1: <world name>: world; is reserved"),
        ('<wrld name="a"/>', 'dive.sdf:1: <sdf><wrld name="a">; is not allowed here; did you mean world?'),
    ],
)
def test_file_needs_one_world_or_model(list_problems: ListProblems, body: str, line: str) -> None:
    assert any(problem.startswith(line) for problem in list_problems(f'<sdf version="1.9">{body}</sdf>'))


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize("version", range(4, 13))
def test_versions_are_read(load: Load, wrap_in_world: Text, version: int) -> None:
    assert load(wrap_in_world("", f"1.{version}")).name == "ocean"


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        ("1.3", "the old format differs; convert the file to 1.4 or newer by hand"),
        ("1.2", "the old format differs; convert"),
        ("1.0", "the old format differs; convert"),
        *((newer, 'write <sdf version="1.12"> if it') for newer in ("1.13", "1.60", "2.0", "1." + "9" * 5000)),
        *((none, 'write <sdf version="1.12"> if it') for none in ("1", "1.x", "1.²", "-1.5", "1.5.0")),
        ("", 'write <sdf version="1.12">'),
    ],
)
def test_invalid_versions_are_an_error(
    list_problems: ListProblems, wrap_in_world: Text, version: str, remedy: str
) -> None:
    (line,) = list_problems(wrap_in_world("", version))
    assert line.startswith("dive.sdf:1: <sdf version>: ")
    assert f"must be 1.4 to 1.12; {remedy}" in line


def test_root_elements_are_checked(list_problems: ListProblems) -> None:
    assert "must be <sdf> or <robot>" in list_problems("<world/>")[0]
    assert list_problems("<sdf/>")[0].startswith("dive.sdf:1: <sdf version>: missing")


def test_invalid_fidelity_is_an_error(load: Load, wrap_in_world: Text) -> None:
    with pytest.raises(SdfError, match="fidelity"):
        load(wrap_in_world(""), fidelity="exact")


def test_unknown_elements_of_navsense_are_errors(list_problems: ListProblems, wrap_in_world: Text) -> None:
    assert list_problems(wrap_in_world("<navsense:wave/>"))[0].startswith(
        "dive.sdf:3: <world><navsense:wave>; is not allowed here"
    )
    assert list_problems(wrap_in_world("<navsense:zzzzzzzz/>"))[0].endswith("remove it")
    assert list_problems(wrap_in_world("<navsense:wather/>"))[0].endswith("did you mean navsense:water?")
    assert list_problems(wrap_in_world('<navsense:water depth="1"/>')) == [
        "dive.sdf:3: <navsense:water depth>; is not allowed here; remove it"
    ]


def test_foreign_elements_are_listed(load: Load, wrap_in_world: Text) -> None:
    world = load(
        wrap_in_world('<gz:policies gz:a="1"><b/></gz:policies><model name="m" gz:c="2"><link name="l"/></model>')
    )
    assert [(note.kind, note.what) for note in world.notes] == [
        ("foreign", "<world><gz:policies>"),
        ("foreign", "<model gz:c>"),
    ]


def test_number_of_reported_problems_is_bounded(list_problems: ListProblems, wrap_in_world: Text) -> None:
    problems = list_problems(wrap_in_world("<navsense:wave/>\n" * 5000))
    assert len(problems) == 1001
    assert problems[-1].endswith("reading stops after 1000; there may be more")
    assert len(list_problems(wrap_in_world("<navsense:wave/>" * 5000))) == 1


def test_static_and_nested_models_are_read(load: Load, wrap_in_world: Text) -> None:
    world = load(
        wrap_in_world(
            '<model name="a"><static>true</static><link name="l"/></model>'
            '<model name="b"><link name="l"/><model name="c"><static>1</static><link name="l"/></model></model>'
        )
    )
    assert [(model.name, model.static) for model in world.models] == [("a", True), ("b", False)]
    assert [note.what for note in world.notes] == ["<static> of b::c"]

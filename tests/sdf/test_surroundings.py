"""Fields, air, coordinates and signals of a world: the file determines the environment."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense import sdf
from navsense.core.geodesy import Origin
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import DEFAULT_GRAVITY, DEFAULT_MAGNETIC_FIELD, FieldSum, UniformField
from navsense.environment.gravity import NormalGravity
from navsense.environment.magnetic import Dipole, WorldMagneticModel
from navsense.environment.signal import Signal
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

PLACE = (
    "<spherical_coordinates><latitude_deg>36.8</latitude_deg><longitude_deg>-121.8</longitude_deg>"
    "<elevation>-30</elevation><heading_deg>20</heading_deg></spherical_coordinates>\n"
)
ORIGIN = Origin(math.radians(36.8), math.radians(-121.8), -30.0, math.radians(20.0))


def test_empty_element_has_sdf_defaults(load: Load, wrap_in_world: Text) -> None:
    found = load(wrap_in_world("")).environment
    assert (found.gravity, found.magnetic_field) == (
        UniformField(DEFAULT_GRAVITY),
        UniformField(DEFAULT_MAGNETIC_FIELD),
    )
    assert (found.origin, found.atmosphere, found.signals) == (None, Atmosphere(), {})


# coordinates


@pytest.mark.requirement("SDF-1")
def test_incomplete_coordinates_are_reported(load: Load, wrap_in_world: Text) -> None:
    half = "<spherical_coordinates><longitude_deg>7</longitude_deg></spherical_coordinates>"
    world = load(wrap_in_world(half))
    assert world.environment.origin == Origin(0.0, math.radians(7.0))
    (note,) = world.notes
    assert (note.kind, note.reason) == ("warning", "has no latitude_deg: SDF's default is 0")


# geoid

GEOID = PLACE.replace("</spherical_coordinates>", '<navsense:geoid file="flat.pgm"/></spherical_coordinates>')


@pytest.fixture
def flat_geoid(tmp_path: Path) -> Path:
    """Return a grid with an undulation of 42 m everywhere."""
    path = tmp_path / "flat.pgm"
    path.write_bytes(b"P5\n# Offset -108\n# Scale 0.003\n4 3\n65535\n" + 12 * (50_000).to_bytes(2, "big"))
    return path


@pytest.mark.requirement("PRS-1", "SDF-1")
def test_geoid_is_read_from_the_folder_of_the_world(load: Load, wrap_in_world: Text, flat_geoid: Path) -> None:
    environment = load(wrap_in_world(GEOID)).environment
    assert environment.origin == ORIGIN
    assert environment.geoid is not None
    assert (Path(environment.geoid.file), environment.geoid.interpolation) == (flat_geoid, "cubic")
    assert environment.altitude_at(np.zeros((1, 3))) == pytest.approx([-30.0 - 42.0], rel=0.0, abs=1e-8)
    text = GEOID.replace("/></sph", ' interpolation="bilinear"/></sph')
    assert load(wrap_in_world(text)).environment == replace(
        environment, geoid=replace(environment.geoid, interpolation="bilinear")
    )


@pytest.mark.requirement("PRS-1", "SDF-1")
def test_geoid_is_found_in_the_folder_of_geographiclib(
    load: Load, wrap_in_world: Text, flat_geoid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = flat_geoid.parent / "grids"
    folder.mkdir()
    moved = flat_geoid.rename(folder / "flat.pgm")
    monkeypatch.setenv("GEOGRAPHICLIB_GEOID_PATH", str(folder))
    geoid = load(wrap_in_world(GEOID)).environment.geoid
    assert geoid is not None
    assert Path(geoid.file) == moved


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ('file="none.pgm"', r"none\.pgm: geoid grid: does not exist; must be in one of .*; install the grid"),
        ('file="a/none.pgm"', r"a/none\.pgm: geoid grid: does not exist; must be a PGM file of GeographicLib"),
        ('file="dive.sdf"', r"dive\.sdf:1: format of the geoid grid: .*; must start with a line P5"),
        ('file="flat.pgm" interpolation="spline"', r"interpolation of a geoid: spline; must be cubic or bilinear"),
        ('file="flat.pgm" interpolation=""', r"interpolation of a geoid: ; must be cubic or bilinear"),
        ('file=""', r"<navsense:geoid file>: missing; must be given"),
        ('file="flat.pgm" offset="1"', r"<navsense:geoid offset>; is not allowed here"),
    ],
)
def test_wrong_geoids_are_errors_with_the_line(
    list_problems: ListProblems, wrap_in_world: Text, flat_geoid: Path, attributes: str, problem: str
) -> None:
    assert flat_geoid.is_file()
    (line,) = list_problems(wrap_in_world("\n" + GEOID.replace('file="flat.pgm"', attributes)))
    assert re.search(r"dive\.sdf:4: .*" + problem, line), line


# magnetic field


@pytest.mark.requirement("MAG-4", "MAG-7")
def test_world_magnetic_model_is_read(load: Load, wrap_in_world: Text) -> None:
    element = '<navsense:magnetic_field model="WMM2025" date="2027.0"/>'
    for text in (PLACE + element, element + PLACE):
        found = load(wrap_in_world(text)).environment
        assert found.magnetic_field == WorldMagneticModel(ORIGIN, 2027.0, "WMM2025")
        assert found.origin == ORIGIN
    (field,) = found.magnetic_field.at(np.zeros((1, 3)), np.zeros(1))
    assert 40e-6 < np.linalg.norm(field) < 55e-6
    assert field[2] < 0.0  # downwards in the north


@pytest.mark.requirement("MAG-4")
def test_anomaly_adds_to_the_uniform_field(load: Load, wrap_in_world: Text) -> None:
    ours = '<navsense:magnetic_field model="WMM2020" date="2022.5"/>\n<navsense:gravity model="WGS84"/>\n'
    world = load(wrap_in_world(PLACE + ours + "<magnetic_field>1 2 3</magnetic_field><gravity>0 0 -1</gravity>"))
    assert world.environment.magnetic_field == WorldMagneticModel(ORIGIN, 2022.5, "WMM2020")
    assert world.environment.gravity == NormalGravity(ORIGIN)
    assert [(note.kind, note.what, note.reason) for note in world.notes] == [
        ("unsupported", "<world><magnetic_field>", "<navsense:magnetic_field> on line 4 overrides it"),
        ("unsupported", "<world><gravity>", "<navsense:gravity> on line 5 overrides it"),
    ]


@pytest.mark.requirement("MAG-4")
@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ('magnetic_field model="WMM2025"', "magnetic_field date>: missing; must be given"),
        ('magnetic_field date="2027"', "magnetic_field model>: missing; must be given"),
        ('magnetic_field model="WMM2025" date="soon"', "magnetic_field date>: soon; must be a finite number"),
        (
            'magnetic_field model="WMM2025" date="2019"',
            "magnetic_field> date of WMM2025 (decimal year): 2019.0; must be",
        ),
        (
            'magnetic_field model="IGRF" date="2027"',
            "magnetic_field> magnetic model: IGRF; must be one of WMM2020, WMM2025",
        ),
        ('magnetic_field model="WMM2025" date="2027" height="1"', "magnetic_field height>; is not allowed here"),
        ("gravity", "gravity model>: missing; must be given"),
        ('gravity model="EGM96"', "gravity model>: EGM96; must be WGS84"),
    ],
)
def test_invalid_models_are_reported(
    list_problems: ListProblems, wrap_in_world: Text, element: str, problem: str
) -> None:
    assert list_problems(wrap_in_world(f"{PLACE}<navsense:{element}/>"))[0].startswith(
        f"dive.sdf:4: <navsense:{problem}"
    )


@pytest.mark.parametrize("element", ['magnetic_field model="WMM2025" date="2027"', 'gravity model="WGS84"'])
def test_models_need_coordinates(list_problems: ListProblems, wrap_in_world: Text, element: str) -> None:
    (line,) = list_problems(wrap_in_world(f"<navsense:{element}/>"))
    assert "needs the place on earth; give the world <spherical_coordinates> with latitude_deg" in line


# dipoles


@pytest.mark.requirement("MAG-7")
def test_dipoles_are_read(load: Load, wrap_in_world: Text) -> None:
    """The moment is along the axes of its pose, in a frame of the world."""
    frame = '<frame name="wreck"><pose>10 0 -5 0 0 1.5707963267948966</pose></frame>'
    inside = '<pose relative_to="wreck">2 0 0 0 0 0</pose><moment>7 0 0</moment>'
    moved = f'<navsense:dipole radius="0.3">{inside}</navsense:dipole>'
    plain = "<navsense:dipole><moment>0 0 5</moment></navsense:dipole>"
    field = "<magnetic_field>1e-5 0 0</magnetic_field>"
    found = load(wrap_in_world(frame + moved + plain + field)).environment.magnetic_field
    assert isinstance(found, FieldSum)
    uniform, first, second = found.fields
    assert uniform == UniformField((1e-5, 0.0, 0.0))
    assert isinstance(first, Dipole)
    assert first.position_w == pytest.approx((10.0, 2.0, -5.0), abs=1e-14)
    assert first.moment_w == pytest.approx((0.0, 7.0, 0.0), abs=1e-14)
    assert first.radius == 0.3
    assert second == Dipole((0.0, 0.0, 0.0), (0.0, 0.0, 5.0))


@pytest.mark.requirement("MAG-7")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (">", "<navsense:dipole><moment>: missing; must be given (A m^2)"),
        ("><moment>1 2</moment>", "<navsense:dipole><moment>: 1 2; must be 3 finite numbers"),
        ("><moment>1 2 1e300</moment>", "<navsense:dipole> moment_w of a dipole: (1.0, 2.0, 1e+300); must be three"),
        (' radius="0"><moment>1 2 3</moment>', "<navsense:dipole radius>: 0; must be a finite number > 0"),
        (
            '><pose relative_to="x"/><moment>1 2 3</moment>',
            "<pose relative_to>: x; must name a link, joint, frame or model",
        ),
        ("><moment>1 2 3</moment><charge/>", "<navsense:dipole><charge>; is not allowed here"),
    ],
)
def test_invalid_dipoles_are_reported(
    list_problems: ListProblems, wrap_in_world: Text, content: str, problem: str
) -> None:
    assert list_problems(wrap_in_world(f"<navsense:dipole{content}</navsense:dipole>"))[0].startswith(
        f"dive.sdf:3: {problem}"
    )


# air


@pytest.mark.requirement("SDF-1", "PRS-1")
def test_atmosphere_is_read(load: Load, wrap_in_world: Text) -> None:
    inside = (
        "<temperature>300</temperature><pressure>100000</pressure><temperature_gradient>-0.005</temperature_gradient>"
    )
    found = load(wrap_in_world(f'<atmosphere type="adiabatic">{inside}</atmosphere>'))
    assert found.environment.atmosphere == Atmosphere(300.0, 100000.0, -0.005)
    assert not found.notes
    assert load(wrap_in_world('<atmosphere type="adiabatic"/>')).environment.atmosphere == Atmosphere()


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<atmosphere/>", "<atmosphere type>: missing; must be given"),
        ('<atmosphere type="isothermal"/>', "<atmosphere type>: isothermal; must be adiabatic"),
        (
            '<atmosphere type="adiabatic"><pressure>0</pressure></atmosphere>',
            "<atmosphere> pressure of the atmosphere (Pa)",
        ),
        (
            '<atmosphere type="adiabatic"><temperature>hot</temperature></atmosphere>',
            "<atmosphere><temperature>: hot; must",
        ),
    ],
)
def test_invalid_atmosphere_is_an_error_if_a_sensor_uses_it(
    load: Load, list_problems: ListProblems, wrap_in_world: Text, text: str, problem: str
) -> None:
    def add_sensor(kind: str) -> str:
        return wrap_in_world(f'{text}<model name="m"><link name="l"><sensor name="s" type="{kind}"/></link></model>')

    assert list_problems(add_sensor("air_pressure"))[0].startswith(f"dive.sdf:3: {problem}")
    world = load(add_sensor("magnetometer"))
    (note,) = world.notes
    assert note.kind == "warning"
    assert f"{note.what}; {note.reason}".startswith(problem.partition(" of the atm")[0])
    assert note.reason.endswith("no sensor measures the pressure of the air")
    assert world.environment.atmosphere == Atmosphere()


# signals


@pytest.mark.requirement("SDF-1")
def test_signals_are_read(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    (tmp_path / "sea.csv").write_text("time,value\n0,290\n10,280\n", encoding="utf-8")
    points = '<point time="0">1</point><point time="5">2</point><point time="5">-3</point>'
    text = (
        '<navsense:signal name="current">3.5</navsense:signal>'
        '<navsense:signal name="sea" file="sea.csv"/>'
        f'<navsense:signal name="load">{points}</navsense:signal>'
    )
    assert load(wrap_in_world(text)).environment.signals == {
        "current": Signal.constant(3.5),
        "sea": Signal((0.0, 10.0), (290.0, 280.0)),
        "load": Signal((0.0, 5.0, 5.0), (1.0, 2.0, -3.0)),
    }


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ('name="a"></navsense:signal>', "<navsense:signal>: a; must have exactly one of: a number, points, file=..."),
        ('name="a">1<point time="0">1</point></navsense:signal>', "<navsense:signal>: a; must have exactly one of:"),
        ('name="a" file="x.csv">1</navsense:signal>', "<navsense:signal>: a; must have exactly one of:"),
        ('name="a" file="x.csv"/>', "<navsense:signal> "),
        ('name="a" file=""/>', "<navsense:signal file>: empty; must name a file of time,value"),
        ('name="a">much</navsense:signal>', "<navsense:signal>: much; must be a finite number"),
        (">1</navsense:signal>", "<navsense:signal name>: missing; must be given"),
        ('name="a"><point>1</point></navsense:signal>', "<point time>: missing; must be given"),
        (
            'name="a"><point time="0">x</point></navsense:signal>',
            "<navsense:signal><point>: x; must be a finite number",
        ),
        (
            'name="a"><point time="1">1</point><point time="0">1</point></navsense:signal>',
            "<navsense:signal> signal time of row 1 (s): 0.0; must not be before 1.0 s",
        ),
        (
            'name="b">1</navsense:signal>',
            "<navsense:signal name>: b; must be unique among the signals of a world; first",
        ),
    ],
)
def test_invalid_signals_are_reported(
    list_problems: ListProblems, wrap_in_world: Text, element: str, problem: str
) -> None:
    text = wrap_in_world(f'<navsense:signal name="b">1</navsense:signal>\n<navsense:signal {element}')
    assert list_problems(text)[0].startswith(f"dive.sdf:4: {problem}")


def test_signal_file_error_has_its_line(list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("time,value\n0,1\n1,x\n", encoding="utf-8")
    (line,) = list_problems(wrap_in_world('<navsense:signal name="a" file="bad.csv"/>'))
    assert line.startswith("dive.sdf:3: <navsense:signal> bad.csv:3: value: x; must be a finite number")


@pytest.mark.requirement("MAG-4")
def test_magnetometer_measures_the_earth_field(tmp_path: Path) -> None:
    """The reading is the field of the model at the position, rotated into the sensor frame."""
    sensor = '<sensor name="mag" type="magnetometer"><update_rate>10</update_rate></sensor>'
    model = f'<model name="m"><pose>0 0 0 0 0 0.3</pose><link name="l">{sensor}</link></model>'
    element = '<navsense:magnetic_field model="WMM2025" date="2027.0"/>'
    path = tmp_path / "here.sdf"
    path.write_text(f'<sdf version="1.12"><world name="w">{PLACE}{element}{model}</world></sdf>', encoding="utf-8")
    world = sdf.load(path)
    reading = ns.simulate(world, duration=0.5, seed=1)["m::l::mag"]
    (expected,) = WorldMagneticModel(ORIGIN, 2027.0).at(np.zeros((1, 3)), np.zeros(1))
    c, s = math.cos(0.3), math.sin(0.3)
    turned = (c * expected[0] + s * expected[1], c * expected[1] - s * expected[0], expected[2])
    np.testing.assert_allclose(reading["field"], np.broadcast_to(turned, reading["field"].shape), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(
    ("content", "warned"),
    [
        ("", ["gravity", "magnetic_field"]),
        ("<gravity>0 0 -9.8</gravity>", ["magnetic_field"]),
        ("<magnetic_field>5.5645e-6 22.8758e-6 -42.3884e-6</magnetic_field>", ["gravity"]),
        ('<navsense:gravity model="WGS84"/><navsense:magnetic_field model="WMM2025" date="2026.5"/>', []),
    ],
)
def test_default_fields_at_known_coordinates_warn(
    load: Load, wrap_in_world: Text, content: str, warned: list[str]
) -> None:
    """A field in the file causes no warning, even if it equals SDF's default."""
    notes = [note for note in load(wrap_in_world(PLACE + content)).notes if "SDF's default" in note.reason]
    assert [note.what for note in notes] == [f"<world><{tag}>" for tag in warned]
    assert {note.kind for note in notes} <= {"warning"}
    for note, tag in zip(notes, warned, strict=True):
        assert f"add <navsense:{tag} model=" in note.reason


def test_default_fields_of_a_world_without_coordinates_do_not_warn(load: Load, wrap_in_world: Text) -> None:
    assert not load(wrap_in_world("")).notes

"""`<navsense:water>` and `<sensor type="depth">`: the file determines the water and the spec."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense import sdf
from navsense.description import describe
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.environment.water import Water
from navsense.noise.specification import Noise
from navsense.sensors import Camera, Depth
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

PLACE = (
    "<spherical_coordinates><latitude_deg>36.8</latitude_deg><longitude_deg>0</longitude_deg></spherical_coordinates>"
    "<gravity>0 0 -9.8</gravity><magnetic_field>5.5645e-6 22.8758e-6 -42.3884e-6</magnetic_field>"
)
HERE = math.radians(36.8)


def make_sensor(body: str) -> str:
    return f'<sensor name="d" type="depth"><depth>\n{body}</depth></sensor>'


# the water


@pytest.mark.requirement("PRS-1", "SDF-1")
def test_water_is_read(load: Load, wrap_in_world: Text) -> None:
    assert load(wrap_in_world("")).environment.water is None
    assert load(wrap_in_world("<navsense:water/>")).environment.water == Water()
    inside = (
        "<temperature>290</temperature><salinity>12</salinity><density>1008</density><sound_speed>1480</sound_speed>"
    )
    found = load(wrap_in_world(f'<navsense:water surface="2.5" latitude_deg="10">{inside}</navsense:water>'))
    expected = Water(2.5, math.radians(10.0), (0.0,), (290.0,), (12.0,), 1008.0, 1480.0)
    assert found.environment.water == expected
    assert not found.notes
    named = load(wrap_in_world("<navsense:water><sound_speed>mackenzie</sound_speed></navsense:water>"))
    assert named.environment.water == Water(sound_speed="mackenzie")
    assert load(wrap_in_world(f"{PLACE}<navsense:water/>")).environment.water == Water(latitude=HERE)


@pytest.mark.requirement("PRS-1", "SDF-1")
def test_water_profile_is_read(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    points = '<point depth="0" temperature="290" salinity="33"/><point depth="50" temperature="280" salinity="35"/>'
    expected = Water(depths=(0.0, 50.0), temperatures=(290.0, 280.0), salinities=(33.0, 35.0))
    assert load(wrap_in_world(f"<navsense:water>{points}</navsense:water>")).environment.water == expected
    (tmp_path / "cast.csv").write_text("depth,temperature,salinity\n0,290,33\n50,280,35\n", encoding="utf-8")
    assert load(wrap_in_world('<navsense:water file="cast.csv"/>')).environment.water == expected


@pytest.mark.requirement("PRS-1", "SDF-1")
@pytest.mark.parametrize(
    ("element", "problem"),
    [
        (' surface="high"/>', "<navsense:water surface>: high; must be a finite number"),
        (' depth="5"/>', "<navsense:water depth>; is not allowed here"),
        (' latitude_deg="91"/>', "<navsense:water> latitude of the water (rad): 1.58"),
        (
            "><temperature>10</temperature></navsense:water>",
            "<navsense:water> temperature (K): 10.0; must",
        ),
        ("><salt>35</salt></navsense:water>", "<navsense:water><salt>; is not allowed here"),
        ("><density>x</density></navsense:water>", "<navsense:water><density>: x; must be a finite number"),
        ("><sound_speed>fast</sound_speed></navsense:water>", "<navsense:water> formula for the speed of sound: fast"),
        ('><point depth="0" temperature="290"/></navsense:water>', "<point salinity>: missing; must be given"),
        (
            '><point depth="0" temperature="290" salinity="35"/><salinity>3</salinity></navsense:water>',
            "<navsense:water><salinity>: 3; must not be combined with a profile",
        ),
        (
            ' file="a.csv"><point depth="0" temperature="290" salinity="35"/></navsense:water>',
            "<navsense:water><point>: with a file; must not be combined with file=...",
        ),
        (' file=""/>', "<navsense:water file>: empty; must name a file"),
        (' file="none.csv"/>', "<navsense:water> none.csv: profile of the water: does not exist"),
        ('/><navsense:water surface="1"/>', "<world><navsense:water>: given twice; first on line 3"),
    ],
)
def test_invalid_water(list_problems: ListProblems, wrap_in_world: Text, element: str, problem: str) -> None:
    (line,) = list_problems(wrap_in_world(f"<navsense:water{element}"))
    assert line.startswith(f"dive.sdf:3: {problem}")


def test_invalid_density_is_one_problem(list_problems: ListProblems, wrap_in_world: Text) -> None:
    water = "<navsense:water><density>x</density><sound_speed>fast</sound_speed></navsense:water>"
    depth = make_sensor("<formula>known</formula>")
    lines = list_problems(wrap_in_world(f'{water}<model name="m"><link name="l">{depth}</link></model>'))
    assert lines == ["dive.sdf:3: <navsense:water><density>: x; must be a finite number"]


# the sensor


@pytest.mark.requirement("ALT-8", "PRS-1")
def test_every_element_is_read(load: Load, wrap_in_link: Text) -> None:
    noise = '<pressure><noise type="gaussian"><stddev>30</stddev></noise></pressure>'
    body = f"{noise}<gauge>true</gauge><surface_pressure>99000</surface_pressure>"
    (found,) = load(wrap_in_link(make_sensor(body))).sensors
    assert found.spec == Depth(Noise(stddev=30.0), Unesco(), 99000.0, gauge=True)
    assert found.topic.endswith("/sensor/d/depth")
    (found,) = load(wrap_in_link(make_sensor(noise)), fidelity="classic").sensors
    assert found.spec == Depth(Noise(stddev=30.0, classic=True))
    for kind in ('type="depth"', 'type="custom" gz:type="depth"'):
        (found,) = load(wrap_in_link(f'<sensor name="d" {kind}/>')).sensors
        assert found.spec == Depth()


@pytest.mark.requirement("ALT-8", "PRS-1")
@pytest.mark.parametrize(
    ("formula", "assumed"),
    [
        ("<formula>unesco</formula>", Unesco(HERE)),
        ('<formula latitude_deg="-12">unesco</formula>', Unesco(math.radians(-12.0))),
        ("<formula>saunders</formula>", Saunders(HERE)),
        ('<formula density="1025">constant</formula>', ConstantDensity(1025.0)),
        ('<formula density="1025" gravity="9.81">constant</formula>', ConstantDensity(1025.0, 9.81)),
        ("<formula>known</formula>", None),
        ("", Unesco(HERE)),
    ],
)
def test_default_assumptions(load: Load, wrap_in_link: Text, formula: str, assumed: object) -> None:
    text = wrap_in_link(make_sensor(formula)).replace(
        '<world name="ocean">', f'<world name="ocean">{PLACE}<navsense:water/>'
    )
    world = load(text)
    assert world.sensors[0].spec == Depth(assumed=assumed)  # type: ignore[arg-type]  # one of those above
    assert not world.notes


@pytest.mark.requirement("ALT-8")
def test_missing_water_is_reported(load: Load, list_problems: ListProblems, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(make_sensor('<formula density="1000">constant</formula>')))
    (note,) = world.notes
    assert (note.kind, note.what) == ("warning", '<sensor type="depth">: auv::base::d')
    assert "with the surface at height 0" in note.reason
    assert ns.simulate(world, 1.0)["auv::base::d"]["depth"][0] == 0.0
    (line,) = list_problems(wrap_in_link(make_sensor("<formula>known</formula>")))
    assert line.endswith(
        "<formula>: known: auv::base::d; requires the world's <navsense:water>; give <navsense:water/> in the world"
    )


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<formula>leroy</formula>", "<depth><formula>: leroy; must be one of unesco, saunders, constant, known"),
        ("<formula/>", "<depth><formula>: empty; must be one of"),
        ("<formula>constant</formula>", "<formula density>: missing; must be given (kg/m^3)"),
        (
            '<formula density="0">constant</formula>',
            "<formula> density of the formula (kg/m^3): 0.0; must be a number from 0.001",
        ),
        ('<formula density="1000">unesco</formula>', "<formula density>; is not allowed here"),
        ('<formula latitude_deg="95">saunders</formula>', "<formula> latitude of the formula (rad): 1.658"),
        ('<formula latitude_deg="x">saunders</formula>', "<formula latitude_deg>: x; must be a finite number"),
        ("<surface_pressure>-1</surface_pressure>", "<depth><surface_pressure>: -1; must be >= 0"),
        (
            '<formula density="1e-300" gravity="1e-300">constant</formula>',
            "<formula> density of the formula (kg/m^3): 1e-300; must be a number from 0.001",
        ),
        (
            '<formula density="1000" gravity="1e-300">constant</formula>',
            "<formula> gravity of the formula (m/s^2): 1e-300; must be a number from 0.001",
        ),
        ("<gauge>maybe</gauge>", "<depth><gauge>: maybe; must be true, false, 1 or 0"),
        ("<presure/>", "<depth><presure>; is not allowed here; did you mean pressure?"),
    ],
)
def test_invalid_elements_are_reported(
    list_problems: ListProblems, wrap_in_link: Text, body: str, problem: str
) -> None:
    assert list_problems(wrap_in_link(make_sensor(body)))[0].startswith(f"dive.sdf:6: {problem}")


def test_specification_error_has_its_location(list_problems: ListProblems, wrap_in_link: Text) -> None:
    (line,) = list_problems(wrap_in_link(make_sensor("<surface_pressure>1e300</surface_pressure>")))
    assert line.startswith(
        "dive.sdf:6: <surface_pressure> surface_pressure (Pa): 1e+300; must be a finite number of absolute value"
    )


@pytest.mark.requirement("SDF-1", "CLK-11")
def test_depth_camera_is_not_a_depth_sensor(load: Load, wrap_in_link: Text) -> None:
    """Gazebo's older name of the depth camera is the type of this sensor."""
    world = load(wrap_in_link('<sensor name="eye" type="depth"><camera><image/></camera></sensor>'))
    assert isinstance(world.sensor("eye").spec, Camera)
    assert not world.notes


@pytest.mark.requirement("PRS-1", "ALT-8")
def test_reading_of_a_world_file(tmp_path: Path) -> None:
    """The tank has its surface at 3 m, and the sensor is 1 m above the floor with the declared density."""
    formula = '<formula density="998" gravity="9.8062">constant</formula>'
    body = f'<sensor name="d" type="depth"><update_rate>10</update_rate><depth>{formula}</depth></sensor>'
    tank = '<navsense:water surface="3" latitude_deg="45"><density>998</density></navsense:water>'
    model = f'<model name="m"><pose>0 0 1 0 0 0</pose><link name="l">{body}</link></model>'
    path = tmp_path / "tank.sdf"
    path.write_text(f'<sdf version="1.12"><world name="w">{tank}{model}</world></sdf>', encoding="utf-8")
    world = sdf.load(path)
    reading = ns.simulate(world, duration=0.5, seed=1)["m::l::d"]
    gravity = 9.780318 * (1.0 + 5.2788e-3 * 0.5 + 2.36e-5 * 0.25)
    (air,) = world.environment.atmosphere.pressure_at(np.array([3.0]))
    np.testing.assert_allclose(reading["pressure"], air + 2.0 * 998.0 * gravity, rtol=1e-13, atol=0.0)
    off = (air - 101325.0) / (998.0 * 9.8062)
    np.testing.assert_allclose(reading["depth"], off + 2.0 * gravity / 9.8062, rtol=1e-9, atol=0.0)
    text = "\n".join(describe(world))
    assert "water: surface at 3 m, 283.15 K and salinity 35 at 0 m (1 point), density 998 kg/m^3" in text
    assert "depth: by a density of 998 kg/m^3 and a gravity of 9.8062 m/s^2, with 101325 Pa at the surface" in text


@pytest.mark.parametrize(
    ("sheet", "lines"),
    [
        (Depth(), ("depth: by the UNESCO formula for latitude 45 deg, with 101325 Pa at the surface",)),
        (
            Depth(assumed=Saunders(math.radians(-12.5)), surface_pressure=99000.0, gauge=True),
            (
                "depth: by the Saunders formula for latitude -12.5 deg, with 99000 Pa at the surface",
                "pressure: gauge, relative to 99000 Pa",
            ),
        ),
        (Depth(assumed=None), ("depth: by the water of the world",)),
    ],
)
def test_depth_sensor_is_described(sheet: Depth, lines: tuple[str, ...]) -> None:
    assert sheet.describe(10.0) == lines


# the plug-in of the UUV Simulator

PLUGIN = "libuuv_gazebo_ros_subsea_pressure_plugin.so"

MACRO = f"""<plugin filename="{PLUGIN}" name="libuuv_gazebo_subseapressure_plugin">
<robot_namespace>auv</robot_namespace>
<link_name>auv/pressure_link</link_name>
<sensor_topic>pressure</sensor_topic>
<update_rate>10</update_rate>
<saturation>30000</saturation>
<noise_stddev>3.0</noise_stddev>
<estimate_depth_on>false</estimate_depth_on>
<standard_pressure>101.325</standard_pressure>
<kPa_per_meter>9.80638</kPa_per_meter>
<enable_gazebo_messages>false</enable_gazebo_messages>
</plugin>"""
"""Expansion of the macro `default_pressure` of the UUV Simulator's `pressure_snippets.xacro`, first version."""

LATER = MACRO.replace(
    "<noise_stddev>3.0</noise_stddev>",
    "<noise_sigma>3.0</noise_sigma>\n<noise_amplitude>0.0</noise_amplitude>",
)
"""Expansion of its last version."""


def make_plugin_world(plugin: str, water: str = "") -> str:
    link = '<link name="auv/pressure_link"><pose>0 0 0.2 0 0 0</pose></link>'
    model = f'<model name="auv"><pose>0 0 -20.2 0 0 0</pose><link name="base"/>{link}\n{plugin}\n</model>'
    return f'<sdf version="1.6">\n<world name="ocean">{water}\n{model}\n</world></sdf>'


@pytest.mark.requirement("ALT-8", "PRS-1", "SDF-2")
def test_uuv_simulator_pressure_sensor_is_read(load: Load) -> None:
    world = load(make_plugin_world(MACRO))
    (found,) = world.sensors
    assert found.spec == Depth(Noise(stddev=3000.0, maximum=30e6), ConstantDensity(9.80638 * 1000.0 / 9.80665))
    assert (found.name, found.link) == (
        "auv::auv/pressure_link::libuuv_gazebo_subseapressure_plugin",
        "auv::auv/pressure_link",
    )
    assert (found.rate, found.topic, found.frame) == (10.0, "/auv/pressure", "auv/pressure_link")
    notes = {(note.kind, note.reason) for note in world.notes}
    assert ("warning", "readings are in Pa; the plug-in writes kPa") in notes
    assert ("unsupported", "the depth is always published") in notes
    assert not any("not run" in reason for _, reason in notes)
    truth = ns.simulate(world, 1.0, seed=1)[found.name].ideal
    np.testing.assert_allclose(truth["pressure"], 1000.0 * (101.325 + 20.0 * 9.80638), rtol=1e-14, atol=0.0)
    np.testing.assert_allclose(truth["depth"], 20.0, rtol=1e-14, atol=0.0)


@pytest.mark.requirement("ALT-8", "SDF-2")
def test_sigma_and_amplitude_are_multiplied(load: Load) -> None:
    """The unmodified macro gives the plug-in no noise, and a warning."""
    world = load(make_plugin_world(LATER))
    assert world.sensors[0].spec == Depth(Noise(maximum=30e6), ConstantDensity(9.80638 * 1000.0 / 9.80665))
    (note,) = (note for note in world.notes if "amplitude" in note.reason)
    assert (note.kind, note.what) == ("warning", "<plugin><noise_sigma>: 3.0")
    world = load(make_plugin_world(LATER.replace(">0.0<", ">0.5<")))
    spec = world.sensors[0].spec
    assert isinstance(spec, Depth)
    assert spec.pressure.stddev == 1500.0
    assert not any("amplitude" in note.reason for note in world.notes)


@pytest.mark.requirement("ALT-8", "SDF-2")
def test_plugin_defaults_and_a_world_with_water(load: Load) -> None:
    short = f'<plugin filename="{PLUGIN}" name="p"><link_name>base</link_name></plugin>'
    world = load(make_plugin_world(short, "<navsense:water/>"))
    (found,) = world.sensors
    assert found.spec == Depth(assumed=ConstantDensity(9.80638 * 1000.0 / 9.80665))
    assert found.rate == 30.0
    assert found.topic == "/world/ocean/model/auv/link/base/sensor/p/depth"
    assert [note.reason for note in world.notes] == ["readings are in Pa; the plug-in writes kPa"]
    truth = ns.simulate(world, 0.1)[found.name].ideal
    np.testing.assert_allclose(
        truth["pressure"], 101325.0 + Water().pressure_at(np.array([20.2]))[0], rtol=1e-14, atol=0.0
    )
    (old,) = load(make_plugin_world(MACRO), fidelity="classic").sensors
    assert old.spec == Depth(Noise(stddev=3000.0, classic=True), ConstantDensity(9.80638 * 1000.0 / 9.80665))


@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize(
    ("change", "line", "problem"),
    [
        (("<link_name>auv/pressure_link</link_name>", ""), 4, "<plugin><link_name>: missing; must be given"),
        (
            ("<link_name>auv/pressure_link<", "<link_name>keel<"),
            6,
            "<plugin><link_name>: keel; must be one of base, auv",
        ),
        ((">3.0<", ">-3<"), 10, "<plugin><noise_stddev>: -3; must be >= 0"),
        ((">9.80638<", ">0<"), 13, "<plugin><kPa_per_meter>: 0; must be > 0"),
        ((">9.80638<", ">1000<"), 4, "<plugin> density of the formula (kg/m^3): 101971"),
        ((">10<", ">1e9<"), 8, "<plugin><update_rate>: 1e+09 Hz; must be from 0.001 to 10000000 Hz"),
        (("saturation>", "saturated>"), 9, "<plugin><saturated>; is not allowed here; did you mean saturation?"),
    ],
)
def test_invalid_plugins_are_reported(
    list_problems: ListProblems, change: tuple[str, str], line: int, problem: str
) -> None:
    assert list_problems(make_plugin_world(MACRO.replace(*change)))[0].startswith(f"dive.sdf:{line}: {problem}")


@pytest.mark.requirement("SDF-2")
def test_two_plugins_on_one_topic(list_problems: ListProblems) -> None:
    (line,) = list_problems(make_plugin_world(MACRO + MACRO.replace("seapressure_plugin", "seapressure2_plugin")))
    sensor = "auv::auv/pressure_link::libuuv_gazebo_subseapressure_plugin"
    assert line.endswith(f"is already the topic of {sensor}; give another <sensor_topic>")


def test_topic_of_a_plugin_on_a_nested_link_contains_all_models(tmp_path: Path) -> None:
    path = tmp_path / "w.sdf"
    path.write_text(
        '<sdf version="1.9"><world name="w"><model name="a"><link name="base"/><model name="b"><link name="tube"/>'
        f'</model><plugin name="p" filename="{PLUGIN}"><link_name>b::tube</link_name></plugin></model></world></sdf>'
    )
    (sensor,) = ns.load(path).sensors
    assert sensor.name == "a::b::tube::p"
    assert sensor.topic == "/world/w/model/a/model/b/link/tube/sensor/p/depth"

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense import sdf
from navsense.core.pose import conjugate, from_rpy, multiply
from navsense.core.typing import Quaternion
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sdf.parse.imu import ENU_ROTATIONS
from navsense.sensors import Imu, Magnetometer, Vibration
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

HALF = math.sqrt(0.5)


def make_imu(body: str, extra: str = "") -> str:
    return f'<sensor name="imu" type="imu">{extra}<imu>\n{body}</imu></sensor>'


def make_reference(localization: str, custom: str = "") -> str:
    return make_imu(
        f"<orientation_reference_frame><localization>{localization}</localization>{custom}</orientation_reference_frame>"
    )


def get_spec(world: World) -> Imu:
    (sensor,) = world.sensors
    assert isinstance(sensor.spec, Imu)
    return sensor.spec


def is_same_rotation(q: Quaternion | None, p: tuple[float, ...], tolerance: float = 1e-12) -> bool:
    return q is not None and abs(abs(float(np.dot(q, p))) - 1.0) < tolerance


@pytest.mark.requirement("IMU-1")
def test_every_axis_has_separate_noise(load: Load, wrap_in_link: Text) -> None:
    def make_block(tag: str, start: int) -> str:
        axes = (f'<{a}><noise type="gaussian"><stddev>{start + i}</stddev></noise></{a}>' for i, a in enumerate("xyz"))
        return f"<{tag}>{''.join(axes)}</{tag}>"

    spec = get_spec(
        load(wrap_in_link(make_imu(make_block("angular_velocity", 1) + make_block("linear_acceleration", 4))))
    )
    names = [f"{tag}_{axis}" for tag in ("angular_velocity", "linear_acceleration") for axis in "xyz"]
    assert [getattr(spec, name) for name in names] == [Noise(stddev=float(i)) for i in range(1, 7)]
    assert spec.orientation
    assert spec.reference is None


def test_sensor_without_a_block_has_defaults(load: Load, wrap_in_link: Text) -> None:
    assert get_spec(load(wrap_in_link('<sensor name="imu" type="imu"/>'))) == Imu()


def test_noise_of_some_axes(load: Load, wrap_in_link: Text) -> None:
    text = '<angular_velocity><y><noise type="gaussian"><mean>1</mean></noise></y><z/></angular_velocity>'
    spec = get_spec(load(wrap_in_link(make_imu(text))))
    assert (spec.angular_velocity_x, spec.angular_velocity_y) == (NO_NOISE, Noise(mean=1.0))


@pytest.mark.parametrize(("text", "expected"), [("false", False), ("0", False), ("TRUE", True), ("1", True)])
def test_enable_orientation_is_read(load: Load, wrap_in_link: Text, text: str, expected: bool) -> None:
    world = load(wrap_in_link(make_imu(f"<enable_orientation>{text}</enable_orientation>")))
    assert get_spec(world).orientation is expected


def test_invalid_elements_are_reported(list_problems: ListProblems, wrap_in_link: Text) -> None:
    for body, problem in (
        ("<enable_orientation>no</enable_orientation>", "<imu><enable_orientation>: no; must be true, false, 1 or 0"),
        ('<noise type="gaussian"/>', '<noise type="gaussian"> in <imu>; moved to each axis in SDF 1.6:'),
        ("<angular_velocity><w/></angular_velocity>", "<angular_velocity><w>; is not allowed here"),
        ("<linear_acceleration><x><mean>1</mean></x></linear_acceleration>", "<x><mean>; is not allowed here"),
        ("<angular_velocty/>", "<imu><angular_velocty>; is not allowed here; did you mean angular_velocity?"),
    ):
        assert list_problems(wrap_in_link(make_imu(body)))[0].startswith(f"dive.sdf:6: {problem}")


@pytest.mark.parametrize("text", ["GRAV_UP", "GRAV_DOWN", "enu", "XYZ", ""])
def test_invalid_localizations(list_problems: ListProblems, wrap_in_link: Text, text: str) -> None:
    (line,) = list_problems(wrap_in_link(make_reference(text)))
    assert line.startswith("dive.sdf:6: <orientation_reference_frame><localization>")
    assert "must be one of CUSTOM, ENU, NED, NWU" in line
    assert ("is not supported," in line) == text.startswith("GRAV")


@pytest.mark.requirement("IMU-1")
@pytest.mark.parametrize(
    ("localization", "heading", "axes"),
    [
        ("ENU", 0.0, "east north up"),
        ("NED", 0.0, "north east down"),
        ("NWU", 0.0, "north west up"),
        ("ENU", 30.0, "east north up"),
        ("NED", 30.0, "north east down"),
        ("NWU", -100.0, "north west up"),
    ],
)
def test_reference_axes_equal_their_names(
    load: Load, wrap_in_world: Text, localization: str, heading: float, axes: str
) -> None:
    """The columns of the rotation are the axes of the reference in the world, from their names.

    `heading` is the angle of the world's x axis from east to north, so in the world east is rotated clockwise.
    """
    h = math.radians(heading)
    east, north, up = (
        np.array([math.cos(h), -math.sin(h), 0]),
        np.array([math.sin(h), math.cos(h), 0]),
        np.array([0, 0, 1]),
    )
    direction = {"east": east, "north": north, "up": up, "west": -east, "down": -up}
    world = load(
        wrap_in_world(
            f"<spherical_coordinates><heading_deg>{heading}</heading_deg></spherical_coordinates>"
            f'<model name="m"><link name="l">{make_reference(localization)}</link></model>'
        )
    )
    q = get_spec(world).reference
    assert q is not None
    w, x, y, z = q
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    np.testing.assert_allclose(rotation.T, [direction[name] for name in axes.split()], atol=1e-12, rtol=0.0)
    assert world.environment.heading == pytest.approx(h, rel=1e-12, abs=0.0)


def test_custom_reference_in_the_world_frame(load: Load, wrap_in_link: Text) -> None:
    text = make_reference("CUSTOM", f'<custom_rpy parent_frame="world">{math.pi / 2} 0 0</custom_rpy>')
    assert is_same_rotation(get_spec(load(wrap_in_link(text))).reference, (HALF, HALF, 0.0, 0.0))


def test_custom_reference_in_the_sensor_frame(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    def text(rpy: str, motion: str = "") -> str:
        sensor = make_reference("CUSTOM", f"<custom_rpy>{rpy}</custom_rpy>").replace(
            "<imu>", "<pose>0 0 0 1 0 0</pose><imu>"
        )
        link = f'<link name="l"><pose>0 0 0 0 0 {math.pi / 2}</pose>{sensor}</link>'
        return wrap_in_world(f'<model name="m"><pose>5 5 5 0 0 {math.pi / 2}</pose>{motion}{link}</model>')

    assert get_spec(load(text("0 0 0"))).reference is None
    world = load(text(f"{-1.0} 0 0"))
    assert is_same_rotation(get_spec(world).reference, (0.0, 0.0, 0.0, 1.0))  # the roll of the sensor is compensated
    assert any("custom_rpy" in note.what for note in world.notes)
    motion = (
        '<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>'
        '<navsense:waypoint time="1">1 0 0 0 0 0</navsense:waypoint></navsense:motion>'
    )
    assert get_spec(load(text("0 0 0", motion))).reference is None
    (line,) = list_problems(text("0 0 1", motion))
    assert "navsense:motion" in line


def test_invalid_custom_reference_frame_is_an_error(list_problems: ListProblems, wrap_in_link: Text) -> None:
    (line,) = list_problems(wrap_in_link(make_reference("CUSTOM", '<custom_rpy parent_frame="bow">0 0 0</custom_rpy>')))
    assert line.startswith('dive.sdf:6: <custom_rpy parent_frame>: bow; must be "world", a link')
    (line,) = list_problems(wrap_in_link(make_reference("CUSTOM", '<custom_rpy parent_frame="world">0 0</custom_rpy>')))
    assert "must be 3 finite numbers" in line


def test_elements_that_act_with_another_localization(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(make_reference("NED", "<custom_rpy>1 0 0</custom_rpy><grav_dir_x>1 0 0</grav_dir_x>")))
    assert sorted(note.kind for note in world.notes) == ["unsupported", "warning"]


@pytest.mark.requirement("IMU-1")
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            "imu_named_frame.sdf",
            {"ENU": (0, 0, 1, 0), "NED": (-HALF, HALF, 0, 0), "NWU": (0, 0, HALF, HALF), "CUSTOM": (0, HALF, HALF, 0)},
        ),
        pytest.param(
            "imu_heading_deg.sdf",
            {"ENU": (0, 0, HALF, HALF), "NED": (-1, 0, 0, 0), "NWU": (0, 0, 0, 1), "CUSTOM": (-0.5, 0.5, 0.5, 0.5)},
            marks=pytest.mark.xfail(
                strict=True,
                reason="Gazebo's IMU turns its references by +heading, its own NavSat the world by it: design note 10",
            ),
        ),
    ],
)
def test_orientations_equal_gazebo_tests(example_data: Path, file: str, expected: dict[str, tuple[float, ...]]) -> None:
    """The orientation x y z w of the resting model equals gz-sim's test of each world within its 1e-2."""
    world = sdf.load(example_data / "gz-sim" / file)
    found = {sensor.name.rpartition("_")[2]: sensor for sensor in world.sensors}
    assert isinstance(found["DEFAULT"].spec, Imu)
    assert found["DEFAULT"].spec.reference is None
    rotation = world.model("imu_model").pose.rotation
    for name, (x, y, z, w) in expected.items():
        spec = found[name].spec
        assert isinstance(spec, Imu)
        assert spec.reference is not None
        orientation = multiply(conjugate(spec.reference), rotation)
        assert is_same_rotation(orientation, (w, x, y, z), 1e-4), name


@pytest.mark.requirement("IMU-1")
@pytest.mark.parametrize(
    ("localization", "world", "rpy"),
    [
        ("ENU", "ENU", (0.0, 0.0, 0.0)),
        ("ENU", "NWU", (0.0, 0.0, math.pi / 2)),
        ("ENU", "NED", (math.pi, 0.0, math.pi / 2)),
        ("NWU", "NWU", (0.0, 0.0, 0.0)),
        ("NWU", "ENU", (0.0, 0.0, -math.pi / 2)),
        ("NWU", "NED", (math.pi, 0.0, 0.0)),
        ("NED", "NED", (0.0, 0.0, 0.0)),
        ("NED", "NWU", (-math.pi, 0.0, 0.0)),
        ("NED", "ENU", (-math.pi, 0.0, math.pi / 2)),
    ],
)
def test_references_equal_the_gazebo_library(localization: str, world: str, rpy: tuple[float, float, float]) -> None:
    """gz-sensors has a table of the orientation of an unrotated sensor for all named axes."""
    found = multiply(conjugate(ENU_ROTATIONS[localization]), ENU_ROTATIONS[world])
    assert is_same_rotation(found, from_rpy(*rpy))


@pytest.mark.requirement("IMU-1")
def test_custom_reference_in_a_link_frame(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    """The reference is the initial orientation of the link, by its name in the model of the sensor or its full name."""

    def text(parent: str, motion: str = "") -> str:
        sensor = make_reference("CUSTOM", f'<custom_rpy parent_frame="{parent}">{math.pi / 2} 0 0</custom_rpy>')
        arm = f'<link name="arm"><pose>0 0 0 0 0 {math.pi / 2}</pose></link>'
        inner = '<model name="tool"><link name="tip"><pose>0 0 0 1 0 0</pose></link></model>'
        pose = f"<pose>5 5 5 0 0 {math.pi / 2}</pose>"
        return wrap_in_world(f'<model name="m">{pose}{motion}<link name="l">{sensor}</link>{arm}{inner}</model>')

    turned = multiply((0.0, 0.0, 0.0, 1.0), (HALF, HALF, 0.0, 0.0))
    for parent in ("arm", "m::arm"):
        world = load(text(parent))
        assert is_same_rotation(get_spec(world).reference, turned)
        assert any("custom_rpy" in note.what for note in world.notes)
    for parent in ("tool::tip", "m::tool::tip"):
        tip = from_rpy(1.0 + math.pi / 2, 0.0, math.pi / 2)
        assert is_same_rotation(get_spec(load(text(parent))).reference, tip)
    (line,) = list_problems(text("tip"))
    assert 'tip; must be "world", a link of the model, or absent' in line
    motion = (
        '<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>'
        '<navsense:waypoint time="1">1 0 0 0 0 0</navsense:waypoint></navsense:motion>'
    )
    (line,) = list_problems(text("arm", motion))
    assert "navsense:motion" in line


PLACE = """<spherical_coordinates><latitude_deg>47</latitude_deg><longitude_deg>8</longitude_deg>
<elevation>400</elevation></spherical_coordinates><gravity>0 0 -9.8</gravity>
<magnetic_field>5.5645e-6 22.8758e-6 -42.3884e-6</magnetic_field>"""


@pytest.mark.requirement("IMU-4", "NOI-6")
def test_navsense_elements_are_read(load: Load, wrap_in_world: Text) -> None:
    body = """<navsense:averaged>true</navsense:averaged>
<navsense:bandwidth>47.5</navsense:bandwidth>
<navsense:vibration><frequency>130</frequency><linear_acceleration>1 2 3</linear_acceleration></navsense:vibration>
<navsense:vibration><frequency>55.5</frequency><angular_velocity>.1 .2 .3</angular_velocity><phase>-1</phase>
</navsense:vibration>
<navsense:angular_velocity_misalignment>.01 .02 .03 .04 .05 .06</navsense:angular_velocity_misalignment>
<navsense:linear_acceleration_misalignment>-.01 -.02 -.03 -.04 -.05 -.06</navsense:linear_acceleration_misalignment>
<navsense:g_sensitivity>1e-4 2e-4 3e-4 4e-4 5e-4 6e-4 7e-4 8e-4 9e-4</navsense:g_sensitivity>
<navsense:earth_rotation>1</navsense:earth_rotation>"""
    world = load(wrap_in_world(f'{PLACE}<model name="m"><link name="l">{make_imu(body)}</link></model>'))
    assert not world.notes
    assert get_spec(world) == Imu(
        averaged=True,
        bandwidth=47.5,
        vibration=(
            Vibration(130.0, (1.0, 2.0, 3.0)),
            Vibration(55.5, angular_velocity=(0.1, 0.2, 0.3), phase=-1.0),
        ),
        angular_velocity_misalignment=(0.01, 0.02, 0.03, 0.04, 0.05, 0.06),
        linear_acceleration_misalignment=(-0.01, -0.02, -0.03, -0.04, -0.05, -0.06),
        g_sensitivity=(1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4, 7e-4, 8e-4, 9e-4),
        earth_rotation=True,
    )
    reading = ns.simulate(world, 0.01)["m::l::imu"]
    assert reading.emitted.tolist() == [False] + [True] * 9


@pytest.mark.requirement("IMU-4", "MAG-7")
def test_examples_of_the_page_on_worlds_can_be_loaded(load: Load, wrap_in_world: Text) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "worlds.md").read_text(encoding="utf-8")
    chapter = page.partition("## IMU, magnetometer\n")[2].partition("\n## ")[0]
    sensors = [part.partition("```")[0] for part in chapter.split("```xml")[1:]]
    assert len(sensors) == 2
    signal = '<navsense:signal name="motor_current">3</navsense:signal>'
    world = load(wrap_in_world(f'{PLACE}{signal}<model name="m"><link name="l">{"".join(sensors)}</link></model>'))
    assert not world.notes
    sheet, compass = (sensor.spec for sensor in world.sensors)
    assert isinstance(sheet, Imu)
    assert all(getattr(sheet, name) != getattr(Imu(), name) for name in OWN_FIELDS)
    assert compass != Magnetometer()


OWN_FIELDS = """averaged bandwidth vibration angular_velocity_misalignment linear_acceleration_misalignment
g_sensitivity earth_rotation""".split()


def test_invalid_navsense_elements_are_reported(list_problems: ListProblems, load: Load, wrap_in_link: Text) -> None:
    still = "<navsense:vibration><frequency>1</frequency><linear_acceleration>1 0 0</linear_acceleration>"
    for body, problem in (
        ("<navsense:averaged>yes</navsense:averaged>", "<imu><navsense:averaged>: yes; must be true"),
        ("<navsense:bandwidth>-3</navsense:bandwidth>", "<imu><navsense:bandwidth>: -3; must be >= 0"),
        ("<navsense:bandwidth>1 2</navsense:bandwidth>", "<imu><navsense:bandwidth>: 1 2; must be a finite number"),
        (
            "<navsense:bandwidth>1e300</navsense:bandwidth>",
            "<imu><navsense:bandwidth>: 1e300; must be a finite number of absolute value below",
        ),
        (
            "<navsense:angular_velocity_misalignment>0 0 0 0 0</navsense:angular_velocity_misalignment>",
            "<imu><navsense:angular_velocity_misalignment>: 0 0 0 0 0; must be 6 finite numbers of absolute value",
        ),
        (
            "<navsense:linear_acceleration_misalignment>0 0 0 0 0 1</navsense:linear_acceleration_misalignment>",
            "<imu><navsense:linear_acceleration_misalignment>: 0 0 0 0 0 1; must be 6 finite numbers of absolute value",
        ),
        ("<navsense:g_sensitivity>nan</navsense:g_sensitivity>", "<imu><navsense:g_sensitivity>: nan; must be 9"),
        ("<navsense:vibration/>", "<navsense:vibration>: missing; requires a <frequency> in Hz"),
        (f"{still}<phase>x</phase></navsense:vibration>", "<navsense:vibration><phase>: x; must be a finite number"),
        (f"{still}<amplitude/></navsense:vibration>", "<navsense:vibration><amplitude>; is not allowed here"),
        (
            f"{still.replace('1 0 0', '1e200 0 0')}</navsense:vibration>",
            "<linear_acceleration> linear_acceleration of a vibration: (1e+200, 0.0, 0.0); must be 3 finite numbers",
        ),
        (
            "<navsense:vibration><frequency>0</frequency></navsense:vibration>",
            "<navsense:vibration><frequency>: 0; must be > 0",
        ),
        (
            "<navsense:earth_rotation>true</navsense:earth_rotation>",
            "<imu><navsense:earth_rotation>: true; the world has no place on earth, which earth_rotation requires",
        ),
        ("<navsense:averages>1</navsense:averages>", "<imu><navsense:averages>; is not allowed here; did you mean"),
    ):
        (line,) = list_problems(wrap_in_link(make_imu(body)))
        assert line.startswith(f"dive.sdf:6: {problem}"), line
    assert not get_spec(
        load(wrap_in_link(make_imu("<navsense:earth_rotation>0</navsense:earth_rotation>")))
    ).earth_rotation

"""IMU, magnetometer and GPS plug-ins of the UUV Simulator: each element, both fidelities, and warnings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest

import navsense as ns
from navsense.core.pose import Pose
from navsense.environment.base import DEFAULT_MAGNETIC_FIELD, UniformField
from navsense.noise.specification import Noise
from navsense.sdf.plugins import uuv_gps, uuv_imu, uuv_magnetometer
from navsense.sensors import Imu, Magnetometer, NavSat
from navsense.world import World

Load = Callable[..., World]
Text = Callable[..., str]

IMU, MAGNETOMETER = "imu", "magnetometer"
MODULES = {IMU: uuv_imu, MAGNETOMETER: uuv_magnetometer}


def make_plugin(name: str, elements: Mapping[str, str | None] | None = None) -> str:
    """Return a model with a plug-in on its link `base`; None removes an element."""
    values = {"robot_namespace": "auv", "link_name": "base", "sensor_topic": name, **(elements or {})}
    inside = "".join(f"<{tag}>{text}</{tag}>" for tag, text in values.items() if text is not None)
    file = f"libuuv_gazebo_ros_{name}_plugin.so"
    return f'<model name="auv"><link name="base"/><plugin name="{name}" filename="{file}">{inside}</plugin></model>'


def list_warnings(world: World) -> dict[str, str]:
    return {note.what: note.reason for note in world.notes if note.kind == "warning"}


# The figures of the published macros (`imu_snippets.xacro`, ADIS16448), which differ from the defaults in the code.
FIGURES = {
    "gyroscope_noise_density": "0.0003394",
    "gyroscope_random_walk": "0.000038785",
    "gyroscope_bias_correlation_time": "1000.0",
    "gyroscope_turn_on_bias_sigma": "0.0087",
    "accelerometer_noise_density": "0.004",
    "accelerometer_random_walk": "0.006",
    "accelerometer_bias_correlation_time": "300.0",
    "accelerometer_turn_on_bias_sigma": "0.1960",
}


def make_imu_noise(name: str, factor: float = 1.0) -> Noise:
    """Return the noise of an axis with the figures, in the notation of kalibr."""
    values = {tag.removeprefix(f"{name}_"): float(text) for tag, text in FIGURES.items() if tag.startswith(name)}
    return Noise(
        noise_density=factor * values["noise_density"],
        dynamic_bias_stddev=factor * values["random_walk"],
        dynamic_bias_correlation_time=values["bias_correlation_time"],
        bias_stddev=factor * values["turn_on_bias_sigma"],
    )


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize(
    ("fidelity", "amplitude", "factor"),
    [
        ("physical", None, 1.0),
        ("physical", "1", 1.0),
        ("physical", "0.5", 0.5),
        ("physical", "0", 0.0),
        ("classic", None, 0.0),
        ("classic", "0", 0.0),
    ],
)
def test_imu_has_the_noise_of_the_figures(
    load: Load, wrap_in_world: Text, fidelity: str, amplitude: str | None, factor: float
) -> None:
    text = make_plugin(IMU, {**FIGURES, "enable_local_ned_frame": "false", "noise_amplitude": amplitude})
    world = load(wrap_in_world(text), fidelity=fidelity)
    (sensor,) = world.sensors
    classic = fidelity == "classic"
    gyroscope, accelerometer = (make_imu_noise(name, factor) for name in ("gyroscope", "accelerometer"))
    if factor == 0.0:
        gyroscope = accelerometer = Noise()
    axes = (gyroscope, gyroscope, gyroscope, accelerometer, accelerometer, accelerometer)
    assert sensor.spec == Imu(*axes, reference=(1.0, 0.0, 0.0, 0.0))
    assert (sensor.topic, sensor.frame, sensor.rate, sensor.pose) == ("/auv/imu", "base", 30.0, Pose())
    absent = "is absent: its default in the plug-in is 0, no noise; "
    expected = {
        (None, False): absent + "the figures of the plug-in are used",
        (None, True): absent + "so it is under classic",
        ("0", False): "multiplies the noise of the plug-in: the sensor has no noise",
        ("0", True): "multiplies the noise of the plug-in: the sensor has no noise",
    }
    reasons = [reason for what, reason in list_warnings(world).items() if "noise_amplitude" in what]
    assert reasons == [reason for key, reason in expected.items() if key == (amplitude, classic)]


@pytest.mark.requirement("DVU-9")
def test_noise_of_the_imu_is_that_of_the_plug_in(load: Load, wrap_in_world: Text) -> None:
    """The deviation of a sample is density / sqrt(dt); of the bias, walk sqrt(tau / 2) (Maybeck, equation 4-114).

    The step of the plug-in, in the limit of many steps: bias <- phi bias + walk sqrt(tau / 2 (1 - phi^2)) w.
    Bounds are 5 deviations of a sample deviation: false alarm 6e-7 for each of the three comparisons.
    """
    density, walk, time, turn_on = 0.004, 0.006, 5.0, 0.196
    figures = {
        "accelerometer_noise_density": str(density),
        "accelerometer_random_walk": str(walk),
        "accelerometer_bias_correlation_time": str(time),
        "accelerometer_turn_on_bias_sigma": str(turn_on),
        "update_rate": "50",
        "noise_amplitude": "1",
    }
    world = load(wrap_in_world(make_plugin(IMU, figures)))
    run = ns.simulate(world, 20.0, seed=5, runs=40)
    reading = run[world.sensors[0].name]
    bias = reading.bias["linear_acceleration"]
    white = reading["linear_acceleration"] - reading.ideal["linear_acceleration"] - bias
    # 120,000 samples: 5 deviations of a sample deviation are 5 / sqrt(2 n) = 1 %.
    assert white.std() == pytest.approx(density * math.sqrt(50.0), rel=0.011, abs=0.0)
    step = bias[:, 1:] - bias[:, :-1]
    phi = math.exp(-0.02 / time)
    # The process loses the share 1 - phi of its value, so its increments have this variance; same number of samples.
    variance = walk**2 * time / 2.0 * ((1.0 - phi**2) + (1.0 - phi) ** 2)
    assert step.std() == pytest.approx(math.sqrt(variance), rel=0.011, abs=0.0)
    # The first bias of 40 runs and 3 axes: turn-on bias and the stationary process; 5 / sqrt(2 n) = 32 %.
    first = math.hypot(turn_on, walk * math.sqrt(time / 2.0))
    assert bias[:, 0].std() == pytest.approx(first, rel=0.33, abs=0.0)


@pytest.mark.requirement("DVU-9")
def test_defaults_of_the_imu_are_those_of_the_plug_in(load: Load, wrap_in_world: Text) -> None:
    """Four digits of the constants in the header of the plug-in, as its documentation prints them."""
    (sensor,) = load(wrap_in_world(make_plugin(IMU))).sensors
    assert isinstance(sensor.spec, Imu)
    gyroscope, accelerometer = sensor.spec.angular_velocity_x, sensor.spec.linear_acceleration_z
    assert [gyroscope.noise_density, gyroscope.dynamic_bias_stddev, gyroscope.bias_stddev] == pytest.approx(
        [3.394e-4, 3.879e-5, 8.727e-3], rel=2e-4, abs=0.0
    )
    assert gyroscope.dynamic_bias_correlation_time == 1000.0
    assert accelerometer == Noise(
        noise_density=4e-3, dynamic_bias_stddev=6e-3, dynamic_bias_correlation_time=300.0, bias_stddev=0.196
    )
    # The default of enable_local_ned_frame is true.
    assert (sensor.frame, sensor.pose.rotation) == ("base_ned", (0.0, 1.0, 0.0, 0.0))


@pytest.mark.requirement("DVU-9")
def test_both_names_of_the_random_walk_are_read(load: Load, wrap_in_world: Text) -> None:
    """The macros write one name, and the plug-in reads another one."""
    written, read = "gyroscope_random_walk", "gyroscope_bias_random_walk"

    def find_walk(elements: Mapping[str, str]) -> tuple[float, dict[str, str]]:
        world = load(wrap_in_world(make_plugin(IMU, {**elements, "noise_amplitude": "1"})))
        assert isinstance(world.sensors[0].spec, Imu)
        warnings = {what: reason for what, reason in list_warnings(world).items() if "walk" in what}
        return world.sensors[0].spec.angular_velocity_y.dynamic_bias_stddev, warnings

    assert find_walk({written: "0.000038785"}) == (0.000038785, {})
    reason = f"is used; the plug-in reads <{read}>, with the default 3.879e-05"
    assert find_walk({written: "0.001"}) == (0.001, {f"<plugin><{written}>: 0.001": reason})
    assert find_walk({read: "0.002"}) == (0.002, {})
    both = find_walk({written: "0.001", read: "0.002"})
    assert both == (0.002, {f"<plugin><{written}>: 0.001": f"<{read}> is used"})


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize(("frame", "known"), [("world", True), ("world_ned", True), ("map", False)])
def test_frame_of_the_orientation(load: Load, wrap_in_world: Text, *, frame: str, known: bool) -> None:
    """In world_ned (x north, y east, z down), forward right down ahead to the east has a heading of 90 degrees."""
    elements = {"static_reference_frame": frame, "enable_local_ned_frame": str(frame == "world_ned").lower()}
    world = load(wrap_in_world(make_plugin(IMU, elements)))
    reading = ns.simulate(world, 1.0, seed=1)["auv::base::imu"]
    half = math.sqrt(0.5)
    expected = [half, 0.0, 0.0, half] if frame == "world_ned" else [1.0, 0.0, 0.0, 0.0]
    orientation = reading["orientation"] * np.sign(reading["orientation"][:, :1])
    assert orientation == pytest.approx(np.tile(expected, (30, 1)), abs=1e-12)
    warned = f"<plugin><static_reference_frame>: {frame}" in list_warnings(world)
    assert warned != known


def compute_field(intensity: float, heading: float, declination: float, inclination: float) -> tuple[float, ...]:
    """Return the field (T) for microtesla and radians: x and y in the horizontal direction, z up."""
    level, azimuth = intensity * math.cos(inclination), heading - declination
    field = (level * math.cos(azimuth), level * math.sin(azimuth), -intensity * math.sin(inclination))
    return tuple(1e-6 * part for part in field)


FIELD_NOTE = '<plugin filename="libuuv_gazebo_ros_magnetometer_plugin.so">'
FIELD = {"intensity": "48", "reference_heading": "1.4", "declination": "0.2", "inclination": "1.1"}


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize("elements", [{}, FIELD])
def test_world_without_a_field_has_that_of_the_plug_in(
    load: Load, wrap_in_world: Text, elements: Mapping[str, str]
) -> None:
    """The defaults are 1 microtesla, heading pi, 60 degrees down."""
    values = [float(text) for text in elements.values()] or [1.0, math.pi, 0.0, math.pi / 3.0]
    world = load(wrap_in_world(make_plugin(MAGNETOMETER, {**elements, "noise_amplitude": "0"})))
    field = compute_field(*values)
    assert isinstance(world.environment.magnetic_field, UniformField)
    assert world.environment.magnetic_field.value_w == pytest.approx(field, rel=1e-12, abs=1e-20)
    reading = ns.simulate(world, 1.0, seed=1)["auv::base::magnetometer"]
    ned = [field[0], -field[1], -field[2]]  # enable_local_ned_frame
    assert reading["field"] == pytest.approx(np.tile(ned, (30, 1)), rel=1e-12, abs=1e-20)
    reason = list_warnings(world)[FIELD_NOTE]
    assert reason.startswith("its field is that of" if elements else "its field, a default, is that of the world")
    assert reason.endswith(" uT; the world has no <magnetic_field>")


@pytest.mark.requirement("DVU-9")
def test_field_of_the_world_has_priority(load: Load, wrap_in_world: Text) -> None:
    robot = make_plugin(MAGNETOMETER, FIELD)
    world = load(wrap_in_world(f"<magnetic_field>1e-5 2e-5 -3e-5</magnetic_field>{robot}"))
    assert world.environment.magnetic_field == UniformField((1e-5, 2e-5, -3e-5))
    reason = "uT, is not used: the world's <magnetic_field> has priority"
    assert list_warnings(world)[FIELD_NOTE].endswith(reason)
    model = '<navsense:magnetic_field model="WMM2025" date="2027"/>'
    world = load(wrap_in_world(f"{PLACE}{model}{robot}"))
    assert list_warnings(world)[FIELD_NOTE].endswith(reason)
    # Without a field in a world with a place, SDF's default would be wrong there. The plug-in replaces it.
    assert "<world><magnetic_field>" not in list_warnings(load(wrap_in_world(f"{PLACE}{robot}")))
    assert "<world><magnetic_field>" in list_warnings(load(wrap_in_world(PLACE + make_plugin(IMU))))


@pytest.mark.requirement("DVU-9")
def test_first_of_several_plug_ins_gives_the_field(load: Load, wrap_in_world: Text) -> None:
    robot = make_plugin(MAGNETOMETER, {"intensity": "30", "robot_namespace": "rov"}).replace('"auv"', '"rov"')
    world = load(wrap_in_world(make_plugin(MAGNETOMETER, FIELD) + robot))
    field = compute_field(*map(float, FIELD.values()))
    assert isinstance(world.environment.magnetic_field, UniformField)
    assert world.environment.magnetic_field.value_w == pytest.approx(field, rel=1e-12, abs=0.0)
    reasons = [note.reason for note in world.notes if note.what == FIELD_NOTE]
    assert reasons[0].startswith("its field is that of the world, ")
    (reason,) = reasons[1:]
    assert reason.endswith(" uT, is not used: that of the first plug-in has priority")
    assert load(wrap_in_world(make_plugin(IMU))).environment.magnetic_field == UniformField(DEFAULT_MAGNETIC_FIELD)


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize(
    ("fidelity", "amplitude", "factor"),
    [("physical", None, 1.0), ("physical", "2", 2.0), ("classic", None, 0.0), ("physical", "0", 0.0)],
)
def test_magnetometer_has_the_noise_of_the_figures(
    load: Load, wrap_in_world: Text, fidelity: str, amplitude: str | None, factor: float
) -> None:
    figures = {"noise_xy": "1.5", "noise_z": "1.7", "turn_on_bias": "2.5", "noise_amplitude": amplitude}
    (sensor,) = load(wrap_in_world(make_plugin(MAGNETOMETER, figures)), fidelity=fidelity).sensors
    assert isinstance(sensor.spec, Magnetometer)
    for noise, stddev in ((sensor.spec.x, 1.5), (sensor.spec.y, 1.5), (sensor.spec.z, 1.7)):
        assert [noise.stddev, noise.bias_stddev] == pytest.approx(
            [factor * stddev * 1e-6, factor * 2.5e-6], rel=1e-12, abs=0.0
        )


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize("name", MODULES)
def test_plug_in_has_the_elements_of_a_sensor(load: Load, wrap_in_world: Text, name: str) -> None:
    """Rate, switch, clock, latency and namespace."""
    elements = {
        "update_rate": "20",
        "is_on": "false",
        "robot_namespace": None,
        "robotNamespace": "fleet/auv",
        "navsense:latency": "<fixed>0.1</fixed>",
    }
    world = load(wrap_in_world(make_plugin(name, elements)))
    (sensor,) = world.sensors
    assert (sensor.rate, sensor.is_on, sensor.topic) == (20.0, False, f"/fleet/auv/{name}")
    assert sensor.latency is not None
    assert f"sensor auv::base::{name} is off" in list_warnings(world)


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize("name", MODULES)
def test_unsupported_elements_are_listed(load: Load, wrap_in_world: Text, name: str) -> None:
    (schema,) = (plugin.schema for plugin in MODULES[name].MODEL_PLUGINS.values())
    world = load(wrap_in_world(make_plugin(name, dict.fromkeys(schema.unsupported, "1"))))
    listed = {note.what: note.reason for note in world.notes if note.kind == "unsupported"}
    assert listed == {f"<plugin><{tag}>": reason for tag, reason in schema.unsupported.items()}


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize(
    ("name", "tag", "text", "allowed"),
    [
        (IMU, "gyroscope_noise_density", "-1", "must be >= 0"),
        (IMU, "accelerometer_bias_correlation_time", "0", "must be > 0"),
        (IMU, "noise_amplitude", "x", "must be a finite number"),
        (IMU, "noise_amplitude", "1e300", "must be a finite number of absolute value below 1e+100"),
        (IMU, "accelerometer_random_walk", "1e300", "of absolute value below 1e+100"),
        (IMU, "gyroscope_turn_on_bias_sigma", "1e300", "of absolute value below 1e+100"),
        (IMU, "gyroscope_nois_density", "1", "did you mean gyroscope_noise_density?"),
        (MAGNETOMETER, "noise_xy", "-1", "must be >= 0"),
        (MAGNETOMETER, "intensity", "-1", "must be >= 0"),
        (MAGNETOMETER, "is_on", "maybe", "must be"),
    ],
)
def test_invalid_elements_are_errors(
    list_problems: Callable[..., list[str]], wrap_in_world: Text, name: str, tag: str, text: str, allowed: str
) -> None:
    problems = list_problems(wrap_in_world(make_plugin(name, {tag: text})))
    assert len(problems) == 1
    assert problems[0].startswith(f"dive.sdf:3: <plugin><{tag}>")
    assert allowed in problems[0]


GPS = """<model name="auv"><link name="base"><sensor name="gps" type="gps"><update_rate>30</update_rate>
<gps><position_sensing><horizontal><noise type="gaussian"><stddev>{noise}</stddev></noise></horizontal>
</position_sensing></gps>{more}<plugin name="gps_plugin" filename="libuuv_gazebo_ros_gps_plugin.so">
<robot_namespace>auv</robot_namespace><sensor_topic>fix</sensor_topic><update_rate>30</update_rate><is_on>true</is_on>
<enable_gazebo_messages>true</enable_gazebo_messages>
<horizontal_pos_std_dev>{figure}</horizontal_pos_std_dev><vertical_pos_std_dev>0.0</vertical_pos_std_dev>
</plugin></sensor></link></model>"""
PLACE = "<spherical_coordinates><latitude_deg>57</latitude_deg><longitude_deg>4</longitude_deg></spherical_coordinates>"


@pytest.mark.requirement("DVU-9")
def test_gps_has_the_topic_and_frame_of_its_plug_in(load: Load, wrap_in_world: Text) -> None:
    """Latitude and longitude are positive; the last version of the plug-in inverts them."""
    world = load(wrap_in_world(PLACE + GPS.format(noise="2", figure="2", more="")))
    (sensor,) = world.sensors
    assert (sensor.topic, sensor.frame, sensor.rate) == ("/auv/fix", "auv/gps_link", 30.0)
    assert sensor.spec == NavSat(horizontal_position=Noise(stddev=2.0))
    assert not any("std_dev" in what for what in list_warnings(world))
    reading = ns.simulate(world, 1.0, seed=1)[sensor.name]
    assert np.degrees(reading.ideal["latitude"]) == pytest.approx(np.full(30, 57.0), abs=1e-9)
    assert np.degrees(reading.ideal["longitude"]) == pytest.approx(np.full(30, 4.0), abs=1e-9)
    unsupported = {note.what for note in world.notes if note.kind == "unsupported"}
    assert unsupported == {f"<plugin><{tag}>" for tag in ("update_rate", "enable_gazebo_messages")}
    assert unsupported < {f"<plugin><{tag}>" for tag in uuv_gps.SCHEMA.unsupported}


@pytest.mark.requirement("DVU-9")
def test_topic_and_covariance_of_the_gps_sensor_have_priority(load: Load, wrap_in_world: Text) -> None:
    more = "<topic>own</topic><frame_id>antenna</frame_id>"
    world = load(wrap_in_world(PLACE + GPS.format(noise="2", figure="3", more=more)))
    assert (world.sensors[0].topic, world.sensors[0].frame) == ("/own", "antenna")
    reason = "the sensor has a noise of 2 m, which determines the covariance"
    assert list_warnings(world)["<plugin><horizontal_pos_std_dev>: 3"] == reason


@pytest.mark.requirement("DVU-9")
def test_pressure_sensor_can_be_off_at_the_start(load: Load, wrap_in_world: Text) -> None:
    for text, is_on in (("true", True), ("false", False)):
        world = load(wrap_in_world(make_plugin("subsea_pressure", {"is_on": text})))
        assert world.sensors[0].is_on == is_on
        assert any("is off" in what for what in list_warnings(world)) != is_on
        reading = ns.simulate(world, 1.0, seed=1)[world.sensors[0].name]
        assert reading.emitted.all() == reading.emitted.any() == is_on


@pytest.mark.requirement("DVU-9")
def test_part_replaces_only_channels_without_noise(load: Load, wrap_in_world: Text) -> None:
    """An amplitude of 0 leaves all channels to the part of the catalogue."""
    part = {"navsense:part": "stim300"}
    for amplitude, density in (("0", Imu.from_part("stim300").angular_velocity_x.noise_density), ("1", 0.0003394)):
        (sensor,) = load(wrap_in_world(make_plugin(IMU, {**FIGURES, **part, "noise_amplitude": amplitude}))).sensors
        assert isinstance(sensor.spec, Imu)
        assert sensor.spec.angular_velocity_x.noise_density == density


@pytest.mark.requirement("DVU-9")
@pytest.mark.parametrize("name", MODULES)
def test_second_plug_in_with_a_topic_has_the_default_topic(load: Load, wrap_in_world: Text, name: str) -> None:
    plugin = re.search("<plugin.*</plugin>", make_plugin(name))
    assert plugin is not None
    second = plugin[0].replace(f'name="{name}"', 'name="second"')
    world = load(wrap_in_world(make_plugin(name).replace("</model>", f"{second}</model>")))
    assert [sensor.topic for sensor in world.sensors] == [
        f"/auv/{name}",
        f"/world/{world.name}/model/auv/link/base/sensor/second/{name}",
    ]
    assert any("is already the topic of" in reason for reason in list_warnings(world).values())

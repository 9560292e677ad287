"""Plug-ins of sensors of gazebo_ros, hector, rotors and PX4: each element has its law, and unread ones are warnings."""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import navsense as ns
from navsense import sdf
from navsense.cli.application import cli
from navsense.core.geodesy import Origin
from navsense.environment.base import UniformField
from navsense.noise.specification import Noise
from navsense.sdf.context import PLUGIN_NOT_RUN
from navsense.sdf.plugin_files import NO_EFFECT, NO_SENSOR, explain_unread_sensor, normalize_file
from navsense.sdf.plugins.gazebo_ros import NO_FRAME, NO_GRAVITY
from navsense.sdf.plugins.registry import MODEL_PLUGINS, SENSOR_PLUGINS
from navsense.sensors import AirPressure, Altimeter, Imu, Magnetometer, NavSat
from navsense.sensors.range import Range
from navsense.world import MountedSensor, World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

PLACE = (
    "<spherical_coordinates><latitude_deg>47.4</latitude_deg><longitude_deg>8.5</longitude_deg>"
    "<elevation>500</elevation></spherical_coordinates><gravity>0 0 -9.8</gravity>"
    "<magnetic_field>2e-5 3e-5 -4e-5</magnetic_field>"
)


def make_world(plugin: str, place: str = PLACE, step: float = 0.01) -> str:
    """Return a world with a plug-in of a model; the plug-in is on line 3."""
    physics = f'<physics name="p" type="ode"><max_step_size>{step}</max_step_size></physics>'
    links = '<link name="base"/><link name="board"><pose>0.1 0 0.2 0 0 0</pose></link>'
    return (
        f'<sdf version="1.6">\n<world name="field">{physics}{place}<model name="robot">{links}\n{plugin}\n'
        "</model></world></sdf>"
    )


def make_plugin(file: str, body: str, name: str = "p") -> str:
    return f'<plugin name="{name}" filename="{file}">{body}</plugin>'


def list_notes(world: World) -> list[tuple[str, str]]:
    return [(note.kind, note.reason) for note in world.notes]


# file names


@pytest.mark.parametrize(
    "name",
    [
        "libgazebo_ros_imu.so",
        "gazebo_ros_imu",
        "libgazebo_ros_imu.so.1.2",
        " /opt/ros/noetic/lib/libgazebo_ros_imu.so ",
        "C:\\plugins\\gazebo_ros_imu.dll",
        "gazebo_ros_imu.dylib",
    ],
)
def test_every_spelling_of_a_file_name_is_read(load: Load, name: str) -> None:
    assert normalize_file(name) == "gazebo_ros_imu"
    (sensor,) = load(make_world(make_plugin(name, "<bodyName>board</bodyName>"))).sensors
    assert sensor.name == "robot::board::p"


def test_no_file_is_in_both_tables_and_each_is_a_known_sensor() -> None:
    model, sensor = (set(map(normalize_file, table)) for table in (MODEL_PLUGINS, SENSOR_PLUGINS))
    assert len(model) == len(MODEL_PLUGINS)
    assert not model & sensor
    for entry in MODEL_PLUGINS.values():
        assert (entry.parse is None) != (entry.convert is None)
        assert entry.tags.list_tags() <= entry.schema.children
    for file in (*MODEL_PLUGINS, *SENSOR_PLUGINS):  # a file that is not read in its place is reported
        assert explain_unread_sensor(file, "world") or "uuv" in file, file


# plug-ins that are not read


@pytest.mark.requirement("DVU-9", "SDF-2")
@pytest.mark.parametrize(
    "file",
    [
        "libMyImuPlugin.so",
        "libacme_gps.so",
        "libgazebo_ros_laser.so",
        "libgazebo_ros_gpu_laser.so",
        "libgazebo_ros_camera.so",
        "libgazebo_lidar_plugin.so",
        "libuuv_gazebo_ros_usbl_plugin.so",
        "librotors_gazebo_odometry_plugin.so",
        "libAcousticAltimeter.so",
        "libgazebo_opticalflow_plugin.so",
        "libfluid_pressure.so",
        "libgazebo_ros_thermal_sensor.so",
        "libwind_sensor_plugin.so",
        "libcontact_sensor.so",
        "libgazebo_ros_bumper.so",
        "libgazebo_radar_plugin.so",
        "libanemometer.so",
        "libgazebo_encoder.so",
        "libgazebo_ros_prosilica.so",
        "libforce_torque_plugin.so",
        "libros_acoustic_pinger.so",
        "libgazebo_vision_plugin.so",
        "libgazebo_ros_f3d.so",
        "librfid_tag_plugin.so",
        "libHydrophonePlugin.so",
    ],
)
def test_unread_sensor_is_a_warning(load: Load, file: str) -> None:
    (note,) = (note for note in load(make_world(make_plugin(file, ""))).notes if "<plugin" in note.what)
    assert (note.kind, note.subject) == ("warning", "plugin")
    assert note.what == f'<model><plugin name="p" filename="{file}">'
    assert note.where is not None
    assert note.where.line == 3


@pytest.mark.requirement("DVU-9", "SDF-2")
@pytest.mark.parametrize(
    "file",
    [
        "libgazebo_ros_diff_drive.so",
        "libgazebo_ros_joint_state_publisher.so",
        "libgazebo_ros_control.so",
        "libgazebo_ros_p3d.so",
        "libgazebo_groundtruth_plugin.so",
        "libgazebo_motor_model.so",
        "libgazebo_gimbal_controller_plugin.so",
        "libgazebo_mavlink_interface.so",
        "gz-sim-imu-system",
        "libignition-gazebo-magnetometer-system.so",
        "gz-sim-diff-drive-system",
        "libimuse.so",
        "librange_of_motion_controller.so",
        "libmagic.so",
        "libgazebo_wind_plugin.so",
        "libgazebo_ros_force.so",
        "libhector_gazebo_ros_force_based_move.so",
        "libuuv_gazebo_ros_pose_gt_plugin.so",
        "",
    ],
)
def test_other_plugins_are_no_warnings(load: Load, file: str) -> None:
    (note,) = (note for note in load(make_world(make_plugin(file, ""))).notes if "<plugin" in note.what)
    assert (note.kind, note.subject) == ("unsupported", "")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gazebo_ros_p3d", "/truth/MODEL"),
        ("/opt/ros/lib/libgazebo_ros_p3d.so", "/truth/MODEL"),
        ("libuuv_gazebo_ros_pose_gt_plugin.so", "/truth/MODEL"),
        ("libgz-sim-hydrodynamics-system.so", "only the current is read"),
        ("dsros_ros_dvl", 'in a <sensor type="dsros_dvl">'),
    ],
)
@pytest.mark.parametrize("place", ["model", "unknown"])
def test_every_spelling_of_a_file_name_has_its_reason(load: Load, name: str, reason: str, place: str) -> None:
    plugin = make_plugin(name, "")
    world = load(make_world(plugin if place == "model" else f"<unknown>{plugin}</unknown>"))
    (note,) = (note for note in world.notes if "<plugin" in note.what)
    assert note.kind == "unsupported"
    assert reason in note.reason


def test_unread_sensors_are_reported_in_each_place(load: Load, wrap_in_world: Text) -> None:
    """A plug-in of a simulated sensor loses its noise; that of another sensor is listed with the sensor."""
    plugin = make_plugin("libacme_imu.so", "")
    sensors = "".join(f'<sensor name="{name}" type="{name}">{plugin}</sensor>' for name in ("imu", "contact"))
    unknown = f"<unknown><deeper>{plugin}</deeper></unknown>"
    world = load(wrap_in_world(f'{plugin}<model name="m"><link name="l">{plugin}{sensors}</link>{unknown}</model>'))
    sensor = [(note.what.partition(">")[0], note.kind, note.reason) for note in world.notes if "acme" in note.what]
    assert sensor == [
        ("<world", "warning", NO_SENSOR),
        ("<deeper", "warning", NO_SENSOR),
        ("<link", "warning", NO_SENSOR),
        ("<sensor", "warning", NO_EFFECT),
        ("<sensor", "unsupported", PLUGIN_NOT_RUN),
    ]


@pytest.mark.parametrize(
    ("kind", "file", "known"),
    [
        ("camera", "libgazebo_ros_camra.so", "libgazebo_ros_camera.so"),
        ("imu", "libgazebo_ros_imu_sensr.so", "libgazebo_ros_imu_sensor.so"),
        ("sonar", "libgazebo_ros_rang.so", "libgazebo_ros_range.so"),
    ],
)
def test_misspelt_file_of_a_plugin_in_a_sensor_is_a_warning(
    load: Load, wrap_in_link: Text, kind: str, file: str, known: str
) -> None:
    sonar = "<sonar><min>0.1</min><max>2</max></sonar>" if kind == "sonar" else ""
    world = load(wrap_in_link(f'<sensor name="s" type="{kind}">{sonar}{make_plugin(file, "")}</sensor>'))
    (note,) = (note for note in world.notes if file in note.what)
    assert (note.kind, note.reason) == ("warning", f"is not supported; did you mean {known}?")


@pytest.mark.requirement("DVU-9")
def test_check_run_and_report_list_unread_sensors(tmp_path: Path) -> None:
    world, recording, page = tmp_path / "w.sdf", tmp_path / "r.mcap", tmp_path / "r.html"
    imu = make_plugin("libgazebo_ros_imu.so", "<bodyName>board</bodyName>", "imu")
    world.write_text(make_world(make_plugin("libacme_gps.so", "", "gps") + imu), encoding="utf-8")
    line = f'<model><plugin name="gps" filename="libacme_gps.so">: {NO_SENSOR}'
    checked = CliRunner().invoke(cli, ["check", str(world)], catch_exceptions=False)
    assert f"warning: {world}:3: {line}" in checked.output
    run = CliRunner().invoke(cli, ["run", str(world), "--duration", "1", "-o", str(recording)], catch_exceptions=False)
    assert f"warning: {world}:3: {line}" in run.output
    stored = [note for note in ns.open(recording).world.notes if note.subject == "plugin"]
    assert [f"{note.what}: {note.reason}" for note in stored] == [line]
    CliRunner().invoke(cli, ["report", str(recording), "-o", str(page)], catch_exceptions=False)
    assert "libacme_gps.so" in page.read_text(encoding="utf-8")
    assert NO_SENSOR in page.read_text(encoding="utf-8")


# laws


def test_hector_drift_and_noise_follow_the_error_model(load: Load) -> None:
    """Offset, stationary drift with an exponential correlation, and white noise, over 400 runs.

    Deviations of 400 independent runs have a relative error of 3.5 %; bounds of 5 sigma hold in all but 1e-5 of the
    cases for the 12 comparisons. The correlation at a lag of the correlation time is 1/e, with an error of 0.05.
    """
    body = (
        "<bodyName>board</bodyName><updateRate>10</updateRate><rateDrift>0.2 0.1 0</rateDrift>"
        "<rateDriftFrequency>0.5 0.5 0.5</rateDriftFrequency><rateGaussianNoise>0.05</rateGaussianNoise>"
        "<rateOffset>1 2 3</rateOffset>"
    )
    world = load(make_world(make_plugin("libhector_gazebo_ros_imu.so", body)))
    spec = world.sensors[0].spec
    assert isinstance(spec, Imu)
    assert spec.angular_velocity_x == Noise(
        mean=1.0, stddev=0.05, dynamic_bias_stddev=0.2, dynamic_bias_correlation_time=2.0
    )
    assert spec.angular_velocity_z == Noise(mean=3.0, stddev=0.05)
    reading = ns.simulate(world, 10.0, seed=5, runs=400)["p"]
    drift = reading.bias["angular_velocity"]
    for sample in (0, 50, 99):
        deviations = drift[:, sample].std(axis=0)
        np.testing.assert_allclose(deviations[:2], (0.2, 0.1), rtol=5.0 / math.sqrt(800.0), atol=0.0)
        assert deviations[2] == 0.0
    correlation = np.mean(drift[:, 30, 0] * drift[:, 50, 0]) / 0.2**2
    assert abs(correlation - math.exp(-1.0)) < 5.0 * math.sqrt((1.0 + math.exp(-2.0)) / 400.0)
    white = reading["angular_velocity"] - reading.ideal["angular_velocity"] - drift - np.array([1.0, 2.0, 3.0])
    assert abs(white.std() / 0.05 - 1.0) < 5.0 / math.sqrt(2.0 * white.size)
    assert abs(white.mean()) < 5.0 * 0.05 / math.sqrt(white.size)
    # The code's recursion x = exp(-dt f) x + dt sqrt(2 f) d w has this stationary deviation.
    dt, frequency = 0.1, 0.5
    code = 0.2 * dt * math.sqrt(2.0 * frequency) / math.sqrt(-math.expm1(-2.0 * frequency * dt))
    (reason,) = (note.reason for note in world.notes if "drift of" in note.reason)
    code_drift = float(reason.rpartition("code has ")[2].split()[0])
    assert code_drift == pytest.approx(code, rel=0.05, abs=0.0)
    assert "after a few correlation times the plug-in's code has" in reason


@pytest.mark.parametrize("file", ["libhector_gazebo_ros_imu.so", "libhector_gazebo_ros_magnetic.so"])
def test_hector_drift_without_a_frequency_is_a_constant_of_the_run(load: Load, file: str) -> None:
    """exp(-dt f) = 1 and sqrt(2 f) = 0: the drift keeps its first value, which has the deviation d."""
    prefix, magnitude = ("rate", 1.0) if "imu" in file else ("", 0.5)
    tags = [f"{prefix}Drift", f"{prefix}DriftFrequency"] if prefix else ["drift", "driftFrequency"]
    body = f"<{tags[0]}>0.1 0.2 0</{tags[0]}><{tags[1]}>0 1 0</{tags[1]}>"
    body += "" if prefix else f"<magnitude>{magnitude}</magnitude>"
    world = load(make_world(make_plugin(file, body)))
    spec = world.sensors[0].spec
    if isinstance(spec, Imu):
        x, y, z, unit = spec.angular_velocity_x, spec.angular_velocity_y, spec.angular_velocity_z, 1.0
    else:
        assert isinstance(spec, Magnetometer)
        x, y, z, unit = spec.x, spec.y, spec.z, math.hypot(2e-5, 3e-5, 4e-5) / magnitude
    assert x.bias_stddev == pytest.approx(0.1 * unit, rel=1e-12, abs=0.0)
    assert x.dynamic_bias_stddev == 0.0
    assert y.dynamic_bias_stddev == pytest.approx(0.2 * unit * math.sqrt(2.0), rel=1e-12, abs=0.0)
    assert y.bias_stddev == 0.0
    assert z == Noise()
    (reason,) = (note.reason for note in world.notes if "drift of" in note.reason)
    assert reason.startswith("is a drift of 0.2 (1 sigma)")
    constant = load(make_world(make_plugin(file, body.replace("0 1 0", "0"))))
    assert not [note for note in constant.notes if "drift of" in note.reason]


def compute_allan_variance(rate: np.ndarray, samples: int) -> float:
    """Return the Allan variance of rows of samples by the definition, for clusters of `samples`."""
    clusters = rate.reshape(rate.shape[0], -1, samples).mean(axis=2)
    return float(np.mean(np.diff(clusters, axis=1) ** 2) / 2.0)


@pytest.mark.parametrize(
    ("file", "walk"),
    [
        ("librotors_gazebo_imu_plugin.so", "gyroscopeRandomWalk"),
        ("librotors_gazebo_imu_plugin.so", "gyroscopeBiasRandomWalk"),
        ("libgazebo_imu_plugin.so", "gyroscopeRandomWalk"),
    ],
)
def test_rotors_and_px4_imu_have_the_allan_deviation_of_ieee_952(load: Load, file: str, walk: str) -> None:
    """White noise N and a Gauss-Markov bias with driving density q and correlation time T, clusters of 1 s.

    IEEE 952-1997, annex C: N^2 / t + (q T)^2 / t (1 - T / (2 t) (3 - 4 exp(-t/T) + exp(-2t/T))). 24 rows of 400
    clusters give a relative error of about 1.5 %; the bound is 6 sigma.
    """
    density, driving, tau = 0.01, 0.02, 3.0
    body = (
        f"<linkName>board</linkName><gyroscopeNoiseDensity>{density}</gyroscopeNoiseDensity><{walk}>{driving}</{walk}>"
        f"<gyroscopeBiasCorrelationTime>{tau}</gyroscopeBiasCorrelationTime>"
        "<gyroscopeTurnOnBiasSigma>0.3</gyroscopeTurnOnBiasSigma>"
    )
    world = load(make_world(make_plugin(file, body), step=0.02))
    assert world.sensors[0].rate == 50.0
    rate = ns.simulate(world, 400.0, seed=11, runs=8)["p"]["angular_velocity"]
    expected = density**2 + (driving * tau) ** 2 * (
        1.0 - tau / 2.0 * (3.0 - 4.0 * math.exp(-1.0 / tau) + math.exp(-2.0 / tau))
    )
    sensor = compute_allan_variance(np.concatenate([rate[..., axis] for axis in range(3)]), 50)
    assert sensor == pytest.approx(expected, rel=0.09, abs=0.0)


def test_px4_defaults_are_those_of_its_header(load: Load) -> None:
    body = "<linkName>board</linkName>"
    spec = load(make_world(make_plugin("libgazebo_imu_plugin.so", body))).sensors[0].spec
    assert isinstance(spec, Imu)
    assert spec.linear_acceleration_z == Noise(
        noise_density=4e-3,
        dynamic_bias_stddev=6e-3,
        dynamic_bias_correlation_time=300.0,
        bias_stddev=0.196,
    )
    assert spec.angular_velocity_x.noise_density == pytest.approx(
        2.0 * 35.0 / 3600.0 / 180.0 * math.pi, rel=1e-15, abs=0.0
    )
    assert spec.reference == (1.0, 0.0, 0.0, 0.0)
    world = load(make_world(make_plugin("libgazebo_magnetometer_plugin.so", "")))
    (sensor,) = world.sensors
    assert isinstance(sensor.spec, Magnetometer)
    assert (sensor.rate, sensor.topic, sensor.link) == (100.0, "/mag", "robot::base")
    assert sensor.spec.x.noise_density == pytest.approx(4e-8, rel=1e-15, abs=0.0)  # 0.4 mG/sqrt(Hz)
    assert sensor.spec.x.dynamic_bias_stddev == pytest.approx(6.4e-10, rel=1e-15, abs=0.0)
    assert sensor.spec.x.dynamic_bias_correlation_time == 600.0
    ramp = make_plugin("libgazebo_barometer_plugin.so", "<baroDriftPaPerSec>0.5</baroDriftPaPerSec>")
    world = load(make_world(ramp))
    assert world.sensors[0].spec == AirPressure(Noise(stddev=1.0))
    assert world.sensors[0].rate == 50.0
    assert ("warning", "a ramp of the pressure is not simulated") in list_notes(world)


def test_rotors_units(load: Load) -> None:
    """A variance becomes a deviation; a uniform distribution has the deviation bound / sqrt(3)."""
    body = "<linkName>board</linkName><robotNamespace>fly</robotNamespace>"
    pressure = f"{body}<pressureVariance>9</pressureVariance><referenceAltitude>10</referenceAltitude>"
    (sensor,) = load(make_world(make_plugin("librotors_gazebo_pressure_plugin.so", pressure))).sensors
    assert sensor.spec == AirPressure(Noise(stddev=3.0), 10.0)
    assert sensor.topic == "/fly/air_pressure"
    field = f"{body}<noiseNormal>1e-7 2e-7 3e-7</noiseNormal>"
    field += "<noiseUniformInitialBias>3e-7 3e-7 0</noiseUniformInitialBias>"
    (sensor,) = load(make_world(make_plugin("librotors_gazebo_magnetometer_plugin.so", field))).sensors
    assert isinstance(sensor.spec, Magnetometer)
    assert [axis.stddev for axis in (sensor.spec.x, sensor.spec.y, sensor.spec.z)] == [1e-7, 2e-7, 3e-7]
    assert sensor.spec.y.bias_stddev == pytest.approx(np.std(np.linspace(-3e-7, 3e-7, 100_001)), rel=1e-4, abs=0.0)


def test_rotors_gps_keeps_the_noise_of_its_sensor(load: Load, wrap_in_link: Text) -> None:
    plugin = make_plugin(
        "librotors_gazebo_gps_plugin.so", "<linkName>auv::base</linkName><horVelStdDev>0.2</horVelStdDev>"
    )
    noise = '<noise type="gaussian"><stddev>1.5</stddev></noise>'
    own = f"<gps><position_sensing><horizontal>{noise}</horizontal></position_sensing></gps>"
    text = wrap_in_link(f'<sensor name="g" type="gps"><update_rate>5</update_rate>{own}{plugin}</sensor>')
    (sensor,) = load(text.replace("<model", f"{PLACE}<model", 1)).sensors
    assert sensor.spec == NavSat(Noise(stddev=1.5), Noise(), Noise(stddev=0.2), Noise(stddev=0.1))
    assert (sensor.topic, sensor.frame, sensor.rate) == ("/gps", "base", 5.0)
    bare = wrap_in_link(f'<sensor name="g" type="gps">{plugin}</sensor>').replace("<model", f"{PLACE}<model", 1)
    spec = load(bare).sensors[0].spec
    assert isinstance(spec, NavSat)
    assert (spec.horizontal_position.stddev, spec.vertical_position.stddev) == (3.0, 6.0)


def test_px4_gps_has_the_noise_of_its_units(load: Load, wrap_in_link: Text) -> None:
    plugin = make_plugin("libgazebo_gps_plugin.so", "<gpsNoise>true</gpsNoise><gpsXYRandomWalk>1</gpsXYRandomWalk>")
    sensor = f'<sensor name="g" type="gps"><update_rate>5</update_rate>{plugin}</sensor>'
    text = wrap_in_link(sensor).replace("<model", f"{PLACE}<model", 1)
    world = load(text)
    spec = world.sensors[0].spec
    assert isinstance(spec, NavSat)
    assert spec.horizontal_position == Noise(
        noise_density=2e-4, dynamic_bias_stddev=1.0, dynamic_bias_correlation_time=60.0
    )
    assert spec.vertical_velocity == Noise(noise_density=0.4)
    (reason,) = (note.reason for note in world.notes if "drifts" in note.reason)
    assert reason.startswith(f"the position drifts by {math.sqrt(30.0):.3g} m horizontally")
    # the recursion of the code, at a step of 4 ms
    decay, variance = 59.0 / 60.0, 0.0
    for _ in range(2000):
        variance = decay**2 * variance + 0.004**3
    assert f"code has {math.sqrt(variance):.2g} m" in reason
    silent = load(text.replace("<gpsNoise>true</gpsNoise>", ""))
    assert silent.sensors[0].spec == NavSat()


def test_hector_magnetometer_errors_are_relative_to_its_magnitude(load: Load) -> None:
    """The world's field is 53.9 uT; noise of 0.02 for a magnitude of 0.5 is 4 % of it."""
    body = "<magnitude>0.5</magnitude><gaussianNoise>0.02</gaussianNoise><offset>0.01 0 0</offset>"
    world = load(make_world(make_plugin("libhector_gazebo_ros_magnetic.so", body)))
    (sensor,) = world.sensors
    strength = math.sqrt(29.0) * 1e-5
    assert isinstance(sensor.spec, Magnetometer)
    assert sensor.spec.y.stddev == pytest.approx(0.04 * strength, rel=1e-12, abs=0.0)
    assert sensor.spec.x.mean == pytest.approx(0.02 * strength, rel=1e-12, abs=0.0)
    assert sensor.topic == "/magnetic"
    assert any("relative to a field of 0.5" in reason for _, reason in list_notes(world))
    assert any("its field, " in reason and "is not used" in reason for _, reason in list_notes(world))


@pytest.mark.parametrize(
    ("heading", "declination", "expected"),
    [(90.0, 0.0, (0.0, 0.5, -0.8660254)), (0.0, 0.0, (0.5, 0.0, -0.8660254)), (0.0, 90.0, (0.0, -0.5, -0.8660254))],
)
def test_hector_field_applies_to_a_world_without_one(
    load: Load, heading: float, declination: float, expected: tuple[float, float, float]
) -> None:
    """Inclination 60 degrees. At heading 0, x is north and y west; a declination of 90 degrees is east."""
    body = f"<referenceHeading>{heading}</referenceHeading><declination>{declination}</declination>"
    world = load(make_world(make_plugin("libhector_gazebo_ros_magnetic.so", body), ""))
    field = world.environment.magnetic_field
    assert isinstance(field, UniformField)
    strength = math.hypot(5.5645e-6, 22.8758e-6, -42.3884e-6)
    np.testing.assert_allclose(np.array(field.value_w) / strength, expected, rtol=0.0, atol=1e-7)


def test_hector_barometer_is_an_altimeter(load: Load) -> None:
    body = "<drift>10</drift><gaussianNoise>0.1</gaussianNoise><updateRate>10</updateRate>"
    (sensor,) = load(make_world(make_plugin("libhector_gazebo_ros_baro.so", body))).sensors
    assert isinstance(sensor.spec, Altimeter)
    noise = sensor.spec.vertical_position
    assert noise.stddev == 0.1
    stationary = noise.dynamic_bias_stddev * math.sqrt(noise.dynamic_bias_correlation_time / 2.0)
    assert stationary == pytest.approx(10.0, rel=1e-14, abs=0.0)
    assert noise.dynamic_bias_correlation_time == pytest.approx(3600.0, rel=1e-14, abs=0.0)
    assert (sensor.topic, sensor.rate) == ("/pressure_height", 10.0)


def test_hector_imu_has_the_pose_of_its_offsets(load: Load) -> None:
    """At rest, the specific force is g along the vertical, by the rotation roll, pitch, yaw of the sensor.

    Changelog of hector_gazebo_plugins 0.3.6: `xyzOffset` and `rpyOffset` are mounting offsets, not biases.
    """
    roll, pitch, yaw = 0.1, 0.2, 0.5
    body = (
        "<gaussianNoise>0.3</gaussianNoise><accelGaussianNoise>1</accelGaussianNoise>"
        f"<rpyOffset>{roll} {pitch} {yaw}</rpyOffset><xyzOffset>1 2 3</xyzOffset>"
    )
    world = load(make_world(make_plugin("libhector_gazebo_ros_imu.so", body)))
    (sensor,) = world.sensors
    axis = Noise(stddev=0.3)
    assert sensor.spec == Imu(axis, axis, axis, axis, axis, axis, reference=(1.0, 0.0, 0.0, 0.0))
    assert sensor.pose.position == (1.0, 2.0, 3.0)
    reading = ns.simulate(world, 0.1)["p"]
    expected = 9.8 * np.array([-math.sin(pitch), math.sin(roll) * math.cos(pitch), math.cos(roll) * math.cos(pitch)])
    np.testing.assert_allclose(reading.ideal["linear_acceleration"][-1], expected, rtol=0.0, atol=1e-6)
    w, x, y, z = reading.ideal["orientation"][-1]
    assert math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)) == pytest.approx(yaw, rel=0.0, abs=1e-9)


def test_hector_scale_errors_are_factors(load: Load, wrap_in_link: Text) -> None:
    """`sensor_model.h`: the value times the scale error, 1 by default, plus the other errors."""
    body = (
        "<accelScaleError>1 1 1.02</accelScaleError><accelOffset>0.1</accelOffset><rateScaleError>0.5</rateScaleError>"
    )
    world = load(make_world(make_plugin("libhector_gazebo_ros_imu.so", body)))
    spec = world.sensors[0].spec
    assert isinstance(spec, Imu)
    assert spec.angular_velocity_y == Noise(scale_factor=-0.5)
    assert spec.linear_acceleration_x == Noise(mean=0.1)
    reading = ns.simulate(world, 0.1)["p"]
    np.testing.assert_allclose(
        reading["linear_acceleration"],
        reading.ideal["linear_acceleration"] * [1.0, 1.0, 1.02] + 0.1,
        rtol=1e-12,
        atol=0.0,
    )
    errors = "<magnitude>0.5</magnitude><scaleError>1.1</scaleError>"
    spec = load(make_world(make_plugin("libhector_gazebo_ros_magnetic.so", errors))).sensors[0].spec
    assert isinstance(spec, Magnetometer)
    assert spec.z.scale_factor == pytest.approx(0.1, rel=1e-14, abs=0.0)
    spec = (
        load(make_world(make_plugin("libhector_gazebo_ros_baro.so", errors.partition("</magnitude>")[2])))
        .sensors[0]
        .spec
    )
    assert isinstance(spec, Altimeter)
    assert spec.vertical_position.scale_factor == pytest.approx(0.1, rel=1e-14, abs=0.0)
    sonar = make_plugin("libhector_gazebo_ros_sonar.so", "<scaleError>0.9</scaleError>")
    _, sensor = load_sensor(load, wrap_in_link, "ray", make_scan(0.2) + sonar)
    assert isinstance(sensor.spec, Range)
    assert sensor.spec.range_noise.scale_factor == pytest.approx(-0.1, rel=1e-14, abs=0.0)


@pytest.mark.parametrize(
    ("file", "tags"),
    [
        ("libhector_gazebo_ros_imu.so", "yawOffset yawDrift yawDriftFrequency yawGaussianNoise yawScaleError"),
        ("libhector_gazebo_ros_imu.so", "headingDrift biasTopicName"),
        ("libhector_gazebo_ros_gps.so", "scaleError velocityScaleError xyzOffset"),
    ],
)
def test_other_elements_of_hector_are_listed(load: Load, file: str, tags: str) -> None:
    """Elements that the plug-ins read and that have no effect here are notes, no errors."""
    world = load(make_world(make_plugin(file, "".join(f"<{tag}>1.01</{tag}>" for tag in tags.split()))))
    assert {(note.what, note.kind) for note in world.notes if note.what.startswith("<plugin><")} == {
        (f"<plugin><{tag}>", "unsupported") for tag in tags.split()
    }


# references

GPS = (
    "<referenceLatitude>60</referenceLatitude><referenceLongitude>10</referenceLongitude>"
    "<referenceHeading>30</referenceHeading><referenceAltitude>7</referenceAltitude>"
)


def test_gps_reference_is_the_origin_of_a_world_without_one(load: Load) -> None:
    """The plug-in's law: north is cos(h) x + sin(h) y, west is -sin(h) x + cos(h) y."""
    world = load(make_world(make_plugin("libhector_gazebo_ros_gps.so", GPS), ""))
    origin = world.environment.origin
    assert origin == Origin(math.radians(60.0), math.radians(10.0), 7.0, math.radians(60.0))
    assert origin is not None
    heading = math.radians(30.0)
    for x, y in ((100.0, 0.0), (0.0, 100.0)):
        east, north, _ = origin.to_enu(np.array([[x, y, 0.0]]))[0]
        assert north == pytest.approx(math.cos(heading) * x + math.sin(heading) * y, rel=1e-12, abs=0.0)
        assert -east == pytest.approx(-math.sin(heading) * x + math.cos(heading) * y, rel=1e-12, abs=0.0)
    assert any("its reference is that of the world, latitude 60" in reason for _, reason in list_notes(world))
    assert world.sensors[0].rate == 4.0


def test_world_has_priority_over_the_reference_of_a_gps(load: Load) -> None:
    world = load(make_world(make_plugin("libhector_gazebo_ros_gps.so", GPS)))
    assert world.environment.origin == Origin(math.radians(47.4), math.radians(8.5), 500.0, 0.0)
    assert [kind for kind, reason in list_notes(world) if "is not used: the world's <spher" in reason] == ["warning"]
    equal = (
        "<referenceLatitude>47.4</referenceLatitude><referenceLongitude>8.5</referenceLongitude>"
        "<referenceHeading>90</referenceHeading><referenceAltitude>500</referenceAltitude>"
    )
    assert not any(
        "reference" in reason
        for _, reason in list_notes(load(make_world(make_plugin("libhector_gazebo_ros_gps.so", equal))))
    )
    default = load(make_world(make_plugin("libhector_gazebo_ros_gps.so", "")))
    assert not any("reference" in reason for _, reason in list_notes(default))


def test_first_of_several_references_is_used(load: Load) -> None:
    two = make_plugin("libhector_gazebo_ros_gps.so", GPS, "a")
    two += make_plugin(
        "libhector_gazebo_ros_gps.so", "<topicName>b</topicName><referenceLatitude>50</referenceLatitude>", "b"
    )
    world = load(make_world(two, ""))
    assert world.environment.origin is not None
    assert math.degrees(world.environment.origin.latitude) == pytest.approx(60.0, rel=1e-14, abs=0.0)
    assert any(
        reason.endswith("is not used: that of the first plug-in has priority") for _, reason in list_notes(world)
    )


def test_reference_that_a_plugin_gives_has_priority_over_a_default(load: Load) -> None:
    plugins = make_plugin("libhector_gazebo_ros_gps.so", "", "a")
    plugins += make_plugin("libhector_gazebo_ros_gps.so", f"<topicName>b</topicName>{GPS}", "b")
    plugins += make_plugin("libhector_gazebo_ros_magnetic.so", "", "c")
    field = "<topicName>d</topicName><referenceHeading>0</referenceHeading>"
    plugins += make_plugin("libhector_gazebo_ros_magnetic.so", field, "d")
    world = load(make_world(plugins, ""))
    assert world.environment.origin == Origin(math.radians(60.0), math.radians(10.0), 7.0, math.radians(60.0))
    north = compute_horizontal_field(world)
    assert north[0] == pytest.approx(math.hypot(*north), rel=1e-14, abs=0.0)  # along x, as the file says


# the magnetic field and the heading of the world


def compute_horizontal_field(world: World) -> tuple[float, float]:
    """Return the components (T) of a uniform field along x and y of the world."""
    field = world.environment.magnetic_field
    assert isinstance(field, UniformField)
    return field.value_w[0], field.value_w[1]


def compute_azimuth(world: World) -> float:
    """Return the angle (degrees) of the field of a world from true north, clockwise."""
    assert world.environment.origin is not None
    x, y = compute_horizontal_field(world)
    east, north, _ = world.environment.origin.to_enu(np.array([[x, y, 0.0]]))[0]
    return math.degrees(math.atan2(east, north))


@pytest.mark.parametrize("heading", [None, 0.0, 30.0, 90.0, -120.0])
@pytest.mark.parametrize("declination", [0.0, 12.0])
def test_hector_gps_and_magnetometer_agree_about_north(load: Load, heading: float | None, declination: float) -> None:
    """Both plug-ins with their defaults: the field points to magnetic north of the place that the GPS has."""
    plugins = make_plugin("libhector_gazebo_ros_magnetic.so", f"<declination>{declination}</declination>", "m")
    plugins += make_plugin("libhector_gazebo_ros_gps.so", "", "g")
    place = "<latitude_deg>50</latitude_deg><longitude_deg>9</longitude_deg>"
    place += f"<heading_deg>{heading}</heading_deg>"
    world = load(
        make_world(plugins, "" if heading is None else f"<spherical_coordinates>{place}</spherical_coordinates>")
    )
    assert compute_azimuth(world) == pytest.approx(declination, rel=0.0, abs=1e-9)


def test_default_heading_of_hector_is_north(load: Load) -> None:
    """`gazebo_ros_magnetic.cpp` and `gazebo_ros_gps.cpp`: latitude 49.9, longitude 8.9, altitude 0, heading 0."""
    world = load(make_world(make_plugin("libhector_gazebo_ros_magnetic.so", ""), ""))
    x, y = compute_horizontal_field(world)
    assert (x > 2e-5, y) == (True, 0.0)
    world = load(make_world(make_plugin("libhector_gazebo_ros_gps.so", ""), ""))
    assert world.environment.origin == Origin(math.radians(49.9), math.radians(8.9), 0.0, math.radians(90.0))


def test_hector_defaults_of_the_world(load: Load) -> None:
    """`useWorldSphericalCoordinates`: those of the world, which has Gazebo's defaults without coordinates."""
    flag = "<useWorldSphericalCoordinates>true</useWorldSphericalCoordinates>"
    gps = make_plugin("libhector_gazebo_ros_gps.so", flag)
    assert load(make_world(gps, "")).environment.origin == Origin(0.0, 0.0, 0.0, 0.0)
    given = make_plugin("libhector_gazebo_ros_gps.so", f"{flag}<referenceLatitude>47.4</referenceLatitude>")
    assert not any("reference" in reason for _, reason in list_notes(load(make_world(given))))
    magnetometer = make_plugin("libhector_gazebo_ros_magnetic.so", flag)
    x, y = compute_horizontal_field(load(make_world(magnetometer, "")))
    assert (abs(x) < 1e-20, y > 2e-5) == (True, True)


@pytest.mark.parametrize(
    ("heading", "expected"),
    [(0.0, (1e-5, 2e-5)), (90.0, (2e-5, -1e-5)), (180.0, (-1e-5, -2e-5)), (270.0, (-2e-5, 1e-5))],
)
def test_rotors_field_has_the_heading_of_the_world(load: Load, heading: float, expected: tuple[float, float]) -> None:
    """heading_deg is from east to x, counter-clockwise: at 90 degrees x is north and y is west."""
    place = "<latitude_deg>47.4</latitude_deg><longitude_deg>8.5</longitude_deg>"
    place = f"<spherical_coordinates>{place}<heading_deg>{heading}</heading_deg></spherical_coordinates>"
    body = "<linkName>board</linkName><refMagNorth>2e-5</refMagNorth><refMagEast>1e-5</refMagEast>"
    world = load(make_world(make_plugin("librotors_gazebo_magnetometer_plugin.so", body), place))
    assert compute_horizontal_field(world) == pytest.approx(expected, rel=1e-12, abs=0.0)
    bare = load(make_world(make_plugin("librotors_gazebo_magnetometer_plugin.so", body), ""))
    assert compute_horizontal_field(bare) == (1e-5, 2e-5)


# gazebo_ros_pkgs


def test_ros1_imu_of_a_model(load: Load) -> None:
    body = (
        "<robotNamespace>r1</robotNamespace><bodyName>board</bodyName><topicName>imu/data</topicName>"
        "<gaussianNoise>0.01</gaussianNoise><updateRate>50</updateRate><frameName>imu_frame</frameName>"
        "<xyzOffset>0.5 0 0</xyzOffset><rpyOffset>0 0 1.5707963267948966</rpyOffset><alwaysOn>true</alwaysOn>"
        "<serviceName>s</serviceName>"
    )
    (sensor,) = load(make_world(make_plugin("libgazebo_ros_imu.so", body))).sensors
    axis = Noise(stddev=0.01)
    assert sensor.spec == Imu(axis, axis, axis, axis, axis, axis, reference=(1.0, 0.0, 0.0, 0.0))
    assert (sensor.rate, sensor.topic, sensor.frame) == (50.0, "/r1/imu/data", "imu_frame")
    assert sensor.pose.position == (0.5, 0.0, 0.0)
    assert sensor.pose.rotation == pytest.approx((math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)), rel=1e-12, abs=0.0)


def test_ros1_imu_of_a_model_measures_gravity_and_the_code_of_its_plugin_does_not(load: Load) -> None:
    world = load(make_world(make_plugin("libgazebo_ros_imu.so", "<bodyName>board</bodyName>")))
    (sensor,) = world.sensors
    assert isinstance(sensor.spec, Imu)
    run = ns.simulate(world, duration=0.1)
    assert run[sensor.name]["linear_acceleration"][-1] == pytest.approx((0.0, 0.0, 9.8), rel=1e-12, abs=1e-12)
    assert ("warning", NO_GRAVITY) in list_notes(world)
    hector = load(make_world(make_plugin("libhector_gazebo_ros_imu.so", "<bodyName>board</bodyName>")))
    assert NO_GRAVITY not in dict(map(reversed, list_notes(hector)))


def load_sensor(load: Load, wrap_in_link: Text, kind: str, inside: str) -> tuple[World, MountedSensor]:
    world = load(
        wrap_in_link(f'<sensor name="s" type="{kind}">{inside}</sensor>').replace("<model", f"{PLACE}<model", 1)
    )
    return world, world.sensors[0]


def test_ros1_imu_of_a_sensor(load: Load, wrap_in_link: Text) -> None:
    """Noise of the plug-in and of the sensor add up as variances; the slower of two rates applies."""
    noise = '<noise type="gaussian"><stddev>0.03</stddev><bias_mean>1</bias_mean></noise>'
    own = f"<imu><angular_velocity><x>{noise}</x></angular_velocity></imu>"
    body = (
        "<topicName>imu</topicName><frameName>f</frameName><gaussianNoise>0.04</gaussianNoise>"
        "<updateRateHZ>20</updateRateHZ><bodyName>b</bodyName><xyzOffset>0 0 0</xyzOffset>"
    )
    plugin = make_plugin("libgazebo_ros_imu_sensor.so", body)
    _, sensor = load_sensor(load, wrap_in_link, "imu", f"<update_rate>100</update_rate>{own}{plugin}")
    assert isinstance(sensor.spec, Imu)
    assert sensor.spec.angular_velocity_x == Noise(stddev=0.05, bias_mean=1.0)
    assert sensor.spec.linear_acceleration_z == Noise(stddev=0.04)
    assert sensor.spec.reference == (1.0, 0.0, 0.0, 0.0)
    assert (sensor.rate, sensor.topic, sensor.frame) == (20.0, "/auv/imu", "f")
    flag = "<initialOrientationAsReference>true</initialOrientationAsReference>"
    initial = make_plugin("libgazebo_ros_imu_sensor.so", body + flag)
    _, sensor = load_sensor(load, wrap_in_link, "imu", f"<update_rate>10</update_rate>{initial}")
    assert isinstance(sensor.spec, Imu)
    assert sensor.spec.reference is None
    assert sensor.rate == 10.0
    frame = "<imu><orientation_reference_frame><localization>NED</localization></orientation_reference_frame></imu>"
    world, sensor = load_sensor(load, wrap_in_link, "imu", frame + initial)
    assert isinstance(sensor.spec, Imu)
    without = load_sensor(load, wrap_in_link, "imu", frame)[1].spec
    assert isinstance(without, Imu)
    assert sensor.spec.reference == without.reference is not None
    assert not [note for note in world.notes if "orientation_reference_frame" in note.what]
    world, sensor = load_sensor(load, wrap_in_link, "imu", frame + plugin)
    assert isinstance(sensor.spec, Imu)
    assert sensor.spec.reference == (1.0, 0.0, 0.0, 0.0)
    (note,) = (note for note in world.notes if "orientation_reference_frame" in note.what)
    assert note.kind == "unsupported"
    assert ("warning", NO_FRAME) not in list_notes(world)
    frameless = make_plugin("libgazebo_ros_imu_sensor.so", body.replace("<frameName>f</frameName>", ""))
    world, sensor = load_sensor(load, wrap_in_link, "imu", frameless)
    assert sensor.frame == sensor.name
    assert ("warning", NO_FRAME) in list_notes(world)
    named = make_plugin("libgazebo_ros_imu_sensor.so", f"{body}<robotNamespace>/r/</robotNamespace>")
    assert load_sensor(load, wrap_in_link, "imu", named)[1].topic == "/r/imu"


@pytest.mark.parametrize("body", ["<robotNamespace>bot</robotNamespace>", "<bodyName>auv</bodyName>"])
def test_every_element_of_ros1_makes_an_imu_one_of_ros1(load: Load, wrap_in_link: Text, body: str) -> None:
    """gazebo_plugins, `gazebo_ros_imu_sensor.cpp` for ROS 1: the defaults are 1 Hz and the topic `imu_data`."""
    _, sensor = load_sensor(load, wrap_in_link, "imu", make_plugin("libgazebo_ros_imu_sensor.so", body))
    assert sensor.rate == 1.0
    assert sensor.topic == ("/bot/imu_data" if "bot" in body else "/auv/imu_data")


ROS2_IMU = '<plugin name="p" filename="libgazebo_ros_imu_sensor.so">{}</plugin>'
ROS2_CAMERA = '<plugin name="p" filename="libgazebo_ros_camera.so">{}<camera_name>front</camera_name></plugin>'


@pytest.mark.parametrize(
    ("kind", "plugin", "topic"),
    [
        ("imu", ROS2_IMU.format("<ros><remapping>~/out:=imu</remapping></ros>"), "/husky/imu"),
        ("imu", ROS2_IMU.format("<ros><namespace>r</namespace></ros>"), "/r/p/out"),
        ("imu", ROS2_IMU.format(""), "/husky/p/out"),
        ("imu", ROS2_IMU.format("<topicName>imu</topicName>"), "/husky/imu"),
        ("camera", ROS2_CAMERA.format("<ros><namespace>/r</namespace></ros>"), "/r/front/camera_info"),
        ("camera", ROS2_CAMERA.format("<ros/>"), "/husky/front/camera_info"),
        ("camera", ROS2_CAMERA.format(""), "/husky/front/camera_info"),
    ],
)
def test_namespace_of_the_caller_is_that_of_ros2_plugins(
    load: Load, wrap_in_link: Text, kind: str, plugin: str, topic: str
) -> None:
    text = wrap_in_link(f'<sensor name="s" type="{kind}">{plugin}</sensor>')
    assert load(text, namespace="husky").sensors[0].topic == topic


@pytest.mark.parametrize(
    ("ros", "topic"),
    [
        ("<ros><namespace>/r2</namespace><remapping>~/out:=imu/data</remapping></ros>", "/r2/imu/data"),
        ("<ros><namespace>r2</namespace><remapping>~/out:=/imu</remapping></ros>", "/imu"),
        ("<ros><remapping>~/vel:=v</remapping></ros>", "/p/out"),
        ("<ros><namespace>/r2</namespace></ros>", "/r2/p/out"),
        ("<ros><argument>--ros-args --remap ~/out:=x</argument></ros>", "/x"),
        ("<ros><namespace>/r2</namespace><remapping>/r2/p/out:=~/data</remapping></ros>", "/r2/p/data"),
        ("", "/p/out"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "file"), [("imu", "libgazebo_ros_imu_sensor.so"), ("gps", "libgazebo_ros_gps_sensor.so")]
)
def test_ros2_topics(load: Load, wrap_in_link: Text, kind: str, file: str, ros: str, topic: str) -> None:
    plugin = make_plugin(file, f"{ros}<frame_name>f</frame_name>")
    _, sensor = load_sensor(load, wrap_in_link, kind, f"<topic>other</topic>{plugin}")
    assert (sensor.topic, sensor.frame) == (topic, "f")


@pytest.mark.parametrize(
    ("file", "remapping", "topic"),
    [
        ("libgazebo_ros_imu_sensor.so", "out:=imu_data", "/demo/p/out; remap ~/out"),
        ("libgazebo_ros_camera.so", "~/camera_info:=ci", "/demo/s/camera_info; remap s/camera_info"),
        ("libgazebo_ros_diff_drive.so", "cmdvel:=go", "/demo/cmd_vel; remap cmd_vel"),
        ("libgazebo_ros_imu_sensor.so", "~/out:=imu_data", ""),
        ("libgazebo_ros_imu_sensor.so", "/demo/p/out:=imu_data", ""),
        ("libgazebo_ros_camera.so", "s/image_raw:=image", ""),
        ("libgazebo_ros_diff_drive.so", "odom:=odom_demo", ""),
    ],
)
def test_remapping_that_changes_no_topic_is_a_warning(
    load: Load, wrap_in_link: Text, file: str, remapping: str, topic: str
) -> None:
    plugin = make_plugin(file, f"<ros><namespace>demo</namespace><remapping>{remapping}</remapping></ros>")
    kind = "camera" if "camera" in file else "imu"
    sensor = wrap_in_link(f'<sensor name="s" type="{kind}">{plugin}</sensor>')
    world = load(make_world(plugin) if "drive" in file else sensor)
    reasons = [note.reason for note in world.notes if note.what == f"<ros><remapping>: {remapping}"]
    assert reasons == ([f"has no effect: the topic of the plug-in is {topic}"] if topic else [])


@pytest.mark.parametrize(("tag", "known"), [("namspace", "namespace"), ("remaping", "remapping")])
def test_misspelt_name_in_ros_is_reported(
    load: Load, list_problems: ListProblems, wrap_in_link: Text, tag: str, known: str
) -> None:
    """It is an error where other elements of the plug-in are, a warning in a camera and in a drive."""
    ros = f"<ros><{tag}>a</{tag}></ros>"
    imu = make_plugin("libgazebo_ros_imu_sensor.so", ros)
    remedy = f"did you mean {known}?"
    problem = f"<ros><{tag}>; is not allowed here; {remedy}"
    assert list_problems(wrap_in_link(f'<sensor name="s" type="imu">{imu}</sensor>'))[0].endswith(problem)
    camera = make_plugin("libgazebo_ros_camera.so", ros)
    drive = make_plugin("libgazebo_ros_diff_drive.so", ros)
    for text in (wrap_in_link(f'<sensor name="s" type="camera">{camera}</sensor>'), make_world(drive)):
        (note,) = (note for note in load(text).notes if note.what == f"<ros><{tag}>")
        assert (note.kind, note.reason) == ("warning", f"is ignored: it is unknown here; {remedy}")


def make_scan(span: float) -> str:
    ends = f"<min_angle>{-span / 2}</min_angle><max_angle>{span / 2}</max_angle>"
    scan = f"<scan><horizontal><samples>5</samples>{ends}</horizontal></scan>"
    noise = "<noise><type>gaussian</type><stddev>0.03</stddev></noise>"
    return f"<ray>{scan}<range><min>0.1</min><max>8</max></range>{noise}</ray>"


def test_ros2_ray_sensor_is_one_range(load: Load, wrap_in_link: Text) -> None:
    body = "<ros><remapping>~/out:=sonar</remapping></ros><radiation_type>ultrasound</radiation_type>"
    range_plugin, scan_plugin = (
        make_plugin("libgazebo_ros_ray_sensor.so", f"{body}<output_type>sensor_msgs/{name}</output_type>")
        for name in ("Range", "LaserScan")
    )
    _, sensor = load_sensor(load, wrap_in_link, "ray", make_scan(2.0) + range_plugin)
    assert isinstance(sensor.spec, Range)
    assert sensor.spec.ros_plugin
    assert sensor.spec.sound is not None
    assert sensor.topic == "/sonar"
    _, sensor = load_sensor(load, wrap_in_link, "ray", make_scan(0.2) + scan_plugin)
    assert isinstance(sensor.spec, Range)
    assert not sensor.spec.ros_plugin
    text = wrap_in_link(f'<sensor name="s" type="ray">{make_scan(2.0)}{scan_plugin}</sensor>')
    assert load(text).sensors == ()


def test_ros1_ray_sensor_is_one_range(load: Load, wrap_in_link: Text) -> None:
    """gazebo_plugins, `gazebo_ros_ray_sensor.cpp` of Noetic: `outputType` and `radiationType`, topic and frame."""
    body = "<robotNamespace>auv</robotNamespace><topicName>sonar</topicName><frameName>nose</frameName>"
    kind = "<outputType>sensor_msgs/Range</outputType><radiationType>ultrasound</radiationType>"
    plugin = make_plugin("libgazebo_ros_ray_sensor.so", f"{body}{kind}<minIntensity>3</minIntensity>")
    world, sensor = load_sensor(load, wrap_in_link, "ray", make_scan(2.0) + plugin)
    assert isinstance(sensor.spec, Range)
    assert (sensor.spec.ros_plugin, sensor.topic, sensor.frame) == (True, "/auv/sonar", "nose")
    assert sensor.spec.sound is not None
    assert any(note.what == "<plugin><minIntensity>" for note in world.notes)


def test_hector_sonar(load: Load, wrap_in_link: Text) -> None:
    body = "<gaussianNoise>0.04</gaussianNoise><drift>0.1</drift><offset>0.2</offset><topicName>front</topicName>"
    plugin = make_plugin("libhector_gazebo_ros_sonar.so", body)
    _, sensor = load_sensor(load, wrap_in_link, "ray", f"<update_rate>40</update_rate>{make_scan(2.0)}{plugin}")
    assert isinstance(sensor.spec, Range)
    noise = sensor.spec.range_noise
    assert (noise.stddev, noise.mean) == (0.05, 0.2)
    assert noise.dynamic_bias_stddev * math.sqrt(1800.0) == pytest.approx(0.1, rel=1e-14, abs=0.0)
    assert sensor.spec.sound is not None
    assert (sensor.rate, sensor.topic, sensor.frame) == (10.0, "/front", "sonar_link")


# errors and extensions


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (
            make_plugin("libhector_gazebo_ros_imu.so", "<accelNoise>1</accelNoise>"),
            "<plugin><accelNoise>; is not allowed here",
        ),
        (
            make_plugin("libhector_gazebo_ros_imu.so", "<accelDrift>1 2</accelDrift>"),
            "<plugin><accelDrift>: 1 2; must be 1 or 3 finite numbers of absolute value below 1e+100",
        ),
        (
            make_plugin("libhector_gazebo_ros_imu.so", "<accelDrift>-1</accelDrift>"),
            "<plugin><accelDrift>: -1; must be >= 0",
        ),
        (make_plugin("libgazebo_ros_imu.so", ""), "<plugin><bodyName>: missing; must be given"),
        (make_plugin("libgazebo_ros_imu.so", "<bodyName>x</bodyName>"), "<plugin><bodyName>: x; must be one of base"),
        (
            make_plugin(
                "libgazebo_imu_plugin.so",
                "<linkName>board</linkName><gyroscopeBiasCorrelationTime>0</gyroscopeBiasCorrelationTime>",
            ),
            "<plugin><gyroscopeBiasCorrelationTime>: 0; must be > 0, or the random walk must be 0",
        ),
        (
            make_plugin("libgazebo_magnetometer_plugin.so", "<biasCorrelationTime>0</biasCorrelationTime>"),
            "<plugin><biasCorrelationTime>: 0; must be > 0, or the random walk must be 0",
        ),
        (
            make_plugin("libgazebo_magnetometer_plugin.so", "<pubRate>fast</pubRate>"),
            "<plugin><pubRate>: fast; must be a finite number",
        ),
        (
            make_plugin("libhector_gazebo_ros_gps.so", "<referenceLatitude>499</referenceLatitude>"),
            "<plugin><referenceLatitude>: 499; must be from -90 to 90",
        ),
        (
            make_plugin("libhector_gazebo_ros_gps.so", "<referenceHeading>4e3</referenceHeading>"),
            "<plugin><referenceHeading>: 4e3; must be from -3600 to 3600",
        ),
        (
            make_plugin("libgazebo_ros_imu.so", "<bodyName>base</bodyName><gaussianNoise>1e300</gaussianNoise>"),
            "<plugin><gaussianNoise>: 1e300; must be 1 or 6 finite numbers of absolute value below 1e+100",
        ),
    ],
)
def test_invalid_plugins_are_reported(list_problems: ListProblems, plugin: str, problem: str) -> None:
    (line,) = list_problems(make_world(plugin))
    assert line.startswith(f"dive.sdf:3: {problem}")


def test_origin_out_of_range_is_the_only_problem(list_problems: ListProblems) -> None:
    """The receiver has a place on earth then, so it adds no second problem."""
    gps = make_plugin("libhector_gazebo_ros_gps.so", "<referenceLatitude>499</referenceLatitude>")
    assert len(list_problems(make_world(gps, ""))) == 1


def test_correlation_time_without_a_bias_is_no_error(load: Load) -> None:
    """A noise without a random walk equals one without its correlation time."""
    walk = "<gyroscopeRandomWalk>0</gyroscopeRandomWalk>"
    imu = make_plugin("librotors_gazebo_imu_plugin.so", f"<linkName>base</linkName>{walk}")
    (sensor,) = load(make_world(imu)).sensors
    assert isinstance(sensor.spec, Imu)
    assert sensor.spec.angular_velocity_x.dynamic_bias_correlation_time == 0.0
    assert sensor.spec.linear_acceleration_x.dynamic_bias_correlation_time == 300.0
    time = "<gyroscopeBiasCorrelationTime>0</gyroscopeBiasCorrelationTime>"
    assert load(make_world(imu.replace(walk, walk + time))).sensors[0].spec == sensor.spec


@pytest.mark.parametrize(
    ("name", "link"),
    [("board", "board"), ("robot::board", "board"), ("part::tip", "part::tip"), ("robot::part::tip", "part::tip")],
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_links_of_plugins_have_the_names_of_gazebo(load: Load, name: str, link: str, *, is_nested: bool) -> None:
    """A name is one in the model of the plug-in, or a full name."""
    plugin = make_plugin("libgazebo_ros_imu.so", f"<bodyName>{name}</bodyName>")
    part = '<model name="part"><link name="tip"/></model>'
    text = make_world(part + plugin)
    if is_nested:
        if not name.startswith("robot"):
            plugin = plugin.replace(name, name.removeprefix("part::")).replace("board", "tip")
            link = "part::tip"
        text = make_world(part.replace("</model>", f"{plugin}</model>"))
    (sensor,) = load(text).sensors
    assert sensor.link == f"robot::{link}"


def test_unknown_link_of_a_plugin_lists_the_names_that_are_accepted(list_problems: ListProblems) -> None:
    plugin = make_plugin("libgazebo_ros_imu.so", "<bodyName>tib</bodyName>")
    text = make_world(f'<model name="part"><link name="tip"/>{plugin}</model>')
    allowed = "must be one of robot::base, robot::board, tip; did you mean tip?"
    assert list_problems(text) == [f"dive.sdf:3: <plugin><bodyName>: tib; {allowed}"]


@pytest.mark.parametrize("first", [make_plugin("libgazebo_ros_imu.so", "<bodyName>base</bodyName>"), ""])
def test_name_of_a_plugin_is_unique_in_its_link(list_problems: ListProblems, first: str) -> None:
    """The first sensor of the name is a plug-in, or a `<sensor>` of the link."""
    second = make_plugin("libhector_gazebo_ros_imu.so", "<bodyName>base</bodyName>")
    text = make_world(f"{first}\n{second}")
    if not first:
        sensor = '<link name="base"><sensor name="p" type="imu"/></link>'
        text = text.replace('<link name="base"/>', sensor)
    line = 3 if first else 2
    allowed = f"must be unique among the sensors of its link; first at dive.sdf:{line}; rename one"
    assert list_problems(text) == [f"dive.sdf:4: <plugin name>: p; {allowed}"]


def test_elements_of_navsense_in_a_plugin(load: Load) -> None:
    """A converted plug-in may have a clock, a fidelity and a part, as a sensor."""
    body = "<navsense:fidelity>classic</navsense:fidelity><navsense:part>stim300</navsense:part><clock>c</clock>"
    text = make_world(make_plugin("libhector_gazebo_ros_imu.so", body))
    (sensor,) = load(text.replace('<link name="base"/>', '<link name="base"><clock name="c"/></link>')).sensors
    assert isinstance(sensor.spec, Imu)
    assert sensor.spec.angular_velocity_x.noise_density == Imu.from_part("stim300").angular_velocity_x.noise_density
    assert sensor.spec.angular_velocity_x.classic
    assert sensor.clock == "robot::base::c"


# files of others


def read_shared(shared_data: Path, name: str) -> str:
    path = shared_data / "plugins" / name
    if not path.is_file():
        pytest.skip(f"needs {path}")
    return path.read_text(encoding="utf-8")


def check_white_noise(world: World) -> None:
    """Check the white noise of every reading of 20 s against that of its specification.

    The deviation of n samples has the relative error 1 / sqrt(2 n), so 6 of them are exceeded at a rate of 2e-9 for
    each comparison. The models of the tests have at most 20 channels with noise: a false alarm has a rate of 4e-8.
    """
    readings = ns.simulate(world, 20.0, seed=2)
    for sensor in world.sensors:
        reading = readings[sensor.name]
        for key, noises in sensor.spec.noise().items():
            if key in ("latitude", "longitude"):
                continue  # in metres, by `compute_errors`
            rounding = 4.0 * float(np.spacing(np.abs(reading[key]).max()))
            error = np.asarray(reading[key] - reading.ideal[key] - reading.bias[key]).reshape(len(reading.time), -1)
            for column, noise in zip(error.T, noises, strict=True):
                expected = noise.white_stddev(sensor.rate)
                assert abs(column.std() - expected) <= 6.0 * expected / math.sqrt(2.0 * len(column)) + rounding


@pytest.mark.requirement("SDF-2")
def test_jackal_robot(load: Load, shared_data: Path) -> None:
    text = read_shared(shared_data, "jackal.gazebo")
    text = re.sub(r"\$\(optenv \S+ (\S+)\)", r"\1", text)
    names = ("chassis_link", "imu_link", "navsat_link", "front_fender_link", "rear_fender_link")
    links = "".join(
        f'<link name="{name}"/><joint name="{name}_j" type="fixed"><parent link="base_link"/>'
        f'<child link="{name}"/></joint>'
        for name in names
    )
    world = load(text.replace("<robot>", f'<robot name="jackal"><link name="base_link"/>{links}'))
    imu, gps = world.sensors
    assert (imu.name, imu.topic, imu.rate) == ("jackal::imu_link::imu_controller", "/imu/data", 50.0)
    assert (gps.topic, gps.rate, gps.frame) == ("/navsat/fix", 40.0, "base_link")
    assert world.environment.origin == Origin(math.radians(49.9), math.radians(8.9), 0.0, 0.0)
    check_white_noise(world)


@pytest.mark.requirement("SDF-2")
@pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="needs the extra xacro")
def test_hector_quadrotor(shared_data: Path, tmp_path: Path) -> None:
    text = read_shared(shared_data, "hector_quadrotor_sensors.gazebo.xacro")
    arguments = '<xacro:arg name="base_link_frame" default="base_link"/><xacro:arg name="world_frame" default="world"/>'
    text = text.replace("<xacro:macro", f'{arguments}<link name="base_link"/><xacro:macro', 1)
    text = text.replace("</robot>", "<xacro:quadrotor_sensors/></robot>").replace("<robot ", '<robot name="quad" ', 1)
    path = tmp_path / "quad.urdf.xacro"
    path.write_text(text, encoding="utf-8")
    world = sdf.load(path)
    assert [(sensor.spec.type, sensor.rate, sensor.topic) for sensor in world.sensors] == [
        ("imu", 100.0, "/raw_imu"),
        ("altimeter", 10.0, "/pressure_height"),
        ("magnetometer", 10.0, "/magnetic"),
        ("navsat", 4.0, "/fix"),
    ]
    magnetometer = world.sensors[2].spec
    assert isinstance(magnetometer, Magnetometer)
    assert magnetometer.x.stddev == pytest.approx(
        1.3e-2 * math.hypot(5.5645e-6, 22.8758e-6, 42.3884e-6), rel=1e-12, abs=0.0
    )
    check_white_noise(world)


@pytest.mark.requirement("SDF-2")
@pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="needs the extra xacro")
def test_rotors_firefly(shared_data: Path, tmp_path: Path) -> None:
    text = read_shared(shared_data, "rotors_component_snippets.xacro")
    macros = ("imu", "gps", "magnetometer", "pressure_sensor")
    calls = "".join(f'<xacro:default_{name} namespace="fly" parent_link="base"/>' for name in macros)
    text = text.replace("</robot>", f'<link name="base"/>{calls}</robot>').replace("<robot ", '<robot name="fly" ', 1)
    (tmp_path / "fly.urdf.xacro").write_text(text, encoding="utf-8")
    world_file = tmp_path / "world.sdf"
    include = "<include><uri>fly.urdf.xacro</uri></include>"
    world_file.write_text(f'<sdf version="1.6"><world name="w">{PLACE}{include}</world></sdf>', encoding="utf-8")
    world = sdf.load(world_file, path=tmp_path, expand_xacro=True)
    by_type = {sensor.spec.type: sensor for sensor in world.sensors}
    assert {kind: sensor.topic for kind, sensor in by_type.items()} == {
        "imu": "/fly/imu",
        "navsat": "/fly/gps",
        "magnetometer": "/fly/magnetic_field",
        "air_pressure": "/fly/air_pressure",
    }
    imu = by_type["imu"].spec
    assert isinstance(imu, Imu)
    assert imu.angular_velocity_x == Noise(
        noise_density=0.0003394,
        dynamic_bias_stddev=0.000038785,
        dynamic_bias_correlation_time=1000.0,
        bias_stddev=0.0087,
    )
    assert not imu.orientation
    check_white_noise(world)


@pytest.mark.requirement("SDF-2")
def test_px4_iris(shared_data: Path, tmp_path: Path) -> None:
    """The template has only numbers of ports between its braces."""
    text = re.sub(r"\{\{.*?\}\}", "0", read_shared(shared_data, "px4_iris.sdf.jinja"))
    folder = tmp_path / "gps"
    folder.mkdir()
    config = '<?xml version="1.0"?><model><name>gps</name><sdf version="1.6">model.sdf</sdf></model>'
    (folder / "model.config").write_text(config, encoding="utf-8")
    (folder / "model.sdf").write_text(read_shared(shared_data, "px4_gps.sdf"), encoding="utf-8")
    (tmp_path / "iris.sdf").write_text(re.sub(r"\{%.*?%\}", "", text), encoding="utf-8")
    world = sdf.load(tmp_path / "iris.sdf", path=tmp_path)
    assert {sensor.spec.type: (sensor.rate, sensor.topic) for sensor in world.sensors} == {
        "navsat": (5.0, "/world/iris/model/iris/model/gps0/link/link/sensor/gps/navsat"),
        "magnetometer": (100.0, "/mag"),
        "air_pressure": (50.0, "/baro"),
        "imu": (1000.0, "/imu"),
    }
    assert world.environment.origin == Origin(math.radians(47.397742), math.radians(8.545594), 488.0, 0.0)
    check_white_noise(world)


@pytest.mark.requirement("SDF-2")
def test_new_px4_model_has_plain_sensors(shared_data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "x500_base"
    folder.mkdir()
    config = '<?xml version="1.0"?><model><name>x</name><sdf version="1.9">model.sdf</sdf></model>'
    (folder / "model.config").write_text(config, encoding="utf-8")
    (folder / "model.sdf").write_text(read_shared(shared_data, "px4_x500_base.sdf"), encoding="utf-8")
    include = "<include><uri>model://x500_base</uri></include>"
    (tmp_path / "w.sdf").write_text(f'<sdf version="1.9"><world name="w">{PLACE}{include}</world></sdf>', "utf-8")
    world = sdf.load(tmp_path / "w.sdf", path=tmp_path, missing="skip")
    assert {sensor.spec.type: sensor.rate for sensor in world.sensors} == {
        "air_pressure": 50.0,
        "magnetometer": 100.0,
        "imu": 250.0,
        "navsat": 30.0,
    }
    check_white_noise(world)

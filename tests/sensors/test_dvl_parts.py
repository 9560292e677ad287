"""Parts of the catalogue as Doppler instruments; their values equal the cited files."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import MissingDeviationError, SdfError, SensorError
from navsense.description import describe
from navsense.noise.specification import Noise
from navsense.sensors import Dvl, Imu, catalogue
from navsense.sensors.doppler import BeamWeighting, Transducer, WaterMassLayer
from navsense.sensors.dvl import TrackMode
from navsense.sensors.range import Cone

PARTS = tuple(name for name in catalogue.list_parts() if catalogue.load_part(name).sensor == "dvl")

WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">
<model name="m"><link name="l"><sensor
name="s" type="dvl"><update_rate>7</update_rate>
{inside}
</sensor></link></model></world></sdf>"""


def load_spec(folder: Path, inside: str) -> Dvl:
    path = folder / "w.sdf"
    path.write_text(WORLD.format(inside=inside), encoding="utf-8")
    (sensor,) = ns.load(path).sensors
    assert isinstance(sensor.spec, Dvl)
    return sensor.spec


@pytest.mark.requirement("IMU-3", "GAP-2")
def test_catalogue_has_dvls_of_several_makers_and_types() -> None:
    found = [catalogue.load_part(name) for name in PARTS]
    assert len({part.manufacturer for part in found}) >= 4
    assert {part.transducer for part in found} >= {"piston", "phased_array"}
    assert all(part.notes for part in found), "what no source prints is said"


@pytest.mark.requirement("IMU-3", "GAP-2")
def test_part_gives_a_spec() -> None:
    """The Workhorse 600 has beams at 30 degrees, 4 degrees wide, 0.7 to 90 m, with 5 and 7.5 mm/s."""
    sheet = Dvl.from_part("WHN600")
    assert (sheet.minimum_range, sheet.maximum_range, sheet.transducer) == (0.7, 90.0, Transducer.PISTON)
    assert (sheet.bottom.noise.stddev, sheet.water.noise.stddev) == (0.005, 0.0075)
    assert sheet.beams.weighting is BeamWeighting.PATTERN
    assert sheet.beams.axes[:, 2] == pytest.approx(-math.cos(math.radians(30.0)), abs=1e-15)
    azimuths = np.degrees(np.arctan2(sheet.beams.axes[:, 1], sheet.beams.axes[:, 0]))
    assert azimuths == pytest.approx([-135.0, 135.0, 45.0, -45.0], rel=1e-12, abs=0.0)
    shapes = {beam.shape for beam in sheet.beams.beams}
    assert shapes == {Cone(math.radians(4.0), 1)}
    assert sheet.water_mode is TrackMode.NEVER
    assert Dvl.from_part("explorer-1000").transducer is Transducer.PHASED_ARRAY


@pytest.mark.requirement("IMU-3", "GAP-1", "GAP-6")
def test_missing_part_values_have_defaults() -> None:
    """The A50 has beams at 22.5 degrees, altitudes of 0.05 to 50 m, limits of 3.75 m/s and 7.5 m/s (water)."""
    sheet, plain = Dvl.from_part("a50", stddev=0.01), Dvl()
    cosine = math.cos(math.radians(22.5))
    assert -sheet.beams.axes[:, 2] == pytest.approx([cosine] * 4, abs=1e-15)
    assert (sheet.minimum_range, sheet.maximum_range) == pytest.approx(
        (0.05 / cosine, 50.0 / cosine), rel=1e-12, abs=0.0
    )
    assert (sheet.bottom.long_term_offset, sheet.bottom.noise) == (0.001, Noise(stddev=0.01))
    assert (sheet.bottom.maximum_velocity, sheet.water.maximum_velocity) == (3.75, 7.5)
    assert sheet.layer == WaterMassLayer(1.5, 4.5)
    pathfinder = Dvl.from_part("pathfinder")
    assert (pathfinder.layer, pathfinder.error_velocity_limit) == (WaterMassLayer(16.0, 24.0, 8.0), 1.0)
    assert (pathfinder.minimum_range, pathfinder.maximum_range) == (plain.minimum_range, plain.maximum_range)


def test_part_of_another_sensor_type_is_an_error() -> None:
    with pytest.raises(SensorError, match="section of part bar30: bottom_track; it is of type depth"):
        Dvl.from_part("bar30")
    with pytest.raises(SensorError, match="section of part whn600: angular_velocity; it is of type dvl and has beam"):
        Imu.from_part("whn600")


@pytest.mark.requirement("IMU-3", "DOO-1")
@pytest.mark.parametrize("name", PARTS)
def test_world_file_names_a_part(tmp_path: Path, name: str) -> None:
    """The file gives the deviation of a ping if the part has no source for it."""
    part = f"<navsense:part>{name}</navsense:part>"
    if "bottom_track.noise_rms" not in catalogue.load_part(name).missing_values:
        assert load_spec(tmp_path, part) == Dvl.from_part(name)
        return
    noise = '<dvl><bottom_track><noise type="gaussian"><stddev>0.01</stddev></noise></bottom_track></dvl>'
    assert load_spec(tmp_path, part + noise) == Dvl.from_part(name, stddev=0.01)


def test_missing_deviation_of_a_part_is_detected_by_error_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, message in ((MissingDeviationError, "requires the standard deviation"), (SensorError, "is not a part")):

        def load_from_part(*_names: object, kind: type[SensorError] = kind, **_options: object) -> Dvl:
            raise kind("stddev of part")

        monkeypatch.setattr(Dvl, "from_part", load_from_part)
        with pytest.raises(SdfError, match=message):
            load_spec(tmp_path, "<navsense:part>a50</navsense:part>")


@pytest.mark.requirement("GAP-2", "GAP-9")
def test_part_without_the_deviation_of_a_ping_is_an_error(tmp_path: Path) -> None:
    """Its covariance would be 0, infinite weight in a filter. The caller's deviation replaces that of the part."""
    incomplete = [name for name in PARTS if "bottom_track.noise_rms" in catalogue.load_part(name).missing_values]
    assert incomplete == ["a50"]
    words = r'stddev of part a50; must be given .*; write Dvl.from_part\("a50", stddev'
    with pytest.raises(MissingDeviationError, match=words):
        Dvl.from_part("a50")
    with pytest.raises(SdfError, match=r"w.sdf:4: <sensor><navsense:part>: a50; requires the standard deviation of a"):
        load_spec(tmp_path, "<navsense:part>a50</navsense:part>")
    time, velocity = np.arange(5.0), np.tile([1.0, 0.0, 0.0], (5, 1))
    for name in PARTS:
        reading = Dvl.from_part(name, stddev=0.02).apply(time, velocity, seed=1)
        assert (np.diagonal(reading["velocity_covariance"][0]) > 0.02**2 / 4.0).all()
    unused = '<dvl><bottom_track when="never"/><water_track><layer near="1" far="4"/></water_track></dvl>'
    assert load_spec(tmp_path, f"{unused}<navsense:part>a50</navsense:part>").bottom_mode is TrackMode.NEVER


@pytest.mark.requirement("GAP-2", "GAP-3")
@pytest.mark.parametrize("name", PARTS)
def test_part_lists_its_missing_values(tmp_path: Path, name: str) -> None:
    """In the datasheet and in the description of a world, each required value of a DVL is set or listed."""
    figures, sheet = catalogue.load_part(name).entries, Dvl.from_part(name, stddev=0.01)
    declared_figures = {f"{channel}.{figure}" for channel, found in figures.items() for figure in found}
    if "beam.altitude" in declared_figures:
        declared_figures.add("beam.range")
    expected = {f"beam.{figure}" for figure in ("angle", "width", "range", "noise_rms")} | {"water_track.layer"}
    track = ("noise_rms", "long_term_scale", "long_term_offset", "maximum_velocity")
    expected |= {f"{channel}.{figure}" for channel in ("bottom_track", "water_track") for figure in track}
    listed = set(catalogue.load_part(name).missing_values) - {
        "transducer",
        "growth of the noise with speed",
        "strength of the echo",
    }
    assert listed == expected - declared_figures
    assert set(sheet.missing_values) == set(catalogue.load_part(name).missing_values) - {"bottom_track.noise_rms"}
    noise = '<dvl><bottom_track><noise type="gaussian"><stddev>0.01</stddev></noise></bottom_track></dvl>'
    load_spec(tmp_path, f"{noise}<navsense:part>{name}</navsense:part>")
    (line,) = (
        line
        for line in describe(ns.load(tmp_path / "w.sdf"))
        if "not simulated, because neither the part nor the world has a value: " in line
    )
    assert line.partition(": ")[2].split(", ") == list(sheet.missing_values)


@pytest.mark.requirement("GAP-2", "GAP-3")
def test_values_set_in_the_world_are_not_listed_as_missing(tmp_path: Path) -> None:
    """The description lists a missing value of a part only if the world does not set it."""
    values = """<dvl>
      <bottom_track><per_speed>0.001</per_speed><long_term_scale>0.001</long_term_scale></bottom_track>
      <water_track><layer near="3" far="9"/><maximum_velocity>9</maximum_velocity></water_track>
      <range><noise type="gaussian"><stddev>0.1</stddev></noise></range>
      <strength level="90"/>
    </dvl>"""
    load_spec(tmp_path, f"{values}<navsense:part>dvl1000</navsense:part>")
    text = "\n".join(describe(ns.load(tmp_path / "w.sdf")))
    (names,) = re.findall("neither the part nor the world has a value: (.*)", text)
    assert names.split(", ") == [
        *("bottom_track.long_term_offset", "bottom_track.maximum_velocity"),
        *("water_track.long_term_scale", "water_track.long_term_offset"),
    ]


@pytest.mark.requirement("GAP-1", "GAP-4")
def test_maximum_velocity_of_a_part_limits_the_output() -> None:
    """Above 3.75 m/s, in any direction, the A50 has no echo and no velocity, instead of a wrong one."""
    time, sheet = np.arange(6.0), Dvl.from_part("a50", stddev=0.01)
    velocity = np.array([[3.7, 0, 0], [3.8, 0, 0], [-3.0, 2.5, 0], [2.6, 2.6, 0], [1.0, 0, 3.7], [0.0, -3.7, 0]])
    reading = sheet.apply(time, velocity, seed=3)
    fast = np.linalg.norm(velocity, axis=1) > 3.75
    assert fast.tolist() == [False, True, True, False, True, False]
    assert np.array_equal(np.isnan(reading["velocity"]).all(axis=1), fast)
    assert np.array_equal(reading["velocity_mode"], np.where(fast, 0.0, 1.0))
    assert np.array_equal(reading.valid, ~fast)
    assert np.isnan(reading["beam_range"][fast]).all()
    assert np.array_equal(reading["range_validity"], np.repeat(np.where(fast, 0.0, 3.0)[:, None], 4, axis=1))
    assert reading.ideal["velocity"] == pytest.approx(velocity, abs=1e-12)


@pytest.mark.parametrize("name", PARTS)
def test_every_part_rejects_a_velocity_in_another_unit(name: str) -> None:
    """99 is a velocity in cm/s: no DVL moves at 99 m/s. 32 m/s is above the maximum velocity of the A50 only."""
    time, sheet = np.arange(6.0), Dvl.from_part(name, stddev=0.01)
    with pytest.raises(SensorError, match=r"velocity of row 0 \(m/s\): 99.0; .* look like cm/s or mm/s"):
        sheet.apply(time, np.tile([99.0, 0.0, 0.0], (6, 1)), seed=1)
    reading = sheet.apply(time, np.tile([32.0, 0.0, 0.0], (6, 1)), seed=1)
    assert reading.valid.all() == (name != "a50")


@pytest.mark.requirement("IMU-3", "DOO-1")
def test_file_values_override_the_part(tmp_path: Path) -> None:
    block = """<dvl><beams angle_deg="22.5"/><max>12</max><bottom_track><per_speed>0.01</per_speed></bottom_track>
      <water_track when="always"><layer near="2" far="5"/></water_track></dvl>"""
    found, part = load_spec(tmp_path, f"{block}<navsense:part>whn600</navsense:part>"), Dvl.from_part("whn600")
    assert found.beams.axes[:, 2] == pytest.approx(-math.cos(math.radians(22.5)), abs=1e-15)
    assert (found.minimum_range, found.maximum_range) == (part.minimum_range, 12.0)
    assert (found.bottom.noise.stddev, found.bottom.per_speed) == (0.005, 0.01)
    assert found.water == part.water
    assert found.layer == WaterMassLayer(2.0, 5.0)


def test_part_that_contradicts_the_file_is_an_error_with_line(tmp_path: Path) -> None:
    """The layer of the A50 ends at 4.5 m along the axis, beyond the range of 3 m in the file."""
    noise = '<bottom_track><noise type="gaussian"><stddev>0.01</stddev></noise></bottom_track>'
    with pytest.raises(SdfError, match=r"w.sdf:4: .*a50; does not fit the other values of the sensor: far boundary"):
        load_spec(tmp_path, f"<dvl><max>3</max>{noise}</dvl><navsense:part>a50</navsense:part>")


FILES = {
    "whn600": "teledyne_whn_dsl.sdf",
    "explorer-1000": "teledyne_explorer1000.sdf",
    "dvl500": "nortek_dvl500_6000.sdf",
    "dvl1000": "nortek_dvl1000_300.sdf",
}


@pytest.mark.requirement("IMU-3")
@pytest.mark.parametrize("name", FILES)
def test_values_equal_the_cited_files(shared_data: Path, name: str) -> None:
    """DAVE's SDF models repeat the figures of its xacros, element by element."""
    text = (shared_data / "dave" / FILES[name]).read_text(encoding="utf-8")
    figures = catalogue.load_part(name).entries

    def number(tag: str) -> float:
        return float(re.findall(rf"<{tag}>([^<]+)</{tag}>", text)[0])

    assert figures["beam"]["angle"].printed == (number("beamAngleDeg"),)
    assert figures["beam"]["width"].printed == (number("beamWidthDeg"),)
    assert figures["beam"]["range"].printed == (number("minRange"), number("maxRange"))
    assert figures["bottom_track"]["noise_rms"].printed == (number("gaussianNoiseBeamVel"),)
    assert figures["water_track"]["noise_rms"].printed == (number("gaussianNoiseBeamWtrVel"),)
    assert figures["bottom_track"]["output_rate"].printed == (number("updateRateHZ"),)

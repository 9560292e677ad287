"""Device logs from recordings equal those of the same run, with a list of the losses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import navsense as ns
from navsense import recordings
from navsense.core.errors import NavsenseError, RecordingError
from navsense.core.readings import TimeSlice
from navsense.devices import nmea, pd0, waterlinked
from navsense.environment.water import Water
from navsense.recordings.convert import convert
from navsense.recordings.info import RecordedRun
from navsense.recordings.world_json import has_heading_and_water, world_to_json
from navsense.sensors.doppler import MessageDialect
from navsense.world import World

EPOCH = 1767225600
HEADING = 30.0

SEA = f"""\
<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
  <world name="sea">
    <spherical_coordinates>
      <surface_model>EARTH_WGS84</surface_model> <world_frame_orientation>ENU</world_frame_orientation>
      <latitude_deg>56</latitude_deg> <longitude_deg>3</longitude_deg> <elevation>0</elevation>
      <heading_deg>{HEADING}</heading_deg>
    </spherical_coordinates>
    <navsense:water surface="2">
      <point depth="0" temperature="285" salinity="34"/> <point depth="20" temperature="281" salinity="35"/>
    </navsense:water>
    <navsense:current><uniform>0.3 -0.2 0</uniform></navsense:current>
    <model name="bed">
      <static>true</static> <pose>0 0 -12 0 0 0</pose>
      <link name="ground"><collision name="c"><geometry><plane/></geometry></collision></link>
    </model>
    <model name="auv">
      <pose>1 2 -3 0.05 -0.03 0.7</pose>
      <link name="base">
        <clock name="quartz"><noise type="gaussian"><stddev>1e-4</stddev><bias_stddev>1e-3</bias_stddev></noise></clock>
        <sensor name="dvl.v2" type="dvl">
          <update_rate>5</update_rate> <clock>quartz</clock>
          <dvl>
            <max>60</max>
            <bottom_track when="always"><noise type="gaussian"><stddev>0.01</stddev></noise></bottom_track>
            <water_track when="always"><layer near="2" far="6" minimum_size="1"/></water_track>
          </dvl>
        </sensor>
        <sensor name="adcp" type="adcp"><update_rate>1</update_rate><clock>quartz</clock></sensor>
        <sensor name="imu" type="imu"><update_rate>20</update_rate></sensor>
      </link>
    </model>
  </world>
</sdf>
"""

DVL, ADCP, IMU = "auv::base::dvl.v2", "auv::base::adcp", "auv::base::imu"
EXACT = ("a.dvl.v2.pd0", "a.dvl.v2.ship.pd0", "a.adcp.pd0", "a.dvl.v2.pd6", "a.adcp.pd6", "a.dvl.v2.nmea")
JSON = "a.dvl.v2.wl.json"

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400)]  # kernels may have to be compiled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one run in every format, and its device logs."""
    place = tmp_path_factory.mktemp("devices")
    (place / "sea.sdf").write_text(SEA, encoding="utf-8")
    names = ("a.npz", "a.mcap", "a.parquet", "t.csv", "b.db3", "a.bag", *EXACT, JSON)
    ns.record(ns.load(place / "sea.sdf"), [place / name for name in names], 3.0, seed=4, epoch=EPOCH)
    return place


@pytest.mark.requirement("REC-1:convert", "REC-1:devices")
@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "t", "a.mcap", "b", "a.bag"])
def test_converted_device_log_has_the_same_bytes(folder: Path, tmp_path: Path, name: str) -> None:
    """Attitudes, depths and water temperature come from the world, not from readings."""
    for sent in EXACT:
        assert convert(folder / name, tmp_path / sent).path.read_bytes() == (folder / sent).read_bytes(), sent
    (part,) = pd0.decode((folder / EXACT[0]).read_bytes()).blocks
    assert len(part) > 10
    assert np.isfinite(part.arrays["bottom_velocity"]).any()
    heading = 90.0 - HEADING - np.degrees(0.7)
    assert np.abs(np.degrees(part.arrays["heading"]) - heading).max() < 0.01
    assert np.abs(part.arrays["temperature"] - 284.0).max() < 0.02  # 5 m deep
    assert set(part.arrays["depth"]) == {5.0}
    result = convert(folder / name, tmp_path / JSON).path.read_bytes()
    if name not in ("a.mcap", "b", "a.bag"):
        assert result == (folder / JSON).read_bytes()


@pytest.mark.requirement("REC-1:convert", "REC-1:devices")
def test_losses_from_messages_in_device_reports(folder: Path, tmp_path: Path) -> None:
    """Their times are integer nanoseconds; all other values are bitwise equal."""
    convert(folder / "a.mcap", tmp_path / JSON)
    found, known = (map(json.loads, (place / JSON).read_text().splitlines()) for place in (tmp_path, folder))
    for one, other in zip(found, known, strict=True):
        assert abs(one.pop("time") - other.pop("time")) <= 2.1e-6  # ms
        assert one == other
    arrays, skipped = waterlinked.decode((tmp_path / JSON).read_bytes())
    assert not skipped
    assert len(arrays["velocity"]) > 10


@pytest.mark.requirement("REC-1:devices")
@pytest.mark.parametrize("mounting", ["0 1.5707963267948966 0", "0 0 3.0", "2.5 -0.4 1.2"])
def test_device_log_does_not_depend_on_the_pose_of_the_link(tmp_path: Path, mounting: str) -> None:
    """A robot of the UUV Simulator has its DVL on a link that is pitched by 90 degrees."""
    noise = '<noise type="gaussian"><stddev>0.01</stddev></noise>'
    sea = SEA.replace(" <clock>quartz</clock>\n          <dvl>", "<dvl>").replace(noise, "")
    assert noise not in sea
    start, end = sea.index('<sensor name="dvl.v2"'), sea.index('<sensor name="adcp"')
    sensor = sea[start:end].replace('type="dvl">', 'type="dvl"><pose relative_to="base"/>')
    other = f'<link name="tilted"><pose>0.4 0 0 {mounting}</pose>{sensor}</link>'
    joint = '<joint name="j" type="fixed"><parent>base</parent><child>tilted</child></joint>'
    texts = {
        "base": sea,
        "tilted": (sea[:start] + sea[end:]).replace("  </model>\n  </world>", other + joint + "</model></world>"),
    }
    logs = []
    for name, text in texts.items():
        (tmp_path / f"{name}.sdf").write_text(text, encoding="utf-8")
        world = ns.load(tmp_path / f"{name}.sdf")
        assert world.sensor("dvl.v2").link == f"auv::{name}"
        names = [f"{name}.dvl.v2.{coordinates}.pd0" for coordinates in ("earth", "beam", "instrument")]
        ns.record(world, [tmp_path / file for file in names], 2.0)
        logs.append([pd0.decode((tmp_path / file).read_bytes()).blocks[0].arrays for file in names])
    for one, other in zip(*logs, strict=True):
        for array in ("heading", "pitch", "roll", "bottom_velocity", "heading_alignment"):
            assert np.isfinite(one[array]).any(), array
            np.testing.assert_allclose(
                other[array], one[array], rtol=0.0, atol=1.1e-3, err_msg=array
            )  # 1 mm/s, 0.01 deg


@pytest.mark.requirement("REC-1:convert")
def test_one_instrument_is_written_and_the_rest_listed(folder: Path, tmp_path: Path) -> None:
    reading = ns.open(folder / "a.npz")[DVL]
    gone = int((~reading.emitted).sum())
    result = convert(folder / "a.npz", tmp_path / "a.dvl.v2.nmea")
    assert gone > 0
    assert (result.count, result.unit) == (int(reading.emitted.sum()), "reading")
    assert len(nmea.decode(result.path.read_bytes())[0]["altitude"]) == result.count
    assert result.losses == [
        f"{DVL}: all that NMEA 0183 has no field for, ideal values, biases",
        f"{ADCP}: all arrays",
        f"{IMU}: all arrays",
        f"{DVL}: 1 row that had no output" if gone == 1 else f"{DVL}: {gone} rows that had no output",
        "truth of links",
        "the water's velocity",
    ]
    lost = convert(folder / "a.npz", tmp_path / "a.euroc").losses
    assert {f"{DVL}: all arrays", f"{ADCP}: all arrays", "the water's velocity"} < set(lost)
    assert not any("heading" in line for line in convert(folder / "a.npz", tmp_path / "a.gz.mcap").losses)


@pytest.mark.requirement("REC-1:convert")
def test_recording_without_position_is_an_error(folder: Path, tmp_path: Path) -> None:
    """The recording is older than this array."""
    with np.load(folder / "a.npz") as archive:
        arrays = dict(archive)
    metadata = json.loads(str(arrays["meta"]))
    del metadata["layout"]["origin"], metadata["layout"]["water"]
    np.savez(tmp_path / "old.npz", **{**arrays, "meta": np.array(json.dumps(metadata))})
    line = "the heading of the world's axes and its water, which the recording does not contain: 0 and none"
    conversion = convert(tmp_path / "old.npz", tmp_path / "a.dvl.v2.pd0")
    assert line in conversion.losses
    (part,) = pd0.decode(conversion.path.read_bytes()).blocks
    assert np.abs(np.degrees(part.arrays["heading"]) - (90.0 - np.degrees(0.7))).max() < 0.01
    world = ns.load(folder / "sea.sdf")
    other = cast("Water", SimpleNamespace(surface=0.0))
    told_of = world_to_json(replace(world, environment=replace(world.environment, water=other)))
    assert "origin" in told_of
    assert "water" not in told_of
    assert not has_heading_and_water(told_of)
    metadata["layout"]["origin"] = 3
    metadata["layout"]["water"] = None
    np.savez(tmp_path / "bad.npz", **{**arrays, "meta": np.array(json.dumps(metadata))})
    with pytest.raises(RecordingError, match=r"bad\.npz: is not a recording of navsense: damaged: origin has a wrong"):
        convert(tmp_path / "bad.npz", tmp_path / "bad.adcp.pd0")


@pytest.mark.requirement("REC-1:convert", "REC-1:devices")
def test_names_of_unsupported_instruments_are_an_error(folder: Path, tmp_path: Path) -> None:
    cases = {
        "a.imu.pd0": rf"does not support the sensor: imu; must be one of {DVL}, {ADCP}; write a\.SENSOR",
        "a.base::imu.beam.pd0": "PD0 does not support the sensor: base::imu",
        "a.adcp.wl.json": rf"Water Linked JSON does not support the sensor: adcp; must be one of {DVL}",
        "a.v2.pd0": "PD0 encodes one instrument; the world has 2",
        "a.pd0": "PD0 encodes one instrument; the world has 2",
    }
    world = ns.load(folder / "sea.sdf")
    for name, why in cases.items():
        with pytest.raises(RecordingError, match=why):
            convert(folder / "a.npz", tmp_path / name)
        with pytest.raises(RecordingError, match=why):
            ns.record(world, [tmp_path / "a.mcap", tmp_path / name], 0.1)
        assert not list(tmp_path.iterdir())
    full = convert(folder / "a.npz", tmp_path / f"a.2026.{DVL}.ship.pd0")
    assert full.path.read_bytes() == (folder / "a.dvl.v2.ship.pd0").read_bytes()
    alone = convert(folder / "a.npz", tmp_path / "a.v2.wl.json")
    assert alone.path.read_bytes() == (folder / JSON).read_bytes()


@pytest.mark.requirement("REC-1:convert")
def test_attitude_is_unknown_without_truth(folder: Path, tmp_path: Path) -> None:
    loaded = ns.open(folder / "a.npz")
    head = loaded.make_recorded_run()
    for name in ("bare.npz", "bare.mcap"):
        bare = RecordedRun(head.world, head.epoch, head.seed, head.duration, head.runs, has_simulated_series=False)
        with recordings.open_writer(tmp_path / name, bare) as writer:
            for time_slice in loaded.iter_slices():
                writer.write(time_slice)
    for name in ("bare.npz", "bare.mcap"):
        with pytest.raises(
            RecordingError, match=r"PD0 of .* requires the true pose of link 'auv::base'; use a recording with"
        ):
            convert(tmp_path / name, tmp_path / "a.adcp.pd0")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.mcap", "bare.npz"]


@pytest.mark.requirement("REC-1:convert", "REC-1:devices")
def test_unsupported_values_of_a_dialect_are_unknown(folder: Path, tmp_path: Path, builders: ModuleType) -> None:
    """With the message of all arrays next to that of the dialect, all values are known."""
    world = ns.load(folder / "sea.sdf")
    sheets: dict[str, Any] = {sensor.name: sensor.spec for sensor in world.sensors}
    other = replace(sheets[DVL], dialect=MessageDialect.UUV)
    world = replace(world, sensors=tuple(replace(s, spec=other) if s.name == DVL else s for s in world.sensors))
    ns.record(world, [tmp_path / "u.mcap", tmp_path / "a.dvl.v2.pd0"], 1.0, seed=4, epoch=EPOCH)
    complete = convert(tmp_path / "u.mcap", tmp_path / "b.dvl.v2.pd0")
    assert not any("not known" in line for line in complete.losses)
    assert complete.path.read_bytes() == (tmp_path / "a.dvl.v2.pd0").read_bytes()
    bare = builders.copy_without_messages(tmp_path / "u.mcap", tmp_path / "v.mcap", lambda topic, _: "_ping" in topic)
    assert (
        f"{DVL}: sound_speed, water_velocity: missing in the source" in convert(bare, tmp_path / "c.dvl.v2.pd0").losses
    )
    found, known = (pd0.decode((tmp_path / name).read_bytes()).blocks[0] for name in ("c.dvl.v2.pd0", "a.dvl.v2.pd0"))
    layer = ("layer_velocity", "layer_correlation", "layer_percent_good")
    for name in known.arrays:
        if name not in ("sound_speed", *layer):
            assert np.array_equal(
                found.arrays[name], known.arrays[name], equal_nan=known.arrays[name].dtype.kind == "f"
            )
    assert not found.arrays["sound_speed"].any()
    assert np.isnan(found.arrays["layer_velocity"]).all()


@pytest.mark.requirement("REC-1:convert")
def test_readings_may_arrive_long_after_the_truth(folder: Path, tmp_path: Path) -> None:
    loaded = ns.open(folder / "a.npz")
    recording, (complete, *_) = loaded.make_recorded_run(), loaded.iter_slices()
    link = complete.truth["auv::base"]
    with recordings.open_writer(tmp_path / JSON, recording) as writer:
        for start in range(0, link.time.size, 10):
            part = link.select_rows(start, start + 10)
            writer.write(TimeSlice(float(part.time[0]), float(part.time[-1]), truth={link.name: part}))
        writer.write(TimeSlice(0.0, 3.0, readings=complete.readings))
    assert (tmp_path / JSON).read_bytes() == (folder / JSON).read_bytes()


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("name", ["a.adcp.pd0", JSON])
def test_device_log_is_not_a_recording(folder: Path, tmp_path: Path, name: str) -> None:
    for read in (ns.open, lambda path: convert(path, tmp_path / "b.npz")):
        with pytest.raises(RecordingError, match=r"not a recording; list its contents with: navsense info "):
            read(folder / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize(
    ("output", "why"),
    [
        (".npz", r"name of a recording: \.npz; must have something before its suffix; write run\.npz"),
        (".wl.json", "must have something before its suffix"),
        (".gz.mcap", "must have something before its suffix"),
        (".bag", "must have something before its suffix"),
        ("", "the name of a recording is empty; name a file or a folder"),
        (
            "pd0+tcp://127.0.0.1:1033",
            r"pd0\+tcp://127\.0\.0\.1:1033; must be a file or folder, not a URL; to publish to a URL: navsense run",
        ),
        ("tcp://127.0.0.1:1033", "must be a file or folder, not a URL"),
        ("a.xyz", "no recording has this suffix"),
    ],
)
def test_suffixes_without_a_writer_are_an_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for source in ("a.npz", "a.mcap"):
        with pytest.raises(RecordingError, match=why):
            convert(folder / source, output)
    if output.startswith("."):
        with pytest.raises(RecordingError, match=why):
            ns.record(World("empty"), output, 0.1)
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize(
    "names",
    [
        ("a.npz", "./a.npz"),
        ("r.csv", "r.db3"),
        ("r.csv", "r.euroc"),
        ("r.euroc", "x.npz", "r.db3"),
        ("r.db3", "r/r.db3"),
        ("nmea+tcp://127.0.0.1:1", "nmea+tcp://127.0.0.1:1"),
    ],
)
def test_duplicate_outputs_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NavsenseError, match=r"outputs: .*; must be different files, folders and URLs"):
        ns.record(World("empty"), names, 0.1)
    assert not list(tmp_path.iterdir())

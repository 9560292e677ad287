"""Recordings of earlier versions are read by this version. The files are never written again.

`tools/golden_recordings.py` wrote them. If a test here fails after a change, the change breaks the recordings of users:
correct the reader or the table of types (`navsense.recordings.type_tags`), and keep the files.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import navsense as ns
from navsense.clock import Clock, Latency
from navsense.faults.injection import Faults
from navsense.noise.specification import Noise
from navsense.recordings.message_recordings import open_messages
from navsense.recordings.reading_assembler import ReadingAssembler
from navsense.recordings.summary import read_summary
from navsense.recordings.world_json import RecordedWorld, world_from_json, world_to_json
from navsense.sensors import Adcp, Altimeter, Dvl, Imu, Magnetometer, TrackMode

ROOT = Path(__file__).resolve().parent
FOLDERS = sorted(path for path in (ROOT / "golden" / "recordings").iterdir() if path.is_dir())
"""One folder for each format version."""


@cache
def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_recordings", ROOT.parent / "tools" / "golden_recordings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_json(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def read_declared_sensors(folder: Path) -> Any:
    return read_json(folder, "declared.json")["sensors"]


CASES = [(folder, name) for folder in FOLDERS for name in read_json(folder, "digests.json")]
IDS = [f"{folder.name}-{name}" for folder, name in CASES]


def assert_includes(found: Any, expected: Any, path: str = "") -> None:
    """Assert that JSON contains all that is expected; a later version may add keys."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), path
        for key, value in expected.items():
            assert key in found, f"{path}.{key}"
            assert_includes(found[key], value, f"{path}.{key}")
    elif isinstance(expected, list):
        assert isinstance(found, list), path
        assert len(found) == len(expected), path
        for i, (item, wanted) in enumerate(zip(found, expected, strict=True)):
            assert_includes(item, wanted, f"{path}.{i}")
    else:
        assert (type(found), found) == (type(expected), expected), path


def read_world(path: Path) -> RecordedWorld:
    """Return the world of a recording."""
    if path.suffix in (".mcap", ".bag", ".db3"):
        with open_messages(path) as source:
            reader = ReadingAssembler(source)
            assert reader.topic_notes == []
            return reader.recorded_world
    if path.suffix == ".euroc":
        found = world_from_json(read_json(path.with_suffix(""), "navsense.json")["layout"])
        assert found is not None
        return found
    return ns.open(path).recorded_world


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize(("folder", "name"), CASES, ids=IDS)
def test_every_array_is_read_with_the_same_bits(folder: Path, name: str) -> None:
    assert load_tool().compute_digests(folder / name) == read_json(folder, "digests.json")[name]


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize(("folder", "name"), CASES, ids=IDS)
def test_every_specification_equals_the_declaration(folder: Path, name: str) -> None:
    found = read_world(folder / name)
    assert found.notes == ()
    assert read_summary(folder / name).notes == ()
    declared = read_json(folder, "declared.json")
    del declared["format"]
    assert_includes(json.loads(json.dumps(world_to_json(found.world, found.topics))), declared)


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize(("folder", "name"), CASES, ids=IDS)
def test_values_of_the_declared_world(folder: Path, name: str) -> None:
    """A sample of the values in `world.sdf`."""
    found = read_world(folder / name)
    assert found.topics is not None
    sensors = {sensor.name.rpartition("::")[2]: sensor for sensor in found.world.sensors}
    imu, compass, altimeter, dvl, adcp = (sensors[key].spec for key in ("imu", "compass", "altimeter", "dvl", "adcp"))
    assert isinstance(imu, Imu)
    assert isinstance(compass, Magnetometer)
    assert compass.hard_iron == (4e-7, -2e-7, 6e-7)
    assert isinstance(altimeter, Altimeter)
    assert altimeter.vertical_position == Noise(stddev=0.05)
    assert sensors["altimeter"].latency == Latency(fixed=0.02)
    assert isinstance(dvl, Dvl)
    assert (dvl.bottom.per_speed, dvl.water_mode, dvl.sound.speed) == (0.001, TrackMode.ALWAYS, 1500.0)
    assert dvl.layer is not None
    assert (dvl.layer.near, dvl.layer.far) == (3.0, 9.0)
    assert isinstance(adcp, Adcp)
    assert (adcp.cells.count, adcp.coordinates.value, adcp.profile.stddev) == (5, "instrument", 0.015)
    assert sensors["imu"].faults.dropout_rate == 2.0
    assert [fault.kind for fault in sensors["dvl"].faults.scheduled] == ["lost_lock"]
    (clock,) = found.clocks.values()
    assert clock.noise.stddev == 5e-5
    assert clock.discipline is not None
    assert clock.discipline.interval == 1.0
    assert [step.size for step in clock.steps] == [0.01]
    assert found.topics.get_sensor_topic(sensors["dvl"].name, "ideal") == "/dvl/ideal"


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_gazebo_messages_are_listed(folder: Path) -> None:
    found = read_summary(folder / "run.gz.mcap")
    assert found.notes == ()
    assert {entry.name for entry in found.entries} == {"/imu", "/compass", "/altimeter", "/dvl", "/adcp"}
    assert sum(entry.count for entry in found.entries) > 60


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize(("folder", "name"), CASES, ids=IDS)
def test_changed_default_does_not_change_a_recording(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files contain every field, so defaults of the classes have no effect."""
    for kind in (Noise, Imu, Magnetometer, Altimeter, Dvl, Adcp, Latency, Clock, Faults):
        defaults = kind.__init__.__defaults__
        assert defaults is not None
        monkeypatch.setattr(kind.__init__, "__defaults__", tuple(object() for _ in defaults))
    found = read_world(folder / name)
    assert_includes(
        json.loads(json.dumps(world_to_json(found.world, found.topics))), {"sensors": read_declared_sensors(folder)}
    )

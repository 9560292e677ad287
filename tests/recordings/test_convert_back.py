"""Conversions between recordings of messages keep names, true times, faults and specs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import Reader, Writer

import navsense as ns
from navsense.clock import Latency
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.messages import generic
from navsense.messages.world_messages import pack_fault_bits
from navsense.recordings.convert import convert
from navsense.recordings.dataset import Dataset
from navsense.recordings.type_tags import from_json, to_json
from navsense.recordings.world_json import make_opaque_sensor
from navsense.sensors import Adcp, Dvl, Imu, NavSat
from navsense.sensors.base import Output
from navsense.testing import example_world, is_identical
from navsense.world import MountedSensor

EPOCH = 1000

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400)]  # kernels may have to be compiled


def make_world() -> ns.World:
    """Return a robot whose sensors have faults, with and without latency, on a clock with errors."""
    world = example_world(("imu", Imu.example_spec()), ("dvl", Dvl.example_spec()), ("navsat", NavSat.example_spec()))
    planned = (ScheduledFault("dropout", 0.15, 0.2), ScheduledFault("stuck", 0.3, 0.45))
    bias = ScheduledFault("bias", 0.1, 0.25, "angular_velocity", (0.1, 0.0, 0.0))
    imu, dvl, navsat = world.sensors
    sensors = (
        dataclasses.replace(imu, faults=Faults(scheduled=(*planned, bias)), latency=Latency(0.03)),
        dataclasses.replace(dvl, faults=Faults(scheduled=planned)),
        dataclasses.replace(navsat, faults=Faults(scheduled=planned)),
    )
    return dataclasses.replace(world, sensors=sensors)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one recording of faults in four formats, and its conversions."""
    place = tmp_path_factory.mktemp("back")
    ns.record(make_world(), [place / name for name in ("a.npz", "a.mcap", "a.db3", "a.bag")], 0.6, seed=5, epoch=EPOCH)
    ways = (("a.bag", "b.mcap"), ("a.bag", "b.npz"), ("a.bag", "b.db3"), ("b.mcap", "c.bag"), ("b.npz", "c.mcap"))
    for source, target in (*ways, ("a", "d.mcap"), ("b.npz", "e.bag"), ("a.bag", "f")):
        convert(place / source, place / target)
    return place


def get_reading(loaded: Dataset, name: str) -> ns.Reading:
    """Return the readings of a sensor by its full name or its ending."""
    (found,) = (reading for own, reading in loaded.items() if own.rpartition("::")[2] == name.rpartition("::")[2])
    return found


MADE = ("a.mcap", "a", "a.bag", "b.mcap", "b.npz", "b", "c.bag", "c.mcap", "d.mcap", "e.bag", "f")


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("name", MADE)
def test_faults_are_restored_from_every_format(folder: Path, name: str) -> None:
    known, found = ns.open(folder / "a.npz"), ns.open(folder / name)
    for full, expected in known.items():
        acts = pack_fault_bits(expected.fault)[expected.emitted]
        assert acts.any()
        assert np.array_equal(pack_fault_bits(get_reading(found, full).fault), acts), full


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("shift", [0, 17])
def test_faults_of_a_bag_copied_by_another_program(folder: Path, tmp_path: Path, shift: int) -> None:
    """The metadata of the recording is missing. If arrival times (ns) differ, the faulty rows are unknown."""
    with Reader(folder / "a") as reader, Writer(tmp_path / "copy", version=9) as writer:
        lines = {
            connection.id: writer.add_connection(
                connection.topic, connection.msgtype, msgdef=connection.msgdef.data, rihs01=connection.digest
            )
            for connection in reader.connections
        }
        for one, time, data in reader.messages():
            writer.write(lines[one.id], time + shift * one.topic.endswith("/fault"), data)
    known, found = ns.open(folder / "a.npz"), ns.open(tmp_path / "copy")
    for full, expected in known.items():
        fault = get_reading(found, full).fault
        if shift:
            assert not fault
        else:
            assert np.array_equal(pack_fault_bits(fault), pack_fault_bits(expected.fault)[expected.emitted])
    lost = convert(tmp_path / "copy", tmp_path / "copy.npz").losses
    notes = {f"topic /{name}/fault: has no message for the readings of its sensor" for name in ("imu", "dvl")}
    assert (notes <= set(lost)) == bool(shift)


@pytest.mark.requirement("REC-1:convert", "CLK-5")
def test_true_times_are_converted(folder: Path) -> None:
    """This includes bags, whose messages have one time, with latency and clock errors."""
    known = ns.open(folder / "a.mcap")
    for name in ("a", "d.mcap"):
        found = ns.open(folder / name)
        for full, expected in known.items():
            assert is_identical(dataclasses.asdict(found[full]), dataclasses.asdict(expected)), (name, full)
    old = ns.open(folder / "a.bag")
    for name in ("b.mcap", "b", "c.bag", "f"):
        found = ns.open(folder / name)
        for full, expected in old.items():
            assert is_identical(dataclasses.asdict(found[full]), dataclasses.asdict(expected)), (name, full)
        assert is_identical(dict(found.truth), dict(old.truth))
    late = get_reading(old, "imu")
    assert np.allclose(late.arrival - late.time, 0.03, rtol=0, atol=2e-9)
    assert late.clock_error.all()


@pytest.mark.requirement("REC-1:convert", "CLK-5")
def test_adcp_in_a_bag_has_its_true_times(tmp_path: Path) -> None:
    """Its arrays are on a separate topic, and it is published later than its time of validity."""
    world = example_world(("adcp", Adcp.example_spec()))
    ns.record(world, [tmp_path / "a.mcap", tmp_path / "a.db3"], 1.0, seed=5, epoch=EPOCH)
    convert(tmp_path / "a", tmp_path / "b.mcap")
    (known,) = ns.open(tmp_path / "a.mcap").values()
    assert known.time.size
    assert (known.arrival > known["time_of_validity"]).any()
    for name in ("a", "b.mcap"):
        (found,) = ns.open(tmp_path / name).values()
        assert is_identical(dataclasses.asdict(found), dataclasses.asdict(known))


@pytest.mark.requirement("REC-1:convert")
def test_bag_is_opened_by_a_file_inside_its_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain file name has no folder, and the name of a folder may contain dots."""
    convert(folder / "a.mcap", tmp_path / "v1.2.db3")
    monkeypatch.chdir(tmp_path / "v1.2")
    for name in ("v1.2.db3", tmp_path / "v1.2.db3", tmp_path / "v1.2", "../v1.2/v1.2.db3"):
        found = ns.open(name)
        assert found.keys() == ns.open(folder / "a.mcap").keys()


@pytest.mark.requirement("REC-1:convert")
def test_numpy_numbers_in_a_spec_are_stored() -> None:
    sheet = dataclasses.replace(Imu.example_spec(), orientation=np.True_, bandwidth=np.float64(3.5))
    again = from_json(to_json(sheet))
    assert again == sheet
    assert (type(again.orientation), type(again.bandwidth)) == (bool, float)
    assert to_json(np.int64(3)) == 3
    assert type(to_json(np.int64(3))) is int


@pytest.mark.requirement("REC-1:convert")
def test_output_missing_from_an_older_recording() -> None:
    outputs = [Output("warm", 0, "K"), Output("salt", 2, "1")]
    sensor = MountedSensor("robot::arm::probe", make_opaque_sensor("probe", outputs), "robot", "robot::arm", 1.0)
    rows = np.zeros(3, dtype=[("salt", "<f8", (2,))])
    found = generic.extract_arrays(sensor, rows, "measured", "")
    assert {name: array.shape for name, array in found.items()} == {"salt": (3, 2)}

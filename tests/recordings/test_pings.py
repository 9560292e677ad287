"""Messages of any dialect restore all arrays of a DVL, and other programs can read them."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense.clock import Latency
from navsense.core.typing import AnyArray
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.messages.world_messages import pack_fault_bits
from navsense.recordings import reading_assembler
from navsense.recordings.convert import convert
from navsense.sensors import Adcp, Dvl, MessageDialect, TrackMode
from navsense.sensors.doppler import make_janus_beams
from navsense.testing import example_world

EPOCH, DURATION, SEED = 1000, 0.8, 5
DVL = "robot::arm::dvl"
NAMES = ("a.npz", "a.mcap", "a.db3", "a.bag")
MESSAGES = ("a.mcap", "a", "a.bag")
FAULTS = (
    ScheduledFault("bias", 0.05, 0.15, "velocity", (0.1, 0.0, 0.0)),
    ScheduledFault("lost_lock", 0.2, 0.3),
    ScheduledFault("dropout", 0.35, 0.4),
    ScheduledFault("stuck", 0.5, 0.55),
)

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400)]  # kernels may have to be compiled


def make_spec(dialect: MessageDialect, count: int = 4, water: TrackMode = TrackMode.ALWAYS) -> Dvl:
    """Return a spec with this many beams in which every effect acts."""
    spec = dataclasses.replace(Dvl.example_spec(), dialect=dialect, bottom_mode=TrackMode.ALWAYS, water_mode=water)
    if count == len(spec.beams.beams):
        return spec
    return dataclasses.replace(
        spec, beams=make_janus_beams(math.radians(30.0), [2.0 * math.pi * i / count for i in range(count)])
    )


def make_world(*named: tuple[str, Any], latency: Latency | None = None) -> ns.World:
    """Return a robot whose instruments have faults, with and without latency."""
    world = example_world(*named)
    sensors = [
        dataclasses.replace(sensor, faults=Faults(scheduled=FAULTS), latency=latency) for sensor in world.sensors
    ]
    return dataclasses.replace(world, sensors=tuple(sensors))


def list_series(reading: ns.Reading) -> dict[str, Mapping[str, AnyArray]]:
    """Return measured values, ideal values and biases without their constant part, by published row."""
    kinds = {"arrays": reading.arrays, "ideal": reading.ideal, "bias": reading.bias, "fault": reading.fault}
    return {kind: {name: array[reading.emitted] for name, array in named.items()} for kind, named in kinds.items()}


def find_differences(found: ns.Reading, known: ns.Reading) -> list[str]:
    """Return the names of the arrays that differ bitwise between two readings."""
    actual, expected = list_series(found), list_series(known)
    wrong = [kind for kind in actual if actual[kind].keys() != expected[kind].keys()]
    return wrong + [
        f"{kind} {name}"
        for kind, named in expected.items()
        for name, array in named.items()
        if name not in actual[kind]
        or (actual[kind][name].shape, actual[kind][name].tobytes()) != (array.shape, array.tobytes())
    ]


CASES = {
    "own": make_world(("dvl", make_spec(MessageDialect.OWN))),
    "uuv": make_world(("dvl", make_spec(MessageDialect.UUV))),
    "dsros": make_world(("dvl", make_spec(MessageDialect.DSROS))),
    "gz": make_world(("dvl", make_spec(MessageDialect.GZ))),
    "late": make_world(("dvl", make_spec(MessageDialect.UUV)), latency=Latency(0.02)),
    "beams": make_world(("dvl", make_spec(MessageDialect.OWN, 5))),
    "fallback": make_world(("dvl", make_spec(MessageDialect.DSROS, water=TrackMode.FALLBACK))),
}


@pytest.fixture(scope="module", params=CASES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one run in every ROS format, and in a format without losses."""
    place = tmp_path_factory.mktemp(request.param)
    ns.record(CASES[request.param], [place / name for name in NAMES], DURATION, seed=SEED, epoch=EPOCH)
    return place


@pytest.mark.requirement("GAP-4", "REC-1:mcap", "REC-1:bag", "REC-1:convert")
def test_ping_message_round_trips_every_array(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings, truth and biases are restored, also through an array format and in small blocks."""
    known = ns.open(folder / "a.npz")[DVL]
    published = known.emitted
    assert not published.all()
    assert all(np.isfinite(array[published]).any() for array in known.arrays.values())
    assert {"error_velocity", "long_term_velocity", "beam_valid", "water_far"} < known.arrays.keys()
    assert {"beam_velocity", "beam_range"} == known.bias.keys() == known.turn_on_bias.keys()
    assert set(np.unique(pack_fault_bits(known.fault)[published])) == {0.0, 2.0, 4.0, 16.0}
    for name in MESSAGES:
        assert find_differences(ns.open(folder / name)[DVL], known) == [], name
    result = convert(folder / "a.bag", tmp_path / "b.npz")
    assert not [line for line in result.losses if DVL in line or "dvl" in line]
    assert find_differences(ns.open(tmp_path / "b.npz")[DVL], known) == []
    monkeypatch.setattr(reading_assembler, "SLICE_BYTES", 1)
    assert find_differences(ns.open(folder / "a.mcap")[DVL], known) == []


@pytest.mark.requirement("REC-1:convert")
def test_arrays_without_message_fields_are_absent(folder: Path, tmp_path: Path) -> None:
    known = ns.open(folder / "a.npz")[DVL]
    lost = convert(folder / "a.npz", tmp_path / "b.mcap").losses
    assert [line for line in lost if line.startswith(DVL) and " row" not in line] == [f"{DVL}: turn-on biases"]
    assert find_differences(ns.open(tmp_path / "b.mcap")[DVL], known) == []


@pytest.mark.requirement("REC-1:mcap", "REC-1:bag")
def test_sensors_of_different_size_share_one_definition(tmp_path: Path) -> None:
    """A program with one definition of the type reads the messages of all sensors."""
    other = dataclasses.replace(Adcp.example_spec(), cells=dataclasses.replace(Adcp.example_spec().cells, count=3))
    named = {
        "a": make_spec(MessageDialect.OWN, 3),
        "b": make_spec(MessageDialect.OWN),
        "c": Adcp.example_spec(),
        "d": other,
    }
    world = example_world(*named.items())
    ns.record(world, [tmp_path / name for name in NAMES], 0.3, seed=SEED, epoch=EPOCH)
    known = ns.open(tmp_path / "a.npz")
    for name in MESSAGES:
        with AnyReader([tmp_path / name]) as reader:
            heard = {connection.topic: list[Any]() for connection in reader.connections}
            for one, _, data in reader.messages():
                heard[one.topic].append(reader.deserialize(data, one.msgtype))
        for short in named:
            expected = known[f"robot::arm::{short}"]
            messages = heard[f"/{short}_ping" if short in "ab" else f"/{short}_ensemble"]
            assert len(messages) == expected.emitted.sum() > 3
            for row, value in zip(np.flatnonzero(expected.emitted), messages, strict=True):
                for array in expected.arrays:
                    found = np.ravel(getattr(value, array))
                    assert found.tobytes() == np.ravel(expected[array][row]).tobytes(), (name, short, array)


def record_reading(path: Path, world: ns.World) -> ns.Reading:
    """Return the reading of an instrument in a recorded run."""
    ns.record(world, path, DURATION, seed=SEED, epoch=EPOCH)
    return ns.simulate(world, DURATION, seed=SEED, epoch=EPOCH)[DVL]


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("dialect", list(MessageDialect))
def test_dialect_messages_are_read_without_ping_messages(
    tmp_path: Path, builders: ModuleType, dialect: MessageDialect
) -> None:
    """Messages of other programs give the arrays that they contain."""
    known = record_reading(tmp_path / "a.mcap", CASES[dialect.value])
    rows = known.emitted
    found = ns.open(
        builders.copy_without_messages(tmp_path / "a.mcap", tmp_path / "b.mcap", lambda topic, _: "_ping" in topic)
    )[DVL]
    assert not {"error_velocity", "long_term_velocity", "beam_valid", "water_far"} & found.arrays.keys()
    assert found["velocity"].tobytes() == known["velocity"][rows].tobytes()
    shown = known["velocity_mode"][rows] == 1.0
    beams, wide = found["beam_velocity"][shown], known["beam_velocity"][rows][shown]
    assert np.isfinite(wide).any()
    same = np.array_equal(beams, wide, equal_nan=True)
    assert same == (dialect is MessageDialect.UUV)
    assert np.allclose(beams, wide, rtol=2**-24, atol=0.0, equal_nan=True)


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("dialect", list(MessageDialect))
def test_lost_ping_messages_are_replaced_by_dialect_messages(
    tmp_path: Path, builders: ModuleType, dialect: MessageDialect
) -> None:
    """Rows without it equal those of a recording without these messages, or NaN for missing arrays."""
    known = record_reading(tmp_path / "a.mcap", CASES[dialect.value])
    lost = (2, 5)

    def is_gone(topic: str, place: int) -> bool:
        return topic in ("/dvl_ping", "/dvl_ping/ideal") and place in lost

    path = builders.copy_without_messages(tmp_path / "a.mcap", tmp_path / "b.mcap", is_gone)
    found = ns.open(path)[DVL]
    bare = ns.open(
        builders.copy_without_messages(tmp_path / "a.mcap", tmp_path / "d.mcap", lambda topic, _: "_ping" in topic)
    )[DVL]
    for name, array in known.arrays.items():
        expected = array[known.emitted].copy()
        expected[list(lost)] = bare[name][list(lost)] if name in bare.arrays else math.nan
        assert np.array_equal(found[name], expected, equal_nan=True), name
    assert np.isfinite(found["velocity"][lost[0]]).all()  # the other instrument has no lock
    for name, array in known.ideal.items():
        expected = array[known.emitted].copy()
        expected[list(lost)] = bare.ideal[name][list(lost)] if name in bare.ideal else math.nan
        assert np.array_equal(found.ideal[name], expected, equal_nan=True), name
    note = "topic /dvl_ping: has no message for some messages of /dvl; their values are NaN"
    assert note in convert(path, tmp_path / "c.npz").losses


def read_pings(bag: Path) -> tuple[list[str], Iterable[str]]:
    """Return the sensors of a bag, and its unread content."""
    lost = convert(bag, bag.with_suffix(".npz")).losses
    with np.load(bag.with_suffix(".npz")) as arrays:
        return [*json.loads(str(arrays["meta"]))["sensors"]], lost


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("dialect", list(MessageDialect))
def test_bag_without_metadata_is_read(tmp_path: Path, builders: ModuleType, dialect: MessageDialect) -> None:
    known = record_reading(tmp_path / "a.bag", CASES[dialect.value])
    bag = builders.copy_without_metadata(tmp_path / "a.bag", tmp_path / "untold.bag")
    names, lost = read_pings(bag)
    assert names == ["dvl"]
    assert not [line for line in lost if "_ping" in line]
    found, expected = list_series(ns.open(bag)["dvl"]), list_series(known)
    for kind in ("arrays", "ideal", "bias"):
        for name, array in expected[kind].items():
            assert found[kind][name].tobytes() == array.tobytes(), (kind, name)


@pytest.mark.requirement("REC-1:bag")
def test_beams_of_unknown_direction_are_reported(tmp_path: Path, builders: ModuleType) -> None:
    """The dialect's message has no direction of a fifth beam; the unread messages are listed."""
    known = record_reading(tmp_path / "a.bag", CASES["beams"])
    bag = builders.copy_without_metadata(tmp_path / "a.bag", tmp_path / "untold.bag")
    names, lost = read_pings(bag)
    assert names == ["dvl"]
    assert "topic /dvl_ping of type navsense_msgs/msg/Dvl is not read" in lost
    wide = known["beam_range"][known.emitted][:, :4]
    assert np.allclose(ns.open(bag)["dvl"]["beam_range"], wide, rtol=2**-24, atol=0.0, equal_nan=True)

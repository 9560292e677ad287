"""Metadata of ROS 1 bags: conversion to a bag and back keeps all content of messages."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Reader, Writer
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense import report
from navsense.clock import Latency
from navsense.core.errors import RecordingError
from navsense.environment.base import UniformField
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.recordings.convert import convert
from navsense.recordings.rosbag.metadata import METADATA_TOPIC
from navsense.recordings.summary import read_summary
from navsense.sensors import Adcp, Dvl, Imu, Magnetometer, NavSat, TrackMode
from navsense.sensors.doppler import MessageDialect
from navsense.testing import example_world, is_identical
from navsense.world import World

EPOCH = 1000
NAMES = ("a.mcap", "a.db3", "a.bag")

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400)]  # kernels may have to be compiled


def make_world() -> ns.World:
    """Return a robot with two Doppler instruments, one with latency, and a faulty IMU, in a current."""
    kinds = (Imu, Dvl, Adcp, Magnetometer, NavSat)
    world = example_world(*((kind.type, kind.example_spec()) for kind in kinds))
    imu, dvl, *others = world.sensors
    planned = ScheduledFault("bias", 0.1, 0.25, "angular_velocity", (0.1, 0.0, 0.0))
    faulty = dataclasses.replace(imu, faults=Faults(scheduled=(planned,)), latency=Latency(0.03))
    both = dataclasses.replace(Dvl.example_spec(), water_mode=TrackMode.ALWAYS, dialect=MessageDialect.OWN)
    sensors = (faulty, dataclasses.replace(dvl, spec=both, latency=Latency(0.02)), *others)
    water = dataclasses.replace(world.environment, current=UniformField((0.1, -0.2, 0.05)))
    return dataclasses.replace(world, sensors=sensors, environment=water)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one recording in three formats, and its conversions to ROS 1 bags and back."""
    place = tmp_path_factory.mktemp("about")
    ns.record(make_world(), [place / name for name in NAMES], 1.0, seed=5, epoch=EPOCH, ros="humble")
    for source, target in (
        ("a.mcap", "b.bag"),
        ("b.bag", "c.mcap"),
        ("a", "d.bag"),
        ("d.bag", "e.db3"),
        ("b.bag", "f.bag"),
    ):
        convert(place / source, place / target)
    return place


def read_metadata(path: Path) -> dict[str, dict[str, str]]:
    """Return the metadata of an MCAP file, as the package mcap reads it."""
    with path.open("rb") as file:
        return {record.name: record.metadata for record in make_reader(file).iter_metadata()}


def read_messages(path: Path) -> dict[str, list[tuple[int, bytes]]]:
    """Return (time of arrival, bytes) by topic of an MCAP file."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            found.setdefault(channel.topic, []).append((message.log_time, message.data))
    return {topic: sorted(several) for topic, several in found.items()}


@pytest.mark.requirement("REC-1:bag", "REC-1:convert")
def test_recording_round_trips_through_a_ros1_bag(folder: Path) -> None:
    """Metadata and messages are unchanged."""
    assert read_metadata(folder / "c.mcap") == read_metadata(folder / "a.mcap")
    assert {"world", "seed", "epoch", "runs", "duration_asked", "version", "ros", "faults"} == set(
        read_metadata(folder / "c.mcap")["navsense"]
    )
    assert read_messages(folder / "c.mcap") == read_messages(folder / "a.mcap")
    assert read_summary(folder / "c.mcap").entries == read_summary(folder / "a.mcap").entries


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("name", ["a.bag", "b.bag", "d.bag", "f.bag"])
def test_metadata_is_the_first_message_and_latched(folder: Path, name: str) -> None:
    store = get_typestore(Stores.ROS1_NOETIC)
    with Reader(folder / name) as reader:
        own, time, data = next(reader.messages())
        more: Any = own.ext
        assert (own.topic, own.msgcount, more.latching, more.callerid) == (METADATA_TOPIC, 1, 1, "/navsense")
        assert own.digest == store.generate_msgdef("std_msgs/msg/String", ros_version=1)[1]
        assert time == reader.start_time == EPOCH * 10**9
    found: Any = store.deserialize_ros1(bytes(data), "std_msgs/msg/String")
    expected = read_metadata(folder / "a.mcap")
    assert json.loads(found.data) == expected["navsense"] | expected["navsense.world"]


@pytest.mark.requirement("REC-1:bag", "REC-1:convert", "CLK-5", "NOI-6")
@pytest.mark.parametrize("name", ["a.bag", "b.bag", "c.mcap", "d.bag", "e", "f.bag"])
def test_readings_and_truth_equal_those_of_a_ros2_bag(folder: Path, name: str) -> None:
    """Names, rates, links, specs, true times, faults, truth and water are equal. A bag stores only one time."""
    known, found = ns.open(folder / "a"), ns.open(folder / name)
    assert found.metadata == known.metadata
    assert list(found) == list(known)
    for full, expected in known.items():
        assert is_identical(dataclasses.asdict(found[full]), dataclasses.asdict(expected)), full
    assert is_identical(dict(found.truth), dict(known.truth))
    assert is_identical(found.current, known.current)
    distribution = "noetic" if name.endswith(".bag") else "humble"
    assert read_summary(folder / name).metadata == {**read_summary(folder / "a").metadata, "ros": distribution}


@pytest.mark.requirement("REC-1:convert")
def test_all_messages_of_navsense_are_read(folder: Path, tmp_path: Path) -> None:
    assert not any("is not read" in line for line in convert(folder / "a.bag", tmp_path / "g.npz").losses)
    before, after = ns.open(folder / "a.mcap"), ns.open(tmp_path / "g.npz")
    water, again = (dataset["robot::arm::dvl"]["water_velocity"] for dataset in (before, after))
    assert np.array_equal(water, again, equal_nan=True)
    profile = before["robot::arm::adcp"]
    assert np.array_equal(after["robot::arm::adcp"].time, profile.time)
    assert (profile.arrival > profile["time_of_validity"]).any()


@pytest.mark.requirement("REC-1:bag")
def test_bag_without_metadata_message(folder: Path, tmp_path: Path, builders: ModuleType) -> None:
    """It is recognised as a navsense bag, and its content is inferred from its messages."""
    bag = builders.copy_without_metadata(folder / "a.bag", tmp_path / "untold.bag")
    found = ns.open(bag)
    assert "imu" in found
    assert found.metadata["world"] == "recording"
    assert np.array_equal(found["imu"].true_stamp, ns.open(folder / "a.bag")["robot::arm::imu"].true_stamp)
    assert not read_summary(bag).metadata
    line = "the heading of the world's axes and its water, which the recording does not contain: 0 and none"
    assert line in convert(bag, tmp_path / "a.dvl.pd0").losses
    assert line not in convert(folder / "a.bag", tmp_path / "b.dvl.pd0").losses


@pytest.mark.requirement("REC-1:bag")
@pytest.mark.parametrize("text", [b"{", b"\xff", b"[1]"])
def test_bag_with_invalid_metadata_message(folder: Path, tmp_path: Path, builders: ModuleType, text: bytes) -> None:
    bag = builders.copy_without_metadata(folder / "a.bag", tmp_path / "bad.bag", text)
    for read in (ns.open, read_summary):
        with pytest.raises(RecordingError, match=r"bad\.bag: cannot be read: its metadata"):
            read(bag)


@pytest.mark.requirement("REC-1:bag")
def test_bag_of_several_nodes_has_no_caller(folder: Path, tmp_path: Path) -> None:
    """The metadata message is then an ordinary message, and is copied as one."""
    with Reader(folder / "a.bag") as reader, Writer(tmp_path / "mixed.bag") as writer:
        for connection in reader.connections:
            more: Any = connection.ext
            caller = more.callerid if connection.topic != "/magnetometer" else "/driver"
            copied = writer.add_connection(
                connection.topic,
                connection.msgtype,
                msgdef=connection.msgdef.data,
                md5sum=connection.digest,
                callerid=caller,
            )
            for _, time, data in reader.messages([connection]):
                writer.write(copied, time, data)
    convert(tmp_path / "mixed.bag", tmp_path / "mixed.mcap")
    assert read_metadata(tmp_path / "mixed.mcap") == {}
    with AnyReader([tmp_path / "mixed.mcap"]) as whole:
        assert METADATA_TOPIC in {connection.topic for connection in whole.connections}


@pytest.mark.requirement("REC-1:bag")
def test_recording_without_messages_has_metadata(tmp_path: Path) -> None:
    empty = World("nowhere")
    ns.record(empty, tmp_path / "a.mcap", 1.0, seed=7, epoch=EPOCH, ros="humble")
    convert(tmp_path / "a.mcap", tmp_path / "b.bag")
    convert(tmp_path / "b.bag", tmp_path / "c.mcap")
    assert read_metadata(tmp_path / "c.mcap") == read_metadata(tmp_path / "a.mcap")


@pytest.mark.requirement("REC-1:bag")
def test_report_of_a_bag_has_the_warnings_of_the_recording(folder: Path, tmp_path: Path) -> None:
    """Without the declared noise and quantisation, a sensor would appear noisier than its spec."""
    pages = [
        report.write(folder / name, tmp_path / f"{name}.html").read_text(encoding="utf-8") for name in ("a", "a.bag")
    ]
    warning_lists = [re.findall(r'<li class="\w+">.*?</li>', page) for page in pages]
    assert warning_lists[0] == warning_lists[1]
    assert warning_lists[0]

"""Recordings of Gazebo messages are read by MCAP's reader and protobuf with the definitions in the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from mcap.reader import make_reader

import navsense as ns
from navsense import messages, recordings
from navsense.core.errors import RecordingError
from navsense.core.readings import TimeSlice
from navsense.recordings.convert import convert
from navsense.recordings.mcap.recovery import recover_mcap
from navsense.recordings.summary import read_summary
from navsense.recordings.topic_names import allocate_topics
from navsense.report.report_data import read_report_data
from navsense.sensors import SENSORS
from navsense.testing import example_world

KINDS = [kind for kind in SENSORS if messages.get_messages(kind.type).gz_type]
WORLD = example_world(*((kind.type, kind.example_spec()) for kind in KINDS))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gazebo") / "run.gz.mcap"
    ns.record(WORLD, path, 0.5, seed=5, epoch=1000)
    return path


def read_contents(path: Path) -> dict[str, list[tuple[Any, Any]]]:
    """Return the schema and each message of every topic."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file, validate_crcs=True).iter_messages():
            assert channel.message_encoding == "protobuf"
            found.setdefault(channel.topic, []).append((schema, message))
    return found


def decode(schema: Any, data: bytes) -> Any:
    """Return a message by the definitions of its schema, without unknown fields."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema.data).file:
        pool.Add(file)
    message_class: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))
    value = message_class.FromString(data)
    value.DiscardUnknownFields()
    return value


@pytest.mark.requirement("REC-1:mcap")
def test_every_sensor_is_recorded_with_its_complete_definition(recording: Path) -> None:
    run, found = ns.simulate(WORLD, 0.5, seed=5, epoch=1000), read_contents(recording)
    assert set(found) == {f"/{kind.type}" for kind in KINDS}
    for sensor in WORLD.sensors:
        part = run[sensor.name]
        expected = messages.get_messages(sensor.spec.type).encode_gz_messages(sensor, part, 0)
        rows = found[f"/{sensor.spec.type}"]
        assert [message.data for _, message in rows] == expected
        assert {schema.name for schema, _ in rows} == {messages.get_messages(sensor.spec.type).gz_type}
        assert {schema.encoding for schema, _ in rows} == {"protobuf"}
        times = part.true_stamp[np.flatnonzero(part.emitted)].repeat(len(expected) // int(part.emitted.sum()))
        assert [message.log_time for _, message in rows] == times.tolist()
        for schema, message in rows[:3]:
            value = decode(schema, message.data)
            assert value.SerializeToString(deterministic=True) == message.data
            assert "stamp" in json_format.MessageToDict(value)["header"]


@pytest.mark.requirement("REC-1:mcap")
def test_gazebo_recording_is_described_and_recovered(recording: Path, tmp_path: Path) -> None:
    summary = read_summary(recording)
    assert {(entry.name, entry.type) for entry in summary.entries} == {
        (f"/{kind.type}", messages.get_messages(kind.type).gz_type) for kind in KINDS
    }
    assert summary.metadata["seed"] == "5"
    cut = tmp_path / "cut.gz.mcap"
    cut.write_bytes(recording.read_bytes()[:-100])
    saved = recover_mcap(cut, tmp_path / "saved.gz.mcap")
    assert saved.messages == sum(entry.count for entry in summary.entries)
    assert read_contents(Path(saved.path)).keys() == read_contents(recording).keys()


def test_latency_and_many_chunks(builders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("navsense.recordings.mcap.writer.CHUNK_BYTES", 2000)
    part = builders.make_reading(builders.MAG, 0, 40, epoch=7)
    part = replace(part, arrival_after_latency=part.time + np.linspace(0.5, 0.1, 40))
    with recordings.open_writer(
        tmp_path / "m.gz.mcap", recordings.RecordedRun(builders.make_world(), epoch=7, duration=4.0)
    ) as writer:
        writer.write(TimeSlice(0.0, 2.0, {builders.MAG: part.select_rows(0, 20)}))
        writer.write(TimeSlice(2.0, 4.0, {builders.MAG: part.select_rows(20, 40), "somebody::else": part}))
    rows = read_contents(tmp_path / "m.gz.mcap")["/mag"]
    assert [message.sequence for _, message in rows] == list(range(40))
    assert [message.log_time for _, message in rows] == np.rint((part.arrival + 7.0) * 1e9).astype(int).tolist()
    assert [message.publish_time for _, message in rows] == part.true_stamp.tolist()


def test_unwritable_content_is_an_error(builders: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="one run"):
        recordings.open_writer(tmp_path / "m.gz.mcap", recordings.RecordedRun(builders.make_world(), runs=(0, 1)))
    with pytest.raises(RecordingError, match=r"directory does not exist"):
        recordings.open_writer(tmp_path / "no" / "m.gz.mcap", recordings.RecordedRun(builders.make_world()))
    with recordings.open_writer(tmp_path / "m.gz.mcap", recordings.RecordedRun(builders.make_world())) as writer:
        runs = builders.make_reading(builders.MAG, 0, 4, runs=(2,))
        with pytest.raises(RecordingError, match="run axis"):
            writer.write(TimeSlice(0.0, 1.0, {builders.MAG: runs}))
    assert not read_contents(tmp_path / "m.gz.mcap")
    assert {entry.name for entry in read_summary(tmp_path / "m.gz.mcap").entries} == {"/imu", "/mag"}


def test_companion_topics_are_unique(builders: ModuleType) -> None:
    assert messages.format_companion_topic("/a", "_b") == "/a_b"
    assert messages.format_companion_topic("/a", "/b") == "/a/b"
    assert messages.format_companion_topic("/a", "//b/c") == "/b/c"
    world = builders.make_world()
    assert allocate_topics(world).get_sensor_topic(builders.MAG, "bias") == "/mag/bias"


def test_gazebo_recording_is_not_read_back(recording: Path, tmp_path: Path) -> None:
    for action in (
        lambda: ns.open(recording),
        lambda: convert(recording, tmp_path / "run.npz"),
        lambda: read_report_data(str(recording)),
    ):
        with pytest.raises(RecordingError) as error:
            action()
        text = str(error.value)
        assert text.startswith(f"{recording}: holds messages of Gazebo, which navsense writes but does not read; ")
        assert text.endswith(f"navsense info {recording}")
    with pytest.raises(RecordingError, match="check the name"):
        ns.open(tmp_path / "none.gz.mcap")

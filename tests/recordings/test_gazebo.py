"""Recordings of Gazebo messages are read by MCAP's reader and protobuf with the definitions in the file."""

from __future__ import annotations

import re
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


CLASSIC_PROTO = {
    "time": "message Time { required int32 sec = 1; required int32 nsec = 2; }",
    "vector3d": "message Vector3d { required double x = 1; required double y = 2; required double z = 3; }",
    "magnetometer": "message Magnetometer { required Time time = 1; required string entity_name = 2;"
    " required Vector3d field_tesla = 3; }",
    "altimeter": "message Altimeter { required Time time = 1; required double vertical_position = 2;"
    " required double vertical_velocity = 3; required double vertical_reference = 4; }",
}
"""The messages, each with the source of its numbers.

Magnetometer, Altimeter: the design documents of Gazebo.
Time, Vector3d: `gazebo/msgs/time.proto` and `vector3d.proto` of Gazebo 11, at commit 9cb0a9d1 of the copy
github.com/JabSYsEmb/gazebo_macos. Its numbers of the altimeter are those of the document; its magnetometer has the
fields `time` 1 and `field_tesla` 2. Older commits of github.com/gazebosim/gazebo-classic differ: `Vector3d` has the
numbers 2, 3 and 4 (2054e653), and `Time stamp = 1` is in the magnetometer (18b531e2) and the altimeter (12127b99).
"""

FIELD = re.compile(r"(required|optional|repeated) (\w+) (\w+) = (\d+);")


def make_classic_classes() -> dict[str, Any]:
    """Return message classes of `CLASSIC_PROTO`, whose descriptors do not come from a recording."""
    file = descriptor_pb2.FileDescriptorProto(name="classic.proto", package="gazebo.msgs", syntax="proto2")
    fields = descriptor_pb2.FieldDescriptorProto
    types = {"double": fields.TYPE_DOUBLE, "int32": fields.TYPE_INT32, "string": fields.TYPE_STRING}
    for text in CLASSIC_PROTO.values():
        message = file.message_type.add(name=text.split()[1])
        for _, kind, name, number in FIELD.findall(text):
            entry = message.field.add(name=name, number=int(number), label=fields.LABEL_REQUIRED)
            if kind in types:
                entry.type = types[kind]
            else:
                entry.type, entry.type_name = fields.TYPE_MESSAGE, f".gazebo.msgs.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = [message.name for message in file.message_type]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"gazebo.msgs.{name}")) for name in names}


@pytest.fixture(scope="module")
def classic_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("classic") / "run.gazebo.mcap"
    ns.record(WORLD, path, 0.5, seed=5, epoch=1000)
    return path


@pytest.mark.requirement("MAG-5", "ALT-4", "REC-1:mcap")
def test_messages_of_gazebo_classic_have_the_documented_fields(classic_recording: Path) -> None:
    """Read by the documents' definitions and by those in the file, whose fields, numbers and labels are the same."""
    run, found = ns.simulate(WORLD, 0.5, seed=5, epoch=1000), read_contents(classic_recording)
    classes = make_classic_classes()
    assert found.keys() == {"/magnetometer", "/altimeter"}
    values: dict[str, list[Any]] = {}
    for topic, rows in found.items():
        name = rows[0][0].name.removeprefix("gazebo.msgs.")
        assert rows[0][0].name.startswith("gazebo.msgs.")
        values[topic] = [classes[name].FromString(message.data) for _, message in rows]
        for value, (schema, message) in zip(values[topic], rows, strict=True):
            own = decode(schema, message.data)
            assert str(own) == str(value)
            assert value.SerializeToString() == message.data == own.SerializeToString()
            assert [(f.name, f.number, f.is_required) for f in own.DESCRIPTOR.fields] == [
                (f.name, f.number, f.is_required) for f in value.DESCRIPTOR.fields
            ]
    magnetometer, altimeter = run["magnetometer"], run["altimeter"]
    fields = [(one.field_tesla.x, one.field_tesla.y, one.field_tesla.z) for one in values["/magnetometer"]]
    assert np.array_equal(fields, magnetometer["field"][magnetometer.emitted])
    assert {one.entity_name for one in values["/magnetometer"]} == {magnetometer.name}
    for key in ("vertical_position", "vertical_velocity", "vertical_reference"):
        found_values = [getattr(one, key) for one in values["/altimeter"]]
        assert found_values == altimeter[key][altimeter.emitted].tolist()
    for topic, reading in (("/magnetometer", magnetometer), ("/altimeter", altimeter)):
        stamps = [one.time.sec * 10**9 + one.time.nsec for one in values[topic]]
        assert stamps == reading.stamp[reading.emitted].tolist()


@pytest.mark.requirement("REC-1:mcap")
def test_world_without_a_message_is_an_error(tmp_path: Path) -> None:
    world = replace(WORLD, sensors=(WORLD.sensor("imu"),))
    why = r"no sensor has a message in gazebo\.msgs; must have one of magnetometer, altimeter; choose another format"
    with pytest.raises(RecordingError, match=why):
        ns.record(world, tmp_path / "run.gazebo.mcap", 0.5)
    ns.record(world, tmp_path / "run.npz", 0.5)
    with pytest.raises(RecordingError, match=why):
        convert(tmp_path / "run.npz", tmp_path / "run.gazebo.mcap")
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.requirement("REC-1:mcap")
def test_recovered_file_without_messages_keeps_its_distribution_of_ros(recording: Path, tmp_path: Path) -> None:
    """Only a bag of ROS 1 is of Noetic; a file without a channel is none."""
    cut, saved = tmp_path / "cut.gz.mcap", tmp_path / "saved.gz.mcap"
    content = recording.read_bytes()
    for size in (len(content) // 2, 3000):
        cut.write_bytes(content[:size])
        recover_mcap(cut, saved)
        assert read_summary(saved).metadata["ros"] == "jazzy"
    assert read_summary(saved).entries == ()


@pytest.mark.requirement("REC-1:mcap")
def test_recording_of_gazebo_classic_is_described_and_recovered(classic_recording: Path, tmp_path: Path) -> None:
    summary = read_summary(classic_recording)
    assert {(entry.name, entry.type) for entry in summary.entries} == {
        ("/magnetometer", "gazebo.msgs.Magnetometer"),
        ("/altimeter", "gazebo.msgs.Altimeter"),
    }
    cut = tmp_path / "cut.gazebo.mcap"
    cut.write_bytes(classic_recording.read_bytes()[:-100])
    assert recover_mcap(cut, tmp_path / "saved.gazebo.mcap").messages == sum(entry.count for entry in summary.entries)
    with pytest.raises(RecordingError, match="holds messages of Gazebo Classic, which navsense writes but does not"):
        ns.open(classic_recording)
    ns.record(WORLD, tmp_path / "a.npz", 0.5, seed=5, epoch=1000)
    convert(tmp_path / "a.npz", tmp_path / "b.gazebo.mcap")
    assert [message.data for _, message in read_contents(tmp_path / "b.gazebo.mcap")["/altimeter"]] == [
        message.data for _, message in read_contents(classic_recording)["/altimeter"]
    ]


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

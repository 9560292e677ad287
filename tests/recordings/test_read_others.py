"""Recordings of other programs: lost or unordered messages, topics with two types or none, or without a slash."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import Writer
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense.clock import Latency
from navsense.core.errors import RecordingError
from navsense.core.readings import ARRAY_GROUPS, Reading
from navsense.messages.schemas import format_schema
from navsense.recordings.channels import CDR, Channel
from navsense.recordings.columns import ColumnBatch, TopicBuffer, align_columns
from navsense.recordings.convert import convert
from navsense.recordings.dataset import collect
from navsense.recordings.mcap import reader as mcap_reader
from navsense.recordings.message_recordings import open_messages
from navsense.recordings.reading_assembler import ReadingAssembler
from navsense.sensors import Imu
from navsense.testing import example_world, is_identical

NAME, TOPIC, LINK = "robot::arm::imu", "/imu", "/truth/robot"
LATENCIES = {"at once": None, "late": Latency(0.03), "a sample late": Latency(0.01)}

Sent = tuple[Any, Any, Any]
"""Schema, channel and message of the package mcap."""

STORE = get_typestore(Stores.ROS2_HUMBLE)
START = 1_700_000_000 * 10**9


def read_messages(path: Path) -> list[Sent]:
    """Return the messages of a file in order of time."""
    with path.open("rb") as file:
        return list(make_reader(file).iter_messages())


def read_dataset(path: Path) -> tuple[dict[str, Reading], dict[str, Any], list[str]]:
    """Return the readings, the truth and the losses of a recording."""
    with open_messages(path) as source:
        reader = ReadingAssembler(source)
        readings, truth, *_ = collect(reader.iter_slices())
        return readings, truth, reader.topic_notes


@pytest.fixture(scope="module", params=LATENCIES)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of an IMU on a clock with drift and jitter, with and without latency."""
    world = example_world(("imu", Imu.example_spec()))
    sensors = tuple(dataclasses.replace(sensor, latency=LATENCIES[request.param]) for sensor in world.sensors)
    path = tmp_path_factory.mktemp("others") / "whole.mcap"
    ns.record(dataclasses.replace(world, sensors=sensors), path, 1.0, seed=3, epoch=1000)
    return path


def make_expected(reading: Reading, row: int, series: str) -> dict[str, Any]:
    """Return the expected values if one message of this series is lost."""
    if series == "measured":
        keep = np.arange(reading.time.size) != row
        return {
            "time": reading.time[keep],
            "clock_error": reading.clock_error[keep],
            "arrival": reading.arrival[keep],
            **{part: {k: a[keep] for k, a in getattr(reading, part).items()} for part in ARRAY_GROUPS},
        }
    found = {name: getattr(reading, name) for name in ("time", "clock_error", "arrival", *ARRAY_GROUPS)}
    part = {"ideal": "ideal", "bias": "bias"}[series]
    found[part] = {key: array.copy() for key, array in found[part].items()}
    for array in found[part].values():
        array[row] = np.nan
    return found


@pytest.mark.requirement("REC-1:mcap", "TRU-1")
@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
def test_lost_message_loses_one_row(builders: ModuleType, recording: Path, tmp_path: Path, suffix: str) -> None:
    rows = read_messages(recording)
    complete = read_dataset(convert(recording, tmp_path / f"whole{suffix}").path)[0][NAME]
    for series, topic in (("measured", TOPIC), ("ideal", f"{TOPIC}/ideal"), ("bias", f"{TOPIC}/bias")):
        own = [i for i, (_, channel, _) in enumerate(rows) if channel.topic == topic]
        assert len(own) == complete.time.size
        for row in (0, 57, complete.time.size - 1):
            gone = builders.write_mcap(
                tmp_path / "gone.mcap", (one for i, one in enumerate(rows) if i != own[row]), recording
            )
            path = gone if suffix == ".mcap" else convert(gone, tmp_path / f"{series}{row}{suffix}").path
            readings, _, left = read_dataset(path)
            for name, value in make_expected(complete, row, series).items():
                assert is_identical(getattr(readings[NAME], name), value), (series, row, name)
            notes = [note for note in left if "has no message for some messages of" in note]
            assert len(notes) == (series != "measured")


@pytest.mark.requirement("REC-1:mcap", "TRU-1")
def test_lost_truth_message_loses_one_row(builders: ModuleType, recording: Path, tmp_path: Path) -> None:
    rows = read_messages(recording)
    complete = read_dataset(recording)[1]["robot::base"]
    own = [i for i, (_, channel, _) in enumerate(rows) if channel.topic == f"{LINK}/accel"]
    gone = builders.write_mcap(tmp_path / "gone.mcap", (one for i, one in enumerate(rows) if i != own[7]), recording)
    truth = read_dataset(gone)[1]["robot::base"]
    for name in ("time", "position", "orientation", "velocity", "angular_velocity"):
        assert is_identical(getattr(truth, name), getattr(complete, name))
    for name in ("acceleration", "angular_acceleration"):
        kept = getattr(complete, name).copy()
        kept[7] = np.nan
        assert is_identical(getattr(truth, name), kept)
    poses = [i for i, (_, channel, _) in enumerate(rows) if channel.topic == LINK]
    gone = builders.write_mcap(tmp_path / "gone.mcap", (one for i, one in enumerate(rows) if i != poses[7]), recording)
    truth = read_dataset(gone)[1]["robot::base"]
    assert is_identical(truth.acceleration, np.delete(complete.acceleration, 7, axis=0))
    assert is_identical(truth.time, np.delete(complete.time, 7))


def make_column(name: str) -> TopicBuffer:
    """Return a column that receives unmodified batches."""
    kind = "geometry_msgs/msg/Vector3Stamped"
    return TopicBuffer(Channel(name, kind, CDR, format_schema(kind).encode(), "ros2msg"), lambda _: {})


@pytest.mark.requirement("TRU-1")
@pytest.mark.parametrize("instants", [True, False])
@pytest.mark.parametrize("size", [1, 3, 40, 1000])
def test_message_pairing_does_not_depend_on_block_size(instants: bool, size: int) -> None:
    rng = np.random.default_rng((size, instants))
    stamp = 5 + np.cumsum(rng.integers(1, 9, 300))
    has = rng.random((3, 300)) > 0.1
    columns = [make_column(f"/{i}") for i in range(3)]
    found: list[list[tuple[float, ...]]] = []
    for first in range(0, 300, size):
        for one, there in zip(columns, has, strict=True):
            at = stamp[first : first + size][there[first : first + size]]
            if at.size:
                one.batches.append(ColumnBatch(at, at, at, {"x": at.astype(float)}))
                one.count += at.size
        last = first + size >= 300
        others = {1: columns[1], 2: columns[2]}
        taken = align_columns(columns[0], others, columns[0].count, (), has_validity_times=instants, last=last)
        if taken is not None:
            shown = [batch.arrays["x"].tolist() for batch in (taken.main, taken.companions[1], taken.companions[2])]
            found += [list(row) for row in zip(*shown, strict=True)]  # type: ignore[list-item]
    expected = [
        [float(at) if there else float("nan") for there in own]
        for at, own in zip(stamp.tolist(), has.T, strict=True)
        if own[0]
    ]
    assert np.array_equal(np.array(found), np.array(expected), equal_nan=True)


SUMMARIES: dict[str, dict[str, Any]] = {
    "no channels": {"repeat_channels": False},
    "no schemas": {"repeat_schemas": False},
    "neither": {"repeat_channels": False, "repeat_schemas": False},
    "no statistics": {"repeat_channels": False, "use_statistics": False, "use_summary_offsets": False},
    "no chunks": {"repeat_channels": False, "repeat_schemas": False, "use_chunking": False},
}


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("options", SUMMARIES.values(), ids=SUMMARIES)
def test_incomplete_mcap_summaries_are_read(
    builders: ModuleType, recording: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    path = builders.write_mcap(tmp_path / "short.mcap", read_messages(recording), recording, **options)
    with open_messages(path) as found, open_messages(recording) as known:
        assert {line.key for line in found.channels} == {line.key for line in known.channels}
    check_alike(path, recording)


def check_alike(path: Path, known: Path) -> None:
    """Assert that two recordings are read bitwise equal."""
    found, expected = read_dataset(path), read_dataset(known)
    assert found[2] == expected[2]
    for there, here in zip(found[:2], expected[:2], strict=True):
        assert there.keys() == here.keys()
        assert here
        for name, reading in here.items():
            assert is_identical(vars(there[name]), vars(reading)), name


def make_orders(rows: list[Sent]) -> dict[str, list[int]]:
    """Return orders of messages by their description."""
    rng = np.random.default_rng(4)
    near = np.argsort(np.arange(len(rows)) + rng.uniform(0.0, 60.0, len(rows)))
    topics = np.argsort([channel.id for _, channel, _ in rows], kind="stable")
    return {"near": near.tolist(), "topics": topics.tolist(), "backwards": list(range(len(rows)))[::-1]}


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("options", [{"chunk_size": 4000}, {"chunk_size": 10**7}, {"use_chunking": False}])
@pytest.mark.parametrize("order", ["near", "topics", "backwards"])
def test_messages_may_be_in_any_order(
    builders: ModuleType,
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    order: str,
    options: dict[str, Any],
) -> None:
    monkeypatch.setattr(mcap_reader, "SEGMENT_BYTES", 6000)
    rows = read_messages(recording)
    path = builders.write_mcap(tmp_path / "any.mcap", (rows[i] for i in make_orders(rows)[order]), recording, **options)
    check_alike(path, recording)
    with open_messages(path) as source:
        log = [item.log_time for item in source.read_messages()]
    assert log == sorted(message.log_time for _, _, message in rows)


@pytest.mark.requirement("REC-1:mcap")
def test_disorder_beyond_the_memory_limit_is_an_error(
    builders: ModuleType, recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcap_reader, "MAX_HELD_BYTES", 150_000)
    rows = read_messages(recording)
    builders.write_mcap(
        tmp_path / "near.mcap", (rows[i] for i in make_orders(rows)["near"]), recording, chunk_size=2000
    )
    check_alike(tmp_path / "near.mcap", recording)
    strewn = (rows[i] for first in range(40) for i in range(first, len(rows), 40))
    path = builders.write_mcap(tmp_path / "strewn.mcap", strewn, recording, chunk_size=2000)
    with pytest.raises(RecordingError, match=r"strewn\.mcap: .* mcap sort"):
        read_dataset(path)


def serialise(kind: str, value: float, time: int) -> bytes:
    """Return a message of a pressure or a temperature, serialised by rosbags."""
    types = STORE.types
    stamp = types["builtin_interfaces/msg/Time"](time // 10**9, time % 10**9)
    header = types["std_msgs/msg/Header"](stamp, "base")
    return bytes(STORE.serialize_cdr(types[kind](header, value, 0.0), kind))


PRESSURE, TEMPERATURE, FIELD = "FluidPressure", "Temperature", "MagneticField"


def write_messages(
    path: Path, messages: Iterable[tuple[str, str, bytes | None]], empty: Collection[str] = (), own: str = "msg"
) -> Path:
    """Write messages, (topic, type, bytes), 0.1 s apart. `None` as bytes means a message with its time."""
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start("ros2", "elsewhere")
        channels: dict[tuple[str, str], int] = {}
        for i, (topic, short, data) in enumerate(messages):
            time = START + i * 10**8
            kind = f"sensor_msgs/msg/{short}"
            if (topic, short) not in channels:
                definition = STORE.generate_msgdef(kind, ros_version=2)[0] if short not in empty else own
                schema = writer.register_schema(kind, "ros2msg", definition.encode())
                channels[topic, short] = writer.register_channel(topic, "cdr", schema)
            complete = serialise(kind, float(i), time) if data is None else data
            writer.add_message(channels[topic, short], time, complete, time)
        writer.finish()  # type: ignore[no-untyped-call]
    return path


@pytest.mark.requirement("REC-1:mcap", "REC-1:bag")
@pytest.mark.parametrize("first", [PRESSURE, TEMPERATURE])
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".db3"])
def test_topic_with_two_types(tmp_path: Path, first: str, suffix: str) -> None:
    second = TEMPERATURE if first == PRESSURE else PRESSURE
    messages = [("/p", first, None)] * 5 + [("/p", second, None)] * 5
    path = write_messages(tmp_path / "two.mcap", messages)
    if suffix != ".mcap":
        path = convert(path, tmp_path / f"other{suffix}").path
    readings, _, left = read_dataset(path)
    values = readings["p"].arrays["pressure"].ravel().tolist()
    assert values == [float(i) for i in (range(5) if first == PRESSURE else range(5, 10))]
    assert left == ["topic /p of type sensor_msgs/msg/Temperature is not read"]


@pytest.mark.requirement("REC-1:mcap", "REC-1:bag")
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".db3"])
def test_topics_without_leading_slash(tmp_path: Path, suffix: str) -> None:
    topics = ["a/p", "/a/p", "b", "/"]
    path = write_messages(tmp_path / "bare.mcap", [(topic, PRESSURE, None) for topic in topics for _ in range(2)])
    if suffix != ".mcap":
        path = convert(path, tmp_path / f"other{suffix}").path
    readings, _, left = read_dataset(path)
    values = {name: one.arrays["pressure"].ravel().tolist() for name, one in readings.items()}
    assert values == {"a::p_": [0.0, 1.0], "a::p": [2.0, 3.0], "b": [4.0, 5.0], "topic": [6.0, 7.0]}
    assert left == []
    loaded = ns.open(convert(path, tmp_path / "kept.npz").path)
    assert loaded.readings.keys() == readings.keys()


@pytest.mark.requirement("REC-1:mcap", "REC-1:convert")
def test_transforms_and_time_of_another_program_are_listed(tmp_path: Path) -> None:
    """In a recording of navsense, these topics repeat the truth. In another one they can be all that it has."""
    topics = (("/p", PRESSURE), ("/tf", TEMPERATURE), ("/clock", TEMPERATURE))
    path = write_messages(tmp_path / "tf.mcap", [(topic, kind, None) for topic, kind in topics])
    losses = convert(path, tmp_path / "tf.npz").losses
    unread = "of type sensor_msgs/msg/Temperature is not read"
    assert losses == [f"topic /tf {unread}", f"topic /clock {unread}"]


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("place", [0, 2, 5])
def test_empty_message_is_read(tmp_path: Path, place: int) -> None:
    messages: list[tuple[str, str, bytes | None]] = [("/p", PRESSURE, None)] * 6
    messages[place] = ("/p", PRESSURE, b"")
    readings, _, left = read_dataset(write_messages(tmp_path / "empty.mcap", [*messages, ("/q", PRESSURE, b"")]))
    assert readings.keys() == {"p"}
    assert readings["p"].arrays["pressure"].ravel().tolist() == [float(i) for i in range(6) if i != place]
    assert left[-1] == "topic /p: 1 message without any bytes"


DEFINITIONS = {"empty": "", "of itself": "sensor_msgs/MagneticField again\n", "none": "float64[ x"}


@pytest.mark.requirement("REC-1:mcap")
@pytest.mark.parametrize("own", DEFINITIONS.values(), ids=DEFINITIONS)
def test_undefined_type_is_reported(tmp_path: Path, own: str) -> None:
    messages: list[tuple[str, str, bytes | None]] = [("/p", PRESSURE, None), ("/m", FIELD, b"\0\1\0\0" + bytes(100))]
    path = write_messages(tmp_path / "odd.mcap", messages * 3, (FIELD,), own)
    readings, _, left = read_dataset(path)
    assert readings["p"].time.size == 3
    assert left == ["topic /m of type sensor_msgs/msg/MagneticField is not read"]
    if own == DEFINITIONS["of itself"]:
        with open_messages(path) as source, pytest.raises(RecordingError, match="contains itself") as error:
            source.channels[1].parse_type()
        assert "recursion" not in str(error.value)

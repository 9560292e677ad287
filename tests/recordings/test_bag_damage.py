"""Damaged bags: errors are one line with the file name, and recovery keeps all valid content."""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType

import pytest

from navsense import recordings
from navsense.core.errors import MotionError, RecordingError
from navsense.recordings.convert import convert
from navsense.recordings.leftovers import recover
from navsense.recordings.recorded_motion import load_motion
from navsense.recordings.rosbag.definitions import describe_error
from navsense.recordings.summary import read_summary

EPOCH = 1_700_000_000
SEEDS = range(40)
FIELD = b"float64[9] angular_velocity_covariance"
IMU_TOPICS = {"/imu", "/imu/ideal", "/imu/bias"}


@pytest.fixture(scope="module")
def bag(builders: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bag") / "run.bag"
    with recordings.open_writer(
        path, recordings.RecordedRun(builders.make_world(), epoch=EPOCH, seed=7, duration=1.0)
    ) as writer:
        writer.write(builders.make_time_slice(0, EPOCH))
    return path


def count_messages(path: Path) -> dict[str, int]:
    return {entry.name: entry.count for entry in read_summary(path).entries}


def damage(path: Path, target: Path, old: bytes, new: bytes, count: int = -1) -> Path:
    """Write a copy with some bytes replaced by as many others, everywhere or `count` times."""
    assert len(old) == len(new)
    target.write_bytes(path.read_bytes().replace(old, new, count))
    return target


@pytest.mark.requirement("REC-1:bag")
def test_recovery_names_damaged_definitions_and_saves_the_other_topics(bag: Path, tmp_path: Path) -> None:
    bad = damage(bag, tmp_path / "bad.bag", FIELD, FIELD.replace(b"]", b"("))
    result = recover(bad)
    reason = "the definition of sensor_msgs/msg/Imu cannot be parsed: rosbags stops at: float64[9( angular_velocity_"
    assert all(reason in note and "\n" not in note and len(note) < 220 for note in result.notes)
    assert {note.partition(": the definition")[0] for note in result.notes} == {
        f"not recovered: topic {topic}" for topic in IMU_TOPICS
    }
    assert result.damaged_chunks == 3
    others = {topic: count for topic, count in count_messages(bag).items() if topic not in IMU_TOPICS}
    assert count_messages(Path(result.path)) == others


@pytest.mark.requirement("REC-1:bag")
def test_definition_that_is_damaged_in_a_chunk_is_read_from_the_index(bag: Path, tmp_path: Path) -> None:
    bad = damage(bag, tmp_path / "bad.bag", FIELD, FIELD.replace(b"]", b"("), 1)
    result = recover(bad)
    assert (result.notes, result.damaged_chunks) == ((), 0)
    assert count_messages(Path(result.path)) == count_messages(bag)


@pytest.mark.requirement("REC-1:bag")
def test_recovery_names_a_connection_without_its_definition(bag: Path, tmp_path: Path) -> None:
    definition = b"message_definition= # Measurement of the Magnetic"
    bad = damage(bag, tmp_path / "bad.bag", definition, definition.replace(b"n=", b"m="))
    result = recover(bad)
    assert [note.partition("connection ")[2].partition(": ")[2] for note in result.notes] == [
        "its record is damaged"
    ] * 3
    saved = count_messages(Path(result.path))
    assert set(saved) == set(count_messages(bag)) - {"/mag", "/mag/ideal", "/mag/bias"}
    assert sum(saved.values()) == result.messages


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".db3"])
def test_conversion_reports_damaged_definitions(bag: Path, tmp_path: Path, suffix: str) -> None:
    bad = damage(bag, tmp_path / "bad.bag", FIELD, FIELD.replace(b"]", b"("))
    result = convert(bad, tmp_path / f"out{suffix}")
    assert {line.split(":")[0] for line in result.losses} == {f"topic {topic}" for topic in IMU_TOPICS}
    assert set(count_messages(tmp_path / f"out{suffix}")) == set(count_messages(bag)) - IMU_TOPICS


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_bag_is_one_line_with_the_name_and_a_reason(bag: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(bag.read_bytes())
    for _ in range(3):
        place = rng.choice((0, len(data) - 20_000))
        data[rng.randrange(place, place + 20_000)] ^= 1 << rng.randrange(8)
    bad = tmp_path / "bad.bag"
    bad.write_bytes(data)
    for action in (read_summary, recover, recordings.open):
        try:
            action(bad)  # type: ignore[operator]  # functions of one path
        except RecordingError as error:
            text = str(error)
            assert text.startswith(f"{bad}: ")
            assert "\n" not in text
            assert ": ;" not in text
            assert len(text.replace(str(bad), "")) < 250


@pytest.mark.parametrize(
    "text",
    ["{x: [", "a: b: c\n", "", "rosbag2_bagfile_information:\n  version: 9\n  storage_identifier: [\n", "- nothing"],
)
def test_damaged_metadata_file_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "metadata.yaml").write_text(text)
    with pytest.raises(RecordingError) as error:
        read_summary(tmp_path)
    problem = error.value.what.removeprefix("cannot be read: ")
    assert str(error.value).endswith(
        "; must be a complete bag of ROS 2; copy it again: a damaged bag of ROS 2 cannot be recovered"
    )
    assert 0 < len(problem) <= 80
    assert "\n" not in problem


def test_reason_is_never_empty_and_bounded() -> None:
    assert describe_error(AssertionError()) == "assertion error in rosbags"
    assert describe_error(KeyError("x")) == "'x'"
    assert describe_error(ValueError("two\nlines")) == "two lines"
    assert describe_error(ValueError("a" * 100)) == "a" * 77 + "..."


def test_info_of_a_ros1_bag_names_a_distribution_of_ros1(bag: Path, tmp_path: Path) -> None:
    assert ", ros noetic, " in read_summary(bag).headline
    convert(bag, tmp_path / "out.mcap")
    assert read_summary(tmp_path / "out.mcap").metadata["ros"] == "humble"


@pytest.mark.parametrize("content", [b"", b"no database" * 400], ids=["empty", "text"])
def test_a_damaged_database_as_a_motion_has_a_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "drive.db3"
    path.write_bytes(content)
    with pytest.raises(
        MotionError, match=r"drive\.db3: cannot be read: .*; must be a complete bag of ROS 2; copy it again"
    ):
        load_motion(path)

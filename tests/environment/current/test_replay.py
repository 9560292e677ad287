"""Replayed currents: arrays, tables in three frames, archives, and topics of bags that rosbags writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import FieldError
from navsense.environment.current import CurrentReplay
from navsense.recordings.currents import read_current

pytestmark = pytest.mark.requirement("CUR-1")

TIMES = np.array([0.0, 2.0, 5.0])
VELOCITY = np.array([[0.1, 0.2, 0.0], [0.5, -0.2, 0.1], [0.0, 0.0, 0.3]])


def evaluate_at(field: CurrentReplay, *instants: float) -> Any:
    return field.at(np.zeros((len(instants), 3)), np.array(instants))


def test_interpolation_equals_numpy() -> None:
    draw = np.random.default_rng(3)
    times, velocity = np.cumsum(draw.uniform(0.01, 2.0, 50)), draw.uniform(-1.0, 1.0, (50, 3))
    asked = draw.uniform(times[0], times[-1], 400)
    expected = np.stack([np.interp(asked, times, column) for column in velocity.T], axis=1)
    assert evaluate_at(CurrentReplay(times, velocity), *asked) == pytest.approx(expected, abs=1e-12)


def test_outside_rules() -> None:
    with pytest.raises(FieldError, match=r'instant of row 1 \(s\): 5.5; must be from 0 to 5.*use outside="hold"'):
        evaluate_at(CurrentReplay(TIMES, VELOCITY), 1.0, 5.5)
    assert evaluate_at(CurrentReplay(TIMES, VELOCITY, outside="hold"), -1.0, 9.0).tolist() == [
        [0.1, 0.2, 0.0],
        [0.0, 0.0, 0.3],
    ]
    assert evaluate_at(CurrentReplay(TIMES[:1], VELOCITY[:1], outside="hold"), 7.0).tolist() == [[0.1, 0.2, 0.0]]


@pytest.mark.parametrize(
    ("head", "row", "expected"),
    [
        ("time,x,y,z", "0.1,0.2,0.3", (0.1, 0.2, 0.3)),
        ("time,east,north,up", "0.1,0.2,0.3", (0.2, -0.1, 0.3)),
        ("time,north,east,down", "0.1,0.2,0.3", (0.1, -0.2, -0.3)),
    ],
)
def test_header_defines_the_frame(tmp_path: Path, head: str, row: str, expected: tuple[float, ...]) -> None:
    """The x axis of the world points north. A table in world axes is not rotated."""
    path = tmp_path / "current.csv"
    path.write_text(f"{head}\n100.0,{row}\n103.0,{row}\n")
    assert evaluate_at(read_current(path, heading=math.pi / 2.0), 1.5)[0] == pytest.approx(expected, abs=1e-15)


def test_record_starts_at_the_given_time(tmp_path: Path) -> None:
    path = tmp_path / "current.csv"
    path.write_text("time,x,y,z\n100,0,0,0\n104,0.4,0,0\n")
    assert evaluate_at(read_current(path), 1.0)[0, 0] == pytest.approx(0.1, rel=1e-12, abs=0.0)
    assert evaluate_at(read_current(path, start=101.0), 1.0)[0, 0] == pytest.approx(0.2, rel=1e-12, abs=0.0)


def test_npz_archive(tmp_path: Path) -> None:
    path = tmp_path / "current.npz"
    np.savez(path, time=TIMES + 7.0, velocity=VELOCITY)
    assert evaluate_at(read_current(path), 2.0).tolist() == [[0.5, -0.2, 0.1]]
    assert evaluate_at(read_current(path, frame="ned"), 2.0)[0] == pytest.approx([-0.2, 0.5, -0.1], rel=1e-12, abs=0.0)


def write_bag(path: Path, old: bool, kind: str, stamped: bool) -> None:
    """Write the record as a topic of `kind`; messages are recorded one second late."""
    from rosbags.rosbag1 import Writer as OldWriter
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if old else Stores.ROS2_HUMBLE)
    types = store.types

    def make_message(stamp: int, vector: Any) -> Any:
        three = types["geometry_msgs/msg/Vector3"](*(float(part) for part in vector))
        zero = types["geometry_msgs/msg/Vector3"](0.0, 0.0, 0.0)
        time = types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
        head = ({"seq": 0} if old else {}) | {"stamp": time, "frame_id": "world"}
        header = types["std_msgs/msg/Header"](**head)
        twist = types["geometry_msgs/msg/Twist"](three, zero)
        return {
            "Vector3": lambda: three,
            "Vector3Stamped": lambda: types["geometry_msgs/msg/Vector3Stamped"](header, three),
            "Twist": lambda: twist,
            "TwistStamped": lambda: types["geometry_msgs/msg/TwistStamped"](header, twist),
        }[kind]()

    writer: Any = OldWriter(path) if old else Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
    with writer:
        connection = writer.add_connection("/current", f"geometry_msgs/msg/{kind}", typestore=store)
        other = writer.add_connection("/note", "std_msgs/msg/String", typestore=store)
        encode = store.serialize_ros1 if old else store.serialize_cdr
        text = types["std_msgs/msg/String"]("hello")
        writer.write(other, 10**18, encode(text, "std_msgs/msg/String"))
        for time, vector in zip(TIMES, VELOCITY, strict=True):
            stamp = 10**18 + round(time * 1e9)
            data = encode(make_message(stamp, vector), f"geometry_msgs/msg/{kind}")
            writer.write(connection, stamp + (10**9 if stamped else 0), data)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("kind", ["Vector3", "Vector3Stamped", "Twist", "TwistStamped"])
def test_topic_of_a_bag(tmp_path: Path, old: bool, kind: str) -> None:
    path = tmp_path / ("current.bag" if old else "current")
    write_bag(path, old, kind, "Stamped" in kind)
    field = read_current(path, topic="/current", start=1e9)
    assert evaluate_at(field, *TIMES) == pytest.approx(VELOCITY, abs=1e-6)
    assert evaluate_at(read_current(path), 3.5)[0] == pytest.approx([0.25, -0.1, 0.2], abs=1e-6)


def test_topic_without_velocity_is_an_error(tmp_path: Path) -> None:
    write_bag(tmp_path / "current", False, "Twist", False)
    for topic, shown in (("/note", "/note of type std_msgs/msg/String"), ("/wind", "/wind")):
        with pytest.raises(
            FieldError, match=f"topic of the current: {shown}; must be a topic of Twist or Vector3: /current"
        ):
            read_current(tmp_path / "current", topic=topic)


HEAD = "time,x,y,z\n"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 0, "is empty"),
        ("t,x,y,z\n1,2,3,4\n", 1, "header of the record of a current: t,x,y,z; must be time,x,y,z or time,east"),
        (HEAD, 0, "rows of the record of a current: none"),
        (HEAD + "0,0,0,0\n2,0,0,0\n1,0,0,0\n", 4, "time of a current (s): 1.0"),
        (HEAD + "0,0,0,0\n0,0,0,0\n", 3, "must be finite and after the row before"),
        (HEAD + "0,0,0\n", 2, "number of columns: 3; must be 4"),
        (HEAD + "0,0,,0\n", 2, "y: empty"),
        (HEAD + "0,0,55,0\n", 2, "must be finite and of absolute value up to 15"),
    ],
)
def test_table_error_has_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = tmp_path / "current.csv"
    path.write_text(text)
    with pytest.raises(FieldError) as found:
        read_current(path)
    assert problem in str(found.value)
    assert str(found.value).startswith(f"{path}:{line}: " if line else f"{path}: ")


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.npz", b"no archive", "record of a current: is not an archive; must be a CSV file"),
        ("a.npz", b"", "record of a current"),
        ("a.bag", b"no bag", "a.bag: is not a ROS 1 bag; must start with #ROSBAG"),
        ("a.mcap", b"no bag", "is not an MCAP file; must be a ROS bag that can be read"),
        ("none.npz", None, "does not exist"),
        ("none.bag", None, "does not exist"),
    ],
)
def test_invalid_file_is_an_error(tmp_path: Path, name: str, data: bytes | None, problem: str) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(FieldError) as found:
        read_current(tmp_path / name)
    assert problem in str(found.value)
    assert name in str(found.value)


def test_topic_of_a_table_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "current.csv").write_text(HEAD + "0,0.1,0.2,0\n")
    with pytest.raises(FieldError, match="topic of the current: /current; must not be given: only a ROS"):
        read_current(tmp_path / "current.csv", topic="/current")


def test_archive_without_its_arrays_is_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", time=TIMES)
    with pytest.raises(FieldError, match="must hold time and velocity"):
        read_current(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", time=TIMES, velocity=VELOCITY[:2])
    with pytest.raises(FieldError, match=r"b\.npz: shapes of times and velocities"):
        read_current(tmp_path / "b.npz")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: CurrentReplay(TIMES[::-1], VELOCITY), "after the row before"),
        (lambda: CurrentReplay(TIMES, VELOCITY[:2]), "must be (n,) and (n, 3)"),
        (lambda: CurrentReplay(TIMES, VELOCITY * math.nan), "velocity of a current of row 0"),
        (lambda: CurrentReplay(TIMES, VELOCITY, "flu"), "frame of a current: flu; must be one of world, enu, ned"),
        (lambda: CurrentReplay(TIMES, VELOCITY, outside="zero"), "outside of a record: zero"),  # type: ignore[arg-type]
    ],
)
def test_invalid_record_is_an_error(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(FieldError) as found:
        make()
    assert problem in str(found.value)


def test_frame_that_differs_from_the_header_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEAD + "0,0,0,0\n")
    with pytest.raises(FieldError, match="frame of a current: ned; must be world, the frame of the header"):
        read_current(tmp_path / "a.csv", frame="ned")

"""Messages of any type are converted between the encodings of ROS 1 and ROS 2 as rosbags serialises them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from navsense.messages.repack import ShapeCache
from navsense.recordings.rosbag.definitions import parse_definition

SEPARATOR = "=" * 80
KIND = "other_msgs/msg/Everything"
TEXT = f"""# of another program
Header header        # numbered in ROS 1
uint8 KIND=3
string name
time when
duration lasting
int16[3] three
float64[] many
string[] words
other_msgs/Part[2] pair
other_msgs/Part[] parts
bool yes
uint8[] raw
{SEPARATOR}
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
{SEPARATOR}
MSG: other_msgs/Part
int8 small
float64 large
string note
float32[] few
"""
"""Texts, arrays of numbers and messages, times, and numbers that need padding in one encoding only."""

OLD = get_typestore(Stores.EMPTY)
OLD.register(get_types_from_msg(TEXT, KIND))
NEW = get_typestore(Stores.EMPTY)
NEW.register(get_types_from_msg(TEXT.replace("uint32 seq\n", ""), KIND))

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)
LISTS = st.lists(st.floats(width=32), max_size=3)
PARTS = st.tuples(st.integers(-128, 127), st.floats(), WORDS, LISTS)
VALUES = st.fixed_dictionaries(
    {
        "frame": WORDS,
        "name": WORDS,
        "when": st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 999_999_999)),
        "three": st.lists(st.integers(-32768, 32767), min_size=3, max_size=3),
        "many": LISTS,
        "words": st.lists(WORDS, max_size=2),
        "pair": st.tuples(PARTS, PARTS),
        "parts": st.lists(PARTS, max_size=2),
        "yes": st.booleans(),
        "raw": st.binary(max_size=5),
    }
)


def make_message(store: Any, values: dict[str, Any], *, old: bool) -> bytes:
    """Return one message as rosbags serialises it."""
    types = store.types
    stamp = types["builtin_interfaces/msg/Time"](*values["when"])

    def part(arguments: tuple[int, float, str, list[float]]) -> Any:
        small, large, note, few = arguments
        return types["other_msgs/msg/Part"](small, large, note, np.array(few, dtype=np.float32))

    header = types["std_msgs/msg/Header"](*((0,) if old else ()), stamp, values["frame"])
    complete = types[KIND](
        header,
        values["name"],
        stamp,
        types["builtin_interfaces/msg/Duration"](*values["when"]),
        np.array(values["three"], dtype=np.int16),
        np.array(values["many"], dtype=np.float64),
        list(values["words"]),
        [part(value) for value in values["pair"]],
        [part(value) for value in values["parts"]],
        values["yes"],
        np.frombuffer(values["raw"], dtype=np.uint8),
    )
    return bytes(store.serialize_ros1(complete, KIND) if old else store.serialize_cdr(complete, KIND))


@pytest.mark.compiled
@pytest.mark.requirement("REC-1:convert")
@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4))
def test_both_encodings_equal_rosbags(several: list[dict[str, Any]]) -> None:
    kind = parse_definition(KIND, TEXT, "msg")
    old, new = (
        [make_message(store, one, old=which) for one in several] for store, which in ((OLD, True), (NEW, False))
    )
    assert ShapeCache(KIND, kind.definitions, is_ros1=True).convert(old) == new
    numbered = ShapeCache(KIND, kind.definitions, is_ros1=False).convert(new, first=7)
    assert [one[4:] for one in numbered] == [one[4:] for one in old]
    assert [int.from_bytes(one[:4], "little") for one in numbered] == list(range(7, 7 + len(several)))


@pytest.mark.requirement("REC-1:convert")
def test_wrong_type_is_an_error() -> None:
    kind = parse_definition(KIND, TEXT, "msg")
    values: dict[str, Any] = {
        "frame": "a",
        "name": "b",
        "when": (1, 2),
        "three": [1, 2, 3],
        "many": [1.0],
        "words": ["c"],
    }
    values |= {"pair": ((1, 2.0, "d", [3.0]),) * 2, "parts": [], "yes": True, "raw": b"efg"}
    complete = make_message(NEW, values, old=False)
    for raw, why in (
        (complete[:-1], "too early"),
        (complete + bytes(4), "4 bytes after"),
        (b"\0\0" + complete[2:], "CDR"),
    ):
        with pytest.raises(ValueError, match=why):
            ShapeCache(KIND, kind.definitions, is_ros1=False).convert([raw])
    with pytest.raises(ValueError, match=r"no definition|defined neither"):
        parse_definition("other_msgs/msg/Absent", "", "none")


@pytest.mark.requirement("REC-1:convert")
def test_md5_sums_equal_those_of_ros() -> None:
    noetic = get_typestore(Stores.ROS1_NOETIC)
    for name in ("sensor_msgs/msg/Imu", "nav_msgs/msg/Odometry", "sensor_msgs/msg/PointCloud2", "std_msgs/msg/Empty"):
        text, md5 = noetic.generate_msgdef(name, ros_version=1)
        assert parse_definition(name, text, "msg").md5 == md5
        assert parse_definition(name, "", "none").rihs01 == get_typestore(Stores.LATEST).hash_rihs01(name)

"""ROS 1 messages equal the conversion of rosbags bytewise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from navsense.core.typing import ByteArray
from navsense.messages import generic, schemas
from navsense.messages.cdr import CdrLayout, MessageEncoder, build_layout, to_humble
from navsense.messages.ros1 import format_definition, make_ros1_packing, split_definitions
from navsense.sensors import Depth
from navsense.testing import example_world

FIRST = 7
"""Sequence number of the first message."""

LENGTHS = {"beams": 3, "transforms": 2, "ranges": 5, "points": 4, "channels": 2, "channels.1.values": 3}
TEXTS = {
    "header.frame_id": "überall",
    "frame_id": "f",
    "child_frame_id": "odd",
    "transforms.1.child_frame_id": "even",
    "beams.2.pose.header.frame_id": "beam",
    "channels.0.name": "intensity",
}
"""Lengths and texts of different sizes. Each type uses those of its fields."""


def make_random_messages(layout: CdrLayout, rows: int = 5) -> ByteArray:
    """Return messages whose numbers are random bytes."""
    rng = np.random.default_rng(3)
    out = np.tile(np.frombuffer(layout.template, dtype=np.uint8), (rows, 1))
    for place in layout.fields.values():
        size = np.dtype(place.dtype).itemsize * max(place.count, 1)
        out[:, place.offset : place.offset + size] = rng.integers(0, 256, (rows, size))
    return out


def check(message: MessageEncoder, numbered: bool) -> None:
    rows, found = make_random_messages(message.layout), make_ros1_packing(message)
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(message.schema, message.type))
    ros1_store = get_typestore(Stores.EMPTY)
    ros1_store.register(get_types_from_msg(found.definition, message.type))
    has_ros2_fields = bool(schemas.list_ros2_only_fields(split_definitions(message)))
    assert (found.shape.sequence_offset >= 0) == numbered
    for i, (row, packed) in enumerate(zip(rows, found.pack(rows, FIRST), strict=True)):
        got = packed.tobytes()
        if has_ros2_fields:  # rosbags converts between equal fields only, so it serialises the message of ROS 1
            values: Any = store.deserialize_cdr(row.tobytes(), message.type)
            if numbered:
                vars(values)["header"] = SimpleNamespace(**vars(values.header), seq=0)
            expected = bytearray(ros1_store.serialize_ros1(values, message.type))
            # A random truth value is 1 in what rosbags writes.
            got = bytes(ros1_store.serialize_ros1(ros1_store.deserialize_ros1(got, message.type), message.type))
        else:
            expected = bytearray(store.cdr_to_ros1(row.tobytes(), message.type))
        if numbered:
            # rosbags sets the sequence number, the first field of a header, to zero.
            assert expected[found.shape.sequence_offset : found.shape.sequence_offset + 4] == bytes(4)
            expected[found.shape.sequence_offset : found.shape.sequence_offset + 4] = (FIRST + i).to_bytes(4, "little")
        assert got == bytes(expected)


@pytest.mark.requirement("DVU-4", "DVW-5", "REC-1:bag")
@pytest.mark.parametrize("kind", list(schemas.ROS1_DEFINITIONS))
def test_every_type_is_serialised_as_by_rosbags(kind: str) -> None:
    def never(*_: Any) -> None:
        raise AssertionError

    message = to_humble(MessageEncoder(kind, build_layout(kind, TEXTS, LENGTHS), never))
    check(message, any(part.name == "header" for part in schemas.parse_fields(schemas.DEFINITIONS[kind])))
    assert split_definitions(message).items() <= schemas.DISTRIBUTIONS["humble"].items()
    assert make_ros1_packing(message).definition == format_definition(kind)


@pytest.mark.requirement("REC-1:bag")
def test_generic_sensor_type_is_serialised() -> None:
    sensor = example_world(("depth", Depth.example_spec())).sensors[0]
    message = generic.make_encoder(sensor, "measured")
    check(message, numbered=True)
    assert make_ros1_packing(message).definition.startswith("std_msgs/Header header\nfloat64 ")
    header = make_ros1_packing(message).definition.partition("MSG: std_msgs/Header\n")[2].splitlines()
    assert [line for line in header if line and line[0] != "#"] == ["uint32 seq", "time stamp", "string frame_id"]


def test_sequence_numbers_wrap_around() -> None:
    found = make_ros1_packing(
        MessageEncoder("geometry_msgs/msg/AccelStamped", build_layout("geometry_msgs/msg/AccelStamped"), print)
    )
    rows = make_random_messages(build_layout("geometry_msgs/msg/AccelStamped"), rows=3)
    numbers = (
        found.pack(rows, 2**32 - 2)[:, found.shape.sequence_offset : found.shape.sequence_offset + 4]
        .copy()
        .view("<u4")[:, 0]
    )
    assert numbers.tolist() == [2**32 - 2, 2**32 - 1, 0]

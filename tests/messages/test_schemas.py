"""Message definitions have the MD5 sums of ROS 1's generator, and the same fields in ROS 2."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from navsense.messages import schemas

NOETIC = get_typestore(Stores.ROS1_NOETIC)

with (Path(__file__).parent.parent / "oracles" / "genmsg" / "md5.csv").open(encoding="utf-8") as _file:
    SUMS = {row["type"]: row["md5"] for row in csv.DictReader(_file)}

ROS2_ONLY = {"ros_gz_interfaces/msg/Altimeter"}
"""Packages that ROS 1 lacks."""


def load_store(kind: str, definitions: Any) -> Any:
    """Return a type store with one type and its dependencies, parsed by rosbags from the text of recordings."""
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(schemas.format_schema(kind, definitions), kind))
    return store


@pytest.mark.requirement("DVU-4", "DVW-5")
@pytest.mark.parametrize("kind", [kind for kind in schemas.ROS1_DEFINITIONS if kind not in ROS2_ONLY])
def test_md5_sums_equal_those_of_ros1(kind: str) -> None:
    expected = SUMS[kind] if kind in SUMS else NOETIC.generate_msgdef(kind, ros_version=1)[1]
    assert load_store(kind, schemas.ROS1_DEFINITIONS).generate_msgdef(kind, ros_version=1)[1] == expected


def test_every_expected_sum_is_used() -> None:
    assert set(SUMS) <= set(schemas.ROS1_DEFINITIONS)
    assert not {kind for kind in ROS2_ONLY if kind in NOETIC.fielddefs}


@pytest.mark.parametrize("kind", list(schemas.ROS1_DEFINITIONS))
def test_both_versions_of_ros_have_the_same_fields(kind: str) -> None:
    """Fields equal ROS 2 Humble, except for the sequence number of a header. rosbags names both stamp types alike.

    ROS 1 lacks the textures and the mesh of a marker, whose constants have a smaller type there. Some names differ.
    """
    lacking = schemas.list_ros2_only_fields(schemas.DISTRIBUTIONS["humble"])
    assert {kind for kind, _ in lacking} == {schemas.MARKER_TYPE}
    one, two = (
        load_store(kind, definitions).fielddefs
        for definitions in (schemas.ROS1_DEFINITIONS, schemas.DISTRIBUTIONS["humble"])
    )
    for name, (constants, fields) in one.items():
        names = {old: new for new, old in schemas.ROS1_FIELD_NAMES.get(name, {}).items()}
        own = [
            (names.get(field[0], field[0]), *field[1:])
            for field in fields
            if name != "std_msgs/msg/Header" or field[0] != "seq"
        ]
        assert own == [field for field in two[name][1] if (name, field[0]) not in lacking], name
        assert [(one[0], one[2]) for one in constants] == [(one[0], one[2]) for one in two[name][0]], name
        assert name == schemas.MARKER_TYPE or constants == two[name][0], name

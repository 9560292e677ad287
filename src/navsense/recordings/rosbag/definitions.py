"""Message definitions in recordings, parsed by rosbags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from navsense.core.errors import show
from navsense.messages.repack import Definitions
from navsense.messages.ros1 import format_definition, load_noetic_definitions
from navsense.messages.schemas import (
    DISTRIBUTIONS,
    HEADER_TYPE,
    ROS1_CHANGES,
    ROS1_FIELD_NAMES,
    MessageField,
    parse_fields,
)

SEQ_FIELD = "seq"
"""Field that the header has only in ROS 1."""

DEFINITION_SEPARATOR = "=" * 80 + "\n"
"""Separator of the definitions in one text."""


@dataclass(frozen=True, eq=False)
class TypeDefinition:
    """A message type: its definitions and hashes in ROS 1 and in ROS 2, and its fields.

    ros2_only: type and name of the fields that its ROS 1 definition lacks.
    """

    type: str
    ros1_text: str
    ros2_text: str
    md5: str
    rihs01: str
    definitions: Definitions
    ros2_only: frozenset[tuple[str, str]] = frozenset()


@cache
def parse_definition(kind: str, text: str, language: str) -> TypeDefinition:
    """Return a type by its definition in the language "msg" or "idl", or by that of ROS if the language is "none".

    Raises `ValueError` if neither the text nor ROS defines the type.
    """
    types = _rename_fields(_parse_types(kind, text, language), to_ros1=False)
    if kind not in types:
        raise ValueError(f"{kind} is defined neither in the recording nor by ROS")
    ros1_types = _rename_fields(_make_ros1_types(types), to_ros1=True)
    ros1_store = _make_typestore({**ros1_types, **_make_header_type(types, with_seq=True)})
    ros2_store = _make_typestore({**types, **_make_header_type(types, with_seq=False)})
    try:
        ros1_text, md5 = ros1_store.generate_msgdef(kind, ros_version=1)
        ros2_text, _ = ros2_store.generate_msgdef(kind, ros_version=2)
        definitions = {
            name: tuple(_make_field(*member) for member in members)
            for name, (_, members) in ros2_store.fielddefs.items()
        }
        ros2_only = frozenset(
            (name, member[0])
            for name in ROS1_CHANGES.keys() & types.keys()
            for member in types[name][1]
            if member not in ros1_types[name][1]
        )
        return TypeDefinition(
            kind,
            _find_noetic_text(kind, md5) or ros1_text,
            ros2_text,
            md5,
            ros2_store.hash_rihs01(kind),
            definitions,
            ros2_only,
        )
    except RecursionError as error:
        raise ValueError(f"the definition of {kind} cannot be used: a type in it contains itself") from error
    except Exception as error:
        raise ValueError(f"the definition of {kind} cannot be used: {describe_error(error)}") from error


def describe_error(error: Exception) -> str:
    """Return the text of an error of rosbags on one line of at most 80 characters.

    For a definition that rosbags cannot parse, this is the line where it stops; for an error without text, its type.
    """
    lines = str(error).splitlines()
    if lines and lines[0].startswith("Could not parse") and len(lines) > 3:
        return show(f"rosbags stops at: {lines[3].strip()}")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return show(str(error)) or f"{words} in rosbags"


def _make_ros1_types(types: Mapping[str, Any]) -> dict[str, Any]:
    """Return types with their ROS 1 definitions: types that ROS 2 changed get the older ones."""
    from rosbags.typesys import get_types_from_msg

    changed = dict(types)
    for kind, text in ROS1_CHANGES.items():
        known = (get_types_from_msg(definitions[kind], kind)[kind] for definitions in DISTRIBUTIONS.values())
        if kind in changed and changed[kind] in known:
            changed[kind] = get_types_from_msg(text, kind)[kind]
    return changed


def _rename_fields(types: Mapping[str, Any], *, to_ros1: bool) -> dict[str, Any]:
    """Return types with the field names of ROS 1, or of ROS 2, where these differ."""
    renamed = dict(types)
    for kind, ros1_names in ROS1_FIELD_NAMES.items():
        if kind in renamed:
            names = ros1_names if to_ros1 else {old: new for new, old in ros1_names.items()}
            constants, members, *rest = renamed[kind]
            members = [(names.get(name, name), description) for name, description in members]
            renamed[kind] = (constants, members, *rest)
    return renamed


@cache
def _find_noetic_text(kind: str, md5: str) -> str:
    """Return the published text of a type in ROS Noetic; "" without one, or if its MD5 sum differs."""
    if kind not in load_noetic_definitions():
        return ""
    from rosbags.typesys import get_types_from_msg

    text = format_definition(kind)
    _, noetic_md5 = _make_typestore(get_types_from_msg(text, kind)).generate_msgdef(kind, ros_version=1)
    return text if noetic_md5 == md5 else ""


def _make_typestore(types: Mapping[str, Any]) -> Any:
    """Return a type store of rosbags with these types."""
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.EMPTY)
    store.fielddefs.update(types)
    return store


def _parse_types(kind: str, text: str, language: str) -> dict[str, Any]:
    """Return constants and fields of a type and of the types in its definition, as rosbags returns them."""
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

    known = dict(get_typestore(Stores.EMPTY).fielddefs)
    try:
        if not text.strip() and language == "none":
            return dict(get_typestore(Stores.LATEST).fielddefs)
        if language == "msg":
            return known | dict(get_types_from_msg(text, kind))
        parts = text.split(DEFINITION_SEPARATOR)[1:] if text.startswith(DEFINITION_SEPARATOR) else [text]
        for part in parts:
            known |= get_types_from_idl(part.partition("\n")[2] if part.startswith("IDL: ") else part)
    except Exception as error:
        raise ValueError(f"the definition of {kind} cannot be parsed: {describe_error(error)}") from error
    return known


def _make_header_type(types: Mapping[str, Any], *, with_seq: bool) -> dict[str, Any]:
    """Return the header type, if there is one, with or without `seq`."""
    if HEADER_TYPE not in types:
        return {}
    from rosbags.interfaces import Nodetype

    constants, all_members, *_ = types[HEADER_TYPE]
    members = [member for member in all_members if member[0] != SEQ_FIELD]
    seq = [(SEQ_FIELD, (Nodetype.BASE, ("uint32", 0)))] if with_seq else []
    return {HEADER_TYPE: (constants, seq + members)}


def _make_field(name: str, description: Any) -> MessageField:
    """Return a field as `messages` represents it."""
    node, details = description
    if node.name == "BASE":
        return MessageField(name, details[0])
    if node.name == "NAME":
        return MessageField(name, details)
    (_, element), count = details
    return MessageField(
        name, element if isinstance(element, str) else element[0], count if node.name == "ARRAY" else -1
    )


def find_definitions(kind: str, definitions: Definitions) -> Mapping[str, str] | None:
    """Return the definitions of the first distribution that defines a type in this way, or None. Jazzy comes first.

    Constants are not compared.
    """
    return next((known for known in DISTRIBUTIONS.values() if _is_defined_by(kind, definitions, known)), None)


def _is_defined_by(kind: str, definitions: Definitions, known: Mapping[str, str]) -> bool:
    """Return True if a type and its dependencies are defined as in `known`."""
    if kind not in known:
        return False
    members = parse_fields(known[kind])
    return definitions.get(kind) == members and all(
        _is_defined_by(member.type, definitions, known) for member in members if "/" in member.type
    )

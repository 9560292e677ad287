"""Definitions of messages as recordings carry them: parsed by rosbags, as both ROS write them, and as messages need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from navsense.messages.repack import Definitions
from navsense.messages.schemas import DEFINITIONS, HEADER, Field, fields

NUMBER = "seq"
"""The field that a header has in ROS 1 alone."""

LINE = "=" * 80 + "\n"
"""What stands between two definitions in one text."""


@dataclass(frozen=True, eq=False)
class Defined:
    """A type of messages: its definition as ROS 1 and as ROS 2 write it, their sums, and its fields."""

    type: str
    old: str
    new: str
    md5: str
    rihs01: str
    definitions: Definitions


@cache
def defined(kind: str, text: str, form: str) -> Defined:
    """Return a type by its definition, `form` "msg" or "idl"; of an empty one by what ROS itself says of the type.

    Raises `ValueError` where the text defines no such type, or ROS knows none.
    """
    found = _parsed(kind, text, form)
    if kind not in found:
        raise ValueError(f"{kind} is defined neither in the recording nor by ROS")
    old, new = _store({**found, **_header(found, numbered=True)}), _store({**found, **_header(found, numbered=False)})
    try:
        text1, md5 = old.generate_msgdef(kind, ros_version=1)
        text2, _ = new.generate_msgdef(kind, ros_version=2)
        own = {name: tuple(_field(*one) for one in parts) for name, (_, parts) in new.fielddefs.items()}
        return Defined(kind, text1, text2, md5, new.hash_rihs01(kind), own)
    except RecursionError as error:
        raise ValueError(f"the definition of {kind} cannot be used: a type in it contains itself") from error
    except Exception as error:
        raise ValueError(f"the definition of {kind} cannot be used: {error}") from error


def _store(types: Mapping[str, Any]) -> Any:
    """Return rosbags' store of these types alone."""
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.EMPTY)
    store.fielddefs.update(types)
    return store


def _parsed(kind: str, text: str, form: str) -> dict[str, Any]:
    """Return constants and fields of a type and of all that its definition has beside, as rosbags gives them."""
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

    known = dict(get_typestore(Stores.EMPTY).fielddefs)
    try:
        if not text.strip() and form == "none":
            return dict(get_typestore(Stores.LATEST).fielddefs)
        if form == "msg":
            return known | dict(get_types_from_msg(text, kind))
        parts = text.split(LINE)[1:] if text.startswith(LINE) else [text]
        for part in parts:
            known |= get_types_from_idl(part.partition("\n")[2] if part.startswith("IDL: ") else part)
    except Exception as error:
        raise ValueError(f"the definition of {kind} cannot be parsed: {error}") from error
    return known


def _header(types: Mapping[str, Any], *, numbered: bool) -> dict[str, Any]:
    """Return the header, if there is one, with or without its number."""
    if HEADER not in types:
        return {}
    from rosbags.interfaces import Nodetype

    constants, parts, *_ = types[HEADER]
    rest = [part for part in parts if part[0] != NUMBER]
    number = [(NUMBER, (Nodetype.BASE, ("uint32", 0)))] if numbered else []
    return {HEADER: (constants, number + rest)}


def _field(name: str, description: Any) -> Field:
    """Return a field as messages have it."""
    node, inner = description
    if node.name == "BASE":
        return Field(name, inner[0])
    if node.name == "NAME":
        return Field(name, inner)
    (_, one), count = inner
    return Field(name, one if isinstance(one, str) else one[0], count if node.name == "ARRAY" else -1)


def is_known(kind: str, definitions: Definitions) -> bool:
    """Tell whether a type is defined as navsense knows it, with all that it is made of: constants are left out."""
    if kind not in DEFINITIONS:
        return False
    own = fields(DEFINITIONS[kind])
    return definitions.get(kind) == own and all(is_known(one.type, definitions) for one in own if "/" in one.type)

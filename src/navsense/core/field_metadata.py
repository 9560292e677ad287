"""Metadata of the fields of a specification: the name of a field in a file, and its limits.

A specification declares each field once. Its own checks and the readers of files take names and limits from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class FileField:
    """How a file gives a field.

    name: of the element or attribute; empty for the name of the field
    parent: element around the field's own element; empty for none
    minimum, above: the number must be >= `minimum` and > `above`
    below: the absolute value of each number must be < `below`
    may_be_infinite: True if the text `inf` is a number here
    degrees: True if the file has degrees where the field has radians
    excluded: True if no file gives the field
    """

    name: str = ""
    parent: str = ""
    minimum: float = -math.inf
    above: float = -math.inf
    below: float = math.inf
    may_be_infinite: bool = False
    degrees: bool = False
    excluded: bool = False


_DEFAULT = FileField()


def in_file(name: str = "", **options: Any) -> Mapping[str, FileField]:
    """Return the metadata of a field with the attributes of `FileField`."""
    return MappingProxyType({"file": FileField(name, **options)})


NON_NEGATIVE = in_file(minimum=0.0)
"""Metadata of a field that must be >= 0."""

NOT_IN_FILE = in_file(excluded=True)
"""Metadata of a field that no file gives."""


def get_file_fields(spec: Any) -> Mapping[str, FileField]:
    """Return how files give the fields of a dataclass, by the names of the fields. Labels of messages are left out."""
    return _collect_file_fields(spec)


@cache
def _collect_file_fields(spec: Any) -> Mapping[str, FileField]:
    found = {one.name: one.metadata.get("file", _DEFAULT) for one in fields(spec) if "label" not in one.metadata}
    return MappingProxyType({name: file for name, file in found.items() if not file.excluded})

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
    """The name and the limits of a field in a file.

    name: of the element or attribute; empty for the name of the field.
    container: child of the specification's element that contains the element of the field; empty if the specification's
        element contains it directly.
    minimum, above: the number must be >= `minimum` and > `above`.
    magnitude_below: the absolute value of each number must be < `magnitude_below`.
    may_be_infinite: True if the text `inf` is a number here.
    degrees: True if the file has degrees and the field radians.
    is_attribute: True for an attribute of an element whose other fields are children.
    excluded: True if the field is not in files.
    """

    name: str = ""
    container: str = ""
    minimum: float = -math.inf
    above: float = -math.inf
    magnitude_below: float = math.inf
    may_be_infinite: bool = False
    degrees: bool = False
    is_attribute: bool = False
    excluded: bool = False


_DEFAULT = FileField()


def in_file(name: str = "", **options: Any) -> Mapping[str, FileField]:
    """Return the metadata of a field with the attributes of `FileField`.

    >>> from dataclasses import dataclass, field
    >>> from navsense.core.field_metadata import get_file_fields, in_file
    >>> @dataclass(frozen=True)
    ... class Lag:
    ...     time_constant: float = field(default=0.1, metadata=in_file("tau", minimum=0.0))
    >>> get_file_fields(Lag)["time_constant"].name
    'tau'
    """
    return MappingProxyType({"file": FileField(name, **options)})


NON_NEGATIVE = in_file(minimum=0.0)
"""Metadata of a field that must be >= 0."""

NOT_IN_FILE = in_file(excluded=True)
"""Metadata of a field that is not in files."""


def get_file_fields(spec: Any) -> Mapping[str, FileField]:
    """Return the `FileField` of each field of a dataclass, by name.

    Fields that are not in files (`NOT_IN_FILE`, `sensors.base.NO_PHYSICAL_EFFECT`) are left out.
    """
    return _collect_file_fields(spec)  # The signature of a cached function does not accept all dataclasses.


@cache
def _collect_file_fields(spec: Any) -> Mapping[str, FileField]:
    metadata = {entry.name: entry.metadata for entry in fields(spec)}
    file_fields = {
        name: data.get("file", _DEFAULT) for name, data in metadata.items() if "no_physical_effect" not in data
    }
    return MappingProxyType({name: file for name, file in file_fields.items() if not file.excluded})

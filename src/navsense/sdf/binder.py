"""Binding of an SDF element to a dataclass.

The fields of the dataclass determine the allowed children and attributes, the parsing and the limits.
A number, flag, choice or tuple of numbers is read from the child or attribute with the name of the field.
`navsense.core.field_metadata` sets other names, limits and units. Fields of other types need a parser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, replace
from enum import StrEnum
from types import MappingProxyType, NoneType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from navsense.core.errors import SensorError
from navsense.core.field_metadata import FileField, get_file_fields
from navsense.sdf import values
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.children import map_spec_errors
from navsense.sdf.schema import LEAF
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element

Spec = TypeVar("Spec")

ChildParser = Callable[[Context, Element], Any]
"""Parses one child and returns the value of the field. Raises `SdfError`."""

_NO_PARSERS: Mapping[str, ChildParser] = MappingProxyType({})


class ElementBinding(Generic[Spec]):
    """An element whose children or attributes are the fields of a dataclass.

    spec: the dataclass
    parent: only fields with this `FileField.parent` belong to the element
    attributes: True if the fields are attributes
    check_limits: False if only the specification checks the limits of the fields
    parsers: parsers of fields that are not a number, flag, choice or tuple of numbers; `read` accepts more
    extra: children that are not fields
    extra_attributes: attributes that are not fields
    repeatable: children that may occur more than once
    unsupported, forbidden: see `ElementSchema`
    causes: first word of an error without a field -> child
    """

    def __init__(
        self,
        spec: type[Spec],
        *,
        parent: str = "",
        attributes: bool = False,
        check_limits: bool = True,
        parsers: Mapping[str, ChildParser] = _NO_PARSERS,
        extra: Iterable[str] = (),
        extra_attributes: Iterable[str] = (),
        repeatable: Iterable[str] = (),
        unsupported: Mapping[str, str] = MappingProxyType({}),
        forbidden: Mapping[str, str] = MappingProxyType({}),
        causes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Derive the schema and the parsers from the fields."""
        files = {name: file for name, file in get_file_fields(spec).items() if file.parent == parent}
        if not check_limits:
            files = {name: replace(file, minimum=-math.inf, above=-math.inf) for name, file in files.items()}
        hints, given = get_type_hints(spec), {field.name: field for field in fields(spec)}  # type: ignore[arg-type]  # a dataclass
        make = _make_attribute_parser if attributes else _make_child_parser
        self.spec, self._hints, self.tags = spec, hints, {name: file.name or name for name, file in files.items()}
        self._parsers, self._attributes, self._causes = dict(parsers), attributes, causes
        self._values = [
            (name, self.tags[name], parse)
            for name, file in files.items()
            if name not in parsers and (parse := make(hints[name], file, given[name].default)) is not None
        ]
        self._required = [
            self.tags[name] for name in files if given[name].default is given[name].default_factory is MISSING
        ]
        own = frozenset(self.tags.values())
        self.schema = ElementSchema(
            children=frozenset(extra) | (frozenset() if attributes else own),
            attributes=frozenset(extra_attributes) | (own if attributes else frozenset()),
            repeatable=frozenset(repeatable),
            unsupported=unsupported,
            forbidden=forbidden,
        )

    def read_values(
        self, context: Context, element: Element, parsers: Mapping[str, ChildParser] = _NO_PARSERS
    ) -> dict[str, Any]:
        """Return the values of an element by field. Adds invalid values to the problems of `context`.

        Raises `SdfError` for an invalid attribute, and the errors of the parsers.
        """
        if self._attributes:
            return self._read_attributes(element)
        children: dict[str, Element] = {}
        for child in element.children:
            children.setdefault(child.tag, child)
        found: dict[str, Any] = {}
        for name, tag, parse in self._values:
            if tag in children and name not in parsers:
                context.check(children[tag], LEAF)
                with context.collect_errors():
                    found[name] = parse(children[tag], element.tag)
        for name, parser in {**self._parsers, **parsers}.items():
            if self.tags[name] in children:
                found[name] = parser(context, children[self.tags[name]])
        return found

    def _read_attributes(self, element: Element) -> dict[str, Any]:
        found = {name: parse(element, tag) for name, tag, parse in self._values if tag in element.attributes}
        for tag in self._required:
            if tag not in element.attributes:
                raise invalid_value(element, "missing", "must be given", attribute=tag)
        return found

    def read(
        self, context: Context, element: Element, parsers: Mapping[str, ChildParser] = _NO_PARSERS, **given: Any
    ) -> Spec:
        """Return the specification of an element; `given` are additional fields. Raises `SdfError`."""
        context.check(element, self.schema)
        found = self.read_values(context, element, parsers)
        with map_spec_errors(element):
            return self.spec(**given, **found)

    def list_fields(self, kind: type[Any]) -> list[str]:
        """Return the names of the fields of a type."""
        return [name for name in self.tags if self._hints[name] is kind]

    def find_cause(self, element: Element, error: SensorError) -> Element:
        """Return the child of the field at the start of an error text; the element if no child has it."""
        name = error.what.partition(" ")[0]
        file = get_file_fields(self.spec).get(name)
        tag = self._causes.get(name, "") if file is None else file.parent or file.name or name
        return element.find(tag) or element


def _get_type(hint: Any) -> Any:
    """Return the only type of a type hint except None; None for several types."""
    choices = [one for one in get_args(hint) if one is not NoneType] if get_origin(hint) is not tuple else [hint]
    return hint if not choices else choices[0] if len(choices) == 1 else None


def _make_child_parser(hint: Any, file: FileField, default: Any) -> Callable[[Element, str], Any] | None:
    """Return the parser of a child with a value of a type. The parser takes the tag of the parent element."""
    kind = _get_type(hint)

    def parse_number(child: Element, parent: str) -> float:
        if file.may_be_infinite and child.text == "inf":
            return math.inf
        found = values.parse_number(child, parent=parent, minimum=file.minimum, above=file.above)
        if kind is int and found == int(found):
            return int(found)
        return math.radians(found) if file.degrees else found

    def parse_numbers(child: Element, parent: str) -> tuple[float, ...]:
        count = len(default) if Ellipsis in get_args(kind) else len(get_args(kind))
        found = values.parse_numbers_below(child, count, file.below, parent=parent)
        return tuple(math.radians(number) for number in found) if file.degrees else found

    if kind is bool:
        return lambda child, parent: values.parse_flag(child, parent=parent)
    if kind in (float, int):
        return parse_number
    if get_origin(kind) is tuple and set(get_args(kind)) <= {float, Ellipsis}:
        return parse_numbers
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return lambda child, parent: kind(values.parse_choice(child, tuple(kind), parent=parent))
    return None


def _make_attribute_parser(hint: Any, file: FileField, _default: Any) -> Callable[[Element, str], Any] | None:
    """Return the parser of an attribute with a value of a type. The parser takes the name of the attribute."""
    kind = _get_type(hint)
    if kind is bool:
        return values.parse_attribute_flag
    if kind is int:
        return values.parse_attribute_integer
    if kind is float:
        return lambda element, name: values.parse_attribute_number(element, name, above=file.above)
    return None

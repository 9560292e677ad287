"""Binding of an SDF element to a dataclass.

The fields of the dataclass determine the allowed children and attributes, the parsing and the limits.
A number, flag, choice or tuple of numbers is read from the child or attribute with the name of the field. The metadata
of the field (`navsense.core.field_metadata`) set another name, limits and units, and whether it is an attribute. A
field of another type needs a parser.
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

ValueParser = Callable[[Element, str], Any]
"""Parses a child, from it and the tag of its parent, or an attribute, from its element and its name."""

_NO_PARSERS: Mapping[str, ChildParser] = MappingProxyType({})


class ElementBinding(Generic[Spec]):
    """An element whose children or attributes are the fields of a dataclass.

    spec: the dataclass.
    parent: only fields with this `FileField.parent` belong to the element.
    attributes: True if all fields are attributes.
    check_limits: False if only the specification checks the limits of the fields.
    parsers: parsers of fields that are not a number, flag, choice or tuple of numbers; `read` accepts further ones.
    other_children: children that are not fields.
    other_attributes: attributes that are not fields.
    repeatable: children that may occur more than once.
    unsupported, forbidden: see `ElementSchema`.
    causes: first word of an error without a field -> child.
    """

    def __init__(
        self,
        spec: type[Spec],
        *,
        parent: str = "",
        attributes: bool = False,
        check_limits: bool = True,
        parsers: Mapping[str, ChildParser] = _NO_PARSERS,
        other_children: Iterable[str] = (),
        other_attributes: Iterable[str] = (),
        repeatable: Iterable[str] = (),
        unsupported: Mapping[str, str] = MappingProxyType({}),
        forbidden: Mapping[str, str] = MappingProxyType({}),
        causes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Derive the schema and the parsers from the fields."""
        file_fields = {name: file for name, file in get_file_fields(spec).items() if file.parent == parent}
        if attributes:
            file_fields = {name: replace(file, is_attribute=True) for name, file in file_fields.items()}
        if not check_limits:
            file_fields = {name: replace(f, minimum=-math.inf, above=-math.inf) for name, f in file_fields.items()}
        hints, spec_fields = get_type_hints(spec), {field.name: field for field in fields(spec)}  # type: ignore[arg-type]  # a dataclass
        self.spec, self._hints, self._parsers, self._causes = spec, hints, dict(parsers), causes
        self.tags = {name: file.name or name for name, file in file_fields.items()}
        self._child_parsers: dict[str, ValueParser] = {}
        self._attribute_parsers: dict[str, ValueParser] = {}
        for name, file in file_fields.items():
            make_parser = _make_attribute_parser if file.is_attribute else _make_child_parser
            parser = None if name in parsers else make_parser(hints[name], file, spec_fields[name].default)
            if parser is not None:
                (self._attribute_parsers if file.is_attribute else self._child_parsers)[name] = parser
        self._required_attributes = [
            self.tags[name]
            for name, file in file_fields.items()
            if file.is_attribute and spec_fields[name].default is spec_fields[name].default_factory is MISSING
        ]
        attribute_names = frozenset(self.tags[name] for name, file in file_fields.items() if file.is_attribute)
        self.schema = ElementSchema(
            children=frozenset(other_children) | (frozenset(self.tags.values()) - attribute_names),
            attributes=frozenset(other_attributes) | attribute_names,
            repeatable=frozenset(repeatable),
            unsupported=unsupported,
            forbidden=forbidden,
        )

    def read_values(
        self, context: Context, element: Element, parsers: Mapping[str, ChildParser] = _NO_PARSERS
    ) -> dict[str, Any]:
        """Return the values of an element by field. Adds invalid children to the problems of `context`.

        Raises `SdfError` for an invalid attribute, and the errors of the parsers.
        """
        field_values: dict[str, Any] = {}
        for name, parse in self._attribute_parsers.items():
            if self.tags[name] in element.attributes:
                field_values[name] = parse(element, self.tags[name])
        for tag in self._required_attributes:
            if tag not in element.attributes:
                raise invalid_value(element, "missing", "must be given", attribute=tag)
        children: dict[str, Element] = {}
        for child in element.children:
            children.setdefault(child.tag, child)
        for name, parse in self._child_parsers.items():
            tag = self.tags[name]
            if tag in children and name not in parsers:
                context.check(children[tag], LEAF)
                with context.collect_errors():
                    field_values[name] = parse(children[tag], element.tag)
        for name, parse_child in {**self._parsers, **parsers}.items():
            if self.tags[name] in children:
                field_values[name] = parse_child(context, children[self.tags[name]])
        return field_values

    def read(
        self, context: Context, element: Element, parsers: Mapping[str, ChildParser] = _NO_PARSERS, **other_fields: Any
    ) -> Spec:
        """Return the specification of an element; `other_fields` are further fields of it. Raises `SdfError`."""
        context.check(element, self.schema)
        field_values = self.read_values(context, element, parsers)
        with map_spec_errors(element):
            return self.spec(**other_fields, **field_values)

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
    """Return the type of a type hint without None; None for a union of several types."""
    if get_origin(hint) is tuple or not get_args(hint):
        return hint
    types = [choice for choice in get_args(hint) if choice is not NoneType]
    return types[0] if len(types) == 1 else None


def _make_child_parser(hint: Any, file: FileField, default: Any) -> ValueParser | None:
    """Return the parser of a child with a value of a type. The parser takes the tag of the parent element."""
    kind = _get_type(hint)

    def parse_number(child: Element, parent: str) -> float:
        if file.may_be_infinite and child.text == "inf":
            return math.inf
        number = values.parse_number(child, parent=parent, minimum=file.minimum, above=file.above)
        if kind is int and number == int(number):
            return int(number)
        return math.radians(number) if file.degrees else number

    def parse_numbers(child: Element, parent: str) -> tuple[float, ...]:
        count = len(default) if Ellipsis in get_args(kind) else len(get_args(kind))
        numbers = values.parse_numbers_below(child, count, file.below, parent=parent)
        return tuple(math.radians(number) for number in numbers) if file.degrees else numbers

    if kind is bool:
        return lambda child, parent: values.parse_flag(child, parent=parent)
    if kind in (float, int):
        return parse_number
    if get_origin(kind) is tuple and set(get_args(kind)) <= {float, Ellipsis}:
        return parse_numbers
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return lambda child, parent: kind(values.parse_choice(child, tuple(kind), parent=parent))
    return None


def _make_attribute_parser(hint: Any, file: FileField, _default: Any) -> ValueParser | None:
    """Return the parser of an attribute with a value of a type. The parser takes the name of the attribute."""
    kind = _get_type(hint)

    def parse_number(element: Element, name: str) -> float | None:
        number = values.parse_attribute_number(element, name, above=file.above)
        return math.radians(number) if file.degrees and number is not None else number

    if kind is bool:
        return values.parse_attribute_flag
    if kind is int:
        return values.parse_attribute_integer
    if kind is float:
        return parse_number
    return None

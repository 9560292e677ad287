"""Binding of an SDF element to a dataclass.

The fields of the dataclass determine the allowed children and attributes, the parsing and the limits.
A number, flag, choice or tuple of numbers is read from the child or attribute with the name of the field. The
metadata of the field (`navsense.core.field_metadata`) set another name, limits and units, and whether it is an
attribute. A field of another type needs a parser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, replace
from enum import StrEnum
from types import MappingProxyType, NoneType
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints

from navsense.core.errors import NavsenseError, SdfError
from navsense.core.field_metadata import FileField, get_file_fields
from navsense.sdf.context import LEAF, Context, ElementSchema
from navsense.sdf.values import error_at, invalid_value, parse_choice, parse_flag, parse_number, parse_numbers
from navsense.sdf.xml_reader import Element

Spec = TypeVar("Spec")

ChildParser = Callable[[Context, Element], Any]
"""Parses one child and returns the value of the field. Raises `SdfError`."""

_NO_PARSERS: Mapping[str, ChildParser] = MappingProxyType({})


class ValueParser(Protocol):
    """Parses an element, or one of its attributes. Raises `SdfError`."""

    def __call__(self, element: Element, *, parent: str = "", attribute: str = "") -> Any:
        """Return the value; `parent` is the tag of the parent in errors."""
        ...


class ElementBinding(Generic[Spec]):
    """An element whose children or attributes are the fields of a dataclass.

    spec: the dataclass.
    container: only fields with this `FileField.container` belong to the element.
    attributes: True if all fields are attributes.
    check_limits: False if only the specification checks the limits of the fields.
    parsers: parsers of fields that are not a number, flag, choice or tuple of numbers; `read` accepts further ones.
    other_children: children that are not fields.
    other_attributes: attributes that are not fields.
    repeatable: children that are not fields and may occur more than once.
    unsupported, forbidden, strict: see `ElementSchema`.
    """

    def __init__(
        self,
        spec: type[Spec],
        *,
        container: str = "",
        attributes: bool = False,
        check_limits: bool = True,
        parsers: Mapping[str, ChildParser] = _NO_PARSERS,
        other_children: Iterable[str] = (),
        other_attributes: Iterable[str] = (),
        repeatable: Iterable[str] = (),
        unsupported: Mapping[str, str] = MappingProxyType({}),
        forbidden: Mapping[str, str] = MappingProxyType({}),
        strict: bool | None = True,
    ) -> None:
        """Derive the schema and the parsers from the fields."""
        file_fields = {name: entry for name, entry in get_file_fields(spec).items() if entry.container == container}
        if attributes:
            file_fields = {name: replace(entry, is_attribute=True) for name, entry in file_fields.items()}
        if not check_limits:
            file_fields = {n: replace(entry, minimum=-math.inf, above=-math.inf) for n, entry in file_fields.items()}
        spec_fields = {field.name: field for field in fields(spec)}  # type: ignore[arg-type]  # a dataclass
        self.spec, self._hints, self._parsers = spec, get_type_hints(spec), dict(parsers)
        # `tags`: field -> child or attribute. `_attribute_fields`: attribute -> field.
        self.tags = {name: entry.name or name for name, entry in file_fields.items()}
        self._attribute_fields = {self.tags[name]: name for name, entry in file_fields.items() if entry.is_attribute}
        self._value_parsers: dict[str, ValueParser] = {}
        for name, entry in file_fields.items():
            parser = _make_parser(self._hints[name], entry, spec_fields[name].default)
            if parser is not None and name not in parsers:
                self._value_parsers[name] = parser
        self.required = {
            name for name, field in spec_fields.items() if field.default is field.default_factory is MISSING
        }
        self.schema = ElementSchema(
            children=frozenset(other_children) | (frozenset(self.tags.values()) - self._attribute_fields.keys()),
            repeatable=frozenset(repeatable),
            attributes=frozenset(other_attributes) | self._attribute_fields.keys(),
            unsupported=unsupported,
            forbidden=forbidden,
            strict=strict,
        )

    def read_fields(
        self, context: Context, element: Element, parsers: Mapping[str, ChildParser] = _NO_PARSERS
    ) -> dict[str, Any]:
        """Return the values of an element by field, without those of invalid children, which become problems.

        The caller checks the element against `schema`. Raises `SdfError` for an invalid attribute.
        """
        values: dict[str, Any] = {}
        for tag, name in self._attribute_fields.items():
            if tag in element.attributes and name in self._value_parsers:
                values[name] = self._value_parsers[name](element, attribute=tag)
        for tag, name in self._attribute_fields.items():
            if name in self.required and tag not in element.attributes:
                raise invalid_value(element, "missing", "must be given", attribute=tag)
        children: dict[str, Element] = {}
        for child in element.children:
            children.setdefault(child.tag, child)
        child_parsers = {**self._parsers, **parsers}
        for name, parse in self._value_parsers.items():
            tag = self.tags[name]
            if tag in children and tag not in self._attribute_fields and name not in child_parsers:
                context.check(children[tag], LEAF)
                with context.collect_errors():
                    values[name] = parse(children[tag], parent=element.tag)
        for name, parse_child in child_parsers.items():
            if self.tags[name] in children:
                with context.collect_errors():
                    values[name] = parse_child(context, children[self.tags[name]])
        return values

    def read(
        self, context: Context, element: Element, parsers: Mapping[str, ChildParser] = _NO_PARSERS, **other_fields: Any
    ) -> Spec:
        """Return the specification of an element; `other_fields` are fields from other places.

        The caller has read these fields, or they are not in the file.

        Invalid children become problems of the context. Raises `SdfError` only for an invalid attribute, and if no
        specification can be made, see `make_spec`.
        """
        context.check(element, self.schema)
        problems_before = context.problem_count
        values = self.read_fields(context, element, parsers)
        return self.make_spec(context, element, problems_before, **{**other_fields, **values})

    def make_spec(self, context: Context, element: Element, problems_before: int | None = None, **values: Any) -> Spec:
        """Return a specification. Raises its error as an `SdfError` at the child or attribute of the field.

        `values` can contain fields of all containers, so two bindings of one dataclass can share this method.

        problems_before: number of problems before the values were read; None if no value is missing. If the context
            has more problems now, an error is their consequence, and the last problem is raised instead.
        """
        has_new_problems = problems_before is not None and context.problem_count > problems_before
        known = context.last_problem if has_new_problems else None
        missing = sorted(self.required - values.keys())
        if missing:
            what = f"<{element.tag}><{self.tags.get(missing[0], missing[0])}>"
            raise known or SdfError(what, "missing", where=element.where, allowed="must be given")
        try:
            return self.spec(**values)
        except NavsenseError as error:
            raise known or self.locate_error(element, error) from error

    def locate_error(self, element: Element, error: NavsenseError) -> SdfError:
        """Return the error of a specification at the child or attribute of its field; else at the element."""
        entry = get_file_fields(self.spec).get(error.field)
        if entry is None:
            return error_at(element, error)
        container = element.find(entry.container) or element
        tag = entry.name or error.field
        child = container.find(tag)
        # The error shows the text of the file. Three errors show their own value instead: of a field in degrees, of a
        # field that the file does not give, and of something that is not one field (`what` differs from `field`).
        if entry.degrees or error.what != error.field or (child is None and tag not in container.attributes):
            # The error names the field. The attribute is shown if it has another name.
            is_other_attribute = child is None and tag in container.attributes and tag != error.field
            return error_at(child or container, error, attribute=tag if is_other_attribute else "")
        if child is None:
            value, attribute = container.attributes[tag], tag
            return invalid_value(container, value, error.allowed, attribute=attribute, remedy=error.remedy)
        return invalid_value(child, child.text, error.allowed, parent=container.tag, remedy=error.remedy)

    def list_fields_of_type(self, kind: type[Any]) -> list[str]:
        """Return the names of the fields whose type is `kind`."""
        return [name for name in self.tags if self._hints[name] is kind]

    def list_unparsed(self, kind: type[Any]) -> list[str]:
        """Return the names of the fields without a parser whose type is not `kind`."""
        parsed = {*self._value_parsers, *self._parsers, *self.list_fields_of_type(kind)}
        return [name for name in self.tags if name not in parsed]


def _get_type(hint: Any) -> Any:
    """Return the type of a type hint without None; None for a union of several types."""
    if get_origin(hint) is tuple or not get_args(hint):
        return hint
    types = [choice for choice in get_args(hint) if choice is not NoneType]
    return types[0] if len(types) == 1 else None


def _make_parser(hint: Any, entry: FileField, default: Any) -> ValueParser | None:
    """Return the parser of a value of a type; None for a type without a parser."""
    kind = _get_type(hint)

    def parse_real(element: Element, *, parent: str = "", attribute: str = "") -> float:
        if entry.may_be_infinite and (element.attributes[attribute] if attribute else element.text) == "inf":
            return math.inf
        limits = {"minimum": entry.minimum, "above": entry.above, "magnitude_below": entry.magnitude_below}
        number = parse_number(element, parent=parent, attribute=attribute, **limits)
        if kind is int and number == int(number):
            return int(number)
        if kind is int and attribute:
            raise invalid_value(element, element.attributes[attribute], "must be a whole number", attribute=attribute)
        return math.radians(number) if entry.degrees else number

    def parse_tuple(element: Element, *, parent: str = "", attribute: str = "") -> tuple[float, ...]:
        count = len(default) if Ellipsis in get_args(kind) else len(get_args(kind))
        numbers = parse_numbers(
            element, count, parent=parent, attribute=attribute, magnitude_below=entry.magnitude_below
        )
        return tuple(math.radians(number) for number in numbers) if entry.degrees else numbers

    def parse_member(element: Element, *, parent: str = "", attribute: str = "") -> StrEnum:
        member: StrEnum = kind(parse_choice(element, tuple(kind), parent=parent, attribute=attribute))
        return member

    if kind is bool:
        return parse_flag
    if kind in (float, int):
        return parse_real
    if get_origin(kind) is tuple and set(get_args(kind)) <= {float, Ellipsis}:
        return parse_tuple
    return parse_member if isinstance(kind, type) and issubclass(kind, StrEnum) else None

"""Type elements: the element of a sensor with the name of its type. Each field of the specification is a child.

    <magnetometer>                                                  the type element
      <x>                                                           a channel: the field `x` of `Magnetometer`
        <noise type="gaussian"> <stddev>1e-7</stddev> </noise>      fields of `Noise`
      </x>
      <navsense:hard_iron>3e-6 -2e-6 4e-6</navsense:hard_iron>      the field `hard_iron`, T, in the sensor's frame
    </magnetometer>

A sensor class with its own `parse` reads its type element itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

from navsense.core.errors import SdfError, SensorError
from navsense.noise.specification import Noise
from navsense.sdf.binder import ChildParser, ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.parse.noise import parse_channel_noise, parse_noise
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor

Spec = TypeVar("Spec")

TypeElementParser = Callable[[Context, Element | None, SensorContext], Sensor]
"""Returns the specification from the type element: (context, type element or None, sensor_context)."""


def make_channel_parsers(binding: ElementBinding[Any], *, classic: bool) -> dict[str, ChildParser]:
    """Return a parser for each field of type `Noise`.

    The field's element is `<noise>` itself, or a channel that contains a `<noise>`.
    """
    channel, noise = partial(parse_channel_noise, classic=classic), partial(parse_noise, classic=classic)
    return {name: noise if binding.tags[name] == "noise" else channel for name in binding.list_fields_of_type(Noise)}


def read_type_element(
    context: Context,
    type_element: Element | None,
    binding: ElementBinding[Spec],
    sensor_context: SensorContext,
    parsers: Mapping[str, ChildParser] = MappingProxyType({}),
    **other_fields: Any,
) -> Spec:
    """Return the specification of a type element with channels, see `ElementBinding.read`; without it the default."""
    if type_element is None:
        return binding.spec(**other_fields)
    all_parsers = {**make_channel_parsers(binding, classic=sensor_context.classic), **parsers}
    return binding.read(context, type_element, all_parsers, **other_fields)


@runtime_checkable
class HasSdfParser(Protocol):
    """A sensor type whose class parses its type element."""

    @staticmethod
    def parse(context: Context, type_element: Element | None, sensor_context: SensorContext) -> Sensor:
        """Return the specification from the type element, which is None if the file has none."""
        ...


def make_type_element_parser(sensor: type[Sensor]) -> TypeElementParser:
    """Return the parser of a sensor type: `parse` of the class; without it, each field is a child of the type element.

    A field `classic` that is not in files is the fidelity of the sensor. Raises `SensorError` for a class that is not a
    dataclass, and for a field whose type has no parser.
    """
    if isinstance(sensor, HasSdfParser):  # `parse` is a static method, so the class itself has it
        return sensor.parse
    remedy = "use such a type, exclude the field by `metadata=NOT_IN_FILE`, or give the class a `parse`"
    try:
        binding = ElementBinding(sensor)
        names = {field.name for field in fields(sensor)}  # type: ignore[arg-type]  # a dataclass
    except (NameError, TypeError) as error:
        allowed = f"must be a dataclass whose annotations are defined: {error}"
        remedy = "import the types of its fields at run time, or give the class a `parse`"
        raise SensorError("class of a sensor", sensor.__name__, allowed=allowed, remedy=remedy) from error
    for name in binding.list_unparsed(Noise):
        allowed = "must be a Noise, number, flag, StrEnum or tuple of numbers to be read from a file"
        raise SensorError(f"field of the sensor {sensor.type}", name, allowed=allowed, remedy=remedy)
    has_classic = "classic" in names - binding.tags.keys()

    def parse(context: Context, type_element: Element | None, sensor_context: SensorContext) -> Sensor:
        if type_element is None and binding.required:
            tags = ", ".join(f"<{binding.tags[name]}>" for name in binding.tags if name in binding.required)
            what, allowed = f'<sensor type="{sensor.type}">', f"requires <{sensor.type}> with {tags}"
            raise SdfError(what, sensor_context.name, where=sensor_context.where, allowed=allowed)
        other_fields: dict[str, Any] = {"classic": sensor_context.classic} if has_classic else {}
        return read_type_element(context, type_element, binding, sensor_context, **other_fields)

    return parse

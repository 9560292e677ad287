"""The origin and the magnetic field that plug-ins declare.

A GPS plug-in has its own reference of latitude, longitude and heading, a magnetometer plug-in its own field. The world
has priority: its `<spherical_coordinates>` and its magnetic field. Without them, those of the first plug-in that gives
them apply to the whole world; if none does, the defaults of the first plug-in. A plug-in that differs gives a warning.

A field with components to north and east has the axes of the origin, which is found first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from navsense.core.geodesy import Origin
from navsense.core.typing import Vector
from navsense.sdf.context import Context
from navsense.sdf.parse.world import ORIGIN_LIMITS
from navsense.sdf.plugins.base import EarthReference, ReferenceParser, make_origin
from navsense.sdf.plugins.registry import find_field_parser, find_origin_parser
from navsense.sdf.values import split_numbers
from navsense.sdf.xml_reader import Element

Value = TypeVar("Value")

FIELD_TAGS = ("magnetic_field", "navsense:magnetic_field")

ANGLE_TOLERANCE, ELEVATION_TOLERANCE = 1e-8, 0.01
"""rad (6 cm on the ground) and m below which two origins are equal."""

FIELD_TOLERANCE = 1e-12
"""T, below which two fields are equal."""


class ReferenceKind(NamedTuple, Generic[Value]):
    """A quantity of the world that plug-ins declare.

    noun: its name in warnings.
    tag: its element of the world.
    get_value: returns the value in the reference of a plug-in; None without one.
    format: returns the value as a text.
    differ: returns True if two values differ.
    """

    noun: str
    tag: str
    get_value: Callable[[EarthReference], Value | None]
    format: Callable[[Value], str]
    differ: Callable[[Value, Value], bool]


class Declaration(NamedTuple, Generic[Value]):
    """The value that a plug-in declares, and True if it is the default of the plug-in."""

    plugin: Element
    value: Value
    is_default: bool


def parse_earth_reference(context: Context, world: Element) -> EarthReference:
    """Return the origin and the magnetic field of the plug-ins; None where the world defines them, or no plug-in."""
    coordinates = world.find("spherical_coordinates")
    world_origin = None if coordinates is None else _read_origin(coordinates)
    plugins = [element for element in world.walk() if element.tag == "plugin"]
    origins = _list_declarations(context, _ORIGIN, plugins, find_origin_parser, world_origin)
    origin = _choose(context, _ORIGIN, origins, world_origin, is_in_world=coordinates is not None)
    fields = _list_declarations(context, _FIELD, plugins, find_field_parser, world_origin or origin)
    field = _choose(context, _FIELD, fields, None, is_in_world=world.find(*FIELD_TAGS) is not None)
    return EarthReference(origin, field)


def _list_declarations(
    context: Context,
    quantity: ReferenceKind[Value],
    plugins: Iterable[Element],
    find_parser: Callable[[Element], ReferenceParser | None],
    origin: Origin | None,
) -> list[Declaration[Value]]:
    """Return what the plug-ins of a world with an origin declare of a quantity."""
    declarations = []
    for plugin in plugins:
        parse = find_parser(plugin)
        reference = EarthReference() if parse is None else parse(context, plugin, origin)
        value = quantity.get_value(reference)
        if value is not None:
            declarations.append(Declaration(plugin, value, reference.is_default))
    return declarations


def _choose(
    context: Context,
    quantity: ReferenceKind[Value],
    declarations: Sequence[Declaration[Value]],
    world_value: Value | None,
    *,
    is_in_world: bool,
) -> Value | None:
    """Return the first value that a plug-in gives, else the first default; None for a world with its own value.

    `world_value` is that of the world, None if it is not known.
    """
    first = min(declarations, key=lambda declaration: declaration.is_default, default=None)
    choice = None if is_in_world or first is None else first.value
    reference = choice if world_value is None else world_value
    for declaration in declarations:
        plugin, value, is_default = declaration
        if declaration is first and choice is not None:
            noun = f"{quantity.noun}, a default," if is_default else quantity.noun
            reason = f"its {noun} is that of the world, {quantity.format(value)}; the world has no <{quantity.tag}>"
        elif not is_default and (reference is None or quantity.differ(value, reference)):
            owner = f"the world's <{quantity.tag}>" if is_in_world else "that of the first plug-in"
            reason = f"its {quantity.noun}, {quantity.format(value)}, is not used: {owner} has priority"
        else:
            continue
        what = f'<plugin filename="{plugin.get_attribute("filename")}">'
        context.add_note("warning", what, reason, plugin.where)
    return choice


def _read_origin(coordinates: Element) -> Origin | None:
    """Return the origin of a world for a comparison; None if it is invalid, which its parser reports."""
    values: list[float] = []
    for tag, limit in ORIGIN_LIMITS.items():
        numbers = split_numbers(coordinates.get_text(tag, "0"), 1)
        if numbers is None or abs(numbers[0]) > limit:
            return None
        values += numbers
    return make_origin(*values)


def _differ(origin: Origin, reference: Origin) -> bool:
    """Return True if two origins differ by more than the digits of a file."""
    turn = (origin.heading - reference.heading) / (2.0 * math.pi)
    angles = (
        origin.latitude - reference.latitude,
        origin.longitude - reference.longitude,
        2.0 * math.pi * (turn - round(turn)),
    )
    elevation = origin.elevation - reference.elevation
    return max(map(abs, angles)) > ANGLE_TOLERANCE or abs(elevation) > ELEVATION_TOLERANCE


def _format_origin(origin: Origin) -> str:
    latitude, longitude, heading = (
        math.degrees(angle) for angle in (origin.latitude, origin.longitude, origin.heading)
    )
    return f"latitude {latitude:.7g}, longitude {longitude:.7g}, elevation {origin.elevation:g} m, heading {heading:g}"


def _format_field(field: Vector) -> str:
    return " ".join(f"{round(part * 1e6, 3):g}" for part in field) + " uT"


_ORIGIN: ReferenceKind[Origin] = ReferenceKind(
    "reference", "spherical_coordinates", lambda reference: reference.origin, _format_origin, _differ
)
_FIELD: ReferenceKind[Vector] = ReferenceKind(
    "field",
    "magnetic_field",
    lambda reference: reference.magnetic_field,
    _format_field,
    lambda field, reference: math.dist(field, reference) > FIELD_TOLERANCE,
)

"""The origin and the magnetic field that plug-ins declare.

A GPS plug-in has its own reference of latitude, longitude and heading, a magnetometer plug-in its own field. The world
has priority: its `<spherical_coordinates>` and its magnetic field. Without them, those of the first plug-in that gives
them apply to the whole world; if none does, the defaults of the first plug-in. A plug-in that differs gives a warning.

A field with components to north and east has the axes of the origin, which is found first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from navsense.core.geodesy import Origin
from navsense.core.typing import Vector
from navsense.sdf.context import Context
from navsense.sdf.plugins.base import Place, make_origin
from navsense.sdf.plugins.registry import find_field_parser, find_place_parser
from navsense.sdf.values import split_numbers
from navsense.sdf.xml_reader import Element

ORIGIN_TAGS = ("latitude_deg", "longitude_deg", "elevation", "heading_deg")
"""Elements of `<spherical_coordinates>`, in the order of the fields of `Origin`."""

FIELD_TAGS = ("magnetic_field", "navsense:magnetic_field")

ANGLE_TOLERANCE, ELEVATION_TOLERANCE = 1e-8, 0.01
"""rad (6 cm on the ground) and m below which two origins are equal."""

FIELD_TOLERANCE = 1e-12
"""T, below which two fields are equal."""


def parse_place(context: Context, world: Element) -> Place:
    """Return the origin and the magnetic field of the plug-ins; None where the world defines them, or no plug-in."""
    coordinates = world.find("spherical_coordinates")
    world_origin = None if coordinates is None else _read_origin(coordinates)
    plugins = [element for element in world.walk() if element.tag == "plugin"]
    origin = _choose_origin(context, plugins, world_origin, has_coordinates=coordinates is not None)
    has_field = world.find(*FIELD_TAGS) is not None
    return Place(origin, _choose_field(context, plugins, world_origin or origin, has_field=has_field))


def _choose_origin(
    context: Context, plugins: Sequence[Element], world_origin: Origin | None, *, has_coordinates: bool
) -> Origin | None:
    """Return the first reference that a plug-in gives, else the first default; None in a world with coordinates."""
    declared = [
        (plugin, place, place.origin)
        for plugin, parse in ((plugin, find_place_parser(plugin)) for plugin in plugins)
        if parse is not None and (place := parse(context, plugin, world_origin)).origin is not None
    ]
    first = _find_first([place for _, place, _ in declared])
    chosen = None if has_coordinates or first is None else first.origin
    for plugin, place, origin in declared:
        if origin is None:
            continue
        if place is first and chosen is not None:
            reason = f"its reference{'' if place.is_given else ', a default,'} is the origin of the world: "
            reason += f"{_format_origin(origin)}; the world has no <spherical_coordinates>"
            context.add_note("warning", _format_plugin(plugin), reason, plugin.where)
        elif place.is_given and _differ(origin, world_origin or chosen):
            winner = "<spherical_coordinates> are" if has_coordinates else "the first reference is"
            reason = f"its reference, {_format_origin(origin)}, is not used: the world's {winner} used"
            context.add_note("warning", _format_plugin(plugin), reason, plugin.where)
    return chosen


def _choose_field(
    context: Context, plugins: Sequence[Element], origin: Origin | None, *, has_field: bool
) -> Vector | None:
    """Return the first field that a plug-in gives, else the first default; None in a world with a field."""
    declared = [
        (plugin, place, place.magnetic_field)
        for plugin, parse in ((plugin, find_field_parser(plugin)) for plugin in plugins)
        if parse is not None and (place := parse(context, plugin, origin)).magnetic_field is not None
    ]
    first = _find_first([place for _, place, _ in declared])
    chosen = None if has_field or first is None else first.magnetic_field
    for plugin, place, field in declared:
        if field is None:
            continue
        if place is first and chosen is not None:
            shown = " ".join(f"{round(part * 1e6, 3):g}" for part in field)
            reason = f"its field{'' if place.is_given else ', a default,'} is that of the world, "
            reason += f"{shown} uT; the world has no <magnetic_field>"
            context.add_note("warning", _format_plugin(plugin), reason, plugin.where)
        elif place.is_given and (chosen is None or math.dist(field, chosen) > FIELD_TOLERANCE):
            winner = "the world's magnetic field" if has_field else "that of the first magnetometer plug-in"
            reason = f"its field is not used: {winner} is used"
            context.add_note("warning", _format_plugin(plugin), reason, plugin.where)
    return chosen


def _find_first(places: Sequence[Place]) -> Place | None:
    """Return the first place that is given, else the first default; None without one."""
    return next((place for place in places if place.is_given), next(iter(places), None))


def _format_plugin(plugin: Element) -> str:
    return f'<plugin filename="{plugin.get_attribute("filename")}">'


def _read_origin(coordinates: Element) -> Origin | None:
    """Return the origin of a world for a comparison; None if it is invalid, which its parser reports."""
    values = [split_numbers(coordinates.get_text(tag, "0"), 1) for tag in ORIGIN_TAGS]
    if None in values:
        return None
    latitude, longitude, elevation, heading = (value[0] for value in values if value)
    return make_origin(latitude, longitude, elevation, heading)


def _differ(one: Origin, other: Origin | None) -> bool:
    """Return True if two origins differ by more than the digits of a file."""
    if other is None:
        return False
    turn = (one.heading - other.heading) / (2.0 * math.pi)
    angles = (one.latitude - other.latitude, one.longitude - other.longitude, 2.0 * math.pi * (turn - round(turn)))
    return max(map(abs, angles)) > ANGLE_TOLERANCE or abs(one.elevation - other.elevation) > ELEVATION_TOLERANCE


def _format_origin(origin: Origin) -> str:
    latitude, longitude, heading = (
        math.degrees(angle) for angle in (origin.latitude, origin.longitude, origin.heading)
    )
    return f"latitude {latitude:.7g}, longitude {longitude:.7g}, elevation {origin.elevation:g} m, heading {heading:g}"

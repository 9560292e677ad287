"""The origin and the magnetic field that plug-ins declare.

A GPS plug-in has its own reference of latitude, longitude and heading, a magnetometer plug-in its own field. The world
has priority: its `<spherical_coordinates>` and its magnetic field. Without them, those of the first plug-in apply to
the whole world. A plug-in that differs gives a warning.
"""

from __future__ import annotations

import math

from navsense.core.geodesy import Origin
from navsense.core.typing import Vector
from navsense.sdf.context import Context
from navsense.sdf.plugins.base import Place, make_origin
from navsense.sdf.plugins.registry import find_place_parser
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
    coordinates, field_element = world.find("spherical_coordinates"), world.find(*FIELD_TAGS)
    world_origin = None if coordinates is None else _read_origin(coordinates)
    origin: Origin | None = None
    field: Vector | None = None
    for plugin in world.walk():
        parse = find_place_parser(plugin) if plugin.tag == "plugin" else None
        if parse is None:
            continue
        place = parse(context, plugin)
        name = f'<plugin filename="{plugin.get_attribute("filename")}">'
        if place.origin is not None:
            if coordinates is None and origin is None:
                origin = place.origin
                reason = f"its reference{'' if place.is_given else ', a default,'} is the origin of the world: "
                reason += f"{_format_origin(origin)}; the world has no <spherical_coordinates>"
                context.add_note("warning", name, reason, plugin.where)
            elif place.is_given and _differ(place.origin, world_origin or origin):
                other = "<spherical_coordinates> are" if coordinates is not None else "the first reference is"
                reason = f"its reference, {_format_origin(place.origin)}, is not used: the world's {other} used"
                context.add_note("warning", name, reason, plugin.where)
        if place.magnetic_field is not None and field_element is None:
            if field is None:
                field = place.magnetic_field
                reason = f"its field{'' if place.is_given else ', a default,'} is that of the world, "
                shown = " ".join(f"{round(part * 1e6, 3):g}" for part in field)
                reason += f"{shown} uT; the world has no <magnetic_field>"
                context.add_note("warning", name, reason, plugin.where)
            elif place.is_given and math.dist(place.magnetic_field, field) > FIELD_TOLERANCE:
                reason = "its field is not used: that of the first magnetometer plug-in is used"
                context.add_note("warning", name, reason, plugin.where)
        elif place.magnetic_field is not None and place.is_given:
            reason = "its field is not used: the world's magnetic field is used"
            context.add_note("warning", name, reason, plugin.where)
    return Place(origin, field)


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

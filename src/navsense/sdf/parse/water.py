"""`<navsense:water>` of a world: its surface, temperature and salinity by depth, density and speed of sound.

<navsense:water/>                                               surface at height 0, 10 degC, salinity 35
<navsense:water surface="12.5" latitude_deg="36.8">             m; default: latitude of the world, else 45
  <temperature>283.15</temperature> <salinity>35</salinity>     K, PSS-78, at every depth; or points:
  <point depth="0" temperature="290" salinity="33.5"/> ...
  <density>1000</density>                                       kg/m^3, constant; default: EOS-80
  <sound_speed>mackenzie</sound_speed>                          a formula, or m/s; default: chen-millero
</navsense:water>
<navsense:water file="cast.csv"/>                               depth,temperature,salinity

The fields of `Water` declare the names, units and places of these values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from navsense.core.geodesy import Origin
from navsense.core.inputs import parse_decimal
from navsense.environment.water import PROFILE_COLUMNS, Water
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import LEAF, Context, ElementSchema
from navsense.sdf.values import invalid_value, map_spec_errors, parse_number, require_attribute_number
from navsense.sdf.xml_reader import Element


def parse_water(context: Context, world: Element, origin: Origin | None) -> Water | None:
    """Return the water of a world; None without the element."""
    element = context.find_child(world, "navsense:water", WATER.schema)
    if element is None:
        return None
    with context.collect_errors(), map_spec_errors(element):
        problems_before = context.problem_count
        fields = WATER.read_fields(context, element)
        if origin is not None:
            fields.setdefault("latitude", origin.latitude)
        return WATER.make_spec(context, element, problems_before, **{**fields, **_parse_profile(context, element)})
    return Water()  # the world has water, so its sensors do not report a second problem


def _parse_constant(context: Context, element: Element) -> tuple[float]:
    """Return a temperature (K) or salinity that is the same at every depth."""
    context.check(element, LEAF)
    return (parse_number(element, parent="navsense:water"),)


def _parse_sound_speed(context: Context, element: Element) -> float | str:
    """Return the speed of sound: the name of a formula, or a number (m/s)."""
    context.check(element, LEAF)
    number = parse_decimal(element.text)
    return element.text if number is None else number


WATER = ElementBinding(
    Water,
    parsers={"temperatures": _parse_constant, "salinities": _parse_constant, "sound_speed": _parse_sound_speed},
    other_children=("point",),
    other_attributes=("file",),
    repeatable=("point",),
)

WATER_POINT = ElementSchema(attributes=frozenset(PROFILE_COLUMNS))


def _parse_profile(context: Context, element: Element) -> dict[str, Any]:
    """Return the points of a profile, from a file or from elements. Raises `FieldError` for a file without points."""
    points, file = list(element.find_all("point")), element.get_attribute("file")
    if file is None and "file" in element.attributes:
        allowed = f"must name a file of {','.join(PROFILE_COLUMNS)}"
        raise invalid_value(element, "empty", allowed, attribute="file")
    if not points and file is None:
        return {}
    if points and file is not None:
        raise invalid_value(points[0], "with a file", "must not be combined with file=...", parent=element.tag)
    constant = element.find(*PROFILE_COLUMNS[1:])
    if constant is not None:
        raise invalid_value(constant, constant.text, "must not be combined with a profile", parent=element.tag)
    if file is not None:
        columns = Water.read_profile(Path(element.path).parent / file)
    else:
        columns = tuple(zip(*(_parse_point(context, point) for point in points), strict=True))
    return dict(zip(("depths", "temperatures", "salinities"), columns, strict=True))


def _parse_point(context: Context, element: Element) -> tuple[float, float, float]:
    """Return depth (m), temperature (K) and salinity of a `<point>`."""
    context.check(element, WATER_POINT)
    depth, temperature, salinity = (require_attribute_number(element, name) for name in PROFILE_COLUMNS)
    return depth, temperature, salinity

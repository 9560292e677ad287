"""`<navsense:water>` of a world: its surface, temperature and salinity by depth, density and speed of sound.

<navsense:water/>                                               surface at height 0, 10 degC, salinity 35
<navsense:water surface="12.5" latitude_deg="36.8">             m; default: latitude of the world, else 45
  <temperature>283.15</temperature> <salinity>35</salinity>     K, PSS-78, at every depth; or points:
  <point depth="0" temperature="290" salinity="33.5"/> ...
  <density>1000</density>                                       kg/m^3, constant; default: EOS-80
  <sound_speed>mackenzie</sound_speed>                          a formula, or m/s; default: chen-millero
</navsense:water>
<navsense:water file="cast.csv"/>                               depth,temperature,salinity
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from navsense.core.errors import FieldError
from navsense.core.geodesy import Origin
from navsense.core.inputs import parse_decimal
from navsense.environment.water import Water
from navsense.sdf import values
from navsense.sdf.context import Context
from navsense.sdf.parse.children import error_at
from navsense.sdf.schema import LEAF, WATER, WATER_POINT
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element

PROFILE_FIELDS = {"temperature": "temperatures", "salinity": "salinities"}
"""Element or attribute of a profile -> field of `Water`."""


def parse_water(context: Context, world: Element, origin: Origin | None) -> Water | None:
    """Return the water of a world; None without the element."""
    element = world.find("navsense:water")
    if element is None:
        return None
    context.check(element, WATER)
    with context.collect_errors():
        given: dict[str, Any] = {"surface": values.parse_attribute_number(element, "surface") or 0.0}
        latitude = values.parse_attribute_number(element, "latitude_deg")
        if latitude is not None:
            given["latitude"] = math.radians(latitude)
        elif origin is not None:
            given["latitude"] = origin.latitude
        for tag in ("density", *PROFILE_FIELDS):
            child = element.find(tag)
            if child is not None:
                context.check(child, LEAF)
                number = values.parse_number(child, parent=element.tag)
                given |= {tag: number} if tag == "density" else {PROFILE_FIELDS[tag]: (number,)}
        try:
            return Water(**given, **_parse_sound_speed(context, element), **_parse_profile(context, element))
        except FieldError as error:
            raise error_at(element, error) from error
    return None


def _parse_sound_speed(context: Context, element: Element) -> dict[str, Any]:
    """Return the speed of sound: the name of a formula, or a number."""
    child = element.find("sound_speed")
    if child is None:
        return {}
    context.check(child, LEAF)
    number = parse_decimal(child.text)
    return {"sound_speed": child.text if number is None else number}


def _parse_profile(context: Context, element: Element) -> dict[str, Any]:
    """Return the points of a profile, from a file or from elements. Raises `FieldError` for a file without points."""
    points, file = list(element.find_all("point")), element.get_attribute("file")
    if file is None and "file" in element.attributes:
        raise invalid_value(element, "empty", "must name a file of depth,temperature,salinity", attribute="file")
    if not points and file is None:
        return {}
    constant = next((child for tag in PROFILE_FIELDS if (child := element.find(tag)) is not None), None)
    if points and file is not None:
        raise invalid_value(points[0], "beside a file", "must not be combined with file=...", parent=element.tag)
    if constant is not None:
        allowed = "must not be combined with a profile"
        raise invalid_value(constant, constant.text, allowed, parent=element.tag)
    if file is not None:
        rows = Water.read_profile(Path(element.path).parent / file)
    else:
        rows = tuple(zip(*(_parse_point(context, point) for point in points), strict=True))
    return dict(zip(("depths", *PROFILE_FIELDS.values()), rows, strict=True))


def _parse_point(context: Context, element: Element) -> tuple[float, float, float]:
    """Return depth (m), temperature (K) and salinity of a `<point>`."""
    context.check(element, WATER_POINT)
    depth, temperature, salinity = (
        values.require_attribute_number(element, name) for name in ("depth", *PROFILE_FIELDS)
    )
    return depth, temperature, salinity

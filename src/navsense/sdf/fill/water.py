"""`<navsense:water>` of a world: its surface, temperature and salinity by depth, density and speed of sound.

<navsense:water/>                                               level with the world's origin, 10 degC, salinity 35
<navsense:water surface="12.5" latitude_deg="36.8">             m; of the world's place where not given, else 45
  <temperature>283.15</temperature> <salinity>35</salinity>     K, PSS-78: the same at every depth; or points:
  <point depth="0" temperature="290" salinity="33.5"/> ...
  <density>1000</density>                                       kg/m^3 everywhere, as in a tank; else EOS-80
  <sound_speed>mackenzie</sound_speed>                          a formula, or m/s everywhere; else chen-millero
</navsense:water>
<navsense:water file="cast.csv"/>                               depth,temperature,salinity, beside the SDF file
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from navsense.environment.water import Water
from navsense.errors import FieldError
from navsense.geodesy import Origin
from navsense.inputs import decimal
from navsense.sdf import values
from navsense.sdf.context import Context
from navsense.sdf.fill.fields import refused_at
from navsense.sdf.places import LAYER, LEAF, WATER
from navsense.sdf.read import Element
from navsense.sdf.values import refusal

PROFILE = {"temperature": "temperatures", "salinity": "salinities"}
"""Element or attribute of a profile: the field of `Water` that it fills."""


def water_of(context: Context, world: Element, origin: Origin | None) -> Water | None:
    """Return the water of a world, None where the file says nothing of any."""
    element = world.first("navsense:water")
    if element is None:
        return None
    context.check(element, WATER)
    with context.collecting():
        given: dict[str, Any] = {"surface": values.attribute_number(element, "surface") or 0.0}
        latitude = values.attribute_number(element, "latitude_deg")
        if latitude is not None:
            given["latitude"] = math.radians(latitude)
        elif origin is not None:
            given["latitude"] = origin.latitude
        for tag in ("density", *PROFILE):
            child = element.first(tag)
            if child is not None:
                context.check(child, LEAF)
                number = values.number(child, parent=element.tag)
                given |= {tag: number} if tag == "density" else {PROFILE[tag]: (number,)}
        try:
            return Water(**given, **_sound(context, element), **_profile(context, element))
        except FieldError as error:
            raise refused_at(element, error) from error
    return None


def _sound(context: Context, element: Element) -> dict[str, Any]:
    """Return the speed of sound that is given: a formula's name, or a number."""
    child = element.first("sound_speed")
    if child is None:
        return {}
    context.check(child, LEAF)
    number = decimal(child.text)
    return {"sound_speed": child.text if number is None else number}


def _profile(context: Context, element: Element) -> dict[str, Any]:
    """Return the points of a profile, from a file or one by one. Raise FieldError for a file that holds none."""
    points, file = list(element.all("point")), element.attribute("file")
    if file is None and "file" in element.attributes:
        raise refusal(element, "empty", "must name a file of depth,temperature,salinity", attribute="file")
    if not points and file is None:
        return {}
    constant = next((child for tag in PROFILE if (child := element.first(tag)) is not None), None)
    if points and file is not None:
        raise refusal(points[0], "beside a file", "must be absent where file=... is given", parent=element.tag)
    if constant is not None:
        allowed = "must be absent where a profile is given"
        raise refusal(constant, constant.text, allowed, parent=element.tag)
    if file is not None:
        rows = Water.profile_of(Path(element.path).parent / file)
    else:
        rows = tuple(zip(*(_point(context, point) for point in points), strict=True))
    return dict(zip(("depths", *PROFILE.values()), rows, strict=True))


def _point(context: Context, element: Element) -> tuple[float, float, float]:
    """Return depth (m), temperature (K) and salinity of a `<point>`."""
    context.check(element, LAYER)
    depth, temperature, salinity = (values.given_number(element, name) for name in ("depth", *PROFILE))
    return depth, temperature, salinity

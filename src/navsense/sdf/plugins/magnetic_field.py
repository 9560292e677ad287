"""The magnetic field that a magnetometer plug-in gives to a world without one.

Some plug-ins of magnetometers have the earth's field in their own elements:

    B = intensity (cos(inclination) cos(heading - declination), cos(inclination) sin(heading - declination),
                   -sin(inclination))                                                along the axes of the world

The field belongs to the earth, not to an instrument. So the world's `<magnetic_field>` or `<navsense:magnetic_field>`
applies, and all magnetometers agree. A world without either has the field of the first such plug-in, instead of the
default of SDF. Each plug-in whose field is not used has a warning.
Source: UUV Simulator, `MagnetometerROSPlugin`, which is derived from hector_gazebo's `gazebo_ros_magnetic`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from navsense.core.typing import Vector
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.xml_reader import Element

MICROTESLA = 1e-6
"""T."""

FIELD_TAGS = ("magnetic_field", "navsense:magnetic_field")
"""Elements of a world that define its field."""

FIELD_TOLERANCE = 1e-12
"""T, below which two fields are equal."""

UUV_MAGNETOMETER_FILE = "libuuv_gazebo_ros_magnetometer_plugin.so"


class FieldElements(NamedTuple):
    """The elements of a plug-in with the field, their units, and the defaults in these units.

    unit: T of one unit of the intensity; angle: rad of one unit of the angles.
    """

    intensity: tuple[str, float]
    heading: tuple[str, float]
    declination: tuple[str, float]
    inclination: tuple[str, float]
    unit: float
    angle: float

    def list_tags(self) -> list[str]:
        """Return the elements."""
        return [tag for tag, _ in (self.intensity, self.heading, self.declination, self.inclination)]

    def parse(self, context: Context, plugin: Element) -> Vector:
        """Return the field (T) along the axes of the world."""
        heading, declination, inclination = (
            self.angle * parse_child_number(context, plugin, tag, default)
            for tag, default in (self.heading, self.declination, self.inclination)
        )
        tag, default = self.intensity
        intensity = self.unit * parse_child_number(context, plugin, tag, default, minimum=0.0)
        level = intensity * math.cos(inclination)
        azimuth = heading - declination
        return (level * math.cos(azimuth), level * math.sin(azimuth), -intensity * math.sin(inclination))


UUV_FIELD = FieldElements(
    intensity=("intensity", 1.0),
    heading=("reference_heading", math.pi),
    declination=("declination", 0.0),
    inclination=("inclination", math.pi / 3.0),
    unit=MICROTESLA,
    angle=1.0,
)

FIELD_PLUGINS: Mapping[str, FieldElements] = {UUV_MAGNETOMETER_FILE: UUV_FIELD}
"""File of a plug-in of a model -> its elements of the field."""


def parse_plugin_field(context: Context, world: Element) -> Vector | None:
    """Return the field (T) of the first magnetometer plug-in in a world without a field; None for another world.

    Adds a warning for the field that is used, and for each one that is not.
    """
    plugins = [(part, FIELD_PLUGINS.get(part.get_attribute("filename") or "")) for part in world.walk()]
    fields = [(part, entry.parse(context, part)) for part, entry in plugins if part.tag == "plugin" and entry]
    if not fields:
        return None
    own = world.find(*FIELD_TAGS)
    (first, used), *_ = fields
    for plugin, field in fields:
        what = f"<plugin><intensity>: {plugin.get_attribute('name')}"
        if own is not None:
            reason = f"the field is that of <{own.tag}> on line {own.line}, not that of the plug-in"
        elif plugin is first:
            reason = f"the world has no <magnetic_field>: it has the field of the plug-in, {_format(field)} T"
        elif math.dist(field, used) <= FIELD_TOLERANCE:
            continue
        else:
            reason = f"the field is that of the plug-in on line {first.line}, {_format(used)} T"
        context.add_note("warning", what, reason, plugin.where)
    return None if own is not None else used


def _format(field: Vector) -> str:
    """Return a field (T) as text, to the tolerance of its comparison."""
    return " ".join(f"{round(part / FIELD_TOLERANCE) * FIELD_TOLERANCE:.4g}" for part in field)

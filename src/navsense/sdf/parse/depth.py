"""`<sensor type="depth">`, navsense's own: the noise of the pressure, and the formula for the depth.

    <depth>
      <pressure> <noise ...> </pressure>                              Pa
      <gauge>true</gauge>                                             pressure above surface_pressure
      <surface_pressure>101325</surface_pressure>                     Pa, of the air, as the instrument assumes
      <formula latitude_deg="36.8">unesco</formula>                   or saunders; default: the world's latitude
      <formula density="1025" gravity="9.80665">constant</formula>    kg/m^3, m/s^2
      <formula>known</formula>                                        uses the world's water
    </depth>

A sensor of this type with a `<camera>` is Gazebo's older depth camera. It is listed and not simulated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from navsense.core.errors import FieldError, SdfError
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.sdf import values
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.children import error_at, map_spec_errors
from navsense.sdf.parse.mount import Mount
from navsense.sdf.parse.noise import read_sensor_values
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element
from navsense.sensors.depth import Depth

DEPTH = ElementBinding(Depth)

CONSTANT_DENSITY, KNOWN_WATER = "constant", "known"
LATITUDE_FORMULAS: Mapping[str, type[Unesco | Saunders]] = {"unesco": Unesco, "saunders": Saunders}
FORMULA_ATTRIBUTES = {
    **dict.fromkeys(LATITUDE_FORMULAS, frozenset(("latitude_deg",))),
    CONSTANT_DENSITY: frozenset(("density", "gravity")),
    KNOWN_WATER: frozenset[str](),
}
"""Formula -> its attributes."""

DepthFormula = Unesco | Saunders | ConstantDensity | None


def parse(context: Context, block: Element | None, mount: Mount) -> Depth:
    """Return the specification of a `<depth>` block; without a block one without noise."""
    assumed = _make_formula(Unesco, None, mount)
    if block is None:
        check_water(context, mount, assumed)
        return Depth(assumed=assumed)
    context.check(block, DEPTH.schema)
    element = block.find("formula")
    if element is not None:
        with context.collect_errors():
            assumed = _parse_formula(context, element, mount)
    check_water(context, mount, assumed)
    values = read_sensor_values(context, block, DEPTH, classic=mount.classic)
    with map_spec_errors(block):
        return Depth(**values, assumed=assumed)


def _make_formula(formula: type[Unesco | Saunders], latitude: float | None, mount: Mount) -> DepthFormula:
    """Return a formula at a latitude (rad): the given one, that of the world, or the default of the formula."""
    if latitude is None and mount.origin is not None:
        latitude = mount.origin.latitude
    return formula() if latitude is None else formula(latitude)


def _parse_formula(context: Context, element: Element, mount: Mount) -> DepthFormula:
    """Return the water that a `<formula>` assumes. Raises `SdfError`."""
    kind = element.text
    if kind not in FORMULA_ATTRIBUTES:
        raise invalid_value(element, kind or "empty", f"must be one of {', '.join(FORMULA_ATTRIBUTES)}", parent="depth")
    context.check(element, ElementSchema(attributes=FORMULA_ATTRIBUTES[kind]))
    if kind == KNOWN_WATER:
        return None
    given = {name: values.parse_attribute_number(element, name) for name in sorted(FORMULA_ATTRIBUTES[kind])}
    try:
        if kind == CONSTANT_DENSITY:
            return _make_constant_density(element, **given)
        degrees = given["latitude_deg"]
        return _make_formula(LATITUDE_FORMULAS[kind], None if degrees is None else math.radians(degrees), mount)
    except FieldError as error:
        raise error_at(element, error) from error


def _make_constant_density(element: Element, density: float | None, gravity: float | None) -> ConstantDensity:
    """Return water of a constant density (kg/m^3), which is required, and gravity (m/s^2)."""
    if density is None:
        raise invalid_value(element, "missing", "must be given (kg/m^3)", attribute="density")
    return ConstantDensity(density) if gravity is None else ConstantDensity(density, gravity)


def check_water(context: Context, mount: Mount, assumed: DepthFormula) -> None:
    """Add a warning for a world without water; a formula that requires it is a problem."""
    if mount.water is not None or mount.where is None:
        return
    reason = (
        "the world has no <navsense:water>: its water is that which the sensor assumes, with the surface at height 0"
    )
    if assumed is not None:
        context.add_note("warning", f'<sensor type="depth">: {mount.name}', reason, mount.where)
        return
    context.add_problem(
        SdfError(
            f"<formula>: {KNOWN_WATER}",
            mount.name,
            where=mount.where,
            allowed="requires the world's <navsense:water>",
            remedy="give <navsense:water/> in the world",
        )
    )

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
from functools import partial

from navsense.core.errors import SdfError
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.sdf.binder import ChildParser, ElementBinding
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.parse.type_element import read_type_element
from navsense.sdf.values import invalid_choice, invalid_value, map_spec_errors, parse_attribute_number
from navsense.sdf.xml_reader import Element
from navsense.sensors.depth import Depth

DEPTH = ElementBinding(Depth)

CONSTANT_DENSITY, KNOWN_WATER = "constant", "known"
LATITUDE_FORMULAS: Mapping[str, type[Unesco | Saunders]] = {"unesco": Unesco, "saunders": Saunders}
FORMULA_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(LATITUDE_FORMULAS, ("latitude_deg",)),
    CONSTANT_DENSITY: ("density", "gravity"),
    KNOWN_WATER: (),
}
"""Formula -> its attributes."""

DepthFormula = Unesco | Saunders | ConstantDensity | None


def parse(context: Context, type_element: Element | None, sensor_context: SensorContext) -> Depth:
    """Return the specification of a `<depth>`; without it one without noise."""
    parsers: dict[str, ChildParser] = {"assumed": partial(_parse_formula, sensor_context=sensor_context)}
    spec = read_type_element(
        context, type_element, DEPTH, sensor_context, parsers, assumed=_make_formula(Unesco, None, sensor_context)
    )
    check_water(context, sensor_context, spec.assumed)
    return spec


def _make_formula(
    formula: type[Unesco | Saunders], latitude: float | None, sensor_context: SensorContext
) -> DepthFormula:
    """Return a formula at a latitude (rad): the given one, that of the world, or the default of the formula."""
    if latitude is None and sensor_context.origin is not None:
        latitude = sensor_context.origin.latitude
    return formula() if latitude is None else formula(latitude)


def _parse_formula(context: Context, element: Element, sensor_context: SensorContext) -> DepthFormula:
    """Return the water that a `<formula>` assumes. Raises `SdfError`."""
    formula = element.text
    if formula not in FORMULA_ATTRIBUTES:
        raise invalid_choice(element, formula, FORMULA_ATTRIBUTES, parent="depth")
    context.check(element, ElementSchema(attributes=frozenset(FORMULA_ATTRIBUTES[formula])))
    if formula == KNOWN_WATER:
        return None
    numbers = {name: parse_attribute_number(element, name) for name in FORMULA_ATTRIBUTES[formula]}
    with map_spec_errors(element):
        if formula == CONSTANT_DENSITY:
            if numbers["density"] is None:
                raise invalid_value(element, "missing", "must be given (kg/m^3)", attribute="density")
            return ConstantDensity(**{name: number for name, number in numbers.items() if number is not None})
        degrees = numbers["latitude_deg"]
        return _make_formula(
            LATITUDE_FORMULAS[formula], None if degrees is None else math.radians(degrees), sensor_context
        )


def check_water(context: Context, sensor_context: SensorContext, assumed: DepthFormula) -> None:
    """Add a warning for a world without water; a formula that requires it is a problem."""
    if sensor_context.water is not None or sensor_context.where is None:
        return
    if assumed is not None:
        reason = "the world has no <navsense:water>: its water is that which the sensor assumes, with the surface at"
        reason += " height 0"
        context.add_note("warning", f'<sensor type="depth">: {sensor_context.name}', reason, sensor_context.where)
        return
    what, allowed = f"<formula>: {KNOWN_WATER}", "requires the world's <navsense:water>"
    remedy = "give <navsense:water/> in the world"
    context.add_problem(SdfError(what, sensor_context.name, where=sensor_context.where, allowed=allowed, remedy=remedy))

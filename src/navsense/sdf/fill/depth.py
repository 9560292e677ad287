"""`<sensor type="depth">`, navsense's own: the noise of the pressure, and what the instrument makes a depth of it by.

    <depth>
      <pressure> <noise ...> </pressure>                              Pa
      <gauge>true</gauge>                                             says how much it is above surface_pressure
      <surface_pressure>101325</surface_pressure>                     Pa, what it takes for the air's
      <formula latitude_deg="36.8">unesco</formula>                   or saunders; of the world's place where not given
      <formula density="1025" gravity="9.80665">constant</formula>    kg/m^3, m/s^2
      <formula>known</formula>                                        it knows the world's water
    </depth>

A sensor of this type with a `<camera>` is Gazebo's older depth camera, which is listed and not simulated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.errors import FieldError, SdfError, SensorError
from navsense.sdf import values
from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.fields import flag_of, number_of, refused_at
from navsense.sdf.fill.noise import channel_of
from navsense.sdf.read import Element
from navsense.sdf.values import refusal
from navsense.sensors.depth import STANDARD_PRESSURE, Depth

DEPTH = Place(read=frozenset(("pressure", "gauge", "surface_pressure", "formula")))

CONSTANT, KNOWN = "constant", "known"
BY_LATITUDE: Mapping[str, type[Unesco | Saunders]] = {"unesco": Unesco, "saunders": Saunders}
ATTRIBUTES = {
    **dict.fromkeys(BY_LATITUDE, frozenset(("latitude_deg",))),
    CONSTANT: frozenset(("density", "gravity")),
    KNOWN: frozenset[str](),
}
"""Formula: the attributes that it has."""

Assumed = Unesco | Saunders | ConstantDensity | None


def fill(context: Context, block: Element | None, mount: Mount) -> Depth:
    """Return the data sheet that a `<depth>` block describes; without a block one without noise."""
    assumed = _by_latitude(Unesco, None, mount)
    if block is None:
        tell_of_water(context, mount, assumed)
        return Depth(assumed=assumed)
    context.check(block, DEPTH)
    element = block.first("formula")
    if element is not None:
        with context.collecting():
            assumed = _assumed(context, element, mount)
    tell_of_water(context, mount, assumed)
    noise = channel_of(context, block.first("pressure"), classic=mount.classic)
    surface_pressure = number_of(context, block, "surface_pressure", STANDARD_PRESSURE, least=0.0)
    gauge = flag_of(context, block, "gauge", default=False)
    try:
        return Depth(noise, assumed, surface_pressure, gauge)
    except SensorError as error:
        raise refused_at(block, error) from error


def _by_latitude(formula: type[Unesco | Saunders], latitude: float | None, mount: Mount) -> Assumed:
    """Return a formula at a latitude (rad), that of the world's place where there is none; else its own default."""
    if latitude is None and mount.origin is not None:
        latitude = mount.origin.latitude
    return formula() if latitude is None else formula(latitude)


def _assumed(context: Context, element: Element, mount: Mount) -> Assumed:
    """Return what a `<formula>` says that the water is taken for. Raise SdfError."""
    kind = element.text
    if kind not in ATTRIBUTES:
        raise refusal(element, kind or "empty", f"must be one of {', '.join(ATTRIBUTES)}", parent="depth")
    context.check(element, Place(attributes=ATTRIBUTES[kind]))
    if kind == KNOWN:
        return None
    given = {name: values.attribute_number(element, name) for name in sorted(ATTRIBUTES[kind])}
    try:
        if kind == CONSTANT:
            return _constant(element, **given)
        degrees = given["latitude_deg"]
        return _by_latitude(BY_LATITUDE[kind], None if degrees is None else math.radians(degrees), mount)
    except FieldError as error:
        raise refused_at(element, error) from error


def _constant(element: Element, density: float | None, gravity: float | None) -> ConstantDensity:
    """Return water of one density (kg/m^3), which must be given, under a gravity (m/s^2)."""
    if density is None:
        raise refusal(element, "missing", "must be given (kg/m^3)", attribute="density")
    return ConstantDensity(density) if gravity is None else ConstantDensity(density, gravity)


def tell_of_water(context: Context, mount: Mount, assumed: Assumed) -> None:
    """Warn of a world that does not say what water it has; without a formula either, that is a problem."""
    if mount.water is not None or mount.where is None:
        return
    reason = "the world has no <navsense:water>: it is taken for what the sensor assumes, its surface at height 0"
    if assumed is not None:
        context.note("warning", f'<sensor type="depth">: {mount.name}', reason, mount.where)
        return
    context.problem(
        SdfError(
            f"<formula>: {KNOWN}",
            mount.name,
            where=mount.where,
            allowed="must be a formula where the world has no <navsense:water>",
            remedy="give <navsense:water/> in the world",
        )
    )

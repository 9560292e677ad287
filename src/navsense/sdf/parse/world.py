"""`<world>`: step and fidelity. Its fields are in `environment`."""

from __future__ import annotations

from navsense.core.ticks import MAX_RATE, MIN_RATE
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_choice, parse_child_number
from navsense.sdf.schema import PHYSICS
from navsense.sdf.values import invalid_value, parse_attribute_flag
from navsense.sdf.xml_reader import Element
from navsense.simulation.fidelity import FIDELITIES

MIN_STEP, MAX_STEP = 1.0 / MAX_RATE, 1.0 / MIN_RATE
"""Seconds: the shortest and the longest period of a sensor."""

DEFAULT_STEP = 0.001
"""Seconds: the default of SDF's `<max_step_size>` (SDF 1.12, `physics.sdf`)."""


def parse_max_step_size(context: Context, world: Element) -> float:
    """Return the step (s) of the world's physics: that of the default profile, else of the first."""
    physics = list(world.find_all("physics"))
    chosen: Element | None = None
    for element in physics:
        context.check(element, PHYSICS)
        with context.collect_errors():
            if parse_attribute_flag(element, "default") and chosen is None:
                chosen = element
    if not physics:
        return DEFAULT_STEP
    chosen = chosen or physics[0]
    for element in physics:
        if element is not chosen:
            reason = f"is one of several; the one on line {chosen.line} is used"
            context.add_note("unsupported", "<world><physics>", reason, element.where)
    step = parse_child_number(context, chosen, "max_step_size", DEFAULT_STEP, above=0.0)
    if not MIN_STEP <= step <= MAX_STEP:
        allowed = f"must be from {MIN_STEP:g} to {MAX_STEP:g} s"
        context.add_problem(
            invalid_value(chosen.find("max_step_size") or chosen, f"{step:g}", allowed, parent="physics")
        )
        return DEFAULT_STEP
    return step


def parse_classic(context: Context, element: Element, *, default: bool) -> bool:
    """Return True if a world or sensor has classic fidelity. The fidelity of the caller has priority."""
    text = parse_child_choice(context, element, "navsense:fidelity", FIDELITIES[default], FIDELITIES)
    return (context.fidelity or text) == "classic"

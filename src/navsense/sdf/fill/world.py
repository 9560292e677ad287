"""`<world>`: step and fidelity. Its fields are in `environment`."""

from __future__ import annotations

from navsense.fidelity import FIDELITIES
from navsense.sdf.context import Context
from navsense.sdf.fill.fields import number_of, word_of
from navsense.sdf.places import PHYSICS
from navsense.sdf.read import Element
from navsense.sdf.values import attribute_flag, refusal
from navsense.ticks import FASTEST, SLOWEST

SHORTEST_STEP, LONGEST_STEP = 1.0 / FASTEST, 1.0 / SLOWEST
"""Seconds: the periods of the fastest and the slowest sensor."""

DEFAULT_STEP = 0.001
"""Seconds: the default of SDF's `<max_step_size>` (SDF 1.12, `physics.sdf`)."""


def max_step_size(context: Context, world: Element) -> float:
    """Return the step (s) of the world's physics: of the one marked default, else of the first."""
    physics = list(world.all("physics"))
    chosen: Element | None = None
    for element in physics:
        context.check(element, PHYSICS)
        with context.collecting():
            if attribute_flag(element, "default") and chosen is None:
                chosen = element
    if not physics:
        return DEFAULT_STEP
    chosen = chosen or physics[0]
    for element in physics:
        if element is not chosen:
            reason = f"is one of several; the one on line {chosen.line} counts"
            context.note("unsupported", "<world><physics>", reason, element.where)
    step = number_of(context, chosen, "max_step_size", DEFAULT_STEP, above=0.0)
    if not SHORTEST_STEP <= step <= LONGEST_STEP:
        allowed = f"must be from {SHORTEST_STEP:g} to {LONGEST_STEP:g} s"
        context.problem(refusal(chosen.first("max_step_size") or chosen, f"{step:g}", allowed, parent="physics"))
        return DEFAULT_STEP
    return step


def classic_of(context: Context, element: Element, *, default: bool) -> bool:
    """Return whether the rules of Gazebo's noise hold in a world or sensor; the caller's own wish comes first."""
    text = word_of(context, element, "navsense:fidelity", FIDELITIES[default], FIDELITIES)
    return (context.fidelity or text) == "classic"

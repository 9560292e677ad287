"""Fidelity: `physical` (the default) or `classic`, which reproduces the listed behaviour of older simulators."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass, replace
from typing import Any

from navsense.core.errors import SimulationError
from navsense.world import World

FIDELITIES = ("physical", "classic")


def check_fidelity(fidelity: str) -> None:
    """Raise `SimulationError` for an unknown fidelity."""
    if fidelity not in FIDELITIES:
        raise SimulationError("fidelity", fidelity, allowed=f"must be one of {', '.join(FIDELITIES)}")


def set_classic(spec: Any, *, classic: bool) -> Any:
    """Return a spec with this value in all fields named `classic`, its own and those of parts such as a `Noise`."""
    if isinstance(spec, tuple):
        changed = tuple(set_classic(part, classic=classic) for part in spec)
        return changed if changed != spec else spec
    if not is_dataclass(spec) or isinstance(spec, type):
        return spec
    old = {field.name: getattr(spec, field.name) for field in fields(spec) if field.init}
    new = {name: classic if name == "classic" else set_classic(value, classic=classic) for name, value in old.items()}
    return spec if new == old else replace(spec, **new)


def apply_fidelity(world: World, fidelity: str | None) -> World:
    """Return the world with one fidelity for all sensors and clocks; None keeps the fidelity of each.

    Values that depend on the file are unchanged: the current of a plug-in, and the default limits of a plug-in. Raises
    `SimulationError` for an unknown fidelity, and if `world` is not a `World`.
    """
    if not isinstance(world, World):
        argument = f'"{world}"' if isinstance(world, str | os.PathLike) else "path"
        remedy = f"load the file first: ns.load({argument})"
        raise SimulationError("world", repr(world), allowed="must be a World, as ns.load returns it", remedy=remedy)
    if fidelity is None:
        return world
    check_fidelity(fidelity)
    classic = fidelity == "classic"
    return replace(
        world,
        sensors=tuple(replace(s, spec=set_classic(s.spec, classic=classic)) for s in world.sensors),
        clocks=tuple(replace(c, noise=replace(c.noise, classic=classic)) for c in world.clocks),
    )

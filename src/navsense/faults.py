"""Faults on purpose, from a file of their own: the same world with and without them.

    # faults.toml
    [[fault]]
    of = "auv::dvl_link::dvl"        # a sensor, a clock, or the end of its name ("dvl"), or "world"
    kind = "lost_lock"
    start = 100.0                    # s, true time; without an end it stays
    end = 130.0

    [[fault]]
    of = "auv::imu_link::imu"
    kind = "bias"
    start = 200.0
    array = "angular_velocity"
    value = [0.0, 0.0, 0.01]         # SI, one number or one an axis

Kinds are those of `navsense.noise.planned` for a sensor, `step` (s) for a clock, `magnetic_anomaly` (T, along the
world's axes) for the world; they are added to what the world has.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from navsense import inputs
from navsense.clock.base import Step
from navsense.environment.anomaly import Anomaly
from navsense.environment.base import Sum
from navsense.errors import NavsenseError, SimulationError, Where
from navsense.names import resolve_name
from navsense.noise.planned import Planned, check_planned
from navsense.world import MountedSensor, World

WORLD = "world"

_FILE = inputs.Kind("file of faults", SimulationError, "must be a file of TOML")

KEYS = ("of", "kind", "start", "end", "array", "value", "period")


@dataclass(frozen=True)
class _Entry:
    """One `[[fault]]` of a file: its keys, and where it stands."""

    given: Mapping[str, Any]
    what: str
    where: Where

    def error(self, key: str, value: object, allowed: str) -> SimulationError:
        """Return the error of one of its keys."""
        return SimulationError(f"{self.what}: {key}", value, allowed=allowed, where=self.where)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text. Raise `SimulationError` where it is missing or none."""
        value = self.given.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, "missing" if value is None else value, "must be a text")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number. Raise `SimulationError` where it is missing or none."""
        value = self.given.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, "missing" if value is None else value, "must be a number")
        return _real(value)

    def numbers(self, count: int = 0) -> tuple[float, ...]:
        """Return the value as numbers, `count` of them where that is not 0."""
        value = self.given.get("value", [])
        many = value if isinstance(value, list) else [value]
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in many):
            raise self.error("value", value, "must be a number or a list of numbers")
        if count and len(many) != count:
            raise self.error("value", value if many else "missing", f"must be {count} number{'s' * (count > 1)}")
        return tuple(map(_real, many))

    def span(self) -> tuple[float, float]:
        """Return start and end (s)."""
        return self.number("start"), self.number("end", math.inf)

    def only(self, kind: str) -> None:
        """Raise `SimulationError` where it is of another kind, or has what only a sensor's faults have."""
        if self.text("kind") != kind:
            raise self.error("kind", self.given["kind"], f"must be {kind}")
        for key in ("array", "period"):
            if key in self.given:
                raise self.error(key, self.given[key], "belongs to a sensor's fault")


def _real(value: float) -> float:
    """Return a number of a file; an integer beyond all doubles is infinite, which nothing here may be."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def with_faults(world: World, path: str | os.PathLike[str]) -> World:
    """Return the world with the faults of a TOML file besides its own.

    Raises `SimulationError` for what is no such file, `UnknownNameError` for a fault of nothing in the world.
    """
    clocks, sensors = dict.fromkeys(one.name for one in world.clocks), {one.name: one for one in world.sensors}
    found = _Found()
    for entry in _entries(os.fspath(path)):
        try:
            of = resolve_name(entry.text("of"), (WORLD, *sensors, *clocks), f"{entry.what}: of", where=entry.where)
            if of == WORLD:
                found.anomalies.append(_anomaly(entry))
            elif of in clocks:
                found.steps.setdefault(of, []).append(_step(entry))
            else:
                found.planned.setdefault(of, []).append(_planned(entry, sensors[of]))
        except NavsenseError as error:
            if error.where is not None:
                raise
            what = f"{entry.what}: {error.what}"
            raise SimulationError(what, error.value, allowed=error.allowed, where=entry.where) from error
    return _struck(world, found)


@dataclass(frozen=True)
class _Found:
    """The faults of a file in their order: of the world, and of clocks and sensors by name."""

    anomalies: list[Anomaly] = field(default_factory=list)
    steps: dict[str, list[Step]] = field(default_factory=dict)
    planned: dict[str, list[Planned]] = field(default_factory=dict)


def _entries(path: str) -> list[_Entry]:
    where, found = Where(path), inputs.read_toml(path, _FILE)
    faults = found.pop("fault", None)
    if found or not isinstance(faults, list) or not all(isinstance(one, dict) for one in faults):
        unknown = f"has {', '.join(found)}" if found else "has no [[fault]]"
        raise SimulationError("file of faults", unknown, allowed="must hold [[fault]] tables alone", where=where)
    entries = [_Entry(given, f"fault {number}", where) for number, given in enumerate(faults, 1)]
    for entry in entries:
        for key in entry.given:
            if key not in KEYS:
                raise entry.error(key, entry.given[key], f"is unknown; known are {', '.join(KEYS)}")
    return entries


def _anomaly(entry: _Entry) -> Anomaly:
    entry.only("magnetic_anomaly")
    x, y, z = entry.numbers(3)
    return Anomaly((x, y, z), *entry.span())


def _step(entry: _Entry) -> Step:
    entry.only("step")
    return Step(*entry.span(), *entry.numbers(1))


def _planned(entry: _Entry, sensor: MountedSensor) -> Planned:
    period = entry.number("period", 0.0)
    planned = Planned(entry.text("kind"), *entry.span(), entry.text("array", ""), entry.numbers(), period)
    check_planned(sensor.spec, {output.name: output.shape for output in sensor.spec.outputs}, planned)
    return planned


def _struck(world: World, found: _Found) -> World:
    """Return the world with faults besides its own."""
    if found.anomalies:
        own = world.environment.magnetic_field
        parts = own.fields if isinstance(own, Sum) else (own,)
        both = Sum((*parts, *found.anomalies))
        world = replace(world, environment=replace(world.environment, magnetic_field=both))
    clocks = (replace(one, steps=(*one.steps, *found.steps.get(one.name, ()))) for one in world.clocks)
    return replace(world, clocks=tuple(clocks), sensors=tuple(_with(one, found.planned) for one in world.sensors))


def _with(sensor: MountedSensor, planned: Mapping[str, list[Planned]]) -> MountedSensor:
    """Return a sensor with the faults of its name besides its own."""
    mine = planned.get(sensor.name, ())
    return replace(sensor, faults=replace(sensor.faults, planned=(*sensor.faults.planned, *mine))) if mine else sensor


def listed(world: World) -> list[dict[str, Any]]:
    """Return all faults on purpose of a world, with the keys of the file; an end that never comes is left out."""
    found: list[dict[str, Any]] = []
    own = world.environment.magnetic_field
    for part in own.fields if isinstance(own, Sum) else (own,):
        if isinstance(part, Anomaly):
            head = {"of": WORLD, "kind": "magnetic_anomaly", "start": part.start, "end": part.end}
            found.append({**head, "value": list(part.field_w)})
    for clock in world.clocks:
        for step in clock.steps:
            head = {"of": clock.name, "kind": "step", "start": step.start, "end": step.end}
            found.append({**head, "value": step.size})
    for sensor in world.sensors:
        for one in sensor.faults.planned:
            head = {"of": sensor.name, "kind": one.kind, "start": one.start, "end": one.end}
            adds = {"array": one.array, "value": list(one.value)} if one.array else {}
            found.append({**head, **adds, **({"period": one.period} if one.period else {})})
    return [{key: value for key, value in one.items() if value != math.inf} for one in found]


MOST_SAID = 5
"""Faults that never act that are named one by one."""


def unfelt(world: World, duration: float) -> Iterator[str]:
    """Yield what is to be said of the faults on purpose that are before or behind a run of `duration` s."""
    outside = [one for one in listed(world) if one["start"] >= duration or one.get("end", math.inf) <= 0.0]
    for one in outside[:MOST_SAID]:
        yield f"{one['of']}: {one['kind']} from {one['start']:g} s on never acts: the run is from 0 to {duration:g} s"
    if len(outside) > MOST_SAID:
        yield f"{len(outside) - MOST_SAID} more faults on purpose never act"

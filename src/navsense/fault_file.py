"""Injected faults from a TOML file: the same world with and without them.

    # faults.toml
    [[fault]]
    of = "auv::dvl_link::dvl"        # a sensor, a clock, or the end of its name ("dvl"), or "world"
    kind = "lost_lock"
    start = 100.0                    # s, true time; default: no end
    end = 130.0

    [[fault]]
    of = "auv::imu_link::imu"
    kind = "bias"
    start = 200.0
    array = "angular_velocity"
    value = [0.0, 0.0, 0.01]         # SI, one number or one per axis

Kinds are those of `navsense.faults.schedule` for a sensor, `step` (s) for a clock, `magnetic_anomaly` (T, along
the world's axes) for the world. They are added to the faults of the world.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from navsense.clock.base import ClockStep
from navsense.core import inputs
from navsense.core.errors import NavsenseError, SimulationError, Where
from navsense.core.names import resolve_name
from navsense.core.text import format_count
from navsense.environment.base import FieldSum, VectorField
from navsense.environment.magnetic import Anomaly
from navsense.faults.schedule import ScheduledFault, check_fault
from navsense.world import MountedSensor, World

WORLD_NAME = "world"

_FAULT_FILE = inputs.FileKind("file of faults", SimulationError, "must be a file of TOML")

FAULT_KEYS = ("of", "kind", "start", "end", "array", "value", "period")


@dataclass(frozen=True)
class _FaultEntry:
    """One `[[fault]]` of a file: its keys and its place."""

    fields: Mapping[str, Any]
    what: str
    where: Where

    def make_error(self, key: str, value: object, allowed: str) -> SimulationError:
        """Return the error of one of its keys."""
        return SimulationError(f"{self.what}: {key}", value, allowed=allowed, where=self.where)

    def parse_text(self, key: str, default: str | None = None) -> str:
        """Return a text. Raises `SimulationError` for a missing or invalid one."""
        value = self.fields.get(key, default)
        if not isinstance(value, str):
            raise self.make_error(key, "missing" if value is None else value, "must be a text")
        return value

    def parse_number(self, key: str, default: float | None = None) -> float:
        """Return a number. Raises `SimulationError` for a missing or invalid one."""
        value = self.fields.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.make_error(key, "missing" if value is None else value, "must be a number")
        return _to_float(value)

    def parse_numbers(self, count: int = 0) -> tuple[float, ...]:
        """Return a value as numbers; `count` is their number, 0 for any."""
        value = self.fields.get("value", [])
        many = value if isinstance(value, list) else [value]
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in many):
            raise self.make_error("value", value, "must be a number or a list of numbers")
        if count and len(many) != count:
            raise self.make_error("value", value if many else "missing", f"must be {count} number{'s' * (count > 1)}")
        return tuple(map(_to_float, many))

    def parse_span(self) -> tuple[float, float]:
        """Return start and end (s)."""
        return self.parse_number("start"), self.parse_number("end", math.inf)

    def check_kind(self, kind: str) -> None:
        """Raise `SimulationError` for another kind, and for keys that only faults of sensors have."""
        if self.parse_text("kind") != kind:
            raise self.make_error("kind", self.fields["kind"], f"must be {kind}")
        for key in ("array", "period"):
            if key in self.fields:
                raise self.make_error(key, self.fields[key], "is allowed in a sensor's fault only")


def _to_float(value: float) -> float:
    """Return a number of a file as a float; infinite for an integer beyond all doubles, which is invalid here."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def with_faults(world: World, path: str | os.PathLike[str]) -> World:
    """Return the world with the faults of a TOML file in addition to its own.

    Raises `SimulationError` for an invalid file, `UnknownNameError` for a fault of an unknown object.

    >>> text = 'fault = [{of = "imu", kind = "dropout", start = 0.5, end = 0.6}]'
    >>> _ = Path("faults.toml").write_text(text)
    >>> faulty = ns.simulate(ns.with_faults(world, "faults.toml"), duration=1.0)
    >>> int(faulty["imu"].fault["dropout"].sum())
    100
    """
    clocks, sensors = {one.name: one for one in world.clocks}, {one.name: one for one in world.sensors}
    anomalies: list[Anomaly] = []
    steps: dict[str, list[ClockStep]] = {}
    faults: dict[str, list[ScheduledFault]] = {}
    names = (WORLD_NAME, *sensors, *clocks)
    for entry in _read_entries(os.fspath(path)):
        try:
            name = resolve_name(entry.parse_text("of"), names, f"{entry.what}: of", where=entry.where)
            if name == WORLD_NAME:
                entry.check_kind("magnetic_anomaly")
                x, y, z = entry.parse_numbers(3)
                anomalies.append(Anomaly((x, y, z), *entry.parse_span()))
            elif name in clocks:
                entry.check_kind("step")
                steps.setdefault(name, []).append(ClockStep(*entry.parse_span(), *entry.parse_numbers(1)))
            else:
                faults.setdefault(name, []).append(_make_scheduled_fault(entry, sensors[name]))
        except NavsenseError as error:
            if error.where is not None:
                raise
            what = f"{entry.what}: {error.what}"
            raise SimulationError(what, error.value, allowed=error.allowed, where=entry.where) from error
    if anomalies:
        both = FieldSum((*_list_magnetic_fields(world), *anomalies))
        world = replace(world, environment=replace(world.environment, magnetic_field=both))
    for name, added in faults.items():
        old = sensors[name].faults
        sensors[name] = replace(sensors[name], faults=replace(old, scheduled=(*old.scheduled, *added)))
    for name, more in steps.items():
        clocks[name] = replace(clocks[name], steps=(*clocks[name].steps, *more))
    return replace(world, clocks=tuple(clocks.values()), sensors=tuple(sensors.values()))


def _list_magnetic_fields(world: World) -> tuple[VectorField, ...]:
    """Return the fields whose sum is the magnetic field of a world."""
    field = world.environment.magnetic_field
    return field.fields if isinstance(field, FieldSum) else (field,)


def _read_entries(path: str) -> list[_FaultEntry]:
    where, tables = Where(path), inputs.read_toml(path, _FAULT_FILE)
    faults = tables.pop("fault", None)
    if tables or not isinstance(faults, list) or not all(isinstance(one, dict) for one in faults):
        unknown = f"has {', '.join(tables)}" if tables else "has no [[fault]]"
        raise SimulationError("file of faults", unknown, allowed="must hold [[fault]] tables alone", where=where)
    entries = [_FaultEntry(fields, f"fault {number}", where) for number, fields in enumerate(faults, 1)]
    for entry in entries:
        for key in entry.fields:
            if key not in FAULT_KEYS:
                raise entry.make_error(key, entry.fields[key], f"is unknown; known are {', '.join(FAULT_KEYS)}")
    return entries


def _make_scheduled_fault(entry: _FaultEntry, sensor: MountedSensor) -> ScheduledFault:
    period = entry.parse_number("period", 0.0)
    fault = ScheduledFault(
        entry.parse_text("kind"), *entry.parse_span(), entry.parse_text("array", ""), entry.parse_numbers(), period
    )
    check_fault(sensor.spec, {output.name: output.shape for output in sensor.spec.outputs}, fault)
    return fault


def list_faults(world: World) -> list[dict[str, Any]]:
    """Return the scheduled faults of a world with the keys of a fault file, without infinite ends."""
    entries: list[dict[str, Any]] = []
    for part in _list_magnetic_fields(world):
        if isinstance(part, Anomaly):
            head = {"of": WORLD_NAME, "kind": "magnetic_anomaly", "start": part.start, "end": part.end}
            entries.append({**head, "value": list(part.field_w)})
    for clock in world.clocks:
        for step in clock.steps:
            head = {"of": clock.name, "kind": "step", "start": step.start, "end": step.end}
            entries.append({**head, "value": step.size})
    for sensor in world.sensors:
        for fault in sensor.faults.scheduled:
            head = {"of": sensor.name, "kind": fault.kind, "start": fault.start, "end": fault.end}
            adds = {"array": fault.array, "value": list(fault.value)} if fault.array else {}
            entries.append({**head, **adds, **({"period": fault.period} if fault.period else {})})
    return [{key: value for key, value in fault.items() if value != math.inf} for fault in entries]


MAX_LISTED = 5
"""Largest number of inactive faults that are listed one by one."""


def describe_inactive_faults(world: World, duration: float) -> Iterator[str]:
    """Yield a line for each scheduled fault that is outside a run of `duration` s."""
    outside = [one for one in list_faults(world) if one["start"] >= duration or one.get("end", math.inf) <= 0.0]
    for one in outside[:MAX_LISTED]:
        yield f"{one['of']}: {one['kind']} from {one['start']:g} s does not act in a run from 0 to {duration:g} s"
    if len(outside) > MAX_LISTED:
        yield f"{format_count(len(outside) - MAX_LISTED, 'more scheduled fault')} outside the run"

"""Parameters of a world: the fields of its sensors, clocks, links and environment, each with a path.

A path is the name of an object, then names of fields with dots between them. Any unambiguous ending of a full name
refers to an object, as in `run["imu"]`.

    rover::base_link::imu.angular_velocity_x.stddev     a field of the specification of a sensor
    imu.rate                                            rate, pose, latency, faults, is_on of a mounted sensor
    imu.part                                            the part of the catalogue; it is set first, and cannot be read
    autopilot.noise.stddev                              a field of a clock
    world.current.value_w.0                             a field of the environment; 0, 1, 2 are elements of a vector
    imu.angular_velocity_*.stddev                       a pattern: * is any letters; it sets all fields that match

`navsense describe WORLD --parameters` lists the paths of a world. The origin of the world is no parameter: many values,
such as the latitude of a depth formula, were computed from it when the file was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from fnmatch import filter as filter_names
from functools import cache
from typing import Any

import numpy as np

from navsense.core.errors import NavsenseError, SimulationError
from navsense.core.geodesy import Origin
from navsense.core.inputs import parse_json
from navsense.core.names import resolve_name, suggest_name
from navsense.sensors.base import HasCatalogueParts
from navsense.sensors.catalogue import list_parts
from navsense.sensors.dvl import Dvl
from navsense.world import MountedSensor, World

__all__ = ["format_value", "list_parameters", "list_part_paths"]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


ParameterValue = bool | int | float | str | Sequence[Any]
"""A value of a parameter: a number, a string, a boolean, or a list of numbers."""

ENVIRONMENT = "world"
"""First part of the paths of the environment."""

PART = "part"
"""Name of the parameter that selects a part of the catalogue."""

MOUNTING_FIELDS = ("rate", "pose", "latency", "faults", "is_on", "frame", "topic")
"""Fields of `MountedSensor` that are parameters, unless the specification has a field of this name."""


class _PathError(SimulationError):
    """A path that does not exist in a world."""


def with_parameters(world: World, values: Mapping[str, ParameterValue]) -> World:
    """Return the world with other values of parameters.

    values: by path. Parts of the catalogue are set first, because a part sets many fields. Other values are set in
        their order: of two paths that refer to the same field, such as `imu.misalignment.*` and `imu.misalignment.0`,
        the later one wins.

    Raises `SimulationError` for a path that the world does not have and for a value of another type, and the errors of
    the specifications for an invalid value.

    >>> noisy = ns.with_parameters(world, {"imu.angular_velocity_x.stddev": 0.01, "imu.rate": 100.0})
    >>> noisy.sensor("imu").spec.angular_velocity_x.stddev, noisy.sensor("imu").rate
    (0.01, 100.0)
    """
    for path, value in order_parameters(values).items():
        try:
            world = _set_parameter(world, path, value)
        except NavsenseError as error:
            if path in error.what:
                raise
            what = f"parameter {path}: {error.what}"
            raise SimulationError(what, error.value, allowed=error.allowed, remedy=error.remedy) from error
    return world


def order_parameters(
    values: Mapping[str, ParameterValue], more: Mapping[str, ParameterValue] | None = None
) -> dict[str, ParameterValue]:
    """Return the values in the order in which they are set: parts of the catalogue first.

    more: values that are set after `values`, and that replace those of the same path.

    >>> ns.parameters.order_parameters({"imu.rate": 100.0, "imu.part": "stim300"}, {"imu.rate": 200.0})
    {'imu.part': 'stim300', 'imu.rate': 200.0}
    """
    more = more or {}
    merged = {**{path: value for path, value in values.items() if path not in more}, **more}
    return dict(sorted(merged.items(), key=lambda item: item[0].partition(".")[2] != PART))


def list_parameters(world: World) -> Iterator[tuple[str, ParameterValue]]:
    """Yield path and value of each parameter: those of the sensors, of the clocks, then of the environment.

    >>> dict(ns.parameters.list_parameters(world))["quadrotor::base_link::imu.rate"]
    1000.0
    """
    for sensor in world.sensors:
        yield from _list_fields(f"{sensor.name}.", sensor.spec)
        names = _list_field_names(sensor.spec)
        for name in MOUNTING_FIELDS:
            if name not in names:
                yield from _list_values(f"{sensor.name}.{name}", getattr(sensor, name))
    for clock in world.clocks:
        yield from _list_fields(f"{clock.name}.", clock)
    yield from _list_fields(f"{ENVIRONMENT}.", world.environment)


def list_part_paths(world: World) -> Iterator[str]:
    """Yield the paths that set a part of the catalogue. They have no value: the fields of a part can be changed.

    >>> list(ns.parameters.list_part_paths(world))[0]
    'quadrotor::base_link::imu.part'
    """
    for sensor in world.sensors:
        if isinstance(type(sensor.spec), HasCatalogueParts) and _list_part_fields(type(sensor.spec)):
            yield f"{sensor.name}.{PART}"


def format_value(value: ParameterValue) -> str:
    """Return a value as the option `--set` of `navsense run` reads it: as JSON, but a string that is not JSON as it is.

    >>> ns.parameters.format_value((0.0, 0.5)), ns.parameters.format_value("never"), ns.parameters.format_value("1")
    ('[0.0, 0.5]', 'never', '"1"')
    """
    if isinstance(value, str):
        try:
            parse_json(value)
        except ValueError:
            return value
    return json.dumps(value)


def _list_field_names(spec: Any) -> frozenset[str]:
    """Return the names of the fields of a specification; none for a class that is not a dataclass."""
    return frozenset(field.name for field in fields(spec)) if is_dataclass(spec) else frozenset()


def _list_fields(prefix: str, parent: Any) -> Iterator[tuple[str, ParameterValue]]:
    """Yield path and value of the parameters below an object."""
    if is_dataclass(parent):
        for field in fields(parent):
            if field.init and field.repr:
                yield from _list_values(f"{prefix}{field.name}", getattr(parent, field.name))


def _list_values(path: str, value: Any) -> Iterator[tuple[str, ParameterValue]]:
    """Yield a parameter, or those below its value."""
    if isinstance(value, Enum):
        yield path, value.name.lower()
    elif isinstance(value, bool | int | float | str) or _is_vector(value):
        yield path, value
    elif isinstance(value, tuple):
        for index, element in enumerate(value):
            yield from _list_values(f"{path}.{index}", element)
    elif not isinstance(value, Origin):
        yield from _list_fields(f"{path}.", value)


def _is_vector(value: Any) -> bool:
    """Return True for a tuple of numbers."""
    return isinstance(value, tuple) and all(isinstance(element, bool | int | float) for element in value)


def _set_parameter(world: World, path: str, value: ParameterValue) -> World:
    """Return the world with one other value. Raises `SimulationError`."""
    name, _, rest = path.partition(".")
    keys = rest.split(".") if rest else []
    sensors, clocks = [sensor.name for sensor in world.sensors], [clock.name for clock in world.clocks]
    if path in ("motion", "faults") or path.endswith(".motion"):
        allowed = "is a file: it is no parameter of the world"
        remedy = f"use --{rest or name}, or the key {rest or name} of an experiment file"
        raise SimulationError("parameter", path, allowed=allowed, remedy=remedy)
    if not keys:
        remedy = f"write {name or 'imu'}.FIELD; navsense describe WORLD --parameters lists the paths"
        raise SimulationError("parameter", path, allowed="must name an object and a field", remedy=remedy)
    if name == ENVIRONMENT:
        return replace(world, environment=_replace_below(world.environment, keys, value, path))
    full = resolve_name(name, (*sensors, *clocks, ENVIRONMENT), f"object of parameter {path}", error=SimulationError)
    if full in clocks:
        changed = tuple(
            _replace_below(clock, keys, value, path) if clock.name == full else clock for clock in world.clocks
        )
        return replace(world, clocks=changed)
    sensor = world.sensor(full)
    mounted = _replace_in_sensor(sensor, keys, value, path)
    return replace(world, sensors=tuple(mounted if other.name == full else other for other in world.sensors))


def _replace_in_sensor(sensor: MountedSensor, keys: Sequence[str], value: ParameterValue, path: str) -> MountedSensor:
    """Return a sensor with one other value of its specification or mounting."""
    spec: Any = sensor.spec
    names = _list_field_names(spec)
    if keys == [PART] and PART not in names:
        return replace(sensor, spec=_replace_part(spec, value, path))
    if keys[0] in MOUNTING_FIELDS and keys[0] not in names:
        mounted: MountedSensor = _replace_below(sensor, keys, value, path)
        return mounted
    try:
        return replace(sensor, spec=_replace_below(spec, keys, value, path))
    except _PathError as error:
        if keys[0] in names or error.value != keys[0]:
            raise
        known = (*names, PART, *MOUNTING_FIELDS)
        allowed = f"is not a field of {sensor.name}: must be one of {', '.join(sorted(known))}"
        raise _PathError(error.what, keys[0], allowed=allowed, remedy=suggest_name(keys[0], known)) from None


def _replace_below(parent: Any, keys: Sequence[str], value: ParameterValue, path: str) -> Any:
    """Return an object with one other value in the field that `keys` name. Raises `SimulationError`."""
    if not keys:
        return _convert(parent, value, path)
    if isinstance(parent, Origin):
        allowed = "is not a parameter: other values of the world were computed from the origin"
        raise _PathError(f"parameter {path}", keys[0], allowed=allowed, remedy="change <spherical_coordinates>")
    key, *rest = keys
    if isinstance(parent, tuple):
        elements = {str(index): element for index, element in enumerate(parent)}
        return tuple((elements | _replace_matching(elements, key, rest, value, path)).values())
    if not is_dataclass(parent) or isinstance(parent, type):
        allowed = f"{_describe(parent)} has no fields that can be set"
        remedy = "navsense describe WORLD --parameters lists the paths"
        raise _PathError(f"parameter {path}", key, allowed=allowed, remedy=remedy)
    values = {field.name: getattr(parent, field.name) for field in fields(parent) if field.init}
    return replace(parent, **_replace_matching(values, key, rest, value, path))


def _replace_matching(
    values: Mapping[str, Any], key: str, rest: Sequence[str], value: ParameterValue, path: str
) -> dict[str, Any]:
    """Return the fields that a part of a path refers to, with the other value. Raises `SimulationError` for none."""
    if "*" not in key and key in values:
        return {key: _replace_below(values[key], rest, value, path)}
    changed = {}
    for name in filter_names(values, key):
        with suppress(_PathError):  # a field of this name without the fields below it
            changed[name] = _replace_below(values[name], rest, value, path)
    if not changed:
        allowed = f"must be one of {', '.join(values)}" if values else "there is none"
        raise _PathError(f"parameter {path}", key, allowed=allowed, remedy=suggest_name(key, values))
    return changed


def _convert(current: Any, value: ParameterValue, path: str) -> Any:
    """Return a value in the type of the current one. Raises `SimulationError` for another type."""
    what = f"parameter {path}"
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(current, Enum):
        choices = {choice.name.lower(): choice for choice in type(current)}
        if value not in choices:
            raise SimulationError(what, value, allowed=f"must be one of {', '.join(choices)}")
        return choices[str(value)]
    if isinstance(current, tuple) and isinstance(value, Sequence) and not isinstance(value, str):
        pattern = current[0] if current else 0.0
        return tuple(_convert(pattern, element, path) for element in value)
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if isinstance(current, bool | str):
        if type(value) is type(current):
            return value
    elif isinstance(current, int):
        if isinstance(number, int):
            return number
    elif (isinstance(current, float) or current is None) and number is not None:
        with suppress(OverflowError):
            return float(number)
    raise SimulationError(what, value, allowed=f"must be {_describe_type(current)}")


def _describe_type(current: Any) -> str:
    """Return what a value of the type of the current one is."""
    if isinstance(current, tuple):
        return f"a list of {len(current)} values"
    if is_dataclass(current):
        return f"a field below it: {', '.join(field.name for field in fields(current))}"
    names = {bool: "true or false", str: "a string", int: "an integer", float: "a number"}
    return names.get(type(current), "a number")


def _describe(parent: Any) -> str:
    """Return the name of an object without fields."""
    return "none" if parent is None else f"a value of type {type(parent).__name__}"


@cache
def _list_part_fields(sensor_class: Any) -> frozenset[str]:
    """Return the fields that parts of the catalogue set in the specifications of a sensor class."""
    names: set[str] = set()
    for part in list_parts():
        try:
            spec = sensor_class.from_part(part, **({"stddev": 1.0} if _has_stddev(sensor_class) else {}))
        except NavsenseError:  # a part of another type
            continue
        for field in fields(spec):
            default = field.default if field.default_factory is MISSING else field.default_factory()
            if getattr(spec, field.name) != default:
                names.add(field.name)
    return frozenset(names)


def _has_stddev(sensor_class: Any) -> bool:
    """Return True if the parts of a class need the deviation of a single ping."""
    return sensor_class is Dvl


def _replace_part(spec: Any, value: ParameterValue, path: str) -> Any:
    """Return a specification with the fields of a part of the catalogue, and its other fields unchanged."""
    sensor_class = type(spec)
    if not isinstance(sensor_class, HasCatalogueParts):
        raise SimulationError(f"parameter {path}", value, allowed=f"the catalogue has no part of type {spec.type}")
    part: Any = sensor_class.from_part(str(value))
    return replace(spec, **{name: getattr(part, name) for name in _list_part_fields(sensor_class)})

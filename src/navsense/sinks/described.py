"""A world as plain JSON and back: what of it recordings are written and read by, their messages and their arrays.

    {"name", "models": [{"name", "pose", "static", "moves", "canonical_link", "links",
      "actuators"}], "clocks": [...], "current",
     "sensors": [{"name", "model", "link", "rate", "pose", "topic", "frame", "clock", "type", "outputs", "sheet"}],
     "origin", "water", "anomalies"}

A pose is x y z w x y z. A sheet has each field that is not what it is by default, a class of it by module and name. A
sheet of a class that is not ours is not read back: a sensor is then known by its type and outputs. Faults on purpose
are those of sensors and clocks in their sheets, those of the world in `anomalies`, which is there where it has some.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any, cast

import numpy as np

from navsense.clock import Clock, Latency
from navsense.environment.anomaly import Anomaly
from navsense.environment.base import Environment, Sum, Uniform
from navsense.environment.signal import Signal
from navsense.environment.water import Water
from navsense.errors import NavsenseError
from navsense.geodesy import Origin
from navsense.motion.still import Still
from navsense.noise.channel import Noise
from navsense.noise.faults import Faults
from navsense.pose import Pose
from navsense.sensors.base import Output, Sensor, signals_of
from navsense.sinks.records import DamagedError
from navsense.world import CurrentTopic, LayersTopic, Link, Model, MountedSensor, World

PACKAGE = "navsense."
"""What the modules begin with whose classes are read back."""


@dataclass(frozen=True)
class Recorded:
    """A sensor of which a recording tells no sheet: its type, the arrays of its readings, and their noise."""

    type: str
    outputs: tuple[Output, ...]
    deviations: tuple[tuple[str, tuple[float, ...]], ...] = ()

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the white noise of each axis of each array that has some."""
        return {name: tuple(Noise(stddev=one) for one in axes) for name, axes in self.deviations}


@dataclass(frozen=True)
class NotSaid(Latency):
    """A latency of which a recording says only that there is one."""


def recorded(kind: str, outputs: Sequence[Output]) -> Sensor:
    """Return a sensor that is known by its type and outputs: it is written and read, and measures nothing."""
    return cast("Sensor", Recorded(kind, tuple(outputs)))


def plain(value: Any) -> Any:
    """Return a value of a sheet as JSON has it. Raises TypeError for one that has no such form."""
    if isinstance(value, Enum):
        return {"enum": _name(value), "value": value.value}
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        named = {
            one.name: getattr(value, one.name) for one in fields(value) if one.init and not _is_default(one, value)
        }
        return {"class": _name(value), "fields": {name: plain(one) for name, one in named.items()}}
    raise TypeError(type(value).__name__)


def _name(value: object) -> str:
    """Return module and name of an object's class."""
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _is_default(field: Any, value: object) -> bool:
    """Tell whether a field is what it is by default."""
    own = getattr(value, field.name)
    return field.default is not MISSING and type(own) is type(field.default) and bool(own == field.default)


def made(value: Any) -> Any:
    """Return what `plain` made JSON of. Raises `DamagedError` for what it did not, or of a class that is not ours."""
    if isinstance(value, list):
        return tuple(made(one) for one in value)
    if not isinstance(value, dict):
        return value
    try:
        if "float" in value:
            return float(value["float"])
        kind = _class(value["enum"] if "enum" in value else value["class"])
        if issubclass(kind, Enum):
            return kind(value["value"])
        return kind(**{name: made(one) for name, one in value["fields"].items()})
    except (KeyError, TypeError, ValueError, AttributeError, NavsenseError) as error:
        raise DamagedError(f"a sheet cannot be read: {error}") from error


def _class(name: str) -> type:
    """Return one of our classes by its name: a frozen dataclass or an enumeration of a module that is loaded."""
    module, _, own = name.partition(":")
    found = vars(sys.modules[module]).get(own) if module.startswith(PACKAGE) and module in sys.modules else None
    if not (isinstance(found, type) and (is_dataclass(found) or issubclass(found, Enum))):
        raise ValueError(f"{name} is no class of a sheet")
    return found


def _pose(pose: Pose) -> list[float]:
    """Return a pose as seven numbers."""
    return [*map(float, pose.position), *map(float, pose.rotation)]


def _posed(numbers: Sequence[float]) -> Pose:
    """Return a pose of seven numbers."""
    x, y, z, *rotation = (float(number) for number in numbers)
    w, a, b, c = rotation
    return Pose((x, y, z), (w, a, b, c))


def plain_world(world: World) -> dict[str, Any]:
    """Return a world as JSON has it."""
    shown = world.current_topic
    return {
        "name": world.name,
        "models": [_plain_model(model) for model in world.models],
        "sensors": [_plain_sensor(sensor) for sensor in world.sensors],
        "clocks": [clock.name for clock in world.clocks],
        "clock_sheets": {clock.name: sheet for clock in world.clocks if (sheet := _plain_clock(clock)) is not None},
        "current": None if world.environment.current is None else plain(shown),
        **_plain_around(world.environment),
    }


def _plain_around(environment: Environment) -> dict[str, Any]:
    """Return place, water and anomalies as JSON has them; what somebody else has made in their stead is left out."""
    found = {"origin": environment.origin, "water": environment.water}
    told = {name: plain(one) for name, one in found.items() if one is None or type(one) in (Origin, Water)}
    field = environment.magnetic_field
    parts = field.fields if isinstance(field, Sum) else (field,)
    anomalies = [plain(part) for part in parts if type(part) is Anomaly]
    return {**told, "anomalies": anomalies} if anomalies else told


def _plain_clock(clock: Clock) -> dict[str, Any] | None:
    """Return a clock's sheet as JSON has it, with its faults; None where it has no such form."""
    try:
        sheet: dict[str, Any] = plain(replace(clock, where=None))
    except TypeError:
        return None
    return sheet


def clock_sheets(told: Mapping[str, Any]) -> dict[str, Clock]:
    """Return the clocks whose sheets `plain_world` described. Raises `DamagedError` where one is none."""
    sheets = told.get("clock_sheets", {})
    found = [made(sheet) for sheet in sheets.values()] if isinstance(sheets, dict) else []
    if not all(isinstance(clock, Clock) for clock in found):
        raise DamagedError("damaged: a sheet of a clock is none")
    return {clock.name: clock for clock in found}


def _plain_model(model: Model) -> dict[str, Any]:
    """Return a model as JSON has it."""
    return {
        "name": model.name,
        "pose": _pose(model.pose),
        "static": model.static,
        "moves": model.motion is not None,
        "canonical_link": model.canonical_link,
        "links": {link.name: _pose(link.pose) for link in model.links},
        "actuators": list(model.actuators),
    }


def _plain_sensor(sensor: MountedSensor) -> dict[str, Any]:
    """Return a sensor as JSON has it."""
    return {
        "name": sensor.name,
        "model": sensor.model,
        "link": sensor.link,
        "rate": float(sensor.rate),
        "pose": _pose(sensor.pose),
        "topic": sensor.topic,
        "frame": sensor.frame,
        "clock": sensor.clock,
        "late": sensor.latency is not None,
        "latency": None if isinstance(sensor.latency, NotSaid) else _plain_or_none(sensor.latency),
        "type": sensor.spec.type,
        "outputs": [plain((out.name, out.axes, out.unit, out.turns)) for out in sensor.spec.outputs],
        "sheet": _plain_or_none(sensor.spec),
        "faults": _plain_or_none(sensor.faults),
    }


def _plain_or_none(value: object) -> Any:
    """Return a sheet as JSON has it, None where it has no such form."""
    try:
        return plain(value)
    except TypeError:
        return None


def world_of(told: Mapping[str, Any]) -> World:
    """Return the world that `plain_world` described. Raises `DamagedError` where it is none."""
    try:
        sensors = tuple(_sensor_of(one) for one in told["sensors"])
        models = tuple(_model_of(one) for one in told["models"])
        sheets = clock_sheets(told)
        clocks = tuple(sheets.get(name) or Clock(str(name)) for name in told["clocks"])
        shown = CurrentTopic() if told["current"] is None else made(told["current"])
        if not isinstance(shown, CurrentTopic) or not isinstance(shown.layers, LayersTopic | None):
            raise DamagedError("its current is none")
        flow = None if told["current"] is None else Uniform((0.0, 0.0, 0.0))
        signals = {name: Signal((0.0,), (0.0,)) for sensor in sensors for name in signals_of(sensor.spec)}
        environment = Environment(current=flow, signals=signals, **_around(told))
        return World(str(told["name"]), models, sensors, clocks, environment, current_topic=shown)
    except (KeyError, TypeError, ValueError, AttributeError, NavsenseError) as error:
        raise DamagedError(f"damaged: its world cannot be read: {error}") from error


def _around(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return where on earth the world stands, its water, None where it has none or does not say, and its anomalies."""
    origin, water = made(told.get("origin")), made(told.get("water"))
    if not isinstance(origin, Origin | None) or not isinstance(water, Water | None):
        raise DamagedError("its place or its water is none")
    anomalies = made(told.get("anomalies", []))
    if not isinstance(anomalies, tuple) or not all(isinstance(one, Anomaly) for one in anomalies):
        raise DamagedError("its anomalies are none")
    if not anomalies:
        return {"origin": origin, "water": water}
    field = Sum((Environment().magnetic_field, *anomalies))
    return {"origin": origin, "water": water, "magnetic_field": field}


def tells_place(told: Mapping[str, Any]) -> bool:
    """Return whether a plain world says where on earth it stands and what water it has; older ones do not."""
    return "origin" in told and "water" in told


def _model_of(told: Mapping[str, Any]) -> Model:
    """Return a model; one that moves has a motion that only says so."""
    links = tuple(Link(str(name), _posed(pose)) for name, pose in told["links"].items())
    pose, motion = _posed(told["pose"]), Still() if told["moves"] else None
    actuators = tuple(str(one) for one in told.get("actuators", ()))
    return Model(str(told["name"]), links, str(told["canonical_link"]), pose, bool(told["static"]), motion, actuators)


def _sensor_of(told: Mapping[str, Any]) -> MountedSensor:
    """Return a sensor, with its sheet where that is of a class of ours."""
    outputs = tuple(Output(*made(one)) for one in told["outputs"])
    spec = recorded(str(told["type"]), outputs)
    sheet = told["sheet"]
    if isinstance(sheet, dict) and str(sheet.get("class", "")).startswith(PACKAGE):
        spec = made(sheet)
    pose, clock = _posed(told["pose"]), told["clock"]
    return MountedSensor(
        str(told["name"]),
        spec,
        str(told["model"]),
        str(told["link"]),
        float(told["rate"]),
        pose,
        str(told["topic"]),
        str(told["frame"]),
        None if clock is None else str(clock),
        (latency if isinstance(latency := made(told.get("latency")), Latency) else NotSaid()) if told["late"] else None,
        faults if isinstance(faults := made(told.get("faults")), Faults) else Faults(),
    )

"""Worlds: models with links, sensors and clocks, all frozen.

`sdf` builds a world from a file; Python code can build one, too. Names are world-relative paths joined by `::`
(`outer::inner::link::sensor`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypeVar

import numpy as np

from navsense.clock import Clock, Latency
from navsense.core.errors import SimulationError, Where
from navsense.core.names import get_short_name, resolve_name
from navsense.core.pose import Pose
from navsense.core.summaries import (
    Summary,
    format_spec,
    format_spec_html,
    format_summary,
    format_summary_html,
    format_title,
)
from navsense.core.text import format_count
from navsense.core.ticks import MAX_RATE, MIN_RATE, check_rate
from navsense.core.typing import Quaternion, Vector
from navsense.core.validation import validate_types
from navsense.environment.base import Environment
from navsense.environment.terrain.base import Shape
from navsense.faults.injection import Faults
from navsense.motion.base import Motion
from navsense.sensors.base import HasWarnings, Sensor, list_signals


class HasName(Protocol):
    """An object with a full name."""

    @property
    def name(self) -> str:
        """The full name."""


NamedT = TypeVar("NamedT", bound=HasName)


def find_by_name(objects: Sequence[NamedT], name: str, what: str) -> NamedT:
    """Return the object with a full name or an unambiguous ending of one. Raises `UnknownNameError`."""
    for one in objects:
        if one.name == name:
            return one
    full = resolve_name(name, [one.name for one in objects], what)
    return next(one for one in objects if one.name == full)


@dataclass(frozen=True)
class Link:
    """A link: full name, and pose in the frame of its top-level model.

    >>> world.link("rotor_0").pose
    Pose(position=(0.17, -0.17, 0.02))
    """

    name: str
    pose: Pose = Pose()

    __repr__ = format_spec

    def __post_init__(self) -> None:
        """Reject fields of a wrong type."""
        validate_types(self, f"of link {self.name}")


@dataclass(frozen=True)
class Solid:
    """A surface that rays can hit: full name, full name of its link, and `pose` in the frame of the link."""

    name: str
    link: str
    shape: Shape
    pose: Pose = Pose()
    where: Where | None = None

    __repr__ = format_spec

    def __post_init__(self) -> None:
        """Reject fields of a wrong type."""
        validate_types(self, f"of surface {self.name}", skip=("shape",))


@dataclass(frozen=True)
class Model:
    """A top-level model, which is one rigid body. Its links include those of nested models.

    `pose` is the initial pose of the model frame in the world. `canonical_link` is the full name of the link that
    `motion` moves; a model without a motion is stationary. `actuators` are the parts that could move the model: drive
    plug-ins, thrusters, actuated joints. `where` is its declaration.

    >>> world.model("quadrotor").canonical_link
    'quadrotor::base_link'
    """

    name: str
    links: tuple[Link, ...]
    canonical_link: str
    pose: Pose = Pose()
    static: bool = False
    motion: Motion | None = None
    actuators: tuple[str, ...] = ()
    where: Where | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Reject fields of a wrong type."""
        validate_types(self, f"of model {self.name}", skip=("motion",))

    __repr__, _repr_html_ = format_title, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        kind = "static" if self.static else "no motion" if self.motion is None else type(self.motion).__name__
        title = f"{self.name}: {format_count(len(self.links), 'link')}, {kind}"
        return Summary("Model", title, ("link", "pose in the model"), [(one.name, one.pose) for one in self.links])

    def link(self, name: str) -> Link:
        """Return a link by any unambiguous ending of its name. Raises `UnknownNameError`."""
        return find_by_name(self.links, name, "link")


class Units(Mapping[str, str]):
    """Unit of each array by name, read-only. Unlike a mapping proxy it can be pickled."""

    __slots__ = ("_units",)

    def __init__(self, units: Mapping[str, str]) -> None:
        """Copy the units."""
        self._units = dict(units)

    def __repr__(self) -> str:
        """Return the repr of a dictionary."""
        return repr(self._units)

    def __getitem__(self, name: str) -> str:
        """Return the unit of an array."""
        return self._units[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the arrays."""
        return iter(self._units)

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self._units)


@dataclass(frozen=True)
class MountedSensor:
    """A sensor on a link: specification, mounting, rate, names.

    `rate` is in Hz; a rate of 0 in a file is 1 / max_step_size here. `clock` is the full name of a clock, or None for
    true time. `frame` is the frame in messages (`<frame_id>`, else the full name of the sensor). A sensor that is not
    `is_on` at the start publishes nothing until a live run switches it on.

    >>> world.sensor("imu").rate, world.sensor("imu").clock
    (1000.0, 'quadrotor::base_link::autopilot')
    """

    name: str
    spec: Sensor
    model: str
    link: str
    rate: float
    pose: Pose = Pose()
    topic: str = ""
    frame: str = ""
    clock: str | None = None
    latency: Latency | None = None
    faults: Faults = Faults()
    where: Where | None = None
    is_on: bool = True

    def __post_init__(self) -> None:
        """Reject fields of a wrong type; `World` checks the rate."""
        validate_types(self, f"of sensor {self.name}", skip=("spec", "rate"))

    def __repr__(self) -> str:
        """Return a short description."""
        return f"<MountedSensor {self.name}: {self.spec.type}, {self.rate:g} Hz, clock {self.clock or 'none'}>"

    _repr_html_ = format_spec_html

    @cached_property
    def unit(self) -> Mapping[str, str]:
        """Unit of each array of a reading, by name."""
        return Units({output.name: output.unit for output in self.spec.outputs})


NoteKind = Literal["warning", "unsupported", "foreign"]
"""A value that you probably do not want; an element that has no effect; an element of another program."""


@dataclass(frozen=True)
class Note:
    """A note about a world file with its reason. Warnings that a world derives have the name of `sensor` or `model`.

    >>> note = ns.world.Note("unsupported", "<visual>", "has only a visual effect")
    >>> print(note)
    <visual>: has only a visual effect
    """

    kind: NoteKind
    what: str
    reason: str
    where: Where | None = None
    sensor: str = ""
    model: str = ""

    def __str__(self) -> str:
        """Return one line."""
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}: {self.reason}"


@dataclass(frozen=True)
class LayersTopic:
    """Topic of the current at several depths (m) below `surface` (m, height in the world)."""

    topic: str
    depths: tuple[float, ...]
    surface: float = 0.0


@dataclass(frozen=True)
class CurrentTopic:
    """Topic of the world's current: name, rate (Hz, 0 for no topic), and a fixed position (m).

    `layers` is a topic with the current at several depths above and below the position.
    """

    topic: str = "/hydrodynamics/current_velocity"
    rate: float = 20.0
    position: Vector = (0.0, 0.0, 0.0)
    layers: LayersTopic | None = None

    def __post_init__(self) -> None:
        """Reject a topic without a name, and an invalid rate."""
        for topic in (self.topic, self.layers.topic if self.layers else self.topic):
            if not topic.strip("/"):
                raise SimulationError("topic of the current", topic or '""', allowed="must have a name")
        if self.rate != 0.0:
            check_rate(self.rate, f"rate of {self.topic}")


_MUST_BE_LINK = "must be a link of its model, by its full name"


def _check_unique(kind: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise SimulationError(f"name of a {kind}", duplicate, allowed=f"must be unique among the {kind}s of a world")


def _find_initial_pose(model: Model) -> Pose:
    """Return a pose with the rotation of the model frame at t = 0; without a motion, the pose of the model."""
    if model.motion is not None:
        try:
            w, x, y, z = model.motion.at(np.zeros(1)).rotation_wb[0].tolist()
            return Pose(rotation=(w, x, y, z)) @ model.link(model.canonical_link).pose.inverse()
        except Exception:  # noqa: BLE001  # the motion of a caller may raise anything; a warning must not reject the world
            return model.pose
    return model.pose


def _make_stationary_warning(model: Model) -> Note:
    """Return the warning about a model with actuators and without a motion."""
    first, more = model.actuators[0], len(model.actuators) - 1
    actuators = f"{first} and {more} more" if more else first
    reason = f"stationary, although it has {actuators}; set --motion or <navsense:motion>"
    return Note("warning", f"model {model.name}", reason, model.where, model=model.name)


def make_sensor_warning(world: World) -> Note | None:
    """Return the warning about a world that has nothing to simulate; None if it has a sensor.

    >>> print(ns.world.make_sensor_warning(ns.World("empty")))
    world empty: has no sensor; the file declares none
    """
    if world.sensors:
        return None
    others = sum(note.what.startswith("<sensor type=") for note in world.notes)
    missing = sum(note.kind == "warning" and note.what.startswith("<include><uri>") for note in world.notes)
    reasons = [f"{format_count(others, 'sensor')} of the file not simulated"] if others else []
    reasons += [f"{format_count(missing, 'included model')} missing"] if missing else []
    return Note("warning", f"world {world.name}", f"has no sensor; {', '.join(reasons) or 'the file declares none'}")


@dataclass(frozen=True)
class World:
    """A valid world: every name in it resolves.

    `notes` include the warnings of mounted sensors (`sensors.base.HasWarnings`), and those about models with actuators
    and without a motion. `sources` are the absolute paths of its files; no recording overwrites them.

    >>> world.sensor("compass").topic
    '/world/field/model/quadrotor/model/mast/link/board/sensor/compass/magnetometer'
    >>> world.link("board").name
    'quadrotor::mast::board'
    """

    name: str
    models: tuple[Model, ...] = ()
    sensors: tuple[MountedSensor, ...] = ()
    clocks: tuple[Clock, ...] = ()
    environment: Environment = field(default_factory=Environment)
    max_step_size: float = 0.001
    path: str = ""
    notes: tuple[Note, ...] = ()
    current_topic: CurrentTopic = CurrentTopic()
    solids: tuple[Solid, ...] = ()
    sources: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Reject names that do not resolve, and invalid rates."""
        _check_unique("model", [model.name for model in self.models])
        _check_unique("sensor", [sensor.name for sensor in self.sensors])
        _check_unique("clock", [clock.name for clock in self.clocks])
        _check_unique("link", [link.name for model in self.models for link in model.links])
        clocks = {clock.name for clock in self.clocks}
        links = {(model.name, link.name) for model in self.models for link in model.links}
        for model in self.models:
            if model.links and (model.name, model.canonical_link) not in links:
                raise SimulationError(f"canonical link of {model.name}", model.canonical_link, allowed=_MUST_BE_LINK)
        link_names = {link for _, link in links}
        for solid in self.solids:
            if solid.link not in link_names:
                raise SimulationError(f"link of surface {solid.name}", solid.link, allowed="must be a link of a model")
        for sensor in self.sensors:
            check_rate(sensor.rate, f"rate of sensor {sensor.name}")
            if (sensor.model, sensor.link) not in links:
                raise SimulationError(f"link of sensor {sensor.name}", sensor.link, allowed=_MUST_BE_LINK)
            for name in list_signals(sensor.spec):
                if name not in self.environment.signals:
                    known = ", ".join(self.environment.signals) or "none: the world has no signal"
                    raise SimulationError(
                        f"signal of sensor {sensor.name}",
                        name,
                        allowed=f"must be one of {known}",
                        remedy=f'add <navsense:signal name="{name}"> to the world',
                        where=sensor.where,
                    )
            if sensor.clock is not None and sensor.clock not in clocks:
                allowed = f"must be one of {', '.join(sorted(clocks)) or 'none: the world has no clock'}"
                raise SimulationError(f"clock of sensor {sensor.name}", sensor.clock, allowed=allowed)
        if not 1.0 / MAX_RATE <= self.max_step_size <= 1.0 / MIN_RATE:
            allowed = f"must be from {1.0 / MAX_RATE:g} to {1.0 / MIN_RATE:g} s"
            raise SimulationError("max_step_size", self.max_step_size, allowed=allowed)
        notes = [note for note in self.notes if not (note.sensor or note.model)]
        still = (model for model in self.models if not model.static and model.motion is None and model.actuators)
        notes += map(_make_stationary_warning, still)
        notes += [note for sensor in self.sensors for note in self._list_warnings(sensor)]
        object.__setattr__(self, "notes", tuple(notes))

    def _list_warnings(self, sensor: MountedSensor) -> Iterator[Note]:
        """Yield the warnings of a sensor about its mounting."""
        if isinstance(sensor.spec, HasWarnings):
            rotation = self._find_initial_rotation(sensor)
            for what, reason in sensor.spec.find_warnings(rotation) if rotation else ():
                yield Note("warning", f"sensor {sensor.name}: {what}", reason, sensor.where, sensor.name)

    def _find_initial_rotation(self, sensor: MountedSensor) -> Quaternion | None:
        """Return the initial rotation, sensor to world; None for an invalid pose."""
        model = self.model(sensor.model)
        try:
            return (_find_initial_pose(model) @ (model.link(sensor.link).pose @ sensor.pose)).rotation
        except (AttributeError, TypeError, ValueError):
            return None

    __repr__, _repr_html_ = format_summary, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        counts = (
            format_count(len(parts), noun)
            for parts, noun in ((self.models, "model"), (self.sensors, "sensor"), (self.clocks, "clock"))
        )
        header = ("sensor", "type", "rate", "clock")
        rows = [(one.name, one.spec.type, f"{one.rate:g} Hz", get_short_name(one.clock or "")) for one in self.sensors]
        return Summary("World", f"{self.name}: {', '.join(counts)}", header, rows)

    def model(self, name: str) -> Model:
        """Return a top-level model by name. Raises `UnknownNameError`."""
        return find_by_name(self.models, name, "model")

    def link(self, name: str) -> Link:
        """Return a link by any unambiguous ending of its name. A model's name refers to its canonical link.

        Raises `UnknownNameError`.
        """
        links = {link.name: link for model in self.models for link in model.links}
        canonical = {model.name: model.canonical_link for model in self.models if model.links}
        full = resolve_name(name, (*links, *canonical), "link")
        return links[canonical.get(full, full)]

    def sensor(self, name: str) -> MountedSensor:
        """Return a sensor by any unambiguous ending of its name. Raises `UnknownNameError`."""
        return find_by_name(self.sensors, name, "sensor")

    def clock(self, name: str) -> Clock:
        """Return a clock by any unambiguous ending of its name. Raises `UnknownNameError`."""
        return find_by_name(self.clocks, name, "clock")

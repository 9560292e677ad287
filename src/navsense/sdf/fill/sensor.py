"""`<sensor>`: mounting, rate, topic, frame and clock, whatever its type; the block of its type goes to its own file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Protocol

from navsense.environment.water import Water
from navsense.geodesy import Origin
from navsense.pose import Pose, multiply, normalised
from navsense.sdf.context import Context, Place
from navsense.sdf.fill import range_plugin, subsea_pressure
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill._posed import pose_in_link
from navsense.sdf.fill.clock import Clocks
from navsense.sdf.fill.faults import faults_of
from navsense.sdf.fill.fields import number_of
from navsense.sdf.fill.latency import latency_of
from navsense.sdf.fill.model import Filled
from navsense.sdf.fill.part import with_part
from navsense.sdf.fill.range import scanner
from navsense.sdf.fill.world import DEFAULT_STEP, classic_of
from navsense.sdf.frames import Node, Scope
from navsense.sdf.names import checked_name, default_topic, full_name, valid_topic
from navsense.sdf.places import (
    LEAF,
    LEGACY,
    NOT_SIMULATED,
    OTHER_SENSORS,
    SUBSEA_PRESSURE,
    older,
    sensor_place,
)
from navsense.sdf.read import Element
from navsense.sdf.values import refusal
from navsense.sensors import SENSORS
from navsense.sensors.base import Sensor
from navsense.sensors.depth import Depth
from navsense.sensors.range import Range
from navsense.ticks import FASTEST, SLOWEST, rate_of_step
from navsense.typing import Quaternion
from navsense.world import MountedSensor

Fill = Callable[[Context, Element | None, Mount], Sensor]
"""What makes a data sheet of the block of a sensor's type: (context, block or None, mount)."""


class OwnSensor(Sensor, Protocol):
    """A sensor of a user's own: it brings its `fill` with it."""

    @staticmethod
    def fill(context: Context, block: Element | None, mount: Mount) -> Sensor:
        """Return the data sheet that the block of this sensor's type describes."""
        ...


FILLS: Mapping[str, Fill] = {kind.type: import_module(f"navsense.sdf.fill.{kind.type}").fill for kind in SENSORS}
"""Sensor type -> `fill` of the file named after it."""

PLACES: Mapping[str, Place] = {kind: sensor_place(kind) for kind in FILLS}

_DEPTH, _DEPTH_CAMERA = "depth", "depth_camera"
"""A sensor of navsense's, and a camera of Gazebo's that had the same name before it had this one."""

_FRAME_TAGS = ("frame_id", "gz_frame_id", "ignition_frame_id")


@dataclass
class Sensors:
    """Reader of the sensors of one world: what they share, and the topics that are taken."""

    context: Context
    world: str
    classic: bool
    origin: Origin | None
    max_step_size: float
    clocks: Clocks
    fills: Mapping[str, Fill] = field(default_factory=lambda: FILLS)
    topics: dict[str, str] = field(default_factory=dict)
    water: Water | None = None

    def of(self, filled: Filled) -> Iterator[MountedSensor]:
        """Yield the sensors of a model that are simulated; list the others."""
        for scope, link in filled.links():
            seen: dict[str, Element] = {}
            for element in link.element.all("sensor"):
                made = None
                with self.context.collecting():
                    _check_unique(element, seen)
                    made = self._sensor(filled, scope, link, element)
                if made is not None:
                    yield made
        for scope in filled.scopes:
            for element in scope.element.all("plugin"):
                made = None
                if element.attribute("filename") == SUBSEA_PRESSURE:
                    with self.context.collecting():
                        made = self._plugged(filled, scope, element)
                if made is not None:
                    yield made

    def _plugged(self, filled: Filled, scope: Scope, element: Element) -> MountedSensor:
        """Return the sensor that a plug-in of a model is."""
        plugged = subsea_pressure.place(self.context, element)
        link = f"{scope.node.name}::{plugged.link}"
        links = {one.name: one for _, one in filled.links()}
        if link not in links:
            known = ", ".join(name.removeprefix(f"{scope.node.name}::") for name in links)
            child = element.first("link_name") or element
            raise refusal(child, plugged.link, f"must be one of {known}", parent=element.tag)
        name = full_name(element, link, checked_name(element))
        rotation = normalised(multiply(filled.model.pose.rotation, filled.poses.of(links[link]).rotation))
        mount = self._mount(filled, scope, element, name, rotation)
        topic = plugged.topic or default_topic(
            self.world, tuple(link.split("::")[:-1]), link=plugged.link, sensor=checked_name(element), kind=Depth.type
        )
        if topic in self.topics:
            raise refusal(element, topic, f"is taken by {self.topics[topic]}", remedy="give another <sensor_topic>")
        self.topics[topic] = name
        return MountedSensor(
            name=name,
            spec=subsea_pressure.fill(self.context, element, mount),
            model=filled.model.name,
            link=link,
            rate=self._rate(element, subsea_pressure.DEFAULT_RATE),
            topic=topic,
            frame=plugged.link,
            where=element.where,
        )

    def _mount(self, filled: Filled, scope: Scope, element: Element, name: str, rotation_ws: Quaternion) -> Mount:
        """Return what a sensor's sheet may depend on besides its own element."""
        return Mount(
            classic=classic_of(self.context, element, default=self.classic),
            heading=self.origin.heading if self.origin else 0.0,
            rotation_ws=rotation_ws,
            moved=filled.model.motion is not None,
            origin=self.origin,
            water=self.water,
            name=name,
            where=element.where,
            rotation_of=partial(_rotation_of, filled, scope),
        )

    def _sensor(self, filled: Filled, scope: Scope, link: Node, element: Element) -> MountedSensor | None:
        name, kind = full_name(element, link.name, checked_name(element)), self._kind(element)
        if kind not in self.fills:
            self.context.note("unsupported", f'<sensor type="{kind}">: {name}', NOT_SIMULATED, element.where)
            self.context.note_plugins(element)
            return None
        whole = element
        if kind == Range.type:
            beam = self._beam(element, name)
            if beam is None:
                return None
            element = beam
        self.context.check(element, PLACES.get(kind) or sensor_place(kind))
        pose = Pose()
        with self.context.collecting():
            pose = pose_in_link(self.context, filled, scope, link, element)
        rotation_wl = multiply(filled.model.pose.rotation, filled.poses.of(link).rotation)
        mount = self._mount(filled, scope, element, name, normalised(multiply(rotation_wl, pose.rotation)))
        spec = self.fills[kind](self.context, self._block(element, kind), mount)
        if isinstance(spec, Range):
            range_plugin.tell_of_view(self.context, whole, spec.beam.width)
        return MountedSensor(
            name=name,
            spec=with_part(self.context, element, spec, classic=mount.classic),
            model=filled.model.name,
            link=link.name,
            rate=self._rate(element),
            pose=pose,
            topic=self._topic(element, link, name, kind),
            frame=self._frame(element) or name,
            clock=self.clocks.named_by(self.context, element, name, scope),
            latency=latency_of(self.context, element),
            faults=faults_of(self.context, element),
            where=element.where,
        )

    def _beam(self, element: Element, name: str) -> Element | None:
        """Return a range sensor as its plug-in, if any, has it; list a scanner, which is none, and return None."""
        found = range_plugin.rewritten(self.context, element)
        reason = scanner(element) if found is element else ""
        if not reason:
            return found
        self.context.note("unsupported", f'<sensor type="{element.attribute("type")}">: {name}', reason, element.where)
        self.context.note_plugins(element)
        return None

    def _block(self, element: Element, kind: str) -> Element | None:
        """Return the block of a sensor's type, which may stand there under another name."""
        found = [child for tag in (kind, *older(kind)) if (child := element.first(tag)) is not None]
        for other in found[1:]:
            self.context.problem(refusal(other, "given beside it", f"is the older name of <{kind}>; keep one of them"))
        return found[0] if found else None

    def _kind(self, element: Element) -> str:
        """Return the sensor's type; for a custom one the type that Gazebo's attribute gives, where it is known."""
        kind = element.attribute("type")
        if kind == "custom":
            own = element.attribute("gz:type") or element.attribute("ignition:type")
            kind = own if own in self.fills else kind
        if kind not in self.fills:
            kind = LEGACY.get(kind or "", kind)
        if kind == _DEPTH and element.first("camera") is not None:
            kind = _DEPTH_CAMERA
        if kind is not None and (kind in self.fills or kind in OTHER_SENSORS):
            return kind
        allowed = f"must be one of {', '.join(self.fills)}, which are simulated, or another type that SDF has"
        remedy = "for a sensor of your own: navsense.load(..., sensors=[CLASS]), see docs/adding-a-sensor.md"
        raise refusal(element, kind or "missing", allowed, attribute="type", remedy=remedy)

    def _rate(self, element: Element, default: float = 0.0) -> float:
        """Return the rate (Hz), which where the file has 0 is that of the physics."""
        child = element.first("update_rate")
        rate = number_of(self.context, element, "update_rate", default, least=0.0)
        resolved = rate or rate_of_step(self.max_step_size)
        if not SLOWEST <= resolved <= FASTEST:
            allowed = f"must be from {SLOWEST:g} to {FASTEST:.0f} Hz"
            self.context.problem(refusal(child or element, f"{resolved:g} Hz", allowed, parent=element.tag))
            return rate_of_step(DEFAULT_STEP)
        return resolved

    def _topic(self, element: Element, link: Node, name: str, kind: str) -> str:
        """Return the given topic, or where there is none or it is taken the default one."""
        models = tuple(link.name.split("::")[:-1])
        sensor = name.rpartition("::")[2]
        default = valid_topic(
            default_topic(self.world, models, sensor=sensor, link=link.name.rpartition("::")[2], kind=kind)
        )
        child = element.first("topic")
        given = None
        if child is not None:
            self.context.check(child, LEAF)
            if child.text and child.text != "__default__":
                given = valid_topic(child.text)
                if given is None:
                    allowed = "must hold more than @ ~ // and :="
                    self.context.problem(refusal(child, child.text, allowed, parent="sensor"))
        if given in self.topics and child is not None:
            reason = f"is taken by {self.topics[given]}; the default {default} is used"
            self.context.note("warning", f"<topic>: {given}", reason, child.where)
            given = None
        topic = given or default
        if topic is None or topic in self.topics:
            taken = f"is taken by {self.topics[topic]}" if topic else "is no topic"
            remedy = "give the sensor a <topic> of its own"
            self.context.problem(refusal(element, topic or name, taken, remedy=remedy))
            return ""
        self.topics[topic] = name
        return topic

    def _frame(self, element: Element) -> str:
        """Return the frame that messages carry, empty where the file gives none."""
        found = ""
        for tag in _FRAME_TAGS:
            child = element.first(tag)
            if child is None:
                continue
            self.context.check(child, LEAF)
            found = found or child.text
            if tag != "frame_id":
                self.context.note("warning", f"<sensor><{tag}>", "is read as frame_id of SDF 1.12", child.where)
        return found


def _rotation_of(filled: Filled, scope: Scope, name: str) -> Quaternion | None:
    """Return how a link of the model stands in the world, by its name in a scope or its full name."""
    links = {link.name: link for _, link in filled.links()}
    link = links.get(f"{scope.node.name}::{name}") or links.get(name)
    return None if link is None else normalised(multiply(filled.model.pose.rotation, filled.poses.of(link).rotation))


def _check_unique(element: Element, seen: dict[str, Element]) -> None:
    name = checked_name(element)
    before = seen.setdefault(name, element)
    if before is not element:
        allowed = "must be unique among the sensors of its link"
        raise refusal(element, name, allowed, attribute="name", remedy=f"first on line {before.line}; rename one")

"""`<sensor>`: mounting, rate, topic, frame and clock, whatever its type; the block of its type goes to its own file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Protocol

from navsense.environment.water import Water
from navsense.geodesy import Origin
from navsense.pose import Pose, multiply, normalised
from navsense.sdf.context import Context, Place
from navsense.sdf.fill import range_plugin, subsea_pressure
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill._plugged import DEFAULT_RATE, Described, Reader, place
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
    DSROS_DVL_SENSOR,
    FOREIGN,
    LEAF,
    LEGACY,
    NOT_SIMULATED,
    OTHER_SENSORS,
    SUBSEA_PRESSURE,
    SUBSEA_PRESSURE_PLUGIN,
    TOPICS,
    UUV_DVL,
    UUV_DVL_PLUGIN,
    WOODS_HOLE,
    older,
    sensor_place,
)
from navsense.sdf.plugins import dsros_dvl, uuv_dvl
from navsense.sdf.read import Element
from navsense.sdf.values import refusal
from navsense.sensors import SENSORS
from navsense.sensors.base import Sensor
from navsense.sensors.depth import Depth
from navsense.sensors.dvl import Dvl
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

PLUGGED: Mapping[str, Reader] = {
    SUBSEA_PRESSURE: Reader(
        SUBSEA_PRESSURE_PLUGIN,
        Depth.type,
        lambda context, element, mount, _: Described(subsea_pressure.fill(context, element, mount)),
    ),
    UUV_DVL: Reader(UUV_DVL_PLUGIN, Dvl.type, uuv_dvl.fill),
}
"""File of a plug-in of a model that is a sensor -> what reads it."""

PLACES: Mapping[str, Place] = {kind: sensor_place(kind) for kind in FILLS}

_DEPTH, _DEPTH_CAMERA = "depth", "depth_camera"
"""A sensor of navsense's, and a camera of Gazebo's that had the same name before it had this one."""

_FRAME_TAGS = ("frame_id", "gz_frame_id", "ignition_frame_id")


@dataclass
class Sensors:
    """Reader of the sensors of one world: what they share, the topics that are taken, and that of the current."""

    context: Context
    world: str
    classic: bool
    origin: Origin | None
    max_step_size: float
    clocks: Clocks
    fills: Mapping[str, Fill] = field(default_factory=lambda: FILLS)
    topics: dict[str, str] = field(default_factory=dict)
    water: Water | None = None
    current: str = ""

    def of(self, filled: Filled) -> Iterator[MountedSensor]:
        """Yield the sensors of a model that are simulated; list the others."""
        found: list[MountedSensor] = []
        for scope, link in filled.links():
            seen: dict[str, Element] = {}
            for element in link.element.all("sensor"):
                with self.context.collecting():
                    _check_unique(element, seen)
                    found += self._sensors(filled, scope, link, element)
        for scope in filled.scopes:
            for element in scope.element.all("plugin"):
                reader, made = PLUGGED.get(element.attribute("filename") or ""), None
                if reader is not None:
                    with self.context.collecting():
                        made = self._plugged(filled, scope, element, reader, found)
                found += [] if made is None else [made]
        yield from found

    def _plugged(
        self, filled: Filled, scope: Scope, element: Element, reader: Reader, others: Sequence[MountedSensor]
    ) -> MountedSensor | None:
        """Return the sensor that a plug-in of a model is; None for one that is none."""
        plugged = place(self.context, element, reader.place)
        link = f"{scope.node.name}::{plugged.link}"
        links = {one.name: one for _, one in filled.links()}
        if link not in links:
            known = ", ".join(name.removeprefix(f"{scope.node.name}::") for name in links)
            child = element.first("link_name") or element
            raise refusal(child, plugged.link, f"must be one of {known}", parent=element.tag)
        name = full_name(element, link, checked_name(element))
        mount = self._mount(filled, scope, element, name, links[link], Pose())
        told = reader.fill(self.context, element, mount, others)
        if told is None:
            return None
        own = checked_name(element)
        models = tuple(link.split("::")[:-1])
        topic = plugged.topic or default_topic(self.world, models, link=plugged.link, sensor=own, kind=reader.kind)
        return MountedSensor(
            name=name,
            spec=told.spec,
            model=filled.model.name,
            link=link,
            rate=self._rate(element, DEFAULT_RATE),
            topic=self._taken(element, topic, name, "sensor_topic"),
            frame=plugged.link + told.suffix,
            where=element.where,
            is_on=told.is_on,
        )

    def _taken(self, element: Element, topic: str, name: str, tag: str) -> str:
        """Return a topic that nothing else has. Raise `SdfError` where something has."""
        if topic in self.topics:
            raise refusal(element, topic, f"is taken by {self.topics[topic]}", remedy=f"give another <{tag}>")
        self.topics[topic] = name
        return topic

    def _woods_hole(self, filled: Filled, scope: Scope, link: Node, element: Element, name: str) -> list[MountedSensor]:
        """Return the sensors that a plug-in describes; none where it holds what cannot be, which is then a problem."""
        self.context.check(element, DSROS_DVL_SENSOR)
        plugin = dsros_dvl.plugin_of(self.context, element)
        pose = pose_in_link(self.context, filled, scope, link, element)
        mount = self._mount(filled, scope, element, name, link, pose)
        plugged = dsros_dvl.fill(self.context, element, plugin, mount, self.current)
        if plugged is None:
            return []
        own, rate = self._rate(element), self._rate(plugin, dsros_dvl.DEFAULT_RATE, "updateRateHZ")
        dvl = MountedSensor(
            name=name,
            spec=with_part(self.context, element, plugged.sheet, classic=mount.classic),
            model=filled.model.name,
            link=link.name,
            rate=dsros_dvl.rated(self.context, element, plugin, own, rate),
            pose=pose,
            topic=self._taken(plugin, plugged.topic, name, "topicName"),
            frame=plugged.frame,
            clock=self.clocks.named_by(self.context, element, name, scope),
            latency=latency_of(self.context, element),
            faults=faults_of(self.context, element, plugged.sheet),
            where=element.where,
        )
        if plugged.profile is None:
            return [dvl]
        beside = name + dsros_dvl.CURRENT
        topic = self._taken(plugin, plugged.topic + dsros_dvl.CURRENT, beside, "topicName")
        return [dvl, replace(dvl, name=beside, spec=plugged.profile, topic=topic)]

    def _mount(self, filled: Filled, scope: Scope, element: Element, name: str, link: Node, pose: Pose) -> Mount:
        """Return what a sensor's sheet may depend on besides its own element; `pose` is the sensor's in its link."""
        in_model = filled.poses.of(link)
        rotation_wl = multiply(filled.model.pose.rotation, in_model.rotation)
        return Mount(
            classic=classic_of(self.context, element, default=self.classic),
            heading=self.origin.heading if self.origin else 0.0,
            rotation_ws=normalised(multiply(rotation_wl, pose.rotation)),
            moved=filled.model.motion is not None,
            origin=self.origin,
            water=self.water,
            name=name,
            where=element.where,
            rotation_of=partial(_rotation_of, filled, scope),
            pose_of=partial(_pose_of, filled, scope, in_model @ pose),
        )

    def _sensors(self, filled: Filled, scope: Scope, link: Node, element: Element) -> list[MountedSensor]:
        """Return the sensors that an element describes: none where it is listed only, several where it is several."""
        name, kind = full_name(element, link.name, checked_name(element)), self._kind(element)
        if kind == WOODS_HOLE and kind not in self.fills:
            return self._woods_hole(filled, scope, link, element, name)
        made = self._sensor(filled, scope, link, element, name, kind)
        return [] if made is None else [made]

    def _sensor(
        self, filled: Filled, scope: Scope, link: Node, element: Element, name: str, kind: str
    ) -> MountedSensor | None:
        """Return a sensor of a type that is simulated; list another one."""
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
        mount = self._mount(filled, scope, element, name, link, pose)
        spec = self.fills[kind](self.context, self._block(element, kind), mount)
        if isinstance(spec, Range):
            range_plugin.tell_of_view(self.context, whole, spec.beam.width)
            spec = replace(spec, ros_plugin=range_plugin.is_published(whole), classic=mount.classic)
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
            faults=faults_of(self.context, element, spec),
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
            self.context.problem(refusal(other, "given beside it", f"is another name of <{kind}>; keep one of them"))
        if not found and element.attribute("type") == "custom" and kind in FOREIGN.values():
            blocks = ", ".join(f"<{tag}>" for tag, new in FOREIGN.items() if new == kind)
            remedy = f'write <sensor type="{kind}"> for what is navsense\'s own'
            self.context.problem(refusal(element, "no block", f"must have {blocks}, as Gazebo wants it", remedy=remedy))
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
        if kind is not None and (kind in self.fills or kind in OTHER_SENSORS or kind == WOODS_HOLE):
            return kind
        allowed = f"must be one of {', '.join(self.fills)}, which are simulated, or another type that SDF has"
        remedy = "for a sensor of your own: navsense.load(..., sensors=[CLASS]), see docs/adding-a-sensor.md"
        raise refusal(element, kind or "missing", allowed, attribute="type", remedy=remedy)

    def _rate(self, element: Element, default: float = 0.0, tag: str = "update_rate") -> float:
        """Return the rate (Hz), which where the file has 0 is that of the physics."""
        child = element.first(tag)
        rate = number_of(self.context, element, tag, default, least=0.0)
        resolved = rate or rate_of_step(self.max_step_size)
        if not SLOWEST <= resolved <= FASTEST:
            allowed = f"must be from {SLOWEST:g} to {FASTEST:.0f} Hz"
            self.context.problem(refusal(child or element, f"{resolved:g} Hz", allowed, parent=element.tag))
            return rate_of_step(DEFAULT_STEP)
        return resolved

    def _topic(self, element: Element, link: Node, name: str, kind: str) -> str:
        """Return the given topic, or where there is none or it is taken the default one."""
        models = tuple(link.name.split("::")[:-1])
        told = (element.attribute("type") or "", *(child.tag for child in element.children if child.tag in FOREIGN))
        sensor, last = name.rpartition("::")[2], next((TOPICS[one] for one in told if one in TOPICS), kind)
        default = valid_topic(
            default_topic(self.world, models, sensor=sensor, link=link.name.rpartition("::")[2], kind=last)
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


def _link_of(filled: Filled, scope: Scope, name: str) -> Node | None:
    """Return a link of the model, by its name in a scope or its full name."""
    links = {link.name: link for _, link in filled.links()}
    return links.get(f"{scope.node.name}::{name}") or links.get(name)


def _rotation_of(filled: Filled, scope: Scope, name: str) -> Quaternion | None:
    """Return how a link of the model stands in the world."""
    link = _link_of(filled, scope, name)
    return None if link is None else normalised(multiply(filled.model.pose.rotation, filled.poses.of(link).rotation))


def _pose_of(filled: Filled, scope: Scope, sensor: Pose, name: str) -> Pose | None:
    """Return the pose of a link of the model in the frame of a sensor, whose own pose in the model is given."""
    link = _link_of(filled, scope, name)
    return None if link is None else sensor.inverse() @ filled.poses.of(link)


def _check_unique(element: Element, seen: dict[str, Element]) -> None:
    name = checked_name(element)
    before = seen.setdefault(name, element)
    if before is not element:
        allowed = "must be unique among the sensors of its link"
        raise refusal(element, name, allowed, attribute="name", remedy=f"first on line {before.line}; rename one")

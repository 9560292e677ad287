"""`<sensor>`: mounting, rate, topic, frame and clock. Each sensor type has its own parser for its block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Protocol

from navsense.core.geodesy import Origin
from navsense.core.pose import Pose, multiply, normalize
from navsense.core.ticks import MAX_RATE, MIN_RATE, step_to_rate
from navsense.core.typing import Quaternion
from navsense.environment.water import Water
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.frames import FrameNode, Scope
from navsense.sdf.names import join_names, make_default_topic, normalize_topic, parse_name
from navsense.sdf.parse import range_plugin, subsea_pressure
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.clock import ClockRegistry, parse_latency
from navsense.sdf.parse.faults import parse_faults
from navsense.sdf.parse.link_pose import find_pose_in_link
from navsense.sdf.parse.model import ParsedModel
from navsense.sdf.parse.mount import Mount
from navsense.sdf.parse.part import apply_part
from navsense.sdf.parse.plugin_sensor import DEFAULT_RATE, PluginParser, PluginSensor, parse_placement
from navsense.sdf.parse.range import explain_scanner
from navsense.sdf.parse.world import DEFAULT_STEP, parse_classic
from navsense.sdf.plugins import dsros_dvl, uuv_dvl
from navsense.sdf.schema import (
    DEFAULT_TOPIC_ENDINGS,
    DSROS_DVL_SENSOR,
    DSROS_DVL_TYPE,
    FRAME_ID_TAGS,
    GAZEBO_BLOCKS,
    LEAF,
    NOT_SIMULATED,
    SUBSEA_PRESSURE_FILE,
    SUBSEA_PRESSURE_PLUGIN,
    TYPE_ALIASES,
    UNSIMULATED_TYPES,
    UUV_DVL_FILE,
    UUV_DVL_PLUGIN,
    list_aliases,
    make_sensor_schema,
)
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element
from navsense.sensors import SENSORS
from navsense.sensors.base import Sensor
from navsense.sensors.depth import Depth
from navsense.sensors.dvl import Dvl
from navsense.sensors.range import Range
from navsense.world import MountedSensor

BlockParser = Callable[[Context, Element | None, Mount], Sensor]
"""Returns the specification from the block of a sensor type: (context, block or None, mount)."""


class SupportsSdf(Sensor, Protocol):
    """A sensor of a user, with its own parser."""

    @staticmethod
    def parse(context: Context, block: Element | None, mount: Mount) -> Sensor:
        """Return the specification of the block of this sensor type."""
        ...


SENSOR_PARSERS: Mapping[str, BlockParser] = {
    kind.type: import_module(f"navsense.sdf.parse.{kind.type}").parse for kind in SENSORS
}
"""Sensor type -> parser."""

PLUGIN_PARSERS: Mapping[str, PluginParser] = {
    SUBSEA_PRESSURE_FILE: PluginParser(
        SUBSEA_PRESSURE_PLUGIN,
        Depth.type,
        lambda context, element, mount, _: PluginSensor(subsea_pressure.parse(context, element, mount)),
    ),
    UUV_DVL_FILE: PluginParser(UUV_DVL_PLUGIN, Dvl.type, uuv_dvl.parse),
}
"""File of a plug-in that is a sensor -> parser."""

SENSOR_SCHEMAS: Mapping[str, ElementSchema] = {kind: make_sensor_schema(kind) for kind in SENSOR_PARSERS}

_DEPTH_TYPE, _DEPTH_CAMERA_TYPE = "depth", "depth_camera"
"""Types that are both a sensor of navsense and an older camera of Gazebo."""


@dataclass
class SensorParser:
    """Parses the sensors of one world, and checks that their topics differ."""

    context: Context
    world: str
    classic: bool
    origin: Origin | None
    max_step_size: float
    clocks: ClockRegistry
    parsers: Mapping[str, BlockParser] = field(default_factory=lambda: SENSOR_PARSERS)
    taken_topics: dict[str, str] = field(default_factory=dict)
    water: Water | None = None
    current_topic: str = ""

    def parse_sensors(self, parsed: ParsedModel) -> Iterator[MountedSensor]:
        """Yield the simulated sensors of a model; the others are listed as notes."""
        found: list[MountedSensor] = []
        for scope, link in parsed.list_links():
            seen: dict[str, Element] = {}
            for element in link.element.find_all("sensor"):
                with self.context.collect_errors():
                    _check_unique(element, seen)
                    found += self._parse_element(parsed, scope, link, element)
        for scope in parsed.scopes:
            for element in scope.element.find_all("plugin"):
                reader, made = PLUGIN_PARSERS.get(element.get_attribute("filename") or ""), None
                if reader is not None:
                    with self.context.collect_errors():
                        made = self._parse_plugin(parsed, scope, element, reader, found)
                found += [] if made is None else [made]
        yield from found

    def _parse_plugin(
        self, parsed: ParsedModel, scope: Scope, element: Element, reader: PluginParser, others: Sequence[MountedSensor]
    ) -> MountedSensor | None:
        """Return the sensor of a plug-in of a model; None if the plug-in is not a sensor."""
        plugged = parse_placement(self.context, element, reader.schema)
        link = f"{scope.frame.name}::{plugged.link}"
        links = {one.name: one for _, one in parsed.list_links()}
        if link not in links:
            known = ", ".join(name.removeprefix(f"{scope.frame.name}::") for name in links)
            child = element.find("link_name") or element
            raise invalid_value(child, plugged.link, f"must be one of {known}", parent=element.tag)
        name = join_names(element, link, parse_name(element))
        mount = self._make_mount(parsed, scope, element, name, links[link], Pose())
        plugin_sensor = reader.parse(self.context, element, mount, others)
        if plugin_sensor is None:
            return None
        own = parse_name(element)
        models = tuple(link.split("::")[:-1])
        topic = plugged.topic or make_default_topic(
            self.world, models, link=plugged.link, sensor=own, ending=reader.sensor_type
        )
        return MountedSensor(
            name=name,
            spec=plugin_sensor.spec,
            model=parsed.model.name,
            link=link,
            rate=self._parse_rate(element, DEFAULT_RATE),
            topic=self._claim_topic(element, topic, name, "sensor_topic"),
            frame=plugged.link + plugin_sensor.frame_suffix,
            where=element.where,
            is_on=plugin_sensor.is_on,
        )

    def _claim_topic(self, element: Element, topic: str, name: str, tag: str) -> str:
        """Return a topic and reserve it. Raises `SdfError` for a topic that is already used."""
        if topic in self.taken_topics:
            raise invalid_value(
                element, topic, f"is already the topic of {self.taken_topics[topic]}", remedy=f"give another <{tag}>"
            )
        self.taken_topics[topic] = name
        return topic

    def _parse_dsros_dvl(
        self, parsed: ParsedModel, scope: Scope, link: FrameNode, element: Element, name: str
    ) -> list[MountedSensor]:
        """Return the sensors of a plug-in; an invalid plug-in gives none and a problem."""
        self.context.check(element, DSROS_DVL_SENSOR)
        plugin = dsros_dvl.find_plugin(self.context, element)
        pose = find_pose_in_link(self.context, parsed, scope, link, element)
        mount = self._make_mount(parsed, scope, element, name, link, pose)
        plugged = dsros_dvl.parse(self.context, element, plugin, mount, self.current_topic)
        if plugged is None:
            return []
        own, rate = self._parse_rate(element), self._parse_rate(plugin, dsros_dvl.DEFAULT_RATE, "updateRateHZ")
        dvl = MountedSensor(
            name=name,
            spec=apply_part(self.context, element, plugged.spec, classic=mount.classic),
            model=parsed.model.name,
            link=link.name,
            rate=dsros_dvl.choose_rate(self.context, element, plugin, own, rate),
            pose=pose,
            topic=self._claim_topic(plugin, plugged.topic, name, "topicName"),
            frame=plugged.frame,
            clock=self.clocks.find_clock_name(self.context, element, name, scope),
            latency=parse_latency(self.context, element),
            faults=parse_faults(self.context, element, plugged.spec),
            where=element.where,
        )
        if plugged.profiler is None:
            return [dvl]
        profiler_name = name + dsros_dvl.PROFILER_SUFFIX
        topic = self._claim_topic(plugin, plugged.topic + dsros_dvl.PROFILER_SUFFIX, profiler_name, "topicName")
        return [dvl, replace(dvl, name=profiler_name, spec=plugged.profiler, topic=topic)]

    def _make_mount(
        self, parsed: ParsedModel, scope: Scope, element: Element, name: str, link: FrameNode, pose: Pose
    ) -> Mount:
        """Return the place of a sensor; `pose` is its pose in its link."""
        in_model = parsed.poses.find_pose(link)
        rotation_wl = multiply(parsed.model.pose.rotation, in_model.rotation)
        return Mount(
            classic=parse_classic(self.context, element, default=self.classic),
            heading=self.origin.heading if self.origin else 0.0,
            rotation_ws=normalize(multiply(rotation_wl, pose.rotation)),
            is_moving=parsed.model.motion is not None,
            origin=self.origin,
            water=self.water,
            name=name,
            where=element.where,
            find_rotation=partial(_find_rotation, parsed, scope),
            find_pose=partial(_find_pose, parsed, scope, in_model @ pose),
        )

    def _parse_element(
        self, parsed: ParsedModel, scope: Scope, link: FrameNode, element: Element
    ) -> list[MountedSensor]:
        """Return the sensors of an element: none for an unsupported type, several for some plug-ins."""
        name, kind = join_names(element, link.name, parse_name(element)), self._parse_type(element)
        if kind == DSROS_DVL_TYPE and kind not in self.parsers:
            return self._parse_dsros_dvl(parsed, scope, link, element, name)
        made = self._parse_sensor(parsed, scope, link, element, name, kind)
        return [] if made is None else [made]

    def _parse_sensor(
        self, parsed: ParsedModel, scope: Scope, link: FrameNode, element: Element, name: str, kind: str
    ) -> MountedSensor | None:
        """Return a sensor of a simulated type; other types give None and a note."""
        if kind not in self.parsers:
            self.context.add_note("unsupported", f'<sensor type="{kind}">: {name}', NOT_SIMULATED, element.where)
            self.context.note_plugins(element)
            return None
        whole = element
        if kind == Range.type:
            beam = self._apply_range_plugin(element, name)
            if beam is None:
                return None
            element = beam
        self.context.check(element, SENSOR_SCHEMAS.get(kind) or make_sensor_schema(kind))
        pose = Pose()
        with self.context.collect_errors():
            pose = find_pose_in_link(self.context, parsed, scope, link, element)
        mount = self._make_mount(parsed, scope, element, name, link, pose)
        spec = self.parsers[kind](self.context, self._find_block(element, kind), mount)
        if isinstance(spec, Range):
            range_plugin.check_field_of_view(self.context, whole, spec.beam.width)
            spec = replace(spec, ros_plugin=range_plugin.has_range_plugin(whole), classic=mount.classic)
        return MountedSensor(
            name=name,
            spec=apply_part(self.context, element, spec, classic=mount.classic),
            model=parsed.model.name,
            link=link.name,
            rate=self._parse_rate(element),
            pose=pose,
            topic=self._parse_topic(element, link, name, kind),
            frame=self._parse_frame(element) or name,
            clock=self.clocks.find_clock_name(self.context, element, name, scope),
            latency=parse_latency(self.context, element),
            faults=parse_faults(self.context, element, spec),
            where=element.where,
        )

    def _apply_range_plugin(self, element: Element, name: str) -> Element | None:
        """Return a range sensor with the values of its plug-in; a scanner gives None and a note."""
        found = range_plugin.apply_plugin(self.context, element)
        reason = explain_scanner(element) if found is element else ""
        if not reason:
            return found
        self.context.add_note(
            "unsupported", f'<sensor type="{element.get_attribute("type")}">: {name}', reason, element.where
        )
        self.context.note_plugins(element)
        return None

    def _find_block(self, element: Element, kind: str) -> Element | None:
        """Return the block of a sensor's type, which may have another name."""
        found = [child for tag in (kind, *list_aliases(kind)) if (child := element.find(tag)) is not None]
        for other in found[1:]:
            self.context.add_problem(
                invalid_value(other, "is duplicated", f"is another name of <{kind}>; remove one of them")
            )
        if not found and element.get_attribute("type") == "custom" and kind in GAZEBO_BLOCKS.values():
            blocks = ", ".join(f"<{tag}>" for tag, new in GAZEBO_BLOCKS.items() if new == kind)
            remedy = f'write <sensor type="{kind}"> for what is navsense\'s own'
            self.context.add_problem(
                invalid_value(element, "no block", f"requires {blocks}, as in Gazebo", remedy=remedy)
            )
        return found[0] if found else None

    def _parse_type(self, element: Element) -> str:
        """Return the type of a sensor; for a custom sensor that of Gazebo's attribute, if it is known."""
        kind = element.get_attribute("type")
        if kind == "custom":
            own = element.get_attribute("gz:type") or element.get_attribute("ignition:type")
            kind = own if own in self.parsers else kind
        if kind not in self.parsers:
            kind = TYPE_ALIASES.get(kind or "", kind)
        if kind == _DEPTH_TYPE and element.find("camera") is not None:
            kind = _DEPTH_CAMERA_TYPE
        if kind is not None and (kind in self.parsers or kind in UNSIMULATED_TYPES or kind == DSROS_DVL_TYPE):
            return kind
        allowed = f"must be one of {', '.join(self.parsers)}, which are simulated, or another type of SDF"
        remedy = "for a sensor of your own: navsense.load(..., sensors=[CLASS]), see docs/adding-a-sensor.md"
        raise invalid_value(element, kind or "missing", allowed, attribute="type", remedy=remedy)

    def _parse_rate(self, element: Element, default: float = 0.0, tag: str = "update_rate") -> float:
        """Return the rate (Hz); 0 in the file means the rate of the physics."""
        child = element.find(tag)
        rate = parse_child_number(self.context, element, tag, default, minimum=0.0)
        resolved = rate or step_to_rate(self.max_step_size)
        if not MIN_RATE <= resolved <= MAX_RATE:
            allowed = f"must be from {MIN_RATE:g} to {MAX_RATE:.0f} Hz"
            self.context.add_problem(invalid_value(child or element, f"{resolved:g} Hz", allowed, parent=element.tag))
            return step_to_rate(DEFAULT_STEP)
        return resolved

    def _parse_topic(self, element: Element, link: FrameNode, name: str, kind: str) -> str:
        """Return the given topic; without one, or if it is already used, the default topic."""
        models = tuple(link.name.split("::")[:-1])
        candidates = (
            element.get_attribute("type") or "",
            *(child.tag for child in element.children if child.tag in GAZEBO_BLOCKS),
        )
        sensor, last = (
            name.rpartition("::")[2],
            next((DEFAULT_TOPIC_ENDINGS[one] for one in candidates if one in DEFAULT_TOPIC_ENDINGS), kind),
        )
        default = normalize_topic(
            make_default_topic(self.world, models, sensor=sensor, link=link.name.rpartition("::")[2], ending=last)
        )
        child = element.find("topic")
        given = None
        if child is not None:
            self.context.check(child, LEAF)
            if child.text and child.text != "__default__":
                given = normalize_topic(child.text)
                if given is None:
                    allowed = "must contain more than @ ~ // and :="
                    self.context.add_problem(invalid_value(child, child.text, allowed, parent="sensor"))
        if given in self.taken_topics and child is not None:
            reason = f"is already the topic of {self.taken_topics[given]}; the default {default} is used"
            self.context.add_note("warning", f"<topic>: {given}", reason, child.where)
            given = None
        topic = given or default
        if topic is None or topic in self.taken_topics:
            taken = f"is already the topic of {self.taken_topics[topic]}" if topic else "is not a valid topic"
            remedy = "give the sensor its own <topic>"
            self.context.add_problem(invalid_value(element, topic or name, taken, remedy=remedy))
            return ""
        self.taken_topics[topic] = name
        return topic

    def _parse_frame(self, element: Element) -> str:
        """Return the frame of messages; "" if the file has none."""
        found = ""
        for tag in FRAME_ID_TAGS:
            child = element.find(tag)
            if child is None:
                continue
            self.context.check(child, LEAF)
            found = found or child.text
            if tag != "frame_id":
                self.context.add_note("warning", f"<sensor><{tag}>", "is read as frame_id of SDF 1.12", child.where)
        return found


def _find_link(parsed: ParsedModel, scope: Scope, name: str) -> FrameNode | None:
    """Return a link of the model by its name in a scope or its full name."""
    links = {link.name: link for _, link in parsed.list_links()}
    return links.get(f"{scope.frame.name}::{name}") or links.get(name)


def _find_rotation(parsed: ParsedModel, scope: Scope, name: str) -> Quaternion | None:
    """Return the rotation of a link of the model to the world."""
    link = _find_link(parsed, scope, name)
    return (
        None if link is None else normalize(multiply(parsed.model.pose.rotation, parsed.poses.find_pose(link).rotation))
    )


def _find_pose(parsed: ParsedModel, scope: Scope, sensor: Pose, name: str) -> Pose | None:
    """Return the pose of a link in the frame of a sensor; `sensor` is its pose in the model."""
    link = _find_link(parsed, scope, name)
    return None if link is None else sensor.inverse() @ parsed.poses.find_pose(link)


def _check_unique(element: Element, seen: dict[str, Element]) -> None:
    name = parse_name(element)
    before = seen.setdefault(name, element)
    if before is not element:
        allowed = "must be unique among the sensors of its link"
        raise invalid_value(element, name, allowed, attribute="name", remedy=f"first on line {before.line}; rename one")

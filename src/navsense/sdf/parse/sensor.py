"""`<sensor>`: mounting, rate, topic, frame and clock. Each sensor type has a parser for its type element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from navsense.core.geodesy import Origin
from navsense.core.names import suggest_name
from navsense.core.pose import Pose, multiply, normalize
from navsense.core.ticks import MAX_RATE, MIN_RATE, step_to_rate
from navsense.core.typing import Quaternion
from navsense.environment.water import Water
from navsense.sdf import schema
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.frames import FrameNode, Scope
from navsense.sdf.names import check_unique, join_names, make_default_topic, normalize_topic, parse_name
from navsense.sdf.parse import air_pressure, altimeter, camera, depth, doppler, imu, navsat
from navsense.sdf.parse import range as range_sensor
from navsense.sdf.parse.children import parse_child_flag, parse_child_number
from navsense.sdf.parse.clock import ClockRegistry, parse_latency
from navsense.sdf.parse.faults import parse_faults
from navsense.sdf.parse.model import ParsedModel
from navsense.sdf.parse.part import apply_part
from navsense.sdf.parse.sensor_context import SensorContext, find_pose_in_link
from navsense.sdf.parse.switches import copy_state, parse_is_on, parse_switches
from navsense.sdf.parse.type_element import TypeElementParser, make_type_element_parser
from navsense.sdf.parse.world import DEFAULT_STEP, parse_classic
from navsense.sdf.plugins import dsros_dvl
from navsense.sdf.plugins.base import (
    NED_SUFFIX,
    SENSOR_EXTENSIONS,
    ModelPlugin,
    SensorPlugin,
    parse_topic,
    resolve_topic,
)
from navsense.sdf.plugins.namespace import add_namespace, find_beam_namespaces
from navsense.sdf.plugins.registry import MODEL_PLUGINS, find_model_plugin, find_sensor_plugin, list_sensor_files
from navsense.sdf.ros_names import ROS2_SCHEMA, ROS2_TAG, find_declared_namespace, join_ros_topic
from navsense.sdf.values import invalid_choice, invalid_value, parse_text, require_child
from navsense.sdf.xml_reader import Element
from navsense.sensors import SENSORS
from navsense.sensors.adcp import Adcp
from navsense.sensors.base import Sensor
from navsense.sensors.camera import Camera
from navsense.sensors.dvl import Dvl
from navsense.sensors.navsat import NavSat
from navsense.sensors.range import Range
from navsense.world import MountedSensor

SPECIAL_PARSERS: Mapping[str, TypeElementParser] = {
    "imu": imu.parse,
    "altimeter": altimeter.parse,
    "air_pressure": air_pressure.parse,
    "navsat": navsat.parse,
    "depth": depth.parse,
    "range": range_sensor.parse,
    "dvl": doppler.parse_dvl,
    "adcp": doppler.parse_adcp,
    "camera": camera.parse,
}
"""Parsers of the types of navsense whose type element is more than the fields of the specification."""

TYPE_ELEMENT_PARSERS: Mapping[str, TypeElementParser] = {
    sensor.type: SPECIAL_PARSERS.get(sensor.type) or make_type_element_parser(sensor) for sensor in SENSORS
}
"""Sensor type -> parser of its type element.

A type without a special parser, such as the magnetometer, has that of `type_element`: each field is a child.
"""

SENSOR_SCHEMAS: Mapping[str, ElementSchema] = {
    name: replace(schema.make_sensor_schema(name), plugins=list_sensor_files(name)) for name in TYPE_ELEMENT_PARSERS
}
"""Sensor type -> schema of its `<sensor>`; `_apply_plugin` takes the plug-ins that are read."""

_NO_OFFSET = Pose()

_DEPTH_TYPE, _DEPTH_CAMERA_TYPE = "depth", "depth_camera"
"""Types that are both a sensor of navsense and an older camera of Gazebo."""


class ConvertedPlugin(NamedTuple):
    """A plug-in of a model that is converted to a `<sensor>`, and its entry."""

    element: Element
    entry: ModelPlugin


class AppliedPlugin(NamedTuple):
    """A plug-in in a `<sensor>` and its entry."""

    element: Element
    entry: SensorPlugin


@dataclass
class SensorParser:
    """Parses the sensors of one world, and checks that their topics differ."""

    context: Context
    world: str
    classic: bool
    origin: Origin | None
    max_step_size: float
    clocks: ClockRegistry
    type_element_parsers: Mapping[str, TypeElementParser] = field(default_factory=lambda: TYPE_ELEMENT_PARSERS)
    taken_topics: dict[str, str] = field(default_factory=dict)
    water: Water | None = None
    current_topic: str = ""
    has_world: bool = True
    beam_namespaces: Mapping[str, str] = field(default_factory=dict)
    measure_field: Callable[[], float] = lambda: 0.0

    def parse_sensors(self, parsed_model: ParsedModel) -> list[MountedSensor]:
        """Return the simulated sensors of a model; the others are listed as notes."""
        sensors: list[MountedSensor] = []
        self.beam_namespaces = find_beam_namespaces(parsed_model.scopes[0].element)
        for scope, link in parsed_model.list_links():
            elements: dict[str, Element] = {}
            for element in link.element.find_all("sensor"):
                with self.context.collect_errors():
                    check_unique(element, parse_name(element), elements, "the sensors of its link")
                    sensors += self._dispatch_by_type(parsed_model, scope, link, element)
        for scope in parsed_model.scopes:
            for element in scope.element.find_all("plugin"):
                plugin = find_model_plugin(element)
                if plugin is None:
                    self.context.note_plugin(scope.element.tag, element, MODEL_PLUGINS)
                    continue
                with self.context.collect_errors():
                    plugin_element = add_namespace(self.context, element, plugin.schema)
                    sensors += self._parse_plugin(parsed_model, scope, plugin_element, plugin, sensors)
        return sensors

    def _parse_plugin(
        self,
        parsed_model: ParsedModel,
        scope: Scope,
        element: Element,
        plugin: ModelPlugin,
        sensors: Sequence[MountedSensor],
    ) -> Iterator[MountedSensor]:
        """Yield the sensor of a plug-in of a model; none if the plug-in has problems."""
        self.context.check(element, plugin.schema)
        link = self._find_plugin_link(parsed_model, scope, element, plugin)
        name = join_names(element, link.name, parse_name(element))
        first = next((sensor for sensor in sensors if sensor.name == name), None)
        if first is not None:
            allowed, remedy = "must be unique among the sensors of its link", f"first at {first.where}; rename one"
            raise invalid_value(element, parse_name(element), allowed, attribute="name", remedy=remedy)
        if plugin.parse is None:
            sensor = self._convert_plugin(scope, link, element, plugin)
            converted = ConvertedPlugin(element, plugin)
            yield from self._parse_simulated_sensor(
                parsed_model, scope, link, sensor, name, plugin.sensor_type, converted
            )
            return
        topic = parse_topic(element, plugin.tags.topic, plugin.tags.namespace)
        if topic:
            topic = resolve_topic(self.context, element.find(plugin.tags.topic) or element, topic) or ""
        sensor_context = self._make_sensor_context(parsed_model, scope, element, name, link, Pose())
        plugin_sensor = plugin.parse(self.context, element, sensor_context, sensors)
        if plugin_sensor is None:
            return
        *model_names, short_link_name = link.name.split("::")
        default_topic = make_default_topic(
            self.world, model_names, short_link_name, parse_name(element), plugin.sensor_type
        )
        yield self._mount_sensor(
            parsed_model,
            scope,
            element,
            sensor_context,
            plugin_sensor.spec,
            link=link.name,
            pose=Pose(),
            rate=self._parse_rate(element, plugin.tags.default_rate, plugin.tags.rate),
            topic=self._claim_topic(element, topic or default_topic, name, plugin.tags.topic),
            frame=link.name.removeprefix(f"{scope.frame.name}::") + plugin_sensor.frame_suffix,
        )

    def _find_plugin_link(
        self, parsed_model: ParsedModel, scope: Scope, element: Element, plugin: ModelPlugin
    ) -> FrameNode:
        """Return the link of a plug-in of a model, by default its canonical link. Raises `SdfError`.

        Its name is that in the model of the plug-in, or the full name, as Gazebo's `World::GetEntity` accepts it.
        """
        child = element.find(plugin.tags.link) if plugin.tags.link else None
        if child is None and not plugin.tags.requires_link and scope.canonical is not None:
            return scope.canonical
        child = child or require_child(element, plugin.tags.link)
        link_name = parse_text(child, parent=element.tag)
        link = _find_link(parsed_model, scope, link_name)
        if link is None:
            names = (frame.name.removeprefix(f"{scope.frame.name}::") for _, frame in parsed_model.list_links())
            raise invalid_choice(child, link_name, names, parent=element.tag)
        return link

    def _convert_plugin(self, scope: Scope, link: FrameNode, element: Element, plugin: ModelPlugin) -> Element:
        """Return the `<sensor>` with the values of a plug-in of a model."""
        tags = plugin.tags
        children = [child for child in element.children if child.tag in SENSOR_EXTENSIONS]
        if plugin.convert is not None:
            children += plugin.convert(self.context, element)
        children += tags.make_pose(self.context, element)
        rate = self._parse_rate(element, tags.default_rate, tags.rate) if tags.rate else tags.default_rate
        children.append(element.make_element("update_rate", repr(rate)))
        namespace = find_declared_namespace(element, tags.namespace)
        topic = join_ros_topic(namespace, element.get_text(tags.topic, tags.default_topic))
        if topic:
            children.append((element.find(tags.topic) or element).make_element("topic", topic))
        suffix = NED_SUFFIX if tags.has_ned_axes(self.context, element) else ""
        default_frame = link.name.removeprefix(f"{scope.frame.name}::") + suffix
        frame = element.get_text(tags.frame, default_frame) if tags.frame else default_frame
        children.append(element.make_element("frame_id", frame))
        attributes = {"name": parse_name(element), "type": plugin.sensor_type}
        sensor = element.make_element("sensor", children=children, attributes=attributes)
        return copy_state(self.context, sensor, element)

    def _claim_topic(self, element: Element, topic: str, name: str, tag: str) -> str:
        """Return a topic and reserve it. Raises `SdfError` for a topic that is already used."""
        if topic in self.taken_topics:
            allowed = f"is already the topic of {self.taken_topics[topic]}"
            raise invalid_value(element, topic, allowed, remedy=f"give another <{tag}>")
        self.taken_topics[topic] = name
        return topic

    def _dispatch_by_type(
        self, parsed_model: ParsedModel, scope: Scope, link: FrameNode, element: Element
    ) -> list[MountedSensor]:
        """Return the sensors of a `<sensor>`: none for an unsupported type, several for some plug-ins."""
        name, sensor_type = join_names(element, link.name, parse_name(element)), self._parse_type(element)
        # A sensor of the user may have any type, also this one. It then replaces the plug-in.
        if sensor_type == schema.DSROS_DVL_TYPE and sensor_type not in self.type_element_parsers:
            return self._parse_dsros_dvl(parsed_model, scope, link, element, name)
        if sensor_type in self.type_element_parsers:
            if element.get_attribute("type") == schema.MULTICAMERA_TYPE and sensor_type == Camera.type:
                return self._parse_multicamera(parsed_model, scope, link, element, name)
            return self._parse_simulated_sensor(parsed_model, scope, link, element, name, sensor_type)
        gazebo_type, reason = _get_gazebo_type(element), schema.NOT_SIMULATED
        if sensor_type == "custom" and gazebo_type:
            remedy = "for a sensor of your own see docs/how-to/adding-a-sensor.md"
            reason = f"no sensor has the type {gazebo_type}; {remedy}"
        self._note_not_simulated(element, sensor_type, name, reason)
        return []

    def _note_not_simulated(self, element: Element, sensor_type: str, name: str, reason: str) -> None:
        what = f'<sensor type="{sensor_type}">: {name}'
        self.context.add_note("unsupported", what, reason, element.where, subject="sensor")
        self.context.note_plugins(element)

    def _parse_dsros_dvl(
        self, parsed_model: ParsedModel, scope: Scope, link: FrameNode, element: Element, name: str
    ) -> list[MountedSensor]:
        """Return the sensors of a plug-in; an invalid plug-in gives none and a problem."""
        self.context.check(element, schema.DSROS_DVL_SENSOR)
        plugin = add_namespace(self.context, dsros_dvl.find_plugin(self.context, element), schema.DSROS_DVL_PLUGIN)
        pose = find_pose_in_link(self.context, parsed_model, scope, link, element)
        sensor_context = self._make_sensor_context(parsed_model, scope, element, name, link, pose)
        plugin_sensor = dsros_dvl.parse(self.context, element, plugin, sensor_context, self.current_topic)
        if plugin_sensor is None:
            return []
        sensor_rate = self._parse_rate(element)
        plugin_rate = self._parse_rate(plugin, dsros_dvl.DEFAULT_RATE, "updateRateHZ")
        sensor = self._mount_sensor(
            parsed_model,
            scope,
            element,
            sensor_context,
            plugin_sensor.spec,
            link=link.name,
            pose=pose,
            rate=dsros_dvl.choose_rate(self.context, element, plugin, sensor_rate, plugin_rate),
            topic=self._claim_topic(plugin, plugin_sensor.topic, name, "topicName"),
            frame=plugin_sensor.frame,
        )
        if plugin_sensor.profiler is None:
            return [sensor]
        profiler_name = name + dsros_dvl.PROFILER_SUFFIX
        topic = self._claim_topic(plugin, plugin_sensor.topic + dsros_dvl.PROFILER_SUFFIX, profiler_name, "topicName")
        return [sensor, replace(sensor, name=profiler_name, spec=plugin_sensor.profiler, topic=topic, visualize=False)]

    def _parse_simulated_sensor(
        self,
        parsed_model: ParsedModel,
        scope: Scope,
        link: FrameNode,
        element: Element,
        name: str,
        sensor_type: str,
        model_plugin: ConvertedPlugin | None = None,
        *,
        offset: Pose = _NO_OFFSET,
    ) -> list[MountedSensor]:
        """Return the sensor of a simulated type. None and a note for a scanner (`range.explain_scanner`).

        A NavSat in the file of a robot without a world gives none and a note too: the robot has no place on earth.
        `offset` is the pose of the sensor in the pose of its element.
        """
        element, plugin = self._apply_plugin(element, sensor_type, parsed_model.model.name)
        if sensor_type == Range.type and not (plugin and plugin.entry.merges_rays(plugin.element)):
            reason = range_sensor.explain_scanner(element)
            if reason:
                self._note_not_simulated(element, element.get_attribute("type") or "", name, reason)
                return []
        if sensor_type == NavSat.type and not self.has_world and self.origin is None:
            reason = "the file has no world, so no place on earth; include it in a world with <spherical_coordinates>"
            self._note_not_simulated(element, element.get_attribute("type") or "", name, reason)
            return []
        self.context.check(element, SENSOR_SCHEMAS.get(sensor_type) or schema.make_sensor_schema(sensor_type))
        pose = Pose()
        with self.context.collect_errors():
            pose = find_pose_in_link(self.context, parsed_model, scope, link, element) @ offset
        sensor_context = self._make_sensor_context(parsed_model, scope, element, name, link, pose)
        type_element = self._find_type_element(element, sensor_type)
        spec = self.type_element_parsers[sensor_type](self.context, type_element, sensor_context)
        if isinstance(spec, Range):
            spec = replace(spec, classic=sensor_context.classic)
        for source in (plugin, model_plugin):
            if source is not None and source.entry.refine_spec is not None:
                spec = source.entry.refine_spec(self.context, source.element, spec, sensor_context)
        optical_frame = None
        if isinstance(spec, Camera):
            optical_frame = camera.parse_optical_frame(type_element, sensor_context)
        sensor = self._mount_sensor(
            parsed_model,
            scope,
            element,
            sensor_context,
            spec,
            link=link.name,
            pose=pose,
            rate=self._parse_rate(element),
            topic=self._parse_topic(element, link, name, sensor_type),
            frame=self._parse_frame(element) or name,
            optical_frame=optical_frame,
        )
        return [sensor]

    def _apply_plugin(self, sensor: Element, sensor_type: str, model: str) -> tuple[Element, AppliedPlugin | None]:
        """Return a sensor with the values of its plug-in as elements, and the plug-in; None if none is read."""
        plugins = [
            AppliedPlugin(child, entry)
            for child in sensor.find_all("plugin")
            if (entry := find_sensor_plugin(child, sensor_type)) is not None
        ]
        if not plugins:
            return sensor, None
        plugin, *further_plugins = plugins
        self.context.check(plugin.element, plugin.entry.schema)
        self.context.find_child(plugin.element, ROS2_TAG, ROS2_SCHEMA)
        for further_plugin in further_plugins:
            reason = f"is one of several; the one on line {plugin.element.line} is used"
            file = further_plugin.element.get_attribute("filename")
            self.context.add_note(
                "unsupported", f'<sensor><plugin filename="{file}">', reason, further_plugin.element.where
            )
        elements = [plugin.element for plugin in plugins]
        default = model if plugin.entry.in_model_namespace else ""
        element = add_namespace(self.context, plugin.element, plugin.entry.schema, self.beam_namespaces, default)
        bare_sensor = replace(sensor, children=[child for child in sensor.children if child not in elements])
        applied = plugin.entry.apply(self.context, copy_state(self.context, bare_sensor, element), element)
        return applied, plugin._replace(element=element)

    def _parse_multicamera(
        self, parsed_model: ParsedModel, scope: Scope, link: FrameNode, element: Element, name: str
    ) -> list[MountedSensor]:
        """Return a sensor `NAME::CAMERA` for each `<camera>` of a multicamera of Gazebo Classic."""
        sensors: list[MountedSensor] = []
        cameras: dict[str, Element] = {}
        for type_element in list(element.find_all("camera")):
            with self.context.collect_errors():
                camera_name = parse_name(type_element)
                check_unique(type_element, camera_name, cameras, "the cameras of its sensor")
                camera_element, offset = camera.split_multicamera(self.context, element, type_element)
                full_name = join_names(type_element, name, camera_name)
                sensors += self._parse_simulated_sensor(
                    parsed_model, scope, link, camera_element, full_name, Camera.type, offset=offset
                )
        return sensors

    def _mount_sensor(
        self,
        parsed_model: ParsedModel,
        scope: Scope,
        element: Element,
        sensor_context: SensorContext,
        spec: Sensor,
        **fields: Any,
    ) -> MountedSensor:
        """Return the sensor of an element with its part, clock, latency and faults, and further `fields`."""
        return MountedSensor(
            name=sensor_context.name,
            spec=apply_part(self.context, element, spec, classic=sensor_context.classic),
            model=parsed_model.model.name,
            clock=self.clocks.find_clock_name(self.context, element, sensor_context.name, scope),
            latency=parse_latency(self.context, element),
            faults=parse_faults(self.context, element, spec),
            where=element.where,
            is_on=parse_is_on(self.context, element),
            switches=parse_switches(self.context, element),
            visualize=self._parse_visualize(element, spec),
            **fields,
        )

    def _parse_visualize(self, element: Element, spec: Sensor) -> bool:
        """Return True if a sensor or a part of its type element is visualized; for a sensor without beams a note."""
        parents = [parent for parent in element.walk() for child in parent.children if child.tag == "visualize"]
        if isinstance(spec, Range | Dvl | Adcp):
            flags = [parse_child_flag(self.context, parent, "visualize", default=False) for parent in parents]
            return any(flags)
        for parent in parents:
            what = f"<{parent.tag}><visualize>"
            self.context.add_note("unsupported", what, schema.VISUAL_ONLY, require_child(parent, "visualize").where)
        return False

    def _make_sensor_context(
        self, parsed_model: ParsedModel, scope: Scope, element: Element, name: str, link: FrameNode, pose: Pose
    ) -> SensorContext:
        """Return the context of a sensor; `pose` is its pose in its link."""
        pose_in_model = parsed_model.poses.find_pose(link)
        rotation_wl = multiply(parsed_model.model.pose.rotation, pose_in_model.rotation)
        return SensorContext(
            classic=parse_classic(self.context, element, default=self.classic),
            heading=self.origin.heading if self.origin else 0.0,
            rotation_ws=normalize(multiply(rotation_wl, pose.rotation)),
            is_moving=parsed_model.model.motion is not None,
            origin=self.origin,
            water=self.water,
            name=name,
            where=element.where,
            measure_field=self.measure_field,
            declared_type=element.get_attribute("type") or "",
            find_rotation=partial(_find_rotation, parsed_model, scope),
            find_pose=partial(_find_pose, parsed_model, scope, pose_in_model @ pose),
        )

    def _find_type_element(self, element: Element, sensor_type: str) -> Element | None:
        """Return the type element of a sensor, which may have another name than the type."""
        tags = (sensor_type, *schema.list_aliases(sensor_type))
        type_elements = [child for tag in tags if (child := element.find(tag)) is not None]
        for alias in type_elements[1:]:
            allowed = f"is another name of <{sensor_type}>; remove one of them"
            self.context.add_problem(invalid_value(alias, "is duplicated", allowed))
        gazebo_tags = [f"<{tag}>" for tag in tags if tag in schema.GAZEBO_TYPE_ELEMENTS]
        if not type_elements and gazebo_tags and element.get_attribute("type") == "custom":
            remedy = f'write <sensor type="{sensor_type}"> for the elements of navsense'
            allowed = f"requires {', '.join(gazebo_tags)}, as in Gazebo"
            self.context.add_problem(invalid_value(element, "no type element", allowed, remedy=remedy))
        return type_elements[0] if type_elements else None

    def _parse_type(self, element: Element) -> str:
        """Return the type of a sensor; for a custom sensor that of Gazebo's attribute, if it is known."""
        sensor_type = element.get_attribute("type") or ""
        if sensor_type == "custom":
            gazebo_type = _get_gazebo_type(element)
            sensor_type = gazebo_type if gazebo_type and gazebo_type in self.type_element_parsers else sensor_type
        if sensor_type == _DEPTH_TYPE and element.find("camera") is not None:
            sensor_type = _DEPTH_CAMERA_TYPE
        if sensor_type not in self.type_element_parsers:
            sensor_type = schema.TYPE_ALIASES.get(sensor_type, sensor_type)
        known = (
            *self.type_element_parsers,
            *schema.UNSIMULATED_TYPES,
            schema.DSROS_DVL_TYPE,
            *schema.TYPE_ALIASES,
        )
        if sensor_type in known:
            return sensor_type
        allowed = f"must be one of {', '.join(self.type_element_parsers)}, which are simulated, or another type of SDF"
        remedy = suggest_name(sensor_type, known) or "for a sensor of your own: see docs/how-to/adding-a-sensor.md"
        raise invalid_value(element, sensor_type or "missing", allowed, attribute="type", remedy=remedy)

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

    def _parse_topic(self, element: Element, link: FrameNode, name: str, sensor_type: str) -> str:
        """Return the given topic; without one, or if it is already used, the default topic."""
        *model_names, link_name = link.name.split("::")
        ending, declared_type = self._get_topic_ending(element, sensor_type), element.get_attribute("type") or ""
        default = normalize_topic(
            make_default_topic(
                self.world, model_names, link_name, name.removeprefix(f"{link.name}::").replace("::", "/"), ending
            )
        )
        child = self.context.find_child(element, "topic")
        if sensor_type == Camera.type:
            child = camera.find_info_topic(element) or child
        topic = None
        if child is not None and child.text and child.text != "__default__":
            topic = resolve_topic(self.context, child, child.text, "sensor")
            if topic is not None and sensor_type == Camera.type and child.tag == "topic":
                topic = camera.make_info_topic(declared_type, topic)
            if topic in self.taken_topics:
                reason = f"is already the topic of {self.taken_topics[topic]}; the default {default} is used"
                self.context.add_note("warning", f"<{child.tag}>: {topic}", reason, child.where)
                topic = None
        topic = topic or default
        if topic is None or topic in self.taken_topics:
            allowed = f"is already the topic of {self.taken_topics[topic]}" if topic else "is not a valid topic"
            remedy = "give the sensor its own <topic>"
            self.context.add_problem(invalid_value(element, topic or name, allowed, remedy=remedy))
            return ""
        self.taken_topics[topic] = name
        return topic

    def _get_topic_ending(self, element: Element, sensor_type: str) -> str:
        """Return the end of the default topic of a sensor."""
        declared_type = element.get_attribute("type") or ""
        if sensor_type == Camera.type:
            return camera.get_topic_ending(declared_type)
        tags = (child.tag for child in element.children if child.tag in schema.GAZEBO_TYPE_ELEMENTS)
        endings = (schema.DEFAULT_TOPIC_ENDINGS.get(key) for key in (declared_type, *tags))
        return next(filter(None, endings), sensor_type)

    def _parse_frame(self, element: Element) -> str:
        """Return the frame of messages; "" if the file has none."""
        frame = ""
        for tag in schema.FRAME_ID_TAGS:
            child = self.context.find_child(element, tag)
            if child is not None:
                frame = frame or child.text
                if tag != "frame_id":
                    self.context.add_note("warning", f"<sensor><{tag}>", "is read as frame_id of SDF 1.12", child.where)
        return frame


def _get_gazebo_type(element: Element) -> str | None:
    """Return the type that Gazebo's attribute of a custom sensor gives."""
    return element.get_attribute("gz:type") or element.get_attribute("ignition:type")


def _find_link(parsed_model: ParsedModel, scope: Scope, name: str) -> FrameNode | None:
    """Return a link of the model by its name in a scope or its full name."""
    links = {link.name: link for _, link in parsed_model.list_links()}
    return links.get(f"{scope.frame.name}::{name}") or links.get(name)


def _find_rotation(parsed_model: ParsedModel, scope: Scope, name: str) -> Quaternion | None:
    """Return the rotation of a link of the model to the world."""
    link = _find_link(parsed_model, scope, name)
    if link is None:
        return None
    return normalize(multiply(parsed_model.model.pose.rotation, parsed_model.poses.find_pose(link).rotation))


def _find_pose(parsed_model: ParsedModel, scope: Scope, sensor_pose: Pose, name: str) -> Pose | None:
    """Return the pose of a link in the frame of a sensor; `sensor_pose` is that of the sensor in the model."""
    link = _find_link(parsed_model, scope, name)
    return None if link is None else sensor_pose.inverse() @ parsed_model.poses.find_pose(link)

"""Tables of plug-ins that are sensors.

A dialect is a module with two tables: `MODEL_PLUGINS` for the plug-ins of a model, `SENSOR_PLUGINS` for those in a
`<sensor>`. `registry` joins the tables. An entry has a schema, and one of these functions:

- `convert`, for a plug-in of a model, returns the elements of a `<sensor>`. It is usually that of a `NoiseTable`.
- `apply`, for a plug-in in a `<sensor>`, returns the sensor with other elements.
- `parse`, for the DVL and the pressure sensor of the UUV Simulator, returns a specification.

The parsers of sensors read the elements of the first two, as if the file had them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from navsense.core.field_metadata import get_file_fields
from navsense.core.geodesy import Origin
from navsense.core.text import parse_decimal
from navsense.core.typing import Quaternion, Vector
from navsense.core.validation import MAX_MAGNITUDE
from navsense.noise.specification import Noise
from navsense.sdf.context import Context, ElementSchema, split_tags
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse.children import parse_child_flag, parse_child_number, parse_child_vector
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.parse.switches import STATE_TAGS, SWITCH_TAG
from navsense.sdf.parse.world import ORIGIN_LIMITS
from navsense.sdf.ros_names import find_declared_namespace, join_ros_topic
from navsense.sdf.values import invalid_value, parse_numbers
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.world import MountedSensor

UUV_RATE = 30.0
"""Hz, the default of plug-ins of the UUV Simulator."""

PLUGIN_ATTRIBUTES = split_tags("name filename")

SENSOR_EXTENSIONS = split_tags(
    "clock navsense:clock navsense:fidelity navsense:latency navsense:faults navsense:part navsense:switch"
)
"""Elements of a sensor that a converted plug-in of a model may have too."""

NED: Quaternion = (0.0, 1.0, 0.0, 0.0)
"""Rotation by pi about x: forward, left, up to forward, right, down."""

NED_SUFFIX = "_ned"
"""End of the frame of a sensor with the axes forward, right, down."""


class PluginSensor(NamedTuple):
    """A sensor in a plug-in, with the suffix of its frame after the name of the link."""

    spec: Sensor
    frame_suffix: str = ""


class PluginTags(NamedTuple):
    """The elements of a plug-in with its link, topic, rate and frame, and their defaults.

    link: "" for the canonical link of the model.
    namespace, frame, pose, rotation: "" if the plug-in has no such element. The pose is x y z (m), the rotation roll
        pitch yaw (rad); both are in the link.
    ned: flag for the axes forward, right, down, true by default; "" for the axes of the link.
    default_topic: "" for Gazebo's topic.
    default_rate: Hz; 0 for the rate of the physics.
    requires_link: True if the plug-in does not start without the link.
    """

    link: str = "link_name"
    namespace: str = "robot_namespace"
    topic: str = "sensor_topic"
    rate: str = "update_rate"
    frame: str = ""
    pose: str = ""
    rotation: str = ""
    ned: str = ""
    default_topic: str = ""
    default_rate: float = UUV_RATE
    requires_link: bool = True

    def list_tags(self) -> frozenset[str]:
        """Return the elements."""
        tags = (self.link, self.namespace, self.topic, self.rate, self.frame, self.pose, self.rotation, self.ned)
        return frozenset(filter(None, tags))

    def has_ned_axes(self, context: Context, plugin: Element) -> bool:
        """Return True for the axes forward, right, down."""
        return bool(self.ned) and parse_child_flag(context, plugin, self.ned, default=True)

    def make_pose(self, context: Context, plugin: Element) -> list[Element]:
        """Return the `<pose>` of the sensor in its link; none for the identity."""
        if self.has_ned_axes(context, plugin):
            w, *xyz = NED
            text = " ".join(map(repr, (0.0, 0.0, 0.0, *xyz, w)))
            return [plugin.make_element("pose", text, attributes={"rotation_format": "quat_xyzw"})]
        origin: Vector = (0.0, 0.0, 0.0)
        numbers: list[float] = []
        for tag in (self.pose, self.rotation):
            numbers += parse_child_vector(context, plugin, tag, origin) if tag else origin
        return [plugin.make_element("pose", " ".join(map(repr, numbers)))] if any(numbers) else []


UUV_TAGS = PluginTags()
"""The elements of `ROSBasePlugin` of the UUV Simulator."""


class EarthReference(NamedTuple):
    """What a plug-in declares of the world: its origin, and its magnetic field (T, along the world's axes).

    None: the plug-in does not declare it. `is_default`: True if the file does not give the values.
    """

    origin: Origin | None = None
    magnetic_field: Vector | None = None
    is_default: bool = False


def make_origin(latitude: float, longitude: float, elevation: float, heading: float) -> Origin:
    """Return an origin from degrees and metres."""
    return Origin(math.radians(latitude), math.radians(longitude), elevation, math.radians(heading))


def parse_origin(context: Context, plugin: Element, defaults: Mapping[str, float]) -> EarthReference:
    """Return the origin that a plug-in declares.

    Args:
        context: receives a problem for a number out of range.
        plugin: the plug-in.
        defaults: tag -> default, for the latitude, longitude (degrees), elevation (m) and, optionally, the heading of
            the x axis from north, clockwise (degrees). Without it, x is east.

    """
    numbers = []
    for (tag, default), limit in zip(defaults.items(), ORIGIN_LIMITS.values(), strict=False):
        number, child = parse_child_number(context, plugin, tag, default), plugin.find(tag)
        if child is not None and abs(number) > limit:
            allowed = f"must be from {-limit:g} to {limit:g}"
            context.add_problem(invalid_value(child, child.text, allowed, parent=plugin.tag))
            number = default
        numbers.append(number)
    latitude, longitude, elevation, *heading = numbers
    origin = make_origin(latitude, longitude, elevation, 90.0 - heading[0] if heading else 0.0)
    return EarthReference(origin, is_default=plugin.find(*defaults) is None)


def rotate_to_world(origin: Origin | None, east: float, north: float, up: float) -> Vector:
    """Return a vector along east, north and up as one along the axes of a world with an origin.

    Without an origin, x is east and y is north.

    >>> from navsense.core.geodesy import Origin
    >>> from navsense.sdf.plugins.base import rotate_to_world
    >>> [round(part, 12) for part in rotate_to_world(Origin(0.8, 0.1, 0.0, math.pi / 2), 0.0, 2.0, -4.0)]
    [2.0, 0.0, -4.0]
    """
    if origin is None:
        return (east, north, up)
    cosine, sine = math.cos(origin.heading), math.sin(origin.heading)
    return (cosine * east + sine * north, cosine * north - sine * east, up)


ReferenceParser = Callable[[Context, Element, Origin | None], EarthReference]
"""Returns what a plug-in declares of a world with an origin (None: without one)."""

ElementConverter = Callable[[Context, Element], Sequence[Element]]
"""Returns the type element and other elements of a `<sensor>` for a plug-in. Invalid values are problems."""

SpecRefinement = Callable[[Context, Element, Sensor, SensorContext], Sensor]
"""Returns a specification with what elements of a sensor cannot describe."""


class ModelPlugin(NamedTuple):
    """A plug-in of a model that is a sensor.

    schema: the elements of the plug-in.
    sensor_type: the type of its sensor.
    parse: returns the specification, from the plug-in and the other sensors of the model; None for a plug-in with
        problems, which are already reported. Without it, `convert` is used.
    convert: returns the elements of a `<sensor>` of that type.
    tags: the elements with link, topic, rate and frame.
    parse_origin: returns the origin that the plug-in declares, for the `<spherical_coordinates>` of the world.
    parse_field: returns the magnetic field that the plug-in declares, for the origin of the world.
    refine_spec: returns the specification of `convert` with what elements of a sensor cannot describe.
    """

    schema: ElementSchema
    sensor_type: str
    parse: Callable[[Context, Element, SensorContext, Sequence[MountedSensor]], PluginSensor | None] | None = None
    convert: ElementConverter | None = None
    tags: PluginTags = UUV_TAGS
    parse_origin: ReferenceParser | None = None
    parse_field: ReferenceParser | None = None
    refine_spec: SpecRefinement | None = None


class SensorPlugin(NamedTuple):
    """A plug-in in a `<sensor>`.

    schema: the elements of the plug-in.
    sensor_types: the types of sensors that it belongs to, by their names in navsense.
    apply: returns the sensor with the values of the plug-in as its elements.
    in_model_namespace: True if the default namespace in ROS 1 is the name of the model.
    merges_rays: returns True if all rays of a scanner make one range.
    parse_origin: returns the origin that the plug-in declares, for the `<spherical_coordinates>` of the world.
    refine_spec: returns the specification with what elements of a sensor cannot describe.
    """

    schema: ElementSchema
    sensor_types: frozenset[str]
    apply: Callable[[Context, Element, Element], Element]
    in_model_namespace: bool = False
    merges_rays: Callable[[Element], bool] = lambda _: False
    parse_origin: ReferenceParser | None = None
    refine_spec: SpecRefinement | None = None


def make_plugin_schema(
    tags: PluginTags | None = None, children: str = "", *, unsupported: Mapping[str, str] | None = None
) -> ElementSchema:
    """Return the schema of a converted plug-in with the elements of `tags`, `children` and those of navsense."""
    common = tags.list_tags() | SENSOR_EXTENSIONS if tags else frozenset()
    return ElementSchema(
        children=common.union(split_tags(children), STATE_TAGS),
        repeatable=frozenset((SWITCH_TAG,)) & common,
        unsupported=unsupported or {},
        attributes=PLUGIN_ATTRIBUTES,
    )


def parse_topic(element: Element, tag: str, namespace_tag: str = UUV_TAGS.namespace) -> str:
    """Return the topic of a child in the namespace of the plug-in, as the file gives it; "" without one."""
    return join_ros_topic(find_declared_namespace(element, namespace_tag), element.get_text(tag))


def resolve_topic(context: Context, element: Element, text: str, parent: str = "plugin") -> str | None:
    """Return the valid topic for a text, with a warning if it is another one; None and a problem without one."""
    topic = normalize_topic(text)
    if topic is None:
        allowed = "must contain more than @ ~ // and :="
        context.add_problem(invalid_value(element, text, allowed, parent=parent))
    elif topic.lstrip("/") != text.lstrip("/"):
        reason = f"has invalid characters: the topic is {topic}"
        context.add_note("warning", f"<{element.tag}>: {text}", reason, element.where)
    return topic


def limit_rate(context: Context, sensor: Element, plugin: Element, tag: str, default: float = 0.0) -> Element:
    """Return a sensor with at most the rate (Hz) in the element `tag` of its plug-in, which skips samples.

    A rate of 0 is no limit. A lower rate than that of the sensor is a warning.
    """
    rate = parse_child_number(context, plugin, tag, default, minimum=0.0)
    declared = parse_child_number(context, sensor, "update_rate", 0.0, minimum=0.0)
    if rate == 0.0 or 0.0 < declared <= rate:
        return sensor
    source = plugin.find(tag) or plugin
    if declared > 0.0:
        reason = f"the plug-in skips samples of the sensor's <update_rate> of {declared:g} Hz"
        context.add_note("warning", f"<plugin><{tag}>: {rate:g} Hz", reason, source.where)
    return set_child(sensor, source.make_element("update_rate", repr(rate)), replaces=True)


def set_child(sensor: Element, child: Element, *, replaces: bool = False) -> Element:
    """Return a sensor with a child if it has no child with this tag; with `replaces` in any case."""
    siblings = [sibling for sibling in sensor.children if sibling.tag != child.tag]
    if len(siblings) < len(sensor.children) and not replaces:
        return sensor
    return replace(sensor, children=[*siblings, child])


def get_first_text(plugin: Element, *tags: str) -> str:
    """Return the first text of some children, "" without one."""
    return next((plugin.get_text(tag) for tag in tags if plugin.get_text(tag)), "")


class NoiseTag(NamedTuple):
    """An element of a plug-in that is a field of the noise of one or several channels.

    tag: the element. It has one number for all channels, or one for each of them.
    channels: paths of the channels in the type element, for example "angular_velocity/x".
    field: the field of `Noise`.
    factor: from the unit of the element to that of the field.
    default: value in the unit of the element, None for no noise without the element.
    """

    tag: str
    channels: tuple[str, ...]
    field: str = "stddev"
    factor: float = 1.0
    default: float | None = None

    def scale(self, factor: float) -> NoiseTag:
        """Return the entry with a value multiplied by a factor."""
        return self._replace(factor=factor * self.factor)


CORRELATION_TIME = "dynamic_bias_correlation_time"

GYROSCOPE = tuple(f"angular_velocity/{axis}" for axis in "xyz")
ACCELEROMETER = tuple(f"linear_acceleration/{axis}" for axis in "xyz")
HORIZONTAL_POSITION, VERTICAL_POSITION = "position_sensing/horizontal", "position_sensing/vertical"
HORIZONTAL_VELOCITY, VERTICAL_VELOCITY = "velocity_sensing/horizontal", "velocity_sensing/vertical"

SIGNED_FIELDS = ("mean", "bias_mean", "scale_factor")
"""Fields of `Noise` that may be negative."""


def parse_values(
    context: Context, plugin: Element, tag: str, count: int, *, minimum: float = -math.inf
) -> list[float] | None:
    """Return the one or `count` numbers of a child as `count` numbers; None for an absent or invalid child.

    They must be >= `minimum`.
    """
    child = context.find_child(plugin, tag)
    if child is None:
        return None
    with context.collect_errors():
        length = count if len(child.text.split()) > 1 else 1
        choice = f"1 or {count} finite numbers" if count > 1 else "a finite number"
        allowed = f"must be {choice} of absolute value below {MAX_MAGNITUDE:g}"
        numbers = list(parse_numbers(child, length, allowed, parent=plugin.tag, magnitude_below=MAX_MAGNITUDE))
        if min(numbers) < minimum:
            raise invalid_value(child, child.text, f"must be >= {minimum:g}", parent=plugin.tag)
        return numbers if length == count else numbers * count
    return None


ChannelNoise = dict[str, dict[str, float]]
"""Path of a channel -> field of its noise -> value."""


def parse_noise_tags(context: Context, plugin: Element, tags: Sequence[NoiseTag]) -> ChannelNoise:
    """Return the fields of the noise that the elements of a plug-in give."""
    channels: ChannelNoise = {}
    for entry in tags:
        minimum = -math.inf if entry.field in SIGNED_FIELDS else 0.0
        values = parse_values(context, plugin, entry.tag, len(entry.channels), minimum=minimum)
        if values is None and entry.default is not None:
            values = [entry.default] * len(entry.channels)
        for channel, value in zip(entry.channels, values or (), strict=False):
            channels.setdefault(channel, {})[entry.field] = value * entry.factor
    for fields in channels.values():
        if fields.get("dynamic_bias_stddev") == 0.0:  # without a bias, its correlation time is no error
            fields.pop(CORRELATION_TIME, None)
    for entry in tags:
        child = plugin.find(entry.tag)
        invalid = [
            channels[channel] for channel in entry.channels if channels.get(channel, {}).get(CORRELATION_TIME) == 0.0
        ]
        if entry.field == CORRELATION_TIME and child is not None and invalid:
            allowed = "must be > 0, or the random walk must be 0"
            context.add_problem(invalid_value(child, child.text, allowed, parent=plugin.tag))
            for fields in invalid:
                fields.pop(CORRELATION_TIME)
                fields.pop("dynamic_bias_stddev", None)
    return channels


_NOISE_FIELDS = get_file_fields(Noise)


def make_noise_element(source: Element, fields: Mapping[str, float]) -> Element:
    """Return the `<noise>` with the fields of a `Noise`, at the line of an element."""
    containers: dict[str, list[Element]] = {"": []}
    for name, value in fields.items():
        child = source.make_element(_NOISE_FIELDS[name].name or name, repr(float(value)))
        containers.setdefault(_NOISE_FIELDS[name].container, []).append(child)
    children = containers.pop("") + [source.make_element(tag, children=group) for tag, group in containers.items()]
    return source.make_element("noise", children=children, attributes={"type": "gaussian"})


def make_type_element(source: Element, tag: str, channels: ChannelNoise) -> Element:
    """Return the type element of a sensor with the noise of its channels, at the line of an element.

    The path "" is the type element itself.
    """
    root = source.make_element(tag)
    nodes = {"": root}
    for path, fields in channels.items():
        parts = path.split("/") if path else []
        for i, part in enumerate(parts):
            parent, key = nodes["/".join(parts[:i])], "/".join(parts[: i + 1])
            if key not in nodes:
                nodes[key] = source.make_element(part)
                parent.children.append(nodes[key])
        nodes[path].children.append(make_noise_element(source, fields))
    return root


def make_world_reference(source: Element, roll_pitch_yaw: Vector = (0.0, 0.0, 0.0)) -> Element:
    """Return the element of an IMU whose orientation refers to the axes of the world, or to rotated ones (rad)."""
    text = " ".join(map(repr, roll_pitch_yaw))
    rotation = source.make_element("custom_rpy", text, attributes={"parent_frame": "world"})
    children = [source.make_element("localization", "CUSTOM"), rotation]
    return source.make_element("orientation_reference_frame", children=children)


class NoiseTable(NamedTuple):
    """The elements of a plug-in that become the type element of a sensor.

    type_element: its tag, which is the type of the sensor.
    noise: the elements of the plug-in with the noise of channels.
    amplitude: the element whose number multiplies all noise except correlation times; "" without one.
    make_children: returns further children of the type element.
    """

    type_element: str
    noise: Sequence[NoiseTag]
    amplitude: str = ""
    make_children: ElementConverter = lambda _context, _plugin: ()

    def convert(self, context: Context, plugin: Element) -> list[Element]:
        """Return the type element."""
        noise = self.noise
        if self.amplitude:
            (factor,) = parse_values(context, plugin, self.amplitude, 1, minimum=0.0) or (1.0,)
            noise = [entry if entry.field == CORRELATION_TIME else entry.scale(factor) for entry in noise]
        channels = parse_noise_tags(context, plugin, noise)
        if self.amplitude:  # channels without noise are left to a part
            channels = {path: fields for path, fields in channels.items() if any(fields.values())}
        element = make_type_element(plugin, self.type_element, channels)
        return [replace(element, children=[*element.children, *self.make_children(context, plugin)])]

    def make_plugin(
        self, tags: PluginTags, children: str = "", *, unsupported: Mapping[str, str] | None = None, **fields: Any
    ) -> ModelPlugin:
        """Return the entry of a plug-in with this table; `fields` are other fields of the entry."""
        names = f"{list_tags(self.noise)} {self.amplitude} {children}"
        schema = make_plugin_schema(tags, names, unsupported=unsupported)
        return ModelPlugin(schema, self.type_element, convert=self.convert, tags=tags, **fields)


def list_tags(*tables: Iterable[NoiseTag]) -> str:
    """Return the elements of tables, separated by blanks."""
    return " ".join(entry.tag for table in tables for entry in table)


def merge_noise(
    sensor: Element, plugin: Element, tag: str, channels: ChannelNoise, *, replaces: bool = False
) -> Element:
    """Return a sensor with the noise of a plug-in for channels in its type element `tag`.

    The white noise adds to that of the sensor: independent deviations add up as a root sum of squares. Other fields
    replace those of the sensor. With `replaces` the whole noise of these channels does.
    """
    new, old = make_type_element(plugin, tag, channels), sensor.find(tag)
    return set_child(sensor, new if old is None else _merge_elements(old, new, replaces=replaces), replaces=True)


def _merge_elements(old: Element, new: Element, *, replaces: bool) -> Element:
    """Return an element with the children of another one, which change those with the same tags."""
    if old.tag == "noise":
        return new if replaces else _add_noise(old, new)
    children = []
    for child in old.children:
        change = new.find(child.tag)
        children.append(child if change is None else _merge_elements(child, change, replaces=replaces))
    return replace(old, children=children + [child for child in new.children if old.find(child.tag) is None])


def _add_noise(old: Element, new: Element) -> Element:
    """Return the noise of a sensor with that of its plug-in."""
    if (old.get_attribute("type") or old.get_text("type")) == "none":
        return new
    stddev = parse_decimal(old.get_text("stddev", "0"))
    added = parse_decimal(new.get_text("stddev", "0"))
    children = [child for child in old.children if child.tag == "stddev" or new.find(child.tag) is None]
    if stddev is not None and added is not None and new.find("stddev") is not None:
        children = [child for child in children if child.tag != "stddev"]
        children.append(new.make_element("stddev", repr(math.hypot(stddev, added))))
    children += [child for child in new.children if child.tag != "stddev"]
    return replace(old, children=children)

"""Tables of plug-ins that are sensors.

A dialect is a module with two tables: `MODEL_PLUGINS` for the plug-ins of a model, `SENSOR_PLUGINS` for those in a
`<sensor>`. `registry` joins the tables. An entry has a schema, and either

- `parse`, which returns a specification (plug-ins of the UUV Simulator), or
- `convert`, which returns elements of a `<sensor>`. Their parsers then read them, as if the file had these elements.

`convert` is usually a `NoiseTable`: element of the plug-in -> channel and field of its noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from navsense.core.field_metadata import get_file_fields
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.text import parse_decimal
from navsense.core.typing import Vector
from navsense.noise.specification import Noise
from navsense.sdf.context import Context, ElementSchema, split_tags
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.parse.switches import STATE_TAGS, SWITCH_TAG
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


MODEL_NAMESPACE = "/~"
"""Beginning of the topic of a converted plug-in whose namespace is the name of the model."""


class PluginSensor(NamedTuple):
    """A sensor in a plug-in.

    frame_suffix: suffix of its frame after the name of the link.
    pose: its pose in the link.
    """

    spec: Sensor
    frame_suffix: str = ""
    pose: Pose = Pose()


class PluginTags(NamedTuple):
    """The elements of a plug-in with its link, topic, rate and frame, and their defaults.

    link: "" for the canonical link of the model.
    namespace, frame, pose, rotation: "" if the plug-in has no such element. The pose is x y z (m), the rotation roll
        pitch yaw (rad); both are in the link.
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
    default_topic: str = ""
    default_rate: float = UUV_RATE
    requires_link: bool = True

    def list_tags(self) -> frozenset[str]:
        """Return the elements."""
        tags = (self.link, self.namespace, self.topic, self.rate, self.frame, self.pose, self.rotation)
        return frozenset(filter(None, tags))


UUV_TAGS = PluginTags()
"""The elements of `ROSBasePlugin` of the UUV Simulator."""


class Converter(Protocol):
    """Returns the type element and other elements of a `<sensor>` for the elements of a plug-in.

    Invalid elements become problems of the context.
    """

    def __call__(self, context: Context, plugin: Element) -> Sequence[Element]:
        """Return the elements; `plugin` is checked against its schema."""
        ...


class Place(NamedTuple):
    """What a plug-in declares of the world: its origin, and its magnetic field (T, along the world's axes).

    None: the plug-in does not declare it. `is_given`: False if these are defaults that the file does not give.
    """

    origin: Origin | None = None
    magnetic_field: Vector | None = None
    is_given: bool = True


def make_origin(latitude: float, longitude: float, elevation: float, heading: float) -> Origin | None:
    """Return an origin from degrees and metres; None if they are out of range."""
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 360.0 and abs(elevation) <= 1e6 and abs(heading) <= 3600.0):
        return None
    return Origin(math.radians(latitude), math.radians(longitude), elevation, math.radians(heading))


def rotate_to_world(origin: Origin | None, east: float, north: float, up: float) -> Vector:
    """Return the components along the axes of the world of a vector along east, north and up, at its origin.

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


PlaceParser = Callable[[Context, Element, Origin | None], Place]
"""Returns what a plug-in declares of a world with an origin (None: without one)."""

Finisher = Callable[[Context, Element, Sensor, SensorContext], Sensor]


def keep_spec(_context: Context, _plugin: Element, spec: Sensor, _sensor_context: SensorContext) -> Sensor:
    """Return a specification that is complete without `finish`."""
    return spec


def declare_nothing(_context: Context, _plugin: Element, _origin: Origin | None) -> Place:
    """Return the place of a plug-in that declares nothing of the world."""
    return Place()


class ModelPlugin(NamedTuple):
    """A plug-in of a model that is a sensor.

    schema: the elements of the plug-in.
    sensor_type: the type of its sensor.
    parse: returns the specification, from the plug-in and the other sensors of the model; None for a plug-in with
        problems, which are already reported. Without it, `convert` is used.
    convert: returns the elements of a `<sensor>` of that type.
    tags: the elements with link, topic, rate and frame.
    place: returns the origin that the plug-in declares, for the `<spherical_coordinates>` of the world.
    field: returns the magnetic field that the plug-in declares, for the origin of the world.
    finish: returns the specification of `convert` with what elements of a sensor cannot describe.
    """

    schema: ElementSchema
    sensor_type: str
    parse: Callable[[Context, Element, SensorContext, Sequence[MountedSensor]], PluginSensor | None] | None = None
    convert: Converter | None = None
    tags: PluginTags = UUV_TAGS
    place: PlaceParser = declare_nothing
    field: PlaceParser = declare_nothing
    finish: Finisher = keep_spec


class SensorPlugin(NamedTuple):
    """A plug-in in a `<sensor>`.

    schema: the elements of the plug-in.
    sensor_types: the types of sensors that it belongs to, by their names in navsense.
    apply: returns the sensor with the values of the plug-in as its elements.
    merges_rays: returns True if all rays of a scanner make one range.
    place: returns the origin that the plug-in declares, for the `<spherical_coordinates>` of the world.
    finish: returns the specification with what elements of a sensor cannot describe.
    """

    schema: ElementSchema
    sensor_types: frozenset[str]
    apply: Callable[[Context, Element, Element], Element]
    merges_rays: Callable[[Element], bool] = lambda _: False
    place: PlaceParser = declare_nothing
    finish: Finisher = keep_spec


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
    """Return the topic of a child in the namespace of the plug-in; "" without one."""
    topic = join_ros_topic(find_declared_namespace(element, namespace_tag), element.get_text(tag))
    return (normalize_topic(topic) or "") if topic else ""


def limit_rate(context: Context, sensor: Element, plugin: Element, tag: str, default: float = 0.0) -> Element:
    """Return a sensor with at most the rate (Hz) in the element `tag` of its plug-in, which skips samples.

    A rate of 0 is no limit.
    """
    rate = parse_child_number(context, plugin, tag, default, minimum=0.0)
    if rate == 0.0 or 0.0 < parse_child_number(context, sensor, "update_rate", 0.0, minimum=0.0) <= rate:
        return sensor
    source = plugin.find(tag) or plugin
    return set_child(sensor, source.make_element("update_rate", repr(rate)), replaces=True)


def set_child(sensor: Element, child: Element, *, replaces: bool = False) -> Element:
    """Return a sensor with a child if it has no child with this tag; with `replaces` in any case."""
    others = [other for other in sensor.children if other.tag != child.tag]
    if len(others) < len(sensor.children) and not replaces:
        return sensor
    return replace(sensor, children=[*others, child])


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


def parse_values(context: Context, plugin: Element, tag: str, count: int, *, minimum: bool) -> list[float] | None:
    """Return the one or `count` numbers of a child as `count` numbers; None for an absent or invalid child.

    With `minimum` they must not be negative.
    """
    child = context.find_child(plugin, tag)
    if child is None:
        return None
    with context.collect_errors():
        length = count if len(child.text.split()) > 1 else 1
        numbers = list(parse_numbers(child, length, parent=plugin.tag))
        if minimum and min(numbers) < 0.0:
            raise invalid_value(child, child.text, "must be >= 0", parent=plugin.tag)
        return numbers if length == count else numbers * count
    return None


ChannelNoise = dict[str, dict[str, float]]
"""Path of a channel -> field of its noise -> value."""


def parse_noise_tags(context: Context, plugin: Element, tags: Iterable[NoiseTag]) -> ChannelNoise:
    """Return the fields of the noise that the elements of a plug-in give."""
    channels: ChannelNoise = {}
    for entry in tags:
        is_signed = entry.field in ("mean", "bias_mean")
        values = parse_values(context, plugin, entry.tag, len(entry.channels), minimum=not is_signed)
        if values is None and entry.default is not None:
            values = [entry.default] * len(entry.channels)
        for channel, value in zip(entry.channels, values or (), strict=False):
            channels.setdefault(channel, {})[entry.field] = value * entry.factor
    return channels


_NOISE_FIELDS = get_file_fields(Noise)


def make_noise_element(place: Element, fields: Mapping[str, float]) -> Element:
    """Return the `<noise>` with the fields of a `Noise`, at the place of an element."""
    containers: dict[str, list[Element]] = {"": []}
    for name, value in fields.items():
        child = place.make_element(_NOISE_FIELDS[name].name or name, repr(float(value)))
        containers.setdefault(_NOISE_FIELDS[name].container, []).append(child)
    children = containers.pop("") + [place.make_element(tag, children=inner) for tag, inner in containers.items()]
    return place.make_element("noise", children=children, attributes={"type": "gaussian"})


def make_type_element(place: Element, tag: str, channels: ChannelNoise) -> Element:
    """Return the type element of a sensor with the noise of its channels, at the place of an element.

    The path "" is the type element itself.
    """
    root = place.make_element(tag)
    nodes = {"": root}
    for path, fields in channels.items():
        parts = path.split("/") if path else []
        for i, part in enumerate(parts):
            parent, key = nodes["/".join(parts[:i])], "/".join(parts[: i + 1])
            if key not in nodes:
                nodes[key] = place.make_element(part)
                parent.children.append(nodes[key])
        nodes[path].children.append(make_noise_element(place, fields))
    return root


def make_world_reference(place: Element) -> Element:
    """Return the element of an IMU whose orientation refers to the axes of the world."""
    rpy = place.make_element("custom_rpy", "0 0 0", attributes={"parent_frame": "world"})
    children = [place.make_element("localization", "CUSTOM"), rpy]
    return place.make_element("orientation_reference_frame", children=children)


def add_noise(sensor: Element, plugin: Element, tag: str, channels: ChannelNoise) -> Element:
    """Return a sensor whose channels have, in addition to their own noise, the white noise of a plug-in.

    Independent deviations add up as a root sum of squares. Other fields of `channels` replace those of the sensor.
    """
    type_element = sensor.find(tag) or plugin.make_element(tag)
    return set_child(sensor, _add_noise(type_element, plugin, channels), replaces=True)


def _add_noise(element: Element, plugin: Element, channels: ChannelNoise) -> Element:
    """Return an element with the noise of the channels in it, by their paths in the element."""
    children = list(element.children)
    for head in dict.fromkeys(path.partition("/")[0] for path in channels):
        if not head:
            continue
        inner = {path.partition("/")[2]: fields for path, fields in channels.items() if path.partition("/")[0] == head}
        child = next((child for child in children if child.tag == head), None)
        children = [other for other in children if other is not child]
        children.append(_add_noise(child or plugin.make_element(head), plugin, inner))
    if "" in channels:
        noise = next((child for child in children if child.tag == "noise"), None)
        children = [child for child in children if child is not noise]
        children.append(_combine_noise(noise, make_noise_element(plugin, channels[""])))
    return replace(element, children=children)


def _combine_noise(old: Element | None, new: Element) -> Element:
    """Return the noise of a sensor with that of its plug-in."""
    if old is None or (old.get_attribute("type") or old.get_text("type")) == "none":
        return new
    stddev = parse_decimal(old.get_text("stddev", "0"))
    added = parse_decimal(new.get_text("stddev", "0"))
    children = [child for child in old.children if child.tag == "stddev" or new.find(child.tag) is None]
    if stddev is not None and added is not None and new.find("stddev") is not None:
        children = [child for child in children if child.tag != "stddev"]
        children.append(new.make_element("stddev", repr(math.hypot(stddev, added))))
    children += [child for child in new.children if child.tag != "stddev"]
    return replace(old, children=children)

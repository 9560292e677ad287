"""Tables of plug-ins that are sensors.

A dialect is a module with two tables: `MODEL_PLUGINS` for the plug-ins of a model, `SENSOR_PLUGINS` for those in a
`<sensor>`. `registry` joins the tables. An entry has a schema, and either

- `parse`, which returns a specification (plug-ins of the UUV Simulator), or
- `convert`, which returns elements of a `<sensor>`. Their parsers then read them, as if the file had these elements.

`convert` is usually a `NoiseTable`: element of the plug-in -> channel and field of its noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from navsense.core.field_metadata import get_file_fields
from navsense.core.pose import Pose
from navsense.noise.specification import Noise
from navsense.sdf.context import Context, ElementSchema, split_tags
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.values import invalid_value, parse_numbers
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.world import MountedSensor

UUV_RATE = 30.0
"""Hz, the default of plug-ins of the UUV Simulator."""

PLUGIN_ATTRIBUTES = split_tags("name filename")

SENSOR_EXTENSIONS = split_tags("clock navsense:clock navsense:fidelity navsense:latency navsense:faults navsense:part")
"""Elements of a sensor that a converted plug-in of a model may have too."""


SPAWNER_TAG = "robotNamespace"
"""The element of the namespace that Gazebo's spawner adds, see `namespace`."""

NAMESPACE_TAGS = ("robot_namespace", SPAWNER_TAG)
"""Elements of the namespace of a plug-in. The first one has priority, as in the UUV Simulator."""


class PluginSensor(NamedTuple):
    """A sensor in a plug-in.

    frame_suffix: suffix of its frame after the name of the link.
    is_on: the initial switch.
    pose: its pose in the link.
    """

    spec: Sensor
    frame_suffix: str = ""
    is_on: bool = True
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


class ModelPlugin(NamedTuple):
    """A plug-in of a model that is a sensor.

    schema: the elements of the plug-in.
    sensor_type: the type of its sensor.
    parse: returns the specification, from the plug-in and the other sensors of the model; None for a plug-in with
        problems, which are already reported. Without it, `convert` is used.
    convert: returns the elements of a `<sensor>` of that type.
    tags: the elements with link, topic, rate and frame.
    """

    schema: ElementSchema
    sensor_type: str
    parse: Callable[[Context, Element, SensorContext, Sequence[MountedSensor]], PluginSensor | None] | None = None
    convert: Converter | None = None
    tags: PluginTags = UUV_TAGS


class SensorPlugin(NamedTuple):
    """A plug-in in a `<sensor>`.

    schema: the elements of the plug-in.
    sensor_types: the types of sensors that it belongs to, by their names in navsense.
    apply: returns the sensor with the values of the plug-in as its elements.
    finish: returns the specification with what elements of a sensor cannot describe.
    """

    schema: ElementSchema
    sensor_types: frozenset[str]
    apply: Callable[[Context, Element, Element], Element]
    finish: Callable[[Context, Element, Sensor], Sensor] = lambda _context, _plugin, spec: spec


def make_plugin_schema(
    tags: PluginTags | None = None, children: str = "", *, unsupported: Mapping[str, str] | None = None
) -> ElementSchema:
    """Return the schema of a converted plug-in with the elements of `tags`, `children` and those of navsense."""
    common = tags.list_tags() | SENSOR_EXTENSIONS if tags else frozenset()
    return ElementSchema(
        children=common | split_tags(children), unsupported=unsupported or {}, attributes=PLUGIN_ATTRIBUTES
    )


def find_declared_namespace(plugin: Element, tag: str = "") -> str:
    """Return the namespace that a plug-in declares, also in its element `tag`; "" without one."""
    texts = (plugin.get_text(name) for name in (tag, *NAMESPACE_TAGS))
    return next((text.strip("/") for text in texts if text), "")


def parse_topic(element: Element, tag: str, namespace_tag: str = UUV_TAGS.namespace) -> str:
    """Return the topic of a child in the namespace of the plug-in; "" without one."""
    topic = join_ros_topic(find_declared_namespace(element, namespace_tag), element.get_text(tag))
    return (normalize_topic(topic) or "") if topic else ""


def join_ros_topic(namespace: str, topic: str) -> str:
    """Return a topic by the rules of ROS: one with a leading slash is absolute; "" without a topic.

    >>> from navsense.sdf.plugins.base import join_ros_topic
    >>> join_ros_topic("robot/", "imu/data"), join_ros_topic("robot", "/imu")
    ('/robot/imu/data', '/imu')
    """
    if not topic.strip("/"):
        return ""
    parts = [topic.strip("/")] if topic.startswith("/") else [namespace.strip("/"), topic.strip("/")]
    return "/" + "/".join(filter(None, parts))


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
    child = plugin.find(tag)
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

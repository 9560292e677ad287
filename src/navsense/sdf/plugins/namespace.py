"""The ROS namespace of the plug-ins of a model.

Gazebo's spawner (`spawn_model -robot_namespace NAME`) adds `<robotNamespace>NAME</robotNamespace>` to each plug-in
without one. A file has no spawner. The namespace of a plug-in is then the first of:

1. its own `<robotNamespace>`, `<robot_namespace>` of the UUV Simulator, or `<ros><namespace>` of ROS 2
2. the namespace that the caller gives, as the spawner does
3. for the range plug-in of a beam of the UUV Simulator's DVL, the namespace in which the DVL expects its topic
4. for the IMU plug-in of gazebo_ros_pkgs in a sensor, in ROS 1: the name of the model
5. no namespace

Rule 3 is for the macros of the UUV Simulator: the DVL has a namespace, the range plug-ins rely on the spawner.
As in ROS, a name that starts with a slash is absolute: the namespace does not change it.
Source: gazebo_ros, `GazeboRosApiPlugin::walkChildAddRobotNamespace`; ROS 1, names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from navsense.core.errors import SdfError
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.plugin_files import is_among
from navsense.sdf.plugins import px4
from navsense.sdf.ros_names import (
    COMMON_NAMESPACE,
    NAMESPACE_RULE,
    NAMESPACE_TAGS,
    ROS2_TAG,
    SPAWNER_TAG,
    add_ros2_namespace,
    check_namespace,
    find_declared_namespace,
    is_ros1,
    join_ros_topic,
)
from navsense.sdf.schema import UUV_DVL_FILE
from navsense.sdf.xml_reader import Element

BEAM_TOPIC_TAGS = tuple(f"beam_topic_{i}" for i in range(4))
"""Elements of the UUV Simulator's DVL with the topics of its range sensors."""


TRANSPORT_FILES = (*px4.MODEL_PLUGINS, *px4.SENSOR_PLUGINS)
"""Plug-ins that publish by the transport of Gazebo, not by ROS."""


def parse_namespace(text: str | None) -> str:
    """Return a ROS namespace without slashes at its ends; "" for None. Raises `SdfError` for an invalid one.

    It must be valid in ROS 1 and in ROS 2, because a robot can have plug-ins of both.
    """
    if text is None:
        return ""
    namespace = text.strip().strip("/")
    if not COMMON_NAMESPACE.fullmatch(namespace):
        allowed = f"{NAMESPACE_RULE}, the first a letter, no digit after a /"
        raise SdfError("namespace", text, allowed=allowed, remedy="write the namespace of the spawner, as in rexrov")
    return namespace


def find_beam_namespaces(model: Element) -> dict[str, str]:
    """Return the namespaces of the range plug-ins of a model by their relative topic, for the beams of its DVLs.

    A topic that a DVL expects without a further namespace, or in several namespaces, is not in the result.
    """
    namespaces: dict[str, set[str]] = {}
    expected: set[str] = set()
    for plugin in model.walk():
        if plugin.tag == "plugin" and is_among(plugin.get_attribute("filename") or "", (UUV_DVL_FILE,)):
            namespace = find_declared_namespace(plugin)
            for child in plugin.find_all(*BEAM_TOPIC_TAGS):
                namespaces.setdefault(child.text, set()).add(namespace)
                expected.add(join_ros_topic(namespace, child.text).strip("/"))
    return {
        topic: next(iter(names))
        for topic, names in namespaces.items()
        if topic and len(names) == 1 and topic not in expected
    }


def add_namespace(
    context: Context,
    plugin: Element,
    schema: ElementSchema,
    beam_namespaces: Mapping[str, str] = MappingProxyType({}),
    default: str = "",
) -> Element:
    """Return a plug-in with the namespace of the caller or of its DVL, if it has none and its schema accepts one.

    Adds a problem for an invalid namespace. `beam_namespaces` are those of the model, see `find_beam_namespaces`.
    `default` is the namespace of a plug-in of ROS 1 without another one.
    """
    check_namespace(context, plugin, is_ros=not is_among(plugin.get_attribute("filename") or "", TRANSPORT_FILES))
    namespace = context.namespace or beam_namespaces.get(plugin.get_text("topicName"), "")
    if ROS2_TAG in schema.children and not is_ros1(plugin):
        return add_ros2_namespace(plugin, namespace) if namespace else plugin
    namespace = namespace or default
    if not namespace or SPAWNER_TAG not in schema.children or plugin.find(*NAMESPACE_TAGS) is not None:
        return plugin
    return replace(plugin, children=[*plugin.children, plugin.make_element(SPAWNER_TAG, namespace)])

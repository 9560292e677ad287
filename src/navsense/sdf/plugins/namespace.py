"""The ROS namespace of the plug-ins of a model.

Gazebo's spawner (`spawn_model -robot_namespace NAME`) adds `<robotNamespace>NAME</robotNamespace>` to each plug-in
without one. A file has no spawner. The namespace of a plug-in is then the first of:

1. its own `<robotNamespace>`, or `<robot_namespace>` of the UUV Simulator
2. the namespace that the caller gives, as the spawner does
3. for the range plug-in of a beam of the UUV Simulator's DVL, the namespace in which the DVL expects its topic
4. no namespace

Rule 3 is for the macros of the UUV Simulator: the DVL has a namespace, the range plug-ins rely on the spawner.
As in ROS, a name that starts with a slash is absolute: the namespace does not change it.
Source: gazebo_ros, `GazeboRosApiPlugin::walkChildAddRobotNamespace`; ROS 1, names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from navsense.core.errors import SdfError
from navsense.sdf.context import Context
from navsense.sdf.names import normalize_topic
from navsense.sdf.schema import RANGE_PLUGIN_FILE, UUV_DVL_FILE
from navsense.sdf.xml_reader import Element

SPAWNER_TAG = "robotNamespace"
"""The element that the spawner adds."""

BEAM_TOPIC_TAGS = tuple(f"beam_topic_{i}" for i in range(4))
"""Elements of the UUV Simulator's DVL with the topics of its range sensors."""

NAMESPACE_TAGS = ("robot_namespace", SPAWNER_TAG)
"""Elements of the namespace of a plug-in. The first one has priority, as in the UUV Simulator."""


def parse_namespace(text: str | None) -> str:
    """Return a ROS namespace without slashes at its ends; "" for None. Raises `SdfError` for another text."""
    namespace = (text or "").strip().strip("/")
    if text is None:
        return ""
    if not namespace or normalize_topic(namespace) != f"/{namespace}":
        allowed = "must be a ROS namespace: letters, digits, _ and / between them"
        raise SdfError("namespace", text, allowed=allowed, remedy="write the namespace of the spawner, as in rexrov")
    return namespace


def find_declared_namespace(plugin: Element) -> str:
    """Return the namespace that a plug-in declares, without slashes at its ends; "" without one."""
    return next((text.strip("/") for text in map(plugin.get_text, NAMESPACE_TAGS) if text), "")


def find_beam_namespaces(model: Element) -> dict[str, str]:
    """Return the namespaces of the range plug-ins of a model by their relative topic, for the beams of its DVLs.

    A topic that a DVL expects without a further namespace, or in several namespaces, is not in the result.
    """
    namespaces: dict[str, set[str]] = {}
    expected: set[str] = set()
    for plugin in model.walk():
        if plugin.tag == "plugin" and plugin.get_attribute("filename") == UUV_DVL_FILE:
            namespace = find_declared_namespace(plugin)
            for child in plugin.find_all(*BEAM_TOPIC_TAGS):
                namespaces.setdefault(child.text, set()).add(namespace)
                expected.add(join_topic(namespace, child.text).strip("/"))
    return {
        topic: next(iter(names))
        for topic, names in namespaces.items()
        if topic and len(names) == 1 and topic not in expected
    }


def add_namespace(context: Context, element: Element, beam_namespaces: Mapping[str, str]) -> Element:
    """Return a plug-in with a namespace, or a sensor whose plug-ins have one, by the rules of the module.

    `beam_namespaces` are those of the model, see `find_beam_namespaces`.
    """
    if element.tag != "plugin":
        if element.find("plugin") is None:
            return element
        children = [
            add_namespace(context, child, beam_namespaces) if child.tag == "plugin" else child
            for child in element.children
        ]
        return replace(element, children=children)
    is_range_plugin = element.get_attribute("filename") == RANGE_PLUGIN_FILE
    default = beam_namespaces.get(element.get_text("topicName"), "") if is_range_plugin else ""
    namespace = context.namespace or default
    if not namespace or element.find(*NAMESPACE_TAGS) is not None:
        return element
    return replace(element, children=[*element.children, element.make_element(SPAWNER_TAG, namespace)])


def join_topic(namespace: str, name: str) -> str:
    """Return the name of a topic in a namespace; a name with a leading slash is absolute. Without a name it is ""."""
    if name.startswith("/") or not namespace or not name:
        return name
    return f"{namespace.strip('/')}/{name}"

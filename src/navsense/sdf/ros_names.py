"""ROS names of plug-ins: namespaces and topics, in ROS 1 and ROS 2.

    <robotNamespace>bot</robotNamespace> <topicName>imu</topicName>                 ROS 1: /bot/imu
    <ros> <namespace>bot</namespace> <remapping>~/out:=imu</remapping> </ros>       ROS 2: /bot/imu

A plug-in with `<ros>` is one of ROS 2. Without it, an element of ROS 1 makes it one of ROS 1. A topic with a leading
slash is absolute: the namespace does not change it. In ROS 2, `~` is the name of the plug-in.

An invalid namespace is an error: the constructor of the node throws an exception, so the plug-in does not start.
Source: gazebo_ros, `GazeboRosApiPlugin` (ROS 1) and `node.cpp` (ROS 2); names and remapping of ROS 1 and ROS 2; roscpp,
`names::validate`; rmw, `validate_namespace`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from navsense.core.names import find_similar_names
from navsense.sdf.context import Context, make_schema
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element

SPAWNER_TAG = "robotNamespace"
"""The element of the namespace that Gazebo's spawner adds, see `plugins.namespace`."""

NAMESPACE_TAGS = ("robot_namespace", SPAWNER_TAG)
"""Elements of the namespace of a plug-in. The first one has priority, as in the UUV Simulator."""

ROS2_TAG = "ros"

ROS2_SCHEMA = make_schema(
    "namespace",
    repeatable="remapping argument",
    unsupported={"parameter": "the node has no parameters", "qos": "the recording defines the quality of service"},
    strict=None,
)
"""Schema of `ROS2_TAG`, as strict as that of its plug-in."""

ROS1_TAGS = (
    *("robotNamespace", "bodyName", "serviceName", "topicName", "frameName", "gaussianNoise", "updateRate"),
    *("updateRateHZ", "outputType", "radiationType", "cameraName", "cameraInfoTopicName", "imageTopicName"),
)
"""Elements that only the plug-ins of gazebo_ros_pkgs for ROS 1 have, not those for ROS 2 with the same file."""


ROS1_NODE = "gazebo"
"""Node of all plug-ins in ROS 1, for which `~` stands in a name."""

ROS1_NAMESPACE = re.compile(r"([A-Za-z~/][A-Za-z0-9_/]*)?")
ROS2_NAMESPACE = re.compile(r"/?([A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*)?")

COMMON_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
"""A namespace of both versions without slashes at its ends."""

_MIN_SIMILARITY = 0.8
"""Minimum similarity (of 1) of the last parts of two topics for a warning about a remapping."""

NAMESPACE_RULE = "must be a ROS namespace: letters, digits, _ and / between them"


def check_namespace(context: Context, plugin: Element, *, is_ros: bool = True) -> None:
    """Add a problem if a plug-in declares an invalid namespace.

    For a plug-in that uses the transport of Gazebo instead of ROS it is a warning: its names may have any character.
    """
    ros = plugin.find(ROS2_TAG)
    pattern = ROS1_NAMESPACE if ros is None else ROS2_NAMESPACE
    rule = NAMESPACE_RULE + (", beginning with a letter" if ros is None else ", no digit after a /")
    for child in plugin.find_all(*NAMESPACE_TAGS) if ros is None else ros.find_all("namespace"):
        if pattern.fullmatch(child.text):
            continue
        if is_ros:
            remedy = "the plug-in does not start with this name; give another one"
            context.add_problem(invalid_value(child, child.text, rule, parent=plugin.tag, remedy=remedy))
        else:
            reason = "is not a ROS namespace: programs of ROS cannot subscribe to the topic"
            context.add_note("warning", f"<{plugin.tag}><{child.tag}>: {child.text}", reason, child.where)


def is_ros1(plugin: Element) -> bool:
    """Return True for a plug-in of ROS 1, if its file has versions for both."""
    return plugin.find(ROS2_TAG) is None and plugin.find(*ROS1_TAGS) is not None


def find_declared_namespace(plugin: Element, tag: str = "") -> str:
    """Return the namespace that a plug-in declares, also in its element `tag`; "" without one."""
    ros = plugin.find(ROS2_TAG)
    texts = [plugin.get_text(name) for name in (tag, *NAMESPACE_TAGS)] if ros is None else [ros.get_text("namespace")]
    namespace = next((text.strip("/") for text in texts if text), "")
    return f"{ROS1_NODE}{namespace[1:]}" if namespace.startswith("~") else namespace


def add_ros2_namespace(plugin: Element, namespace: str) -> Element:
    """Return a plug-in of ROS 2 with a namespace; its own namespace has priority."""
    ros = plugin.find(ROS2_TAG) or plugin.make_element(ROS2_TAG)
    if ros.find("namespace") is not None:
        return plugin
    ros = replace(ros, children=[*ros.children, ros.make_element("namespace", namespace)])
    return replace(plugin, children=[*(child for child in plugin.children if child.tag != ROS2_TAG), ros])


def join_ros_topic(namespace: str, topic: str) -> str:
    """Return a topic by the rules of ROS: one with a leading slash is absolute; "" without a topic.

    >>> from navsense.sdf.ros_names import join_ros_topic
    >>> join_ros_topic("robot/", "imu/data"), join_ros_topic("robot", "/imu")
    ('/robot/imu/data', '/imu')
    """
    if not topic.strip("/"):
        return ""
    parts = [topic.strip("/")] if topic.startswith("/") else [namespace.strip("/"), topic.strip("/")]
    return "/" + "/".join(filter(None, parts))


def resolve_ros2_topic(plugin: Element, topic: str) -> str:
    """Return a topic of a plug-in of ROS 2 after its remappings, in its namespace."""
    result = full_name = _resolve(plugin, topic)
    for source, target, _ in _list_remappings(plugin):
        result = _resolve(plugin, target) if _resolve(plugin, source) == full_name else result
    return result


def warn_about_remappings(context: Context, plugin: Element, topic: str) -> None:
    """Add a warning for each remapping of a name that is similar to the only topic of a plug-in of ROS 2.

    A remapping of another name is one of a topic that navsense does not publish.
    """
    full_name = _resolve(plugin, topic)
    last_part = full_name.rpartition("/")[2]
    for source, _, element in _list_remappings(plugin):
        name = _resolve(plugin, source)
        if name != full_name and find_similar_names(name.rpartition("/")[2], [last_part], similarity=_MIN_SIMILARITY):
            reason = f"has no effect: the topic of the plug-in is {full_name}; remap {topic}"
            context.add_note("warning", f"<ros><{element.tag}>: {element.text}", reason, element.where)


def _list_remappings(plugin: Element) -> Iterator[tuple[str, str, Element]]:
    """Yield the source and the target of each remapping, and its element."""
    ros = plugin.find(ROS2_TAG)
    for element in ros.find_all("remapping", "argument") if ros is not None else ():
        source, _, target = (part.strip() for part in element.text.rpartition("--remap")[2].partition(":="))
        if target:
            yield source, target, element


def _resolve(plugin: Element, topic: str) -> str:
    """Return the full name of a topic, with the name of the node for a leading `~`."""
    if topic.startswith("~"):
        topic = f"{plugin.get_attribute('name') or ''}/{topic[1:].lstrip('/')}"
    return join_ros_topic(find_declared_namespace(plugin), topic)

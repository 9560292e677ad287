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
from dataclasses import replace

from navsense.sdf.context import Context
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element

SPAWNER_TAG = "robotNamespace"
"""The element of the namespace that Gazebo's spawner adds, see `plugins.namespace`."""

NAMESPACE_TAGS = ("robot_namespace", SPAWNER_TAG)
"""Elements of the namespace of a plug-in. The first one has priority, as in the UUV Simulator."""

ROS2_TAG = "ros"

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
    namespace, node = find_declared_namespace(plugin), plugin.get_attribute("name") or ""
    full_name = join_ros_topic(namespace, _expand(topic, node))
    ros, result = plugin.find(ROS2_TAG), full_name
    for remapping in ros.find_all("remapping", "argument") if ros is not None else ():
        source, _, target = (part.strip() for part in remapping.text.rpartition("--remap")[2].partition(":="))
        if target and join_ros_topic(namespace, _expand(source, node)) == full_name:
            result = join_ros_topic(namespace, _expand(target, node))
    return result


def _expand(topic: str, node: str) -> str:
    """Return a topic with the name of the node for a leading `~`."""
    return f"{node}/{topic[1:].lstrip('/')}" if topic.startswith("~") else topic

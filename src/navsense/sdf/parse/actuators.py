"""Actuators in the file of a model: drive plug-ins, thrusters and actuated joints.

navsense runs no actuator. A model with an actuator and without a motion is stationary, and its world has a warning
(`navsense.world`).

A joint is actuated if a plug-in of the model names it, if its `<limit>` has an `<effort>` above 0, or if a
`<transmission>` or `<ros2_control>` of URDF drives it. A drive plug-in has one of the words of
`DRIVE_WORDS` in its file or name. The words cover Gazebo, Gazebo Classic, the UUV Simulator, VRX, RotorS, PX4 and
ArduPilot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from navsense.sdf.schema import ACTUATOR_TAG
from navsense.sdf.values import is_effort
from navsense.sdf.xml_reader import Element

DRIVE_WORDS = re.compile(
    r"drive(?!r)|thruster|thrust_|ackermann|mecanum|tracked|velocity[-_]?control|motor|multicopter|planar_move"
    r"|joint.*control|ros2?_control|trajectory[-_]?follow|ardupilot|propeller|fin_plugin|apply[-_]?joint[-_]?force",
    re.IGNORECASE,
)
"""Words in the file or the name of a plug-in that moves a model."""


def find_actuators(model: Element) -> tuple[str, ...]:
    """Return descriptions of the actuators of a model and its nested models; plug-ins come before joints."""
    parts = list(_walk_candidates(model))
    driven = {text for part in parts if part.tag == "plugin" for text in (element.text for element in part.walk())}
    found: dict[str, None] = {}
    for part in parts:
        name = part.get_attribute("name") or ""
        if part.tag == ACTUATOR_TAG:
            found[name] = None
        elif part.tag == "plugin":
            file = part.get_attribute("filename") or ""
            if DRIVE_WORDS.search(file) or DRIVE_WORDS.search(name):
                found[f"plug-in {file or name}"] = None
        elif part.get_attribute("type") != "fixed" and (name in driven or _has_effort(part)):
            found[f"joint {name}"] = None
    return tuple(sorted(found, key=lambda words: words.startswith("joint")))


def _walk_candidates(element: Element) -> Iterator[Element]:
    """Yield the joints, the plug-ins and the URDF actuators in a model, except plug-ins of sensors."""
    for child in element.children:
        if child.tag in ("joint", "plugin", ACTUATOR_TAG):
            yield child
        if child.tag not in ("sensor", "plugin"):
            yield from _walk_candidates(child)


def _has_effort(joint: Element) -> bool:
    """Return True if an axis of a joint has the effort limit of an actuator."""
    limits = (axis.find("limit") for axis in joint.find_all("axis", "axis2"))
    efforts = (limit.find("effort") for limit in limits if limit is not None)
    return any(is_effort(effort.text) for effort in efforts if effort is not None)

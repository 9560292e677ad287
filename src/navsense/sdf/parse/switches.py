"""The switch of a sensor: its state at the start, and scheduled switches.

    <always_on>false</always_on>                              of a sensor; <alwaysOn>, <is_on> of plug-ins
    <navsense:switch time="10">on</navsense:switch>           s, true time
    <navsense:switch time="60">off</navsense:switch>

A sensor is on unless the file has false. SDF's default is false too, but there it means "on while a program
subscribes": a run that is recorded subscribes to every sensor.
"""

from __future__ import annotations

from dataclasses import replace

from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_flag
from navsense.sdf.schema import SWITCH
from navsense.sdf.values import invalid_value, map_spec_errors, parse_choice, require_attribute_number
from navsense.sdf.xml_reader import Element
from navsense.world import Switch

SWITCH_TAG = "navsense:switch"

STATES = ("on", "off")

STATE_TAGS = ("always_on", "alwaysOn", "is_on")
"""Elements of the state at the start: of SDF, of gazebo_ros_pkgs, of the UUV Simulator."""


def parse_is_on(context: Context, element: Element) -> bool:
    """Return the state at the start of a sensor or a plug-in."""
    child = element.find(*STATE_TAGS)
    return child is None or parse_child_flag(context, element, child.tag, default=True)


def copy_state(context: Context, sensor: Element, plugin: Element) -> Element:
    """Return a sensor with the state at the start that its plug-in declares; that of the sensor has priority."""
    child = plugin.find(*STATE_TAGS)
    if child is None or sensor.find(*STATE_TAGS) is not None:
        return sensor
    text = str(parse_is_on(context, plugin)).lower()
    return replace(sensor, children=[*sensor.children, child.make_element(STATE_TAGS[0], text)])


def parse_switches(context: Context, element: Element) -> tuple[Switch, ...]:
    """Return the scheduled switches of a sensor or a plug-in. A second switch at one time is a problem."""
    switches: dict[float, Switch] = {}
    for child in element.find_all(SWITCH_TAG):
        with context.collect_errors():
            context.check(child, SWITCH)
            time, on = require_attribute_number(child, "time"), parse_choice(child, STATES) == "on"
            with map_spec_errors(child):
                switch = Switch(time, on)
            if switches.setdefault(time, switch) is not switch:
                allowed = "must differ from the times of the other switches"
                raise invalid_value(child, f"{time:g} s", allowed, attribute="time")
    return tuple(switches.values())

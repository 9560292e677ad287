"""The switch of a sensor: its state at the start, and scheduled switches.

    <always_on>false</always_on>                              of a sensor; UUV Simulator: <is_on>false</is_on>
    <navsense:switch time="10">on</navsense:switch>           s, true time
    <navsense:switch time="60">off</navsense:switch>

A sensor is on unless the file says false. SDF's default is false too, but there it means "on while a program
subscribes": a run that is recorded subscribes to every sensor.
"""

from __future__ import annotations

from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_flag
from navsense.sdf.schema import SWITCH
from navsense.sdf.values import invalid_value, map_spec_errors, parse_choice, require_attribute_number
from navsense.sdf.xml_reader import Element
from navsense.world import Switch

SWITCH_TAG = "navsense:switch"

STATES = ("on", "off")


def parse_is_on(context: Context, element: Element, tag: str = "always_on") -> bool:
    """Return the state at the start by the child `tag` of a sensor or a plug-in."""
    return parse_child_flag(context, element, tag, default=True)


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

"""Range sensors: `<ray>` and `<lidar>` with one beam, `<sonar>`, and `<range>` of navsense.

    <sensor type="range">                                      of navsense, such as an acoustic altimeter
      <range>
        <min>0.5</min> <max>100</max> <resolution>0.01</resolution>           m
        <noise type="gaussian"> <stddev>0.05</stddev> </noise>                m
        <beam width_deg="10" rings="3"> <axis>1 0 0</axis> </beam>            full width; default axis: x
        <sound speed="1500"/>                                                 assumed speed, m/s; default: the true one
        <own_hull>false</own_hull>                                            true: rays hit the sensor's own model
      </range>
    </sensor>

`<ray>` and `<lidar>` are elements of SDF. They accept `<navsense:sound>` and `<navsense:own_hull>` in the sensor. All
their rays make one return. A sensor whose angles span more than `MAX_BEAM_ANGLE`, or whose plug-in publishes each ray,
is a scanner. Scanners are not simulated, except with the plug-in of `gazebo_range`. `<sonar>` is a cone along -z of the
sensor, as in Gazebo Classic (`SonarSensor`), with its radius at its maximum range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from navsense.core.errors import SdfError
from navsense.core.text import parse_decimal
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sdf.binder import ChildParser, ElementBinding
from navsense.sdf.context import LEAF, Context, ElementSchema
from navsense.sdf.parse.children import (
    parse_child_choice,
    parse_child_count,
    parse_child_flag,
    parse_child_number,
    parse_child_vector,
)
from navsense.sdf.parse.noise import NOISE, parse_child_noise, parse_noise
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugin_files import is_among
from navsense.sdf.schema import BEAM, RAY, RAY_RANGE, SAMPLES, SCAN, SONAR
from navsense.sdf.values import invalid_value, map_spec_errors, parse_attribute_number, require_child
from navsense.sdf.xml_reader import Element
from navsense.sensors.range import Cone, Fan, Range, Sound

SOUND_BINDING = ElementBinding(Sound, attributes=True)
RANGE_BINDING = ElementBinding(Range, parsers={"sound": SOUND_BINDING.read}, other_children=("resolution",))
RAY_NOISE = ElementSchema(children=NOISE.schema.children | {"type"})

MAX_BEAM_ANGLE = math.radians(90.0)
"""rad, the largest span of a `<scan>` that is simulated as one beam."""

SONAR_AXIS = (0.0, 0.0, -1.0)

FORWARD = (1.0, 0.0, 0.0)


SCANNER_FILES = ("gazebo_ros_laser", "gazebo_ros_gpu_laser", "gazebo_ros_block_laser")
"""Files of plug-ins that publish each ray of a scan."""


def explain_scanner(element: Element) -> str:
    """Return why a sensor is a scanner, which is not simulated; "" for a range sensor."""
    has_rays = any(part.tag == "samples" and part.text not in ("", "1") for part in element.walk())
    for plugin in element.find_all("plugin"):
        file = plugin.get_attribute("filename") or ""
        if has_rays and is_among(file, SCANNER_FILES):
            return f"scanners are not simulated, only beams: {file} publishes each ray"
    for type_element in element.find_all("ray", "lidar"):
        for scan in type_element.find_all("scan"):
            for side in scan.find_all("horizontal", "vertical"):
                ends = [parse_decimal(child.text) for tag in ("min_angle", "max_angle") for child in side.find_all(tag)]
                if len(ends) == 2 and None not in ends and abs((ends[1] or 0.0) - (ends[0] or 0.0)) > MAX_BEAM_ANGLE:
                    return f"scanners are not simulated, only beams: its angles span more than {MAX_BEAM_ANGLE:.4g} rad"
    return ""


def parse(context: Context, type_element: Element | None, sensor_context: SensorContext) -> Range:
    """Return the specification of a type element. Raises `SdfError`."""
    if type_element is None:
        allowed = "requires a type element <ray>, <lidar>, <sonar> or <range> with a maximum"
        raise SdfError("<sensor>", sensor_context.name, where=sensor_context.where, allowed=allowed)
    with map_spec_errors(type_element):
        return RANGE_ELEMENT_PARSERS[type_element.tag](context, type_element, sensor_context)


def _parse_scan_axis(context: Context, element: Element | None, samples: int) -> tuple[int, float, float]:
    """Return the number of samples of a plane of a scan, and its angles (rad)."""
    if element is None:
        return (1, 0.0, 0.0)
    context.check(element, SAMPLES)
    if parse_child_number(context, element, "resolution", 1.0, above=0.0) != 1.0:
        reason = "has no effect: each ray is cast, and the nearest return is used"
        context.add_note("unsupported", f"<{element.tag}><resolution>", reason, element.where)
    count = parse_child_count(context, element, "samples", samples)
    minimum, maximum = (parse_child_number(context, element, tag, 0.0) for tag in ("min_angle", "max_angle"))
    return count, minimum, maximum


def _parse_sound(context: Context, type_element: Element) -> Sound | None:
    """Return the speed of sound that a sonar assumes; None for a light sensor."""
    element = type_element.find("sound", "navsense:sound")
    return None if element is None else SOUND_BINDING.read(context, element)


def _parse_own_hull(context: Context, type_element: Element) -> bool:
    return parse_child_flag(context, type_element, "navsense:own_hull", default=False)


def _parse_ray(context: Context, type_element: Element, sensor_context: SensorContext) -> Range:
    """Return the specification of a `<ray>` or `<lidar>`."""
    context.check(type_element, RAY)
    scan = context.require_child(type_element, "scan", SCAN)
    limits = context.require_child(type_element, "range", RAY_RANGE)
    horizontal = _parse_scan_axis(context, scan.find("horizontal"), 640)
    beam = Fan(*horizontal, *_parse_scan_axis(context, scan.find("vertical"), 1))
    minimum, maximum = (parse_child_number(context, limits, tag, 0.0, minimum=0.0) for tag in ("min", "max"))
    noise = _apply_resolution(context, limits, _parse_ray_noise(context, type_element, sensor_context))
    sound = _parse_sound(context, type_element)
    return Range(noise, minimum, maximum, beam, sound, _parse_own_hull(context, type_element))


def _parse_ray_noise(context: Context, type_element: Element, sensor_context: SensorContext) -> Noise:
    """Return the noise of a `<ray>`, whose type is an element."""
    element = type_element.find("noise")
    if element is None:
        return NO_NOISE
    child = element.find("type")
    if child is None:
        attributes = {"type": "gaussian", **element.attributes}
        return parse_noise(context, replace(element, attributes=attributes), classic=sensor_context.classic)
    context.check(element, RAY_NOISE)
    context.check(child, LEAF)
    children = [sibling for sibling in element.children if sibling is not child]
    noise = replace(element, attributes={"type": child.text}, children=children)
    return parse_noise(context, noise, classic=sensor_context.classic)


def _apply_resolution(context: Context, parent: Element, noise: Noise) -> Noise:
    """Return the noise with the step (m) of the child `<resolution>`."""
    step = parse_child_number(context, parent, "resolution", 0.0, minimum=0.0)
    return replace(noise, precision=step) if step else noise


def _parse_sonar(context: Context, type_element: Element, sensor_context: SensorContext) -> Range:
    """Return the specification of a `<sonar>`."""
    context.check(type_element, SONAR)
    shape = parse_child_choice(context, type_element, "geometry", "cone", ("cone", "sphere"))
    minimum = parse_child_number(context, type_element, "min", 0.0, minimum=0.0)
    maximum = parse_child_number(context, type_element, "max", 1.0, above=0.0)
    radius = parse_child_number(context, type_element, "radius", 0.5, above=0.0)
    beam = Cone(2.0 * math.atan2(radius, maximum), axis=SONAR_AXIS)
    if shape == "sphere":
        beam = Cone(2.0 * math.pi, rings=12, axis=SONAR_AXIS)
    noise = parse_child_noise(context, type_element, classic=sensor_context.classic)
    sound = _parse_sound(context, type_element) or Sound()
    return Range(noise, minimum, maximum, beam, sound, _parse_own_hull(context, type_element))


def _parse_range(context: Context, type_element: Element, sensor_context: SensorContext) -> Range:
    """Return the specification of a `<range>`."""
    context.check(type_element, RANGE_BINDING.schema)
    require_child(type_element, "max", "must be given (m)")
    parsers: dict[str, ChildParser] = {
        "range_noise": partial(parse_noise, classic=sensor_context.classic),
        "beam": _parse_cone,
    }
    fields = RANGE_BINDING.read_fields(context, type_element, parsers)
    fields["range_noise"] = _apply_resolution(context, type_element, fields.get("range_noise", NO_NOISE))
    return Range(**{"maximum_range": 0.0, **fields})


def _parse_cone(context: Context, element: Element) -> Cone:
    """Return the beam of a `<beam>`. Raises `SdfError`."""
    context.check(element, BEAM)
    width = parse_attribute_number(element, "width_deg", above=0.0)
    rings = parse_attribute_number(element, "rings", above=0.0)
    axis = parse_child_vector(context, element, "axis", FORWARD)
    if width is None:
        return Cone(0.0, 0, axis)
    if rings is None:
        return Cone(math.radians(width), axis=axis)
    if rings != int(rings):
        raise invalid_value(element, element.get_attribute("rings"), "must be a whole number", attribute="rings")
    return Cone(math.radians(width), int(rings), axis)


RANGE_ELEMENT_PARSERS: Mapping[str, Callable[[Context, Element, SensorContext], Range]] = {
    "ray": _parse_ray,
    "lidar": _parse_ray,
    "sonar": _parse_sonar,
    "range": _parse_range,
}
"""Tag of a type element -> parser."""

"""The UUV Simulator's pressure sensor, a `<plugin filename="libuuv_gazebo_ros_subsea_pressure_plugin.so">` of a model.

    <link_name>, <robot_namespace>, <sensor_topic>, <update_rate>       Hz; 30 where not given
    <standard_pressure>101.325</standard_pressure>                      kPa, what is taken for the air's
    <kPa_per_meter>9.80638</kPa_per_meter>                              what is taken for the water's weight
    <noise_sigma>3</noise_sigma> <noise_amplitude>1</noise_amplitude>   kPa, a factor; 0 where not given
    <noise_stddev>3</noise_stddev>                                      kPa, in its earlier versions
    <saturation>3000</saturation>                                       kPa

It is a `Depth` that assumes a constant density, with the product of sigma and amplitude for the deviation of its noise,
as the plug-in has it. Where the world says what water it has, that is what presses on it; elsewhere the pressure is the
plug-in's own, standard_pressure + kPa_per_meter d below height 0. Readings are in Pa, where the plug-in writes kPa into
the same field; above height 0 they are the air's, where some of its versions take the height for a depth. The plug-in
reads its saturation and does nothing with it: here a reading ends there where the file gives it, save under classic.
Source: UUV Simulator, `SubseaPressureROSPlugin`, `ROSBasePlugin` and `pressure_snippets.xacro`, two versions of each.
"""

from __future__ import annotations

import math

from navsense.core.errors import FieldError, SensorError
from navsense.environment.atmosphere import STANDARD_GRAVITY
from navsense.environment.seawater import ConstantDensity
from navsense.noise.channel import Noise
from navsense.sdf.context import Context
from navsense.sdf.parse._mount import Mount
from navsense.sdf.parse.children import error_at, parse_child_number
from navsense.sdf.parse.depth import check_water
from navsense.sdf.xml_reader import Element
from navsense.sensors.depth import Depth

KILOPASCAL = 1000.0
"""Pa."""


def _parse_stddev(context: Context, element: Element) -> float:
    """Return the deviation (kPa) of the noise, with a warning where the amplitude leaves nothing of it."""
    tags = ("noise_sigma", "noise_amplitude", "noise_stddev")
    sigma, amplitude, stddev = (parse_child_number(context, element, tag, 0.0, minimum=0.0) for tag in tags)
    child = element.find("noise_sigma")
    if child is not None and sigma > 0.0 and amplitude == 0.0:
        reason = "acts times <noise_amplitude>, which is 0: the plug-in has no noise"
        context.add_note("warning", f"<plugin><noise_sigma>: {child.text}", reason, child.where)
    return math.hypot(sigma * amplitude, stddev)


def parse(context: Context, element: Element, mount: Mount) -> Depth:
    """Return the data sheet that a plug-in describes. Raise `SdfError` for what no instrument can have."""
    limit = parse_child_number(context, element, "saturation", math.inf, above=0.0) * KILOPASCAL
    weight = parse_child_number(context, element, "kPa_per_meter", 9.80638, above=0.0) * KILOPASCAL
    air = parse_child_number(context, element, "standard_pressure", 101.325, minimum=0.0) * KILOPASCAL
    stddev = _parse_stddev(context, element) * KILOPASCAL
    context.add_note("warning", f"<plugin>: {mount.name}", "readings are in Pa; the plug-in writes kPa", element.where)
    try:
        noise = Noise(stddev=stddev, maximum=math.inf if mount.classic else limit, classic=mount.classic)
        sheet = Depth(noise, ConstantDensity(weight / STANDARD_GRAVITY), air)
    except (FieldError, SensorError) as error:
        raise error_at(element, error) from error
    check_water(context, mount, sheet.assumed)
    return sheet

"""The UUV Simulator's pressure sensor, a `<plugin filename="libuuv_gazebo_ros_subsea_pressure_plugin.so">` of a model.

    <link_name>, <robot_namespace>, <sensor_topic>, <update_rate>       Hz; default 30
    <standard_pressure>101.325</standard_pressure>                      kPa, assumed pressure of the air
    <kPa_per_meter>9.80638</kPa_per_meter>                              assumed specific weight of the water
    <noise_sigma>3</noise_sigma> <noise_amplitude>1</noise_amplitude>   kPa, a factor; default 0
    <noise_stddev>3</noise_stddev>                                      kPa, in its earlier versions
    <saturation>3000</saturation>                                       kPa
    <is_on>true</is_on>

It is a `Depth` that assumes a constant density. As in the plug-in, the standard deviation of its noise is the product
of sigma and amplitude. If the world defines its water, the pressure is that of the water. Otherwise it is that of the
plug-in, standard_pressure + kPa_per_meter d at depth d below height 0.

Differences from the plug-in:

- Readings are in Pa. The plug-in writes kPa into the same field.
- Above height 0 the pressure is that of the air. Some versions of the plug-in use the height as a depth.
- Readings saturate at `<saturation>`, except under classic. The plug-in ignores it.

Source: UUV Simulator, `SubseaPressureROSPlugin`, `ROSBasePlugin` and `pressure_snippets.xacro`, two versions of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from navsense.core.units import STANDARD_GRAVITY
from navsense.environment.seawater import ConstantDensity
from navsense.noise.specification import Noise
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.depth import check_water
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import ModelPlugin, PluginSensor
from navsense.sdf.schema import SUBSEA_PRESSURE_FILE, SUBSEA_PRESSURE_PLUGIN
from navsense.sdf.values import map_spec_errors
from navsense.sdf.xml_reader import Element
from navsense.sensors.depth import Depth
from navsense.world import MountedSensor

KILOPASCAL = 1000.0
"""Pa."""


def _parse_stddev(context: Context, element: Element) -> float:
    """Return the standard deviation (kPa) of the noise, with a warning if the amplitude is 0."""
    tags = ("noise_sigma", "noise_amplitude", "noise_stddev")
    sigma, amplitude, stddev = (parse_child_number(context, element, tag, 0.0, minimum=0.0) for tag in tags)
    child = element.find("noise_sigma")
    if child is not None and sigma > 0.0 and amplitude == 0.0:
        reason = "is multiplied by <noise_amplitude>, which is 0: the plug-in has no noise"
        context.add_note("warning", f"<plugin><noise_sigma>: {child.text}", reason, child.where)
    return math.hypot(sigma * amplitude, stddev)


def parse(
    context: Context, element: Element, sensor_context: SensorContext, _sensors: Sequence[MountedSensor]
) -> PluginSensor:
    """Return the sensor of a plug-in. Raises `SdfError`."""
    limit = parse_child_number(context, element, "saturation", math.inf, above=0.0) * KILOPASCAL
    weight = parse_child_number(context, element, "kPa_per_meter", 9.80638, above=0.0) * KILOPASCAL
    air = parse_child_number(context, element, "standard_pressure", 101.325, minimum=0.0) * KILOPASCAL
    stddev = _parse_stddev(context, element) * KILOPASCAL
    context.add_note(
        "warning", f"<plugin>: {sensor_context.name}", "readings are in Pa; the plug-in writes kPa", element.where
    )
    with map_spec_errors(element):
        noise = Noise(
            stddev=stddev, maximum=math.inf if sensor_context.classic else limit, classic=sensor_context.classic
        )
        spec = Depth(noise, ConstantDensity(weight / STANDARD_GRAVITY), air)
    check_water(context, sensor_context, spec.assumed)
    return PluginSensor(spec)


MODEL_PLUGINS = {SUBSEA_PRESSURE_FILE: ModelPlugin(SUBSEA_PRESSURE_PLUGIN, Depth.type, parse)}

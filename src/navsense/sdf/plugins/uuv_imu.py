"""The UUV Simulator's IMU, a `<plugin filename="libuuv_gazebo_ros_imu_plugin.so">` of a model.

    <gyroscope_noise_density>3.394e-4</gyroscope_noise_density>             rad/s/sqrt(Hz), two-sided
    <gyroscope_random_walk>3.879e-5</gyroscope_random_walk>                 rad/s^2/sqrt(Hz)
    <gyroscope_bias_correlation_time>1000</gyroscope_bias_correlation_time> s
    <gyroscope_turn_on_bias_sigma>8.727e-3</gyroscope_turn_on_bias_sigma>   rad/s
    <accelerometer_noise_density>4e-3</accelerometer_noise_density>         m/s^2/sqrt(Hz), two-sided
    <accelerometer_random_walk>6e-3</accelerometer_random_walk>             m/s^3/sqrt(Hz)
    <accelerometer_bias_correlation_time>300</accelerometer_bias_correlation_time>
    <accelerometer_turn_on_bias_sigma>0.196</accelerometer_turn_on_bias_sigma>      m/s^2
    <static_reference_frame>world</static_reference_frame>                  or world_ned: frame of the orientation

The numbers are the defaults, those of an ADIS16448. `uuv_common` lists the other elements. With the elements in the
notation of `Noise`, each axis has:

    noise_density = density                     sigma_k = density / sqrt(dt)
    dynamic_bias_stddev = random_walk           Gauss-Markov process with the correlation time
    bias_stddev = turn_on_bias_sigma            constant during a run

Differences from the plug-in:

- `<gyroscope_random_walk>`, which the macros write, is read. The plug-in reads `<gyroscope_bias_random_walk>`.
- The Gauss-Markov process is stationary from the first sample. In the plug-in it starts at 0. Under classic it starts
  at the turn-on bias, as with other noises of that fidelity.
- The deviation per sample is that of each step. The plug-in keeps that of its first step.
- The orientation has no noise. In the plug-in its deviation is the square of `<orientation_noise>`.
- The orientation in world_ned is that of the rotated axes. The plug-in multiplies the rotations in another order, and
  its specific force then has the opposite sign.
- Covariances are variances of samples. The plug-in writes squares of densities.

Source: UUV Simulator, `IMUROSPlugin` and `imu_snippets.xacro`; kalibr, IMU noise model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from navsense.core.pose import WORLD_NED
from navsense.core.typing import Quaternion
from navsense.noise.specification import Noise
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import UUV_TAGS, ModelPlugin, PluginSensor, make_plugin_schema
from navsense.sdf.plugins.uuv_common import COMMON_TAGS, FIXED_MESSAGES, parse_amplitude, parse_ned_pose
from navsense.sdf.values import map_spec_errors
from navsense.sdf.xml_reader import Element
from navsense.sensors.imu import Imu
from navsense.world import MountedSensor

DEFAULTS: Mapping[str, float] = MappingProxyType(
    {
        "gyroscope_noise_density": math.radians(70.0 / 3600.0),
        "gyroscope_random_walk": math.radians(8.0 / 3600.0),
        "gyroscope_bias_correlation_time": 1000.0,
        "gyroscope_turn_on_bias_sigma": math.radians(0.5),
        "accelerometer_noise_density": 4e-3,
        "accelerometer_random_walk": 6e-3,
        "accelerometer_bias_correlation_time": 300.0,
        "accelerometer_turn_on_bias_sigma": 0.196,
    }
)
"""Element -> default of the plug-in."""

WALK_TAG, OTHER_WALK_TAG = "gyroscope_random_walk", "gyroscope_bias_random_walk"

REFERENCES: Mapping[str, Quaternion] = MappingProxyType({"world": (1.0, 0.0, 0.0, 0.0), "world_ned": WORLD_NED})
"""Frame of the orientation -> its rotation (w x y z) to the world, as the UUV Simulator publishes it."""


def parse(
    context: Context, element: Element, sensor_context: SensorContext, _sensors: Sequence[MountedSensor]
) -> PluginSensor | None:
    """Return the sensor of a plug-in. Problems give None."""
    problems_before = context.problem_count
    amplitude = parse_amplitude(context, element, sensor_context)
    gyroscope, accelerometer = (
        _parse_noise(context, element, name, amplitude, sensor_context) for name in ("gyroscope", "accelerometer")
    )
    pose, suffix = parse_ned_pose(context, element)
    reference = _parse_reference(context, element)
    if context.problem_count > problems_before:
        return None
    with map_spec_errors(element):
        spec = Imu(gyroscope, gyroscope, gyroscope, accelerometer, accelerometer, accelerometer, reference=reference)
    return PluginSensor(spec, suffix, pose)


def _parse_noise(
    context: Context, element: Element, name: str, amplitude: float, sensor_context: SensorContext
) -> Noise:
    """Return the noise of an axis of the gyroscope or the accelerometer."""
    tags = {part: f"{name}_{part}" for part in ("noise_density", "random_walk", "turn_on_bias_sigma")}
    if tags["random_walk"] == WALK_TAG:
        _warn_about_walk(context, element)
        if element.find(OTHER_WALK_TAG) is not None:
            tags["random_walk"] = OTHER_WALK_TAG
    density, walk, turn_on = (
        amplitude * parse_child_number(context, element, tag, DEFAULTS.get(tag, 0.0), minimum=0.0)
        for tag in tags.values()
    )
    time_tag = f"{name}_bias_correlation_time"
    correlation_time = parse_child_number(context, element, time_tag, DEFAULTS[time_tag], above=0.0)
    return Noise(
        noise_density=density,
        dynamic_bias_stddev=walk,
        dynamic_bias_correlation_time=correlation_time if walk > 0.0 else 0.0,
        bias_stddev=turn_on,
        classic=sensor_context.classic,
    )


def _warn_about_walk(context: Context, element: Element) -> None:
    """Add a warning if the plug-in would use another random walk than that of the file."""
    child = element.find(WALK_TAG)
    if child is None:
        return
    other, default = element.find(OTHER_WALK_TAG), DEFAULTS[WALK_TAG]
    if other is not None:
        context.add_note("warning", f"<plugin><{WALK_TAG}>: {child.text}", f"<{OTHER_WALK_TAG}> is used", child.where)
    elif not math.isclose(parse_child_number(context, element, WALK_TAG, default), default, rel_tol=1e-3, abs_tol=0.0):
        reason = f"is used; the plug-in reads <{OTHER_WALK_TAG}>, with the default {default:.4g}"
        context.add_note("warning", f"<plugin><{WALK_TAG}>: {child.text}", reason, child.where)


def _parse_reference(context: Context, element: Element) -> Quaternion:
    """Return the rotation from the frame of the orientation to the world, with a warning for an unknown frame."""
    child = element.find("static_reference_frame")
    if child is None or child.text in REFERENCES:
        return REFERENCES[child.text if child is not None else "world"]
    reason = f"is not one of {', '.join(REFERENCES)}: the orientation is in the world"
    context.add_note("warning", f"<plugin><{child.tag}>: {child.text}", reason, child.where)
    return REFERENCES["world"]


SCHEMA = make_plugin_schema(
    UUV_TAGS,
    " ".join((COMMON_TAGS, *DEFAULTS, OTHER_WALK_TAG, "static_reference_frame")),
    unsupported={
        "orientation_noise": "the orientation has no noise",
        "noise_sigma": "has no effect in the plug-in",
        "enable_gazebo_messages": FIXED_MESSAGES,
        "reference_link_name": "the orientation is in the world, or in world_ned",
    },
)

MODEL_PLUGINS = {"libuuv_gazebo_ros_imu_plugin.so": ModelPlugin(SCHEMA, Imu.type, parse)}

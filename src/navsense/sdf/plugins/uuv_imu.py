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
from collections.abc import Mapping
from types import MappingProxyType

from navsense.core.typing import Vector
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import (
    ACCELEROMETER,
    CORRELATION_TIME,
    GYROSCOPE,
    NoiseTable,
    NoiseTag,
    make_world_reference,
)
from navsense.sdf.plugins.uuv_common import AMPLITUDE, FIXED_MESSAGES, MODEL_TAGS, refine_by_fidelity
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.sensors.imu import Imu

WALK_TAG, OTHER_WALK_TAG = "gyroscope_random_walk", "gyroscope_bias_random_walk"

DEFAULT_WALK = math.radians(8.0 / 3600.0)
"""rad/s^2/sqrt(Hz)."""

REFERENCES: Mapping[str, Vector] = MappingProxyType(
    {"world": (0.0, 0.0, 0.0), "world_ned": (math.pi, 0.0, math.pi / 2.0)}
)
"""Frame of the orientation -> its roll, pitch and yaw (rad) in the world, as the UUV Simulator publishes it."""


def _make_reference(context: Context, plugin: Element) -> list[Element]:
    """Return the reference of the orientation, with a warning for an unknown frame."""
    child = plugin.find("static_reference_frame")
    frame = "world" if child is None else child.text
    if child is not None and frame not in REFERENCES:
        reason = f"is not one of {', '.join(REFERENCES)}: the orientation is in the world"
        context.add_note("warning", f"<plugin><{child.tag}>: {frame}", reason, child.where)
    return [make_world_reference(plugin, REFERENCES.get(frame, REFERENCES["world"]))]


TABLE = NoiseTable(
    "imu",
    (
        NoiseTag("gyroscope_noise_density", GYROSCOPE, "noise_density", default=math.radians(70.0 / 3600.0)),
        NoiseTag(WALK_TAG, GYROSCOPE, "dynamic_bias_stddev", default=DEFAULT_WALK),
        NoiseTag(OTHER_WALK_TAG, GYROSCOPE, "dynamic_bias_stddev"),
        NoiseTag("gyroscope_bias_correlation_time", GYROSCOPE, CORRELATION_TIME, default=1000.0),
        NoiseTag("gyroscope_turn_on_bias_sigma", GYROSCOPE, "bias_stddev", default=math.radians(0.5)),
        NoiseTag("accelerometer_noise_density", ACCELEROMETER, "noise_density", default=4e-3),
        NoiseTag("accelerometer_random_walk", ACCELEROMETER, "dynamic_bias_stddev", default=6e-3),
        NoiseTag("accelerometer_bias_correlation_time", ACCELEROMETER, CORRELATION_TIME, default=300.0),
        NoiseTag("accelerometer_turn_on_bias_sigma", ACCELEROMETER, "bias_stddev", default=0.196),
    ),
    AMPLITUDE,
    _make_reference,
)


def _warn_about_walk(context: Context, plugin: Element) -> None:
    """Add a warning if the plug-in would use another random walk than that of the file."""
    child = plugin.find(WALK_TAG)
    if child is None:
        return
    if plugin.find(OTHER_WALK_TAG) is not None:
        reason = f"<{OTHER_WALK_TAG}> is used"
        context.add_note("warning", f"<plugin><{WALK_TAG}>: {child.text}", reason, child.where)
        return
    walk = parse_child_number(context, plugin, WALK_TAG, DEFAULT_WALK)
    if not math.isclose(walk, DEFAULT_WALK, rel_tol=1e-3, abs_tol=0.0):
        reason = f"is used; the plug-in reads <{OTHER_WALK_TAG}>, with the default {DEFAULT_WALK:.4g}"
        context.add_note("warning", f"<plugin><{WALK_TAG}>: {child.text}", reason, child.where)


def _refine_imu(context: Context, plugin: Element, spec: Sensor, sensor_context: SensorContext) -> Sensor:
    _warn_about_walk(context, plugin)
    noiseless = Imu(reference=spec.reference) if isinstance(spec, Imu) else spec
    return refine_by_fidelity(context, plugin, spec, sensor_context, noiseless)


MODEL_PLUGINS = {
    "libuuv_gazebo_ros_imu_plugin.so": TABLE.make_plugin(
        MODEL_TAGS,
        "robotNamespace static_reference_frame",
        unsupported={
            "orientation_noise": "the orientation has no noise",
            "noise_sigma": "has no effect in the plug-in",
            "enable_gazebo_messages": FIXED_MESSAGES,
            "reference_link_name": "the orientation is in the world, or in world_ned",
        },
        refine_spec=_refine_imu,
    )
}

"""Plug-ins of gazebo_ros_pkgs for IMU, GPS and ray sensors, of ROS 1 and ROS 2.

    <plugin filename="libgazebo_ros_imu.so">                              of a model, ROS 1
      <bodyName>imu_link</bodyName> <topicName>imu</topicName> <updateRate>100</updateRate>
      <gaussianNoise>0.01</gaussianNoise>                                 rad/s and m/s^2, per sample, all axes
      <xyzOffset>0 0 0</xyzOffset> <rpyOffset>0 0 0</rpyOffset>           m, rad: pose of the sensor in the link
    <plugin filename="libgazebo_ros_imu_sensor.so">                       in a <sensor type="imu">
      <topicName>imu</topicName> <frameName>imu_link</frameName>          ROS 1
      <updateRateHZ>10</updateRateHZ> <gaussianNoise>0</gaussianNoise>    ROS 1, default 1 Hz
      <ros> <namespace>/robot</namespace> <remapping>~/out:=imu</remapping> </ros>     ROS 2
      <frame_name>imu_link</frame_name>                                   ROS 2
      <initialOrientationAsReference>false</initialOrientationAsReference>     the reference, see below
    <plugin filename="libgazebo_ros_gps_sensor.so">                       in a <sensor type="gps">, ROS 2
    <plugin filename="libgazebo_ros_ray_sensor.so">                       in a <sensor type="ray">
      <output_type>sensor_msgs/Range</output_type>                        one range of all rays; ROS 1: <outputType>
      <radiation_type>ultrasound</radiation_type>                         ROS 1: <radiationType>

| of the plug-in | becomes |
|---|---|
| `<topicName>` in `<robotNamespace>` | `<topic>`; the default namespace of ROS 1 is the name of the model |
| `~/out` remapped in `<namespace>` | `<topic>`; without a remapping NAMESPACE/PLUGIN/out |
| `<frameName>`, `<frame_name>` | `<frame_id>` |
| `<updateRateHZ>` | `<update_rate>`, if that is 0 or higher |
| `<gaussianNoise>` | `<stddev>` of each axis, added to the noise of the sensor as a root sum of squares |

By default, the orientation of an IMU in a sensor is in the axes of the world, also if the sensor has an
`<orientation_reference_frame>`. With `<initialOrientationAsReference>` true (ROS 2:
`<initial_orientation_as_reference>`) that element applies, or without it the orientation at the start.

The plug-ins also add `gaussianNoise` to the components of the orientation, which has no noise here.

An IMU measures the angular velocity and the specific force along its own axes: at rest, gravity upwards. navsense
simulates this for `libgazebo_ros_imu.so` too. Its code does not: the acceleration is the change of the velocity in the
world over the time between two samples, without gravity. It rotates this vector, and the angular velocity in the world,
by the orientation of the link, although the inverse leads to the axes of the link. `rpyOffset` rotates the orientation,
`xyzOffset` has no effect. A warning reports the gravity.
Source: ros-simulation/gazebo_ros_pkgs, `gazebo_plugins/src`: `gazebo_ros_imu.cpp`, commit
ce62ae6c0ee9f96525eb10f57fc5836eca235429 (an older version and that for Gazebo 8 and later have the same law);
`gazebo_ros_imu_sensor.cpp`, commit 0c9657de57e4ac9677db9037c719939596f62dd5, and its versions for Noetic and ROS 2;
`gazebo_ros_gps_sensor.cpp`, commit 932f4c372e7f2ffeba1a6823dee4ad294daed024; `gazebo_ros_ray_sensor.cpp`, branch foxy.
"""

from __future__ import annotations

from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_flag
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.plugins.base import (
    ACCELEROMETER,
    GYROSCOPE,
    NoiseTable,
    NoiseTag,
    PluginTags,
    SensorPlugin,
    get_first_text,
    limit_rate,
    make_plugin_schema,
    make_world_reference,
    merge_noise,
    parse_noise_tags,
    parse_topic,
    set_child,
)
from navsense.sdf.plugins.gazebo_range import ULTRASOUND, add_sound, mark_range
from navsense.sdf.ros_names import (
    find_declared_namespace,
    is_ros1,
    join_ros_topic,
    resolve_ros2_topic,
    warn_about_remappings,
)
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor
from navsense.sensors.range import Range

IMU_TAGS = PluginTags(
    "bodyName",
    "robotNamespace",
    "topicName",
    "updateRate",
    "frameName",
    "xyzOffset",
    "rpyOffset",
    default_topic="/default_imu",
    default_rate=0.0,
)

IMU_NOISE = (NoiseTag("gaussianNoise", (*GYROSCOPE, *ACCELEROMETER)),)

IMU_TABLE = NoiseTable("imu", IMU_NOISE, make_children=lambda _, plugin: [make_world_reference(plugin)])

SENSOR_TAGS = ("topicName", "updateRateHZ", "frameName", "gaussianNoise")
"""Elements of the IMU plug-in of ROS 1."""

RAY_TAGS = ("topicName", "frameName", "outputType", "radiationType")
"""Elements of the ray plug-in of ROS 1."""

ROS1_RATE = 1.0
"""Hz."""

REFERENCE = "orientation_reference_frame"

REFERENCE_TAGS = ("initialOrientationAsReference", "initial_orientation_as_reference")

OUTPUT = "~/out"
"""Name of the topic of plug-ins of ROS 2 before it is remapped."""


NO_GRAVITY = "the specific force includes gravity, as an IMU measures it; the plug-in's code has the acceleration only"


NO_FRAME = "the plug-in does not start in Gazebo without it; messages have the frame of the sensor"


def _warn_about_gravity(context: Context, plugin: Element, spec: Sensor, sensor_context: SensorContext) -> Sensor:
    context.add_note("warning", f"<plugin>: {sensor_context.name}", NO_GRAVITY, plugin.where)
    return spec


def _apply_ros2(context: Context, sensor: Element, plugin: Element) -> Element:
    """Return a sensor with topic and frame of a plug-in of ROS 2, which override those of the sensor."""
    warn_about_remappings(context, plugin, OUTPUT)
    source = plugin.find("ros") or plugin
    sensor = set_child(sensor, source.make_element("topic", resolve_ros2_topic(plugin, OUTPUT)), replaces=True)
    frame = plugin.get_text("frame_name")
    return set_child(sensor, plugin.make_element("frame_id", frame), replaces=True) if frame else sensor


def _apply_imu_sensor(context: Context, sensor: Element, plugin: Element) -> Element:
    if not is_ros1(plugin):
        sensor = _apply_ros2(context, sensor, plugin)
    else:
        sensor = limit_rate(context, sensor, plugin, "updateRateHZ", ROS1_RATE)
        # The plug-in puts the namespace before the topic, also before one with a leading slash.
        name = plugin.get_text("topicName", "imu_data").strip("/")
        topic = join_ros_topic(find_declared_namespace(plugin), name)
        sensor = set_child(sensor, plugin.make_element("topic", topic), replaces=True)
        frame = plugin.get_text("frameName")
        if plugin.find("frameName") is None:
            context.add_note("warning", "<plugin><frameName>: missing", NO_FRAME, plugin.where)
        sensor = set_child(sensor, plugin.make_element("frame_id", frame), replaces=True) if frame else sensor
    sensor = merge_noise(sensor, plugin, "imu", parse_noise_tags(context, plugin, IMU_NOISE))
    imu = sensor.find("imu")
    flags = [parse_child_flag(context, plugin, tag, default=False) for tag in REFERENCE_TAGS]
    if imu is None or any(flags):  # the reference is that of the sensor: its own element, or its start
        return sensor
    child = imu.find(REFERENCE)
    if child is not None:
        reason = "the plug-in replaces it by the axes of the world; set <initialOrientationAsReference>"
        context.add_note("unsupported", f"<imu><{REFERENCE}>", reason, child.where)
    return set_child(sensor, set_child(imu, make_world_reference(plugin), replaces=True), replaces=True)


def _is_range(plugin: Element) -> bool:
    return get_first_text(plugin, "output_type", "outputType").endswith("/Range")


def _apply_ray(context: Context, sensor: Element, plugin: Element) -> Element:
    if not is_ros1(plugin):
        sensor = _apply_ros2(context, sensor, plugin)
    else:
        texts = (("topic", parse_topic(plugin, "topicName")), ("frame_id", plugin.get_text("frameName")))
        for tag, text in texts:
            sensor = set_child(sensor, plugin.make_element(tag, text), replaces=True) if text else sensor
    is_sonar = _is_range(plugin) and get_first_text(plugin, "radiation_type", "radiationType").lower() == ULTRASOUND
    return add_sound(sensor, plugin) if is_sonar else sensor


def _mark_range(_context: Context, plugin: Element, spec: Sensor, _sensor_context: SensorContext) -> Sensor:
    return mark_range(spec) if _is_range(plugin) else spec


_NO_SERVICE = "services of other programs are not offered"
_NO_INTENSITY = "the intensity of returns is not simulated"
_ROS2_UNUSED = {
    "visualize": "has only a visual effect",
}

MODEL_PLUGINS = {
    "libgazebo_ros_imu.so": IMU_TABLE.make_plugin(
        IMU_TAGS,
        unsupported={
            "serviceName": _NO_SERVICE,
            "initialOrientationAsReference": "the plug-in ignores it",
            "frameId": "the plug-in reads <frameName>",
            "pubRate": "the plug-in reads <updateRate>",
        },
        refine_spec=_warn_about_gravity,
    ),
}

SENSOR_PLUGINS = {
    "libgazebo_ros_imu_sensor.so": SensorPlugin(
        make_plugin_schema(
            children=" ".join((*SENSOR_TAGS, *REFERENCE_TAGS, "robotNamespace ros frame_name")),
            unsupported={
                **_ROS2_UNUSED,
                "bodyName": "the link is that of the sensor",
                "serviceName": _NO_SERVICE,
                "updateRate": "the plug-in reads <updateRateHZ>",
                "xyzOffset": "the plug-in ignores it; give the sensor a <pose>",
                "rpyOffset": "rotates the orientation only; give the sensor a <pose>",
            },
        ),
        frozenset(("imu",)),
        _apply_imu_sensor,
        in_model_namespace=True,
    ),
    "libgazebo_ros_gps_sensor.so": SensorPlugin(
        make_plugin_schema(children="ros frame_name", unsupported=_ROS2_UNUSED), frozenset(("navsat",)), _apply_ros2
    ),
    "libgazebo_ros_ray_sensor.so": SensorPlugin(
        make_plugin_schema(
            children=" ".join((*RAY_TAGS, "robotNamespace ros frame_name output_type radiation_type")),
            unsupported={**_ROS2_UNUSED, **dict.fromkeys(("min_intensity", "minIntensity"), _NO_INTENSITY)},
        ),
        frozenset((Range.type,)),
        _apply_ray,
        merges_rays=_is_range,
        refine_spec=_mark_range,
    ),
}

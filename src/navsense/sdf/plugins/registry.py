"""The plug-ins of all dialects. A new dialect is a module with its tables, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from navsense.sdf.plugin_files import normalize_file, normalize_files
from navsense.sdf.plugins import (
    gazebo_camera,
    gazebo_range,
    gazebo_ros,
    hector,
    px4,
    rotors,
    uuv_dvl,
    uuv_gps,
    uuv_imu,
    uuv_magnetometer,
    uuv_pressure,
)
from navsense.sdf.plugins.base import ModelPlugin, ReferenceParser, SensorPlugin
from navsense.sdf.xml_reader import Element

MODEL_PLUGINS: Mapping[str, ModelPlugin] = {
    **uuv_pressure.MODEL_PLUGINS,
    **uuv_dvl.MODEL_PLUGINS,
    **uuv_imu.MODEL_PLUGINS,
    **uuv_magnetometer.MODEL_PLUGINS,
    **gazebo_ros.MODEL_PLUGINS,
    **hector.MODEL_PLUGINS,
    **rotors.MODEL_PLUGINS,
    **px4.MODEL_PLUGINS,
}
"""File of a plug-in of a model -> its entry."""

SENSOR_PLUGINS: Mapping[str, SensorPlugin] = {
    **gazebo_camera.SENSOR_PLUGINS,
    **gazebo_range.SENSOR_PLUGINS,
    **uuv_gps.SENSOR_PLUGINS,
    **gazebo_ros.SENSOR_PLUGINS,
    **hector.SENSOR_PLUGINS,
    **rotors.SENSOR_PLUGINS,
    **px4.SENSOR_PLUGINS,
}
"""File of a plug-in in a `<sensor>` -> its entry."""

_MODEL_FILES, _SENSOR_FILES = normalize_files(MODEL_PLUGINS), normalize_files(SENSOR_PLUGINS)


def find_model_plugin(element: Element) -> ModelPlugin | None:
    """Return the entry of a plug-in of a model; None for a plug-in that is no sensor or is not read."""
    return _MODEL_FILES.get(normalize_file(element.get_attribute("filename") or ""))


def find_sensor_plugin(element: Element, sensor_type: str) -> SensorPlugin | None:
    """Return the entry of a plug-in in a sensor of a type; None for a plug-in that is not read there."""
    entry = _SENSOR_FILES.get(normalize_file(element.get_attribute("filename") or ""))
    return entry if entry is not None and sensor_type in entry.sensor_types else None


def list_sensor_files(sensor_type: str) -> frozenset[str]:
    """Return the files of the plug-ins that are read in a sensor of a type."""
    return frozenset(file for file, entry in SENSOR_PLUGINS.items() if sensor_type in entry.sensor_types)


def find_origin_parser(element: Element) -> ReferenceParser | None:
    """Return the parser of the origin that a plug-in declares; None for a plug-in without one."""
    file = normalize_file(element.get_attribute("filename") or "")
    entry = _MODEL_FILES.get(file) or _SENSOR_FILES.get(file)
    return None if entry is None else entry.parse_origin


def find_field_parser(element: Element) -> ReferenceParser | None:
    """Return the parser of the field that a plug-in declares; None for a plug-in without one."""
    entry = find_model_plugin(element)
    return None if entry is None else entry.parse_field

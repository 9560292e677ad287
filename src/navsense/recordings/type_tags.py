"""The types in recordings: one table from a type tag to a class, and values of these classes as JSON.

    {"type": "latency", "fixed": 0.02, "mean": 0.0, "stddev": 0.005}        a dataclass
    {"type": "track_mode", "value": "best"}                                 an enumeration
    {"float": "inf"}                                                        a number that JSON does not have

A tag is a technical term and never changes. Files contain all fields, also those with default values, so a later
change of a default does not change old files. Renaming a class, a module or a field does not change files:

- A class is renamed: only its name in the table changes.
- A field is renamed: `keys` maps the new name to the key in files.
- A field is added: `absent` holds the value that older files mean. The default of the dataclass is not used.
- A field changes its meaning: the type gets a new tag, and the old one stays readable.

All type tags except the types of sensors are declared in this module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from importlib.metadata import entry_points
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from navsense import sensors
from navsense.clock import Clock, Latency
from navsense.clock.base import ClockStep
from navsense.clock.discipline import Discipline
from navsense.clock.oscillator import Oscillator
from navsense.core.errors import DamagedError, NavsenseError, RecordingError
from navsense.core.geodesy import Origin
from navsense.core.plugins import load_plugin
from navsense.core.pose import Pose
from navsense.environment.geoid import Geoid
from navsense.environment.magnetic import Anomaly
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.environment.signal import Signal
from navsense.environment.water import Water
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.motion.base import LogSource
from navsense.motion.velocity_commands import CommandLimits, Drive
from navsense.noise.specification import Noise
from navsense.world import CurrentTopic, Joint, LayersTopic, Mimic, OpticalFrame, Switch

TYPE = "type"
"""Key of the tag in the JSON of a value."""

PLUGINS = "navsense.sensors"
"""Group of the entry points of sensors in other packages. The name of the entry point is the tag."""


@dataclass(frozen=True)
class StoredType:
    """The JSON form of a class.

    keys: field -> key in files, if they differ; for an enumeration, value -> value in files.
    absent: field -> value in files that lack the field.
    omitted: fields that are never in files; they are None when read.
    former: keys of older files that are no longer of the class; they are ignored.
    """

    kind: type
    keys: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, Any] = field(default_factory=dict)
    omitted: tuple[str, ...] = ()
    former: tuple[str, ...] = ()

    def list_field_keys(self) -> dict[str, str]:
        """Return the key in files of each field that files contain."""
        names = (part.name for part in fields(self.kind) if part.init and part.name not in self.omitted)
        return {name: self.keys.get(name, name) for name in names}


EQUIVARIANCE_KEY = "turns"
"""Key in files of `Output.equivariance`."""

TYPES: dict[str, StoredType] = {
    **{sensor.type: StoredType(sensor) for sensor in sensors.SENSORS},
    "accuracy": StoredType(sensors.BeamVelocityErrors),
    "beam": StoredType(sensors.Beam),
    "beam_weighting": StoredType(sensors.BeamWeighting),
    "beams": StoredType(sensors.Beams),
    "bin_mapping": StoredType(sensors.BinMapping),
    "camera": StoredType(sensors.Camera, former=("optical_frame", "optical_pose")),
    "camera_distortion": StoredType(sensors.LensDistortion),
    "camera_intrinsics": StoredType(sensors.CameraIntrinsics),
    "camera_projection": StoredType(sensors.CameraProjection),
    "clock": StoredType(Clock, omitted=("where",)),
    "clock_step": StoredType(ClockStep),
    "cone": StoredType(sensors.Cone),
    "constant_density": StoredType(ConstantDensity),
    "coordinate_system": StoredType(sensors.CoordinateSystem),
    "current_topic": StoredType(CurrentTopic),
    "current_layers_topic": StoredType(LayersTopic),
    "command_limits": StoredType(CommandLimits),
    "depth_cells": StoredType(sensors.DepthCells),
    "discipline": StoredType(Discipline),
    "doppler_track": StoredType(sensors.TrackErrors),
    "drive": StoredType(Drive),
    "dvl": StoredType(
        sensors.Dvl,
        keys={
            "bottom": "bottom_track",
            "water": "water_track",
            "range_noise": "range",
        },
    ),
    "dvl_message_options": StoredType(sensors.DvlMessageOptions, absent={"world_ned_frame": ""}),
    "echo_strength": StoredType(sensors.EchoStrength, keys={"lock_width": "slope"}),
    "fan": StoredType(sensors.Fan),
    "faults": StoredType(Faults),
    "geoid": StoredType(Geoid),
    "joint": StoredType(
        Joint,
        keys={"type": "joint_type"},
        absent={"lower": -math.inf, "upper": math.inf, "mimic": None},
        omitted=("track",),
    ),
    "joint_mimic": StoredType(Mimic),
    "latency": StoredType(Latency),
    "long_term_accuracy": StoredType(
        sensors.LongTermFilter, keys={"assumed_offset": "stddev", "assumed_scale": "scale"}
    ),
    "log_source": StoredType(LogSource, absent={"has_states": False}, omitted=("start",)),
    "magnetometer": StoredType(sensors.Magnetometer, keys={"field_per_ampere": "motor_current"}),
    "magnetic_anomaly": StoredType(Anomaly),
    "message_dialect": StoredType(sensors.MessageDialect),
    "noise": StoredType(Noise),
    "optical_frame": StoredType(OpticalFrame),
    "origin": StoredType(Origin),
    "oscillator": StoredType(Oscillator),
    "output": StoredType(sensors.Output, keys={"equivariance": EQUIVARIANCE_KEY}),
    "pose": StoredType(Pose),
    "range": StoredType(sensors.Range, keys={"range_noise": "range"}),
    "saunders": StoredType(Saunders),
    "scheduled_fault": StoredType(ScheduledFault, omitted=("where",)),
    "signal": StoredType(Signal),
    "sensor_switch": StoredType(Switch),
    "sound": StoredType(sensors.Sound),
    "track_mode": StoredType(sensors.TrackMode),
    "transducer": StoredType(sensors.Transducer),
    "unesco": StoredType(Unesco),
    "vibration": StoredType(sensors.Vibration),
    "water": StoredType(Water),
    "water_mass_layer": StoredType(sensors.WaterMassLayer),
    "zeroed": StoredType(sensors.ZeroReference),
}
"""Tag -> JSON form of the class. The tag of a sensor is its type."""


@runtime_checkable
class HasType(Protocol):
    """A specification of a sensor. Its tag is the type of the sensor."""

    type: ClassVar[str]


class UnknownTypeError(Exception):
    """A value of a type, or with a field, that this version of navsense does not know."""


def register_type(
    kind: type,
    tag: str = "",
    *,
    keys: Mapping[str, str] | None = None,
    absent: Mapping[str, Any] | None = None,
) -> None:
    """Register a tag for a class of another package, so that recordings with it can be read back.

    kind: a dataclass or an enumeration.
    tag: by default the `type` of a sensor; other classes need their own, such as "my_package.drift".
    keys, absent: see `StoredType`.

    Raises ValueError for a tag of another class.

    >>> from dataclasses import dataclass
    >>> from navsense.recordings.type_tags import register_type
    >>> @dataclass(frozen=True)
    ... class Lag:
    ...     time_constant: float = 0.1
    >>> register_type(Lag, "my_package.lag")
    """
    tag = tag or (kind.type if isinstance(kind, HasType) else "")
    if not (is_dataclass(kind) or issubclass(kind, Enum)):
        raise ValueError(f"{kind.__name__} is no dataclass and no enumeration")
    if not tag or (tag in TYPES and TYPES[tag].kind is not kind):
        raise ValueError(f"type tag {tag!r} of {kind.__name__}: must be a new name")
    stored = StoredType(kind, dict(keys or {}), dict(absent or {}))
    if is_dataclass(kind) and TYPE in stored.list_field_keys().values():
        raise ValueError(f"{kind.__name__} has a field {TYPE!r}; store it under another key with keys=")
    TYPES[tag] = stored


def _find_tag(value: object) -> tuple[str, StoredType]:
    """Return the tag and the JSON form of a value's class. Raises TypeError for a class without a tag."""
    kind = type(value)
    for tag, stored in TYPES.items():
        if stored.kind is kind:
            return tag, stored
    if not is_dataclass(kind) or not isinstance(value, HasType) or value.type in TYPES:
        raise TypeError(f"{kind.__name__} has no type tag")
    return value.type, StoredType(kind)


def to_json(value: Any) -> Any:
    """Return a value as JSON. Raises TypeError for a value without a JSON form."""
    if isinstance(value, Enum):
        tag, stored = _find_tag(value)
        return {TYPE: tag, "value": stored.keys.get(value.value, value.value)}
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    tag, stored = _find_tag(value)
    return {TYPE: tag, **{key: to_json(getattr(value, name)) for name, key in stored.list_field_keys().items()}}


def from_json(value: Any) -> Any:
    """Return the value that `to_json` wrote.

    Raises `UnknownTypeError` for a type or a field that this version does not know, and `DamagedError` for other JSON.
    """
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "float" in value:
        try:
            return float(value["float"])
        except (TypeError, ValueError) as error:
            raise DamagedError(f"damaged: a number cannot be read: {error}") from error
    tag = value.get(TYPE)
    if not isinstance(tag, str):
        raise DamagedError("damaged: a value has no type")
    stored = _find_type(tag)
    try:
        if issubclass(stored.kind, Enum):
            return stored.kind({new: old for old, new in stored.keys.items()}.get(value["value"], value["value"]))
        return stored.kind(**_parse_fields(tag, stored, value))
    except (KeyError, TypeError, ValueError, AttributeError, NavsenseError) as error:
        raise UnknownTypeError(f"type {tag!r} cannot be read: {error}") from error


def _parse_fields(tag: str, stored: StoredType, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a value. Raises `UnknownTypeError` for an unknown field, and for a missing one."""
    names = stored.list_field_keys()
    unknown = sorted(set(value) - {TYPE, *names.values(), *stored.former})
    if unknown:
        raise UnknownTypeError(f"type {tag!r} has the unknown field {unknown[0]!r}")
    missing = [key for name, key in names.items() if key not in value and name not in stored.absent]
    if missing:
        raise UnknownTypeError(f"type {tag!r} has no field {missing[0]!r}")
    read = {name: from_json(value[key]) if key in value else stored.absent[name] for name, key in names.items()}
    return read | dict.fromkeys(stored.omitted)


def _find_type(tag: str) -> StoredType:
    """Return the JSON form of a tag; the package that defines it is imported if it is installed."""
    if tag not in TYPES:
        for entry in entry_points(group=PLUGINS, name=tag):
            try:
                kind = load_plugin(entry, type, "sensor", "must be a class that can be imported", RecordingError)
                if tag not in TYPES:
                    register_type(kind, tag)
            except (RecordingError, ValueError) as error:
                raise UnknownTypeError(f"type {tag!r} cannot be imported: {error}") from error
    if tag not in TYPES:
        raise UnknownTypeError(f"unknown type {tag!r}")
    return TYPES[tag]

"""Write the generated reference pages: command line, elements of SDF, messages.

Usage: python tools/reference.py [--check]      --check writes nothing; exit code 1 if a page is out of date
"""

from __future__ import annotations

import argparse
import inspect
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import click
from compare_libsdformat import REFUSALS, read_table
from sdf_texts import COMMON, TEXTS

from navsense.cli.application import cli
from navsense.core.field_metadata import FileField, get_file_fields
from navsense.messages import (
    SENSOR_MESSAGES,
    format_companion_topic,
    has_gz,
    list_message_suffixes,
    make_encoder,
    markers,
    schemas,
    world_messages,
)
from navsense.messages.base import SeriesKind
from navsense.noise.specification import Noise
from navsense.recordings.run_changes import CHANGES_TOPIC
from navsense.recordings.topic_names import (
    CLOCK,
    ROS_TOPICS,
    SERIES_KINDS,
    SIMULATED_SERIES,
    STATIC,
    TRANSFORMS,
    TRUTH_PREFIX,
)
from navsense.sdf import schema
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import ElementSchema, make_schema
from navsense.sdf.parse import (
    air_pressure,
    altimeter,
    camera,
    clock,
    collision,
    current,
    current_plugins,
    depth,
    doppler,
    dvl_gazebo,
    faults,
    imu,
    navsat,
    noise,
    world,
)
from navsense.sdf.parse import range as ranges
from navsense.sdf.plugins.registry import MODEL_PLUGINS, SENSOR_PLUGINS
from navsense.sdf.ros_names import ROS2_SCHEMA
from navsense.sensors import SENSORS, Dvl, Magnetometer, MessageDialect, Sensor, TrackMode
from navsense.world import CurrentTopic, MountedSensor

ROOT = Path(__file__).resolve().parent.parent
LIBSDFORMAT = "12.3"
"""The version of libsdformat that is compared."""

FOLDER = ROOT / "docs" / "reference"

WRITTEN = "<!-- Written by `python tools/reference.py`; do not edit. -->"

Place = ElementSchema | ElementBinding[Any]

HYDRODYNAMICS = make_schema("default_current lookup_current_x lookup_current_y lookup_current_z")
"""What `current_gazebo` reads of a plug-in whose other elements have no effect."""

DRIVE = make_schema(
    "topic commandTopic robotNamespace ros left_joint right_joint left_steering_joint right_steering_joint "
    "wheel_separation wheelSeparation wheel_base steering_limit min_velocity max_velocity "
    "min_acceleration max_acceleration max_wheel_acceleration wheelAcceleration",
    attributes="filename name",
)
"""What `parse.drive` reads of the plug-ins of several programs."""

SECTIONS: list[tuple[str, str, Place]] = [
    ("World", "sdf", schema.SDF),
    ("World", "world", schema.WORLD),
    ("World", "physics", schema.PHYSICS),
    ("World", "spherical_coordinates", schema.SPHERICAL_COORDINATES),
    ("World", "navsense:geoid", schema.GEOID),
    ("World", "atmosphere", world.ATMOSPHERE),
    ("World", "navsense:gravity", schema.GRAVITY_MODEL),
    ("World", "navsense:magnetic_field", schema.MAGNETIC_MODEL),
    ("World", "navsense:dipole", schema.DIPOLE),
    ("World", "navsense:signal", schema.SIGNAL),
    ("World", "navsense:signal point", schema.SIGNAL_POINT),
    ("World", "navsense:water", world.WATER),
    ("World", "navsense:water point", world.WATER_POINT),
    ("World", "navsense:current", current.CURRENT),
    *(("Currents", name, current.CURRENT_PARSERS[name][0]) for name in ("gauss_markov", "stratified")),
    ("Currents", "layer of stratified, factor", current.DEPTH_ROW),
    ("Currents", "speed", current.GAUSS_MARKOV_PROCESS),
    ("Currents", "horizontal_angle, vertical_angle, direction", current.GAUSS_MARKOV_ANGLE),
    ("Currents", "tidal", current.CURRENT_PARSERS["tidal"][0]),
    ("Currents", "constituent", current.CONSTITUENT),
    ("Currents", "tidal_ellipses", current.CURRENT_PARSERS["tidal_ellipses"][0]),
    ("Currents", "ellipse", current.ELLIPSE),
    *(("Currents", name, current.CURRENT_PARSERS[name][0]) for name in ("grid", "replay", "boundary_layer", "profile")),
    ("Models", "include", schema.INCLUDE),
    ("Models", "model", schema.MODEL),
    ("Models", "navsense:motion", schema.MOTION),
    ("Models", "navsense:waypoint", schema.WAYPOINT),
    ("Models", "link", schema.LINK),
    ("Models", "joint", schema.JOINT),
    ("Models", "axis, axis2", schema.JOINT_AXIS),
    ("Models", "limit", schema.JOINT_LIMIT),
    ("Models", "mimic", schema.JOINT_MIMIC),
    ("Models", "xyz", schema.XYZ),
    ("Models", "frame", schema.FRAME),
    ("Models", "pose", schema.POSE),
    ("Surfaces", "collision", schema.COLLISION),
    ("Surfaces", "geometry", schema.GEOMETRY),
    *(("Surfaces", name, binding) for name, binding in collision.SHAPES.items()),
    ("Surfaces", "mesh", schema.MESH),
    ("Surfaces", "submesh", schema.SUBMESH),
    ("Surfaces", "heightmap", schema.HEIGHTMAP),
    ("Every sensor", "sensor", schema.make_sensor_schema("TYPE")),
    ("Every sensor", "navsense:switch", schema.SWITCH),
    ("Every sensor", "navsense:part", schema.PART),
    ("Every sensor", "navsense:latency", clock.LATENCY),
    ("Every sensor", "navsense:faults", faults.FAULTS),
    ("Every sensor", "fault", faults.FAULT),
    ("Every sensor", "channel", schema.CHANNEL),
    ("Every sensor", "noise", noise.NOISE),
    ("Every sensor", "navsense:noise", noise.EXTENSION),
    ("Clocks", "clock", schema.CLOCK),
    ("Clocks", "navsense:oscillator", clock.OSCILLATOR),
    ("Clocks", "navsense:discipline", clock.DISCIPLINE),
    ("Clocks", "navsense:faults of clock and world", faults.SCHEDULED_FAULTS),
    ("Sensor types", "imu", imu.IMU),
    ("Sensor types", "orientation_reference_frame", imu.ORIENTATION_REFERENCE_FRAME),
    ("Sensor types", "custom_rpy", imu.CUSTOM_RPY),
    ("Sensor types", "navsense:vibration", imu.VIBRATION),
    ("Sensor types", "magnetometer", ElementBinding(Magnetometer)),
    ("Sensor types", "altimeter", altimeter.ALTIMETER),
    ("Sensor types", "navsense:reference", altimeter.REFERENCE),
    ("Sensor types", "air_pressure", air_pressure.AIR_PRESSURE),
    ("Sensor types", "navsat", navsat.NAVSAT),
    ("Sensor types", "depth", depth.DEPTH),
    ("Cameras", "camera", schema.CAMERA),
    ("Cameras", "image of camera", schema.CAMERA_IMAGE),
    ("Cameras", "lens", schema.CAMERA_LENS),
    ("Cameras", "intrinsics", camera.INTRINSICS),
    ("Cameras", "projection", camera.PROJECTION),
    ("Cameras", "distortion", camera.DISTORTION),
    ("Ranges", "range", ranges.RANGE_BINDING),
    ("Ranges", "beam of range", schema.BEAM),
    ("Ranges", "sound", ranges.SOUND_BINDING),
    ("Ranges", "ray, lidar", schema.RAY),
    ("Ranges", "scan", schema.SCAN),
    ("Ranges", "horizontal, vertical", schema.SAMPLES),
    ("Ranges", "range of ray", schema.RAY_RANGE),
    ("Ranges", "sonar", schema.SONAR),
    ("Doppler instruments", "dvl", doppler.DVL_BINDING),
    ("Doppler instruments", "beams", doppler.BEAMS_SCHEMA),
    ("Doppler instruments", "beam", doppler.BEAM_SCHEMA),
    ("Doppler instruments", "bottom_track", doppler.TRACK_BINDING),
    ("Doppler instruments", "water_track", doppler.WATER_TRACK_BINDING),
    ("Doppler instruments", "layer", doppler.LAYER_BINDING),
    ("Doppler instruments", "strength, backscatter", doppler.ECHO_STRENGTH_BINDING),
    ("Doppler instruments", "long_term", doppler.LONG_TERM_BINDING),
    ("Doppler instruments", "reference", doppler.REFERENCE_SCHEMA),
    ("Doppler instruments", "adcp", doppler.ADCP_BINDING),
    ("Doppler instruments", "cells", doppler.CELLS_BINDING),
    ("Doppler instruments", "profile, bottom", doppler.BEAM_VELOCITY_ERRORS_BINDING),
    ("DVL of Gazebo", "gz:dvl", dvl_gazebo.DVL),
    ("DVL of Gazebo", "arrangement", dvl_gazebo.ARRANGEMENT),
    ("DVL of Gazebo", "beam of gz:dvl", dvl_gazebo.BEAM),
    ("DVL of Gazebo", "tracking", dvl_gazebo.TRACKING),
    ("DVL of Gazebo", "bottom_mode", dvl_gazebo.BOTTOM_MODE),
    ("DVL of Gazebo", "water_mass_mode", dvl_gazebo.WATER_MASS_MODE),
    ("DVL of Gazebo", "water_velocity", dvl_gazebo.WATER_VELOCITY),
    ("DVL of Gazebo", "boundaries", dvl_gazebo.BOUNDARIES),
    *(
        ("Plug-ins of sensors", file, plugin.schema)
        for file, plugin in SENSOR_PLUGINS.items()
        if file not in schema.CAMERA_PLUGIN_FILES[1:]
    ),
    ("Plug-ins of sensors", "ros of a plug-in of ROS 2", ROS2_SCHEMA),
    *(("Plug-ins of sensors", file, plugin.schema) for file, plugin in MODEL_PLUGINS.items()),
    ("Plug-ins of sensors", schema.DSROS_DVL_FILE, schema.DSROS_DVL_PLUGIN),
    ("Plug-ins of drives", "drive", DRIVE),
    *(("Plug-ins of currents", file, place) for file, place in schema.CURRENT_PLUGINS.items()),
    ("Plug-ins of currents", "constant_current", current_plugins.CONSTANT_CURRENT),
    ("Plug-ins of currents", "velocity, horizontal_angle, vertical_angle", current_plugins.PROCESS),
    ("Plug-ins of currents", "transient_current", current_plugins.TRANSIENT_CURRENT),
    ("Plug-ins of currents", "tidal_oscillation", current_plugins.TIDAL_OSCILLATION),
    ("Plug-ins of currents", "harmonic_constituents", current_plugins.HARMONIC_CONSTITUENTS),
    ("Plug-ins of currents", "M2, S2, N2", current_plugins.CONSTITUENT),
    ("Plug-ins of currents", "mean_direction", current_plugins.MEAN_DIRECTION),
    ("Plug-ins of currents", "world_start_time_GMT", current_plugins.START_TIME),
    ("Plug-ins of currents", "gz-sim-environment-preload-system", schema.PRELOAD),
    ("Plug-ins of currents", "dimensions", schema.DIMENSIONS),
    ("Plug-ins of currents", "space", schema.SPACE),
    ("Plug-ins of currents", "gz-sim-hydrodynamics-system", HYDRODYNAMICS),
]
"""Chapter, element and its schema, in the order of the page."""

OTHER_TOPICS = {
    f"<topic>/{world_messages.FAULT}": world_messages.FAULT_TYPE,
    f"<topic>{markers.MARKERS_SUFFIX}": markers.TYPE,
    f"{TRUTH_PREFIX}<model>": world_messages.ODOMETRY_TYPE,
    f"{TRUTH_PREFIX}<model>/accel": world_messages.ACCEL_TYPE,
    CurrentTopic().topic: world_messages.CURRENT_TYPE,
    "<topic_stratified>": world_messages.CURRENT_LAYERS_TYPE,
    CHANGES_TOPIC: world_messages.STRING_TYPE,
    ROS_TOPICS[CLOCK]: world_messages.CLOCK_TYPE,
    ROS_TOPICS[TRANSFORMS]: world_messages.TRANSFORM_TYPE,
    ROS_TOPICS[STATIC]: world_messages.TRANSFORM_TYPE,
}
"""Topic without a sensor's messages -> its type."""

STRICTER = {
    "unknown, repeated or misplaced part of a sensor, clock or noise": "a misspelt element would change the readings",
    "the same in a plug-in of a sensor that is read": "a misspelt element would change the readings",
    "the same in an element of navsense": "only navsense reads it",
    "two sensors of one name in a link, of which one is a plug-in": "sensors are told apart by their names",
    "invalid value of an element that is read": "libsdformat uses a default, or a part of the value",
    "number out of its range, such as a rate below 0": "the value has no meaning",
    "`<max_step_size>` of 0 or less": "sensors without a rate would have none",
    "unknown frame in `<xyz expressed_in>`": "the direction of the axis is unknown",
    "invalid or missing surface that rays may hit": "the ranges would be wrong",
    "NavSat in a world without `<spherical_coordinates>`": "its position on earth is unknown; a model alone: a warning",
    "no world and no model, or several": "a file describes one world, or one model",
    "SDF older than 1.4 or newer than 1.12": "its elements can have another meaning",
    "document type, or text after the outermost element": "entities can exhaust the memory; not well-formed XML",
    "xacro in a file without the suffix `.xacro`": "it can execute code",
    "size, depth or number of includes beyond the limits": "they bound time and memory",
}
"""Files that libsdformat accepts and navsense refuses -> the reason. The tests show them by files."""

INTERNAL = {schema.MERGED_MODEL_TAG, schema.SKIPPED_INCLUDE_TAG, schema.ACTUATOR_TAG}

FIELD_TEXT = re.compile(r"^((?:\w+)(?:, _?\w+)*): (.+(?:\n[ ]{4,}.+)*)", re.MULTILINE)


def read_texts(name: str) -> dict[str, tuple[str, str, str]]:
    """Return type, default and meaning by child or attribute of an element."""
    rows = [[cell.strip() for cell in line.split("|")] for line in TEXTS.get(name, "").strip().splitlines()]
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


def list_field_texts(spec: Any) -> dict[str, str]:
    """Return the documentation of the fields of a dataclass, from its docstring."""
    texts: dict[str, str] = {}
    for names, paragraph in FIELD_TEXT.findall(inspect.getdoc(spec) or ""):
        first, *suffixes = names.split(", ")
        stem = first.rpartition("_")[0]
        text, *sentences = re.split(r"; (?=\w+: )", " ".join(paragraph.split()).rstrip("."))
        for name in (first, *(stem + suffix if suffix.startswith("_") else suffix for suffix in suffixes)):
            texts[name] = text
        for name, meaning in (item.split(": ", 1) for item in sentences):
            texts.setdefault(name, meaning)
    return texts


def format_type(hint: Any, entry: FileField) -> str:
    """Return the type of a field, with its limits."""
    if get_origin(hint) is not tuple and get_args(hint):
        hint = next((choice for choice in get_args(hint) if choice is not NoneType), hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return ", ".join(f"`{member}`" for member in hint)
    if get_origin(hint) is tuple:
        return "numbers" if Ellipsis in get_args(hint) else f"{len(get_args(hint))} numbers"
    if hint is Noise:
        return "[channel](#channel)"
    if hint is bool:
        return "flag"
    if hint not in (float, int):
        return "element"
    limit = f" > {entry.above:g}" if entry.above > -math.inf else f" ≥ {entry.minimum:g}"
    return ("whole number" if hint is int else "number") + (
        limit if max(entry.above, entry.minimum) > -math.inf else ""
    )


def format_default(field: Any, entry: FileField) -> str:
    """Return the default of a field as a file has it."""
    value = field.default if field.default is not MISSING else None
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{math.degrees(value) if entry.degrees else value:.6g}" if math.isfinite(value) else "none"
    if isinstance(value, StrEnum):
        return f"`{value}`"
    if isinstance(value, tuple) and all(isinstance(part, (int, float)) for part in value):
        return " ".join(f"{math.degrees(part) if entry.degrees else part:g}" for part in value)
    return "none" if value is None or isinstance(value, Noise) else "no errors"


def list_bound_rows(binding: ElementBinding[Any]) -> dict[str, tuple[str, str, str]]:
    """Return the rows of the fields of a dataclass by child or attribute."""
    hints, texts = get_type_hints(binding.spec), list_field_texts(binding.spec)
    file_fields: Mapping[str, FileField] = get_file_fields(binding.spec)
    rows = {}
    for field in fields(binding.spec):
        tag = binding.tags.get(field.name)
        if tag is not None:
            entry = file_fields[field.name]
            name = f"@{tag}" if tag in binding.schema.attributes else tag
            meaning = texts.get(field.name, "").replace("|", "\\|")
            rows[name] = (format_type(hints[field.name], entry), format_default(field, entry), meaning)
    return rows


def format_section(name: str, place: Place) -> Iterator[str]:
    """Yield the section of an element. Raises ValueError if `sdf_texts` lacks a name or has one too many."""
    schema = place.schema if isinstance(place, ElementBinding) else place
    written = list_bound_rows(place) if isinstance(place, ElementBinding) else {}
    for tag, (kind, default, meaning) in read_texts(name).items():
        bound = written.get(tag, ("", "", ""))
        written[tag] = (bound[0] if kind == "=" else kind, bound[1] if default == "=" else default, meaning)
    names = {*(schema.children - INTERNAL), *(f"@{attribute}" for attribute in schema.attributes)}
    written.update((tag, row) for tag, row in COMMON.items() if tag in names - written.keys())
    undocumented = [tag for tag, (_, _, meaning) in written.items() if not meaning]
    if written.keys() != names or undocumented:
        wrong = sorted([*(written.keys() ^ names), *undocumented])
        raise ValueError(f"{name}: tools/sdf_texts.py lacks or has in excess: {', '.join(wrong)}")
    yield f"### {name}"
    yield ""
    if isinstance(place, ElementBinding):
        yield f"Fields of `{place.spec.__module__.removeprefix('navsense.')}.{place.spec.__name__}`."
        yield ""
    if names:
        yield "| element, @attribute | type | default | meaning, unit |"
        yield "|---|---|---|---|"
        attributes_first = sorted(written.items(), key=lambda row: not row[0].startswith("@"))
        yield from (f"| `{tag}` | {' | '.join(cells)} |" for tag, cells in attributes_first)
        yield ""
    excluded = [(tag, f"not supported: {text}") for tag, text in schema.unsupported.items()]
    excluded += [(f"@{tag}", f"not supported: {text}") for tag, text in schema.ignored_attributes.items()]
    effect = "an error" if schema.strict else "a warning outside sensors" if schema.strict is None else "a warning"
    excluded += [(tag, f"{effect}: {text}") for tag, text in schema.forbidden.items()]
    if excluded:
        yield "| element | reason |"
        yield "|---|---|"
        for tag, text in sorted(excluded):
            yield f"| `{tag}` | {text.replace('|', chr(92) + '|')} |"
        yield ""


def format_sdf_elements() -> str:
    """Return the page of the elements of SDF."""
    lines = [
        "# Elements of SDF",
        "",
        WRITTEN,
        "",
        "[Worlds](worlds.md) explains the elements with examples.",
        "",
        "This page lists every element that navsense reads, with its type, default and unit, also those of plug-ins of",
        "other programs. It also lists every element of the SDF specification that has no effect, with the reason.",
        "`navsense describe WORLD` prints these for a file. The sign @ marks an attribute.",
        "",
        "Other elements and attributes, and repeated ones, are warnings. Inside `<sensor>`, `<clock>`, plug-ins of",
        "sensors and elements of navsense they are errors.",
    ]
    chapter = ""
    for title, name, place in SECTIONS:
        if title != chapter:
            lines += ["", f"## {title}", ""]
            chapter = title
        lines.extend(format_section(name, place))
    lines += ["## Sensor types that are not simulated", "", "`navsense describe` lists sensors of these types.", ""]
    lines += [*(f"- `{name}`" for name in sorted(schema.UNSIMULATED_TYPES)), ""]
    lines += ["## Errors that libsdformat does not report", "", "| error | reason |", "|---|---|"]
    lines += [*(f"| {error} | {reason} |" for error, reason in STRICTER.items()), ""]
    lines += format_refusals()
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def format_refusals() -> list[str]:
    """Return the section about the files that libsdformat accepts and navsense refuses."""
    files = list(read_table().values())
    refused = [file for file in files if file.refusal]
    lines = [
        "## Files that libsdformat accepts and navsense refuses",
        "",
        f"navsense is compared with libsdformat {LIBSDFORMAT}, Gazebo's reader, on {len(files)} public SDF, URDF and",
        "xacro files (`tests/oracles/libsdformat-files`).",
        f"The commit of {sum(bool(file.commit) for file in files)} files is known.",
        f"libsdformat accepts {sum(not file.errors for file in files)} of the {len(files)}.",
        f"navsense refuses {len(refused)} of these, for reasons of the table above:",
        "",
        "| error | files | example |",
        "|---|---|---|",
    ]
    for text in REFUSALS:
        paths = [f"`{file.repository}`, `{file.path}`" for file in refused if file.refusal == text]
        lines.append(f"| ... {text} | {len(paths)} | {paths[0]} |")
    lines += ["", *(f"- *... {text}*: {reason}" for text, reason in REFUSALS.items()), ""]
    return lines


def format_command_line() -> str:
    """Return the page of the command line."""
    lines = [
        "# Command line",
        "",
        WRITTEN,
        "",
        "These texts are those of `navsense COMMAND --help`.",
        "",
        "Exit codes: 0 success, 1 a poor calibration, 2 an error, 130 an interrupt. Errors and warnings go to standard",
        "error.",
    ]
    commands: list[tuple[str, click.Command]] = [("navsense", cli)]
    commands += [(f"navsense {name}", command) for name, command in sorted(cli.commands.items())]
    for name, command in commands:
        names = cli.context_settings["help_option_names"]
        context = click.Context(
            command, info_name=name, terminal_width=80, max_content_width=80, help_option_names=names
        )
        lines += ["", f"## {name}", "", "```text", command.get_help(context).rstrip(), "```"]
    return "\n".join(lines) + "\n"


def list_message_specs() -> Iterator[tuple[str, Sensor]]:
    """Yield each sensor type with a specification that sends all its messages, and a DVL of each dialect."""
    for sensor_type in SENSORS:
        spec: Any = sensor_type.example_spec()
        if sensor_type is not Dvl:
            yield f"`{spec.type}`", spec
            continue
        for dialect in MessageDialect:
            yield f"`dvl`, dialect `{dialect}`", replace(spec, dialect=dialect, water_mode=TrackMode.ALWAYS)


def list_topics(spec: Sensor) -> Iterator[tuple[str, dict[SeriesKind, str]]]:
    """Yield each topic of a sensor, with the message type of each series that it has."""
    sensor = MountedSensor("robot::link::sensor", spec, "robot", "robot::link", 1.0, topic="<topic>")
    for suffix in list_message_suffixes(sensor):
        types: dict[SeriesKind, str] = {
            kind: make_encoder(sensor, kind, suffix).type
            for kind in SERIES_KINDS
            if suffix in list_message_suffixes(sensor, kind)
        }
        yield format_companion_topic(sensor.topic, suffix), types


def format_message_table() -> Iterator[str]:
    """Yield the table of the topics and messages of each sensor."""
    yield "| sensor | topic | ROS 2 type | Gazebo type |"
    yield "|---|---|---|---|"
    for name, spec in list_message_specs():
        for number, (topic, types) in enumerate(list_topics(spec)):
            gazebo = f"`{SENSOR_MESSAGES[spec.type].gz_type}`" if has_gz(spec) else "none"
            first, last = ("", "") if number else (name, gazebo)
            yield f"| {first} | `{topic}` | {format_message_type(types['measured'])} | {last} |"


def format_message_type(name: str) -> str:
    """Return a message type without `/msg`, as the fields of a definition have it."""
    return f"`{name.replace('/msg/', '/')}`"


def format_series_table() -> Iterator[str]:
    """Yield the table of the topics whose ideal values or biases have another type, or are absent."""
    yield "| sensor | topic | `/ideal` | `/bias` |"
    yield "|---|---|---|---|"
    for name, spec in list_message_specs():
        for topic, types in list_topics(spec):
            series_types = [types.get(kind, "") for kind in SIMULATED_SERIES]
            if set(series_types) != {types["measured"]}:
                texts = [
                    "absent" if not kind else "the same" if kind == types["measured"] else format_message_type(kind)
                    for kind in series_types
                ]
                yield f"| {name} | `{topic}` | {' | '.join(texts)} |"


def list_definitions() -> dict[str, str]:
    """Return the definition of each message type: of other packages, and of the types of navsense."""
    definitions = dict(schemas.DEFINITIONS)
    for _, spec in list_message_specs():
        sensor = MountedSensor("sensor", spec, "robot", "robot::link", 1.0)
        for suffix in list_message_suffixes(sensor):
            encoder = make_encoder(sensor, "measured", suffix)
            definition, *_ = encoder.schema.split("\n" + "=" * 80)
            if definitions.setdefault(encoder.type, definition.strip()) != definition.strip():
                raise ValueError(f"{encoder.type} has two definitions")
    return definitions


def format_messages() -> str:
    """Return the page of the messages."""
    lines = [
        "# Messages",
        "",
        WRITTEN,
        "",
        "[Recordings](recordings.md#mcap) explains the topics and their contents.",
        "",
        "This page lists the topics and message types of a recording, with the definition of each type. Types of ROS",
        "have the definitions of ROS 2 Jazzy. Recordings contain the definitions, so a reader installs nothing.",
        "",
        "## Topics of sensors",
        "",
        "`<topic>` is the topic of the sensor. The Gazebo type is that in `.gz.mcap`. `<topic>_water` exists if the",
        "bottom track is on and the water track is `always`. `<rangesTopicName>` replaces `<topic>_ranges`.",
        "",
        *format_message_table(),
        "",
        "Ideal values and biases have the suffixes `/ideal` and `/bias`, and the type of the topic. Exceptions:",
        "",
        *format_series_table(),
        "",
        "A sensor type of your own, for example `salinity`, has the message `navsense_msgs/msg/Salinity` on its topic:",
        "a header, and one `float64` or `float64[]` for each output.",
        "",
        "## Other topics",
        "",
        "| topic | ROS 2 type |",
        "|---|---|",
        *(f"| `{topic}` | {format_message_type(message_type)} |" for topic, message_type in OTHER_TOPICS.items()),
    ]
    for name, definition in sorted(list_definitions().items()):
        lines += ["", f"## {name}", "", "```text", definition, "```"]
    return "\n".join(lines) + "\n"


PAGES = {"sdf-elements": format_sdf_elements, "command-line": format_command_line, "messages": format_messages}


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description="Write the generated pages of docs/reference.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is out of date")
    check = parser.parse_args().check
    code = 0
    for name, page in PAGES.items():
        path, text = FOLDER / f"{name}.md", page()
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is out of date: run `python tools/reference.py`", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())

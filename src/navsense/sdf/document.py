"""Reading of a complete SDF file: one world, or one model without a world."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points

import numpy as np

from navsense.core import inputs
from navsense.core.errors import SdfError, SensorError, SimulationError, Where
from navsense.core.plugins import load_plugin
from navsense.environment.base import Environment, FieldSum
from navsense.sdf.context import Context, TooManyProblemsError
from navsense.sdf.file_reader import FileReader
from navsense.sdf.frame_graph import build_model_scope, build_world_scope
from navsense.sdf.frames import FramePoses, Scope
from navsense.sdf.include import IncludeExpander
from navsense.sdf.names import parse_name
from navsense.sdf.parse.clock import ClockRegistry
from navsense.sdf.parse.model import ParsedModel, parse_model
from navsense.sdf.parse.sensor import TYPE_ELEMENT_PARSERS, SensorParser
from navsense.sdf.parse.type_element import TypeElementParser, make_type_element_parser
from navsense.sdf.parse.world import parse_classic, parse_environment, parse_max_step_size, report_atmosphere
from navsense.sdf.plugins.earth_reference import parse_earth_reference
from navsense.sdf.plugins.namespace import parse_namespace
from navsense.sdf.search_path import SearchFolders, SearchPath, build_search_path
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element
from navsense.sensors import SENSORS
from navsense.sensors.base import Sensor, check_members
from navsense.simulation.fidelity import FIDELITIES
from navsense.world import CurrentTopic, MountedSensor, Solid, World

MISSING_MODES = ("error", "skip")
"""Modes for missing files."""


def load(
    file: str | os.PathLike[str],
    *,
    path: SearchFolders = (),
    fidelity: str | None = None,
    sensors: Sequence[type[Sensor]] = (),
    xacro: Mapping[str, str] | None = None,
    expand_xacro: bool = False,
    missing: str = MISSING_MODES[0],
    namespace: str | None = None,
) -> World:
    """Return the world of an SDF file (1.4 to 1.12), or its one model in a world with SDF's defaults.

    file: the path of an SDF or URDF file. A file `*.xacro` is expanded first (extra `xacro`). Expansion runs the file
        as a program.
    path: a folder of models, or several. They are searched for included files before the folders of the environment
        variables `GZ_SIM_RESOURCE_PATH`, `IGN_GAZEBO_RESOURCE_PATH`, `SDF_PATH` and `GAZEBO_MODEL_PATH`, for packages
        `ROS_PACKAGE_PATH` and `AMENT_PREFIX_PATH`.
    fidelity: "physical" or "classic" overrides the fidelity of the file, also in the currents and limits of plug-ins;
        `simulate` cannot change these later.
    sensors: your own sensor types, in addition to those of navsense and of the entry point `navsense.sensors`. A type
        with the same name replaces the earlier one.
    xacro: the arguments of xacro.
    expand_xacro: True allows a file with another name to use or include xacro.
    missing: "error" raises one error for all missing models, meshes and heightmaps. "skip" returns the world without
        them. Its `notes` list each missing file, and each joint whose parent or child is in a missing file. Errors are
        a pose or frame that refers to a missing file, and a moving model whose canonical link may be in a missing file.
    namespace: the ROS namespace of the plug-ins of ROS 1 that declare none, as `spawn_model -robot_namespace` of Gazebo
        Classic adds it. Without it, the beams of a DVL of the UUV Simulator have the namespace of the DVL.

    `notes` of the world list the elements that are not supported. Raises `SdfError`; its `problems` are all problems of
    the file and its includes.

    >>> world = ns.load("quadrotor.sdf")
    >>> world.sensor("imu").rate
    1000.0
    """
    if fidelity is not None and fidelity not in FIDELITIES:
        raise SdfError("fidelity", fidelity, allowed=f"must be one of {', '.join(FIDELITIES)}")
    if missing not in MISSING_MODES:
        raise SdfError("missing", missing, allowed=f"must be one of {', '.join(MISSING_MODES)}")
    if not isinstance(file, str | os.PathLike):
        allowed, remedy = "must be a file name or a path", 'write "dive.sdf"'
        raise SdfError("path of a world", repr(file), allowed=allowed, remedy=remedy)
    with inputs.collect_inputs() as sources, pause_garbage_collection():
        context = Context(
            os.fsdecode(file),
            fidelity,
            skip_missing=missing == "skip",
            namespace=parse_namespace(namespace),
            sources=sources,
        )
        return _load_world(context, path, sensors, xacro or {}, expand_xacro=expand_xacro)


def _load_world(
    context: Context,
    path: SearchFolders,
    sensor_types: Sequence[type[Sensor]],
    xacro: Mapping[str, str],
    *,
    expand_xacro: bool,
) -> World:
    """Return the world of the context's file, see `load`."""
    try:
        search = build_search_path(path)
        reader = FileReader(context, search, arguments=xacro, expand_xacro=expand_xacro)
        root = IncludeExpander(context, search, reader).read_root(context.path)
    except SdfError as error:
        error.problems = error.problems or (error,)
        raise
    except TooManyProblemsError:
        context.raise_problems()
        raise
    user_types = [kind for kind in (*_load_installed_sensors(), *sensor_types) if kind not in SENSORS]
    for kind in user_types:
        check_members(kind)
    type_element_parsers = {
        **TYPE_ELEMENT_PARSERS,
        **{kind.type: make_type_element_parser(kind) for kind in user_types},
    }
    try:
        world = _parse_world(context, root, search, type_element_parsers)
    except (SimulationError, TooManyProblemsError):
        context.raise_problems()  # If the file has problems, an error of the world adds no information.
        raise
    context.raise_problems()
    if world is None:  # every path to this line has added a problem
        raise SdfError("file", "no world", where=Where(context.path))
    return world


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Disable the collector of reference cycles, which would visit the elements of a large file again and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@cache
def _load_installed_sensors() -> tuple[type[Sensor], ...]:
    """Return the sensor types that installed packages declare."""
    allowed = "must be a class that can be imported"
    entries = entry_points(group="navsense.sensors")
    return tuple(load_plugin(entry, type, "sensor", allowed, SensorError) for entry in entries)


def _parse_world(
    context: Context, root: Element, search: SearchPath, type_element_parsers: Mapping[str, TypeElementParser]
) -> World | None:
    """Return the one world or model of a file; None and a problem without it."""
    children = list(root.find_all("world", "model"))
    if len(children) != 1:
        element = children[1] if children else root
        value = f"{len(children)} worlds and models" if children else "empty"
        context.add_problem(invalid_value(element, value, "a file must hold one <world>, or one <model>"))
        return None
    with context.collect_errors():
        name = parse_name(children[0])
        build_scope = build_world_scope if children[0].tag == "world" else build_model_scope
        scope, has_world = build_scope(context, children[0]), children[0].tag == "world"
        return _build_world(context, name, scope, search, type_element_parsers, has_world=has_world)
    return None


def _build_world(
    context: Context,
    name: str,
    scope: Scope,
    search: SearchPath,
    type_element_parsers: Mapping[str, TypeElementParser],
    *,
    has_world: bool,
) -> World:
    """Return the world of its scope (`sdf.frames.Scope`), whose frames are resolved.

    `has_world` is False for the file of a model, whose world has SDF's defaults.
    """
    element = scope.element
    classic = parse_classic(context, element, default=False)
    reference = parse_earth_reference(context, element)
    environment, air_problems = parse_environment(context, scope, reference.origin, reference.magnetic_field)
    step = parse_max_step_size(context, element)
    environment, topic = _add_current(context, element, environment, search, step, classic)
    world_poses = FramePoses(scope.frame)
    candidates = [parse_model(context, nested, world_poses, environment) for nested in scope.nested.values()]
    parsed_models = [parsed_model for parsed_model in candidates if parsed_model is not None]
    clocks = ClockRegistry()
    for parsed_model in parsed_models:
        for link_scope, link in parsed_model.list_links():
            clocks.parse_clocks(context, link, link_scope, classic=classic, signals=environment.signals)
    sensor_parser = SensorParser(
        context,
        name,
        classic,
        environment.origin,
        step,
        clocks,
        type_element_parsers,
        water=environment.water,
        current_topic=topic.topic if environment.current is not None else "",
        has_world=has_world,
        measure_field=lambda: math.hypot(*environment.magnetic_field.at(np.zeros((1, 3)), np.zeros(1))[0].tolist()),
    )
    sensors = tuple(sensor for parsed_model in parsed_models for sensor in sensor_parser.parse_sensors(parsed_model))
    report_atmosphere(context, air_problems, sensors)
    return World(
        name=name,
        models=tuple(parsed_model.model for parsed_model in parsed_models),
        sensors=sensors,
        clocks=clocks.all,
        environment=environment,
        max_step_size=step,
        path=context.path,
        solids=_parse_solids(context, search, sensors, parsed_models),
        notes=context.list_notes(),
        current_topic=topic,
        sources=frozenset(context.sources),
    )


def _parse_solids(
    context: Context, search: SearchPath, sensors: Sequence[MountedSensor], parsed_models: Sequence[ParsedModel]
) -> tuple[Solid, ...]:
    """Return the surfaces that rays may hit. The parser is imported only if the file has a surface."""
    if not any(
        link.element.find("collision") for parsed_model in parsed_models for _, link in parsed_model.list_links()
    ):
        return ()
    from navsense.sdf.parse.collision import SolidParser

    parser = SolidParser(context, search, sensors)
    return tuple(solid for parsed_model in parsed_models for solid in parser.parse_solids(parsed_model))


def _add_current(
    context: Context, element: Element, environment: Environment, search: SearchPath, step: float, classic: bool
) -> tuple[Environment, CurrentTopic]:
    """Return the environment with the currents of a world, and where these are recorded.

    The parsers are imported only if the file may have a current, because most worlds have none.
    """
    tags = ("navsense:current", "plugin", "water_velocity")
    if element.tag != "world" or not any(child.tag in tags for child in element.walk()):
        return environment, CurrentTopic()
    from navsense.sdf.parse.current import CurrentContext, parse_current
    from navsense.sdf.parse.current_gazebo import parse_gazebo_currents
    from navsense.sdf.parse.current_plugins import parse_plugin_currents

    surface = environment.water.surface if environment.water else 0.0
    site = CurrentContext(environment.origin, environment.heading, surface, search)
    world_current = parse_current(context, element, site)
    plugin_currents = parse_plugin_currents(context, element, site, step, classic=classic)
    currents = (*world_current.fields, *plugin_currents.fields, *parse_gazebo_currents(context, element, site))
    if currents:
        environment = replace(environment, current=FieldSum(currents) if len(currents) > 1 else currents[0])
    topic = world_current.topic or plugin_currents.topic or CurrentTopic()
    return environment, replace(topic, layers=plugin_currents.topic.layers if plugin_currents.topic else None)

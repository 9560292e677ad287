"""A whole file: one world, or one model without a world."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points

from navsense import inputs
from navsense.clock import Temperature
from navsense.environment.base import Environment, Sum
from navsense.errors import SdfError, SensorError, SimulationError, Where
from navsense.fidelity import FIDELITIES
from navsense.sdf.context import Context, TooManyProblemsError
from navsense.sdf.fill.clock import Clocks
from navsense.sdf.fill.environment import environment
from navsense.sdf.fill.model import Filled, model
from navsense.sdf.fill.sensor import FILLS, Fill, OwnSensor, Sensors
from navsense.sdf.fill.world import classic_of, max_step_size
from navsense.sdf.frames import Poses, Scope
from navsense.sdf.graph import model_scope, world_scope
from navsense.sdf.include import Includes
from navsense.sdf.names import checked_name
from navsense.sdf.places import SDF
from navsense.sdf.read import Element
from navsense.sdf.search import PathsGiven, Search, search_of
from navsense.sdf.values import refusal
from navsense.sensors import SENSORS
from navsense.world import CurrentTopic, MountedSensor, Solid, World

MISSING = ("refused", "listed")
"""What may become of files that are not found."""


def load(
    file: str | os.PathLike[str],
    *,
    path: PathsGiven = (),
    fidelity: str | None = None,
    sensors: Sequence[type[OwnSensor]] = (),
    xacro: Mapping[str, str] | None = None,
    expand_xacro: bool = False,
    missing: str = MISSING[0],
) -> World:
    """Return the world of an SDF file (1.4 to 1.12), or its one model in a world of SDF's defaults.

    A file of URDF is one such model; one called `*.xacro` is expanded first (the extra `xacro`), with the arguments
    `xacro`. Expansion runs the file as a program. A file with another name may use or include xacro only with
    `expand_xacro=True`.

    `path` is a folder of models, or several, in which included files are looked for before those of the environment
    (`GZ_SIM_RESOURCE_PATH`, `IGN_GAZEBO_RESOURCE_PATH`, `SDF_PATH`, `GAZEBO_MODEL_PATH`; for packages
    `ROS_PACKAGE_PATH`, `AMENT_PREFIX_PATH`).

    `sensors` are one's own kinds of sensor, known for this file beside navsense's and those that installed packages
    announce under the entry point `navsense.sensors`; a type named again replaces the one before.

    `missing` says what becomes of models, meshes and heightmaps that are not on this machine: "refused", an error that
    names them all, or "listed", the world without them, each named in its `notes`, as are the joints that end in one.
    A pose or frame that refers to one is an error still, and so is a moving model whose canonical link may be in one.

    `fidelity`, "physical" or "classic", overrides what the file says for every noise in it, and for what a plug-in says
    otherwise under it, its current and limits: more than `simulate` can change in a world that was read. What is not
    supported is listed in the world's `notes`.

    Raises `SdfError` for a file that cannot be read or does not hold together; its `problems` are all that were found,
    in the file and in those that it includes.
    """
    if fidelity is not None and fidelity not in FIDELITIES:
        raise SdfError("fidelity", fidelity, allowed=f"must be one of {', '.join(FIDELITIES)}")
    if missing not in MISSING:
        raise SdfError("missing", missing, allowed=f"must be one of {', '.join(MISSING)}")
    if not isinstance(file, str | os.PathLike):
        raise SdfError(
            "path of a world", repr(file), allowed="must be a file name or a path", remedy='write "dive.sdf"'
        )
    with inputs.collect_inputs() as sources, pause_garbage_collection():
        world = _loaded(os.fsdecode(file), path, fidelity, sensors, xacro or {}, missing, expand_xacro=expand_xacro)
    return replace(world, sources=frozenset(sources))


def _loaded(
    name: str,
    path: PathsGiven,
    fidelity: str | None,
    sensors: Sequence[type[OwnSensor]],
    xacro: Mapping[str, str],
    missing: str,
    *,
    expand_xacro: bool,
) -> World:
    """Return the world of a file, see `load`."""
    context = Context(name, fidelity, without_missing=missing == "listed")
    try:
        search = search_of(path)
        root = Includes(context, search, arguments=xacro, expand_xacro=expand_xacro).root(name)
    except SdfError as error:
        error.problems = error.problems or (error,)
        raise
    except TooManyProblemsError:
        context.raise_problems()
        raise
    own = [kind for kind in (*_installed(), *sensors) if kind not in SENSORS]
    fills = {**FILLS, **{kind.type: kind.fill for kind in own}}
    try:
        world = _world(context, root, search, fills)
    except (SimulationError, TooManyProblemsError):
        context.raise_problems()  # where the file has told what is wrong, the world's own refusal adds nothing
        raise
    context.raise_problems()
    if world is None:  # a problem was kept for every way to get here
        raise SdfError("file", "no world", where=Where(name))
    return world


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Disable the collector of reference cycles. It would visit the elements of a large file again and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@cache
def _installed() -> tuple[type[OwnSensor], ...]:
    """Return the kinds of sensor that installed packages announce."""
    kinds = []
    for found in entry_points(group="navsense.sensors"):
        try:
            kinds.append(found.load())
        except Exception as error:  # whatever the package does when it is imported
            package = found.dist.name if found.dist else found.value
            raise SensorError(
                f"sensor {found.name!r} of package {package}",
                str(error),
                allowed="must be a class that can be imported",
                remedy=f"mend or remove {package}",
            ) from error
    return tuple(kinds)


def _world(context: Context, root: Element, search: Search, fills: Mapping[str, Fill]) -> World | None:
    context.check(root, SDF)
    roots = [child for child in root.children if child.tag in ("world", "model")]
    if len(roots) != 1:
        at = roots[1] if roots else root
        shown = f"{len(roots)} worlds and models" if roots else "empty"
        context.problem(refusal(at, shown, "a file must hold one <world>, or one <model>"))
        return None
    with context.collecting():
        name = checked_name(roots[0])
        if roots[0].tag == "world":
            return _filled(context, name, world_scope(context, roots[0]), search, fills)
        return _filled(context, name, model_scope(context, roots[0]), search, fills)
    return None


def _filled(context: Context, name: str, scope: Scope, search: Search, fills: Mapping[str, Fill]) -> World:
    """Return the world of a connected scope."""
    element = scope.element
    classic = classic_of(context, element, default=False)
    surroundings, step = environment(context, scope), max_step_size(context, element)
    surroundings, topic = _with_current(context, element, surroundings, search, step, classic)
    in_world = Poses(scope.node)
    models = [filled for nested in scope.nested.values() if (filled := model(context, nested, in_world)) is not None]
    clocks = Clocks()
    for filled in models:
        _declare_clocks(context, clocks, filled, classic=classic, signals=surroundings.signals)
    flows = topic.topic if surroundings.current is not None else ""
    reader = Sensors(
        context, name, classic, surroundings.origin, step, clocks, fills, water=surroundings.water, current=flows
    )
    sensors = tuple(sensor for filled in models for sensor in reader.of(filled))
    return World(
        name=name,
        models=tuple(filled.model for filled in models),
        sensors=sensors,
        clocks=clocks.all,
        environment=surroundings,
        max_step_size=step,
        path=context.path,
        solids=_solids(context, search, sensors, models),
        notes=context.notes(),
        current_topic=topic,
    )


def _solids(
    context: Context, search: Search, sensors: Sequence[MountedSensor], models: Sequence[Filled]
) -> tuple[Solid, ...]:
    """Return the surfaces that rays may meet; their reader is imported where there is one."""
    if not any(link.element.first("collision") for filled in models for _, link in filled.links()):
        return ()
    from navsense.sdf.fill.collision import Solids

    reader = Solids(context, search, sensors)
    return tuple(solid for filled in models for solid in reader.of(filled))


def _holds(element: Element, tags: tuple[str, ...]) -> bool:
    """Tell whether one of these elements stands anywhere in this one."""
    return any(child.tag in tags or _holds(child, tags) for child in element.children)


def _with_current(
    context: Context, element: Element, surroundings: Environment, search: Search, step: float, classic: bool
) -> tuple[Environment, CurrentTopic]:
    """Return the surroundings with the currents of a world, and where these are recorded.

    Their readers are imported where something may be one: most worlds have none.
    """
    if element.tag != "world" or not _holds(element, ("navsense:current", "plugin", "water_velocity")):
        return surroundings, CurrentTopic()
    from navsense.sdf.fill.current import Sea, current_of
    from navsense.sdf.fill.current_gazebo import currents_of_gazebo
    from navsense.sdf.fill.current_plugins import currents_of_plugins

    sea = Sea.of(surroundings, search)
    own, plugged = current_of(context, element, sea), currents_of_plugins(context, element, sea, step, classic=classic)
    currents = (*own.fields, *plugged.fields, *currents_of_gazebo(context, element, sea))
    if currents:
        surroundings = replace(surroundings, current=Sum(currents) if len(currents) > 1 else currents[0])
    topic = own.topic or plugged.topic or CurrentTopic()
    return surroundings, replace(topic, layers=plugged.topic.layers if plugged.topic else None)


def _declare_clocks(
    context: Context, clocks: Clocks, filled: Filled, *, classic: bool, signals: Mapping[str, Temperature]
) -> None:
    for scope, link in filled.links():
        clocks.declare(context, link, scope, classic=classic, signals=signals)

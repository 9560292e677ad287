"""Gazebo's currents: the table of a world's `EnvironmentPreload`, and the uniform one of a model's `Hydrodynamics`.

    <plugin filename="gz-sim-environment-preload-system" name="gz::sim::systems::EnvironmentPreload">
      <data>currents.csv</data>
      <dimensions>
        <ignore_time>false</ignore_time> <time>t</time>
        <space reference="global"> <x>x</x> <y>y</y> <z>z</z> </space>       or spherical (units="radians"), or ecef
      </dimensions>
    </plugin>

Which columns are a current says who feels it: the first `<lookup_current_x>`, `_y`, `_z` of a `Hydrodynamics`, else the
first `<water_velocity><x>`, `<y>`, `<z>` of a DVL; one that names others gets a warning. Without a table
`<default_current>` (m/s, world axes) is it; in Gazebo it is one model's own, so where models differ none is taken, and
a warning says so. Outside the table Gazebo has 0 m/s; here what `Gridded` has. A world without a place stands at
latitude and longitude 0, as in Gazebo.
Source: gz-sim, `EnvironmentPreload.cc`, `Hydrodynamics.cc`; gz-sensors, `DopplerVelocityLog.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from navsense.environment.base import Uniform, VectorField
from navsense.environment.current import Gridded, Stratified
from navsense.errors import FieldError, SdfError
from navsense.geodesy import Origin
from navsense.sdf import values
from navsense.sdf.context import Context
from navsense.sdf.fill.current import Sea
from navsense.sdf.fill.fields import flag_of, refused_at
from navsense.sdf.places import DIMENSIONS, LEAF, PRELOAD, PRELOADS, SPACE
from navsense.sdf.read import Element
from navsense.sdf.values import refusal

HYDRODYNAMICS = frozenset(
    (
        "gz-sim-hydrodynamics-system",
        "libgz-sim-hydrodynamics-system.so",
        "ignition-gazebo-hydrodynamics-system",
        "libignition-gazebo-hydrodynamics-system.so",
    )
)
"""Files of the plug-in of a model."""

REFERENCES = {"global": "world", "spherical": "geodetic", "ecef": "ecef"}
"""Reference of a table's space: what `Gridded` calls it."""

Columns = tuple[str | None, str | None, str | None]


def currents_of_gazebo(context: Context, world: Element, sea: Sea) -> list[VectorField]:
    """Return the current of a world's table, else the one that its models' plug-ins agree on; none otherwise."""
    tables = [one for one in world.all("plugin") if one.attributes.get("filename") in PRELOADS]
    plugins = [one for one in _below(world) if one.attributes.get("filename") in HYDRODYNAMICS and one.tag == "plugin"]
    named = [one for one in _below(world) if one.tag == "water_velocity"]
    if not tables:
        for one in named:
            reason = "the world has no table that these could be columns of: its current, if any, is what else it gives"
            context.note("warning", "<water_velocity>", reason, one.where)
        return _default(context, plugins)
    for element in tables:
        context.check(element, PRELOAD)
    columns = next((found for one in _lookups(world, plugins) if any(found := one)), None)
    if columns is None:
        reason = "nothing in the world says which of its columns are a current"
        context.note("unsupported", "<plugin><data>", reason, tables[0].where)
        return []
    with context.collecting():
        try:
            field = _table(context, tables[0], sea, columns)
        except FieldError as error:
            raise refused_at(tables[0], error) from error
        for one in named:
            _check_named(context, one, tables[0], sea, columns)
        return [field]
    return []


def _check_named(context: Context, element: Element, table: Element, sea: Sea, columns: Columns) -> None:
    """Tell of a DVL that names other columns than those of the current; raise `SdfError` where the table has none."""
    own = _texts(element, "")
    if own == columns or not any(own):
        return
    try:
        _table(context, table, sea, own)
    except FieldError as error:
        raise refused_at(element, error) from error
    shown = ", ".join(column or "none" for column in columns)
    reason = f"a world has one current, and its columns are {shown}"
    context.note("warning", "<water_velocity>", reason, element.where)


def _below(element: Element) -> Iterator[Element]:
    """Yield all elements in an element, from the top of the file."""
    queue = [element]
    while queue:
        at = queue.pop()
        yield at
        queue.extend(reversed(tuple(at.children)))


def _lookups(world: Element, plugins: list[Element]) -> Iterator[Columns]:
    """Yield the columns of a current, as those who feel it name them."""
    for plugin in plugins:
        yield _texts(plugin, "lookup_current_")
    for element in _below(world):
        if element.tag == "water_velocity":
            yield _texts(element, "")


def _texts(element: Element, prefix: str) -> Columns:
    x, y, z = (element.first(f"{prefix}{axis}") for axis in "xyz")
    return (x.text if x else None) or None, (y.text if y else None) or None, (z.text if z else None) or None


def _table(context: Context, element: Element, sea: Sea, columns: Columns) -> Gridded:
    data = element.first("data")
    if data is None:
        raise SdfError("<plugin><data>", "missing", where=element.where, allowed="must be given")
    given: dict[str, Any] = {"time": "t", "space": "world"}
    position = ["x", "y", "z"]
    dimensions = element.first("dimensions")
    if dimensions is not None:
        context.check(dimensions, DIMENSIONS)
        given["ignore_time"] = flag_of(context, dimensions, "ignore_time", default=False)
        given["time"] = _text(context, dimensions, "time", "t")
        space = dimensions.first("space")
        if space is not None:
            context.check(space, SPACE)
            reference = space.attribute("reference") or "global"
            if reference not in REFERENCES:
                allowed = f"must be one of {', '.join(REFERENCES)}"
                raise refusal(space, reference, allowed, attribute="reference")
            given |= {"space": REFERENCES[reference], "units": space.attribute("units") or "radians"}
            position = [_text(context, space, axis, axis) for axis in "xyz"]
    origin = sea.origin
    if origin is None and given["space"] != "world":
        origin = Origin(0.0, 0.0)
        reason = "the world has no <spherical_coordinates>: it stands at latitude and longitude 0, as in Gazebo"
        context.note("warning", "<plugin><data>", reason, element.where)
    x, y, z = position
    path = sea.search.asset(data, element.tag)
    return Gridded.from_file(path, position=(x, y, z), velocity=columns, origin=origin, **given)


def _text(context: Context, element: Element, tag: str, default: str) -> str:
    child = element.first(tag)
    if child is None:
        return default
    context.check(child, LEAF)
    return values.text(child, parent=element.tag)


def _flow(plugin: Element, child: Element) -> tuple[float, float, float]:
    """Return the velocity (m/s) that a plug-in names. Raise `SdfError` for what no sea has."""
    found = values.vector(child, parent=plugin.tag)
    try:
        Stratified((0.0,), (found,))  # refuses what no sea has
    except FieldError as error:
        raise refused_at(child, error) from error
    return found


def _default(context: Context, plugins: list[Element]) -> list[VectorField]:
    """Return the current that the models' plug-ins agree on."""
    found: dict[tuple[float, float, float], Element] = {}
    for plugin in plugins:
        child = plugin.first("default_current")
        with context.collecting():
            vector = (0.0, 0.0, 0.0) if child is None else _flow(plugin, child)
            found.setdefault(vector, child or plugin)
    if len(found) > 1:
        reason = "models differ in it: none is taken; give the world <navsense:current><uniform>"
        context.note("warning", "<plugin><default_current>", reason, next(iter(found.values())).where)
    return [Uniform(vector) for vector in found if len(found) == 1 and any(vector)]

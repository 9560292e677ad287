"""Gazebo's currents: the table of a world's `EnvironmentPreload`, and the uniform current of a model's `Hydrodynamics`.

    <plugin filename="gz-sim-environment-preload-system" name="gz::sim::systems::EnvironmentPreload">
      <data>currents.csv</data>
      <dimensions>
        <ignore_time>false</ignore_time> <time>t</time>
        <space reference="global"> <x>x</x> <y>y</y> <z>z</z> </space>       or spherical (units="radians"), or ecef
      </dimensions>
    </plugin>

The first `<lookup_current_x>`, `_y`, `_z` of a `Hydrodynamics` name the columns of the current, else the first
`<water_velocity><x>`, `<y>`, `<z>` of a DVL. A DVL with other columns gives a warning. Without a table the current is
`<default_current>` (m/s, world axes). In Gazebo each model has its own; if models differ, none is used, with a warning.
Outside the table Gazebo uses 0 m/s; navsense extrapolates as `GriddedCurrent` does. A world without a place has
latitude and longitude 0, as in Gazebo.
Source: gz-sim, `EnvironmentPreload.cc`, `Hydrodynamics.cc`; gz-sensors, `DopplerVelocityLog.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from navsense.core.errors import FieldError, SdfError
from navsense.core.geodesy import Origin
from navsense.environment.base import UniformField, VectorField
from navsense.environment.current import GriddedCurrent, StratifiedCurrent
from navsense.sdf import values
from navsense.sdf.context import Context
from navsense.sdf.parse.children import error_at, parse_child_flag
from navsense.sdf.parse.current import CurrentContext
from navsense.sdf.schema import DIMENSIONS, LEAF, PRELOAD, PRELOAD_FILES, SPACE
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element

HYDRODYNAMICS_FILES = frozenset(
    (
        "gz-sim-hydrodynamics-system",
        "libgz-sim-hydrodynamics-system.so",
        "ignition-gazebo-hydrodynamics-system",
        "libignition-gazebo-hydrodynamics-system.so",
    )
)
"""Files of the plug-in of a model."""

SPACES = {"global": "world", "spherical": "geodetic", "ecef": "ecef"}
"""Reference of a table's space: what `GriddedCurrent` calls it."""

ColumnNames = tuple[str | None, str | None, str | None]


def parse_gazebo_currents(context: Context, world: Element, site: CurrentContext) -> list[VectorField]:
    """Return the current of the world's table, else the common default current of its models; None without both."""
    tables = [one for one in world.find_all("plugin") if one.attributes.get("filename") in PRELOAD_FILES]
    plugins = [
        one for one in _walk(world) if one.attributes.get("filename") in HYDRODYNAMICS_FILES and one.tag == "plugin"
    ]
    named = [one for one in _walk(world) if one.tag == "water_velocity"]
    if not tables:
        for one in named:
            reason = "the world has no table with these columns; its other currents apply"
            context.add_note("warning", "<water_velocity>", reason, one.where)
        return _parse_default(context, plugins)
    for element in tables:
        context.check(element, PRELOAD)
    columns = next((found for one in _list_columns(world, plugins) if any(found := one)), None)
    if columns is None:
        reason = "no element of the world names its columns of a current"
        context.add_note("unsupported", "<plugin><data>", reason, tables[0].where)
        return []
    with context.collect_errors():
        try:
            field = _parse_table(context, tables[0], site, columns)
        except FieldError as error:
            raise error_at(tables[0], error) from error
        for one in named:
            _check_columns(context, one, tables[0], site, columns)
        return [field]
    return []


def _check_columns(
    context: Context, element: Element, table: Element, site: CurrentContext, columns: ColumnNames
) -> None:
    """Add a warning for a DVL with other columns than the current. Raises `SdfError` for an unknown column."""
    own = _read_columns(element, "")
    if own == columns or not any(own):
        return
    try:
        _parse_table(context, table, site, own)
    except FieldError as error:
        raise error_at(element, error) from error
    shown = ", ".join(column or "none" for column in columns)
    reason = f"a world has one current, and its columns are {shown}"
    context.add_note("warning", "<water_velocity>", reason, element.where)


def _walk(element: Element) -> Iterator[Element]:
    """Yield all elements below an element, in the order of the file."""
    queue = [element]
    while queue:
        at = queue.pop()
        yield at
        queue.extend(reversed(tuple(at.children)))


def _list_columns(world: Element, plugins: list[Element]) -> Iterator[ColumnNames]:
    """Yield the columns of a current, as its users name them."""
    for plugin in plugins:
        yield _read_columns(plugin, "lookup_current_")
    for element in _walk(world):
        if element.tag == "water_velocity":
            yield _read_columns(element, "")


def _read_columns(element: Element, prefix: str) -> ColumnNames:
    x, y, z = (element.find(f"{prefix}{axis}") for axis in "xyz")
    return (x.text if x else None) or None, (y.text if y else None) or None, (z.text if z else None) or None


def _parse_table(context: Context, element: Element, site: CurrentContext, columns: ColumnNames) -> GriddedCurrent:
    data = element.find("data")
    if data is None:
        raise SdfError("<plugin><data>", "missing", where=element.where, allowed="must be given")
    given: dict[str, Any] = {"time": "t", "space": "world"}
    position = ["x", "y", "z"]
    dimensions = element.find("dimensions")
    if dimensions is not None:
        context.check(dimensions, DIMENSIONS)
        given["ignore_time"] = parse_child_flag(context, dimensions, "ignore_time", default=False)
        given["time"] = _parse_child_text(context, dimensions, "time", "t")
        space = dimensions.find("space")
        if space is not None:
            context.check(space, SPACE)
            reference = space.get_attribute("reference") or "global"
            if reference not in SPACES:
                allowed = f"must be one of {', '.join(SPACES)}"
                raise invalid_value(space, reference, allowed, attribute="reference")
            given |= {"space": SPACES[reference], "units": space.get_attribute("units") or "radians"}
            position = [_parse_child_text(context, space, axis, axis) for axis in "xyz"]
    origin = site.origin
    if origin is None and given["space"] != "world":
        origin = Origin(0.0, 0.0)
        reason = "the world has no <spherical_coordinates>: its latitude and longitude are 0, as in Gazebo"
        context.add_note("warning", "<plugin><data>", reason, element.where)
    x, y, z = position
    path = site.search.find_asset(data, element.tag)
    return GriddedCurrent.from_file(path, position=(x, y, z), velocity=columns, origin=origin, **given)


def _parse_child_text(context: Context, element: Element, tag: str, default: str) -> str:
    child = element.find(tag)
    if child is None:
        return default
    context.check(child, LEAF)
    return values.parse_text(child, parent=element.tag)


def _parse_velocity(plugin: Element, child: Element) -> tuple[float, float, float]:
    """Return the velocity (m/s) of a plug-in. Raises `SdfError` for a speed that no sea has."""
    found = values.parse_vector(child, parent=plugin.tag)
    try:
        StratifiedCurrent((0.0,), (found,))  # raises for a speed that no sea has
    except FieldError as error:
        raise error_at(child, error) from error
    return found


def _parse_default(context: Context, plugins: list[Element]) -> list[VectorField]:
    """Return the current on which the plug-ins of the models agree."""
    found: dict[tuple[float, float, float], Element] = {}
    for plugin in plugins:
        child = plugin.find("default_current")
        with context.collect_errors():
            vector = (0.0, 0.0, 0.0) if child is None else _parse_velocity(plugin, child)
            found.setdefault(vector, child or plugin)
    if len(found) > 1:
        reason = "models differ: no current is used; add <navsense:current><uniform> to the world"
        context.add_note("warning", "<plugin><default_current>", reason, next(iter(found.values())).where)
    return [UniformField(vector) for vector in found if len(found) == 1 and any(vector)]

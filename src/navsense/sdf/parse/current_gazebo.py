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

from typing import Any

from navsense.core.geodesy import Origin
from navsense.core.typing import Vector
from navsense.environment.base import UniformField, VectorField
from navsense.environment.current import GriddedCurrent, StratifiedCurrent
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_flag, parse_child_text
from navsense.sdf.parse.current import CurrentContext
from navsense.sdf.plugin_files import is_among
from navsense.sdf.schema import DIMENSIONS, PRELOAD, PRELOAD_FILES, SPACE
from navsense.sdf.values import invalid_choice, map_spec_errors, parse_vector, require_child
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
"""Reference of a table's space -> argument `space` of `GriddedCurrent`."""

ColumnNames = tuple[str | None, str | None, str | None]


def _is_file(plugin: Element, files: frozenset[str]) -> bool:
    return is_among(plugin.attributes.get("filename", ""), files)


def parse_gazebo_currents(context: Context, world: Element, site: CurrentContext) -> list[VectorField]:
    """Return the current of the world's table, else the common default current of its models; none without both."""
    tables = [
        child for child in world.find_all("plugin") if is_among(child.attributes.get("filename", ""), PRELOAD_FILES)
    ]
    plugins = [
        e for e in world.walk() if e.tag == "plugin" and is_among(e.attributes.get("filename", ""), HYDRODYNAMICS_FILES)
    ]
    velocities = [element for element in world.walk() if element.tag == "water_velocity"]
    if not tables:
        for element in velocities:
            reason = "the world has no table with these columns; its other currents apply"
            context.add_note("warning", "<water_velocity>", reason, element.where)
        return _parse_default(context, plugins)
    for table in tables:
        context.check(table, PRELOAD)
    candidates = [_read_columns(plugin, "lookup_current_") for plugin in plugins]
    candidates += [_read_columns(element, "") for element in velocities]
    columns = next(filter(any, candidates), None)
    if columns is None:
        reason = "no element of the world names its columns of a current"
        context.add_note("unsupported", "<plugin><data>", reason, tables[0].where)
        return []
    with context.collect_errors():
        with map_spec_errors(tables[0]):
            field = _parse_table(context, tables[0], site, columns)
        for element in velocities:
            _check_columns(context, element, tables[0], site, columns)
        return [field]
    return []


def _check_columns(
    context: Context, element: Element, table: Element, site: CurrentContext, columns: ColumnNames
) -> None:
    """Add a warning for a DVL with other columns than the current. Raises `SdfError` for an unknown column."""
    dvl_columns = _read_columns(element, "")
    if dvl_columns == columns or not any(dvl_columns):
        return
    with map_spec_errors(element):
        _parse_table(context, table, site, dvl_columns)
    names = ", ".join(column or "none" for column in columns)
    reason = f"a world has one current, and its columns are {names}"
    context.add_note("warning", "<water_velocity>", reason, element.where)


def _read_columns(element: Element, prefix: str) -> ColumnNames:
    """Return the columns that an element names; None for an absent or empty name."""
    x, y, z = (element.get_text(f"{prefix}{axis}") or None for axis in "xyz")
    return x, y, z


def _parse_table(context: Context, element: Element, site: CurrentContext, columns: ColumnNames) -> GriddedCurrent:
    """Return the current in some columns of the world's table."""
    data = require_child(element, "data")
    options: dict[str, Any] = {"time": "t", "space": "world"}
    position = ["x", "y", "z"]
    dimensions = context.find_child(element, "dimensions", DIMENSIONS)
    if dimensions is not None:
        options["ignore_time"] = parse_child_flag(context, dimensions, "ignore_time", default=False)
        options["time"] = parse_child_text(context, dimensions, "time", "t")
        space = context.find_child(dimensions, "space", SPACE)
        if space is not None:
            reference = space.get_attribute("reference") or "global"
            if reference not in SPACES:
                raise invalid_choice(space, reference, SPACES, attribute="reference")
            options |= {"space": SPACES[reference], "units": space.get_attribute("units") or "radians"}
            position = [parse_child_text(context, space, axis, axis) for axis in "xyz"]
    origin = site.origin
    if origin is None and options["space"] != "world":
        origin = Origin(0.0, 0.0)
        reason = "the world has no <spherical_coordinates>: its latitude and longitude are 0, as in Gazebo"
        context.add_note("warning", "<plugin><data>", reason, element.where)
    x, y, z = position
    path = site.search.find_table(data, element.tag)
    return GriddedCurrent.from_file(path, position=(x, y, z), velocity=columns, origin=origin, **options)


def _parse_default(context: Context, plugins: list[Element]) -> list[VectorField]:
    """Return the current on which the plug-ins of the models agree."""
    currents: dict[Vector, Element] = {}
    for plugin in plugins:
        child = plugin.find("default_current")
        if child is None:
            currents.setdefault((0.0, 0.0, 0.0), plugin)
            continue
        with context.collect_errors(), map_spec_errors(child):
            velocity = parse_vector(child, parent=plugin.tag)
            StratifiedCurrent((0.0,), (velocity,))  # raises for an unrealistic speed
            currents.setdefault(velocity, child)
    if len(currents) > 1:
        reason = "models differ: no current is used; add <navsense:current><uniform> to the world"
        context.add_note("warning", "<plugin><default_current>", reason, next(iter(currents.values())).where)
    return [UniformField(velocity) for velocity in currents if len(currents) == 1 and any(velocity)]

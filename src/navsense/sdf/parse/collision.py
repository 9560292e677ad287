"""`<collision>`: the surfaces of a link that rays hit.

| shape | content |
|---|---|
| `<plane>`, `<box>`, `<sphere>`, `<cylinder>`, `<capsule>`, `<ellipsoid>` | centred in the collision's frame |
| `<mesh>` | `<uri>` of an STL or OBJ file, `<scale>`, `<submesh>` |
| `<heightmap>` | `<uri>` of a PNG or of a grid in text, `<size>`, `<pos>`, `<sampling>` |

Files are located when the world is loaded, and read if the rays of a sensor may hit them. A missing file is a problem
if the rays of a sensor may hit it, else a note. The hull of a vehicle with the only such sensors is not hit. With
`missing="skip"` its surface is skipped with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from navsense.core.errors import FieldError, SdfError
from navsense.core.inputs import add_input
from navsense.core.pose import Pose
from navsense.environment.terrain.base import LazyShape, Shape
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.mesh import Mesh
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from navsense.sdf.context import Context
from navsense.sdf.names import join_names, parse_name
from navsense.sdf.parse.children import error_at, parse_child_flag, parse_child_number, parse_child_vector
from navsense.sdf.parse.link_pose import find_pose_in_link
from navsense.sdf.parse.model import ParsedModel
from navsense.sdf.schema import (
    BOX,
    COLLISION,
    ELLIPSOID,
    GEOMETRY,
    HEIGHTMAP,
    LEAF,
    MESH,
    PLANE,
    ROUND,
    SPHERE,
    SUBMESH,
)
from navsense.sdf.search_path import MissingFileError, SearchPath
from navsense.sdf.values import invalid_value, parse_text
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import UsesRayCasting
from navsense.world import MountedSensor, Solid

_UNIT = (1.0, 1.0, 1.0)
_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class SolidParser:
    """Parses the surfaces of a world with these sensors."""

    context: Context
    search: SearchPath
    sensors: Sequence[MountedSensor]

    def parse_solids(self, parsed: ParsedModel) -> Iterator[Solid]:
        """Yield the surfaces of a model's links, in the order of the file."""
        casting = [(one, one.spec) for one in self.sensors if isinstance(one.spec, UsesRayCasting)]
        needed = any(spec.own_hull or one.model != parsed.model.name for one, spec in casting)
        for scope, link in parsed.list_links():
            for element in link.element.find_all("collision"):
                self.context.check(element, COLLISION)
                with self.context.collect_errors():
                    name = join_names(element, link.name, parse_name(element))
                    shape = self._parse_shape(element, needed=needed)
                    if shape is not None:
                        pose: Pose = find_pose_in_link(self.context, parsed, scope, link, element)
                        yield Solid(name, link.name, shape, pose, element.where)

    def _parse_shape(self, collision: Element, *, needed: bool) -> Shape | None:
        """Return the surface of a collision; None without a shape, and for a shape that is not simulated."""
        geometry = collision.find("geometry")
        if geometry is None:
            raise SdfError("<collision><geometry>", "missing", where=collision.where, allowed="must be given")
        self.context.check(geometry, GEOMETRY)
        before = self.context.problem_count
        for element in geometry.children:
            made: Shape | None = None
            try:
                if element.tag in SHAPE_PARSERS:
                    made = SHAPE_PARSERS[element.tag](self.context, element)
                elif element.tag in ("mesh", "heightmap"):
                    made = self._parse_file_shape(element, needed=needed)
            except FieldError as error:
                if self.context.problem_count == before:
                    raise error_at(element, error) from error
            if made is not None:
                return made
        return None

    def _parse_file_shape(self, element: Element, *, needed: bool) -> LazyShape | None:
        """Return the surface of a file, which is not read yet; None if it is skipped."""
        make = _parse_mesh if element.tag == "mesh" else _parse_heightmap
        found = make(self.context, element)
        uri = element.find("uri")
        if uri is None:
            raise SdfError(f"<{element.tag}><uri>", "missing", where=element.where, allowed="must be given")
        self.context.check(uri, LEAF)
        try:
            path = self.search.find_asset(uri, element.tag)
        except SdfError as error:
            if self.context.skip_missing and isinstance(error, MissingFileError):
                self.context.note_missing(error, f"skipped: rays pass through its place; {error.remedy}")
                return None
            if needed:
                raise
            reason = f"{error.allowed}; no sensor's rays can hit it"
            self.context.add_note("warning", f"{error.what}: {uri.text}", reason, uri.where)
            return LazyShape(partial(_raise_missing, error))
        add_input(path)  # also if no ray needs it: an output must not replace it
        return LazyShape(partial(found, path))


def _raise_missing(error: SdfError) -> Shape:
    """Raise the error of a missing file."""
    raise FieldError(error.what, error.value, allowed=error.allowed, where=error.where, remedy=error.remedy)


def _parse_plane(context: Context, element: Element) -> Shape:
    context.check(element, PLANE)
    return Plane(parse_child_vector(context, element, "normal", (0.0, 0.0, 1.0)))


def _parse_box(context: Context, element: Element) -> Shape:
    context.check(element, BOX)
    return Box(parse_child_vector(context, element, "size", _UNIT))


def _parse_sphere(context: Context, element: Element) -> Shape:
    context.check(element, SPHERE)
    return Sphere(parse_child_number(context, element, "radius", 1.0))


def _parse_ellipsoid(context: Context, element: Element) -> Shape:
    context.check(element, ELLIPSOID)
    return Ellipsoid(parse_child_vector(context, element, "radii", _UNIT))


def _parse_cylinder(context: Context, element: Element) -> Shape:
    context.check(element, ROUND)
    return Cylinder(
        parse_child_number(context, element, "radius", 1.0), parse_child_number(context, element, "length", 1.0)
    )


def _parse_capsule(context: Context, element: Element) -> Shape:
    context.check(element, ROUND)
    return Capsule(
        parse_child_number(context, element, "radius", 0.5), parse_child_number(context, element, "length", 1.0)
    )


SHAPE_PARSERS: Mapping[str, Callable[[Context, Element], Shape]] = {
    "plane": _parse_plane,
    "box": _parse_box,
    "sphere": _parse_sphere,
    "ellipsoid": _parse_ellipsoid,
    "cylinder": _parse_cylinder,
    "capsule": _parse_capsule,
}
"""Tag of a simple shape -> constructor. The default sizes are those of SDF 1.12."""


def _parse_mesh(context: Context, element: Element) -> Callable[..., Shape]:
    """Return the constructor of a mesh from a path."""
    context.check(element, MESH)
    name, center = "", False
    submesh = element.find("submesh")
    if submesh is not None:
        context.check(submesh, SUBMESH)
        given = submesh.find("name")
        if given is None:
            raise SdfError("<submesh><name>", "missing", where=submesh.where, allowed="must be given")
        name, center = parse_text(given, parent="submesh"), parse_child_flag(context, submesh, "center", default=False)
    scale = parse_child_vector(context, element, "scale", _UNIT)
    return partial(Mesh.from_file, scale=scale, submesh=name, center=center)


def _parse_heightmap(context: Context, element: Element) -> Callable[..., Shape]:
    """Return the constructor of a heightmap from a path."""
    context.check(element, HEIGHTMAP)
    size = parse_child_vector(context, element, "size", _UNIT) if element.find("size") is not None else None
    sampling = parse_child_number(context, element, "sampling", 1.0, minimum=1.0)
    child = element.find("sampling")
    if child is not None and sampling != int(sampling):
        context.add_problem(invalid_value(child, child.text, "must be a whole number", parent="heightmap"))
    return partial(
        Heightmap.from_file, size=size, pos=parse_child_vector(context, element, "pos", _ZERO), sampling=int(sampling)
    )

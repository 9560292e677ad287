"""`<collision>`: the surfaces of a link that rays meet.

| shape | as SDF has it |
|---|---|
| `<plane>`, `<box>`, `<sphere>`, `<cylinder>`, `<capsule>`, `<ellipsoid>` | about the origin of the collision's frame |
| `<mesh>` | `<uri>` of an STL or OBJ file, `<scale>`, `<submesh>` |
| `<heightmap>` | `<uri>` of a PNG or of a grid in text, `<size>`, `<pos>`, `<sampling>` |

Files are found when the world is loaded and read when a sensor's rays may meet them; one that is not found is a problem
where a sensor's rays may meet it, elsewhere a note: the hull of a vehicle that carries the only such sensors is none.
Where the caller asked for the world without what is not found, its surface is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from navsense.environment.terrain.base import Shape
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.mesh import Mesh
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from navsense.environment.terrain.stored import Stored
from navsense.errors import FieldError, SdfError
from navsense.inputs import add_input
from navsense.pose import Pose
from navsense.sdf.context import Context
from navsense.sdf.fill._posed import pose_in_link
from navsense.sdf.fill.fields import flag_of, number_of, refused_at, vector_of
from navsense.sdf.fill.model import Filled
from navsense.sdf.names import checked_name, full_name
from navsense.sdf.places import (
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
from navsense.sdf.read import Element
from navsense.sdf.search import MissingError, Search
from navsense.sdf.values import refusal, text
from navsense.sensors.base import Casting
from navsense.world import MountedSensor, Solid

_UNIT = (1.0, 1.0, 1.0)
_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Solids:
    """Reader of the surfaces of one world with these sensors."""

    context: Context
    search: Search
    sensors: Sequence[MountedSensor]

    def of(self, filled: Filled) -> Iterator[Solid]:
        """Yield the surfaces of a model's links, in the order of the file."""
        casting = [(one, one.spec) for one in self.sensors if isinstance(one.spec, Casting)]
        needed = any(spec.own_hull or one.model != filled.model.name for one, spec in casting)
        for scope, link in filled.links():
            for element in link.element.all("collision"):
                self.context.check(element, COLLISION)
                with self.context.collecting():
                    name = full_name(element, link.name, checked_name(element))
                    shape = self._shape(element, needed=needed)
                    if shape is not None:
                        pose: Pose = pose_in_link(self.context, filled, scope, link, element)
                        yield Solid(name, link.name, shape, pose, element.where)

    def _shape(self, collision: Element, *, needed: bool) -> Shape | None:
        """Return the surface of a collision; None for one of no shape, or of one that is not simulated."""
        geometry = collision.first("geometry")
        if geometry is None:
            raise SdfError("<collision><geometry>", "missing", where=collision.where, allowed="must be given")
        self.context.check(geometry, GEOMETRY)
        before = self.context.found
        for element in geometry.children:
            made: Shape | None = None
            try:
                if element.tag in SHAPES:
                    made = SHAPES[element.tag](self.context, element)
                elif element.tag in ("mesh", "heightmap"):
                    made = self._stored(element, needed=needed)
            except FieldError as error:
                if self.context.found == before:
                    raise refused_at(element, error) from error
            if made is not None:
                return made
        return None

    def _stored(self, element: Element, *, needed: bool) -> Stored | None:
        """Return the surface of a file, which is not read yet; None for one that is left out."""
        make = _mesh if element.tag == "mesh" else _heightmap
        found = make(self.context, element)
        uri = element.first("uri")
        if uri is None:
            raise SdfError(f"<{element.tag}><uri>", "missing", where=element.where, allowed="must be given")
        self.context.check(uri, LEAF)
        try:
            path = self.search.asset(uri, element.tag)
        except SdfError as error:
            if self.context.without_missing and isinstance(error, MissingError):
                self.context.leave_out(error, f"left out: rays go through where it would be; {error.remedy}")
                return None
            if needed:
                raise
            reason = f"{error.allowed}; no sensor's rays may meet it"
            self.context.note("warning", f"{error.what}: {uri.text}", reason, uri.where)
            return Stored(partial(_missing, error))
        add_input(path)  # even if no ray needs it: an output must not replace it
        return Stored(partial(found, path))


def _missing(error: SdfError) -> Shape:
    """Raise what was wrong with a file's name, now that it is needed."""
    raise FieldError(error.what, error.value, allowed=error.allowed, where=error.where, remedy=error.remedy)


def _plane(context: Context, element: Element) -> Shape:
    context.check(element, PLANE)
    return Plane(vector_of(context, element, "normal", (0.0, 0.0, 1.0)))


def _box(context: Context, element: Element) -> Shape:
    context.check(element, BOX)
    return Box(vector_of(context, element, "size", _UNIT))


def _sphere(context: Context, element: Element) -> Shape:
    context.check(element, SPHERE)
    return Sphere(number_of(context, element, "radius", 1.0))


def _ellipsoid(context: Context, element: Element) -> Shape:
    context.check(element, ELLIPSOID)
    return Ellipsoid(vector_of(context, element, "radii", _UNIT))


def _cylinder(context: Context, element: Element) -> Shape:
    context.check(element, ROUND)
    return Cylinder(number_of(context, element, "radius", 1.0), number_of(context, element, "length", 1.0))


def _capsule(context: Context, element: Element) -> Shape:
    context.check(element, ROUND)
    return Capsule(number_of(context, element, "radius", 0.5), number_of(context, element, "length", 1.0))


SHAPES: Mapping[str, Callable[[Context, Element], Shape]] = {
    "plane": _plane,
    "box": _box,
    "sphere": _sphere,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "capsule": _capsule,
}
"""Tag of a simple shape -> what makes it; sizes that are not given are those of SDF 1.12."""


def _mesh(context: Context, element: Element) -> Callable[..., Shape]:
    """Return what makes a mesh of a path."""
    context.check(element, MESH)
    name, center = "", False
    submesh = element.first("submesh")
    if submesh is not None:
        context.check(submesh, SUBMESH)
        given = submesh.first("name")
        if given is None:
            raise SdfError("<submesh><name>", "missing", where=submesh.where, allowed="must be given")
        name, center = text(given, parent="submesh"), flag_of(context, submesh, "center", default=False)
    scale = vector_of(context, element, "scale", _UNIT)
    return partial(Mesh.from_file, scale=scale, submesh=name, center=center)


def _heightmap(context: Context, element: Element) -> Callable[..., Shape]:
    """Return what makes a heightmap of a path."""
    context.check(element, HEIGHTMAP)
    size = vector_of(context, element, "size", _UNIT) if element.first("size") is not None else None
    sampling = number_of(context, element, "sampling", 1.0, least=1.0)
    child = element.first("sampling")
    if child is not None and sampling != int(sampling):
        context.problem(refusal(child, child.text, "must be a whole number", parent="heightmap"))
    return partial(
        Heightmap.from_file, size=size, pos=vector_of(context, element, "pos", _ZERO), sampling=int(sampling)
    )

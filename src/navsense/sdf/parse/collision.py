"""`<collision>`: the surfaces of a link that rays hit.

| shape | content |
|---|---|
| `<plane>`, `<box>`, `<sphere>`, `<cylinder>`, `<capsule>`, `<ellipsoid>` | centred in the collision's frame |
| `<mesh>` | `<uri>` of an STL or OBJ file, `<scale>`, `<submesh>` |
| `<heightmap>` | `<uri>` of a PNG or of a grid in text, `<size>`, `<pos>`, `<sampling>` |

Files are located when the world is loaded. A file is read if the rays of a sensor may hit its surface. The rays of a
sensor hit its own vehicle only with `own_hull`. A missing file is a problem if rays may hit its surface, else a note.
With `missing="skip"` the surface is skipped with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from navsense.core.errors import FieldError, SdfError, convert_error
from navsense.core.inputs import add_input
from navsense.environment.terrain.base import LazyShape, Shape
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.mesh import Mesh
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.names import join_names, parse_name
from navsense.sdf.parse.children import parse_child_count, parse_child_flag, parse_child_vector
from navsense.sdf.parse.model import ParsedModel
from navsense.sdf.parse.sensor_context import find_pose_in_link
from navsense.sdf.schema import COLLISION, GEOMETRY, HEIGHTMAP, MESH, SUBMESH
from navsense.sdf.search_path import MissingFileError, SearchPath
from navsense.sdf.values import parse_text, require_child
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import UsesRayCasting
from navsense.world import MountedSensor, Solid

SHAPES: Mapping[str, ElementBinding[Shape]] = {
    "box": ElementBinding(Box, strict=False),
    "capsule": ElementBinding(Capsule, strict=False),
    "cylinder": ElementBinding(Cylinder, strict=False),
    "ellipsoid": ElementBinding(Ellipsoid, strict=False),
    "plane": ElementBinding(Plane, unsupported={"size": "is for rendering only: a plane is infinite"}, strict=False),
    "sphere": ElementBinding(Sphere, strict=False),
}
"""Tag of a simple shape -> its binding. The default sizes are those of SDF 1.12."""

_UNIT = (1.0, 1.0, 1.0)
_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class SolidParser:
    """Parses the surfaces of a world with these sensors."""

    context: Context
    search: SearchPath
    sensors: Sequence[MountedSensor]

    @cached_property
    def _ray_casters(self) -> frozenset[tuple[str, bool]]:
        """The model of each sensor that casts rays, and whether the rays hit the model itself."""
        specs = ((sensor.model, sensor.spec) for sensor in self.sensors)
        return frozenset((model, spec.own_hull) for model, spec in specs if isinstance(spec, UsesRayCasting))

    def parse_solids(self, parsed_model: ParsedModel) -> Iterator[Solid]:
        """Yield the surfaces of a model's links, in the order of the file."""
        needed = any(own_hull or model != parsed_model.model.name for model, own_hull in self._ray_casters)
        for scope, link in parsed_model.list_links():
            for element in link.element.find_all("collision"):
                self.context.check(element, COLLISION)
                with self.context.collect_errors():
                    name = join_names(element, link.name, parse_name(element))
                    shape = self._find_shape(element, needed=needed)
                    if shape is not None:
                        pose = find_pose_in_link(self.context, parsed_model, scope, link, element)
                        yield Solid(name, link.name, shape, pose, element.where)

    def _find_shape(self, collision: Element, *, needed: bool) -> Shape | None:
        """Return the surface of a collision; None without a shape, and for an invalid shape that no rays can hit."""
        if collision.find("geometry") is None:
            self.context.add_note("warning", "<collision>", "has no <geometry>: skipped", collision.where)
            return None
        if needed:
            return self._parse_shape(collision, needed=True)
        shape = None
        with self.context.defer_problems() as problems:
            shape = self._parse_shape(collision, needed=False)
        self.context.add_warnings(problems, "skipped: no sensor's rays can hit it")
        return None if problems else shape

    def _parse_shape(self, collision: Element, *, needed: bool) -> Shape | None:
        """Return the surface of a collision; None without a shape, and for a shape that is not simulated."""
        geometry = self.context.require_child(collision, "geometry", GEOMETRY)
        for element in geometry.children:
            shape: Shape | None = None
            if element.tag in SHAPES:
                shape = SHAPES[element.tag].read(self.context, element)
            elif element.tag in ("mesh", "heightmap"):
                shape = self._parse_file_shape(element, needed=needed)
            if shape is not None:
                return shape
        return None

    def _parse_file_shape(self, element: Element, *, needed: bool) -> LazyShape | None:
        """Return the surface of a file, which is not read yet; None if it is skipped."""
        parse = _parse_mesh if element.tag == "mesh" else _parse_heightmap
        read_shape = parse(self.context, element)
        uri = self.context.require_child(element, "uri")
        try:
            path = self.search.find_asset(uri, element.tag)
        except SdfError as error:
            if self.context.skip_missing and isinstance(error, MissingFileError):
                self.context.note_missing(error, f"skipped: rays pass through its place; {error.search_remedy}")
                return None
            if needed:
                raise
            reason = f"{error.allowed}; no sensor's rays can hit it"
            self.context.add_note("warning", f"{error.what}: {uri.text}", reason, uri.where)
            return LazyShape(partial(_raise_missing, error))
        add_input(path)  # also if no ray needs it: an output must not replace it
        return LazyShape(partial(read_shape, path))


def _raise_missing(error: SdfError) -> Shape:
    """Raise the error of a missing file."""
    raise convert_error(error, FieldError)


def _parse_mesh(context: Context, element: Element) -> Callable[..., Shape]:
    """Return the constructor of a mesh from a path."""
    context.check(element, MESH)
    name, center = "", False
    submesh = context.find_child(element, "submesh", SUBMESH)
    if submesh is not None:
        name = parse_text(require_child(submesh, "name"), parent="submesh")
        center = parse_child_flag(context, submesh, "center", default=False)
    scale = parse_child_vector(context, element, "scale", _UNIT)
    return partial(Mesh.from_file, scale=scale, submesh=name, center=center)


def _parse_heightmap(context: Context, element: Element) -> Callable[..., Shape]:
    """Return the constructor of a heightmap from a path."""
    context.check(element, HEIGHTMAP)
    size = parse_child_vector(context, element, "size", _UNIT) if element.find("size") is not None else None
    sampling = parse_child_count(context, element, "sampling", 1)
    position = parse_child_vector(context, element, "pos", _ZERO)
    return partial(Heightmap.from_file, size=size, pos=position, sampling=sampling)

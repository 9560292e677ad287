"""Conversion of URDF's `<collision>` to SDF: sizes are elements instead of attributes.

| URDF | becomes |
|---|---|
| `<collision name="NAME">` | the same; default names are `LINK_collision`, `LINK_collision_1`, ... |
| `<origin xyz rpy>` | `<pose>` |
| `<box size>`, `<sphere radius>`, `<cylinder radius length>`, `<capsule radius length>` | child elements |
| `<mesh filename scale>` | `<mesh><uri><scale>` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.values import invalid_value
from navsense.sdf.xml_reader import Element

COLLISION = ElementSchema(
    children=frozenset(("origin", "geometry")),
    unsupported={
        "verbose": "it does not define a shape",
        "contact_coefficients": "forces and contacts are not simulated; a model follows its motion",
    },
    attributes=frozenset(("name",)),
    ignored_attributes={"group": "all surfaces are hit"},
)

SHAPES: Mapping[str, Mapping[str, str]] = {
    "box": {"size": "size"},
    "sphere": {"radius": "radius"},
    "cylinder": {"radius": "radius", "length": "length"},
    "capsule": {"radius": "radius", "length": "length"},
    "mesh": {"filename": "uri", "scale": "scale"},
}
"""Shape -> its attributes in URDF, and their elements in SDF."""

GEOMETRY = ElementSchema(children=frozenset(SHAPES))


def convert_collisions(
    context: Context, link: Element, format_origin: Callable[[Element, str], str]
) -> Iterator[Element]:
    """Yield the SDF collisions of a link; `format_origin` returns the text of an `<origin>`."""
    name = link.get_attribute("name") or ""
    for number, collision in enumerate(link.find_all("collision")):
        context.check(collision, COLLISION)
        own = collision.get_attribute("name") or f"{name}_collision" + (f"_{number}" if number else "")
        made = _make_element("collision", collision, attributes={"name": own.replace("::", "_")})
        origin, geometry = collision.find("origin"), collision.find("geometry")
        if origin is not None:
            made.children.append(_make_element("pose", origin, format_origin(origin, "collision")))
        if geometry is not None:
            context.check(geometry, GEOMETRY)
            if not geometry.children:
                context.add_problem(
                    invalid_value(geometry, "empty", f"must hold one of {', '.join(SHAPES)}", parent="collision")
                )
            shapes = [_convert_shape(context, child) for child in geometry.children if child.tag in SHAPES]
            made.children.append(_make_element("geometry", geometry, children=shapes))
        yield made


def _convert_shape(context: Context, element: Element) -> Element:
    """Return a shape with elements instead of attributes."""
    names = SHAPES[element.tag]
    context.check(element, ElementSchema(attributes=frozenset(names)))
    for name in names:
        if name not in element.attributes and name != "scale":  # SDF has default sizes, URDF has none
            context.add_problem(invalid_value(element, "missing", "must be given", attribute=name))
    given = [
        _make_element(tag, element, element.attributes[name])
        for name, tag in names.items()
        if name in element.attributes
    ]
    return _make_element(element.tag, element, children=given)


def _make_element(
    tag: str,
    element: Element,
    text: str = "",
    attributes: Mapping[str, str] | None = None,
    children: list[Element] | None = None,
) -> Element:
    """Return a new element at the place of an element of the file."""
    return Element(tag, attributes or {}, element.line, element.path, text.strip(), children or [])

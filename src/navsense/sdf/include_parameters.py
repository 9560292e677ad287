"""`<experimental:params>` of an include: changes to the included model.

    <experimental:params>
      <sensor element_id="base::imu" action="modify"> <update_rate>50</update_rate> </sensor>
      <sensor element_id="base" action="add" name="dvl" type="custom"> ... </sensor>
      <link element_id="base"> <collision name="hull" action="remove"/> </link>
    </experimental:params>

| action | effect |
|---|---|
| `add` | adds the element to the element `element_id`, or to the model if that is empty |
| `modify` | sets the attributes, the texts and the descendants that are given |
| `replace` | replaces the element |
| `remove` | removes the element, or only the children that are given |

`element_id` joins the names of elements of the model by `::`. An element without `action` has children with one each.
Source: libsdformat, `src/ParamPassing.cc`; the tests compare the results with those of libsdformat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from navsense.core.errors import show
from navsense.core.names import suggest_name
from navsense.sdf.context import Context
from navsense.sdf.schema import COLLISION, GEOMETRY, JOINT, LINK, MERGED_MODEL_TAG, MODEL, SKIPPED_INCLUDE_TAG
from navsense.sdf.values import invalid_choice, invalid_value
from navsense.sdf.xml_reader import Element

ACTIONS = ("add", "modify", "remove", "replace")

_ID, _ACTION = "element_id", "action"
_ADDED_TAGS = frozenset(
    tag for schema in (MODEL, LINK, JOINT, COLLISION, GEOMETRY) for tag in (*schema.children, *schema.unsupported)
)
"""Tags that can be added. One in a wrong place is a warning later, as in a file."""


def apply_parameters(context: Context, params: Element, model: Element) -> Element:
    """Return a copy of an included model with the changes of an include. Invalid changes become problems."""
    model = _copy(model)
    for change in params.children:
        with context.collect_errors():
            _apply_change(context, change, model)
    return model


def _apply_change(context: Context, change: Element, model: Element) -> None:
    """Apply a child of the parameters to a model. Raises `SdfError`."""
    identifier = change.attributes.get(_ID)
    if identifier is None:
        raise invalid_value(change, "missing", "must be given", attribute=_ID)
    if identifier.endswith("::"):
        raise invalid_value(change, identifier, "must end in a name", attribute=_ID)
    names = identifier.split("::") if identifier else []
    action = _read_action(change) if _ACTION in change.attributes else ""
    if action == "add":
        parent = _find_element(model, names) if names else (model, model)
        if parent is None:
            _report_not_found(context, change, identifier, model)
            return
        name = change.get_attribute("name")
        if name is None:
            raise invalid_value(change, "missing", "must be given", attribute="name")
        if change.tag != "plugin" and _find_element(model, [*names, name], change.tag) is not None:
            raise invalid_value(change, name, f"{show(identifier)} has this element already", attribute="name")
        _add_child(parent[1], change)
        return
    place = _find_element(model, names, change.tag) if names else None
    if place is None:
        _report_not_found(context, change, identifier, model)
        return
    parent_element, element = place
    if action == "modify":
        _modify(change, element)
    elif action == "replace":
        _replace(change, element)
    elif action == "remove":
        _remove(change, parent_element, element)
    else:
        for child in change.children:
            with context.collect_errors():
                _apply_child_change(child, element)


def _apply_child_change(change: Element, parent: Element) -> None:
    """Apply a change to a child of an element. Raises `SdfError`."""
    action = _read_action(change)
    if action == "add":
        _add_child(parent, change)
        return
    element = _require_child(parent, change, modify=action == "modify")
    if action == "modify":
        _modify(change, element)
    elif action == "remove":
        _remove(change, parent, element)
    elif element.get_attribute("name") and not change.get_attribute("name"):
        raise invalid_value(change, "missing", "must be given", attribute="name")
    else:
        _replace(change, element)


def _read_action(change: Element) -> str:
    action = change.get_attribute(_ACTION)
    if action not in ACTIONS:
        raise invalid_choice(change, action, ACTIONS, attribute=_ACTION)
    return action


def _add_child(parent: Element, change: Element) -> None:
    """Add an element to another one. Raises `SdfError` for one that SDF does not have."""
    if parent.tag in ("model", "link", "joint") and change.tag not in _ADDED_TAGS and ":" not in change.tag:
        remedy = suggest_name(change.tag, sorted(_ADDED_TAGS))
        raise invalid_value(change, None, f"is not an element of <{parent.tag}>", attribute=_ACTION, remedy=remedy)
    parent.children.append(_copy_change(change))


def _modify(change: Element, element: Element) -> None:
    """Set the attributes, and the text or the children, of an element. Raises `SdfError`."""
    element.attributes = {**element.attributes, **_list_attributes(change)}
    if change.text:
        element.text = change.text
        return
    for child in change.children:
        target = _require_child(element, child, modify=True)
        if child.text or child.children or target.children:
            _modify(child, target)
        elif child.attributes or target.tag == "pose":  # an empty pose is the identity
            target.attributes = {**target.attributes, **_list_attributes(child)}
            target.text = ""
        else:  # an absent element has its default
            element.children.remove(target)


def _replace(change: Element, element: Element) -> None:
    """Replace the content of an element, which keeps its place among its siblings."""
    new = _copy_change(change)
    element.attributes, element.children, element.text = new.attributes, new.children, new.text
    element.line, element.path = new.line, new.path


def _remove(change: Element, parent: Element, element: Element) -> None:
    """Remove an element from its parent, or only those of its children that the change lists. Raises `SdfError`."""
    if not change.children:
        parent.children.remove(element)
    for child in change.children:
        element.children.remove(_require_child(element, child))


def _require_child(parent: Element, change: Element, *, modify: bool = False) -> Element:
    """Return the child with the tag and the name of a change. Raises `SdfError` without one.

    modify: True if a new name is a change of the first child with the tag.
    """
    children, name = list(parent.find_all(change.tag)), change.get_attribute("name")
    named = [child for child in children if name is None or child.get_attribute("name") == name]
    if not named and not (modify and children):
        parent_name = parent.get_attribute("name")
        what = f"<{parent.tag}>" if parent_name is None else f'<{parent.tag} name="{parent_name}">'
        remedy = f'add it by <{change.tag} action="add">' if modify and name is None else ""
        raise invalid_value(change, name, f"is not in {what}", remedy=remedy)
    return (named or children)[0]


def _find_element(model: Element, names: list[str], tag: str = "") -> tuple[Element, Element] | None:
    """Return the parent and the element with a path of names; `tag` is that of the last one, "" for any."""
    name, rest = names[0], names[1:]
    for holder, child in _walk_named(model):
        if child.get_attribute("name") != name:
            continue
        if not rest and tag in ("", child.tag):
            return holder, child
        place = _find_element(child, rest, tag) if rest else None
        if place is not None:
            return place
    return None


def _walk_named(parent: Element) -> Iterator[tuple[Element, Element]]:
    """Yield the children of an element with their parents; those of merged models are children of the model."""
    for child in parent.children:
        if child.tag == MERGED_MODEL_TAG:
            yield from _walk_named(child)
        else:
            yield parent, child


def _report_not_found(context: Context, change: Element, identifier: str, model: Element) -> None:
    """Raise an `SdfError` about an element that is not in the model; add a note if it may be in a skipped include."""
    place = _find_element(model, identifier.split("::")) if identifier else None
    if place is not None:
        tag, problem = place[1].tag, f"is not a <{change.tag}>"
        raise invalid_value(change, identifier, problem, attribute=_ID, remedy=f"write <{tag}>, as in the model")
    error = invalid_value(change, identifier or "empty", "must name an element of the included model", attribute=_ID)
    if not any(element.tag == SKIPPED_INCLUDE_TAG for element in model.walk()):
        error.remedy = suggest_name(identifier, _list_identifiers(model))
        raise error
    reason = "is ignored: the element may be in an include that is skipped"
    context.add_note("warning", f"{error.what}: {identifier}", reason, change.where)


def _list_identifiers(element: Element, prefix: str = "") -> Iterator[str]:
    """Yield the identifiers of the elements in a model."""
    for _, child in _walk_named(element):
        name = child.get_attribute("name")
        if name is not None:
            yield prefix + name
            yield from _list_identifiers(child, f"{prefix}{name}::")


def _list_attributes(change: Element) -> dict[str, str]:
    """Return the attributes of a change that belong to the element."""
    return {name: value for name, value in change.attributes.items() if name not in (_ID, _ACTION)}


def _copy_change(change: Element) -> Element:
    """Return a copy of a change as an element of the model."""
    return replace(_copy(change), attributes=_list_attributes(change))


def _copy(element: Element) -> Element:
    """Return a copy of an element with its children."""
    return replace(element, children=[_copy(child) for child in element.children])

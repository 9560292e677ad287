"""Building the graph of poses: declare every name first, then connect what refers to what."""

from __future__ import annotations

from collections.abc import Iterator

from navsense.errors import SdfError
from navsense.sdf import places
from navsense.sdf.context import Context
from navsense.sdf.frames import MODEL_FRAME, WORLD_FRAME, Node, Poses, Scope, check_attachments, find, unknown
from navsense.sdf.names import checked_name, full_name
from navsense.sdf.read import Element
from navsense.sdf.values import pose, refusal, text

_NAMED = {"link": places.LINK, "joint": places.JOINT, "frame": places.FRAME, "model": places.MODEL}


def world_scope(context: Context, world: Element) -> Scope:
    """Return the scope of a world with every model, link, joint and frame in it, connected and free of circles.

    What is wrong is kept in `context`; the graph holds what is left.
    """
    root = Scope(Node("world", "", world))
    context.check(world, places.WORLD)
    scopes = _declare_all(context, root)
    for scope in scopes:
        _connect(context, scope)
    for scope in reversed(scopes):
        if not scope.is_world:
            _choose_canonical(context, scope)
    for error in check_attachments([node for scope in scopes for node in scope.names.values()]):
        context.problem(error)
    poses = Poses(root.node)
    for scope in scopes:
        for node in scope.names.values():
            with context.collecting():
                poses.of(node)
    return root


def model_scope(context: Context, model: Element) -> Scope:
    """Return the scope of a world that holds a file's one model and nothing else; as `world_scope` otherwise."""
    around = Element("world", {"name": model.attribute("name") or ""}, model.line, model.path, children=[model])
    return world_scope(context, around)


def below(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and all nested in it, in the order of the file."""
    open_scopes = [scope]
    while open_scopes:
        at = open_scopes.pop()
        yield at
        open_scopes.extend(reversed(at.nested.values()))


def _declare_all(context: Context, root: Scope) -> list[Scope]:
    """Declare the names of a scope and of all models nested in it; return the scopes, outer ones first."""
    scopes = [root]
    for scope in scopes:
        if scope.element.first("include") is not None:
            context.incomplete = True
        for child in scope.element.children:
            place = _NAMED.get(child.tag)
            if place is None or (child.tag == "link" and scope.is_world):
                continue
            context.check(child, place)
            with context.collecting():
                node = _declare(context, scope, child)
                if node is not None and node.kind == "model":
                    inner = Scope(node, scope)
                    scope.nested[checked_name(child)] = inner
                    scopes.append(inner)
    return scopes


def _declare(context: Context, scope: Scope, element: Element) -> Node | None:
    name = checked_name(element)
    before = scope.names.get(name)
    if before is None:
        full = full_name(element, scope.node.name, name)
        node = scope.names[name] = Node(element.tag, full, element, base=scope.node)  # type: ignore[arg-type]
        return node
    first = f"first as <{before.element.tag}> on line {before.element.line}"
    clash = element.tag != before.kind and context.minor < 7
    if clash and element.tag in ("joint", "frame"):
        reason = f"has the name of another element ({first}); nothing can refer to it"
        context.note("warning", f'<{element.tag} name="{name}">', reason, element.where)
        return None
    allowed = "must be unique among the links, joints, frames and models beside it"
    raise refusal(element, name, allowed, attribute="name", remedy=f"{first}; rename one")


def _connect(context: Context, scope: Scope) -> None:
    """Give every frame of a scope its pose, its base and what it is attached to."""
    for node in scope.names.values():
        if node.kind == "joint":
            _connect_joint(context, scope, node)
        elif node.kind == "frame":
            _connect_frame(context, scope, node)
        element = node.element.first("pose")
        if element is not None:
            with context.collecting():
                place_pose(context, scope, node, element)


def place_pose(context: Context, scope: Scope, node: Node, element: Element) -> None:
    """Set a frame's pose, and its base where the pose has `relative_to`. Raises `SdfError` for either."""
    context.check(element, places.POSE)
    for attribute, minor in (("relative_to", 7), ("degrees", 9), ("rotation_format", 9)):
        if element.attribute(attribute):
            context.since(element, minor, f"<pose {attribute}>")
    other = element.attribute("relative_to")
    base = _looked_up(context, scope, other, element, "relative_to") if other else None
    node.base = base or node.base
    node.pose = pose(element, parent=node.element.tag)


def _connect_frame(context: Context, scope: Scope, node: Node) -> None:
    other = node.element.attribute("attached_to")
    if other is None:
        return
    context.since(node.element, 7, "<frame attached_to>")
    target = _looked_up(context, scope, other, node.element, "attached_to")
    if target is not None:
        node.attached = node.base = target


def _looked_up(context: Context, scope: Scope, name: str, element: Element, attribute: str = "") -> Node | None:
    """Return the frame that `name` means in a scope; where there is none, None and a problem of `element`."""
    node = find(scope, name)
    if node is None and not context.incomplete:
        context.problem(unknown(scope, name, element, attribute))
    return node


def _connect_joint(context: Context, scope: Scope, node: Node) -> None:
    element = node.element
    if scope.is_world:
        context.since(element, 10, "<joint> in <world>")
        reason = "joints between models do not hold them together: each moves by its own motion"
        context.note(
            "unsupported", f'<world><joint name="{element.attributes.get("name", "")}">', reason, element.where
        )
    with context.collecting():
        _check_joint_type(context, element)
    ends: dict[str, Node | None] = {}
    for tag in ("parent", "child"):
        with context.collecting():
            ends[tag] = _end(context, scope, element, tag)
    child = ends.get("child")
    if child is not None:
        node.attached = node.base = child
        if ends.get("parent") is child:
            with context.collecting():
                raise refusal(element, child.name, "parent and child must differ", attribute="name")


def _check_joint_type(context: Context, element: Element) -> None:
    kind = element.attribute("type")
    if kind not in places.JOINT_TYPES:
        allowed = f"must be one of {', '.join(sorted(places.JOINT_TYPES))}"
        raise refusal(element, kind or "missing", allowed, attribute="type")
    if kind != "fixed":
        what = f'<joint name="{element.attributes.get("name", "")}" type="{kind}">'
        context.note("unsupported", what, "joints do not move yet: its links are held as posed", element.where)
    for axis in element.all("axis", "axis2"):
        old = axis.first("use_parent_model_frame")
        if old is not None:
            allowed = "is not supported; use expressed_in of SDF 1.7"
            context.problem(refusal(old, old.text, allowed, parent=axis.tag))


def _end(context: Context, scope: Scope, joint: Element, tag: str) -> Node | None:
    """Return the frame at one end of a joint; None, with a problem, where there is none of that name."""
    element = joint.first(tag)
    if element is None:
        raise SdfError(f"<joint><{tag}>", "missing", where=joint.where, allowed="must be given")
    context.check(element, places.LEAF)
    name = text(element, parent="joint")
    if name == WORLD_FRAME and tag == "child":
        raise refusal(element, name, "the world cannot be a joint's child", parent="joint")
    if name == WORLD_FRAME:
        while scope.parent is not None:
            scope = scope.parent
        return scope.node
    if scope.is_world and name == MODEL_FRAME:
        raise refusal(element, name, "must name a frame in the world", parent="joint")
    return _looked_up(context, scope, name, element)


def _choose_canonical(context: Context, scope: Scope) -> None:
    """Set a model's canonical link: the one it names, else its first link, else that of its first nested model."""
    given = scope.element.attribute("canonical_link")
    links = scope.of("link")
    nested = (inner.canonical for inner in scope.nested.values() if inner.canonical is not None)
    scope.canonical = links[0] if links else next(nested, None)
    if given is None:
        return
    context.since(scope.element, 7, "<model canonical_link>")
    node = find(scope, given)
    if node is None or node.kind != "link":
        if context.incomplete:
            return
        allowed = f"must name a link in model {scope.node.name!r}"
        context.problem(refusal(scope.element, given, allowed, attribute="canonical_link"))
        return
    scope.canonical = node

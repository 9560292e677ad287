"""`<joint>`: what it is attached to and what holds it, and along which axis. Joints do not move yet."""

from __future__ import annotations

from navsense.errors import SdfError, show
from navsense.sdf import places
from navsense.sdf.context import Context
from navsense.sdf.frames import MODEL_FRAME, WORLD_FRAME, Node, Scope, find, left_out, looked_up
from navsense.sdf.read import Element
from navsense.sdf.values import flag, refusal, text, vector

_AXES = ("axis", "axis2")


def leave_out_joints(context: Context, scopes: list[Scope]) -> None:
    """Take out the joints that have an end in what is left out, each with a note; nothing can refer to them then."""
    for scope in scopes:
        joints = (node for node in scope.declared if node.kind == "joint")
        lost = {node: words for node in joints if (words := _lost_end(scope, node.element))}
        for node, words in lost.items():
            name = node.element.attributes["name"]
            context.note("warning", f'<joint name="{name}">', f"left out: {words}", node.element.where)
            for host in scope.hosts():
                if host.names.get(name) is node:
                    del host.names[name]
        scope.declared = [node for node in scope.declared if node not in lost]


def _lost_end(scope: Scope, joint: Element) -> str:
    """Return which end of a joint may be in what is left out, and where that is; nothing where none is."""
    for end in joint.all("parent", "child"):
        lost = left_out(scope, end.text) if end.text and find(scope, end.text) is None else ""
        if lost:
            return f"its <{end.tag}> {show(end.text)} may be in {lost}"
    return ""


def connect_joint(context: Context, scope: Scope, node: Node) -> None:
    """Give a joint its child, which it is attached to, and its parent; look at its type and axes."""
    element = node.element
    named = f'<joint name="{element.attributes.get("name", "")}"'
    if scope.is_world:
        reason = "joints between models do not hold them together: each moves by its own motion"
        context.note("unsupported", f"<world>{named}>", reason, element.where)
    with context.collecting():
        _check_type(context, element, named)
    for axis in element.all(*_AXES):
        with context.collecting():
            _check_axis(context, scope, axis)
    for tag in ("parent", "child"):
        with context.collecting():
            end = _end(context, scope, element, tag)
            if tag == "parent":
                node.held = end
            elif end is not None:
                node.attached = node.base = end


def check_ends(context: Context, scopes: list[Scope]) -> None:
    """Keep a problem for each joint whose ends stand on the same link."""
    models = {scope.node: scope for scope in scopes if not scope.is_world}
    for scope in scopes:
        for node in scope.declared:
            if node.kind != "joint" or node.held is None or node.attached is None:
                continue
            if _carrier(node.held, models) is _carrier(node.attached, models):
                ends = " and ".join(end.name.rpartition("::")[2] for end in (node.held, node.attached))
                allowed = "parent and child must differ: both stand on the same link"
                context.problem(refusal(node.element, ends, allowed, attribute="name"))


def _carrier(node: Node, models: dict[Node, Scope]) -> Node | None:
    """Return the link that a frame is fixed to in the end; a static model or the world for what stands in them."""
    passed: set[Node] = set()
    at: Node | None = node
    while at is not None and at not in passed:
        passed.add(at)
        if at.kind in ("link", "world"):
            return at
        if at.kind == "model":
            if _is_static(at.element):
                return at
            at = models[at].canonical
        elif at.attached is None and at.scope is not None:
            at = at.scope.node
        else:
            at = at.attached
    return None if at is None else node


def _is_static(model: Element) -> bool:
    element = model.first("static")
    try:
        return element is not None and flag(element)
    except SdfError:  # a problem of the file, kept where the model is filled
        return False


def _check_type(context: Context, element: Element, named: str) -> None:
    kind = element.attribute("type")
    if kind not in places.JOINT_TYPES:
        allowed = f"must be one of {', '.join(sorted(places.JOINT_TYPES))}"
        raise refusal(element, kind or "missing", allowed, attribute="type")
    if kind != "fixed":
        reason = "joints do not move yet: its links are held as posed"
        context.note("unsupported", f'{named} type="{kind}">', reason, element.where)


def _check_axis(context: Context, scope: Scope, axis: Element) -> None:
    context.check(axis, places.JOINT_AXIS)
    xyz = axis.first("xyz")
    if xyz is None:
        return
    context.check(xyz, places.XYZ)
    frame = xyz.attribute("expressed_in")
    if frame is not None:
        looked_up(context, scope, frame, xyz, "expressed_in")
    if xyz.text and vector(xyz, parent=axis.tag) == (0.0, 0.0, 0.0):
        raise refusal(xyz, xyz.text, "must have a direction", parent=axis.tag)


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
    return looked_up(context, scope, name, element)

"""`<joint>`: parent, child, type and axes. Joints do not move yet."""

from __future__ import annotations

from navsense.core.errors import SdfError, show
from navsense.core.names import WORLD_FRAME
from navsense.sdf import schema
from navsense.sdf.context import Context
from navsense.sdf.frames import (
    MODEL_FRAME,
    FrameNode,
    Scope,
    find_frame,
    find_skipped_include,
    resolve_frame,
)
from navsense.sdf.values import invalid_value, parse_flag, parse_text, parse_vector
from navsense.sdf.xml_reader import Element

_AXIS_TAGS = ("axis", "axis2")


def skip_joints(context: Context, scopes: list[Scope]) -> None:
    """Remove the joints with an end in a skipped include, each with a note. Nothing can refer to them."""
    for scope in scopes:
        joints = (node for node in scope.own_frames if node.kind == "joint")
        skipped = {node: reason for node in joints if (reason := _find_missing_end(scope, node.element))}
        for node, reason in skipped.items():
            name = node.element.attributes["name"]
            context.add_note("warning", f'<joint name="{name}">', f"skipped: {reason}", node.element.where)
            for host in scope.list_hosts():
                if host.names.get(name) is node:
                    del host.names[name]
        scope.own_frames = [node for node in scope.own_frames if node not in skipped]


def _find_missing_end(scope: Scope, joint: Element) -> str:
    """Return the reason why an end of a joint may be in a skipped include; "" if there is none."""
    for end in joint.find_all("parent", "child"):
        skipped = find_skipped_include(scope, end.text) if end.text and find_frame(scope, end.text) is None else ""
        if skipped:
            return f"its <{end.tag}> {show(end.text)} may be in {skipped}"
    return ""


def connect_joint(context: Context, scope: Scope, node: FrameNode) -> None:
    """Set the child and the parent of a joint, and check its type and axes."""
    element = node.element
    named = f'<joint name="{element.attributes.get("name", "")}"'
    if scope.is_world:
        reason = "joints between models have no effect: each model has its own motion"
        context.add_note("unsupported", f"<world>{named}>", reason, element.where)
    with context.collect_errors():
        _check_type(context, element, named)
    for axis in element.find_all(*_AXIS_TAGS):
        with context.collect_errors():
            _check_axis(context, scope, axis)
    for tag in ("parent", "child"):
        with context.collect_errors():
            end = _parse_end(context, scope, element, tag)
            if tag == "parent":
                node.joint_parent = end
            elif end is not None:
                node.attached_to = node.relative_to = end


def check_joint_ends(context: Context, scopes: list[Scope]) -> None:
    """Add a problem for each joint whose ends are fixed to the same link."""
    models = {scope.frame: scope for scope in scopes if not scope.is_world}
    for scope in scopes:
        for node in scope.own_frames:
            if node.kind != "joint" or node.joint_parent is None or node.attached_to is None:
                continue
            if _find_fixed_link(node.joint_parent, models) is _find_fixed_link(node.attached_to, models):
                ends = " and ".join(end.name.rpartition("::")[2] for end in (node.joint_parent, node.attached_to))
                allowed = "parent and child must differ: both are fixed to the same link"
                context.add_problem(invalid_value(node.element, ends, allowed, attribute="name"))


def _find_fixed_link(node: FrameNode, models: dict[FrameNode, Scope]) -> FrameNode | None:
    """Return the link that a frame is fixed to; for static models and the world these."""
    passed: set[FrameNode] = set()
    frame: FrameNode | None = node
    while frame is not None and frame not in passed:
        passed.add(frame)
        if frame.kind in ("link", "world") or (frame.kind == "model" and _is_static(frame.element)):
            return frame
        if frame.kind == "model":
            frame = models[frame].canonical
        elif frame.attached_to is None and frame.scope is not None:
            frame = frame.scope.frame
        else:
            frame = frame.attached_to
    return None if frame is None else node


def _is_static(model: Element) -> bool:
    element = model.find("static")
    try:
        return element is not None and parse_flag(element)
    except SdfError:  # reported when the model is parsed
        return False


def _check_type(context: Context, element: Element, named: str) -> None:
    joint_type = element.get_attribute("type")
    if joint_type not in schema.JOINT_TYPES:
        allowed = f"must be one of {', '.join(sorted(schema.JOINT_TYPES))}"
        raise invalid_value(element, joint_type or "missing", allowed, attribute="type")
    if joint_type != "fixed":
        reason = "joints do not move yet: its links keep their poses"
        context.add_note("unsupported", f'{named} type="{joint_type}">', reason, element.where)


def _check_axis(context: Context, scope: Scope, axis: Element) -> None:
    context.check(axis, schema.JOINT_AXIS)
    xyz = context.find_child(axis, "xyz", schema.XYZ)
    if xyz is None:
        return
    frame = xyz.get_attribute("expressed_in")
    if frame is not None:
        resolve_frame(context, scope, frame, xyz, "expressed_in")
    if xyz.text and parse_vector(xyz, parent=axis.tag) == (0.0, 0.0, 0.0):
        raise invalid_value(xyz, xyz.text, "must have a direction", parent=axis.tag)


def _parse_end(context: Context, scope: Scope, joint: Element, tag: str) -> FrameNode | None:
    """Return the frame at one end of a joint; an unknown name gives None and a problem."""
    element = context.require_child(joint, tag)
    name = parse_text(element, parent="joint")
    if name == WORLD_FRAME and tag == "child":
        raise invalid_value(element, name, "the world cannot be a joint's child", parent="joint")
    if name == WORLD_FRAME:
        while scope.parent is not None:
            scope = scope.parent
        return scope.frame
    if scope.is_world and name == MODEL_FRAME:
        raise invalid_value(element, name, "must name a frame in the world", parent="joint")
    return resolve_frame(context, scope, name, element)

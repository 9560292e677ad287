"""Construction of the frame graph: all names are declared first, then references are resolved.

A file gives each joint at position 0. Parents, children, types and axes of joints are checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from navsense.core.errors import SdfError, show
from navsense.core.names import WORLD_FRAME
from navsense.sdf import schema
from navsense.sdf.context import Context
from navsense.sdf.frames import (
    MODEL_FRAME,
    FrameNode,
    FramePoses,
    Scope,
    check_attachments,
    find_frame,
    find_skipped_include,
    resolve_frame,
)
from navsense.sdf.names import join_names, parse_name
from navsense.sdf.values import invalid_choice, invalid_value, parse_flag, parse_pose, parse_text, parse_vector
from navsense.sdf.xml_reader import Element

_AXIS_TAGS = ("axis", "axis2")
_FRAME_SCHEMAS = {"link": schema.LINK, "joint": schema.JOINT, "frame": schema.FRAME, "model": schema.MODEL}
_LAST_WITHOUT_UNIQUE_NAMES = 6
"""Up to SDF 1.6 a joint or frame may have the name of a link or model in the same scope."""


def build_world_scope(context: Context, world: Element) -> Scope:
    """Return the scope of a world with all its models, links, joints and frames.

    Adds problems to `context`. The graph contains the valid frames, without cycles.
    """
    root = Scope(FrameNode("world", "", world))
    context.check(world, schema.WORLD)
    scopes = _declare_all(context, root)
    if context.skip_missing:
        _skip_joints(context, scopes)
    for scope in scopes:
        _connect(context, scope)
    for scope in reversed(scopes):
        if not scope.is_world:
            _choose_canonical(context, scope)
    nodes = [node for scope in scopes for node in scope.own_frames]
    for error in check_attachments(nodes):
        context.add_problem(error)
    for scope in reversed(scopes):
        with context.collect_errors():
            _apply_placement_frame(context, scope)
    _check_joint_ends(context, scopes)
    poses = FramePoses(root.frame)
    for node in nodes:
        with context.collect_errors():
            poses.find_pose(node)
    return root


def build_model_scope(context: Context, model: Element) -> Scope:
    """Return the scope of a world that contains only the model of a file; see `build_world_scope`."""
    name = model.get_attribute("name") or ""
    return build_world_scope(context, model.make_element("world", children=[model], attributes={"name": name}))


def walk_scopes(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and all nested scopes, in the order of the file."""
    open_scopes = [scope]
    while open_scopes:
        inner = open_scopes.pop()
        yield inner
        open_scopes.extend(reversed(inner.nested.values()))


def _declare_all(context: Context, root: Scope) -> list[Scope]:
    """Declare the names of a scope and of all its models; return the scopes, outer ones first."""
    scopes = [root]
    for scope in scopes:
        if scope.host is not None:  # declared with its host, at its place in the file
            continue
        queue = [(scope, child) for child in reversed(scope.element.children)]
        while queue:
            holder, child = queue.pop()
            inner = None
            with context.collect_errors():
                inner = _declare(context, holder, child)
            if inner is not None:
                scopes.append(inner)
            if inner is not None and inner.host is not None:
                queue += [(inner, element) for element in reversed(child.children)]
    return scopes


def _declare(context: Context, holder: Scope, element: Element) -> Scope | None:
    """Declare the name of a child of a world or model; return its scope if it has one."""
    if element.tag == schema.SKIPPED_INCLUDE_TAG:
        holder.skip_include(element)
        return None
    outer = holder.list_hosts()[-1]
    merged = element.tag == schema.MERGED_MODEL_TAG
    frame_schema = _FRAME_SCHEMAS.get(element.tag)
    if not merged and (frame_schema is None or (element.tag == "link" and outer.is_world)):
        return None
    if frame_schema is not None:
        context.check(element, frame_schema)
    short_name = parse_name(element)
    name = f"_merged__{short_name}__model__" if merged else short_name
    if not _is_free(context, outer, name, element):
        return None
    kind = "frame" if merged else element.tag
    full_name = join_names(element, outer.frame.name, name)
    node = FrameNode(kind, full_name, element, relative_to=holder.frame, scope=holder)  # type: ignore[arg-type]
    holder.own_frames.append(node)
    opened = Scope(node, outer, holder if merged else None) if merged or kind == "model" else None
    for scope in holder.list_hosts():
        scope.names.pop(name, None)  # in an older file the second element keeps the name
        scope.names[name] = node
        if kind == "model" and opened is not None:
            scope.nested[name] = opened
    return opened


def _is_free(context: Context, scope: Scope, name: str, element: Element) -> bool:
    """Return True if an element may have a name in a scope. Raises `SdfError` for a name that is already used.

    In an older file two elements of different kinds may have one name. A frame or joint then loses its name, with a
    warning.
    """
    first = scope.names.get(name)
    if first is None:
        return True
    elements = {first.element.tag: first.element, element.tag: element}
    loser = next((elements[tag] for tag in ("frame", "joint") if tag in elements), None)
    version = max(context.versions.get(path, 0) for path in (first.element.path, element.path))
    first_place = (first.element.include or first.element).where
    path = (element.include or element).path
    place = f"line {first_place.line}" if first_place.path == path else str(first_place)
    if len(elements) == 2 and loser is not None and version <= _LAST_WITHOUT_UNIQUE_NAMES:
        winner = f"<{first.element.tag}> on {place}" if loser is element else f"<{element.tag}> on line {element.line}"
        reason = f"has the same name as {winner}; nothing can refer to it"
        context.add_note("warning", f'<{loser.tag} name="{name}">', reason, loser.where)
        return loser is not element
    allowed = "must be unique among the links, joints, frames and models of its parent"
    remedy = f"first as <{first.element.tag}> on {place}; rename one"
    named = element.include and (element.include.find("name") or element.include)
    raise invalid_value(named or element, name, allowed, attribute="" if named else "name", remedy=remedy)


def _connect(context: Context, scope: Scope) -> None:
    """Set the pose, the base and the attachment of each frame of a scope."""
    for node in scope.own_frames:
        if node.kind == "joint":
            _connect_joint(context, scope, node)
        elif node.element.tag == "frame" and (name := node.element.get_attribute("attached_to")) is not None:
            target = resolve_frame(context, scope, name, node.element, "attached_to")
            if target is not None:
                node.attached_to = node.relative_to = target
        element = node.element.find("pose")
        if element is not None:
            with context.collect_errors():
                apply_pose(context, scope, node, element)


def apply_pose(context: Context, scope: Scope, node: FrameNode, element: Element) -> None:
    """Set the pose of a frame, and its base if the pose has `relative_to`. Raises `SdfError`."""
    context.check(element, schema.POSE)
    name = element.get_attribute("relative_to")
    base = resolve_frame(context, scope, name, element, "relative_to") if name else None
    node.relative_to = base or node.relative_to
    node.pose = parse_pose(element, parent=node.element.tag)


def _choose_canonical(context: Context, scope: Scope) -> None:
    """Set the canonical link of a model: the named link, else the first link, else that of the first nested model.

    The frame of a merged model is attached to it.
    """
    name = scope.element.get_attribute("canonical_link")
    links = scope.list_frames("link")
    nested = (inner.canonical for inner in scope.nested.values() if inner.canonical is not None)
    scope.canonical = links[0] if links else next(nested, None)
    if name is not None:
        node = find_frame(scope, name)
        if node is not None and node.kind == "link":
            scope.canonical = node
        elif not context.incomplete:
            allowed, skipped = f"must name a link in {scope.title}", find_skipped_include(scope, name)
            remedy = f"it may be in {skipped}" if skipped else ""
            context.add_problem(invalid_value(scope.element, name, allowed, attribute="canonical_link", remedy=remedy))
    if scope.host is not None:
        scope.frame.attached_to = scope.canonical


def _apply_placement_frame(context: Context, scope: Scope) -> None:
    """Move a model so that its `placement_frame` has the given pose. Raises `SdfError`.

    The pose of the model becomes ``given pose @ (pose of the placement frame in the model)^-1``.
    """
    name = scope.element.get_attribute("placement_frame")
    if name is None:
        return
    include = scope.element.include
    child = include.find("placement_frame") if include else None
    node = resolve_frame(context, scope, name, child or scope.element, "" if child else "placement_frame")
    if node is not None:
        scope.frame.pose = scope.frame.pose @ FramePoses(scope.frame).find_pose(node).inverse()


def _skip_joints(context: Context, scopes: list[Scope]) -> None:
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


def _connect_joint(context: Context, scope: Scope, node: FrameNode) -> None:
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


def _check_joint_ends(context: Context, scopes: list[Scope]) -> None:
    """Add a problem for each joint whose ends are fixed to the same link."""
    models = {scope.frame: scope for scope in scopes if not scope.is_world}
    for scope in scopes:
        for node in scope.own_frames:
            if node.kind != "joint" or node.joint_parent is None or node.attached_to is None:
                continue
            if find_fixed_link(node.joint_parent, models) is find_fixed_link(node.attached_to, models):
                ends = " and ".join(end.name.rpartition("::")[2] for end in (node.joint_parent, node.attached_to))
                allowed = "parent and child must differ: both are fixed to the same link"
                context.add_problem(invalid_value(node.element, ends, allowed, attribute="name"))


def find_fixed_link(node: FrameNode, models: dict[FrameNode, Scope]) -> FrameNode | None:
    """Return the link, the static model or the world that a frame is fixed to; the frame itself if that is unknown."""
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
        raise invalid_choice(element, joint_type or None, sorted(schema.JOINT_TYPES), attribute="type")
    if joint_type != "fixed":
        reason = "joints keep position 0, or follow a log of positions"
        parent = element.find("parent")
        if parent is not None and parent.text == WORLD_FRAME:
            reason = "a joint of the world keeps position 0; give the motion of its model, or make its base a link"
        context.add_note("unsupported", f'{named} type="{joint_type}">', reason, element.where)


def _check_axis(context: Context, scope: Scope, axis: Element) -> None:
    context.check(axis, schema.JOINT_AXIS)
    limit = axis.find("limit")
    if limit is not None:
        context.check(limit, schema.JOINT_LIMIT)
    mimic = axis.find("mimic")
    if mimic is not None:
        context.check(mimic, schema.JOINT_MIMIC)
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

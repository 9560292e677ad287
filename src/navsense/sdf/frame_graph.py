"""Construction of the frame graph: all names are declared first, then references are resolved."""

from __future__ import annotations

from collections.abc import Iterator

from navsense.sdf import schema
from navsense.sdf.context import Context
from navsense.sdf.frames import (
    FrameNode,
    FramePoses,
    Scope,
    check_attachments,
    find_frame,
    find_skipped_include,
    resolve_frame,
)
from navsense.sdf.joints import check_joint_ends, connect_joint, skip_joints
from navsense.sdf.names import join_names, parse_name
from navsense.sdf.values import invalid_value, parse_pose
from navsense.sdf.xml_reader import Element

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
        skip_joints(context, scopes)
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
    check_joint_ends(context, scopes)
    poses = FramePoses(root.frame)
    for node in nodes:
        with context.collect_errors():
            poses.find_pose(node)
    return root


def build_model_scope(context: Context, model: Element) -> Scope:
    """Return the scope of a world that contains only the model of a file; see `build_world_scope`."""
    around = Element("world", {"name": model.get_attribute("name") or ""}, model.line, model.path, children=[model])
    return build_world_scope(context, around)


def walk_scopes(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and all nested scopes, in the order of the file."""
    open_scopes = [scope]
    while open_scopes:
        at = open_scopes.pop()
        yield at
        open_scopes.extend(reversed(at.nested.values()))


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
    place = _FRAME_SCHEMAS.get(element.tag)
    if not merged and (place is None or (element.tag == "link" and outer.is_world)):
        return None
    if place is not None:
        context.check(element, place)
    given = parse_name(element)
    name = f"_merged__{given}__model__" if merged else given
    if not _is_free(context, outer, name, element):
        return None
    kind = "frame" if merged else element.tag
    full = join_names(element, outer.frame.name, name)
    node = FrameNode(kind, full, element, relative_to=holder.frame, scope=holder)  # type: ignore[arg-type]
    holder.own_frames.append(node)
    opened = Scope(node, outer, holder if merged else None) if merged or kind == "model" else None
    for scope in holder.list_hosts():
        scope.names.pop(name, None)  # in an older file the second element keeps the name
        scope.names[name] = node
        if kind == "model" and opened is not None:
            scope.nested[name] = opened
    return opened


def _is_free(context: Context, scope: Scope, name: str, element: Element) -> bool:
    """Return True if an element gets its name. Raises `SdfError` for a name that is already used."""
    before = scope.names.get(name)
    if before is None:
        return True
    kinds = {before.element.tag: before.element, element.tag: element}
    loser = next((kinds[tag] for tag in ("frame", "joint") if tag in kinds), None)
    version = max(context.versions.get(each.path, 0) for each in (before.element, element))
    at = element.include or element
    other = before.element.include or before.element
    place = f"line {other.line}" if other.path == at.path else str(other.where)
    if len(kinds) == 2 and loser is not None and version <= _LAST_WITHOUT_UNIQUE_NAMES:
        winner = f"<{before.element.tag}> on {place}" if loser is element else f"<{element.tag}> on line {element.line}"
        reason = f"has the same name as {winner}; nothing can refer to it"
        context.add_note("warning", f'<{loser.tag} name="{name}">', reason, loser.where)
        return loser is not element
    allowed = "must be unique among the links, joints, frames and models of its parent"
    remedy = f"first as <{before.element.tag}> on {place}; rename one"
    asked = element.include and (element.include.find("name") or element.include)
    raise invalid_value(asked or element, name, allowed, attribute="" if asked else "name", remedy=remedy)


def _connect(context: Context, scope: Scope) -> None:
    """Set the pose, the base and the attachment of each frame of a scope."""
    for node in scope.own_frames:
        if node.kind == "joint":
            connect_joint(context, scope, node)
        elif node.element.tag == "frame":
            _connect_frame(context, scope, node)
        element = node.element.find("pose")
        if element is not None:
            with context.collect_errors():
                apply_pose(context, scope, node, element)


def apply_pose(context: Context, scope: Scope, node: FrameNode, element: Element) -> None:
    """Set the pose of a frame, and its base if the pose has `relative_to`. Raises `SdfError`."""
    context.check(element, schema.POSE)
    other = element.get_attribute("relative_to")
    base = resolve_frame(context, scope, other, element, "relative_to") if other else None
    node.relative_to = base or node.relative_to
    node.pose = parse_pose(element, parent=node.element.tag)


def _connect_frame(context: Context, scope: Scope, node: FrameNode) -> None:
    other = node.element.get_attribute("attached_to")
    if other is None:
        return
    target = resolve_frame(context, scope, other, node.element, "attached_to")
    if target is not None:
        node.attached_to = node.relative_to = target


def _choose_canonical(context: Context, scope: Scope) -> None:
    """Set the canonical link of a model: the named link, else the first link, else that of the first nested model.

    The frame of a merged model is attached to it.
    """
    given = scope.element.get_attribute("canonical_link")
    links = scope.list_frames("link")
    nested = (inner.canonical for inner in scope.nested.values() if inner.canonical is not None)
    scope.canonical = links[0] if links else next(nested, None)
    if given is not None:
        node = find_frame(scope, given)
        if node is not None and node.kind == "link":
            scope.canonical = node
        elif not context.incomplete:
            allowed, skipped = f"must name a link in {scope.title}", find_skipped_include(scope, given)
            remedy = f"it may be in {skipped}" if skipped else ""
            context.add_problem(invalid_value(scope.element, given, allowed, attribute="canonical_link", remedy=remedy))
    if scope.host is not None:
        scope.frame.attached_to = scope.canonical


def _apply_placement_frame(context: Context, scope: Scope) -> None:
    """Move a model so that its `placement_frame` has the given pose. Raises `SdfError`.

    The pose of the model becomes ``given pose @ (pose of the placement frame in the model)^-1``.
    """
    given = scope.element.get_attribute("placement_frame")
    if given is None:
        return
    include = scope.element.include
    asked = include.find("placement_frame") if include else None
    node = resolve_frame(context, scope, given, asked or scope.element, "" if asked else "placement_frame")
    if node is not None:
        scope.frame.pose = scope.frame.pose @ FramePoses(scope.frame).find_pose(node).inverse()

"""`<model>`: a top-level model with its links, those of its nested models, and its actuators.

navsense runs no actuator. A model with an actuator and without a motion is stationary, and its world has a warning
(`navsense.world`).

A joint is actuated if a plug-in of the model names it, or if its `<limit>` has an `<effort>` above 0. In URDF, a
`<transmission>` or `<ros2_control>` may also drive it. A plug-in that moves a model has one of the words of
`ACTUATOR_WORDS` in its file or name. The words cover Gazebo, Gazebo Classic, the UUV Simulator, VRX, RotorS, PX4 and
ArduPilot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from navsense.environment.base import Environment
from navsense.sdf.context import Context
from navsense.sdf.frame_graph import walk_scopes
from navsense.sdf.frames import FrameNode, FramePoses, Scope
from navsense.sdf.parse.children import parse_child_flag
from navsense.sdf.parse.drive import parse_drive
from navsense.sdf.parse.joints import parse_joints
from navsense.sdf.parse.motion import check_nested_motion, parse_motion
from navsense.sdf.plugin_files import is_actuator
from navsense.sdf.schema import ACTUATOR_TAG, MERGED_MODEL_TAG, SKIPPED_INCLUDE_TAG
from navsense.sdf.values import invalid_value, is_effort, parse_attribute_flag
from navsense.sdf.xml_reader import Element
from navsense.world import Link, Model, make_log_context


@dataclass(frozen=True)
class ParsedModel:
    """A top-level model, its scopes, and the poses of its frames in the model."""

    model: Model
    scopes: tuple[Scope, ...]
    poses: FramePoses

    def list_links(self) -> list[tuple[Scope, FrameNode]]:
        """Return the scope and frame of each link, in the order of the file; links of nested models follow."""
        return [(scope, link) for scope in self.scopes for link in scope.list_frames("link")]


def parse_model(
    context: Context, scope: Scope, world_poses: FramePoses, environment: Environment
) -> ParsedModel | None:
    """Return a top-level model. A model without a link gives None, and a problem or, if it is static, a note."""
    scopes = tuple(walk_scopes(scope))
    poses = FramePoses(scope.frame)
    static = parse_child_flag(context, scope.element, "static", default=False)
    for nested in scopes[1:]:
        check_nested_motion(context, nested)
        if parse_child_flag(context, nested.element, "static", default=False) and not static:
            reason = f"a nested model moves with {scope.frame.name!r}"
            context.add_note("unsupported", f"<static> of {nested.frame.name}", reason, nested.element.where)
    if scope.canonical is None:
        _report_no_link(context, scopes, static=static)
        return None
    if context.skip_missing and not static:
        _check_canonical_link(context, scope)
    links = tuple(Link(link.name, poses.find_pose(link)) for inner in scopes for link in inner.list_frames("link"))
    pose = world_poses.find_pose(scope.frame)
    drive = None if static else parse_drive(context, scope, poses)
    root = poses.find_pose(scope.canonical)
    log_context = make_log_context(environment, scope.frame.name, root, drive)
    model = Model(
        name=scope.frame.name,
        links=links,
        canonical_link=scope.canonical.name,
        pose=pose,
        static=static,
        motion=parse_motion(context, scope, log_context, drive, static=static),
        actuators=_find_actuators(scope.element),
        drive=drive,
        joints=parse_joints(context, scopes, poses),
        where=scope.element.where,
    )
    return ParsedModel(model, scopes, poses)


def _check_canonical_link(context: Context, scope: Scope) -> None:
    """Add a problem if the canonical link may be a link of a skipped include."""
    with context.collect_errors():
        first = next(_walk_first_links(scope.element), None)
        if first is not None and first.tag == SKIPPED_INCLUDE_TAG:
            allowed = f"must be given: the first link may be in the include skipped at {first.where}"
            remedy = 'write canonical_link="LINK" in the model, or add that file to the search path'
            raise invalid_value(scope.element, "missing", allowed, attribute="canonical_link", remedy=remedy)


def _walk_first_links(model: Element) -> Iterator[Element]:
    """Yield the elements that may determine a model's canonical link, in order: links and skipped includes.

    A model that names its canonical link is yielded itself.
    """
    if model.get_attribute("canonical_link"):
        yield model
        return
    parts = list(_walk_merged(model))
    for part in parts:
        # A skipped include would have merged its links into the model.
        if part.tag == "link" or (part.tag == SKIPPED_INCLUDE_TAG and parse_attribute_flag(part, "merge")):
            yield part
    for part in parts:
        if part.tag == "model":
            yield from _walk_first_links(part)
        elif part.tag == SKIPPED_INCLUDE_TAG:
            yield part


def _walk_merged(model: Element) -> Iterator[Element]:
    """Yield the links, models and skipped includes of a model, with those of merged models in their places."""
    for part in model.find_all("link", "model", SKIPPED_INCLUDE_TAG, MERGED_MODEL_TAG):
        if part.tag == MERGED_MODEL_TAG:
            yield from _walk_merged(part)
        else:
            yield part


def _report_no_link(context: Context, scopes: tuple[Scope, ...], *, static: bool) -> None:
    """Add a problem, or a note, about a model without a link."""
    scope = scopes[0]
    if context.incomplete:
        return
    element, name = scope.element, scope.frame.name
    if any(inner.skipped_includes for inner in scopes):
        reason = "skipped too: all its links are in skipped includes"
        context.add_note("warning", f"<model>: {name}", reason, element.where)
    elif static:
        reason = "has no link, so it can have no sensor"
        context.add_note("unsupported", f"<model>: {name}", reason, element.where)
    else:
        context.add_problem(invalid_value(element, name, "a model must have at least one link", attribute="name"))


def _find_actuators(model: Element) -> tuple[str, ...]:
    """Return descriptions of the actuators of a model and its nested models; plug-ins come before joints."""
    parts = list(_walk_candidates(model))
    driven = {text for part in parts if part.tag == "plugin" for text in (element.text for element in part.walk())}
    actuators: dict[str, None] = {}
    for part in parts:
        name = part.get_attribute("name") or ""
        if part.tag == ACTUATOR_TAG:
            actuators[name] = None
        elif part.tag == "plugin":
            file = part.get_attribute("filename") or ""
            if is_actuator(file, name):
                actuators[f"plug-in {file or name}"] = None
        elif part.get_attribute("type") != "fixed" and (name in driven or _has_effort(part)):
            actuators[f"joint {name}"] = None
    return tuple(sorted(actuators, key=lambda words: words.startswith("joint")))


def _walk_candidates(element: Element) -> Iterator[Element]:
    """Yield the joints, the plug-ins and the URDF actuators in a model, except plug-ins of sensors."""
    for child in element.children:
        if child.tag in ("joint", "plugin", ACTUATOR_TAG):
            yield child
        if child.tag not in ("sensor", "plugin"):
            yield from _walk_candidates(child)


def _has_effort(joint: Element) -> bool:
    """Return True if an axis of a joint has the effort limit of an actuator."""
    limits = (axis.find("limit") for axis in joint.find_all("axis", "axis2"))
    efforts = (limit.find("effort") for limit in limits if limit is not None)
    return any(is_effort(effort.text) for effort in efforts if effort is not None)

"""The frame graph of a file: named frames, and the frame that each pose is relative to.

    pose of f in r  =  pose(f_1) pose(f_2) ... pose(f)      along the chain r <- f_1 <- ... <- f of `relative_to`

The default base of a link, nested model or frame is the frame of its model or world. The default base of a frame with
`attached_to` is that frame, of a joint its child. Names are resolved in the scope of the element; `::` joins scopes.
Source: SDF's frame semantics (1.7 and newer).
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Literal

from navsense.core.errors import SdfError, SensorError, show
from navsense.core.names import WORLD_FRAME, suggest_name
from navsense.core.pose import IDENTITY, Pose
from navsense.sdf.context import Context
from navsense.sdf.values import invalid_value, parse_attribute_flag
from navsense.sdf.xml_reader import Element

FrameKind = Literal["world", "model", "link", "joint", "frame", "sensor"]

MODEL_FRAME = "__model__"

_ANY_NAME = ""
"""Key of skipped includes whose names are unknown."""


@dataclass(slots=True, eq=False)
class FrameNode:
    """A frame: full name, declaring element, pose in `relative_to`, and attachment.

    attached_to: for a joint its child.
    joint_parent: the parent of a joint.
    scope: where names in the element are resolved; for a frame of a merged model that model.
    """

    kind: FrameKind
    name: str
    element: Element
    pose: Pose = IDENTITY
    relative_to: FrameNode | None = None
    attached_to: FrameNode | None = None
    joint_parent: FrameNode | None = None
    scope: Scope | None = None


@dataclass(slots=True, eq=False)
class Scope:
    """A world or model: its own frame, and the names that it declares.

    nested: the scopes of its models.
    host: the scope that this model is merged into. The names of the scope are names of the host too, and its frame is a
        frame of the host.
    own_frames: the frames whose elements are children of the scope.
    skipped_includes: by the name that each would have. The key of an include with unknown names is "".
    """

    frame: FrameNode
    parent: Scope | None = None
    host: Scope | None = None
    names: dict[str, FrameNode] = field(default_factory=dict)
    nested: dict[str, Scope] = field(default_factory=dict)
    own_frames: list[FrameNode] = field(default_factory=list)
    canonical: FrameNode | None = None
    skipped_includes: dict[str, Element] = field(default_factory=dict)

    @property
    def is_world(self) -> bool:
        """True for the scope of the world."""
        return self.frame.kind == "world"

    @property
    def title(self) -> str:
        """The name of the scope in errors."""
        name = self.element.attributes.get("name", "") if self.host else self.frame.name
        return "the world" if self.is_world else f"model {name!r}"

    def list_hosts(self) -> list[Scope]:
        """Return the scope and all its hosts; the last one is not merged."""
        chain = [self]
        while chain[-1].host is not None:
            chain.append(chain[-1].host)
        return chain

    @property
    def element(self) -> Element:
        """The element of the world or model."""
        return self.frame.element

    def skip_include(self, include: Element) -> None:
        """Add an include whose file is missing. An unknown name of the scope may be in that file."""
        name = include.find("name")
        key = name.text if name is not None and not parse_attribute_flag(include, "merge") else _ANY_NAME
        for scope in self.list_hosts():
            scope.skipped_includes.setdefault(key, include)

    def list_frames(self, kind: FrameKind) -> list[FrameNode]:
        """Return the frames of one kind declared here, in order."""
        return [node for node in self.names.values() if node.kind == kind]


def find_frame(scope: Scope, name: str) -> FrameNode | None:
    """Return the frame that a name refers to; None if there is none."""
    *models, short_name = name.split("::")
    for model in models:
        if model not in scope.nested:
            return None
        scope = scope.nested[model]
    if short_name == MODEL_FRAME:
        return None if scope.is_world else scope.frame
    if short_name == WORLD_FRAME:
        return scope.frame if scope.is_world and not models else None
    return scope.names.get(short_name)


def list_frame_names(scope: Scope) -> Iterator[str]:
    """Yield the names of the frames in a scope, and in its models."""
    yield from scope.names
    for model, nested in scope.nested.items():
        yield from (f"{model}::{name}" for name in nested.names)


def find_skipped_include(scope: Scope, name: str) -> str:
    """Return the skipped include that may contain the frame of a name; "" if there is none."""
    if name in (MODEL_FRAME, WORLD_FRAME):
        return ""
    for part in name.split("::"):
        if part not in scope.nested:
            include = scope.skipped_includes.get(part) or scope.skipped_includes.get(_ANY_NAME)
            uri = include.find("uri") if include else None
            return f"{show(uri.text)}, skipped at {uri.where}" if uri else ""
        scope = scope.nested[part]
    return ""


def resolve_frame(context: Context, scope: Scope, name: str, element: Element, attribute: str = "") -> FrameNode | None:
    """Return the frame that a name refers to. An unknown name gives None and a problem at `element`."""
    node = find_frame(scope, name)
    if node is None and not context.incomplete:
        remedy = "a pose in a model cannot refer to the world" if name == WORLD_FRAME else ""
        skipped = find_skipped_include(scope, name)
        if skipped:
            remedy = f"it may be in {skipped}: add that file to the search path, or remove this reference"
        else:
            remedy = remedy or suggest_name(name, list_frame_names(scope))
        allowed = f"must name a link, joint, frame or model in {scope.title}"
        context.add_problem(invalid_value(element, name, allowed, attribute=attribute, remedy=remedy))
    return node


class FramePoses:
    """Poses of frames in one root frame, each computed once."""

    def __init__(self, root: FrameNode) -> None:
        """Start with the root, whose pose is the identity."""
        self._poses: dict[FrameNode, Pose] = {root: IDENTITY}

    def find_pose(self, node: FrameNode) -> Pose:
        """Return the pose of a frame below the root, in the root.

        Raises `SdfError` for a cycle and for a pose that is not finite. The cycle is removed and the pose is replaced,
        so a second call does not raise.
        """
        chain = list(_walk_chain(node, "relative_to", self._poses))
        last = chain[-1] if chain else node
        if last.relative_to in chain:
            start, last.relative_to = chain.index(last.relative_to), None
            raise _make_cycle_error(chain[start:], "relative_to")
        base = last.relative_to if chain else node
        pose = IDENTITY if base is None else self._poses[base]
        for frame in reversed(chain):
            parent_pose = pose
            try:
                pose = parent_pose @ frame.pose
            except SensorError as error:
                frame.pose = IDENTITY
                self._poses[frame] = parent_pose
                allowed = "the poses along a chain must give finite numbers"
                raise invalid_value(_find_pose_element(frame), error.value, allowed) from error
            self._poses[frame] = pose
        return pose


def check_attachments(nodes: list[FrameNode]) -> list[SdfError]:
    """Return an error for each cycle of `attached_to`; a joint is attached to its child."""
    done: set[FrameNode] = set()
    errors: list[SdfError] = []
    for node in nodes:
        chain = list(_walk_chain(node, "attached_to", done))
        if chain and chain[-1].attached_to in chain:
            cycle = chain[chain.index(chain[-1].attached_to) :]
            errors.append(_make_cycle_error(cycle, "attached_to"))
            for frame in cycle:
                frame.relative_to = None if frame.relative_to is frame.attached_to else frame.relative_to
        done |= set(chain)
    return errors


def _walk_chain(node: FrameNode, attribute: str, known: Container[FrameNode]) -> Iterator[FrameNode]:
    """Yield a frame and those that an attribute refers to, up to a known one; each frame of a cycle once."""
    chain: set[FrameNode] = set()
    frame: FrameNode | None = node
    while frame is not None and frame not in known and frame not in chain:
        chain.add(frame)
        yield frame
        frame = getattr(frame, attribute)


def _find_pose_element(node: FrameNode) -> Element:
    return node.element.find("pose") or node.element


def _make_cycle_error(cycle: list[FrameNode], attribute: str) -> SdfError:
    """Return the error of a cycle of frames, at its first frame in the file."""

    def order(index: int) -> tuple[bool, int]:
        pose = cycle[index].element.find("pose")
        refers = attribute == "attached_to" or (pose is not None and "relative_to" in pose.attributes)
        return (not refers, cycle[index].element.line)

    start = min(range(len(cycle)), key=order)
    cycle = cycle[start:] + cycle[:start]
    short_names = [node.name.rpartition("::")[2] for node in cycle]
    names = " -> ".join(
        (*short_names, short_names[0])
        if len(cycle) < 8
        else (*short_names[:3], f"... {len(cycle)} frames", short_names[0])
    )
    element = _find_pose_element(cycle[0]) if attribute == "relative_to" else cycle[0].element
    allowed = "frames must not depend on each other in a cycle"
    return invalid_value(element, names, allowed, attribute=attribute, remedy="make one of them relative to its model")

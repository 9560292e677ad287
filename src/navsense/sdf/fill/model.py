"""`<model>`: one top-level model with its links and those of the models nested in it."""

from __future__ import annotations

from dataclasses import dataclass

from navsense.sdf.context import Context
from navsense.sdf.fill.fields import flag_of
from navsense.sdf.fill.motion import motion_of, refuse_nested
from navsense.sdf.frames import Node, Poses, Scope
from navsense.sdf.graph import below
from navsense.sdf.values import refusal
from navsense.world import Link, Model


@dataclass(frozen=True)
class Filled:
    """One top-level model, the scopes in it, and the poses of its frames in its own."""

    model: Model
    scopes: tuple[Scope, ...]
    poses: Poses

    def links(self) -> list[tuple[Scope, Node]]:
        """Return each link's scope and frame, in the order of the file; links of nested models follow."""
        return [(scope, link) for scope in self.scopes for link in scope.of("link")]


def model(context: Context, scope: Scope, in_world: Poses) -> Filled | None:
    """Return a top-level model; None for one that has no link, with a problem or (where it is static) a note."""
    scopes = tuple(below(scope))
    poses = Poses(scope.node)
    static = flag_of(context, scope.element, "static", default=False)
    for nested in scopes[1:]:
        refuse_nested(context, nested)
        if flag_of(context, nested.element, "static", default=False) and not static:
            reason = f"a nested model moves with {scope.node.name!r}"
            context.note("unsupported", f"<static> of {nested.node.name}", reason, nested.element.where)
    if scope.canonical is None:
        _without_link(context, scope, static=static)
        return None
    links = tuple(Link(link.name, poses.of(link)) for inner in scopes for link in inner.of("link"))
    made = Model(
        name=scope.node.name,
        links=links,
        canonical_link=scope.canonical.name,
        pose=in_world.of(scope.node),
        static=static,
        motion=motion_of(context, scope, static=static),
    )
    return Filled(made, scopes, poses)


def _without_link(context: Context, scope: Scope, *, static: bool) -> None:
    if context.incomplete:
        return
    if static:
        reason = "has no link: there is nothing in it to sense with"
        context.note("unsupported", f"<model>: {scope.node.name}", reason, scope.element.where)
        return
    with context.collecting():
        raise refusal(scope.element, scope.node.name, "a model must have at least one link", attribute="name")

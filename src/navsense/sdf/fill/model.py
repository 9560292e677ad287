"""`<model>`: one top-level model with its links and those of the models nested in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from navsense.sdf.context import Context
from navsense.sdf.fill.actuators import find_actuators
from navsense.sdf.fill.fields import flag_of
from navsense.sdf.fill.motion import motion_of, refuse_nested
from navsense.sdf.frames import Node, Poses, Scope
from navsense.sdf.graph import below
from navsense.sdf.places import LEFT_OUT, MERGED
from navsense.sdf.read import Element
from navsense.sdf.values import attribute_flag, refusal
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
        _without_link(context, scopes, static=static)
        return None
    if context.without_missing and not static:
        _check_canonical(context, scope)
    links = tuple(Link(link.name, poses.of(link)) for inner in scopes for link in inner.of("link"))
    made = Model(
        name=scope.node.name,
        links=links,
        canonical_link=scope.canonical.name,
        pose=in_world.of(scope.node),
        static=static,
        motion=motion_of(context, scope, static=static),
        actuators=find_actuators(scope.element),
        where=scope.element.where,
    )
    return Filled(made, scopes, poses)


def _check_canonical(context: Context, scope: Scope) -> None:
    """Keep a problem where the link that moves a model may be another one, in an include that is left out."""
    with context.collecting():
        first = next(_first_links(scope.element), None)
        if first is not None and first.tag == LEFT_OUT:
            allowed = f"must be given: the first link may be one of the include left out on {first.where}"
            remedy = 'write canonical_link="LINK" into the model, or say where that file is'
            raise refusal(scope.element, "missing", allowed, attribute="canonical_link", remedy=remedy)


def _first_links(model: Element) -> Iterator[Element]:
    """Yield what may decide a model's canonical link, the first before all others: links and includes left out.

    A model that names its own stands for it.
    """
    if model.attribute("canonical_link"):
        yield model
        return
    parts = list(_merged_in(model))
    yield from (part for part in parts if part.tag == "link" or _is_merged(part))
    for part in parts:
        if part.tag == "model":
            yield from _first_links(part)
        elif part.tag == LEFT_OUT:
            yield part


def _merged_in(model: Element) -> Iterator[Element]:
    """Yield the links, models and includes left out of a model, those of what is merged into it in their places."""
    for part in model.all("link", "model", LEFT_OUT, MERGED):
        if part.tag == MERGED:
            yield from _merged_in(part)
        else:
            yield part


def _is_merged(part: Element) -> bool:
    """Return whether an include left out would have brought its links as the model's own."""
    return part.tag == LEFT_OUT and attribute_flag(part, "merge")


def _without_link(context: Context, scopes: tuple[Scope, ...], *, static: bool) -> None:
    scope = scopes[0]
    if context.incomplete:
        return
    if any(inner.left_out for inner in scopes):
        reason = "left out too: all of its links are in what is left out"
        context.note("warning", f"<model>: {scope.node.name}", reason, scope.element.where)
        return
    if static:
        reason = "has no link: there is nothing in it to sense with"
        context.note("unsupported", f"<model>: {scope.node.name}", reason, scope.element.where)
        return
    with context.collecting():
        raise refusal(scope.element, scope.node.name, "a model must have at least one link", attribute="name")

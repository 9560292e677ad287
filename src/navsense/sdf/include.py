"""`<include>`: the models of other files, put where they are asked for.

    <include merge="false">
      <uri>model://auv</uri> <name>auv_2</name> <static>false</static>
      <pose relative_to="dock">0 0 -5 0 0 0</pose> <placement_frame>keel</placement_frame> <plugin .../>
    </include>

The include's name and pose replace the model's own, its plug-ins are added. With `merge="true"` the model's links,
joints, frames and models become the including model's own; `_merged__NAME__model__` is then the frame that was its
`__model__`. A file is read once however often it is included. Where the caller asked for the world without what is
not found, such an include stays in the tree as `LEFT_OUT`. Source: SDF 1.12; libsdformat's parser.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from navsense.errors import SdfError, Where
from navsense.sdf.context import Context
from navsense.sdf.names import NEWEST, possible_name, version_of
from navsense.sdf.places import INCLUDE, INCLUDE_LEFT_OUT, LEAF, LEFT_OUT, MERGED, MODEL, SDF
from navsense.sdf.read import DEEPEST, LARGEST, MOST_ELEMENTS, Element, content, parse
from navsense.sdf.search import MissingError, Search
from navsense.sdf.values import attribute_flag, refusal, text
from navsense.sdf.versions import upgrade

DEEPEST_INCLUDES = 30
"""Files that include each other, one inside the other."""

MOST_INCLUDES = 10_000
"""Includes of a world, those inside included files counted each time that they are included."""

_TOP = ("model", "actor", "light")
_FRAMES = ("link", "joint", "frame", "model")
"""Children of a merged model that get the including model's scope."""

_ADDED = ("gripper", "plugin")
"""Children of a merged model that are added to the including one, as those of a namespace are."""


@dataclass(frozen=True)
class _Model:
    """The one model of a file, with its includes in it, and how many elements and includes that are."""

    element: Element
    elements: int
    includes: int


XACRO = ".xacro"
"""Suffix of a xacro file."""

MACRO = "xacro:"
"""Prefix of the tags that xacro expands."""

_RUNS = "can execute code; only a file that you name as *.xacro may use xacro"
_TRUST = "if you trust it, give --expand-xacro (in Python expand_xacro=True)"


@dataclass
class Includes:
    """The files of one world: each read, brought to the newest version and expanded once.

    `left` is how many bytes may still be read, `arguments` are those of files of xacro, `expand_xacro` allows xacro to
    run, `open` the files that are being expanded, from the outermost inwards; `full` is true once a bound is met: what
    follows is not included.
    """

    context: Context
    search: Search
    left: int = LARGEST
    arguments: Mapping[str, str] = field(default_factory=dict)
    expand_xacro: bool = False
    open: list[Path] = field(default_factory=list)
    full: bool = False
    _declared: set[str] = field(default_factory=set)
    _elements: int = 0
    _includes: int = 0
    _models: dict[Path, _Model | None] = field(default_factory=dict)
    _places: dict[tuple[Path, str], Path] = field(default_factory=dict)

    def root(self, name: str) -> Element:
        """Return the root element of the outermost file, upgraded and with its includes in it.

        Raises `SdfError` for a file that is no SDF, and where includes exceed a bound; what is wrong otherwise with an
        include is a problem of the context.
        """
        self.expand_xacro = self.expand_xacro or name.endswith(XACRO)
        root = self._read(name)
        self.open.append(Path(name).resolve())
        children = [self._expanded(child, 1) if child.tag in ("world", "model") else child for child in root.children]
        self.open.pop()
        for argument in (
            () if self.context.incomplete else self.arguments
        ):  # the arguments of an unread file are unknown
            if argument not in self._declared:
                allowed = (
                    f"must be one of the files' <xacro:arg>: {', '.join(sorted(self._declared)) or 'there is none'}"
                )
                self.context.problem(SdfError("xacro argument", argument, where=Where(name), allowed=allowed))
        if self.full:
            self.context.raise_problems()
        return replace(root, children=children)

    def _read(self, name: str) -> Element:
        """Return the root element of a file in the newest SDF version, expanded if it uses xacro.

        Raises `SdfError` for a file that uses xacro if xacro may not run.
        """
        if name.endswith(XACRO):
            root = self._expand(name)
        else:
            data = content(name, self.left)
            root = parse(data, name)
            macro = _find_xacro(root)
            if macro is None:
                self.left -= len(data)
            elif self.expand_xacro:
                root = self._expand(name)
            else:
                raise refusal(macro, None, _RUNS, remedy=_TRUST)
        self.context.versions.setdefault(name, NEWEST)
        if root.tag == "robot":
            from navsense.sdf.urdf import to_sdf

            return to_sdf(self.context, root)
        _check_root(root)
        minor = version_of(root)
        self.context.versions[name] = minor
        upgrade(self.context, root, minor)
        return root

    def _expand(self, name: str) -> Element:
        """Return the root element that xacro makes of a file. Raises `SdfError` if xacro may not run."""
        if not self.expand_xacro:
            raise SdfError("file of xacro", where=Where(name), allowed=_RUNS, remedy=_TRUST)
        from navsense.sdf.urdf_xacro import expand

        found = expand(self.context, self.search, name, self.arguments, self.left)
        self._declared |= found.declared
        self.left -= found.size
        for file in found.files:
            self.context.versions.setdefault(file, NEWEST)
        return found.root

    def _expanded(self, element: Element, depth: int) -> Element:
        """Return a world or model with what it includes; `depth` elements stand around it."""
        if depth > DEEPEST:
            self.full = True
            value, allowed = f"{DEEPEST + 1} deep", f"elements may be nested {DEEPEST} deep, those included counted in"
            self.context.problem(refusal(element, value, allowed))
            return replace(element, children=[])
        children: list[Element] = []
        for child in element.children:
            if child.tag == "model":
                children.append(self._expanded(child, depth + 1))
            elif child.tag == "include":
                if self.full:
                    continue
                found = None
                with self.context.collecting():
                    found = list(self._included(child, element, depth + 1))
                if found is None:
                    self.context.incomplete = True
                children += found or ()
            else:
                children.append(child)
        return replace(element, children=children)

    def _included(self, include: Element, parent: Element, depth: int) -> Iterator[Element]:
        """Yield what stands in `parent` instead of an include."""
        uri = include.first("uri")
        lost = self.context.without_missing and uri is not None and self._is_lost(uri)
        self.context.check(include, INCLUDE_LEFT_OUT if lost else INCLUDE)
        if uri is None:
            raise SdfError("<include><uri>", "missing", where=include.where, allowed="must be given")
        self.context.check(uri, LEAF)
        if lost:
            yield _left_out(include)
            return
        model = self._model(uri, depth)
        if model is None:
            return
        self._count(uri, model)
        merge = attribute_flag(include, "merge")
        element = _placed(include, model.element)
        if element.tag == "model":
            yield from self._merged(include, element, parent) if merge else (element,)
        elif merge or parent.tag != "world":
            where = "merged" if merge else "included in a model"
            raise refusal(uri, uri.text, f"holds <{element.tag}>; only a <model> can be {where}", parent="include")
        else:
            yield element

    def _model(self, uri: Element, depth: int) -> _Model | None:
        """Return the model that a URI names; None where its file has a problem that is known already."""
        path = self._path(uri)
        try:
            real = path.resolve()
        except (OSError, RuntimeError) as error:  # links in a circle
            raise refusal(uri, uri.text, f"{path}: {error}", parent="include") from error
        if real in self.open:
            ring = " -> ".join(file.name for file in (*self.open[self.open.index(real) :], real))
            raise refusal(uri, uri.text, f"must not include itself: {ring}", parent="include")
        if len(self.open) > DEEPEST_INCLUDES:
            self.full = True
            raise refusal(uri, uri.text, f"files may include each other {DEEPEST_INCLUDES} deep", parent="include")
        if real not in self._models:
            self._models[real] = None
            before = (self._elements, self._includes)
            self._elements = self._includes = 0
            self.open.append(real)
            try:
                element = self._expanded(self._top(uri, os.fspath(path)), depth)
                self._models[real] = _Model(element, self._elements + _size(element), self._includes)
            finally:
                self.open.pop()
                self._elements, self._includes = before
        elif self._models[real] is None:
            self.context.incomplete = True
        return self._models[real]

    def _is_lost(self, uri: Element) -> bool:
        """Return whether what a URI names is not found, with a note."""
        try:
            self._path(uri)
        except MissingError as error:
            self.context.leave_out(error, f"left out, with all that it would bring; {error.remedy}")
            return True
        except SdfError:  # told where it is read
            return False
        return False

    def _path(self, uri: Element) -> Path:
        key = (Path(uri.path).parent, uri.text)
        if key not in self._places:
            self._places[key] = self.search.file(uri)
        return self._places[key]

    def _top(self, uri: Element, name: str) -> Element:
        """Return the one model, actor or light of a file."""
        try:
            root = self._read(name)
        except SdfError as error:
            if error.where is not None and error.where.line:
                raise
            raise refusal(uri, uri.text, str(error), parent="include") from error
        self.context.check(root, SDF)
        tops = [child for child in root.children if child.tag in _TOP]
        if len(tops) != 1:
            at, value = (tops[1], f"{len(tops)} of them") if tops else (root, "none")
            allowed = "an included file must hold one <model>, <actor> or <light>"
            raise refusal(at, value, allowed)
        return tops[0]

    def _count(self, uri: Element, model: _Model) -> None:
        """Add what is included now. Raises `SdfError` where a world would become too large."""
        self._elements += model.elements
        self._includes += 1 + model.includes
        for count, most, what in (
            (self._includes, MOST_INCLUDES, "includes"),
            (self._elements, MOST_ELEMENTS, "elements"),
        ):
            if count > most:
                self.full = True
                allowed = f"brings more than {most} {what} into one file, those inside included files counted in"
                raise refusal(uri, uri.text, allowed, parent="include")

    def _merged(self, include: Element, model: Element, parent: Element) -> Iterator[Element]:
        """Yield a model that is merged into `parent`: one element for its scope, then what is the parent's own."""
        self.context.check(model, MODEL)
        static = model.first("static")
        if static is not None:
            reason = f"is not used: the model is merged, and that of <{parent.tag}> counts"
            self.context.note("unsupported", "<model><static>", reason, static.where)
        if parent.tag == "world" and _has_links(model):
            raise refusal(include, model.attributes.get("name"), "a model with links cannot be merged into a world")
        inner = [child for child in model.children if child.tag in (*_FRAMES, "pose", MERGED, LEFT_OUT)]
        yield replace(model, tag=MERGED, children=inner)
        yield from (child for child in model.children if child.tag in _ADDED or ":" in child.tag)


def _left_out(include: Element) -> Element:
    """Return what stands for an include whose file is not found; refuses the names that any include is refused for."""
    attribute_flag(include, "merge")
    name = include.first("name")
    if name is not None:
        possible_name(text(name, parent="include"), name)
    return replace(include, tag=LEFT_OUT)


def _placed(include: Element, model: Element) -> Element:
    """Return an included model with the name, pose, frame and plug-ins that its include gives it."""
    attributes = dict(model.attributes)
    children = list(model.children)
    name, pose, static, frame = (include.first(tag) for tag in ("name", "pose", "static", "placement_frame"))
    for child in filter(None, (name, frame)):
        text(child, parent="include")
    if name is not None:
        attributes["name"] = possible_name(name.text, name)
    if frame is not None:
        if pose is None:
            raise refusal(frame, frame.text, "must come with a <pose>, which it places", parent="include")
        attributes["placement_frame"] = frame.text
    for child in filter(None, (pose, static)):
        children = [own for own in children if own.tag != child.tag] + [child]
    return replace(model, attributes=attributes, children=[*children, *include.all("plugin")], include=include)


def _has_links(model: Element) -> bool:
    """Return whether a model has links of its own, those that were merged into it among them."""
    return any(child.tag == "link" or (child.tag == MERGED and _has_links(child)) for child in model.children)


def _size(element: Element) -> int:
    """Return how many elements of its own file an element holds, itself included."""
    queue, count = [element], 0
    while queue:
        at = queue.pop()
        count += 1
        queue.extend(child for child in at.children if child.path == element.path)
    return count


def _find_xacro(root: Element) -> Element | None:
    """Return the first element of a file that xacro expands.

    A file that declares the namespace of xacro may use it in expressions alone: `${...}` or `$(...)`.
    """
    is_declared = "xmlns:xacro" in root.attributes
    queue = [root]
    while queue:
        at = queue.pop()
        if at.tag.startswith(MACRO):
            return at
        if is_declared and any("${" in text or "$(" in text for text in (at.text, *at.attributes.values())):
            return at
        queue.extend(reversed(at.children))
    return None


def _check_root(root: Element) -> None:
    if root.tag != "sdf":
        raise SdfError(f"<{root.tag[:80]}>", where=root.where, allowed="the outermost element must be <sdf> or <robot>")
    for model in root.all("model"):
        for pose in model.all("pose"):
            other = pose.attribute("relative_to")
            if other:
                allowed = "a model outside a world stands in no frame"
                remedy = "give the frame where the model is included"
                raise refusal(pose, other, allowed, attribute="relative_to", remedy=remedy)

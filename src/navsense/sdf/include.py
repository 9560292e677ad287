"""`<include>`: the models of other files.

    <include merge="false">
      <uri>model://auv</uri> <name>auv_2</name> <static>false</static>
      <pose relative_to="dock">0 0 -5 0 0 0</pose> <placement_frame>keel</placement_frame> <plugin .../>
      <experimental:params>...</experimental:params>                         changes to the model (`include_parameters`)
    </include>

The name and the pose of the include replace those of the model, and its plug-ins are added. With `merge="true"` the
links, joints, frames and models of the model become those of the including model; `_merged__NAME__model__` is then the
frame that was the model's `__model__`. A file is read once, also if several includes name it. With `missing="skip"`, an
include without its file stays in the tree as `SKIPPED_INCLUDE_TAG`. Source: SDF 1.12; libsdformat's parser.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from navsense.core.errors import SdfError
from navsense.sdf.context import Context
from navsense.sdf.file_reader import FileReader
from navsense.sdf.include_parameters import apply_parameters
from navsense.sdf.names import check_name
from navsense.sdf.schema import INCLUDE, MERGED_MODEL_TAG, MODEL, PARAMS_TAG, SDF, SKIPPED_INCLUDE, SKIPPED_INCLUDE_TAG
from navsense.sdf.search_path import MissingFileError, SearchPath
from navsense.sdf.values import invalid_value, parse_attribute_flag, parse_text
from navsense.sdf.xml_reader import MAX_DEPTH, MAX_ELEMENTS, Element

MAX_INCLUDE_DEPTH = 30
"""Largest depth of files that include each other."""

MAX_INCLUDES = 10_000
"""Largest number of includes of a world. Those inside an included file count each time."""

_TOP_TAGS = ("model", "actor", "light")
_SCOPED_TAGS = ("link", "joint", "frame", "model")
"""Children of a merged model that get the scope of the including model."""

_ADDED_TAGS = ("gripper", "plugin")
"""Children of a merged model that are added to the including model, as are those with a namespace."""


@dataclass(frozen=True)
class _IncludedModel:
    """The model of a file with its includes, and the numbers of its elements and includes."""

    element: Element
    elements: int
    includes: int


@dataclass
class IncludeExpander:
    """Reads a world file and replaces its includes by the models of their files. Each file is read once.

    open_files: the files that are being expanded, outermost first.
    limit_reached: True after a limit is exceeded; later includes are skipped.
    """

    context: Context
    search: SearchPath
    reader: FileReader
    open_files: list[Path] = field(default_factory=list)
    limit_reached: bool = False
    _element_count: int = 0
    _include_count: int = 0
    _models: dict[Path, _IncludedModel | None] = field(default_factory=dict)
    _paths: dict[tuple[Path, str], Path] = field(default_factory=dict)

    def read_root(self, name: str) -> Element:
        """Return the root element of the outermost file, upgraded and with its includes.

        Raises `SdfError` for a file that is not SDF, and if the includes exceed a limit. Other errors of includes are
        problems of the context.
        """
        root = self.reader.read_root(name)
        self.open_files.append(Path(name).resolve())
        self.context.check(root, SDF)
        expanded = self._expand_includes(root, 0)
        self.open_files.pop()
        self.reader.check_arguments(name)
        if self.limit_reached:
            self.context.raise_problems()
        return expanded

    def _expand_includes(self, element: Element, depth: int) -> Element:
        """Return a root, world or model with its includes; `depth` is the nesting level of the element."""
        if depth > MAX_DEPTH:
            self.limit_reached = True
            allowed = f"elements may be nested {MAX_DEPTH} deep, with those of includes"
            self.context.add_problem(invalid_value(element, f"{MAX_DEPTH + 1} deep", allowed))
            return replace(element, children=[])
        children: list[Element] = []
        for child in element.children:
            if child.tag == "model" or (child.tag == "world" and depth == 0):
                children.append(self._expand_includes(child, depth + 1))
            elif child.tag == "include":
                if self.limit_reached:
                    continue
                elements = None
                with self.context.collect_errors():
                    elements = list(self._resolve_include(child, element, depth + 1))
                if elements is None:
                    self.context.incomplete = True
                children += elements or ()
            else:
                children.append(child)
        return replace(element, children=children)

    def _resolve_include(self, include: Element, parent: Element, depth: int) -> Iterator[Element]:
        """Yield the elements that replace an include in `parent`."""
        first = include.find("uri")
        skip = self.context.skip_missing and first is not None and self._is_missing(first)
        self.context.check(include, SKIPPED_INCLUDE if skip else INCLUDE)
        uri = self.context.require_child(include, "uri")
        if skip:
            yield _make_skipped_include(include)
            return
        model = self._read_model(uri, depth)
        if model is None:
            return
        self._add_counts(uri, model)
        merge = parse_attribute_flag(include, "merge")
        params = include.find(PARAMS_TAG)
        included = model.element if params is None else apply_parameters(self.context, params, model.element)
        element = _apply_include(include, included)
        if element.tag == "model":
            yield from self._merge_model(include, element, parent) if merge else (element,)
        elif merge or parent.tag != "world":
            where = "merged" if merge else "included in a model"
            allowed = f"holds <{element.tag}>; only a <model> can be {where}"
            raise invalid_value(uri, uri.text, allowed, parent="include")
        else:
            yield element

    def _read_model(self, uri: Element, depth: int) -> _IncludedModel | None:
        """Return the model of a URI; None if its file has a problem that is already reported."""
        path = self._find_path(uri)
        try:
            real = path.resolve()
        except (OSError, RuntimeError) as error:  # a cycle of symbolic links
            raise invalid_value(uri, uri.text, f"{path}: {error}", parent="include") from error
        if real in self.open_files:
            cycle = " -> ".join(file.name for file in (*self.open_files[self.open_files.index(real) :], real))
            raise invalid_value(uri, uri.text, f"must not include itself: {cycle}", parent="include")
        if len(self.open_files) > MAX_INCLUDE_DEPTH:
            self.limit_reached = True
            allowed = f"files may include each other {MAX_INCLUDE_DEPTH} deep"
            raise invalid_value(uri, uri.text, allowed, parent="include")
        if real not in self._models:
            self._models[real] = None
            counts = (self._element_count, self._include_count)
            self._element_count = self._include_count = 0
            self.open_files.append(real)
            try:
                element = self._expand_includes(self._read_top_element(uri, os.fspath(path)), depth)
                count = self._element_count + _count_elements(element)
                self._models[real] = _IncludedModel(element, count, self._include_count)
            finally:
                self.open_files.pop()
                self._element_count, self._include_count = counts
        elif self._models[real] is None:
            self.context.incomplete = True
        return self._models[real]

    def _is_missing(self, uri: Element) -> bool:
        """Return True if the file of a URI is missing; adds a note."""
        try:
            self._find_path(uri)
        except MissingFileError as error:
            effect = f"skipped with its content; {error.search_remedy}"
            self.context.note_missing(error, effect, subject="include")
            return True
        except SdfError:  # reported when it is read
            return False
        return False

    def _find_path(self, uri: Element) -> Path:
        """Return the file of a URI. Raises `SdfError` if it is not found."""
        key = (Path(uri.path).parent, uri.text)
        if key not in self._paths:
            self._paths[key] = self.search.find_model_file(uri)
        return self._paths[key]

    def _read_top_element(self, uri: Element, name: str) -> Element:
        """Return the one model, actor or light of a file."""
        try:
            root = self.reader.read(name)
        except SdfError as error:
            if error.where is not None and error.where.line:
                raise
            raise invalid_value(uri, uri.text, str(error), parent="include") from error
        self.context.check(root, SDF)
        tops = list(root.find_all(*_TOP_TAGS))
        if len(tops) != 1:
            element, value = (tops[1], f"{len(tops)} models, actors or lights") if tops else (root, "none")
            raise invalid_value(element, value, "an included file must hold one <model>, <actor> or <light>")
        return tops[0]

    def _add_counts(self, uri: Element, model: _IncludedModel) -> None:
        """Count the elements and includes of an include. Raises `SdfError` if the world becomes too large."""
        self._element_count += model.elements
        self._include_count += 1 + model.includes
        for count, most, what in (
            (self._include_count, MAX_INCLUDES, "includes"),
            (self._element_count, MAX_ELEMENTS, "elements"),
        ):
            if count > most:
                self.limit_reached = True
                allowed = f"brings more than {most} {what} into one file, with those of included files"
                raise invalid_value(uri, uri.text, allowed, parent="include")

    def _merge_model(self, include: Element, model: Element, parent: Element) -> Iterator[Element]:
        """Yield the children of a merged model: an element for its scope, then the children that move to `parent`."""
        self.context.check(model, MODEL)
        static = model.find("static")
        if static is not None:
            reason = f"has no effect: the model is merged, and that of <{parent.tag}> applies"
            self.context.add_note("unsupported", "<model><static>", reason, static.where)
        if parent.tag == "world" and _has_links(model):
            allowed = "a model with links cannot be merged into a world"
            raise invalid_value(include, model.attributes.get("name"), allowed)
        tags = (*_SCOPED_TAGS, "pose", MERGED_MODEL_TAG, SKIPPED_INCLUDE_TAG)
        yield replace(model, tag=MERGED_MODEL_TAG, children=list(model.find_all(*tags)))
        yield from (child for child in model.children if child.tag in _ADDED_TAGS or ":" in child.tag)


def _make_skipped_include(include: Element) -> Element:
    """Return the element that replaces an include with a missing file. Raises `SdfError` for an invalid name."""
    parse_attribute_flag(include, "merge")
    name = include.find("name")
    if name is not None:
        check_name(parse_text(name, parent="include"), name)
    return replace(include, tag=SKIPPED_INCLUDE_TAG)


def _apply_include(include: Element, model: Element) -> Element:
    """Return an included model with the name, pose, frame and plug-ins of its include."""
    attributes = dict(model.attributes)
    children = list(model.children)
    name, pose, static, frame = (include.find(tag) for tag in ("name", "pose", "static", "placement_frame"))
    for child in filter(None, (name, frame)):
        parse_text(child, parent="include")
    if name is not None:
        attributes["name"] = check_name(name.text, name)
    if frame is not None:
        if pose is None:
            raise invalid_value(frame, frame.text, "requires a <pose>", parent="include")
        attributes["placement_frame"] = frame.text
    for child in filter(None, (pose, static)):
        children = [element for element in children if element.tag != child.tag] + [child]
    return replace(model, attributes=attributes, children=[*children, *include.find_all("plugin")], include=include)


def _has_links(model: Element) -> bool:
    """Return True if a model has links, also by merged models."""
    return any(child.tag == "link" or (child.tag == MERGED_MODEL_TAG and _has_links(child)) for child in model.children)


def _count_elements(element: Element) -> int:
    """Return the number of elements in an element of the same file, itself included."""
    queue, count = [element], 0
    while queue:
        parent = queue.pop()
        count += 1
        queue.extend(child for child in parent.children if child.path == element.path)
    return count

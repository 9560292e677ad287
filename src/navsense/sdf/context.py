"""Problems and notes of a file and its includes, and the check for unknown elements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from navsense.core.errors import NavsenseError, SdfError, Where, show
from navsense.core.names import find_similar_names
from navsense.sdf.plugin_files import (
    explain_unread_sensor,
    find_drive_plugin,
    is_among,
    normalize_file,
    normalize_files,
)
from navsense.sdf.search_path import MissingFileError
from navsense.sdf.values import require_child
from navsense.sdf.xml_reader import PREFIX, Element
from navsense.world import Note, NoteKind, NoteSubject

MAX_PROBLEMS = 1000
"""Number of problems after which reading stops."""


class TooManyProblemsError(Exception):
    """The files have more problems than `MAX_PROBLEMS`."""


PLUGIN_NOT_RUN = "plug-ins of other programs are not run"
DRIVE_NOT_RUN = "is not run; the first drive of a model selects the velocity commands, their frame and limits"

PLUGIN_REASONS = normalize_files(
    {
        "libdave_ocean_current_model_plugin.so": "each vehicle is in the world's current; its own noise is not added",
        "gz-sim-hydrodynamics-system": "forces are not simulated; only the current is read",
        "libdsros_ros_dvl.so": 'is read in a <sensor type="dsros_dvl">',
        "libgazebo_ros_p3d.so": "the true state of each model is recorded on /truth/MODEL",
        "libgazebo_groundtruth_plugin.so": "the true state of each model is recorded on /truth/MODEL",
        "libuuv_gazebo_ros_pose_gt_plugin.so": "the true state of each model is recorded on /truth/MODEL",
    }
)
"""File of a plug-in, by `normalize_file` -> reason why it has no effect."""

MIN_SIMILARITY = 0.94
"""Minimum similarity (of 1) of the file names of two plug-ins for a spelling suggestion. Longer names are not compared.

Two instruments of the UUV Simulator, which differ in three of 31 letters, have a similarity of 0.9.
"""

_STRICT_SIMILARITY, _LENIENT_SIMILARITY = 0.6, 0.75
"""Minimum similarity (of 1) for a spelling suggestion: of an error, and of a warning.

A warning is more often about an element in the wrong place, such as `<world><link>`, than about a misspelt one.
"""

_GUI_TAG = "gui"
"""The plug-ins of this element belong to a window of the user interface."""


@dataclass(frozen=True)
class ElementSchema:
    """The allowed children and attributes of an element.

    children: tags of children that are read.
    repeatable: tags of children that are read and may occur more than once.
    unsupported: child -> reason; listed as a note.
    forbidden: child or attribute -> remedy; an error, or a warning.
    attributes: attributes that are read.
    ignored_attributes: attribute -> reason; listed as a note.
    plugins: files of the plug-ins that are read.
    strict: True if an unknown, forbidden or repeated child or attribute is an error; False if it is a warning, as in
        libsdformat. None: as in the parent element. Elements of `PREFIX` are always strict.
    """

    children: frozenset[str] = frozenset()
    repeatable: frozenset[str] = frozenset()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    forbidden: Mapping[str, str] = field(default_factory=dict)
    attributes: frozenset[str] = frozenset()
    ignored_attributes: Mapping[str, str] = field(default_factory=dict)
    plugins: frozenset[str] = frozenset()
    strict: bool | None = True

    def __post_init__(self) -> None:
        """Add the repeatable children to the children."""
        object.__setattr__(self, "children", self.children | self.repeatable)


def split_tags(text: str) -> frozenset[str]:
    """Return the tags or attributes of a text."""
    return frozenset(text.split())


def make_schema(children: str = "", *, repeatable: str = "", attributes: str = "", **fields: Any) -> ElementSchema:
    """Return a schema whose tags and attributes are given as texts, separated by blanks; `fields` are the others."""
    tags = (split_tags(children), split_tags(repeatable))
    return ElementSchema(*tags, attributes=split_tags(attributes), **fields)


LEAF = ElementSchema(strict=None)
"""Schema of an element with a text only."""


@dataclass
class Context:
    """The state of reading a file and its includes.

    fidelity: the fidelity that the caller requested.
    skip_missing: True if the caller wants the world without missing files.
    namespace: the ROS namespace of plug-ins without one, without slashes at its ends; "" if the caller gives none.
    sources: the absolute paths of the files that were read.
    versions: y of SDF version 1.y by file, in the order of reading.
    problem_count: the number of problems.
    last_problem: the latest of them.
    incomplete: True if a file is missing that may declare names.

    A problem or note is kept once, also if its file is included twice.
    """

    path: str
    fidelity: str | None = None
    skip_missing: bool = False
    namespace: str = ""
    sources: Collection[str] = ()
    versions: dict[str, int] = field(default_factory=dict)
    problem_count: int = 0
    last_problem: NavsenseError | None = None
    incomplete: bool = False
    _problems: dict[str, NavsenseError] = field(default_factory=dict)
    _notes: dict[Note, None] = field(default_factory=dict)
    _suggestions: dict[str, str] = field(default_factory=dict)
    _spelling_errors: dict[str, SdfError] = field(default_factory=dict)
    _problem_queue: list[NavsenseError] | None = None

    def list_notes(self) -> tuple[Note, ...]:
        """Return the notes in the order of files and lines."""
        order = self._make_sort_key()
        return tuple(sorted(self._notes, key=lambda note: order(note.where)))

    def add_problem(self, error: NavsenseError) -> None:
        """Add a problem. Raises `TooManyProblemsError` after `MAX_PROBLEMS`."""
        self.problem_count += 1
        self.last_problem = error
        if self._problem_queue is not None:
            self._problem_queue.append(error)
            return
        if len(self._problems) == MAX_PROBLEMS and str(error) not in self._problems:
            raise TooManyProblemsError
        self._problems.setdefault(str(error), error)

    @contextmanager
    def collect_errors(self) -> Iterator[None]:
        """Add an `SdfError` of the `with` statement to the problems and continue after it."""
        try:
            yield
        except SdfError as error:
            self.add_problem(error)

    @contextmanager
    def defer_problems(self) -> Iterator[list[NavsenseError]]:
        """Yield a list that receives the problems of the `with` statement, and its `SdfError`.

        The caller decides whether they are problems, which can depend on elements that are read later.
        """
        outer, count, last = self._problem_queue, self.problem_count, self.last_problem
        queue: list[NavsenseError] = []
        self._problem_queue = queue
        try:
            with self.collect_errors():
                yield queue
        finally:
            self._problem_queue, self.problem_count, self.last_problem = outer, count, last

    def add_warnings(self, errors: Iterable[NavsenseError], reason: str) -> None:
        """Add a warning for each deferred problem, which has no effect for this reason."""
        for error in errors:
            value = "" if error.value is None else f": {show(error.value)}"
            self.add_note("warning", f"{error.what}{value}", f"{error.allowed}; {reason}", error.where)

    def raise_problems(self) -> None:
        """Raise the first problem, if there is one; its `problems` are all problems.

        The problems end with the elements that are only warnings, but may be misspelt: one of them can be the cause. If
        reading stopped at `MAX_PROBLEMS`, the last problem reports it.
        """
        if not self._problems:
            return
        order = self._make_sort_key()
        problems = tuple(sorted(self._problems.values(), key=lambda problem: order(problem.where)))
        problems += tuple(self._spelling_errors.values())
        first = problems[0]
        if not isinstance(first, SdfError):
            first = SdfError(first.what, first.value, allowed=first.allowed, where=first.where, remedy=first.remedy)
            problems = (first, *problems[1:])
        if self.problem_count > MAX_PROBLEMS and len(self._problems) == MAX_PROBLEMS:
            limit = f"reading stops after {MAX_PROBLEMS}; there may be more"
            problems = (*problems, SdfError("problems", where=Where(self.path), allowed=limit))
        first.problems = problems
        raise first

    def add_note(
        self, kind: NoteKind, what: str, reason: str, where: Where | None, *, subject: NoteSubject = ""
    ) -> None:
        """Add a note; `subject` is what the world lacks."""
        self._notes.setdefault(Note(kind, what, reason, where, subject=subject))

    def note_missing(self, error: MissingFileError, effect: str, *, subject: NoteSubject = "") -> None:
        """Add a note about a missing file that is skipped, and the effect of its absence."""
        what, reason = f"{error.what}: {show(error.value)}", f"{error.reason}; {effect}"
        self.add_note("warning", what, reason, error.where, subject=subject)

    def _make_sort_key(self) -> Callable[[Where | None], tuple[int, int]]:
        """Return the sort key of a place: file in the order of reading, then line. Places without a file come first."""
        ranks = {path: rank for rank, path in enumerate(self.versions)}

        def order(where: Where | None) -> tuple[int, int]:
            return (0, 0) if where is None else (ranks.get(where.path, len(ranks)), where.line)

        return order

    def check(self, element: Element, schema: ElementSchema) -> None:
        """Check the children and attributes of an element against its schema.

        Adds a problem, or a warning if the schema is not strict, for each one that is unknown, forbidden or given
        twice, and a note for each unsupported one. Sets the strictness of the children. Raises only
        `TooManyProblemsError`.
        """
        strict = element.strict if schema.strict is None else schema.strict
        first_children: dict[str, Element] = {}
        for child in element.children:
            tag = child.tag
            child.strict = strict or tag.startswith(PREFIX)
            if tag in schema.children:
                first = first_children.setdefault(tag, child)
                if first is not child and tag not in schema.repeatable:
                    self._add_repeated(element, child, first)
                continue
            if tag == "plugin" and is_among(child.attributes.get("filename", ""), schema.plugins):
                continue
            what = f"<{element.tag}><{_format_tag(child)}>"
            if tag in schema.unsupported and tag == "plugin":
                self.note_plugin(element.tag, child, schema.plugins)
            elif tag in schema.unsupported:
                self.add_note("unsupported", what, schema.unsupported[tag], child.where)
                if tag != _GUI_TAG:
                    self.note_plugins(child)
            elif tag in schema.forbidden:
                self._add_forbidden(
                    child,
                    f"<{_format_tag(child)}> in <{element.tag}>",
                    None,
                    schema.forbidden[tag],
                    strict=child.strict,
                )
            elif ":" in tag and not tag.startswith(PREFIX):
                known = [name for name in schema.children if ":" in name]
                suggestion = self._suggest(f"<{element.tag}><{tag}>", tag, known, strict=False) if known else ""
                if suggestion:
                    self._add_unknown(child, what, suggestion, strict=False)
                else:
                    self.add_note("foreign", what, "belongs to another program", child.where)
            else:
                known = [name for name in (*schema.children, *schema.unsupported) if " " not in name]
                suggestion = self._suggest(f"<{element.tag}><{tag}>", tag, known, strict=child.strict)
                what = f"<{element.tag}><{_shorten(tag)}>" if child.strict else what
                self._add_unknown(child, what, suggestion, strict=child.strict)
                self.note_plugins(child)
        self._check_attributes(element, schema, strict=strict)

    def find_child(self, element: Element, tag: str, schema: ElementSchema = LEAF) -> Element | None:
        """Return the first child with a tag, checked against its schema; None without one."""
        child = element.find(tag)
        if child is not None:
            self.check(child, schema)
        return child

    def require_child(self, element: Element, tag: str, schema: ElementSchema = LEAF) -> Element:
        """Return the first child with a tag, checked against its schema. Raises `SdfError` if it is absent."""
        child = require_child(element, tag)
        self.check(child, schema)
        return child

    def note_plugin(self, parent: str, plugin: Element, known: Iterable[str] = ()) -> None:
        """Add a note about a plug-in in an element `parent` that is not read; a warning if it is a sensor.

        `known` are the files that are read there. A similar name gives a spelling suggestion.
        """
        name, what = plugin.attributes.get("filename", ""), f"<{parent}><{_format_tag(plugin)}>"
        reason = PLUGIN_REASONS.get(normalize_file(name), "")
        if parent == "model" and find_drive_plugin(name, plugin.attributes.get("name", "")) is not None:
            reason = DRIVE_NOT_RUN
        warning = _suggest_plugin(name, known) or explain_unread_sensor(name, parent)
        if warning and not reason:
            self.add_note("warning", what, warning, plugin.where, subject="plugin")
        else:
            self.add_note("unsupported", what, reason or PLUGIN_NOT_RUN, plugin.where)

    def note_plugins(self, element: Element) -> None:
        """Add a note for each plug-in inside an element that is not read, and has a note itself.

        A plug-in in a `<sensor>` is no warning: the note is about the whole sensor.
        """
        queue = [element]
        while queue:
            parent = queue.pop()
            for child in parent.children:
                if child.tag != "plugin":
                    queue.append(child)
                elif parent.tag == "sensor":
                    reason = PLUGIN_REASONS.get(normalize_file(child.attributes.get("filename", "")), PLUGIN_NOT_RUN)
                    self.add_note("unsupported", f"<{parent.tag}><{_format_tag(child)}>", reason, child.where)
                else:
                    self.note_plugin(parent.tag, child)

    def _check_attributes(self, element: Element, schema: ElementSchema, *, strict: bool) -> None:
        for name, value in element.attributes.items():
            if name in schema.attributes or name == "xmlns" or name.startswith("xmlns:"):
                continue
            what = f"<{element.tag} {_shorten(name)}>"
            is_own = name.startswith(PREFIX)
            if name in schema.ignored_attributes:
                self.add_note("unsupported", what, schema.ignored_attributes[name], element.where)
            elif name in schema.forbidden:
                if value.strip():
                    self._add_forbidden(element, what, value, schema.forbidden[name], strict=strict)
            elif ":" in name and not is_own:
                self.add_note("foreign", what, "belongs to another program", element.where)
            else:
                known = (*schema.attributes, *schema.ignored_attributes)
                suggestion = self._suggest(what, name, known, strict=strict or is_own)
                self._add_unknown(element, what, suggestion, strict=strict or is_own)

    def _suggest(self, key: str, name: str, known: Iterable[str], *, strict: bool) -> str:
        """Return the known name that is similar to a name; "" without one."""
        # A match takes 20 us, so results are cached, for at most as many names as problems.
        if key not in self._suggestions and len(name) <= 64 and len(self._suggestions) < MAX_PROBLEMS:
            similarity = _STRICT_SIMILARITY if strict else _LENIENT_SIMILARITY
            self._suggestions[key] = next(iter(find_similar_names(name, known, similarity=similarity)), "")
        return self._suggestions.get(key, "")

    def _add_unknown(self, element: Element, what: str, suggestion: str, *, strict: bool) -> None:
        remedy = f"did you mean {suggestion}?" if suggestion else "remove it"
        error = SdfError(what, where=element.where, allowed="is not allowed here", remedy=remedy)
        if strict:
            self.add_problem(error)
            return
        reason = "is ignored: it is unknown here"
        self.add_note("warning", what, f"{reason}; {remedy}" if suggestion else reason, element.where)
        if suggestion and len(self._spelling_errors) < MAX_PROBLEMS:
            self._spelling_errors.setdefault(what, error)

    def _add_repeated(self, parent: Element, element: Element, first: Element) -> None:
        what = f"<{parent.tag}><{element.tag}>"
        if element.strict:
            allowed = f"first on line {first.line}"
            self.add_problem(SdfError(what, "given twice", where=element.where, allowed=allowed))
        else:
            self.add_note("warning", what, f"is ignored: that of line {first.line} is used", element.where)

    def _add_forbidden(self, element: Element, what: str, value: str | None, remedy: str, *, strict: bool) -> None:
        if strict:
            self.add_problem(SdfError(what, value, where=element.where, allowed=remedy))
        else:
            text = what if value is None else f"{what}: {show(value)}"
            self.add_note("warning", text, f"is ignored: {remedy}", element.where)


def _suggest_plugin(name: str, known: Iterable[str]) -> str:
    """Return a spelling suggestion for the file of a plug-in; "" without a similar name."""
    similar = find_similar_names(name, sorted(known), similarity=MIN_SIMILARITY)
    return f"is not supported; did you mean {similar[0]}?" if similar else ""


def _shorten(name: str) -> str:
    return name if len(name) <= 64 else name[:61] + "..."


def _format_tag(element: Element) -> str:
    """Return a tag with the attribute that distinguishes the element from its siblings: name, type or filename."""
    parts = (f'{key}="{element.attributes[key]}"' for key in ("name", "type", "filename") if key in element.attributes)
    return " ".join((_shorten(element.tag), *(_shorten(part) for part in parts)))

"""What reading a file and those it includes gathers: problems and notes; and the check that passes over nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches

from navsense.core.errors import NavsenseError, SdfError, Where, show
from navsense.sdf.search_path import MissingFileError
from navsense.sdf.xml_reader import PREFIX, Element
from navsense.world import Note

MAX_PROBLEMS = 1000
"""Problems after which reading stops."""


class TooManyProblemsError(Exception):
    """The files have more problems than `MAX_PROBLEMS`."""


PLUGIN_NOT_RUN = "plug-ins of other programs are not run"

PLUGIN_REASONS = {
    "libdave_ocean_current_model_plugin.so": "every vehicle feels its world's current; noise of its own is not added",
    "gz-sim-hydrodynamics-system": "forces are not simulated; of it the current alone is read",
    "libdsros_ros_dvl.so": 'is read in a <sensor type="dsros_dvl">',
}
"""File of a plug-in -> why it is not acted on yet."""

MIN_SIMILARITY, MAX_COMPARED_LENGTH = 0.94, 64
"""How alike (of 1) two files of plug-ins are of which one is the other mistyped; what is longer is not compared.

Those of two instruments of the UUV Simulator, three letters of 31 apart, are 0.9.
"""

_GUI_TAG = "gui"
"""Its plug-ins are parts of a window, and no parts of a world."""


@dataclass(frozen=True)
class ElementSchema:
    """What may stand in one kind of element, by tag or attribute name.

    read: children that are read; one of each, but those in `several`. unsupported: children that are listed with this
    reason. refused: children that are errors, with what to do. attributes: those that are read; ignored: attributes
    that are listed with this reason. plugins: files of the plug-ins that are read.
    """

    children: frozenset[str] = frozenset()
    repeatable: frozenset[str] = frozenset()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    forbidden: Mapping[str, str] = field(default_factory=dict)
    attributes: frozenset[str] = frozenset()
    ignored_attributes: Mapping[str, str] = field(default_factory=dict)
    plugins: frozenset[str] = frozenset()


@dataclass
class Context:
    """A file while it is read, with those it includes; `fidelity` is what the caller asked for.

    `skip_missing` is true where the caller wants the world without what is not found.
    `versions` holds the y of SDF version 1.y by file, in the order in which they were read. `found` counts the
    problems; `incomplete` is true where names may stand in a file that could not be included. A problem or note that
    says the same of the same place, as that of a file included twice, is kept once.
    """

    path: str
    fidelity: str | None = None
    skip_missing: bool = False
    versions: dict[str, int] = field(default_factory=dict)
    problem_count: int = 0
    incomplete: bool = False
    _problems: dict[str, NavsenseError] = field(default_factory=dict)
    _notes: dict[Note, None] = field(default_factory=dict)
    _suggestions: dict[str, str] = field(default_factory=dict)

    def list_notes(self) -> tuple[Note, ...]:
        """Return the notes in the order of the files and their lines."""
        order = self._make_sort_key()
        return tuple(sorted(self._notes, key=lambda note: order(note.where)))

    def add_problem(self, error: NavsenseError) -> None:
        """Add a problem. Raises `TooManyProblemsError` after `MAX_PROBLEMS`."""
        self.problem_count += 1
        if len(self._problems) == MAX_PROBLEMS and str(error) not in self._problems:
            raise TooManyProblemsError
        self._problems.setdefault(str(error), error)

    @contextmanager
    def collect_errors(self) -> Iterator[None]:
        """Keep an `SdfError` raised inside as a problem and go on behind the block."""
        try:
            yield
        except SdfError as error:
            self.add_problem(error)

    def raise_problems(self) -> None:
        """Raise the first problem of the files, if any, with all of them as its `problems`.

        If reading stopped at `MAX_PROBLEMS`, the last one says so.
        """
        if not self._problems:
            return
        order = self._make_sort_key()
        found = tuple(sorted(self._problems.values(), key=lambda problem: order(problem.where)))
        first = found[0]
        if not isinstance(first, SdfError):
            first = SdfError(first.what, first.value, allowed=first.allowed, where=first.where, remedy=first.remedy)
            found = (first, *found[1:])
        if self.problem_count > MAX_PROBLEMS and len(found) == MAX_PROBLEMS:
            stopped = f"reading stops after {MAX_PROBLEMS}; there may be more"
            found = (*found, SdfError("problems", where=Where(self.path), allowed=stopped))
        first.problems = found
        raise first

    def add_note(self, kind: str, what: str, reason: str, where: Where | None) -> None:
        """Keep a note."""
        self._notes.setdefault(Note(kind, what, reason, where))

    def note_missing(self, error: MissingFileError, effect: str) -> None:
        """Note a file that is not found and left out, and what its absence does."""
        self.add_note("warning", f"{error.what}: {show(error.value)}", f"{error.reason}; {effect}", error.where)

    def _make_sort_key(self) -> Callable[[Where | None], tuple[int, int]]:
        """Return what says where a place comes among the files and lines that were read; of no file, last."""
        ranks = {path: rank for rank, path in enumerate(self.versions)}

        def order(where: Where | None) -> tuple[int, int]:
            return (0, 0) if where is None else (ranks.get(where.path, len(ranks)), where.line)

        return order

    def check(self, element: Element, schema: ElementSchema) -> None:
        """Hold an element's children and attributes against what may stand there."""
        seen: dict[str, Element] = {}
        for child in element.children:
            tag = child.tag
            if tag in schema.children:
                before = seen.setdefault(tag, child)
                if before is not child and tag not in schema.repeatable:
                    self._add_error(child, f"<{element.tag}><{tag}>", "given twice", f"first on line {before.line}")
            elif tag == "plugin" and child.attributes.get("filename") in schema.plugins:
                continue
            elif tag in schema.unsupported:
                reason, near = _find_reason(child, schema.unsupported[tag]), _suggest_plugin(child, schema)
                kind = "warning" if near else "unsupported"
                self.add_note(kind, f"<{element.tag}><{_format_tag(child)}>", near or reason, child.where)
                if tag not in ("plugin", _GUI_TAG):
                    self.note_plugins(child)
            elif tag in schema.forbidden:
                self._add_error(child, f"<{_format_tag(child)}> in <{element.tag}>", None, schema.forbidden[tag])
            elif ":" in tag and not tag.startswith(PREFIX):
                self.add_note(
                    "foreign", f"<{element.tag}><{_format_tag(child)}>", "belongs to another program", child.where
                )
            else:
                known = [name for name in (*schema.children, *schema.unsupported) if " " not in name]
                self._add_unknown(child, f"<{element.tag}><{_shorten(tag)}>", tag, known)
        self._check_attributes(element, schema)

    def note_plugins(self, element: Element) -> None:
        """Note the plug-ins anywhere in an element that is not read."""
        queue = [element]
        while queue:
            at = queue.pop()
            for child in at.children:
                if child.tag == "plugin":
                    self.add_note(
                        "unsupported",
                        f"<{at.tag}><{_format_tag(child)}>",
                        _find_reason(child, PLUGIN_NOT_RUN),
                        child.where,
                    )
                else:
                    queue.append(child)

    def _check_attributes(self, element: Element, schema: ElementSchema) -> None:
        for name, value in element.attributes.items():
            if name in schema.attributes or name == "xmlns" or name.startswith("xmlns:"):
                continue
            what = f"<{element.tag} {_shorten(name)}>"
            if name in schema.ignored_attributes:
                self.add_note("unsupported", what, schema.ignored_attributes[name], element.where)
            elif name in schema.forbidden:
                if value.strip():
                    self._add_error(element, what, value, schema.forbidden[name])
            elif ":" in name and not name.startswith(PREFIX):
                self.add_note("foreign", what, "belongs to another program", element.where)
            else:
                self._add_unknown(element, what, name, (*schema.attributes, *schema.ignored_attributes))

    def _add_unknown(self, element: Element, what: str, name: str, known: Iterable[str]) -> None:
        # A match takes 20 us: a name that repeats is looked up once, and not more names than problems are kept.
        if what not in self._suggestions and len(name) <= 64 and len(self._suggestions) < MAX_PROBLEMS:
            self._suggestions[what] = next(iter(get_close_matches(name, list(known), n=1, cutoff=0.6)), "")
        near = self._suggestions.get(what)
        remedy = f"did you mean {near}?" if near else "remove it"
        self.add_problem(SdfError(what, where=element.where, allowed="is unknown here", remedy=remedy))

    def _add_error(self, element: Element, what: str, value: str | None, allowed: str) -> None:
        self.add_problem(SdfError(what, value, where=element.where, allowed=allowed))


def _find_reason(element: Element, reason: str) -> str:
    """Return why an element has no effect: for a plug-in of a kind that comes, that."""
    return PLUGIN_REASONS.get(element.attributes.get("filename", ""), reason) if element.tag == "plugin" else reason


def _suggest_plugin(element: Element, schema: ElementSchema) -> str:
    """Return what a plug-in is told whose file is a letter or two off one that is read here, else nothing."""
    name = element.attributes.get("filename", "")
    if element.tag != "plugin" or name in PLUGIN_REASONS or len(name) > MAX_COMPARED_LENGTH:
        return ""
    near = get_close_matches(name, sorted(schema.plugins), n=1, cutoff=MIN_SIMILARITY)
    return f"is none that is read; did you mean {near[0]}?" if near else ""


def _shorten(name: str) -> str:
    return name if len(name) <= 64 else name[:61] + "..."


def _format_tag(element: Element) -> str:
    """Return a tag with what tells an element from its siblings: name, type, filename."""
    parts = (f'{key}="{element.attributes[key]}"' for key in ("name", "type", "filename") if key in element.attributes)
    return " ".join((_shorten(element.tag), *(_shorten(part) for part in parts)))

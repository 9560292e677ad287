"""What reading one file gathers: problems and notes; and the check that nothing in it is passed over in silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches

from navsense.errors import NavsenseError, SdfError, Where
from navsense.sdf.read import PREFIX, Element
from navsense.world import Note

MOST_PROBLEMS = 1000
"""Problems that are kept of one file."""


@dataclass(frozen=True)
class Place:
    """What may stand in one kind of element, by tag or attribute name.

    read: children that are read; one of each, but those in `several`. unsupported: children that are listed with this
    reason. refused: children that are errors, with what to do. attributes: those that are read; ignored: attributes
    that are listed with this reason.
    """

    read: frozenset[str] = frozenset()
    several: frozenset[str] = frozenset()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    attributes: frozenset[str] = frozenset()
    ignored: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Context:
    """One file while it is read: `minor` is the y of SDF version 1.y, `fidelity` what the caller asked for.

    `found` counts the problems; `incomplete` is true where names may stand in a file that is not included.
    """

    path: str
    minor: int = 0
    fidelity: str | None = None
    problems: list[NavsenseError] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    found: int = 0
    incomplete: bool = False

    def problem(self, error: NavsenseError) -> None:
        """Count a problem, and keep it while there are not too many."""
        self.found += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(error)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep an `SdfError` raised inside as a problem and go on behind the block."""
        try:
            yield
        except SdfError as error:
            self.problem(error)

    def raise_problems(self) -> None:
        """Raise the first problem of the file, with all of them as its `problems`, where there are any."""
        if not self.problems:
            return
        found = tuple(sorted(self.problems, key=lambda problem: problem.where.line if problem.where else 0))
        first = found[0]
        if not isinstance(first, SdfError):
            first = SdfError(first.what, first.value, allowed=first.allowed, where=first.where, remedy=first.remedy)
            found = (first, *found[1:])
        first.problems = found
        raise first

    def note(self, kind: str, what: str, reason: str, where: Where | None) -> None:
        """Keep a note."""
        self.notes.append(Note(kind, what, reason, where))

    def since(self, element: Element, minor: int, what: str) -> bool:
        """Return whether the file's version has a feature; keep a problem where it has not."""
        if self.minor >= minor:
            return True
        self.problem(
            SdfError(
                what,
                f"in SDF 1.{self.minor}",
                where=element.where,
                allowed=f"exists since SDF 1.{minor}",
                remedy=f'write <sdf version="1.{minor}"> or newer, or leave it out',
            )
        )
        return False

    def check(self, element: Element, place: Place) -> None:
        """Hold an element's children and attributes against what may stand there."""
        seen: dict[str, Element] = {}
        for child in element.children:
            tag = child.tag
            if tag in place.read:
                before = seen.setdefault(tag, child)
                if before is not child and tag not in place.several:
                    self._problem(child, f"<{element.tag}><{tag}>", "given twice", f"first on line {before.line}")
            elif tag in place.unsupported:
                self.note("unsupported", f"<{element.tag}><{_named(child)}>", place.unsupported[tag], child.where)
            elif tag in place.refused:
                self._problem(child, f"<{_named(child)}> in <{element.tag}>", None, place.refused[tag])
            elif ":" in tag and not tag.startswith(PREFIX):
                self.note("foreign", f"<{element.tag}><{_named(child)}>", "belongs to another program", child.where)
            else:
                known = (*place.read, *place.unsupported)
                self._unknown(child, f"<{element.tag}><{_short(tag)}>", tag, known)
        self._check_attributes(element, place)

    def _check_attributes(self, element: Element, place: Place) -> None:
        for name, value in element.attributes.items():
            if name in place.attributes or name == "xmlns" or name.startswith("xmlns:"):
                continue
            what = f"<{element.tag} {_short(name)}>"
            if name in place.ignored:
                self.note("unsupported", what, place.ignored[name], element.where)
            elif name in place.refused:
                if value.strip():
                    self._problem(element, what, value, place.refused[name])
            elif ":" in name and not name.startswith(PREFIX):
                self.note("foreign", what, "belongs to another program", element.where)
            else:
                self._unknown(element, what, name, (*place.attributes, *place.ignored))

    def _unknown(self, element: Element, what: str, name: str, known: Iterable[str]) -> None:
        near: list[str] = []
        if len(name) <= 64 and len(self.problems) < MOST_PROBLEMS:
            near = get_close_matches(name, list(known), n=1, cutoff=0.6)
        remedy = f"did you mean {near[0]}?" if near else "remove it"
        self.problem(SdfError(what, where=element.where, allowed="is unknown here", remedy=remedy))

    def _problem(self, element: Element, what: str, value: str | None, allowed: str) -> None:
        self.problem(SdfError(what, value, where=element.where, allowed=allowed))


def _short(name: str) -> str:
    return name if len(name) <= 64 else name[:61] + "..."


def _named(element: Element) -> str:
    """Return a tag with what tells an element from its siblings: name, type, filename."""
    parts = (f'{key}="{element.attributes[key]}"' for key in ("name", "type", "filename") if key in element.attributes)
    return " ".join((_short(element.tag), *(_short(part) for part in parts)))

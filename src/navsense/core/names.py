"""Names of frames, short names, and suggestions for misspelt names.

The short name `imu` refers to `robot::base::imu` if no other full name ends in `::imu`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from itertools import chain, islice
from typing import TypeVar

from navsense.core.errors import NavsenseError, UnknownNameError, Where

Value = TypeVar("Value")

WORLD_FRAME = "world"
"""Name of the world frame, in SDF and in messages."""

MAX_COMPARED_LENGTH = 64
"""Longest name that is compared with others, in characters: a comparison takes quadratic time."""

MAX_COMPARED_NAMES = 300
"""Largest number of names that one name is compared with."""


def get_short_name(name: str, separator: str = "::") -> str:
    """Return the last part of a full name."""
    return name.rpartition(separator)[2]


def shorten_names(names: Collection[str]) -> Mapping[str, str]:
    """Return for each `::` name its shortest ending that no other name has."""
    endings = {}
    for name in names:
        parts = name.split("::")
        endings[name] = ["::".join(parts[first:]) for first in reversed(range(len(parts)))]
    counts = Counter(chain.from_iterable(endings.values()))
    return {name: next((ending for ending in endings[name] if counts[ending] == 1), name) for name in endings}


def find_similar_names(
    name: str, names: Iterable[str], count: int = 1, *, similarity: float = 0.6, separator: str = "::"
) -> list[str]:
    """Return up to `count` of the names that are similar to `name`, the nearest first, in any case of letters.

    A name is also compared with the last parts of full names: `imo` is similar to `robot::base::imu`. The parts are
    joined by `separator`: "/" for topics.
    """
    if not name or len(name) > MAX_COMPARED_LENGTH:
        return []
    known = [other for other in islice(names, MAX_COMPARED_NAMES) if len(other) <= 4 * MAX_COMPARED_LENGTH]
    by_key = {other.lower(): other for other in reversed(known)}
    if separator not in name:
        for other in reversed(known):
            by_key.setdefault(get_short_name(other, separator).lower(), other)
    close = get_close_matches(name.lower(), by_key, n=4 * count, cutoff=similarity)
    return list(dict.fromkeys(by_key[key] for key in close))[:count]


def suggest_name(name: str, names: Iterable[str], count: int = 1, *, separator: str = "::") -> str:
    """Return the remedy for a misspelt name, "did you mean X?"; "" if none of the names is similar."""
    similar = find_similar_names(name, names, count, separator=separator)
    return f"did you mean {' or '.join(similar)}?" if similar else ""


def resolve_name(
    name: str,
    names: Iterable[str],
    what: str,
    *,
    where: Where | None = None,
    error: type[NavsenseError] = UnknownNameError,
    separator: str = "::",
) -> str:
    """Return the entry of `names` that equals `name`, or the only entry that ends in `::name`.

    Raises `error` if no entry or several entries match. `what` is the kind of object for the error message. The parts
    of a name are joined by `separator`: "/" for topics.
    """
    full_names = tuple(dict.fromkeys(names))
    if name in full_names:
        return name
    matches = [full for full in full_names if full.endswith(f"{separator}{name}")]
    if len(matches) == 1:
        return matches[0]
    value = str(name)
    value = repr(value) if value != value.strip() or not value else value  # blanks are visible in quotes
    if not full_names:
        raise error(what, value, allowed="there is none", where=where)
    allowed = f"must be one of {', '.join(full_names)}"
    if matches:
        allowed = f"is ambiguous: must be one of {', '.join(matches)}"
    remedy = "" if matches else suggest_name(str(name), full_names, separator=separator)
    remedy = remedy or "write the full name, or an unambiguous ending"
    raise error(what, value, allowed=allowed, where=where, remedy=remedy)


def make_type_error(what: str, name: object) -> UnknownNameError:
    """Return the error for a name that is not a text, such as a list of names."""
    remedy = 'give one name for each call or argument, as "imu", "compass"'
    return UnknownNameError(what, repr(name), allowed="must be a name", remedy=remedy)


class NameDict(dict[str, Value]):
    """A dictionary of full names that also accepts unambiguous endings, see `resolve_name`.

    `what` is the kind of the values for error messages. `aliases` maps alternative names to full names. `names` are all
    full names if the dictionary has values for some of them only; so an ending always refers to the same name.
    """

    def __init__(
        self,
        items: Mapping[str, Value],
        what: str,
        aliases: Mapping[str, str] | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        """Copy the items."""
        super().__init__(items)
        self._what, self._aliases, self._names = what, dict(aliases or {}), names

    def _resolve(self, name: str) -> str:
        resolved = resolve_name(name, (*(self._names or self), *self._aliases), self._what)
        full = self._aliases.get(resolved, resolved)
        if not dict.__contains__(self, full):
            allowed = f"must be one of {', '.join(self)}" if self else "there is none"
            raise UnknownNameError(self._what, full, allowed=allowed)
        return full

    def __getitem__(self, name: str) -> Value:
        """Return the value of a name, an ending or an alias. Raises `UnknownNameError`."""
        try:
            return super().__getitem__(name)
        except TypeError:
            raise make_type_error(self._what, name) from None

    def __missing__(self, name: str) -> Value:
        """Return the value of an ending or an alias. Raises `UnknownNameError`."""
        return self[self._resolve(name)]

    def __contains__(self, name: object) -> bool:
        """Return True if a name, an ending or an alias refers to one value."""
        try:
            return super().__contains__(name) or super().__contains__(self._resolve(str(name)))
        except (UnknownNameError, TypeError):
            return False

    def get(self, name: str, default: Value | None = None) -> Value | None:  # type: ignore[override]
        """Return the value of a name, an ending or an alias, else the default."""
        try:
            return self[name]
        except UnknownNameError:
            return default

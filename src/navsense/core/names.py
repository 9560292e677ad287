"""Names of frames and short names.

The short name `imu` refers to `robot::base::imu` if no other full name ends in `::imu`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from navsense.core.errors import UnknownNameError, Where

Value = TypeVar("Value")

WORLD_FRAME = "world"
"""Name of the world frame, in SDF and in messages."""


def resolve_name(name: str, names: Iterable[str], what: str, *, where: Where | None = None) -> str:
    """Return the entry of `names` that equals `name`, or the only entry that ends in `::name`.

    Raises `UnknownNameError` if no entry or several entries match. `what` is the kind of object for the error message.
    """
    full_names = tuple(dict.fromkeys(names))
    if name in full_names:
        return name
    matches = [full for full in full_names if full.endswith(f"::{name}")]
    if len(matches) == 1:
        return matches[0]
    if not full_names:
        raise UnknownNameError(what, str(name), allowed="there is none", where=where)
    allowed = f"must be one of {', '.join(full_names)}"
    if matches:
        allowed = f"is ambiguous: must be one of {', '.join(matches)}"
    remedy = "write the full name, or an unambiguous ending"
    raise UnknownNameError(what, str(name), allowed=allowed, where=where, remedy=remedy)


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

    def __missing__(self, name: str) -> Value:
        """Return the value of an ending or an alias. Raises `UnknownNameError`."""
        return self[self._resolve(name)]

    def __contains__(self, name: object) -> bool:
        """Return True if a name, an ending or an alias refers to one value."""
        try:
            return super().__contains__(name) or super().__contains__(self._resolve(str(name)))
        except UnknownNameError:
            return False

    def get(self, name: str, default: Value | None = None) -> Value | None:  # type: ignore[override]
        """Return the value of a name, an ending or an alias, else the default."""
        try:
            return self[name]
        except UnknownNameError:
            return default

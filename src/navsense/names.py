"""Full names and their endings: `imu` stands for `robot::base::imu` where no other name ends in `::imu`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from navsense.errors import UnknownNameError, Where

Value = TypeVar("Value")


def full_name(name: str, names: Iterable[str], what: str, *, where: Where | None = None) -> str:
    """Return the one of `names` that is `name`, or that alone ends in `::name`.

    Raises `UnknownNameError` where there is none, or where several end so. `what` is the kind of thing that is named.
    """
    known = tuple(dict.fromkeys(names))
    if name in known:
        return name
    ending = [one for one in known if one.endswith(f"::{name}")]
    if len(ending) == 1:
        return ending[0]
    if not known:
        raise UnknownNameError(what, str(name), allowed="there is none", where=where)
    allowed = f"must be one of {', '.join(known)}"
    if ending:
        allowed = f"is the end of several names: must be one of {', '.join(ending)}"
    remedy = "write the full name, or an ending that only one name has"
    raise UnknownNameError(what, str(name), allowed=allowed, where=where, remedy=remedy)


class Named(dict[str, Value]):
    """A dictionary by full names that also takes their endings, see `full_name`; `what` is the kind of its values.

    `aliases` are other names: alias -> full name.
    """

    def __init__(self, items: Mapping[str, Value], what: str, aliases: Mapping[str, str] | None = None) -> None:
        """Copy the items."""
        super().__init__(items)
        self._what, self._aliases = what, dict(aliases or {})

    def _full(self, name: str) -> str:
        found = full_name(name, (*self, *self._aliases), self._what)
        return found if dict.__contains__(self, found) else self._aliases[found]

    def __missing__(self, name: str) -> Value:
        """Return the value of an ending or an alias. Raises `UnknownNameError`."""
        return self[self._full(name)]

    def __contains__(self, name: object) -> bool:
        """Return whether a name, an ending or an alias stands for one value."""
        try:
            return super().__contains__(name) or super().__contains__(self._full(str(name)))
        except UnknownNameError:
            return False

    def get(self, name: str, default: Value | None = None) -> Value | None:  # type: ignore[override]
        """Return the value of a name, an ending or an alias, else the default."""
        try:
            return self[name]
        except UnknownNameError:
            return default

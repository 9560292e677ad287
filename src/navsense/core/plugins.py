"""Objects that installed packages declare as entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TypeVar

from navsense.core.errors import NavsenseError

Plugin = TypeVar("Plugin")


def load_plugin(
    entry: EntryPoint, kind: type[Plugin], what: str, allowed: str, error_class: type[NavsenseError]
) -> Plugin:
    """Return the object of an entry point.

    kind: the type that the object must have.
    what: noun of the object in the error, such as "stream".
    allowed: what the object must be.

    Raises `error_class`, which names the package, if the package cannot be imported or the object has another type.
    """
    try:
        plugin = entry.load()
        if not isinstance(plugin, kind):
            raise TypeError(f"is {plugin!r}")  # noqa: TRY301
    except (Exception, SystemExit) as error:  # the import of a package can raise anything
        package = entry.dist.name if entry.dist else entry.value
        what, remedy = f"{what} {entry.name!r} of package {package}", f"repair or remove {package}"
        raise error_class(what, str(error), allowed=allowed, remedy=remedy) from error
    return plugin

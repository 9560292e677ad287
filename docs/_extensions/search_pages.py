"""Sphinx extension: leaves pages for developers out of the search, so that it finds the guides first."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

NOT_SEARCHED = ("design-notes/", "reference/requirements")
"""Beginnings of the names of pages."""


def exclude_page(app: Sphinx, _doctree: Any) -> None:
    """Set the metadata `nosearch` of a page for developers (event `doctree-read`)."""
    name = app.env.docname
    if name.startswith(NOT_SEARCHED):
        app.env.metadata[name]["nosearch"] = ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension."""
    app.connect("doctree-read", exclude_page)
    return {"parallel_read_safe": True}

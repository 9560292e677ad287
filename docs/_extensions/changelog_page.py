"""Sphinx extension: writes the changelog with the changes since the last release, for `development/changelog.md`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import changelog


def write_changelog(app: Sphinx) -> None:
    """Write `development/built/changelog.md` (event `builder-inited`). Raises `ExtensionError` for a bad fragment."""
    path = Path(app.srcdir) / "development" / "built" / "changelog.md"
    try:
        text = changelog.format_changelog()
    except ValueError as error:
        raise ExtensionError(f"changelog: {error}") from error
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension."""
    app.connect("builder-inited", write_changelog)
    return {"parallel_read_safe": True}

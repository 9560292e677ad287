"""Sphinx extension: runs the code of the tutorials, and takes the pictures that it writes.

A picture with the path `built/NAME` in a tutorial is the file NAME that the code of this page writes. A page runs again
if its text or the source of navsense changes.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import pages  # noqa: E402
from source_hash import compute_source_hash  # noqa: E402


def make_pictures(app: Sphinx) -> None:
    """Run each tutorial with pictures (event `builder-inited`). Raises `ExtensionError` if its code fails."""
    folder = Path(app.srcdir) / "tutorials"
    built = folder / "built"
    built.mkdir(exist_ok=True)
    source = compute_source_hash(pages.ROOT / "src")
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        names = [Path(target).name for target in pages.list_links(text) if target.startswith("built/")]
        state = hashlib.sha256((source + text).encode()).hexdigest()
        stamp = built / f"{page.stem}.state"
        if not names or (stamp.exists() and stamp.read_text(encoding="utf-8") == state):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            ended = pages.run_page(page, Path(temporary))
            if ended.returncode:
                raise ExtensionError(f"{page.name}: its code fails\n{ended.stderr}")
            for name in names:
                shutil.copy(Path(temporary) / name, built / name)
        stamp.write_text(state, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension."""
    app.connect("builder-inited", make_pictures)
    return {"parallel_read_safe": True}

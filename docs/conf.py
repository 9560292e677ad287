"""Sphinx configuration of the documentation site: `make docs`. The build needs no network."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

from docstrings import TYPE_ALIASES  # noqa: E402

from navsense import __version__  # noqa: E402

project = "navsense"
author = "the navsense authors"
copyright = "the navsense authors, Apache-2.0"  # noqa: A001 - Sphinx requires this name
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "changelog_page", "docstrings", "search_pages", "tutorial_pictures"]
exclude_patterns = ["_extensions", "design-notes/README.md", "development/built"]
smartquotes = False
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in TYPE_ALIASES}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"navsense {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False

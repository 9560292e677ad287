"""Assemble the fragments of changelog.d: print them, or move them into CHANGELOG.md for a release.

Usage: python tools/changelog.py                          print the changes since the last release
       python tools/changelog.py --release 1.2.0          move them into CHANGELOG.md, under this version and date;
                                                        CITATION.cff gets them too
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRAGMENTS = ROOT / "changelog.d"
CHANGELOG = ROOT / "CHANGELOG.md"
CITATION = ROOT / "CITATION.cff"

KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed", "docs": "Documentation"}
"""Kind of a fragment in its name -> heading, in the order of the changelog."""

NO_CHANGES = "See `changelog.d/`."
UNRELEASED = f"## Unreleased\n\n{NO_CHANGES}\n"
"""The section of CHANGELOG.md that a release follows."""


def list_fragments(folder: Path = FRAGMENTS) -> dict[str, list[Path]]:
    """Return the fragments by kind. Raises ValueError for a file with another name."""
    fragments: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        name = re.fullmatch(r"\+[a-z0-9-]+\.(\w+)\.md", path.name)
        if name is None or name[1] not in KINDS:
            raise ValueError(f"{path.name}: must be +WORDS.KIND.md; the kinds are {', '.join(KINDS)}")
        fragments[name[1]].append(path)
    return fragments


def format_changes(fragments: dict[str, list[Path]]) -> str:
    """Return the changes as Markdown: a section for each kind, and an item for each fragment."""
    lines: list[str] = []
    for kind, paths in fragments.items():
        if paths:
            lines += [f"### {KINDS[kind]}", ""]
            for path in paths:
                first_line, *more_lines = path.read_text(encoding="utf-8").strip().splitlines()
                lines += [f"- {first_line}", *(f"  {line}" for line in more_lines)]
            lines.append("")
    return "\n".join(lines)


def format_changelog() -> str:
    """Return CHANGELOG.md with the fragments in the section of unreleased changes. Raises ValueError without it."""
    text = CHANGELOG.read_text(encoding="utf-8")
    if UNRELEASED not in text:
        raise ValueError(f"{CHANGELOG.name} has no section of unreleased changes")
    changes = format_changes(list_fragments(FRAGMENTS)).rstrip() or "No changes."
    return text.replace(UNRELEASED, UNRELEASED.replace(NO_CHANGES, changes))


def release(version: str, date: dt.date) -> None:
    """Move the fragments into CHANGELOG.md, and set version and date in CITATION.cff.

    Raises ValueError for a version that is there, and without fragments.
    """
    text, fragments = CHANGELOG.read_text(encoding="utf-8"), list_fragments(FRAGMENTS)
    if f"## {version} " in text:
        raise ValueError(f"{version} is in {CHANGELOG.name}")
    if UNRELEASED not in text or not any(fragments.values()):
        raise ValueError(f"{CHANGELOG.name} has no section of unreleased changes, or {FRAGMENTS.name} no fragments")
    section = f"{UNRELEASED}\n## {version} ({date.isoformat()})\n\n{format_changes(fragments).rstrip()}\n"
    CHANGELOG.write_text(text.replace(UNRELEASED, section), encoding="utf-8")
    citation = re.sub(r"^date-released: .*\n", "", CITATION.read_text(encoding="utf-8"), flags=re.MULTILINE)
    dated = f"version: {version}\ndate-released: {date.isoformat()}"
    CITATION.write_text(re.sub(r"^version: .*$", dated, citation, flags=re.MULTILINE), encoding="utf-8")
    for paths in fragments.values():
        for path in paths:
            path.unlink()


def main() -> int:
    """Print or move the fragments."""
    parser = argparse.ArgumentParser(description="Assemble the fragments of changelog.d.")
    parser.add_argument("--release", metavar="VERSION", help="move them into CHANGELOG.md under this version")
    version = parser.parse_args().release
    try:
        if version:
            release(version, dt.datetime.now(tz=dt.UTC).date())
        else:
            print(format_changes(list_fragments()))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

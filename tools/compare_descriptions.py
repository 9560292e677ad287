"""Compare the output of `navsense check` and `navsense describe` between two commits, for every world file in folders.

Usage: python tools/compare_descriptions.py OLD [NEW] [--below FOLDER ...] [--save FILE.json]

OLD and NEW are commits. Without NEW the working tree is compared. A file that --save wrote can stand for a commit.
--save writes the output of NEW, or with --no-compare that of OLD. The files are all .sdf, .world, .urdf and .xacro
files below examples and tests, and below the folders of --below. Both commits read the same files.

A short diff is printed for each command whose output or exit code differs. The exit code is 1 if any differs.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from comparison import ROOT, read_results

SCRIPT = "descriptions_for_comparison.py"
FOLDERS = ("examples", "tests")
SHOWN = 12
"""Lines of a diff that are printed."""


def diff(old: str | None, new: str | None) -> list[str]:
    """Return the lines in which two outputs differ. None stands for a command that ran in one commit only."""
    if old is None or new is None:
        return [f"ran in the {'new' if old is None else 'old'} commit only"]
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "old", "new", lineterm="", n=0)
    return list(lines)[2:]


def compare(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the lines that differ, by file and command."""
    names = dict.fromkeys((*old, *new))
    return {name: diff(old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}


def report(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Print the differences and a summary. Return whether there are none and at least one command ran."""
    different = compare(old, new)
    for name, lines in different.items():
        print(f"{name}: DIFFERENT")
        for line in lines[:SHOWN]:
            print(f"    {line}")
        if len(lines) > SHOWN:
            print(f"    and {len(lines) - SHOWN} more lines")
    codes = Counter(text.splitlines()[-1] for text in new.values())
    print(f"{len(different)} of {len({*old, *new})} outputs differ; {dict(sorted(codes.items()))} in the new commit")
    return not different and bool(new)


def main() -> None:
    """Compare two commits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="a commit, or a file that --save wrote")
    parser.add_argument("new", nargs="?", help="the same; the working tree by default")
    parser.add_argument("--below", nargs="+", default=[], metavar="FOLDER", help="further folders of world files")
    parser.add_argument("--save", type=Path, metavar="FILE.json", help="write the output of NEW")
    parser.add_argument("--no-compare", action="store_true", help="save the output of OLD and stop")
    options = parser.parse_args()
    folders = [*(str(ROOT / folder) for folder in FOLDERS), *(str(Path(folder).resolve()) for folder in options.below)]
    old = read_results(SCRIPT, options.old, folders)
    new = old if options.no_compare else read_results(SCRIPT, options.new, folders)
    if options.save:
        options.save.write_text(json.dumps(new), encoding="utf-8")
    sys.exit(0 if options.no_compare else not report(old, new))


if __name__ == "__main__":
    main()

"""Compare the arrays of many runs between two commits, bit by bit.

Usage: python tools/compare_runs.py OLD [NEW] [--save FILE.json] [--only PATTERN ...]

OLD and NEW are commits. Without NEW the working tree is compared. A file that --save wrote can stand for a commit.
--save writes the digests of NEW, or with --no-compare those of OLD. `--only 'fault/*'` selects runs by name.
tools/runs_for_comparison.py defines the runs and has tables for renamed modules and attributes.

One line per run says whether all arrays are equal. The exit code is 1 if any run differs. A run that exists or fails in
one commit only is a difference. The first comparison of a commit compiles its kernels and takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from comparison import read_results

SCRIPT = "runs_for_comparison.py"
SHOWN = 4
"""Names of different arrays that one line shows."""

Digests = Mapping[str, str]
"""Array -> digest; for a run that failed, `error` -> text."""


class Difference(NamedTuple):
    """One run in which the commits differ, and why."""

    run: str
    why: str


def shorten(names: list[str]) -> str:
    """Return the first names and how many others there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def compare_run(old: Digests, new: Digests) -> str:
    """Return why two results of one run differ; empty text if they are equal."""
    if "error" in old or "error" in new:
        if old.keys() == new.keys():
            return ""
        which, text = ("old", old["error"]) if "error" in old else ("new", new["error"])
        return f"fails in the {which} commit only: {text}"
    parts = []
    for what, names in (
        ("different", [name for name in old if name in new and old[name] != new[name]]),
        ("missing in the new commit", [name for name in old if name not in new]),
        ("missing in the old commit", [name for name in new if name not in old]),
    ):
        if names:
            parts.append(f"{len(names)} {what}: {shorten(names)}")
    return "; ".join(parts)


def compare(old: Mapping[str, Digests], new: Mapping[str, Digests]) -> list[Difference]:
    """Return the runs that differ."""
    differences = []
    for run in dict.fromkeys((*old, *new)):
        if run in old and run in new:
            why = compare_run(old[run], new[run])
        else:
            why = f"exists in the {'old' if run in old else 'new'} commit only"
        if why:
            differences.append(Difference(run, why))
    return differences


def report(old: Mapping[str, Digests], new: Mapping[str, Digests]) -> bool:
    """Print one line per run and a summary. Return whether all runs are equal."""
    differences = {difference.run: difference.why for difference in compare(old, new)}
    arrays = failed = 0
    for run in dict.fromkeys((*old, *new)):
        result = new.get(run, old.get(run, {}))
        if "error" in result:
            failed += 1
            count = "failed"
        else:
            arrays += len(result)
            count = f"{len(result)} arrays"
        print(f"{run}: {count}: {'DIFFERENT: ' + differences[run] if run in differences else 'same'}")
    print(
        f"{len(differences)} of {len({*old, *new})} runs differ; {arrays} arrays; {failed} runs fail in the new commit"
    )
    if not arrays:
        print("no array was compared")
    return not differences and arrays > 0


def main() -> None:
    """Compare two commits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="a commit, or a file that --save wrote")
    parser.add_argument("new", nargs="?", help="the same; the working tree by default")
    parser.add_argument("--save", type=Path, metavar="FILE.json", help="write the digests of NEW")
    parser.add_argument("--no-compare", action="store_true", help="save the digests of OLD and stop")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="runs to compare, such as 'fault/*'")
    options = parser.parse_args()
    old = read_results(SCRIPT, options.old, options.only)
    new = old if options.no_compare else read_results(SCRIPT, options.new, options.only)
    if options.save:
        options.save.write_text(json.dumps(new), encoding="utf-8")
    sys.exit(0 if options.no_compare else not report(old, new))


if __name__ == "__main__":
    main()

"""Count the lines of code of a package, per folder and in total.

Usage: python tools/code_lines.py [--commit COMMIT] [--package src/navsense]

A line counts if it holds at least one token that is neither a comment nor white space. Lines of a string that is a
statement of its own do not count: the docstrings of modules, classes and functions, and the text below an attribute.
Blank lines inside any other multi-line string do not count; its other lines do. Python's tokenizer and parser decide.

`--commit` counts the files of a git commit. Without it the script counts the files of the working tree.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/navsense"

NO_CODE = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
)
"""Types of tokens that are no code."""


def string_statement_lines(tree: ast.Module) -> set[int]:
    """Return the line numbers of strings that are statements of their own."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def count_code_lines(source: str) -> int:
    """Return the number of lines of code of a module."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    filled = {number for number, line in enumerate(io.StringIO(source), 1) if line.strip()}
    return len((lines & filled) - string_statement_lines(ast.parse(source)))


def read_working_tree(package: str) -> dict[str, str]:
    """Return the sources of the working tree by path inside the package."""
    folder = ROOT / package
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in folder.rglob("*.py")}


def read_commit(commit: str, package: str) -> dict[str, str]:
    """Return the sources of a git commit by path inside the package."""
    command = ("git", "-C", str(ROOT), "archive", commit, package)
    archive = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    sources = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() and member.name.endswith(".py") else None
            if file is not None:
                sources[PurePosixPath(member.name).relative_to(package).as_posix()] = file.read().decode("utf-8")
    return sources


def count_per_folder(sources: Mapping[str, str]) -> Counter[str]:
    """Return the lines of code per top-level folder. The folder of modules beside the folders is `.`."""
    counts: Counter[str] = Counter()
    for path, source in sources.items():
        parts = PurePosixPath(path).parts
        counts[parts[0] if len(parts) > 1 else "."] += count_code_lines(source)
    return counts


def main() -> None:
    """Print one line per folder, then the total."""
    parser = argparse.ArgumentParser(description="Count the lines of code of a package.")
    parser.add_argument("--commit", help="count the files of this git commit")
    parser.add_argument("--package", default=PACKAGE, help=f"folder of the package (default: {PACKAGE})")
    options = parser.parse_args()
    sources = read_commit(options.commit, options.package) if options.commit else read_working_tree(options.package)
    counts = count_per_folder(sources)
    for folder, count in sorted(counts.items()):
        print(f"{folder:20s} {count:7,d}")
    print(f"{'total':20s} {counts.total():7,d}")


if __name__ == "__main__":
    main()

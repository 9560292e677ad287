"""Write docs/reference/requirements.md: every row of docs/requirements.toml, with the tests that name it.

A test names rows by `@pytest.mark.requirement("MAG-1", "DVW-5:course_gnd")`: on a function, a class, a parameter set
or, as `pytestmark`, on a whole file. The tests are read, not run, so the rows are plain strings.

Usage: python tools/requirements.py [--check]      --check writes nothing; exit code 1 where the page is out of date
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "requirements.toml"
PAGE = ROOT / "docs" / "reference" / "requirements.md"

HEAD = """\
# Requirements and their tests

<!-- Written by `make requirements` from `docs/requirements.toml` and the tests; do not edit. -->

A part after a colon is one statement of a row that bundles several. An open row names the statement that no test
proves yet.
"""


@dataclass(frozen=True)
class Row:
    """One requirement: id, source, a line of text, and the reason if no test proves it."""

    id: str
    source: str
    text: str
    open: str = ""


@dataclass(frozen=True)
class Claim:
    """One row named by one test. `row` may have a part after a colon; `test` is `path::name` or a path."""

    row: str
    test: str
    line: int

    @property
    def base(self) -> str:
        """The id of the row without its part."""
        return self.row.partition(":")[0]


class UnreadableMarkError(Exception):
    """A marker whose rows are not plain strings."""


def read_table(path: Path = TABLE) -> tuple[dict[str, str], dict[str, list[Row]]]:
    """Return the sources by key, and the rows by section title, in the order of the file."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    sources: dict[str, str] = data.pop("sources")
    sections = {
        section.pop("title"): [
            Row(name, entry["source"], entry["text"], entry.get("open", "")) for name, entry in section.items()
        ]
        for section in data.values()
    }
    return sources, sections


def find_named_rows(node: ast.AST, file: str) -> Iterator[tuple[str, int]]:
    """Yield (row, line) for every `....mark.requirement(...)` within a node."""
    for call in ast.walk(node):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        owner = call.func.value
        if call.func.attr != "requirement" or not (isinstance(owner, ast.Attribute) and owner.attr == "mark"):
            continue
        for argument in call.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise UnreadableMarkError(f"{file}:{call.lineno} requirement: rows must be plain strings")
            yield argument.value, call.lineno


def find_claims(tree: ast.Module, file: str) -> Iterator[Claim]:
    """Yield the claims of a test file, each with its test, class or file."""

    def visit(body: list[ast.stmt], prefix: str) -> Iterator[Claim]:
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                inner = f"{prefix}::{statement.name}"
                for decorator in statement.decorator_list:
                    yield from (Claim(row, inner, line) for row, line in find_named_rows(decorator, file))
                yield from visit(statement.body, inner)
            elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in statement.decorator_list:
                    named_rows = find_named_rows(decorator, file)
                    yield from (Claim(row, f"{prefix}::{statement.name}", line) for row, line in named_rows)
            else:
                yield from (Claim(row, prefix, line) for row, line in find_named_rows(statement, file))

    return visit(tree.body, file)


@cache
def find_all_claims(tests: Path = ROOT / "tests") -> tuple[Claim, ...]:
    """Return the claims of all test files, sorted by file."""
    claims: list[Claim] = []
    for path in sorted(tests.rglob("*.py")):
        file = path.relative_to(tests.parent).as_posix()
        claims.extend(find_claims(ast.parse(path.read_text(encoding="utf-8"), filename=file), file))
    return tuple(claims)


def format_tests(claims: list[Claim]) -> str:
    """Return the tests of one row as a table cell: each once, with its parts."""
    parts: dict[str, list[str]] = {}
    for claim in claims:
        here = parts.setdefault(claim.test, [])
        part = claim.row.partition(":")[2]
        if part and part not in here:
            here.append(part)
    return "<br>".join(
        f"`{test}`" + (f" ({', '.join(names)})" if names else "") for test, names in sorted(parts.items())
    )


def page() -> str:
    """Return the page."""
    sources, sections = read_table()
    by_row: dict[str, list[Claim]] = {}
    for claim in find_all_claims():
        by_row.setdefault(claim.base, []).append(claim)
    rows = [row for section in sections.values() for row in section]
    lines = [HEAD, f"Rows: {len(rows)}; open: {sum(bool(row.open) for row in rows)}.", "", "Sources:", ""]
    lines += [f"- {key}: {text}" for key, text in sources.items()]
    for title, section in sections.items():
        lines += ["", f"## {title}", "", "| row | requirement | source | open | tests |", "|---|---|---|---|---|"]
        for row in section:
            cell = format_tests(by_row.get(row.id, [])) or "none"
            lines.append(f"| {row.id} | {row.text} | {row.source.replace(' ', ', ')} | {row.open} | {cell} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description="Write docs/reference/requirements.md from its table and the tests.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is out of date")
    text = page()
    if parser.parse_args().check:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != text:
            print("docs/reference/requirements.md is out of date: run `make requirements`", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

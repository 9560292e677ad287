"""Write the golden descriptions and error texts of world files. The tests compare later versions with these texts.

    python tools/golden_sdf.py        writes tests/golden/sdf.json

Run it after an intended change of a description or an error text, and name the change in the changelog. The file holds

    descriptions: file below tests or examples -> the first digits of the SHA-256 of its description
    errors: "LINE TAG ATTRIBUTE VALUE" -> the problems of tests/golden/own_elements.sdf with this one value replaced
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from navsense import sdf
from navsense.core.errors import NavsenseError, SdfError
from navsense.description import describe

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "sdf.json"
OWN_ELEMENTS = ROOT / "tests" / "golden" / "own_elements.sdf"
FOLDERS = ("examples", "tests/worlds", "tests/golden")
SUFFIXES = (".sdf", ".world", ".urdf")

VALUES = ("-1e200", "word")
"""Values that replace a value: a number beyond every limit, and a text."""


def list_files() -> list[Path]:
    """Return the world files of the repository."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    return sorted(path for path in paths if path.suffix in SUFFIXES)


def list_problems(path: Path) -> list[str]:
    """Return the problems of a file, without its folder and the home folder."""
    try:
        sdf.load(path)
    except NavsenseError as error:
        problems = error.problems if isinstance(error, SdfError) else (error,)
        return [remove_folders(str(problem), path) for problem in problems]
    return []


def remove_folders(text: str, path: Path) -> str:
    """Return a text without the folder of a file. The home folder becomes `~`."""
    return text.replace(f"{path.parent}/", "").replace(f"{Path.home()}/", "~/")


def make_description(path: Path) -> str:
    """Return the description of a file, or its problems, without its folder."""
    if problems := list_problems(path):
        return "\n".join(problems)
    return remove_folders("\n".join(describe(sdf.load(path))), path)


def list_variants(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every variant of a file with one value replaced."""
    for number, line in enumerate(text.splitlines(), start=1):
        if number < 4:
            continue
        start = sum(len(line) + 1 for line in text.splitlines()[: number - 1])
        spots = [(m[1], *m.span(2)) for m in re.finditer(r"<([\w:]+)[^<>]*>([^<>]+)</", line)]
        spots += [(f"{m[1]}=", *m.span(2)) for m in re.finditer(r'([\w:]+)="([^"]*)"', line)]
        for what, begin, end in spots:
            for value in VALUES:
                yield f"{number} {what} {value}", text[: start + begin] + value + text[start + end :]


def make_errors() -> dict[str, list[str]]:
    """Return the problems of each variant of the file of own elements that has problems."""
    problems_by_file = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dive.sdf"
        for name, text in list_variants(OWN_ELEMENTS.read_text(encoding="utf-8")):
            path.write_text(text, encoding="utf-8")
            if problems := list_problems(path):
                problems_by_file[name] = problems
    return problems_by_file


def make_golden() -> dict[str, dict[str, object]]:
    """Return the descriptions and the errors."""
    descriptions = {
        str(path.relative_to(ROOT)): hashlib.sha256(make_description(path).encode()).hexdigest()[:16]
        for path in list_files()
    }
    return {"descriptions": dict(descriptions), "errors": dict(make_errors())}


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(make_golden(), indent=0, ensure_ascii=False) + "\n", encoding="utf-8")

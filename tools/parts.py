"""Write docs/reference/parts.md: every part of the catalogue, each value as printed and in SI, with its source.

Usage: python tools/parts.py [--check]      --check writes nothing; exit code 1 if the page is out of date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from navsense.sensors import catalogue
from navsense.sensors.catalogue import DatasheetEntry, Part

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "parts.md"

HEAD = """\
# Parts

<!-- Written by `python tools/parts.py` from `src/navsense/sensors/catalogue/*.toml`; do not edit. -->

Values are in the unit of the source, and in SI. A value that a source does not print is absent: no value is derived or
assumed. *Quoted* sources are works that quote the datasheet. All other sources were read directly.
`navsense.sensors.catalogue` defines the values.
"""


def format_number(x: float) -> str:
    """Return a number in the shortest form with five digits."""
    return f"{x:.5g}"


def format_numbers(values: tuple[float, ...]) -> str:
    """Return the numbers of the axes, or one number if they are equal."""
    return ", ".join(format_number(x) for x in (values[:1] if len(set(values)) == 1 else values))


def format_row(name: str, figure: DatasheetEntry, key: str) -> str:
    """Return one row of the table of a part."""
    remarks = ", ".join(filter(None, (figure.meaning, figure.condition)))
    printed = f"{format_numbers(figure.printed)} {figure.printed_unit}"
    unit = "" if figure.unit == "1" else f" {figure.unit}"
    return f"| {name} | {printed} | {format_numbers(figure.values)}{unit} | {remarks} | {key} |"


def format_section(part: Part) -> Iterator[str]:
    """Yield the lines of one part."""
    yield f"\n## {part.name}\n"
    transducer = f", {part.transducer.replace('_', ' ')}" if part.transducer else ""
    yield f"{part.part}, {part.manufacturer}: {part.sensor.replace('_', ' ')}, {part.grade} grade{transducer}.\n"
    if part.notes:
        yield f"{part.notes}\n"
    keys = {source: key for key, source in part.sources.items()}
    for channel, figures in part.entries.items():
        yield f"| {channel} | printed | SI | | source |"
        yield "|---|---|---|---|---|"
        yield from (format_row(name, figure, keys[figure.source]) for name, figure in figures.items())
        yield ""
    for key, source in part.sources.items():
        quoted = " *Quoted.*" if source.reading == "quoted" else ""
        yield f"- {key}: {source.citation}. <{source.address}>, read {source.accessed}.{quoted}"


def page() -> str:
    """Return the page."""
    parts = [catalogue.load_part(name) for name in catalogue.list_parts()]
    lines = [HEAD, "| name | part | sensor | grade | values |", "|---|---|---|---|---|"]
    for part in parts:
        count = sum(len(figures) for figures in part.entries.values())
        lines.append(f"| {part.name} | {part.part} | {part.sensor} | {part.grade} | {count} |")
    for part in parts:
        lines.extend(format_section(part))
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description="Write docs/reference/parts.md from the catalogue of parts.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is out of date")
    text = page()
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            print("docs/reference/parts.md is out of date: run `python tools/parts.py`", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Output of `navsense check` and `navsense describe`, which tools/compare_descriptions.py compares between commits.

Usage: python tools/descriptions_for_comparison.py SOURCE OUTPUT FOLDER [FOLDER ...]

SOURCE is the folder from which navsense must come. OUTPUT receives {"FILE: COMMAND": text} as JSON; the text ends with
the exit code. The commands run in this process through `navsense.cli.main`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from comparison import check_source

ROOT = Path(__file__).resolve().parent.parent

SUFFIXES = (".sdf", ".world", ".urdf", ".xacro")

COMMANDS = (
    ("check",),
    ("describe",),
    ("check", "--skip-missing"),
    ("describe", "--skip-missing", "--fidelity", "classic"),
)


def list_files(folders: list[str]) -> Iterator[Path]:
    """Yield the world files below folders, each once."""
    paths = {path.resolve() for folder in folders for path in Path(folder).rglob("*") if path.suffix in SUFFIXES}
    yield from sorted(path for path in paths if path.is_file())


def run_command(command: tuple[str, ...], path: Path) -> str:
    """Return what a command prints, and its exit code."""
    cli = importlib.import_module("navsense.cli")
    source = Path(str(cli.__file__))
    older = source.name == "cli.py" and "--skip-missing" not in source.read_text(encoding="utf-8")
    options = ["--without-missing" if older and argument == "--skip-missing" else argument for argument in command[1:]]
    main, arguments, output, code = cli.main, sys.argv, io.StringIO(), 0
    sys.argv = ["navsense", command[0], str(path), *options]
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception:  # noqa: BLE001 - a crash is a result, too
        output.write(traceback.format_exc())
        code = 1
    finally:
        sys.argv = arguments
    return f"{output.getvalue().replace(str(ROOT), 'ROOT')}exit code {code}\n"


def main() -> None:
    """Run the commands for each file and write their output."""
    source, output, *folders = sys.argv[1:]
    check_source(source)
    outputs = {}
    for path in list_files(folders):
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for command in COMMANDS:
            outputs[f"{name}: {' '.join(command)}"] = run_command(command, path).replace(source, "SOURCE")
    Path(output).write_text(json.dumps(outputs), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Sheets that pictures are drawn on, and the files that they become. Needs matplotlib, the extra `picture`."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from navsense import atomic
from navsense.errors import NavsenseError, Where

SUFFIXES = (".png", ".svg", ".pdf")
"""What pictures are written as."""

Kind = type[NavsenseError]
"""The class of error that a picture's owner raises."""


def require_matplotlib(kind: Kind) -> None:
    """Raise an error of this class where matplotlib is not there."""
    try:
        import matplotlib.figure  # noqa: F401 - whether it can be
    except ImportError as error:
        raise kind("a picture needs matplotlib", remedy="pip install 'navsense[picture]'") from error


def check_figure_path(path: str | os.PathLike[str], kind: Kind) -> Path:
    """Return where a picture goes. Raises an error of this class for another suffix."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise kind("picture", str(path), allowed=f"must end in {', '.join(SUFFIXES)}")
    return target


def make_figure(width: float, height: float, kind: Kind) -> Any:
    """Return an empty sheet of this size (in). Raises an error of this class where matplotlib is not there."""
    require_matplotlib(kind)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, target: Path, kind: Kind) -> None:
    """Write a sheet. Raises an error of this class where it cannot be written."""
    try:
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=110, format=target.suffix.lower()[1:])
        with atomic.replace_file(target) as part:
            part.write_bytes(drawn.getvalue())
    except OSError as error:
        remedy = "choose a folder that is there and may be written to"
        raise kind("picture", error.strerror or str(error), where=Where(str(target)), remedy=remedy) from error

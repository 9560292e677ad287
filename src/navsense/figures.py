"""Common parts of all figures: units of their axes, and files that matplotlib writes (extra `picture`)."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from navsense.core import atomic
from navsense.core.errors import NavsenseError, Where

SUFFIXES = (".png", ".svg", ".pdf")
"""Formats of pictures."""

KILOMETRES_FROM = 20e3
"""Size (m) from which lengths are drawn in kilometres."""

ErrorType = type[NavsenseError]
"""The class of error that the caller raises."""


@dataclass(frozen=True)
class Scale:
    """Unit of an axis, with the factor from SI units."""

    factor: float
    unit: str


def choose_length_scale(size: float) -> Scale:
    """Return the unit for lengths up to a size (m)."""
    return Scale(1e-3, "km") if size >= KILOMETRES_FROM else Scale(1.0, "m")


def choose_time_scale(duration: float) -> Scale:
    """Return the unit for times up to a duration (s)."""
    for limit, seconds, unit in ((4 * 86400.0, 86400.0, "d"), (3 * 3600.0, 3600.0, "h"), (300.0, 60.0, "min")):
        if duration > limit:
            return Scale(1.0 / seconds, unit)
    return Scale(1.0, "s")


def require_matplotlib(error_type: ErrorType) -> None:
    """Raise an error of this class if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401 - only whether it is installed
    except ImportError as error:
        raise error_type("a picture needs matplotlib", remedy="pip install 'navsense[picture]'") from error


def check_figure_path(path: str | os.PathLike[str], error_type: ErrorType) -> Path:
    """Return the path of a picture. Raises an error of this class for another suffix."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise error_type("picture", str(path), allowed=f"must end in {', '.join(SUFFIXES)}")
    return target


def make_figure(width: float, height: float, error_type: ErrorType) -> Any:
    """Return an empty figure of this size (in). Raises an error of this class if matplotlib is not installed."""
    require_matplotlib(error_type)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, target: Path, error_type: ErrorType) -> None:
    """Write a figure to a file. Raises an error of this class if that fails."""
    try:
        content = io.BytesIO()
        figure.savefig(content, dpi=110, format=target.suffix.lower()[1:])
        with atomic.replace_file(target) as part:
            part.write_bytes(content.getvalue())
    except OSError as error:
        remedy = "choose a folder that exists and is writable"
        raise error_type("picture", error.strerror or str(error), where=Where(str(target)), remedy=remedy) from error

"""Style of all charts: colours, fonts and units of their axes, and files that matplotlib writes (extra `picture`).

The report writes its SVG itself. Matplotlib draws the other pictures. Both take their colours from `LIGHT` and `DARK`
and from the colour ramps below. Line colours are those of Okabe and Ito, which people with colour vision deficiencies
distinguish.

Source: M. Okabe, K. Ito, Color Universal Design, J*Fly Data Depository, 2002 (revised 2008).
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from navsense.core import atomic
from navsense.core.errors import NavsenseError, Where
from navsense.core.typing import BoolArray, FloatArray, Times

SUFFIXES = (".png", ".svg", ".pdf")
"""Formats of pictures."""

OKABE_ITO: Mapping[str, str] = {
    "black": "#000000", "orange": "#e69f00", "sky blue": "#56b4e9", "bluish green": "#009e73",
    "yellow": "#f0e442", "blue": "#0072b2", "vermilion": "#d55e00", "reddish purple": "#cc79a7",
}  # fmt: skip
"""Colours of Okabe and Ito by name."""


@dataclass(frozen=True)
class Palette:
    """Colours of a chart.

    ink, dim: of text, and of text that matters less
    page, card: backgrounds of a page and of a figure
    grid, frame: of grids and of frames
    c0, c1, c2, c3: of lines
    good, bad: of valid and of invalid data
    water, earth: of water and its surface, and of the ground
    alert: of text that reports a failure
    """

    ink: str
    dim: str
    page: str
    card: str
    grid: str
    frame: str
    c0: str
    c1: str
    c2: str
    c3: str
    good: str
    bad: str
    water: str
    earth: str
    alert: str

    @property
    def lines(self) -> tuple[str, ...]:
        """Colours of lines, in order."""
        return (self.c0, self.c1, self.c2, self.c3)

    def format_css(self) -> str:
        """Return the colours as CSS variables."""
        return "".join(f"--{field.name}:{getattr(self, field.name)};" for field in fields(self))


LIGHT = Palette(
    ink="#1b2530", dim="#55616d", page="#f4f6f8", card="#ffffff", grid="#e3e7eb", frame="#98a3ae",
    c0=OKABE_ITO["blue"], c1=OKABE_ITO["vermilion"], c2=OKABE_ITO["bluish green"], c3=OKABE_ITO["reddish purple"],
    good=OKABE_ITO["bluish green"], bad=OKABE_ITO["vermilion"], water=OKABE_ITO["sky blue"], earth="#b9a88c",
    alert="#a63d00",
)  # fmt: skip
"""Colours on a light background."""

DARK = Palette(
    ink="#e4e9ee", dim="#a3afbb", page="#14181d", card="#1d2329", grid="#323b44", frame="#65717d",
    c0=OKABE_ITO["sky blue"], c1=OKABE_ITO["orange"], c2=OKABE_ITO["bluish green"], c3=OKABE_ITO["reddish purple"],
    good="#2fa37f", bad="#f0813a", water="#3f8fc4", earth="#7d6c50",
    alert="#ff9d66",
)  # fmt: skip
"""Colours on a dark background."""

TIME_COLOURS = ("#3b1480", "#8f2a8c", "#d64d62", "#f58d3d", "#f2d94a")
"""Colours of time, from start to end."""

MAGNITUDE_COLOURS = ("#2f1a6b", "#2b5c9e", "#239b96", "#7bc96f", "#f6e26b")
"""Colours of a magnitude, from the minimum to the maximum."""

SIGNED_COLOURS = ("#215a9c", "#7fb0d8", "#f3f1ec", "#e6a06d", "#a63a1c")
"""Colours of a signed value, from the minimum through 0 to the maximum."""

UNDERWATER_COLOURS = ("#24466b", "#3f6f94", "#74a3b8", "#aecbd0", "#e6efe6")
"""Colours of ground under water, from the lowest to the highest."""

DRY_COLOURS = ("#5f7a5b", "#9aa87c", "#cfc49c", "#b89f82", "#efe8dd")
"""Colours of dry ground, from the lowest to the highest."""

FONTS = ("DejaVu Sans", "Helvetica", "Arial", "sans-serif")
"""Fonts of charts, the preferred one first."""

DPI = 150
"""Dots per inch of PNG files."""

MIN_GAP_STEPS = 5.0
"""Median steps of a series above which a gap breaks the line."""

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


def insert_gaps(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a series with a row of NaN in each gap of x: a step above `MIN_GAP_STEPS` median steps.

    x: (n,), increasing. y: (n,), or (n, k) for several lines.
    """
    if x.size < 3:
        return x, y
    steps = np.diff(x)
    if not steps.max() > MIN_GAP_STEPS * steps.min():
        return x, y
    rows = np.flatnonzero(steps > MIN_GAP_STEPS * np.median(steps)) + 1
    return np.insert(x, rows, 0.5 * (x[rows - 1] + x[rows])), np.insert(y, rows, np.nan, axis=0)


def find_intervals(mask: BoolArray) -> list[slice]:
    """Return the intervals of consecutive rows in which a mask (n,) is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))).tolist()
    return [slice(first, stop) for first, stop in zip(edges[::2], edges[1::2], strict=True)]


def find_time_spans(time: Times, mask: BoolArray) -> tuple[Times, Times]:
    """Return starts and ends (k,) s of the spans in which a mask (n,) is true; each row lasts until the next one."""
    rows = find_intervals(mask)
    step = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    ends = np.append(time, time[-1:] + step)
    return time[[row.start for row in rows]], ends[[row.stop for row in rows]]


BACKEND = "MPLBACKEND"
"""Environment variable with the backend of matplotlib. Files need no backend."""


def require_matplotlib(error_type: ErrorType) -> None:
    """Raise an error of this class if matplotlib is not installed."""
    try:
        if "matplotlib" in sys.modules:
            import matplotlib.figure  # noqa: F401 - only whether it is installed
        else:
            _import_matplotlib()
    except ImportError as error:
        raise error_type("a picture needs matplotlib", remedy="pip install 'navsense[picture]'") from error


def _import_matplotlib() -> None:
    """Import matplotlib for the first time.

    Its import fails for a backend that this environment does not have. Jupyter sets one for its kernel, and the
    commands that a notebook starts inherit it. Messages about matplotlib's own folders are not shown.
    """
    backend, logger = os.environ.pop(BACKEND, ""), logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(max(level, logging.ERROR))
    try:
        import matplotlib.figure
    finally:
        logger.setLevel(level)
        if backend:
            os.environ[BACKEND] = backend
    if backend:
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = backend


def check_figure_path(path: str | os.PathLike[str], error_type: ErrorType) -> Path:
    """Return the path of a picture. Raises an error of this class for another suffix."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise error_type("picture", str(path), allowed=f"must end in {', '.join(SUFFIXES)}")
    return target


def make_colour_map(name: str, colours: tuple[str, ...]) -> Any:
    """Return a colour map of matplotlib, evenly between colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, colours)


@contextmanager
def use_style(error_type: ErrorType = NavsenseError) -> Iterator[None]:
    """Draw and save figures of matplotlib in the style of navsense inside this context.

    The files have no date and no random names, so that the same figure gives the same bytes. Raises an error of this
    class if matplotlib is not installed.
    """
    require_matplotlib(error_type)
    import matplotlib as mpl
    from matplotlib.rcsetup import cycler

    with mpl.rc_context(
        {
            "font.family": "sans-serif",
            "font.sans-serif": list(FONTS),
            "font.size": 9.0,
            "axes.titlesize": 10.0,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.labelsize": 9.0,
            "xtick.labelsize": 8.0,
            "ytick.labelsize": 8.0,
            "legend.fontsize": 8.0,
            "text.color": LIGHT.ink,
            "axes.labelcolor": LIGHT.ink,
            "axes.edgecolor": LIGHT.frame,
            "xtick.color": LIGHT.frame,
            "ytick.color": LIGHT.frame,
            "xtick.labelcolor": LIGHT.ink,
            "ytick.labelcolor": LIGHT.ink,
            "grid.color": LIGHT.grid,
            "grid.linewidth": 0.7,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.prop_cycle": cycler("color", LIGHT.lines),
            "lines.linewidth": 1.4,
            "legend.frameon": False,
            "svg.hashsalt": "navsense",
        }
    ):
        yield


def make_figure(width: float, height: float, error_type: ErrorType = NavsenseError) -> Any:
    """Return an empty figure of this size (in). Raises an error of this class if matplotlib is not installed."""
    require_matplotlib(error_type)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, target: Path, error_type: ErrorType = NavsenseError) -> None:
    """Write a figure to a file. Raises an error of this class if that fails."""
    try:
        content = io.BytesIO()
        suffix = target.suffix.lower()[1:]
        date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
        figure.savefig(content, dpi=DPI, format=suffix, metadata=date)
        with atomic.replace_file(target) as part:
            part.write_bytes(content.getvalue())
    except OSError as error:
        remedy = "choose a folder that exists and is writable"
        raise error_type("picture", error.strerror or str(error), where=Where(str(target)), remedy=remedy) from error

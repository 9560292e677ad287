"""How every example ends: a table, and a picture where matplotlib is installed, in the folder `out`.

    outputs.write("climb", {"time (s)": time, "error (m)": error}, lambda axes: axes.plot(time, error))

Writes `out/climb.csv` and `out/climb.png`, and prints both paths. The folder is in the current directory.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from navsense import figures

FOLDER = Path("out")

NO_PICTURE = "no picture: matplotlib is not installed; pip install 'navsense[picture]'"


def write(
    name: str,
    columns: Mapping[str, Sequence[Any] | Any],
    draw: Callable[[Any], object] | None = None,
    size: tuple[float, float] = (7.0, 3.6),
) -> None:
    """Write columns of one length as a table, and what `draw` draws on axes of matplotlib as a picture of a size (in).

    Without matplotlib there is no picture, and a line names the extra to install.
    """
    FOLDER.mkdir(exist_ok=True)
    table = FOLDER / f"{name}.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*(list(column) for column in columns.values()), strict=True))
    print(f"wrote {table}: {', '.join(columns)}")
    if draw is not None:
        write_picture(FOLDER / f"{name}.png", lambda figure: draw(figure.add_subplot()), size)


def write_picture(picture: Path, draw: Callable[[Any], object], size: tuple[float, float]) -> None:
    """Write what `draw` draws on a figure of matplotlib; without matplotlib, print what to install."""
    if not has_matplotlib():
        print(NO_PICTURE)
        return
    picture.parent.mkdir(parents=True, exist_ok=True)
    with figures.use_style():
        figure = figures.make_figure(*size)
        draw(figure)
        figures.save_figure(figure, picture)
    print(f"wrote {picture}")


def has_matplotlib() -> bool:
    """Return True if matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401 - only whether it is installed
    except ImportError:
        return False
    return True


def label(axes: Any, title: str, x: str, y: str) -> None:
    """Set the title, the axis labels with their units, and a legend above the axes, where it covers no line."""
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.1)

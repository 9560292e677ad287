"""Plots of readings against time (extra `picture`): an axis for each array, in the style of `figures`.

Each component is a line, the ideal values are dashed. Invalid values and missing samples are gaps, and spans of
injected faults are shaded. An array with many components, such as a current profile, is an image.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from navsense.core.errors import NavsenseError
from navsense.core.panels import Panel
from navsense.core.units import MAGNETIC_FIELD_UNITS
from navsense.figures import (
    DPI,
    LIGHT,
    MAGNITUDE_COLOURS,
    OKABE_ITO,
    Scale,
    choose_time_scale,
    find_time_spans,
    insert_gaps,
    make_colour_map,
    make_figure,
    use_style,
)

MAX_LINES = 9
"""Largest number of components of an array that are lines."""

MAX_IMAGE_COLUMNS = 2000
"""Largest number of instants of an image, evenly spaced."""

MARKERS_UP_TO, THIN_FROM = 100, 2000
"""Largest number of samples that have markers, and smallest number that has thin lines."""

MANY_COLOURS = tuple(colour for name, colour in OKABE_ITO.items() if name != "yellow")
"""Colours of more than four components."""

IDEAL_STYLE: Mapping[str, Any] = {"linestyle": (0, (4, 6)), "color": LIGHT.ink, "linewidth": 0.8}
"""Style of ideal values: dashes with longer gaps, which show the reading below that they equal."""

PANELS_PER_COLUMN = 4
"""Largest number of axes in one column; more axes are in two columns."""

WIDTHS, PANEL_HEIGHT = (8.0, 12.0), 1.9
"""Width of a figure with one and with two columns, and height of an axis (in)."""

DISPLAY_UNITS: Mapping[str, Scale] = {"T": Scale(1.0 / MAGNETIC_FIELD_UNITS["uT"], "µT"), "1": Scale(1.0, "")}
"""Unit of an array -> unit in a figure."""


def draw_panels(panels: Sequence[Panel], title: str) -> Any:
    """Return a figure of matplotlib with an axis for each panel.

    Raises `NavsenseError` if there is no panel, or matplotlib is not installed.
    """
    if not panels:
        raise NavsenseError("plot", title, allowed="has no array with a sample")
    columns = 1 if len(panels) <= PANELS_PER_COLUMN else 2
    rows = -(-len(panels) // columns)
    times = [panel.ideal_time for panel in panels if panel.ideal_time.size]
    scale = choose_time_scale(max((float(time[-1] - time[0]) for time in times), default=0.0))
    with use_style():
        figure = make_figure(WIDTHS[columns - 1], 0.7 + PANEL_HEIGHT * rows)
        figure.suptitle(title, x=0.01, ha="left", weight="bold")
        first = None
        for number, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, number + 1, sharex=first)
            first = first or axes
            _draw_panel(figure, axes, panel, scale)
            if number >= len(panels) - columns:
                axes.set_xlabel(f"time ({scale.unit})")
            else:
                axes.tick_params(labelbottom=False)
        figure.canvas.draw()  # the layout, while the style is active
    figure._repr_png_ = partial(_to_png, figure)
    return figure


def _to_png(figure: Any) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, dpi=DPI, format="png")
    return content.getvalue()


def _draw_panel(figure: Any, axes: Any, panel: Panel, scale: Scale) -> None:
    unit = DISPLAY_UNITS.get(panel.unit, Scale(1.0, panel.unit))
    label = panel.name.replace("_", " ") + (f"\n({unit.unit})" if unit.unit else "")
    axes.set_title(panel.title)
    if panel.values.shape[1] > MAX_LINES:
        _draw_image(figure, axes, panel, scale, label)
        return
    axes.set_ylabel(label)
    time, values = insert_gaps(panel.time, panel.values)
    marker, width = "." if panel.time.size <= MARKERS_UP_TO else "", 0.7 if panel.time.size > THIN_FROM else 1.4
    colours = LIGHT.lines if len(panel.labels) <= len(LIGHT.lines) else MANY_COLOURS
    for name, colour, column in zip(panel.labels, cycle(colours), values.T, strict=False):
        axes.plot(
            scale.factor * time,
            unit.factor * column,
            marker=marker,
            color=colour,
            linewidth=width,
            label=name or "measured",
        )
    if panel.ideal is not None:
        axes.plot(scale.factor * panel.ideal_time, unit.factor * panel.ideal, zorder=3, **IDEAL_STYLE)
        axes.plot([], [], label="ideal", **IDEAL_STYLE)
    for kind, mask in panel.faults.items():
        starts, ends = find_time_spans(panel.ideal_time, mask)
        edges = scale.factor * np.stack((starts, ends, np.full(starts.size, np.nan)), axis=-1).ravel()
        axes.fill_between(  # one artist for any number of spans, as high as the axes
            edges,
            0.0,
            1.0,
            transform=axes.get_xaxis_transform(),
            color=LIGHT.bad,
            alpha=0.2,
            linewidth=0.0,
            label=f"fault: {kind.replace('_', ' ')}",
        )
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_image(figure: Any, axes: Any, panel: Panel, scale: Scale, label: str) -> None:
    """Draw the components one above the other against time, with colours."""
    every = slice(None, None, max(1, -(-panel.time.size // MAX_IMAGE_COLUMNS)))
    time, values = scale.factor * panel.time[every], panel.values[every].T
    if panel.bands:
        values = values.reshape(-1, len(panel.bands), time.size).swapaxes(0, 1).reshape(values.shape)
    edges = np.append(time, 2.0 * time[-1] - time[-2] if time.size > 1 else time[-1] + scale.factor)
    colours = make_colour_map("magnitude", MAGNITUDE_COLOURS)
    image = axes.pcolormesh(edges, np.arange(len(values) + 1), values, cmap=colours, rasterized=True)
    axes.grid(visible=False)
    axes.set_ylabel("element")
    if panel.bands:
        height = len(values) // len(panel.bands)
        axes.set_yticks([height * (band + 0.5) for band in range(len(panel.bands))], panel.bands)
        axes.set_ylabel("component")
        for band in range(1, len(panel.bands)):
            axes.axhline(height * band, color=LIGHT.frame, linewidth=0.8)
    figure.colorbar(image, ax=axes, label=label, pad=0.01)

"""Data of a figure of readings: plain arrays. `navsense.plots` draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from navsense.core.typing import BoolArray, FloatArray, Times


@dataclass(frozen=True, eq=False)
class Panel:
    """One array of a reading in one run, for a figure.

    name, unit: of the array; `title` is above its axis.
    time: (n,) s, of the published samples.
    values: (n, k), NaN where they are invalid; `labels` are the names of the k components.
    bands: names of the components of a row with two axes, the last axis; empty for other rows.
    ideal_time, ideal: (m,) s and (m, k), None if there are no ideal values.
    faults: (m,) by kind, at `ideal_time`.
    """

    name: str
    unit: str
    time: Times
    values: FloatArray
    labels: Sequence[str]
    ideal_time: Times
    ideal: FloatArray | None
    faults: Mapping[str, BoolArray]
    title: str = ""
    bands: Sequence[str] = ()

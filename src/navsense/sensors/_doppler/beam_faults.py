"""Transducers that are off on purpose: what a fault puts on velocities and ranges, before anything is made of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from navsense.noise.scheduled_faults import OFFSET_SUFFIX
from navsense.typing import AnyArray, FloatArray, IntArray

DVL_SOURCE_ARRAYS = ("beam_velocity", "water_beam_velocity", "beam_range")
"""What a velocity log hears along its beams, in the order of its channels."""

ADCP_SOURCE_ARRAYS = ("beam_velocity", "bottom_beam_velocity", "bottom_range")
"""What a profiler hears along its beams."""


def add_dvl_faults(values: FloatArray, ideal: Mapping[str, AnyArray]) -> None:
    """Put onto what n pings of k beams hear, (n, 3 k), what is in `ideal` for it; NaN stays."""
    beams = values.shape[1] // len(DVL_SOURCE_ARRAYS)
    for i, name in enumerate(DVL_SOURCE_ARRAYS):
        if f"{name}{OFFSET_SUFFIX}" in ideal:
            values[:, i * beams : (i + 1) * beams] += ideal[f"{name}{OFFSET_SUFFIX}"]


def add_adcp_faults(received: tuple[FloatArray, ...], ideal: Mapping[str, AnyArray], emitted_rows: IntArray) -> None:
    """Put onto what each of p pings of n ensembles hears, (n, p, ...) each, what is in `ideal` in the rows `told`."""
    for name, array in zip(ADCP_SOURCE_ARRAYS, received, strict=True):
        if f"{name}{OFFSET_SUFFIX}" in ideal:
            np.add(array, ideal[f"{name}{OFFSET_SUFFIX}"][emitted_rows][:, None], out=array)

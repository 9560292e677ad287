"""Transducers that are off on purpose: what a fault puts on velocities and ranges, before anything is made of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from navsense.noise.planned import OFF
from navsense.typing import AnyArray, FloatArray, IntArray

OF_A_LOG = ("beam_velocity", "water_beam_velocity", "beam_range")
"""What a velocity log hears along its beams, in the order of its channels."""

OF_A_PROFILER = ("beam_velocity", "bottom_beam_velocity", "bottom_range")
"""What a profiler hears along its beams."""


def put_on_log(values: FloatArray, ideal: Mapping[str, AnyArray]) -> None:
    """Put onto what n pings of k beams hear, (n, 3 k), what is in `ideal` for it; NaN stays."""
    beams = values.shape[1] // len(OF_A_LOG)
    for i, name in enumerate(OF_A_LOG):
        if f"{name}{OFF}" in ideal:
            values[:, i * beams : (i + 1) * beams] += ideal[f"{name}{OFF}"]


def put_on_profiler(heard: tuple[FloatArray, ...], ideal: Mapping[str, AnyArray], told: IntArray) -> None:
    """Put onto what each of p pings of n ensembles hears, (n, p, ...) each, what is in `ideal` in the rows `told`."""
    for name, array in zip(OF_A_PROFILER, heard, strict=True):
        if f"{name}{OFF}" in ideal:
            np.add(array, ideal[f"{name}{OFF}"][told][:, None], out=array)

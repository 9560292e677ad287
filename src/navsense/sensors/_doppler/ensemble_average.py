"""Pings of ensembles put together: means over those that are good, by the kernels of `_parse_janus.ensemble`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from navsense.sensors._doppler import ensemble_kernels
from navsense.sensors._doppler.adcp_outputs import ATTITUDE, BOTTOM_OUTPUT_ROTATION, ECHO_RANGE, OUTPUT_ROTATION
from navsense.sensors._doppler.beams import Beams
from navsense.sensors._doppler.cells import DepthCells
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray


class ProfilerGeometry(NamedTuple):
    """How a profiler's beams lie, with the cosine (k,) of each one's angle to their mean, and its cells."""

    beams: Beams
    slant_cosines: FloatArray
    cells: DepthCells

    @property
    def scratch(self) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Return room for one solution: three numbers a beam (3, k), which are good (k,), a matrix (3, 3)."""
        k = self.slant_cosines.size
        return np.empty((3, k)), np.empty(k, dtype=np.bool_), np.empty((3, 3))


def average_profile(
    rules: FloatArray, geometry: ProfilerGeometry, inputs: Mapping[str, FloatArray], received: FloatArray
) -> dict[str, AnyArray]:
    """Return by name what n ensembles tell of the water, p pings of which hear velocities (n, p, m, k) m/s."""
    n, p, m, k = received.shape
    velocity, error, share = np.empty((n, m, 3)), np.empty((n, m)), np.empty((n, m))
    ways, beam, beam_share = np.empty((n, m, ensemble_kernels.OUTCOME_COUNT)), np.empty((n, m, k)), np.empty((n, m, k))
    turned = (
        inputs[ATTITUDE],
        inputs[OUTPUT_ROTATION],
        geometry.beams.axes,
        geometry.beams.axis,
        geometry.slant_cosines,
    )
    said = (velocity, error, share, ways, beam, beam_share, np.empty((p, k)))
    ensemble_kernels.average_profile(
        rules, geometry.cells.distances, float(geometry.cells.size), received, *turned, *said, *geometry.scratch
    )
    return {
        "velocity": velocity,
        "error_velocity": error,
        "percent_good": share,
        "solutions": ways,
        "beam_velocity": beam,
        "beam_percent_good": beam_share,
    }


def average_bottom(
    rules: FloatArray,
    geometry: ProfilerGeometry,
    inputs: Mapping[str, FloatArray],
    ping_ranges: FloatArray,
    received: FloatArray,
) -> dict[str, AnyArray]:
    """Return by name what n ensembles tell of the bottom, p pings of which show ranges m, hear velocities (n, p, k)."""
    n, k = ping_ranges.shape[0], geometry.slant_cosines.size
    own, ways = np.empty((n, 3)), np.empty((n, ensemble_kernels.OUTCOME_COUNT))
    along, ranges, share = np.empty((n, k)), np.empty((n, k)), np.empty((n, k))
    met = (inputs[ECHO_RANGE], ping_ranges, received, inputs[BOTTOM_OUTPUT_ROTATION], geometry.beams.axes)
    ensemble_kernels.average_bottom(rules, *met, own, ways, along, ranges, share, *geometry.scratch)
    return {
        "bottom_velocity": own,
        "bottom_beam_velocity": along,
        "bottom_range": ranges,
        "bottom_percent_good": share,
        "bottom_solutions": ways,
    }


def expand_rows(array: AnyArray, rows: IntArray, count: int) -> AnyArray:
    """Return rows of `count` ticks, NaN but for those that tell."""
    out = np.full((count, *array.shape[1:]), math.nan)
    out[rows] = array
    return out

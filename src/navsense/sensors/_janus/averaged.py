"""Pings of ensembles put together: means over those that are good, by the kernels of `_janus.ensemble`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from navsense.sensors._janus import ensemble
from navsense.sensors._janus.beams import Beams
from navsense.sensors._janus.profile import Cells
from navsense.sensors._janus.profiled import ATTITUDE, BOTTOM_FRAMES, ECHO, FRAMES
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray


class Laid(NamedTuple):
    """How a profiler's beams lie, with the cosine (k,) of each one's angle to their mean, and its cells."""

    beams: Beams
    cosine: FloatArray
    cells: Cells

    @property
    def room(self) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Return room for one solution: three numbers a beam (3, k), which are good (k,), a matrix (3, 3)."""
        k = self.cosine.size
        return np.empty((3, k)), np.empty(k, dtype=np.bool_), np.empty((3, 3))


def profile(rules: FloatArray, laid: Laid, inside: Mapping[str, FloatArray], heard: FloatArray) -> dict[str, AnyArray]:
    """Return by name what n ensembles tell of the water, p pings of which hear velocities (n, p, m, k) m/s."""
    n, p, m, k = heard.shape
    velocity, error, share = np.empty((n, m, 3)), np.empty((n, m)), np.empty((n, m))
    ways, beam, beam_share = np.empty((n, m, ensemble.OUTCOMES)), np.empty((n, m, k)), np.empty((n, m, k))
    turned = (inside[ATTITUDE], inside[FRAMES], laid.beams.axes, laid.beams.axis, laid.cosine)
    said = (velocity, error, share, ways, beam, beam_share, np.empty((p, k)))
    ensemble.average(rules, laid.cells.distances, float(laid.cells.size), heard, *turned, *said, *laid.room)
    return {
        "velocity": velocity,
        "error_velocity": error,
        "percent_good": share,
        "solutions": ways,
        "beam_velocity": beam,
        "beam_percent_good": beam_share,
    }


def bottom(
    rules: FloatArray, laid: Laid, inside: Mapping[str, FloatArray], shown: FloatArray, heard: FloatArray
) -> dict[str, AnyArray]:
    """Return by name what n ensembles tell of the bottom, p pings of which show ranges m, hear velocities (n, p, k)."""
    n, k = shown.shape[0], laid.cosine.size
    own, ways = np.empty((n, 3)), np.empty((n, ensemble.OUTCOMES))
    along, ranges, share = np.empty((n, k)), np.empty((n, k)), np.empty((n, k))
    met = (inside[ECHO], shown, heard, inside[BOTTOM_FRAMES], laid.beams.axes)
    ensemble.follow_bottom(rules, *met, own, ways, along, ranges, share, *laid.room)
    return {
        "bottom_velocity": own,
        "bottom_beam_velocity": along,
        "bottom_range": ranges,
        "bottom_percent_good": share,
        "bottom_solutions": ways,
    }


def spread(array: AnyArray, told: IntArray, count: int) -> AnyArray:
    """Return rows of `count` ticks, NaN but for those that tell."""
    out = np.full((count, *array.shape[1:]), math.nan)
    out[told] = array
    return out

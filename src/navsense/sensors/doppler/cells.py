"""Depth cells of an ADCP along its beams, and the velocity through each of them, without errors.

Distances l are along the instrument's axis, from the transducers; cell m of `count`, m = 0, 1, ...:

    l_m = first + m size,   first = blanking + (size + transmit_length + lag) / 2
    s_mk = l_m / cos_k c / c0                                   slant range of a cell, cos_k = u_k . a

A cell is a gate in time. If the speed of sound c is above the assumed c0, the cell is farther out. Its echo comes from
around the cell, weighted by the pulse over the gate: with x = l - l_m,

    w(x) = min(1, (h - |x|) / min(size, transmit_length)),   |x| < h = (size + transmit_length) / 2

This is a triangle with a half-width of one cell if the pulse is as long as the cell: neighbours overlap. It is a box
for a short pulse. `samples` samples represent a cell, x_i = h (2 i + 1 - samples) / samples, and

    b_mk = u_k . (v_k - sum_i w_i current(x_k + s_i u_k) / sum_i w_i)

is positive if the sensor moves through the water along the beam. Symmetric weights keep a linear shear.

Side lobes of the beams go straight to the bottom. With D = min_k r_k cos i_k, the distance of the plane that the beams
hit (i_k the angle of incidence), every cell that reaches beyond D along its beam is invalid:

    s_mk + h / cos_k > D,                  on a level bottom from l = D cos angle on, D (1 - cos angle) short of it

Below the surface, for beams that look up, D is the depth. Without side lobes a cell is valid until it reaches the hit
of its own beam.

Sources: R. L. Gordon, Acoustic Doppler Current Profiler, Principles of Operation: A Practical Primer (RD Instruments
951-6069-00, 1996), for weights, first cell and side lobes; the first cell's rule is that of real ensembles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Quaternions, Times, Vectors
from navsense.environment.base import Environment
from navsense.motion.base import MotionBlock
from navsense.sensors.doppler.beams import Beams
from navsense.sensors.doppler.echoes import Fields, get_surface_height
from navsense.sensors.doppler.specification import validate_counts, validate_reals
from navsense.sensors.doppler.water import (
    MAX_SAMPLES,
    CellVelocities,
    compute_rise,
    get_forward_cosines,
    sample_water_velocity,
)

MAX_CELLS = 255
"""Largest number of cells that messages and formats can hold."""

MAX_LENGTH = 1e5
"""m: largest length of a profile."""


@dataclass(frozen=True)
class DepthCells:
    """Depth cells of a profile. Lengths are in m along the instrument's axis. Raises `SensorError` for invalid values.

    count: of cells.
    size: of a cell.
    blanking: distance before the first cell.
    transmit_length: of the pulse; None for the size of a cell.
    lag: between the two pulses.
    samples: of the current along each beam, per cell.
    """

    count: int = 30
    size: float = 2.0
    blanking: float = 0.88
    transmit_length: float | None = None
    lag: float = 0.0
    samples: int = 5

    def __post_init__(self) -> None:
        """Check the fields."""
        counts = (("number", self.count, MAX_CELLS), ("samples", self.samples, MAX_SAMPLES))
        validate_counts(*((f"{name} of cells", count, 1, most) for name, count, most in counts))
        validate_reals(("size of a cell (m)", self.size, 0.0, MAX_LENGTH), is_above=True)
        given = (("blanking", self.blanking), ("transmit length", self.pulse_length), ("lag", self.lag))
        validate_reals(*((f"{name} of a profile (m)", value, 0.0, MAX_LENGTH) for name, value in given))

    @property
    def pulse_length(self) -> float:
        """Length of the pulse, m."""
        return self.size if self.transmit_length is None else self.transmit_length

    @property
    def first_distance(self) -> float:
        """Distance of the first cell's centre, m."""
        return self.blanking + 0.5 * (self.size + self.pulse_length + self.lag)

    @property
    def half_extent(self) -> float:
        """Extent of a cell's weights on either side of its centre, m."""
        return 0.5 * (self.size + self.pulse_length)

    @property
    def end_distance(self) -> float:
        """Distance of the end of the last cell's weights, m."""
        return self.first_distance + (self.count - 1) * self.size + self.half_extent

    @cached_property
    def distances(self) -> FloatArray:
        """Distances (count,) m of the cells' centres."""
        return np.array([self.first_distance + m * self.size for m in range(self.count)])

    @cached_property
    def weighted_samples(self) -> tuple[FloatArray, FloatArray]:
        """Distances (samples,) m of the samples from a cell's centre, and their weights; the sum is 1."""
        size, short = int(self.samples), min(self.size, self.pulse_length)
        offsets = [self.half_extent * (2 * i + 1 - size) / size for i in range(size)]
        weights = [min(1.0, (self.half_extent - abs(x)) / short) if short > 0.0 else 1.0 for x in offsets]
        total = math.fsum(weights)
        return np.array(offsets), np.array([weight / total for weight in weights])


class BottomHits(NamedTuple):
    """Ranges (q, k) m of the bottom along the beams of q pings, NaN without an echo, and cosines of incidence."""

    beam_range: FloatArray
    incidence_cosine: FloatArray


@kernel
def _find_bottom_distance(beam_range: FloatArray, incidence_cosine: FloatArray) -> float:
    """Return the distance (m) of the bottom from the ranges (k,) of one ping; infinite without a bottom."""
    shortest = math.inf
    for k in range(beam_range.shape[0]):
        if beam_range[k] == beam_range[k]:
            shortest = min(shortest, beam_range[k] * incidence_cosine[k])
    return shortest


@kernel
def _write_slant_ranges(
    position: Vectors,
    rotation: Quaternions,
    beam_geometry: Fields,
    cells: FloatArray,
    half: float,
    offsets: FloatArray,
    stretch: FloatArray,
    bottom_hits: Fields,
    side_lobes: bool,
    surface: float,
    out: FloatArray,
) -> None:
    """Write slant ranges (q, m, k, s) m of the samples of cells; the first is NaN for an invalid cell.

    `beam_geometry` has the positions and axes of the beams, and their cosines to the instrument's axis.
    """
    transducers, axes, cosines = beam_geometry
    bottom = BottomHits(*bottom_hits)
    for q in range(out.shape[0]):
        nearest = math.inf
        if side_lobes:
            nearest = _find_bottom_distance(bottom.beam_range[q], bottom.incidence_cosine[q])
        for k in range(out.shape[2]):
            height, rise = compute_rise(position[q], rotation[q], transducers[k], axes[k])
            along = stretch[q] / cosines[k]
            limit = nearest
            if bottom.beam_range[q, k] == bottom.beam_range[q, k]:
                limit = min(limit, bottom.beam_range[q, k])
            if rise > 0.0:
                limit = min(limit, (surface - height) if side_lobes else (surface - height) / rise)
            for m in range(out.shape[1]):
                out[q, m, k, 0] = math.nan
                if height <= surface and (cells[m] + half) * along <= limit:
                    for s in range(out.shape[3]):
                        out[q, m, k, s] = (cells[m] + offsets[s]) * along


def find_cell_velocities(
    beams: Beams,
    cells: DepthCells,
    block: MotionBlock,
    environment: Environment,
    time: Times,
    stretch: FloatArray,
    bottom: BottomHits,
    *,
    side_lobes: bool,
    as_points: bool = False,
) -> CellVelocities:
    """Return the velocity through each cell along the beams of pings at instants (q,) s.

    `block` is the sensor's motion at these instants, `stretch` (q,) is c / c0. With `as_points` cells have no extent.
    Without a current the water is still. Raises `SensorError` for a beam that points backwards, `FieldError` if the
    current has no value there.
    """
    half, (offsets, weights) = cells.half_extent, cells.weighted_samples
    if as_points:
        half, offsets, weights = 0.0, np.zeros(1), np.ones(1)
    geometry, surface = (beams.positions, beams.axes, get_forward_cosines(beams)), get_surface_height(environment)

    def write_slant_ranges(part: slice, slant_range: FloatArray) -> None:
        moving = (block.position_w[part], block.rotation_wb[part], geometry, cells.distances, half, offsets)
        hits = (bottom.beam_range[part], bottom.incidence_cosine[part])
        _write_slant_ranges(*moving, stretch[part], hits, side_lobes, surface, slant_range)

    return sample_water_velocity(beams, block, environment, time, int(cells.count), weights, write_slant_ranges)

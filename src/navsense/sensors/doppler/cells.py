"""Depth cells of an ADCP along its beams, and the velocity through each of them, without errors.

The symbols are those of `sensors.doppler`. Cell m of `count`, m = 0, 1, ...:

    l_m = first + m size,   first = blanking + (size + transmit_length + lag) / 2
    r_mk = (l_m / cos theta_k) (c / c0)                         slant range of a cell

The instrument selects a cell by time. If the speed of sound c is above the assumed c0, the cell is farther away. The
echo of a cell comes from around it. With x = l - l_m, its weight is the convolution of the pulse with the time gate:

    g(x) = min(1, (h - |x|) / min(size, transmit_length)),   |x| < h = (size + transmit_length) / 2

If the pulse is as long as the cell, this is a triangle with a half-width of one cell, so adjacent cells overlap. For a
short pulse it is a box. A cell has `samples` samples at x_i = h (2 i + 1 - samples) / samples. Its velocity

    b_mk = u_k . (v_k - sum_i g_i current(x_k + r_i u_k) / sum_i g_i)

is positive if the sensor moves through the water along the beam. The weights are symmetric, so a linear shear has no
error.

The side lobes of a beam receive the echo of the bottom on the shortest path. r_k is the range of beam k, i_k its angle
of incidence, and D = min_k r_k cos i_k the distance of the plane that the beams hit. A cell is invalid if

    r_mk + h / cos theta_k > D

On a level bottom these are the cells from l = D cos theta on. For beams that point up, D is the depth. Without
side lobes a cell is valid up to the hit of its beam.

Source: R. L. Gordon, Acoustic Doppler Current Profiler, Principles of Operation: A Practical Primer (RD Instruments
951-6069-00, 1996), for weights, first cell and side lobes. Real ensembles have the same distance of the first cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternions, Times, Vectors
from navsense.environment.base import Environment
from navsense.motion.base import MotionBlock
from navsense.sensors.doppler.beams import Beams
from navsense.sensors.doppler.echoes import Echoes, KernelTuple, get_surface_height
from navsense.sensors.doppler.specification import validate_counts, validate_reals
from navsense.sensors.doppler.water import (
    MAX_SAMPLES,
    CellVelocities,
    compute_height_and_slope,
    sample_water_velocity,
)

MAX_CELLS = 255
"""Largest number of cells that messages and formats can hold."""

MAX_LENGTH = 1e5
"""m: largest length of a profile."""


@dataclass(frozen=True)
class DepthCells:
    """Depth cells of a profile. Lengths are in m along the instrument axis. Raises `SensorError` for invalid values.

    count: of cells.
    size: of a cell.
    blanking: distance before the first cell.
    transmit_length: of the pulse; None for the size of a cell.
    lag: between the two pulses.
    samples: of the current along each beam, per cell.

    >>> ns.sensors.DepthCells(count=12, size=1.0, blanking=0.5)
    DepthCells(count=12, size=1.0, blanking=0.5)
    """

    count: int = 30
    size: float = 2.0
    blanking: float = 0.88
    transmit_length: float | None = None
    lag: float = 0.0
    samples: int = 5

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        counts = (("number", self.count, MAX_CELLS), ("samples", self.samples, MAX_SAMPLES))
        validate_counts(*((f"{name} of cells", count, 1, most) for name, count, most in counts))
        validate_reals(("size of a cell (m)", self.size, 0.0, MAX_LENGTH), is_above=True)
        lengths = (("blanking", self.blanking), ("transmit length", self.pulse_length), ("lag", self.lag))
        validate_reals(*((f"{name} of a profile (m)", value, 0.0, MAX_LENGTH) for name, value in lengths))

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


@kernel
def _find_plane_distance(beam_range: FloatArray, incidence_cosine: FloatArray) -> float:
    """Return the distance D (m) of the plane that the beams of one ping hit; infinite without a bottom.

    `beam_range` (k,) m is NaN without an echo.
    """
    plane_distance = math.inf
    for k in range(beam_range.shape[0]):
        if beam_range[k] == beam_range[k]:
            plane_distance = min(plane_distance, beam_range[k] * incidence_cosine[k])
    return plane_distance


@kernel
def _write_slant_ranges(
    position: Vectors,
    rotation: Quaternions,
    beam_geometry: KernelTuple,
    cells: FloatArray,
    half_extent: float,
    offsets: FloatArray,
    range_scale: FloatArray,
    bottom_echoes: KernelTuple,
    side_lobes: bool,
    water_surface: float,
    out: FloatArray,
) -> None:
    """Write slant ranges (q, m, k, s) m of the samples of cells; the first is NaN for an invalid cell.

    `beam_geometry` has the positions and axes of the beams, and their Janus cosines.
    `bottom_echoes` has the ranges (q, k) m, NaN without an echo, and the cosines of incidence.
    """
    transducers, axes, cosines = beam_geometry
    bottom_range, incidence_cosine = bottom_echoes
    for q in range(out.shape[0]):
        plane_distance = _find_plane_distance(bottom_range[q], incidence_cosine[q]) if side_lobes else math.inf
        for k in range(out.shape[2]):
            height, vertical_slope = compute_height_and_slope(position[q], rotation[q], transducers[k], axes[k])
            range_factor = range_scale[q] / cosines[k]
            max_distance = plane_distance
            if bottom_range[q, k] == bottom_range[q, k]:
                max_distance = min(max_distance, bottom_range[q, k])
            if vertical_slope > 0.0:
                depth = water_surface - height
                max_distance = min(max_distance, depth if side_lobes else depth / vertical_slope)
            for m in range(out.shape[1]):
                out[q, m, k, 0] = math.nan
                if height <= water_surface and (cells[m] + half_extent) * range_factor <= max_distance:
                    for s in range(out.shape[3]):
                        out[q, m, k, s] = (cells[m] + offsets[s]) * range_factor


def find_cell_velocities(
    beams: Beams,
    cells: DepthCells,
    motion_block: MotionBlock,
    environment: Environment,
    time: Times,
    range_scale: FloatArray,
    bottom: Echoes,
    *,
    side_lobes: bool,
    as_points: bool = False,
) -> CellVelocities:
    """Return the velocity through each cell along the beams of pings at instants (q,) s.

    motion_block: the sensor's motion at these instants.
    range_scale: (q,), c / c0.
    bottom: the echoes of these pings from the bottom.
    as_points: True for cells without extent.

    Without a current the water is still. Raises `SensorError` for a Janus angle of 90 degrees or more, `FieldError`
    if the current has no value there.
    """
    half_extent, (offsets, weights) = cells.half_extent, cells.weighted_samples
    if as_points:
        half_extent, offsets, weights = 0.0, np.zeros(1), np.ones(1)
    geometry, water_surface = (
        (beams.positions, beams.axes, beams.positive_janus_cosines),
        get_surface_height(environment),
    )
    bottom_range = bottom.finite_range

    def write_slant_ranges(pings: slice, slant_range: FloatArray) -> None:
        _write_slant_ranges(
            motion_block.position_w[pings],
            motion_block.rotation_wb[pings],
            geometry,
            cells.distances,
            half_extent,
            offsets,
            range_scale[pings],
            (bottom_range[pings], bottom.incidence_cosine[pings]),
            side_lobes,
            water_surface,
            slant_range,
        )

    return sample_water_velocity(beams, motion_block, environment, time, int(cells.count), weights, write_slant_ranges)

"""Cells of water along the beams of a profiler, and the velocity through each of them, without errors.

Distances l are along the instrument's axis, from the transducers; cell m of `count`, m = 0, 1, ...:

    l_m = first + m size,   first = blanking + (size + transmit_length + lag) / 2
    s_mk = l_m / cos_k c / c0                                   slant range of a cell, cos_k = u_k . a

A cell is a gate in time, so that it lies farther out where sound is faster, c, than the instrument takes it to be, c0.
What comes back in the gate comes from around the cell, weighted by the pulse over the gate: with x = l - l_m,

    w(x) = min(1, (h - |x|) / min(size, transmit_length)),   |x| < h = (size + transmit_length) / 2

a triangle of half-width one cell where the pulse is as long as the cell, so that neighbours overlap; a box for a short
pulse. `samples` places stand for it, x_i = h (2 i + 1 - samples) / samples, and

    b_mk = u_k . (v_k - sum_i w_i current(x_k + s_i u_k) / sum_i w_i)

is positive when the sensor goes through the water along the beam. Symmetric weights leave a linear shear as it is.

A beam hears the bottom by its side lobes too, which go straight there: after D = min_k r_k cos i_k, the distance of the
plane that the beams meet (i_k the angle of incidence), every cell is spoilt that reaches beyond D along its beam,

    s_mk + h / cos_k > D,                  on a level bottom from l = D cos angle on, D (1 - cos angle) short of it

and below the surface, which beams that look up approach, D is the depth. Without side lobes a cell is heard until
it reaches what its own beam meets.

Sources: R. L. Gordon, Acoustic Doppler Current Profiler, Principles of Operation: A Practical Primer (RD Instruments
951-6069-00, 1996), for weights, first cell and side lobes; the first cell's rule is that of real ensembles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from navsense.environment.base import Environment
from navsense.kernels import kernel
from navsense.motion.base import MotionBlock
from navsense.sensors.doppler.beams import Beams
from navsense.sensors.doppler.echoes import get_surface_height
from navsense.sensors.doppler.specification import validate_counts, validate_reals
from navsense.sensors.doppler.water import (
    MAX_SAMPLES,
    CellVelocities,
    compute_rise,
    get_forward_cosines,
    sample_water_velocity,
)
from navsense.typing import FloatArray, Quaternions, Times, Vectors

MAX_CELLS = 255
"""Cells of one profile, as many as messages and formats can number."""

MAX_LENGTH = 1e5
"""m: no length of a profile is longer."""


@dataclass(frozen=True)
class DepthCells:
    """How many cells there are, their `size`, `blanking`, pulse (`transmit_length`, None for a cell) and `lag` (m).

    `samples` places along each beam stand for a cell. Lengths are along the instrument's axis. Raises `SensorError`.
    """

    count: int = 30
    size: float = 2.0
    blanking: float = 0.88
    transmit_length: float | None = None
    lag: float = 0.0
    samples: int = 5

    def __post_init__(self) -> None:
        """Refuse what is no profile."""
        counts = (("number", self.count, MAX_CELLS), ("samples", self.samples, MAX_SAMPLES))
        validate_counts(*((f"{name} of cells", count, 1, most) for name, count, most in counts))
        validate_reals(("size of a cell (m)", self.size, 0.0, MAX_LENGTH), is_above=True)
        given = (("blanking", self.blanking), ("transmit length", self.pulse_length), ("lag", self.lag))
        validate_reals(*((f"{name} of a profile (m)", value, 0.0, MAX_LENGTH) for name, value in given))

    @property
    def pulse_length(self) -> float:
        """Return the length of what is sent (m)."""
        return self.size if self.transmit_length is None else self.transmit_length

    @property
    def first_distance(self) -> float:
        """Return the distance (m) of the first cell's centre."""
        return self.blanking + 0.5 * (self.size + self.pulse_length + self.lag)

    @property
    def half_extent(self) -> float:
        """Return how far (m) a cell hears on either side of its centre."""
        return 0.5 * (self.size + self.pulse_length)

    @property
    def end_distance(self) -> float:
        """Return how far (m) the last cell hears."""
        return self.first_distance + (self.count - 1) * self.size + self.half_extent

    @cached_property
    def distances(self) -> FloatArray:
        """Distances (count,) m of the cells' centres."""
        return np.array([self.first_distance + m * self.size for m in range(self.count)])

    @cached_property
    def weighted_places(self) -> tuple[FloatArray, FloatArray]:
        """Places (samples,) m from a cell's centre, and their weights, of sum 1."""
        size, short = int(self.samples), min(self.size, self.pulse_length)
        places = [self.half_extent * (2 * i + 1 - size) / size for i in range(size)]
        weights = [min(1.0, (self.half_extent - abs(x)) / short) if short > 0.0 else 1.0 for x in places]
        total = math.fsum(weights)
        return np.array(places), np.array([weight / total for weight in weights])


class BottomHits(NamedTuple):
    """Of q pings: ranges (q, k) m at which the beams meet the bottom, NaN for none, and cosines of the incidence."""

    range: FloatArray
    incidence: FloatArray


@kernel
def _find_bottom_distance(distance: FloatArray, incidence: FloatArray) -> float:
    """Return the distance (m) of the bottom that the beams (k,) of one ping meet; infinite for none."""
    least = math.inf
    for k in range(distance.shape[0]):
        if distance[k] == distance[k]:
            least = min(least, distance[k] * incidence[k])
    return least


@kernel
def _write_slant_ranges(
    position: Vectors,
    rotation: Quaternions,
    stretch: FloatArray,
    transducers: Vectors,
    axes: Vectors,
    cosine: FloatArray,
    cells: FloatArray,
    half: float,
    offset: FloatArray,
    distance: FloatArray,
    incidence: FloatArray,
    side_lobes: bool,
    surface: float,
    out: FloatArray,
) -> None:
    """Write slant ranges (q, m, k, s) m of the places of cells, the first NaN where a cell is not heard."""
    for q in range(out.shape[0]):
        near = _find_bottom_distance(distance[q], incidence[q]) if side_lobes else math.inf
        for k in range(out.shape[2]):
            c, h = compute_rise(position[q], rotation[q], transducers[k], axes[k])
            along = stretch[q] / cosine[k]
            limit = near
            if distance[q, k] == distance[q, k]:
                limit = min(limit, distance[q, k])
            if h > 0.0:
                limit = min(limit, (surface - c) if side_lobes else (surface - c) / h)
            for m in range(out.shape[1]):
                out[q, m, k, 0] = math.nan
                if c <= surface and (cells[m] + half) * along <= limit:
                    for s in range(out.shape[3]):
                        out[q, m, k, s] = (cells[m] + offset[s]) * along


def find_cell_velocities(
    beams: Beams,
    cells: DepthCells,
    truth: MotionBlock,
    environment: Environment,
    time: Times,
    stretch: FloatArray,
    bottom: BottomHits,
    *,
    side_lobes: bool,
    as_points: bool = False,
) -> CellVelocities:
    """Return the velocity through each cell that the beams of pings at the instants (q,) s hear.

    `truth` is the sensor's motion then, `stretch` (q,) c / c0; cells are `points` where that is asked for. A world
    without a current has still water. Raises `SensorError` where a beam goes back against the instrument's axis,
    `FieldError` where the current cannot be asked.
    """
    half, (offset, weight) = (
        (0.0, (np.zeros(1), np.ones(1))) if as_points else (cells.half_extent, cells.weighted_places)
    )
    laid, surface = (
        (beams.positions, beams.axes, get_forward_cosines(beams), cells.distances),
        get_surface_height(environment),
    )

    def write_slant_ranges(part: slice, slant: FloatArray) -> None:
        moved = (truth.position_w[part], truth.rotation_wb[part], stretch[part])
        met = (bottom.range[part], bottom.incidence[part])
        _write_slant_ranges(*moved, *laid, half, offset, *met, side_lobes, surface, slant)

    return sample_water_velocity(beams, truth, environment, time, int(cells.count), weight, write_slant_ranges)

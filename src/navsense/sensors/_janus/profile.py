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

from navsense.compiled import kernel
from navsense.environment.base import Environment
from navsense.errors import SensorError
from navsense.motion.base import MotionBlock
from navsense.rotation import rotate
from navsense.sensors._janus.beams import Beams
from navsense.sensors._janus.echoes import surface_of, transducer_velocity
from navsense.sensors._janus.layer import MOST_SAMPLES, cosines
from navsense.typing import BoolArray, FloatArray, Quaternions, Times, Vectors

MOST_CELLS = 255
"""Cells of one profile, as many as messages and formats can number."""

LONGEST = 1e5
"""m: no length of a profile is longer."""

_AT_ONCE = 1 << 16
"""Places at which the current is asked at once: their arrays stay in the cache."""


@dataclass(frozen=True)
class Cells:
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
        for name, count, most in (("number", self.count, MOST_CELLS), ("samples", self.samples, MOST_SAMPLES)):
            if not (1 <= count <= most and count == int(count)):
                raise SensorError(f"{name} of cells", count, allowed=f"must be a whole number from 1 to {most}")
        if not 0.0 < self.size <= LONGEST:
            raise SensorError("size of a cell (m)", self.size, allowed=f"must be above 0 and at most {LONGEST:g}")
        given = (("blanking", self.blanking), ("transmit length", self.pulse), ("lag", self.lag))
        for name, value in given:
            if not 0.0 <= value <= LONGEST:
                raise SensorError(f"{name} of a profile (m)", value, allowed=f"must be from 0 to {LONGEST:g}")

    @property
    def pulse(self) -> float:
        """Return the length of what is sent (m)."""
        return self.size if self.transmit_length is None else self.transmit_length

    @property
    def first(self) -> float:
        """Return the distance (m) of the first cell's centre."""
        return self.blanking + 0.5 * (self.size + self.pulse + self.lag)

    @property
    def half(self) -> float:
        """Return how far (m) a cell hears on either side of its centre."""
        return 0.5 * (self.size + self.pulse)

    @property
    def end(self) -> float:
        """Return how far (m) the last cell hears."""
        return self.first + (self.count - 1) * self.size + self.half

    @cached_property
    def distances(self) -> FloatArray:
        """Distances (count,) m of the cells' centres."""
        return np.array([self.first + m * self.size for m in range(self.count)])

    @cached_property
    def places(self) -> tuple[FloatArray, FloatArray]:
        """Places (samples,) m from a cell's centre, and their weights, of sum 1."""
        size, short = int(self.samples), min(self.size, self.pulse)
        places = [self.half * (2 * i + 1 - size) / size for i in range(size)]
        weights = [min(1.0, (self.half - abs(x)) / short) if short > 0.0 else 1.0 for x in places]
        total = math.fsum(weights)
        return np.array(places), np.array([weight / total for weight in weights])


class Bottom(NamedTuple):
    """Of q pings: ranges (q, k) m at which the beams meet the bottom, NaN for none, and cosines of the incidence."""

    range: FloatArray
    incidence: FloatArray


class Water(NamedTuple):
    """Of q pings: velocities (q, m, k) m/s through each cell along the beams, NaN where it is not heard.

    `axial` is the part of it that is along the instrument's axis, (u . a) (a . v).
    """

    along: FloatArray
    axial: FloatArray


@kernel
def _clear(distance: FloatArray, incidence: FloatArray) -> float:
    """Return the distance (m) of the bottom that the beams (k,) of one ping meet; infinite for none."""
    least = math.inf
    for k in range(distance.shape[0]):
        if distance[k] == distance[k]:
            least = min(least, distance[k] * incidence[k])
    return least


@kernel
def _places(
    position: Vectors,
    rotation: Quaternions,
    time: Times,
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
    place: Vectors,
    instant: Times,
    heard: BoolArray,
) -> int:
    """Write places (count, 3) m and instants of the cells that are heard, which are told by (q, m, k); return count."""
    count = 0
    for q in range(position.shape[0]):
        w, x, y, z = rotation[q, 0], rotation[q, 1], rotation[q, 2], rotation[q, 3]
        near = _clear(distance[q], incidence[q]) if side_lobes else math.inf
        for k in range(axes.shape[0]):
            a, b, c = rotate(w, x, y, z, transducers[k, 0], transducers[k, 1], transducers[k, 2])
            a, b, c = position[q, 0] + a, position[q, 1] + b, position[q, 2] + c
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            along = stretch[q] / cosine[k]
            limit = near
            if distance[q, k] == distance[q, k]:
                limit = min(limit, distance[q, k])
            if h > 0.0:
                limit = min(limit, (surface - c) if side_lobes else (surface - c) / h)
            for m in range(cells.shape[0]):
                heard[q, m, k] = c <= surface and (cells[m] + half) * along <= limit
                if not heard[q, m, k]:
                    continue
                for s in range(offset.shape[0]):
                    far = (cells[m] + offset[s]) * along
                    place[count, 0], place[count, 1], place[count, 2] = a + far * i, b + far * j, c + far * h
                    instant[count] = time[q]
                    count += 1
    return count


@kernel
def _through(
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    transducers: Vectors,
    axes: Vectors,
    axis: FloatArray,
    weight: FloatArray,
    heard: BoolArray,
    current: Vectors,
    along: FloatArray,
    axial: FloatArray,
) -> None:
    """Write velocities (q, m, k) m/s through water that flows (count, 3) m/s at the places; still where count is 0."""
    count = 0
    for q in range(along.shape[0]):
        w, x, y, z = rotation[q, 0], rotation[q, 1], rotation[q, 2], rotation[q, 3]
        f, g, e = rotate(w, x, y, z, axis[0], axis[1], axis[2])
        for k in range(along.shape[2]):
            p, r, t = transducer_velocity(w, x, y, z, velocity[q], omega[q], transducers[k])
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            for m in range(along.shape[1]):
                along[q, m, k], axial[q, m, k] = math.nan, math.nan
                if not heard[q, m, k]:
                    continue
                a, b, c = p, r, t
                if current.shape[0] > 0:
                    for s in range(weight.shape[0]):
                        a -= weight[s] * current[count, 0]
                        b -= weight[s] * current[count, 1]
                        c -= weight[s] * current[count, 2]
                        count += 1
                along[q, m, k] = i * a + j * b + h * c
                axial[q, m, k] = (i * f + j * g + h * e) * (f * a + g * b + e * c)


def water(
    beams: Beams,
    cells: Cells,
    truth: MotionBlock,
    environment: Environment,
    time: Times,
    stretch: FloatArray,
    bottom: Bottom,
    *,
    side_lobes: bool,
    points: bool = False,
) -> Water:
    """Return the velocity through each cell that the beams of pings at the instants (q,) s hear.

    `truth` is the sensor's motion then, `stretch` (q,) c / c0; cells are `points` where that is asked for. A world
    without a current has still water. Raises `SensorError` where a beam goes back against the instrument's axis,
    `FieldError` where the current cannot be asked.
    """
    cosine, half = cosines(beams), 0.0 if points else cells.half
    offset, weight = (np.zeros(1), np.ones(1)) if points else cells.places
    shape = (time.shape[0], cells.count, cosine.shape[0])
    found, surface = Water(np.empty(shape), np.empty(shape)), surface_of(environment)
    rows = max(_AT_ONCE // (shape[1] * shape[2] * offset.shape[0]), 1)
    for first in range(0, shape[0], rows):
        part = slice(first, first + rows)
        rotation, instants, along = truth.rotation_wb[part], time[part], found.along[part]
        place, instant = np.empty((along.size * offset.shape[0], 3)), np.empty(along.size * offset.shape[0])
        heard = np.empty(along.shape, dtype=np.bool_)
        turned = (truth.position_w[part], rotation, instants, stretch[part], beams.positions, beams.axes, cosine)
        met = (bottom.range[part], bottom.incidence[part], side_lobes, surface)
        count = _places(*turned, cells.distances, half, offset, *met, place, instant, heard)
        current = np.empty((0, 3))
        if environment.current is not None and count:
            current = environment.current.at(place[:count], instant[:count])
        moving = (rotation, truth.velocity_w[part], truth.angular_velocity_b[part], beams.positions)
        _through(*moving, beams.axes, beams.axis, weight, heard, current, along, found.axial[part])
    return found

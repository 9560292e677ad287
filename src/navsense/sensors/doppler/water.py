"""A layer of water that a Doppler instrument tracks, and its velocity through that, beam by beam, without errors.

Distances are along the instrument's axis a, the mean of its beams' axes u_k, and begin at each transducer; s is the
slant range at distance l, b the bottom's distance in the shallowest beam:

    cos_k = u_k . a,   s = l / cos_k,   b = min_k r_k cos_k
    far' = min(far, share b);   no layer where far' - near is below the minimum size, or not above 0

    velocity_k = u_k . (v_k - sum_i w_i current(x_k + s_i u_k)),   l_i = near + f_i (far' - near)
    f_i = (i + 1/2) / samples,   w_i ~ min(f_i, 1 - f_i)

so that it is positive when the sensor goes through the water along the beam. The weights are a triangle's: an echo of a
pulse as long as the layer hears most of its middle. Side lobes, which go straight down, come back from the bottom
before the beams do: instruments keep to 80 % of the way (the far boundary of Teledyne RDI's Pathfinder, and Stonefish's
water layer). A layer that reaches above the water's surface has no echo there, and so no velocity.


The velocity of transducers through water that flows: asked at places along the beams, and weighed together.

Where beam k hears cell m of ping q, at slant ranges s_i along its axis u_k, the transducer x_k moving with v_k,

    along = u_k . (v_k - sum_i w_i current(x_k + s_i u_k)),   axial = (u_k . a) a . (v_k - sum_i w_i current(...))

with a the instrument's axis: the latter is the part of `along` that comes from that axis. A layer of water is one cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from navsense.environment.base import Environment
from navsense.errors import SensorError
from navsense.kernels import kernel
from navsense.motion.base import Motion, MotionBlock
from navsense.rotation import rotate
from navsense.sensors.doppler.beams import Beams
from navsense.sensors.doppler.echoes import compute_transducer_velocity, get_surface_height
from navsense.typing import FloatArray, Quaternions, Times, Vectors
from navsense.validation import validate_types

MAX_SAMPLES = 1000
"""Places along one beam at which the current is asked."""


@dataclass(frozen=True)
class WaterMassLayer:
    """Boundaries `near` and `far` (m along the instrument's axis) and the least size (m) that still gives an echo.

    `samples` places along each beam stand for it; `share` of the way to the bottom is free of the bottom's echo. Raises
    `SensorError`.
    """

    near: float
    far: float
    minimum_size: float = 0.0
    samples: int = 5
    share: float = 0.8

    def __post_init__(self) -> None:
        """Refuse what is no layer."""
        validate_types(self, "of the water layer")
        if not 0.0 <= self.near < math.inf:
            raise SensorError("near boundary of the water layer (m)", self.near, allowed="must be at least 0")
        if not self.near < self.far < math.inf:
            allowed = f"must be beyond the near one, {self.near:g} m"
            raise SensorError("far boundary of the water layer (m)", self.far, allowed=allowed)
        if not 0.0 <= self.minimum_size <= self.far - self.near:
            allowed = f"must be from 0 to the layer's own, {self.far - self.near:g} m"
            raise SensorError("minimum size of the water layer (m)", self.minimum_size, allowed=allowed)
        if not (1 <= self.samples <= MAX_SAMPLES and self.samples == int(self.samples)):
            allowed = f"must be a whole number from 1 to {MAX_SAMPLES}"
            raise SensorError("samples of the water layer", self.samples, allowed=allowed)
        if not 0.0 < self.share <= 1.0:
            allowed = "must be above 0 and at most 1"
            raise SensorError("share of the way to the bottom", self.share, allowed=allowed)

    @cached_property
    def parameters(self) -> FloatArray:
        """Boundaries, least size and share, as kernels take them (4,)."""
        return np.array((self.near, self.far, self.minimum_size, self.share), dtype=np.float64)

    @cached_property
    def weights(self) -> FloatArray:
        """Weights (samples,) of the places along a beam, of sum 1."""
        count, total = int(self.samples), 0.0
        weights = [min(s + 0.5, count - s - 0.5) for s in range(count)]
        for weight in weights:
            total += weight
        return np.array([weight / total for weight in weights])


class LayerVelocities(NamedTuple):
    """Of n pings and k beams, NaN where there is none.

    Velocity through the water along each beam (n, k) m/s, and the boundaries (n,) m along the instrument's axis of the
    layer that gave it.
    """

    velocity: FloatArray
    near: FloatArray
    far: FloatArray


def get_forward_cosines(beams: Beams) -> FloatArray:
    """Return the cosine (k,) of each beam's angle to the instrument's axis.

    Raises `SensorError` where a beam goes back against it: such a one crosses no layer.
    """
    return beams.forward_cosines


@kernel
def _find_bottom_distance(cosine: FloatArray, slant: FloatArray, out: FloatArray) -> None:
    """Write the least of the distances (n,) m along the axis; infinite where all are NaN."""
    for n in range(slant.shape[0]):
        least = math.inf
        for k in range(slant.shape[1]):
            if slant[n, k] == slant[n, k]:
                least = min(least, slant[n, k] * cosine[k])
        out[n] = least


def find_bottom_distance(beams: Beams, slant: FloatArray) -> FloatArray:
    """Return the bottom's distance (n,) m along the instrument's axis in the shallowest beam; infinite without bottom.

    `slant` (n, k) m is each beam's range, NaN where it has none. Raises `SensorError` as `cosines`.
    """
    out = np.empty(slant.shape[0])
    _find_bottom_distance(get_forward_cosines(beams), slant, out)
    return out


@kernel
def _find_far_boundary(parameters: FloatArray, bottom: float) -> float:
    """Return the far boundary (m) above a bottom that far (m) away, NaN where too little is left.

    `sheet` (4,): near and far boundary, least size (m), share of the way to the bottom.
    """
    end = min(parameters[1], parameters[3] * bottom)
    size = end - parameters[0]
    return end if size > 0.0 and size >= parameters[2] else math.nan


@kernel
def _find_far_boundaries(parameters: FloatArray, bottom: FloatArray, out: FloatArray) -> None:
    """Write the layer's far boundaries (n,) m above a bottom (n,) m away."""
    for n in range(bottom.shape[0]):
        out[n] = _find_far_boundary(parameters, bottom[n])


def find_far_boundaries(layer: WaterMassLayer, bottom: FloatArray) -> FloatArray:
    """Return the layer's far boundaries (n,) m above a bottom (n,) m away, NaN where too little is left."""
    far = np.empty(bottom.shape[0])
    _find_far_boundaries(layer.parameters, bottom, far)
    return far


@kernel
def _compute_middle_times(
    parameters: FloatArray,
    slant_ratio: float,
    bottom: FloatArray,
    transmit_time: Times,
    sound_speed: FloatArray,
    fallback: Times,
    out: Times,
) -> None:
    """Write when (s) sound reached the middle of a layer, `slant` metres of beam for each of axis; see `middle`."""
    for n in range(out.shape[0]):
        far = _find_far_boundary(parameters, bottom[n])
        out[n] = (
            max(transmit_time[n] + 0.5 * (parameters[0] + far) * slant_ratio / sound_speed[n], 0.0)
            if far == far
            else fallback[n]
        )


def compute_middle_times(
    beams: Beams,
    layer: WaterMassLayer,
    bottom: FloatArray,
    transmit_time: Times,
    sound_speed: FloatArray,
    fallback: Times,
) -> Times:
    """Return when (n,) s the echoes of a layer left its middle, on average over the beams, not before 0.

    The pings were `sent` (n,) s, `sound` (n,) m/s is the true speed; `fallback` (n,) s where there is no layer.
    """
    out = np.empty(fallback.shape[0])
    _compute_middle_times(layer.parameters, beams.mean_slant_ratio, bottom, transmit_time, sound_speed, fallback, out)
    return out


@kernel
def _write_slant_ranges(
    parameters: FloatArray,
    bottom: FloatArray,
    position: Vectors,
    rotation: Quaternions,
    transducers: Vectors,
    axes: Vectors,
    cosine: FloatArray,
    surface: float,
    near: FloatArray,
    far: FloatArray,
    out: FloatArray,
) -> None:
    """Write boundaries (n,) m and slant ranges (n, 1, k, s) m of the places; the first NaN: it is not all in water.

    `sheet` is as for `_end`.
    """
    samples = out.shape[3]
    for n in range(out.shape[0]):
        far[n] = _find_far_boundary(parameters, bottom[n])
        near[n] = parameters[0] if far[n] == far[n] else math.nan
        for k in range(out.shape[2]):
            c, h = compute_rise(position[n], rotation[n], transducers[k], axes[k])
            end = far[n] / cosine[k]
            out[n, 0, k, 0] = math.nan
            if end == end and c <= surface and c + end * h <= surface:
                for s in range(samples):
                    out[n, 0, k, s] = (near[n] + (s + 0.5) / samples * (far[n] - near[n])) / cosine[k]


def find_layer_velocities(
    beams: Beams, layer: WaterMassLayer, motion: Motion, environment: Environment, time: Times, bottom: FloatArray
) -> LayerVelocities:
    """Return the velocity through the water that each beam hears at the instants (n,) s.

    `bottom` (n,) m is the bottom's distance along the instrument's axis (see `find_bottom_distance`), infinite where
    there is
    none. A world without a current has still water. Raises `SensorError` as `cosines`, and `FieldError` where the
    current cannot be asked.
    """
    truth, near, far = motion.at(time), np.empty(time.shape), np.empty(time.shape)
    laid, surface = (beams.positions, beams.axes, get_forward_cosines(beams)), get_surface_height(environment)

    def write_slant_ranges(part: slice, slant: FloatArray) -> None:
        moved = (bottom[part], truth.position_w[part], truth.rotation_wb[part])
        _write_slant_ranges(layer.parameters, *moved, *laid, surface, near[part], far[part], slant)

    found = sample_water_velocity(beams, truth, environment, time, 1, layer.weights, write_slant_ranges)
    return LayerVelocities(found.along[:, 0], near, far)


_BATCH_SIZE = 1 << 16
"""Places at which the current is asked at once: their arrays stay in the cache."""

_NO_CURRENT = np.empty((0, 3))
"""The velocities of water that does not flow."""

SlantRangeWriter = Callable[[slice, FloatArray], None]
"""Writes of a part of the pings the slant ranges (q, m, k, s) m of the places; the first NaN: the cell is not heard."""


class CellVelocities(NamedTuple):
    """Of q pings velocities (q, m, k) m/s through each cell along the beams, NaN where it is not heard.

    `axial` is the part of it that is along the instrument's axis, (u . a) (a . v).
    """

    along: FloatArray
    axial: FloatArray


@kernel
def compute_rise(
    position: FloatArray, rotation: FloatArray, transducer: FloatArray, axis: FloatArray
) -> tuple[float, float]:
    """Return the height (m) of a transducer in the world, and how much (m) its beam rises in one metre."""
    w, x, y, z = rotation[0], rotation[1], rotation[2], rotation[3]
    up = rotate(w, x, y, z, transducer[0], transducer[1], transducer[2])[2]
    return position[2] + up, rotate(w, x, y, z, axis[0], axis[1], axis[2])[2]


@kernel
def _make_places(
    position: Vectors,
    rotation: Quaternions,
    time: Times,
    transducers: Vectors,
    axes: Vectors,
    slant: FloatArray,
    place: Vectors,
    instant: Times,
) -> int:
    """Write places (count, 3) m and instants of the cells that are heard, `slant` being known; return the count."""
    count = 0
    for q in range(slant.shape[0]):
        w, x, y, z = rotation[q, 0], rotation[q, 1], rotation[q, 2], rotation[q, 3]
        for k in range(slant.shape[2]):
            a, b, c = rotate(w, x, y, z, transducers[k, 0], transducers[k, 1], transducers[k, 2])
            a, b, c = position[q, 0] + a, position[q, 1] + b, position[q, 2] + c
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            for m in range(slant.shape[1]):
                if slant[q, m, k, 0] != slant[q, m, k, 0]:
                    continue
                for s in range(slant.shape[3]):
                    far = slant[q, m, k, s]
                    place[count, 0], place[count, 1], place[count, 2] = a + far * i, b + far * j, c + far * h
                    instant[count] = time[q]
                    count += 1
    return count


@kernel
def _compute_velocities(
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    transducers: Vectors,
    axes: Vectors,
    axis: FloatArray,
    weight: FloatArray,
    slant: FloatArray,
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
            p, r, t = compute_transducer_velocity(w, x, y, z, velocity[q], omega[q], transducers[k])
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            for m in range(along.shape[1]):
                along[q, m, k], axial[q, m, k] = math.nan, math.nan
                if slant[q, m, k, 0] != slant[q, m, k, 0]:
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


def sample_water_velocity(
    beams: Beams,
    truth: MotionBlock,
    environment: Environment,
    time: Times,
    cells: int,
    weight: FloatArray,
    write_slant_ranges: SlantRangeWriter,
) -> CellVelocities:
    """Return the velocity through each of the cells that the beams of pings at the instants (q,) s hear.

    `truth` is the sensor's motion then, `weight` (s,) that of the places of a cell, which `reach` knows. A world
    without a current has still water. Raises `FieldError` where the current cannot be asked.
    """
    shape = (time.shape[0], cells, len(beams.beams))
    found = CellVelocities(np.empty(shape), np.empty(shape))
    rows = max(_BATCH_SIZE // (shape[1] * shape[2] * weight.size), 1)
    for first in range(0, shape[0], rows):
        part = slice(first, first + rows)
        slant = np.empty((*found.along[part].shape, weight.size))
        write_slant_ranges(part, slant)
        place, instant, rotation = np.empty((slant.size, 3)), np.empty(slant.size), truth.rotation_wb[part]
        laid = (truth.position_w[part], rotation, time[part], beams.positions, beams.axes)
        count = _make_places(*laid, slant, place, instant)
        current = _NO_CURRENT
        if environment.current is not None and count:
            current = environment.current.at(place[:count], instant[:count])
        moving = (rotation, truth.velocity_w[part], truth.angular_velocity_b[part], beams.positions)
        _compute_velocities(
            *moving, beams.axes, beams.axis, weight, slant, current, found.along[part], found.axial[part]
        )
    return found

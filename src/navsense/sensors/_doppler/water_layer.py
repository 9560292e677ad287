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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from navsense.environment.base import Environment
from navsense.errors import SensorError
from navsense.kernels import kernel
from navsense.motion.base import Motion
from navsense.sensors._doppler.beams import Beams
from navsense.sensors._doppler.echoes import get_surface_height
from navsense.sensors._doppler.water_velocity import compute_rise, sample_water_velocity
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

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

from navsense.compiled import kernel
from navsense.environment.base import Environment
from navsense.errors import SensorError
from navsense.fields import refuse_types
from navsense.motion.base import Motion
from navsense.sensors._janus.beams import Beams
from navsense.sensors._janus.echoes import surface_of
from navsense.sensors._janus.flow import flow, rises
from navsense.typing import FloatArray, Quaternions, Times, Vectors

MOST_SAMPLES = 1000
"""Places along one beam at which the current is asked."""


@dataclass(frozen=True)
class Layer:
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
        refuse_types(self, "of the water layer")
        if not 0.0 <= self.near < math.inf:
            raise SensorError("near boundary of the water layer (m)", self.near, allowed="must be at least 0")
        if not self.near < self.far < math.inf:
            allowed = f"must be beyond the near one, {self.near:g} m"
            raise SensorError("far boundary of the water layer (m)", self.far, allowed=allowed)
        if not 0.0 <= self.minimum_size <= self.far - self.near:
            allowed = f"must be from 0 to the layer's own, {self.far - self.near:g} m"
            raise SensorError("minimum size of the water layer (m)", self.minimum_size, allowed=allowed)
        if not (1 <= self.samples <= MOST_SAMPLES and self.samples == int(self.samples)):
            allowed = f"must be a whole number from 1 to {MOST_SAMPLES}"
            raise SensorError("samples of the water layer", self.samples, allowed=allowed)
        if not 0.0 < self.share <= 1.0:
            allowed = "must be above 0 and at most 1"
            raise SensorError("share of the way to the bottom", self.share, allowed=allowed)

    @cached_property
    def figures(self) -> FloatArray:
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


class Water(NamedTuple):
    """Of n pings and k beams, NaN where there is none.

    Velocity through the water along each beam (n, k) m/s, and the boundaries (n,) m along the instrument's axis of the
    layer that gave it.
    """

    velocity: FloatArray
    near: FloatArray
    far: FloatArray


def cosines(beams: Beams) -> FloatArray:
    """Return the cosine (k,) of each beam's angle to the instrument's axis.

    Raises `SensorError` where a beam goes back against it: such a one crosses no layer.
    """
    return beams.cosines


@kernel
def _shallowest(cosine: FloatArray, slant: FloatArray, out: FloatArray) -> None:
    """Write the least of the distances (n,) m along the axis; infinite where all are NaN."""
    for n in range(slant.shape[0]):
        least = math.inf
        for k in range(slant.shape[1]):
            if slant[n, k] == slant[n, k]:
                least = min(least, slant[n, k] * cosine[k])
        out[n] = least


def shallowest(beams: Beams, slant: FloatArray) -> FloatArray:
    """Return the bottom's distance (n,) m along the instrument's axis in the shallowest beam; infinite without bottom.

    `slant` (n, k) m is each beam's range, NaN where it has none. Raises `SensorError` as `cosines`.
    """
    out = np.empty(slant.shape[0])
    _shallowest(cosines(beams), slant, out)
    return out


@kernel
def _end(sheet: FloatArray, bottom: float) -> float:
    """Return the far boundary (m) above a bottom that far (m) away, NaN where too little is left.

    `sheet` (4,): near and far boundary, least size (m), share of the way to the bottom.
    """
    end = min(sheet[1], sheet[3] * bottom)
    size = end - sheet[0]
    return end if size > 0.0 and size >= sheet[2] else math.nan


@kernel
def _ends(sheet: FloatArray, bottom: FloatArray, out: FloatArray) -> None:
    """Write the layer's far boundaries (n,) m above a bottom (n,) m away."""
    for n in range(bottom.shape[0]):
        out[n] = _end(sheet, bottom[n])


def ends(layer: Layer, bottom: FloatArray) -> FloatArray:
    """Return the layer's far boundaries (n,) m above a bottom (n,) m away, NaN where too little is left."""
    far = np.empty(bottom.shape[0])
    _ends(layer.figures, bottom, far)
    return far


@kernel
def _middle(
    sheet: FloatArray, slant: float, bottom: FloatArray, sent: Times, sound: FloatArray, otherwise: Times, out: Times
) -> None:
    """Write when (s) sound reached the middle of a layer, `slant` metres of beam for each of axis; see `middle`."""
    for n in range(out.shape[0]):
        far = _end(sheet, bottom[n])
        out[n] = max(sent[n] + 0.5 * (sheet[0] + far) * slant / sound[n], 0.0) if far == far else otherwise[n]


def middle(beams: Beams, layer: Layer, bottom: FloatArray, sent: Times, sound: FloatArray, otherwise: Times) -> Times:
    """Return when (n,) s the echoes of a layer left its middle, on average over the beams, not before 0.

    The pings were `sent` (n,) s, `sound` (n,) m/s is the true speed; `otherwise` (n,) s where there is no layer.
    """
    out = np.empty(otherwise.shape[0])
    _middle(layer.figures, beams.stretch, bottom, sent, sound, otherwise, out)
    return out


@kernel
def _slants(
    sheet: FloatArray,
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
        far[n] = _end(sheet, bottom[n])
        near[n] = sheet[0] if far[n] == far[n] else math.nan
        for k in range(out.shape[2]):
            c, h = rises(position[n], rotation[n], transducers[k], axes[k])
            end = far[n] / cosine[k]
            out[n, 0, k, 0] = math.nan
            if end == end and c <= surface and c + end * h <= surface:
                for s in range(samples):
                    out[n, 0, k, s] = (near[n] + (s + 0.5) / samples * (far[n] - near[n])) / cosine[k]


def water(
    beams: Beams, layer: Layer, motion: Motion, environment: Environment, time: Times, bottom: FloatArray
) -> Water:
    """Return the velocity through the water that each beam hears at the instants (n,) s.

    `bottom` (n,) m is the bottom's distance along the instrument's axis (see `shallowest`), infinite where there is
    none. A world without a current has still water. Raises `SensorError` as `cosines`, and `FieldError` where the
    current cannot be asked.
    """
    truth, near, far = motion.at(time), np.empty(time.shape), np.empty(time.shape)
    laid, surface = (beams.positions, beams.axes, cosines(beams)), surface_of(environment)

    def reach(part: slice, slant: FloatArray) -> None:
        moved = (bottom[part], truth.position_w[part], truth.rotation_wb[part])
        _slants(layer.figures, *moved, *laid, surface, near[part], far[part], slant)

    found = flow(beams, truth, environment, time, 1, layer.weights, reach)
    return Water(found.along[:, 0], near, far)

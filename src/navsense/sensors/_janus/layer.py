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
from navsense.motion.base import Motion, MotionBlock
from navsense.rotation import rotate
from navsense.sensors._janus.beams import Beams
from navsense.sensors._janus.echoes import surface_of, transducer_velocity
from navsense.typing import BoolArray, FloatArray, Quaternions, Times, Vectors

MOST_SAMPLES = 1000
"""Places along one beam at which the current is asked."""

_AT_ONCE = 1 << 16
"""Places at which the current is asked at once: their arrays stay in the cache."""

_STILL = np.empty((0, 3))
"""The velocities of water that does not flow."""


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
def _middle(near: float, slant: float, far: FloatArray, sent: Times, sound: FloatArray, out: Times) -> None:
    """Write when (s) sound reached the middle of a layer, `slant` metres of beam for each of axis; see `middle`."""
    for n in range(far.shape[0]):
        if far[n] == far[n]:
            out[n] = max(sent[n] + 0.5 * (near + far[n]) * slant / sound[n], 0.0)


def middle(beams: Beams, layer: Layer, bottom: FloatArray, sent: Times, sound: FloatArray, otherwise: Times) -> Times:
    """Return when (n,) s the echoes of a layer left its middle, on average over the beams, not before 0.

    The pings were `sent` (n,) s, `sound` (n,) m/s is the true speed; `otherwise` (n,) s where there is no layer.
    """
    out = otherwise.copy()
    _middle(float(layer.near), beams.stretch, ends(layer, bottom), sent, sound, out)
    return out


@kernel
def _places(
    first: int,
    sheet: FloatArray,
    bottom: FloatArray,
    position: Vectors,
    rotation: Quaternions,
    time: Times,
    transducers: Vectors,
    axes: Vectors,
    cosine: FloatArray,
    samples: int,
    surface: float,
    near: FloatArray,
    far: FloatArray,
    place: Vectors,
    instant: Times,
    heard: BoolArray,
) -> int:
    """Write boundaries (n,) m from ping `first` on, and places (count, 3) m and instants where the layer is in water.

    Returns the count; `heard` (n, k) tells which beams it is of. `sheet` is as for `_end`.
    """
    count = 0
    for n in range(first, first + heard.shape[0]):
        w, x, y, z = rotation[n, 0], rotation[n, 1], rotation[n, 2], rotation[n, 3]
        far[n] = _end(sheet, bottom[n])
        near[n] = sheet[0] if far[n] == far[n] else math.nan
        for k in range(axes.shape[0]):
            a, b, c = rotate(w, x, y, z, transducers[k, 0], transducers[k, 1], transducers[k, 2])
            a, b, c = position[n, 0] + a, position[n, 1] + b, position[n, 2] + c
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            end = far[n] / cosine[k]
            heard[n - first, k] = end == end and c <= surface and c + end * h <= surface
            if not heard[n - first, k]:
                continue
            for s in range(samples):
                along = (near[n] + (s + 0.5) / samples * (far[n] - near[n])) / cosine[k]
                place[count, 0], place[count, 1], place[count, 2] = a + along * i, b + along * j, c + along * h
                instant[count] = time[n]
                count += 1
    return count


@kernel
def _through(
    first: int,
    rotation: Quaternions,
    velocity: Vectors,
    omega: Vectors,
    transducers: Vectors,
    axes: Vectors,
    samples: int,
    heard: BoolArray,
    current: Vectors,
    out: FloatArray,
) -> None:
    """Write velocities (n, k) m/s from ping `first` on, through water that flows (count, 3) m/s at the places.

    It is still where count is 0.
    """
    total = 0.0
    for s in range(samples):
        total += min(s + 0.5, samples - s - 0.5)
    count = 0
    for n in range(first, first + heard.shape[0]):
        w, x, y, z = rotation[n, 0], rotation[n, 1], rotation[n, 2], rotation[n, 3]
        for k in range(out.shape[1]):
            out[n, k] = math.nan
            if not heard[n - first, k]:
                continue
            a, b, c = transducer_velocity(w, x, y, z, velocity[n], omega[n], transducers[k])
            if current.shape[0] > 0:
                for s in range(samples):
                    weight = min(s + 0.5, samples - s - 0.5) / total
                    a -= weight * current[count, 0]
                    b -= weight * current[count, 1]
                    c -= weight * current[count, 2]
                    count += 1
            i, j, h = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            out[n, k] = i * a + j * b + h * c


def water(
    beams: Beams, layer: Layer, motion: Motion, environment: Environment, time: Times, bottom: FloatArray
) -> Water:
    """Return the velocity through the water that each beam hears at the instants (n,) s.

    `bottom` (n,) m is the bottom's distance along the instrument's axis (see `shallowest`), infinite where there is
    none. A world without a current has still water. Raises `SensorError` as `cosines`, and `FieldError` where the
    current cannot be asked.
    """
    truth, count, beam_count = motion.at(time), time.shape[0], len(beams.beams)
    found = Water(np.empty((count, beam_count)), np.empty(count), np.empty(count))
    rows = max(_AT_ONCE // (beam_count * layer.samples), 1)
    for first in range(0, count, rows):
        _water(beams, layer, environment, truth, time, bottom, (first, min(first + rows, count)), found)
    return found


def _water(
    beams: Beams,
    layer: Layer,
    environment: Environment,
    truth: MotionBlock,
    time: Times,
    bottom: FloatArray,
    part: tuple[int, int],
    found: Water,
) -> None:
    """Write the velocities of a part of the pings, from the first to before the last."""
    first, samples, rotation = part[0], int(layer.samples), truth.rotation_wb
    heard = np.empty((part[1] - first, found.velocity.shape[1]), dtype=np.bool_)
    place, instant = np.empty((heard.size * samples, 3)), np.empty(heard.size * samples)
    laid = (beams.positions, beams.axes, cosines(beams), samples, surface_of(environment))
    room = (found.near, found.far, place, instant, heard)
    count = _places(first, layer.figures, bottom, truth.position_w, rotation, time, *laid, *room)
    current = _STILL
    if environment.current is not None and count:
        current = environment.current.at(place[:count], instant[:count])
    moving = (rotation, truth.velocity_w, truth.angular_velocity_b, beams.positions, beams.axes)
    _through(first, *moving, samples, heard, current, found.velocity)

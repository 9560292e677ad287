"""Velocity of a Doppler instrument through the water: sampled along the beams, and in the water-mass layer.

The symbols are those of `sensors.doppler`; vectors are in the world. A cell is sampled at the slant ranges r_i with the
weights g_i:

    beam_velocity = u_k . (v_k - sum_i g_i current(x_k + r_i u_k))
    axial_velocity = (u_k . a) a . (v_k - sum_i g_i current(x_k + r_i u_k))

`axial_velocity` is the contribution of the velocity component along the instrument axis. Velocities are positive if
the sensor moves through the water along the beam. A water-mass layer is one cell; a DVL uses only `beam_velocity`.

The boundaries `near` and `far` of a layer are distances l. D is the smallest distance of the bottom among all beams:

    r = l / cos theta_k,   D = min_k r_k cos theta_k
    far' = min(far, share D);   no layer if far' - near < minimum_size or far' <= near
    l_i = near + f_i (far' - near),   f_i = (i + 1/2) / samples,   g_i ~ min(f_i, 1 - f_i)

The weights form a triangle: a pulse as long as the layer receives most from its middle. The side-lobe echo of the
bottom arrives before the echo of the main lobe. Therefore instruments use 80 % of the distance to the bottom (the far
boundary of Teledyne RDI's Pathfinder, and Stonefish's water layer). A beam gives no velocity if the layer reaches above
the water's surface.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from navsense.core.errors import SensorError
from navsense.core.kernels import kernel
from navsense.core.rotation import rotate
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternions, Times, Vectors
from navsense.core.validation import validate_types
from navsense.environment.base import Environment
from navsense.motion.base import Motion, MotionBlock
from navsense.sensors.doppler.beams import Beams
from navsense.sensors.doppler.echoes import KernelTuple, SensorMotion, compute_transducer_velocity, get_surface_height
from navsense.sensors.doppler.specification import validate_counts

MAX_SAMPLES = 1000
"""Largest number of samples of the current along one beam."""

_BATCH_SIZE = 1 << 16
"""Samples of the current that are evaluated together; their arrays fit into the cache."""

_NO_CURRENT = np.empty((0, 3))
"""Velocities of still water."""

SlantRangeWriter = Callable[[slice, FloatArray], None]
"""Writes the slant ranges (q, m, k, s) m of the samples of some pings; the first is NaN for an invalid cell."""


@dataclass(frozen=True)
class WaterMassLayer:
    """The water-mass layer of a water track. Raises `SensorError` for invalid values.

    near, far: boundaries along the instrument axis, m.
    minimum_size: smallest layer that gives a velocity, m.
    samples: number of samples of the current along each beam.
    share: largest far boundary as a fraction of the distance to the bottom. Side lobes disturb the water beyond it.

    >>> ns.sensors.WaterMassLayer(near=3.0, far=9.0)
    WaterMassLayer(near=3.0, far=9.0)
    """

    near: float
    far: float
    minimum_size: float = 0.0
    samples: int = 5
    share: float = 0.8

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        validate_types(self, "of the water layer")
        if not 0.0 <= self.near < math.inf:
            allowed = "must be at least 0"
            raise SensorError("near boundary of the water layer (m)", self.near, allowed=allowed, field="near")
        if not self.near < self.far < math.inf:
            allowed = f"must be beyond the near one, {self.near:g} m"
            raise SensorError("far boundary of the water layer (m)", self.far, allowed=allowed, field="far")
        if not 0.0 <= self.minimum_size <= self.far - self.near:
            allowed = f"must be from 0 to the size of the layer, {self.far - self.near:g} m"
            what = "minimum size of the water layer (m)"
            raise SensorError(what, self.minimum_size, allowed=allowed, field="minimum_size")
        validate_counts(("samples of the water layer", self.samples, 1, MAX_SAMPLES))
        if not 0.0 < self.share <= 1.0:
            allowed = "must be above 0 and at most 1"
            raise SensorError("share of the way to the bottom", self.share, allowed=allowed, field="share")

    @cached_property
    def parameters(self) -> KernelTuple:
        """The fields of `LayerParameters`, for kernels."""
        return float(self.near), float(self.far), float(self.minimum_size), float(self.share)

    @cached_property
    def weights(self) -> FloatArray:
        """Weights (samples,) along a beam; their sum is 1."""
        count = int(self.samples)
        weights = [min(s + 0.5, count - s - 0.5) for s in range(count)]
        total = sum(weights)
        return np.array([weight / total for weight in weights])


class LayerParameters(NamedTuple):
    """The fields of a `WaterMassLayer` that kernels use; distances in m along the instrument axis."""

    near: float
    far: float
    minimum_size: float
    share: float


class LayerVelocities(NamedTuple):
    """Velocities (n, k) m/s along the beams through a layer, and its far boundary (n,) m; NaN without a layer."""

    velocity: FloatArray
    far_boundary: FloatArray


class CellVelocities(NamedTuple):
    """Velocities (q, m, k) m/s through cells, see the module; NaN for an invalid cell."""

    beam_velocity: FloatArray
    axial_velocity: FloatArray


@kernel
def find_bottom_distance(cosines: FloatArray, beam_range: FloatArray) -> FloatArray:
    """Return the distance D (n,) m of the bottom along the instrument axis; infinite without a bottom.

    `cosines` (k,) are the `positive_janus_cosines` of the beams. `beam_range` (n, k) m is NaN or infinite without an
    echo, as in `Echoes`.
    """
    out = np.empty(beam_range.shape[0])
    for n in range(beam_range.shape[0]):
        shallowest = math.inf
        for k in range(beam_range.shape[1]):
            if beam_range[n, k] == beam_range[n, k]:
                shallowest = min(shallowest, beam_range[n, k] * cosines[k])
        out[n] = shallowest
    return out


@kernel
def _find_far_boundary(layer: LayerParameters, bottom_distance: float) -> float:
    """Return the far boundary (m) of a layer above a bottom (m); NaN if the remaining layer is too thin."""
    far_boundary = min(layer.far, layer.share * bottom_distance)
    size = far_boundary - layer.near
    return far_boundary if size > 0.0 and size >= layer.minimum_size else math.nan


@kernel
def find_far_boundaries(layer_parameters: KernelTuple, bottom_distance: FloatArray) -> FloatArray:
    """Return the far boundaries (n,) m of a layer above bottoms (n,) m away; NaN if the remaining layer is too thin.

    `layer_parameters` is the tuple of `WaterMassLayer.parameters`.
    """
    layer, out = LayerParameters(*layer_parameters), np.empty(bottom_distance.shape[0])
    for n in range(out.shape[0]):
        out[n] = _find_far_boundary(layer, bottom_distance[n])
    return out


@kernel
def compute_layer_times_of_validity(
    layer_parameters: KernelTuple,
    bottom_distance: FloatArray,
    transmit_time: Times,
    mean_inverse_janus_cosine: float,
    sound_speed: FloatArray,
    fallback: Times,
) -> Times:
    """Return the times of validity (n,) s of a layer: when sound was in its middle, mean over the beams, at least 0.

    `layer_parameters` is the tuple of `WaterMassLayer.parameters`. `sound_speed` (n,) m/s is the true one.
    `fallback` (n,) s applies without a layer.
    """
    layer, out = LayerParameters(*layer_parameters), np.empty(fallback.shape[0])
    for n in range(out.shape[0]):
        far_boundary = _find_far_boundary(layer, bottom_distance[n])
        middle = transmit_time[n] + 0.5 * (layer.near + far_boundary) * mean_inverse_janus_cosine / sound_speed[n]
        out[n] = max(middle, 0.0) if far_boundary == far_boundary else fallback[n]
    return out


@kernel
def compute_height_and_slope(
    position: FloatArray, rotation: FloatArray, transducer: FloatArray, axis: FloatArray
) -> tuple[float, float]:
    """Return the height (m) of a transducer in the world, and the change of height along its beam per metre."""
    w, x, y, z = rotation[0], rotation[1], rotation[2], rotation[3]
    offset = rotate(w, x, y, z, transducer[0], transducer[1], transducer[2])[2]
    return position[2] + offset, rotate(w, x, y, z, axis[0], axis[1], axis[2])[2]


@kernel
def _make_sample_points(
    position: Vectors,
    rotation: Quaternions,
    time: Times,
    transducers: Vectors,
    axes: Vectors,
    slant_range: FloatArray,
    sample: Vectors,
    instant: Times,
) -> int:
    """Write positions (count, 3) m and instants (s) of the samples of the current in valid cells; return the count."""
    count = 0
    for q in range(slant_range.shape[0]):
        w, x, y, z = rotation[q, 0], rotation[q, 1], rotation[q, 2], rotation[q, 3]
        for k in range(slant_range.shape[2]):
            px, py, pz = rotate(w, x, y, z, transducers[k, 0], transducers[k, 1], transducers[k, 2])
            px, py, pz = position[q, 0] + px, position[q, 1] + py, position[q, 2] + pz
            ux, uy, uz = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            for m in range(slant_range.shape[1]):
                if slant_range[q, m, k, 0] != slant_range[q, m, k, 0]:
                    continue
                for s in range(slant_range.shape[3]):
                    r = slant_range[q, m, k, s]
                    sample[count, 0], sample[count, 1], sample[count, 2] = px + r * ux, py + r * uy, pz + r * uz
                    instant[count] = time[q]
                    count += 1
    return count


@kernel
def _compute_velocities(
    sensor_motion: KernelTuple,
    transducers: Vectors,
    axes: Vectors,
    instrument_axis: FloatArray,
    weights: FloatArray,
    slant_range: FloatArray,
    current: Vectors,
    beam_velocity: FloatArray,
    axial_velocity: FloatArray,
) -> None:
    """Write velocities (q, m, k) m/s through a current (count, 3) m/s at the samples, or through still water."""
    count, motion = 0, SensorMotion(*sensor_motion)
    for q in range(beam_velocity.shape[0]):
        rotation = motion.rotation[q]
        w, x, y, z = rotation[0], rotation[1], rotation[2], rotation[3]
        ax, ay, az = rotate(w, x, y, z, instrument_axis[0], instrument_axis[1], instrument_axis[2])
        for k in range(beam_velocity.shape[2]):
            tx, ty, tz = compute_transducer_velocity(
                w, x, y, z, motion.velocity[q], motion.angular_velocity[q], transducers[k]
            )
            ux, uy, uz = rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])
            for m in range(beam_velocity.shape[1]):
                beam_velocity[q, m, k], axial_velocity[q, m, k] = math.nan, math.nan
                if slant_range[q, m, k, 0] != slant_range[q, m, k, 0]:
                    continue
                vx, vy, vz = tx, ty, tz
                if current.shape[0] > 0:
                    for s in range(weights.shape[0]):
                        vx -= weights[s] * current[count, 0]
                        vy -= weights[s] * current[count, 1]
                        vz -= weights[s] * current[count, 2]
                        count += 1
                beam_velocity[q, m, k] = ux * vx + uy * vy + uz * vz
                axial_velocity[q, m, k] = (ux * ax + uy * ay + uz * az) * (ax * vx + ay * vy + az * vz)


def sample_water_velocity(
    beams: Beams,
    motion_block: MotionBlock,
    environment: Environment,
    time: Times,
    cells: int,
    weights: FloatArray,
    write_slant_ranges: SlantRangeWriter,
) -> CellVelocities:
    """Return the velocity through each cell along the beams of pings at instants (q,) s.

    motion_block: the sensor's motion at these instants.
    weights: (s,), of the samples of a cell.

    Without a current the water is still. Raises `FieldError` if the current has no value there.
    """
    shape = (time.shape[0], cells, len(beams.beams))
    velocities = CellVelocities(np.empty(shape), np.empty(shape))
    batch_pings = max(_BATCH_SIZE // (shape[1] * shape[2] * weights.size), 1)
    for first in range(0, shape[0], batch_pings):
        pings = slice(first, first + batch_pings)
        beam_velocity, rotation = velocities.beam_velocity[pings], motion_block.rotation_wb[pings]
        slant_range = np.empty((*beam_velocity.shape, weights.size))
        write_slant_ranges(pings, slant_range)
        sample, instant = np.empty((slant_range.size, 3)), np.empty(slant_range.size)
        position, transducers, axes = motion_block.position_w[pings], beams.positions, beams.axes
        count = _make_sample_points(position, rotation, time[pings], transducers, axes, slant_range, sample, instant)
        current = _NO_CURRENT
        if environment.current is not None and count:
            current = environment.current.at(sample[:count], instant[:count])
        _compute_velocities(
            (rotation, motion_block.velocity_w[pings], motion_block.angular_velocity_b[pings]),
            transducers,
            axes,
            beams.instrument_axis,
            weights,
            slant_range,
            current,
            beam_velocity,
            velocities.axial_velocity[pings],
        )
    return velocities


@kernel
def _write_slant_ranges(
    layer_parameters: KernelTuple,
    bottom_distance: FloatArray,
    position: Vectors,
    rotation: Quaternions,
    transducers: Vectors,
    axes: Vectors,
    cosines: FloatArray,
    water_surface: float,
    far: FloatArray,
    out: FloatArray,
) -> None:
    """Write far boundaries (n,) m and slant ranges (n, 1, k, s) m of samples.

    The slant range of a first sample is NaN without a layer, and if the layer reaches above the water's surface.
    """
    layer, samples = LayerParameters(*layer_parameters), out.shape[3]
    for n in range(out.shape[0]):
        far[n] = _find_far_boundary(layer, bottom_distance[n])
        for k in range(out.shape[2]):
            height, vertical_slope = compute_height_and_slope(position[n], rotation[n], transducers[k], axes[k])
            far_range = far[n] / cosines[k]
            out[n, 0, k, 0] = math.nan
            is_below_surface = height <= water_surface and height + far_range * vertical_slope <= water_surface
            if far_range == far_range and is_below_surface:
                for s in range(samples):
                    out[n, 0, k, s] = (layer.near + (s + 0.5) / samples * (far[n] - layer.near)) / cosines[k]


def find_layer_velocities(
    beams: Beams,
    layer: WaterMassLayer,
    motion: Motion,
    environment: Environment,
    time: Times,
    bottom_distance: FloatArray,
) -> LayerVelocities:
    """Return the velocity through a layer along each beam at instants (n,) s.

    `bottom_distance` (n,) m is along the instrument axis (`find_bottom_distance`), infinite without a bottom.
    Without a current the water is still. Raises `SensorError` for a Janus angle of 90 degrees or more, `FieldError`
    if the current has no value there.
    """
    motion_block, far = motion.at(time), np.empty(time.shape)
    cosines, water_surface = beams.positive_janus_cosines, get_surface_height(environment)

    def write_slant_ranges(pings: slice, slant_range: FloatArray) -> None:
        # This also writes `far`.
        _write_slant_ranges(
            layer.parameters,
            bottom_distance[pings],
            motion_block.position_w[pings],
            motion_block.rotation_wb[pings],
            beams.positions,
            beams.axes,
            cosines,
            water_surface,
            far[pings],
            slant_range,
        )

    velocities = sample_water_velocity(beams, motion_block, environment, time, 1, layer.weights, write_slant_ranges)
    return LayerVelocities(velocities.beam_velocity[:, 0], far)

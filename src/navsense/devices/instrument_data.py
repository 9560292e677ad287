"""The data that one Doppler instrument sends: velocities of the sensor, attitude, water and stamps.

Vehicle axes are starboard, forward, mast. The vehicle of a DVL is its model (x forward, z up), that of an ADCP is the
instrument. The attitude is the true one at the time of validity, as an ideal compass and inclinometer measure it. For
a DVL it comes from the ground truth of its link and the pose of the link in the model, for an ADCP from its reading.
Stamps are on the clock of the sensor.

The pose of the link between two rows of its ground truth is

    q(t) = q_k exp(w dt + a dt^2 / 2),   p(t) = p_k + v dt + acceleration dt^2 / 2,   dt = t - t_k >= 0

from the last row k at or before t; w and a are in the frame of the link. The error is that of the jerk, dt^3 / 6. Later
rows are not used, so the bytes do not depend on the length of the time slices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.pose import conjugate, normalize
from navsense.core.readings import Reading, Truth
from navsense.core.rotation import multiply_arrays, to_matrix_python
from navsense.core.typing import AnyArray, FloatArray, IntArray, Quaternion, Quaternions, Times, Vectors
from navsense.devices import rdi_frames
from navsense.devices.rdi_frames import RdiBeams
from navsense.messages.base import compute_stamps, get_clock_name
from navsense.messages.dvl import time_of_validity
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import CoordinateSystem
from navsense.sensors.doppler.specification import BOTTOM_TRACK, WATER_TRACK
from navsense.sensors.dvl import Dvl
from navsense.world import MountedSensor, World

TRUTH_ARRAYS = ("position", "orientation", "velocity", "angular_velocity", "acceleration", "angular_acceleration")

FLU_TO_SFM = np.array(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
"""Rotation from forward, left, up to starboard, forward, mast."""

LOWEST_SOUND_SPEED = 1400.0
"""m/s, in natural water: bounds the age of the oldest echo, and with it the length of the history.

`Dvl.max_age` has the lowest speed that a world may have. It would make the history much longer.
"""

HISTORY_MARGIN = 1.0
"""s, added to the oldest echo: for slower sound, and for a stuck sensor, which repeats an older echo."""


@dataclass(eq=False)
class LinkHistory:
    """The ground truth of a link over the last `duration` (s)."""

    duration: float
    time: Times = field(default_factory=lambda: np.empty(0), init=False)
    arrays: dict[str, FloatArray] = field(default_factory=dict, init=False)

    def add(self, truth: Truth, start: float) -> None:
        """Append rows. Later queries are at most `duration` before `start` (s), so older rows are dropped."""
        if not truth.time.size:
            return
        first = int(np.searchsorted(self.time, start - self.duration, side="right")) - 1
        rows = slice(max(first, 0), None)
        for name in TRUTH_ARRAYS:
            array = getattr(truth, name)
            self.arrays[name] = np.concatenate((self.arrays[name][rows], array)) if name in self.arrays else array
        self.time = np.concatenate((self.time[rows], truth.time))

    def at(self, time: Times) -> tuple[Vectors, Quaternions]:
        """Return positions (n, 3) m and orientations (n, 4), link to world, at times (n,) s.

        Raises `RecordingError` for times without truth.
        """
        row = np.searchsorted(self.time, time, side="right") - 1
        if time.size and (not self.time.size or int(row.min()) < 0):
            allowed = "must be recorded from before the reading"
            raise RecordingError("ground truth at (s)", float(time.min()), allowed=allowed)
        dt = (time - self.time[row])[:, None]
        position = self.arrays["position"][row] + self.arrays["velocity"][row] * dt
        position += 0.5 * self.arrays["acceleration"][row] * dt * dt
        vector = self.arrays["angular_velocity"][row] * dt + 0.5 * self.arrays["angular_acceleration"][row] * dt * dt
        return position, apply_rotation_vectors(self.arrays["orientation"][row], vector)


def apply_rotation_vectors(quaternions: Quaternions, vectors: Vectors) -> Quaternions:
    """Return orientations (n, 4) rotated by rotation vectors (n, 3) rad in their own frame."""
    angle = np.sqrt((vectors * vectors).sum(axis=1))
    scale = np.where(angle < 1e-8, 0.5, np.sin(0.5 * angle) / np.maximum(angle, 1e-8))
    components = (np.cos(0.5 * angle), *(scale[:, None] * vectors).T)
    return multiply_arrays(quaternions, np.stack(components, axis=-1))


@dataclass(frozen=True, eq=False)
class ProfileData:
    """Velocities of the water relative to the instrument, of n ensembles of m cells and k beams.

    velocity: (n, m, 3) m/s in the `coordinates` of the sensor.
    beam_velocity: (n, m, k) m/s along the beams.
    error_velocity: (n, m) m/s.
    solutions, bottom_solutions: (n, m, 4) and (n, 4), fractions of the pings by outcome, as in an `Adcp`.
    beam_good, bottom_good: (n, m, k) and (n, k), fractions of the pings with a good beam.
    echo: (n, m, k) dB.
    correlation: (n, m, k) from 0 to 1.
    """

    velocity: FloatArray
    beam_velocity: FloatArray
    error_velocity: FloatArray
    solutions: FloatArray
    beam_good: FloatArray
    echo: FloatArray
    correlation: FloatArray
    bottom_good: FloatArray
    bottom_solutions: FloatArray


@dataclass(frozen=True, eq=False)
class InstrumentData:
    """n pings or ensembles of k beams of one sensor; NaN for unknown values.

    stamp: (n,) ns, time of validity.
    arrival_stamp: (n,) ns, time at which the receiver gets the data: output time plus latency.
    attitude: (n, 3, 3), rotation from vehicle axes to east, north, up.
    depth, altitude: (n,) m.
    velocity_over_bottom, velocity_through_water: (n, 3) m/s of the sensor, in vehicle axes.
    covariance: (n, 3, 3) m^2/s^2 of the reported velocity.
    bottom_beam_velocity, water_beam_velocity: (n, k) m/s of good beams, positive if the sensor moves along the beam;
        also in a ping whose velocity was rejected or not reported.
    beam_range: (n, k) m along the beams.
    sound_speed: (n,) m/s.
    temperature, salinity, pressure: (n,) K, g/kg and Pa, of the water.
    """

    stamp: IntArray
    arrival_stamp: IntArray
    attitude: FloatArray
    depth: FloatArray
    altitude: FloatArray
    velocity_over_bottom: FloatArray
    velocity_through_water: FloatArray
    covariance: FloatArray
    bottom_beam_velocity: FloatArray
    water_beam_velocity: FloatArray
    beam_range: FloatArray
    sound_speed: FloatArray
    temperature: FloatArray
    salinity: FloatArray
    pressure: FloatArray
    profile: ProfileData | None = None

    def __len__(self) -> int:
        """Return the number of pings or ensembles."""
        return int(self.stamp.size)


def to_matrices(quaternions: Quaternions) -> FloatArray:
    """Return the rotation matrices (n, 3, 3) of quaternions (n, 4)."""
    w, x, y, z = quaternions.T
    return np.stack(to_matrix_python(w, x, y, z), axis=-1).reshape(-1, 3, 3)


def _to_matrix(rotation: Quaternion) -> FloatArray:
    """Return the rotation matrix (3, 3) of a quaternion."""
    return np.array(to_matrix_python(*normalize(rotation))).reshape(3, 3)


def rotate_vectors(vectors: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return vectors (..., 3) rotated by one matrix (3, 3), or each by its own (n, 3, 3)."""
    rotated: FloatArray = (matrix @ vectors[..., None])[..., 0]
    return rotated


class DopplerInstrument:
    """One Doppler instrument of a world."""

    def __init__(self, world: World, sensor: MountedSensor) -> None:
        """Store the sensor, whose specification is a `Dvl` or an `Adcp`."""
        if not isinstance(sensor.spec, Dvl | Adcp):
            raise TypeError(type(sensor.spec))
        self.world, self.sensor = world, sensor
        self.spec: Dvl | Adcp = sensor.spec
        if isinstance(self.spec, Adcp):
            max_age = self.spec.duration
        else:
            max_age = 2.0 * self.spec.maximum_range / LOWEST_SOUND_SPEED + self.spec.processing_time
        self._history = LinkHistory(HISTORY_MARGIN + max_age)

    @cached_property
    def link_to_vehicle(self) -> FloatArray:
        """The rotation (3, 3) from the frame of the sensor's link to vehicle axes: those of the model."""
        link = self.world.model(self.sensor.model).link(self.sensor.link)
        return np.asarray(FLU_TO_SFM @ _to_matrix(link.pose.rotation))

    @cached_property
    def sensor_to_vehicle(self) -> FloatArray:
        """The rotation (3, 3) from the sensor's frame to vehicle axes."""
        mounting = self.link_to_vehicle @ _to_matrix(self.sensor.pose.rotation)
        if isinstance(self.spec, Adcp):
            reference = _to_matrix(self.spec.reference)
            is_upright = float((mounting @ reference.T)[2, 2]) >= 0.0
            # An ADCP that is mounted upside down has forward and mast reversed.
            flip = np.diag((1.0, 1.0, 1.0) if is_upright else (-1.0, 1.0, -1.0))
            return np.asarray(flip @ FLU_TO_SFM @ reference)
        return np.asarray(mounting)

    @cached_property
    def output_to_vehicle(self) -> FloatArray:
        """The rotation (3, 3) from the output frame of the sensor (`reference`) to vehicle axes."""
        return np.asarray(self.sensor_to_vehicle @ _to_matrix(conjugate(self.spec.reference)))

    @cached_property
    def beam_axes(self) -> FloatArray:
        """Unit vectors (k, 3) along the beams in vehicle axes."""
        return np.asarray(self.spec.beams.axes @ self.sensor_to_vehicle.T)

    @cached_property
    def rdi_beams(self) -> RdiBeams:
        """The four beams as RDI's beams 1 to 4. Raises `RecordingError` for other beams."""
        return rdi_frames.find_rdi_beams(self.beam_axes, self.sensor.name)

    def add_truth(self, truth: Mapping[str, Truth], start: float) -> None:
        """Add the ground truth of a time slice, before its readings, which begin at `start` (s)."""
        if self.sensor.link in truth:
            self._history.add(truth[self.sensor.link], start)

    def convert_reading(self, reading: Reading) -> InstrumentData:
        """Return the data of the emitted rows. The reading must have all outputs of the sensor.

        Raises `RecordingError`.
        """
        rows, clock = np.flatnonzero(reading.emitted), get_clock_name(self.sensor)
        arrays = {name: reading.arrays[name][rows] for name in reading.arrays}
        validity = time_of_validity(reading)
        # A stuck sensor repeats a ping, and its time of validity may be before the history.
        oldest = np.maximum(reading.time - self._history.duration, 0.0)
        position, orientation = self._history.at(np.maximum(validity, oldest)[rows])
        lever_arm = rotate_vectors(np.tile(self.sensor.pose.position, (rows.size, 1)), to_matrices(orientation))
        if isinstance(self.spec, Adcp):
            data = self._convert_adcp(self.spec, arrays)
        else:
            data = self._convert_dvl(arrays, orientation)
        stamp, arrival_stamp = (compute_stamps(reading, clock, time)[rows] for time in (validity, reading.arrival))
        return InstrumentData(stamp, arrival_stamp, **data, **self._evaluate_water(position + lever_arm))

    def _convert_dvl(self, arrays: Mapping[str, AnyArray], orientation: Quaternions) -> dict[str, Any]:
        """Return the data of a DVL; `orientation` (n, 4) is link to world."""
        rotation = self.output_to_vehicle
        # This heading is that of the world's x axis, counter-clockwise from east.
        heading = self.world.environment.heading
        enu_rotation = np.array((math.cos(0.5 * heading), 0.0, 0.0, math.sin(0.5 * heading)))
        orientation_enu, mode = multiply_arrays(enu_rotation, orientation), arrays["velocity_mode"]
        is_bottom, has_track = (mode == BOTTOM_TRACK)[:, None], (mode > 0)[:, None, None]
        # Messages of a dialect have no `water_velocity`.
        through_water = np.where((mode == WATER_TRACK)[:, None], arrays["velocity"], arrays["water_velocity"])
        covariance = np.where(has_track, arrays["velocity_covariance"], arrays["water_velocity_covariance"])
        return {
            "attitude": to_matrices(orientation_enu) @ self.link_to_vehicle.T,
            "velocity_over_bottom": np.where(is_bottom, rotate_vectors(arrays["velocity"], rotation), math.nan),
            "velocity_through_water": rotate_vectors(through_water, rotation),
            "covariance": rotation @ covariance @ rotation.T,
            "bottom_beam_velocity": arrays["beam_velocity"],
            **{name: arrays[name] for name in ("water_beam_velocity", "beam_range", "altitude", "sound_speed")},
        }

    def _convert_adcp(self, spec: Adcp, arrays: Mapping[str, AnyArray]) -> dict[str, Any]:
        """Return the data of an ADCP. Its altitude is the mean over the beams with its own attitude.

        Raises `RecordingError` if an array is missing.
        """
        if missing := [output.name for output in spec.outputs if output.name not in arrays]:
            remedy = "record the world again; an older version made this recording"
            subject = f"arrays of sensor {self.sensor.name!r}"
            raise RecordingError(subject, f"without {', '.join(missing)}", allowed="must be complete", remedy=remedy)
        attitude = to_matrices(arrays["orientation"]) @ self.output_to_vehicle.T
        velocity, beam_velocity, beam_range = (
            arrays[f"bottom_{name}"] for name in ("velocity", "beam_velocity", "range")
        )
        return {
            "attitude": attitude,
            "velocity_over_bottom": self._to_vehicle_axes(spec, velocity, beam_velocity, attitude),
            "velocity_through_water": np.full(velocity.shape, math.nan),
            "covariance": np.full((*velocity.shape, 3), math.nan),
            "bottom_beam_velocity": beam_velocity,
            "water_beam_velocity": np.full(beam_velocity.shape, math.nan),
            "beam_range": beam_range,
            "altitude": _mean_finite(-beam_range * rotate_vectors(self.beam_axes, attitude[:, None])[..., 2]),
            "sound_speed": arrays["sound_speed"],
            "profile": ProfileData(
                arrays["relative_velocity" if spec.motion_compensated else "velocity"],
                *(arrays[name] for name in ("beam_velocity", "error_velocity", "solutions", "beam_percent_good")),
                *(arrays[name] for name in ("echo", "correlation", "bottom_percent_good", "bottom_solutions")),
            ),
        }

    def _to_vehicle_axes(
        self, spec: Adcp, velocity: Vectors, beam_velocity: FloatArray, attitude: FloatArray
    ) -> Vectors:
        """Return the velocities (n, 3) of an ADCP, given in its coordinates, in vehicle axes."""
        if spec.coordinates is CoordinateSystem.INSTRUMENT:
            return rotate_vectors(velocity, self.output_to_vehicle)
        if spec.coordinates is CoordinateSystem.BEAM:
            order, angle, rotation = self.rdi_beams[:3]
            return -rotate_vectors(rdi_frames.solve_rdi_velocity(beam_velocity[:, order], angle)[:, :3], rotation)
        if spec.coordinates is CoordinateSystem.SHIP:
            heading = rdi_frames.compute_angles(attitude)[0]
            level = np.zeros_like(heading)
            ship_rotation = rdi_frames.make_rotation(heading, level, level)
            velocity = rotate_vectors(rotate_vectors(velocity, FLU_TO_SFM), ship_rotation)
        return rotate_vectors(velocity, attitude.transpose(0, 2, 1))

    def to_rdi_axes(self, spec: Adcp, velocity: FloatArray) -> FloatArray:
        """Return velocities (n, m, 3) of an ADCP in RDI's axes of the same coordinates."""
        if spec.coordinates is CoordinateSystem.EARTH:
            return velocity
        if spec.coordinates is CoordinateSystem.SHIP:
            return rotate_vectors(velocity, FLU_TO_SFM)
        return rotate_vectors(velocity, self.rdi_beams.rotation.T @ self.output_to_vehicle)

    def _evaluate_water(self, position: Vectors) -> dict[str, Any]:
        """Return depth (m, below the surface or the world's 0), temperature, salinity and pressure of the water."""
        water = self.world.environment.water
        depth = np.maximum((water.surface if water else 0.0) - position[:, 2], 0.0)
        if water is None:
            unknown = np.full(depth.shape, math.nan)
            return {"depth": depth, "temperature": unknown, "salinity": unknown, "pressure": unknown}
        return {
            "depth": depth,
            "temperature": water.temperature_at(depth),
            "salinity": water.salinity_at(depth),
            "pressure": water.pressure_at(depth),
        }


def _mean_finite(values: FloatArray) -> FloatArray:
    """Return the means (n,) of the finite values in each row (n, k); NaN for a row without them."""
    is_finite = np.isfinite(values)
    count = is_finite.sum(axis=1)
    row_sum = np.where(is_finite, values, 0.0).sum(axis=1)
    return np.where(count > 0, row_sum / np.maximum(count, 1), math.nan)

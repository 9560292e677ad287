"""What a Doppler instrument told, as device formats have it: velocities of the vehicle in its own axes, attitude, time.

Vehicle axes are starboard, forward, mast: of a DVL those of its link (x forward, z up), of an ADCP those of its
instrument. The attitude is the true one at the time of validity, what a compass and inclinometers without errors show:
of a DVL by the truth of its link (`history`), of an ADCP as it tells it. Stamps are what the sensor's clock showed
then, and when it told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from navsense.devices import rdi_frames
from navsense.devices.link_history import LinkHistory, heading_quaternion
from navsense.devices.rdi_frames import BeamMounting
from navsense.errors import RecordingError
from navsense.messages.base import compute_stamps, get_clock_name
from navsense.pose import conjugate, normalize
from navsense.rotation import matrix_python, multiply_arrays
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import CoordinateSystem
from navsense.sensors.dvl import Dvl
from navsense.series import Reading, Truth
from navsense.typing import AnyArray, FloatArray, IntArray, Quaternion, Quaternions, Vectors
from navsense.world import MountedSensor, World

TRACK_ARRAYS = ("velocity", "velocity_covariance", "beam_velocity")
"""Arrays of a DVL that each of its tracks has; the water's begin with `water_`."""

BOTTOM, WATER = 1, 2
"""Values of `velocity_mode`."""

VEHICLE = np.array(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
"""Takes forward, left, up to starboard, forward, mast."""

SLOWEST_SOUND = 1400.0
"""m/s: by which the oldest echo is reckoned."""


@dataclass(frozen=True, eq=False)
class ProfileData:
    """Velocities of the water against the instrument in m cells: (n, m, 3) in `coordinates`, (n, m, k) along beams.

    `error` (n, m) m/s, `echo` (n, m, k) dB, `correlation` (n, m, k) from 0 to 1; shares of the pings: in which a beam
    was good, `beam_good` (n, m, k), `bottom_good` (n, k), and by how they came out, `solutions` (n, m, 4) and
    `bottom_solutions` (n, 4), as an `Adcp` counts them.
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
    """n pings or ensembles of k beams that one sensor told, NaN where nothing is known.

    `stamp`, `sent` (n,) ns; `attitude` (n, 3, 3) takes vehicle axes to east, north, up; `depth`, `altitude` (n,) m;
    `bottom`, `water` (n, 3) m/s of the vehicle over the one and through the other, in vehicle axes, and `covariance`
    (n, 3, 3) of what is told first; `bottom_along`, `water_along` (n, k) m/s along the beams; `range` (n, k) m, slant;
    `temperature` K, `pressure` Pa.
    """

    stamp: IntArray
    transmission_stamp: IntArray
    attitude: FloatArray
    depth: FloatArray
    altitude: FloatArray
    bottom: FloatArray
    water: FloatArray
    covariance: FloatArray
    bottom_along: FloatArray
    water_along: FloatArray
    range: FloatArray
    sound_speed: FloatArray
    temperature: FloatArray
    salinity: FloatArray
    pressure: FloatArray
    profile: ProfileData | None = None

    def __len__(self) -> int:
        """Return how many there are."""
        return int(self.stamp.size)


def to_matrices(quaternions: Quaternions) -> FloatArray:
    """Return the rotation matrices (n, 3, 3) of quaternions (n, 4)."""
    w, x, y, z = quaternions.T
    rows = matrix_python(w, x, y, z)
    return np.stack(rows, axis=-1).reshape(-1, 3, 3)


def _to_matrix(rotation: Quaternion) -> FloatArray:
    """Return the rotation matrix (3, 3) of a quaternion."""
    return np.array(matrix_python(*normalize(rotation))).reshape(3, 3)


def rotate_vectors(vectors: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return vectors (..., 3) turned by one matrix (3, 3), or each by its own (n, 3, 3)."""
    found: FloatArray = (matrix @ vectors[..., None])[..., 0]
    return found


class DopplerInstrument:
    """One Doppler instrument of a world."""

    def __init__(self, world: World, sensor: MountedSensor) -> None:
        """Note it. Its sheet is a `Dvl` or an `Adcp`."""
        self.world, self.sensor = world, sensor
        spec = sensor.spec
        age = spec.duration if isinstance(spec, Adcp) else 0.0
        if isinstance(spec, Dvl):
            age = 2.0 * spec.maximum_range / SLOWEST_SOUND + spec.processing_time
        self._history = LinkHistory(1.0 + age)

    @cached_property
    def vehicle_rotation(self) -> FloatArray:
        """The rotation (3, 3) from the sensor's frame to vehicle axes."""
        mounting, spec = _to_matrix(self.sensor.pose.rotation), self.sensor.spec
        if isinstance(spec, Adcp):
            own = _to_matrix(spec.reference)
            is_upright = float((mounting @ own.T)[2, 2]) >= 0.0
            flip = np.diag((1.0, 1.0, 1.0) if is_upright else (-1.0, 1.0, -1.0))
            return np.asarray(flip @ VEHICLE @ own)
        return np.asarray(VEHICLE @ mounting)

    @cached_property
    def beam_axes(self) -> FloatArray:
        """Unit vectors (k, 3) along the beams in vehicle axes."""
        spec = self.sensor.spec
        if not isinstance(spec, Dvl | Adcp):
            raise TypeError(type(spec))
        return np.asarray(spec.beams.axes @ self.vehicle_rotation.T)

    @cached_property
    def mounting(self) -> BeamMounting:
        """How the beams are RDI's four. Raises `RecordingError` where they are not."""
        return rdi_frames.find_mounting(self.beam_axes, self.sensor.name)

    def add_truth(self, truth: Mapping[str, Truth], start: float) -> None:
        """Take the truth of a slab, which comes before what is told in it from `start` (s) on."""
        if self.sensor.link in truth:
            self._history.add(truth[self.sensor.link], start)

    def sample(self, reading: Reading) -> InstrumentData:
        """Return what was told of a slab, readings that were not emitted left out. Raises `RecordingError`."""
        rows, clock = np.flatnonzero(reading.emitted), get_clock_name(self.sensor)
        arrays = {name: reading.arrays[name][rows] for name in reading.arrays}
        validity = reading.arrays["time_of_validity"]
        about = np.where(np.isfinite(validity), validity, reading.time)
        # One that is stuck repeats an echo of long ago.
        oldest = np.maximum(reading.time - self._history.duration, 0.0)
        place, turn = self._history.at(np.maximum(about, oldest)[rows])
        arm = rotate_vectors(np.tile(self.sensor.pose.position, (rows.size, 1)), to_matrices(turn))
        data = self._sample_adcp(arrays) if isinstance(self.sensor.spec, Adcp) else self._sample_dvl(arrays, turn)
        stamp, sent = (compute_stamps(reading, clock, when)[rows] for when in (about, reading.arrival))
        return InstrumentData(stamp, sent, **data, **self._sample_water(place + arm))

    def _sample_dvl(self, arrays: Mapping[str, AnyArray], turn: Quaternions) -> dict[str, Any]:
        """Return what a DVL's arrays say, of a link at attitudes (n, 4) in the world."""
        spec = self.sensor.spec
        if not isinstance(spec, Dvl):
            raise TypeError(type(spec))
        own = self.vehicle_rotation @ _to_matrix(conjugate(spec.reference))
        # Messages of one that does not track the water say nothing of it.
        arrays = {**{f"water_{name}": np.full_like(arrays[name], math.nan) for name in TRACK_ARRAYS}, **arrays}
        earth = multiply_arrays(heading_quaternion(self.world.environment.heading), turn)
        velocity, over = rotate_vectors(arrays["velocity"], own), (arrays["velocity_mode"] == BOTTOM)[:, None]
        first, is_none = arrays["velocity_covariance"], ~(arrays["velocity_mode"] > 0)[:, None, None]
        through = np.where((arrays["velocity_mode"] == WATER)[:, None], arrays["velocity"], arrays["water_velocity"])
        return {
            "attitude": to_matrices(earth) @ VEHICLE.T,
            "bottom": np.where(over, velocity, math.nan),
            "water": rotate_vectors(through, own),
            "covariance": own @ np.where(is_none, arrays["water_velocity_covariance"], first) @ own.T,
            "bottom_along": np.where(over, arrays["beam_velocity"], math.nan),
            "water_along": arrays["water_beam_velocity"],
            "range": arrays["beam_range"],
            "altitude": arrays["altitude"],
            "sound_speed": arrays["sound_speed"],
        }

    def _sample_adcp(self, arrays: Mapping[str, AnyArray]) -> dict[str, Any]:
        """Return what an ADCP's arrays say; its altitude is the mean of its beams' by its own attitude.

        Raises `RecordingError` where some are missing.
        """
        spec = self.sensor.spec
        if not isinstance(spec, Adcp):
            raise TypeError(type(spec))
        if missing := [output.name for output in spec.outputs if output.name not in arrays]:
            what, remedy = f"arrays of {self.sensor.name!r}", "record it anew: this recording is of an older version"
            raise RecordingError(what, f"without {', '.join(missing)}", allowed="must all be recorded", remedy=remedy)
        own = self.vehicle_rotation @ _to_matrix(conjugate(spec.reference))
        attitude = to_matrices(arrays["orientation"]) @ own.T
        bottom, along, slant = (arrays[f"bottom_{name}"] for name in ("velocity", "beam_velocity", "range"))
        nothing = np.full(bottom.shape, math.nan)
        return {
            "attitude": attitude,
            "bottom": self._to_vehicle_axes(spec, bottom, along, attitude),
            "water": nothing,
            "covariance": np.full((*bottom.shape, 3), math.nan),
            "bottom_along": along,
            "water_along": np.full(along.shape, math.nan),
            "range": slant,
            "altitude": _mean_of_known(-slant * rotate_vectors(self.beam_axes, attitude[:, None])[..., 2]),
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
        """Return velocities (n, 3) that an ADCP tells in its coordinates, in vehicle axes."""
        if spec.coordinates is CoordinateSystem.INSTRUMENT:
            return rotate_vectors(velocity, self.vehicle_rotation @ _to_matrix(conjugate(spec.reference)))
        if spec.coordinates is CoordinateSystem.BEAM:
            order, angle, turn = self.mounting[:3]
            return -rotate_vectors(rdi_frames.solve_velocity(beam_velocity[:, order], angle)[:, :3], turn)
        earth = velocity
        if spec.coordinates is CoordinateSystem.SHIP:
            heading = rdi_frames.compute_angles(attitude)[0]
            level = np.zeros_like(heading)
            earth = rotate_vectors(rotate_vectors(velocity, VEHICLE), rdi_frames.make_rotation(heading, level, level))
        return rotate_vectors(earth, attitude.transpose(0, 2, 1))

    def to_rdi_axes(self, velocity: FloatArray) -> FloatArray:
        """Return velocities (n, m, 3) as an ADCP tells them, in RDI's axes of the same coordinates."""
        spec = self.sensor.spec
        if not isinstance(spec, Adcp) or spec.coordinates is CoordinateSystem.EARTH:
            return velocity
        if spec.coordinates is CoordinateSystem.SHIP:
            return rotate_vectors(velocity, VEHICLE)
        own = self.vehicle_rotation @ _to_matrix(conjugate(spec.reference))
        return rotate_vectors(velocity, self.mounting.rotation.T @ own)

    def _sample_water(self, position: Vectors) -> dict[str, Any]:
        """Return depth (m, below the surface or the world's 0), temperature, salinity and pressure of the water."""
        water = self.world.environment.water
        depth = np.maximum((water.surface if water else 0.0) - position[:, 2], 0.0)
        if water is None:
            nothing = np.full(depth.shape, math.nan)
            return {"depth": depth, "temperature": nothing, "salinity": nothing, "pressure": nothing}
        warmth, salt = water.temperature_at(depth), water.salinity_at(depth)
        return {"depth": depth, "temperature": warmth, "salinity": salt, "pressure": water.pressure_at(depth)}


def _mean_of_known(values: FloatArray) -> FloatArray:
    """Return the means (n,) of what is known in each row (n, k), NaN where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis=1)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)

"""Dead reckoning with a gyroscope and a DVL, and the covariance of its horizontal error.

The rotation is integrated from the gyroscope, from a start with errors. The position is the integral of the rotated
velocity over ground. `reduce` is for campaigns::

    reduce = "navsense.examples.dead_reckoning:reduce"

The error of the position is linear in the errors of the instruments. Let R (3, 3) be the rotation from the DVL to the
world, v the velocity (m/s) in the world, and p its integral. The error of the position is

    e = e_0 + integral of (d x v + R (s u + m x u + o + w)) dt,      u = R^T v
    d = d_0 + integral of R (b + c * g + n) dt

d (rad) is the error of the rotation in the world frame. The gyroscope reads g (rad/s) with the bias b, the scale error
c and the white noise n. The DVL has the scale error s, the misalignment m, the offset o and the white noise w. The
specifications of the sensors have the standard deviation of each. So the covariance of e is a sum of products of
integrals. The flicker noise of the gyroscope counts as a bias with its deviation from 1 s to 10 000 s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from navsense.analysis.monte_carlo import compute_nees
from navsense.core.errors import SimulationError
from navsense.core.geodesy import compute_earth_rate_w
from navsense.core.pose import Pose
from navsense.core.typing import FloatArray, Times
from navsense.runner.run import Run
from navsense.sensors.dvl import Dvl
from navsense.sensors.imu import Imu
from navsense.sensors.range import Cone

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

START_POSITION = 0.5
"""Standard deviation (m) of the initial position, in each axis."""

START_ROTATION = (math.radians(0.1), math.radians(0.1), math.radians(1.0))
"""Standard deviations (rad) of the initial rotation about the axes of the world: those of a compass and of a level."""

FLICKER = math.sqrt(math.log(1e4) / math.pi)
"""Deviation of unit flicker noise from 1 s to 10 000 s. Its two-sided density is 1 / (2 pi f) (IEEE 952-1997, C)."""

BOTTOM_TRACK = 1.0
"""Value of `velocity_mode` of a velocity over ground."""

STEP = 10.0
"""Time (s) between the rows of the result."""


@dataclass(frozen=True)
class EstimatedTrack:
    """An estimated track every `STEP` seconds, and at the last ping.

    time: (n,) s, of pings.
    position, truth: (n, 2) m, east and north.
    covariance: (n, 2, 2) m^2.
    distance: m, the length of the true horizontal track, with straight lines between pings.
    """

    time: Times
    position: FloatArray
    covariance: FloatArray
    truth: FloatArray
    distance: float

    @property
    def error(self) -> FloatArray:
        """The horizontal error (n, 2) m."""
        return self.position - self.truth


def reduce(run: Run) -> Mapping[str, Any]:
    """Return the row of a campaign: the error of the track over time, its deviation, and its NEES.

    time: (n,) s.
    error: (n, 2) m, east and north.
    stddev: (n, 2) m, from the covariance of the estimate.
    nees: (n,), with 2 degrees of freedom.
    distance: m, the length of the true horizontal track, with straight lines between pings.
    final_error: m, the horizontal error at the last ping.
    """
    track = estimate_track(run)
    return {
        "time": track.time,
        "error": track.error,
        "stddev": np.sqrt(np.diagonal(track.covariance, axis1=1, axis2=2)),
        "nees": compute_nees(track.error, track.covariance),
        "distance": track.distance,
        "final_error": float(np.linalg.norm(track.error[-1])),
    }


def _find_sensor(run: Run, kind: type[Any], noun: str) -> Any:
    """Return the only sensor of a class. Raises `SimulationError` for another number of them."""
    sensors = [sensor for sensor in run.session.world.sensors if isinstance(sensor.spec, kind)]
    if len(sensors) != 1:
        raise SimulationError(f"number of {noun}s", len(sensors), allowed="dead reckoning needs exactly one")
    return sensors[0]


def estimate_track(run: Run) -> EstimatedTrack:
    """Return the track of the DVL. Raises `SimulationError` unless the world has one IMU and one DVL."""
    from scipy.spatial.transform import Rotation

    imu, dvl = _find_sensor(run, Imu, "IMU"), _find_sensor(run, Dvl, "DVL")
    time, velocity_b = _read_velocities(run, dvl)
    truth = run.truth[dvl.link]
    draws = np.random.default_rng((run.session.seed, run.session.runs[0]))
    rotation_error, start_error = draws.normal(size=3) * START_ROTATION, draws.normal(size=2) * START_POSITION
    start = _find_rotation(truth, time[0]) * _make_rotation(dvl.pose)
    steps = _integrate_gyroscope(run, imu, dvl, time)
    earth_rate_w = _compute_earth_rate(run) if imu.spec.earth_rotation else np.zeros(3)
    matrices = integrate_rotation(time, Rotation.from_rotvec(rotation_error) * start, steps, earth_rate_w)
    path = _integrate(time, _rotate(matrices, velocity_b))
    covariance = _compute_covariance(time, matrices, velocity_b, steps, imu.spec, dvl.spec)
    true_position = np.stack([np.interp(time, truth.time, truth.position[:, axis]) for axis in (0, 1)], axis=1)
    distance = float(np.linalg.norm(np.diff(true_position, axis=0), axis=1).sum())
    rows = np.unique([*np.searchsorted(time, np.arange(STEP, time[-1], STEP)), time.size - 1])
    position = true_position[0] + start_error + path[:, :2]
    return EstimatedTrack(time[rows], position[rows], covariance[rows], true_position[rows], distance)


def _make_rotation(pose: Pose) -> Rotation:
    """Return the rotation of a pose."""
    from scipy.spatial.transform import Rotation

    w, x, y, z = pose.rotation
    return Rotation.from_quat((x, y, z, w))


def _compute_earth_rate(run: Run) -> FloatArray:
    """Return the rotation rate of the earth (rad/s) in the world frame."""
    origin = run.session.world.environment.origin
    return np.zeros(3) if origin is None else np.array(compute_earth_rate_w(origin))


def _read_velocities(run: Run, dvl: Any) -> tuple[Times, FloatArray]:
    """Return time (s) and velocity over ground (m/s) of the pings with bottom lock.

    The speed of sound is the true one, and the mean over the width of a beam is corrected
    (`navsense.sensors.doppler.echoes`).
    """
    reading = run[dvl.name]
    is_usable = reading.valid & reading.emitted & (reading["velocity_mode"] == BOTTOM_TRACK)
    time, velocity = reading["time_of_validity"][is_usable], reading["velocity"][is_usable]
    environment = run.session.world.environment
    if environment.water is not None:
        truth = run.truth[dvl.link]
        depth = environment.water.surface - np.interp(time, truth.time, truth.position[:, 2])
        velocity = velocity * (environment.water.sound_speed_at(depth) / reading["sound_speed"][is_usable])[:, None]
    return time, velocity / (1.0 - 3.0 * _find_pattern_deviation(dvl.spec) ** 2)


def _find_pattern_deviation(dvl: Dvl) -> float:
    """Return the deviation s (rad) of the pattern of a beam; the mean over the beam has the scale error -3 s^2."""
    shape = dvl.beams.beams[0].shape
    return shape.width / (4.0 * math.sqrt(math.log(2.0))) if isinstance(shape, Cone) else 0.0


def _find_rotation(truth: Any, time: float) -> Rotation:
    """Return the true rotation of a link at the row nearest to a time (s)."""
    from scipy.spatial.transform import Rotation

    w, x, y, z = truth.orientation[int(np.argmin(np.abs(truth.time - time)))]
    return Rotation.from_quat((x, y, z, w))


def _integrate_gyroscope(run: Run, imu: Any, dvl: Any, time: Times) -> FloatArray:
    """Return the rotation vectors (rad) from each ping to the next in the frame of the DVL; the first one is 0."""
    model = run.session.world.model(imu.model)
    imu_pose, dvl_pose = (model.link(sensor.link).pose @ sensor.pose for sensor in (imu, dvl))
    rates = _make_rotation(dvl_pose.inverse() @ imu_pose).apply(run[imu.name]["angular_velocity"])
    stamps = run[imu.name].time + run[imu.name].clock_error
    angles = np.concatenate(
        [np.zeros((1, 3)), np.cumsum(0.5 * (rates[1:] + rates[:-1]) * np.diff(stamps)[:, None], axis=0)]
    )
    at_pings = np.stack([np.interp(time, stamps, column) for column in angles.T], axis=1)
    return np.asarray(np.diff(at_pings, axis=0, prepend=at_pings[:1]))


def integrate_rotation(time: Times, start: Rotation, steps: FloatArray, earth_rate_w: FloatArray) -> FloatArray:
    """Return the rotations (n, 3, 3) from the DVL to the world at the times (n,) s.

    start: at the first time.
    steps: (n, 3) rad, the rotation vectors to each time from the one before, in the frame of the DVL.
    earth_rate_w: (3,) rad/s, the rotation rate of the earth in the world frame.
    """
    from scipy.spatial.transform import Rotation

    earth_rotation = Rotation.from_rotvec(-np.outer(time - time[0], earth_rate_w))
    return np.asarray((earth_rotation * start * _multiply_cumulatively(Rotation.from_rotvec(steps))).as_matrix())


def _multiply_cumulatively(steps: Rotation) -> Rotation:
    """Return the products of the first one, two, ... rotations."""
    from scipy.spatial.transform import Rotation

    product, shift = steps, 1
    while shift < len(steps):
        product = Rotation.concatenate([product[:shift], product[:-shift] * product[shift:]])
        shift *= 2
    return product


def _integrate(time: Times, values: FloatArray) -> FloatArray:
    """Return the integrals of values (n, ...) over time from the first row, by the trapezoidal rule."""
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(time).reshape(-1, *(1,) * (values.ndim - 1))
    return np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(steps, axis=0)])


def _rotate(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return vectors (n, 3) rotated by matrices (n, 3, 3)."""
    return np.asarray(np.einsum("nij,nj->ni", matrices, vectors))


def compute_effects(
    time: Times, matrices: FloatArray, velocity_b: FloatArray, steps: FloatArray
) -> dict[str, FloatArray]:
    """Return the errors of the position (axis, n, 3) m for unit errors that are constant, by name.

    The equation is that of the module. The names are `start_rotation` (d_0), `gyro_bias` (b), `gyro_scale` (c),
    `misalignment` (m), `offset` (o) and `dvl_scale` (s), which has one axis.

    time: (n,) s.
    matrices: (n, 3, 3), rotations from the DVL to the world.
    velocity_b: (n, 3) m/s, in the frame of the DVL.
    steps: (n, 3) rad, the rotation vectors of `integrate_rotation`.
    """
    velocity_w = _rotate(matrices, velocity_b)
    path, rotation_integral = _integrate(time, velocity_w), _integrate(time, matrices)
    # The angle of each step, times its scale error, in the world frame.
    scaled_steps = 0.5 * (matrices[1:] + matrices[:-1]) * steps[1:, None, :]
    scaled_integral = np.concatenate([np.zeros((1, 3, 3)), np.cumsum(scaled_steps, axis=0)])
    unit, axes = np.eye(3), range(3)
    return {
        "start_rotation": np.stack([np.cross(unit[k], path) for k in axes]),
        "gyro_bias": np.stack([_integrate(time, np.cross(rotation_integral[:, :, k], velocity_w)) for k in axes]),
        "gyro_scale": np.stack([_integrate(time, np.cross(scaled_integral[:, :, k], velocity_w)) for k in axes]),
        "misalignment": np.stack([_integrate(time, _rotate(matrices, np.cross(unit[k], velocity_b))) for k in axes]),
        "offset": np.stack([rotation_integral[:, :, k] for k in axes]),
        "dvl_scale": path[None],
    }


def _compute_covariance(
    time: Times, matrices: FloatArray, velocity_b: FloatArray, steps: FloatArray, imu: Imu, dvl: Dvl
) -> FloatArray:
    """Return the covariance (n, 2, 2) of the position: the module docstring has the model."""
    gyro = imu.noise()["angular_velocity"]
    deviations = {
        "start_rotation": START_ROTATION,
        "gyro_bias": [math.hypot(axis.bias_stddev, FLICKER * axis.bias_instability) for axis in gyro],
        "gyro_scale": [axis.scale_factor_stddev for axis in gyro],
        "misalignment": [dvl.misalignment_stddev] * 3,
        "offset": [dvl.bottom.long_term_offset] * 3,
        "dvl_scale": [dvl.bottom.long_term_scale],
    }
    covariance = np.tile(START_POSITION**2 * np.eye(2), (time.size, 1, 1))
    for name, effects in compute_effects(time, matrices, velocity_b, steps).items():
        for deviation, effect in zip(deviations[name], effects, strict=True):
            horizontal = deviation * effect[:, :2]
            covariance += horizontal[:, :, None] * horizontal[:, None, :]
    path = _integrate(time, _rotate(matrices, velocity_b))
    covariance += compute_random_walk_covariance(time, path, max(axis.noise_density for axis in gyro))
    covariance += compute_white_noise_covariance(time, matrices, velocity_b, dvl)
    return np.asarray(covariance)


def compute_white_noise_covariance(time: Times, matrices: FloatArray, velocity_b: FloatArray, dvl: Dvl) -> FloatArray:
    """Return the covariance (n, 2, 2) m^2 of the position by the white noise of the beams, which are all equal.

    The arguments are those of `compute_effects`, and the specification of the DVL.
    """
    velocity_of_beams = np.linalg.pinv(dvl.beams.axes)  # (3, beams): the velocity of least squares
    stddev = dvl.bottom.noise.stddev + dvl.bottom.per_speed * np.linalg.norm(velocity_b, axis=1)
    steps = stddev * np.diff(time, prepend=time[0])
    to_world = steps[:, None, None] * (matrices @ velocity_of_beams)[:, :2]
    return np.asarray(np.cumsum(to_world @ to_world.swapaxes(1, 2), axis=0))


def compute_random_walk_covariance(time: Times, path: FloatArray, density: float) -> FloatArray:
    """Return the covariance (n, 2, 2) m^2 of the position by the white noise of the gyroscope.

    The covariance of the integral of dW(s) x (p(t) - p(s)), where W has the variance q^2 t in each axis.

    time: (n,) s.
    path: (n, 3) m, the positions p from the first time on.
    density: q, rad/s/sqrt(Hz).
    """
    first = _integrate(time, path)
    second = _integrate(time, path[:, :, None] * path[:, None, :])
    product = path[:, :, None] * first[:, None, :]
    elapsed = (time - time[0])[:, None, None]
    moment = elapsed * path[:, :, None] * path[:, None, :] - product - product.swapaxes(1, 2) + second
    x, y, z = moment[:, 0, 0], moment[:, 1, 1], moment[:, 2, 2]
    cross = -moment[:, 0, 1]
    rows = np.stack([np.stack([z + y, cross], axis=1), np.stack([cross, x + z], axis=1)], axis=1)
    return np.asarray(density**2 * rows)

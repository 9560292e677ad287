"""Dead reckoning of the survey: where the vehicle of `auv_survey.sdf` thinks that it is, by GTSAM, beside the truth.

A node every half second, at the instant of a DVL ping: pose, velocity and bias of the IMU. Between two of them lies the
preintegrated IMU, at each the velocity over the ground, the depth and the magnetic field. What stays wrong all the way
cannot be told from the motion without a fix, and is estimated with what is known of it beforehand: the DVL's scale and
heading on the hull, the depth's offset, what is left of the hull's own field. The speed of sound, which the DVL takes
for 1500 m/s, was measured before the dive. ISAM2 takes a node at a time, so that each estimate knows only the past, and
says how far off it may be: a little too sure of itself, for over 300 s of eight runs it was off by 1.4 times that.
Figures of the noise are those of the same data sheets that the simulator was given. Needs gtsam
(`pip install 'navsense[gtsam]'`), for the picture matplotlib.

python examples/dead_reckoning.py [--duration S] [--runs N] [--seed N] [--picture FILE]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gtsam
import numpy as np
from gtsam.symbol_shorthand import B, C, M, V, X

import navsense as ns
from navsense.factors import MagPoseFactorPose3, local_field
from navsense.typing import FloatArray

SURVEY = Path(__file__).with_name("auv_survey.sdf")

IMU, DVL, GAUGE, COMPASS = (
    f"auv::{name}" for name in ("imu_link::imu", "dvl_link::dvl", "base_link::depth", "compass_link::compass")
)

PINGS = 4
"""Pings from node to node."""

LATITUDE, LONGITUDE, DATE = math.radians(56.719), math.radians(3.516), 2027.34

TURNING = 7.292115e-5 * np.array([0.0, math.cos(LATITUDE), math.sin(LATITUDE)])
"""How the earth turns, rad/s along east, north, up."""

FLICKER = 100.0
"""In how many seconds a bias walks as far as it flickers."""

NANOTESLA = 1e9
"""In a tesla: GTSAM takes a sigma below 1e-8 for a hard constraint, so the field is in nT."""

START = np.radians([0.5, 0.5, 2.0]), 0.5, 0.05
"""What is known at the start, 1 sigma: roll, pitch, heading (rad), place (m), velocity (m/s)."""

CHI2 = 9.21
"""99 % of chi-squared of 2 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.4)."""

IMPOSSIBLE = 27.6
"""-2 ln 1e-6: of an honest estimate beyond this once in a million times."""

SCALE, HEADING, OFFSET, IRON = 0.002, math.radians(0.3), 0.1, 500.0
"""What is known of that which stays, 1 sigma: DVL's scale and heading (rad), depth (m), the hull's own field (nT)."""


@dataclass(frozen=True)
class Track:
    """What was estimated at each node: time (s), place (n, 3) m east, north, up, covariance (n, 3, 3), and truth."""

    time: FloatArray
    place: FloatArray
    covariance: FloatArray
    truth: FloatArray

    @property
    def error(self) -> FloatArray:
        """Return how far off the estimate is, (n, 2) m east and north."""
        return (self.place - self.truth)[:, :2]

    @property
    def normalised(self) -> FloatArray:
        """Return e' P^-1 e of the horizontal error (n,): of an honest estimate chi-squared of 2 degrees of freedom."""
        solved = np.linalg.solve(self.covariance[:, :2, :2], self.error[:, :, None])[:, :, 0]
        return np.asarray(np.einsum("ni,ni->n", self.error, solved))


@dataclass(frozen=True)
class Mounted:
    """A sensor on the hull: its rotation to the IMU (3, 3), and its place there (3,) m, along the IMU's axes."""

    rotation: FloatArray
    place: FloatArray


def mounted(world: Any, name: str) -> Mounted:
    """Return how a sensor stands to the IMU, by the poses of the file."""
    links = {link.name: link.pose for model in world.models for link in model.links}
    poses = {sensor.name: posed(links[sensor.link]).compose(posed(sensor.pose)) for sensor in world.sensors}
    between = poses[IMU].between(poses[name])
    return Mounted(between.rotation().matrix(), np.array(between.translation()))


def posed(pose: Any) -> Any:
    """Return a pose of the world as GTSAM's."""
    return gtsam.Pose3(gtsam.Rot3.Quaternion(*pose.rotation), np.array(pose.position))


def skew(v: FloatArray) -> FloatArray:
    """Return the matrix of the cross product with a vector."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def velocity_factor(node: int, seen: FloatArray, covariance: FloatArray, dvl: Mounted, rate: FloatArray) -> Any:
    """Return the factor of a velocity over the ground, (1 + s) Rz(h) Rd' (R' v + w x l) - seen; C begins with s, h."""
    turn, lever = dvl.rotation.T, np.cross(rate, dvl.place)

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        rotation = values.atPose3(X(node)).rotation()
        scale, heading, _ = values.atPoint3(C(0))
        body = rotation.unrotate(values.atVector(V(node)))
        askew = np.array(gtsam.Rot3.Rz(heading).matrix()) * (1.0 + scale)
        told: FloatArray = askew @ turn @ (body + lever)
        if jacobians is not None:
            jacobians[0] = np.hstack([askew @ turn @ skew(body), np.zeros((3, 3))])
            jacobians[1] = askew @ turn @ rotation.matrix().T
            jacobians[2] = np.column_stack([told / (1.0 + scale), np.cross([0.0, 0.0, 1.0], told), np.zeros(3)])
        return told - seen

    model = gtsam.noiseModel.Gaussian.Covariance(covariance)
    return gtsam.CustomFactor(model, [X(node), V(node), C(0)], error)


def depth_factor(node: int, seen: float, stddev: float, gauge: Mounted) -> Any:
    """Return the factor of a depth (m): minus the gauge's height, and its offset."""

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        pose = values.atPose3(X(node))
        rotation = pose.rotation().matrix()
        if jacobians is not None:
            jacobians[0] = -np.hstack([-rotation[2] @ skew(gauge.place), rotation[2]])[None]
            jacobians[1] = np.array([[0.0, 0.0, 1.0]])
        return np.array([-(pose.translation()[2] + rotation[2] @ gauge.place) + values.atPoint3(C(0))[2] - seen])

    return gtsam.CustomFactor(gtsam.noiseModel.Isotropic.Sigma(1, stddev), [X(node), C(0)], error)


def field_factor(node: int, seen: FloatArray, field: Any, compass: Mounted, stddev: float) -> Any:
    """Return the factor of a magnetic field (nT): navsense's own at a pose, and an unknown bias; M has it in `IRON`."""
    where = gtsam.Pose3(gtsam.Rot3(compass.rotation), compass.place)
    noise = gtsam.noiseModel.Isotropic.Sigma(3, stddev)
    known = MagPoseFactorPose3(
        X(node), seen, NANOTESLA * field.strength, field.direction, np.zeros(3), noise, body_P_sensor=where
    )

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        turned = np.zeros((3, 6), order="F")
        off = known.evaluateError(values.atPose3(X(node)), turned)
        if jacobians is not None:
            jacobians[0] = turned
            jacobians[1] = IRON * compass.rotation
        return np.asarray(off + IRON * compass.rotation @ values.atPoint3(M(0)))

    return gtsam.CustomFactor(noise, [X(node), M(0)], error)


def parameters(world: Any, sheet: Any) -> Any:
    """Return GTSAM's parameters of the IMU, out of the sheet that the simulator was given.

    A flicker of the bias is taken for a random walk that goes as far in the time in which the bias matters here.
    """
    gravity = world.environment.gravity.at(np.zeros((1, 3)), np.zeros(1))[0]
    made = gtsam.PreintegrationCombinedParams(gravity)
    gyro, force = sheet["angular_velocity"][0], sheet["linear_acceleration"][0]
    made.setGyroscopeCovariance(np.eye(3) * gyro.noise_density**2)
    made.setAccelerometerCovariance(np.eye(3) * force.noise_density**2)
    made.setBiasOmegaCovariance(np.eye(3) * gyro.bias_instability**2 / FLICKER)
    made.setBiasAccCovariance(np.eye(3) * force.bias_instability**2 / FLICKER)
    made.setIntegrationCovariance(np.eye(3) * 1e-10)
    made.setOmegaCoriolis(TURNING)
    return made


def thresholds() -> Any:
    """Return by how much an estimate may change before its factors are made linear anew.

    A heading that is off by a degree turns pitching into knowledge of the heading that nobody has.
    """
    made = gtsam.ISAM2ThresholdMap()
    for letter, much in (("x", [0.002] * 3 + [1.0] * 3), ("v", [0.1] * 3), ("b", [0.1] * 6), ("c", [0.1] * 3)):
        made.insert((letter, np.array(much)))
    made.insert(("m", np.full(3, 0.2)))
    return made


class Estimator:
    """ISAM2 over the readings of one run, node after node."""

    def __init__(self, world: Any, run: Any, number: int, seed: int) -> None:
        """Take the run's readings, and begin at a place that is known as well as `START` says."""
        self._run, self._number, self._water = run, number, world.environment.water
        sheet = next(sensor.spec.noise() for sensor in world.sensors if sensor.name == IMU)
        self._parameters = parameters(world, sheet)
        self._dvl, self._gauge, self._compass = (mounted(world, name) for name in (DVL, GAUGE, COMPASS))
        self._field = local_field(LATITUDE, LONGITUDE, -30.0, DATE, frame="ENU")
        noise = next(sensor.spec.noise() for sensor in world.sensors if sensor.name == COMPASS)["field"][0]
        # What is rounded is off by up to half a step, all alike: a twelfth of its square.
        self._compass_noise = NANOTESLA * math.hypot(noise.deviation(20.0), noise.precision / math.sqrt(12.0))
        settings = gtsam.ISAM2Params()
        settings.setFactorization("QR")  # a bias hardly walks in half a second: too little for Cholesky
        settings.setRelinearizeThreshold(thresholds())
        self._isam = gtsam.ISAM2(settings)
        self._nodes = self._times()
        self._begin(np.random.default_rng((seed, number)), sheet)

    def _of(self, name: str, array: str) -> FloatArray:
        """Return what a sensor said in this run."""
        return np.asarray(self._run[name][array][self._number])

    def _stamps(self, name: str) -> FloatArray:
        """Return when a sensor says that it measured, s by its own clock: all that a robot knows of time."""
        reading = self._run[name]
        return np.asarray(reading.time + reading.clock_error[self._number])

    def _times(self) -> FloatArray:
        """Return the instants of the nodes: those of some pings that found the ground."""
        reading = self._run[DVL]
        clock = reading.clock_error[self._number]
        good = reading.valid[self._number] & (self._of(DVL, "velocity_mode") == 1.0)
        self._pings = np.flatnonzero(good)[::PINGS]
        return np.asarray((self._of(DVL, "time_of_validity") + clock)[self._pings])

    def _begin(self, draws: Any, sheet: Any) -> None:
        """Put in what is known at the first node: the truth, as far off as `START` says."""
        sigmas = np.concatenate([START[0], np.full(3, START[1])])
        position, rotation, velocity = self._true(self._nodes[0])
        self._values, self._factors = gtsam.Values(), gtsam.NonlinearFactorGraph()
        told = gtsam.Pose3(rotation, position).retract(draws.normal(size=6) * sigmas)
        moving = velocity + draws.normal(size=3) * START[2]
        deviation = [sheet[key][0].bias_stddev for key in ("linear_acceleration", "angular_velocity")]
        still, stays = gtsam.imuBias.ConstantBias(), np.array([SCALE, HEADING, OFFSET])
        noise = gtsam.noiseModel.Diagonal.Sigmas
        self._add(X(0), told, gtsam.PriorFactorPose3(X(0), told, noise(sigmas)))
        self._add(V(0), moving, gtsam.PriorFactorVector(V(0), moving, noise(np.full(3, START[2]))))
        self._add(B(0), still, gtsam.PriorFactorConstantBias(B(0), still, noise(np.repeat(deviation, 3))))
        self._add(C(0), np.zeros(3), gtsam.PriorFactorPoint3(C(0), np.zeros(3), noise(stays)))
        self._add(M(0), np.zeros(3), gtsam.PriorFactorPoint3(M(0), np.zeros(3), noise(np.ones(3))))
        self._last = gtsam.NavState(told, moving), still

    def _true(self, time: float) -> tuple[FloatArray, Any, FloatArray]:
        """Return where the IMU truly is at a time (s): place, rotation, velocity (m, m/s) along east, north, up."""
        truth = self._run.truth["auv::imu_link"]
        place = np.array([np.interp(time, truth.time, column) for column in truth.position.T])
        velocity = np.array([np.interp(time, truth.time, column) for column in truth.velocity.T])
        row = int(np.searchsorted(truth.time, time))
        return place, gtsam.Rot3.Quaternion(*truth.orientation[min(row, truth.time.size - 1)]), velocity

    def _add(self, key: int, value: Any, factor: Any) -> None:
        """Put in a variable and a factor of it."""
        self._values.insert(key, value)
        self._factors.push_back(factor)

    def _between(self, start: float, end: float, bias: Any) -> Any:
        """Return the preintegrated IMU from one instant to another (s), its samples joined by straight lines."""
        stamps = self._imu[0]
        inside = stamps[np.searchsorted(stamps, start, "right") : np.searchsorted(stamps, end, "left")]
        edges = np.concatenate([[start], inside, [end]])
        rows = np.stack([np.interp(edges, stamps, column) for column in self._imu[1]], axis=1)
        whole = gtsam.PreintegratedCombinedMeasurements(self._parameters, bias)
        for middle, step in zip(0.5 * (rows[1:] + rows[:-1]), np.diff(edges), strict=True):
            if step > 0.0:
                whole.integrateMeasurement(middle[:3], middle[3:], float(step))
        return whole

    def _see(self, node: int) -> None:
        """Put in what the DVL, the depth gauge and the compass say at a node."""
        time, ping = self._nodes[node], self._pings[node]
        rate = np.array([np.interp(time, self._imu[0], column) for column in self._imu[1][3:]])
        seen, covariance = self._of(DVL, "velocity")[ping], self._of(DVL, "velocity_covariance")[ping]
        depth = float(np.interp(time, self._stamps(GAUGE), self._of(GAUGE, "depth")))
        faster = self._water.sound_speed_at(np.array([depth]))[0] / self._of(DVL, "sound_speed")[ping]
        self._factors.push_back(velocity_factor(node, faster * seen, covariance, self._dvl, rate))
        self._factors.push_back(depth_factor(node, depth, 0.02, self._gauge))
        nearest = int(np.argmin(np.abs(self._stamps(COMPASS) - time)))
        field = NANOTESLA * self._of(COMPASS, "field")[nearest]
        self._factors.push_back(field_factor(node, field, self._field, self._compass, self._compass_noise))

    def track(self) -> Track:
        """Return what is estimated at each node out of all before it."""
        self._imu = (
            self._stamps(IMU),
            np.hstack([self._of(IMU, "linear_acceleration"), self._of(IMU, "angular_velocity")]).T,
        )
        places, covariances = [], []
        for node, time in enumerate(self._nodes):
            if node:
                state, bias = self._last
                whole = self._between(self._nodes[node - 1], time, bias)
                keys = X(node - 1), V(node - 1), X(node), V(node), B(node - 1), B(node)
                guess = whole.predict(state, bias)
                self._values.insert(X(node), guess.pose())
                self._values.insert(V(node), guess.velocity())
                self._add(B(node), bias, gtsam.CombinedImuFactor(*keys, whole))
            self._see(node)
            self._isam.update(self._factors, self._values)
            self._factors, self._values = gtsam.NonlinearFactorGraph(), gtsam.Values()
            pose = self._isam.calculateEstimatePose3(X(node))
            self._last = (
                gtsam.NavState(pose, self._isam.calculateEstimateVector(V(node))),
                self._isam.calculateEstimateConstantBias(B(node)),
            )
            turn = pose.rotation().matrix()
            places.append(pose.translation())
            covariances.append(turn @ self._isam.marginalCovariance(X(node))[3:, 3:] @ turn.T)
        truth = np.array([self._true(time)[0] for time in self._nodes])
        return Track(self._nodes, np.array(places), np.array(covariances), truth)


def told(tracks: list[Track]) -> str:
    """Return in words how far off the tracks are at their ends, and whether they know it."""
    lines = ["run  off (m)  1 sigma (m)  of the way  e' P^-1 e, mean of the way"]
    for number, track in enumerate(tracks):
        off, way = np.hypot(*track.error[-1]), np.linalg.norm(np.diff(track.truth, axis=0), axis=1).sum()
        sigma = math.sqrt(np.trace(track.covariance[-1, :2, :2]))
        honest = track.normalised.mean()
        lines.append(
            f"{number:3d}  {off:7.2f}  {sigma:11.2f}  {100.0 * off / way:8.2f} %  {honest:.2f} (2 were honest)"
        )
    return "\n".join(lines)


def draw(tracks: list[Track], path: str) -> None:
    """Draw the tracks over the truth, how their errors grow, and whether they are as large as the estimates say."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 4.6), layout="constrained")
    seen, grown, honest = figure.subplots(1, 3)
    for track in tracks:
        seen.plot(track.place[:, 0], track.place[:, 1], color="tab:orange", linewidth=0.8)
        grown.plot(track.time, np.hypot(*track.error.T), color="tab:orange", linewidth=0.8)
        honest.plot(track.time, track.normalised, color="tab:orange", linewidth=0.8)
    first = tracks[0]
    seen.plot(first.truth[:, 0], first.truth[:, 1], color="black", linewidth=0.8)
    seen.set(title="estimates, and the truth in black", xlabel="east (m)", ylabel="north (m)", aspect="equal")
    sigma = np.sqrt(np.trace(first.covariance[:, :2, :2], axis1=1, axis2=2))
    grown.plot(first.time, sigma, color="black", label="1 sigma, as estimated")
    grown.set(title="horizontal error", xlabel="time (s)", ylabel="m")
    grown.legend()
    honest.axhline(CHI2, color="black", linestyle="--", label="below this 99 % of the time")
    honest.set(title="error squared by its covariance", xlabel="time (s)", yscale="log")
    honest.legend()
    figure.savefig(path)


def main() -> None:
    """Estimate, say how far off it is, and draw."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    asked.add_argument("--duration", type=float, default=60.0, help="s; the whole survey is 1562")
    asked.add_argument("--runs", type=int, default=1)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--picture", metavar="FILE", help="needs matplotlib (.png, .svg, .pdf)")
    given = asked.parse_args()
    world = ns.load(SURVEY)
    run = ns.simulate(world, given.duration, seed=given.seed, runs=given.runs)
    tracks = [Estimator(world, run, number, given.seed).track() for number in range(given.runs)]
    print(told(tracks))
    if given.picture:
        draw(tracks, given.picture)
    assert all(track.normalised[-1] < IMPOSSIBLE for track in tracks)


if __name__ == "__main__":
    main()

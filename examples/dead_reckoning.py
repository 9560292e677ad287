"""Dead reckoning of the survey: GTSAM estimates the track of the vehicle of `auv_survey.sdf`.

A node per second, at the time of a DVL ping, has pose, velocity and IMU bias. The preintegrated IMU connects nodes.
Each node has factors for the velocity over ground, the depth and the magnetic field (`survey_factors.py`). Constant
errors are unobservable without a fix: scale factors, mountings, offsets, hard iron and the clock offset are variables
with priors from the datasheets. The accelerometer flicker, which acts like a tilt, is a variable too. Water, gravity
and the earth's field are known at the estimated position. ISAM2 updates every ten seconds: each estimate uses past data
only and has a covariance.

Each run simulates another vehicle: hard iron and DVL mounting are drawn with the size of the values in the file. This
shows whether errors match their covariance. A run of 300 s takes about five seconds on one core. Requires gtsam
(`pip install 'navsense[gtsam]'`), and matplotlib for the picture (`pip install 'navsense[picture]'`).

python examples/dead_reckoning.py [--duration S] [--runs N] [--seed N] [--picture FILE]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gtsam
import numpy as np
import outputs
from gtsam.symbol_shorthand import B, F, V, X
from numpy.typing import NDArray
from survey_factors import (
    Compass,
    Flicker,
    Mounting,
    make_depth_factor,
    make_field_factor,
    make_imu_factor,
    make_velocity_factor,
)

import navsense as ns
from navsense.core.geodesy import compute_earth_rate_w
from navsense.figures import LIGHT
from navsense.noise.terms import make_flicker_components

FloatArray = NDArray[np.float64]

SURVEY = Path(__file__).with_name("auv_survey.sdf")

IMU, DVL, GAUGE, COMPASS = (
    f"auv::{name}" for name in ("imu_link::imu", "dvl_link::dvl", "base_link::depth", "compass_link::compass")
)

PINGS = 8
"""Pings between nodes."""

NODES = 10
"""Nodes between estimates."""

BAND = 1.0, 100.0
"""Averaging times (s). Faster flicker is white noise between nodes, slower flicker a random walk like the bias."""

SLOWER = math.sqrt(math.log(1e4 / BAND[1]) / math.pi)
"""Deviation of unit flicker from the band to 10^4 s: density 1 / (2 pi f), two-sided (IEEE 952-1997, annex C)."""

NANOTESLA = 1e9
"""nT per tesla. The graph uses nT because GTSAM treats a sigma below 1e-8 as a hard constraint."""

START = np.radians([0.5, 0.5, 2.0]), 0.5, 0.05
"""Initial uncertainty, 1 sigma: roll, pitch, heading (rad), position (m), velocity (m/s)."""


@dataclass(frozen=True)
class Track:
    """The estimated track: time (n,) s, position (n, 3) m east, north, up, its covariance (n, 3, 3) m^2, and the truth.

    `pose_nees` (n,) is e' P^-1 e of the pose: chi-squared with 6 degrees of freedom for a consistent estimate.
    """

    time: FloatArray
    place: FloatArray
    covariance: FloatArray
    truth: FloatArray
    pose_nees: FloatArray

    @property
    def error(self) -> FloatArray:
        """The horizontal error (n, 2) m east and north."""
        return (self.place - self.truth)[:, :2]

    @property
    def position_nees(self) -> FloatArray:
        """E' P^-1 e of the horizontal error (n,): chi-squared with 2 degrees of freedom for a consistent estimate."""
        solved = np.linalg.solve(self.covariance[:, :2, :2], self.error[:, :, None])[:, :, 0]
        return np.asarray(np.einsum("ni,ni->n", self.error, solved))


def find_mounting(world: Any, name: str) -> Mounting:
    """Return the mounting of a sensor relative to the IMU, from the poses of the file."""
    links = {link.name: link.pose for model in world.models for link in model.links}
    poses = {
        sensor.name: to_gtsam_pose(links[sensor.link]).compose(to_gtsam_pose(sensor.pose)) for sensor in world.sensors
    }
    between = poses[IMU].between(poses[name])
    return Mounting(between.rotation().matrix(), np.array(between.translation()))


def to_gtsam_pose(pose: Any) -> Any:
    """Convert a pose of the world to GTSAM."""
    return gtsam.Pose3(gtsam.Rot3.Quaternion(*pose.rotation), np.array(pose.position))


def make_random_vehicles(world: Any) -> Any:
    """Return the world with constants of one vehicle replaced by deviations of the same size per axis."""
    sensors = []
    for sensor in world.sensors:
        spec = sensor.spec
        if sensor.name == DVL:
            spec = replace(spec, misalignment=(0.0, 0.0, 0.0), misalignment_stddev=math.hypot(*spec.misalignment))
        if sensor.name == COMPASS:
            size = math.hypot(*spec.hard_iron) / math.sqrt(3.0)
            x, y, z = (replace(noise, bias_stddev=size) for noise in spec.noise()["field"])
            spec = replace(spec, x=x, y=y, z=z, hard_iron=(0.0, 0.0, 0.0))
        if sensor.name in (IMU, DVL, GAUGE, COMPASS):
            sensors.append(replace(sensor, spec=spec))
    return replace(world, sensors=tuple(sensors))


def make_imu_parameters(environment: Any, noises: Any, place: FloatArray) -> Any:
    """Return GTSAM's IMU parameters at a position (3,) m, from the simulated noise.

    Flicker is a sum of Gauss-Markov processes with density 2 s^2 t / (1 + (w t)^2): at most 2 s^2 t, as white noise,
    and at most 2 s^2 / t / w^2, as a random walk. The slowest process is a random walk, the fastest is white. All
    others of a gyroscope are white too and add a fifth to its noise. For accelerometers they would dominate: see
    `make_flicker`.

    The world axes are straight, but the earth is round: 150 m from the origin, the vertical is tilted by 5 arc seconds.
    """
    parameters = gtsam.PreintegrationCombinedParams(environment.gravity.at(place[None], np.zeros(1))[0])
    gyro, force = noises["angular_velocity"][0], noises["linear_acceleration"][0]
    times, shares = make_flicker_components(1.0, *BAND)
    white, walk = 2.0 * shares**2 * times, 2.0 * shares[-1] ** 2 / times[-1]
    parameters.setGyroscopeCovariance(np.eye(3) * (gyro.noise_density**2 + white[:-1].sum() * gyro.bias_instability**2))
    parameters.setAccelerometerCovariance(np.eye(3) * (force.noise_density**2 + white[0] * force.bias_instability**2))
    parameters.setBiasOmegaCovariance(np.eye(3) * walk * gyro.bias_instability**2)
    parameters.setBiasAccCovariance(np.eye(3) * walk * force.bias_instability**2)
    parameters.setIntegrationCovariance(np.eye(3) * 1e-10)
    parameters.setOmegaCoriolis(np.array(compute_earth_rate_w(environment.origin)))
    return parameters


def make_flicker(noises: Any) -> Flicker:
    """Return the accelerometer flicker that is neither white between nodes nor a random walk like the bias."""
    times, deviations = make_flicker_components(noises["linear_acceleration"][0].bias_instability, *BAND)
    return Flicker(times[1:-1], deviations[1:-1])


def make_isam_parameters(sizes: dict[str, int]) -> Any:
    """Return the parameters of ISAM2: the thresholds of change at which factors are relinearised.

    Variables with unit deviation, `sizes` by letter, have a threshold of 2. A heading threshold of a degree would be
    too large: pitching would then appear to determine the heading.
    """
    thresholds = gtsam.ISAM2ThresholdMap()
    for letter, change in (("x", [0.002] * 3 + [1.0] * 3), ("v", [0.1] * 3), ("b", [0.1] * 6)):
        thresholds.insert((letter, np.array(change)))
    for letter, size in sizes.items():
        thresholds.insert((letter, np.full(size, 2.0)))
    parameters = gtsam.ISAM2Params()
    parameters.setFactorization("QR")  # the random walk of a bias in one second is too small for Cholesky
    parameters.setRelinearizeThreshold(thresholds)
    parameters.relinearizeSkip = 1
    return parameters


class Estimator:
    """ISAM2 on the readings of one run."""

    def __init__(self, world: Any, run: Any, number: int, seed: int) -> None:
        """Read the run, and start with the uncertainty `START`."""
        self._run, self._number, self._environment = run, number, world.environment
        specs = {sensor.name: sensor.spec for sensor in world.sensors}
        clock = next(clock for clock in world.clocks if clock.name == "auv::base_link::computer")
        self._noises, self._flicker = specs[IMU].noise(), make_flicker(specs[IMU].noise())
        self._mountings = {name: find_mounting(world, name) for name in (DVL, GAUGE, COMPASS)}
        self._constant_stddevs = self._read_constant_stddevs(specs, clock.noise.bias_stddev)
        field = specs[COMPASS].noise()["field"][0]
        rate = next(sensor.rate for sensor in world.sensors if sensor.name == COMPASS)
        # Rounding has a variance of a twelfth of the step squared.
        rough = NANOTESLA * math.hypot(field.white_stddev(rate), field.precision / math.sqrt(12.0))
        self._compass = Compass(
            self._mountings[COMPASS], rough, self._constant_stddevs["m"], self._constant_stddevs["t"]
        )
        pressure = specs[GAUGE].pressure
        self._depth_noise = math.hypot(pressure.stddev, pressure.precision / math.sqrt(12.0)) / self._weight
        # The mean over a beam has a bias of -3 s^2 for a pattern of deviation s, see `navsense.sensors.doppler.echoes`.
        width = specs[DVL].beams.beams[0].shape.width
        self._beam_factor = 1.0 - 3.0 * width**2 / (16.0 * math.log(2.0))
        sizes = {letter: sigmas.size for letter, sigmas in self._constant_stddevs.items()}
        self._isam = gtsam.ISAM2(make_isam_parameters({"f": self._flicker.size, **sizes}))
        self._nodes = self._select_node_times()
        self._read_imu_and_depth(specs[GAUGE])
        self._begin(np.random.default_rng((seed, number)))

    def _read_constant_stddevs(self, specs: Any, clock: float) -> dict[str, FloatArray]:
        """Return the deviations of constant errors by the letter of their variable, from the datasheets."""
        track, imu = specs[DVL].bottom, specs[IMU].noise()
        self._weight = float(self._environment.water.pressure_gradient_at(np.array([30.0]))[0])
        mounting = np.full(3, specs[DVL].misalignment_stddev)
        return {
            "s": np.array([a.scale_factor_stddev for k in ("linear_acceleration", "angular_velocity") for a in imu[k]]),
            "c": np.concatenate([[track.long_term_scale], mounting, np.full(3, track.long_term_offset)]),
            "d": np.array([specs[GAUGE].pressure.bias_stddev / self._weight]),
            "m": NANOTESLA * np.array([axis.bias_stddev for axis in specs[COMPASS].noise()["field"]]),
            "t": np.array([clock]),
        }

    def _get_array(self, name: str, array: str) -> FloatArray:
        """Return an array of a sensor in this run."""
        return np.asarray(self._run[name][array][self._number])

    def _compute_stamps(self, name: str) -> FloatArray:
        """Return the stamps of a sensor (s)."""
        reading = self._run[name]
        return np.asarray(reading.time + reading.clock_error[self._number])

    def _select_node_times(self) -> FloatArray:
        """Return the times of the nodes: those of some pings with bottom track."""
        reading = self._run[DVL]
        clock = reading.clock_error[self._number]
        good = reading.valid[self._number] & (self._get_array(DVL, "velocity_mode") == 1.0)
        self._pings = np.flatnonzero(good)[::PINGS]
        return np.asarray((self._get_array(DVL, "time_of_validity") + clock)[self._pings])

    def _read_imu_and_depth(self, gauge: Any) -> None:
        """Read the IMU, and convert pressures to depths with the true water, not with that of the gauge."""
        readings = np.hstack([self._get_array(IMU, "linear_acceleration"), self._get_array(IMU, "angular_velocity")])
        self._imu = self._compute_stamps(IMU), readings.T
        depth = np.linspace(0.0, 60.0, 601)
        pressure = self._environment.water.pressure_at(depth)
        self._depth = np.interp(
            self._get_array(GAUGE, "pressure") - gauge.surface_pressure, pressure - pressure[0], depth
        )

    def _begin(self, draws: Any) -> None:
        """Add the first node: the truth with errors of the size `START`."""
        sigmas = np.concatenate([START[0], np.full(3, START[1])])
        position, rotation, velocity = self._interpolate_truth(self._nodes[0])
        self._values, self._factors = gtsam.Values(), gtsam.NonlinearFactorGraph()
        pose = gtsam.Pose3(rotation, position).retract(draws.normal(size=6) * sigmas)
        initial_velocity = velocity + draws.normal(size=3) * START[2]
        axes = [self._noises[key][0] for key in ("linear_acceleration", "angular_velocity")]
        slow = np.repeat([math.hypot(axis.bias_stddev, SLOWER * axis.bias_instability) for axis in axes], 3)
        no_bias, noise = gtsam.imuBias.ConstantBias(), gtsam.noiseModel.Diagonal.Sigmas
        self._add(X(0), pose, gtsam.PriorFactorPose3(X(0), pose, noise(sigmas)))
        self._add(V(0), initial_velocity, gtsam.PriorFactorVector(V(0), initial_velocity, noise(np.full(3, START[2]))))
        self._add(B(0), no_bias, gtsam.PriorFactorConstantBias(B(0), no_bias, noise(slow)))
        for letter, size in [
            ("f", self._flicker.size),
            *((name, each.size) for name, each in self._constant_stddevs.items()),
        ]:
            key, zero = gtsam.symbol(letter, 0), np.zeros(size)
            self._add(key, zero, gtsam.PriorFactorVector(key, zero, gtsam.noiseModel.Unit.Create(size)))
        self._last = gtsam.NavState(pose, initial_velocity), no_bias

    def _interpolate_truth(self, time: float) -> tuple[FloatArray, Any, FloatArray]:
        """Return true position, rotation and velocity (m, m/s) of the IMU at a time (s), in east, north, up."""
        truth = self._run.truth["auv::imu_link"]
        place = np.array([np.interp(time, truth.time, column) for column in truth.position.T])
        velocity = np.array([np.interp(time, truth.time, column) for column in truth.velocity.T])
        row = min(max(int(np.searchsorted(truth.time, time)), 1), truth.time.size - 1)
        before, after = (gtsam.Rot3.Quaternion(*truth.orientation[k]) for k in (row - 1, row))
        share = (time - truth.time[row - 1]) / (truth.time[row] - truth.time[row - 1])
        return place, before.slerp(float(share), after), velocity

    def _add(self, key: int, value: Any, factor: Any) -> None:
        """Add a variable and a factor on it."""
        self._values.insert(key, value)
        self._factors.push_back(factor)

    def _add_node(self, node: int) -> None:
        """Add a node, predicted by the IMU from the previous one with linearly interpolated samples."""
        start, end = self._nodes[node - 1 : node + 1]
        stamps, readings = self._imu
        inside = stamps[np.searchsorted(stamps, start, "right") : np.searchsorted(stamps, end, "left")]
        edges = np.concatenate([[start], inside, [end]])
        rows = np.stack([np.interp(edges, stamps, column) for column in readings], axis=1)
        state, bias = self._last
        noises = make_imu_parameters(self._environment, self._noises, state.position())
        preintegrated = gtsam.PreintegratedCombinedMeasurements(noises, bias)
        middle, steps = 0.5 * (rows[1:] + rows[:-1]), np.diff(edges)
        for row, step in zip(middle, steps, strict=True):
            if step > 0.0:
                preintegrated.integrateMeasurement(row[:3], row[3:], float(step))
        guess = preintegrated.predict(state, bias)
        self._values.insert(X(node), guess.pose())
        self._values.insert(V(node), guess.velocity())
        self._values.insert(F(node), np.zeros(self._flicker.size))
        mean = steps @ middle / (end - start)
        self._add(B(node), bias, make_imu_factor(node, preintegrated, mean, self._constant_stddevs["s"], self._flicker))
        self._last = guess, bias

    def _interpolate_field(self, time: float, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the field (nT) at the compass at a time (s), and its change under a rotation rate (rad/s) (nT/s).

        The compass sample is up to 25 ms earlier or later. While the vehicle turns, this matters more than its noise.
        """
        stamps = self._compute_stamps(COMPASS)
        nearest = int(np.argmin(np.abs(stamps - time)))
        field = NANOTESLA * self._get_array(COMPASS, "field")[nearest]
        drift = np.cross(field, self._compass.mounting.rotation.T @ rate)
        return field + drift * (time - stamps[nearest]), drift

    def _add_measurements(self, node: int) -> None:
        """Add the factors of DVL, depth gauge and compass at a node."""
        time, ping, add = self._nodes[node], self._pings[node], self._factors.push_back
        rate = np.array([np.interp(time, self._imu[0], column) for column in self._imu[1][3:]])
        depth = float(np.interp(time, self._compute_stamps(GAUGE), self._depth))
        add(make_depth_factor(node, depth, self._depth_noise, self._mountings[GAUGE], self._constant_stddevs["d"]))
        sound = self._environment.water.sound_speed_at(np.array([depth]))[0] / self._get_array(DVL, "sound_speed")[ping]
        velocity, square = self._get_array(DVL, "velocity")[ping], self._get_array(DVL, "velocity_covariance")[ping]
        scale = sound / self._beam_factor
        dvl = self._mountings[DVL]
        add(make_velocity_factor(node, scale * velocity, scale**2 * square, dvl, rate, self._constant_stddevs["c"]))
        field, drift = self._interpolate_field(time, rate)
        place = self._last[0].pose().translation()
        known = NANOTESLA * self._environment.magnetic_field.at(place[None], np.zeros(1))[0]
        add(make_field_factor(node, field, known, self._compass, drift))

    def track(self) -> Track:
        """Return the estimates every `NODES` nodes from all earlier data."""
        rows = []
        for node, time in enumerate(self._nodes):
            if node:
                self._add_node(node)
            self._add_measurements(node)
            if node % NODES and node < self._nodes.size - 1:
                continue
            self._isam.update(self._factors, self._values)
            self._isam.update()  # again, linearised at the better estimate
            self._factors, self._values = gtsam.NonlinearFactorGraph(), gtsam.Values()
            pose, velocity = self._isam.calculateEstimatePose3(X(node)), self._isam.calculateEstimateVector(V(node))
            self._last = gtsam.NavState(pose, velocity), self._isam.calculateEstimateConstantBias(B(node))
            place, rotation, _ = self._interpolate_truth(time)
            covariance, turn = self._isam.marginalCovariance(X(node)), pose.rotation().matrix()
            error = pose.localCoordinates(gtsam.Pose3(rotation, place))
            nees = error @ np.linalg.solve(covariance, error)
            rows.append((time, pose.translation(), turn @ covariance[3:, 3:] @ turn.T, place, nees))
        return Track(*(np.array(column) for column in zip(*rows, strict=True)))


def bounds(dof: int) -> tuple[float, float]:
    """Return the bounds of chi-squared with these degrees of freedom, exceeded once in a million times."""
    from scipy.stats import chi2

    low, high = chi2.ppf([5e-7, 1.0 - 5e-7], dof)
    return float(low), float(high)


def format_results(tracks: list[Track]) -> str:
    """Return a table of the final errors and their consistency."""
    lines = ["run  off (m)  1 sigma (m)  of the way  e' P^-1 e: place (2)  pose (6)"]
    for number, track in enumerate(tracks):
        error, way = np.hypot(*track.error[-1]), np.linalg.norm(np.diff(track.truth, axis=0), axis=1).sum()
        sigma, place, pose = (
            math.sqrt(np.trace(track.covariance[-1, :2, :2])),
            track.position_nees[-1],
            track.pose_nees[-1],
        )
        share = f"{100.0 * error / way:8.2f} %"
        lines.append(f"{number:3d}  {error:7.2f}  {sigma:11.2f}  {share}  {place:19.2f}  {pose:8.2f}")
    for words, dof, ends in (
        ("place", 2, [track.position_nees[-1] for track in tracks]),
        ("pose", 6, [track.pose_nees[-1] for track in tracks]),
    ):
        low, high = (edge / len(tracks) for edge in bounds(dof * len(tracks)))
        lines.append(f"mean of the {words}: {np.mean(ends):.2f} ({dof} expected, {low:.2f} to {high:.2f} pass)")
    return "\n".join(lines)


def draw(figure: Any, tracks: list[Track]) -> None:
    """Draw the errors east and north within their estimated deviations, and the normalised squared error over time.

    A band is the range of all vehicles, a line one of them or their mean: sixteen lines would cover each other.
    """
    length = min(track.time.size for track in tracks)
    time = tracks[0].time[:length] / 60.0
    errors = np.array([track.error[:length] for track in tracks])
    variances = np.array([track.covariance[:length] for track in tracks])
    nees = np.array([track.position_nees[:length] for track in tracks])
    count = f"{len(tracks)} vehicles" if len(tracks) > 1 else "one vehicle"
    band: dict[str, Any] = {"alpha": 0.35, "linewidth": 0.0}
    *plots, last = figure.subplots(3, 1, sharex=True)
    for axis, (plot, name) in enumerate(zip(plots, ("east", "north"), strict=True)):
        sigma = np.sqrt(variances[:, :, axis, axis].mean(axis=0))
        plot.fill_between(time, -2.0 * sigma, 2.0 * sigma, color=LIGHT.frame, label="estimated ±2 σ", **band)
        low, high = errors[:, :, axis].min(axis=0), errors[:, :, axis].max(axis=0)
        plot.fill_between(time, low, high, color=LIGHT.c0, label=f"errors of {count}", **band)
        plot.plot(time, errors[0, :, axis], color=LIGHT.c1, label="error of the first")
        plot.axhline(0.0, color=LIGHT.ink, linewidth=0.7)
        plot.set(title=f"Position {name}", ylabel="error (m)")
    low, high = (edge / len(tracks) for edge in bounds(2 * len(tracks)))
    last.fill_between(time, nees.min(axis=0), nees.max(axis=0), color=LIGHT.c0, label=count, **band)
    last.plot(time, nees.mean(axis=0), color=LIGHT.c1, label="their mean")
    last.axhline(2.0, color=LIGHT.ink, linewidth=0.9, label="expected: 2")
    last.axhline(low, color=LIGHT.ink, linewidth=0.9, linestyle="--", label="bounds of the mean")
    last.axhline(high, color=LIGHT.ink, linewidth=0.9, linestyle="--")
    last.set(
        title="Consistency",
        ylabel="$e^T P^{-1} e$",
        xlabel="time (min)",
        yscale="log",
        xlim=(time[0], time[-1]),
    )
    last.set_ylim(bottom=max(float(nees.min()), 1e-2))
    for plot in (*plots, last):
        plot.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.1)


def write_results(tracks: list[Track], picture: Path) -> None:
    """Write the final errors as a table, and the picture."""
    ends = np.array([track.error[-1] for track in tracks])
    sigmas = np.array([np.sqrt(np.diag(track.covariance[-1])[:2]) for track in tracks])
    columns = {f"error {name} (m)": column for name, column in zip(("east", "north"), ends.T, strict=True)}
    columns |= {f"1 sigma {name} (m)": column for name, column in zip(("east", "north"), sigmas.T, strict=True)}
    outputs.write("dead_reckoning", {"run": range(len(tracks)), **columns})
    outputs.write_picture(picture, lambda figure: draw(figure, tracks), (7.0, 6.4))


def main() -> None:
    """Estimate, print the errors, and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--duration", type=float, default=60.0, help="s; the complete survey is 1560")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    picture = outputs.FOLDER / "dead_reckoning.png"
    parser.add_argument("--picture", metavar="FILE", type=Path, default=picture, help=".png, .svg or .pdf")
    arguments = parser.parse_args()
    world = make_random_vehicles(ns.load(SURVEY))
    run = ns.simulate(world, arguments.duration, seed=arguments.seed, runs=arguments.runs)
    tracks = [Estimator(world, run, number, arguments.seed).track() for number in range(arguments.runs)]
    print(format_results(tracks))
    write_results(tracks, arguments.picture)
    for dof, ends in (2, [track.position_nees[-1] for track in tracks]), (6, [track.pose_nees[-1] for track in tracks]):
        low, high = bounds(dof * arguments.runs)
        assert low < sum(ends) < high


if __name__ == "__main__":
    main()

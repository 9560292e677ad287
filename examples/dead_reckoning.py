"""Dead reckoning of the survey: where the vehicle of `auv_survey.sdf` thinks that it is, by GTSAM, beside the truth.

A node every second, at the instant of a DVL ping: pose, velocity and bias of the IMU. Between two of them lies the
preintegrated IMU, at each the velocity over the ground, the depth and the magnetic field (`survey_factors.py`). What
lasts cannot be told from the motion without a fix: scale factors, mountings, offsets, the hull's own field and a clock
that goes wrong are variables, known beforehand as well as the data sheets say. So is the flicker of the accelerometers,
a bias that comes and goes within minutes: the vehicle takes it for a tilt. The water, gravity and the earth's field are
known, where the vehicle takes itself to be. ISAM2 takes ten seconds at a time: each estimate knows only the past, and
says how far off it may be.

Each run is another vehicle: what the file fixes of the hull's field and of the DVL's mounting is drawn anew, as large
as it is there. Only so can be counted whether errors are as large as the estimates say. 300 s of a run take some five
seconds of one core. Needs gtsam (`pip install 'navsense[gtsam]'`), for the picture matplotlib.

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
from gtsam.symbol_shorthand import B, F, V, X
from survey_factors import Compass, Flicker, Mounted, depth_factor, field_factor, imu_factor, velocity_factor

import navsense as ns
from navsense.core.geodesy import compute_earth_rate_w
from navsense.core.typing import FloatArray
from navsense.noise.terms import make_flicker_components

SURVEY = Path(__file__).with_name("auv_survey.sdf")

IMU, DVL, GAUGE, COMPASS = (
    f"auv::{name}" for name in ("imu_link::imu", "dvl_link::dvl", "base_link::depth", "compass_link::compass")
)

PINGS = 8
"""Pings from node to node."""

NODES = 10
"""Nodes from estimate to estimate."""

BAND = 1.0, 100.0
"""s, averaging times: flicker that is faster is white noise from node to node, slower it walks as the bias does."""

SLOWER = math.sqrt(math.log(1e4 / BAND[1]) / math.pi)
"""Deviation of a flicker of 1 beyond the band, to 10^4 s: density 1 / (2 pi f), two-sided (IEEE 952-1997, annex C)."""

NANOTESLA = 1e9
"""In a tesla: GTSAM takes a sigma below 1e-8 for a hard constraint, so the field is in nT."""

START = np.radians([0.5, 0.5, 2.0]), 0.5, 0.05
"""What is known at the start, 1 sigma: roll, pitch, heading (rad), place (m), velocity (m/s)."""


@dataclass(frozen=True)
class Track:
    """What was estimated: time (n,) s, place (n, 3) m east, north, up, covariance (n, 3, 3) m^2, and the true place.

    `whole` (n,) is e' P^-1 e of the pose, attitude included: of an honest estimate chi-squared of 6 degrees of freedom.
    """

    time: FloatArray
    place: FloatArray
    covariance: FloatArray
    truth: FloatArray
    whole: FloatArray

    @property
    def error(self) -> FloatArray:
        """Return how far off the estimate is, (n, 2) m east and north."""
        return (self.place - self.truth)[:, :2]

    @property
    def normalised(self) -> FloatArray:
        """Return e' P^-1 e of the horizontal error (n,): of an honest estimate chi-squared of 2 degrees of freedom."""
        solved = np.linalg.solve(self.covariance[:, :2, :2], self.error[:, :, None])[:, :, 0]
        return np.asarray(np.einsum("ni,ni->n", self.error, solved))


def mounted(world: Any, name: str) -> Mounted:
    """Return how a sensor stands to the IMU, by the poses of the file."""
    links = {link.name: link.pose for model in world.models for link in model.links}
    poses = {sensor.name: posed(links[sensor.link]).compose(posed(sensor.pose)) for sensor in world.sensors}
    between = poses[IMU].between(poses[name])
    return Mounted(between.rotation().matrix(), np.array(between.translation()))


def posed(pose: Any) -> Any:
    """Return a pose of the world as GTSAM's."""
    return gtsam.Pose3(gtsam.Rot3.Quaternion(*pose.rotation), np.array(pose.position))


def vehicles(world: Any) -> Any:
    """Return the world of many vehicles: what the file fixes of one is a deviation among them, as large on an axis."""
    made = []
    for sensor in world.sensors:
        spec = sensor.spec
        if sensor.name == DVL:
            spec = replace(spec, misalignment=(0.0, 0.0, 0.0), misalignment_stddev=math.hypot(*spec.misalignment))
        if sensor.name == COMPASS:
            size = math.hypot(*spec.hard_iron) / math.sqrt(3.0)
            x, y, z = (replace(noise, bias_stddev=size) for noise in spec.noise()["field"])
            spec = replace(spec, x=x, y=y, z=z, hard_iron=(0.0, 0.0, 0.0))
        if sensor.name in (IMU, DVL, GAUGE, COMPASS):
            made.append(replace(sensor, spec=spec))
    return replace(world, sensors=tuple(made))


def parameters(environment: Any, sheet: Any, place: FloatArray) -> Any:
    """Return GTSAM's parameters of the IMU at a place (3,) m, out of the sheet that the simulator was given.

    Flicker is a sum of Gauss-Markov processes, each 2 s^2 t / (1 + (w t)^2) dense: at most 2 s^2 t, as white noise is,
    and at most 2 s^2 / t / w^2, as a walk is. The slowest walks. The fastest is white; and so may all others of a gyro
    be, which add a fifth to its white noise. Of accelerometers they would be most of it: see `comes_and_goes`.

    The earth is round, a world's axes are straight: 150 m from its middle the plumb line leans by 5 arc seconds.
    """
    made = gtsam.PreintegrationCombinedParams(environment.gravity.at(place[None], np.zeros(1))[0])
    gyro, force = sheet["angular_velocity"][0], sheet["linear_acceleration"][0]
    times, shares = make_flicker_components(1.0, *BAND)
    white, walk = 2.0 * shares**2 * times, 2.0 * shares[-1] ** 2 / times[-1]
    made.setGyroscopeCovariance(np.eye(3) * (gyro.noise_density**2 + white[:-1].sum() * gyro.bias_instability**2))
    made.setAccelerometerCovariance(np.eye(3) * (force.noise_density**2 + white[0] * force.bias_instability**2))
    made.setBiasOmegaCovariance(np.eye(3) * walk * gyro.bias_instability**2)
    made.setBiasAccCovariance(np.eye(3) * walk * force.bias_instability**2)
    made.setIntegrationCovariance(np.eye(3) * 1e-10)
    made.setOmegaCoriolis(np.array(compute_earth_rate_w(environment.origin)))
    return made


def comes_and_goes(sheet: Any) -> Flicker:
    """Return what of the accelerometers' flicker is neither white from node to node nor walks as the bias does."""
    times, deviations = make_flicker_components(sheet["linear_acceleration"][0].bias_instability, *BAND)
    return Flicker(times[1:-1], deviations[1:-1])


def settings(sizes: dict[str, int]) -> Any:
    """Return how ISAM2 works: by how much an estimate may change before its factors are made linear anew.

    What has a deviation of 1, `sizes` by its letter, may change by two.
    A heading that is off by a degree turns pitching into knowledge of the heading that nobody has.
    """
    much = gtsam.ISAM2ThresholdMap()
    for letter, change in (("x", [0.002] * 3 + [1.0] * 3), ("v", [0.1] * 3), ("b", [0.1] * 6)):
        much.insert((letter, np.array(change)))
    for letter, size in sizes.items():
        much.insert((letter, np.full(size, 2.0)))
    made = gtsam.ISAM2Params()
    made.setFactorization("QR")  # a bias hardly walks in a second: too little for Cholesky
    made.setRelinearizeThreshold(much)
    made.relinearizeSkip = 1
    return made


class Estimator:
    """ISAM2 over the readings of one run."""

    def __init__(self, world: Any, run: Any, number: int, seed: int) -> None:
        """Take the run's readings, and begin at a place that is known as well as `START` says."""
        self._run, self._number, self._environment = run, number, world.environment
        sheets = {sensor.name: sensor.spec for sensor in world.sensors}
        clock = next(clock for clock in world.clocks if clock.name == "auv::base_link::computer")
        self._sheet, self._flicker = sheets[IMU].noise(), comes_and_goes(sheets[IMU].noise())
        self._places = {name: mounted(world, name) for name in (DVL, GAUGE, COMPASS)}
        self._lasting = self._expected(sheets, clock.noise.bias_stddev)
        field = sheets[COMPASS].noise()["field"][0]
        rate = next(sensor.rate for sensor in world.sensors if sensor.name == COMPASS)
        # What is rounded is off by up to half a step, all alike: a twelfth of its square.
        rough = NANOTESLA * math.hypot(field.white_stddev(rate), field.precision / math.sqrt(12.0))
        self._compass = Compass(self._places[COMPASS], rough, self._lasting["m"], self._lasting["t"])
        pressure = sheets[GAUGE].pressure
        self._depth_noise = math.hypot(pressure.stddev, pressure.precision / math.sqrt(12.0)) / self._weight
        # The mean over a beam reads low, see `navsense.sensors.doppler.echoes`: by 3 s^2 of a pattern of deviation s.
        width = sheets[DVL].beams.beams[0].shape.width
        self._full = 1.0 - 3.0 * width**2 / (16.0 * math.log(2.0))
        sizes = {letter: sigmas.size for letter, sigmas in self._lasting.items()}
        self._isam = gtsam.ISAM2(settings({"f": self._flicker.size, **sizes}))
        self._nodes = self._times()
        self._read(sheets[GAUGE])
        self._begin(np.random.default_rng((seed, number)))

    def _expected(self, sheets: Any, clock: float) -> dict[str, FloatArray]:
        """Return the deviations of what lasts, by the letter of its variable, out of the data sheets."""
        track, imu = sheets[DVL].bottom, sheets[IMU].noise()
        self._weight = float(self._environment.water.pressure_gradient_at(np.array([30.0]))[0])
        mounting = np.full(3, sheets[DVL].misalignment_stddev)
        return {
            "s": np.array([a.scale_factor_stddev for k in ("linear_acceleration", "angular_velocity") for a in imu[k]]),
            "c": np.concatenate([[track.long_term_scale], mounting, np.full(3, track.long_term_offset)]),
            "d": np.array([sheets[GAUGE].pressure.bias_stddev / self._weight]),
            "m": NANOTESLA * np.array([axis.bias_stddev for axis in sheets[COMPASS].noise()["field"]]),
            "t": np.array([clock]),
        }

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

    def _read(self, gauge: Any) -> None:
        """Take what the IMU felt, and make depths of pressures by the water that is there, not by the gauge's."""
        felt = np.hstack([self._of(IMU, "linear_acceleration"), self._of(IMU, "angular_velocity")])
        self._imu = self._stamps(IMU), felt.T
        depth = np.linspace(0.0, 60.0, 601)
        pressure = self._environment.water.pressure_at(depth)
        self._depth = np.interp(self._of(GAUGE, "pressure") - gauge.surface_pressure, pressure - pressure[0], depth)

    def _begin(self, draws: Any) -> None:
        """Put in what is known at the first node: the truth, as far off as `START` says."""
        sigmas = np.concatenate([START[0], np.full(3, START[1])])
        position, rotation, velocity = self._true(self._nodes[0])
        self._values, self._factors = gtsam.Values(), gtsam.NonlinearFactorGraph()
        told = gtsam.Pose3(rotation, position).retract(draws.normal(size=6) * sigmas)
        moving = velocity + draws.normal(size=3) * START[2]
        axes = [self._sheet[key][0] for key in ("linear_acceleration", "angular_velocity")]
        slow = np.repeat([math.hypot(axis.bias_stddev, SLOWER * axis.bias_instability) for axis in axes], 3)
        still, noise = gtsam.imuBias.ConstantBias(), gtsam.noiseModel.Diagonal.Sigmas
        self._add(X(0), told, gtsam.PriorFactorPose3(X(0), told, noise(sigmas)))
        self._add(V(0), moving, gtsam.PriorFactorVector(V(0), moving, noise(np.full(3, START[2]))))
        self._add(B(0), still, gtsam.PriorFactorConstantBias(B(0), still, noise(slow)))
        for letter, size in [("f", self._flicker.size), *((name, each.size) for name, each in self._lasting.items())]:
            key, zero = gtsam.symbol(letter, 0), np.zeros(size)
            self._add(key, zero, gtsam.PriorFactorVector(key, zero, gtsam.noiseModel.Unit.Create(size)))
        self._last = gtsam.NavState(told, moving), still

    def _true(self, time: float) -> tuple[FloatArray, Any, FloatArray]:
        """Return where the IMU truly is at a time (s): place, rotation, velocity (m, m/s) along east, north, up."""
        truth = self._run.truth["auv::imu_link"]
        place = np.array([np.interp(time, truth.time, column) for column in truth.position.T])
        velocity = np.array([np.interp(time, truth.time, column) for column in truth.velocity.T])
        row = min(max(int(np.searchsorted(truth.time, time)), 1), truth.time.size - 1)
        before, after = (gtsam.Rot3.Quaternion(*truth.orientation[k]) for k in (row - 1, row))
        share = (time - truth.time[row - 1]) / (truth.time[row] - truth.time[row - 1])
        return place, before.slerp(float(share), after), velocity

    def _add(self, key: int, value: Any, factor: Any) -> None:
        """Put in a variable and a factor of it."""
        self._values.insert(key, value)
        self._factors.push_back(factor)

    def _go(self, node: int) -> None:
        """Put in a node, where the IMU leads from the one before, its samples joined by straight lines."""
        start, end = self._nodes[node - 1 : node + 1]
        stamps, felt = self._imu
        inside = stamps[np.searchsorted(stamps, start, "right") : np.searchsorted(stamps, end, "left")]
        edges = np.concatenate([[start], inside, [end]])
        rows = np.stack([np.interp(edges, stamps, column) for column in felt], axis=1)
        state, bias = self._last
        sheet = parameters(self._environment, self._sheet, state.position())
        whole = gtsam.PreintegratedCombinedMeasurements(sheet, bias)
        middle, steps = 0.5 * (rows[1:] + rows[:-1]), np.diff(edges)
        for row, step in zip(middle, steps, strict=True):
            if step > 0.0:
                whole.integrateMeasurement(row[:3], row[3:], float(step))
        guess = whole.predict(state, bias)
        self._values.insert(X(node), guess.pose())
        self._values.insert(V(node), guess.velocity())
        self._values.insert(F(node), np.zeros(self._flicker.size))
        mean = steps @ middle / (end - start)
        self._add(B(node), bias, imu_factor(node, whole, mean, self._lasting["s"], self._flicker))
        self._last = guess, bias

    def _felt(self, time: float, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the field (nT) at the compass at a time (s), and how turning at a rate (rad/s) changes it (nT/s).

        The compass spoke up to 25 ms before or after: while the vehicle turns, that is more than its noise.
        """
        stamps = self._stamps(COMPASS)
        nearest = int(np.argmin(np.abs(stamps - time)))
        field = NANOTESLA * self._of(COMPASS, "field")[nearest]
        drift = np.cross(field, self._compass.mounted.rotation.T @ rate)
        return field + drift * (time - stamps[nearest]), drift

    def _see(self, node: int) -> None:
        """Put in what the DVL, the depth gauge and the compass say at a node."""
        time, ping, add = self._nodes[node], self._pings[node], self._factors.push_back
        rate = np.array([np.interp(time, self._imu[0], column) for column in self._imu[1][3:]])
        depth = float(np.interp(time, self._stamps(GAUGE), self._depth))
        add(depth_factor(node, depth, self._depth_noise, self._places[GAUGE], self._lasting["d"]))
        sound = self._environment.water.sound_speed_at(np.array([depth]))[0] / self._of(DVL, "sound_speed")[ping]
        seen, square = self._of(DVL, "velocity")[ping], self._of(DVL, "velocity_covariance")[ping]
        faster = sound / self._full
        dvl = self._places[DVL]
        add(velocity_factor(node, faster * seen, faster**2 * square, dvl, rate, self._lasting["c"]))
        field, drift = self._felt(time, rate)
        place = self._last[0].pose().translation()
        known = NANOTESLA * self._environment.magnetic_field.at(place[None], np.zeros(1))[0]
        add(field_factor(node, field, known, self._compass, drift))

    def track(self) -> Track:
        """Return what is estimated every `NODES` nodes out of all before."""
        rows = []
        for node, time in enumerate(self._nodes):
            if node:
                self._go(node)
            self._see(node)
            if node % NODES and node < self._nodes.size - 1:
                continue
            self._isam.update(self._factors, self._values)
            self._isam.update()  # once more, made linear about the better estimate
            self._factors, self._values = gtsam.NonlinearFactorGraph(), gtsam.Values()
            pose, velocity = self._isam.calculateEstimatePose3(X(node)), self._isam.calculateEstimateVector(V(node))
            self._last = gtsam.NavState(pose, velocity), self._isam.calculateEstimateConstantBias(B(node))
            place, rotation, _ = self._true(time)
            covariance, turn = self._isam.marginalCovariance(X(node)), pose.rotation().matrix()
            off = pose.localCoordinates(gtsam.Pose3(rotation, place))
            whole = off @ np.linalg.solve(covariance, off)
            rows.append((time, pose.translation(), turn @ covariance[3:, 3:] @ turn.T, place, whole))
        return Track(*(np.array(column) for column in zip(*rows, strict=True)))


def bounds(freedom: int) -> tuple[float, float]:
    """Return between what chi-squared of so many degrees of freedom lies but for once in a million times."""
    from scipy.stats import chi2

    low, high = chi2.ppf([5e-7, 1.0 - 5e-7], freedom)
    return float(low), float(high)


def told(tracks: list[Track]) -> str:
    """Return in words how far off the tracks are at their ends, and whether they know it."""
    lines = ["run  off (m)  1 sigma (m)  of the way  e' P^-1 e: place (2)  pose (6)"]
    for number, track in enumerate(tracks):
        off, way = np.hypot(*track.error[-1]), np.linalg.norm(np.diff(track.truth, axis=0), axis=1).sum()
        sigma, place, pose = math.sqrt(np.trace(track.covariance[-1, :2, :2])), track.normalised[-1], track.whole[-1]
        share = f"{100.0 * off / way:8.2f} %"
        lines.append(f"{number:3d}  {off:7.2f}  {sigma:11.2f}  {share}  {place:19.2f}  {pose:8.2f}")
    for words, freedom, ends in (
        ("place", 2, [track.normalised[-1] for track in tracks]),
        ("pose", 6, [track.whole[-1] for track in tracks]),
    ):
        low, high = (edge / len(tracks) for edge in bounds(freedom * len(tracks)))
        lines.append(f"mean of the {words}: {np.mean(ends):.2f} ({freedom} were honest, {low:.2f} to {high:.2f} pass)")
    return "\n".join(lines)


def draw(tracks: list[Track], path: str) -> None:
    """Draw how far off the tracks are within what they say of it, and whether that is honest, over the time."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "dead reckoning"
    figure = Figure(figsize=(13.0, 4.4), layout="constrained")
    *plots, honest = figure.subplots(1, 3)
    length = min(track.time.size for track in tracks)
    time = tracks[0].time[:length]
    for axis, (plot, name) in enumerate(zip(plots, ("east", "north"), strict=True)):
        for track in tracks:
            plot.plot(track.time, track.error[:, axis], color="tab:orange", linewidth=0.8)
        sigma = np.sqrt(np.mean([track.covariance[:length, axis, axis] for track in tracks], axis=0))
        plot.fill_between(time, -2.0 * sigma, 2.0 * sigma, color="0.85", label="2 sigma, as estimated")
        plot.axhline(0.0, color="black", linewidth=0.8)
        plot.set(title=f"error {name}, {len(tracks)} vehicles", xlabel="time (s)", ylabel="m")
        plot.legend(loc="upper left")
    for number, track in enumerate(tracks):
        honest.plot(track.time, track.normalised, color="tab:orange", linewidth=0.5, label=None if number else "each")
    honest.plot(time, np.mean([track.normalised[:length] for track in tracks], axis=0), color="tab:blue", label="mean")
    for edge in bounds(2 * len(tracks)):
        honest.axhline(edge / len(tracks), color="black", linestyle="--", linewidth=0.8)
    honest.axhline(2.0, color="black", linewidth=0.8, label="honest: 2, the mean within the dashes")
    honest.set(title="horizontal error squared by its covariance", xlabel="time (s)", yscale="log")
    honest.legend(loc="lower right")
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main() -> None:
    """Estimate, say how far off it is, and draw."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    asked.add_argument("--duration", type=float, default=60.0, help="s; the whole survey is 1562")
    asked.add_argument("--runs", type=int, default=1)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--picture", metavar="FILE", help="needs matplotlib (.png, .svg, .pdf)")
    given = asked.parse_args()
    world = vehicles(ns.load(SURVEY))
    run = ns.simulate(world, given.duration, seed=given.seed, runs=given.runs)
    tracks = [Estimator(world, run, number, given.seed).track() for number in range(given.runs)]
    print(told(tracks))
    if given.picture:
        draw(tracks, given.picture)
    for freedom, ends in (2, [track.normalised[-1] for track in tracks]), (6, [track.whole[-1] for track in tracks]):
        low, high = bounds(freedom * given.runs)
        assert low < sum(ends) < high


if __name__ == "__main__":
    main()

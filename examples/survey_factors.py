"""Factors of the survey's sensors for GTSAM, each with what lasts in it; `dead_reckoning.py` puts them together.

X, V, B are pose, velocity (m/s along east, north, up) and bias of the IMU at a node; F is the flicker of its
accelerometers, Gauss-Markov processes in units of their deviations: g_k = kept g_(k-1) + sqrt(1 - kept^2) w. What
lasts is one variable each, in units of its own deviation, so that its prior is of deviation 1:

    S  scale factors of the IMU                    told = (1 + s) true + bias + noise
    C  DVL: scale, mounting, offset                told = (1 + c0) exp(c1..3) true + c4..6 + noise
    D  offset of the depth gauge (m)
    M  what is left of the hull's own field (nT), along the compass's axes
    T  how far the compass's clock goes before the IMU's (s)

Run, it holds the derivatives that the factors give against differences of their errors.

python examples/survey_factors.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gtsam
import numpy as np
from gtsam.symbol_shorthand import B, C, D, F, M, S, T, V, X

from navsense.core.typing import FloatArray
from navsense.factors import MagPoseFactorPose3

STEP = 1e-4
"""Of the differences, in the units of the variables."""

SIZES = {"x": 6, "v": 3, "b": 6, "f": 6, "s": 6, "c": 7, "d": 1, "m": 3, "t": 1}
"""Numbers of each variable; of F with two processes."""


@dataclass(frozen=True)
class Mounted:
    """A sensor on the hull: its rotation to the IMU (3, 3), and its place there (3,) m, along the IMU's axes."""

    rotation: FloatArray
    place: FloatArray


def skew(v: FloatArray) -> FloatArray:
    """Return the matrix of the cross product with a vector."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


@dataclass(frozen=True)
class Flicker:
    """Gauss-Markov processes that the accelerometers' flicker is made of.

    They have time constants (m,) s, and stationary deviations (m,) m/s^2 on each of three axes.
    """

    times: FloatArray
    deviations: FloatArray

    @property
    def size(self) -> int:
        """Return how many numbers F has: those of the first process along x, y, z, those of the next."""
        return 3 * int(self.times.size)

    @property
    def worth(self) -> FloatArray:
        """Return what a bias of the IMU has of F, (6, size) m/s^2 and rad/s."""
        return np.vstack([np.kron(self.deviations, np.eye(3)), np.zeros((3, self.size))])

    def kept(self, gap: float) -> FloatArray:
        """Return how much of F is left after a gap (s), (size,)."""
        return np.repeat(np.exp(-gap / self.times), 3)


def imu_factor(node: int, whole: Any, felt: FloatArray, scale: FloatArray, flicker: Flicker) -> Any:
    """Return the factor of the preintegrated IMU; `felt` (6,), m/s^2 and rad/s on the way, says what a scale is worth.

    A scale factor acts like a bias of s times what is felt, and flicker like the mean of its two ends: GTSAM's own
    factor is asked at biases that have them. Below its errors are those of the flicker's processes.
    """
    keys = X(node - 1), V(node - 1), X(node), V(node), B(node - 1), B(node)
    own, worth, share = gtsam.CombinedImuFactor(*keys, whole), felt * scale, 0.5 * flicker.worth
    kept, none = flicker.kept(whole.deltaTij()), np.zeros((flicker.size, 30))
    anew = np.sqrt(1.0 - kept * kept)

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        before, after = values.atVector(F(node - 1)), values.atVector(F(node))
        moved, more = gtsam.Values(), worth * values.atVector(S(0)) + share @ (before + after)
        for pose, velocity, bias in ((*keys[:2], keys[4]), (*keys[2:4], keys[5])):
            slow = values.atConstantBias(bias).vector() + more
            moved.insert(pose, values.atPose3(pose))
            moved.insert(velocity, values.atVector(velocity))
            moved.insert(bias, gtsam.imuBias.ConstantBias(slow[:3], slow[3:]))
        matrix, off = own.linearize(moved).jacobian()
        if jacobians is not None:
            parts = np.split(np.vstack([matrix, none]), (6, 9, 15, 18, 24), axis=1)
            for place, part in enumerate(parts):
                jacobians[place] = part
            by_bias = parts[4] + parts[5]
            jacobians[6], jacobians[7] = by_bias * worth, by_bias @ share
            jacobians[8] = jacobians[7].copy()
            jacobians[7][15:] = np.diag(-kept / anew)
            jacobians[8][15:] = np.diag(1.0 / anew)
        return np.concatenate([-np.asarray(off), (after - kept * before) / anew])

    noise = gtsam.noiseModel.Unit.Create(15 + flicker.size)
    return gtsam.CustomFactor(noise, [*keys, S(0), F(node - 1), F(node)], error)


def velocity_factor(
    node: int, seen: FloatArray, covariance: FloatArray, dvl: Mounted, rate: FloatArray, sigmas: FloatArray
) -> Any:
    """Return the factor of a velocity over the ground, (1 + c0) exp(c1..3) Rd' (R' v + w x l) + c4..6 - seen (m/s)."""
    turn, lever = dvl.rotation.T, np.cross(rate, dvl.place)

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        rotation = values.atPose3(X(node)).rotation()
        off = sigmas * values.atVector(C(0))
        body = rotation.unrotate(values.atVector(V(node)))
        askew = np.array(gtsam.Rot3.Expmap(off[1:4]).matrix()) * (1.0 + off[0]) @ turn
        told: FloatArray = askew @ (body + lever)
        if jacobians is not None:
            jacobians[0] = np.hstack([askew @ skew(body), np.zeros((3, 3))])
            jacobians[1] = askew @ rotation.matrix().T
            twisted = -skew(told) @ (np.eye(3) + 0.5 * skew(off[1:4]))  # of exp, to the second order
            jacobians[2] = np.hstack([told[:, None] / (1.0 + off[0]), twisted, np.eye(3)]) * sigmas
        return np.asarray(told + off[4:] - seen)

    return gtsam.CustomFactor(gtsam.noiseModel.Gaussian.Covariance(covariance), [X(node), V(node), C(0)], error)


def depth_factor(node: int, seen: float, stddev: float, gauge: Mounted, sigmas: FloatArray) -> Any:
    """Return the factor of a depth (m): minus the gauge's height, and its offset."""

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        pose = values.atPose3(X(node))
        down: FloatArray = -pose.rotation().matrix()[2]
        if jacobians is not None:
            jacobians[0] = np.hstack([-down @ skew(gauge.place), down])[None]
            jacobians[1] = sigmas[None]
        return np.asarray(down @ gauge.place - pose.translation()[2] + sigmas * values.atVector(D(0)) - seen)

    return gtsam.CustomFactor(gtsam.noiseModel.Isotropic.Sigma(1, stddev), [X(node), D(0)], error)


@dataclass(frozen=True)
class Compass:
    """How a compass stands to the IMU, its noise (nT), and deviations of its iron (3,) nT and of its clock (1,) s."""

    mounted: Mounted
    noise: float
    iron: FloatArray
    clock: FloatArray


def field_factor(node: int, seen: FloatArray, known: FloatArray, compass: Compass, drift: FloatArray) -> Any:
    """Return the factor of a magnetic field (nT): navsense's own at a pose, beside the hull's field and the clock.

    `known` (3,) nT is the earth's field there, east, north, up; `drift` (3,) nT/s how turning changes what is felt.
    """
    turn, late = compass.mounted.rotation, drift * compass.clock
    where = gtsam.Pose3(gtsam.Rot3(turn), compass.mounted.place)
    noise, size = gtsam.noiseModel.Isotropic.Sigma(3, compass.noise), float(np.linalg.norm(known))
    pure = MagPoseFactorPose3(X(node), seen, size, known / size, np.zeros(3), noise, body_P_sensor=where)

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        turned = np.zeros((3, 6), order="F")
        off = pure.evaluateError(values.atPose3(X(node)), turned)
        if jacobians is not None:
            jacobians[0] = turned
            jacobians[1] = turn * compass.iron
            jacobians[2] = -(turn @ late)[:, None]
        return np.asarray(off + turn @ (compass.iron * values.atVector(M(0)) - late * values.atVector(T(0))))

    return gtsam.CustomFactor(noise, [X(node), M(0), T(0)], error)


def errors(factor: Any, values: Any) -> FloatArray:
    """Return the errors of a factor (n,), in units of its noise."""
    return -np.asarray(factor.linearize(values).jacobian()[1])


def worst(factor: Any, values: Any) -> float:
    """Return how far the derivatives of a factor are off differences, as a share of the largest."""
    linear = factor.linearize(values)
    given, at = np.asarray(linear.jacobian()[0]), 0
    found = np.empty_like(given)
    for key in list(factor.keys()):
        size = SIZES[chr(gtsam.symbolChr(key))]
        for axis in range(size):
            sides = []
            for step in (STEP, -STEP):
                moved = gtsam.VectorValues()
                moved.insert(key, step * np.eye(size)[axis])
                sides.append(errors(factor, values.retract(moved)))
            found[:, at + axis] = (sides[0] - sides[1]) / (2.0 * STEP)
        at += size
    return float(np.abs(found - given).max() / np.abs(given).max())


def main() -> None:
    """Hold each factor's derivatives against differences, away from zero, for sensors that stand askew."""
    draws = np.random.default_rng(0)
    some = Mounted(gtsam.Rot3.RzRyRx(0.3, -0.2, 1.0).matrix(), np.array([0.4, -0.2, 0.1]))
    values = gtsam.Values()
    for node in range(2):
        turned = gtsam.Rot3.RzRyRx(0.1, 0.2 + 0.01 * node, 1.3 + 0.05 * node)
        values.insert(X(node), gtsam.Pose3(turned, np.array([3.0, 5.0 + 1.5 * node, -30.0])))
        values.insert(V(node), np.array([0.3, 1.4, 0.1]))
        values.insert(B(node), gtsam.imuBias.ConstantBias(np.full(3, 0.01), np.full(3, 1e-4)))
        values.insert(F(node), draws.normal(size=6))
    for key, size in ((S(0), 6), (C(0), 7), (D(0), 1), (M(0), 3), (T(0), 1)):
        values.insert(key, draws.normal(size=size))
    settings = gtsam.PreintegrationCombinedParams(np.array([0.0, 0.0, -9.8]))
    whole = gtsam.PreintegratedCombinedMeasurements(settings, gtsam.imuBias.ConstantBias())
    felt = np.array([0.3, -0.2, 9.8, 0.02, 0.03, 0.1])
    for _ in range(100):
        whole.integrateMeasurement(felt[:3], felt[3:], 0.01)
    field = np.array([700.0, 17e3, -47e3])
    compass = Compass(some, 5.0, np.full(3, 400.0), np.array([4e-3]))
    made = {
        "IMU": imu_factor(1, whole, felt, np.full(6, 1e-3), Flicker(np.array([2.0, 20.0]), np.array([1e-3, 2e-3]))),
        "DVL": velocity_factor(1, np.array([1.4, 0.1, 0.0]), np.eye(3) * 1e-4, some, felt[3:], np.full(7, 5e-3)),
        "depth": depth_factor(1, 30.2, 0.01, some, np.array([0.05])),
        "field": field_factor(1, field[[1, 0, 2]], field, compass, np.cross(field, felt[3:])),
    }
    for name, factor in made.items():
        off = worst(factor, values)
        print(f"{name:6s} derivatives off by {off:.1e} of the largest")
        assert off < 1e-5


if __name__ == "__main__":
    main()

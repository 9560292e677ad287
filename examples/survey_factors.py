"""GTSAM factors of the survey's sensors with their constant errors; `dead_reckoning.py` combines them.

X, V, B are pose, velocity (m/s east, north, up) and bias of the IMU at a node. F is the flicker of its accelerometers:
Gauss-Markov processes in units of their deviations, g_k = decay g_(k-1) + sqrt(1 - decay^2) w. Constant errors are one
variable each, in units of their deviation, so that each prior has deviation 1:

    S  scale factors of the IMU                    measured = (1 + s) true + bias + noise
    C  DVL: scale, mounting, offset                measured = (1 + c0) exp(c1..3) true + c4..6 + noise
    D  offset of the depth gauge (m)
    M  residual hard iron (nT), along the compass axes
    T  offset of the compass clock from the IMU clock (s)

As a script, it compares the derivatives of the factors with differences of their errors.

python examples/survey_factors.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gtsam
import numpy as np
import outputs
from gtsam.symbol_shorthand import B, C, D, F, M, S, T, V, X
from numpy.typing import NDArray

from navsense.factors import MagPoseFactorPose3

FloatArray = NDArray[np.float64]

STEP = 1e-4
"""Step of the differences, in the units of the variables."""

SIZES = {"x": 6, "v": 3, "b": 6, "f": 6, "s": 6, "c": 7, "d": 1, "m": 3, "t": 1}
"""Size of each variable, with two processes in F."""


@dataclass(frozen=True)
class Mounting:
    """A sensor on the hull: its rotation relative to the IMU (3, 3), and its position (3,) m in IMU axes."""

    rotation: FloatArray
    place: FloatArray


def make_cross_matrix(v: FloatArray) -> FloatArray:
    """Return the cross-product matrix of a vector."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


@dataclass(frozen=True)
class Flicker:
    """Gauss-Markov processes of the accelerometer flicker.

    They have time constants (m,) s, and stationary deviations (m,) m/s^2 on each of three axes.
    """

    times: FloatArray
    deviations: FloatArray

    @property
    def size(self) -> int:
        """The size of F: x, y, z of the first process, then those of the next."""
        return 3 * int(self.times.size)

    @property
    def bias_matrix(self) -> FloatArray:
        """The matrix (6, size) from F to an IMU bias in m/s^2 and rad/s."""
        return np.vstack([np.kron(self.deviations, np.eye(3)), np.zeros((3, self.size))])

    def compute_decay(self, gap: float) -> FloatArray:
        """Return the decay of F over an interval (s), (size,)."""
        return np.repeat(np.exp(-gap / self.times), 3)


def make_imu_factor(node: int, preintegrated: Any, measured: FloatArray, scale: FloatArray, flicker: Flicker) -> Any:
    """Return the factor of the preintegrated IMU.

    `measured` (6,), m/s^2 and rad/s, is the mean reading between the nodes. A scale factor acts like a bias of s times
    this mean, and flicker like the mean of its two ends: GTSAM's factor is evaluated at biases that include both. The
    errors of the flicker processes follow below.
    """
    keys = X(node - 1), V(node - 1), X(node), V(node), B(node - 1), B(node)
    gtsam_factor, worth, share = (
        gtsam.CombinedImuFactor(*keys, preintegrated),
        measured * scale,
        0.5 * flicker.bias_matrix,
    )
    decay, none = flicker.compute_decay(preintegrated.deltaTij()), np.zeros((flicker.size, 30))
    innovation = np.sqrt(1.0 - decay * decay)

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        before, after = values.atVector(F(node - 1)), values.atVector(F(node))
        moved, more = gtsam.Values(), worth * values.atVector(S(0)) + share @ (before + after)
        for pose, velocity, bias in ((*keys[:2], keys[4]), (*keys[2:4], keys[5])):
            slow = values.atConstantBias(bias).vector() + more
            moved.insert(pose, values.atPose3(pose))
            moved.insert(velocity, values.atVector(velocity))
            moved.insert(bias, gtsam.imuBias.ConstantBias(slow[:3], slow[3:]))
        matrix, residual = gtsam_factor.linearize(moved).jacobian()
        if jacobians is not None:
            parts = np.split(np.vstack([matrix, none]), (6, 9, 15, 18, 24), axis=1)
            for place, part in enumerate(parts):
                jacobians[place] = part
            by_bias = parts[4] + parts[5]
            jacobians[6], jacobians[7] = by_bias * worth, by_bias @ share
            jacobians[8] = jacobians[7].copy()
            jacobians[7][15:] = np.diag(-decay / innovation)
            jacobians[8][15:] = np.diag(1.0 / innovation)
        return np.concatenate([-np.asarray(residual), (after - decay * before) / innovation])

    noise = gtsam.noiseModel.Unit.Create(15 + flicker.size)
    return gtsam.CustomFactor(noise, [*keys, S(0), F(node - 1), F(node)], error)


def make_velocity_factor(
    node: int, measured: FloatArray, covariance: FloatArray, dvl: Mounting, rate: FloatArray, sigmas: FloatArray
) -> Any:
    """Return the factor of a velocity over ground: (1 + c0) exp(c1..3) Rd' (R' v + w x l) + c4..6 - measured (m/s)."""
    turn, lever = dvl.rotation.T, np.cross(rate, dvl.place)

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        rotation = values.atPose3(X(node)).rotation()
        errors = sigmas * values.atVector(C(0))
        body = rotation.unrotate(values.atVector(V(node)))
        rotation_ = np.array(gtsam.Rot3.Expmap(errors[1:4]).matrix()) * (1.0 + errors[0]) @ turn
        predicted: FloatArray = rotation_ @ (body + lever)
        if jacobians is not None:
            jacobians[0] = np.hstack([rotation_ @ make_cross_matrix(body), np.zeros((3, 3))])
            jacobians[1] = rotation_ @ rotation.matrix().T
            twisted = -make_cross_matrix(predicted) @ (
                np.eye(3) + 0.5 * make_cross_matrix(errors[1:4])
            )  # of exp, to second order
            jacobians[2] = np.hstack([predicted[:, None] / (1.0 + errors[0]), twisted, np.eye(3)]) * sigmas
        return np.asarray(predicted + errors[4:] - measured)

    return gtsam.CustomFactor(gtsam.noiseModel.Gaussian.Covariance(covariance), [X(node), V(node), C(0)], error)


def make_depth_factor(node: int, measured: float, stddev: float, gauge: Mounting, sigmas: FloatArray) -> Any:
    """Return the factor of a depth (m): minus the height of the gauge, plus its offset."""

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        pose = values.atPose3(X(node))
        down: FloatArray = -pose.rotation().matrix()[2]
        if jacobians is not None:
            jacobians[0] = np.hstack([-down @ make_cross_matrix(gauge.place), down])[None]
            jacobians[1] = sigmas[None]
        return np.asarray(down @ gauge.place - pose.translation()[2] + sigmas * values.atVector(D(0)) - measured)

    return gtsam.CustomFactor(gtsam.noiseModel.Isotropic.Sigma(1, stddev), [X(node), D(0)], error)


@dataclass(frozen=True)
class Compass:
    """Mounting and noise (nT) of a compass, and the deviations of hard iron (3,) nT and clock offset (1,) s."""

    mounting: Mounting
    noise: float
    iron: FloatArray
    clock: FloatArray


def make_field_factor(node: int, measured: FloatArray, known: FloatArray, compass: Compass, drift: FloatArray) -> Any:
    """Return the factor of a magnetic field (nT): navsense's factor on a pose, with hard iron and clock offset.

    `known` (3,) nT is the earth's field in east, north, up. `drift` (3,) nT/s is the change of the reading by rotation.
    """
    turn, late = compass.mounting.rotation, drift * compass.clock
    where = gtsam.Pose3(gtsam.Rot3(turn), compass.mounting.place)
    noise, size = gtsam.noiseModel.Isotropic.Sigma(3, compass.noise), float(np.linalg.norm(known))
    pure = MagPoseFactorPose3(X(node), measured, size, known / size, np.zeros(3), noise, body_P_sensor=where)

    def error(_factor: Any, values: Any, jacobians: Any) -> FloatArray:
        turned = np.zeros((3, 6), order="F")
        residual = pure.evaluateError(values.atPose3(X(node)), turned)
        if jacobians is not None:
            jacobians[0] = turned
            jacobians[1] = turn * compass.iron
            jacobians[2] = -(turn @ late)[:, None]
        return np.asarray(residual + turn @ (compass.iron * values.atVector(M(0)) - late * values.atVector(T(0))))

    return gtsam.CustomFactor(noise, [X(node), M(0), T(0)], error)


def compute_errors(factor: Any, values: Any) -> FloatArray:
    """Return the errors of a factor (n,), in units of its noise."""
    return -np.asarray(factor.linearize(values).jacobian()[1])


def compute_jacobian_error(factor: Any, values: Any) -> float:
    """Return the error of the derivatives of a factor relative to the largest, by differences."""
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
                sides.append(compute_errors(factor, values.retract(moved)))
            found[:, at + axis] = (sides[0] - sides[1]) / (2.0 * STEP)
        at += size
    return float(np.abs(found - given).max() / np.abs(given).max())


def main() -> None:
    """Compare the derivatives of each factor with differences, away from zero, for rotated sensors."""
    draws = np.random.default_rng(0)
    mounting = Mounting(gtsam.Rot3.RzRyRx(0.3, -0.2, 1.0).matrix(), np.array([0.4, -0.2, 0.1]))
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
    preintegrated = gtsam.PreintegratedCombinedMeasurements(settings, gtsam.imuBias.ConstantBias())
    measured = np.array([0.3, -0.2, 9.8, 0.02, 0.03, 0.1])
    for _ in range(100):
        preintegrated.integrateMeasurement(measured[:3], measured[3:], 0.01)
    field = np.array([700.0, 17e3, -47e3])
    compass = Compass(mounting, 5.0, np.full(3, 400.0), np.array([4e-3]))
    factors = {
        "IMU": make_imu_factor(
            1, preintegrated, measured, np.full(6, 1e-3), Flicker(np.array([2.0, 20.0]), np.array([1e-3, 2e-3]))
        ),
        "DVL": make_velocity_factor(
            1, np.array([1.4, 0.1, 0.0]), np.eye(3) * 1e-4, mounting, measured[3:], np.full(7, 5e-3)
        ),
        "depth": make_depth_factor(1, 30.2, 0.01, mounting, np.array([0.05])),
        "field": make_field_factor(1, field[[1, 0, 2]], field, compass, np.cross(field, measured[3:])),
    }
    errors = {name: compute_jacobian_error(factor, values) for name, factor in factors.items()}
    for name, error in errors.items():
        print(f"{name:6s} derivatives off by {error:.1e} of the largest")
        assert error < 1e-5
    outputs.write("survey_factors", {"factor": list(errors), "error of its derivatives": list(errors.values())})


if __name__ == "__main__":
    main()

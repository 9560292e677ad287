"""Attitude from a simulated IMU and magnetometer in a GTSAM graph.

A board is rotated by hand for a minute. Its magnetometer is calibrated (`bias` and `scale` are known), but a current
disturbs one reading in twenty. GTSAM's preintegrated gyroscope, with an unknown bias, connects ten attitudes per
second. Each attitude has a gravity factor and navsense's `MagFactor1`, converted by `to_gtsam()`, with a robust noise
model. Requires gtsam (`pip install 'navsense[gtsam]'`).

python examples/attitude_graph.py
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import outputs
from numpy.typing import NDArray

import navsense as ns
from navsense.factors import local_field

GYRO, ACCELEROMETER, COMPASS = 5e-3, 0.05, 3e-7
"""White noise of one sample: rad/s, m/s^2, T."""

HARD_IRON = np.array([8e-6, -5e-6, 12e-6])
"""Hard iron (T), known from a calibration."""

NANOTESLA = 1e9
"""nT per tesla. The graph uses nT because GTSAM treats a sigma below 1e-8 as a hard constraint."""

RATE, STEP = 200, 20
"""Samples a second, and samples between two attitudes of the graph."""

DURATION = 60.0

WORLD = f"""<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="bench">
  <spherical_coordinates>
    <surface_model>EARTH_WGS84</surface_model>
    <latitude_deg>47.4</latitude_deg><longitude_deg>8.5</longitude_deg><elevation>488</elevation>
  </spherical_coordinates>
  <navsense:magnetic_field model="WMM2025" date="2026.9"/>
  <model name="board">
    <navsense:motion>
      <navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>
      <navsense:waypoint time="8">0 0 0 0.8 -0.4 0.9</navsense:waypoint>
      <navsense:waypoint time="16">0 0 0 -0.3 0.7 1.6</navsense:waypoint>
      <navsense:waypoint time="24">0 0 0 -1.0 -0.2 1.0</navsense:waypoint>
      <navsense:waypoint time="32">0 0 0 -0.1 -0.9 0.1</navsense:waypoint>
      <navsense:waypoint time="40">0 0 0 0.9 -0.1 -0.9</navsense:waypoint>
      <navsense:waypoint time="48">0 0 0 0.3 0.7 -1.7</navsense:waypoint>
      <navsense:waypoint time="56">0 0 0 -0.7 0.2 -2.3</navsense:waypoint>
      <navsense:waypoint time="61">0 0 0 0 0 -3.0</navsense:waypoint>
    </navsense:motion>
    <link name="plate">
      <sensor name="imu" type="imu"><update_rate>{RATE}</update_rate><imu>
        <angular_velocity>{{gyro}}</angular_velocity>
        <linear_acceleration>{{accelerometer}}</linear_acceleration>
      </imu></sensor>
      <sensor name="compass" type="magnetometer"><update_rate>{RATE // STEP}</update_rate><magnetometer>
        {{compass}}
        <navsense:hard_iron>{" ".join(map(repr, HARD_IRON.tolist()))}</navsense:hard_iron>
      </magnetometer></sensor>
    </link>
  </model>
</world></sdf>"""


def make_world() -> Any:
    """Return the board: a gyroscope with a turn-on bias of 0.5 deg/s and a disturbed compass."""
    outliers = "<navsense:noise><outlier_probability>0.05</outlier_probability><outlier_stddev>2e-5</outlier_stddev>"
    text = WORLD.format(
        gyro=format_axes(f"<stddev>{GYRO}</stddev><bias_stddev>8.7e-3</bias_stddev>"),
        accelerometer=format_axes(f"<stddev>{ACCELEROMETER}</stddev>"),
        compass=format_axes(f"<stddev>{COMPASS}</stddev>{outliers}</navsense:noise>"),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.sdf"
        path.write_text(text, encoding="utf-8")
        return ns.load(path)


def format_axes(inner: str) -> str:
    """Return the same noise for three axes."""
    return "".join(f'<{axis}><noise type="gaussian">{inner}</noise></{axis}>' for axis in "xyz")


def make_graph(run: Any, *, robust: bool) -> tuple[Any, Any]:
    """Return the graph of a run and its initial values: the gyroscope alone, from the initial attitude."""
    import gtsam
    from gtsam.symbol_shorthand import B, R

    imu, compass = run["board::plate::imu"], run["board::plate::compass"]
    gyro, force = imu["angular_velocity"], imu["linear_acceleration"]
    field = local_field(math.radians(47.4), math.radians(8.5), 488.0, 2026.9, frame="ENU")
    graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    up = gtsam.Unit3(np.array([0.0, 0.0, 1.0]))
    level = gtsam.noiseModel.Isotropic.Sigma(2, ACCELEROMETER / 9.8)
    noise: Any = gtsam.noiseModel.Isotropic.Sigma(3, COMPASS * NANOTESLA)
    if robust:
        noise = gtsam.noiseModel.Robust.Create(gtsam.noiseModel.mEstimator.Cauchy.Create(2.0), noise)
    parameters = gtsam.PreintegratedRotationParams()
    parameters.setGyroscopeCovariance(np.eye(3) * GYRO**2 / RATE)
    graph.push_back(gtsam.PriorFactorVector(B(0), np.zeros(3), gtsam.noiseModel.Isotropic.Sigma(3, 0.02)))
    values.insert(B(0), np.zeros(3))
    attitude = gtsam.Rot3()
    for node in range(compass.time.size):
        if node:
            preintegrated = gtsam.PreintegratedAhrsMeasurements(parameters, np.zeros(3))
            for k in range((node - 1) * STEP, node * STEP):
                preintegrated.integrateMeasurement(0.5 * (gyro[k] + gyro[k + 1]), 1.0 / RATE)
            graph.push_back(gtsam.AHRSFactor(R(node - 1), R(node), B(0), preintegrated))
            attitude = attitude.compose(preintegrated.deltaRij())
        values.insert(R(node), attitude)
        graph.push_back(gtsam.AttitudeFactorRot3(R(node), up, level, gtsam.Unit3(force[node * STEP])))
        measured, scale, bias = (NANOTESLA * part for part in (compass["field"][node], field.strength, HARD_IRON))
        factor = ns.factors.MagFactor1(R(node), measured, scale, field.direction, bias, noise)
        graph.push_back(factor.to_gtsam())
    return graph, values


def compute_errors(values: Any, truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rotation vectors (n, 3), rad in the body frame, from the true attitudes (n, 4) to the estimates."""
    import gtsam
    from gtsam.symbol_shorthand import R

    errors = (gtsam.Rot3.Quaternion(*q).between(values.atRot3(R(node))) for node, q in enumerate(truth.tolist()))
    return np.array([gtsam.Rot3.Logmap(rotation) for rotation in errors])


def compute_largest_angle(errors: NDArray[np.float64]) -> float:
    """Return the largest angle in degrees."""
    return math.degrees(float(np.sqrt((errors**2).sum(axis=1)).max()))


def write_errors(errors: dict[str, NDArray[np.float64]]) -> None:
    """Write the error angles of the estimates as a table and a picture."""
    names = {"gyroscope alone": "gyroscope alone", "plain": "with compass", "robust": "with compass, robust"}
    time = np.arange(len(errors["robust"])) * STEP / RATE
    angles = {names[key]: np.degrees(np.linalg.norm(rows, axis=1)) for key, rows in errors.items()}

    def draw(axes: Any) -> None:
        for name, angle in angles.items():
            axes.semilogy(time, angle, label=name)
        outputs.label(axes, "Error of the attitude", "time (s)", "error (°)")

    columns = {f"{name} (deg)": angle for name, angle in angles.items()}
    outputs.write("attitude_graph", {"time (s)": time, **columns}, draw)


def main() -> None:
    """Estimate the attitudes with the gyroscope alone, and with the compass with and without a robust model."""
    import gtsam
    from gtsam.symbol_shorthand import B, R

    run = ns.simulate(make_world(), DURATION, seed=7, truth_rate=float(RATE // STEP))
    truth = run.truth["board::plate"].orientation
    errors, found = {}, {}
    for name, robust in (("plain", False), ("robust", True)):
        graph, values = make_graph(run, robust=robust)
        errors["gyroscope alone"] = compute_errors(values, truth)
        found[name] = gtsam.LevenbergMarquardtOptimizer(graph, values).optimize()
        errors[name] = compute_errors(found[name], truth)
    for name, rows in errors.items():
        print(f"{name:>15}: {compute_largest_angle(rows):6.2f} degrees at worst over {rows.shape[0]} attitudes")
    bias = found["robust"].atVector(B(0))
    true_bias = run["board::plate::imu"].bias["angular_velocity"][0]
    print(f"estimated bias {np.degrees(bias)} deg/s, true bias {np.degrees(true_bias)} deg/s")

    # The squared error by the covariance is chi-squared with 3 degrees of freedom. It exceeds 37.3 once in
    # 25 million, so one of 600 attitudes does once in 40,000 runs.
    marginals = gtsam.Marginals(graph, found["robust"])
    inverse = [np.linalg.inv(marginals.marginalCovariance(R(node))) for node in range(truth.shape[0])]
    squared = np.einsum("ni,nij,nj->n", errors["robust"], np.array(inverse), errors["robust"])
    print(f"normalised error squared: {squared.mean():.2f} on average (3 expected), {squared.max():.1f} at most")
    write_errors(errors)
    assert compute_largest_angle(errors["gyroscope alone"]) > 10.0
    assert compute_largest_angle(errors["robust"]) < 0.4
    assert squared.max() < 37.3
    assert np.abs(bias - true_bias).max() < 5.0 * GYRO / math.sqrt(RATE * DURATION)
    assert compute_largest_angle(errors["plain"]) > 2.0 * compute_largest_angle(errors["robust"])


if __name__ == "__main__":
    main()

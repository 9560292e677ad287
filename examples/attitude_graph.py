"""Attitude from a simulated IMU and magnetometer in a GTSAM graph: gyroscope between, gravity and compass at each node.

A board is turned by hand for a minute where it stands. Its magnetometer was calibrated (`bias` and `scale` are known)
but one reading in twenty is struck by a passing current. Ten attitudes a second are joined by GTSAM's preintegrated
gyroscope, whose bias is unknown; each sees gravity and this package's `MagFactor1`, handed over by `to_gtsam()`, with a
robust noise model. Needs gtsam (`pip install 'navsense[gtsam]'`).

python examples/attitude_graph.py
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import navsense as ns
from navsense.core.typing import FloatArray
from navsense.factors import local_field

GYRO, ACCELEROMETER, COMPASS = 5e-3, 0.05, 3e-7
"""White noise of one sample: rad/s, m/s^2, T."""

HARD_IRON = np.array([8e-6, -5e-6, 12e-6])
"""T, known from a calibration."""

NANOTESLA = 1e9
"""In a tesla: GTSAM takes a sigma below 1e-8 for a hard constraint, so the graph is in nT."""

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


def world() -> Any:
    """Return the board on its bench: a gyroscope with a turn-on bias of half a degree a second, a struck compass."""
    struck = "<navsense:noise><outlier_probability>0.05</outlier_probability><outlier_stddev>2e-5</outlier_stddev>"
    text = WORLD.format(
        gyro=axes(f"<stddev>{GYRO}</stddev><bias_stddev>8.7e-3</bias_stddev>"),
        accelerometer=axes(f"<stddev>{ACCELEROMETER}</stddev>"),
        compass=axes(f"<stddev>{COMPASS}</stddev>{struck}</navsense:noise>"),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.sdf"
        path.write_text(text, encoding="utf-8")
        return ns.load(path)


def axes(inner: str) -> str:
    """Return the noise of three axes alike."""
    return "".join(f'<{axis}><noise type="gaussian">{inner}</noise></{axis}>' for axis in "xyz")


def graph_of(run: Any, *, robust: bool) -> tuple[Any, Any]:
    """Return the graph of a run and its first values: the gyroscope alone, from the attitude at the start."""
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
            turned = gtsam.PreintegratedAhrsMeasurements(parameters, np.zeros(3))
            for k in range((node - 1) * STEP, node * STEP):
                turned.integrateMeasurement(0.5 * (gyro[k] + gyro[k + 1]), 1.0 / RATE)
            graph.push_back(gtsam.AHRSFactor(R(node - 1), R(node), B(0), turned))
            attitude = attitude.compose(turned.deltaRij())
        values.insert(R(node), attitude)
        graph.push_back(gtsam.AttitudeFactorRot3(R(node), up, level, gtsam.Unit3(force[node * STEP])))
        seen, scale, bias = (NANOTESLA * part for part in (compass["field"][node], field.strength, HARD_IRON))
        factor = ns.factors.MagFactor1(R(node), seen, scale, field.direction, bias, noise)
        graph.push_back(factor.to_gtsam())
    return graph, values


def errors(values: Any, truth: FloatArray) -> FloatArray:
    """Return the rotation vectors (n, 3), rad in the body frame, from the true attitudes (n, 4) to those of a graph."""
    import gtsam
    from gtsam.symbol_shorthand import R

    off = (gtsam.Rot3.Quaternion(*q).between(values.atRot3(R(node))) for node, q in enumerate(truth.tolist()))
    return np.array([gtsam.Rot3.Logmap(rotation) for rotation in off])


def worst(off: FloatArray) -> float:
    """Return the largest angle in degrees."""
    return math.degrees(float(np.sqrt((off**2).sum(axis=1)).max()))


def main() -> None:
    """Estimate the attitudes with the gyroscope alone, with the compass, and with a compass that is doubted."""
    import gtsam
    from gtsam.symbol_shorthand import B, R

    run = ns.simulate(world(), DURATION, seed=7, truth_rate=float(RATE // STEP))
    truth = run.truth["board::plate"].orientation
    off, found = {}, {}
    for name, robust in (("plain", False), ("robust", True)):
        graph, values = graph_of(run, robust=robust)
        off["gyroscope alone"] = errors(values, truth)
        found[name] = gtsam.LevenbergMarquardtOptimizer(graph, values).optimize()
        off[name] = errors(found[name], truth)
    for name, rows in off.items():
        print(f"{name:>15}: {worst(rows):6.2f} degrees at worst over {rows.shape[0]} attitudes")
    bias = found["robust"].atVector(B(0))
    true_bias = run["board::plate::imu"].bias["angular_velocity"][0]
    print(f"gyroscope's bias {np.degrees(bias)} deg/s, truly {np.degrees(true_bias)}")

    # Each attitude's error against its own covariance: chi-squared with 3 degrees of freedom, which passes 37.3 once in
    # 25 million, so that one of 600 does once in 40,000 runs.
    marginals = gtsam.Marginals(graph, found["robust"])
    inverse = [np.linalg.inv(marginals.marginalCovariance(R(node))) for node in range(truth.shape[0])]
    squared = np.einsum("ni,nij,nj->n", off["robust"], np.array(inverse), off["robust"])
    print(f"normalised error squared: {squared.mean():.2f} on average (3 expected), {squared.max():.1f} at most")
    assert worst(off["gyroscope alone"]) > 10.0
    assert worst(off["robust"]) < 0.4
    assert squared.max() < 37.3
    assert np.abs(bias - true_bias).max() < 5.0 * GYRO / math.sqrt(RATE * DURATION)
    assert worst(off["plain"]) > 2.0 * worst(off["robust"])


if __name__ == "__main__":
    main()

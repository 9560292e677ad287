"""Noise densities from SDF equal the Allan deviations that allantools estimates."""

from __future__ import annotations

import math
from pathlib import Path

import allantools
import numpy as np
import pymap3d.rcurve
import pytest

import navsense as ns

pytestmark = pytest.mark.compiled

RUNS = 24
STUDENT = 8.02
"""Two-sided quantile of Student's t, 23 degrees of freedom: a false-alarm rate of 1e-6 over all 24 comparisons."""

TAU = 8.0

WORLD = """<sdf version="1.9"><world name="table"><model name="robot"><link name="link">
  <sensor name="imu" type="imu"><update_rate>{rate}</update_rate><imu>
    <angular_velocity><x>{gyro}</x></angular_velocity>
    <linear_acceleration><z>{force}</z></linear_acceleration>
  </imu></sensor>
  <sensor name="mag" type="magnetometer"><update_rate>{rate}</update_rate>
    <magnetometer><y>{field}</y></magnetometer></sensor>
</link></model></world></sdf>"""

DENSITIES = {"angular_velocity": 2e-4, "linear_acceleration": 2e-3, "field": 1e-8}
"""White density, unit per root hertz."""

DRIVES = {"angular_velocity": 1e-4, "linear_acceleration": 1.5e-3, "field": 4e-9}
"""Driving density of the drift, unit per root second."""


def make_noise(name: str, rate: float) -> str:
    return (
        f'<noise type="gaussian"><stddev>{DENSITIES[name] * math.sqrt(rate)!r}</stddev>'
        f"<dynamic_bias_stddev>{DRIVES[name]}</dynamic_bias_stddev>"
        f"<dynamic_bias_correlation_time>{TAU}</dynamic_bias_correlation_time></noise>"
    )


def compute_declared_variance(name: str, span: float) -> float:
    """Allan variance of white noise plus Gauss-Markov drift at `span` (IEEE 952-1997, annex C)."""
    q = DRIVES[name]
    bracket = 3.0 - 4.0 * math.exp(-span / TAU) + math.exp(-2.0 * span / TAU)
    return DENSITIES[name] ** 2 / span + (q * TAU) ** 2 / span * (1.0 - TAU / (2.0 * span) * bracket)


@pytest.mark.requirement("NOI-3", "NOI-1", "IMU-1", "MAG-2")
@pytest.mark.parametrize("rate", [25.0, 200.0])
def test_estimated_densities_of_both_sensors_match_the_declaration(rate: float, tmp_path: Path) -> None:
    path = tmp_path / "table.sdf"
    blocks = {"gyro": "angular_velocity", "force": "linear_acceleration", "field": "field"}
    path.write_text(WORLD.format(rate=rate, **{key: make_noise(name, rate) for key, name in blocks.items()}))
    run = ns.simulate(ns.load(path), 900.0, seed=3, runs=RUNS, truth_rate=0.01)
    spans = [0.4, 2.0, 10.0, 40.0]
    for sensor, name, axis in (("imu", "angular_velocity", 0), ("imu", "linear_acceleration", 2), ("mag", "field", 1)):
        values = run[f"robot::link::{sensor}"][name][..., axis]
        variances = []
        for row in values:
            _, deviation, _, _ = allantools.oadev(row, rate=rate, data_type="freq", taus=spans)
            variances.append(deviation**2)
        mean, spread = np.mean(variances, axis=0), np.std(variances, axis=0, ddof=1) / math.sqrt(RUNS)
        for i, span in enumerate(spans):
            assert abs(mean[i] - compute_declared_variance(name, span)) < STUDENT * spread[i], f"{name}, {span} s"


HEIGHTS = """<sdf version="1.9"><world name="field">
<spherical_coordinates><latitude_deg>60</latitude_deg><longitude_deg>25</longitude_deg></spherical_coordinates>
<model name="robot"><link name="link">
  <sensor name="alt" type="altimeter"><update_rate>10</update_rate><altimeter>
    <vertical_position>{vertical_position}</vertical_position>
    <vertical_velocity>{vertical_velocity}</vertical_velocity>
  </altimeter></sensor>
  <sensor name="baro" type="air_pressure"><update_rate>10</update_rate>
    <air_pressure><pressure>{pressure}</pressure></air_pressure></sensor>
  <sensor name="gps" type="navsat"><update_rate>10</update_rate><navsat>
    <position_sensing><horizontal>{latitude}</horizontal><vertical>{altitude}</vertical></position_sensing>
  </navsat></sensor>
</link></model></world></sdf>"""

ARRAYS = {
    "vertical_position": "alt",
    "vertical_velocity": "alt",
    "pressure": "baro",
    "latitude": "gps",
    "altitude": "gps",
}
DENSITIES |= {"vertical_position": 0.1, "vertical_velocity": 0.03, "pressure": 1.5, "latitude": 0.5, "altitude": 0.9}
DRIVES |= {"vertical_position": 0.05, "vertical_velocity": 0.02, "pressure": 0.8, "latitude": 0.3, "altitude": 0.4}


@pytest.mark.requirement("NOI-3", "ALT-3", "PRS-1", "NAV-1")
def test_estimated_densities_of_height_pressure_and_position_match(tmp_path: Path) -> None:
    """Latitudes are converted to metres by pymap3d's meridian radius of curvature, at 60 degrees."""
    path = tmp_path / "field.sdf"
    path.write_text(HEIGHTS.format(**{name: make_noise(name, 10.0) for name in ARRAYS}))
    run = ns.simulate(ns.load(path), 900.0, seed=3, runs=RUNS, truth_rate=0.01)
    metres = {"latitude": pymap3d.rcurve.meridian(60.0)}
    spans = [0.4, 2.0, 10.0, 40.0]
    for name, sensor in ARRAYS.items():
        reading = run[f"robot::link::{sensor}"]
        values = (reading[name] - reading.ideal[name]) * metres.get(name, 1.0)
        variances = [allantools.oadev(row, rate=10.0, data_type="freq", taus=spans)[1] ** 2 for row in values]
        mean, spread = np.mean(variances, axis=0), np.std(variances, axis=0, ddof=1) / math.sqrt(RUNS)
        for i, span in enumerate(spans):
            assert abs(mean[i] - compute_declared_variance(name, span)) < STUDENT * spread[i], f"{name}, {span} s"

"""The cost of a sample compared to gz-sensors (C++) on one core.

    make bench            or            python benchmarks/bench_gazebo.py

Requires gz-sensors with its headers, pkg-config and a C++ compiler; a message names missing packages. Both read one
file with standard noise on every channel, at rest. navsense computes ideal values, readings and the errors of a
Gaussian clock, in blocks. gz-sensors is updated sample by sample as in Gazebo, fills its message and has no subscriber.
It draws the drift for the IMU only, so its magnetometer and altimeter compute less.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import navsense as ns
from navsense.analysis.bench import STANDARD, measure_sensor
from navsense.sensors.base import Sensor

PEER = Path(__file__).resolve().parent / "peers" / "gz_sensors.cpp"
COMPILER = os.environ.get("CXX", "g++")
PKG_CONFIG = os.environ.get("PKG_CONFIG", "pkg-config")
TURNS, SAMPLES, ROUNDS = 20, 10_000, 5  # rounds of similar duration
APART = {"IP": "127.0.0.1", "PARTITION": "navsense_bench"}
"""Environment that limits the discovery of Gazebo's transport to this machine and partition."""

MODEL = """<?xml version="1.0"?>
<sdf version="1.9"><model name="bench"><link name="link">
  <sensor name="imu" type="imu"><update_rate>1000</update_rate><imu>
    <angular_velocity><x>{noise}</x><y>{noise}</y><z>{noise}</z></angular_velocity>
    <linear_acceleration><x>{noise}</x><y>{noise}</y><z>{noise}</z></linear_acceleration>
  </imu></sensor>
  <sensor name="magnetometer" type="magnetometer"><update_rate>1000</update_rate>
    <magnetometer><x>{noise}</x><y>{noise}</y><z>{noise}</z></magnetometer>
  </sensor>
  <sensor name="altimeter" type="altimeter"><update_rate>1000</update_rate><altimeter>
    <vertical_position>{noise}</vertical_position><vertical_velocity>{noise}</vertical_velocity>
  </altimeter></sensor>
</link></model></sdf>
"""


class MissingError(Exception):
    """A program or library of the comparison is missing."""


def write_model(path: Path) -> None:
    """Write the compared sensors, each channel with standard noise."""
    figures = {
        "mean": STANDARD.mean,
        "stddev": STANDARD.stddev,
        "bias_mean": STANDARD.bias_mean,
        "bias_stddev": STANDARD.bias_stddev,
        "dynamic_bias_stddev": STANDARD.dynamic_bias_stddev,
        "dynamic_bias_correlation_time": STANDARD.dynamic_bias_correlation_time,
        "precision": STANDARD.precision,
    }
    inner = "".join(f"<{name}>{figure!r}</{name}>" for name, figure in figures.items())
    path.write_text(MODEL.format(noise=f'<noise type="gaussian_quantized">{inner}</noise>'), encoding="utf-8")


def find_library() -> str:
    """Return the pkg-config module of the newest installed gz-sensors."""
    for program, package in ((PKG_CONFIG, "pkg-config"), (COMPILER, "g++")):
        if shutil.which(program) is None:
            raise MissingError(f"no {program}; apt-get install {package}")
    listed = subprocess.run((PKG_CONFIG, "--list-all"), check=True, capture_output=True, text=True).stdout
    names: list[str] = re.findall(r"^(?:gz|ignition)-sensors\d*(?=\s)", listed, re.MULTILINE)
    if not names:
        expected = "libgz-sensors8-dev or libignition-sensors6-dev"
        raise MissingError(f"no gz-sensors; apt-get install {expected} (Gazebo's own archive, Debian has neither)")
    return max(names, key=lambda name: int(re.sub(r"\D", "", name) or 99))  # without a number from version 10 on


def compile_peer(module: str, folder: Path) -> Path:
    """Return the peer, compiled with the library."""
    parts = [f"{module}-{kind}" for kind in ("imu", "magnetometer", "altimeter")]
    flags = subprocess.run((PKG_CONFIG, "--cflags", "--libs", *parts), check=True, capture_output=True, text=True)
    old = ["-DIGNITION"] if module.startswith("ignition") else []
    program = folder / "gz_sensors"
    subprocess.run((COMPILER, "-O2", *old, str(PEER), "-o", str(program), *flags.stdout.split()), check=True)
    return program


def measure_gz_sensors(program: Path, model: Path) -> dict[str, float]:
    """Return the nanoseconds per sample of gz-sensors for each sensor type."""
    apart = {f"{prefix}_{name}": value for prefix in ("GZ", "IGN") for name, value in APART.items()}
    command = (str(program), str(model), str(SAMPLES), str(ROUNDS))
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **apart})
    return {kind: float(figure) for kind, figure in map(str.split, done.stdout.splitlines())}


def measure_navsense(specs: dict[str, Sensor]) -> dict[str, float]:
    """Return the nanoseconds per sample of navsense for each sensor type."""
    return {kind: measure_sensor(spec).nanoseconds for kind, spec in specs.items()}


def compute_rows(folder: Path) -> Iterator[str]:
    """Yield the rows: the best of many alternating runs, so that other load affects both."""
    module = find_library()
    program, model = compile_peer(module, folder), folder / "model.sdf"
    write_model(model)
    specs = {sensor.spec.type: sensor.spec for sensor in ns.load(model).sensors}
    here, there = [], []
    for _ in range(TURNS):
        here.append(measure_navsense(specs))
        there.append(measure_gz_sensors(program, model))
    yield f"{'what':58s} {'ours':>16s}   {module:46s} {'ratio':>8s}"
    for kind in specs:
        own, peer = min(turn[kind] for turn in here), min(turn[kind] for turn in there)
        what = f"{kind}, standard noise, a sample, ours in blocks"
        yield f"{what:58s} {f'{own:.1f} ns':>16s}   {f'{peer:.0f} ns':46s} {f'{peer / own:.1f}x':>8s}"


def main() -> None:
    """Print the table, or the missing packages."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # inherited by the peer
    with tempfile.TemporaryDirectory() as name:
        try:
            for row in compute_rows(Path(name)):
                print(row, flush=True)
        except MissingError as missing:
            print(f"not compared with gz-sensors: {missing}")


if __name__ == "__main__":
    main()

"""Fields around a robot: nanoseconds per sample of the magnetic lattice compared to the model.

    make bench            or            python benchmarks/bench_fields.py

The track is 200 s at 1 kHz and 20 m/s, 4 km long. Scattered positions are within 50 km, so that nearly every one needs
a new cell of the lattice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from navsense.analysis.bench import measure_call
from navsense.core.geodesy import Origin
from navsense.core.typing import Times, Vectors
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.gravity import NormalGravity
from navsense.environment.magnetic import Dipole, WorldMagneticModel, field_ned
from navsense.environment.signal import Signal

HERE = Origin(0.826, 0.148, 430.0, 0.6)
DATE = 2027.0
COUNT = 200_000
TIME: Times = np.arange(COUNT, dtype=np.float64) * 1e-3


def make_positions() -> tuple[Vectors, Vectors]:
    """Return positions (n, 3) m along a track, and scattered ones."""
    track = np.zeros((COUNT, 3))
    track[:, 0], track[:, 1], track[:, 2] = 20.0 * TIME, 30.0 * TIME % 7.0, 0.1 * TIME
    return track, np.random.default_rng(1).uniform(-25e3, 25e3, (2000, 3))


def list_workloads() -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Yield name, samples and function of each workload."""
    track, scattered = make_positions()
    field, one = WorldMagneticModel(HERE, DATE), track[:1].copy()
    latitude, longitude, altitude = np.ascontiguousarray(HERE.to_geodetic(track).T)
    yield "WorldMagneticModel along a track", COUNT, lambda: field.at(track, TIME)
    yield "the model itself, field_ned", COUNT, lambda: field_ned(latitude, longitude, altitude, DATE)
    yield "WorldMagneticModel, scattered places", len(scattered), lambda: field.at(scattered, TIME[: len(scattered)])
    yield "WorldMagneticModel, one sample a call", 1, lambda: field.at(one, TIME[:1])
    dipole, gravity = Dipole((5.0, 5.0, 0.0), (10.0, 0.0, 3.0)), NormalGravity(HERE)
    yield "Dipole along a track", COUNT, lambda: dipole.at(track, TIME)
    yield "NormalGravity along a track", COUNT, lambda: gravity.at(track, TIME)
    yield "NormalGravity, one sample a call", 1, lambda: gravity.at(one, TIME[:1])
    air, profile = Atmosphere(), Signal(tuple(range(100)), tuple(range(100)))
    pressure = air.pressure_at(altitude)
    yield "Atmosphere.pressure_at", COUNT, lambda: air.pressure_at(altitude)
    yield "Atmosphere.altitude_at_pressure", COUNT, lambda: air.altitude_at_pressure(pressure)
    yield "Origin.geodetic along a track", COUNT, lambda: HERE.to_geodetic(track)
    yield "Signal of 100 points", COUNT, lambda: profile.at(TIME)


def main() -> None:
    """Print the table, and check the goal of the lattice: 0.1 nT, below 50 ns per sample."""
    took = {}
    for what, samples, work in list_workloads():
        took[what] = measure_call(work) / samples * 1e9
        print(f"{what:42s} {took[what]:9.1f} ns a sample")
    lattice, model = took["WorldMagneticModel along a track"], took["the model itself, field_ned"]
    print(f"the lattice is {model / lattice:.0f} times as fast as the model; the goal is below 50 ns a sample")
    track, _ = make_positions()
    along = HERE.to_geodetic(track)
    latitude, longitude, altitude = np.ascontiguousarray(along.T)
    ned = field_ned(latitude, longitude, altitude, DATE)
    got = HERE.to_enu_at(along, WorldMagneticModel(HERE, DATE).at(track, TIME))
    off = 1e9 * np.abs(got - ned[:, (1, 0, 2)] * (1.0, 1.0, -1.0)).max()
    print(f"and differs from it by {off:.4f} nT at most along the track")
    assert off < 0.1


if __name__ == "__main__":
    main()

"""Ocean currents: nanoseconds per sample of each kind along a track, in blocks.

    make bench            or            python benchmarks/bench_current.py

The track is 1000 s at 1 kHz and 2 m/s, 2 km long, between depths of 5 and 95 m, in blocks of 4096. The goal is below
100 ns per sample for every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import numpy as np

from navsense.analysis.bench import measure_call
from navsense.core.geodesy import Origin
from navsense.environment.base import FieldSum, UniformField, VectorField
from navsense.environment.current import (
    BoundaryLayer,
    CurrentReplay,
    DepthScaledCurrent,
    GaussMarkovCurrent,
    GaussMarkovProcess,
    GriddedCurrent,
    HarmonicFlow,
    StratifiedCurrent,
    StratifiedGaussMarkovCurrent,
    TidalConstituent,
    TidalCurrent,
    TidalEllipse,
    TidalEllipses,
    TideTable,
    UuvGaussMarkovProcess,
    realise,
)

GOAL = 100.0
COUNT, BLOCK = 1_000_000, 4096
TIME = np.arange(COUNT, dtype=np.float64) * 1e-3
HERE = Origin(0.7, -1.2, 0.0, 0.3)
START = datetime(2021, 3, 4, 15, tzinfo=UTC)
NAMES = ("M2", "S2", "N2", "K2", "K1", "O1", "P1", "Q1", "M4", "M6", "Mf")


def make_layers(count: int) -> StratifiedCurrent:
    """Return a table of `count` layers 10 m apart."""
    return StratifiedCurrent(tuple(10.0 * k for k in range(count)), tuple((0.01 * k, 0.3, 0.0) for k in range(count)))


def make_grid(space: str) -> GriddedCurrent:
    """Return a grid of 6 x 21 x 21 x 11 points."""
    draw = np.random.default_rng(1)
    time, depth = np.linspace(0.0, 1200.0, 6), np.linspace(-100.0, 0.0, 11)
    across = np.linspace(-3000.0, 3000.0, 21)
    velocity = draw.uniform(-1.0, 1.0, (6, 21, 21, 11, 3))
    if space == "world":
        return GriddedCurrent((time, across, across, depth), velocity, "world")
    latitude, longitude = HERE.latitude + across / 6.3e6, HERE.longitude + across / 4.8e6
    return GriddedCurrent((time, latitude, longitude, depth), velocity, "geodetic", HERE)


def list_currents() -> Iterator[tuple[str, VectorField]]:
    """Yield every kind of current by name."""
    wander = GaussMarkovCurrent(
        GaussMarkovProcess.from_stddev(0.5, 0.1, 600.0, 0.0, 2.0), GaussMarkovProcess.from_stddev(1.0, 0.2, 900.0)
    )
    one = UuvGaussMarkovProcess(0.5, -1.0, 1.0, 0.1, 0.01)
    classic = GaussMarkovCurrent(one, one, one)
    wandering = StratifiedGaussMarkovCurrent(
        make_layers(12),
        GaussMarkovProcess.from_stddev(0.3, 0.05, 600.0),
        GaussMarkovProcess.from_stddev(0.0, 0.1, 600.0),
    )
    tides = tuple(TidalConstituent(name, 0.1, 0.3) for name in NAMES)
    events = np.arange(-9600.0, 1e5, 11200.0)
    table = TideTable(events, np.resize((0.4, 0.0, -0.5, 0.0), events.size), START)
    yield "uniform", UniformField((0.3, 0.1, 0.0))
    yield "Gauss-Markov, opened", realise(wander, 1)
    yield "Gauss-Markov, classic, opened", realise(classic, 1)
    yield "stratified, 12 layers", make_layers(12)
    yield (
        "stratified, 1000 layers",
        StratifiedCurrent(tuple(0.1 * k for k in range(1000)), tuple((0.1, 0.2, 0.0) for _ in range(1000))),
    )
    yield "stratified Gauss-Markov, 12 layers, opened", realise(wandering, 1)
    yield "tidal, 11 constituents", TidalCurrent(HarmonicFlow(tides, START), 1.0)
    yield "tidal, table", TidalCurrent(table, 1.0)
    yield "tidal, 11 ellipses", TidalEllipses(tuple(TidalEllipse(one, 0.05, 1.0) for one in tides), START)
    yield "grid in the world", make_grid("world")
    yield "grid by latitude and longitude", make_grid("geodetic")
    yield "boundary layer, 1/7, of a uniform one", BoundaryLayer(UniformField((0.3, 0.1, 0.0)), -100.0, 120.0)
    yield "profile of a tide", DepthScaledCurrent(TidalCurrent(table, 1.0), (0.0, 20.0, 100.0), (1.0, 0.8, 0.1))
    yield "sum of a table by depth and a tide", FieldSum((make_layers(12), TidalCurrent(table, 1.0)))
    yield "replay of 1000 rows", CurrentReplay(np.linspace(0.0, 1e3, 1000), np.full((1000, 3), 0.2))


def make_workload(field: VectorField) -> Callable[[], None]:
    """Return a function that evaluates the current along the track in blocks."""
    track = np.zeros((COUNT, 3))
    track[:, 0], track[:, 2] = 2.0 * TIME - 1000.0, -5.0 - np.abs(TIME % 180.0 - 90.0)

    def work() -> None:
        for first in range(0, COUNT, BLOCK):
            field.at(track[first : first + BLOCK], TIME[first : first + BLOCK])

    return work


def main() -> None:
    """Print the table, and check the goal for every kind."""
    slow = []
    for what, field in list_currents():
        took = measure_call(make_workload(field)) / COUNT * 1e9
        print(f"{what:44s} {took:8.1f} ns a sample")
        if took >= GOAL:
            slow.append(what)
    print(f"the goal is below {GOAL:g} ns a sample; above it: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
